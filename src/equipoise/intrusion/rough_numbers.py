"""Approximate matching on numbers: the nearest record among those that match exactly on the other columns."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from equipoise.attacks import Nearest
from equipoise.data.cells import coded
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.ground.errors import ParameterError
from equipoise.ground.progress import Progress, tracked
from equipoise.intrusion.exact_matching import Matching, class_sizes
from equipoise.methods.share_interval import wilson

MAX_PEOPLE, MAX_BATCHES, MIN_BATCH_PEOPLE = 20_000, 5, 500
"""People whom the intruder looks for, drawn by a public seed; in how many parts, and how large these are at least."""
WAYS = 2
PUBLIC_SEED = 2004
MIN_DEVIATION = 1e-12


def match_numbers(
    raw: Records, exact: Sequence[str], numbers: Sequence[str], *, within: float, progress: Progress | None = None
) -> dict[str, Any]:
    """Look for people in the file as it is, knowing some columns exactly and numbers to within a share of themselves.

    What the intruder has of a number x is x (1 + within u), u uniform between -1 and 1. He takes the nearest record
    (`attacks.Nearest`) among those that equal what he knows exactly, once by the numbers and once by their logarithms;
    the better way counts. At most 20,000 people are looked for, drawn by a public seed.
    """
    table = raw.collect(*exact, *numbers).with_columns(pl.col(*numbers).cast(pl.Float64))
    if table.height < 2:
        raise ParameterError("The data has one record only: there is nobody to confuse it with.")
    row = _free("record", table.columns)
    table = table.with_row_index(row)
    people, names = sought(table, numbers, within), (row, tuple(exact), tuple(numbers))
    batches = _batches(people, names[2])
    steps = tracked(range(WAYS * len(batches)), f"looking for {people.height:,} people", progress)
    ways = [
        _linked(steps, changed(table, numbers, change), [changed(b, numbers, change) for b in batches], names)
        for change in (itself, logarithm)
    ]
    best = max(ways, key=lambda way: way["value"])
    return best | {
        "people": people.height, "records": table.height, "interval": list(wilson(best["value"], people.height)),
        "without": Matching.of(class_sizes(coded(raw, tuple(exact)))).right if exact else 1 / table.height,
        "exactly": Matching.of(class_sizes(coded(raw, (*exact, *numbers)))).right,
    }  # fmt: skip


def _free(name: str, names: Sequence[str]) -> str:
    while name in names:
        name += "_"
    return name


def sought(table: pl.DataFrame, numbers: Sequence[str], within: float) -> pl.DataFrame:
    """The people looked for, as the intruder knows them."""
    draws = np.random.default_rng(PUBLIC_SEED)
    rows = np.sort(draws.choice(table.height, min(MAX_PEOPLE, table.height), replace=False))
    people = table[rows]
    off = {c: pl.Series(1 + within * draws.uniform(-1, 1, people.height)) for c in numbers}
    return people.with_columns([(people[column] * factor).alias(column) for column, factor in off.items()])


def itself(column: pl.Series) -> pl.Series:
    return column


def logarithm(column: pl.Series) -> pl.Series:
    """The logarithm for large values, the value itself near zero: gaps are then about percentages."""
    return column.sign() * column.abs().log1p()


def changed(table: pl.DataFrame, numbers: Sequence[str], change: Callable[[pl.Series], pl.Series]) -> pl.DataFrame:
    return table.with_columns([change(table[column]).alias(column) for column in numbers])


def _linked(
    steps: Iterator[int], table: pl.DataFrame, batches: Sequence[pl.DataFrame],
    names: tuple[str, tuple[str, ...], tuple[str, ...]],
) -> dict[str, float]:  # fmt: skip
    """The share of the people found, and that of guessing. Every batch is measured by the spread of all people."""
    row, exact, numbers = names
    roles, right, guess = Roles(id=row), 0.0, 0.0
    released, whole = Records.of(table, roles), spreads(pl.concat(batches), numbers)
    for batch in batches:
        next(steps)
        parts = zip(spreads(batch, numbers), whole, strict=True)
        weights = tuple((part / every) ** 2 if part and every else 1.0 for part, every in parts)
        attack = Nearest(variables=numbers, weights=weights, blocks=exact or None)
        score = attack.measure(released, Records.of(batch, roles))
        right += score.value * batch.height
        guess += (score.baseline or 0.0) * batch.height
    people = sum(batch.height for batch in batches)
    return {"value": right / people, "baseline": guess / people}


def _batches(people: pl.DataFrame, numbers: tuple[str, ...]) -> list[pl.DataFrame]:
    """Parts of about equal size in which every number varies, or all in one."""
    many = max(1, min(MAX_BATCHES, people.height // MIN_BATCH_PEOPLE))
    ends = [people.height * at // many for at in range(many + 1)]
    parts = [people.slice(low, high - low) for low, high in pairwise(ends)]
    varies = [bool(sd) for sd in spreads(people, numbers)]
    return parts if all([bool(sd) for sd in spreads(part, numbers)] == varies for part in parts) else [people]


def spreads(table: pl.DataFrame, numbers: tuple[str, ...]) -> list[float]:
    """The standard deviation of each number; 0 where it does not vary."""
    deviations = []
    for column in numbers:
        values = table[column].drop_nulls().drop_nans().to_numpy()
        sd, mean = (float(values.std()), float(values.mean())) if len(values) else (0.0, 0.0)
        deviations.append(sd if sd > MIN_DEVIATION * abs(mean) else 0.0)
    return deviations
