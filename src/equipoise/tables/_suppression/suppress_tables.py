"""Cell suppression of one or several linked tables, and the proof that the pattern protects."""

from collections.abc import Sequence
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
from equipoise.methods.protection_levels import levels
from equipoise.tables._suppression.suppression_pattern import Suppression, suppress

if TYPE_CHECKING:
    from equipoise.tables.suppress import Suppress


def suppress_tables(tables: Sequence[Table], mask: "Suppress", progress: Progress | None = None) -> list[Table]:
    """The tables with primary and the cheapest secondary suppression, protected together and proven."""
    union = Union.of(tables)
    union.additive.check(union.values)
    flagged = union.gathered([mask.rule.flag(table).to_numpy() for table in tables])
    forced = union.gathered([_marks(table, mask.withhold) for table in tables])
    guards = [levels(mask.rule, table) for table in tables]
    lower, upper = (union.gathered([table[side].to_numpy() for table in guards]) for side in ("lower", "upper"))
    low, high = _limits(union, mask)
    try:
        pattern = suppress(
            union.additive, union.values, flagged & ~union.empty, lpl=lower, upl=upper,
            cost=union.gathered([_costs(table, mask.cost) for table in tables]), low=low, high=high,
            forced=(forced & ~union.empty & ~flagged) | union.atoms, forbidden=_must_publish(union, mask),
            singletons=union.knowers if mask.singletons else None,
            method=mask.method, seconds=mask.seconds, progress=progress,
        )  # fmt: skip
    except InfeasibleError as problem:
        raise InfeasibleError(_infeasible_text(union, problem)) from None
    return [_suppressed(table, place, pattern, mask) for table, place in zip(tables, union.places, strict=True)]


def _limits(union: Union, mask: "Suppress") -> tuple[Floats, Floats]:
    """What the attacker knows beforehand: nothing is negative, empty cells are zero, and the limits given."""
    low, high = np.zeros(union.cells), np.where(union.empty, 0.0, np.inf)
    if mask.limits is not None:
        below, above = (union.gathered([table.numbers(name) for table in union.tables]) for name in mask.limits)
        low, high = np.maximum(low, below), np.minimum(high, np.where(union.atoms, np.inf, above))
    return low, high


def _must_publish(union: Union, mask: "Suppress") -> Any:
    """Cells that must be published: the user's, and those known to be zero."""
    marks = union.gathered([_marks(table, mask.publish) for table in union.tables])
    return marks | union.empty


def _marks(table: Table, column: str | None) -> Any:
    return np.zeros(len(table), dtype=np.bool_) if column is None else table.numbers(column) != 0


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
        "that nobody can compute them within their protection levels"
    )
    if not mask.singletons and (hidden & (table.numbers("contributors") == 1)).any():
        words += "; a contributor who is alone in a suppressed cell and knows his own may compute more (singletons)"
    if (weaker := int(np.isin(place, pattern.weaker).sum())) > 0:
        words += (
            f"; {weaker:,} of them are guarded to less than their levels against a contributor who is alone in another "
            "suppressed cell and knows his own, because no pattern guards them better"
        )
    parameters = {"rule": label(mask.rule), "cost": mask.cost, "method": mask.method, "gap": round(pattern.gap, 4)}
    law = Law("suppress", table.by, words, parameters, detail=mask)
    return table.protected(np.where(hidden, np.nan, table.published_values), status, law)
