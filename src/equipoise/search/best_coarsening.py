"""The best coarsening: of all combinations of levels the one that satisfies the rules and loses least."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import polars as pl

from equipoise import losses
from equipoise.coarsening.lattice import CoarseningLoss
from equipoise.data.cells import Cells, count
from equipoise.data.levels import ORIGINAL
from equipoise.data.records import Records
from equipoise.files.memory import refuse_work
from equipoise.ground.errors import Cancelled, InfeasibleError, ParameterError, RolesError, hint
from equipoise.ground.lazy_exports import snake
from equipoise.ground.progress import Progress
from equipoise.masks import Recode, SuppressRecords
from equipoise.methods.method import label
from equipoise.methods.parameters import share
from equipoise.methods.protection_levels import Either
from equipoise.methods.sensitive_values import sensitive_of
from equipoise.presentation.notebook import coarsening_html
from equipoise.recipe.recipe import Recipe
from equipoise.rules import MinCount
from equipoise.search._best_coarsening.beam import Beam
from equipoise.search._best_coarsening.criteria import Criteria
from equipoise.search._best_coarsening.exact import CountedNode, LatticeSearch, SearchClock, level_column
from equipoise.search._best_coarsening.nodes import lattice_of
from equipoise.search._best_coarsening.population import count_people, suppressions

MAX_PROVEN_NODES = 1_000_000
"""Nodes up to which the best one is proven; beyond, a search without proof gives a bound."""
LOSSES: dict[str, type] = {
    snake(kind.__name__): kind
    for kind in (losses.ClassSize, losses.Discernibility, losses.Entropy, losses.Granularity, losses.NonUniformEntropy)
}

PLAIN_FIELDS = (
    "levels", "loss", "lower_bound", "proven", "suppressed", "classes", "mean_risk", "records", "nodes", "evaluated",
)  # fmt: skip
"""Fields of an answer as plain data."""


@dataclass(frozen=True, repr=False, eq=False)
class BestCoarsening:
    """The best coarsening that was found, and how good any other can be.

    `levels` names the level of each key, `loss` what it costs, `lower_bound` what any coarsening that satisfies the
    rules costs at least (`proven`: the same number), `suppressed` the records suppressed, `mean_risk` the mean
    over records of 1 / the records alike. `recipe` carries it out; `lattice` is every node, as far as it is known.
    """

    levels: dict[str, str]
    loss: float
    lower_bound: float
    suppressed: int
    classes: int
    mean_risk: float
    records: int
    nodes: int
    evaluated: int
    recipe: Recipe
    rule: Any
    measured_by: CoarseningLoss
    search: LatticeSearch | Beam = field(repr=False)

    @property
    def interrupted(self) -> bool:
        """Somebody stopped the search."""
        return self.search.clock.interrupted

    @property
    def proven(self) -> bool:
        """No coarsening that satisfies the rules costs less."""
        return self.lower_bound >= self.loss

    @cached_property
    def lattice(self) -> pl.DataFrame:
        """A row for each node: the level of each key, `loss`, `bound`, `classes`, `suppressed`, `satisfied`, `known`.

        `known` is "counted", "inferred" (it cannot satisfy the rules), "dearer" (its `bound` is above the best loss) or
        "open". What was not counted is null. Of a lattice too large to hold, the nodes that were counted.
        """
        return _frame(self.search) if isinstance(self.search, LatticeSearch) else self.search.frame()

    def to_plain(self) -> dict[str, Any]:
        """Plain data for JSON."""
        facts = {name: getattr(self, name) for name in PLAIN_FIELDS}
        facts["lower_bound"] = self.lower_bound if np.isfinite(self.lower_bound) else None
        return facts | {"rule": label(self.rule), "measured_by": label(self.measured_by), "words": self.words()}

    def words(self) -> str:
        """In one sentence."""
        share = f"{self.suppressed / self.records:.1%}"
        records = f"{self.suppressed:,} records ({share})" if self.suppressed else "nothing"
        risk = "" if self.search.criteria.mean_risk is None else f", mean risk {self.mean_risk:.4g}"
        least = f"no other costs less than {self.lower_bound:.5g}" if np.isfinite(self.lower_bound) else "best so far"
        sure = "proven best" if self.proven else least
        return (
            f"{self.recipe.words()}: {label(self.measured_by)} {self.loss:.5g}, {records} suppressed{risk}; {sure} "
            f"of {self.nodes:,} coarsenings ({self.evaluated:,} counted)."
        )

    def _repr_html_(self) -> str:
        return coarsening_html(self)

    def __repr__(self) -> str:
        return (
            f"BestCoarsening({self.levels}, loss={self.loss:.6g}, suppressed={self.suppressed:,}, proven={self.proven})"
        )


def best_coarsening(
    records: Records,
    rules: Any = (),
    loss: Any = "granularity",
    suppress_at_most: float = 0.02,
    *,
    mean_risk_at_most: float | None = None,
    whole: bool = False,
    seconds: float | None = None,
    progress: Progress | None = None,
) -> BestCoarsening:
    """The coarsening of the keys that satisfies the rules at the least loss, over all levels of all hierarchies.

    Records in classes that the rules flag are suppressed (all their keys blanked), at most the share `suppress_at_most`
    of them; together they are a class without keys, for which the rules hold too. Up to a million combinations of
    levels the answer is proven best; of equal ones the first found is taken. Beyond, a beam search finds a good one and
    `lower_bound` says how much better another could be. Cost: one count of the records, then O(classes) for each node
    that cannot be ruled out; about 0.3 ms for 30,000 records.

    Parameters
    ----------
    records
        What `eq.read` gives, with hierarchies for the keys.
    rules
        A rule, or several that must all hold: `eq.rules.MinCount(5)` is k-anonymity, `eq.rules.KMap(5, "register.csv")`
        asks for 5 people of a population in each class (k-map).
    loss
        What coarsening costs: one of eq.losses, or its name: granularity, discernibility, class_size, entropy,
        non_uniform_entropy. Those that go key by key take weights: `eq.losses.Granularity(weights={"age": 0.5})`.
    suppress_at_most
        Share of records that may be suppressed.
    mean_risk_at_most
        The most that the mean over all released records of 1 / the records alike may be (average risk): classes by
        records, suppressed records being one class. `eq.risk.Prosecutor("mean")` of the release is at most that. No
        record is suppressed for it, only for the rules, so that with a rule a finer node may satisfy it by suppression.
    whole
        Count every node, to explore the whole lattice.
    seconds
        Stop after so long, with the best so far and a lower bound; an interrupt does the same.
    progress
        Called with (done, total, what); returning False stops likewise.

    >>> ages = eq.Hierarchy.intervals([10, 20], root=True)
    >>> people = pl.DataFrame({"age": [23, 25, 37, 51, 44, 45, 46], "sex": ["f", "f", "m", "m", "m", "m", "m"]})
    >>> records = eq.read(people, eq.Roles(["age", "sex"], hierarchies={"age": ages}))
    >>> best_coarsening(records, eq.rules.MinCount(2), suppress_at_most=0.3)
    BestCoarsening({'age': '10', 'sex': 'original'}, loss=0.377664, suppressed=2, proven=True)
    """
    rule, priced = _rule(rules, mean_risk_at_most), read_loss(loss)
    share(suppress_at_most, "suppress_at_most", zero=True)
    if seconds is not None and not seconds > 0:
        raise ParameterError(f"seconds must be above 0, got {seconds:g}.")
    refuse_work(records, "coarsen", records.roles.keys)
    cells, keys = _finest_cells(records, rule)
    lattice, clock = lattice_of(cells, keys, rule), SearchClock(seconds, progress)
    limit = int(np.floor(suppress_at_most * lattice.records + 1e-9))
    criteria = Criteria(count_people(rule, cells, keys), limit, mean_risk_at_most, bool(cells.open))
    if lattice.nodes > MAX_PROVEN_NODES:
        beam = Beam(cells, lattice, criteria, priced, clock)
        return _answer(beam, beam.run(), rule, keys)
    search = LatticeSearch(lattice, criteria, priced, clock)
    return _answer(search, search.run(whole), rule, keys)


def _rule(rules: Any, mean_risk: float | None) -> Any:
    """One rule of all; where only the mean risk is limited, one that flags nothing."""
    several = tuple(rules) if isinstance(rules, Iterable) else (rules,)
    if mean_risk is not None:
        share(mean_risk, "mean_risk_at_most")
        several = several or (MinCount(1),)
    if not several or not all(hasattr(rule, "flag") for rule in several):
        raise ParameterError("rules must be a rule, or several: eq.rules.MinCount(5).")
    return several[0] if len(several) == 1 else Either(*several)


def read_loss(loss: Any, weights: Mapping[str, float] | None = None) -> CoarseningLoss:
    """A loss from its name and the weights of keys, or as it is."""
    if isinstance(loss, str):
        name = snake(loss).replace("-", "_")
        if name not in LOSSES:
            raise ParameterError(f"No loss of coarsening {loss!r}.{hint(name, list(LOSSES))}")
        return LOSSES[name](**_weighted(name, weights or {}))
    if not all(hasattr(loss, verb) for verb in ("of", "least", "parts", "total")) or isinstance(loss, type):
        raise ParameterError(f"loss must be one of: {', '.join(LOSSES)}.")
    return loss


def _weighted(name: str, weights: Mapping[str, float]) -> dict[str, Any]:
    if weights and "weights" not in (field.name for field in fields(LOSSES[name])):
        raise ParameterError(f"The loss {name} counts records, not keys: it takes no weights of keys.")
    return {"weights": weights} if weights else {}


def _finest_cells(records: Records, rule: Any) -> tuple[Cells, tuple[str, ...]]:
    """The cells of the keys and of the rule's sensitive columns."""
    keys, sensitive = records.roles.keys, sensitive_of([rule])
    both = [column for column in sensitive if column in keys]
    if both:
        raise RolesError(f"Column {both[0]!r} is a key and what the rule protects: leave it out of the keys.")
    if not any(key in records.roles.hierarchies for key in keys):
        raise RolesError("No key has a hierarchy, so there is nothing to coarsen: give hierarchies in the roles.")
    return count(records, (*keys, *sensitive)), keys


