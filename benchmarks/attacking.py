"""Attacks from ten thousand to a million records: near linear, whatever the published measures cost."""

from collections.abc import Callable, Iterator

import numpy as np
import polars as pl

import equipoise as eq
from benchmarks import data
from benchmarks.rows import Row, Scale, Skipped, cost
from equipoise.methods.method import Measure

RECORDS = (10_000, 100_000, 1_000_000)
KEYS = data.KEYS[1:]
COLUMNS = tuple(f"x{place}" for place in range(10))
LIMIT = 1.5
TREES = {"Nearest, 3 numbers": 3, "Nearest, 6 numbers": 6}
SECONDS = 10.0
"""CPU seconds that interval disclosure of a million records by ten columns may take."""


def attacks() -> dict[str, Callable[[int], Callable[[], object]]]:
    """Makes the files of so many records, and gives back what attacks them."""
    return {
        "Linkage, 6 keys": lambda records: _attack(eq.attacks.Linkage(KEYS), *_keys(records)),
        "Nearest, 3 numbers": lambda records: _attack(eq.attacks.Nearest(COLUMNS[:3]), *_numbers(records)),
        "Nearest, 6 numbers": lambda records: _attack(eq.attacks.Nearest(COLUMNS[:6]), *_numbers(records)),
        "Interval, 10 numbers": lambda records: _attack(eq.attacks.Interval(columns=COLUMNS), *_numbers(records)),
    }


def attacking(scale: Scale) -> Iterator[Row | Skipped]:
    """Each size against ten times the one before; the step to a million is judged.

    The nearest record is found by a tree, which grows faster than that under a noise of fixed size: the nearer others
    come, the more of them are looked at. It is judged by how much faster it grows than SciPy's bare tree does.
    """
    sizes = [scale.records(records) for records in RECORDS]
    for name, make in attacks().items():
        make(1_000)()  # what it imports is not counted
        spent = [cost(make(records)).cpu for records in sizes]
        wide = TREES.get(name)
        bare = [cost(_tree(records, wide)).cpu for records in sizes] if wide else sizes
        for place in (1, 2):
            few, many = sizes[place - 1 : place + 1]
            grown = bare[place] / bare[place - 1]
            limit, told = LIMIT if place == 2 else None, f"{grown:.3g} x that of {few:,}"
            against = f"{told}, as a bare tree grows" if wide else told
            yield Row(f"{name}, {many:,} records", spent[place], grown * spent[place - 1], limit, against=against)
    yield Row("Interval, 10 numbers, in seconds", spent[-1], SECONDS, 1.0, against="the seconds allowed")


def _tree(records: int, wide: int) -> Callable[[], object]:
    """The nearest neighbour of every record in SciPy's tree, nothing else."""
    from scipy.spatial import cKDTree

    released, original = (side.collect(*COLUMNS[:wide]).to_numpy() for side in _numbers(records))
    return lambda: cKDTree(released, balanced_tree=False).query(original, k=1, workers=-1)


def _attack(attack: Measure, released: eq.Records, original: eq.Records) -> Callable[[], object]:
    return lambda: attack.measure(released, original)


def _keys(records: int) -> tuple[eq.Records, eq.Records]:
    """Six keys of 2 to 80 values, a tenth of each key's values drawn again."""
    draw = np.random.default_rng(2)
    original = data.numbers(records).select(KEYS)
    fresh = data.numbers(records, seed=3)
    released = original.with_columns(
        pl.when(pl.Series(draw.random(records) < 0.1)).then(fresh[key]).otherwise(original[key]).alias(key)
        for key in KEYS
    )
    return eq.read(released, eq.Roles(KEYS)), eq.read(original, eq.Roles(KEYS))


def _numbers(records: int) -> tuple[eq.Records, eq.Records]:
    """Ten correlated normal columns, and a noise of a tenth of their standard deviation."""
    draw = np.random.default_rng(4)
    values = draw.normal(size=(records, 1)) + draw.normal(size=(records, len(COLUMNS)))
    masked = values + 0.1 * values.std() * draw.normal(size=values.shape)
    released, original = (pl.DataFrame(table, schema=list(COLUMNS)) for table in (masked, values))
    return eq.read(released, eq.Roles(numeric=COLUMNS)), eq.read(original, eq.Roles(numeric=COLUMNS))
