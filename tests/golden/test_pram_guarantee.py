"""Post-randomization keeps its promise: exact enumeration, printed numbers and simulation, worked independently.

Nothing here uses the formulas of `laws.cell_law`: the matrix P is built from what a law says about each cell, the
law of the released counts S by adding one record after the other, the target's posterior by Bayes' rule in every cell.
"""

from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise.ground.errors import InfeasibleError, ParameterError
from equipoise.laws.cell_law import CellLaw, leaving_law, mixing_law, strength_for, theta_for
from equipoise.laws.move_records import destinations
from equipoise.risk.match_probability import match_curve, unconditional, vanishes, worst_count, worst_table

Floats = NDArray[np.float64]
NAYAK = (3 / 7, 0.45, 0.5, 0.6, 0.75, 0.9)
SWEEP = tuple(round(x, 2) for x in np.arange(0.05, 0.96, 0.05).tolist())
VECTORS = [t for k in (2, 3, 4, 5) for t in combinations_with_replacement((1, 2, 3, 4), k)]


# --- an independent account of what a law does --------------------------------------------------------------------


def matrix(law: CellLaw) -> Floats:
    """P[j, i], the probability that a record of cell i is in cell j afterwards, from the definition of each kind."""
    size = len(law.counts)
    full = np.eye(size)
    for block in range(len(law.strength)):
        cells = np.flatnonzero(law.block == block)
        lam = law.strength[block]
        for i in cells:
            for j in cells:
                if law.kind == "mixing":
                    full[j, i] = (1 - lam) * (i == j) + lam * law.share[j]
                else:
                    leave = lam / law.counts[i]
                    full[j, i] = 1 - leave if i == j else leave / (len(cells) - 1)
    return full


def one_count(full: Floats, counts: tuple[int, ...], j: int) -> tuple[Floats, Floats]:
    """IR(j, a) and P(S_j = a) for a = 0, 1, ..., N: records added one by one, the target last (eq. 6 to 8)."""
    others = np.ones(1)
    for i, t in enumerate(counts):
        for _ in range(t - (i == j)):
            others = np.convolve(others, [1 - full[j, i], full[j, i]])
    stay = full[j, j]
    here, away = np.r_[0.0, others] * stay, np.r_[others, 0.0] * (1 - stay)
    chance = here + away
    a = np.arange(len(chance))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = here / (a * chance)
    return np.where((a > 0) & (chance > 1e-300), ratio, 0.0), chance


def whole_table(full: Floats, counts: tuple[int, ...], j: int) -> float:
    """The best guess about a target of cell j over every released table and every record that could be named.

    A table is given by the counts of all cells but the last, which has the rest.
    """
    size, total = len(counts), sum(counts)
    law = np.zeros((total + 1,) * (size - 1))
    law[(0,) * (size - 1)] = 1.0
    for i, t in enumerate(counts):
        for _ in range(t - (i == j)):
            law = np.sum(spread_over(law, full[:, i]), axis=0)
    inside = spread_over(law, full[:, j])
    chance = np.sum(inside, axis=0)
    reached = np.nonzero(chance > 1e-14)
    seen = [*reached, total - sum(reached)]
    return max(float((inside[c][reached] / chance[reached] / np.maximum(seen[c], 1)).max()) for c in range(size))


def spread_over(law: Floats, column: Floats) -> list[Floats]:
    """The law of the counts with one more record, for each cell it may be in."""
    last = len(column) - 1
    return [p * (np.roll(law, 1, axis=c) if c < last else law) for c, p in enumerate(column)]


def blocks(counts: tuple[int, ...], xi: float, weights: Floats | None = None) -> CellLaw | None:
    """The block construction on one group of cells, or None where it says that the bound cannot be met."""
    t = np.array(counts)
    try:
        return mixing_law(t, np.zeros(len(t), dtype=np.int64), np.arange(len(t)), xi, weights)
    except InfeasibleError:
        return None


