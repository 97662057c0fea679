"""Release of records: run, measure again, judge, and write the folder whole or not at all."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from equipoise.data import engines
from equipoise.data.records import Records
from equipoise.files import FORMATS, becomes, save, with_codes, without_formulas
from equipoise.files.memory import refuse_work
from equipoise.ground import system
from equipoise.ground.errors import EquipoiseError, ParameterError, RefusedError
from equipoise.ground.progress import Progress
from equipoise.inspection.assess import profile, refuse_unfit, standard
from equipoise.inspection.direct_identifiers import refuse_identifiers, without_direct
from equipoise.inspection.revealing import enough_columns, revealing
from equipoise.intrusion.attack import try_out
from equipoise.methods.method import Measure
from equipoise.methods.score import Scores
from equipoise.policies.policy import Policy, Verdict, refused
from equipoise.policies.policy_file import job_of
from equipoise.policies.revealed_columns import refuse_undeclared, undeclared
from equipoise.presentation.missing_both_ways import both_ways
from equipoise.presentation.notebook import release_html
from equipoise.presentation.pages import page
from equipoise.provenance.recipe_file import RECIPE, SCRIPT, SCRIPT_NAME, recipe_text
from equipoise.provenance.seed_register import Register
from equipoise.recipe.recipe import Recipe
from equipoise.releases.assumptions import assumptions, shortcomings
from equipoise.releases.codebook import codebook
from equipoise.releases.earlier_releases import JointView, alone_with, audit, facts_of, most_left_alone, view_of
from equipoise.releases.evidence import RELEASE_DRAW, Signer
from equipoise.releases.evidence import evidence as evidence_of
from equipoise.releases.evidence import rounded as rounded
from equipoise.releases.records_beside_tables import beside_tables
from equipoise.releases.release_folder import ReleaseFolder, journal_text, refuse_existing, write_release
from equipoise.releases.release_order import ReleasedFrames, handed_out, in_release_order
from equipoise.releases.released_categories import without_absent
from equipoise.releases.report_facts import Report, completed, ends
from equipoise.search.frontier import Frontier, frontier
from equipoise.trials.trial import Trial


@dataclass(frozen=True)
class Release(ReleasedFrames, ReleaseFolder):
    """What was released: the data, the trial measured on it, the verdict, where it stands, and what it was before.

    `data` has the records in the order of the original, with their ids, for those who measure it again; `to_pandas`,
    `to_polars` and `to_native` give what users get.
    """

    data: Records
    trial: Trial
    verdict: Verdict
    evidence: dict[str, Any] = field(repr=False)
    frontier: Frontier = field(repr=False)
    original: Trial = field(repr=False)
    keep_order: bool = field(default=False, repr=False)

    def handed_out(self) -> Records:
        ids = (self.data.roles.id,) if self.data.roles.id else ()
        return handed_out(self.data, ids, None if self.keep_order else self.trial.recipe.seed)

    def _repr_html_(self) -> str:
        return release_html(self)


def release(
    records: Records,
    recipe: Recipe,
    policy: Policy,
    out: str | Path,
    *,
    format: str | None = None,
    overwrite: bool = False,
    trials: Sequence[Trial] = (),
    measures: Sequence[Measure] = (),
    title: str | None = None,
    policy_text: str | None = None,
    register: Register | None = None,
    draw: int = RELEASE_DRAW,
    sign: str | Path | None = None,
    progress: Progress | None = None,
) -> Release:
    """Run the recipe, measure the released records themselves, refuse if a limit is broken, write the folder.

    The id and the direct identifiers are withheld; a column that looks like one and has neither role is refused, unless
    the policy allows it.

    Parameters
    ----------
    records, recipe, policy
        The original file, what to do to it, and what must hold.
    out
        The folder to make: `public/` (data, codebook, report, evidence) and `private/` (seed, policy, recipe, replay,
        internal report, journal).
    format
        A name of `equipoise.files.FORMATS`, such as csv or parquet; that of the input when not given. SAS data sets
        become .xpt and R files Parquet, which the evidence says.
    overwrite
        Replace an earlier release at `out`.
    trials
        What else was tried, for the internal map.
    measures
        What to report beside the limits; the limits' own when not given, the standard ones when there are no limits.
    title, policy_text
        The heading of the report, and the policy file that makes the release again.
    register
        The private file of earlier releases: this one is audited together with those of the same people, takes their
        draw, and is kept there.
    draw
        The number of the draw that is released; it is in the evidence.
    sign
        A private Ed25519 key (PEM) that signs the evidence.
    progress
        Called with (done, total, what) while the release is attacked.
    """
    folder = Path(out)
    refuse_existing(folder, overwrite, records.source.path if records.source else None)
    kind = format or (becomes(records.source.format) if records.source else "parquet")
    if kind not in FORMATS:
        raise ParameterError(f"No format {kind!r}. There are: {', '.join(FORMATS)}.")
    if sign is not None:
        Signer.load(sign)
    refuse_work(records, "release")
    whole, records = records, without_direct(records)
    refuse_unfit(records, keys_needed=False)
    scales = tuple(measures) or policy.measures() or standard(records, recipe)
    view = register.view(whole) if register else None
    recipe = register.settle(recipe, records, view) if register and view else recipe
    released = recipe.run(records, draw)
    withheld = (*((records.roles.id,) if records.roles.id else ()), *whole.roles.direct)
    joint = view_of(released, view, recipe, records=records, draw=draw, withheld=withheld) if view else None
    if joint is not None:
        joint.refuse_changed()
    refuse_identifiers(released, policy.allow, (records.roles.id,) if records.roles.id else ())
    seen, shown = records.held(), released.held()
    trial = Trial(recipe, Scores(both_ways(m, shown, seen) for m in scales))
    verdict = policy.judge(trial)
    if not verdict:
        raise refused(trial, verdict)
    several = _together(joint, register, policy) if joint and register else alone_with(released)
    facts = _report(seen, shown, trial, verdict, policy, scales, trials, title, several)
    facts = _declared(facts) if policy_text is None else _refuse_undeclared(facts)
    second = () if joint else most_left_alone(released, records)
    facts = replace(facts, withheld=withheld, signed=sign is not None, second=second)
    facts = completed(_attacked(facts, seen, shown, progress), seen, shown)
    text = policy_text or job_of(whole, recipe, facts.policy, format).to_toml()
    texts = {
        RECIPE: recipe_text(recipe, trial.scores.keys(), draw), "policy.toml": text, SCRIPT_NAME: SCRIPT,
        "journal.jsonl": journal_text(facts.frontier.trials, trial),
    }  # fmt: skip
    contents = RecordsContents(records, released, facts, kind, text, draw)
    evidence = write_release(
        contents, folder, overwrite=overwrite, texts=texts, sign=sign,
        register=lambda private: _keep(register, joint, recipe, title or _file_name(records)),
    )  # fmt: skip
    data = without_absent(released)
    return Release(folder, data, trial, verdict, evidence, facts.frontier, facts.original, policy.keep_order)


def _together(joint: JointView, register: Register, policy: Policy) -> tuple[str, ...]:
    """Refuse what works together with earlier releases and tables; else what was audited."""
    return (*audit(joint, policy), *beside_tables(joint, register))


def _file_name(records: Records) -> str:
    """What a register calls a release without a title; in public files the name of the original does not stand."""
    return Path(records.source.path).name if records.source else "Release"


def _keep(register: Register | None, joint: JointView | None, recipe: Recipe, title: str) -> None:
    if register is not None and joint is not None:
        register.keep(joint.view, joint.display, facts_of(joint, recipe, title))


@dataclass(frozen=True)
class RecordsContents:
    """What a release folder of records holds: the data in a format, its codebook and the pages."""

    records: Records
    released: Records
    facts: Report
    kind: str
    policy: str
    draw: int
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    @property
    def seed(self) -> int | None:
        return self.facts.chosen.recipe.seed

    @property
    def data(self) -> str:
        return f"data.{self.kind}"

    def put_public(self, public: Path) -> None:
        withheld = self.facts.withheld
        order = None if self.facts.policy.keep_order else self.seed
        formulas = self.facts.policy.csv_formulas
        write_data(self.released, public / self.data, self.kind, withheld, order, formulas)
        book = codebook(self.released, self.records, title=self.facts.title, file=self.data, withheld=withheld)
        system.write(public / "codebook.md", book.to_markdown())
        system.write(public / "codebook.json", book.to_json())
        system.write(public / "report.html", page(self.facts, public=True))

    def evidence(self, public: Path) -> dict[str, Any]:
        return evidence_of(
            self.records, self.released, self.facts, public=public, data=public / self.data, draw=self.draw,
            key=self.key, policy=self.policy,
        )  # fmt: skip

    def put_private(self, private: Path) -> None:
        system.write(private / "report.html", page(self.facts, public=False))


def public_report(
    records: Records, released: Records, trial: Trial, policy: Policy, *, measures: Sequence[Measure], title: str,
    made: date, withheld: Sequence[str], signed: bool, several: Sequence[str] = (),
) -> str:  # fmt: skip
    """The public report of a release, from what it is made of: a second time it has the same words."""
    records, released = records.held(), released.held()
    facts = _report(records, released, trial, policy.judge(trial), policy, measures, (), title, several)
    facts = replace(facts, made=made, withheld=tuple(withheld), signed=signed)
    return page(_attacked(facts, records, released, None), public=True)


def _declared(facts: Report) -> Report:
    """Without a policy file: the release says of every column that singles people out that nobody knows it."""
    columns = enough_columns(undeclared(facts.revealing, facts.policy))
    if not columns:
        return facts
    return replace(facts, policy=replace(facts.policy, assume_unknown=(*facts.policy.assume_unknown, *columns)))


def _refuse_undeclared(facts: Report) -> Report:
    try:
        refuse_undeclared(facts.revealing, facts.policy)
    except RefusedError as error:
        error.about = facts.chosen
        raise
    return facts


def _attacked(facts: Report, records: Records, released: Records, progress: Progress | None) -> Report:
    attack = try_out(released, records, progress=progress)
    return replace(facts, untried=attack) if isinstance(attack, str) else replace(facts, attack=attack)


def _report(
    records: Records,
    released: Records,
    trial: Trial,
    verdict: Verdict,
    policy: Policy,
    measures: Sequence[Measure],
    trials: Sequence[Trial],
    title: str | None,
    several: Sequence[str],
) -> Report:
    original, nothing = ends(records, measures)
    columns = revealing(released, records)
    alike = [t for t in trials if t.scores.keys() == trial.scores.keys()]
    return Report(
        title=title or "Release",
        version=version("equipoise"),
        made=datetime.now(UTC).date(),
        policy=policy,
        verdict=verdict,
        chosen=trial,
        original=original,
        nothing=nothing,
        frontier=frontier(alike or (original, trial)),
        before=profile(records),
        after=profile(released),
        laws=released.history,
        assumptions=(
            *assumptions(released, policy, revealing=columns),
            *shortcomings(released, records, trial.scores, policy),
        ),
        revealing=columns,
        several=tuple(several),
        withheld=(records.roles.id,) if records.roles.id else (),
    )


def write_data(
    records: Records, path: Path, kind: str, withheld: tuple[str, ...], seed: int | None, formulas: str = "escape"
) -> None:
    """The released data without the columns withheld, in its own engine where that writes the format.

    The order of the records is drawn from the seed: where a record stands must not show where it was. Without a seed
    it is kept. In CSV files text that a spreadsheet would run as a formula is marked, unless `formulas` are to be kept.
    """
    records = without_absent(records)
    frame = in_release_order(replace(records, frame=with_codes(records, kind)), seed)
    frame = frame.drop(list(withheld), strict=False) if withheld else frame
    escape = kind == "csv" and formulas == "escape"
    try:
        if frame.implementation.is_polars():
            table = frame.to_native()
            save(without_formulas(table) if escape else table, path, kind, records.labels)
        elif kind == "parquet":
            frame.sink_parquet(str(path))
        else:
            table = engines.collect(frame).lazy()
            save(without_formulas(table) if escape else table, path, kind, records.labels)
    except EquipoiseError:
        raise
    except Exception as error:
        engines.fail(error, "write the released data")
