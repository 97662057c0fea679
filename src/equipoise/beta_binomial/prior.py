"""Prior for the shares of many domains, fitted by maximum likelihood: y ~ BetaBinomial(n, alpha, beta).

In the mean mu = alpha/(alpha + beta) and the precision phi = alpha + beta, with logit mu = x'gamma (an intercept alone,
or covariates of the domains) and one phi, the log-likelihood of a domain is, up to a constant,

    l = y log mu + (n - y) log(1 - mu) + g(mu phi, y) + g((1 - mu) phi, n - y) - g(phi, n)

with g(x, k) = log Gamma(x + k) - log Gamma(x) - k log x, the part that spread adds to the binomial. It is climbed by
Newton's method in (gamma, log phi) with the analytic gradient and Hessian (digamma and trigamma differences), from the
binomial fit and the moment estimate of phi; standard errors are from the observed information, by the delta method.

Two ends have no finite phi. Without spread (the score of 1/phi at 0, sum of y(y-1)/mu + (n-y)(n-y-1)/(1-mu) - n(n-1),
is not positive, and no smaller phi tried is better) the likelihood rises to the binomial; where every domain has all or
nothing it rises to phi = 0. There phi is a number that stands for the limit (10^10 over the rarer share, or 10^-6),
`boundary` says so, and errors of phi are NaN.

Sources: Griffiths (1973), Biometrics 29, 637-648; Crowder (1978), Applied Statistics 27, 34-37 (covariates); Dunn and
Smyth (1996), J. Comp. Graph. Stat. 5, 236-244 (residuals).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equipoise.beta_binomial.law import cdf, collapse, log_pmf
from equipoise.beta_binomial.likelihood import best, logits, sample_of, shapes, slopes
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError, InfeasibleError, ParameterError


class Errors(NamedTuple):
    """Standard errors; NaN where a parameter is at a boundary. Each has the shape of its estimate, but with classes
    and no covariates those of alpha and beta are one per class."""

    alpha: float | Floats
    beta: float | Floats
    mean: float | Floats
    precision: float | Floats
    coefficients: Floats | None = None


@dataclass(frozen=True, eq=False, repr=False)
class PriorFit:
    """A beta prior fitted by maximum likelihood, with standard errors.

    `alpha` and `beta` are numbers, or one per row given where there are classes or covariates: they broadcast against
    the rows either way. `mean` is a number, one per class, or one per row with covariates; `precision` a number or one
    per class; `coefficients` the intercept and slopes of logit mean (one row per class). `boundary` is None, "no
    spread" or "all or nothing"; `rows` counts the rows with a sample; `parts` holds the fit of each class, in the
    order of the codes.
    """

    alpha: float | Floats
    beta: float | Floats
    mean: float | Floats
    precision: float | Floats
    errors: Errors
    loglik: float
    converged: bool
    boundary: str | None
    rows: int
    words: str
    coefficients: Floats | None = None
    parts: tuple["PriorFit", ...] = ()

    def __repr__(self) -> str:
        return f"Fit({self.words!r})"

    def per_row(self, rows: int) -> tuple[Floats, Floats]:
        """alpha and beta as arrays, one of each per row."""
        return np.broadcast_to(self.alpha, (rows,)), np.broadcast_to(self.beta, (rows,))


def fit(
    y: Floats, n: Floats, classes: Integers | None = None, covariates: Floats | None = None, *, unit: str = "domains"
) -> PriorFit:
    """The prior of the domains' shares, by maximum likelihood.

    `y` of `n` sampled people of each domain are in the cell; `n` (and `y`) may be fractions, effective sample sizes:
    then it is a pseudo-likelihood. `classes`, one integer code per row, asks for a prior of each class; `covariates`,
    a column each, for a regression of the logit of the mean with a common precision. Rows with n = 0 say nothing.
    Misleads when domains are few (a fit without spread is then more certain than they allow), when large domains have
    other shares than small ones, and when the spread is not that of a beta law: see `residuals` and `misfit`.
    Cost: O(rows log rows) once to collapse equal rows, then a few Newton steps of O(distinct rows).

    >>> prior = fit(np.array([0.0, 1, 5, 2, 9]), np.full(5, 10.0))
    >>> prior.words
    'alpha 0.59 (s.e. 0.45), beta 1.11 (s.e. 0.91), fitted by maximum likelihood to 5 domains.'
    """
    y, n, x = _checked(y, n, covariates)
    if classes is None or not len(y):
        return _single(y, n, x, unit)
    codes = np.asarray(classes)
    if codes.shape != y.shape or codes.dtype.kind not in "iu":
        raise DataError("classes must be one whole number per row.")
    kinds, place = np.unique(codes, return_inverse=True)
    order = np.split(np.argsort(place, kind="stable"), np.cumsum(np.bincount(place))[:-1])
    parts = [_of_class(k, len(kinds), y[at], n[at], None if x is None else x[at], unit) for k, at in enumerate(order)]
    return _joined(parts, order, len(y), unit)


def _checked(y: Floats, n: Floats, covariates: Floats | None) -> tuple[Floats, Floats, Floats | None]:
    y, n = np.asarray(y, float), np.asarray(n, float)
    if y.ndim != 1 or y.shape != n.shape:
        raise DataError("y and n must be two columns of the same length.")
    if not (np.isfinite(y).all() and np.isfinite(n).all()):
        raise DataError(f"{int((~np.isfinite(y) | ~np.isfinite(n)).sum()):,} rows have no finite y or n.")
    y = np.where(np.abs(y - n) <= 1e-12 * n, n, y)  # scaled to an effective sample size, y = n may be off by rounding
    wrong = (y < 0) | (n < 0) | (y > n)
    if wrong.any():
        raise DataError(f"{int(wrong.sum()):,} rows have counts that are negative or a cell larger than its domain.")
    if covariates is None:
        return y, n, None
    x = np.asarray(covariates, float)
    x = x[:, None] if x.ndim == 1 else x
    if x.ndim != 2 or len(x) != len(y) or not np.isfinite(x).all():
        raise DataError("covariates must be a table of finite numbers, one row per row of y.")
    return y, n, x


def _of_class(k: int, of: int, y: Floats, n: Floats, x: Floats | None, unit: str) -> PriorFit:
    try:
        return _single(y, n, x, unit)
    except InfeasibleError as problem:
        raise InfeasibleError(f"Class {k + 1} of {of} (in the order of the codes): {problem}") from None


def _single(y: Floats, n: Floats, x: Floats | None, unit: str) -> PriorFit:
    used = n > 0
    _refuse_what_cannot_tell(y[used], n[used], unit)
    design, back = _design(None if x is None else x[used], int(used.sum()), unit)
    sample = sample_of(y[used], n[used], design)
    theta, boundary, converged = best(sample)
    covariance = _covariance(-slopes(sample, theta)[1], back, boundary)
    loglik = float(sample.weight @ log_pmf(sample.y, sample.n, *shapes(logits(sample, theta), theta[-1])))
    theta = np.append(back @ theta[:-1], theta[-1])
    estimates = _estimates(theta, covariance, x)
    complete = replace(estimates, loglik=loglik, converged=converged, boundary=boundary, rows=int(used.sum()))
    return replace(complete, words=_words(complete, unit))


def _refuse_what_cannot_tell(y: Floats, n: Floats, unit: str) -> None:
    """Refuse samples whose likelihood has no unique maximum; the user must give a prior there."""
    wish = "give the prior instead of fitting it."
    if len(y) < 2:
        raise InfeasibleError(f"To fit a prior takes at least 2 {unit} with a sample, there are {len(y)}; {wish}")
    if (n <= 1).all():
        raise InfeasibleError(f"No prior can be fitted where none of the {unit} has more than one sampled; {wish}")
    if (y == 0).all() or (y == n).all():
        share = "none" if (y == 0).all() else "all"
        raise InfeasibleError(f"No prior can be fitted where {share} of the sampled are in the cell; {wish}")


def _design(x: Floats | None, rows: int, unit: str) -> tuple[Floats, Floats]:
    """The intercept and the covariates, centred and scaled, and the matrix that takes coefficients back."""
    if x is None:
        return np.ones((rows, 1)), np.eye(1)
    centre, scale = x.mean(axis=0), x.std(axis=0)
    constant = np.flatnonzero(scale <= 1e-12 * np.abs(x).max(axis=0))
    if len(constant):
        raise InfeasibleError(f"Covariate {constant[0] + 1} is the same in all {unit}: leave it out.")
    scaled = np.column_stack([np.ones(rows), (x - centre) / scale])
    if rows <= scaled.shape[1]:
        raise InfeasibleError(
            f"There are too few {unit}, {rows}, for so many covariates, {x.shape[1]}: leave some out."
        )
    if np.linalg.matrix_rank(scaled, tol=1e-9 * np.sqrt(rows)) < scaled.shape[1]:
        raise InfeasibleError(f"The {x.shape[1]} covariates of {rows:,} {unit} are collinear: leave some out.")
    back = np.diag(np.append(1.0, 1 / scale))
    back[0, 1:] = -centre / scale
    return scaled, back


def _covariance(information: Floats, back: Floats, boundary: str | None) -> Floats:
    """Covariance of (gamma, log phi) in the covariates' own units; NaN for log phi on a boundary."""
    covariance = np.full(information.shape, np.nan)
    free = len(information) - (boundary is not None)
    if np.linalg.eigvalsh(information[:free, :free])[0] > 0:
        covariance[:free, :free] = np.linalg.inv(information[:free, :free])
    covariance[:-1, :-1] = back @ covariance[:-1, :-1] @ back.T
    covariance[:-1, -1] = covariance[-1, :-1] = back @ covariance[:-1, -1]
    return covariance


