"""Operating system access: file permissions, atomic moves, memory, processes, shell, data files of the package.

All other modules work on paths, with text whose encoding is named. Windows has no modes: there a private folder is as
private as the folder it is made in, and `privacy()` tells the user.
"""

import errno
import math
import os
import re
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any

from equipoise.ground.errors import DataError

WINDOWS = sys.platform == "win32"
PACKAGE = Path(__file__).parents[1]
OWNER_FOLDER, OWNER_FILE, EVERYBODY_FOLDER = 0o700, 0o600, 0o755
AT_FOLDER, AT_FOLDER_MACOS, SWAP = -100, -2, 2
"""Numbers of the system calls that exchange two names: relative to the working folder; exchange."""
RETRY_PAUSES_SECONDS = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds between tries where another program (a virus scanner, an open editor) holds a file, which Windows allows."""
CONTROL_GROUPS, OWN_CONTROL_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
"""Where Linux keeps the limits of containers and services, and which of them this process is in."""
CONTROL_GROUP_FILES = (
    ("memory.max", "memory.current"), ("memory.high", "memory.current"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes"),
)  # fmt: skip
"""Limit and use of memory of a control group, in bytes: in version 2, and in version 1."""


@cache
def packaged(place: str) -> dict[str, Any]:
    """Texts, patterns or figures from a TOML file, read once; `place` is its path inside the package."""
    import tomllib

    return tomllib.loads((PACKAGE / place).read_text(encoding="utf-8"))


def make_folder(path: Path, *, private: bool) -> None:
    """Create a folder, readable by its owner alone when private; never more open than the user's umask allows."""
    path.mkdir(mode=OWNER_FOLDER if private else EVERYBODY_FOLDER)


def restrict(path: Path, *, private: bool = True) -> None:
    """Set the mode of a folder or private file: owner only, or readable by everybody. No effect on Windows."""
    if WINDOWS:
        return
    if path.is_dir():
        path.chmod(OWNER_FOLDER if private else EVERYBODY_FOLDER)
    elif private:
        path.chmod(OWNER_FILE)


def privacy() -> str:
    """Advice to the user where folders cannot be made private; empty where they can."""
    if not WINDOWS:
        return ""
    return "Windows lets whoever may open a folder open those in it: keep this in a folder that only you may open."


def write(path: Path, text: str, *, private: bool = False) -> None:
    """Write text in UTF-8 with plain newlines, synced to disk; a private file must be new and is owner-only."""
    if private:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_FILE))
    with _named(path), path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def disk_error(error: BaseException) -> tuple[int | None, str]:
    """Number and words of an error of the system, also where an engine gives it as text; empty where it is none."""
    number = getattr(error, "errno", None)
    if number is None and (match := re.search(r"\(os error (\d+)\)", str(error))):
        number = int(match[1])
    return number, os.strerror(number) if number is not None else ""


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Say which file could not be written: a full disk does not."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def append(path: Path, text: str, *, sync: bool) -> None:
    """Append text to a file and flush it; with `sync` also to the disk."""
    with _named(path), path.open("ab") as file:
        file.write(text.encode())
        file.flush()
        if sync:
            os.fsync(file.fileno())


def cut(path: Path, size: int) -> None:
    """Truncate a file to `size` bytes."""
    if path.stat().st_size > size:
        os.truncate(path, size)


def move(source: Path, target: Path) -> None:
    """Move a file or folder to its final name; an existing file is replaced.

    Windows refuses while another program has the file, or one in the folder, open: this retries, then raises.
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


def exchange(one: Path, other: Path) -> bool:
    """Swap two names in one step, where the system can; else nothing happens and this is False."""
    import ctypes

    swap = {"linux": ("renameat2", AT_FOLDER), "darwin": ("renameatx_np", AT_FOLDER_MACOS)}.get(sys.platform)
    function = getattr(ctypes.CDLL(None, use_errno=True), swap[0], None) if swap else None
    if swap is None or function is None:
        return False
    sys.audit("os.rename", str(one), str(other), -1, -1)
    if function(swap[1], os.fsencode(one), swap[1], os.fsencode(other), ctypes.c_uint(SWAP)) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number), str(other))


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk; Windows cannot do that for folders."""
    if WINDOWS and path.is_dir():
        return
    number = os.open(path, os.O_RDWR if WINDOWS else os.O_RDONLY)
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(number)


