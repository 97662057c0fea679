"""What `import equipoise` costs and brings along."""

from collections.abc import Iterator
from statistics import median

from benchmarks.rows import Row, Scale, Skipped, fresh

LATER = ("scipy", "altair", "pandas", "sklearn", "fastapi", "pydantic", "jinja2", "rich", "typer")
"""Packages that are imported where they are used, never by `import equipoise`."""

TIMED = """
import json, time
start = time.process_time()
import {what}
print(json.dumps({{"cpu": time.process_time() - start}}))
"""
BROUGHT = f"""
import json, sys
import equipoise
print(json.dumps({{name: 1 for name in {LATER} if name in sys.modules}}))
"""


HELP = """
import contextlib, io, json, time
start = time.process_time()
with contextlib.redirect_stdout(io.StringIO()):
    from equipoise.doors.cli import main
    main(["--help"])
print(json.dumps({"cpu": time.process_time() - start}))
"""


def importing(scale: Scale) -> Iterator[Row | Skipped]:
    ours, theirs = import_costs(2 * scale.times + 1)
    yield Row("import equipoise", ours, theirs, 1.3, against="import polars, numpy, narwhals", note="medians")
    ours, theirs = help_costs(2 * scale.times + 1)
    yield Row("equipoise --help", ours, theirs, 1.5, against="import typer, rich", note="medians")
    slow = brought()
    yield Row(
        "slow packages imported along", len(slow), len(LATER), 0, unit="of them", against="all that come when used",
        note=", ".join(slow) or f"none of {', '.join(LATER)}",
    )  # fmt: skip


def import_costs(times: int) -> tuple[float, float]:
    """Median CPU of importing the package, and of what it stands on, in interleaved new interpreters."""
    import_cost("equipoise")
    runs = [(import_cost("equipoise"), import_cost("polars, numpy, narwhals")) for _ in range(times)]
    return median(ours for ours, _ in runs), median(theirs for _, theirs in runs)


def help_costs(times: int) -> tuple[float, float]:
    """Median CPU of the help of the command line, and of importing its libraries, in interleaved new interpreters."""
    fresh("-c", HELP)
    runs = [(fresh("-c", HELP)["cpu"], import_cost("typer, rich")) for _ in range(times)]
    return median(ours for ours, _ in runs), median(theirs for _, theirs in runs)


def import_cost(what: str) -> float:
    return fresh("-c", TIMED.format(what=what))["cpu"]


def brought() -> list[str]:
    """The packages that came in with `import equipoise` and should not."""
    return sorted(fresh("-c", BROUGHT))
