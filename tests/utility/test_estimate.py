"""A user's statistic: each against SciPy or NumPy, its error against simulation, and the link to the theory."""

from math import sqrt
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.theory import mean as theory_mean
from equipoise.utility import Estimate
from equipoise.utility._estimators import correlated, gini, least_squares, quantile
from equipoise.utility._queries import overlap, parse

Z = 1.959963984540054


def file(weight: str | None = None, sample: str | None = None, **columns: Any) -> eq.Records:
    return eq.read(pl.DataFrame(columns), eq.Roles(weight=weight, sample=sample))


def one(query: str, new: eq.Records, old: eq.Records, **given: Any) -> dict[str, Any]:
    table = Estimate(query, **given).measure(new, old).detail
    assert table.height == 1
    return table.row(0, named=True)


# --- the text -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "columns", "share"),
    [
        ("income", "mean", ("income",), 0.5),
        ("mean:income", "mean", ("income",), 0.5),
        (" mean : income ", "mean", ("income",), 0.5),
        ("quantile:income,0.9", "quantile", ("income",), 0.9),
        ("quantile: income @ 0.25", "quantile", ("income",), 0.25),
        ("regression: y ~ x1 + x2", "regression", ("y", "x1", "x2"), 0.5),
        ("regression:y~x", "regression", ("y", "x"), 0.5),
        ("table: sex, region", "table", ("sex", "region"), 0.5),
        ("table:sex+region", "table", ("sex", "region"), 0.5),
        ("table:sex", "table", ("sex",), 0.5),
        ("gini: income", "gini", ("income",), 0.5),
        ("correlation: x, y", "correlation", ("x", "y"), 0.5),
    ],
)
def test_queries_are_read(text: str, kind: str, columns: tuple[str, ...], share: float) -> None:
    question = parse(text)
    assert (question.kind, question.columns, question.share) == (kind, columns, share)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "mean:", "median:x", "quantile:x", "quantile:x,much", "quantile:,0.5", "regression:y"),
        *("correlation:x", "correlation:x,y,z", "gini:", "table:a by b", "mean:x by ", "mean:x by x"),
        *("regression:~x", "regression:y ~", "regression:y ~ x + x", "table:", "table:a,,b", "table:a,a"),
    ],
)
def test_queries_that_cannot_be_read(text: str) -> None:
    """One sentence, with every shape there is."""
    with pytest.raises(eq.ParameterError, match=r"Cannot read the query .*quantile:income,0\.9"):
        Estimate(text)


@pytest.mark.parametrize("bad", [{"score": "both"}, {"level": 95}, {"level": 0}, {"query": "quantile:x,90"}])
def test_bad_parameters(bad: dict[str, Any]) -> None:
    with pytest.raises(eq.ParameterError):
        Estimate(**({"query": "x"} | bad))


# --- the statistics -----------------------------------------------------------------------------------------------


def test_a_mean_by_hand_and_scipy() -> None:
    """Mean and standard error of the mean; intervals of half-widths z s and z s'."""
    from scipy.stats import sem

    a, b = [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 6.0]
    row = one("mean:x", file(x=b), file(x=a))
    s, t = float(sem(a)), float(sem(b))
    assert (row["original"], row["released"], row["error"], row["released_error"]) == pytest.approx((2.5, 3.0, s, t))
    shared = min(2.5 + Z * s, 3 + Z * t) - max(2.5 - Z * s, 3 - Z * t)
    assert row["overlap"] == pytest.approx((shared / (2 * Z * s) + shared / (2 * Z * t)) / 2)
    assert row["square"] == pytest.approx(0.25 / s**2)
    assert row["utility"] == pytest.approx(1 / (s**2 + 0.25))


def test_overlap_of_intervals() -> None:
    """Apart: 0; one inside the other; a point inside or outside."""
    cases = [
        ((0, 1), (5, 1), 0.0),
        ((0, 2), (1, 1), 0.75),
        ((0, 0), (0, 0), 1.0),
        ((0, 1), (0.5, 0), 0.5),
        ((0, 1), (2, 0), 0),
    ]
    for (e, h), (f, g), wanted in cases:
        found = overlap(*(np.array([float(v)]) for v in (e, h, f, g)))
        assert found[0] == pytest.approx(wanted)


