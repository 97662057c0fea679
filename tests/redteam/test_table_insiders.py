"""Contributors as intruders into suppressed tables: each by name from the raw records, by scipy's own linear programs.

Nothing here comes from the audit: cells, relations, levels and what everybody knows are made from the records by hand.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog

import equipoise as eq
from equipoise.ground.randomness import Draws
from equipoise.rules import MinCount, PPercent
from equipoise.tables import Suppress, audit

TOTAL = "Total"


@dataclass
class Register:
    """Records with two codes, an amount and an owner; every cell with margins, and who has how much in it."""

    rows: list[tuple[str, str, float, int]]
    p: float | None = 0.1

    def cells(self) -> list[tuple[str, str]]:
        sides = [[*sorted({row[i] for row in self.rows}), TOTAL] for i in (0, 1)]
        return list(product(*sides))

    def shares(self) -> dict[tuple[str, str], dict[int, float]]:
        shares: dict[tuple[str, str], dict[int, float]] = {cell: {} for cell in self.cells()}
        for a, b, amount, owner in self.rows:
            for cell in product({a, TOTAL}, {b, TOTAL}):
                shares[cell][owner] = shares[cell].get(owner, 0.0) + amount
        return shares

    def level(self, parts: dict[int, float]) -> float:
        """By the p% rule, or of counts below three as far as three."""
        ranked, total = [*sorted(parts.values(), reverse=True), 0.0, 0.0], sum(parts.values())
        if self.p is None:
            return 3 - total if 0 < total < 3 else 0.0
        lack = self.p * ranked[0] - (total - ranked[0] - ranked[1])
        return max(lack, 1e-4 * max(total, 1.0)) if lack > 1e-9 * total else 0.0


class Intruder:
    """What somebody can compute of a cell from the published ones and what he knows himself."""

    def __init__(self, register: Register, hidden: set[tuple[str, str]]) -> None:
        self.cells, self.shares = register.cells(), register.shares()
        self.value = np.array([sum(self.shares[cell].values()) for cell in self.cells])
        self.hidden = np.array([cell in hidden for cell in self.cells])
        rows = []
        for side in (0, 1):
            for fixed in sorted({cell[1 - side] for cell in self.cells}):
                signs = [(-1.0 if cell[side] == TOTAL else 1.0) * (cell[1 - side] == fixed) for cell in self.cells]
                rows.append(signs)
        self.matrix = np.array(rows)

    def interval(self, target: tuple[str, str], people: tuple[int, ...]) -> tuple[float, float]:
        bounds: list[Any] = []
        for cell, value, hidden in zip(self.cells, self.value, self.hidden, strict=True):
            parts = self.shares[cell]
            own = sum(parts.get(one, 0.0) for one in people)
            known = not hidden or not parts or (parts.keys() <= set(people))
            bounds.append((value, value) if known else (own, None))
        return self.ends(target, bounds)

    def ends(self, target: tuple[str, str], bounds: list[Any]) -> tuple[float, float]:
        cost = np.array([cell == target for cell in self.cells], dtype=float)
        ends = [linprog(sign * cost, A_eq=self.matrix, b_eq=np.zeros(len(self.matrix)), bounds=bounds, method="highs")
                for sign in (1, -1)]  # fmt: skip
        return tuple(
            end.fun * sign if end.status == 0 else sign * -np.inf for end, sign in zip(ends, (1, -1), strict=True)
        )  # type: ignore[return-value]

    def reached(self, target: tuple[str, str], level: float, people: tuple[int, ...]) -> float | None:
        """The share of its levels that a cell keeps against these people; None where it is theirs alone."""
        parts, value = self.shares[target], sum(self.shares[target].values())
        if parts.keys() <= set(people):
            return None
        own = sum(parts.get(one, 0.0) for one in people)
        low, high = self.interval(target, people)
        below = min(level, value, value - own)
        shares = [(high - value) / level, (value - low) / below if below > 1e-6 * level else 1.0]
        return float(min(1.0, *shares))


def register(seed: int, owners: int | None, counts: bool = False, n: int = 36) -> Register:
    draw = np.random.default_rng(seed)
    rows = [
        (str(draw.choice(list("pqrs"), p=[0.4, 0.3, 0.2, 0.1])), str(draw.choice(list("wxyz"), p=[0.4, 0.3, 0.2, 0.1])),
         1.0 if counts else float(np.ceil(np.exp(draw.normal(3, 1.3)))), int(draw.integers(owners)) if owners else i)
        for i in range(n)
    ]  # fmt: skip
    return Register(rows, None if counts else 0.1)


def released(made: Register, holding: bool, **how: Any) -> eq.Cells:
    frame = pl.DataFrame(made.rows, schema=["a", "b", "turnover", "owner"], orient="row")
    measured = None if made.p is None else "turnover"
    table = eq.table(eq.Records.of(frame, eq.Roles()), ("a", "b"), measured, holding="owner" if holding else None)
    return Suppress(MinCount(3) if made.p is None else PPercent(0.1), **how).apply(table, Draws(1))


def sensitive(made: Register, table: eq.Cells) -> Iterator[tuple[tuple[str, str], float]]:
    for cell, parts in made.shares().items():
        if (level := made.level(parts)) > 0:
            yield cell, level


def found(table: Any, **how: Any) -> dict[tuple[str, tuple[str, str]], float]:
    rows = audit(table, **how)
    return {(row["against"], (row["a"], row["b"])): row["reached"] for row in rows.iter_rows(named=True)}


def hidden(table: eq.Cells) -> set[tuple[str, str]]:
    return set(table.table.filter(pl.col("published").is_null()).select("a", "b").rows())


@pytest.mark.evidence(every=3)
@pytest.mark.parametrize("singletons", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_every_contributor_by_name(seed: int, singletons: bool) -> None:
    """The audit says what the worst placed contributor can do, alone in cells or one of several."""
    made = register(seed, None)
    table = released(made, holding=False, singletons=singletons)
    intruder, said = Intruder(made, hidden(table)), found(table)
    lone = {one for parts in made.shares().values() for one in parts if len(parts) == 1}
    for cell, level in sensitive(made, table):
        reached = {one: intruder.reached(cell, level, (one,)) for one in range(len(made.rows))}
        for kind, people in (("lone contributor", lone), ("contributor", set(reached) - lone)):
            worst = min((share for one in people if (share := reached[one]) is not None), default=1.0)
            assert said.get((kind, cell), 1.0) == pytest.approx(worst, abs=1e-5)


@pytest.mark.evidence(every=3)
@pytest.mark.parametrize("seed", range(4))
def test_every_holding_by_name(seed: int) -> None:
    """Of holdings the audit errs on the safe side: it takes the largest of every cell for one."""
    made = register(seed, owners=12)
    table = released(made, holding=True, singletons=seed % 2 == 0)
    intruder, said = Intruder(made, hidden(table)), found(table)
    for cell, level in sensitive(made, table):
        worst = min((r for one in range(12) if (r := intruder.reached(cell, level, (one,))) is not None), default=1.0)
        assert min(said.get((kind, cell), 1.0) for kind in ("lone contributor", "contributor")) <= worst + 1e-5


@pytest.mark.evidence(every=3)
@pytest.mark.parametrize("seed", range(4))
def test_every_respondent_of_counts(seed: int) -> None:
    """Who knows that he is counted, and who is alone."""
    made = register(seed, None, counts=True)
    table = released(made, holding=False, singletons=seed % 2 == 0)
    intruder, said = Intruder(made, hidden(table)), found(table)
    for cell, level in sensitive(made, table):
        worst = min((r for one in range(36) if (r := intruder.reached(cell, level, (one,))) is not None), default=1.0)
        ours = min(said.get((kind, cell), 1.0) for kind in ("lone contributor", "contributor"))
        assert ours == pytest.approx(worst, abs=1e-5)


@pytest.mark.evidence(every=50)
@pytest.mark.parametrize("seed", range(200))
def test_guarded_tables_keep_their_levels_against_everybody(seed: int) -> None:
    """The default: an outsider and every contributor by name; only where the law says so is less kept."""
    made = register(1_000 + seed, None, counts=seed % 2 == 0, n=24 + seed % 40)
    table = released(made, holding=False)
    intruder = Intruder(made, hidden(table))
    short = 0
    for cell, level in sensitive(made, table):
        everybody = ((), *((one,) for one in range(len(made.rows))))
        worst = min(r for people in everybody if (r := intruder.reached(cell, level, people)) is not None)
        assert intruder.reached(cell, level, ()) >= 1 - 1e-5
        short += worst < 1 - 1e-5
    assert not short or "guarded to less than their levels" in table.history[-1].words


@pytest.mark.evidence(every=2)
@pytest.mark.parametrize(("seed", "owners"), [(0, None), (1, 14), (2, None), (3, 14), (2, 8)])
def test_every_pair_of_lone_contributors(seed: int, owners: int | None) -> None:
    """Two who are alone in cells, and the two of one cell, pool what they know: no more is kept, and no less."""
    holding = owners is not None
    made = register(seed, owners=owners, n=26)
    table = released(made, holding=holding)
    intruder, said = Intruder(made, hidden(table)), found(table, against="coalition", coalition=2)
    parts = made.shares()
    lone = sorted({one for who in parts.values() for one in who if len(who) == 1})
    pairs = {
        *combinations(lone, 2),
        *(() if holding else (tuple(sorted(who)) for who in parts.values() if len(who) == 2)),
    }
    for cell, level in sensitive(made, table):
        strangers = [pair for pair in pairs if not (parts[cell].keys() <= {*pair})]
        worst = min((_pooled(intruder, cell, level, pair, holding) for pair in strangers), default=1.0)
        reached = said.get(("coalition of 2", cell), 1.0)
        assert reached == pytest.approx(worst, abs=1e-5)


def _pooled(intruder: Intruder, cell: tuple[str, str], level: float, pair: tuple[int, ...], holding: bool) -> float:
    """The share of its levels that a cell keeps against a pair who know the cells that are theirs.

    Holdings know what they have together in others, too.
    """
    everything = intruder.shares
    theirs = {name: bool(who) and who.keys() <= {*pair} for name, who in everything.items()}
    value = float(intruder.value[intruder.cells.index(cell)])
    own = sum(
        sum(everything[name].values()) for name, known in theirs.items()
        if known and TOTAL not in name and all(c in (TOTAL, i) for c, i in zip(cell, name, strict=True))
    )  # fmt: skip
    bounds = [
        (v, v) if not hidden or theirs[name] or not everything[name]
        else (sum(everything[name].get(one, 0.0) for one in pair) if holding else 0.0, None)
        for name, v, hidden in zip(intruder.cells, intruder.value, intruder.hidden, strict=True)
    ]  # fmt: skip
    own = sum(everything[cell].get(one, 0.0) for one in pair) if holding else own
    low, high = intruder.ends(cell, bounds)
    below = min(level, value, value - own)
    return min(1.0, (high - value) / level, (value - low) / below if below > 1e-6 * level else 1.0)


@pytest.mark.parametrize("seed", [8, 11])
@pytest.mark.parametrize("unit", [2.0**-30, 2.0**30])
def test_the_unit_of_the_values_changes_nothing(seed: int, unit: float) -> None:
    """Turnover in euros or in billions: the same cells are suppressed."""

    def suppressed(scale: float) -> list[bool]:
        rng, n = np.random.default_rng(seed), 60
        frame = pl.DataFrame(
            {
                "region": rng.choice(list("abcd"), n),
                "ind": rng.choice(list("pqrst"), n),
                "v": np.round(rng.lognormal(3, 1.2, n), 1) * scale,
            }
        )
        cells = eq.table(eq.Records.of(frame, eq.Roles(numeric="v")), ["region", "ind"], "v")
        pattern = eq.tables.Suppress(eq.rules.PPercent(0.1)).apply(cells, None)
        return np.isnan(pattern.published_values).tolist()

    assert suppressed(unit) == suppressed(1.0)
