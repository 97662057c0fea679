"""Noise: what the law says of it, by many draws; what it must keep; and the same file on every engine."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from scipy import stats

import equipoise as eq
from equipoise.ground.randomness import Draws
from equipoise.masks import Noise

SIZE = 40_000
KINDS = ("independent", "correlated", "multiplicative")


@pytest.fixture(scope="module")
def firms() -> pl.DataFrame:
    """Three correlated columns with means far from zero, and one of small whole numbers."""
    rng = np.random.default_rng(3)
    a = rng.normal(50, 4, SIZE)
    b = 20 + 2 * a + rng.normal(0, 6, SIZE)
    return pl.DataFrame(
        {
            "id": np.arange(SIZE) * 5 + 2,
            "a": a,
            "b": b,
            "c": rng.lognormal(1, 0.8, SIZE),
            "n": rng.integers(0, 30, SIZE).astype(np.int16),
        }
    )


ROLES = eq.Roles(numeric=["a", "b", "c"], id="id")


def noisy(mask: Noise, table: Any, seed: int = 1, roles: eq.Roles = ROLES) -> pl.DataFrame:
    return mask.apply(eq.read(table, roles), Draws(seed)).collect()


def changes(mask: Noise, table: pl.DataFrame, columns: list[str], seed: int = 1) -> np.ndarray[Any, Any]:
    found = noisy(mask, table, seed).select(columns).to_numpy() - table.select(columns).to_numpy()
    return np.asarray(found, dtype=np.float64)


# --- the law by many draws ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.05, 0.5, 1.5])
def test_the_change_has_mean_zero_and_the_stated_spread(firms: pl.DataFrame, kind: Any, scale: float) -> None:
    """One meaning for every kind: E(y - x) = 0 and sd(y - x) = scale x sd(x), within 4 standard errors."""
    columns = ["a", "b", "c"]
    found = changes(Noise(columns, scale, kind), firms, columns)
    wanted = scale * firms.select(columns).to_numpy().std(axis=0)
    assert (np.abs(found.mean(axis=0)) <= 4 * wanted / np.sqrt(SIZE)).all()
    square = found**2
    error = square.std(axis=0) / np.sqrt(SIZE)
    assert (np.abs(square.mean(axis=0) - wanted**2) <= 4 * error).all()


def test_independent_noise_is_normal_and_independent(firms: pl.DataFrame) -> None:
    """Kolmogorov-Smirnov at 1e-4; no correlation between columns, nor with the value, nor with the next record."""
    found = changes(Noise(["a", "b"], 0.3), firms, ["a", "b"])
    assert stats.kstest(found[:, 0] / found[:, 0].std(), "norm").pvalue > 1e-4
    limit = 4 / np.sqrt(SIZE)
    assert abs(np.corrcoef(found.T)[0, 1]) < limit
    assert abs(np.corrcoef(found[:, 0], firms["a"].to_numpy())[0, 1]) < limit
    assert abs(np.corrcoef(found[1:, 0], found[:-1, 0])[0, 1]) < limit


def test_correlated_noise_keeps_correlations(firms: pl.DataFrame) -> None:
    """Kim: Cov(y) = (1 + scale^2) Cov(x); independent noise weakens the correlation by 1 / (1 + scale^2)."""
    truth = np.corrcoef(firms["a"], firms["b"])[0, 1]
    error = 4 * (1 - truth**2) / np.sqrt(SIZE)
    for kind, wanted in (("correlated", truth), ("independent", truth / 1.25)):
        found = noisy(Noise(["a", "b"], 0.5, kind), firms)  # type: ignore[arg-type]
        assert np.corrcoef(found["a"], found["b"])[0, 1] == pytest.approx(wanted, abs=2 * error)
    e = changes(Noise(["a", "b", "c"], 0.5, "correlated"), firms, ["a", "b", "c"])
    wanted_covariance = 0.25 * np.cov(firms.select("a", "b", "c").to_numpy().T, bias=True)
    spread = np.sqrt(np.outer(np.diag(wanted_covariance), np.diag(wanted_covariance)))
    assert np.abs((np.cov(e.T) - wanted_covariance) / spread).max() < 4 * math.sqrt(2 / SIZE)


def test_collinear_columns_get_collinear_noise(firms: pl.DataFrame) -> None:
    """A singular covariance is no obstacle: sums that hold in the data hold after correlated noise."""
    table = firms.with_columns(total=pl.col("a") + pl.col("b"))
    found = noisy(Noise(["a", "b", "total"], 0.4, "correlated"), table)
    assert (found["total"] - found["a"] - found["b"]).abs().max() < 1e-3  # type: ignore[operator]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.1, 1.0])
def test_moments_are_restored_exactly(firms: pl.DataFrame, kind: Any, scale: float) -> None:
    """Covariance restoration to 1e-10 where promised."""
    columns = ["a", "b", "c"]
    x = firms.select(columns).to_numpy()
    y = noisy(Noise(columns, scale, kind, preserve="moments"), firms).select(columns).to_numpy()
    assert y.mean(axis=0) == pytest.approx(x.mean(axis=0), rel=1e-10)
    assert np.cov(y.T) == pytest.approx(np.cov(x.T), rel=1e-10)
    assert np.abs(y - x).max() > 1e-3


def test_restoring_keeps_the_correlation_with_the_truth_and_makes_the_change_smaller(firms: pl.DataFrame) -> None:
    """The docstring: corr(x, y) = 1 / sqrt(1 + scale^2), change of variance 2 s2 (1 - 1 / sqrt(1 + scale^2))."""
    x, y = firms["a"].to_numpy(), noisy(Noise(["a"], 0.5, preserve="moments"), firms)["a"].to_numpy()
    assert np.corrcoef(x, y)[0, 1] == pytest.approx(1 / math.sqrt(1.25), abs=0.005)
    assert np.var(y - x) == pytest.approx(2 * np.var(x) * (1 - 1 / math.sqrt(1.25)), rel=0.03)


def test_moments_of_complete_records_with_gaps_around(firms: pl.DataFrame) -> None:
    """Records without gaps have their moments restored; the others get noise and keep their gaps."""
    table = firms.head(900).with_columns(a=pl.when(pl.col("id") % 3 == 0).then(None).otherwise(pl.col("a")))
    found = noisy(Noise(["a", "b"], 0.4, preserve="moments"), table)
    assert found["a"].is_null().equals(table["a"].is_null())
    there = table["a"].is_not_null()
    x, y = (t.filter(there).select("a", "b").to_numpy() for t in (table, found))
    assert np.cov(y.T) == pytest.approx(np.cov(x.T), rel=1e-10)
    assert (found.filter(~there)["b"] != table.filter(~there)["b"]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_distributions_are_kept_value_by_value(firms: pl.DataFrame, kind: Any) -> None:
    """Reverse mapping: the values of each column in another order but for a few at each end; correlations nearly."""
    table = firms.with_columns(a=pl.when(pl.col("id") % 7 == 0).then(None).otherwise(pl.col("a")))
    found = noisy(Noise(["a", "b"], 0.3, kind, preserve="distributions"), table)
    for column in ("a", "b"):
        assert found[column].is_null().equals(table[column].is_null())
        x, y = (t[column].drop_nulls().sort().cast(pl.Float64) for t in (table, found))
        assert y[20:-20].equals(x[20:-20])
        assert y.mean() == pytest.approx(x.mean())
        assert (found[column] != table[column]).mean() > 0.5  # type: ignore[operator]
    both = [t.drop_nulls("a").select("a", "b").to_numpy() for t in (table, found)]
    assert np.corrcoef(both[1].T)[0, 1] == pytest.approx(np.corrcoef(both[0].T)[0, 1], abs=0.1)


@pytest.mark.parametrize("panel", [False, True])
def test_giants_do_not_keep_their_values(panel: bool) -> None:
    """Their ranks stay as they are: five of six amounts of two giants stood in their rows as collected."""
    rng = np.random.default_rng(3)
    size = np.append([400.0, 250.0], np.exp(1.3 * rng.standard_normal(998)))
    amounts = {name: np.round(1000 * size * np.exp(0.3 * rng.standard_normal(1000))) for name in ("a", "b")}
    table = pl.DataFrame({"id": range(1000), "firm": range(1000), **amounts})
    if panel:
        table = pl.concat([table.with_columns(pl.col("id") + 1000 * wave, pl.col("a") + wave) for wave in range(3)])
    roles = eq.Roles(id="id", person="firm" if panel else None, numeric=["a", "b"])
    records = eq.read(table, roles)
    columns = ["a"] if panel else ["a", "b"]
    released = Noise(columns, 0.6, preserve="distributions").apply(records, Draws(5)).collect().sort("id")
    giants = table["firm"].is_in([0, 1])
    for column in columns:
        tail = released[column].filter(giants)
        assert not tail.is_in(table[column].implode()).any()
        assert tail.n_unique() == 1
        share = table[column].filter(giants).max() / released[column].filter(released[column] == tail[0]).sum()
        assert share < 0.9
        assert table.filter(released[column] == tail[0])["firm"].n_unique() >= 3


def test_a_unit_of_many_records_does_not_take_the_column_away() -> None:
    """Three units share an end, not three times the records of the largest: 1,836 of 4,092 had one value in a file."""
    rng = np.random.default_rng(4)
    firm = np.append(np.zeros(250, dtype=int), np.repeat(np.arange(1, 151), 5))
    amount = np.exp(rng.standard_normal(151)[firm] + 0.1 * rng.standard_normal(1000))
    records = eq.read(pl.DataFrame({"firm": firm, "a": amount}), eq.Roles(person="firm", numeric="a"))
    released = Noise(["a"], 0.3, preserve="distributions").apply(records, Draws(5)).collect()["a"].to_numpy()
    assert np.corrcoef(np.sort(released), np.sort(amount))[0, 1] > 0.98
    assert released.mean() == pytest.approx(amount.mean())
    top = np.argsort(-amount)[: (released == released.max()).sum()]
    assert len(np.unique(firm[top])) >= 3
    assert released.max() < np.sort(amount)[-2]


def test_equal_noisy_values_do_not_depend_on_the_order_of_rows() -> None:
    table = pl.DataFrame({"id": range(60), "a": [0, 1, 2] * 20, "b": range(60), "c": range(60)})
    mask = Noise(["a"], 0.5, preserve="distributions")
    one = noisy(mask, table).sort("id")
    two = noisy(mask, table.sample(fraction=1, shuffle=True, seed=3)).sort("id")
    assert one["a"].equals(two["a"])
    assert one["a"].dtype == table["a"].dtype


def test_too_few_records_to_restore_moments(firms: pl.DataFrame) -> None:
    with pytest.raises(eq.DataError, match=r"30 in all: there are 29"):
        noisy(Noise(["a", "b", "c"], 0.1, preserve="moments"), firms.head(29))
    noisy(Noise(["a", "b", "c"], 0.1, preserve="moments"), firms.head(30))


# --- what must stay -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["reflect", "truncate"])
@pytest.mark.parametrize("kind", KINDS)
def test_bounds_and_what_they_do_to_the_variance(firms: pl.DataFrame, how: Any, kind: Any) -> None:
    """Nothing beyond the bounds; the variance and the bias that the law states are those of the draws."""
    mask = Noise(["c", "n"], 0.5, kind, bounds=(0, 12), how=how)
    inside = firms.filter(pl.col("c") < 12, pl.col("n") <= 12)
    done = mask.apply(eq.read(inside, ROLES), Draws(4))
    found = done.collect()
    for column in ("c", "n"):
        assert found[column].is_between(0, 12).all()
        moved = (found[column] - inside[column]).to_numpy().astype(float)
        sd = inside[column].to_numpy().std()
        told = done.history[0].parameters["effects"][column]
        assert np.var(moved) / (0.25 * sd**2) == pytest.approx(told["variance"], abs=0.03)
        assert moved.mean() / sd == pytest.approx(told["bias"], abs=0.02)
    assert "share of the noise variance that is left" in done.history[0].words


@pytest.mark.parametrize("how", ["reflect", "truncate"])
def test_observed_range_and_sign(firms: pl.DataFrame, how: Any) -> None:
    """Within the column's own range, whose ends are not told; or on the same side of zero."""
    done = Noise(["a", "n"], 1.0, bounds="observed", how=how).apply(eq.read(firms, ROLES), Draws(1))
    found = done.collect()
    for column in ("a", "n"):
        assert found[column].is_between(firms[column].min(), firms[column].max()).all()
    assert done.history[0].parameters["bounds"] == "observed"
    debts = firms.with_columns(a=pl.col("a") - 50, n=pl.col("n") - 10)
    signs = noisy(Noise(["a", "n"], 0.8, bounds="sign", how=how), debts)
    for column in ("a", "n"):
        assert (signs[column].sign() * debts[column].sign() >= 0).all()
    assert (signs.filter(debts["n"] == 0)["n"] == 0).all()


