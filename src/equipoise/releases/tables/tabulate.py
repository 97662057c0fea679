"""From records to a table that may be published: protected, audited, and refused where the audit fails."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from equipoise import rules
from equipoise.data.cells import amount
from equipoise.data.hierarchy import Hierarchy
from equipoise.data.records import Records
from equipoise.data.roles import names
from equipoise.data.tables.ready_table import Ready
from equipoise.data.tables.table import Table, table
from equipoise.data.tables.table_arrays import without
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import ParameterError, RefusedError
from equipoise.ground.progress import Progress, report
from equipoise.ground.randomness import Draws, new_seed
from equipoise.methods.method import Rule, label, name_of
from equipoise.policies.dominance_check import Diagnosis, diagnose
from equipoise.policies.table_section import refuse_labels, refuse_names, rules_of, top_of, with_keys
from equipoise.presentation.notebook import tabulated_html
from equipoise.presentation.numbers import number, said
from equipoise.recipe.catalogue import parse
from equipoise.search.table_sweep import TableComparison, asked_beside, beside
from equipoise.tables import Adjust, CellKey, Round, Suppress, audit, difference
from equipoise.tables._suppression.suppress_tables import WHOLE
from equipoise.tables.audits.changed_intervals import changed_intervals

CODES = {"published": 1, "changed": 1, "sensitive": 3, "helper": 11}
EMPTY = 14
"""The numbers tau-ARGUS gives to what becomes of a cell; those without records have their own."""
LEAST_GAP = 1e-4
"""Below this a pattern counts as the cheapest."""


@dataclass(frozen=True, eq=False, repr=False)
class Tabulated:
    """A protected table with its certificate: every audited cell and the interval an attacker can compute for it.

    `audit` and all that tells sensitive cells from helpers is internal; `public` is what may be published.
    """

    table: Table
    audit: pl.DataFrame
    method: Any
    rule: Rule | None = None
    diagnosis: Diagnosis | None = None
    notes: tuple[str, ...] = ()
    seed: int = field(default=0, repr=False)
    compared: TableComparison | None = None

    @property
    def withholds(self) -> bool:
        """Whether cells are withheld, not changed."""
        return isinstance(self.method, Suppress)

    @cached_property
    def statuses(self) -> pl.Series:
        """What became of each cell: published, changed, sensitive or helper."""
        return self.table.more["status"]

    @cached_property
    def counts(self) -> dict[str, int]:
        """Cells, those that are sensitive, withheld, helpers or changed, and those that failed the audit: none."""
        found = {name: int((self.statuses == name).sum()) for name in ("sensitive", "helper", "changed")}
        return {
            "cells": len(self.table),
            "sensitive": found["sensitive"] if self.withholds else self.audit.height,
            "withheld": found["sensitive"] + found["helper"],
            "helpers": found["helper"],
            "changed": found["changed"],
            "exposed": int(self.audit["exposed"].sum()),
            "exact": int(self.audit["exact"].sum()),
        }

    @property
    def share(self) -> float:
        """The share of the value that is in withheld inner cells."""
        value, hidden = amount(self.table), np.isnan(self.table.told)
        everything = float(value[self.table.inner].sum())
        return float(value[self.table.inner & hidden].sum()) / everything if everything else 0.0

    @property
    def narrowest(self) -> float | None:
        """The smallest width of a sensitive cell's interval, as a share of the cell."""
        shown = self.audit.filter(pl.col("status") == "sensitive") if self.withholds else self.audit
        widths = shown.select(w=(pl.col("upper") - pl.col("lower")) / pl.col("value")).filter(pl.col("w").is_finite())
        return None if widths.is_empty() else float(widths["w"].min())  # type: ignore[arg-type]

    @property
    def warnings(self) -> tuple[Diagnosis, ...]:
        """What is wrong with the rules that were used here or compared, each once."""
        others = self.compared.diagnoses if self.compared else ()
        found = (*([self.diagnosis] if self.diagnosis else ()), *others)
        return tuple({warning.rule: warning for warning in found}.values())

    @property
    def words(self) -> str:
        """The outcome in one sentence, for internal use."""
        counts = self.counts
        if not self.withholds:
            return f"{_cells(counts['changed'])} changed of {counts['cells']:,}: {self._certified}."
        told = f"{_cells(counts['sensitive'], 'sensitive ')} and {_helpers(counts['helpers'])} withheld"
        if not counts["withheld"]:
            return f"No cell of {counts['cells']:,} is sensitive: everything is published."
        return f"{told}: {said(self.share, 'share')} of the value; {self._certified}."

    @property
    def _certified(self) -> str:
        if self.audit.is_empty():
            return "none was sensitive"
        if self.rule is None:
            return "no small cell can be computed exactly"
        return "every sensitive cell is uncertain by at least its protection level"

    @property
    def public_words(self) -> str:
        """The outcome without what tells sensitive cells from helpers."""
        counts = self.counts
        if self.withholds:
            return (
                f"{_cells(counts['withheld'])} of {counts['cells']:,} withheld to protect those who contributed; they "
                "cannot be computed from what is published."
            )
        law = self.table.history[-1]
        return law.words[:1].upper() + law.words[1:].rstrip(".") + "."

    @cached_property
    def public(self) -> pl.DataFrame:
        """What may be published: labels, the `published` number, and whether it is `published` or `withheld`."""
        told = pl.Series(self.table.told).fill_nan(None)
        status = pl.select(pl.when(told.is_null()).then(pl.lit("withheld")).otherwise(pl.lit("published"))).to_series()
        return self.table.table.select(self.table.by).with_columns(published=_plain(told), status=status)

    @cached_property
    def internal(self) -> pl.DataFrame:
        """Every cell with its true value, contributors, what is published, its status and tau-ARGUS' code for it."""
        shown = self.table.table.select(*self.table.by, "n", "contributors").with_columns(
            value=_plain(pl.Series(amount(self.table))), published=_plain(pl.Series(self.table.told).fill_nan(None)),
            status=self.statuses, code=self.statuses.replace_strict(CODES, return_dtype=pl.Int64),
        )  # fmt: skip
        return shown.with_columns(
            code=pl.when(pl.col("n") == 0).then(EMPTY).otherwise("code"),
            n=pl.when(pl.col("contributors").is_not_null()).then("n"),
        )

    def to_plain(self) -> dict[str, Any]:
        """Plain data with stable keys, without labels and without values."""
        return {
            "words": self.words.replace("\xa0", " "),
            "by": list(self.table.by),
            "value": self.table.measured,
            "rule": label(self.rule) if self.rule is not None else None,
            "method": name_of(type(self.method)),
            "counts": self.counts,
            "share_withheld": self.share if self.withholds else None,
            "narrowest": self.narrowest,
            "warning": self.diagnosis.words if self.diagnosis else None,
            "notes": list(self.notes),
            "compared": self.compared.to_plain() if self.compared else None,
        }

    def _repr_html_(self) -> str:
        return tabulated_html(self)

    def __repr__(self) -> str:
        return f"Tabulated({self.words!r})"


