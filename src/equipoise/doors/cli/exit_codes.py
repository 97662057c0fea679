"""Exit codes and error messages of the command line: one line on stderr, or one per problem; no data is quoted."""

import json
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from io import BufferedWriter, FileIO, TextIOWrapper
from pathlib import Path
from typing import Any

from equipoise.ground.errors import EquipoiseError, debugging, engine_words, of_engine, shortened
from equipoise.ground.interrupts import ended_like_interrupt
from equipoise.ground.quiet_panics import own_words
from equipoise.ground.system import close_output, disk_error, open_standard_streams
from equipoise.ground.whole_files import watching

BAD_INPUT, INTERNAL, INTERRUPTED = 2, 3, 130


def guarded(work: Callable[[], None], *, as_json: bool = False) -> int:
    """Run the work and return its exit code. Warnings are silent: scores carry the same words as notes."""
    with watching() as standing:
        return _ended(work, standing, as_json)


def _ended(work: Callable[[], None], standing: list[Path], as_json: bool) -> int:
    try:
        with warnings.catch_warnings(), ended_like_interrupt():
            _prepare_streams()
            if not debugging():
                warnings.simplefilter("ignore")
            with own_words():
                work()
            sys.stdout.flush()
    except BrokenPipeError:
        return _reader_left()
    except BaseException as error:
        return _report_error(error, standing, as_json)
    return 0


def _report_error(error: BaseException, standing: list[Path], as_json: bool) -> int:
    """Print what went wrong and return the exit code."""
    import typer

    if isinstance(error, SystemExit | typer.Exit):
        return int((error.code if isinstance(error, SystemExit) else error.exit_code) or 0)
    if debugging():
        traceback.print_exception(error)
    code, words = outcome(error)
    if standing and not isinstance(error, EquipoiseError):
        words = words.replace(" Nothing was released.", "")
        _say(one_line(f"{str(standing[-1])!r} was written and is whole; what should have followed was not: {words}"))
        _end_output()
        return 0
    words, problems = one_line(words), getattr(error, "problems", ())
    if as_json and not isinstance(error, OutputLost):
        several = {"problems": [problem.to_plain() for problem in problems]} if problems else {}
        with suppress(OSError):
            print(json.dumps({"error": words, "exit_code": code, **several}), flush=True)
    if len(problems) > 1:
        words = f"{words.partition('. ')[0]}.\n" + "\n".join(f"  {one_line(str(problem))}" for problem in problems)
    _say(words)
    _end_output()
    return code


def _say(words: str) -> None:
    print(f"equipoise: {words}", file=sys.stderr, flush=True)


def outcome(error: BaseException) -> tuple[int, str]:
    """Exit code and message of an error; the text of an unexpected one may quote data and is left out."""
    import typer

    notes = "".join(f" {note}" for note in getattr(error, "__notes__", ()))
    if isinstance(error, EquipoiseError):
        return error.exit_code, f"{error}{notes}"
    if isinstance(error, OutputLost):
        return BAD_INPUT, f"Standard output cannot be written: {str(error.strerror).lower()}."
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return INTERRUPTED, f"Stopped. Nothing was released.{notes}"
    if isinstance(error, typer.TyperException):
        return BAD_INPUT, shortened(error.format_message())
    if of_engine(error):
        return BAD_INPUT, f"{engine_words(error)}{notes}"
    if isinstance(error, MemoryError):
        return BAD_INPUT, "There is not enough memory for this: use fewer columns or records, or a larger machine."
    if isinstance(error, OSError) and (reason := disk_error(error)[1]):
        return BAD_INPUT, f"{shortened(f'{reason}: {str(error.filename)!r}') if error.filename else reason}.{notes}"
    name = type(error).__name__
    if isinstance(error, RecursionError):
        return BAD_INPUT, "The input is nested too deeply."
    advice = "please report it. EQUIPOISE_DEBUG=1 shows where, and may show data."
    return INTERNAL, f"internal error ({name}); {advice}{notes}"


def one_line(text: str) -> str:
    """Text on one line that cannot steer a terminal.

    >>> one_line("a\\n b\\x1b[2J")
    'a b\\\\x1b[2J'
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(text.split()))


def _prepare_streams() -> None:
    """Escape characters that the terminal cannot show, and tell failures of output and messages from others.

    Where a stream was closed (`>&-`), no file that is opened later takes its number.
    """
    open_standard_streams()
    for name, raw in (("stdout", _Output), ("stderr", _Messages)):
        stream = getattr(sys, name)
        if isinstance(stream, TextIOWrapper) and stream is getattr(sys, f"__{name}__") and _has_number(stream):
            stream.flush()
            under = BufferedWriter(raw(stream.fileno(), "wb", closefd=False))
            setattr(sys, name, TextIOWrapper(under, stream.encoding, line_buffering=stream.line_buffering))
        if isinstance(stream := getattr(sys, name), TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _has_number(stream: TextIOWrapper) -> bool:
    try:
        return stream.fileno() >= 0
    except (OSError, ValueError):
        return False


class OutputLost(OSError):
    """Standard output cannot be written."""


class _Output(FileIO):
    """Standard output, whose failure is told from that of other files."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputLost(error.errno, error.strerror) from None


class _Messages(FileIO):
    """Standard error: what cannot be written there has nowhere else to go, and ends no run."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError:
            return len(data)


def _end_output() -> None:
    """Leave nothing in standard output that Python would fail to write when it ends."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        close_output()


def _reader_left() -> int:
    """End quietly when the reader of our output (`| head`) has closed the pipe."""
    close_output()
    return 0
