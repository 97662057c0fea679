"""Understand page: the risks of the file, their causes, and what an intruder with some knowledge could do."""

from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse

from equipoise.doors.web.app_state import Here, Office
from equipoise.doors.web.background_runs import Run
from equipoise.doors.web.pages.open_file import ROLE_TITLES
from equipoise.doors.web.render import page, part
from equipoise.doors.web.work import intruder_knowledge, revealing_columns, understand
from equipoise.ground.errors import EquipoiseError

router = APIRouter()
NUMBERS = "numbers"
"""Kind of the runs that match on numbers."""
DEFAULT_WITHIN_PERCENT = 10.0
"""Default precision in percent to which an intruder knows numbers."""
MAX_PLACE = 100_000
Places = Annotated[list[Annotated[int, Query(ge=0, le=MAX_PLACE)]], Query(max_length=5000, default_factory=list)]
TickedPlaces = Annotated[list[Annotated[int, Form(ge=0, le=MAX_PLACE)]], Form(max_length=5000, default_factory=list)]


@router.get("/understand", response_class=HTMLResponse)
def show(request: Request, office: Here) -> HTMLResponse:
    """The page; its parts are loaded when they are computed."""
    keys = office.policy.get("roles", {}).get("keys", [])
    return page(request, "understand.html", "understand", keyed=bool(keys))


@router.get("/understand/risk", response_class=HTMLResponse)
def risk(request: Request, office: Here) -> HTMLResponse:
    """Overview of the risks, and the sizes of classes."""
    return _section(request, office, "understand_risk.html", understand.overview)


@router.get("/understand/keys", response_class=HTMLResponse)
def keys(request: Request, office: Here) -> HTMLResponse:
    """The contribution of each key to the uniques."""
    return _section(request, office, "understand_keys.html", understand.keys)


@router.get("/understand/others", response_class=HTMLResponse)
def others(request: Request, office: Here) -> HTMLResponse:
    """The columns beside the keys that single people out."""
    return _section(request, office, "understand_others.html", revealing_columns.singled_out)


@router.get("/understand/combinations", response_class=HTMLResponse)
def combinations(request: Request, office: Here) -> HTMLResponse:
    """The most identifying combinations of keys."""
    return _section(request, office, "understand_combinations.html", intruder_knowledge.combinations)


@router.get("/understand/records", response_class=HTMLResponse)
def records(request: Request, office: Here, values: bool = False) -> HTMLResponse:
    """The records most at risk by id; with their values only on request."""
    return _section(request, office, "understand_records.html", understand.riskiest_records, values)


@router.get("/understand/columns", response_class=HTMLResponse)
def columns(request: Request, office: Here) -> HTMLResponse:
    """The columns that an intruder could know, to be ticked."""
    run = _latest(office)
    within, rough = (run.about["within"], run.about["numbers"]) if run else (DEFAULT_WITHIN_PERCENT, [])
    facts = {"run": run, "roles": ROLE_TITLES, "within": within, "rough": rough}
    return _section(request, office, "understand_columns.html", intruder_knowledge.offered, **facts)


@router.get("/understand/knows", response_class=HTMLResponse)
def knows(request: Request, office: Here, known: Places) -> HTMLResponse:
    """The success of an intruder who knows the ticked columns, given by their positions in the file."""
    return part(request, "understand_answer.html", answer=office.ask(intruder_knowledge.knows, known))


@router.post("/understand/numbers", response_class=HTMLResponse)
def start(
    request: Request,
    office: Here,
    known: TickedPlaces,
    rough: TickedPlaces,
    within: Annotated[float, Form(ge=0, le=100, allow_inf_nan=False)] = DEFAULT_WITHIN_PERCENT,
) -> HTMLResponse:
    """Start to match on numbers that are known to within some percent."""
    picks = office.ask(intruder_knowledge.check_numbers, known, rough)
    policy = office.need_file()
    office.runs.start(
        NUMBERS, intruder_knowledge.match_numbers, office.workspace.folder, policy, picks["exact"], picks["numbers"],
        within / 100, about={**picks, "within": within, "path": policy["data"]["path"]},
    )  # fmt: skip
    return state(request, office)


@router.get("/understand/numbers", response_class=HTMLResponse)
def state(request: Request, office: Here) -> HTMLResponse:
    """The progress of the matching, or its result."""
    return part(request, "understand_numbers.html", run=_latest(office))


@router.post("/understand/numbers/stop", response_class=HTMLResponse)
def stop(request: Request, office: Here) -> HTMLResponse:
    """Stop the matching."""
    if run := _latest(office):
        office.runs.stop(run.id)
    return state(request, office)


def _latest(office: Office) -> Run | None:
    """The latest run that matched on numbers of the open file."""
    run = office.runs.latest(NUMBERS)
    path = office.policy.get("data", {}).get("path")
    return run if run is not None and isinstance(run.about, dict) and run.about.get("path") == path else None


def _section(request: Request, office: Office, template: str, question: Any, *args: Any, **facts: Any) -> HTMLResponse:
    """A part of the page rendered from an answer, or the reason why there is none."""
    office.need_file()
    try:
        answer = office.ask(question, *args)
    except EquipoiseError as error:
        return part(request, "understand_unfit.html", words=str(error))
    return part(request, template, found=answer, **facts)
