"""Who can compute a sensitive cell of a suppressed table, by SciPy's linear programs from the raw records.

Nothing here comes from the audit: cells, relations and what contributors know are made from the records by hand. Every
record is a contributor of its own. A sensitive cell is asked about both ways, first without anybody's knowledge, then
with that of each contributor whom every table found so far moves: whoever it leaves still learns nothing from it.
"""

from itertools import product
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sparse
from numpy.typing import NDArray
from scipy.optimize import linprog

from equipoise.data.tables.table import Table
from equipoise.methods.method import Rule

TOTAL = "Total"
TOLERANCE = 1e-5
MAX_PEOPLE = 100
"""Contributors asked about for each cell and direction, of those whom no table so far rules out."""


class Attack:
    """A table from its records: `value` of each cell, `inner` cells of each, and what the largest has in it."""

    def __init__(self, frame: pl.DataFrame, table: Table, rule: Rule, checked: int) -> None:
        keys = [tuple(row) for row in table.table.select(table.by).rows()]
        place = {key: number for number, key in enumerate(keys)}
        chains = [[by, *(c for c in frame.columns if c.startswith(by + "_"))] for by in table.by]
        amount = frame["x"].to_numpy() if table.measured is not None else np.ones(len(frame))
        rows = [[place[key] for key in product(*([*(row[c] for c in chain), TOTAL] for chain in chains))]
                for row in frame.iter_rows(named=True)]  # fmt: skip
        self.count, self.value, self.largest = np.zeros(len(keys), int), np.zeros(len(keys)), np.zeros(len(keys))
        for cells, one in zip(rows, amount.tolist(), strict=True):
            unique = list(set(cells))
            self.count[unique] += 1
            self.value[unique] += one
            self.largest[unique] = np.maximum(self.largest[unique], one)
        inner = sorted({row[0] for row in rows})
        spot = {cell: number for number, cell in enumerate(inner)}
        pairs = {(cell, spot[row[0]]) for row in rows for cell in row}
        data = np.array(sorted(pairs)).T
        self.inside = sparse.csr_array((np.ones(data.shape[1]), (data[0], data[1])), shape=(len(keys), len(inner)))
        self.inner = np.array(inner)
        level = rule.levels(table)
        self.up, self.down = level["upper"].to_numpy(), np.minimum(level["lower"].to_numpy(), self.value)
        sensitive = np.flatnonzero(rule.flag(table).to_numpy())
        draw = np.random.default_rng(1)
        self.asked = sensitive if len(sensitive) <= checked else np.sort(draw.choice(sensitive, checked, replace=False))

    def short(self, hidden: NDArray[np.bool_], also: NDArray[np.int64] | None = None) -> tuple[int, int]:
        """Sensitive cells that keep less than their levels against an outsider, and against a contributor.

        Of the sample, and of those that somebody suspects to be short (`also`).
        """
        self.matrix = self.inside[np.flatnonzero(~hidden & (self.count > 0))]
        asked = self.asked if also is None else np.union1d(self.asked, also)
        answers = [self._cell(int(cell)) for cell in asked]
        return sum(a for a, _ in answers), sum(b for _, b in answers)

    def _cell(self, cell: int) -> tuple[bool, bool]:
        outsider = insider = False
        for sign, level in ((1, self.up[cell]), (-1, self.down[cell])):
            if level <= 0:
                continue
            far, change = self._move(cell, sign, level, None)
            if far < level * (1 - TOLERANCE):
                outsider = insider = True
                continue
            insider = insider or self._people(cell, sign, level, change)
        return outsider, insider

    def _people(self, cell: int, sign: int, level: float, change: NDArray[np.float64]) -> bool:
        """Whether somebody in an inner cell that every move touches prevents the level."""
        waiting = self._touched(change)
        for _ in range(MAX_PEOPLE):
            waiting = {one for one in waiting if not self._own(cell, one)}
            if not waiting:
                return False
            one = min(waiting)
            own = self.largest[self.inner[one]] if self.inside[[cell], [one]][0] else 0.0
            asked = level if sign > 0 else min(level, self.value[cell] - own)
            if asked <= TOLERANCE * level:
                waiting -= {one}
                continue
            far, change = self._move(cell, sign, asked, one)
            if far < asked * (1 - TOLERANCE):
                return True
            waiting = (waiting & self._touched(change)) - {one} if asked >= level else waiting - {one}
        return False

    def _own(self, cell: int, one: int) -> bool:
        """Whether the cell asked about is this inner cell: levels of the rule count with those inside."""
        parts = self.inside.indices[self.inside.indptr[cell] : self.inside.indptr[cell + 1]]
        return len(parts) == 1 and int(parts[0]) == one

    def _touched(self, change: NDArray[np.float64]) -> set[int]:
        """Inner cells whose contributor could rule the move out: alone there, or one with more than is left."""
        value, own, alone = self.value[self.inner], self.largest[self.inner], self.count[self.inner] == 1
        slack = 1e-7 * np.maximum(1.0, value)
        ruled = np.where(alone, np.abs(change) > slack, value + change < own - slack)
        return set(np.flatnonzero(ruled).tolist())

    def _move(self, cell: int, sign: int, level: float, knower: int | None) -> tuple[float, NDArray[np.float64]]:
        """How far a cell gets, up to its level, and the change of every inner cell."""
        value = self.value[self.inner]
        bounds: Any = np.stack([-value, np.full(len(value), np.inf)], axis=1)
        if knower is not None:
            one = int(self.inner[knower])
            if self.count[one] == 1:
                bounds[knower] = 0.0
            else:
                bounds[knower, 0] = -(self.value[one] - self.largest[one])
        goal = -sign * self.inside[[cell]].toarray().ravel()
        aim, nothing = sparse.csr_array(-goal[None, :]), np.zeros(self.matrix.shape[0])
        answer = linprog(goal, A_eq=self.matrix, b_eq=nothing, A_ub=aim, b_ub=[level], bounds=bounds, method="highs")
        if answer.status != 0:
            raise AssertionError(f"SciPy stopped: {answer.message}")
        return float(-answer.fun), answer.x
