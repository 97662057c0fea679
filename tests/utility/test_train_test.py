"""Train on the release, test on held-out originals: exact cases, and the laws of slopes and of majorities."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.utility import TrainTest


def file(roles: eq.Roles | None = None, **columns: Any) -> eq.Records:
    return eq.read(pl.DataFrame(columns), roles or eq.Roles())


def reached(score: Any) -> dict[str, float]:
    return dict(score.detail.iter_rows())


def test_a_linear_law_is_learnt_exactly_from_both() -> None:
    """y = 3 x + 5 for f, + 0 for m: nothing is left unexplained; the mean explains nothing."""
    x, sex = np.arange(60.0), ["f", "m"] * 30
    records = file(x=x, sex=sex, y=3 * x + 5 * (np.array(sex) == "f"))
    score = TrainTest("y").measure(records, records)
    assert score.value == pytest.approx(1, abs=1e-6)
    assert reached(score)["original"] == pytest.approx(score.value)
    assert reached(score)["trivial"] == 0.0 == score.baseline


def test_noise_on_a_cause_attenuates_the_slope_as_the_law_says() -> None:
    """Slope v / (v + t) after noise of variance t; unexplained of what is held out: (1 - slope)^2 v + s."""
    rng = np.random.default_rng(1)
    n, v, s, t = 40_000, 4.0, 1.0, 4.0
    x = rng.normal(0, v**0.5, n)
    y = x + rng.normal(0, s**0.5, n)
    score = TrainTest("y").measure(file(x=x + rng.normal(0, t**0.5, n), y=y), file(x=x, y=y))
    slope = v / (v + t)
    assert score.value == pytest.approx(1 - ((1 - slope) ** 2 * v + s) / (v + s), abs=0.01)
    assert reached(score)["original"] == pytest.approx(v / (v + s), abs=0.01)


def test_a_classifier_takes_the_majority_of_each_group() -> None:
    """Of the first group 3 in 4 say yes, of the second 1 in 5: accuracy (0.75 + 0.8) / 2; a release that swaps the
    groups' answers is wrong as often, and one without the group falls back to the larger answer.
    """
    rng = np.random.default_rng(2)
    group = np.repeat(["a", "b"], 10_000)
    yes = np.where(rng.random(20_000) < np.where(group == "a", 0.75, 0.2), "yes", "no")
    original = file(group=group, y=yes)
    score = TrainTest("y").measure(original, original)
    assert score.value == pytest.approx(0.775, abs=0.015)
    assert reached(score)["trivial"] == pytest.approx(1 - (0.75 + 0.2) / 2, abs=0.015)
    swapped = file(group=np.where(group == "a", "b", "a"), y=yes)
    assert TrainTest("y").measure(swapped, original).value == pytest.approx(1 - 0.775, abs=0.015)
    blind = file(group=["a"] * 20_000, y=yes)
    assert TrainTest("y").measure(blind, original).value == pytest.approx(reached(score)["trivial"], abs=1e-9)


def test_a_merged_target_counts_as_a_guess_among_its_categories() -> None:
    """Three answers that follow from x, two of them merged: 1/3 + 2/3 x 1/2 are guessed right."""
    x = np.tile([0.0, 1.0, 2.0], 100)
    names = np.tile(["no", "maybe", "yes"], 100)
    roles = eq.Roles("y", hierarchies={"y": eq.Hierarchy.mapping({"no": "no", "maybe": "other", "yes": "other"})})
    original = file(roles, x=np.array(["p", "q", "r"])[x.astype(int)], y=names)
    merged = eq.Recipe([eq.masks.Recode("y", 1)], seed=1).run(original)
    score = TrainTest("y").measure(merged, original)
    held_out = np.sort(np.random.default_rng(0).permutation(300)[:90])
    expected = np.where(names[held_out] == "no", 1.0, 0.5).mean()
    assert score.value == pytest.approx(expected)
    assert reached(score)["original"] == 1.0


def test_a_withheld_target_is_guessed_trivially_and_bands_by_their_middles() -> None:
    rng = np.random.default_rng(3)
    age = rng.integers(20, 80, 2000)
    roles = eq.Roles(["age"], numeric="pay", hierarchies={"age": eq.Hierarchy.intervals(5)})
    original = file(roles, age=age, pay=100.0 * age + rng.normal(0, 300, 2000))
    gone = file(age=age)
    assert TrainTest("pay").measure(gone, original).value == 0.0
    banded = eq.Recipe([eq.masks.Recode("age", 1)], seed=1).run(original)
    score = TrainTest("pay").measure(banded, original)
    assert score.value == pytest.approx(reached(score)["original"], abs=0.01)
    assert score.value > 0.9


def test_too_few_records_are_refused() -> None:
    records = file(x=[1.0, 2.0, 3.0], y=[1.0, 2.0, 3.0])
    with pytest.raises(eq.DataError, match="Fewer than 10"):
        TrainTest("y").measure(records, records)
