"""Publish page: the trade-off curve of risk and loss, and the cells published or suppressed at a point."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import FileResponse, HTMLResponse, Response

from equipoise.doors.web.app_state import Here, Office
from equipoise.doors.web.background_runs import Run
from equipoise.doors.web.pages import open_file
from equipoise.doors.web.render import again, page, part
from equipoise.doors.web.work import publish as work
from equipoise.doors.web.workspace import digest, free
from equipoise.ground.errors import DataError
from equipoise.presentation.numbers import percent

router = APIRouter()
RUN = "decision"
Name = Annotated[str, Form(max_length=1000)]
Names = Annotated[list[Annotated[str, Form(max_length=1000)]], Form(max_length=work.MOST_COLUMNS, default_factory=list)]
Word = Annotated[str, Form(max_length=200)]
File = Literal["decision.csv", "decision.json", "report.html"]
ListingQuery = Annotated[work.Shown, Query()]


@router.get("/publish", response_class=HTMLResponse)
def show(request: Request, office: Here) -> HTMLResponse:
    """The page: the curve, the chosen point and the cells."""
    facts = _facts(office) if office.opened else {"found": None}
    return page(request, "publish.html", "publish", **facts)


@router.post("/publish/demo", response_class=HTMLResponse)
def open_demo(request: Request, office: Here) -> HTMLResponse:
    """Open the demo survey and return to this page."""
    open_file.open_demo(request, office)
    return again(request, "/publish")


@router.get("/publish/point", response_class=HTMLResponse)
def point(
    request: Request,
    office: Here,
    risk: Annotated[float, Query(ge=0, le=1)],
    shown: ListingQuery = "line",
) -> HTMLResponse:
    """The cells and totals at a point of the curve; nothing is saved."""
    settings = office.session.draft["publish"]
    at = office.ask(work.point, settings, risk, shown)
    return part(request, "publish_point.html", at=at, settings=settings, kept=settings.get("risk"))


@router.post("/publish/keep", response_class=HTMLResponse)
def keep(
    request: Request,
    office: Here,
    risk: Annotated[float, Form(ge=0, le=1)],
    shown: Annotated[work.Shown, Form()] = "line",
) -> HTMLResponse:
    """Save a point of the curve as the decision."""
    settings = {**_settings(office), "risk": risk}
    words = f"Publish or suppress: {percent(risk)} of the risk is left"
    return _edit(request, office, words.replace("\xa0", " "), settings, shown)


@router.post("/publish/columns", response_class=HTMLResponse)
def columns(
    request: Request,
    office: Here,
    domain: Names,
    target: Names,
    domain_level: Names,
    target_level: Names,
    nonpublication: Name = "y",
    population: Name = "",
) -> HTMLResponse:
    """Change the columns, their levels, or the loss of nonpublication."""
    levels = [*zip(domain, domain_level, strict=False), *zip(target, target_level, strict=False)]
    choices = {"domain": domain, "target": target, "levels": levels}
    choices |= {"nonpublication": nonpublication, "population": population}
    settings = office.ask(work.with_columns, office.session.draft["publish"], choices)
    words = f"Cells: {', '.join((*settings['target'], *settings['domain'])) or 'as they are'}"
    return _edit(request, office, words, settings)


@router.post("/publish/loss", response_class=HTMLResponse)
def loss(request: Request, office: Here, name: Word) -> HTMLResponse:
    """Change the loss of disclosure."""
    settings = work.with_loss(_settings(office), name)
    return _edit(request, office, f"Loss of disclosure: {work.TITLES[name].lower()}", settings)


@router.post("/publish/loss/set", response_class=HTMLResponse)
def set_loss(request: Request, office: Here, field: Word, value: Word = "") -> HTMLResponse:
    """Change a parameter of the loss."""
    settings = work.with_field(_settings(office), field, value)
    return _edit(request, office, f"Loss of disclosure: {field} = {value.strip()}", settings)


@router.post("/publish/write", response_class=HTMLResponse)
def write(request: Request, office: Here) -> HTMLResponse:
    """Write the decision with its report into a new folder of the working folder."""
    settings = _settings(office)
    out = free(office.workspace.folder / f"{office.data_name}-decision")
    about = {"digest": _digest(office, settings), "folder": out.name}
    office.runs.start(RUN, work.decide, office.workspace.folder, dict(office.policy), settings, out, about=about)
    return part(request, "publish_files.html", **_files_facts(office, settings))


@router.get("/publish/written", response_class=HTMLResponse)
def files(request: Request, office: Here) -> HTMLResponse:
    """The progress of writing the files."""
    return part(request, "publish_files.html", **_files_facts(office, _settings(office)))


@router.post("/publish/stop", response_class=HTMLResponse)
def stop(request: Request, office: Here) -> HTMLResponse:
    """Stop writing the files."""
    office.need_file()
    office.runs.stop_latest(RUN)
    return part(request, "publish_files.html", **_files_facts(office, _settings(office)))


@router.get("/publish/file/{name}")
def file(office: Here, name: File) -> Response:
    """Download a file of the decision written last."""
    office.need_file()
    run = office.runs.latest(RUN)
    place = office.workspace.folder / run.about["folder"] / name if run and run.state == "done" else None
    if place is None or not place.is_file():
        raise DataError("The decision is not written yet, or was moved.")
    return FileResponse(place, filename=name, headers={"Cache-Control": "no-store"})


def _settings(office: Office) -> dict[str, Any]:
    return office.ask(work.settled, office.session.draft["publish"])


def _edit(
    request: Request, office: Office, words: str, settings: Mapping[str, Any], listing: work.Shown = "line"
) -> HTMLResponse:
    office.edit(request, words, "publish", lambda draft: {**draft, "publish": settings})
    return part(request, "publish_body.html", **_facts(office, listing))


def _facts(office: Office, listing: work.Shown = "line") -> dict[str, Any]:
    view = office.ask(work.view, office.session.draft["publish"], None, listing)
    settings = view["settings"]
    return {
        "found": view, "at": view.get("at"), "kept": office.session.draft["publish"].get("risk"),
        "loss": work.loss_form(settings), "LOSSES": {name: work.TITLES[name] for name in work.LOSSES},
        "SILENCES": work.SILENCES, "slots": range(work.MOST_COLUMNS), **_files_facts(office, settings),
    }  # fmt: skip


def _files_facts(office: Office, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The run that wrote the decision, if it used these settings."""
    run: Run | None = office.runs.latest(RUN)
    current = run is not None and run.about["digest"] == _digest(office, settings)
    return {"run": run if current else None, "settings": settings}


def _digest(office: Office, settings: Mapping[str, Any]) -> str:
    return digest([settings, office.policy["data"], office.policy.get("roles", {})])
