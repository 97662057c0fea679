"""Balance page: run the candidates, show the risk-utility map, move limits on it and inspect trials."""

import json
from collections.abc import Mapping
from math import isfinite
from time import sleep
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse

from equipoise.data.roles import Roles
from equipoise.doors.report.page_parts import bound_words, with_error
from equipoise.doors.web.app_state import Here, Office
from equipoise.doors.web.background_runs import Run
from equipoise.doors.web.pages.balance_settings import shown_settings
from equipoise.doors.web.pages.open_file import with_policy
from equipoise.doors.web.render import page, part
from equipoise.doors.web.work import balance as work
from equipoise.doors.web.work import revealing_columns, trial_preview, trials
from equipoise.doors.web.work.limits import slots, with_bounds, with_preset
from equipoise.doors.web.work.trials import Plain, PolicyChoice, TrialResults
from equipoise.ground.errors import DataError, EquipoiseError, ParameterError
from equipoise.policies.limits import SIGN_WORDS
from equipoise.policies.policy import Policy, scored
from equipoise.presentation.numbers import is_share, title, value_text
from equipoise.search.explain_choice import Choice
from equipoise.search.risk_utility_map import Axes
from equipoise.trials.trial import Trial

router = APIRouter()
MAX_RECORDS_AT_ONCE = 200_000
"""Records up to which a recipe is applied while the page waits; above, in a run with progress."""
MAX_STOP_CHECKS = 40
"""Checks, every 0.05 s, whether a run about another trial has stopped."""
MAX_FIRM_TRIALS = 2000
"""Trials up to which the stability of the choice is computed."""
Bounds = Annotated[list[Annotated[str, Query(max_length=40)]], Query(max_length=100)]
Name = Annotated[str, Query(max_length=1000)]
Place = Annotated[int, Query(ge=0, le=1_000_000)]
Pinned = Annotated[str, Query(max_length=8, pattern=r"^\d*$")]


@router.get("/balance", response_class=HTMLResponse)
def show(request: Request, office: Here, risk: Name = "", utility: Name = "") -> HTMLResponse:
    """The page: trials and choice, then the settings."""
    if not office.opened:
        return page(request, "unopened.html", "balance", heading="Balance")
    facts = {**_stage(office, risk, utility), **shown_settings(office)}
    return page(request, "balance.html", "balance", **facts)


@router.get("/balance/stage", response_class=HTMLResponse)
def stage(request: Request, office: Here, risk: Name = "", utility: Name = "") -> HTMLResponse:
    """The progress of the trials; the map when they are done."""
    return part(request, "balance_stage.html", **_stage(office, risk, utility))


@router.post("/balance/try", response_class=HTMLResponse)
def start(request: Request, office: Here) -> HTMLResponse:
    """Run the candidates; trials made before are not repeated."""
    policy = office.need_file()
    check = office.ask(work.check)
    if check["problems"]:
        problems = tuple(f"{one['place']} {one['words']}".strip() for one in check["problems"])
        alone = f": {problems[0]}" if len(problems) == 1 else "."
        error = ParameterError(f"The policy is not ready to be tried{alone}")
        error.problems = problems
        raise error
    office.runs.start(work.RUN_KIND, work.try_all, office.workspace.folder, policy, about=_run_inputs(policy))
    return _quiet(part(request, "balance_stage.html", **_stage(office)))


@router.post("/balance/stop", response_class=HTMLResponse)
def stop(request: Request, office: Here) -> HTMLResponse:
    """Stop the run; trials made so far are kept."""
    office.runs.stop_latest(work.RUN_KIND)
    return _quiet(part(request, "balance_stage.html", **_stage(office)))


