"""Poisson log-linear models of sparse cross-classifications, and the risk of sample uniques under them.

The mean of every cell, empty ones too, is a product of factors over some axes. Axes that no interaction joins are
independent, so each connected group of axes is fitted separately: in closed form if one interaction covers the whole
group or its pairs form a tree, else by iterative proportional fitting on the cross of that group alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np

from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError
from equipoise.ground.packed_keys import Cube, pack

Axes = tuple[int, ...]
Factor = tuple[Axes, Floats]
MAX_FITTED_CELLS = 1 << 22
"""Cells of a group of joined axes that is fitted iteratively, at most."""
MAX_CHECKED_CELLS = 1 << 26
"""Cells of the whole cross of a model that is checked, at most."""
MAX_SLAB_CELLS = 1 << 18
"""Cells whose means are in memory at a time."""
MAX_CYCLES = 500
MARGIN_TOLERANCE = 1e-7
"""Error of a fitted margin at which fitting stops, as a share of a record."""
SERIES_LIMIT = 1e-3
"""Argument below which the second coefficient is computed by a series, which does not cancel."""
CRITICAL_VALUE = 1.96
"""Statistic above which a model is too simple, at the level of 5 %."""


@dataclass(frozen=True, eq=False, repr=False)
class LogLinearModel:
    """Fitted log-linear model: the mean of a cell is `total` times the product of its factors."""

    sizes: tuple[int, ...]
    total: float
    factors: tuple[Factor, ...]

    def at(self, codes: Sequence[Integers]) -> Floats:
        """Means of cells given by their codes."""
        means = np.full(len(codes[0]), self.total)
        for axes, table in self.factors:
            means *= table.ravel()[pack([codes[axis] for axis in axes], [self.sizes[axis] for axis in axes])]
        return means

    @property
    def cells(self) -> int:
        return prod(self.sizes)

    def slabs(self) -> Iterator[Floats]:
        """Means of all cells of the cross, a bounded number at a time."""
        wide = sorted(range(len(self.sizes)), key=self.sizes.__getitem__)
        return _slabs(self.sizes, self.total, self.factors, wide)


def _slabs(sizes: tuple[int, ...], scale: float, factors: tuple[Factor, ...], free: list[int]) -> Iterator[Floats]:
    """Means in slabs: axes are fixed one by one, the longest last, until the free ones have few enough cells."""
    if prod(sizes[axis] for axis in free) <= MAX_SLAB_CELLS:
        yield _product(sizes, scale, factors, free)
        return
    axis, *rest = free
    for value in range(sizes[axis]):
        value_scale, value_factors = scale, []
        for axes, table in factors:
            if axis not in axes:
                value_factors.append((axes, table))
            elif len(axes) == 1:
                value_scale *= float(table[value])
            else:
                others = tuple(other for other in axes if other != axis)
                value_factors.append((others, np.asarray(table.take(value, axis=axes.index(axis)))))
        yield from _slabs(sizes, value_scale, tuple(value_factors), rest)


def _product(sizes: tuple[int, ...], scale: float, factors: tuple[Factor, ...], free: list[int]) -> Floats:
    means = np.full([sizes[axis] for axis in sorted(free)], scale)
    for axes, table in factors:
        means *= spread(table, axes, sorted(free))
    return means.ravel()


def spread(table: Floats, axes: Axes, among: Sequence[int]) -> Floats:
    """A table over some of the axes, shaped to be multiplied with one over all of them; both in ascending order."""
    return table.reshape([table.shape[axes.index(axis)] if axis in axes else 1 for axis in among])


def fit(cube: Cube, interactions: Iterable[Axes]) -> LogLinearModel:
    """Maximum likelihood fit to the counts of the full cross, with main effects and these interactions.

    Margins that are zero make cells impossible. Cost: O(occupied cells) for each interaction, and for each group that
    needs it up to `MAX_CYCLES` passes over its cross, of at most `MAX_FITTED_CELLS` cells.

    >>> from equipoise.ground.packed_keys import code, tally
    >>> table = pl.DataFrame({"sex": ["f", "f", "f", "m"], "job": ["a", "b", "b", "b"]})
    >>> fit(tally([code(c) for c in table]), []).at([np.array([0, 1]), np.array([1, 0])]).tolist()
    [2.25, 0.25]
    """
    joined = [tuple(sorted(axes)) for axes in interactions]
    groups = _groups(len(cube.axes), joined)
    factors = [factor for group in groups for factor in _fit_group(cube, group, joined)]
    return LogLinearModel(cube.sizes, float(cube.n.sum()), tuple(factors))


def fits(cube: Cube, interactions: Iterable[Axes]) -> bool:
    """Whether these interactions can be fitted within `MAX_FITTED_CELLS`."""
    joined = [tuple(sorted(axes)) for axes in interactions]
    groups = _groups(len(cube.axes), joined)
    return all(_is_closed(group, joined) or _cross(cube, group) <= MAX_FITTED_CELLS for group in groups)


def _groups(size: int, joined: Sequence[Axes]) -> list[Axes]:
    """Connected groups of axes, joined by interactions directly or through others."""
    groups = [{axis} for axis in range(size)]
    for axes in joined:
        overlapping = [group for group in groups if group & set(axes)]
        groups = [group for group in groups if group not in overlapping] + [set().union(*overlapping)]
    return [tuple(sorted(group)) for group in groups]


def _cross(cube: Cube, axes: Axes) -> int:
    return prod(cube.sizes[axis] for axis in axes)


def _inside(group: Axes, joined: Sequence[Axes]) -> list[Axes]:
    """Maximal interactions within a group, or its one axis."""
    sets = {axes for axes in joined if set(axes) <= set(group)} or {group}
    return sorted(axes for axes in sets if not any(set(axes) < set(more) for more in sets))


def _is_closed(group: Axes, joined: Sequence[Axes]) -> bool:
    """Whether the fit has a closed form: one interaction covers the whole group, or its pairs form a tree."""
    sets = _inside(group, joined)
    return sets == [group] or (all(len(axes) == 2 for axes in sets) and len(sets) == len(group) - 1)


def _fit_group(cube: Cube, group: Axes, joined: Sequence[Axes]) -> list[Factor]:
    sets = _inside(group, joined)
    for size in (_cross(cube, axes) for axes in sets):
        if size > MAX_FITTED_CELLS:
            raise DataError(f"An interaction has {size:,} cells, more than {MAX_FITTED_CELLS:,}: coarsen its keys.")
    shares = [(axes, margin(cube, axes) / cube.n.sum()) for axes in sets]
    if _is_closed(group, joined):
        return shares + _separators(cube, group, sets)
    if _cross(cube, group) > MAX_FITTED_CELLS:
        raise DataError(
            f"Keys joined by interactions have {_cross(cube, group):,} cells together, more than {MAX_FITTED_CELLS:,}: "
            "coarsen them or name fewer interactions."
        )
    return [(group, proportional([cube.sizes[axis] for axis in group], group, shares, 1 / float(cube.n.sum())))]


def _separators(cube: Cube, group: Axes, sets: Sequence[Axes]) -> list[Factor]:
    """Separator factors of a tree of pairs: an axis in d of them is divided out d - 1 times."""
    factors: list[Factor] = []
    for axis in group:
        times = sum(axis in axes for axes in sets)
        if times > 1:
            share = margin(cube, (axis,)) / cube.n.sum()
            factors.append(((axis,), np.divide(1.0, share, out=np.zeros_like(share), where=share > 0) ** (times - 1)))
    return factors


def margin(cube: Cube, axes: Axes) -> Floats:
    """Marginal counts over some axes, zeros included."""
    sizes = [cube.sizes[axis] for axis in axes]
    counts = np.bincount(pack([cube.codes[axis] for axis in axes], sizes), cube.n, minlength=prod(sizes))
    return np.asarray(counts, dtype=np.float64).reshape(sizes)


def proportional(sizes: Sequence[int], group: Axes, shares: Sequence[Factor], record: float) -> Floats:
    """Iterative proportional fitting: scale to each margin in turn until all are met.

    Source: Deming and Stephan (1940); its limit is the maximum likelihood fit (Bishop, Fienberg and Holland 1975).
    """
    table = np.full(sizes, 1 / prod(sizes))
    others = [tuple(spot for spot, axis in enumerate(group) if axis not in axes) for axes, _ in shares]
    for _ in range(MAX_CYCLES):
        worst = 0.0
        for (axes, share), summed_axes in zip(shares, others, strict=True):
            fitted_share = table.sum(axis=summed_axes)
            worst = max(worst, float(np.abs(fitted_share - share).max()))
            ratio = np.divide(share, fitted_share, out=np.zeros_like(share), where=fitted_share > 0)
            table *= spread(ratio, axes, group)
        if worst < MARGIN_TOLERANCE * record:
            break
    return table


@dataclass(frozen=True)
class FitCheck:
    """Check of a fit: the estimated bias of the two risks and their standard errors if the model holds."""

    uniques: float
    uniques_error: float
    matches: float
    matches_error: float

    @property
    def statistic(self) -> float:
        """B2 / sqrt(v2), standard normal if the model holds: far above 0 it is too simple, far below 0 too rich."""
        return self.matches / self.matches_error if self.matches_error else 0.0


def check(model: LogLinearModel, codes: Sequence[Integers], n: Integers, fraction: float) -> FitCheck | None:
    """Bias of the risks of sample uniques because the model does not hold; None if the cross is too large.

    With the population mean lambda of a cell, mu = fraction x lambda and risk h(lambda), each cell adds
    a (f - mu) + b ((f - mu)^2 - f), a = -lambda exp(-mu) h'(lambda), b = lambda exp(-mu) h''(lambda) / (2 fraction);
    its variance under the model is a^2 mu + 2 b^2 mu^2. Source: Skinner and Shlomo (2008), with
    h1 = exp(-(1 - fraction) lambda) and h2 = (1 - exp(-x)) / x, x = (1 - fraction) lambda.
    Cost: O(cells of the cross), at most `MAX_CHECKED_CELLS`.
    """
    if model.cells > MAX_CHECKED_CELLS:
        return None
    bias, variance = np.zeros(2), np.zeros(2)
    for means in model.slabs():
        mu = means[means > 0]
        for risk, (a, b) in enumerate(coefficients(mu / fraction, fraction)):
            bias[risk] += ((b * mu - a) * mu).sum()
            variance[risk] += ((a * a + 2 * b * b * mu) * mu).sum()
    mu = model.at(codes)
    for risk, (a, b) in enumerate(coefficients(mu / fraction, fraction)):
        bias[risk] += (n * (a + b * (n - 1 - 2 * mu))).sum()
    errors = np.sqrt(variance)
    return FitCheck(float(bias[0]), float(errors[0]), float(bias[1]), float(errors[1]))


def coefficients(mean: Floats, fraction: float) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Coefficients a and b of the two risks at population means above 0."""
    rest = 1 - fraction
    x, none_in_population, none_in_sample = rest * mean, np.exp(-mean), np.exp(-fraction * mean)
    a1 = x * none_in_population
    a2 = none_in_sample * reciprocal(x) - none_in_population
    small = x < SERIES_LIMIT
    b2 = np.where(small, none_in_sample * x * x * (1 / 6 - x / 8), a2 - none_in_population * x / 2) / (fraction * mean)
    return (a1, a1 * rest / (2 * fraction)), (a2, b2)


