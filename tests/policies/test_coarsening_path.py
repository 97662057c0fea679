"""Paths of coarsenings against brute force, and the candidates that a first policy makes of them."""

import tomllib
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.data.cells import Cells, count
from equipoise.policies.coarsening_path import PathStep, coarsening_path, milestones
from equipoise.policies.first_candidates import key_candidates, number_candidates, number_limits


@pytest.fixture
def cells() -> Cells:
    rng = np.random.default_rng(5)
    table = pl.DataFrame(
        {"age": rng.integers(18, 90, 600), "job": rng.integers(0, 9, 600), "sex": rng.integers(0, 2, 600)}
    )
    jobs = eq.Hierarchy.mapping({i: [f"{i}" if i < 4 else "other", "0" if i < 1 else "other"] for i in range(9)})
    trees = {"age": eq.Hierarchy.intervals([5, 10, 20]), "job": jobs}
    return count(eq.read(table, eq.Roles(["age", "job", "sex"], hierarchies=trees)))


def small(cells: Cells, levels: dict[str, str], least: int) -> float:
    n = cells.roll_up(levels).n if levels else cells.n
    return float(n[n < least].sum() / n.sum())


def test_each_step_is_the_best_of_all_next_ones(cells: Cells) -> None:
    """Brute force: of the keys that could be coarsened, the one that helps most records for each bit it loses."""
    path = coarsening_path(cells, 3)
    assert [step.small for step in path] == [pytest.approx(small(cells, step.levels, 3)) for step in path]
    names = {"age": ["5", "10", "20"], "job": ["1", "2"]}
    assert path[-1].levels == {key: chain[-1] for key, chain in names.items()}
    records = float(cells.n.sum())
    for before, after in pairwise(path):
        gains = {}
        for key, chain in names.items():
            place = chain.index(before.levels[key]) + 1 if key in before.levels else 0
            if place < len(chain):
                nxt = {**before.levels, key: chain[place]}
                lost = entropy(cells, before.levels, key) - entropy(cells, nxt, key)
                gains[key] = (before.small - small(cells, nxt, 3)) / (records * lost)
        (changed,) = {k for k in names if before.levels.get(k) != after.levels.get(k)}
        assert gains[changed] == pytest.approx(max(gains.values()))


def entropy(cells: Cells, levels: dict[str, str], key: str) -> float:
    """Bits per record of one key at its level."""
    n = cells.roll_up(levels).margin((key,)).n if levels else cells.margin((key,)).n
    p = n / n.sum()
    return float(-(p * np.log2(p)).sum())


def test_a_dear_key_is_coarsened_beyond_its_second_level_last(cells: Cells) -> None:
    path = coarsening_path(cells, 3, dear=("age",))
    assert path[-2].levels == {"age": "10", "job": "2"}
    assert path[-1].levels["age"] == "20"


def test_first_keys_are_coarsened_before_all_others(cells: Cells) -> None:
    path = coarsening_path(cells, 3, first=("age",))
    assert [step.levels for step in path[:4]] == [{}, {"age": "5"}, {"age": "10"}, {"age": "20"}]
    text = "\n".join(key_candidates(cells, 3, 0.02, single=True))
    levels = [
        {mask["column"]: mask["level"] for mask in one["masks"] if mask["use"] == "recode"}
        for one in tomllib.loads(text)["candidates"]
    ]
    assert {"age": "20"} in levels or {"age": "10"} in levels  # categories stay whole in some candidate


def test_milestones_are_the_first_within_each_share_and_the_last() -> None:
    path = [PathStep({"age": str(i)}, share, "age") for i, share in enumerate((0.5, 0.3, 0.1, 0.04))]
    assert [step.small for step in milestones(path, (0.3, 0.2, 0.05))] == [0.3, 0.1, 0.04]


def test_candidates_blank_what_is_left_in_two_ways(cells: Cells) -> None:
    plain = tomllib.loads("\n".join(key_candidates(cells, 3, 0.02, single=False)))["candidates"]
    masks = [candidate["masks"][-1] for candidate in plain]
    assert {mask["rule"] for mask in masks} == {"min-count:3"}
    assert {"importance" in mask for mask in masks} == {True, False}
    assert all(mask["use"] == "recode" for candidate in plain for mask in candidate["masks"][:-1])
    single = tomllib.loads("\n".join(key_candidates(cells, 3, 0.02, single=True)))["candidates"]
    assert {c["masks"][-1]["use"] for c in single if c not in plain} == {"local_swap"}


def test_a_file_of_numbers_has_three_families_and_a_limit_on_links() -> None:
    lines = ["[limits]", *number_limits(("a", "b"), 500), *number_candidates(("a", "b"), "w")]
    plain = tomllib.loads("\n".join(lines))
    assert list(plain["limits"]) == ["nearest(variables=('a', 'b'), links='one-to-one')"]
    uses = [candidate["masks"][0]["use"] for candidate in plain["candidates"]]
    assert uses == ["noise", "microaggregate", "rank_swap"]
    assert plain["candidates"][1]["masks"][0]["columns"] == ["w", "a", "b"]
    assert "links" not in next(iter(number_limits(("a",), 50_000)))
