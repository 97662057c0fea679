"""Protection levels of sensitive cells, ties, and the combination of rules by `|` and `&`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import polars as pl

from equipoise.data.cells import Cells, amount, gross, may_be_negative
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError
from equipoise.methods.method import Rule

TIE_TOLERANCE = 1e-9
"""A deficit below this share of the cell's value is a tie: decided by the rule, not by rounding."""
MIN_PROTECTION = 1e-4
"""Smallest protection level of a sensitive cell, as a share of its value (of one contribution, where that is 0)."""
MAX_RANKS = 1000
"""Largest contributions that a rule may look at: more are a slip of the pen, and each is a column of the table."""


class Together:
    """Mixin to combine rules: `a | b` flags the cells that either flags, `a & b` those that both flag."""

    __slots__ = ()

    def __or__(self, other: Any) -> "Either":
        if not isinstance(other, Rule):
            return NotImplemented
        return Either(*_parts(self, Either), *_parts(other, Either))

    def __and__(self, other: Any) -> "Both":
        if not isinstance(other, Rule):
            return NotImplemented
        return Both(*_parts(self, Both), *_parts(other, Both))


def _parts(rule: Any, kind: type) -> tuple[Any, ...]:
    return rule.rules if isinstance(rule, kind) else (rule,)  # type: ignore[attr-defined]


class MagnitudeRule(Together):
    """Mixin of rules on the largest contributions: a cell is sensitive when it lacks uncertainty, and needs that."""

    __slots__ = ()

    def flag(self, cells: Cells) -> pl.Series:
        return pl.Series("unsafe", exceeds(self._lack(cells), gross(cells), self._flags_ties()))

    def levels(self, cells: Cells) -> pl.DataFrame:
        return protection(self.flag(cells).to_numpy(), self._lack(cells), cells)

    @property
    def ranks(self) -> int:
        """How many of the largest contributions the rule looks at."""
        return 1 + int(getattr(self, "coalition", 1))

    def _lack(self, cells: Cells) -> Floats:
        raise NotImplementedError

    def _flags_ties(self) -> bool:
        return False


@dataclass(frozen=True, init=False)
class _Several(Together):
    """Rules together."""

    rules: tuple[Any, ...]

    def __init__(self, *rules: Any) -> None:
        object.__setattr__(self, "rules", rules)

    def hides_zeros(self, cells: Cells) -> bool:
        """Whether one of the rules keeps empty cells from being known to be empty."""
        return any(hides_zeros(rule, cells) for rule in self.rules)

    def explain(self, cell: Mapping[str, Any]) -> str:
        return " ".join(rule.explain(cell) for rule in self.rules)

    def _each(self, cells: Cells, ask: Callable[[Any, Cells], Any]) -> list[Any]:
        """The answer of every rule; beside rules on counts, those on contributions are asked with a record as one."""
        ranks = [rule.ranks for rule in self.rules if isinstance(rule, MagnitudeRule)]
        counts = "top1" not in cells.more.columns and np.array_equal(amount(cells), cells.total)
        if ranks and len(ranks) < len(self.rules) and counts:
            tops = {f"top{k}": np.clip(cells.total - (k - 1), 0.0, 1.0) for k in range(1, max(ranks) + 1)}
            cells = replace(cells, more=cells.more.with_columns(**tops))
        return [ask(rule, cells) for rule in self.rules]


@dataclass(frozen=True, init=False)
class Either(_Several):
    """Union of rules: unsafe by one of them; the protection level is the largest of theirs."""

    mark: ClassVar[str] = "|"

    def flag(self, cells: Cells) -> pl.Series:
        return pl.Series("unsafe", np.any(self._each(cells, _flags), axis=0))

    def levels(self, cells: Cells) -> pl.DataFrame:
        return _largest(self._each(cells, levels))


