"""Consistency checks of a ready table: totals are sums, largest contributions fit in their cells."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.tables.axes import Axis
from equipoise.ground.errors import DataError

SUM_TOLERANCE = 1e-9
"""Share of a sum by which rounding in another order of addition may change it."""
MAX_ROUNDED_DECIMALS = 6
"""Values with more decimals than this are not treated as rounded."""


def spot(row: Mapping[str, Any], by: Sequence[str]) -> str:
    """Name of a cell by its columns and labels.

    >>> spot({"region": "n", "size": "s", "value": 7}, ["region", "size"])
    'region = n, size = s'
    """
    return ", ".join(f"{column} = {row[column]}" for column in by)


def refuse_first(wrong: pl.DataFrame, by: Sequence[str], what: str) -> None:
    """Refuse a table with such cells, naming the first by its labels."""
    if wrong.height:
        more = f" (and {wrong.height - 1:,} more)" if wrong.height > 1 else ""
        raise DataError(f"The cell {spot(wrong.row(0, named=True), by)}{more} {what}.")


def refuse_labels(cells: pl.DataFrame, by: Sequence[str]) -> None:
    """Refuse cells without a label in some column, and repeated cells."""
    for column in by:
        unlabelled = cells[column].null_count()
        if unlabelled:
            raise DataError(f"{unlabelled:,} rows of the table have no label in column {column!r}.")
    twice = cells.group_by(list(by), maintain_order=True).len().filter(pl.col("len") > 1)
    refuse_first(twice, by, "stands in several rows: a ready table has one row for each cell")


def refuse_numbers(
    cells: pl.DataFrame, by: Sequence[str], columns: Iterable[tuple[str, str]], signed: str | None = None
) -> None:
    """Refuse numbers that are not finite, or negative but for the column `signed`, each named as in the file."""
    for column, label in columns:
        finite = pl.col(column).is_not_null() & pl.col(column).is_finite()
        refuse_first(cells.filter(~finite), by, f"has no finite number in column {label!r}")
        if column == signed:
            continue
        refuse_first(cells.filter(pl.col(column) < 0), by, f"has a negative number in column {label!r}")


def refuse_contributions(cells: pl.DataFrame, by: Sequence[str], tops: Sequence[str], slack: float) -> None:
    """Refuse largest contributions out of order, above the value, or short of it where they are all contributors."""
    if not tops:
        return
    rows = cells.with_columns(__eq_sum=pl.sum_horizontal(tops))
    if "gross" in cells.columns:
        return
    allowed = pl.col("__eq_x") * 1e-6 + slack * (1 + len(tops)) + SUM_TOLERANCE
    for one, two in pairwise(tops):
        refuse_first(rows.filter(pl.col(two) > pl.col(one) + slack), by, f"has a larger {two} than {one}")
    over = rows.filter(pl.col("__eq_sum") > pl.col("__eq_x") + allowed)
    refuse_first(over, by, "has contributions that sum to more than its value")
    few = pl.col("contributors").is_between(1, len(tops))
    short = rows.filter(few & ((pl.col("__eq_sum") - pl.col("__eq_x")).abs() > allowed))
    refuse_first(short, by, "has contributions that do not sum to its value, though all its contributors are known")


def refuse_counts(cells: pl.DataFrame, by: Sequence[str]) -> None:
    """Refuse a value without contributors."""
    nobody = cells.filter((pl.col("n") == 0) & (pl.col("__eq_x") != 0))
    refuse_first(nobody, by, "has a value but no contributors")


def unit(values: pl.Series) -> float:
    """Unit of the last decimal of rounded values; 0 for whole numbers and for values of many decimals.

    >>> unit(pl.Series([1.25, 3.0])), unit(pl.Series([2.0, 3.0])), unit(pl.Series([1 / 3]))
    (0.01, 0.0, 0.0)
    """
    x = values.to_numpy()
    for decimals in range(MAX_ROUNDED_DECIMALS + 1):
        if np.allclose(np.round(x, decimals), x, rtol=1e-12, atol=1e-12):
            return 10.0**-decimals if decimals else 0.0
    return 0.0


@dataclass(frozen=True)
class Sums:
    """Check of totals against the sum of their parts, cells given by node numbers; `slack` is allowed for each part.

    The labels of cells in messages are those of the axes.
    """

    axes: tuple[Axis, ...]
    slack: float

    scale: float = 0.0

    @property
    def by(self) -> list[str]:
        return [axis.name for axis in self.axes]

    def settled(self, cells: pl.DataFrame) -> pl.DataFrame:
        """The cells with totals corrected for rounding; refused where they miss the sum of their parts by more."""
        missed = [self._missed(cells, axis) for axis in self.axes]
        return self._rebuilt(cells) if any(missed) else cells

    def _missed(self, cells: pl.DataFrame, axis: Axis) -> bool:
        """Whether totals along an axis miss the sum of their parts at all."""
        pairs = [(i, parent, int(child)) for i, (parent, parts) in enumerate(axis.relations()) for child in parts]
        relations = pl.DataFrame(pairs, schema=["__eq_relation", "__eq_node", axis.name], orient="row")
        if relations.is_empty():
            return False
        others = [name for name in self.by if name != axis.name]
        signs = pl.Series("__eq_x", axis.signs).gather(relations[axis.name])
        relations = relations.with_columns(__eq_sign=signs)
        sums = cells.select(*self.by, "__eq_x").join(relations, on=axis.name)
        added = sums.group_by([*others, "__eq_node", "__eq_relation"]).agg(
            (pl.col("__eq_x") * pl.col("__eq_sign")).sum().alias("__eq_sum")
        )
        heads = relations.select("__eq_relation", "__eq_node").unique()
        totals = cells.select(*others, __eq_node=axis.name, __eq_own="__eq_x").join(heads, on="__eq_node")
        both = totals.join(added, on=[*others, "__eq_node", "__eq_relation"], how="full", coalesce=True)
        both = both.join(relations.group_by("__eq_relation").len("__eq_parts"), on="__eq_relation").rename(
            {"__eq_node": axis.name}
        )
        self._refuse(both, axis)
        exact = pl.col("__eq_own").fill_null(0.0) - pl.col("__eq_sum").fill_null(0.0)
        return both.filter(exact.abs() > SUM_TOLERANCE * pl.col("__eq_sum").abs().fill_null(0.0)).height > 0

    def _refuse(self, both: pl.DataFrame, axis: Axis) -> None:
        own, added = pl.col("__eq_own").fill_null(0.0), pl.col("__eq_sum").fill_null(0.0)
        allowed = SUM_TOLERANCE * pl.max_horizontal(own.abs(), added.abs(), pl.lit(self.scale)) + self.slack * (
            pl.col("__eq_parts") + 1
        )
        wrong = both.filter((own - added).abs() > allowed).sort(self.by)
        absent = self._labelled(wrong.filter(pl.col("__eq_own").is_null()))
        refuse_first(
            absent, self.by,
            f"is not in the table, though its parts along {axis.name!r} are: give all the margins of a column, or none",
        )  # fmt: skip
        groups = axis.leaves == len(axis) - 1 and wrong.height and wrong["__eq_sum"][0] > wrong["__eq_own"][0]
        tip = ": where codes are groups of others, give the hierarchy of that column" if groups else ""
        refuse_first(self._labelled(wrong), self.by, f"is not the sum of its parts along {axis.name!r}{tip}")

    def _labelled(self, cells: pl.DataFrame) -> pl.DataFrame:
        return cells.with_columns(axis.nodes.gather(cells[axis.name]).alias(axis.name) for axis in self.axes)

    def _rebuilt(self, cells: pl.DataFrame) -> pl.DataFrame:
        """Every cell as the sum of its inner cells."""
        inner = cells.select(*self.by, "__eq_x")
        for axis in self.axes:
            inner = inner.filter(pl.col(axis.name).is_in(axis.places))
        for axis in self.axes:
            above = axis.members.select(
                __eq_leaf=pl.Series(axis.places).gather(axis.members["leaf"]), __eq_node="node", __eq_sign="sign"
            )
            parts = (
                inner.join(above, left_on=axis.name, right_on="__eq_leaf")
                .drop(axis.name)
                .rename({"__eq_node": axis.name})
            )
            inner = parts.group_by(self.by).agg((pl.col("__eq_x") * pl.col("__eq_sign")).sum())
        joined = cells.drop("__eq_x").join(inner, on=self.by, how="left", maintain_order="left")
        return joined.with_columns(pl.col("__eq_x").fill_null(0.0))
