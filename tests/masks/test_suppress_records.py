"""Records suppressed: which, and what stays."""

import polars as pl
import pytest

import equipoise as eq
from equipoise.ground.randomness import Draws

TABLE = pl.DataFrame(
    {
        "age": [30, 30, 31, None, None, None],
        "sex": ["f", "f", "f", "m", None, None],
        "ill": ["flu", "flu", "gout", "flu", "flu", "gout"],
    }
)


def applied(rule: object, keys: tuple[str, ...] = ()) -> list[tuple[object, ...]]:
    records = eq.read(TABLE, eq.Roles(["age", "sex"]))
    return eq.masks.SuppressRecords(rule, keys).apply(records, Draws(1)).collect().rows()  # type: ignore[arg-type]


def test_small_classes_lose_their_keys() -> None:
    """All keys go, nothing else; a missing key is a category; records without any key are left alone."""
    rows = applied(eq.rules.MinCount(2))
    assert [row[:2] for row in rows] == [(30, "f"), (30, "f"), (None, None), (None, None), (None, None), (None, None)]
    assert [row[2] for row in rows] == TABLE["ill"].to_list()


def test_a_rule_about_sensitive_values_sees_whole_classes() -> None:
    """Classes are those of the keys, however the sensitive values split them, also for a rule that counts beside it."""
    rows = applied(eq.rules.Diversity("ill", 2))
    assert [row[0] for row in rows[:3]] == [None, None, None]
    rows = applied(eq.rules.MinCount(2) & eq.rules.Diversity("ill", 2))
    assert [row[0] for row in rows[:3]] == [30, 30, None]


def test_own_keys_and_misspelled_ones() -> None:
    assert [row[1] for row in applied(eq.rules.MinCount(2), ("sex",))] == ["f", "f", "f", None, None, None]
    with pytest.raises(eq.RolesError, match="Did you mean 'sex'"):
        applied(eq.rules.MinCount(2), ("sexx",))
    with pytest.raises(eq.RolesError, match="no keys"):
        eq.masks.SuppressRecords(eq.rules.MinCount(2)).apply(eq.read(TABLE, eq.Roles()), Draws(1))
    with pytest.raises(eq.ParameterError, match="rule"):
        eq.masks.SuppressRecords(3)  # type: ignore[arg-type]
