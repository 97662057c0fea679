"""The standard errors of the codebook: 95 % intervals for the population cover it in 93 to 97 % of samples."""

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.ground.arrays import Floats
from equipoise.ground.randomness import Draws
from equipoise.releases.codebook import codebook

RUNS, RECORDS = 3000, 400
Estimates = dict[str, tuple[Floats, Floats]]


def estimates(x: Floats, y: Floats, added: Floats | float) -> Estimates:
    """Estimate and standard error of each quantity, as the codebook words them, of samples in rows."""
    n, d, e = x.shape[1], x - x.mean(1, keepdims=True), y - y.mean(1, keepdims=True)
    s2, t2, m4 = x.var(1, ddof=1), y.var(1, ddof=1), (d**4).mean(1)
    v, c = s2 - added, (d * e).sum(1) / (n - 1)
    r, b = c / np.sqrt(s2 * t2), c / s2
    big_r, big_b = r * np.sqrt(s2 / v), b * s2 / v
    wide = [a[:, None] for a in (v, t2, big_r, big_b)]
    g = d * e / np.sqrt(wide[0] * wide[1]) - wide[2] * (d**2 / wide[0] + e**2 / wide[1]) / 2
    return {
        "mean": (x.mean(1), np.sqrt(s2 / n)),
        "variance": (v, np.sqrt((m4 - s2**2) / n)),
        "correlation": (big_r, g.std(1) / np.sqrt(n)),
        "slope": (big_b, (d * (e - wide[3] * d)).std(1) / (v * np.sqrt(n))),
    }


def coverage(values: tuple[Floats, Floats], truth: float) -> float:
    estimate, error = values
    return float((np.abs(estimate - truth) <= 1.96 * error).mean())


@pytest.mark.parametrize("kind", ["normal", "uniform"])
@pytest.mark.parametrize("scale", [0.3, 1.0])
def test_noise(kind: str, scale: float) -> None:
    """Noise of a share of the sample's own standard deviation, as the mask draws it; y = 2 x + error."""
    rng = np.random.default_rng(18)
    shape = (RUNS, RECORDS)
    x = 10 + 3 * (rng.standard_normal(shape) if kind == "normal" else rng.uniform(-(3**0.5), 3**0.5, shape))
    y = 2 * x + rng.normal(0, 4, shape)
    sd = scale * x.std(1, ddof=1)
    noisy = x + sd[:, None] * rng.standard_normal(shape)
    truth = {"mean": 10.0, "variance": 9.0, "correlation": 6 / 52**0.5, "slope": 2.0}
    for name, values in estimates(noisy, y, sd**2).items():
        assert 0.93 <= coverage(values, truth[name]) <= 0.97, name


def test_the_mask_and_its_codebook() -> None:
    """The variance in the formulas is what the mask added: real releases, fewer of them."""
    rng, inside = np.random.default_rng(5), dict.fromkeys(("mean", "variance", "correlation", "slope"), 0)
    truth = {"mean": 10.0, "variance": 9.0, "correlation": 6 / 52**0.5, "slope": 2.0}
    for seed in range(200):
        x = rng.normal(10, 3, RECORDS)
        table = pl.DataFrame({"x": x, "y": 2 * x + rng.normal(0, 4, RECORDS)})
        records = eq.read(table, eq.Roles(numeric=["x", "y"]))
        released = eq.masks.Noise(["x"], 0.5).apply(records, Draws(seed))
        added = released.history[0].parameters["noise_sd"]["x"] ** 2
        columns = released.collect()
        found = estimates(columns["x"].to_numpy()[None], columns["y"].to_numpy()[None], added)
        for name, values in found.items():
            inside[name] += int(coverage(values, truth[name]))
    assert all(0.90 <= hits / 200 <= 0.99 for hits in inside.values()), inside
    book = codebook(released, records, title="t", file="data.csv").to_markdown()
    for words in ("standard error sqrt(s^2 / n)", "sd(d (e - B d)) / (v sqrt(n))", "1.96 standard errors"):
        assert words in book


