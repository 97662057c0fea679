"""Models of how large the classes of a population are, fitted to the classes of a sample.

Each says how likely a record that is alone in its class of the sample is alone in the population too. A class of the
sample counts by its size only, so a fit costs O(distinct sizes) a step; no clock and no chance has a part in it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from equipoise.ground.arrays import Floats

PITMAN, GAMMA, ZAYATZ, SLIDE, BEST = "pitman", "poisson-gamma", "zayatz", "slide", "best"
MODELS = (ZAYATZ, PITMAN, GAMMA, SLIDE, BEST)
SMALL = 0.1
"""The sampling fraction up to which the published choice is Pitman's model (Dankar and others 2012)."""
GRID, ROUNDS = 41, 9
"""Points of a grid, and how often a finer one is laid around its best."""
EDGE = 14.0
"""How far out a maximum is looked for: a share of e^-14 or a mean of e^14 is taken for the limit itself."""
LARGE = 1e6
"""From here on a difference of two digammas is taken from its asymptotic series."""
RARE = 3
"""Classes of up to so many records count by their size in the slide model, larger ones as large."""
TINY = 1e-18
"""The least probability of a large class, where a difference rounds to nothing."""
EWENS = "alpha is 0, its least (Ewens's model)"
ALIKE = "all cells are alike (Poisson)"
FAR_OUT = "a parameter is at the end of its range"
NONE = "every record is alone in its class, so the likelihood has no maximum"


@dataclass(frozen=True, eq=False, repr=False)
class ClassSizes:
    """How many `classes` of the sample there are of each of these distinct `sizes`, ascending."""

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
        """Sample uniques."""
        return float(self.classes[self.sizes == 1].sum())


@dataclass(frozen=True)
class ModelFit:
    """A fitted model: P(population unique | sample unique), and the sample uniques it would have expected.

    `limit` says which end of the parameters' range the likelihood rises to, where it does; not `solved` if there is no
    maximum at all. `instead` names the model that was to be used and has no solution.
    """

    model: str
    stays: float
    expected: float
    parameters: tuple[tuple[str, float], ...] = ()
    limit: str = ""
    solved: bool = True
    instead: str = ""


def fitted(model: str, seen: ClassSizes, fraction: float, cells: float) -> ModelFit:
    """Fit a model by name. `cells` is the number of combinations that people may have, for the Poisson-gamma model.

    >>> file = ClassSizes(np.array([1.0, 2.0, 3.0]), np.array([30.0, 10.0, 5.0]))
    >>> [round(fitted(model, file, 0.5, 100).stays, 3) for model in MODELS]
    [0.684, 0.662, 0.52, 0.403, 0.403]
    """
    if fraction == 1 or not seen.alone:
        return ModelFit(model, float(fraction == 1), seen.alone)
    if model == BEST:
        return best(seen, fraction)
    if model == GAMMA:
        return poisson_gamma(seen, fraction, cells)
    return {ZAYATZ: zayatz, PITMAN: pitman, SLIDE: slide}[model](seen, fraction)


def best(seen: ClassSizes, fraction: float) -> ModelFit:
    """The published choice: Pitman's model in small samples, else the smaller of the slide model and Zayatz.

    Where its likelihood has no maximum, Zayatz instead. Source: Dankar, El Emam, Neisa and Roffey (2012).
    """
    found, plain = (pitman if fraction <= SMALL else slide)(seen, fraction), zayatz(seen, fraction)
    if not found.solved:
        return replace(plain, instead=found.model)
    return found if fraction <= SMALL or found.stays <= plain.stays else plain


def zayatz(seen: ClassSizes, fraction: float) -> ModelFit:
    """Zayatz (1991): m_1 h(1) / sum of m_i h(i), in logarithms so that no size overflows."""
    n = round(seen.records)
    ratios = np.exp(_log_one_record(seen.sizes, n, max(n, round(n / fraction))))
    return ModelFit(ZAYATZ, float(seen.alone * ratios[0] / (seen.classes * ratios).sum()), seen.alone)


def _log_one_record(sizes: Floats, n: int, population: int) -> Floats:
    """Log probability that a class of each size gives exactly one record to a sample of n."""
    from scipy.special import gammaln

    def log_choose(top: Floats, bottom: float) -> Floats:
        possible = top >= bottom
        safe = np.where(possible, top, bottom)
        return np.where(possible, gammaln(safe + 1) - gammaln(bottom + 1) - gammaln(safe - bottom + 1), -np.inf)

    found: Floats = np.log(sizes) + log_choose(population - sizes, n - 1) - log_choose(np.array([float(population)]), n)
    return found


