"""Codes: packed integers count as a Python dictionary does, whatever the types and however large the domain."""

from collections import Counter
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.ground import packed_keys
from equipoise.ground.packed_keys import code, gather, group, pack, tally

VALUES: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "text": (pl.String, st.text(max_size=4)),
    "small": (pl.Int64, st.integers(-3, 3)),
    "large": (pl.Int64, st.integers(-(2**63), 2**63 - 1)),
    "unsigned": (pl.UInt64, st.integers(0, 2**64 - 1)),
    "wide": (pl.Int128, st.integers(-(2**127), 2**127 - 1)),
    "wide unsigned": (pl.UInt128, st.integers(0, 2**128 - 1)),
    "byte": (pl.UInt8, st.integers(0, 255)),
    "float": (pl.Float64, st.floats(allow_nan=True, width=64)),
    "boolean": (pl.Boolean, st.booleans()),
    "date": (pl.Date, st.dates(date(1900, 1, 1), date(2100, 1, 1))),
    "datetime": (pl.Datetime, st.datetimes(datetime(1990, 1, 1), datetime(2030, 1, 1))),
    "duration": (pl.Duration, st.timedeltas(timedelta(0), timedelta(days=3))),
    "fine decimal": (pl.Decimal(38, 2), st.sampled_from([Decimal(10**20) + Decimal(i) / 100 for i in range(9)])),
    "decimal": (pl.Decimal(18, 2), st.decimals(-1000, 1000, places=2, allow_nan=False).map(Decimal)),
}


def plain(value: Any) -> Any:
    """Missing is missing, NaN too; -0.0 is 0.0."""
    if isinstance(value, float):
        return None if value != value else value + 0.0
    return value


@pytest.mark.parametrize("kind", VALUES)
@given(data=st.data())
def test_codes_point_at_sorted_distinct_values(kind: str, data: st.DataObject) -> None:
    """values[codes] is the column again; values are distinct, rising, null first."""
    dtype, strategy = VALUES[kind]
    column = pl.Series("x", data.draw(st.lists(st.none() | strategy, min_size=1, max_size=30)), dtype=dtype)
    coded = code(column)
    values = coded.values.to_list()
    assert [values[i] for i in coded.codes.tolist()] == [plain(v) for v in column.to_list()]
    assert len(set(values)) == len(values) == coded.size
    known = [v for v in values if v is not None]
    assert known == sorted(known)
    assert None not in values[1:]


