"""From a survey to the decision which cells to publish, with all that has to be said beside it."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any, Literal

import polars as pl

from equipoise.data.hierarchy import Hierarchy
from equipoise.data.records import Records
from equipoise.files import CsvFormulas, csv_formulas
from equipoise.files.memory import refuse_work
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import ParameterError
from equipoise.ground.options import option, with_options
from equipoise.losses.expectation import as_text, read
from equipoise.presentation.pages import source_name
from equipoise.publishing import decision_files
from equipoise.publishing.alternatives import Answers, Ways
from equipoise.publishing.other_rules import RuleComparison
from equipoise.publishing.prior_fit import Residuals
from equipoise.publishing.publication import MODEL_PANEL, Decision, Publication, PublicationOptions, publication

LIMIT, ANSWERS_PANEL = "How far to go: one of these", "More answers"
"""Where the command line lists the rest."""
WRONG_S_FACTOR = 10.0
"""How many times too small or too large a wrong S is, when no other losses are named to compare with."""


@dataclass(frozen=True, eq=False, repr=False)
class Published:
    """A decision, the publication it was taken in, what other rules would give, and how well the prior fits.

    `words` say it as a manager reads it, `notes` what was assumed. `answers` are there where a hierarchy was cut.
    """

    publication: Publication
    decision: Decision
    comparison: RuleComparison
    residuals: Residuals | None = None
    answers: Answers | None = None
    notes: tuple[str, ...] = ()
    by_share: bool = False
    merge: str | None = None

    @property
    def words(self) -> str:
        return self.decision.words

    @property
    def counts(self) -> dict[str, int]:
        """How many cells there are, are published and are withheld."""
        published = int(self.decision.cells["publish"].sum())
        return {"total": len(self.publication), "published": published, "withheld": len(self.publication) - published}

    @cached_property
    def alternatives(self) -> pl.DataFrame:
        """What each rule gives at the same risk (at the same share published, where that was asked for)."""
        if self.by_share:
            return self.comparison.at(publish_share=1 - self.decision.withheld)
        return self.comparison.at(risk_at_most=self.decision.risk)

    @cached_property
    def cells(self) -> pl.DataFrame:
        """A row per cell: what names it, y, n, N, prior, posterior mean and interval, R0, R1, ratio, `publish`, and
        the joint `answer` where a hierarchy was cut. Its labels are data values: for internal use.
        """
        cells = self.publication.cells.with_columns(self.decision.cells["publish"])
        if self.answers is None:
            return cells
        return cells.with_columns(self.answers.cells.select("answer", "piece", "together"))

    def in_order(self, which: Literal["line", "withheld", "published"], most: int) -> Integers:
        """Rows of cells in their order of publication: so many on each side of the line, or of one side.

        Of those withheld the most dangerous comes first, of those published the last that was published.
        """
        order, many = self.publication.trade_off.order, self.counts["published"]
        if which == "line":
            return order[max(0, many - most) : many + most]
        return (order[many:] if which == "withheld" else order[:many])[::-1][:most]

    def to_plain(self, *, values: bool = False) -> dict[str, Any]:
        """Plain data with stable keys; the cells, whose labels are data values, only with `values`."""
        of, chosen, check, joint = self.publication, self.decision, self.residuals, self.answers
        misfit = of.misfit
        return {
            "decision": self.words.replace("\xa0", " "),
            "risk": chosen.risk,
            "withheld": chosen.withheld,
            "realised": chosen.realised._asdict(),
            "cutoff": [_plain(end) for end in chosen.cutoff],
            "cells": self.counts,
            "domain": list(of.data.domain),
            "disclosure": as_text(of.disclosure),
            "nonpublication": as_text(of.nonpublication),
            "alternatives": self.alternatives.to_dicts(),
            "misfit": misfit and {"expected": misfit.expected, "counted": misfit.counted, "fits": misfit.fits},
            "residuals": check and {"distance": check.misfit.distance, "p": check.misfit.p},
            "answers": joint and {"counts": _counts(joint), "loss": joint.loss, "two_way": joint.two_way},
            "notes": list(self.notes),
            **({"table": [{n: _plain(v) for n, v in row.items()} for row in self.cells.to_dicts()]} if values else {}),
        }  # fmt: skip

    def __repr__(self) -> str:
        return f"Published({self.words!r})"


def _counts(joint: Answers) -> dict[str, int]:
    return dict(joint.cells.group_by("answer").len().sort("answer").rows())


def _plain(value: Any) -> Any:
    """A value as JSON has it: null for what is not finite, text for dates."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


