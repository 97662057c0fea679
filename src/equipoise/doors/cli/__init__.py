"""The command line: `equipoise VERB`, each verb one public function of the same name.

Exit codes: 0 done, 1 refused by policy, 2 bad input, 3 internal or missing extra, 130 interrupted. What went wrong is
one line on stderr; with `--json` stdout always holds one JSON object, then `{"error": ..., "exit_code": ...}`.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from equipoise import __version__
from equipoise.doors.cli.exit_codes import guarded
from equipoise.ground.system import refuse_few_addresses
from equipoise.ground.whole_files import clear_dead


def main(args: Sequence[str] | None = None) -> int:
    """Run one command; give its exit code. Without arguments it is the help."""
    arguments = list(sys.argv[1:] if args is None else args) or ["--help"]
    if arguments == ["--version"]:
        print(f"equipoise {__version__}")
        return 0
    return guarded(lambda: _invoke(arguments), as_json="--json" in arguments)


def _invoke(args: list[str]) -> None:
    refuse_few_addresses()
    from equipoise.doors.cli.command import command

    _clear_dead(args)
    with command().make_context("equipoise", args) as context:
        context.command.invoke(context)


def _clear_dead(args: list[str]) -> None:
    """Clear what runs that were killed left at the places that are named; say what nobody can tell from a live one."""
    for word in args:
        for stage in clear_dead(Path(word.partition("=")[2] if word.startswith("-") else word)):
            print(
                f"equipoise: {str(stage)!r} may be left of a run that was killed: this drive has no locks to tell. "
                "Remove it if nothing is running.", file=sys.stderr,
            )  # fmt: skip
