"""Policy: the limits a release must meet, and which side to favour inside them."""

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from equipoise.core.errors import EquipoiseError, ParameterError, RefusedError
from equipoise.core.method import Measure, label
from equipoise.core.roles import names
from equipoise.core.score import Score, Side
from equipoise.flow.catalogue import parse
from equipoise.flow.trial import Trial

COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
WRITTEN = re.compile(r"\s*(<=|>=|<|>)\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(%?)\s*")


@dataclass(frozen=True)
class Limit:
    """One score, a comparison as written, a bound.

    >>> Limit.of("uniques", "< 2%")
    Limit(score='uniques', sign='<', bound=0.02)
    """

    score: str
    sign: str
    bound: float

    @classmethod
    def of(cls, score: str, text: str) -> "Limit":
        found = WRITTEN.fullmatch(str(text))
        if not found:
            raise ParameterError(f"Cannot read the limit {str(text)!r} on {score!r}: write it like '< 0.02'.")
        return cls(score, found[1], float(found[2]) / (100 if found[3] else 1))

    def holds(self, score: Score) -> bool:
        if score.unit.startswith("share") and abs(self.bound) > 1:
            raise ParameterError(
                f"{self.score} is a share: the limit {self.sign} {self.bound:g} lies outside 0 to 1. "
                f"Write {self.bound:g} % as {self.bound / 100:g}, or as '{self.sign} {self.bound:g}%'."
            )
        return COMPARE[self.sign](score.value, self.bound)

    def words(self) -> str:
        return f"{self.score} {self.sign} {self.bound:g}"

    def shortfall(self, score: Score) -> float:
        """How far a score is on the wrong side, relative to the bound; 0 when it holds."""
        return 0.0 if self.holds(score) else abs(score.value - self.bound) / (abs(self.bound) or 1.0)


def _as_scored(name: str) -> str:
    """A measure with parameters by the name of its score, however it was written; any other name as it is.

    >>> _as_scored("nearest( known=('age','sex') )"), _as_scored("uniques")
    ("nearest(known=('age', 'sex'))", 'uniques')
    """
    if not set(name) & set("(:"):
        return name
    try:
        return label(parse(name, "measure"))
    except EquipoiseError:
        return name


@dataclass(frozen=True)
class Verdict:
    """Accepted or refused, with a reason for every limit."""

    accepted: bool
    reasons: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.accepted


@dataclass(frozen=True)
class Policy:
    """Limits on scores (all must hold, strict or not as written) and what to prefer inside them.

    The rectangle of Massell (1999), section III.d, with a risk of 0 acceptable. `allow` names the columns that may be
    released though they look like direct identifiers.

    >>> policy = Policy({"uniques": "< 0.02", "entropy": "> 7.5"})
    >>> policy.limits["uniques"]
    '< 0.02'
    """

    limits: Mapping[str, str] = field(default_factory=dict, hash=False)
    prefer: Literal["utility", "risk"] = "utility"
    allow: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "allow", names(self.allow, "allow"))
        if self.prefer not in ("utility", "risk"):
            raise ParameterError(f"prefer must be 'utility' or 'risk', got {self.prefer!r}.")
        found: dict[str, str] = {}
        for name, text in ((_as_scored(str(k)), str(v).strip()) for k, v in dict(self.limits).items()):
            found[name] = f"{found[name]} and {text}" if name in found else text
        object.__setattr__(self, "limits", found)
        _ = self.parsed

    @property
    def parsed(self) -> tuple[Limit, ...]:
        """The limits; several on one score are joined by 'and'."""
        return tuple(Limit.of(score, part) for score, text in self.limits.items() for part in text.split(" and "))

    def measures(self) -> tuple[Measure, ...]:
        """The measures that the limits name."""
        return tuple(parse(score, "measure") for score in self.limits)

    def judge(self, trial: Trial) -> Verdict:
        """Say whether the trial meets every limit, and why."""
        reasons, accepted = [], True
        for limit in self.parsed:
            score = scored(trial, limit)
            kept = limit.holds(score)
            accepted = accepted and kept
            where = "within" if kept else "outside"
            reasons.append(f"{limit.score} is {score.value:.4g}, {where} the limit {limit.sign} {limit.bound:g}")
        return Verdict(accepted, tuple(reasons))

    def choose(self, trials: Iterable[Trial]) -> Trial:
        """The accepted trial with the most utility (or the least risk); ties go to the other side, then the first.

        Raises `RefusedError` when none is accepted, naming the nearest and what it breaks.
        """
        tried = tuple(trials)
        if not tried:
            raise ParameterError("There are no trials to choose from.")
        accepted = [trial for trial in tried if self.judge(trial)]
        if not accepted:
            raise RefusedError(self._refusal(tried))
        sides: tuple[Side, Side] = ("utility", "risk") if self.prefer == "utility" else ("risk", "utility")
        return min(accepted, key=lambda trial: tuple(loss for side in sides for loss in self._losses(trial, side)))

    def _losses(self, trial: Trial, side: Side) -> tuple[float, ...]:
        """Scores of one side as losses, those with limits first."""
        scores = [s for s in trial.scores if s.side == side]
        limited = {scored(trial, limit).name for limit in self.parsed}
        ranked = sorted(scores, key=lambda s: s.name not in limited)
        return tuple(s.value if s.better == "lower" else -s.value for s in ranked)

    def _refusal(self, trials: tuple[Trial, ...]) -> str:
        def missing(trial: Trial) -> float:
            return sum(limit.shortfall(scored(trial, limit)) for limit in self.parsed)

        nearest = min(trials, key=missing)
        broken = [limit for limit in self.parsed if not limit.holds(scored(nearest, limit))]
        faults = "; ".join(f"{b.score} {scored(nearest, b).value:.4g}, limit {b.sign} {b.bound:g}" for b in broken)
        tried = f"None of {len(trials):,} candidates meets" if len(trials) > 1 else "The release does not meet"
        return f"{tried} the limits. Nearest is {nearest.words()!r}, which breaks: {faults}."


def scored(trial: Trial, limit: Limit) -> Score:
    """The score a limit is about, also where the limit spells its measure in another way: uniques:3, Uniques(3)."""
    if limit.score not in trial.scores.keys():  # noqa: SIM118 (a tuple of scores, found by name)
        try:
            return trial.scores.named(label(parse(limit.score, "measure")))
        except ParameterError:
            pass
    return trial.scores.named(limit.score)