def _answer(search: LatticeSearch | Beam, finished: bool, rule: Any, keys: tuple[str, ...]) -> BestCoarsening:
    best, lattice = search.best, search.lattice
    if best is None and not finished:
        raise Cancelled("Stopped before any coarsening was found that satisfies the rules. Nothing was written.")
    if best is None:
        criteria = search.criteria
        risk = "" if criteria.mean_risk is None else f" and a mean risk of at most {criteria.mean_risk:g}"
        raise InfeasibleError(
            f"No coarsening satisfies the rules{risk} with at most {criteria.limit:,} of {lattice.records:,} records "
            "suppressed: allow more, or give the hierarchies a coarser level."
        )
    lattice.folds.forget()
    names = {key: ladder.names[level] for key, ladder, level in zip(keys, lattice.ladders, best.levels, strict=True)}
    return BestCoarsening(
        names, best.loss, search.lower_bound, best.suppressed, best.classes, best.mean_risk, lattice.records,
        prod(lattice.shape), search.evaluated, _recipe(names, rule, best, keys), rule, search.loss, search,
    )  # fmt: skip


def _recipe(levels: dict[str, str], rule: Any, best: CountedNode, keys: tuple[str, ...]) -> Recipe:
    """Suppress and recode; what compares original values with a population goes first."""
    coarser = [Recode(key, level) for key, level in levels.items() if level != ORIGINAL]
    before, after = suppressions(rule, levels) if best.suppressed else (None, None)
    first, last = ([SuppressRecords(part, keys)] if part is not None else [] for part in (before, after))
    return Recipe((*first, *coarser, *last))


def _frame(search: LatticeSearch) -> pl.DataFrame:
    grids = np.indices(search.lattice.shape).reshape(len(search.lattice.shape), -1)
    levels = {
        level_column(ladder): pl.Series(ladder.names).gather(grid)
        for ladder, grid in zip(search.lattice.ladders, grids, strict=True)
    }
    evaluated = (search.suppressed >= 0).ravel()
    status = np.select(
        [evaluated, search.failed.ravel(), ~search.open.ravel()], ["counted", "inferred", "dearer"], "open"
    )
    numbers = {
        "loss": pl.Series(search.losses.ravel()).fill_nan(None),
        "bound": pl.Series(search.bound.ravel()).replace(-np.inf, None),
        "classes": pl.Series(search.classes.ravel()).replace(-1, None),
        "suppressed": pl.Series(search.suppressed.ravel()).replace(-1, None),
    }
    table = pl.DataFrame({**levels, **numbers, "known": status})
    satisfied = pl.when(pl.col("known") == "counted").then(pl.Series(search.satisfied.ravel()))
    return table.with_columns(satisfied=satisfied.when(pl.col("known") == "inferred").then(False))
