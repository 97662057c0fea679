"""Proofs in bulk that sensitive cells keep their levels against contributors: one program for thousands of demands.

A move that leaves the cells of contributor b still, and nobody's cells below what he has in them, proves every demand
that it meets against b. First all contributors' cells are held still. A cell that is somebody's own cannot move then,
and where many are alone in cells nothing can; so next a half of them is held still at a time, then ever smaller
parts. Moves are found by projection (`projected_moves`); what these leave open by interior-point programs with parts
of the contributors still. What is left then is asked one by one.
"""

from typing import TYPE_CHECKING

import numpy as np

from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.ground.progress import Progress, report
from equipoise.tables._suppression.bulk_moves import MAX_BULK_ROOM, OVERSHOOT, capped
from equipoise.tables._suppression.cheapest_move import RELATION_TOLERANCE, living
from equipoise.tables._suppression.projected_moves import ProjectedMoves

if TYPE_CHECKING:
    from equipoise.tables._suppression.feasible_moves import Component
    from equipoise.tables._suppression.problem import SuppressionTable

LEVEL_TOLERANCE = 1e-6
"""Share of its level by which a move may fall short: rounding, not disclosure."""
MIN_BULK_CELLS = 420
"""Suppressed cells that hang together from which on proofs are looked for in bulk."""
MAX_BULK_PAIRS = 300_000_000
"""Demands times contributors of a component up to which that is done."""
PARTS, MAX_PARTED_CELLS = (1, 4, 16, 16, 64), 2_000
"""Parts into which contributors are split; one after the other is held still; of more cells the first two."""
MAX_LEFT = 100
"""Demands of so many cells that are asked about one by one without that."""
MIN_PART_SHARE = 0.2
"""Share of its demands that the first part must prove, or smaller ones are held still."""
MIN_PROVEN_SHARE, MAX_REPEATS, MAX_LARGE_REPEATS = 0.1, 8, 2
"""Share of its demands that a program must prove to be tried again with other directions; how often at most."""
PROJECTED_MOVES, MAX_PROJECTED_PARTS, MAX_PROJECTED_ROOM = 16, 32, 20.0
"""Moves found together by projection; parts of the contributors up to which; room in units of the largest level."""
ROWS_AT_ONCE = 4_096
"""Demands that are compared with all contributors at once: memory."""
MIN_PROJECTED_SHARE = 0.2
"""Share of what is open that these must prove, or smaller parts are held still."""
PROJECTING = "proving against contributors, many at once"
MAX_BULK_WORK = 1_500_000_000
"""Work (`Program.work`) spent at most."""


