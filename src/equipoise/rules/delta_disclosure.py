"""Delta-disclosure privacy: classes in which a sensitive value is too much more or less frequent than in the file."""

from dataclasses import dataclass

import numpy as np

from equipoise.data.equivalence_classes import Split
from equipoise.ground.arrays import Integers
from equipoise.methods.parameters import above
from equipoise.methods.sensitive_values import TIE_TOLERANCE, Attribute, Others, check


@dataclass(frozen=True, slots=True)
class DeltaDisclosure(Attribute):
    """A class is unsafe when the share of a sensitive value there is not within a factor 2^`delta` of that in the file.

    Safe iff |log2(p_i / q_i)| < delta for every value i of the file, p its share in the class and q in the file. A
    value that is absent from a class has p = 0: the class is unsafe, since it tells who does not have the value.
    Coarsening: classes that are all safe make a safe one.

    Source: Brickell and Shmatikov (2008), *The cost of privacy*; logarithm to base 2 as in ARX, which
    skips absent values.
    Misleads when values are rare: no small class can hold all of them, so only coarse files pass.
    Cost: O(cells).

    >>> ill = eq.Cells.of(pl.DataFrame({"town": ["a", "a", "b"], "ill": ["flu", "gout", "flu"], "n": [2, 2, 4]}))
    >>> DeltaDisclosure("ill", 2).flag(ill).to_list()
    [False, False, True]
    """

    sensitive: tuple[str, ...]
    delta: float = 1.0
    others: Others = "apart"

    def __post_init__(self) -> None:
        check(self)
        above(self.delta, "delta", 0)

    def within(self, split: Split) -> Integers:
        occupied = split.n > 0
        odds = np.zeros(len(split.n))
        odds[occupied] = np.abs(np.log2(split.shares[occupied] / split.whole[split.codes[occupied]]))
        absent = split.add(occupied.astype(np.float64)) < (split.whole > 0).sum()
        return split.any(odds > self.delta - TIE_TOLERANCE) | absent
