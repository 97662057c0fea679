"""The prior-posterior (pq) rule: the p% rule for contributors with prior knowledge of each other."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from equipoise.data.cells import Cells, gross
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import ParameterError
from equipoise.methods.parameters import share
from equipoise.methods.protection_levels import MagnitudeRule, one, tops


@dataclass(frozen=True, slots=True)
class PriorPosterior(MagnitudeRule):
    """A cell is sensitive when who knew others to within `q` now knows the largest to within the share `p` of it.

    Everybody can estimate every other contribution to within the share q beforehand. After publication the second
    largest knows x1 to within q (x - x1 - x2). Sensitive iff q (x - x1 - x2) < p x1; on the line (to 1e-9 of the value)
    it is safe. q = 1 is the p% rule. Protection: (p / q) x1 - (x - x1 - x2) more, both ways.

    Source: Domingo-Ferrer and Torra (2004), section 3.1; Hundepool et al. (2012), section 4.2.
    Misleads when contributors know some others better than the rest.

    >>> cells = Cells.of(pl.DataFrame({"cell": ["a"], "n": 3, "value": 100, "top1": [61], "top2": [20]}))
    >>> PriorPosterior(0.1, 0.3).flag(cells).to_list(), PriorPosterior(0.1, 1).flag(cells).to_list()
    ([True], [False])
    """

    p: float = 0.1
    q: float = 1.0

    def __post_init__(self) -> None:
        share(self.p, "p")
        share(self.q, "q")
        if self.p >= self.q:
            raise ParameterError(f"p must be below q: they knew each other to within {self.q!r} beforehand.")

    def explain(self, cell: Mapping[str, Any]) -> str:
        first, rest, unsafe = one(cell, lambda c: (tops(c, 1)[0], self._rest(c)[0], bool(self.flag(c)[0])))
        if not first:
            return "Safe: nobody contributes anything."
        return (
            f"{'Sensitive' if unsafe else 'Safe'}: who knew the others to within {self.q:.1%} can estimate the "
            f"largest to within {self.q * rest / first:.1%} of it, {'below' if unsafe else 'at least'} {self.p:.1%}."
        )

    def _rest(self, cells: Cells) -> Floats:
        return gross(cells) - tops(cells, 2)

    def _lack(self, cells: Cells) -> Floats:
        return self.p / self.q * tops(cells, 1) - self._rest(cells)
