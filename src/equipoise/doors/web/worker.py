"""Worker process that holds the data and answers one question at a time."""

import logging
from collections.abc import Callable
from threading import Lock
from typing import Any

from equipoise.doors.web.full_paths import without_folders
from equipoise.doors.web.memory import Memory
from equipoise.ground import errors
from equipoise.ground.errors import EngineError, EquipoiseError
from equipoise.ground.system import Helper

LOG = logging.getLogger("equipoise.web")
LOST_TEXT = "The work stopped unexpectedly, perhaps for want of memory. Nothing was written; try again, or with less."
ErrorMessage = tuple[str, str, tuple[Any, ...]]
"""An error as it is sent between processes: its class, its message, its single problems."""


class Desk:
    """Access to the worker process; starts it when needed, and again when it was lost."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._helper: Helper | None = None

    def ask(self, question: Callable[..., Any], *arguments: Any) -> Any:
        """The answer of `question(memory, *arguments)`, computed in the worker process. Only plain data is sent."""
        with self._lock:
            if self._helper is None:
                self._helper = Helper(serve_questions)
            try:
                self._helper.pipe.send((question, arguments))
                fine, answer = self._helper.pipe.recv()
            except (EOFError, OSError):
                self._helper = None
                raise EngineError(LOST_TEXT) from None
        if not fine:
            raise error_of(answer)
        return answer

    def close(self) -> None:
        if self._helper is not None:
            self._helper.stop()
            self._helper = None


def serve_questions(pipe: Any) -> None:
    """Answer questions in the worker process until the pipe is closed."""
    import warnings

    warnings.simplefilter("ignore")
    memory = Memory()
    while True:
        try:
            question, arguments = pipe.recv()
        except EOFError:
            return
        pipe.send(answer_of(question, memory, *arguments))


def answer_of(work: Callable[..., Any], *arguments: Any) -> tuple[bool, Any]:
    """Whether the work succeeded, and its answer or the error message."""
    try:
        return True, work(*arguments)
    except Exception as error:
        return False, error_message(error)


def error_message(error: BaseException) -> ErrorMessage:
    """An error without data: the text of an unexpected one may quote data and is left out."""
    if isinstance(error, EquipoiseError):
        return type(error).__name__, without_folders(str(error)), error.problems
    if isinstance(error, MemoryError):
        return "EngineError", LOST_TEXT, ()
    if isinstance(error, OSError) and error.strerror:
        return "DataError", f"{error.strerror}.", ()
    return "EngineError", f"Internal error ({type(error).__name__}): please report it. Your data is not changed.", ()


def error_of(message: ErrorMessage) -> EquipoiseError:
    """The error of a message, to be raised in this process."""
    name, words, problems = message
    error: EquipoiseError = getattr(errors, name, EngineError)(words)
    error.problems = problems
    return error
