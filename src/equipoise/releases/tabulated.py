"""Protected table with its certificate: what may be published, what stays inside, and the outcome in words."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.cells import amount
from equipoise.data.tables.table import Table
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import RefusedError
from equipoise.methods.method import Rule, label, name_of
from equipoise.policies.dominance_check import Diagnosis, diagnose
from equipoise.presentation.notebook import tabulated_html
from equipoise.presentation.numbers import number, value_text
from equipoise.presentation.reading_order import row_order
from equipoise.search.table_comparison import TableComparison
from equipoise.tables import Adjust, CellKey, Round, Suppress, period_changes
from equipoise.tables.audits import Attackers, Certificate, KnownTable, certify, view_of

STATUS_CODES = {"published": 1, "changed": 1, "sensitive": 3, "secondary": 11}
EMPTY_CELL_CODE = 14
"""The numbers tau-ARGUS gives to what becomes of a cell; those without records have their own."""
MIN_REPORTED_GAP = 1e-4
"""Below this a pattern counts as the cheapest."""


@dataclass(frozen=True, eq=False, repr=False)
class Tabulated:
    """A protected table with its certificate: every audited cell and the interval each kind of attacker can compute.

    `audit` and all that tells sensitive cells from secondary ones is internal; `public` is what may be published;
    `attackers` says whom the audit covers, and whom not.
    """

    table: Table
    audit: pl.DataFrame
    method: Any
    rule: Rule | None = None
    diagnosis: Diagnosis | None = None
    notes: tuple[str, ...] = ()
    seed: int = field(default=0, repr=False)
    compared: TableComparison | None = None
    attackers: Attackers = Attackers()

    @property
    def suppresses(self) -> bool:
        """Whether cells are suppressed, not changed."""
        return isinstance(self.method, Suppress)

    @property
    def known_cells(self) -> KnownTable:
        """What the public can infer of each cell, and which need protection."""
        return view_of(self.table, self.rule, name_of(type(self.method)))

    @cached_property
    def statuses(self) -> pl.Series:
        """What became of each cell: published, changed, sensitive or secondary."""
        return self.table.more["status"]

    @cached_property
    def outsider(self) -> pl.DataFrame:
        """The audit against an outsider: one row for each cell."""
        return self.audit.filter(pl.col("against") == "outsider")

    @cached_property
    def changes(self) -> pl.DataFrame | None:
        """Differences to the last period's released table, in reading order; None where the pattern followed none."""
        like = getattr(self.method, "like", None)
        if like is None or like in self.table.more.columns:
            return None
        return period_changes(self.table, like)[self.reading]

    @cached_property
    def reading(self) -> Integers:
        """The cells in the order in which people read them, totals last."""
        return row_order(self.table)

    @cached_property
    def counts(self) -> dict[str, int]:
        """Cells, those that are sensitive, suppressed, secondary or changed, and those that failed the audit: none.

        `weaker` are sensitive cells that keep less than their level against somebody who contributes.
        """
        weaker = self.audit.filter(pl.col("against") != "outsider", "exposed").select(self.table.by).unique()
        cells = {name: int((self.statuses == name).sum()) for name in ("sensitive", "secondary", "changed")}
        return {
            "cells": len(self.table),
            "sensitive": cells["sensitive"] if self.suppresses else self.outsider.height,
            "suppressed": cells["sensitive"] + cells["secondary"],
            "secondary": cells["secondary"],
            "changed": cells["changed"],
            "exposed": int(self.outsider["exposed"].sum()),
            "exact": int(self.outsider["exact"].sum()),
            "weaker": weaker.height,
        }

    @property
    def share(self) -> float:
        """The share of the value that is in suppressed inner cells."""
        value, hidden = amount(self.table), np.isnan(self.table.published_values)
        everything = float(value[self.table.inner].sum())
        return float(value[self.table.inner & hidden].sum()) / everything if everything else 0.0

    @property
    def narrowest(self) -> float | None:
        """The smallest width of a sensitive cell's interval, as a share of the cell."""
        cells = self.outsider.filter(pl.col("status") == "sensitive") if self.suppresses else self.outsider
        widths = cells.select(w=(pl.col("upper") - pl.col("lower")) / pl.col("value")).filter(pl.col("w").is_finite())
        return None if widths.is_empty() else float(widths["w"].min())  # type: ignore[arg-type]

    @property
    def warnings(self) -> tuple[Diagnosis, ...]:
        """What is wrong with the rules that were used here or compared, each once."""
        others = self.compared.diagnoses if self.compared else ()
        warnings = (*([self.diagnosis] if self.diagnosis else ()), *others)
        return tuple({warning.rule: warning for warning in warnings}.values())

    @property
    def words(self) -> str:
        """The outcome in one sentence, for internal use."""
        counts = self.counts
        if not self.suppresses:
            return f"{_cells(counts['changed'])} changed of {counts['cells']:,}: {self._certified}."
        cells = (
            f"{_cells(counts['sensitive'], 'sensitive ')} and {_cells(counts['secondary'], 'secondary ')} suppressed"
        )
        if not counts["suppressed"]:
            return f"No cell of {counts['cells']:,} is sensitive: everything is published."
        return f"{cells}: {value_text(self.share, 'share')} of the value; {self._certified}."

    @property
    def _certified(self) -> str:
        if self.audit.is_empty():
            return "none was sensitive"
        if self.rule is None:
            return "an outsider can compute no small cell exactly"
        whom = " and to everybody who contributes" if len(self.attackers.against) + len(self.attackers.less) > 1 else ""
        certain = f"every sensitive cell is uncertain by at least its protection level to an outsider{whom}"
        if not (weaker := self.counts["weaker"]):
            return certain
        return f"{certain}, but for {_cells(weaker, 'sensitive ')} that {'keeps' if weaker == 1 else 'keep'} less"

    @property
    def public_words(self) -> str:
        """The outcome without what tells sensitive cells from secondary ones."""
        counts = self.counts
        if self.suppresses:
            return (
                f"{_cells(counts['suppressed'])} of {counts['cells']:,} suppressed to protect those who contributed; "
                "an outsider cannot compute them from what is published."
            )
        law = self.table.history[-1]
        return law.words[:1].upper() + law.words[1:].rstrip(".") + "."

    @cached_property
    def public(self) -> pl.DataFrame:
        """What may be published: labels, the `published` number, and whether it is `published` or `suppressed`."""
        numbers = pl.Series(self.table.published_values).fill_nan(None)
        status = pl.when(numbers.is_null()).then(pl.lit("suppressed")).otherwise(pl.lit("published"))
        labels = self.table.table.select(self.table.by)
        return labels.with_columns(published=_plain(numbers), status=pl.select(status).to_series())[self.reading]

    @cached_property
    def internal(self) -> pl.DataFrame:
        """Every cell with its true value, contributors, what is published, its status and tau-ARGUS' code for it."""
        cells = self.table.table.select(*self.table.by, "n", "contributors").with_columns(
            value=_plain(pl.Series(amount(self.table))),
            published=_plain(pl.Series(self.table.published_values).fill_nan(None)),
            status=self.statuses, code=self.statuses.replace_strict(STATUS_CODES, return_dtype=pl.Int64),
        )  # fmt: skip
        return cells.with_columns(
            code=pl.when((pl.col("n") == 0) & (pl.col("status") == "published"))
            .then(EMPTY_CELL_CODE)
            .otherwise("code"),
            n=pl.when(pl.col("contributors").is_not_null()).then("n"),
        )[self.reading]

    def to_plain(self) -> dict[str, Any]:
        """Plain data with stable keys, without labels and without values."""
        return {
            "words": self.words.replace("\xa0", " "),
            "by": list(self.table.by),
            "value": self.table.measured,
            "rule": label(self.rule) if self.rule is not None else None,
            "method": name_of(type(self.method)),
            "counts": self.counts,
            "share_suppressed": self.share if self.suppresses else None,
            "narrowest": self.narrowest,
            "warning": self.diagnosis.words if self.diagnosis else None,
            "notes": list(self.notes),
            "audit": {"against": list(self.attackers.internal), "not_against": list(self.attackers.not_cover)},
            "compared": self.compared.to_plain() if self.compared else None,
            "changes": None if self.changes is None else dict(self.changes["change"].value_counts().rows()),
        }

    def _repr_html_(self) -> str:
        return tabulated_html(self)

    def __repr__(self) -> str:
        return f"Tabulated({self.words!r})"


