"""Scorer of recipes on one file, with a cache of what the next recipe can reuse."""

from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import itemgetter
from typing import Any, cast

import narwhals as nw
from cachetools import LRUCache

from equipoise.data.cells import Cells, count
from equipoise.data.records import Records
from equipoise.ground import system
from equipoise.ground.randomness import Draws
from equipoise.methods.method import Coarsening, Mask, Measure, OnCells
from equipoise.methods.score import Scores
from equipoise.recipe.recipe import Recipe

By = tuple[str, ...]
MAX_CACHE_BYTES = 512 << 20
"""Bytes of released records and cells that are kept for recipes to come, at most; an eighth of free memory if less."""


def prefix_of(masks: Sequence[Mask]) -> Hashable:
    """Masks by value, so that equal ones are found again."""
    try:
        hash(tuple(masks))
        return tuple(masks)
    except TypeError:
        return tuple(repr(mask) for mask in masks)


class Bench:
    """The file, the measures, and what recipes share: cells of a run of coarsenings, records after the first masks.

    A recipe that only coarsens, scored by measures that need only cells, is rolled up from the finest cells and never
    touches records. Of the others, the records after each mask but the last are kept, and found again by the next
    recipe that starts with the same masks (and, where one of them draws, has the same seed and draw).
    """

    def __init__(self, original: Records, measures: Sequence[Measure], room: int | None = None) -> None:
        self.original = original
        self.measures = tuple(measures)
        self.only_cells = all(isinstance(m, OnCells) for m in measures)
        self.scales = [(m, m.by(original.roles)) for m in measures if isinstance(m, OnCells)]
        most = min(MAX_CACHE_BYTES, system.free_memory() // 8) if room is None else room
        self.cache: LRUCache[Hashable, tuple[Any, int]] = LRUCache(most, getsizeof=itemgetter(1))
        self.first: dict[By, Cells] = {}

    def on_cells(self, recipe: Recipe) -> bool:
        return self.only_cells and recipe.coarsens

    def score(self, recipe: Recipe, draw: int = 0) -> Scores:
        """The scores of one draw of a recipe."""
        if self.on_cells(recipe):
            cells = self.cells(cast(tuple[Coarsening, ...], recipe.masks))
            return Scores(m.measure(cells[by], self.first[by]) for m, by in self.scales)
        released = self.released(recipe, draw)
        return Scores(m.measure(released, self.original) for m in self.measures)

    def recall(self, name: Hashable) -> Any:
        """What is kept under a name, or None."""
        return self.cache.get(name, (None, 0))[0]

    def keep(self, name: Hashable, value: Any, size: int) -> None:
        """Keep a value of so many bytes, unless it is larger than the cache; what was used longest ago goes first."""
        with suppress(ValueError):
            self.cache[name] = (value, size)

    def finest(self) -> dict[By, Cells]:
        if not self.first:
            columns_of_measures = {by for _, by in self.scales}
            for columns in sorted(columns_of_measures, key=len, reverse=True):
                count(self.original, columns)
            self.first = {columns: count(self.original, columns) for columns in columns_of_measures}
        return self.first

    def cells(self, masks: Sequence[Coarsening]) -> dict[By, Cells]:
        """The cells after these masks, from the longest run of them that is kept."""
        shared, cached = len(masks), None
        while shared and (cached := self.recall(("cells", prefix_of(masks[:shared])))) is None:
            shared -= 1
        cells: dict[By, Cells] = cached or self.finest()
        for place in range(shared, len(masks)):
            cells = {by: masks[place].roll_up(table) for by, table in cells.items()}
            size = sum(_cell_bytes(table) for table in cells.values())
            self.keep(("cells", prefix_of(masks[: place + 1])), cells, size)
        return cells

    def released(self, recipe: Recipe, draw: int) -> Records:
        """What `recipe.run` gives, from the longest run of first masks that is kept."""
        assert recipe.seed is not None
        masks, draws = recipe.masks, Draws(recipe.seed).child(draw)
        if len(masks) < 2 or not self.original.frame.implementation.is_polars():
            return recipe.run(self.original, draw)
        names = [_name(recipe, place, draw) for place in range(1, len(masks))]
        shared, cached = len(names), None
        while shared and (cached := self.recall(names[shared - 1])) is None:
            shared -= 1
        records: Records = cached or self.original
        for place in range(shared, len(masks)):
            records = masks[place].apply(records, draws.child(place))
            records = self._keep_records(names[place], records) if place < len(names) else records
        return records

    def _keep_records(self, name: Hashable, records: Records) -> Records:
        table = records.collect()
        records = replace(records, frame=nw.from_native(table.lazy()))
        self.keep(name, records, int(table.estimated_size()))
        return records


def _name(recipe: Recipe, length: int, draw: int) -> Hashable:
    """The name of the records after the first masks: the seed is part of it only where one of them may draw."""
    masks = recipe.masks[:length]
    sure = all(isinstance(mask, Coarsening) for mask in masks)
    return ("records", prefix_of(masks), None if sure else (recipe.seed, draw))


def _cell_bytes(cells: Cells) -> int:
    cube = cells.cube
    arrays = (*cube.codes, cube.n, cube.total)
    return sum(int(array.nbytes) for array in arrays) + int(cells.more.estimated_size())
