"""Both files as a user of the release reads them: bands by their middles, categories in the terms of the release."""

import re
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np
import polars as pl
from cachetools import LRUCache

from equipoise.data.aligned_files import in_order
from equipoise.data.records import Records
from equipoise.data.released_terms import ComparableFiles
from equipoise.data.weighted_samples import with_weight

NUMBER = r"(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
BAND = re.compile(rf"[\[(]?{NUMBER}(?:-|, ?| to ){NUMBER}[\])]?")
END = re.compile(rf"(?:[<>]=?)?{NUMBER}\+?")


MAX_RECORDS = 50_000
"""Records that are read at most: of a larger file those at places drawn once, the same in both files."""
MAX_KEPT_BYTES = 256 << 20
"""Bytes of what was read and computed that are kept for the next releases of the same file."""
SHUFFLE = "shuffle_order"
T = TypeVar("T")


@dataclass(frozen=True, eq=False, repr=False)
class ColumnView:
    """A column of both files in the same terms, and what the release cannot tell of it: see `UserView`."""

    new: pl.Series
    old: pl.Series
    spread: pl.Series
    collected: pl.DataFrame | None
    dealt: pl.Series | None
    lost: bool
    labelled: bool

    @classmethod
    def of(cls, column: str, files: ComparableFiles | None, new: pl.Series, old: pl.Series) -> "ColumnView":
        is_number = old.dtype.is_numeric()
        ends = band_ends(new) if is_number and _is_text(new.dtype) else None
        if ends is not None and (files is None or are_measures(files.shown(old.to_frame())[column], old)):
            spread = spread_out(ends, whole=old.dtype.is_integer()).alias(column)
            new = ((ends["low"] + ends["high"]) / 2).alias(column)
            return cls(new, old, spread, None, None, _nothing_left(new, old), labelled=False)
        labelled = not (is_number and new.dtype.is_numeric())
        in_terms = files.shown(old.to_frame())[column] if labelled and files else old
        recoded = not in_terms.equals(old, null_equal=True)
        pairs = pl.DataFrame({"value": old, "label": in_terms}).unique().drop_nulls() if recoded else None
        dealt = None if pairs is None else dealt_out(new, pairs)
        return cls(new, in_terms, new, pairs, dealt, _nothing_left(new, old), labelled and is_number)

    @property
    def size(self) -> int:
        columns = (self.new, self.old, self.spread, self.dealt)
        return sum(int(series.estimated_size()) for series in columns if series is not None)


@dataclass(frozen=True, eq=False, repr=False)
class UserView:
    """The released and the original columns in the same terms, with weights; and what the release cannot tell.

    In `spread` the released records of a band lie evenly over it instead of at its middle, for quantiles and the like.
    `collected` has the original categories of columns that were recoded, beside their labels in the release, and
    `dealt` those columns with the released records of a label dealt out evenly over its categories. Nothing can be
    estimated from the columns `lost`: withheld, blank throughout, or of one value where there were several. The columns
    `labelled` were numbers, and have labels now that are no bands: they have no mean. `raw` is the original as
    collected, `share` that of the records that were read. `prints` are fingerprints of the released columns: what was
    computed from columns that are released alike again is not computed again.
    """

    new: pl.DataFrame
    old: pl.DataFrame
    spread: pl.DataFrame
    collected: dict[str, pl.DataFrame]
    dealt: dict[str, pl.Series]
    lost: frozenset[str]
    labelled: frozenset[str]
    raw: pl.DataFrame
    share: float
    prints: dict[str, int]
    beside: tuple[str, ...]

    @classmethod
    def of(cls, released: Records, original: Records, columns: tuple[str, ...]) -> "UserView":
        rows = _read_rows(released, original)
        new, old = _released(released, columns, rows), _rows_of(original.collect(*with_weight(original, columns)), rows)
        for column in new.columns:
            if ("print", column) not in released.memo:
                released.memo["print", column] = fingerprint(new[column])
        prints = {column: released.memo["print", column] for column in new.columns}
        views = {
            c: remembered(
                original, ("column", c, prints[c], released.synthetic), partial(_column, c, released, original, rows)
            )
            for c in columns
            if c in prints
        }
        new = new.with_columns(view.new for view in views.values())
        return cls(
            new,
            old.with_columns(view.old for view in views.values()),
            new.with_columns(view.spread for view in views.values()),
            {c: view.collected for c, view in views.items() if view.collected is not None},
            {c: view.dealt for c, view in views.items() if view.dealt is not None},
            frozenset(c for c in columns if c not in views or views[c].lost),
            frozenset(c for c, view in views.items() if view.labelled),
            old,
            1.0 if rows is None else len(rows) / original.height(),
            prints,
            tuple(c for c in (released.roles.weight, released.roles.sample) if c),
        )

    @property
    def root(self) -> float:
        """By how much standard errors of the whole file are smaller than those of the records that were read."""
        return float(self.share**0.5)

    def notes(self) -> tuple[str, ...]:
        """That not all records were read, if so."""
        how = f"Read from {self.old.height:,} records drawn from all; the intervals are those of the whole file."
        return (how,) if self.share < 1 else ()

    def place(self, *columns: str) -> tuple[int | None, ...]:
        """What these columns are known by, with the weights and sets beside them."""
        return tuple(self.prints.get(c) for c in (*columns, *self.beside))


