"""An intruder with the public table of a statistic, all counts, and the other sum behind it: scipy and numpy alone.

He turns every published number back into the sum behind it and asks a linear program how closely the suppressed ones
are known. Sensitive cells and their levels are worked out here again from the contributions.
"""

from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

import equipoise as eq

Numbers = NDArray[np.float64]
P, FEW, MARGIN, FREEDOM = 0.1, 3, 0.2, 10
RULE = f"p-percent:{P:.0%} | min-count:{FEW}"
KINDS = ("mean", "signed mean", "ratio:other", "index:other", "share:ind", "sd", "relation")
SEEDS = range(100)


def drawn(seed: int, kind: str) -> pl.DataFrame:
    random = np.random.default_rng([seed, KINDS.index(kind) if kind in KINDS else 99])
    many = int(random.integers(60, 160))
    return pl.DataFrame(
        {
            "region": random.choice(list("abcd"), many, p=[0.5, 0.3, 0.15, 0.05]),
            "ind": random.choice(list("uvw"), many, p=[0.6, 0.3, 0.1]),
            "x": random.gamma(0.7, 100, many).round(1) - (60 if kind == "signed mean" else 0),
            "other": random.gamma(0.8, 30, many).round(1) + 0.1,
        }
    )


def cells(frame: pl.DataFrame, items: bool) -> tuple[list[tuple[str, ...]], list[Numbers], list[int]]:
    """The labels of all cells, the contribution of each record to each, and the records in each."""
    regions, industries = (["Total", *sorted(frame[c].unique())] for c in ("region", "ind"))
    keys, parts, counts = [], [], []
    for region, ind, item in product(regions, industries, ["balance", "x", "other"] if items else [""]):
        inside = frame.filter(
            (pl.col("region") == region) | (region == "Total"), (pl.col("ind") == ind) | (ind == "Total")
        )
        value = inside["x"] - inside["other"] if item == "balance" else inside[item or "x"]
        keys.append((region, ind, item) if items else (region, ind))
        parts.append(value.to_numpy().astype(float))
        counts.append(len(value))
    return keys, parts, counts


def relations(keys: list[tuple[str, ...]]) -> Numbers:
    place = {key: i for i, key in enumerate(keys)}
    rows = []
    for key in keys:
        for axis in range(2):
            if key[axis] == "Total":
                row = np.zeros(len(keys))
                for other in keys:
                    if other[axis] != "Total" and all(
                        o == k for i, (o, k) in enumerate(zip(other, key, strict=True)) if i != axis
                    ):
                        row[place[other]] = 1.0
                row[place[key]] = -1.0
                rows.append(row)
        if len(key) == 3 and key[2] == "balance":
            row = np.zeros(len(keys))
            row[place[key]], row[place[(*key[:2], "x")]], row[place[(*key[:2], "other")]] = -1.0, 1.0, -1.0
            rows.append(row)
    return np.array(rows)


def levels(parts: list[Numbers]) -> tuple[Numbers, Numbers]:
    """How far below and above each sensitive cell must stay uncertain; 0 where it is safe."""
    up = np.zeros(len(parts))
    for i, part in enumerate(parts):
        size = np.sort(np.abs(part))[::-1]
        if not len(size) or not size.sum():
            continue
        lack = P * size[0] - size[2:].sum()
        up[i] = max(lack if lack > 1e-9 * size.sum() else 0.0, MARGIN * size.sum() if len(part) < FEW else 0.0)
    return up, up


def bounds_of(rows: Numbers, known: Numbers, low: Numbers, high: Numbers, cell: int) -> tuple[float, float]:
    """The least and the most a cell can be; `known` has what is published, not a number elsewhere."""
    free = np.flatnonzero(np.isnan(known))
    unit = max(1.0, float(np.nanmax(np.abs(known))))
    told = -(rows[:, ~np.isnan(known)] @ known[~np.isnan(known)]) / unit
    cost, ends = (free == cell).astype(float), []
    limits = [
        (None if np.isinf(low[i]) else low[i] / unit, None if np.isinf(high[i]) else high[i] / unit) for i in free
    ]
    for sign in (1.0, -1.0):
        answer = linprog(sign * cost, A_eq=rows[:, free], b_eq=told, bounds=limits, method="highs")
        assert answer.status in (0, 3), answer.message
        ends.append(-sign * np.inf if answer.status == 3 else sign * answer.fun * unit)
    return ends[0], ends[1]


def too_close(
    keys: list[tuple[str, ...]], truth: Numbers, known: Numbers, low: Numbers, high: Numbers, below: Numbers,
    above: Numbers,
) -> list[tuple[str, ...]]:  # fmt: skip
    """Sensitive cells that are published, or known to within their levels."""
    rows, failures = relations(keys), []
    assert np.abs(rows @ truth).max() < 1e-6 * (1 + np.abs(truth).max())
    for cell in np.flatnonzero(below + above > 0):
        if not np.isnan(known[cell]):
            failures.append(keys[cell])
            continue
        least, most = bounds_of(rows, known, low, high, int(cell))
        slack = 1e-5 * max(below[cell], above[cell]) + 1e-6 * abs(truth[cell])
        if truth[cell] - least < below[cell] - slack or most - truth[cell] < above[cell] - slack:
            failures.append(keys[cell])
    return failures


def published(made: Any, keys: list[tuple[str, ...]]) -> Numbers:
    rows = {row[: len(keys[0])]: row[len(keys[0])] for row in made.public.iter_rows()}
    return np.array([np.nan if rows[key] is None else rows[key] for key in keys], dtype=float)


