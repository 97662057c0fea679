"""Checks of a policy file before any data is read: every problem with its place."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

from equipoise.data.roles import Roles
from equipoise.ground.errors import EquipoiseError, hint
from equipoise.ground.type_adapters import type_adapter
from equipoise.methods.method import Mask, Measure, name_of
from equipoise.policies.limits import Limit, at_odds, expanded, limits_of, never, tables
from equipoise.policies.mask_tables import mask_problems
from equipoise.policies.scoped_measures import KEYS_SCENARIO, SCENARIO_FREE_RISKS, Wanted, scale
from equipoise.policies.sections import Candidate, Choose, EstimateTable, Intruder, LimitTable, PolicyProblem
from equipoise.policies.toml_lines import Place
from equipoise.recipe.catalogue import build, family, find, form
from equipoise.recipe.recipe import spread
from equipoise.utility import Overlap

TRUTHFUL_MASKS = (
    "coarsen_weights",
    "drop_direct_identifiers",
    "local_recode",
    "local_suppress",
    "local_swap",
    "sample",
    "shuffle_order",
    "suppress_records",
)
"""Masks that only coarsen or leave out, so that remaining values are true; and exchanges that classes bound."""
RISKS_OF_CHANGED_VALUES = (
    "match_probability",
    "correct_matches",
    "value_disclosure",
    "known_within",
    "recognisable",
    "revealing_columns",
)
"""Risks of files whose values were changed; every attack is one too."""
UNKNOWN_KEY_ERRORS = ("unexpected_keyword_argument", "extra_forbidden")
"""Pydantic error types of unknown keys."""
WRITTEN_PATHS = (("register",), ("output", "folder"), ("search", "journal"))
"""What a policy names to be written."""
WAIVABLE_ATTACK = "attack"
"""The check that a policy may waive, with its reason."""


def validated(kind: type, plain: Mapping[str, Any], skip: Sequence[str]) -> tuple[dict[str, Any], list[PolicyProblem]]:
    """The valid fields of a dataclass from plain data, and the problems of the others; loosely right ones are used."""
    from pydantic import ValidationError

    hints = {name: its for name, its in get_type_hints(kind).items() if name not in (*skip, "__pydantic_config__")}
    values: dict[str, Any] = {}
    problems = []
    for name, value in plain.items():
        if name not in hints:
            problems.append(PolicyProblem((name,), "is not known here." + hint(name, list(hints))))
            continue
        errors = _strict_errors(hints[name], value)
        problems += [_sentence(name, value, error, hints[name]) for error in errors]
        for part in (value, _sound(value, [error["loc"] for error in errors])):
            with suppress(ValidationError):
                values.setdefault(name, type_adapter(hints[name]).validate_python(part))
    return values, [*problems, *_null_paths(plain)]


def _null_paths(plain: Mapping[str, Any]) -> Iterator[PolicyProblem]:
    """Paths to write to that no system takes."""
    for *section, name in WRITTEN_PATHS:
        inside = plain.get(section[0]) if section else plain
        if isinstance(inside, Mapping) and "\0" in str(inside.get(name, "")):
            yield PolicyProblem((*section, name), "A path has no null character.")


def _strict_errors(kind: Any, value: Any) -> list[Any]:
    """Errors of strict validation, which also refuses "yes" for true and "3" for 3."""
    from pydantic import ValidationError

    try:
        type_adapter(kind).validate_json(json.dumps(value, default=str), strict=True)
    except ValidationError as error:
        return list(error.errors(include_input=False))
    return []


def _sound(value: Any, strangers: Sequence[tuple[str | int, ...]]) -> Any:
    """The section without unknown keys and invalid values, so that the rest can be checked."""
    inner: dict[Any, list[tuple[str | int, ...]]] = {}
    for loc in filter(None, strangers):
        inner.setdefault(loc[0], []).append(loc[1:])
    if isinstance(value, Mapping):
        sound = {k: v for k, v in value.items() if () not in inner.get(k, [])}
        return {k: _sound(v, inner.get(k, [])) for k, v in sound.items()}
    return [_sound(v, inner.get(i, [])) for i, v in enumerate(value)] if isinstance(value, list) else value


def _sentence(name: str, value: Any, error: Any, kind: Any) -> PolicyProblem:
    """One validation error as a problem, at the deepest place that the file has."""
    place: list[str | int] = [name]
    inner = value
    for part in error["loc"]:
        if (isinstance(inner, Mapping) and part in inner) or (isinstance(inner, list) and isinstance(part, int)):
            inner = inner[part]
            place.append(part)
        elif error["type"] == "missing":
            place.append(part)
    if error["type"] in UNKNOWN_KEY_ERRORS:
        near = hint(str(place[-1]), _keys(kind)) if _keys(kind) else ""
        return PolicyProblem(tuple(place), "is not known here." + near)
    words = "is missing" if error["type"] == "missing" else re.sub(r"^Value error, ", "", str(error["msg"]))
    if isinstance(inner, Mapping) and words.split()[0] in inner:
        place.append(words.split()[0])
    return PolicyProblem(tuple(place), words if words[:5] != "Input" else words[0].lower() + words[1:])


def _keys(kind: Any) -> list[str]:
    """The keys of a section, also of one that is a list of tables."""
    for one in (kind, *get_args(kind)):
        if is_dataclass(one):
            return [f.name for f in fields(one)]
    return []


def of_roles(plain: Mapping[str, Any], folder: Path) -> Iterator[PolicyProblem]:
    """Problems of [roles]: unknown roles, each hierarchy alone, then all together."""
    roles = [f.name for f in fields(Roles)]
    yield from (PolicyProblem(("roles", n), f"No role {n!r}.{hint(n, roles)}") for n in plain if n not in roles)
    trees = plain.get("hierarchies", {})
    good = {}
    for column, tree in trees.items() if isinstance(trees, Mapping) else ():
        try:
            Roles.from_plain({"hierarchies": {column: tree}}, folder)
            good[column] = tree
        except EquipoiseError as error:
            yield PolicyProblem(("roles", "hierarchies", column), str(error))
        except (TypeError, ValueError, IndexError):
            yield PolicyProblem(("roles", "hierarchies", column), f"The hierarchy of {column!r} has unfit fields.")
    rest = {n: v for n, v in plain.items() if n in roles and n != "hierarchies"}
    try:
        Roles.from_plain({**rest, "hierarchies": good if isinstance(trees, Mapping) else trees}, folder)
    except EquipoiseError as error:
        yield PolicyProblem(_role_place(str(error), rest), str(error))


def readable(plain: Mapping[str, Any], folder: Path, columns: Iterable[str]) -> Roles:
    """The hierarchies of these columns that can be read, and nothing else."""
    hierarchies: dict[str, Any] = {}
    trees = plain.get("hierarchies", {})
    for column, tree in trees.items() if isinstance(trees, Mapping) else ():
        with suppress(EquipoiseError, TypeError, ValueError, IndexError):
            hierarchies |= Roles.from_plain({"hierarchies": {column: tree}}, folder).hierarchies
    return Roles(hierarchies={column: tree for column, tree in hierarchies.items() if column in columns})


def _role_place(words: str, plain: Mapping[str, Any]) -> Place:
    """The place of the role that a message names, if any."""
    role = next((n for n in plain if re.search(rf"role '{n}'|^{n} ", words)), None)
    return ("roles", role) if role else ("roles",)


def of_scenarios(scenarios: Sequence[Intruder]) -> Iterator[PolicyProblem]:
    for i, one in enumerate(scenarios):
        if not re.fullmatch(r"\w[\w -]*", one.name) or one.name == KEYS_SCENARIO:
            yield PolicyProblem(
                ("scenarios", i, "name"), f"{one.name!r} cannot name a scenario: use letters, not {KEYS_SCENARIO!r}."
            )
        if one.name in [other.name for other in scenarios[:i]]:
            yield PolicyProblem(("scenarios", i, "name"), f"Two scenarios are named {one.name!r}.")
        if not one.known:
            yield PolicyProblem(
                ("scenarios", i, "known"), "Nothing is known: name the columns of which the intruder knows."
            )


def of_limits(limits: Mapping[str, Any], scenarios: tuple[Intruder, ...]) -> Iterator[PolicyProblem]:
    """Limits that cannot be read, cannot hold, or cannot hold together."""
    limit_places: list[tuple[Place, Limit]] = []
    for name, entry in limits.items():
        for place, table, fault in _tables(name, entry):
            if table is None:
                yield PolicyProblem(place, fault)
                continue
            for one in _of_limit(place, name, table, scenarios):
                if isinstance(one, PolicyProblem):
                    yield one
                else:
                    limit_places.append((place, one))
    where = {limit.score: place for place, limit in limit_places}
    yield from (PolicyProblem(where[s], words) for s, words in at_odds([limit for _, limit in limit_places], scenarios))


def _tables(name: str, entry: Any) -> Iterator[tuple[Place, LimitTable | None, str]]:
    """Each limit on a measure with its place, or what is wrong with it."""
    several = isinstance(entry, list | tuple)
    if several and not entry:
        yield ("limits", name), None, "An empty list limits nothing."
    for i, item in enumerate(entry if several else [entry]):
        place: Place = ("limits", name, i) if several else ("limits", name)
        keys = _keys(LimitTable)
        strangers = [k for k in item if k not in keys] if isinstance(item, Mapping) else []
        for key in strangers:
            yield (*place, key), None, "is not known here." + hint(key, keys)
        if isinstance(item, list | tuple):
            yield place, None, "A limit is a text or a table."
        elif isinstance(item, Mapping) and not isinstance(item.get("worst", False), bool):
            yield (*place, "worst"), None, "is true or false."
        elif not strangers:
            try:
                yield place, tables(item, name)[0], ""
            except EquipoiseError as error:
                yield place, None, str(error).removeprefix(f"limits.{name}: ")


def _of_limit(
    place: Place, name: str, table: LimitTable, scenarios: tuple[Intruder, ...]
) -> Iterator[Limit | PolicyProblem]:
    for score in expanded(name, table, scenarios):
        try:
            measure = scale(score, scenarios)
            if Wanted.of(score).scenario and name_of(type(getattr(measure, "inner", measure))) in SCENARIO_FREE_RISKS:
                yield PolicyProblem(place, f"{name} does not depend on what an intruder knows: leave out the scenario.")
            for limit in limits_of(score, table.limit, table.reason):
                fault = never(limit, measure)
                yield PolicyProblem(place, fault) if fault else limit
        except EquipoiseError as error:
            yield PolicyProblem(place, str(error))
            return


def of_measures(names: Iterable[str], scenarios: tuple[Intruder, ...]) -> Iterator[PolicyProblem]:
    for i, name in enumerate(names):
        try:
            scale(name, scenarios)
        except EquipoiseError as error:
            yield PolicyProblem(("measures", i), str(error))


def of_weights(choose: Choose) -> Iterator[PolicyProblem]:
    """Problems of weights: they must be of utilities, 0 or more, and need utility to be preferred."""
    for name, weight in choose.weights.items():
        place: Place = ("choose", "weights", name)
        try:
            kind = family(type(getattr(measure := scale(name), "inner", measure)))
        except EquipoiseError as error:
            yield PolicyProblem(place, str(error))
            continue
        if kind in ("risk", "attacks"):
            yield PolicyProblem(place, f"{name} is a risk: weights are of utilities.")
        if not weight >= 0:
            yield PolicyProblem(place, "A weight is 0 or more.")


def of_estimates(estimates: Sequence[EstimateTable]) -> Iterator[PolicyProblem]:
    """Queries that cannot be read, or stand there twice."""
    for i, one in enumerate(estimates):
        place: Place = ("estimates", i, "query")
        try:
            Overlap((one.query,))
        except EquipoiseError as error:
            yield PolicyProblem(place, str(error))
        if one.query in [other.query for other in estimates[:i]]:
            yield PolicyProblem(place, f"The query {one.query!r} stands there twice.")


def of_candidates(candidates: Sequence[Candidate]) -> Iterator[PolicyProblem]:
    for i, candidate in enumerate(candidates):
        if not candidate.coarsenings and not candidate.masks:
            yield PolicyProblem(("candidates", i), "gives no recipe: say coarsenings = true, or name masks.")
        for j, table in enumerate(candidate.masks):
            yield from _of_mask(dict(table), ("candidates", i, "masks", j))
        for j, table in enumerate(candidate.then):
            yield from _of_mask(dict(table), ("candidates", i, "then", j))
        if candidate.then and not candidate.coarsenings:
            yield PolicyProblem(
                ("candidates", i, "then"), "follows coarsenings = true; without it, write all steps as masks."
            )


def _of_mask(table: dict[str, Any], place: Place) -> Iterator[PolicyProblem]:
    """Problems of one mask: its name, each parameter alone, then the mask with the first value of each."""
    name = str(table.pop("use", ""))
    if not name:
        yield PolicyProblem(place, 'each mask needs use = "its name".')
        return
    try:
        method = find(name, "mask")
    except EquipoiseError as error:
        yield PolicyProblem((*place, "use"), str(error))
        return
    problems = list(mask_problems(table, name, method, place))
    yield from problems or _build_problems(name, method, table, place)


def _build_problems(name: str, method: type, table: Mapping[str, Any], place: Place) -> Iterator[PolicyProblem]:
    """Errors of building a mask: each value of a grid with the first values of the others."""
    kinds = {field.name: field.kind for field in form(method)}
    grids = {k: spread(v, "tuple" in kinds[k.replace("-", "_")]) for k, v in table.items()}
    first = {k: values[0] for k, values in grids.items()}
    faults = set()
    for key, values in grids.items() or {"": [None]}.items():
        for value in values:
            try:
                build(name, "mask", {**first, key: value} if key else {})
            except EquipoiseError as error:
                where = next((k for k in table if re.search(rf"\b{k}\b", str(error))), None)
                faults.add(((*place, where) if where else place, str(error)))
    yield from (PolicyProblem(*one) for one in sorted(faults, key=str))


def changes(mask: Mask | type) -> bool:
    """Whether a mask is perturbative: it neither coarsens nor leaves out."""
    kind = mask if isinstance(mask, type) else type(mask)
    return not hasattr(kind, "roll_up") and name_of(kind) not in TRUTHFUL_MASKS and family(kind) == "masks"


def suited(measure: Measure) -> bool:
    """Whether a risk is meaningful for perturbed values."""
    kind = type(getattr(measure, "inner", measure))
    return family(kind) == "attacks" or name_of(kind) in RISKS_OF_CHANGED_VALUES


def unattacked(masks: Iterable[type], limited: Sequence[Measure]) -> str:
    """Why the policy must limit an attack: a mask perturbs values, and all limited risks only count classes."""
    changing = sorted({name_of(kind) for kind in masks if changes(kind)})
    risks = [m for m in limited if family(type(getattr(m, "inner", m))) in ("risk", "attacks")]
    if not changing or not risks or any(suited(m) for m in risks):
        return ""
    return (
        f"{', '.join(changing)} changes values, so that counting who stands alone says little: limit an attack as well "
        f"(nearest, linkage, interval, ...) or one of {', '.join(RISKS_OF_CHANGED_VALUES)}. A policy may waive it with "
        f'its reason: waive = {{ {WAIVABLE_ATTACK} = "why" }}.'
    )
