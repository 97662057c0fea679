"""Pram on records: the same draw everywhere, nothing else touched, margins kept, refusals that say what works."""

import os
import sys
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import equipoise as eq
from equipoise.ground.randomness import Draws
from equipoise.laws.move_records import MovePlan
from equipoise.masks import Pram
from equipoise.masks.pram import _chunks
from equipoise.recipe.catalogue import build, parse

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's workers must find this package
METHODS = ("blocks", "nayak")


def moved(mask: Pram, table: Any, roles: eq.Roles, seed: int = 1) -> pl.DataFrame:
    return mask.apply(eq.read(table, roles), Draws(seed)).collect()


def plan_of(records: eq.Records) -> MovePlan:
    found = records.history[-1].detail
    assert isinstance(found, MovePlan)
    return found


def cells_of(table: pl.DataFrame, columns: list[str]) -> dict[tuple[Any, ...], int]:
    return dict(Counter(table.select(columns).iter_rows()))


@pytest.fixture(scope="module")
def town() -> pl.DataFrame:
    """Small cells in every region, a weight that has nothing to do with the keys, and columns of several types."""
    rng = np.random.default_rng(42)
    size = 600
    return pl.DataFrame(
        {
            "id": np.arange(size) * 3 + 5,
            "region": rng.choice(["N", "S", "W"], size, p=[0.5, 0.4, 0.1]),
            "age": rng.integers(20, 60, size).astype(np.int16),
            "job": pl.Series(rng.choice(list("abcdefgh"), size, p=zipf(8))).cast(pl.Categorical),
            "born": pl.Series(rng.integers(0, 4, size)).cast(pl.Date),
            "income": rng.integers(0, 10_000, size),
            "note": [f"note {i}" for i in range(size)],
            "w": rng.choice([1.0, 2.0, 3.5], size),
        }
    )


def zipf(size: int) -> Any:
    share = 1 / np.arange(1, size + 1)
    return share / share.sum()


KEYS = ["region", "age", "job", "born"]
ROLES = eq.Roles(KEYS, id="id")


# --- the draw -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("within", [None, ("region",), "auto"])
def test_same_seed_same_file_whatever_the_row_order(town: pl.DataFrame, method: Any, within: Any) -> None:
    """Draws are keyed by (seed, step, id): row order changes nothing, another seed changes the file."""
    mask = Pram(0.8, method=method, within=within)
    one = moved(mask, town, ROLES).sort("id")
    two = moved(mask, town.sample(fraction=1, shuffle=True, seed=9), ROLES).sort("id")
    other = moved(mask, town, ROLES, seed=2).sort("id")
    assert_frame_equal(one, two)
    assert not one.equals(other)
    assert not one.equals(town)


@pytest.mark.parametrize("method", METHODS)
def test_without_an_id_the_content_decides(method: Any) -> None:
    """Without an id the key is the row and its number among identical rows: duplicates do not move together."""
    rng = np.random.default_rng(3)
    table = pl.DataFrame({"a": rng.integers(0, 30, 200), "b": rng.integers(0, 6, 200), "c": rng.integers(0, 2, 200)})
    mask, roles = Pram(0.7, method=method), eq.Roles(["a", "b"])
    one = moved(mask, table, roles)
    two = moved(mask, table.sample(fraction=1, shuffle=True, seed=4), roles)
    assert Counter(one.iter_rows()) == Counter(two.iter_rows())
    assert Counter(one.iter_rows()) != Counter(moved(mask, table, roles, seed=5).iter_rows())
    alike = pl.DataFrame({"a": [0] * 2 + [1] * 2})
    fates = {tuple(moved(Pram(0.3), alike, eq.Roles("a"), seed=s)["a"][:2]) for s in range(30)}
    assert len({len(set(pair)) for pair in fates}) == 2, "two records alike sometimes part"


