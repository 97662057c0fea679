"""Report page of a protected table."""

from dataclasses import fields
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.cells import amount
from equipoise.doors.report.cell_details import MAX_DETAILS, CellDetails
from equipoise.doors.report.method_notes import method_note
from equipoise.doors.report.page_parts import Facts, charted, page_facts
from equipoise.doors.report.period_section import period_facts
from equipoise.doors.report.table_grid import formatter, grid, shown_cells
from equipoise.doors.report.table_map_section import compared_facts, map_of
from equipoise.methods.method import name_of
from equipoise.policies.dominance_check import parts_of
from equipoise.presentation.numbers import listed, number, title, value_text
from equipoise.recipe.catalogue import parse
from equipoise.releases.tabulated import Tabulated

MAX_INTERVAL_ROWS = 20
"""Rows of the narrowest intervals shown at most."""


def table_facts(tabulated: Tabulated, source: str, public: bool) -> Facts:
    """Facts for the page of one table; those of the public page hold only what may be published."""
    what, table = tabulated.what, grid(tabulated, public)
    return {
        **page_facts(f"{what[:1].upper()}{what[1:]} by {listed(tabulated.table.by)}"),
        "lead": tabulated.public_words if public else tabulated.words,
        "suppresses": tabulated.suppresses,
        "against": tabulated.attackers.public if public else tabulated.attackers.internal,
        "not_against": tabulated.attackers.not_cover,
        "grid": table,
        "changes": period_facts(tabulated, public),
        **charted(map=map_of(tabulated.compared) if tabulated.compared and not public else None),
        **({"methods": []} if public else {"source": source, **_internal(tabulated, table)}),
    }


def _internal(tabulated: Tabulated, table: Facts) -> Facts:
    cells = shown_cells(table)
    return {
        "details": CellDetails(tabulated).facts(cells),
        "explained": (min(len(cells), MAX_DETAILS), tabulated.outsider.height),
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
    values = {field.name: getattr(rule, field.name) for field in fields(rule)}
    parameters = ", ".join(f"{name} = {value}" for name, value in values.items() if value is not None)
    return title(name_of(type(rule))) + (f" ({parameters})" if parameters else "")


def _kinds(tabulated: Tabulated) -> dict[Any, str]:
    measures = tabulated.compared.chosen.scores if tabulated.compared else ()
    used = (*parts_of(tabulated.rule), tabulated.method, *(parse(score.name, "measure") for score in measures))
    return {type(method): name_of(type(method)) for method in used}


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
    text = formatter(amount(tabulated.table))
    return [
        {
            "label": ", ".join(str(row[name]) for name in tabulated.table.by),
            "status": row["status"],
            "value": text(row["value"]),
            "between": f"{text(row['lower'])} to {text(row['upper'])}",
            "width": value_text(row["width"], "share") if np.isfinite(row["width"]) else "no end",
        }
        for row in narrowest.iter_rows(named=True)
    ]
