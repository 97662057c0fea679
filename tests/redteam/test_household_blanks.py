"""An intruder who fills blank dwelling keys from the other members of the household, by plain Polars."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import equipoise as eq

DATA = os.environ.get("EQUIPOISE_DATA")
DWELLING = ("urbrur", "roof", "walls", "water", "electcon")


def alone_after_filling(released: pl.DataFrame, dwelling: tuple[str, ...], keys: tuple[str, ...], home: str) -> int:
    """Records alone in their class once blanks stand filled; whether a key was blank is seen too."""
    blank = [pl.col(key).is_null().alias(f"was_{key}") for key in keys]
    filled = [pl.coalesce(key, pl.col(key).drop_nulls().first().over(home)).alias(key) for key in dwelling]
    seen = released.with_columns(blank).with_columns(filled)
    return seen.group_by(*keys, *(f"was_{key}" for key in keys)).len().filter(pl.col("len") == 1).height


def invented(n: int = 300) -> pl.DataFrame:
    rng = np.random.default_rng(7)
    homes = rng.integers(0, 120, n)
    roof, walls = rng.integers(0, 6, 120), rng.integers(0, 6, 120)
    people = {"roof": roof[homes], "walls": walls[homes], "sex": rng.integers(0, 2, n), "age": rng.integers(0, 8, n)}
    return pl.DataFrame({"home": homes, **people})


@pytest.mark.parametrize(
    "mask", [eq.masks.SuppressRecords(eq.rules.MinCount(3)), eq.masks.LocalSuppress(eq.rules.MinCount(3))]
)
def test_reported_counts_what_other_members_tell(mask: object) -> None:
    keys = ("roof", "walls", "sex", "age")
    records = eq.read(invented(), eq.Roles(keys, household="home"))
    released = eq.Recipe((mask,), 1).run(records)  # type: ignore[arg-type]
    reported = eq.risk.Uniques().measure(released, records).number
    assert reported is not None
    assert reported >= alone_after_filling(released.collect(), ("roof", "walls"), keys, "home")


def test_verify_counts_what_other_members_tell(tmp_path: Path) -> None:
    """Measured again on the public data, the same blanks are filled in: a sound release is not refuted."""
    records = eq.read(invented(120), eq.Roles(("roof", "walls", "sex", "age"), household="home"))
    mask = eq.masks.SuppressRecords(eq.rules.MinCount(2))
    eq.protect(records, [mask], tmp_path / "out", policy=eq.Policy({"uniques": "<= 1"}))
    assert not [check.words for check in eq.verify(tmp_path / "out").checks if check.holds is False]


@pytest.mark.skipif(not DATA, reason="EQUIPOISE_DATA is not set")
@pytest.mark.parametrize("guard", ["identical", "wildcard"])
def test_reported_counts_what_other_members_tell_in_testdata(guard: str) -> None:
    keys = (*DWELLING, "age", "sex")
    records = eq.read(Path(str(DATA)) / "sdcmicro/testdata.csv", eq.Roles(keys, household="ori_hid"))
    released = eq.Recipe((eq.masks.LocalSuppress(eq.rules.MinCount(3), guard=guard),), 1).run(records)  # type: ignore[arg-type]
    reported = eq.risk.Uniques().measure(released, records).number
    assert reported is not None
    assert reported >= alone_after_filling(released.collect(), DWELLING, keys, "ori_hid")


def test_reported_counts_what_members_show_at_a_finer_level(record: Callable[..., None]) -> None:
    """Areas coarsened record by record: another of the family shows the whole code. Nobody was said to be under 3."""
    rng = np.random.default_rng(3)
    home = np.sort(rng.integers(0, 150, 400))
    table = pl.DataFrame({
        "id": np.arange(400), "home": home, "area": rng.integers(100, 140, 150)[home].astype(str),
        "age": rng.integers(0, 6, 400), "sex": rng.integers(0, 2, 400),
    })  # fmt: skip
    trees = {"area": eq.Hierarchy.prefix(2, 1, root=True), "age": eq.Hierarchy.intervals([2, 4], root=True)}
    records = eq.read(table, eq.Roles(("area", "age", "sex"), id="id", household="home", hierarchies=trees))
    released = eq.Recipe([eq.masks.LocalRecode(eq.rules.MinCount(3))], seed=1).run(records)
    shown = released.collect().sort("id").with_columns(pl.col("area").str.strip_chars("*"))
    finest = shown.select(pl.col("area").sort_by(pl.col("area").str.len_chars()).last().over("home")).to_series()
    bands = [(0, 5) if age == "*" else [int(end) for end in (str(age).split("-") * 2)[:2]] for age in shown["age"]]
    rows = [*zip(finest, bands, shown["sex"], strict=True)]
    left = [
        sum(area.startswith(code) and low <= age <= high and sex == other for code, (low, high), other in rows)
        for area, age, sex in table.select("area", "age", "sex").rows()
    ]
    chance = 1 / np.array(left)
    assert (chance > 1 / 3).any()
    for of, reached in {"worst": chance.max(), "mean": chance.mean()}.items():
        reported = eq.risk.Prosecutor(of).measure(released, records).value  # type: ignore[arg-type]
        record("local_recode", "classes of 3, with the role household", file="made",
               measure=f"person found through members, {of}", reported=reported, reached=float(reached))  # fmt: skip
    assert eq.risk.KAnonymity(3).measure(released, records).number >= (chance > 1 / 3).sum()
