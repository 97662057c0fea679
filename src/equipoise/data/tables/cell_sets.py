"""The sets of records in the cells of linked tables: which are equal, and which are sums of others.

Every unit, a record with what it adds, gets a random number of 128 bits, and cells add up those of their units, each
half modulo 2^64. Equal sums mean equal sets: of m cells two different ones have the same sum with a chance of at most
m^2 / 2^129. The numbers are drawn afresh each time and are never kept.
"""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from equipoise.data.tables.additivity import Additive
from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.ground.errors import DataError
from equipoise.ground.packed_keys import group
from equipoise.ground.solver import Program

if TYPE_CHECKING:
    from equipoise.data.tables.record_sets import Members
    from equipoise.data.tables.table import Table

MAX_PAIRS = 50_000_000
"""Units times pairs of tables up to which sums between pairs of tables are looked for."""
KEY = ["first", "second", "time", "name"]
"""Identity of a cell: its sum in two halves, its number among cells of the table with the same; else its labels."""


@dataclass(frozen=True, eq=False, repr=False)
class Atoms:
    """Unknowns beside the cells of the tables, numbered after them, and the sums that were found.

    Cell `parts[i]` is one of those that add up to `heads[i]`. `values` has those of the `count` new unknowns, not a
    number where what a record adds is not known. `of_unit` is the atom of each unit, where there are atoms.
    """

    heads: Integers
    parts: Integers
    values: Floats
    of_unit: Integers | None = None

    @property
    def count(self) -> int:
        return len(self.values)

    @property
    def pairs(self) -> tuple[Integers, Integers]:
        return self.heads, self.parts

    def relations(self, cells: int) -> Additive:
        import scipy.sparse as sparse

        totals, rows = np.unique(self.heads, return_inverse=True)
        places = np.concatenate([rows, np.arange(len(totals))]), np.concatenate([self.parts, totals])
        signs = np.concatenate([np.ones(len(rows)), -np.ones(len(totals))])
        matrix = sparse.csr_array(sparse.coo_array((signs, places), shape=(len(totals), cells)))
        return Additive(matrix, totals, np.ones(len(totals), dtype=np.bool_))

    def filled(self, values: Floats) -> Floats:
        """The values with those of the atoms; where they are not known, some that add up."""
        values[len(values) - self.count :] = self.values
        unknown = np.flatnonzero(np.isnan(values))
        if len(unknown):
            values[unknown] = self._possible(np.nan_to_num(values), unknown)
        return values

    def _possible(self, values: Floats, unknown: Integers) -> Floats:
        """Values of the unknown atoms, not negative, with which all sums hold: the others' are in column one more."""
        import scipy.sparse as sparse

        matrix = self.relations(len(values)).matrix
        columns = sparse.csr_array(sparse.hstack([matrix[:, unknown], sparse.csr_array((matrix @ values)[:, None])]))
        rows = np.flatnonzero(np.diff(sparse.csr_array(matrix[:, unknown]).indptr))
        low, high = np.zeros(len(unknown) + 1), np.full(len(unknown) + 1, np.inf)
        low[-1] = high[-1] = 1.0
        answer = Program(columns[rows], np.zeros(len(low)), low, high).solve()
        if answer is None:
            raise DataError("Earlier tables of these records do not add up with this one: were their values revised?")
        return np.maximum(answer.values[:-1], 0.0)