def test_released_by_every_engine_alike(engine: Any, town: pl.DataFrame) -> None:
    """The same seed gives the same file on every engine; the kind of frame that came in comes back."""
    plain = town.drop("job").with_columns(job=town["job"].cast(pl.String))
    roles = eq.Roles(KEYS, id="id", weight="w")
    for mask in (
        Pram(0.8),
        Pram(0.6, within=("region",), method="nayak"),
        Pram(0.4, within="auto", invariant="weights"),
    ):
        expected = moved(mask, plain, roles).sort("id")
        released = mask.apply(eq.read(engine.make(plain), roles), Draws(1))
        native = released.to_native()
        assert isinstance(native, engine.type)
        found = engine.rows(native).sort("id").select(expected.columns)
        assert_frame_equal(found, expected, check_dtypes=engine.name not in ("pandas", "pyspark"))


@pytest.mark.parametrize("method", METHODS)
def test_scanned_from_parquet(town: pl.DataFrame, tmp_path: Path, method: Any) -> None:
    """A scanned file is moved lazily, piece by piece, to the same records."""
    town.write_parquet(tmp_path / "town.parquet", row_group_size=64)
    mask = Pram(0.8, method=method)
    released = mask.apply(eq.read(pl.scan_parquet(tmp_path / "town.parquet"), ROLES), Draws(1))
    assert isinstance(released.to_native(), pl.LazyFrame)
    assert_frame_equal(released.collect().sort("id"), moved(mask, town, ROLES).sort("id"))


@pytest.mark.xdist_group("spark")
def test_spark_with_other_partitions(spark: Any, town: pl.DataFrame) -> None:
    """The same seed gives the same file on Polars and PySpark whatever the row order and partitions."""
    plain = town.with_columns(pl.col("job").cast(pl.String))
    for mask, parts in ((Pram(0.7), 5), (Pram(0.7, method="nayak"), 1)):
        expected = moved(mask, plain, ROLES, seed=11).sort("id")
        frame = spark.createDataFrame(plain.reverse().to_arrow()).repartition(parts, "note")
        found = mask.apply(eq.read(frame, ROLES), Draws(11)).collect().sort("id").select(expected.columns)
        assert_frame_equal(found, expected, check_dtypes=False)


