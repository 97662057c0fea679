"""Report page of a protected table."""

from dataclasses import fields
from itertools import islice, product
from math import prod
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.tables.axes import Axis
from equipoise.data.tables.table import Table
from equipoise.doors.report.method_notes import method_note
from equipoise.doors.report.page_parts import Facts, charted, page_facts
from equipoise.doors.report.table_map_section import compared_facts, map_of
from equipoise.methods.method import name_of
from equipoise.policies.dominance_check import parts_of
from equipoise.presentation.numbers import listed, number, title, value_text
from equipoise.recipe.catalogue import parse
from equipoise.releases.tabulated import Tabulated

MAX_ROWS, MAX_COLUMNS, MAX_INTERVAL_ROWS = 60, 12, 20
"""Rows and columns of the table shown at most, and rows of the narrowest intervals."""
STATUS_MARKS = {"sensitive": "s", "secondary": "x"}


def table_facts(tabulated: Tabulated, source: str, public: bool) -> Facts:
    """Facts for the page of one table; those of the public page hold only what may be published."""
    what = tabulated.what
    return {
        **page_facts(f"{what[:1].upper()}{what[1:]} by {listed(tabulated.table.by)}"),
        "lead": tabulated.public_words if public else tabulated.words,
        "suppresses": tabulated.suppresses,
        "against": tabulated.attackers.public if public else tabulated.attackers.internal,
        "not_against": tabulated.attackers.not_cover,
        "grid": grid(tabulated, public),
        **charted(map=map_of(tabulated.compared) if tabulated.compared and not public else None),
        **({"methods": []} if public else {"source": source, **_internal(tabulated)}),
    }


def _internal(tabulated: Tabulated) -> Facts:
    return {
        "certificate": certificate(tabulated),
        "narrow": _narrow(tabulated),
        "warnings": [(w.rule, w.words, w.example) for w in tabulated.warnings],
        "compared": compared_facts(tabulated.compared) if tabulated.compared else None,
        "notes": tabulated.notes,
        "done": [law.words for law in tabulated.table.history],
        "rule": _rule(tabulated.rule) if tabulated.rule is not None else None,
        "methods": [method_note(kind, title(name)) for kind, name in _kinds(tabulated).items()],
    }


def _rule(rule: Any) -> str:
    """A rule with all its parameters, joined ones in words."""
    if hasattr(rule, "rules"):
        return {"|": " or ", "&": " and "}[rule.mark].join(_rule(part) for part in rule.rules)
    parameters = ", ".join(f"{field.name} = {getattr(rule, field.name)}" for field in fields(rule))
    return title(name_of(type(rule))) + (f" ({parameters})" if parameters else "")


def _kinds(tabulated: Tabulated) -> dict[Any, str]:
    measures = tabulated.compared.chosen.scores if tabulated.compared else ()
    used = (*parts_of(tabulated.rule), tabulated.method, *(parse(score.name, "measure") for score in measures))
    return {type(method): name_of(type(method)) for method in used}


def grid(tabulated: Tabulated, public: bool) -> Facts:
    """Rows and columns with their margins, each group above its members; the shortest axis across, the others down."""
    table = tabulated.table
    across = _across(table)
    down = [i for i in range(len(table.axes)) if i != across]
    rows, row_cut = _rows([table.axes[i] for i in down])
    columns, column_cut = ([(0, 0)], "") if across is None else _fitting_nodes(table.axes[across], MAX_COLUMNS)
    cells = _cells(tabulated, down, across, [nodes for nodes, _, _ in rows], public)
    return {
        "corner": listed(table.axes[i].name for i in down),
        "across": table.axes[across].name if across is not None else None,
        "columns": _columns(table, across, columns),
        "rows": [
            {"label": label, "depth": depth, "cells": [cells.get((*nodes, other), EMPTY_CELL) for other, _ in columns]}
            for nodes, label, depth in rows
        ],
        "cuts": [words for words in (row_cut and f"{row_cut} rows", column_cut and f"{column_cut} columns") if words],
    }


EMPTY_CELL = {"text": "–", "mark": "", "kind": ""}
Row = tuple[tuple[int, ...], str, int]
"""The nodes of a row, its label and its depth."""


def _across(table: Table) -> int | None:
    """The axis of the columns: the shortest one, the last of several."""
    many = len(table.axes)
    return None if many == 1 else min(reversed(range(many)), key=lambda i: len(table.axes[i]))


def _columns(table: Table, across: int | None, nodes: list[tuple[int, int]]) -> list[Facts]:
    if across is None:
        return [{"label": table.measured or "records", "depth": 0}]
    return [{"label": table.axes[across].nodes[node], "depth": depth} for node, depth in nodes]


def _rows(axes: list[Axis]) -> tuple[list[Row], str]:
    """The nodes of one axis, or of several nested axes; and a note where rows were left out."""
    if len(axes) == 1:
        nodes, cut = _fitting_nodes(axes[0], MAX_ROWS)
        return [((node,), axes[0].nodes[node], depth) for node, depth in nodes], cut
    every = prod(len(axis) for axis in axes)
    rows = [_row(axes, steps) for steps in islice(product(*map(node_depths, axes)), MAX_ROWS)]
    return rows, f"the first {MAX_ROWS:,} of {every:,}" if every > MAX_ROWS else ""


def _row(axes: list[Axis], steps: tuple[tuple[int, int], ...]) -> Row:
    """A row of several axes: labelled by all of its nodes, as deep as the last axis that is not at its total."""
    nodes = tuple(node for node, _ in steps)
    name = " · ".join(axis.nodes[node] for axis, node in zip(axes, nodes, strict=True))
    return nodes, name, max((i + depth for i, (_, depth) in enumerate(steps) if depth), default=0)