@dataclass(frozen=True, init=False)
class Both(_Several):
    """Intersection of rules: unsafe by all of them; the protection level is the largest of theirs."""

    mark: ClassVar[str] = "&"

    def flag(self, cells: Cells) -> pl.Series:
        return pl.Series("unsafe", np.all(self._each(cells, _flags), axis=0))

    def levels(self, cells: Cells) -> pl.DataFrame:
        largest, flagged = _largest(self._each(cells, levels)), self.flag(cells)
        return largest.select(pl.when(flagged).then(pl.all()).otherwise(0.0))


def _flags(rule: Any, cells: Cells) -> Integers:
    return rule.flag(cells).to_numpy()


def hides_zeros(rule: Any, cells: Cells) -> bool:
    """Whether empty cells may be sensitive under a rule: then nobody knows them to be empty where suppressed."""
    return hasattr(rule, "hides_zeros") and rule.hides_zeros(cells)


def levels(rule: Any, cells: Cells) -> pl.DataFrame:
    """Lower and upper protection levels of each sensitive cell; 0 for safe ones.

    A rule without levels requires only that the value is not known exactly.
    """
    if hasattr(rule, "levels"):
        return rule.levels(cells)
    return protection(rule.flag(cells).to_numpy(), np.zeros(len(cells)), cells)


def protection(flagged: Integers, lack: Floats, cells: Cells) -> pl.DataFrame:
    """Protection levels from the deficits of cells: equal up and down, at least `MIN_PROTECTION`, not below value 0.

    They scale with the unit of the values. A cell of value 0 has the minimum of the mean contribution to the table. A
    cell that may be negative has no end at 0.
    """
    size = gross(cells)
    least = MIN_PROTECTION * np.where(size > 0, size, contribution(cells))
    upper = np.where(flagged, np.maximum(lack, least), 0.0)
    return pl.DataFrame({"lower": np.where(may_be_negative(cells), upper, np.minimum(upper, size)), "upper": upper})


def contribution(cells: Cells) -> float:
    """Mean contribution of a record to the table: 1 of counts, also where nothing was contributed."""
    largest = int(np.argmax(gross(cells))) if len(cells) else 0
    mean = float(gross(cells)[largest] / max(1, int(cells.n[largest]))) if len(cells) else 0.0
    return mean or 1.0


def _largest(tables: list[pl.DataFrame]) -> pl.DataFrame:
    columns = {side: np.max([table[side].to_numpy() for table in tables], axis=0) for side in ("lower", "upper")}
    return pl.DataFrame(columns)


def tops(cells: Cells, many: int) -> Floats:
    """Sum of the `many` largest contributions to each cell."""
    lacking = [f"top{k}" for k in range(1, many + 1) if f"top{k}" not in cells.more.columns]
    if lacking:
        raise DataError(
            f"The table does not say its {many} largest contributions (no column {lacking[0]!r}): "
            f"make it from microdata with a value, eq.table(..., top={many}), or name them with Ready(top=...)."
        )
    return np.sum([cells.numbers(f"top{k}") for k in range(1, many + 1)], axis=0)


def refuse_uncounted(cells: Cells) -> None:
    """Refuse a ready table without the number of contributors."""
    if "contributors" in cells.more.columns and cells.more["contributors"].null_count():
        raise DataError("The table does not say how many contribute to its cells: name the column with Ready(n=...).")


def exceeds(lack: Floats, value: Floats, ties: bool) -> Integers:
    """Whether a cell's deficit is positive; a tie counts if `ties`. A cell of value 0 has nobody to protect."""
    close = np.abs(lack) <= TIE_TOLERANCE * value
    return (value > 0) & np.where(close, ties, lack > 0)


def one(cell: Mapping[str, Any], ask: Callable[[Cells], Any]) -> Any:
    """Apply a function of cells to one cell, given as a row of a table."""
    numbers = {k: v for k, v in cell.items() if isinstance(v, int | float) and not isinstance(v, bool)}
    row = pl.DataFrame({"cell": ["cell"], **{k: [v] for k, v in {"n": 1, **numbers}.items()}})
    return ask(Cells.of(row, ("cell",)))
