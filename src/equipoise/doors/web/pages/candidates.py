"""Settings of the Balance page: limits, candidates, preset, scenarios and search; each edit is one step."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse

from equipoise.doors.web.app_state import Here, Office
from equipoise.doors.web.pages.balance_settings import (
    Plain,
    Steps,
    candidate_rows,
    candidates_of,
    shown_settings,
    step_lists,
)
from equipoise.doors.web.pages.open_file import with_policy
from equipoise.doors.web.render import part
from equipoise.doors.web.work import balance as work
from equipoise.doors.web.work import method_forms, revealing_columns
from equipoise.doors.web.work.limits import bound_text, known_scenarios, with_limit, with_preset, without_limit
from equipoise.ground.errors import ParameterError
from equipoise.methods.method import label
from equipoise.policies.checks import WAIVABLE_ATTACK, of_candidates, of_limits, of_scenarios
from equipoise.policies.limits import is_share, tables
from equipoise.policies.presets import presets, slots_of
from equipoise.policies.sections import Candidate, Intruder, PolicyProblem
from equipoise.presentation.numbers import title
from equipoise.recipe.catalogue import build, family, find

router = APIRouter()
Word = Annotated[str, Form(max_length=1000)]
Words = Annotated[list[Annotated[str, Form(max_length=10_000)]], Form(max_length=500, default_factory=list)]
Number = Annotated[int, Form(ge=0, le=10_000)]
Verb = Literal["mask", "measure"]
PAGE_NAME = "balance"


@router.get("/balance/form", response_class=HTMLResponse)
def method_form(
    request: Request,
    office: Here,
    verb: Verb,
    name: Annotated[str, Query(max_length=200)] = "",
    candidate: Annotated[int, Query(ge=-1, le=10_000)] = -1,
    steps: Steps = "masks",
    step: Annotated[int, Query(ge=-1, le=10_000)] = -1,
) -> HTMLResponse:
    """The form of a method; filled in where it is a step of a candidate already."""
    before: Plain = {}
    if verb == "mask" and candidate >= 0 and step >= 0:
        before = dict(_step(step_lists(office, steps), candidate, steps, step))
        name = str(before.pop("use"))
    if not name:
        return HTMLResponse("")
    return part(
        request, "balance_form.html", form=method_forms.form_of(find(name, verb), before), verb=verb,
        candidate=candidate, steps=steps, step=step, file=office.ask(work.columns),
        candidates=candidate_rows(candidates_of(office)),
        scenarios=[one.name for one in known_scenarios(office.policy, office.workspace.folder)],
    )  # fmt: skip


@router.post("/balance/limit", response_class=HTMLResponse)
def add_limit(
    request: Request,
    office: Here,
    use: Word,
    names: Words,
    values: Words,
    picked: Words,
    sign: Annotated[Literal["<", "<=", ">", ">="], Form()] = "<",
    bound: Annotated[str, Form(max_length=40)] = "",
    reason: Word = "",
    scenario: Word = "",
    by: Word = "",
    worst: Annotated[bool, Form()] = False,
) -> HTMLResponse:
    """Add a limit on a measure; without a bound it is only measured."""
    policy = office.need_file()
    method = find(use, "measure")
    if family(method) == "tables":
        raise ParameterError(f"{use!r} measures a table, and this is about records.")
    measure = build(use, "measure", method_forms.read_form(method, _texts(names, values), _ticks(picked)))
    name = label(measure)
    if not bound.strip():
        listed = [*dict.fromkeys([*policy.get("measures", ()), name])]
        return _edit(request, office, f"Also measured: {title(name)}", measures=listed)
    limit = bound_text(sign, *_bound(bound, is_share(measure)))
    table = {"limit": limit, "reason": reason.strip(), "scenario": scenario, "by": [by] if by else [], "worst": worst}
    limits = with_limit(policy.get("limits", {}), name, table)
    scenarios = known_scenarios(policy, office.workspace.folder)
    _refuse([*of_limits({name: tables(limits[name], name)}, scenarios)])
    return _edit(request, office, f"Limit: {title(name)} {limit}", limits=limits)


@router.post("/balance/limit/remove", response_class=HTMLResponse)
def remove_limit(request: Request, office: Here, name: Word, item: Number) -> HTMLResponse:
    """Remove a limit."""
    limits = without_limit(office.need_file().get("limits", {}), name, item)
    return _edit(request, office, f"No limit: {title(name)}", limits=limits or None)


@router.post("/balance/measure/remove", response_class=HTMLResponse)
def remove_measure(request: Request, office: Here, name: Word) -> HTMLResponse:
    """Remove a measure."""
    measures = [one for one in office.need_file().get("measures", ()) if one != name]
    return _edit(request, office, f"Not measured: {title(name)}", measures=measures or None)


@router.post("/balance/start", response_class=HTMLResponse)
def begin(request: Request, office: Here) -> HTMLResponse:
    """Start with a first policy: limits, every combination of levels as candidates, and masks on other columns."""
    return _edit(request, office, "A first policy", **office.ask(work.first_policy))


@router.post("/balance/unknown", response_class=HTMLResponse)
def declare_unknown(request: Request, office: Here, column: Word, on: Annotated[bool, Form()] = False) -> HTMLResponse:
    """Declare that nobody knows a column that singles people out, or take the declaration back."""
    rows = office.ask(revealing_columns.declarations)["rows"]
    if column not in [row["column"] for row in rows]:
        raise ParameterError("That column singles nobody out: load the page again.")
    others = [row["column"] for row in rows if row["unknown"] and row["column"] != column]
    words = f"Nobody knows {column}" if on else f"Somebody may know {column}"
    return _edit(request, office, words, assume_unknown=[*others, *([column] if on else [])] or None)


@router.post("/balance/others", response_class=HTMLResponse)
def mask_others(request: Request, office: Here) -> HTMLResponse:
    """Add the proposed masks on columns of which the policy says nothing, and the limit on what is left."""
    policy, proposal = office.need_file(), office.ask(work.proposal_beside_keys)
    always = [*with_preset(policy, office.workspace.folder).get("always", ()), *proposal["always"]]
    limits = {**policy.get("limits", {}), **proposal["limits"]}
    return _edit(request, office, "Other columns: masks and a limit", always=always or None, limits=limits or None)


@router.post("/balance/mask", response_class=HTMLResponse)
def put_mask(
    request: Request,
    office: Here,
    use: Word,
    names: Words,
    values: Words,
    picked: Words,
    place: Annotated[str, Form(max_length=12, pattern=r"^(new|always|\d{1,4}|\d{1,4}:then)$")] = "new",
    step: Annotated[int, Form(ge=-1, le=10_000)] = -1,
) -> HTMLResponse:
    """Add a mask, in a new recipe or at the end of an existing one or of all; or change an existing mask."""
    where, _, after = ("0", "", "") if place == "always" else place.partition(":")
    steps: Steps = "always" if place == "always" else "then" if after else "masks"
    recipes = step_lists(office, steps)
    before = _step(recipes, int(where), steps, step) if step >= 0 and where != "new" else {}
    method = find(use, "mask")
    if family(method) == "tables":
        raise ParameterError(f"{use!r} changes a table, and this is about records.")
    mask = {"use": use, **method_forms.read_form(method, _texts(names, values), _ticks(picked), before)}
    _refuse([*of_candidates([Candidate(masks=(mask,))])])
    changed = [*recipes, {"masks": [mask]}] if where == "new" else _with_mask(recipes, int(where), steps, step, mask)
    words = f"{'In every recipe' if steps == 'always' else 'Candidate'}: {use.replace('_', ' ')}"
    return _edit(request, office, words, **_sections(steps, changed))


@router.post("/balance/mask/remove", response_class=HTMLResponse)
def remove_mask(
    request: Request, office: Here, candidate: Number, step: Number, steps: Annotated[Steps, Form()] = "masks"
) -> HTMLResponse:
    """Remove a mask from a recipe; a recipe without masks is removed."""
    recipes = step_lists(office, steps)
    mask = _step(recipes, candidate, steps, step)
    masks = [one for place, one in enumerate(recipes[candidate][steps]) if place != step]
    rest = {key: value for key, value in recipes[candidate].items() if key != steps}
    one: Plain = {**rest, steps: masks} if masks else rest
    recipes[candidate : candidate + 1] = (
        [one] if any(one.get(name) for name in ("masks", "coarsenings", "always")) else []
    )
    return _edit(request, office, f"Left out: {str(mask['use']).replace('_', ' ')}", **_sections(steps, recipes))


@router.post("/balance/coarsenings", response_class=HTMLResponse)
def coarsenings(request: Request, office: Here, on: Annotated[bool, Form()] = False) -> HTMLResponse:
    """Add or remove the candidate that tries every combination of the levels of the keys."""
    others = [one for one in candidates_of(office) if not one.get("coarsenings")]
    then = [one.get("then", []) for one in candidates_of(office) if one.get("coarsenings")]
    first = {"coarsenings": True, **({"then": then[0]} if then and then[0] else {})}
    words = "Every combination of the levels" if on else "Not every combination of the levels"
    return _edit(request, office, words, candidates=[first, *others] if on else others)


@router.post("/balance/preset", response_class=HTMLResponse)
def extend(request: Request, office: Here, picked: Words, name: Word = "") -> HTMLResponse:
    """Extend an agency's preset; the policy's own sections take precedence."""
    office.need_file()
    if name and (name not in presets() or presets()[name].about != "records"):
        raise ParameterError("There is no such preset for records.")
    filled: dict[str, list[str]] = {}
    for slot, column in _ticks(picked):
        if name and slot in slots_of(presets()[name]) and column:
            filled.setdefault(slot, []).append(column)
    words = f"Preset: {name}" if name else "No preset"
    return _edit(request, office, words, extends=name or None, slots=filled or None)


@router.post("/balance/scenario", response_class=HTMLResponse)
def add_scenario(request: Request, office: Here, name: Word, picked: Words, reason: Word = "") -> HTMLResponse:
    """Add an intruder scenario: its name and the columns that the intruder knows."""
    policy = office.need_file()
    columns = [column for _, column in _ticks(picked)]
    new: Plain = {"name": name.strip(), "known": columns}
    new |= {"reason": reason.strip()} if reason.strip() else {}
    others = known_scenarios(policy, office.workspace.folder)
    _refuse([*of_scenarios((*others, Intruder(name.strip(), tuple(columns))))])
    listed = [*policy.get("scenarios", ()), new]
    return _edit(request, office, f"Scenario: {name.strip()}", scenarios=listed)


@router.post("/balance/scenario/remove", response_class=HTMLResponse)
def remove_scenario(request: Request, office: Here, place: Number) -> HTMLResponse:
    """Remove a scenario."""
    scenarios = list(office.need_file().get("scenarios", ()))
    if place >= len(scenarios):
        raise ParameterError("There is no such scenario any more.")
    remaining = [one for number, one in enumerate(scenarios) if number != place]
    return _edit(request, office, f"No scenario: {scenarios[place]['name']}", scenarios=remaining or None)


@router.post("/balance/settings", response_class=HTMLResponse)
def settings(
    request: Request,
    office: Here,
    names: Words,
    values: Words,
    prefer: Annotated[Literal["utility", "risk"], Form()] = "utility",
    search: Annotated[Literal["grid", "adaptive"], Form()] = "grid",
    budget: Annotated[str, Form(max_length=12)] = "",
    seconds: Annotated[str, Form(max_length=12)] = "",
    draws: Annotated[int, Form(ge=1, le=1000)] = 1,
    waive: Word = "",
) -> HTMLResponse:
    """Set what is preferred within the limits, and how candidates are searched."""
    policy = office.need_file()
    weights = {name: _float(text, "A weight") for name, text in _texts(names, values).items() if text.strip()}
    weights = {name: weight for name, weight in weights.items() if weight}
    how: Plain = {**policy.get("search", {}), "search": search}
    for key, text in (("budget", budget), ("seconds", seconds)):
        how.pop(key, None)
        if text.strip() and search == "adaptive":
            number = _float(text, "The most trials or seconds")
            how[key] = int(number) if key == "budget" else number
    return _edit(
        request, office, "How to choose and search",
        choose={"prefer": prefer, **({"weights": weights} if weights else {})}, search=how, draws=draws,
        waive={**policy.get("waive", {}), WAIVABLE_ATTACK: waive.strip()} if waive.strip() else None,
    )  # fmt: skip


def _sections(steps: Steps, step_lists: list[Plain]) -> Plain:
    """The section of a policy that has these steps."""
    return (
        {"always": step_lists[0]["always"] if step_lists else None} if steps == "always" else {"candidates": step_lists}
    )


def _step(candidates: Sequence[Mapping[str, Any]], candidate: int, steps: Steps, step: int) -> Plain:
    try:
        return candidates[candidate][steps][step]
    except (IndexError, KeyError):
        raise ParameterError("There is no such step any more: load the page again.") from None


def _with_mask(candidates: Sequence[Plain], candidate: int, steps: Steps, step: int, mask: Plain) -> list[Plain]:
    """The candidates with one more mask, or with a mask replaced."""
    if candidate >= len(candidates):
        raise ParameterError("There is no such recipe any more: load the page again.")
    one = candidates[candidate]
    old = list(one.get(steps, ()))
    new = [*old, mask] if step < 0 else [*old[:step], mask, *old[step + 1 :]]
    return [*candidates[:candidate], {**one, steps: new}, *candidates[candidate + 1 :]]


def _edit(request: Request, office: Office, words: str, **parts: Any) -> HTMLResponse:
    """Edit the policy as one step, and render the settings again."""
    office.edit(request, words, PAGE_NAME, lambda draft: with_policy(draft, **parts))
    return part(request, "balance_setup.html", **shown_settings(office))


def _refuse(problems: Sequence[PolicyProblem]) -> None:
    """Raise all problems as one error, if there are any."""
    if problems:
        error = ParameterError(" ".join(dict.fromkeys(problem.words.rstrip(".") + "." for problem in problems)))
        error.problems = tuple(replace(problem, place=problem.place[-1:]) for problem in problems)
        raise error


def _texts(names: Sequence[str], values: Sequence[str]) -> dict[str, str]:
    if len(names) != len(values):
        raise ParameterError("The form is not whole: load the page again.")
    return dict(zip(names, values, strict=True))


def _ticks(picked: Sequence[str]) -> list[tuple[str, str]]:
    """The ticked values, each with its parameter."""
    pairs = []
    for text in picked:
        try:
            name, value = json.loads(text)
        except (ValueError, TypeError):
            raise ParameterError("The form is not whole: load the page again.") from None
        pairs.append((str(name), str(value)))
    return pairs


def _bound(text: str, share: bool) -> tuple[float, bool]:
    """The typed bound and whether it is in percent, as the bounds of shares are."""
    bare = text.strip().removesuffix("%").strip()
    return _float(bare, "A limit"), share or text.strip().endswith("%")


def _float(text: str, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ParameterError(f"{what} is a number.") from None
    if not abs(number) < 1e15:
        raise ParameterError(f"{what} is a number.")
    return number
