"""Plain join of two files on one or two columns: the columns by whose values most people are found."""

from collections.abc import Iterable
from itertools import combinations

import numpy as np

from equipoise.data.aligned_files import Matched, matched
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.packed_keys import group
from equipoise.intrusion.agreeing_pairs import ColumnOfBoth, columns_of_both
from equipoise.intrusion.who_is_who import Pair

MAX_RECORD_TRIES = 20_000_000
"""Records times pairs of columns, at most; beyond, the best column is tried with each other one."""
ROUNDING = 1e-9
AGREEING = 0.99
"""Share of people whose own record agrees in a column from which on it is taken for unchanged."""
Known = tuple[str, ...]


def best_join(files: Pair, columns: Known) -> tuple[Known, float]:
    """The column, or the two, on which a join finds most people, and the share of them.

    With t released records of a person's values the own one is found with probability 1/t, if it is among them. What
    was merely coarsened is joined by its released label. Cost: a sort for each column and each pair of columns.
    """
    people = matched(files.released, files.in_terms(columns), columns)
    every = list(columns_of_both(people.released, people.original))
    singles = {(column.name,): _share(people, [column]) for column in every}
    if not singles:
        return (), 0.0
    best = max(singles, key=lambda names: singles[names])
    if singles[best] == 1.0:
        return best, 1.0
    tries = {tuple(c.name for c in pair): _share(people, pair) for pair in _pairs(every, best[0], len(people.first))}
    joins = singles | tries
    winner = max(joins, key=lambda names: joins[names])
    return winner, joins[winner]


def unchanged_columns(files: Pair, columns: Known) -> Known:
    """The columns in which people's own records agree with them, as the release would show it: an intruder joins by
    these, and looks for the nearest record in the others. Cost: a sort for each column.
    """
    people = matched(files.released, files.in_terms(columns), columns)
    every = columns_of_both(people.released, people.original)
    return tuple(c.name for c in every if (c.released[people.second] == c.original[people.first]).mean() >= AGREEING)


def join_finds_most(files: Pair, columns: Known) -> bool:
    """Whether a join on all these columns finds as many people as anybody could: one of each group of equal people."""
    people = matched(files.released, files.in_terms(columns), columns)
    every = list(columns_of_both(people.released, people.original))
    if not every:
        return False
    distinct = people.original[people.first].select(column.name for column in every).n_unique()
    return _share(people, every) >= distinct / len(people.first) - ROUNDING


def _pairs(every: list[ColumnOfBoth], best: str, records: int) -> Iterable[tuple[ColumnOfBoth, ...]]:
    """All pairs of columns, or those with the best one."""
    both = list(combinations(every, 2))
    if len(both) * records <= MAX_RECORD_TRIES:
        return both
    return [pair for pair in both if best in (pair[0].name, pair[1].name)]


def _share(people: Matched, columns: Iterable[ColumnOfBoth]) -> float:
    """The mean over people of 1/t where the own record is among the t that have the same values, else 0."""
    assert people.second is not None
    sides = [(column.released, column.original[people.first]) for column in columns]
    codes = [np.concatenate(side) for side in sides]
    cell = group(codes, [int(part.max()) + 1 for part in codes])[0] if len(codes) > 1 else codes[0]
    split = people.released.height
    counts: Integers = np.bincount(cell[:split], minlength=int(cell.max()) + 1)
    own: Floats = (cell[:split][people.second] == cell[split:]) / np.maximum(counts[cell[split:]], 1)
    return float(own.mean())
