"""Tables: counted where the data is, protected and audited in a process of their own."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.cells import amount, count
from equipoise.data.hierarchy import Hierarchy
from equipoise.data.levels import ORIGINAL, ROOT
from equipoise.data.records import Law, Records
from equipoise.data.tables.table import Table
from equipoise.doors.report.table_page import grid
from equipoise.doors.web.memory import Memory, frozen
from equipoise.doors.web.work import table_settings as plain
from equipoise.doors.web.work.table_settings import LARGEST, Plain
from equipoise.ground.errors import EquipoiseError, ParameterError, hint
from equipoise.policies.dominance_check import diagnose
from equipoise.policies.table_section import Tabulation, top_of
from equipoise.recipe.catalogue import parse
from equipoise.releases.tabulated import Tabulated
from equipoise.tables import Suppress

MOST_VALUES = 400
"""Columns with more different values make no table unless a hierarchy groups them."""
FEW = 20
"""Categories of a column in a table that is only proposed."""
PLACES = 5
"""Largest contributions that are kept, so that most rules can be changed without counting again."""
MOST_BY = 3


# --- settings -----------------------------------------------------------------------------------------------------


def columns(held: Memory, folder: Path, policy: Mapping[str, Any]) -> list[Plain]:
    """The columns of the file: whether they are numbers, how many values they have, and the levels they can have."""
    records = held.records(folder, _named(policy))
    name = ("table columns", frozen(policy["data"]), frozen(policy.get("roles", {})))
    return held.once(name, lambda: _columns(records))


def _named(policy: Mapping[str, Any]) -> Plain:
    """The policy with its roles alone, and those that a table does not know left out."""
    roles = policy.get("roles", {})
    return {"data": policy["data"], "roles": {k: roles[k] for k in ("id", "direct", "hierarchies") if roles.get(k)}}


def _columns(records: Records) -> list[Plain]:
    schema = records.schema()
    shown = [name for name in schema if name not in (records.roles.id, *records.roles.direct)]
    many = records.collect().select(pl.col(shown).n_unique()).row(0, named=True) if shown else {}
    found = []
    for name in shown:
        levels = _levels(records, name)
        grouped = [level for level in levels if level["categories"] <= MOST_VALUES]
        fits = many[name] <= MOST_VALUES or bool(grouped)
        found.append(
            {
                "name": name,
                "numeric": schema[name].is_numeric(),
                "values": int(many[name]),
                "levels": levels,
                "by": fits,
            }
        )
    return found


def _levels(records: Records, column: str) -> list[Plain]:
    """The levels a column may be shown at, fine to coarse, each with its number of categories."""
    tree = records.roles.hierarchies.get(column)
    if tree is None:
        return []
    values = count(records, (column,)).values(column)
    found = [(level.name, level.label(values).n_unique()) for level in tree.allowed if level.name != ROOT]
    return [{"name": name, "categories": int(size)} for name, size in found]


def settled(held: Memory, folder: Path, policy: Mapping[str, Any], given: Mapping[str, Any]) -> Plain:
    """The settings as they are, or those that are proposed where there are none yet, or none that fit."""
    known = columns(held, folder, policy)
    names = {column["name"] for column in known}
    used = [*given.get("by", ()), *(given.get(role) for role in ("value", "weight", "holding") if given.get(role))]
    if given.get("by") and set(used) <= names:
        return dict(given)
    asked = policy.get("table")
    return (_from_policy(policy, asked, known) if isinstance(asked, Mapping) else None) or _proposed(policy, known)


def _from_policy(policy: Mapping[str, Any], asked: Mapping[str, Any], known: Sequence[Plain]) -> Plain | None:
    """The table of a policy file: its first candidate, under the rule of its limits."""
    by, names = list(asked.get("by", ()))[:MOST_BY], {column["name"] for column in known}
    if not by or asked.get("ready") or not set(by) <= names:
        return None
    coarse = {c: str(level) for c, level in asked.get("coarsen", {}).items() if c in by}
    made = _blank(by, coarse, str(asked.get("value") or ""))
    made |= {"holding": str(asked.get("holding") or "")}
    made |= {"weight": str(asked.get("weight") or policy.get("roles", {}).get("weight") or "")}
    rule = next((parse(score, "measure").rule for score in policy.get("limits", {}) if "exposed" in score), None)
    rules = [step for step in plain.plain_rules(rule) if step["use"] in plain.RULES] if rule is not None else []
    return {**made, "rules": plain.fitting(rules or made["rules"], made)}


def _proposed(policy: Mapping[str, Any], known: Sequence[Plain]) -> Plain:
    """A small table of counts, by the first keys that have few categories; nothing where no column does."""
    roles = policy.get("roles", {})
    first = [*roles.get("domain", ()), *roles.get("keys", ())]
    fit = [(c, level) for c in known if c["by"] and c["values"] > 1 and (level := level_for(c, FEW)) is not None]
    fit.sort(key=lambda one: (one[0]["name"] not in first, -categories(*one)))
    by = [(column["name"], level) for column, level in fit[:2]]
    made = _blank([name for name, _ in by], {name: level for name, level in by if level != ORIGINAL}, "")
    weight = str(roles.get("weight") or "")
    return {**made, "weight": weight}


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
    made: Plain = {"by": by, "levels": levels, "subtotals": True, "value": value, "weight": "", "holding": ""}
    made |= {"rules": [dict(step) for step in rules], "join": "|"}
    return {**made, "method": {"use": plain.NONE}} if not by else plain.with_method(made, "suppress")


def with_columns(
    held: Memory, folder: Path, policy: Mapping[str, Any], given: Mapping[str, Any], asked: Mapping[str, Any]
) -> Plain:
    """The settings with other columns; a column that is new comes at a level that suits it, rules that fit stay."""
    before = settled(held, folder, policy, given)
    known = {column["name"]: column for column in columns(held, folder, policy)}
    by = list(dict.fromkeys(name for name in asked["by"] if name))[:MOST_BY]
    for name in (*by, *(asked[role] for role in ("value", "weight", "holding") if asked[role])):
        if name not in known:
            raise ParameterError(f"No column {name!r} in the data.{hint(name, list(known))}")
    if not by:
        raise ParameterError("A table goes by at least one column.")
    levels = dict(zip(asked["by"], asked["levels"], strict=False))
    chosen = {name: _asked_level(known[name], levels.get(name) if name in before["by"] else None) for name in by}
    more = {role: asked[role] for role in ("value", "weight", "holding", "subtotals")}
    made = {**before, **more, "by": by, "levels": {c: level for c, level in chosen.items() if level != ORIGINAL}}
    return {**made, "rules": _refitted(before, made)}


def _refitted(before: Mapping[str, Any], made: Mapping[str, Any]) -> list[Plain]:
    """The rules, unless amounts became counts or counts amounts: then those that fit, or the usual ones."""
    if bool(before["value"]) == bool(made["value"]):
        return plain.fitting(made["rules"], made)
    if made["value"] and not any(step["use"] in LARGEST for step in made["rules"]):
        return [dict(step) for step in plain.FOR_AMOUNTS]
    return plain.fitting(made["rules"], made)


def _asked_level(column: Plain, level: str | None) -> str:
    names = [one["name"] for one in column["levels"]]
    if level in names:
        return str(level)
    return level_for(column, FEW) or (names[-1] if names else ORIGINAL)


# --- the table, at once -------------------------------------------------------------------------------------------


def seen(held: Memory, folder: Path, policy: Mapping[str, Any], given: Mapping[str, Any], values: bool) -> Plain:
    """Everything the page shows at once: the settings, the columns, and the table with its sensitive cells."""
    known, settings = columns(held, folder, policy), settled(held, folder, policy, given)
    found: Plain = {"settings": settings, "columns": known, "problem": "", "table": None}
    if not settings["by"]:
        return found
    try:
        return {**found, "table": flagged(held, folder, policy, settings, values)}
    except EquipoiseError as error:
        return {**found, "problem": str(error)}


def flagged(held: Memory, folder: Path, policy: Mapping[str, Any], settings: Mapping[str, Any], values: bool) -> Plain:
    """The table with the cells that the rule calls sensitive, and what the rule misses."""
    made, rule = counted(held, folder, policy, settings), plain.rule_of(settings)
    unsafe = rule.flag(made).to_numpy()
    status = pl.Series("status", np.where(unsafe, "sensitive", "published"))
    shown = made.protected(np.where(unsafe, np.nan, amount(made)), status, Law("flag", (), "which cells are sensitive"))
    warning = diagnose(made, rule)
    found = Tabulated(shown, pl.DataFrame(), Suppress(rule), rule, warning)
    return {
        "cells": len(made),
        "sensitive": int(unsafe.sum()),
        "empty": int((made.n == 0).sum()),
        "bases": _bases(made),
        "grid": veiled(grid(found, public=False), values),
        "warnings": [(warning.rule, warning.words, warning.example)] if warning else [],
    }


def _bases(made: Table) -> list[int]:
    """Bases worth a try: small ones for counts, for amounts of the size of a cell."""
    value = amount(made)[made.inner & (made.n > 0)]
    if not made.measured or not len(value):
        return [3, 5, 10]
    size: int = 10 ** max(1, int(np.log10(max(10.0, float(np.median(value))))))
    return [size // 10, size]


def counted(held: Memory, folder: Path, policy: Mapping[str, Any], settings: Mapping[str, Any]) -> Table:
    """The table of the settings, counted once."""
    asked = {"data": policy["data"], "roles": plain.roles_of(policy, settings)}
    records = held.records(folder, asked)
    top = max(PLACES, top_of([plain.rule_of(settings)]))
    parts = {name: settings[name] for name in ("by", "levels", "subtotals", "value", "weight", "holding")}
    name = ("table", frozen(asked), frozen(parts), top)
    return held.once(name, lambda: _counted(records, settings, folder, top))


def _counted(records: Records, settings: Mapping[str, Any], folder: Path, top: int) -> Table:
    asked = tabulation(records, settings)
    made = partial(asked.made, asked.prepared(records), folder, (), seed=0)
    return made(rules=(_Places(top),))


class _Places:
    """As many largest contributions as are kept."""

    def __init__(self, top: int) -> None:
        self.coalition = top - 1


def tabulation(records: Records, settings: Mapping[str, Any]) -> Tabulation:
    """[table] of the settings, with what is coarser than the chosen levels as groups."""
    return Tabulation(
        by=tuple(settings["by"]), value=settings["value"] or None, holding=settings["holding"] or None,
        weight=settings["weight"] or None, coarsen=dict(settings["levels"]), hierarchies=trees(records, settings),
    )  # fmt: skip


def trees(records: Records, settings: Mapping[str, Any]) -> Plain:
    """The groups of columns that are shown coarser than they are."""
    if not settings["subtotals"]:
        return {}
    found = {column: _groups(records, column, level) for column, level in settings["levels"].items()}
    return {column: tree.to_plain() for column, tree in found.items() if tree is not None}


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


def veiled(shown: Plain, values: bool) -> Plain:
    """A table without the values of cells that are to be hidden, unless they are asked for."""
    if values:
        return shown
    rows = [{**row, "cells": [_veiled(cell) for cell in row["cells"]]} for row in shown["rows"]]
    return {**shown, "rows": rows}


def _veiled(cell: Plain) -> Plain:
    return {**cell, "text": ""} if cell["kind"] in ("sensitive", "helper") else cell


def policy_of(held: Memory, folder: Path, policy: Mapping[str, Any], settings: Mapping[str, Any]) -> Plain:
    """The policy file of the settings."""
    if settings["method"]["use"] == plain.NONE:
        raise ParameterError("Choose what to do about sensitive cells first.")
    records = held.records(folder, {"data": policy["data"], "roles": plain.roles_of(policy, settings)})
    return plain.policy_of(policy, settings, trees(records, settings))
