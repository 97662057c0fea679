"""Statuses and marks as files write them."""

import polars as pl
import pytest

import equipoise as eq
from equipoise.data.tables.cell_status import marked, statuses


def test_statuses() -> None:
    kinds = ["published", "sensitive", "secondary", "shown", "empty"]
    assert statuses(pl.Series("s", ["S", " u ", "X", "z", "E"])).to_list() == kinds
    assert statuses(pl.Series("s", [2, 9, 12, 10, 14])).to_list() == kinds
    assert statuses(pl.Series("s", [1.0, 3.0, 11.0, 10.0, 13.0])).to_list() == kinds
    assert statuses(pl.Series("s", ["published", "sensitive", "helper", "protected", "empty"])).to_list() == kinds


def test_marks() -> None:
    for values in ([True, False, None], [1, 0, None], [1.0, 0.0, None], ["TRUE", "false", ""], ["U", "s", None]):
        assert marked(pl.Series("m", values)).to_list() == [True, False, False]


@pytest.mark.parametrize("read", [marked, statuses])
def test_what_is_neither_is_counted_not_quoted(read) -> None:
    with pytest.raises(eq.DataError, match="2 cells have something else in column 'm'") as caught:
        read(pl.Series("m", ["canary", "u", "canary"]))
    assert "canary" not in str(caught.value)
