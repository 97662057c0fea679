"""The threshold rule."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.data.cells import Cells


@given(counts=st.lists(st.integers(0, 9), min_size=1, max_size=20), n=st.integers(1, 10))
def test_a_cell_of_fewer_than_n_is_unsafe(counts: list[int], n: int) -> None:
    """Willenborg and de Waal (1996), ch. 3: records, but fewer than n; the order is that of the cell table."""
    cells = Cells.of(pl.DataFrame({"x": list(range(len(counts))), "n": counts}))
    flags = eq.rules.MinCount(n).flag(cells)
    assert flags.to_list() == [0 < c < n for c in counts]
    assert (flags.name, len(flags)) == ("unsafe", len(cells))


def test_the_rule_and_the_measure_agree(people_records: eq.Records) -> None:
    """MinCount(k + 1) flags the cells whose records Uniques(k) counts."""
    cells = eq.count(people_records)
    for k in (1, 2, 3):
        flagged = cells.table.filter(eq.rules.MinCount(k + 1).flag(cells))["n"].sum()
        assert flagged == eq.risk.Uniques(k).measure(cells, cells).number


@pytest.mark.parametrize("n", [0, -1, 1.5, "3"])
def test_unfit_thresholds(n: object) -> None:
    with pytest.raises(eq.ParameterError):
        eq.rules.MinCount(n)  # type: ignore[arg-type]


def holdings() -> eq.Records:
    """Cell a: five records of one holding; b: four of two; c: three of three."""
    rows = [("a", 1)] * 5 + [("b", 2)] * 2 + [("b", 3)] * 2 + [("c", 4), ("c", 5), ("c", 6)]
    return eq.Records.of(pl.DataFrame(rows, ["k", "firm"], orient="row").with_columns(x=2.0), eq.Roles())


@pytest.mark.parametrize("value", [None, "x"])
def test_records_of_one_holding_are_one_contributor(value: str | None) -> None:
    """Thresholds for records and for holdings: a cell must meet both, as in tau-ARGUS."""
    table = eq.table(holdings(), "k", value, holding="firm")
    flags = lambda rule: table.table.filter(rule.flag(table))["k"].to_list()
    assert flags(eq.rules.MinCount(3)) == ["a", "b"]
    assert flags(eq.rules.MinCount(3, holdings=2)) == ["a"]
    assert flags(eq.rules.MinCount(4, holdings=1)) == ["c"]
    assert flags(eq.rules.MinCount(5, holdings=3)) == ["a", "b", "c"]
    alone = eq.table(holdings(), "k", value)
    assert not eq.rules.MinCount(3).flag(alone).any()


def test_a_safe_count_remains_possible() -> None:
    """Up to n records, and a record for each holding that lacks."""
    table = eq.table(holdings(), "k", holding="firm")
    assert eq.rules.MinCount(3).levels(table)["upper"].to_list() == [0, 2, 1, 0]
    assert eq.rules.MinCount(6).levels(table)["upper"].to_list() == [0, 5, 4, 3]
    assert "1 contributor, fewer than 3" in eq.rules.MinCount(3).explain(table.table.row(1, named=True))


def test_contributors_of_a_ready_table_count() -> None:
    rows = pl.DataFrame({"k": [*"ab"], "n": [9, 8], "firms": [2, 3]})
    table = eq.table(eq.Records.of(rows, eq.Roles()), "k", ready=eq.tables.Ready(n="n", contributors="firms"))
    assert eq.rules.MinCount(3).flag(table).to_list() == [False, True, False]
