"""Perturbation tables: the law of the change of a count or an amount, by maximum entropy or from a file.

A row of the law belongs to a count i (the last one to all counts from there on) and gives changes v their probabilities
p; laid end to end these are intervals of [0, 1], and the cell's key says which change it gets. Of amounts i is how many
units of noise a cell has: rows stand for some i only, and between two of them changes are interpolated.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import polars as pl

from equipoise.ground import system
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError, InfeasibleError

SURE = 1e-6
"""How far the probabilities of a row may miss 1, files having few digits."""


@dataclass(frozen=True, eq=False, repr=False)
class Ptable:
    """Changes `v` with the upper ends of their intervals, sorted by count `i` and then by interval."""

    i: Integers
    v: Floats
    p: Floats
    upper: Floats

    @property
    def largest(self) -> int:
        """The count from which on all counts have one law."""
        return int(self.i.max())

    def change(self, counts: Integers, keys: Floats) -> Floats:
        """The change of each count: the first interval whose upper end is not below the key. 0 stays 0 where it may.

        >>> half = Ptable(np.array([0, 1, 1]), np.array([0.0, -1, 1]), np.array([1, 0.5, 0.5]), np.array([1, 0.5, 1.0]))
        >>> half.change(np.array([0, 1, 7]), np.array([0.9, 0.5, 0.51])).tolist()
        [0.0, -1.0, 1.0]
        """
        row = np.minimum(counts, self.largest)
        place = np.searchsorted(self.i + self.upper / 2, row + keys / 2, side="left")
        return self.v[np.minimum(place, np.searchsorted(self.i, row, side="right") - 1)]

    def interpolated(self, units: Floats, keys: Floats) -> Floats:
        """The change of amounts that hold so many units: between two rows of the law the mean of theirs, by distance.

        A row's change is that of the first interval whose upper end is above the key. Both rows have mean 0 and at most
        some variance, hence the interpolated change has, too.

        >>> law = Ptable(np.array([0, 1, 1]), np.array([0.0, -1, 1]), np.array([1, 0.5, 0.5]), np.array([1, 0.5, 1.0]))
        >>> law.interpolated(np.array([0.5, 9.0]), np.array([0.2, 0.5])).tolist()
        [-0.5, 1.0]
        """
        rows, starts = np.unique(self.i, return_index=True)
        at = [
            self.v[part][np.minimum(np.searchsorted(self.upper[part], keys, side="right"), len(part) - 1)]
            for part in np.split(np.arange(len(self.i)), starts[1:])
        ]
        held = np.minimum(units, self.largest)
        above = np.clip(np.searchsorted(rows, held, side="left"), 1, len(rows) - 1)
        part = (held - rows[above - 1]) / (rows[above] - rows[above - 1])
        changes, cell = np.stack(at), np.arange(len(keys))
        return np.asarray((1 - part) * changes[above - 1, cell] + part * changes[above, cell])

    def variance(self, counts: Integers) -> Floats:
        """The variance of the change of each count."""
        squares, means = (np.bincount(self.i, weights=self.p * self.v**power) for power in (2, 1))
        variances = np.asarray(squares - means**2, dtype=np.float64)
        return variances[np.minimum(counts, self.largest)]

    @property
    def biased(self) -> int:
        """How many counts have a law whose mean is not 0."""
        means = np.bincount(self.i, weights=self.p * self.v)
        return int((np.abs(means) > SURE).sum())

    @property
    def table(self) -> pl.DataFrame:
        """As a file: count i, target j, probability p, change v, and the ends of the interval."""
        ends = {"p_int_lb": self.upper - self.p, "p_int_ub": self.upper}
        return pl.DataFrame({"i": self.i, "j": self.i + self.v, "p": self.p, "v": self.v, **ends})


@cache
def generate(most: int, variance: float, above: int = 0) -> Ptable:
    """The law of maximum entropy with changes of mean 0, variance at most `variance`, none larger than `most`.

    No count becomes negative or one of 1, ..., `above`; 0 stays 0; up to 0 no larger change is likelier than a smaller
    one. p is proportional to exp(a v + b v^2) with b <= 0, and runs of changes that would break the last condition
    share their geometric mean.

    Source: Giessing (2016), *Computational issues in the design of transition probabilities*; Fraser and Wooton (2006).

    >>> law = generate(2, 1.0)
    >>> law.table.filter(i=2)["p"].round(4).to_list()
    [0.0638, 0.2447, 0.383, 0.2447, 0.0638]
    """
    rows = [(0, np.zeros(1), np.ones(1))]
    for i in range(1, (most + above + 1 if above else most) + 1):
        targets = np.arange(max(i - most, 0), i + most + 1)
        v = (targets[(targets == 0) | (targets > above)] - i).astype(np.float64)
        rows.append((i, v, _entropic(v, variance)))
    return _stacked(rows)


@cache
def generate_for_amounts(most: int, variance: float, step: int) -> Ptable:
    """The same law for amounts: changes in steps of 1 / `step`, rows for 1, half of `most` and `most` units.

    Source: the R package ptable (create_num_ptable) of Enderle, Giessing and Tent.

    >>> generate_for_amounts(2, 1.0, 1).table.filter(i=2)["p"].round(4).to_list()
    [0.0638, 0.2447, 0.383, 0.2447, 0.0638]
    """
    rows = [(0, np.zeros(1), np.ones(1))]
    for i in sorted({1, (most + 1) // 2, most}):
        v = np.arange(-i * step, most * step + 1) / step
        rows.append((i, v, _entropic(v, variance)))
    return _stacked(rows)


def _stacked(rows: list[tuple[int, Floats, Floats]]) -> Ptable:
    """The rows (i, changes, probabilities) as one table, their intervals laid end to end."""
    counts = np.concatenate([np.full(len(v), i) for i, v, _ in rows])
    v, p = np.concatenate([v for _, v, _ in rows]), np.concatenate([p for _, _, p in rows])
    upper = np.concatenate([np.minimum(np.append(np.cumsum(p)[:-1], 1.0), 1.0) for _, _, p in rows])
    return Ptable(counts, v, p, upper)


def _entropic(v: Floats, variance: float) -> Floats:
    """The likeliest law on these changes; the variance binds only where it is below that without it."""
    from scipy.optimize import brentq

    if not (v.min() < 0 < v.max()) or _least(v) > variance:
        raise InfeasibleError(
            f"No law of mean 0 and variance {variance:g} keeps to these limits: allow more variance or smaller changes."
        )
    free = _law(v, 0.0)
    if free @ v**2 <= variance:
        return free
    low = -1.0
    while _law(v, low) @ v**2 > variance:
        low *= 2.0
        if low < -1e6:
            raise InfeasibleError(f"No law of mean 0 and variance {variance:g} was found: allow more variance.")
    b = brentq(lambda b: float(_law(v, b) @ v**2) - variance, low, 0.0, xtol=1e-13, rtol=1e-13, maxiter=500)
    return _law(v, b)


def _least(v: Floats) -> float:
    """The least variance of a law of mean 0: that of the changes next to 0 on both sides, or 0."""
    return 0.0 if (v == 0).any() else float(-v[v < 0].max() * v[v > 0].min())


def _law(v: Floats, b: float) -> Floats:
    """The law of mean 0 for a given b."""
    from scipy.optimize import brentq

    width = 50.0 + 2 * abs(b) * float(np.abs(v).max())
    a = brentq(lambda a: float(_shape(v, a, b) @ v), -width, width, xtol=1e-13, rtol=1e-13, maxiter=500)
    return _shape(v, a, b)


def _shape(v: Floats, a: float, b: float) -> Floats:
    from scipy.optimize import isotonic_regression

    logs = a * v + b * v**2
    rising = int(np.searchsorted(v, 0.0, side="right")) if (v == 0).any() else 0
    if rising > 1 and (np.diff(logs[:rising]) < 0).any():
        logs = np.append(isotonic_regression(logs[:rising]).x, logs[rising:])
    p = np.exp(logs - logs.max())
    return p / p.sum()


@cache
def read(path: str) -> Ptable:
    """A ptable from a file: columns i, v and p_int_ub (or p_ij_ub), with commas or semicolons.

    A file for several types of cells (column type) must have one type only: `all`.
    """
    types = _types(path)
    if len(types) > 1:
        raise DataError("The ptable has laws for several types of cells: give the file of one.")
    return _checked(next(iter(types.values())))


@cache
def read_for_amounts(path: str) -> dict[str, Ptable]:
    """The ptables of a file for amounts by the types of cells they are for: all, or even and odd; small_cells."""
    laws = {name: _checked(rows, gaps=True) for name, rows in _types(path).items()}
    if set(laws) - {"small_cells"} not in ({"all"}, {"even", "odd"}):
        raise DataError(
            "The types of a ptable for amounts are all, or even and odd; and small_cells where these differ."
        )
    return laws


def _types(path: str) -> dict[str, pl.DataFrame]:
    """The rows of a file (i, v, upper) for each type of cell; type `all` where the file names none."""
    try:
        text = system.stored(path).read_text(encoding="utf-8")
        table = pl.read_csv(text.encode(), separator=";" if ";" in text.partition("\n")[0] else ",")
    except (OSError, UnicodeDecodeError, pl.exceptions.PolarsError):
        raise DataError("The file of the ptable cannot be read as text with columns.") from None
    columns = {c.strip().lower(): c for c in table.columns}
    upper = columns.get("p_int_ub") or columns.get("p_ij_ub")
    if upper is None or not {"i", "v"} <= set(columns):
        raise DataError("A ptable has the columns i, v and p_int_ub (or p_ij_ub).")
    kind = pl.col(columns["type"]).cast(pl.String) if "type" in columns else pl.lit("all")
    rows = table.select(type=kind, i=columns["i"], v=columns["v"], upper=upper)
    parts = rows.partition_by("type", as_dict=True, include_key=False, maintain_order=True)
    return {str(name[0]): part for name, part in parts.items()}


def _checked(table: pl.DataFrame, gaps: bool = False) -> Ptable:
    if not all(dtype.is_numeric() for dtype in table.dtypes) or sum(table.null_count().row(0)):
        raise DataError("A ptable has numbers only in i, v and the upper ends of the intervals.")
    ordered = table.cast(pl.Float64).sort("i", "upper")
    i, v, upper = (ordered[c].to_numpy() for c in ("i", "v", "upper"))
    last = np.append(np.diff(i) > 0, True)
    if (i != np.round(i)).any() or (not gaps and not np.array_equal(np.unique(i), np.arange(i.max() + 1))):
        raise DataError("The counts i of a ptable are 0, 1, 2, ... without a gap.")
    if gaps and (i.min() != 0 or i.max() < 1):
        raise DataError("A ptable for amounts has a row for i = 0 and at least one more.")
    if (np.abs(upper[last] - 1) > SURE).any() or (upper < 0).any():
        raise DataError("The intervals of every count in a ptable end at 1.")
    first = np.append(True, last[:-1])
    p = upper - np.where(first, 0.0, np.append(0.0, upper[:-1]))
    return Ptable(i.astype(np.int64), v, p, np.where(last, 1.0, upper))
