"""The cells of a publication, from records or from a table: domain x class, with y, n and N."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from equipoise.beta_binomial.posterior import refuse_counts
from equipoise.data import engines
from equipoise.data.cells import Cells, count
from equipoise.data.records import Records
from equipoise.data.roles import names
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError, ParameterError, RolesError

COUNT_COLUMNS = ("n", "N", "y")
MAX_CROSSED_CELLS = 5_000_000
"""Cells up to which every class is a cell of every domain, occupied or not."""


@dataclass(frozen=True, eq=False, repr=False)
class Domains:
    """One row per cell: the columns that name it, y, n, N; share of configurations; y_eff, n_eff of weighted samples.

    `domain` and `target` are the columns that name the domain and the class; `members` the class that was asked for,
    where it was one; `notes` what has to be said about the numbers.
    """

    table: pl.DataFrame
    domain: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    members: Any = None
    records: Records | None = None
    notes: tuple[str, ...] = ()
    configurations: bool = field(default=False)

    def column(self, name: str) -> Floats:
        """A column as numbers; `share` is 1 and `y_eff`, `n_eff` are y and n where nothing else is known."""
        if name in self.table.columns:
            return numbers(self.table[name])
        return np.ones(self.table.height) if name == "share" else self.column(name.removesuffix("_eff"))

    @property
    def keys(self) -> tuple[str, ...]:
        return (*self.domain, *self.target)

    def classes(self) -> Integers | None:
        """A code per cell for its class; None where there is one class."""
        if not self.target:
            return None
        codes = self.table.select(pl.struct(self.target).rank("dense"))[:, 0].to_numpy() - 1
        return codes if len(codes) and codes.max() > 0 else None


def numbers(column: pl.Series) -> Floats:
    """A column as floats, missing as NaN."""
    try:
        return column.cast(pl.Float64).fill_null(np.nan).to_numpy()
    except pl.exceptions.PolarsError:
        raise DataError(f"Column {column.name!r} must hold numbers.") from None


def domains(source: Any, domain: Any = None, target: Any = None, population: Any = None) -> Domains:
    """Count the cells of records, or take them from a table (n, N, y) or from Cells (domain_n, domain_N, n)."""
    if isinstance(source, Records):
        return _from_records(source, domain, target, population)
    if isinstance(source, Cells):
        return _from_table(_of_cells(source.table), domain, target)
    return _from_table(engines.collect(engines.adopt(source)[0]), domain, target)


def _of_cells(table: pl.DataFrame) -> pl.DataFrame:
    for name in ("domain_n", "domain_N"):
        if name not in table.columns:
            raise RolesError.missing(name, table.columns)
    return table.drop("total").rename({"n": "y", "domain_n": "n", "domain_N": "N"})


def _from_table(table: pl.DataFrame, domain: Any, target: Any) -> Domains:
    for name in (*COUNT_COLUMNS, *names(domain, "domain"), *names(target, "target")):
        if name not in table.columns:
            raise RolesError.missing(name, table.columns)
    if not table.height:
        raise DataError("The table has no cells.")
    refuse_counts(*(numbers(table[c]) for c in ("y", "n", "N")))
    shared = "share" in table.columns
    share = numbers(table["share"]) if shared else np.ones(table.height)
    if not np.isfinite(share).all() or (share < 0).any() or not share.sum() > 0:
        raise DataError("share must hold numbers, zero or more, not all zero.")
    counts = table.drop("y_eff", "n_eff", strict=False)
    return Domains(counts, names(domain, "domain"), names(target, "target"), configurations=shared)


def _from_records(records: Records, domain: Any, target: Any, population: Any) -> Domains:
    areas = names(domain, "domain") or records.roles.domain
    if not areas:
        raise RolesError("Name the domain: the column (or columns) of the areas that were sampled.")
    schema = records.schema()
    classes, members = _target(target, records, areas, schema)
    for column in (*areas, *classes):
        if column not in schema:
            raise RolesError.missing(column, list(schema))
        if column in (*COUNT_COLUMNS, "share", "total"):
            raise RolesError(f"A domain or class cannot be named {column!r}, a column of the cell table: rename it.")
    class_counts = count(records, (*areas, *classes)).table
    whole = class_counts.group_by(areas, maintain_order=True).agg(n=pl.col("n").sum(), total=pl.col("total").sum())
    whole, weighed = _weighed(records, areas, whole)
    whole, notes = _with_population(records, areas, whole, population)
    cells, crossed = _crossed(class_counts, whole, areas, classes, members)
    if weighed:
        cells = cells.with_columns(n_eff=pl.col("n") * pl.col("worth"))
        cells = cells.with_columns(y_eff=pl.col("part") * pl.col("n_eff"))
    cells = cells.drop("worth", "part")
    refuse_counts(*(numbers(cells[c]) for c in ("y", "n", "N")))
    target_columns = classes if members is None else ()
    return Domains(cells, areas, target_columns, (classes, members), records, (*notes, *weighed, *crossed))


def _target(target: Any, records: Records, areas: tuple[str, ...], schema: Any) -> tuple[tuple[str, ...], Any]:
    """The columns of the class, and the class itself where one is meant ('occupation=nurse')."""
    if isinstance(target, str) and target not in schema and "=" in target:
        column, _, value = target.partition("=")
        return (column.strip(),), (value.strip(),)
    if isinstance(target, Mapping):
        return tuple(target), tuple(str(value) for value in target.values())
    columns = names(target, "target") or tuple(c for c in records.roles.keys if c not in areas)
    if not columns:
        raise RolesError("Name the target: the column of the classes, or one class as 'occupation=nurse'.")
    return columns, None


def _weighed(records: Records, areas: tuple[str, ...], whole: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """With `worth`, the effective share of each domain's sample: (sum w)^2 / (n sum w^2)."""
    weight = records.roles.weight
    if weight is None:
        return whole.with_columns(worth=1.0), ()
    w = nw.col(weight).cast(nw.Float64())
    squares = _grouped(records, areas, square=(w * w).sum())
    joined = _joined(whole, squares, areas).with_columns(
        worth=(pl.col("total") ** 2 / (pl.col("square") * pl.col("n"))).fill_nan(0.0).clip(0.0, 1.0)
    )
    worth = joined["worth"].to_numpy()
    if (joined["total"] <= 0).any():
        raise DataError("A domain's weights are all 0: its sample says nothing.")
    if worth.min() > 1 - 1e-9:
        return joined.drop("square"), ()
    note = (
        f"Weights differ within domains: the samples count as {worth.min():.0%} to {worth.max():.0%} of their records, "
        "n_eff = (sum w)^2 / sum w^2, and y_eff is the weighted share of it."
    )
    return joined.drop("square"), (note,)


