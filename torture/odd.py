"""Odd values, odd bytes and odd places in nested data."""

import random
from collections.abc import Iterator
from datetime import date, datetime, time
from typing import Any

ODD_TEXTS = (
    "", " ", "\x00", "a\x00b", "**", "../**", "*", "[", "?", "..", "/", "~", "-", "--", "%s", "{}", "{0.__class__}", "\n", "\r",
    "\t", "\u202e", "é" * 300, "x" * 5000, "0", "-1", "1e999", "nan", "inf", "-inf", "9" * 5000, "1" * 400, "0x10", "1_000",
    "true", "null", "none", "age", "age,age", "AGE", "sexx", "=", "=1+1", "<", "< 0", "> nan", "< 1e999", "<= 0.5 and", "0.0.1",
    "101%", "-5%", "%", "%%", "(", ")", "a(b", "uniques(", "uniques(k=)", "uniques(k=(1,))", "uniques(k=9**9**9)", ":", ":::", ",",
    ",,,", ";", "|", "&", "| |", "|&|", "__import__('os')", "rot13", "base64", "hex", "zlib", "idna", "punycode", "undefined",
    "utf-7", "utf-8-sig", "unicode_escape", "utf-16", "klingon", "mbcs", "csv", "parquet", "xlsx", "/dev/null", "/proc/self/mem",
    "data.csv", "out/out/out", "région", "\ud83d\ude00", "a" * 300 + ".csv", "x/" * 3000, "sqlite:///x", "postgres://x", ":memory:",
    "select 1", "select * from 'data.csv'", "drop table x", "intervals", "age=intervals:5", "age=intervals:0", "age=intervals:-5",
    "age=intervals:1e400", "age=intervals:" + "9" * 400, "age=breaks:", "age=breaks:nan", "age=prefix:99999999999999999999",
    "age=dates:month", "age=csv:**", "age=hrc:data.xlsx", "age=mapping:a", "age=", "=age", "age=intervals:5,top=x", "5", "5,nearest",
)  # fmt: skip
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
