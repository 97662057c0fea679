"""Guesses of a person's values by those of other people: equal or most alike in what is released, and Bayes' rule."""

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import combinations, islice

import numpy as np
import polars as pl

from equipoise.ground.arrays import Floats, Integers
from equipoise.risk._value_snoopers.released_terms import Term, as_text, coefficients, matrix
from equipoise.risk._value_snoopers.slopes_of_groups import own_slope_guesses

MAX_PRIOR_RECORDS, PRIOR_STEP, LEAST_CHANGE = 10_000, 50, 0.05
"""People whose values are the prior of others, questions at a time, and the least change, in standard deviations."""
MAX_GROUPED, MAX_TERM_NUMBERS = 1_000_000, 1 << 24
"""Records times pairs and threes of columns in which equal people are looked for; records times terms in memory."""
MAX_NEAR = 20
"""Nearest records that are looked at, half of which teach."""


def equal_value_errors(
    terms: Sequence[Term], released: pl.DataFrame, columns: Sequence[str], originals: Floats, units: Integers
) -> list[float]:
    """Relative errors of the mean of all other units equal in one to three released columns, the best of them.

    A weight or a small area may tell an amount by steps that neither bends nor trees of a sample have room for. In the
    best column the means are also those of what lines in the terms leave, with the slopes that people equal in it have;
    in each group lines may have slopes of their own.
    Cost: one sort of the records for each column, for pairs and threes up to a bound.
    """
    centred = originals - np.nanmean(originals, axis=0)
    least = spread = np.nansum(centred**2, axis=0)
    for guesses in equal_values(terms, released, columns, centred, units):
        least = np.minimum(least, _squared_errors(centred, guesses))
    return [float(error) for error in least / np.maximum(spread, 1e-300)]


def equal_values(
    terms: Sequence[Term], released: pl.DataFrame, columns: Sequence[str], centred: Floats, units: Integers
) -> Iterator[Floats]:
    """Guesses of centred values, a column for each, by those means, and by lines beside them while memory allows."""
    single = _equal_in_one(released, columns)
    groups = [*single, *_equal_in_more(single)]
    if not groups:
        return
    repeated = units if len(np.unique(units)) < len(units) else None
    means, least, best = np.zeros_like(centred), np.full(centred.shape[1], np.inf), [groups[0]] * centred.shape[1]
    for group in groups:
        guesses = _means_of_others(group, centred, repeated)
        errors = _squared_errors(centred, guesses)
        for place in np.flatnonzero(errors < least):
            means[:, place], least[place], best[place] = guesses[:, place], errors[place], group
    yield means
    if released.height * len(terms) <= MAX_TERM_NUMBERS:
        x = matrix(terms, released)
        yield np.column_stack([_beside_lines(g, x, y, repeated) for g, y in zip(best, centred.T, strict=True)])
        yield from own_slope_guesses(groups, x, centred, units)


def equal_value_guesses(x: Floats, table: pl.DataFrame, y: Floats) -> Floats:
    """The same for people whose y is missing, by the records that have it: by each column, and by the best of all.

    Which columns are best, one to three, and the slopes of lines beside their means, the records themselves tell.
    """
    people, centre = np.isnan(y), float(np.nanmean(y))
    values = y - centre
    single = _equal_in_one(table, table.columns)
    groups = [*single, *_equal_in_more(single)]
    if not groups:
        return np.empty((int(people.sum()), 0))
    means = [_means_of_others(group, values[:, None])[:, 0] for group in groups]
    best = groups[int(np.argmin([_squared_errors(values, mean) for mean in means]))]
    lines = [_beside_lines(group, x, values, pooled=True) for group in [*single, best]]
    guesses = [
        *means[: len(single)],
        *lines,
        _means_of_others(best, values[:, None])[:, 0],
        _beside_lines(best, x, values),
        *(guess[:, 0] for guess in own_slope_guesses(groups, x, values[:, None], np.arange(len(values)))),
    ]
    return np.column_stack(guesses)[people] + centre


