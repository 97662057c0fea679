"""Interval disclosure: the share of original values close to their masked value."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import polars as pl

from equipoise.data.aligned_files import aligned, released_people
from equipoise.data.numeric_columns import finite
from equipoise.data.records import Records
from equipoise.data.released_terms import rows
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError, ParameterError, RolesError, require_columns
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields, share
from equipoise.methods.score import Score, not_applicable

RANK_TOLERANCE = 1e-6
"""Half widths in ranks this close to a whole or half number are taken as that number."""
Sides = Literal["rank", "sd"]


@dataclass(frozen=True, slots=True)
class Interval:
    """Share of original values inside the interval around their masked value, averaged over the variables.

    With `sides="rank"` the n known masked values of a variable are ranked. The interval around a value of rank r holds
    the ranks k with |k - r| < p n / 2, p the `width`: they differ among them by less than p n, so in all it is p wide,
    half of that on each side. The lowest and the highest rank inside, mapped to the masked values that hold them, are
    its ends, and both ends belong to it. With `sides="sd"` it is y +- p sd / 2, sd the masked values' (divisor n).

    Ties: equal masked values share their mean rank, so they have the same interval, which always holds the value itself
    and is no more than it where it alone takes p n ranks. Ends: ranks stop at 1 and n; near them an interval is
    shorter on that side and is not made longer on the other. Missing: a pair with either value missing is left out;
    masked values without an original still take ranks. Comparisons are exact, without a tolerance.

    value = mean over variables of the share inside; the baseline is the same for the interval of a record drawn at
    random instead of one's own. The interval is 95 % normal, over records. The detail has a row per variable, `risk`
    the share inside; by record, `risk` is the share of the record's variables that are inside (0 without any);
    `inside` shows each, and `curve` the shares over widths. Numeric columns unless named; dates and, by rank, Enums
    in their order may be named.

    Source: Domingo-Ferrer and Torra (2004), section 2.3. Misleads when a variable has few values: an interval may be
    narrow in ranks and wide in values, or hold half the file; compare with the baseline. Cost: one sort of each file
    per variable, O(n log n).

    >>> original = eq.Records.of(pl.DataFrame({"x": [1, 2, 3, 4, 5]}), eq.Roles(numeric="x"))
    >>> released = eq.Records.of(pl.DataFrame({"x": [1, 3, 2, 9, 8]}), eq.Roles(numeric="x"))
    >>> Interval(0.5).measure(released, original).value
    0.8
    """

    width: float = 0.1
    sides: Sides = "rank"
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        _refuse_width(self.width, self.sides)

    def measure(self, released: Records, original: Records) -> Score:
        if released.synthetic:
            return not_applicable(label(self), "lower")
        pairs = self._pairs(released, original)
        inside_by_column = {column: pair.around(self.width, self.sides) for column, pair in pairs.items()}
        table = pl.DataFrame([_row(column, pairs[column], *inside_by_column[column]) for column in pairs])
        pair_counts = sum(pair.both.astype(np.int64) for pair in pairs.values())
        inside_counts = sum(inside.astype(np.int64) for inside, _ in inside_by_column.values())
        risk = np.asarray(inside_counts / np.maximum(pair_counts, 1))
        compared = table.filter(pl.col("n") > 0)
        if not compared.height:
            raise DataError(f"No record has a value of {', '.join(pairs)} in both files: there is nothing to compare.")
        value = float(np.asarray(compared["risk"]).mean())
        return Score(
            label(self),
            value,
            interval=_normal(value, risk),
            baseline=float(np.asarray(compared["baseline"]).mean()),
            number=float(np.asarray(compared["inside"]).sum()),
            unit="share of values",
            notes=_notes(table, len(risk)),
            cells=lambda: table,
            records=lambda: rows(released, risk=risk),
        )

    def inside(self, released: Records, original: Records) -> pl.DataFrame:
        """Whether the original is inside, a row per record and a column per variable; null where either is missing."""
        pairs = self._pairs(released, original)
        table = {c: pl.Series(p.around(self.width, self.sides)[0]) for c, p in pairs.items()}
        present = {c: pl.Series(p.both) for c, p in pairs.items()}
        masked = pl.DataFrame(table).select(pl.when(present[c]).then(pl.col(c)).alias(c) for c in table)
        return rows(released, **masked.to_dict())

    def curve(self, released: Records, original: Records, widths: Sequence[float] = ()) -> pl.DataFrame:
        """Shares inside and baselines over widths (0.01 to 0.1 unless given), a row per width and variable."""
        all_widths = tuple(widths) or tuple(k / 100 for k in range(1, 11))
        for width in all_widths:
            _refuse_width(width, self.sides)
        pairs = self._pairs(released, original)
        rows = [
            {"width": float(width), **_row(column, pair, *pair.around(width, self.sides))}
            for width in all_widths
            for column, pair in pairs.items()
        ]
        return pl.DataFrame(rows)

    def _pairs(self, released: Records, original: Records) -> "dict[str, _Pair]":
        columns = self.columns or original.roles.numeric
        if not columns:
            raise RolesError("No columns were named, and no column has the role numeric.")
        for records in (released, original):
            self._refuse_columns(records, columns)
        released_table, original_table = aligned(released, released_people(released, original), columns)
        return {c: _pair(released_table[c], original_table[c]) for c in columns}

    def _refuse_columns(self, records: Records, columns: tuple[str, ...]) -> None:
        schema = records.schema()
        require_columns(columns, schema)
        for column in columns:
            kind = schema[column]
            ordered = type(kind).__name__ == "Enum" and self.sides == "rank"
            if not (kind.is_numeric() or kind.is_temporal() or ordered):
                raise DataError(f"Column {column!r} is {type(kind).__name__}, which has no order to make intervals of.")


@dataclass(frozen=True, eq=False)
class _Pair:
    """The masked and the original values of a variable, record by record, missing as NaN."""

    masked: Floats
    original: Floats

    @cached_property
    def both(self) -> Integers:
        return np.asarray(~(np.isnan(self.masked) | np.isnan(self.original)))

    @cached_property
    def order(self) -> Integers:
        """Records with a masked value, by that value."""
        return np.argsort(self.masked, kind="stable")[: int((~np.isnan(self.masked)).sum())]

    @cached_property
    def ranked(self) -> Floats:
        """Masked values in their order."""
        return np.asarray(self.masked[self.order])

    @cached_property
    def ranks(self) -> Floats:
        """Mean rank of each masked value, in their order."""
        new = np.append(True, self.ranked[1:] != self.ranked[:-1])
        first = np.append(np.flatnonzero(new), len(new))
        return np.repeat((first[:-1] + 1 + first[1:]) / 2, np.diff(first))

    @cached_property
    def sorted_originals(self) -> Floats:
        return np.asarray(np.sort(self.original[self.both]))

    def ends(self, width: float, sides: Sides) -> tuple[Floats, Floats]:
        """Interval around each masked value, in their order."""
        if sides == "sd":
            half = width * self.ranked.std() / 2
            return self.ranked - half, self.ranked + half
        n = len(self.ranked)
        half = width * n / 2
        low = np.floor(self.ranks - half + RANK_TOLERANCE) + 1
        high = np.ceil(self.ranks + half - RANK_TOLERANCE) - 1
        places = (np.clip(rank, 1, n).astype(np.int64) - 1 for rank in (low, high))
        below, above = (self.ranked[place] for place in places)
        return np.minimum(below, self.ranked), np.maximum(above, self.ranked)

    def around(self, width: float, sides: Sides) -> tuple[Integers, float]:
        """Whether each record's original is in its interval, and the mean share of all originals in an interval."""
        inside = np.zeros(len(self.masked), dtype=np.bool_)
        if not len(self.sorted_originals):
            return inside, 0.0
        low, high = self.ends(width, sides)
        value, present = self.original[self.order], self.both[self.order]
        inside[self.order] = (low <= value) & (value <= high)
        start = np.searchsorted(self.sorted_originals, low[present], side="left")
        stop = np.searchsorted(self.sorted_originals, high[present], side="right")
        return inside, float((stop - start).mean() / len(self.sorted_originals))


