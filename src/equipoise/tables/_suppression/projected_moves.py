"""Moves towards many levels at once without the solver: projections onto the tables that add up.

With y = room * z, room what a cell may both rise and fall by, every z with matrix @ (room * z) = 0 and |z| <= 1 is a
move, and so is -z: it proves demands both ways. Wanted are |z_k| >= share_k = level_k / room_k. Start from random
signs; project t onto the null space, z = t - W A' u with (A W^2 A') u = A W t (conjugate gradients); clip z to a part
of its largest entry, push wanted cells that fall short, and project again. The last projection is exact to rounding;
whoever uses a move checks it. Columns are moves with cells of their own held still, all found together.

Source: alternating projections, Cheney and Goldstein (1959); conjugate gradients, Hestenes and Stiefel (1952).
"""

from typing import Any

import numpy as np

from equipoise.ground.arrays import Floats
from equipoise.tables._suppression.neighbourhood import living

PUSHES, PUSH, ENOUGH, CLIP = 8, 4.0, 1.3, 0.5
"""Projections; multiples of the share that a cell is pushed to, and from which it is left alone; entries kept."""
PUSH_STEPS, PUSH_TOLERANCE = 80, 1e-4
LAST_STEPS, LAST_TOLERANCE = 1_500, 1e-10
"""Steps of conjugate gradients and what may be missed, of the first projections and of the last."""
STEPS_BETWEEN_CHECKS = 10


class ProjectedMoves:
    """Moves of cells with these relations (`matrix`); `work` counts steps times cells times moves."""

    def __init__(self, matrix: Any, seed: int) -> None:
        self.columns = matrix.tocsc()
        self.matrix, self.across, self.size = matrix.tocsr(), matrix.T.tocsr(), abs(matrix).tocsr()
        self.draw, self.work = np.random.default_rng(seed), 0

    def towards(self, level: Floats, room: Floats) -> Floats:
        """A change of every cell (rows) for each column of rooms, towards the levels wanted in it (0: none)."""
        weight = room.copy()
        for number in range(room.shape[1]):
            free = np.flatnonzero(weight[:, number])
            weight[free[~living(self.columns[:, free])], number] = 0.0
        share = np.divide(level, weight, out=np.zeros_like(weight), where=weight > 0)
        share[share > 1] = 0.0
        signs = self.draw.choice([-1.0, 1.0], size=share.shape)
        aim = signs * np.minimum(1.0, PUSH * share)
        for _ in range(PUSHES):
            z = self._projected(weight, aim, PUSH_STEPS, PUSH_TOLERANCE)
            most = np.abs(z).max(axis=0, initial=0.0)
            short = (share > 0) & (np.abs(z) < ENOUGH * share * most)
            way = np.where(np.abs(z) > 0.3 * share * most, np.sign(z), signs)
            aim = np.where(short, way * np.minimum(1.0, PUSH * share) * most, np.clip(z, -CLIP * most, CLIP * most))
        z = self._projected(weight, aim, LAST_STEPS, LAST_TOLERANCE)
        most = np.abs(z).max(axis=0, initial=0.0)
        return weight * np.divide(z, most, out=np.zeros_like(z), where=most > 0)

    def _projected(self, weight: Floats, aim: Floats, steps: int, tolerance: float) -> Floats:
        """The nearest to `aim` in each column that adds up, by conjugate gradients scaled by the diagonal."""
        squares = weight * weight
        scale = self.size @ squares
        scale[scale == 0] = 1.0
        missed = self.matrix @ (weight * aim)
        ends = tolerance * np.abs(missed).max(axis=0, initial=0.0)
        prices = np.zeros_like(missed)
        ahead, price, columns = missed / scale, prices.copy(), np.arange(missed.shape[1])
        gained = (missed * ahead).sum(axis=0)
        least = (0.1 * tolerance) ** 2 * gained
        for number in range(steps):
            if number % STEPS_BETWEEN_CHECKS == 0:
                going = (np.abs(missed).max(axis=0, initial=0.0) > ends) & (gained > least)
                if not going.all():
                    prices[:, columns] = price
                    columns, ends, gained, least = columns[going], ends[going], gained[going], least[going]
                    state = (squares, scale, missed, ahead, price)
                    squares, scale, missed, ahead, price = (part[:, going] for part in state)
                if not len(columns):
                    break
            turned = self.matrix @ (squares * (self.across @ ahead))
            bend = np.einsum("ij,ij->j", ahead, turned)
            step = np.divide(gained, bend, out=np.zeros_like(bend), where=(bend > 0) & (gained > least))
            price += step * ahead
            missed -= step * turned
            scaled = missed / scale
            now = np.einsum("ij,ij->j", missed, scaled)
            ahead = scaled + np.divide(now, gained, out=np.zeros_like(now), where=gained > 0) * ahead
            gained = now
            self.work += squares.size
        prices[:, columns] = price
        return aim - weight * (self.across @ prices)
