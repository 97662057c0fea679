"""Odd values, odd bytes and odd places in nested data."""

import random
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache, partial
from itertools import count, repeat
from pathlib import Path
from typing import Any

ODD_TEXTS = (
    "", " ", "\x00", "a\x00b", "**", "../**", "*", "[", "?", "..", "/", "~", "-", "--", "%s", "{}", "{0.__class__}", "\n", "\r",
    "\t", "\u202e", "é" * 300, "x" * 5000, "0", "-1", "1e999", "nan", "inf", "-inf", "9" * 5000, "1" * 400, "0x10", "1_000",
    "true", "null", "none", "age", "age,age", "AGE", "sexx", "=", "=1+1", "<", "< 0", "> nan", "< 1e999", "<= 0.5 and", "0.0.1",
    "101%", "-5%", "%", "%%", "(", ")", "a(b", "uniques(", "uniques(k=)", "uniques(k=(1,))", "uniques(k=9**9**9)", ":", ":::", ",",
    ",,,", ";", "|", "&", "| |", "|&|", "__import__('os')", "rot13", "base64", "hex", "zlib", "idna", "punycode", "undefined",
    "utf-7", "utf-8-sig", "unicode_escape", "utf-16", "klingon", "mbcs", "csv", "parquet", "xlsx", "/dev/null", "/proc/self/mem",
    "data.csv", "out/out/out", "none/..", "none/../region.csv", "région", "\ud83d\ude00", "a" * 300 + ".csv", "x/" * 3000, "sqlite:///x", "postgres://x", ":memory:",
    "select 1", "select * from 'data.csv'", "drop table x", "intervals", "age=intervals:5", "age=intervals:0", "age=intervals:-5",
    "age=intervals:1e400", "age=intervals:" + "9" * 400, "age=breaks:", "age=breaks:nan", "age=prefix:99999999999999999999",
    "age=dates:month", "age=csv:**", "age=hrc:data.xlsx", "age=mapping:a", "age=", "=age", "age=intervals:5,top=x", "5", "5,nearest",
)  # fmt: skip
FLOATS = (0.0, 1.0, -1.0, 0.5, 3.0, float("nan"), float("inf"), -float("inf"), 1e308, 5e-324)
HUGE = (2**31, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**30, -(10**400), 10**4000)
ODD_VALUES: tuple[Any, ...] = (
    *ODD_TEXTS, *HUGE, 0, -1, 1, 2, 3, 1000, True, False, 0.0, -0.5, 0.5, 1.5, 1e308, -1e308, 5e-324, float("nan"), float("inf"),
    [], [[]], [[[[]]]], {}, {"": {}}, {"a": 1}, ["age"], ["age", "age"], ["age", 5], [5], [None], [True], [{}], [{"use": "recode"}],
    [{"use": 5}], {"from": 0, "to": 1}, {"from": 1, "to": 0, "steps": 10**9}, {"from": "a", "to": "b", "steps": "c"},
    {"limit": 5}, {"limit": "< 1", "by": 5}, {"kind": 5}, {"kind": "csv", "path": "**"}, {"kind": "hrc", "path": "data.xlsx"},
    {"kind": "hrc", "path": 5}, {"kind": "mapping", "groups": 5}, {"kind": "intervals", "widths": [10**30]},
    {"kind": "intervals", "widths": ["a"]}, {"kind": "intervals", "widths": 5, "top": [1]}, {"kind": ["csv"]},
    date(1, 1, 1), date(9999, 12, 31), datetime(2000, 1, 1), time(1, 1),
)  # fmt: skip


def odd_value(rng: random.Random) -> Any:
    value = rng.choice(ODD_VALUES)
    if rng.random() < 0.1:
        for _ in range(rng.choice((1, 5, 200))):
            value = rng.choice(([value], {"a": value}))
    return value


def odd_object(rng: random.Random) -> Any:
    """An object of Python that is seldom what is asked for."""
    return rng.choice(_makers())(rng)


