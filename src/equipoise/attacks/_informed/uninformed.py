"""Attack of an intruder who knows no law: the nearest record by standardised numbers and equal categories."""

import numpy as np
import polars as pl

from equipoise.attacks._informed.candidates import CandidateSpace
from equipoise.attacks._informed.knowledge import IntruderFiles, RecordGuess, alike, is_number, numbers
from equipoise.ground.arrays import Floats

MIN_RELATIVE_SD = 1e-12
"""Standard deviation, as a share of the mean, below which a column counts as constant."""


def nearest(files: IntruderFiles, name: str = "the nearest record") -> RecordGuess:
    """Guess of the nearest record, as `attacks.Nearest` links; labels of columns only coarsened are known."""
    space = CandidateSpace(len(files), files.owner)
    for column in files.known:
        add_unread_column(space, files, column)
    return space.guesses(name, name)[0]


def add_unread_column(space: CandidateSpace, files: IntruderFiles, column: str) -> None:
    """Add a column about which no law says anything."""
    released, original = files.released[column], files.original[column]
    if is_number(files, column):
        _number(space, numbers(released), numbers(original))
    else:
        space.differ(*(alike(released, released) if has_labels(files, column) else alike(released, original)), 1.0)


def _number(space: CandidateSpace, released: Floats, original: Floats) -> None:
    """Add a number scaled by the original's standard deviation; a missing one is at the mean, at a distance of 1."""
    released_gaps, original_gaps = np.isnan(released), np.isnan(original)
    old = original[~original_gaps]
    mean, sd = (float(old.mean()), float(old.std())) if len(old) else (0.0, 0.0)
    if sd > MIN_RELATIVE_SD * abs(mean):
        both = (released, released_gaps), (original, original_gaps)
        sides = [np.where(gaps, 0.0, side - mean) / sd for side, gaps in both]
        space.coordinate(sides[0], sides[1], 1.0, -np.inf, np.inf)
    if (released_gaps.any() or original_gaps.any()) and not (released_gaps.all() and original_gaps.all()):
        space.differ(released_gaps.astype(np.int64), original_gaps.astype(np.int64), 1.0)


def has_labels(files: IntruderFiles, column: str) -> bool:
    """Whether the column was only coarsened and each value has one label, so that the value tells the label."""
    laws = [law for law in files.laws if column in law.columns]
    if not laws or not all(law.coarsens for law in laws):
        return False
    pair = pl.DataFrame({"old": files.original[column], "new": files.released[column]})
    return pair.n_unique() == files.original[column].n_unique()
