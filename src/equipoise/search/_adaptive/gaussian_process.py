"""Gaussian-process surrogate: mean and variance of a score at a point not tried yet."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.ground.arrays import Floats

Shape = tuple[Floats, float]
"""The length of each axis, and the nugget."""
LENGTH_SCALES = (0.12, 0.25, 0.5, 1.0, 2.0, 4.0)
"""Shares of an axis over which a score may bend."""
NUGGETS = (1e-5, 1e-3, 1e-2, 5e-2)
"""Shares of the variance that chance may have: how much of it is found with the lengths."""
FIT_ROUNDS = 2
MAX_FIT_POINTS = 80
"""Points that the shape is found from: the last ones are near what matters."""
MIN_NUGGET_POINTS = 5
"""Points above which noise can be separated from curvature."""
PRIOR_POINTS = 3.0
"""Points that stand for the belief that a score varies as much as the standard score does."""
MIN_LENGTH_POINTS = 2.5
"""A length times the points tried: few points say nothing about short bends."""


@dataclass(frozen=True)
class Surface:
    """A Gaussian process through tried points of the unit cube: a Matern 5/2 kernel plus a linear trend.

    With r the distance after dividing each axis by its length, k(r) = (1 + sqrt5 r + 5 r^2 / 3) exp(-sqrt5 r), plus the
    product of the centred points; lengths by the largest likelihood over a few values, axis by axis. Values are used
    as standard scores. Cost: O(n^3) for n tried points, O(n^2) for each point asked about.

    Source: Rasmussen and Williams (2006), *Gaussian Processes for Machine Learning*, eqs. 2.25-2.26, 4.17, 5.8.
    Misleads when a score jumps between neighbours: the surface is smooth.

    >>> points = np.array([[0.0], [0.5], [1.0]])
    >>> surface = Surface.through(points, np.array([0.0, 0.5, 1.0]))
    >>> mean, sd = surface.at(np.array([[0.25]]))
    >>> round(float(mean[0]), 2)
    0.25
    """

    points: Floats
    shape: Shape
    white: Floats
    """The values without what their neighbours say of them: independent and alike if the shape is right."""
    root: Floats
    centre: float
    spread: float

    @classmethod
    def through(
        cls, points: Floats, values: Floats, shape: Shape | None = None, groups: Sequence[Sequence[int]] = ()
    ) -> "Surface":
        """The surface; its `shape` where that was found before; axes of one of the `groups` share their length."""
        centre, spread = float(values.mean()), float(values.std()) or 1.0
        scaled = (values - centre) / spread
        fitted_shape = fitted(points, scaled, groups) if shape is None else shape
        root = _root(points, fitted_shape)
        return cls(points, fitted_shape, _solved(root, scaled), root, centre, spread)

    def at(self, points: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation at each point."""
        between = _kernel(self.points, points, self.shape[0])
        inside = _solved(self.root, between)
        own = 1.0 + ((points - 0.5) ** 2).sum(axis=1)
        variance = np.maximum(own - (inside**2).sum(axis=0), 1e-12) * height(self.white)
        return self.centre + self.spread * (inside.T @ self.white), self.spread * np.sqrt(variance)


def fitted(points: Floats, scaled: Floats, groups: Sequence[Sequence[int]] = ()) -> Shape:
    """The length of each axis, or group of axes, and the nugget with the largest likelihood, one after the other."""
    points, scaled = points[-MAX_FIT_POINTS:], scaled[-MAX_FIT_POINTS:]
    lengths, nugget = np.full(points.shape[1], 0.5), NUGGETS[0]
    allowed = [length for length in LENGTH_SCALES if length * len(points) > MIN_LENGTH_POINTS] or [LENGTH_SCALES[-1]]
    for _ in range(FIT_ROUNDS):
        for group in groups or [[axis] for axis in range(points.shape[1])]:
            tries = [np.where(np.isin(np.arange(len(lengths)), group), length, lengths) for length in allowed]
            lengths = max(tries, key=lambda trial: _likelihood(points, scaled, (trial, nugget)))
        if len(points) > MIN_NUGGET_POINTS:
            nugget = max(NUGGETS, key=lambda share: _likelihood(points, scaled, (lengths, share)))
    return lengths, nugget


def _likelihood(points: Floats, scaled: Floats, shape: Shape) -> float:
    """The log likelihood, up to a constant."""
    root = _root(points, shape)
    high = height(_solved(root, scaled))
    return float(-0.5 * (len(points) + PRIOR_POINTS) * np.log(high) - np.log(np.diag(root)).sum())


def height(white: Floats) -> float:
    """The variance by which the kernel is to be multiplied, the prior points counting as 1."""
    return float((white @ white + PRIOR_POINTS) / (len(white) + PRIOR_POINTS))


def _root(points: Floats, shape: Shape) -> Floats:
    """The Cholesky factor of the covariance of the points."""
    lengths, nugget = shape
    covariance = _kernel(points, points, lengths) + nugget * np.eye(len(points))
    return np.asarray(np.linalg.cholesky(covariance), np.float64)


def _solved(root: Floats, right: Floats, *, turned: bool = False) -> Floats:
    """The solution of a triangular system, or of the turned one."""
    from scipy.linalg import solve_triangular

    return np.asarray(solve_triangular(root, right, trans=int(turned), lower=True, check_finite=False), np.float64)


def _kernel(one: Floats, two: Floats, lengths: Floats) -> Floats:
    scaled_one, scaled_two = one / lengths, two / lengths
    square = (scaled_one**2).sum(axis=1)[:, None] + (scaled_two**2).sum(axis=1)[None, :] - 2 * scaled_one @ scaled_two.T
    far = np.sqrt(5 * np.maximum(square, 0.0))
    matern: Floats = (1 + far + far**2 / 3) * np.exp(-far)
    return matern + (one - 0.5) @ (two - 0.5).T
