"""The docs site: it builds strictly, reads offline, has every public name, and its links lead somewhere."""

import importlib.util
import re
import subprocess
import sys
from dataclasses import fields
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import equipoise as eq
from equipoise.data.branches import BRANCHES
from equipoise.data.roles import Roles
from equipoise.doors.cli.command import command
from equipoise.files import KNOWN
from equipoise.policies import policy_file, sections

pytest.importorskip("properdocs", reason="The docs were not built: the package 'properdocs' is not installed.")
pytestmark = pytest.mark.xdist_group("docs")
ROOT = Path(__file__).parents[1]
METHODS = [family for family in eq.FAMILIES if family != "demo"]
LOADED = {
    "script": "src",
    "link": "href",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
}


class Page(HTMLParser):
    """What a page links to, what it loads, and where links may lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found["href"]] if tag == "a" and "href" in found else []
        self.loads += [found[LOADED[tag]]] if tag in LOADED and LOADED[tag] in found else []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it."""
    out = tmp_path_factory.mktemp("site").resolve()
    build = [sys.executable, "-m", "properdocs", "build", "--strict", "--config-file", "properdocs.yml", "--site-dir"]
    done = subprocess.run([*build, str(out)], cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "WARNING" not in done.stderr
    return out


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    found = sorted(site.rglob("*.html"))
    return {path.relative_to(site).as_posix(): Page(path.read_text(encoding="utf-8")) for path in found}


def test_every_link_and_anchor_leads_somewhere(site: Path, pages: dict[str, Page]) -> None:
    assert len(pages) >= 24
    lost = []
    for name, page in pages.items():
        for link in page.links:
            if re.match(r"https?:|mailto:", link):
                continue
            path, _, anchor = unquote(link).partition("#")
            target = (site / name).parent.joinpath(path).resolve() if path else site / name
            known = pages.get(target.relative_to(site).as_posix()) if target.is_relative_to(site) else None
            if known is None or (anchor and anchor not in known.ids):
                lost.append(f"{name}: {link}")
    assert lost == []


def test_an_anchor_stands_once_on_a_page(pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        assert len(page.ids) == len(set(page.ids)), name


def test_nothing_comes_from_the_network(site: Path, pages: dict[str, Page]) -> None:
    """Scripts, styles, fonts and pictures are files beside the pages; links to papers may lead outside."""
    for name, page in pages.items():
        beside = [source for source in page.loads if source != "data:,"]
        assert [source for source in beside if not (site / name).parent.joinpath(source).is_file()] == [], name
    for path in [*site.rglob("*.css"), *site.rglob("*.js")]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"@import|@font-face|url\(|fetch\(|XMLHttpRequest|importScripts", text), path.name


def test_the_reference_has_every_public_name(site: Path, pages: dict[str, Page]) -> None:
    """Every method of every family, every name of the front door."""
    listed = (site / "reference/methods.html").read_text(encoding="utf-8")
    for family in METHODS:
        page = pages[f"reference/{family}.html"]
        for name in getattr(eq, family).__all__:
            assert name in page.ids, f"{family}.{name}"
            assert f'href="{family}.html#{name}"' in listed, f"{family}.{name} is not in the table"
    door = pages["reference/front-door.html"]
    assert [name for name in eq.__all__ if name not in eq.FAMILIES and name not in door.ids] == []


@pytest.mark.parametrize("family", ["attacks", "masks", "risk", "rules", "utility"])
def test_a_method_says_where_it_comes_from_and_what_it_does_not_see(site: Path, family: str) -> None:
    parts = (site / f"reference/{family}.html").read_text(encoding="utf-8").split('<h2 id="')[1:]
    for part in parts:
        name = part.partition('"')[0]
        if isinstance(getattr(getattr(eq, family), name), type):
            assert "<dt>Source</dt>" in part, name
            assert "<dt>Misleads when</dt>" in part or "<dt>Does not guard against</dt>" in part, name
            assert "&gt;&gt;&gt;" in part, name


def test_markup_of_docstrings_is_rendered_not_shown(site: Path) -> None:
    """No raw backticks, asterisks of titles or underlines of sections are left in the text."""
    for path in (site / "reference").glob("*.html"):
        text = re.sub(r"<pre>.*?</pre>|<code>.*?</code>", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert "`" not in text, path.name
        assert "Parameters\n---" not in text, path.name
        assert not re.search(r"(?<![\w*])\*\w[^*<\n]{8,}\*", text), path.name


DOCSTRING = """Share of records with n_c <= k, as a*b and <tag>.

value = sum_i w_i^2 / n^(1/2), see `Known` and `other`:
- one, which
  goes on;
- two.
Source: Author (1999), *A title*. Misleads when few. Cost: O(n).

Parameters
----------
k
    How many,
    at most.

>>> 1 + 1
2
"""
MARKDOWN = """Share of records with n<sub>c</sub> ≤ k, as a\\*b and &lt;tag&gt;.

value = sum<sub>i</sub> w<sub>i</sub><sup>2</sup> / n<sup>1/2</sup>, see [`Known`](known.md) and `other`:

- one, which goes on;
- two.

`k`
:   How many, at most.

Source
:   Author (1999), *A title*.

Misleads when
:   few.

Cost
:   O(n).

```pycon
>>> 1 + 1
2
```"""


def test_a_docstring_as_markdown() -> None:
    """Lists, parameters, labels, formulas and examples; everything else is plain text."""
    spec = importlib.util.spec_from_file_location("docstrings", ROOT / "tools/docs/docstrings.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.page_part(DOCSTRING, {"Known": "known.md"}.get) == MARKDOWN
    assert module.source(DOCSTRING) == "Author (1999), *A title*."


def test_powers_and_indices_are_set(site: Path) -> None:
    noise = (site / "reference/masks.html").read_text(encoding="utf-8")
    assert "scale<sup>2</sup> s<sup>2</sup>" in noise
    assert "m<sub>i</sub>" in (site / "reference/attacks.html").read_text(encoding="utf-8")


def test_the_command_line_page_has_every_option(site: Path) -> None:
    text = (site / "reference/command-line.html").read_text(encoding="utf-8")
    for name, verb in command().commands.items():
        part = text.partition(f'<h2 id="{name}">')[2].partition("<h2 ")[0]
        options = [opt for param in verb.params for opt in param.opts if opt[0] == "-" and opt not in ("--help", "-h")]
        assert [option for option in options if not re.search(rf"<td><code>{option}[ <]", part)] == [], name


def test_the_formats_page_has_every_format(site: Path) -> None:
    text = (site / "reference/formats.html").read_text(encoding="utf-8")
    assert [name for name in KNOWN if f"<code>{name}</code>" not in text] == []


def test_the_policy_page_has_every_key() -> None:
    """A key of the policy format that nobody can read about does not exist."""
    text = (ROOT / "docs/guides/policy.md").read_text(encoding="utf-8")
    kinds = [
        policy_file.Job,
        policy_file.Data,
        policy_file.Choose,
        policy_file.Output,
        policy_file.Candidate,
        Roles,
        *BRANCHES.values(),
    ]
    kinds += [policy_file.Tabulation, sections.Intruder, sections.SearchSection, sections.LimitTable]
    keys = {f.name for kind in kinds for f in fields(kind) if f.init} - set(policy_file.INTERNAL_FIELDS)
    shown = set(re.findall(r"`\[*(\w+)\]*(?: = [^`]*)?`", text))
    assert keys - shown == set()
    assert set(BRANCHES) <= shown


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_browser_reads_and_searches_it_from_the_disk(site: Path, chromium: Any, width: int, scheme: str) -> None:
    """No request leaves the disk, no script fails, nothing is wider than the page, and search leads to a word."""
    asked: list[str] = []
    page = chromium.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.set_default_timeout(300_000)
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: asked.append(str(error)))
    for name in ("index", "guides/engineer", "reference/methods", "reference/command-line", "attacks"):
        page.goto((site / f"{name}.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    page.fill("#query", "secondary cell")
    page.press("#query", "Enter")
    page.wait_for_url("**/guides/officer.html#word-secondary-cell")
    assert page.locator("#word-secondary-cell").inner_text() == "Secondary cell"
    page.context.close()
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


def test_search_finds_offline(site: Path) -> None:
    """The index is a script that any page loads from the disk; every page is in it."""
    index = (site / "index.js").read_text(encoding="utf-8")
    assert index.startswith("const PARTS = [")
    for page in ("guides/officer.html#word-secondary-cell", "reference/masks.html#RankSwap", "decisions.html"):
        assert f'"url":"{page}' in index
