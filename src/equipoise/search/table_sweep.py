"""Sweep over a table: suppression under several rules, rounding, cell keys and adjustment on one map."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from equipoise import tables
from equipoise.data.tables.table import Table
from equipoise.ground.errors import DataError, InfeasibleError, ParameterError
from equipoise.ground.progress import Progress
from equipoise.methods.method import Measure, Rule
from equipoise.methods.score import Scores
from equipoise.policies.dominance_check import Diagnosis, diagnose
from equipoise.policies.policy import Policy
from equipoise.recipe.catalogue import parse
from equipoise.recipe.recipe import Recipe, refuse_strangers
from equipoise.search.frontier import Frontier, frontier
from equipoise.trials.table_method_names import recipe_text
from equipoise.trials.table_runner import TableRunner
from equipoise.trials.trial import LeftOut, Trial, Trials


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
        tried = [{"method": t.words(), "scores": {s.name: s.value for s in t.scores}} for t in self.trials]
        return [*tried, *({"method": left.name, "left_out": left.reason} for left in self.trials.left_out)]


def standard(rule: Rule) -> tuple[Measure, ...]:
    """What tables are compared by: the risk under one rule, and what users lose; withheld cells count as lost."""
    return tables.Exposed(rule), tables.Withheld(), tables.Distance(), tables.KeptMargins(0.01)


def sweep_table(
    table: Table,
    recipes: Sequence[Recipe],
    measures: Sequence[Measure],
    *,
    draws: int = 1,
    progress: Progress | None = None,
    details: bool = False,
) -> Trials:
    """One trial per recipe, in order, named in short; what cannot be done to this table is left out with its reason."""
    refuse_strangers(recipes, measures)
    original_trial(table, measures)
    return some_of(attempted(table, recipes, measures, draws=draws, progress=progress, details=details))


def some_of(found: Trials) -> Trials:
    """The trials, unless there is none."""
    if not found:
        many, reason = len(found.left_out), found.left_out[0].reason
        raise InfeasibleError(f"None of {many:,} candidates can be made of this table. {reason}")
    return found


def attempted(
    table: Table,
    recipes: Sequence[Recipe],
    measures: Sequence[Measure],
    *,
    draws: int = 1,
    progress: Progress | None = None,
    details: bool = False,
) -> Trials:
    """What can be done to a table, and what cannot."""
    return every(TableRunner(table, measures, progress=progress, details=details), recipes, draws)


def every(runner: TableRunner, recipes: Sequence[Recipe], draws: int) -> Trials:
    """A trial of every recipe that can be made of the table."""
    runner.total = len(recipes)
    runner.tell({})
    found = runner.run(recipes, draws)
    return Trials((t for t in found if isinstance(t, Trial)), (t for t in found if isinstance(t, LeftOut)))


def original_trial(table: Table, measures: Sequence[Measure]) -> Trial:
    """The table as it is: the worst risk, nothing lost."""
    if "published" in table.more.columns:
        raise DataError("This table is protected already: give the table as it was made.")
    return Trial(Recipe(), Scores(m.measure(table, table).brief() for m in measures), name="original")


def asked_beside(compare: Sequence[Any], rule: Rule | None) -> tuple[Any, ...]:
    """The methods to compare with, before any data is read."""
    if compare and rule is None:
        raise ParameterError("Methods are compared under one rule: say which cells are sensitive.")
    found = tuple(parse(method, "mask") if isinstance(method, str) else method for method in compare)
    refuse_strangers([Recipe((method,), 0) for method in found], ())
    return found


def beside(made: Table, shown: Table, method: Any, rule: Rule, others: Sequence[Any], seed: int) -> TableComparison:
    """What is published of a table on one map with what other methods would have made of it, under the same rule."""
    measures = standard(rule)
    recipe = Recipe((method,), seed)
    scores = Scores(m.measure(shown, made).brief() for m in measures)
    chosen = Trial(recipe, scores, name=recipe_text(recipe))
    tried = attempted(made, [Recipe((other,), seed) for other in others], measures)
    return TableComparison(
        Trials((chosen, *tried), tried.left_out), original_trial(made, measures), chosen,
        diagnoses=diagnoses(made, others),
    )  # fmt: skip


def diagnoses(made: Table, methods: Iterable[Any]) -> tuple[Diagnosis, ...]:
    """What the rules of methods and measures miss in the table, where they use dominance."""
    found = (diagnose(made, rule) for rule in dict.fromkeys(m.rule for m in methods if hasattr(m, "rule")))
    return tuple(diagnosis for diagnosis in found if diagnosis)
