"""Dominance, p%, prior-posterior, zero and request rules: exact fractions, ties, levels, and rules together."""

from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.data.cells import Cells
from equipoise.ground.randomness import Draws
from equipoise.methods.protection_levels import levels
from equipoise.rules import Dominance, MinCount, PPercent, PriorPosterior, Request, Zero

CONTRIBUTIONS = st.lists(st.integers(0, 60), min_size=1, max_size=6)
SHARES = st.integers(1, 99).map(lambda percent: percent / 100)


def cell(contributions: list[int], **more: list[float]) -> Cells:
    ranked = sorted(contributions, reverse=True) + [0] * 4
    tops = {f"top{k}": [ranked[k - 1]] for k in range(1, 5)}
    columns = {"cell": ["c"], "n": [len(contributions)], "value": [sum(contributions)], **tops, **more}
    return Cells.of(pl.DataFrame(columns), ("cell",))


def exact(share: float) -> Fraction:
    return Fraction(round(100 * share), 100)


@given(parts=CONTRIBUTIONS, n=st.integers(1, 3), k=SHARES, strict=st.booleans())
def test_dominance_in_whole_numbers(parts: list[int], n: int, k: float, strict: bool) -> None:
    """Domingo-Ferrer and Torra (2004), section 3.1: k or more of the total, decided by exact fractions."""
    held, total = sum(sorted(parts, reverse=True)[:n]), exact(k) * sum(parts)
    wanted = sum(parts) > 0 and (held > total if strict else held >= total)
    assert Dominance(n, k, strict).flag(cell(parts)).to_list() == [wanted]


@given(parts=CONTRIBUTIONS, p=SHARES, coalition=st.integers(1, 3))
def test_p_percent_in_whole_numbers(parts: list[int], p: float, coalition: int) -> None:
    ranked = sorted(parts, reverse=True)
    rest = sum(ranked[coalition + 1 :])
    assert PPercent(p, coalition).flag(cell(parts)).to_list() == [rest < exact(p) * ranked[0]]


@given(parts=CONTRIBUTIONS, p=SHARES, q=SHARES)
def test_prior_posterior_in_whole_numbers(parts: list[int], p: float, q: float) -> None:
    ranked = sorted(parts, reverse=True)
    if p >= q:
        with pytest.raises(eq.ParameterError, match="below q"):
            PriorPosterior(p, q)
        return
    wanted = exact(q) * sum(ranked[2:]) < exact(p) * ranked[0]
    assert PriorPosterior(p, q).flag(cell(parts)).to_list() == [wanted]


@given(parts=CONTRIBUTIONS, p=SHARES)
def test_knowing_nothing_beforehand_is_the_p_percent_rule(parts: list[int], p: float) -> None:
    one, two = PPercent(p), PriorPosterior(p, 1.0)
    assert one.flag(cell(parts)).equals(two.flag(cell(parts)))
    assert levels(one, cell(parts)).equals(levels(two, cell(parts)))


def test_on_the_line() -> None:
    """42 = 20 + 19 + 3 at p = 15 % is on the line: 3 is not less than 15 % of 20. Values in cents do not change it."""
    for unit in (1, 0.01, 0.1, 1e6):
        scaled = Cells.of(
            pl.DataFrame({"c": ["c"], "n": 3, "value": 42 * unit, "top1": 20 * unit, "top2": 19 * unit}), ("c",)
        )
        assert PPercent(0.15).flag(scaled).to_list() == [False]
        assert Dominance(1, 20 / 42).flag(scaled).to_list() == [True]
        assert Dominance(1, 20 / 42, strict=True).flag(scaled).to_list() == [False]


def test_the_paper_s_first_example() -> None:
    """Robertson and Ethier (2002): (59, 40, 1) is called safe, (61, 20, 19) sensitive; the p% rule says the reverse."""
    cells = Cells.of(pl.DataFrame({"c": ["x", "y"], "n": 3, "value": 100, "top1": [59, 61], "top2": [40, 20]}), ("c",))
    assert Dominance(1, 0.6).flag(cells).to_list() == [False, True]
    assert PPercent(0.1).flag(cells).to_list() == [True, False]
    told = eq.rules.compare(cells, [Dominance(1, 0.6), PPercent(0.1)])
    assert told["bound"].to_list() == [60.0, 80.0]
    assert told["within"].to_list() == pytest.approx([1 / 59, 19 / 61])


