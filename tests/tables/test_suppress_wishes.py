"""What a user may ask of a suppression, each against all patterns of a small table; contributors who know theirs."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog

import equipoise as eq
from equipoise.ground.randomness import Draws
from equipoise.rules import MinCount, PPercent
from equipoise.tables import Suppress, audit
from equipoise.tables._suppression.singletons import WEAK_LEVEL_SHARE
from equipoise.tables.audits.certificate import certify


def made(seed: int, holdings: int | None = None, n: int = 40) -> eq.Cells:
    """A table of 4 x 4 cells, margins included."""
    draw = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "a": draw.choice(list("pqr"), n, p=[0.5, 0.3, 0.2]),
            "b": draw.choice(list("xyz"), n, p=[0.6, 0.25, 0.15]),
            "turnover": np.round(np.exp(draw.normal(3, 1.2, n))) + 1,
            "firm": draw.integers(0, holdings or n, n),
        }
    )
    held = "firm" if holdings else None
    return eq.table(eq.Records.of(frame, eq.Roles()), ("a", "b"), "turnover", holding=held)


def relations(table: eq.Cells) -> np.ndarray:
    """Both dimensions add up, by hand from the labels."""
    labels, found = table.table.select("a", "b").rows(), []
    for side, other in ((0, 1), (1, 0)):
        for fixed in sorted({row[other] for row in labels}):
            line = [row[other] == fixed for row in labels]
            found.append([(-1.0 if row[side] == "Total" else 1.0) * on for row, on in zip(labels, line, strict=True)])
    return np.array(found)


def far(table: eq.Cells, hidden: Any, cell: int, sign: int, low: Any, high: Any, cap: float) -> float:
    """How far a cell can move in a direction, up to `cap`, when only `hidden` cells can."""
    value, matrix = table.numbers("value"), relations(table)
    bounds = [(lo - v, hi - v) if h else (0, 0) for v, lo, hi, h in zip(value, low, high, hidden, strict=True)]
    limit = bounds[cell]
    bounds[cell] = (max(limit[0], -cap), min(limit[1], cap))
    cost = np.zeros(len(value))
    cost[cell] = -sign
    return -float(linprog(cost, A_eq=matrix, b_eq=np.zeros(len(matrix)), bounds=bounds).fun)


def cheapest(table: eq.Cells, rule: Any, cost: Any, must: Any, never: Any, low: Any, high: Any) -> float:
    """The least cost of all patterns that protect, one by one; infinite if there is none."""
    primary, levels = rule.flag(table).to_numpy(), rule.levels(table)
    fixed, value = primary | must, table.numbers("value")
    sides = {1: levels["upper"].to_numpy(), -1: levels["lower"].to_numpy()}
    withheld = {1: np.minimum(0.2 * value, high - value), -1: np.minimum(0.2 * value, value - low)}
    others = [j for j in range(len(table)) if not fixed[j] and not never[j] and table.n[j] > 0]
    best = np.inf
    for chosen in sorted(product((False, True), repeat=len(others)), key=lambda pick: cost[others] @ np.array(pick)):
        hidden = fixed.copy()
        hidden[others] = chosen
        spent = cost[hidden & ~primary].sum()
        if spent < best and all(
            far(table, hidden, c, s, low, high, level) >= level * (1 - 1e-9)
            for c in np.flatnonzero(fixed)
            for s in (1, -1)
            for level in (max(sides[s][c], withheld[s][c] if must[c] else 0.0),)
        ):
            return float(spent)
    return best


WISHES: dict[str, dict[str, Any]] = {
    "nothing": {}, "importance": {"cost": "importance"}, "publish": {"publish": "mark"},
    "withhold": {"withhold": "mark"}, "limits": {"limits": ("below", "above")},
}  # fmt: skip


@pytest.mark.parametrize("wish", WISHES)
@pytest.mark.parametrize("seed", [1, 4])
def test_the_cheapest_of_all_patterns(wish: str, seed: int) -> None:
    table, rule, draw = made(seed), PPercent(0.15), np.random.default_rng(seed)
    value, count = table.numbers("value"), len(table)
    inner = np.array([a != "Total" and b != "Total" for a, b in table.table.select("a", "b").rows()])
    mark = inner & ~rule.flag(table).to_numpy() & (np.arange(count) == np.argmax(inner * table.n))
    columns = {
        "importance": np.ceil(value * draw.uniform(0.2, 3, count)), "mark": mark.astype(float),
        "below": value * 0.5, "above": value * 1.5,
    }  # fmt: skip
    table = replace(table, more=table.more.with_columns(**{k: pl.Series(v) for k, v in columns.items()}))
    none, asked = np.zeros(count, bool), WISHES[wish]
    low = columns["below"] if "limits" in asked else np.zeros(count)
    high = columns["above"] if "limits" in asked else np.where(table.n == 0, 0.0, np.inf)
    cost = columns["importance"] if "cost" in asked else value
    best = cheapest(
        table, rule, cost, mark if "withhold" in asked else none, mark if "publish" in asked else none, low, high
    )
    told = Suppress(rule, method="optimal", singletons=False, **asked).apply(table, Draws(1)).table
    hidden = told["published"].is_null().to_numpy()
    assert cost[hidden & ~rule.flag(table).to_numpy()].sum() == pytest.approx(best)
    assert not ("publish" in asked and hidden[mark].any())
    assert not ("withhold" in asked and not hidden[mark].all())


def owned(table: eq.Cells, known: Any, cell: int) -> float:
    """What somebody who knows these cells has in a cell, by hand from the labels."""
    labels, value = table.table.select("a", "b").rows(), table.numbers("value")
    inside = [
        all(c in ("Total", i) for c, i in zip(labels[cell], row, strict=True)) and "Total" not in row for row in labels
    ]
    return float(value[np.array(inside) & known].sum())


@pytest.mark.parametrize("seed", range(5))
def test_a_holding_that_knows_its_cells_is_kept_out_as_far_as_can_be(seed: int) -> None:
    """Few holdings: many are alone in several cells, also inside a sensitive one, and none makes it infeasible."""
    table, rule = made(seed, holdings=6, n=14), PPercent(0.1)
    found = Suppress(rule, singletons=True).apply(table, Draws(1))
    hidden = found.table["published"].is_null().to_numpy()
    alone, holder, levels = table.numbers("contributors") == 1, table.numbers("holder"), rule.levels(table)
    low, high, weaker = np.zeros(len(table)), np.where(table.n == 0, 0.0, np.inf), 0
    for cell in np.flatnonzero(rule.flag(table).to_numpy()):
        short = False
        for who in [*np.unique(holder[alone]), None]:
            known = alone & (holder == who)
            for sign, side in ((1, "upper"), (-1, "lower")):
                if known[cell]:
                    continue
                level = levels[side][int(cell)]
                if sign < 0:
                    level = min(level, table.numbers("value")[cell] - owned(table, known, int(cell)))
                if level <= 0:
                    continue
                possible = far(table, ~known & (table.n > 0), cell, sign, low, high, level)
                wanted = level if possible >= level * (1 - 1e-6) else WEAK_LEVEL_SHARE * possible
                short |= wanted < level
                assert far(table, hidden & ~known, cell, sign, low, high, level) >= wanted * (1 - 1e-6)
        weaker += short
    words = found.history[-1].words
    assert (f"{weaker:,} of them are guarded to less" in words) == (weaker > 0)


def test_a_knower_inside_the_sensitive_cell_does_not_make_it_impossible() -> None:
    """Firm 1 is nearly all of the row and alone in one of its cells: to him only the other 3 of 103 are unknown."""
    frame = pl.DataFrame(
        {
            "a": ["p", "p", "p", "q", "q", "q", "q"], "b": ["x", "y", "z", "x", "y", "z", "z"],
            "turnover": [100.0, 2.0, 1.0, 50.0, 60.0, 40.0, 45.0], "firm": [1, 2, 3, 4, 5, 6, 7],
        }
    )  # fmt: skip
    table = eq.table(eq.Records.of(frame, eq.Roles()), ("a", "b"), "turnover", holding="firm")
    found = Suppress(PPercent(0.1), singletons=True).apply(table, Draws(1))
    row = audit(found, against="lone contributor").filter((pl.col("a") == "p") & (pl.col("b") == "Total"))
    assert row["status"].item() == "sensitive"
    assert row["lower"].item() == pytest.approx(100.0), "he knows his own; the other 3 may be nothing"
    assert row["upper"].item() == pytest.approx(103.0 + PPercent(0.1).levels(table)["upper"].max(), abs=3)
    assert not row["exact"].item()


def test_progress_is_told_and_can_stop() -> None:
    table, told = made(1), []
    Suppress(PPercent(0.15)).together([table], progress=lambda *step: told.append(step[-1]))
    assert "finding cells to suppress" in told


@pytest.mark.parametrize("calls", [0, 3, 20])
def test_stopped_early_the_pattern_is_completed_audited_and_says_so(calls: int) -> None:
    """By the audit; `test_suppress` holds the audit against linear programs that share nothing with it."""
    table, told = made(1), []

    def stop(*step: object) -> bool:
        told.append(step)
        return len(told) <= calls

    found = Suppress(PPercent(0.15)).apply(table, Draws(1), stop)
    whole = Suppress(PPercent(0.15)).apply(table, Draws(1))
    certificate = certify(found, None)
    assert len(told) > calls + 1, "signs of life go on"
    assert certificate.exact == certificate.exposed == certificate.insiders == 0
    assert "stopped early" in found.history[-1].words
    assert "stopped early" in certificate.notes[0]
    assert not any("stopped" in note for note in certify(whole, None).notes)


def test_last_period_s_pattern_is_kept_where_it_can_be(tmp_path: Path) -> None:
    """Two helpers of which the other is cheaper: last period's is taken, from its folder, its file or a column."""
    people = pl.DataFrame({"k": ["a"] * 20 + ["b"] * 9 + ["c"] * 8 + ["d"] * 1})
    records = eq.Records.of(people, eq.Roles("k"))
    made = eq.table(records, "k")

    def hidden(like: str | None) -> set[str]:
        table = Suppress(MinCount(3), like=like).apply(made, Draws(1)).table
        return set(table.filter(pl.col("published").is_null())["k"])

    assert hidden(None) == {"c", "d"}
    old = pl.DataFrame({"k": ["Total", "a", "b", "c", "d"], "published": [38, 20, None, 8, None]})
    old.write_csv(tmp_path / "old.csv")
    assert hidden(str(tmp_path / "old.csv")) == {"b", "d"}
    (tmp_path / "release" / "public").mkdir(parents=True)
    old.write_parquet(tmp_path / "release" / "public" / "table.parquet")
    assert hidden(str(tmp_path / "release")) == {"b", "d"}
    with pytest.raises(eq.DataError, match="like is the released table"):
        hidden(str(tmp_path / "nothing"))


def test_the_largest_cell_of_last_period_is_not_kept_for_a_small_one() -> None:
    """A cell of 30 helps as well as last period's largest one, of 400; the others that it suppressed may not be."""
    sizes = {"a": 400, "b": 30, **{f"k{i}": 25 for i in range(10)}, "s": 1}
    people = pl.DataFrame({"k": [name for name, many in sizes.items() for _ in range(many)]})
    table = eq.table(eq.Records.of(people, eq.Roles()), "k")
    name = table.table["k"]

    def hidden(*before: str) -> set[str]:
        marks = {"was": name.is_in(before), "open": name.str.starts_with("k")}
        marked = replace(table, more=table.more.with_columns(x.cast(pl.Float64).alias(m) for m, x in marks.items()))
        found = Suppress(MinCount(3), like="was", publish="open").apply(marked, Draws(1)).table
        return set(found.filter(pl.col("published").is_null())["k"])

    assert hidden("a", "s", *(f"k{i}" for i in range(10))) == {"b", "s"}
    assert hidden("a", "s") == {"a", "s"}
