"""Coarsening of the keys: their values and levels, previews of risk and information, and changed hierarchies."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from cachetools import FIFOCache

from equipoise.data.branches import Branch, Breaks, Dates, Intervals, Prefix, ValueMapping
from equipoise.data.cells import Cells
from equipoise.data.hierarchy import Hierarchy
from equipoise.data.levels import ORIGINAL, Level, OriginalLevel, as_text, number_text
from equipoise.data.roles import Roles
from equipoise.doors.web.full_paths import without_folders
from equipoise.doors.web.memory import Memory, frozen
from equipoise.doors.web.work.edit_hierarchy import free_name, with_level, without_level
from equipoise.doors.web.work.level_editors import editors, level_title
from equipoise.doors.web.work.regroup_key import Stage, numbers, stage_of
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import DataError, EquipoiseError, ParameterError, hint
from equipoise.ground.packed_keys import code
from equipoise.rules import MinCount
from equipoise.search.best_coarsening import best_coarsening

MAX_LISTED = 5_000
"""Categories that a value mapping made here may list."""
MAX_INTERVALS = 10_000
"""Intervals of one width that a level may have."""
MAX_SHOWN, RARE_BELOW = 200, 10
"""Categories shown at a time; those with fewer records than `RARE_BELOW` are shown on request only."""
MAX_STAGES = 4
"""Stages kept in memory."""
Plain = Mapping[str, Any]
ChosenLevels = Mapping[str, str]
"""The current level of each key, by the name of the key."""


@dataclass(frozen=True, eq=False, repr=False)
class Key:
    """A key prepared for previews: its stage, values, records per value, hierarchy and current level."""

    stage: Stage
    values: pl.Series
    counts: Integers
    tree: Hierarchy | None
    level: str

    def table(self, change: Plain) -> Integers:
        """The category of every value after a change of level."""
        if change == {"kind": "level", "level": ORIGINAL}:
            return np.arange(len(self.values))
        if change["kind"] == "level":
            return _codes(_level(self.tree, change["level"], self.values))
        if change["kind"] == "mapping":
            return _group_codes(change, self.values)
        return _codes(branch_of(change, self.values, "preview").levels()[0].label(self.values))


def look(memory: Memory, folder: Path, policy: Plain, chosen: ChosenLevels, column: str, mark: int) -> dict[str, Any]:
    """Facts about one key for the page, and the current level of every key."""
    cells, trees = _cells(memory, folder, policy), _trees(memory, folder, policy, mark)
    column = column if column in cells.by else cells.by[0]
    key = prepare(memory, folder, policy, chosen, column, mark)
    labels = memory.raw(folder, policy["data"]).labels.of(column)
    at = {"kind": "level", "level": key.level}
    now = memory.once(("shape now", mark), lambda: numbers(key.stage, key.table(at)))
    return {
        "records": cells.records,
        "column": column,
        "label": labels.label or "",
        "level": key.level,
        "shown": level_title(key.tree.level(key.level) if key.tree else OriginalLevel()),
        "keys": [_key_facts(cells, name, trees.get(name), chosen) for name in cells.by],
        "levels": _levels(key),
        "values": len(key.values) - key.values.null_count(),
        "missing": int(key.counts[key.values.is_null().to_numpy()].sum()),
        "now": now,
        "original": memory.once(
            ("shape original", frozen(policy["data"]), cells.by, cells.open), lambda: _original(cells)
        ),
        "editor": editors(key.values, key.counts, key.tree, key.level, bool(labels.values), MAX_LISTED, RARE_BELOW),
    }


def ready(memory: Memory, folder: Path, policy: Plain, chosen: ChosenLevels, column: str, mark: int) -> bool:
    """Prepare a key, so that its previews are fast."""
    return prepare(memory, folder, policy, chosen, column, mark) is not None


def preview(memory: Memory, folder: Path, data: Plain, mark: int, column: str, change: Plain) -> dict[str, Any] | None:
    """Risk and information after a change of one key; None where the key is not prepared."""
    memory.raw(folder, data)
    key = _prepared_keys(memory).get((mark, column))
    if key is None:
        return None
    table = key.table(change)
    categories = table[key.values.is_not_null().to_numpy()]
    return {**numbers(key.stage, table), "categories": int(np.count_nonzero(np.bincount(categories)))}


def prepare(memory: Memory, folder: Path, policy: Plain, chosen: ChosenLevels, column: str, mark: int) -> Key:
    """A key prepared for previews, with the other keys at their chosen levels."""
    cells, trees = _key_cells(memory, folder, policy, column), _trees(memory, folder, policy, mark)
    prepared_keys = _prepared_keys(memory)
    if (mark, column) not in prepared_keys:
        at = {name: _chosen_level(trees.get(name), chosen.get(name), cells.values(name)) for name in cells.by}
        stage = _stage_for(memory, cells, column, {name: pair for name, pair in at.items() if name != column})
        values, level = cells.values(column), at[column][0].name
        prepared_keys[mark, column] = Key(stage, values, cells.counts(column), trees.get(column), level)
    return prepared_keys[mark, column]


def _stage_for(memory: Memory, cells: Cells, column: str, others: Mapping[str, tuple[Level, pl.Series]]) -> Stage:
    """The stage of a key; reused while the levels of the other keys stay the same."""
    ready: list[tuple[Cells, str, dict[str, Level], Stage]] = memory.once("shape sets", list)
    levels = {name: level for name, (level, _) in others.items()}
    for counted_cells, name, before, stage in ready:
        if counted_cells is cells and name == column and before == levels:
            return stage
    coarse = {name: labels for name, (level, labels) in others.items() if level.name != ORIGINAL}
    stage = stage_of(cells, column, coarse)
    ready[:] = [*ready[1 - MAX_STAGES :], (cells, column, levels, stage)]
    return stage


def level_of(memory: Memory, folder: Path, policy: Plain, column: str, level: str) -> str:
    """The name of a level of a key; refused where it does not exist or does not cover all values."""
    cells = _key_cells(memory, folder, policy, column)
    tree = Roles.from_plain(policy.get("roles", {}), folder).hierarchies.get(column)
    _level(tree, level, cells.values(column))
    return tree.level(level).name if tree else ORIGINAL


def hierarchy_with(
    memory: Memory, folder: Path, policy: Plain, column: str, change: Plain, replaced: str, name: str
) -> tuple[list[dict[str, Any]], str]:
    """The hierarchy of a column with a new or changed level, as in a policy, and the name of that level."""
    cells = _key_cells(memory, folder, policy, column)
    tree = Roles.from_plain(policy.get("roles", {}), folder).hierarchies.get(column)
    old = replaced if tree is not None and replaced in [level.name for level in tree.levels[1:]] else None
    values = cells.values(column)
    branch = branch_of(change, values, free_name(name.strip() or _default_name(change, values), tree, old))
    level = branch.levels()[0]
    level.label(values)
    return with_level(tree, branch, old).to_plain(), level.name


def hierarchy_without(memory: Memory, folder: Path, policy: Plain, column: str, level: str) -> list[dict[str, Any]]:
    """The hierarchy of a column without one of its levels."""
    tree = Roles.from_plain(policy.get("roles", {}), folder).hierarchies.get(column)
    if tree is None:
        raise ParameterError(f"{column!r} has no levels.")
    remaining = without_level(tree, level)
    return remaining.to_plain() if remaining else []


def categories(memory: Memory, folder: Path, policy: Plain, column: str, search: str, rare: bool) -> dict[str, Any]:
    """The most frequent categories of a key that contain a text; rare ones only if `rare`."""
    cells = _key_cells(memory, folder, policy, column)
    values, n = cells.values(column), cells.counts(column)
    texts = as_text(values)
    matches = texts.is_not_null()
    if search:
        matches &= texts.fill_null("").str.to_lowercase().str.contains(search.lower(), literal=True)
    matching = matches.to_numpy()
    listed = matching if rare else matching & (n >= RARE_BELOW)
    order = np.flatnonzero(listed)
    order = order[np.argsort(-n[order], kind="stable")][:MAX_SHOWN]
    pairs = memory.raw(folder, policy["data"]).labels.of(column).values
    labels = {str(as_text(pl.Series([value]))[0]): text for value, text in pairs}
    rows = [
        {"code": int(at), "text": texts[int(at)], "label": labels.get(texts[int(at)], ""), "n": int(n[at])}
        for at in order
    ]
    return {
        "rows": rows, "found": int(matching.sum()), "hidden": int((matching & (n < RARE_BELOW)).sum()) * (not rare),
        "more": max(0, int(listed.sum()) - MAX_SHOWN), "most": int(n.max(initial=1)), "rare": rare, "search": search,
        "limit": RARE_BELOW, "column": column, "records": cells.records,
    }  # fmt: skip


def suggest_coarsening(progress: Any, folder: Path, policy: Plain, k: int, share: float) -> dict[str, Any]:
    """The least coarsening of all keys in which every class has k records; for a run."""
    records = Memory().records(folder, policy)
    coarsening = best_coarsening(records, MinCount(k), suppress_at_most=share, progress=progress)
    return {**coarsening.to_plain(), "k": k, "share": share}


def branch_of(change: Plain, values: pl.Series, name: str) -> Branch:
    """The branch of one level that a change describes; refused where it is not valid."""
    kind = change["kind"]
    if kind == "intervals":
        _check_bands(values, change)
        ends = {end: change[end] for end in ("start", "top", "bottom", "closed")}
        return Intervals((_tidy(change["widths"][0]),), alone=tuple(change["alone"]), **ends)
    if kind == "breaks":
        points = tuple(sorted({_tidy(point) for point in change["breaks"][0]}))
        return Breaks((points,), closed=change["closed"], alone=tuple(change["alone"]), names=(name,))
    if kind == "mapping":
        return _leaves(change, values, name)
    if kind == "prefix":
        return Prefix(tuple(change["lengths"]))
    if kind == "dates":
        return Dates(tuple(change["parts"]))
    raise ParameterError("That cannot be kept as a level.")


def _tidy(value: float) -> float:
    return int(value) if float(value).is_integer() else float(value)


def _check_bands(values: pl.Series, change: Plain) -> None:
    numbers = values.drop_nulls()
    if not values.dtype.is_numeric() or not len(numbers):
        raise DataError("This key has no numbers: intervals cannot be made of it.")
    low, high = float(numbers.min()), float(numbers.max())  # type: ignore[arg-type]
    width = change["widths"][0]
    low = low if change["bottom"] is None else max(low, change["bottom"])
    high = high if change["top"] is None else min(high, change["top"])
    if (max(high, change["start"]) - min(low, change["start"])) / width > MAX_INTERVALS:
        raise ParameterError(f"Intervals of {number_text(width)} would be more than {MAX_INTERVALS:,}: widen them.")


def _group_codes(change: Plain, values: pl.Series) -> Integers:
    """The category of every value: its group; all others separate or, if `other` has a name, in one group."""
    size = len(values)
    _check_codes(change, values)
    table = np.arange(size) if change["other"] is None else np.full(size, size)
    nothing = values.is_null().to_numpy()
    table[nothing] = np.flatnonzero(nothing)
    table[change["kept"]] = change["kept"]
    names = [group["name"] for group in change["groups"]]
    for group in change["groups"]:
        same = change["other"] is not None and group["name"] == change["other"]
        table[group["codes"]] = size if same else size + 1 + names.index(group["name"])
    return table


def _check_codes(change: Plain, values: pl.Series) -> None:
    if change["of"] != len(values):
        raise DataError("The file has changed since this page was drawn: load it again.")
    codes = np.array(
        [*change["kept"], *(code for group in change["groups"] for code in group["codes"])], dtype=np.int64
    )
    valid = np.flatnonzero(values.is_not_null().to_numpy())
    if not bool(np.isin(codes, valid).all()) or len(np.unique(codes)) < len(codes):
        raise ParameterError("A category stands in two groups, or is none of this column.")


def _leaves(change: Plain, values: pl.Series, name: str) -> ValueMapping:
    _check_codes(change, values)
    texts = as_text(values).to_list()
    groups = {code: group["name"] for group in change["groups"] for code in group["codes"]}
    rest = change["kept"] if change["other"] is not None else [at for at, text in enumerate(texts) if text is not None]
    apart = [at for at in rest if at not in groups]
    if not groups and change["other"] is None:
        raise ParameterError("Tick some categories and merge them first.")
    if len(groups) + len(apart) > MAX_LISTED:
        raise ParameterError(
            f"{len(groups) + len(apart):,} categories are more than are listed one by one here ({MAX_LISTED:,}): let "
            "all others become one group, or cut the codes."
        )
    if not groups and not apart:
        raise ParameterError("Keep at least one category apart.")
    if {*groups.values(), change["other"]} & {texts[at] for at in apart}:
        raise ParameterError("A group has the name of a category outside it: choose another name, or put that one in.")
    rows = sorted((str(texts[at]), groups.get(at, str(texts[at]))) for at in (*groups, *apart))
    return ValueMapping(tuple(rows), names=(name,), other=change["other"])


def _default_name(change: Plain, values: pl.Series) -> str:
    """The default name of a level."""
    if change["kind"] == "breaks":
        return f"{len(set(change['breaks'][0])) + 1} bands"
    if change["kind"] == "mapping":
        present = values.is_not_null().to_numpy()
        return f"{len(np.unique(_group_codes(change, values)[present]))} groups"
    return "level"


def _cells(memory: Memory, folder: Path, policy: Plain) -> Cells:
    """The cells of the keys; counted once, independently of hierarchies."""
    roles = {name: value for name, value in policy.get("roles", {}).items() if name != "hierarchies"}
    if not roles.get("keys"):
        raise DataError("No column is a key yet: say on the first page which ones somebody outside may know.")
    return memory.cells(folder, {"data": policy["data"], "roles": roles})


def _key_cells(memory: Memory, folder: Path, policy: Plain, column: str) -> Cells:
    cells = _cells(memory, folder, policy)
    if column not in cells.by:
        raise ParameterError(f"{column!r} is no key.{hint(column, cells.by)}")
    return cells


def _trees(memory: Memory, folder: Path, policy: Plain, mark: int) -> Mapping[str, Hierarchy]:
    memory.raw(folder, policy["data"])
    return memory.once(("shape trees", mark), lambda: Roles.from_plain(policy.get("roles", {}), folder).hierarchies)


def _prepared_keys(memory: Memory) -> FIFOCache[tuple[int, str], Key]:
    return memory.once("shape stages", lambda: FIFOCache(MAX_STAGES))


def _codes(labels: pl.Series) -> Integers:
    return code(labels).codes.astype(np.int64)


def _level(tree: Hierarchy | None, name: str, values: pl.Series) -> pl.Series:
    if tree is None or name == ORIGINAL:
        if name != ORIGINAL:
            raise ParameterError("There is no such level.")
        return values
    return tree.level(name).label(values)


def _chosen_level(tree: Hierarchy | None, name: str | None, values: pl.Series) -> tuple[Level, pl.Series]:
    """The chosen level and the category of each value; the original where the level no longer exists."""
    if tree is not None and name in [level.name for level in tree.levels[1:]]:
        try:
            return tree.level(str(name)), tree.level(str(name)).label(values)
        except EquipoiseError:
            return OriginalLevel(), values
    return OriginalLevel(), values


def _key_facts(cells: Cells, name: str, tree: Hierarchy | None, chosen: ChosenLevels) -> dict[str, Any]:
    """Facts about a key for the list of keys."""
    values = cells.values(name)
    level, labels = _chosen_level(tree, chosen.get(name), values)
    return {
        "name": name, "level": level.name, "shown": level_title(level),
        "values": len(values) - values.null_count(), "categories": labels.drop_nulls().n_unique(),
    }  # fmt: skip


def _levels(key: Key) -> list[dict[str, Any]]:
    """The levels of a key from fine to coarse, and whether each may be released."""
    levels = key.tree.levels if key.tree else ()
    first = {
        "name": ORIGINAL,
        "words": "",
        "shown": level_title(OriginalLevel()),
        "categories": len(key.values) - key.values.null_count(),
        "problem": "",
    }
    coarser = sorted((_level_facts(key, level) for level in levels[1:]), key=lambda row: -(row["categories"] or 0))
    rows = [first, *coarser]
    allowed = {level.name for level in key.tree.allowed} if key.tree else {ORIGINAL}
    return [{**row, "allowed": row["name"] in allowed} for row in rows]


def _level_facts(key: Key, level: Level) -> dict[str, Any]:
    facts = {"name": level.name, "words": level.words(), "shown": level_title(level), "categories": None, "problem": ""}
    try:
        return {**facts, "categories": level.label(key.values).drop_nulls().n_unique()}
    except EquipoiseError as error:
        return {**facts, "problem": without_folders(str(error))}


def _original(cells: Cells) -> dict[str, float]:
    column = cells.by[0]
    return numbers(stage_of(cells, column, {}), np.arange(len(cells.values(column))))
