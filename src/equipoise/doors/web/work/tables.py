"""Tables: counted where the data is, protected and audited in a process of their own."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.cells import amount, count
from equipoise.data.hierarchy import Hierarchy
from equipoise.data.levels import ORIGINAL, ROOT
from equipoise.data.records import Law, Records
from equipoise.data.tables.statistic import Mean, Share, statistic_of
from equipoise.data.tables.table import Table
from equipoise.doors.report.cell_details import CellDetails
from equipoise.doors.report.table_grid import grid, shown_cells
from equipoise.doors.web.full_paths import without_folders
from equipoise.doors.web.memory import Memory, Policy, frozen
from equipoise.doors.web.work import table_settings as plain
from equipoise.doors.web.work.table_settings import LARGEST, Plain, groupings
from equipoise.ground.errors import EquipoiseError, ParameterError, hint
from equipoise.policies.dominance_check import diagnose
from equipoise.policies.table_section import Tabulation, top_of
from equipoise.recipe.catalogue import parse
from equipoise.releases.tabulated import Tabulated
from equipoise.rules import PPercent
from equipoise.tables import Suppress

MOST_VALUES = 400
"""Columns with more different values make no table unless a hierarchy groups them."""
FEW = 20
"""Categories of a column in a table that is only proposed."""
PLACES = 5
"""Largest contributions that are kept, so that most rules can be changed without counting again."""
MOST_BY = 3


def columns(memory: Memory, folder: Path, policy: Policy) -> list[Plain]:
    """The columns of the file: whether they are numbers, how many values they have, and the levels they can have."""
    records = memory.records(folder, _data_and_roles(policy))
    return memory.once_for(policy, "table columns", lambda: _columns(records))


def _data_and_roles(policy: Policy) -> Plain:
    """The policy with its roles alone, and those that a table does not know left out."""
    roles = {**policy.get("roles", {}), "hierarchies": groupings(policy)}
    return {"data": policy["data"], "roles": {k: roles[k] for k in ("id", "direct", "hierarchies") if roles.get(k)}}


def _columns(records: Records) -> list[Plain]:
    schema = records.schema()
    names = [name for name in schema if name not in (records.roles.id, *records.roles.direct)]
    many = records.collect().select(pl.col(names).n_unique()).row(0, named=True) if names else {}
    rows = []
    for name in names:
        levels = _levels(records, name)
        grouped = [level for level in levels if level["categories"] <= MOST_VALUES]
        row = {"name": name, "numeric": schema[name].is_numeric(), "values": int(many[name])}
        row["rare"] = many[name] <= MOST_VALUES and bool((records.collect(name)[name].unique_counts() < 3).any())
        rows.append(row | {"levels": levels, "by": many[name] <= MOST_VALUES or bool(grouped)})
    return rows


def _levels(records: Records, column: str) -> list[Plain]:
    """The levels a column may be shown at, fine to coarse, each with its number of categories."""
    tree = records.roles.hierarchies.get(column)
    if tree is None:
        return []
    values = count(records, (column,)).values(column)
    sizes = [(level.name, level.label(values).n_unique()) for level in tree.allowed if level.name != ROOT]
    return [{"name": name, "categories": int(size)} for name, size in sizes]


def settled(memory: Memory, folder: Path, policy: Policy, draft: Policy) -> Plain:
    """The settings as they are, or those that are proposed where there are none yet, or none that fit."""
    specs = columns(memory, folder, policy)
    names = {column["name"] for column in specs}
    used = [*draft.get("by", ()), *(draft.get(role) for role in ("value", "weight", "holding") if draft.get(role))]
    if draft.get("by") and set(used) <= names:
        return dict(draft)
    table = policy.get("table")
    return (_from_policy(policy, table, specs) if isinstance(table, Mapping) else None) or _proposed(policy, specs)


def _from_policy(policy: Policy, table: Mapping[str, Any], specs: Sequence[Plain]) -> Plain | None:
    """The table of a policy file: its first candidate, under the rule of its limits."""
    by, names = list(table.get("by", ()))[:MOST_BY], {column["name"] for column in specs}
    if not by or table.get("ready") or not set(by) <= names:
        return None
    coarse = {c: str(level) for c, level in table.get("coarsen", {}).items() if c in by}
    settings = _blank(by, coarse, str(table.get("value") or ""))
    settings |= {"holding": str(table.get("holding") or "")}
    settings |= {"weight": str(table.get("weight") or policy.get("roles", {}).get("weight") or "")}
    settings |= {name: str(table.get(name) or "") for name in ("statistic", "apriori")}
    rule = next((parse(score, "measure").rule for score in policy.get("limits", {}) if "exposed" in score), None)
    rules = [step for step in plain.plain_rules(rule) if step["use"] in plain.RULES] if rule is not None else []
    return {**settings, "rules": plain.fitting(rules or settings["rules"], settings)}


def _proposed(policy: Policy, specs: Sequence[Plain]) -> Plain:
    """A small table of counts, by the first keys that have few categories; nothing where no column does."""
    roles = policy.get("roles", {})
    first = [*roles.get("domain", ()), *roles.get("keys", ())]
    fit = [(c, level) for c in specs if c["by"] and c["values"] > 1 and (level := level_for(c, FEW)) is not None]
    fit.sort(key=lambda one: (one[0]["name"] not in first, -categories(*one)))
    by = [(column["name"], level) for column, level in fit[:2]]
    settings = _blank([name for name, _ in by], {name: level for name, level in by if level != ORIGINAL}, "")
    return {**settings, "weight": str(roles.get("weight") or "")}


def level_for(column: Plain, most: int) -> str | None:
    """The finest level with so few categories."""
    if column["values"] <= most and not (column["levels"] and column["levels"][0]["name"] != ORIGINAL):
        return ORIGINAL
    return next((level["name"] for level in column["levels"] if level["categories"] <= most), None)


def categories(column: Plain, level: str) -> int:
    """How many categories a column has at a level."""
    sizes = {one["name"]: one["categories"] for one in column["levels"]}
    return int(sizes[level] if level in sizes else column["values"])


def _blank(by: list[str], levels: Plain, value: str) -> Plain:
    rules = plain.FOR_AMOUNTS if value else plain.FOR_COUNTS
    settings: Plain = {"by": by, "levels": levels, "subtotals": True, "value": value, "weight": "", "holding": ""}
    settings |= {"statistic": "", "apriori": ""}
    settings |= {"rules": [dict(step) for step in rules], "join": "|"}
    return {**settings, "method": {"use": plain.NONE}} if not by else plain.with_method(settings, "suppress")


def with_columns(memory: Memory, folder: Path, policy: Policy, draft: Policy, picks: Policy) -> Plain:
    """The settings with other columns; a column that is new comes at a level that suits it, rules that fit stay."""
    before = settled(memory, folder, policy, draft)
    by_name = {column["name"]: column for column in columns(memory, folder, policy)}
    by = list(dict.fromkeys(name for name in picks["by"] if name))[:MOST_BY]
    for name in (*by, *(picks[role] for role in ("value", "weight", "holding") if picks[role])):
        if name not in by_name:
            raise ParameterError(f"No column {name!r} in the data.{hint(name, list(by_name))}")
    if not by:
        raise ParameterError("A table goes by at least one column.")
    levels = dict(zip(picks["by"], picks["levels"], strict=False))
    chosen = {name: asked_level(by_name[name], levels.get(name) if name in before["by"] else None) for name in by}
    more = {role: picks[role] for role in ("value", "weight", "holding", "subtotals", "apriori")}
    settings = {**before, **more, "by": by, "levels": {c: level for c, level in chosen.items() if level != ORIGINAL}}
    usable = (
        by if picks["statistic"] == "share" else [c for c in by_name if by_name[c]["numeric"] and c != picks["value"]]
    )
    column = picks["of"] if picks["of"] in usable else "" if picks["statistic"] == "share" else next(iter(usable), "")
    settings = plain.with_statistic(settings, picks["statistic"] if picks["value"] else "", column)
    return {**settings, "rules": _refitted(before, settings)}


def _refitted(before: Mapping[str, Any], settings: Policy) -> list[Plain]:
    """The rules, unless amounts became counts or counts amounts: then those that fit, or the usual ones."""
    if bool(before["value"]) == bool(settings["value"]):
        return plain.fitting(settings["rules"], settings)
    if settings["value"] and not any(step["use"] in LARGEST for step in settings["rules"]):
        return [dict(step) for step in plain.FOR_AMOUNTS]
    return plain.fitting(settings["rules"], settings)


def asked_level(column: Plain, level: str | None) -> str:
    names = [one["name"] for one in column["levels"]]
    if level in names:
        return str(level)
    return level_for(column, FEW) or (names[-1] if names else ORIGINAL)


def view(memory: Memory, folder: Path, policy: Policy, draft: Policy, values: bool) -> Plain:
    """Everything the page shows at once: the settings, the columns, and the table with its sensitive cells."""
    specs, settings = columns(memory, folder, policy), settled(memory, folder, policy, draft)
    view: Plain = {"settings": settings, "columns": specs, "problem": "", "table": None}
    if not settings["by"]:
        return view
    try:
        return {**view, "table": flagged(memory, folder, policy, settings, values)}
    except EquipoiseError as error:
        return {**view, "problem": without_folders(str(error))}


def flagged(memory: Memory, folder: Path, policy: Policy, settings: Policy, values: bool) -> Plain:
    """The table with the cells that the rule calls sensitive, and what the rule misses."""
    table, rule = count_table(memory, folder, policy, settings), plain.rule_of(settings)
    unsafe, law = rule.flag(table).to_numpy(), Law("flag", (), "which cells are sensitive")
    status = pl.Series("status", np.where(unsafe, "sensitive", "published"))
    marked = table.protected(np.where(unsafe, np.nan, amount(table)), status, law)
    warning = diagnose(table, rule)
    tabulated = Tabulated(marked, pl.DataFrame(), Suppress(rule), rule, warning)
    if isinstance(statistic := statistic_of(settings.get("statistic") or None), Mean | Share):
        tabulated = replace(tabulated, statistic=statistic, numbers=statistic.of((table,)))
    shown = grid(tabulated, public=False)
    details = CellDetails(tabulated).facts(shown_cells(shown))
    return {
        "cells": len(table),
        "sensitive": int(unsafe.sum()),
        "empty": int((table.n == 0).sum()),
        "bases": _bases(table),
        "grid": veiled(shown, values),
        "details": veiled_details(details, values),
        "warnings": [(warning.rule, warning.words, warning.example)] if warning else [],
    }


def _bases(table: Table) -> list[int]:
    """Bases worth a try: small ones for counts, for amounts of the size of a cell."""
    value = amount(table)[table.inner & (table.n > 0)]
    if not table.measured or not len(value):
        return [3, 5, 10]
    size: int = 10 ** max(1, int(np.log10(max(10.0, float(np.median(value))))))
    return [size // 10, size]


def count_table(memory: Memory, folder: Path, policy: Policy, settings: Policy) -> Table:
    """The table of the settings, counted once."""
    source = {"data": policy["data"], "roles": plain.roles_of(policy, settings)}
    records = memory.records(folder, source)
    top = max(PLACES, top_of([plain.rule_of(settings)]))
    parts = {
        name: settings.get(name) for name in ("by", "levels", "subtotals", "value", "weight", "holding", "apriori")
    }
    name = ("table", frozen(source), frozen(parts), top)
    return memory.once(name, lambda: _count(records, settings, folder, top))


def _count(records: Records, settings: Policy, folder: Path, top: int) -> Table:
    request, most = tabulation(records, settings), PPercent(0.1, coalition=top - 1)
    return request.made(request.prepared(records), folder, (), (most,), seed=0)


def tabulation(records: Records, settings: Policy) -> Tabulation:
    """[table] of the settings, with what is coarser than the chosen levels as groups."""
    return Tabulation(
        by=tuple(settings["by"]), value=settings["value"] or None, holding=settings["holding"] or None,
        weight=settings["weight"] or None, coarsen=dict(settings["levels"]), hierarchies=trees(records, settings),
        apriori=settings.get("apriori") or None,
    )  # fmt: skip


def trees(records: Records, settings: Policy) -> Plain:
    """The groups of columns that are shown coarser than they are."""
    if not settings["subtotals"]:
        return {}
    groups = {column: _groups(records, column, level) for column, level in settings["levels"].items()}
    return {column: tree.to_plain() for column, tree in groups.items() if tree is not None}


def _groups(records: Records, column: str, name: str) -> Hierarchy | None:
    """What is coarser than a level in its branch, as a hierarchy of the categories of that level."""
    tree = records.roles.hierarchies.get(column)
    if tree is None:
        raise ParameterError(f"Column {column!r} has no hierarchy: show it as it is.")
    level = tree.level(name)
    branch = next((b.levels() for b in tree.branches if level in b.levels()), ())
    above = [one for one in branch[branch.index(level) + 1 :] if one.name != ROOT] if branch else []
    if not above:
        return None
    values = count(records, (column,)).values(column)
    labels = [one.label(values).cast(pl.String).alias(str(i)) for i, one in enumerate([level, *above])]
    rows = pl.DataFrame(labels).drop_nulls().unique(maintain_order=True)
    if rows["0"].n_unique() < rows.height:
        return None
    return Hierarchy.mapping({row[0]: row[1:] for row in rows.rows()}, names=[one.name for one in above])


def veiled(grid: Plain, values: bool) -> Plain:
    """A table without the values of suppressed cells, unless they are asked for."""
    if values:
        return grid
    blocks = [{**b, "rows": [{**r, "cells": [*map(_veiled, r["cells"])]} for r in b["rows"]]} for b in grid["blocks"]]
    return {**grid, "blocks": blocks}


def _veiled(cell: Plain) -> Plain:
    return {**cell, "text": ""} if cell["kind"] in ("sensitive", "secondary") else cell


def veiled_details(details: Sequence[Plain], values: bool) -> list[Plain]:
    """What there is to say of cells, without their values and what tells them: contributions, reasons, intervals."""
    return list(details) if values else [*map(_veiled_detail, details)]


def _veiled_detail(cell: Plain) -> Plain:
    why = cell["why"] if cell["status"] == "secondary" else [line.partition(":")[0] for line in cell["why"]]
    known = [row if row["outsider"] else {**row, "between": ""} for row in cell["known"]]
    return {**cell, "value": "", "who": "", "why": why, "known": known}


def policy_of(memory: Memory, folder: Path, policy: Policy, settings: Policy) -> Plain:
    """The policy file of the settings."""
    if settings["method"]["use"] == plain.NONE:
        raise ParameterError("Choose what to do about sensitive cells first.")
    records = memory.records(folder, {"data": policy["data"], "roles": plain.roles_of(policy, settings)})
    return plain.policy_of(policy, settings, trees(records, settings))
