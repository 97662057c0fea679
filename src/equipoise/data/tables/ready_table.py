"""Ready tables: a file with one row per cell, tabulated by another program."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from equipoise.data.hierarchy import Hierarchy
from equipoise.data.labels import Labels
from equipoise.data.levels import as_text
from equipoise.data.records import Records
from equipoise.data.roles import names
from equipoise.data.tables.axes import Axis, completed
from equipoise.data.tables.cell_status import SAFE, SECONDARY, SENSITIVE, SHOWN, STRUCTURAL, marked, statuses
from equipoise.data.tables.ready_axes import axis_of
from equipoise.data.tables.ready_checks import (
    Sums,
    refuse_contributions,
    refuse_counts,
    refuse_first,
    refuse_labels,
    refuse_numbers,
    unit,
)
from equipoise.data.tables.signed_relations import SignedRelations
from equipoise.data.tables.total_code import StatedTotals, total_of
from equipoise.ground.errors import DataError, ParameterError, RolesError, require_columns, shown
from equipoise.ground.packed_keys import MAX_PACKED_ID

TOP_NAME = re.compile(r"top([1-9]\d*)")
OWN_NAMES = (
    *("n", "total", "value", "contributors", "requested", "holder", "key", "cost", "table"),
    *("sensitive", "protected", "lower_level", "upper_level", "signed"),
    *("published", "status", "code", "exact", "exposed", "lower", "upper"),
)
"""Column names that a table uses itself; other columns of the file keep their names."""
MEASURES = {"frequency": "n", "status": "status", "lower": "lower", "upper": "upper", "cost": "cost"}
"""Roles of columns in tau-ARGUS metadata, and the field of `Ready` for each."""


@dataclass(frozen=True)
class Ready:
    """Roles of the columns of a ready table: a file with one row per cell, with or without margins.

    Parameters
    ----------
    n
        How many records are in the cell; the column `n` where there is one. Whole numbers.
    contributors
        How many different contributors, where that is not `n`.
    top
        The columns with the largest contributions, the largest first; by default top1, top2, ... where present.
    total
        The code of the total: one for all columns, or one for each ({"region": "FR", "size": None}, None: no total).
        By default it is a word like Total, or the code that is the sum of the others; where that is not clear an
        error asks for it.
    sensitive
        The column that marks sensitive cells, for `rules.Marked`: true, 1 or u.
    lower, upper
        The columns with the lower and upper protection levels of sensitive cells.
    cost
        The column with the cost of suppressing a cell; the table has it as `cost`.
    status
        The column with statuses: s, u, x, z or the numbers of tau-ARGUS. Sensitive ones are marked; where some are
        secondary the table counts as protected already, and can be audited.
    tolerance
        How much a total may differ from the sum of its parts, for each of them. By default half the last decimal where
        all values are rounded to 1 to 6 decimals, and 0 where they are whole. Totals are then corrected.

    A cell that is not in the file is empty. A code of the hierarchy or a total without a row in the file is added up:
    values, counts, other numbers, and the largest contributions, which is right where nobody contributes to two cells;
    marks are not. Totals in the file must be the sums of their parts.

    >>> rows = pl.DataFrame({"region": ["a", "b"], "turnover": [7.5, 5.0], "firms": [3, 2], "largest": [4.0, 3.5]})
    >>> cells = eq.table(Records.of(rows, eq.Roles()), "region", "turnover", ready=Ready(n="firms", top=("largest",)))
    >>> cells.table.select("region", "n", "value", "top1").rows()
    [('Total', 5, 12.5, 4.0), ('a', 3, 7.5, 4.0), ('b', 2, 5.0, 3.5)]
    """

    n: str | None = None
    contributors: str | None = None
    top: tuple[str, ...] | None = None
    total: StatedTotals = None
    sensitive: str | None = None
    lower: str | None = None
    upper: str | None = None
    cost: str | None = None
    status: str | None = None
    tolerance: float | None = None

    def __post_init__(self) -> None:
        if self.top is not None:
            object.__setattr__(self, "top", names(self.top, "top"))
        if self.tolerance is not None and not 0 <= self.tolerance < float("inf"):
            raise ParameterError(f"tolerance must be at least 0, got {shown(self.tolerance)}.")
        if (self.lower is None) != (self.upper is None):
            raise ParameterError("lower and upper go together: name both columns of protection levels.")

    def column_roles(self) -> dict[str, str]:
        """Names of the columns that have a role, by role."""
        single = ("n", "contributors", "sensitive", "lower", "upper", "cost", "status")
        columns = {name: getattr(self, name) for name in single if getattr(self, name)}
        return columns | {f"top{k}": column for k, column in enumerate(self.top or (), start=1)}

    def completed(self, file: pl.DataFrame, labels: Labels) -> "Ready":
        """Fill in roles from the file: the metadata of its columns, and columns named n, top1, top2, ...

        Counts with missing values are not used as counts.
        """
        columns = [name for name in file.columns if not (_counts(name, labels) and file[name].null_count())]
        measures = {name: labels.of(name).measure for name in columns}
        fields: dict[str, Any] = {MEASURES[part]: name for name, part in measures.items() if part in MEASURES}
        fields |= {"n": "n"} if "n" in columns and "n" not in fields else {}
        fields |= {name: name for name in ("contributors", "sensitive") if name in columns}
        fields |= {"status": "status"} if {"status", "published"} <= set(columns) else {}
        if ("lower" in fields) != ("upper" in fields) or self.lower:
            fields = {name: column for name, column in fields.items() if name not in ("lower", "upper")}
        tops = tuple(name for name, part in measures.items() if part == "largest")
        fields["top"] = tops or tuple(sorted(filter(TOP_NAME.fullmatch, columns), key=lambda name: int(name[3:])))
        return replace(self, **{name: value for name, value in fields.items() if getattr(self, name) is None})


def _counts(name: str, labels: Labels) -> bool:
    return name in ("n", "contributors") or labels.of(name).measure == "frequency"


def ready_cells(
    records: Records, by: tuple[str, ...], value: str | None, trees: Mapping[str, Hierarchy], ready: Ready,
    relation: SignedRelations | None = None,
) -> tuple[tuple[Axis, ...], pl.DataFrame]:  # fmt: skip
    """Axes of a ready table and all its cells, with the columns of a table.

    Cost: a few joins of the cells with themselves for each axis.
    """
    file = records.collect()
    shadow = next((name for name in file.columns if records.labels.of(name).measure == "shadow"), None)
    with _shadow_hint(shadow if value and shadow != value else None):
        return _ready_cells(records, file, by, value, trees, ready, relation)


@contextmanager
def _shadow_hint(shadow: str | None) -> Iterator[None]:
    """Where values do not fit, point to the variable that rules look at in tau-ARGUS, if the file has one."""
    try:
        yield
    except DataError as error:
        if shadow is None:
            raise
        raise DataError(
            f"{error} Rules of tau-ARGUS look at the shadow variable {shadow!r}: name it as the value, without the "
            "largest contributions (--top none) where they do not fit it either."
        ) from None


def _ready_cells(
    records: Records, file: pl.DataFrame, by: tuple[str, ...], value: str | None, trees: Mapping[str, Hierarchy],
    ready: Ready, relation: SignedRelations | None,
) -> tuple[tuple[Axis, ...], pl.DataFrame]:  # fmt: skip
    parts = ready.completed(file, records.labels)
    parts = parts if value or ready.top else replace(parts, top=())
    _refuse_columns(file.columns, by, value, parts)
    cells = _cells_in_file(file, by, value, parts)
    items = _item_column(cells, by, relation)
    totals = _stated_totals(cells, by, parts, records.labels)
    axes = tuple(
        relation.axis(column)
        if relation is not None and column == items
        else _axis(cells, column, by, totals, trees.get(column))
        for column in by
    )
    rounding = unit(cells["__eq_x"]) / 2 if parts.tolerance is None else parts.tolerance
    tops = [name for name in cells.columns if TOP_NAME.fullmatch(name)]
    cells = _with_signs(cells, signed=relation is not None)
    refuse_contributions(cells, by, tops, rounding)
    numbered = cells.with_columns(_numbers(cells[axis.name], axis) for axis in axes)
    scale = float(cells["__eq_x"].abs().max() or 0) if "gross" in cells.columns else 0.0  # type: ignore[arg-type]
    settled = Sums(axes, rounding, scale).settled(_with_margins(numbered, axes, tops))
    return axes, _with_labels(completed(settled, axes), axes)


def _item_column(cells: pl.DataFrame, by: tuple[str, ...], relation: SignedRelations | None) -> str | None:
    """The column whose codes are the items of the relation: all of them, and no others."""
    if relation is None:
        return None
    every = {*relation.leaves, *relation.parts}
    column = next((name for name in by if set(relation.leaves) <= set(cells[name].to_list()) <= every), None)
    if column is None:
        raise DataError("No column of the table has the items of the relation, and no other labels.")
    return column


def _axis(cells: pl.DataFrame, column: str, by: tuple[str, ...], totals: StatedTotals, tree: Hierarchy | None) -> Axis:
    total = total_of(cells, column, [name for name in by if name != column], totals, tree)
    return axis_of(column, cells[column].unique().to_list(), total, tree)


def _stated_totals(cells: pl.DataFrame, by: tuple[str, ...], ready: Ready, labels: Labels) -> StatedTotals:
    """The totals stated by the user; else those of the file's metadata that its rows have."""
    if ready.total is None:
        return {name: total for name in by if (total := labels.of(name).total) and (cells[name] == total).any()}
    if isinstance(ready.total, str) and not any((cells[name] == ready.total).any() for name in by):
        raise ParameterError(f"No column of the table has the code {ready.total!r}, said to be its total.")
    return ready.total