def test_far_outside_the_bounds_is_brought_inside() -> None:
    table = pl.DataFrame({"id": range(100), "x": [float(i) for i in range(100)]})
    for how in ("reflect", "truncate"):
        found = noisy(Noise(["x"], 0.01, bounds=(90, math.inf), how=how), table, roles=eq.Roles(id="id"))  # type: ignore[arg-type]
        assert found["x"].is_between(90, 300).all()
        assert found["x"].is_finite().all()


def test_zeros_stay_when_asked(firms: pl.DataFrame) -> None:
    """keep_zero takes the share of zeros from the noise variance, and says so; multiplicative keeps them anyway."""
    table = firms.with_columns(c=pl.when(pl.col("id") % 2 == 0).then(0.0).otherwise(pl.col("c")))
    zero = table["c"] == 0
    done = Noise(["c"], 0.3, keep_zero=True).apply(eq.read(table, ROLES), Draws(1))
    assert (done.collect().filter(zero)["c"] == 0).all()
    assert (done.collect().filter(~zero)["c"] != table.filter(~zero)["c"]).all()
    assert done.history[0].parameters["effects"]["c"]["variance"] == pytest.approx(float((~zero).mean()), abs=0.01)  # type: ignore[arg-type]
    times = noisy(Noise(["c"], 0.3, "multiplicative"), table)
    assert (times.filter(zero)["c"] == 0).all()
    assert (noisy(Noise(["c"], 0.3), table).filter(zero)["c"] != 0).all()


