"""The cheapest blanks as a program in whole numbers: how many records of each cell are released as which row.

For cell c and set of keys S, x[c, S] records lose S; a class g that is used, y[g] = 1, has at least k of them:

    min sum price(S) x[c, S]   with   sum over S of x[c, S] = n[c],   sum over the rows of g >= k y[g],
                                      x[c, S] <= n[c] y[g],   blanks of each key <= its cap.

The linear relaxation is nearly always whole, so that files of a hundred records take a fraction of a second. Sets of
keys are left out where a class could not have k records, or where all who could be in it agree on a key of the set.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import EngineError
from equipoise.ground.solver import Program, Solution
from equipoise.masks._local_suppression.joining import member
from equipoise.masks._local_suppression.problem import FREE
from equipoise.masks._local_suppression.released_rows import ReleasedRows, Shares


@dataclass(frozen=True, eq=False, repr=False)
class Choices:
    """The rows that records may be released as: a column of the program for each cell (a place) and mask.

    `many` records of each of the `cells` are placed. Of cells that are at `home` at least k others stay as they are;
    classes in `open` (ordered) have k others. `demands` are the sets of keys, as bits, on which classes are
    counted, and the records asked for.
    """

    rows: ReleasedRows
    cells: Integers
    many: Integers
    home: Integers
    open: Integers
    demands: tuple[tuple[int, int], ...]
    cell: Integers
    masks: Integers

    @classmethod
    def of(
        cls, rows: ReleasedRows, cells: Integers, many: Integers, masks: Integers, *, home: Integers | None = None,
        open_classes: Integers | None = None, demands: tuple[tuple[int, int], ...] = (), most: Floats | None = None,
    ) -> "Choices":  # fmt: skip
        """All masks for all cells, up to a price for each, without those that cannot be part of a cheapest way."""
        whole = (1 << rows.keys) - 1
        cell, mask = (part.ravel() for part in np.meshgrid(np.arange(len(cells)), masks, indexing="ij"))
        mask = mask & rows.present[cells[cell]]
        columns = np.unique(cell << rows.keys | mask)
        if most is not None:
            columns = columns[rows.priced(columns & whole) <= most[columns >> rows.keys]]
        at_home = np.zeros(len(cells), dtype=np.bool_) if home is None else home
        classes = np.zeros(0, dtype=np.int64) if open_classes is None else open_classes
        choices = cls(
            rows, cells, many, at_home, classes, demands or ((whole, rows.k),), columns >> rows.keys, columns & whole
        )._feasible()
        return choices._undominated()._feasible() if choices.demands == ((whole, rows.k),) else choices

    def __len__(self) -> int:
        return len(self.cell)

    def _only(self, columns: Integers) -> "Choices":
        return Choices(
            self.rows, self.cells, self.many, self.home, self.open, self.demands,
            self.cell[columns], self.masks[columns],
        )  # fmt: skip

    @cached_property
    def classes(self) -> list[tuple[Integers, Integers]]:
        """For each demand the class of each column, and which classes need no others."""
        pairs = []
        for demand, _ in self.demands:
            outside = ((1 << self.rows.keys) - 1) & ~demand
            values, ids = np.unique(self.rows.ids(self.cells[self.cell], self.masks | outside), return_inverse=True)
            ready = member(values, self.open)
            ready[ids[self.home[self.cell] & (self.masks == 0)]] = True
            pairs.append((ids, ready))
        return pairs

    def _feasible(self) -> "Choices":
        """Without columns whose class could not have k records, or only lent ones, again until none is left."""
        good = np.ones(len(self), dtype=np.bool_)
        for (ids, ready), (_, k) in zip(self.classes, self.demands, strict=True):
            wanted = np.bincount(ids, ~self.home[self.cell], len(ready)) > 0
            good &= (ready | (wanted & (np.bincount(ids, self.many[self.cell], len(ready)) >= k)))[ids]
        return self if good.all() else self._only(good)._feasible()

    def _undominated(self) -> "Choices":
        """Without columns of classes in which all agree on a key that is blanked."""
        ids, ready = self.classes[0]
        agree = np.zeros(len(ready), dtype=np.bool_)
        for key, codes in enumerate(self.rows.codes):
            own = codes[self.cells[self.cell]]
            low, high = np.full(len(ready), FREE), np.zeros(len(ready), dtype=np.int64)
            np.minimum.at(low, ids, own)
            np.maximum.at(high, ids, own)
            blanked = np.bincount(ids, self.masks >> key & 1, len(ready)) > 0
            agree |= blanked & (low == high)
        return self._only(~(agree & ~ready)[ids])

    def best(self, start: Shares | None, room: Integers, nodes: int) -> "Answer | None":
        """The cheapest way within the room, at best `start` where the search ends early; None where there is none."""
        if not len(self):
            return None
        program = self._program(room)
        program.whole(np.arange(program.columns), nodes=nodes)
        if start is not None and (values := self._values(start)) is not None:
            program.suggest(values)
        try:
            solution = program.solve()
        except EngineError:
            return None
        return None if solution is None else self._answer(solution, program.work)

    def _answer(self, solution: Solution, work: int) -> "Answer":
        many = np.rint(solution.values[: len(self)]).astype(np.int64)
        used = np.flatnonzero((many > 0) & (self.masks != 0))
        shares = Shares(self.cells[self.cell[used]], self.masks[used], many[used])
        return Answer(shares, solution.bound, solution.complete, work)

    def _links(self) -> tuple[Integers, Integers, Floats]:
        """Columns and the classes that they need used, numbered over all demands, and the records of each of these."""
        columns, classes, least, last = [], [], [], 0
        for (ids, ready), (_, k) in zip(self.classes, self.demands, strict=True):
            number = np.cumsum(~ready) - 1 + last
            needing = np.flatnonzero(~ready[ids])
            columns.append(needing)
            classes.append(number[ids[needing]])
            least.append(np.full(int((~ready).sum()), float(k)))
            last += len(least[-1])
        return np.concatenate(columns), np.concatenate(classes), np.concatenate(least)

    def _program(self, room: Integers) -> Program:
        import scipy.sparse as sparse

        columns, classes, least = self._links()
        used = len(least)
        x, links, many = len(self), len(columns), self.many.astype(np.float64)
        tight = np.flatnonzero(room < FREE)

        def matrix(values: Any, row: Any, column: Any, height: int) -> Any:
            return sparse.csc_array((values, (row, column)), shape=(height, x + used))

        placed = matrix(np.ones(x), self.cell, np.arange(x), len(many))
        size = matrix(np.ones(links), classes, columns, used)
        size -= matrix(least, np.arange(used), x + np.arange(used), used)
        linked = matrix(many[self.cell[columns]], np.arange(links), x + classes, links)
        linked -= matrix(np.ones(links), np.arange(links), columns, links)
        key, column = np.nonzero((self.masks[None, :] >> tight[:, None]) & 1)
        capped = matrix(np.ones(len(key)), key, column, len(tight))
        below = np.concatenate([many, np.zeros(used + links), np.full(len(tight), -np.inf)])
        above = np.concatenate([many, np.full(used + links, np.inf), room[tight]])
        high = np.concatenate([many[self.cell], np.ones(used)])
        cost = np.concatenate([self.rows.priced(self.masks), np.zeros(used)])
        rows = sparse.vstack([placed, size, linked, capped], format="csc")
        return Program(rows, cost, np.zeros(x + used), high, below, above)

    def _values(self, start: Shares) -> Floats | None:
        """A way to begin from as values of the columns; None where it uses others."""
        numbers = self.cell << self.rows.keys | self.masks
        place = np.searchsorted(self.cells, start.cells)
        own = place << self.rows.keys | (start.masks & self.rows.present[start.cells])
        spots = np.minimum(np.searchsorted(numbers, own), len(numbers) - 1)
        if (numbers[spots] != own).any():
            return None
        columns, classes, least = self._links()
        values = np.zeros(len(self) + len(least))
        np.add.at(values, spots, start.many)
        staying = np.searchsorted(numbers, np.arange(len(self.cells)) << self.rows.keys)
        rest = self.many - np.bincount(self.cell, values[: len(self)], len(self.cells)).astype(np.int64)
        some = np.flatnonzero(rest)
        staying = np.minimum(staying, len(numbers) - 1)[some]
        if (rest < 0).any() or (numbers[staying] != some << self.rows.keys).any():
            return None
        values[staying] += rest[some]
        values[len(self) + classes[values[columns] > 0]] = 1
        return values


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """Blanks, the least cost that is proven, whether it is reached, and the work done."""

    shares: Shares
    bound: float
    complete: bool
    work: int
