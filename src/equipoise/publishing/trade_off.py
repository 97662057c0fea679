"""Trade-off curve: cells published one after the other in an order, and both losses at each step."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError, InfeasibleError, ParameterError

TIE_TOLERANCE = 1e-9
"""Ratios that differ by less, relatively, are tied."""


class Point(NamedTuple):
    """A place on the curve: both losses relative to their largest values."""

    risk: float
    withheld: float


@dataclass(frozen=True, eq=False)
class PublicationChoice:
    """Cells to publish: risk and silence as read off the curve, and as whole cells realise them."""

    risk: float
    withheld: float
    realised: Point
    publish: Integers = field(repr=False)


@dataclass(frozen=True, eq=False, repr=False)
class TradeOff:
    """Cells in an order of publication, with the losses of the publication they belong to.

    `exposed` and `silent` are each cell's loss if published and if withheld, `order` the cells from first to last,
    `tie` the tied group of each place in it. Tied cells are separate steps of the curve, or one with `pooled`.
    At its steps the curve of the best order is the least risk for that silence; between steps to publish part of a cell
    would be needed, and which whole cells to add is a knapsack: the line there is not promised by any set of cells.

    >>> best = TradeOff(np.array([1.0, 3.0]), np.array([1.0, 1.0]), np.array([0, 1]), np.array([0, 1]))
    >>> best.at_risk(0.5)
    Point(risk=0.5, withheld=0.33333333333333337)
    """

    exposed: Floats
    silent: Floats
    order: Integers
    tie: Integers
    pooled: bool = False

    @cached_property
    def steps(self) -> tuple[Integers, Floats, Floats]:
        """Cells published, risk and silence left at each step, from nothing published to all."""
        risk = np.append(0.0, np.cumsum(self.exposed[self.order]))
        silence = np.append(0.0, np.cumsum(self.silent[self.order]))
        if not risk[-1] > 0 or not silence[-1] > 0:
            lacking = "disclosure" if not risk[-1] > 0 else "nonpublication"
            raise DataError(f"The loss of {lacking} is 0 in every cell: there is nothing to weigh.")
        count = np.arange(len(risk))
        last = np.append(True, np.append(self.tie[1:] != self.tie[:-1], True)) if self.pooled else count >= 0
        return count[last], risk[last] / risk[-1], 1 - silence[last] / silence[-1]

    @property
    def tied(self) -> int:
        """How many cells are in the same place as another."""
        sizes = np.bincount(self.tie)
        return int(sizes[sizes > 1].sum())

    def curve(self) -> pl.DataFrame:
        """The steps, from everything published (withheld 0, risk 1) to nothing (1, 0)."""
        count, risk, withheld = (part[::-1] for part in self.steps)
        return pl.DataFrame({"published": count, "withheld": np.clip(withheld, 0.0, 1.0), "risk": risk})

    def at_risk(self, most: float) -> Point:
        """Where the curve meets a risk, between steps on the straight line."""
        _, risk, withheld = self.steps
        return Point(most, _between(most, risk, withheld))

    def at_silence(self, withheld: float) -> Point:
        """Where the curve meets a share withheld."""
        _, risk, silence = self.steps
        return Point(_between(1 - withheld, 1 - silence, risk), withheld)

    def choose(self, *, risk_at_most: float | None = None, publish_share: float | None = None) -> "PublicationChoice":
        """Publish in order up to a risk, or until a share of what there is to say is published."""
        if (risk_at_most is None) == (publish_share is None):
            raise ParameterError("Give one of risk_at_most, publish_share and cutoff.")
        if risk_at_most is not None:
            point, number = self.at_risk(limit(risk_at_most, "risk_at_most")), self.most(risk_at_most)
        else:
            share = limit(publish_share, "publish_share")
            point, number = self.at_silence(1 - share), self.fewest(share)
        return replace(self.first(number), risk=point.risk, withheld=point.withheld)

    def first(self, count: int) -> "PublicationChoice":
        """The first so many cells published."""
        publish = np.zeros(len(self.order), dtype=np.bool_)
        publish[self.order[:count]] = True
        point = self.step(count)
        return PublicationChoice(*point, realised=point, publish=publish)

    def step(self, published: int) -> Point:
        """Both losses with so many cells published."""
        count, risk, withheld = self.steps
        place = int(np.searchsorted(count, published, side="right")) - 1
        return Point(float(risk[place]), float(max(0.0, withheld[place])))

    def most(self, risk: float) -> int:
        """How many cells can be published at most with this risk."""
        count, risks, _ = self.steps
        return int(count[int(np.searchsorted(risks, risk + 1e-12, side="right")) - 1])

    def fewest(self, share: float) -> int:
        """How many cells must be published at least for this share of what there is to say."""
        count, _, withheld = self.steps
        return int(count[int(np.searchsorted(1 - withheld, share - 1e-12, side="left"))])


def _between(x: float, xs: Floats, ys: Floats) -> float:
    """y at x on a line through points of rising x; at the last of several points of one x."""
    place = int(np.searchsorted(xs, x, side="right")) - 1
    if place >= len(xs) - 1:
        return float(ys[-1])
    along = (x - xs[place]) / (xs[place + 1] - xs[place])
    return float(ys[place] + along * (ys[place + 1] - ys[place]))


def ratios(published: Floats, withheld: Floats) -> Floats:
    """R1/R0: 0 where publishing costs nothing, infinite where only withholding costs nothing."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        quotient = published / withheld
    return np.where(published == 0, 0.0, np.where(withheld == 0, np.inf, quotient))


