"""Publish or suppress: the trade-off curve with a point that moves, and the cells on both sides of the line."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import FileResponse, HTMLResponse, Response

from equipoise.doors.web.app_state import Here, Office
from equipoise.doors.web.background_runs import Run
from equipoise.doors.web.pages import open_file
from equipoise.doors.web.render import again, page, part
from equipoise.doors.web.work import publish as work
from equipoise.doors.web.workspace import free
from equipoise.ground.errors import DataError
from equipoise.presentation.numbers import percent

router = APIRouter()
RUN = "decision"
Name = Annotated[str, Form(max_length=1000)]
Names = Annotated[list[Annotated[str, Form(max_length=1000)]], Form(max_length=work.MOST_COLUMNS, default_factory=list)]
Word = Annotated[str, Form(max_length=200)]
File = Literal["decision.csv", "decision.json", "report.html"]
Around = Annotated[work.Shown, Query()]


@router.get("/publish", response_class=HTMLResponse)
def show(request: Request, office: Here) -> HTMLResponse:
    """The page: the curve, the point on it, and the cells."""
    facts = _facts(office) if office.opened else {"found": None}
    return page(request, "publish.html", "publish", **facts)


@router.post("/publish/demo", response_class=HTMLResponse)
def open_demo(request: Request, office: Here) -> HTMLResponse:
    """Open the demo survey and come back here."""
    open_file.open_demo(request, office)
    return again(request, "/publish")


@router.get("/publish/point", response_class=HTMLResponse)
def point(
    request: Request,
    office: Here,
    risk: Annotated[float, Query(ge=0, le=1)],
    shown: Around = "line",
) -> HTMLResponse:
    """The cells and totals at another point of the curve; nothing is kept yet."""
    office.need_file()
    given = office.session.draft["publish"]
    at = office.ask(work.point, given, risk, shown)
    return part(request, "publish_point.html", at=at, settings=given, kept=given.get("risk"))


@router.post("/publish/keep", response_class=HTMLResponse)
def keep(
    request: Request,
    office: Here,
    risk: Annotated[float, Form(ge=0, le=1)],
    shown: Annotated[work.Shown, Form()] = "line",
) -> HTMLResponse:
    """Keep a point of the curve as the decision."""
    settings = {**_settings(office), "risk": risk}
    words = f"Publish or suppress: {percent(risk)} of the risk is left"
    return _changed(request, office, words.replace("\xa0", " "), settings, shown)


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
    """Other areas or classes, or another loss of silence."""
    levels = [*zip(domain, domain_level, strict=False), *zip(target, target_level, strict=False)]
    asked = {"domain": domain, "target": target, "levels": levels}
    asked |= {"nonpublication": nonpublication, "population": population}
    made = office.ask(work.with_columns, office.session.draft["publish"], asked)
    words = f"Cells: {', '.join((*made['target'], *made['domain'])) or 'as they are'}"
    return _changed(request, office, words, made)


@router.post("/publish/loss", response_class=HTMLResponse)
def loss(request: Request, office: Here, name: Word) -> HTMLResponse:
    """Another loss of disclosure."""
    made = work.with_loss(_settings(office), name)
    return _changed(request, office, f"Loss of disclosure: {work.TITLES[name].lower()}", made)


@router.post("/publish/loss/set", response_class=HTMLResponse)
def set_loss(request: Request, office: Here, field: Word, value: Word = "") -> HTMLResponse:
    """Another value in a field of the loss."""
    made = work.with_field(_settings(office), field, value)
    return _changed(request, office, f"Loss of disclosure: {field} = {value.strip()}", made)


@router.post("/publish/write", response_class=HTMLResponse)
def write(request: Request, office: Here) -> HTMLResponse:
    """Write the decision with its report into the working folder, beside what is there."""
    settings = _settings(office)
    stem = Path(office.policy["data"]["path"]).name.partition(".")[0]
    out = free(office.workspace.folder / f"{stem}-decision")
    about = {"digest": _digest(office, settings), "folder": out.name}
    office.runs.start(RUN, work.decide, office.workspace.folder, dict(office.policy), settings, out, about=about)
    return part(request, "publish_files.html", **_files(office, settings))


@router.get("/publish/written", response_class=HTMLResponse)
def written(request: Request, office: Here) -> HTMLResponse:
    """How far the files are."""
    office.need_file()
    return part(request, "publish_files.html", **_files(office, _settings(office)))


@router.post("/publish/stop", response_class=HTMLResponse)
def stop(request: Request, office: Here) -> HTMLResponse:
    """Stop writing."""
    office.need_file()
    if found := office.runs.latest(RUN):
        office.runs.stop(found.id)
    return part(request, "publish_files.html", **_files(office, _settings(office)))


@router.get("/publish/file/{name}")
def file(office: Here, name: File) -> Response:
    """A file of the decision that was written last."""
    office.need_file()
    found = office.runs.latest(RUN)
    place = office.workspace.folder / found.about["folder"] / name if found and found.state == "done" else None
    if place is None or not place.is_file():
        raise DataError("The decision is not written yet, or was moved.")
    return FileResponse(place, filename=name, headers={"Cache-Control": "no-store"})


def _settings(office: Office) -> dict[str, Any]:
    found: dict[str, Any] = office.ask(work.settled, office.session.draft["publish"])
    return found


def _changed(
    request: Request, office: Office, words: str, made: Mapping[str, Any], shown: work.Shown = "line"
) -> HTMLResponse:
    office.edit(request, words, "publish", lambda draft: {**draft, "publish": made})
    return part(request, "publish_body.html", **_facts(office, shown))


def _facts(office: Office, shown: work.Shown = "line") -> dict[str, Any]:
    found = office.ask(work.seen, office.session.draft["publish"], None, shown)
    settings = found["settings"]
    return {
        "found": found, "at": found.get("at"), "kept": office.session.draft["publish"].get("risk"),
        "loss": work.loss_form(settings), "LOSSES": {name: work.TITLES[name] for name in work.LOSSES},
        "SILENCES": work.SILENCES, "slots": range(work.MOST_COLUMNS), **_files(office, settings),
    }  # fmt: skip


def _files(office: Office, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The run that wrote the decision, where it is about these settings."""
    run: Run | None = office.runs.latest(RUN)
    current = run is not None and run.about["digest"] == _digest(office, settings)
    return {"run": run if current else None, "settings": settings}


def _digest(office: Office, settings: Mapping[str, Any]) -> str:
    told = [settings, office.policy["data"], office.policy.get("roles", {})]
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()
