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
from equipoise.tables._suppression.last_period import LIKE_COST_SHARE, suppressed_before
from equipoise.tables._suppression.suppression_pattern import Suppression, suppress

if TYPE_CHECKING:
    from equipoise.tables.audits.joint_audit import KnownTable
    from equipoise.tables.suppress import Suppress


MAX_ROUNDS = 5
"""How often a pattern is made again because an earlier secondary cell could be computed with it."""
LEAST_MOVE = 1e-4
"""Share of its value by which an earlier secondary cell must stay uncertain; a count by one."""


def suppress_tables(tables: Sequence[Table], mask: "Suppress", progress: Progress | None = None) -> list[Table]:
    """The tables with primary and the cheapest secondary suppression, protected together and proven.

    What was published before of the same records (`Table.beside`) stays: cells that are known cannot be suppressed,
    those that are not are suppressed already, and the sensitive ones among them keep their levels.
    """
    earlier: tuple[KnownTable, ...] = tables[0].beside
    union = Union.of([*tables, *(view.table for view in earlier)])
    union.additive.check(union.values)
    flagged = union.gathered([*(mask.rule.flag(table).to_numpy() for table in tables), *map(_needs, earlier)])
    forced = union.gathered([*(_marks(table, mask.withhold) for table in tables), *map(_hidden, earlier)])
    guards = [levels(mask.rule, table) for table in tables]
    lower, upper = (
        union.gathered([*(table[side].to_numpy() for table in guards), *(getattr(view, old) for view in earlier)])
        for side, old in (("lower", "below"), ("upper", "above"))
    )
    low, high = _limits(union, mask, len(tables), earlier)
    free = [np.zeros(len(view.table)) for view in earlier]
    costs = union.gathered([*(_costs(table, mask) for table in tables), *free])
    try:
        for _ in range(MAX_ROUNDS):
            pattern = suppress(
                union.additive, union.values, flagged & ~union.empty, lpl=lower, upl=upper, cost=costs, low=low,
                high=high, forced=(forced & ~union.empty & ~flagged) | union.atoms,
                forbidden=_must_publish(union, mask, len(tables), earlier),
                singletons=union.knowers if mask.singletons else None,
                method=mask.method, seconds=mask.seconds, progress=progress,
            )  # fmt: skip
            exact = _computed(union, pattern, low, high, earlier)
            if not exact.any():
                break
            counts = tables[0].measured is None
            flagged, upper = flagged | exact, np.where(exact, 1.0 if counts else LEAST_MOVE * union.values, upper)
    except InfeasibleError as problem:
        raise InfeasibleError(_infeasible_text(union, problem, earlier)) from None
    return [_suppressed(table, place, pattern, mask) for table, place in zip(tables, union.places, strict=False)]


def _needs(view: "KnownTable") -> Any:
    """The cells of an earlier table that must keep their levels."""
    return view.guarded & (view.below + view.above > 0)


def _hidden(view: "KnownTable") -> Any:
    """The cells of an earlier table that nobody knows."""
    return view.low < view.high


def _computed(union: Union, pattern: Suppression, low: Floats, high: Floats, earlier: Sequence["KnownTable"]) -> Any:
    """Cells that an earlier table suppresses to protect others and that could be computed with this pattern."""
    if not earlier:
        return np.zeros(union.cells, dtype=np.bool_)
    secondary = [np.zeros(len(table), dtype=np.bool_) for table in union.tables[: -len(earlier)]]
    targets = union.gathered([*secondary, *(_hidden(view) & view.guarded for view in earlier)])
    targets &= pattern.suppressed & ~pattern.primary & ~union.empty
    from equipoise.tables.audits.attacker_intervals import audit

    ranges = audit(union.additive, union.values, pattern.suppressed, low=low, high=high, targets=targets)
    return targets & ranges.disclosed()


def _limits(union: Union, mask: "Suppress", new: int, earlier: Sequence["KnownTable"]) -> tuple[Floats, Floats]:
    """What the attacker knows beforehand: nothing is negative, empty cells are zero, and the limits given.

    Of what was published before he knows each cell, or what the law leaves of it.
    """
    low, high = np.zeros(union.cells), np.where(union.empty, 0.0, np.inf)
    free = [np.full(len(view.table), np.inf) for view in earlier]
    if mask.limits is not None:
        below, above = ([table.numbers(name) for table in union.tables[:new]] for name in mask.limits)
        low = np.maximum(low, union.gathered([*below, *(0.0 * view.low for view in earlier)]))
        high = np.minimum(high, union.gathered([*above, *free], np.minimum, np.inf))
    if earlier:
        tables = [np.zeros(len(table)) for table in union.tables[:new]]
        known = union.gathered([*tables, *(view.low for view in earlier)])
        most = union.gathered([*(table + np.inf for table in tables), *(v.high for v in earlier)], np.minimum, np.inf)
        low = np.maximum(low, np.minimum(known, union.values))
        high = np.minimum(high, np.maximum(most, union.values))
    return low, high


def _must_publish(union: Union, mask: "Suppress", new: int, earlier: Sequence["KnownTable"]) -> Any:
    """Cells that must be published: the user's, those known to be zero, and those that were published before."""
    published = [*(_marks(table, mask.publish) for table in union.tables[:new]), *(~_hidden(view) for view in earlier)]
    return union.gathered(published) | union.empty


def _marks(table: Table, column: str | None) -> Any:
    return np.zeros(len(table), dtype=np.bool_) if column is None else table.numbers(column) != 0


def _costs(table: Table, mask: "Suppress") -> Floats:
    """What it costs to suppress each cell: its value, its records, one, or a column of the user's.

    What was suppressed in the last period costs a small share of it.
    """
    name = "n" if mask.cost == "count" else mask.cost
    costs = np.ones(len(table)) if mask.cost == "cells" else table.numbers(name)
    if not (np.isfinite(costs) & (costs >= 0)).all():
        raise DataError(f"The cost {mask.cost!r} must be a number of at least 0 in every cell.")
    if mask.like is None:
        return costs
    return np.where(suppressed_before(table, mask.like), LIKE_COST_SHARE * costs, costs)


def _infeasible_text(union: Union, problem: InfeasibleError, earlier: Sequence["KnownTable"]) -> str:
    """What cannot be protected, and where: by columns and labels' places, never by value."""
    if problem.cell is None:
        return str(problem)
    beside = " beside the tables that were published before" if earlier else ""
    for table, place in zip(union.tables, union.places, strict=True):
        spot = np.flatnonzero(place == problem.cell)
        if len(spot):
            row = table.table.select(table.by).row(int(spot[0]), named=True)
            labels = ", ".join(f"{column} = {value}" for column, value in row.items())
            return f"No pattern protects the cell {labels}{beside}: publish less, or allow it to be known more closely."
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
