"""The fitted prior: published numbers, an optimiser of its own, simulation, the two boundaries, and refusals."""

from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import expit

from equipoise.beta_binomial.likelihood import MAX_SHAPE, MIN_PRECISION, sample_of, slopes
from equipoise.beta_binomial.prior import PriorFit, fit, misfit, residuals
from equipoise.ground.errors import DataError, InfeasibleError, ParameterError

SAXONY = (3, 24, 104, 286, 670, 1033, 1343, 1112, 829, 478, 181, 45, 7)
"""Families by number of boys among the first 12 of 13 children, Saxony 1876-1885 (Lindsey and Altham 1998)."""

SEEDS = np.array(
    [
        *[(10, 39, 0, 0), (23, 62, 0, 0), (23, 81, 0, 0), (26, 51, 0, 0), (17, 39, 0, 0)],
        *[(5, 6, 0, 1), (53, 74, 0, 1), (55, 72, 0, 1), (32, 51, 0, 1), (46, 79, 0, 1), (10, 13, 0, 1)],
        *[(8, 16, 1, 0), (10, 30, 1, 0), (8, 28, 1, 0), (23, 45, 1, 0), (0, 4, 1, 0)],
        *[(3, 12, 1, 1), (22, 41, 1, 1), (15, 30, 1, 1), (32, 51, 1, 1), (3, 7, 1, 1)],
    ],
    float,
)
"""Germinated, sown, seed type and root extract of 21 plates (Crowder 1978, Table 3)."""


def drawn(rows: int, alpha: float, beta: float, seed: int, low: int = 5, high: int = 40) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    n = rng.integers(low, high + 1, rows)
    return rng.binomial(n, rng.beta(alpha, beta, rows)).astype(float), n.astype(float)


def curvature(function: Any, at: Any, h: float = 1e-3) -> Any:
    """The Hessian by central differences."""
    steps = h * np.eye(len(at))

    def mixed(s: Any, t: Any) -> float:
        same, opposite = function(at + s + t) + function(at - s - t), function(at + s - t) + function(at - s + t)
        return float(same - opposite) / (4 * h * h)

    return np.array([[mixed(s, t) for s in steps] for t in steps])


def searched(y: Any, n: Any, x: Any) -> tuple[Any, float, Any]:
    """Coefficients and log precision by simplex search on SciPy's own beta-binomial, and its numerical information."""

    def loss(theta: Any) -> float:
        mu, phi = expit(x @ theta[:-1]), np.exp(theta[-1])
        return -float(stats.betabinom.logpmf(y, n.astype(int), mu * phi, (1 - mu) * phi).sum())

    options = {"xatol": 1e-7, "fatol": 1e-11, "maxiter": 20_000, "maxfev": 20_000, "adaptive": True}
    found = optimize.minimize(loss, np.zeros(x.shape[1] + 1), method="Nelder-Mead", options=options)
    found = optimize.minimize(loss, found.x, method="Nelder-Mead", options=options)
    return found.x, -found.fun, np.sqrt(np.diag(np.linalg.inv(curvature(loss, found.x))))


def test_saxony() -> None:
    """Published: alpha 34.09558, beta 31.5715, log-likelihood -12492.9, AIC 24989.7 (Wikipedia, Beta-binomial
    distribution). The likelihood is flat there: the printed optimum stopped 0.002 standard errors short of the top."""
    y = np.repeat(np.arange(13.0), SAXONY)
    n = np.full(len(y), 12.0)
    found = fit(y, n)
    assert found.alpha == pytest.approx(34.09558, abs=0.01)
    assert found.beta == pytest.approx(31.5715, abs=0.01)
    assert found.loglik == pytest.approx(-12492.9, abs=0.05)
    assert 4 - 2 * found.loglik == pytest.approx(24989.7, abs=0.05)
    assert found.loglik >= float(stats.betabinom.logpmf(y, 12, 34.09558, 31.5715).sum())
    assert (found.rows, found.converged, found.boundary) == (6115, True, None)


