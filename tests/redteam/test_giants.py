"""Giants read off a release by their rank: the largest firms are known by name, and so is their order."""

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.methods.score import Scores
from equipoise.releases.assumptions import shortcomings

RANKS = 10
"""Firms whose order everybody knows."""


def firms(sigma: float, n: int = 1_000, seed: int = 11) -> pl.DataFrame:
    """Amounts of which a few firms have most."""
    rng = np.random.default_rng(seed)
    size = np.exp(5 + sigma * rng.standard_normal(n))
    return pl.DataFrame({"sales": size, "wages": np.round(size * np.exp(0.5 * rng.standard_normal(n)))})


def exactly_read(released: np.ndarray, truth: np.ndarray) -> float:
    """Share of the largest whose value stands in their own row, or at their rank of all released values."""
    giants = np.argsort(-truth)[:RANKS]
    by_rank = np.sort(released)[::-1][:RANKS]
    return float(((released[giants] == truth[giants]) | (by_rank == truth[giants])).mean())


def nearly_read(released: np.ndarray, truth: np.ndarray) -> float:
    giants = np.argsort(-truth)[:RANKS]
    return float((np.abs(released[giants] - truth[giants]) <= 0.1 * truth[giants]).mean())


def released_and_true(mask: object, table: pl.DataFrame) -> tuple[eq.Records, eq.Records]:
    original = eq.read(table, eq.Roles(numeric=table.columns))
    return eq.Recipe([mask], 5).run(original), original  # type: ignore[list-item]


@pytest.mark.parametrize("kind", ["independent", "correlated", "multiplicative"])
@pytest.mark.parametrize("scale", [0.1, 0.8])
@pytest.mark.parametrize("sigma", [2.0, 3.0])
def test_noise_with_own_values_shows_no_giant(
    record: Callable[..., None], kind: str, scale: float, sigma: float
) -> None:
    """Up to seven of the ten largest stood as collected, all ten by their rank."""
    table = firms(sigma)
    mask = eq.masks.Noise(table.columns, scale, kind, preserve="distributions")  # type: ignore[arg-type]
    released, _ = released_and_true(mask, table)
    for column in table.columns:
        truth, shown = (t[column].to_numpy().astype(float) for t in (table, released.collect()))
        record(
            "noise", f"{kind}, {scale:g}, distributions", file=f"giants, sigma {sigma:g}",
            measure="of the ten largest values known exactly", reported=0.0, reached=exactly_read(shown, truth),
        )  # fmt: skip
        assert shown.mean() == pytest.approx(truth.mean(), rel=0.01)


@pytest.mark.parametrize(
    "mask",
    [
        eq.masks.RankSwap(["sales"], 0.1),
        eq.masks.Shuffle(["sales"], given=["wages"]),
        eq.masks.Noise(["sales"], 0.02),
        eq.masks.Microaggregate(["sales"], 3),
    ],
    ids=lambda mask: type(mask).__name__,
)
def test_a_headline_says_that_giants_are_read(mask: object) -> None:
    table = firms(2.0)
    released, original = released_and_true(mask, table)
    truth, shown = (t["sales"].to_numpy() for t in (table, released.collect()))
    assert max(exactly_read(shown, truth), nearly_read(shown, truth)) >= 0.5
    score = eq.risk.KnownWithin(0.1, ("sales",)).measure(released, original)
    said = " ".join(shortcomings(released, original, Scores([score]), eq.Policy()))
    assert ("who is largest in sales:" in said) == (score.value < 0.5)
    assert "who is largest in sales:" in " ".join(shortcomings(released, original, Scores([]), eq.Policy()))


def test_no_headline_where_giants_are_hidden() -> None:
    table = firms(2.0)
    released, original = released_and_true(eq.masks.Noise(["sales"], 0.8, preserve="distributions"), table)
    assert shortcomings(released, original, Scores([]), eq.Policy()) == ()