def _released(released: Records, columns: tuple[str, ...], rows: pl.Series | None) -> pl.DataFrame:
    extra = (released.roles.sample,) if released.roles.sample else ()
    present = tuple(column for column in columns if column in released.schema())
    return _rows_of(released.collect(*dict.fromkeys((*with_weight(released, present), *extra))), rows)


def _column(column: str, released: Records, original: Records, rows: pl.Series | None) -> ColumnView:
    files = None
    new, old = released.collect(column)[column], original.collect(column)[column]
    if not (new.dtype.is_numeric() and old.dtype.is_numeric()):
        files = ComparableFiles.read(released, original, (column,))
    return ColumnView.of(column, files, _rows_of(new.to_frame(), rows)[column], _rows_of(old.to_frame(), rows)[column])


def _rows_of(table: pl.DataFrame, rows: pl.Series | None) -> pl.DataFrame:
    return table if rows is None else table[rows]


def _read_rows(released: Records, original: Records) -> pl.Series | None:
    """Places of the records to read in both files; None for all: few, or not known to be the same people."""
    size = original.height()
    if size <= MAX_RECORDS or released.height() != size or not _in_step(released, original):
        return None
    if "read rows" not in original.memo:
        places = np.random.default_rng(size).choice(size, MAX_RECORDS, replace=False)
        original.memo["read rows"] = pl.Series(np.sort(places))
    rows: pl.Series = original.memo["read rows"]
    return rows


def _in_step(released: Records, original: Records) -> bool:
    """Whether equal rows are the same people: masks that keep the order made the release of these records, here."""
    laws = released.history[len(original.history) :]
    made_here = released is original or (laws and released.source is original.source)
    in_new_order = released.synthetic or any(law.mask == SHUFFLE for law in laws)
    return bool(made_here) and not in_new_order and in_order(released)


def remembered(original: Records, place: Hashable, make: Callable[[], T]) -> T:
    """What was made for an earlier release of the same original, or made now and kept."""
    cache = original.memo.setdefault("user view", LRUCache(MAX_KEPT_BYTES, getsizeof=_bytes))
    if place not in cache:
        value = make()
        with suppress(ValueError):
            cache[place] = value
        return value
    return cast(T, cache[place])


def _bytes(value: Any) -> int:
    return int(value.size) if isinstance(value, ColumnView) else 4096


def fingerprint(column: pl.Series) -> int:
    """A number for the content of a column, in the order of its records, within this process."""
    plain = column.cast(pl.String) if column.dtype in (pl.Categorical, pl.Enum) else column
    return hash((str(plain.dtype), len(plain), plain.hash().to_numpy().tobytes()))