def node_depths(axis: Axis) -> list[tuple[int, int]]:
    """The nodes of an axis with their depths, each group before its members."""
    depths: dict[int, int] = {}
    for chain in axis.chains:
        paths = np.unique(np.stack(chain[::-1], axis=1), axis=0)
        for path in paths.tolist():
            for depth, node in enumerate(dict.fromkeys(path)):
                depths.setdefault(node, depth)
    return list(depths.items())


def _fitting_nodes(axis: Axis, most: int) -> tuple[list[tuple[int, int]], str]:
    """All nodes, or the coarse levels that fit, or the first ones; and a note where nodes were left out."""
    every = node_depths(axis)
    if len(every) <= most:
        return every, ""
    for deepest in sorted({depth for _, depth in every[1:]}, reverse=True):
        coarse = [(node, depth) for node, depth in every if depth <= deepest]
        if len(coarse) <= most:
            return coarse, f"the {len(coarse):,} coarsest of {len(every):,}"
    return every[:most], f"the first {most:,} of {len(every):,}"


def _cells(
    tabulated: Tabulated, down: list[int], across: int | None, rows: list[tuple[int, ...]], public: bool
) -> dict[tuple[int, ...], Facts]:
    """The text of each cell of these rows, by its nodes: those of the row, then that of the column."""
    table = tabulated.table
    sizes = [len(table.axes[i]) for i in down]
    keys = np.ravel_multi_index([table.nodes[i] for i in down], sizes)
    places = np.flatnonzero(np.isin(keys, np.ravel_multi_index(list(np.array(rows).T), sizes)))
    other = table.nodes[across][places] if across is not None else np.zeros(len(places), dtype=np.int64)
    nodes = zip(*(table.nodes[i][places].tolist() for i in down), other.tolist(), strict=True)
    values, status = tabulated.published_numbers[places], tabulated.statuses.gather(places)
    nothing = np.isnan(values) & ~tabulated.hidden[places]
    if public:
        texts = [EMPTY_CELL if none else _public(one) for one, none in zip(values.tolist(), nothing, strict=True)]
        return dict(zip(nodes, texts, strict=True))
    value, empty = tabulated.true_numbers[places], ((table.n[places] == 0) | nothing).tolist()
    entries = zip(np.where(nothing, 0.0, values).tolist(), value.tolist(), status.to_list(), empty, strict=True)
    return dict(zip(nodes, (_private(*row) for row in entries), strict=True))


def _public(published: float) -> Facts:
    if np.isnan(published):
        return {"text": "x", "mark": "", "kind": "suppressed"}
    return {"text": _amount(published), "mark": "", "kind": ""}


def _private(published: float, value: float, status: str, empty: bool) -> Facts:
    if empty and not published:
        return EMPTY_CELL
    hidden = np.isnan(published)
    return {
        "text": _amount(value if hidden else published),
        "mark": STATUS_MARKS.get(status, ""),
        "kind": status if hidden else "",
    }


def _amount(value: float) -> str:
    if np.isnan(value):
        return "–"
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 1000 else number(value)


def certificate(tabulated: Tabulated) -> list[tuple[str, str]]:
    """Results of the audit as rows of a table."""
    counts = tabulated.counts
    rows = [("Cells of the table", number(counts["cells"]))]
    if tabulated.suppresses:
        rows += [("Sensitive cells", number(counts["sensitive"])), ("Secondary cells", number(counts["secondary"]))]
        rows += [("Value in suppressed inner cells", value_text(tabulated.share, "share"))]
    else:
        rows += [
            ("Cells changed", number(counts["changed"])),
            ("Cells that need protection", number(counts["sensitive"])),
        ]
    rows += [("Known exactly", number(counts["exact"])), ("Known to within their level", number(counts["exposed"]))]
    if counts["weaker"]:
        rows += [("Less than their level to somebody who contributes", number(counts["weaker"]))]
    widths = _relative(tabulated)
    if not widths.is_empty():
        least, middle = widths.min(), widths.median()
        rows += [("Narrowest interval, as a share of its cell", value_text(float(least), "share"))]  # type: ignore[arg-type]
        rows += [("Middle interval, as a share of its cell", value_text(float(middle), "share"))]  # type: ignore[arg-type]
    return rows


def _relative(tabulated: Tabulated) -> pl.Series:
    audit = tabulated.outsider.filter(pl.col("status") == "sensitive") if tabulated.suppresses else tabulated.outsider
    wide = (audit["upper"] - audit["lower"]) / audit["value"].abs()
    return wide.filter(wide.is_finite())


def _narrow(tabulated: Tabulated) -> list[Facts]:
    """The cells with the narrowest feasibility intervals, relative to their values."""
    intervals = tabulated.outsider.with_columns(width=(pl.col("upper") - pl.col("lower")) / pl.col("value").abs())
    narrowest = intervals.filter(pl.col("value") != 0).sort("width", *tabulated.table.by).head(MAX_INTERVAL_ROWS)
    return [
        {
            "label": ", ".join(str(row[name]) for name in tabulated.table.by),
            "status": row["status"],
            "value": _amount(row["value"]),
            "between": " to ".join(_amount(row[end]) if np.isfinite(row[end]) else "any" for end in ("lower", "upper")),
            "width": value_text(row["width"], "share") if np.isfinite(row["width"]) else "no end",
        }
        for row in narrowest.iter_rows(named=True)
    ]
