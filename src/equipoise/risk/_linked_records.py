"""People told apart by their other records: who knows one record of a person sees all records of those it may be.

The number of the person links the released records. A key that changes slowly and as everybody knows (an age, which
rises by a year in a year) is released in bands, but two records of a person in neighbouring bands give the age itself:
who knows that his target is 30 leaves out those who are 35 to 39 a year later. How a key may change is learnt from the
original, from what the file says of the time: its dates and numbers, keys or not.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from equipoise.data.aligned_files import aligned, released_people
from equipoise.data.candidates import Candidates
from equipoise.data.cells import Cells, count
from equipoise.data.people import MIN_EQUAL_SHARE, People
from equipoise.data.records import Records
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import EngineError
from equipoise.ground.packed_keys import Coded, Cube, code, group

CLOSE = 1e-9
MAX_SHARE_WITHIN = 0.05
"""Share of a key's variance among the records of one person, up to which the key changes slowly."""
MIN_SHARE_TOLD = 0.5
"""Share of the variance of its changes from which on another column tells the time between two records."""
MAX_CODES, PAIRS_PER_GROUP = 40, 10
"""Values of such a column (or bins of differences), and pairs of records from which each of its changes is learnt."""


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
    no key is a number that changes slowly. Cost: one pass over the pairs of records of each person per date or number.
    """
    person = released.roles.person
    if person is None or not released.history or original.roles.person is None:
        return None
    original = released_people(released, original)
    try:
        new, old = aligned(released, original, by)
        owner = code(aligned(released, original, (person,))[0][person]).codes.astype(np.int64)
    except EngineError:
        return None
    slow = [key for key in by if old.schema[key].is_numeric() and _is_slow(new[key], old[key], owner)]
    first, second = pairs = _pairs(owner)
    if not slow or not len(first):
        return None
    classes = count(released, by)
    columns = [code(new[key]) for key in by]
    cell, _ = group([column.codes for column in columns], [column.size for column in columns])
    people = People.of(cell, owner)
    hidden = people.hidden(classes.cube)
    fewer = np.zeros(len(cell), dtype=np.int64)
    clocks = [_moves(new[c], pairs) for c in by if c not in slow and _is_clock(old.schema[c])]
    others = _other_columns(released, original, {person, *by} - {*slow})
    for key in slow:
        values = old[key].cast(pl.Float64).fill_null(np.nan).to_numpy()
        change = values[second] - values[first]
        telling = [ids for name, ids in _steps(others, pairs) if name != key and _tells(ids, change)]
        spans = _spans(values, columns[by.index(key)], pairs, [*clocks, *telling])
        fewer += _outside(values, cell, _merged(spans, cell, owner), people.cells, hidden)
    size = np.maximum(np.bincount(people.cells[hidden], minlength=len(classes))[cell] - fewer, 1)
    return _candidates(classes, cell, size, released, original)


def _is_slow(released_values: pl.Series, true: pl.Series, owner: Integers) -> bool:
    """Whether most people with several values have one released value only, or true values much closer than others'."""
    values = pl.DataFrame({"owner": owner, "shown": released_values, "true": true.cast(pl.Float64)}).drop_nulls("shown")
    several = values.filter(pl.len().over("owner") > 1)
    if not several.height:
        return False
    same = several.group_by("owner").agg(pl.col("shown").n_unique() == 1)["shown"].to_numpy().mean()
    apart = several["true"] - several.select(pl.col("true").mean().over("owner")).to_series()
    within, total = (float(column.drop_nulls().drop_nans().to_numpy().var()) for column in (apart, several["true"]))
    return bool(same >= MIN_EQUAL_SHARE or within <= MAX_SHARE_WITHIN * total)


def _other_columns(released: Records, original: Records, apart: set[str]) -> pl.DataFrame:
    """The released columns that were dates or numbers, in the order of the records."""
    columns, true = released.schema(), original.schema()
    apart = apart | {name for name in (released.roles.id, original.roles.id) if name}
    names = tuple(
        c for c in columns if c in true and c not in apart and (true[c].is_numeric() or true[c].is_temporal())
    )
    return aligned(released, original, names)[0] if names else pl.DataFrame()


