"""State of the adaptive search in one family of recipes: trials so far, and places left to try."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from equipoise.ground.arrays import Floats
from equipoise.search._adaptive.gaussian_process import Shape, Surface
from equipoise.search.recipe_space import Family, Point
from equipoise.trials.trial import LeftOut, Trial

CHANCE_SHARE, SAME_SHARE = 0.05, 1e-9
"""Shares of the range: what may be chance, and what counts as equal."""
REFIT_GROWTH = 1.3
"""The shape of a surface is found again when it has so many times the points."""


@dataclass
class Plot:
    """A family and what is known of it."""

    family: Family
    tried: dict[Point, Trial | LeftOut | None] = field(default_factory=dict)
    shapes: dict[str, tuple[int, Shape]] = field(default_factory=dict)

    def unit(self, points: Sequence[Point]) -> Floats:
        """Places as points of the unit cube.

        Columns that are coarsened stand by the bits left of them, by one measure; the joint bits, which scores go by
        most, are an axis more.
        """
        places = np.array(points, dtype=np.int64).reshape(len(points), -1)
        columns = self.family.columns
        coarsened_axes = {axis for column in columns for axis in column.axes}
        axes = [scale[places[:, axis]] for axis, scale in enumerate(self.family.scales) if axis not in coarsened_axes]
        if columns:
            most = max(float(np.ptp(column.bits)) for column in columns) or 1.0
            bits = [(column.bits[column.at(points)] - column.bits.min()) / most for column in columns]
            whole = sum(float(np.ptp(column.bits)) for column in columns) / most or 1.0
            axes += [*bits, np.sum(bits, axis=0) / whole, self.family.alone.at(columns, points)]
        return np.stack(axes, axis=1) if axes else np.zeros((len(points), 0))

    @property
    def groups(self) -> list[list[int]]:
        """The axes of `unit`, those of columns that are coarsened together: scores bend along them alike."""
        columns = len(self.family.columns)
        others = len(self.family.sizes) - sum(len(column.axes) for column in self.family.columns)
        single_axes = [[axis] for axis in range(others)]
        last = others + columns
        return [*single_axes, list(range(others, last)), [last], [last + 1]] if columns else single_axes

    def between(self, one: Point, two: Point) -> Point:
        """The place half way between two."""
        ends = zip(one, two, self.family.scales, strict=True)
        return tuple(middle(scale, min(a, b), max(a, b)) for a, b, scale in ends)

    @property
    def coarsens(self) -> bool:
        """Whether its recipes differ in what they keep apart of single columns, and in nothing else."""
        axes = sum(len(column.axes) for column in self.family.columns)
        return axes == len(self.family.sizes) and all(trial.recipe.coarsens for trial in self.scored.values())

    def finer(self, points: Sequence[Point], others: Sequence[Point], turned: bool = False) -> NDArray[np.bool_]:
        """Whether each place keeps apart all that each of the others does; the other way round when turned."""
        finer = np.ones((len(points), len(others)), dtype=np.bool_)
        for column in self.family.columns if points and others else ():
            finer &= column.coarser(points, others) if turned else column.finer(points, others)
        return finer

    def beyond(self, points: Sequence[Point], values: Floats, bad: NDArray[np.bool_], fine: bool) -> NDArray[np.bool_]:
        """Places that are at least as bad as a bad trial, by the order of coarsenings or by the trials' directions.

        Where a family only coarsens, values grow with all that is kept apart (`fine`) or fall with it, unless two
        trials show that they do not.
        """
        scored_points = list(self.scored)
        if self.coarsens:
            above = self.finer(scored_points, scored_points, turned=not fine)
            if not (above & (values[:, None] < values[None, :] - SAME_SHARE)).any():
                bad_points = [point for point, wrong in zip(scored_points, bad, strict=True) if wrong]
                return np.asarray(self.finer(points, bad_points, turned=not fine).any(axis=1), np.bool_)
        return beyond(self.unit(points), self.unit(scored_points), values, bad)

    @property
    def scored(self) -> dict[Point, Trial]:
        return {point: trial for point, trial in self.tried.items() if isinstance(trial, Trial)}

    @property
    def full(self) -> bool:
        return len(self.tried) >= self.family.span

    def surface(self, name: str, points: Sequence[Point], values: Floats) -> Surface:
        """The surface of one score, with the shape found before while there are few new points.

        Places that are being tried count as what the surface says of them, so that a batch does not crowd.
        """
        had, shape = self.shapes.get(name, (0, None))
        fresh = shape is None or len(points) > REFIT_GROWTH * had
        surface = Surface.through(self.unit(points), values, None if fresh else shape, self.groups)
        if fresh:
            self.shapes[name] = (len(points), surface.shape)
        waiting = [point for point, trial in self.tried.items() if trial is None]
        if not waiting:
            return surface
        all_values = np.concatenate([values, surface.at(self.unit(waiting))[0]])
        return Surface.through(self.unit([*points, *waiting]), all_values, surface.shape)


def corners(family: Family) -> list[Point]:
    """The middle, all lowest, all highest, then each axis at its ends with the others in the middle."""
    sizes = family.sizes
    centre = tuple(middle(scale, 0, size - 1) for scale, size in zip(family.scales, sizes, strict=True))
    points = [centre, tuple(0 for _ in sizes), tuple(size - 1 for size in sizes)]
    for axis, size in enumerate(sizes) if len(sizes) > 1 else ():
        points += [(*centre[:axis], end, *centre[axis + 1 :]) for end in (0, size - 1)]
    places = set(family.points)
    allowed = [point for point in dict.fromkeys(points) if not places or point in places]
    return allowed or list(family.points[:3])


def middle(scale: Floats, low: int, high: int) -> int:
    """The place nearest to half way between two, by the scale, and between them where there is one."""
    if high - low < 2:
        return low
    inner = scale[low + 1 : high]
    return low + 1 + int(np.argmin(np.abs(inner - (scale[low] + scale[high]) / 2)))


def near(point: Point, sizes: Floats) -> Iterator[Point]:
    """Places one step, and a quarter of an axis, away along each axis."""
    for axis, size in enumerate(sizes):
        for step in {1, max(1, int(size) // 16), max(1, int(size) // 4)}:
            for place in (point[axis] - step, point[axis] + step):
                if 0 <= place < size:
                    yield (*point[:axis], int(place), *point[axis + 1 :])


def beyond(points: Floats, scored: Floats, values: Floats, bad: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Points that lie beyond a bad trial on every axis, in the direction in which the values grow.

    Only where every pair of trials that can be compared agrees on the directions, up to chance (a twentieth of the
    range); else none. O(points x trials).

    >>> tried, values = np.array([[0.0], [0.5], [1.0]]), np.array([1.0, 2.0, 3.0])
    >>> beyond(np.array([[0.2], [0.7]]), tried, values, values >= 2).tolist()
    [False, True]
    """
    none = np.zeros(len(points), dtype=np.bool_)
    if not bad.any() or len(scored) <= scored.shape[1]:
        return none
    slopes = np.linalg.lstsq(np.column_stack([scored, np.ones(len(scored))]), values, rcond=None)[0][:-1]
    turned, ahead = scored * np.sign(slopes), points * np.sign(slopes)
    over = (turned[:, None, :] >= turned[None, :, :]).all(axis=2)
    if (over & (values[:, None] < values[None, :] - CHANCE_SHARE * np.ptp(values))).any():
        return none
    return (ahead[:, None, :] >= turned[bad][None, :, :]).all(axis=2).any(axis=1)
