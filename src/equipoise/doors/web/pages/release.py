"""Release page: the verdict, reports, files, and the policy and script to reproduce it."""

import io
import zipfile
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Request
from fastapi.responses import FileResponse, HTMLResponse, Response

from equipoise.doors.web.app_state import Here, Office
from equipoise.doors.web.render import again, page, part
from equipoise.doors.web.session import EMPTY, policy_text
from equipoise.doors.web.session_script import script
from equipoise.doors.web.work import publish as publishing
from equipoise.doors.web.work import release as work
from equipoise.doors.web.work import tables
from equipoise.doors.web.work.table_settings import NONE
from equipoise.doors.web.workspace import digest
from equipoise.ground.errors import DataError
from equipoise.ground.system import file_name
from equipoise.ground.whole_files import write_whole
from equipoise.provenance.journal import beside

router = APIRouter()
REPORT_CSP = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'; "
    "img-src data:; frame-ancestors 'self'"
)
"""Content security policy of a report in its frame: inline scripts only, no access to the page or network."""
POLICY_HEADER = "# Written by the Equipoise workbench; equipoise balance makes the same release from it.\n"
Part = Literal["public", "private"]
Name = Annotated[str, Form(max_length=100)]


@router.get("/release", response_class=HTMLResponse)
def show(request: Request, office: Here) -> HTMLResponse:
    """The page: the state of the release, and all downloads."""
    if not office.opened:
        return page(request, "unopened.html", "release", heading="Release")
    return page(request, "release.html", "release", **_facts(office))


@router.get("/release/state", response_class=HTMLResponse)
def state(request: Request, office: Here) -> HTMLResponse:
    """The progress of the release or of its verification."""
    return part(request, "release_state.html", **_facts(office))


@router.post("/release/run", response_class=HTMLResponse)
def run(request: Request, office: Here, folder: Name, overwrite: Annotated[bool, Form()] = False) -> HTMLResponse:
    """Start the balance and release of the policy, into a folder of the working folder."""
    policy = office.need_file()
    out = office.workspace.folder / _folder_name(folder)
    if out.exists() and not overwrite:
        raise DataError(f"The folder {folder!r} exists already: name another, or allow it to be replaced.")
    place = office.workspace.folder / policy_name(office)
    write_whole(place, POLICY_HEADER + policy_text(policy))
    trial_journal, journal = office.workspace.journal, beside(out)
    if trial_journal.is_file() and not journal.exists():
        write_whole(journal, trial_journal.read_text(encoding="utf-8"))
    refused = office.workspace.private / work.REFUSAL
    about = {"folder": folder, "policy": digest(policy)}
    office.runs.start("release", work.release, place, out, refused, overwrite, about=about)
    return part(request, "release_state.html", **_facts(office))


@router.post("/release/verify", response_class=HTMLResponse)
def prove(request: Request, office: Here) -> HTMLResponse:
    """Start the verification: make the release again and compare."""
    folder = _folder_of(office)
    office.runs.start("verify", work.verify_release, folder, about={"folder": folder.name})
    return part(request, "release_state.html", **_facts(office))


@router.post("/release/stop", response_class=HTMLResponse)
def stop(request: Request, office: Here, kind: Annotated[Literal["release", "verify"], Form()]) -> HTMLResponse:
    """Stop the run; trials made so far are kept."""
    office.runs.stop_latest(kind)
    return part(request, "release_state.html", **_facts(office))


@router.get("/release/report/{part}", response_class=HTMLResponse)
def report(office: Here, part: Literal["public", "private", "refused"]) -> Response:
    """A report, to be shown in a sandboxed frame."""
    place = office.workspace.private / work.REFUSAL if part == "refused" else _folder_of(office) / part / "report.html"
    if not place.is_file():
        raise DataError("There is no such report yet.")
    return HTMLResponse(place.read_text(encoding="utf-8"), headers={"Content-Security-Policy": REPORT_CSP})