@pytest.mark.parametrize(("alpha", "beta", "seed"), [(0.5, 1.5, 1), (0.05, 0.02, 2), (3.0, 40.0, 3), (20.0, 20.0, 4)])
def test_against_a_simplex_search(alpha: float, beta: float, seed: int) -> None:
    """U-shaped, skewed and narrow priors: parameters, log-likelihood and standard errors."""
    y, n = drawn(150, alpha, beta, seed)
    found, (theta, height, error) = fit(y, n), searched(y, n, np.ones((150, 1)))
    assert found.mean == pytest.approx(expit(theta[0]), rel=1e-6)
    assert found.precision == pytest.approx(np.exp(theta[1]), rel=1e-5)
    assert found.loglik == pytest.approx(height, abs=1e-8)
    assert found.errors.mean == pytest.approx(found.mean * (1 - found.mean) * error[0], rel=1e-4)
    assert found.errors.precision == pytest.approx(found.precision * error[1], rel=1e-4)


def test_errors_of_alpha_and_beta() -> None:
    """From the numerical information in (log alpha, log beta) themselves, not by way of mean and precision."""
    y, n = drawn(400, 0.5, 1.5, 5)
    found = fit(y, n)

    def height(logs: Any) -> float:
        return float(stats.betabinom.logpmf(y, n.astype(int), *np.exp(logs)).sum())

    information = -curvature(height, np.log([found.alpha, found.beta]))
    errors = np.sqrt(np.diag(np.linalg.inv(information))) * [found.alpha, found.beta]
    assert (found.errors.alpha, found.errors.beta) == pytest.approx(tuple(errors), rel=1e-4)


@pytest.mark.parametrize("columns", [[2], [2, 3], [2, 3, 4]])
def test_seeds(columns: list[int]) -> None:
    """Crowder's plates: seed, root and their interaction, against the simplex search, in the covariates' own units."""
    table = np.column_stack([SEEDS, SEEDS[:, 2] * SEEDS[:, 3]])
    y, n, x = table[:, 0], table[:, 1], table[:, columns] * 40 + 1000
    theta, height, error = searched(y, n, np.column_stack([np.ones(21), table[:, columns]]))
    found = fit(y, n, covariates=x)
    assert isinstance(found.coefficients, np.ndarray)
    assert found.errors.coefficients is not None
    assert found.loglik == pytest.approx(height, abs=1e-7)
    assert found.coefficients[1:] * 40 == pytest.approx(theta[1:-1], abs=1e-4)
    assert found.errors.coefficients[1:] * 40 == pytest.approx(error[1:-1], rel=1e-3)
    assert found.precision == pytest.approx(np.exp(theta[-1]), rel=1e-4)
    mean = expit(np.column_stack([np.ones(21), table[:, columns]]) @ theta[:-1])
    assert found.mean == pytest.approx(mean, abs=1e-5)
    assert found.alpha / (found.alpha + found.beta) == pytest.approx(found.mean)


def test_slopes_are_those_of_the_likelihood() -> None:
    from equipoise.beta_binomial.likelihood import _value

    rng = np.random.default_rng(6)
    n = rng.uniform(0.5, 90, 40)
    y, x = n * rng.random(40), np.column_stack([np.ones(40), rng.normal(size=40)])
    sample, h, eye = sample_of(y, n, x), 1e-5, np.eye(3)
    for theta in (np.array([-0.4, 0.8, 1.0]), np.array([0.2, -0.3, -3.0]), np.array([0.1, 0.5, 7.0])):
        gradient, hessian = slopes(sample, theta)
        steps = [(_value(sample, theta + h * e) - _value(sample, theta - h * e)) / (2 * h) for e in eye]
        bends = [(slopes(sample, theta + h * e)[0] - slopes(sample, theta - h * e)[0]) / (2 * h) for e in eye]
        assert gradient == pytest.approx(steps, rel=1e-6, abs=1e-6)
        assert hessian == pytest.approx(np.array(bends), rel=1e-6, abs=1e-6)


