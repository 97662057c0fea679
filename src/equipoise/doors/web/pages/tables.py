"""Tables: choose columns, a rule and a method; see what is sensitive, what is hidden, and what an intruder can tell."""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import FileResponse, HTMLResponse, Response

from equipoise.demo import write as write_demo
from equipoise.doors.web.app_state import Here, Office
from equipoise.doors.web.background_runs import Run
from equipoise.doors.web.pages.open_file import DEMO, begin
from equipoise.doors.web.render import again, page, part
from equipoise.doors.web.work import table_runs
from equipoise.doors.web.work import table_settings as plain
from equipoise.doors.web.work import tables as work
from equipoise.doors.web.workspace import free
from equipoise.ground import system
from equipoise.ground.errors import DataError, ParameterError

router = APIRouter()
RUN, COMPARE = "table", "table-compare"
STAGES, KEPT = "tables", "tables-kept.json"
Name = Annotated[str, Form(max_length=1000)]
Names = Annotated[list[Annotated[str, Form(max_length=1000)]], Form(max_length=work.MOST_BY, default_factory=list)]
Word = Annotated[str, Form(max_length=200)]
Place = Annotated[int, Form(ge=0, le=100)]
File = Literal["table.csv", "table.parquet", "report.html", "evidence.json"]
Inside = Literal["table.csv", "audit.csv", "report.html", "policy.toml"]
MOST_BASES = 6


@router.get("/tables", response_class=HTMLResponse)
def show(request: Request, office: Here) -> HTMLResponse:
    """The page: a table, the cells that are sensitive, and what is done about them."""
    facts = _facts(office, values=False) if office.opened else {"found": None}
    return page(request, "tables.html", "tables", **facts)


@router.get("/tables/body", response_class=HTMLResponse)
def body(request: Request, office: Here, values: Annotated[bool, Query()] = False) -> HTMLResponse:
    """The table, with the values of hidden cells where they are asked for."""
    return _body(request, office, values)


@router.post("/tables/demo", response_class=HTMLResponse)
def open_demo(request: Request, office: Here) -> HTMLResponse:
    """Open the demo business survey with its table; it is written into the working folder the first time."""
    folder = office.workspace.folder / DEMO
    policy = folder / "business-table.toml"
    if not policy.is_file():
        write_demo(folder, "business")
    begin(office, request, policy)
    return again(request, "/tables")


# --- what the table holds -----------------------------------------------------------------------------------------


@router.post("/tables/columns", response_class=HTMLResponse)
def columns(
    request: Request,
    office: Here,
    by: Names,
    level: Names,
    value: Name = "",
    weight: Name = "",
    holding: Name = "",
    subtotals: Annotated[bool, Form()] = False,
) -> HTMLResponse:
    """Other columns: what the table goes by and at which level, what is added up, whose contributions are one."""
    asked = {"by": by, "levels": level, "value": value, "weight": weight, "holding": holding, "subtotals": subtotals}
    made = office.ask(work.with_columns, office.session.draft["table"], asked)
    return _changed(request, office, plain.table_title(made), made)


@router.post("/tables/rule/add", response_class=HTMLResponse)
def add_rule(request: Request, office: Here, name: Word) -> HTMLResponse:
    """One rule more."""
    return _edited(request, office, f"Rule added: {name}", lambda s: plain.with_rule(s, name))


@router.post("/tables/rule/drop", response_class=HTMLResponse)
def drop_rule(request: Request, office: Here, place: Place) -> HTMLResponse:
    """One rule less."""
    return _edited(request, office, "Rule taken away", lambda s: plain.without_rule(s, place))


@router.post("/tables/rule/set", response_class=HTMLResponse)
def set_rule(request: Request, office: Here, place: Place, field: Word, value: Word = "") -> HTMLResponse:
    """Another value in a field of a rule."""
    return _edited(request, office, f"Rule: {field} = {value}", lambda s: plain.with_field(s, place, field, value))


@router.post("/tables/join", response_class=HTMLResponse)
def join(request: Request, office: Here, join: Literal["|", "&"] = Form()) -> HTMLResponse:
    """Whether one rule is enough, or all must call a cell sensitive."""
    words = "Sensitive by one of the rules" if join == "|" else "Sensitive by all rules at once"
    return _edited(request, office, words, lambda s: plain.with_join(s, join))


@router.post("/tables/preset", response_class=HTMLResponse)
def preset(request: Request, office: Here, name: Word) -> HTMLResponse:
    """The rule and the method of an agency."""
    return _edited(request, office, f"Preset for tables: {name}", lambda s: plain.with_preset(s, name))


