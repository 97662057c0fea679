"""What a table publishes of each cell in place of a sum: a mean, ratio, index, share, standard deviation or percentile.

All but percentiles are functions of additive tables, their components: whoever has the statistic and all components but
one has that one. Counts are taken to be known to everybody.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from equipoise.data.tables.table import Table
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import ParameterError, hint

KINDS = {
    "mean": "Mean",
    "ratio": "Ratio",
    "index": "Index",
    "share": "Share",
    "sd": "StandardDeviation",
    "median": "Percentile",
    "percentile": "Percentile",
}
FORMS = "mean, ratio:COLUMN, index:COLUMN, share, share:COLUMN, sd, median or percentile:90"


class Statistic(ABC):
    """What is published of each cell in place of its sum."""

    needs_value = True

    @property
    def denominator(self) -> str | None:
        """The column of the second component, where there is one."""
        return None

    @abstractmethod
    def words(self, value: str) -> str:
        """What the statistic of a value is called."""

    def needed(self, table: Table) -> Integers:
        """For each cell another that must be published for its statistic to be: itself, or the margin it is part of."""
        return np.arange(len(table))


class StatisticOfSums(Statistic):
    """A function of the components of a table: sums of columns, in their order, the value first."""

    @abstractmethod
    def of(self, tables: Sequence[Table]) -> Floats:
        """The statistic of each cell; not a number where its denominator is 0."""


@dataclass(frozen=True)
class Mean(StatisticOfSums):
    """The sum of the value over the sum of weights, or over the number of records."""

    def of(self, tables: Sequence[Table]) -> Floats:
        return over(tables[0].numbers("value"), tables[0].total)

    def words(self, value: str) -> str:
        return f"mean of {value}"


@dataclass(frozen=True)
class Ratio(StatisticOfSums):
    """The sum of the value over the sum of another `column`."""

    column: str

    @property
    def denominator(self) -> str | None:
        return self.column

    def of(self, tables: Sequence[Table]) -> Floats:
        return over(tables[0].numbers("value"), tables[1].numbers("value"))

    def words(self, value: str) -> str:
        return f"ratio of {value} to {self.column}"


@dataclass(frozen=True)
class Index(Ratio):
    """100 times the sum of the value over that of the base period, which another `column` has."""

    def of(self, tables: Sequence[Table]) -> Floats:
        return 100.0 * super().of(tables)

    def words(self, value: str) -> str:
        return f"index of {value}, {self.column} = 100"


@dataclass(frozen=True)
class Share(StatisticOfSums):
    """A cell over its total along one `column`, so that shares add up to 1 along it; or over the whole table."""

    column: str | None = None
    needs_value = False

    def of(self, tables: Sequence[Table]) -> Floats:
        value = tables[0].numbers("value")
        return over(value, value[self.needed(tables[0])])

    def needed(self, table: Table) -> Integers:
        keys, strides = table.packed
        chosen = range(len(table.axes)) if self.column is None else [table.place(self.column)]
        for place in chosen:
            keys = keys + (table.axes[place].total - table.nodes[place]) * strides[place]
        order = np.argsort(table.packed[0], kind="stable")
        return order[np.searchsorted(table.packed[0][order], keys)]

    def words(self, value: str) -> str:
        return f"share of {value} in {'everything' if self.column is None else f'the total over {self.column}'}"


@dataclass(frozen=True)
class StandardDeviation(StatisticOfSums):
    """The root of (sum of squares - sum^2 / n) / (n - 1); a weight counts as so many records.

    Published with at least `freedom` degrees of freedom, one less than there are contributors.
    """

    freedom: int = 10

    def __post_init__(self) -> None:
        if self.freedom < 1:
            raise ParameterError(f"A standard deviation needs at least 1 degree of freedom, not {self.freedom}.")

    def of(self, tables: Sequence[Table]) -> Floats:
        count = tables[0].total
        around = squares_around_mean(tables)
        return np.sqrt(over(around, np.where(count > 1, count - 1, 0.0)))

    def words(self, value: str) -> str:
        return f"standard deviation of {value}"


@dataclass(frozen=True)
class Percentile(Statistic):
    """The value below which the share `percent` lies: the mean of the `central` values about it, so it is nobody's own.

    Published where the cell has `contributors`, and as many as `sides` have at least, and at most, the value.
    """

    percent: float = 50.0
    contributors: int = 10
    sides: int = 5
    central: int = 5

    def __post_init__(self) -> None:
        if not 0 <= self.percent <= 100:
            raise ParameterError(f"A percentile is from 0 to 100, not {self.percent!r}.")
        if min(self.contributors, self.sides, self.central) < 2:
            raise ParameterError("A percentile needs at least 2 contributors, on either side and about it.")

    def words(self, value: str) -> str:
        return f"median of {value}" if self.percent == 50 else f"percentile {self.percent:g} of {value}"


def statistic_of(text: str | Statistic | None) -> Statistic | None:
    """A statistic from its text: mean, ratio:COLUMN, percentile:90,20.

    >>> statistic_of("ratio:employees"), statistic_of("median:20")
    (Ratio(column='employees'), Percentile(percent=50.0, contributors=20, sides=5, central=5))
    """
    if text is None or isinstance(text, Statistic):
        return text
    name, _, rest = str(text).partition(":")
    values = [part.strip() for part in rest.split(",") if part.strip()]
    if name not in KINDS:
        raise ParameterError(f"There is no statistic {name!r}: it is {FORMS}.{hint(name, list(KINDS))}")
    kind: Any = globals()[KINDS[name]]
    values = ["50", *values] if name == "median" else values
    if name in ("ratio", "index") and not values:
        raise ParameterError(f"{name} needs the column to divide by: {name}:COLUMN.")
    if len(values) > len(fields(kind)):
        raise ParameterError(f"{name} takes at most {len(fields(kind)) - (name == 'median')} parameters.")
    return kind(*(_read(part, str(field.type), name) for part, field in zip(values, fields(kind), strict=False)))


def _read(text: str, kind: str, name: str) -> Any:
    number = {"float": float, "int": int}.get(kind.removeprefix("<class '").removesuffix("'>"))
    try:
        return text if number is None else number(text)
    except ValueError:
        raise ParameterError(f"{name} takes numbers, not {text!r}: it is {FORMS}.") from None


def squares_around_mean(tables: Sequence[Table]) -> Floats:
    """Sum of squared distances from the mean: never below 0, and 0 where rounding leaves less than it can tell."""
    value, squares, count = tables[0].numbers("value"), tables[1].numbers("value"), tables[0].total
    around = squares - np.nan_to_num(over(value**2, count))
    return np.where(around > 1e-12 * squares, around, 0.0)


def over(numerator: Floats, denominator: Floats) -> Floats:
    """A quotient, not a number where the denominator is 0."""
    return np.divide(numerator, denominator, out=np.full(len(numerator), np.nan), where=denominator != 0)
