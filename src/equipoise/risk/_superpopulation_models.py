"""Superpopulation models of the class sizes of a population, fitted to the class sizes of a sample.

Each gives the probability that a sample unique is a population unique. A class of the sample counts by its size only,
so a fit costs O(distinct sizes) a step; it is deterministic.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from equipoise.ground.arrays import Floats

PITMAN, GAMMA, ZAYATZ, SLIDE, BEST = "pitman", "poisson-gamma", "zayatz", "slide", "best"
MODELS = (ZAYATZ, PITMAN, GAMMA, SLIDE, BEST)
MAX_PITMAN_FRACTION = 0.1
"""Sampling fraction up to which the published choice is Pitman's model (Dankar and others 2012)."""
GRID_POINTS, GRID_ROUNDS = 41, 9
"""Points of a grid, and how often a finer one is searched around its best point."""
MAX_LOG = 14.0
"""Range of logarithms in which a maximum is searched: a share of e^-14 or a mean of e^14 counts as the limit."""
ASYMPTOTIC_START = 1e6
"""Argument from which on a difference of two digammas is computed by its asymptotic series."""
MAX_SMALL_CLASS = 3
"""Records of a class up to which it counts by its size in the slide model; larger ones count as large."""
MIN_PROBABILITY = 1e-18
"""Smallest probability of a large class, used if a difference rounds to 0."""
EWENS_LIMIT = "alpha is 0, its least (Ewens's model)"
POISSON_LIMIT = "all cells are alike (Poisson)"
RANGE_LIMIT = "a parameter is at the end of its range"
NO_MAXIMUM = "every record is alone in its class, so the likelihood has no maximum"


@dataclass(frozen=True, eq=False, repr=False)
class SizeCounts:
    """Number of `classes` of the sample of each of these distinct `sizes`, ascending."""

    sizes: Floats
    classes: Floats

    @property
    def records(self) -> float:
        return float(self.sizes @ self.classes)

    @property
    def number(self) -> float:
        return float(self.classes.sum())

    @property
    def alone(self) -> float:
        """Number of sample uniques."""
        return float(self.classes[self.sizes == 1].sum())


@dataclass(frozen=True)
class ModelFit:
    """A fitted model: `stays`, P(population unique | sample unique), and the `expected` number of sample uniques.

    `limit` says which end of the parameters' range the likelihood rises to, if it does; not `solved` if there is no
    maximum at all. `instead` names the model that should have been used and has no solution.
    """

    model: str
    stays: float
    expected: float
    parameters: tuple[tuple[str, float], ...] = ()
    limit: str = ""
    solved: bool = True
    instead: str = ""


def fit_model(model: str, sample: SizeCounts, fraction: float, cells: float) -> ModelFit:
    """Fit a model by name. `cells` is the number of combinations that people may have, for the Poisson-gamma model.

    >>> file = SizeCounts(np.array([1.0, 2.0, 3.0]), np.array([30.0, 10.0, 5.0]))
    >>> [round(fit_model(model, file, 0.5, 100).stays, 3) for model in MODELS]
    [0.684, 0.662, 0.52, 0.403, 0.403]
    """
    if fraction == 1 or not sample.alone:
        return ModelFit(model, float(fraction == 1), sample.alone)
    if model == BEST:
        return best(sample, fraction)
    if model == GAMMA:
        return poisson_gamma(sample, fraction, cells)
    return {ZAYATZ: zayatz, PITMAN: pitman, SLIDE: slide}[model](sample, fraction)


def best(sample: SizeCounts, fraction: float) -> ModelFit:
    """The published choice: Pitman's model in small samples, else the smaller of the slide model and Zayatz.

    Where its likelihood has no maximum, Zayatz instead. Source: Dankar, El Emam, Neisa and Roffey (2012).
    """
    small, zayatz_fit = fraction <= MAX_PITMAN_FRACTION, zayatz(sample, fraction)
    fit = (pitman if small else slide)(sample, fraction)
    if not fit.solved:
        return replace(zayatz_fit, instead=fit.model)
    return fit if small or fit.stays <= zayatz_fit.stays else zayatz_fit


def zayatz(sample: SizeCounts, fraction: float) -> ModelFit:
    """Zayatz's estimator (1991): m_1 h(1) / sum of m_i h(i), in logarithms so that no size overflows."""
    n = round(sample.records)
    ratios = np.exp(_log_one_record(sample.sizes, n, max(n, round(n / fraction))))
    return ModelFit(ZAYATZ, float(sample.alone * ratios[0] / (sample.classes * ratios).sum()), sample.alone)


def _log_one_record(sizes: Floats, n: int, population: int) -> Floats:
    """Log probability that a class of each size gives exactly one record to a sample of n."""
    from scipy.special import gammaln

    def log_choose(top: Floats, bottom: float) -> Floats:
        possible = top >= bottom
        safe = np.where(possible, top, bottom)
        return np.where(possible, gammaln(safe + 1) - gammaln(bottom + 1) - gammaln(safe - bottom + 1), -np.inf)

    whole = log_choose(np.array([float(population)]), n)
    return np.asarray(np.log(sizes) + log_choose(population - sizes, n - 1) - whole)


