"""Which columns a mask of a policy changes."""

from typing import Any

import polars as pl
import pytest

import equipoise as eq
from equipoise.policies.changed_columns import changed_columns

ROLES = eq.Roles("age", numeric=["rent", "cost"], weight="w", household="home")
RECORDS = eq.Records.of(
    pl.DataFrame({"age": [1, 2], "rent": [3.0, 4.0], "cost": [5.0, 6.0], "w": [1.5, 2.0], "home": [1, 2]}), ROLES
)


@pytest.mark.parametrize(
    ("mask", "columns"),
    [
        ({"use": "noise", "columns": [["rent"], ["rent", "cost"]], "scale": 0.1}, ["cost", "rent"]),
        ({"use": "top_code", "column": "rent", "at": 3}, ["rent"]),
        ({"use": "swap", "keys": ["age"], "attribute": "cost"}, ["cost"]),
        ({"use": "renumber"}, ["home"]),
        ({"use": "coarsen-weights"}, ["w"]),
        ({"use": "synthesize", "columns": ["rent"]}, ["rent"]),
        ({"use": "synthesize"}, ["age", "cost", "home", "rent", "w"]),
        ({"use": "sample", "fraction": 0.5}, []),
        ({"use": "no such mask"}, []),
    ],
)
def test_columns_that_a_mask_changes(mask: dict[str, Any], columns: list[str]) -> None:
    assert sorted(changed_columns(mask, RECORDS)) == columns
