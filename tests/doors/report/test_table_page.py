"""The report of a table: what a cell tells inside, that the public page tells nothing more, and the last period."""

import re
from html import unescape
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import equipoise as eq
from equipoise.doors.cli import main
from equipoise.doors.report import render_table
from equipoise.doors.report.cell_details import CellDetails
from equipoise.doors.report.table_grid import CrossLayout, grid, shown_cells
from equipoise.releases.tabulated import Tabulated


def firms(small: str) -> pl.DataFrame:
    """Turnover where only the region `small` has few firms of 10-49; sums and all other cells do not depend on it."""
    parts = {"few": [7001.0, 3.0], "many": [7004 / 5 + step for step in (-2, -1, 0, 1, 2)]}
    rows = [(region, "10-49", v) for region in ("a", "b") for v in parts["few" if region == small else "many"]]
    rows += [(region, "1-9", v) for region in ("a", "b") for v in (801.0, 701.0, 601.0, 501.0, 401.0)]
    rows += [(region, "250+", v) for region in ("a", "b") for v in (9000.0, 8000.0, 7000.0, 6500.0)]
    return pl.DataFrame(rows, schema=["region", "size", "turnover"], orient="row")


def made(frame: pl.DataFrame, **more: Any) -> Tabulated:
    method = eq.tables.Suppress(eq.rules.MinCount(3) | eq.rules.PPercent(0.1), **more)
    return eq.tabulate(eq.Records.of(frame, eq.Roles()), ["region", "size"], "turnover", method=method)


@pytest.fixture(scope="module")
def tabulated() -> Tabulated:
    return made(firms("a"))


def test_the_table_is_read_from_left_to_right_and_totals_stand_last(tabulated: Tabulated) -> None:
    facts = grid(tabulated, public=True)
    assert [column["label"] for column in facts["columns"]] == ["1-9", "10-49", "250+", "Total"]
    assert [row["label"] for row in facts["blocks"][0]["rows"]] == ["a", "b", "Total"]
    assert facts["unit"] == "turnover"
    assert tabulated.public["size"].to_list() == ["1-9", "10-49", "250+", "Total"] * 3
    assert tabulated.internal.select("region", "size").equals(tabulated.public.select("region", "size"))


def test_a_cell_tells_why_what_is_known_and_by_whom(tabulated: Tabulated) -> None:
    cells = shown_cells(grid(tabulated, public=False))
    details = {cell["label"]: cell for cell in CellDetails(tabulated).facts(cells)}
    assert {label for label, cell in details.items() if cell["status"] == "sensitive"} == {"a · 10-49"}
    one = details["a · 10-49"]
    assert one["why"][0] == "Min count: 2 records, fewer than 3."
    assert "the second largest contributor can estimate" in one["why"][1]
    assert one["who"] == "2 contributors (largest 7,001, second 3)"
    level = eq.rules.PPercent(0.1).levels(tabulated.table)["upper"].max()
    below, above = (value.replace(",", "") for value in one["known"][0]["needed"].split(" to "))
    assert float(above) - 7004 >= level - 1  # type: ignore[operator]
    assert 7004 - float(below) >= level - 1  # type: ignore[operator]
    assert {row["who"] for row in one["known"]} >= {"an outsider", "a contributor who shares cells"}
    second = details["b · 10-49"]
    assert second["why"] == [
        "Protects a · 10-49 in the sum over region to Total · 10-49: published, it would give that cell away."
    ]
    assert [row["who"] for row in second["known"]] == ["an outsider"]


def test_every_marked_cell_leads_to_its_row_without_scripts(tabulated: Tabulated) -> None:
    page = render_table(tabulated, "firms", public=False)
    links = set(re.findall(r'<a href="#(cell-\d+)"', page))
    assert len(links) == tabulated.counts["suppressed"]
    assert links == set(re.findall(r'<tr id="(cell-\d+)"', page))


def test_the_public_page_is_the_same_whichever_suppressed_cell_is_sensitive() -> None:
    """Two tables with the same published numbers and pattern, and other sensitive cells and values: one page."""
    one, two = (made(firms(small)) for small in ("a", "b"))
    assert one.public.equals(two.public)
    assert not one.internal.equals(two.internal)
    pages = [render_table(found, "firms", public=True) for found in (one, two)]
    assert pages[0] == pages[1]


