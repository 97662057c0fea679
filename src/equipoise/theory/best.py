"""Parameter value of most utility under a limit on risk, in closed form."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.ground.errors import InfeasibleError, ParameterError, hint
from equipoise.methods.parameters import above, share
from equipoise.theory.mean import mean
from equipoise.theory.point import Theory

METHOD_OF = {
    "scale": "noise",
    "l2": "noise",
    "rate": "swapped",
    "m": "synthetic",
    "k": "synthetic",
    "a2": "synthetic",
}
MAX_NOISE = 2.0**60
GRID_STEPS = 1000
"""Swapping rates evaluated on a grid before bisection."""


@dataclass(frozen=True)
class Best:
    """The chosen value of a parameter, its point on the map, and whether the limit binds."""

    parameter: str
    value: float
    point: Theory
    binds: bool


def best(
    parameter: str,
    *,
    risk_at_most: float | None = None,
    identity_at_most: float | None = None,
    at_most: int = 1000,
    **parameters: Any,
) -> Best:
    """The value of a parameter with most utility among those that keep the risk within a limit.

    More noise (scale, l2, a2) and more swapping (rate) cost utility: the smallest value that keeps the limit is best,
    found by bisection; more samples or larger ones (m, k) add utility and risk, so the largest is, up to `at_most`.
    Risk falls and rises again along the rate (at 1 a swap is undone): the smallest rate that keeps the limit is taken.
    Source: Duncan and Keller-McNulty (2000), section 6.2. Misleads when the limit is meant for a snooper who knows
    less. Cost: about a thousand evaluations of a closed form.

    Parameters
    ----------
    parameter
        'scale' or 'l2' (noise), 'rate' (swapped), 'm', 'k' or 'a2' (synthetic).
    risk_at_most
        Limit on the reciprocal MSE of the strongest snooper.
    identity_at_most
        Limit on the chance that the target's record is named.
    at_most
        Largest m or k that is considered.
    **parameters
        The other parameters, as in `mean`.

    >>> chosen = best("rate", risk_at_most=1.0, s2=4.0, d=3.0)
    >>> round(chosen.value, 4), round(chosen.point.risk, 6), chosen.point.strongest
    (0.0877, 1.0, 'best linear')
    >>> best("m", risk_at_most=0.26, n=10, s2=4.0).value
    3
    """
    if parameter not in METHOD_OF:
        raise ParameterError(f"Nothing is known of the parameter {parameter!r}.{hint(parameter, list(METHOD_OF))}")
    keeps = _limits(risk_at_most, identity_at_most)
    method = METHOD_OF[parameter]

    def at(value: float) -> Theory:
        return mean(method, **parameters, **{parameter: value})

    if parameter in ("m", "k"):
        return _most(parameter, at, keeps, at_most)
    low, high = _first_rate(at, keeps) if parameter == "rate" else _bracket(at, keeps, parameter)
    value = _bisect(at, keeps, low, high)
    return Best(parameter, value, at(value), binds=value > 0)


def _limits(risk: float | None, identity: float | None) -> Callable[[Theory], bool]:
    if risk is None and identity is None:
        raise ParameterError("Give risk_at_most or identity_at_most: without a limit no protection is best.")
    if risk is not None:
        above(risk, "risk_at_most")
    if identity is not None:
        share(identity, "identity_at_most", zero=True)

    def keeps(point: Theory) -> bool:
        identity_holds = point.identity is None or identity is None or point.identity <= identity
        return identity_holds and (risk is None or point.risk <= risk)

    return keeps


def _infeasible(parameter: str) -> InfeasibleError:
    return InfeasibleError(f"No {parameter} keeps this limit: the strongest snooper exceeds it at any value.")


def _most(parameter: str, at: Callable[[int], Theory], keeps: Callable[[Theory], bool], at_most: int) -> Best:
    """The largest whole number that keeps the limit: utility and risk both grow with it."""
    if not keeps(at(1)):
        raise _infeasible(parameter)
    low, high = 1, at_most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if keeps(at(middle)) else (low, middle)
    return Best(parameter, low, at(low), binds=low < at_most)


def _bracket(at: Callable[[float], Theory], keeps: Callable[[Theory], bool], parameter: str) -> tuple[float, float]:
    """Two values between which the limit begins to hold."""
    if keeps(at(0.0)):
        return 0.0, 0.0
    high = 2.0**-20
    while not keeps(at(high)):
        high *= 2
        if high > MAX_NOISE:
            raise _infeasible(parameter)
    return 0.0, high


def _first_rate(at: Callable[[float], Theory], keeps: Callable[[Theory], bool]) -> tuple[float, float]:
    """The first rate of a grid that keeps the limit, and the one before; the safest rate is added to the grid."""
    grid = np.linspace(0, 1, GRID_STEPS + 1)
    safest = _safest(at, grid)
    rates = sorted({*grid.tolist(), *safest})
    for place, rate in enumerate(rates):
        if keeps(at(rate)):
            return rates[max(0, place - 1)], rate
    raise _infeasible("rate")


def _safest(at: Callable[[float], Theory], grid: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> list[float]:
    """The rates with the least risk, and with the least chance of naming the record."""
    from scipy.optimize import minimize_scalar

    def closed_in(harm: Callable[[float], float]) -> float:
        near = min(grid.tolist(), key=harm)
        bounds = (max(0.0, near - 1 / GRID_STEPS), min(1.0, near + 1 / GRID_STEPS))
        return float(minimize_scalar(harm, bounds=bounds, method="bounded").x)

    return [closed_in(lambda p: -min(at(p).mse.values())), closed_in(lambda p: at(p).identity or 0.0)]


def _bisect(at: Callable[[float], Theory], keeps: Callable[[Theory], bool], low: float, high: float) -> float:
    """The smallest value that keeps the limit, between one that does not and one that does."""
    if keeps(at(low)):
        return low
    while high - low > 1e-14 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if keeps(at(middle)) else (middle, high)
    return high
