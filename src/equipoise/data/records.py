"""Microdata records: a frame, the roles of its columns, and the public law of every mask that ran on it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from equipoise.data import engines
from equipoise.data.engines import Frame, Kind
from equipoise.data.labels import Labels
from equipoise.data.roles import PRIVATE_PREFIX, Roles
from equipoise.ground.errors import DataError, RolesError
from equipoise.ground.html import card, grid, paragraph
from equipoise.ground.packed_keys import order_of, representatives

FIXED_MASKS = ("local_recode", "local_suppress", "microaggregate", "renumber", "suppress_records")
"""Masks that do not only coarsen and yet draw nothing: records that are alike afterwards cannot be told apart."""
TRACED_ROW = "\x00row"
"""Column that may travel with records through masks to tell where each one stood: no content, no key of draws."""
JOINED_RECORDS = 1 << 15
MAX_COLUMNS_SHOWN = 100
"""Most columns that a notebook view lists."""
MAX_HELD_RECORDS = 250_000
"""Records that are read and masked once for all measures, at most; more are scanned by each."""


@dataclass(frozen=True)
class Law:
    """The public description of what a mask did, as an intruder may know it: never the seed.

    `coarsens` says that each released value is a function of the original value alone; `detail` holds data for audits
    while the law is in memory (original counts), and is never written. `private` names parameters that the public is
    not told; risks are measured for an intruder who knows them all the same.
    """

    mask: str
    columns: tuple[str, ...]
    words: str
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    coarsens: bool = False
    detail: Any = field(default=None, repr=False, compare=False)
    private: tuple[str, ...] = ()

    @property
    def public_parameters(self) -> dict[str, Any]:
        """The parameters without those that are kept private: what evidence and codebook may tell."""
        return {name: value for name, value in self.parameters.items() if name not in self.private}


@dataclass(frozen=True)
class Source:
    """Where records were read from."""

    path: str
    format: str


@dataclass(frozen=True, repr=False, eq=False)
class Records:
    """Microdata with roles: created by `eq.read`, changed by masks, counted into Cells.

    `frame` is a Narwhals LazyFrame; `to_native()` returns the kind that was passed in; the input is never changed.
    """

    frame: Frame
    roles: Roles
    history: tuple[Law, ...] = ()
    kind: Kind = "polars"
    source: Source | None = None
    holdout: "Records | None" = None
    labels: Labels = Labels()
    memo: dict[Any, Any] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, data: Any, roles: Roles, source: Source | None = None, labels: Labels | None = None) -> "Records":
        """Adopt a frame and check that the roles fit it."""
        if not hasattr(data, "collect_schema"):
            duplicates(list(getattr(data, "column_names", getattr(data, "columns", ()))))
        frame, kind = engines.adopt(data)
        records = cls(frame, roles, kind=kind, source=source, labels=labels or Labels())
        records.check()
        return records

    def check(self) -> None:
        """Refuse roles that do not fit, an empty file, and weights that are not positive numbers."""
        schema = self.schema()
        patterns(schema)
        self.roles.check(schema)
        if not schema:
            raise DataError("The data has no columns.")
        if self.height() == 0:
            raise DataError("The data has no records.")
        if self.roles.weight:
            self._check_weight(self.roles.weight, schema[self.roles.weight])

    def _check_weight(self, column: str, dtype: Any) -> None:
        weight = nw.col(column)
        bad = (weight < 0) | weight.is_null()
        bad = bad | weight.is_nan() | (weight == float("inf")) if dtype.is_float() else bad
        flagged = self.frame.select(bad.cast(nw.Int64()).alias("bad"), (weight > 0).cast(nw.Int64()).alias("good"))
        sums = collect_one(flagged.select(nw.col("bad").sum(), nw.col("good").sum()))
        if sums["bad"]:
            raise RolesError(
                f"{int(sums['bad']):,} records have a weight in {column!r} that is missing, NaN, infinite or negative."
            )
        if not sums["good"]:
            raise RolesError(f"No record has a positive weight in {column!r}.")

    def schema(self) -> Mapping[str, Any]:
        """Column names and their Narwhals types, asked for once."""
        try:
            if "schema" not in self.memo:
                self.memo["schema"] = self.frame.collect_schema()
        except Exception as error:
            engines.fail(error, "read the columns")
        schema: Mapping[str, Any] = self.memo["schema"]
        return schema

    def with_frame(self, frame: Frame | pl.DataFrame, law: Law) -> "Records":
        """Records after a mask, with its law added to the history; a table is put on the engine of the records."""
        frame = engines.like(self.frame, frame) if isinstance(frame, pl.DataFrame) else frame
        labels = self.labels if law.coarsens else self.labels.without_gaps(law.columns)
        return replace(self, frame=frame, history=(*self.history, law), labels=labels)

    @property
    def in_memory(self) -> bool:
        return self.kind in ("polars", "pandas", "pyarrow")

    @property
    def coarsened(self) -> bool:
        """Whether every mask that ran so far only coarsened."""
        return all(law.coarsens for law in self.history)

    @property
    def randomised(self) -> frozenset[str]:
        """The columns that a mask changed at random."""
        laws = (law for law in self.history if not law.coarsens and law.mask not in FIXED_MASKS)
        return frozenset(column for law in laws for column in law.columns)

    @property
    def synthetic(self) -> bool:
        """Whether the file is fully synthetic: every value of every record was drawn from a model."""
        return any(law.parameters.get("synthetic") == "full" for law in self.history)

    def to_native(self) -> Any:
        """The frame, of the kind that came in."""
        return engines.restore(self.frame, self.kind)

    def collect(self, *columns: str) -> pl.DataFrame:
        """Some columns, or all, in memory as Polars."""
        return engines.collect(self.frame.select(*columns) if columns else self.frame)

    def held(self) -> "Records":
        """The same records, read and masked once where Polars does it and they are few, for those who look often."""
        if not self.frame.implementation.is_polars() or self.height() > MAX_HELD_RECORDS:
            return self
        return replace(self, frame=nw.from_native(self.collect().lazy()))

    def height(self) -> int:
        """The number of records, counted once."""
        if "height" not in self.memo:
            self.memo["height"] = int(collect_one(self.frame.select(nw.len().alias("rows")))["rows"])
        return int(self.memo["height"])

    def keys_of_rows(self) -> pl.Series:
        """Key of each record's random draws: its id, or its content and its number among identical rows."""
        if self.roles.id:
            ids = self.collect(self.roles.id)[self.roles.id]
            if ids.null_count() or ids.n_unique() < len(ids):
                raise RolesError(f"The id column {self.roles.id!r} has missing or repeated values: ids must be unique.")
            return ids
        table = self.collect().drop(TRACED_ROW, strict=False)
        rows = pl.DataFrame([row_texts(table)])
        numbered = rows.with_columns(_times(rows["row"]).alias("time"))
        return numbered.select(pl.concat_str("row", "time", separator="\x1e").alias("key"))["key"]

    def _repr_html_(self) -> str:
        """Columns with their roles and types. No value: the categories of an Enum are not named either."""
        schema = self.schema()
        rows = [[c, self.roles.words(c), type(kind).__name__] for c, kind in list(schema.items())[:MAX_COLUMNS_SHOWN]]
        rest = len(schema) - len(rows)
        more = [f"{rest:,} more columns." if rest else "", *(law.words for law in self.history)]
        table = grid(["Column", "Role", "Type"], rows, words=3)
        return card(f"{self.height():,} records", table, *(paragraph(text, faint=True) for text in more))

    def __repr__(self) -> str:
        count = len(engines.columns(self.frame))
        return f"Records({count} columns, keys={list(self.roles.keys)}, engine={engines.engine(self.frame)!r})"


