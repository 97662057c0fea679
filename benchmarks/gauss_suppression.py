"""Secondary suppression beside GaussSuppression in one run, on the same records: CPU seconds and what is suppressed.

`python -m benchmarks.gauss_suppression [TABLE ...]`. Needs Rscript and the R package (`R_LIBS` names its library);
where they are missing ours alone is measured and the figures of `MEASURED` stand beside it. GaussSuppression runs
with its default singleton method and guards against exact disclosure; ours, guarded, keeps the levels of the p% rule.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

import equipoise as eq
from benchmarks.rows import cost
from equipoise.data.tables.table import Table
from equipoise.ground.randomness import Draws
from equipoise.tables import Suppress

RULE = eq.rules.PPercent(0.1)
TABLES = {
    "20x20": ((20, 20), (0, 0), 2_500, 1), "30x30": ((30, 30), (0, 0), 1_500, 6),
    "50x50": ((50, 50), (0, 0), 15_000, 1),
    "8x8x8": ((8, 8, 8), (0, 0, 0), 1_200, 9), "12x12x4": ((12, 12, 4), (0, 0, 0), 2_500, 7),
    "10x10x10": ((10, 10, 10), (0, 0, 0), 6_000, 1), "5x10x20": ((5, 10, 20), (0, 0, 0), 6_000, 1),
    "30x20 in groups": ((30, 20), (5, 5), 4_000, 8), "6x6x6x6": ((6,) * 4, (0,) * 4, 8_000, 1),
    "24x24x8 in groups": ((24, 24, 8), (6, 6, 0), 30_000, 5), "90x90 in groups": ((90, 90), (9, 9), 70_000, 4),
    "15x15x15": ((15, 15, 15), (0, 0, 0), 20_000, 1),
}  # fmt: skip
"""Codes of each dimension, how many make a group (0: no groups), records, seed."""
MEASURED = {
    "20x20": (0.36, 131, 295), "30x30": (0.69, 398, 18), "50x50": (4.90, 809, 58), "8x8x8": (1.21, 269, 11_614),
    "12x12x4": (1.23, 298, 15_105), "10x10x10": (3.81, 416, 4_176), "5x10x20": (2.99, 435, 10_983),
    "30x20 in groups": (0.89, 292, 30_797), "6x6x6x6": (18.74, 796, 70_705),
    "24x24x8 in groups": (62.63, 2_315, 177_690), "90x90 in groups": (102.38, 2_827, 81_286),
    "15x15x15": (33.12, 1_208, 20_142),
}  # fmt: skip
"""GaussSuppression 1.2.3 on R 4.2: CPU seconds, suppressed cells, value of the secondary ones."""
SCRIPT = """
suppressPackageStartupMessages(library(GaussSuppression))
d <- read.csv(commandArgs(TRUE)[1]); d$id <- seq_len(nrow(d)); n <- names(d)
side <- function(v) { g <- sub("d", "g", v); if (g %in% n) paste0("(", v, "+", g, ")") else v }
f <- as.formula(paste("~", paste(sapply(grep("^d", n, value=TRUE), side), collapse="*")))
t <- system.time(capture.output(r <- suppressMessages(SuppressDominantCells(
  d, numVar="x", formula=f, pPercent=10, contributorVar="id", printInc=FALSE))))
cat("\\n", t[["user.self"]] + t[["sys.self"]], sum(r$suppressed), sum(r$x[r$suppressed & !r$primary]))
"""


def records(name: str) -> pl.DataFrame:
    """Contributions to a table: codes by unequal shares, amounts by a lognormal law."""
    dims, groups, count, seed = TABLES[name]
    draw, columns = np.random.default_rng(seed), dict[str, object]()
    for number, (codes, width) in enumerate(zip(dims, groups, strict=True)):
        code = draw.choice(codes, count, p=draw.dirichlet(np.full(codes, 2.0)))
        columns[f"d{number}"] = [f"c{one:03d}" for one in code]
        if width:
            columns[f"g{number}"] = [f"G{one // width}" for one in code]
    return pl.DataFrame(columns | {"x": np.round(np.exp(draw.normal(3, 1.5, count)), 1)})


def tabulated(frame: pl.DataFrame) -> Table:
    """The table of these records, dimensions with groups as hierarchies."""
    by = [column for column in frame.columns if column.startswith("d")]
    pairs = {column: "g" + column[1:] for column in by if "g" + column[1:] in frame.columns}
    trees = {code: eq.Hierarchy.mapping(dict(frame.select(code, group).iter_rows())) for code, group in pairs.items()}
    return eq.table(eq.Records.of(frame, eq.Roles()), by, "x", hierarchies=trees)


def ours(table: Table, guarded: bool) -> tuple[float, int, float]:
    """CPU seconds, suppressed cells and the value of the secondary ones."""
    kept: list[Table] = []
    spent = cost(lambda: kept.append(Suppress(RULE, singletons=guarded).apply(table, Draws(1))))
    status, value = kept[0].table["status"], table.numbers("value")
    return spent.cpu, int((status != "published").sum()), float(value[(status == "secondary").to_numpy()].sum())


def theirs(frame: pl.DataFrame) -> tuple[float, int, float] | None:
    """The same of GaussSuppression; None where R or the package is missing."""
    if shutil.which("Rscript") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        frame.write_csv(data := Path(folder) / "records.csv")
        (script := Path(folder) / "run.R").write_text(SCRIPT)
        ran = subprocess.run(["Rscript", script, data], capture_output=True, text=True, check=False)
    if ran.returncode:
        return None
    seconds, cells, value = ran.stdout.split()[-3:]
    return float(seconds), int(cells), float(value)


def main(names: list[str]) -> None:
    print(f"{'table':20} {'who':26} {'CPU s':>7} {'cells':>7} {'secondary value':>16}")
    ours(tabulated(records("20x20")), True)  # what both load first is not counted
    for name in names or list(TABLES):
        frame = records(name)
        table, measured = tabulated(frame), theirs(frame)
        peer = "GaussSuppression" if measured else "GaussSuppression, measured"
        rows = {peer: measured or MEASURED[name]}
        rows |= {"ours, outsiders": ours(table, False), "ours, everybody": ours(table, True)}
        for who, (seconds, cells, value) in rows.items():
            print(f"{name:20} {who:26} {seconds:7.2f} {cells:7,} {value:16,.0f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
