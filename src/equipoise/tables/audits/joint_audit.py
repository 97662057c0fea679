"""Tables of one data asset audited as one, whatever was done to each: suppressed, rounded, moved by keys or adjusted.

Each table says what a cell can be: its number where it was published as it is, anything where it was suppressed, and
the number give or take what the law allows where it was changed. What several tables say of one cell holds together,
and so do the relations of all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.cells import amount, may_be_negative
from equipoise.data.tables.linked_tables import Union
from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import CHANGE_TOLERANCE
from equipoise.ground.arrays import Booleans, Floats
from equipoise.methods.method import Rule
from equipoise.tables._suppression.guarded_cells import suppression_of
from equipoise.tables._suppression.problem import typical
from equipoise.tables._suppression.suppress_tables import tell_contributors
from equipoise.tables.audits.attacker_intervals import audit, too_close
from equipoise.tables.audits.changed_tables import MAX_CELLS, guarded, limits
from equipoise.tables.audits.suppressed_cells import Attacker, compared, insiders

KEYED_METHODS = ("cell_key", "cell_key_amounts")
"""Methods that change the same cell by the same number."""
EXACT_TOLERANCE = 1e-9
"""Share of a cell (or of one) within which its interval is a point."""


@dataclass(frozen=True, eq=False, repr=False)
class KnownTable:
    """A table, what the public can tell of each cell by itself, and how far those that need it must stay uncertain.

    `guarded` says which cells need protection, `below` and `above` how far; `told` what was published, `method` how.
    """

    table: Table
    method: str
    told: Floats
    low: Floats
    high: Floats
    guarded: Booleans
    below: Floats
    above: Floats


@dataclass(frozen=True)
class JointAudit:
    """Guarded cells of all tables that follow `exact`, those known too `close`, and whether relations were used.

    `changed` counts the cells that were published before with another change; `complete` says that every sum that
    follows from the records was used (`Union`). `insiders` has for each kind of contributors how many sensitive cells
    somebody knows exactly, and too closely; None where that was not asked. `absent` says that some contributors are in
    earlier tables alone, so that of their part in a cell nothing is known; `by_labels` that the records of some tables
    are not known.
    """

    exact: int
    close: int
    related: bool
    changed: int = 0
    complete: bool = True
    insiders: Mapping[str, tuple[int, int]] | None = None
    absent: bool = False
    by_labels: bool = False

    @property
    def known(self) -> int:
        """Sensitive cells that somebody who contributes knows exactly: of the kind that knows most."""
        return max((exact for exact, _ in (self.insiders or {}).values()), default=0)


def view_of(table: Table, rule: Rule | None, method: str) -> KnownTable:
    """What the public can infer of each cell of a table, and which cells need protection."""
    suppresses = method == "suppress"
    flagged, below, above = guarded(table, rule)
    low, high = bounds(table, not suppresses)
    below, above = (np.where(flagged, side, 0.0) for side in (below, above))
    needs = np.isnan(table.published_values) if suppresses else flagged
    return KnownTable(table, method, table.published_values, low, high, needs, below, above)


def together(new: KnownTable, earlier: Sequence[KnownTable]) -> JointAudit:
    """What follows from a new table and earlier ones of the same quantity.

    Where all of them suppress cells and change none, small counts are audited as whole numbers. A secondary cell that
    was published before tells nothing new: a standard deviation may hide what its sum does not. Nothing more is asked
    where a cell was changed before by another number: whoever has both can average.
    """
    if all(view.method == "suppress" for view in (new, *earlier)):
        union, cells = compared([new.table, *(view.table for view in earlier)])
        close = sum(_short(cells.filter(pl.col("table") == i), view) for i, view in enumerate(earlier, start=1))
        exact, exposed = int((cells["exact"] & ~_public_before(union, cells)).sum()), int(cells["exposed"].sum())
        kinds, absent = _insiders(union, new, earlier), union.contributors is not None and union.contributors.absent
        return JointAudit(exact, exposed + close, True, 0, union.complete, kinds, absent, union.by_labels)
    if other := otherwise(new, earlier):
        return JointAudit(0, 0, True, other)
    return joint([new, *earlier])


def _public_before(union: Union, cells: pl.DataFrame) -> pl.Series:
    """Which of the suppressed cells are secondary ones that an earlier table publishes."""
    told = [~np.isnan(table.published_values) for table in union.tables]
    known = union.gathered([np.zeros_like(told[0]), *told[1:]])
    rows = [known[place][~public] for public, place in zip(told, union.places, strict=True)]
    return pl.Series(np.concatenate(rows)) & (cells["status"] == "secondary")


def _insiders(
    union: Union, new: KnownTable, earlier: Sequence[KnownTable]
) -> dict[str, tuple[int, int]] | None:  # fmt: skip
    """How many sensitive cells of all tables each kind of contributors knows exactly, and too closely."""
    mask = suppression_of(new.table)
    if mask is None or not mask.singletons or not tell_contributors(union):
        return None
    hidden = ~union.gathered([~np.isnan(view.table.published_values) for view in (new, *earlier)])
    levels = [(view.guarded & (view.below + view.above > 0), view.below, view.above) for view in (new, *earlier)]
    named = union.contributors is not None
    asked: Attacker = "everybody" if named else "lone contributor"
    parts = insiders(union, hidden, levels, mask.coalition if named else 1, against=asked)
    kinds = ("lone contributor", "contributor", *(["coalition"] if mask.coalition > 1 else []))
    counts = dict.fromkeys(kinds if named else kinds[:1], (0, 0))
    return counts | {
        kind.partition(" of ")[0]: (int(cells.exact.sum()), int((cells.weaker | cells.unsettled).sum()))
        for kind, cells in parts.items()
    }


def _short(cells: pl.DataFrame, view: KnownTable) -> int:
    """Sensitive cells of an earlier table that all of them together show to within their levels."""
    hidden = np.isnan(view.table.published_values)
    value, low, high = (cells[name].to_numpy() for name in ("value", "lower", "upper"))
    return int(too_close(value, low, high, view.below[hidden], view.above[hidden]).sum())


def bounds(table: Table, changed: bool) -> tuple[Floats, Floats]:
    """What each cell of a released table can be by itself."""
    value = amount(table)
    if changed:
        low, high = limits(table)
        return np.minimum(low, value), np.maximum(high, value)
    hidden = np.isnan(table.published_values)
    floor = np.where(may_be_negative(table), -np.inf, 0.0)
    return np.where(hidden, floor, value), np.where(hidden, np.inf, value)


def joint(tables: Sequence[KnownTable]) -> JointAudit:
    """The guarded cells of all tables that can be computed exactly, and too closely; and whether relations were used.

    With [a, b] what a cell x can be by everything that is published, and l, u its levels: exact where b = a, too close
    where a > x - l or b < x + u.
    """
    union, low, high = intervals(tables)
    counts = [_exact_and_close(view, low[place], high[place]) for view, place in zip(tables, union.places, strict=True)]
    exact, close = (sum(side) for side in zip(*counts, strict=True))
    related = union.table_cells <= MAX_CELLS
    return JointAudit(exact, close, related, complete=union.complete, by_labels=union.by_labels)


def intervals(tables: Sequence[KnownTable]) -> tuple[Union, Floats, Floats]:
    """What each cell of all tables together can be, by what each says of it and by how they add up.

    Relations are used for up to 5,000 cells. Misleads when the attacker knows that counts are whole, or how likely a
    change is. Cost: at most two linear programs for each cell.
    """
    union = Union.of([view.table for view in tables])
    low = np.minimum(union.gathered([view.low for view in tables]), union.values)
    high = union.bounded(np.maximum(union.gathered([view.high for view in tables], np.minimum, np.inf), union.values))
    if union.table_cells > MAX_CELLS:
        return union, low, high
    ranges = audit(union.additive, union.values, low < high, low=low, high=high, targets=~union.atoms)
    return union, ranges.lower, ranges.upper


def _exact_and_close(view: KnownTable, low: Floats, high: Floats) -> tuple[int, int]:
    value = amount(view.table)
    exact = view.guarded & (high - low <= EXACT_TOLERANCE * np.maximum(typical(value), value))
    short = too_close(value, low, high, view.below, view.above)
    return int(exact.sum()), int((view.guarded & ~exact & short & (view.below + view.above > 0)).sum())


def otherwise(new: KnownTable, earlier: Sequence[KnownTable]) -> int:
    """The cells that were moved by keys in an earlier table as well, and by another number than now."""
    cells = 0
    for old in earlier if new.method in KEYED_METHODS else ():
        if old.method == new.method:
            union = Union.of([new.table, old.table])
            one, two = (_placed(union, place, view) for place, view in zip(union.places, (new, old), strict=True))
            cells += int((np.abs(one - two) > CHANGE_TOLERANCE * np.maximum(typical(np.abs(one)), np.abs(one))).sum())
    return cells


def _placed(union: Union, place: "np.ndarray[tuple[int], np.dtype[np.int64]]", view: KnownTable) -> Floats:
    """What a table publishes of each cell of the union; not a number where it has none."""
    values = np.full(union.cells, np.nan)
    values[place] = view.told
    return values


def frame(view: KnownTable) -> pl.DataFrame:
    """What must be kept of a table to audit it together with later ones, by the labels of its cells."""
    labels = view.table.table.select(pl.col(view.table.by).cast(pl.String))
    parts = ("told", "low", "high", "guarded", "below", "above")
    return labels.rename({name: f"by {name}" for name in view.table.by}).with_columns(
        pl.Series(name, getattr(view, name)) for name in parts
    )


def read_back(table: Table, frame: pl.DataFrame, method: str) -> KnownTable:
    """The same from what was kept, in the order of the table as it was read back."""
    labels = table.table.select(pl.col(name).cast(pl.String).alias(f"by {name}") for name in table.by)
    rows = labels.join(frame, on=labels.columns, how="left", maintain_order="left", nulls_equal=True)
    arrays = {name: rows[name].fill_null(np.nan).to_numpy() for name in ("told", "low", "high")}
    levels = {name: rows[name].fill_null(0.0).to_numpy() for name in ("below", "above")}
    low = np.where(np.isnan(arrays["low"]), 0.0, arrays["low"])
    high = np.where(np.isnan(arrays["high"]), np.inf, arrays["high"])
    guarded = rows["guarded"].fill_null(value=False).to_numpy()
    return KnownTable(table, method, arrays["told"], low, high, guarded, **levels)