def row_texts(table: pl.DataFrame) -> pl.Series:
    """The content of each record as one text."""
    return joined_texts(table, [_as_text(c, kind).fill_null("\x00") for c, kind in table.schema.items()])


def joined_texts(table: pl.DataFrame, texts: list[pl.Expr]) -> pl.Series:
    """The texts of each record in one, made piece by piece: those of a whole column would take twice the memory."""
    joined = pl.concat_str(texts, separator="\x1f").alias("row")
    return pl.concat([piece.select(joined) for piece in table.iter_slices(JOINED_RECORDS)])["row"]


def _times(rows: pl.Series) -> pl.Series:
    """How many equal texts came before each; only those whose hash is not their own are compared."""
    alike, times = representatives(rows.hash().to_numpy().view(np.int64)), np.zeros(len(rows), dtype=np.int64)
    places = np.flatnonzero(np.bincount(alike, minlength=len(rows))[alike] > 1)
    again, own = rows.gather(places), alike[places].astype(np.int64)
    if (again == rows.gather(own)).all():
        order = order_of(own, len(rows))
        ordered = own[order]
        times[places[order]] = np.arange(len(own)) - np.searchsorted(ordered, ordered)
    else:  # different texts have one hash
        times[places] = again.to_frame("row").select(pl.int_range(pl.len()).over("row")).to_series()
    return pl.Series(times)


def collect_one(frame: Frame) -> dict[str, Any]:
    """The only row of a frame."""
    return engines.collect(frame).row(0, named=True)


def _as_text(column: str, kind: pl.DataType) -> pl.Expr:
    """The values of a column as texts, whatever they are."""
    if isinstance(kind, pl.Duration):
        return pl.col(column).to_physical().cast(pl.String)
    if isinstance(kind, pl.List | pl.Array | pl.Struct):
        return pl.struct(column).struct.json_encode()
    return pl.col(column).bin.encode("hex") if kind == pl.Binary else pl.col(column).cast(pl.String)


def patterns(names: Iterable[str]) -> None:
    """Refuse a column name that an engine reads as a pattern and so expands to other columns, and our private ones."""
    names = list(names)
    if private := [name for name in names if name.startswith(PRIVATE_PREFIX)]:
        raise DataError(
            f"Column name {private[0]!r} begins like those used while we work on a file: rename the column."
        )
    pattern = next((name for name in names if name == "*" or (name.startswith("^") and name.endswith("$"))), None)
    if pattern is not None:
        raise DataError(f"Column name {pattern!r} is read as a pattern, not as a name: rename the column.")


def duplicates(names: list[Any]) -> None:
    """Refuse a repeated column name."""
    twice = {str(name) for name in names if names.count(name) > 1} if len(set(map(str, names))) < len(names) else set()
    if twice:
        raise DataError(f"Column name {sorted(twice)[0]!r} stands twice: rename one of the columns.")
