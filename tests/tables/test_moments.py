"""Sums and sums of squares that are published together."""

import numpy as np
import polars as pl
import pytest
from scipy.optimize import least_squares

import equipoise as eq

FIRMS = pl.DataFrame({"k": ["a", "b", *["c"] * 60, *["d"] * 60], "x": [30.0, 20.0, *range(1, 61), *range(11, 71)]})
OUTSIDERS = eq.tables.Suppress(eq.rules.MinCount(3), singletons=False)


@pytest.fixture(scope="module")
def deviations() -> pl.DataFrame:
    records = eq.Records.of(FIRMS, eq.Roles())
    made = eq.tabulate(records, "k", "x", method=OUTSIDERS, statistic="sd")
    assert "an outsider who puts means and standard deviations together" in made.attackers.against
    return made.internal


def test_two_people_in_a_row_follow_from_their_sum_and_squares() -> None:
    """The sum 50 and the squares 1,300 leave 30 and 20 alone: what a pattern of each table alone would tell."""
    total, squares = 50.0, 1_300.0
    half = np.sqrt(2 * squares - total**2) / 2
    assert {total / 2 + half, total / 2 - half} == {30.0, 20.0}


def test_more_is_suppressed_than_for_means(deviations: pl.DataFrame) -> None:
    records = eq.Records.of(FIRMS, eq.Roles())
    means = eq.tabulate(records, "k", "x", method=OUTSIDERS, statistic="mean").internal
    assert means["published"].null_count() == 2
    assert deviations["published"].null_count() > 2


@pytest.mark.parametrize("move", [6.0, -6.0])
def test_other_values_of_everybody_who_is_hidden_give_what_is_published(deviations: pl.DataFrame, move: float) -> None:
    """Values of all in hidden cells with a's moved by its level: found here by least squares."""
    hidden = deviations.filter(pl.col("published").is_null(), pl.col("k") != "Total")["k"].to_list()
    inside = FIRMS.filter(pl.col("k").is_in(hidden))
    x = inside["x"].to_numpy()
    assert deviations.filter(pl.col("k") == "Total")["published"].item() is not None

    def missed(rest: np.ndarray) -> np.ndarray:
        values = np.concatenate([[x[0] + move], rest**2])
        return np.array([values.sum() - x.sum(), ((values**2).sum() - (x**2).sum()) / 100])

    answer = least_squares(missed, np.sqrt(x[1:] + 1.0), xtol=1e-14, ftol=1e-14, gtol=1e-14)
    assert np.abs(answer.fun).max() < 1e-6
