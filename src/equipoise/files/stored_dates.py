"""Dates as statistical packages store them: numbers since an epoch, recognised by the display format."""

import re
from dataclasses import dataclass
from datetime import date

import polars as pl

from equipoise.ground.errors import DataError

UNIX_EPOCH = date(1970, 1, 1)
FIRST_DAY, LAST_DAY = ((day - UNIX_EPOCH).days for day in (date.min, date.max))
FORMAT_NAME = re.compile(r"[%A-Za-z]+(?:\d+[A-Za-z]+)*")


@dataclass(frozen=True)
class DateUnits:
    """How one package counts: from `epoch`, days in `per_day` and seconds in `per_second` units.

    `days`, `moments` and `hours` are the formats of dates, of date-times and of times of day, the usual one first.
    `resolution` is how many microseconds the stored numbers tell apart in a date-time of today.
    """

    epoch: date
    per_day: int
    per_second: int
    days: tuple[str, ...]
    moments: tuple[str, ...]
    hours: tuple[str, ...] = ()
    resolution: int = 1

    def kind(self, format: str | None) -> str | None:
        """day, moment, hour, or None for other formats."""
        if (format or "").upper().startswith("%TCHH"):
            return "hour"
        match = FORMAT_NAME.match(format or "")
        name = match.group().upper() if match else ""
        for kind, names in (("day", self.days), ("moment", self.moments), ("hour", self.hours)):
            if name in names or (name.startswith("%T") and name[:3] in names):
                return kind
        return None

    def read(self, values: pl.Series, kind: str) -> pl.Series:
        """Dates, date-times or times of day from stored numbers; times of a day only where all are shorter than one."""
        shift = (UNIX_EPOCH - self.epoch).days
        if kind in ("day", "moment"):
            _refuse_out_of_range(values / (self.per_day if kind == "day" else self.per_second * 86_400) - shift)
        if kind == "day":
            return ((values / self.per_day).floor() - shift).cast(pl.Int32).cast(pl.Date)
        if kind == "moment":
            ticks = _ticks(values, self.per_second) + self.resolution // 2
            return (ticks - ticks % self.resolution - shift * 86_400_000_000).cast(pl.Datetime("us"))
        if values.is_between(0, 86_400 * self.per_second, closed="left").all():
            return (_ticks(values, self.per_second) * 1000).cast(pl.Time)
        return values

    def to_numbers(self, values: pl.Series) -> pl.Series:
        """Stored numbers from dates, date-times or times of day."""
        shift = (UNIX_EPOCH - self.epoch).days
        if values.dtype == pl.Date:
            return (values.to_physical().cast(pl.Float64) + shift) * self.per_day
        if values.dtype == pl.Time:
            return values.to_physical().cast(pl.Float64) / 1e9 * self.per_second
        ticks = values.dt.cast_time_unit("us").to_physical() + shift * 86_400_000_000
        whole, rest = ticks // 1_000_000, ticks % 1_000_000
        return whole.cast(pl.Float64) * self.per_second + rest.cast(pl.Float64) / 1e6 * self.per_second

    def format(self, dtype: pl.DataType, previous: str | None, usual: tuple[str, str, str]) -> str | None:
        """The format a column is shown in: the one it had if it is of that kind still, else the usual one."""
        names = {pl.Date: ("day", 0), pl.Datetime: ("moment", 1), pl.Time: ("hour", 2)}
        kind = names.get(dtype.base_type())
        if kind is None:
            return None if self.kind(previous) in ("day", "moment") else previous
        return previous if self.kind(previous) == kind[0] else usual[kind[1]]


def _refuse_out_of_range(days: pl.Series) -> None:
    """Refuse days since 1970 that are in no calendar: before the year 1, after 9999, or no number."""
    outside = int((~days.is_between(FIRST_DAY, LAST_DAY)).sum())
    if outside:
        raise DataError(
            f"Column {days.name!r} is shown as a date and has {outside:,} values outside the years 1 to 9999: correct "
            "them, or give the column another format."
        )


def _ticks(values: pl.Series, per_second: int) -> pl.Series:
    """Microseconds, exact for whole seconds beyond the reach of floating point."""
    seconds = values / per_second
    whole = seconds.floor()
    return whole.cast(pl.Int64) * 1_000_000 + ((seconds - whole) * 1e6).round().cast(pl.Int64)
