"""Linked tables of values of both signs, and of signed relations, attacked by SciPy's own linear program."""

import itertools

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog

import equipoise as eq

P = 0.15
SEEDS = range(40)


def firms(seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(50, 110))
    region = rng.integers(0, 5, size)
    return pl.DataFrame(
        {
            "region": [f"r{i}" for i in region],
            "part": [f"p{i // 2}" for i in region],
            "trade": [f"t{i}" for i in rng.integers(0, 4, size)],
            "size": [f"s{i}" for i in rng.integers(0, 3, size)],
            "result": np.round(rng.lognormal(3, 1.2, size) * rng.choice([1, 1, -1], size), 1),
            "credit": np.round(rng.lognormal(3, 1.2, size), 1),
            "debit": np.round(rng.lognormal(3, 1.2, size), 1),
        }
    )


def rows_in(frame: pl.DataFrame, by: tuple[str, ...]) -> dict[tuple[str, ...], frozenset[int]]:
    """The rows in every cell, by its labels."""
    cells: dict[tuple[str, ...], set[int]] = {}
    for row, labels in enumerate(frame.select(by).rows()):
        for way in itertools.product(*((label, "Total") for label in labels)):
            cells.setdefault(way, set()).add(row)
    return {labels: frozenset(rows) for labels, rows in cells.items()}


def wanted(parts: np.ndarray) -> float:
    """How far a cell must stay uncertain by the p% rule of absolute contributions; 0 where it is safe."""
    largest = np.sort(np.abs(parts))[::-1]
    return float(max(0.0, P * largest[0] - (largest.sum() - largest[:2].sum())))


def interval(goal: np.ndarray, matrix: np.ndarray, totals: np.ndarray, least: float | None) -> tuple[float, float]:
    ends = []
    for sign in (1, -1):
        answer = linprog(sign * goal, A_eq=matrix, b_eq=totals, bounds=(least, None), method="highs")
        assert answer.status in (0, 2, 3, 4)
        ends.append(sign * answer.fun if answer.status == 0 else -sign * np.inf)
    return ends[0], ends[1]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.evidence(every=20)
def test_values_of_both_signs_in_linked_tables(seed: int) -> None:
    """No class of records has a least sum: what follows is what the equations alone say."""
    frame = firms(seed)
    layouts = [("region", "trade"), ("part", "size")][:: 1 if seed % 2 else -1]
    tables = [eq.table(eq.Records.of(frame, eq.Roles()), by, "result") for by in layouts]
    linked = eq.protect_tables(tables, eq.tables.Suppress(eq.rules.PPercent(P), singletons=seed % 4 > 0))
    values = frame["result"].to_numpy()
    rows, totals, sensitive = [], [], {}
    for table, by in zip(linked, layouts, strict=True):
        told = {row[:-1]: row[-1] for row in table.table.select(*by, "published").rows()}
        for labels, members in rows_in(frame, by).items():
            if told[labels] is not None:
                rows.append(np.isin(np.arange(frame.height), [*members]).astype(float))
                totals.append(values[[*members]].sum())
            if (level := wanted(values[[*members]])) > 0:
                assert told[labels] is None
                sensitive[members] = level
    assert sensitive
    for members, level in sensitive.items():
        goal = np.isin(np.arange(frame.height), [*members]).astype(float)
        low, high = interval(goal, np.array(rows), np.array(totals), None)
        value = values[[*members]].sum()
        assert low <= value - level + 1e-6
        assert high >= value + level - 1e-6


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.evidence(every=20)
def test_linked_tables_of_a_signed_relation(seed: int) -> None:
    """Balances by region and by trade, with credit and debit: nobody outside computes one to within its level."""
    frame = firms(seed)
    layouts = [("region", "trade"), ("region", "size")]
    records = eq.Records.of(frame, eq.Roles())
    tables = [eq.table(records, by, relation="balance = credit - debit") for by in layouts]
    with pytest.raises(eq.ParameterError, match="singletons=False"):
        eq.protect_tables(tables, eq.tables.Suppress(eq.rules.PPercent(P)))
    linked = eq.protect_tables(tables, eq.tables.Suppress(eq.rules.PPercent(P), singletons=False))
    assert any("alone" in who for who in linked.attackers.not_cover)
    size, (credit, debit) = frame.height, (frame[name].to_numpy() for name in ("credit", "debit"))
    rows, totals, sensitive = [], [], []
    for table, by in zip(linked, layouts, strict=True):
        told = {row[:-1]: row[-1] for row in table.table.select(*by, "item", "published").rows()}
        for (labels, members), item in itertools.product(rows_in(frame, by).items(), ("credit", "debit", "balance")):
            inside = np.isin(np.arange(size), [*members]).astype(float)
            goal = np.concatenate([inside * (item != "debit"), inside * {"credit": 0, "debit": 1, "balance": -1}[item]])
            parts = {"credit": credit, "debit": debit, "balance": np.concatenate([credit, debit])}[item]
            parts = parts[[*members]] if item != "balance" else credit[[*members]] + debit[[*members]]
            value = float(goal @ np.concatenate([credit, debit]))
            if told[*labels, item] is not None:
                rows.append(goal)
                totals.append(value)
            elif item != "balance" and (level := wanted(parts)) > 0:
                sensitive.append((goal, value, level))
    assert sensitive
    for goal, value, level in sensitive:
        low, high = interval(goal, np.array(rows), np.array(totals), 0.0)
        assert high >= value + level - 1e-5
        assert high - low > 1e-6
