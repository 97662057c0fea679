"""Editors of the levels of a key: which kinds suit it, and their initial state at the current level."""

from typing import Any

import numpy as np
import polars as pl

from equipoise.data.hierarchy import Hierarchy
from equipoise.data.levels import Bands, DatePart, Everything, Head, Level, Lookup, OriginalLevel, as_text
from equipoise.doors.web.work import key_histograms as pictures
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import EquipoiseError
from equipoise.ground.packed_keys import code

MAX_PREFIX_LENGTH = 30
"""Characters of the longest code for which prefixes are offered."""
MAX_FRACTION_CATEGORIES = 60
"""Fractional numbers with at most so many different values may be grouped as categories."""

MAX_CODES = 12
"""Whole numbers of at most so many values are taken for codes of categories, which are merged rather than banded."""
MAX_FREQUENT_CATEGORIES = 200
"""Most frequent categories offered to be kept apart."""


def editors(
    values: pl.Series, counts: Integers, tree: Hierarchy | None, level: str, labelled: bool, listed: int, rare: int
) -> dict[str, Any]:
    """The kinds of editors that suit a key, the initial one, and the state of each."""
    present = values.drop_nulls()
    if not len(present):
        return {"kinds": [], "kind": ""}
    at: Level = tree.level(level) if tree else OriginalLevel()
    kinds = _kinds(values, at)
    editor: dict[str, Any] = {
        "kinds": kinds,
        "kind": _first_kind(kinds, at, labelled or _are_codes(present)),
        "size": len(values),
    }
    if "bands" in kinds:
        editor |= {"picture": pictures.over_range(values, counts), "bands": _bands(at)}
    if "mapping" in kinds:
        editor["mapping"] = _groups(values, counts, at, listed, rare)
    if "prefix" in kinds:
        longest = int(as_text(present).str.len_chars().max() or 1)  # type: ignore[arg-type]
        editor["prefix"] = {"length": at.length if isinstance(at, Head) else max(1, longest - 1), "longest": longest}
    if "dates" in kinds:
        editor |= {"periods": pictures.over_time(values, counts), "parts": list(pictures.CALENDAR_PARTS)}
        editor["dates"] = {"part": at.name if isinstance(at, DatePart) else ""}
    return editor


def level_title(level: Level) -> str:
    """The name of a level on the page."""
    if isinstance(level, OriginalLevel):
        return "as it came"
    if isinstance(level, Bands) and level.width is not None:
        return f"bands of {level.name}"
    if isinstance(level, Head):
        return f"first {level.length} character{'s' if level.length > 1 else ''}"
    if isinstance(level, Everything):
        return "one category"
    return f"by {level.name}" if isinstance(level, DatePart) else level.name


def _kinds(values: pl.Series, at: Level) -> list[str]:
    kinds = []
    if values.dtype.is_numeric() and bool(values.drop_nulls().cast(pl.Float64).is_finite().all()):
        kinds.append("bands")
    if pictures.fits_calendar(values):
        kinds.append("dates")
    if not values.dtype.is_float() or len(values) <= MAX_FRACTION_CATEGORIES or isinstance(at, Lookup):
        kinds.append("mapping")
    texts = as_text(values.drop_nulls())
    longest = int(texts.str.len_chars().max() or 0)  # type: ignore[arg-type]
    if (1 < longest <= MAX_PREFIX_LENGTH and values.dtype == pl.String) or isinstance(at, Head):
        kinds.append("prefix")
    return kinds or ["mapping"]


def _first_kind(kinds: list[str], at: Level, labelled: bool) -> str:
    own = {Bands: "bands", Lookup: "mapping", Head: "prefix", DatePart: "dates"}.get(type(at), "")
    if own in kinds:
        return own
    return "mapping" if labelled and "mapping" in kinds else kinds[0]


def _are_codes(values: pl.Series) -> bool:
    """Whether whole numbers are few enough to stand for categories."""
    return values.dtype.is_integer() and len(values) <= MAX_CODES


def _bands(at: Level) -> dict[str, Any]:
    """The intervals of a level; empty fields where it has none."""
    if not isinstance(at, Bands):
        return {"mode": "", "width": None, "start": 0, "top": None, "bottom": None, "closed": "left", "alone": [],
                "breaks": []}  # fmt: skip
    return {
        "mode": "breaks" if at.width is None else "intervals", "width": at.width, "start": at.start, "top": at.top,
        "bottom": at.bottom, "closed": at.closed, "alone": list(at.alone), "breaks": list(at.breaks),
    }  # fmt: skip


def _groups(values: pl.Series, counts: Integers, at: Level, listed: int, rare: int) -> dict[str, Any]:
    """The groups of a level by the positions of their values; `whole` is false where there are too many to edit."""
    few = np.flatnonzero((counts < rare) & values.is_not_null().to_numpy())
    order = np.argsort(-counts, kind="stable")[: MAX_FREQUENT_CATEGORIES + 1]
    groups: dict[str, Any] = {
        "groups": [], "kept": [], "other": None, "whole": True, "rare": few.tolist() if len(values) <= listed else [],
        "frequent": [int(at) for at in order if values[int(at)] is not None][:MAX_FREQUENT_CATEGORIES],
    }  # fmt: skip
    if not isinstance(at, Lookup):
        return groups
    if max(len(values), len(at.leaves)) > listed:
        return {**groups, "whole": False}
    try:
        labels = at.label(values)
    except EquipoiseError:
        return groups
    return {**groups, **_group_facts(values, labels, at)}


def _group_facts(values: pl.Series, labels: pl.Series, at: Lookup) -> dict[str, Any]:
    texts, coded = as_text(values), code(labels)
    groups, apart = [], []
    for place, name in enumerate(coded.values.to_list()):
        codes = np.flatnonzero(coded.codes == place).tolist()
        if name is None or (at.other is not None and name == at.other):
            continue
        if len(codes) == 1 and texts[codes[0]] == name:
            apart += codes
        else:
            groups.append({"name": name, "codes": codes})
    return {"groups": groups, "kept": apart if at.other is not None else [], "other": at.other}
