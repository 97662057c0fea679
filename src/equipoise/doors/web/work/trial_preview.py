"""Looks: what a recipe makes of the file, variable by variable, and what intruders do with it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from equipoise.data.records import Records
from equipoise.doors.web.memory import Memory, frozen
from equipoise.doors.web.policy_file import JOURNAL
from equipoise.doors.web.work.trials import Plain, recipe_of
from equipoise.doors.web.workspace import PRIVATE
from equipoise.ground.errors import EquipoiseError
from equipoise.ground.progress import Progress, report
from equipoise.intrusion.attack import try_out
from equipoise.intrusion.baseline import on_original
from equipoise.presentation.numbers import number, percent, said
from equipoise.releases.overlays import BARS, Overlay, changed_columns, overlays
from equipoise.releases.report_facts import roles_in_words
from equipoise.utility import Entropy

WIDE, HIGH = 300, 90
"""Pixels of a small histogram."""
STEEP = 4
"""A bar so many times as high as the next would dwarf the rest: heights are then square roots."""
Masks = Sequence[Mapping[str, Any]]


def look(held: Memory, folder: Path, policy: Mapping[str, Any], masks: Masks) -> Plain:
    """What one draw of a recipe does to each variable; remembered."""
    records = held.records(folder, policy)
    name = ("look", frozen(policy["data"]), frozen(policy.get("roles", {})), json.dumps(masks))
    return held.once(name, lambda: looked(records, masks, seed_of(folder)))


def look_long(progress: Progress, folder: Path, policy: Mapping[str, Any], masks: Masks) -> Plain:
    """The same in a process of its own, for large files."""
    report(progress, 0, 2, "reading the file")
    records = Memory().records(folder, policy)
    report(progress, 1, 2, "applying the recipe")
    return looked(records, masks, seed_of(folder))


def seed_of(folder: Path) -> int:
    """The seed that the trials were drawn with; 0 where the journal is gone."""
    try:
        with (folder / PRIVATE / JOURNAL).open(encoding="utf-8") as lines:
            return int(json.loads(lines.readline())["seed"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def looked(records: Records, masks: Masks, seed: int) -> Plain:
    """Every variable that was touched: in words, in bits, and as a small picture. O(records) for each."""
    released = recipe_of(masks, seed).run(records)
    touched, rest = changed_columns(records, released)
    drawn = overlays(records, released, touched)
    told = {one.column: one.words for one in drawn}
    return {
        "variables": [_variable(column, records, released, told) for column in touched],
        "overlays": [picture(one) for one in drawn],
        "unchanged": list(rest),
        "records": [records.height(), released.height()],
    }


def _variable(column: str, records: Records, released: Records, told: Mapping[str, str]) -> Plain:
    """A variable in words: what was done, and what is left of it."""
    laws = [law.words for law in released.history if column in law.columns]
    before, after = _bits(column, records, records), _bits(column, released, records)
    left = told.get(column, "")
    if before and after is not None:
        left = f"{number(after)} of {number(before)} bits, {percent(min(1.0, max(0.0, after / before)))}"
    role = roles_in_words(records).get(column, "")
    return {"name": column, "role": role, "done": list(dict.fromkeys(laws)), "left": left}


def _bits(column: str, released: Records, original: Records) -> float | None:
    """Bits that a key still tells of itself; None for other variables, and where records cannot be held together."""
    roles = original.roles
    if column not in roles.keys or released.synthetic:
        return None
    alone = replace(roles, keys=(column,), sensitive=(), domain=())
    try:
        return Entropy().measure(replace(released, roles=alone), replace(original, roles=alone)).value
    except EquipoiseError:
        return None


def attack_long(progress: Progress, folder: Path, policy: Mapping[str, Any], masks: Masks) -> Plain:
    """The attacks of a release on one draw of a recipe, each beside how it fares on the original."""
    report(progress, 0, 3, "applying the recipe")
    records = Memory().records(folder, policy)
    released = recipe_of(masks, seed_of(folder)).run(records)
    found = try_out(released, records, progress=progress)
    if isinstance(found, str):
        return {"words": f"No attack was tried: {found}", "rows": [], "notes": []}
    before = on_original(found, records)
    rows = [
        {"words": one.words, "now": said(one.score.value, "share"), "was": said(was.value, "share") if was else ""}
        for one, was in zip(found.scenarios, before, strict=True)
    ]
    return {"words": found.strongest.words, "rows": rows, "notes": list(found.notes)}


def picture(overlay: Overlay) -> Plain:
    """A variable before and after: the numbers, and for a histogram the two outlines."""
    moved = f"{said(overlay.moved, 'share')} of records in another bar than before" if overlay.moved > 5e-4 else ""
    rooted = _rooted(overlay)
    notes = (overlay.words, moved, "heights are square roots" if rooted else "")
    most = max((*overlay.before[:BARS], *overlay.after[:BARS]), default=0.0) or 1.0
    rows = [
        {"label": label, "before": said(one, "share"), "after": said(two, "share")}
        | {"wide": [f"{100 * min(1.0, share / most):.1f}%" for share in (one, two)]}
        for label, one, two in zip(overlay.labels, overlay.before, overlay.after, strict=True)
    ]
    drawn = _outlines(overlay, 0.5 if rooted else 1.0) if overlay.kind == "histogram" else None
    return {"column": overlay.column, "words": "; ".join(filter(None, notes)), "rows": rows, "drawn": drawn}


def _rooted(overlay: Overlay) -> bool:
    highest = sorted(map(max, zip(overlay.before, overlay.after, strict=True)), reverse=True)
    return overlay.kind == "histogram" and len(highest) > 2 and highest[0] > STEEP * highest[1]


def _outlines(overlay: Overlay, power: float) -> Plain:
    low, high = overlay.edges[0], overlay.edges[-1]
    most = max((*overlay.before, *overlay.after), default=0.0) or 1.0

    def across(place: float) -> float:
        return (place - low) / (high - low) * WIDE

    def path(shares: Sequence[float]) -> str:
        steps = [
            f"V{HIGH - (share / most) ** power * (HIGH - 4):.1f}H{across(right):.1f}"
            for share, (_, right) in zip(shares, pairwise(overlay.edges), strict=True)
        ]
        return f"M0 {HIGH}{''.join(steps)}V{HIGH}"

    places = [(across(place), words) for place, words in overlay.ticks]
    ticks = [{"x": round(x, 1), "words": words, "anchor": _anchor(x)} for x, words in places]
    return {"was": path(overlay.before) + "Z", "now": path(overlay.after), "ticks": ticks}


def _anchor(x: float) -> str:
    return "start" if x < 18 else "end" if x > WIDE - 18 else "middle"
