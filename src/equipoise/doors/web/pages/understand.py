"""Understand: what is at stake in the file, what is behind it, and what an intruder could do who knew this or that."""

from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse

from equipoise.doors.web.app_state import Here, Office
from equipoise.doors.web.background_runs import Run
from equipoise.doors.web.pages.open_file import ROLES
from equipoise.doors.web.render import page, part
from equipoise.doors.web.work import intruder_knowledge, understand
from equipoise.ground.errors import EquipoiseError

router = APIRouter()
NUMBERS = "numbers"
"""The kind of run that matches on numbers."""
WITHIN = 10.0
"""Percent to within which numbers are known, unless told."""
MOST = 100_000
Places = Annotated[list[Annotated[int, Query(ge=0, le=MOST)]], Query(max_length=5000, default_factory=list)]
Ticked = Annotated[list[Annotated[int, Form(ge=0, le=MOST)]], Form(max_length=5000, default_factory=list)]


@router.get("/understand", response_class=HTMLResponse)
def show(request: Request, office: Here) -> HTMLResponse:
    """The page; its parts are filled in as they are counted."""
    keys = office.policy.get("roles", {}).get("keys", [])
    return page(request, "understand.html", "understand", keyed=bool(keys))


@router.get("/understand/risk", response_class=HTMLResponse)
def risk(request: Request, office: Here) -> HTMLResponse:
    """Risk at a glance, and the sizes of classes."""
    return _counted(request, office, "understand_risk.html", understand.glance)


@router.get("/understand/keys", response_class=HTMLResponse)
def keys(request: Request, office: Here) -> HTMLResponse:
    """What each key contributes."""
    return _counted(request, office, "understand_keys.html", understand.keys)


@router.get("/understand/combinations", response_class=HTMLResponse)
def combinations(request: Request, office: Here) -> HTMLResponse:
    """The combinations of keys that tell most."""
    return _counted(request, office, "understand_combinations.html", intruder_knowledge.combinations)


@router.get("/understand/records", response_class=HTMLResponse)
def records(request: Request, office: Here, values: bool = False) -> HTMLResponse:
    """The records most at risk: by id alone, with their values only when asked for."""
    return _counted(request, office, "understand_records.html", understand.riskiest_records, values)


@router.get("/understand/columns", response_class=HTMLResponse)
def columns(request: Request, office: Here) -> HTMLResponse:
    """Every column that an intruder could know, to be ticked."""
    run = _latest(office)
    within, rough = (run.about["within"], run.about["numbers"]) if run else (WITHIN, [])
    facts = {"run": run, "roles": ROLES, "within": within, "rough": rough}
    return _counted(request, office, "understand_columns.html", intruder_knowledge.offered, **facts)


@router.get("/understand/knows", response_class=HTMLResponse)
def knows(request: Request, office: Here, known: Places) -> HTMLResponse:
    """How somebody fares who knows the ticked columns, told by their places in the file."""
    return part(request, "understand_answer.html", answer=office.ask(intruder_knowledge.knows, known))


@router.post("/understand/numbers", response_class=HTMLResponse)
def start(
    request: Request,
    office: Here,
    known: Ticked,
    rough: Ticked,
    within: Annotated[float, Form(ge=0, le=100, allow_inf_nan=False)] = WITHIN,
) -> HTMLResponse:
    """Begin to match on numbers that are known to within some percent."""
    asked = office.ask(intruder_knowledge.check_numbers, known, rough)
    policy = office.need_file()
    office.runs.start(
        NUMBERS, intruder_knowledge.match_numbers, office.workspace.folder, policy, asked["exact"], asked["numbers"],
        within / 100, about={**asked, "within": within, "path": policy["data"]["path"]},
    )  # fmt: skip
    return _state(request, office)


@router.get("/understand/numbers", response_class=HTMLResponse)
def state(request: Request, office: Here) -> HTMLResponse:
    """How far the matching is, or what came of it."""
    return _state(request, office)


@router.post("/understand/numbers/stop", response_class=HTMLResponse)
def stop(request: Request, office: Here) -> HTMLResponse:
    """Stop the matching."""
    run = _latest(office)
    if run is not None:
        office.runs.stop(run.id)
    return _state(request, office)


def _state(request: Request, office: Office) -> HTMLResponse:
    return part(request, "understand_numbers.html", run=_latest(office))


def _latest(office: Office) -> Run | None:
    """The last matching on numbers of the open file."""
    run = office.runs.latest(NUMBERS)
    path = office.policy.get("data", {}).get("path")
    return run if run is not None and isinstance(run.about, dict) and run.about.get("path") == path else None


def _counted(request: Request, office: Office, template: str, question: Any, *given: Any, **facts: Any) -> HTMLResponse:
    """A part from what was counted; why not, in its place, where a file does not lend itself to it."""
    office.need_file()
    try:
        found = office.ask(question, *given)
    except EquipoiseError as error:
        return part(request, "understand_unfit.html", words=str(error))
    return part(request, template, found=found, **facts)
