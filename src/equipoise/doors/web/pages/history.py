"""History of the session: the list of steps, undo and redo."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from equipoise.doors.web.app_state import Here
from equipoise.doors.web.render import again, part

router = APIRouter()


@router.get("/steps", response_class=HTMLResponse)
def steps(request: Request) -> HTMLResponse:
    """The toolbar with the steps."""
    return part(request, "steps.html")


@router.post("/undo", response_class=HTMLResponse)
def undo(request: Request, office: Here) -> HTMLResponse:
    """Undo the last step and reload the page."""
    office.undo(request)
    return again(request)


@router.post("/redo", response_class=HTMLResponse)
def redo(request: Request, office: Here) -> HTMLResponse:
    """Redo the step that was undone last."""
    office.redo(request)
    return again(request)
