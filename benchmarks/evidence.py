"""What takes long and is not judged by speed: `python -m benchmarks.evidence [policies] [kills] [--seed N] [--many N]`.

policies: adaptive searches against exhaustive grids, on policies drawn by seed. kills: kill -9 at random moments.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import equipoise as eq
from benchmarks.drawn import SEED, drawn
from equipoise.search.adaptive_search import AdaptiveSearch
from equipoise.search.recipe_space import described
from equipoise.search.sweep import adaptively, all_of
from equipoise.trials.runner import Runner
from equipoise.trials.trial import Trial

DRAWS, SHARE, GOOD = 3, 5, 0.95
"""Draws of random masks; a search may make one trial in so many; the share of policies that must be as good."""
POLICIES, KILLS, FIRST = 30, 50, 3001
KILLER = Path(__file__).parents[1] / "tests" / "releases" / "kills.py"


@dataclass(frozen=True)
class Compared:
    """The choice of a search against that of the whole grid, by the score the policy prefers."""

    seed: int
    kind: str
    grid: int
    made: int
    passing: int
    """Trials of the grid that meet the limits."""
    refused: bool
    """Whether the search found none."""
    gap: float
    """How much worse its choice is, relative; 0 within error."""

    @property
    def good(self) -> bool:
        return not self.passing or (not self.refused and self.gap <= 1e-9)

    def words(self) -> str:
        told = "no trial can pass" if not self.passing else "REFUSED" if self.refused else f"gap {self.gap:.2%}"
        return f"{self.seed}  {self.kind:<15} {self.made:>3} of {self.grid:>3} trials, {self.passing:>3} pass: {told}"


def compared(seed: int, share: int = SHARE) -> Compared:
    """A policy drawn by seed: its grid, and a search that may make a fifth of the trials."""
    case = drawn(seed)
    recipes = case.grid()
    with Runner(case.records, case.measures) as runner:
        every = all_of(runner, recipes, DRAWS)
    policy = case.policy(every)
    families = described(case.candidates, case.records, SEED)
    assert families is not None
    with Runner(case.records, case.measures) as runner:
        some = adaptively(runner, AdaptiveSearch(families, policy, len(recipes) // share), draws=DRAWS, policy=policy)
    made, passing = len(some) + len(some.left_out), sum(map(bool, map(policy.judge, every)))
    best, found = chosen(policy, every), chosen(policy, some)
    gap = 0.0
    if best is not None and found is not None:
        theirs = preferred(policy, best)
        gap = preferred(policy, found).gap(theirs) / (abs(theirs.value) or 1.0)
    return Compared(seed, case.kind, len(recipes), made, passing, found is None, gap)


def chosen(policy: eq.Policy, trials: Sequence[Trial]) -> Trial | None:
    try:
        return policy.choose(trials)
    except eq.RefusedError:
        return None


def preferred(policy: eq.Policy, trial: Trial) -> eq.Score:
    """The first score of the side the policy favours, those with limits before others."""
    mine = [score for score in trial.scores if score.side == policy.prefer]
    return min(mine, key=lambda score: score.name not in policy.limits)


def policies(seed: int, many: int) -> Iterator[str]:
    """Every policy told; the last line says whether enough are as good."""
    found = []
    for one in range(seed, seed + many):
        found.append(compared(one))
        yield found[-1].words()
    can = [one for one in found if one.passing]
    good, worst = sum(one.good for one in can), max((one.gap for one in can), default=0.0)
    refused = sum(one.refused for one in can)
    held = good >= GOOD * len(can) and not refused
    yield (
        f"{'held' if held else 'MISSED'}: as good as the grid in {good} of {len(can)} policies that can be met, worst "
        f"gap {worst:.2%}; refused wrongly {refused}; {many - len(can)} cannot be met"
    )


def kills(seed: int, many: int) -> Iterator[str]:
    """Balances killed at random moments and run again."""
    with TemporaryDirectory() as folder:
        asked = [sys.executable, str(KILLER), folder, str(many), str(seed)]
        found = json.loads(subprocess.run(asked, capture_output=True, check=True, text=True).stdout)
    wrong = [fault for one in found for fault in one["wrong"]]
    hit, times = sum(bool(one["hit"]) for one in found), sum(one["hit"] for one in found)
    late = sum(bool(one["hit"]) and one["ended"] for one in found)
    held = not wrong and hit >= many
    yield (
        f"{'held' if held else 'MISSED'}: {hit} runs killed, {times} kills, {late} of them when the release was "
        f"there already; {'; '.join(wrong) or 'no fault'}"
    )


STUDIES: dict[str, tuple[Callable[[int, int], Iterator[str]], int]] = {
    "policies": (policies, POLICIES),
    "kills": (kills, KILLS),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was found; 1 when a claim was missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evidence", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which: {', '.join(STUDIES)} (all unless named)")
    parser.add_argument("--seed", type=int, default=FIRST, help="the first seed")
    parser.add_argument("--many", type=int, help="how many policies, or kills")
    given = parser.parse_args(arguments)
    told: list[str] = []
    for name in given.names or STUDIES:
        study, usual = STUDIES[name]
        for line in study(given.seed, given.many or usual):
            told.append(line)
            print(line, flush=True)
    return int(any(line.startswith("MISSED") for line in told))


if __name__ == "__main__":
    sys.exit(main())
