"""Delta-presence: classes that reveal whether somebody of the population is in the file."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.data.equivalence_classes import Split
from equipoise.data.levels import as_text
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import ParameterError, shown
from equipoise.methods.sensitive_values import TIE_TOLERANCE, Attribute, Others


@dataclass(frozen=True, slots=True)
class DeltaPresence(Attribute):
    """A class is unsafe when its share of people who are in the sample is below `low` or above `high`.

    The records are the population; the column `member` marks by `value` who is in the released sample. Safe iff
    low <= members / people <= high, for every class of the population, also one without a member: there low = 0 only
    is safe. Counts of records, also those of MinCount beside it, are of people in the population. Coarsening: classes
    that are all safe make a safe one.

    Source: Nergiz, Atzori and Clifton (2007), *Hiding the presence of individuals from shared databases*.
    Misleads when an intruder's register is not the population that was given.
    Cost: O(cells).

    >>> table = pl.DataFrame({"town": ["a", "a", "b"], "in": [True, False, True], "n": [1, 3, 4]})
    >>> DeltaPresence("in", 0.1, 0.5).flag(eq.Cells.of(table)).to_list()
    [False, False, True]
    """

    member: str
    low: float = 0.0
    high: float = 0.5
    value: str = "true"

    def __post_init__(self) -> None:
        if not all(_share(bound) for bound in (self.low, self.high)) or self.low > self.high:
            raise ParameterError(
                f"low and high must be shares with low <= high, got {shown(self.low)} and {shown(self.high)}."
            )

    @property
    def others(self) -> Others:
        return "apart"

    @property
    def sensitive(self) -> tuple[str, ...]:
        return (self.member,)

    def within(self, split: Split) -> Integers:
        marked = (as_text(split.values) == self.value).fill_null(False).to_numpy()
        share = split.add(split.n * marked[split.codes]) / np.maximum(split.records, 1)
        return (share < self.low - TIE_TOLERANCE) | (share > self.high + TIE_TOLERANCE)


def _share(bound: Any) -> bool:
    return isinstance(bound, int | float) and not isinstance(bound, bool) and 0 <= bound <= 1
