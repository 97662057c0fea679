"""Secondary suppression with its proof and audit: tables of 441 to a million cells, made here, against a package's.

One table alone, with or without the guard against contributors and their audit, by the p% rule or at least 3 records:
`python -m benchmarks.suppression "5-way, 3,125 cells" guarded p-percent:10%`.
"""

import json
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import equipoise as eq
from benchmarks.perturbation import YARDSTICK, grouping
from benchmarks.rows import Row, Scale, Skipped, cost, fresh, peak
from equipoise.data.tables.additivity import Additive
from equipoise.data.tables.table import Table
from equipoise.ground.randomness import Draws
from equipoise.recipe.catalogue import parse
from equipoise.tables import Suppress
from equipoise.tables._suppression.suppression_pattern import Suppression, suppress
from equipoise.tables.audits.attacker_intervals import audit
from equipoise.tables.audits.certificate import certify

P = 0.1
GAUSS = {"2-way, 2,601 cells": 4.6, "2-way, 10,201 cells": 61.8, "3-way hierarchical, 6,875 cells": 36.2}
"""GaussSuppression's CPU seconds on tables of these shapes, without an audit; it left primaries under their level."""
SHAPES = {
    "2-way, 441 cells": ((20,), (20,)),
    "2-way, 2,601 cells": ((50,), (50,)),
    "2-way, 10,201 cells": ((100,), (100,)),
    "2-way hierarchical, 10,201 cells": ((10, 9), (10, 9)),
    "3-way hierarchical, 6,875 cells": ((4, 5), (4, 5), (10,)),
    "5-way, 3,125 cells": ((4,),) * 5,
    "4-way, 14,641 cells": ((10,),) * 4,
    "3-way, 29,791 cells": ((30,),) * 3,
    "3-way hierarchical, 108,900 cells": ((6, 8), (6, 8), (5, 6)),
    "2-way hierarchical, 237,481 cells": ((10, 6, 6), (10, 6, 8)),
    "2-way hierarchical, 1,022,121 cells": ((10, 10, 9), (10, 10, 9)),
}
"""The branches at each level of the hierarchy of each dimension."""
EACH = dict(zip(SHAPES, (12, 15, 19, 14, 10, 5, 5, 12, 20, 10, 10), strict=True))
"""Contributors in each of the lowest cells, on average."""
SECONDS = {"2-way, 441 cells": 60.0, "2-way hierarchical, 10,201 cells": 60.0, "5-way, 3,125 cells": 20.0,
           "4-way, 14,641 cells": 120.0, "3-way, 29,791 cells": 120.0, "3-way hierarchical, 108,900 cells": 90.0,
           "2-way hierarchical, 237,481 cells": 300.0, "2-way hierarchical, 1,022,121 cells": 600.0}  # fmt: skip
"""CPU seconds that tables without a peer's figure may take, audit included."""
GIBIBYTES = 4.0
"""What the larger tables may take."""
GUARDS, GUARD_LIMIT = ("plain", "guarded"), 3.0
"""A pattern without and with the guard against contributors, and how many times the CPU the second may take."""
LARGE = (
    ("5-way, 3,125 cells", "p-percent:10%"), ("4-way, 14,641 cells", "p-percent:10%"),
    ("4-way, 14,641 cells", "min-count:3"), ("3-way, 29,791 cells", "p-percent:10%"),
    ("3-way, 29,791 cells", "min-count:3"), ("3-way hierarchical, 108,900 cells", "p-percent:10%"),
    ("2-way hierarchical, 237,481 cells", "p-percent:10%"), ("2-way hierarchical, 1,022,121 cells", "p-percent:10%"),
)  # fmt: skip
"""Tables that are guarded against everybody and audited within `SECONDS` and `GIBIBYTES`."""
AUDITED = 11_000
"""Cells above which memory is judged, too."""


@dataclass(frozen=True, eq=False)
class Made:
    """A magnitude table: cells with values, the primaries of the p% rule and their protection level."""

    additive: Additive
    values: NDArray[np.float64]
    primary: NDArray[np.bool_]
    level: NDArray[np.float64]

    @property
    def low(self) -> NDArray[np.float64]:
        return np.zeros(len(self.values))

    @property
    def high(self) -> NDArray[np.float64]:
        """Zeros are known to be zeros."""
        return np.where(self.values == 0, 0.0, np.inf)


def tree(branches: tuple[int, ...]) -> NDArray[np.int64]:
    """The parent of each code of a hierarchy, level by level; the root is code 0."""
    parents, first, count = [np.array([-1])], 0, 1
    for width in branches:
        parents.append(np.repeat(np.arange(first, first + count), width))
        first, count = first + count, count * width
    return np.concatenate(parents)


