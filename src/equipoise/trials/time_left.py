"""Time left for the remaining trials, estimated from those so far."""

from collections import defaultdict
from dataclasses import dataclass, field
from statistics import fmean

from equipoise.ground.progress import spoken

MIN_TIMED_TRIALS = 3
"""Trials that must have been timed before an estimate is given."""


@dataclass
class Pace:
    """Seconds of each trial by the kind of recipe; what was read from a journal took no time and is not counted.

    >>> pace = Pace()
    >>> for seconds in (2.0, 4.0, 3.0): pace.took("noise", seconds)
    >>> pace.seconds_left({"noise": 10}), pace.words({"noise": 100})
    (30.0, 'about 5 min left')
    """

    workers: int = 1
    spent: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def took(self, kind: str, seconds: float) -> None:
        self.spent[kind].append(seconds)

    @property
    def timed(self) -> int:
        return sum(map(len, self.spent.values()))

    def mean(self, kind: str) -> float:
        """Seconds of a trial of this kind so far; 0 where there is none."""
        return fmean(self.spent[kind]) if self.spent.get(kind) else 0.0

    def seconds_left(self, waiting: dict[str, int]) -> float | None:
        """Seconds that so many trials of each kind will take; a kind not seen yet counts as the slowest seen."""
        if self.timed < MIN_TIMED_TRIALS:
            return None
        means = {kind: fmean(seconds) for kind, seconds in self.spent.items()}
        slowest = max(means.values())
        return sum(number * means.get(kind, slowest) for kind, number in waiting.items()) / self.workers

    def words(self, waiting: dict[str, int]) -> str:
        """The estimate as text; nothing while there is too little to go by, or less than a few seconds left."""
        seconds = self.seconds_left(waiting)
        if seconds is None or seconds < 5:
            return ""
        return f"about {spoken(seconds)} left"
