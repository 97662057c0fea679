"""Certificate of a released table: the interval of every cell that needs protection, and whom the audit covers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from equipoise.data.cells import amount, may_be_negative
from equipoise.data.tables.a_priori import SAFE, a_priori
from equipoise.data.tables.keyed_cells import count_variables, count_view
from equipoise.data.tables.linked_tables import Union
from equipoise.data.tables.signed_relations import HOLDER_IS_RECORD
from equipoise.data.tables.table import Table
from equipoise.ground.arrays import Floats
from equipoise.ground.progress import Progress, Stoppable, TimeLeft, signs_of_life
from equipoise.methods.method import Rule
from equipoise.tables._suppression.contributor_knowledge import counted, least_known
from equipoise.tables._suppression.guarded_cells import suppression_of
from equipoise.tables._suppression.problem import typical
from equipoise.tables.audits.changed_tables import guarded, narrowed, narrowed_counts
from equipoise.tables.audits.exposure import Exposure
from equipoise.tables.audits.largest_contribution import guess_notes
from equipoise.tables.audits.suppressed_cells import MAX_WHOLE, Attacker, audit

WITH_TABLES = {
    "outsider": "an outsider who has",
    "lone contributor": "everybody who is alone in suppressed cells and has",
    "contributor": "everybody who shares cells, knows what he has in them and has",
    "coalition": "several together, as many as above, who are alone in cells and have",
}
"""Who has earlier tables as well, by kind."""
STAGE_SHARES = {"auditing what": 0.02, "computing": 0.28, "proving": 0.3, "auditing against": 0.4}
"""Share of the time that each stage of an audit takes."""
TOO = "of this data too"
SAME_RECORDS = "somebody who knows which records are in the cells, himself too, beyond what their labels say"
ABSENT = "contributors to earlier tables whose records are not in this one, or were revised"
SIGNS = "somebody who knows which suppressed numbers are negative"
OTHER_TABLES = "somebody who has other tables of this data (no register given)"


@dataclass(frozen=True)
class Attackers:
    """Whom an audit was passed `against`, against whom with `less` than the levels, and whom it does `not_cover`.

    Each is a phrase without numbers, fit to be published; `short` says of those in `less` how many cells have how much.
    """

    against: tuple[str, ...] = ()
    less: tuple[str, ...] = ()
    short: tuple[str, ...] = ()
    not_cover: tuple[str, ...] = ()

    @property
    def internal(self) -> tuple[str, ...]:
        """Everybody covered, with what is short of the levels."""
        return (*self.against, *(f"{who}: {words}" for who, words in zip(self.less, self.short, strict=True)))

    @property
    def public(self) -> tuple[str, ...]:
        """Everybody covered, without numbers."""
        return (*self.against, *(f"{who}, some cells to less than their full level" for who in self.less))

    def with_tables(
        self, earlier: int, insiders: Mapping[str, tuple[int, int]] | None = None, *, absent: bool = False,
        by_labels: bool = False,
    ) -> "Attackers":  # fmt: skip
        """After an audit together with so many earlier tables of a register, by an outsider and these `insiders`.

        For each kind: how many sensitive cells they know exactly, and how many too closely.
        """
        rest = tuple(who for who in self.not_cover if who != OTHER_TABLES)
        if not earlier:
            return replace(
                self, not_cover=(*rest, "somebody who has other tables of this data than those of the register")
            )
        tables = "the earlier table" if earlier == 1 else f"the {earlier:,} earlier tables"
        words = {kind: f"{who} {tables} {TOO}" for kind, who in WITH_TABLES.items()}
        short = {words[kind]: close for kind, (_, close) in (insiders or {}).items() if close}
        full = [words[kind] for kind in ("outsider", *(insiders or {})) if words[kind] not in short]
        open_to = [f"contributors who use {tables} too"] if insiders is None else []
        open_to += [f"contributors who share cells and use {tables} too"] if insiders and len(insiders) == 1 else []
        open_to += [ABSENT] if absent else []
        open_to += [f"{SAME_RECORDS} (of an earlier table the records are not known)"] if by_labels else []
        return Attackers(
            (*self.against, *full), (*self.less, *short), (*self.short, *(_keeping_less(n) for n in short.values())),
            (*rest, *open_to, "somebody who has tables of this data that are not in the register"),
        )  # fmt: skip

    def as_stated(self, against: Sequence[str], not_against: Sequence[str]) -> "Attackers":
        """What a statement says, where it is the same but for the register that it was made with; else these."""
        stated = tuple(who for who in against if TOO not in who), tuple(filter(_own, not_against))
        own = tuple(who for who in self.public if TOO not in who), tuple(filter(_own, self.not_cover))
        begins = tuple(who.startswith(tuple(WITH_TABLES.values())) for who in against if TOO in who)
        return Attackers(tuple(against), not_cover=tuple(not_against)) if stated == own and all(begins) else self


def _keeping_less(cells: int) -> str:
    return f"{cells:,} sensitive {'cell keeps' if cells == 1 else 'cells keep'} less than the level"


def _own(phrase: str) -> bool:
    """Whether a phrase about who is not covered has nothing to do with a register."""
    return "register" not in phrase and "earlier table" not in phrase


@dataclass(frozen=True, eq=False, repr=False)
class Certificate:
    """A row of `cells` per audited cell and kind of attacker with its interval, `notes` on what the audit used and did
    not, and whom it covers."""

    cells: pl.DataFrame
    notes: tuple[str, ...] = ()
    attackers: Attackers = Attackers()

    @property
    def exact(self) -> int:
        """Cells that an outsider can compute exactly."""
        return int(self._outsider["exact"].sum())

    @property
    def exposed(self) -> int:
        """Sensitive cells that an outsider can compute to within their protection levels."""
        return int(self._outsider["exposed"].sum())

    @property
    def insiders(self) -> int:
        """Sensitive cells that somebody who contributes can compute exactly."""
        labels = [name for name in self.cells.columns if name not in AUDIT_COLUMNS]
        return self.cells.filter(pl.col("against") != "outsider", "exact").select(labels).unique().height

    @property
    def _outsider(self) -> pl.DataFrame:
        return self.cells.filter(pl.col("against") == "outsider")


AUDIT_COLUMNS = ("status", "value", "against", "lower", "upper", "exact", "exposed", "reached", "published")
"""What an audit says of a cell beside its labels."""


def certify(released: Table, rule: Rule | None, progress: Progress | None = None) -> Certificate:
    """Audit a table: its suppressed cells where it has any, else all that the rule flags, or small ones without it.

    There is a sign of life every second, with an estimate of the time left; an audit cannot be stopped.
    """
    timed = TimeLeft(progress, STAGE_SHARES) if progress is not None else None
    with signs_of_life(timed, "auditing what is published") as alive:
        return _certified(released, rule, Stoppable(alive).going_on if alive is not None else None)


def _certified(released: Table, rule: Rule | None, progress: Progress | None) -> Certificate:
    if released.history and released.history[-1].mask == "suppress":
        mask = suppression_of(released)
        guarded: Attacker = "everybody" if mask is not None and mask.singletons else "outsider"
        cells = audit(released, rule, against=guarded, progress=progress)
        suppressed = int(np.isnan(released.published_values).sum())
        notes = (*_on_stop(released), *_on_whole_numbers(released, suppressed), *_declared_safe(released, rule))
        return Certificate(cells, notes, suppression_attackers([released], cells))
    return changed_cells(released, rule)


def _on_stop(released: Table) -> tuple[str, ...]:
    """Whether the pattern was completed in a hurry."""
    if not released.history[-1].parameters.get("stopped"):
        return ()
    return ("The search for suppressed cells was stopped early and completed by the quick way: the pattern was audited "
            "as always, but more may be suppressed than is needed.",)  # fmt: skip


def suppression_attackers(tables: Sequence[Table], cells: pl.DataFrame) -> Attackers:
    """Whom the audit of suppressed tables covers, in words."""
    mask, union = suppression_of(tables[0]), Union.of(tables)
    counts = tables[0].measured is None
    held = any("holder" in table.more.columns and HOLDER_IS_RECORD not in table.more.columns for table in tables)
    limits = mask is not None and mask.limits is not None
    outsider = (
        "an outsider who knows each value roughly beforehand, as closely as was said" if limits else "an outsider"
    )
    who = "holding that" if held else "respondent who" if counts else "contributor who"
    own = "that he is counted" if counts and not held else f"what {'it' if held else 'he'} has in them"
    names = {
        "lone contributor": f"every {who} is alone in suppressed cells and knows them",
        "contributor": f"every {who} shares cells and knows {own}",
        "coalition": f"any {mask.coalition if mask else 0} of those who are alone in cells, together",
    }
    covered = _kinds(mask, union) if mask is not None and mask.singletons else ()
    against, less, short = [outsider], [], []
    for kind in covered:
        rows = cells.filter(pl.col("against").str.starts_with(kind))
        lacking = rows.filter("exposed")
        if lacking.is_empty():
            against.append(names[kind])
        else:
            less.append(names[kind])
            short.append(_short(cells, lacking))
    open_to = _not_covered(mask, union, covered, names, limits=limits, holdings=not counts and not held)
    return Attackers(tuple(against), tuple(less), tuple(short), open_to)


def _kinds(mask: object, union: Union) -> tuple[str, ...]:
    """The kinds of contributors that the tables tell about."""
    if not counted(union):
        return ()
    several = ("coalition",) if getattr(mask, "coalition", 1) > 1 else ()
    shared = union.contributors is not None or least_known(union) is not None
    return ("lone contributor", *(("contributor",) if shared else ()), *several)


def _short(cells: pl.DataFrame, lacking: pl.DataFrame) -> str:
    sensitive = cells.filter((pl.col("against") == "outsider") & pl.col("reached").is_not_null()).height
    unsettled = int(lacking["reached"].null_count())
    few = lacking.filter(pl.col("reached").is_not_null())
    words = []
    if few.height:
        keep = "keeps" if few.height == 1 else "keep"
        words.append(f"{few.height:,} of {sensitive:,} sensitive cells {keep} less than the level, the least "
                     f"{float(few['reached'].min()):.0%} of it")  # type: ignore[arg-type]  # fmt: skip
    if unsettled:
        words.append(f"{unsettled:,} of {sensitive:,} sensitive cells were not audited, for that took too long")
    return "; ".join(words)


def _not_covered(
    mask: object, union: Union, covered: tuple[str, ...], names: dict[str, str], *, limits: bool, holdings: bool
) -> tuple[str, ...]:
    """Whom the audit says nothing about."""
    size, told = getattr(mask, "coalition", 1), counted(union)
    phrases = {
        f"{names['lone contributor']} (singletons is off)": told and "lone contributor" not in covered,
        "contributors who know their own cells (the table does not say how many are in each)": not told,
        "contributors who know their part of a cell (the table does not say the largest)":
            told and "lone contributor" in covered and "contributor" not in covered,
        "coalitions" if size == 1 else f"coalitions of more than {size}": True,
        "holdings that are all of a cell together (of a ready table it is not known which are)":
            size > 1 and union.contributors is None and any("holder" in t.more.columns for t in union.tables),
        "holdings (no column of holdings given)": holdings,
        "somebody who knows values roughly beforehand": not limits,
        SIGNS: any(may_be_negative(table).any() for table in union.tables),
        f"{SAME_RECORDS} (of ready tables and relations the records are not known)": union.by_labels,
        "somebody who adds up classes of records that the tables share (there are too many)": not union.complete,
        OTHER_TABLES: True,
    }  # fmt: skip
    return tuple(who for who, missing in phrases.items() if missing)


def _on_whole_numbers(released: Table, suppressed: int) -> tuple[str, ...]:
    """Whether the audit of counts used that they are whole."""
    value = amount(released)
    if released.measured or not suppressed or not np.array_equal(value, np.round(value)):
        return ()
    if suppressed <= MAX_WHOLE:
        return ("The audit used that counts are whole numbers.",)
    return (f"With more than {MAX_WHOLE:,} cells suppressed the audit does not use that counts are whole: they may be "
            "known a little better than it says.",)  # fmt: skip


def _declared_safe(released: Table, rule: Rule | None) -> tuple[str, ...]:
    """How many cells that the rule calls sensitive were said to be safe beforehand."""
    said = a_priori(released)
    if said is None or rule is None or not (many := int((rule.flag(released).to_numpy() & said.cells(SAFE)).sum())):
        return ()
    return (f"{many:,} cells that the rule calls sensitive were said to be safe beforehand: they were not protected.",)


def certify_counts(released: Table, rule: Rule | None) -> dict[str, Certificate]:
    """The certificate of each count variable of a table, for who has all of them and the counts of records."""
    names, ranges = count_variables(released), narrowed_counts(released)[1:]
    views = zip(names, ranges, strict=True)
    return {name: changed_cells(count_view(released, name), rule, one) for name, one in views}


def changed_cells(
    released: Table, rule: Rule | None, ranges: tuple[Floats, Floats, tuple[str, ...]] | None = None
) -> Certificate:
    """A row per cell that needs protection: what it can be given what is published and how far each may be changed.

    Whose intervals these are stands at `tables.audits.changed_tables.narrowed`, where they are not given.
    """
    low, high, notes = narrowed(released) if ranges is None else ranges
    sensitive, below, above = guarded(released, rule)
    value = amount(released)
    exposed = Exposure(sensitive, value, low, high, below, above)
    exact = sensitive & (high - low <= 1e-9 * np.maximum(typical(value), value))
    cells = released.table.select(*released.by, "status").with_columns(
        value=value, against=pl.lit("outsider"), lower=low, upper=high, exact=pl.Series(exact),
        exposed=pl.Series(exposed.exposed), reached=pl.Series(1 - exposed.shortfall),
    )  # fmt: skip
    attackers = Attackers(
        ("an outsider who knows the method and how far it may change a number",), not_cover=(
            "contributors, who know their own values", "coalitions",
            "somebody who knows values roughly beforehand", OTHER_TABLES,
        )
    )  # fmt: skip
    notes = (*notes, *guess_notes(released, rule))
    return Certificate(cells.filter(pl.Series(sensitive)), notes, attackers)
