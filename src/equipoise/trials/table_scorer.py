"""Scorer of tables: what the methods of a recipe make of one table, measured."""

from collections.abc import Sequence

from equipoise.data.tables.table import Table
from equipoise.methods.method import Measure
from equipoise.methods.score import Scores
from equipoise.recipe.recipe import Recipe


class TableScorer:
    """One table and its measures; nothing is shared between recipes, and no recipe is scored on cells of records."""

    def __init__(self, original: Table, measures: Sequence[Measure]) -> None:
        self.original, self.measures = original, tuple(measures)

    def on_cells(self, recipe: Recipe) -> bool:
        return False

    def score(self, recipe: Recipe, draw: int = 0) -> Scores:
        """The scores of one draw of a recipe."""
        released = recipe.run(self.original, draw)
        return Scores(measure.measure(released, self.original) for measure in self.measures)


def drawn_once(recipe: Recipe) -> bool:
    """Whether every draw of a recipe gives the same, of records or of a table."""
    return recipe.coarsens or all(not getattr(mask, "random", True) for mask in recipe.masks)
