"""Columns beside the keys that single people out: which they are, and what the policy says of each."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from equipoise.data.records import Records
from equipoise.data.roles import names
from equipoise.doors.web.full_paths import without_folders
from equipoise.doors.web.memory import Memory
from equipoise.doors.web.work.limits import with_preset
from equipoise.doors.web.work.trials import Plain, policy_of
from equipoise.ground.errors import EquipoiseError
from equipoise.inspection.revealing import MAX_REVEALED_SHARE, revealing, without
from equipoise.policies.changed_columns import changed_columns
from equipoise.policies.policy import Policy
from equipoise.policies.revealed_columns import assumed_unknown, undeclared
from equipoise.presentation.numbers import listed, percent

MAX_ROWS = 12
"""Columns and pairs that are listed."""
PlainPolicy = Mapping[str, Any]


def revealing_table(memory: Memory, folder: Path, policy: PlainPolicy) -> pl.DataFrame:
    """The columns and pairs that single people out in the file as it is. Cost: that of `RevealingColumns`."""
    records = memory.records(folder, policy)
    return memory.once_for(policy, "revealing", lambda: revealing(records, records))


def singled_out(memory: Memory, folder: Path, policy: PlainPolicy) -> Plain:
    """Columns and pairs with the share of the people whom they single out, the largest first."""
    table, labels = revealing_table(memory, folder, policy), memory.records(folder, policy).labels
    rows = [
        {
            "columns": (columns := [c for c in pair if c]),
            "labels": [text for c in columns if (text := labels.of(c).label)],
            "share": share,
            "number": number,
        }
        for *pair, share, number in table.head(MAX_ROWS).iter_rows()
    ]
    return {"rows": rows, "more": table.height - len(rows), "least": MAX_REVEALED_SHARE}


def declarations(memory: Memory, folder: Path, policy: PlainPolicy) -> Plain:
    """Each column that takes part, what the policy says of it, and whether it is declared that nobody knows it."""
    try:
        table, records = revealing_table(memory, folder, policy), memory.records(folder, policy)
        plain, limits = with_preset(policy, folder), policy_of(policy, folder)
        own = names(policy.get("assume_unknown"), "assume_unknown")
    except EquipoiseError as error:
        return {"rows": [], "open": 0, "least": MAX_REVEALED_SHARE, "problem": without_folders(str(error))}
    masked = _masked(plain, records)
    columns = dict.fromkeys(c for pair in table.select("column", "beside").iter_rows() for c in pair if c)
    stances = {c: _stance(c, table, limits, masked) for c in (*columns, *own)}
    rows = [
        {"column": c, "share": _share(c, table), "policy": words, "open": not words, "unknown": c in own}
        for c, words in stances.items()
    ]
    return {"rows": rows, "open": sum(row["open"] for row in rows), "least": MAX_REVEALED_SHARE, "problem": ""}


def _masked(plain: PlainPolicy, records: Records) -> dict[str, bool]:
    """The columns that recipes change, and whether all of them do."""
    recipes = [frozenset[str]().union(*(changed_columns(mask, records) for mask in masks)) for masks in _recipes(plain)]
    every = frozenset[str]().union(*recipes)
    return {column: all(column in recipe for recipe in recipes) for column in every}


def _recipes(plain: PlainPolicy) -> Iterator[list[Mapping[str, Any]]]:
    """The masks of each candidate, and of the coarsenings of one."""
    always = plain.get("always", ())
    for candidate in plain.get("candidates", [{"coarsenings": True}]):
        if candidate.get("coarsenings"):
            yield [*candidate.get("then", ()), *always]
        if candidate.get("masks"):
            yield [*candidate["masks"], *always]


def _stance(column: str, table: pl.DataFrame, policy: Policy, masked: Mapping[str, bool]) -> str:
    """What the policy says of a column in words; empty where it says nothing, and nothing would be released."""
    unknown = assumed_unknown(policy)
    if column in unknown:
        return "assumes that nobody knows it"
    mask = "" if column not in masked else f"masked in {'every recipe' if masked[column] else 'some recipes'}"
    rows = _rows(column, table)
    if undeclared(rows.head(1).with_columns(column=pl.lit(column), beside=pl.lit(None, pl.String)), policy).is_empty():
        return f"{mask}, and what is left is limited" if mask else "limited"
    if mask:
        return f"{mask}; what is left is checked at the release"
    others = {c for pair in rows.select("column", "beside").iter_rows() for c in pair if c in masked or c in unknown}
    enough = without(rows, others).is_empty()
    return (
        f"nothing needed, as {listed(sorted(others))} {'is' if len(others) == 1 else 'are'} masked or unknown"
        if enough
        else ""
    )


def _rows(column: str, table: pl.DataFrame) -> pl.DataFrame:
    """The rows in which a column takes part."""
    return table.filter((pl.col("column") == column) | (pl.col("beside") == column).fill_null(False))


def _share(column: str, table: pl.DataFrame) -> str:
    """The share of people whom a column singles out alone, or with the other that helps it most."""
    rows = _rows(column, table)
    if rows.is_empty():
        return f"{percent(MAX_REVEALED_SHARE)} or less"
    one, two, share, _ = rows.row(0)
    return f"{percent(share)} together with {two if one == column else one}" if two else percent(share)
