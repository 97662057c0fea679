"""What the other released columns say of numbers that are known of people: a regression on the release itself."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from equipoise.attacks._informed.candidates import CandidateSpace
from equipoise.attacks._informed.knowledge import IntruderFiles, numbers
from equipoise.ground.arrays import Floats
from equipoise.ground.packed_keys import code

MAX_COLUMNS, MAX_CATEGORIES = 50, 30
"""Columns that are read, the first ones, and categories of one of them."""
MIN_SHARE_TOLD = 0.05
"""Share of the variance of a known number from which on it is worth reading."""
RIDGE = 1e-6


def add_predictions(space: CandidateSpace, files: IntruderFiles, columns: Sequence[str]) -> bool:
    """Add how far each person is from what the columns that nobody knows say of each record, in units of their errors.

    Numbers on a scale that is linear near 0 and logarithmic far from it. False where these columns say little.
    """
    features = _features(files.released.drop(files.known))
    masked, true = (np.stack([_bent(numbers(table[c])) for c in columns]) for table in (files.released, files.original))
    varies = [_spread(one) > 0 and _spread(two) > 0 for one, two in zip(masked, true, strict=True)]
    if not features or not any(varies):
        return False
    x = np.stack([np.ones(len(files)), *features], axis=1)
    y, true = np.stack([np.nan_to_num(z, nan=float(np.nanmean(z))) for z in masked[varies]], axis=1), true[varies].T
    predicted = x @ np.linalg.solve(x.T @ x + RIDGE * len(x) * np.eye(x.shape[1]), x.T @ y)
    complete = ~np.isnan(true).any(axis=1)
    if complete.sum() < 2 * x.shape[1]:
        return False
    apart = (true - predicted)[complete]
    if (apart.var(axis=0) > (1 - MIN_SHARE_TOLD) * true[complete].var(axis=0)).all():
        return False
    size, directions = np.linalg.eigh(np.atleast_2d(np.cov(apart.T)))
    units = directions / np.sqrt(np.maximum(size, RIDGE * true[complete].var(axis=0).max()))
    for one, two in zip(((predicted + apart.mean(axis=0)) @ units).T, (true @ units).T, strict=True):
        space.coordinate(one, np.where(complete, two, 0.0), complete.astype(np.float64), -np.inf, np.inf)
    return True


def _spread(values: Floats) -> float:
    present = values[~np.isnan(values)]
    return float(np.ptp(present)) if len(present) else 0.0


def _features(table: pl.DataFrame) -> list[Floats]:
    """Numbers with their squares, zeros and gaps apart; categories by columns of zeros and ones."""
    features: list[Floats] = []
    for column in table.iter_columns() if table.width <= MAX_COLUMNS else table[:, :MAX_COLUMNS].iter_columns():
        if column.dtype.is_numeric() or column.dtype.is_temporal():
            values = column.to_physical().cast(pl.Float64).fill_null(np.nan).to_numpy()
            gaps = ~np.isfinite(values)
            values = _bent(np.where(gaps, 0.0, values))
            features += [values, values**2, (values == 0).astype(np.float64), gaps.astype(np.float64)]
        elif (coded := code(column.cast(pl.String))).size <= MAX_CATEGORIES:
            features += list(np.eye(coded.size)[coded.codes].T[1:])
    return features


def _bent(values: Floats) -> Floats:
    sizes = np.abs(values[np.isfinite(values) & (values != 0)])
    return np.asarray(np.arcsinh(values / (np.median(sizes) / 10 if len(sizes) else 1.0)))