def test_quantiles_against_numpy() -> None:
    """np.quantile(method='inverted_cdf'), also with weights."""
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=101), rng.random(101) + 0.1
    for share in (0.05, 0.5, 0.9, 0.99):
        assert quantile(x, np.ones(101), share)[0][0] == np.quantile(x, share, method="inverted_cdf")
        assert quantile(x, w, share)[0][0] == np.quantile(x, share, method="inverted_cdf", weights=w)


def test_regression_against_scipy_and_the_sandwich() -> None:
    """linregress for the slope; White's errors with n/(n-k) summed record by record; numpy.lstsq for two slopes."""
    from scipy.stats import linregress

    rng = np.random.default_rng(2)
    x1, x2 = rng.normal(size=60), rng.normal(size=60)
    y = 1 + 2 * x1 - x2 + rng.normal(size=60) * (1 + np.abs(x1))
    old = file(y=y, x1=x1, x2=x2)
    row = one("regression: y ~ x1", old, old)
    assert row["original"] == pytest.approx(linregress(x1, y).slope)
    design = np.column_stack([np.ones(60), x1, x2])
    slopes, *_ = np.linalg.lstsq(design, y, rcond=None)
    left = y - design @ slopes
    bread = np.linalg.inv(design.T @ design)
    meat = sum(np.outer(design[i], design[i]) * left[i] ** 2 for i in range(60))
    errors = np.sqrt(np.diag(bread @ meat @ bread) * 60 / 57)
    table = Estimate("regression: y ~ x1 + x2").measure(old, old).detail
    assert table["term"].to_list() == ["x1", "x2"]
    assert table["original"].to_list() == pytest.approx(slopes[1:].tolist())
    assert table["error"].to_list() == pytest.approx(errors[1:].tolist())


def test_regression_on_categories_and_collinear_columns() -> None:
    """Indicators against the first category: differences of group means. A repeated column shares the slope."""
    old = file(y=[1.0, 3.0, 5.0, 7.0, 2.0, 2.0], g=["a", "a", "b", "b", "c", "c"])
    table = Estimate("regression: y ~ g").measure(old, old).detail
    assert table["term"].to_list() == ["g=b", "g=c"]
    assert table["original"].to_list() == pytest.approx([4.0, 0.0])
    twice = file(y=[1.0, 2.0, 3.0, 5.0], x=[1.0, 2.0, 3.0, 4.0], z=[1.0, 2.0, 3.0, 4.0])
    assert Estimate("regression: y ~ x + z").measure(twice, twice).value == 1.0
    slopes, _ = least_squares(
        np.column_stack([np.ones(4), *[[1.0, 2, 3, 4]] * 2]), np.array([1.0, 2, 3, 5]), np.ones(4)
    )
    assert slopes[1:].tolist() == pytest.approx([0.65, 0.65])


def test_gini_is_half_the_relative_mean_difference() -> None:
    """Against every pair of records, with weights as repeated records."""
    rng = np.random.default_rng(6)
    x, w = rng.lognormal(size=40), rng.integers(1, 4, size=40).astype(float)
    repeated = np.repeat(x, w.astype(int))
    pairs = np.abs(repeated[:, None] - repeated).mean() / (2 * repeated.mean())
    assert gini(repeated, np.ones(len(repeated)))[0][0] == pytest.approx(pairs)
    assert gini(x, w)[0][0] == pytest.approx(pairs)
    assert gini(np.zeros(3), np.ones(3))[0][0] == 0.0


def test_correlation_against_scipy() -> None:
    """pearsonr; of repeated records the same as of weights; one that does not vary has none."""
    from scipy.stats import pearsonr

    rng = np.random.default_rng(7)
    x = rng.normal(size=50)
    y, w = x + rng.normal(size=50), rng.integers(1, 4, size=50)
    assert correlated(x, y, np.ones(50))[0][0] == pytest.approx(pearsonr(x, y).statistic)
    twice = [np.repeat(one, w) for one in (x, y)]
    assert correlated(x, y, w.astype(float))[0][0] == pytest.approx(pearsonr(*twice).statistic, rel=1e-2)
    assert correlated(x, np.ones(50), np.ones(50))[0][0] == 0.0


