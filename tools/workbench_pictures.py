"""Make a picture of every page of the workbench: at 1280 and 1920 wide, and in the dark.

Run by `make pictures`; needs Chromium. Opens the demo survey, tries its candidates, releases and verifies it, as a user
does. The pictures go to dist/pictures; those that the README shows to docs/pictures as well.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
OUT = ROOT / "dist" / "pictures"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
LOOKS = {"1280": (1280, 900, "light"), "1920": (1920, 1080, "light"), "dark": (1280, 900, "dark")}
PAGES = ("understand", "shape?key=age", "balance", "tables", "publish", "release")
SHOWN = ("understand", "shape", "balance")
"""Pages whose first screen is in the README."""
SERVE = "import sys; from equipoise.doors.cli import main; sys.exit(main(sys.argv[1:]))"
LONG = 240_000


def start(folder: Path) -> tuple["subprocess.Popen[str]", str]:
    """The workbench in a process, and its address."""
    command = [sys.executable, "-c", SERVE, "open", "--no-browser", "--folder", str(folder)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    for line in running.stdout:
        if found := re.search(r"http://\S+", line):
            return running, found[0]
    raise SystemExit("the workbench did not start")


def walk(tab: Any, home: str) -> None:
    """From nothing to a verified release of the demo survey."""
    tab.get_by_role("button", name="Open the demo survey").click()
    tab.wait_for_selector("table.columns", timeout=LONG)
    tab.goto(f"{home}/balance")
    tab.get_by_role("button", name=re.compile("^Try ")).first.click()
    tab.wait_for_selector("[data-drawn=yes]", timeout=LONG)
    tab.goto(f"{home}/release")
    tab.get_by_role("button", name="Release", exact=True).click()
    tab.get_by_role("button", name="Verify it").click(timeout=LONG)
    tab.wait_for_selector("text=Verify again", timeout=LONG)


def shoot(browser: Any, state: Any, home: str) -> None:
    for look, (width, height, scheme) in LOOKS.items():
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, storage_state=state
        )
        tab = context.new_page()
        for page in ("", *PAGES):
            tab.goto(f"{home}/{page}")
            tab.wait_for_load_state("networkidle")
            tab.wait_for_timeout(700)
            name = page.partition("?")[0] or "open"
            tab.screenshot(path=OUT / f"{name}-{look}.png", full_page=True)
            if look == "1280" and name in SHOWN:
                tab.screenshot(path=ROOT / f"docs/pictures/workbench-{name}.png")
        context.close()


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        running, address = start(Path(folder))
        home = address.partition("/enter")[0]
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        try:
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            tab = context.new_page()
            tab.goto(address)
            tab.screenshot(path=OUT / "start-1280.png")
            walk(tab, home)
            shoot(browser, context.storage_state(), home)
        finally:
            browser.close()
            running.terminate()
            running.wait(20)
    print(f"pictures: {len(list(OUT.glob('*.png')))} in {OUT.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