def certified(original: Table, released: Table, method: Any, rule: Rule | None, seed: int) -> Tabulated:
    """What was made of a table, audited, and refused where the audit fails."""
    certificate = certify(released, rule)
    refuse(certificate, method)
    diagnosis = diagnose(original, rule) if rule is not None else None
    notes = (*(_gap(released) if isinstance(method, Suppress) else ()), *certificate.notes)
    return Tabulated(released, certificate.cells, method, rule, diagnosis, notes, seed, attackers=certificate.attackers)


def _gap(released: Table) -> tuple[str, ...]:
    """How far the pattern of suppressed cells is from the cheapest."""
    gap = released.history[-1].parameters.get("gap")
    if gap is None or not np.isfinite(gap):
        return ()
    if gap < MIN_REPORTED_GAP:
        return ("No pattern of suppressed cells costs less: this one is proven the cheapest.",)
    beside = " against outsiders alone" if getattr(released.history[-1].detail, "singletons", False) else ""
    share = value_text(float(gap), "share")
    return (f"At most {share} of the cost of its secondary cells is more than the cheapest pattern{beside} needs.",)


def refuse(certificate: Certificate, method: Any) -> None:
    """Nothing is published when the audit fails."""
    if not certificate.exact and not certificate.exposed and not certificate.insiders:
        return
    failures = [f"{_cells(certificate.exact)} exactly"] if certificate.exact else []
    if certificate.exposed:
        failures.append(f"{_cells(certificate.exposed, 'sensitive ')} to within the protection level")
    tip = {
        Round: "take a larger base, or suppress cells",
        CellKey: "allow larger changes, or suppress cells",
        Adjust: "let other cells move further, or suppress cells",
    }.get(type(method), "publish coarser groups")
    people = [f"an outsider can compute {' and '.join(failures)}"] if failures else []
    if certificate.insiders:
        people.append(f"somebody who contributes can compute {_cells(certificate.insiders, 'sensitive ')} exactly")
    raise RefusedError(f"Nothing was published, the audit failed: {'; '.join(people)}. Instead, {tip}.")


def _cells(many: int, what: str = "") -> str:
    return f"{number(many)} {what}{'cell' if many == 1 else 'cells'}"


def _plain(numbers: pl.Series) -> pl.Series:
    """Whole numbers as such where all are; others to the twelve digits that adding up leaves."""
    values: Floats = numbers.drop_nulls().to_numpy()
    if np.array_equal(values, np.round(values)):
        return numbers.cast(pl.Int64)
    return numbers.round_sig_figs(12)
