"""Understanding in a real browser: parts fill in, a tick changes the answer, numbers are matched, values on request."""

from typing import Any

import pytest

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture
def shown(browser_page: Any) -> Any:
    """The page on the demo survey, all parts filled in."""
    browser_page.click("text=Open the demo survey")
    browser_page.wait_for_selector("table.columns", timeout=600_000)
    browser_page.click("text=Next: understand the risk")
    for place in (".stakes", "#knows", "table.keys", "table.sets", "table.people"):
        browser_page.wait_for_selector(place, timeout=600_000)
    return browser_page


def answer(page: Any, number: str) -> None:
    page.wait_for_function(
        "wanted => document.querySelector('#answer .number').textContent.replace(/\\s/g, ' ') === wanted", arg=number
    )


def test_ticks_values_and_numbers(shown: Any) -> None:
    ticks_change_the_answer(shown)
    values_are_shown_on_request(shown)
    numbers_run_with_progress_stop_and_are_kept(shown)


def ticks_change_the_answer(shown: Any) -> None:
    assert "18 % of the records are alone" in shown.locator(".balance").first.inner_text().replace("\xa0", " ")
    shown.wait_for_selector("[data-chart=sizes-spec][data-drawn=yes] svg")
    shown.wait_for_selector("[data-chart=sets-spec][data-drawn=yes] svg")
    answer(shown, "26 %")
    shown.get_by_role("checkbox", name="tenure").check()
    answer(shown, "33 %")
    shown.get_by_role("button", name="None").click()
    answer(shown, "0.0012 %")
    shown.get_by_role("checkbox", name="sex").focus()
    shown.keyboard.press("Space")
    answer(shown, "0.0025 %")
    shown.get_by_role("button", name="Tick these").nth(1).click()
    answer(shown, "16 %")


def values_are_shown_on_request(shown: Any) -> None:
    assert "Male" not in shown.locator("#main").inner_text()
    shown.get_by_role("button", name="Show their values").click()
    shown.wait_for_selector("text=for your eyes only")
    assert "Male" in shown.locator("#people").inner_text()
    shown.get_by_role("button", name="Hide the values again").click()
    shown.wait_for_selector("text=Show their values")
    assert "Male" not in shown.locator("#main").inner_text()


def numbers_run_with_progress_stop_and_are_kept(shown: Any) -> None:
    shown.locator("#rough").get_by_label("housing_cost").check()
    shown.get_by_role("button", name="Try matching on the numbers").click()
    shown.wait_for_selector("#numbers progress")
    shown.locator("#numbers").get_by_role("button", name="Stop").focus()
    shown.wait_for_function("() => document.querySelector('#numbers progress').value > 0")
    shown.keyboard.press("Enter")
    shown.wait_for_selector("text=nothing was found out", timeout=600_000)
    shown.locator("#within").fill("0")
    shown.get_by_role("button", name="Keys only").click()
    shown.get_by_role("button", name="Try matching on the numbers").click()
    shown.wait_for_selector(".outcome", timeout=600_000)
    assert "housing_cost to within 0 % and exactly sex, race, age, salary" in shown.locator(".outcome").inner_text()
    shown.reload()
    shown.wait_for_selector(".outcome")
    assert shown.locator("#within").input_value() == "0"
    assert shown.locator("#rough").get_by_label("housing_cost").is_checked()
