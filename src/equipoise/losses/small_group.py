"""Loss of disclosure about a small group, whoever is in the sample."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.beta_binomial.posterior import Posterior
from equipoise.ground.arrays import Floats, Numbers
from equipoise.methods.parameters import above


@dataclass(frozen=True, slots=True)
class SmallGroup:
    """Loss of disclosure about a small group without naming anybody: exp(-Y/S), not multiplied by y.

    A published mean says something about every member of a group of Y, sampled or not, and more if Y is smaller. A cell
    with y = 0 has this loss too: where n is near N its zero is a disclosure.
    Source: Zaslavsky and Horton (1998), section 3, after Duncan and Lambert (1986).
    Misleads when single records are released: the loss does not grow with the number of records.
    Cost: one integral for each kind of cell.

    >>> round(float(SmallGroup(10)(0, 3)), 3)
    0.741
    """

    S: float

    def __post_init__(self) -> None:
        above(self.S, "S")

    def __call__(self, y: Numbers, Y: Numbers, n: Numbers = None, N: Numbers = None) -> Any:  # noqa: N803
        return np.exp(-Y / self.S) + 0 * y

    def expected(self, cells: Posterior) -> Floats:
        return cells.decay(1 / self.S)

    def bend(self, y: Numbers, Y: Numbers, n: Numbers = None, N: Numbers = None) -> Any:  # noqa: N803
        """Second derivative in Y."""
        return np.exp(-Y / self.S) / self.S**2 + 0 * y
