"""Balance: candidates are tried, a map shows what each costs and buys, limits are moved on it, trials are opened."""

import json
from collections.abc import Mapping
from math import isfinite
from time import sleep
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse

from equipoise.doors.web.app_state import Here, Office
from equipoise.doors.web.background_runs import Run
from equipoise.doors.web.pages.candidates import setup
from equipoise.doors.web.pages.open_file import with_policy
from equipoise.doors.web.render import page, part
from equipoise.doors.web.work import balance as work
from equipoise.doors.web.work import trial_preview
from equipoise.doors.web.work.limits import SIGN_WORDS, slots, with_bounds, with_preset
from equipoise.doors.web.work.trials import (
    Plain,
    PolicyChoice,
    TrialResults,
    axes_of_map,
    handles,
    has_map,
    limit_rows,
    map_spec,
    policy_choice,
    policy_of,
    results_of,
    table,
    trial_facts,
    unit_of,
    value,
)
from equipoise.ground.errors import DataError, EquipoiseError, ParameterError
from equipoise.policies.policy import Policy, scored
from equipoise.presentation.numbers import said, title
from equipoise.search.explain_choice import Choice, refusal
from equipoise.search.risk_utility_map import Axes

router = APIRouter()
AT_ONCE = 200_000
"""Records up to which a recipe is applied while the page waits; beyond, it is a run with progress."""
WAITS = 40
"""Twentieths of a second that a run about another trial is waited for."""
MOST_WEIGHED = 2000
"""Trials beyond which it is not asked how firm the choice is."""
Bounds = Annotated[list[Annotated[str, Query(max_length=40)]], Query(max_length=100)]
Name = Annotated[str, Query(max_length=1000)]
Place = Annotated[int, Query(ge=0, le=1_000_000)]
Pinned = Annotated[str, Query(max_length=8, pattern=r"^\d*$")]


@router.get("/balance", response_class=HTMLResponse)
def show(request: Request, office: Here, risk: Name = "", utility: Name = "") -> HTMLResponse:
    """The page: what was tried and chosen, then what can be set."""
    if not office.opened:
        return page(request, "unopened.html", "balance", heading="Balance")
    facts = {**_stage(office, risk, utility), **setup(office)}
    return page(request, "balance.html", "balance", **facts)


@router.get("/balance/stage", response_class=HTMLResponse)
def stage(request: Request, office: Here, risk: Name = "", utility: Name = "") -> HTMLResponse:
    """How far the trials are; the map when they are done."""
    return part(request, "balance_stage.html", **_stage(office, risk, utility))


@router.post("/balance/try", response_class=HTMLResponse)
def start(request: Request, office: Here) -> HTMLResponse:
    """Try the candidates; what was tried before is not tried again."""
    policy = office.need_file()
    found = office.ask(work.check)
    if found["problems"]:
        problems = tuple(f"{one['place']} {one['words']}".strip() for one in found["problems"])
        alone = f": {problems[0]}" if len(problems) == 1 else "."
        error = ParameterError(f"The policy is not ready to be tried{alone}")
        error.problems = problems
        raise error
    office.runs.start(work.RUN_KIND, work.try_all, office.workspace.folder, policy, about=_about(policy))
    return _quiet(part(request, "balance_stage.html", **_stage(office)))


@router.post("/balance/stop", response_class=HTMLResponse)
def stop(request: Request, office: Here) -> HTMLResponse:
    """Stop; what was tried is kept."""
    if found := office.runs.latest(work.RUN_KIND):
        office.runs.stop(found.id)
    return _quiet(part(request, "balance_stage.html", **_stage(office)))


@router.get("/balance/choice", response_class=HTMLResponse)
def choose(request: Request, office: Here, bounds: Bounds, risk: Name = "", utility: Name = "") -> HTMLResponse:
    """The choice with the limits as they were moved; nothing is changed."""
    values = _numbers(bounds)
    if values is None:
        return HTMLResponse(status_code=204)
    found, plain = _tried(office), office.need_file()
    folder = office.workspace.folder
    limits = with_bounds(plain, folder, values)
    before, after = policy_of(plain, folder), policy_of({**plain, "limits": limits}, folder)
    made, was = policy_choice(found, after), policy_choice(found, before)
    shown = axes_of_map(found, before, risk, utility) if has_map(found) else None
    rows = limit_rows(map_spec(found, after, made, shown)) if shown else {}
    facts = _answered(found, after, made, shown)
    changed = limits != plain.get("limits", {})
    return part(request, "balance_choice.html", **facts, rows=rows, changed=changed, was=was)


