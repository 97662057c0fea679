"""Scorer of recipes on one file, with a cache of what the next recipe can reuse."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from operator import itemgetter
from typing import Any, cast

import narwhals as nw
from cachetools import LRUCache

from equipoise.data.cells import Cells, count
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.ground import system
from equipoise.ground.randomness import Draws
from equipoise.methods.method import Coarsening, Mask, Measure, OnCells, name_of
from equipoise.methods.score import Score, Scores
from equipoise.recipe.recipe import Recipe
from equipoise.risk import RevealingColumns

By = tuple[str, ...]
WEIGHTS_MASK = "coarsen_weights"
INDEPENDENT_MASKS = (WEIGHTS_MASK, "microaggregate", "noise", "rank_swap")
"""Masks whose fields name every column that they read or change."""
COLUMN_FIELDS = ("column", "columns", "strata", "keep")
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

    What needs only cells of a recipe that only coarsens is rolled up from the finest cells and never touches records;
    one that also changes other columns than those it coarsens is rolled up from the finest cells of
    the records so changed, once for all that change them alike. Of the others, the records after each mask but the last
    are kept, and found again by the next recipe that starts with the same masks (and, where one of them draws, has the
    same seed and draw).
    """

    def __init__(self, original: Records, measures: Sequence[Measure], room: int | None = None) -> None:
        self.original = original
        self.measures = tuple(measures)
        self.scales = [(m, m.by(original.roles)) for m in measures if isinstance(m, OnCells)]
        most = min(MAX_CACHE_BYTES, system.free_memory() // 8) if room is None else room
        self.cache: LRUCache[Hashable, tuple[Any, int]] = LRUCache(most, getsizeof=itemgetter(1))
        self.first: dict[By, Cells] = {}

    def on_cells(self, recipe: Recipe) -> bool:
        return bool(self.scales) and _apart(recipe, self.original.roles)

    def score(self, recipe: Recipe, draw: int = 0) -> Scores:
        """The scores of one draw of a recipe."""
        if self.on_cells(recipe):
            cells, finest = self.cells(recipe, draw), self.finest()
            by_cells = {id(m): m.measure(cells[by], finest[by]) for m, by in self.scales}
            once = cache(lambda: self.released(recipe, draw).held())
            return Scores(by_cells.get(id(m)) or self._on_records(m, once, recipe, draw) for m in self.measures)
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

    def cells(self, recipe: Recipe, draw: int = 0) -> dict[By, Cells]:
        """The cells after the masks of a recipe, from the longest run of coarsenings that is kept."""
        masks = [mask for mask in recipe.masks if isinstance(mask, Coarsening)]
        aside, start = self._aside(recipe, draw)
        names = [("cells", aside, prefix_of(masks[:many])) for many in range(len(masks) + 1)]
        shared, cached = len(masks), None
        while shared and (cached := self.recall(names[shared])) is None:
            shared -= 1
        cells: dict[By, Cells] = cached or start()
        for place in range(shared, len(masks)):
            cells = {by: masks[place].roll_up(table) for by, table in cells.items()}
            self.keep(names[place + 1], cells, sum(map(_cell_bytes, cells.values())))
        return cells

    def _on_records(self, measure: Measure, released: Callable[[], Records], recipe: Recipe, draw: int) -> Score:
        """A score that needs records, of a recipe whose other scores are those of cells."""
        if isinstance(measure, RevealingColumns):
            return self._beside_keys(measure, recipe, draw)
        return measure.measure(released(), self.original)

    def _beside_keys(self, measure: Measure, recipe: Recipe, draw: int) -> Score:
        """A score of other columns than the keys, once for all recipes that change them alike.

        Only coarsenings of keys are left out: what is done within groups of a key changes other columns too.
        """
        roles = self.original.roles
        coarsened = {
            p for p, m in enumerate(recipe.masks) if isinstance(m, Coarsening) and {*roles.keys} & _columns(m, roles)
        }
        masks = {p: mask for p, mask in enumerate(recipe.masks) if p not in coarsened}
        name = ("score", measure, prefix_of([*masks.values()]), *masks, recipe.seed, draw)
        if (cached := self.recall(name)) is None:
            cached = measure.measure(self._changed(masks, recipe, draw), self.original)
            self.keep(name, cached, 1)
        return cast(Score, cached)

    def _changed(self, masks: Mapping[int, Mask], recipe: Recipe, draw: int) -> Records:
        assert recipe.seed is not None
        records, draws = self.original, Draws(recipe.seed).child(draw)
        for place, mask in masks.items():
            records = mask.apply(records, draws.child(place))
        return records

    def _aside(self, recipe: Recipe, draw: int) -> tuple[Hashable, Callable[[], dict[By, Cells]]]:
        """The name of the masks that change columns beside the coarsened ones, and the finest cells after them."""
        counted = {column for _, by in self.scales for column in by} | {self.original.roles.weight}
        roles = self.original.roles
        others = {
            place: mask
            for place, mask in enumerate(recipe.masks)
            if not isinstance(mask, Coarsening) and counted & _columns(mask, roles)
        }
        name = (prefix_of([*others.values()]), *others, recipe.seed, draw) if others else None
        return name, partial(self._counted, others, recipe, draw, name) if others else self.finest

    def _counted(self, masks: Mapping[int, Mask], recipe: Recipe, draw: int, name: Hashable) -> dict[By, Cells]:
        if (cached := self.recall(("finest", name))) is not None:
            return cast(dict[By, Cells], cached)
        records = self._changed(masks, recipe, draw)
        cells = {by: count(records, by) for _, by in self.scales}
        self.keep(("finest", name), cells, sum(map(_cell_bytes, cells.values())))
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


def _apart(recipe: Recipe, roles: Roles) -> bool:
    """Whether every mask that does not coarsen keeps to columns that no coarsening changes: any order will do."""
    others = [mask for mask in recipe.masks if not isinstance(mask, Coarsening)]
    coarsened = {c for mask in recipe.masks if isinstance(mask, Coarsening) for c in _columns(mask, roles)}
    return all(name_of(type(mask)) in INDEPENDENT_MASKS and not coarsened & _columns(mask, roles) for mask in others)


def _columns(mask: Mask, roles: Roles) -> set[str]:
    """The columns that a mask reads or changes, as its fields name them."""
    fields = (getattr(mask, name, None) for name in COLUMN_FIELDS)
    columns = {c for field in fields if field for c in ((field,) if isinstance(field, str) else field)}
    return columns | ({roles.weight} if name_of(type(mask)) == WEIGHTS_MASK and roles.weight else set())


def _name(recipe: Recipe, length: int, draw: int) -> Hashable:
    """The name of the records after the first masks: the seed is part of it only where one of them may draw."""
    masks = recipe.masks[:length]
    sure = all(isinstance(mask, Coarsening) for mask in masks)
    return ("records", prefix_of(masks), None if sure else (recipe.seed, draw))


def _cell_bytes(cells: Cells) -> int:
    cube = cells.cube
    arrays = (*cube.codes, cube.n, cube.total)
    return sum(int(array.nbytes) for array in arrays) + int(cells.more.estimated_size())
