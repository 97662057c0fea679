"""What a page says about a protected table."""

from dataclasses import fields
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import islice, product
from math import prod
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.cells import amount
from equipoise.data.tables.axes import Axis
from equipoise.data.tables.table import Table
from equipoise.doors.report.intruder_section import charted
from equipoise.doors.report.method_notes import described
from equipoise.doors.report.table_map_section import compared_facts, map_of
from equipoise.methods.method import name_of
from equipoise.policies.dominance_check import parts_of
from equipoise.presentation.numbers import listed, number, said, title
from equipoise.recipe.catalogue import parse
from equipoise.releases.tabulated import Tabulated

Facts = dict[str, Any]
ROWS, COLUMNS, NARROW = 60, 12, 20
"""Rows and columns shown at most, and how many of the narrowest intervals."""
PACKAGES = ("polars", "numpy", "narwhals")
MARKS = {"sensitive": "s", "helper": "h"}


def table_facts(found: Tabulated, source: str, public: bool) -> Facts:
    """A page about one table; the public one is made from nothing else than what may be published."""
    today = datetime.now(UTC).date()
    what = found.table.measured or "records"
    return {
        "title": f"{what[:1].upper()}{what[1:]} by {listed(found.table.by)}",
        "made": f"{today.day} {today:%B %Y}",
        "version": version("equipoise"),
        "lead": found.public_words if public else found.words,
        "withholds": found.withholds,
        "grid": grid(found, public),
        **charted(map=map_of(found.compared) if found.compared and not public else None),
        "versions": [(name, version(name)) for name in PACKAGES],
        **({"methods": []} if public else {"source": source, **_internal(found)}),
    }


def _internal(found: Tabulated) -> Facts:
    return {
        "certificate": certificate(found),
        "narrow": _narrow(found),
        "warnings": [(w.rule, w.words, w.example) for w in found.warnings],
        "compared": compared_facts(found.compared) if found.compared else None,
        "notes": found.notes,
        "done": [law.words for law in found.table.history],
        "rule": _rule(found.rule) if found.rule is not None else None,
        "methods": [described(kind, title(name)) for kind, name in _kinds(found).items()],
    }


def _rule(rule: Any) -> str:
    """A rule with all its parameters, joined ones in words."""
    if hasattr(rule, "rules"):
        return {"|": " or ", "&": " and "}[rule.mark].join(_rule(part) for part in rule.rules)
    given = ", ".join(f"{field.name} = {getattr(rule, field.name)}" for field in fields(rule))
    return title(name_of(type(rule))) + (f" ({given})" if given else "")


def _kinds(found: Tabulated) -> dict[Any, str]:
    used = (*parts_of(found.rule), found.method, *_scales(found))
    return {type(method): name_of(type(method)) for method in used}


def _scales(found: Tabulated) -> list[Any]:
    """The measures that methods were compared by."""
    return [parse(score.name, "measure") for score in found.compared.chosen.scores] if found.compared else []


# --- the table as a person reads it -------------------------------------------------------------------------------


def grid(found: Tabulated, public: bool) -> Facts:
    """Rows and columns with their margins, groups above what they hold; the shortest axis across, the others down."""
    table = found.table
    across = _across(table)
    down = [i for i in range(len(table.axes)) if i != across]
    rows, row_cut = _rows([table.axes[i] for i in down])
    columns, column_cut = ([(0, 0)], "") if across is None else _shown(table.axes[across], COLUMNS)
    cells = _cells(found, down, across, [nodes for nodes, _, _ in rows], public)
    return {
        "corner": listed(table.axes[i].name for i in down),
        "across": table.axes[across].name if across is not None else None,
        "columns": _columns(table, across, columns),
        "rows": [
            {"label": label, "depth": depth, "cells": [cells.get((*nodes, other), EMPTY) for other, _ in columns]}
            for nodes, label, depth in rows
        ],
        "cuts": [words for words in (row_cut and f"{row_cut} rows", column_cut and f"{column_cut} columns") if words],
    }


EMPTY = {"text": "–", "mark": "", "kind": ""}
Row = tuple[tuple[int, ...], str, int]
"""The nodes of a row, what it is called and how deep it is."""


def _across(table: Table) -> int | None:
    """The axis that runs across: the shortest, the last of those."""
    many = len(table.axes)
    return None if many == 1 else min(reversed(range(many)), key=lambda i: len(table.axes[i]))


def _columns(table: Table, across: int | None, shown: list[tuple[int, int]]) -> list[Facts]:
    if across is None:
        return [{"label": table.measured or "records", "depth": 0}]
    return [{"label": table.axes[across].nodes[node], "depth": depth} for node, depth in shown]


def _rows(axes: list[Axis]) -> tuple[list[Row], str]:
    """The nodes of one axis, or of several one within the other; and how they were cut."""
    if len(axes) == 1:
        shown, cut = _shown(axes[0], ROWS)
        return [((node,), axes[0].nodes[node], depth) for node, depth in shown], cut
    every = prod(len(axis) for axis in axes)
    found = [_row(axes, steps) for steps in islice(product(*map(ordered, axes)), ROWS)]
    return found, f"the first {ROWS:,} of {every:,}" if every > ROWS else ""


