"""Tables page: choose columns, rule and method; see sensitive and suppressed cells and the audit."""

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
from equipoise.doors.web.pages.open_file import DEMO_FOLDER, begin
from equipoise.doors.web.render import again, page, part
from equipoise.doors.web.work import table_runs
from equipoise.doors.web.work import table_settings as plain
from equipoise.doors.web.work import tables as work
from equipoise.doors.web.workspace import digest, free
from equipoise.ground import system
from equipoise.ground.errors import DataError, ParameterError
from equipoise.ground.whole_files import staged
from equipoise.releases.release_folder import refuse_existing

router = APIRouter()
RUN, COMPARE = "table", "table-compare"
STAGES_FOLDER, SAVED_FILE = "tables", "tables-kept.json"
Name = Annotated[str, Form(max_length=1000)]
Names = Annotated[list[Annotated[str, Form(max_length=1000)]], Form(max_length=work.MOST_BY, default_factory=list)]
Word = Annotated[str, Form(max_length=200)]
Place = Annotated[int, Form(ge=0, le=100)]
File = Literal["table.csv", "table.parquet", "report.html", "evidence.json"]
Inside = Literal["table.csv", "audit.csv", "report.html", "policy.toml"]
MAX_BASES = 6


@router.get("/tables", response_class=HTMLResponse)
def show(request: Request, office: Here) -> HTMLResponse:
    """The page: a table, its sensitive cells and its protection."""
    facts = _facts(office, values=False) if office.opened else {"found": None}
    return page(request, "tables.html", "tables", **facts)


@router.get("/tables/body", response_class=HTMLResponse)
def body(request: Request, office: Here, values: Annotated[bool, Query()] = False) -> HTMLResponse:
    """The table; with the values of suppressed cells if `values`."""
    return part(request, "tables_body.html", **_facts(office, values))


@router.post("/tables/demo", response_class=HTMLResponse)
def open_demo(request: Request, office: Here) -> HTMLResponse:
    """Open the demo business survey with its table, written into the working folder the first time."""
    folder = office.workspace.folder / DEMO_FOLDER
    policy = folder / "business-table.toml"
    if not policy.is_file():
        write_demo(folder, "business")
    begin(office, request, policy)
    return again(request, "/tables")


@router.post("/tables/columns", response_class=HTMLResponse)
def columns(
    request: Request,
    office: Here,
    by: Names,
    level: Names,
    value: Name = "",
    weight: Name = "",
    holding: Name = "",
    statistic: Name = "",
    of: Name = "",
    apriori: Name = "",
    subtotals: Annotated[bool, Form()] = False,
) -> HTMLResponse:
    """Change what the table holds: classification and levels, value, statistic, weight, holding, a-priori file."""
    choices = {"by": by, "levels": level, "value": value, "weight": weight, "holding": holding, "subtotals": subtotals}
    choices |= {"statistic": statistic, "of": of, "apriori": apriori.strip()}
    settings = office.ask(work.with_columns, office.session.draft["table"], choices)
    return _edit(request, office, plain.table_title(settings), settings)


@router.post("/tables/rule/add", response_class=HTMLResponse)
def add_rule(request: Request, office: Here, name: Word) -> HTMLResponse:
    """Add a rule."""
    return _change(request, office, f"Rule added: {name}", lambda s: plain.with_rule(s, name))


@router.post("/tables/rule/drop", response_class=HTMLResponse)
def drop_rule(request: Request, office: Here, place: Place) -> HTMLResponse:
    """Remove a rule."""
    return _change(request, office, "Rule taken away", lambda s: plain.without_rule(s, place))


@router.post("/tables/rule/set", response_class=HTMLResponse)
def set_rule(request: Request, office: Here, place: Place, field: Word, value: Word = "") -> HTMLResponse:
    """Change a parameter of a rule."""
    return _change(request, office, f"Rule: {field} = {value}", lambda s: plain.with_field(s, place, field, value))


@router.post("/tables/join", response_class=HTMLResponse)
def join(request: Request, office: Here, join: Literal["|", "&"] = Form()) -> HTMLResponse:
    """Set whether a cell is sensitive by any rule or only by all rules."""
    words = "Sensitive by one of the rules" if join == "|" else "Sensitive by all rules at once"
    return _change(request, office, words, lambda s: plain.with_join(s, join))


