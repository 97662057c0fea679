"""What given moves prove against contributors: all demands, all moves and everybody at once, without a program.

A move that takes cell s to its level and leaves what somebody knows as it is proves the demand of s against him. So a
demand is open against those alone whom every move touches that reaches it. A move is checked first: only suppressed
cells may change, and what it misses of a relation must be rounding beside the level.
"""

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.tables._suppression.cheapest_move import RELATION_TOLERANCE
from equipoise.tables._suppression.problem import LEVEL_TOLERANCE
from equipoise.tables._suppression.remembered_moves import Moves, joined, missed_by

if TYPE_CHECKING:
    from equipoise.tables._suppression.contributor_knowledge import Minds
    from equipoise.tables._suppression.problem import SuppressionTable

MAX_TRIPLES = 100_000
"""Cells of moves, counted for each demand that they reach, that are looked at, sparse moves first: memory."""
NOBODY: frozenset[int] = frozenset()
WHOLE_TOLERANCE = 1e-6
"""How far from a whole number a change of a count may be by the solver's rounding."""


class MoveProofs:
    """Pairs of a `move` within the suppressed cells and a demand that it meets: its `cell` and `sign`.

    Taken `factor` times the move takes the cell to its level. With `whole` only changes in whole numbers count.
    """

    def __init__(
        self, table: "SuppressionTable", suppressed: Booleans, below: Floats, above: Floats, moves: Moves, *,
        whole: bool = False,
    ) -> None:  # fmt: skip
        moves = sorted((move for move in moves if len(move[0])), key=lambda move: len(move[0]))
        self.cells, self.by, self.first = joined(moves)
        self.size = np.diff(self.first, append=len(self.cells))
        self.row = np.repeat(np.arange(len(moves)), self.size)
        least = missed_by(table.additive.base, moves) / RELATION_TOLERANCE
        least[self.row[~suppressed[self.cells] | (self.by == 0)]] = np.inf
        entries = np.flatnonzero((below + above)[self.cells] > 0)
        cell, by, row = self.cells[entries], self.by[entries], self.row[entries]
        forth, back = self._rooms(table)
        pairs = []
        for sign, levels in ((1, above), (-1, below)):
            reach = np.abs(by) * np.where(sign * by > 0, forth[row], back[row])
            met = (reach >= levels[cell] * (1 - LEVEL_TOLERANCE)) & (levels[cell] > 0) & (np.abs(by) >= least[row])
            pairs.append((row[met], cell[met], np.full(int(met.sum()), sign), levels[cell[met]] * sign / by[met]))
        self.move, self.cell, self.sign, self.factor = (np.concatenate(part) for part in zip(*pairs, strict=True))
        self.known: dict[Minds, tuple[Integers, Any, Booleans] | None] = {}
        order = np.argsort(self.move, kind="stable")
        self._keep(order[np.cumsum(self.size[self.move[order]]) <= MAX_TRIPLES])
        if whole and len(self.move):
            owner, _, change = self._changes()
            odd = np.abs(change - np.round(change)) > WHOLE_TOLERANCE
            self._keep(np.setdiff1d(np.arange(len(self.move)), owner[odd]))

    def without(self, cell: int) -> "MoveProofs":
        """The same without the moves that change a cell."""
        fewer = copy(self)
        fewer._keep(np.flatnonzero(np.isin(self.move, self.row[self.cells == cell], invert=True)))
        return fewer

    def _keep(self, pairs: Integers) -> None:
        for name in ("move", "cell", "sign", "factor"):
            setattr(self, name, getattr(self, name)[pairs])
        self.known = {
            minds: None if answer is None else (answer[0], answer[1][pairs], answer[2][pairs])
            for minds, answer in self.known.items()
        }

    def _rooms(self, table: "SuppressionTable") -> tuple[Floats, Floats]:
        """How often each move may be taken, and how often negated."""
        if not len(self.size):
            return np.zeros(0), np.zeros(0)
        up, down, size = table.up[self.cells], table.down[self.cells], np.maximum(np.abs(self.by), 1e-300)
        forth, back = np.where(self.by > 0, up, down) / size, np.where(self.by > 0, down, up) / size
        return np.minimum.reduceat(forth, self.first), np.minimum.reduceat(back, self.first)

    def _changes(self) -> tuple[Integers, Integers, Floats]:
        """For each pair the cells of its move and their change: the number of the pair, the cell, the change."""
        counts = self.size[self.move]
        owner = np.repeat(np.arange(len(counts)), counts)
        places = np.repeat(self.first[self.move] - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
        return owner, self.cells[places], self.by[places] * self.factor[owner]

    def against(self, minds: "Minds") -> dict[tuple[int, int], tuple[bool, frozenset[int]]]:
        """For each demand that some move meets, by cell and sign: True, and against whom it is not proven."""
        if minds not in self.known:
            self.known[minds] = self._touched(minds)
        answer = self.known[minds]
        if answer is None:
            return {}
        people, marks, use = answer
        key = 2 * self.cell + (self.sign > 0)
        order = np.flatnonzero(use)[np.argsort(key[use], kind="stable")]
        if not len(order):
            return {}
        starts = np.flatnonzero(np.diff(key[order], prepend=-1))
        open_to = np.bitwise_and.reduceat(marks[order], starts, axis=0)
        answers = {}
        for number, demand in zip(key[order][starts].tolist(), open_to, strict=True):
            cell, sign, against = number // 2, 1 if number % 2 else -1, NOBODY
            if demand.any():
                who = people[np.flatnonzero(np.unpackbits(demand, count=len(people)))]
                against = frozenset(who.tolist()) - {minds.same(cell)}
            answers[cell, sign] = True, against
        return answers

    def _touched(self, minds: "Minds") -> tuple[Integers, Any, Booleans] | None:
        """Whom some pair touches, for each pair a bit for each of them, and which pairs nobody rules out."""
        owner, cells, change = self._changes()
        answer = minds.touches(cells, change, self.cell[owner])
        if answer is None:
            return None
        member, useless = answer
        use = np.ones(len(self.cell), dtype=np.bool_)
        use[owner[useless]] = False
        people, touched = np.flatnonzero(np.bincount(member[member >= 0])), member >= 0
        marks = np.zeros((len(self.cell), len(people)), dtype=np.bool_)
        marks[owner[touched], np.searchsorted(people, member[touched])] = True
        return people, np.packbits(marks, axis=1), use