def nayak(counts: tuple[int, ...], xi: float) -> CellLaw:
    return leaving_law(np.array(counts), np.zeros(len(counts), dtype=np.int64), xi)


@cache
def worst_of(counts: tuple[int, ...], law_key: tuple[float, ...]) -> float:
    """The worst whole-table guess for a matrix given by its entries."""
    full = np.array(law_key).reshape(len(counts), len(counts))
    return max(whole_table(full, counts, j) for j in range(len(counts)))


# --- printed values -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("xi", "theta"),
    [(0.6 / 0.76, 0.40), (0.75 / 0.8125, 0.25), (0.75, 0.434), (0.90, 0.282), (3 / 7, 2 / 3), (0.5, 0.618)],
)
def test_theta(xi: float, theta: float) -> None:
    """Nayak (2015), section 3: g(.40) = .789, g(.25) = .923, g(2/3) = 3/7; .75 and .90 as corrected in the notes."""
    assert theta_for(xi) == pytest.approx(theta, abs=5e-4)
    exact = theta_for(xi)
    assert (1 - exact) / (1 - exact + exact**2) == pytest.approx(xi, abs=1e-14)


def test_printed_g() -> None:
    """Nayak (2015), p. 5: g(.40) = .789 and g(.25) = .923, to every printed digit, and back to 1e-12."""
    g = {theta: (1 - theta) / (1 - theta + theta**2) for theta in (0.4, 0.25, 2 / 3)}
    assert (round(g[0.4], 3), round(g[0.25], 3)) == (0.789, 0.923)
    for theta, xi in g.items():
        assert theta_for(xi) == pytest.approx(theta, abs=1e-12)


def test_two_uniques_need_one_mover_in_three() -> None:
    """BEYOND: two uniques at xi = 0.8 move with theta = 1/3, where Nayak's takes 0.390."""
    assert float(strength_for(0.8, 1, 1, 0.5)) / 2 == pytest.approx(1 / 3, abs=1e-12)
    assert theta_for(0.8) == pytest.approx(0.390, abs=5e-4)
    law = blocks((1, 1), 0.8)
    assert law is not None
    assert law.leave() == pytest.approx([1 / 3, 1 / 3], abs=1e-12)


@pytest.mark.parametrize("xi", [0.15, 0.35, 0.5, 0.7, 0.8, 0.95])
@pytest.mark.parametrize("pair", [(1, 1), (1, 4), (2, 3), (3, 3), (2, 40)])
def test_closed_form_of_two_cells(xi: float, pair: tuple[int, int]) -> None:
    """BEYOND: theta = (-hN + sqrt(h^2 N^2 + 4 (1-h) h t1 t2)) / (2 (1-h)), and t1 t2 / N at h = 1."""
    t1, t2 = pair
    total = t1 + t2
    h = max((1 / xi - t1) / t2, (1 / xi - t2) / t1)
    if h > 1:
        assert total < 1 / xi, "only for want of records are two cells not enough"
        return
    if h <= 0:
        theta = 0.0
    elif h == 1:
        theta = t1 * t2 / total
    else:
        theta = (-h * total + (h**2 * total**2 + 4 * (1 - h) * h * t1 * t2) ** 0.5) / (2 * (1 - h))
    movers = float(strength_for(xi, float(t1), float(t2), t1 / total)) * t1 * t2 / total
    assert movers == pytest.approx(theta, abs=1e-12)


@pytest.mark.parametrize(("counts", "value"), [((1, 1, 1), 0.803), ((1, 2, 2), 0.843), ((1, 1, 1, 1, 1), 0.869)])
def test_the_published_bound_is_broken_by_the_whole_table(counts: tuple[int, ...], value: float) -> None:
    """BEYOND: an intruder who uses all released counts beats Nayak's xi = 0.8; ours holds on the same files."""
    full = matrix(nayak(counts, 0.8))
    assert max(whole_table(full, counts, j) for j in range(len(counts))) == pytest.approx(value, abs=5e-4)
    law = blocks(counts, 0.8)
    assert law is not None
    assert max(whole_table(matrix(law), counts, j) for j in range(len(counts))) <= 0.8 + 1e-9