@dataclass(frozen=True, eq=False, repr=False)
class CellSets:
    """The sets of the cells of several tables.

    `members` are those of each table, their units numbered alike, and None where its records are not known; `inside`
    has for those that are the matrix of cells by inner cells.
    """

    tables: "tuple[Table, ...]"
    members: "tuple[Members | None, ...]"
    inside: tuple[Any, ...]

    @cached_property
    def linked(self) -> list[int]:
        """The tables whose records are known."""
        return [i for i, one in enumerate(self.members) if one is not None]

    @cached_property
    def units(self) -> int:
        return 1 + max(int(one.units.max(initial=-1)) for one in self.members if one is not None)

    @cached_property
    def numbers(self) -> tuple[Any, Any]:
        """Two random words for each unit."""
        random = np.random.default_rng(secrets.randbits(128))
        return tuple(random.integers(0, 1 << 64, self.units, dtype=np.uint64) for _ in range(2))  # type: ignore

    @cached_property
    def sums_of(self) -> dict[int, tuple[Any, Any, Integers]]:
        """For each linked table the two sums of each cell, and its number of units."""
        return {i: self._sums(i) for i in self.linked}

    def _sums(self, table: int) -> tuple[Any, Any, Integers]:
        one, inside = self.members[table], self.inside[table]
        assert one is not None
        inner = np.flatnonzero(self.tables[table].inner)
        sums = []
        for words in (*self.numbers, np.ones(self.units, dtype=np.uint64)):
            own = np.zeros(len(self.tables[table]), dtype=np.uint64)
            np.add.at(own, one.cells, words[one.units])
            sums.append(_row_sums(inside, own[inner]))
        return sums[0], sums[1], sums[2].astype(np.int64)

    def keys(self, table: int, names: pl.Series) -> pl.DataFrame:
        """The identity of each cell: its set, or its labels where it has no records."""
        first, second, size = self.sums_of[table]
        empty = pl.Series(size == 0)
        frame = pl.DataFrame({"first": first, "second": second, "name": names})
        frame = frame.with_columns(name=pl.when(empty).then("name").otherwise(pl.lit("")))
        return frame.with_columns(time=pl.int_range(pl.len()).over("first", "second", "name")).select(KEY)

    def atoms(self, places: Sequence[Integers], most: int) -> Atoms | None:
        """The classes of units that all tables treat alike, as unknowns; None where there are more than `most`."""
        cells = [self._cell_of_unit(i) for i in self.linked]
        classes, first = group([cell + 1 for cell in cells], [len(self.tables[i]) + 1 for i in self.linked])
        if len(first) > most + sum(len(self.tables[i]) for i in self.linked):
            return None
        number, values = self._places(classes, len(first), places)
        if len(values) > most:
            return None
        heads, parts = [], []
        for i, cell in zip(self.linked, cells, strict=True):
            inside = cell[first] >= 0
            heads.append(places[i][cell[first][inside]])
            parts.append(number[inside])
        return Atoms(*sums_once(heads, parts), values, number[classes])

    def _cell_of_unit(self, table: int) -> Integers:
        one = self.members[table]
        assert one is not None
        cell = np.full(self.units, -1, dtype=np.int64)
        cell[one.units] = one.cells
        return cell

    def _places(self, classes: Integers, count: int, places: Sequence[Integers]) -> tuple[Integers, Floats]:
        """The number of each atom, that of a cell with the same set where there is one; and the values of others."""
        sums = []
        for words in self.numbers:
            sums.append(np.zeros(count, dtype=np.uint64))
            np.add.at(sums[-1], classes, words)
        cells = [pl.DataFrame({"first": self.sums_of[i][0], "second": self.sums_of[i][1], "place": places[i]})
                 .filter(pl.Series(self.sums_of[i][2] > 0)) for i in self.linked]  # fmt: skip
        known = pl.concat(cells).group_by("first", "second").agg(pl.col("place").min())
        atoms = pl.DataFrame({"first": sums[0], "second": sums[1]})
        number = atoms.join(known, on=["first", "second"], how="left", maintain_order="left")["place"]
        new = number.is_null().to_numpy()
        start = 1 + max(int(place.max()) for place in places)
        numbers = number.fill_null(0).to_numpy().copy()
        numbers[new] = start + np.arange(int(new.sum()))
        return numbers, np.asarray(np.bincount(classes, self.values, count), dtype=np.float64)[new]

    @cached_property
    def values(self) -> Floats:
        """What each unit adds; not a number where that is not known."""
        return self._of_units("values", np.nan)

    @property
    def own(self) -> Floats:
        """What of it its contributor knows; not a number where nothing is known of it."""
        return self._of_units("own", np.nan)

    @property
    def owners(self) -> Integers:
        """Who contributes each unit, -1 for records that only could be there."""
        return self._of_units("owners", -1)

    def _of_units(self, part: str, unknown: float) -> Any:
        numbers = np.full(self.units, unknown)
        for one in self.members:
            if one is not None and getattr(one, part) is not None:
                numbers[one.units] = getattr(one, part)
        return numbers

    def sums(self, places: Sequence[Integers]) -> Atoms:
        """Cells of one table that are unions of inner cells of another, where columns of one are groups of another's.

        Whether they are is told by the records: every value of the one lies in one value of the other.
        """
        heads: list[Integers] = []
        parts: list[Integers] = []
        work = 0
        for i, j in self._nested():
            if (work := work + self.units) > MAX_PAIRS:
                break
            inside, size = self.inside[i], self.sums_of[i][2]
            cell, part = _unions(inside @ self._overlaps(i, j), size, self.sums_of[j][2][self.tables[j].inner])
            heads.append(places[i][cell])
            parts.append(places[j][np.flatnonzero(self.tables[j].inner)[part]])
        return Atoms(*sums_once(heads, parts), np.zeros(0))

    def _nested(self) -> list[tuple[int, int]]:
        """Pairs of tables of which a column of the first, or its groups, are groups of values of the second's."""
        levels = [(i, codes, leaf) for i in self.linked for codes, leaf in self._levels(i)]
        kinds = [self._kind(codes) for _, codes, _ in levels]
        distinct = {kind: codes for kind, (_, codes, _) in zip(kinds, levels, strict=True)}
        coarser = {
            (one, two)
            for one, first in distinct.items()
            for two, second in distinct.items()
            if one != two and _refines(second, first)
        }
        return sorted(
            {
                (levels[i][0], levels[j][0])
                for i, one in enumerate(kinds)
                for j, two in enumerate(kinds)
                if levels[i][0] != levels[j][0] and levels[j][2] and (one, two) in coarser
            }
        )

    def _levels(self, table: int) -> Iterator[tuple[Integers, bool]]:
        """The value of each unit in each column of a table, and its groups; -1 for units that it has not."""
        cell, own = self._cell_of_unit(table), self.tables[table]
        for axis, nodes in zip(own.axes, own.nodes, strict=True):
            leaf_of = np.full(len(axis), -1, dtype=np.int64)
            leaf_of[axis.places] = np.arange(axis.leaves)
            leaf = leaf_of[nodes[cell]]
            for chain in axis.chains:
                for depth, step in enumerate(chain[:-1]):
                    yield np.where(cell < 0, -1, step[leaf]), depth == 0

    def _kind(self, codes: Integers) -> int:
        """A number that tells partitions of the units apart: the same whatever its parts are called."""
        sums = np.zeros(codes.max() + 2, dtype=np.uint64)
        np.add.at(sums, codes + 1, self.numbers[0])
        return hash(tuple(np.sort(sums[1:][sums[1:] > 0]).tolist()))

    def _overlaps(self, one: int, two: int) -> Any:
        """How many units each inner cell of a table has in common with each of another."""
        import scipy.sparse as sparse

        first, second = (self._cell_of_unit(i) for i in (one, two))
        both = (first >= 0) & (second >= 0)
        inner = [_inner_numbers(self.tables[i]) for i in (one, two)]
        places = inner[0][first[both]], inner[1][second[both]]
        shape = tuple(int(self.tables[i].inner.sum()) for i in (one, two))
        return sparse.csr_array(sparse.coo_array((np.ones(int(both.sum())), places), shape=shape))


