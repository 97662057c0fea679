"""The app: routes behind the guard, and what happens when something goes wrong."""

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

from equipoise import __version__
from equipoise.doors.web import render
from equipoise.doors.web.app_state import Office
from equipoise.doors.web.pages import routers
from equipoise.doors.web.request_guard import App, Entry, Guard, TooLarge
from equipoise.ground.errors import EquipoiseError

LOG = logging.getLogger("equipoise.web")
IMPORTS = '{"imports": {"vega-util": "/static/vega-util.js"}}'
"""Where a vendored script finds another; the only script that stands in a page."""
STATUS = {"RefusedError": 409, "MissingExtraError": 501, "Stale": 409}


def build(office: Office, entry: Entry) -> App:
    """The app for one office, behind its guard."""
    app = FastAPI(title="Equipoise workbench", version=__version__, docs_url=None, redoc_url=None, lifespan=_life)
    app.state.office = office
    for router in routers():
        app.include_router(router)
    app.add_exception_handler(EquipoiseError, _refused)
    app.add_exception_handler(RequestValidationError, _unfit)
    app.add_exception_handler(HTTPException, _lost)
    app.add_exception_handler(Exception, _failed)
    render.templates().globals.update(imports=IMPORTS)
    entry.allowed = f"'sha256-{base64.b64encode(hashlib.sha256(IMPORTS.encode()).digest()).decode()}'"
    return Guard(_Quiet(app), entry)


class _Quiet:
    """The app, whose unforeseen errors were told already: nothing of them is printed, they may quote data."""

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
async def _life(app: FastAPI) -> AsyncIterator[None]:
    yield
    app.state.office.close()


def _refused(request: Request, error: Exception) -> Response:
    """What the user can mend, in one sentence."""
    status = STATUS.get(type(error).__name__, 422)
    problems = error.problems if isinstance(error, EquipoiseError) else ()
    return render.notice(request, str(error), status=status, problems=problems)


def _unfit(request: Request, error: Exception) -> Response:
    """A form that is not as it should be; what it held is not repeated."""
    found = error.errors() if isinstance(error, RequestValidationError) else []
    named = sorted({str(problem["loc"][-1]) for problem in found})
    return render.notice(request, f"This is missing or not as it should be: {', '.join(named)}.", status=422)


def _lost(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    words = "There is no such page." if status == 404 else "That cannot be done here."
    return render.notice(request, words, status=status)


def _failed(request: Request, error: Exception) -> Response:
    """Unforeseen: the class of the error, never its text."""
    words = f"Internal error ({type(error).__name__}): please report it. Your data is not changed."
    return render.notice(request, words, status=500)