def _refuse_columns(columns: Sequence[str], by: tuple[str, ...], value: str | None, ready: Ready) -> None:
    require_columns((*by, *((value,) if value else ()), *ready.column_roles().values()), columns)
    for column in ready.total if isinstance(ready.total, Mapping) else ():
        if column not in by and column not in columns:
            raise RolesError.missing(column, by)
    if value is None and ready.n is None:
        raise ParameterError("A table of counts needs the column with the counts: name it with Ready(n=...).")
    for column in by:
        if column in OWN_NAMES or TOP_NAME.fullmatch(column):
            raise ParameterError(f"A table says something else under {column!r}: rename that column.")


def _cells_in_file(file: pl.DataFrame, by: tuple[str, ...], value: str | None, ready: Ready) -> pl.DataFrame:
    """The cells under the names of a table: labels, `_x`, `n`, `contributors`, top1, ... and other columns."""
    labels = [as_text(file[column]).alias(column) for column in by]
    counts = _number(file, ready.n) if ready.n else None
    x = _number(file, value) if value else counts
    assert x is not None
    numeric: dict[str, pl.Series] = {"__eq_x": x}
    numeric |= {f"top{k}": _number(file, column) for k, column in enumerate(ready.top or (), start=1)}
    numeric |= {"cost": _number(file, ready.cost)} if ready.cost else {}
    if ready.lower and ready.upper:
        numeric |= {"lower_level": _number(file, ready.lower), "upper_level": _number(file, ready.upper)}
    numbers = [(name, _file_column(name, value, ready)) for name in numeric]
    cells = pl.DataFrame([*labels, *(series.alias(name) for name, series in numeric.items())])
    refuse_labels(cells, by)
    refuse_numbers(cells, by, numbers, signed="__eq_x")
    cells = _with_counts(cells, by, counts, _number(file, ready.contributors) if ready.contributors else None, ready)
    used = {*by, *ready.column_roles().values(), value}
    columns = (name for name in file.columns if name not in used and name not in OWN_NAMES)
    rest = [file[name] for name in columns if not TOP_NAME.fullmatch(name)]
    return cells.with_columns(*_marks(file, cells["__eq_x"], ready), *rest)


