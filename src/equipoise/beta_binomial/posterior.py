"""Posterior of the population count of each cell: Y - y | y ~ BetaBinomial(N - n, alpha + y, beta + n - y).

Source: Zaslavsky and Horton (1998), section 2. Every number here is an expectation under that law.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from equipoise.beta_binomial.expectations import expectations
from equipoise.beta_binomial.expected_decay import log_decay
from equipoise.beta_binomial.law import cdf, collapse, log_pmf
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError, ParameterError

MAX_SUMMED_UNITS = 128
"""Up to this many unsampled units E exp(-rate Y) is a plain sum, exact to the last digits."""
NEWTON_STEPS = 8
"""Newton steps for the ends of an interval, before bisection."""

Function = Callable[[Any, Any, Any, Any], Any]
"""A loss as a function of (y, Y, n, N)."""


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """Posterior law of Y in each cell, given y of n sampled units and N in total: arrays of one length.

    `a` and `b` are alpha + y and beta + n - y, or with unequal weights alpha + y_eff and beta + n_eff - y_eff: the
    information of a weighted sample is that of fewer records, while the units not sampled remain N - n. That number is
    rounded to a whole one. Equal cells are computed once.
    Misleads when domains differ in more than the prior knows, or the sample within a domain is not random.

    >>> one = posterior(1, 3, 8, 1.0, 10.0)
    >>> one.chance(one.y + 0).round(3).tolist(), float(one.mean[0].round(4))
    ([0.51], 1.7143)
    """

    y: Floats
    n: Floats
    N: Floats
    a: Floats
    b: Floats

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def rest(self) -> Floats:
        """Units of the domain that were not sampled."""
        return np.rint(self.N - self.n)

    @cached_property
    def mean(self) -> Floats:
        """E Y = y + (N - n) a / (a + b)."""
        return self.y + self.rest * (self.a / (self.a + self.b))

    @cached_property
    def variance(self) -> Floats:
        p, size = self.a / (self.a + self.b), self.a + self.b
        return self.rest * p * (self.b / size) * (size + self.rest) / (size + 1)

    @cached_property
    def kinds(self) -> "tuple[Posterior, Integers]":
        """The distinct cells, and the number of each cell among them."""
        if not len(self):
            return self, np.zeros(0, dtype=np.int64)
        first, code, _ = collapse(self.y, self.n, self.N, self.a, self.b)
        return self.take(first), code

    def take(self, rows: Integers) -> "Posterior":
        return Posterior(self.y[rows], self.n[rows], self.N[rows], self.a[rows], self.b[rows])

    def chance(self, value: Floats | float) -> Floats:
        """P(Y = value) in each cell."""
        t = np.rint(np.broadcast_to(np.asarray(value, float), self.y.shape) - self.y)
        inside = (t >= 0) & (t <= self.rest)
        logs = log_pmf(np.where(inside, t, 0.0), self.rest, self.a, self.b)
        return np.where(inside, np.exp(logs), 0.0)

    def at_most(self, value: Floats | float) -> Floats:
        """P(Y <= value) in each cell."""
        t = np.floor(np.broadcast_to(np.asarray(value, float), self.y.shape) - self.y)
        return cdf(t, self.rest, self.a, self.b)

    def decay(self, rate: float) -> Floats:
        """E exp(-rate Y) in each cell: a sum of at most 129 terms, else one integral over theta (1e-9, relative)."""
        few, code = self.kinds
        logs = np.zeros(len(few))
        short = few.rest <= MAX_SUMMED_UNITS
        logs[~short] = log_decay(few.rest[~short], few.a[~short], few.b[~short], rate)
        sums = expectations(lambda rows, t: np.exp(-rate * t), few.rest[short], few.a[short], few.b[short])
        values = np.exp(-rate * few.y + logs)
        values[short] = np.exp(-rate * few.y[short]) * sums
        return values[code]

    def expect(self, function: Function, *, smooth: bool = False) -> Floats:
        """E function(y, Y, n, N) in each cell: exact sums, long ones by quadrature (see `expectations`)."""
        few, code = self.kinds

        def term(rows: Integers, t: Floats) -> Floats:
            at = few.take(rows)
            return evaluate_loss(function, at.y[:, None], at.y[:, None] + t, at.n[:, None], at.N[:, None])

        return expectations(term, few.rest, few.a, few.b, smooth=smooth)[code]

    def interval(self, mass: float = 0.95) -> tuple[Floats, Floats, Floats]:
        """Equal-tailed credible interval of Y, about (1 - mass)/2 cut off at each side, and its exact mass.

        The ends are the smallest Y whose cumulative probability reaches (1 - mass)/2 and (1 + mass)/2; Y is discrete,
        so the mass between them, both included, differs from `mass` and is given. Cost: O(N - n) for each kind of cell
        up to 1,024, else about twenty incomplete integrals.
        """
        if not 0 < mass < 1:
            raise ParameterError("The mass of an interval must be above 0 and below 1.")
        few, code = self.kinds
        low, high = (few._quantile(tail) for tail in ((1 - mass) / 2, (1 + mass) / 2))
        inside = cdf(high, few.rest, few.a, few.b) - cdf(low - 1, few.rest, few.a, few.b)
        return (few.y + low)[code], (few.y + high)[code], np.clip(inside, 0.0, 1.0)[code]

    def _quantile(self, tail: float) -> Floats:
        """The smallest t with P(T <= t) >= tail, by Newton steps on log scales, bracketed by bisection."""
        from scipy.special import betaincinv

        low, high = np.full(len(self), -1.0), self.rest.copy()
        at = np.clip(np.floor(betaincinv(self.a, self.b, tail) * self.rest), 0.0, high)
        live = np.flatnonzero(high > 0)
        for step in range(80):
            if not len(live):
                break
            cells = self.take(live)
            below = cdf(at[live], cells.rest, cells.a, cells.b)
            chance = np.exp(log_pmf(at[live], cells.rest, cells.a, cells.b))
            reached, first = below >= tail, below - chance < tail
            high[live[reached]] = at[live[reached]]
            low[live[~reached]] = at[live[~reached]]
            low[live[reached & first]] = at[live[reached & first]] - 1
            middle = (low + high)[live] / 2
            guess = _newton(tail, at[live], cells.rest, below, chance) if step < NEWTON_STEPS else middle
            live, guess = live[high[live] - low[live] > 1], guess[high[live] - low[live] > 1]
            at[live] = np.clip(np.floor(guess), low[live] + 1, high[live] - 1)
        return high


def _newton(tail: float, t: Floats, m: Floats, below: Floats, chance: Floats) -> Floats:
    """Newton step towards P(T <= t) = tail, with the power law of the nearer end through the current point."""
    upper = tail > 0.5
    side, goal, has = (m - t, 1 - tail, 1 - below) if upper else (t + 0.5, tail, below)
    has, side = np.maximum(has, 1e-300), np.maximum(side, 0.5)
    power = np.log(goal / has) * has / np.maximum(chance * side, 1e-300)
    distance = side * np.exp(np.clip(power, -3.0, 3.0))
    return m - distance if upper else distance


def evaluate_loss(function: Function, y: Floats, Y: Floats, n: Floats, N: Floats) -> Floats:  # noqa: N803
    """A loss at these arguments, as numbers of their common shape; refused where it is negative or not finite."""
    shape = np.broadcast_shapes(y.shape, Y.shape, n.shape, N.shape)
    try:
        losses = np.broadcast_to(np.asarray(function(y, Y, n, N), dtype=np.float64), shape)
    except (TypeError, ValueError):
        raise ParameterError("A loss must take arrays (y, Y, n, N) and give a number for each of them.") from None
    if not np.isfinite(losses).all():
        raise ParameterError("The loss is not a finite number everywhere between y and N.")
    if (losses < 0).any():
        raise ParameterError("The loss is negative somewhere between y and N: a loss must be zero or more.")
    return losses


def posterior(
    y: Any,
    n: Any,
    N: Any,  # noqa: N803
    alpha: Any,
    beta: Any,
    *,
    effective: tuple[Any, Any] | None = None,
) -> Posterior:
    """Posterior of each cell; `effective` gives effective y and n where weights are unequal.

    Numbers or arrays of one length; refused in one sentence where they cannot be counts of cells in domains.
    """
    counts = [np.atleast_1d(np.asarray(x, dtype=np.float64)) for x in (y, n, N, alpha, beta)]
    information = [np.atleast_1d(np.asarray(x, dtype=np.float64)) for x in effective or (y, n)]
    y, n, N, alpha, beta, held_y, held_n = np.broadcast_arrays(*counts, *information)  # noqa: N806
    refuse_counts(y, n, N)
    if not (np.isfinite(alpha) & np.isfinite(beta) & (alpha > 0) & (beta > 0)).all():
        raise ParameterError("The prior's alpha and beta must be numbers above 0.")
    return Posterior(y, n, N, alpha + held_y, beta + np.maximum(held_n - held_y, 0.0))


def refuse_counts(y: Floats, n: Floats, N: Floats) -> None:  # noqa: N803
    """Refuse counts that no sample can have, saying in how many cells."""
    for name, column in (("y", y), ("n", n), ("N", N)):
        if not np.isfinite(column).all():
            raise DataError(f"{name} is missing or not finite in {int((~np.isfinite(column)).sum()):,} cells.")
        if (column < 0).any():
            raise DataError(f"{name} is negative in {int((column < 0).sum()):,} cells.")
    if (n == 0).any():
        raise DataError(f"n is 0 in {int((n == 0).sum()):,} cells: a domain without a sample says nothing.")
    if (n > N).any():
        raise DataError(f"n is above N in {int((n > N).sum()):,} cells: a sample cannot exceed its population.")
    if (y > n).any():
        raise DataError(f"y is above n in {int((y > n).sum()):,} cells: a cell cannot exceed its domain's sample.")
