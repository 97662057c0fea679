"""Populations with known truth: the expected correct matches of sample uniques against the true ones."""

from collections.abc import Iterator
from math import prod

import numpy as np
import polars as pl
from numpy.typing import NDArray

import equipoise as eq
from benchmarks.rows import Row, Scale, Skipped

SIZES = (20, 2, 12, 6, 15, 5)
KEYS = tuple("abcdef")
JOINED = ((0, 5), (3, 4), (0, 1))
PEOPLE = 500_000
POPULATIONS = 50
WITHIN = 0.15
"""How far the mean over the populations may be from the true mean."""


def log_linear(scale: Scale) -> Iterator[Row | Skipped]:
    """Independent keys and keys joined by three interactions, samples of 1 and of 10 %, the true model fitted."""
    times = max(2, round(POPULATIONS * scale.share))
    for name, joined in (("independent keys", ()), ("three interactions", JOINED)):
        chosen = tuple(f"{KEYS[one]}*{KEYS[two]}" for one, two in joined) or "main"
        for fraction in (0.01, 0.1):
            measure = eq.risk.LogLinear(chosen, fraction=fraction)
            pairs = np.array([compared(measure, fraction, joined, seed) for seed in range(times)])
            ours, true = pairs.mean(axis=0)
            yield Row(
                f"correct matches, {name}, {fraction:.0%} sampled", abs(ours / true - 1), WITHIN, 1.0, unit="off",
                against=f"the truth of {times} populations, {true:,.1f} on average", note=f"estimated {ours:,.1f}",
            )  # fmt: skip


def compared(
    measure: "eq.risk.LogLinear", fraction: float, joined: tuple[tuple[int, int], ...], seed: int
) -> tuple[float, float]:
    """The estimate from one sample of one population, and the truth."""
    draw = np.random.default_rng(seed)
    people = draw.choice(prod(SIZES), PEOPLE, p=law(draw, joined))
    sample = people[draw.random(PEOPLE) < fraction]
    values, counts = np.unique(sample, return_counts=True)
    true = (1 / np.bincount(people)[values[counts == 1]]).sum()
    table = pl.DataFrame(dict(zip(KEYS, np.unravel_index(sample, SIZES), strict=True)))
    return measure.estimate(eq.read(table, eq.Roles(KEYS))).correct_matches, float(true)


def law(draw: np.random.Generator, joined: tuple[tuple[int, int], ...]) -> NDArray[np.float64]:
    """The chance of every cell: main effects, times normal effects of the pairs on the scale of logarithms."""
    chances = np.ones(SIZES)
    for axis, size in enumerate(SIZES):
        chances = chances * draw.dirichlet(np.full(size, 1.5)).reshape(_shape((axis,)))
    for pair in joined:
        effect = np.exp(draw.normal(0, 1, [SIZES[axis] for axis in pair]))
        chances = chances * effect.reshape(_shape(pair))
    return np.asarray(chances.ravel() / chances.sum())


def _shape(axes: tuple[int, ...]) -> list[int]:
    return [size if axis in axes else 1 for axis, size in enumerate(SIZES)]
