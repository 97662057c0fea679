"""Released rows identical to k - 1 others: against enumeration of all partitions, and counted row by row."""

from collections import Counter
from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.masks._local_suppression.test_local_suppression import files, problem, released

from equipoise.masks._local_suppression import FREE, IdenticalBlanks, SuppressionProblem, blank, blank_identical
from equipoise.masks._local_suppression.identical import charged
from equipoise.masks._local_suppression.released_rows import ReleasedRows


def solved(asked: SuppressionProblem) -> IdenticalBlanks:
    answer = blank_identical(asked)
    assert answer is not None
    return answer


def least(rows: np.ndarray, k: int, price: np.ndarray) -> float:
    """The cheapest of all partitions into classes of k and more: a class loses each key on which it differs."""
    records = len(rows)

    @cache
    def cost(members: tuple[int, ...]) -> float:
        part = rows[list(members)]
        differ = (part != part[0]).any(axis=0)
        return float(((part != 0) * (price * differ)).sum())

    @cache
    def best(rest: frozenset[int]) -> float:
        if not rest:
            return 0.0
        first, *others = sorted(rest)
        ways = [np.inf]
        for size in range(k - 1, min(2 * k - 1, len(rest))):
            classes = [(first, *chosen) for chosen in combinations(others, size)]
            ways += [cost(members) + best(rest - {*members}) for members in classes]
        return min(ways)

    return best(frozenset(range(records)))


def smallest(rows: np.ndarray, keys: Any = None) -> int:
    """The records of the smallest class of identical rows."""
    chosen = list(range(rows.shape[1]) if keys is None else keys)
    return min(Counter(map(tuple, rows[:, chosen].tolist())).values())


def made(seed: int) -> tuple[np.ndarray, int, np.ndarray]:
    """A file of 6 to 9 records, 3 or 4 keys with prices, and a class size; every third has missing values."""
    draw = np.random.default_rng(seed)
    keys, k = int(draw.integers(3, 5)), int(draw.integers(2, 4))
    rows = draw.integers(0 if seed % 3 == 0 else 1, 4, (int(draw.integers(6, 10)), keys))
    return rows, k, np.ones(keys) if seed % 2 else draw.choice([0.5, 1.0, 2.0], keys)


def test_the_fewest_blanks_on_small_files(full: Any) -> None:
    """Seeded files, 200 in the full run, against all partitions: the optimum in every one of them."""
    for seed in range(full(60, 200)):
        rows, k, price = made(seed)
        answer = solved(problem(rows, k, price))
        assert answer.cost == pytest.approx(least(rows, k, price)), seed
        assert answer.bound == pytest.approx(answer.cost)


@given(files(), st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=4, max_size=4))
def test_every_row_is_identical_to_others(file: tuple[np.ndarray, int], weights: list[float]) -> None:
    """Counted on the released records; nothing but blanks changes, and no bound is above the cost."""
    rows, k = file
    asked = problem(rows, k, weights[: rows.shape[1]])
    answer = solved(asked)
    after, before = released(asked, answer), np.repeat(asked.codes.T, asked.n, axis=0)
    assert smallest(after) >= k
    assert ((after == before) | (after == 0)).all()
    lost = ((after == 0) & (before != 0)).sum(axis=0)
    assert lost.tolist() == answer.used.tolist()
    assert answer.cost == pytest.approx(float(lost @ asked.price))
    assert charged(ReleasedRows(asked.codes, asked.n, k, asked.price, asked.caps)) <= answer.cost + 1e-9
    assert blank(asked, alone=True).cost <= answer.cost + 1e-9


@given(files(), st.integers(1, 3), st.integers(1, 3))
def test_every_few_keys(file: tuple[np.ndarray, int], m: int, k: int) -> None:
    rows, whole = file
    sets = list(combinations(range(rows.shape[1]), min(m, rows.shape[1])))
    both = problem(rows, min(k, len(rows)), sets=[*sets, range(rows.shape[1])])
    after = released(both, solved(both))
    assert all(smallest(after, chosen) >= min(k, len(rows)) for chosen in [*sets, range(rows.shape[1])])
    few = problem(rows, whole, sets=sets)
    after = released(few, solved(few))
    assert all(smallest(after, chosen) >= whole for chosen in sets)


