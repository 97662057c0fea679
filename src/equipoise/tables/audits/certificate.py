"""Certificate of a released table: the interval of every cell that needs protection, whatever was done to it."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.cells import amount
from equipoise.data.tables.table import Table
from equipoise.methods.method import Rule
from equipoise.tables.audits.changed_tables import guarded, narrowed
from equipoise.tables.audits.exposure import Exposure
from equipoise.tables.audits.suppressed_cells import MAX_WHOLE, audit


@dataclass(frozen=True, eq=False, repr=False)
class Certificate:
    """A row of `cells` per audited cell with its interval, and `notes` on what the audit used and did not."""

    cells: pl.DataFrame
    notes: tuple[str, ...] = ()

    @property
    def exact(self) -> int:
        """Cells that anybody can compute exactly."""
        return int(self.cells["exact"].sum())

    @property
    def exposed(self) -> int:
        """Sensitive cells that anybody can compute to within their protection levels."""
        return int(self.cells["exposed"].sum())


def certify(released: Table, rule: Rule | None) -> Certificate:
    """Audit a table: its suppressed cells where it has any, else all that the rule flags, or small ones without it."""
    if released.history and released.history[-1].mask == "suppress":
        cells = audit(released, rule)
        return Certificate(cells, _on_whole_numbers(released, cells.height))
    return changed_cells(released, rule)


def _on_whole_numbers(released: Table, suppressed: int) -> tuple[str, ...]:
    """Whether the audit of counts used that they are whole."""
    value = amount(released)
    if released.measured or not suppressed or not np.array_equal(value, np.round(value)):
        return ()
    if suppressed <= MAX_WHOLE:
        return ("The audit used that counts are whole numbers.",)
    return (f"With more than {MAX_WHOLE:,} cells suppressed the audit does not use that counts are whole: they may be "
            "known a little better than it says.",)  # fmt: skip


def changed_cells(released: Table, rule: Rule | None) -> Certificate:
    """A row per cell that needs protection: what it can be given what is published and how far each may be changed.

    Whose intervals these are stands at `tables.audits.changed_tables.narrowed`.
    """
    low, high, notes = narrowed(released)
    sensitive, below, above = guarded(released, rule)
    value = amount(released)
    exposed = Exposure(sensitive, value, low, high, below, above).exposed
    exact = sensitive & (high - low <= 1e-9 * np.maximum(1.0, value))
    cells = released.table.select(*released.by, "status").with_columns(
        value=value, lower=low, upper=high, exact=pl.Series(exact), exposed=pl.Series(exposed)
    )
    return Certificate(cells.filter(pl.Series(sensitive)), notes)
