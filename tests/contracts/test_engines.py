"""The same question asked of every engine has one answer."""

from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import equipoise as eq
from equipoise.ground.randomness import Draws

KEYS = ["town", "age", "rooms", "grade", "owner", "born"]


def roles(**changes: Any) -> eq.Roles:
    given: dict[str, Any] = {
        "keys": KEYS,
        "weight": "weight",
        "id": "id",
        "hierarchies": {
            "age": eq.Hierarchy.intervals([3, 6]),
            "town": eq.Hierarchy.mapping({"Ål": "north", "Bo": "north", "C d": "south", "": "south"}),
            "born": eq.Hierarchy.dates("month", "year"),
            "grade": eq.Hierarchy.intervals(0.5),
            "owner": eq.Hierarchy.mapping({"true": "has", "false": "has"}),
            "rooms": eq.Hierarchy.mapping({1: "few", 2: "few", 3: "many"}),
        },
    }
    return eq.Roles(**(given | changes))


def plain(table: pl.DataFrame) -> pl.DataFrame:
    """Widths of numbers differ between engines; values must not. NaN and null are both missing."""
    wide = table.with_columns(pl.col(pl.Int8, pl.Int16, pl.Int32, pl.UInt8, pl.UInt16, pl.UInt32).cast(pl.Int64))
    return wide.with_columns(pl.col(pl.Float32, pl.Float64).cast(pl.Float64).fill_nan(None))


def brute(table: pl.DataFrame, by: list[str]) -> dict[tuple[Any, ...], tuple[int, float]]:
    """Counts and weights by a Python dictionary."""
    found: dict[tuple[Any, ...], tuple[int, float]] = {}
    for row in table.with_columns(pl.col(pl.Float64).fill_nan(None)).iter_rows(named=True):
        key = tuple(row[c] for c in by)
        n, total = found.get(key, (0, 0.0))
        found[key] = (n + 1, total + row["weight"])
    return found


@pytest.mark.parametrize("by", [KEYS, ["town"], ["grade", "owner"], ["born", "rooms"]], ids="-".join)
def test_count_is_the_same_everywhere(engine: Any, mixed: pl.DataFrame, by: list[str]) -> None:
    """The same `count` on Polars, pandas, PyArrow, DuckDB and PySpark gives the same cells."""
    cells = eq.count(eq.read(engine.make(mixed), roles()), by)
    expected = eq.count(eq.read(mixed, roles()), by).table
    assert_frame_equal(plain(cells.table), plain(expected), check_exact=False, abs_tol=1e-9)
    found = {tuple(row[:-2]): row[-2:] for row in plain(cells.table).iter_rows()}
    wanted = brute(mixed, by)
    assert {key: n for key, (n, _) in found.items()} == {key: n for key, (n, _) in wanted.items()}
    assert {key: total for key, (_, total) in found.items()} == pytest.approx(
        {key: total for key, (_, total) in wanted.items()}
    )


def test_total_is_n_without_a_weight(engine: Any, mixed: pl.DataFrame) -> None:
    """`total` is the sum of weights, = n without a weight."""
    cells = eq.count(eq.read(engine.make(mixed), roles(weight=None)), ["town", "age"])
    assert cells.table["total"].to_list() == cells.table["n"].cast(pl.Float64).to_list()
    assert cells.records == mixed.height


def test_the_same_kind_comes_back(engine: Any, mixed: pl.DataFrame) -> None:
    """`to_native()` gives back what came in, untouched."""
    native = eq.read(engine.make(mixed), roles()).to_native()
    assert isinstance(native, engine.type)
    assert_frame_equal(plain(engine.rows(native)).sort("id"), plain(mixed).sort("id"), check_dtypes=False)


MASKS = {
    "bands": [eq.masks.Recode("age", "3")],
    "decimal bands": [eq.masks.Recode("grade", "0.5")],
    "groups of text": [eq.masks.Recode("town", 1)],
    "groups of whole numbers": [eq.masks.Recode("rooms", 1)],
    "groups of booleans": [eq.masks.Recode("owner", 1)],
    "months": [eq.masks.Recode("born", "month")],
    "top by mean": [eq.masks.TopCode("income", 4000)],
    "top of a key by median, then bands": [eq.masks.TopCode("age", 8, "median"), eq.masks.Recode("age", "6")],
    "bottom by threshold": [eq.masks.BottomCode("grade", 0.5, "threshold")],
}


@pytest.mark.parametrize("masks", MASKS.values(), ids=MASKS)
def test_masks_release_the_same_records_everywhere(engine: Any, mixed: pl.DataFrame, masks: list[Any]) -> None:
    """A mask decided on cells and applied where the data is gives the same file and the same scores."""
    measures = [eq.risk.Uniques(), eq.utility.Entropy()]
    expected = eq.Recipe(masks, seed=1).run(eq.read(mixed, roles()))
    records = eq.read(engine.make(mixed), roles())
    released = eq.Recipe(masks, seed=1).run(records)
    native = released.to_native()
    assert isinstance(native, engine.type)
    got, wanted = plain(engine.rows(native)).sort("id"), plain(expected.to_native()).sort("id")
    assert_frame_equal(got, wanted, check_dtypes=False)
    for measure in measures:
        here = measure.measure(released, records)
        there = measure.measure(expected, eq.read(mixed, roles()))
        assert (here.value, here.number) == pytest.approx((there.value, there.number))


