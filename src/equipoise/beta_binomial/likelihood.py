"""Maximum likelihood of many beta-binomial domains.

Newton's method in (gamma, log phi), logit mu = x'gamma, with analytic slopes; equal rows are one row with a weight, and
where the mean is one for all, special functions are computed once per distinct count.
`beta_binomial.prior` has the formula.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from equipoise.beta_binomial.law import collapse, rise
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import InfeasibleError

MAX_SHAPE, MIN_PRECISION = 1e10, 1e-6
"""Without spread the smaller of alpha and beta is the first; with all or nothing their sum is the second."""
START_SHAPES = (0.01, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4)
"""Start values of the smaller of alpha and beta beside the moment estimate; Newton's method starts from the best."""
MAX_STEPS, MIN_GAIN, MAX_START_ROWS = 100, 1e-12, 50_000
"""Most Newton steps; the predicted gain in log-likelihood at which they end, a millionth of a standard error away; and
the distinct rows above which they start on a part of them."""
MAX_LOGIT, MAX_PARAMETER = 25.0, 100.0
"""A fitted logit beyond the first has diverged to a share of 0 or 1, a parameter beyond the second to infinity."""


class DistinctValues(NamedTuple):
    """A column by its distinct values, so that special functions are computed once per value."""

    values: Floats
    place: Integers

    def rise(self, x: Floats, order: int) -> Floats:
        once = x.size == 1
        grown = rise(x, self.values if once else self.values[self.place], order)
        return grown[self.place] if once else grown


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Distinct rows: counts, how often each occurs, the design (intercept first, covariates centred and scaled)."""

    y: Floats
    n: Floats
    weight: Floats
    design: Floats
    yes: DistinctValues
    no: DistinctValues
    total: DistinctValues


def sample_of(y: Floats, n: Floats, design: Floats) -> DistinctRows:
    """Distinct rows of a sample with their frequencies."""
    first, _, counts = collapse(y, n, *design.T[1:])
    return _with_distinct_values(y[first], n[first], counts.astype(float), design[first])


def _with_distinct_values(y: Floats, n: Floats, weight: Floats, design: Floats) -> DistinctRows:
    yes, no, total = (DistinctValues(*np.unique(column, return_inverse=True)) for column in (y, n - y, n))
    return DistinctRows(y, n, weight, design, yes, no, total)


def logits(sample: DistinctRows, theta: Floats) -> Floats:
    """x'gamma per row, or one number where there is an intercept alone."""
    return theta[:1] if sample.design.shape[1] == 1 else np.asarray(sample.design @ theta[:-1])


def _value(sample: DistinctRows, theta: Floats) -> float:
    """The log-likelihood, up to a constant of the data."""
    from scipy.special import expit, log_expit

    eta, phi = logits(sample, theta), np.exp(theta[-1:])
    spread = sample.yes.rise(phi * expit(eta), 0) + sample.no.rise(phi * expit(-eta), 0) - sample.total.rise(phi, 0)
    binomial = sample.y * log_expit(eta) + (sample.n - sample.y) * log_expit(-eta)
    return float(sample.weight @ (binomial + spread))


def slopes(sample: DistinctRows, theta: Floats) -> tuple[Floats, Floats]:
    """Gradient and Hessian of the log-likelihood in (gamma, log phi)."""
    from scipy.special import expit

    eta, phi = logits(sample, theta), np.exp(theta[-1:])
    a, b, tilt = phi * expit(eta), phi * expit(-eta), phi * expit(eta) * expit(-eta)
    yes, no, total = sample.yes.rise(a, 1), sample.no.rise(b, 1), sample.total.rise(phi, 1)
    yes2, no2, total2 = sample.yes.rise(a, 2), sample.no.rise(b, 2), sample.total.rise(phi, 2)
    by_mean, by_spread = tilt * (yes - no), a * yes + b * no - phi * total
    mean2 = tilt * tilt * (yes2 + no2) + tilt * (expit(-eta) - expit(eta)) * (yes - no)
    mixed = by_mean + tilt * (a * yes2 - b * no2)
    spread2 = by_spread + a * a * yes2 + b * b * no2 - phi * phi * total2
    design, weight = sample.design, sample.weight
    across = design.T @ (weight * mixed)
    hessian = np.block(
        [[(design.T * (weight * mean2)) @ design, across[:, None]], [across[None, :], np.array([[weight @ spread2]])]]
    )
    return np.append(design.T @ (weight * by_mean), weight @ by_spread), hessian


