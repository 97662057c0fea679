"""Preview of a trial: its effect on each variable, and attacks on one draw of it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from equipoise.data.records import Records
from equipoise.doors.report.variable_changes import overlay_facts
from equipoise.doors.web.memory import Memory, Policy
from equipoise.doors.web.work.trials import Plain, recipe_of
from equipoise.doors.web.workspace import Workspace
from equipoise.ground.errors import EquipoiseError
from equipoise.ground.progress import Progress, report
from equipoise.intrusion.attack import try_out
from equipoise.intrusion.baseline import on_original
from equipoise.presentation.numbers import number, percent, value_text
from equipoise.releases.overlays import changed_columns, overlays
from equipoise.releases.report_facts import roles_in_words
from equipoise.utility import Entropy

Masks = Sequence[Mapping[str, Any]]


def look(memory: Memory, folder: Path, policy: Policy, masks: Masks) -> Plain:
    """The effect of one draw of a recipe on each variable; cached."""
    records = memory.records(folder, policy)
    return memory.once_for(policy, ("look", json.dumps(masks)), lambda: preview(records, masks, seed_of(folder)))


def look_long(progress: Progress, folder: Path, policy: Policy, masks: Masks) -> Plain:
    """The effect of one draw of a recipe, computed in a separate process for large files."""
    report(progress, 0, 2, "reading the file")
    records = Memory().records(folder, policy)
    report(progress, 1, 2, "applying the recipe")
    return preview(records, masks, seed_of(folder))


def seed_of(folder: Path) -> int:
    """The seed of the trials; 0 where there is no journal."""
    try:
        with Workspace(folder).journal.open(encoding="utf-8") as lines:
            return int(json.loads(lines.readline())["seed"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def preview(records: Records, masks: Masks, seed: int) -> Plain:
    """Every changed variable: words, entropy in bits and a small histogram. O(records) for each."""
    released = recipe_of(masks, seed).run(records)
    touched, rest = changed_columns(records, released)
    pictures = overlays(records, released, touched)
    words = {one.column: one.words for one in pictures}
    return {
        "variables": [_variable(column, records, released, words) for column in touched],
        "overlays": [overlay_facts(one) for one in pictures],
        "unchanged": list(rest),
        "records": [records.height(), released.height()],
    }


def _variable(column: str, records: Records, released: Records, words: Mapping[str, str]) -> Plain:
    """A variable in words: the masks applied, and the information that remains."""
    laws = [law.words for law in released.history if column in law.columns]
    before, after = _bits(column, records, records), _bits(column, released, records)
    remaining = words.get(column, "")
    if before and after is not None:
        remaining = f"{number(after)} of {number(before)} bits, {percent(min(1.0, max(0.0, after / before)))}"
    role = roles_in_words(records).get(column, "")
    return {"name": column, "role": role, "done": list(dict.fromkeys(laws)), "left": remaining}


def _bits(column: str, released: Records, original: Records) -> float | None:
    """Entropy of a key in bits; None for other variables, and where records cannot be matched."""
    roles = original.roles
    if column not in roles.keys or released.synthetic:
        return None
    alone = replace(roles, keys=(column,), sensitive=(), domain=())
    try:
        return Entropy().measure(replace(released, roles=alone), replace(original, roles=alone)).value
    except EquipoiseError:
        return None


def attack_long(progress: Progress, folder: Path, policy: Policy, masks: Masks) -> Plain:
    """The attacks on one draw of a recipe, each compared with its success on the original."""
    report(progress, 0, 3, "applying the recipe")
    records = Memory().records(folder, policy)
    released = recipe_of(masks, seed_of(folder)).run(records)
    attacks = try_out(released, records, progress=progress)
    if isinstance(attacks, str):
        return {"words": f"No attack was tried: {attacks}", "rows": [], "notes": []}
    before = on_original(attacks.scenarios, records)
    rows = [
        {"words": one.words, "now": value_text(one.score.value, "share")}
        | {"was": value_text(was.value, "share") if was else ""}
        for one, was in zip(attacks.scenarios, before, strict=True)
    ]
    return {"words": attacks.strongest.words, "rows": rows, "notes": list(attacks.notes)}