@pytest.mark.parametrize("by", [["town", "rooms", "born"], ["owner", "age"], ["grade"]], ids="-".join)
def test_risk_of_each_record_is_the_same_everywhere(engine: Any, mixed: pl.DataFrame, by: list[str]) -> None:
    """`by_record` is keyed by id: 1 for the records whose keys nobody shares, by a Python dictionary."""
    known = roles(keys=by, hierarchies={})
    found = eq.risk.Uniques(k=2).measure(eq.read(engine.make(mixed), known), None).by_record()
    assert found.columns == ["id", "risk"]
    counts = brute(mixed, by)
    expected = {
        row["id"]: float(counts[tuple(row[c] for c in by)][0] <= 2)
        for row in mixed.with_columns(pl.col(pl.Float64).fill_nan(None)).iter_rows(named=True)
    }
    assert dict(found.iter_rows()) == expected
    if engine.name in ("polars", "pandas", "pyarrow"):
        assert found["id"].to_list() == mixed["id"].to_list(), "in input order for frames in memory"


def test_records_without_an_id_are_numbered_in_memory(mixed: pl.DataFrame) -> None:
    """Without an id the row number names the record."""
    detail = eq.risk.Uniques().measure(eq.read(mixed, roles(id=None)), None).by_record()
    assert detail["record"].to_list() == list(range(mixed.height))


@pytest.mark.xdist_group("spark")
def test_spark_needs_an_id_to_show_each_record(spark: Any, mixed: pl.DataFrame) -> None:
    """Spark frames have no row order, so nothing else can name a record."""
    records = eq.read(spark.createDataFrame(mixed.to_arrow()), roles(id=None))
    with pytest.raises(eq.RolesError, match="name an id"):
        eq.risk.Uniques().measure(records, records).by_record()


def test_entropy_of_each_record_averages_to_the_joint_entropy(engine: Any, mixed: pl.DataFrame) -> None:
    """The mean of - log2 p over records is H."""
    records = eq.read(engine.make(mixed), roles())
    score = eq.utility.Entropy().measure(records, records)
    assert score.by_record()["bits"].mean() == pytest.approx(score.value)


def test_weights_are_checked_on_every_engine(engine: Any, mixed: pl.DataFrame) -> None:
    """NaN, negative, missing and infinite weights are refused, with their number and no value."""
    for bad, word in ((float("nan"), "NaN"), (-3.0625, "negative"), (None, "missing"), (float("inf"), "infinite")):
        spoiled = mixed.with_columns(
            weight=pl.when(pl.col("id").is_in([1, 8])).then(pl.lit(bad, pl.Float64)).otherwise(pl.col("weight"))
        )
        with pytest.raises(eq.RolesError, match=r"^2 records have a weight in 'weight'") as caught:
            eq.read(engine.make(spoiled), roles())
        assert word in str(caught.value)
        assert "3.0625" not in str(caught.value)


def test_an_empty_frame_is_refused_on_every_engine(engine: Any, mixed: pl.DataFrame) -> None:
    """No records, no risk: say so at the door."""
    with pytest.raises(eq.DataError, match="no records"):
        eq.read(engine.make(mixed.clear()), roles())


def test_draws_do_not_depend_on_the_engine(engine: Any, mixed: pl.DataFrame) -> None:
    """House: draws are keyed by (seed, step, record id), so the engine does not change them."""
    draws = Draws(11).child(0)
    keys = eq.read(engine.make(mixed), roles()).keys_of_rows()
    got = dict(zip(keys.to_list(), draws.uniform(keys).tolist(), strict=True))
    assert got == dict(zip(mixed["id"].to_list(), draws.uniform(mixed["id"]).tolist(), strict=True))


def test_negative_zero_is_zero_everywhere(engine: Any) -> None:
    """-0.0 and 0.0 print alike to a reader, so they are one value."""
    table = pl.DataFrame({"id": [1, 2, 3], "x": [0.0, -0.0, 1.5]})
    records = eq.read(engine.make(table), eq.Roles(["x"], id="id", hierarchies={"x": eq.Hierarchy.intervals(1)}))
    assert eq.count(records).table["n"].to_list() == [2, 1]
    risk = eq.risk.Uniques().measure(records, records).by_record().sort("id")
    assert risk["risk"].to_list() == [0.0, 0.0, 1.0]
    released = engine.rows(eq.Recipe([eq.masks.Recode("x", 1)]).run(records).to_native()).sort("id")
    assert released["x"].to_list() == ["[0, 1)", "[0, 1)", "[1, 2)"]


def test_pandas_with_numpy_types(mixed: pl.DataFrame) -> None:
    """Plain pandas has no missing integers and no dates; what it has is counted as it is."""
    pytest.importorskip("pandas")
    frame = mixed.select("id", "town", "age", "grade", "weight").to_pandas()
    before = frame.copy()
    cells = eq.count(eq.read(frame, roles(keys=["town", "age", "grade"], hierarchies={})))
    expected = eq.count(eq.read(mixed, roles(keys=["town", "age", "grade"], hierarchies={})))
    assert_frame_equal(plain(cells.table), plain(expected.table))
    assert frame.equals(before)


def test_categorical_and_enum_keys_are_counted_and_recoded(mixed: pl.DataFrame) -> None:
    """Dictionary types are text to an intruder."""
    expected = eq.count(eq.read(mixed, roles(keys=["town", "age"]))).table
    for dtype in (pl.Categorical(), pl.Enum(["", "C d", "Bo", "Ål"])):
        table = mixed.with_columns(pl.col("town").cast(dtype))
        records = eq.read(table, roles(keys=["town", "age"]))
        assert_frame_equal(eq.count(records).table, expected)
        recoded = eq.Recipe([eq.masks.Recode("town", 1)]).run(records).to_native()
        assert set(recoded["town"].drop_nulls().to_list()) == {"north", "south"}
        detail = eq.risk.Uniques().measure(records, records).by_record()
        assert detail["risk"].null_count() == 0
