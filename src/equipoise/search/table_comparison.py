"""Comparison of methods on one table: suppression by several rules, rounding, cell keys and adjustment on one map."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from equipoise import tables
from equipoise.data.tables.table import Table
from equipoise.ground.errors import ParameterError
from equipoise.methods.method import Measure, Rule
from equipoise.methods.score import Scores
from equipoise.policies.dominance_check import Diagnosis, diagnose
from equipoise.policies.policy import Policy
from equipoise.recipe.catalogue import parse
from equipoise.recipe.recipe import Recipe, refuse_strangers
from equipoise.search.frontier import Frontier, frontier
from equipoise.trials.runner import attempted
from equipoise.trials.table_method_names import recipe_text
from equipoise.trials.trial import Trial, Trials, original_trial


@dataclass(frozen=True, eq=False, repr=False)
class TableComparison:
    """What a protected table was held against: the trials, the table as it is, what was published, and the limits."""

    trials: Trials
    original: Trial
    chosen: Trial
    policy: Policy = Policy()
    diagnoses: tuple[Diagnosis, ...] = ()

    @property
    def frontier(self) -> Frontier:
        return frontier(self.trials)

    def to_plain(self) -> list[dict[str, Any]]:
        """What was tried with its scores, and what could not be, as plain data."""
        trials = [{"method": t.words(), "scores": {s.name: s.value for s in t.scores}} for t in self.trials]
        return [*trials, *({"method": method.name, "left_out": method.reason} for method in self.trials.left_out)]


def standard(rule: Rule) -> tuple[Measure, ...]:
    """What tables are compared by: the risk under one rule, and what users lose; suppressed cells count as lost."""
    return tables.Exposed(rule), tables.Suppressed(), tables.Distance(), tables.KeptMargins(0.01)


def compared_methods(compare: Sequence[Any], rule: Rule | None) -> tuple[Any, ...]:
    """The methods to compare with, before any data is read."""
    if compare and rule is None:
        raise ParameterError("Methods are compared under one rule: say which cells are sensitive.")
    methods = tuple(parse(method, "mask") if isinstance(method, str) else method for method in compare)
    refuse_strangers([Recipe((method,), 0) for method in methods], ())
    return methods


def beside(
    original: Table, released: Table, method: Any, *, rule: Rule, others: Sequence[Any], seed: int
) -> TableComparison:
    """What is published of a table on one map with what other methods would have made of it, under the same rule."""
    measures = standard(rule)
    chosen = measured(original, released, Recipe((method,), seed), measures)
    rest = attempted(original, [Recipe((other,), seed) for other in others], measures)
    return TableComparison(
        Trials((chosen, *rest), rest.left_out), original_trial(original, measures), chosen,
        diagnoses=diagnoses(original, others),
    )  # fmt: skip


def measured(original: Table, released: Table, recipe: Recipe, measures: Sequence[Measure]) -> Trial:
    """What a recipe released of a table, as a trial that is named in short."""
    scores = Scores(measure.measure(released, original).brief() for measure in measures)
    return Trial(recipe, scores, name=recipe_text(recipe))


def diagnoses(original: Table, methods: Iterable[Any]) -> tuple[Diagnosis, ...]:
    """What the rules of methods and measures miss in the table, where they use dominance."""
    warnings = (diagnose(original, rule) for rule in dict.fromkeys(m.rule for m in methods if hasattr(m, "rule")))
    return tuple(warning for warning in warnings if warning)
