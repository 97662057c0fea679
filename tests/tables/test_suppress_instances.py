"""Public tables with a proven optimum, from their records: each sensitive cell by programs from the raw file."""

import os
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack

import equipoise as eq
from equipoise.ground.randomness import Draws
from equipoise.rules import PPercent
from equipoise.tables import Suppress, audit

DATA = Path(os.environ.get("EQUIPOISE_DATA", "none")) / "tables"
LARGEST = "t2h_60x40"
INSTANCES = {
    "t2_20x20": ("synthetic/t2_20x20/micro.csv", {"d1": "hier_d1.hrc", "d2": "hier_d2.hrc"}, "value", 1_808),
    "t2h_60x40": ("synthetic/t2h_60x40/micro.csv", {"d1": "hier_d1.hrc", "d2": "hier_d2.hrc"}, "value", 68_767),
    "enterprise": (
        "tauargus/enterprise/example_enterprise.csv", {"act": "nace_divisions.hrc", "product": None},
        "turnover", 237_480,
    ),
}  # fmt: skip
ROOT = "Total"
SWEEPS = 12
"""Tables looked for that are far out in many cells at once."""


def chains(path: Path | None, leaves: list[str]) -> dict[str, tuple[str, ...]]:
    """Each code with all codes it belongs to, itself first; one that the file does not list belongs to the total."""
    found: dict[str, tuple[str, ...]] = {}
    stack: tuple[str, ...] = ()
    for line in filter(str.strip, path.read_text().splitlines() if path else []):
        depth = len(line) - len(line.lstrip("@"))
        stack = (*stack[:depth], line[depth:].strip())
        found[stack[-1]] = (*stack[::-1], ROOT)
    return {leaf: found.get(leaf, (leaf, ROOT)) for leaf in leaves}


def raw(frame: pl.DataFrame, lines: dict[str, dict[str, tuple[str, ...]]]) -> dict[tuple[str, ...], list[int]]:
    """Every cell of the table with the inner cells it adds up."""
    cells: dict[tuple[str, ...], list[int]] = {}
    for number, row in enumerate(frame.iter_rows(named=True)):
        for cell in set(product(*(line[row[column]] for column, line in lines.items()))):
            cells.setdefault(cell, []).append(number)
    return cells


def levels(frame: pl.DataFrame, cells: dict, inner: pl.DataFrame, by: list[str], value: str) -> dict:
    """The p% rule by hand: what a cell lacks at p = 10 %, of those that lack something."""
    parts = {row[:-1]: sorted(row[-1], reverse=True) for row in frame.group_by(by).agg(pl.col(value)).rows()}
    keys, found = inner.select(by).rows(), {}
    for cell, inside in cells.items():
        given = sorted((x for i in inside for x in parts[keys[i]][:2]), reverse=True)
        total = sum(inner[value][i] for i in inside)
        lack = 0.1 * given[0] - (total - sum(given[:2]))
        if lack > 1e-9 * total and total > 0:
            found[cell] = lack
    return found


@pytest.mark.skipif(not DATA.exists(), reason="EQUIPOISE_DATA is not set: no table instances")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.evidence if name == LARGEST else ()) for name in INSTANCES]
)
def test_patterns_protect_and_cost_at_most_a_tenth_more(name: str) -> None:
    """The largest instance in full only."""
    file, trees, value, best = INSTANCES[name]
    frame = pl.read_csv(DATA / file, infer_schema=False).cast({value: pl.Float64})
    by, folder = list(trees), (DATA / file).parent
    lines = {
        column: chains(folder / tree if tree else None, frame[column].unique().sort().to_list())
        for column, tree in trees.items()
    }
    deep = {c: eq.Hierarchy.mapping({leaf: up for leaf, (_, *up, _) in line.items() if up} | _alone(line))
            for c, line in lines.items() if any(len(x) > 2 for x in line.values())}  # fmt: skip
    made = eq.table(eq.Records.of(frame, eq.Roles()), by, value, hierarchies=deep)
    found = Suppress(PPercent(0.1), singletons=False).apply(made, Draws(1))
    told = found.table
    assert not audit(found, against="outsider")["exposed"].any()
    secondary = told.filter(pl.col("status") == "secondary")["value"].sum()
    assert secondary <= 1.1 * best
    inner = frame.group_by(by).agg(pl.col(value).sum()).sort(by)
    cells = raw(inner, lines)
    wanted = levels(frame, cells, inner, by, value)
    assert_moved(told, by, cells, wanted, inner[value].to_numpy())


def _alone(line: dict[str, tuple[str, ...]]) -> dict[str, list[str]]:
    """A code that belongs to nothing but the total is a group of its own."""
    return {leaf: [leaf] for leaf, up in line.items() if len(up) == 2}


def assert_moved(told: pl.DataFrame, by: list[str], cells: dict, wanted: dict, truth: np.ndarray) -> None:
    """Changes of the hidden inner cells that leave every published sum: each sensitive cell reaches its levels.

    A table found for one cell answers all others that it takes as far.
    """
    number = {cell: i for i, cell in enumerate(cells)}
    rows = np.repeat(np.arange(len(cells)), [len(inside) for inside in cells.values()])
    columns = np.concatenate([np.array(inside) for inside in cells.values()])
    matrix = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(cells), len(truth)))
    hidden = {row[:-1] for row in told.filter(pl.col("published").is_null()).select(*by, "status").rows()}
    assert wanted.keys() <= hidden
    loose = np.array(sorted({cells[cell][0] for cell in hidden if len(cells[cell]) == 1 and cell[0] != ROOT}))
    matrix, value = matrix[:, loose], matrix @ truth
    shown = np.setdiff1d(np.flatnonzero(np.diff(matrix.indptr)), [number[cell] for cell in hidden])
    asked = {(cell, sign) for cell in wanted for sign in (1, -1)}
    given = {"A_eq": matrix[shown], "b_eq": np.zeros(len(shown)), "bounds": [(-x, None) for x in truth[loose]]}
    places, level = [number[cell] for cell in wanted], np.array(list(wanted.values()))
    some = vstack([matrix[places], -matrix[places]])
    for signs in np.random.default_rng(1).choice((-1.0, 1.0), (SWEEPS, len(places))):
        far = linprog(-(signs / level) @ matrix[places], A_ub=some, b_ub=np.tile(1.5 * level, 2), **given)
        asked -= met(
            asked, dict(zip(number, matrix @ far.x, strict=True)), wanted, dict(zip(number, value, strict=True))
        )
    for cell, sign in sorted(asked):
        row = sign * matrix[[number[cell]]]
        far = linprog(-row.toarray().ravel(), A_ub=row, b_ub=[wanted[cell]], **given)
        assert reached(-far.fun, wanted[cell], sign, value[number[cell]]), (cell, sign)


def met(asked: set, moved: dict, wanted: dict, value: dict) -> set:
    return {(cell, sign) for cell, sign in asked if reached(sign * moved[cell], wanted[cell], sign, value[cell])}


def reached(far: float, level: float, sign: int, value: float) -> bool:
    """A cell cannot fall below nothing."""
    return far >= (level if sign > 0 else min(level, value)) * (1 - 1e-6)
