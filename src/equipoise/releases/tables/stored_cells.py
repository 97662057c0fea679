"""The cells of a released table as its private folder keeps them: read back with what was withheld."""

from pathlib import Path

import numpy as np
import polars as pl

from equipoise.data.cells import amount
from equipoise.data.records import Law
from equipoise.data.tables.table import Table, table
from equipoise.files import read

CELLS = "table.sbs"
"""The private file with every cell and its status, which can be read back and audited."""


def cells_of(private: Path) -> Table:
    """The table with its statuses: withheld is what is sensitive or a helper."""
    found = table(read(private / CELLS), ready=True)
    if "published" in found.more.columns:
        return found
    marked = "sensitive" in found.more.columns
    hidden = found.more["sensitive"].fill_null(value=False).to_numpy() if marked else np.zeros(len(found), dtype=bool)
    status = pl.Series(np.where(hidden, "sensitive", "published"))
    return found.protected(np.where(hidden, np.nan, amount(found)), status, Law("suppress", (), "as it was released"))
