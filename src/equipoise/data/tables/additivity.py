"""Additivity of tables: which cells add up to which, as a sparse matrix of relations.

A relation says sum over j of sign_j x_j = 0: +1 for the parts, -1 for their total. Relations come from a list, from
dimensions with hierarchies, or from several tables that share cells. No Python loop over cells or relations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.ground.errors import DataError, ParameterError
from equipoise.ground.packed_keys import MAX_PACKED_ID

RELATION_TOLERANCE = 1e-6
"""Share of the sum of absolute values in a relation by which it may differ from zero."""


@dataclass(frozen=True, eq=False, repr=False)
class Additive:
    """Relations between cells: `matrix @ x = 0`, a row for each relation and a column for each cell.

    `totals` holds the cell that each relation adds up to (-1: not known). `needed` marks relations from which all
    others follow; programs use these alone.
    """

    matrix: Any
    totals: Integers
    needed: Booleans

    @property
    def relations(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def cells(self) -> int:
        return int(self.matrix.shape[1])

    @classmethod
    def of(cls, relations: Sequence[tuple[Sequence[int], Sequence[float]]], cells: int) -> "Additive":
        """Relations as a list of (cells, signs); the total is the first cell whose sign is the rarer one.

        >>> Additive.of([((0, 1, 2), (-1, 1, 1))], cells=3).residuals(np.array([5.0, 2.0, 3.0])).tolist()
        [0.0]
        """
        sizes = np.array([len(members) for members, _ in relations], dtype=np.int64)
        if any(len(members) != len(signs) for members, signs in relations):
            raise ParameterError("Every cell of a relation needs one sign.")
        columns = np.array([j for members, _ in relations for j in members], dtype=np.int64)
        signs = np.array([s for _, signs in relations for s in signs], dtype=np.float64)
        if len(columns) and not 0 <= columns.min() <= columns.max() < cells:
            raise ParameterError(f"A relation names a cell outside 0 to {cells - 1:,}.")
        totals = np.array([_total(members, signs) for members, signs in relations], dtype=np.int64)
        rows = np.repeat(np.arange(len(sizes)), sizes)
        return cls(_sparse(signs, rows, columns, (len(sizes), cells)), totals, np.ones(len(sizes), dtype=np.bool_))

    @classmethod
    def over(cls, parents: Sequence[Integers], codes: Integers | None = None) -> "Additive":
        """Every cell of a table with a tree of codes in each dimension, and every relation between them.

        `parents[d][c]` is the code that c belongs to in dimension d, -1 for the root. Cells are all combinations,
        the last dimension fastest, or the rows of `codes` (a column for each dimension): a part that is not among
        them counts as zero, a total that is not among them has no relation. Cost: O(n d), or O(n d log n) for a
        subset.

        >>> tree = np.array([-1, 0, 0])
        >>> table = Additive.over([tree, tree])
        >>> table.cells, table.relations, int(table.needed.sum())
        (9, 6, 5)
        """
        grid = _Grid.of(parents, codes)
        parts = [grid.relations(dimension) for dimension in range(len(parents))]
        totals = np.concatenate([part.totals for part in parts])
        first = np.cumsum([0, *(len(part.totals) for part in parts)])
        rows = np.concatenate([part.rows + start for part, start in zip(parts, first, strict=False)])
        columns, heads = np.concatenate([part.parts for part in parts]), np.arange(len(totals))
        signs = np.concatenate([np.ones(len(rows)), -np.ones(len(totals))])
        places = (np.concatenate([rows, heads]), np.concatenate([columns, totals]))
        matrix = _sparse(signs, *places, (len(totals), grid.size))
        return cls(matrix, totals, grid.needed([part.totals for part in parts]))

    @classmethod
    def linked(cls, tables: Sequence["Additive"], places: Sequence[Integers], cells: int | None = None) -> "Additive":
        """Linked tables as one: `places[t][j]` is the number of table t's cell j; shared cells have one number.

        >>> total = Additive.of([((0, 1, 2), (-1, 1, 1))], cells=3)
        >>> Additive.linked([total, total], [np.array([0, 1, 2]), np.array([0, 3, 4])]).cells
        5
        """
        import scipy.sparse as sparse

        size = 1 + max(int(place.max(initial=-1)) for place in places) if cells is None else cells
        blocks = []
        for table, place in zip(tables, places, strict=True):
            if len(place) != table.cells or len(np.unique(place)) != len(place):
                raise ParameterError("Every cell of a linked table needs one place, and no two the same.")
            entries = table.matrix.tocoo()
            blocks.append(_sparse(entries.data, entries.row, place[entries.col], (table.relations, size)))
        totals = [np.where(t.totals < 0, -1, place[t.totals]) for t, place in zip(tables, places, strict=True)]
        matrix = sparse.csr_array(sparse.vstack(blocks))
        return cls(matrix, np.concatenate(totals), np.concatenate([table.needed for table in tables]))

    def joined(self, more: "Additive") -> "Additive":
        """These relations and more between the same cells."""
        import scipy.sparse as sparse

        matrix = sparse.csr_array(sparse.vstack([self.matrix, more.matrix]))
        totals, needed = np.concatenate([self.totals, more.totals]), np.concatenate([self.needed, more.needed])
        return Additive(matrix, totals, needed)

    @cached_property
    def base(self) -> Any:
        """The needed relations, by row."""
        return self.matrix if self.needed.all() else self.matrix[np.flatnonzero(self.needed)]

    @cached_property
    def by_cell(self) -> Any:
        """The needed relations, by column."""
        return self.base.tocsc()

    def residuals(self, values: Floats) -> Floats:
        """Sum of each relation, zero where it adds up."""
        return np.asarray(self.matrix @ values)

    def check(self, values: Floats, tolerance: float = RELATION_TOLERANCE) -> None:
        """Refuse values that do not add up: |sum| over `tolerance` times the sum of absolute values of the relation."""
        if len(values) != self.cells:
            raise DataError(f"There are {len(values):,} values for {self.cells:,} cells.")
        if not np.isfinite(values).all():
            raise DataError(f"Cell {int(np.flatnonzero(~np.isfinite(values))[0])} has no finite value.")
        scale = abs(self.matrix) @ np.abs(values)
        wrong = np.flatnonzero(np.abs(self.residuals(values)) > tolerance * scale)
        if len(wrong):
            head = int(self.totals[wrong[0]])
            suffix = f" (total: cell {head})" if head >= 0 else ""
            raise DataError(f"{len(wrong):,} relations do not add up; the first is relation {int(wrong[0])}{suffix}.")


def _total(members: Sequence[int], signs: Sequence[float]) -> int:
    minus = [j for j, sign in zip(members, signs, strict=True) if sign < 0]
    plus = [j for j, sign in zip(members, signs, strict=True) if sign > 0]
    rarer = minus if len(minus) <= len(plus) else plus
    return rarer[0] if len(rarer) == 1 else -1


def _sparse(data: Any, rows: Any, columns: Any, shape: tuple[int, int]) -> Any:
    import scipy.sparse as sparse

    return sparse.csr_array(sparse.coo_array((data, (rows, columns)), shape=shape))


@dataclass(frozen=True, eq=False, repr=False)
class _Relations:
    """The relations of one dimension: cell `parts[i]` belongs to relation `rows[i]`, which adds up to its total."""

    rows: Integers
    parts: Integers
    totals: Integers


@dataclass(frozen=True, eq=False, repr=False)
class _Grid:
    """Cells as codes in every dimension, packed by mixed radix."""

    parents: tuple[Integers, ...]
    keys: Integers
    order: Integers | None

    @classmethod
    def of(cls, parents: Sequence[Integers], codes: Integers | None) -> "_Grid":
        trees = tuple(np.asarray(tree, dtype=np.int64) for tree in parents)
        for number, tree in enumerate(trees):
            _refuse_no_tree(tree, number)
        places = prod(len(tree) for tree in trees)
        if places > MAX_PACKED_ID:
            raise ParameterError("The dimensions have too many combinations of codes to be numbered.")
        if codes is None:
            return cls(trees, np.arange(places), None)
        codes = np.asarray(codes, dtype=np.int64)
        sizes = np.array([len(tree) for tree in trees])
        if codes.ndim != 2 or codes.shape[1] != len(trees) or (codes < 0).any() or (codes >= sizes).any():
            raise ParameterError("The cells need one known code in every dimension.")
        keys = codes @ _strides(sizes)
        order = np.argsort(keys, kind="stable")
        if (np.diff(keys[order]) == 0).any():
            twice = order[1:][np.diff(keys[order]) == 0]
            raise DataError(f"Cell {int(twice[0])} has the same codes as another.")
        return cls(trees, keys, order)

    @property
    def size(self) -> int:
        return len(self.keys)

    def codes(self, dimension: int) -> Integers:
        stride = int(_strides(np.array([len(tree) for tree in self.parents]))[dimension])
        return self.keys // stride % len(self.parents[dimension])

    def find(self, keys: Integers) -> Integers:
        """The cells with these keys, -1 where there is none."""
        if self.order is None:
            return keys
        spot = np.minimum(np.searchsorted(self.keys, keys, sorter=self.order), self.size - 1)
        cells = self.order[spot]
        return np.where(self.keys[cells] == keys, cells, -1)

    def above(self, dimension: int) -> Integers:
        """Total above each cell in a dimension: -1 where it is no cell, -2 at the root."""
        stride = int(_strides(np.array([len(tree) for tree in self.parents]))[dimension])
        code = self.codes(dimension)
        parent = self.parents[dimension][code]
        return np.where(parent < 0, -2, self.find(self.keys + np.where(parent < 0, 0, parent - code) * stride))

    def relations(self, dimension: int) -> _Relations:
        above = self.above(dimension)
        parts = np.flatnonzero(above >= 0)
        totals, rows = np.unique(above[parts], return_inverse=True)
        return _Relations(rows, parts, totals)

    def needed(self, totals: Sequence[Integers]) -> Booleans:
        """Relations whose total is a leaf in all dimensions before their own: the others are sums of these.

        Needs a table with every total of its cells and some part of every total; of others all relations are kept.
        """
        inner = [self._inner(dimension) for dimension in range(len(self.parents))]
        whole = all((self.above(d) != -1).all() for d in range(len(self.parents)))
        if not whole or any(cells.sum() != len(heads) for cells, heads in zip(inner, totals, strict=True)):
            return np.ones(sum(len(heads) for heads in totals), dtype=np.bool_)
        before = np.zeros(self.size, dtype=np.bool_)
        flags = []
        for cells, heads in zip(inner, totals, strict=True):
            flags.append(~before[heads])
            before |= cells
        return np.concatenate(flags)

    def _inner(self, dimension: int) -> Booleans:
        tree = self.parents[dimension]
        has_parts = np.zeros(len(tree), dtype=np.bool_)
        has_parts[tree[tree >= 0]] = True
        return has_parts[self.codes(dimension)]


def _strides(sizes: Integers) -> Integers:
    return np.concatenate([np.cumprod(sizes[:0:-1])[::-1], [1]]).astype(np.int64)


def _refuse_no_tree(tree: Integers, number: int) -> None:
    """Refuse parents that do not form a tree: one root, which every code reaches."""
    if len(tree) == 0 or (tree >= len(tree)).any() or (tree < 0).sum() != 1:
        raise ParameterError(f"Dimension {number} is not a tree: one code has no parent, all others have a known one.")
    for _ in range(len(tree).bit_length()):
        above = tree[tree]
        tree = np.where((tree < 0) | (above < 0), tree, above)
    if ((tree >= 0) & (tree[tree] >= 0)).any():
        raise ParameterError(f"Dimension {number} is not a tree: some codes never reach the root.")
