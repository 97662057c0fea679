"""What is asked against a contributor who is alone in a cell and knows all cells he is alone in.

To him those cells are published. Every primary that is not his must still move by its level with them held still. Where
not even the whole table allows that (he is in the sensitive cell himself, say, so that to him only the rest of it is
unknown), the level against him is the share `WEAK_LEVEL_SHARE` of the farthest the primary can move when all cells
that may be are suppressed (in a large table: those of a part around it), and nothing where it cannot move at all. A p%
rule has counted what the largest contributors know of their own cell already: this keeps the rest from being known
closely to them, too.
"""

from equipoise.ground.arrays import Booleans, Integers
from equipoise.tables._suppression.cheapest_move import Finder
from equipoise.tables._suppression.problem import MOVE_TOLERANCE, SHORTFALL, Demands

WEAK_LEVEL_SHARE = 0.1
"""Share of the farthest possible move that is asked for where the level is out of reach."""


class Knowers:
    """The level of each demand against each contributor who knows his cells, found when it is asked for."""

    def __init__(self, demands: Demands, finder: Finder) -> None:
        self.demands, self.finder = demands, finder
        self.reached: dict[tuple[int, int], float] = {}

    def level(self, demand: int, knower: int, free: Booleans) -> float:
        """The full level where some pattern gives it, else a share of what is possible, or 0. A few programs."""
        if (demand, knower) not in self.reached:
            self.reached[demand, knower] = self._level(demand, self.demands.cells_of[knower], free)
        return self.reached[demand, knower]

    def _level(self, demand: int, still: Integers, free: Booleans) -> float:
        cell, sign = int(self.demands.cell[demand]), int(self.demands.sign[demand])
        level = float(self.demands.level[demand])
        far = self.finder.farthest(cell, sign, level, free, still)
        if far >= level * (1 - SHORTFALL):
            return level
        return WEAK_LEVEL_SHARE * far if far > MOVE_TOLERANCE * level / WEAK_LEVEL_SHARE else 0.0

    def weaker(self) -> list[int]:
        """Cells that are guarded less than to their level against somebody."""
        short = {d for (d, _), level in self.reached.items() if level < float(self.demands.level[d])}
        return sorted({int(self.demands.cell[d]) for d in short})
