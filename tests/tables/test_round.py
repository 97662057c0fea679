"""Rounded tables: they add up, stay within a base, are as near as enumeration finds, unbiased when random."""

from itertools import product

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sparse
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.data.records import Law
from equipoise.data.tables.additivity import Additive
from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import additive, holds
from equipoise.ground.randomness import Draws
from equipoise.tables import Round
from equipoise.tables._controlled_rounding import controlled, settle, split
from equipoise.tables._unbiased_rounding import systematic, unbiased

TREE = eq.Hierarchy.mapping({"0": "a", "1": "a", "2": "b", "3": "b", "4": "b"})
TWICE = TREE | eq.Hierarchy.mapping({"0": "x", "1": "y", "2": "x", "3": "y", "4": "z"}, names=("other",))


def made(sizes: tuple[int, ...], n: int, seed: int, tree: eq.Hierarchy | None = TREE, value: bool = False) -> Table:
    random = np.random.default_rng(seed)
    columns = {f"d{i}": random.integers(0, size, n).astype(str) for i, size in enumerate(sizes)}
    frame = pl.DataFrame({**columns, "v": random.integers(0, 60, n)})
    roles = eq.Roles(hierarchies={"d0": tree} if tree and sizes[0] == 5 else {})
    return eq.table(eq.Records.of(frame, roles), list(columns), "v" if value else None)


def from_grid(counts: list[list[int]]) -> Table:
    rows = [(f"row{i + 1}", f"col{j + 1}") for i, row in enumerate(counts) for j, n in enumerate(row) for _ in range(n)]
    return eq.table(eq.Records.of(pl.DataFrame(rows, ["r", "c"], orient="row"), eq.Roles()), ["r", "c"])


def by_hand(table: Table, told: np.ndarray) -> None:
    """Every margin is the sum of its inner cells, found by a loop over labels."""
    above = {"d0": {"0": "a", "1": "a", "2": "b", "3": "b", "4": "b"}}
    rows = table.table.with_columns(told=told).to_dicts()
    inner = [row for row, kept in zip(rows, table.inner, strict=True) if kept]
    for row in rows:
        parts = [
            part["told"]
            for part in inner
            if all(row[c] in (part[c], "Total", above.get(c, {}).get(part[c])) for c in table.by)
        ]
        assert row["told"] == pytest.approx(sum(parts))


