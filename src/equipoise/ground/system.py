"""The one module that knows the operating system: who may read a file, folders put in place, memory, processes, shell.

Everything else works on paths, with text whose encoding is named. Windows has no modes: there a private folder is as
private as the folder it is made in, and `privacy()` says so.
"""

import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

from equipoise.ground.errors import DataError

WINDOWS = sys.platform == "win32"
OWNER_FOLDER, OWNER_FILE, EVERYBODY_FOLDER = 0o700, 0o600, 0o755
RETRY_PAUSES_SECONDS = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds between tries where another program (a virus scanner, an open editor) holds a file, which Windows allows."""
CONTAINER_LIMIT_FILES = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Files with the bytes that a container may use; psutil sees those of the whole machine."""


# Who may read ---------------------------------------------------------------------------------------------------------


def make_folder(path: Path, *, private: bool) -> None:
    """A new folder, for its owner only when private; at most what the user's own mask allows."""
    path.mkdir(mode=OWNER_FOLDER if private else EVERYBODY_FOLDER)


def restrict(path: Path, *, private: bool = True) -> None:
    """A folder, or a private file, for its owner only or for everybody to read; where there are modes."""
    if WINDOWS:
        return
    if path.is_dir():
        path.chmod(OWNER_FOLDER if private else EVERYBODY_FOLDER)
    elif private:
        path.chmod(OWNER_FILE)


def privacy() -> str:
    """What the user has to see to where folders cannot be made private; nothing where they can."""
    if not WINDOWS:
        return ""
    return "Windows lets whoever may open a folder open those in it: keep this in a folder that only you may open."


def write(path: Path, text: str, *, private: bool = False) -> None:
    """Text in UTF-8 with plain newlines, on the disk when this returns; a private file is new, and its owner's only."""
    if private:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_FILE))
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def append(path: Path, text: str, *, sync: bool) -> None:
    """Text at the end of a file, in the hands of the system when this returns; on the disk too when told to."""
    with path.open("ab") as file:
        file.write(text.encode())
        file.flush()
        if sync:
            os.fsync(file.fileno())


def cut(path: Path, size: int) -> None:
    """Leave so many bytes of a file."""
    if path.stat().st_size > size:
        os.truncate(path, size)


# Put in place ---------------------------------------------------------------------------------------------------------


def move(source: Path, target: Path) -> None:
    """Give a file or folder its name; a file that is there is replaced.

    Windows refuses while another program has the file, or one in the folder, open: this waits a little, then says so.
    """
    for pause in (*RETRY_PAUSES_SECONDS, None):
        try:
            source.replace(target)
            return
        except PermissionError:
            if not WINDOWS:
                raise
            if pause is None:
                raise DataError(
                    f"Cannot put {str(target)!r} in place: another program has it, or a file in it, open."
                ) from None
            time.sleep(pause)


def remove_folder(path: Path) -> None:
    """A folder with all that is in it, as far as it can be; files that are read-only too."""
    if WINDOWS and path.exists():
        for inside in path.rglob("*"):
            inside.chmod(0o700)
    shutil.rmtree(path, ignore_errors=True)


def file_name(text: str) -> str:
    """A name that every system takes for a file.

    >>> file_name("data_3_income: net/gross.cdl")
    'data_3_income_ net_gross.cdl'
    """
    stem, mark, ending = text.rpartition(".")
    plain = "".join("_" if c in '<>:"/\\|?*' or not c.isprintable() else c for c in stem or ending)
    return plain[:100].rstrip(" .") + (mark + ending if stem else "")


# Memory ---------------------------------------------------------------------------------------------------------------


def free_memory() -> int:
    """Free memory in bytes, within the limit of a container."""
    import psutil

    limits = [path.read_text(encoding="ascii").strip() for path in CONTAINER_LIMIT_FILES if path.is_file()]
    return min([int(psutil.virtual_memory().available), *(int(text) for text in limits if text.isdecimal())])


# Processes ------------------------------------------------------------------------------------------------------------


@contextmanager
def workers(number: int, prepare: Callable[..., None], arguments: tuple[Any, ...]) -> Iterator[Executor]:
    """Fresh processes, each prepared once, that end with this one, however it ends.

    What they are given goes through a pipe, never through a file. They do not run the script that started them, so a
    script needs no guard; what it defines itself cannot be sent.
    """
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    pool = ProcessPoolExecutor(number, get_context("spawn"), _prepared, (prepare, arguments))
    try:
        with _without_script():
            for ready in [pool.submit(_nothing) for _ in range(number)]:
                ready.result()
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class Helper:
    """A fresh process that does one piece of work, and the pipe to it; it ends with this one, however that ends.

    The work is called with its end of the pipe, then with what it is given. It does not hear Ctrl-C: whoever started
    it decides.
    """

    def __init__(self, work: Callable[..., None], *given: Any) -> None:
        from multiprocessing import get_context

        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_helped, args=(work, theirs, given))
        with _without_script():
            self.process.start()
        theirs.close()

    def stop(self) -> None:
        """End it now, whatever it does."""
        self.pipe.close()
        self.process.terminate()
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _helped(work: Callable[..., None], pipe: Any, arguments: tuple[Any, ...]) -> None:
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()
    work(pipe, *arguments)


def _prepared(prepare: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    Thread(target=_end_with_parent, daemon=True).start()
    prepare(*arguments)


def _end_with_parent() -> None:
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _nothing() -> None:
    """Work that shows a process is there."""


@contextmanager
def _without_script() -> Iterator[None]:
    """New processes look for the script that runs and import it: here they find none."""
    script = sys.modules["__main__"]
    hidden = {name: getattr(script, name) for name in ("__file__", "__spec__") if hasattr(script, name)}
    try:
        for name in hidden:
            setattr(script, name, None)
        yield
    finally:
        for name, value in hidden.items():
            setattr(script, name, value)


# The shell ------------------------------------------------------------------------------------------------------------


def relative(path: Path, folder: Path) -> str:
    """Where a file is, seen from a folder; in full where there is no way, as between two drives."""
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:
        return str(path.resolve())


def shell_word(text: str | Path) -> str:
    """A name as it is typed on the command line here."""
    word = str(text)
    if WINDOWS:
        return word if word and not set(word) & set(" \t&()[]{}^=;!'+,`~") else f'"{word}"'
    return shlex.quote(word)


def show_page(address: str) -> bool:
    """Open the user's browser where there is a screen to open it on; a browser in the terminal would take it over."""
    if (
        not WINDOWS
        and sys.platform != "darwin"
        and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    ):
        return False
    import webbrowser

    return webbrowser.open(address)


def close_output() -> None:
    """Send what is still printed nowhere: whoever read it has left."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
