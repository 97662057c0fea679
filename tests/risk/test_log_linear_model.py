"""Log-linear fits against Newton's method, the check against its expectation, the risks against their series."""

from itertools import combinations, product
from math import exp, factorial

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise.risk._log_linear_model as log_linear
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import DataError
from equipoise.ground.packed_keys import Cube
from equipoise.risk._log_linear_model import Axes, check, choose, coefficients, fit, fits, reciprocal, risks


def cube_of(counts: np.ndarray) -> Cube:
    """The occupied cells of a table of counts."""
    seen = np.nonzero(counts)
    axes = tuple(pl.Series(range(size)) for size in counts.shape)
    return Cube(axes, tuple(codes.astype(np.uint8) for codes in seen), counts[seen], counts[seen].astype(float))


def everywhere(shape: tuple[int, ...]) -> list[np.ndarray]:
    return [axis.ravel() for axis in np.indices(shape)]


def newton(counts: np.ndarray, interactions: tuple[Axes, ...]) -> Floats:
    """Poisson regression on dummy variables, without a package: weighted least squares until it stands still."""
    shape, cells = counts.shape, np.stack(everywhere(counts.shape), axis=1)
    parts = [part for axes in interactions for size in range(2, len(axes) + 1) for part in combinations(axes, size)]
    columns = [np.ones(len(cells))]
    for axes in dict.fromkeys([*((axis,) for axis in range(len(shape))), *parts]):
        values = product(*(range(1, shape[axis]) for axis in axes))
        columns += [(cells[:, list(axes)] == value).all(axis=1).astype(float) for value in values]
    x, y = np.stack(columns, axis=1), counts.ravel().astype(float)
    mean = y + 0.5
    for _ in range(100):
        work = np.log(mean) + (y - mean) / mean
        beta = np.linalg.lstsq(np.sqrt(mean)[:, None] * x, np.sqrt(mean) * work, rcond=None)[0]
        mean = np.exp(x @ beta)
    return mean


PAIRS = tuple(combinations(range(4), 2))


@pytest.mark.parametrize(
    "interactions",
    [
        (),
        ((0, 1),),
        ((0, 1), (1, 2)),
        ((0, 1), (2, 3)),
        ((0, 1), (1, 2), (1, 3)),
        ((0, 1), (1, 2), (0, 2)),
        ((0, 1), (1, 2), (2, 3), (0, 3)),
        PAIRS,
        ((0, 1, 2),),
        ((0, 1, 2), (2, 3)),
    ],
)
def test_the_fit_is_that_of_newton(interactions: tuple[Axes, ...]) -> None:
    counts = np.random.default_rng(1).poisson(6.0, (2, 3, 4, 2)) + 1
    found = fit(cube_of(counts), interactions).at(everywhere(counts.shape))
    assert found == pytest.approx(newton(counts, interactions), rel=1e-6)


@given(st.lists(st.integers(0, 3), min_size=24, max_size=24).filter(any), st.sets(st.sampled_from(PAIRS[:3])))
def test_margins_are_met_also_where_cells_are_empty(values: list[int], pairs: set[Axes]) -> None:
    """What makes it the maximum likelihood fit: every fitted margin is the counted one, no mean below 0."""
    counts = np.array(values).reshape(2, 3, 4)
    means = fit(cube_of(counts), pairs).at(everywhere(counts.shape)).reshape(counts.shape)
    assert (means >= 0).all()
    for axes in [*pairs, (0,), (1,), (2,)]:
        gone = tuple({0, 1, 2} - set(axes))
        assert means.sum(axis=gone) == pytest.approx(counts.sum(axis=gone), abs=1e-4)


