"""Sums and sums of squares together: what else must be suppressed so that means and deviations leave sums uncertain.

For each inner cell of n contributors with sum S and sum of squares Q, whatever they are: S^2 / n <= Q <= S^2 (the right
side where nothing is negative). A sum stays uncertain by its level when sums and squares can move together within that,
only in suppressed cells and so that all relations hold. Two cells of one contributor each in a row cannot: two numbers
follow from their sum and their sum of squares, though neither table alone gives them.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sparse

from equipoise.data.cells import gross, may_be_negative
from equipoise.data.tables.additivity import Additive
from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import additive, holds
from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.ground.errors import EngineError, InfeasibleError
from equipoise.ground.progress import Progress, report
from equipoise.ground.solver import Program

NO_CELLS: Integers = np.zeros(0, dtype=np.int64)
MAX_MOMENT_CELLS = 5_000
"""Cells up to which sums and squares are protected together."""
ROOM = 0.9
"""Share of the largest move of a sum that leaves its squares possible, to which other cells are held."""
TOLERANCE = 1e-6
"""Share of a typical value within which a move is the solver's rounding."""


def protect_moments(
    sums: Table, squares: Table, hidden: Booleans, below: Floats, above: Floats, progress: Progress | None = None
) -> Booleans:
    """The suppressed cells with what it takes that every sum can be its levels `below` and `above` as squares allow.

    The moves of other cells are held to a part of their room in which a line stands for each side (the chord of S^2 / n
    and the tangent of S^2): what is found is possible, though more may be. Each is checked without the solver. Cost:
    one linear program in four times the cells for each level that no earlier answer proves.
    """
    problem, hidden = _Moments(sums, squares), hidden.copy()
    wanted = [(int(cell), sign, level[cell]) for sign, level in ((1, above), (-1, below)) for cell in _largest(level)]
    moves: list[Floats] = []
    for number, (cell, sign, level) in enumerate(wanted):
        report(progress, number, len(wanted), "protecting sums and squares together")
        if any(sign * move[cell] >= level * (1 - TOLERANCE) for move in moves):
            continue
        move, touched = problem.move(cell, sign, float(level), hidden)
        moves.append(move)
        hidden |= touched
    return hidden


def _largest(level: Floats) -> Integers:
    cells = np.flatnonzero(level > 0)
    return cells[np.argsort(-level[cells], kind="stable")]


