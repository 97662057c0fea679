"""Expected-loss rule: publishing a cell is expected to cost more than suppressing it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from equipoise.beta_binomial.prior import fit
from equipoise.data.cells import Cells
from equipoise.data.roles import names
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError, ParameterError, require_columns
from equipoise.losses.expectation import LOSS_KINDS, as_text, read, risks
from equipoise.methods.parameters import above
from equipoise.methods.protection_levels import Together

DOMAIN_COUNTS = ("domain_n", "domain_N")
"""Columns of ready cells with the sample and the population of their domain."""


@dataclass(frozen=True, slots=True)
class ExpectedLoss(Together):
    """A cell is unsafe when publishing it is expected to cost at least `cutoff` times the cost of suppressing it.

    R1 >= c R0 with R_d = E L_d(y, Y, n, N) | y and Y - y | y ~ BetaBinomial(N - n, alpha + y, beta + n - y). Cells are
    counted by `domain` and the classes: y is a cell's n, the domain's n and N are sums over it. N is `population` (a
    column of the cells, or a mapping of domain to N) or else the domain's total weight. Ready cells may hold
    domain_n and domain_N instead. `prior` is (alpha, beta), or is fitted over all domains for each class. A cell that
    costs nothing when published is safe. Losses are text ('uniques:10'), one of eq.losses, or functions.
    Source: Zaslavsky and Horton (1998), section 2.
    Misleads when weights differ within a domain (cells do not know it: `eq.publication` of the records does), or when
    margins are published from which a suppressed cell follows. Cost: one integral for each kind of cell, a few
    seconds for a million different ones.

    >>> table = pl.DataFrame({"domain_n": [3, 3, 5], "domain_N": [8, 8, 20], "area": [1, 2, 3], "n": [1, 2, 4]})
    >>> ExpectedLoss("uniques:10", "y", (1, 10), cutoff=0.75).flag(Cells.of(table)).to_list()
    [True, False, False]
    """

    disclosure: Any = "uniques:10"
    nonpublication: Any = "y"
    prior: tuple[float, float] | None = None
    domain: tuple[str, ...] = ()
    population: Any = None
    cutoff: float = 1.0

    def __post_init__(self) -> None:
        for name in ("disclosure", "nonpublication"):
            object.__setattr__(self, name, _as_text(getattr(self, name)))
        object.__setattr__(self, "domain", names(self.domain, "domain"))
        object.__setattr__(self, "population", _pairs(self.population))
        above(self.cutoff, "cutoff")
        if self.prior is not None:
            object.__setattr__(self, "prior", _two(self.prior))

    def flag(self, cells: Cells) -> pl.Series:
        suppressed, published = self.risks(cells)
        safe = (published == 0) | (published < self.cutoff * suppressed)
        return pl.Series("unsafe", ~safe)

    def risks(self, cells: Cells) -> tuple[Floats, Floats]:
        """R0 and R1 of each cell."""
        y, n, N = self.counts(cells)  # noqa: N806
        alpha, beta = self.prior or self._fit_prior(cells, y, n)
        return risks(y, n, N, alpha, beta, disclosure=self.disclosure, nonpublication=self.nonpublication)

    def explain(self, cell: Mapping[str, Any]) -> str:
        """The verdict in words, for a cell with n, domain_n and domain_N, where the rule has a prior."""
        lacking = [name for name in ("n", *DOMAIN_COUNTS) if name not in cell]
        if lacking or self.prior is None:
            raise ParameterError("To explain a cell, give the rule a prior and the cell n, domain_n and domain_N.")
        (y, n, N), (alpha, beta) = (cell[name] for name in ("n", *DOMAIN_COUNTS)), self.prior  # noqa: N806
        both = risks(y, n, N, alpha, beta, disclosure=self.disclosure, nonpublication=self.nonpublication)
        suppressed, published = (float(part[0]) for part in both)
        safe = published == 0 or published < self.cutoff * suppressed
        costs = f"publishing is expected to cost {published:.4g}, suppressing {suppressed:.4g}"
        return f"{'Safe' if safe else 'Unsafe'}: {costs}; the cutoff is {self.cutoff:g}."

    def counts(self, cells: Cells) -> tuple[Floats, Floats, Floats]:
        """y, n and N of each cell."""
        y = cells.n.astype(np.float64)
        if set(DOMAIN_COUNTS) <= set(cells.table.columns):
            n, N = (_numbers(cells.table[name]) for name in DOMAIN_COUNTS)  # noqa: N806
            return y, n, N
        place = self._places(cells)
        sample: Floats = np.bincount(place, weights=y).astype(np.float64)
        return y, sample[place], self._sizes(cells, place)

    def _places(self, cells: Cells) -> Integers:
        """The domain of each cell, as a number."""
        if not self.domain:
            raise ParameterError("expected_loss needs the domain: the columns of the areas that were sampled.")
        for column in self.domain:
            cells.place(column)
        codes = cells.table.select(pl.struct(self.domain).rank("dense"))[:, 0].to_numpy()
        return codes.astype(np.int64) - 1

    def _sizes(self, cells: Cells, place: Integers) -> Floats:
        """The population of each cell's domain."""
        if isinstance(self.population, str):
            require_columns((self.population,), cells.table.columns)
            return _numbers(cells.table[self.population])
        if self.population is not None:
            return self._population_by_domain(cells)
        total = np.bincount(place, weights=cells.total)
        sample = np.bincount(place, weights=cells.n)
        if (total == sample).all():
            raise DataError("N is missing: give population, a mapping of domain to N, or a weight to estimate it from.")
        return np.maximum(np.rint(total), sample)[place]

    def _population_by_domain(self, cells: Cells) -> Floats:
        sizes = {_name(key): float(size) for key, size in self.population}
        rows = [_name(row) for row in cells.table.select(self.domain).rows()]
        lacking = len(set(rows) - set(sizes))
        if lacking:
            raise DataError(f"N is missing for {lacking:,} domains: give the population of each.")
        return np.array([sizes[row] for row in rows])

    def _fit_prior(self, cells: Cells, y: Floats, n: Floats) -> tuple[Floats, Floats]:
        """alpha and beta of each cell, fitted over all domains, also those without a class."""
        if set(DOMAIN_COUNTS) <= set(cells.table.columns):
            return fit(y, n).per_row(len(y))
        place = self._places(cells)
        kinds = [c for c in cells.by if c not in self.domain and c != self.population]
        kind = cells.table.select(pl.struct(kinds).rank("dense"))[:, 0].to_numpy().astype(np.int64) - 1
        size, areas = int(kind.max()) + 1, int(place.max()) + 1
        if areas < 2:
            raise DataError("There is one domain only: a prior cannot be fitted to it, give prior=(alpha, beta).")
        counts = np.bincount(place * size + kind, weights=y, minlength=areas * size).astype(np.float64)
        whole = np.repeat(np.bincount(place, weights=y).astype(np.float64), size)
        alpha, beta = fit(counts, whole, np.tile(np.arange(size), areas)).per_row(areas * size)
        return alpha[place * size + kind], beta[place * size + kind]


