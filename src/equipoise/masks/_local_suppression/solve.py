"""The blanks of each cell, and whether they are enough."""

from dataclasses import dataclass, replace

import numpy as np

from equipoise.ground.arrays import Integers
from equipoise.masks._local_suppression.exact import own
from equipoise.masks._local_suppression.greedy import shared, wholly
from equipoise.masks._local_suppression.problem import SuppressionProblem
from equipoise.masks._local_suppression.tabu import improve

HELPERS = 200
"""Up to this many records those of large classes are looked at too: blanked, they help others."""


@dataclass(frozen=True, eq=False, repr=False)
class Blanks:
    """Blanks, one for each record that has some: its cell, and the keys blanked as bits.

    `small` records were in classes too small, `short` still are (only where caps forbid more blanks), and `leaning` are
    out of danger by the blanks of others alone: by its own known keys each of them is still in a class too small.
    """

    cells: Integers
    masks: Integers
    small: int
    short: int
    leaning: int
    used: Integers
    cost: float


def blank(cells: SuppressionProblem, alone: bool = False) -> Blanks:
    """Blanks that make every class large enough, as cheap as can be found.

    With `alone` every record is hidden by its own blanks: the optimum. Else blanks of others count, and the cheapest of
    a greedy choice, of wholly blank records and of what a search makes of them is taken. Cost: that of the methods.
    """
    small = cells.short()
    problem, origin, rows = _apart(cells, small)
    needy = rows[: int(cells.n[small].sum())]
    masks = np.zeros(len(problem.n), dtype=np.int64)
    if len(needy):
        masks = own(problem, needy) if alone else _cheapest(problem, needy, rows)
    blanked = np.flatnonzero(masks)
    return Blanks(
        origin[blanked],
        masks[blanked],
        len(needy),
        int((masks[needy] == 0).sum()) if alone else int(problem.lacking(needy, masks).sum()),
        0 if alone else int(problem.exposed(needy, masks[needy]).sum()),
        problem.used(masks),
        problem.cost(masks),
    )


def _apart(cells: SuppressionProblem, small: Integers) -> tuple[SuppressionProblem, Integers, Integers]:
    """Rows of one record for all cells that are too small, and for others that may help them.

    Also the cell that each row is of, and which rows may be changed: those, in this order, come last.
    """
    large = np.setdiff1d(np.arange(len(cells.n)), small, assume_unique=True)
    helping = np.minimum(cells.n[large], max(0, HELPERS - int(cells.n[small].sum())) // max(1, len(large)))
    helping = np.minimum(helping, 2 * (cells.largest - 1))
    alone = np.concatenate([np.repeat(small, cells.n[small]), np.repeat(large, helping)])
    origin = np.concatenate([large, alone])
    n = np.concatenate([cells.n[large] - helping, np.ones(len(alone), dtype=np.int64)])
    return replace(cells, codes=cells.codes[:, origin], n=n), origin, np.arange(len(large), len(origin))


def _cheapest(problem: SuppressionProblem, needy: Integers, rows: Integers) -> Integers:
    """The cheapest of the ways that leave the fewest records short, improved."""
    hidden, empty, groups = own(problem, needy), wholly(problem, needy), shared(problem, needy)
    ways = [(int(problem.lacking(needy, groups).sum()), problem.cost(groups), groups)]
    ways += [(0, problem.cost(hidden), hidden)] if hidden[needy].all() else []
    if (problem.used(empty) <= problem.caps).all():
        ways.append((int(problem.lacking(needy, empty).sum()), problem.cost(empty), empty))
    return improve(problem, min(ways, key=lambda way: way[:2])[2], rows)
