"""A first policy, written by looking at the data: commented in plain words, to be read and changed before it is run."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any

from equipoise.data.branches import plain_branch
from equipoise.data.cells import Cells, count
from equipoise.data.levels import ORIGINAL
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.files import read
from equipoise.ground.errors import DataError
from equipoise.inspection.column_names import meaning_of
from equipoise.inspection.direct_identifiers import without_direct
from equipoise.inspection.suggest_roles import FIELDS, TOLD, Proposal, Suggestion, _quoted, suggest_roles
from equipoise.policies.presets import Preset, preset_named, slots_of

LIMIT = 0.02
"""The share of records that may stand alone, unless a preset says otherwise."""
MANY = 500
"""Combinations of levels that are all tried; beyond, a few levels of each key are."""
NOTHING = "No column looks like something an intruder may know or users analyse: write the roles by hand."
FEW = 30
"""Categories of a column by which a table may go."""


@dataclass(frozen=True)
class FileFindings:
    """What was seen in the data: the roles it suggests, and how many stand alone now and at the coarsest."""

    name: str
    path: str
    roles: Suggestion
    records: Records
    now: float = 0.0
    coarsest: float = 0.0
    combinations: int = 0
    levels: dict[str, list[str]] = field(default_factory=dict)
    reading: dict[str, str] = field(default_factory=dict)


def initial(source: str | Path, *, path: str | None = None, preset: str | None = None, **options: Any) -> str:
    """The text of a first policy for a file; nothing is applied until you run it.

    Roles and hierarchies are those of `suggest_roles`. Every combination of levels is tried where there are few, some
    levels of each key where there are many; where even the coarsest leaves too many alone, their keys are withheld.
    `path` is where the policy finds the data, `options` are those of `read`. A `preset` gives limits and methods.

    Misleads when the roles are wrong: read them first. Cost: that of `suggest_roles`, and O(cells) for the coarsest.
    """
    asked = preset_named(preset) if preset else None
    given = {name: value for name, value in options.items() if value is not None}
    found = _look(source, path or str(source), given)
    lines = [*_head(found, asked), *_data(found), *_slots(found, asked), *_roles(found, asked)]
    if asked is not None and asked.about == "table":
        return "\n".join([*lines, *_table(found, asked), ""])
    return "\n".join([*lines, *_body(found, asked), ""])


def proposed(records: Records, cells: Cells | None = None) -> dict[str, Any]:
    """What a first policy measures, limits and tries, for records whose roles are known, as a policy file has it.

    `cells` are those of the keys, where they are counted already.
    """
    import tomllib

    found = _counted(FileFindings("", "", _given(records.roles), records), cells)
    plain = tomllib.loads("\n".join([*_measures(found), *_body(found, None)]))
    return {name: plain[name] for name in ("measures", "limits", "candidates") if name in plain}


def _given(roles: Roles) -> Suggestion:
    """Roles that were chosen, as if they had been suggested."""
    held = {role: getattr(roles, FIELDS.get(role, role), None) for role in TOLD}
    named = {role: (its,) if isinstance(its, str) else its or () for role, its in held.items()}
    found = [Proposal(c, role, "chosen", "high", roles.hierarchies.get(c)) for role, its in named.items() for c in its]
    return Suggestion(tuple(found), 0, 0)


def _body(found: FileFindings, preset: Preset | None) -> list[str]:
    """Limits and candidates."""
    if not found.roles.of("key"):
        return _numbers(found, preset)
    return [*_limits(found, preset), *_candidates(found, preset)]


def _look(source: str | Path, path: str, given: dict[str, Any]) -> FileFindings:
    records = read(source, **given)
    roles = suggest_roles(records)
    if set(records.schema()) <= set(roles.roles.direct):
        raise DataError(NOTHING)
    records = without_direct(replace(records, roles=roles.roles))
    records.check()
    return _counted(FileFindings(Path(path).name, path, roles, records, reading={k: str(v) for k, v in given.items()}))


def _counted(found: FileFindings, cells: Cells | None = None) -> FileFindings:
    """With the levels of the keys, and who stands alone at the finest and the coarsest."""
    records = found.records
    if not found.roles.of("key"):
        return found
    cells = cells or count(records)
    trees = {key: tree for key in cells.by if (tree := records.roles.hierarchies.get(key))}
    levels = {key: [level.name for level in tree.allowed if level.name != ORIGINAL] for key, tree in trees.items()}
    levels = {key: names for key, names in levels.items() if names}
    top = cells.roll_up({key: names[-1] for key, names in levels.items()})
    size = prod(len(tree.allowed) for tree in trees.values())
    return replace(found, now=_alone(cells), coarsest=_alone(top), combinations=size, levels=levels)


def _alone(cells: Cells) -> float:
    return float(cells.n[cells.alike[0] == 1].sum() / cells.records)


def _head(found: FileFindings, preset: Preset | None) -> Iterator[str]:
    yield f"# A first policy for {_flat(found.name)}, written by looking at the data. It is a proposal, not a decision."
    yield "#   1. Read every line and change what is wrong: the roles first."
    yield "#   2. equipoise check POLICY.toml      says in plain words what it means."
    yield "#   3. equipoise balance POLICY.toml    tries the candidates and releases the best inside the limits."
    yield "# Hierarchies may name frequent categories: keep this file as you keep the data."
    yield "format = 1"
    yield f"title = {_quoted(Path(found.name).stem)}"
    if preset is not None:
        yield f"\n# {preset.words}."
        yield f"# Source: {preset.source}."
        yield f"extends = {_quoted(preset.name)}"
    else:
        yield from _measures(found)


def _measures(found: FileFindings) -> Iterator[str]:
    if found.roles.of("key"):
        told = [f"attribute_disclosure(sensitive={column!r})" for column in found.roles.of("sensitive")]
        yield "\n# Reported beside the limits; nothing is decided by them."
        yield f"measures = {_quoted(['uniques(k=2)', *told, 'entropy'])}"


def _data(found: FileFindings) -> Iterator[str]:
    yield "\n[data]"
    yield f"path = {_quoted(found.path)}"
    yield from (f"{name} = {_quoted(value)}" for name, value in found.reading.items())


def _slots(found: FileFindings, preset: Preset | None) -> Iterator[str]:
    """The columns that a preset asks for, as far as they can be guessed."""
    wanted = slots_of(preset) if preset else ()
    if wanted:
        guessed = _guesses(found)
        if preset and not any(guessed.get(name) for name in wanted):
            asked = ", ".join(wanted)
            raise DataError(f"The preset {preset.name!r} is about columns that are not seen here ({asked}): name them.")
        yield "\n# The columns that the preset is about; check them, and add what is missing."
        yield "[slots]"
        yield from (f"{name} = {_quoted(guessed[name])}" for name in wanted if guessed.get(name))


def _guesses(found: FileFindings) -> dict[str, Any]:
    kinds: dict[str, list[str]] = {}
    for proposal in found.roles.proposals:
        meaning = meaning_of(proposal.column)
        if meaning and meaning.name == "age" and proposal.role == "key":
            kinds.setdefault("age", []).append(proposal.column)
        elif proposal.hierarchy and proposal.role == "key":
            kind = str(plain_branch(proposal.hierarchy.branches[0])["kind"])
            kinds.setdefault({"dates": "dates", "prefix": "zip"}.get(kind, ""), []).append(proposal.column)
    return {**kinds, **{name: kinds[name][0] for name in ("age", "zip") if name in kinds}}


def _roles(found: FileFindings, preset: Preset | None) -> Iterator[str]:
    yield "\n# What each column is, as its name and values suggest, with the reason."
    slots = _guesses(found) if preset and slots_of(preset) else {}
    taken = [c for value in slots.values() for c in ([value] if isinstance(value, str) else value)]
    yield from found.roles.lines("roles.", taken)


def _limits(found: FileFindings, preset: Preset | None) -> Iterator[str]:
    yield f"\n# As the file is, {found.now:.1%} of the records are alone on the keys,"
    yield f"# with every key as coarse as it gets {found.coarsest:.1%}."
    if preset is None:
        why = "few people may stand alone on what others know of them"
        yield "[limits]"
        yield f"uniques = {{ limit = {_quoted(f'< {LIMIT:.0%}')}, reason = {_quoted(why)} }}"
    elif preset.plain.get("limits"):
        yield "# The limits are those of the preset; a limit here on the same measure takes their place."
        yield "[limits]"
    yield "\n[choose]"
    yield 'prefer = "utility"    # "risk": the safest release inside the limits'


def _candidates(found: FileFindings, preset: Preset | None) -> Iterator[str]:
    if preset is not None and slots_of(preset):
        return
    if not found.levels:
        yield "\n# No key can be coarsened as it is: give hierarchies under [roles.hierarchies] for more candidates."
    elif found.combinations <= MANY:
        yield f"\n# Try every combination of the levels above: {found.combinations:,} of them."
        yield "[[candidates]]"
        yield "coarsenings = true"
        if tidied := _tidied(found):
            yield f"then = [{', '.join(tidied)}]    # old numbers and the old order may give people away"
    else:
        yield f"\n# There are {found.combinations:,} combinations of levels: some levels of each key are tried."
        yield from _recodes(_thinned(found.levels), _tidied(found))
    least = _least(preset)
    if preset is not None or not found.levels or found.coarsest >= LIMIT:
        yield f"\n# Withhold the keys of the records that are still in classes of fewer than {least}: at the coarsest"
        yield f"# {found.coarsest:.1%} stand alone. Where that is a large share, name fewer keys or coarser levels."
        yield from _recodes({key: names[-1:] for key, names in found.levels.items()}, [_drop(least), *_tidied(found)])
    if found.roles.of("numeric"):
        column = _quoted(list(found.roles.of("numeric"))[:1])
        yield "\n# Numbers can be changed as well; then an attack must be limited too, such as value_disclosure:"
        yield "# [[candidates]]"
        yield f'# masks = [{{ use = "noise", columns = {column}, scale = [0.1, 0.3] }}]'


def _least(preset: Preset | None) -> int:
    """The least size of a class that the preset names."""
    sizes = re.findall(r"(?:min-count:|\(k=)(\d+)", preset.text) if preset else []
    told = "prosecutor" in _limited(preset) if preset else False
    return 12 if told else max(2, *map(int, sizes[:1])) if sizes else 2


def _limited(preset: Preset) -> tuple[str, ...]:
    under = preset_named(str(preset.plain["extends"])).plain if "extends" in preset.plain else {}
    return (*preset.plain.get("limits", {}), *under.get("limits", {}))


def _drop(least: int) -> str:
    return f'{{ use = "suppress_records", rule = "min-count:{least}" }}'


def _tidied(found: FileFindings) -> list[str]:
    """New numbers for the groups and, where ids tell records apart, a new order: the old ones may be known."""
    wanted = {"renumber": found.roles.of("household"), "shuffle_order": found.roles.of("id")}
    return [f'{{ use = "{mask}" }}' for mask, given in wanted.items() if given]


def _recodes(levels: dict[str, list[str]], then: list[str]) -> Iterator[str]:
    """A candidate: every key at some levels, then something else."""
    yield "[[candidates]]"
    yield "masks = ["
    for key, names in levels.items():
        level = names[0] if len(names) == 1 else names
        yield f'    {{ use = "recode", column = {_quoted(key)}, level = {_quoted(level)} }},'
    yield from (f"    {step}," for step in then)
    yield "]"


def _thinned(levels: dict[str, list[str]]) -> dict[str, list[str]]:
    """So few levels of each key that their combinations are not too many; the coarsest stays."""
    kept = dict(levels)
    while prod(map(len, kept.values())) > MANY:
        longest = max(kept, key=lambda key: len(kept[key]))
        kept[longest] = kept[longest][1:]
    return kept


def _numbers(found: FileFindings, preset: Preset | None) -> list[str]:
    """Limits and candidates of a file without keys: its numbers are changed."""
    numbers = list(found.roles.of("numeric"))
    if not numbers:
        raise DataError(NOTHING)
    if preset is not None:
        raise DataError(f"The preset {preset.name!r} is about keys, and no column looks like one.")
    return [
        "\n# No column looks like something an intruder may know; what he finds in the numbers is limited.",
        "[limits]",
        'value_disclosure = { limit = "< 90%", reason = "nobody may know the numbers of a record closely" }',
        'moments = { limit = "< 50%", reason = "means, variances and correlations stay useful" }',
        "\n[[candidates]]",
        "masks = [",
        f'    {{ use = "noise", columns = {_quoted(numbers)}, kind = "correlated", scale = [0.4, 0.5, 0.6, 0.8] }},',
        "]",
    ]


def _table(found: FileFindings, preset: Preset) -> Iterator[str]:
    """[table] by the coarsest columns there are."""
    cells = count(found.records) if found.roles.of("key") else None
    by = [key for key in cells.by if len(cells.values(key)) <= FEW][:2] if cells else []
    if not by:
        raise DataError(f"No key has at most {FEW} categories to make a table by: write [table] by hand.")
    amounts, added = found.roles.of("numeric"), re.search(r"p-percent|dominance", preset.text)
    if added and not amounts:
        raise DataError(f"The preset {preset.name!r} is about amounts, and no column looks like one.")
    yield "\n# The table; choose the columns it goes by, and what is added up (without value: records are counted)."
    yield "[table]"
    yield f"by = {_quoted(by)}"
    if added:
        yield f"value = {_quoted(amounts[0])}"
    yield "\n# Limits and methods are those of the preset; what you write here takes their place."


def _flat(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)