def _as_text(loss: Any) -> Any:
    """A listed loss as text, so that the rule can be written to a file; a function unchanged."""
    function = read(loss)
    return as_text(function) if type(function) in LOSS_KINDS.values() else function


def _two(prior: Any) -> tuple[float, float]:
    try:
        alpha, beta = prior
    except (TypeError, ValueError):
        raise ParameterError("prior must be (alpha, beta), or None to fit it.") from None
    above(alpha, "alpha")
    above(beta, "beta")
    return float(alpha), float(beta)


def _pairs(population: Any) -> Any:
    """A mapping as pairs, which are hashable and can be written."""
    if population is None or isinstance(population, str):
        return population
    pairs = population.items() if isinstance(population, Mapping) else population
    try:
        sizes = tuple((tuple(key) if isinstance(key, list) else key, float(size)) for key, size in pairs)
    except (TypeError, ValueError):
        raise ParameterError("population must be the name of a column, or a mapping of domain to N.") from None
    return sizes


def _name(key: Any) -> tuple[str, ...]:
    """A domain's name as text, so that files can write it."""
    return tuple(str(part) for part in (key if isinstance(key, tuple) else (key,)))


def _numbers(column: pl.Series) -> Floats:
    try:
        return column.cast(pl.Float64).fill_null(np.nan).to_numpy()
    except pl.exceptions.PolarsError:
        raise DataError(f"Column {column.name!r} must hold numbers.") from None