def made(shape: tuple[tuple[int, ...], ...], each: float, seed: int) -> Made:
    """Contributors spread unevenly over the lowest cells (`each` on average) with lognormal contributions."""
    trees = [tree(branches) for branches in shape]
    lines = [_ancestry(parents, len(branches)) for parents, branches in zip(trees, shape, strict=True)]
    spots, amount = _contributions(shape, each, seed)
    sizes = [len(parents) for parents in trees]
    combined = [
        np.ravel_multi_index([line[spot, level] for line, spot, level in zip(lines, spots, levels, strict=True)], sizes)
        for levels in product(*(range(line.shape[1]) for line in lines))
    ]
    cells, parts = np.concatenate(combined), np.tile(amount, len(combined))
    return _judged(Additive.over(trees), cells, parts)


def _contributions(
    shape: tuple[tuple[int, ...], ...], each: float, seed: int
) -> tuple[tuple[NDArray[np.int64], ...], NDArray[np.float64]]:
    """The code of each contribution in every dimension, and its amount."""
    draw, leaves = np.random.default_rng(seed), [int(np.prod(branches)) for branches in shape]
    weight = draw.lognormal(0, 1, int(np.prod(leaves)))
    homes = draw.choice(weight.size, size=round(each * weight.size), p=weight / weight.sum())
    return np.unravel_index(homes, leaves), np.ceil(draw.lognormal(3, 1.2, len(homes)))


def _ancestry(parents: NDArray[np.int64], depth: int) -> NDArray[np.int64]:
    """The leaves of a tree, each with all codes it belongs to, itself first."""
    leaves = np.setdiff1d(np.arange(len(parents)), parents)
    columns = [leaves]
    for _ in range(depth):
        columns.append(parents[columns[-1]])
    return np.stack(columns, axis=1)


def _judged(additive: Additive, cells: NDArray[np.int64], parts: NDArray[np.float64]) -> Made:
    """The p% rule: sensitive if x - x1 - x2 < p x1, protected by what is lacking."""
    order = np.lexsort((-parts, cells))
    cells, parts = cells[order], parts[order]
    first = np.flatnonzero(np.diff(cells, prepend=-1))
    values, top = np.zeros(additive.cells), np.zeros((2, additive.cells))
    values[cells[first]] = np.add.reduceat(parts, first)
    top[0, cells[first]] = parts[first]
    second = first[(first + 1 < len(cells))]
    second = second[cells[second + 1] == cells[second]] + 1
    top[1, cells[second]] = parts[second]
    lacking = P * top[0] - (values - top[0] - top[1])
    primary = (values > 0) & (lacking > 0)
    return Made(additive, values, primary, np.where(primary, np.minimum(np.maximum(lacking, 1.0), values), 0.0))


def protect(table: Made) -> Suppression:
    """Suppress with proof, then audit: how far an attacker's interval of every primary reaches."""
    room = {"low": table.low, "high": table.high}
    found = suppress(table.additive, table.values, table.primary, lpl=table.level, upl=table.level, **room)
    known = audit(table.additive, table.values, found.suppressed, enough=(table.level, table.level), **room)
    slack = 1e-6 * np.maximum(1.0, table.level)
    short = (known.upper < table.values + table.level - slack) | (known.lower > table.values - table.level + slack)
    if short[table.primary].any():
        raise AssertionError("A primary can be computed within its level.")
    return found


def suppression(scale: Scale) -> Iterator[Row | Skipped]:
    """Tables of growing size, audit included, against figures taken without one; the largest against limits."""
    ratio = grouping(scale) / YARDSTICK
    for name in list(SHAPES)[: 2 if scale.share < 1 else None]:
        found = fresh("-m", "benchmarks.suppression", name)
        told = f"suppression, {name}"
        if name in GAUSS:
            yield Row(
                told, found["cpu"], GAUSS[name] * ratio, 1.0, against="GaussSuppression, scaled", note=_note(found)
            )
        else:
            limit = SECONDS[name]
            yield Row(told, found["cpu"], limit * ratio, 1.0, against=f"{limit:g} s, scaled", note=_note(found))
        if found["cells"] > AUDITED:
            yield Row(f"{told}, memory", found["peak"], GIBIBYTES, 1.0, unit="GiB", against=f"{GIBIBYTES:g} GiB")

    for name in list(SHAPES)[: 1 if scale.share < 1 else 2]:
        plain, guarded = (fresh("-m", "benchmarks.suppression", name, how, "p-percent:10%") for how in GUARDS)
        note = f"{guarded['secondaries']:,.0f} secondaries, {plain['secondaries']:,.0f} without the guard"
        told = f"guard against contributors, {name}"
        yield Row(told, guarded["pattern"], plain["pattern"], GUARD_LIMIT, against="the pattern without it", note=note)
    for name, rule in LARGE if scale.share >= 1 else ():
        yield from _against_everybody(name, rule, ratio)


