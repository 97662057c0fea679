"""The verb `open`: the workbench, a web page on this machine."""

from pathlib import Path
from typing import Annotated

import typer

import equipoise as eq
from equipoise.doors.cli import screen_parts
from equipoise.doors.cli.declared_options import argument, option
from equipoise.doors.cli.exit_codes import one_line

FOLDER = "The folder to work in; nothing outside it is read. That of FILE, or this one."


def open_page(
    file: Annotated[Path | None, argument("FILE|POLICY.toml", "What to open.")] = None,
    folder: Annotated[Path | None, option(FOLDER, "FOLDER")] = None,
    port: Annotated[int, typer.Option(help="The port on this machine; any free one when 0.", metavar="N")] = 0,
    largest: Annotated[int, typer.Option(help="Megabytes that an uploaded file may have.", metavar="MB", min=1)] = 2048,
    browser: Annotated[bool, typer.Option(help="Open the browser.")] = True,
) -> None:
    """Open the workbench: a local page on which a file goes from raw to released, and every choice shows what it does.

    The session is kept in the folder: open it again to go on. Stop with Ctrl-C.
    """
    place = folder or (file.parent if file is not None else Path())

    def show(address: str) -> None:
        screen = screen_parts.screen()
        screen_parts.say(screen, "The workbench is open", "at this address, for one browser, once:")
        print(address, flush=True)
        where = one_line(str(place.resolve()))
        screen_parts.say(screen, "Working folder", f"{where}. Stop with Ctrl-C; the session is kept.")

    open_workbench = eq.open
    open_workbench(file, folder=place, port=port, largest=largest << 20, browser=browser, show=show)
    print("Closed; the session is kept.")
