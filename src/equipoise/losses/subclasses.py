"""Expected uniques if the sizes of the identifiable subclasses are known."""

from dataclasses import dataclass
from math import isfinite
from typing import Any, ClassVar

import numpy as np

from equipoise.beta_binomial.posterior import Posterior
from equipoise.ground.arrays import Floats, Numbers
from equipoise.ground.errors import ParameterError
from equipoise.methods.parameters import check_fields


@dataclass(frozen=True, slots=True)
class Subclasses:
    """Expected uniques among the sampled, from the shares of the subclasses: y sum_s pi_s exp(-Y pi_s).

    The shares pi_s are given, or counted from the file's own `keys` within the class (weighted where there are
    weights): every combination of keys that occurs is an identifiable subclass.
    Source: Zaslavsky and Horton (1998), eq. (1); the "equivalence classes" of Greenberg and Zayatz (1992).
    Misleads when shares are counted in a small sample: subclasses that were not sampled are missing, and rare ones that
    were look commoner than they are. Cost: one integral for each kind of cell and different share.

    >>> even = Subclasses((0.1,) * 10)
    >>> round(float(even(1, 3)), 3)
    0.741
    """

    counts_uniques: ClassVar[bool] = True
    shares: tuple[float, ...] | None = None
    keys: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if (self.shares is None) == (self.keys is None):
            raise ParameterError("Give either the shares of the subclasses or the keys to count them by.")
        check_fields(self)
        if self.shares is not None:
            object.__setattr__(self, "shares", _checked_shares(self.shares))

    def __call__(self, y: Numbers, Y: Numbers, n: Numbers = None, N: Numbers = None) -> Any:  # noqa: N803
        Y = np.asarray(Y, dtype=np.float64)  # noqa: N806
        return y * sum(times * share * np.exp(-Y * share) for share, times in self.sizes())

    def expected(self, cells: Posterior) -> Floats:
        alone = sum((times * share * cells.decay(share) for share, times in self.sizes()), start=np.zeros(len(cells)))
        return np.asarray(cells.y * alone)

    def bend(self, y: Numbers, Y: Numbers, n: Numbers = None, N: Numbers = None) -> Any:  # noqa: N803
        """Second derivative in Y."""
        Y = np.asarray(Y, dtype=np.float64)  # noqa: N806
        return y * sum(times * share**3 * np.exp(-Y * share) for share, times in self.sizes())

    def sizes(self) -> list[tuple[float, int]]:
        """Distinct shares, and the number of subclasses with each."""
        if self.shares is None:
            raise ParameterError("The shares of these subclasses are counted from records: give Records as the source.")
        share, times = np.unique(self.shares, return_counts=True)
        return list(zip(share.tolist(), times.tolist(), strict=True))


def _checked_shares(shares: Any) -> tuple[float, ...]:
    """Shares as floats; refused if they are not shares."""
    values = tuple(shares) if isinstance(shares, tuple | list | np.ndarray) else ()
    if not values or not all(isinstance(s, int | float | np.number) and isfinite(s) and 0 < s <= 1 for s in values):
        raise ParameterError("The shares of subclasses must be numbers above 0 and at most 1.")
    if sum(values) > 1 + 1e-6:
        raise ParameterError("The shares of subclasses add up to more than 1.")
    return tuple(float(s) for s in values)