def _grouped(records: Records, areas: tuple[str, ...], **expressions: nw.Expr) -> pl.DataFrame:
    """Aggregates by domain, on the engine that holds the records."""
    schema = records.schema()
    floats = [nw.col(c).fill_nan(None) for c in areas if schema[c].is_float()]
    frame = records.frame.with_columns(*floats) if floats else records.frame
    aggregates = [expression.alias(name) for name, expression in expressions.items()]
    return engines.collect(frame.group_by(*areas).agg(*aggregates))


def _numeric(records: Records, column: str, what: str) -> nw.Expr:
    """A column of numbers; refused, saying `what` it must hold, where it is none."""
    schema = records.schema()
    if column not in schema:
        raise RolesError.missing(column, list(schema))
    if not schema[column].is_numeric():
        raise DataError(f"Column {column!r} must hold {what}.")
    return nw.col(column).cast(nw.Float64())


def _joined(cells: pl.DataFrame, right: pl.DataFrame, on: tuple[str, ...]) -> pl.DataFrame:
    """Left join on the columns' own types, null equal to null, the left's order kept."""
    try:
        typed = right.cast({c: cells.schema[c] for c in on})
    except pl.exceptions.PolarsError:
        raise DataError("The domains of the population are not of the type of the data's domains.") from None
    return cells.join(typed, on=on, how="left", nulls_equal=True, maintain_order="left")


