"""The threshold rule."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.data.cells import Cells


@given(counts=st.lists(st.integers(0, 9), min_size=1, max_size=20), n=st.integers(1, 10))
def test_a_cell_of_fewer_than_n_is_unsafe(counts: list[int], n: int) -> None:
    """Willenborg and de Waal (1996), ch. 3: records, but fewer than n; the order is that of the cell table."""
    cells = Cells.of(pl.DataFrame({"x": list(range(len(counts))), "n": counts}))
    flags = eq.rules.MinCount(n).flag(cells)
    assert flags.to_list() == [0 < c < n for c in counts]
    assert (flags.name, len(flags)) == ("unsafe", len(cells))


def test_the_rule_and_the_measure_agree(people_records: eq.Records) -> None:
    """MinCount(k + 1) flags the cells whose records Uniques(k) counts."""
    cells = eq.count(people_records)
    for k in (1, 2, 3):
        flagged = cells.table.filter(eq.rules.MinCount(k + 1).flag(cells))["n"].sum()
        assert flagged == eq.risk.Uniques(k).measure(cells, cells).number


@pytest.mark.parametrize("n", [0, -1, 1.5, "3"])
def test_unfit_thresholds(n: object) -> None:
    with pytest.raises(eq.ParameterError):
        eq.rules.MinCount(n)  # type: ignore[arg-type]
