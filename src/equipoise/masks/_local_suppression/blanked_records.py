"""From records to cells of equal keys, and from the blanks of cells back to records."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.records import Records
from equipoise.ground.arrays import Integers
from equipoise.ground.packed_keys import code, occupied_cells, steps
from equipoise.ground.randomness import Draws
from equipoise.masks._local_suppression.released_rows import Shares


@dataclass(frozen=True, eq=False, repr=False)
class RecordCells:
    """Cells of equal keys: the codes of each key (0 where missing), the records `n`, and each cell's `place`.

    `of_row` is the place of each record's cell; places are in the order of the cells, and may have gaps.
    """

    data: Records
    codes: Integers
    n: Integers
    place: Integers
    of_row: Integers

    @classmethod
    def of(cls, data: Records) -> "RecordCells":
        """Each record's cell is found as cells are counted. Cost: O(records), or a sort where keys have many values."""
        columns = [code(column) for column in data.collect(*data.roles.keys).iter_columns()]
        of_row, place, n, codes = occupied_cells(columns)
        for own, column in zip(codes, columns, strict=True):
            own += column.values.null_count() == 0
        return cls(data, codes, n, place, of_row)

    def blanked(self, shares: Shares, draws: Draws) -> pl.DataFrame:
        """The table with these blanks; where records of a cell are treated unlike, their draws say which have them."""
        table, keys = self.data.collect(), self.data.roles.keys
        if not len(shares.cells):
            return table
        by_draw = 1 << len(keys)
        mask_of_place = np.zeros(int(self.place[-1]) + 1, dtype=np.min_scalar_type(by_draw))
        less = np.empty(len(shares.cells), dtype=np.bool_)
        for step in steps(len(less)):
            mask_of_place[self.place[shares.cells[step]]] = shares.masks[step]
            less[step] = shares.many[step] < self.n[shares.cells[step]]
        some = shares[less]
        mask_of_place[self.place[some.cells]] = by_draw
        mask_of_row = mask_of_place[self.of_row]
        if len(some.cells):
            some = some[np.lexsort((some.masks, some.cells))]
            own, masks = (np.repeat(part, some.many) for part in (self.place[some.cells], some.masks))
            order = self._ordered(table, np.flatnonzero(mask_of_row == by_draw), draws)
            within = np.arange(len(own)) - np.searchsorted(own, own)
            mask_of_row[order] = 0
            mask_of_row[order[np.searchsorted(self.of_row[order], own) + within]] = masks
        masks_of_rows, ever = pl.Series(mask_of_row), int(np.bitwise_or.reduce(mask_of_row))
        keep = {key: masks_of_rows & (1 << place) == 0 for place, key in enumerate(keys) if ever >> place & 1}
        return table.with_columns(pl.when(rows).then(pl.col(key)).alias(key) for key, rows in keep.items())

    def _ordered(self, table: pl.DataFrame, rows: Integers, draws: Draws) -> Integers:
        """Records by cell, those of a cell in a drawn order."""
        own = None if self.data.roles.id else Records.of(table[rows], self.data.roles)
        chance = draws.uniform(own.keys_of_rows() if own else self.data.keys_of_rows()[rows])
        return rows[np.lexsort((chance, self.of_row[rows]))]