def _estimates(theta: Floats, covariance: Floats, x: Floats | None) -> PriorFit:
    """alpha, beta, mean and precision with standard errors by the delta method; the rest of the Fit is still empty."""
    from scipy.special import expit

    design = np.ones((1, 1)) if x is None else np.column_stack([np.ones(len(x)), x])
    eta = design @ theta[:-1]
    mean, precision = expit(eta), float(np.exp(theta[-1]))
    alpha, beta = shapes(eta, theta[-1])
    tilt = (mean * expit(-eta))[:, None] * design
    of = [
        _delta(column, covariance)
        for column in (np.column_stack([precision * tilt, alpha]), np.column_stack([-precision * tilt, beta]))
    ]
    of_mean, of_coefficients = _delta(tilt, covariance[:-1, :-1]), np.sqrt(np.diag(covariance)[:-1])
    of_precision = precision * float(np.sqrt(covariance[-1, -1]))
    nothing = (0.0, True, None, 0, "")
    if x is None:
        errors = Errors(float(of[0][0]), float(of[1][0]), float(of_mean[0]), of_precision)
        return PriorFit(float(alpha[0]), float(beta[0]), float(mean[0]), precision, errors, *nothing)
    errors = Errors(of[0], of[1], of_mean, of_precision, of_coefficients)
    return PriorFit(alpha, beta, mean, precision, errors, *nothing, coefficients=theta[:-1])


