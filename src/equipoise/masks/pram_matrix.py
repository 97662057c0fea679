"""Classic post-randomization of one column, with one's own transition matrix."""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from equipoise.data.cells import Cells, count
from equipoise.data.moving_units import cell_of
from equipoise.data.records import Law, Records
from equipoise.data.row_draws import rowwise
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError, ParameterError, require_columns
from equipoise.ground.packed_keys import group
from equipoise.ground.randomness import Draws
from equipoise.laws.column_transitions import Transition
from equipoise.methods.parameters import check_fields, share

LARGEST = 2000
"""Categories of a column beyond which a matrix is refused: it would have more places than that squared."""


@dataclass(frozen=True, slots=True)
class PramMatrix:
    """Replace each value of `column` by category j with probability matrix[i][j], i its own category.

    Categories are the column's sorted distinct values; missing values stay missing. `matrix` has a row per category,
    each summing to 1; or `diagonal` d asks for equal chances off a diagonal of at least d. `invariant=True` gives
    R = P P<-, with P<-[l][k] = T_k P[k][l] / sum over k of T_k P[k][l], so that the expected counts are the original
    ones (T R = T); it is made within each stratum when `strata` names columns. `alpha` mixes with standing still:
    alpha R + (1 - alpha) I, still invariant. Without invariance users adjust with `utility.pram_adjust`.
    Cost: O(records + categories^2) per stratum.

    Source: Gouweleeuw, Kooiman, Willenborg and de Wolf (1998), *Post randomisation for statistical disclosure control*.
    Does not guard against matching to any stated bound: use Pram for that.

    >>> PramMatrix("colour", diagonal=0.8)
    PramMatrix(column='colour', matrix=None, diagonal=0.8, invariant=True, strata=None, alpha=1.0)
    """

    column: str
    matrix: tuple[tuple[float, ...], ...] | None = None
    diagonal: float | None = None
    invariant: bool = True
    strata: tuple[str, ...] | None = None
    alpha: float = 1.0

    def __post_init__(self) -> None:
        if (self.matrix is None) == (self.diagonal is None):
            raise ParameterError("Give either matrix or diagonal.")
        check_fields(self)
        for name in ("diagonal", "alpha"):
            share(getattr(self, name) or 0, name, zero=True)
        if self.matrix is not None:
            object.__setattr__(self, "matrix", tuple(tuple(float(p) for p in row) for row in self.matrix))
            check_matrix(
                np.array(self.matrix, dtype=np.float64) if len({len(r) for r in self.matrix}) == 1 else np.zeros((1, 2))
            )

    def apply(self, data: Records, draws: Draws) -> Records:
        require_columns((self.column,), data.schema())
        by = (self.column, *(self.strata or ()))
        cells = count(data, by)
        values = cells.values(self.column)
        categories = len(values) - values.null_count()
        if categories > LARGEST:
            raise DataError(
                f"Column {self.column!r} has {categories:,} categories: a matrix for more than {LARGEST:,} is refused."
            )
        if categories < 2:
            raise DataError(f"Column {self.column!r} has {categories} category: there is nothing to change it to.")
        tables, stratum = self._tables(cells.cube.codes, cells.n, categories, values.null_count())
        frame = rowwise(data, _Moves(self.column, cells, tables, stratum, values, draws))
        return data.with_frame(frame, replace(self.law(), detail=self._transition(cells, tables, stratum)))

    def transition(self, counts: Floats) -> Floats:
        """The matrix that is used where the categories have these counts."""
        size, numbers = len(counts), np.asarray(counts).dtype.kind in "iuf"
        if not (numbers and np.ndim(counts) == 1 and np.isfinite(counts).all() and (counts >= 0).all() and any(counts)):
            raise ParameterError("counts must be numbers of at least 0, one for each category, not all of them 0.")
        if self.matrix is None:
            assert self.diagonal is not None
            base = np.full((size, size), (1 - self.diagonal) / max(1, size - 1))
            np.fill_diagonal(base, self.diagonal)
        else:
            base = np.array(self.matrix)
            if len(base) != size:
                raise ParameterError(f"The matrix has {len(base)} rows; column {self.column!r} has {size} categories.")
        matrix = invariant_matrix(base, counts) if self.invariant else base
        share = self.alpha
        if self.diagonal is not None and (low := float(np.diag(matrix)[counts > 0].min())) < self.diagonal:
            share = min(share, (1 - self.diagonal) / (1 - low))
        return share * matrix + (1 - share) * np.eye(size)

    def law(self) -> Law:
        parameters: dict[str, object] = {"column": self.column, "invariant": self.invariant, "alpha": self.alpha}
        parameters |= (
            {"matrix": [list(r) for r in self.matrix]} if self.matrix is not None else {"diagonal": self.diagonal}
        )
        parameters |= {"strata": list(self.strata)} if self.strata else {}
        return Law("pram_matrix", (self.column,), self.words(), parameters)

    def words(self) -> str:
        how = f"kept with probability at least {self.diagonal:g}" if self.diagonal is not None else "by a given matrix"
        margin = ", expected counts kept" if self.invariant else ""
        return f"{self.column} post-randomized, {how}{margin}"

    def _transition(self, cells: Cells, tables: Floats, stratum: Integers) -> Transition:
        """The matrices themselves, for audits and attacks."""
        _, first = np.unique(stratum, return_index=True)
        strata = cells.keys.select(self.strata)[first] if self.strata else pl.DataFrame()
        return Transition(self.column, cells.values(self.column).drop_nulls(), strata, np.diff(tables, prepend=0.0))

    def _tables(self, codes: tuple[Integers, ...], n: Integers, categories: int, nulls: int) -> tuple[Floats, Integers]:
        """The cumulated matrix of every stratum, and the stratum of every cell."""
        strata = np.zeros(len(n), dtype=np.int64)
        if len(codes) > 1:
            strata, _ = group(codes[1:], [int(c.max()) + 1 for c in codes[1:]])
        counts = np.zeros((int(strata.max()) + 1, categories))
        present = codes[0] >= nulls
        np.add.at(counts, (strata[present], codes[0][present].astype(np.int64) - nulls), n[present])
        return np.stack([np.cumsum(self.transition(row), axis=1) for row in counts]), strata


