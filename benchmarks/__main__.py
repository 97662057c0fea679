"""Run the benchmarks: `python -m benchmarks [name ...] [--quick]`."""

import argparse
import json
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks import (
    attacking,
    coarsening,
    counting,
    importing,
    lattice,
    lattice_best,
    linking,
    local_recoding,
    local_suppression,
    log_linear,
    microdata,
    perturbation,
    publishing,
    reading,
    rows,
    scanning,
    searching,
    suda,
    suppression,
    workbench,
)
from benchmarks.rows import QUICK, Row, Scale, Skipped

BENCHMARKS: dict[str, Callable[[Scale], Iterator[Row | Skipped]]] = {
    "coded": counting.coded,
    "raw": counting.raw,
    "coarsening": coarsening.coarsening,
    "scanning": scanning.scanning,
    "importing": importing.importing,
    "lattice": lattice.lattice,
    "perturbation": perturbation.perturbation,
    "mdav": perturbation.mdav,
    "growth": perturbation.growth,
    "linking": linking.linking,
    "attacking": attacking.attacking,
    "publishing": publishing.publishing,
    "suppression": suppression.suppression,
    "reading": reading.reading,
    "microdata": microdata.microdata,
    "suda": suda.suda,
    "log-linear": log_linear.log_linear,
    "coarsest": lattice_best.lattice_best,
    "blanking": local_suppression.local_suppression,
    "local-recoding": local_recoding.local_recoding,
    "searching": searching.searching,
    "workbench": workbench.workbench,
}
PACKAGES = ("equipoise", "polars", "numpy", "narwhals", "duckdb", "pyarrow")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, keep it as JSON; 1 when a limit was missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"which: {', '.join(BENCHMARKS)} (all unless named)")
    parser.add_argument("--quick", action="store_true", help="a fiftieth of the records; limits are not enforced")
    parser.add_argument("--out", type=Path, default=scanning.RESULTS, help="folder of the JSON file")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are: {', '.join(BENCHMARKS)}")
    found = run(given.names or list(BENCHMARKS), QUICK if given.quick else Scale())
    if given.quick:
        found = [replace(row, limit=None) if isinstance(row, Row) else row for row in found]
    print(rows.table(found))
    keep(found, given.out, given.quick)
    missed = [row.name for row in found if isinstance(row, Row) and row.passed is False]
    print(f"missed: {'; '.join(missed)}" if missed else "quick: nothing judged" if given.quick else "all limits held")
    return int(bool(missed))


def run(names: Sequence[str], scale: Scale) -> list[Row | Skipped]:
    """The rows of these benchmarks, each told when done."""
    found = []
    for name in names:
        print(f"running {name} ...", file=sys.stderr, flush=True)
        found += list(BENCHMARKS[name](scale))
    return found


def keep(found: Sequence[Row | Skipped], folder: Path, quick: bool) -> Path:
    """Write the rows as JSON, under the time of the run."""
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC)
    path = folder / f"{now:%Y%m%dT%H%M%S}{'-quick' if quick else ''}.json"
    told = {
        "when": now.isoformat(timespec="seconds"), "quick": quick, "python": platform.python_version(),
        "machine": platform.machine(), "packages": {name: version(name) for name in PACKAGES},
        "rows": [row.to_plain() for row in found],
    }  # fmt: skip
    path.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    sys.exit(main())
