"""The FastAPI app of the workbench: routes behind the request guard, and error handlers."""

import base64
import hashlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from equipoise import __version__
from equipoise.doors.web import render
from equipoise.doors.web.app_state import Office
from equipoise.doors.web.full_paths import without_folders
from equipoise.doors.web.pages import routers
from equipoise.doors.web.request_guard import Entry, Guard, TooLarge
from equipoise.ground.errors import EquipoiseError
from equipoise.ground.system import disk_error

LOG = logging.getLogger("equipoise.web")
IMPORT_MAP = '{"imports": {"vega-util": "/static/vega-util.js"}}'
"""Import map of the vendored scripts; the only inline script of a page."""
ERROR_STATUS = {"MissingExtraError": 501, "Stale": 409}


def build(office: Office, entry: Entry) -> ASGIApp:
    """Build the app for one office, behind its request guard."""
    app = FastAPI(title="Equipoise workbench", version=__version__, docs_url=None, redoc_url=None, lifespan=_lifespan)
    app.state.office = office
    for router in routers():
        app.include_router(router)
    app.add_exception_handler(EquipoiseError, _refusal_notice)
    app.add_exception_handler(RequestValidationError, _bad_form)
    app.add_exception_handler(HTTPException, _no_page)
    app.add_exception_handler(OSError, _disk_notice)
    app.add_exception_handler(Exception, _internal_error)
    render.templates().globals.update(imports=IMPORT_MAP)
    entry.allowed = f"'sha256-{base64.b64encode(hashlib.sha256(IMPORT_MAP.encode()).digest()).decode()}'"
    return Guard(_Quiet(app), entry)


class _Quiet:
    """The app without tracebacks: unexpected errors may quote data, so only their class is logged."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await self.app(scope, receive, send)
        except TooLarge:
            raise
        except Exception as error:
            LOG.error("Internal error (%s) at %s.", type(error).__name__, scope["path"])


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    yield
    app.state.office.close()


def _refusal_notice(request: Request, error: Exception) -> Response:
    """Answer an error that the user can correct, in one sentence."""
    status = ERROR_STATUS.get(type(error).__name__, 422)
    problems = error.problems if isinstance(error, EquipoiseError) else ()
    return render.notice(request, without_folders(str(error)), status=status, problems=problems)


def _bad_form(request: Request, error: Exception) -> Response:
    """Answer an invalid form; its values are not repeated."""
    errors = error.errors() if isinstance(error, RequestValidationError) else []
    fields = sorted({str(problem["loc"][-1]) for problem in errors})
    return render.notice(request, f"This is missing or not as it should be: {', '.join(fields)}.", status=422)


def _no_page(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    words = "There is no such page." if status == 404 else "That cannot be done here."
    return render.notice(request, words, status=status)


def _disk_notice(request: Request, error: Exception) -> Response:
    """Answer a full disk or a folder that may not be written; the path has folders and is left out."""
    words = disk_error(error)[1] or "The system refuses it"
    return render.notice(request, f"{words}. Nothing was changed.", status=422)


def _internal_error(request: Request, error: Exception) -> Response:
    """Answer an unexpected error by its class, never its text."""
    words = f"Internal error ({type(error).__name__}): please report it. Your data is not changed."
    return render.notice(request, words, status=500)
