"""Odd frames given to Python: what a notebook makes of data, adopted by `eq.read` and given to the verbs."""

import random
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from torture.attempt import CANARY, CANARY_NUMBER, Attempt
from torture.bad_files import CONTENTS, NUMBERS
from torture.good import lay_out, shelf, table

NAMES = ("count", "weight", "n", "total", "index", "__index__", "__eq_new", "__eq_people", "risk", "cell", "known", "value", "domain_n", "",
         " ", "age ", "AGE", "a\x00b", "\n", "é", "=x", "x" * 500, "level_0", "literal", "len", "row", "\x00row", "^age$", "*", "age|sex")  # fmt: skip
"""Names of columns that a frame of ours, or a pattern, might have."""
FLOATS = [value if value is not None else float("nan") for value in NUMBERS]


def attempt(rng: random.Random, place: Path, folder: Path) -> Attempt:
    lay_out(shelf(place), folder, "data.csv", "region.csv")
    what, maker = rng.choice(tuple(FRAMES.items()))
    verb, call = rng.choice(tuple(VERBS.items()))
    column = rng.choice(("age", "sex", "region", "salary", "joined"))
    return Attempt(f"{what} ({column}): {verb}", call=partial(_run, maker(rng, column), call, rng, column))


def _run(frame: Any, call: Callable[..., Any], rng: random.Random, column: str) -> Any:
    import equipoise as eq

    numeric = () if column in ("salary", "joined") else ("salary",)
    roles = eq.Roles(
        tuple(dict.fromkeys((rng.choice(("age", "sex")), column))), numeric=numeric, id="id", direct="note",
        weight=rng.choice((None, "w")), hierarchies=rng.choice(({}, {"age": eq.Hierarchy.intervals([10, 20])})),
        missing=rng.choice(("category", "any")),
    )  # fmt: skip
    answer = call(eq, eq.read(frame, roles), column)
    return answer if type(answer).__module__.startswith("equipoise") else None


VERBS: dict[str, Callable[[Any, Any, str], Any]] = {
    "read": lambda eq, records, column: records,
    "count": lambda eq, records, column: eq.count(records),
    "assess": lambda eq, records, column: eq.assess(records),
    "suggest": lambda eq, records, column: eq.suggest_roles(records.to_native()),
    "attack": lambda eq, records, column: eq.attack(records, records),
    "suppress": lambda eq, records, column: eq.Recipe([eq.masks.LocalSuppress(eq.rules.MinCount(3))], seed=1).run(records),
    "recode": lambda eq, records, column: eq.Recipe([eq.masks.Recode("age", "10")], seed=1).run(records).to_native(),
    "noise": lambda eq, records, column: eq.Recipe([eq.masks.Noise((column,), 0.2)], seed=1).run(records).to_native(),
    "swap": lambda eq, records, column: eq.Recipe([eq.masks.RankSwap((column,), 0.2)], seed=1).run(records).to_native(),
    "pram": lambda eq, records, column: eq.Recipe([eq.masks.Pram(0.8)], seed=1).run(records).to_native(),
    "aggregate": lambda eq, records, column: eq.Recipe([eq.masks.Microaggregate((column,), 3)], seed=1).run(records),
    "synthesize": lambda eq, records, column: eq.Recipe([eq.masks.Synthesize((column,))], seed=1).run(records),
    "top": lambda eq, records, column: eq.Recipe([eq.masks.TopCode(column, 50)], seed=1).run(records).to_native(),
    "table": lambda eq, records, column: eq.tabulate(records, ("sex", column), rule="min-count:3"),
    "magnitude": lambda eq, records, column: eq.tabulate(records, ("sex",), column, rule="p-percent:10%"),
    "publish": lambda eq, records, column: eq.publish(records, domain=column, target="sex", cutoff=0.5),
    "protect": lambda eq, records, column: eq.protect(records, [eq.masks.Sample(0.5)], limits={"uniques": "<= 1"}, out="out"),
    "sweep": lambda eq, records, column: eq.sweep(
        records, eq.coarsenings(records), [eq.risk.Uniques(), eq.risk.SpecialUniques(), eq.utility.Entropy()]
    ),
    "measures": lambda eq, records, column: eq.sweep(records, [eq.Recipe([eq.masks.Sample(0.9)], seed=1)], [
        eq.risk.Individual(), eq.risk.LogLinear(), eq.risk.KAnonymity(3), eq.risk.Copies((column,)), eq.utility.Moments((column,)),
        eq.utility.Propensity(), eq.utility.InformationLoss((column,))]),
}  # fmt: skip


def _with(rng: random.Random, column: str, values: Callable[[int], Any]) -> pd.DataFrame:
    frame = table().to_pandas()
    frame[column] = pd.Series([values(i) for i in range(len(frame))], dtype=object)
    return frame


