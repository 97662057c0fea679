"""Unbiased estimates of the original counts of a post-randomized column."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from equipoise.ground.errors import ParameterError


def pram_adjust(counts: ArrayLike, matrix: ArrayLike, *, categories: Sequence[str] | None = None) -> pl.DataFrame:
    """Estimate the original counts from the released ones and the published transition matrix.

    With E(S | T) = P' T, the estimate is T^ = (P')^-1 S, unbiased; its variance given T is (P')^-1 V P^-1 with
    V = sum over k of T_k (diag(P_k) - P_k P_k'), T replaced by T^ (its negative entries by 0). Not needed, and biased
    upwards in variance, when the matrix was invariant. O(categories^3).

    Source: Gouweleeuw et al. (1998), section 3. Misleads when the matrix is nearly singular: the errors show it.

    Parameters
    ----------
    counts
        Released counts, in the order of the matrix (sorted categories).
    matrix
        matrix[i][j], the probability that category i became j.
    categories
        Their names, for the table.

    >>> pram_adjust([56, 44], [[0.9, 0.1], [0.2, 0.8]])["estimate"].round(6).to_list()
    [51.428571, 48.571429]
    """
    released, law = np.asarray(counts, dtype=np.float64), np.asarray(matrix, dtype=np.float64)
    if released.ndim != 1:
        raise ParameterError("counts must be a list of numbers, one for each category.")
    if law.ndim != 2 or law.shape != (len(released), len(released)):
        raise ParameterError(f"{len(released)} counts need a matrix of {len(released)} rows and columns.")
    if categories is not None and len(categories) != len(released):
        raise ParameterError(f"categories has {len(categories)} names for {len(released)} counts.")
    if (law < 0).any() or not np.allclose(law.sum(axis=1), 1, atol=1e-9):
        raise ParameterError("Each row of matrix must hold probabilities that sum to 1.")
    if np.linalg.cond(law) > 1e12:
        raise ParameterError("The matrix cannot be inverted: the released counts do not determine the original ones.")
    back = np.linalg.inv(law.T)
    estimate = back @ released
    guess = np.maximum(estimate, 0)
    spread = np.diag(law.T @ guess) - (law.T * guess) @ law
    error = np.sqrt(np.maximum(np.diag(back @ spread @ back.T), 0))
    names = list(categories) if categories is not None else [str(i) for i in range(len(released))]
    return pl.DataFrame({"category": names, "released": released, "estimate": estimate, "error": error})
