"""Secondary suppression beside GaussSuppression in one run, on the same records: CPU, cost, and who is safe.

`python -m benchmarks.gauss_suppression [TABLE ...]`. Needs Rscript and the R packages GaussSuppression, SSBtools and
RegSDC (`R_LIBS` names their library); without them ours alone is measured. Both sides run once on a small table first:
starting, loading and compiling is not counted. GaussSuppression's call tabulates the records as well, ours has the
table; `table` says what making it takes. Both use their default guard against lone contributors. `short` counts the
sensitive cells that keep less than their protection level against an outsider and against a contributor, by SciPy's
programs (`table_attackers`), of a sample of `CHECKED` at most and of as many that our own audit calls short.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

import equipoise as eq
from benchmarks.rows import cost
from benchmarks.table_attackers import Attack
from equipoise.data.tables.linked_tables import Union
from equipoise.data.tables.table import Table
from equipoise.ground.randomness import Draws
from equipoise.tables import Suppress
from equipoise.tables._suppression.contributor_knowledge import Nobody, kinds_of
from equipoise.tables._suppression.guarded_cells import guards
from equipoise.tables._suppression.insiders import InsiderAudit
from equipoise.tables._suppression.problem import SuppressionTable
from equipoise.tables.audits.certificate import certify

RULES = {"p": eq.rules.PPercent(0.1), "nk": eq.rules.Dominance(1, 0.75), "count": eq.rules.MinCount(3)}
THEIRS = {
    "p": 'SuppressDominantCells(d, numVar="x", formula=f, pPercent=10, contributorVar="id", printInc=FALSE)',
    "nk": 'SuppressDominantCells(d, numVar="x", formula=f, n=1, k=75, contributorVar="id", printInc=FALSE)',
    "count": "SuppressSmallCounts(d, maxN=2, formula=f, protectZeros=FALSE, extend0=FALSE, printInc=FALSE)",
}
MADE = {
    "7x6": ((7, 6), (0, 0), 150, 3), "10x8": ((10, 8), (0, 0), 500, 2), "20x20": ((20, 20), (0, 0), 2_500, 1),
    "30x30": ((30, 30), (0, 0), 1_500, 6), "50x50": ((50, 50), (0, 0), 15_000, 1),
    "5x5x4": ((5, 5, 4), (0, 0, 0), 600, 4), "8x8x8": ((8, 8, 8), (0, 0, 0), 1_200, 9),
    "12x12x4": ((12, 12, 4), (0, 0, 0), 2_500, 7), "10x10x10": ((10, 10, 10), (0, 0, 0), 6_000, 1),
    "5x10x20": ((5, 10, 20), (0, 0, 0), 6_000, 1), "15x15x15": ((15, 15, 15), (0, 0, 0), 20_000, 1),
    "12x8 in groups": ((12, 8), (3, 4), 700, 5), "30x20 in groups": ((30, 20), (5, 5), 4_000, 8),
    "64x40 in groups": ((64, 40), (8, 8), 30_000, 3), "90x90 in groups": ((90, 90), (9, 9), 70_000, 4),
    "24x24x8 in groups": ((24, 24, 8), (6, 6, 0), 30_000, 5), "6x6x6x6": ((6,) * 4, (0,) * 4, 8_000, 1),
}  # fmt: skip
"""Codes of each dimension, how many make a group (0: no groups), records, seed."""
HELD = {
    "t2_20x20": ("synthetic/t2_20x20/micro.csv", {"d1": (), "d2": ()}, "value"),
    "t2h_60x40": ("synthetic/t2h_60x40/micro.csv", {"d1": (5, 3), "d2": (3,)}, "value"),
    "t3h_20x20x10": ("synthetic/t3h_20x20x10/micro.csv", {"d1": (3,), "d2": (3,), "d3": ()}, "value"),
    "enterprise product": ("tauargus/enterprise/example_enterprise.csv", {"act": (1,), "product": ()}, "turnover"),
    "enterprise region": ("tauargus/enterprise/example_enterprise.csv", {"region": (), "product": ()}, "turnover"),
    "testW region": ("tauargus/testW/tau_testW.csv", {"Size": (), "Region": ()}, "Var2"),
    "testW industry": ("tauargus/testW/tau_testW.csv", {"IndustryCode": (4, 3), "Size": ()}, "Var2"),
    "indiv_dt size": ("rtauargus/indiv_dt.csv", {"A88": ("A21",), "SIZE": ()}, "TURNOVER"),
    "indiv_dt nuts": ("rtauargus/indiv_dt.csv", {"NUTS3": ("NUTS2",), "SIZE": (), "CJ": ()}, "TURNOVER"),
    "testdata age": ("cellkey/testdata.csv", {"age": (), "sex": (), "relat": ()}, "expend"),
    "microdata1": ("sdctable/microdata1.csv", {"region": (), "gender": ()}, "val"),
}  # fmt: skip
"""File, for each dimension how many characters make the codes above it or the columns they are in, and the value."""
RUNS = {
    "p": (*MADE, *HELD),
    "nk": ("10x8", "20x20", "8x8x8", "12x12x4", "30x20 in groups", "t2_20x20"),
    "count": (*list(MADE)[:-2], "6x6x6x6", "enterprise product", "testW region", "indiv_dt nuts", "testdata age"),
}
SLOW = ("24x24x8 in groups", "90x90 in groups")
"""Above 10,000 cells or a minute of GaussSuppression's: only by name."""
CHECKED = 60
SCRIPT = """
suppressPackageStartupMessages({library(Matrix); library(GaussSuppression)})
a <- commandArgs(TRUE)
run <- function(file, rule) {
  d <- read.csv(file, colClasses=c(x="numeric"), stringsAsFactors=FALSE); d$id <- seq_len(nrow(d)); n <- names(d)
  v <- grep("^d[0-9]+$", n, value=TRUE)
  side <- function(v) paste0("(", paste(grep(paste0("^", v, "(_|$)"), n, value=TRUE), collapse="+"), ")")
  f <- as.formula(paste("~", paste(sapply(v, side), collapse="*")))
  t <- system.time(capture.output(r <- suppressMessages(eval(parse(text=rule)))))
  list(t[["user.self"]] + t[["sys.self"]], r, v)
}
run(a[1], a[3]); run(a[1], a[3])
o <- run(a[2], a[3])
write.csv(o[[2]][c(o[[3]], "suppressed", "primary")], a[4], row.names=FALSE)
cat("\\n", o[[1]])
"""


