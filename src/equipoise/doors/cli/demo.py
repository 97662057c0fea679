"""The verb `demo`: write an invented file with its policy into a folder, and find its best release."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

import equipoise as eq
from equipoise.demo import KITS, Kit, find_kit, write
from equipoise.doors.cli import json_answers, screens
from equipoise.doors.cli import shared_options as o
from equipoise.doors.cli.progress_bar import bar
from equipoise.ground.errors import DataError
from equipoise.ground.system import remove_folder, shell_word

Name = Annotated[str, typer.Argument(metavar="NAME", help=f"{', '.join(KITS)}.")]


def demo(
    name: Name = "survey",
    out: Annotated[Path, typer.Option(help="The folder to make.", metavar="DIR")] = Path("equipoise-demo"),
    overwrite: o.Overwrite = False,
    as_json: o.AsJson = False,
) -> None:
    """Make an invented file (housing survey, business survey or hospital stays), and find the best release of it."""
    kit = find_kit(name)
    with _undone(out, kit, overwrite), bar("measuring and writing the release") as progress:
        policy = write(out, name)
        release = eq.balance(policy, overwrite=overwrite, progress=progress)
        assert isinstance(release, eq.Release)
    if as_json:
        json_answers.show(json_answers.release(release, searched=True))
    else:
        screens.release(release, searched=True)
        _next_steps(kit, policy, release)


def _next_steps(kit: Kit, policy: Path, release: "eq.Release") -> None:
    """Show what to try after the demo."""
    name, data, folder = (shell_word(p) for p in (policy, policy.with_name(kit.data), release.folder))
    steps = [
        ("Open your report in a browser", release.report.resolve().as_uri()),
        ("See on a page what every choice does", f"equipoise open {name}"),
        (f"Change a limit in {name}, and run it again", f"equipoise balance {name} --overwrite"),
    ]
    for file in kit.policies[1:]:
        other = shell_word(policy.with_name(file))
        words = "Protect a table of it" if "table" in file else "Compare six methods on one map (half a minute)"
        steps.append((words, f"equipoise balance {other}"))
    others = ", ".join(f"equipoise demo {other}" for other in KITS if other != kit.name)
    steps += [
        ("Try to break the release", f"equipoise attack {folder} --against {data} --roles {name}"),
        ("See what the columns of a file of yours are", "equipoise roles FILE --out roles.toml"),
        ("See what is at stake in it", "equipoise assess FILE --roles roles.toml"),
        ("Other trades", others),
    ]
    screens.steps(*steps)


@contextmanager
def _undone(folder: Path, kit: Kit, overwrite: bool) -> Iterator[None]:
    """Remove a demo folder that was not written completely."""
    files = [folder / name for name in kit.files]
    if not overwrite and any(file.exists() for file in files):
        raise DataError(f"{str(folder)!r} holds a demo already: name another folder, or add --overwrite.")
    fresh = next((place for place in (*reversed(folder.parents), folder) if not place.exists()), None)
    try:
        for file in files:
            file.unlink(missing_ok=True)
        yield
    except BaseException:
        for file in files:
            file.unlink(missing_ok=True)
        if fresh:
            remove_folder(fresh)
        raise
