"""Presets: policies of agencies with their sources; a policy that extends one overrides its values."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from equipoise.data.roles import read_toml
from equipoise.ground.errors import ParameterError, hint
from equipoise.policies.limits import as_scored

SLOT_MARK = "@"
"""Before the name of a column that the policy fills in under [slots]."""
JOINED_SECTIONS = ("limits", "choose", "search", "output", "waive", "slots")
"""Sections whose keys are joined; of all others the policy's own stands alone."""


@dataclass(frozen=True)
class Preset:
    """A policy without data: what it is, its source and what that says, and what it is about: records or a table.

    `needs` has the roles without which a measure or a step of `always` is left out; `amounts` is of amounts alone.
    """

    name: str
    words: str
    source: str
    about: Literal["records", "table"]
    text: str = field(repr=False)
    plain: Mapping[str, Any] = field(repr=False, hash=False)
    needs: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    amounts: bool = False
    says: str = ""


@cache
def presets() -> Mapping[str, Preset]:
    """Every preset by its name.

    >>> presets()["ema"].plain["limits"]
    {'prosecutor': {'limit': '<= 0.09', 'reason': 'EMA policy 0070: the risk of each record is at most 0.09'}}
    """
    import tomllib

    paths = sorted(Path(__file__).with_name("preset_files").glob("*.toml"), key=lambda path: path.stem)
    texts = {path.stem: path.read_text(encoding="utf-8") for path in paths}
    return {name: _preset(name, text, tomllib.loads(text)) for name, text in texts.items()}


def _preset(name: str, text: str, plain: dict[str, Any]) -> Preset:
    about = plain.pop("preset", {})
    return Preset(
        name, about.get("words", ""), about.get("source", ""), about.get("about", "records"), text, plain,
        about.get("needs", {}), about.get("amounts", False), about.get("says", ""),
    )  # fmt: skip


def preset_named(name: str, folder: Path = Path()) -> Preset:
    """A preset by its name; a policy file of the house by its path, relative to the folder."""
    if name.endswith(".toml"):
        return _preset(name, "", read_toml(folder / name))
    if name not in presets():
        raise ParameterError(f"No preset {name!r}.{hint(name, list(presets()))}")
    return presets()[name]


def extended(plain: Mapping[str, Any], folder: Path, path: tuple[str, ...] = ()) -> dict[str, Any]:
    """A policy with what it extends filled in; its own values win."""
    name = plain.get("extends")
    if not isinstance(name, str):
        return dict(plain)
    if name in path:
        raise ParameterError(f"{name!r} extends itself.")
    preset = preset_named(name, folder)
    under = extended(preset.plain, (folder / name).parent if name.endswith(".toml") else folder, (*path, name))
    if "data" in plain and preset.about == "table" and "table" not in {**under, **plain}:
        raise ParameterError(f"The preset {name!r} is about tables: add [table] with the columns it goes by.")
    if preset.about == "records" and "table" in plain and not name.endswith(".toml"):
        raise ParameterError(f"The preset {name!r} is about records, and this policy has [table].")
    if "data" in plain:
        _refuse_slots(preset, plain)
    return _join(_drop_unneeded(under, preset, plain), plain)


def _refuse_slots(preset: Preset, plain: Mapping[str, Any]) -> None:
    """Refuse unknown slots, and a preset with slots of which none is filled."""
    names, slots = slots_of(preset), _table(plain, "slots")
    if names and not any(slots.get(name) for name in names):
        raise ParameterError(
            f"The preset {preset.name!r} asks for columns: name them under [slots], {', '.join(names)}."
        )
    for name in slots:
        if name not in names:
            raise ParameterError(f"The preset {preset.name!r} has no slot {name!r}.{hint(name, names)}")


def _drop_unneeded(under: Mapping[str, Any], preset: Preset, plain: Mapping[str, Any]) -> dict[str, Any]:
    """The preset without measures and steps of roles that no column has."""
    roles = plain.get("roles", {})
    needs = {m: role for m, role in preset.needs.items() if not isinstance(roles, Mapping) or not roles.get(role)}
    fitting = dict(under)
    if "measures" in under:
        fitting["measures"] = [m for m in under["measures"] if m not in needs]
    if "always" in under:
        fitting["always"] = [step for step in under["always"] if step.get("use") not in needs]
    return fitting


