"""Noise for amounts by cell keys: units of noise in proportion to the largest contributions, looked up in a ptable.

The first contribution x_1 gets the unit d_1 = x_1 m(x_1), the j-th d_j = e_j x_j m(x_j). With X the amount so far,
component j adds sign(X) d_j v_j, where v_j is the change that the j-th key gets in the ptable at a = |X| / d_j.
"""

from dataclasses import dataclass

import numpy as np

from equipoise.ground.arrays import Booleans, Floats
from equipoise.tables._perturbation_table import Ptable


@dataclass(frozen=True)
class Flex:
    """The flex function m: share `small` of a contribution below `point`, falling to `large` far above it.

    m(x) = large (1 + (small x - large z) / (large z) (2 z / (z + x))^q) from z = `point` on; m(z) = small. `epsilons`
    scale the second and further contributions.

    >>> flex = Flex(0.3, 0.03, 1000.0, 3.0)
    >>> flex.share(np.array([10.0, 1000.0, 1e9])).round(4).tolist()
    [0.3, 0.3, 0.03]
    """

    small: float
    large: float
    point: float
    q: float
    epsilons: tuple[float, ...] = (1.0,)

    def share(self, x: Floats) -> Floats:
        z = self.point
        if not z:
            return np.full(len(x), self.small)
        far = np.maximum(x, z)
        falling = 1 + (self.small * far - self.large * z) / (self.large * z) * (2 * z / (z + far)) ** self.q
        return np.where(x < z, self.small, self.large * falling)


@dataclass(frozen=True, eq=False)
class AmountNoise:
    """The law of the noise: `all` cells or `odd` ones beside, `little` for contributions below the separation point.

    That point is z = m / (small sqrt(sum of squared epsilons)), with m the standard deviation of the last row of the
    table for little ones: there both kinds of noise have the same variance.
    """

    flex: Flex
    all: Ptable
    odd: Ptable | None = None
    little: Ptable | None = None

    @property
    def separation(self) -> float:
        if self.little is None:
            return 0.0
        deviation = float(np.sqrt(self.little.variance(np.array([self.little.largest]))[0]))
        return deviation / (self.flex.small * float(np.linalg.norm(self.flex.epsilons)))

    def units(self, contributions: Floats) -> tuple[Floats, Booleans]:
        """The unit of noise of each contribution (a column for each rank), and where it is little."""
        sizes = np.abs(contributions)
        little = sizes < self.separation
        parts = [self.flex.share(sizes[:, j]) * sizes[:, j] * e for j, e in enumerate(self.flex.epsilons)]
        later = np.arange(sizes.shape[1]) > 0
        return np.where(little, np.where(later, 0.0, 1.0), np.stack(parts, 1)), little

    def farthest(self, values: Floats, contributions: Floats, extra: Floats) -> Floats:
        """The most by which each amount may be changed."""
        units, little = self.units(contributions)
        ends = [float(np.abs(law.v).max()) for law in (self.all, self.odd, self.little) if law is not None]
        most = np.where(little, ends[-1], max(ends[: 1 + (self.odd is not None)]))
        most[:, 0] += np.where(little[:, 0], 0.0, extra)
        cut = np.abs(values) < units[:, 0]
        return np.where(values != 0, (units * most).sum(1) + np.where(cut, ends[-1], 0.0), 0.0)

    def changed(self, values: Floats, contributions: Floats, keys: Floats, odd: Booleans, extra: Floats) -> Floats:
        """The amounts with their noise; `keys` has a column for each component, `extra` widens the first."""
        amounts = values.copy()
        units, little = self.units(contributions)
        for j in range(contributions.shape[1]):
            amounts += self._component(j, amounts, units[:, j], little[:, j], keys[:, j], odd, extra)
        return amounts

    def _component(
        self, j: int, amounts: Floats, unit: Floats, little: Booleans, key: Floats, odd: Booleans, extra: Floats
    ) -> Floats:
        """What the j-th contribution adds; a unit larger than what is left is cut to it."""
        left = np.abs(amounts)
        cut = left < unit
        shrunk = cut & (left < self.separation * self.flex.small * self.flex.epsilons[j])
        unit = np.where(shrunk, 0.0 if j else 1.0, np.where(cut, left, unit))
        little = little | shrunk
        held = np.divide(left, unit, out=np.zeros(len(left)), where=unit > 0)
        v = self.all.interpolated(held, key)
        if self.odd is not None:
            v = np.where(odd, self.odd.interpolated(held, key), v)
        if self.little is not None:
            v = np.where(little, self.little.interpolated(held, key), v)
        sign = np.where(v == 0, np.where(key < 0.5, -1.0, 1.0), np.sign(v))
        wider = np.where(little | (j > 0), 0.0, extra)
        move = np.maximum(unit * sign * (wider + np.abs(v)), -left)
        return np.where(left > 0, np.where(amounts < 0, -move, move), 0.0)