def pitman(seen: ClassSizes, fraction: float) -> ModelFit:
    """Pitman's sampling formula with 0 <= alpha < 1 and theta > -alpha, by maximum likelihood (Hoshino 2001).

    With n records in u classes, s_j of size j, its logarithm is, but for a constant,
    sum_{i<u} log(theta + i alpha) - sum_{i<n} log(theta + i) + sum_j s_j sum_{i<j} log(i - alpha),
    each sum a difference of log gammas. A sample of a population that follows the formula follows it with the same
    parameters. The next person joins a class of one with probability (1 - alpha) / (theta + n), so
    P(F = 1 | f = 1) = product_{i=n}^{N-1} (theta + alpha + i - 1) / (theta + i).
    """
    from scipy.special import betaln, expit

    n, size = seen.records, float(seen.records / fraction)
    if seen.number > n - 0.5:
        return ModelFit(PITMAN, 1.0, seen.alone, limit=NONE, solved=False)
    logit = _peak(lambda grid: _pitman_profile(seen, grid)[0], -EDGE, EDGE)
    alpha, rest = float(expit(logit)), float(expit(-logit))
    both = float(_pitman_profile(seen, np.array([logit]))[1][0])
    stays = np.exp(betaln(both + size - 1, rest) - betaln(both + n - 1, rest))
    expected = n * np.exp(betaln(both + n - 1, rest) - betaln(both, rest))
    found = (("theta", both - alpha), ("alpha", alpha))
    return ModelFit(PITMAN, float(stays), float(expected), found, EWENS if logit < 1 - EDGE else "")


def _pitman_profile(seen: ClassSizes, logit: Floats) -> tuple[Floats, Floats]:
    """For each alpha, the log likelihood at its best theta, and theta + alpha there."""
    from scipy.special import betaln, expit, gammaln

    n, u, alpha, rest = seen.records, seen.number, expit(logit), expit(-logit)
    low, high = np.full(len(logit), -60.0), np.full(len(logit), 60.0)
    for _ in range(80):
        middle = (low + high) / 2
        both = np.exp(middle)
        rises = _digammas(both / alpha, u - 1) / alpha > _digammas(both + rest, n - 1)
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    both = np.exp((low + high) / 2)
    more = seen.sizes > 1
    j, s = seen.sizes[more] - 1, seen.classes[more]
    inside = (gammaln(j) - betaln(rest[:, None], j)) @ s
    height = (u - 1) * np.log(alpha) - betaln(both / alpha, u - 1) + betaln(both + rest, n - 1) + inside
    return height, both


def _digammas(start: Floats, steps: float) -> Floats:
    """digamma(start + steps) - digamma(start), without cancellation for a large start."""
    from scipy.special import digamma

    near = np.minimum(start, LARGE)
    far = np.log1p(steps / (np.maximum(start, LARGE) - 0.5))
    return np.where(start > LARGE, far, digamma(near + steps) - digamma(near))


def poisson_gamma(seen: ClassSizes, fraction: float, cells: float) -> ModelFit:
    """Cell counts are Poisson, their rates gamma (Bethlehem, Keller and Pannekoek 1990), by maximum likelihood.

    Of K cells, empty ones too, each has a rate from gamma(alpha, beta) with K alpha beta = 1; a sample of n has counts
    Poisson(n rate). Then P(F = 1 | f = 1) = ((1 + n beta) / (1 + N beta))^(1 + alpha), and a sample of n has
    n (1 + n beta)^-(1 + alpha) uniques. The mean n / K is the maximum likelihood one, which leaves beta to be found.
    """
    from scipy.special import betaln

    n, cells = seen.records, max(cells, seen.number)

    def height(grid: Floats) -> Floats:
        t = np.exp(grid)
        inside = betaln(t[:, None] / cells, seen.sizes) @ seen.classes
        return np.asarray(-inside - t * np.log1p(n / t) - n * np.log1p(t / n), dtype=np.float64)

    edge = np.log(max(n, cells)) + EDGE
    peak = _peak(height, -EDGE, edge)
    total = float(np.exp(peak))
    beta, alpha = 1 / total, total / cells
    stays = np.exp((1 + alpha) * (np.log1p(n * beta) - np.log1p(n / fraction * beta)))
    expected = n * np.exp(-(1 + alpha) * np.log1p(n * beta))
    found = (("alpha", alpha), ("beta", beta), ("cells", cells))
    return ModelFit(GAMMA, float(stays), float(expected), found, ALIKE if peak > edge - 1 else "")


