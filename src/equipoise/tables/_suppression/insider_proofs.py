"""Proofs in bulk that sensitive cells keep their levels against contributors: one program for thousands of demands.

A move that leaves the cells of contributor b still, and nobody's cells below what he has in them, proves every demand
that it meets against b. First all contributors' cells are held still. A cell that is somebody's own cannot move then,
and where many are alone in cells nothing can; so next a half of them is held still at a time, then ever smaller
parts. Moves are found by projection (`projected_moves`); what these leave open by interior-point programs with parts
of the contributors still. What is left then is asked one by one.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.ground.progress import Progress, report
from equipoise.tables._suppression.bulk_moves import MAX_BULK_ROOM, OVERSHOOT, capped
from equipoise.tables._suppression.cheapest_move import RELATION_TOLERANCE
from equipoise.tables._suppression.neighbourhood import living
from equipoise.tables._suppression.problem import LEVEL_TOLERANCE
from equipoise.tables._suppression.projected_moves import ProjectedMoves
from equipoise.tables._suppression.remembered_moves import TINY, Moves, in_turn, joined, missed_by

if TYPE_CHECKING:
    from equipoise.tables._suppression.feasible_moves import Component
    from equipoise.tables._suppression.problem import SuppressionTable

MIN_BULK_CELLS = 420
"""Suppressed cells that hang together from which on proofs are looked for in bulk."""
MAX_BULK_PAIRS, MAX_CODE_ROUNDS = 300_000_000, 3
"""Demands times contributors of a component up to which each pair has a place; times that each bit is tried else."""
PARTS, MAX_PARTED_CELLS = (1, 4, 16, 16, 64), 2_000
"""Parts into which contributors are split; one after the other is held still; of more cells the first two."""
MAX_LEFT = 100
"""Demands up to which they are asked about one by one without that."""
MIN_PART_SHARE = 0.2
"""Share of its demands that the first part must prove, or smaller ones are held still."""
MIN_PROVEN_SHARE, MAX_REPEATS, MAX_LARGE_REPEATS = 0.1, 8, 2
"""Share of its demands that a program must prove to be tried again with other directions; how often at most."""
PROJECTED_MOVES, MAX_PROJECTED_PARTS, MAX_PROJECTED_ROOM = 16, 32, 20.0
"""Moves found together by projection; parts of the contributors up to which; room in units of the largest level."""
ROWS_AT_ONCE = 4_096
"""Demands that are compared with all contributors at once: memory."""
DENSE_SHARE = 20
"""A move that touches one in so many contributors is noted for all of them at once."""
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
        self.groups = [_group(part.cells, np.flatnonzero(np.isin(self.cell, part.cells)), self) for part in parts]
        self.cells = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *(group.cells for group in self.groups)]))
        self.home = np.full(table.cells, -1, dtype=np.int64)
        for number, group in enumerate(self.groups):
            self.home[group.cells] = number
        self.of_cell = np.full((table.cells, 2), -1, dtype=np.int64)
        inside = np.flatnonzero(self.home[self.cell] >= 0)
        self.of_cell[self.cell[inside], (self.sign[inside] < 0).astype(np.int64)] = inside
        self.draw = np.random.default_rng(len(self.cells))
        self.learned: list[tuple[Integers, Floats]] = []
        self.work = self.left = 0

    def run(self, progress: Progress | None, work: int, *, together: bool = False) -> None:
        """Hold every part of the contributors still, in directions drawn anew as long as that proves much.

        Up to so much `work`. `together` they are all held still at once, always.
        """
        self.left = min(work, MAX_BULK_WORK)
        people = int(self.knower.max(initial=-1)) + 1
        if self._few():
            return
        self._project_by_codes(progress)
        self._project(progress, people, 1 if together else MAX_PROJECTED_PARTS)
        parts: tuple[int, ...] = PARTS
        if len(self.cells) > MAX_PARTED_CELLS:
            parts = PARTS[:2]
        for count in parts[:1] if together else parts:
            if self._few():
                break
            part = self.draw.permutation(people) % count
            for number in range(count):
                what = f"proving against contributors (part {number + 1} of {count})"
                shares = self._repeated(part == number, progress, what)
                if self.work > self.left or (shares and shares[0] < MIN_PART_SHARE):
                    break

    def _project(self, progress: Progress | None, people: int, most_parts: int) -> None:
        """Moves by projection, many at once: with ever smaller parts of the contributors still, while that helps."""
        moves, count = self._projected(), 1
        while count <= most_parts and self.work <= self.left and not self._few():
            before = self._open()
            if all(isinstance(group, _CodedGroup) for group in self.groups):
                return
            report(progress, 0, before, PROJECTING)
            parts = [self.draw.permutation(people) % count for _ in range(-(-PROJECTED_MOVES // count))]
            numbers = range(PROJECTED_MOVES)
            stills = np.stack([parts[number // count] == number % count for number in numbers], axis=1)
            self._project_with(moves, stills)
            if self._open() > (1 - MIN_PROJECTED_SHARE) * before:
                count *= 2

    def _projected(self) -> ProjectedMoves:
        matrix = self.table.additive.by_cell[:, self.cells].tocsr()
        return ProjectedMoves(matrix[np.flatnonzero(np.diff(matrix.indptr))], len(self.cells))

    def _project_by_codes(self, progress: Progress | None) -> None:
        """Moves by projection with those still who share a bit of their codes, in the groups that have codes."""
        moves = self._projected()
        for group in [group for group in self.groups if isinstance(group, _CodedGroup)]:
            for _ in range(MAX_CODE_ROUNDS):
                needed = [bit for bit in range(group.bits) if (group.missing >> np.uint64(bit) & np.uint64(1)).any()]
                for bits in np.array_split(needed, range(PROJECTED_MOVES, len(needed), PROJECTED_MOVES)):
                    report(progress, 0, len(needed), PROJECTING)
                    stills = np.zeros((int(self.knower.max()) + 1, len(bits)), dtype=np.bool_)
                    stills[group.knowers] = group.code[:, None] >> bits.astype(np.uint64) & np.uint64(1) > 0
                    if len(bits) and self.work <= self.left:
                        self._project_with(moves, stills)

    def _project_with(self, moves: ProjectedMoves, stills: Booleans) -> None:
        """Moves by projection with some contributors (columns) still, noted for what they prove."""
        most = MAX_PROJECTED_ROOM * float(self.level.max(initial=0.0))
        spots = np.searchsorted(self.cells, self.cell)
        room, needed = (np.zeros((len(self.cells), stills.shape[1])) for _ in range(2))
        waiting = self._waiting(stills)
        for number in range(stills.shape[1]):
            room[:, number] = np.minimum(np.minimum(*self._rooms(stills[:, number])), most)[self.cells]
            some = np.flatnonzero(waiting[:, number])
            np.maximum.at(needed[:, number], spots[some], self.level[some])
        spent = moves.work
        for change in moves.towards(needed, room).T:
            touched = np.flatnonzero(change)
            self.learn([(self.cells[touched], change[touched])])
            self.learned.append((self.cells[touched], change[touched]))
        self.work += moves.work - spent

    def learn(self, moves: Moves) -> None:
        """Note what moves of suppressed cells prove that add up, each taken both ways as far as rooms go."""
        for some in in_turn([move for move in moves if len(move[0])]):
            cells, by, first = joined(some)
            row = np.repeat(np.arange(len(some)), np.diff(first, append=len(cells)))
            least = missed_by(self.table.additive.base, some) / RELATION_TOLERANCE
            least[row[self.home[cells] < 0]] = np.inf
            for sign in (1.0, -1.0):
                room = np.where(sign * by > 0, self.table.up[cells], self.down[cells])
                often = np.minimum(np.minimum.reduceat(room / np.maximum(np.abs(by), TINY), first), 1.0)
                self._note(cells, sign * often[row] * by, row, least)

    def _open(self) -> int:
        """Demands that are not met, and pairs of a demand and a contributor that are not proven."""
        return int((~self.met).sum()) + sum(group.pairs for group in self.groups)

    def _few(self) -> bool:
        """Whether so few demands are open that they are asked about one by one."""
        waiting = ~self.met
        for group in self.groups:
            waiting[group.demands] |= group.waiting
        return int(waiting.sum()) <= MAX_LEFT

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
            waiting, nobody = group.waiting.tolist(), group.knowers[:0]
            for row, demand in enumerate(group.demands.tolist()):
                key = int(self.cell[demand]), int(self.sign[demand])
                against = (group.against(row) if waiting[row] else nobody) if self.met[demand] else group.knowers
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
        moved = np.flatnonzero(change)
        cells, change = cells[moved], change[moved] * unit * (1 + OVERSHOOT)
        self._note(cells, change, np.zeros(len(cells), dtype=np.int64), np.zeros(1))
        self.learned.append((cells, change))
        return 1 - float(self._waiting(still[:, None])[targets].mean())

    def _waiting(self, stills: Booleans) -> Booleans:
        """Demands that are not met, or not proven against one of these; in each column of contributors."""
        waiting = np.repeat(~self.met[:, None], stills.shape[1], axis=1)
        for group in self.groups:
            group.wait_for(stills[group.knowers], waiting)
        return waiting

    def _targets(self, cells: Integers, wanted: Booleans, rise: Floats, fall: Floats) -> Integers:
        """The wanted demands of these cells that are within what may fall, one for each cell."""
        inside = np.zeros(self.table.cells, dtype=np.bool_)
        inside[cells] = True
        room = np.where(self.sign > 0, rise[self.cell], fall[self.cell])
        chosen = self.draw.permutation(np.flatnonzero(wanted & inside[self.cell] & (self.level <= room)))
        _, first = np.unique(self.cell[chosen], return_index=True)
        return np.sort(chosen[first])

    def _note(self, cells: Integers, by: Floats, row: Integers, least: Floats) -> None:
        """What moves (`row` numbers that of each cell) prove of levels that are not lower than the `least` of each.

        O(their cells), and demands they meet.
        """
        demands = self.of_cell[cells, (by < 0).astype(np.int64)]
        level = self.level[demands]
        far = (demands >= 0) & (np.abs(by) >= level * (1 - LEVEL_TOLERANCE)) & (level >= least[row])
        touched = by != 0
        if self.floor is not None:
            touched = by < -self.floor[cells] - RELATION_TOLERANCE * float(self.level.min())
        self.met[demands[far]] = True
        touched &= self.knower[cells] >= 0
        for number in np.unique(self.home[cells[far]]).tolist():
            group, inside = self.groups[number], self.home[cells] == number
            met, touching = np.flatnonzero(far & inside), np.flatnonzero(touched & inside)
            rows = np.searchsorted(group.demands, demands[met])
            group.open_to(rows, row[met], self.knower[cells[touching]], row[touching])


def _group(cells: Integers, demands: Integers, proofs: InsiderProofs) -> "_Group | _CodedGroup":
    numbers = proofs.knower[cells]
    knowers = np.unique(numbers[numbers >= 0])
    kind = _Group if len(demands) * len(knowers) <= MAX_BULK_PAIRS else _CodedGroup
    return kind(cells, demands, knowers, proofs.knower[proofs.cell[demands]])


class _Group:
    """Cells that hang together, the demands among them, and who knows cells of them; `own` is who knows a demand's."""

    def __init__(self, cells: Integers, demands: Integers, knowers: Integers, own: Integers) -> None:
        self.cells, self.demands, self.knowers = cells, demands, knowers
        self.open = own[:, None] != self.knowers[None, :]

    @property
    def pairs(self) -> int:
        """Demands and contributors against whom they are not proven."""
        return int(self.open.sum())

    @property
    def waiting(self) -> Booleans:
        """Demands that are not proven against everybody."""
        waiting: Booleans = self.open.any(axis=1)
        return waiting

    def against(self, row: int) -> Integers:
        """Against whom a demand that waits is not proven."""
        return self.knowers[self.open[row]]

    def wait_for(self, stills: Booleans, waiting: Booleans) -> None:
        """Mark demands that are not proven against one of these contributors (rows), for each column of them."""
        columns, rows = stills.astype(np.float32), np.flatnonzero(self.waiting)
        for some in np.split(rows, range(ROWS_AT_ONCE, len(rows), ROWS_AT_ONCE)):
            waiting[self.demands[some]] |= self.open[some].astype(np.float32) @ columns > 0

    def open_to(self, rows: Integers, moves: Integers, knowers: Integers, touching: Integers) -> None:
        """Demands that moves meet, by the number of the move: proven against everybody but those whom it touches."""
        order = np.argsort(touching, kind="stable")
        knowers, touching = np.searchsorted(self.knowers, knowers[order]), touching[order]
        starts = np.flatnonzero(np.diff(moves, prepend=-1))
        ends = np.append(starts[1:], len(moves))
        firsts, lasts = (np.searchsorted(touching, moves[starts], side=side) for side in ("left", "right"))
        for a, b, first, last in zip(starts.tolist(), ends.tolist(), firsts.tolist(), lasts.tolist(), strict=True):
            self._open_to(rows[a:b], knowers[first:last])

    def _open_to(self, rows: Integers, columns: Integers) -> None:
        if len(columns) * DENSE_SHARE > len(self.knowers):
            among = np.zeros(len(self.knowers), dtype=np.bool_)
            among[columns] = True
            self.open[rows] &= among
            return
        columns = np.unique(columns)
        still = self.open[np.ix_(rows, columns)]
        self.open[rows] = False
        self.open[np.ix_(rows, columns)] = still