def test_the_truth_is_recovered() -> None:
    """80 runs of 300 domains: bias below 3 standard errors of the mean, errors calibrated within a quarter."""
    truth = np.array([0.5, 1.5])
    fits = [fit(*drawn(300, *truth, seed)) for seed in range(100, 180)]
    found = np.array([(f.alpha, f.beta) for f in fits])
    errors = np.array([(f.errors.alpha, f.errors.beta) for f in fits])
    assert (np.abs(found.mean(axis=0) - truth) < 3 * found.std(axis=0) / np.sqrt(80)).all()
    assert ((found - truth) / errors).std(axis=0) == pytest.approx([1, 1], abs=0.25)


def test_the_paper_s_prior_is_recovered(full: Any) -> None:
    """100 runs (500 in full) of 1,000 domains, alpha = 1/2, beta = 3/2: bias below 2 standard errors of the mean."""
    random, found, runs = np.random.default_rng(0), [], full(100, 500)
    for _ in range(runs):
        n = random.integers(5, 41, 1000)
        made = fit(random.binomial(n, random.beta(0.5, 1.5, 1000)), n)
        found.append((made.alpha, made.beta))
    spread = np.std(found, axis=0) / np.sqrt(runs)
    assert (np.abs(np.mean(found, axis=0) - (0.5, 1.5)) < 2 * spread).all()


def test_coefficients_are_recovered() -> None:
    rng, truth = np.random.default_rng(7), np.array([-1.2, 0.6, -0.4, 4.0])
    scores = []
    for _ in range(60):
        x, n = rng.normal(size=(400, 2)), rng.integers(5, 41, 400)
        mu = expit(truth[0] + x @ truth[1:3])
        found = fit(rng.binomial(n, rng.beta(4 * mu, 4 * (1 - mu))), n, covariates=x)
        assert found.coefficients is not None
        assert found.errors.coefficients is not None
        errors = np.append(found.errors.coefficients, found.errors.precision)
        scores.append((np.append(found.coefficients, found.precision) - truth) / errors)
    assert (np.abs(np.mean(scores, axis=0)) < 3.3 / np.sqrt(60)).all()
    assert np.std(scores, axis=0) == pytest.approx(np.ones(4), abs=0.3)


def test_no_spread() -> None:
    """Equal shares of equal samples: less spread than chance, so the binomial, and its error of the mean."""
    found = fit(np.full(30, 6.0), np.full(30, 20.0))
    assert found.boundary == "no spread"
    assert found.precision == pytest.approx(MAX_SHAPE / 0.3)
    assert (found.alpha, found.beta) == pytest.approx((MAX_SHAPE, MAX_SHAPE * 7 / 3))
    assert found.errors.mean == pytest.approx(np.sqrt(0.3 * 0.7 / 600), rel=1e-6)
    assert np.isnan([found.errors.alpha, found.errors.beta, found.errors.precision]).all()
    assert found.loglik == pytest.approx(30 * stats.binom.logpmf(6, 20, 0.3), abs=1e-6)
    assert found.words.startswith("mean 0.3 (s.e. 0.019), no more spread between domains than chance makes, fitted")


def test_the_boundary_is_where_the_likelihood_has_its_top() -> None:
    """Fits called without spread are not beaten by any precision tried; the others beat the binomial."""
    calls = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = rng.integers(2, 30, 12)
        y = rng.binomial(n, rng.beta(60, 90, 12))
        found = fit(y, n)
        binomial = float(stats.binom.logpmf(y, n, y.sum() / n.sum()).sum())
        calls.append(found.boundary)
        tried = [
            float(stats.betabinom.logpmf(y, n, m * phi, (1 - m) * phi).sum())
            for m in y.sum() / n.sum() * np.linspace(0.9, 1.1, 5)
            for phi in np.geomspace(0.1, 1e6, 30)
        ]
        assert found.loglik >= max(*tried, binomial) - 1e-5
    assert 8 < sum(call == "no spread" for call in calls) < 32


