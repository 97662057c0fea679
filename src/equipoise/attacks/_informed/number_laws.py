"""What laws on numbers say: rank windows, groups of a single column, noise of known size."""

import numpy as np
import polars as pl

from equipoise.attacks._informed.candidates import CandidateSpace
from equipoise.attacks._informed.knowledge import IntruderFiles, alike, joint_both, numbers
from equipoise.data.numeric_columns import root
from equipoise.data.records import Law
from equipoise.data.weighted_samples import WeightedSample
from equipoise.ground.arrays import Floats, Integers

HAIR = 1e-9
"""Means are compared with values to this share of the largest value, for sums are rounded."""
QUIET = 1e-9
"""Directions with less than this share of the largest noise variance have none."""


def window(space: CandidateSpace, files: IntruderFiles, column: str, law: Law, *, alone: bool) -> None:
    """Rank swapping: a value that held the places a to b of the n can stand only where a - k to b + k stood.

    The released values are the original ones in another order, so their places are known: k = floor(window n). All
    places within reach are equally likely, so gaps in ranks count only where intervals are all there is (`alone`).
    """
    here, there = numbers(files.released[column]), numbers(files.original[column])
    ranked = np.sort(here[~np.isnan(here)])
    reach = int(np.floor(float(law.parameters["window"]) * len(ranked) * (1 + 1e-12)))
    start, end = (np.searchsorted(ranked, there, side=side) for side in ("left", "right"))
    low, high = _taken(ranked, start - reach), _taken(ranked, end - 1 + reach)
    places = [_middle(ranked, values) for values in (here, there, low, high)]
    space.coordinate(places[0], places[1], 1.0 / max(1, reach) ** 2 if alone else 0.0, places[2], places[3])


def _taken(ranked: Floats, places: Integers) -> Floats:
    if not len(ranked):
        return np.full(len(places), np.nan)
    found: Floats = ranked[np.clip(places, 0, len(ranked) - 1)]
    return found


def _middle(ranked: Floats, values: Floats) -> Floats:
    """The mean place of each value, NaN where it is missing."""
    start, end = (np.searchsorted(ranked, values, side=side) for side in ("left", "right"))
    return np.where(np.isnan(values), np.nan, (start + end - 1) / 2)


def groups(space: CandidateSpace, files: IntruderFiles, column: str, law: Law) -> None:
    """Microaggregation of one column: a value belongs to the group whose mean is next below it or next above it.

    Groups are runs of the sorted values, so the mean of the group before is at most the value, and that of the group
    after at least; within each stratum. Distances are shares of the gap between both means.
    """
    here, there = numbers(files.released[column]), numbers(files.original[column])
    size, strata = len(files), tuple(law.parameters.get("strata") or ())
    one, two = joint_both([alike(files.released[c], files.original[c]) for c in strata], size)
    slack = HAIR * np.nanmax(np.abs(np.r_[here, there, 0.0]))
    values = np.unique(here[~np.isnan(here)])
    wide = len(values) + 1
    told = ~np.isnan(here)
    means = np.unique(one[told] * wide + np.searchsorted(values, here[told]))
    edges = [np.searchsorted(means, two * wide + extra) for extra in (0, wide)]
    lower = np.searchsorted(means, two * wide + np.searchsorted(values, there - slack)) - 1
    upper = np.searchsorted(means, two * wide + np.searchsorted(values, there + slack, side="right"))
    lower, upper = np.maximum(lower, edges[0]), np.minimum(upper, edges[1] - 1)
    low, high = _taken(values, _at(means, lower) % wide), _taken(values, _at(means, upper) % wide)
    gap = np.where(edges[1] > edges[0], high - low, 0.0)
    space.coordinate(here, there, np.divide(1.0, gap**2, out=np.zeros(size), where=gap > 0), low, high)


def _at(values: Integers, places: Integers) -> Integers:
    return values[np.clip(places, 0, len(values) - 1)] if len(values) else np.zeros(len(places), dtype=np.int64)


def noise(space: CandidateSpace, files: IntruderFiles, columns: tuple[str, ...], law: Law, *, crowd: bool) -> None:
    """Noise of known size: the likelihood of a released value is that of its gap to the known one.

    With O the covariance of the noise (correlations, where it has any, those of the released file) the squared distance
    is (y - x)' O^-1 (y - x). With `crowd` the likelihood is divided by the density of the released file, taken as
    normal with its mean m and covariance S: a record is less likely to be the person's where many others are. That is
    (y - c)' A (y - c), A = O^-1 - S^-1 and A (c - m) = O^-1 (x - m). Multiplicative noise: sd = t |x|, with t^2 = noise
    variance / mean of x^2. Restored moments are undone first.
    """
    y, x = _released(files, law), _matrix(files.original, columns)
    y = y[:, [law.columns.index(c) for c in columns]]
    sd = np.array([_size(law, c) for c in columns])
    kind = law.parameters["kind"]
    if kind == "multiplicative":
        for one, two, size in zip(y.T, x.T, sd, strict=True):
            space.coordinate(one, two, _relative(one, two, size), *_kept(law, two, zeros=True))
        return
    _additive(space, y, x, _sizes(y, sd, kind == "correlated"), crowd)
    if law.parameters.get("keep_zero") or law.parameters.get("bounds") == "sign":
        for one, two in zip(y.T, x.T, strict=True):
            space.coordinate(one, two, 0.0, *_kept(law, two))


