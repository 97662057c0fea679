"""Report section on the keys and categories that make records unique, before and after."""

from typing import Any

import polars as pl

from equipoise.doors.report.page_parts import Facts, bar
from equipoise.inspection.assess import Assessment
from equipoise.presentation.numbers import number, value_text

MAX_CATEGORY_ROWS, MIN_NAMED_RECORDS = 5, 3
"""Categories of a key listed at most, and the records that a category needs to be named."""


def causes(before: Assessment, after: Assessment) -> Facts:
    """Uniques of both files, those that remain without each key, and the categories with most uniques."""
    keys = before.keys["key"].to_list()
    return {
        "uniques": [number(int(s.keys["uniques"][0]) if s.keys.height else 0) for s in (before, after)],
        "keys": _key_rows(before, after),
        "categories": [
            {"key": key, "sides": [("Before", _top(before.categories, key)), ("After", _top(after.categories, key))]}
            for key in keys
        ],
    }


def _key_rows(before: Assessment, after: Assessment) -> list[Facts]:
    """Per key, the uniques that would remain without it, before and after."""
    later = {row["key"]: row for row in after.keys.iter_rows(named=True)}
    rows = []
    for row in before.keys.iter_rows(named=True):
        pair = (row, later.get(row["key"]))
        rows.append({"key": row["key"], "sides": [_key_cell(side) for side in pair if side is not None]})
    return rows


def _key_cell(row: dict[str, Any]) -> Facts:
    share = row["without"] / row["uniques"] if row["uniques"] else 0.0
    return {
        "categories": number(row["categories"]),
        "without": number(row["without"]),
        "share": value_text(share, "share"),
        "bar": bar(share),
    }


def _top(table: pl.DataFrame, key: str) -> list[Facts]:
    """The categories of a key with most uniques."""
    categories = table.filter(pl.col("key") == key, pl.col("uniques") > 0).head(MAX_CATEGORY_ROWS)
    return [
        {
            "category": row["category"] if row["records"] >= MIN_NAMED_RECORDS else "a category of hardly anybody",
            "records": number(row["records"]),
            "uniques": number(row["uniques"]),
            "share": value_text(row["share"], "share"),
            "bar": bar(row["share"]),
        }
        for row in categories.iter_rows(named=True)
    ]
