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
from equipoise.ground.whole_files import held
from equipoise.policies.policy_file import Job

Name = Annotated[str, typer.Argument(metavar="NAME", help=f"{', '.join(KITS)}.")]


def demo(
    name: Name = "survey",
    out: Annotated[Path, typer.Option(help="The folder to make.", metavar="DIR")] = Path("equipoise-demo"),
    overwrite: o.Overwrite = False,
    as_json: o.AsJson = False,
) -> None:
    """Make an invented file (housing survey, business survey or hospital stays), and find the best release of it."""
    kit = find_kit(name)
    with held(out), _written(out, kit, overwrite) as policy, bar("measuring and writing the release") as progress:
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
def _written(folder: Path, kit: Kit, overwrite: bool) -> Iterator[Path]:
    """The main policy of a demo in this folder: one that a run which was killed left there, or a new one.

    A new one is gone again where its release does not come to be.
    """
    files = [folder / name for name in kit.files]
    main = folder / kit.policies[0]
    if not overwrite and all(file.exists() for file in files) and not Job.load(main).target(main).exists():
        yield main
        return
    if not overwrite and any(file.exists() for file in files):
        raise DataError(f"{str(folder)!r} holds a demo already: name another folder, or add --overwrite.")
    fresh = not folder.exists()
    new = [file for file in files if not file.exists()]
    try:
        yield write(folder, kit.name, overwrite=overwrite)
    except BaseException:
        for file in new:
            file.unlink(missing_ok=True)
        if fresh:
            remove_folder(folder)
        raise