def sync_all(folder: Path) -> None:
    """Wait until a folder is on disk with all that is in it."""
    for path in (*folder.rglob("*"), folder):
        sync(path)


def remove_folder(path: Path) -> None:
    """Delete a folder with its contents as far as possible, read-only files too."""
    if WINDOWS and path.exists():
        for inside in path.rglob("*"):
            inside.chmod(0o700)
    shutil.rmtree(path, ignore_errors=True)


def file_name(text: str) -> str:
    """A file name that is valid on every system.

    >>> file_name("data_3_income: net/gross.cdl")
    'data_3_income_ net_gross.cdl'
    """
    stem, mark, ending = text.rpartition(".")
    plain = "".join("_" if c in '<>:"/\\|?*' or not c.isprintable() else c for c in stem or ending)
    return plain[:100].rstrip(" .") + (mark + ending if stem else "")


RESERVED_ADDRESSES = 600_000_000
"""Bytes of a limit on addresses (`ulimit -v`) that threads and allocators take without using them; engines that find
none left wait for ever instead of failing."""
LEAST_ADDRESSES = 2_500_000_000
"""Smallest limit on addresses (`ulimit -v`) under which every verb works: engines abort, or wait for ever, under 2 GB
however small the data (measured with 2 and with 16 threads)."""


def refuse_few_addresses() -> None:
    """Refuse a limit on addresses that leaves engines too few to start, in a sentence, before one of them aborts."""
    limit = _address_limit()
    if limit is not None and limit < LEAST_ADDRESSES:
        raise DataError(
            f"This process may take {limit / 1e9:.1f} GB of addresses (ulimit -v) and needs "
            f"{LEAST_ADDRESSES / 1e9:.1f} GB to start, before any data: raise that limit, "
            "or limit the memory of a container instead."
        )


def _address_limit() -> int | None:
    if WINDOWS:
        return None
    import resource

    soft = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def free_memory() -> int:
    """Free memory in bytes, within the limit of a container and of this process (`ulimit -v`)."""
    import psutil

    own, addresses = psutil.Process().memory_info(), _address_limit()
    limits = [_free_in(folder, own.rss) for folder in _control_groups()]
    limits += [] if addresses is None else [addresses - own.vms - RESERVED_ADDRESSES]
    return int(max(0, min([psutil.virtual_memory().available, *limits])))


def _control_groups() -> Iterator[Path]:
    """The folders of the control groups that limit the memory of this process: its own and those above it."""
    for controllers, path in re.findall(r"^\d+:(.*?):(.*)$", _system_text(OWN_CONTROL_GROUPS), re.M):
        if controllers and "memory" not in controllers.split(","):
            continue
        parts = [part for part in path.split("/") if part not in ("", "..")]
        for root in (CONTROL_GROUPS, CONTROL_GROUPS / "memory", CONTROL_GROUPS / "unified"):
            yield from (root.joinpath(*parts[:depth]) for depth in range(len(parts) + 1))


def _free_in(group: Path, own: int) -> float:
    """Bytes that a control group has left; files that it keeps in memory can be dropped and do not count."""
    free = math.inf
    for limit_file, use_file in CONTROL_GROUP_FILES:
        limit, use = _system_text(group / limit_file), _system_text(group / use_file)
        if limit.isdecimal():
            stat = dict(
                re.findall(r"^(?:total_)?((?:in)?active_file) (\d+)$", _system_text(group / "memory.stat"), re.M)
            )
            used = int(use) - sum(map(int, stat.values())) if use.isdecimal() else own
            free = min(free, int(limit) - max(used, own))
    return free