@given(
    rows=st.lists(
        st.tuples(
            st.none() | st.integers(0, 4), st.sampled_from([None, "a", "b", "ø"]), st.none() | st.floats(0, 1, width=16)
        ),
        min_size=1,
        max_size=60,
    ),
    weights=st.data(),
)
def test_a_tally_is_a_dictionary_of_counts(rows: list[tuple[Any, ...]], weights: st.DataObject) -> None:
    """The packed count against collections.Counter, weights against a sum by key."""
    w = np.array(weights.draw(st.lists(st.integers(0, 9), min_size=len(rows), max_size=len(rows))), dtype=float)
    table = pl.DataFrame(rows, schema={"a": pl.Int64, "b": pl.String, "c": pl.Float64}, orient="row")
    cube = tally([code(table[c]) for c in table.columns], w)
    keys = list(
        zip(
            *(axis.gather(found.tolist()).to_list() for axis, found in zip(cube.axes, cube.codes, strict=True)),
            strict=True,
        )
    )
    expected = Counter((a, b, plain(c)) for a, b, c in rows)
    assert dict(zip(keys, cube.n.tolist(), strict=True)) == dict(expected)
    sums: Counter[Any] = Counter()
    for (a, b, c), x in zip(rows, w, strict=True):
        sums[a, b, plain(c)] += x
    assert dict(zip(keys, cube.total.tolist(), strict=True)) == pytest.approx(dict(sums))


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=5),
    seed=st.integers(0, 1000),
    rows=st.integers(1, 50),
)
def test_packing_is_mixed_radix(sizes: list[int], seed: int, rows: int) -> None:
    """Each packed integer is the place of its combination, the first key most significant."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, size, rows).astype(np.uint8) for size in sizes]
    expected = np.ravel_multi_index([c.astype(np.int64) for c in columns], sizes)
    assert pack(columns, sizes).tolist() == expected.tolist()


@given(seed=st.integers(0, 1000), width=st.integers(1, 5))
def test_dense_and_sparse_agree(seed: int, width: int) -> None:
    """Below and above the dense limit the same cube comes out, in the same order."""
    rng = np.random.default_rng(seed)
    table = pl.DataFrame({f"k{i}": rng.integers(0, 5, 40) for i in range(width)})
    columns = [code(table[c]) for c in table.columns]
    weights = rng.integers(1, 5, 40).astype(float)
    dense = tally(columns, weights)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_keys, "MAX_DENSE_PLACES", 0)
        patch.setattr(packed_keys, "MAX_PACKED_ID", 1)
        sparse = tally(columns, weights)
    assert [c.tolist() for c in dense.codes] == [c.tolist() for c in sparse.codes]
    assert dense.n.tolist() == sparse.n.tolist()
    assert dense.total.tolist() == sparse.total.tolist()


def test_domains_beyond_62_bits() -> None:
    """Fourteen keys of 50 values cross to 50^14 > 2^62 places: still exact, and in key order."""
    rng = np.random.default_rng(3)
    table = pl.DataFrame({f"k{i:02}": rng.permutation(np.repeat(np.arange(50), 8)) for i in range(14)})
    table = pl.concat([table, table.head(100)])
    assert 50**14 > 1 << 62
    cube = tally([code(table[c]) for c in table.columns])
    expected = Counter(table.rows())
    found = list(
        zip(*(axis.gather(c.tolist()).to_list() for axis, c in zip(cube.axes, cube.codes, strict=True)), strict=True)
    )
    assert dict(zip(found, cube.n.tolist(), strict=True)) == dict(expected)
    assert found == sorted(found)


def test_compressing_twice_and_more() -> None:
    """Sixty keys of two values need the ids to be compressed along the way."""
    rng = np.random.default_rng(4)
    table = pl.DataFrame({f"k{i:02}": rng.integers(0, 2, 30) * 1000 for i in range(80)})
    ids, first = group([code(table[c]).codes for c in table.columns], [2] * 80)
    rows = table.rows()
    distinct = sorted(set(rows))
    assert [distinct.index(row) for row in rows] == ids.tolist()
    assert [rows[i] for i in first] == distinct


def test_an_empty_column_of_nothing() -> None:
    """All null, of no type: one value, null."""
    coded = code(pl.Series("x", [None, None]))
    assert (coded.values.to_list(), coded.codes.tolist()) == ([None], [0, 0])


@given(seed=st.integers(0, 500))
def test_recoding_a_cube_adds_up_what_meets(seed: int) -> None:
    """A random many-to-one recode of one axis: n and total per new cell are sums over old cells."""
    rng = np.random.default_rng(seed)
    table = pl.DataFrame({"a": rng.integers(0, 6, 80), "b": rng.integers(0, 4, 80)})
    cube = tally([code(table[c]) for c in table.columns], rng.random(80))
    new = rng.integers(0, 3, cube.sizes[0])
    new = np.unique(new, return_inverse=True)[1]
    coarse = cube.recode(0, pl.Series("a", np.unique(new)), new.astype(np.uint8))
    assert coarse.n.sum() == cube.n.sum()
    expected: Counter[Any] = Counter()
    for a, b, n in zip(*cube.codes, cube.n, strict=True):
        expected[int(new[a]), int(b)] += int(n)
    assert {(int(a), int(b)): int(n) for a, b, n in zip(*coarse.codes, coarse.n, strict=True)} == dict(expected)
    assert coarse.total.sum() == pytest.approx(cube.total.sum())


def test_keeping_no_axis_is_the_grand_total() -> None:
    table = pl.DataFrame({"a": [1, 1, 2]})
    cube = tally([code(table["a"])], np.array([1.0, 2.0, 4.5])).keep([])
    assert (cube.n.tolist(), cube.total.tolist()) == ([3], [7.5])


def test_large_counts_stay_exact() -> None:
    """Counts pass through floats of 53 bits: 2^53 - 1 records are still counted exactly."""
    axis = (pl.Series("a", [0, 1]),)
    big = np.array([2**52, 2**52 - 1])
    cube = gather(axis, (np.array([0, 0], dtype=np.uint8),), big, big.astype(float))
    assert cube.n.tolist() == [2**53 - 1]


def test_long_decimals_are_told_apart() -> None:
    """Seventeen digits do not fit a float: amounts that differ in the last one are two values."""
    amounts = [Decimal("123456789012345.67"), Decimal("123456789012345.68"), Decimal("123456789012345.67")]
    column = pl.Series("x", amounts, dtype=pl.Decimal(20, 2))
    coded = code(column)
    assert [coded.values.to_list()[i] for i in coded.codes.tolist()] == amounts
