"""Runner of tables: tries methods on one table, none twice, each written down when it is done."""

import time
from collections.abc import Hashable, Sequence
from dataclasses import replace

from equipoise.data.tables.table import Table
from equipoise.ground.errors import DataError, InfeasibleError
from equipoise.ground.progress import Progress, report
from equipoise.methods.method import Measure
from equipoise.methods.score import Scores
from equipoise.provenance.journal import Journal
from equipoise.recipe.recipe import Recipe
from equipoise.tables import CellKey, Suppress
from equipoise.trials.scorer import prefix_of
from equipoise.trials.table_method_names import recipe_text
from equipoise.trials.time_left import Pace, tallied
from equipoise.trials.trial import LeftOut, Trial, over_draws

SURE = (Suppress, CellKey)
"""Methods that draw nothing themselves: the keys of cell keys come with the table."""
WHAT = "trying methods"


def sure(recipe: Recipe) -> bool:
    """Whether every draw of a recipe gives the same table."""
    return all(isinstance(mask, SURE) for mask in recipe.masks)


class TableRunner:
    """Scores recipes on one table, from the journal where it knows them; what cannot be done to it is left out.

    Suppressions may take minutes each, so every draw is written down before the next begins.
    """

    def __init__(
        self,
        table: Table,
        measures: Sequence[Measure],
        *,
        journal: Journal | None = None,
        progress: Progress | None = None,
        details: bool = False,
    ) -> None:
        self.table, self.measures = table, tuple(measures)
        self.journal, self.progress, self.details = journal, progress, details
        self.pace = Pace()
        self.done, self.total, self.seconds = 0, 0, 0.0
        self.known: dict[Hashable, Scores] = {}

    def run(self, recipes: Sequence[Recipe], draws: int = 1, *, counted: bool = True) -> list[Trial | LeftOut]:
        """A trial for each recipe, in order, named in short."""
        found: list[Trial | LeftOut] = []
        waiting = tallied(recipe.family for recipe in recipes)
        for recipe in recipes:
            found.append(self._tried(recipe, 1 if sure(recipe) else draws))
            waiting[recipe.family] -= 1
            self.done += counted
            self.tell(waiting)
        return found

    def tell(self, waiting: dict[str, int]) -> None:
        """Report how far it is; more may be waiting than this batch, up to the total."""
        beyond = self.total - self.done - sum(waiting.values())
        left = self.pace.words({**waiting, "": beyond} if beyond > 0 else waiting)
        report(self.progress, min(self.done, self.total), self.total, f"{WHAT}, {left}" if left else WHAT)

    def _tried(self, recipe: Recipe, draws: int) -> Trial | LeftOut:
        try:
            trial = over_draws(recipe, [self._score(recipe, draw) for draw in range(draws)])
        except (InfeasibleError, DataError) as problem:
            return LeftOut(recipe_text(recipe), str(problem))
        return replace(trial if self.details else trial.brief(), name=recipe_text(recipe))

    def _score(self, recipe: Recipe, draw: int) -> Scores:
        """The scores of one draw: known, in the journal, or made here."""
        name = (prefix_of(recipe.masks), recipe.seed, draw)
        if name not in self.known:
            self.known[name] = self._recalled(recipe, draw) or self._made(recipe, draw)
        return self.known[name]

    def _recalled(self, recipe: Recipe, draw: int) -> Scores | None:
        """What the journal knows; it cost what it cost when it was made."""
        found = self.journal.get(recipe, draw) if self.journal and not self.details else None
        if found is not None and self.journal is not None:
            self.seconds += self.journal.seconds(recipe, draw)
        return found

    def _made(self, recipe: Recipe, draw: int) -> Scores:
        start = time.perf_counter()
        shown = recipe.run(self.table, draw)
        scores = Scores(measure.measure(shown, self.table) for measure in self.measures)
        took = time.perf_counter() - start
        self.seconds += took
        self.pace.took(recipe.family, took)
        if self.journal:
            self.journal.add(recipe, draw, Scores(score.brief() for score in scores), took)
        return scores
