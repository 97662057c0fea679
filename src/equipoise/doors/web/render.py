"""Render pages and parts of pages from templates; text is escaped everywhere."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from equipoise.doors.web.app_state import VERSION_HEADER, office_of
from equipoise.doors.web.full_paths import without_folders
from equipoise.files import upload_suffixes
from equipoise.ground.system import packaged
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
"""All pages: name, address, heading and subtitle."""
NOTICE_HEADERS = {"HX-Retarget": "#notice", "HX-Reswap": "innerHTML"}


@cache
def templates() -> Environment:
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(f"equipoise.doors.{door}") for door in ("web", "report")]),
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.globals.update(term=term, PAGES=PAGES, UPLOADS=",".join(upload_suffixes()))
    environment.filters.update(percent=percent, number=number, whole=whole)
    return environment


def page(request: Request, template: str, name: str, **facts: Any) -> HTMLResponse:
    """A whole page; `name` is its name in PAGES."""
    office = office_of(request)
    text = templates().get_template(template).render(
        facts, page=name, office=office, session=office.session, policy=office.policy, csrf=office.csrf
    )  # fmt: skip
    return HTMLResponse(text, headers={VERSION_HEADER: str(office.session.version)})


def part(request: Request, template: str, *, code: int = 200, **facts: Any) -> HTMLResponse:
    """A part of a page; after a change the browser also reloads the list of steps."""
    office = office_of(request)
    text = templates().get_template(template).render(facts, office=office, session=office.session, policy=office.policy)
    headers = {VERSION_HEADER: str(office.session.version)}
    if request.method == "POST" and code < 400:
        headers["HX-Trigger"] = "stepped"
    return HTMLResponse(text, code, headers)


def again(request: Request, address: str = "") -> HTMLResponse:
    """Make the browser load the page again, or another one."""
    header = {"HX-Redirect": address} if address else {"HX-Refresh": "true"}
    return HTMLResponse("", headers={**header, VERSION_HEADER: str(office_of(request).session.version)})


def notice(request: Request, words: str, *, status: int = 422, problems: tuple[Any, ...] = ()) -> HTMLResponse:
    """An error in one sentence: beside the page for a part, on a page of its own otherwise."""
    facts: Mapping[str, Any] = {
        "words": words,
        "problems": [without_folders(str(problem)) for problem in problems],
        "status": status,
    }
    if "hx-request" in request.headers:
        response = part(request, "notice.html", code=status, **facts)
        response.headers.update(NOTICE_HEADERS)
        return response
    response = page(request, "problem.html", "", **facts)
    response.status_code = status
    return response


def term(word: str, text: str | None = None) -> Markup:
    """A term with its definition on hover and for screen readers."""
    meaning = packaged("doors/web/glossary.toml")[word.lower()]
    return Markup('<span class="term" tabindex="0" data-means="{}">{}</span>').format(meaning, escape(text or word))


def whole(value: float | None) -> str:
    """A count with thousands separators.

    >>> whole(1234567), whole(None)
    ('1,234,567', '–')
    """
    return "–" if value is None else f"{value:,.0f}"
