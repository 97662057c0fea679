"""Reports as self-contained HTML pages."""

import base64
import hashlib
from collections.abc import Iterable
from importlib.resources import files

from equipoise.doors.report.publication_page import publish_facts
from equipoise.doors.report.refusal_page import refused_facts
from equipoise.doors.report.report_sections import Facts, attack_facts, internal_facts, public_facts
from equipoise.doors.report.table_page import table_facts
from equipoise.intrusion.attack import Attack
from equipoise.publishing.publish import Published
from equipoise.releases.refusal import Refused
from equipoise.releases.report_facts import Report
from equipoise.releases.tabulated import Tabulated

HOME = "equipoise.doors.report"
SCRIPTS = ("assets/vega.min.js", "assets/vega-lite.min.js", "assets/vega-embed.min.js", "templates/page.js")


def render(report: Report, public: bool) -> str:
    """A page with everything in it, for the officer or for the public.

    The public page is made from facts that hold nothing else than what it shows.
    """
    told = public_facts(report) if public else internal_facts(report)
    return _page("public.html" if public else "internal.html", told, public)


def render_refused(found: Refused) -> str:
    """A page about what a policy did not let out, for the officer."""
    return _page("refused.html", refused_facts(found), False)


def render_attack(found: Attack, released: str, against: str) -> str:
    """A page about what intruders could do with a file; `released` and `against` are the names of the two files."""
    return _page("attack.html", attack_facts(found, released, against), False)


def render_publish(found: Published, source: str) -> str:
    """A page about which cells to publish; `source` is the name of the file."""
    return _page("publish.html", publish_facts(found, source), False)


def render_table(found: Tabulated, source: str, *, public: bool, title: str | None = None) -> str:
    """A page about a protected table, for the officer or for the public; `source` is the name of the file."""
    told = table_facts(found, source, public)
    return _page("table.html", told | ({"title": title} if title else {}), public)


def _page(template: str, told: Facts, public: bool) -> str:
    """Text is escaped everywhere, and the page's own policy lets it run only its own scripts and fetch nothing."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    pages = Environment(
        loader=PackageLoader(HOME), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    scripts = [_text(path) for path in SCRIPTS]
    return pages.get_template(template).render(
        told,
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
