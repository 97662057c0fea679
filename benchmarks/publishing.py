"""The decision to publish: a million different cells of domains with up to ten million people."""

from collections.abc import Callable, Iterator

import numpy as np
import polars as pl

import equipoise as eq
from benchmarks.rows import Row, Scale, cost

CELLS = 1_000_000
SECONDS = 10.0
"""CPU seconds that flagging a million cells may take."""
LIMIT = 1.5


def publishing(scale: Scale) -> Iterator[Row]:
    """Flagged against the seconds allowed, and against ten times a tenth of the cells."""
    _flagged(100)()  # what it imports is not counted
    many = scale.records(CELLS)
    spent, tenth = (cost(_flagged(size)).cpu for size in (many, many // 10))
    name = f"publish or suppress, {many:,} cells"
    yield Row(name, spent, SECONDS, 1.0, against="the seconds allowed")
    yield Row(name, spent, 10 * tenth, LIMIT, against=f"10 x that of {many // 10:,}")


def _flagged(size: int) -> Callable[[], object]:
    draw = np.random.default_rng(1)
    n = draw.integers(30, 1000, size)
    table = pl.DataFrame({"cell": np.arange(size), "domain_n": n, "domain_N": draw.integers(10**3, 10**7, size)})
    cells = eq.Cells.of(table.with_columns(n=draw.binomial(n, draw.beta(0.5, 20, size))))
    return lambda: eq.rules.ExpectedLoss("uniques:1000", "y", (0.5, 20)).flag(cells)
