"""Make the pictures of reports in the README again: the first screen of the demo's and of each walk of the gallery,
and a cell of a table.

Run by `make pictures`; needs Chromium, and takes a minute. The files are the demo's, the policies those of docs/walks.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import equipoise as eq
from equipoise.doors.cli import main

ROOT = Path(__file__).parents[1]
PRESETS = {"survey": [], "business": [], "hospital": ["--preset", "ema"]}
SIZE = {"width": 1280, "height": 900}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def walk(name: str, folder: Path) -> Path:
    """From the raw file to the report, by the commands of the gallery."""
    eq.demo.write(folder, name)
    shutil.copy(ROOT / f"docs/walks/{name}-walk.toml", folder)
    os.chdir(folder)
    init = ["init", f"{name}.parquet", "--out", "first.toml", *PRESETS[name]]
    for command in (init, ["balance", f"{name}-walk.toml", "--out", "release"], ["verify", "release"]):
        if main(command):
            sys.exit(f"{' '.join(command)} failed")
    return folder / "release/private/report.html"


def demo(folder: Path) -> Path:
    """The demo as it is."""
    made = eq.balance(eq.demo.write(folder), out=folder / "release")
    return Path(made.folder) / "private/report.html"


def table(folder: Path) -> Path:
    """The table of the demo's business survey, as `equipoise table` writes it."""
    eq.demo.write(folder, "business")
    os.chdir(folder)
    command = ["table", "business.parquet", "--by", "region,size_class", "--value", "turnover", "--holding", "holding"]
    if main([*command, "--hierarchy", "region=prefix:4,3", "--rule", "p-percent:10%", "--out", "table"]):
        sys.exit("equipoise table failed")
    return folder / "table/private/report.html"


def shoot(pages: dict[str, Path]) -> None:
    """The first screen of each page, on white."""
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        for name, page in pages.items():
            tab = browser.new_page(viewport=SIZE, color_scheme="light")
            tab.goto(page.as_uri())
            if name == "table":
                tab.locator("#h-table").evaluate("heading => heading.scrollIntoView()")
                tab.locator("td.sensitive a").first.click()
            else:
                tab.wait_for_selector("#map svg, #map canvas")
            tab.screenshot(path=ROOT / f"docs/pictures/{name}.png")
            tab.close()
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        reports = {f"walk-{name}": walk(name, Path(place) / name) for name in PRESETS}
        shoot({"report": demo(Path(place) / "demo"), "table": table(Path(place) / "table"), **reports})
        os.chdir(ROOT)
