"""Balance and protect: from a file to a release."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from equipoise.data.records import Records
from equipoise.ground import system
from equipoise.ground.errors import Cancelled, EquipoiseError, ParameterError, RefusedError
from equipoise.ground.progress import Progress
from equipoise.inspection.assess import refuse_unfit, standard
from equipoise.inspection.direct_identifiers import without_direct
from equipoise.methods.method import Mask, Measure
from equipoise.policies.policy import Policy
from equipoise.policies.policy_file import Job
from equipoise.provenance.fingerprint import keyed_hash
from equipoise.provenance.journal import Journal, beside
from equipoise.provenance.seed_register import Register
from equipoise.recipe.recipe import Recipe
from equipoise.releases.refusal import refused_of
from equipoise.releases.release import Release, refuse_existing, release
from equipoise.releases.report_facts import Render, ends
from equipoise.search.adaptive_search import AdaptiveSearch
from equipoise.search.explain_choice import refusal
from equipoise.search.ranking import ahead_of, inside
from equipoise.search.recipe_space import Family, described, first_of, pooled
from equipoise.search.sweep import adaptively, all_of
from equipoise.trials.runner import Runner
from equipoise.trials.trial import Trial, Trials

Ends = Callable[[], tuple[Trial, Trial | None]]


def balance(
    policy: str | Path,
    *,
    render: Render,
    out: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Release:
    """The main job: read what a policy file names, try its candidates, choose the best inside the limits, release it.

    What was tried is written down as it goes, in a private journal beside the folder: a run that was stopped or killed
    goes on where it was, with the same seed, and ends in the same release.
    Raises `RefusedError` when no candidate meets the limits, naming the nearest and what each limit would have to be;
    its `about` is a `Refused`, with all that was tried.
    """
    path = Path(policy)
    job = Job.load(path)
    if job.table is not None:
        raise ParameterError("This policy makes a table: balance it with table_balance.balance_table.")
    folder = Path(out) if out is not None else job.target(path)
    tidy(folder)
    overwrite = overwrite or unsaid(folder, journal_of(job, folder))
    refuse_existing(folder, overwrite)
    records = job.read()
    kept = without_direct(records)
    refuse_unfit(kept, keys_needed=False)
    limits = job.policy()
    register = job.registered()
    with kept_journal(job, folder, records, kept, seed=register.seed(kept) if register else None) as journal:
        scales, trials = tried(job, kept, journal, progress)
        with remembered(job, trials, lambda: ends(kept, scales)):
            chosen = chosen_of(trials, limits)
            with hinted(chosen):
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
                    register=register,
                    sign=job.folder / job.output.sign if job.output.sign else None,
                    progress=progress,
                )


def tried(
    job: Job, records: Records, journal: Journal, progress: Progress | None = None
) -> tuple[tuple[Measure, ...], Trials]:
    """The measures of a job, and the trials of its candidates: all of them, or those an adaptive search asks for."""
    how, seed = job.search, journal.seed
    families: tuple[Family, ...] | None = None
    recipes: tuple[Recipe, ...] = ()
    if how.search == "adaptive":
        families = described(job.candidates, records, seed)
    if families is None:
        recipes = tuple(replace(recipe, seed=seed) for recipe in job.recipes(records))
        families = pooled(recipes, records) if how.search == "adaptive" else ()
    scales = job.scales() or standard(records, recipes[0] if recipes else first_of(families))
    with Runner(records, scales, journal=journal, processes=how.processes, progress=progress) as runner:
        if how.search == "grid":
            return scales, all_of(runner, recipes, job.draws)
        search = AdaptiveSearch(families, job.policy(), how.budget)
        return scales, adaptively(runner, search, draws=job.draws, policy=job.policy(), seconds=how.seconds)


def chosen_of(trials: Sequence[Trial], policy: Policy) -> Trial:
    """The trial to release; a refusal says what each limit would have to be."""
    found = ahead_of(trials, policy)
    if not inside(policy, found):
        raise RefusedError(refusal(trials, policy))
    return found


@contextmanager
def remembered(job: Job, trials: Trials, ends: Ends) -> Iterator[None]:
    """Where a release is refused, keep with the error what was tried, and the ends of its map."""
    try:
        yield
    except RefusedError as error:
        name, table = job.title or Path(job.data.path).name, job.table is not None
        error.about = refused_of(error, trials, job.policy(), title=name, ends=ends(), table=table)
        raise


@contextmanager
def hinted(chosen: Trial) -> Iterator[None]:
    """Where a fresh draw is refused of a recipe that was drawn once, say what would have shown it before."""
    try:
        yield
    except RefusedError as refused:
        if chosen.recipe.coarsens or len(chosen.draws) > 1 or not str(refused).startswith("Nothing was released"):
            raise
        told = RefusedError(
            f"{refused} The draw that was tried was inside the limits: set draws to 5 or more in the policy, so that a "
            "recipe is chosen whose draws stay inside."
        )
        told.about = refused.about
        raise told from None


@contextmanager
def kept_journal(
    job: Job, folder: Path, records: Records, kept: Records, *, seed: int | None = None, table: Any = None
) -> Iterator[Journal]:
    """The journal of a run: kept when the run is stopped or fails, gone when it ends in a release or a refusal.

    `seed` goes before that of the policy; `table` is what a table is made of beside the records.
    """
    place = journal_of(job, folder)
    depends = json.dumps(
        {
            "data": {f.name: getattr(job.data, f.name) for f in fields(job.data)},
            "roles": kept.roles.to_plain(),
            "measures": [repr(measure) for measure in job.scales()],
            "scenarios": [repr(scenario) for scenario in job.scenarios],
            **({"table": table} if table is not None else {}),
        },
        default=str,
        sort_keys=True,
    )
    journal = Journal.resume(place, partial(keyed_hash, records), depends, job.seed() if seed is None else seed)
    try:
        yield journal
    except Cancelled as stopped:
        told = str(stopped).replace(" Nothing was written.", "")
        raise Cancelled(f"{told} Nothing was released; what was tried is kept: run it again to go on.") from None
    except EquipoiseError as problem:
        if isinstance(problem, RefusedError) or not journal.known:
            journal.remove()
        raise
    journal.remove()


def journal_of(job: Job, folder: Path) -> Path:
    """Where the journal of a job is: as the policy says, or beside the release folder."""
    return job.folder / job.search.journal if job.search.journal else beside(folder)


def unsaid(folder: Path, journal: Path) -> bool:
    """Whether the release that stands there is this journal's own: its run was killed before it could say so.

    It has the seed of the journal and was written after the last trial. It is made again, the same.
    """
    try:
        with journal.open(encoding="utf-8") as lines:
            seed = json.loads(next(lines))["seed"]
        told = json.loads((folder / "private" / "seed.json").read_text(encoding="utf-8"))["seed"]
        after = (folder / "public" / "evidence.json").stat().st_mtime_ns >= journal.stat().st_mtime_ns
    except (OSError, ValueError, KeyError, TypeError, StopIteration):
        return False
    return bool(after and seed == told)


def tidy(folder: Path) -> None:
    """Clear away what a killed run left beside the folder: half-written stages, and an old release not yet replaced."""
    if not folder.parent.is_dir() or not beside(folder).is_file():
        return
    marked = re.compile(re.escape(f".{folder.name}.") + r"[0-9a-f]{8}\.(partial|old)")
    for left in [path for path in folder.parent.iterdir() if marked.fullmatch(path.name) and path.is_dir()]:
        if left.suffix == ".old" and not folder.exists():
            system.move(left, folder)
        else:
            system.remove_folder(left)


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
    sign: str | Path | None = None,
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
        sign=sign,
        progress=progress,
    )