def ordered(ratio: Floats, keys: Sequence[Floats]) -> tuple[Integers, Integers]:
    """Cells by ratio, ties by the keys in their order and then as they came; and the tied group of each place."""
    order = np.argsort(ratio, kind="stable")
    values = ratio[order]
    with np.errstate(invalid="ignore"):
        apart = ~((values[1:] <= values[:-1] * (1 + TIE_TOLERANCE)) | (values[1:] == values[:-1]))
    group = np.append(0, np.cumsum(apart)) if len(values) else np.zeros(0, dtype=np.int64)
    within = np.lexsort((*(key[order] for key in reversed(keys)), group))
    return order[within], group


def tie_rank(ties: Any, n: Floats, N: Floats) -> Floats:  # noqa: N803
    """The place of each cell's domain in a list of (n, N): earlier ones are published first, others last."""
    try:
        pairs = [(float(a), float(b)) for a, b in ties]
    except (TypeError, ValueError):
        raise ParameterError(
            "ties must be 'stated', 'pooled' or a list of (n, N) in the order of publication."
        ) from None
    rank = np.full(len(n), float(len(pairs)))
    for place, (a, b) in enumerate(pairs):
        rank[(n == a) & (b == N) & (rank == len(pairs))] = place
    return rank


def limit(value: float | None, name: str) -> float:
    """A share between 0 and 1, or a refusal with a hint for percent."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        hint = f" Write {value:g} % as {value / 100:g}." if isinstance(value, int | float) and 1 < value <= 100 else ""
        raise ParameterError(f"{name} must be a share between 0 and 1.{hint}")
    return float(value)


def above_zero(cutoff: float) -> float:
    if isinstance(cutoff, bool) or not isinstance(cutoff, int | float) or not cutoff > 0:
        raise ParameterError("cutoff must be a number above 0: cells with R1/R0 below it are published.")
    return cutoff


@dataclass(frozen=True)
class Elicited:
    """The cutoffs that would have led to somebody's own decisions: above `low`, up to and including `high`.

    Where no cutoff gives them all, `low` and `high` bound the cutoffs that contradict the fewest, and `against` counts
    those; `cells` has every choice with its ratio and whether it agrees.
    """

    low: float
    high: float
    against: int
    cells: pl.DataFrame

    @property
    def consistent(self) -> bool:
        return self.against == 0

    @property
    def words(self) -> str:
        upper = "any larger one" if np.isinf(self.high) else f"{self.high:.4g}"
        words = f"The decisions imply a cutoff of R1/R0 between {self.low:.4g} and {upper}."
        if self.consistent:
            return words
        return f"{words} {self.against:,} of {self.cells.height:,} decisions contradict it: no single cutoff gives all."


def elicited(ratio: Floats, publish: Integers, cells: pl.DataFrame) -> Elicited:
    """The range of cutoffs c (publish where ratio < c) with the fewest contradictions, the widest of several."""
    if not len(ratio):
        raise InfeasibleError("No decisions were given: name some cells with True (publish) or False (withhold).")
    steps = np.unique(ratio[np.isfinite(ratio)])
    above = np.searchsorted(np.sort(ratio[~publish]), steps, side="right")
    below = int(publish.sum()) - np.searchsorted(np.sort(ratio[publish]), steps, side="right")
    wrong = np.append(publish.sum(), above + below)
    ends = np.append(np.append(0.0, steps), np.inf)
    best = np.flatnonzero(wrong == wrong.min())
    chosen = best[np.argmax(ends[best + 1] - ends[best])]
    low, high = float(ends[chosen]), float(ends[chosen + 1])
    decisions = cells.with_columns(choice=pl.Series(publish), ratio=ratio, agrees=pl.Series((ratio <= low) == publish))
    return Elicited(low, high, int(wrong.min()), decisions)
