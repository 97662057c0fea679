"""Linked ready tables, attacked by SciPy over all combinations of their columns: nothing of the project's own is used.

The attacker has the published tables alone. Who sees that a region lies in one country only, for its cells with the
others are empty, adds up regions; in general the tables are margins of one finer table that is not negative.
"""

import itertools

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog

import equipoise as eq
from equipoise.ground.randomness import Draws

COUNT = 3
SEEDS = range(60)
COLUMNS = ("region", "country", "trade")
PAIRS = (("region", "country"), ("region", "trade"), ("country", "trade"))


def drawn(seed: int) -> pl.DataFrame:
    """People in regions, each in one country where the seed is odd."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(30, 110))
    region = rng.choice(7, size, p=rng.dirichlet(np.full(7, 1.5)))
    country = region % 3 if seed % 2 else rng.integers(0, 3, size)
    trade = rng.choice(3, size, p=rng.dirichlet(np.full(3, 1.5)))
    return pl.DataFrame({n: [f"{n}{i}" for i in x] for n, x in zip(COLUMNS, (region, country, trade), strict=True)})


def ready(frame: pl.DataFrame, by: tuple[str, ...]) -> eq.Cells:
    """The table by these columns as somebody else made it: numbers, and no records behind them."""
    cells = eq.table(eq.Records.of(frame, eq.Roles()), by).table.select(*by, "n", value=pl.col("n"))
    return eq.table(eq.Records.of(cells, eq.Roles()), by, "value", ready=True)


def known(frame: pl.DataFrame, tables: list[eq.Cells]) -> list[str]:
    """Small cells that follow from the published ones to within what the rule asks."""
    cube = list(itertools.product(*(sorted(set(frame[name])) for name in COLUMNS)))
    rows, totals, targets = [], [], []
    for table, by in zip(tables, PAIRS, strict=True):
        for *labels, many, told in table.table.select(*by, "n", "published").rows():
            places = [COLUMNS.index(name) for name in by]
            fits = (all(a in ("Total", one[i]) for a, i in zip(labels, places, strict=True)) for one in cube)
            row = np.fromiter(fits, dtype=float, count=len(cube))
            if told is not None:
                rows.append(row)
                totals.append(float(many))
            if 0 < many < COUNT:
                targets.append((labels, row, told))
    found = []
    for labels, row, told in targets:
        low, high = (linprog(s * row, A_eq=np.array(rows), b_eq=totals, method="highs") for s in (1, -1))
        assert low.status == 0
        top = np.inf if high.status == 3 else -high.fun
        if told is not None or top < COUNT - 1e-6 or top - low.fun < 1e-6:
            found.append(f"{labels}: {low.fun:.3f} to {top:.3f}")
    return found


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.evidence(every=30)
def test_ready_tables_that_are_protected_together(seed: int) -> None:
    frame = drawn(seed + 1)
    linked = eq.protect_tables([ready(frame, by) for by in PAIRS], eq.tables.Suppress(eq.rules.MinCount(COUNT)))
    assert any("beyond what their labels say" in who for who in linked.attackers.not_cover)
    assert not known(frame, list(linked))


def test_the_attacker_finds_what_each_table_alone_hides() -> None:
    frame = drawn(1)
    alone = [eq.tables.Suppress(eq.rules.MinCount(COUNT)).apply(ready(frame, by), Draws(1)) for by in PAIRS]
    assert known(frame, alone)
    assert eq.tables.difference(alone[0], alone[1:])["exposed"].any()
