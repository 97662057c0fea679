"""Guesses of a person's number by what the records of a fully synthetic file teach."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from equipoise.ground.arrays import Floats
from equipoise.risk._value_snoopers.best_rules import relative, relative_standard_error
from equipoise.risk._value_snoopers.boosted_trees import boosted_guesses
from equipoise.risk._value_snoopers.forest import forest_guesses, sampled_rows
from equipoise.risk._value_snoopers.guesses_by_others import equal_value_guesses
from equipoise.risk._value_snoopers.kernel_regression import learnt_kernel_guesses
from equipoise.risk._value_snoopers.logarithms import in_logarithms, log_scale, log_scales, signed_exp, signed_log
from equipoise.risk._value_snoopers.released_terms import (
    Terms,
    as_numbers,
    as_text,
    coefficients,
    is_number,
    matrix,
    with_products,
)

NEIGHBOURS = (1, 5)
"""Released records whose mean is a guess."""
MAX_PEOPLE, MIXTURE_PEOPLE = 5_000, 120
"""People whose value is guessed at most, evenly over its range; people for whom guesses are mixed at least."""
Guesses = dict[str, Floats]


def learnt_errors(
    terms: Terms, released: pl.DataFrame, target: str, people: Sequence[pl.DataFrame], *, trees: bool
) -> list[tuple[dict[str, float], float]]:
    """For each of several files of people the relative error of every snooper, and the standard error of the least."""
    tables = [_spread_out(table, target) for table in people]
    guesses = _guesses(terms, released, target, pl.concat(tables), trees=trees)
    results, first = [], 0
    for table in tables:
        truth, last = as_numbers(table[target]), first + table.height
        own = _joined({name: columns[first:last] for name, columns in guesses.items()}, truth)
        results.append((_least_errors(own, truth), _standard_error(own, truth)))
        first = last
    return results


def _spread_out(table: pl.DataFrame, target: str) -> pl.DataFrame:
    """At most 5,000 people with a value, evenly over its range."""
    table = table.filter(~np.isnan(as_numbers(table[target]))).sort(target)
    return table.gather_every(max(1, -(-table.height // MAX_PEOPLE)))


def _least_errors(guesses: Guesses, truth: Floats) -> dict[str, float]:
    """Relative error of the best variant of each snooper."""
    return {name: min(relative(guess, truth) for guess in columns.T) for name, columns in guesses.items()}


def _standard_error(guesses: Guesses, truth: Floats) -> float:
    best = _best(np.column_stack([*guesses.values()]), truth)
    return relative_standard_error((best - truth) ** 2, truth - truth.mean(), np.arange(len(truth)))


def _best(columns: Floats, truth: Floats) -> Floats:
    return np.asarray(columns[:, ((columns - truth[:, None]) ** 2).sum(axis=0).argmin()])


def _guesses(terms: Terms, released: pl.DataFrame, target: str, people: pl.DataFrame, *, trees: bool) -> Guesses:
    """For each snooper the guesses of the target, a column for each of its variants, for all people."""
    y = as_numbers(released[target])
    released, y = released.filter(~np.isnan(y)), y[~np.isnan(y)]
    low, high = y.min(), y.max()
    guesses: Guesses = {}
    for name, (x, questions) in _designs(terms, released, people).items():
        guess = questions @ coefficients(x, y - y.mean()) + y.mean()
        guesses[name] = np.column_stack([guess, np.clip(guess, low, high)])
    rows = sampled_rows(np.arange(len(y)), len(terms.coded), 1)
    x, questions = matrix(terms.coded, released[rows])[:, 1:], matrix(terms.coded, people)[:, 1:]
    guesses["nearest"] = _by_nearest(x, y[rows], questions)
    guesses |= _by_equal_values(terms, released, y, people)
    guesses["logarithms"] = np.clip(_by_logarithms(terms, released, y, people), low, high)
    grown = [forest_guesses(x, y[rows][:, None], questions, extra=extra) for extra in (False, True)]
    line = np.concatenate([matrix(terms.curved, table) for table in (released[rows], people)])
    kernel = learnt_kernel_guesses(line, np.concatenate([x, questions]), y[rows] - y.mean()) + y.mean()
    guesses["flexible"] = np.column_stack([*grown, np.clip(kernel, low, high), kernel])
    if trees:
        guesses["trees"] = boosted_guesses(matrix(terms.coded, released)[:, 1:], y, questions)[:, None]
    return guesses


def _designs(terms: Terms, released: pl.DataFrame, people: pl.DataFrame) -> dict[str, list[Floats]]:
    linear, curved = ([matrix(some, table) for table in (released, people)] for some in (terms.linear, terms.curved))
    return {"all columns": linear, "curved": curved, "quadratic": [with_products(x, released.height) for x in linear]}


def _by_nearest(x: Floats, y: Floats, questions: Floats) -> Floats:
    """Mean values of the nearest released records, in standard deviations of each column."""
    from scipy.spatial import cKDTree

    unit = np.maximum(x.std(axis=0), 1e-300)
    places = cKDTree(x / unit).query(questions / unit, k=[*range(1, min(NEIGHBOURS[-1], len(y)) + 1)])[1]
    places = np.minimum(places, len(y) - 1)  # where a distance is no number, the tree gives none
    return np.column_stack([y[places[:, :k]].mean(axis=1) for k in NEIGHBOURS])


def _by_equal_values(terms: Terms, released: pl.DataFrame, y: Floats, people: pl.DataFrame) -> Guesses:
    """By the mean of records equal in one to three known columns."""
    both = {c: pl.concat([_comparable(table[c]) for table in (released, people)]) for c in terms.columns}
    x = np.concatenate([matrix(terms.linear, table) for table in (released, people)])
    guesses = equal_value_guesses(x, pl.DataFrame(both), np.append(y, np.full(people.height, np.nan)))
    return {"equal": guesses} if guesses.shape[1] else {}


def _by_logarithms(terms: Terms, released: pl.DataFrame, y: Floats, people: pl.DataFrame) -> Floats:
    """The same, and by lines and bent ones, with all numbers as logarithms."""
    scales, scale = log_scales(released, terms.columns), log_scale(y)
    lessons, asking = (in_logarithms(table, scales) for table in (released, people))
    logs, terms = signed_log(y, scale), Terms.of(lessons, terms.columns)
    designs = ([matrix(some, table) for table in (lessons, asking)] for some in (terms.linear, terms.curved))
    lines = [questions @ coefficients(x, logs - logs.mean()) + logs.mean() for x, questions in designs]
    return signed_exp(np.column_stack([*lines, *_by_equal_values(terms, lessons, logs, asking).values()]), scale)


def _comparable(column: pl.Series) -> pl.Series:
    return pl.Series(as_numbers(column)) if is_number(column.dtype) else as_text(column)


def _joined(guesses: Guesses, truth: Floats) -> Guesses:
    """The guesses, with their best mixture among the flexible ones where people are enough.

    No other weights of 0 or more, with any constant, err less; some two to five of them are not 0.
    """
    from scipy.optimize import nnls

    if len(truth) < MIXTURE_PEOPLE:
        return guesses
    every = np.column_stack([*guesses.values()])
    unit, centres = max(float(truth.std()), 1e-300), every.mean(axis=0)
    weights, _ = nnls((every - centres) / unit, (truth - truth.mean()) / unit)
    mixture = (every - centres) @ weights + truth.mean()
    return {**guesses, "flexible": np.column_stack([guesses["flexible"], mixture])}
