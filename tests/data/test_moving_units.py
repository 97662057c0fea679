"""Units: what moves, in which group, and the cells of households."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.data.moving_units import cell_of, members, units

TABLE = pl.DataFrame(
    {
        "home": [1, 1, 2, 2, 3, 4, 4],
        "age": [30, 40, 40, 30, 30, 40, None],
        "sex": ["f", "m", "m", "f", "f", "m", "m"],
        "place": ["x", "x", "x", "x", "y", "y", "y"],
        "w": [1.0, 1.0, 2.0, 2.0, 3.0, 4.0, 4.0],
    }
)


def test_records_are_units_of_their_own() -> None:
    """Without a household role a unit cell is a cell of the keys; null patterns are groups."""
    found = units(eq.read(TABLE, eq.Roles(["age", "sex"], weight="w")), ("age", "sex"), ())
    assert found.of_people
    assert len(found) == len(found.cells) == 3
    assert found.counts.sum() == 7
    assert found.weights.sum() == 17
    table = found.cells.table.with_columns(group=pl.Series(found.groups))
    missing = table.filter(pl.col("age").is_null())["group"].to_list()
    assert len(missing) == 1
    assert missing[0] not in table.filter(pl.col("age").is_not_null())["group"].to_list()


def test_within_makes_groups() -> None:
    """Columns of within that are no keys split cells and hold records back; key columns only group."""
    records = eq.read(TABLE.drop_nulls(), eq.Roles(["age", "sex"]))
    held = units(records, ("age", "sex"), ("place",))
    assert held.cells.by == ("age", "sex", "place")
    places = held.cells.table["place"].to_list()
    assert len(set(zip(places, held.groups.tolist(), strict=True))) == len(set(places)) == 2
    by_key = units(records, ("age", "sex"), ("sex",))
    assert by_key.cells.by == ("age", "sex")
    assert len(set(by_key.groups.tolist())) == 2


def test_values_that_look_alike_as_text_are_not_one_group() -> None:
    """Groups are joint values: ("a", "bc") is not ("ab", "c"), and a null is not its text."""
    table = pl.DataFrame({"k": [1, 2, 3, 4], "u": ["a", "ab", None, "null"], "v": ["bc", "c", "x", "x"]})
    found = units(eq.read(table, eq.Roles("k")), ("k",), ("u", "v"))
    assert len(set(found.groups.tolist())) == 4


def test_households_are_lists_of_cells() -> None:
    """Households 1 and 2 hold the same two people in another order: one unit cell with two units."""
    found = units(eq.read(TABLE, eq.Roles(["age", "sex"], household="home", weight="w")), ("age", "sex"), ())
    assert not found.of_people
    assert sorted(found.counts.tolist()) == [1, 1, 2]
    assert found.counts.sum() == 4
    twins = int(np.argmax(found.counts))
    assert found.weights[twins] == 6.0
    assert found.starts[twins + 1] - found.starts[twins] == 2
    sizes = np.diff(found.starts)
    for one in range(len(found)):
        for two in range(len(found)):
            if found.groups[one] == found.groups[two]:
                assert sizes[one] == sizes[two], "households move among those of their size"


def test_household_members_have_a_place_each() -> None:
    """Places are 0, 1, ... in each household, by group and cell, whatever the row order."""
    records = eq.read(TABLE, eq.Roles(["age", "sex"], household="home"))
    made = units(records, ("age", "sex"), ())
    people = members(TABLE, made.cells, made.people, "home", None)
    for _, part in people.group_by("household"):
        assert part.sort("place")["place"].to_list() == list(range(part.height))
    other = members(TABLE.reverse(), made.cells, made.people, "home", None)
    pairs = ["household", "cell", "place"]
    assert sorted(people.select(pairs).iter_rows()) == sorted(other.select(pairs).iter_rows())


@pytest.mark.parametrize(
    "values",
    [
        pl.Series(["b", None, "a", "b"], dtype=pl.Categorical),
        pl.Series(["b", None, "a", "b"], dtype=pl.Enum(["b", "a"])),
        pl.Series([1.5, float("nan"), None, -0.0]),
        pl.Series([3, None, 1, 3], dtype=pl.UInt8),
        pl.Series([True, None, False, True]),
        pl.Series([3, None, 1, 3]).cast(pl.Date),
        pl.Series([3, None, 1, 3]).cast(pl.Datetime("us")),
        pl.Series(["1.10", None, "2.20", "1.10"]).cast(pl.Decimal(9, 2)),
    ],
    ids=lambda s: str(s.dtype).split("(")[0],
)
def test_every_record_finds_its_cell(values: pl.Series) -> None:
    """cell_of joins by value, nulls and NaN included, for every type a key may have."""
    table = pl.DataFrame({"k": values, "z": [1, 1, 1, 2]})
    made = units(eq.read(table, eq.Roles(["k", "z"])), ("k", "z"), ())
    here = cell_of(table, made.cells)
    back: Any = made.cells.table.select("k", "z")[here].with_columns(pl.col("k").cast(table.schema["k"]))
    plain = table.with_columns(pl.col(pl.Float64).fill_nan(None))
    assert back.select("k", "z").equals(plain)