def reciprocal(x: Floats) -> Floats:
    """(1 - exp(-x)) / x: the mean of 1 / (1 + Y) for Y Poisson with mean x.

    >>> reciprocal(np.array([0.0, 1.0])).round(6).tolist()
    [1.0, 0.632121]
    """
    safe = np.where(x > 0, x, 1.0)
    return np.where(x > 0, -np.expm1(-safe) / safe, 1.0)


def risks(means: Floats, fraction: float, stays: Floats | float = 1.0) -> tuple[Floats, Floats]:
    """P(population unique) and E(1 / F) of sample uniques with these sample means, both times P(the keys are true).

    A sample unique whose keys were left as they were with probability m has F - 1 Poisson with mean
    (1 - fraction m) lambda, lambda = mean / fraction, if the misclassification leaves the expected counts as they are.
    """
    x = (1 - fraction * stays) * means / fraction
    return stays * np.exp(-x), stays * reciprocal(x)


def choose(cube: Cube, fraction: float) -> tuple[Axes, ...]:
    """Forward selection: pairs added one at a time to the main effects, while the check finds the model too simple.

    Next comes the pair whose gain in likelihood is most above chance: (G2 - d) / sqrt(2 d), with
    G2 = 2 sum of f log(mu after / mu before) and d its degrees of freedom. It ends when the statistic is at most
    `CRITICAL_VALUE` or no gain is above it. Source: the stop is that of the search of Skinner and Shlomo (2008); the
    order is by likelihood, since pairs of many values lower the statistic by fitting noise too. Cost: a fit for every
    pair and step, a check for every step.
    """
    chosen: tuple[Axes, ...] = ()
    model = fit(cube, chosen)
    while (fit_check := check(model, cube.codes, cube.n, fraction)) and fit_check.statistic > CRITICAL_VALUE:
        gains = dict(_gains(cube, chosen, model))
        best = max(gains, key=lambda pair: gains[pair], default=None)
        if best is None or gains[best] <= CRITICAL_VALUE:
            break
        chosen = (*chosen, best)
        model = fit(cube, chosen)
    return chosen


def _gains(cube: Cube, chosen: tuple[Axes, ...], model: LogLinearModel) -> Iterator[tuple[Axes, float]]:
    """Gain of each pair that can be added, in standard deviations above chance."""
    before = model.at(cube.codes)
    for pair in combinations(range(len(cube.axes)), 2):
        free = prod(int((margin(cube, (axis,)) > 0).sum()) - 1 for axis in pair)
        if pair not in chosen and free and fits(cube, (*chosen, pair)):
            after = fit(cube, (*chosen, pair)).at(cube.codes)
            yield pair, float((2 * (cube.n * np.log(after / before)).sum() - free) / np.sqrt(2 * free))
