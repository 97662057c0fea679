"""What if an intruder knew: the columns of a file to tick, and what `intrusion` says of those who know them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from equipoise import intrusion
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.doors.web.memory import Memory, Policy, frozen
from equipoise.doors.web.work.open_file import role_of
from equipoise.ground.errors import ParameterError
from equipoise.ground.progress import Progress, report
from equipoise.intrusion import exact_matching
from equipoise.intrusion.exact_matching import WITHHELD_ROLES, Matching, refuse_inner

MANY = 50
"""A number with more distinct values than this may be known roughly."""


def offered(memory: Memory, folder: Path, policy: Policy) -> dict[str, Any]:
    """The columns to tick, and how somebody fares who knows the keys."""
    choices = columns(memory, folder, policy)
    return choices | {"answer": knows(memory, folder, policy, [row["place"] for row in choices["keys"]])}


def columns(memory: Memory, folder: Path, policy: Policy) -> dict[str, Any]:
    """Every column that could be known: the keys, the others, numbers that may be known roughly, and what is left out.

    A column is told by its place in the file, so that its name is never part of an address.
    """
    records = memory.raw(folder, policy["data"])
    roles = Roles.from_plain(policy.get("roles", {}), folder)
    choices: dict[str, Any] = {"keys": [], "others": [], "numbers": [], "left": []}
    for place, name in enumerate(records.schema()):
        role = role_of(roles, name)
        row = {"place": place, "name": name, "label": records.labels.of(name).label or "", "role": role}
        rough = _rough(memory, records, policy, name, role)
        if role in WITHHELD_ROLES:
            choices["left"].append(row)
            continue
        if rough:
            choices["numbers"].append(row)
        if role == "key" or not rough:
            choices["keys" if role == "key" else "others"].append(row)
    return choices


def _rough(memory: Memory, records: Records, policy: Policy, name: str, role: str) -> bool:
    """Whether a column is a number that is rather known roughly than exactly."""
    kind = records.schema()[name]
    if not kind.is_numeric() or role in WITHHELD_ROLES:
        return False
    if role == "numeric":
        return True
    question = ("distinct", frozen(policy["data"]), name)
    return memory.once(question, lambda: records.collect(name)[name].n_unique()) > MANY


def column_names(records: Records, places: Sequence[int]) -> tuple[str, ...]:
    """The names of columns by their places, in the order of the file."""
    schema = list(records.schema())
    if any(place not in range(len(schema)) for place in places):
        raise ParameterError("That column is not in the file: load the page again.")
    return tuple(schema[place] for place in sorted(set(places)))


def knows(memory: Memory, folder: Path, policy: Policy, places: Sequence[int]) -> dict[str, Any]:
    """How somebody fares who knows these columns exactly, beside one who knows all keys."""
    records, raw = memory.records(folder, policy), memory.raw(folder, policy["data"])
    names, keys = column_names(raw, places), records.roles.keys
    refuse_inner(records, names)
    answer: dict[str, Any] = {"known": list(names), "same": set(names) == set(keys), "keys": None}
    if keys:
        matching = memory.once_for(policy, "matching", lambda: _matched(memory, folder, policy, keys))
        answer["keys"] = matching.plain()
    return {**answer, **_matched(memory, folder, policy, names).plain()}


def _matched(memory: Memory, folder: Path, policy: Policy, names: tuple[str, ...]) -> Matching:
    records, raw = memory.records(folder, policy), memory.raw(folder, policy["data"])
    return exact_matching.matched(raw, records.roles, names, lambda: memory.cells(folder, policy))


def combinations(memory: Memory, folder: Path, policy: Policy) -> dict[str, Any]:
    """The combinations of keys that tell most: the worst of each number of keys, and a chart of all that were tried."""
    return memory.once_for(policy, "combinations", lambda: _combinations(memory, folder, policy))


def _combinations(memory: Memory, folder: Path, policy: Policy) -> dict[str, Any]:
    records, schema = memory.records(folder, policy), list(memory.raw(folder, policy["data"]).schema())
    tries = exact_matching.combinations(
        records.roles.keys, records.height(), lambda keys: _matched(memory, folder, policy, keys)
    )
    rows = [
        {"known": keys, "places": [schema.index(column) for column in keys], **matching.plain()}
        for keys, matching in tries.worst
    ]
    return {"rows": rows, "tried": tries.words, "chart": tries.chart}


def check_numbers(
    memory: Memory, folder: Path, policy: Policy, exact: Sequence[int], rough: Sequence[int]
) -> dict[str, Any]:
    """The columns of an attack on numbers, by name; refused before it starts where it cannot be tried."""
    raw = memory.raw(folder, policy["data"])
    numbers, schema = column_names(raw, rough), raw.schema()
    if not numbers:
        raise ParameterError("Tick a number first that the intruder may know roughly.")
    for column in numbers:
        if not schema[column].is_numeric():
            raise ParameterError(f"The column {column!r} holds no numbers: tick it above.")
    others = tuple(column for column in column_names(raw, exact) if column not in numbers)
    refuse_inner(memory.records(folder, policy), (*numbers, *others))
    return {"exact": list(others), "numbers": list(numbers)}


def match_numbers(
    progress: Progress, folder: Path, policy: Policy, exact: Sequence[str], numbers: Sequence[str],
    within: float,
) -> dict[str, Any]:  # fmt: skip
    """Look for people in the file as it is, knowing some columns exactly and numbers to within a share of them."""
    report(progress, 0, 1, "reading the file")
    raw = Memory().raw(folder, policy["data"])
    return intrusion.match_numbers(raw, exact, numbers, within=within, progress=progress)
