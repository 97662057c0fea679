"""Loss of not publishing a cell."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from equipoise.beta_binomial.posterior import Posterior
from equipoise.ground.arrays import Floats, Numbers
from equipoise.ground.errors import ParameterError

Unit = Literal["cell", "y", "Y", "n", "N"]


@dataclass(frozen=True, slots=True)
class Silence:
    """Loss of not publishing a cell: 1 for the cell, or its y, Y, n or N.

    y is the number of records concealed, Y the people they stand for, n and N the domain's sample and population.
    Source: Zaslavsky and Horton (1998), section 3.
    Misleads when users need some cells more than others: give a column with their importance instead. Cost: O(cells).

    >>> Silence("y")(3, 10, 30, 100), Silence("cell")(3, 10, 30, 100)
    (3.0, 1.0)
    """

    of: Unit = "y"

    def __post_init__(self) -> None:
        if self.of not in get_args(Unit):
            raise ParameterError(f"A cell's silence costs 'cell', 'y', 'Y', 'n' or 'N', not {self.of!r}.")

    def __call__(self, y: Numbers, Y: Numbers, n: Numbers, N: Numbers) -> Any:  # noqa: N803
        loss = {"cell": 1.0, "y": y, "Y": Y, "n": n, "N": N}[self.of]
        return loss + 0.0 * (y + Y + n + N)

    def expected(self, cells: Posterior) -> Floats:
        return np.asarray(self(cells.y, cells.mean, cells.n, cells.N))

    def bend(self, y: Numbers, Y: Numbers, n: Numbers, N: Numbers) -> Floats:  # noqa: N803
        """Second derivative in Y: 0."""
        return np.zeros(np.broadcast_shapes(*(np.shape(part) for part in (y, Y, n, N))))
