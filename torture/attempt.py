"""One attempt on the package, and the judgement of what came of it."""

import hashlib
import os
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CANARY = "CANARY7731"
CANARY_NUMBER = 7731773.25
"""Values planted in the data: no message, screen or repr may show them."""
CANARIES = (CANARY, "7731773")
MISSING_EXTRA = re.compile(r"pip install")


@dataclass(frozen=True)
class Attempt:
    """A command line, or a call of Python, in a folder; `writes` are the paths that it may make or change."""

    words: str
    args: list[str] = field(default_factory=list)
    call: Callable[[], Any] | None = None
    writes: tuple[str, ...] = ("out",)
    wrong_type: str | None = None
    """The parameter that is given an object of no use: it must be refused by name."""
    names: tuple[str, ...] = ()
    """The parameters of the call: a TypeError must name one of them."""


@dataclass(frozen=True)
class Outcome:
    """Whether an attempt was answered, and the faults of the answer."""

    words: str
    answer: str
    faults: tuple[str, ...] = ()


def judged(attempt: Attempt, folder: Path) -> Outcome:
    """Run the attempt in its folder, where its files are, and judge the answer."""
    before = _contents(folder)
    with _inside(folder), _captured(folder.parent) as written:
        answer, faults = _called(attempt) if attempt.call else _commanded(attempt.args)
    out, err = written()
    faults += [f"stderr: {_first(err, mark)}" for mark in ("Traceback", "panicked at", "RuntimeWarning") if mark in err]
    faults += [f"shows a data value: {_first(out + err + answer, c)}" for c in CANARIES if c in out + err + answer]
    if not attempt.call and answer != "0" and len(err) > 20_000:
        faults.append(f"a message of {len(err)} characters")
    faults += _left(
        before, {name: mark for name, mark in _contents(folder).items() if not _told(name, err)}, attempt, answer
    )
    last = err.strip().splitlines()[-1][:300] if err.strip() else ""
    return Outcome(attempt.words, f"{answer} {last}".strip()[:400], tuple(faults))


def _commanded(args: list[str]) -> tuple[str, list[str]]:
    from equipoise.doors.cli import main

    try:
        code = main(args)
    except BaseException as error:
        return "raised", [f"raised {type(error).__name__}"]
    return str(code), [] if code in (0, 1, 2) else [f"exit {code}"]


def _called(attempt: Attempt) -> tuple[str, list[str]]:
    from equipoise import EquipoiseError

    assert attempt.call is not None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = attempt.call()
            text = repr(result)
    except EquipoiseError as error:
        return f"{type(error).__name__}: {error}", []
    except TypeError as error:
        text = str(error)
        own = "argument" in text or any(name in text for name in attempt.names)
        return f"TypeError: {text}", [] if own else [f"TypeError without the parameter: {text[:200]}"]
    except BaseException as error:
        return type(error).__name__, [f"raw {type(error).__name__}: {str(error)[:200]}"]
    return text[:5000], [f"accepted {attempt.wrong_type}"] if attempt.wrong_type else []


def _left(before: dict[str, str], after: dict[str, str], attempt: Attempt, answer: str) -> list[str]:
    """Inputs that changed, and files that should not be there."""
    mine = lambda name: any(name == path or name.startswith(path + "/") for path in attempt.writes)
    faults = [f"input changed: {name}" for name, mark in before.items() if after.get(name) != mark and not mine(name)]
    new = [name for name in after if name not in before]
    ended = answer == "0" or attempt.call is not None
    faults += [f"left behind: {name}" for name in new if ".partial" in name or not (mine(name) or ended)]
    data = [name for name in new if mine(name) and "public/data" in name]
    if answer not in ("0",) and not attempt.call and data:
        faults.append(f"data though it ended with {answer}: {data[0]}")
    return faults


def _told(name: str, message: str) -> bool:
    """Whether a file is the journal of a search that was broken off, which stays, and the message names it."""
    return name.endswith(".journal") and name in message


def _contents(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() or path.is_symlink())
    return {path.relative_to(folder).as_posix(): _hash(path) for path in files}


def _hash(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes()).hexdigest() if path.is_file() else ""


def _first(text: str, mark: str) -> str:
    return next((line for line in text.splitlines() if mark in line), "")[:300]


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Work in the folder; what is put among temporary files is seen too."""
    place, temporary = Path.cwd(), tempfile.tempdir
    os.chdir(folder)
    tempfile.tempdir = str(folder)
    try:
        yield
    finally:
        os.chdir(place)
        tempfile.tempdir = temporary


@contextmanager
def _captured(place: Path) -> Iterator[Callable[[], tuple[str, str]]]:
    """What is written to the two outputs, by whatever language writes it."""
    import sys

    logs = [(place / name).open("w+b") for name in ("stdout.log", "stderr.log")]
    kept = [os.dup(1), os.dup(2)]
    sys.stdout.flush()
    sys.stderr.flush()
    for number, log in enumerate(logs, 1):
        os.dup2(log.fileno(), number)
    try:
        yield lambda: tuple(Path(log.name).read_text("utf-8", errors="replace") for log in logs)  # type: ignore[return-value]
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, saved in enumerate(kept, 1):
            os.dup2(saved, number)
            os.close(saved)
        for log in logs:
            log.close()
