"""Adaptive search: as good as the exhaustive grid with a fifth of its trials, the same in every run, none twice."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from benchmarks.drawn import drawn
from benchmarks.evidence import compared

import equipoise as eq
from equipoise.methods.method import Measure, label
from equipoise.policies.sections import Candidate
from equipoise.recipe.catalogue import find
from equipoise.recipe.recipe import recipes
from equipoise.search.adaptive_search import BATCH_TRIALS, AdaptiveSearch
from equipoise.search.ranking import inside, loss, ranking
from equipoise.search.recipe_space import described
from equipoise.search.sweep import adaptively, all_of
from equipoise.trials.runner import Runner
from equipoise.trials.trial import Trial, Trials

SEED, DRAWS = 7, 3
Case = tuple[list[Candidate], list[Measure], dict[str, str]]


def records(seed: int, size: int = 600) -> eq.Records:
    rng = np.random.default_rng(seed)
    age = rng.integers(16, 91, size)
    table = pl.DataFrame(
        {
            "person": np.arange(size),
            "sex": rng.choice(["f", "m"], size),
            "area": rng.choice([f"{a}{b}{c}" for a in "123" for b in "012" for c in "0123"], size),
            "age": age,
            "size": rng.geometric(0.4, size).clip(1, 9),
            "pay": rng.lognormal(10, 0.7, size).round() + age * 10,
        }
    )
    trees = {
        "area": eq.Hierarchy.prefix(2, 1, root=True),
        "age": eq.Hierarchy.intervals([2, 4, 8, 16, 32]),
        "size": eq.Hierarchy.intervals([2, 4]),
    }
    return eq.read(table, eq.Roles(["sex", "area", "age", "size"], numeric=["pay"], id="person", hierarchies=trees))


def span(low: float, high: float, steps: int) -> dict[str, float]:
    return {"from": low, "to": high, "steps": steps}


def coding(rng: np.random.Generator) -> Case:
    """Levels of two keys, two top codes: 280 recipes on cells."""
    masks: tuple[dict[str, Any], ...] = (
        {"use": "top_code", "column": "size", "at": span(3, 9, 7)},
        {"use": "top_code", "column": "age", "at": span(50, 90, 5)},
        {"use": "recode", "column": "area", "level": ["2", "1"]},
        {"use": "recode", "column": "age", "level": ["2", "4", "8", "16"]},
    )
    limits = {"uniques": f"< {rng.uniform(0.02, 0.4):.3f}"}
    return [Candidate(masks=masks)], [eq.risk.Uniques(), eq.utility.Entropy()], limits


def noise(rng: np.random.Generator) -> Case:
    """One range of noise."""
    mask = {"use": "noise", "columns": ["pay"], "scale": span(0.01, 1.5, int(rng.integers(40, 70)))}
    limits = {"nearest": f"< {rng.uniform(0.005, 0.1):.3f}"}
    return [Candidate(masks=(mask,))], [eq.attacks.Nearest(("pay",)), eq.utility.MeanSquare(("pay",))], limits


def rivals(rng: np.random.Generator) -> Case:
    """Three families against each other."""
    found = [
        Candidate(
            masks=(
                {"use": "recode", "column": "age", "level": ["4", "8", "16"]},
                {"use": "noise", "columns": ["pay"], "scale": span(0.02, 1, 20)},
            )
        ),
        Candidate(masks=({"use": "microaggregate", "columns": ["pay"], "size": list(range(2, 22))},)),
        Candidate(masks=({"use": "rank_swap", "columns": ["pay"], "window": span(0.01, 0.3, 20)},)),
    ]
    limits = {"nearest": f"< {rng.uniform(0.05, 0.3):.3f}"}
    return found, [eq.attacks.Nearest(("pay", "age")), eq.utility.InformationLoss(("pay",))], limits


CASES = {"noise": noise, "rivals": rivals}


def everything(candidates: Sequence[Candidate]) -> list[eq.Recipe]:
    found: list[eq.Recipe] = []
    for candidate in candidates:
        steps = []
        for table in candidate.masks:
            given = {k: tuple(v) if k in ("columns", "keys") else v for k, v in table.items() if k != "use"}
            steps.append(eq.grid(find(str(table["use"]), "mask"), **given))
        found += recipes(*steps, seed=SEED)
    return found


def both_ways(name: str, seed: int) -> tuple[eq.Policy, Trials, Trials]:
    """Trials of the whole grid, and of a search that may make a fifth of them."""
    candidates, measures, limits = CASES[name](np.random.default_rng(seed))
    data, policy, grid = records(seed), eq.Policy(limits), everything(candidates)
    with Runner(data, measures) as runner:
        every = all_of(runner, grid, DRAWS)
    families = described(candidates, data, SEED)
    assert families is not None
    assert sum(family.grid for family in families) == len(grid)
    with Runner(data, measures) as runner:
        some = adaptively(runner, AdaptiveSearch(families, policy, len(grid) // 5), draws=DRAWS, policy=policy)
        assert len(some) <= len(grid) / 5
    return policy, every, some


@pytest.mark.parametrize(("name", "seed"), [("noise", 3), pytest.param("rivals", 1, marks=pytest.mark.evidence)])
def test_as_good_as_the_grid_with_a_fifth_of_its_trials(name: str, seed: int) -> None:
    """The utility of what is chosen is that of the grid's best or better; of random masks, within error over draws."""
    policy, every, some = both_ways(name, seed)
    best, found = policy.choose(every), policy.choose(some)
    useful = next(score.name for score in best.scores if score.side == "utility")
    assert found.scores[useful].gap(best.scores[useful]) <= 1e-9


