"""Losses that depend on the class or on a column of the user's, and the uniques they expect against those counted."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from equipoise.beta_binomial.posterior import Posterior, evaluate_loss
from equipoise.data.cells import count
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import ParameterError, RolesError
from equipoise.losses.expectation import PER_CELL_NAMES, UNITS, Loss, LossShape, expected, read, shape
from equipoise.losses.subclasses import Subclasses
from equipoise.publishing.cells_of_domains import Domains, summed

FIT_SHARE = 0.2
"""A loss whose uniques differ by less than this share from those counted fits them."""


@dataclass(frozen=True, eq=False)
class CellLoss:
    """A number per cell, whatever its population: the importance of a cell in a column of the user's."""

    name: str
    values: Floats = field(repr=False)

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, y: Any, Y: Any, n: Any = None, N: Any = None) -> Any:  # noqa: N803
        return self.values.reshape(np.asarray(y).shape) + 0 * np.asarray(Y)

    def expected(self, cells: Posterior) -> Floats:
        if len(self.values) != len(cells):
            raise ParameterError(f"Column {self.name!r} belongs to other cells.")
        return np.where(np.isnan(self.values), np.inf, self.values)

    def bend(self, y: Any, Y: Any, n: Any = None, N: Any = None) -> Any:  # noqa: N803
        return np.zeros(np.broadcast_shapes(np.shape(y), np.shape(Y)))


@dataclass(frozen=True, eq=False)
class ClassLoss:
    """Another loss in each class of cells: `code` says which of `losses` a cell has."""

    losses: tuple[Loss, ...]
    code: Integers = field(repr=False)

    def expected(self, cells: Posterior) -> Floats:
        losses = np.zeros(len(cells))
        for place, loss in enumerate(self.losses):
            rows = np.flatnonzero(self.code == place)
            losses[rows] = expected(loss, cells.take(rows))
        return losses

    def __call__(self, y: Any, Y: Any, n: Any, N: Any) -> Any:  # noqa: N803
        return self._each("__call__", y, Y, n, N)

    def bend(self, y: Any, Y: Any, n: Any, N: Any) -> Any:  # noqa: N803
        return self._each("bend", y, Y, n, N)

    def _each(self, name: str, *arrays: Any) -> Any:
        parts = np.broadcast_arrays(*arrays)
        values = np.zeros(parts[0].shape)
        for place, loss in enumerate(self.losses):
            rows = self.code == place
            values[rows] = getattr(loss, name)(*(part[rows] for part in parts))
        return values

    @property
    def counts_uniques(self) -> bool:
        return all(getattr(loss, "counts_uniques", False) for loss in self.losses)

    def shape(self, cells: Posterior) -> LossShape:
        parts = [shape(loss, cells.take(np.flatnonzero(self.code == k))) for k, loss in enumerate(self.losses)]
        return LossShape(all(part.decreasing for part in parts), all(part.convex for part in parts))


def by_class(loss: Loss, data: Domains) -> Loss:
    """The loss itself, or subclasses whose shares are counted by their keys within each class."""
    if not isinstance(loss, Subclasses) or loss.keys is None:
        return loss
    if data.records is None:
        raise ParameterError("The shares of these subclasses are counted from records: give Records as the source.")
    classes, members = data.members
    keys = _keys(loss.keys, data)
    table = count(data.records, (*dict.fromkeys((*classes, *keys)),)).table
    if members is not None:
        table = table.filter(pl.col(c).cast(pl.String) == v for c, v in zip(classes, members, strict=True))
        return _subclass_shares(table)
    parts = table.partition_by(classes, maintain_order=True)
    code = data.table.select(pl.struct(classes).rank("dense"))[:, 0].to_numpy().astype(np.int64) - 1
    firsts = pl.concat([part.select(classes).head(1) for part in parts])
    rank = firsts.select(pl.struct(classes).rank("dense"))[:, 0].to_numpy() - 1
    return ClassLoss(tuple(_subclass_shares(parts[place]) for place in np.argsort(rank)), code)


