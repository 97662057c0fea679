"""Limits of a policy: parsing of strings, tables and lists, and limits that contradict each other."""

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from equipoise.ground.errors import EquipoiseError, ParameterError
from equipoise.methods.method import Measure, label, name_of
from equipoise.methods.score import Score
from equipoise.policies.scoped_measures import Wanted, depends, scale
from equipoise.policies.sections import Intruder, LimitTable
from equipoise.presentation import numbers
from equipoise.recipe.catalogue import OLD_NAMES, family, known_method, parse, typed

COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
SIGN_WORDS = {"<": "below", "<=": "at most", ">": "above", ">=": "at least"}
LIMIT_PATTERN = re.compile(r"\s*(<=|>=|<|>)\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(%?)\s*")
SHARE_UTILITIES = (
    "changed", "eigenvalues", "moments", "additivity", "exposed", "kept_margins", "rebuild", "suppressed", "blank_keys",
    "withheld_records", "overlap",
)  # fmt: skip
"""Utilities that are shares; all risks and attacks are."""


@dataclass(frozen=True)
class Limit:
    """A limit: a score, a comparison, a bound, and the reason.

    >>> Limit.of("uniques", "< 2%")
    Limit(score='uniques', sign='<', bound=0.02)
    """

    score: str
    sign: str
    bound: float
    reason: str = field(default="", repr=False, compare=False)
    percent: bool = field(default=False, repr=False, compare=False)

    @classmethod
    def of(cls, score: str, text: str, reason: str = "") -> "Limit":
        match = LIMIT_PATTERN.fullmatch(str(text))
        if not match:
            raise ParameterError(f"Cannot read the limit {str(text)!r} on {score!r}: write it like '< 0.02'.")
        return cls(score, match[1], float(match[2]) / (100 if match[3] else 1), reason, bool(match[3]))

    def holds(self, score: Score) -> bool:
        if score.unit.startswith("share") and abs(self.bound) > 1:
            raise ParameterError(_percent(self))
        return COMPARISONS[self.sign](score.value, self.bound)

    def words(self) -> str:
        return f"{self.score} {self.sign} {self.bound:g}"

    def in_sentence(self, score: Score) -> tuple[str, str, str]:
        """What is limited, its value and its bound, as a sentence says them: names in words, shares in percent.

        >>> Limit.of("revealing_columns", "< 10%").in_sentence(Score("revealing_columns", 0.172, "lower", unit="share"))
        ('revealing columns', '17.2 %', 'below 10 %')
        """
        name, share = numbers.title(self.score), self.percent or numbers.is_share(score.unit)
        value, bound = (f"{100 * n:.4g} %" if share else f"{n:.4g}" for n in (score.value, self.bound))
        return f"{name[0].lower()}{name[1:]}", value, f"{SIGN_WORDS[self.sign]} {bound}"

    def shortfall(self, score: Score) -> float:
        """How far a score is on the wrong side, relative to the bound; 0 when it holds."""
        return 0.0 if self.holds(score) else abs(score.value - self.bound) / (abs(self.bound) or 1.0)


def _percent(limit: Limit) -> str:
    """Why a limit on a share is invalid, with a hint where a percentage may have been meant."""
    if limit.percent:
        return f"{limit.score} is a share: the limit {limit.sign} {100 * limit.bound:g}% lies outside 0 to 100 %."
    hint = f" Write {limit.bound:g} % as {limit.bound / 100:g}, or as '{limit.sign} {limit.bound:g}%'."
    wrong = f"{limit.score} is a share: the limit {limit.sign} {limit.bound:g} lies outside 0 to 1."
    return wrong + (hint if 1 < limit.bound <= 100 else "")


def limits_of(score: str, text: str, reason: str = "") -> tuple[Limit, ...]:
    """The limits on one score; several are joined by 'and'."""
    return tuple(Limit.of(score, part, reason) for part in text.split(" and "))


def tables(entry: Any, name: str) -> tuple[LimitTable, ...]:
    """The limits on one measure as tables."""
    entries = entry if isinstance(entry, list | tuple) else [entry]
    return tuple(item if isinstance(item, LimitTable) else _table(item, name) for item in entries)


def _table(entry: Any, name: str) -> LimitTable:
    if isinstance(entry, Mapping):
        by = entry.get("by", ())
        return typed({**entry, "by": (by,) if isinstance(by, str) else by}, LimitTable, f"limits.{name}")
    return LimitTable(str(entry))


def as_scored(name: str) -> str:
    """A measure with parameters by the name of its score, however it was written; any other name as it is.

    >>> as_scored("nearest( known=('age','sex') )"), as_scored("uniques"), as_scored("uniques:3[journalist]")
    ("nearest(known=('age', 'sex'))", 'uniques', 'uniques(k=3)[journalist]')
    """
    if not set(name) & set("(:") and name not in OLD_NAMES:
        return name
    scope = Wanted.of(name)
    measure = known_method(scope.measure, "measure")
    return name if measure is None else str(replace(scope, measure=label(measure)))


