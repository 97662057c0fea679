"""Tables in a real browser: from the demo to a table that is saved, by mouse and by keyboard."""

import re
from pathlib import Path
from typing import Any

import pytest

import equipoise as eq

pytestmark = pytest.mark.xdist_group("browser")
WAIT = 600_000


def until(page: Any, shows: str) -> None:
    """Wait for something that is true in the page; the page itself may not evaluate text."""
    for _ in range(WAIT // 50):
        if page.evaluate(shows):
            return
        page.wait_for_timeout(50)
    raise AssertionError(shows)


def test_a_table_is_made_protected_compared_and_saved(browser_page: Any, server: Any, tmp_path: Path) -> None:
    page = browser_page
    page.goto(f"{server.home}/tables")
    page.click("text=Open the demo business survey")
    page.wait_for_selector("table.cross", timeout=WAIT)
    assert page.inner_text("#table-answer") == "15 of 209 cells are sensitive."
    assert page.locator("td.sensitive").count() == 15

    field = page.locator("#rule-0-1")
    field.focus()
    field.fill("30%")
    page.keyboard.press("Tab")
    until(page, "document.querySelectorAll('td.sensitive').length > 15")
    assert page.evaluate("document.activeElement.id") == "rule-0-2"
    with page.expect_navigation():
        page.get_by_role("button", name="Undo").click()
    until(page, "document.querySelectorAll('td.sensitive').length == 15")

    page.click("text=Protect the table and audit it")
    page.wait_for_selector("#h-audit", timeout=WAIT)
    assert re.match(r"15 of 209 cells are sensitive; \d+ more are suppressed", page.inner_text("#table-answer"))
    assert page.locator("td.secondary").count() == 23
    assert page.locator("td.sensitive").first.inner_text().split() == ["s", "sensitive"]
    page.click("#show-values")
    page.wait_for_selector("text=Hide the values of suppressed cells", timeout=WAIT)
    assert any(letter.isdigit() for letter in page.locator("td.sensitive").first.inner_text())

    with page.expect_download() as told:
        page.click("text=table.csv")
    assert told.value.suggested_filename == "public-table.csv"
    page.click("#keep-table")
    page.wait_for_selector("#kept", timeout=WAIT)
    assert eq.verify(tmp_path / "business-table").outcome == "verified"

    page.get_by_label("min-count:3").uncheck()
    page.click("#start-compare")
    page.wait_for_selector("#compared", timeout=WAIT)
    page.wait_for_selector("[data-chart='map-spec'] svg", timeout=WAIT)
    assert page.locator("#compared tbody tr").count() == 5