@given(
    st.sampled_from([(4,), (5, 3), (3, 3), (5, 3, 2), (2, 2, 2, 2)]),
    st.integers(1, 120),
    st.integers(0, 10_000),
    st.sampled_from([3, 5, 10]),
    st.booleans(),
    st.sampled_from(["nearest", "random"]),
)
def test_controlled_rounding_adds_up_and_hides(sizes, n, seed, base, value, aim) -> None:
    table = made(sizes, n, seed, value=value)
    mask = Round(base, controlled=True, aim=aim, seconds=5.0)
    found = mask.apply(table, Draws(seed))
    told, x, known = found.published_values, table.published_values, found.history[0].parameters
    by_hand(table, told)
    assert np.allclose(told % base, 0)
    assert (told >= 0).all()
    assert (told[x == 0] == 0).all()
    assert np.abs(told - x).max() < base * (1 + known["beyond"])
    if not known["beyond"]:
        assert np.array_equal(told[x % base == 0], x[x % base == 0])
    changed = found.more["status"].to_numpy() == "changed"
    assert np.array_equal(changed, np.abs(told - x) > 1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_the_nearest_table_is_that_of_enumeration(seed: int) -> None:
    """Every choice of up and down of the inner cells of a 2 x 3 table, kept if margins are neighbours too."""
    random = np.random.default_rng(seed)
    table = from_grid(random.integers(0, 12, (2, 3)).tolist())
    x, inner, members = table.published_values, np.flatnonzero(table.inner), holds(table).toarray()
    low = np.floor(x / 5)
    best = np.inf
    for up in product((0, 1), repeat=len(inner)):
        r = members @ (low[inner] + np.where(x[inner] % 5 == 0, 0, up))
        if (np.abs(5 * r - x) < 5).all():
            best = min(best, np.abs(5 * r - x).sum())
    found = Round(5).apply(table, Draws(seed))
    assert found.history[0].parameters["beyond"] == 0
    assert np.abs(found.published_values - x).sum() == pytest.approx(best)


def test_a_three_way_table_without_a_neighbouring_solution_goes_further() -> None:
    """Relations that no neighbours satisfy: two parts of 1/2 base each in three overlapping pairs that sum to one."""
    pairs = [((0, 1, 3), (1, 1, -1)), ((0, 2, 3), (1, 1, -1)), ((1, 2, 3), (1, 1, -1))]
    low, aims = np.array([0.0, 0.0, 0.0, 1.0]), np.array([0.5, 0.5, 0.5, 0.0])
    found = controlled(Additive.of(pairs, 4), low, aims, np.zeros(4), 10.0)
    assert found is not None
    assert found.beyond == 1
    assert np.abs(Additive.of(pairs, 4).residuals(found.multiples)).max() == 0
    assert found.cost == pytest.approx(2.5)  # 0, 0, 0 and 0: three halves and one base; or all up and 2: the same


def test_margins_are_sums_of_inner_cells_when_the_clock_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    table = made((5, 3, 2), 80, 1)
    monkeypatch.setattr("equipoise.tables.round.controlled", lambda *_: None)
    found = Round(5).apply(table, Draws(1))
    by_hand(table, found.published_values)
    inner = table.inner
    assert (np.abs(found.published_values - table.published_values)[inner] < 5).all()
    assert "No solution" in found.history[0].words


def test_a_hierarchy_of_two_branches() -> None:
    table = made((5, 3), 90, 4, TWICE)
    told = Round(5).apply(table, Draws(2)).published_values
    assert np.abs(additive(table).residuals(told)).max() == 0


def test_relations_are_those_of_a_tree_and_their_base_is_enough() -> None:
    table = made((5, 3), 60, 3)
    found = additive(table)
    nodes = [axis.nodes.to_list() for axis in table.axes]
    trees = []
    for names in nodes:
        above = {"0": "a", "1": "a", "2": "b", "3": "b", "4": "b"} if "a" in names else {}
        trees.append(np.array([-1 if n == "Total" else names.index(above.get(n, "Total")) for n in names]))
    other = Additive.over(trees, np.stack(table.nodes, 1))
    assert sorted(map(tuple, found.matrix.toarray())) == sorted(map(tuple, other.matrix.toarray()))
    rank = np.linalg.matrix_rank(found.matrix.toarray())
    assert np.linalg.matrix_rank(found.base.toarray()) == rank == found.base.shape[0]


# --- random rounding ----------------------------------------------------------------------------------------------


def test_random_rounding_is_unbiased_with_its_variance() -> None:
    """Up with probability f: mean x and variance base^2 f (1 - f), over many draws of one table."""
    table = from_grid([[1, 2, 3], [4, 5, 13]])
    x = table.published_values
    drawn = np.array([Round(5, controlled=False).apply(table, Draws(seed)).published_values for seed in range(1500)])
    part = x / 5 % 1
    assert np.isin(drawn % 5, 0).all()
    assert (np.abs(drawn - x) < 5).all()
    sd = 5 * np.sqrt(part * (1 - part))
    assert (np.abs(drawn.mean(0) - x) <= 4.5 * sd / np.sqrt(1500) + 1e-12).all()
    assert np.allclose(drawn.var(0), sd**2, atol=0.6)


def test_draws_go_by_the_labels_of_a_cell() -> None:
    """A cell of the same labels is rounded alike in a table with other cells; nothing hangs on order."""
    one, two = from_grid([[7, 2], [3, 4]]), from_grid([[7, 2], [3, 4], [8, 8]])
    rows = [Round(5, controlled=False).apply(t, Draws(9)).table.filter(pl.col("r") == "row1") for t in (one, two)]
    assert rows[0]["published"].equals(rows[1]["published"])


# --- small counts -------------------------------------------------------------------------------------------------

EXAMPLE = [[6, 0, 1, 3, 4], [1, 2, 3, 1, 2], [0, 1, 1, 0, 2]]
PUBLISHED = [[6, 0, 0, 5, 5], [0, 0, 5, 0, 0], [0, 0, 0, 0, 5]]


def with_margins(counts: list[list[int]]) -> np.ndarray:
    grid = np.array(counts)
    grid = np.vstack([grid, grid.sum(0)])
    return np.hstack([grid, grid.sum(1, keepdims=True)])


def test_small_counts_are_as_near_as_published() -> None:
    """Tables 1 and 2 of the introduction to the R package SmallCountRounding (Langsrud and Heldal)."""
    theirs = ((with_margins(PUBLISHED) - with_margins(EXAMPLE)) ** 2).sum()
    table = from_grid(EXAMPLE)
    for seed in range(5):
        found = Round(5, small=True).apply(table, Draws(seed))
        assert ((found.published_values - table.published_values) ** 2).sum() <= theirs
        assert np.abs(additive(table).residuals(found.published_values)).max() == 0


@given(st.integers(1, 150), st.integers(0, 1000), st.sampled_from([3, 5, 10]))
def test_only_small_inner_counts_change(n: int, seed: int, base: int) -> None:
    table = made((5, 3), n, seed)
    told, x, inner = (
        Round(base, small=True).apply(table, Draws(seed)).published_values,
        table.published_values,
        table.inner,
    )
    by_hand(table, told)
    small = inner & (x > 0) & (x < base)
    assert np.isin(told[small], (0, base)).all()
    assert np.array_equal(told[inner & ~small], x[inner & ~small])


@pytest.mark.parametrize("seed", range(5))
def test_the_search_is_near_the_best_of_enumeration(seed: int) -> None:
    random = np.random.default_rng(seed)
    holds_ = np.vstack([np.eye(8), random.integers(0, 2, (5, 8)), np.ones(8)])
    parts = random.random(8) * 0.98 + 0.01
    miss = lambda up: ((holds_ @ (parts - np.array(up))) ** 2).sum()
    best = min(miss(up) for up in product((0, 1), repeat=8))
    assert miss(settle(sparse.csr_array(holds_), parts, random.random(8))) <= 1.25 * best


def test_multiples_are_told_exactly() -> None:
    low, part = split(np.array([0.0, 0.1 * 3 * 10, 7.5, 1e9 + 5]), 3)
    assert low.tolist() == [0, 1, 2, 333333335]
    assert part[:2].tolist() == [0, 0]


@pytest.mark.parametrize(
    "bad", [{"base": 1}, {"base": 2.5}, {"aim": "up"}, {"seconds": 0}, {"small": True, "controlled": False}]
)
def test_parameters_that_make_no_sense(bad: dict) -> None:
    with pytest.raises(eq.ParameterError):
        Round(**bad)


def test_what_cannot_be_rounded() -> None:
    table = made((4,), 20, 1, value=True)
    with pytest.raises(eq.DataError, match="counts"):
        Round(5, small=True).apply(table, Draws(1))
    gone = table.protected(np.full(len(table), np.nan), pl.Series(["secondary"] * len(table)), Law("x", (), "x"))
    with pytest.raises(eq.DataError, match="suppressed"):
        Round(5).apply(gone, Draws(1))


# --- unbiased controlled rounding -----------------------------------------------------------------------------------


def outcomes(table: Table, base: int) -> list[tuple[float, np.ndarray]]:
    """Every table the walk can end in, with its probability: all branches of all coins."""
    low, part = split(table.published_values, base)
    found, open_ = [], [((), 1.0)]
    while open_:
        path, weight = open_.pop()
        asked: list[float] = []

        def coin(step: int, up: float, path=path, asked=asked) -> bool:
            asked.append(up)
            return path[len(asked) - 1] if len(asked) <= len(path) else True

        end = unbiased(additive(table), low, part, coin)
        assert end is not None
        for place in range(len(path), len(asked)):
            taken = (*path, *(True for _ in range(place - len(path))), False)
            fork = weight * float(np.prod(asked[len(path) : place])) * (1 - asked[place])
            if fork > 0:
                open_.append((taken, fork))
        found.append((weight * float(np.prod(asked[len(path) :])), end))
    return found


@pytest.mark.parametrize(
    ("table", "wide"),
    [
        (from_grid([[1, 2], [3, 4]]), False),
        (from_grid([[1, 2, 3], [4, 7, 13]]), False),
        (made((2, 2, 2), 23, 1), True),
        (made((5, 2), 31, 2, TWICE), True),
    ],
)
def test_the_law_of_unbiased_rounding_by_enumeration(table: Table, wide: bool) -> None:
    """Probabilities add up to 1, means are the values of all cells and margins, every end adds up to multiples."""
    ends = outcomes(table, 3)
    weight, told = np.array([w for w, _ in ends]), 3 * np.array([end for _, end in ends])
    assert weight.sum() == pytest.approx(1)
    assert weight @ told == pytest.approx(table.published_values)
    for end in np.unique(told, axis=0):
        assert np.abs(additive(table).residuals(end)).max() == 0
        assert (end >= 0).all()
        assert wide or (np.abs(end - table.published_values) < 3).all()
    assert len(np.unique(told, axis=0)) > 1


@pytest.mark.parametrize("sizes", [(5, 4), (3, 3, 2)])
def test_means_of_unbiased_rounding_over_draws(sizes: tuple[int, ...]) -> None:
    """200 draws: of a few dozen cells none is 4.5 standard errors off (by chance once in 3,000 runs)."""
    table = made(sizes, 90, 7)
    x = table.published_values
    drawn = np.array([Round(5, aim="random").apply(table, Draws(seed)).published_values for seed in range(200)])
    error = np.abs(drawn.mean(0) - x)
    assert (error <= 4.5 * drawn.std(0) / np.sqrt(200) + 1e-9).all()


def test_a_table_too_large_for_the_walk_stays_unbiased(monkeypatch: pytest.MonkeyPatch) -> None:
    """Systematic rounding: every inner cell is up with the probability of its part, over a grid of starts."""
    part = np.random.default_rng(1).random(30)
    grid = (np.arange(20_000) + 0.5) / 20_000
    up = np.mean([systematic(part, start) for start in grid], axis=0)
    assert up == pytest.approx(part, abs=2e-4)
    monkeypatch.setattr("equipoise.tables._unbiased_rounding.MAX_WORK", 0)
    table = made((5, 3), 60, 3)
    found = Round(5, aim="random").apply(table, Draws(1))
    by_hand(table, found.published_values)
    assert (np.abs(found.published_values - table.published_values)[table.inner] < 5).all()


def test_marked_cells_are_kept_and_the_audit_knows() -> None:
    """A kept cell is known exactly, others to within a base; relations narrow them."""
    rows = pl.DataFrame({"k": [*"abcd"], "n": [7, 2, 11, 4], "final": [False, False, True, False]})
    table = eq.table(eq.Records.of(rows, eq.Roles()), "k", ready=True)
    mask = Round(5, controlled=False, keep="final")
    found = mask.apply(table, Draws(3))
    assert found.table.filter(k="c")["published"].item() == 11
    assert (found.table.filter(pl.col("k") != "c")["published"] % 5 == 0).all()
    score = eq.tables.Exposed(eq.rules.MinCount(12)).measure(found, table).detail
    known = dict(zip(score["k"], zip(score["lower"], score["upper"], strict=True), strict=True))
    assert known["c"] == pytest.approx((11, 11))
    assert all(low < high for k, (low, high) in known.items() if k != "c")
    with pytest.raises(eq.ParameterError, match="controlled=False"):
        Round(5, keep="final")
    with pytest.raises(eq.EquipoiseError, match="nope"):
        Round(5, controlled=False, keep="nope").apply(table, Draws(1))
