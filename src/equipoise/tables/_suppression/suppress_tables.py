"""Cell suppression of one or several linked tables, and the proof that the pattern protects."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from equipoise.data.cells import gross
from equipoise.data.records import Law
from equipoise.data.tables.a_priori import PUBLISHED, SECONDARY, a_priori
from equipoise.data.tables.linked_tables import Union
from equipoise.data.tables.table import Table
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import DataError, InfeasibleError, ParameterError
from equipoise.ground.progress import Progress, Stoppable, TimeLeft, signs_of_life
from equipoise.methods.method import label
from equipoise.tables._suppression.contributor_knowledge import counted
from equipoise.tables._suppression.guarded_cells import guards, known_zeros, limits_of, marks, with_ends
from equipoise.tables._suppression.insider_guard import widened
from equipoise.tables._suppression.last_period import LIKE_COST_SHARE, suppressed_before
from equipoise.tables._suppression.problem import SuppressionTable
from equipoise.tables._suppression.remembered_moves import Moves, moves_of, remember
from equipoise.tables._suppression.rounded_cells import rounded_published
from equipoise.tables._suppression.suppression_pattern import Suppression, suppress

if TYPE_CHECKING:
    from equipoise.tables.audits.joint_audit import KnownTable
    from equipoise.tables.suppress import Suppress


STAGE_SHARES = {
    "looking": 0.02, "meeting many demands": 0.08, "looking for cutting planes": 0.1, "finding cells": 0.2,
    "taking out": 0.2, "finding cells to suppress for": 0.02, "proving": 0.13, "auditing": 0.1,
    "suppressing more": 0.15,
}  # fmt: skip
"""Share of the time that each stage takes, about: as measured on large tables in three to five dimensions."""
LARGEST_COST = 1000.0
MAX_ROUNDS = 5
"""How often a pattern is made again because an earlier secondary cell could be computed with it."""
LEAST_MOVE = 1e-4
"""Share of its value by which an earlier secondary cell must stay uncertain; a count by one."""


def suppress_tables(tables: Sequence[Table], mask: "Suppress", progress: Progress | None = None) -> list[Table]:
    """The tables with primary and the cheapest secondary suppression, protected together and proven.

    There is a sign of life every second, with an estimate of the time left. When `progress` says stop, the pattern is
    completed by the quick way: the first moves that protect, nothing made cheaper; the law says so.
    """
    timed = TimeLeft(progress, STAGE_SHARES) if progress is not None else None
    with signs_of_life(timed, "looking at the table") as alive:
        stoppable = Stoppable(alive) if alive is not None else None
        union, pattern = _together(tables, mask, stoppable)
    early = stoppable is not None and stoppable.stopped
    return [_suppressed(table, place, pattern, mask, early) for table, place in zip(tables, union.places, strict=False)]


def _together(tables: Sequence[Table], mask: "Suppress", progress: Stoppable | None) -> tuple[Union, Suppression]:
    """The system of the tables, and the pattern for it.

    What was published before of the same records (`Table.beside`) stays: cells that are known cannot be suppressed,
    those that are not are suppressed already, and the sensitive ones among them keep their levels. Cells of these
    tables that are suppressed already stay so.
    """
    earlier: tuple[KnownTable, ...] = tables[0].beside
    unknown = [(table.n == 0) & ~known_zeros(table, mask.rule) for table in tables]
    unknown += [(view.table.n == 0) & _hidden(view) for view in earlier]
    union = Union.of([*tables, *(view.table for view in earlier)], unknown=unknown)
    union.additive.check(union.values)
    flagged, lower, upper = (
        union.gathered(part)
        for part in zip(*(guards(table, mask.rule, mask) for table in tables), *map(_needs, earlier), strict=True)
    )
    _refuse_published(tables, union, flagged)
    zeros = _zeros(union, mask, len(tables), earlier)
    low, high = _limits(union, mask, len(tables), earlier)
    known = union.gathered([*(np.zeros(len(t), dtype=np.bool_) for t in tables), *(~_hidden(v) for v in earlier)])
    hidden_before = union.gathered([*(np.isnan(t.published_values) for t in tables), *map(_hidden, earlier)]) & ~known
    published = _must_publish(union, mask, len(tables), earlier) | zeros
    secondary = union.gathered([*(_said(t, SECONDARY) for t in tables), *(v.low > v.high for v in earlier)]) & ~zeros
    costs = union.gathered([*(_costs(table, mask) for table in tables), *(np.zeros(len(v.table)) for v in earlier)])
    try:
        for _ in range(MAX_ROUNDS):
            pattern = suppress(
                union.additive, union.values, flagged & ~zeros, lpl=lower, upl=upper, cost=costs, low=low, high=high,
                forced=((hidden_before | secondary) & ~zeros & ~flagged) | union.atoms, forbidden=published,
                singletons=union.knowers if mask.singletons and mask.method == "optimal" else None,
                method=mask.method, seconds=mask.seconds, bounded=not mask.singletons, progress=progress,
            )  # fmt: skip
            exact = _computed(union, pattern, low, high, earlier)
            if not exact.any():
                break
            counts = tables[0].measured is None
            flagged, upper = (
                flagged | exact,
                np.where(exact, 1.0 if counts else LEAST_MOVE * np.abs(union.values), upper),
            )
    except InfeasibleError as problem:
        raise InfeasibleError(_infeasible_text(union, problem, earlier)) from None
    moves: Moves = []
    if mask.singletons and flagged.any():
        system = SuppressionTable.of(union.additive, union.values, low, high)
        levels = tuple(np.where(flagged, level, 0.0) for level in (lower, upper))
        pattern, moves = _guarded(
            tables, union, system, pattern, usable=~published, levels=levels, costs=costs, mask=mask, stoppable=progress
        )
        stays = secondary | (hidden_before & ~zeros)
        pattern = replace(pattern, suppressed=pattern.suppressed | stays)
    remember(union.values, pattern.suppressed, [*moves_of(pattern.witnesses), *moves], moves)
    return union, pattern


def _guarded(
    tables: Sequence[Table], union: Union, system: SuppressionTable, pattern: Suppression, *, usable: Any,
    levels: tuple[Floats, ...], costs: Floats, mask: "Suppress", stoppable: Stoppable | None = None,
) -> tuple[Suppression, Moves]:  # fmt: skip
    """The pattern with what else it takes against those who contribute to these tables, and to earlier ones.

    And the moves that prove it. Where earlier tables do not say who contributes to them the new ones are widened by
    themselves.
    """
    own, cells = union, np.arange(union.cells)
    if len(union.tables) > len(tables) and not tell_contributors(union):
        own = Union.of(tables, unknown=[(t.n == 0) & ~known_zeros(t, mask.rule) for t in tables])
        cells = np.zeros(own.cells, dtype=np.int64)
        for place, joint in zip(own.places, union.places, strict=False):
            cells[place] = joint
        parts = (np.where(own.atoms, free, part[cells]) for part, free in ((system.up, np.inf), (system.down, np.inf)))
        up, down = parts
        system = SuppressionTable(own.additive, own.values, up, np.where(own.atoms, own.values, down))
    below, above = (np.where(own.atoms, 0.0, level[cells]) for level in levels)
    guarded = widened(
        own, system, pattern.suppressed[cells] | own.atoms, usable[cells] | own.atoms, below=below, above=above,
        cost=_unit_free(np.where(own.atoms, 0.0, costs[cells])), coalition=mask.coalition, work=pattern.work,
        moves=moves_of(pattern.witnesses) if own is union else None, stoppable=stoppable,
    )  # fmt: skip
    if own is union:
        suppressed, weaker = guarded.suppressed, guarded.weaker
    else:
        suppressed, weaker = pattern.suppressed.copy(), cells[guarded.weaker]
        suppressed[cells[guarded.suppressed & ~own.atoms]] = True
    spent = float(costs[suppressed & ~pattern.primary].sum())
    moves = guarded.moves if own is union else [(cells[c], by) for c, by in guarded.moves if not own.atoms[c].any()]
    return replace(pattern, suppressed=suppressed, weaker=weaker, cost=spent), moves


def _unit_free(costs: Floats) -> Floats:
    """Costs of at most `LARGEST_COST`, for the solver's tolerances are absolute and the unit must not matter."""
    return costs * (LARGEST_COST / max(float(costs.max(initial=0.0)), np.finfo(np.float64).tiny))


