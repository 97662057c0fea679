"""Original values recoded as in a release: the values that an intruder who knows a person would search for.

Who knows that somebody is 37 searches for 30-39 where ages were released in bands. The label of a value comes from the
hierarchy where the law of a recode names its level, else from the released records of the same people, row by row.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from equipoise.data.aligned_files import aligned, comparable
from equipoise.data.hierarchy import Hierarchy
from equipoise.data.records import Law, Records
from equipoise.data.roles import beside
from equipoise.ground.arrays import Floats, inverse
from equipoise.ground.errors import EngineError, RolesError, require_columns

Change = Callable[[pl.Series], pl.Series]


@dataclass(frozen=True, eq=False, repr=False)
class ComparableFiles:
    """The columns of a release (`here`), of the original (`there`) and of its holdout (`held`, if one was reserved).

    `in_step` says that equal rows are the same people. The original is in the order of its ids, where it has any, and
    so is the release if they are in step.
    """

    here: pl.DataFrame
    there: pl.DataFrame
    held: pl.DataFrame | None
    in_step: bool
    laws: tuple[Law, ...]
    levels: dict[str, Hierarchy]

    @classmethod
    def read(cls, released: Records, original: Records, columns: tuple[str, ...]) -> "ComparableFiles":
        """Some columns of the files; refused where one of them lacks a column."""
        original_schema, released_schema = original.schema(), released.schema()
        require_columns(columns, original_schema)
        for column in columns:
            if column not in released_schema:
                raise RolesError(f"The released file has no column {column!r}: there is nothing to try.")
        holdout = original.holdout.collect(*columns) if original.holdout else None
        laws, levels = released.history[len(original.history) :], dict(original.roles.hierarchies)
        try:
            one, two = aligned(released, original, columns)
        except EngineError:
            return cls(released.collect(*columns), by_id(original, columns), holdout, False, laws, levels)
        return cls(one, two, holdout, True, laws, levels)

    def in_terms(self, *columns: str) -> "ComparableFiles":
        """The same files, these original columns as the release would show them. O(records) for each."""
        changes = {c: change for c in columns if (change := self._change(c)) is not None}
        table_in_terms, holdout = (
            None if table is None else table.with_columns(change(table[c]).alias(c) for c, change in changes.items())
            for table in (self.there, self.held)
        )
        return self if table_in_terms is None else replace(self, there=table_in_terms, held=holdout)

    def shown(self, table: pl.DataFrame) -> pl.DataFrame:
        """Other people's original columns as the release would show them."""
        changes = {c: change for c in table.columns if (change := self._change(c)) is not None}
        return table.with_columns(change(table[c]).alias(c) for c, change in changes.items())

    def _change(self, column: str) -> Change | None:
        """Function from original values to released ones; None where the column is unchanged."""
        new, old = self.here[column], self.there[column]
        for law in self.laws:
            if column in law.columns and law.coarsens and "level" in law.parameters and column in self.levels:
                return self.levels[column].level(law.parameters["level"]).label
        if not self.in_step or new.equals(old, null_equal=True):
            return None
        pairs = pl.DataFrame({"old": old, "new": new}).group_by("old", "new").len()
        if not self._coarsened(column, pairs) and _alike(new.dtype, old.dtype):
            return None
        likely = pairs.sort("old", pl.col("len"), "new", descending=[False, True, False], nulls_last=False)
        first = likely.unique("old", keep="first", maintain_order=True)
        return lambda values: _look_up(values, first["old"], first["new"])

    def _coarsened(self, column: str, pairs: pl.DataFrame) -> bool:
        """Each value has one label, and the laws say so or labels are fewer than values, about two records each."""
        values = pairs["old"].n_unique()
        if pairs.height > values:
            return False
        flags = [law.coarsens for law in self.laws if column in law.columns]
        return all(flags) if flags else pairs["new"].n_unique() < values and 2 * values <= self.there.height


def computable(law: Law) -> bool:
    """Whether who knows the method and all true values knows the released ones of each record, though no hierarchy.

    So it is for one transformation of the columns of all records (A the identity), and for weights in groups.
    """
    if law.mask == "matrix":
        return "A" not in law.parameters and " x " not in law.parameters.get("C", "")
    return law.mask == "coarsen_weights"


def by_id(records: Records, columns: tuple[str, ...]) -> pl.DataFrame:
    """Columns in the order of the ids, if there are any."""
    name = records.roles.id
    if not name:
        return records.collect(*columns)
    return records.collect(*dict.fromkeys((name, *columns))).sort(name).select(columns)


def rows(records: Records, **columns: Floats | pl.Series) -> pl.DataFrame:
    """One row per record in input order; the columns come in the order of the ids where there are any."""
    name, series = records.roles.id, {key: pl.Series(key, values) for key, values in columns.items()}
    if not name:
        size = len(next(iter(columns.values())))
        return pl.DataFrame({"record": pl.int_range(size, dtype=pl.UInt32, eager=True), **series})
    ids = records.collect(name)[name].alias(beside(name, *series))
    place = pl.Series(inverse(ids.arg_sort().to_numpy()))
    return pl.DataFrame([ids, *(values.gather(place) for values in series.values())])


def _alike(one: pl.DataType, two: pl.DataType) -> bool:
    """Whether two types can be compared as they are."""
    return pl.Null in (one, two) or one == two or (one.is_numeric() and two.is_numeric())


def _look_up(values: pl.Series, old: pl.Series, new: pl.Series) -> pl.Series:
    """Label of each value; a new value has that of the nearest known number or date, or none."""
    (queries, originals), ordered = comparable(values, old)
    if not ordered:
        labels = pl.DataFrame({"value": originals, "label": new})
        joined = pl.DataFrame({"value": queries}).join(
            labels, on="value", how="left", nulls_equal=True, maintain_order="left"
        )
        return joined["label"]
    x, points = queries.to_numpy(), originals.drop_nulls().to_numpy()
    if not len(points):
        return new.gather(pl.Series(np.zeros(len(x), dtype=np.int64)).set(queries.is_not_null(), None))
    place = pl.Series(np.searchsorted((points[1:] + points[:-1]) / 2, x, side="left") + originals.null_count())
    return new.gather(place.set(queries.is_null(), 0 if originals.null_count() else None))
