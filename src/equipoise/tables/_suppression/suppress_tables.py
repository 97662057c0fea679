"""Cell suppression of one or several linked tables, and the proof that the pattern protects."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from equipoise.data.records import Law
from equipoise.data.tables.linked_tables import Union
from equipoise.data.tables.table import Table
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import DataError, InfeasibleError
from equipoise.ground.progress import Progress
from equipoise.methods.method import label
from equipoise.tables._suppression.guarded_cells import guards, known_zeros, limits_of, marks
from equipoise.tables._suppression.insider_guard import widened
from equipoise.tables._suppression.problem import SuppressionTable
from equipoise.tables._suppression.suppression_pattern import Suppression, suppress

if TYPE_CHECKING:
    from equipoise.tables.suppress import Suppress


def suppress_tables(tables: Sequence[Table], mask: "Suppress", progress: Progress | None = None) -> list[Table]:
    """The tables with primary and the cheapest secondary suppression, protected together and proven."""
    union = Union.of(tables)
    union.additive.check(union.values)
    flagged, lower, upper = (
        union.gathered(part) for part in zip(*(guards(table, mask.rule, mask) for table in tables), strict=True)
    )
    low, high = _limits(union, mask)
    zeros = union.gathered([known_zeros(table, mask.rule) for table in tables])
    published = union.gathered([marks(table, mask.publish) for table in tables]) | zeros
    cost = union.gathered([_costs(table, mask.cost) for table in tables])
    try:
        pattern = suppress(
            union.additive, union.values, flagged & ~zeros, lpl=lower, upl=upper, cost=cost, low=low, high=high,
            forbidden=published, singletons=union.knowers if mask.singletons and mask.method == "optimal" else None,
            method=mask.method, seconds=mask.seconds, progress=progress,
        )  # fmt: skip
    except InfeasibleError as problem:
        raise InfeasibleError(_infeasible_text(union, problem)) from None
    if mask.singletons and flagged.any():
        guarded = widened(
            union, SuppressionTable.of(union.additive, union.values, low, high), pattern.suppressed, ~published,
            below=np.where(flagged, lower, 0.0), above=np.where(flagged, upper, 0.0), cost=cost,
            coalition=mask.coalition, progress=progress,
        )  # fmt: skip
        spent = float(cost[guarded.suppressed & ~pattern.primary].sum())
        pattern = replace(pattern, suppressed=guarded.suppressed, weaker=guarded.weaker, cost=spent)
    return [_suppressed(table, place, pattern, mask) for table, place in zip(tables, union.places, strict=True)]


def _limits(union: Union, mask: "Suppress") -> tuple[Floats, Floats]:
    """What the attacker knows of each cell beforehand, by all tables."""
    pairs = [limits_of(table, mask.limits, known_zeros(table, mask.rule)) for table in union.tables]
    low, high = zip(*pairs, strict=True)
    return union.gathered(low), union.gathered(high, np.minimum)


def _costs(table: Table, cost: str) -> Floats:
    """What it costs to suppress each cell: its value, its records, one, or a column of the user's."""
    if cost == "cells":
        return np.ones(len(table))
    name = "n" if cost == "count" else cost
    costs = table.numbers(name)
    if not (np.isfinite(costs) & (costs >= 0)).all():
        raise DataError(f"The cost {cost!r} must be a number of at least 0 in every cell.")
    return costs


def _infeasible_text(union: Union, problem: InfeasibleError) -> str:
    """What cannot be protected, and where: by columns and labels' places, never by value."""
    if problem.cell is None:
        return str(problem)
    for table, place in zip(union.tables, union.places, strict=True):
        spot = np.flatnonzero(place == problem.cell)
        if len(spot):
            row = table.table.select(table.by).row(int(spot[0]), named=True)
            labels = ", ".join(f"{column} = {value}" for column, value in row.items())
            return f"No pattern protects the cell {labels}: publish less, or allow it to be known more closely."
    return str(problem)


def _suppressed(table: Table, place: Any, pattern: Suppression, mask: "Suppress") -> Table:
    hidden, primary = pattern.suppressed[place], pattern.primary[place]
    status = pl.Series("status", np.where(primary, "sensitive", np.where(hidden, "secondary", "published")))
    words = (
        f"{int(primary.sum()):,} sensitive cells suppressed, and {int((hidden & ~primary).sum()):,} secondary cells so "
        "that an outsider cannot compute them to within their protection levels"
    )
    if mask.singletons:
        words += ", nor a contributor or holding who is alone in suppressed cells or knows what he has in them"
        words += f", nor {mask.coalition} who are alone in cells together" if mask.coalition > 1 else ""
    elif (hidden & (table.numbers("contributors") == 1)).any():
        words += "; a contributor who is alone in a suppressed cell and knows his own may compute more (singletons)"
    if (weaker := int(np.isin(place, pattern.weaker).sum())) > 0:
        words += f"; {weaker:,} of them are guarded to less than their levels against one of these who contribute"
    if mask.limits is not None:
        words += "; the limits that an attacker knows beforehand were counted with"
    parameters = {"rule": label(mask.rule), "cost": mask.cost, "method": mask.method, "gap": round(pattern.gap, 4)}
    law = Law("suppress", table.by, words, parameters, detail=mask)
    return table.protected(np.where(hidden, np.nan, table.published_values), status, law)
