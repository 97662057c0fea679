"""An intruder who joins a release with what is known of people in one or two columns, by plain code."""

import os
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.policies.first_policy import initial
from equipoise.policies.policy_file import Job
from equipoise.recipe.recipe import Recipe

DATA = os.environ.get("EQUIPOISE_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="EQUIPOISE_DATA is not set")


def joined(released: pl.DataFrame, original: pl.DataFrame, columns: tuple[str, ...]) -> float:
    """Share of the people whom an exact join on these columns finds, alone and rightly."""
    new = released.with_row_index("place").select("place", *columns)
    alone = new.filter(~pl.struct(columns).is_duplicated())
    old = original.with_row_index("place").select("place", *columns)
    both = old.join(alone, on=list(columns), how="inner", suffix="_new")
    return both.filter(pl.col("place") == pl.col("place_new")).height / original.height


def nearest(released: pl.DataFrame, original: pl.DataFrame, column: str) -> float:
    """Share of the people whose own released number is the nearest to theirs."""
    y, x = released[column].to_numpy().astype(float), original[column].to_numpy().astype(float)
    order = np.argsort(y)
    right = np.clip(np.searchsorted(y[order], x), 1, len(y) - 1)
    pick = np.where(np.abs(x - y[order][right - 1]) <= np.abs(x - y[order][right]), right - 1, right)
    return float((order[pick] == np.arange(len(x))).mean())


def test_reported_is_what_a_join_finds_on_the_demo() -> None:
    records = eq.read(eq.demo.survey(), eq.Roles(("sex", "age", "race"), id="person"))
    reported = eq.risk.RevealingColumns().measure(records, records).value
    table, others = records.collect(), ("household", "weight", "salary", "housing_cost", "education", "region")
    assert reported >= max(joined(table, table, pair) for pair in combinations(others, 2))
    assert reported >= max(joined(table, table, (column,)) for column in others)


@needs_data
@pytest.mark.parametrize(
    ("path", "keys", "amounts"),
    [
        ("sdcmicro/testdata.csv", ("urbrur", "sex", "age"), ("expend", "income", "savings")),
        ("sdcmicro/EIA.csv", ("STATE", "MONTH"), ("RESREVENUE", "RESSALES", "TOTREVENUE")),
        ("sdcmicro/free1.csv", ("REGION", "SEX", "AGE"), ("INCOME", "ASSETS", "DEBTS")),
    ],
)
@pytest.mark.parametrize("scale", [0.0, 0.02, 0.3])
def test_reported_is_what_amounts_find_on_real_files(
    path: str, keys: tuple[str, ...], amounts: tuple[str, ...], scale: float
) -> None:
    records = eq.read(Path(str(DATA)) / path, eq.Roles(keys))
    noise = (eq.masks.Noise(amounts, scale),) if scale else ()
    released = Recipe(noise, seed=4).run(records)
    score = eq.risk.RevealingColumns().measure(released, records)
    new, old = released.collect(), records.collect()
    achieved = max(max(joined(new, old, (c,)), nearest(new, old, c)) for c in amounts)
    error = 3 * np.sqrt(achieved * (1 - achieved) / old.height)
    assert score.value >= achieved - error
    if not scale:
        assert achieved > 0.8


@needs_data
@pytest.mark.parametrize(
    "path",
    [
        "sdcmicro/testdata.csv",
        pytest.param("sdcmicro/EIA.csv", marks=pytest.mark.evidence),
        pytest.param("sdcmicro/free1.csv", marks=pytest.mark.evidence),
    ],
)
def test_first_policies_mask_what_singles_people_out(path: str, tmp_path: Path) -> None:
    """What `init` proposes leaves no unchanged amount by which a plain join finds people."""
    policy = tmp_path / "first.toml"
    source = Path(str(DATA)) / path
    policy.write_text(initial(source, path=str(source)), encoding="utf-8")
    job = Job.load(policy)
    records = job.read()
    released = job.recipes(records)[0].run(records)
    new, old = released.collect(), records.collect()
    numbers = [c for c in records.roles.numeric if c in new.columns]
    assert max(joined(new, old, (column,)) for column in numbers) < 0.05
