"""Lock files: one process at a time has a lock, which ends with the process, however that ends."""

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO

from equipoise.ground.system import OWNER_FILE, WINDOWS

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCKED_BYTE = 1 << 30
"""Windows locks bytes: one that no lock file has."""
NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
"""What drives without locks answer."""


class Lock:
    """A lock that this process has; `works` is whether the drive has locks at all."""

    def __init__(self, path: Path, file: IO[bytes], works: bool) -> None:
        self.path, self.file, self.works = path, file, works

    def release(self, *, remove: bool = True) -> None:
        """Give it up, and remove its file."""
        if WINDOWS or not remove:
            self.file.close()
        if remove:
            with suppress(OSError):
                self.path.unlink()
            self.file.close()


def take_lock(path: Path) -> Lock | None:
    """Take a lock, whose file is made where it is missing; None where another has it."""
    while True:
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, OWNER_FILE), "r+b", buffering=0)
        try:
            works = _lock_file(file)
        except BlockingIOError:
            file.close()
            return None
        except BaseException:
            file.close()
            raise
        with suppress(OSError):
            if WINDOWS or os.path.samestat(path.stat(), os.fstat(file.fileno())):
                file.truncate(0)
                file.write(str(os.getpid()).encode())
                return Lock(path, file, works)
        file.close()


def lock_owner(path: Path) -> str:
    """The number of the process that has a lock, for messages: " (process 123)", or nothing where it is not known."""
    try:
        number = path.read_bytes().decode("ascii")
    except (OSError, ValueError):
        return ""
    return f" (process {number})" if number.isdecimal() else ""


def _lock_file(file: IO[bytes]) -> bool:
    """Lock an open file; False where the drive has no locks. Raises BlockingIOError where another has it."""
    if sys.platform == "win32":
        file.seek(LOCKED_BYTE)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            raise BlockingIOError from None
        finally:
            file.seek(0)
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        return False
    return True