def test_whole_numbers_stay_whole_and_unbiased(firms: pl.DataFrame) -> None:
    """Rounded to the nearest: no bias, and a variance up by about 1/12, which the law states."""
    done = Noise(["n"], 0.2).apply(eq.read(firms, ROLES), Draws(1))
    found = done.collect()
    assert found.schema == firms.schema
    moved = (found["n"] - firms["n"]).to_numpy().astype(float)
    sd = 0.2 * firms["n"].to_numpy().std()
    assert abs(moved.mean()) < 4 * moved.std() / np.sqrt(SIZE)
    assert np.var(moved) == pytest.approx(sd**2 + 1 / 12, rel=4 * math.sqrt(2 / SIZE))
    assert done.history[0].parameters["effects"]["n"]["variance"] == pytest.approx((sd**2 + 1 / 12) / sd**2, abs=0.01)


@pytest.mark.parametrize("dtype", [pl.UInt8, pl.Int8, pl.UInt64, pl.Int64, pl.Float32, pl.Float64])
def test_types_and_their_ends(dtype: Any) -> None:
    """Values at the ends of their type stay inside it, gaps stay gaps."""
    top = 255 if dtype == pl.UInt8 else 127 if dtype == pl.Int8 else 2**63 - 1 if dtype.is_integer() else 1000
    table = pl.DataFrame({"id": range(60), "x": pl.Series([0, top, None] * 20, dtype=dtype)})
    found = noisy(Noise(["x"], 0.5), table, roles=eq.Roles(id="id"))
    assert found.schema == table.schema
    assert found["x"].is_null().equals(table["x"].is_null())
    assert not found["x"].equals(table["x"])


