"""Relations that synthetic records must keep: sums, limits, and columns that are drawn together."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from equipoise.ground.errors import DataError, ParameterError
from equipoise.masks._synthesis.variables import Bounds

CLOSE = 1e-6
"""A sum may be off by this share in the original."""
GRAMMAR = "write 'total = part + part', 'column >= 0', 'column <= 100' or 'column with column'"


@dataclass(frozen=True)
class Relations:
    """What must hold: totals and their parts, limits of columns, columns with only the combinations there are.

    >>> Relations.of(["income = wage + rent", "age >= 0", "sex with pregnant"])
    Relations(sums=(('income', ('wage', 'rent')),), limits=(('age', '>=', 0.0),), groups=(('sex', 'pregnant'),))
    """

    sums: tuple[tuple[str, tuple[str, ...]], ...] = ()
    limits: tuple[tuple[str, str, float], ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Relations":
        sums, limits, groups = [], [], []
        for text in texts:
            if " with " in text:
                groups.append(tuple(part.strip() for part in text.split(" with ")))
            elif match := re.fullmatch(r"(.+?)\s*(>=|<=)\s*([-+.\deE]+)", text):
                limits.append((match[1].strip(), match[2], _number(match[3], text)))
            elif "=" in text and not re.search("[<>]=", text):
                total, _, parts = text.partition("=")
                sums.append((total.strip(), tuple(part.strip() for part in parts.split(" + "))))
            else:
                raise ParameterError(f"Cannot read the relation {text!r}: {GRAMMAR}.")
        relations = cls(tuple(sums), tuple(limits), tuple(groups))
        relations._check()
        return relations

    def _check(self) -> None:
        if not all(self.columns()):
            raise ParameterError(f"A relation lacks a column: {GRAMMAR}.")
        together = [c for group in self.groups for c in group]
        if len(set(together)) < len(together) or set(together) & set(self.totals):
            raise ParameterError("A column can stand in one 'with' relation only, and a total in none.")
        later = set(self.totals)
        for total, parts in self.sums:
            if later & set(parts) or self.totals.count(total) > 1:
                raise ParameterError(f"The sum for {total!r} uses itself or a later sum: put the finer sum first.")
            later.discard(total)

    @property
    def totals(self) -> tuple[str, ...]:
        return tuple(total for total, _ in self.sums)

    def columns(self) -> tuple[str, ...]:
        """Every column that a relation names."""
        parts = [c for total, its in self.sums for c in (total, *its)]
        return tuple(dict.fromkeys([*parts, *(c for c, _, _ in self.limits), *(c for g in self.groups for c in g)]))

    def hold(self, table: pl.DataFrame) -> None:
        """Refuse an original in which a relation does not hold: synthetic records could not have it either."""
        for total, parts in self.sums:
            off = (pl.col(total) - _sum(parts)).abs() > CLOSE * pl.max_horizontal(pl.col(total).abs(), 1.0)
            _refuse(table.select(off.sum()).item(), f"{total} = {' + '.join(parts)}")
        for column, sign, limit in self.limits:
            off = pl.col(column) < limit if sign == ">=" else pl.col(column) > limit
            _refuse(table.select(off.sum()).item(), f"{column} {sign} {limit:g}")

    def bounds(self) -> Bounds:
        """The lowest and highest value of each limited column."""
        bounds: dict[str, tuple[float, float]] = {}
        for column, sign, limit in self.limits:
            low, high = bounds.get(column, (float("-inf"), float("inf")))
            bounds[column] = (max(low, limit), high) if sign == ">=" else (low, min(high, limit))
        return bounds

    def with_sums(self, table: pl.DataFrame) -> pl.DataFrame:
        """The table with each total worked out from its parts; missing where a part is."""
        for total, parts in self.sums:
            table = table.with_columns(_sum(parts).cast(table.schema[total]).alias(total))
        return table


def _number(text: str, relation: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ParameterError(f"Cannot read the relation {relation!r}: {GRAMMAR}.") from None


def _sum(parts: tuple[str, ...]) -> pl.Expr:
    return pl.sum_horizontal(*(pl.col(p).cast(pl.Float64) for p in parts), ignore_nulls=False)


def _refuse(off: int | None, relation: str) -> None:
    if off:
        raise DataError(f"The relation {relation!r} does not hold in {off:,} original records: mend them or drop it.")