@router.get("/balance/choice", response_class=HTMLResponse)
def choose(request: Request, office: Here, bounds: Bounds, risk: Name = "", utility: Name = "") -> HTMLResponse:
    """The choice under moved limits; the policy is not changed."""
    values = _numbers(bounds)
    if values is None:
        return HTMLResponse(status_code=204)
    results, plain = _latest_results(office), office.need_file()
    folder = office.workspace.folder
    limits = with_bounds(plain, folder, values)
    before, after = trials.policy_of(plain, folder), trials.policy_of({**plain, "limits": limits}, folder)
    choice, was = trials.policy_choice(results, after), trials.policy_choice(results, before)
    axes = trials.axes_of_map(results, before, risk, utility) if trials.has_map(results) else None
    rows = trials.limit_rows(trials.map_spec(results, after, choice, axes)) if axes else {}
    facts = {**_choice_facts(results, after, choice, axes), "steps": _steps(office, choice.trial)}
    changed = limits != plain.get("limits", {})
    return part(request, "balance_choice.html", **facts, rows=rows, changed=changed, was=was)


@router.post("/balance/limits", response_class=HTMLResponse)
def keep_limits(
    request: Request, office: Here, bounds: Annotated[list[Annotated[str, Form(max_length=40)]], Form(max_length=100)]
) -> HTMLResponse:
    """Save the moved limits in the policy."""
    values = _numbers(bounds)
    if values is None:
        raise ParameterError("A limit is a number.")
    limits = with_bounds(office.need_file(), office.workspace.folder, values)
    office.edit(request, "Moved the limits", "balance", lambda draft: with_policy(draft, limits=limits))
    return part(request, "balance_setup.html", **shown_settings(office))


@router.get("/balance/why", response_class=HTMLResponse)
def why(request: Request, office: Here) -> HTMLResponse:
    """The reasons of the choice, its alternatives, and how stable it is."""
    results = _latest_results(office)
    policy = trials.policy_of(office.need_file(), office.workspace.folder)
    choice = Choice(results.trials, policy)
    firm = [shift.words() for shift in choice.shifts] if len(results.trials) <= MAX_FIRM_TRIALS and choice.trial else []
    return part(
        request, "balance_why.html", chosen=choice.trial is not None, shifts=firm,
        words=[margin.words() for margin in choice.margins], steps=[step.words() for step in choice.steps],
        refused=[(limit.words(), every, alone) for limit, every, alone in choice.refused],
    )  # fmt: skip


@router.get("/balance/left", response_class=HTMLResponse)
def left_out(request: Request, office: Here) -> HTMLResponse:
    """The recipes that could not be applied to this data, with the reasons, which may name a cell."""
    return part(request, "balance_left.html", left=_latest_results(office).left_out)


@router.get("/balance/trial", response_class=HTMLResponse)
def trial(request: Request, office: Here, at: Place, pinned: Pinned = "") -> HTMLResponse:
    """A trial: its scores compared with the original, the choice and a pinned trial."""
    results = _latest_results(office)
    policy = trials.policy_of(office.need_file(), office.workspace.folder)
    facts = trials.trial_facts(
        results, policy, trials.policy_choice(results, policy), at, int(pinned) if pinned else None
    )
    return part(request, "balance_trial.html", trial=facts)


@router.get("/balance/trial/look", response_class=HTMLResponse)
def look(request: Request, office: Here, at: Place) -> HTMLResponse:
    """The effect of a trial on each variable; for a large file only on request."""
    results = _latest_results(office)
    results.at(at)
    if results.records <= MAX_RECORDS_AT_ONCE:
        preview = office.ask(trial_preview.look, results.masks[at])
        return part(request, "balance_look.html", at=at, look=preview, run=None)
    run = _trial_run(office, "look", at)
    return part(request, "balance_look.html", at=at, look=run.result if run and run.state == "done" else None, run=run)


@router.post("/balance/trial/look", response_class=HTMLResponse)
def look_long(request: Request, office: Here, at: Annotated[int, Form(ge=0, le=1_000_000)]) -> HTMLResponse:
    """Start a run that computes the effect of a trial on each variable."""
    run = _start_run(office, "look", trial_preview.look_long, at)
    return _quiet(part(request, "balance_look.html", at=at, look=None, run=run))