class InsiderProofs:
    """Demands (`cell`, `sign`, `level`) in some components, and against whom each is proven.

    `knower` says whose a cell is (-1: nobody's), `room` how far each may fall in the eyes of all (None: to its limit),
    `floor` how far it may in those of its knower (None: to him it is still).
    """

    def __init__(
        self, table: "SuppressionTable", parts: "list[Component]", demands: tuple[Integers, Integers, Floats],
        knower: Integers, room: Floats | None, floor: Floats | None,
    ) -> None:  # fmt: skip
        self.table, (self.cell, self.sign, self.level) = table, demands
        self.knower, self.floor = knower, floor
        self.down = table.down if room is None else np.minimum(table.down, room)
        self.met = np.zeros(len(self.cell), dtype=np.bool_)
        self.groups = [_Group(part.cells, np.flatnonzero(np.isin(self.cell, part.cells)), self) for part in parts]
        self.groups = [group for group in self.groups if group.open.size <= MAX_BULK_PAIRS]
        self.cells = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *(group.cells for group in self.groups)]))
        self.draw = np.random.default_rng(len(self.cells))
        self.learned: list[tuple[Integers, Floats]] = []
        self.work = self.left = 0

    def run(self, progress: Progress | None, work: int, *, together: bool = False) -> None:
        """Hold every part of the contributors still, in directions drawn anew as long as that proves much.

        Up to so much `work`. `together` they are all held still at once, always.
        """
        self.left = min(work, MAX_BULK_WORK)
        people = int(self.knower.max(initial=-1)) + 1
        self._project(progress, people, 1 if together else MAX_PROJECTED_PARTS)
        parts: tuple[int, ...] = PARTS
        if len(self.cells) > MAX_PARTED_CELLS:
            left = sum(int(group.open.any(axis=1).sum()) for group in self.groups)
            parts = PARTS[:2] if left > MAX_LEFT else ()
        for count in parts[:1] if together else parts:
            part = self.draw.permutation(people) % count
            for number in range(count):
                what = f"proving against contributors (part {number + 1} of {count})"
                shares = self._repeated(part == number, progress, what)
                if self.work > self.left or (shares and shares[0] < MIN_PART_SHARE):
                    break

    def _project(self, progress: Progress | None, people: int, most_parts: int) -> None:
        """Moves by projection, many at once: with ever smaller parts of the contributors still, while that helps."""
        matrix = self.table.additive.by_cell[:, self.cells].tocsr()
        most = MAX_PROJECTED_ROOM * float(self.level.max(initial=0.0))
        moves = ProjectedMoves(matrix[np.flatnonzero(np.diff(matrix.indptr))], len(self.cells))
        spots, count = np.searchsorted(self.cells, self.cell), 1
        while count <= most_parts and self.work <= self.left and (before := self._open()):
            report(progress, 0, before, PROJECTING)
            parts = [self.draw.permutation(people) % count for _ in range(-(-PROJECTED_MOVES // count))]
            room, wanted = (np.zeros((len(self.cells), PROJECTED_MOVES)) for _ in range(2))
            numbers = range(PROJECTED_MOVES)
            stills = np.stack([parts[number // count] == number % count for number in numbers], axis=1)
            waiting = self._waiting(stills)
            for number in numbers:
                room[:, number] = np.minimum(np.minimum(*self._rooms(stills[:, number])), most)[self.cells]
                some = np.flatnonzero(waiting[:, number])
                np.maximum.at(wanted[:, number], spots[some], self.level[some])
            spent = moves.work
            for change in moves.towards(wanted, room).T:
                moved = np.flatnonzero(change)
                self.learn(self.cells[moved], change[moved])
            self.work += moves.work - spent
            if self._open() > (1 - MIN_PROJECTED_SHARE) * before:
                count *= 2

    def learn(self, cells: Integers, by: Floats) -> None:
        """Note what a move of these cells proves if it adds up, taken both ways as far as rooms go."""
        if not np.isin(cells, self.cells).all():
            return
        missed = float(np.abs(self.table.additive.by_cell[:, cells] @ by).max(initial=0.0))
        for sign in (1.0, -1.0):
            room = np.where(sign * by > 0, self.table.up[cells], self.down[cells])
            whole = np.zeros(self.table.cells)
            whole[cells] = sign * by * float(np.min(room / np.abs(by), initial=1.0))
            self._note(whole, missed / RELATION_TOLERANCE)
        self.learned.append((cells, by))

    def _open(self) -> int:
        """Demands that are not met, and pairs of a demand and a contributor that are not proven."""
        return int((~self.met).sum()) + sum(int(group.open.sum()) for group in self.groups)

    def _rooms(self, still: Booleans) -> tuple[Floats, Floats]:
        """How far cells may rise and fall in the eyes of these contributors."""
        if not len(still):
            return self.table.up, self.down
        held = (self.knower >= 0) & still[self.knower]
        if self.floor is not None:
            return self.table.up, np.where(held, np.minimum(self.down, self.floor), self.down)
        return np.where(held, 0.0, self.table.up), np.where(held, 0.0, self.down)

    def _repeated(self, still: Booleans, progress: Progress | None, what: str) -> list[float]:
        """The share of open demands that each program with these contributors' cells still proves."""
        shares: list[float] = []
        most = MAX_REPEATS if len(self.cells) <= MAX_PARTED_CELLS else MAX_LARGE_REPEATS
        while len(shares) < most and self.work <= self.left:
            proven = self._round(still, progress, what)
            if proven is None:
                break
            shares.append(proven)
            if proven < MIN_PROVEN_SHARE:
                break
        return shares

    def proofs(self) -> dict[tuple[int, int], tuple[bool, frozenset[int]]]:
        """For each demand, by cell and sign: whether a move meets it, and against whom it is not proven yet."""
        answers = {}
        for group in self.groups:
            for row, demand in enumerate(group.demands.tolist()):
                key = int(self.cell[demand]), int(self.sign[demand])
                against = group.knowers[group.open[row]] if self.met[demand] else group.knowers
                answers[key] = bool(self.met[demand]), frozenset(against.tolist()) - {int(self.knower[key[0]])}
        return answers

    def _round(self, still: Booleans, progress: Progress | None, what: str) -> float | None:
        """One program with the cells of some contributors still, towards what is open against them.

        The share of these demands that it proves; None where there are none.
        """
        rise, fall = self._rooms(still)
        cells = self.cells[(rise + fall)[self.cells] > 0]
        matrix = self.table.additive.by_cell[:, cells]
        alive = np.flatnonzero(living(matrix))
        cells, matrix = cells[alive], matrix[:, alive].tocsr()
        wanted = self._waiting(still[:, None])[:, 0] & (np.where(self.sign > 0, rise[self.cell], fall[self.cell]) > 0)
        targets = self._targets(cells, wanted, rise, fall)
        if not len(targets):
            return 0.0 if wanted.any() else None
        level, sign = self.level[targets], self.sign[targets].astype(float)
        unit = float(np.median(level))
        widest = MAX_BULK_ROOM * float(level.max()) / unit
        up, down = (np.minimum(room[cells] / unit, widest) for room in (rise, fall))
        rows = np.flatnonzero(np.diff(matrix.indptr))
        spots = np.searchsorted(cells, self.cell[targets])
        change, work = capped(matrix[rows].tocsc(), -down, up, spots, sign * level / unit, progress, what)
        self.work += work
        missed = float(np.abs(matrix @ change).max(initial=0.0)) if change is not None else np.inf
        if change is None or missed > RELATION_TOLERANCE * float(level.min()) / unit:
            return 0.0
        change[np.abs(change) <= missed] = 0.0
        by = np.zeros(self.table.cells)
        by[cells] = change * unit * (1 + OVERSHOOT)
        self._note(by)
        moved = np.flatnonzero(by)
        self.learned.append((moved, by[moved]))
        return 1 - float(self._waiting(still[:, None])[targets].mean())

    def _waiting(self, stills: Booleans) -> Booleans:
        """Demands that are not met, or not proven against one of these; in each column of contributors."""
        waiting = np.repeat(~self.met[:, None], stills.shape[1], axis=1)
        for group in self.groups:
            asked, rows = stills[group.knowers].astype(np.float32), np.flatnonzero(group.open.any(axis=1))
            for some in np.split(rows, range(ROWS_AT_ONCE, len(rows), ROWS_AT_ONCE)):
                waiting[group.demands[some]] |= group.open[some].astype(np.float32) @ asked > 0
        return waiting

    def _targets(self, cells: Integers, wanted: Booleans, rise: Floats, fall: Floats) -> Integers:
        """The wanted demands of these cells that are within what may fall, one for each cell."""
        inside = np.zeros(self.table.cells, dtype=np.bool_)
        inside[cells] = True
        room = np.where(self.sign > 0, rise[self.cell], fall[self.cell])
        chosen = self.draw.permutation(np.flatnonzero(wanted & inside[self.cell] & (self.level <= room)))
        _, first = np.unique(self.cell[chosen], return_index=True)
        return np.sort(chosen[first])

    def _note(self, by: Floats, least: float = 0.0) -> None:
        """What a move proves of levels that are not lower than the `least`."""
        far = (self.sign * by[self.cell] >= self.level * (1 - LEVEL_TOLERANCE)) & (self.level >= least)
        touched = by != 0 if self.floor is None else by < -self.floor - RELATION_TOLERANCE * float(self.level.min())
        for group in self.groups:
            rows = np.flatnonzero(far[group.demands])
            if len(rows):
                self.met[group.demands[rows]] = True
                numbers = self.knower[group.cells[touched[group.cells]]]
                group.open[rows] &= np.isin(group.knowers, numbers)


class _Group:
    """Cells that hang together, the demands among them, and who knows cells of them."""

    def __init__(self, cells: Integers, demands: Integers, proofs: InsiderProofs) -> None:
        self.cells, self.demands = cells, demands
        numbers = proofs.knower[cells]
        self.knowers: Integers = np.unique(numbers[numbers >= 0])
        self.open = proofs.knower[proofs.cell[demands]][:, None] != self.knowers[None, :]