@given(parts=CONTRIBUTIONS.filter(lambda parts: sum(parts) > 0), p=SHARES)
def test_a_published_value_at_its_level_would_be_safe(parts: list[int], p: float) -> None:
    """The level is the least by which the total must be larger for the rule to call the cell safe."""
    ranked = sorted(parts, reverse=True)
    found = levels(PPercent(p), cell(parts)).row(0, named=True)
    lack = exact(p) * ranked[0] - sum(ranked[2:])
    if lack <= 0:
        assert found == {"lower": 0.0, "upper": 0.0}
    else:
        assert found["upper"] == pytest.approx(max(float(lack), 1e-4 * max(1, sum(parts))))
        assert found["lower"] == min(found["upper"], sum(parts))


def test_zeros_of_counts_are_empty_cells() -> None:
    """Of counts no cell with people is 0: the rule did nothing there and the audit passed."""
    counts = Cells.of(pl.DataFrame({"c": ["a", "b"], "n": [4, 0]}), ("c",))
    assert Zero().flag(counts).to_list() == [False, True]
    assert Zero(empty=False).flag(counts).to_list() == [False, False]
    people = pl.DataFrame({"g": list("a" * 6 + "b" * 8 + "c" * 7), "s": list("p" * 10 + "q" * 4 + "p" * 3 + "q" * 4)})
    table = eq.table(eq.read(people, eq.Roles(["g", "s"])), ["g", "s"])
    assert Zero().flag(table).sum() == 1
    suppressed = eq.tables.Suppress(Zero()).apply(table, Draws(1))
    assert not eq.tables.audit(suppressed)["exposed"].any()
    assert eq.tables.Exposed(Zero()).measure(table, table).number == 1


def test_zeros_and_requests() -> None:
    cells = Cells.of(
        pl.DataFrame({"c": ["a", "b", "e"], "n": [2, 3, 0], "value": [0, 9, 0], "requested": [0, 4, 0]}), ("c",)
    )
    assert Zero().flag(cells).to_list() == [True, False, False]
    assert Request(0.0).flag(cells).to_list() == [False, True, False]
    assert Request(0.5).flag(cells).to_list() == [False, False, False]
    assert Request(0.4).levels(cells)["upper"].to_list() == pytest.approx([0, 1.8, 0])
    assert Request(0.5, n=4).flag(cells).to_list() == [False, True, False]


def test_rules_together() -> None:
    cells = Cells.of(
        pl.DataFrame({"c": list("abc"), "n": [2, 5, 9], "value": [50, 90, 90], "top1": [49, 80, 10], "top2": 1}), ("c",)
    )
    few, close = MinCount(3), PPercent(0.2)
    assert (few | close).flag(cells).to_list() == [True, True, False]
    assert (few & close).flag(cells).to_list() == [True, False, False]
    assert (few | close).levels(cells)["upper"].to_list() == pytest.approx([10.0, 7.0, 0.0])
    assert (few & close).levels(cells)["upper"].to_list() == pytest.approx([10.0, 0.0, 0.0])
    assert (few | close | Zero()).rules == (few, close, Zero())


@pytest.mark.parametrize(
    ("rule", "parts", "words"),
    [
        (
            Dominance(1, 0.6),
            [61, 20, 19],
            "Sensitive: the largest contributor holds 61.0% of the cell, at least 60.0%.",
        ),
        (Dominance(2, 0.9), [40, 30, 30], "Safe: the 2 largest contributors hold 70.0% of the cell, below 90.0%."),
        (PPercent(0.1), [59, 40, 1], "the second largest contributor can estimate the largest to within 1.7% of it"),
        (PriorPosterior(0.1, 0.3), [61, 20, 19], "who knew the others to within 30.0% can estimate the largest to"),
        (MinCount(3), [5, 4], "Unsafe: 2 records, fewer than 3."),
        (Zero(), [0, 0], "Sensitive: it is 0 and has contributors."),
        (Zero(), [], "Nobody is there: sensitive in a table of counts"),
        (Zero(empty=False), [], "Safe: it is not 0, or nobody is there."),
        (Zero(empty=True), [], "Sensitive: nobody is there."),
        (MinCount(3) | Zero(), [0, 0], "Unsafe: 2 records, fewer than 3. Sensitive: it is 0"),
    ],
)
def test_a_rule_says_why(rule: object, parts: list[int], words: str) -> None:
    row = cell(parts).table.row(0, named=True)
    assert words in rule.explain(row)


