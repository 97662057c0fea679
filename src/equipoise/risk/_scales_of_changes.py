"""Scales in which numbers that a mask changed are compared with the true ones, in units of the changes."""

import numpy as np

from equipoise.ground.arrays import Floats

MISSING = 1e12
"""A missing number: beyond any number divided by the scale of its changes."""
MIN_UNIT_SHARE = 1e-12
"""Smallest unit of logarithms, as a share of the largest size."""
MIN_CORRELATION, MAX_CORRELATION = 0.05, 0.9999
"""Correlations of the changes of two columns that are undone."""


def scales(true: Floats, released: Floats) -> dict[str, tuple[Floats, Floats]]:
    """Scales by name: what is sought and what is released."""
    from scipy.stats import rankdata

    pairs = ~np.isnan(true) & ~np.isnan(released)
    x, y = true[pairs], released[pairs]
    by_name = {"value": (true, released)}
    if not len(x):
        return by_name
    if x.any():
        sizes = np.abs(x[x != 0])
        unit = max(float(sizes.min()), MIN_UNIT_SHARE * float(sizes.max()))
        by_name["logarithm"] = _logarithm(true / unit), _logarithm(released / unit)
    by_name["rank"] = rankdata(true, nan_policy="omit"), rankdata(released, nan_policy="omit")
    if x.std() > 0:
        slope = float(np.cov(x, y)[0, 1] / x.var(ddof=1))
        by_name["line"] = y.mean() + slope * (true - x.mean()), released
    return by_name


def _logarithm(values: Floats) -> Floats:
    """Logarithms of sizes, with their signs; a size of 0 is next to 1."""
    return np.asarray(np.sign(values) * np.log1p(np.abs(values)))


def scaled(sought: Floats, released: Floats) -> tuple[Floats, Floats]:
    """Both divided by the root mean square of the changes that were made; what is missing is far from the rest."""
    changes = (released - sought)[~np.isnan(sought) & ~np.isnan(released) & (released != sought)]
    scale = float(np.sqrt(np.mean(changes**2))) if len(changes) else 0.0
    one, two = (np.nan_to_num(side / (scale or 1.0), nan=MISSING) for side in (sought, released))
    return one, two


def uncorrelated(one: tuple[Floats, Floats], two: tuple[Floats, Floats]) -> tuple[Floats, Floats] | None:
    """The second column less what the change of the first tells of its change; both as sought and as released.

    None where the changes have next to no correlation, or nothing else.
    """
    changes = [released - sought for sought, released in (one, two)]
    both = np.logical_and(*(np.abs(change) < MISSING / 2 for change in changes))
    x, y = (change[both] for change in changes)
    correlation = float(x @ y / (np.sqrt((x @ x) * (y @ y)) or 1.0))
    if not MIN_CORRELATION < abs(correlation) < MAX_CORRELATION:
        return None
    sought, released = ((b - correlation * a) / np.sqrt(1 - correlation**2) for a, b in zip(one, two, strict=True))
    return sought, released
