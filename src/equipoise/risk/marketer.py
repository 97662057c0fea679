"""Marketer risk: an intruder who matches all records and counts the share of right matches."""

from dataclasses import dataclass

import numpy as np

from equipoise.data.cells import Cells
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.files import read
from equipoise.methods.method import label
from equipoise.methods.score import Score, not_applicable
from equipoise.risk._cell_score import InFile, cell_score
from equipoise.risk._population_counts import PopulationSource, people_like


@dataclass(frozen=True, slots=True)
class Marketer:
    """Expected share (and number) of records matched rightly by a marketer, who tries them all: mean of 1 / F.

    With a `population` (a file or records with the keys) F is the number of its people in the record's class; without
    one the marketer knows who is in the file, and F is the number of records alike, as `Prosecutor` counts them.

    Source: Dankar and El Emam (2010), *A method for evaluating marketer re-identification risk*.
    Misleads when the file was perturbed (refused where there is a population). Cost: O(records + people).

    >>> sample = Records.of(pl.DataFrame({"age": [30, 31, 31, 31]}), Roles("age"))
    >>> Marketer().measure(sample, sample).number
    2.0
    """

    population: PopulationSource | None = None

    def measure(self, released: Records, original: Records) -> Score:
        if released.synthetic:
            return not_applicable(label(self), "lower")
        if self.population is None:
            return InFile(self._score).measure(released, original)
        register = self.population if isinstance(self.population, Records) else read(self.population, Roles())
        cells, people, notes = people_like(released, original, register)
        return cell_score(label(self), released, cells, 1 / people, notes)

    def _score(self, released: Records | Cells, cells: Cells) -> Score:
        return cell_score(label(self), released, cells, 1 / np.maximum(cells.alike[0], 1))
