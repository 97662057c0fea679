"""Group disclosure attack: what a released table still tells about everybody in a group."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from equipoise.data.tables.cell_status import structural
from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import additive, both
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError, EngineError
from equipoise.methods.method import label
from equipoise.methods.score import Score
from equipoise.rules.group_disclosure import GroupDisclosure, Margins, margins
from equipoise.tables.audits.changed_tables import CHANGING_METHODS, MAX_CELLS
from equipoise.tables.audits.joint_audit import bounds

UNBOUNDED = 3
"""Status of a linear program without a limit, in SciPy."""
SLACK = 1e-6
"""Part of a record by which a bound may miss a whole number."""


@dataclass(frozen=True, slots=True)
class GroupsTold:
    """Share of what is true of whole groups in a table that an attacker can still conclude from its release.

    Statements: all of a margin are in one cell, or all but fewer than `k`, or the `share` of them; with `zeros` nobody
    is, as `rules.GroupDisclosure` has them. For each the attacker finds by linear programming the least and the most
    [a, b] that can be in the other cells of the margin (in the empty cell itself), from what is published, all
    relations, structural zeros and the law of the method. He concludes it where b < t, the number that would make it
    false. In the table as it is he concludes all: 1. The detail has for each statement the interval and `risk`, the
    share of the whole numbers in it for which the statement holds.

    Source: Fischetti and Salazar-Gonzalez (2001) for the attacker's problem; Hundepool et al. (2024), section 5.2, for
    group disclosure. Misleads when numbers in [a, b] are not equally likely, or counts are known to be whole where that
    narrows it. Cost: two linear programs for each statement; tables of up to 5,000 cells.

    >>> from equipoise.ground.randomness import Draws
    >>> people = eq.Records.of(pl.DataFrame({"k": [*"aaaabbbb"], "ill": [*"ppppppqq"]}), eq.Roles())
    >>> table = eq.table(people, ["k", "ill"])
    >>> rules = eq.rules.MinCount(3), eq.rules.GroupDisclosure()
    >>> [GroupsTold().measure(eq.tables.Suppress(rule).apply(table, Draws(1)), table).value for rule in rules]
    [1.0, 0.0]
    """

    k: int = 1
    zeros: bool = True
    share: float = 1.0
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", self._rule.columns)

    @property
    def _rule(self) -> GroupDisclosure:
        return GroupDisclosure(self.k, self.zeros, self.share, self.columns)

    def measure(self, released: Table, original: Table) -> Score:
        table, true_table = both(released, original, "GroupsTold")
        if len(table) > MAX_CELLS:
            raise DataError(f"GroupsTold attacks tables of up to {MAX_CELLS:,} cells.")
        statements = list(_statements(margins(true_table, self.columns), self._rule))
        attacker = _Attacker(table)
        rows = pl.DataFrame(
            [(s.cell, *attacker.interval(s.elsewhere, s.record), s.enough) for s in statements],
            schema={"cell": pl.Int64, "lower": pl.Float64, "upper": pl.Float64, "enough": pl.Int64}, orient="row",
        )  # fmt: skip
        told = (rows["upper"] < rows["enough"] - SLACK).to_numpy()
        return Score(
            label(self), float(told.mean()) if statements else 0.0, side="risk", number=float(told.sum()),
            unit="share of statements", notes=() if statements else ("The table tells nothing about a whole group.",),
            cells=lambda: _detail(true_table, rows),
        )  # fmt: skip


class _Statement(NamedTuple):
    """That fewer than `enough` records are `elsewhere`, in cells of which one contributes `record`."""

    cell: int
    elsewhere: Integers
    record: float
    enough: int


def _statements(groups: Margins, rule: GroupDisclosure) -> Iterator[_Statement]:
    """What is true of whole groups: those in few cells, and each empty cell once."""
    least = rule.least(groups.size)
    for row in np.flatnonzero(groups.size - groups.n < least).tolist():
        beside = groups.cell[(groups.margin == groups.margin[row]) & (groups.cell != groups.cell[row])]
        yield _Statement(int(groups.cell[row]), beside, float(groups.record[row]), int(least[row]))
    empty = np.flatnonzero(groups.n == 0) if rule.zeros else np.zeros(0, dtype=np.int64)
    for row in empty[np.unique(groups.cell[empty], return_index=True)[1]].tolist():
        yield _Statement(int(groups.cell[row]), groups.cell[[row]], float(groups.record[row]), 1)


class _Attacker:
    """Knows what each cell can be by itself, and all relations."""

    def __init__(self, table: Table) -> None:
        changed = bool(table.history) and table.history[-1].mask in CHANGING_METHODS
        self.low, self.high = bounds(table, changed)
        self.high = np.where(structural(table), 0.0, self.high)
        self.matrix = additive(table).base.tocsc()
        self.open = np.flatnonzero(self.high > self.low)

    def interval(self, cells: Integers, record: float) -> tuple[float, float]:
        """The least and the most that these cells can hold together, in records; infinite where nothing limits it."""
        known = float(self.low[np.setdiff1d(cells, self.open)].sum())
        weight = np.isin(self.open, cells).astype(np.float64)
        if not weight.any():
            return known / record, known / record
        return (known + self._extreme(weight, 1.0)) / record, (known + self._extreme(weight, -1.0)) / record

    def _extreme(self, weight: Floats, sign: float) -> float:
        from scipy.optimize import linprog

        fixed = np.where(self.high > self.low, 0.0, self.low)
        limits = np.stack([self.low, self.high], axis=1)[self.open]
        answer = linprog(
            sign * weight, A_eq=self.matrix[:, self.open], b_eq=-(self.matrix @ fixed), bounds=limits, method="highs"
        )
        if answer.status == UNBOUNDED:
            return -sign * np.inf
        if answer.status != 0:
            raise EngineError("The attack on groups could not be solved: the release contradicts its own law.")
        return sign * float(answer.fun)


def _detail(table: Table, rows: pl.DataFrame) -> pl.DataFrame:
    """A row for each statement: the cell it is about, the attacker's interval, and how likely it is to hold in it."""
    first, last = (rows["lower"] - SLACK).ceil(), (rows["upper"] + SLACK).floor()
    holds = (pl.Series(np.minimum(last.to_numpy(), rows["enough"].to_numpy() - 1)) - first + 1).clip(0.0)
    keys = table.table.select(table.by)[rows["cell"]]
    risk = (holds / (last - first + 1)).fill_nan(0.0).alias("risk")
    return keys.with_columns(rows["lower"], rows["upper"], rows["enough"], risk)
