"""Beta-likeness: classes in which a sensitive value is too much more frequent than in the file."""

from dataclasses import dataclass

import numpy as np

from equipoise.data.equivalence_classes import Split
from equipoise.ground.arrays import Integers
from equipoise.methods.parameters import above
from equipoise.methods.sensitive_values import TIE_TOLERANCE, Attribute, Others, check


@dataclass(frozen=True, slots=True)
class BetaLikeness(Attribute):
    """A class is unsafe when a sensitive value is more frequent there than in the file by more than the share `beta`.

    Safe iff (p_i - q_i) / q_i <= beta for every value i, p its share in the class and q in the file; `enhanced` takes
    min(beta, - ln q_i) for beta, so that frequent values are bounded too. Rare values may become rarer: an intruder
    learns less from that. Coarsening: classes that are all safe make a safe one.

    Source: Cao and Karras (2012), *Publishing microdata with a robust privacy guarantee*.
    Misleads when the absence of a value is what must not be known: see DeltaDisclosure.
    Cost: O(cells).

    >>> ill = eq.Cells.of(pl.DataFrame({"town": ["a", "a", "b"], "ill": ["flu", "gout", "flu"], "n": [2, 2, 4]}))
    >>> BetaLikeness("ill", 0.5, enhanced=False).flag(ill).to_list()
    [True, True, False]
    """

    sensitive: tuple[str, ...]
    beta: float = 1.0
    enhanced: bool = True
    others: Others = "apart"

    def __post_init__(self) -> None:
        check(self)
        above(self.beta, "beta", 0)

    def within(self, split: Split) -> Integers:
        whole = split.whole[split.codes]
        gain = split.shares / np.maximum(whole, 1e-300) - 1
        most = np.minimum(self.beta, -np.log(np.maximum(whole, 1e-300))) if self.enhanced else self.beta
        return split.any((split.n > 0) & (gain > most + TIE_TOLERANCE))