def test_groups_are_estimated_each_by_itself() -> None:
    """As filtered by hand; a group that the release lacks overlaps nowhere."""
    old = file(x=[1.0, 2.0, 3.0, 4.0, 8.0, 9.0], g=["a", "a", "a", "b", "b", None])
    new = file(x=[1.0, 2.0, 4.0], g=["a", "a", "a"])
    table = Estimate("mean:x by g").measure(new, old).detail
    assert table["term"].to_list() == ["x, a", "x, b"]
    assert table["original"].to_list() == pytest.approx([2.0, 6.0])
    assert table["overlap"][1] == 0.0
    assert table["square"][1] is None
    alone = one("mean:x", file(x=[1.0, 2.0, 4.0]), file(x=[1.0, 2.0, 3.0]))
    assert table["overlap"][0] == pytest.approx(alone["overlap"])


def test_tables_by_hand() -> None:
    """Shares over the cells of either file; the error with two successes and failures added; nulls are a category."""
    old, new = file(a=["p", "p", "q", None]), file(a=["p", "q", "q", "r"])
    table = Estimate("table: a").measure(new, old).detail
    assert table["term"].to_list() == ["missing", "p", "q", "r"]
    assert table["original"].to_list() == [0.25, 0.5, 0.25, 0.0]
    assert table["released"].to_list() == [0.0, 0.25, 0.5, 0.25]
    near = (4 * 0.0 + 2) / 8
    assert table["error"].to_list()[3] == pytest.approx(sqrt(near * (1 - near) / 4))
    assert Estimate("table: a").measure(old, old).value == 1.0


def test_weights_are_respected() -> None:
    """Weighted mean and its linearised error; shares of weight."""
    x, w = np.array([1.0, 2.0, 6.0]), np.array([1.0, 1.0, 2.0])
    old = file("w", x=x, w=w)
    row = one("mean:x", old, old)
    centre = (1 + 2 + 12) / 4
    assert row["original"] == pytest.approx(centre)
    assert row["error"] == pytest.approx(sqrt((w**2 * (x - centre) ** 2).sum() / 16 * 3 / 2))
    assert Estimate("table:x").measure(old, old).detail["original"].to_list() == [0.25, 0.25, 0.5]
    assert Estimate("mean:x").measure(old, old).notes == ("Weighted by 'w'.",)


@pytest.mark.parametrize(
    ("query", "truth"),
    [
        ("mean:x", 0.0),
        ("quantile:x,0.8", 0.8416),
        ("regression:y~x", 2.0),
        ("correlation:x,y", 2 / sqrt(5)),
        ("gini:u", 1 / 3),
    ],
)
def test_errors_are_those_of_repeated_samples(query: str, truth: float) -> None:
    """300 samples of 400: the mean error is the spread of the estimates (12 %), and 95 % intervals cover."""
    rng = np.random.default_rng(3)
    found = []
    for _ in range(300):
        x = rng.normal(size=400)
        data = file(x=x, y=2 * x + rng.normal(size=400), u=rng.random(400))
        row = one(query, data, data)
        found.append((row["original"], row["error"]))
    e, s = np.array(found).T
    assert s.mean() == pytest.approx(e.std(), rel=0.12)
    assert 0.91 <= (np.abs(e - truth) < Z * s).mean() <= 0.99


# --- what the mask costs ------------------------------------------------------------------------------------------


def test_square_is_the_reciprocal_mse_of_the_theory() -> None:
    """Noise of l2 on a mean: over draws v is l2/s2 (4 standard errors), and 1/(s^2 (1 + v)) is U = n/(s2 + l2)."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=50) * 2
    s2, l2 = float(x.var(ddof=1)), 3.0
    old, measure = file(x=x), Estimate("mean:x", "square")
    v = [measure.measure(file(x=x + sqrt(l2) * rng.normal(size=50)), old).value for _ in range(600)]
    centre, spread = float(np.mean(v)), float(np.std(v) / sqrt(600))
    assert abs(centre - l2 / s2) < 4 * spread
    utility = theory_mean("noise", n=50, s2=s2, l2=l2).utility
    assert 1 / (s2 / 50 * (1 + l2 / s2)) == pytest.approx(utility)


def test_synthetic_sets_are_combined() -> None:
    """m sets of k from the posterior: the error's square has the mean s2/n + a2/m + s2/(m k), that of the estimate."""
    rng = np.random.default_rng(5)
    n, m, k, s2 = 40, 5, 20, 4.0
    found = []
    for _ in range(400):
        x = rng.normal(size=n) * 2
        centres = x.mean() + sqrt(s2 / n) * rng.normal(size=m)
        y = (centres[:, None] + 2 * rng.normal(size=(m, k))).ravel()
        row = one("mean:x", file(sample="set", x=y, set=np.repeat(np.arange(m), k)), file(x=x))
        found.append((row["released"], row["released_error"] ** 2))
    e, v = np.array(found).T
    wanted = theory_mean("synthetic", n=n, s2=s2, m=m, k=k).user
    assert abs(v.mean() - wanted) < 4 * v.std() / 20
    assert e.var() == pytest.approx(wanted, rel=0.25)