def _sizes(y: Floats, sd: Floats, correlated: bool) -> Floats:
    """The covariance of the noise."""
    alike_ = _complete(y).correlations() if correlated else np.eye(len(sd))
    return alike_ * np.outer(sd, sd)


def _complete(y: Floats) -> WeightedSample:
    return WeightedSample(tuple(map(str, range(y.shape[1]))), y, np.ones(len(y))).complete()


def _size(law: Law, column: str) -> float:
    """The standard deviation of the noise that is left after rounding and bounds."""
    left = law.parameters.get("effects", {}).get(column, {}).get("variance", 1.0)
    return float(law.parameters["noise_sd"][column]) * float(np.sqrt(left if left > 0 else 1.0))


def _relative(y: Floats, x: Floats, sd: float) -> Floats:
    square = max(float(np.nanmean(y**2)) - sd**2, sd**2)
    spread = np.abs(x) * sd / np.sqrt(square)
    found: Floats = np.divide(1.0, spread**2, out=np.zeros(len(x)), where=spread > 0)
    return found


def _kept(law: Law, x: Floats, *, zeros: bool = False) -> tuple[Floats, Floats]:
    """Where zeros are kept they are seen, and where signs are kept so are they."""
    low, high = np.full(len(x), -np.inf), np.full(len(x), np.inf)
    if law.parameters.get("bounds") == "sign":
        low, high = np.where(x >= 0, 0.0, low), np.where(x <= 0, 0.0, high)
    if zeros or law.parameters.get("keep_zero"):
        low, high = np.where(x == 0, 0.0, low), np.where(x == 0, 0.0, high)
    return low, high


def _matrix(table: pl.DataFrame, columns: tuple[str, ...]) -> Floats:
    return np.stack([numbers(table[c]) for c in columns], axis=1)


def _released(files: IntruderFiles, law: Law) -> Floats:
    """All columns of the law as released; moments that were restored are undone."""
    y = _matrix(files.released, law.columns)
    whole = ~np.isnan(y).any(axis=1)
    if not law.parameters.get("preserve") or whole.sum() < 2:
        return y
    centre, wanted = y[whole].mean(axis=0), np.cov(y[whole].T, bias=True).reshape(y.shape[1], -1)
    unit = np.sqrt(np.diag(wanted))
    alike_ = wanted / np.outer(unit, unit)
    share = float(law.parameters["scale"]) ** 2
    had = alike_ * (1 + share) if law.parameters["kind"] == "correlated" else alike_ + share * np.eye(len(unit))
    half = root(had)
    back = np.linalg.pinv(half, hermitian=True)
    turn = back @ root(half @ alike_ @ half) @ back
    done = y.copy()
    done[whole] = centre + ((y[whole] - centre) / unit) @ np.linalg.pinv(turn, hermitian=True) * unit
    return done


def _additive(space: CandidateSpace, y: Floats, x: Floats, sizes: Floats, crowd: bool) -> None:
    """Turned so that the distance is Euclidean, for each pattern of gaps by itself: patterns must agree."""
    whole = _complete(y)
    mean = whole.means() if len(whole.values) > 1 else np.zeros(len(sizes))
    spread = whole.correlations() * np.sqrt(np.outer(whole.variances(), whole.variances()))
    gaps = np.isnan(y) @ (1 << np.arange(len(sizes))), np.isnan(x) @ (1 << np.arange(len(sizes)))
    space.agree(*gaps)
    sides = [np.zeros(y.shape), np.zeros(x.shape)]
    for pattern in np.unique(np.concatenate(gaps)):
        there = np.flatnonzero((int(pattern) >> np.arange(len(sizes))) & 1 == 0)
        part = np.ix_(there, there)
        turns = _turns(sizes[part], spread[part] if crowd else None)
        for values, side, held, turn in zip((y, x), sides, gaps, turns, strict=True):
            rows = np.flatnonzero(held == pattern)
            side[rows, : turn.shape[1]] = (values[np.ix_(rows, there)] - mean[there]) @ turn
    for here, there_ in zip(sides[0].T, sides[1].T, strict=True):
        space.coordinate(here, there_, 1.0, -np.inf, np.inf)


def _turns(sizes: Floats, spread: Floats | None) -> tuple[Floats, Floats]:
    """What released and known values are multiplied by: V L and O^-1 V L^-1, V L^2 V' the eigenvectors and values of A.

    Columns are first divided by the size of their noise, so that small and large ones are told apart.
    """
    if not len(sizes):
        return np.zeros((0, 0)), np.zeros((0, 0))
    unit = np.sqrt(np.diag(sizes))
    sharp = np.linalg.pinv(sizes / np.outer(unit, unit), rcond=QUIET, hermitian=True)
    crowd = 0.0 if spread is None else np.linalg.pinv(spread / np.outer(unit, unit), rcond=QUIET, hermitian=True)
    values, vectors = np.linalg.eigh(sharp - crowd)
    loud = values > QUIET * max(float(values.max()), QUIET)
    half = np.sqrt(values[loud])
    return vectors[:, loud] * half / unit[:, None], sharp @ vectors[:, loud] / half / unit[:, None]
