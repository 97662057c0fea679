"""Laws on numbers as candidate constraints: rank windows, groups of a single column, noise of known size."""

from collections.abc import Callable

import numpy as np
import polars as pl

from equipoise.attacks._informed.candidates import CandidateSpace
from equipoise.attacks._informed.knowledge import IntruderFiles, alike, joint_both, numbers
from equipoise.data.numeric_columns import root
from equipoise.data.records import Law
from equipoise.data.weighted_samples import WeightedSample
from equipoise.ground.arrays import Floats, Integers

MEAN_TOLERANCE = 1e-9
"""Tolerance of comparing means with values, as a share of the largest value, because sums are rounded."""
NOISE_POINTS = 41
"""Probabilities of the normal law by which values are spread."""
SIMULATED_MASKS = 4
"""Draws of a mask by which an intruder learns how far it moves ranks."""
MIN_SCORE_VARIANCE = 1e-4
"""Variance of a normal score below which nothing is taken to have moved."""
MIN_VARIANCE_SHARE = 1e-9
"""Share of the largest noise variance below which a direction counts as without noise."""


def window(space: CandidateSpace, files: IntruderFiles, column: str, law: Law, *, alone: bool) -> None:
    """Rank swapping: a value of ranks a to b of n is released as one of the values of ranks a - k to b + k.

    The released values are the original ones in another order, so their ranks are known: k = floor(window n). All
    ranks within reach are equally likely, so rank distances count only if there is nothing but intervals (`alone`).
    """
    released, original = numbers(files.released[column]), numbers(files.original[column])
    swapped = numbers(_once(files.released, column, law)[column])
    ranked = np.sort(swapped[~np.isnan(swapped)])
    reach = int(np.floor(float(law.parameters["window"]) * len(ranked) * (1 + 1e-12)))
    start, end = (np.searchsorted(ranked, original, side=side) for side in ("left", "right"))
    low, high = _values_at(ranked, start - reach), _values_at(ranked, end - 1 + reach)
    places = [_middle(ranked, values) for values in (released, original, low, high)]
    space.coordinate(places[0], places[1], 1.0 / max(1, reach) ** 2 if alone else 0.0, places[2], places[3])


def _once(released: pl.DataFrame, column: str, law: Law) -> pl.DataFrame:
    """The rows that were swapped: one for each household and value where the law says so."""
    unit = law.parameters.get("once_per", {}).get(column)
    return released.unique([unit, column]) if unit in released.columns else released


def _values_at(ranked: Floats, places: Integers) -> Floats:
    if not len(ranked):
        return np.full(len(places), np.nan)
    return np.asarray(ranked[np.clip(places, 0, len(ranked) - 1)])


def _middle(ranked: Floats, values: Floats) -> Floats:
    """Mean rank of each value, NaN where it is missing."""
    start, end = (np.searchsorted(ranked, values, side=side) for side in ("left", "right"))
    return np.where(np.isnan(values), np.nan, (start + end - 1) / 2)


def groups(space: CandidateSpace, files: IntruderFiles, column: str, law: Law) -> None:
    """Microaggregation of one column: a value belongs to the group with the next lower or next higher mean.

    Groups are runs of the sorted values, so the mean of the group before is at most the value and that of the group
    after at least the value, within each stratum. Distances are shares of the gap between both means.
    """
    released, original = numbers(files.released[column]), numbers(files.original[column])
    size, strata = len(files), tuple(law.parameters.get("strata") or ())
    one, two = joint_both([alike(files.released[c], files.original[c]) for c in strata], size)
    slack = MEAN_TOLERANCE * np.nanmax(np.abs(np.r_[released, original, 0.0]))
    values = np.unique(released[~np.isnan(released)])
    wide = len(values) + 1
    present = ~np.isnan(released)
    means = np.unique(one[present] * wide + np.searchsorted(values, released[present]))
    edges = [np.searchsorted(means, two * wide + extra) for extra in (0, wide)]
    lower = np.searchsorted(means, two * wide + np.searchsorted(values, original - slack)) - 1
    upper = np.searchsorted(means, two * wide + np.searchsorted(values, original + slack, side="right"))
    lower, upper = np.maximum(lower, edges[0]), np.minimum(upper, edges[1] - 1)
    low, high = (_values_at(values, _clipped_lookup(means, place) % wide) for place in (lower, upper))
    gap = np.where(edges[1] > edges[0], high - low, 0.0)
    space.coordinate(released, original, np.divide(1.0, gap**2, out=np.zeros(size), where=gap > 0), low, high)