@router.post("/tables/method", response_class=HTMLResponse)
def method(request: Request, office: Here, name: Word) -> HTMLResponse:
    """Another way to protect the table."""
    return _edited(request, office, f"Table: {plain.TITLES.get(name, name)}", lambda s: plain.with_method(s, name))


@router.post("/tables/method/set", response_class=HTMLResponse)
def set_method(request: Request, office: Here, field: Word, value: Word = "") -> HTMLResponse:
    """Another value in a field of the method."""
    return _edited(request, office, f"Table: {field} = {value}", lambda s: plain.with_option(s, field, value))


def _edited(request: Request, office: Office, words: str, change: Callable[[Any], Any]) -> HTMLResponse:
    """Take a step from the settings as they stand."""
    settings = office.ask(work.settled, office.session.draft["table"])
    return _changed(request, office, words, change(settings))


def _changed(request: Request, office: Office, words: str, made: Mapping[str, Any]) -> HTMLResponse:
    office.edit(request, words, "tables", lambda draft: {**draft, "table": made})
    return _body(request, office)


# --- protect and compare ------------------------------------------------------------------------------------------


@router.post("/tables/protect", response_class=HTMLResponse)
def protect(request: Request, office: Here) -> HTMLResponse:
    """Protect the table and audit it; what comes of it is written privately until it is kept."""
    settings = office.ask(work.settled, office.session.draft["table"])
    policy = office.ask(work.policy_of, settings)
    out = _stages(office) / token_hex(8)
    office.runs.start(
        RUN, table_runs.protect, office.workspace.folder, policy, out, about=_about(office, settings, out.name)
    )
    for old in _stages(office).iterdir():
        if old.name != out.name:
            system.remove_folder(old)
    return _body(request, office)


@router.get("/tables/run", response_class=HTMLResponse)
def run(request: Request, office: Here) -> HTMLResponse:
    """How far the table is; the whole page's body when it is done."""
    found = office.runs.latest(RUN)
    if found is not None and found.state == "running":
        return part(request, "tables_running.html", run=found, again="/tables/run")
    return _whole(_body(request, office))


@router.post("/tables/stop", response_class=HTMLResponse)
def stop(request: Request, office: Here, kind: Literal["table", "table-compare"] = Form()) -> HTMLResponse:
    """Stop what runs."""
    found = office.runs.latest(kind)
    if found is not None:
        office.runs.stop(found.id)
    return _body(request, office)


@router.post("/tables/compare", response_class=HTMLResponse)
def compare(
    request: Request,
    office: Here,
    rules: Annotated[list[Word], Form(max_length=8, default_factory=list)],
    methods: Annotated[
        list[Literal["suppress", "adjust", "round", "cell_key"]], Form(max_length=4, default_factory=list)
    ],
    bases: Word = "",
) -> HTMLResponse:
    """Try other rules and methods on the same table."""
    settings = office.ask(work.settled, office.session.draft["table"])
    asked = {"rules": [text for text in rules if text.strip()], "methods": _methods(methods, bases)}
    for text in asked["rules"]:
        plain.refuse_rule(text)
    used = settings if settings["method"]["use"] != plain.NONE else plain.with_method(settings, "suppress")
    policy = office.ask(work.policy_of, used)
    about = {**_about(office, settings), "asked": {"rules": rules, "methods": methods, "bases": bases}}
    office.runs.start(
        COMPARE, table_runs.compare, office.workspace.folder, policy, asked["rules"], asked["methods"], about=about
    )
    return _body(request, office)


@router.get("/tables/compared", response_class=HTMLResponse)
def compared(request: Request, office: Here) -> HTMLResponse:
    """How far the comparison is; the whole page's body when it is done."""
    found = office.runs.latest(COMPARE)
    if found is not None and found.state == "running":
        return part(request, "tables_running.html", run=found, again="/tables/compared")
    return _whole(_body(request, office))


def _methods(methods: Sequence[str], bases: str) -> list[str]:
    """The methods with rounding once for each base."""
    try:
        numbers = [int(text) for text in bases.replace(",", " ").split()]
    except ValueError:
        raise ParameterError("Bases are whole numbers: 3, 5, 10.") from None
    if len(numbers) > MOST_BASES or any(not 2 <= base <= 10**12 for base in numbers):
        raise ParameterError(f"Name at most {MOST_BASES} bases, each 2 or more.")
    rest = [name for name in methods if name != "round"]
    return [*rest, *(f"round:{base}" for base in numbers if "round" in methods)]


# --- keep and download --------------------------------------------------------------------------------------------