def _cast(rng: random.Random, column: str, *, kinds: tuple[Any, ...]) -> pd.DataFrame:
    frame = table().to_pandas()
    frame[column] = pd.Series([i % 3 for i in range(len(frame))]).astype(rng.choice(kinds))
    return frame


def _arrow(rng: random.Random, column: str) -> pa.Table:
    size = 60
    column_of = rng.choice((
        lambda: pa.array([{"a": 1, "b": CANARY}] * size),
        lambda: pa.array([[CANARY]] * size),
        lambda: pa.array([Decimal("1.5")] * size, pa.decimal256(50, 3)),
        lambda: pa.array([i % 3 for i in range(size)], pa.duration("ns")),
        lambda: pa.array([i % 3 for i in range(size)], pa.month_day_nano_interval()) if False else pa.array([b"x"] * size, pa.binary(1)),
        lambda: pa.array([f"{i % 3}" for i in range(size)]).dictionary_encode(),
        lambda: pa.array([("a", i % 2) for i in range(size)], pa.struct([("k", pa.string()), ("v", pa.int64())])),
        lambda: pa.array([[("k", 1)]] * size, pa.map_(pa.string(), pa.int64())),
        lambda: pa.array([i % 2 for i in range(size)], pa.date64()),
        lambda: pa.array([float(i % 3) for i in range(size)], pa.float16()),
        lambda: pa.array([i % 3 for i in range(size)], pa.timestamp("ns", "Europe/Oslo")),
        lambda: pa.array([i % 3 for i in range(size)], pa.time64("ns")),
        lambda: pa.nulls(size),
        lambda: pa.RunEndEncodedArray.from_arrays(pa.array([size], pa.int32()), pa.array(["a"])),
        lambda: pa.array(["x"] * size, pa.string_view()),
    ))  # fmt: skip
    whole = table().to_arrow()
    return whole.set_column(whole.column_names.index(column), column, column_of())


def _polars(rng: random.Random, column: str) -> pl.DataFrame:
    expression = rng.choice((
        lambda: pl.lit(CANARY).cast(pl.Categorical),
        lambda: pl.lit("a").cast(pl.Enum(["a", "unused", CANARY])),
        lambda: pl.lit("").cast(pl.String),
        lambda: pl.int_range(pl.len()).cast(pl.Datetime("ns", "Asia/Kolkata")),
        lambda: pl.int_range(pl.len()).cast(pl.Duration("ms")),
        lambda: pl.int_range(pl.len()).cast(pl.Decimal(38, 0)),
        lambda: pl.int_range(pl.len()).cast(pl.Int128),
        lambda: pl.lit([1, 2]),
        lambda: pl.lit(None),
        lambda: pl.struct("id"),
        lambda: pl.concat_list("id", "hh").cast(pl.Array(pl.Int64, 2)),
        lambda: pl.lit(b"\xff\x00"),
        lambda: pl.int_range(pl.len()) % 2 == 0,
        lambda: pl.int_range(pl.len()).cast(pl.UInt64) + 2**63,
        lambda: pl.lit(1e308),
        lambda: pl.int_range(pl.len()).cast(pl.Time),
        lambda: pl.lit("\U0010ffff\ud7ff"),
        lambda: pl.when(pl.int_range(pl.len()) == 9).then(None).otherwise(pl.lit(CANARY_NUMBER)),
    ))  # fmt: skip
    return table().with_columns(expression().alias(column))


def _broken(rng: random.Random, column: str) -> pl.LazyFrame:
    """A query that fails when it is run, with a planted value in its reason."""
    return rng.choice((
        lambda: table().lazy().with_columns(pl.col("note").cast(pl.Int64).alias(column)),
        lambda: table().lazy().with_columns(pl.col("region").str.to_date("%Y").alias(column)),
        lambda: table().lazy().select("nothing"),
        lambda: pl.scan_parquet("nothing.parquet"),
        lambda: pl.scan_csv("data.csv", schema_overrides={"note": pl.Int64}),
        lambda: table().lazy().with_columns(pl.col("note").map_elements(int, return_dtype=pl.Int64).alias(column)),
        lambda: table().lazy().with_columns(pl.col("note").cast(pl.Enum(["a"])).alias(column)),
    ))()  # fmt: skip


def _duck(rng: random.Random, column: str) -> Any:
    import duckdb

    frame = table().to_arrow()  # noqa: F841
    kinds = (
        "HUGEINT",
        "UUID",
        "BIT",
        "INTERVAL",
        "BLOB",
        "INTEGER[]",
        "STRUCT(a INTEGER)",
        "DECIMAL(38, 3)",
        "TIMESTAMPTZ",
        "VARCHAR",
        "INTEGER",
    )
    query = f"select * replace (cast(note as {rng.choice(kinds)}) as {column}) from frame"
    if rng.random() < 0.5:
        query = f"select * replace (cast(null as {rng.choice(kinds)}) as {column}) from frame"
    return duckdb.connect().sql(query)


