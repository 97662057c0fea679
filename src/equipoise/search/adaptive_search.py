"""Adaptive search: start coarse, then try where the frontier bends and where the limits are.

Each family of recipes is a lattice. A surface through the trials so far says what every score is likely to be at the
places not tried; the next batch has the place with the largest expected improvement inside the limits, and in turn the
middle between the best accepted trial and a refused one that would be better, or the place most likely to lie below the
chord where the frontier has its widest gap. What lies beyond a trial that is outside the limits, or behind the best, is
not tried: where recipes only coarsen, risk never rises and utility never grows with what is put together, and that is
believed until two trials contradict it. The size of a batch follows from the budget alone, so that one process and
several try the same.

Sources: Jones, Schonlau and Welch (1998), expected improvement; Schonlau, Welch and Jones (1998), times the probability
that the limits hold; Aneja and Nair (1979), the chords of a frontier of two scores.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, pairwise

import numpy as np
from numpy.typing import NDArray

from equipoise.ground.arrays import Floats
from equipoise.policies.policy import Limit, Policy, scored
from equipoise.recipe.recipe import Recipe
from equipoise.search._adaptive.gaussian_process import Surface
from equipoise.search._adaptive.search_state import Plot, corners, near
from equipoise.search.ranking import Rank, inside, loss, main_pair, ranking, shortfall
from equipoise.search.recipe_space import Family, Point, everywhere
from equipoise.trials.trial import LeftOut, Trial

BATCH_TRIALS, SMALL_BUDGET = 2, 50
"""Trials asked for at once; one at a time while the budget is so small that each must know of the one before."""
MAX_VIEWED_PLACES = 3000
"""Places a family is looked at in one step, at most."""
TRIALS_PER_FAMILY = 8
"""Trials of each family that a search without a budget may make."""
MAX_BUDGET = 200
SPREAD_TOLERANCE, NEXT_LOSS_WEIGHT = 1e-12, 1e-4
"""A spread that is none, and what a loss counts for against the one before it in the ranking."""
FORECAST_DIGITS = 9
"""Digits of a forecast that count: the last ones depend on how a machine adds up, and a search must not."""
DOMINATED_LOG, UNLIKELY_LOG = -1e6, -30.0
"""Logarithms of what is not worth a trial: shown to be worse, and all but sure to be."""
QUADRATURE_NODES, PRIOR_PLACES, MAX_CORRELATION = 24, 4, 0.95
"""Points of a quadrature; places tried that stand for no correlation; the strongest correlation believed."""
MIN_FRONTIER_TRIALS = 20
"""Trials before any is spent on the shape of the frontier alone, where there are limits."""


@dataclass(frozen=True)
class Ask:
    """A place to try."""

    plot: int
    point: Point
    recipe: Recipe


class AdaptiveSearch:
    """Asks for recipes, batch by batch, and learns from their trials.

    Parameters
    ----------
    families
        What may be tried.
    policy
        The limits, and the side to favour inside them; without them only the frontier counts.
    budget
        Trials, at most: a fifth of the exhaustive grid when not given, 8 for each family at least, 200 at most.
    """

    def __init__(self, families: Sequence[Family], policy: Policy | None = None, budget: int | None = None) -> None:
        self.plots = [Plot(family) for family in families]
        self.policy = policy if policy and policy.parsed else None
        size = sum(family.grid for family in families)
        usual = min(MAX_BUDGET, max(-(-size // 5), TRIALS_PER_FAMILY * len(families)))
        self.budget = min(usual if budget is None else budget, sum(family.span for family in families))
        self.batch = BATCH_TRIALS if self.budget > SMALL_BUDGET else 1
        self.turn = count()
        self.asked = 0
        self.first = list(self._start())

    def _start(self) -> Iterator[tuple[int, Point]]:
        """The middle and both ends of every family, then the ends of single axes while the budget is far off."""
        starts: set[tuple[int, Point]] = set()
        for place, point in self._coarse():
            if (place, point) not in starts and len(starts) < max(2 * len(self.plots), self.budget // 3):
                starts.add((place, point))
                yield place, point

    def _coarse(self) -> Iterator[tuple[int, Point]]:
        starts = [corners(plot.family) for plot in self.plots]
        for rank in range(max(map(len, starts))):
            for place, points in enumerate(starts):
                if rank < len(points):
                    yield place, points[rank]

    def ask(self) -> list[Ask]:
        """The next recipes; none when the budget is used up or everything is tried."""
        asks: list[Ask] = []
        while len(asks) < min(self.batch, self.budget - self.asked) and not all(plot.full for plot in self.plots):
            start = bool(self.first)
            place = self.first.pop(0) if start else self._next()
            if place is None:
                break
            at, point = place
            if point in self.plots[at].tried or (start and self._hopeless(at, [point]).any()):
                continue
            recipe = self.plots[at].family.recipe(point)
            self.plots[at].tried[point] = None
            if recipe is not None:
                asks.append(Ask(at, point, recipe))
        self.asked += len(asks)
        return asks

    def tell(self, asks: Sequence[Ask], trials: Sequence[Trial | LeftOut]) -> None:
        for ask, trial in zip(asks, trials, strict=True):
            self.plots[ask.plot].tried[ask.point] = trial

    def trials(self) -> list[Trial]:
        return [trial for plot in self.plots for trial in plot.scored.values()]

    def _next(self) -> tuple[int, Point] | None:
        turn, trials = next(self.turn), self.trials()
        if len(trials) < 2:
            return self._any()
        ways = [self._bend, self._bend, self._spread]
        if self.policy:
            ways = [self._improve, self._improve, self._halve]
            ways += [] if len(trials) <= MIN_FRONTIER_TRIALS else [*ways, self._improve, self._bend]
        return ways[turn % len(ways)]() or (self._improve() if self.policy else None) or self._any()

    def _any(self) -> tuple[int, Point] | None:
        """A place not tried, the one farthest from those tried."""
        return self._spread() or next(
            ((at, p) for at, plot in enumerate(self.plots) for p in everywhere(plot.family) if p not in plot.tried),
            None,
        )

    def _open(self, at: int) -> list[Point]:
        """Places of a family not tried yet: all, or those near good ones and some at random."""
        plot = self.plots[at]
        if plot.family.span <= MAX_VIEWED_PLACES:
            return [point for point in everywhere(plot.family) if point not in plot.tried]
        rng = np.random.default_rng(len(plot.tried))
        sizes = np.array(plot.family.sizes)
        if plot.family.points:
            picked = rng.choice(len(plot.family.points), MAX_VIEWED_PLACES, replace=False)
            points = [plot.family.points[i] for i in picked]
        else:
            points = [tuple(map(int, row)) for row in rng.integers(0, sizes, (MAX_VIEWED_PLACES // 2, len(sizes)))]
            points += [close for point in list(plot.scored)[-40:] + self._leaders(at) for close in near(point, sizes)]
        return [point for point in dict.fromkeys(points) if point not in plot.tried]

    def _leaders(self, at: int) -> list[Point]:
        """The best places of a family so far."""
        scored_points, policy = self.plots[at].scored, self.policy
        if policy is None:
            return list(scored_points)[-5:]
        rank = ranking(policy, self.trials())
        return sorted(
            scored_points, key=lambda point: (shortfall(policy, scored_points[point]), rank(scored_points[point]))
        )[:5]

    def _improve(self) -> tuple[int, Point] | None:
        """The place with the largest expected improvement times the probability that the limits hold."""
        assert self.policy is not None
        trials = self.trials()
        aims = Aims.of(trials, self.policy)
        best = min((aims.aim(trial) for trial in trials if inside(self.policy, trial)), default=None)
        candidates = []
        for at, plot in enumerate(self.plots):
            points = self._open(at) if len(plot.scored) > 1 else []
            if points:
                hope = self._hope(at, points, aims, best)
                top = int(np.argmax(hope.round(FORECAST_DIGITS)))
                candidates.append((float(hope[top]), at, points[top]))
        hope_, at, point = max(candidates, key=lambda one: one[0], default=(-np.inf, 0, ()))
        return (at, point) if hope_ > (DOMINATED_LOG / 2 if best is None else UNLIKELY_LOG) else None

    def _hope(self, at: int, points: Sequence[Point], aims: "Aims", best: float | None) -> Floats:
        """The logarithm of expected improvement times probability; of the probability alone while none is inside."""
        from scipy.special import log_ndtr

        plot = self.plots[at]
        unit, scored_points, trials = plot.unit(points), list(plot.scored), list(plot.scored.values())
        hope: Floats = np.where(self._hopeless(at, points), DOMINATED_LOG, 0.0)
        signs = [-1.0 if limit.sign[0] == "<" else 1.0 for limit in aims.limits]
        room = [
            plot.surface(f"limit {place}", scored_points, sign * aims.against(place, trials))
            for place, sign in enumerate(signs)
        ]
        if best is None:
            likely: Floats = np.sum([log_ndtr(np.divide(*surface.at(unit))) for surface in room], axis=0)
            return hope + likely
        behind = plot.surface("aim", scored_points, aims.behind(best, trials))
        return hope + np.log(np.maximum(improvement(behind, room, unit), 1e-300))

    def _hopeless(self, at: int, points: Sequence[Point]) -> NDArray[np.bool_]:
        """Places that cannot be chosen, as far as trials show: beyond one outside the limits, or beyond the best."""
        plot, policy = self.plots[at], self.policy
        hopeless = np.zeros(len(points), dtype=np.bool_)
        if policy is None or not plot.scored or not points:
            return hopeless
        all_trials, trials = self.trials(), list(plot.scored.values())
        aims = Aims.of(all_trials, policy)
        for place, limit in enumerate(aims.limits):
            values = aims.against(place, trials) * (1.0 if limit.sign[0] == "<" else -1.0)
            broken = np.array([not limit.holds(scored(trial, limit)) for trial in trials])
            hopeless |= plot.beyond(points, values, broken, scored(trials[0], limit).side == "risk")
        best = min((aims.first(trial) for trial in all_trials if inside(policy, trial)), default=np.inf)
        values = np.array([aims.first(trial) for trial in trials])
        return hopeless | plot.beyond(points, values, values >= best, policy.prefer == "risk")

    def _halve(self) -> tuple[int, Point] | None:
        """Half way from the best accepted trial to the nearest refused one of its family that would be better."""
        assert self.policy is not None
        middles_by_rank: list[tuple[tuple[float, ...], float, int, Point]] = []
        rank = ranking(self.policy, self.trials())
        for at, plot in enumerate(self.plots):
            ranks = {point: rank(trial) for point, trial in plot.scored.items()}
            fit = [point for point, trial in plot.scored.items() if inside(self.policy, trial)]
            lead = min(fit, key=ranks.__getitem__, default=None)
            better = [point for point in ranks if lead and point not in fit and ranks[point] < ranks[lead]]
            middles = [plot.between(lead, point) for point in better if lead]
            for point, middle, hopeless in zip(better, middles, self._hopeless(at, middles), strict=True):
                assert lead is not None
                if middle not in plot.tried and not hopeless:
                    far = float(np.abs(plot.unit([lead]) - plot.unit([point])).sum())
                    middles_by_rank.append((ranks[lead], far, at, middle))
        return min(middles_by_rank)[2:] if middles_by_rank else None

    def _bend(self) -> tuple[int, Point] | None:
        """The place most likely below the chord over the widest gap of the frontier of one risk and one utility."""
        trials = self.trials()
        pair = main_pair(trials[0], self.policy)
        if pair is None:
            return self._spread()
        weights = _chord([_losses(trial, pair) for trial in trials])
        candidates = []
        for at, plot in enumerate(self.plots):
            points = self._open(at) if len(plot.scored) > 1 else []
            values = np.array([np.dot(weights, _losses(trial, pair)) for trial in plot.scored.values()])
            if points and np.isfinite(values).all():
                mean, sd = plot.surface("bend", list(plot.scored), values).at(plot.unit(points))
                top = int(np.argmin((mean - sd).round(FORECAST_DIGITS)))
                candidates.append((float(mean[top] - sd[top]), at, points[top]))
        return min(candidates)[1:] if candidates else None

    def _spread(self) -> tuple[int, Point] | None:
        """The place farthest from all that were tried, in the family that is tried least for its size."""
        order = sorted(
            range(len(self.plots)), key=lambda at: len(self.plots[at].tried) / np.sqrt(self.plots[at].family.span)
        )
        for at in order:
            plot, points = self.plots[at], self._open(at)
            if points and plot.tried:
                gaps = np.abs(plot.unit(points)[:, None, :] - plot.unit(list(plot.tried))[None, :, :]).sum(axis=2)
                return at, points[int(np.argmax(gaps.min(axis=1)))]
            if points:
                return at, points[0]
        return None


@dataclass(frozen=True)
class Aims:
    """The ranking as one number, later losses counting little, and the limits as distances: for surfaces."""

    rank: Rank
    centres: Floats
    spreads: Floats
    limits: tuple[Limit, ...]
    units: tuple[float, ...]

    @classmethod
    def of(cls, trials: Sequence[Trial], policy: Policy) -> "Aims":
        rank, limits = ranking(policy, trials), policy.parsed
        table = np.nan_to_num(np.array([rank(trial) for trial in trials], dtype=np.float64))
        units = tuple(_unit([scored(t, limit).value - limit.bound for t in trials]) for limit in limits)
        return cls(rank, table.mean(axis=0), table.std(axis=0), limits, units)

    def first(self, trial: Trial) -> float:
        """The first loss of the ranking that differs among trials."""
        moves = np.flatnonzero(self.spreads > SPREAD_TOLERANCE)
        return float(np.nan_to_num(self.rank(trial))[moves[0]]) if len(moves) else 0.0

    def aim(self, trial: Trial) -> float:
        moves = self.spreads > SPREAD_TOLERANCE
        losses = (np.nan_to_num(self.rank(trial)) - self.centres)[moves] / self.spreads[moves]
        return float((losses * NEXT_LOSS_WEIGHT ** np.arange(len(losses))).sum())

    def behind(self, best: float, trials: Sequence[Trial]) -> Floats:
        """Trials by how far they are behind the best, drawn out near it."""
        gaps = np.array([self.aim(trial) for trial in trials]) - best
        return np.arcsinh(gaps / _unit(gaps.tolist()))

    def against(self, place: int, trials: Sequence[Trial]) -> Floats:
        """Scores by their distance from a limit, drawn out near it."""
        limit = self.limits[place]
        gaps = np.array([scored(trial, limit).value - limit.bound for trial in trials])
        return np.arcsinh(np.nan_to_num(gaps) / self.units[place])


def _unit(gaps: Sequence[float]) -> float:
    """What counts as near: half of the distances seen are shorter."""
    far = np.abs([gap for gap in gaps if gap and np.isfinite(gap)])
    return float(np.median(far)) if far.size else 1.0


def improvement(behind: Surface, room: Sequence[Surface], unit: Floats) -> Floats:
    """The expected improvement where every limit holds, the loss and the room inside a limit being correlated.

    E max(-b, 0) prod P(r > 0 given b) over the normal law of b, by Gauss-Hermite quadrature; the correlation of b and r
    at one place is that of their whitened values at the places tried: a place that is better than expected is likely
    to be outside as well.
    """
    from scipy.special import ndtr

    nodes, weights = np.polynomial.hermite_e.hermegauss(QUADRATURE_NODES)
    mean, sd = behind.at(unit)
    losses = mean[:, None] + sd[:, None] * nodes
    worth = np.maximum(-losses, 0.0) * weights / weights.sum()
    for surface in room:
        middle, wide = surface.at(unit)
        rho = correlation(behind.white, surface.white)
        conditional = middle[:, None] + rho * wide[:, None] * nodes
        worth = worth * ndtr(conditional / (wide[:, None] * np.sqrt(1 - rho**2)))
    return worth.sum(axis=1)


def correlation(one: Floats, two: Floats) -> float:
    """Of two series of mean 0, drawn to 0 where they are short."""
    n = min(len(one), len(two))
    one, two = one[:n], two[:n]
    size = np.sqrt((one @ one) * (two @ two)) or 1.0
    return float(np.clip(one @ two / size * n / (n + PRIOR_PLACES), -MAX_CORRELATION, MAX_CORRELATION))


def _losses(trial: Trial, pair: tuple[str, str]) -> tuple[float, float]:
    return loss(trial.scores[pair[0]]), loss(trial.scores[pair[1]])


def _chord(losses: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Weights at right angles to the widest step between neighbours on the frontier of two losses."""
    table = np.array([pair for pair in losses if np.isfinite(pair).all()] or [(0.0, 0.0)])
    low, span = table.min(axis=0), np.maximum(np.ptp(table, axis=0), 1e-12)
    best: list[Floats] = []
    for row in sorted(((table - low) / span).tolist()):
        if not best or row[1] < best[-1][1]:
            best.append(np.array(row))
    steps = [b - a for a, b in pairwise(best)]
    wide = max(steps, key=lambda step: float(np.abs(step).sum()), default=np.array([1.0, -1.0]))
    return float(-wide[1] / span[0]), float(wide[0] / span[1])
