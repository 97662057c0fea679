"""Combining rules: worked by hand, and their intervals cover what they promise under the hierarchical normal model."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.ground.randomness import Draws
from equipoise.masks import Synthesize
from equipoise.utility import combine

RUNS = 2000


def samples(n: int, k: int, m: int, seed: int, *, partial: bool = False) -> tuple[Any, Any]:
    """Estimates of the mean 0 and their variances: data, parameters from the posterior, then m samples; many runs."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(RUNS, n))
    drawn = x[:, n // 2 :] if partial else x  # what is replaced is what the model is fitted to (Reiter 2003)
    size = drawn.shape[1]
    s2 = (size - 1) * drawn.var(axis=1, ddof=1)[:, None] / rng.chisquare(size - 1, (RUNS, m))
    mu = drawn.mean(axis=1)[:, None] + rng.normal(size=(RUNS, m)) * np.sqrt(s2 / size)
    y = mu[..., None] + np.sqrt(s2)[..., None] * rng.normal(size=(RUNS, m, k))
    if partial:
        y[..., : n // 2] = x[:, None, : n // 2]
    return y.mean(axis=2), y.var(axis=2, ddof=1) / k


def coverage(q: Any, u: Any, **how: Any) -> float:
    found = [combine(a, b, **how).interval for a, b in zip(q, u, strict=True)]
    return float(np.mean([low <= 0 <= high for low, high in found]))


@pytest.mark.evidence(every=2)
@pytest.mark.parametrize(("n", "k", "m"), [(100, 100, 10), (100, 100, 20), (60, 120, 10), (100, 50, 50)])
def test_full_intervals_cover(n: int, k: int, m: int) -> None:
    """Between 92 and 98 % (standard error 0.5 %); all four in full."""
    assert 0.92 <= coverage(*samples(n, k, m, seed=m), ratio=k / n) <= 0.98


def test_few_full_samples_are_conservative() -> None:
    """Five fully synthetic samples are outside that band, on the safe side: 0.99, as the published interval is."""
    q, u = samples(100, 100, 5, seed=5)
    assert coverage(q, u) > 0.98
    assert coverage(q, u, approximate=True) > 0.98


@pytest.mark.parametrize("m", [1, 2, 5, 20])
def test_model_intervals_cover(m: int) -> None:
    assert 0.92 <= coverage(*samples(100, 100, m, seed=m), kind="model") <= 0.98


@pytest.mark.parametrize("m", [2, 5, 20])
def test_partial_intervals_cover(m: int) -> None:
    assert 0.92 <= coverage(*samples(100, 100, m, seed=m, partial=True), kind="partial") <= 0.98


@pytest.mark.evidence
def test_intervals_of_synthesised_files_cover() -> None:
    """In full only: 200 files through the mask itself, 10 samples each; means of a column and of one regressed on it.

    The band of 0.92 to 0.98 with one standard error of 200 runs (1.5 %) more at its top.
    """
    rng, hits = np.random.default_rng(4), np.zeros((200, 2))
    mask = Synthesize("hierarchical-normal", samples=10)
    for run in range(len(hits)):
        x = rng.normal(10, 2, 60)
        records = eq.read(pl.DataFrame({"x": x, "y": 1 + x / 2 + rng.normal(size=60)}), eq.Roles())
        parts = mask.apply(records, Draws(run)).collect().partition_by("sample")
        for i, (column, truth) in enumerate((("x", 10.0), ("y", 6.0))):
            q, u = [p[column].mean() for p in parts], [p[column].var() / 60 for p in parts]
            low, high = combine(q, u).interval
            hits[run, i] = low <= truth <= high
    assert ((hits.mean(axis=0) >= 0.92) & (hits.mean(axis=0) <= 0.995)).all()


def test_by_hand() -> None:
    """q = 10, 11, 12: b = 1; u = 0.5. Full: 4/3 - 1/2 on 2 (1 - 3/8)^2; partial: 1/3 + 1/2 on 2 (1 + 1.5)^2."""
    q, u = [10.0, 11.0, 12.0], [0.5, 0.5, 0.5]
    full = combine(q, u, approximate=True)
    assert (full.estimate, full.variance) == (11.0, pytest.approx(5 / 6))
    assert full.df == pytest.approx(2 * 0.625**2)
    partial = combine(q, u, kind="partial")
    assert partial.df == pytest.approx(12.5)
    assert partial.interval[1] - 11 == pytest.approx(2.1692 * np.sqrt(5 / 6), rel=1e-3)
    model = combine(q, u, kind="model", ratio=0.5)
    assert model.variance == pytest.approx(0.5 * (0.5 + 1.5 / 3))


def test_a_negative_variance_is_replaced() -> None:
    """b = 0.01 under u = 1: T < 0, so r u; the interval is the integral all the same."""
    found = combine([1.0, 1.1, 0.9], [1.0, 1.0, 1.0], ratio=0.5)
    assert found.variance == 0.5
    assert np.isfinite(found.interval).all()
    assert combine([1.0, 1.0], [0.0, 0.0]).interval == (1.0, 1.0)
    assert np.isfinite(combine([1.0, 1.0], [1.0, 1.0]).interval).all()


def test_the_integral_tends_to_the_normal_interval() -> None:
    """Many samples: B is known."""
    rng = np.random.default_rng(0)
    q = rng.normal(0, np.sqrt(2), 5000)
    found = combine(q, np.ones(5000))
    assert (found.interval[1] - found.interval[0]) / 2 == pytest.approx(1.96 * np.sqrt(found.variance), rel=2e-3)
    wide = combine([1.0, 2.0, 4.0], [0.0, 0.0, 0.0])
    t = combine([1.0, 2.0, 4.0], [0.0, 0.0, 0.0], approximate=True)
    assert wide.interval == pytest.approx(t.interval, rel=5e-3)


@pytest.mark.parametrize(
    ("q", "u", "how"),
    [
        ([1.0], [1.0], {}),
        ([1.0, 2.0], [1.0], {}),
        ([1.0, 2.0], [1.0, -1.0], {}),
        ([1.0, np.nan], [1.0, 1.0], {}),
        ([1.0, 2.0], [1.0, 1.0], {"kind": "both"}),
        ([1.0, 2.0], [1.0, 1.0], {"level": 95}),
        ([1.0, 2.0], [1.0, 1.0], {"ratio": 0}),
    ],
)
def test_bad_input(q: Any, u: Any, how: dict[str, Any]) -> None:
    with pytest.raises(eq.ParameterError):
        combine(q, u, **how)