def test_slabs_are_the_whole_cross(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = np.random.default_rng(2).poisson(1.0, (3, 4, 5, 2))
    model = fit(cube_of(counts), [(0, 1), (1, 2), (0, 2)])
    whole = np.sort(model.at(everywhere(counts.shape)))
    for slab in (1, 7, 30, 10_000):
        monkeypatch.setattr(log_linear, "MAX_SLAB_CELLS", slab)
        assert np.sort(np.concatenate(list(model.slabs()))) == pytest.approx(whole)


def test_too_large_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    cube = cube_of(np.ones((4, 5, 6), dtype=np.int64))
    circle = [(0, 1), (1, 2), (0, 2)]
    monkeypatch.setattr(log_linear, "MAX_FITTED_CELLS", 100)
    assert not fits(cube, circle)
    assert fits(cube, circle[:2])
    with pytest.raises(DataError, match="120 cells together, more than 100"):
        fit(cube, circle)
    with pytest.raises(DataError, match="An interaction has 120 cells"):
        fit(cube, [(0, 1, 2)])
    monkeypatch.setattr(log_linear, "MAX_CHECKED_CELLS", 100)
    assert check(fit(cube, []), cube.codes, cube.n, 0.1) is None
    assert choose(cube, 0.1) == ()


def test_risks_are_those_of_the_poisson_law() -> None:
    """F - 1 given f = 1 is Poisson with mean (1 - pi) lambda: its law summed term by term."""
    fraction, lam = 0.2, np.array([0.0001, 0.3, 2.0, 9.0])
    unique, match = risks(fraction * lam, fraction)
    for mean, one, two in zip((1 - fraction) * lam, unique, match, strict=True):
        law = [exp(-mean) * mean**j / factorial(j) for j in range(60)]
        assert one == pytest.approx(law[0])
        assert two == pytest.approx(sum(p / (1 + j) for j, p in enumerate(law)))
    assert risks(np.array([3.0]), 1.0)[1].tolist() == [1.0]


def test_coefficients_are_derivatives() -> None:
    """a = -lambda exp(-mu) h', b = lambda exp(-mu) h'' / (2 pi), by differences; also where a series stands in."""
    fraction, rest = 0.1, 0.9
    lam, step = np.array([1e-4, 1e-3, 0.01, 0.5, 2.0, 8.0]), 1e-3

    def slopes(h: list[Floats]) -> tuple[Floats, Floats]:
        scale = lam * np.exp(-fraction * lam)
        return -scale * (h[2] - h[0]) / (2 * step), scale * (h[0] - 2 * h[1] + h[2]) / step**2 / (2 * fraction)

    points = [lam - step, lam, lam + step]
    series = [sum((-rest * point) ** j / factorial(j + 1) for j in range(60)) for point in points]
    known = slopes([np.exp(-rest * point) for point in points]), slopes([np.asarray(h) for h in series])
    for (a, b), (first, second) in zip(coefficients(lam, fraction), known, strict=True):
        assert a == pytest.approx(first, rel=1e-4)
        assert b == pytest.approx(second, rel=2e-4)


def test_the_check_adds_up_cell_by_cell() -> None:
    """As written: every cell, empty or not, with its own term and variance."""
    counts, fraction = np.random.default_rng(4).poisson(0.7, (3, 4, 5)), 0.05
    cube = cube_of(counts)
    model = fit(cube, [(0, 1)])
    found = check(model, cube.codes, cube.n, fraction)
    assert found is not None
    mu, f = model.at(everywhere(counts.shape)), counts.ravel()
    terms = []
    for a, b in coefficients(mu / fraction, fraction):
        terms += [(a * (f - mu) + b * ((f - mu) ** 2 - f)).sum(), np.sqrt((a**2 * mu + 2 * b**2 * mu**2).sum())]
    assert [found.uniques, found.uniques_error, found.matches, found.matches_error] == pytest.approx(terms)
    assert found.statistic == pytest.approx(terms[2] / terms[3])


def test_the_statistic_is_standard_normal_when_the_model_holds() -> None:
    draw, shape = np.random.default_rng(5), (6, 8, 10, 12)
    parts = [draw.dirichlet(np.full(size, 2.0)) for size in shape]
    law = np.einsum("a,b,c,d->abcd", *parts)
    tried = [
        check(fit(cube, []), cube.codes, cube.n, 0.05)
        for cube in (cube_of(draw.poisson(3_000 * law)) for _ in range(60))
    ]
    z = np.array([found.statistic for found in tried if found])
    assert len(z) == 60
    assert abs(z.mean()) < 0.5
    assert 0.7 < z.std() < 1.3


def test_the_search_finds_the_interaction() -> None:
    draw, shape = np.random.default_rng(6), (8, 10, 12, 14)
    law = np.einsum("a,b,c,d->abcd", *(draw.dirichlet(np.full(size, 2.0)) for size in shape))
    law = law * np.exp(draw.normal(0, 1.2, shape[1:3]))[None, :, :, None]
    cube = cube_of(draw.poisson(4_000 * law / law.sum()))
    alone = check(fit(cube, []), cube.codes, cube.n, 0.05)
    assert alone is not None
    assert alone.statistic > 10
    chosen = choose(cube, 0.05)
    assert chosen == ((1, 2),)
    after = check(fit(cube, chosen), cube.codes, cube.n, 0.05)
    assert after is not None
    assert after.statistic < 1.96


def test_reciprocal_near_zero() -> None:
    x = np.array([0.0, 1e-300, 1e-12, 1e-3, 700.0])
    assert reciprocal(x) == pytest.approx([1, 1, 1 - 5e-13, 1 - 5e-4 + 1e-6 / 6, 1 / 700], rel=1e-9)
