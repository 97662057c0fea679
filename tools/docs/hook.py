"""What the site builder calls: adds the generated pages, the style sheet and the search index.

The style sheet begins with the colours and fonts of the report, so that report and docs look alike. The index is a
script that sets a variable: a page read from the disk may load a script, not fetch a file.
"""

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import reference
from properdocs.structure.files import File
from pygments.formatters import HtmlFormatter

import doors

ROOT = Path(__file__).parents[2]
TOKENS = ROOT / "src/equipoise/doors/report/templates/page.css"
HEADING = re.compile(r'<h([1-3]) id="([^"]*)">(.*?)</h\1>', re.DOTALL)
WORD = re.compile(r"<dt>(.*?)</dt>\s*<dd>(.*?)</dd>", re.DOTALL)
SCROLL = '<div class="scroll" role="region" aria-label="Table" tabindex="0"><table>'
found: list[dict[str, str]] = []


def on_config(config: Any) -> Any:
    """No map of the site for machines: it has no address."""
    config.theme.static_templates.clear()
    return config


def on_files(files: Any, config: Any) -> Any:
    """Pages that are made from the package, and those that stand at the root of the repository."""
    made = reference.pages() | doors.pages()
    made |= {f"{name.lower()}.md": (ROOT / f"{name}.md").read_text("utf-8") for name in ("CHANGELOG", "CONTRIBUTING")}
    made["site.css"] = _style(Path(__file__).with_name("site.css"))
    for file in [file for file in files if file.src_uri == "sitemap.xml"]:
        files.remove(file)
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    found.clear()
    return files


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Tables scroll inside the page; every part of the page and every word of a guide goes into the index."""
    starts = [*HEADING.finditer(html)]
    ends = [*(match.start() for match in starts[1:]), len(html)]
    for match, end in zip(starts, ends, strict=True):
        _index(page, match[3], match[2], html[match.end() : end])
    if page.url.startswith("guides/"):
        html = WORD.sub(lambda match: _word(page, match), html)
    return html.replace("<table>", SCROLL).replace("</table>", "</table></div>")


def on_post_build(config: Any) -> None:
    """The index, beside the pages."""
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    (Path(config.site_dir) / "index.js").write_text(f"const PARTS = {text};\n", encoding="utf-8")


def _word(page: Any, match: re.Match[str]) -> str:
    """A word of a glossary, with a place to link to."""
    anchor = "word-" + re.sub(r"\W+", "-", _plain(match[1]).lower())
    _index(page, match[1], anchor, match[2])
    return match[0].replace("<dt>", f'<dt id="{anchor}">', 1)


def _index(page: Any, title: str, anchor: str, html: str) -> None:
    found.append(
        {"page": page.title, "title": _plain(title), "url": f"{page.url}#{anchor}", "text": _plain(html)[:2000]}
    )


def _plain(html: str) -> str:
    html = re.sub(r'<a class="headerlink".*?</a>', "", html)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def _style(own: Path) -> str:
    tokens, mark, _ = TOKENS.read_text("utf-8").partition("\n* {")
    if not mark or "--paper" not in tokens:
        raise ValueError(f"No colours at the head of {TOKENS.name}.")
    light, dark = (HtmlFormatter(style=style).get_style_defs(".code") for style in ("default", "github-dark"))
    kept = [re.sub(r"^\.code \{.*\}$", "", css, flags=re.MULTILINE) for css in (light, dark)]
    return f"{tokens}\n{own.read_text('utf-8')}\n{kept[0]}\n@media (prefers-color-scheme: dark) {{\n{kept[1]}\n}}\n"
