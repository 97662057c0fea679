"""Probabilistic linkage: the paper's files, brute force at small size, laws, and a file of 20,000 records."""

import math
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import equipoise as eq
from equipoise.attacks._linkage import assignment
from equipoise.attacks._linkage import pair_up as links
from equipoise.attacks._linkage.evaluate import Truth
from equipoise.attacks.linkage import Linkage
from equipoise.data.records import Law

KEYS = ["name", "surname", "age"]
# Domingo-Ferrer and Torra (2004), Table 1.
A = pl.DataFrame(
    {
        "name": ["Joan", "Pere", "J.M.", "Juan", "Ricardo", "Pere", "Juan", "Ricard"],
        "surname": ["Casanovas", "Joan", "Casanovas", "Garcia", "Garcia", "Garcia", "Garcia", "Tanaka"],
        "age": [19, 17, 35, 53, 14, 18, 18, 14],
    }
)
B = A.with_columns(
    pl.Series("name", ["Joan", "Pere", "J.Manel", "Juan", "Ricard", "Pere", "Juan", "Ricard"]),
    pl.Series("age", [19, 17, 35, 53, 14, 82, 18, 18]),
)


def masked(n: int, sizes: list[int], moved: float, seed: int = 1) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A file, and one in which that share of each column's values was given to other records."""
    rng = np.random.default_rng(seed)
    original = {f"k{i}": rng.integers(0, size, n) for i, size in enumerate(sizes)}
    released = {k: np.where(rng.random(n) < moved, rng.permutation(x), x) for k, x in original.items()}
    return pl.DataFrame({"id": np.arange(n)} | original), pl.DataFrame({"id": np.arange(n)} | released)


def records(table: pl.DataFrame) -> eq.Records:
    keys = [c for c in table.columns if c != "id"]
    return eq.read(table, eq.Roles(keys, id="id" if "id" in table.columns else None))


def study(released: pl.DataFrame, original: pl.DataFrame, **given: Any) -> Any:
    return Linkage(**given)._study(records(released), records(original))[0]


# --- the paper's example --------------------------------------------------------------------------------------------


def test_table_1() -> None:
    """64 pairs by pattern; agreement on surname always, on name and age for 6 of 8; every row is paired."""
    original, released = records(A), records(B)
    table = Linkage().patterns(released, original)
    assert table.columns == ["pattern", "pairs", "m", "u", "weight", "decision"]
    assert table["pairs"].sum() == 64
    counted: dict[str, int] = {}
    for one, two in product(A.rows(), B.rows()):
        text = "".join("01"[x == y] for x, y in zip(one, two, strict=True))
        counted[text] = counted.get(text, 0) + 1
    assert dict(table.select("pattern", "pairs").iter_rows()) == counted
    truth = Linkage().agreement(released, original)
    assert truth["variable"].to_list() == KEYS
    assert truth["m_true"].to_list() == [0.75, 1.0, 0.75]
    assert Linkage().measure(released, original).by_record()["risk"].to_list() == [1.0] * 8


