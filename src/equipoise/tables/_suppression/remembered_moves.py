"""Moves found while a pattern was made, for the audit of the same pattern in the same process.

They save the audit the search, not the check: it takes each for a guess, and learns from it only what its own relations
and rooms allow.
"""

import hashlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.tables._suppression.cheapest_move import RELATION_TOLERANCE
from equipoise.tables._suppression.problem import SuppressionTable

Moves = list[tuple[Integers, Floats]]
MAX_PATTERNS = 4
"""Patterns whose moves are kept, the latest."""
ENTRIES_AT_ONCE = 4_000_000
"""Changes of cells that are looked at together: memory."""

TINY = 1e-300
"""What a change of nothing is taken for in a quotient."""
NO_CELLS = np.zeros(0, dtype=np.int64)


class PatternMoves(NamedTuple):
    """Moves that prove levels to an outsider, and those that prove many at once to contributors."""

    outsider: Moves
    contributors: Moves


_kept: dict[bytes, PatternMoves] = {}


def remember(values: Floats, suppressed: Booleans, outsider: Moves, contributors: Moves) -> None:
    """Keep the moves of a pattern: the cells of each and by how much they change."""
    _kept[_key(values, suppressed)] = PatternMoves(outsider, contributors)
    for old in list(_kept)[:-MAX_PATTERNS]:
        del _kept[old]


def recall(values: Floats, suppressed: Booleans) -> PatternMoves:
    """The moves of a pattern, or none."""
    return _kept.get(_key(values, suppressed), PatternMoves([], []))


def _key(values: Floats, suppressed: Booleans) -> bytes:
    return hashlib.sha256(values.tobytes() + suppressed.tobytes()).digest()


def reached(table: SuppressionTable, suppressed: Booleans, moves: Moves) -> tuple[Floats, Floats]:
    """How far each cell falls and rises at least, by moves that are checked here without a solver.

    A move that changes a published cell proves nothing; one that misses a relation proves only changes so large that
    the miss is rounding. Each is taken both ways as far as the rooms of its cells go. O(entries of the moves).
    """
    fall, rise = np.zeros(table.cells), np.zeros(table.cells)
    for some in in_turn(moves):
        _reach_by(table, suppressed, some, fall, rise)
    return fall, rise


def in_turn(moves: Moves) -> Iterator[Moves]:
    """Moves in lists of some millions of changes each."""
    sizes = np.cumsum([len(cells) for cells, _ in moves])
    starts = [0, *(np.flatnonzero(np.diff(sizes // ENTRIES_AT_ONCE)) + 1).tolist(), len(moves)]
    for first, last in pairwise(starts):
        if first < last:
            yield moves[first:last]


def joined(moves: Moves) -> tuple[Integers, Floats, Integers]:
    """The cells of all moves one after the other, their changes, and where each move begins."""
    cells, by = np.concatenate([NO_CELLS, *(one for one, _ in moves)]), np.concatenate([[], *(by for _, by in moves)])
    sizes = np.array([len(one) for one, _ in moves], dtype=np.int64)
    return cells, by, np.cumsum(sizes) - sizes


def missed_by(relations: Any, moves: Moves) -> Floats:
    """The most that each move misses of one of these relations. O(entries of the moves)."""
    import scipy.sparse as sparse

    if not moves:
        return np.zeros(0)
    cells, by, first = joined(moves)
    matrix = sparse.csc_array((by, cells, np.append(first, len(cells))), shape=(relations.shape[1], len(moves)))
    return np.asarray(abs(relations @ matrix).max(axis=0).toarray()).ravel()


def _reach_by(table: SuppressionTable, suppressed: Booleans, moves: Moves, fall: Floats, rise: Floats) -> None:
    cells, by, first = joined(moves)
    row = np.repeat(np.arange(len(moves)), np.diff(first, append=len(cells)))
    missed = missed_by(table.additive.matrix, moves)
    published = np.zeros(len(moves), dtype=np.bool_)
    published[row[~suppressed[cells]]] = True
    for sign in (1.0, -1.0):
        room = np.where(sign * by > 0, table.up[cells], table.down[cells])
        often = np.full(len(moves), np.inf)
        np.minimum.at(often, row, np.divide(room, np.abs(by), out=np.full(len(by), np.inf), where=by != 0))
        often[np.isinf(often)] = 1.0
        often[published] = 0.0
        change = sign * by * often[row]
        change[np.abs(change) < (missed * often)[row] / RELATION_TOLERANCE] = 0.0
        np.maximum.at(rise, cells, change)
        np.maximum.at(fall, cells, -change)


def moves_of(matrix: Any) -> Moves:
    """The rows of a sparse matrix, each as its cells and by how much they change; of multiples of a row the first.

    What is kept is a guess to be checked, so that two rows that only look like multiples cost no more than one.
    """
    rows = matrix.tocsr()
    moves: dict[tuple[int, ...], tuple[Integers, Floats]] = {}
    for a, b in pairwise(rows.indptr.tolist()):
        if a < b:
            cells, by = rows.indices[a:b].astype(np.int64), rows.data[a:b]
            shape = (float(by.sum() / by[0]), float(by[-1] / by[0]), float(by[(b - a) // 2] / by[0]))
            moves.setdefault((b - a, int(cells[0]), int(cells[-1]), *(round(1e6 * x) for x in shape)), (cells, by))
    return list(moves.values())