def test_what_a_table_must_say() -> None:
    with pytest.raises(eq.DataError, match=r"top=5"):
        Dominance(5, 0.8).flag(cell([1, 2]))
    with pytest.raises(eq.RolesError, match="requested"):
        Request().flag(cell([1, 2]))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Dominance(0, 0.5), lambda: Dominance(1, 60), lambda: PPercent(10), lambda: PPercent(0.1, 0),
        lambda: PriorPosterior(0.1, 30), lambda: Request(2), lambda: PPercent(float("nan")),
    ],
)  # fmt: skip
def test_shares_are_shares(make: object) -> None:
    with pytest.raises(eq.ParameterError):
        make()


def test_requests_as_in_tau_argus() -> None:
    """REQ(70, 40, 20) with a minimum frequency of 3, by hand after section 4.4.4 of the manual: more than 70 % (code 1)
    or 40 % (code 2) of the cell, or a request among fewer than 3; the safety margin is 20 % of the cell."""
    rows = [
        *(("first", 71, 1), ("first", 29, 0), ("first", 0, 0)),
        *(("on the line", 70, 1), ("on the line", 20, 0), ("on the line", 10, 0)),
        *(("second", 41, 2), ("second", 30, 0), ("second", 29, 0)),
        *(("below", 40, 2), ("below", 60, 1), ("below", 0, 0)),
        *(("few", 1, 1), ("few", 99, 0)),
        *(("nobody", 99, 0), ("nobody", 1, 0)),
    ]
    records = eq.Records.of(pl.DataFrame(rows, ["k", "x", "asked"], orient="row"), eq.Roles())
    table = eq.table(records, "k", "x", request="asked")
    rule = Request(0.7, 0.4, 0.2, 3)
    found = table.table.with_columns(rule.levels(table)).filter(rule.flag(table))
    assert found["k"].to_list() == ["few", "first", "second"]
    assert found["upper"].to_list() == found["lower"].to_list() == pytest.approx([20.0] * 3)
    assert eq.rules.Request(0.7, 0.4).flag(table).sum() == 2
    assert not rule.flag(table)[0], "the total of all, of which nobody who asked has much"


def test_a_holding_that_asked_counts_as_one() -> None:
    frame = pl.DataFrame(
        {"k": ["a"] * 4, "x": [4.0, 4.0, 4.0, 3.0], "firm": [1, 1, 2, 3], "asked": [True] + [False] * 3}
    )
    records = eq.Records.of(frame, eq.Roles())
    assert eq.table(records, "k", "x", request="asked").numbers("requested").tolist() == [4.0, 4.0]
    held = eq.table(records, "k", "x", request="asked", holding="firm")
    assert held.numbers("requested").tolist() == [8.0, 8.0]
    assert Request(0.5).flag(held).to_list() == [True, True]


@pytest.mark.parametrize("unit", [1e-9, 1e-3, 1e6])
def test_levels_scale_with_the_unit(unit: float) -> None:
    """Thousands or millions: the same cells, the same levels in another unit."""
    columns = {
        "n": [3, 3, 2, 4, 0],
        "value": [100, 80, 0, 0.5, 0],
        "top1": [90, 30, 0, 0.4, 0],
        "top2": [9, 30, 0, 0.1, 0],
    }
    plain = pl.DataFrame({"c": [*"abcde"], **columns, "requested": [80, 0, 0, 0.4, 0]}, strict=False)
    values = pl.col("value", "top1", "top2", "requested")
    one, other = (Cells.of(plain.with_columns(values * u), ("c",)) for u in (1.0, unit))
    for rule in (PPercent(0.2), Dominance(1, 0.6), Zero(), Zero(empty=True), Request(), MinCount(4), PriorPosterior()):
        assert rule.flag(one).to_list() == rule.flag(other).to_list()
        for side in ("lower", "upper"):
            assert levels(rule, other)[side].to_list() == pytest.approx((levels(rule, one)[side] * unit).to_list())


def test_contributions_of_counts() -> None:
    """Beside a rule on counts, those on contributions take a record for one; alone they are refused."""
    cells = Cells.of(pl.DataFrame({"c": [*"abcd"], "n": [1, 2, 3, 9]}), ("c",))
    assert (MinCount(2) | PPercent(0.1)).flag(cells).to_list() == [True, True, False, False]
    assert (MinCount(2) | Dominance(2, 0.5)).flag(cells).to_list() == [True, True, True, False]
    for rule in (PPercent(0.1), PPercent(0.1) | Dominance(2, 0.5)):
        with pytest.raises(eq.DataError, match="largest contributions"):
            rule.flag(cells)