@cache
def _makers() -> tuple[Callable[[random.Random], Any], ...]:
    """What makes odd objects; iterators and lists that hold themselves are made anew for each attempt."""
    import numpy as np
    import pandas as pd
    import polars as pl

    from torture.good import table
    from torture.good_objects import values

    plain: tuple[Any, ...] = (
        None, True, 0, -1, 1, 2**63, 10**30, 0.5, -0.5, float("nan"), float("inf"), "", "age", "nothing", b"age", (), [], {}, set(), ("age",),
        ["age", "age"], {"uniques": "< 1"}, {"entrpy": "> 1"}, {1: 2}, [None], [[1]], Path("data.csv"), Path("none.csv"), date(2000, 1, 1), int,
        print, 1j, Decimal("0.5"), Decimal("NaN"), Fraction(1, 3), Ellipsis, NotImplemented, range(3), range(10**6), bytearray(b"age"), memoryview(b"age"),
        timedelta(1), datetime(2000, 1, 1, tzinfo=UTC), slice(1), {"age": None}, {"age": float("nan")}, ["age", None], ["", ""], ("age", ("sex",)), "a\x00b",
        np.zeros(3), np.zeros((2, 2)), np.zeros(0), np.zeros((2, 3, 4)), np.array(5.0), np.array(["a", "b"]), np.array([None, 1], dtype=object),
        np.full(3, np.nan), np.full(3, np.inf), np.array([1 + 2j]), np.array(["2000-01-01"], dtype="datetime64[D]"), np.ma.masked_array([1.0, 2.0], [True, False]),
        np.int64(3), np.float64(0.5), np.float32("nan"), np.bool_(True), np.str_("age"), np.datetime64("2000-01-01"), np.array([2**63], dtype=np.uint64),
        pd.NA, pd.NaT, pd.Series([1, None]), pd.Index(["age"]), pd.DataFrame(), pd.DataFrame([[1, 2]], columns=["age", "age"]), pd.Timestamp("2000-01-01"),
        pl.Series("age", [1, 2]), pl.Series("age", [[1], [2]]), pl.Series("age", []), pl.DataFrame(), pl.DataFrame({"age": []}), pl.col("age"), pl.Int64,
        pl.LazyFrame({"age": [1]}).select("none"), pl.DataFrame({"count": [1], "weight": [1.0], "__index__": [0]}), table().lazy(), table().to_pandas(),
    )  # fmt: skip
    fresh: tuple[Callable[[random.Random], Any], ...] = (
        lambda _: iter(["age"]),
        lambda _: (name for name in ("age", "sex")),
        lambda _: _endless(),
        lambda _: count(),
        lambda _: repeat("age"),
        lambda rng: rng.choice(ODD_TEXTS),
        lambda rng: odd_value(rng),
        lambda rng: np.array([rng.choice(FLOATS) for _ in range(rng.choice((1, 2, 3, 5)))]),
        lambda rng: {rng.choice(("age", "sex", "salary", "", 5, None)): odd_value(rng)},
    )
    return tuple(partial(_same, value) for value in (*plain, *values().values())) + fresh * 5


def _same(value: Any, _: random.Random) -> Any:
    return value


def _endless() -> list[Any]:
    """A list that holds itself."""
    endless: list[Any] = []
    endless.append(endless)
    return endless


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in nested data."""
    yield path
    if isinstance(data, dict):
        for key, value in data.items():
            yield from places(value, (*path, key))
    elif isinstance(data, list):
        for key, value in enumerate(data):
            yield from places(value, (*path, key))


def spoilt(data: Any, rng: random.Random) -> tuple[Any, str]:
    """Nested data with one place changed, taken away, doubled or misspelt; and what was done."""
    from copy import deepcopy

    data = deepcopy(data)
    *inside, last = rng.choice([path for path in places(data) if path])
    parent = data
    for key in inside:
        parent = parent[key]
    how = rng.choice(("value", "value", "value", "value", "gone", "extra", "misspelt", "wrapped"))
    words = f"{how} at {'.'.join(map(str, (*inside, last)))}"
    if how == "gone":
        del parent[last]
    elif how == "wrapped":
        parent[last] = rng.choice(([parent[last]], {"a": parent[last]}))
    elif how == "extra" and isinstance(parent, list):
        parent.append(odd_value(rng))
    elif how == "extra":
        parent[rng.choice(("", "a", "level", "kind", "columns", "top", "x" * 300, "é"))] = odd_value(rng)
    elif how == "misspelt" and isinstance(parent, dict):
        parent[f"{last}e"] = parent.pop(last)
    else:
        parent[last] = odd_value(rng)
        words += f" = {str(parent[last])[:60]!r}"
    return data, words


def spoilt_bytes(content: bytes, rng: random.Random) -> tuple[bytes, str]:
    """Bytes with some changed, cut off, doubled or taken out; and what was done."""
    data = bytearray(content)
    how = rng.choice(("flip", "flip", "flip", "cut", "zero", "ones", "drop", "double", "insert", "head", "tail"))
    size = len(data)
    at = rng.randrange(size)
    long = min(size - at, rng.choice((1, 2, 4, 8, 64, 1000)))
    if how == "flip":
        for _ in range(rng.choice((1, 1, 2, 5, 20))):
            data[rng.randrange(size)] = rng.randrange(256)
    elif how == "cut":
        del data[at:]
    elif how in ("zero", "ones"):
        data[at : at + long] = (b"\x00" if how == "zero" else b"\xff") * long
    elif how == "drop":
        del data[at : at + long]
    elif how == "double":
        data[at:at] = data[at : at + long] * rng.choice((1, 2, 50))
    elif how == "insert":
        data[at:at] = rng.randbytes(long)
    elif how == "head":
        for place in rng.sample(range(min(size, 64)), min(size, 3)):
            data[place] = rng.randrange(256)
    else:
        for place in rng.sample(range(max(0, size - 200), size), min(size, 3)):
            data[place] = rng.randrange(256)
    return bytes(data), f"{how} at {at} of {size}"
