"""How many of the file's records are unique in the population."""

import warnings
from dataclasses import dataclass

import numpy as np

from equipoise.core.cell_score import cell_score
from equipoise.core.cells import Cells
from equipoise.core.codes import Floats
from equipoise.core.errors import EquipoiseWarning, ParameterError
from equipoise.core.method import as_cells, label
from equipoise.core.records import Records
from equipoise.core.roles import Roles
from equipoise.core.score import Score, not_applicable

FAR = 10
"""A population of more than ten times the sample is outside what the estimator was checked for."""


@dataclass(frozen=True, slots=True)
class PopulationUniques:
    """Share of the file's records expected to be unique in the population it was sampled from.

    With n records from N = n / fraction, and m_i classes of i records in the sample, the population's class sizes are
    taken to be distributed as the sample's. A class of i people gives one record with probability
    h(i) = i C(N-i, n-1) / C(N, n), so P(population unique | sample unique) = m_1 h(1) / sum_i m_i h(i); the value is
    that times the share of sample uniques. `number` is the expected number of population uniques in the file; divided
    by `fraction` it is their number in the population.

    Source: Zayatz (1991), *Estimation of the Percent of Unique Population Elements on a Microdata File Using the
    Sample*, US Census Bureau SRD/RR-91/08; Greenberg and Zayatz (1992). Assumption: the population's classes are
    distributed in size like the sample's.
    Misleads when the population is more than about ten times the sample (Massell 1999): then it warns.
    Cost: O(cells).

    >>> import polars as pl
    >>> cells = Cells.of(pl.DataFrame({"age": [30, 31, 32], "n": [1, 1, 2]}))
    >>> PopulationUniques(1.0).measure(cells, cells).value
    0.5
    """

    fraction: float
    model: str = "zayatz"

    def __post_init__(self) -> None:
        if not 0 < self.fraction <= 1:
            hint = " Write 5 % as 0.05." if self.fraction > 1 else ""
            raise ParameterError(f"fraction must be above 0 and at most 1, got {self.fraction:g}.{hint}")
        if self.model != "zayatz":
            raise ParameterError(f"No model {self.model!r}. There is: zayatz.")

    def by(self, roles: Roles) -> tuple[str, ...]:
        return roles.keys

    def measure(self, released: Records | Cells, original: Records | Cells) -> Score:
        if isinstance(released, Records) and released.synthetic:
            return not_applicable(label(self), "lower")
        cells = as_cells(released, self.by(released.roles)) if isinstance(released, Records) else released
        risk = np.where(cells.alike[0] == 1, stays_unique(cells, self.fraction), 0.0)
        notes: tuple[str, ...] = ()
        if 1 / self.fraction > FAR:
            notes = (
                f"The population is {1 / self.fraction:,.0f} times the sample: "
                f"the estimator is known to be good only up to {FAR} times.",
            )
            warnings.warn(notes[0], EquipoiseWarning, stacklevel=2)
        return cell_score(label(self), released, cells, risk, notes)


def stays_unique(cells: Cells, fraction: float) -> float:
    """P(population unique | sample unique) of Zayatz (1991), in logarithms so that no size overflows."""
    sizes, place = np.unique(cells.alike[0], return_inverse=True)
    classes = np.bincount(place, weights=cells.n) / sizes
    if not len(sizes) or sizes[0] != 1:
        return 0.0
    n = cells.records
    ratios = np.exp(_log_one_record(sizes, n, max(n, round(n / fraction))))
    return float(classes[0] * ratios[0] / (classes * ratios).sum())


def _log_one_record(sizes: "np.ndarray[tuple[int], np.dtype[np.int64]]", n: int, population: int) -> Floats:
    """Log probability that a class of each size gives exactly one record to a sample of n."""
    from scipy.special import gammaln

    def log_choose(top: Floats, bottom: float) -> Floats:
        possible = top >= bottom
        safe = np.where(possible, top, bottom)
        return np.where(possible, gammaln(safe + 1) - gammaln(bottom + 1) - gammaln(safe - bottom + 1), -np.inf)

    i = sizes.astype(np.float64)
    found: Floats = np.log(i) + log_choose(population - i, n - 1) - log_choose(np.array([float(population)]), n)
    return found
