"""Publish or suppress in a real browser: the point moves by dragging, by the keyboard and by a number."""

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.xdist_group("browser")
WAIT = 600_000


def until(page: Any, shows: str) -> None:
    """Wait for something that is true in the page; the page itself may not evaluate text."""
    for _ in range(WAIT // 50):
        if page.evaluate(shows):
            return
        page.wait_for_timeout(50)
    raise AssertionError(shows)


def moved(page: Any, risk: float) -> None:
    """Wait until the page says what this point means."""
    at = "JSON.parse(document.getElementById('point-rows').textContent).chosen[0].risk"
    until(page, f"Math.abs({at} - {risk}) < 0.0006")


def test_the_point_is_moved_kept_and_written(browser_page: Any, server: Any, tmp_path: Path) -> None:
    page = browser_page
    page.goto(f"{server.home}/publish")
    page.click("text=Open the demo survey")
    page.wait_for_selector("#curve svg .chosen_marks path", timeout=WAIT)
    until(page, "!!document.querySelector('#curve .chart').view")
    before = page.locator("#curve .chosen_marks path").get_attribute("transform")

    page.focus("#risk")
    page.keyboard.press("End")
    moved(page, 1.0)
    assert "Nothing is withheld" in page.inner_text("#point-answer")
    assert page.locator("#curve .chosen_marks path").get_attribute("transform") != before
    page.keyboard.press("ArrowLeft")
    moved(page, 0.999)
    assert page.evaluate("document.activeElement.id") == "risk"

    page.fill("#risk-exact", "40")
    moved(page, 0.4)
    box = page.locator("#curve svg").bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.8 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.12 * box["width"], box["y"] + 0.4 * box["height"], steps=6)
    page.mouse.up()
    dragged = float(page.input_value("#risk"))
    assert 0.4 < dragged < 0.9
    moved(page, dragged)

    page.select_option("#shown", "withheld")
    until(page, "!document.querySelector('#cells .yes')")
    page.click("#keep-point")
    page.wait_for_selector("text=This point is kept.", timeout=WAIT)
    assert float(page.input_value("#risk")) == dragged
    page.click("#write-decision")
    page.wait_for_selector("#written", timeout=WAIT)
    assert (tmp_path / "survey-decision" / "report.html").is_file()
