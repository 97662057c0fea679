"""The command line: `equipoise VERB`, each verb one public function of the same name.

Exit codes: 0 done, 1 refused by policy, 2 bad input, 3 internal or missing extra, 130 interrupted. What went wrong is
one line on stderr; with `--json` stdout always holds one JSON object, then `{"error": ..., "exit_code": ...}`.
"""

import sys
from collections.abc import Sequence

from equipoise import __version__
from equipoise.doors.cli.exit_codes import guarded


def main(args: Sequence[str] | None = None) -> int:
    """Run one command; give its exit code. Without arguments it is the help."""
    arguments = list(sys.argv[1:] if args is None else args) or ["--help"]
    if arguments == ["--version"]:
        print(f"equipoise {__version__}")
        return 0
    return guarded(lambda: _invoke(arguments), as_json="--json" in arguments)


def _invoke(args: list[str]) -> None:
    from equipoise.doors.cli.command import command

    with command().make_context("equipoise", args) as context:
        context.command.invoke(context)