class Side(NamedTuple):
    """CPU seconds, the suppressed cells, and the sensitive ones."""

    cpu: float
    hidden: NDArray[np.bool_]
    sensitive: NDArray[np.bool_]


def records(name: str) -> pl.DataFrame:
    """Contributions to a table: columns d0, d1, ... with the codes above them in d0_1, d0_2, ..., and the amount x."""
    return _drawn(*MADE[name]) if name in MADE else _read(*HELD[name])


def _drawn(dims: tuple[int, ...], groups: tuple[int, ...], count: int, seed: int) -> pl.DataFrame:
    """Codes by unequal shares, amounts by a lognormal law."""
    draw, columns = np.random.default_rng(seed), dict[str, object]()
    for number, (codes, width) in enumerate(zip(dims, groups, strict=True)):
        code = draw.choice(codes, count, p=draw.dirichlet(np.full(codes, 2.0)))
        columns[f"d{number}"] = [f"c{one:03d}" for one in code]
        if width:
            columns[f"d{number}_1"] = [f"G{one // width}" for one in code]
    return pl.DataFrame(columns | {"x": np.round(np.exp(draw.normal(3, 1.5, count)), 1)})


def _read(file: str, trees: dict[str, tuple[Any, ...]], value: str) -> pl.DataFrame:
    path = Path(os.environ.get("EQUIPOISE_DATA", "none")) / "tables" / file
    frame = pl.read_csv(path, infer_schema=False)
    columns = []
    for number, (column, above) in enumerate(trees.items()):
        code = pl.lit("c") + pl.col(column).str.strip_chars()
        columns.append(code.alias(f"d{number}"))
        for step, part in enumerate(above, 1):
            upper = code.str.slice(0, part + 1) if isinstance(part, int) else pl.col(part)
            columns.append((pl.lit(f"G{step}") + upper).alias(f"d{number}_{step}"))
    return frame.select(*columns, x=pl.col(value).cast(pl.Float64)).filter(pl.col("x") > 0)


def dimensions(frame: pl.DataFrame) -> dict[str, list[str]]:
    """The columns of each dimension, the finest first."""
    names = [column for column in frame.columns if column != "x"]
    return {by: [by, *(one for one in names if one.startswith(by + "_"))] for by in names if "_" not in by}


def tabulated(frame: pl.DataFrame, rule: str) -> Table:
    """The table of these records, dimensions with groups as hierarchies."""
    sides = dimensions(frame)
    trees = {by: eq.Hierarchy.mapping(list(map(list, frame.select(columns).unique().rows())))
             for by, columns in sides.items() if len(columns) > 1}  # fmt: skip
    return eq.table(eq.Records.of(frame, eq.Roles()), list(sides), None if rule == "count" else "x", hierarchies=trees)


def ours(table: Table, rule: str, guarded: bool) -> tuple[Side, float]:
    """The pattern, and the CPU seconds of its certificate."""
    released: list[Table] = []
    spent = cost(lambda: released.append(Suppress(RULES[rule], singletons=guarded).apply(table, Draws(1))))
    audited = cost(lambda: certify(released[0], RULES[rule])).cpu if guarded else 0.0
    status = released[0].table["status"]
    return Side(spent.cpu, (status != "published").to_numpy(), (status == "sensitive").to_numpy()), audited


