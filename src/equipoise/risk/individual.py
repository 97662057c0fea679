"""Individual risk: the probability that a record is matched rightly in the population."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from equipoise.data.cells import Cells
from equipoise.data.records import Records
from equipoise.laws.mean_reciprocal import of_cells
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields, share
from equipoise.methods.score import Score
from equipoise.risk._cell_score import KeyRisk, cell_score


@dataclass(frozen=True, slots=True)
class Individual(KeyRisk):
    """Mean probability that a record is re-identified by an intruder who finds its class in the population.

    A class of f sampled records with weights that add up to W is taken to have F people, P(F | f) negative binomial
    with p = f / W; the risk of its records is E(1/F | f) = p/f 2F1(1, 1; f+1; 1-p). Without weights the file is the
    population, and the risk 1/f. `number` is the expected number of re-identifications; with `above`, value and number
    are the share and the number of records whose own risk is larger than that. The detail has the risk of every cell.

    Source: Benedetti and Franconi (1998); Hundepool et al. (2012), section 3.3.2: the exact form, stable for every f
    and p. Misleads when weights are calibrated far from the inverse of the probability of being sampled, or the
    intruder knows who is in the sample (then it is 1/f: see `Prosecutor`). Cost: O(cells).

    >>> cells = Cells.of(pl.DataFrame({"age": [30, 31], "n": [1, 2], "total": [2.0, 2.0]}))
    >>> score = Individual().measure(cells, cells)
    >>> round(score.value, 6), round(score.number, 6), Individual(above=0.6).measure(cells, cells).number
    (0.564382, 1.693147, 1.0)
    """

    model: Literal["benedetti-franconi"] = "benedetti-franconi"
    above: float | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if self.above is not None:
            share(self.above, "above", zero=True, open_=True)

    def _score(self, released: Records | Cells, cells: Cells) -> Score:
        risk = of_cells(cells)
        by_cell = risk if self.above is None else np.where(risk > self.above, 1.0, 0.0)
        return cell_score(label(self), released, cells, by_cell)
