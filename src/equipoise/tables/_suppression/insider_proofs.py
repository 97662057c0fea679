"""Proofs in bulk that sensitive cells keep their levels against contributors: few moves for millions of pairs.

A demand is met against contributor b by a move that leaves his cells still. It need not be one of those at hand: the
moves that take a cell to its level are a convex set, so where one of them raises the cell of b and another lowers it,
a mixture of both leaves it still. Somebody who knows only that a cell is at least so large is answered by one move
that stays above that. So a handful of moves in random directions proves almost all pairs of a demand and a contributor.
They are the pattern's own, then others found by projection (`projected_moves`), with nobody's cells held, then with
those held still against whom something is open. What is left is asked one by one.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.ground.progress import Progress, report
from equipoise.tables._suppression.bulk_moves import MAX_BULK_ROOM, OVERSHOOT, capped
from equipoise.tables._suppression.cheapest_move import RELATION_TOLERANCE
from equipoise.tables._suppression.neighbourhood import Lists
from equipoise.tables._suppression.projected_moves import ProjectedMoves

if TYPE_CHECKING:
    from equipoise.tables._suppression.feasible_moves import Component
    from equipoise.tables._suppression.problem import SuppressionTable

LEVEL_TOLERANCE = 1e-6
"""Share of its level by which a move may fall short: rounding, not disclosure."""
MIN_BULK_CELLS = 100
"""Suppressed cells that hang together from which on what bulk proofs leave open is not asked again within them."""
DENSE_CELLS = 200
"""Cells of a move from which on it is compared with all demands at once."""
MIN_BULK_DEMANDS = 20
"""Demands that must be open for moves to be looked for in bulk."""
PROJECTED_MOVES, MAX_PROJECTED_ROOM = 16, 20.0
"""Moves found together by projection; room in units of the largest level."""
SWEPT_MOVES, NUDGE = 6, 0.1
"""Interior-point moves looked for one after the other; share of the typical level that known cells are to move by."""
MIN_PROVEN_SHARE = 0.15
"""Share of what is open that such moves must prove, or no more are looked for."""
PROJECTING = "proving against contributors, many at once"


class _Open(NamedTuple):
    """Seats against which a demand is not proven, and whether moves that meet it lower and raise each of them."""

    seats: Integers
    lowered: Booleans
    raised: Booleans


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
        self.label = np.full(table.cells, -1, dtype=np.int64)
        for number, part in enumerate(parts):
            self.label[part.cells] = number
        self.cells: Integers = np.flatnonzero(self.label >= 0)
        self.inside: Booleans = self.label >= 0
        self.demand_of = np.full((table.cells, 2), -1, dtype=np.int64)
        self.demand_of[self.cell, (self.sign < 0).astype(np.int64)] = np.arange(len(self.cell))
        self.columns = Lists(table.additive.by_cell)
        self.seats = _Seats(self.cells, self.label, knower)
        self.slack = RELATION_TOLERANCE * float(self.level.min(initial=np.inf)) if len(self.level) else 0.0
        self.met = np.zeros(len(self.cell), dtype=np.bool_)
        self.open: dict[int, _Open] = {}
        self.draw = np.random.default_rng(len(self.cells))
        self.learned: list[tuple[Integers, Floats]] = []
        self.work = 0

    def run(self, progress: Progress | None, work: float, *, together: bool = False) -> None:
        """Look for moves while that proves much, up to so much `work`; `together` all contributors are held still."""
        matrix = self.table.additive.by_cell[:, self.cells].tocsr()
        matrix = matrix[np.flatnonzero(np.diff(matrix.indptr))]
        moves = ProjectedMoves(matrix, self.label[self.cells], len(self.cells))
        stages: list[Callable[[], None]] = [lambda: self._project(moves, self._stills(together=together))]
        if not together:
            stages.append(lambda: self._sweep(matrix.tocsc(), progress))
        for stage in stages:
            while self.work <= work and len(self.waiting()) >= MIN_BULK_DEMANDS:
                before = self._count()
                report(progress, 0, before, PROJECTING)
                stage()
                if self._count() > (1 - MIN_PROVEN_SHARE) * before:
                    break

    def waiting(self) -> Integers:
        """Demands that are not met, or not proven against everybody."""
        waiting = ~self.met & self.inside[self.cell]
        waiting[np.fromiter(self.open, dtype=np.int64, count=len(self.open))] = True
        return np.flatnonzero(waiting)

    def _count(self) -> int:
        """Pairs of a demand and a contributor that are not proven; a demand that is not met counts for all."""
        unmet = np.flatnonzero(~self.met & self.inside[self.cell])
        first, last = self.seats.of_component(self.label[self.cell[unmet]])
        return int((last - first + 1).sum()) + sum(len(one.seats) for one in self.open.values())

    def _stills(self, *, together: bool) -> Booleans:
        """Whose cells each move holds still: a row for each contributor, a column for each move.

        Nobody's, but half of those whose cells do not always move alike: opposite moves of these do not mix.
        """
        stills = np.full((int(self.knower.max(initial=-1)) + 1, PROJECTED_MOVES), together)
        loose = np.flatnonzero(self.seats.loose)
        stills[self.seats.who[loose]] |= self.draw.random((len(loose), PROJECTED_MOVES)) < 0.5
        return stills

    def _project(self, moves: ProjectedMoves, stills: Booleans) -> None:
        """Moves towards everything that is open, all found together."""
        most = MAX_PROJECTED_ROOM * float(self.level.max(initial=0.0))
        waiting = self.waiting()
        room, aims = (np.zeros((len(self.cells), PROJECTED_MOVES)) for _ in range(2))
        for number in range(PROJECTED_MOVES):
            room[:, number] = np.minimum(np.minimum(*self._rooms(stills[:, number])), most)[self.cells]
        np.maximum.at(aims, np.searchsorted(self.cells, self.cell[waiting]), self.level[waiting][:, None])
        spent = moves.work
        change = moves.towards(aims, room)
        self._take(change)
        self.work += moves.work - spent

    def _take(self, change: Floats) -> None:
        """Learn from moves of all cells (columns), and keep them for others."""
        self.learn_many(change)
        for column in change.T:
            changes = np.flatnonzero(column)
            self.learned.append((self.cells[changes], column[changes]))

    def _sweep(self, matrix: Any, progress: Progress | None) -> None:
        """Interior-point moves towards half of what is open each, moving known cells as most of that half need it."""
        for _ in range(SWEPT_MOVES):
            waiting = self.waiting()
            if len(waiting) < MIN_BULK_DEMANDS:
                return
            chosen = self.draw.permutation(waiting)[: max(MIN_BULK_DEMANDS, len(waiting) // 2)]
            chosen = chosen[np.unique(self.cell[chosen], return_index=True)[1]]
            unit, most = float(np.median(self.level)), MAX_BULK_ROOM * float(self.level.max())
            up, down = (np.minimum(room[self.cells], most) for room in (self.table.up, self.down))
            spots, amount = np.searchsorted(self.cells, self.cell[chosen]), self.sign[chosen] * self.level[chosen]
            needs = np.zeros(len(self.seats.who))
            for one in (self.open[demand] for demand in chosen.tolist() if demand in self.open):
                needs[one.seats] += one.lowered.astype(float) - one.raised
            seats = np.flatnonzero(needs)
            known = np.searchsorted(self.cells, self.seats.first[seats])
            if self.floor is not None:
                asked = np.unique(np.concatenate([one.seats for one in self.open.values()] or [seats]))
                held = np.searchsorted(self.cells, self.seats.first[asked])
                down[held] = np.minimum(down[held], self.floor[self.seats.first[asked]])
            fresh = ~np.isin(known, spots)
            spots, nudge = np.append(spots, known[fresh]), NUDGE * unit * np.sign(needs[seats][fresh])
            amount = np.append(amount, nudge)
            possible = np.where(amount > 0, up[spots], down[spots]) >= np.abs(amount)
            change, work = capped(
                matrix, -down / unit, up / unit, spots[possible], amount[possible] / unit, progress, PROJECTING
            )
            self.work += work
            if change is None:
                return
            self._take(change[:, None] * unit * (1 + OVERSHOOT))

    def _rooms(self, still: Booleans) -> tuple[Floats, Floats]:
        """How far cells may rise and fall in the eyes of these contributors."""
        if not len(still):
            return self.table.up, self.down
        held = (self.knower >= 0) & still[self.knower]
        if self.floor is not None:
            return self.table.up, np.where(held, np.minimum(self.down, self.floor), self.down)
        return np.where(held, 0.0, self.table.up), np.where(held, 0.0, self.down)

    def admit(self, cells: Integers, knower: Integers) -> None:
        """Let moves change further cells, which were published: who knows one of them is not asked about by these."""
        fresh = cells[~self.inside[cells]]
        self.inside[fresh] = True
        for cell in fresh[knower[fresh] >= 0].tolist():
            self.seats.late[cell] = np.flatnonzero(self.seats.who == knower[cell])

    def learn_all(self, moves: "list[tuple[Integers, Floats]]") -> None:
        """Learn from the moves of others, dense ones together; those of other cells than these are left out."""
        dense = [number for number, (cells, _) in enumerate(moves) if len(cells) > DENSE_CELLS]
        dense = [number for number in dense if self.inside[moves[number][0]].all()]
        for start in range(0, len(dense), PROJECTED_MOVES):
            change = np.zeros((len(self.cells), len(dense[start : start + PROJECTED_MOVES])))
            for column, number in enumerate(dense[start : start + PROJECTED_MOVES]):
                change[np.searchsorted(self.cells, moves[number][0]), column] = moves[number][1]
            self.learn_many(change)
        for cells, by in moves:
            if len(cells) <= DENSE_CELLS:
                self.learn(cells, by)

    def learn(self, cells: Integers, by: Floats) -> None:
        """Note what a move of these cells proves if it adds up, taken both ways as far as rooms go."""
        demands = self.demand_of[cells]
        open_ones = [d for d in demands[demands >= 0].tolist() if not self.met[d] or d in self.open]
        if not open_ones or not self.inside[cells].all():
            return
        places, counts = self.columns.places(cells)
        sums = np.bincount(self.columns.indices[places], self.columns.data[places] * np.repeat(by, counts))
        missed = float(np.abs(sums).max(initial=0.0))
        up, down, size = self.table.up[cells], self.down[cells], np.abs(by)
        forth = float(np.min(np.where(by > 0, up, down) / size, initial=np.inf))
        back = float(np.min(np.where(by > 0, down, up) / size, initial=np.inf))
        seats, values = self.seats.touched(cells, by, self.slack)
        for demand in open_ones:
            here = float(by[np.searchsorted(cells, self.cell[demand])])
            level, sign = float(self.level[demand]), float(self.sign[demand])
            far = abs(here) * (forth if sign * here > 0 else back)
            if here == 0 or far < level * (1 - LEVEL_TOLERANCE) or missed > RELATION_TOLERANCE * abs(here):
                continue
            scaled = values * (sign * level / here)
            if self.met[demand]:
                asked = self.open[demand].seats
                places = np.minimum(np.searchsorted(seats, asked), max(len(seats) - 1, 0))
                scaled = np.where(seats[places] == asked, scaled[places], 0.0) if len(seats) else np.zeros(len(asked))
            else:
                mine = self.seats.component[seats] == self.label[self.cell[demand]]
                mine &= self.seats.who[seats] != self.knower[self.cell[demand]]
                asked, scaled = seats[mine], scaled[mine]
            self._settle(demand, asked, scaled[:, None])

    def learn_many(self, change: Floats) -> None:
        """Note what moves of all cells (columns) prove; each component is taken as far as its own rooms go."""
        label, size = self.label[self.cells], np.abs(change)
        order, components = np.argsort(label, kind="stable"), int(label.max(initial=-1)) + 1
        starts = np.searchsorted(label[order], np.arange(components))
        missed = np.abs(self.table.additive.by_cell[:, self.cells] @ change).max(axis=0, initial=0.0)
        limits = []
        for rise, fall in ((self.table.up, self.down), (self.down, self.table.up)):
            room = np.where(change > 0, rise[self.cells][:, None], fall[self.cells][:, None])
            times = np.divide(room, size, out=np.full_like(size, np.inf), where=size > 0)
            limits.append(np.minimum.reduceat(times[order], starts, axis=0))
        values = self.seats.values(change, np.searchsorted(self.cells, self.seats.cells), self.slack)
        first, last = self.seats.of_component(np.arange(components))
        for demand in self.waiting().tolist():
            spot, sign, level = np.searchsorted(self.cells, self.cell[demand]), self.sign[demand], self.level[demand]
            component, steps = label[spot], change[spot]
            limit = np.where(sign * steps > 0, limits[0][component], limits[1][component])
            far = np.abs(steps) * np.where(steps == 0, 0.0, limit)
            good = (
                (steps != 0) & (far >= level * (1 - LEVEL_TOLERANCE)) & (missed <= RELATION_TOLERANCE * np.abs(steps))
            )
            if not good.any():
                continue
            if self.met[demand]:
                seats = self.open[demand].seats
            else:
                seats = np.arange(first[component], last[component])
                seats = seats[self.seats.who[seats] != self.knower[self.cell[demand]]]
            self._settle(demand, seats, values[seats][:, good] * (sign * level / steps[good]))
            self.work += len(seats) * int(good.sum())

    def _settle(self, demand: int, seats: Integers, values: Floats) -> None:
        """Note what moves that take a demand to its level prove against these seats; a column of values for each."""
        old = self.open.pop(demand, None)
        self.met[demand] = True
        if self.floor is not None:
            above: Booleans = values >= -(self.floor[self.seats.first[seats]] + self.slack)[:, None]
            below = above
        else:
            below, above = values <= 0, values >= 0
        lowered, raised = np.asarray(below.any(axis=1)), np.asarray(above.any(axis=1))
        if old is not None:
            lowered, raised = lowered | old.lowered, raised | old.raised
        remaining = ~(lowered & raised)
        if remaining.any():
            self.open[demand] = _Open(seats[remaining], lowered[remaining], raised[remaining])

    def drop(self, demand: int, who: int) -> None:
        """Ask no more for a demand against somebody."""
        if (old := self.open.pop(demand, None)) is None:
            return
        remaining = self.seats.who[old.seats] != who
        if remaining.any():
            self.open[demand] = _Open(old.seats[remaining], old.lowered[remaining], old.raised[remaining])

    def proofs(self) -> dict[tuple[int, int], tuple[bool, frozenset[int]]]:
        """For each demand, by cell and sign: whether a move meets it, and against whom it is not proven yet."""
        answers = {}
        for demand in np.flatnonzero(self.met).tolist():
            key = int(self.cell[demand]), int(self.sign[demand])
            against = self.open.get(demand)
            answers[key] = True, frozenset(self.seats.who[against.seats].tolist()) if against else frozenset[int]()
        return answers


class _Seats:
    """The cells of each contributor in each component: a seat. Numbered by component, then by contributor."""

    def __init__(self, cells: Integers, label: Integers, knower: Integers) -> None:
        own = cells[knower[cells] >= 0] if len(knower) else cells[:0]
        own = own[np.lexsort((own, knower[own], label[own]))]
        new = np.flatnonzero(np.diff(label[own], prepend=-1) | np.diff(knower[own], prepend=-1))
        self.cells, self.starts = own, new
        self.size = np.diff(np.append(new, len(own)))
        self.first, self.who, self.component = own[new], knower[own[new]], label[own[new]]
        self.of = np.full(len(label), -1, dtype=np.int64)
        self.of[own] = np.repeat(np.arange(len(new)), self.size)
        self.loose = np.zeros(len(new), dtype=np.bool_)
        self.late: dict[int, Integers] = {}

    def of_component(self, components: Integers) -> tuple[Integers, Integers]:
        """The first seat of each component, and the one after its last."""
        return np.searchsorted(self.component, components), np.searchsorted(self.component, components, side="right")

    def values(self, change: Floats, spots: Integers, slack: float) -> Floats:
        """By how much the cells of each seat change, in each column; no number where they change differently."""
        if not len(self.starts):
            return np.zeros((0, change.shape[1]))
        least, most = (side.reduceat(change[spots], self.starts, axis=0) for side in (np.minimum, np.maximum))
        apart = most - least > slack
        self.loose |= apart.any(axis=1)
        return np.where(apart, np.nan, most)

    def touched(self, cells: Integers, by: Floats, slack: float) -> tuple[Integers, Floats]:
        """The seats that a move touches, sorted, and by how much each changes."""
        mine = self.of[cells]
        spots = np.flatnonzero(mine >= 0)
        spots = spots[np.argsort(mine[spots], kind="stable")]
        seats, starts, counts = np.unique(mine[spots], return_index=True, return_counts=True)
        if not len(seats):
            values = np.zeros(0)
        else:
            least, most = (side.reduceat(by[spots], starts) for side in (np.minimum, np.maximum))
            values = np.where((most - least > slack) | (counts < self.size[seats]), np.nan, most)
        for cell in self.late.keys() & set(cells.tolist()) if self.late else ():
            more = np.setdiff1d(self.late[cell], seats)
            values[np.isin(seats, self.late[cell])] = np.nan
            seats, values = np.append(seats, more), np.append(values, np.full(len(more), np.nan))
            order = np.argsort(seats)
            seats, values = seats[order], values[order]
        return seats, values