@router.get("/balance/trial/attack", response_class=HTMLResponse)
def attacks(request: Request, office: Here, at: Place) -> HTMLResponse:
    """The progress of the attacks on a trial, or their results."""
    return part(request, "balance_attack.html", at=at, run=_trial_run(office, "try to break", at))


@router.post("/balance/trial/attack", response_class=HTMLResponse)
def attack(request: Request, office: Here, at: Annotated[int, Form(ge=0, le=1_000_000)]) -> HTMLResponse:
    """Start the attacks on one draw of a trial."""
    run = _start_run(office, "try to break", trial_preview.attack_long, at)
    return _quiet(part(request, "balance_attack.html", at=at, run=run))


@router.post("/balance/trial/use", response_class=HTMLResponse)
def use(request: Request, office: Here, at: Annotated[int, Form(ge=0, le=1_000_000)]) -> HTMLResponse:
    """Make a trial the only candidate."""
    results = _latest_results(office)
    masks = list(results.masks[results.places[id(results.at(at))]])
    if not masks:
        raise ParameterError("This is the file as it is: there is no step to keep.")
    words = f"Only candidate: {results.at(at).words()}"
    office.edit(
        request,
        words,
        "balance",
        lambda draft: with_policy(draft, candidates=[{"masks": masks}], always=None, search=None),
    )
    return part(request, "balance_setup.html", **shown_settings(office))


def _quiet(response: HTMLResponse) -> HTMLResponse:
    """The response without the trigger that redraws other parts: no step was taken."""
    if "HX-Trigger" in response.headers:
        del response.headers["HX-Trigger"]
    return response


def _stage(office: Office, risk: str = "", utility: str = "") -> dict[str, Any]:
    """Facts for the page: the trials and the choice, or what is still to run."""
    policy = office.need_file()
    run = office.runs.latest(work.RUN_KIND)
    checked = office.ask(work.check)
    limited = bool(with_preset(policy, office.workspace.folder).get("limits"))
    facts: dict[str, Any] = {"run": run, "checked": checked, "bare": not limited, "map": None, "aside": ""}
    facts |= {"made": None, "stale": "", "keyed": bool(policy.get("roles", {}).get("keys")), "assumed": ()}
    if run is None or run.about["data"] != _run_inputs(policy)["data"]:
        ready = limited and not checked["problems"] and "extends" not in policy
        return {**facts, "run": None, "assumed": office.ask(work.assumed) if ready else ()}
    if run.state != "done":
        settled = run.refused and not office.ask(revealing_columns.declarations)["open"]
        return {**facts, "run": None} if settled else facts
    results = trials.results_of(run.id, run.result)
    facts |= {"stale": _stale_note(run.about, _run_inputs(policy)), "left": len(results.left_out)}
    try:
        choice = trials.policy_choice(results, limits := trials.policy_of(policy, office.workspace.folder))
    except EquipoiseError as error:
        return {**facts, "aside": str(error)}
    bounds = slots(policy, office.workspace.folder)
    axes = trials.axes_of_map(results, limits, risk, utility) if trials.has_map(results) else None
    facts |= {**_choice_facts(results, limits, choice, axes), "rows": {}, "changed": False, "was": choice}
    facts["steps"] = _steps(office, choice.trial)
    facts["moves"] = [] if choice.accepted else _moves(results, limits)
    facts["slots"] = [slot.to_plain(place) for place, slot in enumerate(bounds)]
    if axes is None:
        return {**facts, "aside": "There is no map: measure a risk and a use, such as uniques and entropy."}
    spec = trials.map_spec(results, limits, choice, axes)
    return {
        **facts,
        "map": spec,
        "handles": trials.handles(bounds, results, axes),
        "axes": _axis_options(results, axes),
        "table": trials.table(results, limits, axes, choice),
        "ends": [end.words() for end in (results.original, results.nothing) if end is not None],
    }


