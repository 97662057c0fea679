"""Reports as self-contained HTML pages."""

import base64
import hashlib
from collections.abc import Iterable
from importlib.resources import files

from equipoise.doors.report.method_notes import methods
from equipoise.doors.report.page_parts import Facts, page_facts
from equipoise.doors.report.publication_page import publish_facts
from equipoise.doors.report.refusal_page import refused_facts
from equipoise.doors.report.report_sections import attack_facts, internal_facts, public_facts
from equipoise.doors.report.table_page import table_facts
from equipoise.inspection.assess import Assessment
from equipoise.intrusion.attack import Attack
from equipoise.presentation.notebook import assessment_html
from equipoise.publishing.publish import Published
from equipoise.releases.refusal import Refused
from equipoise.releases.report_facts import Report
from equipoise.releases.tabulated import Tabulated

PACKAGE = "equipoise.doors.report"
TABLE_SCRIPT = "templates/table.js"
SCRIPTS = ("assets/vega.min.js", "assets/vega-lite.min.js", "assets/vega-embed.min.js", "templates/page.js")


def render(report: Report, public: bool) -> str:
    """The report of a release as one self-contained page, internal or public.

    The facts of the public page hold only what it shows.
    """
    facts = public_facts(report) if public else internal_facts(report)
    return _page("public.html" if public else "internal.html", facts, public)


def render_refused(refusal: Refused) -> str:
    """The internal report of a refusal."""
    return _page("refused.html", refused_facts(refusal), False)


def render_attack(attack: Attack, released: str, against: str) -> str:
    """The report of an attack; `released` and `against` are the names of the two files."""
    return _page("attack.html", attack_facts(attack, released, against), False)


def render_assessment(assessment: Assessment, source: str, *assumed: str) -> str:
    """The report of a file as it is; `assumed` are sentences about what the reader must check first."""
    parts = {"assumed": assumed, "card": assessment_html(assessment), "charts": {}}
    notes = methods(score.name for score in assessment.scores)
    return _page("assessment.html", {**page_facts(f"Assessment of {source}"), **parts, "methods": notes}, False)


def render_publish(published: Published, source: str) -> str:
    """The report of a decision to publish or suppress; `source` is the name of the file."""
    return _page("publish.html", publish_facts(published, source), False)


def render_table(
    tabulated: Tabulated, source: str, *, public: bool, title: str | None = None, signed: bool = False
) -> str:
    """The report of a protected table, internal or public; `source` is the name of the file."""
    facts = table_facts(tabulated, source, public) | {"signed": signed}
    return _page("table.html", facts | ({"title": title} if title else {}), public)


def _page(template: str, facts: Facts, public: bool) -> str:
    """A page from a template; text is escaped, and the content security policy allows only its own scripts."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    pages = Environment(
        loader=PackageLoader(PACKAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    scripts, table = [_text(path) for path in SCRIPTS], _text(TABLE_SCRIPT) if template == "table.html" else ""
    return pages.get_template(template).render(
        facts,
        public=public,
        style=Markup(_text("templates/page.css")),
        scripts=[Markup(script) for script in scripts],
        table_script=Markup(table),
        allowed=_hashes([*scripts, *([table] if table else [])]),
    )


def _text(path: str) -> str:
    return files(PACKAGE).joinpath(path).read_text(encoding="utf-8")


def _hashes(scripts: Iterable[str]) -> str:
    """The hashes of the scripts as a content security policy lists them."""
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
