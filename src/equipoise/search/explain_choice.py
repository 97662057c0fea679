"""Choice: why this trial, what the next steps would buy, what was refused, and how firm the choice is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from functools import cached_property
from math import isfinite
from typing import Any

from equipoise.ground.errors import ParameterError
from equipoise.methods.score import Score, Side
from equipoise.policies.policy import Limit, Policy, scored
from equipoise.presentation.numbers import is_share, listed, title, value_text
from equipoise.search.frontier import frontier
from equipoise.search.ranking import Spread, best, inside, loss, main_pair, ranking, shortfall
from equipoise.trials.trial import Trial

LIMIT_SHIFT = 0.1
"""Share by which limits are moved to see whether the choice holds."""
LIMIT_DIGITS = 4
"""Digits of a limit that is proposed."""
MIN_COST = 0.001
"""What costs users less is not told."""
MAX_QUOTED = 70
"""Characters of a recipe that a refusal quotes; a longer one would be cut, and is in the report."""
MAX_NEXT_STEPS = 3
"""Next steps on each side that are reported."""


@dataclass(frozen=True)
class LimitMargin:
    """A limit and how far the chosen trial is from it; it binds where without it another trial would be chosen."""

    limit: Limit
    value: float
    binds: bool

    @property
    def room(self) -> float:
        """The distance as a share of the limit."""
        return abs(self.limit.bound - self.value) / (abs(self.limit.bound) or 1.0)

    def words(self) -> str:
        kind = "binds" if self.binds else "does not bind"
        return f"The limit {self.limit.words()} {kind}: the value is {self.value:.4g}, {_percent(self.room)} from it."


@dataclass(frozen=True)
class FrontierStep:
    """A neighbour on the frontier: what changes, and which limits it would break."""

    trial: Trial
    changes: tuple[tuple[Score, float], ...]
    """Scores of the neighbour that differ, and by how much."""
    breaks: tuple[Limit, ...]

    def words(self) -> str:
        better = [change for change in map(_change_in_words, self.changes) if change[1]]
        worse = [change for change in map(_change_in_words, self.changes) if not change[1]]
        deal = " for ".join(listed([text for text, _ in side]) for side in (better, worse) if side)
        broken = f", but it breaks {listed([limit.words() for limit in self.breaks])}" if self.breaks else ""
        return f"{deal}: {self.trial.words()}{broken}."


@dataclass(frozen=True)
class LimitMove:
    """A limit moved so far that one more trial passes."""

    limit: Limit
    bound: float
    trial: Trial

    @property
    def to(self) -> Limit:
        """The limit as it would have to be written: to four digits, rounded so that the trial passes.

        >>> LimitMove(Limit("uniques", "<", 0.01), 0.0123412, Trial(eq.Recipe(), eq.Scores(()))).to
        Limit(score='uniques', sign='<=', bound=0.01235)
        """
        way = ROUND_CEILING if self.limit.sign[0] == "<" else ROUND_FLOOR
        bound = float(Context(prec=LIMIT_DIGITS, rounding=way).create_decimal(repr(float(self.bound))))
        return replace(self.limit, sign=f"{self.limit.sign[0]}=", bound=bound)

    def words(self) -> str:
        score = scored(self.trial, self.limit)
        name, _, bound = self.limit.in_sentence(score)
        which = repr(self.trial.words()) if len(self.trial.words()) <= MAX_QUOTED else "a candidate"
        return f"if the limit of {name} were {self.to.in_sentence(score)[2]} instead of {bound}, {which} would pass"


@dataclass(frozen=True)
class Shift:
    """The same question asked a little differently, and the trial that would be chosen then; None where none."""

    question: str
    trial: Trial | None
    same: bool

    def words(self) -> str:
        then = (
            "the choice is the same" if self.same else self.trial.words() if self.trial else "nothing could be chosen"
        )
        return f"{self.question}: {then}."


@dataclass(frozen=True)
class Choice:
    """What was chosen among trials under a policy, with the reasons.

    `trial` is None where no trial meets the limits. Everything is worked out when asked for, from scores alone.

    >>> def trial(name, uniques, bits):
    ...     scores = Score("uniques", uniques, "lower", unit="share of records"), Score("entropy", bits, "higher")
    ...     return Trial(eq.Recipe(), eq.Scores(scores), name=name)
    >>> tried = [trial("fine", 0.023, 7.4), trial("middle", 0.019, 7.0), trial("coarse", 0.001, 4.0)]
    >>> made = Choice(tuple(tried), Policy({"uniques": "< 0.02"}))
    >>> made.trial.name, made.margins[0].binds
    ('middle', True)
    >>> print(made.steps[0].words())
    0.4 more entropy for 0.4 % more uniques: fine, but it breaks uniques < 0.02.
    """

    trials: tuple[Trial, ...] = field(repr=False)
    policy: Policy

    def __post_init__(self) -> None:
        object.__setattr__(self, "trials", tuple(self.trials))
        if not self.trials:
            raise ParameterError("There are no trials to choose from.")

    @cached_property
    def trial(self) -> Trial | None:
        return self._best(self.policy, self.policy.parsed)

    @cached_property
    def _spread(self) -> Spread:
        return Spread(self.trials)

    def _best(self, policy: Policy, limits: Sequence[Limit]) -> Trial | None:
        return best(self.trials, policy, limits, self._spread)

    @cached_property
    def accepted(self) -> tuple[Trial, ...]:
        return tuple(trial for trial in self.trials if inside(self.policy, trial))

    @cached_property
    def passed_over(self) -> tuple[Trial, ...]:
        """Accepted trials that rank before the chosen one, but of which a fresh draw may well break a limit."""
        if self.trial is None:
            return ()
        rank, limits, spread = ranking(self.policy, self.trials), self.policy.parsed, self._spread
        chosen = rank(self.trial)
        return tuple(t for t in self.accepted if rank(t) < chosen and not spread.likely(limits, t))

    @cached_property
    def margins(self) -> tuple[LimitMargin, ...]:
        """Each limit, how near it is, and whether it binds."""
        limits = self.policy.parsed
        margins = []
        for place, limit in enumerate(limits) if self.trial else ():
            assert self.trial is not None
            without = self._best(self.policy, (*limits[:place], *limits[place + 1 :]))
            margins.append(LimitMargin(limit, scored(self.trial, limit).value, without is not self.trial))
        return tuple(margins)

    @cached_property
    def steps(self) -> tuple[FrontierStep, ...]:
        """The nearest trials on the frontier with more utility, then those with less risk."""
        pair = main_pair(self.trials[0], self.policy)
        if self.trial is None or pair is None:
            return ()
        at, others = self.trial, [t for t in frontier(self.trials) if t is not self.trial]
        neighbours: list[Trial] = []
        for name in (pair[1], pair[0]):
            ahead = [t for t in others if t.scores[name].gap(at.scores[name]) < 0 and t not in neighbours]
            neighbours += sorted(ahead, key=lambda t: loss(t.scores[name]), reverse=True)[:MAX_NEXT_STEPS]
        return tuple(FrontierStep(t, _changes(t, at, pair), self.broken(t)) for t in neighbours)

    def broken(self, trial: Trial) -> tuple[Limit, ...]:
        """The limits a trial breaks."""
        return tuple(limit for limit in self.policy.parsed if not limit.holds(scored(trial, limit)))

    @cached_property
    def refused(self) -> tuple[tuple[Limit, int, int], ...]:
        """For each limit, the trials it refused, and those that only it refused."""
        faults = [self.broken(trial) for trial in self.trials]
        return tuple(
            (limit, sum(limit in broken for broken in faults), sum(broken == (limit,) for broken in faults))
            for limit in self.policy.parsed
        )

    @cached_property
    def ties(self) -> tuple[Trial, ...]:
        """Accepted trials that are within error of the chosen one on what the choice goes by first."""
        if self.trial is None:
            return ()
        first = _first(self.trial, self.policy)
        mine = self.trial.scores[first]
        return tuple(t for t in self.accepted if t is not self.trial and t.scores[first].gap(mine) == 0)

    @cached_property
    def moves(self) -> tuple[LimitMove, ...]:
        """For each limit that alone refuses some trial, how far it would have to be moved for the nearest to pass."""
        moves = []
        for limit in self.policy.parsed:
            alone = [trial for trial in self.trials if self.broken(trial) == (limit,)]
            if alone:
                near = min(alone, key=lambda trial, limit=limit: limit.shortfall(scored(trial, limit)))  # type: ignore[misc]
                moves.append(LimitMove(limit, scored(near, limit).value, near))
        return tuple(moves)

    @property
    def nearest(self) -> Trial:
        """The trial that is least outside the limits, added up."""
        return min(self.trials, key=lambda trial: shortfall(self.policy, trial))

    @cached_property
    def shifts(self) -> tuple[Shift, ...]:
        """The choice with each limit moved by a tenth, for the other side, by each utility alone, and draw by draw."""
        return (*self._by_limits(), *self._by_weights(), *self._by_draws())

    @property
    def firm(self) -> float:
        """The share of these questions to which the answer is the same; 1 where there is none."""
        return sum(shift.same for shift in self.shifts) / len(self.shifts) if self.shifts else 1.0

    def _by_limits(self) -> Iterator[Shift]:
        limits = self.policy.parsed
        for place, limit in enumerate(limits):
            for share in (-LIMIT_SHIFT, LIMIT_SHIFT):
                shifted = replace(limit, bound=limit.bound * (1 + share))
                if abs(shifted.bound) > 1 >= abs(limit.bound) or not limit.bound:
                    continue
                then = self._best(self.policy, (*limits[:place], shifted, *limits[place + 1 :]))
                yield self._shift(f"With {shifted.words()} instead of {limit.bound:g}", then)

    def _by_weights(self) -> Iterator[Shift]:
        other: Side = "risk" if self.policy.prefer == "utility" else "utility"
        turned = replace(self.policy, prefer=other)
        yield self._shift(f"With {other} favoured inside the limits", self._best(turned, self.policy.parsed))
        useful = [score.name for score in self.trials[0].scores if score.side == "utility"]
        for name in useful if len(useful) > 1 else ():
            alone = replace(self.policy, prefer="utility", weights={name: 1.0})
            yield self._shift(f"By {title(name)} alone", self._best(alone, self.policy.parsed))

    def _by_draws(self) -> Iterator[Shift]:
        number = max(len(trial.draws) for trial in self.trials)
        for draw in range(number):
            single_draws = [
                replace(t, scores=t.draws[draw], draws=()) if len(t.draws) > draw else t for t in self.trials
            ]
            then = best(single_draws, self.policy, self.policy.parsed)
            place = next((i for i, trial in enumerate(single_draws) if trial is then), None)
            yield self._shift(f"By draw {draw + 1} of {number} alone", None if place is None else self.trials[place])

    def _shift(self, question: str, then: Trial | None) -> Shift:
        return Shift(question, then, then is self.trial)

    def words(self) -> tuple[str, ...]:
        """The reasons, a sentence each."""
        if self.trial is None:
            return (refusal(self.trials, self.policy),)
        many = f"{len(self.accepted):,} of {len(self.trials):,} trials meet every limit"
        favoured = "most utility" if self.policy.prefer == "utility" else "least risk"
        reasons = [f"Chosen: {self.trial.words()}. {many}; of these it has the {favoured}."]
        if self.passed_over:
            reasons.append(
                f"{len(self.passed_over):,} would be better and meet the limits on average, "
                "but a fresh draw of them may well not: they are passed over."
            )
        reasons += [margin.words() for margin in self.margins]
        reasons += [f"Next step: {step.words()}" for step in self.steps]
        reasons += [
            f"{limit.words()} refused {all_:,} trials, {only:,} of them alone." for limit, all_, only in self.refused
        ]
        if self.ties:
            reasons.append(f"Tied within error: {listed([trial.words() for trial in self.ties[:MAX_NEXT_STEPS]])}.")
        changed = [shift.words() for shift in self.shifts if not shift.same]
        firmness = f"The choice stays the same in {len(self.shifts) - len(changed)} of {len(self.shifts)} variations."
        return (*reasons, firmness, *changed)

    def to_plain(self) -> dict[str, Any]:
        """As plain data, for files: internal, as it has scores of all trials that matter."""
        return {
            "chosen": self.trial.words() if self.trial else None,
            "tried": len(self.trials),
            "accepted": len(self.accepted),
            "passed_over": [trial.words() for trial in self.passed_over],
            "limits": [
                {"limit": m.limit.words(), "value": m.value, "room": m.room, "binds": m.binds} for m in self.margins
            ],
            "steps": [
                {
                    "trial": step.trial.words(),
                    "changes": {score.name: change for score, change in step.changes},
                    "breaks": [limit.words() for limit in step.breaks],
                }
                for step in self.steps
            ],
            "refused": [
                {"limit": limit.words(), "trials": every, "alone": only} for limit, every, only in self.refused
            ],
            "moves": [{"limit": m.limit.words(), "to": m.bound, "trial": m.trial.words()} for m in self.moves],
            "ties": [trial.words() for trial in self.ties],
            "shifts": [
                {"question": s.question, "same": s.same, "chosen": s.trial.words() if s.trial else None}
                for s in self.shifts
            ],
            "words": list(self.words()),
        }


def choice(trials: Sequence[Trial], policy: Policy) -> Choice:
    """The choice a policy makes among trials, with its reasons."""
    return Choice(tuple(trials), policy)


def refusal(trials: Sequence[Trial], policy: Policy) -> str:
    """Why no trial could be chosen: what the nearest breaks, and what each limit would have to be for one to pass."""
    decision = choice(trials, policy)
    near = decision.nearest
    faults = [_fault(limit, scored(near, limit)) for limit in decision.broken(near)]
    many = f"None of {len(trials):,} candidates meets" if len(trials) > 1 else "The release does not meet"
    short = len(near.words()) <= MAX_QUOTED
    nearest = f". Nearest is {near.words()!r}, which breaks:" if short else ": the nearest breaks"
    reasons = f"{many} the limits{nearest} {'; '.join(faults)}.{_cost(near)}"
    moves = "; ".join(move.words() for move in decision.moves)
    if not moves:
        decide = "decide which columns nobody knows or needs, or more than one would have to be moved"
        return f"{reasons} No candidate breaks one limit alone: {decide}."
    return f"{reasons} {moves[0].upper()}{moves[1:]}."


def _cost(near: Trial) -> str:
    """What users would keep of the nearest release, and what it would cost them, as far as that was measured."""
    uses = [score for score in near.scores if score.side == "utility" and isfinite(score.value)]
    gains = [score for score in uses if score.better == "higher" and not (is_share(score.unit) and score.value >= 1)]
    costs = [score for score in uses if score.better == "lower" and score.value >= MIN_COST]
    parts = [
        f"{verb} {', '.join(map(_score_in_words, scores))}"
        for verb, scores in (("keep", gains), ("cost", costs))
        if scores
    ]
    return f" It would {'; and '.join(parts)}." if parts else ""


def _score_in_words(score: Score) -> str:
    unit = "" if is_share(score.unit) or not score.unit else f" {score.unit.partition(',')[0].partition(' per ')[0]}"
    name = title(score.name)
    return f"{name[0].lower()}{name[1:]} {value_text(score.value, score.unit)}{unit}".replace("\xa0", " ")


def _first(trial: Trial, policy: Policy) -> str:
    """The score that the choice goes by first."""
    limited = {scored(trial, limit).name for limit in policy.parsed}
    ranked = sorted(trial.scores, key=lambda s: (s.side != policy.prefer, s.name not in limited))
    return ranked[0].name


def _changes(trial: Trial, at: Trial, pair: tuple[str, str]) -> tuple[tuple[Score, float], ...]:
    names = [name for name in pair[::-1] if trial.scores[name].value != at.scores[name].value]
    return tuple((trial.scores[name], trial.scores[name].value - at.scores[name].value) for name in names)


def _change_in_words(change: tuple[Score, float]) -> tuple[str, bool]:
    """A change in words, and whether it is for the better."""
    score, by = change
    name = score.name.replace("_", " ")
    unit = "" if is_share(score.unit) or not score.unit else f" {score.unit.partition(' per ')[0]}"
    way = "more" if by > 0 else "less"
    text = f"{value_text(abs(by), score.unit)}{unit} {way} {name}".replace("\xa0", " ")
    return text, (by < 0) == (score.better == "lower")


def _fault(limit: Limit, score: Score) -> str:
    why = f" ({limit.reason})" if limit.reason else ""
    name, value, bound = limit.in_sentence(score)
    return f"{name} {value}, limit {bound}{why}"


def _percent(share: float) -> str:
    return value_text(share, "share").replace("\xa0", " ")