# --- blocks: the bound given one count and given the whole table --------------------------------------------------


def hold(counts: tuple[int, ...], xi: float, weights: Floats | None = None) -> bool:
    """Check one file; False where the bound cannot be met, which must be for want of records."""
    law = blocks(counts, xi, weights)
    if law is None:
        assert sum(counts) < 1 / xi, (counts, xi)
        return False
    full, mass = matrix(law), np.array(counts, dtype=float) if weights is None else weights
    assert np.abs(full @ mass - mass).max() <= 1e-12 * mass.max(), (counts, xi)
    assert np.abs(full.sum(axis=0) - 1).max() <= 1e-12, (counts, xi)
    assert full.min() >= 0
    ratios = max(float(one_count(full, counts, j)[0].max()) for j in range(len(counts)))
    assert ratios <= xi + 1e-9, (counts, xi, ratios)
    worst = worst_of(counts, tuple(full.ravel().tolist()))
    assert worst <= xi + 1e-9, (counts, xi, worst)
    return True


@pytest.mark.parametrize("xi", SWEEP)
def test_blocks_hold_on_every_small_file(xi: float) -> None:
    """Every file of 2 to 4 cells with counts up to 4, given one count and given all of S."""
    files = [t for t in VECTORS if len(t) <= 4]
    held = [hold(t, xi) for t in files]
    assert sum(held) == sum(sum(t) >= 1 / xi for t in files)


@pytest.mark.evidence(every=6)
@pytest.mark.parametrize("xi", SWEEP)
def test_blocks_hold_on_files_of_five_cells(xi: float) -> None:
    """Every file of five cells with counts up to 4, given one count and given all of S."""
    files = [t for t in VECTORS if len(t) == 5]
    held = [hold(t, xi) for t in files]
    assert sum(held) == sum(sum(t) >= 1 / xi for t in files)


@pytest.mark.parametrize("xi", [0.1, 0.25, 0.4, 0.6, 0.8, 0.95])
def test_blocks_that_keep_weighted_totals_hold(xi: float) -> None:
    """P W = W with the same bound: the share of a cell need not be its share of the records."""
    rng = np.random.default_rng(int(xi * 100))
    files = [t for t in VECTORS if len(t) <= 3 or (len(t) == 4 and sum(t) <= 7)]
    for counts in files:
        weights = np.array(counts) * np.exp(1.5 * rng.standard_normal(len(counts)))
        hold(counts, xi, weights)


def test_blocks_move_nothing_that_need_not() -> None:
    """Cells with T >= 1/xi stay in a group that has no small cell; xi = 1/T is met by standing still."""
    law = blocks((2, 2, 7), 0.5)
    assert law is not None
    assert (law.block == -1).all()
    assert law.movers() == 0
    third = blocks((3, 3, 3), 1 / 3)
    assert third is not None
    assert third.movers() == 0


def test_the_least_strength_is_not_a_hair_too_large() -> None:
    """At the least loss: in a pair that moves, the bound is met with equality in the worse order."""
    for xi in (0.3, 0.45, 0.6, 0.8, 0.9):
        for counts in ((1, 1), (1, 3), (2, 2), (1, 40)):
            law = blocks(counts, xi)
            if law is not None and law.movers() > 0 and law.strength[0] < 1:
                worst = max(whole_table(matrix(law), counts, j) for j in range(2)) if sum(counts) < 10 else None
                assert worst is None or worst == pytest.approx(xi, abs=1e-9)
                assert law.match().max() == pytest.approx(xi, abs=1e-9)


def test_three_cells_partly_mixed_would_break_it() -> None:
    """BEYOND: blocks of three cells with lambda < 1 do not hold given the whole table; so none is ever made."""
    counts = (1, 1, 1)
    law = CellLaw("mixing", np.array(counts), np.zeros(3, dtype=np.int64), np.full(3, 1 / 3), np.array([0.55]))
    assert whole_table(matrix(law), counts, 0) > law.match()[0] + 1e-3
    for t in VECTORS:
        for xi in SWEEP:
            made = blocks(t, xi)
            if made is not None:
                cells = np.bincount(made.block[made.block >= 0], minlength=len(made.strength))
                assert ((cells == 2) | (made.strength == 1)).all()


