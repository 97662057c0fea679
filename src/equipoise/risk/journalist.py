"""Journalist risk: an intruder who matches records to a population register."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from equipoise.data.cells import Cells
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.files import read
from equipoise.ground.arrays import Floats
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields
from equipoise.methods.score import Score, not_applicable
from equipoise.risk._cell_score import InFile, cell_score
from equipoise.risk._population_counts import PopulationSource, people_like


@dataclass(frozen=True, slots=True)
class Journalist:
    """Probability that a journalist, who matches a record to a register of the population, has the right person: 1 / F.

    F is the number of people of the `population` (a file or records with the keys, original values) in the record's
    class; without one, the sum of its records' weights, an estimate. `of="worst"` is the largest risk of any record,
    "mean" the mean over records. With `k` the value is the share of records in classes of fewer than k people (k-map):
    0 means that the file is k-mapped.

    Source: El Emam and Dankar (2008); Sweeney (2002), k-map. Misleads when the journalist's register is not the
    population given, or the file was perturbed (refused). Cost: O(records + people).

    >>> people = Records.of(pl.DataFrame({"age": [30] * 4 + [31] * 8}), Roles())
    >>> sample = Records.of(pl.DataFrame({"age": [30, 31, 31]}), Roles("age"))
    >>> Journalist(people).measure(sample, sample).value, Journalist(people, k=5).measure(sample, sample).number
    (0.25, 1.0)
    """

    population: PopulationSource | None = None
    of: Literal["worst", "mean"] = "worst"
    k: int | None = None

    def __post_init__(self) -> None:
        check_fields(self, k=1)

    def measure(self, released: Records, original: Records) -> Score:
        if released.synthetic:
            return not_applicable(label(self), "lower")
        if self.population is None:
            score = InFile(lambda read, cells: self._score(read, cells, np.maximum(*cells.alike), ()))
            note = "People are estimated by the sum of weights." if released.roles.weight else "The file is everybody."
            risk = score.measure(released, original)
            return replace(risk, notes=(note, *risk.notes))
        register = self.population if isinstance(self.population, Records) else read(self.population, Roles())
        return self._score(released, *people_like(released, original, register))

    def _score(self, released: Records | Cells, cells: Cells, people: Floats, notes: tuple[str, ...]) -> Score:
        risk = 1 / people if self.k is None else np.where(people < self.k, 1.0, 0.0)
        score = cell_score(label(self), released, cells, risk, notes)
        if self.of == "mean" or self.k is not None:
            return score
        worst = float(risk.max(initial=0.0))
        return replace(score, value=worst, number=float(cells.n[risk == worst].sum()), unit="share")
