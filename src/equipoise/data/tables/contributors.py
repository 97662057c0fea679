"""Who contributes to the cells of linked tables: contributors and holdings, with what each has in a class of records.

The classes are the atoms of `linked_tables`: records that all tables treat alike. A contributor knows an atom that
nobody else is in, and of others that they are at least what it has in them; what it knows of cells follows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.ground.arrays import Booleans, Floats, Integers

if TYPE_CHECKING:
    from equipoise.data.tables.cell_sets import CellSets


@dataclass(frozen=True, eq=False, repr=False)
class Contributors:
    """Contributor `owner[i]` has `amount[i]` in the atom `atom[i]`, by atom; rows of `inside` are the atoms of a cell.

    `absent` says that of some records nothing but the cell is known, for they are in earlier tables alone: of what
    these add their contributors are taken to know nothing, unless they are alone.
    """

    atom: Integers
    owner: Integers
    amount: Floats
    inside: Any
    absent: bool

    @classmethod
    def of(cls, sets: "CellSets", places: Sequence[Integers], of_unit: Integers, cells: int) -> "Contributors":
        """From the sets of the tables, the number of each cell, and the atom of each unit. O(records x depths)."""
        import scipy.sparse as sparse

        real = np.flatnonzero(sets.owners >= 0)
        people, owner = np.unique(sets.owners[real], return_inverse=True)
        own = sets.own[real]
        pairs, place = np.unique(of_unit[real] * len(people) + owner, return_inverse=True)
        identified = np.where(np.isnan(own) | (np.nanmin(own, initial=0.0) < 0), 0.0, own)
        atom, number = np.divmod(pairs, len(people))
        inside = sparse.csr_array((cells, cells))
        for i in sets.linked:
            one, table = sets.members[i], sets.tables[i]
            assert one is not None
            shape = (int(table.inner.sum()), cells)
            spots = (np.cumsum(table.inner) - 1)[one.cells], of_unit[one.units]
            parts = sets.inside[i] @ sparse.csr_array(sparse.coo_array((np.ones(len(spots[0])), spots), shape=shape))
            rows = sparse.coo_array(parts)
            inside = inside + sparse.csr_array(
                sparse.coo_array((np.ones(rows.nnz), (places[i][rows.row], rows.col)), shape=(cells, cells))
            )
        atoms = np.unique(of_unit)
        itself = sparse.coo_array((np.ones(len(atoms)), (atoms, atoms)), shape=(cells, cells))
        amounts = np.asarray(np.bincount(place, identified, len(pairs)), dtype=np.float64)
        return cls(atom, number, amounts, sparse.csr_array(inside + itself), bool(np.isnan(own).any()))

    @cached_property
    def people(self) -> int:
        return int(self.owner.max(initial=-1)) + 1

    @cached_property
    def many(self) -> Integers:
        """How many contribute to each atom; 0 for cells that are none."""
        return np.bincount(self.atom, minlength=self.inside.shape[0])

    @cached_property
    def sole(self) -> Integers:
        """The only contributor to each cell and atom, -1 where there are several, or none."""
        first = np.full(self.inside.shape[0], self.people)
        last = np.full(self.inside.shape[0], -1)
        np.minimum.at(first, self.atom, self.owner)
        np.maximum.at(last, self.atom, self.owner)
        row = np.repeat(np.arange(len(first)), np.diff(self.inside.indptr))
        least, most = np.full(len(first), self.people), np.full(len(first), -1)
        np.minimum.at(least, row, first[self.inside.indices])
        np.maximum.at(most, row, last[self.inside.indices])
        return np.where(least == most, least, -1)

    @cached_property
    def largest(self) -> Floats:
        """What the largest contributor to each atom has in it."""
        largest = np.zeros(self.inside.shape[0])
        np.maximum.at(largest, self.atom, self.amount)
        return largest

    @cached_property
    def _by_owner(self) -> tuple[Integers, Integers]:
        order = np.argsort(self.owner, kind="stable")
        return order, np.searchsorted(self.owner[order], np.arange(self.people + 1))

    def entries_in(self, atoms: Integers) -> Integers:
        """The entries of some atoms, which need not be any."""
        start, end = (np.searchsorted(self.atom, atoms, side=side) for side in ("left", "right"))
        return _ranges(start, end)

    def entries_of(self, owners: Integers) -> Integers:
        """The entries of some contributors."""
        order, start = self._by_owner
        return order[_ranges(start[owners], start[owners + 1])]

    def entries_inside(self, cell: int) -> Integers:
        """The entries of the atoms of a cell."""
        matrix = self.inside
        return self.entries_in(matrix.indices[matrix.indptr[cell] : matrix.indptr[cell + 1]])

    def alone_in(self, cells: Booleans) -> Booleans:
        """Who is alone in one of these cells."""
        alone = np.zeros(self.people, dtype=np.bool_)
        alone[self.sole[cells & (self.sole >= 0)]] = True
        return alone


def _ranges(start: Integers, end: Integers) -> Integers:
    """All numbers from each start up to before its end."""
    size = end - start
    return np.repeat(end - np.cumsum(size), size) + np.arange(int(size.sum()))
