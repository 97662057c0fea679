"""People told apart by their other records: who knows one record of a person sees all records of those it may be.

The number of the person links the released records. A key that changes slowly and as everybody knows (an age, which
rises by a year in a year) is released in bands, but two records of a person in neighbouring bands give the age itself:
who knows that his target is 30 leaves out those who are 35 to 39 a year later. How a key may change is learnt from the
original, from what the file says of the time (its other dates and numbers).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from equipoise.data.aligned_files import aligned
from equipoise.data.candidates import Candidates
from equipoise.data.cells import Cells, count
from equipoise.data.people import MIN_EQUAL_SHARE, People
from equipoise.data.records import Records
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import EngineError
from equipoise.ground.packed_keys import Coded, Cube, code, group

CLOSE = 1e-9


@dataclass(frozen=True, repr=False, eq=False)
class LinkedPeople(Cells):
    """Released classes, each once for every number of `candidates` that those in it have; `classes` has them whole."""

    candidates: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    classes: Cells | None = None

    @property
    def alike(self) -> tuple[Integers, Floats]:
        return self.candidates, self.total * self.candidates / np.maximum(self.n, 1)

    def margin(self, by: tuple[str, ...]) -> Cells:
        return self if self.classes is None or by == self.by else self.classes.margin(by)


def linked(released: Records, original: Records, by: tuple[str, ...]) -> Candidates | None:
    """For every record the people who may be its person by all their released records.

    None where nothing was done to the file, where rows of the two files are not known to be the same records, or where
    no key is a number that changes slowly. Cost: one pass over the pairs of records of each person.
    """
    person = released.roles.person
    if person is None or not released.history or original.roles.person is None:
        return None
    try:
        new, old = aligned(released, original, by)
        owner = code(aligned(released, original, (person,))[0][person]).codes.astype(np.int64)
    except EngineError:
        return None
    slow = [key for key in by if old.schema[key].is_numeric() and _of_person(new[key], owner)]
    first, second = _pairs(owner)
    if not slow or not len(first):
        return None
    classes = count(released, by)
    columns = [code(new[key]) for key in by]
    cell, _ = group([column.codes for column in columns], [column.size for column in columns])
    people = People.of(cell, owner)
    hidden = people.hidden(classes.cube)
    fewer = np.zeros(len(cell), dtype=np.int64)
    for key in slow:
        clocks = [code(new[c]).codes for c in by if c not in slow and _is_clock(old.schema[c])]
        values = old[key].cast(pl.Float64).fill_null(np.nan).to_numpy()
        spans = _spans(values, columns[by.index(key)], (first, second), clocks)
        fewer += _outside(values, cell, _widest(spans, cell, owner), people.cells, hidden)
    size = np.maximum(np.bincount(people.cells[hidden], minlength=len(classes))[cell] - fewer, 1)
    return _candidates(classes, cell, size, released, original)


def _of_person(column: pl.Series, owner: Integers) -> bool:
    """Whether most people with several values of a released key have one value only."""
    values = pl.DataFrame({"owner": owner, "value": column}).drop_nulls().group_by("owner")
    several = values.agg(pl.len(), pl.col("value").n_unique()).filter(pl.col("len") > 1)
    return several.height > 0 and int((several["value"] == 1).sum()) >= MIN_EQUAL_SHARE * several.height


def _is_clock(kind: pl.DataType) -> bool:
    return kind.is_temporal() or kind.is_numeric()


def _pairs(owner: Integers) -> tuple[Integers, Integers]:
    """All ordered pairs of two records of a person."""
    rows = pl.DataFrame({"owner": owner}).with_row_index("row")
    both = rows.filter(pl.len().over("owner") > 1).join(rows, on="owner").filter(pl.col("row") != pl.col("row_right"))
    return both["row"].to_numpy().astype(np.int64), both["row_right"].to_numpy().astype(np.int64)


def _spans(
    values: Floats, released: Coded, pairs: tuple[Integers, Integers], clocks: Sequence[Integers]
) -> tuple[Floats, Floats]:
    """The lowest and highest value that each record may have, by the released categories of the other ones."""
    first, second = pairs
    known = np.isfinite(values[first]) & np.isfinite(values[second])
    shown = known & released.values.is_not_null().to_numpy()[released.codes[second]]
    first, second = first[shown], second[shown]
    bottom, top = _extremes(values, released.codes.astype(np.int64))
    fall, rise = _changes(values[second] - values[first], [(c[first], c[second]) for c in clocks])
    low, high = np.full(len(values), -np.inf), np.full(len(values), np.inf)
    np.maximum.at(low, first, bottom[released.codes[second]] - rise)
    np.minimum.at(high, first, top[released.codes[second]] - fall)
    return low, high


def _extremes(values: Floats, ids: Integers) -> tuple[Floats, Floats]:
    """The lowest and highest of the values that share a number."""
    size, known = int(ids.max(initial=0)) + 1, np.isfinite(values)
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(low, ids[known], values[known])
    np.maximum.at(high, ids[known], values[known])
    return low, high


def _changes(change: Floats, clocks: Sequence[tuple[Integers, Integers]]) -> tuple[Floats, Floats]:
    """The least and the largest change between two records, by what each of the clocks says of them."""
    ends = [_extremes(change, np.zeros(len(change), dtype=np.int64))]
    places = [np.zeros(len(change), dtype=np.int64)]
    for before, after in clocks:
        ids, _ = group([before, after], [int(c.max(initial=0)) + 1 for c in (before, after)])
        places.append(ids)
        ends.append(_extremes(change, ids))
    lows, highs = ([end[side][place] for end, place in zip(ends, places, strict=True)] for side in (0, 1))
    return np.max(lows, axis=0), np.min(highs, axis=0)


def _widest(spans: tuple[Floats, Floats], cell: Integers, owner: Integers) -> tuple[Floats, Floats]:
    """Of each person in each class the record that allows most, in the order of cells and people."""
    low, high = spans
    ids, _ = group([cell, owner], [int(c.max(initial=0)) + 1 for c in (cell, owner)])
    order = np.lexsort((low - high, ids))
    best = order[np.flatnonzero(np.diff(ids[order], prepend=-1))]
    return low[best], high[best]


def _outside(values: Floats, cell: Integers, spans: tuple[Floats, Floats], own: Integers, hidden: Integers) -> Integers:
    """For each record the people of its class who cannot have its value."""
    low, high = spans
    known = np.isfinite(values)
    above = _smaller(values + CLOSE, cell, low[hidden], own[hidden])
    many = np.bincount(own[hidden], minlength=int(cell.max(initial=0)) + 1)
    below = _smaller(CLOSE - values, cell, -high[hidden], own[hidden])
    return np.where(known, 2 * many[cell] - above - below, 0)


def _smaller(limits: Floats, cell: Integers, numbers: Floats, own: Integers) -> Integers:
    """For each limit the numbers of its cell that are at most as large."""
    ranks = np.unique(numbers)
    ordered = np.sort(own * (len(ranks) + 1) + np.searchsorted(ranks, numbers))
    place = np.searchsorted(ranks, limits, side="right")
    starts = cell * (len(ranks) + 1)
    return np.searchsorted(ordered, starts + place) - np.searchsorted(ordered, starts)


def _candidates(classes: Cells, cell: Integers, size: Integers, released: Records, original: Records) -> Candidates:
    """Classes by the number of people who may be theirs, and the place of each record."""
    places, first = group([cell, size], [len(classes), int(size.max(initial=0)) + 1])
    weight = released.roles.weight
    weights = aligned(released, original, (weight,))[0][weight].cast(pl.Float64).to_numpy() if weight else None
    cube = Cube(
        classes.cube.axes, tuple(codes[cell[first]] for codes in classes.cube.codes), np.bincount(places),
        np.bincount(places, weights).astype(np.float64),
    )  # fmt: skip
    people = LinkedPeople(classes.by, cube, people=classes.people, candidates=size[first], classes=classes)
    return Candidates(people, places)
