"""Swap: the paper's policy, its closed forms by simulation, the margins it promises, and households kept whole."""

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import equipoise as eq
from equipoise.ground.randomness import Draws
from equipoise.masks import Swap
from equipoise.rules import MinCount

ROLES = eq.Roles(id="id")


def swapped(mask: Swap, table: Any, seed: int = 1, roles: eq.Roles = ROLES) -> pl.DataFrame:
    return mask.apply(eq.read(table, roles), Draws(seed)).collect()


def cells(table: pl.DataFrame, *columns: str) -> Counter[Any]:
    return Counter(table.select(columns).iter_rows())


@pytest.fixture(scope="module")
def town() -> pl.DataFrame:
    rng = np.random.default_rng(5)
    size = 1500
    return pl.DataFrame(
        {
            "id": np.arange(size) * 2 + 1,
            "age": rng.integers(20, 60, size),
            "sex": rng.choice(["f", "m"], size),
            "area": rng.choice(["a", "b", "c", "d"], size, p=[0.4, 0.4, 0.15, 0.05]),
            "region": rng.choice(["n", "s"], size),
            "income": rng.normal(100, 20, size),
            "job": rng.choice(list("xyz"), size),
            "w": rng.choice([1.0, 2.0], size),
        }
    )


# --- the paper's example ------------------------------------------------------------------------------------------


def example() -> pl.DataFrame:
    """Section 2.2: a 37 year old alone in area 11, two in area 12."""
    return pl.DataFrame(
        {"id": range(5), "age": [37, 43, 43, 37, 37], "area": [11, 11, 11, 12, 12], "income": [89, 46, 32, 55, 40]}
    )


def test_the_example_has_one_candidate_and_two_partners() -> None:
    done = Swap(["age"], "area", ["income"], 1).apply(eq.read(example(), ROLES), Draws(1))
    law = done.history[0]
    assert law.parameters["candidates"] == 1
    assert law.parameters["partners"] == {"least": 2, "median": 2.0, "most": 2}
    partner = {tuple(swapped(Swap(["age"], "area", ["income"], 1), example(), s)["income"]) for s in range(40)}
    assert partner == {(55, 46, 32, 89, 40), (40, 46, 32, 55, 89)}


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.9])
def test_closed_forms_of_the_example(rate: float) -> None:
    """Section 6.2, areas of 3 and 2: identity risk 1 - p of a snooper who takes the record at its word,
    E(loss) = p (2 s2 + (mu1 - mu2)^2), MSE of the difference of means = 5/6 s2 + (5/6)^2 p (mu1 - mu2)^2.

    50,000 files, stacked as one with a number as further key; within 4 standard errors.
    """
    files, s, first, second = 50_000, 2.0, 10.0, 7.0
    rng = np.random.default_rng(8)
    incomes = np.where(np.arange(5) < 3, first, second) + rng.normal(0, s, (files, 5))
    table = pl.DataFrame(
        {
            "id": np.arange(5 * files),
            "file": np.repeat(np.arange(files), 5),
            "age": np.tile([37, 43, 43, 37, 37], files),
            "area": np.tile([11, 11, 11, 12, 12], files),
            "income": incomes.ravel(),
        }
    )
    found = swapped(Swap(["file", "age"], "area", ["income"], rate), table, 3)["income"].to_numpy().reshape(files, 5)
    gap, error = first - second, 1 / math.sqrt(files)
    same = (found[:, 0] == incomes[:, 0]).mean()
    assert same == pytest.approx(1 - rate, abs=4 * math.sqrt(rate * (1 - rate)) * error)
    loss = (found[:, 0] - incomes[:, 0]) ** 2
    assert loss.mean() == pytest.approx(rate * (2 * s**2 + gap**2), abs=4 * loss.std() * error)
    mse = (found[:, :3].mean(axis=1) - found[:, 3:].mean(axis=1) - gap) ** 2
    assert mse.mean() == pytest.approx(5 / 6 * s**2 + (5 / 6) ** 2 * rate * gap**2, abs=4 * mse.std() * error)


