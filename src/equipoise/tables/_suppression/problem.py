"""Suppression problem: the table, the attacker's prior bounds, and the protection levels of each primary cell.

An attacker knows the relations, the published cells and limits low <= x <= high for the rest. He sees every table
a + y with y = 0 on published cells, matrix @ y = 0 and -down <= y <= up as possible. A primary is protected upwards if
some such y has y_k >= its upper level, downwards if some has y_k <= -(its lower level): a `Demand` each.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from equipoise.data.tables.additivity import Additive
from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.ground.errors import DataError, InfeasibleError, ParameterError

SHORTFALL = 1e-9
"""Share of its level by which a move may fall short: rounding, not disclosure."""
LEVEL_TOLERANCE = 1e-6
"""The same where contributors are asked about, whose moves are taken from several searches."""
MOVE_TOLERANCE = 1e-7
"""Share of the level below which a move of another cell is the solver's rounding."""


@dataclass(frozen=True, eq=False, repr=False)
class SuppressionTable:
    """Values, and the room that the attacker's limits leave each cell: `up` = high - value, `down` = value - low."""

    additive: Additive
    values: Floats
    up: Floats
    down: Floats

    @classmethod
    def of(cls, additive: Additive, values: Any, low: Any = 0.0, high: Any = np.inf) -> "SuppressionTable":
        """Refuses limits that the true table breaks, naming the cell.

        >>> table = SuppressionTable.of(Additive.of([((0, 1, 2), (-1, 1, 1))], cells=3), [5, 2, 3])
        >>> table.down.tolist()
        [5.0, 2.0, 3.0]
        """
        numbers = np.asarray(values, dtype=np.float64)
        if numbers.shape != (additive.cells,):
            raise DataError(f"There are {numbers.size:,} values for {additive.cells:,} cells.")
        lower, upper = filled(low, additive.cells, "low"), filled(high, additive.cells, "high")
        broken = np.flatnonzero(~((lower <= numbers) & (numbers <= upper)))
        if len(broken):
            raise DataError(f"Cell {int(broken[0])} is not within the limits the attacker is said to know.")
        return cls(additive, numbers, upper - numbers, numbers - lower)

    def scaled(self, unit: float) -> "SuppressionTable":
        """The same table in other units."""
        return SuppressionTable(self.additive, self.values / unit, self.up / unit, self.down / unit)

    @property
    def cells(self) -> int:
        return len(self.values)

    @cached_property
    def movable(self) -> Booleans:
        """Cells that could have another value at all; a zero known to be zero could not."""
        return (self.up > 0) | (self.down > 0)