def band_ends(labels: pl.Series) -> pl.DataFrame | None:
    """The ends of each band, twice the bound of an open one; None where a label is no band, and "*" is missing.

    >>> band_ends(pl.Series(["30-34", "65+", "<18", "[0.5, 1)", "7", "*", None])).rows()
    [(30.0, 34.0), (65.0, 65.0), (18.0, 18.0), (0.5, 1.0), (7.0, 7.0), (None, None), (None, None)]
    >>> band_ends(pl.Series(["young"]))
    """
    texts = labels.cast(pl.String)
    ends = {text: _ends(text) for text in texts.unique().drop_nulls().to_list() if text != "*"}
    if not all(ends.values()):
        return None
    low, high = ({text: pair[side] for text, pair in ends.items() if pair} for side in (0, 1))
    return pl.DataFrame(
        {
            "low": texts.replace_strict(low, default=None, return_dtype=pl.Float64),
            "high": texts.replace_strict(high, default=None, return_dtype=pl.Float64),
        }
    )


def are_measures(labels: pl.Series, values: pl.Series) -> bool:
    """Whether labels that are single numbers lie among the values they stand for; codes of codes do not.

    >>> are_measures(pl.Series(["5", "5", "20-29"]), pl.Series([4, 6, 21]))
    True
    >>> are_measures(pl.Series(["100", "100", "200"]), pl.Series([1, 2, 3]))
    False
    """
    ranges = pl.DataFrame({"label": labels.cast(pl.String), "value": values}).drop_nulls().group_by("label")
    number = pl.col("label").cast(pl.Float64, strict=False)
    table = ranges.agg(pl.min("value").alias("low"), pl.max("value").alias("high"))
    return bool(table.select((number.is_between("low", "high") | number.is_null()).all()).item())


def _ends(text: str) -> tuple[float, float] | None:
    ends = BAND.fullmatch(text) or END.fullmatch(text)
    return None if ends is None else (float(ends.groups()[0]), float(ends.groups()[-1]))


def spread_out(ends: pl.DataFrame, *, whole: bool) -> pl.Series:
    """The records of each band evenly over it, as who interpolates a distribution does; whole numbers stay whole.

    >>> spread_out(pl.DataFrame({"low": [30.0] * 5, "high": [34.0] * 5}), whole=True).to_list()
    [30.0, 31.0, 32.0, 33.0, 34.0]
    """
    share = (pl.int_range(pl.len()) + 0.5) / pl.len()
    width = pl.col("high") - pl.col("low") + (1.0 if whole else 0.0)
    value = pl.col("low") + width * share.over("low", "high")
    wide = pl.col("high") > pl.col("low")
    return ends.select(pl.when(wide).then(value.floor() if whole else value).otherwise("low").alias("x")).to_series()


def dealt_out(labels: pl.Series, collected: pl.DataFrame) -> pl.Series:
    """The records of each label evenly over the original values that it stands for, each column by its own lots.

    >>> pairs = pl.DataFrame({"value": ["a", "b", "c"], "label": ["ab", "ab", "c"]})
    >>> dealt_out(pl.Series("x", ["ab", "ab", "c", "ab", "ab", None]), pairs).value_counts().sort("x").rows()
    [(None, 1), ('a', 2), ('b', 2), ('c', 1)]
    """
    lots = np.random.default_rng(list(labels.name.encode())).permutation(len(labels))
    values = collected.sort("label", "value").with_columns(
        pl.int_range(pl.len()).over("label").alias("turn"), pl.len().cast(pl.Int64).over("label").alias("many")
    )
    many = values.unique("label").select("label", "many")
    return (
        pl.DataFrame({"label": labels, "lot": lots})
        .join(many, on="label", how="left", maintain_order="left")
        .with_columns(((pl.col("lot").rank("ordinal").over("label").cast(pl.Int64) - 1) % pl.col("many")).alias("turn"))
        .join(values, on=["label", "turn"], how="left", maintain_order="left")["value"]
        .alias(labels.name)
    )


def _is_text(kind: pl.DataType) -> bool:
    return kind in (pl.String, pl.Categorical, pl.Enum)


def _nothing_left(new: pl.Series, old: pl.Series) -> bool:
    return new.drop_nulls().n_unique() <= min(1, old.drop_nulls().n_unique() - 1)