def tell_contributors(union: Union) -> bool:
    """Whether it is known who contributes to all tables, or who is alone in their cells."""
    if union.contributors is not None:
        return True
    return counted(union) and not any("holder" in table.more.columns for table in union.tables)


def _needs(view: "KnownTable") -> tuple[Any, Floats, Floats]:
    """The cells of an earlier table that must keep their levels, and these."""
    return view.guarded & (view.below + view.above > 0), view.below, view.above


def _hidden(view: "KnownTable") -> Any:
    """The cells of an earlier table that nobody knows."""
    return view.low < view.high


def _computed(union: Union, pattern: Suppression, low: Floats, high: Floats, earlier: Sequence["KnownTable"]) -> Any:
    """Cells that an earlier table suppresses to protect others and that could be computed with this pattern."""
    if not earlier:
        return np.zeros(union.cells, dtype=np.bool_)
    secondary = [np.zeros(len(table), dtype=np.bool_) for table in union.tables[: -len(earlier)]]
    targets = union.gathered([*secondary, *(_hidden(view) & view.guarded for view in earlier)])
    targets &= pattern.suppressed & ~pattern.primary & ~union.empty & (low < high)
    from equipoise.tables.audits.attacker_intervals import audit

    ranges = audit(union.additive, union.values, pattern.suppressed, low=low, high=high, targets=targets)
    return targets & ranges.disclosed()


