"""Facts about a column: its kind, how many values, how often they repeat. No value is ever shown."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import polars as pl

from equipoise.data import engines
from equipoise.data.levels import date_in_words
from equipoise.data.records import Records

Kind = Literal["text", "whole", "decimal", "date", "truth", "other"]

SAMPLE_RECORDS = 100_000
"""Records looked at in a larger file: in 50 runs of 2,000, spread evenly, so that households stay together."""
SAMPLE_RUNS = 50
MAX_SHAPED_VALUES = 2_000
"""Distinct values whose shape is looked at, at most."""
FULL_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ]\d{2}:\d{2}.*)?|\d{1,2}[-/.]\d{1,2}[-/.](19|20)\d{2}")
KIND_WORDS: Mapping[Kind, str] = {
    "text": "texts", "whole": "whole numbers", "decimal": "numbers with decimals", "date": "dates",
    "truth": "truth values", "other": "values",
}  # fmt: skip


@dataclass(frozen=True)
class Facts:
    """Facts about one column, missing values excluded."""

    name: str
    kind: Kind
    missing: int
    values: pl.Series = field(repr=False)
    part: bool = False
    """Whether the values are a sample of a larger file."""

    @property
    def records(self) -> int:
        """How many records have a value."""
        return len(self.values)

    @cached_property
    def counts(self) -> pl.DataFrame:
        """Each value and how many records have it, most frequent first."""
        name = "value"
        return self.values.alias(name).value_counts(sort=True, name="records").sort(
            "records", name, descending=[True, False]
        )  # fmt: skip

    @cached_property
    def distinct(self) -> int:
        return self.values.n_unique() if self.records else 0

    @property
    def share(self) -> float:
        """Distinct values per record: 1 when nobody shares a value."""
        return self.distinct / self.records if self.records else 0.0

    @property
    def unique(self) -> bool:
        return self.records > 1 and self.distinct == self.records and not self.missing

    @cached_property
    def shaped(self) -> pl.Series:
        """Distinct values as text, at most SHAPED of them."""
        values = self.values.unique(maintain_order=True)
        return values.gather_every(max(1, len(values) // MAX_SHAPED_VALUES)).head(MAX_SHAPED_VALUES).cast(pl.String)

    @property
    def numeric(self) -> bool:
        return self.kind in ("whole", "decimal")

    def range(self) -> tuple[float, float]:
        """The lowest and the highest number; for decisions only."""
        low: Any = self.values.min()
        high: Any = self.values.max()
        return float(low), float(high)

    def words(self) -> str:
        """The number of distinct values and their kind, in words."""
        if self.distinct < 2:
            return "one value only" if self.distinct else "no values"
        kind, sampled = KIND_WORDS[self.kind], f" among {self.records:,} looked at" if self.part else ""
        if self.unique:
            return f"no {kind} repeat{sampled}" if self.part else f"all {self.records:,} {kind} differ"
        return f"{self.distinct:,} distinct {kind}{sampled}"


def facts_of(values: pl.Series, part: bool = False) -> Facts:
    """Collect the facts of one column, or of a part of its records.

    >>> facts_of(pl.Series("age", [31.0, 32.0, None, float("nan")])).words()
    '2 distinct whole numbers'
    >>> facts_of(pl.Series("id", [31, 32]), part=True).words()
    'no whole numbers repeat among 2 looked at'
    """
    present = values.fill_nan(None) if values.dtype.is_float() else values
    present = present.drop_nulls()
    if isinstance(values.dtype, pl.Categorical | pl.Enum):
        present = present.cast(pl.String)
    if isinstance(values.dtype, pl.Decimal):
        present = present.cast(pl.Float64)
    return Facts(values.name, _kind(present), len(values) - len(present), present, part)


def _kind(values: pl.Series) -> Kind:
    kind = values.dtype
    if kind == pl.String:
        return "date" if _dates(values) else "text"
    if kind.is_integer():
        return "date" if _compact_dates(values) else "whole"
    if kind.is_float():
        return "whole" if len(values) and bool((values % 1 == 0).all()) else "decimal"
    if kind == pl.Boolean:
        return "truth"
    return "date" if kind == pl.Date or isinstance(kind, pl.Datetime) else "other"


def _dates(texts: pl.Series) -> bool:
    """Whether nearly all texts are full dates, year first or last."""
    distinct = texts.unique(maintain_order=True).head(MAX_SHAPED_VALUES).to_list()
    others = 0
    for text in distinct:
        others += not (FULL_DATE.fullmatch(text) or date_in_words(text))
        if others > 0.05 * len(distinct):
            return False
    return len(distinct) > 0


def _compact_dates(numbers: pl.Series) -> bool:
    """Whether all whole numbers are dates such as 20160112, over several days and months."""
    low, high = (numbers.min(), numbers.max()) if len(numbers) else (0, 0)
    if not (isinstance(low, int) and isinstance(high, int) and low >= 18000101 and high <= 21001231):
        return False
    dates = numbers.unique().cast(pl.String).str.to_date("%Y%m%d", strict=False)
    return not dates.null_count() and dates.dt.day().n_unique() > 5 and dates.dt.month().n_unique() > 2


def look(records: Records, rows: int | None = None) -> pl.DataFrame:
    """The records, or an even sample of a larger file, without reading the rest where the engine can.

    Cost: at most LOOKED_AT records in memory. DuckDB and Spark give their first records.
    """
    height = records.height() if rows is None else rows
    if height <= SAMPLE_RECORDS:
        return records.collect()
    if not records.frame.implementation.is_polars():
        return engines.collect(records.frame.head(SAMPLE_RECORDS))
    size, native = SAMPLE_RECORDS // SAMPLE_RUNS, records.frame.to_native()
    starts = [i * (height - size) // (SAMPLE_RUNS - 1) for i in range(SAMPLE_RUNS)]
    try:
        return pl.concat(pl.collect_all([native.slice(start, size) for start in starts]))
    except Exception as error:
        engines.fail(error, "read the data")


def skim(records: Records) -> pl.DataFrame:
    """A systematic sample of masked records, in one pass and in bounded memory."""
    step = max(1, records.height() // SAMPLE_RECORDS)
    if not records.frame.implementation.is_polars():
        return engines.collect(records.frame.head(SAMPLE_RECORDS))
    return pl.concat([piece.gather_every(step) for piece in engines.batches(records.frame)])
