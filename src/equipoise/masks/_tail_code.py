"""Top and bottom coding but for the side: one value for a whole tail of a numeric column.

What a mean or a median says of the people beyond the threshold is held to the rules of a table cell. At least
`MIN_UNITS` units must be behind it, and the p% rule must hold for the distances from the threshold, which everybody
knows: with y1 >= y2 >= ... the distances of the units and Y their sum, it is published iff Y - y1 - y2 >= p y1, so
that the second largest cannot estimate the largest to within the share p. Units are records, and where the roles name
households, people or ids, those too. Else the threshold itself stands for the tail, and the law says so.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, floor, isfinite
from numbers import Real
from typing import Any, ClassVar, Literal

import narwhals as nw
import numpy as np
import polars as pl

from equipoise.data import engines
from equipoise.data.cells import Cells, count
from equipoise.data.labels import Tail
from equipoise.data.recode_values import Data, recoded
from equipoise.data.records import Law, Records
from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.ground.errors import DataError, ParameterError
from equipoise.ground.packed_keys import code
from equipoise.ground.randomness import Draws
from equipoise.methods.method import name_of
from equipoise.methods.parameters import check_fields
from equipoise.rules import PPercent

ReplaceBy = Literal["mean", "median", "threshold"]
WIDEST = 1 << 100
"""Beyond every integer a column may hold."""
MIN_UNITS = 3
"""Units that must be behind a published mean or median."""
DOMINANCE_RULE = PPercent(0.1)
"""What must not hold for them: the house's p% rule at its default."""
MAX_KNOWN_RANKS, MIN_MIXED, MAX_SHARED = 10, 10, 1000
"""Ranks by which the largest are known; others near a value that hide its own; values that share a mean at most."""
UNIT_ROLES = ("household", "person", "id")
"""Roles whose columns say which records are one unit."""


@dataclass(frozen=True, slots=True)
class TailCode:
    """Replace the values of `column` beyond `at`; `above` says on which side."""

    above: ClassVar[bool]

    column: str
    at: float
    replace_by: ReplaceBy = "mean"

    def __post_init__(self) -> None:
        check_fields(self)
        if not isinstance(self.at, Real) or not isfinite(self.at):
            raise ParameterError("at must be a finite number.")

    def apply(self, data: Data, draws: Draws) -> Data:
        mask = self if self._publishes(data) else replace(self, replace_by="threshold")
        law = mask.law() if mask is self else self._withheld_law(mask.law())
        return recoded(data, self.column, mask._change, law, keep_hierarchy=True, tail=mask._tail())

    def roll_up(self, cells: Cells) -> Cells:
        return recoded(cells, self.column, self._change, self.law(), keep_hierarchy=True)

    def _publishes(self, data: Records | Cells) -> bool:
        """Whether the mean or the median may stand for the tail, for every kind of unit that the roles name."""
        if self.replace_by == "threshold" or (isinstance(data, Cells) and self.column not in data.by):
            return True
        cells = data if isinstance(data, Cells) else count(data, (self.column,))
        tail = TailValues.of(cells.values(self.column), cells.counts(self.column), self.at, self.above)
        if not tail.records:
            return True
        if isinstance(data, Cells) or not tail.publishable(self.replace_by, self.at):
            return tail.publishable(self.replace_by, self.at)
        units = [unit for role in UNIT_ROLES if (unit := getattr(data.roles, role, None))]
        return all(self._publishes_units(data, unit) for unit in units)

    def _publishes_units(self, data: Records, unit: str) -> bool:
        """The same for the distances added up over the records of each unit."""
        column = nw.col(self.column)
        frame = data.frame.filter((column > self.at) if self.above else (column < self.at))
        table = engines.collect(frame.select(*dict.fromkeys((self.column, unit))))
        table = table.filter(_beyond(table[self.column], self.at, self.above)).sort(self.column, unit)
        rows = TailValues(table[self.column].cast(pl.Float64).to_numpy(), np.ones(table.height, dtype=np.int64))
        first, size = rows.window(self.replace_by)
        ids = code(table[unit][first : first + size])
        distances = np.abs(rows.x[first : first + size] - self.at)
        sums = np.asarray(np.bincount(ids.codes, distances, ids.size), dtype=np.float64)
        return _is_publishable(sums, np.ones(len(sums), dtype=np.int64))

    def _withheld_law(self, law: Law) -> Law:
        """The law of a tail whose statistic would show people: the threshold stands for it."""
        reason = f"no {self.replace_by} is published, for it would be that of few people or of one above all"
        return replace(law, words=f"{law.words} ({reason})", parameters={**law.parameters, "withheld": self.replace_by})

    def words(self) -> str:
        side = "above" if self.above else "below"
        by = "the threshold" if self.replace_by == "threshold" else f"their {self.replace_by}"
        return f"{self.column} {side} {self.at:,.10g} replaced by {by}"

    def _tail(self) -> Tail:
        """What the value that stands for the tail is called."""
        side = "above" if self.above else "below"
        words = f"{self.replace_by} of all values {side} {self.at:,.10g}"
        return Tail(f"{self.at:,.10g} and {side}" if self.replace_by == "threshold" else words, self.at, self.above)

    def law(self) -> Law:
        parameters = {"column": self.column, "at": self.at, "replace_by": self.replace_by}
        return Law(name_of(type(self)), (self.column,), self.words(), parameters, coarsens=True)

    def _change(self, values: pl.Series, n: Integers) -> pl.Series:
        return replace_tail(values, n, at=self.at, above=self.above, replace_by=self.replace_by)


