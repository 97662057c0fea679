"""Rules that guess a person's numbers from the released record: what the snoopers of `ValueDisclosure` explain."""

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from equipoise.ground.arrays import Floats, Integers
from equipoise.risk._value_snoopers.forest import forest_guesses, sampled_rows
from equipoise.risk._value_snoopers.guesses_by_others import neighbour_means, posterior_means
from equipoise.risk._value_snoopers.kernel_regression import crossed_kernel_guesses
from equipoise.risk._value_snoopers.released_terms import (
    RECORDS_PER_TERM,
    SINGULAR_SHARE,
    Term,
    Terms,
    coefficients,
    matrix,
    with_products,
)

MAX_MATRIX_NUMBERS = 1 << 24
"""Records x terms that are in memory at once: 128 MB."""
EXACT_SHARE = 1e-12
"""Share of the variance below which an error is none."""
SHARED_WORK, SINGLE_FORESTS, SINGLE_WORK = 15_000_000, 2, 5_000_000
"""Work of a forest of all columns; columns, those known best, that forests also guess alone, by more records: one of
all fits each a little less.
"""


def best_fit_errors(
    terms: Sequence[Term], released: pl.DataFrame, originals: Floats, *, products: bool = False
) -> list[float]:
    """Relative mean squared error of the best rule in these terms, for each column of the originals.

    With `products` also in their squares and products. The rule is fitted to the originals themselves: no rule of this
    form, however it was come by, has a smaller error.
    """

    def design(table: pl.DataFrame) -> Floats:
        x = matrix(terms, table)
        return with_products(x, released.height) if products else x

    width = design(released.head(1)).shape[1]
    if released.height * width > MAX_MATRIX_NUMBERS:
        return _best_fit_by_pieces(design, width, released, originals)
    x = design(released)
    errors = []
    for y in originals.T:
        present = ~np.isnan(y)
        rows, centred = (x if present.all() else x[present]), y[present] - y[present].mean()
        errors.append(best_linear(rows, centred))
    return errors