def _steps(columns: pl.DataFrame, pairs: tuple[Integers, Integers]) -> Iterator[tuple[str, Integers]]:
    """What each column says of pairs of records: both values if they are few, else how far they are apart."""
    for column in columns:
        if column.n_unique() <= MAX_CODES:
            yield column.name, _moves(column, pairs)
        elif _is_clock(column.dtype):
            numbers = column.to_physical().cast(pl.Float64).fill_null(np.nan).to_numpy()
            apart = numbers[pairs[1]] - numbers[pairs[0]]
            ends = np.nanquantile(apart, np.linspace(0, 1, MAX_CODES + 1)[1:-1])
            yield column.name, np.where(np.isnan(apart), MAX_CODES, np.searchsorted(np.unique(ends), apart))


def _moves(column: pl.Series, pairs: tuple[Integers, Integers]) -> Integers:
    """A number for the values of each pair of records."""
    coded = code(column)
    return group([coded.codes[rows] for rows in pairs], [coded.size, coded.size])[0]


def _tells(ids: Integers, change: Floats) -> bool:
    """Whether numbers of pairs explain most of how a key changes, each seen often enough."""
    present = np.isfinite(change)
    ids, change = np.unique(ids[present], return_inverse=True)[1], change[present]
    if not len(ids) or (int(ids.max()) + 1) * PAIRS_PER_GROUP > len(ids):
        return False
    means = np.bincount(ids, change) / np.bincount(ids)
    return bool(((change - means[ids]) ** 2).sum() <= (1 - MIN_SHARE_TOLD) * ((change - change.mean()) ** 2).sum())


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
    fall, rise = _changes(values[second] - values[first], [ids[shown] for ids in clocks])
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


def _changes(change: Floats, clocks: Sequence[Integers]) -> tuple[Floats, Floats]:
    """The least and the largest change between two records, by what each of the clocks says of them."""
    places = [np.zeros(len(change), dtype=np.int64), *clocks]
    ends = [_extremes(change, ids) for ids in places]
    lows, highs = ([end[side][place] for end, place in zip(ends, places, strict=True)] for side in (0, 1))
    return np.max(lows, axis=0), np.min(highs, axis=0)


def _merged(spans: tuple[Floats, Floats], cell: Integers, owner: Integers) -> tuple[Integers, Floats, Floats]:
    """What the records of each person in each class allow together, as intervals apart from each other.

    First the number of the class and person of each interval, in the order of classes and people.
    """
    ids, _ = group([cell, owner], [int(c.max(initial=0)) + 1 for c in (cell, owner)])
    table = pl.DataFrame({"ids": ids, "low": spans[0], "high": spans[1]}).sort("ids", "low")
    before = pl.col("high").cum_max().shift(1).over("ids")
    apart = (before.is_null() | (pl.col("low") > before + CLOSE)).cum_sum().alias("interval")
    merged = table.group_by(apart, maintain_order=True).agg(pl.col("ids", "low").first(), pl.col("high").max())
    return merged["ids"].to_numpy(), merged["low"].to_numpy(), merged["high"].to_numpy()


def _outside(
    values: Floats, cell: Integers, allowed: tuple[Integers, Floats, Floats], own: Integers, hidden: Integers
) -> Integers:
    """For each record the people of its class who cannot have its value."""
    ids, low, high = allowed
    inside = hidden[ids]
    place = own[ids][inside]
    begun = _smaller(values + CLOSE, cell, low[inside], place)
    lasting = _smaller(CLOSE - values, cell, -high[inside], place)
    size = int(cell.max(initial=0)) + 1
    people, intervals = (np.bincount(where, minlength=size)[cell] for where in (own[hidden], place))
    return np.where(np.isfinite(values), people + intervals - begun - lasting, 0)


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
