"""Pages of the web app, each with its own router."""

from collections.abc import Iterator
from importlib import import_module

from fastapi import APIRouter

PAGES = (
    "assets",
    "open_file",
    "import_file",
    "history",
    "understand",
    "shape",
    "balance",
    "candidates",
    "tables",
    "publish",
    "release",
)


def routers() -> Iterator[APIRouter]:
    """The routers of all pages."""
    for name in PAGES:
        router: APIRouter = import_module(f"{__name__}.{name}").router
        yield router
