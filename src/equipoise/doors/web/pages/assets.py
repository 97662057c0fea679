"""Static files of the pages: scripts, styles and images, all shipped with the package."""

from importlib.resources import files

from fastapi import APIRouter, HTTPException
from fastapi.responses import Response

router = APIRouter()
MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
ASSET_FOLDERS = (
    ("equipoise.doors.web", "static"),
    ("equipoise.doors.report", "assets"),
    ("equipoise.doors.report", "templates"),
)


@router.get("/static/{name}", include_in_schema=False)
def static(name: str) -> Response:
    """A static file by its name; those of the reports are shared."""
    for home, folder in ASSET_FOLDERS:
        place = files(home).joinpath(folder, name)
        kind = next((kind for ending, kind in MEDIA_TYPES.items() if name.endswith(ending)), None)
        if kind and "/" not in name and "\\" not in name and place.is_file():
            return Response(place.read_bytes(), media_type=kind, headers={"Cache-Control": "private, max-age=3600"})
    raise HTTPException(404)
