"""What the rules for magnitudes share: how much a cell lacks, ties, protection levels, and rules together."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from equipoise.data.cells import Cells, amount
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError

TIE = 1e-9
"""A lack that is a smaller share of the cell's value is a tie: decided by the rule, not by rounding."""
LEAST = 1e-4
"""The least protection of a sensitive cell, as a share of its value: it must never be known exactly."""


class Together:
    """Rules combine: `a | b` flags what either flags, `a & b` what both do."""

    __slots__ = ()

    def __or__(self, other: Any) -> "Either":
        return Either(*_parts(self, Either), *_parts(other, Either))

    def __and__(self, other: Any) -> "Both":
        return Both(*_parts(self, Both), *_parts(other, Both))


def _parts(rule: Any, kind: type) -> tuple[Any, ...]:
    return rule.rules if isinstance(rule, kind) else (rule,)  # type: ignore[attr-defined]


@dataclass(frozen=True, init=False)
class Either(Together):
    """Unsafe by one of the rules; protected to the largest level that one of them asks for."""

    mark: ClassVar[str] = "|"
    rules: tuple[Any, ...]

    def __init__(self, *rules: Any) -> None:
        object.__setattr__(self, "rules", rules)

    def flag(self, cells: Cells) -> pl.Series:
        return pl.Series("unsafe", np.any([rule.flag(cells).to_numpy() for rule in self.rules], axis=0))

    def levels(self, cells: Cells) -> pl.DataFrame:
        return _largest([levels(rule, cells) for rule in self.rules])

    def explain(self, cell: Mapping[str, Any]) -> str:
        return " ".join(rule.explain(cell) for rule in self.rules)


@dataclass(frozen=True, init=False)
class Both(Together):
    """Unsafe by every one of the rules; protected to the largest level that one of them asks for."""

    mark: ClassVar[str] = "&"
    rules: tuple[Any, ...]

    def __init__(self, *rules: Any) -> None:
        object.__setattr__(self, "rules", rules)

    def flag(self, cells: Cells) -> pl.Series:
        return pl.Series("unsafe", np.all([rule.flag(cells).to_numpy() for rule in self.rules], axis=0))

    def levels(self, cells: Cells) -> pl.DataFrame:
        found, flagged = _largest([levels(rule, cells) for rule in self.rules]), self.flag(cells)
        return found.select(pl.when(flagged).then(pl.all()).otherwise(0.0))

    def explain(self, cell: Mapping[str, Any]) -> str:
        return " ".join(rule.explain(cell) for rule in self.rules)


def levels(rule: Any, cells: Cells) -> pl.DataFrame:
    """How far below and above its value each sensitive cell must remain possible; 0 for safe ones.

    A rule that gives no levels asks only that the value is not known exactly.
    """
    if hasattr(rule, "levels"):
        found: pl.DataFrame = rule.levels(cells)
        return found
    return protection(rule.flag(cells).to_numpy(), np.zeros(len(cells)), cells)


def protection(flagged: Integers, lack: Floats, cells: Cells) -> pl.DataFrame:
    """Levels from what the cells lack: the same up and down, at least `LEAST`, and no lower than 0."""
    value = amount(cells)
    upper = np.where(flagged, np.maximum(lack, LEAST * np.maximum(value, 1.0)), 0.0)
    return pl.DataFrame({"lower": np.minimum(upper, value), "upper": upper})


def _largest(found: list[pl.DataFrame]) -> pl.DataFrame:
    columns = {side: np.max([table[side].to_numpy() for table in found], axis=0) for side in ("lower", "upper")}
    return pl.DataFrame(columns)


def tops(cells: Cells, many: int) -> Floats:
    """The sum of the largest contributions to each cell."""
    lacking = [f"top{k}" for k in range(1, many + 1) if f"top{k}" not in cells.more.columns]
    if lacking:
        raise DataError(
            f"The table does not say its {many} largest contributions (no column {lacking[0]!r}): "
            f"make it from microdata with a value, eq.table(..., top={many}), or name them with Ready(top=...)."
        )
    held: Floats = np.sum([cells.known(f"top{k}") for k in range(1, many + 1)], axis=0)
    return held


def refuse_uncounted(cells: Cells) -> None:
    """Refuse a ready table that does not say how many contribute to its cells."""
    if "contributors" in cells.more.columns and cells.more["contributors"].null_count():
        raise DataError("The table does not say how many contribute to its cells: name the column with Ready(n=...).")


def exceeds(lack: Floats, value: Floats, ties: bool) -> Integers:
    """Whether a cell lacks protection; one on the line if `ties`. A cell of value 0 has nobody to protect."""
    close = np.abs(lack) <= TIE * value
    found: Integers = (value > 0) & np.where(close, ties, lack > 0)
    return found


def one(cell: Mapping[str, Any], ask: Callable[[Cells], Any]) -> Any:
    """Ask a question about one cell, given as a row of a table."""
    known = {k: v for k, v in cell.items() if isinstance(v, int | float) and not isinstance(v, bool)}
    row = pl.DataFrame({"cell": ["cell"], **{k: [v] for k, v in {"n": 1, **known}.items()}})
    return ask(Cells.of(row, ("cell",)))
