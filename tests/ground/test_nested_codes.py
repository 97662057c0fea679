"""Codes of columns of lists, arrays and structs."""

import polars as pl
import pytest

from equipoise.ground.packed_keys import code


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([[1, 2], [1, 1], None, [1, 2]], dtype=pl.Array(pl.Int64, 2)),
        pl.Series([[1, 2], [1], None, [1, 2]]),
        pl.Series([{"x": 1}, {"x": 0}, None, {"x": 1}]),
    ],
)
def test_nested_values_are_coded(column: pl.Series) -> None:
    coded = code(column)
    assert coded.values.gather(coded.codes.tolist()).to_list() == column.to_list()