# --- what must hold -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [links.MAX_ASSIGNED_PAIRS, 0])
def test_everybody_who_is_unique_is_found_in_an_unmasked_file(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of pairing: a record of a cell of c is right with probability 1/c, one with a gap by what is left."""
    monkeypatch.setattr(links, "MAX_ASSIGNED_PAIRS", limit)
    table = pl.DataFrame({"a": [1, 1, 2, 2, 3, 3], "b": [1, 2, 1, 2, 1, 2], "c": [5, 6, 7, 8, 9, 5]})
    assert Linkage().measure(records(table), records(table)).value == 1.0
    twins = pl.concat([table, table, table.head(1)])
    found = Linkage().measure(records(twins), records(twins)).by_record()["risk"]
    assert found.to_list() == pytest.approx([1 / 3, *[1 / 2] * 5] * 2 + [1 / 3])


@pytest.mark.parametrize("limit", [links.MAX_ASSIGNED_PAIRS, 0])
def test_row_order_of_either_file_changes_nothing(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "MAX_ASSIGNED_PAIRS", limit)
    original, released = masked(300, [3, 8, 20, 9], 0.2)
    one = Linkage().measure(records(released), records(original))
    moved = original.sample(fraction=1, shuffle=True, seed=1)
    two = Linkage().measure(records(released.sample(fraction=1, shuffle=True, seed=2)), records(moved))
    assert (two.value, two.interval, two.notes) == (pytest.approx(one.value, abs=1e-12), two.interval, one.notes)
    assert two.by_record()["id"].to_list() == moved["id"].to_list()
    assert_frame_equal(one.by_record().sort("id"), two.by_record().sort("id"))
    assert_frame_equal(one.detail, two.detail)


@pytest.mark.parametrize("limit", [links.MAX_ASSIGNED_PAIRS, 0])
def test_independent_columns_give_the_baseline(limit: int, monkeypatch: pytest.MonkeyPatch, full: Any) -> None:
    """Mean over 20 files of 200 (400 in full): one right pair is expected in each."""
    monkeypatch.setattr(links, "MAX_ASSIGNED_PAIRS", limit)
    rights, size = [], full(200, 400)
    for seed in range(20):
        original, _ = masked(size, [2, 5, 6], 0, seed)
        other, _ = masked(size, [2, 5, 6], 0, seed + 100)
        score = Linkage().measure(records(other), records(original))
        assert score.baseline == pytest.approx(1 / size, rel=1e-12)
        rights.append(score.number)
    assert np.mean(rights) == pytest.approx(1, abs=0.5)


def test_truth_is_a_stronger_intruder_than_patterns_here() -> None:
    original, released = masked(2000, [2, 5, 20, 10, 8], 0.2)
    em = Linkage().measure(records(released), records(original))
    truth = Linkage(knows="truth").measure(records(released), records(original))
    assert truth.value > em.value - em.error
    assert em.interval is not None
    assert em.interval[0] <= em.value <= em.interval[1]
    assert em.baseline is not None
    assert em.value > 100 * em.baseline


def test_files_with_different_people_are_joined_by_id() -> None:
    original, released = masked(500, [10, 10, 10, 10], 0.05)
    score = Linkage().measure(records(released.tail(300)), records(original.head(400)))
    assert score.by_record()["id"].to_list() == list(range(200, 400))
    assert score.by_record()["risk"].mean() == pytest.approx(score.value)
    assert score.baseline == pytest.approx(1 / 400, rel=1e-12)
    with pytest.raises(eq.EngineError, match="nothing in common"):
        Linkage().measure(records(released.tail(100)), records(original.head(100)))
    with pytest.raises(eq.RolesError, match="unique"):
        Linkage().measure(records(pl.concat([released, released])), records(original))


def test_rows_are_the_truth_without_ids() -> None:
    original, released = masked(300, [3, 8, 20, 9], 0.1)
    one = Linkage().measure(records(released), records(original))
    two = Linkage().measure(records(released.drop("id")), records(original.drop("id")))
    assert two.value == pytest.approx(one.value)
    assert two.by_record().columns == ["record", "risk"]


def test_detail_and_notes() -> None:
    original, released = masked(300, [3, 8, 20, 9], 0.1)
    score = Linkage().measure(records(released), records(original))
    assert score.detail["true_pairs"].sum() == 300
    assert (score.detail["true_pairs"] * score.detail["risk"]).sum() == pytest.approx(score.number)
    table = Linkage().patterns(records(released), records(original))
    links = table.filter(pl.col("decision") == "link")["pairs"].sum()
    assert f"{links:,} are links" in score.notes[0]
    assert "EM converged" in score.notes[1]
    assert table["weight"].is_sorted(descending=True)


def test_gaps_and_corners() -> None:
    gaps = pl.DataFrame({"a": pl.Series([None] * 5, dtype=pl.String), "b": [None, 1, 2, 3, 4]})
    score = Linkage().measure(records(gaps), records(gaps))
    assert score.by_record()["risk"].to_list()[1:] == [1.0] * 4
    nothing = gaps.select("a")
    assert math.isfinite(Linkage().measure(records(nothing), records(nothing)).value)
    alone = gaps.tail(1)
    assert Linkage().measure(records(alone), records(alone)).value == 1.0


def test_a_synthetic_file_has_nobody_to_find() -> None:
    file = records(A)
    made = file.with_frame(file.frame, Law("synthesize", ("name",), "drawn", {"synthetic": "full"}))
    assert math.isnan(Linkage().measure(made, file).value)


@pytest.mark.parametrize(
    "bad",
    [
        {"false_match": 0},
        {"false_match": 1},
        {"false_nonmatch": 5},
        {"false_nonmatch": math.nan},
        {"false_match": "low"},
        {"knows": "everything"},
        {"variables": ()},
    ],
)
def test_bad_parameters(bad: dict[str, Any]) -> None:
    with pytest.raises(eq.ParameterError):
        Linkage(**bad)


def test_bad_columns() -> None:
    with pytest.raises(eq.RolesError, match="Did you mean 'age'"):
        Linkage(("agee",)).measure(records(A), records(A))
    with pytest.raises(eq.RolesError, match="No variables"):
        Linkage().measure(eq.read(A, eq.Roles()), eq.read(A, eq.Roles()))


# --- against brute force --------------------------------------------------------------------------------------------


def matrix(made: Any) -> Any:
    """The weight of every pair over that of staying alone, 0 where it is no candidate."""
    n, m = len(made.files.first_cell), len(made.files.second_cell)
    first, second = (x.ravel() for x in np.indices((n, m)))
    pattern = made.files.pattern(first, second)
    weight = made.weights[pattern] - made.weights[made.order].min() + 1
    return np.where(made.decisions[pattern] > 0, weight, 0.0).reshape(n, m)


@pytest.mark.parametrize("dense", [assignment.MAX_DENSE_ENTRIES, 0])
@pytest.mark.parametrize(("moved", "seed"), [(0.1, 1), (0.3, 2), (0.6, 3)])
def test_the_assignment_is_the_best_of_all(
    dense: int, moved: float, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cells and components against the full matrix of records: the same sum of weights; nobody is in two pairs."""
    from scipy.optimize import linear_sum_assignment

    monkeypatch.setattr(assignment, "MAX_DENSE_ENTRIES", dense)
    original, released = masked(150, [3, 6, 12, 5], moved, seed)
    made = study(released, original)
    full = matrix(made)
    best = full[linear_sum_assignment(full, maximize=True)].sum()
    a, b, pattern = made._candidates()
    weight = made.weights[pattern] - made.weights[made.order].min() + 1
    assert sum(made.files.first_counts[a] * made.files.second_counts[b]) == (full > 0).sum()
    pairs = assignment.assign(a, b, weight, made.files.first_counts, made.files.second_counts, np.random.default_rng(0))
    assert (pairs * weight).sum() == pytest.approx(best, rel=1e-9)
    assert (np.bincount(a, pairs, len(made.files.first_counts)) <= made.files.first_counts).all()
    assert (np.bincount(b, pairs, len(made.files.second_counts)) <= made.files.second_counts).all()


def test_the_share_right_is_that_of_records_paired_one_by_one() -> None:
    """600 records: full-matrix assignments with ties broken at random, the true pair on the diagonal."""
    from scipy.optimize import linear_sum_assignment

    original, released = masked(600, [2, 5, 20, 10, 8], 0.1)
    made, rng = study(released, original), np.random.default_rng(5)
    full, rights = matrix(made), []
    for _ in range(12):
        down, across = rng.permutation(600), rng.permutation(600)
        worth = full[down][:, across]
        i, j = linear_sum_assignment(worth + 1e-9 * rng.random(worth.shape), maximize=True)
        rights.append(((down[i] == across[j]) & (worth[i, j] > 0)).mean())
    value = Linkage().measure(records(released), records(original)).value
    assert value == pytest.approx(np.mean(rights), abs=0.012)


def test_cells_shared_are_records_paired_greedily() -> None:
    """Against 400 runs that pair single records, heaviest first, ties at random."""
    original, released = masked(60, [3, 6, 5], 0.3)
    made, rng, rights = study(released, original), np.random.default_rng(3), []
    full = matrix(made)
    agree = made.files.pattern(*(x.ravel() for x in np.indices(full.shape)))
    rank = np.array([made.order.index(s) if s in made.order else 1000 for s in agree])
    for _ in range(400):
        right, one, two = 0, set(range(60)), set(range(60))
        for pair in np.lexsort((rng.random(len(rank)), rank)):
            i, j = divmod(int(pair), 60)
            if rank[pair] < 1000 and i in one and j in two:
                one.remove(i)
                two.remove(j)
                right += i == j
        rights.append(right / 60)
    here, there = made.files.first_counts.astype(float), made.files.second_counts.astype(float)
    right = Truth(made.files, made.people, made.matches, len(made.pairs))
    made._share(here, there, made.order, right)
    assert right.risk().mean() == pytest.approx(np.mean(rights), abs=0.015)


def test_what_the_assignment_leaves_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer candidates at a time: some patterns by assignment, the rest cells to cells; nothing jumps."""
    original, released = masked(400, [3, 6, 12, 5], 0.3)
    every = Linkage().measure(records(released), records(original))
    monkeypatch.setattr(links, "MAX_ASSIGNED_PAIRS", 3_000)
    some = Linkage().measure(records(released), records(original))
    monkeypatch.setattr(links, "MAX_ASSIGNED_PAIRS", 0)
    none = Linkage().measure(records(released), records(original))
    assert "lighter" in some.notes[-1]
    assert "Cells were" in none.notes[-1]
    assert some.value == pytest.approx(every.value, abs=0.05)
    assert none.value == pytest.approx(every.value, abs=0.05)


def test_more_pairs_than_can_be_looked_at_one_by_one(full: Any) -> None:
    """36 million pairs here, 4 x 10^8 in full: only patterns of agreement are counted."""
    size = full(6_000, 20_000)
    original, released = masked(size, [2, 5, 20, 50, 10, 100], 0.1)
    score = Linkage().measure(records(released), records(original))
    assert score.value > 0.5
    assert f"Of {size**2:,} pairs" in score.notes[0]


def test_equal_or_not_of_all_pairs() -> None:
    """2,000 x 2,000 pairs: patterns, weights, thresholds and the best sum of weights, against the full matrix."""
    from scipy.optimize import linear_sum_assignment

    original, released = masked(2000, [2, 5, 20, 50, 10], 0.15)
    made = study(released, original)
    one, two = (t.drop("id").to_numpy() for t in (original, released))
    packed = ((one[:, None, :] == two[None, :, :]) << np.arange(5)).sum(axis=2)
    assert made.pairs.tolist() == np.bincount(packed.ravel(), minlength=32).tolist()
    agree = np.arange(32)[:, None] >> np.arange(5) & 1
    m, u = made.rates.m, made.rates.u
    weight = np.where(agree, np.log2(m / u), np.log2((1 - m) / (1 - u))).sum(axis=1)
    np.testing.assert_allclose(made.weights, weight, atol=1e-6)
    full = matrix(made)
    best = full[linear_sum_assignment(full, maximize=True)].sum()
    a, b, pattern = made._candidates()
    worth = made.weights[pattern] - made.weights[made.order].min() + 1
    pairs = assignment.assign(a, b, worth, made.files.first_counts, made.files.second_counts, np.random.default_rng(0))
    assert float((pairs * worth).sum()) == pytest.approx(float(best), rel=1e-12)


# --- rare values ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_values_are_paired_from_the_largest_weight_down(seed: int) -> None:
    """log2(m / share of the value) for every agreement, m = u + 0.9 (1 - u); pair by pair, the heaviest left first."""
    original, released = masked(150, [2, 3, 60, 400], 0.2, seed)
    keys = [c for c in original.columns if c != "id"]
    one, two = original.select(keys).to_numpy(), released.select(keys).to_numpy()
    agree = one[:, None] == two[None]
    u = agree.mean(axis=(0, 1))
    m = u + 0.9 * (1 - u)
    held = np.array([(two == two[j]).mean(axis=0) for j in range(150)])
    weight = np.where(agree, np.log2(m / held)[None], np.log2((1 - m) / (1 - u))).sum(axis=2)
    found = Linkage(knows="values", false_match=0.3).measure(records(released), records(original))
    allowed = np.isin(patterns_of(agree), candidates(released, original))
    tried = [taken_in_turn(np.where(allowed, weight, -np.inf), np.random.default_rng(k)) for k in range(40)]
    assert min(tried) <= found.number <= max(tried)
    assert "from the largest weight down" in found.notes[-1]


def taken_in_turn(weight: np.ndarray, random: np.random.Generator) -> int:
    """Right pairs when the heaviest pair left is made again and again, ties in a random order."""
    free_a, free_b, right = np.ones(len(weight), dtype=bool), np.ones(len(weight), dtype=bool), 0
    order = np.argsort(-(weight + 1e-6 * random.random(weight.shape)), axis=None)[: int(np.isfinite(weight).sum())]
    for i, j in zip(*np.unravel_index(order, weight.shape), strict=True):
        if free_a[i] and free_b[j]:
            free_a[i] = free_b[j] = False
            right += int(i == j)
    return right


def patterns_of(agree: np.ndarray) -> np.ndarray:
    return (agree << np.arange(agree.shape[2])).sum(axis=2)


def candidates(released: pl.DataFrame, original: pl.DataFrame) -> list[int]:
    return study(released, original, knows="values", false_match=0.3).order


def test_values_need_equal_values() -> None:
    with pytest.raises(eq.ParameterError, match="equal values"):
        Linkage(("a",), knows="values", near=("a:2",))
