"""Exit codes and error messages of the command line: one line on stderr, or one per problem; no data is quoted."""

import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from io import TextIOWrapper

from equipoise.ground.errors import EquipoiseError, shortened
from equipoise.ground.system import close_output

BAD_INPUT, INTERNAL, INTERRUPTED = 2, 3, 130
ENGINES = ("polars", "pyo3_runtime", "duckdb", "_duckdb", "pyarrow", "narwhals", "pyspark", "py4j")
"""Packages whose errors are about the data they were given."""


def guarded(work: Callable[[], None], *, as_json: bool = False) -> int:
    """Run the work and return its exit code. Warnings are silent: scores carry the same words as notes."""
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
        return _report_error(error, as_json)
    return 0


def _report_error(error: BaseException, as_json: bool) -> int:
    """Print what went wrong and return the exit code."""
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
    """Exit code and message of an error; the text of an unexpected one may quote data and is left out."""
    import typer

    if isinstance(error, EquipoiseError):
        return error.exit_code, str(error)
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return INTERRUPTED, "Stopped. Nothing was released."
    if isinstance(error, typer.TyperException):
        return BAD_INPUT, shortened(error.format_message())
    if type(error).__module__.partition(".")[0] in ENGINES:
        return BAD_INPUT, (
            f"The engine could not work with the data ({type(error).__name__}): a column is of a type, or has values, "
            "that the method cannot take. EQUIPOISE_DEBUG=1 shows where, and may show data."
        )
    if isinstance(error, MemoryError):
        return BAD_INPUT, "There is not enough memory for this: use fewer columns or records, or a larger machine."
    if isinstance(error, OSError) and error.strerror:
        return BAD_INPUT, f"{error.strerror}{f': {str(error.filename)!r}' if error.filename else ''}."
    name = type(error).__name__
    if isinstance(error, RecursionError):
        return BAD_INPUT, "The input is nested too deeply."
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
    """Escape characters that the terminal cannot show."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _reader_left() -> int:
    """End quietly when the reader of our output (`| head`) has closed the pipe."""
    close_output()
    return 0