def _clipped_lookup(values: Integers, places: Integers) -> Integers:
    return values[np.clip(places, 0, len(values) - 1)] if len(values) else np.zeros(len(places), dtype=np.int64)


def noise(space: CandidateSpace, files: IntruderFiles, columns: tuple[str, ...], law: Law, *, crowd: bool) -> None:
    """Noise of known size: the likelihood of a released value is that of its difference from the known one.

    With O the covariance of the noise (correlations, where it has any, those of the released file) the squared distance
    is (y - x)' O^-1 (y - x). With `crowd` the likelihood is divided by the density of the released file, taken as
    normal with its mean m and covariance S: a record in a dense region is less likely to be the person's. That is
    (y - c)' A (y - c), A = O^-1 - S^-1 and A (c - m) = O^-1 (x - m). Multiplicative noise: sd = t |x|, with t^2 = noise
    variance / mean of x^2. Restored moments are undone first; relative noise by whose order values were dealt out is
    read from ranks.
    """
    y, x = _undo_restored_moments(files, law), _matrix(files.original, columns)
    y = y[:, [law.columns.index(c) for c in columns]]
    sd = np.array([_size(law, c) for c in columns])
    kind = law.parameters["kind"]
    if kind == "multiplicative" and has_density(law):
        _rank_scores(space, _matrix(files.released, columns), x, sd, crowd)
        return
    if kind == "multiplicative":
        for one, two, size in zip(y.T, x.T, sd, strict=True):
            space.coordinate(one, two, _relative(two, size), *_preserved_bounds(law, two, zeros=True))
        return
    _additive(space, y, x, _sizes(y, sd, kind == "correlated"), crowd)
    if law.parameters.get("keep_zero") or law.parameters.get("bounds") == "sign":
        for one, two in zip(y.T, x.T, strict=True):
            space.coordinate(one, two, 0.0, *_preserved_bounds(law, two))


def changes(space: CandidateSpace, files: IntruderFiles, columns: tuple[str, ...], scale: str, *, crowd: bool) -> None:
    """Numbers changed in a way that no law tells by itself: distances in units of the covariance of the changes.

    Whoever has everybody's values and the laws of several masks draws the masks again, and so learns that covariance;
    on the scale of the values, of their logarithms (relative changes) or of normal scores of ranks (swaps).
    """
    y, x = (SCALES[scale](_matrix(table, columns)) for table in (files.released, files.original))
    moves = (y - x)[~np.isnan(y - x).any(axis=1)]
    least = MIN_SCORE_VARIANCE * np.nan_to_num(np.nanvar(x, axis=0)) if len(moves) else np.ones(len(columns))
    sizes = moves.T @ moves / max(1, len(moves)) + np.diag(np.maximum(least, np.finfo(float).tiny))
    _additive(space, y, x, sizes, crowd)


def has_density(law: Law) -> bool:
    """Whether the likelihood under this noise can be divided by the density of the file."""
    return law.parameters["kind"] != "multiplicative" or law.parameters.get("preserve") == "distributions"


def _rank_scores(space: CandidateSpace, y: Floats, x: Floats, sd: Floats, crowd: bool) -> None:
    """Distances of ranks, stretched so that the mask moves all people alike, in units of the covariance of its moves.

    The intruder has everybody's values, and so draws the mask again: the moments that are restored carry over to small
    values, and to zeros, what other columns had.
    """
    scores, relative = _scores(x), x * sd / np.sqrt(np.maximum(np.nanmean(x**2, axis=0), sd**2))
    random = np.random.default_rng(SIMULATED_MASKS)
    draws = [_scores(_restore_moments(x, x + relative * random.normal(size=x.shape))) for _ in range(SIMULATED_MASKS)]
    squares = np.mean([(draw - scores) ** 2 for draw in draws], axis=0)
    scales = [_stretched(*both) for both in zip(scores.T, squares.T, strict=True)]
    released, original, *again = (
        np.stack([np.interp(c, *scale) for c, scale in zip(v.T, scales, strict=True)], 1)
        for v in (_scores(y), scores, *draws)
    )
    moves = np.concatenate([draw - original for draw in again])
    sizes = np.atleast_2d(np.cov(moves[~np.isnan(moves).any(axis=1)].T, bias=True))
    _additive(space, released, original, sizes, crowd)


