"""Tables of means, ratios, indices, shares, standard deviations and percentiles: protected, and audited for each part.

A statistic is published where all sums behind it (its components) may be. One pattern of suppressed cells protects
every component: each is suppressed beside what the others need, and what is suppressed more takes no uncertainty from
anybody. So whoever knows all counts, and every other component of every cell, is left with the levels of the rule.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from equipoise.data.cells import Cells, may_be_negative
from equipoise.data.records import Law, Records
from equipoise.data.tables.statistic import (
    Mean,
    Percentile,
    Share,
    StandardDeviation,
    Statistic,
    StatisticOfSums,
    over,
    squares_around_mean,
)
from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import holds
from equipoise.ground.arrays import Booleans, Floats
from equipoise.ground.errors import ParameterError
from equipoise.ground.progress import Progress
from equipoise.ground.randomness import Draws
from equipoise.methods.method import label
from equipoise.methods.protection_levels import levels
from equipoise.policies.dominance_check import parts_of
from equipoise.policies.table_section import TableLayout
from equipoise.releases.tabulated import Tabulated, certified, refuse
from equipoise.rules import PPercent
from equipoise.tables import Suppress
from equipoise.tables.audits import Attackers, Certificate, certify
from equipoise.tables.moments import MAX_MOMENT_CELLS, protect_moments
from equipoise.tables.percentiles import percentiles

MARGIN = 0.2
"""Share of the sum of squares about the mean by which it stays uncertain where a standard deviation is suppressed."""
P_OF_LARGEST = 0.1
"""Share of the largest contribution to within which nobody may estimate it from a deviation, unless the rule says."""
WITHHELD = "sensitive_in_one"
"""Column that marks cells which are sensitive in one component: withheld, and so guarded, in all."""
ROUNDING = 1e-9
"""Share of a sum of squares within which a limit of it is the sum itself."""
LIMITS = ("least_squares", "most_squares")
"""Columns of the sums of squares: what they can be by the sums."""


def refuse_statistic(
    statistic: Statistic, layout: TableLayout, method: Any, *, ready: Any = False, compare: Any = (),
    register: bool = False,
) -> None:  # fmt: skip
    """Refuse what does not go with a statistic, before any data is read."""
    ready = ready or getattr(layout, "ready", False)
    percentile, deviation = isinstance(statistic, Percentile), isinstance(statistic, StandardDeviation)
    column = statistic.column if isinstance(statistic, Share) else None
    faults = {
        "A table of a statistic is protected by suppressing cells: leave out the other method.":
            not isinstance(method, Suppress),
        "A table of a statistic is not compared with other methods: leave out compare.": bool(compare),
        "A table has a statistic or a relation, not both: ask for two tables.": bool(layout.relation),
        "A percentile is not made of sums: leave out components, and ask for a table of sums.":
            percentile and layout.components,
        "A statistic needs the column that it is of: name the value.": statistic.needs_value and layout.value is None,
        f"The table does not go by {column!r}, along which shares are to add up.":
            column is not None and column not in layout.by,
        "The value is divided by itself: name another column.":
            statistic.denominator is not None and statistic.denominator == layout.value,
        "Percentiles are of records, not of holdings: leave out the holding, or add up first.":
            percentile and layout.holding is not None,
        "Standard deviations and percentiles are made of records, not of a ready table.":
            (deviation or percentile) and bool(ready),
        "A register audits a table by the sums that it shares with earlier ones, and percentiles do not add up: leave "
        "the register out for this table.": percentile and register,
    }  # fmt: skip
    for words, fault in faults.items():
        if fault:
            raise ParameterError(words)


def components_of(
    statistic: Statistic, records: Records, value: str | None, make: Callable[[Records, str | None], Table]
) -> tuple[Table, ...]:
    """The tables of the sums that a statistic is made of: of the value, and of the denominator or the squares.

    `make` tabulates a column of the records.
    """
    first = make(records, value)
    if statistic.denominator is not None:
        return first, make(records, statistic.denominator)
    if isinstance(statistic, StandardDeviation):
        squared, name = with_squares(records, str(value))
        return first, squares_with_limits(first, make(squared, name))
    return (first,)


def with_squares(records: Records, value: str) -> tuple[Records, str]:
    """The records with the square of a column."""
    name = f"{value} squared"
    square = (nw.col(value).cast(nw.Float64()) * nw.col(value).cast(nw.Float64())).alias(name)
    return replace(records, frame=records.frame.with_columns(square)), name


@dataclass(frozen=True)
class SquaresRule:
    """Which sums of squares are sensitive, and how far: of few degrees of freedom, all alike, or of one large value.

    Who knows n, the sum S and the sum of squares Q of a cell and has the second largest value in it takes his own off
    and knows by Samuelson (1968) that the largest is at most m + sqrt((n - 1)(Q / n - m^2)), m = S / n: sensitive where
    that is within the share `p` of it.
    """

    freedom: int
    p: float

    def flag(self, cells: Cells) -> pl.Series:
        count = cells.numbers("contributors")
        occupied: Any = cells.n > 0
        alike = occupied & (cells.numbers("around") == 0)
        return pl.Series("unsafe", (occupied & (count <= self.freedom)) | alike | (occupied & self._close(cells)))

    def _close(self, cells: Cells) -> Booleans:
        first, second = cells.numbers("first"), cells.numbers("second")
        rest, squares = cells.numbers("sum") - second, cells.numbers("value") - second**2
        count = np.maximum(cells.total - 1, 1.0)
        mean = np.where(cells.numbers("below_zero") != 0, -np.abs(rest), rest) / count
        spread = np.sqrt(np.maximum((count - 1) * (squares / count - (rest / count) ** 2), 0.0))
        return np.asarray(mean + spread < (1 + self.p) * first * (1 - 1e-9))

    def levels(self, cells: Cells) -> pl.DataFrame:
        value, around = cells.numbers("value"), cells.numbers("around")
        flagged = self.flag(cells).to_numpy()
        low, high = (cells.numbers(name) for name in LIMITS)
        wanted = np.where(flagged, np.maximum(MARGIN * around, 1e-4 * value), 0.0)
        return pl.DataFrame({"lower": np.minimum(wanted, value - low), "upper": np.minimum(wanted, high - value)})


def squares_with_limits(sums: Table, squares: Table) -> Table:
    """The sums of squares with what `SquaresRule` asks, and what they can be for who knows the sums.

    S^2 / n <= Q <= S^2 in each inner cell, the right side where nothing is negative; margins add that up.
    """
    value, total, q = sums.numbers("value"), sums.total, squares.numbers("value")
    below_zero, inside = may_be_negative(sums), holds(sums)
    capped = ~below_zero & (sums.total == sums.n)
    least = inside @ _snapped(np.nan_to_num(over(value**2, total)), q)[sums.inner]
    most = inside @ _snapped(np.where(sums.n <= 1, q, np.where(capped, value**2, np.inf)), q)[sums.inner]
    columns = {
        "sum": value, "first": sums.numbers("top1"), "second": sums.numbers("top2"),
        "below_zero": below_zero.astype(np.float64), "around": squares_around_mean((sums, squares)),
        LIMITS[0]: np.minimum(_snapped(least, q), q), LIMITS[1]: np.maximum(_snapped(most, q), q),
    }  # fmt: skip
    return replace(squares, more=squares.more.with_columns(**columns))


def _snapped(limit: Floats, value: Floats) -> Floats:
    """Limits, at the value where they are no farther from it than rounding."""
    return np.where(np.abs(limit - value) <= ROUNDING * value, value, limit)


def protect_statistic(
    statistic: Statistic, components: Sequence[Table], method: Suppress, seed: int, progress: Progress | None = None
) -> Tabulated:
    """Protect all components of a statistic by one pattern, and audit each."""
    if isinstance(statistic, Mean) and components[0].more["contributors"].null_count():
        raise ParameterError("A mean needs the counts of the ready table: name their column with Ready(n=...).")
    if isinstance(statistic, Percentile):
        return _percentile_table(statistic, components[0], method, seed)
    assert isinstance(statistic, StatisticOfSums)
    methods = [method, *(_second(statistic, method) for _ in components[1:])]
    components, methods = _guarded_alike(components, methods)
    released = _one_pattern(statistic, components, methods, progress)
    parts = [
        certified(before, after, mask, mask.rule, seed)
        if not isinstance(mask.rule, SquaresRule)
        else _certified_squares(after, mask, seed)
        for before, after, mask in zip(components, released, methods, strict=True)
    ]
    attackers = _attackers(statistic, parts)
    numbers = statistic.of(components)
    return replace(
        parts[0], method=method, statistic=statistic, numbers=numbers, parts=tuple(parts[1:]), attackers=attackers
    )


def _guarded_alike(components: Sequence[Table], methods: Sequence[Suppress]) -> tuple[list[Table], list[Suppress]]:
    """The components with the cells that are sensitive in one withheld in all, and methods that go by that."""
    if len(components) == 1:
        return list(components), list(methods)
    flags = [mask.rule.flag(table).to_numpy() for table, mask in zip(components, methods, strict=True)]
    chosen: Booleans = np.any(flags, axis=0)
    if methods[0].withhold is not None:
        chosen = chosen | (components[0].numbers(methods[0].withhold) != 0)
    marked = pl.Series(WITHHELD, chosen.astype(np.float64))
    tables = [replace(table, more=table.more.with_columns(marked)) for table in components]
    return tables, [replace(mask, withhold=WITHHELD) for mask in methods]


def _certified_squares(released: Table, mask: Suppress, seed: int) -> Tabulated:
    """The sums of squares, audited for who knows the sums: what follows from these alone is not told by squares."""
    certificate = certify(released, mask.rule)
    low, high = (released.numbers(name) for name in LIMITS)
    asked = (high - low > 1e-9 * np.maximum(high, 1e-300)) & (released.more["status"] == "sensitive").to_numpy()
    cells = released.table.select(released.by).filter(pl.Series(asked))
    refuse(Certificate(certificate.cells.join(cells, on=released.by, how="semi")), mask)
    return Tabulated(
        released, certificate.cells, mask, mask.rule, notes=certificate.notes, seed=seed,
        attackers=certificate.attackers,
    )  # fmt: skip


def _second(statistic: Statistic, method: Suppress) -> Suppress:
    """What protects the second component: the same rule for a denominator, for squares that of the deviation."""
    if not isinstance(statistic, StandardDeviation):
        return method
    p = min((part.p for part in parts_of(method.rule) if isinstance(part, PPercent)), default=P_OF_LARGEST)
    rule: Any = SquaresRule(statistic.freedom, p)
    return replace(method, rule=rule, limits=LIMITS, cost="value")


def _one_pattern(
    statistic: Statistic, components: Sequence[Table], methods: Sequence[Suppress], progress: Progress | None
) -> list[Table]:
    """The components with one pattern: each protected beside what is suppressed already, then all suppressed alike."""
    hidden = np.zeros(len(components[0]), dtype=np.bool_)
    sensitive, laws = hidden.copy(), []
    for table, mask in zip(components, methods, strict=True):
        start = table.protected(np.where(hidden, np.nan, table.numbers("value")), _statuses(sensitive, hidden), _NO_LAW)
        made = mask.apply(replace(start, history=table.history), Draws(0), progress)
        hidden |= np.isnan(made.published_values)
        sensitive |= (made.more["status"] == "sensitive").to_numpy()
        laws.append(made.history[-1])
    if together(statistic, components[0]):
        levels_of_sums = levels(methods[0].rule, components[0])
        below, above = (levels_of_sums[side].to_numpy() for side in ("lower", "upper"))
        hidden = protect_moments(components[0], components[1], hidden, below, above, progress)
    words = (
        f"{int(sensitive.sum()):,} sensitive cells suppressed by the rules of what the statistic is made of, and "
        f"{int((hidden & ~sensitive).sum()):,} secondary cells so that none of it can be computed too closely"
    )
    return [
        table.protected(
            np.where(hidden, np.nan, table.numbers("value")), _statuses(sensitive, hidden), replace(law, words=words)
        )
        for table, law in zip(components, laws, strict=True)
    ]


def together(statistic: Statistic, table: Table) -> bool:
    """Whether sums and squares are protected against who has both."""
    return isinstance(statistic, StandardDeviation) and len(table) <= MAX_MOMENT_CELLS


_NO_LAW = Law("suppress", (), "")


def _statuses(sensitive: Booleans, hidden: Booleans) -> pl.Series:
    return pl.Series("status", np.where(sensitive, "sensitive", np.where(hidden, "secondary", "published")))


def _attackers(statistic: Statistic, parts: Sequence[Tabulated]) -> Attackers:
    """Whom the audits of all components cover: those whom each of them covers."""
    first, others = parts[0].attackers, [part.attackers for part in parts[1:]]
    named = [part.table.measured or "records" for part in parts]
    both = [who for who in first.against if who == "an outsider" or all(who in other.against for other in others)]
    less: dict[str, str] = {}
    for name, one in zip(named, (first, *others), strict=True):
        for who, short in zip(one.less, one.short, strict=True):
            less[who] = "; ".join(filter(None, (less.get(who), f"{short} (of {name})" if others else short)))
    knows = "the totals" if isinstance(statistic, Share) else "how many are in each cell"
    known = f"somebody who knows {knows}, and so the sum behind each published number"
    known = "somebody who knows one of the two sums of every cell" if others else known
    joint = together(statistic, parts[0].table)
    also = ("an outsider who puts means and standard deviations together",) if joint else ()
    not_cover = (*first.not_cover, *_not_covered(statistic, joint))
    return Attackers((*both, known, *also), tuple(less), tuple(less.values()), not_cover)


def _not_covered(statistic: Statistic, joint: bool) -> tuple[str, ...]:
    if isinstance(statistic, Mean):
        return ("somebody who wants the counts: means tell how large groups are beside each other",)
    if isinstance(statistic, StandardDeviation):
        who = "a contributor" if joint else "anybody"
        return ("somebody who wants the counts", f"{who} who puts means and standard deviations together")
    return ()


def _percentile_table(statistic: Percentile, original: Table, method: Suppress, seed: int) -> Tabulated:
    """A table of percentiles: too few people, or all but a few of another cell's; not additive, so no intervals."""
    cells = percentiles(original, statistic)
    sensitive = (method.rule.flag(original).to_numpy() | cells.few) & (original.n > 0)
    hidden = sensitive | (cells.close & ~sensitive)
    law = Law(
        "suppress", original.by,
        f"{int(sensitive.sum()):,} cells suppressed in which too few people are, or are about the percentile, and "
        f"{int((hidden & ~sensitive).sum()):,} that hold all but a few people of another",
        {"rule": label(method.rule), "statistic": "percentile"},
    )  # fmt: skip
    released = original.protected(
        np.where(hidden, np.nan, original.numbers("value")), _statuses(sensitive, hidden), law
    )
    attackers = Attackers(
        (
            "an outsider: every number is the mean of several values, with enough people on either side",
            "somebody who compares two cells that differ by few people",
        ),
        not_cover=(
            "somebody who combines percentiles of three and more cells (percentiles do not add up: there is no proof)",
            "several people together whose values are about the percentile",
            "somebody who knows values roughly beforehand",
            "somebody who has other tables of this data",
        ),
    )
    audit = original.table.select(original.by).clear().with_columns(
        status=pl.lit("", pl.String), value=pl.lit(0.0), against=pl.lit("", pl.String), lower=pl.lit(0.0),
        upper=pl.lit(0.0), exact=pl.lit(value=False), exposed=pl.lit(value=False), reached=pl.lit(0.0),
    )  # fmt: skip
    return Tabulated(
        released, audit, method, method.rule, seed=seed, attackers=attackers, statistic=statistic, numbers=cells.values
    )
