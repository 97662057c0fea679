"""Cells that the table itself marks."""

from typing import Any

import polars as pl
import pytest

import equipoise as eq
from equipoise.data.cells import Cells
from equipoise.ground.randomness import Draws
from equipoise.rules import Marked


def cells(value: list[float], **columns: Any) -> Cells:
    base = {"k": [str(i) for i in range(len(value))], "n": [9] * len(value), "value": value}
    return Cells.of(pl.DataFrame({**base, **columns}), ("k",))


@pytest.mark.parametrize("marks", [[True, False, True], [1, 0, 1], ["u", "s", "U"]])
def test_marks_of_all_kinds(marks: list[Any]) -> None:
    assert Marked().flag(cells([5, 6, 7], sensitive=marks)).to_list() == [True, False, True]
    assert Marked("secret").flag(cells([5, 6, 7], secret=marks)).to_list() == [True, False, True]


def test_levels_of_the_table_and_by_name() -> None:
    table = cells(
        [50.0, 60.0], sensitive=[True, False], lower_level=[7, 7], upper_level=[3, 3], down=[60, 1], up=[2, 2]
    )
    assert Marked().levels(table).rows() == [(7.0, 3.0), (0.0, 0.0)]
    assert Marked(lower="down", upper="up").levels(table).rows() == [(50.0, 2.0), (0.0, 0.0)]


def test_levels_without_any() -> None:
    """A fifth of an amount; of counts at least one; with margin 0 just not exactly."""
    assert Marked().levels(cells([50.0, 60.0], sensitive=[1, 0])).rows() == [(10.0, 10.0), (0.0, 0.0)]
    counts = Cells.of(pl.DataFrame({"k": ["a", "b"], "n": [2, 40], "value": [2, 40], "sensitive": [1, 1]}), ("k",))
    assert Marked().levels(counts).rows() == [(1.0, 1.0), (8.0, 8.0)]
    assert Marked(margin=0).levels(counts)["upper"].to_list() == pytest.approx([2e-4, 4e-3])


def test_explained() -> None:
    assert Marked().explain({"sensitive": True}) == "Sensitive: the column 'sensitive' marks it."
    assert Marked().explain({"sensitive": "s"}) == "Safe: the column 'sensitive' does not mark it."


def test_what_does_not_fit() -> None:
    with pytest.raises(eq.DataError, match="no column 'secret' that marks"):
        Marked("secret").flag(cells([1.0], sensitive=[True]))
    with pytest.raises(eq.ParameterError, match="go together"):
        Marked(lower="low")
    with pytest.raises(eq.ParameterError):
        Marked(margin=20)
    with pytest.raises(eq.DataError, match="protection levels in 'up'"):
        Marked(lower="up", upper="up").levels(cells([1.0], sensitive=[True], up=[-1.0]))


def test_nine_marked_cells_of_which_one_can_be_computed() -> None:
    """The 4 x 4 table of sdcTable: every row and column has two marked cells, and (w, b) is exact all the same."""
    counts = {"w": [30, 47, 64, 89], "x": [90, 124, 5, 31], "y": [92, 100, 59, 85], "z": [800, 991, 651, 685]}
    secret = {
        ("w", "a"),
        ("w", "b"),
        ("w", "c"),
        ("x", "a"),
        ("x", "c"),
        ("y", "b"),
        ("y", "d"),
        ("z", "b"),
        ("z", "d"),
    }
    rows = [(r, c, n, (r, c) in secret) for r, row in counts.items() for c, n in zip("abcd", row, strict=True)]
    frame = pl.DataFrame(rows, schema=["v1", "v2", "freq", "sensitive"], orient="row")
    table = eq.table(eq.Records.of(frame, eq.Roles()), ["v1", "v2"], ready=eq.tables.Ready(n="freq"))
    status = pl.Series("status", ["sensitive" if mark else "published" for mark in table.table["sensitive"]])
    law = eq.data.records.Law("suppress", table.by, "the marked cells alone")
    told = pl.Series(table.numbers("value")).zip_with(~table.table["sensitive"], pl.Series([float("nan")] * 25))
    alone = eq.tables.audit(table.protected(told.to_numpy(), status, law))
    assert alone.filter("exact").select("v1", "v2", "lower").rows() == [("w", "b", 47.0)]
    for margin, secondary in ((0.0, 1), (0.2, 4)):
        rule = Marked(margin=margin)
        shown = eq.tables.Suppress(rule, method="optimal").apply(table, Draws(1))
        found = eq.tables.audit(shown, rule)
        assert not found.select("exact", "exposed").to_numpy().any()
        assert (shown.table["status"] == "secondary").sum() == secondary
        if not margin:
            cells = shown.table.filter(pl.col("status") == "secondary")
            assert cells.select("v1", "v2", "n").rows() == [("x", "d", 31)]
            assert found.filter(pl.col("v1") == "w", pl.col("v2") == "b").select("lower", "upper").row(0) == (0, 78)