@pytest.mark.xdist_group("spark")
def test_spark_needs_an_id_and_memory_for_households(spark: Any, town: pl.DataFrame) -> None:
    """Records on Spark have no order to key draws by."""
    pairs = town.with_columns(pl.col("job").cast(pl.String), home=(pl.col("id") - 5) // 6)
    frame = spark.createDataFrame(pairs.to_arrow())
    with pytest.raises(eq.RolesError, match="id role"):
        Pram(0.8).apply(eq.read(frame, eq.Roles(KEYS)), Draws(1))
    with pytest.raises(eq.EngineError, match="in memory"):
        Pram(0.8).apply(eq.read(frame, eq.Roles(["region", "age"], id="id", household="home")), Draws(1))


@pytest.mark.parametrize("make", [lambda t: t, lambda t: t.lazy()], ids=["memory", "lazy"])
def test_repeated_ids_are_refused(make: Any) -> None:
    """House: duplicate ids are refused. Two records of one id would share their draws and move together."""
    table = pl.DataFrame({"id": [1, 1, 2, 3], "a": [1, 2, 3, 4]})
    for mask in (Pram(0.8), eq.masks.PramMatrix("a", diagonal=0.5)):
        with pytest.raises(eq.RolesError, match="unique"):
            mask.apply(eq.read(make(table), eq.Roles("a", id="id")), Draws(1)).collect()


# --- what is kept -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("within", [None, ("region",), "auto"])
def test_other_columns_order_and_types_stay(town: pl.DataFrame, method: Any, within: Any) -> None:
    """Only keys change, and only to combinations that are occupied; row order and types stay."""
    found = moved(Pram(0.6, method=method, within=within), town, ROLES)
    assert found.schema == town.schema
    rest = [c for c in town.columns if c not in KEYS]
    assert_frame_equal(found.select(rest), town.select(rest))
    assert set(found.select(KEYS).iter_rows()) <= set(town.select(KEYS).iter_rows())


@pytest.mark.parametrize("method", METHODS)
def test_the_pattern_of_missing_keys_never_changes(town: pl.DataFrame, method: Any) -> None:
    """Null patterns are an implicit group: nothing is made missing and nothing filled in, record by record."""
    rng = np.random.default_rng(8)
    gaps = town.with_columns(
        pl.when(pl.Series(rng.random(600) < 0.2)).then(None).otherwise(pl.col("age")).alias("age"),
        pl.when(pl.Series(rng.random(600) < 0.3)).then(None).otherwise(pl.col("born")).alias("born"),
    )
    for seed in range(5):
        found = moved(Pram(0.6, method=method), gaps, ROLES, seed=seed)
        assert_frame_equal(found.select(pl.col(KEYS).is_null()), gaps.select(pl.col(KEYS).is_null()))
        assert not found.equals(gaps)


def test_nan_keys_count_as_missing() -> None:
    """NaN and null are both missing: neither is made, and a record with NaN gets no number."""
    table = pl.DataFrame({"id": range(40), "x": [float("nan"), 1.5, 2.5, None] * 10, "y": list(range(20)) * 2})
    found = moved(Pram(0.4), table, eq.Roles(["x", "y"], id="id"))
    assert (found["x"].fill_nan(None).is_null() == table["x"].fill_nan(None).is_null()).all()


@pytest.mark.parametrize("method", METHODS)
def test_margins_of_within_are_kept_exactly(town: pl.DataFrame, method: Any) -> None:
    """Nayak, section 5: within groups, margins are kept exactly and forbidden switches cannot happen."""
    for seed in range(5):
        found = moved(Pram(0.8, method=method, within=("region",)), town, ROLES, seed=seed)
        assert found["region"].equals(town["region"])
        assert not found.select(KEYS).equals(town.select(KEYS))
    coarse = town.with_columns(band=(pl.col("age") // 20).cast(pl.Int64))
    both = moved(Pram(0.8, method=method, within=("region", "band")), coarse, eq.Roles(KEYS, id="id"))
    assert both.select("region", "band").equals(coarse.select("region", "band"))
    assert (both["age"] // 20 == coarse["age"] // 20).all(), "a column that is no key holds records back as well"


def test_auto_keeps_similar_records_together() -> None:
    """The mean hierarchy distance of moved records is at most half that of one big group."""
    survey = eq.demo.survey().head(12_000)
    trees = {"age": eq.Hierarchy.intervals([5, 10, 20, 40]), "salary": eq.Hierarchy.intervals([10_000, 50_000])}
    records = eq.read(survey, eq.Roles(["sex", "race", "age", "salary"], id="person", hierarchies=trees))
    for method in METHODS:
        far = {}
        for within in (None, "auto"):
            released = Pram(0.8, method=method, within=within).apply(records, Draws(6))  # type: ignore[arg-type]
            score = eq.utility.Changed().measure(released, records)
            far[within] = score.detail.row(by_predicate=pl.col("key") == "all", named=True)["distance"]
        assert 0 < far["auto"] <= 0.5 * far[None], (method, far)


def test_auto_groups_are_as_large_as_the_guarantee_needs() -> None:
    """Nayak's below 1/2 needs three cells in every group: neighbours in threes to fives, never across groups."""
    rng = np.random.default_rng(0)
    for size in (3, 4, 5, 6, 100, 101):
        groups = np.repeat([0, 1], [size, 7])
        order = rng.permutation(size + 7)
        found = _chunks(groups, order, 3)
        assert np.bincount(found).min() >= 3
        assert np.bincount(found).max() <= 5
        assert all(len(set(groups[found == c])) == 1 for c in set(found.tolist()))
        for part in (0, 1):
            cells = np.flatnonzero(groups == part)
            assert (np.diff(found[cells[np.argsort(order[cells])]]) >= 0).all()


# --- over many draws ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_counts_and_matches_over_seeds(method: Any) -> None:
    """Invariance and the bound on a real file over 300 seeds: every count, movers and matches within 4 errors."""
    rng = np.random.default_rng(1)
    table = pl.DataFrame({"id": range(60), "a": rng.integers(0, 12, 60), "b": rng.integers(0, 3, 60)})
    roles, times = eq.Roles(["a", "b"], id="id"), 300
    records = eq.read(table, roles)
    mask = Pram(0.8, method=method)
    plan = mask.plan(records)
    truth = table.select("a", "b").rows()
    cells = plan.units.cells.table.select("a", "b").rows()
    sums, movers, right, alone = dict.fromkeys(cells, 0), 0, 0, 0
    for seed in range(times):
        found = mask.apply(records, Draws(seed)).collect().select("a", "b").rows()
        seen = Counter(found)
        for cell, number in seen.items():
            sums[cell] += number
        movers += sum(x != z for x, z in zip(truth, found, strict=True))
        unique = [i for i, x in enumerate(truth) if seen[x] == 1]
        alone += len(unique)
        right += sum(found[i] == truth[i] for i in unique)
    law = plan.law
    mean = np.array([sums[cell] for cell in cells]) / times
    assert (np.abs(mean - law.counts) <= 4 * np.sqrt(law.variance() / times) + 1e-12).all()
    leave = np.repeat(law.leave(), law.counts)
    assert abs(movers / times - law.movers()) <= 4 * np.sqrt((leave * (1 - leave)).sum() / times)
    assert right / alone <= 0.8 + 4 * np.sqrt(0.16 / alone)


def test_weighted_totals_are_kept_in_expectation() -> None:
    """Zhang and Nayak: invariant='weights' leaves every cell's weighted total unbiased, within 4 Monte Carlo errors."""
    rng = np.random.default_rng(2)
    size, times = 80, 400
    cell = rng.integers(0, 45, size)
    table = pl.DataFrame({"id": range(size), "a": cell, "w": rng.choice([1.0, 3.0, 40.0], size)})
    records = eq.read(table, eq.Roles("a", weight="w", id="id"))
    mask, weight = Pram(0.45, invariant="weights"), table["w"].to_numpy()
    totals = np.empty((times, 45))
    for seed in range(times):
        goal = mask.apply(records, Draws(seed)).collect()["a"].to_numpy()
        totals[seed] = np.bincount(goal, weights=weight, minlength=45)
    truth = np.bincount(cell, weights=weight, minlength=45)
    error = totals.std(axis=0, ddof=1) / np.sqrt(times)
    assert (np.abs(totals.mean(axis=0) - truth) <= 4 * error + 1e-9).all()
    law = mask.plan(records).law
    assert law.match().max() <= 0.45 + 1e-12, "with the same bound"
    plain = Pram(0.45).plan(records).law
    assert np.abs(law.expected() - law.counts).max() > 0.1, "the price: unweighted counts are not kept"
    assert plain.expected() == pytest.approx(plain.counts, abs=1e-12)


def test_weights_of_zero() -> None:
    """A cell without weight is left by all its records; a block without weight keeps counts instead."""
    table = pl.DataFrame({"a": [1, 2, 3, 4], "w": [0.0, 1.0, 0.0, 0.0]})
    records = eq.read(table, eq.Roles("a", weight="w"))
    released = Pram(0.8, invariant="weights").apply(records, Draws(1))
    assert eq.risk.MatchProbability().measure(released, records).value <= 0.8 + 1e-12
    assert eq.risk.MatchProbability().curve(released)["probability"].is_finite().all()
    assert released.collect()["w"].equals(table["w"])


# --- households ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def homes() -> pl.DataFrame:
    """Households of one to three, the members of one place together; some ages missing."""
    rng = np.random.default_rng(12)
    size = rng.choice([1, 2, 3], 150, p=[0.4, 0.4, 0.2])
    home = np.repeat(np.arange(150) + 1000, size)
    people = len(home)
    table = pl.DataFrame(
        {
            "person": np.arange(people),
            "home": home,
            "place": np.repeat(rng.choice(["x", "y"], 150), size),
            "age": rng.choice([10, 20, 30, 40, 50], people),
            "sex": rng.choice(["f", "m"], people),
        }
    )
    return table.with_columns(pl.when(pl.col("person") % 9 == 0).then(None).otherwise(pl.col("age")).alias("age"))


HOME = eq.Roles(["place", "age", "sex"], id="person", household="home")


def profiles(table: pl.DataFrame) -> list[tuple[Any, ...]]:
    """Each household as the sorted list of its members' keys."""
    listed: dict[int, list[tuple[str, ...]]] = {}
    for home, *keys in table.select("home", "place", "age", "sex").iter_rows():
        listed.setdefault(home, []).append(tuple(map(str, keys)))
    return [tuple(sorted(members)) for _, members in sorted(listed.items())]


@pytest.mark.parametrize("method", METHODS)
def test_whole_households_move(homes: pl.DataFrame, method: Any) -> None:
    """With a household role the unit is the household: its size stays, and it becomes another that was in the file."""
    records = eq.read(homes, HOME)
    mask = Pram(0.8, method=method)
    before = profiles(homes)
    for seed in range(4):
        released = mask.apply(records, Draws(seed))
        found = released.collect()
        assert found.drop("place", "age", "sex").equals(homes.drop("place", "age", "sex"))
        after = profiles(found)
        assert [len(p) for p in after] == [len(p) for p in before]
        assert set(after) <= set(before)
        assert sum(a != b for a, b in zip(after, before, strict=True)) > 5
        assert (found["age"].is_null() == homes["age"].is_null()).all()
        assert found.group_by("home").agg(pl.col("place").n_unique())["place"].max() == 1, "members stay together"


def test_the_guarantee_is_of_households(homes: pl.DataFrame) -> None:
    """The audit counts households: 1 / (households alike) in the raw file, at most xi afterwards."""
    records = eq.read(homes, HOME)
    counts = Counter(profiles(homes))
    raw = eq.risk.MatchProbability().measure(records, records)
    assert raw.value == pytest.approx(1 / min(counts.values()), rel=1e-12)
    released = Pram(0.6).apply(records, Draws(3))
    plan = plan_of(released)
    assert sorted(plan.law.counts.tolist()) == sorted(counts.values())
    score = eq.risk.MatchProbability().measure(released, records)
    assert score.value <= 0.6 + 1e-12
    assert "household" in score.notes[0]
    assert eq.risk.MatchProbability("table").measure(released, records).value <= 0.6 + 1e-12


@pytest.mark.parametrize("method", METHODS)
def test_households_within_columns_and_whatever_the_row_order(homes: pl.DataFrame, method: Any) -> None:
    """Within a place, member by member; rows of the file in any order."""
    homes = homes.with_columns(pl.col("age").fill_null(10))
    mask = Pram(0.8, within=("place",), method=method)
    one = moved(mask, homes, HOME).sort("person")
    two = moved(mask, homes.sample(fraction=1, shuffle=True, seed=2), HOME).sort("person")
    assert one["place"].equals(homes["place"])
    assert profiles(one) == profiles(two)
    assert profiles(one) != profiles(homes)


def test_people_without_a_household_are_refused(homes: pl.DataFrame) -> None:
    """A null household is no household."""
    gone = homes.with_columns(pl.when(pl.col("person") < 3).then(None).otherwise(pl.col("home")).alias("home"))
    with pytest.raises(eq.RolesError, match="3 records have no household"):
        moved(Pram(0.8), gone, HOME)


# --- edges and refusals -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("xi", "said"),
    [(0, "nothing is possible"), (1, "nothing is asked"), (80, "0.8"), (1.5, "0.8"), (-0.1, "above 0"), (2, "0.8")],
)
def test_xi_must_be_a_share(xi: float, said: str) -> None:
    """Shares everywhere; a bare number above 1 is refused with a hint; 0 and 1 are no guarantees."""
    with pytest.raises(eq.ParameterError, match=said):
        Pram(xi)


def test_not_a_number_is_refused() -> None:
    with pytest.raises(eq.ParameterError):
        Pram(float("nan"))


@pytest.mark.parametrize(
    "given",
    [
        {"method": "other"},
        {"invariant": "sums"},
        {"method": "nayak", "invariant": "weights"},
        {"method": "nayak", "xi": 0.4},
    ],
)
def test_bad_parameters(given: dict[str, Any]) -> None:
    """Refused before any data is read; below 3/7 Nayak's matrix names what works."""
    with pytest.raises(eq.ParameterError):
        Pram(**({"xi": 0.8} | given))


def test_all_records_alike() -> None:
    """One cell with enough records: a match is right with 1/T <= xi already, so nothing moves."""
    table = pl.DataFrame({"a": ["x"] * 50})
    assert moved(Pram(0.1), table, eq.Roles("a")).equals(table)
    with pytest.raises(eq.InfeasibleError, match="fewer than 2 occupied cells"):
        moved(Pram(0.8, method="nayak"), table, eq.Roles("a"))


def test_one_cell_that_is_too_small() -> None:
    """One record, or three alike at xi = 0.2: there is nobody to mix with."""
    for rows, xi in ((1, 0.8), (3, 0.2)):
        with pytest.raises(eq.InfeasibleError, match="cannot reach"):
            moved(Pram(xi), pl.DataFrame({"a": ["x"] * rows}), eq.Roles("a"))


def test_two_records() -> None:
    """Two uniques move with probability 1/3 at xi = 0.8; at xi = 0.5 they are fully mixed; below, refused."""
    table, roles = pl.DataFrame({"a": ["x", "y"]}), eq.Roles("a")
    fates = Counter(tuple(moved(Pram(0.8), table, roles, seed=s)["a"]) for s in range(300))
    assert set(fates) == {("x", "y"), ("y", "x"), ("x", "x"), ("y", "y")}
    assert abs(fates["x", "y"] / 300 - 4 / 9) < 4 * (20 / 81 / 300) ** 0.5
    assert Pram(0.5).plan(eq.read(table, roles)).law.match().max() == pytest.approx(0.5)
    with pytest.raises(eq.InfeasibleError):
        moved(Pram(0.49), table, roles)
    with pytest.raises(eq.InfeasibleError, match="fewer than 3"):
        moved(Pram(0.49, method="nayak"), table, roles)
    assert Pram(0.5, method="nayak").plan(eq.read(table, roles)).law.movers() == pytest.approx(2 * 0.6180339887)


@pytest.mark.parametrize("method", METHODS)
def test_a_small_group_is_refused_with_what_works(method: Any) -> None:
    """Never silently: a group of a single small cell protects nobody. The column to leave out is named."""
    table = pl.DataFrame({"a": [1, 2, 3, 4, 5], "region": ["N", "N", "N", "N", "S"], "sex": list("fmfmf")})
    roles = eq.Roles(["a", "region", "sex"])
    with pytest.raises(eq.InfeasibleError, match=r"1 of 2 groups.*It works without 'region'"):
        moved(Pram(0.8, within=("region",), method=method), table, roles)
    with pytest.raises(eq.InfeasibleError, match="It works without 'region'"):
        moved(Pram(0.8, within=("sex", "region"), method=method), table, roles)
    moved(Pram(0.8, within=("sex",), method=method), table, roles)


def test_a_refusal_names_the_group_and_the_cause() -> None:
    """By columns, sizes and order: a value of the data stands in no error."""
    table = pl.DataFrame({"a": [1, 2, 3, 4, 5], "region": ["N", "N", "N", "N", "S"], "home": [1, 1, 2, 2, 3]})
    with pytest.raises(
        eq.InfeasibleError, match=r"1 records in 1 cell of the keys \(number 2 in the order of region\): all"
    ):
        moved(Pram(0.8, within=("region",)), table, eq.Roles(["a", "region"]))
    with pytest.raises(eq.InfeasibleError, match=r"1 households of 1 in 1 cell of the keys: all have the same keys"):
        moved(Pram(0.8), table, eq.Roles(["a", "region"], household="home"))
    with pytest.raises(
        eq.InfeasibleError, match=r"4 records in 4 cells .*number 1 in the order of region\): they are too few"
    ):
        moved(Pram(0.2, within=("region",)), table, eq.Roles(["a", "region"]))
    gaps = table.with_columns(a=pl.Series([1, 2, 3, 4, None]))
    with pytest.raises(eq.InfeasibleError, match=r"1 records in 1 cell of the keys \(with no a\)"):
        moved(Pram(0.8), gaps, eq.Roles(["a", "region"]))


def test_a_small_pattern_of_missing_keys_is_refused() -> None:
    """Records that miss the same keys are a group: one alone is not protected, and the error says why."""
    table = pl.DataFrame({"a": [1, 2, 3, None], "b": [1, 1, 2, 2]})
    with pytest.raises(eq.InfeasibleError, match="miss the same keys"):
        moved(Pram(0.8), table, eq.Roles(["a", "b"]))


def test_a_weight_that_tells_the_cell_is_refused() -> None:
    """BEYOND: a weight that is a function of the keys shows where a moved record came from."""
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"a": rng.integers(0, 9, 100), "b": rng.integers(0, 9, 100)})
    table = table.with_columns(w=1.0 + pl.col("a") % 2)
    roles = eq.Roles(["a", "b"], weight="w")
    with pytest.raises(eq.RolesError, match="'w' is a function of the keys"):
        moved(Pram(0.8), table, roles)
    found = moved(Pram(0.8, within=("w",)), table, roles)
    assert (1.0 + found["a"] % 2 == table["w"]).all(), "held in within, it tells nothing"
    assert not found.equals(table)
    domain = eq.Roles(["a", "b"], domain="w")
    with pytest.raises(eq.RolesError, match="name it in within"):
        moved(Pram(0.8), table, domain)
    assert moved(Pram(0.8), table.with_columns(w=pl.lit(2.0)), roles).height == 100, "a constant tells nothing"


def test_weights_need_a_weight_and_masks_need_keys() -> None:
    table = pl.DataFrame({"a": [1, 2, 3]})
    with pytest.raises(eq.RolesError, match="weight role"):
        moved(Pram(0.8, invariant="weights"), table, eq.Roles("a"))
    with pytest.raises(eq.RolesError, match="No keys"):
        moved(Pram(0.8), table, eq.Roles())
    with pytest.raises(eq.RolesError, match="Did you mean 'aa'"):
        moved(Pram(0.8, within=("aaa",)), table.with_columns(aa=1), eq.Roles("a"))


@pytest.mark.parametrize("method", METHODS)
def test_the_claim_is_stated_where_it_is_made(method: Any) -> None:
    """Which intruder, what he sees, what voids it; never a draw or a seed."""
    table = pl.DataFrame({"a": range(20)})
    released = Pram(0.8, method=method).apply(eq.read(table, eq.Roles("a")), Draws(123456789))
    law = released.history[-1]
    assert law.parameters["xi"] == 0.8
    assert law.parameters["method"] == method
    assert "knows a person's keys, that the person is in the file, the original counts" in law.words
    assert ("whole released table" in law.words) == (method == "blocks")
    assert "Void if" in law.words
    assert "123456789" not in repr(law) + repr(released)


# --- scale --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_million_uniques(method: Any, full: Any) -> None:
    """100,000 uniques here, a million in full: about a third move."""
    size = full(100_000, 1_000_000)
    table = pl.DataFrame({"id": np.arange(size), "a": np.arange(size) // 1000, "b": np.arange(size) % 1000})
    released = Pram(0.8, method=method).apply(eq.read(table, eq.Roles(["a", "b"], id="id")), Draws(1)).collect()
    share = float(((released["a"] != table["a"]) | (released["b"] != table["b"])).mean())
    expected = 1 / 3 if method == "blocks" else 0.3903882
    assert abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / size)


def spread_file(size: int) -> pl.DataFrame:
    """About five records to a cell, most cells small."""
    rng = np.random.default_rng(size)
    cell = np.minimum((rng.pareto(0.9, size) * size / 50).astype(np.int64), size)
    return pl.DataFrame({"id": np.arange(size), "a": cell % 997, "b": cell // 997})


@pytest.mark.parametrize("method", METHODS)
def test_memory_is_linear_and_no_matrix_is_built(method: Any, full: Any) -> None:
    """O(records + cells) bytes: 100,000 records in about 25,000 cells here, a million in 200,000 in full."""
    size = full(100_000, 1_000_000)
    records = eq.read(spread_file(size), eq.Roles(["a", "b"], id="id"))
    tracemalloc.start()
    released = Pram(0.8, method=method, within="auto").apply(records, Draws(1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 400 * size, "bytes for each record, not cells by cells"
    assert 0.12 * size < len(plan_of(released).law) < 0.4 * size


def test_a_partition_by_a_level_of_a_hierarchy() -> None:
    """Ages move within their decade only: the margin of the decades is kept exactly."""
    rng = np.random.default_rng(8)
    table = pl.DataFrame({"id": range(3000), "age": rng.integers(20, 60, 3000), "town": rng.integers(0, 30, 3000)})
    roles = eq.Roles(["age", "town"], id="id", hierarchies={"age": eq.Hierarchy.intervals([5, 10])})
    records = eq.read(table, roles)
    for within in (("age@10",), {"age": "10"}):
        released = eq.Recipe([eq.masks.Pram(0.5, within=within)], 4).run(records).collect()
        moved = (released["age"] != table["age"]) | (released["town"] != table["town"])
        assert moved.any()
        assert (released["age"] // 10 == table["age"] // 10).all()
        assert (released["age"] != table["age"]).any()


# --- beside other columns -----------------------------------------------------------------------------------------


def related(size: int, coarse: int) -> eq.Records:
    """Keys nearly all unique, and a column that is a coarse version of one of them."""
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 200, size), rng.integers(0, 10, size)
    return eq.read(pl.DataFrame({"a": a, "b": b, "y": a // coarse}), eq.Roles(["a", "b"]))


@pytest.mark.parametrize("xi", [0.3, 0.8])
def test_beside_holds_where_the_keys_alone_do_not(xi: float) -> None:
    """Blocks of records alike in the column: what it says of the keys no longer tells them apart."""
    pytest.importorskip("sklearn", reason="beside was not tried: scikit-learn is not installed.")
    records = related(300, coarse=50)
    score = eq.risk.Recognisable().measure(Pram(xi, beside=("y",)).apply(records, Draws(1)), records)
    assert score.value <= xi + 1e-9
    assert score.detail["risk"].max() <= xi + 0.05  # type: ignore[operator]
    alone = eq.risk.Recognisable().measure(Pram(xi).apply(records, Draws(1)), records)
    assert alone.value > xi + 0.05


def test_beside_a_copy_is_refused_with_what_can_be_held() -> None:
    pytest.importorskip("sklearn", reason="beside was not tried: scikit-learn is not installed.")
    with pytest.raises(eq.InfeasibleError, match=r"xi = 0.5 cannot be held beside y: (the smallest xi is 0|no xi)"):
        Pram(0.5, beside=("y",)).plan(related(200, coarse=1))


def test_beside_is_a_parameter_like_any_other() -> None:
    """From Python, a recipe and a policy file alike; it makes blocks of its own, and of columns that stay."""
    mask = Pram(0.5, beside=("y",))
    assert parse("pram(0.5, beside=['y'])", "mask") == mask == build("pram", "mask", {"xi": 0.5, "beside": ["y"]})
    assert "beside y" in mask.words()
    assert "what y say of the keys" in mask.claim()
    for wrong in ({"method": "nayak"}, {"within": "auto"}):
        with pytest.raises(eq.ParameterError, match="blocks of its own"):
            Pram(0.5, beside=("y",), **wrong)  # type: ignore[arg-type]
    with pytest.raises(eq.RolesError, match="moved"):
        Pram(0.5, beside=("a",)).plan(related(20, 1))
