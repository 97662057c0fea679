"""The whole way in a real browser: from the demo survey to a verified release, with the mouse and without."""

import re
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import equipoise as eq

pytestmark = pytest.mark.xdist_group("browser")
LONG = 600_000


def button(page: Any, name: str) -> Any:
    return page.get_by_role("button", name=name, exact=True)


def opened(page: Any, server: Any) -> None:
    button(page, "Open the demo survey").click()
    page.wait_for_selector("table.columns", timeout=LONG)


def test_from_the_demo_survey_to_a_verified_release(browser_page: Any, server: Any, tmp_path: Path) -> None:
    page = browser_page
    opened(page, server)
    page.get_by_role("link", name="Next: understand the risk").click()
    page.get_by_role("link", name=re.compile("^Next: shape")).click()
    page.get_by_role("link", name=re.compile("^Next: balance")).click()
    button(page, "Try them").click()
    page.wait_for_selector(".risk-map[data-drawn=yes]", timeout=LONG)
    page.get_by_role("link", name=re.compile("^Next: release")).click()
    button(page, "Release").click()
    button(page, "Verify it").click(timeout=LONG)
    page.wait_for_selector("text=Verify again", timeout=LONG)
    assert page.get_by_text("✓ Verified").count() == 1
    folder = tmp_path / "survey-release"
    assert eq.verify(folder).outcome == "verified"
    report = page.frame_locator("iframe.report")
    assert "Housing survey" in report.locator("h1").inner_text(timeout=LONG)
    with page.expect_download() as taken:
        page.get_by_role("link", name="Download the public part").click()
    assert taken.value.suggested_filename == "survey-release-public.zip"


def test_a_bad_file_is_told_beside_the_page(browser_page: Any, tmp_path: Path) -> None:
    bad = tmp_path / "CANARY.parquet"
    bad.write_bytes(b"CANARY-4711")
    browser_page.set_input_files("#upload", bad)
    button(browser_page, "Copy and open").click()
    words = browser_page.locator("#notice .notice p").inner_text()
    assert "CANARY-4711" not in words
    assert words.endswith(".")
    browser_page.get_by_label("Close this message").click()
    assert browser_page.locator("#notice .notice").count() == 0


def test_undo_and_redo(browser_page: Any, server: Any) -> None:
    opened(browser_page, server)
    role = browser_page.get_by_label("Role of tenure")
    role.select_option("key")
    browser_page.wait_for_selector("text=2 steps")
    button(browser_page, "↶ Undo").click()
    browser_page.wait_for_selector("text=1 step")
    assert browser_page.get_by_label("Role of tenure").input_value() == "none"
    button(browser_page, "↷ Redo").click()
    browser_page.wait_for_selector("text=2 steps")
    assert browser_page.get_by_label("Role of tenure").input_value() == "key"


def test_two_windows_at_once(browser_page: Any, server: Any) -> None:
    """The second window sees what the first did when it is loaded again, and cannot undo it unseen."""
    opened(browser_page, server)
    other = browser_page.context.new_page()
    other.goto(server.home)
    browser_page.get_by_label("Role of tenure").select_option("key")
    browser_page.wait_for_selector("text=2 steps")
    other.get_by_label("Role of marital").select_option("key")
    other.wait_for_selector("text=another window")
    other.get_by_role("link", name="Load the page again").click()
    other.wait_for_selector("text=2 steps")
    assert other.get_by_label("Role of tenure").input_value() == "key"
    assert other.get_by_label("Role of marital").input_value() == "none"


def test_stopped_and_gone_on(chromium: Any, serve: Any, tmp_path: Path) -> None:
    """A run that is stopped keeps what it has tried; after a restart of the workbench it goes on, to a refusal."""
    work = eq.demo.write(tmp_path / "work").parent
    slow = (work / "survey.toml").read_text(encoding="utf-8").replace("coarsenings = true", PIPELINE)
    (work / "survey.toml").write_text(
        slow.replace("[limits]", '[limits]\nvalue_disclosure = "< 0.99"'), encoding="utf-8"
    )
    running = serve(work, str(work / "survey.toml"))
    page = chromium.new_page()
    page.set_default_timeout(LONG)
    page.goto(running.address)
    page.goto(f"{running.home}/balance")
    button(page, "Try them").click()
    while int(page.locator("progress").get_attribute("value") or 0) < 2:
        page.wait_for_timeout(100)
    button(page, "Stop").click()
    page.wait_for_selector("h1:has-text('Stopped')", timeout=LONG)
    kept = page.locator("p.balance").inner_text()
    assert int(re.findall(r"\d+", kept)[0]) >= 2
    running.process.kill()
    running.process.wait(120)
    again = serve(work, str(work / "survey.toml"))
    page.goto(again.address)
    page.goto(f"{again.home}/balance")
    button(page, "Go on").click()
    page.wait_for_selector("text=Next: the report of the refusal", timeout=LONG)
    page.close()


