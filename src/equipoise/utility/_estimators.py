"""Estimates of weighted samples with linearised standard errors: regressions, quantiles, Gini, correlations, shares."""

import numpy as np

from equipoise.ground.arrays import Floats

MAX_NEWTON_STEPS = 25


def least_squares(design: Floats, y: Floats, w: Floats) -> tuple[Floats, Floats]:
    """Weighted least squares and its sandwich errors, n/(n-k); of collinear columns the shortest solution.

    >>> e, s = least_squares(np.ones((4, 1)), np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4))
    >>> e.round(6).tolist(), s.round(6).tolist()
    ([2.5], [0.645497])
    """
    unit = np.sqrt((design**2).mean(axis=0))
    scaled = design / np.where(unit > 0, unit, 1.0)
    bread = np.linalg.pinv((scaled.T * w) @ scaled, rcond=1e-12, hermitian=True)
    slopes = bread @ (scaled.T @ (w * y))
    pull = (scaled * (w * (y - scaled @ slopes))[:, None]) @ bread
    spare = len(y) / max(1, len(y) - design.shape[1])
    errors = np.sqrt((pull**2).sum(axis=0) * spare)
    back = np.where(unit > 0, unit, 1.0)
    return slopes / back, errors / back


def quantile(x: Floats, w: Floats, share: float) -> tuple[Floats, Floats]:
    """The smallest value that holds at least `share` of the weight, with half of Woodruff's interval as error.

    Where that interval has no length (heaped values), the error of the mean stands in.

    >>> quantile(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.ones(5), 0.5)[0].tolist()
    [3.0]
    """
    order = np.argsort(x, kind="stable")
    steps = np.cumsum(w[order]) / w.sum()
    effective_n = effective_size(w)
    reach = float(np.sqrt(share * (1 - share) / effective_n))
    places = np.searchsorted(steps, np.clip([share - reach, share, share + reach], 0, 1) - 1e-12)
    low, middle, high = x[order][np.minimum(places, len(x) - 1)]
    error = (high - low) / 2 or float(np.sqrt(np.average((x - np.average(x, weights=w)) ** 2, weights=w) / effective_n))
    return np.array([middle]), np.array([error])


def gini(x: Floats, w: Floats) -> tuple[Floats, Floats]:
    """Gini coefficient and its linearised error; 0 where the values add up to nothing.

    G = 2 sum_i w_i x_i F_i / (W m) - 1 with F_i the share of the weight below x_i plus half of its own, m the mean. The
    influence of a record is (2/m) (x F(x) + partial mean above x) - (G + 1) (1 + x/m), by Langel and Tille (2013).

    >>> gini(np.array([1.0, 1.0, 1.0]), np.ones(3))[0].tolist(), gini(np.array([0.0, 0.0, 3.0]), np.ones(3))[0].tolist()
    ([0.0], [0.6666666666666667])
    """
    order = np.argsort(x, kind="stable")
    x, w = x[order], w[order]
    total, mean = w.sum(), float(w @ x / w.sum())
    if mean <= 0:
        return np.array([0.0]), np.array([0.0])
    below = (np.cumsum(w) - w / 2) / total
    above = (w @ x - np.cumsum(w * x) + w * x / 2) / total
    value = 2 * float(w @ (x * below)) / (total * mean) - 1
    influence = 2 * (x * below + above) / mean - (value + 1) * (1 + x / mean)
    spare = len(x) / max(1, len(x) - 1)
    return np.array([value]), np.array([np.sqrt(float((w * influence) @ (w * influence)) * spare) / total])


def correlated(x: Floats, y: Floats, w: Floats) -> tuple[Floats, Floats]:
    """Correlation and its error: z x y - r (x^2 + y^2) / 2 in standard units, linearised.

    >>> e, s = correlated(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0]), np.ones(3))
    >>> e.round(6).tolist(), s.round(6).tolist()
    ([1.0], [0.0])
    """
    units = [_standardised(one, w) for one in (x, y)]
    value = float(np.clip(w @ (units[0] * units[1]) / w.sum(), -1, 1))
    influence = units[0] * units[1] - value * (units[0] ** 2 + units[1] ** 2) / 2
    return np.array([value]), np.array([np.sqrt(float(((w * influence) ** 2).sum())) / w.sum()])


def _standardised(x: Floats, w: Floats) -> Floats:
    centred = x - w @ x / w.sum()
    spread = np.sqrt(w @ centred**2 / w.sum())
    return centred / spread if spread > 0 else centred * 0.0


def effective_size(w: Floats) -> float:
    """Kish's effective number of records."""
    return float(w.sum() ** 2 / (w**2).sum())


def share_errors(shares: Floats | float, w: Floats) -> tuple[Floats, Floats]:
    """Shares and their errors, with two successes and two failures added."""
    p, effective_n = np.atleast_1d(shares), effective_size(w)
    near = (effective_n * p + 2) / (effective_n + 4)
    return p, np.sqrt(near * (1 - near) / effective_n)


def logistic(design: Floats, y: Floats, w: Floats) -> tuple[Floats, Floats]:
    """Logistic regression by Newton's method with sandwich errors, n/(n-k); a slight ridge keeps separated ones finite.

    >>> x = np.array([[1.0, 0.0]] * 4 + [[1.0, 1.0]] * 4)
    >>> e, _ = logistic(x, np.array([1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0]), np.ones(8))
    >>> e.round(4).tolist()
    [-1.0986, 2.1972]
    """
    unit = np.sqrt((design**2).mean(axis=0))
    scaled = design / np.where(unit > 0, unit, 1.0)
    slopes, ridge = np.zeros(design.shape[1]), 1e-8 * w.sum() * np.eye(design.shape[1])
    for _ in range(MAX_NEWTON_STEPS):
        p = 1 / (1 + np.exp(-np.clip(scaled @ slopes, -30, 30)))
        bread = np.linalg.pinv((scaled.T * (w * p * (1 - p))) @ scaled + ridge, hermitian=True)
        step = bread @ (scaled.T @ (w * (y - p)) - ridge @ slopes)
        slopes = slopes + step
        if np.abs(step).max() < 1e-8:
            break
    pull = (scaled * (w * (y - p))[:, None]) @ bread
    errors = np.sqrt((pull**2).sum(axis=0) * len(y) / max(1, len(y) - design.shape[1]))
    back = np.where(unit > 0, unit, 1.0)
    return slopes / back, errors / back