@pytest.mark.parametrize("seed", [27182, pytest.param(22360, marks=pytest.mark.evidence)])
def test_as_good_on_policies_drawn_by_seed(seed: int) -> None:
    """Seeds from outside, taken when the search was done; many more by `make evidence`."""
    found = compared(seed)
    assert found.made <= found.grid // 5
    assert found.passing
    assert found.good, found.words()


@pytest.mark.parametrize("seed", [17320])
def test_a_search_keeps_its_budget_and_repeats_nothing(seed: int) -> None:
    """On policies drawn by seed: the budget used up or everything tried, no recipe twice, the same when run again."""
    case = drawn(seed)
    families = described(case.candidates, case.records, SEED)
    assert families is not None
    policy = eq.Policy({label(case.measures[0]): "<= 0.5"})
    tried = []
    for _ in range(2):
        search = AdaptiveSearch(families, policy, 25)
        with Runner(case.records, case.measures) as runner:
            seen: list[eq.Recipe] = []
            while asks := search.ask():
                seen += [ask.recipe for ask in asks]
                search.tell(asks, runner.run([ask.recipe for ask in asks]))
        assert len(seen) == len(set(map(repr, seen))) == 25
        tried.append(seen)
    assert tried[0] == tried[1]


def test_the_same_again(people_records: eq.Records) -> None:
    """A search has no chance of its own: what it tries, and in which order, follows from the scores."""
    candidates, measures, limits = rivals(np.random.default_rng(3))
    data, policy = records(3), eq.Policy(limits)
    families = described(candidates, data, SEED)
    assert families is not None
    tried = []
    for _ in range(2):
        with Runner(data, measures) as runner:
            tried.append(
                [t.recipe for t in adaptively(runner, AdaptiveSearch(families, policy, 13), draws=1, policy=policy)]
            )
    assert tried[0] == tried[1]
    assert len(set(map(repr, tried[0]))) == 13


def test_never_beyond_the_budget_nor_the_family() -> None:
    data = records(1)
    candidates = [Candidate(masks=({"use": "recode", "column": "age", "level": ["2", "4", "8"]},))]
    families = described(candidates, data, SEED)
    assert families is not None
    search = AdaptiveSearch(families, eq.Policy({"uniques": "< 0.1"}))
    assert search.budget == 3
    seen = []
    with Runner(data, [eq.risk.Uniques(), eq.utility.Entropy()]) as runner:
        while asks := search.ask():
            assert len(asks) <= BATCH_TRIALS
            seen += [ask.recipe for ask in asks]
            search.tell(asks, runner.run([ask.recipe for ask in asks]))
    assert len(seen) == len(set(map(repr, seen))) == 3


