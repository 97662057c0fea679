"""Protected table with its certificate: what may be published, what stays inside, and the outcome in words."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.cells import amount, gross
from equipoise.data.tables.cell_status import STRUCTURAL, structural
from equipoise.data.tables.keyed_cells import count_variables
from equipoise.data.tables.statistic import Percentile, Statistic
from equipoise.data.tables.table import Table
from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.ground.errors import RefusedError
from equipoise.ground.progress import Progress
from equipoise.methods.method import Rule, label, name_of
from equipoise.policies.dominance_check import Diagnosis, diagnose
from equipoise.presentation.notebook import tabulated_html
from equipoise.presentation.numbers import number, value_text
from equipoise.presentation.reading_order import row_order
from equipoise.search.table_comparison import TableComparison
from equipoise.tables import Adjust, CellKey, CellKeyAmounts, Round, Suppress, period_changes
from equipoise.tables.audits import Attackers, Certificate, KnownTable, certify, certify_counts, view_of

STATUS_CODES = {"published": 1, "changed": 1, "sensitive": 3, "secondary": 11}
EMPTY_CELL_CODE, NOT_STRUCTURAL_CODE = 14, 13
"""The numbers tau-ARGUS gives to what becomes of a cell; those without records have their own, and where it is said
which of them are structural zeros the others have another."""
MIN_REPORTED_GAP = 1e-4
"""Below this a pattern counts as the cheapest."""


@dataclass(frozen=True, eq=False, repr=False)
class Tabulated:
    """A protected table with its certificate: every audited cell and the interval each kind of attacker can compute.

    `audit` and all that tells sensitive cells from secondary ones is internal; `public` is what may be published;
    `attackers` says whom the audit covers, and whom not. Of a `statistic` the table has the sums, `numbers` what is
    published, and `parts` the tables of its other components, suppressed alike.
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
    statistic: Statistic | None = None
    numbers: Floats | None = field(default=None, repr=False)
    parts: "tuple[Tabulated, ...]" = ()
    components: bool = False

    @property
    def what(self) -> str:
        """What the table says of each cell, in words."""
        value = self.table.measured or "records"
        return value if self.statistic is None else self.statistic.words(value)

    @property
    def true_numbers(self) -> Floats:
        """What the table would say of each cell: the statistic, or the value."""
        return amount(self.table) if self.numbers is None else self.numbers

    @property
    def published_numbers(self) -> Floats:
        """What is published of each cell, not a number where it is suppressed or there is none."""
        return np.where(self.hidden, np.nan, self.table.published_values if self.numbers is None else self.numbers)

    @cached_property
    def hidden(self) -> Booleans:
        """Cells that are suppressed, or whose share is of a suppressed total."""
        hidden = np.isnan(self.table.published_values)
        return hidden if self.statistic is None else hidden | hidden[self.statistic.needed(self.table)]

    @property
    def suppresses(self) -> bool:
        """Whether cells are suppressed, not changed."""
        return isinstance(self.method, Suppress)

    @property
    def known_cells(self) -> KnownTable:
        """What the public can infer of each cell, and which need protection."""
        return view_of(self.table, self.rule, name_of(type(self.method)))

    @property
    def count_variables(self) -> tuple[str, ...]:
        """Columns that are counted beside the records."""
        return count_variables(self.table)

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
        value, hidden = gross(self.table), np.isnan(self.table.published_values)
        everything = float(value[self.table.inner].sum())
        return float(value[self.table.inner & hidden].sum()) / everything if everything else 0.0

    @property
    def narrowest(self) -> float | None:
        """The smallest width of a sensitive cell's interval, as a share of the cell."""
        cells = self.outsider.filter(pl.col("status") == "sensitive") if self.suppresses else self.outsider
        widths = cells.select(w=(pl.col("upper") - pl.col("lower")) / pl.col("value").abs()).filter(
            pl.col("w").is_finite()
        )
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
        if isinstance(self.statistic, Percentile) and counts["suppressed"]:
            few, close = _cells(counts["sensitive"], "sensitive "), _cells(counts["secondary"], "secondary ")
            return f"{few} and {close} suppressed: no published {self.what} is one person's value, or of too few."
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
        if isinstance(self.statistic, Percentile):
            cells = f"{_cells(counts['suppressed'])} of {counts['cells']:,} suppressed"
            return f"{cells} to protect those who contributed; every number is the mean of several values."
        if self.suppresses:
            return (
                f"{_cells(counts['suppressed'])} of {counts['cells']:,} suppressed to protect those who contributed; "
                f"an outsider cannot compute them from what is published.{self._rounded}"
            )
        law = self.table.history[-1]
        return law.words[:1].upper() + law.words[1:].rstrip(".") + "."

    @property
    def _rounded(self) -> str:
        base = self.table.history[-1].parameters.get("round")
        return f" Published cells are rounded to multiples of {base}." if base else ""

    @cached_property
    def public(self) -> pl.DataFrame:
        """What may be published: labels, the `published` number, and whether it is `published` or `suppressed`."""
        numbers, hidden = pl.Series(self.published_numbers).fill_nan(None), pl.Series(self.hidden)
        status = pl.when(hidden).then(pl.lit("suppressed")).otherwise(pl.lit("published"))
        status = pl.when(numbers.is_null() & ~hidden).then(pl.lit("empty")).otherwise(status)
        labels = self.table.table.select(self.table.by)
        counts = {f"published_{name}": _plain(self.table.more[f"published_{name}"]) for name in self.count_variables}
        return labels.with_columns(
            published=_plain(numbers), **self._published_components, status=pl.select(status).to_series(), **counts
        )[self.reading]

    @property
    def _published_components(self) -> dict[str, pl.Series]:
        """What the statistic is made of, where that is published too."""
        if not self.components:
            return {}
        tables = (self, *self.parts)
        columns = {f"sum_{i}": amount(one.table) for i, one in enumerate(tables, start=1)} | {"count": self.table.total}
        return {name: _plain(pl.Series(np.where(self.hidden, np.nan, x)).fill_nan(None)) for name, x in columns.items()}

    @cached_property
    def internal(self) -> pl.DataFrame:
        """Every cell with its true value, contributors, what is published, its status and tau-ARGUS' code for it."""
        cells = self.table.table.select(*self.table.by, "n", "contributors").with_columns(
            value=_plain(pl.Series(amount(self.table))),
            **({} if self.numbers is None else {"statistic": _plain(pl.Series(self.numbers).fill_nan(None))}),
            published=_plain(pl.Series(self.published_numbers).fill_nan(None)), **self._published_components,
            **{f"{part}_{name}": _plain(self.table.more[f"{part}_{name}"].cast(pl.Float64))
               for name in self.count_variables for part in ("n", "published")},
            status=self.statuses, code=self.statuses.replace_strict(STATUS_CODES, return_dtype=pl.Int64),
        )  # fmt: skip
        other = (self.table.n == 0) & ~structural(self.table) & (STRUCTURAL in self.table.more.columns)
        empty = pl.Series(np.where(other, NOT_STRUCTURAL_CODE, EMPTY_CELL_CODE))
        return cells.with_columns(
            code=pl.when((pl.col("n") == 0) & (pl.col("status") == "published")).then(empty).otherwise("code"),
            n=pl.when(pl.col("contributors").is_not_null()).then("n"),
        )[self.reading]

    def to_plain(self) -> dict[str, Any]:
        """Plain data with stable keys, without labels and without values."""
        return {
            "words": self.words.replace("\xa0", " "),
            "by": list(self.table.by),
            "value": self.table.measured,
            "statistic": self.what if self.statistic is not None else None,
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


def certified(
    original: Table, released: Table, method: Any, rule: Rule | None, seed: int, progress: Progress | None = None
) -> Tabulated:  # fmt: skip
    """What was made of a table, audited, and refused where the audit fails."""
    certificate = certify(released, rule, progress)
    refuse(certificate, method)
    counts = tuple(_count_note(name, one, method) for name, one in certify_counts(released, rule).items())
    diagnosis = diagnose(original, rule) if rule is not None else None
    notes = (*(_gap(released) if isinstance(method, Suppress) else ()), *certificate.notes, *counts)
    return Tabulated(released, certificate.cells, method, rule, diagnosis, notes, seed, attackers=certificate.attackers)


def _count_note(name: str, certificate: Certificate, method: Any) -> str:
    """What the audit says of a count variable; refused where it fails."""
    refuse(certificate, method, f" of {name!r}")
    needing = f"{_cells(certificate.cells.height)} needing protection"
    if certificate.notes:
        return f"The counts of {name!r} were audited: passed, {needing}. {certificate.notes[0]}"
    return f"The counts of {name!r} were audited together with all others of this table: passed, {needing}."


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


def refuse(certificate: Certificate, method: Any, what: str = "") -> None:
    """Nothing is published when the audit fails."""
    if not certificate.exact and not certificate.exposed and not certificate.insiders:
        return
    failures = [f"{_cells(certificate.exact)} exactly"] if certificate.exact else []
    if certificate.exposed:
        failures.append(f"{_cells(certificate.exposed, 'sensitive ')} to within the protection level")
    tip = {
        Round: "take a larger base, or suppress cells",
        CellKey: "allow larger changes, or suppress cells",
        CellKeyAmounts: "allow more noise (small, most), or suppress cells",
        Adjust: "let other cells move further, or suppress cells",
    }.get(type(method), "publish coarser groups")
    people = [f"an outsider can compute {' and '.join(failures)}"] if failures else []
    if certificate.insiders:
        people.append(f"somebody who contributes can compute {_cells(certificate.insiders, 'sensitive ')} exactly")
    raise RefusedError(f"Nothing was published, the audit{what} failed: {'; '.join(people)}. Instead, {tip}.")


def _cells(many: int, what: str = "") -> str:
    return f"{number(many)} {what}{'cell' if many == 1 else 'cells'}"


def _plain(numbers: pl.Series) -> pl.Series:
    """Whole numbers as such where all are; others to the twelve digits that adding up leaves."""
    values: Floats = numbers.drop_nulls().to_numpy()
    if np.array_equal(values, np.round(values)):
        return numbers.cast(pl.Int64)
    return numbers.round_sig_figs(12)
