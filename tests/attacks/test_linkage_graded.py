"""Graded agreement against every pair of 2,000 records, and shares that are estimated against the truth."""

from datetime import date
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from rapidfuzz import process
from rapidfuzz.distance import JaroWinkler

import equipoise as eq
from equipoise.attacks._linkage import assignment, graded_agreement, pair_up
from equipoise.attacks.linkage import Linkage

A = pl.DataFrame({"name": ["Joan", "Pere"], "age": [19, 17]})


def masked(n: int, sizes: list[int], moved: float, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A file, and one in which that share of each column's values was given to other records."""
    rng = np.random.default_rng(seed)
    original = {f"k{i}": rng.integers(0, size, n) for i, size in enumerate(sizes)}
    released = {k: np.where(rng.random(n) < moved, rng.permutation(x), x) for k, x in original.items()}
    return pl.DataFrame({"id": np.arange(n)} | original), pl.DataFrame({"id": np.arange(n)} | released)


def records(table: pl.DataFrame) -> eq.Records:
    keys = [c for c in table.columns if c != "id"]
    return eq.read(table, eq.Roles(keys, id="id" if "id" in table.columns else None))


# --- two thousand records, every pair -------------------------------------------------------------------------------


def persons(size: int, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Names, ages, towns and gaps; released with misspelt names, moved ages and towns."""
    rng = np.random.default_rng(seed)
    pool = sorted({"".join(rng.choice(["ma", "ri", "jo", "an", "el", "na"], rng.integers(2, 5))) for _ in range(400)})
    name, age = rng.choice(pool, size), rng.integers(15, 90, size)
    town, sex = rng.choice(list("abcdefgh"), size), rng.choice(["f", "m"], size)
    dice = rng.random((4, size))
    typo = [
        str(n[:-1] if d < 0.1 else n[0] + "h" + n[1:] if d < 0.2 else n) for n, d in zip(name, dice[0], strict=True)
    ]
    original = pl.DataFrame({"id": np.arange(size), "name": name, "age": age, "town": town, "sex": sex})
    released = original.with_columns(
        name=pl.Series([None if d > 0.97 else n for n, d in zip(typo, dice[3], strict=True)]),
        age=pl.Series(np.where(dice[1] < 0.4, age + rng.integers(-3, 4, size), age)),
        town=pl.Series(np.where(dice[2] < 0.1, rng.permutation(town), town)),
    )
    return original, released


def levels(original: pl.DataFrame, released: pl.DataFrame) -> Any:
    """The level of every pair in name (near from 0.85), age (near to 2), town and sex, from the definition."""
    one, two = (t["name"].to_list() for t in (original, released))
    alike = process.cdist([x or "" for x in one], [x or "" for x in two], scorer=JaroWinkler.normalized_similarity)
    told = np.array([x is not None for x in one])[:, None] & np.array([x is not None for x in two])
    same = told & (np.array(one, dtype=object)[:, None] == np.array(two, dtype=object))
    name = np.where(same, 2, np.where(told & (alike >= 0.85), 1, 0))
    gap = np.abs(original["age"].to_numpy()[:, None] - released["age"].to_numpy())
    rest = [original[c].to_numpy()[:, None] == released[c].to_numpy() for c in ("town", "sex")]
    return np.stack([name, np.where(gap == 0, 2, np.where(gap <= 2, 1, 0)), *(x.astype(int) for x in rest)])


@pytest.mark.evidence(every=2)
@pytest.mark.parametrize("blocks", [None, ("sex",)])
def test_graded_agreement_of_all_pairs(blocks: tuple[str, ...] | None) -> None:
    """2,000 x 2,000 pairs: patterns, m and u, thresholds, the sum of weights of the assignment, and the share right."""
    from scipy.optimize import linear_sum_assignment

    original, released = persons(2000, 4)
    attack = Linkage(near=("name:0.85", "age:2"), blocks=blocks)
    made, _ = attack._study(records(released), records(original))
    level = levels(original, released)
    inside = level[3] == 1 if blocks else np.ones(level.shape[1:], dtype=bool)
    marks = ["0~1", "0~1", "01", "01"][: 3 if blocks else 4]
    packed = sum(level[i] * 3**i for i in range(len(marks)))
    kinds, counts = np.unique(packed[inside], return_counts=True)
    words = ["".join(mark[k // 3**i % 3] for i, mark in enumerate(marks)) for k in kinds.tolist()]
    assert dict(zip(made.texts(), made.pairs.tolist(), strict=True)) == dict(zip(words, counts.tolist(), strict=True))
    truth = attack.agreement(records(released), records(original))
    own = [level[i][np.eye(2000, dtype=bool) & inside] for i in range(2)]
    assert truth["m_true"][:4].to_list() == pytest.approx([float((x == k).mean()) for x in own for k in (2, 1)])
    place = {word: i for i, word in enumerate(made.texts())}
    index = np.array([place[w] for w in words])[np.minimum(np.searchsorted(kinds, packed), len(kinds) - 1)]
    floor = made.weights[made.order].min() - 1
    full = np.where(inside & (made.decisions[index] > 0), made.weights[index] - floor, 0.0)
    i, j = linear_sum_assignment(full, maximize=True)
    rank = np.full(len(made.pairs), -1)
    rank[made.order] = np.arange(len(made.order))
    a, b, pattern = made.compared.edges(rank)
    here, there = made.files.first_counts, made.files.second_counts
    assert int((here[a] * there[b]).sum()) == int((full > 0).sum())
    pairs = assignment.assign(a, b, made.weights[pattern] - floor, here, there, np.random.default_rng(0))
    assert float((pairs * (made.weights[pattern] - floor)).sum()) == pytest.approx(float(full[i, j].sum()), rel=1e-12)
    score = attack.measure(records(released), records(original))
    assert score.value == pytest.approx(float(((i == j) & (full[i, j] > 0)).mean()), abs=0.02)
    if blocks:
        left = f"{int((~inside).sum()):,} left out, 0 true ones among them."
        assert score.notes[2] == f"Compared: {int(inside.sum()):,} pairs equal on sex; {left}"


def test_rows_of_graded_files_may_move() -> None:
    original, released = persons(400, 2)
    attack = Linkage(near=("name:0.85", "age:2"), blocks=("sex",))
    one = attack.measure(records(released), records(original))
    moved = [t.sample(fraction=1, shuffle=True, seed=5 + k) for k, t in enumerate((original, released))]
    two = attack.measure(records(moved[1]), records(moved[0]))
    assert two.value == pytest.approx(one.value, abs=1e-12)
    assert_frame_equal(one.by_record().sort("id"), two.by_record().sort("id"))
    assert one.value > Linkage(("name", "age", "town")).measure(records(released), records(original)).value


def test_too_many_pairs_ask_for_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graded_agreement, "MAX_COMPARED_PAIRS", 1000)
    original, released = persons(100, 1)
    with pytest.raises(eq.ParameterError, match="name blocks"):
        Linkage(near=("age:2",)).measure(records(released), records(original))
    assert Linkage(near=("age:2",), blocks=("town", "name")).measure(records(released), records(original)).value > 0.5


def test_many_candidates_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without assignment, and with some: nothing jumps; what is too much is left alone and said."""
    original, released = persons(400, 3)
    attack = Linkage(near=("name:0.85", "age:2"))
    every = attack.measure(records(released), records(original))
    for limit, word in ((500, "lighter ones cells to cells"), (0, "cells to cells")):
        monkeypatch.setattr(pair_up, "MAX_ASSIGNED_PAIRS", limit)
        some = attack.measure(records(released), records(original))
        assert word in some.notes[-1]
        assert some.value == pytest.approx(every.value, abs=0.06)
    monkeypatch.setattr(pair_up, "MAX_LISTED_PAIRS", 0)
    assert "left alone" in attack.measure(records(released), records(original)).notes[-1]


# --- nobody knows who is who ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "moved"), [([2, 5, 20, 10, 8], 0.05), ([2, 5, 20, 50, 10, 100], 0.2), ([9, 9, 9], 0.1)]
)
@pytest.mark.parametrize(("here", "there"), [(1000, 700), (600, 1000)])
def test_the_share_is_estimated(sizes: list[int], moved: float, here: int, there: int) -> None:
    """Within 0.06 of the truth, which is known here; each file holds some of the people, without ids."""
    original, released = masked(1000, sizes, moved, 6)
    original, released = original.head(here), released.sample(n=there, seed=1)
    truth = Linkage().measure(records(released), records(original))
    score = Linkage().measure(records(released.drop("id")), records(original.drop("id")))
    assert score.notes[0].startswith("Estimated: nobody can tell")
    assert score.value == pytest.approx(float(truth.number or 0) / min(here, there), abs=0.06)
    assert score.by_record()["risk"].sum() == pytest.approx(score.number)
    assert score.by_record().height == here
    assert score.detail["risk"].is_between(0, 1).all()
    assert Linkage().agreement(records(released.drop("id")), records(original.drop("id")))["m_true"].null_count()


def test_a_graded_share_is_estimated() -> None:
    original, released = persons(700, 5)
    attack = Linkage(near=("name:0.85", "age:3"))
    part = released.sample(n=500, seed=2)
    truth = attack.measure(records(part), records(original))
    score = attack.measure(records(part.drop("id")), records(original.drop("id")))
    assert score.notes[0].startswith("Estimated")
    assert score.value == pytest.approx(truth.value, abs=0.06)


def test_dates_and_times_of_dates_agree() -> None:
    days = pl.DataFrame({"day": pl.date_range(date(2020, 1, 1), date(2020, 2, 9), eager=True), "k": [1, 2] * 20})
    moved = days.with_columns(pl.col("day").cast(pl.Datetime("ms")))
    assert Linkage().measure(records(moved), records(days)).value == 1.0
    late = moved.with_columns(pl.col("day") + pl.duration(hours=12))
    found = Linkage(near={"day": 0.5}).patterns(records(late), records(days))  # type: ignore[arg-type]
    assert found.filter(pl.col("pattern").str.starts_with("~"))["pairs"].sum() == 40 + 39


@pytest.mark.parametrize("near", [("age",), ("age:x",), ("age:0",), ("age:-1",), (":3",), ("other:2",), ("name:1.5",)])
def test_bad_nearness_is_refused(near: tuple[str, ...]) -> None:
    with pytest.raises(eq.ParameterError, match="near"):
        Linkage(near=near).measure(records(A), records(A))
    with pytest.raises(eq.ParameterError, match="both near and blocks"):
        Linkage(near=("age:2",), blocks=("age",))