def _file_column(name: str, value: str | None, ready: Ready) -> str:
    """Name in the file of a column of the table."""
    own = {"__eq_x": value or ready.n, "lower_level": ready.lower, "upper_level": ready.upper}
    return str(own.get(name) or ready.column_roles().get(name, name))


def _number(file: pl.DataFrame, column: str) -> pl.Series:
    if not file[column].dtype.is_numeric():
        raise DataError(f"Column {column!r} is {file[column].dtype}, not a number: it cannot be added up.")
    return file[column].cast(pl.Float64)


def _with_counts(
    cells: pl.DataFrame, by: tuple[str, ...], n: pl.Series | None, contributors: pl.Series | None, ready: Ready
) -> pl.DataFrame:
    """Add `n` and `contributors`; without counts in the file, cells of value 0 have none and others null."""
    if n is None:
        nobody = pl.when(pl.col("__eq_x") == 0).then(0)
        cells = cells.with_columns(n=nobody.otherwise(1), contributors=nobody)
        cells = cells if contributors is None else cells.with_columns(n=contributors, contributors=contributors)
    else:
        cells = cells.with_columns(n=n, contributors=n if contributors is None else contributors)
    for column, name in (("n", ready.n), ("contributors", ready.contributors or ready.n)):
        if name:
            refuse_numbers(cells, by, [(column, name)])
            refuse_first(
                cells.filter(pl.col(column) % 1 != 0), by, f"has no whole number in column {name!r}, its count"
            )
    cells = cells.with_columns(pl.col("n", "contributors").cast(pl.Int64))
    refuse_counts(cells, by)
    return cells


