"""What pages are made of beside their text: scripts and styles, all shipped."""

from importlib.resources import files

from fastapi import APIRouter, HTTPException
from fastapi.responses import Response

router = APIRouter()
KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
HOMES = (
    ("equipoise.doors.web", "static"),
    ("equipoise.doors.report", "assets"),
    ("equipoise.doors.report", "templates"),
)


@router.get("/static/{name}", include_in_schema=False)
def static(name: str) -> Response:
    """A shipped file by its name; those of the reports are shared."""
    for home, folder in HOMES:
        place = files(home).joinpath(folder, name)
        kind = next((kind for ending, kind in KINDS.items() if name.endswith(ending)), None)
        if kind and "/" not in name and "\\" not in name and place.is_file():
            return Response(place.read_bytes(), media_type=kind, headers={"Cache-Control": "private, max-age=3600"})
    raise HTTPException(404)