@router.post("/balance/limits", response_class=HTMLResponse)
def keep_limits(
    request: Request, office: Here, bounds: Annotated[list[Annotated[str, Form(max_length=40)]], Form(max_length=100)]
) -> HTMLResponse:
    """Write the limits as they were moved into the policy."""
    values = _numbers(bounds)
    if values is None:
        raise ParameterError("A limit is a number.")
    limits = with_bounds(office.need_file(), office.workspace.folder, values)
    office.edit(request, "Moved the limits", "balance", lambda draft: with_policy(draft, limits=limits))
    return part(request, "balance_setup.html", **setup(office))


@router.get("/balance/why", response_class=HTMLResponse)
def why(request: Request, office: Here) -> HTMLResponse:
    """The reasons of the choice, what the next steps would buy, and how firm it is."""
    found = _tried(office)
    policy = policy_of(office.need_file(), office.workspace.folder)
    made = Choice(found.trials, policy)
    firm = [shift.words() for shift in made.shifts] if len(found.trials) <= MOST_WEIGHED and made.trial else []
    return part(
        request, "balance_why.html", chosen=made.trial is not None, words=[margin.words() for margin in made.margins],
        steps=[step.words() for step in made.steps], moves=[move.words() for move in made.moves], shifts=firm,
        refused=[(limit.words(), every, alone) for limit, every, alone in made.refused],
    )  # fmt: skip


@router.get("/balance/left", response_class=HTMLResponse)
def left_out(request: Request, office: Here) -> HTMLResponse:
    """The recipes that could not be made of this data, with the reasons, which may name a cell."""
    return part(request, "balance_left.html", left=_tried(office).left_out)


# One trial ------------------------------------------------------------------------------------------------------------


@router.get("/balance/trial", response_class=HTMLResponse)
def trial(request: Request, office: Here, at: Place, pinned: Pinned = "") -> HTMLResponse:
    """A trial: its scores beside the original, the choice, and one that was pinned."""
    found = _tried(office)
    policy = policy_of(office.need_file(), office.workspace.folder)
    facts = trial_facts(found, policy, policy_choice(found, policy), at, int(pinned) if pinned else None)
    return part(request, "balance_trial.html", trial=facts)


@router.get("/balance/trial/look", response_class=HTMLResponse)
def look(request: Request, office: Here, at: Place) -> HTMLResponse:
    """What a trial does to each variable; for a large file when it was asked for."""
    found = _tried(office)
    found.at(at)
    if found.records <= AT_ONCE:
        return part(request, "balance_look.html", at=at, look=office.ask(trial_preview.look, found.masks[at]), run=None)
    run = _about_trial(office, "look", at)
    return part(request, "balance_look.html", at=at, look=run.result if run and run.state == "done" else None, run=run)


@router.post("/balance/trial/look", response_class=HTMLResponse)
def look_long(request: Request, office: Here, at: Annotated[int, Form(ge=0, le=1_000_000)]) -> HTMLResponse:
    """The same in a process of its own."""
    run = _begin(office, "look", trial_preview.look_long, at)
    return _quiet(part(request, "balance_look.html", at=at, look=None, run=run))


@router.get("/balance/trial/attack", response_class=HTMLResponse)
def attacks(request: Request, office: Here, at: Place) -> HTMLResponse:
    """How far the attacks on a trial are, or what they found."""
    return part(request, "balance_attack.html", at=at, run=_about_trial(office, "try to break", at))


@router.post("/balance/trial/attack", response_class=HTMLResponse)
def attack(request: Request, office: Here, at: Annotated[int, Form(ge=0, le=1_000_000)]) -> HTMLResponse:
    """Try to break one draw of a trial."""
    run = _begin(office, "try to break", trial_preview.attack_long, at)
    return _quiet(part(request, "balance_attack.html", at=at, run=run))


@router.post("/balance/trial/use", response_class=HTMLResponse)
def use(request: Request, office: Here, at: Annotated[int, Form(ge=0, le=1_000_000)]) -> HTMLResponse:
    """Make a trial the only candidate."""
    found = _tried(office)
    masks = list(found.masks[found.places[id(found.at(at))]])
    if not masks:
        raise ParameterError("This is the file as it is: there is no step to keep.")
    words = f"Only candidate: {found.at(at).words()}"
    office.edit(request, words, "balance", lambda draft: with_policy(draft, candidates=[{"masks": masks}], search=None))
    return part(request, "balance_setup.html", **setup(office))


def _quiet(told: HTMLResponse) -> HTMLResponse:
    """An answer after which nothing else is drawn again: no step was taken."""
    if "HX-Trigger" in told.headers:
        del told.headers["HX-Trigger"]
    return told


# Facts ----------------------------------------------------------------------------------------------------------------


