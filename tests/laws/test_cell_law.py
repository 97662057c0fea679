"""Transition laws: blocks are made from counts, groups and order only, and hold in every group, whatever the mixture.

Exact enumeration against the bound stands in tests/golden/test_pram_guarantee.py.
"""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.ground.errors import InfeasibleError
from equipoise.laws.cell_law import leaving_law, mixing_law, odds_ratio, strength_for
from equipoise.laws.move_records import destinations
from equipoise.risk.match_probability import worst_count, worst_table

FILES = st.lists(st.tuples(st.integers(1, 12), st.integers(0, 3)), min_size=1, max_size=40)


@given(FILES, st.floats(0.02, 0.98), st.integers(0, 99))
def test_blocks_in_any_file(cells: list[tuple[int, int]], xi: float, seed: int) -> None:
    """Every cell within xi given the table; blocks never cross groups; refused only where a group lacks records."""
    counts, groups = (np.array(column) for column in zip(*cells, strict=True))
    order = np.random.default_rng(seed).permutation(len(counts))
    alone = [counts[groups == g] for g in np.unique(groups)]
    lacking = [t for t in alone if 1 / t.min() > xi and (1 / t.sum() > xi or len(t) == 1)]
    if lacking:
        with pytest.raises(InfeasibleError, match=f"{len(lacking)} of {len(alone)} groups cannot reach"):
            mixing_law(counts, groups, order, xi)
        return
    law = mixing_law(counts, groups, order, xi)
    worst = worst_table(law)
    assert worst is not None
    assert worst.max() <= xi
    assert worst_count(law).max() <= xi
    assert law.expected() == pytest.approx(law.counts, abs=1e-9)
    for block in range(len(law.strength)):
        members = np.flatnonzero(law.block == block)
        assert len(members) >= 2
        assert len(set(groups[members].tolist())) == 1
        assert law.share[members].sum() == pytest.approx(1, abs=1e-12)
        assert 1 / counts[members].sum() <= xi
    still = law.block < 0
    assert (1 / counts[still] <= xi).all()
    assert (law.leave()[still] == 0).all()


@given(FILES, st.floats(0.02, 0.98))
def test_blocks_with_weights_in_any_file(cells: list[tuple[int, int]], xi: float) -> None:
    """Shares by weight, weights of zero among them: weighted totals kept in expectation, the same bound."""
    counts, groups = (np.array(column) for column in zip(*cells, strict=True))
    weights = np.where(np.arange(len(counts)) % 5 == 0, 0.0, 0.1 + counts * (1 + np.arange(len(counts)) % 3))
    try:
        law = mixing_law(counts, groups, np.arange(len(counts)), xi, weights)
    except InfeasibleError:
        return
    assert np.isfinite(law.share).all()
    assert worst_count(law).max() <= xi
    table = worst_table(law)
    assert table is not None
    assert table.max() <= xi
    chance = law.spread(law.strength)
    after = weights * (1 - chance) + chance * law.share * law.spread(law.per_block(weights))
    assert np.where(law.block >= 0, after, weights) == pytest.approx(weights, abs=1e-9)


def test_neighbours_in_the_order_share_blocks() -> None:
    """Uniques are paired along the order, so that similar cells are mixed."""
    counts, order = np.ones(100, dtype=np.int64), np.random.default_rng(0).permutation(100)
    law = mixing_law(counts, np.zeros(100, dtype=np.int64), order, 0.8)
    assert law.block[np.argsort(order)].tolist() == np.repeat(np.arange(50), 2).tolist()


def test_the_odd_one_out_joins_somebody() -> None:
    """Three uniques: a pair and one over, which joins a large cell where there is one, else the pair."""
    three = mixing_law(np.array([1, 1, 1]), np.zeros(3, dtype=np.int64), np.arange(3), 0.8)
    assert three.block.tolist() == [0, 0, 0]
    assert three.strength.tolist() == [1.0]
    host = mixing_law(np.array([1, 1, 1, 50]), np.zeros(4, dtype=np.int64), np.arange(4), 0.8)
    assert host.block.tolist() == [0, 0, 1, 1]
    assert host.movers() < three.movers()


def test_refused_groups_are_counted() -> None:
    """Two of three groups lack records; the message counts them and says what to do."""
    with pytest.raises(InfeasibleError, match=r"2 of 3 groups cannot reach 2\.5 records.*name fewer columns in within"):
        mixing_law(np.array([1, 1, 1, 2, 2]), np.array([0, 0, 1, 2, 2]), np.arange(5), 0.4)


def test_the_odds_ratio_rises_from_0_to_1() -> None:
    """Proof, step 3: c / b rises with lambda and is the same for rho and 1 - rho."""
    lam = np.linspace(0, 1, 101)
    for rho in (0.02, 0.3, 0.5, 0.9):
        ratio = odds_ratio(lam, np.full(101, rho))
        assert ratio[0] == 0
        assert ratio[-1] == 1
        assert (np.diff(ratio) > 0).all()
        assert ratio == pytest.approx(odds_ratio(lam, np.full(101, 1 - rho)))


def test_strength_solves_for_the_bound() -> None:
    """t + (N - t) c / b = 1 / xi in the worse order, by the definition rather than the closed form."""
    for t1, t2, share, xi in ((1, 1, 0.5, 0.8), (1, 7, 0.3, 0.4), (2, 3, 0.4, 0.3), (4, 4, 0.9, 0.15)):
        lam = strength_for(xi, float(t1), float(t2), share)
        ratio = float(odds_ratio(np.array([float(lam)]), np.array([share]))[0])
        assert max(1 / (t1 + t2 * ratio), 1 / (t2 + t1 * ratio)) == pytest.approx(xi, abs=1e-10)


def test_nobody_leaves_where_nothing_moves() -> None:
    """destinations: cells outside blocks stay whatever is drawn; draws of 0 and next to 1 stay within the block."""
    counts = np.array([1, 1, 9, 1, 1, 1])
    groups = np.array([0, 0, 0, 1, 1, 1])
    edge = np.nextafter(1, 0)
    for law in (mixing_law(counts, groups, np.arange(6), 0.8), leaving_law(counts, groups, 0.6)):
        for first in (0.0, edge):
            for second in (0.0, 0.5, edge):
                goal = destinations(law, np.arange(6), np.full(6, first), np.full(6, second))
                assert (groups[goal] == groups).all()
                if law.kind == "leaving" and first == 0:
                    assert (goal != np.arange(6)).all(), "who leaves is elsewhere"
        assert destinations(law, np.arange(6), np.full(6, edge), np.zeros(6)).tolist() == list(range(6)) or (
            law.kind == "mixing"
        )


@pytest.mark.parametrize("size", [1, 5], ids=["one group", "many groups"])
def test_laws_of_many_cells_need_memory_for_each_cell_only(size: int, full: Any) -> None:
    """No table of cells by cells: 30,000 cells here, 300,000 in full, in one group or in groups of five."""
    cells = full(30_000, 300_000)
    rng = np.random.default_rng(1)
    counts, group = rng.integers(1, 4, cells), np.arange(cells) // (cells if size == 1 else size)
    order = rng.permutation(cells)
    for law in (lambda: mixing_law(counts, group, order, 0.8), lambda: leaving_law(counts, group, 0.8)):
        tracemalloc.start()
        law()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2_000 * cells
