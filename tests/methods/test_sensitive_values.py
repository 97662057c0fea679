"""Rules about classes, asked about cells and about records."""

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.methods.sensitive_values import chosen, flagged, sensitive_of

TABLE = pl.DataFrame({"age": [1, 1, 2, 2, 3], "ill": ["u", "u", "u", "v", "v"], "w": [1.0, 2.0, 1.0, 1.0, 1.0]})


def test_rules_of_all_kinds_together() -> None:
    """Counted by keys and sensitive values at once; each rule sees the classes it is about, cells or not."""
    records = eq.read(TABLE, eq.Roles(["age"], weight="w"))
    cells = eq.count(records, ("age", "ill"))
    assert cells.table.select("age", "ill").rows() == [(1, "u"), (2, "u"), (2, "v"), (3, "v")]
    few, same = eq.rules.MinCount(2), eq.rules.Diversity("ill", 2)
    assert flagged(few, cells, ("age",)).tolist() == [False, False, False, True]
    assert flagged(same, cells, ("age",)).tolist() == [True, False, False, True]
    assert flagged(few & same, cells, ("age",)).tolist() == [False, False, False, True]
    assert flagged(eq.rules.Zero() | same, cells, ("age",)).tolist() == [True, False, False, True]
    assert sensitive_of([few | same, same]) == ("ill",)


def test_the_records_of_unsafe_classes() -> None:
    records = eq.read(TABLE, eq.Roles(["age"]))
    found = chosen(eq.rules.Diversity("ill", 2), records, ("age",), TABLE)
    np.testing.assert_array_equal(found, [True, True, False, False, True])


def test_missing_keys_that_match_anything() -> None:
    """Rules look at all who match; a search over coarsenings says that it cannot prune by sensitive values then."""
    table = TABLE.with_columns(pl.when(pl.col("age") == 3).then(None).otherwise(pl.col("age")).alias("age"))
    for missing, wanted in (("category", [True, False, False]), ("any", [False, False, False])):
        records = eq.read(table, eq.Roles(["age"], missing=missing))  # type: ignore[arg-type]
        cells = eq.count(records)
        assert flagged(eq.rules.MinCount(2), cells, ("age",)).tolist() == wanted
    tree = {"age": eq.Hierarchy.intervals(2)}
    wild = eq.read(table, eq.Roles(["age"], sensitive="ill", missing="any", hierarchies=tree))
    with pytest.raises(eq.ParameterError, match="missing='category'"):
        eq.best_coarsening(wild, eq.rules.Diversity("ill", 2), suppress_at_most=0.5)