def replace_tail(values: pl.Series, n: Integers, *, at: float, above: bool, replace_by: ReplaceBy) -> pl.Series:
    """The values with those beyond `at` replaced by one number.

    `n` is the number of records with each value: the mean and the median are of records, so the column's sum (by the
    mean) is kept; the median is the mean of the middle records, at least `MIN_UNITS` of them. Where either would show
    few people or one above all, the threshold stands for them. Integers stay integers where the replacement is whole.

    >>> replace_tail(pl.Series([1, 5, 9]), np.array([4, 1, 3]), at=4, above=True, replace_by="mean").to_list()
    [1, 8, 8]
    """
    beyond = _beyond(values, at, above)
    if not beyond.any():
        return values
    tail = TailValues.of(values, n, at, above)
    new = tail.centre(replace_by) if replace_by != "threshold" and tail.publishable(replace_by, at) else at
    kind = _kind(values.dtype, new)
    replaced = pl.when(beyond).then(pl.lit(new).cast(kind)).otherwise(values.cast(kind))
    return pl.select(replaced.alias(values.name)).to_series()


def _beyond(values: pl.Series, at: float, above: bool) -> pl.Series:
    """Strictly beyond the threshold, which may lie outside the column's type; missing never is."""
    if not values.dtype.is_numeric():
        raise DataError(f"Column {values.name!r} is {values.dtype}, not numeric: it has no top or bottom.")
    if values.dtype.is_integer():
        edge = max(-WIDEST, min(WIDEST, floor(at) if above else ceil(at)))
        numbers = values.cast(pl.Int128)
        compared = pl.select(numbers > pl.lit(edge, pl.Int128) if above else numbers < pl.lit(edge, pl.Int128))
        return compared.to_series().fill_null(False)
    beyond = ((values > at) if above else (values < at)).fill_null(False)
    return beyond & values.is_not_nan() if values.dtype.is_float() else beyond


def _kind(dtype: pl.DataType, new: float) -> pl.DataType:
    """The column's own type where the new value fits it: whole numbers stay whole."""
    if not dtype.is_integer():
        return dtype if dtype.is_float() else pl.Float64()
    if not float(new).is_integer():
        return pl.Float64()
    low, high = integer_ends(dtype)
    if low <= new <= high:
        return dtype
    return pl.Int64() if abs(new) < 1 << 53 else pl.Float64()


def integer_ends(dtype: Any) -> tuple[int, int]:
    """The least and the greatest number of an integer type.

    >>> integer_ends(pl.UInt8())
    (0, 255)
    """
    low, high = pl.select(low=dtype.min(), high=dtype.max()).row(0)
    return int(low), int(high)


