"""Swap records that stand out in their area with records like them in another."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.numeric_columns import significant
from equipoise.data.records import Law, Records
from equipoise.data.row_draws import together
from equipoise.ground.arrays import Floats, Integers, runs
from equipoise.ground.errors import DataError, ParameterError, RolesError, require_columns
from equipoise.ground.packed_keys import code, group, group_coded
from equipoise.ground.randomness import Draws
from equipoise.masks._swap_partners import compact, disjoint
from equipoise.methods.method import Rule
from equipoise.methods.parameters import check_fields, share
from equipoise.methods.sensitive_values import chosen

NOWHERE = -1
"""The area of a record whose attribute is missing: it is neither candidate nor partner."""


@dataclass(frozen=True, slots=True)
class Swap:
    """Swap `protected` columns between records with equal `keys` in different areas, with probability `rate`.

    `attribute` is the area (the swapping attribute). A record is a candidate when nobody else in its area has its keys;
    its potential partners are the K records with the same keys in other areas. Candidates are paired, each with a
    partner drawn at random among those still free, so that nobody is in two pairs, and each pair exchanges the
    `protected` columns with probability `rate`, together: M = W X, W a product of transpositions, each applied with
    probability `rate`. An empty `protected` exchanges the attribute itself, which is exchanging all other columns.
    A candidate whose partners are all taken stays; the law says how many have none.

    Kept exactly: every table of the keys and the attribute, every table of the keys and the protected columns, and so
    each margin. Only candidates and their partners change. Weights stay with the keys and the area unless protected.
    With a household role the unit is the household: its keys are the sorted list of its members', it is a candidate
    when no household of its area has that list (so is every household with a unique member), and members exchange
    place by place. `within` are columns on which partners must agree as well as on the keys; `similar` is a numeric
    column by which the nearest partner is taken instead of one at random (then a partner is easier to guess than 1 in
    K); `target` names the candidates otherwise: a rule on the cells of keys and area, or a column that is above 0
    for them. Missing keys are a category; records without an area stay.

    Identity risk is max(1 - rate, rate / K), not 1 - rate: at rate 1 a snooper undoes the swap. It is least at rate
    K / (K + 1); `cap` lowers the rate of each candidate to that. The loss of a snooper who takes the record at its word
    is rate (2 s2 + (mu1 - mu2)^2), s2 the variance within areas and mu the areas' means; the law tells what became of
    the variance within and between areas. Cost: O(n log n).

    Source: Duncan and Keller-McNulty (2000), *Mask or impute?*, sect. 2.2, 3 and 6.2; Dalenius and Reiss (1982).
    Does not guard against candidates without partners, columns that are left behind and show the area, or an intruder
    who looks only at keys and protected columns, whose tables are true.

    >>> Swap(["age"], "area", ["income"], 0.5).words()
    'income swapped between records of equal age in different area, with probability 0.5'
    """

    keys: tuple[str, ...]
    attribute: str
    protected: tuple[str, ...]
    rate: float
    within: tuple[str, ...] | None = None
    similar: str | None = None
    target: Rule | str | None = None
    cap: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.keys:
            raise ParameterError("Swap needs keys: the columns by which a record is found.")
        share(self.rate, "rate, a probability,")
        for name in ("protected", "within"):
            for column in getattr(self, name) or ():
                if column in self.keys or column == self.attribute:
                    raise ParameterError(f"Column {column!r} cannot be in {name} and be a key or the attribute.")
        if not isinstance(self.attribute, str) or self.attribute in self.keys:
            raise ParameterError("attribute must be one column, the area, and not a key.")
        if self.target is not None and not isinstance(self.target, str | Rule):
            raise ParameterError("target must be a rule or the name of a column.")

    def apply(self, data: Records, draws: Draws) -> Records:
        self._refuse_missing(data)
        table, keys = together(data)
        marks = compact(keys, draws)
        units = _units(self, data, table, marks)
        pairs = _paired(units, draws.child(0))
        chance = np.minimum(self.rate, pairs.partners / (pairs.partners + 1)) if self.cap else self.rate
        swapped = draws.child(1).uniform(pl.Series(units.marks[pairs.first])) < chance
        source = units.source(pairs.first[swapped], pairs.second[swapped])
        moving = list(self.protected or (self.attribute,))
        released = table.with_columns(table.select(moving)[source].get_columns())
        return data.with_frame(released, self.law(_report(self, data, units, pairs, table, released)))

    def law(self, report: "SwapLog") -> Law:
        """What the public may know: the policy, how many partners candidates have, what areas lost."""
        parameters: dict[str, Any] = {"keys": list(self.keys), "attribute": self.attribute}
        parameters |= {"protected": list(self.protected), "rate": self.rate}
        parameters |= {name: list(columns) for name in ("within",) if (columns := getattr(self, name))}
        parameters |= {"similar": self.similar} if self.similar else {}
        parameters |= (
            {"target": self.target if isinstance(self.target, str) else repr(self.target)} if self.target else {}
        )
        parameters |= {"cap": True} if self.cap else {}
        parameters |= report.public()
        swapped = self.protected or (self.attribute,)
        return Law("swap", swapped, f"{self.words()}. {report.note(self.rate, self.cap)}", parameters, detail=report)

    def words(self) -> str:
        what = ", ".join(self.protected) or self.attribute
        alike = ", ".join((*self.keys, *(self.within or ())))
        near = f", nearest in {self.similar}" if self.similar else ""
        return (
            f"{what} swapped between records of equal {alike} in different {self.attribute}{near}, "
            f"with probability {self.rate:g}"
        )

    def _refuse_missing(self, data: Records) -> None:
        schema = data.schema()
        extra = (self.similar, self.target if isinstance(self.target, str) else None)
        require_columns(
            (*self.keys, self.attribute, *self.protected, *(self.within or ()), *(c for c in extra if c)), schema
        )
        if self.similar and not schema[self.similar].is_numeric():
            raise DataError(
                f"Column {self.similar!r} is {schema[self.similar]}, not numeric: nothing is nearest in it."
            )


@dataclass(frozen=True, eq=False, repr=False)
class SwapLog:
    """What a swap did, for audits: exact, in memory only.

    `partners` is K of every candidate, in no order; `within` and `between` hold, for each numeric protected column, the
    variance before and after.
    """

    partners: Integers
    pairs: int
    within: dict[str, tuple[float, float]]
    between: dict[str, tuple[float, float]]

    def public(self) -> dict[str, Any]:
        """Rounded, so that nothing exact about single records is told."""
        some = self.partners[self.partners > 0]
        alone = round(float((self.partners == 0).mean()), 2) if len(self.partners) else 0.0
        facts: dict[str, Any] = {"candidates": len(self.partners), "without_partner": alone, "pairs": self.pairs}
        if len(some):
            facts["partners"] = {"least": int(some.min()), "median": float(np.median(some)), "most": int(some.max())}
        for name, variances in (("variance_within", self.within), ("variance_between", self.between)):
            ratios = {c: significant(after / before) for c, (before, after) in variances.items() if before > 0}
            facts |= {name: ratios} if ratios else {}
        return facts

    def note(self, rate: float, cap: bool) -> str:
        """The honest words about the risk that is left."""
        some = self.partners[self.partners > 0]
        if not len(some):
            return "No candidate has a partner: nothing was swapped."
        least = int(some.min())
        best = least / (least + 1)
        alone = int((self.partners == 0).sum())
        unpaired = f" {alone:,} of {len(self.partners):,} candidates have no partner and stay." if alone else ""
        over = f" The rate is above K / (K + 1) = {significant(best)} where K = {least}: use cap=True."
        return (
            f"Identity risk of a swapped candidate with K possible partners is max(1 - rate, rate / K), not 1 - rate."
            f"{over if rate > best and not cap else ''}{unpaired}"
        )


@dataclass(frozen=True, eq=False, repr=False)
class _Units:
    """What is swapped: records, or households as lists of rows.

    `alike` numbers the combinations of keys and `within`, `area` the areas; `rows[starts[u] : starts[u + 1]]` are the
    rows of unit u, in the order in which members exchange.
    """

    alike: Integers
    area: Integers
    wanted: Any
    score: Floats | None
    marks: Integers
    rows: Integers
    starts: Integers

    def source(self, first: Integers, second: Integers) -> Integers:
        """For each row, the row whose values it gets."""
        sources = np.arange(len(self.rows))
        one, two = self._rows(first), self._rows(second)
        sources[one], sources[two] = two, one
        return sources

    def _rows(self, units: Integers) -> Integers:
        return self.rows[runs(self.starts[units], self.starts[units + 1])]


@dataclass(frozen=True, eq=False, repr=False)
class _Pairs:
    """Candidates, their partners, and for each the number of potential partners."""

    first: Integers
    second: Integers
    partners: Integers


def _units(mask: Swap, data: Records, table: pl.DataFrame, marks: Integers) -> _Units:
    keys = group_coded([code(table[c]) for c in mask.keys])[0]
    alike = group_coded([code(table[c]) for c in (*mask.keys, *mask.within)])[0] if mask.within else keys
    area = code(table[mask.attribute])
    place = area.codes.astype(np.int64) + (0 if area.values.null_count() else 1)
    place[place == 0] = NOWHERE
    score = table[mask.similar].cast(pl.Float64).to_numpy() if mask.similar else None
    if data.roles.household:
        return _households(mask, data, table, marks, keys, alike, place, score)
    targets = _targets(mask, data, table) if mask.target is not None else _alone(keys, place)
    every = np.arange(table.height + 1)
    return _Units(alike, place, targets & (place != NOWHERE), score, marks, every[:-1], every)


def _households(
    mask: Swap,
    data: Records,
    table: pl.DataFrame,
    marks: Integers,
    keys: Integers,
    alike: Integers,
    place: Integers,
    score: Floats | None,
) -> _Units:
    """One unit for each household; its members sorted by their keys, equal ones in an order drawn by record."""
    name = data.roles.household
    assert name is not None
    home = table[name]
    if home.null_count():
        raise RolesError(f"{home.null_count():,} records have no household in {name!r}.")
    targets = _targets(mask, data, table) if mask.target is not None else np.zeros(table.height, dtype=np.bool_)
    people = pl.DataFrame({"home": home, "key": keys, "alike": alike, "area": place, "mark": marks, "target": targets})
    people = people.with_columns(pl.Series("score", np.zeros(len(keys)) if score is None else score).fill_nan(None))
    people = people.with_row_index("row").sort("home", "alike", "mark")
    lists = [pl.col(c).sort().cast(pl.String).str.join(",").alias(c) for c in ("key", "alike")]
    homes = people.group_by("home", maintain_order=True).agg(
        *lists, pl.col("area").min(), pl.col("area").max().alias("other"), pl.col("mark").min(),
        pl.col("target").any(), pl.col("score").mean(), pl.len().alias("size"),
    )  # fmt: skip
    torn = int((homes["area"] != homes["other"]).sum())
    if torn:
        raise DataError(f"{torn:,} households lie in more than one {mask.attribute!r}: a household has one area.")
    where = homes["area"].to_numpy()
    candidates = homes["target"].to_numpy() if mask.target is not None else _alone(code(homes["key"]).codes, where)
    starts = np.r_[0, np.cumsum(homes["size"].to_numpy().astype(np.int64))]
    scores = None if score is None else homes["score"].fill_null(np.nan).to_numpy()
    profile = code(homes["alike"]).codes.astype(np.int64)
    rows = people["row"].to_numpy().astype(np.int64)
    return _Units(profile, where, candidates & (where != NOWHERE), scores, homes["mark"].to_numpy(), rows, starts)


def _alone(keys: Integers, area: Integers) -> Any:
    """Nobody else in the area has these keys."""
    cell, first = group([keys, area + 1], [int(keys.max()) + 1, int(area.max()) + 2])
    return np.bincount(cell, minlength=len(first))[cell] == 1


def _targets(mask: Swap, data: Records, table: pl.DataFrame) -> Any:
    """The candidates that a rule on cells or a column names."""
    if isinstance(mask.target, str):
        column = table[mask.target]
        if not (column.dtype == pl.Boolean or column.dtype.is_numeric()):
            raise DataError(f"Column {mask.target!r} is {column.dtype}: target takes a column of booleans or numbers.")
        return (column.cast(pl.Float64) > 0).fill_null(False).to_numpy()
    assert mask.target is not None
    return chosen(mask.target, data, (*mask.keys, mask.attribute), table)


def _paired(units: _Units, draws: Draws) -> _Pairs:
    """Disjoint pairs of a candidate and a unit with the same keys in another area, made in rounds.

    In each round every candidate without a partner names one among the free; pairs that come first at both their
    members are made. Units are held in an order of their own, so the order of rows does not matter.
    """
    free = np.flatnonzero((units.area != NOWHERE) & np.isin(units.alike, units.alike[units.wanted]))
    last = units.area[free] if units.score is None else np.nan_to_num(units.score[free], nan=np.inf)
    free = free[np.lexsort((units.marks[free], last, units.alike[free]))]
    possible = _choices(units, free)
    first, second, counter = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)], 0
    while True:
        own, partners = _choose_partners(units, free, draws, counter)
        if not len(own):
            break
        order = draws.uniform(pl.Series(units.marks[free[own]]), counter + 1)
        pairs = disjoint(own, partners, order, len(free))
        first.append(free[own[pairs]])
        second.append(free[partners[pairs]])
        still_free = np.ones(len(free), dtype=np.bool_)
        still_free[own[pairs]] = still_free[partners[pairs]] = False
        free, counter = free[still_free], counter + 2
    one, two = np.concatenate(first), np.concatenate(second)
    return _Pairs(one, two, possible[one])


def _choices(units: _Units, free: Integers) -> Integers:
    """How many units with the same keys are in other areas, for every unit."""
    choices = np.zeros(len(units.alike), dtype=np.int64)
    if len(free):
        alike, area = units.alike[free], units.area[free]
        cell, kinds = group([alike, area], [int(alike.max()) + 1, int(area.max()) + 1])
        choices[free] = np.bincount(alike)[alike] - np.bincount(cell, minlength=len(kinds))[cell]
    return choices


def _choose_partners(units: _Units, free: Integers, draws: Draws, counter: int) -> tuple[Integers, Integers]:
    """The candidates among the free that can name a partner, and whom they name: places among the free."""
    if not len(free):
        return free, free
    alike, area = units.alike[free], units.area[free]
    start, end = _runs(alike)
    low, high = _runs(alike, area)
    by_score = units.score is not None
    able = (low > start) | (high < end) if by_score else (end - start) > (high - low)
    own = np.flatnonzero(units.wanted[free] & able)
    uniform = draws.uniform(pl.Series(units.marks[free[own]]), counter)
    start, end, low, high = start[own], end[own], low[own], high[own]
    if by_score:
        return own, _nearest(units, free, own, start, end, low, high, uniform)
    choices = (end - start) - (high - low)
    partners = start + np.minimum((uniform * choices).astype(np.int64), choices - 1)
    return own, partners + np.where(partners >= low, high - low, 0)


def _nearest(
    units: _Units,
    free: Integers,
    own: Integers,
    start: Integers,
    end: Integers,
    low: Integers,
    high: Integers,
    uniform: Floats,
) -> Integers:
    """The neighbour of another area on either side that is nearer in the score; where equal, by the draw."""
    assert units.score is not None
    score = np.nan_to_num(units.score[free], nan=np.inf)
    before, right = np.maximum(low - 1, 0), np.minimum(high, len(free) - 1)
    with np.errstate(invalid="ignore"):
        below = np.where(low > start, np.nan_to_num(score[own] - score[before], nan=0.0), np.nan)
        above = np.where(high < end, np.nan_to_num(score[right] - score[own], nan=0.0), np.nan)
    take_left = np.isnan(above) | (below < above) | ((below == above) & (uniform < 0.5))
    return np.where(take_left & (low > start), before, right)


def _runs(*columns: Integers) -> tuple[Integers, Integers]:
    """Where the run of equal values that holds each place starts and ends."""
    changes = np.zeros(len(columns[0]), dtype=np.bool_)
    changes[0] = True
    for column in columns:
        changes[1:] |= column[1:] != column[:-1]
    starts = np.flatnonzero(changes)
    run = np.cumsum(changes) - 1
    return starts[run], np.r_[starts[1:], len(changes)][run]


def _report(
    mask: Swap, data: Records, units: _Units, pairs: _Pairs, before: pl.DataFrame, after: pl.DataFrame
) -> SwapLog:
    """K of every candidate, and the variances within and between areas of the numeric columns, before and after."""
    placed = np.flatnonzero(units.area != NOWHERE)
    partners = _choices(units, placed)[units.wanted]
    columns = mask.protected or (*data.roles.numeric, *data.roles.sensitive)
    numeric = [c for c in dict.fromkeys(columns) if before.schema[c].is_numeric()]
    first, second = ({c: _parts(t, mask.attribute, c) for c in numeric} for t in (before, after))
    within = {c: (first[c][0], second[c][0]) for c in numeric}
    between = {c: (first[c][1], second[c][1]) for c in numeric}
    return SwapLog(np.sort(partners), len(pairs.first), within, between)


def _parts(table: pl.DataFrame, attribute: str, column: str) -> tuple[float, float]:
    """Variance within and between areas."""
    values = table.select(pl.col(attribute).alias("area"), pl.col(column).cast(pl.Float64).fill_nan(None).alias("x"))
    areas = values.drop_nulls().group_by("area").agg(pl.col("x").mean(), pl.col("x").var(ddof=0).alias("v"), pl.len())
    if not areas.height:
        return 0.0, 0.0
    mean, size = areas["x"].to_numpy(), areas["len"].to_numpy() / areas["len"].sum()
    return float(size @ areas["v"].to_numpy()), float(size @ (mean - size @ mean) ** 2)
