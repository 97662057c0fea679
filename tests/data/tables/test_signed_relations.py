"""Negative values and signed relations, worked by hand."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.data.tables.table_arrays import additive, holds
from equipoise.ground.randomness import Draws
from equipoise.tables import Ready

BOOKS = pl.DataFrame({"bank": ["p", "p", "q", "q"], "credit": [50, 10, 0, 30], "debit": [20, 40, 5, 30]})
"""Balances 30, -30, -5 and 0."""
TREE = ["profit = sales - costs", "costs = wages + goods"]


def books(**options: Any) -> Any:
    return eq.table(eq.Records.of(BOOKS, eq.Roles()), "bank", relation="balance = credit - debit", **options)


def row(table: Any, **labels: str) -> dict[str, Any]:
    return table.table.filter(*(pl.col(name) == label for name, label in labels.items())).row(0, named=True)


def test_rules_compare_contributions_without_signs() -> None:
    """100 - 90 + 5: the net value is 15, but who has -90 knows the 100 to within 5 of it."""
    gains = pl.DataFrame({"k": ["a"] * 3 + ["b"] * 4, "x": [100.0, -90.0, 5.0, 40.0, 40.0, -40.0, 40.0]})
    table = eq.table(eq.Records.of(gains, eq.Roles()), "k", "x")
    assert row(table, k="a") | {"n": 3, "value": 15.0, "gross": 195.0, "top1": 100.0, "top2": 90.0} == row(table, k="a")
    assert eq.rules.PPercent(0.1).flag(table).to_list() == [False, True, False]
    levels = eq.rules.PPercent(0.1).levels(table).row(1)
    assert levels == pytest.approx((5.0, 5.0))


def test_a_table_and_its_negative_have_the_same_sensitive_cells() -> None:
    """sdcTools/UserSupport issue 156: tau-ARGUS 4.2.0 suppressed every cell of strictly negative values."""
    random = np.random.default_rng(7)
    frame = pl.DataFrame({"k": random.choice(list("abcde"), 40), "x": random.gamma(0.5, 100, 40)})
    rule = eq.rules.PPercent(0.15) | eq.rules.Dominance(2, 0.8) | eq.rules.MinCount(3)
    one, two = (
        eq.table(eq.Records.of(frame.with_columns(pl.col("x") * sign), eq.Roles()), "k", "x") for sign in (1, -1)
    )
    assert rule.flag(one).any()
    assert rule.flag(one).to_list() == rule.flag(two).to_list()


def test_an_attacker_is_not_told_that_a_loss_is_at_least_zero() -> None:
    frame = pl.DataFrame({"k": ["a"] * 9 + ["b"] * 4 + ["c"], "x": [10.0, -10.0, 10.0] * 3 + [10.0, -3.0] * 2 + [7.0]})
    made = eq.tables.Suppress(eq.rules.MinCount(3)).apply(
        eq.table(eq.Records.of(frame, eq.Roles()), "k", "x"), Draws(1)
    )
    cells = eq.tables.audit(made, against="outsider")
    assert cells["k"].to_list() == ["b", "c"]
    assert cells["lower"].to_list() == [-np.inf, -np.inf]
    with pytest.raises(eq.DataError, match="Round is for counts and amounts that are never negative"):
        eq.tables.Round(5).apply(eq.table(eq.Records.of(frame, eq.Roles()), "k", "x"), Draws(1))


def test_credit_less_debit_is_the_balance() -> None:
    table = books()
    assert [row(table, bank=bank, item="balance")["value"] for bank in ("p", "q", "Total")] == [0.0, -5.0, -5.0]
    assert row(table, bank="p", item="balance")["gross"] == 60.0
    assert row(table, bank="p", item="balance")["n"] == row(table, bank="p", item="credit")["n"] == 2
    assert table.table.filter("signed")["item"].unique().to_list() == ["balance"]
    assert np.abs(additive(table).residuals(table.numbers("value"))).max() == 0
    assert np.array_equal(holds(table) @ table.numbers("value")[table.inner], table.numbers("value"))


def test_items_may_be_labels_with_a_holding() -> None:
    long = BOOKS.with_row_index("firm").unpivot(["credit", "debit"], index=["firm", "bank"], variable_name="item")
    options: dict[str, Any] = {"relation": "balance = credit - debit", "holding": "firm"}
    table = eq.table(eq.Records.of(long, eq.Roles()), ["bank", "item"], "value", **options)
    columns = ["bank", "item", "value", "gross", "contributors", "top1", "top2"]
    assert table.table.select(columns).equals(books().table.select(columns))


def test_relations_of_relations() -> None:
    firms = pl.DataFrame({"k": ["a", "b"], "sales": [9, 5], "wages": [3, 4], "goods": [2, 4]})
    table = eq.table(eq.Records.of(firms, eq.Roles()), "k", relation=TREE)
    totals = table.table.filter(pl.col("k") == "Total")
    assert dict(totals.select("item", "value").rows()) == {
        "costs": 13,
        "goods": 6,
        "profit": 1,
        "sales": 14,
        "wages": 7,
    }


def test_a_ready_table_is_checked_and_added_up() -> None:
    cells = books().table.select("bank", "item", n="n", x="value")
    ready = {"relation": "balance = credit - debit", "ready": Ready(n="n", total={"bank": "Total"})}
    for file in (cells, cells.filter(pl.col("item") != "balance")):
        table = eq.table(eq.Records.of(file, eq.Roles()), ["bank", "item"], "x", **ready)
        assert row(table, bank="q", item="balance")["value"] == -5.0
    off = (pl.col("item") == "balance") & (pl.col("bank") != "q")
    wrong = cells.with_columns(x=pl.col("x") + off.cast(pl.Float64))
    with pytest.raises(eq.DataError, match="is not the sum of its parts along 'item'"):
        eq.table(eq.Records.of(wrong, eq.Roles()), ["bank", "item"], "x", **ready)


@pytest.mark.parametrize(
    ("relation", "words"),
    [
        ("balance", "A relation is written"),
        ("balance = credit", "A relation is written"),
        ("balance = credit - credit", "says an item twice"),
        (["a = credit - debit", "b = credit + debit"], "make up one item"),
        ("balance = credit - depit", "not columns of the records"),
    ],
)
def test_bad_relations(relation: Any, words: str) -> None:
    with pytest.raises(eq.EquipoiseError, match=words):
        eq.table(eq.Records.of(BOOKS, eq.Roles()), "bank", relation=relation)