def _scores(values: Floats) -> Floats:
    """Normal scores of the mean ranks of each column."""
    from scipy.special import ndtri

    counts = np.maximum(1, (~np.isnan(values)).sum(axis=0))
    return np.stack(
        [ndtri((_middle(np.sort(c[~np.isnan(c)]), c) + 0.5) / n) for c, n in zip(values.T, counts, strict=True)], 1
    )


def _signed_logs(values: Floats) -> Floats:
    return np.asarray(np.sign(values) * np.log1p(np.abs(values)))


SCALES: dict[str, Callable[[Floats], Floats]] = {"values": np.asarray, "logarithms": _signed_logs, "ranks": _scores}
"""What numbers are measured by where several masks changed them."""


def _restore_moments(x: Floats, noisy: Floats) -> Floats:
    """Noisy values with the covariances of x in the records without gaps, changed least."""
    whole = ~np.isnan(x).any(axis=1)
    if whole.sum() < 2:
        return noisy
    unit = np.maximum(x[whole].std(axis=0), np.finfo(float).tiny)
    have, want = (np.atleast_2d(np.cov(v[whole].T / unit[:, None], bias=True)) for v in (noisy, x))
    restored = noisy.copy()
    restored[whole] = noisy[whole] / unit @ _turn(have, want) * unit
    return restored


def _turn(have: Floats, want: Floats) -> Floats:
    """The symmetric matrix that brings covariances to those wanted."""
    half = root(have)
    back = np.linalg.pinv(half, rcond=1e-10, hermitian=True)
    return np.asarray(back @ root(half @ want @ half) @ back)