def test_no_suppressed_value_is_in_the_public_page(tabulated: Tabulated) -> None:
    """Not in text, attributes or scripts, by any digits of it."""
    page = unescape(render_table(tabulated, "firms", public=True))
    hidden = tabulated.internal.filter(pl.col("published").is_null())
    for value in [*hidden["value"].to_list(), 7001]:
        assert not re.search(rf"(?<!\d){f'{value:,}'}(?!\d)|(?<!\d){value:g}(?!\d)", page), value
    words = ("sensitive", "secondary", "primary", "cell-", "guarded", "min count", "p percent")
    body = re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.DOTALL).lower()
    assert not any(word in body for word in words)
    marked = set(re.findall(r"<td class=\"n suppressed(?: total)?\">(.*?)</td>", page))
    assert len(marked) == 1, "all suppressed cells look alike"


def test_large_tables_show_blocks_and_say_so() -> None:
    frame = pl.DataFrame({"a": list(range(60)) * 60, "b": [i // 60 for i in range(3600)], "c": ["x", "y", "z"] * 1200})
    table = eq.table(eq.Records.of(frame, eq.Roles()), ["a", "b", "c"])
    layout = CrossLayout.of(table)
    assert (len(layout.rows), len(layout.columns), len(layout.blocks)) == (61, 4, 24)
    assert layout.cuts == ("24 of 61 blocks, the total over b among them",)
    place = int(layout.places(table)[-1, -1, -1])
    assert table.table.select("a", "b", "c").row(place) == ("Total", "Total", "Total")


def test_last_period_stays_where_it_still_protects(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The cheapest helper is another one now; last period's still protects, and is taken again. Both pages say so."""
    last = firms("a")
    now = last.with_columns(turnover=pl.when(pl.col("size") == "1-9").then(20.0).otherwise(1.0) * pl.col("turnover"))
    first = made(last)
    (tmp_path / "last.csv").write_bytes(first.public.write_csv().encode())
    free, kept = made(now), made(now, like=str(tmp_path / "last.csv"))
    hidden = [found.public["published"].is_null().to_list() for found in (first, free, kept)]
    assert hidden[1] != hidden[0]
    assert hidden[2] == hidden[0]
    assert kept.changes is not None
    assert kept.to_plain()["changes"]["suppressed in both"] == first.counts["suppressed"]
    free = eq.tabulate(
        eq.Records.of(now, eq.Roles()), ["region", "size"], "turnover",
        method=eq.tables.Suppress(eq.rules.MinCount(6), like=str(tmp_path / "last.csv")),
    )  # fmt: skip
    for public in (True, False):
        page = render_table(free, "firms", public=public)
        assert "Newly suppressed:" in page
        assert "Changes of values published in both periods" in page
        assert ("not audited together" in page) != public
    now.write_csv(tmp_path / "now.csv")
    args = ["table", str(tmp_path / "now.csv"), "--by", "region,size", "--value", "turnover", "--rule", "min-count:3"]
    assert main([*args, "--like", str(tmp_path / "last.csv"), "--show-table"]) == 0
    screen = " ".join(capfd.readouterr().out.split())
    assert "region 1-9 10-49 250+ Total a" in screen
    assert "Differences to the last period Cells:" in screen


def test_a_cell_is_opened_by_mouse_and_keyboard(tabulated: Tabulated, tmp_path: Path, chromium: Any) -> None:
    for name, public in (("in.html", False), ("out.html", True)):
        (tmp_path / name).write_text(render_table(tabulated, "firms", public=public), encoding="utf-8")
    tab = chromium.new_page(viewport={"width": 1100, "height": 900})
    tab.set_default_timeout(300_000)
    tab.goto((tmp_path / "in.html").as_uri())
    tab.locator("td.secondary a").first.click()
    assert "Protects" in tab.locator(".panel").inner_text()
    tab.keyboard.press("Escape")
    assert not tab.locator(".panel").is_visible()
    tab.keyboard.press("ArrowRight")
    tab.locator("td.sensitive a").focus()
    tab.keyboard.press("Enter")
    text = tab.locator(".panel").inner_text()
    assert "2 records, fewer than 3" in text
    assert "Not covered:" in text
    tab.goto((tmp_path / "out.html").as_uri())
    tab.locator("td.suppressed a").first.click()
    assert "its number is not published" in tab.locator(".panel").inner_text()
    tab.context.close()