def test_microaggregation() -> None:
    """Groups of thirty in three columns: the mean is exact, its usual standard error too small."""
    rng, hits = np.random.default_rng(3), np.zeros(3)
    for seed in range(200):
        records = eq.read(pl.DataFrame(rng.normal(0, 1, (300, 3)), ["x", "y", "z"]), eq.Roles(numeric=["x", "y", "z"]))
        released = eq.masks.Microaggregate(["x", "y", "z"], 30).apply(records, Draws(seed))
        after, before = released.collect()["x"].to_numpy(), records.collect()["x"].to_numpy()
        s2 = after.var(ddof=1)
        v = s2 / round(after.var() / before.var(), 2)
        errors = 1.96 * np.array([np.sqrt(s2 / 300), np.sqrt(v / 300), v * np.sqrt(2 / 300)])
        hits += np.abs([after.mean(), after.mean(), v - 1]) <= errors
    plain, mean, variance = hits / 200
    assert plain < mean - 0.02
    assert 0.91 <= mean <= 0.99
    assert 0.91 <= variance <= 0.99


def usual(x: Floats, y: Floats) -> Estimates:
    """Correlation and slope with their usual standard errors."""
    return {name: both for name, both in estimates(x[None], y[None], 0.0).items() if name in ("correlation", "slope")}


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (eq.masks.Noise(["x", "y"], 0.7, "correlated"), "standard errors as usual times 1.24482"),
        (eq.masks.Noise(["x"], 0.7, preserve="moments"), "with a column that was not masked = r / 0.8"),
        (eq.masks.Noise(["x"], 0.7, preserve="distributions"), "with a column that was not masked = r / 0.8"),
        (eq.masks.RankSwap(["x"], 0.2), "with a column that was not swapped = r / 0."),
    ],
    ids=["correlated", "moments", "distributions", "rank_swap"],
)
def test_relations_of_masked_columns(mask: eq.masks.Noise | eq.masks.RankSwap, words: str) -> None:
    """Correlations and slopes as the codebook adjusts them cover; as they are released, many fewer do.

    Where moments are restored the standard errors are upper bounds: part of the noise is taken out again.
    """
    rng, hits = np.random.default_rng(9), {"correlation": np.zeros(2), "slope": np.zeros(2)}
    truth = {"correlation": 6 / 52**0.5, "slope": 2.0}
    for seed in range(200):
        x = rng.normal(10, 3, RECORDS)
        table = pl.DataFrame({"x": x, "y": 2 * x + rng.normal(0, 4, RECORDS)})
        records = eq.read(table, eq.Roles(numeric=["x", "y"]))
        released = mask.apply(records, Draws(seed))
        columns = released.collect()
        ratio = round(float(np.corrcoef(columns["x"], x)[0, 1]), 2) if "y" not in mask.columns else 1.0
        wider = 1.24482 if ratio == 1.0 else 1.0
        for name, (value, error) in usual(columns["x"].to_numpy(), columns["y"].to_numpy()).items():
            adjusted, plain = (value / ratio, error * wider / ratio), (value, error)
            hits[name] += [coverage(adjusted, truth[name]), coverage(plain, truth[name])]
    for adjusted, plain in (each / 200 for each in hits.values()):
        assert adjusted >= 0.90
        assert plain < adjusted - 0.02
    assert words in codebook(released, records, title="t", file="data.csv").to_markdown()


def test_noise_drawn_once_for_a_household() -> None:
    table = pl.DataFrame({"home": [i // 2 for i in range(60)], "rent": [float(i // 2 % 7) for i in range(60)]})
    records = eq.read(table, eq.Roles(numeric=["rent"], household="home"))
    book = codebook(eq.masks.Noise(["rent"], 0.5).apply(records, Draws(1)), records, title="t", file="data.csv")
    assert "drawn once for each home: below, n is the number of these" in book.to_markdown()
