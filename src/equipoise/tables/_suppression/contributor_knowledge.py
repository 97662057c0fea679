"""What each kind of contributors knows of a table beyond what is published: alone in cells, or among others.

Somebody who is alone in cells K knows them: y = 0 on K. Somebody who contributes c to an inner cell a among others
knows x_a >= c: y_a >= -(x_a - c).
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

import numpy as np

from equipoise.data.cells import may_be_negative
from equipoise.data.tables.table_arrays import holds
from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.tables._suppression.cheapest_move import TableMove
from equipoise.tables._suppression.feasible_moves import NO_CELLS, Component
from equipoise.tables._suppression.named_contributors import FLOOR_TOLERANCE, NamedContributors
from equipoise.tables._suppression.problem import SuppressionTable, typical

if TYPE_CHECKING:
    from equipoise.data.tables.linked_tables import Union

Members = frozenset[int]


class Minds(Protocol):
    """What one kind of contributors know, each by a number.

    `members` are those who know something of a component, `same` is the one (-1: nobody) against whom a cell is not
    asked about, because it is his own. `all_at_once` is what all of them know together: whose each cell is (-1:
    nobody's), how far each may fall at most in the eyes of all, and in those of its knower (None: it is still).
    `touches` says of changes of cells, each in a move of its target, who knows better (-1: nobody), and which changes
    all of them rule out; None where that takes more than the changes one by one.
    """

    def members(self, component: Component) -> Members: ...
    def same(self, cell: int) -> int: ...
    def matter(self, cell: int, component: Component, members: Members) -> bool: ...
    def touched(self, move: TableMove, by: Floats, cell: int) -> Members | None: ...
    def touches(self, cells: Integers, by: Floats, targets: Integers) -> tuple[Integers, Booleans] | None: ...
    def still(self, members: Members) -> Integers: ...
    def floor(self, members: Members, cells: Integers, cell: int) -> Floats | None: ...
    def own(self, cell: int, members: Members) -> float: ...
    def people(self, members: Members) -> int: ...
    def theirs(self, cell: int, members: Members) -> bool: ...
    def all_at_once(self) -> tuple[Integers, Floats | None, Floats | None]: ...


class Inside:
    """The inner cells of each cell of linked tables."""

    def __init__(self, union: "Union") -> None:
        self.parts = [holds(table) for table in union.tables]
        self.inner = [
            place[np.flatnonzero(table.inner)] for table, place in zip(union.tables, union.places, strict=True)
        ]
        self.rows = [np.full(union.cells, -1, dtype=np.int64) for _ in union.tables]
        for row, place in zip(self.rows, union.places, strict=True):
            row[place] = np.arange(len(place))

    def of(self, cell: int) -> Iterator[Integers]:
        """The inner cells of a cell, in each table that has it."""
        for part, inner, rows in zip(self.parts, self.inner, self.rows, strict=True):
            if (row := int(rows[cell])) >= 0:
                yield inner[part.indices[part.indptr[row] : part.indptr[row + 1]]]


class AloneInCells:
    """Contributors and holdings who are alone in cells: `knower` says who, -1 where nobody is.

    `few` says how many they are in an inner cell that they know when all of them are in the coalition (0: that is not
    asked). With `least`, what the largest contributor of each cell has in it, they know of every other cell that it is
    at least that: more than any one of them can know, for a table does not say who the largest of its cells are.
    """

    def __init__(
        self, table: SuppressionTable, knower: Integers, inside: Inside, least: Floats | None = None,
        few: Integers | None = None,
    ) -> None:  # fmt: skip
        shared = np.flatnonzero(few > 1) if few is not None else NO_CELLS
        first = int(knower.max(initial=-1)) + 1
        knower = knower.copy()
        knower[shared] = first + np.arange(len(shared))
        self.table, self.knower, self.inside, self.least = table, knower, inside, least
        self.seats = dict(zip(knower[shared].tolist(), few[shared].tolist(), strict=True)) if few is not None else {}
        self.known = np.flatnonzero(knower >= 0)
        self.unit = typical(np.abs(table.values))

    def members(self, component: Component) -> Members:
        numbers = self.knower[component.cells]
        return frozenset(numbers[numbers >= 0].tolist())

    def same(self, cell: int) -> int:
        return int(self.knower[cell])

    def matter(self, cell: int, component: Component, members: Members) -> bool:
        among = self.least is not None and bool((self.least[component.cells[component.cells != cell]] > 0).any())
        return among or len(members) > int(self.same(cell) in members)

    def all_at_once(self) -> tuple[Integers, Floats | None, Floats | None]:
        return self.knower, None if self.least is None else self._room(np.arange(len(self.knower))), None

    def touched(self, move: TableMove, by: Floats, cell: int) -> Members | None:
        members, ruled_out = self.touches(move.cells, by, np.array(cell))
        return None if ruled_out.any() else frozenset(members[members >= 0].tolist())

    def touches(self, cells: Integers, by: Floats, targets: Integers) -> tuple[Integers, Booleans]:
        if self.least is None:
            return self.knower[cells], np.zeros(len(cells), dtype=np.bool_)
        slack = FLOOR_TOLERANCE * np.maximum(self.unit, self.table.values[cells])
        return self.knower[cells], (by < -self._room(cells) - slack) & (cells != targets)

    def still(self, members: Members) -> Integers:
        return self.known[np.isin(self.knower[self.known], list(members))]

    def floor(self, members: Members, cells: Integers, cell: int) -> Floats | None:
        if self.least is None:
            return None
        return np.where(cells == cell, np.inf, self._room(cells))

    def own(self, cell: int, members: Members) -> float:
        return max(
            (float(self.table.values[c[np.isin(self.knower[c], list(members))]].sum()) for c in self.inside.of(cell)),
            default=0.0,
        )

    def people(self, members: Members) -> int:
        return sum(self.seats.get(one, 1) for one in members)

    def theirs(self, cell: int, members: Members) -> bool:
        """Whether nobody else is in the cell."""
        known = list(members)
        return any(
            bool((np.isin(self.knower[inner], known) | ~self.table.movable[inner]).all())
            for inner in self.inside.of(cell)
        )

    def _room(self, cells: Integers) -> Floats:
        assert self.least is not None
        return np.maximum(self.table.values[cells] - self.least[cells], 0.0)


class Nobody:
    """An outsider: one who knows nothing of his own."""

    def members(self, component: Component) -> Members:
        return frozenset()

    def same(self, cell: int) -> int:
        return -1

    def matter(self, cell: int, component: Component, members: Members) -> bool:
        return True

    def all_at_once(self) -> tuple[Integers, Floats | None, Floats | None]:
        return NO_CELLS, None, None

    def touched(self, move: TableMove, by: Floats, cell: int) -> Members | None:
        return frozenset()

    def touches(self, cells: Integers, by: Floats, targets: Integers) -> tuple[Integers, Booleans]:
        return np.full(len(cells), -1), np.zeros(len(cells), dtype=np.bool_)

    def still(self, members: Members) -> Integers:
        return NO_CELLS

    def floor(self, members: Members, cells: Integers, cell: int) -> Floats | None:
        return None

    def own(self, cell: int, members: Members) -> float:
        return 0.0

    def people(self, members: Members) -> int:
        return 0

    def theirs(self, cell: int, members: Members) -> bool:
        return False


class AmongOthers:
    """One of several contributors to an inner cell who knows what he has in it: `least`, of the largest of them.

    Who has less knows less. Exact where every contributor is in one inner cell alone.
    """

    def __init__(self, table: SuppressionTable, least: Floats, inside: Inside) -> None:
        self.table, self.least, self.inside = table, least, inside
        self.unit = typical(np.abs(table.values))

    def members(self, component: Component) -> Members:
        return frozenset(component.cells[self.least[component.cells] > 0].tolist())

    def same(self, cell: int) -> int:
        return cell

    def matter(self, cell: int, component: Component, members: Members) -> bool:
        return len(members) > int(cell in members)

    def all_at_once(self) -> tuple[Integers, Floats | None, Floats | None]:
        room = np.maximum(self.table.values - self.least, 0.0)
        return np.where(self.least > 0, np.arange(len(room)), -1), None, room

    def touched(self, move: TableMove, by: Floats, cell: int) -> Members | None:
        members, _ = self.touches(move.cells, by, np.array(cell))
        return frozenset(members[members >= 0].tolist())

    def touches(self, cells: Integers, by: Floats, targets: Integers) -> tuple[Integers, Booleans]:
        least, value = self.least[cells], self.table.values[cells]
        slack = FLOOR_TOLERANCE * np.maximum(self.unit, value)
        short = (least > 0) & (by < -(value - least) - slack) & (cells != targets)
        return np.where(short, cells, -1), np.zeros(len(cells), dtype=np.bool_)

    def still(self, members: Members) -> Integers:
        return NO_CELLS

    def floor(self, members: Members, cells: Integers, cell: int) -> Floats | None:
        known = np.isin(cells, list(members))
        return np.where(known, np.maximum(self.table.values[cells] - self.least[cells], 0.0), np.inf)

    def own(self, cell: int, members: Members) -> float:
        return max((float(self.least[c[np.isin(c, list(members))]].sum()) for c in self.inside.of(cell)), default=0.0)

    def people(self, members: Members) -> int:
        return len(members)

    def theirs(self, cell: int, members: Members) -> bool:
        return False


def kinds_of(
    union: "Union", table: SuppressionTable, suppressed: Booleans, coalition: int = 1
) -> dict[str, tuple[Minds, int]]:
    """Everybody who contributes, by kind, and how many of them pool; the kinds that the tables tell about."""
    if not counted(union):
        return {}
    if union.contributors is not None:
        return _named(union, table, suppressed, coalition)
    knower, inside, least = np.where(suppressed, union.knowers, -1), Inside(union), least_known(union)
    kinds: dict[str, tuple[Minds, int]] = {"lone contributor": (AloneInCells(table, knower, inside), 1)}
    if least is not None:
        several = same_contributors(union)
        kinds["contributor"] = (
            AloneInCells(table, knower, inside, least) if several else AmongOthers(table, least, inside),
            1,
        )
    if coalition > 1:
        few = np.where(suppressed, few_together(union, coalition), 0)
        pooled = least_known(union, coalition) if same_contributors(union) else None
        kinds[f"coalition of {coalition}"] = (AloneInCells(table, knower, inside, pooled, few), coalition)
    return kinds


def _named(
    union: "Union", table: SuppressionTable, suppressed: Booleans, coalition: int
) -> dict[str, tuple[Minds, int]]:
    """Everybody who contributes to linked tables of which all records are known."""
    people = union.contributors
    assert people is not None
    alone = people.alone_in(suppressed & ~union.atoms)
    kinds: dict[str, tuple[Minds, int]] = {
        "lone contributor": (NamedContributors(table, people, alone), 1),
        "contributor": (NamedContributors(table, people, ~alone), 1),
    }
    if coalition > 1:
        everybody = NamedContributors(table, people, np.ones_like(alone), coalition, alone)
        kinds[f"coalition of {coalition}"] = (everybody, coalition)
    return kinds


def least_known(union: "Union", size: int = 1) -> Floats | None:
    """What the largest of several contributors to each inner cell have in it; None where the tables do not say.

    Of plain counts that is one each: himself. In a cell that may be negative it tells nothing of the others. Of more
    than the table ranks as many are taken to be as large as the last that it does.
    """
    parts = []
    for table in union.tables:
        alone, inner = table.numbers("contributors") == 1, table.inner
        if "top1" in table.more.columns:
            ranks = [name for k in range(1, size + 1) if (name := f"top{k}") in table.more.columns]
            own = np.sum([table.numbers(name) for name in ranks], axis=0)
            own = np.minimum(own + (size - len(ranks)) * table.numbers(ranks[-1]), table.numbers("value"))
        elif table.measured is None and np.array_equal(table.numbers("value"), table.n):
            own = np.minimum(size, table.numbers("contributors"))
        else:
            return None
        tells = inner & ~alone & (table.n > 0) & ~may_be_negative(table)
        parts.append(np.where(tells, np.nan_to_num(own), 0.0))
    return np.asarray(union.gathered(parts), dtype=np.float64)


def counted(union: "Union") -> bool:
    """Whether the tables say how many contribute to their cells."""
    return not any(bool(np.isnan(table.numbers("contributors")).any()) for table in union.tables)


def few_together(union: "Union", size: int) -> Integers:
    """How many are in an inner cell whose contributors make a coalition of at most this size by themselves; else 0.

    Nothing of tables in which a contributor is in several cells: they do not say which.
    """
    if same_contributors(union):
        return np.zeros(union.cells, dtype=np.int64)
    many = union.tables[0].numbers("contributors")
    few = np.where(union.tables[0].inner & (many > 1) & (many <= size), many, 0.0)
    return np.asarray(union.gathered([few]), dtype=np.int64)


def same_contributors(union: "Union") -> bool:
    """Whether somebody may be in several cells, a holding or a record in several tables, and it is not known who."""
    if union.contributors is not None:
        return False
    return len(union.tables) > 1 or any("holder" in table.more.columns for table in union.tables)