def _best_fit_by_pieces(
    design: Callable[[pl.DataFrame], Floats], width: int, released: pl.DataFrame, originals: Floats
) -> list[float]:
    """The same in bounded memory: sums of products over pieces of the records, then the errors over them again."""
    present = ~np.isnan(originals)
    centred = np.where(present, originals - np.nanmean(originals, axis=0), 0.0)
    step = max(1, MAX_MATRIX_NUMBERS // width)
    pieces = [slice(start, start + step) for start in range(0, released.height, step)]
    products, moments = np.zeros((width, width)), np.zeros((width, originals.shape[1]))
    lacking = {at: np.zeros((width, width)) for at in np.flatnonzero(~present.all(axis=0)).tolist()}
    for rows in pieces:
        x = design(released[rows])
        products, moments = products + x.T @ x, moments + x.T @ centred[rows]
        for at, total in lacking.items():
            total += x[~present[rows, at]].T @ x[~present[rows, at]]
    own = (products - lacking[at] if at in lacking else products for at in range(originals.shape[1]))
    inverses = (np.linalg.pinv(product, rcond=SINGULAR_SHARE, hermitian=True) for product in own)
    rules = np.column_stack([inverse @ moment for inverse, moment in zip(inverses, moments.T, strict=True)])
    squares = [((centred[r] - design(released[r]) @ rules) ** 2 * present[r]).sum(axis=0) for r in pieces]
    spread = (centred**2).sum(axis=0)
    return [float(error / most) if most > 0 else 1.0 for error, most in zip(sum(squares), spread, strict=True)]


def flexible_errors(
    terms: Terms,
    released: pl.DataFrame,
    masked: Floats,
    originals: Floats,
    by_all_columns: Sequence[float],
    units: Integers,
) -> list[float]:
    """Relative errors of trees, kernels, neighbours and Bayes' rule, on at most 3,000 records, for each column.

    Forests guess for records that their trees have not seen, all others by the values of other `units`. Guesses and
    released numbers are joined by the best linear rule, fitted to the originals, while there are 30 records for each of
    them; the nearest are not, for the mean of all others of a group would give the one left out. Kernels learn from
    more records where forests of many columns take few; the columns known best have forests of their own. On a sample
    the error is that ratio to the best linear rule of the numbers alone, times the error of that rule in all records.
    """
    if not terms.coded:
        return [1.0] * originals.shape[1]
    everybody, columns = np.arange(released.height), originals.shape[1]
    present = ~np.isnan(originals)
    centre = np.where(present, originals, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
    values = np.where(present, originals, centre) - centre

    def error(at: int, rows: Integers, own: Sequence[Floats], joined: Sequence[Floats]) -> float:
        known = present[rows, at]
        linear, truth = matrix(terms.linear, released[rows])[known], values[rows, at][known]
        sampled = len(rows) < len(everybody)
        own, joined = ([guess[known] for guess in guesses] for guesses in (own, joined))
        least = _least_error(own, joined, linear, truth, sampled=sampled)
        return least * by_all_columns[at] / max(1e-12, best_linear(linear, truth)) if sampled else least

    rows = sampled_rows(everybody, len(terms.coded), columns)
    x = matrix(terms.coded, released[rows])[:, 1:]
    trees, extra = (
        forest_guesses(x, values[rows], most=SHARED_WORK, units=units[rows], extra=way) for way in (False, True)
    )
    bayes = posterior_means(np.where(np.isnan(masked), centre, masked) - centre, values, rows, units)
    kernel = crossed_kernel_guesses(matrix(terms.curved, released[rows]), x, values[rows], units[rows])
    near = neighbour_means(x, values[rows], units[rows])
    errors = []
    for at in range(columns):
        own = [guess[:, at] for guess in (trees, extra, bayes, kernel, near, (trees + near) / 2, (kernel + near) / 2)]
        errors.append(error(at, rows, own, [np.column_stack(own[:4]), trees, bayes]))
    alone = sampled_rows(everybody, len(terms.coded), 1)
    x = matrix(terms.coded, released[alone])[:, 1:]
    if len(alone) > len(rows):
        kernel = crossed_kernel_guesses(matrix(terms.curved, released[alone]), x, values[alone], units[alone])
        wide = [error(at, alone, [kernel[:, at]], [kernel[:, [at]]]) for at in range(columns)]
        errors = [min(pair) for pair in zip(errors, wide, strict=True)]
    for at in np.argsort(errors)[:SINGLE_FORESTS].tolist():
        value = values[alone][:, [at]]
        grown = [forest_guesses(x, value, most=SINGLE_WORK, units=units[alone], extra=way) for way in (False, True)]
        errors[at] = min(errors[at], error(at, alone, [guess[:, 0] for guess in grown], [np.hstack(grown)]))
    return errors


def _least_error(
    own: Sequence[Floats], joined: Sequence[Floats], linear: Floats, truth: Floats, *, sampled: bool
) -> float:
    """The least relative error of single guesses, and of numbers joined with ever more of them while records suffice.

    The rule that fits a sample best errs more in the others: its error is that per degree of freedom.
    """
    errors = [relative(guess, truth) for guess in own]
    terms = linear
    for guess in joined:
        terms = np.column_stack([terms, guess / np.maximum(guess.std(axis=0), 1e-300)])
        if len(truth) >= RECORDS_PER_TERM * terms.shape[1]:
            freedom = (len(truth) - terms.shape[1]) / (len(truth) - linear.shape[1]) if sampled else 1.0
            errors.append(best_linear(terms, truth) / freedom)
    return min(errors)


def best_linear(x: Floats, y: Floats) -> float:
    return relative(x @ coefficients(x, y), y)


def relative(guess: Floats, truth: Floats) -> float:
    """Mean squared error as a share of the variance; that of the mean where there is none."""
    spread = float(truth.var()) if len(truth) else 0.0
    return float(((truth - guess) ** 2).mean()) / spread if spread > 0 else 1.0


def relative_standard_error(errors: Floats, centred: Floats, units: Integers) -> float:
    """Standard error of a mean squared error over the variance, as a share of it, by the squared errors of units."""
    if not len(errors) or errors.mean() <= EXACT_SHARE * (centred**2).mean():
        return 0.0
    excess = errors / errors.mean() - centred**2 / (centred**2).mean()
    return float(np.sqrt(_sum_of_squares(excess, units)) / len(errors))


def elliptical_standard_error(explained: float, values: Floats, units: Integers) -> float:
    """The same for a rule that explains this share, in an elliptical law: 4 x share x (1 + kurtosis) / n is its square.

    The kurtosis is that of the values, a third of their fourth moment over the squared variance, less 1.
    """
    squares = (values - values.mean()) ** 2
    spread = _sum_of_squares(squares / squares.mean() - 1.0, units) / len(values) ** 2
    ones = _sum_of_squares(np.ones(len(values)), units) / len(values) ** 2
    return float(np.sqrt(4 * max(explained, 0.0) * (spread + ones) / 3))


def _sum_of_squares(values: Floats, units: Integers) -> float:
    """Of the sums over units."""
    sums = np.bincount(np.unique(units, return_inverse=True)[1], weights=values)
    return float(sums @ sums)
