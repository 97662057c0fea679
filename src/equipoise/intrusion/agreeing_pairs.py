"""Pairs of records in two files without a common id: exact agreement on rare values, held to the other columns.

A value that one record of each file has pairs the two, if the column was released unchanged. Whether it was is told by
the other columns. Let the pairs stand in the order of the value; a_0 is the share of pairs that agree in another column
(equal values; for numbers also ranks no farther apart than half of the neighbours' are) and a_1 the share where every
person is given the record of a neighbour instead. New numbers drawn for households or ids, and values swapped between
people, pair people with anybody or with somebody alike, so that a_0 = a_1; of right pairs a_0 is larger. At least
(a_0 - a_1) / (1 - a_1) of the pairs are right, as far as wrong ones agree like neighbours.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
import polars as pl

from equipoise.data.aligned_files import comparable
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError
from equipoise.ground.packed_keys import code, group
from equipoise.methods.share_interval import wilson

MIN_PAIRS = 10
"""Pairs that a column must make to be heard."""
MIN_STANDARD_ERRORS = 4.0
"""Standard errors by which pairs agree better than neighbours where the columns that made them were left unchanged."""
MIN_UNCHANGED = 0.95
"""Share of pairs that are equal in a column from which on it joins the other records, together with its like."""
MAX_COLUMN_PAIRS = 20
"""Pairs of columns that are heard, those that make most pairs of records."""
MIN_PRECISION = 0.9
"""Share of pairs that is right at least where a column has a vote, if there is such a column."""
MAX_HEARD_COLUMNS = 200
"""Columns that may make pairs, and others that are asked about each, where a file has more: some of every variety."""
ENOUGH_PAIRED = 0.5
"""Share of people paired by single columns from which on pairs of columns are not tried."""


@dataclass(frozen=True, eq=False, repr=False)
class ColumnOfBoth:
    """A column of both files in one coding, in the order of its values."""

    name: str
    released: Integers
    original: Integers
    ordered: bool

    @classmethod
    def of(cls, released: pl.Series, original: pl.Series) -> "ColumnOfBoth":
        (one, two), ordered = comparable(released, original)
        codes = code(pl.concat([one.alias(""), two.alias("")])).codes.astype(np.int64)
        return cls(released.name, codes[: len(one)], codes[len(one) :], ordered)

    @cached_property
    def distinct(self) -> int:
        """Values of the original."""
        return len(np.unique(self.original))

    @cached_property
    def ranks(self) -> tuple[Floats, Floats]:
        """Of the released and of the original values, each within its own file."""
        return _ranks(self.released), _ranks(self.original)

    @property
    def shared(self) -> bool:
        """Whether some value is in both files."""
        return bool(np.isin(self.released, self.original).any())


Gap = Callable[[ColumnOfBoth, Integers, Integers], Floats]
"""How much the records given to people differ from them in a column."""


@dataclass(frozen=True, eq=False, repr=False)
class AgreeingPairs:
    """Rows of the original and of the release that belong together, and how sure that is.

    `precision` is the share of the pairs that is right at least, `columns` those that made them, `strangers` those in
    which the pairs agree no better than neighbours: renumbered, swapped or drawn anew.
    """

    people: Integers
    records: Integers
    precision: float = 0.0
    columns: tuple[str, ...] = ()
    strangers: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.people)


def agreeing_pairs(released: pl.DataFrame, original: pl.DataFrame) -> AgreeingPairs:
    """Pair the records of two files by values that are rare in both, where other columns bear the pairs out.

    Where columns disagree, most of them decide. Cost: a sort of each column, and for each column that
    makes pairs one pass over the others, of which 200 are asked at most.

    >>> original = pl.DataFrame({"pay": range(100, 160), "home": range(60), "job": ["a", "b", "c", "d", "e", "f"] * 10})
    >>> released = original.with_columns(home=pl.col("home").sample(60, shuffle=True, seed=1)).reverse()
    >>> pairs = agreeing_pairs(released, original)
    >>> len(pairs), pairs.columns, pairs.strangers, bool((pairs.people + pairs.records == 59).all())
    (60, ('pay',), ('home',), True)
    """
    every = list(columns_of_both(released, original))
    witnesses = _spread(every)
    makers = _spread([column for column in every if len(_once_in_both((column,))[0]) >= MIN_PAIRS])
    proposals = _borne_out([(column,) for column in makers], witnesses)
    if sum(map(len, proposals)) < ENOUGH_PAIRED * min(released.height, original.height):
        proposals += _borne_out(_likeliest(every), witnesses)
    proposals = [p for p in proposals if p.precision >= MIN_PRECISION] or proposals
    pairs = _voted(proposals)
    if not len(pairs):
        return pairs
    aliens = [column for column in every if agreement(column, pairs.people, pairs.records)[1] < MIN_STANDARD_ERRORS]
    strangers = tuple(column.name for column in aliens if column.shared and column.name not in pairs.columns)
    unchanged = [
        column for column, share in zip(every, _equal(every, proposals), strict=True) if share >= MIN_UNCHANGED
    ]
    return replace(_joined(pairs, unchanged) if unchanged else pairs, strangers=strangers)


def _spread(columns: Sequence[ColumnOfBoth]) -> Sequence[ColumnOfBoth]:
    """Of many columns some of every variety, from the one with most values to the one with fewest."""
    if len(columns) <= MAX_HEARD_COLUMNS:
        return columns
    order = sorted(columns, key=lambda column: -column.distinct)
    return [order[place] for place in np.linspace(0, len(order) - 1, MAX_HEARD_COLUMNS).astype(int)]


def _equal(every: Sequence[ColumnOfBoth], proposals: Sequence[AgreeingPairs]) -> Iterable[float]:
    """Share of records that each column is unchanged for: of pairs that it made alone, or did not help to make."""
    names = {name for proposal in proposals for name in proposal.columns}
    rows = _rows_of(proposals)
    for column in every:
        own = [p.precision for p in proposals if p.columns == (column.name,)] if column.name in names else []
        others = rows if column.name not in names else _rows_of([p for p in proposals if column.name not in p.columns])
        equal = column.released[others[1]] == column.original[others[0]]
        yield max(*own, 0.0, float(equal.mean()) if len(equal) else 0.0)


def _rows_of(proposals: Sequence[AgreeingPairs]) -> tuple[Integers, Integers]:
    none = np.zeros(0, dtype=np.int64)
    return np.concatenate([none, *(p.people for p in proposals)]), np.concatenate(
        [none, *(p.records for p in proposals)]
    )


def columns_of_both(released: pl.DataFrame, original: pl.DataFrame) -> Iterable[ColumnOfBoth]:
    """The columns of both files that vary and can be compared."""
    names = set(released.columns)
    for name in original.columns:
        if name in names:
            try:
                column = ColumnOfBoth.of(released[name], original[name])
            except DataError:
                continue
            if column.distinct > 1 and len(np.unique(column.released)) > 1:
                yield column


def _likeliest(every: Sequence[ColumnOfBoth]) -> Sequence[tuple[ColumnOfBoth, ...]]:
    """The pairs of columns that pair most records."""
    some = {column.name for column in sorted(every, key=lambda column: -column.distinct)[: 4 * MAX_COLUMN_PAIRS + 1]}
    likely = combinations([column for column in every if column.name in some], 2)
    both = sorted(likely, key=lambda pair: -_product(pair))[: 4 * MAX_COLUMN_PAIRS]
    return sorted(both, key=lambda pair: -len(_once_in_both(pair)[0]))[:MAX_COLUMN_PAIRS]


def _product(columns: Iterable[ColumnOfBoth]) -> float:
    """The logarithm of the number of combinations of values."""
    return float(sum(np.log(column.distinct) for column in columns))


def _borne_out(candidates: Iterable[tuple[ColumnOfBoth, ...]], every: Sequence[ColumnOfBoth]) -> list[AgreeingPairs]:
    """What each candidate pairs, where some other column agrees better for the pairs than for their neighbours."""
    proposals = []
    for columns in candidates:
        people, records = _once_in_both(columns)
        others = [other for other in every if other not in columns]
        if len(people) < MIN_PAIRS or not others:
            continue
        shares, errors = zip(*(agreement(other, people, records) for other in others), strict=True)
        if max(errors) > MIN_STANDARD_ERRORS:
            sure = max(share for share, z in zip(shares, errors, strict=True) if z > MIN_STANDARD_ERRORS)
            names = tuple(column.name for column in columns)
            proposals.append(AgreeingPairs(people, records, wilson(sure, len(people))[0], names))
    return proposals


def _once_in_both(
    columns: Sequence[ColumnOfBoth], people: Integers | None = None, records: Integers | None = None
) -> tuple[Integers, Integers]:
    """Rows of the original and of the release whose values nobody else has in their file, in the order of values."""
    own, other = (_rows(mask, side) for mask, side in ((people, columns[0].original), (records, columns[0].released)))
    codes = [np.concatenate([column.original[own], column.released[other]]) for column in columns]
    cell = codes[0] if len(codes) == 1 else group(codes, [int(part.max(initial=0)) + 1 for part in codes])[0]
    size = int(cell.max(initial=0)) + 1
    first, second = cell[: len(own)], cell[len(own) :]
    once = (np.bincount(first, minlength=size) == 1) & (np.bincount(second, minlength=size) == 1)
    places = np.zeros((2, size), dtype=np.int64)
    places[0, first], places[1, second] = own, other
    return places[0, once], places[1, once]


def _rows(mask: Integers | None, side: Integers) -> Integers:
    return np.arange(len(side)) if mask is None else np.flatnonzero(mask)


def agreement(column: ColumnOfBoth, people: Integers, records: Integers) -> tuple[float, float]:
    """(a_0 - a_1) / (1 - a_1), and how many standard errors the own record is nearer than a neighbour's."""
    gaps = [_unequal] if not column.ordered else [_unequal, _apart]
    shares, errors = zip(*(_nearer(gap, column, people, records) for gap in gaps), strict=True)
    return max(shares), max(errors)


