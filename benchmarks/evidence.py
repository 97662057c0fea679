"""What takes long and is not judged by speed: `python -m benchmarks.evidence [name ...] [--seed N] [--many N]`.

policies: adaptive searches against exhaustive grids, on policies drawn by seed. kills: kill -9 at random moments.
suite: the full versions of tests of which `make test` runs a small one. kernels: the numerical tests, and `verify`
of releases made before, under the vector and matrix kernels of other processors.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from torture.kills import cases

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
ROOT = Path(__file__).parents[1]
NUMERICAL = (
    "data", "coarsening", "beta_binomial", "laws", "losses", "rules", "masks", "risk", "attacks", "utility", "theory",
    "tables", "golden", "publishing",
)  # fmt: skip
"""Folders of tests whose answers are computed in floating point."""
CORES = ("Nehalem", "Haswell", "Zen", "SkylakeX")
"""Matrix kernels of OpenBLAS that every x86 processor of the last ten years can run, but for the last."""
CLI = "import sys; from equipoise.doors.cli import main; sys.exit(main(sys.argv[1:]))"


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
    """Every verb that writes, killed at random moments and run again."""
    with TemporaryDirectory() as folder:
        faults = [(words, wrong) for _, words, wrong in cases(str(seed), Path(folder), range(many)) if wrong]
    yield f"{'MISSED' if faults else 'held'}: {many} kills, {len(faults)} with faults; {faults or 'none'}"


def suite(_seed: int, workers: int) -> Iterator[str]:
    """The tests that `make test` makes smaller, at full size."""
    tests = ["-m", "evidence", "-n", str(workers), "--dist", "loadgroup", str(ROOT / "tests")]
    yield verdict("the full versions of tests", tested(tests, {"EQUIPOISE_EVIDENCE": "1"}))


def kernels(_seed: int, many: int) -> Iterator[str]:
    """The numerical tests and the verification of earlier releases, as other processors compute."""
    folders = [str(ROOT / "tests" / name) for name in NUMERICAL]
    with TemporaryDirectory() as place:
        releases = [demo(name, Path(place)) for name in ("survey", "business", "hospital")]
        for settings in kernel_settings()[:many]:
            name = " ".join(f"{key}={value}" for key, value in settings.items())
            yield verdict(f"numerical tests under {name}", tested(folders, settings))
            for release in releases:
                yield verdict(f"verify {release.name} under {name}", command(["verify", str(release)], settings))


def kernel_settings() -> list[dict[str, str]]:
    """Environment variables that choose other kernels; of NumPy's features, those that this processor has."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    features = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
    sets = dict.fromkeys((" ".join(features[:1]), " ".join(features)))
    return [{"OPENBLAS_CORETYPE": core} for core in CORES] + [{"NPY_DISABLE_CPU_FEATURES": one} for one in sets if one]


def demo(name: str, place: Path) -> Path:
    """A release of a demo, made with this processor's own kernels."""
    done = command(["demo", name, "--out", str(place / name)], {})
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    return next((place / name).rglob("evidence.json")).parents[1]


def command(words: Sequence[str], settings: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """A command of equipoise in a process of its own."""
    return run(["-c", CLI, *words], settings)


def tested(words: Sequence[str], settings: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    return run(["-m", "pytest", "-q", "-p", "no:cacheprovider", *words], settings)


def run(words: Sequence[str], settings: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *words], env=os.environ | settings, capture_output=True, text=True, check=False, cwd=ROOT
    )


def verdict(what: str, done: "subprocess.CompletedProcess[str]") -> str:
    """One line where it held; what was said at the end where it did not."""
    lines = (done.stdout + done.stderr).strip().splitlines()
    said = lines[-1] if lines else ""
    return f"held: {what}: {said}" if not done.returncode else "\n".join([f"MISSED: {what}", *lines[-30:]])


STUDIES: dict[str, tuple[Callable[[int, int], Iterator[str]], int]] = {
    "policies": (policies, POLICIES),
    "kills": (kills, KILLS),
    "suite": (suite, 2),
    "kernels": (kernels, len(CORES) + 2),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was found; 1 when a claim was missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evidence", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which: {', '.join(STUDIES)} (all unless named)")
    parser.add_argument("--seed", type=int, default=FIRST, help="the first seed")
    parser.add_argument("--many", type=int, help="how many policies, kills, workers or kernels")
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
