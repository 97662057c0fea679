"""Diagnosis of dominance rules: cells of a table that they call safe although the p% rule does not."""

from dataclasses import dataclass
from typing import Any

import polars as pl

from equipoise import rules
from equipoise.data.tables.table import Table
from equipoise.methods.method import Rule, label
from equipoise.presentation.numbers import value_text
from equipoise.trials.table_method_names import rule_text

REFERENCE_RULE = rules.PPercent(0.1)
"""The rule that dominance is compared with."""
CLOSE_SHARE = 1e-6
"""A share below which an estimate is exact."""


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """How many cells a rule with dominance calls safe that the p% rule calls exposed, and the other way round.

    `words` have counts alone; `example` names a cell by its labels, and `cells` lists them: internal. So is the `rule`,
    as it is written.
    """

    missed: int
    needless: int
    words: str
    example: str | None
    cells: pl.DataFrame
    rule: str = ""


def parts_of(rule: Any) -> tuple[Any, ...]:
    """The single rules that a rule is made of."""
    if rule is None:
        return ()
    return tuple(p for part in rule.rules for p in parts_of(part)) if hasattr(rule, "rules") else (rule,)


def diagnose(table: Table, rule: Rule) -> Diagnosis | None:
    """The cells that a dominance rule misses; None where it has no dominance part, or of counts. Cost: O(cells)."""
    dominance = next((part for part in parts_of(rule) if isinstance(part, rules.Dominance)), None)
    if dominance is None or "top1" not in table.more.columns:
        return None
    differences = rules.compare(table, [rule, REFERENCE_RULE])
    missed = differences.filter(pl.col(label(REFERENCE_RULE)))
    needless = differences.height - missed.height
    return Diagnosis(
        missed.height,
        needless,
        _words(len(table), missed, needless, dominance),
        _example(table, missed),
        missed,
        rule_text(rule),
    )


def _words(cells: int, missed: pl.DataFrame, needless: int, rule: rules.Dominance) -> str:
    other = f"The p% rule at {value_text(REFERENCE_RULE.p, 'share')} asks for that directly."
    more = f" It calls {needless:,} sensitive in which nobody can." if needless else ""
    if missed.is_empty():
        return f"In this table dominance misses no cell that the p% rule finds.{more} {_general(rule)}"
    nearest = _within(float(missed["within"][0]))
    return (
        f"Dominance calls {missed.height:,} of {cells:,} cells safe in which the second largest contributor can "
        f"estimate the largest to within {value_text(REFERENCE_RULE.p, 'share')} of it, in the worst {nearest}.{more} "
        f"{other}"
    )


def _within(share: float) -> str:
    return f"to within {value_text(share, 'share')}" if share > CLOSE_SHARE else "exactly"


def _general(rule: rules.Dominance) -> str:
    if not rule.k < 1:
        return "In others it may."
    return f"In others it may. {rules.counterexample(rule.n, rule.k).words}"


def _example(table: Table, missed: pl.DataFrame) -> str | None:
    """The labels of the worst missed cell."""
    if missed.is_empty():
        return None
    row: dict[str, Any] = missed.row(0, named=True)
    place = ", ".join(f"{column} = {row[column]}" for column in table.by)
    return (
        f"The cell {place} is called safe, but there the second largest contributor knows the largest "
        f"{_within(float(row['within']))}."
    )
