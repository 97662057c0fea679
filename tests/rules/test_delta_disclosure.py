"""delta-disclosure privacy."""

from math import log2

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.data.cells import Cells


def test_an_absent_value_is_told() -> None:
    """Brickell and Shmatikov (2008): every value counts, also one the class does not have, whatever delta is."""
    table = pl.DataFrame({"g": ["a", "a", "b"], "x": ["u", "v", "u"], "n": [5, 5, 9]})
    assert eq.rules.DeltaDisclosure("x", 1e6).flag(Cells.of(table)).to_list() == [False, False, True]


@given(
    counts=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=6), delta=st.floats(0.1, 3)
)
def test_against_the_formula(counts: list[tuple[int, int]], delta: float) -> None:
    rows = [(g, v, n) for g, pair in enumerate(counts) for v, n in zip("uv", pair, strict=True)]
    cells = Cells.of(pl.DataFrame(rows, schema=["g", "x", "n"], orient="row"))
    whole = [sum(pair[i] for pair in counts) / sum(map(sum, counts)) for i in (0, 1)]
    far = [max(abs(log2(n / sum(pair) / q)) for n, q in zip(pair, whole, strict=True)) for pair in counts]
    flags = eq.rules.DeltaDisclosure("x", delta).flag(cells).to_list()
    for place, distance in enumerate(far):
        if abs(distance - delta) > 1e-6:
            assert flags[2 * place] == flags[2 * place + 1] == (distance >= delta)


def test_on_the_line_is_unsafe() -> None:
    """Less than delta is asked: twice and a quarter as likely, at delta 1."""
    table = pl.DataFrame({"g": ["a", "a", "b", "b"], "x": ["u", "v"] * 2, "n": [2, 2, 1, 7]})
    flags = eq.rules.DeltaDisclosure("x", 1).flag(Cells.of(table))
    assert flags.to_list() == [log2((2 / 4) / (3 / 12)) >= 1] * 2 + [log2((3 / 12) / (1 / 8)) >= 1] * 2
    assert flags.all()


def test_unfit() -> None:
    with pytest.raises(eq.ParameterError, match="delta"):
        eq.rules.DeltaDisclosure("x", -1)
