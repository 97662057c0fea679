"""Server of the workbench on this machine, for one user."""

import socket
from collections.abc import Callable
from contextlib import chdir, suppress
from pathlib import Path

import uvicorn

from equipoise.doors.web.app import build
from equipoise.doors.web.app_state import Office
from equipoise.doors.web.pages.open_file import begin_with
from equipoise.doors.web.request_guard import MAX_UPLOAD_BYTES, Entry
from equipoise.doors.web.workspace import Workspace
from equipoise.ground import system
from equipoise.ground.errors import DataError
from equipoise.ground.whole_files import held


def serve(
    folder: Path, *, file: Path | None = None, port: int = 0, largest: int | None = None,
    show: Callable[[str], None] = print,
) -> None:  # fmt: skip
    """Serve on the loopback address until Ctrl-C; `show` is called with the one-time address.

    `file` is opened before the first page. Nothing is logged but the class of an internal error.
    """
    workspace, path = Workspace.at(folder), system.without_links(file) if file is not None else None
    with held(workspace.private / "workbench"):  # a second server would write over the session of the first
        _serve(Office(workspace), path, port, largest, show)


def _serve(office: Office, path: Path | None, port: int, largest: int | None, show: Callable[[str], None]) -> None:
    try:
        with chdir(office.workspace.folder):  # Methods read files relative to it; the guard of paths looks there.
            if path is not None:
                begin_with(office, path)
            with suppress(KeyboardInterrupt), _listening(port) as listener:
                entry = Entry(listener.getsockname()[1], office.csrf, largest or MAX_UPLOAD_BYTES)
                app = build(office, entry)
                config = uvicorn.Config(app, log_level="critical", access_log=False, server_header=False)
                _Announced(config, lambda: show(entry.address)).run([listener])
    finally:
        office.close()


class _Announced(uvicorn.Server):
    """A server that calls `announce` once it answers: Ctrl-C from then on ends it in order."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self.announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.announce()


def _listening(port: int) -> socket.socket:
    """A socket that listens on the loopback address; any free port when none is named.

    The protocol is stated as TCP: asyncio then sends small answers at once, instead of 40 ms later.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen()
    except (OSError, OverflowError):
        listener.close()
        raise DataError(f"Port {port} is taken or not allowed: name another, or none.") from None
    return listener
