"""Shaping in a real browser: breaks are dragged, moved by keys and by fields; categories are merged."""

import re
from typing import Any

import pytest

pytestmark = pytest.mark.xdist_group("browser")


def at_key(page: Any, key: str) -> None:
    """The demo survey at one of its keys, when every level is told."""
    if not page.locator("table.columns").count():
        page.get_by_role("button", name="Open the demo survey").click()
        page.wait_for_selector("table.columns")
    page.goto(page.url.split("/shape")[0].rstrip("/") + f"/shape?key={key}")
    page.locator("li:last-child > .level [data-told]", has_text="bits").wait_for()


def changed(page: Any) -> None:
    """Wait for the preview."""
    page.locator("#effect-title", has_text="With this").wait_for()
    page.locator("#risk-change", has_text=re.compile("points|no change")).wait_for()


def test_breaks_are_moved_with_and_without_a_mouse(browser_page: Any) -> None:
    page = browser_page
    at_key(page, "age")
    page.get_by_role("button", name=re.compile("^bands of 10")).click()
    page.wait_for_selector(".level[aria-pressed=true] >> text=bands of 10")
    page.wait_for_selector(".handle")
    page.locator("li:last-child > .level [data-told]", has_text="bits").wait_for()
    line = page.get_by_role("slider", name="Break 5 of 8")
    line.hover()
    box = line.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + 60
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 14, y, steps=4)
    changed(page)
    page.mouse.up()
    moved = [float(field.input_value()) for field in page.locator("#breaks input").all()]
    assert moved[:4] == [20, 30, 40, 50]
    assert 60 < moved[4] < 70
    page.get_by_role("button", name="Change bands of 10").click()
    page.wait_for_selector(".level[aria-pressed=true] >> text=9 bands")
    page.locator("#steps", has_text="age: breaks moved").wait_for()
    page.get_by_role("button", name="Undo").click()
    page.wait_for_selector(".level[aria-pressed=true] >> text=bands of 10")
    by_keys_and_fields(page)


def by_keys_and_fields(page: Any) -> None:
    """Without a mouse the same is done."""
    page.get_by_role("button", name=re.compile("^as it came")).click()
    page.wait_for_selector(".level[aria-pressed=true] >> text=as it came")
    page.locator("li:last-child > .level [data-told]", has_text="bits").wait_for()
    page.fill("#width", "20")
    changed(page)
    assert page.locator("#keep").is_hidden()
    line = page.locator(".handle[data-break='1']")
    line.focus()
    before = float(line.get_attribute("aria-valuenow"))
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowLeft")
    line = page.locator(".handle[data-break='1']")
    assert float(line.get_attribute("aria-valuenow")) == before + 1 - 10
    count = page.locator("#breaks input").count()
    page.locator("#breaks input").nth(1).fill("55")
    page.keyboard.press("Tab")
    assert float(line.get_attribute("aria-valuenow")) == 55
    line.focus()
    page.keyboard.press("Delete")
    assert page.locator("#breaks input").count() == count - 1
    page.get_by_role("button", name="Add a break").click()
    assert page.locator("#breaks input").count() == count
    box = page.locator("#histogram").bounding_box()
    page.mouse.dblclick(box["x"] + 0.93 * box["width"], box["y"] + 60)
    assert page.locator("#breaks input").count() == count + 1
    page.fill("#top", "80")
    page.keyboard.press("Tab")
    assert page.locator("#breaks input").last.input_value() == "80"
    page.get_by_label("called").fill("my bands")
    page.get_by_role("button", name="Keep as a new level").click()
    page.wait_for_selector(".level[aria-pressed=true] >> text=my bands")


def test_categories_are_merged_and_taken_apart(browser_page: Any) -> None:
    page = browser_page
    at_key(page, "race")
    page.wait_for_selector("#categories tr[data-code]")
    for row in (2, 3, 4):
        page.locator("#categories tbody input").nth(row).check()
    page.fill("#group-name", "<b>Rest</b>")
    page.keyboard.press("Enter")
    changed(page)
    assert page.locator("#groups").text_content().startswith("<b>Rest</b> 3 categories")
    page.get_by_role("button", name="take apart").click()
    assert page.locator("#keep-new").is_disabled()
    page.get_by_label("All others become").check()
    page.fill("#frequent", "2")
    changed(page)
    page.get_by_role("button", name="Keep as a new level").click()
    page.wait_for_selector(".level[aria-pressed=true] >> text=3 groups")
    page.get_by_role("button", name="Find the least coarsening").click()
    page.get_by_role("button", name="Look at these levels").click(timeout=600_000)
    page.wait_for_selector(".keys >> text=bands of")
    assert page.locator("#h-key").text_content() == "race"