FRAMES: dict[str, Callable[[random.Random, str], Any]] = {
    **{f"polars, {kind}": lambda rng, _, make=make: make(rng) for kind, make in CONTENTS.items() if not kind.startswith("many")},
    "polars type": _polars,
    "polars type, lazy": lambda rng, column: _polars(rng, column).lazy(),
    "a query that fails": _broken,
    "arrow type": _arrow,
    "arrow table in chunks": lambda rng, column: pa.concat_tables([_arrow(random.Random(1), column)] * 2),
    "duckdb type": _duck,
    "name of ours": lambda rng, column: table().with_columns(pl.lit(1).alias(rng.choice(NAMES))),
    "renamed": lambda rng, column: table().rename({column: rng.choice(NAMES)}),
    "pandas, name twice": lambda rng, column: pd.concat([table().to_pandas(), table().to_pandas()[[column]]], axis=1),
    "pandas, names of numbers": lambda rng, column: table().to_pandas().assign(**{"1": 1}).rename(columns={"1": 1}),
    "pandas, names of several": lambda rng, column: table().to_pandas().rename(columns={"hh": ("a", "b"), "w": None}),
    "pandas, many levels": lambda rng, column: pd.concat({"a": table().to_pandas()}, axis=1),
    "pandas, odd index": lambda rng, column: table().to_pandas().set_index([column], drop=rng.random() < 0.5),
    "pandas, index twice": lambda rng, column: table().to_pandas().set_axis([CANARY] * 60, axis=0),
    "pandas objects": lambda rng, column: _with(rng, column, lambda i: rng.choice((i, "a", None, 1.5, CANARY, b"x", (1,), object))),
    "pandas decimals": lambda rng, column: _with(rng, column, lambda i: Decimal(i) / 3),
    "pandas missing": lambda rng, column: _with(rng, column, lambda i: rng.choice((None, pd.NA, float("nan"), pd.NaT))),
    "pandas large": lambda rng, column: _with(rng, column, lambda i: 10 ** rng.choice((1, 19, 40)) + i),
    "pandas lists": lambda rng, column: _with(rng, column, lambda i: [i, CANARY]),
    "pandas dicts": lambda rng, column: _with(rng, column, lambda i: {"a": i} if i % 2 else {"b": CANARY}),
    "pandas periods": lambda rng, column: table().to_pandas().assign(**{column: pd.period_range("2000", periods=60, freq="M")}),
    "pandas intervals": lambda rng, column: table().to_pandas().assign(**{column: pd.cut(np.arange(60), 5)}),
    "pandas zones": lambda rng, column: table().to_pandas().assign(**{column: pd.date_range("2000", periods=60, tz="Asia/Tokyo")}),
    "pandas extension": partial(_cast, kinds=("string", "category", "Int8", "Float32", "UInt64", "string[pyarrow]")),
    "pandas sparse": lambda rng, column: table().to_pandas().assign(**{column: pd.arrays.SparseArray([0, 1] * 30)}),
    "pandas complex": lambda rng, column: table().to_pandas().assign(**{column: np.arange(60) * 1j}),
    "pandas floats": lambda rng, column: table().to_pandas().assign(**{column: [rng.choice(FLOATS) for _ in range(60)]}),
    "pandas half floats": lambda rng, column: table().to_pandas().assign(**{column: np.arange(60, dtype=np.float16)}),
    "pandas unused categories": lambda rng, column: table().to_pandas().assign(**{column: pd.Categorical(["a", "b"] * 30, ["a", "b", CANARY])}),
    "pandas numbers as categories": lambda rng, column: table().to_pandas().assign(**{column: pd.Categorical([1.5, 2.5] * 30)}),
    "pandas, no rows": lambda rng, column: table().to_pandas().head(0),
    "pandas, no columns": lambda rng, column: table().to_pandas()[[]],
    "pandas series": lambda rng, column: table().to_pandas()[column],
    "polars series": lambda rng, column: table()[column],
    "array": lambda rng, column: table().to_numpy(),
    "records of dicts": lambda rng, column: table().to_dicts(),
    "dict of lists": lambda rng, column: table().to_dict(as_series=False),
    "group": lambda rng, column: table().to_pandas().groupby("sex"),
    "path in bytes": lambda rng, column: b"data.csv",
    "path": lambda rng, column: rng.choice(("data.csv", Path("data.csv"), Path(), "none.csv", "data.csv\x00", "", Path("a" * 300))),
}  # fmt: skip
