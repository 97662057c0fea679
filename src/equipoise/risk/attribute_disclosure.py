"""Attribute disclosure by groups of records whose sensitive values are equal or in a narrow range."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.cells import Cells, as_cells
from equipoise.data.equivalence_classes import Classes, Split
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import DataError, ParameterError
from equipoise.methods.method import label
from equipoise.methods.parameters import share
from equipoise.methods.score import Score
from equipoise.risk._cell_score import cell_score


@dataclass(frozen=True, slots=True)
class AttributeDisclosure:
    """Share of records in key groups that disclose their sensitive value without any match.

    A group of equal keys is disclosive when its most frequent sensitive value holds at least `share` of it (1: all
    alike), or, with `range`, when its largest and smallest value differ by at most `range` (in the column's units).
    Missing sensitive values count as a value of their own for `share` and are passed over for `range`, where a group
    without values is not disclosive. A group of one record is: knowing who it is tells the value.

    Source: Massell (1999), section III.a.iii, the danger of 0-cells.
    Misleads when the sensitive column is itself coarse, or the groups are small samples of larger ones.
    Cost: O(cells of keys x sensitive); with `missing="any"` a row for each class and value among all that match it.

    >>> table = pl.DataFrame({"town": ["a", "a", "b"], "ill": ["no", "yes", "no"], "n": [3, 1, 4]})
    >>> AttributeDisclosure("ill").measure(Cells.of(table), Cells.of(table)).value
    0.5
    """

    sensitive: str
    share: float = 1.0
    range: float | None = None

    def __post_init__(self) -> None:
        share(self.share, "share")
        if self.range is not None and not self.range >= 0:
            raise ParameterError("range must be 0 or more, in the units of the sensitive column.")

    def by(self, roles: Roles) -> tuple[str, ...]:
        return (*(key for key in roles.keys if key != self.sensitive), self.sensitive)

    def measure(self, released: Records | Cells, original: Records | Cells) -> Score:
        cells = as_cells(released, self.by(released.roles)) if isinstance(released, Records) else released
        cells.place(self.sensitive)
        groups = cells.margin(tuple(column for column in cells.by if column != self.sensitive))
        split = Classes.of(cells, (self.sensitive,)).together().split(self.sensitive)
        flagged = self._alike(split) if self.range is None else self._narrow(split, self.range)
        return cell_score(label(self), released, groups, np.where(flagged, 1.0, 0.0))

    def _alike(self, split: Split) -> Integers:
        largest = np.zeros(split.size)
        np.maximum.at(largest, split.ids, split.n)
        return np.asarray(largest >= self.share * split.records - 1e-9)

    def _narrow(self, split: Split, width: float) -> Integers:
        if not split.values.dtype.is_numeric():
            kind = split.values.dtype
            raise DataError(f"Column {self.sensitive!r} is {kind}, not numeric: it has no range. Use share.")
        x = split.values.cast(pl.Float64).fill_null(float("nan")).to_numpy()[split.codes]
        high, low = np.full(split.size, -np.inf), np.full(split.size, np.inf)
        np.fmax.at(high, split.ids, x)
        np.fmin.at(low, split.ids, x)
        return np.asarray((high >= low) & (high - low <= width))
