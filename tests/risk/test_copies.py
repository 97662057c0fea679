"""Copies of values and records: worked by hand, against a holdout, on masked and synthetic files."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.risk import Copies


def records(**columns: object) -> eq.Records:
    return eq.read(pl.DataFrame(columns), eq.Roles())


def test_worked_by_hand() -> None:
    """Of 1, 2, 2, 5, null: 1 is one person's, 2 is two people's, 5 is nobody's; one record of five is somebody's."""
    original = records(x=[1, 2, 2, 3, None], y=["a", "b", "c", "d", "e"])
    released = records(x=[1, 2, 2, 5, None], y=["b", "b", "z", "z", "z"])
    detail = {row["column"]: row for row in Copies().measure(released, original).detail.iter_rows(named=True)}
    assert detail["x"]["n"] == 4
    assert (detail["x"]["equal"], detail["x"]["rare"], detail["x"]["unique"]) == pytest.approx((0.75, 0.75, 0.25))
    assert (detail["y"]["equal"], detail["y"]["unique"]) == pytest.approx((0.4, 0.4))
    whole = detail["(whole record)"]
    assert (whole["n"], whole["equal"], whole["unique"]) == pytest.approx((5, 0.2, 0.2))


def test_rare_is_up_to_five_people() -> None:
    original = records(x=[1] * 5 + [2] * 6)
    row = Copies().measure(original, original).detail.row(0, named=True)
    assert (row["equal"], row["rare"], row["unique"]) == pytest.approx((1.0, 5 / 11, 0.0))


def test_bootstrapped_amounts_are_copies_and_noise_leaves_few() -> None:
    """Records drawn again repeat people's own amounts; continuous noise repeats none."""
    rng = np.random.default_rng(1)
    original = eq.read(pl.DataFrame({"x": rng.normal(size=400)}), eq.Roles(numeric="x"))
    synthetic = eq.Recipe([eq.masks.Synthesize()], 1).run(original)
    assert Copies().measure(synthetic, original).value == pytest.approx(1.0)
    noisy = eq.Recipe([eq.masks.Noise("x", 0.1)], 1).run(original)
    assert Copies().measure(noisy, original).value == pytest.approx(0.0)


def test_non_members_stand_beside_as_many_members() -> None:
    """Whole numbers from one law: a file drawn anew hits members as often as people who are not in it."""
    draw = np.random.default_rng(2).integers
    original = records(x=draw(0, 3_000, 2_000))
    held = replace(original, holdout=records(x=draw(0, 3_000, 1_000)))
    fresh = Copies("x").measure(records(x=draw(0, 3_000, 2_000)), held)
    row = fresh.detail.row(0, named=True)
    assert row["members"] == pytest.approx(row["holdout"], abs=0.06)
    assert fresh.baseline == pytest.approx(row["holdout"])
    copied = Copies("x").measure(original, held).detail.row(0, named=True)
    assert copied["members"] > copied["holdout"] + 0.05


def test_numbers_of_people_are_no_values_and_labels_equal_no_numbers() -> None:
    table = pl.DataFrame({"id": [1, 2, 3], "age": [30, 31, 32]})
    original = eq.read(table, eq.Roles(id="id"))
    released = eq.read(table.with_columns(age=pl.lit("30-39")), eq.Roles(id="id"))
    score = Copies().measure(released, original)
    assert score.detail["column"].to_list() == ["age", "(whole record)"]
    assert score.value == pytest.approx(0.0)
    with pytest.raises(eq.RolesError):
        Copies("income").measure(released, original)
