"""Open page: a file by name, by upload or the demo; and the roles of its columns."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request, UploadFile
from fastapi.responses import HTMLResponse
from pydantic import Field

from equipoise.data.roles import read_toml
from equipoise.demo import write as write_demo
from equipoise.doors.web.app_state import Here, Office
from equipoise.doors.web.render import again, page, part
from equipoise.doors.web.session import EMPTY, Draft
from equipoise.doors.web.work import open_file as work
from equipoise.doors.web.workspace import PATH_KEYS
from equipoise.ground.errors import DataError, EquipoiseError
from equipoise.inspection.suggest_roles import ROLE_TEXTS, ROLE_WORDS
from equipoise.policies.policy_file import Job

router = APIRouter()
ROLE_TITLES = {role: texts["title"] for role, texts in ROLE_TEXTS.items()}
"""Titles of the roles on the page."""
DEMO_FOLDER = "demo"


@router.get("/", response_class=HTMLResponse)
def show(request: Request, office: Here) -> HTMLResponse:
    """The page: choose a file, or see the columns of the open one."""
    columns, problem = None, ""
    try:
        columns = office.ask(work.look) if office.opened else None
    except EquipoiseError as error:
        problem = str(error)
    facts = {"roles": ROLE_TITLES, "told": ROLE_WORDS, "files": office.workspace.files()}
    return page(request, "open.html", "open", found=columns, lost=problem, **facts)


@router.post("/open/file", response_class=HTMLResponse)
def open_file(request: Request, office: Here, name: Annotated[str, Form(max_length=1000)]) -> HTMLResponse:
    """Open a data file or a policy of the working folder."""
    begin(office, request, office.workspace.inside(name))
    return again(request, "/")


@router.post("/open/upload", response_class=HTMLResponse)
def upload(request: Request, office: Here, file: UploadFile) -> HTMLResponse:
    """Save an uploaded file in the working folder and open it."""
    if not file.filename:
        raise DataError("Choose a file first.")
    place = office.workspace.receive(file.filename, file.file)
    try:
        begin(office, request, place)
    except Exception:
        place.unlink(missing_ok=True)
        raise
    return again(request, "/")


@router.post("/open/demo", response_class=HTMLResponse)
def open_demo(request: Request, office: Here) -> HTMLResponse:
    """Open the demo survey, written into the working folder the first time."""
    folder = office.workspace.folder / DEMO_FOLDER
    policy = folder / "survey.toml"
    begin(office, request, policy if policy.is_file() else write_demo(folder))
    return again(request, "/")


@router.post("/open/role", response_class=HTMLResponse)
def change_role(
    request: Request,
    office: Here,
    column: Annotated[list[Annotated[str, Field(max_length=1000)]], Form(max_length=20_000)],
    role: Annotated[str, Form(max_length=40)],
) -> HTMLResponse:
    """Change the role of one column or of several."""
    roles = office.ask(work.with_role, column, role)
    what = column[0] if len(column) == 1 else f"{len(column)} columns"
    words = f"{what}: {ROLE_TITLES.get(role, role)}"
    office.edit(request, words, "open", lambda draft: with_policy(draft, roles=roles))
    return part(request, "columns.html", found=office.ask(work.look), roles=ROLE_TITLES, told=ROLE_WORDS)


@router.get("/open/preview", response_class=HTMLResponse)
def preview(request: Request, office: Here) -> HTMLResponse:
    """The first records with their values."""
    return part(request, "preview.html", preview=office.ask(work.first_records))


def begin_with(office: Office, path: Path) -> None:
    """Open a file at the start of the server; if it is open already the session continues."""
    name = office.workspace.relative(office.workspace.inside(str(path)))
    if name not in (office.policy.get("data", {}).get("path"), office.session.draft.get("opened")):
        begin(office, None, path)


def begin(office: Office, request: Request | None, path: Path, reading: Mapping[str, Any] | None = None) -> None:
    """Open a file: a policy as it is, or data with suggested roles, read as `reading` says."""
    plain = _policy(office, path) if path.suffix == ".toml" else _new_policy(office, path, reading or {})
    draft = {**EMPTY, "policy": plain, "opened": office.workspace.relative(path)}
    office.edit(request, f"Opened {path.name}", "open", lambda _: draft)


def _new_policy(office: Office, path: Path, reading: Mapping[str, Any]) -> dict[str, Any]:
    data = {"path": office.workspace.relative(path), **reading}
    roles = office.desk.ask(work.suggested_roles, office.workspace.folder, {"data": data})
    return {"format": 1, "title": path.name.partition(".")[0], "data": data, "roles": roles}


def _policy(office: Office, path: Path) -> dict[str, Any]:
    """A policy with its data path relative to the working folder, and its hierarchies in full."""
    plain = read_toml(path)
    office.workspace.refuse_policy(plain, path.parent)
    job = Job.load(path)
    data = office.workspace.inside(str(path.parent / job.data.path))
    plain = _with_paths_from(plain, office.workspace.relative(path.parent))
    plain["data"] = {**plain["data"], "path": office.workspace.relative(data)}
    plain["roles"] = job.read_roles().to_plain()
    office.desk.ask(work.look, office.workspace.folder, plain)
    return plain


def _with_paths_from(plain: dict[str, Any], folder: str) -> dict[str, Any]:
    """A policy of another folder, with its file paths relative to the working folder."""
    if folder == ".":
        return plain
    policy = {**plain}
    for section, names in PATH_KEYS.items():
        inside = {**policy.get(section, {})} if section else policy
        inside |= {name: f"{folder}/{inside[name]}" for name in names if inside.get(name)}
        policy = policy | ({section: inside} if section and inside else {} if section else inside)
    if str(policy.get("extends", "")).endswith(".toml"):
        policy["extends"] = f"{folder}/{policy['extends']}"
    return policy


def with_policy(draft: Draft, **parts: Any) -> Draft:
    """The draft with some sections of its policy changed; None removes a section."""
    policy: Mapping[str, Any] = {**draft["policy"], **parts}
    return {**draft, "policy": {name: value for name, value in policy.items() if value is not None}}