@router.get("/release/file/{part}/{name}")
def download(office: Here, part: Part, name: str) -> Response:
    """Download one file of the release."""
    folder = _folder_of(office) / part
    files = {file.name: file for file in folder.iterdir() if file.is_file()}
    if name not in files:
        raise DataError("There is no such file in the release.")
    return FileResponse(files[name], filename=name)


@router.get("/release/public.zip")
def everything(office: Here) -> Response:
    """Download the public folder as a zip file."""
    folder = _folder_of(office)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted((folder / "public").rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder))
    return _attachment(packed.getvalue(), f"{folder.name}-public.zip", "application/zip")


@router.get("/release/policy")
def policy_file(office: Here) -> Response:
    """Download the current policy, for the command line."""
    return _attachment((POLICY_HEADER + policy_text(office.need_file())).encode(), policy_name(office), "text/plain")


@router.get("/release/script")
def script_file(office: Here) -> Response:
    """Download all steps as a Python script."""
    office.need_file()
    draft = office.session.draft
    table, publish = _table_policy(office, draft["table"]), draft["publish"]
    publish = office.ask(publishing.settled, publish) if "risk" in publish else None
    text = script(office.session, stem(office), policy_name(office), table=table, publish=publish)
    return _attachment(text.encode(), f"{stem(office)}.py", "text/x-python")


def _table_policy(office: Office, settings_draft: Mapping[str, Any]) -> Any:
    """The policy of the Tables page, if a method is chosen there."""
    settings = office.ask(tables.settled, settings_draft) if settings_draft else {"method": {"use": NONE}}
    return office.ask(tables.policy_of, settings) if settings["method"]["use"] != NONE else None


@router.post("/release/forget", response_class=HTMLResponse)
def start_over(request: Request, office: Here) -> HTMLResponse:
    """Close the file and start a new session; files and releases stay."""
    office.edit(request, "Closed the file", "release", lambda _: EMPTY)
    return again(request, "/")


def _facts(office: Office) -> dict[str, Any]:
    """Facts for the page: the release, its verification and its files."""
    office.need_file()
    release, proof = office.runs.latest("release"), office.runs.latest("verify")
    if release is not None and proof is not None and proof.began < release.began:
        proof = None
    released = release is not None and release.state == "done" and release.result["released"]
    folder = office.workspace.folder / release.result["folder"] if release is not None and released else None
    exists = folder is not None and (folder / "public").is_dir()
    files = sorted(file.name for file in (folder / "public").iterdir() if file.is_file()) if folder and exists else []
    return {
        "made": release if exists or not released else None,
        "proof": proof,
        "files": files,
        "folder": f"{stem(office)}-release",
        "policy_name": policy_name(office),
        "running": any(run is not None and run.state == "running" for run in (release, proof)),
        "dated": release is not None and released and release.about["policy"] != digest(office.policy),
    }


def _folder_of(office: Office) -> Path:
    """The folder of the latest release."""
    release = office.runs.latest("release")
    if release is None or release.state != "done" or not release.result["released"]:
        raise DataError("Nothing is released yet.")
    folder: Path = office.workspace.folder / release.result["folder"]
    if not (folder / "public").is_dir():
        raise DataError("The release is not in its folder any more.")
    return folder


def stem(office: Office) -> str:
    """The stem of the names of this session's files."""
    return file_name(office.data_name) or "data"


def policy_name(office: Office) -> str:
    """The name of the policy file in the working folder: one the app wrote before, or a new one."""
    for number in count(1):
        name = f"{stem(office)}-policy{f'-{number}' if number > 1 else ''}.toml"
        place = office.workspace.folder / name
        if not place.exists() or place.read_bytes().startswith(POLICY_HEADER.encode()):
            break
    return name


def _folder_name(name: str) -> str:
    """The name of a folder directly in the working folder; refused where it is not safe."""
    if not name.strip() or name != file_name(name) or name.startswith(".") or name in ("uploads", "demo"):
        raise DataError("Name the folder with letters, digits, - and _; it is made in the working folder.")
    return name


def _attachment(content: bytes, name: str, kind: str) -> Response:
    safe = name.encode("ascii", "replace").decode().replace('"', "")
    return Response(content, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{safe}"'})
