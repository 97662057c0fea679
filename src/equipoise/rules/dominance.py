"""The (n, k) dominance rule: a few contributors hold most of a cell."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from equipoise.data.cells import Cells, gross
from equipoise.ground.arrays import Floats
from equipoise.methods.parameters import share, whole_number
from equipoise.methods.protection_levels import MAX_RANKS, MagnitudeRule, one, tops


@dataclass(frozen=True, slots=True)
class Dominance(MagnitudeRule):
    """A cell is sensitive when its `n` largest contributions are the share `k` of it, or more.

    Sensitive iff x1 + ... + xn >= k x; with `strict` iff >, as tau-ARGUS has it. A lack below 1e-9 of the value is a
    tie. A cell of value 0 is safe. Protection: the bound x must hide (x1 + ... + xn) / k - x more, both ways.

    Source: Domingo-Ferrer and Torra (2004), section 3.1; levels as in Hundepool et al. (2012), *Statistical Disclosure
    Control*, section 4.2. Misleads when a single contributor bounds another: a cell called safe may give a closer bound
    than one called sensitive, whatever n and k (`rules.counterexample`). Prefer `PPercent`.

    >>> cells = Cells.of(pl.DataFrame({"cell": ["a", "b"], "n": 3, "value": 100, "top1": [59, 61], "top2": [40, 20]}))
    >>> Dominance(1, 0.6).flag(cells).to_list()
    [False, True]
    """

    n: int = 1
    k: float = 0.75
    strict: bool = False

    def __post_init__(self) -> None:
        whole_number(self.n, "n", most=MAX_RANKS)
        share(self.k, "k")

    @property
    def ranks(self) -> int:
        return self.n

    def explain(self, cell: Mapping[str, Any]) -> str:
        part, value = one(cell, lambda c: (float(tops(c, self.n)[0]), float(gross(c)[0])))
        who = "largest contributor holds" if self.n == 1 else f"{self.n} largest contributors hold"
        if not value:
            return "Safe: it is 0."
        if one(cell, lambda c: bool(self.flag(c)[0])):
            sign = "more than" if self.strict else "at least"
            return f"Sensitive: the {who} {part / value:.1%} of the cell, {sign} {self.k:.1%}."
        return f"Safe: the {who} {part / value:.1%} of the cell, {'at most' if self.strict else 'below'} {self.k:.1%}."

    def _flags_ties(self) -> bool:
        return not self.strict

    def _lack(self, cells: Cells) -> Floats:
        return tops(cells, self.n) / self.k - gross(cells)
