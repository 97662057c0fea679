"""What an attacker can compute from a table whose numbers were changed: rounded, moved by cell keys, or adjusted."""

from dataclasses import dataclass

import numpy as np

from equipoise.data.cells import amount
from equipoise.data.tables.a_priori import PUBLISHED, a_priori
from equipoise.data.tables.additivity import Additive
from equipoise.data.tables.cell_status import marked, structural
from equipoise.data.tables.keyed_cells import count_view
from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import additive
from equipoise.ground.arrays import Booleans, Floats
from equipoise.ground.errors import DataError, require_columns
from equipoise.methods.method import Rule
from equipoise.methods.protection_levels import levels
from equipoise.tables._amount_noise import AmountNoise
from equipoise.tables.audits.attacker_intervals import audit

CHANGING_METHODS = ("round", "cell_key", "cell_key_amounts", "adjust")
"""Methods that change numbers and suppress none."""
MAX_CELLS = 5_000
"""Cells up to which the relations of the table are used to narrow the intervals."""
MIN_CONTRIBUTORS = 3
"""Cells with fewer contributors may not be computed exactly, where no rule says which are sensitive."""


@dataclass(frozen=True, eq=False, repr=False)
class Room:
    """What the law of an adjustment leaves possible for each cell by itself, given what is published."""

    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False, repr=False)
class NoiseRoom(Room):
    """The room of amounts changed by cell keys, with the law of their noise and what it was in proportion to."""

    noise: AmountNoise
    contributions: Floats
    extra: Floats


def narrowed(table: Table) -> tuple[Floats, Floats, tuple[str, ...]]:
    """The least and the most each cell can be, given the published numbers and how far the law may have changed each.

    The attacker knows the law (a base, a largest change), that nothing is negative and, up to `MAX_CELLS` cells, all
    relations: two linear programs for each cell. Misleads when he knows that counts are whole, or how likely a change
    is: then the interval is not all that he knows.
    """
    if counts := narrowed_counts(table):
        return counts[0]
    value, low, high = _alone(table)
    if len(table) > MAX_CELLS:
        note = f"The relations of a table of more than {MAX_CELLS:,} cells were not used to narrow its intervals."
        return low, high, (note,)
    intervals = audit(additive(table), value, np.ones(len(table), dtype=np.bool_), low=low, high=high)
    return intervals.lower, intervals.upper, notes(table)


def _alone(table: Table) -> tuple[Floats, Floats, Floats]:
    """The value of each cell, and the least and the most that it can be by itself."""
    value = amount(table)
    low, high = limits(table)
    return value, np.minimum(low, value), np.where(structural(table), value, np.maximum(high, value))


def narrowed_counts(table: Table) -> list[tuple[Floats, Floats, tuple[str, ...]]]:
    """`narrowed` for the records and each of the count variables, for who has all of them; nothing without any.

    Who is counted is one of the records: in an inner cell with x records, x_f of whom have f, x = x_f + r_f with a rest
    r_f of at least 0, and all of them add up. Beyond `MAX_CELLS` cells of all each is told by itself.
    """
    names = tuple(table.history[-1].parameters.get("counts", ()))
    if not names:
        return []
    parts = [_alone(view) for view in (table, *(count_view(table, name) for name in names))]
    cells, inner = len(table), np.flatnonzero(table.inner)
    if cells * len(parts) > MAX_CELLS:
        note = f"Counts of more than {MAX_CELLS:,} cells together were not held against each other, nor added up."
        return [(low, high, (note,)) for _, low, high in parts]
    value, low, high = (np.concatenate(side) for side in zip(*parts, strict=True))
    rest = np.concatenate([parts[0][0][inner] - part[0][inner] for part in parts[1:]])
    places = [cells * i + np.arange(cells) for i in range(len(parts))]
    size = len(value) + len(rest)
    own = Additive.linked([additive(table)] * len(parts), places, size)
    members = np.concatenate([place[inner] for place in places[1:]])
    sums = zip(np.tile(inner, len(names)), members, len(value) + np.arange(len(rest)), strict=True)
    system = own.joined(Additive.of([([*map(int, members)], (-1.0, 1.0, 1.0)) for members in sums], size))
    low, high = (np.concatenate([side, np.full(len(rest), end)]) for side, end in ((low, 0.0), (high, np.inf)))
    targets = np.arange(size) < len(value)
    ranges = audit(
        system, np.concatenate([value, rest]), np.ones(size, dtype=np.bool_), low=low, high=high, targets=targets
    )
    return [(ranges.lower[place], ranges.upper[place], ()) for place in places]


def notes(table: Table) -> tuple[str, ...]:
    """What the intervals do not count with."""
    if table.history[-1].mask != "adjust":
        return ()
    return (
        "The intervals are those of an attacker who knows how far cells may be moved, but not the levels of the "
        "sensitive ones: who knows these is left with two values for a cell that moved by just its level.",
    )


def limits(table: Table) -> tuple[Floats, Floats]:
    """What each cell can be by itself: as far from what is published as the law allows."""
    law, published = table.history[-1], table.published_values
    if len(table.history) > 1:
        raise DataError("A table that was changed more than once cannot be audited: take one method.")
    if isinstance(law.detail, Room):
        return law.detail.low, law.detail.high
    if law.mask == "cell_key":
        weight = np.divide(table.total, table.n, out=np.zeros(len(table)), where=table.n > 0)
        far = law.parameters["most"] * weight
        return np.maximum(published - far, 0.0), published + far
    if law.mask != "round":
        raise DataError(f"How far {law.mask or 'this method'!r} may change a cell is not known: it cannot be audited.")
    base = float(law.parameters["base"])
    if law.parameters["kind"] == "small":
        return _small(table, published, base)
    far = base * (1 + int(law.parameters.get("beyond", 0)))
    far = np.where(kept_cells(table, law.parameters.get("keep")), 0.0, far)
    return np.maximum(published - far, 0.0), published + far


def kept_cells(table: Table, column: str | None) -> Booleans:
    """Cells to be published as they are: those that a column marks, and those of which it was said beforehand."""
    said = a_priori(table)
    kept = np.zeros(len(table), dtype=np.bool_) if said is None else said.cells(PUBLISHED)
    if column is None:
        return kept
    require_columns((column,), table.more.columns)
    return kept | marked(table.more[column]).to_numpy()


def _small(table: Table, published: Floats, base: float) -> tuple[Floats, Floats]:
    """Inner counts published as 0 or the base may be any below it; other inner ones are true, margins are free."""
    hidden, inner = (published == 0) | (published == base), table.inner
    low = np.where(inner & ~hidden, published, 0.0)
    high = np.where(inner, np.where(hidden, base, published), np.inf)
    return low, high


def guarded(table: Table, rule: Rule | None) -> tuple[Booleans, Floats, Floats]:
    """Which cells need protection where numbers are changed, and how far below and above."""
    if rule is None:
        few, nothing = table.numbers("contributors"), np.zeros(len(table))
        return (few > 0) & (few < MIN_CONTRIBUTORS), nothing, nothing
    distances = levels(rule, table)
    return rule.flag(table).to_numpy(), distances["lower"].to_numpy(), distances["upper"].to_numpy()
