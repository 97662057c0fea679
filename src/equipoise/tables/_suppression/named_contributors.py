"""What contributors know of linked tables whose records are known: each by what it has in every class of records.

With x_a the sum of class a and c_a what a contributor has in it: y_a = 0 where nobody else is in the class, else
y_a >= -(x_a - c_a). A coalition knows the classes that nobody else is in than its members, and c_a is what they have
in the others together.
"""

import numpy as np

from equipoise.data.tables.contributors import Contributors
from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.tables._suppression.cheapest_move import TableMove
from equipoise.tables._suppression.feasible_moves import Component
from equipoise.tables._suppression.insiders import Members
from equipoise.tables._suppression.problem import SuppressionTable, typical

FLOOR_TOLERANCE = 1e-9
"""Share of a cell by which a move may go below what somebody has in it: the solver's rounding."""


class NamedContributors:
    """The `chosen` contributors, up to `size` of them together, who pool what they know.

    `sharing` are those who also know what they have in classes with others: all of them unless given.
    """

    def __init__(
        self, table: SuppressionTable, people: Contributors, chosen: Booleans, size: int = 1,
        sharing: Booleans | None = None,
    ) -> None:  # fmt: skip
        self.table, self.contributors, self.size = table, people, size
        self.chosen = chosen[people.owner]
        self.sharing = self.chosen if sharing is None else self.chosen & sharing[people.owner]
        self.whole = self.chosen & (people.many[people.atom] <= size)
        self.amount = np.where(people.many[people.atom] == 1, table.values[people.atom], people.amount)
        self.known = np.where((people.sole >= 0) & chosen[people.sole], people.sole, -1)
        self.slack = FLOOR_TOLERANCE * np.maximum(typical(np.abs(table.values)), np.abs(table.values))
        self.room = table.values.copy() + np.inf
        self.knowing: dict[int, tuple[TableMove, Members]] = {}
        self.pooled = self._coalition_amounts() if size > 1 else self.amount
        shared = self.sharing & ~self.whole & (self.amount > 0)
        np.minimum.at(self.room, people.atom[shared], np.maximum(self._rest(shared), 0.0))

    def _coalition_amounts(self) -> Floats:
        """What each has in a class together with the largest others of a coalition."""
        atom, amount = self.contributors.atom, np.where(self.sharing, self.amount, 0.0)
        order = np.lexsort((-amount, atom))
        starts = np.flatnonzero(np.diff(atom[order], prepend=-1))
        rank = np.empty(len(atom), dtype=np.int64)
        rank[order] = np.arange(len(atom)) - np.repeat(starts, np.diff(starts, append=len(atom)))
        sums, last = (np.zeros(self.table.cells) for _ in range(2))
        np.add.at(sums, atom[rank < self.size], amount[rank < self.size])
        last[atom[rank == self.size - 1]] = amount[rank == self.size - 1]
        return np.asarray(np.where(rank < self.size, sums[atom], sums[atom] - last[atom] + amount), dtype=np.float64)

    def _rest(self, entries: "Booleans | Integers") -> Floats:
        """What of the atoms of some entries is not their contributors', nor of others who pool with them."""
        return np.asarray(self.table.values[self.contributors.atom[entries]] - self.pooled[entries], dtype=np.float64)

    def _numbers(self, owners: Members) -> Integers:
        return np.fromiter(sorted(owners), dtype=np.int64, count=len(owners))

    def members(self, component: Component) -> Members:
        entries = self.contributors.entries_in(component.cells)
        tells = self.whole[entries] | (self.sharing[entries] & (self.amount[entries] > 0))
        knowers = self.known[component.cells] if self.size == 1 else np.zeros(0, dtype=np.int64)
        return frozenset(self.contributors.owner[entries[tells]].tolist()) | frozenset(knowers[knowers >= 0].tolist())

    def same(self, cell: int) -> int:
        return int(self.contributors.sole[cell])

    def matter(self, cell: int, component: Component, members: Members) -> bool:
        return len(members) > int(self.same(cell) in members)

    def all_at_once(self) -> tuple[Integers, Floats | None, Floats | None]:
        if self.size == 1:
            return self.known, self.room, None
        certain = self.known.copy()
        certain[self.contributors.atom[self.whole]] = self.contributors.owner[self.whole]
        return certain, self.room, None

    def touched(self, move: TableMove, by: Floats, cell: int) -> Members | None:
        owners = self._knowing(move)
        low = (by < -self.room[move.cells] - self.slack[move.cells]) & (move.cells != cell)
        if not low.any():
            return owners
        order = np.argsort(move.cells[low])
        cells, change = move.cells[low][order], by[low][order]
        entries = self.contributors.entries_in(cells)
        at = self.contributors.atom[entries]
        far = change[np.searchsorted(cells, at)] < -self._rest(entries) - self.slack[at]
        return owners | frozenset(self.contributors.owner[entries[far & self.sharing[entries]]].tolist())

    def touches(self, cells: Integers, by: Floats, targets: Integers) -> None:
        """A cell has several contributors: a move is looked at whole."""

    def _knowing(self, move: TableMove) -> Members:
        """Those who know one of the cells that a move changes, alone or with so many others as pool."""
        if id(move) not in self.knowing:
            sole = self.known[move.cells]
            owners = frozenset(sole[sole >= 0].tolist())
            if self.size > 1:
                changes = self.contributors.entries_in(np.sort(move.cells))
                owners |= frozenset(self.contributors.owner[changes[self.whole[changes]]].tolist())
            self.knowing[id(move)] = move, owners
        return self.knowing[id(move)][1]

    def still(self, members: Members) -> Integers:
        numbers = self._numbers(members)
        entries = self.contributors.entries_of(numbers)
        atoms, many = np.unique(self.contributors.atom[entries[self.whole[entries]]], return_counts=True)
        sole = np.flatnonzero((self.known >= 0) & np.isin(self.known, numbers))
        return np.union1d(atoms[many == self.contributors.many[atoms]], sole)

    def floor(self, members: Members, cells: Integers, cell: int) -> Floats | None:
        rooms = np.full(self.table.cells, np.inf)
        entries = self.contributors.entries_of(self._numbers(members))
        entries = entries[self.sharing[entries]]
        atom, rest = self.contributors.atom[entries], self._rest(entries)
        if 1 < len(members) <= self.size:
            together = np.bincount(atom, self.amount[entries], self.table.cells)
            rest = self.table.values[atom] - together[atom]
        np.minimum.at(rooms, atom, np.maximum(rest, 0.0))
        return np.where(cells == cell, np.inf, rooms[cells])

    def own(self, cell: int, members: Members) -> float:
        entries = self.contributors.entries_inside(cell)
        inside = np.isin(self.contributors.owner[entries], self._numbers(members))
        return min(float(self.amount[entries[inside]].sum()), float(self.table.values[cell]))

    def theirs(self, cell: int, members: Members) -> bool:
        """Whether nobody else is in the cell."""
        return members.issuperset(self.contributors.owner[self.contributors.entries_inside(cell)].tolist())

    def people(self, members: Members) -> int:
        return len(members)