def theirs(frame: pl.DataFrame, table: Table, rule: str) -> Side | None:
    """The same of GaussSuppression; None where R or the packages are missing."""
    if shutil.which("Rscript") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder) / name for name in ("small.csv", "records.csv", "run.R", "out.csv")]
        records("10x8").write_csv(places[0])
        frame.write_csv(places[1])
        places[2].write_text(SCRIPT)
        ran = subprocess.run(
            ["Rscript", places[2], *places[:2], THEIRS[rule], places[3]], capture_output=True, text=True, check=False
        )
        if ran.returncode:
            print(ran.stderr, file=sys.stderr)
            return None
        out = pl.read_csv(places[3], infer_schema=False)
    cells = {row[:-2]: row[-2:] for row in out.rows()}
    found = np.array(
        [[one == "TRUE" for one in cells.get(key, ("FALSE", "FALSE"))] for key in table.table.select(table.by).rows()]
    )
    return Side(float(ran.stdout.split()[-1]), found[:, 0], found[:, 1])


def suspects(table: Table, rule: str, side: Side) -> NDArray[np.int64]:
    """Sensitive cells of a pattern that our own audit calls short, against anybody: for SciPy to judge."""
    union = Union.of([table])
    flagged, below, above = (union.gathered([part]) for part in guards(table, RULES[rule], None))
    system = SuppressionTable.of(union.additive, union.values, 0.0, np.where(union.empty, 0.0, np.inf))
    hidden = union.gathered([side.hidden])
    levels = [np.where(flagged, level, 0.0) for level in (below, above)]
    audit = InsiderAudit(system, hidden, *levels, shy=hidden & (union.knowers >= 0))
    answers = [audit.against(Nobody())]
    answers += [audit.against(minds, size, kind) for kind, (minds, size) in kinds_of(union, system, hidden).items()]
    short = np.isin(union.places[0], np.concatenate([one.cells[one.weaker] for one in answers]))
    return np.flatnonzero(short & side.sensitive)[:CHECKED]


def compared(name: str, rule: str) -> dict[str, Any]:
    """One table on both sides."""
    frame = records(name)
    tables: list[Table] = []
    making = cost(lambda: tables.append(tabulated(frame, rule))).cpu
    table = tables[0]
    peer = theirs(frame, table, rule)
    (plain, _), (guarded, audit) = ours(table, rule, False), ours(table, rule, True)
    row: dict[str, Any] = {"table": name, "rule": rule, "cells": len(table), "sensitive": int(guarded.sensitive.sum())}
    row |= {
        "making": making,
        "plain": plain.cpu,
        "guarded": guarded.cpu,
        "audit": audit,
        "gauss": peer.cpu if peer else None,
    }
    attack = Attack(frame, table, RULES[rule], CHECKED)
    for who, side in (("plain", plain), ("guarded", guarded), ("gauss", peer)):
        if side is not None:
            secondary = side.hidden & ~guarded.sensitive
            row[f"{who}_cells"] = int(secondary.sum())
            row[f"{who}_value"] = float(table.numbers("value")[secondary].sum())
            row[f"{who}_short"] = attack.short(side.hidden, suspects(table, rule, side)) if who != "plain" else None
    if peer is not None:
        row["other_primaries"] = int((peer.sensitive != guarded.sensitive).sum())
    return row


def chosen(names: list[str]) -> Iterator[tuple[str, str]]:
    for rule, tables in RUNS.items():
        for name in tables:
            if (f"{rule}:{name}" in names or name in names or rule in names) if names else name not in SLOW:
                yield name, rule


def main(names: list[str]) -> None:
    for rule in RULES:
        ours(tabulated(records("10x8"), rule), rule, True)  # what is loaded first is not counted
    print(
        "table, rule, cells, sensitive | CPU s: table, plain, guard, audit, gauss, ratio | value, gauss, ratio | short"
    )
    for name, rule in chosen(names):
        row = compared(name, rule)
        print(line(row), flush=True)
        if "GAUSS_ROWS" in os.environ:
            with Path(os.environ["GAUSS_ROWS"]).open("a") as file:
                file.write(json.dumps(row) + "\n")


def line(row: dict[str, Any]) -> str:
    gauss, value = row["gauss"] or float("nan"), row.get("gauss_value", float("nan"))
    seconds = " ".join(f"{row[key]:6.2f}" for key in ("making", "plain", "guarded", "audit"))
    return (
        f"{row['table']:20} {row['rule']:5} {row['cells']:6,} {row['sensitive']:5,} | "
        f"{seconds} {gauss:6.2f} {row['guarded'] / gauss:5.2f} | "
        f"{row['guarded_value']:9,.0f} {value:9,.0f} {row['guarded_value'] / max(value, 1e-9):5.2f} | "
        f"{row['guarded_short']} {row.get('gauss_short')} {row.get('other_primaries') or ''}"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