def _stage(office: Office, risk: str = "", utility: str = "") -> dict[str, Any]:
    """What was tried and chosen, or what there is to try."""
    policy = office.need_file()
    run = office.runs.latest(work.RUN_KIND)
    checked = office.ask(work.check)
    facts: dict[str, Any] = {"run": run, "checked": checked, "bare": not _begun(office)}
    facts |= {"map": None, "aside": "", "made": None, "stale": ""}
    if run is None or run.about["data"] != _about(policy)["data"]:
        return {**facts, "run": None}
    if run.state != "done":
        return facts
    found = results_of(run.id, run.result)
    facts |= {"stale": _stale(run.about, _about(policy)), "left": len(found.left_out)}
    try:
        made = policy_choice(found, limits := policy_of(policy, office.workspace.folder))
    except EquipoiseError as error:
        return {**facts, "aside": str(error)}
    known = slots(policy, office.workspace.folder)
    shown = axes_of_map(found, limits, risk, utility) if has_map(found) else None
    facts |= {**_answered(found, limits, made, shown), "rows": {}, "changed": False, "was": made}
    facts["refusal"] = "" if made.accepted else refusal(found.trials, limits)
    facts["slots"] = [slot.to_plain(place) for place, slot in enumerate(known)]
    if shown is None:
        return {**facts, "aside": "There is no map: measure a risk and a use, such as uniques and entropy."}
    spec = map_spec(found, limits, made, shown)
    return {
        **facts,
        "map": spec,
        "handles": handles(known, found, shown),
        "axes": _axes(found, shown),
        "table": table(found, limits, shown, made),
        "ends": [end.words() for end in (found.original, found.nothing) if end is not None],
    }


def _answered(found: TrialResults, policy: Policy, made: PolicyChoice, shown: Axes | None) -> Plain:
    """The choice in words: the trial, its scores beside the original's, and where none is inside what would help."""
    limited = {scored(made.trial, limit).name: limit for limit in policy.parsed}
    names = dict.fromkeys([*limited, *((shown.risk.name, shown.utility.name) if shown else ())])
    scores = []
    for name in names:
        score, limit = made.trial.scores.named(name), limited.get(name)
        told = {"title": title(name), "now": value(score), "unit": unit_of(score.unit)}
        told |= {"was": said(found.original.scores.named(name).value, score.unit)}
        told |= {"must": f"{SIGN_WORDS[limit.sign]} {said(limit.bound, score.unit)}" if limit else ""}
        scores.append({**told, "met": limit is None or limit.holds(score)})
    return {"made": made, "tried": len(found.trials), "scores": scores}


def _axes(found: TrialResults, shown: Axes) -> Plain:
    """The scores that the map can show."""
    sides: dict[str, list[Plain]] = {"risk": [], "utility": []}
    for score in found.original.scores:
        chosen = score.name in (shown.risk.name, shown.utility.name)
        sides[str(score.side)].append({"name": score.name, "title": title(score.name), "chosen": chosen})
    return sides


def _tried(office: Office) -> TrialResults:
    """What the latest run has tried."""
    policy = office.need_file()
    run = office.runs.latest(work.RUN_KIND)
    if run is None or run.state != "done" or run.about["data"] != _about(policy)["data"]:
        raise DataError("Nothing has been tried yet: try the candidates first.")
    return results_of(run.id, run.result)


def _begun(office: Office) -> bool:
    """Whether the policy says what must hold."""
    return bool(with_preset(office.policy, office.workspace.folder).get("limits"))


def _about(policy: Mapping[str, Any]) -> Plain:
    """What trials depend on, as it is kept with a run."""
    found: Plain = json.loads(json.dumps({"data": {}, **work.fingerprint(policy)}, default=str))
    return found


def _stale(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What has changed since the trials."""
    if before.get("roles") != now.get("roles"):
        return "The roles or levels of columns were changed since these trials."
    return "" if before == now else "What is to be tried was changed since these trials."


def _numbers(texts: list[str]) -> list[float] | None:
    """The numbers as typed; None while one of them is not there yet."""
    try:
        found = [float(text) for text in texts]
    except ValueError:
        return None
    return found if all(isfinite(number) for number in found) else None


def _about_trial(office: Office, kind: str, at: int) -> Run | None:
    """The latest run about a trial of these trials."""
    run, tries = office.runs.latest(kind), office.runs.latest(work.RUN_KIND)
    same = run is not None and tries is not None and run.about == {"trial": at, "of": tries.id}
    return run if same else None


def _begin(office: Office, kind: str, doing: Any, at: int) -> Run:
    found = _tried(office)
    found.at(at)
    tries = office.runs.latest(work.RUN_KIND)
    assert tries is not None
    _end(office, kind)
    about = {"trial": at, "of": tries.id}
    return office.runs.start(kind, doing, office.workspace.folder, office.need_file(), found.masks[at], about=about)


def _end(office: Office, kind: str) -> None:
    """Stop a run about another trial, and wait a little for it."""
    for _ in range(WAITS):
        run = office.runs.latest(kind)
        if run is None or run.state != "running":
            return
        office.runs.stop(run.id)
        sleep(0.05)
