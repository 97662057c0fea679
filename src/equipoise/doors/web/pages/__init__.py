"""The pages, each a router of its own."""

from collections.abc import Iterator
from importlib import import_module

from fastapi import APIRouter

LISTED = (
    "assets", "open_file", "history", "understand", "shape", "balance", "candidates", "tables", "publish", "release",
)  # fmt: skip


def routers() -> Iterator[APIRouter]:
    """The routers of all pages."""
    for name in LISTED:
        found: APIRouter = import_module(f"{__name__}.{name}").router
        yield found
