"""Means, variances, correlations and eigenvalues: by hand, against NumPy and SciPy, and their laws."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.utility import Eigenvalues, Moments


def file(weight: str | None = None, **columns: Any) -> eq.Records:
    return eq.read(pl.DataFrame(columns), eq.Roles(numeric=[c for c in columns if c != "w"], weight=weight))


def matrix(table: Any, weight: Any = None) -> eq.Records:
    columns = {f"x{i}": table[:, i] for i in range(table.shape[1])}
    return file(**columns) if weight is None else file("w", **columns, w=weight)


def rows(score: eq.Score, statistic: str) -> list[dict[str, Any]]:
    return score.detail.filter(pl.col("statistic") == statistic).to_dicts()


def test_worked_by_hand() -> None:
    """Means 2, 3: change 1/1; variances 1, 7: 6/7; x against y from 1 to 0.5."""
    old = file(x=[1.0, 2.0, 3.0], y=[1.0, 2.0, 3.0])
    new = file(x=[1.0, 2.0, 6.0], y=[1.0, 2.0, 3.0])
    score = Moments().measure(new, old)
    r = 5 / np.sqrt(14 * 2)
    assert score.value == pytest.approx((1 / 2 + (6 / 7) / 2 + (1 - r)) / 3)
    assert rows(score, "correlation")[0] | {"statistic": ""} == pytest.approx(
        {"statistic": "", "column": "x", "with": "y", "original": 1.0, "released": r, "change": 1 - r}
    )
    assert (score.better, score.side) == ("lower", "utility")


def test_detail_against_numpy_and_scipy() -> None:
    """np.mean, np.var, np.corrcoef, scipy.stats.linregress of the original on the released."""
    from scipy.stats import linregress

    rng = np.random.default_rng(1)
    old = rng.normal(size=(300, 3)) @ np.array([[1, 0.5, 0], [0, 1, 2], [0, 0, 1]])
    new = old + rng.normal(size=old.shape)
    score = Moments().measure(matrix(new), matrix(old))
    assert [r["released"] for r in rows(score, "mean")] == pytest.approx(new.mean(axis=0))
    assert [r["released"] for r in rows(score, "variance")] == pytest.approx(new.var(axis=0, ddof=1))
    alike = np.corrcoef(new.T)
    assert [r["released"] for r in rows(score, "correlation")] == pytest.approx([alike[0, 1], alike[0, 2], alike[1, 2]])
    fits = [linregress(new[:, j], old[:, j]) for j in range(3)]
    assert [r["released"] for r in rows(score, "slope")] == pytest.approx([f.slope for f in fits])
    assert [r["released"] for r in rows(score, "fit")] == pytest.approx([f.rvalue**2 for f in fits])


def test_weights_are_repeated_records() -> None:
    """Whole weights give the means and correlations of the file with each record that often."""
    rng = np.random.default_rng(2)
    x, w = rng.normal(size=(40, 2)), rng.integers(1, 5, 40)
    new = x + rng.normal(size=x.shape)
    long = np.repeat(np.arange(40), w)
    weighted, plain = (
        Moments().measure(matrix(new, w), matrix(x, w)),
        Moments().measure(matrix(new[long]), matrix(x[long])),
    )
    for statistic in ("mean", "correlation", "slope"):
        found = [r["released"] for r in rows(weighted, statistic)]
        assert found == pytest.approx([r["released"] for r in rows(plain, statistic)])
    variance = rows(weighted, "variance")[0]["original"]
    assert variance == pytest.approx(np.cov(x[:, 0], aweights=w, ddof=0) * 40 / 39)
    assert "Weighted by 'w'." in weighted.notes


def test_gaps_are_passed_over_pair_by_pair() -> None:
    old = file(x=[1.0, 2.0, 3.0, None], y=[2.0, 4.0, None, 1.0])
    score = Moments().measure(old, old)
    assert score.value == 0.0
    assert rows(score, "mean")[0]["original"] == 2.0
    assert rows(score, "correlation")[0]["original"] == pytest.approx(1.0)
    assert score.notes == ("4 missing values were passed over.",)


def test_columns_without_spread_do_no_harm() -> None:
    score = Moments().measure(file(x=[4.0, 4.0, 7.0], y=[0.0, 0.0, 0.0]), file(x=[4.0, 4.0, 4.0], y=[0.0, 0.0, 0.0]))
    assert [r["change"] for r in rows(score, "mean")] == pytest.approx([0.25, 0.0])
    assert [r["change"] for r in rows(score, "variance")] == [1.0, 0.0]


def test_other_records_are_compared_without_regression() -> None:
    """A synthetic file of another size: moments yes, regression of record on record no."""
    score = Moments().measure(file(x=[1.0, 2.0, 3.0, 2.0]), file(x=[1.0, 2.0, 3.0]))
    assert score.detail["statistic"].to_list() == ["mean", "variance"]
    assert rows(score, "mean")[0]["change"] == 0.0


def test_noise_law() -> None:
    """Grows with noise; variance change l2/(s2 + l2) and slope s2/(s2 + l2)."""
    rng = np.random.default_rng(4)
    x, e = rng.normal(size=(20_000, 2)), rng.normal(size=(20_000, 2))
    scores = [Moments().measure(matrix(x + c * e), matrix(x)) for c in (0.0, 0.3, 1.0, 3.0)]
    values = [score.value for score in scores]
    assert values[0] == 0.0
    assert values == sorted(values)
    assert rows(scores[2], "variance")[0]["change"] == pytest.approx(0.5, abs=0.02)
    assert rows(scores[2], "slope")[0]["released"] == pytest.approx(0.5, abs=0.02)


# --- eigenvalues --------------------------------------------------------------------------------------------------


def test_eigenvalues_against_numpy() -> None:
    """np.linalg.eigvalsh of the covariance of columns scaled by the original deviations."""
    rng = np.random.default_rng(8)
    old = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 3))
    new = old + rng.normal(size=old.shape)
    score = Eigenvalues().measure(matrix(new), matrix(old))
    spread = old.std(axis=0, ddof=1)
    one, two = (np.linalg.eigvalsh(np.cov((side / spread).T))[::-1] for side in (old, new))
    assert score.value == pytest.approx(np.abs(one - two).sum() / (one + two).sum())
    assert score.detail["original"].to_list() == pytest.approx(one.tolist())
    assert score.detail["share_released"].sum() == pytest.approx(1.0)


def test_eigenvalues_survive_collinearity() -> None:
    """Smallest eigenvalues of 0 (a sum of columns, a constant): finite, 0 for itself, small for a small change."""
    rng = np.random.default_rng(9)
    x = rng.normal(size=(500, 2))
    old = np.column_stack([x, x.sum(axis=1), np.full(500, 3.0)])
    assert Eigenvalues().measure(matrix(old), matrix(old)).value == 0.0
    values = []
    for c in (1e-6, 0.1, 0.5, 2.0):
        score = Eigenvalues().measure(matrix(old + c * rng.normal(size=old.shape)), matrix(old))
        values.append(score.value)
    assert values == sorted(values)
    assert values[0] < 1e-6
    assert values[-1] < 1


def test_eigenvalues_pass_over_incomplete_records_and_weigh() -> None:
    x = np.array([[1.0, 2.0], [2.0, 1.0], [4.0, 4.0], [np.nan, 9.0]])
    score = Eigenvalues().measure(matrix(x, [1, 1, 2, 5]), matrix(x, [1, 1, 2, 5]))
    assert score.value == 0.0
    assert score.notes == ("Weighted by 'w'.", "2 records without every column were passed over.")
    constant = np.full((5, 2), 3.0)
    assert Eigenvalues().measure(matrix(constant), matrix(constant)).value == 0.0


def test_no_numeric_column() -> None:
    data = eq.read(pl.DataFrame({"a": ["x", "y"]}), eq.Roles("a"))
    for measure in (Moments(), Eigenvalues()):
        with pytest.raises(eq.RolesError, match="role numeric"):
            measure.measure(data, data)