@router.post("/tables/keep", response_class=HTMLResponse)
def keep(request: Request, office: Here) -> HTMLResponse:
    """Put the table with its reports into the working folder, beside what is there."""
    run, stage = _made(office)
    place = free(office.workspace.folder / f"{Path(office.policy['data']['path']).name.partition('.')[0]}-table")
    copy = place.with_name(f".{place.name}.{token_hex(4)}.partial")
    try:
        shutil.copytree(stage, copy)
        system.move(copy, place)
    finally:
        system.remove_folder(copy)
    office.workspace.keep(KEPT, {"run": run.id, "folder": place.name})
    return _body(request, office)


@router.get("/tables/file/public/{name}")
def public_file(office: Here, name: File) -> Response:
    """A file that may be published."""
    return _file(office, "public", name)


@router.get("/tables/file/private/{name}")
def private_file(office: Here, name: Inside) -> Response:
    """A file that stays inside."""
    return _file(office, "private", name)


def _file(office: Office, side: str, name: str) -> Response:
    _, stage = _made(office)
    place = stage / side / name
    if not place.is_file():
        raise DataError("That file is not there any more: protect the table again.")
    return FileResponse(place, filename=f"{side}-{name}", headers={"Cache-Control": "no-store"})


# --- facts --------------------------------------------------------------------------------------------------------


def _body(request: Request, office: Office, values: bool = False) -> HTMLResponse:
    office.need_file()
    return part(request, "tables_body.html", **_facts(office, values))


def _whole(found: HTMLResponse) -> HTMLResponse:
    """Into the place of the whole body, whoever asked."""
    found.headers.update({"HX-Retarget": "#tables", "HX-Reswap": "innerHTML"})
    return found


def _facts(office: Office, values: bool) -> dict[str, Any]:
    found = office.ask(work.seen, office.session.draft["table"], values)
    settings = found["settings"]
    run, other = (_of(office, kind, settings) for kind in (RUN, COMPARE)) if settings["by"] else (None, None)
    kept = office.workspace.kept(KEPT)
    done = run is not None and run.state == "done" and (_stages(office) / run.about["stage"]).is_dir()
    result = run.result if run is not None and done else None
    return {
        "found": found, "settings": settings, "values": values, "run": run, "comparison": other,
        "result": _veiled(result, values) if result else None,
        "kept": kept["folder"] if run and isinstance(kept, dict) and kept.get("run") == run.id else None,
        "title": plain.table_title(settings) if settings["by"] else "Tables",
        "rules": plain.rule_forms(settings), "method": plain.method_form(settings),
        "presets": plain.preset_list(), "TITLES": plain.TITLES, "ABOUT": plain.METHOD_SUMMARIES, "RULES": plain.RULES,
        "METHODS": (*plain.METHODS, plain.NONE), "LARGEST": plain.LARGEST, "rivals": plain.rivals(settings),
        "slots": range(work.MOST_BY),
    }  # fmt: skip


def _veiled(result: Mapping[str, Any], values: bool) -> dict[str, Any]:
    """What came of a run, without values that nobody asked for."""
    narrow = [row if values else {**row, "value": "", "width": ""} for row in result["narrow"]]
    return {**result, "grid": work.veiled(result["grid"], values), "narrow": narrow}


def _of(office: Office, kind: str, settings: Mapping[str, Any]) -> Run | None:
    """The latest run of a kind, where it is about these settings."""
    found = office.runs.latest(kind)
    return found if found is not None and found.about["digest"] == _digest(office, settings) else None


def _about(office: Office, settings: Mapping[str, Any], stage: str = "") -> dict[str, Any]:
    return {"digest": _digest(office, settings), "stage": stage}


def _digest(office: Office, settings: Mapping[str, Any]) -> str:
    """The settings, the roles and the state of the file, in short."""
    path = office.workspace.folder / office.policy["data"]["path"]
    state = path.stat() if path.exists() else None
    told = [settings, plain.roles_of(office.policy, settings), office.policy["data"]]
    told += [state.st_mtime_ns, state.st_size] if state else []
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()


def _stages(office: Office) -> Path:
    """Where tables wait until they are kept."""
    place = office.workspace.private / STAGES
    if not place.is_dir():
        system.make_folder(place, private=True)
    return place


def _made(office: Office) -> tuple[Run, Path]:
    """The table that is shown, with the folder it waits in."""
    office.need_file()
    run = _of(office, RUN, office.ask(work.settled, office.session.draft["table"]))
    if run is None or run.state != "done" or not (stage := _stages(office) / run.about["stage"]).is_dir():
        raise DataError("Protect the table first: it is not made yet, or its settings have changed.")
    return run, stage
