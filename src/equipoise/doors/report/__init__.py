"""Reports as self-contained HTML pages."""

import base64
import hashlib
from collections.abc import Iterable
from importlib.resources import files

from equipoise.doors.report.facts import internal_facts, public_facts
from equipoise.flow.report import Report

HOME = "equipoise.doors.report"
SCRIPTS = ("assets/vega.min.js", "assets/vega-lite.min.js", "assets/vega-embed.min.js", "templates/page.js")


def render(report: Report, public: bool) -> str:
    """A page with everything in it, for the officer or for the public.

    Text is escaped everywhere, and the page's own policy lets it run only the scripts it was made with and fetch
    nothing. The public page is made from facts that hold nothing else than what it shows.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    pages = Environment(
        loader=PackageLoader(HOME), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    scripts = [_text(path) for path in SCRIPTS]
    return pages.get_template("public.html" if public else "internal.html").render(
        public_facts(report) if public else internal_facts(report),
        public=public,
        style=Markup(_text("templates/page.css")),
        scripts=[Markup(script) for script in scripts],
        allowed=_hashes(scripts),
    )


def _text(path: str) -> str:
    return files(HOME).joinpath(path).read_text(encoding="utf-8")


def _hashes(scripts: Iterable[str]) -> str:
    """The scripts as a content security policy names them."""
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
