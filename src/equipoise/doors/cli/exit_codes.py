"""Every way a command can end, as an exit code and words on stderr that quote no data: one line, or one per problem."""

import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from io import TextIOWrapper

from equipoise.ground.errors import EquipoiseError
from equipoise.ground.system import close_output

BAD_INPUT, INTERNAL, INTERRUPTED = 2, 3, 130


def guarded(work: Callable[[], None], *, as_json: bool = False) -> int:
    """Run the work. Warnings stay silent: the same words are on the scores, and shown as notes."""
    _never_fail_to_encode()
    try:
        with warnings.catch_warnings():
            if not debugging():
                warnings.simplefilter("ignore")
            work()
            sys.stdout.flush()
    except BrokenPipeError:
        return _reader_left()
    except BaseException as error:
        return _told(error, as_json)
    return 0


def _told(error: BaseException, as_json: bool) -> int:
    """Say what went wrong; give the exit code."""
    import typer

    if isinstance(error, SystemExit | typer.Exit):
        return int((error.code if isinstance(error, SystemExit) else error.exit_code) or 0)
    if debugging():
        traceback.print_exception(error)
    code, words = outcome(error)
    words, problems = one_line(words), getattr(error, "problems", ())
    if as_json:
        several = {"problems": [problem.to_plain() for problem in problems]} if problems else {}
        print(json.dumps({"error": words, "exit_code": code, **several}))
    if len(problems) > 1:
        words = f"{words.partition('. ')[0]}.\n" + "\n".join(f"  {one_line(str(problem))}" for problem in problems)
    print(f"equipoise: {words}", file=sys.stderr)
    return code


def outcome(error: BaseException) -> tuple[int, str]:
    """The exit code and the words for an error; the text of an unexpected one may quote data and is left out."""
    import typer

    if isinstance(error, EquipoiseError):
        return error.exit_code, str(error)
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return INTERRUPTED, "Stopped. Nothing was released."
    if isinstance(error, typer.TyperException):
        return BAD_INPUT, error.format_message()
    if isinstance(error, OSError) and error.strerror:
        return BAD_INPUT, f"{error.strerror}{f': {str(error.filename)!r}' if error.filename else ''}."
    name = type(error).__name__
    return INTERNAL, f"internal error ({name}); please report it. EQUIPOISE_DEBUG=1 shows where, and may show data."


def one_line(text: str) -> str:
    """Text on one line that cannot steer a terminal.

    >>> one_line("a\\n b\\x1b[2J")
    'a b\\\\x1b[2J'
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(text.split()))


def debugging() -> bool:
    return os.environ.get("EQUIPOISE_DEBUG", "") not in ("", "0")


def _never_fail_to_encode() -> None:
    """A name that the terminal cannot show is escaped."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _reader_left() -> int:
    """Whoever read our output (`| head`) has seen enough; nothing is left to flush into the closed pipe."""
    close_output()
    return 0