def tabulate(
    records: Records,
    by: str | Sequence[str] = (),
    value: str | None = None,
    *,
    rule: Rule | str | None = None,
    method: Any = None,
    hierarchies: Mapping[str, Hierarchy] | None = None,
    holding: str | None = None,
    weight: str | None = None,
    request: str | None = None,
    key: str | None = None,
    seed: int | None = None,
    compare: Sequence[Any] = (),
    ready: bool | Ready = False,
    progress: Progress | None = None,
) -> Tabulated:
    """Make a table with all its margins, protect it, audit what is published, and refuse it where the audit fails.

    `rule` says which cells are sensitive ('p-percent:10% | min-count:3'). `method` is what to do about them: withhold
    them and the cheapest helpers (`tables.Suppress(rule)`, done unless told), `tables.Adjust(rule)`, `tables.Round` or
    `tables.CellKey`; of the last two a rule is not needed but checked where given. Cell keys come from the column
    `key`; without one they are drawn from the secret `seed`. The other arguments are those of `eq.table`. `compare`
    names other methods ('round:5') to be tried beside, measured under the same rule. `progress` is called with (done,
    total, what); returning False stops.

    A table in which a withheld cell can be computed exactly, or a sensitive one to within its protection level, raises
    RefusedError. Cost: that of the table, the method and the audit, and of every method that is compared.
    """
    columns, wanted = _asked(by, rule, method)
    refuse_names(records, columns)
    method = Suppress(wanted) if method is None else method
    others = asked_beside(compare, wanted)
    if ready and any(isinstance(one, CellKey) for one in (method, *others)):
        raise ParameterError("Cell keys are made from the keys of records: a ready table has none.")
    seed = new_seed() if seed is None else seed
    records, key = with_keys(records, key, (method, *others), seed)
    made = table(
        records, columns, value, hierarchies=hierarchies, holding=holding, weight=weight, request=request,
        key=key, top=top_of((wanted, *rules_of(others))), ready=ready,
    )  # fmt: skip
    if ready:
        made = without(without(made, "published"), "status")
    report(progress, 0, 1, "protecting the table")
    shown = (
        method.apply(made, Draws(seed), progress) if isinstance(method, Suppress) else method.apply(made, Draws(seed))
    )
    found = certified(made, shown, method, wanted, seed)
    if others:
        found = replace(found, compared=beside(made, found.table, method, wanted, others, seed))
    return found


def certified(made: Table, shown: Table, method: Any, rule: Rule | None, seed: int) -> Tabulated:
    """What was made of a table, audited, and refused where the audit fails."""
    found, notes = _audited(shown, method, rule)
    refuse(found, method)
    diagnosis = diagnose(made, rule) if rule is not None else None
    return Tabulated(shown, found, method, rule, diagnosis, notes, seed)