def test_missing_and_nan_stay(mixed: pl.DataFrame) -> None:
    roles = eq.Roles(["town"], id="id")
    for mask in (Noise(["grade", "rooms"], 0.3), Noise(["grade", "rooms"], 0.3, "correlated", bounds="observed")):
        found = noisy(mask, mixed, roles=roles)
        for column in ("grade", "rooms"):
            assert found[column].is_null().equals(mixed[column].is_null())
        assert found["grade"].is_nan().equals(mixed["grade"].is_nan())
        assert_frame_equal(found.drop("grade", "rooms"), mixed.drop("grade", "rooms"))


@given(
    values=st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), min_size=5, max_size=60),
    scale=st.floats(0.01, 3),
    how=st.sampled_from(["reflect", "truncate"]),
)
def test_bounds_hold_whatever_the_data(values: list[float | None], scale: float, how: Any) -> None:
    table = pl.DataFrame({"id": range(len(values)), "x": pl.Series(values, dtype=pl.Float64)})
    known = table["x"].drop_nulls()
    if known.len() < 2 or float(known.std() or 0) < 1e-6:
        return
    found = noisy(Noise(["x"], scale, bounds="observed", how=how), table, roles=eq.Roles(id="id"))["x"]
    assert found.drop_nulls().is_between(known.min(), known.max()).all()
    assert found.is_null().equals(table["x"].is_null())