@pytest.mark.parametrize("seed", range(12))
def test_few_keys_and_caps_by_enumeration(seed: int) -> None:
    """All blanks of 5 records by 3 keys: the cheapest on every two keys, with caps on some."""
    draw = np.random.default_rng(seed)
    rows, caps = draw.integers(1, 3, (5, 3)), draw.integers(0, 5, 3) if seed % 2 else np.full(3, FREE)
    sets = list(combinations(range(3), 2)) if seed % 3 else [range(3)]
    cells = problem(rows, 2, caps=caps, sets=sets)
    every = np.repeat(cells.codes.T, cells.n, axis=0)
    best = np.inf
    for masks in product(product([0, 1], repeat=3), repeat=5):
        after = np.where(masks, 0, every)
        used = (after == 0).sum(axis=0)
        if used.sum() < best and (used <= caps).all() and all(smallest(after, chosen) >= 2 for chosen in sets):
            best = float(used.sum())
    answer = blank_identical(cells)
    assert (np.inf if answer is None else answer.cost) == best


def drawn(records: int, keys: int, seed: int) -> np.ndarray:
    """A file with skewed keys."""
    draw = np.random.default_rng(seed)
    return np.stack([np.minimum(draw.geometric(0.45, records), size) for size in range(2, keys + 2)], axis=1)


@pytest.mark.parametrize(("records", "keys", "k"), [(250, 5, 3), (300, 3, 8), (24, 12, 2)])
def test_larger_files(records: int, keys: int, k: int) -> None:
    """Greedy ways, blocks and clusters: rows counted one by one; a key that may not be blanked is not."""
    rows = drawn(records, keys, 7)
    asked = problem(rows, k)
    answer = solved(asked)
    assert smallest(released(asked, answer)) >= k
    assert 0 < answer.bound <= answer.cost
    assert keys > 10 or blank(asked, alone=True).cost <= answer.bound
    caps = np.array([0, *[FREE] * (keys - 1)])
    kept = solved(problem(rows, k, caps=caps))
    assert kept.used[0] == 0
    most = np.array([*[FREE] * (keys - 1), int(answer.used[-1]) * 3 // 4])
    assert solved(problem(rows, k, caps=most)).used[-1] <= most[-1]


@pytest.mark.parametrize("values", [6, 4000], ids=["one word", "two words"])
@pytest.mark.parametrize("gaps", [0.0, 0.1], ids=["complete", "with gaps"])
def test_rows_counted_in_small_tables_are_safe_and_no_dearer(
    monkeypatch: pytest.MonkeyPatch, values: int, gaps: float
) -> None:
    """Tables too small for the rows, and samples as in large files: safe, at nearly the same cost."""
    draw = np.random.default_rng(values)
    keys = np.minimum(draw.geometric(0.3, (6, 600)), values) * (draw.random((6, 600)) >= gaps)
    if values > 6:
        keys[:, :12] = draw.integers(1, values, (6, 12))
    asked = problem(keys.T, 3)
    monkeypatch.setattr("equipoise.masks._local_suppression.identical.MOVED", 0)
    monkeypatch.setattr("equipoise.masks._local_suppression.identical.TRIES", 1)
    plain = solved(asked)
    small = {"MIN_SAMPLED": 64, "SAMPLE_BITS": 1, "MIN_FILTERED": 16, "MAX_DIRECT_BITS": 4, "SPARSE_BITS": 1}
    for name, value in small.items():
        monkeypatch.setattr(f"equipoise.masks._local_suppression.joining.{name}", value)
    answer = solved(asked)
    rows = Counter(map(tuple, released(asked, answer).tolist()))
    assert min(rows.values()) >= 3
    assert answer.cost <= 1.02 * plain.cost