# --- Nayak's matrix -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("xi", NAYAK)
def test_nayak_holds_given_one_count(xi: float) -> None:
    """Every count vector up to 5 cells with counts up to 4; invariant; theta leave each cell."""
    for counts in VECTORS:
        if len(counts) == 2 and xi < 0.5:
            continue
        law = nayak(counts, xi)
        full, t = matrix(law), np.array(counts, dtype=float)
        assert np.abs(full @ t - t).max() <= 1e-12
        assert np.abs(full.sum(axis=0) - 1).max() <= 1e-12
        assert (1 - np.diag(full)) * t == pytest.approx(np.full(len(t), theta_for(xi)), abs=1e-12)
        assert law.leave() * law.counts == pytest.approx(np.full(len(t), theta_for(xi)), abs=1e-12)
        worst = max(float(one_count(full, counts, j)[0].max()) for j in range(len(counts)))
        assert worst <= xi + 1e-9, (counts, xi, worst)


@pytest.mark.parametrize("xi", [3 / 7, 0.45, 0.4999])
def test_nayak_refuses_two_cells_below_a_half(xi: float) -> None:
    """Notes on Nayak: k = 2, T = (1, 1) reaches 0.5, so two cells are refused below 1/2; the reason is true."""
    with pytest.raises(InfeasibleError, match="fewer than 3 occupied cells"):
        nayak((1, 1), xi)
    theta = theta_for(xi)
    law = CellLaw(
        "leaving", np.ones(2, dtype=np.int64), np.zeros(2, dtype=np.int64), np.full(2, 0.5), np.array([theta])
    )
    assert one_count(matrix(law), (1, 1), 0)[0].max() == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize("xi", [0.1, 1 / 3, 0.42])
def test_nayak_refuses_below_three_sevenths(xi: float) -> None:
    """Result 1 asks for xi >= 3/7; the nearest thing that works is named."""
    with pytest.raises(ParameterError, match="method='blocks'"):
        theta_for(xi)


@pytest.mark.parametrize("xi", NAYAK)
@pytest.mark.parametrize("others", [2, 3, 9])
def test_nayak_approaches_psi(xi: float, others: int) -> None:
    """Eq. (10): the exact maximum tends to psi(1, theta) = xi as the other counts grow, from below."""
    gaps = [xi - nayak((1, *([many] * others)), xi).match()[0] for many in (10, 1_000, 10_000_000)]
    assert gaps[0] > gaps[1] > gaps[2] >= -1e-12
    assert gaps[2] < 1e-6


# --- what the audit says is what happens --------------------------------------------------------------------------


def laws() -> list[CellLaw]:
    """A seeded handful of files under both methods, with and without weights and groups."""
    rng = np.random.default_rng(2015)
    made: list[CellLaw] = []
    for counts in [VECTORS[i] for i in rng.choice(len(VECTORS), 25, replace=False)]:
        for xi in (0.2, 0.45, 0.55, 0.8, 0.9):
            law = blocks(counts, xi)
            weighted = blocks(counts, xi, np.array(counts) * rng.uniform(0.3, 3, len(counts)))
            made += [each for each in (law, weighted) if each is not None]
            if xi >= (0.5 if len(counts) == 2 else 3 / 7):
                made.append(nayak(counts, xi))
    groups = np.array([0, 1, 0, 1, 1, 0])
    counts_ = np.array([1, 1, 2, 3, 1, 4])
    made.append(leaving_law(counts_, groups, 0.6))
    made.append(mixing_law(counts_, groups, np.arange(6), 0.3))
    return made