@dataclass(frozen=True, eq=False, repr=False)
class Demands:
    """Moves that must be possible: cell `cell[t]` by `level[t]` upwards (`sign` 1) or downwards (-1).

    `knower` numbers, for each cell, the contributor who alone is in it (-1: several, or nobody): he knows all his
    cells, and a demand must be met with those cells still, unless they are its own.
    """

    cell: Integers
    sign: Integers
    level: Floats
    knower: Integers

    @classmethod
    def of(
        cls, table: SuppressionTable, primary: Booleans, lpl: Any, upl: Any, spl: Any = 0.0, singletons: Any = None, *,
        strict: bool = True,
    ) -> "Demands":  # fmt: skip
        """One demand for each primary and direction with a positive level, the largest first.

        A sliding level above the sum of the other two raises the upper level as far as the attacker's limit allows,
        then the lower one. `strict` raises `InfeasibleError` for a primary whose own limits are nearer than its level.
        """
        cells = np.flatnonzero(primary)
        lower, upper, slide = (
            _levels(x, table.cells, name)[cells] for x, name in ((lpl, "lpl"), (upl, "upl"), (spl, "spl"))
        )
        lacking = np.maximum(slide - lower - upper, 0.0)
        raised = np.minimum(lacking, np.maximum(table.up[cells] - upper, 0.0))
        upper, lower = upper + raised, lower + (lacking - raised)
        cell = np.concatenate([cells, cells])
        level, room = np.concatenate([upper, lower]), np.concatenate([table.up[cells], table.down[cells]])
        if strict:
            _refuse_too_near(cell, level, room)
        level = np.where(level <= room * (1 + SHORTFALL), np.minimum(level, room), level)
        sign = np.repeat(np.array([1, -1]), len(cells))
        order = np.lexsort((-sign, cell, -level))
        order = order[level[order] > 0]
        return cls(cell[order], sign[order], level[order], _knowers(singletons, table.cells))

    def scaled(self, unit: float) -> "Demands":
        """The same demands in other units."""
        return Demands(self.cell, self.sign, self.level / unit, self.knower)

    def __len__(self) -> int:
        return len(self.cell)

    @cached_property
    def of_cell(self) -> Integers:
        """Where a cell's demands are: a row for each cell, upwards and downwards, -1 where there is none."""
        places = np.full((len(self.knower), 2), -1, dtype=np.int64)
        places[self.cell, (self.sign < 0).astype(np.int64)] = np.arange(len(self))
        return places

    @cached_property
    def cells_of(self) -> dict[int, Integers]:
        """The cells of each contributor who knows any."""
        cells = np.flatnonzero(self.knower >= 0)
        order = cells[np.argsort(self.knower[cells], kind="stable")]
        groups, starts = np.unique(self.knower[order], return_index=True)
        return dict(zip(groups.tolist(), np.split(order, starts[1:]), strict=True))


def typical(numbers: Floats) -> float:
    """The power of two nearest to the median of the positive numbers: a unit that changes no digit of them.

    >>> typical(np.array([0.0, 3.0, 5.0, 9.0]))
    4.0
    """
    positive = numbers[(numbers > 0) & np.isfinite(numbers)]
    return float(2.0 ** np.round(np.log2(np.median(positive)))) if len(positive) else 1.0


def filled(values: Any, cells: int, name: str) -> Floats:
    """A number for each cell."""
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim and numbers.shape != (cells,):
        raise ParameterError(f"{name!r} has {numbers.size:,} entries for {cells:,} cells.")
    if np.isnan(numbers).any():
        raise ParameterError(f"{name!r} has entries that are no numbers.")
    return np.array(np.broadcast_to(numbers, cells))


def _levels(values: Any, cells: int, name: str) -> Floats:
    levels = filled(values, cells, name)
    if not ((levels >= 0) & np.isfinite(levels)).all():
        raise ParameterError(f"{name!r} must hold finite levels of at least 0.")
    return levels


def marked(marks: Any, cells: int, name: str) -> Booleans:
    """A flag for each cell; None: none."""
    flags = np.zeros(cells, dtype=np.bool_) if marks is None else np.asarray(marks)
    if flags.shape != (cells,) or flags.dtype != np.bool_:
        raise ParameterError(f"{name!r} needs one true or false for each of {cells:,} cells.")
    return flags


def _knowers(singletons: Any, cells: int) -> Integers:
    if singletons is None:
        return np.full(cells, -1, dtype=np.int64)
    numbers = np.asarray(singletons)
    if numbers.shape != (cells,):
        raise ParameterError(f"'singletons' has {numbers.size:,} entries for {cells:,} cells.")
    if numbers.dtype == np.bool_:
        return np.where(numbers, np.arange(cells), -1)
    return numbers.astype(np.int64)


def _refuse_too_near(cells: Integers, level: Floats, room: Floats) -> None:
    near = np.flatnonzero(level > room * (1 + SHORTFALL))
    if len(near):
        raise unprotectable(int(cells[near[0]]), "the attacker's own limits for it are nearer than its level")


def unprotectable(cell: int, why: str) -> InfeasibleError:
    """The error of a primary that no suppression protects; `cell` says which."""
    error = InfeasibleError(f"Cell {cell} cannot be protected: {why}.")
    error.cell = cell
    return error
