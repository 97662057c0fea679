"""The contributions of records to the cells of a table, added up batch by batch."""

from dataclasses import dataclass, replace

import narwhals as nw
import polars as pl

from equipoise.data import engines
from equipoise.data.records import Records
from equipoise.data.tables.keyed_cells import KEY_UNITS
from equipoise.data.tables.signed_relations import ITEM, SignedRelations
from equipoise.ground.errors import DataError, ParameterError, require_columns

SECOND_REQUEST = 2
"""Code in the column of requests of those to whom the second share of the request rule applies."""
REQUESTS = pl.col("__eq_r", "__eq_r2")
"""Largest contributions by those who asked for protection."""


@dataclass(frozen=True)
class ContributionColumns:
    """The columns that a table is built from."""

    by: tuple[str, ...]
    value: str | None
    holding: str | None
    weight: str | None
    request: str | None
    key: str | None
    tree: SignedRelations | None = None
    items: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        others = (self.value if not self.items else None, self.holding, self.weight, self.request, self.key)
        keys = (column for column in self.by if not (self.items and column == ITEM))
        return tuple(dict.fromkeys((*keys, *self.items, *(c for c in others if c))))

    @property
    def held(self) -> bool:
        """Whether several rows may be one contribution: those of a holding, or the items of a record."""
        return bool(self.holding or self.items)

    def related(self, tree: SignedRelations, records: Records) -> "ContributionColumns":
        """With items that are columns of the records, or labels of one of the columns of the table."""
        if set(tree.leaves) <= set(records.schema()):
            if self.value or ITEM in self.by:
                raise ParameterError(
                    f"The relation says what is added up, by {ITEM!r}: leave out value and that column."
                )
            return replace(self, by=(*self.by, ITEM), value=tree.root, tree=tree, items=tree.leaves)
        if not self.value or not self.holding:
            raise ParameterError(
                "The items of the relation are not columns of the records: where they are labels, name the value and "
                "the holding whose items are one contribution."
            )
        return replace(self, tree=tree)

    def refuse(self, records: Records) -> None:
        schema = records.schema()
        require_columns(self.columns, schema)
        for column in filter(None, (*(self.items or (self.value,)), self.weight, self.request, self.key)):
            flag = column == self.request and schema[column] == nw.Boolean
            if not (flag or schema[column].is_numeric()):
                raise DataError(f"Column {column!r} is {schema[column]}, not a number: it cannot be added up.")

    def by_item(self, piece: pl.DataFrame, start: int) -> pl.DataFrame:
        """Every row once for each item, the number of its record as holder where there is no holding."""
        if not self.items:
            return piece
        holder = pl.col(self.holding) if self.holding else pl.int_range(start, start + piece.height, dtype=pl.Int64)
        rows = piece.with_columns(holder.alias("__eq_holder"))
        return pl.concat(
            rows.with_columns(pl.lit(item).alias(ITEM), pl.col(item).cast(pl.Float64).alias("__eq_item"))
            for item in self.items
        )

    def plain(self, piece: pl.DataFrame) -> pl.DataFrame:
        """Dimensions, `holder`, contribution `x` and weight `w`; values that cannot be added up are refused."""
        x = pl.col(self.value).cast(pl.Float64) if self.value else pl.lit(1.0)
        x = pl.col("__eq_item") if self.items else x
        w = pl.col(self.weight).cast(pl.Float64) if self.weight else pl.lit(1.0)
        holder = [pl.col("__eq_holder" if self.items else str(self.holding)).alias("__eq_holder")] if self.held else []
        code = pl.col(self.request).cast(pl.Float64).fill_null(0.0) if self.request else pl.lit(0.0)
        asked = {"__eq_r": (code != 0) & (code != SECOND_REQUEST), "__eq_r2": code == SECOND_REQUEST}
        requested = [pl.when(who).then(x.abs()).otherwise(0.0).alias(name) for name, who in asked.items()]
        rows = piece.select(
            *self.by, *holder, x.alias("__eq_x"), w.alias("__eq_w"), *requested, self._units(piece).alias("__eq_k")
        )
        for name, column in (("__eq_x", self.value), ("__eq_w", self.weight)):
            self._refuse_values(rows[name], column, weights=name == "__eq_w")
        if self.held and rows["__eq_holder"].null_count():
            raise DataError(f"{rows['__eq_holder'].null_count():,} records have no holding in {self.holding!r}.")
        return rows

    def _units(self, piece: pl.DataFrame) -> pl.Expr:
        """Record keys as whole units."""
        if not self.key:
            return pl.lit(0, dtype=pl.Int64)
        keys = piece[self.key].cast(pl.Float64)
        wrong = len(keys) - int(keys.is_between(0.0, 1.0, closed="left").sum())
        if wrong:
            raise DataError(f"{wrong:,} records have no key from 0 up to 1 in {self.key!r}.")
        return (pl.col(self.key).cast(pl.Float64) * KEY_UNITS).round().cast(pl.Int64)

    def _refuse_values(self, values: pl.Series, column: str | None, *, weights: bool) -> None:
        bad = values.null_count() + int((~values.is_finite()).sum() or 0)
        if bad:
            raise DataError(f"{bad:,} records have no finite number in {column!r}: fill or remove them first.")
        negative = int((values < 0).sum()) if weights else 0
        if negative:
            raise DataError(f"{negative:,} records have a negative number in {column!r}: weights are at least 0.")