def pitman(sample: SizeCounts, fraction: float) -> ModelFit:
    """Pitman's sampling formula with 0 <= alpha < 1 and theta > -alpha, by maximum likelihood (Hoshino 2001).

    With n records in u classes, s_j of size j, its logarithm is, but for a constant,
    sum_{i<u} log(theta + i alpha) - sum_{i<n} log(theta + i) + sum_j s_j sum_{i<j} log(i - alpha),
    each sum a difference of log gammas. A sample of a population that follows the formula follows it with the same
    parameters. The next person joins a class of one with probability (1 - alpha) / (theta + n), so
    P(F = 1 | f = 1) = product_{i=n}^{N-1} (theta + alpha + i - 1) / (theta + i).
    """
    from scipy.special import betaln, expit

    n, size = sample.records, float(sample.records / fraction)
    if sample.number > n - 0.5:
        return ModelFit(PITMAN, 1.0, sample.alone, limit=NO_MAXIMUM, solved=False)
    logit = _peak(lambda grid: _pitman_profile(sample, grid)[0], -MAX_LOG, MAX_LOG)
    alpha, rest = float(expit(logit)), float(expit(-logit))
    both = float(_pitman_profile(sample, np.array([logit]))[1][0])
    stays = np.exp(betaln(both + size - 1, rest) - betaln(both + n - 1, rest))
    expected = n * np.exp(betaln(both + n - 1, rest) - betaln(both, rest))
    parameters = (("theta", both - alpha), ("alpha", alpha))
    return ModelFit(PITMAN, float(stays), float(expected), parameters, EWENS_LIMIT if logit < 1 - MAX_LOG else "")


def _pitman_profile(sample: SizeCounts, logit: Floats) -> tuple[Floats, Floats]:
    """Profile log likelihood of each alpha at its best theta, and theta + alpha there."""
    from scipy.special import betaln, expit, gammaln

    n, u, alpha, rest = sample.records, sample.number, expit(logit), expit(-logit)
    low, high = np.full(len(logit), -60.0), np.full(len(logit), 60.0)
    for _ in range(80):
        middle = (low + high) / 2
        both = np.exp(middle)
        rises = _digammas(both / alpha, u - 1) / alpha > _digammas(both + rest, n - 1)
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    both = np.exp((low + high) / 2)
    more = sample.sizes > 1
    j, s = sample.sizes[more] - 1, sample.classes[more]
    inside = (gammaln(j) - betaln(rest[:, None], j)) @ s
    height = (u - 1) * np.log(alpha) - betaln(both / alpha, u - 1) + betaln(both + rest, n - 1) + inside
    return height, both


def _digammas(start: Floats, steps: float) -> Floats:
    """digamma(start + steps) - digamma(start), without cancellation for a large start."""
    from scipy.special import digamma

    near = np.minimum(start, ASYMPTOTIC_START)
    far = np.log1p(steps / (np.maximum(start, ASYMPTOTIC_START) - 0.5))
    return np.where(start > ASYMPTOTIC_START, far, digamma(near + steps) - digamma(near))


def poisson_gamma(sample: SizeCounts, fraction: float, cells: float) -> ModelFit:
    """Poisson-gamma model of cell counts (Bethlehem, Keller and Pannekoek 1990), by maximum likelihood.

    Of K cells, empty ones too, each has a rate from gamma(alpha, beta) with K alpha beta = 1; a sample of n has counts
    Poisson(n rate). Then P(F = 1 | f = 1) = ((1 + n beta) / (1 + N beta))^(1 + alpha), and a sample of n has
    n (1 + n beta)^-(1 + alpha) uniques. The mean n / K is the maximum likelihood one, which leaves beta to be found.
    """
    from scipy.special import betaln

    n, cells = sample.records, max(cells, sample.number)

    def height(grid: Floats) -> Floats:
        t = np.exp(grid)
        inside = betaln(t[:, None] / cells, sample.sizes) @ sample.classes
        return np.asarray(-inside - t * np.log1p(n / t) - n * np.log1p(t / n), dtype=np.float64)

    edge = np.log(max(n, cells)) + MAX_LOG
    peak = _peak(height, -MAX_LOG, edge)
    total = float(np.exp(peak))
    beta, alpha = 1 / total, total / cells
    stays = np.exp((1 + alpha) * (np.log1p(n * beta) - np.log1p(n / fraction * beta)))
    expected = n * np.exp(-(1 + alpha) * np.log1p(n * beta))
    parameters = (("alpha", alpha), ("beta", beta), ("cells", cells))
    return ModelFit(GAMMA, float(stays), float(expected), parameters, POISSON_LIMIT if peak > edge - 1 else "")