def _against_everybody(name: str, rule: str, ratio: float) -> Iterator[Row]:
    """A large table guarded against everybody, pattern and certificate: CPU and memory, and what is left open."""
    found: dict[str, Any] = fresh("-m", "benchmarks.suppression", name, "guarded", rule)
    told, limit = f"suppression against everybody, {name}, {rule}", SECONDS[name]
    open_to = "; ".join(found["less"]) or "full levels against everybody"
    parts = f"pattern {found['pattern']:.0f} s, certificate {found['audit']:.0f} s, silent {found['silence']:.1f} s"
    cells = f"{found['secondaries']:,} secondaries of {found['cost']:,.0f}, {found['failed']} failed"
    note = f"{parts}, {cells}, {open_to}"
    yield Row(told, found["cpu"], limit * ratio, 1.0, against=f"{limit:g} s, scaled", note=note)
    yield Row(f"{told}, memory", found["peak"], GIBIBYTES, 1.0, unit="GiB", against=f"{GIBIBYTES:g} GiB")


def _note(found: Mapping[str, float]) -> str:
    gap = 1 - found["bound"] / found["cost"] if found["cost"] else 0.0
    proven = "no bound" if found["cost"] > 0 == found["bound"] else f"{gap:.1%} of the cost unproven"
    counts = f"{found['primaries']:,.0f} primaries, {found['secondaries']:,.0f} secondaries"
    return f"{counts}, {proven}, {found['peak']:.2f} GiB"


def measured(name: str) -> dict[str, float]:
    """Cost of one table in this process."""
    table = made(SHAPES[name], EACH[name], seed=1)
    kept: list[Suppression] = []
    spent = cost(lambda: kept.append(protect(table)))
    found = kept[0]
    return {
        "cells": len(table.values), "primaries": int(table.primary.sum()), "secondaries": int(found.secondary.sum()),
        "cost": found.cost, "bound": found.bound, "programs": found.programs, "cpu": spent.cpu, "wall": spent.wall,
        "peak": peak(),
    }  # fmt: skip


def from_records(name: str, rule: str) -> tuple[Table, Any]:
    """The same table made from records, and the rule; counts for the rule of least records."""
    shape, chosen = SHAPES[name], parse(rule, "rule")
    spots, amount = _contributions(shape, EACH[name], seed=1)
    columns = {f"d{number}": codes for number, codes in enumerate(spots)}
    hierarchies = {}
    for (column, codes), branches in zip(columns.items(), shape, strict=True):
        widths = np.cumprod(branches[:0:-1])
        if len(widths):
            chains = [[code, *(f"{width}_{code // width}" for width in widths.tolist())] for code in np.unique(codes)]
            hierarchies[column] = eq.Hierarchy.mapping([[str(one) for one in chain] for chain in chains])
    frame = pl.DataFrame(columns).with_columns(pl.all().cast(pl.String)).with_columns(v=amount)
    value = None if rule.startswith("min-count") else "v"
    return eq.table(eq.Records.of(frame, eq.Roles()), list(columns), value, hierarchies=hierarchies), chosen


def measured_with_guard(name: str, rule: str, guarded: bool) -> dict[str, object]:
    """Cost of one table from records: the pattern, the certificate, the longest silence, and whom the audit covers."""
    table, chosen = from_records(name, rule)
    heard, pauses = [time.monotonic()], [0.0]
    kept: list[Any] = []

    def tell(*_: object) -> None:
        pauses.append(time.monotonic() - heard[-1])
        heard.append(time.monotonic())

    mask = Suppress(chosen, singletons=guarded)
    pattern = cost(lambda: kept.append(mask.apply(table, Draws(1), tell)))
    audited = cost(lambda: kept.append(certify(kept[0], chosen, tell)))
    released, certificate = kept
    status, value = released.table["status"], released.numbers("value")
    return {
        "cells": len(table), "primaries": int((status == "sensitive").sum()),
        "secondaries": int((status == "secondary").sum()),
        "cost": float(value[(status == "secondary").to_numpy()].sum()), "pattern": pattern.cpu,
        "audit": audited.cpu, "cpu": pattern.cpu + audited.cpu, "silence": max(pauses), "peak": peak(),
        "failed": certificate.exact + certificate.exposed + certificate.insiders,
        "less": list(certificate.attackers.short),
    }  # fmt: skip


if __name__ == "__main__":
    if len(sys.argv) > 2:
        print(json.dumps(measured_with_guard(sys.argv[1], sys.argv[3], sys.argv[2] == "guarded")))
    else:
        print(json.dumps(measured(sys.argv[1])))
