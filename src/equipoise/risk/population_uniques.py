"""Expected number of records that are unique in the population."""

import warnings
from dataclasses import dataclass
from math import prod
from typing import Literal

import numpy as np

from equipoise.data.cells import Cells
from equipoise.data.records import Records
from equipoise.ground.errors import EquipoiseWarning
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields, share
from equipoise.methods.score import Score
from equipoise.risk._cell_score import KeyRisk, cell_score
from equipoise.risk._superpopulation_models import BEST, ZAYATZ, ModelFit, SizeCounts, fit_model

MAX_CHECKED_RATIO = 10
"""Population per sample record up to which Zayatz's estimator was checked."""
MAX_MISFIT_SHARE = 0.1
"""Difference of expected and actual sample uniques, as a share, above which a note says that the model fits badly."""
MODEL_NAMES = {"zayatz": "Zayatz's", "pitman": "Pitman's", "poisson-gamma": "the Poisson-gamma", "slide": "the slide"}


@dataclass(frozen=True)
class PopulationEstimate:
    """Expected population uniques, and the model.

    `expected` is the number of sample uniques under the fitted model: if far from `sample_uniques`, it fits badly.
    """

    model: str
    sample_uniques: int
    in_file: float
    in_population: float
    expected: float
    parameters: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class PopulationUniques(KeyRisk):
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

    >>> cells = Cells.of(pl.DataFrame({"age": [30, 31, 32], "n": [1, 1, 2]}))
    >>> PopulationUniques(1.0).measure(cells, cells).value
    0.5
    >>> round(PopulationUniques(0.5, "pitman").measure(cells, cells).value, 4)
    0.3142
    """

    fraction: float
    model: Literal["zayatz", "pitman", "poisson-gamma", "slide", "best"] = "zayatz"

    def __post_init__(self) -> None:
        check_fields(self)
        share(self.fraction, "fraction")

    def _score(self, released: Records | Cells, cells: Cells) -> Score:
        sample, fit = self._fit(cells)
        notes = self._notes(sample, fit)
        if fit.model == ZAYATZ and 1 / self.fraction > MAX_CHECKED_RATIO:
            far = (
                f"The population is {1 / self.fraction:,.0f} times the sample: "
                f"the estimator is known to be good only up to {MAX_CHECKED_RATIO} times."
            )
            warnings.warn(far, EquipoiseWarning, stacklevel=3)
            notes = (far, *notes)
        return cell_score(label(self), released, cells, np.where(cells.alike[0] == 1, fit.stays, 0.0), notes)

    def estimate(self, released: Records | Cells) -> PopulationEstimate:
        """Expected numbers and the model behind them."""
        sample, fit = self._fit(self._cells(released))
        number = fit.stays * sample.alone
        return PopulationEstimate(
            fit.model, round(sample.alone), number, number / self.fraction, fit.expected, tuple(fit.parameters)
        )

    def _fit(self, cells: Cells) -> tuple[SizeCounts, ModelFit]:
        sample = classes_of(cells)
        return sample, fit_model(self.model, sample, self.fraction, combinations(cells))

    def _notes(self, sample: SizeCounts, fit: ModelFit) -> tuple[str, ...]:
        """Notes on the fit."""
        if self.model == ZAYATZ or not sample.alone or self.fraction == 1:
            return ()
        notes = [f"{fit.stays * sample.alone:,.1f} of {sample.alone:,.0f} sample uniques are expected to be unique."]
        if self.model == BEST:
            notes += [f"The estimate is by {MODEL_NAMES[fit.model]} model."]
        if fit.instead:
            name = MODEL_NAMES[fit.instead]
            notes += [f"In {name} model the likelihood has no maximum: every record is a sample unique."]
        if fit.limit:
            notes += [f"The likelihood is highest at a limit: {fit.limit}."]
        if abs(fit.expected - sample.alone) > max(MAX_MISFIT_SHARE * sample.alone, 3 * sample.alone**0.5):
            notes += [f"The model fits badly: it expects {fit.expected:,.0f} sample uniques."]
        return tuple(notes)


def classes_of(cells: Cells) -> SizeCounts:
    """Classes of a file by size; if missing keys make classes overlap, a record counts 1 / the size of its class."""
    sizes, place = np.unique(cells.alike[0], return_inverse=True)
    return SizeCounts(sizes.astype(np.float64), np.bincount(place, weights=cells.n) / sizes)


def combinations(cells: Cells) -> float:
    """Number of combinations of the keys' values in the file's cross, empty ones too."""
    nulls = [cells.values(key).null_count() if key in cells.open else 0 for key in cells.by]
    return float(prod(max(1, size - null) for size, null in zip(cells.cube.sizes, nulls, strict=True)))
