"""The p% rule: no contributor may estimate another's contribution too closely."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from equipoise.data.cells import Cells, gross
from equipoise.ground.arrays import Floats
from equipoise.methods.parameters import share, whole_number
from equipoise.methods.protection_levels import MAX_RANKS, MagnitudeRule, one, tops


@dataclass(frozen=True, slots=True)
class PPercent(MagnitudeRule):
    """A cell is sensitive when the next largest can estimate the largest contribution to within the share `p` of it.

    The `coalition` of the c next largest contributors subtract their own from the total x and know
    x1 <= x - x2 - ... - x(c+1). Sensitive iff x - x1 - ... - x(c+1) < p x1; on the line (to 1e-9 of the value) it is
    safe. Protection: p x1 - (x - x1 - ... - x(c+1)) more, both ways.

    Source: Domingo-Ferrer and Torra (2004), section 3.1; Hundepool et al. (2012), section 4.2.
    Misleads when contributors know more of each other beforehand than that contributions are not negative: then
    `PriorPosterior`.

    >>> cells = Cells.of(pl.DataFrame({"cell": ["a", "b"], "n": 3, "value": 100, "top1": [59, 61], "top2": [40, 20]}))
    >>> PPercent(0.1).flag(cells).to_list()
    [True, False]
    """

    p: float = 0.1
    coalition: int = 1

    def __post_init__(self) -> None:
        share(self.p, "p")
        whole_number(self.coalition, "coalition", most=MAX_RANKS)

    def explain(self, cell: Mapping[str, Any]) -> str:
        first, rest, unsafe = one(cell, lambda c: (tops(c, 1)[0], self._rest(c)[0], bool(self.flag(c)[0])))
        if not first:
            return "Safe: nobody contributes anything."
        who = "the second largest contributor" if self.coalition == 1 else f"the next {self.coalition} contributors"
        return (
            f"{'Sensitive' if unsafe else 'Safe'}: {who} can estimate the largest to within {rest / first:.1%} of it, "
            f"{'less than' if unsafe else 'at least'} {self.p:.1%}."
        )

    def _rest(self, cells: Cells) -> Floats:
        return gross(cells) - tops(cells, self.coalition + 1)

    def _lack(self, cells: Cells) -> Floats:
        return self.p * tops(cells, 1) - self._rest(cells)
