"""Swap values whose ranks are near."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl

from equipoise.data.records import Law, Records
from equipoise.data.row_draws import whole
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import DataError, RolesError, require_columns
from equipoise.ground.randomness import Draws
from equipoise.masks._swap_partners import compact, disjoint
from equipoise.methods.parameters import check_fields, share


@dataclass(frozen=True, slots=True)
class RankSwap:
    """Swap each value of a column with one whose rank is at most `window` x (number of values) away.

    `window` is a share of the ranks, above 0 and below 1. The known values of a column are sorted, equal ones in an
    order drawn by record; k = floor(window n). Every value that has no partner yet names one at random among those that
    have none and stand at most k places away; of all pairs named, those are made that come first, by a random order,
    at both their members; and so on until nobody is left within reach of another.

    Displacement: a pair is only ever named within k places and everybody is in one pair at most, so a released value
    held a place at most k from that of the value it replaces, always. Values left over are more than k places apart
    from one another, so fewer than 1/window + 1 are not swapped; swapping equal values changes nothing, and that many
    records show the truth. The column's values are those of the original, in another order: its distribution is kept
    exactly; columns are swapped independently, so correlations between columns weaken with the window. Numbers, dates
    and enumerations; missing values stay where they are. Cost: O(n log n), about log n rounds on what is left.

    Source: Moore (1996), *Controlled data-swapping techniques for masking public use microdata sets*, after Greenberg
    (1987); here vectorised, with the partner drawn on both sides.
    Does not guard against an intruder who knows the window and intersects the candidates of several columns (Nin,
    Herranz and Torra 2008), nor against values shared by most records.

    >>> RankSwap(["income"], 0.05)
    RankSwap(columns=('income',), window=0.05)
    """

    columns: tuple[str, ...]
    window: float

    def __post_init__(self) -> None:
        check_fields(self)
        share(self.window, "window, a share of the ranks,", open_=True)

    def apply(self, data: Records, draws: Draws) -> Records:
        schema, columns = data.schema(), self.columns or data.roles.numeric
        if not columns:
            raise RolesError("No columns were named, and no column has the role numeric.")
        require_columns(columns, schema)
        frame = whole(data, partial(_swapped, columns, self.window, draws))
        return data.with_frame(frame, self.law(columns))

    def law(self, columns: tuple[str, ...]) -> Law:
        parameters = {"columns": list(columns), "window": self.window}
        return Law("rank_swap", columns, self.words(), parameters, detail=self.window)

    def words(self) -> str:
        columns = ", ".join(self.columns) or "the numeric columns"
        return f"values of {columns} swapped with others within {self.window:.4g} of the ranks"


def _swapped(
    columns: tuple[str, ...], window: float, draws: Draws, table: pl.DataFrame, ids: pl.Series
) -> pl.DataFrame:
    keys = compact(ids, draws)
    return table.with_columns(_column(table[c], window, keys, draws.child(i)) for i, c in enumerate(columns))


def _column(column: pl.Series, window: float, keys: Integers, draws: Draws) -> pl.Series:
    """One column, its known values swapped."""
    kind = column.dtype
    if not (kind.is_numeric() or kind.is_temporal() or isinstance(kind, pl.Enum) or kind == pl.Null):
        raise DataError(f"Column {column.name!r} is {kind}: its values have no ranks.")
    present = (column.is_not_null() & column.is_not_nan() if kind.is_float() else column.is_not_null()).to_numpy()
    places = np.flatnonzero(present)
    reach = int(np.floor(window * len(places) * (1 + 1e-12)))
    if not len(places):
        return column
    if not reach:
        raise DataError(
            f"A window of {window:g} over the {len(places):,} values of {column.name!r} is less than one rank."
        )
    order = places[ranked(column.gather(places), keys[places], draws)]
    source = np.arange(len(column))
    source[order] = order[partners(keys[order], reach, draws)]
    return column.gather(source)


def ranked(values: pl.Series, keys: Integers, draws: Draws) -> Integers:
    """What sorts the values, equal ones in an order drawn by record."""
    table = pl.DataFrame({"value": values, "tie": draws.uniform(pl.Series(keys))})
    return table.select(pl.arg_sort_by("value", "tie")).to_series().to_numpy().astype(np.int64)


def partners(keys: Integers, reach: int, draws: Draws) -> Integers:
    """The partner of each place in the sorted order, at most `reach` away; itself where nobody was left."""
    partner, free, counter = np.arange(len(keys)), np.arange(len(keys)), 1
    while True:
        low = np.searchsorted(free, free - reach)
        choices = np.searchsorted(free, free + reach, side="right") - low - 1
        low, free, choices = _reindexed(low, free, choices)
        if not len(free):
            return partner
        free_keys, own = pl.Series(keys[free]), np.arange(len(free))
        partner_places = low + np.minimum((draws.uniform(free_keys, counter) * choices).astype(np.int64), choices - 1)
        partner_places += partner_places >= own
        pairs = disjoint(own, partner_places, draws.uniform(free_keys, counter + 1), len(free))
        one, two = free[own[pairs]], free[partner_places[pairs]]
        partner[one], partner[two] = two, one
        free, counter = free[partner[free] == free], counter + 2


def _reindexed(low: Integers, free: Integers, choices: Integers) -> tuple[Integers, Integers, Integers]:
    """Without those that have nobody within reach, whom nobody can name either."""
    able = choices > 0
    before = np.cumsum(~able)
    lower = low - np.r_[0, before][low]
    return lower[able], free[able], choices[able]
