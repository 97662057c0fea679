"""Screen: pages and parts of pages, drawn from templates; text is escaped everywhere."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from equipoise.doors.web.app_state import VERSION, office_of
from equipoise.doors.web.glossary import GLOSSARY
from equipoise.files import upload_suffixes
from equipoise.presentation.numbers import number, percent

PAGES = (
    ("open", "/", "Open", "a file, and what its columns are"),
    ("understand", "/understand", "Understand", "what is at stake"),
    ("shape", "/shape", "Shape", "how coarse each key is"),
    ("balance", "/balance", "Balance", "risk against use"),
    ("tables", "/tables", "Tables", "cells and totals"),
    ("publish", "/publish", "Publish or suppress", "which cells to show"),
    ("release", "/release", "Release", "verdict, report, files"),
)
"""Every page: its name, its address, its heading and what it is about."""
NOTICE = {"HX-Retarget": "#notice", "HX-Reswap": "innerHTML"}


@cache
def templates() -> Environment:
    made = Environment(
        loader=PackageLoader("equipoise.doors.web"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    made.globals.update(term=term, PAGES=PAGES, UPLOADS=",".join(upload_suffixes()))
    made.filters.update(percent=percent, number=number, whole=whole)
    return made


def page(request: Request, template: str, name: str, **facts: Any) -> HTMLResponse:
    """A whole page; `name` is that of PAGES."""
    office = office_of(request)
    text = templates().get_template(template).render(
        facts, page=name, office=office, session=office.session, policy=office.policy, csrf=office.csrf
    )  # fmt: skip
    return HTMLResponse(text, headers={VERSION: str(office.session.version)})


def part(request: Request, template: str, *, code: int = 200, **facts: Any) -> HTMLResponse:
    """A part of a page; after a change the list of steps is drawn again."""
    office = office_of(request)
    text = templates().get_template(template).render(facts, office=office, session=office.session, policy=office.policy)
    headers = {VERSION: str(office.session.version)}
    if request.method == "POST" and code < 400:
        headers["HX-Trigger"] = "stepped"
    return HTMLResponse(text, code, headers)


def again(request: Request, address: str = "") -> HTMLResponse:
    """Have the browser load the page again, or another one."""
    header = {"HX-Redirect": address} if address else {"HX-Refresh": "true"}
    return HTMLResponse("", headers={**header, VERSION: str(office_of(request).session.version)})


def notice(request: Request, words: str, *, status: int = 422, problems: tuple[Any, ...] = ()) -> HTMLResponse:
    """Something that went wrong, in one sentence: beside the page for a part, on a page of its own otherwise."""
    facts: Mapping[str, Any] = {"words": words, "problems": [str(problem) for problem in problems], "status": status}
    if "hx-request" in request.headers:
        found = part(request, "notice.html", code=status, **facts)
        found.headers.update(NOTICE)
        return found
    found = page(request, "problem.html", "", **facts)
    found.status_code = status
    return found


def term(word: str, shown: str | None = None) -> Markup:
    """A word with its meaning on hover and for screen readers."""
    return Markup('<span class="term" tabindex="0" data-means="{}">{}</span>').format(
        GLOSSARY[word.lower()], escape(shown or word)
    )


def whole(value: float | None) -> str:
    """A number of records.

    >>> whole(1234567), whole(None)
    ('1,234,567', '–')
    """
    return "–" if value is None else f"{value:,.0f}"