@dataclass(frozen=True, eq=False)
class _Moves:
    """The matrix carried out on records."""

    column: str
    cells: Cells
    tables: Floats
    stratum: Integers
    values: pl.Series
    draws: Draws

    def __call__(self, table: pl.DataFrame, ids: pl.Series) -> pl.DataFrame:
        cell = cell_of(table, self.cells)
        codes = self.cells.cube.codes[0].astype(np.int64)[cell]
        nulls, size = self.values.null_count(), self.tables.shape[-1]
        row = self.stratum[cell] * size + np.maximum(codes - nulls, 0)
        reached = (self.tables / self.tables[..., -1:]).reshape(-1, size) + np.arange(self.tables.size // size)[:, None]
        drawn_code = np.searchsorted(reached.ravel(), row + self.draws.uniform(ids), side="right") - row * size
        goal = np.where(codes < nulls, codes, np.clip(drawn_code, 0, size - 1) + nulls)
        new = self.values.gather(pl.Series(goal.astype(np.uint32))).cast(table.schema[self.column])
        return table.with_columns(new.alias(self.column))


def check_matrix(matrix: Floats) -> None:
    """Refuse what is no transition matrix."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ParameterError("matrix must have as many rows as columns.")
    if not np.isfinite(matrix).all() or (matrix < 0).any() or not np.allclose(matrix.sum(axis=1), 1, atol=1e-9):
        raise ParameterError("Each row of matrix must hold probabilities that sum to 1.")


def invariant_matrix(base: Floats, counts: Floats) -> Floats:
    """P P<-, which leaves the expected counts as they are."""
    joint = counts[:, None] * base
    reached = joint.sum(axis=0)
    back = np.divide(joint.T, reached[:, None], out=np.zeros_like(joint.T), where=reached[:, None] > 0)
    invariant: Floats = base @ back
    empty = counts == 0
    invariant[empty] = np.eye(len(counts))[empty]
    return invariant
