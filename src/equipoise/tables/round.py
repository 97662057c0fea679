"""Round a table."""

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
import polars as pl

from equipoise.data.records import Law
from equipoise.data.tables.a_priori import PUBLISHED
from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import additive, changed, holds, labels, whole
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import DataError, ParameterError
from equipoise.ground.randomness import Draws
from equipoise.methods.parameters import above, check_fields
from equipoise.tables._controlled_rounding import EXACT, controlled, settle, split
from equipoise.tables._unbiased_rounding import Coin, systematic, unbiased
from equipoise.tables.audits.changed_tables import kept_cells

Aim = Literal["nearest", "random"]


@dataclass(frozen=True, slots=True)
class Round:
    """Publish multiples of `base` in place of what the cells hold, so that small differences are not seen.

    With q the multiple of the base at or below a value x and f = (x - q) / base its remainder:

    - controlled (the default): every cell goes to q or q + base, multiples stay, and every relation of the table still
      holds. `aim="nearest"`: sum of abs(r - x) least. In three and more dimensions there may be no such table: then
      cells may go 1, 2 or 4 bases further. A program in whole numbers on HiGHS, each connected part by itself, until
      near its bound or for `seconds`; where that finds nothing, inner cells are rounded so that margins stay near, and
      margins are their sums. The law says which it was, with the gap that was left. `aim="random"`: one of them by a
      random walk of fair steps, E r = x in every cell and margin. In two-way tables with a hierarchy in one column at
      most, all cells end next to their values; else some margins may end further away, and in very large tables inner
      cells are rounded systematically and margins are their sums: the mean stays x.
    - random (`controlled=False`): up with probability f, each cell by itself: E r = x, and the variance is
      base^2 f (1 - f). The table does not add up any more.
    - `small`: only inner counts above 0 and below the base are changed, to 0 or the base, so that margins stay near,
      and margins are sums of inner cells: everything adds up, and no inner count is small.
    - `keep` names a column that marks cells which are published as they are, beside those of `eq.table(...,
      publish=)` (with `controlled=False`: multiples do not add up with other numbers).

    Source: Cox (1987), *A constructive procedure for unbiased controlled rounding*; Salazar-Gonzalez, Lowthian, Young
    et al. (2004) for the nearest in hierarchies; Fellegi (1975) for random rounding; Langsrud and Heldal (2018) for
    small counts.
    Does not guard against an intruder who takes the nearest multiple for granted: of cells no relation forced away he
    knows the value to within half a base (`aim="random"` leaves him a base each way); against tables of the same
    records rounded with other seeds, which average; nor, when random, against margins that contradict each other: they
    narrow the intervals. Cost: that of a program with one variable for each cell that is no multiple; small counts
    O(cells) for each flip. A search that ends by the clock may end elsewhere on another machine.

    >>> made = eq.table(eq.Records.of(pl.DataFrame({"k": ["a"] * 7 + ["b"] * 4 + ["c"]}), eq.Roles("k")), "k")
    >>> Round(5).apply(made, Draws(1)).table.select("k", "n", "published").rows()
    [('Total', 12, 10.0), ('a', 7, 5.0), ('b', 4, 5.0), ('c', 1, 0.0)]
    """

    base: int = 5
    controlled: bool = True
    small: bool = False
    aim: Aim = "nearest"
    seconds: float = 30.0
    keep: str | None = None

    def __post_init__(self) -> None:
        check_fields(self, base=2)
        above(self.seconds, "seconds")
        if self.small and not self.controlled:
            raise ParameterError("small keeps the table additive: it cannot be had with controlled=False.")
        if self.keep is not None and self.controlled:
            raise ParameterError(
                "keep leaves cells that are no multiples: the table cannot add up, say controlled=False."
            )

    def apply(self, data: Table, draws: Draws) -> Table:
        table, values = whole(data, "Round", heeds=(PUBLISHED,))
        if self.controlled and kept_cells(table, None).any():
            raise DataError("Cells that must be published are no multiples: say controlled=False.")
        number = draws.uniform(labels(table))
        if self.small:
            return self._small(table, values, number)
        low, part = split(values, self.base)
        if not self.controlled:
            rounded = self.base * (low + (number < part))
            rounded = np.where(kept_cells(table, self.keep), values, rounded)
            return changed(table, rounded, self._law("The cells do not add up any more."))
        if self.aim == "random":
            rounded, note, parameters = self._at_random(table, low, part, draws)
        else:
            rounded, note, parameters = self._controlled(table, low, part, draws)
        return changed(table, rounded, self._law(note, parameters))

    def _at_random(self, table: Table, low: Floats, part: Floats, draws: Draws) -> tuple[Floats, str, dict[str, Any]]:
        multiples, inner = unbiased(additive(table), low, part, fair_coin(draws)), table.inner
        if multiples is None:
            start = float(draws.child(0).uniform(pl.Series([0]))[0])
            multiples = np.round(holds(table) @ (low[inner] + systematic(part[inner], start)))
        beyond = int(np.abs(multiples - low - part).max(initial=0.0) + EXACT)
        note = f"Margins are up to {beyond} bases further than the nearest multiples." if beyond else ""
        return self.base * multiples, note, {"beyond": beyond, "additive": True, "unbiased": True}

    def _controlled(self, table: Table, low: Floats, aims: Floats, draws: Draws) -> tuple[Floats, str, dict[str, Any]]:
        solution = controlled(additive(table), low, aims, draws.uniform(labels(table), 1), self.seconds)
        if solution is None:
            rounded = self._summed(table, low, aims, draws.uniform(labels(table), 1))
            most = int(np.ceil(np.abs(rounded / self.base - low - aims).max(initial=0.0)))
            note = f"No solution was found in {self.seconds:g} seconds: margins are sums of rounded inner cells, "
            return rounded, note + f"up to {most} bases away.", {"beyond": most - 1, "additive": True}
        parameters = {"beyond": solution.beyond, "gap": round(solution.gap, 4), "additive": True}
        wide = f"No table of the nearest multiples adds up: cells may be {solution.beyond} bases further. "
        return self.base * solution.multiples, wide if solution.beyond else "", parameters

    def _small(self, table: Table, values: Floats, number: Floats) -> Table:
        if not np.array_equal(values, table.n):
            raise DataError("Small count rounding is for tables of unweighted counts: this one holds amounts.")
        inner = table.inner & (values > 0) & (values < self.base)
        rounded = self._summed(table, values / self.base, np.where(inner, values / self.base, 0.0), number)
        most = float(np.abs(rounded - values).max(initial=0.0))
        law = self._law(f"{int(inner.sum()):,} inner cells were changed.", {"additive": True, "largest_change": most})
        return changed(table, rounded, law)

    def _summed(self, table: Table, bases: Floats, parts: Floats, number: Floats) -> Floats:
        """Inner cells settled at the multiple below or above their parts, margins added up."""
        inner, members = np.flatnonzero(table.inner), holds(table)
        free = np.flatnonzero(parts[inner] > 0)
        start = bases[inner]
        start[free] = np.floor(start[free])
        start[free] += settle(members[:, free], parts[inner][free], number[inner][free])
        return np.round(self.base * (members @ start), 6)

    def _law(self, note: str = "", more: dict[str, Any] | None = None) -> Law:
        parameters = {"base": self.base, "kind": self._kind, "additive": False} | (more or {})
        parameters |= {"keep": self.keep} if self.keep is not None else {}
        return Law("round", (), f"{self.words()}. {note}".rstrip(), parameters)

    @property
    def _kind(self) -> str:
        return "small" if self.small else "controlled" if self.controlled else "random"

    def words(self) -> str:
        if self.small:
            return f"inner counts below {self.base} changed to 0 or {self.base}, margins added up again"
        if not self.controlled:
            which = "every cell" if self.keep is None else "cells that are not marked"
            return f"{which} rounded at random to a multiple of {self.base} next to it, unbiased"
        aim = "as near as possible to the values" if self.aim == "nearest" else "at random, unbiased"
        return f"cells rounded to multiples of {self.base} that add up, {aim}"


def fair_coin(draws: Draws) -> Coin:
    """Heads of each step with its probability, by the secret seed."""

    @cache
    def block(number: int) -> Floats:
        return draws.child(1).uniform(pl.Series(np.arange(number * COINS, (number + 1) * COINS)))

    return lambda step, probability: bool(block(step // COINS)[step % COINS] < probability)


COINS = 4096
"""How many numbers are drawn at once."""