# --- the same everywhere ------------------------------------------------------------------------------------------

MASKS = [
    Noise(["a", "n"], 0.2),
    Noise(["a", "b", "c"], 0.2, "correlated"),
    Noise(["c", "n"], 0.2, "multiplicative", bounds="sign"),
    Noise(["c"], 0.4, bounds="observed", how="truncate", keep_zero=True),
]


@pytest.mark.parametrize("mask", MASKS, ids=["independent", "correlated", "multiplicative", "truncated"])
def test_every_engine_adds_the_same_noise(engine: Any, firms: pl.DataFrame, mask: Noise) -> None:
    """Record by record on every engine, Spark and scanned files too; the law is the same."""
    table = firms.head(300)
    here = mask.apply(eq.read(table, ROLES), Draws(9))
    there = mask.apply(eq.read(engine.make(table), ROLES), Draws(9))
    assert isinstance(there.to_native(), engine.type)
    found = engine.rows(there.to_native()).sort("id").select(table.columns)
    assert_frame_equal(found, here.collect().sort("id"), check_dtypes=False, rel_tol=1e-12)
    assert there.history[0].parameters == here.history[0].parameters


def test_scanned_parquet(firms: pl.DataFrame, tmp_path: Path) -> None:
    firms.write_parquet(tmp_path / "firms.parquet", row_group_size=1000)
    scanned = eq.read(pl.scan_parquet(tmp_path / "firms.parquet"), ROLES)
    for mask in (*MASKS, Noise(["a", "b"], 0.2, preserve="moments")):
        found = mask.apply(scanned, Draws(2))
        assert isinstance(found.to_native(), pl.LazyFrame)
        assert_frame_equal(found.collect().sort("id"), noisy(mask, firms, 2), rel_tol=1e-12)


@pytest.mark.xdist_group("spark")
def test_spark_needs_memory_to_restore_moments(spark: Any, firms: pl.DataFrame) -> None:
    frame = spark.createDataFrame(firms.head(50).to_arrow()).repartition(3)
    with pytest.raises(eq.EngineError, match="in memory"):
        Noise(["a"], 0.1, preserve="moments").apply(eq.read(frame, ROLES), Draws(1))


