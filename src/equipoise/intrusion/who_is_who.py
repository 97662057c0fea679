"""Record correspondence of two files: by id, by row, or unknown."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from equipoise.data import engines
from equipoise.data.records import Law, Records
from equipoise.data.released_terms import ComparableFiles
from equipoise.data.roles import Roles
from equipoise.ground.errors import DataError, EquipoiseError, RolesError, hint
from equipoise.ground.randomness import Draws
from equipoise.recipe.catalogue import build

Truth = Literal["id", "row", "unknown"]
MIN_RECORDS = 50
"""With fewer records there is no test whether rows correspond: they are assumed to."""
MIN_STANDARD_ERRORS = 4.0
"""Standard errors above chance from which a column says that rows go together."""


@dataclass(frozen=True, eq=False)
class Pair:
    """Two files made comparable: how it is known whose record is whose, and what was assumed.

    `both` holds the ids of the people in both files where the files hold different people.
    """

    released: Records
    original: Records
    truth: Truth
    notes: tuple[str, ...] = ()
    both: pl.Series | None = None

    @property
    def people(self) -> int:
        """How many people of the original are looked for."""
        return self.original.height() if self.both is None else len(self.both)

    def in_terms(self, columns: tuple[str, ...]) -> Records:
        """The original as the release would show it: what was merely coarsened by its released label."""
        name = self.original.roles.id
        table = ComparableFiles.read(self.released, self.original, columns).in_terms(*columns).there
        ids = [self.original.collect(name)[name].sort()] if name else []
        return Records.of(table.with_columns(ids), Roles(domain=columns, id=name))

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

    Records are the same by the id role if both files hold that column; else by row, if there are as many rows and they
    go together: some column agrees, row by row, more than by chance. Else the truth is unknown.
    """
    common = _common(released, original, columns)
    name = original.roles.id
    roles = _shared_roles(original.roles, common, name if name in common else None)
    one, two = replace(released, roles=roles), replace(original, roles=roles)
    if roles.id:
        return _by_id(one, two, roles.id)
    if released.synthetic:
        return Pair(one, two, "unknown")
    if in_step(released, original):
        note = "Rows of both files are taken for the same people in the same order: name an id if they are not."
        return Pair(one, two, "row", (note,) if released.source != original.source else ())
    return _unknown(one, two, columns)


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
    keys, sensitive, numeric = (
        tuple(c for c in role if c in columns) for role in (roles.keys, roles.sensitive, roles.numeric)
    )
    trees = {c: tree for c, tree in roles.hierarchies.items() if c in columns}
    return Roles(keys, sensitive, numeric=numeric, id=name, hierarchies=trees, missing=roles.missing)


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
    common = [column for column in original.schema() if column in released.schema()]
    ordered = all(side.in_memory or side.source is not None for side in (released, original))
    if not ordered or released.height() != original.height():
        return False
    if original.height() < MIN_RECORDS or (released.history and released.source == original.source):
        return True
    released_rows, original_rows = released.collect(*common), original.collect(*common)
    return any(_beyond_chance(released_rows[column], original_rows[column]) > MIN_STANDARD_ERRORS for column in common)


def _beyond_chance(released: pl.Series, original: pl.Series) -> float:
    """How many standard errors two columns agree row by row beyond chance: rank correlation, or equal values.

    A column of which each value has one label is a coarsening, if there are two records a value or chance could do it.
    """
    n = len(released)
    if released.dtype.is_numeric() and original.dtype.is_numeric():
        ranks = pl.DataFrame({"a": released.rank(), "b": original.rank()}).drop_nulls()
        rho = ranks.select(pl.corr("a", "b")).item()
        return float(rho) * float(np.sqrt(ranks.height)) if rho is not None and np.isfinite(rho) else 0.0
    both = pl.DataFrame({"a": released.cast(pl.String), "b": original.cast(pl.String)})
    if both["a"].n_unique() > 1 and _coarsening(both, n):
        return float("inf")
    counts = [both[side].drop_nulls().value_counts(name=f"n_{side}").rename({side: "value"}) for side in ("a", "b")]
    chance = counts[0].join(counts[1], on="value").select((pl.col("n_a") / n * pl.col("n_b") / n).sum()).item()
    agree = int((both["a"] == both["b"]).sum())
    return (agree - n * chance) / float(np.sqrt(n * chance * (1 - chance))) if 0 < chance < 1 else 0.0


def _coarsening(both: pl.DataFrame, n: int) -> bool:
    """Each original value has one released label, which chance would not make of two records a value."""
    values = both["b"].n_unique()
    return 2 * values <= n and both.n_unique() == values


def _unknown(released: Records, original: Records, columns: tuple[str, ...]) -> Pair:
    """Two files without a correspondence: what was coarsened in one is coarsened in the other."""
    alike = original
    for law in released.history:
        alike = _coarsened(alike, law)
    for column in columns:
        one, two = (side.collect(column)[column] for side in (released, alike))
        if not (one.dtype.is_numeric() and two.dtype.is_numeric()) and not _share_a_value(one, two):
            raise DataError(
                f"No value of {column!r} is in both files: code it alike in both, or leave it out of what is known."
            )
    why = "No id is in both files and their rows do not go together, so nobody knows whose record is whose."
    how = "The record nearest by all columns that both files have is taken for a person's own."
    return Pair(released, alike, "unknown", (f"{why} {how}",))


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
