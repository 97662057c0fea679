"""A floor on the population of a cell."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.beta_binomial.posterior import Posterior, positive
from equipoise.ground.arrays import Floats


@dataclass(frozen=True, slots=True)
class Threshold:
    """One where fewer than `minimum` people are in the cell's population, else nothing: the risk is P(Y < minimum).

    "Publish where Y is at least a floor" is a fair rule, the rule of the Netherlands. As a loss it is not sensible: it
    says that any Y below the floor is equally dangerous and one above it harmless. The loss is not convex.
    Source: Pannekoek and de Waal (1998); the warning, Zaslavsky and Horton (1998), section 3.
    Misleads when cells lie far below or just above the floor. Cost: one cumulative probability for each kind of cell.

    >>> Threshold(5)(1, np.array([4, 5])).tolist()
    [1.0, 0.0]
    """

    minimum: float

    def __post_init__(self) -> None:
        positive(self.minimum, "minimum")

    def __call__(self, y: Any, Y: Any, n: Any = None, N: Any = None) -> Any:  # noqa: N803
        return np.where(np.asarray(Y) < self.minimum, 1.0, 0.0) + 0 * np.asarray(y)

    def expected(self, cells: Posterior) -> Floats:
        few, code = cells.kinds
        loss: Floats = few.at_most(np.ceil(self.minimum) - 1)[code]
        return loss
