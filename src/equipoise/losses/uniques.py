"""Expected uniques if a class is divided into S equally large subclasses."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from equipoise.beta_binomial.posterior import Posterior
from equipoise.ground.arrays import Floats, Numbers
from equipoise.methods.parameters import above


@dataclass(frozen=True, slots=True)
class Uniques:
    """Expected number of sampled people who are alone in their subclass: y exp(-Y/S), S equal subclasses.

    Each sampled person is the only one of her subclass in the cell with probability (1 - 1/S)^(Y-1), about exp(-Y/S).
    Source: Zaslavsky and Horton (1998), eq. (2), after Bethlehem, Keller and Pannekoek (1990).
    Misleads when subclasses differ in size: small ones hold most uniques, see GammaUniques and Subclasses.
    Cost: one integral for each kind of cell.

    >>> round(float(Uniques(10)(1, 3)), 3)
    0.741
    """

    counts_uniques: ClassVar[bool] = True
    S: float

    def __post_init__(self) -> None:
        above(self.S, "S")

    def __call__(self, y: Numbers, Y: Numbers, n: Numbers = None, N: Numbers = None) -> Any:  # noqa: N803
        return y * np.exp(-Y / self.S)

    def expected(self, cells: Posterior) -> Floats:
        return np.asarray(cells.y * cells.decay(1 / self.S))

    def bend(self, y: Numbers, Y: Numbers, n: Numbers = None, N: Numbers = None) -> Any:  # noqa: N803
        """Second derivative in Y."""
        return y * np.exp(-Y / self.S) / self.S**2