def _refines(fine: Integers, coarse: Integers) -> bool:
    """Whether every part of one partition lies in one part of another; units that either lacks do not count."""
    both = (fine >= 0) & (coarse >= 0)
    size = int(coarse.max()) + 1
    pairs = np.bincount(fine[both] * size + coarse[both], minlength=1)
    return bool(both.any()) and np.count_nonzero(pairs) == len(np.unique(fine[both]))


def _inner_numbers(table: "Table") -> Integers:
    return np.cumsum(table.inner) - 1


def _unions(common: Any, size: Integers, other: Integers) -> tuple[Integers, Integers]:
    """Cells whose units are those of two or more whole cells of the other table, with these."""
    common = common.tocoo()
    rows, columns = common.row, common.col
    broken: Booleans = np.zeros(len(size), dtype=np.bool_)
    broken[rows[common.data != other[columns]]] = True
    broken |= np.bincount(rows, common.data, len(size)) != size
    broken |= np.bincount(rows, minlength=len(size)) < 2
    whole = ~broken[rows]
    return rows[whole], columns[whole]


def sums_once(heads: Sequence[Integers], parts: Sequence[Integers]) -> tuple[Integers, Integers]:
    """The sums of all tables, each set of parts of a cell once, without cells that are their own only part."""
    seen: set[int] = set()
    kept: list[tuple[Integers, Integers]] = []
    for head, part in zip(heads, parts, strict=True):
        new = (head != part) & ~np.isin(head, np.fromiter(seen, dtype=np.int64, count=len(seen)))
        kept.append((head[new], part[new]))
        seen.update(np.unique(head[new]).tolist())
    nothing = np.zeros(0, dtype=np.int64)
    return np.concatenate([nothing, *(h for h, _ in kept)]), np.concatenate([nothing, *(p for _, p in kept)])


def _row_sums(matrix: Any, words: Any) -> Any:
    """For each row of a 0/1 matrix the sum of the words of its columns, modulo 2^64."""
    gathered = np.concatenate([words[matrix.indices], np.zeros(1, dtype=np.uint64)])
    sums = np.add.reduceat(gathered, np.minimum(matrix.indptr[:-1], len(gathered) - 1))
    return np.where(np.diff(matrix.indptr) > 0, sums, np.uint64(0))
