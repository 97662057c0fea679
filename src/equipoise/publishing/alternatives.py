"""More answers than publish or suppress: merge neighbours, publish a coarser class, round, perturb, hide a field."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from equipoise.beta_binomial.posterior import Posterior
from equipoise.data.hierarchy import Hierarchy
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import ParameterError, RolesError
from equipoise.ground.packed_keys import code
from equipoise.losses.expectation import Loss, expected
from equipoise.publishing.cell_losses import ClassLoss
from equipoise.publishing.cells_of_domains import Domains
from equipoise.publishing.cheapest_cut import Cut, cheapest

Ways = Mapping[str, tuple[float, float]]
"""What else can be done with a single cell: the share of its disclosure loss that is left, and of its silence."""
STEADY_PRECISION = 1e10
"""The precision that stands for a population without more spread than chance."""


@dataclass(frozen=True)
class Answers:
    """The cheapest answer for every cell, chosen jointly over a hierarchy.

    `cells` has a row per cell: what names it, y, n and N, its `answer` (publish, merge, coarser, suppress, or one of
    the further ways), the `piece` it is told in with how many cells in `together`, and the `loss` of that piece. `loss`
    is the sum over pieces, `two_way` what publish or suppress alone would cost: never less.
    """

    cells: pl.DataFrame = field(repr=False)
    loss: float
    two_way: float
    notes: tuple[str, ...] = field(default=(), repr=False)

    @property
    def words(self) -> str:
        counts = dict(self.cells.group_by("answer").len().sort("len", "answer", descending=[True, False]).rows())
        phrases = ", ".join(f"{answer} ({many:,} cells)" for answer, many in counts.items())
        saved = 1 - self.loss / self.two_way if self.two_way else 0.0
        gain = f"{saved:.1%} below that of publishing or suppressing alone"
        return f"The cheapest answers are {phrases}: the expected loss is {self.loss:.4g}, {gain}."


@dataclass(frozen=True)
class LossTerms:
    """What an answer is chosen by: the exchange of the two losses and what coarseness and the further ways cost."""

    cutoff: float = 1.0
    coarseness: float = 1.0
    reach: int = 2
    ways: Ways = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, least in (("cutoff", 0.0), ("coarseness", 0.0), ("reach", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < np.inf:
                raise ParameterError(f"{name} must be a number of at least {least:g}.")
        for name, pair in self.ways.items():
            if len(pair) != 2 or not all(0 <= part <= 1 for part in pair):
                raise ParameterError(f"{name!r} needs two shares: of the disclosure loss and of the silence it leaves.")


def answers(
    data: Domains, cells: Posterior, losses: tuple[Floats, Floats], disclosure: Loss, along: str, tree: Hierarchy,
    terms: LossTerms,
) -> Answers:  # fmt: skip
    """The cheapest cut of the hierarchy of one column, for every value of the others.

    A cell alone costs the least of R1 (publish), c R0 (suppress, c the cutoff) and e R1 + s c R0 for each further way
    (e, s). Cells told together (a whole group: coarser; up to `reach` neighbours of one group: merge) cost the R1 of
    their union and, for what cannot be told apart, c times coarseness times sum of R0 (1 - y / y of the union): with
    R0 = y the records whose cell one would guess wrong by drawing it in proportion (Gini). The union of classes in a
    domain has the sum of their Dirichlet parameters (their priors scaled down where their means add up to more than
    one); of domains, the sum of independent populations, its mean and variance kept in a beta-binomial law. Exact over
    all such cuts, see `publishing.cheapest_cut`. Misleads when margins are published too: a cell that is
    suppressed alone is a difference, see `tables.Suppress`. Cost: O(cells x reach) expectations.
    """
    if along not in data.keys:
        raise RolesError.missing(along, data.keys)
    if isinstance(disclosure, ClassLoss):
        raise ParameterError("Subclasses counted in each class say nothing of cells united: give their shares.")
    row = _order(data, along, tree)
    united, notes = (cells, ()) if along in data.domain else _compatible(data, cells)
    silent, exposed = (loss[row.order] for loss in losses)
    study = _Study(data, united.take(row.order), (silent, exposed), disclosure, terms, along)
    cut = cheapest(row.paths, study.price, int(terms.reach))
    return _answers(study, row, cut, notes)


def _compatible(data: Domains, cells: Posterior) -> tuple[Posterior, tuple[str, ...]]:
    """Priors of classes whose means add up to more than one in a domain, scaled down so that classes can be united."""
    y, n = data.column("y_eff"), data.column("n_eff")
    alpha, size = cells.a - y, cells.a + cells.b
    place = data.table.select(pl.struct(data.domain).rank("dense"))[:, 0].to_numpy() - 1 if data.domain else y * 0
    means = np.bincount(place.astype(np.int64), alpha / (size - n))[place.astype(np.int64)]
    if (means <= 1 + 1e-9).all():
        return cells, ()
    a = y + alpha / np.maximum(means, 1.0)
    note = "The prior means of the classes add up to more than one: they were scaled down where classes are united."
    return Posterior(cells.y, cells.n, cells.N, a, size - a), (note,)


@dataclass(frozen=True, eq=False, repr=False)
class _PathCells:
    """Cells in the order of their paths, and for each height the node of each."""

    order: Integers
    paths: list[Integers]
    names: tuple[str, ...]


def _order(data: Domains, along: str, tree: Hierarchy) -> _PathCells:
    """The path of each cell: the values of the other columns, then the groups of its own from coarse to fine."""
    others = [c for c in data.keys if c != along]
    fixed = data.table.select(pl.struct(others).rank("dense"))[:, 0].to_numpy() if others else np.zeros(len(data.table))
    leaf = code(data.table[along])
    if len(tree.branches) != 1:
        raise ParameterError(f"The hierarchy of {along!r} has alternatives: choose one, its levels must nest.")
    groups = [_placed(level.label(leaf.values)) for level in tree.branches[0].levels()]
    keys = [leaf.codes.astype(np.int64), *(group[leaf.codes] for group in groups), fixed.astype(np.int64)]
    order = np.lexsort(keys)
    paths = [np.arange(len(order))]
    for height in range(1, len(groups) + 1):
        pairs = np.stack([key[order] for key in keys[height:]], 1)
        paths.append(np.cumsum(np.append(0, (pairs[1:] != pairs[:-1]).any(axis=1))))
    return _PathCells(order, paths, tuple(level.name for level in tree.branches[0].levels()))


def _placed(labels: pl.Series) -> Integers:
    """For each value its group, groups numbered by their first value."""
    texts = labels.cast(pl.String).fill_null("")
    first = texts.unique(maintain_order=True)
    return texts.cast(pl.Enum(first)).to_physical().to_numpy().astype(np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class _Study:
    """Cells in their order, with what each costs alone."""

    data: Domains
    cells: Posterior
    losses: tuple[Floats, Floats]
    disclosure: Loss
    terms: LossTerms
    along: str

    def alone(self) -> tuple[Floats, Integers]:
        """The cheapest way to tell each cell by itself, and which: 0 publish, 1 suppress, then the further ways."""
        silent, exposed = self.losses
        shares = [(1.0, 0.0), (0.0, 1.0), *self.terms.ways.values()]
        costs = np.stack([e * exposed + s * self.terms.cutoff * silent for e, s in shares])
        best = costs.argmin(axis=0)
        return costs[best, np.arange(len(best))], best

    def price(self, start: Integers, stop: Integers, height: int) -> Floats:
        if height == 0:
            return self.alone()[0][start]
        union = self.union(start, stop)
        silent, y = self.losses[0], self.cells.y
        coarseness = _sums(silent, start, stop) - np.divide(
            _sums(silent * y, start, stop), union.y, out=_sums(silent, start, stop), where=union.y > 0
        )
        return expected(self.disclosure, union) + self.terms.cutoff * self.terms.coarseness * coarseness

    def union(self, start: Integers, stop: Integers) -> Posterior:
        """The law of the populations of pieces."""
        if self.along in self.data.domain:
            return self._of_domains(start, stop)
        cells, many = self.cells, stop - start
        size = _sums(cells.a + cells.b, start, stop) / many
        share = np.minimum(_sums(cells.a, start, stop) / size, 1 - 1 / (size + 2))
        return Posterior(_sums(cells.y, start, stop), cells.n[start], cells.N[start], share * size, (1 - share) * size)

    def _of_domains(self, start: Integers, stop: Integers) -> Posterior:
        cells = self.cells
        y, n, people = (_sums(part, start, stop) for part in (cells.y, cells.n, cells.N))
        rest, variance = _sums(cells.rest, start, stop), _sums(cells.variance, start, stop)
        share = np.divide(_sums(cells.mean, start, stop) - y, rest, out=np.full(len(y), 0.5), where=rest > 0)
        chance = rest * share * (1 - share)
        ratio = np.divide(variance, chance, out=np.ones(len(y)), where=chance > 0)
        loose = np.maximum(ratio - 1, 1 / STEADY_PRECISION)
        size = np.clip((rest - ratio) / loose, 1 / STEADY_PRECISION, STEADY_PRECISION)
        return Posterior(y, n, people, np.maximum(share * size, 1e-12), np.maximum((1 - share) * size, 1e-12))


def _sums(values: Floats, start: Integers, stop: Integers) -> Floats:
    totals = np.append(0.0, np.cumsum(values))
    return totals[stop] - totals[start]


def _answers(study: _Study, row: _PathCells, cut: Cut, notes: tuple[str, ...]) -> Answers:
    starts, costs, way = cut.starts, *study.alone()
    stops = np.append(starts[1:], len(cut.piece))
    answer = np.array(["publish", "suppress", *study.terms.ways], dtype=object)[way[starts]]
    loss = costs[starts]
    for height, name in enumerate(row.names, start=1):
        pieces = np.flatnonzero((cut.height[starts] == height) & (stops - starts > 1))
        loss[pieces] = study.price(starts[pieces], stops[pieces], height)
        answer[pieces] = np.where(_whole(row.paths[height], starts[pieces], stops[pieces]), f"coarser: {name}", "merge")
    silent, exposed = study.losses
    two_way = float(np.minimum(exposed, study.terms.cutoff * silent).sum())
    back = np.argsort(row.order)
    piece = cut.piece[back]
    cells = study.data.table.select(*study.data.keys, "y", "n", "N").with_columns(
        pl.Series("answer", answer.astype(str)[piece]),
        pl.Series("piece", piece),
        pl.Series("together", (stops - starts)[piece]),
        pl.Series("loss", loss[piece]),
    )
    return Answers(cells, cut.cost, two_way, notes)


def _whole(nodes: Integers, starts: Integers, stops: Integers) -> Integers:
    """Which ranges are whole nodes."""
    firsts = np.flatnonzero(np.append(True, nodes[1:] != nodes[:-1]))
    ends = np.isin(starts, firsts) & np.isin(stops, np.append(firsts[1:], len(nodes)))
    return ends & (nodes[starts] == nodes[stops - 1])
