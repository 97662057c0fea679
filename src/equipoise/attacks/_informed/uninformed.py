"""The intruder who has read no law: the nearest record by standardised numbers and equal categories."""

import numpy as np
import polars as pl

from equipoise.attacks._informed.candidates import CandidateSpace
from equipoise.attacks._informed.knowledge import IntruderFiles, RecordGuess, alike, is_number, numbers
from equipoise.ground.arrays import Floats

FLAT = 1e-12
"""A column whose standard deviation is a smaller share of its mean does not vary."""


def nearest(files: IntruderFiles, name: str = "the nearest record") -> RecordGuess:
    """As `attacks.Nearest` links by all that is known; labels of columns that were only coarsened are known."""
    space = CandidateSpace(len(files))
    for column in files.known:
        unread(space, files, column)
    return space.guesses(name, name)[0]


def unread(space: CandidateSpace, files: IntruderFiles, column: str) -> None:
    """A column about which no law says anything."""
    here, there = files.released[column], files.original[column]
    if is_number(files, column):
        _number(space, numbers(here), numbers(there))
    else:
        space.differ(*(alike(here, here) if labelled(files, column) else alike(here, there)), 1.0)


def _number(space: CandidateSpace, here: Floats, there: Floats) -> None:
    """Scaled by the original's standard deviation; a missing number stands at the mean, at a distance of 1."""
    gaps, lost = np.isnan(here), np.isnan(there)
    old = there[~lost]
    mean, sd = (float(old.mean()), float(old.std())) if len(old) else (0.0, 0.0)
    if sd > FLAT * abs(mean):
        sides = [np.where(empty, 0.0, side - mean) / sd for side, empty in ((here, gaps), (there, lost))]
        space.coordinate(sides[0], sides[1], 1.0, -np.inf, np.inf)
    if (gaps.any() or lost.any()) and not (gaps.all() and lost.all()):
        space.differ(gaps.astype(np.int64), lost.astype(np.int64), 1.0)


def labelled(files: IntruderFiles, column: str) -> bool:
    """The column was only coarsened, and each original value has one label: who knows the value knows the label."""
    laws = [law for law in files.laws if column in law.columns]
    if not laws or not all(law.coarsens for law in laws):
        return False
    pair = pl.DataFrame({"old": files.original[column], "new": files.released[column]})
    return pair.n_unique() == files.original[column].n_unique()
