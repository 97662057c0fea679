"""Which keys and categories are behind the uniques, before and after."""

from typing import Any

import polars as pl

from equipoise.inspection.assess import Assessment
from equipoise.presentation.numbers import number, said

Facts = dict[str, Any]
MOST_CATEGORIES, NAMED = 5, 3
"""Categories of a key that are listed, and the records that one must have to be named."""


def causes(before: Assessment, after: Assessment) -> Facts:
    """The uniques of both files, what would remain without each key, and the categories that hold most."""
    keys = before.keys["key"].to_list()
    return {
        "uniques": [_uniques(side) for side in (before, after)],
        "keys": _key_rows(before, after),
        "categories": [_categories(key, before, after) for key in keys],
    }


def _uniques(side: Assessment) -> str:
    return number(int(side.keys["uniques"][0]) if side.keys.height else 0)


def _key_rows(before: Assessment, after: Assessment) -> list[Facts]:
    """Per key, what would remain without it, before and after."""
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
        "share": said(share, "share"),
        "bar": _bar(share),
    }


def _bar(share: float) -> str:
    return f"{100 * min(1.0, share):.1f}%"


def _categories(key: str, before: Assessment, after: Assessment) -> Facts:
    return {
        "key": key,
        "sides": [
            ("Before", _top(before.categories, key)),
            ("After", _top(after.categories, key)),
        ],
    }


def _top(table: pl.DataFrame, key: str) -> list[Facts]:
    """The categories of a key that hold the most uniques."""
    found = table.filter(pl.col("key") == key, pl.col("uniques") > 0).head(MOST_CATEGORIES)
    return [
        {
            "category": row["category"] if row["records"] >= NAMED else "a category of hardly anybody",
            "records": number(row["records"]),
            "uniques": number(row["uniques"]),
            "share": said(row["share"], "share"),
            "bar": _bar(row["share"]),
        }
        for row in found.iter_rows(named=True)
    ]
