"""How close a contributor comes to the largest contribution of a cell whose amount was changed by cell keys."""

from typing import Any

import numpy as np

from equipoise.data.cells import amount
from equipoise.data.tables.table import Table
from equipoise.ground.arrays import Floats
from equipoise.methods.method import Rule
from equipoise.tables.audits.changed_tables import NoiseRoom, guarded

USUAL_SHARE = 0.1
"""How close an estimate may not come where no p% rule says it."""
NOISE_DRAWS = 1000
MAX_GUESSED_CELLS = 300
"""Cells that are looked into; of more the ones with the most dominant contribution."""
PUBLIC_SEED = 20_130_101


def guess_notes(table: Table, rule: Rule | None) -> tuple[str, ...]:
    """How likely the second largest contributor to a cell that needs protection estimates the largest too closely.

    He takes what is published less his own contribution for it: x_1 + rest + noise, and is within the share p of the
    p% rule where |rest + noise| < p x_1. Over draws of the noise with public keys, in the cell where it is likeliest.
    Without noise it is certain in every cell that the rule calls sensitive.
    """
    room = table.history[-1].detail
    if not isinstance(room, NoiseRoom) or not {"top1", "top2"} <= set(table.more.columns):
        return ()
    cells = np.flatnonzero(guarded(table, rule)[0] & (table.numbers("top1") > 0))
    if not len(cells):
        return ()
    parts: tuple[Any, ...] = getattr(rule, "rules", (rule,))
    share = next((float(part.p) for part in parts if hasattr(part, "p")), USUAL_SHARE)
    first = table.numbers("top1")[cells]
    cells = cells[np.argsort(-first / amount(table)[cells], kind="stable")][:MAX_GUESSED_CELLS]
    worst = float(chances(table, room, cells, share).max())
    return (
        f"Who contributes the second largest amount to a cell and takes the rest of it for the largest is within "
        f"{100 * share:g} % of it with a probability of at most {worst:.2f}: the worst of {len(cells):,} cells that "
        f"need protection, by {NOISE_DRAWS:,} draws of the noise.",
    )


def chances(table: Table, room: NoiseRoom, cells: "np.ndarray[tuple[int], np.dtype[np.int64]]", share: float) -> Floats:
    """The probability of a close estimate in each of these cells."""
    values, many = amount(table)[cells], NOISE_DRAWS
    keys = np.random.default_rng(PUBLIC_SEED).random((many, room.contributions.shape[1]))
    repeated = [np.repeat(part[cells], many, axis=0) for part in (room.contributions, table.n % 2 == 1, room.extra)]
    noisy = room.noise.changed(np.repeat(values, many), repeated[0], np.tile(keys, (len(cells), 1)), *repeated[1:])
    first, second = (table.numbers(name)[cells][:, None] for name in ("top1", "top2"))
    error = noisy.reshape(len(cells), many) - second - first
    return np.asarray((np.abs(error) < share * first).mean(1))
