"""How many of the file's records are unique in the population."""

import warnings
from dataclasses import dataclass
from math import prod
from typing import Literal

import numpy as np

from equipoise.data.cells import Cells
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.data.sampling_fraction import check_fraction
from equipoise.ground.errors import EquipoiseWarning, ParameterError
from equipoise.methods.method import as_cells, label
from equipoise.methods.score import Score, not_applicable
from equipoise.risk._cell_score import cell_score
from equipoise.risk._superpopulation_models import BEST, MODELS, ZAYATZ, ClassSizes, ModelFit, fitted

FAR = 10
"""A population of more than ten times the sample is outside what Zayatz's estimator was checked for."""
OFF = 0.1
"""A model that expects so many more or fewer sample uniques than there are, as a share, is said to fit badly."""
NAMES = {"zayatz": "Zayatz's", "pitman": "Pitman's", "poisson-gamma": "the Poisson-gamma", "slide": "the slide"}


@dataclass(frozen=True)
class PopulationEstimate:
    """What is expected of the sample uniques, and by which model.

    `expected` is how many sample uniques the fitted model would have foreseen: far from `sample_uniques` it fits badly.
    """

    model: str
    sample_uniques: int
    in_file: float
    in_population: float
    expected: float
    parameters: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class PopulationUniques:
    """Share of the file's records expected to be unique in the population it was sampled from.

    The value is P(F = 1 | f = 1), of a class with f = 1 record and F people, times the share of sample uniques.
    `number` is the expected number of population uniques in the file; divided by `fraction` it is their number in the
    population. n records from N = n / fraction, s_j classes of j records in the sample; P(F = 1 | f = 1) by `model`:

    - "zayatz": s_1 h(1) / sum_j s_j h(j) with h(j) = j C(N-j, n-1) / C(N, n), the probability that a class of j people
      gives one record: the population's class sizes are taken to be distributed as the sample's;
    - "pitman": product_{i=n}^{N-1} (theta + alpha + i - 1) / (theta + i), about (n / N)^(1 - alpha), with theta and
      alpha by maximum likelihood of Pitman's sampling formula;
    - "poisson-gamma": ((1 + n beta) / (1 + N beta))^(1 + alpha), counts of the K combinations of the keys' values in
      the file being Poisson with gamma(alpha, beta) rates, alpha beta = 1 / K, by maximum likelihood;
    - "slide": (1 - q)^(alpha + 1) / (1 - q + alpha q) with q = (1 - fraction)(1 - beta): a class has one person and a
      negative binomial number of others, by maximum likelihood of the classes of 1, 2, 3 and more records;
    - "best": Pitman's model up to a fraction of 0.1 (Ewens's where alpha falls to 0), above it the smaller of the slide
      and Zayatz estimates; Zayatz where a likelihood has no maximum, every record being alone.

    Summed over the file, the published number of population uniques S_1 (Pitman: N times the product from i = 1;
    Poisson-gamma: N (1 + N beta)^-(1 + alpha); slide: the classes times beta^alpha) is that with the sample uniques a
    model expects in place of those there are. `estimate` gives the numbers, the model and its parameters.

    Source: Zayatz (1991), US Census Bureau SRD/RR-91/08; Hoshino (2001), *Applying Pitman's sampling formula to
    microdata disclosure risk assessment*, J. Official Statistics 17; Bethlehem, Keller and Pannekoek (1990),
    *Disclosure control of microdata*, JASA 85; Chen and Keller-McNulty (1998), *Estimation of identification disclosure
    risk in microdata*, J. Official Statistics 14; Dankar, El Emam, Neisa and Roffey (2012), *Estimating the
    re-identification risk of clinical data sets*, BMC Med. Inform. Decis. Mak. 12:66, the rule of "best".
    Misleads when the sample is small or the model does not hold: each is right in its own kind of population and may be
    off by several times in another's. Zayatz errs high beyond ten times the sample (Massell 1999): then it warns. Every
    sample unique gets the same probability; `LogLinear` tells them apart. Cost: O(cells), then O(distinct class sizes).

    >>> import polars as pl
    >>> cells = Cells.of(pl.DataFrame({"age": [30, 31, 32], "n": [1, 1, 2]}))
    >>> PopulationUniques(1.0).measure(cells, cells).value
    0.5
    >>> round(PopulationUniques(0.5, "pitman").measure(cells, cells).value, 4)
    0.3142
    """

    fraction: float
    model: Literal["zayatz", "pitman", "poisson-gamma", "slide", "best"] = "zayatz"

    def __post_init__(self) -> None:
        check_fraction(self.fraction)
        if self.model not in MODELS:
            raise ParameterError(f"No model {self.model!r}. There are: {', '.join(MODELS)}.")

    def by(self, roles: Roles) -> tuple[str, ...]:
        return roles.keys

    def measure(self, released: Records | Cells, original: Records | Cells) -> Score:
        if isinstance(released, Records) and released.synthetic:
            return not_applicable(label(self), "lower")
        cells = self._cells(released)
        seen, fit = self._fitted(cells)
        notes = self._said(seen, fit)
        if fit.model == ZAYATZ and 1 / self.fraction > FAR:
            far = (
                f"The population is {1 / self.fraction:,.0f} times the sample: "
                f"the estimator is known to be good only up to {FAR} times."
            )
            warnings.warn(far, EquipoiseWarning, stacklevel=2)
            notes = (far, *notes)
        return cell_score(label(self), released, cells, np.where(cells.alike[0] == 1, fit.stays, 0.0), notes)

    def estimate(self, released: Records | Cells) -> PopulationEstimate:
        """The expected numbers and the model behind them."""
        seen, fit = self._fitted(self._cells(released))
        number = fit.stays * seen.alone
        return PopulationEstimate(
            fit.model, round(seen.alone), number, number / self.fraction, fit.expected, tuple(fit.parameters)
        )

    def _cells(self, released: Records | Cells) -> Cells:
        return released if isinstance(released, Cells) else as_cells(released, self.by(released.roles))

    def _fitted(self, cells: Cells) -> tuple[ClassSizes, ModelFit]:
        seen = classes_of(cells)
        return seen, fitted(self.model, seen, self.fraction, combinations(cells))

    def _said(self, seen: ClassSizes, fit: ModelFit) -> tuple[str, ...]:
        """What a reader must know of the fit."""
        if self.model == ZAYATZ or not seen.alone or self.fraction == 1:
            return ()
        notes = [f"{fit.stays * seen.alone:,.1f} of {seen.alone:,.0f} sample uniques are expected to be unique."]
        if self.model == BEST:
            notes += [f"The estimate is by {NAMES[fit.model]} model."]
        if fit.instead:
            notes += [f"In {NAMES[fit.instead]} model the likelihood has no maximum: every record is a sample unique."]
        if fit.limit:
            notes += [f"The likelihood is highest at a limit: {fit.limit}."]
        if abs(fit.expected - seen.alone) > max(OFF * seen.alone, 3 * seen.alone**0.5):
            notes += [f"The model fits badly: it expects {fit.expected:,.0f} sample uniques."]
        return tuple(notes)


def classes_of(cells: Cells) -> ClassSizes:
    """The classes of a file by size; where missing keys make classes overlap, a record is one over the size of one."""
    sizes, place = np.unique(cells.alike[0], return_inverse=True)
    return ClassSizes(sizes.astype(np.float64), np.bincount(place, weights=cells.n) / sizes)


def combinations(cells: Cells) -> float:
    """How many combinations of the keys' values there are in the file's cross, empty ones too."""
    nulls = [cells.values(key).null_count() if key in cells.open else 0 for key in cells.by]
    return float(prod(max(1, size - null) for size, null in zip(cells.cube.sizes, nulls, strict=True)))
