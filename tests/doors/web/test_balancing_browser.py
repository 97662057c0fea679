"""Balance in a browser: one click from the demo to the map; limits by drag, keys and numbers; trials; stop, go on."""

import re
from typing import Any

import pytest

pytestmark = pytest.mark.xdist_group("browser")
PATIENCE = 600_000


def to_map(page: Any) -> None:
    """From the first page to the map of the demo survey."""
    page.set_default_timeout(PATIENCE)
    page.click("text=Open the demo survey")
    page.wait_for_selector("table.columns")
    page.goto(page.url.rstrip("/") + "/balance")
    page.click("text=Try them")
    page.wait_for_selector(".risk-map .handles .handle")


def said(page: Any, words: str, inside: str = "#answer") -> None:
    page.locator(inside, has_text=words).first.wait_for()


def test_from_the_demo_to_a_kept_limit_and_two_trials(browser_page: Any) -> None:
    page = browser_page
    to_map(page)
    said(page, "23 of 32 trials inside the limits")
    assert (
        page.locator(".risk-map .best_marks path").count() + page.locator(".risk-map .tried_marks path").count() == 32
    )

    grip = page.locator(".handle.risk .grip").bounding_box()
    page.mouse.move(grip["x"] + 6, grip["y"] + 9)
    page.mouse.down()
    page.mouse.move(grip["x"] + 6, grip["y"] - 60, steps=6)
    page.mouse.up()
    said(page, "salary grouped into intervals of 2", "#steps")
    dragged = float(page.locator("#bound-0").input_value())
    assert 3 < dragged < 7
    line = page.locator(".risk-map .risk_bound_0_marks line").bounding_box()
    reach = page.locator(".handle.risk .grip").bounding_box()
    assert abs(line["y"] - (reach["y"] + reach["height"] / 2)) < 3

    page.locator("#kept").get_by_text("Put them back").click()
    said(page, "23 of 32")
    page.locator(".handle.risk").focus()
    page.keyboard.press("ArrowDown")
    page.locator("#kept", has_text="Keep these limits").wait_for()
    assert float(page.locator("#bound-0").input_value()) < 2

    page.fill("#bound-0", "0.5")
    said(page, "10 of 32 trials")
    page.locator("#kept").get_by_text("Keep these limits").click()
    page.locator("#setup", has_text=re.compile("Uniques below 0.5")).wait_for()
    page.locator(".steps", has_text="2 steps").wait_for()

    page.locator(".risk-map .tried_marks path").nth(4).hover()
    page.locator("#vg-tooltip-element.visible", has_text="at level").wait_for()
    page.locator(".risk-map .tried_marks path").nth(4).click()
    page.locator("#trial .overlays .overlay").first.wait_for()
    page.locator("#trial").get_by_text("Pin it to compare").click()
    page.locator("#trial .pin").wait_for()
    page.locator("details.numbers > summary").first.click()
    row = page.locator("table.trials button[data-open]").first
    row.focus()
    page.keyboard.press("Enter")
    page.locator("#trial", has_text="compared with the pinned one").wait_for()
    assert page.evaluate("document.activeElement.matches('[data-heading]')")


def test_candidates_by_form_stop_and_go_on(browser_page: Any) -> None:
    page = browser_page
    page.set_default_timeout(PATIENCE)
    page.click("text=Open the demo survey")
    page.wait_for_selector("table.columns")
    page.goto(page.url.rstrip("/") + "/balance")
    page.get_by_label("Remove the limit Revealing columns").click()
    page.locator("#setup", has_text="Revealing columns at most").wait_for(state="hidden")
    page.select_option("#new-mask", "rank_swap")
    page.locator("#mask-form").get_by_label("housing_cost").check()
    page.locator("#mask-form").get_by_label("window").fill("0.05, 0.1 , 0.2, 0.3")
    page.locator("#mask-form").get_by_text("Add it").click()
    page.locator("#setup .recipe", has_text="rank swap").wait_for()
    page.locator("#setup", has_text="changes values").wait_for()
    page.select_option("#new-measure", "interval")
    page.locator("#measure-form input[name=bound]").fill("95")
    page.locator("#measure-form").get_by_text("Add it").click()
    page.locator("#setup", has_text="Interval disclosure below 95").wait_for()
    page.get_by_label("every combination of the levels").uncheck()
    page.locator("#stage .number", has_text=re.compile("^4$")).wait_for()
    page.click("text=Try them")
    page.locator("#stage progress[value]").wait_for()
    page.locator("#stage").get_by_text("Stop", exact=True).click()
    page.locator("#stage :is(.large, .risk-map .handle)").first.wait_for()
    if page.get_by_text("Go on").count():
        page.get_by_text("Go on").click()
    page.wait_for_selector(".risk-map .handles .handle")
    said(page, "of 4 trials")
