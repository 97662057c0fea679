"""Balance and protect: from a file to a release."""

from collections.abc import Iterable
from pathlib import Path

from equipoise.core.errors import ParameterError
from equipoise.core.method import Mask
from equipoise.core.progress import Progress
from equipoise.core.records import Records
from equipoise.flow.assess import refuse_unfit, standard
from equipoise.flow.identifiers import without_direct
from equipoise.flow.job import Job
from equipoise.flow.policy import Policy
from equipoise.flow.recipe import Recipe
from equipoise.flow.register import Register
from equipoise.flow.release import Release, refuse_existing, release
from equipoise.flow.report import Render
from equipoise.flow.sweep import sweep


def balance(
    policy: str | Path,
    *,
    render: Render,
    out: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Release:
    """The main job: read what a policy file names, try its candidates, choose the best inside the limits, release it.

    Raises `RefusedError` when no candidate meets the limits, naming the nearest.
    """
    path = Path(policy)
    job = Job.load(path)
    if job.table is not None:
        raise ParameterError("This policy makes a table: balance it with table_balance.balance_table.")
    folder = Path(out) if out is not None else job.target(path)
    refuse_existing(folder, overwrite)
    records = job.read()
    kept = without_direct(records)
    refuse_unfit(kept, keys_needed=False)
    limits = job.policy()
    tried = job.recipes(kept)
    scales = job.scales() or standard(kept, tried[0])
    trials = sweep(kept, tried, scales, draws=job.draws, progress=progress)
    chosen = limits.choose(trials)
    return release(
        records,
        chosen.recipe,
        limits,
        folder,
        render=render,
        format=job.output.format,
        overwrite=overwrite,
        trials=trials,
        measures=scales,
        title=job.title,
        policy_text=job.again(records).to_toml(),
        register=job.registered(),
        progress=progress,
    )


def protect(
    records: Records,
    masks: Iterable[Mask],
    out: str | Path,
    *,
    render: Render,
    policy: Policy | None = None,
    seed: int | None = None,
    format: str | None = None,
    overwrite: bool = False,
    register: str | Path | None = None,
    progress: Progress | None = None,
) -> Release:
    """Apply masks in order and release the result, with its risk and what it cost; limits are optional here."""
    return release(
        records,
        Recipe(tuple(masks), seed),
        policy or Policy(),
        out,
        render=render,
        format=format,
        overwrite=overwrite,
        register=Register(register) if register else None,
        progress=progress,
    )
