"""Attack on a release: every attack that fits the files, by scenario, with what each intruder knows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any

import polars as pl

from equipoise.data.records import Records
from equipoise.data.roles import names
from equipoise.files.memory import refuse_work
from equipoise.ground.errors import (
    Cancelled,
    DataError,
    EngineError,
    EquipoiseError,
    ParameterError,
    RolesError,
    hint,
)
from equipoise.ground.options import option
from equipoise.ground.progress import Progress, tracked
from equipoise.ground.whole_files import refuse_page, write_whole
from equipoise.intrusion import knowledge as steps
from equipoise.intrusion.planned_attacks import (
    REPORT_VARIANTS,
    Aim,
    every_attack,
    field_names,
    filled_in,
    wider_knowledge,
)
from equipoise.intrusion.scenario import SENTENCES, Known, Scenario, kind_of, known_to, reach, scenario
from equipoise.intrusion.who_is_who import ESTIMATED, Pair, Truth, pair
from equipoise.methods.method import Measure, label, name_of
from equipoise.methods.score import Score
from equipoise.presentation.notebook import attack_html
from equipoise.presentation.numbers import title
from equipoise.presentation.pages import page, source_name
from equipoise.presentation.svg import Chart
from equipoise.recipe.catalogue import find

MAX_RECORDS, MAX_RECORD_TRIES = 250_000, 2_000_000
"""What a report bears: so many records at most, and so many records times combinations of columns."""
MAX_REPORT_ASSIGNED = 10_000
"""Records up to which a report tries one-to-one assignment."""
ASSIGNED_LATER = (
    f"One-to-one assignment was not tried, for there are more than {MAX_REPORT_ASSIGNED:,} records: `attack` tries it."
)


@dataclass(frozen=True)
class Attack:
    """What intruders could do with a release.

    `knowledge` has a row per combination of columns, the most dangerous first: `known`, `size`, the share of people
    linked by nearest records (`value`, with the ends `low` and `high` of its interval) and the `baseline` of guessing.
    `truth` says how it is known whose record is whose: because the "release" was made again, by "id", by "row", by the
    "agreement" of rare values, or not at all ("unknown"); in the last two shares are estimated. Exact scores of many
    scenarios are answers about the file: for internal use.
    """

    scenarios: tuple[Scenario, ...]
    records: int
    known: Known
    truth: Truth
    knowledge: pl.DataFrame = field(repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)

    @property
    def estimated(self) -> bool:
        """Nobody knows for certain whose record is whose."""
        return self.truth in ESTIMATED

    @property
    def strongest(self) -> Scenario:
        """The intruder who links most people, or may link most where shares are estimated: then the upper ends count.

        Where none links, the one farthest above guessing.
        """
        finite = [s for s in self.scenarios if isfinite(s.score.value)] or self.scenarios[:1]
        linking = [s for s in finite if s.kind == "link"]
        if linking:
            return max(linking, key=lambda s: reach(s, estimated=self.estimated))
        return max(finite, key=lambda s: s.score.value - (s.score.baseline or 0.0))

    @property
    def growth(self) -> pl.DataFrame:
        """The most dangerous combination of each number of columns."""
        return steps.growth(self.knowledge)

    def worst(self, n: int = 10) -> pl.DataFrame:
        """The most dangerous combinations of columns."""
        return self.knowledge.head(n)

    def exposed(self, n: int = 20) -> pl.DataFrame:
        """The people at most risk, by id or row number, never by value: `risk`, and `margin` where it is known."""
        linking = [s for s in self.scenarios if s.kind == "link" and s.score.records is not None]
        if not linking:
            raise ParameterError("No attack links people to records: there is nobody to list.")
        worst = max(linking, key=lambda s: s.score.value)
        rows = worst.score.by_record()
        name = rows.columns[0]
        for score in worst.tried:
            if score.cells is not None and {name, "margin"} <= set((detail := score.detail).columns):
                rows = rows.join(detail.select(name, "margin"), on=name, how="left", maintain_order="left")
                break
        order = [c for c in ("risk", "margin") if c in rows.columns]
        return rows.select(name, *order).sort(order, descending=True, nulls_last=True, maintain_order=True).head(n)

    def chart(self) -> dict[str, Any]:
        """Success against what is known, as a Vega-Lite specification."""
        if self.knowledge.is_empty():
            raise ParameterError("There is nothing to draw: no combination of columns was tried.")
        return Chart(steps.chart(self.knowledge, self.estimated))

    def _repr_html_(self) -> str:
        return attack_html(self)


@dataclass(frozen=True)
class AttackOptions:
    """Options of `attack` beside the two files."""

    known: str | Iterable[str] | None = option(
        None, "The columns of which the intruder knows the values: age,sex,region.", cli="names", metavar="COLUMNS"
    )
    sensitive: str | Iterable[str] | None = option(None, "The columns they want to learn; those with that role.")
    size: int = option(2, "Try every combination of up to so many known columns.", cli="whole", least=1)
    attacks: Iterable[Measure] | None = option(
        None, "What to try, nearest or interval --width 0.05; repeat for more. All of them when not given.",
        cli="names", flag="attack", metavar="NAME[:FIELDS]",
    )  # fmt: skip
    progress: Progress | None = option(None, "Called with (done, total, what).")
    out: str | Path | None = option(None, "A page to write, for internal use.", cli="path", metavar="REPORT.html")
    overwrite: bool = option(False, "Replace what an earlier run wrote there.", cli="switch")

    def __post_init__(self) -> None:
        object.__setattr__(self, "known", names(self.known, "known"))
        if isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 1:
            raise ParameterError("size must be a whole number of at least 1.")


def attack_files(released: Records, original: Records, options: AttackOptions, *, again: str = "") -> Attack:
    """Try to break a release: `again` says that its ids are true because it was made again."""
    for file in (released, original):
        if not isinstance(file, Records):
            raise ParameterError(f"Files are read first, eq.read(path, roles): got {type(file).__name__}.")
    place = Path(options.out) if options.out is not None else None
    if place is not None:
        reads = [file.source.path for file in (released, original) if file.source]
        refuse_page(place, options.overwrite, reads=reads)
    outcome = _attacked(released, original, options, again)
    if place is not None:
        titles = source_name(released, "the release"), source_name(original, "the original file")
        write_whole(place, page(outcome, *titles), goal=True)
    return outcome


def _attacked(released: Records, original: Records, options: AttackOptions, again: str) -> Attack:
    columns = tuple(options.known or ()) or original.roles.keys or original.roles.numeric
    if not columns:
        raise RolesError("Nothing is known: name the columns of which an intruder knows the values.")
    refuse_work(max(released, original, key=Records.height), "attack")
    files = pair(released, original, columns)
    files = replace(files, truth="release", notes=(again, *files.notes)) if again else files
    if files.original.height() < 2:
        raise DataError("The data has one record only: there is nobody to confuse it with.")
    aim = Aim.of(files, columns, _targets(files, options.sensitive))
    strict = options.attacks is not None
    if options.attacks is not None:
        methods = [filled_in(method, files, aim) for method in options.attacks]
    else:
        methods = [*every_attack(files, aim), *wider_knowledge(files, columns, whole=not options.known)]
    plan = steps.KnowledgePlan.of(len(columns), options.size, files.original.height())
    return _attack_with(files, columns, methods, plan, strict=strict, progress=options.progress)


def try_out(released: Records, original: Records, *, progress: Progress | None = None) -> Attack | str:
    """The attacks on a release that is being made, those that take no long time; or why they cannot be tried.

    They cannot without a key or a number, on an engine outside memory, and on more than 250,000 records.
    """
    readable, columns = released.in_memory or released.source is not None, original.roles.keys or original.roles.numeric
    if not readable or not columns or not 1 < original.height() <= MAX_RECORDS:
        return f"that takes a key or a number, and at most {MAX_RECORDS:,} records in memory."
    try:
        files = pair(released, original, columns)
        attacks = every_attack(files, Aim.of(files, columns, files.original.roles.sensitive), REPORT_VARIANTS)
        plan = steps.KnowledgePlan.of(len(columns), 2, files.original.height(), MAX_RECORD_TRIES)
        assigned = [method for method in attacks if getattr(method, "links", None) == "one-to-one"]
        if not assigned or files.original.height() <= MAX_REPORT_ASSIGNED:
            return _attack_with(files, columns, attacks, plan, strict=False, progress=progress)
        quick = [method for method in attacks if method not in assigned]
        outcome = _attack_with(files, columns, quick, plan, strict=False, progress=progress)
        return replace(outcome, notes=(*outcome.notes, ASSIGNED_LATER))
    except Cancelled:
        raise
    except EquipoiseError as error:
        return str(error)


def _attack_with(
    files: Pair,
    columns: Known,
    attacks: Sequence[Measure],
    plan: steps.KnowledgePlan,
    *,
    strict: bool,
    progress: Progress | None,
) -> Attack:
    scenarios, untried = _scenarios(files, columns, attacks, strict=strict, progress=progress)
    table = _swept(files, columns, plan, scenarios, progress)
    beyond = {s.known: s.score for s in scenarios if s.kind == "link" and not set(s.known) <= set(columns)}
    table = steps.ranked([*table.rows(), *steps.rows(beyond)])
    plan_notes = () if table.is_empty() else (plan.words(),)
    return Attack(scenarios, files.people, columns, files.truth, table, (*files.notes, *untried, *plan_notes))


def _targets(files: Pair, sensitive: str | Iterable[str] | None) -> Known:
    """The columns to be learnt."""
    if sensitive is None:
        return files.original.roles.sensitive
    for column in (columns := names(sensitive, "sensitive")):
        for words, side in (("intruder's", files.original), ("released", files.released)):
            if column not in (schema := side.schema()):
                raise RolesError(f"No column {column!r} in the {words} file.{hint(column, list(schema))}")
    return columns


def _scenarios(
    files: Pair, columns: Known, attacks: Sequence[Measure], *, strict: bool, progress: Progress | None
) -> tuple[tuple[Scenario, ...], list[str]]:
    """Each intruder by their strongest attack, and which attacks could not be tried."""
    tries: dict[tuple[Any, ...], list[tuple[Measure, Score]]] = {}
    untried: dict[str, EquipoiseError] = {}
    for method in tracked(attacks, "attacking", progress):
        try:
            score = _for_all(method, _measured(method, files), files, columns)
        except Cancelled:
            raise
        except EquipoiseError as error:
            if strict:
                raise
            untried[_title(method)] = error
            continue
        tries.setdefault(_intruder(method, columns), []).append((method, score))
    if not tries:
        raise next(iter(untried.values()), EquipoiseError("No attack fits these files."))
    notes = [f"{name} was not tried: {error}" for name, error in untried.items()]
    order = sorted(tries, key=lambda intruder: list(SENTENCES).index(intruder[0]))
    scenarios = [scenario(files, columns, tries[intruder]) for intruder in order]
    return tuple(s for s in scenarios if not _outdone(s, scenarios, columns, estimated=files.estimated)), notes


def _outdone(one: Scenario, scenarios: Sequence[Scenario], columns: Known, *, estimated: bool) -> bool:
    """Whether somebody who was not asked about links no more people than one of fewer columns, or than who was."""
    if one.kind != "link" or one.known == columns:
        return False
    rivals = [s for s in scenarios if s.kind == "link" and s is not one]
    rivals = [s for s in rivals if reach(s, estimated=estimated) >= reach(one, estimated=estimated)]
    return any(len(s.known) < len(one.known) or s.known == columns for s in rivals)


def _title(method: Measure) -> str:
    assigned = getattr(method, "links", None) == "one-to-one"
    return f"{title(name_of(type(method)))}{' (one-to-one)' if assigned else ''}"


def _measured(method: Measure, files: Pair) -> Score:
    """An attack; one on values, which needs the same people in both files, gets those.

    One that compares `variables` as they are is given the original in the terms of the release, and so is the search
    for the nearest record where a number became a label, which may be missing as well. Who joins by blocks knows them:
    guessing is among all records.
    """
    columns = _compared(method)
    if columns and ("known" not in field_names(type(method)) or _relabelled(method, files, columns)):
        score = method.measure(files.released, files.in_terms(columns))
        joined = name_of(type(method)) == "nearest" and getattr(method, "blocks", None)
        return replace(score, baseline=1 / files.released.height()) if joined else score
    try:
        return method.measure(files.released, files.original)
    except EngineError:
        if files.both is None or kind_of(method) != "interval":
            raise
        return method.measure(*files.common())


def _compared(method: Measure) -> Known:
    """The columns that an attack compares."""
    parts = (getattr(method, name, None) or () for name in ("variables", "known", "blocks"))
    return tuple(dict.fromkeys(column for part in parts for column in part))


def _relabelled(method: Measure, files: Pair, columns: Known) -> bool:
    """Whether a search for the nearest record meets numbers in one file and labels in the other, or joins by some."""
    sides = files.released.schema(), files.original.schema()
    kinds = [{side[column].is_numeric() for side in sides} for column in columns if all(column in s for s in sides)]
    relabelled = bool(getattr(method, "blocks", None)) or any(len(kind) > 1 for kind in kinds)
    return name_of(type(method)) == "nearest" and files.truth != "unknown" and relabelled


def _for_all(method: Measure, score: Score, files: Pair, columns: Known) -> Score:
    """A score that takes pairs of records, with what those people change whose record is not known."""
    kind = kind_of(method)
    if files.rest is None or kind not in ("link", "interval"):
        return score
    return files.rest.allowing(score, known_to(method, columns) if kind == "link" else None)


def _intruder(method: Measure, columns: Known) -> tuple[Any, ...]:
    """Attacks of one intruder have the same aim and the same knowledge."""
    return kind_of(method), known_to(method, columns), getattr(method, "sensitive", None)


def _swept(
    files: Pair, every: Known, plan: steps.KnowledgePlan, scenarios: Sequence[Scenario], progress: Progress | None
) -> pl.DataFrame:
    """The nearest-record attack for what each combination of columns tells."""
    nearest = find("nearest", "measure")
    scores = [score for scenario in scenarios for score in scenario.tried]
    if files.released.synthetic:
        return pl.DataFrame(schema=steps.SWEEP_SCHEMA)

    def attempt(columns: Known) -> Score:
        method = filled_in(nearest(), files, Aim(columns, (), ()))
        return _for_all(method, _measured(method, files).brief(), files, columns)

    whole = label(filled_in(nearest(), files, Aim(every, (), ())))
    return steps.sweep(every, plan, attempt, next((s for s in scores if s.name == whole), None), progress)