def test_every_number_of_the_audit_equals_enumeration() -> None:
    """match, worst_count, unconditional, vanishes, variance, expected and the curve, to 1e-9, on every cell."""
    for law in laws():
        counts = tuple(law.counts.tolist())
        full = matrix(law)
        first, worst, before, gone = law.match(), worst_count(law), unconditional(law), vanishes(law)
        spread, mean = law.variance(), law.expected()
        listed: list[tuple[float, ...]] = []
        for j in range(len(counts)):
            ratio, chance = one_count(full, counts, j)
            assert worst[j] == pytest.approx(ratio.max(), abs=1e-9)
            if chance[1] > 0:
                assert first[j] == pytest.approx(ratio[1], abs=1e-9)
            assert before[j] == pytest.approx(float(ratio @ chance), abs=1e-9)
            assert gone[j] == pytest.approx(chance[0], abs=1e-9)
            a = np.arange(len(chance))
            assert mean[j] == pytest.approx(float(a @ chance), abs=1e-9)
            assert spread[j] == pytest.approx(float(a**2 @ chance - (a @ chance) ** 2), abs=1e-9)
            listed += [
                (counts[j], i, round(ratio[i], 8), round(chance[i], 8)) for i in a[1:].tolist() if chance[i] > 1e-9
            ]
        rows = [
            (t, i, round(p, 8), round(c, 8))
            for t, cells, i, p, c in match_curve(law).iter_rows()
            for _ in range(cells)
            if c > 1e-9
        ]
        assert np.allclose(sorted(rows), sorted(listed), atol=1e-7)


def test_the_audit_given_the_table_equals_enumeration() -> None:
    """worst_table is exact for blocks: the best guess over every released table, cell by cell."""
    seen = 0
    for law in laws():
        counts = tuple(law.counts.tolist())
        worst = worst_table(law)
        if law.kind == "leaving":
            assert worst is None
        elif sum(counts) <= 9 and len(counts) <= 4:
            full = matrix(law)
            assert worst is not None
            assert worst == pytest.approx([whole_table(full, counts, j) for j in range(len(counts))], abs=1e-9)
            seen += 1
    assert seen > 20


def test_rounding_never_lifts_the_audit_above_xi() -> None:
    """A policy that asks for "<= xi" must accept what Pram(xi) made: not 2e-16 above it, whatever xi and the counts."""
    files = ((1, 1), (1, 2), (1, 1, 1, 2, 2), (1, 5, 9), (3, 3, 2), (2, 40, 1), (1, 30_000), (1,) * 60, (7,) * 7)
    bounds = [*SWEEP, *NAYAK, *(1 / n for n in range(2, 60, 3)), 0.99, 0.999, 0.333333333333, 2 / 3]
    for counts in files:
        for xi in bounds:
            weighted = blocks(counts, xi, np.arange(1.0, len(counts) + 1))
            made = [law for law in (blocks(counts, xi), weighted) if law is not None]
            made += [nayak(counts, xi)] if xi >= (0.5 if len(counts) == 2 else 3 / 7) else []
            for law in made:
                table = worst_table(law)
                assert worst_count(law).max() <= xi, (counts, xi)
                assert table is None or table.max() <= xi, (counts, xi)


def test_a_unique_beside_a_huge_cell() -> None:
    """The odd unique out joins a large cell: the audit given the table is exact and quick for a million neighbours."""
    law = blocks((1, 1_000_000), 0.8)
    assert law is not None
    worst = worst_table(law)
    assert worst is not None
    assert worst == pytest.approx([0.8, 1e-6], rel=1e-9)
    assert law.movers() < 1.2
    assert unconditional(law)[1] == pytest.approx(1e-6, rel=1e-5)


@pytest.mark.parametrize("t", [1, 2, 40, 100, 1_000, 30_000, 10_000_000])
def test_unconditional_of_large_cells(t: int) -> None:
    """A cell that stands still is matched with 1/T, however large; Nayak's loses theta / T of that at most."""
    still = CellLaw("mixing", np.array([t]), np.array([-1]), np.ones(1), np.zeros(0))
    assert unconditional(still) == pytest.approx([1 / t], rel=1e-12)
    if t >= 100:
        moving = unconditional(nayak((t, 1, 1, 5), 0.8))[0]
        assert (1 - 2 / t) / t < moving < 1 / t


