"""Number of people of a population register in each released class."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.cells import Cells, count
from equipoise.data.levels import Level
from equipoise.data.missing_keys import alike
from equipoise.data.records import Records
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import DataError, RolesError
from equipoise.ground.packed_keys import code, tally
from equipoise.risk._blanks_shown_by_members import BLANK_MARK, filled_by_members

PopulationSource = str | Path | Records
"""A population: a file that has the keys, or records already read."""
TAILS = {"top_code": True, "bottom_code": False}
"""Masks that replace all values beyond a threshold by one, and whether those are above it."""


def people_like(released: Records, original: Records, population: Records) -> tuple[Cells, Floats, tuple[str, ...]]:
    """The released cells, the number of people of the population in the class of each, and notes.

    A key that was coarsened is coarsened alike for the population: by the released value of each original value in the
    records, and for a value that no record had by the same level of its hierarchy or the same threshold. People whom no
    law places are left out; classes are then too small, on the safe side. If missing keys match anything, people match
    as records do; blanks that other members of a household show are read there. Cost: O(records + people + patterns of
    missing keys).
    """
    cells = count(filled_by_members(released, original, released.roles.keys))
    table = _people(population, cells)
    everybody = table.height
    for key in cells.by if released is not original else ():
        table = _recode(table, key, original, released)
    sizes = _count_people(cells, table)
    unplaced, small = everybody - table.height, int((sizes < cells.n).sum())
    notes = []
    if unplaced:
        notes.append(f"{unplaced:,} people of the population have a value that no level places: they were left out.")
    if small:
        notes.append(f"{small:,} classes have fewer people in the population than records: there the records count.")
    return cells, np.maximum(sizes, np.minimum(cells.n, cells.alike[0])), tuple(notes)


def _people(population: Records, cells: Cells) -> pl.DataFrame:
    schema = population.schema()
    for key in cells.by:
        if key not in schema:
            raise RolesError(f"The population has no column {key!r}: it must have every key of the file.")
    return population.collect(*cells.by).with_columns(pl.col(pl.Float32, pl.Float64).fill_nan(None))


def _recode(table: pl.DataFrame, key: str, original: Records, released: Records) -> pl.DataFrame:
    """People with the released value of a key; those whom no law places are left out."""
    old, new = original.collect(key)[key], released.collect(key)[key]
    if len(old) != len(new):
        raise DataError("The population can be compared only with a release that has the records of the original.")
    pairs = pl.DataFrame({"old": old, "new": new}).unique()
    pairs = pairs.filter(pl.col("new").is_not_null() | pl.col("old").is_null())
    if pairs["old"].n_unique() < pairs.height:
        raise DataError(f"The key {key!r} was perturbed, not coarsened: classes of the population cannot be compared.")
    values = pl.DataFrame({"old": table[key]})
    absent = values.unique().join(pairs.cast({"old": values["old"].dtype}), on="old", how="anti", nulls_equal=True)
    labels = _by_laws(absent["old"].cast(old.dtype, strict=False), pairs, original, released, key)
    rest = pl.DataFrame({"old": absent["old"], "new": labels}).filter(pl.col("new").is_not_null())
    whole = pl.concat([pairs.cast({"old": values["old"].dtype}), rest], how="vertical_relaxed")
    placed = values.join(whole.with_columns(placed=True), on="old", how="left", nulls_equal=True, maintain_order="left")
    return table.with_columns(placed["new"].alias(key)).filter(placed["placed"].is_not_null())


def _by_laws(values: pl.Series, pairs: pl.DataFrame, original: Records, released: Records, key: str) -> pl.Series:
    """Released values of original values that no record had, by the laws of the masks; null where they do not say."""
    laws = [law for law in released.history[len(original.history) :] if key in law.columns]
    tree, coarse = original.roles.hierarchies.get(key), values
    for law in laws:
        if law.mask == "recode" and tree is not None:
            coarse = _labelled(coarse, tree.level(law.parameters["level"]))
        elif law.mask not in (*TAILS, "local_suppress"):
            return pl.Series([None] * len(values), dtype=pairs["new"].dtype)
    for law in laws:
        if law.mask in TAILS:
            coarse = _in_tail(coarse, values, pairs, float(law.parameters["at"]), TAILS[law.mask])
    return coarse


def _in_tail(coarse: pl.Series, values: pl.Series, pairs: pl.DataFrame, at: float, above: bool) -> pl.Series:
    """The released value of all records beyond a threshold, for the values beyond it too."""
    tail = pairs.filter((pl.col("old") > at) if above else (pl.col("old") < at))["new"].head(1)
    if not len(tail):
        return coarse
    beyond = (values > at) if above else (values < at)
    return pl.select(pl.when(beyond).then(pl.lit(tail[0])).otherwise(coarse)).to_series()


def _labelled(values: pl.Series, level: Level) -> pl.Series:
    """Labels at a level; null for a value that the hierarchy lacks."""
    try:
        return level.label(values)
    except DataError:
        return pl.concat([_label(values[i : i + 1], level) for i in range(len(values))], how="vertical")


def _label(value: pl.Series, level: Level) -> pl.Series:
    try:
        return level.label(value).cast(pl.String)
    except DataError:
        return pl.Series(value.name, [None], dtype=pl.String)


def _count_people(cells: Cells, people: pl.DataFrame) -> Floats:
    """Number of people who match each cell."""
    keys = cells.keys.with_columns(pl.col(pl.String).str.strip_prefix(BLANK_MARK))
    kinds: dict[Any, Any] = {c: pl.String if people.schema[c] != keys.schema[c] else keys.schema[c] for c in cells.by}
    people_counts = people.select(cells.by).cast(kinds).group_by(cells.by).agg(__eq_total=pl.len().cast(pl.Float64))
    both = pl.concat(
        [keys.cast(kinds).with_columns(__eq_total=pl.lit(0.0)), people_counts.select(*cells.by, "__eq_total")]
    )
    cube = tally([code(both[c]) for c in cells.by], both["__eq_total"].to_numpy())
    total = alike(cube, [cells.by.index(c) for c in cells.open if c in cells.by])[1]
    values = {
        c: axis.gather(pl.Series(codes.astype(np.uint32)))
        for c, axis, codes in zip(cells.by, cube.axes, cube.codes, strict=True)
    }
    population_cells = pl.DataFrame({**values, "__eq_people": total})
    placed = keys.cast(kinds).join(population_cells, on=cells.by, how="left", nulls_equal=True, maintain_order="left")
    return placed["__eq_people"].to_numpy()