def _delta(slopes: Floats, covariance: Floats) -> Floats:
    """The standard error of each row's quantity, from its slopes in the parameters."""
    return np.asarray(np.sqrt(((slopes @ covariance) * slopes).sum(axis=1)))


def _words(prior: PriorFit, unit: str) -> str:
    fitted = f"fitted by maximum likelihood to {prior.rows:,} {unit}"
    fitted += "." if prior.converged else ", but the climb did not settle: the numbers are not to be relied on."
    spread = f"precision {prior.precision:.3g} (s.e. {prior.errors.precision:.2g})"
    if prior.boundary == "no spread":
        spread = f"no more spread between {unit} than chance makes"
    elif prior.boundary:
        spread = f"all or nothing in each of the {unit}"
    if prior.coefficients is not None and prior.errors.coefficients is not None:
        pairs = zip(prior.coefficients, prior.errors.coefficients, strict=True)
        listed = ", ".join(f"{value:.3g} (s.e. {error:.2g})" for value, error in pairs)
        return f"logit of the mean with intercept and slopes {listed}; {spread}; {fitted}"
    if prior.boundary:
        return f"mean {prior.mean:.3g} (s.e. {prior.errors.mean:.2g}), {spread}, {fitted}"
    alpha, beta = (
        f"{prior.alpha:.2f} (s.e. {prior.errors.alpha:.2f})",
        f"{prior.beta:.2f} (s.e. {prior.errors.beta:.2f})",
    )
    return f"alpha {alpha}, beta {beta}, {fitted}"


def _joined(parts: Sequence[PriorFit], order: Sequence[Integers], rows: int, unit: str) -> PriorFit:
    """The fits of the classes as one: alpha and beta by row, the rest by class (by row with covariates)."""
    by_row = parts[0].coefficients is not None

    def scattered(values: Sequence[float | Floats]) -> Floats:
        out = np.empty(rows)
        for at, value in zip(order, values, strict=True):
            out[at] = value
        return out

    def gathered(values: Sequence[float | Floats]) -> Floats:
        return scattered(values) if by_row else np.array(values)

    errors = Errors(
        gathered([part.errors.alpha for part in parts]),
        gathered([part.errors.beta for part in parts]),
        gathered([part.errors.mean for part in parts]),
        np.array([part.errors.precision for part in parts]),
        np.array([part.errors.coefficients for part in parts]) if by_row else None,
    )
    ends = sorted({part.boundary for part in parts if part.boundary})
    joint = PriorFit(
        scattered([part.alpha for part in parts]),
        scattered([part.beta for part in parts]),
        gathered([part.mean for part in parts]),
        np.array([part.precision for part in parts]),
        errors,
        sum(part.loglik for part in parts),
        all(part.converged for part in parts),
        ", ".join(ends) or None,
        sum(part.rows for part in parts),
        "",
        np.array([part.coefficients for part in parts]) if by_row else None,
        tuple(parts),
    )
    return replace(joint, words=_class_words(parts, joint.rows, unit))