def slide(sample: SizeCounts, fraction: float) -> ModelFit:
    """Slide negative binomial model (Chen and Keller-McNulty 1998): a class has 1 + X people, by maximum likelihood.

    X is negative binomial, P(X = 0) = beta^alpha, and each person is in the sample with probability pi. Then the
    records of a class are B + Y, B Bernoulli(pi) and Y negative binomial with alpha and beta' = beta / (1 - q),
    q = (1 - pi)(1 - beta); classes without a record are not seen, so
    P(j | seen) = ((1 - pi) nb(j) + pi nb(j - 1)) / (1 - (1 - pi) nb(0)), and
    P(F = 1 | f = 1) = pi beta^alpha / ((1 - pi) nb(1) + pi nb(0)) = (1 - q)^(alpha + 1) / (1 - q + alpha q).
    The likelihood is that of 1, 2, 3 and more than 3 records: like the published equations in s_1 and s_2 it depends
    on the small classes, so that a few large ones, which no such model fits, do not decide about uniques.
    """
    if sample.number > sample.records - 0.5:
        return ModelFit(SLIDE, 1.0, sample.alone, limit=NO_MAXIMUM, solved=False)
    size = np.log(sample.records / fraction)
    span = np.array([(-MAX_LOG - size, size), (-MAX_LOG, MAX_LOG)])
    at = _peak_in_plane(lambda points: _slide_likelihood(sample, points, fraction), span)
    mean, alpha = np.exp(at).tolist()
    one, none = (x.item() for x in _log_class_size(np.ones(1), at[None], fraction))
    stays = np.exp(np.log(fraction) - alpha * np.log1p(mean / alpha) - one)
    classes = float(sample.number / -np.expm1(none))
    parameters = (("alpha", alpha), ("beta", alpha / (alpha + mean)), ("classes", classes))
    inside = bool((at > span[:, 0] + 0.1).all() and (at < span[:, 1] - 0.1).all())
    return ModelFit(SLIDE, float(stays), float(classes * np.exp(one)), parameters, "" if inside else RANGE_LIMIT)


def _slide_likelihood(sample: SizeCounts, points: Floats, fraction: float) -> Floats:
    """Log likelihood of the numbers of classes of 1, 2, ... and more than MAX_SMALL_CLASS records, at each point."""
    rare = np.arange(1.0, MAX_SMALL_CLASS + 1)
    few = sample.sizes <= MAX_SMALL_CLASS
    number = np.bincount(sample.sizes[few].astype(np.int64), sample.classes[few], MAX_SMALL_CLASS + 1)[1:]
    some, none = _log_class_size(rare, points, fraction)
    present = -np.expm1(none)
    large = np.log(np.maximum(present - np.exp(some).sum(axis=1), MIN_PROBABILITY))
    return np.asarray(some @ number + (sample.number - number.sum()) * large - sample.number * np.log(present))


def _log_class_size(sizes: Floats, at: Floats, fraction: float) -> tuple[Floats, Floats]:
    """Log probability that a class has these numbers of records, and none; `at` has log mean X and log alpha."""
    from scipy.special import betaln

    alpha, mean = np.exp(at[:, 1, None]), fraction * np.exp(at[:, 0, None])
    none = -alpha * np.log1p(mean / alpha)
    more = -np.log1p(alpha / mean)
    many = none - betaln(alpha, sizes) - np.log(sizes) + sizes * more
    fewer = np.maximum(sizes - 1, 1)
    less = np.where(sizes == 1, none, none - betaln(alpha, fewer) - np.log(fewer) + (sizes - 1) * more)
    return np.logaddexp(np.log1p(-fraction) + many, np.log(fraction) + less), np.log1p(-fraction) + none[:, 0]


def _peak(height: Callable[[Floats], Floats], low: float, high: float) -> float:
    """Argument of the maximum: the best point of a grid, and of finer and finer ones around it."""
    for _ in range(GRID_ROUNDS):
        grid = np.linspace(low, high, GRID_POINTS)
        at = int(np.argmax(height(grid)))
        low, high = grid[max(at - 1, 0)], grid[min(at + 1, GRID_POINTS - 1)]
    return float((low + high) / 2 if 0 < at < GRID_POINTS - 1 else grid[at])


def _peak_in_plane(height: Callable[[Floats], Floats], span: Floats) -> Floats:
    """Argument of the maximum of a function of two variables: Nelder-Mead from the best point of a grid."""
    from scipy.optimize import minimize

    axes = np.meshgrid(*(np.linspace(low, high, GRID_POINTS) for low, high in span), indexing="ij")
    grid = np.stack(axes, axis=-1).reshape(-1, 2)
    at = grid[int(np.argmax(height(grid)))]
    for _ in range(3):
        options = {"xatol": 1e-9, "fatol": 1e-9, "maxfev": 1000}
        at = minimize(lambda x: -height(x[None])[0], at, method="Nelder-Mead", bounds=span, options=options).x
    return np.asarray(at, dtype=np.float64)