def test_partners_are_drawn_evenly() -> None:
    """A candidate with K = 3 possible partners gets each a third of the time, within 4 standard errors."""
    size = 6000
    table = pl.DataFrame(
        {
            "id": np.arange(4 * size),
            "key": np.repeat(np.arange(size), 4),
            "area": np.tile([1, 2, 2, 2], size),
            "y": np.tile([0, 1, 2, 3], size),
        }
    )
    got = swapped(Swap(["key"], "area", ["y"], 1), table)["y"].to_numpy().reshape(size, 4)[:, 0]
    share = np.bincount(got, minlength=4) / size
    assert share[0] == 0
    assert share[1:] == pytest.approx([1 / 3] * 3, abs=4 * math.sqrt(2 / 9 / size))


# --- margins, and who is touched ----------------------------------------------------------------------------------


@pytest.mark.parametrize("protected", [("income", "job"), ("job",), ()])
@pytest.mark.parametrize("more", [{}, {"within": ("region",)}, {"similar": "income"}, {"target": MinCount(3)}])
def test_margins_are_kept_and_only_pairs_change(town: pl.DataFrame, protected: Any, more: Any) -> None:
    """Keys by area, keys by what moves, and each margin: exactly. Candidates and partners in pairs: nobody else."""
    mask = Swap(["age", "sex"], "area", protected, 0.7, **more)
    found = swapped(mask, town, 4)
    moving = protected or ("area",)
    assert found.schema == town.schema
    assert_frame_equal(found.drop(moving), town.drop(moving))
    assert cells(found, "age", "sex", "area") == cells(town, "age", "sex", "area")
    assert cells(found, "age", "sex", *moving) == cells(town, "age", "sex", *moving)
    count = cells(town, "age", "sex", "area")
    least = 3 if "target" in more else 2
    candidate = np.array([count[row] < least for row in town.select("age", "sex", "area").iter_rows()])
    full = swapped(Swap(["age", "sex"], "area", ("id2",), 0.7, **more), town.with_columns(id2=pl.col("id")), 4)
    partner = full["id2"].to_numpy()
    place = {i: n for n, i in enumerate(town["id"])}
    other = np.array([place[i] for i in partner])
    moved = other != np.arange(town.height)
    assert moved.any()
    assert (other[other] == np.arange(town.height)).all(), "in pairs"
    assert (candidate | candidate[other])[moved].all(), "one of each pair is a candidate"
    area = town["area"].to_numpy()
    assert (area[other] != area)[moved].all()
    keys = town.select("age", "sex", *more.get("within", ())).rows()
    assert all(keys[i] == keys[other[i]] for i in np.flatnonzero(moved))
    untouched = town.filter(~pl.Series(moved))
    assert_frame_equal(found.filter(~pl.Series(moved)), untouched)


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 3), st.one_of(st.none(), st.integers(0, 3)), st.integers(0, 9)),
        min_size=1,
        max_size=60,
    ),
    rate=st.floats(0.1, 1),
    seed=st.integers(0, 1000),
)
def test_margins_whatever_the_data(rows: list[Any], rate: float, seed: int) -> None:
    table = pl.DataFrame(rows, schema={"k": pl.Int64, "area": pl.Int64, "y": pl.Int64}, orient="row").with_row_index(
        "id"
    )
    found = swapped(Swap(["k"], "area", (), rate), table, seed)
    assert cells(found, "k", "area") == cells(table, "k", "area")
    assert found["area"].is_null().equals(table["area"].is_null())
    assert_frame_equal(found.drop("area"), table.drop("area"))


def test_the_rate_is_the_probability_of_a_pair(town: pl.DataFrame) -> None:
    """Over 200 seeds the share of pairs swapped is the rate, within 4 standard errors; with `cap` at most K/(K+1)."""
    records, id2 = eq.read(town.with_columns(id2=pl.col("id")), ROLES), town["id"].to_numpy()
    swaps = pairs = 0
    for seed in range(200):
        done = Swap(["age", "sex"], "area", ("id2",), 0.3).apply(records, Draws(seed))
        swaps += int((done.collect()["id2"].to_numpy() != id2).sum()) // 2
        pairs += done.history[0].parameters["pairs"]
    assert swaps / pairs == pytest.approx(0.3, abs=4 * math.sqrt(0.21 / pairs))
    twins = pl.DataFrame({"id": range(4000), "k": np.repeat(np.arange(2000), 2), "area": [1, 2] * 2000})
    half = swapped(Swap(["k"], "area", (), 1.0, cap=True), twins)
    moved = (half["area"] != twins["area"]).sum() / 4000
    assert moved == pytest.approx(0.5, abs=4 * math.sqrt(0.25 / 2000)), "K = 1: at most one in two"