def _row(column: str, pair: _Pair, inside: Integers, guessed: float) -> dict[str, object]:
    n, count = int(pair.both.sum()), int(inside.sum())
    return {"column": column, "n": n, "inside": count, "risk": count / max(1, n), "baseline": guessed}


def _pair(released: pl.Series, original: pl.Series) -> _Pair:
    """Both columns as numbers of one unit."""
    if isinstance(released.dtype, pl.Date | pl.Datetime) and isinstance(original.dtype, pl.Date | pl.Datetime):
        released, original = released.cast(pl.Datetime("us")), original.cast(pl.Datetime("us"))
    elif released.dtype != original.dtype and not (released.dtype.is_numeric() and original.dtype.is_numeric()):
        raise DataError(
            f"Column {released.name!r} is of another type in the released file: its values have no common order."
        )
    return _Pair(*(finite(c.name, c.to_physical().cast(pl.Float64).to_numpy()) for c in (released, original)))


def _refuse_width(width: float, sides: Sides) -> None:
    if sides == "rank":
        share(width, "width")
    elif isinstance(width, bool) or not isinstance(width, int | float) or not 0 < width < np.inf:
        raise ParameterError("width must be a positive number of standard deviations.")


def _normal(value: float, risk: Floats) -> tuple[float, float]:
    half = 1.959963984540054 * float(risk.std()) / float(np.sqrt(len(risk)))
    return max(0.0, value - half), min(1.0, value + half)


def _notes(table: pl.DataFrame, records: int) -> tuple[str, ...]:
    worst = table.sort("risk", "column", descending=[True, False]).row(0, named=True)
    missing = records * table.height - int(table["n"].sum())
    empty = [row["column"] for row in table.iter_rows(named=True) if row["n"] == 0]
    return (
        f"Most in {worst['column']!r}: {worst['risk']:.4g}, by another record's interval {worst['baseline']:.4g}.",
        *((f"{missing:,} pairs with a missing value were passed over.",) if missing else ()),
        *((f"Left out, without values in both files: {', '.join(empty)}.",) if empty else ()),
    )