@dataclass(frozen=True)
class PublishOptions(PublicationOptions):
    """Options of `publish`: those of `publication`, how far to go, what to compare with, where to write."""

    risk_at_most: float | None = option(
        None, "Leave at most this share of the risk of publishing everything.", cli="text", flag="risk",
        metavar="SHARE", panel=LIMIT,
    )  # fmt: skip
    publish_share: float | None = option(
        None, "Publish at least this share of what there is.", cli="text", flag="share", metavar="SHARE", panel=LIMIT
    )
    cutoff: float | None = option(
        None, "Publish where R1, the loss of publishing, is below so many times R0.", cli="number", metavar="NUMBER",
        panel=LIMIT,
    )  # fmt: skip
    compare: Iterable[Any] = option(
        (), "What would another loss cost? Also of both: uniques:1/cell. Repeatable.", cli="names",
        metavar="NAME:VALUES", panel=MODEL_PANEL,
    )  # fmt: skip
    merge: str | None = option(
        None, "Also cut the hierarchy of this column: merge cells, or tell coarser ones.", cli="text", metavar="COLUMN",
        panel=ANSWERS_PANEL,
    )  # fmt: skip
    hierarchy: Hierarchy | None = option(None, "The hierarchy of that column; that of the roles unless given.")
    ways: Ways | None = option(
        None, "What else can be done with a cell: the shares of both losses it leaves, as round=0.5,0.1.", cli="names",
        flag="way", metavar="NAME=DISCLOSURE,SILENCE", panel=ANSWERS_PANEL,
    )  # fmt: skip
    out: str | Path | None = option(
        None, "A folder for decision.csv, decision.json and report.html, or one such file; they name cells.",
        cli="path", metavar="DIR or FILE",
    )  # fmt: skip
    overwrite: bool = option(False, "Replace what an earlier run wrote there.", cli="switch")
    csv_formulas: CsvFormulas = csv_formulas()
    name: str | None = option(None, "What the page calls the survey; the name of its file unless given.")

    def __post_init__(self) -> None:
        if sum(aim is not None for aim in (self.risk_at_most, self.publish_share, self.cutoff)) != 1:
            raise ParameterError("Give one of risk_at_most, publish_share and cutoff.")

    @property
    def model(self) -> dict[str, Any]:
        """Options of `publication`."""
        return {part.name: getattr(self, part.name) for part in fields(PublicationOptions)}


@with_options(PublishOptions)
def publish(source: Any, options: PublishOptions) -> Published:
    """Decide which cells of a survey to publish, and write the decision where `out` says.

    The first arguments are those of `eq.publication`. One of `risk_at_most`, `publish_share` and `cutoff` says how far
    to go. `compare` names other losses of disclosure, or pairs of both losses ('uniques:10/cell'); without it, a loss
    with S is compared with itself at a tenth and at ten times that S. `merge` is the column along whose `hierarchy`
    (that of the roles when not given) cells may also be told together, at the exchange of the two losses that the
    decision implies; `ways` what else can be done with a cell. `out` is a folder for decision.csv, decision.json and
    report.html, or one such file: they name cells, so they are internal.
    """
    place = Path(options.out) if options.out is not None else None
    if place is not None:
        reads = (source.source.path,) if isinstance(source, Records) and source.source else ()
        decision_files.refuse(place, options.overwrite, reads)
    outcome = _decided(source, options)
    if place is not None:
        file = source_name(source, "the survey") if isinstance(source, Records) else "the table"
        decision_files.write(outcome, place, options.overwrite, options.name or file, options.csv_formulas)
    return outcome