def _system_text(path: Path) -> str:
    """What the system says in a file; nothing where there is none, or it may not be read."""
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def cores() -> int:
    """Processors that this process may use; at most 61 on Windows, which waits for no more processes at once."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    number = os.cpu_count() or 1
    return min(number, 61) if WINDOWS else number


@contextmanager
def workers(number: int, prepare: Callable[..., None], arguments: tuple[Any, ...]) -> Iterator[Executor]:
    """A pool of new processes, each prepared once, that end with this one, however it ends.

    Arguments go through a pipe, never through a file. The processes do not run the script that started them, so a
    script needs no `__main__` guard; functions that it defines itself cannot be sent.
    """
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    pool = ProcessPoolExecutor(number, get_context("spawn"), _prepare_worker, (prepare, arguments))
    try:
        with _without_script():
            for ready in [pool.submit(_nothing) for _ in range(number)]:
                ready.result()
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def own_process(program: str, *arguments: str) -> Iterator[Any]:
    """A small Python program in a process of its own, with a pipe to each of its ends: it may die, and does no harm."""
    import subprocess

    flags = getattr(subprocess, "CREATE_NO_WINDOW", 0)
    command, pipe = [sys.executable, "-c", program, *arguments], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, creationflags=flags) as process:
        try:
            yield process
        finally:
            process.kill()


class Helper:
    """A new process for one piece of work, and the pipe to it; it ends with this one, however that ends.

    The work is called with its end of the pipe, then with its arguments. It ignores Ctrl-C: its parent decides.
    """

    def __init__(self, work: Callable[..., None], *arguments: Any) -> None:
        from multiprocessing import get_context

        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_run_helper, args=(work, theirs, arguments))
        with _without_script():
            self.process.start()
        theirs.close()

    def stop(self) -> None:
        """End the process now."""
        self.pipe.close()
        self.process.terminate()
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _run_helper(work: Callable[..., None], pipe: Any, arguments: tuple[Any, ...]) -> None:
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()
    work(pipe, *arguments)


def _prepare_worker(prepare: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    Thread(target=_end_with_parent, daemon=True).start()
    prepare(*arguments)


def _end_with_parent() -> None:
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _nothing() -> None:
    """An empty task: its result shows that a process has started."""


@contextmanager
def _without_script() -> Iterator[None]:
    """Hide the running script, which new processes would import."""
    script = sys.modules["__main__"]
    hidden = {name: getattr(script, name) for name in ("__file__", "__spec__") if hasattr(script, name)}
    try:
        for name in hidden:
            setattr(script, name, None)
        yield
    finally:
        for name, value in hidden.items():
            setattr(script, name, value)


def relative(path: Path, folder: Path) -> str:
    """Path of a file relative to a folder; absolute where there is none, as between two drives."""
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:
        return str(path.resolve())


def stored(path: str | Path) -> Path:
    """The path of something to read; refused where it is a device or a pipe, which may never end."""
    place = Path(path)
    if place.exists() and not (place.is_file() or place.is_dir()):
        raise DataError(f"{str(path)!r} is a device or a pipe, not a file.")
    return place


def is_text(path: Path) -> bool:
    """Whether a path is text in UTF-8: engines cannot open others."""
    return not any("\ud800" <= letter <= "\udfff" for letter in str(path))


def without_links(path: str | Path) -> Path:
    """A path in full, without links; one that leads in a circle, which `Path.resolve` fails at, stays as it is."""
    if "\0" in str(path):
        raise DataError(f"{str(path)!r} can be no path: it has a null character in it.")
    return Path(os.path.realpath(path))


def shell_word(text: str | Path) -> str:
    """A name quoted for the command line of this system."""
    word = str(text)
    if WINDOWS:
        return word if word and not set(word) & set(" \t&()[]{}^=;!'+,`~") else f'"{word}"'
    return shlex.quote(word)


def show_page(address: str) -> bool:
    """Open the user's browser where there is a display; a text browser would take over the terminal."""
    if (
        not WINDOWS
        and sys.platform != "darwin"
        and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    ):
        return False
    import webbrowser

    return webbrowser.open(address)


def close_output() -> None:
    """Redirect standard output to nowhere: its reader has closed the pipe, or it cannot be written."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in {1, sys.stdout.fileno()}:
        os.dup2(nowhere, number)


def open_standard_streams() -> None:
    """Give the numbers 0, 1 and 2 to the standard streams where the caller has closed them.

    What is written to a closed output is lost, and that is an error as of a full disk. A number that a file took while
    Python began stays with it.
    """
    for number, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
        place = number
        try:
            os.fstat(number)
            if getattr(sys, name) is not None:
                continue
            place = os.open(os.devnull, os.O_RDONLY)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDONLY), number)
        setattr(sys, name, os.fdopen(place, "r" if number == 0 else "w", encoding="utf-8", closefd=False))
        if number:
            setattr(sys, f"__{name}__", getattr(sys, name))
