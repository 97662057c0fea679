"""Grouping: the same partition as a plain reading of the papers, the optimum by brute force, the published losses."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.ground.errors import InfeasibleError
from equipoise.masks._microaggregation import TIE, mdav, means, optimal, tree

METHODS = {"mdav": mdav, "tree": tree}


def within_share(points: Any, groups: Any) -> float:
    """The share of the variance that lies within groups: SSE / SST, 0 where nothing varies."""
    total = float(((points - points.mean(axis=0)) ** 2).sum())
    return float(((points - means(points, groups)) ** 2).sum()) / total if total > 0 else 0.0


def naive_mdav(points: Any, k: int) -> Any:
    """MDAV word by word: every distance worked out anew, ties to the record that stands first."""
    left, groups, number = np.arange(len(points)), np.full(len(points), -1), 0

    def farthest(point: Any) -> int:
        d = ((points[left] - point) ** 2).sum(axis=1)
        return int(left[np.flatnonzero(d >= d.max() * (1 - TIE))[0]])

    def take(row: int) -> None:
        nonlocal left, number
        d = ((points[left] - points[row]) ** 2).sum(axis=1)
        d[left == row] = -1
        rows = left[np.lexsort((left, np.round(d, 9)))[:k]]
        groups[rows] = number
        left, number = left[~np.isin(left, rows)], number + 1

    while len(left) >= 3 * k:
        first = farthest(points[left].mean(axis=0))
        take(first)
        take(farthest(points[first]))
    if len(left) >= 2 * k:
        take(farthest(points[left].mean(axis=0)))
    groups[left] = number
    return groups


def sse(values: Any, sizes: Any) -> float:
    parts = np.split(values, np.cumsum(sizes)[:-1])
    return float(sum(((part - part.mean()) ** 2).sum() for part in parts))


@pytest.mark.parametrize("seed", range(60))
def test_mdav_is_the_published_one(seed: int) -> None:
    """Same groups as the naive one; every other file is of small whole numbers, full of ties."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 120)), int(rng.integers(1, 5))
    k = int(rng.integers(1, min(n, 7) + 1))
    points = rng.integers(0, 6, (n, d)).astype(float) if seed % 2 else rng.normal(size=(n, d))
    assert mdav(points, k).tolist() == naive_mdav(points, k).tolist()


def test_mdav_rebuilds_its_tree_and_its_order() -> None:
    """Large enough for several rebuildings of the tree and sortings."""
    points = np.random.default_rng(5).normal(size=(2500, 3))
    assert (mdav(points, 3) == naive_mdav(points, 3)).all()