def test_all_or_nothing() -> None:
    """Every domain full or empty: the precision goes to zero, the mean is the share of full domains."""
    y, n = np.array([20.0, 0, 20, 0, 7, 0, 0, 0, 1, 0]), np.array([20.0, 20, 20, 5, 7, 9, 9, 9, 1, 1])
    found = fit(y, n)
    assert found.boundary == "all or nothing"
    assert found.precision == pytest.approx(MIN_PRECISION)
    assert found.mean == pytest.approx(0.4, abs=1e-5)
    assert found.errors.mean == pytest.approx(np.sqrt(0.4 * 0.6 / 10), rel=1e-4)
    assert found.loglik == pytest.approx(4 * np.log(0.4) + 6 * np.log(0.6), abs=1e-4)


def test_classes_are_fitted_apart() -> None:
    first, second = drawn(200, 0.5, 1.5, 8), drawn(120, 9.0, 3.0, 9)
    y, n = np.concatenate([first[0], second[0]]), np.concatenate([first[1], second[1]])
    codes = np.repeat([7, 3], [200, 120])
    mixed = np.random.default_rng(10).permutation(320)
    found = fit(y[mixed], n[mixed], codes[mixed])
    alone = fit(*second), fit(*first)
    assert isinstance(found.alpha, np.ndarray)
    assert isinstance(found.beta, np.ndarray)
    at = (codes[mixed] == 7).astype(int)
    assert found.alpha == pytest.approx(np.array([f.alpha for f in alone])[at])
    assert found.beta == pytest.approx(np.array([f.beta for f in alone])[at])
    assert found.mean == pytest.approx([f.mean for f in alone])
    assert found.precision == pytest.approx([f.precision for f in alone])
    assert found.errors.alpha == pytest.approx([f.errors.alpha for f in alone])
    assert found.loglik == pytest.approx(sum(f.loglik for f in alone))
    assert [part.rows for part in found.parts] == [120, 200]
    assert found.words.startswith("a prior for each of 2 classes, fitted by maximum likelihood to 320 rows of domains")


def test_classes_with_covariates() -> None:
    y, n = drawn(300, 2.0, 5.0, 11)
    x = np.random.default_rng(12).normal(size=(300, 2))
    codes = np.arange(300) % 2
    found = fit(y, n, codes, x)
    even = fit(y[::2], n[::2], covariates=x[::2])
    assert isinstance(found.alpha, np.ndarray)
    assert isinstance(found.mean, np.ndarray)
    assert found.alpha[::2] == pytest.approx(even.alpha)
    assert found.mean[::2] == pytest.approx(even.mean)
    assert found.coefficients is not None
    assert found.coefficients.shape == (2, 3)
    assert found.coefficients[0] == pytest.approx(even.coefficients)
    assert np.shape(found.errors.precision) == (2,)


def test_what_does_not_matter() -> None:
    """The order of rows, rows without a sample, and whether equal rows stand together."""
    y, n = drawn(200, 0.5, 1.5, 13)
    found = fit(y, n)
    mixed = np.random.default_rng(14).permutation(205)
    again = fit(np.append(y, np.zeros(5))[mixed], np.append(n, np.zeros(5))[mixed])
    assert (again.alpha, again.beta, again.loglik) == pytest.approx((found.alpha, found.beta, found.loglik), rel=1e-9)
    assert again.rows == found.rows == 200
    twice = fit(np.tile(y, 2), np.tile(n, 2))
    assert (twice.alpha, twice.errors.alpha) == pytest.approx((found.alpha, found.errors.alpha / np.sqrt(2)), rel=1e-7)


