"""Trend: risk as a growing function of information, fitted to the trials of each family of masks."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.ground.errors import ParameterError
from equipoise.trials.trial import Trial

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Trend:
    """The fit of one family: information in growing order, the risk of each trial and the fitted risk."""

    family: str
    information: tuple[float, ...]
    risk: tuple[float, ...]
    fitted: tuple[float, ...]

    @property
    def misfit(self) -> float:
        """The root mean square of what the fit misses: what chance, or a family that is not monotone, adds."""
        return float(np.sqrt(np.mean((np.array(self.risk) - np.array(self.fitted)) ** 2)))

    def at(self, information: float) -> float:
        """The fitted risk at some information, straight between trials, flat beyond the last."""
        return float(np.interp(information, self.information, self.fitted))


def trends(trials: Sequence[Trial], risk: str, utility: str) -> tuple[Trend, ...]:
    """For each family of masks the growing function of information that is nearest to the risks, in least squares.

    min sum w_i (f_i - r_i)^2 over f_1 <= f_2 <= ... in the order of information, w_i = 1 / error_i^2 where draws give
    errors, else 1; trials with the same information get one value. More information never lowers the risk of a
    sensible family: what the fit misses is chance, or a warning. O(n log n).

    Source: Barlow, Bartholomew, Bremner and Brunk (1972), *Statistical Inference under Order Restrictions*, ch. 1.
    Misleads when a family has few trials: the fit is then the trials.

    >>> from equipoise.methods.score import Score
    >>> from equipoise.recipe.recipe import Recipe
    >>> def trial(risk, bits):
    ...     return Trial(Recipe(), [Score("uniques", risk, "lower"), Score("entropy", bits, "higher")])
    >>> trends([trial(0.25, 1.0), trial(1.0, 2.0), trial(0.5, 3.0)], "uniques", "entropy")[0].fitted
    (0.25, 0.75, 0.75)
    """
    if not trials:
        raise ParameterError("There are no trials to fit.")
    families = dict.fromkeys(trial.recipe.family for trial in trials)
    return tuple(_fitted(name, [t for t in trials if t.recipe.family == name], risk, utility) for name in families)


def _fitted(family: str, trials: Sequence[Trial], risk: str, utility: str) -> Trend:
    from scipy.optimize import isotonic_regression

    scores = [(trial.scores.named(utility), trial.scores.named(risk)) for trial in trials]
    sign = 1.0 if scores[0][0].better == "higher" else -1.0
    sign *= 1.0 if scores[0][1].better == "lower" else -1.0
    known = [(u.value, r.value, r.error) for u, r in scores if np.isfinite(u.value) and np.isfinite(r.value)]
    table = np.array(sorted(known), dtype=np.float64).reshape(-1, 3)
    values, place = np.unique(table[:, 0], return_inverse=True)
    weights = _weights(table[:, 2])
    total = np.bincount(place, weights)
    means = np.bincount(place, weights * table[:, 1]) / np.where(total > 0, total, 1.0)
    fit = isotonic_regression(means, weights=total, increasing=sign > 0).x if len(values) else means
    return Trend(family, tuple(table[:, 0].tolist()), tuple(table[:, 1].tolist()), tuple(fit[place].tolist()))


def _weights(errors: Floats) -> Floats:
    """One over the squared errors, those of exact scores as the smallest; 1 for all where there are none."""
    if not (errors > 0).any():
        return np.ones(len(errors))
    found = 1.0 / np.maximum(errors, errors[errors > 0].min()) ** 2
    shares: Floats = found / found.mean()
    return shares