@router.post("/tables/preset", response_class=HTMLResponse)
def preset(request: Request, office: Here, name: Word) -> HTMLResponse:
    """Apply the rule and the method of an agency's preset."""
    return _change(request, office, f"Preset for tables: {name}", lambda s: plain.with_preset(s, name))


@router.post("/tables/method", response_class=HTMLResponse)
def method(request: Request, office: Here, name: Word) -> HTMLResponse:
    """Change the protection method."""
    return _change(request, office, f"Table: {plain.TITLES.get(name, name)}", lambda s: plain.with_method(s, name))


@router.post("/tables/method/set", response_class=HTMLResponse)
def set_method(request: Request, office: Here, field: Word, value: Word = "") -> HTMLResponse:
    """Change a parameter of the method."""
    return _change(request, office, f"Table: {field} = {value}", lambda s: plain.with_option(s, field, value))


def _change(request: Request, office: Office, words: str, change: Callable[[Any], Any]) -> HTMLResponse:
    """Change the current settings, as one step."""
    settings = office.ask(work.settled, office.session.draft["table"])
    return _edit(request, office, words, change(settings))


def _edit(request: Request, office: Office, words: str, settings: Mapping[str, Any]) -> HTMLResponse:
    office.edit(request, words, "tables", lambda draft: {**draft, "table": settings})
    return body(request, office)


@router.post("/tables/protect", response_class=HTMLResponse)
def protect(request: Request, office: Here) -> HTMLResponse:
    """Start to protect and audit the table; the result stays in the private folder until it is saved."""
    settings = office.ask(work.settled, office.session.draft["table"])
    policy = office.ask(work.policy_of, settings)
    out = _stages(office) / token_hex(8)
    office.runs.start(
        RUN, table_runs.protect, office.workspace.folder, policy, out, about=_about(office, settings, out.name)
    )
    for old in _stages(office).iterdir():
        if old.name != out.name:
            system.remove_folder(old)
    return body(request, office)


@router.get("/tables/run", response_class=HTMLResponse)
def run(request: Request, office: Here) -> HTMLResponse:
    """The progress of the protection; the whole body of the page when it is done."""
    return _progress(request, office, RUN, "/tables/run")


@router.post("/tables/stop", response_class=HTMLResponse)
def stop(request: Request, office: Here, kind: Literal["table", "table-compare"] = Form()) -> HTMLResponse:
    """Stop a run."""
    office.runs.stop_latest(kind)
    return body(request, office)


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
    """Start a comparison of other rules and methods on the same table."""
    settings = office.ask(work.settled, office.session.draft["table"])
    choices = {"rules": [text for text in rules if text.strip()], "methods": _methods(methods, bases)}
    for text in choices["rules"]:
        plain.refuse_rule(text)
    used = settings if settings["method"]["use"] != plain.NONE else plain.with_method(settings, "suppress")
    policy = office.ask(work.policy_of, used)
    about = {**_about(office, settings), "asked": {"rules": rules, "methods": methods, "bases": bases}}
    office.runs.start(
        COMPARE, table_runs.compare, office.workspace.folder, policy, choices["rules"], choices["methods"], about=about
    )
    return body(request, office)


@router.get("/tables/compared", response_class=HTMLResponse)
def comparison(request: Request, office: Here) -> HTMLResponse:
    """The progress of the comparison; the whole body of the page when it is done."""
    return _progress(request, office, COMPARE, "/tables/compared")


def _progress(request: Request, office: Here, kind: str, address: str) -> HTMLResponse:
    latest = office.runs.latest(kind)
    if latest is not None and latest.state == "running":
        return part(request, "tables_running.html", run=latest, again=address)
    response = body(request, office)
    response.headers.update({"HX-Retarget": "#tables", "HX-Reswap": "innerHTML"})
    return response


def _methods(methods: Sequence[str], bases: str) -> list[str]:
    """The methods, with rounding once for each base."""
    try:
        numbers = [int(text) for text in bases.replace(",", " ").split()]
    except ValueError:
        raise ParameterError("Bases are whole numbers: 3, 5, 10.") from None
    if len(numbers) > MAX_BASES or any(not 2 <= base <= 10**12 for base in numbers):
        raise ParameterError(f"Name at most {MAX_BASES} bases, each 2 or more.")
    rest = [name for name in methods if name != "round"]
    return [*rest, *(f"round:{base}" for base in numbers if "round" in methods)]


