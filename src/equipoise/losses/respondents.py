"""Loss of disclosure to an intruder who knows who responded."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.beta_binomial.posterior import Posterior
from equipoise.ground.arrays import Floats, Numbers
from equipoise.methods.parameters import above


@dataclass(frozen=True, slots=True)
class Respondents:
    """Loss of disclosure to an intruder who knows who responded: exp(-y/S), and 0 where nobody did.

    It falls with the number y of respondents in the cell; the population does not protect them.
    Source: Zaslavsky and Horton (1998), sections 3 and 4, second alternative (printed -exp(y/10), a misprint).
    Misleads when the sample is confidential: cells of equal y are tied, whatever their population. Cost: O(cells).

    >>> Respondents(10)(np.array([0, 10]), 99).round(3).tolist()
    [0.0, 0.368]
    """

    S: float

    def __post_init__(self) -> None:
        above(self.S, "S")

    def __call__(self, y: Numbers, Y: Numbers, n: Numbers = None, N: Numbers = None) -> Any:  # noqa: N803
        return np.where(np.asarray(y) > 0, np.exp(-np.asarray(y) / self.S), 0.0) + 0 * np.asarray(Y)

    def expected(self, cells: Posterior) -> Floats:
        return np.asarray(self(cells.y, 0.0))

    def bend(self, y: Numbers, Y: Numbers, n: Numbers = None, N: Numbers = None) -> Any:  # noqa: N803
        """Second derivative in Y: 0."""
        return 0.0 * np.asarray(y) + 0.0 * np.asarray(Y)