def _class_words(parts: Sequence[PriorFit], rows: int, unit: str) -> str:
    precisions = [float(part.precision) for part in parts if part.boundary is None]
    text = f"a prior for each of {len(parts)} classes, fitted by maximum likelihood to {rows:,} rows of {unit}"
    if precisions:
        text += f", precision {min(precisions):.3g} to {max(precisions):.3g}"
    for end in ("no spread", "all or nothing"):
        count = sum(part.boundary == end for part in parts)
        text += f"; {end} in {count} of them" if count else ""
    unsettled = sum(not part.converged for part in parts)
    return text + (f"; not settled in {unsettled} of them, which are not to be relied on." if unsettled else ".")


def residuals(y: Floats, n: Floats, fit: PriorFit, uniform: Floats) -> Floats:
    """Randomised quantile residuals: the normal quantile of a point between P(Y <= y - 1) and P(Y <= y).

    `uniform` holds one number in (0, 1) per row, the place of that point. Under the model the residuals are standard
    normal, exactly but for the error in the fitted prior; with effective sample sizes, which are fractions, nearly.
    Source: Dunn and Smyth (1996). Misleads when n is 0 or 1, which says nothing of spread. Cost: that of the
    distribution function, once for equal rows.

    >>> prior = fit(np.array([0.0, 1, 2]), np.full(3, 2.0))  # 0, 1 and 2 equally likely: the upper end of 1 is 2/3
    >>> residuals(np.array([1.0]), np.array([2.0]), prior, np.array([0.9])).round(3)
    array([0.341])
    """
    y, n, uniform = np.asarray(y, float), np.asarray(n, float), np.asarray(uniform, float)
    if uniform.shape != y.shape or not ((uniform > 0) & (uniform < 1)).all():
        raise ParameterError("uniform must hold one number between 0 and 1, ends excluded, for each row.")
    from scipy.special import ndtri

    alpha, beta = fit.per_row(len(y))
    first, kind, _ = collapse(y, n, alpha, beta)
    law = n[first], alpha[first], beta[first]
    low, high = cdf(y[first] - 1, *law)[kind], cdf(y[first], *law)[kind]
    point = np.clip(low + uniform * (high - low), 1e-300, 1 - 2**-53)
    return np.asarray(ndtri(point))


class Misfit(NamedTuple):
    """The largest gap between the residuals' distribution and the normal one, its p-value, and a Q-Q chart's points."""

    distance: float
    p: float
    words: str
    expected: Floats
    observed: Floats


def misfit(residuals: Floats, points: int = 400) -> Misfit:
    """Kolmogorov and Smirnov's test that the residuals are standard normal, in words, with a Q-Q chart's numbers.

    The p-value takes the prior as given; where it was fitted to the same rows a misfit must be larger to be seen.
    Misleads when rows are very many: then a harmless gap is found as well, so read the distance.
    Cost: O(rows log rows).

    >>> misfit(np.array([-1.0, -0.3, 0.2, 0.9])).words
    'The prior fits: the residuals are 0.18 from normal at most (p = 0.995).'
    """
    from scipy.special import ndtri
    from scipy.stats import kstest

    ordered: NDArray[np.float64] = np.sort(np.asarray(residuals, float))
    if not len(ordered):
        raise DataError("There are no residuals to test.")
    test = kstest(ordered, "norm")
    distance, p = float(test.statistic), float(test.pvalue)
    places = np.unique(np.linspace(0, len(ordered) - 1, min(points, len(ordered))).round().astype(np.int64))
    verdict = "The prior fits" if p >= 0.05 else "The prior does not fit"
    words = f"{verdict}: the residuals are {distance:.2g} from normal at most (p = {p:.3g})."
    return Misfit(distance, p, words, np.asarray(ndtri((places + 0.5) / len(ordered))), ordered[places])
