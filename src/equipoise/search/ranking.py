"""Ranking of trials under a policy."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import fsum
from statistics import fmean

from equipoise.methods.score import Score
from equipoise.policies.policy import Limit, Policy, scored
from equipoise.trials.trial import Trial

Rank = Callable[[Trial], tuple[float, ...]]


def loss(score: Score) -> float:
    """A score as what is lost: smaller is better.

    >>> loss(Score("entropy", 3.0, "higher"))
    -3.0
    """
    return score.value if score.better == "lower" else -score.value


def ranking(policy: Policy, trials: Sequence[Trial]) -> Rank:
    """What `Policy.choose` makes smallest among trials inside the limits.

    Losses of the favoured side, then of the other, those with limits first; before those of utility the weighted sum,
    where the policy has weights.
    """
    sides = ("utility", "risk") if policy.prefer == "utility" else ("risk", "utility")
    weigh = weighing(policy, trials)
    limited = {scored(trials[0], limit).name for limit in policy.parsed} if trials else set()

    def rank(trial: Trial) -> tuple[float, ...]:
        ranked = sorted(trial.scores, key=lambda score: score.name not in limited)
        losses = {side: [loss(score) for score in ranked if score.side == side] for side in sides}
        losses["utility"] = [-weigh(trial), *losses["utility"]]
        return tuple(value for side in sides for value in losses[side])

    return rank


def main_pair(trial: Trial, policy: Policy | None) -> tuple[str, str] | None:
    """The names of the first risk and the first utility, those with limits before others."""
    limited = {scored(trial, limit).name for limit in policy.parsed} if policy else set()
    ranked = sorted(trial.scores, key=lambda score: score.name not in limited)
    risk = next((score.name for score in ranked if score.side == "risk"), None)
    utility = next((score.name for score in ranked if score.side == "utility"), None)
    return None if risk is None or utility is None else (risk, utility)


def weighing(policy: Policy, trials: Sequence[Trial]) -> Callable[[Trial], float]:
    """The weighted sum of scores, each from 0 for the worst of these trials to 1 for the best; 0 without weights."""
    weights = {name: weight for name, weight in policy.weights.items() if weight}
    spans: dict[str, tuple[float, float]] = {}
    for name in weights:
        losses = [loss(trial.scores.named(name)) for trial in trials]
        spans[name] = (min(losses), max(losses))

    def weigh(trial: Trial) -> float:
        total = 0.0
        for name, (best, worst) in spans.items():
            if worst > best:
                total += weights[name] * (worst - loss(trial.scores.named(name))) / (worst - best)
        return total

    return weigh


def inside(policy: Policy, trial: Trial) -> bool:
    """Whether every limit holds."""
    return all(limit.holds(scored(trial, limit)) for limit in policy.parsed)


def shortfall(policy: Policy, trial: Trial) -> float:
    """How far outside the limits, relative to them, added up; 0 inside."""
    return sum(limit.shortfall(scored(trial, limit)) for limit in policy.parsed)


def ahead_of(trials: Sequence[Trial], policy: Policy) -> Trial:
    """The trial to release: as `Policy.choose` has it, of those whose fresh draw is likely inside the limits too.

    Where no such trial is, the best of those inside in expectation; where none is, the nearest.
    """
    rank = ranking(policy, trials)
    chosen = best(trials, policy, policy.parsed)
    return chosen or min(trials, key=lambda trial: (shortfall(policy, trial), rank(trial)))


def best(
    trials: Sequence[Trial], policy: Policy, limits: Sequence[Limit], spread: "Spread | None" = None
) -> Trial | None:
    """The trial to release under these limits; None where no trial meets them. `spread` is that of these trials."""
    fit = [trial for trial in trials if all(limit.holds(scored(trial, limit)) for limit in limits)]
    spread = spread or Spread(trials)
    steady = [trial for trial in fit if spread.likely(limits, trial)]
    return min(steady or fit, key=ranking(policy, trials), default=None)


class Spread:
    """How much draws differ, over all trials that were drawn more than once; each score is looked at once."""

    def __init__(self, trials: Sequence[Trial]) -> None:
        self.drawn = [trial for trial in trials if len(trial.draws) > 1]
        self.freedom = sum(len(trial.draws) - 1 for trial in self.drawn)
        self.pooled: dict[str, float] = {}

    def of(self, name: str) -> float:
        """The mean of the variances of draws."""
        if name not in self.pooled:
            self.pooled[name] = fmean(_variance(trial, name) for trial in self.drawn)
        return self.pooled[name]

    def likely(self, limits: Sequence[Limit], trial: Trial) -> bool:
        """Whether a fresh draw of one of these trials will meet the limits, one-sided with 95 %; True if drawn once.

        A draw differs from the mean of n others by s sqrt(1 + 1 / n) times Student's t, s the standard deviation of
        draws: that of the trial or that over all trials, whichever is larger, as few draws may agree by chance. A trial
        on the edge of a limit meets it in expectation, and every other draw of it does not.
        """
        from scipy.special import stdtrit

        n = len(trial.draws)
        if n < 2:
            return True
        times = float(stdtrit(self.freedom, 0.95)) * (1 + 1 / n) ** 0.5
        for limit in limits:
            mean = scored(trial, limit)
            spread = max(self.of(mean.name), _variance(trial, mean.name)) ** 0.5
            worse = mean.value + times * spread * (1.0 if limit.sign[0] == "<" else -1.0)
            if not limit.holds(replace(mean, value=worse)):
                return False
        return True


def _variance(trial: Trial, name: str) -> float:
    """That of the draws of one score, which stands at the same place in each."""
    place = trial.scores.keys().index(name)
    values = [scores[place].value for scores in trial.draws]
    mean = fmean(values)
    return fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
