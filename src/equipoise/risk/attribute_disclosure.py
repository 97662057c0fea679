"""Groups of records whose sensitive values are all alike, or all in a narrow range."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.core.cell_score import cell_score
from equipoise.core.cells import Cells
from equipoise.core.codes import Floats, Integers, group
from equipoise.core.errors import DataError, ParameterError
from equipoise.core.matching import Meeting, meetings, missing
from equipoise.core.method import as_cells, label
from equipoise.core.records import Records
from equipoise.core.roles import Roles
from equipoise.core.score import Score


@dataclass(frozen=True, slots=True)
class AttributeDisclosure:
    """Share of records in key groups that give their sensitive value away without any match.

    A group of equal keys is disclosive when its most frequent sensitive value holds at least `share` of it (1: all
    alike), or, with `range`, when its largest and smallest value differ by at most `range` (in the column's units).
    Missing sensitive values count as a value of their own for `share` and are passed over for `range`, where a group
    without values is not disclosive. A group of one record is: knowing who it is tells the value.

    Source: Massell (1999), section III.a.iii, the danger of 0-cells.
    Misleads when the sensitive column is itself coarse, or the groups are small samples of larger ones.
    Cost: O(cells of keys x sensitive), times the patterns of missing keys with `missing="any"`.

    >>> table = pl.DataFrame({"town": ["a", "a", "b"], "ill": ["no", "yes", "no"], "n": [3, 1, 4]})
    >>> AttributeDisclosure("ill").measure(Cells.of(table), Cells.of(table)).value
    0.5
    """

    sensitive: str
    share: float = 1.0
    range: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            hint = " Write 80 % as 0.8." if self.share > 1 else ""
            raise ParameterError(f"share must be above 0 and at most 1, got {self.share:g}.{hint}")
        if self.range is not None and not self.range >= 0:
            raise ParameterError("range must be 0 or more, in the units of the sensitive column.")

    def by(self, roles: Roles) -> tuple[str, ...]:
        return (*(key for key in roles.keys if key != self.sensitive), self.sensitive)

    def measure(self, released: Records | Cells, original: Records | Cells) -> Score:
        cells = as_cells(released, self.by(released.roles)) if isinstance(released, Records) else released
        place, keys = cells.place(self.sensitive), tuple(column for column in cells.by if column != self.sensitive)
        groups = cells.margin(keys)
        classes = Classes.of(cells, groups, keys)
        flagged = self._alike(classes, place) if self.range is None else self._narrow(classes, self.range)
        return cell_score(label(self), released, groups, np.where(flagged, 1.0, 0.0))

    def _alike(self, classes: "Classes", place: int) -> Integers:
        codes = classes.cells.cube.codes[place].astype(np.int64)
        if self.share == 1:
            low, high = classes.ends(codes.astype(np.float64))
            return np.asarray(low == high)
        largest, size = classes.mode(codes)
        found: Integers = largest >= self.share * size - 1e-9
        return found

    def _narrow(self, classes: "Classes", width: float) -> Integers:
        values = classes.cells.values(self.sensitive)
        if not values.dtype.is_numeric():
            raise DataError(f"Column {self.sensitive!r} is {values.dtype}, not numeric: it has no range. Use share.")
        numbers = values.cast(pl.Float64).fill_null(float("nan")).to_numpy()
        low, high = classes.ends(numbers[classes.cells.cube.codes[classes.cells.place(self.sensitive)]])
        found: Integers = (high >= low) & (high - low <= width)
        return found


@dataclass(frozen=True, eq=False, repr=False)
class Classes:
    """Cells by keys and a sensitive column, and the group of equal keys each is in; groups that match are one class."""

    cells: Cells
    groups: Cells
    ids: Integers

    @classmethod
    def of(cls, cells: Cells, groups: Cells, keys: tuple[str, ...]) -> "Classes":
        if not keys:
            return cls(cells, groups, np.zeros(len(cells), dtype=np.int64))
        ids, _ = group([cells.cube.codes[cells.place(k)] for k in keys], [len(cells.values(k)) for k in keys])
        return cls(cells, groups, ids)

    @property
    def _meetings(self) -> list[Meeting]:
        """Groups that match because keys are missing; nothing where none are."""
        places = [self.groups.by.index(column) for column in self.groups.open if column in self.groups.by]
        return list(meetings(self.groups.cube, places)) if missing(self.groups.cube, places) else []

    def ends(self, numbers: Floats) -> tuple[Floats, Floats]:
        """The least and the largest number in the class of each group, NaN passed over. O(cells x patterns)."""
        low, high = np.full(len(self.groups), np.inf), np.full(len(self.groups), -np.inf)
        np.fmin.at(low, self.ids, numbers)
        np.fmax.at(high, self.ids, numbers)
        own = low.copy(), high.copy()
        for met in self._meetings:
            least, most = np.full(met.size, np.inf), np.full(met.size, -np.inf)
            np.minimum.at(least, met.ids_there, own[0][met.there])
            np.maximum.at(most, met.ids_there, own[1][met.there])
            low[met.here] = np.minimum(low[met.here], least[met.ids_here])
            high[met.here] = np.maximum(high[met.here], most[met.ids_here])
        return low, high

    def mode(self, codes: Integers) -> tuple[Floats, Floats]:
        """How many records of each class have its most frequent value, and how many it has."""
        own = pl.DataFrame({"group": self.ids, "value": codes, "n": self.cells.n})
        parts = [own] if not self._meetings else [_matched(met, own) for met in self._meetings]
        held = pl.concat(parts).group_by("group", "value").agg(pl.col("n").sum())
        found = held.group_by("group").agg(largest=pl.col("n").max(), size=pl.col("n").sum()).sort("group")
        return found["largest"].cast(pl.Float64).to_numpy(), found["size"].cast(pl.Float64).to_numpy()


def _matched(met: Meeting, own: pl.DataFrame) -> pl.DataFrame:
    """The values of the groups that match each group of a meeting."""
    there = pl.DataFrame({"group": met.there, "id": met.ids_there}).join(own, on="group")
    added = there.group_by("id", "value").agg(pl.col("n").sum())
    here = pl.DataFrame({"group": met.here, "id": met.ids_here})
    return here.join(added, on="id").select("group", "value", "n")
