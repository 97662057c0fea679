"""beta-likeness."""

from math import log

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.data.cells import Cells


@given(
    counts=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=6),
    beta=st.floats(0.1, 3),
    enhanced=st.booleans(),
)
def test_against_the_formula(counts: list[tuple[int, int, int]], beta: float, enhanced: bool) -> None:
    """Cao and Karras (2012): only what becomes more likely counts."""
    rows = [(g, v, n) for g, triple in enumerate(counts) for v, n in zip("uvw", triple, strict=True) if n]
    cells = Cells.of(pl.DataFrame(rows, schema=["g", "x", "n"], orient="row"))
    q = [sum(triple[i] for triple in counts) / sum(map(sum, counts)) for i in range(3)]
    flags = dict(zip(cells.table["g"], eq.rules.BetaLikeness("x", beta, enhanced).flag(cells), strict=True))
    for g, triple in enumerate(counts):
        gains = [
            (n / sum(triple) - p) / p - (min(beta, -log(p)) if enhanced else beta)
            for n, p in zip(triple, q, strict=True)
            if n
        ]
        if min(abs(gain) for gain in gains) > 1e-6:
            assert flags[g] == (max(gains) > 0)


def test_the_enhanced_bound_guards_frequent_values() -> None:
    """A value of three quarters of the file may not become certain, however large beta is."""
    table = pl.DataFrame({"g": ["a", "b", "b"], "x": ["u", "u", "v"], "n": [4, 2, 2]})
    cells = Cells.of(table)
    assert not eq.rules.BetaLikeness("x", 9, enhanced=False).flag(cells).any()
    assert eq.rules.BetaLikeness("x", 9).flag(cells).to_list() == [True, False, False]
