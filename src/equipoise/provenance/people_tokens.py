"""Keyed tokens of the people and the values of a file, by which the register recognises them without holding them.

A token is 64 bits of AES under the secret key of the register: equal in every file that has the same person or value,
and nothing to whoever lacks the key.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from equipoise.data.aligned_files import in_order
from equipoise.data.records import Records
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import ParameterError
from equipoise.ground.packed_keys import code
from equipoise.ground.randomness import Draws
from equipoise.provenance.fingerprint import canonical_texts

PERSON, ID, CONTENT, ROW = "__eq_person", "__eq_id", "__eq_content", "__eq_row"
"""What a record is recognised by: whose it is, its id, all its other columns; and the number of its row."""
TRUE = "__eq_true:"
"""Before the name of a column: the tokens of its true values, where a release shows others."""
SEPARATOR = "\x1f"
MIN_SHARED = 0.5
"""Share of the values of a column, and of the records, from which on two files without a common id are of one data."""
MIN_TOLD_VALUES = 20
"""Different values of a column from which on it is known again under another name."""


@dataclass(frozen=True, eq=False, repr=False)
class PeopleTokens:
    """The tokens of one file under the key of one register.

    >>> from equipoise.data.roles import Roles
    >>> people = pl.DataFrame({"pid": [7, 8], "age": [30, 31]})
    >>> one = PeopleTokens(Records.of(people, Roles("age", id="pid")), Draws(5)).of(ID, ["pid"])
    >>> two = PeopleTokens(Records.of(people.reverse(), Roles("age")), Draws(5)).of(ID, ["pid"])
    >>> bool((one == two[::-1]).all())
    True
    """

    records: Records
    draws: Draws

    @cached_property
    def table(self) -> pl.DataFrame:
        """The original file; of data without a row order only whose each record is."""
        roles = self.records.roles
        if in_order(self.records):
            return self.records.collect()
        if not (owners := [column for column in (roles.id, roles.person) if column]):
            raise ParameterError("Data on this engine has no row order: name an id or a person for the register.")
        return self.records.collect(*owners)

    @property
    def bases(self) -> dict[str, list[str]]:
        """What the records of this file can be recognised by, and in which columns it stands."""
        roles = self.records.roles
        apart = {roles.id, roles.person, *roles.direct}
        content = [c for c in sorted(self.table.columns) if c not in apart]
        bases = {PERSON: [roles.person] if roles.person else [], ID: [roles.id] if roles.id else [], CONTENT: content}
        return {basis: columns for basis, columns in bases.items() if columns}

    def of(self, basis: str, columns: Sequence[str]) -> Integers | None:
        """A token for each record; the columns are those of an earlier file, None where this one lacks them."""
        role = {PERSON: self.records.roles.person, ID: self.records.roles.id}.get(basis)
        columns = [role] if role else list(columns)
        if not columns or not set(columns) <= set(self.table.columns):
            return None
        table = self.table.select(columns)
        rows = table.select(pl.concat_str(canonical_texts(table), separator=SEPARATOR).alias("row"))
        if basis == CONTENT:
            rows = rows.with_columns(pl.int_range(pl.len()).over("row").alias("time"))
        return self.draws.tokens(_marked(basis, rows.select(pl.concat_str(pl.all(), separator=SEPARATOR))))

    def all(self) -> dict[str, Integers]:
        """The tokens of every record by each of the bases."""
        tokens = {basis: self.of(basis, columns) for basis, columns in self.bases.items()}
        return {basis: values for basis, values in tokens.items() if values is not None}

    def of_values(self, table: pl.DataFrame) -> dict[str, Integers]:
        """A token for each value of each column: the same value of a column has the same in every release."""
        return {column: self.of_column(table[column], column) for column in table.columns}

    def of_true_values(self, columns: Iterable[str]) -> dict[str, Integers]:
        """The tokens of what is true in some columns, by which they are known again under another name."""
        own = [column for column in columns if column in self.table.columns]
        return {f"{TRUE}{column}": tokens for column, tokens in self.of_values(self.table.select(own)).items()}

    def of_column(self, column: pl.Series, name: str) -> Integers:
        """A token for each value, as of a column with this name."""
        table = column.to_frame()
        coded = code(table.select(canonical_texts(table)).to_series())
        return self.draws.tokens(_marked(name, coded.values.to_frame()))[coded.codes]


def _marked(mark: str, texts: pl.DataFrame) -> pl.Series:
    """Texts that are apart from those of other columns and bases."""
    return texts.select(pl.concat_str(pl.lit(mark), texts.to_series(), separator=SEPARATOR)).to_series()


def look_up(tokens: Integers, among: Integers) -> Integers:
    """The place of each token among others, -1 where it is not there. O(n log n).

    >>> look_up(np.array([5, 9], dtype=np.uint64), np.array([9, 7], dtype=np.uint64)).tolist()
    [-1, 0]
    """
    if not len(among):
        return np.full(len(tokens), -1)
    order = np.argsort(among, kind="stable")
    places = np.minimum(np.searchsorted(among[order], tokens), len(among) - 1)
    return np.where(among[order][places] == tokens, order[places], -1)


def linked(
    tokens: PeopleTokens, table: pl.DataFrame, bases: Mapping[str, Sequence[str]], changed: Sequence[str] = ()
) -> tuple[pl.DataFrame, Integers] | None:
    """What an earlier release shows of each record of this file: a table, and for each record its row, -1 for none.

    Records are recognised by their id, else by their content; where a person's record is not the same one, all records
    of the person stand for it, as one row more. Where all that fails, an intruder's way is left: rows that are alone in
    both files in the true values of the columns that were released, of those `changed` as far as the register has them.
    A column may have another name. None where nothing tells whether records are the same.
    """
    places, comparable = _by_record(tokens, table, bases)
    own = tokens.of(PERSON, bases.get(PERSON, ())) if PERSON in table.columns else None
    if own is not None:
        people = _by_person(table)
        others = look_up(own, people[PERSON].to_numpy())
        places = np.where((places < 0) & (others >= 0), others + table.height, places)
        table = pl.concat([table, people.select(table.columns)])
    elif not (places >= 0).any():
        places = _by_values(tokens, true_values(table, changed))
    return (table, places) if comparable or own is not None or (places >= 0).any() else None


def _by_record(tokens: PeopleTokens, table: pl.DataFrame, bases: Mapping[str, Sequence[str]]) -> tuple[Integers, bool]:
    """The row of each record by its id or its content, and whether either can be compared."""
    places, comparable = np.full(tokens.table.height, -1), False
    for basis in (ID, CONTENT):
        own = tokens.of(basis, bases.get(basis, ())) if basis in table.columns else None
        if own is not None and not (places >= 0).any():
            places, comparable = look_up(own, table[basis].to_numpy()), True
    return places, comparable


def _by_values(tokens: PeopleTokens, table: pl.DataFrame) -> Integers:
    """The row of each record that is alone in both files in what they share; none where few are."""
    own: dict[str, Integers] = {}
    for column in table.columns:
        shares = {
            c: np.isin(values, table[column].to_numpy()).mean() for c, values in _namesakes(tokens, table, column)
        }
        if shares and max(shares.values()) >= MIN_SHARED:
            own[column] = tokens.of_column(tokens.table[max(shares, key=lambda c: shares[c])], column)
    places = np.full(tokens.table.height, -1)
    if not own:
        return places
    one, two = _alone(pl.DataFrame(own)), _alone(table.select(list(own)))
    pairs = one.join(two, on=list(own), suffix="_two")
    if pairs.height >= MIN_SHARED * min(tokens.table.height, table.height):
        places[pairs[ROW].to_numpy()] = pairs[f"{ROW}_two"].to_numpy()
    return places


def true_values(table: pl.DataFrame, changed: Sequence[str]) -> pl.DataFrame:
    """The tokens of the true values of an earlier release, by column: those that it shows, where it shows them."""
    shown = {c: table[c] for c in table.columns if not c.startswith("__eq_") and c not in changed}
    true = {c.removeprefix(TRUE): table[c] for c in table.columns if c.startswith(TRUE)}
    return pl.DataFrame({**shown, **true})


def _namesakes(tokens: PeopleTokens, table: pl.DataFrame, column: str) -> Iterator[tuple[str, Integers]]:
    """Own columns that a column of an earlier release may be, with their tokens: that of its name, else others."""
    own = tokens.table
    names = [column] if column in own.columns else [c for c in own.columns if c not in table.columns]
    for name in names:
        values = tokens.of_column(own[name], column)
        if name == column or len(np.unique(values)) > MIN_TOLD_VALUES:
            yield name, values


def _alone(table: pl.DataFrame) -> pl.DataFrame:
    """The rows that no other is like, with their numbers."""
    return table.with_row_index(ROW).filter(~pl.struct(table.columns).is_duplicated())


def _by_person(table: pl.DataFrame) -> pl.DataFrame:
    """One row per person: the sums of all tokens of a column tell sets of values apart."""
    people = code(table[PERSON])
    sums = {}
    for column in table.columns:
        sums[column] = np.zeros(people.size, dtype=np.uint64)
        np.add.at(sums[column], people.codes, table[column].to_numpy())
    return pl.DataFrame({**sums, PERSON: people.values})
