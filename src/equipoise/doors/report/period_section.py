"""Report section on the differences of a table to the last period's."""

from collections.abc import Callable

import polars as pl

from equipoise.doors.report.page_parts import Facts
from equipoise.doors.report.table_grid import formatter
from equipoise.presentation.numbers import value_text
from equipoise.presentation.reading_order import telling_names
from equipoise.releases.tabulated import Tabulated

MAX_CELLS_NAMED, MAX_CHANGES = 60, 20
"""Cells newly suppressed or published, and changed values, that are listed at most."""

KIND_WORDS = {kind: kind for kind in ("newly suppressed", "newly published", "suppressed in both")} | {
    "changed": "published in both with another number", "unchanged": "published in both with the same number",
    "new": "that the last period did not have",
}  # fmt: skip
"""What can have become of a cell."""


def change_counts(tabulated: Tabulated) -> list[tuple[str, int]]:
    """How many cells became what since the last period; empty where the pattern followed none."""
    if tabulated.changes is None:
        return []
    counts = dict(tabulated.changes["change"].value_counts().iter_rows())
    return [(words, int(counts[kind])) for kind, words in KIND_WORDS.items() if counts.get(kind)]


def period_words(tabulated: Tabulated) -> list[str]:
    """What the differences mean for those who guard the table."""
    counts, earlier, words = dict(change_counts(tabulated)), len(tabulated.table.beside), []
    if many := counts.get("newly published", 0):
        who = "cell that was" if many == 1 else "cells that were"
        words.append(
            f"Published now: {many:,} {who} suppressed then. Where values move little, that tells the old ones."
        )
    if many := counts.get("newly suppressed", 0):
        who = "cell that was" if many == 1 else "cells that were"
        words.append(
            f"Suppressed now: {many:,} {who} published then. Where values move little, that tells the new ones."
        )
    if earlier:
        words.append(
            f"Audited together with the earlier tables of the same records in the register, {earlier:,} of them."
        )
    elif counts:
        words.append("The periods were not audited together: a register does that for tables of the same records.")
    return words


def period_facts(tabulated: Tabulated, public: bool) -> Facts | None:
    """The differences to the last period: of published numbers alone, on both pages."""
    rows = tabulated.changes
    if rows is None:
        return None
    table = tabulated.table
    names = [dict(zip(a.nodes.to_list(), telling_names(a, table.labels.of(a.name)), strict=True)) for a in table.axes]
    text = formatter(table.published_values)

    def label(row: tuple[str, ...]) -> str:
        return " · ".join(name.get(node, node) for name, node in zip(names, row, strict=False))

    listings = []
    for kind in ("newly suppressed", "newly published"):
        cells = [label(row) for row in rows.filter(pl.col("change") == kind).select(table.by).iter_rows()]
        if cells:
            more = max(0, len(cells) - MAX_CELLS_NAMED)
            listings.append({"kind": kind, "cells": cells[:MAX_CELLS_NAMED], "more": more})
    moved = rows.filter(pl.col("change") == "changed").drop("change")
    largest = moved.sort((pl.col("now") - pl.col("before")).abs(), descending=True, maintain_order=True)
    return {
        "counts": change_counts(tabulated),
        "words": [] if public else period_words(tabulated),
        "listings": listings,
        "moved": [_moved(label(row), row[-2], row[-1], text) for row in largest.head(MAX_CHANGES).iter_rows()],
        "all": moved.height,
    }


def _moved(label: str, before: float, now: float, text: Callable[[float], str]) -> Facts:
    sign = "+" if now > before else ""
    share = sign + value_text((now - before) / abs(before), "share") if before else "–"
    return {"label": label, "before": text(before), "now": text(now), "by": sign + text(now - before), "share": share}
