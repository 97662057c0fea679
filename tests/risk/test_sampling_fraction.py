"""The sampling fraction, given or from weights."""

import math

import polars as pl
import pytest

from equipoise.data.cells import Cells
from equipoise.ground.errors import ParameterError
from equipoise.risk import LogLinear, PopulationUniques, SpecialUniques
from equipoise.risk._cell_score import CENSUS_NOTE, fraction_of


def cells(*weights: float) -> Cells:
    return Cells.of(pl.DataFrame({"k": range(len(weights)), "n": [1] * len(weights), "total": weights}))


def test_given_before_weights_before_census() -> None:
    assert fraction_of(cells(10.0, 30.0), 0.2) == (0.2, ())
    assert fraction_of(cells(10.0, 30.0), None) == (0.05, ())
    assert fraction_of(cells(1.0, 1.0), None) == (1.0, (CENSUS_NOTE,))


def test_weights_below_one_are_no_more_than_a_census() -> None:
    assert fraction_of(cells(0.5, 0.5), None) == (1.0, ())
    assert fraction_of(cells(0.0, 0.0), None) == (1.0, ())


@pytest.mark.parametrize("bad", [0.0, -0.1, 1.5, math.nan])
@pytest.mark.parametrize("measure", [LogLinear, PopulationUniques, SpecialUniques])
def test_what_is_no_fraction(bad: float, measure: type) -> None:
    with pytest.raises(ParameterError, match="above 0 and at most 1"):
        measure(fraction=bad)