def test_without_limits_the_frontier_is_filled() -> None:
    """With a fifth of the trials, most of what the whole frontier covers."""
    data = records(5)
    grid = everything(coding(np.random.default_rng(5))[0])
    measures = [eq.risk.Uniques(), eq.utility.Entropy()]
    every = eq.sweep(data, grid, measures)
    some = eq.sweep(data, grid, measures, search="adaptive")
    assert len(some) == 56
    assert _covered(some) > 0.97 * _covered(every)
    assert {trial.recipe for trial in some} <= {trial.recipe for trial in every}


def _covered(trials: Sequence[Trial]) -> float:
    """The area of risks and utilities that some trial is at least as good as, risk up to 1 and bits from 0."""
    points = sorted((t.scores["uniques"].value, t.scores["entropy"].value) for t in trials)
    area, height = 0.0, 0.0
    for place, (risk, bits) in enumerate(points):
        height = max(height, bits)
        area += height * ((points[place + 1][0] if place + 1 < len(points) else 1.0) - risk)
    return area


def test_what_may_be_chosen_is_drawn_to_the_full() -> None:
    """One draw to find the way; all draws on the frontier and for the choice."""
    candidates, measures, limits = noise(np.random.default_rng(8))
    data, policy = records(8, 200), eq.Policy(limits)
    families = described(candidates, data, SEED)
    assert families is not None
    with Runner(data, measures) as runner:
        trials = adaptively(runner, AdaptiveSearch(families, policy, 12), draws=3, policy=policy)
    chosen = min((t for t in trials if inside(policy, t)), key=ranking(policy, trials))
    assert len(chosen.draws) == 3
    assert all(len(trial.draws) == 3 for trial in eq.frontier([t for t in trials if t.draws]))


def test_time_is_up() -> None:
    """Not one batch more, here of one trial, once the trials have taken so long."""
    candidates, measures, limits = noise(np.random.default_rng(2))
    data = records(2, 150)
    some = eq.sweep(data, everything(candidates), measures, search="adaptive", policy=eq.Policy(limits), seconds=1e-9)
    assert len(some) == 1


def test_recipes_that_cannot_be_made_are_left_out() -> None:
    """They cost a trial, are told, and the search goes on."""
    data = records(4, 60)
    masks = eq.grid(eq.masks.Pram, xi=[0.001, 0.2, 0.3, 0.5, 0.7], keys=("sex",))
    found = eq.sweep(data, recipes(masks, seed=3), [eq.attacks.Nearest(("sex",))], search="adaptive", budget=5)
    assert len(found) + len(found.left_out) == 5


def test_losses_are_what_the_policy_makes_smallest() -> None:
    """`ranking` is `Policy.choose`, with weights and without, for either side."""
    rng = np.random.default_rng(11)
    for weights in ({}, {"entropy": 1.0, "kept": 2.0}):
        for prefer in ("utility", "risk"):
            trials = [_trial(rng) for _ in range(40)]
            policy = eq.Policy({"uniques": "< 0.6", "entropy": "> 2"}, prefer, weights=weights)
            fit = [trial for trial in trials if policy.judge(trial)]
            assert min(fit, key=ranking(policy, trials)) is policy.choose(trials)


def _trial(rng: np.random.Generator) -> Trial:
    ways = {"uniques": "lower", "nearest": "lower", "entropy": "higher", "kept": "higher"}
    scores = [
        eq.Score(name, round(float(rng.uniform(0, 1 if way == "lower" else 8)), 1), way) for name, way in ways.items()
    ]
    return Trial(eq.Recipe(), eq.Scores(replace(score) for score in scores))


def test_loss_has_one_direction() -> None:
    assert loss(eq.Score("a", 2.0, "lower")) == 2.0
    assert loss(eq.Score("a", 2.0, "higher")) == -2.0
