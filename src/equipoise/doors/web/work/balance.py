"""Balancing: a policy checked and told back, a first one to begin with, and its candidates tried."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from equipoise.data.levels import ORIGINAL
from equipoise.data.roles import Roles
from equipoise.doors.web.memory import Memory, frozen
from equipoise.doors.web.policy_file import journal_place
from equipoise.doors.web.work.open_file import role_of
from equipoise.doors.web.work.trials import Plain, plain_scores, plain_trial
from equipoise.doors.web.workspace import Workspace
from equipoise.ground.errors import EquipoiseError
from equipoise.ground.progress import Progress, report
from equipoise.inspection.assess import refuse_unfit
from equipoise.policies.explain import explain
from equipoise.policies.first_policy import proposed
from equipoise.policies.policy_file import Job
from equipoise.policies.sections import PolicyProblem
from equipoise.policies.toml_lines import place_text
from equipoise.releases.balance import RecordsCase, kept_journal
from equipoise.releases.plan import tried

NOWHERE = "(not read here)"
"""The path of data in a policy that is checked without reading it."""
ORDER = ("key", "sensitive", "numeric", "domain", "household", "weight", "sample", "none")
"""Columns are listed by role."""
TABLE = "This policy makes a table, which is not tried here but under Tables."
POLICY = "policy.toml"
KIND = "balance"
Policy = Mapping[str, Any]


def job_of(policy: Policy, folder: Path) -> Job:
    """The policy as a job, its paths seen from the folder; nothing is read. Every problem is listed at once."""
    data = policy.get("data", {})
    job = Job.from_plain({**policy, "data": {**data, "path": NOWHERE}}, folder / POLICY)
    return replace(job, data=replace(job.data, path=str(data["path"])))


def check(held: Memory, folder: Path, policy: Policy) -> Plain:
    """What is wrong with a policy, each problem with its place; else what it means, and how much there is to do."""
    held.raw(folder, policy["data"])
    return held.once(("check", frozen(policy)), lambda: _checked(held, folder, policy))


def _checked(held: Memory, folder: Path, policy: Policy) -> Plain:
    problems: list[Plain] = []
    nothing: Plain = {"told": {}, "recipes": 0, "runs": 0, "warnings": []}
    if "table" in policy:
        return {"problems": [{"place": "table", "words": TABLE}], **nothing}
    try:
        job = job_of(policy, folder)
    except EquipoiseError as error:
        return {
            "problems": [_problem(one) for one in error.problems] or [{"place": "", "words": str(error)}],
            **nothing,
        }
    try:
        records = held.records(folder, policy)
        refuse_unfit(records, keys_needed=False)
        problems = [_problem(one) for one in job.misfits(records)]
        told = explain(job, records).to_plain()
    except EquipoiseError as error:
        problems.append({"place": "", "words": str(error)})
        told = {}
    counts = {"recipes": told.pop("recipes", 0), "runs": told.pop("runs", 0)}
    return {"problems": problems, **counts, "warnings": told.pop("warnings", []), "told": told}


def _problem(problem: PolicyProblem) -> Plain:
    return {"place": place_text(problem.place), "words": problem.words}


def columns(held: Memory, folder: Path, policy: Policy) -> Plain:
    """The columns by role, those with roles first; the levels of each that has a hierarchy."""
    schema = held.raw(folder, policy["data"]).schema()
    roles = Roles.from_plain(policy.get("roles", {}), folder)
    rows = [{"name": name, "role": role_of(roles, name)} for name in schema]
    levels = {name: [level.name for level in tree.allowed] for name, tree in roles.hierarchies.items()}
    return {
        "columns": sorted((row for row in rows if row["role"] in ORDER), key=lambda row: ORDER.index(row["role"])),
        "levels": {name: [one for one in its if one != ORIGINAL] for name, its in levels.items() if name in schema},
    }


def first(held: Memory, folder: Path, policy: Policy) -> Plain:
    """What a first policy of these roles measures, limits and tries. Cost: O(cells)."""
    records = held.records(folder, policy)
    cells = held.cells(folder, policy) if records.roles.keys else None
    name = ("first", frozen(policy["data"]), frozen(policy.get("roles", {})))
    return held.once(name, lambda: proposed(records, cells))


# Trying ---------------------------------------------------------------------------------------------------------------


def try_all(progress: Progress, folder: Path, policy: Policy) -> Plain:
    """Try the candidates of a policy, in a process of their own; what a journal knows is not tried again.

    The journal stays: a run that was stopped goes on from it, and the release begins with it.
    """
    report(progress, 0, 0, "reading the file")
    workspace = Workspace.at(folder)
    job = Job.from_plain(policy, folder / POLICY)
    case, place = RecordsCase(job, job.read()), journal_place(workspace)
    journalled = replace(job, search=replace(job.search, journal=str(place)))
    with kept_journal(journalled, folder / KIND, case.records, case.kept) as journal:
        plan = case.plan(journal.seed)
        trials = tried(job, plan, journal, progress)
        text = place.read_text(encoding="utf-8")
    workspace.put(place, text)
    original, nothing = plan.ends()
    return {
        "trials": [plain_trial(trial) for trial in trials],
        "original": plain_scores(original.scores),
        "nothing": plain_scores(nothing.scores) if nothing else None,
        "left_out": [{"name": left.name, "reason": left.reason} for left in trials.left_out],
        "records": case.kept.height(),
    }


def fingerprint(policy: Policy) -> Plain:
    """What trials depend on: the file and its columns, what is tried, and how it is measured beside the limits."""
    keys = ("data", "roles", "candidates", "measures", "scenarios", "draws", "search", "extends", "slots")
    return {key: policy[key] for key in keys if key in policy}
