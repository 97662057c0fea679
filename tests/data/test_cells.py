"""Cells: counts add up, coarsening loses, and rolling up is counting again."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import equipoise as eq
from equipoise.data.cells import Cells

ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(0, 30),
        st.sampled_from(["1011", "1012", "2600", None]),
        st.booleans(),
        st.integers(1, 5),
    ),
    min_size=1,
    max_size=80,
)
AGE = eq.Hierarchy.intervals([2, 6, 12], top=24, alone=0, root=True)
AREA = eq.Hierarchy.prefix(3, 1, root=True)
ROLES = eq.Roles(["age", "area", "flag"], weight="w", hierarchies={"age": AGE, "area": AREA})


def records(rows: list[tuple[Any, ...]]) -> eq.Records:
    schema = {"age": pl.Int64, "area": pl.String, "flag": pl.Boolean, "w": pl.Int64}
    return eq.read(pl.DataFrame(rows, schema=schema, orient="row"), ROLES)


LEVELS = st.tuples(st.integers(0, 4), st.integers(0, 3))


@given(rows=ROWS, levels=LEVELS)
def test_rolling_up_is_counting_the_recoded_records(rows: list[tuple[Any, ...]], levels: tuple[int, int]) -> None:
    """The heart of the sweep: cells rolled up equal cells counted from recoded records, exactly."""
    data = records(rows)
    recipe = eq.Recipe([eq.masks.Recode("age", levels[0]), eq.masks.Recode("area", levels[1])])
    from_cells = eq.count(data).roll_up({"age": levels[0], "area": levels[1]})
    assert_frame_equal(from_cells.table, eq.count(recipe.run(data)).table)
    assert_frame_equal(from_cells.table, recipe.roll_up(eq.count(data)).table)


@given(rows=ROWS)
def test_counts_and_weights_add_up(rows: list[tuple[Any, ...]]) -> None:
    """Every margin has all records and all weight; so has every roll-up."""
    cells = eq.count(records(rows))
    weight = sum(row[3] for row in rows)
    margins = [cells, cells.margin(("flag",)), cells.margin(("area", "age")), cells.roll_up({"age": None, "area": "1"})]
    for part in margins:
        assert part.records == len(rows)
        assert part.total.sum() == pytest.approx(weight)
        assert (part.n > 0).all()
        assert part.table.select(part.by).is_duplicated().sum() == 0


@given(rows=ROWS, levels=LEVELS)
def test_coarsening_never_raises_uniques_nor_entropy(rows: list[tuple[Any, ...]], levels: tuple[int, int]) -> None:
    """Merging cells can only end uniqueness and lose information (grouping property of entropy)."""
    cells = eq.count(records(rows))
    coarse = cells.roll_up({"age": levels[0], "area": levels[1]})
    for k in (1, 2, 3):
        measure = eq.risk.Uniques(k)
        assert measure.measure(coarse, cells).value <= measure.measure(cells, cells).value
    entropy = eq.utility.Entropy()
    assert entropy.measure(coarse, cells).value <= entropy.measure(cells, cells).value + 1e-12


@given(rows=ROWS)
def test_margins_are_counts_by_fewer_columns(rows: list[tuple[Any, ...]]) -> None:
    """Counting by some columns equals adding up over the others; a fresh count equals a remembered one."""
    data = records(rows)
    fresh = eq.count(records(rows), ["flag", "age"]).table
    assert_frame_equal(eq.count(data).margin(("flag", "age")).table, fresh)
    assert_frame_equal(eq.count(data, ["flag", "age"]).table, fresh)


@given(rows=ROWS)
def test_row_order_does_not_matter(rows: list[tuple[Any, ...]]) -> None:
    assert_frame_equal(eq.count(records(rows)).table, eq.count(records(rows[::-1])).table)


@given(rows=ROWS)
def test_cells_of_their_own_table_are_the_same(rows: list[tuple[Any, ...]]) -> None:
    """`Cells.of` reads what `table` writes, in any order."""
    table = eq.count(records(rows)).table
    assert_frame_equal(Cells.of(table).table, table)
    assert_frame_equal(Cells.of(table.reverse()).table, table)


def test_scanned_data_is_counted_in_batches(monkeypatch: pytest.MonkeyPatch, mixed: pl.DataFrame) -> None:
    """Bounded memory: many small batches give the cells of one."""
    from equipoise.data import engines

    monkeypatch.setattr(engines, "BATCH_RECORDS", 17)
    known = eq.Roles(["town", "grade", "born", "owner"], weight="weight")
    expected = eq.count(eq.read(mixed, known)).table
    assert_frame_equal(eq.count(eq.read(mixed.lazy(), known)).table, expected)


def test_roll_up_by_a_mapping_keeps_what_is_not_listed() -> None:
    table = pl.DataFrame({"town": ["a", "b", "c"], "n": [1, 2, 3]})
    rolled = Cells.of(table).roll_up({"town": {"a": "ab", "b": "ab"}})
    assert rolled.table.rows() == [("ab", 3, 3.0), ("c", 3, 3.0)]
    mixed_types = Cells.of(pl.DataFrame({"x": [1, 2, None], "n": [1, 2, 3]})).roll_up({"x": {1: "one"}})
    assert dict(mixed_types.table.select("x", "n").iter_rows()) == {None: 3, "2": 2, "one": 1}


def test_roll_up_refuses_what_it_cannot_do() -> None:
    cells = Cells.of(pl.DataFrame({"x": [1, 2], "n": [1, 2]}))
    with pytest.raises(eq.ParameterError, match="no hierarchy"):
        cells.roll_up({"x": 1})
    with pytest.raises(eq.RolesError, match="No column 'y'"):
        cells.roll_up({"y": {1: 2}})
    with pytest.raises(eq.RolesError, match="No column 'y'"):
        cells.margin(("y",))


def test_a_column_that_was_recoded_has_no_hierarchy_left() -> None:
    """Recoding twice by levels of the original would be wrong."""
    cells = eq.count(records([(3, "1011", True, 1)])).roll_up({"age": 1})
    with pytest.raises(eq.ParameterError, match="recoded already"):
        cells.roll_up({"age": 2})


@pytest.mark.parametrize(
    "table",
    [
        pl.DataFrame({"x": [1]}),
        pl.DataFrame({"n": [1]}),
        pl.DataFrame({"x": [1, 1], "n": [1, 2]}),
    ],
)
def test_cell_tables_that_are_none(table: pl.DataFrame) -> None:
    with pytest.raises(eq.DataError):
        Cells.of(table)


def test_total_may_differ_from_n() -> None:
    cells = Cells.of(pl.DataFrame({"x": ["b", "a"], "n": [1, 2], "total": [10.5, 20.0]}))
    assert cells.table.rows() == [("a", 2, 20.0), ("b", 1, 10.5)]
    assert (cells.n.tolist(), cells.total.tolist()) == ([2, 1], [20.0, 10.5])


def test_nothing_to_count_by_and_no_such_column(people: pl.DataFrame) -> None:
    with pytest.raises(eq.RolesError, match="nothing to count by"):
        eq.count(eq.read(people))
    with pytest.raises(eq.RolesError, match="Did you mean 'sex'"):
        eq.count(eq.read(people), "sexx")
    assert eq.count(eq.read(people), "sex").by == ("sex",)


def test_counting_does_not_touch_the_data(people: pl.DataFrame, people_roles: eq.Roles) -> None:
    before = people.clone()
    eq.count(eq.read(people, people_roles))
    assert_frame_equal(people, before)


def test_a_hundred_thousand_categories() -> None:
    """Bad input: many categories are counted without trouble."""
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"x": rng.permutation(100_000).astype(str), "y": rng.integers(0, 100_000, 100_000)})
    cells = eq.count(eq.read(table, eq.Roles(["x", "y"])))
    assert len(cells) == 100_000
    assert cells.records == 100_000


def test_the_cell_repr_has_counts_only(people: pl.DataFrame, people_roles: eq.Roles) -> None:
    cells = eq.count(eq.read(people, people_roles))
    assert repr(cells) == f"Cells({len(cells)} cells, 400 records, by=['sex', 'area', 'age'])"
