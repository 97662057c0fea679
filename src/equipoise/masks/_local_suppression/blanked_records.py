"""From records to cells of equal keys, and from the blanks of cells back to records."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.cells import coded
from equipoise.data.records import Records
from equipoise.ground.arrays import Integers
from equipoise.ground.packed_keys import group_coded
from equipoise.ground.randomness import Draws


@dataclass(frozen=True, eq=False, repr=False)
class RecordCells:
    """Cells of equal keys: the codes of each key (0 where missing), the records `n`, and the cell `of_row` of each."""

    data: Records
    codes: Integers
    n: Integers
    of_row: Integers

    @classmethod
    def of(cls, data: Records) -> "RecordCells":
        """Each record's cell is found as cells are counted. Cost: O(records), or a sort where keys have many values."""
        columns = coded(data, data.roles.keys)
        of_row, first = group_coded(columns)
        codes = np.empty((len(columns), len(first)), np.min_scalar_type(2 + max(column.size for column in columns)))
        for own, column in zip(codes, columns, strict=True):
            np.add(column.codes[first], column.values.null_count() == 0, out=own, casting="unsafe")
        return cls(data, codes, np.bincount(of_row), of_row)

    def blanked(self, cells: Integers, masks: Integers, draws: Draws) -> pl.DataFrame:
        """The table with these blanks, one mask for each record that has some, by its cell.

        Where records of a cell are treated unlike, the order of their draws says which of them are blanked.
        """
        table, keys = self.data.collect(), self.data.roles.keys
        if not len(cells):
            return table
        mask_of_cell = np.zeros(len(self.n), dtype=np.min_scalar_type((1 << len(keys)) - 1))
        mask_of_cell[cells] = masks
        many = np.bincount(cells, minlength=len(self.n))
        unlike = np.bincount(cells, masks != mask_of_cell[cells], len(self.n)) > 0
        unlike |= (many > 0) & (many < self.n)
        mask_of_cell[unlike] = 0
        mask_of_row = mask_of_cell[self.of_row]
        chosen = np.flatnonzero(unlike[cells])
        if len(chosen):
            chosen = chosen[np.lexsort((masks[chosen], cells[chosen]))]
            own, order = cells[chosen], self._drawn(table, unlike, draws)
            within = np.arange(len(own)) - np.searchsorted(own, own)
            mask_of_row[order[np.searchsorted(self.of_row[order], own) + within]] = masks[chosen]
        blanks = {key: (mask_of_row >> place & 1).astype(np.bool_) for place, key in enumerate(keys)}
        return table.with_columns(
            pl.when(~pl.Series(blank)).then(pl.col(key)).alias(key) for key, blank in blanks.items() if blank.any()
        )

    def _drawn(self, table: pl.DataFrame, unlike: Integers, draws: Draws) -> Integers:
        """The records of the cells whose records are treated unlike, by cell, each cell in a drawn order."""
        rows = np.flatnonzero(unlike[self.of_row])
        if self.data.roles.id:
            chance = draws.uniform(self.data.keys_of_rows()[rows])
        else:
            chance = draws.uniform(Records.of(table[rows], self.data.roles).keys_of_rows())
        return rows[np.lexsort((chance, self.of_row[rows]))]