def _zeros(union: Union, mask: "Suppress", new: int, earlier: Sequence["KnownTable"]) -> Any:
    """Cells that everybody knows to be empty: by these tables, and not hidden by an earlier one."""
    hidden = [*(np.zeros(len(table), dtype=np.bool_) for table in union.tables[:new]), *map(_hidden, earlier)]
    known = [*(known_zeros(table, mask.rule) for table in union.tables[:new]), *(v.table.n == 0 for v in earlier)]
    return union.gathered(known) & ~union.gathered(hidden)


def _limits(union: Union, mask: "Suppress", new: int, earlier: Sequence["KnownTable"]) -> tuple[Floats, Floats]:
    """What the attacker knows beforehand: nothing is negative, some cells are zero, and the limits given.

    Of what was published before he knows each cell, or what the law leaves of it.
    """
    pairs = [limits_of(table, mask.limits, np.zeros(len(table), dtype=np.bool_)) for table in union.tables[:new]]
    free = [np.full(len(view.table), np.inf) for view in earlier]
    low = union.gathered([*(below for below, _ in pairs), *(0.0 * view.low for view in earlier)])
    high = union.gathered([*(above for _, above in pairs), *free], np.minimum, np.inf)
    if earlier:
        tables = [np.zeros(len(table)) for table in union.tables[:new]]
        known = union.gathered([*tables, *(view.low for view in earlier)])
        most = union.gathered([*(table + np.inf for table in tables), *(v.high for v in earlier)], np.minimum, np.inf)
        low = np.maximum(low, np.minimum(known, union.values))
        high = np.minimum(high, np.maximum(most, union.values))
    high = union.bounded(np.where(_zeros(union, mask, new, earlier), 0.0, high))
    return with_ends(union.tables, union.values, low, high)


def _must_publish(union: Union, mask: "Suppress", new: int, earlier: Sequence["KnownTable"]) -> Any:
    """Cells that must be published: the user's, and those that were published before."""
    wishes = [marks(table, mask.publish) | _said(table, PUBLISHED) for table in union.tables[:new]]
    return union.gathered([*wishes, *(~_hidden(view) for view in earlier)])


def _said(table: Table, status: str) -> Any:
    """The cells of which this was said beforehand."""
    said = a_priori(table)
    return np.zeros(len(table), dtype=np.bool_) if said is None else said.cells(status)


def _refuse_published(tables: Sequence[Table], union: Union, flagged: Any) -> None:
    """Refuse a cell that must be published and is sensitive, or suppressed by hand."""
    for table, place in zip(tables, union.places, strict=False):
        both = np.flatnonzero(flagged[place] & _said(table, PUBLISHED))
        if len(both):
            row = table.table.select(table.by).row(int(both[0]), named=True)
            labels = ", ".join(f"{column} = {value}" for column, value in row.items())
            raise ParameterError(
                f"The cell {labels} must be published, but it is sensitive ({len(both):,} such cells): leave it out, "
                "or say in an a-priori file that it is safe."
            )


def _costs(table: Table, mask: "Suppress") -> Floats:
    """What it costs to suppress each cell: its value, its records, one, or a column of the user's.

    What was suppressed in the last period costs a small share of it.
    """
    name = "n" if mask.cost == "count" else mask.cost
    costs = np.ones(len(table)) if mask.cost == "cells" else gross(table) if name == "value" else table.numbers(name)
    if not (np.isfinite(costs) & (costs >= 0)).all():
        raise DataError(f"The cost {mask.cost!r} must be a number of at least 0 in every cell.")
    said = a_priori(table)
    if said is not None:
        costs = np.where(np.isnan(said.cost), costs, said.cost)
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


def _suppressed(table: Table, place: Any, pattern: Suppression, mask: "Suppress", early: bool) -> Table:
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
    if mask.round is not None:
        words += f"; published cells are rounded to multiples of {mask.round}"
    if early:
        words += "; the search was stopped early and the pattern completed by the quick way"
    parameters = {"rule": label(mask.rule), "cost": mask.cost, "method": mask.method, "gap": round(pattern.gap, 4)}
    parameters |= {"stopped": True} if early else {}
    parameters |= {"round": mask.round} if mask.round is not None else {}
    law = Law("suppress", table.by, words, parameters, detail=mask)
    if mask.round is None:
        return table.protected(np.where(hidden, np.nan, table.published_values), status, law)
    return table.protected(rounded_published(table, hidden, mask), status, law)
