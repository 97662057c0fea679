"""Release without a folder: a protected frame of the kind that came in, for notebooks and pipelines."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.files import read
from equipoise.ground.errors import EquipoiseWarning, ParameterError
from equipoise.inspection.assess import refuse_unfit
from equipoise.inspection.direct_identifiers import refuse_identifiers, without_direct
from equipoise.inspection.revealing import enough_columns, revealing
from equipoise.inspection.suggest_roles import suggest_roles
from equipoise.masks import Noise
from equipoise.methods.method import Measure
from equipoise.methods.score import Scores
from equipoise.policies.checks import unattacked
from equipoise.policies.first_policy import proposed
from equipoise.policies.policy import Policy, Verdict, refused
from equipoise.policies.policy_file import Job, job_of
from equipoise.policies.revealed_columns import undeclared
from equipoise.policies.sections import Candidate, refusal
from equipoise.presentation.missing_both_ways import both_ways
from equipoise.presentation.notebook import balanced_html
from equipoise.presentation.numbers import listed
from equipoise.recipe.recipe import Recipe
from equipoise.releases.assumptions import assumptions
from equipoise.releases.evidence import RELEASE_DRAW
from equipoise.releases.release_order import ReleasedFrames, handed_out
from equipoise.search.frontier import Frontier, frontier
from equipoise.trials.trial import Trial


@dataclass(frozen=True)
class Balanced(ReleasedFrames):
    """A release in memory: the data in release order without ids, its trial, the verdict, and what it assumes.

    Nothing was written and no attack beyond the limits was tried: name a folder (`out`) for evidence and reports.
    """

    data: Records = field(repr=False)
    trial: Trial
    verdict: Verdict
    frontier: Frontier = field(repr=False)
    assumptions: tuple[str, ...] = ()

    def handed_out(self) -> Records:
        return self.data

    def _repr_html_(self) -> str:
        return balanced_html(self)


def balanced_in_memory(
    records: Records, recipe: Recipe, policy: Policy, *, measures: Sequence[Measure] = (), trials: Sequence[Trial] = ()
) -> Balanced:
    """Run a recipe, judge the released records themselves, and give them in an order drawn from the secret seed.

    As in a release folder, the id and the direct identifiers are withheld, and a column that looks like one is refused.
    """
    whole, records = records, without_direct(records)
    refuse_unfit(records, keys_needed=False)
    ids = (records.roles.id,) if records.roles.id else ()
    released = recipe.run(records, RELEASE_DRAW)
    refuse_identifiers(released, policy.allow, ids)
    before, after = records.held(), released.held()
    trial = Trial(recipe, Scores(both_ways(m, after, before) for m in tuple(measures) or policy.measures()))
    verdict = policy.judge(trial)
    if not verdict:
        raise refused(trial, verdict)
    columns = revealing(after, before)
    _warn_undeclared(columns, policy)
    same = [other for other in trials if other.scores.keys() == trial.scores.keys()]
    return Balanced(
        handed_out(released, (*ids, *whole.roles.direct), None if policy.keep_order else recipe.seed),
        trial, verdict, frontier(same or (trial,)), assumptions(after, policy, revealing=columns),
    )  # fmt: skip


def _warn_undeclared(columns: pl.DataFrame, policy: Policy) -> None:
    """Say which columns single people out and were taken to be unknown: there is no report to say it."""
    if names := enough_columns(undeclared(columns, policy)):
        warnings.warn(
            f"This assumes that nobody knows {listed(names)}: who does is led to few people. Mask these columns, or "
            "name them in Policy(assume_unknown=...).",
            EquipoiseWarning, stacklevel=6,
        )  # fmt: skip


def as_records(source: Any, roles: Roles | None) -> Records:
    """Records, or a frame (or file) with the roles of its columns."""
    if not isinstance(source, Records):
        return read(source, roles)
    return replace(source, roles=roles) if roles is not None else source


def job_of_frame(source: Any, policy: str | Path | Policy | None, roles: Roles | None) -> tuple[Job, Records]:
    """The job that a policy describes, and the frame as the data it is about."""
    if isinstance(policy, str | Path) and str(policy).endswith(".toml"):
        job = Job.load(policy)
        if job.table is not None:
            raise ParameterError("This policy releases a table: use eq.tabulate for a frame.")
        job = job if roles is None else replace(job, roles=roles.to_plain())
        records = as_records(source, roles or job.read_roles())
        return _fitting(job, records), records
    records = _with_proposed_roles(as_records(source, roles))
    preset = policy.extends if isinstance(policy, Policy) else policy
    sections = {"extends": str(preset)} if preset else proposed(without_direct(records))
    plain = {"data": {"path": "the original data"}, "roles": records.roles.to_plain(), **sections}
    job = Job.from_plain(plain, Path("policy.toml"))
    return (_limited(job, records, policy) if isinstance(policy, Policy) else job), records


def _limited(job: Job, records: Records, policy: Policy) -> Job:
    """A job under the limits of a policy, beside those of the preset that it extends.

    Masks that change values stay among the candidates where the limits are on an attack; else coarsenings are tried.
    """
    own = job_of(records, Recipe(), policy)
    coarsen = not job.extends and unattacked([Noise], policy.measures())
    limited = replace(
        job, limits={**(job.limits if job.extends else {}), **own.limits}, choose=own.choose, allow=own.allow,
        assume_unknown=own.assume_unknown, scenarios=own.scenarios, output=own.output,
        measures=job.measures if job.extends else ("entropy",),
        candidates=(Candidate(coarsenings=True),) if coarsen else job.candidates,
    )  # fmt: skip
    return _fitting(limited, records)


def _with_proposed_roles(records: Records) -> Records:
    """Records with proposed roles where none are given, and proposed hierarchies where keys have none."""
    suggested, roles = suggest_roles(records).roles, records.roles
    if not roles.named():
        return replace(records, roles=suggested)
    trees = {column: tree for column, tree in suggested.hierarchies.items() if column in roles.keys}
    return replace(records, roles=replace(roles, hierarchies={**trees, **roles.hierarchies}))


def _fitting(job: Job, records: Records) -> Job:
    """The job, refused where it does not fit the columns."""
    if problems := job.misfits(records):
        raise refusal(job.written.name, problems, job.written.lines)
    return job