@pytest.mark.parametrize(("columns", "k"), [(1, 2), (2, 8), (3, 3), (3, 6), (6, 3)])
@pytest.mark.parametrize("kind", ["skewed", "tied", "far from zero", "one far away", "repeated"])
def test_mdav_is_the_published_one_in_larger_files(kind: str, columns: int, k: int) -> None:
    """Neighbours looked up ahead or one by one, long tails, ties, an origin and an outlier that eat up digits."""
    points = np.random.default_rng(columns * k).lognormal(size=(700, columns))
    points = {
        "skewed": points**2,
        "tied": np.round(points * 2),
        "far from zero": np.round(points, 3) + 1e5,
        "one far away": np.where(np.arange(700)[:, None] == 350, 1e4, points),
        "repeated": points[np.arange(700) // 9],
    }[kind]
    assert mdav(points, k).tolist() == naive_mdav(points, k).tolist()


@pytest.mark.parametrize("seed", [13, 14, 17, 1855])
def test_a_far_origin_does_not_decide_ties(seed: int) -> None:
    """The centre is kept up to date without loss of digits: the same groups as of the whole numbers themselves."""
    rng = np.random.default_rng(seed)
    whole = rng.integers(0, 3, (350, 4)).astype(float)
    assert mdav(whole / np.sqrt(7) + 1e4, 3).tolist() == naive_mdav(whole, 3).tolist()


@pytest.mark.parametrize("n", [9, 10, 11, 12, 13, 14, 15, 20])
def test_mdav_ends_as_published(n: int) -> None:
    """Groups of exactly k but for the last, which has k to 2k - 1."""
    sizes = np.bincount(mdav(np.random.default_rng(n).normal(size=(n, 2)), 3))
    assert (sizes[:-1] == 3).all()
    assert 3 <= sizes[-1] < 6


@pytest.mark.parametrize("k", [2, 3, 4])
def test_the_optimum_is_that_of_brute_force(k: int) -> None:
    """n = 12: every way to cut the sorted values into groups of k or more, however large."""
    rng = np.random.default_rng(k)
    for _ in range(10):
        values = np.sort(rng.lognormal(size=12))
        cuts = (np.flatnonzero(np.array(bits)) + 1 for bits in product([0, 1], repeat=11))
        sizes = (np.diff(np.r_[0, c, 12]) for c in cuts)
        best = min(sse(values, s) for s in sizes if s.min() >= k)
        assert sse(values, np.bincount(optimal(values, k))) == pytest.approx(best, abs=1e-12)


def test_the_optimum_keeps_small_spreads_far_from_zero() -> None:
    """Sums of squares are not differences of large numbers."""
    values = 1e9 + np.array([0.0, 1e-4, 2e-4, 5.0, 5.0001, 5.0002])
    assert optimal(values, 3).tolist() == [0, 0, 0, 1, 1, 1]


def test_the_optimum_is_never_worse_than_mdav() -> None:
    values = np.sort(np.random.default_rng(2).lognormal(size=400))[:, None]
    assert within_share(values, optimal(values[:, 0], 4)) <= within_share(values, mdav(values, 4)) + 1e-12


@given(st.integers(1, 90), st.integers(1, 6), st.integers(0, 10_000))
def test_groups_hold_k_and_fewer_than_2k(n: int, k: int, seed: int) -> None:
    points = np.random.default_rng(seed).integers(0, 4, (n, 2)).astype(float)
    for method in METHODS.values():
        if n < k:
            with pytest.raises(InfeasibleError):
                method(points, k)
            continue
        sizes = np.bincount(method(points, k))
        assert sizes.min() >= k
        assert sizes.max() < 2 * k
        assert np.allclose(means(points, method(points, k)).mean(axis=0), points.mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_row_order_matters_only_in_ties(method: Any) -> None:
    rng = np.random.default_rng(8)
    points, moved = rng.normal(size=(301, 3)), rng.permutation(301)
    one, two = method(points, 4), method(points[moved], 4)
    together = {frozenset(np.flatnonzero(one == g)) for g in range(one.max() + 1)}
    assert together == {frozenset(moved[two == g]) for g in range(two.max() + 1)}


def test_nothing_varies() -> None:
    points = np.zeros((10, 2))
    assert within_share(points, mdav(points, 3)) == 0
    assert np.bincount(tree(points, 3)).tolist() == [3, 3, 4]
    assert np.bincount(optimal(points[:, 0], 3)).min() >= 3


def standardised(table: pl.DataFrame) -> Any:
    points = table.cast(pl.Float64).to_numpy()
    return (points - points.mean(axis=0)) / points.std(axis=0)


@pytest.mark.parametrize(
    ("file", "first", "three", "ten"),
    [("CASCrefmicrodata", 0, 5.692, 14.156), ("Tarragona", 0, 16.933, 33.193), ("EIA", 5, 0.592, 3.270)],
)
def test_published_losses_of_real_files(data_folder: Path, file: str, first: int, three: float, ten: float) -> None:
    """Within-group share of variance in percent, groups of 3 and 10. EIA without identifiers and dates."""
    table = pl.read_csv(data_folder / "sdcmicro" / f"{file}.csv", infer_schema_length=None)
    points = standardised(table[:, first : first + 13 if first == 0 else 15])
    assert round(100 * within_share(points, mdav(points, 3)), 3) <= three
    assert round(100 * within_share(points, mdav(points, 10)), 3) <= ten


def test_twin_of_the_real_files() -> None:
    """On data made here, skewed like theirs: MDAV loses what the naive one loses, the tree more."""
    rng = np.random.default_rng(1080)
    points = standardised(pl.DataFrame(np.exp(rng.normal(size=(540, 6)) @ rng.normal(size=(6, 13)) / 3)))
    for k in (3, 10):
        exact = within_share(points, mdav(points, k))
        assert exact == pytest.approx(within_share(points, naive_mdav(points, k)), abs=1e-12)
        assert exact < within_share(points, tree(points, k)) < 1


def test_large_files(full: Any) -> None:
    """10,000 by MDAV and 50,000 by cuts here, 100,000 and 1,000,000 in full; their growth is a benchmark."""
    rng = np.random.default_rng(3)
    for method, size in ((mdav, full(10_000, 100_000)), (tree, full(50_000, 1_000_000))):
        assert np.bincount(method(rng.normal(size=(size, 3)), 3)).min() == 3