def test_similar_partners_are_nearer(town: pl.DataFrame) -> None:
    near, far = (
        (swapped(Swap(["sex"], "area", ("income",), 1, similar=s, target="t"), town.with_columns(t=pl.col("age") < 25)))
        for s in ("income", None)
    )
    change = [float((t["income"] - town["income"]).abs().mean()) for t in (near, far)]  # type: ignore[arg-type]
    assert 0 < change[0] < 0.1 * change[1]


def test_targets(town: pl.DataFrame) -> None:
    """A column of booleans or numbers names the candidates."""
    table = town.with_columns(t=pl.col("income") > 140, risk=pl.when(pl.col("income") > 140).then(0.5).otherwise(0.0))
    one = swapped(Swap(["sex"], "area", ("job", "income"), 1, target="t"), table)
    assert one.drop("t", "risk").equals(
        swapped(Swap(["sex"], "area", ("job", "income"), 1, target="risk"), table).drop("t", "risk")
    )
    moved = one["income"] != table["income"]
    assert moved.sum() == 2 * table["t"].sum() or moved.sum() < 2 * table["t"].sum()
    assert (moved & table["t"]).sum() > 0.9 * table["t"].sum()
    with pytest.raises(eq.DataError, match="booleans or numbers"):
        swapped(Swap(["sex"], "area", ("income",), 1, target="job"), table)


# --- households ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def homes() -> pl.DataFrame:
    rng = np.random.default_rng(6)
    size = rng.integers(1, 4, 400)
    home = np.repeat(np.arange(400), size)
    return pl.DataFrame(
        {
            "id": np.arange(len(home)) + 10,
            "home": home + 1000,
            "area": np.repeat(rng.choice(["a", "b", "c"], 400), size),
            "band": rng.integers(0, 4, len(home)),
            "income": rng.normal(size=len(home)),
        }
    )


@pytest.mark.parametrize("protected", [(), ("income",)])
def test_households_move_whole(homes: pl.DataFrame, protected: Any) -> None:
    """A household exchanges with one of the same members' keys in another area; areas by keys stay."""
    roles = eq.Roles(id="id", household="home")
    found = swapped(Swap(["band"], "area", protected, 1), homes, roles=roles)
    assert cells(found, "band", "area") == cells(homes, "band", "area")
    assert found.group_by("home").agg(pl.col("area").n_unique())["area"].max() == 1
    assert not found.equals(homes)
    profile = homes.group_by("home").agg(pl.col("band").sort(), pl.col("area").first(), pl.col("income"))
    bands = {h: (tuple(b), a) for h, b, a, _ in profile.iter_rows()}
    count = Counter(bands.values())
    if protected:
        assert cells(found, "band", "income") == cells(homes, "band", "income")
        owner = dict(zip(homes["income"], homes["home"], strict=True))
        came = found.with_columns(came=pl.col("income").replace_strict(owner)).group_by("home").agg("came")
        for h, others in came.iter_rows():
            assert len(set(others)) == 1, "all members come from one household"
            assert bands[h][0] == bands[others[0]][0]
            if others[0] != h:
                assert bands[h][1] != bands[others[0]][1]
                assert min(count[bands[h]], count[bands[others[0]]]) == 1
    again = swapped(Swap(["band"], "area", protected, 1), homes.sample(fraction=1, shuffle=True, seed=2), roles=roles)
    assert_frame_equal(again.sort("id"), found)


def test_households_in_two_areas_are_refused(homes: pl.DataFrame) -> None:
    torn = homes.with_columns(area=pl.when(pl.col("id") % 2 == 0).then(pl.lit("z")).otherwise("area"))
    roles = eq.Roles(id="id", household="home")
    with pytest.raises(eq.DataError, match=r"households lie in more than one 'area'"):
        swapped(Swap(["band"], "area", (), 1), torn, roles=roles)
    with pytest.raises(eq.RolesError, match="no household"):
        swapped(Swap(["band"], "area", (), 1), homes.with_columns(home=pl.lit(None, pl.Int64)), roles=roles)


# --- the law ------------------------------------------------------------------------------------------------------


