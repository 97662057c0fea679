"""Loss below a minimum population of a cell."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.beta_binomial.posterior import Posterior
from equipoise.ground.arrays import Floats, Numbers
from equipoise.methods.parameters import above


@dataclass(frozen=True, slots=True)
class Threshold:
    """Loss of 1 if fewer than `minimum` people are in the cell's population, else 0: the risk is P(Y < minimum).

    "Publish if Y is at least a minimum" is a fair rule, that of the Netherlands. As a loss it is not sensible: any Y
    below the minimum is equally dangerous and any Y above it harmless. The loss is not convex.
    Source: Pannekoek and de Waal (1998); the warning, Zaslavsky and Horton (1998), section 3.
    Misleads when cells lie far below or just above the minimum. Cost: one cumulative probability for each kind of cell.

    >>> Threshold(5)(1, np.array([4, 5])).tolist()
    [1.0, 0.0]
    """

    minimum: float

    def __post_init__(self) -> None:
        above(self.minimum, "minimum")

    def __call__(self, y: Numbers, Y: Numbers, n: Numbers = None, N: Numbers = None) -> Any:  # noqa: N803
        return np.where(np.asarray(Y) < self.minimum, 1.0, 0.0) + 0 * np.asarray(y)

    def expected(self, cells: Posterior) -> Floats:
        few, code = cells.kinds
        return np.asarray(few.at_most(np.ceil(self.minimum) - 1)[code])
