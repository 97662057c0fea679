"""Balance and protect: from a file to a release, of records or of a table."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.files import FORMATS, CsvFormulas, csv_formulas
from equipoise.files.memory import refuse_work
from equipoise.ground import system
from equipoise.ground.errors import Cancelled, EquipoiseError, ParameterError, RefusedError
from equipoise.ground.options import option, with_options
from equipoise.ground.progress import Progress
from equipoise.ground.randomness import new_seed
from equipoise.ground.whole_files import held, refuse_inside, refuse_page, watching, write_whole
from equipoise.inspection.assess import refuse_unfit, standard
from equipoise.inspection.direct_identifiers import without_direct
from equipoise.inspection.revealing import revealing, without
from equipoise.methods.method import Mask
from equipoise.policies.policy import Policy
from equipoise.policies.policy_file import Job
from equipoise.policies.revealed_columns import refuse_undeclared
from equipoise.presentation.pages import page
from equipoise.provenance.fingerprint import keyed_hash
from equipoise.provenance.journal import Journal, beside
from equipoise.provenance.seed_register import Register
from equipoise.recipe.recipe import Recipe
from equipoise.releases.in_memory import Balanced, as_records, balanced_in_memory, job_of_frame
from equipoise.releases.plan import Ends, Plan, candidates_of, chosen_of, trials_of
from equipoise.releases.refusal import Refused, refused_of
from equipoise.releases.release import Release, release
from equipoise.releases.release_folder import refuse_existing
from equipoise.releases.report_facts import ends
from equipoise.releases.table_release import TableCase, TableRelease
from equipoise.search.recipe_space import first_of
from equipoise.trials.table_scorer import drawn_once
from equipoise.trials.trial import Trial, Trials


@dataclass(frozen=True)
class BalanceOptions:
    """Options of `balance` beside the policy."""

    out: str | Path | None = option(
        None, "The release folder, when not as the policy says (beside it, by default).", cli="path", metavar="DIR"
    )
    report: str | Path | None = option(
        None, "A page to write, for internal use, also when the policy refuses.", cli="path", metavar="REPORT.html"
    )
    overwrite: bool = option(False, "Replace what an earlier run wrote there.", cli="switch")
    roles: Roles | None = option(None, "The roles of a frame's columns, where the policy does not say them.")
    progress: Progress | None = option(None, "Called with (done, total, what); returning False stops.")


@with_options(BalanceOptions)
def balance(
    source: Any = None, policy: str | Path | Policy | None = None, *, options: BalanceOptions
) -> Release | TableRelease | Any:
    """The main job: read what a policy file names, try its candidates, choose the best inside limits, release it.

    `eq.balance("policy.toml")` reads the data that the policy names. `eq.balance(frame, policy=...)` takes a frame (or
    Records) in its place; the policy is a file, the name of a preset, a `Policy` of limits whose candidates are
    proposed, or proposed as by `eq.init` when not given. Of a frame nothing is written without `out`: the result is in
    memory, a `Balanced` with `to_native`, `to_pandas` and `to_polars`.

    A policy with a [table] section releases a table. `report` is a page to write, an internal one, also when the policy
    refuses: then `RefusedError` is raised, naming the nearest and what each limit would have to be; its `about` is a
    `Refused`, with all that was tried, and there is no release folder.

    What was tried is written down as it goes, in a private journal beside the folder: a run that was stopped or killed
    goes on where it was, with the same seed, and ends in the same release.
    """
    if source is None and policy is None:
        raise ParameterError("Give a policy file, or a frame and its policy.")
    if (policy is not None and source is not None) or not isinstance(source, str | Path | None):
        return _frame_balanced(source, policy, options)
    path, report = Path(str(policy or source)), Path(options.report) if options.report is not None else None
    job = Job.load(path)
    folder = Path(options.out) if options.out is not None else job.target(path)
    if report is not None:
        refuse_page(report, options.overwrite, reads=(path, job.folder / job.data.path))
        refuse_inside(report, folder)
    with refusal_on(report) if report is not None else nullcontext():
        result = balanced(job, folder, overwrite=options.overwrite, progress=options.progress)
    if report is not None:
        write_whole(report, result.report.read_text(encoding="utf-8"))
    return result


def _frame_balanced(source: Any, policy: str | Path | Policy | None, options: BalanceOptions) -> Release | Balanced:
    """The best release of a frame: in a folder where one is named, else in memory."""
    job, records = job_of_frame(source, policy, options.roles)
    if options.out is not None:
        folder = Path(options.out)
        with held(folder):
            overwrite = options.overwrite or unsaid(folder, journal_of(job, folder))
            return cast(Release, _balanced(job, folder, overwrite, options.progress, records))
    if options.report is not None:
        raise ParameterError("A page stands beside a release folder: name it with out.")
    case = RecordsCase(job, records)
    plan = case.plan(new_seed())
    case.refuse_undeclared(plan)
    trials = trials_of(job, plan, None, options.progress)
    with remembered(job, trials, plan.ends):
        chosen = chosen_of(trials, job.policy())
        with hinted(chosen):
            return balanced_in_memory(records, chosen.recipe, job.policy(), measures=plan.measures, trials=trials)


def balanced(
    job: Job, folder: Path, *, overwrite: bool = False, progress: Progress | None = None
) -> Release | TableRelease:
    """The best that a policy asks for, searched, chosen and released in a folder."""
    with held(folder):
        return _balanced(job, folder, overwrite or unsaid(folder, journal_of(job, folder)), progress)


def _balanced(
    job: Job, folder: Path, overwrite: bool, progress: Progress | None, records: Records | None = None
) -> Release | TableRelease:
    refuse_existing(folder, overwrite, job.folder / job.data.path if records is None else None)
    records = job.read() if records is None else records
    case = TableCase(job, records) if job.table is not None else RecordsCase(job, records)
    refuse_work(case.records, "release" if job.table is None else "tabulate")
    with kept_journal(job, folder, case.records, case.masking_input, seed=case.seed, table=case.depends) as journal:
        plan = case.plan(journal.seed)
        if isinstance(case, RecordsCase):
            case.refuse_undeclared(plan)
        trials = trials_of(job, plan, journal, progress)
        with remembered(job, trials, plan.ends):
            chosen = chosen_of(trials, job.policy())
            with hinted(chosen):
                return case.release(
                    plan, trials, chosen, seed=journal.seed, folder=folder, overwrite=overwrite, progress=progress
                )


@dataclass(frozen=True)
class RecordsCase:
    """A policy that releases these records."""

    job: Job
    records: Records
    depends: None = None

    @cached_property
    def masking_input(self) -> Records:
        """The records without direct identifiers, as masks see them."""
        masking_input = without_direct(self.records)
        refuse_unfit(masking_input, keys_needed=False)
        return masking_input

    @property
    def seed(self) -> int | None:
        """The seed of the register, which goes before that of the policy."""
        register = self.job.registered()
        return register.seed(self.masking_input, register.view(self.records)) if register else None

    def plan(self, seed: int) -> Plan:
        job, records = self.job, self.masking_input.held()
        recipes, families = candidates_of(job, records, seed)
        measures = job.scales() or standard(records, recipes[0] if recipes else first_of(families))
        return Plan(records, measures, recipes, families, partial(ends, records, measures))

    def refuse_undeclared(self, plan: Plan) -> None:
        """Refuse before anything is tried, where a column that no candidate changes singles people out."""
        untouched = without(revealing(self.masking_input, self.masking_input), self.job.touched(self.records))
        try:
            refuse_undeclared(untouched, self.job.policy())
        except RefusedError as error:
            original = plan.ends()[0]
            with remembered(self.job, Trials((original,)), plan.ends):
                error.about = original
                raise

    def release(
        self, plan: Plan, trials: Trials, chosen: Trial, *, seed: int, folder: Path, overwrite: bool,
        progress: Progress | None = None,
    ) -> Release:  # fmt: skip
        """Release a fresh draw of the chosen trial."""
        job = self.job
        return release(
            self.records, chosen.recipe, job.policy(), folder, format=job.output.format, overwrite=overwrite,
            trials=trials, measures=plan.measures, title=job.title, policy_text=job.again(self.records).to_toml(),
            register=job.registered(), sign=job.folder / job.output.sign if job.output.sign else None,
            progress=progress,
        )  # fmt: skip


@contextmanager
def refusal_on(report: Path) -> Iterator[None]:
    """Where a policy refuses, say it on a page as well."""
    try:
        yield
    except RefusedError as refused:
        if not isinstance(refused.about, Refused):
            raise
        write_whole(report, page(refused.about))
        error = RefusedError(f"{refused} Everything that was tried stands in {str(report)!r}.")
        error.about = refused.about
        raise error from None


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
        if drawn_once(chosen.recipe) or len(chosen.draws) > 1 or not isinstance(refused.about, Trial):
            raise
        error = RefusedError(
            f"{refused} The draw that was tried was inside the limits: set draws to 5 or more in the policy, so that a "
            "recipe is chosen whose draws stay inside."
        )
        error.about = refused.about
        raise error from None


@contextmanager
def kept_journal(
    job: Job, folder: Path, records: Records, masking_input: Records, *, seed: int | None = None, table: Any = None
) -> Iterator[Journal]:
    """The journal of a run: kept when the run is stopped or fails, gone when it ends in a release or a refusal.

    `seed` goes before that of the policy; `table` is what a table is made of beside the records.
    """
    place = journal_of(job, folder)
    depends = json.dumps(
        {
            "data": {f.name: getattr(job.data, f.name) for f in fields(job.data)},
            "roles": masking_input.roles.to_plain(),
            "measures": [repr(measure) for measure in job.scales()],
            "scenarios": [repr(scenario) for scenario in job.scenarios],
            **({"table": table} if table is not None else {}),
        },
        default=str,
        sort_keys=True,
    )
    journal = Journal.resume(place, partial(keyed_hash, records), depends, job.seed() if seed is None else seed)
    try:
        with watching() as standing:
            yield journal
        journal.remove()
    except (EquipoiseError, KeyboardInterrupt) as problem:
        if standing:
            journal.remove()
            raise
        if isinstance(problem, RefusedError) or not journal.known:
            journal.remove()
            raise
        advice = f"What was tried is kept in {str(place)!r}: run it again to go on."
        if not isinstance(problem, Cancelled | KeyboardInterrupt):
            problem.add_note(advice)
            raise
        reason = str(problem).replace(" Nothing was written.", "") or "Stopped."
        raise Cancelled(f"{reason} Nothing was released. {advice}") from None
    except BaseException as problem:
        problem.add_note(f"What was tried is kept in {str(place)!r}.")
        raise


def journal_of(job: Job, folder: Path) -> Path:
    """Where the journal of a job is: as the policy says, or beside the release folder."""
    return job.folder / job.search.journal if job.search.journal else beside(folder)


def unsaid(folder: Path, journal: Path) -> bool:
    """Whether the release that stands there is this journal's own: its run was killed before it could say so.

    It has the seed of the journal and was written after the last trial. It is made again, the same.
    """
    try:
        with system.stored(journal).open(encoding="utf-8") as lines:
            seed = json.loads(next(lines))["seed"]
        secret = json.loads((folder / "private" / "seed.json").read_text(encoding="utf-8"))["seed"]
        after = (folder / "public" / "evidence.json").stat().st_mtime_ns >= journal.stat().st_mtime_ns
    except (OSError, ValueError, KeyError, TypeError, StopIteration):
        return False
    return bool(after and seed == secret)


@dataclass(frozen=True)
class ProtectOptions:
    """Options of `protect` beside the records, the masks and the folder."""

    policy: Policy | None = option(None, "Limits that must hold, or nothing is released.")
    roles: Roles | None = option(None, "The roles of a frame's columns.")
    seed: int | None = option(None, "The secret seed of random masks; drawn from the system without it.")
    format: str | None = option(
        None, f"{', '.join(FORMATS)}: that of the input when not given.", cli="text", metavar="NAME"
    )
    overwrite: bool = option(False, "Replace what an earlier run wrote there.", cli="switch")
    keep_order: bool = option(False, "Leave the records in their order: the reports say so.", cli="switch")
    csv_formulas: CsvFormulas = csv_formulas()
    register: str | Path | None = option(
        None, "The private file of earlier releases: this one is audited together with those of the same people, "
        "draws as they did, and is kept there.", cli="path", metavar="FILE",
    )  # fmt: skip
    asset: str | None = option(
        None, "The name of the data in the register; without it its people tell which releases are of the same data.",
        cli="text", metavar="NAME",
    )  # fmt: skip
    sign: str | Path | None = option(
        None, "Sign the evidence with this private Ed25519 key (PEM).", cli="path", metavar="KEY.pem"
    )
    progress: Progress | None = option(None, "Called with (done, total, what) while the release is attacked.")


@with_options(ProtectOptions)
def protect(
    records: Any, masks: Iterable[Mask], out: str | Path | None = None, *, options: ProtectOptions
) -> Release | Any:
    """Apply masks in order and release the result, with its risk and what it cost; limits are optional here.

    Records or a frame come in. With a folder (`out`) the release is attacked and written with its evidence. Without one
    a frame of the kind that came in is given back: ids and direct identifiers withheld, limits judged, records in a
    secret order with a fresh index, so that it cannot be put beside the input by mistake (`keep_order=True` leaves them
    in theirs). A warning names columns that single people out and of which the policy says nothing.

    `register` is the private file of earlier releases: this one is audited together with those of the same people (or
    of the same `asset`, where it has a name), takes their draw, and is kept there. `sign` is a private Ed25519 key
    (PEM) that signs the evidence.

    >>> import equipoise as eq, polars as pl
    >>> table = pl.DataFrame({"person": [1, 2, 3, 4], "age": [31, 33, 47, 48]})
    >>> roles = eq.Roles(["age"], id="person", hierarchies={"age": eq.Hierarchy.intervals([10])})
    >>> sorted(protect(table, [eq.masks.Recode("age", 1)], roles=roles)["age"])
    ['30-39', '30-39', '40-49', '40-49']
    """
    data = as_records(records, options.roles)
    policy = options.policy or Policy()
    policy = replace(policy, keep_order=True) if options.keep_order else policy
    policy = replace(policy, csv_formulas=options.csv_formulas) if options.csv_formulas != "escape" else policy
    recipe = Recipe(tuple(masks), options.seed)
    if out is None:
        _refuse_folder_options(options)
        return balanced_in_memory(data, recipe, policy).to_native()
    with held(Path(out)):
        return release(
            data, recipe, policy, out, format=options.format,
            overwrite=options.overwrite,
            register=Register(options.register, options.asset) if options.register else None,
            sign=options.sign, progress=options.progress,
        )  # fmt: skip


def _refuse_folder_options(options: ProtectOptions) -> None:
    """Refuse options that only a release folder can keep."""
    for name in ("format", "overwrite", "register", "asset", "sign"):
        if getattr(options, name):
            raise ParameterError(f"{name} is of a release folder: name the folder with out.")
