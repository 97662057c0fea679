"""Kernel ridge regression of several values at once, on a few hundred records as centres (Nystroem's method).

A guess is a line in the released numbers plus a weighted sum of bells around the centres: it follows what is smooth,
where trees are rough and sums of curves see no two columns together.
"""

from collections.abc import Iterator

import numpy as np
import polars as pl

from equipoise.ground.arrays import Floats, Integers

MAX_CENTRES, RECORDS_PER_CENTRE = 200, 3
"""Centres at most, and records for each of them at least."""
WIDTHS, RIDGES = (0.7, 1.6), (1e-4, 3e-3, 3e-2, 0.3)
"""Widths of the bells, times the root of the number of columns; penalties as shares of the mean square of a term."""
FOLDS = 4


def crossed_kernel_guesses(line: Floats, x: Floats, y: Floats, units: Integers) -> Floats:
    """Guesses of y, a column for each value, by what other units teach, in four folds.

    `line` has the terms that enter as they are, `x` the columns in which the bells are. Of all widths, scales and
    penalties those count that err least in each column.
    """
    places = np.unique(units, return_inverse=True)[1]
    fold = (np.random.default_rng(len(x)).permutation(int(places.max(initial=0)) + 1) % FOLDS)[places]
    best = np.zeros_like(y)
    for terms in _scales(line, x, len(x)):
        guesses = np.zeros((len(RIDGES), *y.shape))
        square, product = terms.T @ terms, terms.T @ y
        for some in (np.flatnonzero(fold == part) for part in range(FOLDS)):
            own = terms[some]
            guesses[:, some] = own @ _rules(square - own.T @ own, product - own.T @ y[some])
        for guess in guesses:
            better = ((guess - y) ** 2).sum(axis=0) < ((best - y) ** 2).sum(axis=0)
            best[:, better] = guess[:, better]
    return best


def learnt_kernel_guesses(line: Floats, x: Floats, y: Floats) -> Floats:
    """Guesses of y for the records after those that have it, a column for each width, scale and penalty."""
    some = slice(0, len(y))
    guesses = [
        terms[len(y) :] @ rule
        for terms in _scales(line, x, len(y))
        for rule in _rules(terms[some].T @ terms[some], terms[some].T @ y)
    ]
    return np.column_stack(guesses)


def _rules(square: Floats, product: Floats) -> Floats:
    """The rule of each penalty."""
    unit = float(np.trace(square)) / len(square)
    return np.stack([np.linalg.solve(square + ridge * unit * np.eye(len(square)), product) for ridge in RIDGES])


def _scales(line: Floats, x: Floats, teaching: int) -> Iterator[Floats]:
    """Terms of all records: the line's with products of columns, then with bells around some of the first records."""
    size = min(MAX_CENTRES, teaching // RECORDS_PER_CENTRE)
    at = np.random.default_rng(teaching).permutation(teaching)[:size]
    ranks = np.column_stack([pl.Series(column).rank().to_numpy() for column in x.T])
    if x.shape[1] * (x.shape[1] + 1) // 2 <= MAX_CENTRES:
        one, two = np.triu_indices(x.shape[1])
        yield np.column_stack([line, _standard(_standard(x)[:, one] * _standard(x)[:, two])])
    ones, ranks = np.ones((len(x), 1)), _standard(ranks)
    for own, coordinates in ((line, _standard(x)), (np.hstack([ones, ranks]), ranks)):
        squares = (coordinates**2).sum(axis=1)
        gaps = np.maximum(squares[:, None] + squares[at] - 2 * coordinates @ coordinates[at].T, 0.0)
        for width in WIDTHS:
            yield np.column_stack([own, np.exp(-gaps / (2 * width**2 * x.shape[1]))])


def _standard(x: Floats) -> Floats:
    return np.asarray((x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-150))