@dataclass(frozen=True, eq=False, repr=False)
class TailValues:
    """The values beyond the threshold in ascending order, and the number of records with each."""

    x: Floats
    n: Integers

    @classmethod
    def of(cls, values: pl.Series, n: Integers, at: float, above: bool) -> "TailValues":
        beyond = _beyond(values, at, above)
        x = values.filter(beyond).cast(pl.Float64).to_numpy()
        order = np.argsort(x)
        return cls(x[order], n[beyond.to_numpy()][order])

    @property
    def records(self) -> int:
        return int(self.n.sum())

    def window(self, replace_by: ReplaceBy) -> tuple[int, int]:
        """First record and number of the records behind the statistic: all, or for the median three or four."""
        size = self.records if replace_by == "mean" else min(self.records, MIN_UNITS + (self.records - MIN_UNITS) % 2)
        return (self.records - size) // 2, size

    def behind(self, replace_by: ReplaceBy) -> "TailValues":
        """The values of those records."""
        if replace_by == "mean":
            return self
        first, size = self.window(replace_by)
        places = np.searchsorted(np.cumsum(self.n), np.arange(first, first + size), side="right")
        return TailValues(self.x[places], np.ones(size, dtype=np.int64))

    def publishable(self, replace_by: ReplaceBy, at: float) -> bool:
        values = self.behind(replace_by)
        return _is_publishable(np.abs(values.x - at), values.n)

    def centre(self, replace_by: ReplaceBy) -> float:
        values = self.behind(replace_by)
        return float(np.average(values.x, weights=values.n))


def _is_publishable(distances: Floats, n: Integers) -> bool:
    """Whether enough units are behind a statistic, and none of them dominates it; `n` units have each distance."""
    if n.sum() < MIN_UNITS or not np.isfinite(distances).all():
        return False
    largest = np.argsort(-distances)[:2]
    top1, top2 = np.repeat(distances[largest], np.minimum(n[largest], 2))[:2]
    cell = {"cell": ["tail"], "n": [int(n.sum())], "value": [float(distances @ n)], "top1": [top1], "top2": [top2]}
    return not DOMINANCE_RULE.flag(Cells.of(pl.DataFrame(cell)))[0]


def shared_tails(x: Floats, units: Integers | None = None, reach: Floats | float = np.inf) -> Floats:
    """Ascending values of which those whose owner is known by rank stand as means, in groups as small as allowed.

    These are those of the `MAX_KNOWN_RANKS` largest and smallest of the `units` (records, where none are given), and
    all with fewer than `MIN_MIXED` others within `reach`, the size of the noise, on either side: it leaves their ranks
    about. A group has values of `MIN_UNITS` units, and the p% rule must hold for their distances from the next value
    inwards; where one dominates far down, that next value stands for as many. Values that so many share stay.

    >>> shared_tails(np.array([0.0, 0, 0, 1, 1, 1, 4, 9, 11, 100])).tolist()
    [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 31.0, 31.0, 31.0, 31.0]
    """
    units = np.arange(len(x)) if units is None else units
    many = ceil(len(x) / max(1, len(np.unique(units))))
    near = np.searchsorted(x, x + reach, side="right") - np.searchsorted(x, x - reach) - many
    extreme, exposed = np.arange(len(x)) < many * MAX_KNOWN_RANKS, near < many * MIN_MIXED
    top = _shared_top(x, units, extreme | exposed[::-1])
    return 0.0 - _shared_top(0.0 - top[::-1], units[::-1], extreme | exposed)[::-1]


def _shared_top(x: Floats, units: Integers, exposed: Booleans) -> Floats:
    """The upper half in groups, from the largest on; who is `exposed` by rank, from the top."""
    top, owners, places = x[::-1], units[::-1], np.flatnonzero(exposed[: max(len(x) // 2, 1)])
    shared, first = top.copy(), 0
    while (step := np.searchsorted(places, first)) < len(places):
        first = int(places[step])
        for last in (first + MAX_SHARED, len(top)):
            new = np.unique(owners[first:last], return_index=True)[1]
            if len(new) >= MIN_UNITS:
                break
        least = int(np.sort(new)[MIN_UNITS - 1]) + 1 if len(new) >= MIN_UNITS else len(top) - first
        size = next(_undominated(top[first:], owners[first:], least, max(least, len(top) // 2 - first)), 0)
        shared[first : first + (size or least)] = top[first : first + size].mean() if size else top[first + least]
        first += size or least
    return shared[::-1]


def _undominated(top: Floats, owners: Integers, least: int, most: int) -> Iterator[int]:
    """Sizes of a group for whose units the p% rule holds, in steps of a twentieth, or all that are left."""
    size = least
    while size <= min(most, MAX_SHARED + least) and size < len(top):
        codes = np.unique(owners[:size], return_inverse=True)[1]
        sums = np.sort(np.bincount(codes, top[:size] - top[size]))[::-1]
        if sums[2:].sum() >= DOMINANCE_RULE.p * sums[0]:
            yield size
        size += 1 + size // 20
    if least >= len(top):
        yield len(top)