def test_effective_sample_sizes() -> None:
    """Fractions are taken as they are, and lie between the whole numbers around them."""
    y, n = drawn(300, 0.5, 1.5, 15)
    full, less = fit(y, n), fit(y * 0.7, n * 0.7)
    assert less.mean == pytest.approx(full.mean, abs=0.01)
    assert less.precision > full.precision


def test_full_domains_survive_rounding() -> None:
    """y = n scaled by 0.83 / n x n need not be n to the last digit, and must neither be refused nor count as less."""
    n = np.arange(2.0, 60.0)
    y = np.where(np.arange(58) % 3 == 0, n, 0.0)
    rough = fit(y * (0.83 / 3) * 3, n * 0.83)
    assert rough.boundary == "all or nothing"
    assert rough.mean == pytest.approx(20 / 58, abs=1e-4)


def test_a_very_rare_cell() -> None:
    """Three of 10^12 sampled: the mean is as small as that, without spread; with spread alpha is still found."""
    found = fit(np.array([1.0, 1.0, 1.0, *np.zeros(97)]), np.full(100, 1e10))
    assert found.mean == pytest.approx(3e-12, rel=1e-3)
    assert found.errors.mean == pytest.approx(3e-12 / np.sqrt(3), rel=0.05)
    rng = np.random.default_rng(25)
    y = rng.poisson(1e7 * rng.gamma(0.5, 2e-7, 3000)).astype(float)  # Beta(0.5, 5e6) and n = 10^7, in the limit
    spread = fit(y, np.full(3000, 1e7))
    assert abs(spread.alpha - 0.5) < 3 * spread.errors.alpha
    assert abs(spread.beta - 5e6) < 3 * spread.errors.beta


def test_huge_samples() -> None:
    """With ten million sampled in each domain the shares are known: the fit is that of a beta law to them."""
    shares = np.random.default_rng(16).beta(2.0, 30.0, 400)
    n = np.full(400, 1e7)
    found = fit(np.round(shares * n), n)
    alpha, beta = stats.beta.fit(shares, floc=0, fscale=1)[:2]
    assert (found.alpha, found.beta) == pytest.approx((alpha, beta), rel=1e-3)


def test_a_million_domains(full: Any) -> None:
    """100,000 domains here, a million in full: the estimates are within four standard errors."""
    y, n = drawn(full(100_000, 1_000_000), 0.5, 1.5, 17, 1, 60)
    found = fit(y, n)
    assert abs(found.alpha - 0.5) < 4 * found.errors.alpha
    assert abs(found.beta - 1.5) < 4 * found.errors.beta


@pytest.mark.parametrize(
    ("y", "n", "says"),
    [
        ([3], [9], "there are 1;"),
        ([0, 0], [0, 0], "there are 0;"),
        ([3, 0], [9, 0], "there are 1;"),
        ([0, 1, 1], [1, 1, 1], "more than one sampled"),
        ([0, 0, 0], [5, 6, 7], "none of the sampled"),
        ([5, 6, 7], [5, 6, 7], "all of the sampled"),
    ],
)
def test_what_cannot_be_told(y: list[float], n: list[float], says: str) -> None:
    with pytest.raises(InfeasibleError, match=says):
        fit(np.array(y), np.array(n))


def test_nothing_at_all() -> None:
    none = np.empty(0)
    with pytest.raises(InfeasibleError, match="there are 0;"):
        fit(none, none, none.astype(int), none[:, None])


def test_a_repr_says_the_words_alone() -> None:
    y, n = drawn(30, 2.0, 5.0, 26)
    found = fit(y, n, covariates=np.arange(30.0))
    assert repr(found) == f"Fit({found.words!r})"


@pytest.mark.parametrize(
    ("y", "n"), [([3, 4], [9, 3]), ([-1, 2], [3, 3]), ([1, np.nan], [3, 3]), ([1, 1], [np.inf, 3]), ([1, 1], [3, 3, 3])]
)
def test_wrong_counts(y: list[float], n: list[float]) -> None:
    with pytest.raises(DataError):
        fit(np.array(y), np.array(n))