def _row(axes: list[Axis], steps: tuple[tuple[int, int], ...]) -> Row:
    """A row of several axes: named by all of its nodes, as deep as the last axis that is not at its total."""
    nodes = tuple(node for node, _ in steps)
    name = " · ".join(axis.nodes[node] for axis, node in zip(axes, nodes, strict=True))
    return nodes, name, max((i + depth for i, (_, depth) in enumerate(steps) if depth), default=0)


def ordered(axis: Axis) -> list[tuple[int, int]]:
    """The nodes of an axis and how deep they are, each group before what it holds."""
    found: dict[int, int] = {}
    for chain in axis.chains:
        paths = np.unique(np.stack(chain[::-1], axis=1), axis=0)
        for path in paths.tolist():
            for depth, node in enumerate(dict.fromkeys(path)):
                found.setdefault(node, depth)
    return list(found.items())


def _shown(axis: Axis, most: int) -> tuple[list[tuple[int, int]], str]:
    """All nodes, or the coarse levels that fit, or the first ones; and how it was cut."""
    every = ordered(axis)
    if len(every) <= most:
        return every, ""
    for deepest in sorted({depth for _, depth in every[1:]}, reverse=True):
        coarse = [(node, depth) for node, depth in every if depth <= deepest]
        if len(coarse) <= most:
            return coarse, f"the {len(coarse):,} coarsest of {len(every):,}"
    return every[:most], f"the first {most:,} of {len(every):,}"


def _cells(
    found: Tabulated, down: list[int], across: int | None, rows: list[tuple[int, ...]], public: bool
) -> dict[tuple[int, ...], Facts]:
    """What is written into each cell of these rows, by its nodes: those of the row, then that of the column."""
    table = found.table
    sizes = [len(table.axes[i]) for i in down]
    keys = np.ravel_multi_index([table.nodes[i] for i in down], sizes)
    places = np.flatnonzero(np.isin(keys, np.ravel_multi_index(list(np.array(rows).T), sizes)))
    other = table.nodes[across][places] if across is not None else np.zeros(len(places), dtype=np.int64)
    nodes = zip(*(table.nodes[i][places].tolist() for i in down), other.tolist(), strict=True)
    told, status = table.told[places], found.statuses.gather(places)
    if public:
        return dict(zip(nodes, map(_public, told.tolist()), strict=True))
    value, empty = amount(table)[places], (table.n[places] == 0).tolist()
    shown = zip(told.tolist(), value.tolist(), status.to_list(), empty, strict=True)
    return dict(zip(nodes, (_private(*row) for row in shown), strict=True))


def _public(told: float) -> Facts:
    if np.isnan(told):
        return {"text": "x", "mark": "", "kind": "withheld"}
    return {"text": _amount(told), "mark": "", "kind": ""}


def _private(told: float, value: float, status: str, empty: bool) -> Facts:
    if empty and not told:
        return EMPTY
    hidden = np.isnan(told)
    return {
        "text": _amount(value if hidden else told),
        "mark": MARKS.get(status, ""),
        "kind": status if hidden else "",
    }


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 1000 else number(value)


# --- the certificate ----------------------------------------------------------------------------------------------


def certificate(found: Tabulated) -> list[tuple[str, str]]:
    """What the audit found, as rows of a table."""
    counts = found.counts
    rows = [("Cells of the table", number(counts["cells"]))]
    if found.withholds:
        rows += [("Sensitive cells", number(counts["sensitive"])), ("Helpers", number(counts["helpers"]))]
        rows += [("Value in withheld inner cells", said(found.share, "share"))]
    else:
        rows += [
            ("Cells changed", number(counts["changed"])),
            ("Cells that need protection", number(counts["sensitive"])),
        ]
    rows += [("Known exactly", number(counts["exact"])), ("Known to within their level", number(counts["exposed"]))]
    widths = _relative(found)
    if not widths.is_empty():
        least, middle = widths.min(), widths.median()
        rows += [("Narrowest interval, as a share of its cell", said(float(least), "share"))]  # type: ignore[arg-type]
        rows += [("Middle interval, as a share of its cell", said(float(middle), "share"))]  # type: ignore[arg-type]
    return rows


def _relative(found: Tabulated) -> pl.Series:
    shown = found.audit.filter(pl.col("status") == "sensitive") if found.withholds else found.audit
    wide = (shown["upper"] - shown["lower"]) / shown["value"]
    return wide.filter(wide.is_finite())


def _narrow(found: Tabulated) -> list[Facts]:
    """The cells that an attacker knows best."""
    shown = found.audit.with_columns(width=(pl.col("upper") - pl.col("lower")) / pl.col("value"))
    rows = shown.filter(pl.col("value") > 0).sort("width", *found.table.by).head(NARROW).iter_rows(named=True)
    return [
        {
            "label": ", ".join(str(row[name]) for name in found.table.by),
            "status": row["status"],
            "value": _amount(row["value"]),
            "between": f"{_amount(row['lower'])} to {_end(row['upper'])}",
            "width": said(row["width"], "share") if np.isfinite(row["width"]) else "no end",
        }
        for row in rows
    ]


def _end(value: float) -> str:
    return _amount(value) if np.isfinite(value) else "any"