def attack(seed: int, kind: str) -> list[tuple[str, ...]]:
    frame, items = drawn(seed, kind), kind == "relation"
    options: dict[str, Any] = {"relation": "balance = x - other"} if items else {"statistic": kind.split()[-1]}
    value = None if items else "x"
    made = eq.tabulate(eq.Records.of(frame, eq.Roles()), ["region", "ind"], value, rule=RULE, **options)
    keys, parts, counts = cells(frame, items)
    n, truth, told = np.array(counts, dtype=float), np.array([part.sum() for part in parts]), published(made, keys)
    floor = np.array([-np.inf if kind == "signed mean" or key[-1] == "balance" else 0.0 for key in keys])
    floor, roof = np.where(n > 0, floor, 0.0), np.where(n > 0, np.inf, 0.0)
    other = cells(frame.with_columns(x=pl.col("other")), False)[1]
    second = np.array([part.sum() for part in other])
    if kind == "sd":
        return attack_deviations(keys, parts, told, n)
    factor = {"m": n, "r": second, "i": second / 100, "s": None}.get(kind.split()[-1][0]) if not items else np.ones(1)
    if kind.startswith("share"):
        margins = {key: truth[keys.index((key[0], "Total"))] for key in keys}
        factor = np.array([margins[key] for key in keys])
    failures = too_close(keys, truth, told * factor, floor, roof, *_within(levels(parts), truth, floor))
    if kind[:5] in ("ratio", "index"):
        numbers = np.divide(truth, told / (100 if kind[0] == "i" else 1), out=np.full(len(n), np.nan), where=told > 0)
        numbers = np.where((told == 0) | (n == 0), second, numbers)
        failures += too_close(keys, second, numbers, floor, roof, *_within(levels(other), second, floor))
    return failures


def _within(level: tuple[Numbers, Numbers], truth: Numbers, floor: Numbers) -> tuple[Numbers, Numbers]:
    return np.where(np.isinf(floor), level[0], np.minimum(level[0], truth)), level[1]


def attack_deviations(
    keys: list[tuple[str, ...]], parts: list[Numbers], told: Numbers, n: Numbers
) -> list[tuple[str, ...]]:
    """Sums by who has means of what is published; squares by who knows all sums, so that S^2 / n <= Q <= S^2."""
    truth, squares = np.array([p.sum() for p in parts]), np.array([(p**2).sum() for p in parts])
    hidden, zero, far = np.isnan(told) & (n > 0), np.zeros(len(n)), np.where(n > 0, np.inf, 0.0)
    sums = np.where(hidden, np.nan, truth)
    failures = too_close(keys, truth, sums, zero, far, *_within(levels(parts), truth, zero))
    count = np.maximum(n, 1)
    again = np.where(hidden, np.nan, told**2 * (count - 1) + truth**2 / count)
    again = np.where(n == 0, 0.0, again)
    inner = np.array(["Total" not in key for key in keys])
    low = np.where(inner, np.minimum(truth**2 / count, squares), 0.0)
    high = np.where(inner, np.maximum(np.where(n <= 1, squares, truth**2), squares), np.inf)
    few = (n > 0) & (n <= FREEDOM) & inner
    around = np.where(few, np.maximum(squares - truth**2 / count, 0.0), 0.0)
    level = np.where(around > 1e-9 * squares, MARGIN * around, 0.0)
    room = np.minimum(level, np.where(few, high - squares, 0.0))
    return failures + too_close(keys, squares, again, low, high, level, room)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.evidence(every=100)
def test_no_sum_behind_a_statistic_is_known_too_closely(kind: str, seed: int) -> None:
    assert not attack(seed, kind)


def test_the_attacker_breaks_a_mean_without_secondary_suppression() -> None:
    """Means of all cells but the sensitive ones are broken: without that the test above would show nothing."""
    frame = drawn(0, "mean")
    keys, parts, counts = cells(frame, False)
    truth, (below, above) = np.array([part.sum() for part in parts]), levels(parts)
    assert above.any()
    known, zero = np.where(above > 0, np.nan, truth), np.zeros(len(keys))
    far = np.where(np.array(counts) > 0, np.inf, 0.0)
    assert too_close(keys, truth, known, zero, far, np.minimum(below, truth), above)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["median", "percentile:90", "percentile:100"])
@pytest.mark.evidence(every=50)
def test_no_percentile_is_one_persons_value_or_of_few(kind: str, seed: int) -> None:
    frame = drawn(seed, kind).with_columns(pl.col("x").round(0 if seed % 2 else 1))
    made = eq.tabulate(eq.Records.of(frame, eq.Roles()), ["region", "ind"], "x", rule="min-count:3", statistic=kind)
    keys, parts, _ = cells(frame, False)
    told, share = published(made, keys), {"m": 0.5, "p": float(kind[-3:].strip(":e")) / 100 if kind[0] == "p" else 0}
    for number, part in zip(told, parts, strict=True):
        if np.isnan(number):
            continue
        assert len(part) >= 10
        assert (np.abs(part - number) < 1e-9).sum() not in range(1, 5)
        at = np.quantile(part, share[kind[0]], method="hazen")
        assert min((part <= at + 1e-9).sum(), (part >= at - 1e-9).sum()) >= 5
    inside = {
        key: set(
            frame.with_row_index("i").filter(
                (pl.col("region") == key[0]) | (key[0] == "Total"), (pl.col("ind") == key[1]) | (key[1] == "Total")
            )["i"].to_list()
        )
        for key, number in zip(keys, told, strict=True)
        if not np.isnan(number)
    }  # fmt: skip
    assert all(not 0 < len(one ^ two) < 10 for one in inside.values() for two in inside.values())
