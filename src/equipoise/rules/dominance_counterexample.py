"""Counterexamples to the dominance rule: a safe cell that discloses more than a sensitive one; comparison of rules."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.cells import Cells, gross
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import ParameterError
from equipoise.methods.method import Rule, label
from equipoise.methods.parameters import share, whole_number
from equipoise.methods.protection_levels import tops

MAX_CONTRIBUTORS = 10_000
"""Largest number of contributors tried for a counterexample."""


@dataclass(frozen=True)
class Counterexample:
    """Two cells of the same total under an (n, k) dominance rule: `safe` gives a closer bound than `sensitive`.

    Both hold the relative contributions of `contributors`, largest first. `ratio` is the r of Lemma 1. The tails are
    how far the bound of a coalition of the n next largest lies above the largest contribution, as a share of the total.
    `smallest` is the least number of contributors at which the safe cell's tail is the smaller.
    """

    n: int
    k: float
    contributors: int
    smallest: int
    ratio: float
    safe: tuple[float, ...]
    sensitive: tuple[float, ...]

    @property
    def tails(self) -> tuple[float, float]:
        """How far the coalition's bound lies above the largest, in the safe and in the sensitive cell."""
        return sum(self.safe[self.n + 1 :]), sum(self.sensitive[self.n + 1 :])

    @property
    def words(self) -> str:
        safe, sensitive = self.tails
        who = "the second largest contributor" if self.n == 1 else f"the {self.n} next largest contributors together"
        return (
            f"Under the ({self.n}, {self.k:g}) dominance rule a cell of {self.contributors:,} contributors may be "
            f"called safe although {who} can bound the largest to within {safe:.4g} of the total, while another of as "
            f"many is called sensitive in which the bound is only within {sensitive:.4g}."
        )

    def chart(self) -> dict[str, Any]:
        """The two cells as bars of their contributions, the tail in another colour (Vega-Lite)."""
        rows = [
            {"cell": name, "rank": i + 1, "share": value, "part": self._part(i)}
            for name, cell in (("called safe", self.safe), ("called sensitive", self.sensitive))
            for i, value in enumerate(cell)
        ]
        parts = ["largest", "coalition", "rest"]
        return {
            "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
            "title": f"Dominance ({self.n}, {self.k:g}): the cell called safe gives the closer bound",
            "data": {"values": rows},
            "mark": {"type": "bar", "tooltip": True},
            "encoding": {
                "y": {"field": "cell", "type": "nominal", "title": None},
                "x": {"field": "share", "type": "quantitative", "title": "share of the cell's total", "stack": True},
                "order": {"field": "rank"},
                "color": {
                    "field": "part",
                    "title": "contributions",
                    "scale": {"domain": parts, "range": ["#0072b2", "#e69f00", "#999999"]},
                },
            },
        }

    def _part(self, place: int) -> str:
        return "largest" if place == 0 else "coalition" if place <= self.n else "rest"


def counterexample(n: int, k: float, contributors: int | None = None) -> Counterexample:
    """The two cells of Domingo-Ferrer and Torra (2004), Constructions 1 and 2, for any (n, k).

    With N contributors and r in [0, 1) such that (1 - r^n) / (1 - r^N) = k (Lemma 1) and R_i = r^(i-1) (1-r) / (1-r^N):
    the safe cell has R_i but for R_n - e and R_(n+1) + e, e = (R_n - R_(n+1)) / 3; the sensitive one R_1 ... R_n and
    (1 - k) / (N - n) for the rest. N is the smallest for which the safe cell's tail is the smaller (Theorem 1: there is
    always one), unless given. For k = 1 there is none: nothing is called sensitive but n contributors alone.

    >>> pair = counterexample(1, 100 / 271)
    >>> pair.contributors, round(pair.ratio, 6), [round(tail, 6) for tail in pair.tails]
    (3, 0.9, [0.298893, 0.315498])
    """
    whole_number(n, "n")
    share(k, "k", open_=True)
    least = int(np.floor(n / k)) + 1
    smallest = next((many for many in range(max(least, n + 2), MAX_CONTRIBUTORS) if _closer(n, k, many)), None)
    if smallest is None:
        raise ParameterError(
            f"No counterexample with fewer than {MAX_CONTRIBUTORS:,} contributors was found for ({n}, {k:g})."
        )
    many = contributors or smallest
    if many * k <= n or many < n + 2:
        raise ParameterError(f"Lemma 1 needs more than n / k = {n / k:.4g} contributors, and at least n + 2.")
    return Counterexample(n, k, many, smallest, _ratio(n, k, many), *map(_shares, _cells(n, k, many)))


def _shares(cell: Floats) -> tuple[float, ...]:
    return tuple(float(value) for value in cell)


def _closer(n: int, k: float, many: int) -> bool:
    safe, sensitive = _cells(n, k, many)
    return bool(safe[n + 1 :].sum() < sensitive[n + 1 :].sum())


def _ratio(n: int, k: float, many: int) -> float:
    """The r of Lemma 1: the left side falls from 1 at r = 0 to n / N at r = 1."""
    from scipy.optimize import brentq

    return float(brentq(lambda r: (1 - r**n) - k * (1 - r**many), 0.0, _under(n, k, many), xtol=1e-15, rtol=1e-14))


def _under(n: int, k: float, many: int) -> float:
    """A point between the root below 1 and the root at 1: where the difference is smallest."""
    return float((n / (k * many)) ** (1 / (many - n)))


def _cells(n: int, k: float, many: int) -> tuple[Floats, Floats]:
    r = _ratio(n, k, many)
    shares: Floats = np.power(r, np.arange(many)) * (1 - r) / (1 - r**many)
    safe, sensitive = shares.copy(), shares.copy()
    step = (shares[n - 1] - shares[n]) / 3
    safe[n - 1] -= step
    safe[n] += step
    sensitive[n:] = (1 - k) / (many - n)
    return safe, sensitive


def compare(table: Cells, rules: Sequence[Rule]) -> pl.DataFrame:
    """The cells of a table on which rules differ, those with the closest bound first.

    One row per such cell: its keys, `n`, `value`, a column per rule (whether it flags the cell), `bound`, the upper
    bound that the second largest contributor has for the largest (x - x2), and `within`, how far above the largest
    that is, as a share of it. These are data: for internal reports only.

    >>> frame = pl.DataFrame({"cell": ["a", "b"], "n": 3, "value": 100, "top1": [59, 61], "top2": [40, 20]})
    >>> rules = [eq.rules.Dominance(1, 0.6), eq.rules.PPercent(0.1)]
    >>> compare(eq.Cells.of(frame), rules).select("cell", "bound", "within").rows()
    [('a', 60.0, 0.01694915254237288), ('b', 80.0, 0.3114754098360656)]
    """
    flags = {label(rule): rule.flag(table) for rule in rules}
    if len(flags) < 2:
        raise ParameterError("Give at least two different rules to compare.")
    value, first = gross(table), tops(table, 1)
    bound = value - (tops(table, 2) - first)
    within = np.divide(bound - first, first, out=np.full(len(value), np.inf), where=first > 0)
    rows = table.table.select(*table.by, "n").with_columns(
        pl.Series("value", value), *(s.alias(name) for name, s in flags.items()),
        pl.Series("bound", bound), pl.Series("within", within),
    )  # fmt: skip
    differ = pl.any_horizontal(*map(pl.col, flags)) & ~pl.all_horizontal(*map(pl.col, flags))
    return rows.filter(differ).sort("within", *table.by)
