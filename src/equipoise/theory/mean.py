"""Closed forms of risk and utility: the user estimates a mean, the snooper one record's value."""

from collections.abc import Iterable
from dataclasses import MISSING, fields
from typing import Any, Protocol

import numpy as np
import polars as pl

from equipoise.ground.errors import ParameterError, hint
from equipoise.theory.noise import IndependentNoise, Original
from equipoise.theory.point import Theory
from equipoise.theory.swapped import Swapped
from equipoise.theory.synthetic import Synthetic


class Case(Protocol):
    """A release with risk and utility in closed form."""

    def point(self) -> Theory: ...


CASES: dict[str, type] = {"original": Original, "noise": IndependentNoise, "synthetic": Synthetic, "swapped": Swapped}
CURVE_PARAMETER: dict[str, str] = {"noise": "scale", "synthetic": "m", "swapped": "rate"}
"""The default parameter of a curve of each method."""


def mean(method: str, **parameters: Any) -> Theory:
    """Risk and utility of a release in closed form, for every snooper, the strongest named.

    Utility is 1/MSE of the user's estimate (of the mean; of the difference of two areas' means for swapping), risk
    1/MSE of the strongest snooper's guess at the target's value. Only means and variances enter, no distribution.
    Source: Duncan and Keller-McNulty (2000), *Mask or impute?*, section 6; what is corrected and added stands in the
    docstrings of `Noise`, `Synthetic` and `Swapped`. Misleads when values are skewed and the target is an outlier: the
    MSE is a mean over targets. Cost: O(1).

    Parameters
    ----------
    method
        'original', 'noise', 'synthetic' or 'swapped'.
    **parameters
        All: s2, target ('inside', 'outside'), prior (mean, variance), mu, links, form ('corrected', 'naive').
        original: n. noise: n, l2 or scale, copies. synthetic: n, m, k, a2. swapped: rate, d, areas, partners,
        candidates.

    >>> point = mean("noise", n=10, s2=4.0, l2=2.0, target="inside")
    >>> point.strongest, round(1 / point.risk, 10), round(1 / point.utility, 10)
    ('shrunk', 1.4, 0.6)
    """
    return case(method, parameters).point()


def case(method: str, parameters: dict[str, Any]) -> Case:
    """The release of this method with these parameters; refused where they do not fit."""
    if method not in CASES:
        raise ParameterError(f"No theory of {method!r}.{hint(method, list(CASES))}")
    kind = CASES[method]
    names = {f.name: f.default is MISSING for f in fields(kind)}
    for name in parameters:
        if name not in names:
            raise ParameterError(f"The theory of {method!r} has no parameter {name!r}.{hint(name, list(names))}")
    lacking = [name for name, needed in names.items() if needed and name not in parameters]
    if lacking:
        raise ParameterError(f"The theory of {method!r} needs {', '.join(lacking)}.")
    try:
        release: Case = kind(**parameters)
    except TypeError:
        raise ParameterError(f"The theory of {method!r} takes numbers: one of its parameters is none.") from None
    return release


def curve(
    method: str, parameter: str | None = None, values: Iterable[float] | None = None, **parameters: Any
) -> pl.DataFrame:
    """Utility against risk along one parameter, as data for a chart: a row for each value.

    Columns: `parameter` (its value), `utility`, `risk` (infinite where a snooper cannot err), `strongest`, `identity`
    (null where not applicable), and the MSE of each snooper. The rows where `strongest` changes are where another
    snooper takes over. Cost: O(values).

    Parameters
    ----------
    method, parameters
        As in `mean`.
    parameter
        The parameter that varies: by default the scale of noise, m of synthetic samples, the rate of swapping.
    values
        Where to evaluate; by default a usual range.

    >>> curve("noise", "l2", [1.0, 9.0], n=10, s2=4.0, form="naive").select("parameter", "risk", "strongest").rows()
    [(1.0, 1.0, 'linked'), (9.0, 0.2222222222222222, 'mean')]
    """
    along = parameter or CURVE_PARAMETER.get(method)
    if along is None:
        raise ParameterError(f"A curve of {method!r} needs the name of the parameter that runs.")
    rows = []
    for value in usual(along, parameters) if values is None else values:
        point = mean(method, **parameters, **{along: value})
        rows.append(
            {
                "parameter": float(value),
                "utility": point.utility,
                "risk": point.risk,
                "strongest": point.strongest,
                "identity": point.identity,
                **point.mse,
            }
        )
    if not rows:
        raise ParameterError("A curve needs at least one value.")
    return pl.DataFrame(rows, schema_overrides={"identity": pl.Float64}, infer_schema_length=None)


def usual(parameter: str, parameters: dict[str, Any]) -> Iterable[float]:
    """Default range of a parameter in a chart."""
    if parameter in ("m", "k"):
        return range(1, 21)
    if parameter == "rate":
        many = parameters.get("partners", 1)
        return [float(p) for p in np.linspace(0, many / (many + 1), 51)]
    top = 2.0 if parameter == "scale" else 4 * float(parameters.get("s2", 1.0))
    return [float(value) for value in np.linspace(0, top, 51)]
