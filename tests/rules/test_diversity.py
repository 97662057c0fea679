"""l-diversity: the published example, brute force, and what merging classes does."""

from collections import Counter
from math import log
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.data.cells import Cells
from equipoise.methods.sensitive_values import merging

# The inpatients of Machanavajjhala et al. (2007): a 4-anonymous table and a 3-diverse one, twelve patients each.
FOUR_ANONYMOUS = ["heart", "heart", "virus", "virus", "cancer", "heart", "virus", "virus", *["cancer"] * 4]
THREE_DIVERSE = [
    "heart",
    "virus",
    "cancer",
    "cancer",
    "cancer",
    "heart",
    "virus",
    "virus",
    "heart",
    "virus",
    "cancer",
    "cancer",
]
GROUPS = ["a"] * 4 + ["b"] * 4 + ["c"] * 4


def cells_of(groups: list[Any], **sensitive: list[Any]) -> Cells:
    table = pl.DataFrame({"group": groups, **sensitive})
    return Cells.of(table.group_by(table.columns).agg(n=pl.len()))


def unsafe(rule: Any, cells: Cells) -> set[Any]:
    return set(cells.table.filter(rule.flag(cells))["group"])


def test_the_published_tables() -> None:
    """The third block of the first is all cancer; the second has three values in each."""
    four, three = cells_of(GROUPS, ill=FOUR_ANONYMOUS), cells_of(GROUPS, ill=THREE_DIVERSE)
    assert unsafe(eq.rules.Diversity("ill", 2), four) == {"c"}
    assert unsafe(eq.rules.Diversity("ill", 3), four) == {"a", "c"}
    assert unsafe(eq.rules.Diversity("ill", 3), three) == set()
    assert unsafe(eq.rules.Diversity("ill", 4), three) == {"a", "b", "c"}


def test_entropy_of_even_values_is_exactly_l() -> None:
    """l values, each as frequent: log l, which is on the line and safe; one record more and it is not."""
    for l in (2, 3, 5, 7):  # noqa: E741
        values = [str(v) for v in range(l)]
        even, odd = cells_of(["g"] * l, ill=values), cells_of(["g"] * (l + 1), ill=[*values, "0"])
        assert not unsafe(eq.rules.Diversity("ill", l, kind="entropy"), even)
        assert unsafe(eq.rules.Diversity("ill", l, kind="entropy"), odd)


def by_hand(values: list[str], l: float, kind: str, c: float) -> bool:  # noqa: E741
    counts = sorted(Counter(values).values(), reverse=True)
    n = sum(counts)
    if kind == "distinct":
        return len(counts) < l
    if kind == "entropy":
        return -sum(r / n * log(r / n) for r in counts) < log(l) - 1e-12
    return not counts[0] < c * sum(counts[int(l) - 1 :])


@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.sampled_from("uvwx")), min_size=1, max_size=40),
    l=st.integers(1, 4),
    kind=st.sampled_from(["distinct", "entropy", "recursive"]),
)
def test_against_brute_force(rows: list[tuple[int, str]], l: int, kind: Any) -> None:  # noqa: E741
    groups = [g for g, _ in rows]
    rule = eq.rules.Diversity("ill", l, kind=kind, c=1.7 if kind == "recursive" else None)
    wanted = {g for g in groups if by_hand([v for h, v in rows if h == g], l, kind, 1.7)}
    assert unsafe(rule, cells_of(groups, ill=[v for _, v in rows])) == wanted


def test_several_sensitive_columns() -> None:
    """Each must hold; knowing the other one, this one is learnt: Machanavajjhala et al. (2007)."""
    cells = cells_of(["a"] * 4 + ["b"] * 4, ill=list("uvuvuvuv"), pay=list("hlhlhhll"))
    apart = eq.rules.Diversity(("ill", "pay"), 2)
    assert unsafe(apart, cells) == set()
    known = eq.rules.Diversity(("ill", "pay"), 2, others="known")
    assert unsafe(known, cells) == {"a"}
    assert merging(known) == ""


def test_what_merging_does() -> None:
    """What the search over coarsenings rests on."""
    distinct, entropy = eq.rules.Diversity("ill", 2), eq.rules.Diversity("ill", 2, kind="entropy")
    few = eq.rules.MinCount(3)
    assert [merging(r) for r in (distinct, entropy, few, eq.rules.Zero())] == ["any", "safe", "any", ""]
    assert [merging(r) for r in (few | distinct, few | entropy, few & distinct, few & entropy)] == [
        "any",
        "safe",
        "any",
        "",
    ]


def test_a_column_that_was_not_counted() -> None:
    with pytest.raises(eq.RolesError, match="Did you mean 'ill'"):
        eq.rules.Diversity("iil").flag(cells_of(GROUPS, ill=FOUR_ANONYMOUS))