PIPELINE = """masks = [
    { use = "recode", column = "age", level = ["5", "10"] },
    { use = "noise", columns = ["housing_cost"], scale = [0.1, 0.2] },
]"""


def test_with_the_keyboard_alone(browser_page: Any, server: Any, full: Any) -> None:
    """The first link skips to the page; everything is reached by Tab and set by the keyboard; in full, to a release."""
    page = browser_page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Open the demo survey":
            break
    page.keyboard.press("Enter")
    page.wait_for_selector("table.columns", timeout=LONG)
    page.get_by_label("Role of tenure").focus()
    page.keyboard.press("k")
    page.wait_for_selector("text=2 steps")
    assert page.get_by_label("Role of tenure").input_value() == "key"
    page.locator("nav a[href='/balance']").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"{server.home}/balance")
    button(page, "Try them").focus()
    if full(False, True):
        page.keyboard.press("Enter")
        page.wait_for_selector(".risk-map[data-drawn=yes]", timeout=LONG)
    page.locator("nav a[href='/release']").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"{server.home}/release")
    button(page, "Release").focus()
    assert page.evaluate("document.activeElement.textContent").strip() == "Release"
    if full(False, True):
        page.keyboard.press("Enter")
        page.wait_for_selector(".badge", timeout=LONG)


def test_every_page_fits_and_can_be_read(chromium: Any, serve: Any, little: Path, tmp_path: Path) -> None:
    """No page is wider than the window, every control has a name, and text stands out from its ground."""
    for file in little.iterdir():
        shutil.copyfile(file, tmp_path / file.name)
    running = serve(tmp_path, str(tmp_path / "survey.toml"))
    context = chromium.new_context()
    page = context.new_page()
    page.set_default_timeout(LONG)
    page.goto(running.address)
    for path in ("/", "/understand", "/shape", "/balance", "/tables", "/publish", "/release"):
        for width, scheme in ((1280, "light"), (1920, "dark"), (1280, "dark")):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)
            page.goto(running.home + path)
            page.wait_for_load_state("networkidle")
            assert page.evaluate(WIDE) == [], (path, width)
            assert page.evaluate(NAMELESS) == [], path
            assert page.evaluate(FAINT) == [], (path, scheme)
    context.close()


WIDE = """() => document.documentElement.scrollWidth <= window.innerWidth ? []
  : [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > window.innerWidth + 1)
    .map(e => e.outerHTML.slice(0, 120))"""
NAMELESS = """() => [...document.querySelectorAll('button, input:not([type=hidden]), select, textarea, a[href]')]
  .filter(e => e.checkVisibility() && !(e.innerText || e.ariaLabel || e.title || e.labels?.length
    || (e.value && e.type === 'submit') || e.getAttribute('aria-labelledby')))
  .map(e => e.outerHTML.slice(0, 200))"""
FAINT = """() => {
  const numbers = c => (c.match(/[\\d.]+/g) || []).map(Number);
  const linear = v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const light = c => c.slice(0, 3).reduce((s, v, i) => s + linear(v) * [.2126, .7152, .0722][i], 0);
  const ground = e => {
    for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor, n = numbers(c);
      if (c.startsWith('rgb') && (n.length < 4 || n[3] > .99)) return n;
    }
    return [255, 255, 255];
  };
  const own = e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
  const found = [];
  for (const e of document.querySelectorAll('main *, aside.side *')) {
    if (!e.checkVisibility() || e.closest('svg, [disabled], .later') || !own(e)) continue;
    const c = getComputedStyle(e);
    if (!c.color.startsWith('rgb') || +c.opacity < 1) continue;
    const [a, b] = [light(numbers(c.color)), light(ground(e))].sort((x, y) => y - x);
    const contrast = (a + .05) / (b + .05);
    if (contrast < 4.5) found.push([e.tagName, e.className, e.textContent.slice(0, 40), contrast.toFixed(2)]);
  }
  return found;
}"""


def test_a_canary_is_in_no_log_and_no_page(serve: Any, chromium: Any, tmp_path: Path) -> None:
    """What the server prints, and what pages show unasked, holds no value of a record."""
    many = 400
    frame = pl.DataFrame(
        {
            "sex": ["f", "m"] * (many // 2), "age": [20 + i % 60 for i in range(many)],
            "note": [f"CANARY-{i}" for i in range(many)], "income": [1000.0 + 7919 * i % 5000 for i in range(many)],
        }
    )  # fmt: skip
    frame.write_csv(tmp_path / "people.csv")
    running = serve(tmp_path, str(tmp_path / "people.csv"))
    page = chromium.new_page()
    page.set_default_timeout(LONG)
    page.goto(running.address)
    for path in ("/", "/understand", "/shape", "/balance", "/tables", "/publish", "/release", "/nowhere"):
        page.goto(running.home + path)
        page.wait_for_load_state("networkidle")
        assert "CANARY-" not in page.content(), path
    page.close()
    running.process.terminate()
    said, _ = running.process.communicate(timeout=120)
    assert said is None or "CANARY" not in said