def _asked(by: str | Sequence[str], rule: Rule | str | None, method: Any) -> tuple[tuple[str, ...], Any]:
    """The columns and the rule, checked before any data is read."""
    columns = names(by, "by")
    refuse_labels(columns)
    rule = parse(rule, "rule") if isinstance(rule, str) else rule
    if method is not None and not isinstance(method, Suppress | Round | CellKey | Adjust):
        raise ParameterError("method must be tables.Suppress, Round, CellKey or Adjust: others have no audit.")
    if isinstance(method, Suppress | Adjust):
        rule = rule if rule is not None else method.rule
        if rule != method.rule:
            raise ParameterError("The rule is said twice, and differently: give it to the method alone.")
    if rule is None and method is None:
        raise ParameterError("Say which cells are sensitive with a rule, like 'p-percent:10%' or 'min-count:3'.")
    return columns, rule


def _audited(shown: Table, method: Any, rule: Rule | None) -> tuple[pl.DataFrame, tuple[str, ...]]:
    if isinstance(method, Suppress):
        found = audit(shown, rule)
        return found, (*_gap(shown), *_whole(shown, found.height))
    return changed_intervals(shown, rule)


def _whole(shown: Table, withheld: int) -> tuple[str, ...]:
    """Whether the audit of counts used that they are whole."""
    value = amount(shown)
    if shown.measured or not withheld or not np.array_equal(value, np.round(value)):
        return ()
    if withheld <= WHOLE:
        return ("The audit used that counts are whole numbers.",)
    return (f"With more than {WHOLE:,} cells withheld the audit does not use that counts are whole: they may be known "
            "a little better than it says.",)  # fmt: skip


def _gap(shown: Table) -> tuple[str, ...]:
    gap = shown.history[-1].parameters.get("gap")
    if gap is None or not np.isfinite(gap):
        return ()
    if gap < LEAST_GAP:
        return ("No pattern of withheld cells costs less: this one is proven the cheapest.",)
    return (f"The pattern costs at most {said(float(gap), 'share')} more than the cheapest there can be.",)


def refuse(found: pl.DataFrame, method: Any) -> None:
    """Nothing is published when the audit fails."""
    exact, exposed = int(found["exact"].sum()), int(found["exposed"].sum())
    if not exact and not exposed:
        return
    failed = [f"{_cells(exact)} exactly"] if exact else []
    failed += [f"{_cells(exposed, 'sensitive ')} to within the protection level"] if exposed else []
    tip = {
        Round: "take a larger base, or withhold cells",
        CellKey: "allow larger changes, or withhold cells",
        Adjust: "let other cells move further, or withhold cells",
    }.get(type(method), "publish coarser groups")
    told = " and ".join(failed)
    raise RefusedError(f"Nothing was published, the audit failed: anybody can compute {told}. Instead, {tip}.")


def _cells(many: int, what: str = "") -> str:
    return f"{number(many)} {what}{'cell' if many == 1 else 'cells'}"


def _helpers(many: int) -> str:
    return f"{number(many)} {'helper' if many == 1 else 'helpers'}"


def _plain(told: pl.Series) -> pl.Series:
    """Whole numbers as such where all are; others to the twelve digits that adding up leaves."""
    known: Floats = told.drop_nulls().to_numpy()
    if np.array_equal(known, np.round(known)):
        return told.cast(pl.Int64)
    return told.round_sig_figs(12)


# --- several tables -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Linked(Sequence[Table]):
    """Tables that were protected together, in the order given, with the audit over all of them."""

    tables: tuple[Table, ...]
    audit: pl.DataFrame

    def __getitem__(self, place: Any) -> Any:
        return self.tables[place]

    def __iter__(self) -> Iterator[Table]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def __repr__(self) -> str:
        return f"Linked({len(self)} tables, {self.audit.height:,} withheld cells)"


def protect_tables(tables: Sequence[Table], method: Suppress | None = None) -> Linked:
    """Protect several tables of the same records at once, so that no one of them gives away what another withholds.

    Cells that tables share are withheld in all or in none. `method` is `tables.Suppress(rule)`; without it amounts are
    protected by the p% rule at 10 %, counts by at least three records. All are then audited as one
    (`tables.difference`), and RefusedError is raised where a cell can be computed.

    >>> from equipoise.data.roles import Roles
    >>> people = Records.of(pl.DataFrame({"k": [*"aaaaabbbbcc"], "s": [*"fmfmffmfmff"]}), Roles())
    >>> both = protect_tables([table(people, "k"), table(people, ["k", "s"])], Suppress(rules.MinCount(2)))
    >>> len(both), both.audit["exact"].any()
    (2, False)
    """
    given = list(tables)
    if method is None:
        method = Suppress(rules.PPercent(0.1) if given and given[0].measured else rules.MinCount(3))
    if not isinstance(method, Suppress):
        raise ParameterError("method must be tables.Suppress: only withheld cells can be protected together.")
    made = method.together(given)
    found = difference(made[0], made[1:]) if len(made) > 1 else audit(made[0])
    refuse(found, method)
    return Linked(tuple(made), found)
