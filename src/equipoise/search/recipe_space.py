"""Recipe space: the recipes of one candidate as points of a lattice, one ordered axis per parameter."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import product
from math import prod
from typing import Any

import numpy as np

from equipoise.data.cells import bits, count
from equipoise.data.levels import ORIGINAL
from equipoise.data.records import Records
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import ParameterError, RolesError
from equipoise.masks import Recode
from equipoise.methods.method import Coarsening, Mask
from equipoise.recipe.catalogue import build, find, form
from equipoise.recipe.recipe import MAX_RANGE_VALUES, Recipe, range_parts, spread
from equipoise.search._adaptive.coarsening_order import Alone, Partitions, Slot, partitions
from equipoise.trials.scorer import prefix_of

Point = tuple[int, ...]
Scale = tuple[Floats, bool]
"""Where the values of an axis stand, and whether in bits."""
MIN_RANGE_PARTS = 128
"""Parts a range is cut into at least: its parameter is as good as continuous."""
LOG_RANGE_FACTOR = 6.0
"""A range whose ends differ by this factor is walked in equal factors, not in equal steps."""
DEFAULT_RANGE_STEPS = 20
"""Values that a range without steps counts for when the size of its grid is asked."""
RANGE_KEYS = ({"from", "to"}, {"from", "to", "steps"})


@dataclass(frozen=True)
class MaskStep:
    """One mask of a recipe: the values of each parameter that may be turned, in order, and how the mask is made."""

    values: tuple[tuple[Any, ...], ...]
    make: Callable[..., Mask | None] = field(repr=False)
    coarse: int = 1
    """Combinations that an exhaustive grid would try."""

    def scales(self, records: Records) -> list[Scale]:
        """The scale of each parameter, the others in the middle."""
        middle = [values[len(values) // 2] for values in self.values]
        return [
            scale([self.make(*middle[:axis], value, *middle[axis + 1 :]) for value in values], values, records)
            for axis, values in enumerate(self.values)
        ]


@dataclass(frozen=True)
class Family:
    """Recipes by their place on a lattice.

    >>> records = eq.Records.of(pl.DataFrame({"age": [20, 75, 85, 95]}), eq.Roles("age"))
    >>> made = pooled([Recipe([eq.masks.TopCode("age", at)]) for at in (80, 70, 90)], records)[0]
    >>> made.sizes, made.recipe((0,)).masks[0].at, made.scales[0].round(2).tolist()
    ((3,), 70, [0.0, 0.58, 1.0])
    """

    sizes: Point
    make: Callable[[Point], Recipe | None] = field(repr=False)
    grid: int
    """Recipes that an exhaustive search would try."""
    scales: tuple[Floats, ...] = field(default=(), repr=False)
    """How far along each axis its places stand, in the unit cube."""
    columns: tuple[Partitions, ...] = field(default=(), repr=False)
    """What is kept apart of each column that is coarsened."""
    alone: Alone = field(default=Alone(1), repr=False)
    points: tuple[Point, ...] = field(default=(), repr=False)
    """The places that are taken, where not all are."""

    def recipe(self, point: Point) -> Recipe | None:
        """The recipe at a place; None where there is none, or where its mask cannot have these parameters."""
        try:
            return self.make(point)
        except ParameterError:
            return None

    @property
    def span(self) -> int:
        return len(self.points) or prod(self.sizes)


def described(candidates: Iterable[Any], records: Records, seed: int) -> tuple[Family, ...] | None:
    """The families of candidates as a policy file writes them; None where one is written in a way unknown here."""
    families = []
    for candidate in candidates:
        plain = {f.name: getattr(candidate, f.name) for f in fields(candidate)}
        if any(value for name, value in plain.items() if name not in ("coarsenings", "masks")):
            return None
        if plain["coarsenings"]:
            families.append(_lattice(records, seed))
        if plain["masks"]:
            steps = [_step(dict(table)) for table in plain["masks"]]
            if None in steps:
                return None
            families.append(_of([step for step in steps if step], seed, records))
    return tuple(families)


def _of(steps: Sequence[MaskStep], seed: int, records: Records) -> Family:
    sizes = tuple(len(values) for step in steps for values in step.values)

    def make(point: Point) -> Recipe:
        places = iter(point)
        masks = [step.make(*(values[next(places)] for values in step.values)) for step in steps]
        return Recipe(tuple(mask for mask in masks if mask is not None), seed)

    scales = [scale for step in steps for scale in step.scales(records)]
    columns = partitions(list(_slots(steps)), sizes, records)
    return Family(sizes, make, prod(step.coarse for step in steps), together(scales), columns, alone(columns, records))


def alone(columns: Sequence[Partitions], records: Records) -> Alone:
    return Alone.of(records, [column.column for column in columns]) if columns else Alone(1)


def _slots(steps: Sequence[MaskStep]) -> Iterator[Slot]:
    """The axes of each step, and its mask at places on them."""
    start = 0
    for step in steps:
        axes = tuple(range(start, start + len(step.values)))
        yield axes, lambda *at, step=step: step.make(*(v[i] for v, i in zip(step.values, at, strict=True)))
        start += len(step.values)


def _lattice(records: Records, seed: int) -> Family:
    """All combinations of hierarchy levels, none made before it is asked for."""
    trees = {key: records.roles.hierarchies[key] for key in records.roles.keys if key in records.roles.hierarchies}
    if not trees:
        raise RolesError("No key has a hierarchy, so there is nothing to coarsen: give hierarchies in the roles.")
    choices = [
        tuple(None if level.name == ORIGINAL else Recode(key, level.name) for level in tree.allowed)
        for key, tree in trees.items()
    ]
    return _of([MaskStep((masks,), lambda mask: mask, len(masks)) for masks in choices], seed, records)


def _step(table: dict[str, Any]) -> MaskStep | None:
    """A mask as a policy file writes it, with lists and ranges."""
    name = table.pop("use", None)
    if not isinstance(name, str):
        return None
    kinds = {f.name: f.kind for f in form(find(name, "mask"))}
    grids: dict[str, tuple[Any, ...]] = {}
    coarse = 1
    for key, value in table.items():
        if isinstance(value, Mapping) and set(value) in RANGE_KEYS:
            grids[key] = fine(value, kinds.get(key, "").startswith("int"))
            coarse *= min(len(grids[key]), range_parts(value, DEFAULT_RANGE_STEPS)[2])
        else:
            grids[key] = tuple(spread(value, "tuple" in kinds.get(key, "")))
            coarse *= len(grids[key])
    turned = [key for key, values in grids.items() if len(values) > 1]
    fixed = {key: values[0] for key, values in grids.items() if len(values) == 1}

    def make(*chosen: Any) -> Mask:
        return build(name, "mask", {**fixed, **dict(zip(turned, chosen, strict=True))})

    return MaskStep(tuple(grids[key] for key in turned), make, coarse)


def fine(ends: Mapping[str, Any], whole: bool) -> tuple[float, ...]:
    """The values of a range, so close that it is as good as continuous, and those of its grid among them.

    >>> fine({"from": 1, "to": 4}, True)
    (1, 2, 3, 4)
    >>> len(fine({"from": 0.1, "to": 0.5, "steps": 5}, False))
    129
    """
    low, high, steps = range_parts(ends)
    if whole:
        if abs(high - low) >= MAX_RANGE_VALUES:
            raise ParameterError(f"A range of whole numbers has at most {MAX_RANGE_VALUES:,} of them.")
        return tuple(range(int(np.ceil(min(low, high))), int(np.floor(max(low, high))) + 1))
    parts = max(1, steps - 1)
    return tuple(float(v) for v in np.linspace(low, high, parts * -(-MIN_RANGE_PARTS // parts) + 1))


def scale(masks: Sequence[Mask | None], values: Sequence[Any], records: Records) -> Scale:
    """Where the values of an axis stand: the bits a coarsened column has left, logarithms of wide ranges, or places.

    Scores are nearly straight in these, so few trials say much. Bits are of one column alone: no trial.
    """
    columns = {getattr(mask, "column", None) for mask in masks if mask is not None}
    if len(columns) == 1 and None not in columns and all(m is None or isinstance(m, Coarsening) for m in masks):
        cells = count(records, (str(columns.pop()),))
        coarsened = [
            cells if mask is None else mask.roll_up(cells) for mask in masks if isinstance(mask, Coarsening | None)
        ]
        return np.array([bits(table.n) for table in coarsened]), True
    numbers = all(isinstance(value, int | float) and value > 0 for value in values)
    if numbers and max(values) > LOG_RANGE_FACTOR * min(values):
        return np.log(np.array(values, dtype=np.float64)), False
    return np.array(values if numbers else range(len(values)), dtype=np.float64), False


def together(scales: Sequence[Scale]) -> tuple[Floats, ...]:
    """Scales in the unit cube: bits by one measure for all axes, others from end to end."""
    most = max((float(np.ptp(places)) for places, bits in scales if bits), default=0.0)
    return tuple(
        (places - places.min()) / ((most if bits else float(np.ptp(places))) or 1.0) for places, bits in scales
    )


def pooled(recipes: Sequence[Recipe], records: Records) -> tuple[Family, ...]:
    """Families read off recipes: those with the same masks on the same columns, some of them left out, make one."""
    shapes = [_shape(recipe) for recipe in recipes]
    largest = sorted(set(shapes), key=len, reverse=True)
    tops: list[tuple[Any, ...]] = []
    for shape in largest:
        if not any(_inside(shape, top) for top in tops):
            tops.append(shape)
    families = []
    for top in tops:
        mine = [(r, s) for r, s in zip(recipes, shapes, strict=True) if _inside(s, top)]
        own = {id(r) for r, _ in mine}
        families.append(_placed(mine, top, records))
        others = [(r, s) for r, s in zip(recipes, shapes, strict=True) if id(r) not in own]
        recipes, shapes = [r for r, _ in others], [s for _, s in others]
    return tuple(families)


def _shape(recipe: Recipe) -> tuple[Any, ...]:
    """The kind of each mask and the columns it is about; a second of the same counts as another."""
    slots: list[Any] = []
    for mask in recipe.masks:
        about = tuple(str(getattr(mask, name, None)) for name in ("column", "columns", "keys"))
        slot = (type(mask).__name__, *about)
        slots.append((*slot, sum(one[: len(slot)] == slot for one in slots)))
    return tuple(slots)


def _inside(shape: tuple[Any, ...], top: tuple[Any, ...]) -> bool:
    """Whether these slots are some of those, in their order."""
    rest = iter(top)
    return all(slot in rest for slot in shape)


def _placed(mine: Sequence[tuple[Recipe, tuple[Any, ...]]], top: tuple[Any, ...], records: Records) -> Family:
    """The lattice of these recipes: for each slot the fields that differ, left out counting as the first value."""
    slots = [dict(zip(shape, recipe.masks, strict=True)) for recipe, shape in mine]
    columns: list[list[int]] = []
    scales: list[Scale] = []
    mask_slots: list[Slot] = []
    for slot in top:
        masks = [row.get(slot) for row in slots]
        start = len(columns)
        for values in _turned(masks):
            ranks = _ranks(values)
            first = [ranks.index(place) for place in range(max(ranks) + 1)]
            scales.append(scale([masks[row] for row in first], [values[row] for row in first], records))
            columns.append(ranks)
        at = dict(zip(zip(*columns[start:], strict=True) if columns[start:] else [()], masks, strict=False))
        mask_slots.append((tuple(range(start, len(columns))), lambda *place, at=at: at.get(place)))
    points = [tuple(column[row] for column in columns) for row in range(len(mine))]
    placed: dict[Point, Recipe] = {}
    for point, (recipe, _) in zip(points, mine, strict=True):
        placed.setdefault(point, recipe)
    sizes = tuple(max(column) + 1 for column in columns)
    some = () if len(placed) == prod(sizes) else tuple(placed)
    column_partitions = partitions(mask_slots, sizes, records)
    return Family(
        sizes, placed.get, len(placed), together(scales), column_partitions, alone(column_partitions, records), some
    )


def _turned(masks: Sequence[Mask | None]) -> list[list[Any]]:
    """A column of values for each field that differs among the masks of a slot; None where there is no mask."""
    present = [mask for mask in masks if mask is not None]
    names = [f.name for f in fields(present[0]) if f.init]  # type: ignore[arg-type]
    values = {name: [None if m is None else prefix_of((getattr(m, name),)) for m in masks] for name in names}
    raw = {name: [None if m is None else getattr(m, name) for m in masks] for name in names}
    differ = [name for name in names if len({v for v, m in zip(values[name], masks, strict=True) if m is not None}) > 1]
    if not differ and len(present) < len(masks):
        differ = names[:1]
    return [raw[name] for name in differ]


def _ranks(column: Sequence[Any]) -> list[int]:
    """The place of each value: left out first, numbers by size, others as they first appear."""
    names = list(dict.fromkeys(prefix_of((value,)) for value in column))
    values = {prefix_of((value,)): value for value in column}
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values.values() if v is not None):
        names.sort(key=lambda name: (values[name] is not None, values[name] or 0.0))
    else:
        names.sort(key=lambda name: values[name] is not None)
    place = {name: i for i, name in enumerate(names)}
    return [place[prefix_of((value,))] for value in column]


def everywhere(family: Family) -> Iterable[Point]:
    """Every place of a family."""
    return family.points or product(*(range(size) for size in family.sizes))


def first_of(families: Sequence[Family]) -> Recipe:
    """The first recipe there is."""
    recipes = (family.recipe(point) for family in families for point in everywhere(family))
    return next(recipe for recipe in recipes if recipe is not None)