def _with_population(
    records: Records, areas: tuple[str, ...], whole: pl.DataFrame, population: Any
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """With N, the population of each domain, from a column, a mapping, a frame, or the sum of weights."""
    if population is None:
        return _from_weights(records, whole)
    if isinstance(population, str):
        return _from_column(records, areas, whole, population), ()
    table = _listed(population, areas) if isinstance(population, Mapping) else _framed(population, areas)
    joined = _joined(whole, table, areas)
    lacking = int(joined["N"].null_count())
    if lacking:
        raise DataError(f"N is missing for {lacking:,} of {whole.height:,} domains: give the population of each.")
    return joined, ()


def _from_weights(records: Records, whole: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    if records.roles.weight is None:
        raise RolesError(
            "N is missing: name a column with each domain's population, give a mapping, or a weight to estimate it."
        )
    short = int((whole["total"].round() < whole["n"]).sum())
    sized = whole.with_columns(N=pl.max_horizontal(pl.col("total").round(), pl.col("n").cast(pl.Float64)))
    note = "N is estimated: the sum of the weights of each domain's records, rounded."
    more = (f"In {short:,} domains the weights add up to less than n; N is n there.",) if short else ()
    return sized, (note, *more)


def _from_column(records: Records, areas: tuple[str, ...], whole: pl.DataFrame, column: str) -> pl.DataFrame:
    value = _numeric(records, column, "the population of each domain, a number")
    ends = _grouped(records, areas, N=value.min(), largest=value.max(), gaps=value.is_null().cast(nw.Int64()).sum())
    if ends["gaps"].sum() or ends["N"].is_nan().any():
        raise DataError(f"N is missing: {int(ends['gaps'].sum()):,} records have no value in {column!r}.")
    if (ends["N"] != ends["largest"]).any():
        raise DataError(f"Column {column!r} differs within a domain: the population of a domain is one number.")
    return _joined(whole, ends.drop("largest", "gaps"), areas)


def _listed(population: Mapping[Any, Any], areas: tuple[str, ...]) -> pl.DataFrame:
    keys = [key if isinstance(key, tuple) else (key,) for key in population]
    if any(len(key) != len(areas) for key in keys):
        raise ParameterError(f"population maps {', '.join(areas)} to N: one value of each for every domain.")
    columns = {c: pl.Series([key[i] for key in keys], strict=False) for i, c in enumerate(areas)}
    return pl.DataFrame({**columns, "N": numbers(pl.Series("N", list(population.values()), strict=False))})


def _framed(population: Any, areas: tuple[str, ...]) -> pl.DataFrame:
    table = engines.collect(engines.adopt(population)[0])
    rest = [c for c in table.columns if c not in areas]
    for column in areas:
        if column not in table.columns:
            raise RolesError.missing(column, table.columns)
    size = "N" if "N" in rest else rest[0] if len(rest) == 1 else None
    if size is None:
        raise ParameterError("The population table needs the domain's columns and one column N.")
    sizes = table.select(*areas, pl.Series("N", numbers(table[size])).fill_nan(None))
    if sizes.select(areas).is_duplicated().any():
        raise DataError("A domain stands twice in the population table.")
    return sizes


def _crossed(
    class_counts: pl.DataFrame, whole: pl.DataFrame, areas: tuple[str, ...], classes: tuple[str, ...], members: Any
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Every class in every domain, with y (0 where nobody was sampled) and `part`, its weighted share of the domain."""
    if members is not None:
        same = [pl.col(c).cast(pl.String) == value for c, value in zip(classes, members, strict=True)]
        class_counts, on = class_counts.filter(*same), areas
        grid: pl.DataFrame = whole
        notes: tuple[str, ...] = ()
    else:
        kinds, on = class_counts.select(classes).unique().sort(classes), (*areas, *classes)
        small = kinds.height * whole.height <= MAX_CROSSED_CELLS
        grid = whole.join(kinds, how="cross") if small else _joined(class_counts.select(on), whole, areas)
        notes = () if small else (f"Only occupied cells are listed: all would be {kinds.height * whole.height:,}.",)
    counts = class_counts.select(*on, y=pl.col("n"), held=pl.col("total"))
    cells = _joined(grid, counts, on).with_columns(pl.col("y", "held").fill_null(0))
    cells = cells.with_columns(part=(pl.col("held") / pl.col("total")).clip(0.0, 1.0)).drop("held", "total")
    return cells.select(*on, "y", "n", "N", "worth", "part"), notes


def of_domain(data: Domains, column: str) -> Floats:
    """A column of the table, or its mean over the records of each cell's domain."""
    if data.records is None:
        return summed(data, column)
    covariate = _numeric(data.records, column, "numbers to be a covariate")
    means = _grouped(data.records, data.domain, value=covariate.mean())
    return numbers(_joined(data.table, means, data.domain)["value"])


def summed(data: Domains, column: str) -> Floats:
    """What a column of the user's adds up to in each cell: from the table itself, or over the cell's records."""
    if data.records is None:
        if column not in data.table.columns:
            raise RolesError.missing(column, data.table.columns)
        return numbers(data.table[column])
    importance = _numeric(data.records, column, "numbers: the importance of each record")
    classes, members = data.members
    total = _grouped(data.records, (*data.domain, *classes), value=importance.sum())
    if members is not None:
        total = total.filter(pl.col(c).cast(pl.String) == v for c, v in zip(classes, members, strict=True))
        total = total.drop(classes)
    return _joined(data.table, total, data.keys)["value"].fill_null(0.0).to_numpy()