@dataclass(frozen=True, eq=False)
class _Moments:
    """Moves of sums y and of squares z in units of a typical sum: columns y+, y-, z+, z-, and two slacks for each inner
    cell that are let go for the one that is asked about."""

    sums: Table
    squares: Table

    @cached_property
    def unit(self) -> float:
        size = gross(self.sums)[self.sums.inner & (self.sums.n > 0)]
        return float(np.median(size)) or 1.0 if len(size) else 1.0

    @cached_property
    def inner(self) -> Integers:
        return np.flatnonzero(self.sums.inner & (self.sums.n > 0))

    @cached_property
    def additive(self) -> Additive:
        return additive(self.sums)

    @cached_property
    def inside(self) -> sparse.csr_array:
        """Cells by inner cells."""
        return sparse.csr_array(holds(self.sums))

    @cached_property
    def parts(self) -> tuple[Floats, Floats, Floats]:
        """Sum, squares and count of each cell."""
        return self.sums.numbers("value") / self.unit, self.squares.numbers("value") / self.unit**2, self.sums.total

    @cached_property
    def capped(self) -> Booleans:
        """Cells whose squares are at most the square of their sum."""
        return ~may_be_negative(self.sums) & (self.sums.total == self.sums.n)

    @cached_property
    def room(self) -> Floats:
        """How far the sum of each inner cell may move both ways."""
        s, q, n = (part[self.inner] for part in self.parts)
        return ROOM * np.sqrt(np.maximum(n * q - s**2, 0.0))

    @cached_property
    def program(self) -> Program:
        cells, many = len(self.sums), len(self.inner)
        relations, nothing = self.additive.base, None
        place = sparse.csr_array((np.ones(many), (np.arange(many), self.inner)), shape=(many, cells))
        s, q, n = (part[self.inner] for part in self.parts)
        chord, tangent = sparse.diags_array(-2 * s / n) @ place, sparse.diags_array(-2 * s) @ place
        slack = sparse.eye_array(many)
        matrix = sparse.block_array([
            [relations, -relations, nothing, nothing, nothing, nothing],
            [nothing, nothing, relations, -relations, nothing, nothing],
            [chord, -chord, place, -place, slack, nothing],
            [tangent, -tangent, place, -place, nothing, -slack],
        ], format="csc")  # fmt: skip
        rows, zero = relations.shape[0], np.zeros(2 * relations.shape[0])
        least = np.concatenate([zero, self.room**2 / n - (q - s**2 / n), np.full(many, -np.inf)])
        cap = np.where(self.capped[self.inner], np.maximum(s**2 - q, 0.0), np.inf)
        most = np.concatenate([zero, np.full(many, np.inf), cap])
        assert len(least) == 2 * rows + 2 * many
        low, high = np.zeros(matrix.shape[1]), np.zeros(matrix.shape[1])
        return Program(matrix, np.zeros(matrix.shape[1]), low, high, least, most)

    def move(self, cell: int, sign: int, level: float, hidden: Booleans) -> tuple[Floats, Booleans]:
        """The cheapest way in which a sum moves by its level: how all sums move, and which cells change at all."""
        cells, many, program = len(self.sums), len(self.inner), self.program
        every = np.arange(4 * cells + 2 * many)
        price = np.where(hidden, 0.0, gross(self.sums) / self.unit + 1e-3)
        program.charge(every, np.concatenate([np.tile(price, 4), np.zeros(2 * many)]))
        for parts in self._ways(cell):
            program.bound(every, *self._bounds(cell, sign * level / self.unit, parts))
            answer = program.solve()
            if answer is not None:
                break
        if answer is None:
            raise InfeasibleError(
                "No pattern keeps means and standard deviations together from telling a sensitive sum: publish one of "
                "them, or coarser groups."
            )
        up, down, more, less = answer.values[: 4 * cells].reshape(4, cells)
        y, z = up - down, more - less
        touched = (np.abs(y) > TOLERANCE) | (np.abs(z) > TOLERANCE)
        self._check(cell, np.where(touched, y, 0.0), np.where(touched, z, 0.0), sign * level / self.unit)
        return np.where(touched, y, 0.0) * self.unit, touched

    def _ways(self, cell: int) -> list[Integers]:
        """Which inner cells a sum moves by: itself; of a margin whichever can within their room, else all alike."""
        inner = self.inside.indices[self.inside.indptr[cell] : self.inside.indptr[cell + 1]]
        inner = np.flatnonzero(self.sums.inner)[inner]
        inner = inner[self.sums.n[inner] > 0]
        return [inner] if len(inner) == 1 else [NO_CELLS, inner]

    def _bounds(self, cell: int, level: float, parts: Integers) -> tuple[Floats, Floats]:
        cells, many = len(self.sums), len(self.inner)
        s, q, n = self.parts
        free = np.where(self.sums.n > 0, np.inf, 0.0)
        up, down, squares = free.copy(), free.copy(), free.copy()
        up[self.inner] = self.room
        down[self.inner] = np.where(self.capped[self.inner], np.minimum(self.room, s[self.inner]), self.room)
        squares[self.inner] = np.where(self.room > 0, np.inf, 0.0)
        low, high = np.zeros(4 * cells + 2 * many), np.concatenate([up, down, squares, squares, np.zeros(2 * many)])
        size = gross(self.sums)
        for one, by in ((cell, level), *((i, level * size[i] / size[parts].sum()) for i in parts.tolist())):
            at = [one, cells + one]
            low[at] = high[at] = max(by, 0.0), max(-by, 0.0)
        for one in parts.tolist():
            new = s[one] + level * size[one] / size[parts].sum()
            least, most = new**2 / n[one] - q[one], new**2 - q[one] if self.capped[one] else np.inf
            at, spot = [2 * cells + one, 3 * cells + one], int(np.searchsorted(self.inner, one))
            low[at], high[at] = (max(least, 0.0), max(-most, 0.0)), (max(most, 0.0), max(-least, 0.0))
            high[[4 * cells + spot, 4 * cells + many + spot]] = np.inf
        return low, high

    def _check(self, cell: int, y: Floats, z: Floats, level: float) -> None:
        """Whether a move is possible: relations hold, and squares are what sums allow in every inner cell."""
        s, q, n = (part[self.inner] for part in self.parts)
        new, squares = s + y[self.inner], q + z[self.inner]
        scale = 10 * TOLERANCE * (1 + np.abs(q) + new**2)
        wrong = (squares < new**2 / n - scale) | (self.capped[self.inner] & (squares > new**2 + scale))
        gaps = [np.abs(self.additive.residuals(part)).max(initial=0.0) for part in (y, z)]
        if wrong.any() or max(gaps) > 10 * TOLERANCE * len(y) or abs(y[cell] - level) > TOLERANCE * (1 + abs(level)):
            raise EngineError("A move of sums and squares that the solver found does not hold.")
