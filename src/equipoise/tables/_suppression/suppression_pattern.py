"""Suppression pattern on arrays: secondary cells for given primary ones, and the proof that it protects."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from equipoise.data.tables.additivity import Additive
from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.ground.errors import Cancelled, EngineError, ParameterError
from equipoise.ground.progress import Progress, Stoppable
from equipoise.tables._suppression.cheapest_move import RELATION_TOLERANCE, Finder
from equipoise.tables._suppression.fast import Cover
from equipoise.tables._suppression.optimal import CutSearch, Separator
from equipoise.tables._suppression.problem import (
    SHORTFALL,
    Demands,
    SuppressionTable,
    filled,
    marked,
    typical,
    unprotectable,
)

MAX_ROUNDED_DEMANDS = 4_000
"""Demands up to which the relaxed problem is looked at first, in the fast way: each round asks for all of them."""
MAX_RELAXED_WORK = 60_000_000
"""Work the relaxed problem may take in the fast way."""


@dataclass(frozen=True, eq=False, repr=False)
class Suppression:
    """A pattern and its certificate.

    Each row of `witnesses` is another possible table, as changes to the true one: only suppressed cells change, all
    relations and limits hold. In row `row[w]` cell `cell[w]` changes by `sign[w]` times its level or more. For each
    primary and direction there is such a w; where contributors know their own cells, several whose rows leave each of
    them still in one. `cost` is that
    of the secondary cells, `bound` what no pattern can go below. `weaker` lists primaries that are guarded to less than
    their level against some contributor who knows his own cells, because no pattern gives more (`knowers`). `work` is
    what it took, the same on every machine.
    """

    suppressed: Booleans
    primary: Booleans
    witnesses: Any
    row: Integers
    cell: Integers
    sign: Integers
    level: Floats
    cost: float
    bound: float
    programs: int
    weaker: Integers
    work: int = 0

    @property
    def secondary(self) -> Booleans:
        return self.suppressed & ~self.primary

    @property
    def gap(self) -> float:
        """Share of the cost that might be saved at most."""
        return 1 - self.bound / self.cost if self.cost > 0 else 0.0

    def spread(self) -> tuple[Floats, Floats]:
        """How far each cell falls and rises in the witnesses: inner bounds of what an attacker must think possible."""
        witnesses = self.witnesses.tocsc()
        if not witnesses.nnz:
            return np.zeros(witnesses.shape[1]), np.zeros(witnesses.shape[1])
        fall, rise = (abs(side.toarray().ravel()) for side in (witnesses.min(axis=0), witnesses.max(axis=0)))
        return fall, rise

    def verify(self, table: SuppressionTable) -> None:
        """Check every witness: no solver is asked. Raises `EngineError` for one that fails."""
        witnesses, least = self.witnesses.tocoo(), np.full(self.witnesses.shape[0], np.inf)
        np.minimum.at(least, self.row, self.level)
        scale = np.maximum(least[witnesses.row], np.abs(witnesses.data)) * RELATION_TOLERANCE
        wrong = ~self.suppressed[witnesses.col] | (witnesses.data > table.up[witnesses.col] + scale)
        wrong |= witnesses.data < -table.down[witnesses.col] - scale
        bad = np.zeros(len(least), dtype=np.bool_)
        bad[witnesses.row[wrong]] = True
        missed = abs(table.additive.matrix @ self.witnesses.T).tocoo()
        bad[missed.col[missed.data > least[missed.col] * 10 * RELATION_TOLERANCE]] = True
        own = np.asarray(self.witnesses[self.row, self.cell]).ravel() if len(self.cell) else self.level
        faults = bad[self.row] | (self.sign * own < self.level * (1 - SHORTFALL))
        if faults.any():
            raise EngineError(f"The proof for cell {int(self.cell[np.flatnonzero(faults)[0]])} does not hold.")


def suppress(
    additive: Additive, values: Any, primary: Any, *, lpl: Any = 0.0, upl: Any = 0.0, spl: Any = 0.0, cost: Any = None,
    low: Any = 0.0, high: Any = np.inf, forced: Any = None, forbidden: Any = None, singletons: Any = None,
    method: Literal["fast", "optimal"] = "fast", seconds: float = 300.0, gap: float = 0.0, bounded: bool = True,
    progress: Progress | None = None,
) -> Suppression:  # fmt: skip
    """Suppress further cells so that every primary can be `lpl` lower and `upl` higher, as far as an attacker can tell.

    `fast` meets one demand after the other by its cheapest move, takes out what can be had cheaper and, where it is
    `bounded` and that was quick, rounds the relaxed problem. `optimal` adds cutting planes until the cheapest pattern
    is proven or so many `seconds` of CPU are spent or the `gap` is reached; `bound` says what was proven. A sliding
    level is met by raising the others (`Demands.of`). `singletons` numbers the contributor who is alone in a cell (or
    marks such cells): against him, too, who knows his own cells, all other primaries are protected, to their levels
    where any pattern can
    (`Knowers` says what else). `cost` defaults to the value. Deterministic, unless the seconds run out. A primary
    without levels is suppressed, not protected. When `progress` says stop while a pattern that protects is being made
    cheaper, that pattern is the answer; before, `Cancelled` is raised, or with `Stoppable` progress the rest of the
    pattern is the first that is found.

    Does not guard against an attacker who knows more than `low` and `high`, or several contributors who pool what
    they know. Cost: about one small program for each primary, then a few for each secondary cell.

    >>> tree = np.array([-1, 0, 0, 0])
    >>> values = np.array([45, 15, 15, 15, 18, 3, 6, 9, 14, 5, 4, 5, 13, 7, 5, 1])
    >>> sensitive = np.arange(16) == 5
    >>> found = suppress(Additive.over([tree, tree]), values, sensitive, lpl=2, upl=2)
    >>> np.flatnonzero(found.suppressed).tolist(), found.cost
    ([5, 6, 9, 10], 15.0)
    """
    if method not in ("fast", "optimal"):
        raise ParameterError(f"'method' is 'fast' or 'optimal', not {method!r}.")
    table, hidden = SuppressionTable.of(additive, values, low, high), marked(primary, additive.cells, "primary")
    must, may_not = (marked(m, additive.cells, n) for m, n in ((forced, "forced"), (forbidden, "forbidden")))
    _refuse_conflict(hidden | must, may_not)
    demands = Demands.of(table, hidden, lpl, upl, spl, singletons)
    price = _price(cost, table)
    unit, coin = typical(np.abs(table.values)), typical(price)
    inner, wanted = table.scaled(unit), demands.scaled(unit)
    alive = progress.going_on if isinstance(progress, Stoppable) else progress
    finder = Finder(inner, ~may_not, _charges(price) / coin, wanted.level, alive)
    finder.hurry = isinstance(progress, Stoppable) and progress.stopped
    cover, bound = Cover(wanted, finder, hidden | must), 0.0
    separator = Separator(inner, wanted, ~may_not, cover.fixed, finder.cost, cover.knowers)
    search = CutSearch(cover, separator, ~may_not, seconds, gap)
    relaxed = method == "fast" and bounded and not finder.hurry and len(wanted) <= MAX_ROUNDED_DEMANDS
    if relaxed:
        _charge_as_relaxed(cover, search, progress)
    cover.protect(progress)
    finder.cost = cover.cost
    try:
        if not finder.hurry:
            cover.improve(progress)
    except Cancelled:
        finder.hurry = True
    cover.complete(progress)
    try:
        if cover.total > 0 and not finder.hurry and (relaxed or method == "optimal"):
            for optimum in search.run(progress) if method == "optimal" else search.settled(progress):
                cover, bound = optimum.cover, optimum.bound
    except Cancelled:
        pass
    return _result(table, cover, hidden, price, bound * coin, unit, coin)


def _charge_as_relaxed(cover: Cover, search: CutSearch, progress: Progress | None) -> None:
    """Charge cells by the share of the relaxed problem that publishes them; as they are when that is stopped."""
    try:
        cover.begin(progress)
        cover.finder.cost = search.charges(MAX_RELAXED_WORK, progress)
    except Cancelled:
        if not isinstance(progress, Stoppable):
            raise
        cover.finder.hurry = True


def _result(
    table: SuppressionTable, cover: Cover, primary: Booleans, price: Floats, bound: float, unit: float, coin: float
) -> Suppression:
    import scipy.sparse as sparse

    owners, rows, levels, changes = cover.witnesses()
    starts = np.cumsum([0, *(len(cells) for cells, _ in changes)])
    columns = np.concatenate([cells for cells, _ in changes]) if changes else np.zeros(0, dtype=np.int64)
    by = np.concatenate([change for _, change in changes]) if changes else np.zeros(0)
    witnesses = sparse.csr_array((by * unit, columns, starts), shape=(len(changes), table.cells))
    demands, pattern = cover.demands, cover.pattern()
    spent = float(price[pattern & ~primary].sum())
    if len(cover.secondary()):
        over = float((cover.cost * coin - price)[table.movable & ~cover.fixed].sum())
        bound = max(0.0, bound - over) + float(price[cover.fixed & ~primary].sum())
    else:
        bound = spent
    suppression = Suppression(
        pattern, primary, witnesses, rows, demands.cell[owners], demands.sign[owners], levels * unit,
        spent, min(spent, bound), cover.finder.programs, np.array(cover.knowers.weaker(), dtype=np.int64),
        cover.finder.effort + cover.finder.bulk_work,
    )  # fmt: skip
    suppression.verify(table)
    return suppression


def _refuse_conflict(hidden: Booleans, published: Booleans) -> None:
    both = np.flatnonzero(hidden & published)
    if len(both):
        raise unprotectable(int(both[0]), "it is to be published and suppressed at once")


def _price(cost: Any, table: SuppressionTable) -> Floats:
    price = np.abs(table.values) if cost is None else filled(cost, table.cells, "cost")
    if not ((price >= 0) & np.isfinite(price)).all():
        raise ParameterError("'cost' must hold finite numbers of at least 0.")
    return price


def _charges(price: Floats) -> Floats:
    """What costs nothing is charged a little, or it would be suppressed for no reason."""
    paid = price[price > 0]
    return np.maximum(price, 1e-3 * float(paid.min()) if len(paid) else 1.0)