def _decided(source: Any, options: PublishOptions) -> Published:
    """The publication, its decision, and all that is said beside it."""
    others = dict(_rival(one, options.nonpublication) for one in options.compare)
    others = others or _wrong(options.disclosure, options.nonpublication)
    if isinstance(source, Records):
        refuse_work(source, "decide on", options.domain, options.target)
    whole = publication(source, **options.model)
    chosen = whole.choose(risk_at_most=options.risk_at_most, publish_share=options.publish_share, cutoff=options.cutoff)
    exchange = options.cutoff if options.cutoff is not None else _exchange(chosen)
    answers = (
        whole.answers(options.merge, options.hierarchy, cutoff=exchange, ways=options.ways) if options.merge else None
    )
    residuals = None if whole.data.configurations else whole.residuals()
    notes = (*_given_notes(source, options.prior, options.population), *whole.notes)
    notes += (*([residuals.words] if residuals else []), *_tied(whole))
    if answers:
        notes += (f"The joint answers exchange silence for disclosure at {exchange:.4g}.", *answers.notes)
    by_share = options.publish_share is not None
    return Published(whole, chosen, whole.compare(others), residuals, answers, notes, by_share, options.merge)


def _rival(rival: Any, nonpublication: Any) -> tuple[str, tuple[Any, Any]]:
    """Another loss of disclosure, or both losses, by what they are called: 'uniques:1', 'uniques:10/cell'."""
    both = tuple(rival.split("/", 1)) if isinstance(rival, str) else rival if isinstance(rival, tuple) else (rival,)
    loss, silent = read(both[0]), both[1] if len(both) > 1 else nonpublication
    against = f" against {silent if isinstance(silent, str) else as_text(silent)}" if len(both) > 1 else ""
    return as_text(loss) + against, (loss, silent)


def _wrong(disclosure: Any, nonpublication: Any) -> dict[str, tuple[Any, Any]]:
    """The same loss with an S that is far too small and far too large."""
    loss: Any = read(disclosure)
    if not is_dataclass(loss) or not hasattr(loss, "S"):
        return {}
    losses = [replace(loss, S=_plainly(loss.S * factor)) for factor in (1 / WRONG_S_FACTOR, WRONG_S_FACTOR)]  # type: ignore[type-var]
    return {as_text(other): (other, nonpublication) for other in losses}


def _plainly(value: float) -> float:
    """Six digits, a whole number as such."""
    short = float(f"{value:.6g}")
    return int(short) if short.is_integer() else short


def _exchange(chosen: Decision) -> float:
    """A cutoff that gives the decision: the ratio of the first cell withheld, or beyond that of the last published."""
    last, first = chosen.cutoff
    return first if isfinite(first) else max(1.0, 2 * last)


def _given_notes(source: Any, prior: Any, population: Any) -> tuple[str, ...]:
    """What was given rather than estimated."""
    note = []
    if isinstance(prior, tuple | list) and len(prior) == 2:
        note.append(f"Prior: alpha {prior[0]:g} and beta {prior[1]:g}, as given.")
    if not isinstance(source, Records):
        note.append("N is taken from the table.")
    elif population is not None:
        note.append(f"N is taken from {f'the column {population!r}' if isinstance(population, str) else 'a register'}.")
    return tuple(note)


def _tied(publication: Publication) -> tuple[str, ...]:
    many = publication.trade_off.tied
    if not many:
        return ()
    return (f"{many:,} cells are tied in R1/R0: the one whose silence costs more comes first, then the larger domain.",)
