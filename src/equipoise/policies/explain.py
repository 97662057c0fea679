"""Explanation of a policy in plain words: data, limits and reasons, candidates, amount of work, warnings."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import polars as pl

from equipoise.data.branches import old_words
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.data.tables.statistic import statistic_of
from equipoise.inspection.direct_identifiers import without_direct
from equipoise.inspection.revealing import column_words, revealing, without
from equipoise.inspection.suggest_roles import ROLE_FIELDS, ROLE_TEXTS
from equipoise.methods.method import Coarsening, Measure, OnCells, label
from equipoise.policies.checks import WAIVABLE_ATTACK, changes
from equipoise.policies.limits import SIGN_WORDS, Limit, ends, is_share
from equipoise.policies.policy_file import DEFAULT_OBJECTIVE, Job
from equipoise.policies.presets import preset_named, presets, slots_of
from equipoise.policies.revealed_columns import assumed_unknown, undeclared
from equipoise.policies.scoped_measures import Wanted, scale
from equipoise.policies.sections import Candidate
from equipoise.presentation.numbers import listed, value_text
from equipoise.recipe.catalogue import OLD_NAMES, family, find, form, summary
from equipoise.recipe.recipe import spread
from equipoise.utility import Overlap


@dataclass(frozen=True)
class Explained:
    """An explained policy: sentences under headings, the numbers of recipes and runs, and warnings."""

    parts: Mapping[str, tuple[str, ...]]
    recipes: int
    runs: int
    warnings: tuple[str, ...] = ()

    def to_plain(self) -> dict[str, Any]:
        return {
            **{heading: list(lines) for heading, lines in self.parts.items()},
            "recipes": self.recipes,
            "runs": self.runs,
            "warnings": list(self.warnings),
        }


def explain(job: Job, records: Records | None = None, *, columns: pl.DataFrame | None = None) -> Explained:
    """Explain a policy; with the records also the amount of work.

    `columns` are those that single people out, where `revealing` was asked for them already.
    """
    roles = records.roles if records else job.read_roles()
    recipes = sum(recipe_count(candidate, roles) for candidate in job.candidates)
    runs = sum(recipe_count(c, roles) * (job.draws if _random(c) else 1) for c in job.candidates)
    parts = {
        "data": tuple(_data(job, roles, records)),
        "scenarios": tuple(_scenarios(job)),
        "limits": tuple(_limits(job)),
        "estimates": tuple(_estimates(job)),
        "candidates": tuple(_candidates(job, roles)),
        "work": (_work(job, recipes, runs, records),),
        "choice": tuple(_choice(job)),
    }
    warnings = (*_warnings(job), *_undeclared(job, records, columns))
    return Explained({h: lines for h, lines in parts.items() if lines}, recipes, runs, warnings)


def recipe_count(candidate: Candidate, roles: Roles) -> int:
    """The number of recipes of a candidate."""
    trees = [roles.hierarchies[key] for key in roles.keys if key in roles.hierarchies]
    recipes = prod(len(tree.allowed) for tree in trees) if candidate.coarsenings and trees else 0
    recipes *= prod(map(_alternatives, candidate.then))
    return recipes + (prod(_alternatives(mask) for mask in candidate.masks) if candidate.masks else 0)


def _alternatives(mask: Mapping[str, Any]) -> int:
    kinds = {f.name: f.kind for f in form(find(str(mask["use"]), "mask"))}
    return prod(len(spread(v, "tuple" in kinds.get(k.replace("-", "_"), ""))) for k, v in mask.items() if k != "use")


def _kinds(candidate: Candidate) -> list[type]:
    return [find(str(mask["use"]), "mask") for mask in (*candidate.masks, *candidate.then)]


def _random(candidate: Candidate) -> bool:
    return not all(issubclass(kind, Coarsening) for kind in _kinds(candidate))


def _data(job: Job, roles: Roles, records: Records | None) -> Iterator[str]:
    size = f": {records.height():,} records, {len(records.schema())} columns" if records else ""
    yield f"{job.data.path}{size}."
    for role, texts in ROLE_TEXTS.items():
        if "sentence" in texts and (columns := getattr(roles, ROLE_FIELDS.get(role, role))):
            yield f"{texts['sentence']} {columns if isinstance(columns, str) else ', '.join(columns)}."
    if job.table is not None:
        what = f"the sums of {job.table.value}" if job.table.value else "counts"
        if (statistic := statistic_of(job.table.statistic)) is not None:
            what = f"the {statistic.words(job.table.value or 'records')}"
        yield f"A table of {what} by {', '.join(job.table.by) or 'the columns that are there'}."
    if job.extends:
        yield f"It extends {job.extends}: {_source(job)}"


def _source(job: Job) -> str:
    preset = preset_named(str(job.extends), job.folder)
    return f"{preset.words} ({preset.source})." if preset.source else "a policy of the house."


def _scenarios(job: Job) -> Iterator[str]:
    for one in job.scenarios:
        why = f" ({one.reason})" if one.reason else ""
        yield f"{one.name} knows {', '.join(one.known)}{why}."


def _limits(job: Job) -> Iterator[str]:
    """Each limit with what it measures and its reason."""
    for limit in job.policy().parsed:
        measure = scale(limit.score, job.scenarios)
        inner = getattr(measure, "inner", measure)
        bound = value_text(limit.bound, "share") if is_share(inner) else f"{limit.bound:g}"
        why = f" Because: {limit.reason}." if limit.reason else ""
        yield f"{limit.score} must be {SIGN_WORDS[limit.sign]} {bound}. {summary(type(inner))}{why}"


def _candidates(job: Job, roles: Roles) -> Iterator[str]:
    for candidate in job.candidates:
        if candidate.coarsenings:
            trees = [key for key in roles.keys if key in roles.hierarchies]
            combined = recipe_count(replace(candidate, masks=()), roles)
            after = "".join(f", then {_step(mask)}" for mask in candidate.then)
            every = f"Every combination of the levels of {', '.join(trees) or 'no key'}{after}"
            yield f"{every}: {_many(combined, 'recipe')}."
        if candidate.masks:
            several = recipe_count(Candidate(masks=candidate.masks), roles)
            steps = ", then ".join(_step(mask) for mask in candidate.masks)
            yield f"{steps}: {_many(several, 'recipe')}."


def _step(mask: Mapping[str, Any]) -> str:
    kinds = {f.name: f.kind for f in form(find(str(mask["use"]), "mask"))}
    several = {k: "tuple" in kinds.get(k.replace("-", "_"), "") for k in mask}
    parameters = ", ".join(f"{k} {_values(v) if several[k] else _value(v)}" for k, v in mask.items() if k != "use")
    return f"{mask['use']} ({parameters})" if parameters else str(mask["use"])


def _values(value: Any) -> str:
    """Of a parameter that holds several values at once: one list, or a choice of lists."""
    lists = value if isinstance(value, list) and value and isinstance(value[0], list) else [value]
    return " or ".join(" and ".join(map(str, one)) if isinstance(one, list | tuple) else str(one) for one in lists)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        if set(value) == {"from", "to", "steps"}:
            return f"{value['from']:g} to {value['to']:g} in {value['steps']} steps"
        return ", ".join(f"{k} {v}" for k, v in value.items())
    return " or ".join(map(_value, value)) if isinstance(value, list | tuple) else str(value)


def _work(job: Job, recipes: int, runs: int, records: Records | None) -> str:
    measures = ", ".join(label(m) for m in job.scales()) or "the usual measures"
    quick = not any(_random(c) for c in job.candidates) and all(isinstance(m, OnCells) for m in job.scales())
    size = f"{records.height():,}" if records else "all"
    how = "on cells alone, the records being counted once" if quick else f"each on {size} records"
    bound = f", {job.search.budget:,} trials at most" if job.search.budget else ""
    time = f", {job.search.seconds:g} seconds at most" if job.search.seconds else ""
    kind = "from coarse to fine" if job.search.search == "adaptive" else "all of them"
    return f"{_many(recipes, 'recipe')} ({kind}{bound}{time}), {_many(runs, 'run')}, {how}. Measured: {measures}."


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' if number != 1 else ''}"


def _estimates(job: Job) -> Iterator[str]:
    """Each analysis in words, with its reason."""
    for one in job.estimates:
        (words,) = Overlap((one.query,)).words()
        yield f"{words[0].upper()}{words[1:]}{f' ({one.reason})' if one.reason else ''}."


def _choice(job: Job) -> Iterator[str]:
    if job.searches and job.objective == {DEFAULT_OBJECTIVE: 1.0}:
        what = f"the {_many(len(job.estimates), 'estimate')} named" if job.estimates else "what users usually compute"
        yield (
            f"Inside the limits the release wins that keeps most of {what}, by the mean overlap of confidence "
            "intervals; if there is none, nothing is released."
        )
    elif job.choose.weights:
        utilities = ", ".join(f"{name} {weight:g}" for name, weight in job.choose.weights.items())
        yield f"Inside the limits the largest sum of utilities wins, weighted: {utilities}."
    elif job.searches:
        best = "most useful" if job.choose.prefer == "utility" else "safest"
        yield f"Inside the limits the {best} release wins; if there is none, nothing is released."
    if columns := assumed_unknown(job.policy()):
        yield f"Assumes that nobody knows {listed(columns)}: the reports say so."
    for name, why in job.waive.items():
        yield f"Waived: {name}, because {why.rstrip('.')}."


def _warnings(job: Job) -> Iterator[str]:
    """Warnings about choices that are valid but doubtful."""
    limits = job.policy().parsed
    sides = {limit.score: _family(scale(limit.score, job.scenarios)) for limit in limits}
    if not any(side in ("risk", "attacks", "tables") for side in sides.values()):
        what = "what is most useful" if job.searches else "the recipe"
        yield f"No risk is limited: {what} is released whatever it leaves."
    if (why := job.unattacked()) and WAIVABLE_ATTACK in job.waive:
        yield f"Waived, and still true: {why.partition('. A policy')[0]}."
    for limit in limits:
        yield from _doubts(limit, scale(limit.score, job.scenarios), sides[limit.score])
    kinds = [kind for candidate in job.candidates for kind in _kinds(candidate)]
    changing = [kind for kind in kinds if changes(kind)]
    if changing and job.draws == 1 and job.searches:
        yield "draws = 1: a random mask is judged by one draw, without an interval. Take 3 or more."
    if changing and not job.register and job.table is None:
        yield "No register: several releases of one file can be averaged or intersected. Name a register file."
    if job.register and job.table is None and not any(job.roles.get(role) for role in ("id", "person")):
        yield "No id and no person: the register recognises records by their other columns, which is less sure."
    yield from _old_words(job)
    yield from _finer(job)
    if job.scenarios and not any(Wanted.of(limit.score).scenario for limit in limits):
        yield "No limit is about a scenario: the scenarios decide nothing."
    if job.extends in presets():
        lacking = [slot for slot in slots_of(presets()[str(job.extends)]) if not job.slots.get(slot)]
        yield from (f"[slots] names no column for {slot}: the preset does nothing about it." for slot in lacking)


def _undeclared(job: Job, records: Records | None, columns: pl.DataFrame | None) -> Iterator[str]:
    """Columns that no candidate changes, that single people out, and of which the policy says nothing."""
    if records is None or job.table is not None:
        return
    released = without_direct(records)
    columns = revealing(released, released) if columns is None else columns
    rest = undeclared(without(columns, job.touched(records)), job.policy())
    if rest.height:
        yield (
            f"Nothing will be released: the policy says nothing of {listed(column_words(rest))}, which single people "
            "out. Mask them, limit revealing_columns, or declare that nobody knows them (assume_unknown)."
        )


def _old_words(job: Job) -> Iterator[str]:
    """Hierarchies and measures in the words of an older version."""
    names = {name.replace("(", ":").partition(":")[0] for name in (*job.limits, *job.measures)}
    yield from (f"The measure {old} is now {new}." for old, new in OLD_NAMES.items() if old in names)
    for column, tree in job.roles.get("hierarchies", {}).items():
        notes = [note for table in (tree if isinstance(tree, list) else [tree]) for note in old_words(table)]
        yield from (f"The hierarchy of {column}: {note}." for note in dict.fromkeys(notes))


def _finer(job: Job) -> Iterator[str]:
    """Keys with a floor that a candidate releases at full detail."""
    floors = {column for column, tree in job.read_roles().hierarchies.items() if tree.allowed[0] != tree.levels[0]}
    for place, candidate in enumerate(job.candidates, 1):
        recoded = {str(value) for mask in candidate.masks for value in (mask.get("column"),)}
        for column in sorted(floors - recoded) if candidate.masks else ():
            yield f"{column} has a floor, and candidate {place} does not recode it: it is released as it is."


def _family(measure: Measure) -> str:
    return family(type(getattr(measure, "inner", measure)))


def _doubts(limit: Limit, measure: Measure, side: str) -> Iterator[str]:
    low, high = ends(measure)
    if (limit.sign == "<=" and limit.bound >= high) or (limit.sign == ">=" and limit.bound <= low):
        yield f"{limit.words()} always holds: it limits nothing."
    if side in ("risk", "attacks") and limit.sign[0] == ">":
        yield f"{limit.words()} asks for a risk, not against one."