def test_one_synthetic_set() -> None:
    """A single fully synthetic set: s2/n + a2 + s2/k, where the set alone would say s2/k."""
    from equipoise.data.records import Law

    rng = np.random.default_rng(8)
    n, k, s2 = 50, 25, 4.0
    variances = []
    for _ in range(300):
        y = file(x=rng.normal(size=k) * 2)
        made = y.with_frame(y.frame, Law("synthesize", ("x",), "drawn", {"synthetic": "full"}))
        variances.append(one("mean:x", made, file(x=rng.normal(size=n) * 2))["released_error"] ** 2)
    wanted = theory_mean("synthetic", n=n, s2=s2, m=1, k=k).user
    assert abs(np.mean(variances) - wanted) < 4 * np.std(variances) / sqrt(300)


def test_laws() -> None:
    """1 and 0 for the file itself; worse with growing noise; files of other records are compared."""
    rng = np.random.default_rng(6)
    x, e, f = rng.normal(size=(3, 500))
    old = file(x=x, y=x + e)
    for query in ("mean:x", "quantile:x,0.3", "regression:y ~ x", "table:x"):
        assert Estimate(query).measure(old, old).value == pytest.approx(1.0)
        assert Estimate(query, "square").measure(old, old).value == 0.0
    slopes = [Estimate("regression:y ~ x").measure(file(x=x + c * f, y=x + e), old).value for c in (0.0, 0.1, 0.3, 1.0)]
    assert slopes == sorted(slopes, reverse=True)
    assert Estimate("mean:x").measure(file(x=x[:100]), old).value > 0.3
    score = Estimate("mean:x").measure(old, old)
    assert (score.better, Estimate("x", "square").measure(old, old).better) == ("higher", "lower")


def test_heaped_and_constant_values() -> None:
    """A quantile whose interval has no length, and a column without spread: finite."""
    old, new = file(x=[0.0] * 90 + [5.0] * 10), file(x=[1.0] * 90 + [5.0] * 10)
    for score in ("overlap", "square"):
        assert np.isfinite(Estimate("quantile:x,0.5", score).measure(new, old).value)
    same, other = file(x=[2.0, 2.0, 2.0]), file(x=[3.0, 3.0, 3.0])
    assert [Estimate("mean:x", s).measure(same, same).value for s in ("overlap", "square")] == [1.0, 0.0]
    assert [Estimate("mean:x", s).measure(other, same).value for s in ("overlap", "square")] == [0.0, 1.0]


def test_what_cannot_be_estimated_is_refused() -> None:
    old = file(x=[1.0, 2.0], t=["a", "b"], u=[1.0, None])
    with pytest.raises(eq.DataError, match="'t' is String, not numeric"):
        Estimate("mean:t").measure(old, old)
    with pytest.raises(eq.RolesError, match="No column 'z'"):
        Estimate("table:x,z").measure(old, old)
    with pytest.raises(eq.DataError, match="Fewer than two records"):
        Estimate("mean:u").measure(old, old)


def test_a_trial_averages_draws(people_records: eq.Records, jumble: Any) -> None:
    """Several draws: the mean of the scores with an interval; a jumbled column keeps its own mean, not its slope."""
    measures = [Estimate("mean:salary"), Estimate("regression:salary ~ age", "square")]
    trial = eq.sweep(people_records, [eq.Recipe([jumble("salary")], seed=1)], measures, draws=6)[0]
    assert trial.scores[0].value > 0.5
    assert trial.scores[1].interval is not None
    assert len(trial.draws) == 6
