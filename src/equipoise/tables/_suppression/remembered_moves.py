"""Moves found while a pattern was made, for the audit of the same pattern in the same process.

They save the audit the search, not the check: it takes each for a guess, and learns from it only what its own relations
and rooms allow.
"""

import hashlib

from equipoise.ground.arrays import Booleans, Floats, Integers

Moves = list[tuple[Integers, Floats]]
MAX_PATTERNS = 4
"""Patterns whose moves are kept, the latest."""
_kept: dict[bytes, Moves] = {}


def remember(values: Floats, suppressed: Booleans, moves: Moves) -> None:
    """Keep the moves of a pattern: the cells of each and by how much they change."""
    _kept[_key(values, suppressed)] = moves
    for old in list(_kept)[:-MAX_PATTERNS]:
        del _kept[old]


def recall(values: Floats, suppressed: Booleans) -> Moves:
    """The moves of a pattern, or none."""
    return list(_kept.get(_key(values, suppressed), ()))


def _key(values: Floats, suppressed: Booleans) -> bytes:
    return hashlib.sha256(values.tobytes() + suppressed.tobytes()).digest()
