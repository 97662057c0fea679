"""How many processes share the trials: every core, as far as memory allows."""

from equipoise.ground import system
from equipoise.ground.errors import ParameterError

WORKER_BYTES = 300 << 20
"""Memory of a process with its libraries and no data."""
COPIES_OF_DATA = 4
"""Files that a process holds at once: the original, a masked one, and what attacks and measures make of both."""


def worker_count(processes: int | None, data_bytes: float) -> int:
    """The number asked for; when None, as many as there are cores and as free memory has room for, at least 1."""
    if processes is not None:
        return processes
    free = system.free_memory()
    fitting = None if free is None else int(free // (WORKER_BYTES + COPIES_OF_DATA * data_bytes))
    cores = system.cores()
    return max(1, cores if fitting is None else min(cores, fitting))


def refuse_processes(processes: int | None) -> None:
    """Refuse a number of processes below 1, before any work."""
    if processes is not None and processes < 1:
        raise ParameterError(f"processes must be at least 1, got {processes}.")
