"""What an attacker can bound, whatever was done: against dense linear programs written from the labels alone."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

import equipoise as eq
from equipoise.data.records import Law
from equipoise.data.tables.table import Table
from equipoise.ground.randomness import Draws
from equipoise.tables import Adjust, CellKey, Exposed, Round, Suppress
from equipoise.tables.audits import changed_tables

Floats = NDArray[np.float64]
P10 = eq.rules.PPercent(0.1)
FEW = eq.rules.MinCount(3)


def records(seed: int, many: int = 60) -> eq.Records:
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "area": rng.choice([*"abc"], many, p=[0.6, 0.3, 0.1]),
            "trade": rng.choice([*"XYZ"], many, p=[0.6, 0.3, 0.1]),
            "turnover": np.ceil(rng.lognormal(3, 1.5, many)),
            "rkey": rng.random(many),
        }
    )
    return eq.Records.of(frame, eq.Roles())


def amounts(seed: int) -> Table:
    return eq.table(records(seed), ["area", "trade"], "turnover")


def counts(seed: int) -> Table:
    return eq.table(records(seed), ["area", "trade"], key="rkey")


def dense(made: Table, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The least and the most of every cell, over all inner cells that keep every cell between low and high."""
    cells = made.table.select(made.by).rows()
    inner = [labels for labels in cells if "Total" not in labels]
    held = np.array([[float(all(w in (o, "Total") for w, o in zip(c, i, strict=True))) for i in inner] for c in cells])
    kept = np.isfinite(high)
    rows, limits = np.vstack([-held, held[kept]]), np.concatenate([-low, high[kept]])
    found = np.zeros((2, len(cells)))
    for place, row in enumerate(held):
        for side, sign in enumerate((1.0, -1.0)):
            solved = linprog(sign * row, A_ub=rows, b_ub=limits, bounds=(0, None))
            found[side, place] = sign * solved.fun if solved.status == 0 else -sign * np.inf
    return found[0], found[1]


def known(shown: Table, method: Any, made: Table) -> tuple[Floats, Floats]:
    """What the law leaves of each cell by itself, written again from what the methods promise."""
    told, x = shown.published_values, made.numbers("value")
    if isinstance(method, Suppress):
        empty = made.n == 0
        return np.where(np.isnan(told), 0.0, told), np.where(np.isnan(told), np.where(empty, 0.0, np.inf), told)
    if isinstance(method, Round):
        return np.maximum(0.0, told - method.base), told + method.base
    if isinstance(method, CellKey):
        far = np.where(made.n > 0, method.most, 0.0)
        return np.maximum(0.0, told - far), told + far
    flagged, levels = method.rule.flag(made).to_numpy(), method.rule.levels(made)
    lower, upper = levels["lower"].to_numpy(), levels["upper"].to_numpy()
    moved = max(abs(t - v) / v for t, v, hit in zip(told, x, flagged, strict=True) if v > 0 and not hit)
    share = next(i / 10_000 for i in range(10_001) if i / 10_000 >= moved - 1e-9)
    assert shown.history[-1].parameters["largest"] == pytest.approx(share)
    low = np.where(flagged, np.maximum(0.0, told - 4 * upper), told / (1 + share))
    top = told / (1 - share) if share < 1 else np.full(len(x), np.inf)
    return low, np.where(flagged, told + 4 * lower, top)


CASES: list[tuple[Any, Any, Any]] = [
    (Suppress(P10), P10, amounts),
    (Suppress(FEW), P10, amounts),
    (Suppress(eq.rules.MinCount(2)), FEW, counts),
    (Round(20), P10, amounts),
    (Round(200), P10 | FEW, amounts),
    (Round(3, controlled=False), FEW, counts),
    (CellKey(most=2, variance=1.0), FEW, counts),
    (CellKey(most=1, variance=0.5), eq.rules.MinCount(4), counts),
    (Adjust(P10), P10, amounts),
    (Adjust(P10, most=0.3), P10, amounts),
]


