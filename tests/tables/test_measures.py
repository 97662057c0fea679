"""What is lost in a protected table: worked by hand on six cells."""

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.data.records import Law
from equipoise.data.tables.table import Table
from equipoise.tables import Additivity, Distance, KeptMargins, Rebuild, Suppressed


@pytest.fixture
def table() -> Table:
    """a: 4 and 1, b: 0 and 3. In order: Total (8: 4, 4), a (5: 4, 1), b (3: 0, 3)."""
    rows = [("a", "p")] * 4 + [("a", "q")] + [("b", "q")] * 3
    return eq.table(eq.Records.of(pl.DataFrame(rows, ["r", "c"], orient="row"), eq.Roles()), ["r", "c"])


def shown(table: Table, told: list[float]) -> Table:
    return table.protected(np.array(told), pl.Series(["changed"] * len(table)), Law("x", (), "x"))


def test_the_order_of_cells(table: Table) -> None:
    assert table.published_values.tolist() == [8, 4, 4, 5, 4, 1, 3, 0, 3]


def test_suppressed(table: Table) -> None:
    gone = shown(table, [8, 4, 4, 5, np.nan, np.nan, 3, 0, 3])
    assert Suppressed().measure(gone, table).value == pytest.approx(2 / 8, rel=1e-12)
    assert Suppressed("value").measure(gone, table).value == pytest.approx(5 / 32, rel=1e-12)
    assert Suppressed().measure(table, table).value == 0
    assert Suppressed().measure(gone, table).detail["suppressed"].sum() == 2


def test_distance(table: Table) -> None:
    near = shown(table, [10, 5, 5, 5, 5, 0, 5, 0, 5])
    by_hand = [2, 1, 1, 0, 1, 1, 2, 2]
    assert Distance().measure(near, table).value == pytest.approx(sum(by_hand) / 32, rel=1e-12)
    assert Distance("mean").measure(near, table).value == pytest.approx(sum(by_hand) / 8, rel=1e-12)
    assert Distance("largest").measure(near, table).value == 2
    pairs = [(10, 8), (5, 4), (5, 4), (5, 5), (5, 4), (0, 1), (5, 3), (5, 3)]
    roots = sum((a**0.5 - b**0.5) ** 2 for a, b in pairs)
    assert Distance("hellinger").measure(near, table).value == pytest.approx((roots / 64) ** 0.5)


def test_suppressed_cells_are_lost_or_left_out(table: Table) -> None:
    gone = shown(table, [8, 4, 4, 5, np.nan, np.nan, 3, 0, 3])
    assert Distance().measure(gone, table).value == pytest.approx(5 / 32, rel=1e-12)
    assert Distance(skip=True).measure(gone, table).value == 0
    assert "2 suppressed" in Distance().measure(gone, table).notes[0]


def test_additivity(table: Table) -> None:
    """Six relations: rows in three columns, columns in three rows."""
    assert Additivity().measure(table, table).value == 1
    off = shown(table, [8, 4, 4, 5, 4, 1, 5, 0, 3])
    assert Additivity().measure(off, table).value == pytest.approx(4 / 6)
    gone = shown(table, [8, 4, 4, 5, np.nan, 1, 3, 0, 3])
    score = Additivity().measure(gone, table)
    assert score.value == 1
    assert score.number == 4
    assert "2 relations" in score.notes[0]


def test_kept_margins(table: Table) -> None:
    """Five margins: the total, two rows, two columns."""
    near = shown(table, [8, 5, 4, 5, 4, 1, np.nan, 0, 3])
    assert KeptMargins().measure(near, table).value == pytest.approx(3 / 5, rel=1e-12)
    assert KeptMargins(0.25).measure(near, table).value == pytest.approx(4 / 5, rel=1e-12)


def test_rebuild_solves_the_normal_equations(table: Table) -> None:
    told = np.array([9.0, 4, 5, 5, 5, 1, 2, 0, 3])
    members = np.array([[1, 1, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [1, 0, 0, 0],
                        [0, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 0], [0, 0, 0, 1]], dtype=float)  # fmt: skip
    inner = np.linalg.solve(members.T @ members, members.T @ told)
    score = Rebuild(small=0).measure(shown(table, told.tolist()), table)
    assert score.detail["rebuilt"].to_list() == np.round(members @ np.maximum(inner, 0)).tolist()
    hits = np.round(members @ np.maximum(inner, 0)) == table.published_values
    assert score.value == pytest.approx(hits[table.published_values > 0].mean())


def test_rebuild_of_an_additive_table_finds_what_is_published(table: Table) -> None:
    score = Rebuild().measure(table, table)
    assert score.value == score.baseline == 1
    assert score.side == "risk"


def test_tables_of_other_cells_are_refused(table: Table) -> None:
    other = eq.table(eq.Records.of(pl.DataFrame({"r": ["a"], "c": ["p"]}), eq.Roles()), ["r", "c"])
    for measure in (Suppressed(), Distance(), Additivity(), KeptMargins(), Rebuild()):
        with pytest.raises(eq.DataError, match="different cells"):
            measure.measure(other, table)


@pytest.mark.parametrize(
    ("method", "bad"),
    [(Suppressed, {"of": "rows"}), (Distance, {"kind": "far"}), (KeptMargins, {"within": 5}), (Rebuild, {"small": -1})],
)
def test_parameters_that_make_no_sense(method: type, bad: dict) -> None:
    with pytest.raises(eq.ParameterError):
        method(**bad)