def slide(seen: ClassSizes, fraction: float) -> ModelFit:
    """Slide negative binomial (Chen and Keller-McNulty 1998): a class has 1 + X people, by maximum likelihood.

    X is negative binomial, P(X = 0) = beta^alpha, and each person is in the sample with probability pi. Then the
    records of a class are B + Y, B Bernoulli(pi) and Y negative binomial with alpha and beta' = beta / (1 - q),
    q = (1 - pi)(1 - beta); classes without a record are not seen, so
    P(j | seen) = ((1 - pi) nb(j) + pi nb(j - 1)) / (1 - (1 - pi) nb(0)), and
    P(F = 1 | f = 1) = pi beta^alpha / ((1 - pi) nb(1) + pi nb(0)) = (1 - q)^(alpha + 1) / (1 - q + alpha q).
    The likelihood is that of 1, 2, 3 and more than 3 records: as the published equations in s_1 and s_2 it looks at
    the small classes, so that a few large ones, which no such model fits, do not decide about uniques.
    """
    if seen.number > seen.records - 0.5:
        return ModelFit(SLIDE, 1.0, seen.alone, limit=NONE, solved=False)
    size = np.log(seen.records / fraction)
    span = np.array([(-EDGE - size, size), (-EDGE, EDGE)])
    at = _highest(lambda points: _slide_likelihood(seen, points, fraction), span)
    mean, alpha = np.exp(at).tolist()
    one, none = (x.item() for x in _thinned(np.ones(1), at[None], fraction))
    stays = np.exp(np.log(fraction) - alpha * np.log1p(mean / alpha) - one)
    classes = float(seen.number / -np.expm1(none))
    found = (("alpha", alpha), ("beta", alpha / (alpha + mean)), ("classes", classes))
    inside = bool((at > span[:, 0] + 0.1).all() and (at < span[:, 1] - 0.1).all())
    return ModelFit(SLIDE, float(stays), float(classes * np.exp(one)), found, "" if inside else FAR_OUT)


def _slide_likelihood(seen: ClassSizes, points: Floats, fraction: float) -> Floats:
    """Of so many classes of 1, 2, ... and more than RARE records, at each point."""
    rare = np.arange(1.0, RARE + 1)
    few = seen.sizes <= RARE
    number = np.bincount(seen.sizes[few].astype(np.int64), seen.classes[few], RARE + 1)[1:]
    some, none = _thinned(rare, points, fraction)
    present = -np.expm1(none)
    large = np.log(np.maximum(present - np.exp(some).sum(axis=1), TINY))
    found: Floats = some @ number + (seen.number - number.sum()) * large - seen.number * np.log(present)
    return found


def _thinned(sizes: Floats, at: Floats, fraction: float) -> tuple[Floats, Floats]:
    """Log probability that a class has so many records, and that it has none; `at` has log mean X and log alpha."""
    from scipy.special import betaln

    alpha, mean = np.exp(at[:, 1, None]), fraction * np.exp(at[:, 0, None])
    none = -alpha * np.log1p(mean / alpha)
    more = -np.log1p(alpha / mean)
    many = none - betaln(alpha, sizes) - np.log(sizes) + sizes * more
    fewer = np.maximum(sizes - 1, 1)
    less = np.where(sizes == 1, none, none - betaln(alpha, fewer) - np.log(fewer) + (sizes - 1) * more)
    return np.logaddexp(np.log1p(-fraction) + many, np.log(fraction) + less), np.log1p(-fraction) + none[:, 0]


def _peak(height: Callable[[Floats], Floats], low: float, high: float) -> float:
    """Where a function is highest: the best point of a grid, and of ever finer ones around it."""
    for _ in range(ROUNDS):
        grid = np.linspace(low, high, GRID)
        at = int(np.argmax(height(grid)))
        low, high = grid[max(at - 1, 0)], grid[min(at + 1, GRID - 1)]
    return float((low + high) / 2 if 0 < at < GRID - 1 else grid[at])


def _highest(height: Callable[[Floats], Floats], span: Floats) -> Floats:
    """Where a function of two variables is highest: by a simplex that starts at the best point of a grid."""
    from scipy.optimize import minimize

    axes = np.meshgrid(*(np.linspace(low, high, GRID) for low, high in span), indexing="ij")
    grid = np.stack(axes, axis=-1).reshape(-1, 2)
    at = grid[int(np.argmax(height(grid)))]
    for _ in range(3):
        options = {"xatol": 1e-9, "fatol": 1e-9, "maxfev": 1000}
        at = minimize(lambda x: -height(x[None])[0], at, method="Nelder-Mead", bounds=span, options=options).x
    return np.asarray(at, dtype=np.float64)
