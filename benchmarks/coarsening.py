"""A hundred and twenty coarsenings of ten million records, from their cells."""

from collections.abc import Iterator, Sequence

import polars as pl

import equipoise as eq
from benchmarks import data
from benchmarks.counting import RECORDS, polars
from benchmarks.rows import Row, Scale, Skipped, cheapest, race
from equipoise.ground.packed_keys import code

RECOUNTS = 6
"""Coarsenings, evenly spread over all, that are recounted from records for the yardstick."""


def coarsening(scale: Scale) -> Iterator[Row | Skipped]:
    """The first count is not in ours, recoding the records is not in the yardstick."""
    table = data.numbers(scale.records(RECORDS))
    records = eq.read(table, data.roles(hierarchies=data.hierarchies()))
    cells, recipes = eq.count(records), eq.coarsenings(records)
    picked = recipes[:: len(recipes) // RECOUNTS]
    recount = sum(_recount(recoded(table, records, recipe), scale) for recipe in picked) / len(picked) * len(recipes)
    measures = (eq.risk.Uniques(), eq.utility.Entropy())
    trees = records.roles.hierarchies
    costs = race(
        scale.repeat(2),
        {"roll up": lambda: rolled(cells, list(trees)), "sweep": lambda: eq.sweep(records, recipes, measures)},
    )
    for name, what in (("roll up", "roll-up alone"), ("sweep", "sweep with Uniques and Entropy")):
        yield Row(
            f"{len(recipes)} coarsenings, {what}", costs[name].cpu, recount, 1 / 20, against="Polars recounts",
            note=f"{len(picked)} recounts measured, scaled to {len(recipes)}; {len(cells):,} cells",
        )  # fmt: skip


def rolled(cells: eq.Cells, columns: Sequence[str]) -> int:
    """Every combination of the levels of these columns, each from the one before it; how many there are."""
    if not columns:
        return 1
    column, *rest = columns
    levels = [level.name for level in cells.hierarchy(column).allowed]
    return sum(rolled(cells.roll_up({column: level}) if place else cells, rest) for place, level in enumerate(levels))


def recoded(table: pl.DataFrame, records: eq.Records, recipe: eq.Recipe) -> pl.DataFrame:
    """The records with the recipe's labels as small integers, the cheapest a recount can have."""
    for mask in recipe.masks:
        column = table[mask.column]  # type: ignore[attr-defined]
        labels = records.roles.hierarchies[column.name].level(mask.level).label(column)  # type: ignore[attr-defined]
        table = table.with_columns(pl.Series(column.name, code(labels).codes))
    return table


def _recount(table: pl.DataFrame, scale: Scale) -> float:
    costs = race(scale.repeat(2), polars(table))
    return costs[cheapest(costs, costs)].cpu