def test_the_law_says_partners_variances_and_the_cap() -> None:
    """Areas far apart: swapping takes from the variance between them and gives to that within; K = 1 caps at 1/2."""
    size = 500
    table = pl.DataFrame(
        {
            "id": range(2 * size),
            "k": np.repeat(np.arange(size), 2),
            "area": [1, 2] * size,
            "y": np.tile([0.0, 10.0], size) + np.random.default_rng(0).normal(size=2 * size),
        }
    )
    done = Swap(["k"], "area", ["y"], 0.8).apply(eq.read(table, ROLES), Draws(1))
    law, after = done.history[0], done.collect()
    assert law.parameters["partners"]["least"] == 1
    assert "K / (K + 1) = 0.5 where K = 1: use cap=True" in law.words
    assert "max(1 - rate, rate / K)" in law.words
    between = {
        t: float(np.var([float(f["y"].mean()) for _, f in t_.group_by("area")]))
        for t, t_ in (("o", table), ("r", after))
    }  # type: ignore[arg-type]
    assert law.parameters["variance_between"]["y"] == pytest.approx(between["r"] / between["o"], rel=0.01)
    assert law.parameters["variance_within"]["y"] > 2
    assert law.detail.within["y"][0] + law.detail.between["y"][0] == pytest.approx(float(np.var(table["y"].to_numpy())))
    assert sum(x[1] for x in (law.detail.within["y"], law.detail.between["y"])) == pytest.approx(
        float(np.var(after["y"].to_numpy()))
    )
    assert "use cap" not in Swap(["k"], "area", ["y"], 0.5).apply(eq.read(table, ROLES), Draws(1)).history[0].words
    assert (
        "use cap" not in Swap(["k"], "area", ["y"], 1, cap=True).apply(eq.read(table, ROLES), Draws(1)).history[0].words
    )


def test_nobody_to_swap_with() -> None:
    table = pl.DataFrame({"id": [1, 2, 3], "k": [1, 2, 3], "area": [1, 1, 2]})
    done = Swap(["k"], "area", (), 1).apply(eq.read(table, ROLES), Draws(1))
    assert done.collect().equals(table)
    assert "No candidate has a partner" in done.history[0].words
    assert done.history[0].parameters["without_partner"] == 1


# --- the same everywhere, and refusals ----------------------------------------------------------------------------


def test_rows_engines_seeds(engine: Any, town: pl.DataFrame) -> None:
    for mask in (Swap(["age", "sex"], "area", ("income",), 0.6), Swap(["age"], "area", (), 0.6, similar="income")):
        expected = swapped(mask, town).sort("id")
        records = eq.read(engine.make(town.sample(fraction=1, shuffle=True, seed=3)), ROLES)
        if engine.name == "pyspark":
            with pytest.raises(eq.EngineError, match="in memory"):
                mask.apply(records, Draws(1))
            return
        found = engine.rows(mask.apply(records, Draws(1)).to_native()).sort("id")
        assert_frame_equal(found.select(expected.columns), expected, check_dtypes=False)
        assert not expected.equals(swapped(mask, town, 2).sort("id"))


def test_scanned_parquet(town: pl.DataFrame, tmp_path: Path) -> None:
    town.write_parquet(tmp_path / "town.parquet", row_group_size=100)
    mask = Swap(["age", "sex"], "area", ("income",), 0.6)
    done = mask.apply(eq.read(pl.scan_parquet(tmp_path / "town.parquet"), ROLES), Draws(1))
    assert_frame_equal(done.collect(), swapped(mask, town))


@pytest.mark.parametrize(
    "bad",
    [
        {"rate": 0},
        {"rate": 1.5},
        {"rate": math.nan},
        {"keys": ()},
        {"attribute": "age"},
        {"protected": ("area",)},
        {"protected": ("age",)},
        {"within": ("age",)},
        {"target": 3},
    ],
)
def test_bad_parameters(bad: dict[str, Any]) -> None:
    good: dict[str, Any] = {"keys": ("age",), "attribute": "area", "protected": ("income",), "rate": 0.5}
    with pytest.raises(eq.ParameterError):
        Swap(**(good | bad))


def test_percent_and_misspelt_columns(town: pl.DataFrame) -> None:
    with pytest.raises(eq.ParameterError, match=r"Write 50 % as 0\.5"):
        Swap(["age"], "area", (), 50)
    with pytest.raises(eq.RolesError, match="'area'"):
        swapped(Swap(["age"], "areaa", (), 0.5), town)
    with pytest.raises(eq.DataError, match="not numeric"):
        swapped(Swap(["age"], "area", (), 0.5, similar="job"), town)
