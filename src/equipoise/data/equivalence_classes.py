"""Equivalence classes: records that agree on the keys, and the distribution of sensitive values within each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from equipoise.data.cells import Cells
from equipoise.data.hierarchy import Hierarchy
from equipoise.data.missing_keys import Meeting, meetings
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import require_columns
from equipoise.ground.packed_keys import group

CHUNK_PLACES = 1 << 22
"""Largest table of classes by values, in places, that is computed at a time."""


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Distribution of one sensitive column within classes: a row per class and value that occur together.

    `ids` is the class of each row, `codes` its value (a place in `values`), `n` its records; `size` classes in all.
    """

    ids: Integers
    codes: Integers
    n: Integers
    size: int
    values: pl.Series
    tree: Hierarchy | None = None
    overall: Floats | None = None

    @property
    def records(self) -> Floats:
        """The records of each class."""
        return self.add(self.n)

    @property
    def shares(self) -> Floats:
        """The share of each row in its class."""
        return self.n / self.records[self.ids]

    @property
    def whole(self) -> Floats:
        """The share of each value in the whole file."""
        if self.overall is not None:
            return self.overall
        counts = np.bincount(self.codes, weights=self.n, minlength=len(self.values))
        return counts / counts.sum()

    def add(self, amounts: Integers) -> Floats:
        """Sum of amounts of the rows over each class."""
        return np.bincount(self.ids, weights=amounts, minlength=self.size).astype(np.float64, copy=False)

    def tables(self) -> Iterator[tuple[slice, Floats]]:
        """The classes in chunks, each chunk with the share of every value of the file in each of its classes."""
        order = np.argsort(self.ids, kind="stable")
        ids, codes, shares = self.ids[order], self.codes[order], self.shares[order]
        step = max(1, CHUNK_PLACES // max(1, len(self.values)))
        for start in range(0, self.size, step):
            end = min(start + step, self.size)
            rows = slice(*np.searchsorted(ids, [start, end]))
            table = np.zeros((end - start, len(self.values)))
            table[ids[rows] - start, codes[rows]] = shares[rows]
            yield slice(start, end), table

    def any(self, flags: Integers) -> Integers:
        """Whether any row of each class is flagged."""
        return self.add(flags.astype(np.float64)) > 0


@dataclass(frozen=True, eq=False, repr=False)
class Classes:
    """Equivalence classes with `n` records each, and rows for each class and combination of sensitive values.

    `ids` is the class of each row, `codes` maps each sensitive column to the value of each row, `rows` its records.
    `matched` is the records that match each class where missing keys match anything, and `groups` the classes as cells
    then. `overall` has the shares of each column's values in the file, where rows stand in several classes.
    """

    n: Integers
    ids: Integers
    rows: Integers
    codes: Mapping[str, Integers] = field(default_factory=dict)
    values: Mapping[str, pl.Series] = field(default_factory=dict)
    trees: Mapping[str, Hierarchy] = field(default_factory=dict)
    matched: Integers | None = None
    groups: Cells | None = None
    overall: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def alike(self) -> Integers:
        """The records that an intruder cannot tell from those of each class."""
        return self.n if self.matched is None else self.matched

    @classmethod
    def of(cls, cells: Cells, sensitive: Sequence[str]) -> "Classes":
        """The classes of all columns of the cells but the sensitive ones. O(cells log cells)."""
        places = [cells.place(column) for column in sensitive]
        keys = [i for i in range(len(cells.by)) if i not in places]
        ids = np.zeros(len(cells), dtype=np.int64)
        if keys:
            ids, _ = group([cells.cube.codes[i] for i in keys], [cells.cube.sizes[i] for i in keys])
        n = np.rint(np.bincount(ids, weights=cells.n)).astype(np.int64)
        codes = {c: cells.cube.codes[p].astype(np.int64) for c, p in zip(sensitive, places, strict=True)}
        values = {c: cells.cube.axes[p] for c, p in zip(sensitive, places, strict=True)}
        by = tuple(cells.by[i] for i in keys)
        wild = any(cells.values(column).null_count() for column in cells.open if column in by)
        groups = cells.margin(by) if wild else None
        matched = groups.alike[0] if groups is not None else None
        return cls(n, ids, cells.n, codes, values, dict(cells.hierarchies), matched, groups)

    def together(self) -> "Classes":
        """Each class with the rows of all classes that match it because keys are missing.

        Cost: a row for each class and each combination of sensitive values among those that match it.
        """
        if self.groups is None or self.matched is None:
            return self
        places = [self.groups.by.index(column) for column in self.groups.open if column in self.groups.by]
        rows = pl.DataFrame({"class": self.ids, "n": self.rows, **{f"_{c}": v for c, v in self.codes.items()}})
        both = pl.concat([_matching_rows(met, rows) for met in meetings(self.groups.cube, places)])
        shares = {c: np.bincount(v, self.rows, len(self.values[c])) / self.rows.sum() for c, v in self.codes.items()}
        return replace(
            self, n=self.matched, ids=both["mine"].to_numpy(), rows=both["n"].to_numpy(),
            codes={c: both[f"_{c}"].to_numpy() for c in self.codes}, matched=None, groups=None, overall=shares,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.n)

    def split(self, column: str) -> Split:
        """Distribution of a sensitive column within the classes."""
        return self._split(column, self.ids, len(self))

    def finer(self, column: str, others: Sequence[str]) -> tuple[Split, Integers]:
        """The same within classes refined by other sensitive columns, and the class that contains each of those."""
        columns, sizes = [self.ids], [len(self)]
        for other in others:
            columns.append(self._codes(other))
            sizes.append(len(self.values[other]))
        ids, first = group(columns, sizes)
        return self._split(column, ids, len(first)), self.ids[first]

    def _codes(self, column: str) -> Integers:
        require_columns((column,), self.codes)
        return self.codes[column]

    def _split(self, column: str, ids: Integers, size: int) -> Split:
        codes, values = self._codes(column), self.values[column]
        tree, overall = self.trees.get(column), self.overall.get(column)
        packed = ids * len(values) + codes
        if len(self.codes) == 1 and overall is None:
            return Split(ids, codes, self.rows, size, values, tree)
        pairs, place = np.unique(packed, return_inverse=True)
        n = np.rint(np.bincount(place, weights=self.rows)).astype(np.int64)
        return Split(pairs // len(values), pairs % len(values), n, size, values, tree, overall)


def _matching_rows(met: Meeting, rows: pl.DataFrame) -> pl.DataFrame:
    """For each class of a meeting, as `mine`, the summed rows of the classes that match it."""
    matches = pl.DataFrame({"class": met.matches, "id": met.match_ids}).join(rows, on="class").drop("class")
    added = matches.group_by(pl.exclude("n")).agg(pl.col("n").sum())
    return pl.DataFrame({"mine": met.cells, "id": met.cell_ids}).join(added, on="id").drop("id")
