"""Policies for the Balance page: checked and explained, a first one proposed, and their candidates tried."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from equipoise.data.levels import ORIGINAL
from equipoise.data.roles import Roles
from equipoise.doors.web.full_paths import without_folders
from equipoise.doors.web.memory import Memory, frozen
from equipoise.doors.web.work.open_file import role_of
from equipoise.doors.web.work.revealing_columns import declarations, revealing_table
from equipoise.doors.web.work.trials import Plain, plain_scores, plain_trial
from equipoise.doors.web.workspace import Workspace
from equipoise.ground.errors import EquipoiseError
from equipoise.ground.progress import Progress, report
from equipoise.ground.whole_files import write_whole
from equipoise.inspection.assess import refuse_unfit
from equipoise.policies.changed_columns import changed_columns
from equipoise.policies.explain import explain
from equipoise.policies.first_policy import assumptions, proposed
from equipoise.policies.policy import REVEALING
from equipoise.policies.policy_file import Job
from equipoise.policies.sections import PolicyProblem
from equipoise.policies.toml_lines import place_text
from equipoise.releases.balance import RecordsCase, kept_journal
from equipoise.releases.plan import trials_of

UNREAD_PATH = "(not read here)"
"""Stands for the path of the data in a policy that is checked without reading it."""
ROLE_ORDER = ("key", "sensitive", "numeric", "domain", "household", "person", "weight", "sample", "none")
"""The order of roles in which columns are listed."""
TABLE_PROBLEM = "This policy makes a table, which is not tried here but under Tables."
POLICY_FILE = "policy.toml"
RUN_KIND = "balance"
Policy = Mapping[str, Any]


def job_of(policy: Policy, folder: Path) -> Job:
    """The policy as a job, with paths relative to the folder; no data is read. All problems are raised at once."""
    data = policy.get("data", {})
    job = Job.from_plain({**policy, "data": {**data, "path": UNREAD_PATH}}, folder / POLICY_FILE)
    return replace(job, data=replace(job.data, path=str(data["path"])))


def check(memory: Memory, folder: Path, policy: Policy) -> Plain:
    """The problems of a policy, each with its place; otherwise its explanation and the number of recipes and runs."""
    memory.raw(folder, policy["data"])
    return memory.once(("check", frozen(policy)), lambda: _check(memory, folder, policy))


def _check(memory: Memory, folder: Path, policy: Policy) -> Plain:
    problems: list[Plain] = []
    nothing: Plain = {"told": {}, "recipes": 0, "runs": 0, "warnings": []}
    if "table" in policy:
        return {"problems": [{"place": "table", "words": TABLE_PROBLEM}], **nothing}
    try:
        job = job_of(policy, folder)
    except EquipoiseError as error:
        return {
            "problems": [_problem(one) for one in error.problems]
            or [{"place": "", "words": without_folders(str(error))}],
            **nothing,
        }
    try:
        records = memory.records(folder, policy)
        refuse_unfit(records, keys_needed=False)
        problems = [_problem(one) for one in job.misfits(records)]
        columns = revealing_table(memory, folder, policy)
        explanation = explain(job, records, columns=columns).to_plain()
    except EquipoiseError as error:
        problems.append({"place": "", "words": without_folders(str(error))})
        explanation = {}
    counts = {"recipes": explanation.pop("recipes", 0), "runs": explanation.pop("runs", 0)}
    return {"problems": problems, **counts, "warnings": explanation.pop("warnings", []), "told": explanation}


def _problem(problem: PolicyProblem) -> Plain:
    return {"place": place_text(problem.place), "words": without_folders(problem.words)}


def columns(memory: Memory, folder: Path, policy: Policy) -> Plain:
    """The columns in the order of their roles, and the levels of those that have a hierarchy."""
    schema = memory.raw(folder, policy["data"]).schema()
    roles = Roles.from_plain(policy.get("roles", {}), folder)
    rows = [{"name": name, "role": role} for name in schema if (role := role_of(roles, name)) in ROLE_ORDER]
    levels = {name: [level.name for level in tree.allowed] for name, tree in roles.hierarchies.items()}
    return {
        "columns": sorted(rows, key=lambda row: ROLE_ORDER.index(row["role"])),
        "levels": {name: [one for one in its if one != ORIGINAL] for name, its in levels.items() if name in schema},
    }


def first_policy(memory: Memory, folder: Path, policy: Policy) -> Plain:
    """A first policy for these roles: its measures, limits, candidates, and the masks of all of them.

    Cost: a few times that of `RevealingColumns`.
    """
    records = memory.records(folder, policy)
    cells = memory.cells(folder, policy) if records.roles.keys else None
    return memory.once_for(policy, "first", lambda: {"always": None, **proposed(records, cells)})


def assumed(memory: Memory, folder: Path, policy: Policy) -> tuple[str, ...]:
    """What the roles assume, what they cannot know, and which decisions matter most."""
    return assumptions(memory.records(folder, policy))


def proposal_beside_keys(memory: Memory, folder: Path, policy: Policy) -> Plain:
    """The masks that are proposed for columns of which the policy says nothing, and the limit on what is left."""
    proposal, records = first_policy(memory, folder, policy), memory.records(folder, policy)
    silent = {row["column"] for row in declarations(memory, folder, policy)["rows"] if row["open"]}
    limits = {name: limit for name, limit in proposal["limits"].items() if name == REVEALING}
    return {"always": [m for m in proposal["always"] or () if silent & changed_columns(m, records)], "limits": limits}


def try_all(progress: Progress, folder: Path, policy: Policy) -> Plain:
    """Run and score the candidates of a policy in a separate process; trials in the journal are not repeated.

    The journal is kept: a stopped run continues from it, and the release starts from it.
    """
    report(progress, 0, 0, "reading the file")
    workspace = Workspace.at(folder)
    job = Job.from_plain(policy, folder / POLICY_FILE)
    case, place = RecordsCase(job, job.read()), workspace.journal
    report(progress, 0, 0, "looking for columns that single people out")
    journaled_job = replace(job, search=replace(job.search, journal=str(place)))
    with kept_journal(journaled_job, folder / RUN_KIND, case.records, case.masking_input) as journal:
        plan = case.plan(journal.seed)
        case.refuse_undeclared(plan)
        trials = trials_of(job, plan, journal, progress)
        text = place.read_text(encoding="utf-8")
    write_whole(place, text)
    original, nothing = plan.ends()
    return {
        "trials": [plain_trial(trial) for trial in trials],
        "original": plain_scores(original.scores),
        "nothing": plain_scores(nothing.scores) if nothing else None,
        "left_out": [{"name": recipe.name, "reason": recipe.reason} for recipe in trials.left_out],
        "records": case.masking_input.height(),
    }


def fingerprint(policy: Policy) -> Plain:
    """The sections of a policy that trials depend on: data, roles, candidates, measures, search and draws."""
    keys = (
        "data", "roles", "candidates", "always", "measures", "assume_unknown", "scenarios", "estimates", "draws",
        "search", "extends", "slots",
    )  # fmt: skip
    return {key: policy[key] for key in keys if key in policy}