class _CodedGroup:
    """The same for many contributors, without a place for each pair: each contributor has a code of a few bits.

    The code of number i is its binary digits and their complements. Of two contributors each has a bit that the other
    has not. So a demand of b's own cell is proven against all others once, for every bit that b has not, some move
    meets it with all who have that bit still. A demand of nobody's cell is proven by one digit and its complement.
    Source: separating systems, Renyi (1961), On random generating elements of a finite Boolean algebra.
    """

    def __init__(self, cells: Integers, demands: Integers, knowers: Integers, own: Integers) -> None:
        self.cells, self.demands, self.knowers = cells, demands, knowers
        self.digits = max(1, int(len(knowers) - 1).bit_length())
        self.bits, self.every = 2 * self.digits, np.uint64(2 ** (2 * self.digits) - 1)
        number = np.arange(len(knowers), dtype=np.uint64)
        low = np.uint64(2**self.digits - 1)
        self.code = number | ((number ^ low) << np.uint64(self.digits))
        spot = np.minimum(np.searchsorted(knowers, own), len(knowers) - 1)
        self.own = np.where(knowers[spot] == own, spot, -1)
        self.needed = np.where(self.own >= 0, self.every ^ self.code[spot], self.every)
        self.reached = np.zeros(len(demands), dtype=np.uint64)

    @property
    def missing(self) -> Any:
        """The bits of each demand for which no move meets it; none where it is proven against everybody."""
        half, low = np.uint64(self.digits), np.uint64(2**self.digits - 1)
        both = self.reached & (self.reached >> half) & low
        return np.where((self.own < 0) & (both > 0), np.uint64(0), self.needed & ~self.reached)

    @property
    def pairs(self) -> int:
        return int(np.bitwise_count(self.missing).sum())

    @property
    def waiting(self) -> Booleans:
        waiting: Booleans = self.missing > 0
        return waiting

    def against(self, row: int) -> Integers:
        return self.knowers[(self.code & self.reached[row]) == 0]

    def wait_for(self, stills: Booleans, waiting: Booleans) -> None:
        missing = self.missing
        for column in range(stills.shape[1]):
            codes = self.code[stills[:, column]]
            bit = np.bitwise_and.reduce(codes) if len(codes) else np.uint64(0)
            waiting[self.demands, column] |= (missing & bit) > 0

    def open_to(self, rows: Integers, moves: Integers, knowers: Integers, touching: Integers) -> None:
        """Demands that moves meet, by the number of the move: bits that nobody has whom it touches are reached."""
        bits = np.zeros(1 + max(int(moves.max(initial=0)), int(touching.max(initial=0))), dtype=np.uint64)
        np.bitwise_or.at(bits, touching, self.code[np.searchsorted(self.knowers, knowers)])
        np.bitwise_or.at(self.reached, rows, self.every & ~bits[moves])