def _keys(keys: tuple[str, ...], data: Domains) -> tuple[str, ...]:
    schema = data.records.schema() if data.records is not None else {}
    for key in keys:
        if key not in schema:
            raise RolesError.missing(key, list(schema))
    classes, _ = data.members
    others = tuple(key for key in keys if key not in (*data.domain, *classes))
    if not others:
        raise ParameterError("The keys of the subclasses must be others than the domain and the target.")
    return others


def _subclass_shares(table: pl.DataFrame) -> Subclasses:
    total = table["total"].to_numpy()
    shares = total[total > 0] / total.sum()
    return Subclasses(tuple(np.minimum(shares, 1.0).tolist()))


@dataclass(frozen=True)
class UniquesMisfit:
    """Uniques on the keys among each cell's own records: how many the loss expects, and how many there are.

    In the sample itself everything is known: with Y = y the loss is the number of records that should be alone on the
    keys. The same model, at Y, is what R1 rests on.
    """

    keys: tuple[str, ...]
    expected: float
    counted: int
    cells: pl.DataFrame = field(repr=False, compare=False)

    @property
    def ratio(self) -> float:
        return self.counted / self.expected if self.expected > 0 else float("inf") if self.counted else 1.0

    @property
    def fits(self) -> bool:
        """Within a fifth, or within three Poisson deviations."""
        gap = abs(self.counted - self.expected)
        return bool(gap <= max(FIT_SHARE * self.expected, 3 * np.sqrt(max(self.expected, 1.0))))

    @property
    def words(self) -> str:
        words = (
            f"Among the records of the cells the loss expects {self.expected:,.0f} uniques on {', '.join(self.keys)}; "
            f"there are {self.counted:,}"
        )
        if self.fits:
            return f"{words}: the model of the loss fits the file."
        more = "understates" if self.counted > self.expected else "overstates"
        return f"{words}: the loss {more} disclosure, and the order of cells may be wrong."


def misfit(loss_name: Loss, loss: Loss, data: Domains, law: Posterior) -> UniquesMisfit | None:
    """The uniques that a loss expects in the sample against those counted; None where it is no count of uniques.

    Counted on the keys an intruder may know, or on those of the loss where the roles name none."""
    if data.records is None or not getattr(loss, "counts_uniques", False):
        return None
    classes, members = data.members
    role_keys = tuple(key for key in data.records.roles.keys if key not in (*data.domain, *classes))
    keys = role_keys or (_keys(loss_name.keys, data) if isinstance(loss_name, Subclasses) and loss_name.keys else ())
    if not keys:
        return None
    on = (*data.domain, *classes)
    table = count(data.records, (*on, *keys)).table
    if members is not None:
        table = table.filter(pl.col(c).cast(pl.String) == v for c, v in zip(classes, members, strict=True))
    alone = table.group_by(data.keys).agg(counted=(pl.col("n") == 1).sum().cast(pl.Int64))
    cells = data.table.select(data.keys).join(alone, on=data.keys, how="left", nulls_equal=True, maintain_order="left")
    values = evaluate_loss(loss, law.y, law.y, law.n, law.N)
    cells = cells.with_columns(pl.col("counted").fill_null(0), expected=values)
    return UniquesMisfit(keys, float(values.sum()), int(cells["counted"].sum()), cells)


def silence(nonpublication: Any, data: Domains) -> Loss:
    """The loss of not publishing: one of the listed, a function, or a column of the user's."""
    if not isinstance(nonpublication, str) or nonpublication in (*UNITS, *PER_CELL_NAMES):
        return read(nonpublication)
    columns = data.records.schema() if data.records is not None else data.table.columns
    if nonpublication not in columns and any(mark in nonpublication for mark in ":("):
        return read(nonpublication)
    return CellLoss(nonpublication, summed(data, nonpublication))