def expanded(name: str, table: LimitTable, scenarios: tuple[Intruder, ...]) -> tuple[str, ...]:
    """The names of the scores that a limit applies to: one for each scenario unless it names one."""
    scope = Wanted.of(as_scored(name))
    scope = Wanted(scope.measure, table.scenario or scope.scenario, table.by or scope.by, table.worst or scope.worst)
    measure = known_method(scope.measure, "measure")
    if scope.scenario or not scenarios or measure is None or not depends(measure):
        return (str(scope),)
    return tuple(str(replace(scope, scenario=intruder.name)) for intruder in scenarios)


def written_out(
    limits: Mapping[str, Any], scenarios: tuple[Intruder, ...] = ()
) -> tuple[dict[str, str], dict[str, str]]:
    """Each score with its limits as one text, and the reasons where there are any.

    >>> both = (Intruder("neighbour", ("age",)), Intruder("employer", ("pay",)))
    >>> written_out({"uniques": "< 2%", "entropy": {"limit": "> 5", "reason": "tables by age"}}, both)[0]
    {'uniques[neighbour]': '< 2%', 'uniques[employer]': '< 2%', 'entropy': '> 5'}
    """
    texts: dict[str, str] = {}
    reasons: dict[str, list[str]] = {}
    for name, entry in limits.items():
        for table in tables(entry, str(name)):
            for score in expanded(str(name), table, scenarios):
                text = table.limit.strip()
                texts[score] = f"{texts[score]} and {text}" if score in texts else text
                if table.reason and table.reason not in reasons.setdefault(score, []):
                    reasons[score].append(table.reason)
    return texts, {score: "; ".join(words) for score, words in reasons.items() if words}


def ends(measure: Measure) -> tuple[float, float]:
    """The smallest and largest possible value of a measure."""
    kind, inner = type(measure), getattr(measure, "inner", None)
    if inner is not None:
        return ends(inner)
    if family(kind) in ("risk", "attacks") or name_of(kind) in SHARE_UTILITIES or name_of(kind) == "marginals":
        return 0.0, 1.0
    if name_of(kind) == "estimate":
        return (-inf, 1.0) if getattr(measure, "score", "") == "overlap" else (0.0, inf)
    return 0.0, inf


def is_share(measure: Measure) -> bool:
    """Whether a measure is a share, so that a limit of 2 must mean 2 %."""
    return ends(measure)[1] == 1.0 and name_of(type(measure)) != "marginals"


def never(limit: Limit, measure: Measure) -> str:
    """Why a single limit can never hold; empty where it can."""
    low, high = ends(measure)
    if is_share(measure) and abs(limit.bound) > 1:
        return _percent(limit)
    if _between([limit], low, high):
        return ""
    return f"{limit.words()} can never hold: it lies between {low:g} and {high:g}."


def at_odds(limits: Iterable[Limit], scenarios: tuple[Intruder, ...] = ()) -> Iterator[tuple[str, str]]:
    """Scores whose limits contradict each other, each with the reason."""
    ladder: dict[str, list[tuple[Limit, int]]] = {}
    scores: dict[str, list[Limit]] = {}
    for limit in limits:
        scores.setdefault(limit.score, []).append(limit)
        if step := _step(limit, scenarios):
            ladder.setdefault(step[0], []).append((limit, step[1]))
    for score, its in scores.items():
        if not _between(its, -inf, inf):
            yield score, f"{' and '.join(limit.words() for limit in its)} cannot both hold."
    for steps in ladder.values():
        pairs = [(upper, lower) for upper, high in steps for lower, low in steps if low < high]
        for upper, lower in pairs:
            opposed = upper.sign[0] == "<" and lower.sign[0] == ">"
            if opposed and not _between((upper, lower), -inf, inf):
                both = f"{lower.words()} and {upper.words()} cannot both hold"
                yield lower.score, f"{both}: {upper.score} is never below {lower.score}."


def _step(limit: Limit, scenarios: tuple[Intruder, ...]) -> tuple[str, int] | None:
    """Scope and class size of a limit on small classes, which are nested: classes of at most 2, of at most 3."""
    scope = Wanted.of(limit.score)
    try:
        measure: Any = parse(scope.measure, "measure")
        scale(limit.score, scenarios)
    except EquipoiseError:
        return None
    rest = str(replace(scope, measure=""))
    if name_of(type(measure)) == "uniques":
        return rest, measure.k
    return (rest, measure.k - 1) if name_of(type(measure)) == "k_anonymity" and measure.subsets is None else None


def _between(limits: Iterable[Limit], low: float, high: float) -> bool:
    """Whether a number from low to high meets every limit."""
    open_low = open_high = False
    for limit in limits:
        strict = len(limit.sign) == 1
        if limit.sign[0] == "<" and (limit.bound < high or (limit.bound == high and strict)):
            high, open_high = limit.bound, strict
        if limit.sign[0] == ">" and (limit.bound > low or (limit.bound == low and strict)):
            low, open_low = limit.bound, strict
    return low < high or (low == high and not (open_low or open_high))
