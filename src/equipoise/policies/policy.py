"""Policy: the limits a release must meet, and which side to favour inside them."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, Literal

from equipoise.data.roles import names
from equipoise.ground.errors import ParameterError, RefusedError, hint, shown
from equipoise.methods.method import Measure, label
from equipoise.methods.score import DESCRIPTIVE_NOTE, Score, Side
from equipoise.policies.limits import Limit, as_scored, limits_of, written_out
from equipoise.policies.scoped_measures import scale
from equipoise.policies.sections import Intruder
from equipoise.presentation.notebook import policy_html
from equipoise.recipe.catalogue import OLD_NAMES, methods, parse
from equipoise.risk import RevealingColumns
from equipoise.trials.trial import Trial
from equipoise.utility import Overlap

__all__ = ["Limit", "Policy", "Verdict", "scored"]
REVEALING = "revealing_columns"


@dataclass(frozen=True)
class Verdict:
    """Accepted or refused, with a reason for every limit."""

    accepted: bool
    reasons: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.accepted


@dataclass(frozen=True)
class Policy:
    """Limits on scores, all of which must hold, and which side to prefer among accepted trials.

    The rectangle of Massell (1999), section III.d, with a risk of 0 acceptable. `allow` names the columns that may be
    released though they look like direct identifiers. A limit is a text, a table (`limit`, `reason`, `scenario`, `by`,
    `worst`) or a list of them; a limit on a risk holds in every one of `scenarios` unless it names one. With `weights`
    the choice goes by their sum over utility scores, each brought to 0 (worst tried) to 1 (best tried). `reasons` has
    why each limit is there, `extends` the preset they come from. `assume_unknown` names the columns that single people
    out and are released all the same, `keep_order` leaves the records in their order: the reports say so at the top.
    Text in CSV files that a spreadsheet would run as a formula gets an apostrophe, unless `csv_formulas` is "keep".
    `estimates` are the analyses that matter to users, as `utility.Overlap` takes them: `overlap` is that of these.

    >>> policy = Policy({"uniques": "< 0.02", "entropy": "> 7.5"})
    >>> policy.limits["uniques"]
    '< 0.02'
    """

    limits: Mapping[str, Any] = field(default_factory=dict, hash=False)
    prefer: Literal["utility", "risk"] = "utility"
    allow: tuple[str, ...] = ()
    scenarios: tuple[Intruder, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict, hash=False)
    reasons: Mapping[str, str] = field(default_factory=dict, hash=False)
    extends: str | None = None
    assume_unknown: tuple[str, ...] = ()
    keep_order: bool = False
    csv_formulas: Literal["escape", "keep"] = "escape"
    estimates: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "allow", names(self.allow, "allow"))
        object.__setattr__(self, "assume_unknown", names(self.assume_unknown, "assume_unknown"))
        object.__setattr__(self, "scenarios", tuple(self.scenarios))
        estimates = (self.estimates,) if isinstance(self.estimates, str) else self.estimates
        object.__setattr__(self, "estimates", tuple(estimates))
        _ = self._overlap
        if self.csv_formulas not in ("escape", "keep"):
            raise ParameterError(f"csv_formulas must be 'escape' or 'keep', got {shown(self.csv_formulas)}.")
        if self.prefer not in ("utility", "risk"):
            raise ParameterError(f"prefer must be 'utility' or 'risk', got {shown(self.prefer)}.")
        limits, reasons = written_out(dict(self.limits), self.scenarios)
        reasons = {**reasons, **self.reasons}
        object.__setattr__(self, "limits", {self.score_name(n): limit for n, limit in limits.items()})
        object.__setattr__(self, "reasons", {self.score_name(n): reason for n, reason in reasons.items()})
        object.__setattr__(self, "weights", {as_scored(str(k)): float(v) for k, v in dict(self.weights).items()})
        if any(not weight >= 0 for weight in self.weights.values()):
            raise ParameterError("weights must be 0 or more.")
        _ = self.parsed
        _refuse_misspelt((*self.limits, *self.weights))

    def score_name(self, name: str) -> str:
        """The name of a score; a limit on revealing columns leaves out those that nobody is taken to know."""
        measure = parse(name, "measure") if self.assume_unknown and name.startswith(REVEALING) else None
        if not isinstance(measure, RevealingColumns):
            return name
        return label(replace(measure, unknown=tuple(dict.fromkeys((*measure.unknown, *self.assume_unknown)))))

    @cached_property
    def parsed(self) -> tuple[Limit, ...]:
        """The limits; several on one score are joined by 'and'."""
        reasons = self.reasons
        return tuple(
            part for score, text in self.limits.items() for part in limits_of(score, text, reasons.get(score, ""))
        )

    def measures(self) -> tuple[Measure, ...]:
        """The measures that the limits and the weights name."""
        return tuple(dict.fromkeys(self.measure_of(score) for score in (*self.limits, *self.weights)))

    def measure_of(self, score: str) -> Measure:
        """The measure of a score; `overlap` is that of the estimates, where the policy names any."""
        measure = scale(score, self.scenarios)
        if not self.estimates or not isinstance(measure, Overlap) or measure.estimates or measure.functions:
            return measure
        own = self._overlap
        return replace(measure, estimates=own.estimates, functions=own.functions, known_as=label(measure))

    @property
    def _overlap(self) -> Overlap:
        """The overlap of the estimates: queries, and functions of one's own."""
        functions = tuple(one for one in self.estimates if callable(one))
        queries = tuple(one for one in self.estimates if not callable(one))
        return Overlap(queries or None, functions=functions)

    def judge(self, trial: Trial) -> Verdict:
        """The verdict on a trial: whether it meets every limit, with reasons."""
        reasons, accepted = [], True
        for limit in self.parsed:
            score = scored(trial, limit)
            holds = limit.holds(score)
            accepted = accepted and holds
            where = "within" if holds else "outside"
            why = f" ({limit.reason})" if limit.reason and not holds else ""
            only = " (descriptive after a random mask)" if DESCRIPTIVE_NOTE in score.notes else ""
            name, value, bound = limit.in_sentence(score)
            reasons.append(f"{name} is {value}, {where} the limit ({bound}){only}{why}")
        return Verdict(accepted, tuple(reasons))

    def choose(self, trials: Iterable[Trial]) -> Trial:
        """The accepted trial with the most utility (or the least risk); ties go to the other side, then the first.

        Scores that differ by rounding alone, which no two processors do alike, are tied: twelve digits count.
        Raises `RefusedError` when none is accepted, naming the nearest and what it breaks.
        """
        candidates = tuple(trials)
        if not candidates:
            raise ParameterError("There are no trials to choose from.")
        accepted = [trial for trial in candidates if self.judge(trial)]
        if not accepted:
            raise RefusedError(self._refusal(candidates))
        sides: tuple[Side, Side] = ("utility", "risk") if self.prefer == "utility" else ("risk", "utility")
        worth = self._worth(candidates)

        def losses(trial: Trial) -> tuple[float, ...]:
            weighed = {"utility": (-worth(trial),), "risk": ()}
            exact = (loss for side in sides for loss in (*weighed[side], *self._losses(trial, side)))
            return tuple(float(f"{loss:.12g}") for loss in exact)

        return min(accepted, key=losses)

    def _worth(self, trials: Sequence[Trial]) -> Callable[[Trial], float]:
        """The weighted sum of utilities, each from 0 for the worst trial to 1 for the best; 0 without weights."""
        spans = {
            name: (min(values), max(values), weight)
            for name, weight in self.weights.items()
            if (values := [trial.scores.named(name).value for trial in trials])
        }

        def worth(trial: Trial) -> float:
            parts = ((trial.scores.named(name), *span) for name, span in spans.items())
            return sum(
                weight * ((score.value - low) if score.better == "higher" else (high - score.value)) / (high - low)
                for score, low, high, weight in parts
                if high > low
            )

        return worth

    def _losses(self, trial: Trial, side: Side) -> tuple[float, ...]:
        """Scores of one side as losses, those with limits first."""
        scores = [s for s in trial.scores if s.side == side]
        limited = {scored(trial, limit).name for limit in self.parsed}
        ranked = sorted(scores, key=lambda s: s.name not in limited)
        return tuple(s.value if s.better == "lower" else -s.value for s in ranked)

    def _repr_html_(self) -> str:
        return policy_html(self)

    def _refusal(self, trials: tuple[Trial, ...]) -> str:
        def missing(trial: Trial) -> float:
            return sum(limit.shortfall(scored(trial, limit)) for limit in self.parsed)

        nearest = min(trials, key=missing)
        broken = [limit for limit in self.parsed if not limit.holds(scored(nearest, limit))]
        sentences = (limit.in_sentence(scored(nearest, limit)) for limit in broken)
        faults = "; ".join(f"{name} {value}, limit {bound}" for name, value, bound in sentences)
        verdict = f"None of {len(trials):,} candidates meets" if len(trials) > 1 else "The release does not meet"
        return f"{verdict} the limits. Nearest is {nearest.words()!r}, which breaks: {faults}."


def refused(trial: Trial, verdict: Verdict) -> RefusedError:
    """The error that refuses a release, with the limits it breaks."""
    error = RefusedError("Nothing was released: " + "; ".join(r for r in verdict.reasons if "outside" in r) + ".")
    error.about = trial
    return error


def _refuse_misspelt(scores: Iterable[str]) -> None:
    """Refuse the name of a score that is no measure but nearly one; other names may be of measures given beside."""
    measures = methods("measure")
    for score in scores:
        word = re.split(r"\W", score.strip(), maxsplit=1)[0]
        if word not in measures and word not in OLD_NAMES and "mean" in (advice := hint(word, measures)):
            raise ParameterError(f"No measure {word!r}.{advice}")


def scored(trial: Trial, limit: Limit) -> Score:
    """The score that a limit applies to, however the limit spells its measure: uniques:3, Uniques(3)."""
    if limit.score not in trial.scores.keys():  # noqa: SIM118 (a tuple of scores, found by name)
        try:
            return trial.scores.named(_score_name(limit.score))
        except ParameterError:
            pass
    return trial.scores.named(limit.score)


@cache
def _score_name(score: str) -> str:
    """The name of the score that a measure, written in any way, gives."""
    return label(parse(score, "measure"))