def _choice_facts(results: TrialResults, policy: Policy, choice: PolicyChoice, axes: Axes | None) -> Plain:
    """Facts about the choice: its scores compared with the original's, and the limits."""
    limited = {scored(choice.trial, limit).name: limit for limit in policy.parsed}
    names = dict.fromkeys([*limited, *((axes.risk.name, axes.utility.name) if axes else ())])
    scores = []
    for name in names:
        score, limit = choice.trial.scores.named(name), limited.get(name)
        row = {"title": title(name), "now": with_error(score), "unit": trials.unit_of(score.unit)}
        row |= {"was": value_text(results.original.scores.named(name).value, score.unit)}
        row |= {"must": bound_words(limit, score) if limit else ""}
        scores.append({**row, "met": limit is None or limit.holds(score)})
    return {"made": choice, "tried": len(results.trials), "scores": scores}


def _moves(results: TrialResults, policy: Policy) -> list[Plain]:
    """Each limit that alone refuses a trial: what it asks, what it would have to ask, and which trial would pass."""
    return [
        {
            "title": title((score := scored(move.trial, move.limit)).name),
            "must": bound_words(move.limit, score),
            "to": SIGN_WORDS[move.to.sign],
            "bound": f"{100 * move.to.bound:.6g} %" if is_share(score.unit) else f"{move.to.bound:g}",
            "at": results.places[id(move.trial)],
        }
        for move in Choice(results.trials, policy).moves
    ]


def _steps(office: Office, trial: Trial) -> list[str]:
    roles = Roles.from_plain(office.need_file().get("roles", {}), office.workspace.folder)
    return trials.steps(trial, roles.hierarchies) or ["nothing: the file as it is"]


def _axis_options(results: TrialResults, axes: Axes) -> Plain:
    """The scores that the map can show on each axis."""
    sides: dict[str, list[Plain]] = {"risk": [], "utility": []}
    for score in results.original.scores:
        chosen = score.name in (axes.risk.name, axes.utility.name)
        sides[str(score.side)].append({"name": score.name, "title": title(score.name), "chosen": chosen})
    return sides


def _latest_results(office: Office) -> TrialResults:
    """The results of the latest run; refused where there are none for this file."""
    policy = office.need_file()
    run = office.runs.latest(work.RUN_KIND)
    if run is None or run.state != "done" or run.about["data"] != _run_inputs(policy)["data"]:
        raise DataError("Nothing has been tried yet: try the candidates first.")
    return trials.results_of(run.id, run.result)


def _run_inputs(policy: Mapping[str, Any]) -> Plain:
    """The parts of the policy that trials depend on, stored with a run."""
    return json.loads(json.dumps({"data": {}, **work.fingerprint(policy)}, default=str))


def _stale_note(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """A note on what has changed since the trials."""
    if before.get("roles") != now.get("roles"):
        return "The roles or levels of columns were changed since these trials."
    return "" if before == now else "What is to be tried was changed since these trials."


def _numbers(texts: list[str]) -> list[float] | None:
    """The typed numbers; None while one of them is incomplete."""
    try:
        numbers = [float(text) for text in texts]
    except ValueError:
        return None
    return numbers if all(isfinite(number) for number in numbers) else None


def _trial_run(office: Office, kind: str, at: int) -> Run | None:
    """The latest run about this trial of the current results."""
    run, tries = office.runs.latest(kind), office.runs.latest(work.RUN_KIND)
    same = run is not None and tries is not None and run.about == {"trial": at, "of": tries.id}
    return run if same else None


def _start_run(office: Office, kind: str, task: Any, at: int) -> Run:
    results = _latest_results(office)
    results.at(at)
    tries = office.runs.latest(work.RUN_KIND)
    assert tries is not None
    _stop_run(office, kind)
    about = {"trial": at, "of": tries.id}
    return office.runs.start(kind, task, office.workspace.folder, office.need_file(), results.masks[at], about=about)


def _stop_run(office: Office, kind: str) -> None:
    """Stop a run about another trial, and wait briefly until it has stopped."""
    for _ in range(MAX_STOP_CHECKS):
        run = office.runs.latest(kind)
        if run is None or run.state != "running":
            return
        office.runs.stop(run.id)
        sleep(0.05)