@router.post("/tables/keep", response_class=HTMLResponse)
def keep(request: Request, office: Here) -> HTMLResponse:
    """Save the table with its reports in a new folder of the working folder."""
    run, stage = _finished_table(office)
    place = free(office.workspace.folder / f"{office.data_name}-table")
    with staged(place, False, refuse=refuse_existing) as copy:
        shutil.copytree(stage, copy, dirs_exist_ok=True)
    office.workspace.keep(SAVED_FILE, {"run": run.id, "folder": place.name})
    return body(request, office)


@router.get("/tables/file/public/{name}")
def public_file(office: Here, name: File) -> Response:
    """Download a public file."""
    return _file(office, "public", name)


@router.get("/tables/file/private/{name}")
def private_file(office: Here, name: Inside) -> Response:
    """Download a private file."""
    return _file(office, "private", name)


def _file(office: Office, side: str, name: str) -> Response:
    _, stage = _finished_table(office)
    place = stage / side / name
    if not place.is_file():
        raise DataError("That file is not there any more: protect the table again.")
    return FileResponse(place, filename=f"{side}-{name}", headers={"Cache-Control": "no-store"})


def _facts(office: Office, values: bool) -> dict[str, Any]:
    view = office.ask(work.view, office.session.draft["table"], values)
    settings = view["settings"]
    run, other = (_current_run(office, kind, settings) for kind in (RUN, COMPARE)) if settings["by"] else (None, None)
    saved = office.workspace.kept(SAVED_FILE)
    finished = run is not None and run.state == "done" and (_stages(office) / run.about["stage"]).is_dir()
    result = run.result if run is not None and finished else None
    return {
        "found": view, "settings": settings, "values": values, "run": run, "comparison": other,
        "result": _hide_values(result, values) if result else None,
        "kept": saved["folder"] if run and isinstance(saved, dict) and saved.get("run") == run.id else None,
        "title": plain.table_title(settings) if settings["by"] else "Tables",
        "rules": plain.rule_forms(settings), "method": plain.method_form(settings),
        "presets": plain.preset_list(), "TITLES": plain.TITLES, "ABOUT": plain.METHOD_SUMMARIES, "RULES": plain.RULES,
        "METHODS": (*plain.METHODS, plain.NONE), "LARGEST": plain.LARGEST, "rivals": plain.rules_to_compare(settings),
        "slots": range(work.MOST_BY), "STATISTICS": plain.STATISTICS, "OF_COLUMN": plain.OF_COLUMN,
    }  # fmt: skip


def _hide_values(result: Mapping[str, Any], values: bool) -> dict[str, Any]:
    """The result of a run, with suppressed values only if `values`."""
    narrow = [row if values else {**row, "value": "", "width": ""} for row in result["narrow"]]
    details = work.veiled_details(result["details"], values)
    return {**result, "grid": work.veiled(result["grid"], values), "narrow": narrow, "details": details}


def _current_run(office: Office, kind: str, settings: Mapping[str, Any]) -> Run | None:
    """The latest run of a kind, if it used these settings."""
    run = office.runs.latest(kind)
    return run if run is not None and run.about["digest"] == _digest(office, settings) else None


def _about(office: Office, settings: Mapping[str, Any], stage: str = "") -> dict[str, Any]:
    return {"digest": _digest(office, settings), "stage": stage}


def _digest(office: Office, settings: Mapping[str, Any]) -> str:
    """SHA-256 digest of the settings, the roles and the state of the file."""
    path = office.workspace.folder / office.policy["data"]["path"]
    state = path.stat() if path.exists() else None
    content = [settings, plain.roles_of(office.policy, settings), office.policy["data"]]
    content += [state.st_mtime_ns, state.st_size] if state else []
    return digest(content)


def _stages(office: Office) -> Path:
    """The private folder of tables that are not saved yet."""
    place = office.workspace.private / STAGES_FOLDER
    if not place.is_dir():
        system.make_folder(place, private=True)
    return place


def _finished_table(office: Office) -> tuple[Run, Path]:
    """The run of the current table, and its private folder."""
    run = _current_run(office, RUN, office.ask(work.settled, office.session.draft["table"]))
    if run is None or run.state != "done" or not (stage := _stages(office) / run.about["stage"]).is_dir():
        raise DataError("Protect the table first: it is not made yet, or its settings have changed.")
    return run, stage
