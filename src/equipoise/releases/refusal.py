"""Refusal by a policy, with all trials, so that the officer sees which limit would have to give."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from equipoise.ground.errors import RefusedError
from equipoise.policies.policy import Limit, Policy, scored
from equipoise.search.explain_choice import Choice, LimitMove
from equipoise.search.frontier import Frontier, frontier
from equipoise.search.ranking import ahead_of, inside
from equipoise.trials.trial import LeftOut, Trial, Trials


@dataclass(frozen=True)
class Refused:
    """A policy that let nothing out: what was tried, the trial nearest to its limits, and the reason in words.

    `fresh` says that `near` is the draw that was to be released; else it is one of the trials, the best inside the
    limits where the reason is another one. `table` says that the trials are of a table. Internal: it has all scores.
    """

    title: str
    policy: Policy
    trials: tuple[Trial, ...] = field(repr=False)
    near: Trial
    words: str
    fresh: bool = False
    original: Trial | None = field(default=None, repr=False)
    nothing: Trial | None = field(default=None, repr=False)
    left_out: tuple[LeftOut, ...] = field(default=(), repr=False)
    table: bool = False

    @property
    def searched(self) -> bool:
        """Whether no trial at all meets the limits."""
        return not self.fresh and not inside(self.policy, self.near)

    @cached_property
    def choice(self) -> Choice:
        return Choice(self.trials, self.policy)

    @cached_property
    def frontier(self) -> Frontier:
        return frontier(self.trials)

    @cached_property
    def broken(self) -> tuple[Limit, ...]:
        """The limits that the nearest trial breaks."""
        return tuple(limit for limit in self.policy.parsed if not limit.holds(scored(self.near, limit)))

    def move(self, limit: Limit) -> LimitMove | None:
        """How far this limit alone would have to be moved for a trial to pass; None where that is not enough."""
        return next((move for move in self.choice.moves if move.limit == limit), None)


def refused_of(
    error: RefusedError,
    trials: Sequence[Trial],
    policy: Policy,
    *,
    title: str,
    ends: tuple[Trial | None, Trial | None] = (None, None),
    table: bool = False,
) -> Refused:
    """What an error refused, from what was tried; `ends` are the original and no data at all."""
    fresh = error.about if isinstance(error.about, Trial) else None
    left_out = trials.left_out if isinstance(trials, Trials) else ()
    near = fresh or ahead_of(trials, policy)
    return Refused(title, policy, tuple(trials), near, str(error), fresh is not None, *ends, left_out, table)
