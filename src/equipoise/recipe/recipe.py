"""Recipe: masks in order and one secret seed. The release can be rebuilt from it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import isfinite
from typing import Any, TypeVar

import numpy as np

from equipoise.data.cells import Cells
from equipoise.data.records import Records
from equipoise.data.tables.table import Table
from equipoise.ground.errors import ParameterError
from equipoise.ground.randomness import Draws, new_seed
from equipoise.methods.method import Coarsening, Mask, Measure, Rule, label, name_of
from equipoise.methods.parameters import as_float
from equipoise.recipe.catalogue import form, listed_family, typed

Data = TypeVar("Data", Records, Table)
"""What masks change: records, or a table."""
MAX_RANGE_VALUES = 100_000
"""Values of one range: more are no choice, and would fill the memory."""
UNSEEN = ("coarsen_weights", "drop_direct_identifiers", "renumber", "shuffle_order")
"""Masks that move nothing on a map."""


@dataclass(frozen=True)
class Recipe:
    """Masks in the order they run, and a seed that is drawn from the operating system unless given.

    >>> from equipoise.masks import TopCode
    >>> Recipe([TopCode("age", 90)])
    Recipe(masks=(TopCode(column='age', at=90, replace_by='mean'),))
    """

    masks: tuple[Mask, ...] = ()
    seed: int | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        steps = (self.masks,) if isinstance(self.masks, Mask) else tuple(self.masks)
        for step in steps:
            if not isinstance(step, Mask) or isinstance(step, type):
                raise ParameterError(f"A recipe holds masks; {type(step).__name__} is none.")
        object.__setattr__(self, "masks", steps)
        object.__setattr__(self, "seed", new_seed() if self.seed is None else self.seed)
        Draws(self._seed)

    @property
    def _seed(self) -> int:
        assert self.seed is not None
        return self.seed

    @property
    def coarsens(self) -> bool:
        """Every mask can act on cells alone, so no record need be touched to score it."""
        return all(isinstance(mask, Coarsening) for mask in self.masks)

    def run(self, records: Data, draw: int = 0) -> Data:
        """Apply the masks to records, or to a table; each `draw` is an independent one of the same recipe."""
        draws = Draws(self._seed).child(draw)
        for step, mask in enumerate(self.masks):
            records = mask.apply(records, draws.child(step))
        return records

    def roll_up(self, cells: Cells) -> Cells:
        for mask in self.masks:
            assert isinstance(mask, Coarsening)
            cells = mask.roll_up(cells)
        return cells

    @property
    def family(self) -> str:
        """The methods it uses, without their parameters: recipes of one family make a curve on the map."""
        used = dict.fromkeys(name_of(type(mask)) for mask in self.masks)
        return " + ".join(name.replace("_", " ") for name in used if name not in UNSEEN) or "original"

    def words(self) -> str:
        """What the recipe does, in one line."""
        return "; ".join(mask_words(mask) for mask in self.masks) or "the original file"


def mask_words(mask: Mask) -> str:
    words = getattr(mask, "words", None)
    if words is None:
        return label(mask) if isinstance(getattr(mask, "rule", None), Rule) else repr(mask)
    return str(words())


def grid(mask: type, **parameters: Any) -> tuple[Mask, ...]:
    """One mask for every combination of the parameters that are grids.

    A list is a grid (a list of lists for parameters that hold several values); `{"from": 0.01, "to": 0.5, "steps": 8}`
    is a range of evenly spaced values. A rule may be given as text: 'p-percent:10%'.

    >>> from equipoise.masks import TopCode
    >>> [m.at for m in grid(TopCode, column="age", at=[80, 90])]
    [80, 90]
    >>> [m.at for m in grid(TopCode, column="age", at={"from": 70, "to": 90, "steps": 3})]
    [70.0, 80.0, 90.0]
    """
    fields_by_name = {f.name: f for f in form(mask)}
    choices = {
        name: [
            _as_rule(v, fields_by_name, name)
            for v in spread(value, name in fields_by_name and "tuple" in fields_by_name[name].kind)
        ]
        for name, value in parameters.items()
    }
    return tuple(mask(**dict(zip(choices, values, strict=True))) for values in product(*choices.values()))


def _as_rule(value: Any, fields_by_name: Mapping[str, Any], name: str) -> Any:
    """A rule from its text; anything else as it is."""
    is_rule = isinstance(value, str) and name in fields_by_name and fields_by_name[name].type is Rule
    return typed(value, Rule, name) if is_rule else value


def spread(value: Any, plural: bool) -> Sequence[Any]:
    """The values a parameter is to take."""
    if isinstance(value, Mapping) and set(value) & {"from", "to"}:
        if set(value) != {"from", "to", "steps"}:
            raise ParameterError("A range has from, to and steps, and nothing else.")
        low, high, steps = range_parts(value)
        if low > high:
            raise ParameterError("from must not be above to.")
        return [float(v) for v in np.linspace(low, high, steps)]
    if isinstance(value, list) and (not plural or (value and isinstance(value[0], list))):
        if not value:
            raise ParameterError("An empty grid gives no recipe.")
        return value
    return [value]


def range_parts(ends: Mapping[str, Any], default_steps: int = 2) -> tuple[float, float, int]:
    """Both ends of a range, as numbers that floats can hold, and its steps."""
    low, high, steps = as_float(ends["from"]), as_float(ends["to"]), ends.get("steps", default_steps)
    if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= MAX_RANGE_VALUES:
        raise ParameterError(f"steps must be a whole number from 1 to {MAX_RANGE_VALUES:,}.")
    if not isfinite(high - low):
        raise ParameterError("from and to must be numbers, and not too large.")
    return low, high, steps


def recipes(*steps: Mask | Iterable[Mask | None], seed: int | None = None) -> tuple[Recipe, ...]:
    """Every combination of the alternatives of each step; None leaves a step out.

    >>> from equipoise.masks import TopCode
    >>> len(recipes(grid(TopCode, column="age", at=[80, 90]), [None, TopCode("salary", 1e5)]))
    4
    """
    choices = [(step,) if isinstance(step, Mask) else tuple(step) for step in steps]
    return tuple(Recipe(tuple(m for m in chosen if m is not None), seed) for chosen in product(*choices))


def refuse_strangers(recipes: Sequence[Recipe], measures: Sequence[Measure]) -> None:
    """Refuse what is for records: it would run, and mean nothing."""
    for kind in dict.fromkeys(type(mask) for recipe in recipes for mask in recipe.masks):
        if listed_family(kind) == "masks":
            raise ParameterError(f"{kind.__name__} changes records, not tables: take a method of tables.")
    for kind in dict.fromkeys(map(type, measures)):
        if listed_family(kind) in ("risk", "attacks", "utility"):
            raise ParameterError(f"{kind.__name__} measures records, not tables: take a measure of tables.")


def refuse_tables(recipes: Sequence[Recipe]) -> None:
    """Refuse methods for tables where there are records."""
    for kind in dict.fromkeys(type(mask) for recipe in recipes for mask in recipe.masks):
        if listed_family(kind) == "tables":
            raise ParameterError(f"{kind.__name__} changes tables, not records: make one with eq.table(records, by).")
