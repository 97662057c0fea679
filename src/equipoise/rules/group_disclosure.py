"""Group disclosure in counts: empty cells, full cells, and cells that hold all but a few of their margin."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from equipoise.data.cells import Cells, amount
from equipoise.data.tables.cell_status import structural
from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import additive, as_table
from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.ground.errors import DataError, require_columns
from equipoise.methods.parameters import check_fields, share
from equipoise.methods.protection_levels import Together, contribution, refuse_uncounted

SHARE_TOLERANCE = 1e-9
"""Part of a record by which a share of a margin may miss a whole number of records."""


@dataclass(frozen=True, slots=True)
class GroupDisclosure(Together):
    """A cell is sensitive when it tells something about everybody in a group: the members of one of its margins.

    With N records in a margin and m in one of its cells, at any level of a hierarchy: all are there (m = N, a full
    cell), or all but fewer than `k` (N - m < k: somebody among those few learns about all others), or the `share` of
    them or more; with `zeros` nobody is (m = 0 < N, an empty cell). `columns` are those whose values may not be
    learned, all of the table unless given. Structural zeros are never sensitive, and a cell that is full because all
    beside it are structural zeros is not either. With t = max(k, floor((1 - share) N) + 1), at most N: protected when
    N - m >= t is possible, downwards by t - (N - m), and the largest cell beside it may hold t; an empty cell may hold
    one record. A record counts the mean contribution to the margin. Empty cells are unknown where suppressed.

    Source: Hundepool et al. (2024), *Handbook on Statistical Disclosure Control*, second edition, section 5.2, group
    attribute and within-group disclosure; Lupp and Langsrud (2021), *Suppression of directly-disclosive cells in
    frequency tables*, N - m <= c for a coalition of c, here k = c + 1. Protection levels are of our own. Misleads when
    the group is defined by several margins at once, or by a column that is not in the table.

    >>> people = eq.Records.of(pl.DataFrame({"k": [*"aaaabbbb"], "ill": [*"ppppppqq"]}), eq.Roles())
    >>> table = eq.table(people, ["k", "ill"])
    >>> table.table.filter(GroupDisclosure(columns="ill").flag(table)).select("k", "ill", "n").rows()
    [('a', 'p', 4), ('a', 'q', 0)]
    """

    k: int = 1
    zeros: bool = True
    share: float = 1.0
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self, k=1)
        share(self.share, "share")

    def hides_zeros(self, cells: Cells) -> bool:
        return True

    def flag(self, cells: Cells) -> pl.Series:
        levels = self.levels(cells)
        return ((levels["lower"] > 0) | (levels["upper"] > 0)).alias("unsafe")

    def levels(self, cells: Cells) -> pl.DataFrame:
        refuse_uncounted(cells)
        table = as_table(cells, "GroupDisclosure")
        groups = margins(table, self.columns)
        lower, upper = np.zeros(len(table)), np.zeros(len(table))
        others, least = groups.size - groups.n, self.least(groups.size)
        close = others < least
        np.maximum.at(lower, groups.cell[close], ((least - others) * groups.record)[close])
        beside, held = groups.largest_beside()
        short = close & (held < least)
        np.maximum.at(upper, beside[short], ((least - held) * groups.record)[short])
        empty = (groups.n == 0) & self.zeros
        np.maximum.at(upper, groups.cell[empty], groups.record[empty])
        return pl.DataFrame({"lower": np.minimum(lower, amount(table)), "upper": upper})

    def least(self, size: Integers) -> Integers:
        """How many of a margin must be able to be elsewhere: t."""
        some = np.floor((1.0 - self.share) * size + SHARE_TOLERANCE).astype(np.int64) + 1
        return np.minimum(np.maximum(self.k, some), size)

    def explain(self, cell: Mapping[str, Any]) -> str:
        return "It depends on its margins and the cells beside it: flag a table to know."

    def reasons(self, table: Table, places: Sequence[int]) -> dict[int, str]:
        """Why each of these cells is sensitive, where it is: the first group that it tells about."""
        groups, wanted, reasons = margins(table, self.columns), set(places), dict[int, str]()
        totals, least = additive(table).totals[groups.margin], self.least(groups.size)
        close, names = (groups.size - groups.n < least) & (groups.n > 0), table.table.select(table.by)
        for row in np.flatnonzero(close | ((groups.n == 0) & self.zeros)).tolist():
            if (cell := int(groups.cell[row])) in wanted:
                n, size = int(groups.n[row]), int(groups.size[row])
                many = "none" if not n else "all" if n == size else f"all but {size - n:,}"
                group = " · ".join(map(str, names.row(int(totals[row]))))
                reasons.setdefault(cell, f"It holds {many} of the {size:,} in {group}: that tells something of each.")
        beside, held = groups.largest_beside()
        for cell in set(beside[close & (held < least)].tolist()) & wanted:
            reasons.setdefault(cell, "It is the largest beside a cell that holds all or nearly all of a group.")
        return reasons


class Margins(NamedTuple):
    """A row for each cell and margin it is part of: the number of the margin, records of both, a mean contribution."""

    margin: Integers
    cell: Integers
    n: Integers
    size: Integers
    record: Floats

    def largest_beside(self) -> tuple[Integers, Integers]:
        """For each row the largest other cell of the margin, the first of equals, and its records."""
        order = np.lexsort((self.cell, -self.n, self.margin))
        starts = np.flatnonzero(np.diff(self.margin[order], prepend=-1))
        rank = np.searchsorted(np.unique(self.margin), self.margin)
        first, second = order[starts][rank], order[starts + 1][rank]
        beside = np.where(first == np.arange(len(self.cell)), second, first)
        return self.cell[beside], self.n[beside]


def margins(table: Table, columns: tuple[str, ...] = ()) -> Margins:
    """The occupied margins of a table in these columns (all), and their cells that are no structural zeros.

    Margins with fewer than two such cells tell nothing. Cost: that of the relations of the table.
    """
    if len(table) < prod(len(axis) for axis in table.axes):
        raise DataError("Group disclosure is in empty cells too, and a table of so many cells has none: use fewer.")
    require_columns(columns, table.by)
    relations = additive(table)
    entries = relations.matrix.tocoo()
    part = (entries.data > 0) & ~structural(table)[entries.col]
    row, cell = entries.row[part], entries.col[part]
    total = relations.totals[row]
    wanted = [table.nodes[table.place(c)] for c in columns or table.by]
    told: Booleans = np.any([nodes[cell] != nodes[total] for nodes in wanted], axis=0) & (table.n[total] > 0)
    several = np.bincount(row, minlength=relations.relations)[row] > 1
    row, cell, total = (numbers[told & several] for numbers in (row, cell, total))
    size = table.n[total]
    record = amount(table)[total] / size
    return Margins(row, cell, table.n[cell], size, np.where(record > 0, record, contribution(table)))
