"""Partial order of coarsenings: which categories of a column the recipes of a family keep apart."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod

import numpy as np
import polars as pl
from numpy.typing import NDArray

from equipoise.data.cells import Cells, count
from equipoise.data.records import Records
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import EquipoiseError
from equipoise.methods.method import Coarsening, Mask

Point = tuple[int, ...]
Slot = tuple[tuple[int, ...], Callable[..., Mask | None]]
"""Axes of a family, and the mask that places on them make."""
Made = tuple[tuple[int, ...], list[Mask | None]]
"""The same, all made."""
MAX_SLOT_MASKS = 2000
"""Masks of a slot, at most."""
MAX_PLACE_VALUES = 10_000_000
"""Places times values of a column, at most."""
PLACE = "__eq_place"
QUADRATURE_NODES = 15
"""Points of a quadrature."""


@dataclass(frozen=True, eq=False)
class Partitions:
    """The classes that a column's values fall into, for every combination of places on the axes that coarsen it.

    Of one column alone, so nothing that a trial would show. `bits` is the entropy H of the classes' shares p,
    `spread` the variance of - log2 p over records.
    """

    column: str
    axes: tuple[int, ...]
    sizes: Point
    codes: Integers = field(repr=False)
    first: Integers = field(repr=False)
    """For each place and value, the first value of its class."""
    bits: Floats
    spread: Floats
    memo: dict[tuple[int, bool], NDArray[np.bool_]] = field(default_factory=dict, init=False, repr=False)

    def at(self, points: Sequence[Point]) -> Integers:
        """The combination each point of the family stands for."""
        places = np.array(points, dtype=np.int64).reshape(len(points), -1)
        return np.ravel_multi_index(tuple(places[:, list(self.axes)].T), self.sizes)

    def finer(self, points: Sequence[Point], others: Sequence[Point]) -> NDArray[np.bool_]:
        """Whether each point keeps apart all that each of the others keeps apart. O(others x places x values) once."""
        rows = self.at(points)
        return np.stack([self._row(int(other), True)[rows] for other in self.at(others)], axis=1)

    def coarser(self, points: Sequence[Point], others: Sequence[Point]) -> NDArray[np.bool_]:
        """Whether each of the others keeps apart all that each point keeps apart."""
        rows = self.at(points)
        return np.stack([self._row(int(other), False)[rows] for other in self.at(others)], axis=1)

    def _row(self, other: int, finer: bool) -> NDArray[np.bool_]:
        """All combinations against one: a class of the finer lies in one class of the coarser."""
        if (other, finer) not in self.memo:
            mine = self.codes[other]
            same = mine[self.first] == mine if finer else self.codes[:, self.first[other]] == self.codes
            self.memo[other, finer] = same.all(axis=1)
        return self.memo[other, finer]


def partitions(slots: Sequence[Slot], sizes: Point, records: Records) -> tuple[Partitions, ...]:
    """The partitions of every column that some slots coarsen, as far as these are not too many."""
    columns: dict[str, list[Made]] = {}
    for axes, make in slots:
        masks = _coarsening(make, [sizes[axis] for axis in axes])
        names = {str(getattr(mask, "column", "")) for mask in masks if mask is not None}
        if len(names) == 1 and "" not in names:
            columns.setdefault(names.pop(), []).append((axes, masks))
    of_columns = [_of_column(column, steps, sizes, records) for column, steps in columns.items()]
    return tuple(one for one in of_columns if one is not None and one.axes)


def _coarsening(make: Callable[..., Mask | None], sizes: Sequence[int]) -> list[Mask | None]:
    """The masks of a slot; none where it does more than to coarsen, or has too many."""
    masks: list[Mask | None] = []
    try:
        for at in product(*map(range, sizes)) if prod(sizes) <= MAX_SLOT_MASKS else ():
            masks.append(make(*at))
            if not isinstance(masks[-1], Coarsening | None):
                return []
    except EquipoiseError:
        return []
    return masks


@dataclass(frozen=True)
class Alone:
    """The share of records that would be alone in their cell if columns were independent: a forecast, no trial.

    A record whose keys have the probability p is alone with probability exp(-n p); - log2 p is taken as normal, with
    the sums of `bits` and `spread` over the keys as mean and variance.
    """

    records: int
    bits: float = 0.0
    spread: float = 0.0
    """Of the keys that are not coarsened."""

    @classmethod
    def of(cls, records: Records, coarsened: Sequence[str]) -> "Alone":
        keys = [key for key in records.roles.keys if key not in coarsened]
        information = [_information(np.arange(len(n)), n) for key in keys for n in [count(records, (key,)).counts(key)]]
        return cls(records.height(), sum(bits for bits, _ in information), sum(spread for _, spread in information))

    def at(self, columns: Sequence[Partitions], points: Sequence[Point]) -> Floats:
        places = [column.at(points) for column in columns]
        bits = self.bits + np.sum([c.bits[at] for c, at in zip(columns, places, strict=True)], axis=0)
        spread = self.spread + np.sum([c.spread[at] for c, at in zip(columns, places, strict=True)], axis=0)
        nodes, weights = np.polynomial.hermite_e.hermegauss(QUADRATURE_NODES)
        expected = self.records * 2.0 ** -(bits[:, None] + np.sqrt(spread)[:, None] * nodes)
        return np.exp(-np.minimum(expected, 700.0)) @ (weights / weights.sum())


def _of_column(column: str, steps: Sequence[Made], sizes: Point, records: Records) -> Partitions | None:
    axes = tuple(axis for mine, _ in steps for axis in mine)
    cells = count(records, (column,))
    values, n = cells.values(column), cells.counts(column)
    if prod(sizes[axis] for axis in axes) * len(values) > MAX_PLACE_VALUES:
        return None
    table = pl.DataFrame({column: values, PLACE: range(len(values)), "n": n})
    tables = [Cells.of(table, (column, PLACE), cells.hierarchies)]
    try:
        for _, masks in steps:
            tables = [m.roll_up(t) if isinstance(m, Coarsening) else t for t in tables for m in masks]
    except EquipoiseError:
        return None
    codes = np.stack([_codes(one) for one in tables])
    information = [_information(one, n) for one in codes]
    first = np.stack([np.unique(one, return_index=True)[1][one] for one in codes])
    bits, spread = (np.array(part) for part in zip(*information, strict=True))
    return Partitions(column, axes, tuple(sizes[axis] for axis in axes), codes, first, bits, spread)


def _codes(cells: Cells) -> Integers:
    """The class of each value, numbered without gaps."""
    labels, places = cells.cube.codes
    return np.unique(np.asarray(labels, np.int64)[np.argsort(places)], return_inverse=True)[1]


def _information(classes: Integers, n: Integers) -> tuple[float, float]:
    """The mean and the variance over records of - log2 of the share of their class."""
    shares = np.bincount(classes, weights=n) / n.sum()
    shares = shares[shares > 0]
    bits = -np.log2(shares)
    mean = float((shares * bits).sum())
    return mean, float((shares * (bits - mean) ** 2).sum())