def _stretched(values: Floats, squares: Floats) -> tuple[Floats, Floats]:
    """Places on a scale, and what they become where each is divided by the mean move of its neighbours in order."""
    present = ~np.isnan(values)
    order = np.argsort(values[present], kind="stable")
    ordered, total = values[present][order], np.r_[0.0, np.cumsum(squares[present][order])]
    places, width = np.unique(ordered), max(10, len(ordered) // 30)
    start = np.maximum(0, np.searchsorted(ordered, places) - width)
    end = np.minimum(len(ordered), np.searchsorted(ordered, places, side="right") + width)
    size = np.sqrt(np.maximum((total[end] - total[start]) / (end - start), MIN_SCORE_VARIANCE))
    return places, np.r_[0.0, np.cumsum(np.diff(places) * 2 / (size[1:] + size[:-1]))][: len(places)]


def _sizes(y: Floats, sd: Floats, correlated: bool) -> Floats:
    """Covariance of the noise."""
    alike_ = _complete(y).correlations() if correlated else np.eye(len(sd))
    return alike_ * np.outer(sd, sd)


def _complete(y: Floats) -> WeightedSample:
    return WeightedSample(tuple(map(str, range(y.shape[1]))), y, np.ones(len(y))).complete()


def _size(law: Law, column: str) -> float:
    """Standard deviation of the noise that remains after rounding and bounds."""
    share_left = law.parameters.get("effects", {}).get(column, {}).get("variance", 1.0)
    return float(law.parameters["noise_sd"][column]) * float(np.sqrt(share_left if share_left > 0 else 1.0))


def _relative(x: Floats, sd: float) -> Floats:
    """1 / (t x)^2; the mean square is that of the known values: where few are large, the released one is far off."""
    spread = np.abs(x) * sd / np.sqrt(max(float(np.nanmean(x**2)), sd**2))
    return np.asarray(np.divide(1.0, spread**2, out=np.zeros(len(x)), where=spread > 0))


def _preserved_bounds(law: Law, x: Floats, *, zeros: bool = False) -> tuple[Floats, Floats]:
    """Intervals that follow where the mask preserves zeros or signs."""
    low, high = np.full(len(x), -np.inf), np.full(len(x), np.inf)
    if law.parameters.get("bounds") == "sign":
        low, high = np.where(x >= 0, 0.0, low), np.where(x <= 0, 0.0, high)
    if zeros or law.parameters.get("keep_zero"):
        low, high = np.where(x == 0, 0.0, low), np.where(x == 0, 0.0, high)
    return low, high


def _matrix(table: pl.DataFrame, columns: tuple[str, ...]) -> Floats:
    return np.stack([numbers(table[c]) for c in columns], axis=1)


def _undo_restored_moments(files: IntruderFiles, law: Law) -> Floats:
    """Released columns of the law, with restored moments undone; original values given by rank are undone first."""
    y = _matrix(files.released, law.columns)
    if law.parameters.get("preserve") == "distributions":
        y = np.stack([_noisy_by_rank(values, float(law.parameters["scale"])) for values in y.T], axis=1)
    whole = ~np.isnan(y).any(axis=1)
    if not law.parameters.get("preserve") or whole.sum() < 2:
        return y
    centre, covariance = y[whole].mean(axis=0), np.cov(y[whole].T, bias=True).reshape(y.shape[1], -1)
    unit = np.sqrt(np.diag(covariance))
    alike_ = covariance / np.outer(unit, unit)
    share = float(law.parameters["scale"]) ** 2
    had = alike_ * (1 + share) if law.parameters["kind"] == "correlated" else alike_ + share * np.eye(len(unit))
    turn = _turn(had, alike_)
    undone = y.copy()
    undone[whole] = centre + ((y[whole] - centre) / unit) @ np.linalg.pinv(turn, hermitian=True) * unit
    return undone


def _noisy_by_rank(values: Floats, scale: float) -> Floats:
    """What values of the same ranks would be with noise: the quantiles of the values spread by a normal law.

    The released values are the original ones, so their law with noise is known; brought back to their own variance.
    """
    from scipy.special import ndtri

    present = values[~np.isnan(values)]
    if not len(present):
        return values
    mean, noise = present.mean(), scale * present.std() * ndtri((np.arange(NOISE_POINTS) + 0.5) / NOISE_POINTS)
    ranks = (_middle(np.sort(present), values) + 0.5) / len(present)
    noisy = np.sort(np.add.outer(present, noise), axis=None)
    spread = noisy[np.clip(np.nan_to_num(ranks) * len(noisy), 0, len(noisy) - 1).astype(np.int64)]
    return np.where(np.isnan(values), np.nan, mean + (spread - mean) / np.sqrt(1 + scale**2))


def _additive(space: CandidateSpace, y: Floats, x: Floats, sizes: Floats, crowd: bool) -> None:
    """Add coordinates rotated so that the distance is Euclidean, for each pattern of missing values separately."""
    whole = _complete(y)
    mean = whole.means() if len(whole.values) > 1 else np.zeros(len(sizes))
    spread = whole.correlations() * np.sqrt(np.outer(whole.variances(), whole.variances()))
    gaps = np.isnan(y) @ (1 << np.arange(len(sizes))), np.isnan(x) @ (1 << np.arange(len(sizes)))
    space.agree(*gaps)
    sides = [np.zeros(y.shape), np.zeros(x.shape)]
    for pattern in np.unique(np.concatenate(gaps)):
        present = np.flatnonzero((int(pattern) >> np.arange(len(sizes))) & 1 == 0)
        part = np.ix_(present, present)
        turns = _turns(sizes[part], spread[part] if crowd else None)
        for values, side, gap_patterns, turn in zip((y, x), sides, gaps, turns, strict=True):
            rows = np.flatnonzero(gap_patterns == pattern)
            side[rows, : turn.shape[1]] = (values[np.ix_(rows, present)] - mean[present]) @ turn
    for released, original in zip(sides[0].T, sides[1].T, strict=True):
        space.coordinate(released, original, 1.0, -np.inf, np.inf)


def _turns(sizes: Floats, spread: Floats | None) -> tuple[Floats, Floats]:
    """Matrices that rotate released and known values: V L and O^-1 V L^-1, with V L^2 V' the eigendecomposition of A.

    Columns are first divided by the size of their noise, so that small and large ones are treated alike.
    """
    if not len(sizes):
        return np.zeros((0, 0)), np.zeros((0, 0))
    unit = np.sqrt(np.diag(sizes))
    scale = np.outer(unit, unit)
    sharp = np.linalg.pinv(sizes / scale, rcond=MIN_VARIANCE_SHARE, hermitian=True)
    crowd = 0.0 if spread is None else np.linalg.pinv(spread / scale, rcond=MIN_VARIANCE_SHARE, hermitian=True)
    values, vectors = np.linalg.eigh(sharp - crowd)
    loud = values > MIN_VARIANCE_SHARE * max(float(values.max()), MIN_VARIANCE_SHARE)
    half = np.sqrt(values[loud])
    return vectors[:, loud] * half / unit[:, None], sharp @ vectors[:, loud] / half / unit[:, None]