@pytest.mark.parametrize("mask", [*MASKS, Noise(["a"], 0.1, preserve="moments")])
def test_row_order_does_not_matter_and_the_seed_does(firms: pl.DataFrame, mask: Noise) -> None:
    table = firms.head(2000)
    one = noisy(mask, table)
    two = noisy(mask, table.sample(fraction=1, shuffle=True, seed=5)).sort("id")
    assert_frame_equal(one, two, rel_tol=1e-12)
    assert not one.equals(noisy(mask, table, seed=2))
    assert one.drop(mask.columns).equals(table.drop(mask.columns))


def test_one_counter_for_each_column(firms: pl.DataFrame) -> None:
    """Adding a column to the mask does not change the noise of those before it."""
    assert noisy(Noise(["a"], 0.1), firms)["a"].equals(noisy(Noise(["a", "c"], 0.1), firms)["a"])


# --- refusals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        {"scale": 0},
        {"scale": -0.1},
        {"scale": math.nan},
        {"scale": "10"},
        {"scale": True},
        {"scale": 0.1, "kind": "additive"},
        {"scale": 0.1, "how": "clip"},
        {"scale": 0.1, "preserve": "means"},
        {"scale": 0.1, "bounds": (3, 1)},
        {"scale": 0.1, "bounds": (1,)},
        {"scale": 0.1, "bounds": "all"},
        {"scale": 0.1, "bounds": (0, math.nan)},
        {"scale": 0.1, "preserve": "moments", "bounds": (0, 1)},
        {"scale": 0.1, "preserve": "moments", "keep_zero": True},
    ],
)
def test_bad_parameters(bad: dict[str, Any]) -> None:
    with pytest.raises(eq.ParameterError):
        Noise(["a"], **bad)


def test_percent_are_refused_with_a_hint() -> None:
    """Peers: noise = 10 meant different things by method."""
    with pytest.raises(eq.ParameterError, match=r"Write 10 % as 0\.1"):
        Noise(["a"], 10)
    assert Noise(["a"], 3).scale == 3


def test_columns_that_cannot_be_masked(firms: pl.DataFrame) -> None:
    table = firms.with_columns(flat=pl.lit(7.5), text=pl.lit("x"), far=pl.lit(math.inf))
    for column, word in (("flat", "no spread"), ("text", "not numeric"), ("far", "infinite"), ("aa", "No column")):
        with pytest.raises(eq.EquipoiseError, match=word) as caught:
            noisy(Noise([column], 0.1), table)
        assert "7.5" not in str(caught.value)
    empty = table.with_columns(c=pl.lit(None, dtype=pl.Float64))
    assert noisy(Noise(["c", "a"], 0.1), empty)["c"].null_count() == SIZE


def test_a_private_size_is_in_no_public_file(tmp_path: Path) -> None:
    """Told in the private folder alone; the risk is that of the same noise with its size published."""
    rng = np.random.default_rng(1)
    table = pl.DataFrame({"id": range(300), "sex": rng.choice(["f", "m"], 300), "pay": rng.lognormal(8, 0.5, 300)})
    records = eq.read(table, eq.Roles(["sex"], numeric=["pay"], id="id"))
    measures = eq.Policy({"value_disclosure": "<= 1"}, assume_unknown=("pay",))
    scores = {}
    for private in (True, False):
        out = tmp_path / str(private)
        mask = Noise(["pay"], 0.1373, private=private)
        release = eq.protect(records, [mask], out, seed=5, policy=measures)
        scores[private] = release.trial.scores["value_disclosure"].value
        public = "".join(path.read_text() for path in (out / "public").glob("*.*") if path.suffix != ".parquet")
        size = float(f"{0.1373 * float(table['pay'].std(ddof=0)):.3g}")
        written = set(re.findall(r"[\w.]+", public))  # whole words: keyed hashes hold any three digits
        assert ("0.1373" in public, f"{size}" in written) == ((False, False) if private else (True, True))
        assert "0.1373" in (out / "private" / "recipe.json").read_text()
        assert eq.verify(out, original=records)
    assert scores[True] == pytest.approx(scores[False])
    assert "a private size" in Noise(["pay"], 0.1373, private=True).words()
