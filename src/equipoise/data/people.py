"""People in cells, where several records are of one person: stays of a patient, waves of a panel."""

from dataclasses import dataclass

import numpy as np

from equipoise.ground.arrays import Integers
from equipoise.ground.packed_keys import Cube

MIN_EQUAL_SHARE = 0.5
"""Share of the people (households) with several values of a key who have one only, from which on others tell it."""
MIN_HOUSEHOLD_SHARE = 0.99
"""Share of the households with several values in which all are equal, from which on a key is that of the dwelling."""


@dataclass(frozen=True, eq=False, repr=False)
class People:
    """Which people are in which cells: a pair of numbers for each cell and each person who has a record in it.

    >>> People.of(np.array([0, 0, 1]), np.array([7, 7, 7])).moved(np.array([0, 0])).cells.tolist()
    [0]
    """

    cells: Integers
    persons: Integers

    @classmethod
    def of(cls, cells: Integers, persons: Integers) -> "People":
        """From the cell and the person of each record. O(records log records)."""
        size = int(persons.max(initial=0)) + 1
        pairs = np.unique(cells.astype(np.int64) * size + persons)
        return cls(pairs // size, pairs % size)

    def moved(self, places: Integers) -> "People":
        """After cells are added up: `places` is the new cell of each old one."""
        return People.of(places[self.cells], self.persons)

    def only(self, rows: Integers) -> "People":
        """The people of some of the cells, these numbered in the order of `rows`."""
        places = np.full(int(self.cells.max(initial=0)) + 1, -1)
        places[rows] = np.arange(len(rows))
        inside = places[self.cells] >= 0
        return People.of(places[self.cells[inside]], self.persons[inside])

    def counts(self, cube: Cube) -> Integers:
        """The people in each cell among whom an intruder cannot choose who knows one of their records.

        Where a key of the person (sex, place of birth) is blank in a cell, people who show it in another record can be
        told apart, and are not counted: at least one person is.
        """
        return np.maximum(np.bincount(self.cells[self.hidden(cube)], minlength=len(cube)), 1)

    def hidden(self, cube: Cube) -> Integers:
        """Which pairs are those of people who are not told apart by a key that they show elsewhere."""
        hidden = np.ones(len(self.cells), dtype=np.bool_)
        for axis, values in enumerate(cube.axes):
            if values.null_count():
                hidden &= ~self._shown_elsewhere(cube.codes[axis][self.cells])
        return hidden

    def _shown_elsewhere(self, codes: Integers) -> Integers:
        """Which pairs lack a key of the person that another record of the person has."""
        shown, size = codes > 0, int(self.persons.max(initial=0)) + 1
        low, high = np.full(size, np.iinfo(np.int64).max), np.zeros(size, dtype=np.int64)
        np.minimum.at(low, self.persons[shown], codes[shown])
        np.maximum.at(high, self.persons[shown], codes[shown])
        several = np.bincount(self.persons[shown], minlength=size) > 1
        if several.any() and (low[several] == high[several]).mean() < MIN_EQUAL_SHARE:
            return np.zeros(len(codes), dtype=np.bool_)
        return ~shown & (high[self.persons] > 0)