def _nearer(gap: Gap, column: ColumnOfBoth, people: Integers, records: Integers) -> tuple[float, float]:
    own = gap(column, people, records)
    near = np.concatenate([gap(column, people, np.roll(records, shift)) for shift in (1, -1)])
    reach = float(np.median(near)) if gap is _apart else 0.0
    a_0, a_1 = float((own <= reach).mean()), float((near <= reach).mean())
    error = float(np.sqrt((own.var() + near.var() + 1 / len(own)) / len(own)))
    return max(0.0, (a_0 - a_1) / (1 - a_1)) if a_1 < 1 else 0.0, float(near.mean() - own.mean()) / error


def _unequal(column: ColumnOfBoth, people: Integers, records: Integers) -> Floats:
    return np.asarray((column.released[records] != column.original[people]).astype(np.float64))


def _apart(column: ColumnOfBoth, people: Integers, records: Integers) -> Floats:
    """How far the ranks of the values of pairs are apart, each within its own file."""
    released, original = column.ranks
    return np.abs(released[records] - original[people])


def _ranks(codes: Integers) -> Floats:
    """Mean ranks as shares of the file."""
    counts = np.bincount(codes)
    return np.asarray(((np.cumsum(counts) - (counts - 1) / 2) / len(codes))[codes])


