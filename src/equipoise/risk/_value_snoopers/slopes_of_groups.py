"""Lines with slopes of their own in each group of people equal in some released columns, drawn towards one line of all.

An amount may go with another one differently in every area: neither lines with common slopes nor trees of a few
thousand records have room for that.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from equipoise.ground.arrays import Floats, Integers
from equipoise.risk._value_snoopers.released_terms import coefficients

FOLDS, RIDGES, MIN_RECORDS = 10, (0.01, 0.3, 3.0, 30.0), 5
"""Folds of units that teach others, records that the slopes of all count for in a group, and its mean size at least."""
MAX_TERMS, MAX_WORK, SOLVING = 20, 250_000_000, 1_000
"""Terms with slopes of their own; products over all groups, in which this many are the cost of solving an equation."""


def own_slope_guesses(groups: Sequence[pl.Series], x: Floats, y: Floats, units: Integers) -> list[Floats]:
    """Guesses of centred y by the groups that err least in each column, for each strength of the draw towards all.

    In a group the slopes are (X'X + r I)^-1 (X'y + r b) over its other units, b those of all records: in all terms
    together, and in each alone, which errs less where the others are noise. Rows without any value teach nobody.
    O(records x terms^2) for each group, the first ones as far as the work is bounded.
    """
    teaches, values = np.asarray(np.isfinite(y).any(axis=1))[:, None], np.nan_to_num(y)
    terms = _strongest(x, values)
    width, lessons = terms.shape[1], terms * teaches
    numbers = np.unique(units, return_inverse=True)[1]
    fold = (np.random.default_rng(len(x)).permutation(int(numbers.max(initial=0)) + 1) % FOLDS)[numbers]
    fold = np.where(teaches[:, 0], fold, FOLDS)
    subsets = [[*range(width)], *([0, place] for place in range(1, width) if width > 2)]
    lines = [(some, coefficients(lessons[:, some], values)) for some in subsets]
    best, least, work = [np.zeros_like(values) for _ in RIDGES], [(values**2).sum(axis=0) for _ in RIDGES], 0
    for group in groups:
        cells, cell = np.unique(group.to_numpy().astype(np.int64) * (FOLDS + 1) + fold, return_inverse=True)
        work += len(x) * width * (width + y.shape[1]) + len(cells) * len(RIDGES) * (width**3 + SOLVING * width)
        if work > MAX_WORK:
            break
        sums, place = _sums(cell, np.hstack([lessons, values])), np.unique(cells // (FOLDS + 1), return_inverse=True)[1]
        others = np.add.reduceat(sums, np.flatnonzero(np.diff(place, prepend=-1)))[place] - sums
        squares = np.diagonal(sums[:, width:, width:], axis1=1, axis2=2).sum(axis=0)
        for some, line in lines if len(x) >= MIN_RECORDS * (place.max() + 1) else ():
            square, moments = others[:, some][:, :, some], others[:, some, width:]
            for at, ridge in enumerate(RIDGES):
                slopes = np.linalg.solve(square + ridge * np.eye(len(some)), moments + ridge * line)
                gain = 2 * sums[:, some, width:] - sums[:, some][:, :, some] @ slopes
                errors = squares - (slopes * gain).sum(axis=(0, 1))  # y'y - 2 b'X'y + b'X'X b of each cell, in all
                for column in np.flatnonzero(errors < least[at]):
                    least[at][column] = errors[column]
                    best[at][:, column] = (terms[:, some] * slopes[cell, :, column]).sum(axis=1)
    return best


def _strongest(x: Floats, y: Floats) -> Floats:
    """The ones and the terms that go most with the values, in standard deviations."""
    spread = x.std(axis=0)
    centred = (x - x.mean(axis=0)) / np.where(spread > 0, spread, np.inf)
    shares = ((centred.T @ y) ** 2 / np.maximum((y**2).sum(axis=0), 1e-300)).sum(axis=1)
    order = np.argsort(-shares, kind="stable")[: min(MAX_TERMS, x.shape[1] - 1)]
    return np.column_stack([np.ones(len(x)), centred[:, order]])


def _sums(cell: Integers, numbers: Floats) -> Floats:
    """Sums over the rows of each cell of the products of every two columns."""
    order = np.argsort(cell, kind="stable")
    starts, numbers = np.flatnonzero(np.diff(cell[order], prepend=-1)), numbers[order]
    return np.stack([np.add.reduceat(numbers * column[:, None], starts) for column in numbers.T], axis=1)
