"""Expected uniques if the sizes of subclasses vary (gamma)."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from equipoise.beta_binomial.posterior import Posterior
from equipoise.ground.arrays import Floats, Numbers
from equipoise.methods.parameters import above


@dataclass(frozen=True, slots=True)
class GammaUniques:
    """Expected uniques among the sampled when S subclasses have gamma sizes: y / (1 + Y/(a S))^(a + 1).

    Subclass shares follow Gamma(a, a S), their mean is 1/S. The smaller a, the more they differ and the more uniques
    there are; as a grows the loss becomes y exp(-Y/S), that of Uniques.
    Source: Zaslavsky and Horton (1998), section 3.
    Misleads when a is guessed: for large Y the loss falls like a power, and a decides how fast.
    Cost: a sum of N - n terms for each kind of cell, by quadrature above 1,024 (a fifth of a millisecond each).

    >>> round(float(GammaUniques(10, 1)(1, 10)), 3), round(float(GammaUniques(10, 1e9)(1, 10)), 3)
    (0.25, 0.368)
    """

    counts_uniques: ClassVar[bool] = True
    S: float
    a: float = 1.0

    def __post_init__(self) -> None:
        above(self.S, "S")
        above(self.a, "a")

    def __call__(self, y: Numbers, Y: Numbers, n: Numbers = None, N: Numbers = None) -> Any:  # noqa: N803
        return y * np.exp(-(self.a + 1) * np.log1p(Y / (self.a * self.S)))

    def expected(self, cells: Posterior) -> Floats:
        return cells.expect(self, smooth=True)

    def bend(self, y: Numbers, Y: Numbers, n: Numbers = None, N: Numbers = None) -> Any:  # noqa: N803
        """Second derivative in Y."""
        scale = self.a * self.S
        return self(y, Y) * (self.a + 1) * (self.a + 2) / (scale + Y) ** 2
