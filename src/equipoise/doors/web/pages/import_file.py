"""Import: how a file is read (marks, rows of names, sheet, codes), with a preview; the answer of a query as a file."""

from typing import Annotated, Any

from fastapi import APIRouter, Form, Request, UploadFile
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from equipoise.doors.web.app_state import Here, Office
from equipoise.doors.web.full_paths import without_folders
from equipoise.doors.web.pages.open_file import begin
from equipoise.doors.web.render import again, part
from equipoise.doors.web.work import import_file as work
from equipoise.doors.web.workspace import UPLOAD_FOLDER, free
from equipoise.ground import system
from equipoise.ground.errors import DataError, EquipoiseError

router = APIRouter(prefix="/import")
Name = Annotated[str, Form(max_length=1000)]
Sql = Annotated[str, Form(max_length=20_000)]
Text = Annotated[str, Field(max_length=1000)]


class ReadingForm(BaseModel):
    """What the form says of a file; a blank field is left to be found."""

    name: Text
    delimiter: Text = ""
    decimal: Text = ""
    thousands: Text = ""
    encoding: Text = ""
    sheet: Text = ""
    skip_rows: Text = ""
    header_rows: Text = ""
    missing_codes: Text = ""
    metadata: Text = ""
    values: Text = ""


Reading = Annotated[ReadingForm, Form()]


@router.get("", response_class=HTMLResponse)
def show(request: Request, office: Here, name: str) -> HTMLResponse:
    """The form for a file of the working folder, with what is said of it already."""
    return _panel(request, office, office.workspace.relative(office.workspace.inside(name)))


@router.post("/upload", response_class=HTMLResponse)
def upload(request: Request, office: Here, file: UploadFile) -> HTMLResponse:
    """Save an uploaded file in the working folder, and show the form for it."""
    if not file.filename:
        raise DataError("Choose a file first.")
    place = office.workspace.receive(file.filename, file.file)
    try:
        return _panel(request, office, office.workspace.relative(place))
    except Exception:
        place.unlink(missing_ok=True)
        raise


@router.post("/preview", response_class=HTMLResponse)
def preview(request: Request, office: Here, form: Reading) -> HTMLResponse:
    """The columns as they would be read, and the first records if asked."""
    return _preview(request, office, work.look, _data(office, form), bool(form.values))


@router.post("/open", response_class=HTMLResponse)
def open_file(request: Request, office: Here, form: Reading) -> HTMLResponse:
    """Open the file as the form says."""
    data = _data(office, form)
    begin(office, request, office.workspace.inside(data["path"]), {k: v for k, v in data.items() if k != "path"})
    return again(request, "/")


@router.post("/query/preview", response_class=HTMLResponse)
def look_first(request: Request, office: Here, database: Name = "", sql: Sql = "", values: Name = "") -> HTMLResponse:
    """The columns of the answer, and its first records if asked; nothing until both fields say something."""
    if not (database.strip() and sql.strip()):
        return HTMLResponse("")
    source = office.workspace.relative(office.workspace.inside(database))
    return _preview(request, office, work.look_at_answer, {"path": source}, sql, bool(values))


@router.post("/query", response_class=HTMLResponse)
def query(request: Request, office: Here, database: Name, sql: Sql) -> HTMLResponse:
    """Save the answer of a query on a database of the working folder as a file, and open it."""
    source = office.workspace.relative(office.workspace.inside(database))
    folder = office.workspace.folder / UPLOAD_FOLDER
    if not folder.is_dir():
        system.make_folder(folder, private=True)
    place = free(folder / "query.parquet")
    office.desk.ask(work.answer, office.workspace.folder, {"data": {"path": source}}, sql, place)
    begin(office, request, place)
    return again(request, "/")


def _preview(request: Request, office: Office, question: Any, data: dict[str, Any], *more: Any) -> HTMLResponse:
    """What would be read, or the sentence that says why it cannot be."""
    try:
        columns = office.desk.ask(question, office.workspace.folder, {"data": data}, *more)
    except EquipoiseError as error:
        return part(request, "import_preview.html", read=None, problem=without_folders(str(error)))
    return part(request, "import_preview.html", read=columns, problem="")


def _panel(request: Request, office: Office, name: str) -> HTMLResponse:
    current = office.policy.get("data", {})
    data = current if current.get("path") == name else {"path": name}
    fields = office.desk.ask(work.fields, office.workspace.folder, {"data": data})
    return part(request, "import.html", name=name, fields=fields)


def _data(office: Office, form: ReadingForm) -> dict[str, Any]:
    """The section [data] of a policy from a form, its paths inside the working folder."""
    name = office.workspace.relative(office.workspace.inside(form.name))
    options = work.options_of({option: getattr(form, option) for option in work.OPTIONS})
    if "metadata" in options:
        options["metadata"] = office.workspace.relative(office.workspace.inside(options["metadata"]))
    return {"path": name, **options}