# --- simulation ---------------------------------------------------------------------------------------------------

FILES = {"small": (1, 1, 1, 2, 4), "twelve": (1, 2, 1, 3, 1, 4)}


@pytest.mark.parametrize("xi", [0.45, 0.8])
@pytest.mark.parametrize("method", ["blocks", "nayak"])
@pytest.mark.parametrize("file", FILES)
def test_simulated_matches_agree_with_the_exact_ones(file: str, method: str, xi: float) -> None:
    """Two million draws on small files: conditional match rate and mean counts within 4 standard errors."""
    counts = FILES[file]
    law = blocks(counts, xi) if method == "blocks" else nayak(counts, xi)
    assert law is not None
    rng = np.random.default_rng(len(counts) + int(100 * xi))
    times, cell = 30_000, np.repeat(np.arange(len(counts)), counts)
    start = np.tile(cell, times)
    goal = destinations(law, start, rng.random(len(start)), rng.random(len(start)))
    goal = goal.reshape(times, -1)
    released = np.stack([(goal == j).sum(axis=1) for j in range(len(counts))], axis=1)
    error = np.sqrt(law.variance() / times)
    assert (np.abs(released.mean(axis=0) - law.counts) <= 4 * error + 1e-12).all()
    full = matrix(law)
    for j in range(len(counts)):
        target = int(np.flatnonzero(cell == j)[0])
        ratio, _ = one_count(full, counts, j)
        for a in range(1, 4):
            given = released[:, j] == a
            if given.sum() < 200:
                continue
            right = float((goal[given, target] == j).mean()) / a
            exact = ratio[a]
            spread = np.sqrt(max(exact * a * (1 - exact * a), 0) / given.sum()) / a
            assert abs(right - exact) <= 4 * spread + 1e-12, (j, a, right, exact)


def test_moves_follow_the_matrix() -> None:
    """Where records go is P itself: every entry within 4 standard errors, both laws, several groups."""
    counts, groups = np.array([1, 1, 2, 3, 1, 4, 1, 2]), np.array([0, 1, 0, 1, 1, 0, 0, 0])
    for law in (leaving_law(counts, groups, 0.6), mixing_law(counts, groups, np.arange(8), 0.35)):
        full, times = matrix(law), 40_000
        rng = np.random.default_rng(5)
        for i in range(len(counts)):
            goal = destinations(law, np.full(times, i), rng.random(times), rng.random(times))
            share = np.bincount(goal, minlength=len(counts)) / times
            error = np.sqrt(full[:, i] * (1 - full[:, i]) / times)
            assert (np.abs(share - full[:, i]) <= 4 * error + 1e-12).all()


# --- cost ---------------------------------------------------------------------------------------------------------


def test_blocks_move_less_than_half_of_nayak_s_on_a_zipf_file() -> None:
    """382,280 records, Zipf-like cells, xi 0.8: 3,267 against 7,795 expected movers there."""
    rng = np.random.default_rng(382_280)
    drawn = np.bincount(rng.choice(30_000, 382_280, p=zipf(30_000, 1.05)))
    counts = drawn[drawn > 0]
    group, order = np.zeros(len(counts), dtype=np.int64), rng.permutation(len(counts))
    assert counts.sum() == 382_280
    assert 15_000 < len(counts) < 30_000
    ours, theirs = mixing_law(counts, group, order, 0.8), leaving_law(counts, group, 0.8)
    assert ours.movers() < 0.5 * theirs.movers()
    assert theirs.movers() == pytest.approx(len(counts) * theta_for(0.8))
    assert ours.match().max() <= 0.8 + 1e-12


def zipf(size: int, power: float) -> Floats:
    share = 1.0 / np.arange(1, size + 1) ** power
    return share / share.sum()