def _climb(sample: DistinctRows, start: Floats, free: int) -> tuple[Floats, bool]:
    """Newton's method over the first `free` parameters, first on a part of many rows; and whether it converged."""
    if len(sample.y) > MAX_START_ROWS:
        rough, settled = _climb(_thin(sample), start, free)
        start = rough if settled else start
    theta, value = start, _value(sample, start)
    rounding = 1e-14 * float(sample.weight @ (sample.n * np.log1p(sample.n)))
    for _ in range(MAX_STEPS):
        step, gain = _step(sample, theta, free)
        if gain < MIN_GAIN:
            return theta + step, True
        point, higher = _halve_until_higher(sample, theta, step, value - rounding)
        if point is theta or np.abs(point).max() > MAX_PARAMETER:
            return theta, False
        theta, value = point, higher
    return theta, False


def _step(sample: DistinctRows, theta: Floats, free: int) -> tuple[Floats, float]:
    """Newton step, uphill even where the likelihood is not concave (along |curvature|), and its predicted gain."""
    gradient, hessian = slopes(sample, theta)
    curvature, axes = np.linalg.eigh(-hessian[:free, :free])
    curvature = np.maximum(np.abs(curvature), 1e-12 * np.abs(curvature).max() + 1e-300)
    step = np.zeros_like(theta)
    step[:free] = axes @ ((axes.T @ gradient[:free]) / curvature)
    return step * min(1.0, 3.0 / np.abs(step).max(initial=1e-300)), float(gradient @ step)


def _halve_until_higher(sample: DistinctRows, theta: Floats, step: Floats, least: float) -> tuple[Floats, float]:
    """The first of the step, its half, its quarter ... that reaches `least`; else no step."""
    for _ in range(30):
        point = theta + step
        value = _value(sample, point)
        if value >= least:
            return point, value
        step = step / 2
    return theta, least


def _thin(sample: DistinctRows) -> DistinctRows:
    """Every k-th row, about MAX_START_ROWS in total."""
    rows = slice(None, None, -(-len(sample.y) // MAX_START_ROWS))
    return _with_distinct_values(sample.y[rows], sample.n[rows], sample.weight[rows], sample.design[rows])


def best(sample: DistinctRows) -> tuple[Floats, str | None, bool]:
    """Maximum of the likelihood, the boundary it lies on if any, and whether Newton's method converged."""
    width = sample.design.shape[1]
    yes, no = sample.weight @ sample.y, sample.weight @ (sample.n - sample.y)
    rarer = float(min(yes, no) / (yes + no))
    nothing = bool(((sample.y == 0) | (sample.y == sample.n)).all())
    start = np.zeros(width + 1)
    start[0], start[-1] = np.log(yes) - np.log(no), np.log(MIN_PRECISION if nothing else MAX_SHAPE / rarer)
    edge, settled = _climb(sample, start, width)
    if width > 1 and (np.abs(logits(sample, edge)).max() > MAX_LOGIT or not settled):
        raise InfeasibleError("The covariates tell without error which domains have none or all: use fewer of them.")
    if nothing:
        return edge, "all or nothing", settled
    rough = _thin(sample) if len(sample.y) > MAX_START_ROWS else sample
    starts = [np.append(edge[:-1], np.log(phi)) for phi in _precisions(rough, edge, rarer)]
    theta = max(starts, key=lambda point: _value(rough, point))
    if _spread_score(sample, edge) <= 0 and _value(rough, theta) <= _value(rough, edge):
        return edge, "no spread", True
    top, converged = _climb(sample, theta, width + 1)
    if top[-1] > edge[-1] - 2 or _value(sample, top) <= _value(sample, edge):
        return edge, "no spread", True
    return top, None, converged


def _precisions(sample: DistinctRows, edge: Floats, rarer: float) -> tuple[float, ...]:
    """The moment estimate, from E (y - n mu)^2 = n mu (1 - mu) (1 + (n - 1)/(phi + 1)), and a few orders of size."""
    from scipy.special import expit

    mu, y, n = expit(logits(sample, edge)), sample.y, sample.n
    excess = sample.weight @ ((y - n * mu) ** 2 / (mu * (1 - mu)) - n)
    inflation = np.clip(excess / max(sample.weight @ (n * np.maximum(n - 1, 0)), 1e-300), 1e-12, 0.95)
    return (float(1 / inflation - 1), *(size / rarer for size in START_SHAPES))


def _spread_score(sample: DistinctRows, edge: Floats) -> float:
    """Twice the slope of the log-likelihood in 1/phi at 0: positive where domains differ more than by chance."""
    from scipy.special import expit

    eta, y, n = logits(sample, edge), sample.y, sample.n
    pairs = y * (y - 1) / expit(eta) + (n - y) * (n - y - 1) / expit(-eta) - n * (n - 1)
    return float(sample.weight @ pairs)


def shapes(eta: Floats, log_precision: float) -> tuple[Floats, Floats]:
    from scipy.special import expit

    return np.exp(log_precision) * expit(eta), np.exp(log_precision) * expit(-eta)