def _voted(proposals: Sequence[AgreeingPairs]) -> AgreeingPairs:
    """The record that most columns give to a person, where most of them give it to nobody else."""
    if not proposals:
        return AgreeingPairs(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    votes = pl.DataFrame(
        {
            "person": np.concatenate([proposal.people for proposal in proposals]),
            "record": np.concatenate([proposal.records for proposal in proposals]),
            "sure": np.concatenate([np.full(len(p), p.precision) for p in proposals]),
        }
    )
    pairs = votes.group_by("person", "record", maintain_order=True).agg(
        pl.col("sure").max(), pl.col("sure").sum().alias("votes")
    )
    most = (2 * pl.col("votes") > pl.col("votes").sum().over(side) for side in ("person", "record"))
    best = pairs.filter(*most)
    columns = tuple(dict.fromkeys(name for proposal in proposals for name in proposal.columns))
    return AgreeingPairs(best["person"].to_numpy(), best["record"].to_numpy(), _mean(best["sure"]), columns)


def _mean(shares: pl.Series) -> float:
    return float(shares.to_numpy().mean()) if len(shares) else 0.0


def _joined(pairs: AgreeingPairs, unchanged: Sequence[ColumnOfBoth]) -> AgreeingPairs:
    """The pairs, and those that all unchanged columns together make of the remaining records."""
    free = [np.ones(len(side), dtype=np.bool_) for side in (unchanged[0].original, unchanged[0].released)]
    free[0][pairs.people], free[1][pairs.records] = False, False
    people, records = _once_in_both(unchanged, *free)
    both = np.concatenate([pairs.people, people]), np.concatenate([pairs.records, records])
    return replace(pairs, people=both[0], records=both[1])
