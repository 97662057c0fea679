"""Desk: the process that holds the data and answers one question at a time."""

import logging
from collections.abc import Callable
from threading import Lock
from typing import Any

from equipoise.doors.web.memory import Memory
from equipoise.ground import errors
from equipoise.ground.errors import EngineError, EquipoiseError
from equipoise.ground.system import Helper

LOG = logging.getLogger("equipoise.web")
ENDED = "The work stopped unexpectedly, perhaps for want of memory. Nothing was written; try again, or with less."
Told = tuple[str, str, tuple[Any, ...]]
"""An error on its way between processes: its class, its words, its single problems."""


class Desk:
    """Asks its process; starts it when it is needed, and again when it was lost."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._helper: Helper | None = None

    def ask(self, question: Callable[..., Any], *given: Any) -> Any:
        """The answer of `question(held, *given)`, computed where the data is. Both ways plain data is sent."""
        with self._lock:
            if self._helper is None:
                self._helper = Helper(sit)
            try:
                self._helper.pipe.send((question, given))
                fine, answer = self._helper.pipe.recv()
            except (EOFError, OSError):
                self._helper = None
                raise EngineError(ENDED) from None
        if not fine:
            raise raised(answer)
        return answer

    def close(self) -> None:
        if self._helper is not None:
            self._helper.stop()
            self._helper = None


def sit(pipe: Any) -> None:
    """In the desk's process: answer until nobody asks any more."""
    import warnings

    warnings.simplefilter("ignore")
    held = Memory()
    while True:
        try:
            question, given = pipe.recv()
        except EOFError:
            return
        pipe.send(answered(question, held, *given))


def answered(work: Callable[..., Any], *given: Any) -> tuple[bool, Any]:
    """Whether it worked, and the answer or what went wrong."""
    try:
        return True, work(*given)
    except Exception as error:
        return False, told(error)


def told(error: BaseException) -> Told:
    """An error as it may be shown: the text of an unexpected one may quote data and is left out."""
    if isinstance(error, EquipoiseError):
        return type(error).__name__, str(error), error.problems
    if isinstance(error, MemoryError):
        return "EngineError", ENDED, ()
    if isinstance(error, OSError) and error.strerror:
        return "DataError", f"{error.strerror}.", ()
    return "EngineError", f"Internal error ({type(error).__name__}): please report it. Your data is not changed.", ()


def raised(found: Told) -> EquipoiseError:
    """The error again, on this side."""
    name, words, problems = found
    made: EquipoiseError = getattr(errors, name, EngineError)(words)
    made.problems = problems
    return made