def _equal_in_one(released: pl.DataFrame, columns: Sequence[str]) -> list[pl.Series]:
    """Codes of the values of each column; those of mostly unique values have nobody to learn from."""
    every = (as_text(released[c]).cast(pl.Categorical).to_physical().rank("dense").fill_null(0) for c in columns)
    return [code for code in every if code.n_unique() <= len(code) // 2]


def _equal_in_more(codes: Sequence[pl.Series]) -> Iterator[pl.Series]:
    """Codes of two and of three values, of as many pairs and threes of columns as the bound allows."""
    several = (some for size in (2, 3) for some in combinations(codes, size))
    for first, *others in islice(several, MAX_GROUPED // max(1, len(codes[0]))) if codes else ():
        yield reduce(lambda one, two: one * (len(two) + 1) + two, others, first.cast(pl.Int64)).rank("dense")


def _means_of_others(group: pl.Series, values: Floats, units: Integers | None = None) -> Floats:
    """Means of the group's other units, each record being one where none are given; 0 without others."""
    names = [f"x{place}" for place in range(values.shape[1])]
    table = pl.DataFrame(values, schema=names).fill_nan(None).with_columns(group.alias("group"))
    x = pl.col(names)
    total, count = x.fill_null(0.0), x.is_not_null()
    if units is not None:
        table = table.with_columns(pl.Series("unit", units))
        total, count = x.sum().over("group", "unit"), x.count().over("group", "unit")
    others = x.count().over("group").cast(pl.Int64) - count.cast(pl.Int64)
    mean = pl.when(others > 0).then((x.sum().over("group") - total) / others).otherwise(0.0)
    return table.select(mean.name.keep()).to_numpy()


def _squared_errors(values: Floats, guesses: Floats) -> Floats:
    return np.asarray(np.nansum((values - guesses) ** 2, axis=0))


def _beside_lines(
    group: pl.Series, x: Floats, y: Floats, units: Integers | None = None, *, pooled: bool = False
) -> Floats:
    """Lines in x with their slopes within the groups, or in all records, and the mean of what they leave of others."""
    present = ~np.isnan(y)
    table = pl.DataFrame(np.column_stack([x, y])[present])
    means = pl.all().mean() if pooled else pl.all().mean().over(group.filter(pl.Series(present)))
    within = table.select(pl.all() - means).to_numpy()
    line = x @ coefficients(within[:, :-1], within[:, -1])
    return np.asarray(line + _means_of_others(group, (y - line)[:, None], units)[:, 0])


def neighbour_means(features: Floats, values: Floats, units: Integers) -> Floats:
    """Means of the records most alike in ranks, 10 of the 20 nearest at most, of other units, the nearest most."""
    from scipy.spatial import cKDTree

    ranks = np.column_stack([pl.Series(column).rank().to_numpy() for column in features.T]) / len(features)
    gaps, near = cKDTree(ranks).query(ranks, k=[*range(1, min(MAX_NEAR, len(values)) + 1)])
    others = units[near] != units[:, None]
    others &= np.cumsum(others, axis=1) <= MAX_NEAR // 2
    weight = others / np.maximum(gaps, 1e-6)
    sums = (values[near] * weight[:, :, None]).sum(axis=1)
    return np.asarray(sums / np.maximum(weight.sum(axis=1), 1e-30)[:, None])


def posterior_means(masked: Floats, values: Floats, rows: Integers, units: Integers) -> Floats:
    """E(x | y) of some rows by Bayes' rule, the values of all other units being the prior, as drawn by a public seed.

    The likelihood of y given x is normal with the covariance of the changes y - x, which the law of a noise tells.
    """
    covariance = np.cov((masked - values).T).reshape(values.shape[1], -1)
    unit = np.maximum(values.std(axis=0), 1e-150)
    covariance = covariance + np.diag((LEAST_CHANGE * unit) ** 2)
    whitening = np.linalg.inv(np.linalg.cholesky(covariance)).T
    atoms = np.random.default_rng(len(values)).permutation(len(values))[:MAX_PRIOR_RECORDS]
    if len(atoms) < 2:
        return np.zeros((len(rows), values.shape[1]))
    people, questions = values[atoms] @ whitening, masked[rows] @ whitening
    prior = np.column_stack([people, -(people**2).sum(axis=1) / 2]).T
    taught = np.column_stack([values[atoms] / unit, np.ones(len(atoms))]).astype(np.float32)
    sums = np.empty((len(rows), taught.shape[1]))
    for at in range(0, len(rows), PRIOR_STEP):
        some = slice(at, at + PRIOR_STEP)
        logs = np.column_stack([questions[some], np.ones(len(questions[some]))]) @ prior
        logs[units[rows[some], None] == units[atoms]] = -np.inf
        logs -= np.maximum(logs.max(axis=1, keepdims=True), -1e300)
        sums[some] = np.exp(logs.astype(np.float32)) @ taught  # single precision: seven times as fast
    return sums[:, :-1] / np.maximum(sums[:, -1:], 1e-30) * unit
