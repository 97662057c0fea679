"""Release of a table: what a policy makes of it, the audit with earlier tables, and what its folder holds."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import partial, reduce
from operator import or_
from pathlib import Path
from typing import Any, cast

import polars as pl

from equipoise.data.records import Records
from equipoise.data.tables.statistic import StandardDeviation, statistic_of
from equipoise.data.tables.table import Table
from equipoise.files import CsvFormulas, metadata_files, table_csv
from equipoise.ground import system
from equipoise.ground.errors import RefusedError
from equipoise.ground.progress import Progress
from equipoise.ground.randomness import Draws
from equipoise.methods.method import Measure, Rule, label, name_of
from equipoise.policies.dominance_check import parts_of
from equipoise.policies.policy import Policy, Verdict, refused
from equipoise.policies.policy_file import Job
from equipoise.policies.table_section import rules_of
from equipoise.presentation.numbers import number
from equipoise.presentation.pages import page
from equipoise.provenance.fingerprint import hash_of, keyed_hash
from equipoise.provenance.registered_tables import keep_table, with_earlier_tables
from equipoise.provenance.seed_register import Register
from equipoise.recipe.catalogue import parse
from equipoise.recipe.recipe import Recipe
from equipoise.releases.evidence import EVIDENCE_FORMAT, RELEASE_DRAW, hashes, versions
from equipoise.releases.plan import Plan, candidates_of, chosen_of, recipes_of, trials_of
from equipoise.releases.records_beside_tables import beside_records
from equipoise.releases.release_folder import ReleaseFolder, journal_text, write_release
from equipoise.releases.statistic_table import components_of, protect_statistic, refuse_statistic
from equipoise.releases.tabulated import Tabulated, certified
from equipoise.search.frontier import Frontier
from equipoise.search.table_comparison import TableComparison, diagnoses, measured
from equipoise.tables import Distance, Exposed, Suppress
from equipoise.tables.audits import JointAudit, together
from equipoise.trials.trial import Trial, Trials, original_trial

SEVERAL_DEVIATIONS = "somebody who puts standard deviations of several tables together (the register has sums)"
SEVERAL_COUNTS = "somebody who puts count variables of several tables together (the register has counts of records)"
REVISED = "somebody who knows which records of earlier tables were revised (without an id they count as others)"
TABLE_FILES = ("table.csv", "table.parquet")


@dataclass(frozen=True)
class TableRelease(ReleaseFolder):
    """A table that was released: what was published with its audit, the verdict, and the limits it was judged by."""

    table: Tabulated
    verdict: Verdict
    policy: Policy

    @property
    def comparison(self) -> TableComparison:
        assert self.table.compared is not None
        return self.table.compared

    @property
    def trial(self) -> Trial:
        return self.comparison.chosen

    @property
    def original(self) -> Trial:
        return self.comparison.original

    @property
    def frontier(self) -> Frontier:
        return self.comparison.frontier


@dataclass(frozen=True)
class TableCase:
    """A policy that releases a table of these records."""

    job: Job
    records: Records

    @property
    def masking_input(self) -> Records:
        """The records whose roles scores depend on."""
        return self.records

    @property
    def seed(self) -> int | None:
        """The seed of the register, which goes before that of the policy."""
        book = self.job.registered()
        return book.table_seed(self.records) if book else None

    @property
    def weight(self) -> str | None:
        return (self.job.table.weight if self.job.table else None) or self.records.roles.weight

    @property
    def depends(self) -> dict[str, Any]:
        """What the table is made of beside the records."""
        assert self.job.table is not None
        layout = self.job.table.with_plain_trees(self.job.table.prepared(self.records), self.job.folder)
        return {part.name: getattr(layout, part.name) for part in fields(layout)}

    def plan(self, seed: int) -> Plan:
        job, layout, measures = self.job, self.job.table, table_measures(self.job)
        assert layout is not None
        records = layout.prepared(self.records)
        recipes = recipes_of(job, records, seed)
        methods = [mask for recipe in recipes for mask in recipe.masks]
        if (statistic := statistic_of(layout.statistic)) is not None:
            for method in methods:
                refuse_statistic(statistic, layout, method, register=job.registered() is not None)
        original = self._made(records, layout.value, (*methods, *measures), seed)
        raw = original_trial(original, measures)
        return Plan(original, measures, recipes, candidates_of(job, records, seed)[1], lambda: (raw, None))

    def _made(self, records: Records, value: str | None, used: Sequence[Any], seed: int) -> Table:
        """The table of one quantity, with the earlier tables of the register beside it."""
        job, layout = self.job, self.job.table
        assert layout is not None
        if value != layout.value and isinstance(layout.ready, dict):
            layout = replace(layout, ready={name: of for name, of in layout.ready.items() if name != "top"})
        methods = [one for one in used if not isinstance(one, Measure)]
        original = replace(layout, value=value).made(records, job.folder, methods, rules_of(used), seed)
        register = job.registered() if value is None or value in self.records.schema() else None
        return with_earlier_tables(original, register, self.records, weight=self.weight)

    def protected(
        self, original: Table, recipe: Recipe, used: Sequence[Any], seed: int, progress: Progress | None = None
    ) -> Tabulated:
        """The table as the recipe makes it, audited; of a statistic all sums behind it, by one pattern."""
        method, layout = cast(Any, recipe.masks[-1]), self.job.table
        assert layout is not None
        statistic = statistic_of(layout.statistic)
        if statistic is None:
            hides = isinstance(method, Suppress)
            released = method.apply(original, Draws(0), progress) if hides else recipe.run(original, RELEASE_DRAW)
            return certified(original, released, method, audited_by(recipe, self.job.policy()), seed, progress)
        make = partial(self._made, used=used, seed=seed)
        components = components_of(statistic, layout.prepared(self.records), layout.value, make)
        return replace(protect_statistic(statistic, components, method, seed, progress), components=layout.components)

    def certified(self, plan: Plan, trials: Trials, chosen: Trial, seed: int) -> tuple[Tabulated, Verdict]:
        """The best trial run afresh, judged and audited: a draw that no search has looked at.

        Raises RefusedError when it breaks a limit, or when the audit fails: a suppressed cell that can be computed
        exactly, a cell that the rule of the suppression calls sensitive known to within its level, or, where numbers
        were changed, one that a limit of no exposure is about.
        """
        limits, recipe, original = self.job.policy(), chosen.recipe, cast(Table, plan.data)
        used = (*(mask for one in plan.recipes for mask in one.masks), *plan.measures)
        table = self.protected(original, recipe, used, seed)
        trial = measured(original, table.table, recipe, plan.measures)
        verdict = limits.judge(trial)
        if not verdict:
            raise refused(trial, verdict)
        methods = [mask for one in plan.recipes for mask in one.masks]
        warnings = diagnoses(original, (*methods, *plan.measures))
        return replace(table, compared=TableComparison(trials, plan.ends()[0], trial, limits, warnings)), verdict

    def again(self, seed: int) -> Tabulated:
        """Search, choose, protect and audit once more; nothing is written."""
        plan = self.plan(seed)
        trials = trials_of(self.job, plan)
        return self.certified(plan, trials, chosen_of(trials, self.job.policy()), seed)[0]

    def release(
        self, plan: Plan, trials: Trials, chosen: Trial, *, seed: int, folder: Path, overwrite: bool,
        progress: Progress | None = None,
    ) -> TableRelease:  # fmt: skip
        """Release the chosen trial; with a register it is audited together with the earlier tables of the data."""
        job, weight = self.job, self.weight
        table, verdict = self.certified(plan, trials, chosen, seed)
        table = audited_together(table, job.registered(), self.records, weight)
        write_table(
            TableContents(table, self.records, Path(job.data.path).name, job.title, formulas=job.output.csv_formulas),
            folder, overwrite=overwrite,
            texts={"policy.toml": self._stored(table).to_toml(),
                   "journal.jsonl": journal_text(trials, chosen, trials.left_out)},
            sign=job.folder / job.output.sign if job.output.sign else None, register=job.registered(), weight=weight,
        )  # fmt: skip
        return TableRelease(folder, table, verdict, job.policy())

    def _stored(self, table: Tabulated) -> Job:
        """The policy that makes the table again: with the register where there are earlier tables beside it."""
        job, book = self.job.again(self.records), self.job.registered()
        if book is None or not table.table.beside:
            return job
        return replace(job, register=str(system.without_links(book.path)), asset=book.asset)


def table_measures(job: Job) -> tuple[Measure, ...]:
    """The measures of the policy; where none says what users lose, the distance."""
    measures = job.scales()
    return measures if any(not isinstance(one, Exposed) for one in measures) else (*measures, Distance())


def audited_by(recipe: Recipe, limits: Policy) -> Rule | None:
    """The rule of the final audit: that of the suppression, or those of which no cell may be exposed."""
    method: Any = recipe.masks[-1]
    if isinstance(method, Suppress):
        return method.rule
    strict = {label(parse(one.score, "measure")) for one in limits.parsed if one.sign == "<=" and one.bound <= 0}
    rules = [m.rule for m in limits.measures() if isinstance(m, Exposed) and label(m) in strict]
    return reduce(or_, rules) if rules else None


def audited_together(table: Tabulated, register: Register | None, records: Records, weight: str | None) -> Tabulated:
    """Refuse a table that gives something away together with earlier ones; note what it was held against.

    No suppressed cell of any of them may be computed exactly, and no sensitive one to within its protection level; of
    tables whose numbers were changed without a rule no small cell exactly; and no cell may be changed by other keys
    than before. Does not guard against tables of other quantities: they are not held against it, which is said; nor
    against who puts the squares of several standard deviations together. Cost: one audit of all.
    """
    if register is None:
        return table
    needed = [column for column in (table.table.measured, weight) if column]
    view = register.view(records)
    beside = beside_records(table.table, needed, view) if table.suppresses else ()
    table = replace(table, notes=(*table.notes, *beside))
    earlier = table.table.beside
    others = len(register.tables(records)) - len(earlier)
    joint = together(table.known_cells, earlier) if earlier else JointAudit(0, 0, True)
    if joint.changed:
        raise RefusedError(
            f"Nothing was published: {number(joint.changed)} cells were published before with another change. Whoever "
            "has both can average it out: take the record keys and the perturbation table of the first."
        )
    if joint.exact or joint.close or joint.known:
        raise RefusedError(_reason(joint, len(earlier), table.suppresses))
    notes = (*table.notes, *_joint_notes(len(earlier), others, joint))
    parts = tuple(
        audited_together(part, register, records, weight) if part.table.measured in records.schema() else part
        for part in table.parts
    )
    attackers = table.attackers.with_tables(
        len(earlier), joint.insiders, absent=joint.absent, by_labels=joint.by_labels
    )
    deviations, revised = isinstance(table.statistic, StandardDeviation), bool(earlier) and view.revised
    more = {REVISED: revised, SEVERAL_DEVIATIONS: deviations, SEVERAL_COUNTS: table.count_variables}
    attackers = replace(attackers, not_cover=(*attackers.not_cover, *(who for who, given in more.items() if given)))
    return replace(table, notes=notes, attackers=attackers, parts=parts)


def _reason(joint: JointAudit, earlier: int, suppresses: bool) -> str:
    kind = "suppressed" if suppresses else "small or sensitive"
    exact, close = f"{number(joint.exact)} {kind} cells exactly", f"{number(joint.close)} sensitive cells too closely"
    cells, who = exact if joint.exact else close, "an outsider"
    if not joint.exact and not joint.close:
        cells, who = f"{number(joint.known)} sensitive cells exactly", "somebody who contributes"
    tip = "Protect them together with eq.protect_tables, or publish" if suppresses else "Publish"
    return (
        f"Nothing was published: together with {_earlier(earlier)} {who} can compute {cells}. {tip} the same "
        "groups as before."
    )


def _earlier(many: int) -> str:
    return f"{number(many)} earlier {'table' if many == 1 else 'tables'} of this data"


def _joint_notes(earlier: int, others: int, joint: JointAudit) -> tuple[str, ...]:
    """What was audited and what was not."""
    notes = (f"Audited together with {_earlier(earlier)}.",) if earlier else ()
    if earlier and not joint.complete:
        words = "All tables together have too many classes of records to use every sum: cells of the same records were "
        notes = (*notes, f"{words}taken for one, and columns that are groups of another's were added up.")
    if earlier and not joint.related:
        notes = (*notes, "All tables together have too many cells to use how they add up: shared cells were compared.")
    if others:
        act = "counts or adds up" if others == 1 else "count or add up"
        notes = (*notes, f"Not audited together with {_earlier(others)}, which {act} something else.")
    return notes


@dataclass(frozen=True)
class TableContents:
    """What a release folder of a table holds; `records` are those it was made from, `source` the name of their file.

    `public/` has nothing that tells sensitive cells from secondary ones, and no parameter of the rule; `private/` has
    statuses, audit and internal report.
    """

    table: Tabulated
    records: Records
    source: str
    title: str | None = None
    signed: bool = False
    formulas: CsvFormulas = "escape"

    @property
    def seed(self) -> int:
        return self.table.seed

    @property
    def key(self) -> bytes:
        """Made from the seed, and again with it."""
        return hashlib.sha256(f"equipoise table {self.seed}".encode()).digest()

    def put_public(self, public: Path) -> None:
        system.write(public / TABLE_FILES[0], table_csv(self.table.public, self.formulas))
        self.table.public.write_parquet(public / TABLE_FILES[1])
        system.write(public / "report.html", self.public_page())

    def public_page(self) -> str:
        return page(self.table, self.source, public=True, title=self.title, signed=self.signed)

    def evidence(self, public: Path) -> dict[str, Any]:
        """What the public may check: the kind of rule without its parameters, how many cells, what was written.

        The hash of the input is keyed; how many records it has is not told, for that may be a cell.
        """
        table = self.table
        return {
            "format": EVIDENCE_FORMAT,
            "made": datetime.now(UTC).date().isoformat(),
            "versions": versions(name_of(type(table.method)), *kinds(table)),
            "input": {"hmac_sha256": keyed_hash(self.records, self.key)},
            "table": {
                "by": list(table.table.by),
                "value": table.table.measured or "records",
                **({"statistic": table.what} if table.statistic is not None else {}),
                **({"signed": True} if "gross" in table.table.more.columns else {}),
            },
            "method": name_of(type(table.method)),
            "rule": kinds(table),
            "words": table.public_words,
            "cells": {"total": table.counts["cells"], "suppressed": table.counts["suppressed"]},
            "audit": {
                "verdict": "passed",
                "against": list(table.attackers.public),
                "not_against": list(table.attackers.not_cover),
            },
            "output": [{"file": name, "sha256": hash_of(public / name)} for name in TABLE_FILES],
            "files": hashes(public),
        }

    def put_private(self, private: Path) -> None:
        table = self.table
        _put_cells(table, private)
        for folder, part in component_folders(table, private):
            folder.mkdir()
            _put_cells(part, folder)
        system.write(private / "report.html", page(table, self.source, public=False, title=self.title))


def _put_cells(table: Tabulated, private: Path) -> None:
    """The cells with their statuses, as tau-ARGUS reads them too, and their audit."""
    system.write(private / TABLE_FILES[0], table_csv(table.internal))
    system.write(private / "table.sbs", _sbs(table.internal, table.table.by))
    for name, text in metadata_files(table.table.axes, "table").items():
        system.write(private / name, text)
    system.write(private / "audit.csv", table_csv(table.audit))


def component_folders(table: Tabulated, private: Path) -> list[tuple[Path, Tabulated]]:
    """The private folder of every further sum behind a statistic."""
    return [(private / f"component-{place}", part) for place, part in enumerate(table.parts, start=2)]


def write_table(
    contents: TableContents,
    folder: Path,
    *,
    overwrite: bool,
    texts: Mapping[str, str],
    sign: str | Path | None = None,
    register: Register | None = None,
    weight: str | None = None,
) -> None:
    """Write the folder of a table, and keep the table in the register where there is one."""
    contents = replace(contents, signed=sign is not None)

    def keep(private: Path) -> None:
        if register is None:
            return
        table, title = contents.table, contents.title or contents.source
        for folder, part in ((private, table), *component_folders(table, private)):
            if part is not table and part.table.measured not in contents.records.schema():
                continue
            cells = part.known_cells
            with register.shelving():
                keep_table(
                    register, contents.records, cells, private=folder, seed=table.seed, weight=weight, title=title
                )

    write_release(contents, folder, overwrite=overwrite, texts=texts, sign=sign, register=keep)


def kinds(table: Tabulated) -> list[str]:
    """The kinds of rule that were used, without parameters: offices keep these to themselves."""
    return list(dict.fromkeys(name_of(type(part)) for part in parts_of(table.rule)))


def _sbs(cells: pl.DataFrame, by: tuple[str, ...]) -> str:
    """A line per cell as tau-ARGUS writes them: labels, value, contributors, status number."""
    return cells.select(*by, "value", "contributors", "code").write_csv(include_header=False, quote_style="non_numeric")