def _marks(file: pl.DataFrame, x: pl.Series, ready: Ready) -> list[pl.Series]:
    """Marks `sensitive` and `protected`; of a table that is already protected also `published` and `status`.

    Where tau-ARGUS' number 13 says that some empty cells are no structural zeros, those with 14 are.
    """
    series = []
    status = statuses(file[ready.status]) if ready.status else None
    if ready.sensitive:
        series.append(marked(file[ready.sensitive]).alias("sensitive"))
    elif status is not None and (status == SENSITIVE).any():
        series.append((status == SENSITIVE).alias("sensitive"))
    if status is None:
        return series
    codes = file[str(ready.status)].cast(pl.String).str.strip_chars()
    if codes.is_in(["13"]).any() and STRUCTURAL not in file.columns:
        series.append((codes == "14").fill_null(value=False).alias(STRUCTURAL))
    if (status == SHOWN).any():
        series.append((status == SHOWN).alias("protected"))
    if (status == SECONDARY).any():
        hidden = status.is_in([SENSITIVE, SECONDARY])
        visible = pl.select(pl.when(hidden).then(pl.lit(status)).otherwise(pl.lit(SAFE)).alias("status")).to_series()
        series += [pl.select(pl.when(~hidden).then(x).alias("published")).to_series(), visible]
    return series


def _with_signs(cells: pl.DataFrame, *, signed: bool) -> pl.DataFrame:
    """With `gross` where values are negative: at least what they are without signs, which makes rules stricter."""
    if not signed and not (cells["__eq_x"] < 0).any():
        return cells
    own = pl.col("gross").cast(pl.Float64) if "gross" in cells.columns else pl.col("__eq_x").abs()
    return cells.with_columns(gross=pl.max_horizontal(own, pl.col("__eq_x").abs()))


def _numbers(labels: pl.Series, axis: Axis) -> pl.Series:
    numbers = {label: number for number, label in enumerate(axis.nodes.to_list())}
    return labels.replace_strict(numbers, return_dtype=pl.Int64).alias(axis.name)


def _with_margins(cells: pl.DataFrame, axes: tuple[Axis, ...], tops: list[str]) -> pl.DataFrame:
    """The cells, with those of nodes that have no row at all added up."""
    size = 1
    for axis in axes:
        size *= len(axis)
        cells = pl.concat([cells, _added(cells, axis, [a.name for a in axes], tops)], how="diagonal")
    if size > MAX_PACKED_ID:
        raise ParameterError("The table would have more places than can be numbered: use fewer or coarser columns.")
    return cells


def _added(cells: pl.DataFrame, axis: Axis, by: list[str], tops: list[str]) -> pl.DataFrame:
    members = axis.members.select(
        __eq_leaf=pl.Series(axis.places).gather(axis.members["leaf"]), __eq_node="node", __eq_sign="sign"
    )
    absent = members.join(cells.select(__eq_node=axis.name).unique(), on="__eq_node", how="anti")
    parts = cells.join(absent, left_on=axis.name, right_on="__eq_leaf").drop(axis.name).rename({"__eq_node": axis.name})
    numbers = [n for n, k in cells.schema.items() if k.is_numeric() and n not in by and n not in tops]
    flags = [n for n, k in cells.schema.items() if k == pl.Boolean]
    parts = parts.with_columns(pl.col("__eq_x") * pl.col("__eq_sign")).drop("__eq_sign")
    unknown = pl.col("contributors").null_count() > 0
    sums = parts.group_by(by).agg(
        *(pl.col(name).sum() for name in numbers if name != "contributors"),
        pl.when(~unknown).then(pl.col("contributors").sum()).alias("contributors"),
    ).with_columns(pl.lit(value=False).alias(name) for name in flags)  # fmt: skip
    if not tops:
        return sums
    long = parts.select(*by, *tops).unpivot(tops, index=by, value_name="__eq_top")
    largest = long.group_by(by).agg(pl.col("__eq_top").top_k(len(tops)).sort(descending=True))
    each = [pl.col("__eq_top").list.get(k).alias(name) for k, name in enumerate(tops)]
    return sums.join(largest.select(*by, *each), on=by, how="left")


def _with_labels(cells: pl.DataFrame, axes: tuple[Axis, ...]) -> pl.DataFrame:
    """The cells with labels instead of node numbers, and the columns in the order of a table."""
    labels = [axis.nodes.gather(cells[axis.name]).alias(axis.name) for axis in axes]
    tops = sorted(filter(TOP_NAME.fullmatch, cells.columns), key=lambda name: int(name[3:]))
    own = {"n": cells["n"], "total": cells["n"].cast(pl.Float64), "value": cells["__eq_x"],
           "contributors": cells["contributors"], **{name: cells[name] for name in tops}}  # fmt: skip
    used = {"__eq_x", *own, *(axis.name for axis in axes)}
    rest = {name: cells[name] for name in cells.columns if name not in used}
    if "published" in rest:
        hidden = cells["status"].is_in([SENSITIVE, SECONDARY]).fill_null(value=False)
        rest["published"] = pl.select(pl.when(~hidden).then(cells["__eq_x"])).to_series()
        rest["status"] = rest["status"].fill_null(SAFE)
    return pl.DataFrame({**{series.name: series for series in labels}, **own, **rest})