def test_refused_covariates_and_classes() -> None:
    y, n = drawn(50, 2.0, 5.0, 18)
    x = np.random.default_rng(19).normal(size=(50, 2))
    with pytest.raises(InfeasibleError, match="Covariate 2 is the same"):
        fit(y, n, covariates=np.column_stack([x[:, 0], np.full(50, 0.1)]))
    with pytest.raises(InfeasibleError, match="collinear"):
        fit(y, n, covariates=np.column_stack([x, x @ [1.0, 2.0] + 3]))
    with pytest.raises(InfeasibleError, match="too few domains, 3"):
        fit(y[:3], n[:3], covariates=x[:3])
    with pytest.raises(InfeasibleError, match="tell without error"):
        fit(np.where(x[:, 0] > 0, n, 0), n, covariates=x)
    with pytest.raises(DataError, match="finite numbers"):
        fit(y, n, covariates=x[:40])
    with pytest.raises(DataError, match="whole number per row"):
        fit(y, n, np.linspace(0, 1, 50))  # type: ignore[arg-type]
    with pytest.raises(InfeasibleError, match=r"Class 2 of 2 .*none of the sampled"):
        fit(np.append(y, [0.0, 0.0]), np.append(n, [9.0, 9.0]), np.repeat([1, 2], [50, 2]))


def test_residuals_by_hand() -> None:
    """Uniform prior, n = 3: y has 4 equally likely values, and the place within the quarter is the uniform number."""
    found = PriorFit(1.0, 1.0, 0.5, 2.0, None, 0.0, True, None, 1, "")  # type: ignore[arg-type]
    y, uniform = np.array([0.0, 1, 2, 3]), np.array([0.5, 0.2, 0.9, 0.999])
    expected = stats.norm.ppf((y + uniform) / 4)
    assert residuals(y, np.full(4, 3.0), found, uniform) == pytest.approx(expected, abs=1e-12)
    with pytest.raises(ParameterError):
        residuals(y, np.full(4, 3.0), found, np.array([0.0, 0.2, 0.9, 1.0]))


@pytest.mark.parametrize("high", [10, 400])
def test_residuals_of_the_right_prior_are_normal(high: int) -> None:
    y, n = drawn(3000, 0.5, 1.5, 20, 2, high)
    left = residuals(y, n, fit(y, n), np.random.default_rng(21).random(3000))
    assert (left.mean(), left.std()) == pytest.approx((0, 1), abs=0.05)
    checked = misfit(left)
    assert checked.p > 0.05
    assert checked.words.startswith("The prior fits: ")
    assert checked.distance == pytest.approx(stats.kstest(left, "norm").statistic)
    assert len(checked.expected) == len(checked.observed) == 400
    assert checked.observed == pytest.approx(checked.expected, abs=0.5)


def test_residuals_show_two_kinds_of_domains() -> None:
    """Half the domains near 0.1 and half near 0.5 are not one beta law."""
    rng = np.random.default_rng(22)
    n = np.full(1000, 60)
    y = rng.binomial(n, np.where(rng.random(1000) < 0.5, 0.1, 0.5))
    checked = misfit(residuals(y, n, fit(y, n), rng.random(1000)))
    assert checked.p < 1e-4
    assert checked.words.startswith("The prior does not fit: ")


def test_residuals_of_effective_sample_sizes() -> None:
    """Counts scaled by a half fall between whole numbers: centre and spread stay those of the normal law."""
    y, n = drawn(4000, 2.0, 6.0, 23, 20, 60)
    left = residuals(y * 0.5, n * 0.5, fit(y * 0.5, n * 0.5), np.random.default_rng(24).random(4000))
    assert (left.mean(), left.std()) == pytest.approx((0, 1), abs=0.04)