def contributions(records: Records, needed: ContributionColumns, top: int) -> tuple[list[pl.DataFrame], bool]:
    """The contributions batch by batch, added up within a batch: by cell and holding, or the sums and the largest.

    And whether one of them is negative.
    """
    whole = records.in_memory or not records.frame.implementation.is_polars()
    frame = records.frame.select(list(needed.columns))
    pieces, negative, start = [], False, 0
    for piece in (engines.collect(frame),) if whole else engines.batches(frame):
        plain = needed.plain(needed.by_item(piece, start))
        pieces.append(_reduced(plain, needed, top))
        negative, start = negative or bool((plain["__eq_x"] < 0).any()), start + piece.height
    return pieces, negative


def _reduced(plain: pl.DataFrame, needed: ContributionColumns, top: int) -> pl.DataFrame:
    """One row per cell and holding; or, without holdings, per cell a row of sums and rows of its largest.

    Rows have `n`, `w`, `wx`, `k` to add up, and `x`, `v` (its weight) where they are contributions.
    """
    keys = list(needed.by)
    wx = (pl.col("__eq_w") * pl.col("__eq_x")).sum().alias("__eq_wx")
    size = (pl.col("__eq_w") * pl.col("__eq_x").abs()).sum().alias("__eq_g")
    sums = (pl.len().alias("__eq_n"), pl.col("__eq_w").sum(), wx, size, pl.col("__eq_k").sum(), REQUESTS.max())
    if needed.held:
        holdings = plain.group_by([*keys, "__eq_holder"], maintain_order=True).agg(*sums)
        return holdings.with_columns(__eq_x=pl.col("__eq_wx"), __eq_v=pl.lit(1.0))
    cells = plain.group_by(keys, maintain_order=True).agg(*sums).with_columns(__eq_x=pl.lit(0.0), __eq_v=pl.lit(0.0))
    if not needed.value:
        return cells
    largest = largest_contributions(
        plain.with_columns(__eq_x=pl.col("__eq_x").abs(), __eq_v=pl.col("__eq_w")), keys, top
    )
    none = pl.lit(0.0)
    nothing = {
        "__eq_n": pl.lit(0, dtype=pl.UInt32),
        "__eq_w": none,
        "__eq_wx": none,
        "__eq_g": none,
        "__eq_k": pl.lit(0, dtype=pl.Int64),
        "__eq_r": none,
        "__eq_r2": none,
    }
    return pl.concat([cells, largest.with_columns(**nothing).select(cells.columns)])


def largest_contributions(rows: pl.DataFrame, keys: list[str], top: int) -> pl.DataFrame:
    """The contributions of each cell, largest first, until they fill `top` places.

    Where each fills a place at least, those below the `top` largest of a cell cannot count and are left out first.
    """
    positive = rows.filter(pl.col("__eq_v") > 0)
    if not (positive["__eq_v"] < 1).any():
        positive = positive.filter(pl.col("__eq_x") >= pl.col("__eq_x").top_k(top).min().over(keys))
    ordered = positive.sort("__eq_x", descending=True)
    before = (pl.col("__eq_v").cum_sum() - pl.col("__eq_v")).over(keys)
    return ordered.filter(before < top)