@pytest.mark.parametrize(("method", "rule", "make"), CASES, ids=[repr(case[:2])[:60] for case in CASES])
def test_against_dense_programs(method: Any, rule: Any, make: Any) -> None:
    seed = 1 + CASES.index((method, rule, make)) % 2
    made = make(seed)
    shown = method.apply(made, Draws(seed))
    score, graded = (Exposed(rule, of).measure(shown, made) for of in ("cells", "shortfall"))
    low, high = dense(made, *known(shown, method, made))
    x, flagged, levels = made.numbers("value"), rule.flag(made).to_numpy(), rule.levels(made)
    below, above = levels["lower"].to_numpy(), levels["upper"].to_numpy()
    assert flagged.any()
    detail = score.detail.filter(pl.col("sensitive"))
    whole = make is counts and isinstance(method, Suppress)
    if not whole:
        assert np.allclose(detail["lower"], low[flagged], atol=1e-4, rtol=1e-6)
        assert np.allclose(detail["upper"], high[flagged], atol=1e-4, rtol=1e-6)
    short = (low > x - below + 1e-4) | (high < x + above - 1e-4)
    lacking = np.maximum(0, low - (x - below)) + np.maximum(0, x + above - np.where(np.isinf(high), x + above, high))
    if not whole:
        assert score.value == pytest.approx(short[flagged].mean())
        assert graded.value == pytest.approx((lacking[flagged] / (below + above)[flagged]).mean(), abs=1e-4)
    assert score.value >= short[flagged].mean(), "whole numbers narrow intervals, never widen them"
    assert 0 <= graded.value <= score.value


def test_the_table_as_it_is_is_the_worst() -> None:
    made = amounts(1)
    for of in ("cells", "shortfall"):
        score = Exposed(P10, of).measure(made, made)  # type: ignore[arg-type]
        assert (score.value, score.side, score.better) == (1.0, "risk", "lower")
        assert score.number == P10.flag(made).sum()


def test_suppression_under_the_same_rule_exposes_nothing() -> None:
    """That is what it is for; under another rule cells stay open."""
    made = amounts(2)
    assert Exposed(P10).measure(Suppress(P10).apply(made, Draws(1)), made).value == 0
    lax = Suppress(eq.rules.MinCount(1)).apply(made, Draws(1))
    assert Exposed(P10).measure(lax, made).value == 1


def test_no_sensitive_cell() -> None:
    made = amounts(1)
    score = Exposed(eq.rules.Zero()).measure(made, made)
    assert score.value == 0
    assert "no cell sensitive" in score.notes[0]


def test_the_adjusted_say_what_they_do_not_count_with() -> None:
    made = amounts(1)
    score = Exposed(P10).measure(Adjust(P10).apply(made, Draws(1)), made)
    assert "two values" in score.notes[0]
    nothing = Adjust(eq.rules.Zero()).apply(made, Draws(1))
    assert Exposed(P10).measure(nothing, made).value == 1, "it says that nothing moved"


def test_what_cannot_be_audited() -> None:
    made = counts(1)
    twice = CellKey().apply(made, Draws(1))
    again = Round(3).apply(twice, Draws(1))
    with pytest.raises(eq.DataError, match="changed more than once"):
        Exposed(FEW).measure(again, made)
    odd = made.protected(made.published_values + 1, pl.Series(["changed"] * len(made)), Law("shift", (), ""))
    with pytest.raises(eq.DataError, match="differ from the table's values"):
        Exposed(FEW).measure(odd, made)
    with pytest.raises(eq.ParameterError, match="must be a rule"):
        Exposed("min-count:3")  # type: ignore[arg-type]
    with pytest.raises(eq.ParameterError, match="of must be"):
        Exposed(FEW, "most")  # type: ignore[arg-type]


def test_large_changed_tables_say_that_relations_were_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the relations intervals are never narrower: the risk may be told too low, and that is said."""
    made = counts(1)
    shown = Round(3, controlled=False).apply(made, Draws(1))
    told = Exposed(FEW, "shortfall").measure(shown, made)
    monkeypatch.setattr(changed_tables, "MAX_CELLS", 4)
    loose = Exposed(FEW, "shortfall").measure(shown, made)
    assert any("were not used" in note for note in loose.notes)
    assert loose.value <= told.value