def _join(under: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    slots = {**_table(under, "slots"), **_table(own, "slots")}
    under = _fill_slots(under, slots)
    policy = {**under, **own}
    for name in JOINED_SECTIONS:
        if isinstance(under.get(name), Mapping) and isinstance(own.get(name), Mapping):
            policy[name] = _limits(under[name], own[name]) if name == "limits" else {**under[name], **own[name]}
    if "roles" in under and isinstance(policy.get("roles"), Mapping):
        policy["roles"] = _roles(_table(under, "roles"), policy["roles"])
    return policy


def _roles(under: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The roles of the policy before those under it; of hierarchies those of each column."""
    trees = {**_table(under, "hierarchies"), **_table(own, "hierarchies")}
    return {**under, **own, **({"hierarchies": trees} if trees else {})}


def _table(plain: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = plain.get(name, {})
    return table if isinstance(table, Mapping) else {}


def _limits(under: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Limits of the preset, those on the same score replaced, however it is written."""
    scores = {as_scored(str(name)) for name in own}
    return {**{n: v for n, v in under.items() if as_scored(n) not in scores}, **own}


def _fill_slots(under: Mapping[str, Any], slots: Mapping[str, Any]) -> dict[str, Any]:
    """The preset with the policy's columns in its slots; steps and hierarchies of unfilled slots are dropped."""
    preset = dict(under)
    trees = _table(_table(under, "roles"), "hierarchies")
    if trees:
        filled = {c: _tree(tree, slots) for slot, tree in trees.items() for c in _columns(slot, slots)}
        preset["roles"] = {**_table(under, "roles"), "hierarchies": filled}
    if "candidates" in under:
        preset["candidates"] = [_candidate(one, slots) for one in under["candidates"]]
    return preset


def _tree(tree: Any, slots: Mapping[str, Any]) -> Any:
    """A hierarchy with the policy's numbers in its slots."""
    if isinstance(tree, list | tuple):
        return [_tree(branch, slots) for branch in tree]
    marked = {field: value[1:] for field, value in tree.items() if str(value).startswith(SLOT_MARK)}
    for slot in marked.values():
        if slot not in slots:
            raise ParameterError(f"The preset asks for a number: name it under [slots], {slot}.")
    return {**tree, **{field: slots[slot] for field, slot in marked.items()}}


def _candidate(candidate: Mapping[str, Any], slots: Mapping[str, Any]) -> dict[str, Any]:
    if "masks" not in candidate:
        return dict(candidate)
    return {**candidate, "masks": [step for mask in candidate["masks"] for step in _steps(mask, slots)]}


def _steps(mask: Mapping[str, Any], slots: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A step for each column in its slot."""
    column = mask.get("column")
    if not isinstance(column, str) or not column.startswith(SLOT_MARK):
        yield dict(mask)
        return
    yield from ({**mask, "column": name} for name in _columns(column, slots))


def _columns(slot: str, slots: Mapping[str, Any]) -> tuple[str, ...]:
    if not slot.startswith(SLOT_MARK):
        return (slot,)
    columns = slots.get(slot.removeprefix(SLOT_MARK), ())
    if isinstance(columns, str):
        return (columns,)
    return tuple(map(str, columns)) if isinstance(columns, list | tuple) else ()


def slots_of(preset: Preset) -> tuple[str, ...]:
    """The columns that a policy which extends it should name under [slots]."""
    return tuple(dict.fromkeys(re.findall(rf'"{SLOT_MARK}(\w+)"', preset.text)))


def with_always(plain: Mapping[str, Any]) -> Mapping[str, Any]:
    """The policy with the masks that are always used at the end of every candidate."""
    always, candidates = plain.get("always"), plain.get("candidates", [{"coarsenings": True}])
    if not isinstance(always, list) or not isinstance(candidates, list):
        return plain
    ended = [_ended_by(one, always) if isinstance(one, Mapping) else one for one in candidates]
    return {**{name: value for name, value in plain.items() if name != "always"}, "candidates": ended}


def _ended_by(candidate: Mapping[str, Any], masks: list[Any]) -> dict[str, Any]:
    steps = {"then": candidate.get("coarsenings"), "masks": candidate.get("masks")}
    ended = {name: candidate.get(name, []) for name, used in steps.items() if used}
    return {**candidate, **{name: [*own, *masks] for name, own in ended.items() if isinstance(own, list)}}
