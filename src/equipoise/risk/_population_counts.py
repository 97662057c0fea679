"""Number of people of a population register in each released class."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.cells import Cells, count
from equipoise.data.missing_keys import alike
from equipoise.data.records import Records
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import DataError, RolesError
from equipoise.ground.packed_keys import code, tally

PopulationSource = str | Path | Records
"""A population: a file that has the keys, or records already read."""


def people_like(released: Records, original: Records, population: Records) -> tuple[Cells, Floats, tuple[str, ...]]:
    """The released cells, the number of people of the population in the class of each, and notes.

    A key that was coarsened is coarsened alike for the population, by the released value of each original value in the
    records. People with a value that no record had cannot be placed; classes are then too small, on the safe side.
    If missing keys match anything, people match as records do. Cost: O(records + people + patterns of missing keys).
    """
    cells = count(released)
    table = _people(population, cells)
    everybody = table.height
    for key in cells.by if released is not original else ():
        table = _recode(table, key, original, released)
    sizes = _count_people(cells, table)
    unplaced, small = everybody - table.height, int((sizes < cells.n).sum())
    notes = []
    if unplaced:
        notes.append(f"{unplaced:,} people of the population have a value that no record had: they were left out.")
    if small:
        notes.append(f"{small:,} classes have fewer people in the population than records: there the records count.")
    return cells, np.maximum(sizes, cells.alike[0]), tuple(notes)


def _people(population: Records, cells: Cells) -> pl.DataFrame:
    schema = population.schema()
    for key in cells.by:
        if key not in schema:
            raise RolesError(f"The population has no column {key!r}: it must have every key of the file.")
    return population.collect(*cells.by).with_columns(pl.col(pl.Float32, pl.Float64).fill_nan(None))


def _recode(table: pl.DataFrame, key: str, original: Records, released: Records) -> pl.DataFrame:
    """People with the released value of a key; those whose value no record had are left out."""
    old, new = original.collect(key)[key], released.collect(key)[key]
    if len(old) != len(new):
        raise DataError("The population can be compared only with a release that has the records of the original.")
    pairs = pl.DataFrame({"old": old, "new": new}).unique()
    pairs = pairs.filter(pl.col("new").is_not_null() | pl.col("old").is_null())
    if pairs["old"].n_unique() < pairs.height:
        raise DataError(f"The key {key!r} was perturbed, not coarsened: classes of the population cannot be compared.")
    placed = table.join(pairs.cast({"old": table.schema[key]}), left_on=key, right_on="old", nulls_equal=True)
    return placed.drop(key).rename({"new": key})


def _count_people(cells: Cells, people: pl.DataFrame) -> Floats:
    """Number of people who match each cell."""
    keys = cells.table.select(cells.by)
    kinds: dict[Any, Any] = {c: pl.String if people.schema[c] != keys.schema[c] else keys.schema[c] for c in cells.by}
    people_counts = people.select(cells.by).cast(kinds).group_by(cells.by).agg(total=pl.len().cast(pl.Float64))
    both = pl.concat([keys.cast(kinds).with_columns(total=pl.lit(0.0)), people_counts.select(*cells.by, "total")])
    cube = tally([code(both[c]) for c in cells.by], both["total"].to_numpy())
    total = alike(cube, [cells.by.index(c) for c in cells.open if c in cells.by])[1]
    values = {
        c: axis.gather(pl.Series(codes.astype(np.uint32)))
        for c, axis, codes in zip(cells.by, cube.axes, cube.codes, strict=True)
    }
    population_cells = pl.DataFrame({**values, "__people__": total})
    placed = keys.cast(kinds).join(population_cells, on=cells.by, how="left", nulls_equal=True, maintain_order="left")
    return placed["__people__"].to_numpy()
