"""Record correspondence of two files: by id, by row, by rare values that agree, or unknown."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from equipoise.data import engines
from equipoise.data.aligned_files import in_order
from equipoise.data.records import Law, Records
from equipoise.data.released_terms import ComparableFiles, by_id
from equipoise.data.roles import Roles, beside
from equipoise.ground.errors import DataError, EquipoiseError, RolesError, hint
from equipoise.ground.packed_keys import code
from equipoise.ground.randomness import Draws
from equipoise.intrusion.agreeing_pairs import (
    MIN_STANDARD_ERRORS,
    AgreeingPairs,
    agreeing_pairs,
    agreement,
    columns_of_both,
)
from equipoise.intrusion.unpaired import Unpaired
from equipoise.presentation.numbers import listed
from equipoise.recipe.catalogue import build

Truth = Literal["release", "id", "row", "agreement", "unknown"]
ESTIMATED: tuple[Truth, ...] = ("agreement", "unknown")
"""Where it is not known for certain whose record is whose."""
MIN_RECORDS = 50
"""With fewer records there is no test whether rows correspond: they are assumed to."""
MIN_PAIRED = 0.05
"""Share of people paired by rare values from which on these pairs are the truth."""
MIN_IN_STEP = 0.99
"""Share of those pairs that stand in the same row where rows correspond."""


@dataclass(frozen=True, eq=False)
class Pair:
    """Two files made comparable: how it is known whose record is whose, and what was assumed.

    `both` holds the ids of the people in both files where the files hold different people; `rest` those whose record
    is not known, where pairs are estimated.
    """

    released: Records
    original: Records
    truth: Truth
    notes: tuple[str, ...] = ()
    both: pl.Series | None = None
    rest: Unpaired | None = None

    @property
    def estimated(self) -> bool:
        """Whether it is not known for certain whose record is whose."""
        return self.truth in ESTIMATED

    @property
    def people(self) -> int:
        """How many people of the original are looked for."""
        return self.original.height() if self.both is None else len(self.both)

    def in_terms(self, columns: tuple[str, ...]) -> Records:
        """The original as the release would show it: what was merely coarsened by its released label."""
        name, person = self.original.roles.id, self.original.roles.person
        table = ComparableFiles.read(*self.common(), columns).shown(by_id(self.original, columns))
        labels = tuple(label for label in (name, person) if label)
        table = table.with_columns(by_id(self.original, labels).get_columns()) if labels else table
        return Records.of(table, Roles(domain=columns, id=name, person=person))

    def common(self) -> tuple[Records, Records]:
        """Both files with the people in both only."""
        name = self.original.roles.id
        if self.both is None or name is None:
            return self.released, self.original
        chosen = pl.col(name).is_in(self.both.implode())
        sides = (
            replace(side, frame=engines.like(side.frame, side.collect().filter(chosen)))
            for side in (self.released, self.original)
        )
        first, second = sides
        return first, second


def pair(released: Records, original: Records, columns: tuple[str, ...]) -> Pair:
    """Both files with roles for the columns they share, aligned where they can be.

    Records are the same by the id role if both files hold that column; else by values that one record of each file has,
    in columns that were not changed (`agreeing_pairs`); else by row, if there are as many rows and they go together:
    some column agrees better for equal rows than for rows next to each other. Else the truth is unknown.
    """
    common = _common(released, original, columns)
    name = original.roles.id
    roles = _shared_roles(original.roles, common, name if name in common else None)
    one, two = replace(released, roles=roles), replace(original, roles=roles)
    if roles.id:
        return _by_id(one, two, roles.id)
    if released.synthetic:
        return Pair(one, two, "unknown")
    if _ordered(released, original) and released.history and released.source == original.source:
        return Pair(one, two, "row")
    alike = _coarsened_alike(one, two)
    pairs = agreeing_pairs(one.collect(*common), alike.collect(*common))
    if _in_step(one, two, pairs):
        note = "Rows of both files are taken for the same people in the same order: name an id if they are not."
        return Pair(one, two, "row", (note,) if released.source != original.source else ())
    if len(pairs) >= MIN_PAIRED * min(one.height(), two.height()):
        return _by_agreement(one, two, pairs)
    return _unknown(one, alike, columns)


def _common(released: Records, original: Records, columns: tuple[str, ...]) -> tuple[str, ...]:
    released_schema, original_schema = released.schema(), original.schema()
    common = tuple(column for column in original_schema if column in released_schema)
    if not common:
        raise RolesError("The released file and the intruder's file have no column in common.")
    for words, schema in (("intruder's", original_schema), ("released", released_schema)):
        for column in columns:
            if column not in schema:
                raise RolesError(f"No column {column!r} in the {words} file.{hint(column, list(schema))}")
    return common


def _shared_roles(roles: Roles, columns: tuple[str, ...], name: str | None) -> Roles:
    """The roles of the columns that both files have; weights and households are no matter here."""
    person = roles.person if roles.person in columns else None
    keys, sensitive, numeric = (
        tuple(c for c in role if c in columns) for role in (roles.keys, roles.sensitive, roles.numeric)
    )
    trees = {c: tree for c, tree in roles.hierarchies.items() if c in columns}
    return Roles(keys, sensitive, numeric=numeric, id=name, person=person, hierarchies=trees, missing=roles.missing)


def _by_id(released: Records, original: Records, name: str) -> Pair:
    ids = [_ids(side, name) for side in (released, original)]
    if ids[0].dtype != ids[1].dtype:
        raise RolesError(f"The id column {name!r} has another type in the released file.")
    both = ids[1].filter(ids[1].is_in(ids[0].implode()))
    if not len(both):
        raise RolesError(
            f"Nobody of the intruder's file is in the released file: their {name!r} have nothing in common."
        )
    if len(both) == len(ids[0]) == len(ids[1]):
        return Pair(released, original, "id")
    note = (
        f"{len(both):,} of the {len(ids[1]):,} people in the intruder's file are among the {len(ids[0]):,} of the "
        "release: shares are of them, each looked for among all released records."
    )
    return Pair(released, original, "id", (note,), both)


def _ids(records: Records, name: str) -> pl.Series:
    ids = records.collect(name)[name]
    if ids.null_count() or ids.n_unique() < len(ids):
        raise RolesError(f"The id column {name!r} has missing or repeated values: ids must be unique.")
    return ids


def in_step(released: Records, original: Records) -> bool:
    """Whether the rows of both files are the same people in the same order, as far as their columns show."""
    if not _ordered(released, original):
        return False
    if released.history and released.source == original.source:
        return True
    common = [column for column in original.schema() if column in released.schema()]
    return _in_step(released, original, agreeing_pairs(released.collect(*common), original.collect(*common)))


def _ordered(released: Records, original: Records) -> bool:
    """Whether rows could correspond: as many in both files, and in a reliable order."""
    return all(in_order(side) for side in (released, original)) and released.height() == original.height()


def _in_step(released: Records, original: Records, pairs: AgreeingPairs) -> bool:
    """By the rare values that agree, where there are any; else by columns that agree better than the next row does."""
    if not _ordered(released, original):
        return False
    if len(pairs):
        return float((pairs.people == pairs.records).mean()) >= MIN_IN_STEP
    if original.height() < MIN_RECORDS:
        return True
    common = [column for column in original.schema() if column in released.schema()]
    tables = released.collect(*common), original.collect(*common)
    rows = np.arange(original.height())
    goes = (agreement(column, rows, rows)[1] for column in columns_of_both(*tables))
    return any(z > MIN_STANDARD_ERRORS for z in goes) or any(_coarsening(*(t[c] for t in tables)) for c in common)


def _coarsening(released: pl.Series, original: pl.Series) -> bool:
    """Each original value has one released label, which chance would not make of two records a value.

    Of a column that the file is sorted by that says nothing: then equal values stand in equal rows in any case.
    """
    both = pl.DataFrame({"a": released.cast(pl.String), "b": original.cast(pl.String)})
    values = both["b"].n_unique()
    if 2 * values > both.height or both["a"].n_unique() < 2 or both.n_unique() > values:
        return False
    codes = code(both["b"]).codes
    shares = np.bincount(codes) / len(codes)
    chance, alike = float((shares**2).sum()), float((codes[1:] == codes[:-1]).mean())
    return alike - chance < MIN_STANDARD_ERRORS * float(np.sqrt(chance * (1 - chance) / len(codes)))


def _by_agreement(released: Records, original: Records, pairs: AgreeingPairs) -> Pair:
    """Both files with the row of the original for an id, in the release that of the person it was paired with."""
    name = beside("record", *released.schema(), *original.schema())
    rows = np.arange(original.height(), original.height() + released.height())
    rows[pairs.records] = pairs.people
    one = with_ids(released, pl.Series(name, rows))
    two = with_ids(original, pl.Series(name, np.arange(original.height())))
    both = pl.Series(name, np.sort(pairs.people))
    rest = Unpaired.of(one.collect(), two.collect(), both, precision=pairs.precision)
    same = len(both) == released.height() == original.height()
    return Pair(one, two, "agreement", (_agreement_note(pairs, original.height()),), None if same else both, rest)


def with_ids(records: Records, ids: pl.Series) -> Records:
    """The records with one more column, their id."""
    frame = engines.like(records.frame, records.collect().with_columns(ids))
    return replace(records, frame=frame, roles=replace(records.roles, id=ids.name))


def _agreement_note(pairs: AgreeingPairs, people: int) -> str:
    text = f"No id is in both files: {len(pairs):,} of {people:,} people were paired by rare values of "
    text += f"{listed(pairs.columns)} that one record of each file has, and other columns bear that out"
    if not pairs.strangers:
        return f"{text}."
    verb, be = ("agrees", "is") if len(pairs.strangers) == 1 else ("agree", "are")
    return f"{text}; {listed(pairs.strangers)} {verb} no better than by chance, as new numbers do, and {be} left out."


def _unknown(released: Records, original: Records, columns: tuple[str, ...]) -> Pair:
    """Two files without a correspondence."""
    for column in columns:
        one, two = (side.collect(column)[column] for side in (released, original))
        if not (one.dtype.is_numeric() and two.dtype.is_numeric()) and not _share_a_value(one, two):
            raise DataError(
                f"No value of {column!r} is in both files: code it alike in both, or leave it out of what is known."
            )
    why = "No id is in both files and their rows do not go together, so nobody knows whose record is whose."
    how = "No share of people linked is larger than stated, for people equal in what is known cannot be told apart."
    rest = Unpaired.of(released.collect(), original.collect(), pl.Series(dtype=pl.Int64), precision=0.0)
    return Pair(released, original, "unknown", (f"{why} {how}",), rest=rest)


def _coarsened_alike(released: Records, original: Records) -> Records:
    """The original coarsened as the laws of the release say."""
    for law in released.history:
        original = _coarsened(original, law)
    return original


def _coarsened(original: Records, law: Law) -> Records:
    """The original after the same coarsening, where that is known."""
    if not law.coarsens or not set(law.columns) <= set(original.schema()):
        return original
    try:
        coarse: Records = build(law.mask, "mask", law.parameters).apply(original, Draws(0))
    except EquipoiseError:
        return original
    return replace(coarse, history=original.history)


def _share_a_value(one: pl.Series, two: pl.Series) -> bool:
    return bool(one.cast(pl.String).unique().is_in(two.cast(pl.String).unique().implode()).any())
