"""Families as lattices, their scales, the surfaces over them, and what lies beyond a bad trial."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import equipoise as eq
from equipoise.flow.family import described, everywhere, fine, first_of, pooled
from equipoise.flow.plot import Plot, beyond, corners, middle
from equipoise.flow.policy_parts import Candidate
from equipoise.flow.recipe import recipes
from equipoise.flow.surface import Surface, _kernel
from equipoise.masks import Noise, Recode, TopCode

NOISE = {"use": "noise", "columns": ["salary"]}


def the(candidates: list[Candidate], records: eq.Records) -> Any:
    found = described(candidates, records, 5)
    assert found is not None
    return found


def test_every_place_of_a_grid_is_a_recipe_of_it(people_records: eq.Records) -> None:
    """Lists keep their order; the lattice of coarsenings is all of them."""
    masks = ({"use": "recode", "column": "age", "level": ["5", "10"]}, {**NOISE, "scale": [0.1, 0.2, 0.4]})
    lattice, listed = the([Candidate(coarsenings=True, masks=masks)], people_records)
    assert {lattice.recipe(p).masks for p in everywhere(lattice)} == {r.masks for r in eq.coarsenings(people_records)}
    assert (lattice.grid, lattice.span) == (20, 20)
    assert listed.sizes == (2, 3)
    assert listed.recipe((1, 2)) == eq.Recipe([Recode("age", "10"), Noise(("salary",), 0.4)])
    assert listed.recipe((1, 2)).seed == 5
    assert first_of([listed]).masks[0] == Recode("age", "5")


def test_ranges_are_as_good_as_continuous_and_have_their_steps(people_records: eq.Records) -> None:
    (made,) = the([Candidate(masks=({**NOISE, "scale": {"from": 0.1, "to": 0.9, "steps": 5}},))], people_records)
    scales = [made.recipe(point).masks[0].scale for point in everywhere(made)]
    assert len(scales) == 129
    assert (made.grid, scales[::32]) == (5, pytest.approx([0.1, 0.3, 0.5, 0.7, 0.9]))
    assert fine({"from": 2, "to": 5}, True) == (2, 3, 4, 5)
    (open_,) = the([Candidate(masks=({**NOISE, "scale": {"from": 0.1, "to": 0.9}},))], people_records)
    assert (open_.grid, open_.span) == (20, 129)


def test_what_is_written_in_another_way_is_left_to_the_recipes(people_records: eq.Records) -> None:
    assert described([Candidate(masks=({"use": ["noise", "shuffle"]},))], people_records, 5) is None


def test_a_range_beyond_what_a_mask_takes_is_refused_at_once(people_records: eq.Records) -> None:
    with pytest.raises(eq.ParameterError, match="above 0"):
        described([Candidate(masks=({**NOISE, "scale": {"from": -1, "to": 1}},))], people_records, 5)


def test_recipes_are_placed_by_what_differs(people_records: eq.Records) -> None:
    """Masks left out come first, numbers by size, other values as they come; recipes of other kinds apart."""
    given = [
        *recipes([None, *eq.grid(TopCode, column="age", at=[80, 60, 70])], [Recode("area", "3"), Recode("area", "1")]),
        eq.Recipe([Noise(("salary",), 0.3)]),
    ]
    coded, noisy = pooled(given, people_records)
    assert coded.sizes == (4, 2)
    assert coded.recipe((0, 0)).masks == (Recode("area", "3"),)  # type: ignore[union-attr]
    assert [coded.recipe((i, 1)).masks[0].at for i in (1, 2, 3)] == [60, 70, 80]  # type: ignore[union-attr]
    assert (coded.grid, coded.points) == (8, ())
    assert (noisy.sizes, noisy.span, noisy.recipe(())) == ((), 1, given[-1])


def test_places_that_are_not_taken(people_records: eq.Records) -> None:
    given = recipes(eq.grid(TopCode, column="age", at=[60, 70]), eq.grid(Recode, column="area", level=["3", "1"]))[:3]
    (made,) = pooled(given, people_records)
    assert (made.span, made.recipe((1, 1))) == (3, None)
    assert set(corners(made)) <= set(made.points)


def test_coarsenings_stand_where_their_bits_are(people_records: eq.Records) -> None:
    """By hand: the entropy of the coarsened column, in one measure for all columns; the joint bits as an axis more."""
    (made,) = the([Candidate(coarsenings=True)], people_records)

    def bits(recipe: eq.Recipe, column: str) -> float:
        n = np.array(recipe.run(people_records).collect(column)[column].value_counts()["count"])
        return float(-(n / n.sum() * np.log2(n / n.sum())).sum())

    area = [bits(made.recipe((level, 0)), "area") for level in range(made.sizes[0])]
    age = [bits(made.recipe((0, level)), "age") for level in range(made.sizes[1])]
    unit = max(np.ptp(area), np.ptp(age))
    assert made.scales[0] == pytest.approx((np.array(area) - min(area)) / unit)
    assert made.scales[1] == pytest.approx((np.array(age) - min(age)) / unit)
    points = Plot(made).unit([(0, 0), (1, 2)])
    assert points.shape == (2, 3)
    assert points[0].tolist() == pytest.approx([max(made.scales[0]), max(made.scales[1]), 1.0])


def test_wide_ranges_are_walked_by_factors(people_records: eq.Records) -> None:
    (made,) = the([Candidate(masks=({**NOISE, "scale": {"from": 0.01, "to": 1, "steps": 5}},))], people_records)
    assert made.scales[0][[0, -1]].tolist() == [0.0, 1.0]
    at = middle(made.scales[0], 0, 128)
    assert made.recipe((at,)).masks[0].scale == pytest.approx(0.1, rel=0.1)


# --- surfaces -----------------------------------------------------------------------------------------------------


def test_a_surface_is_a_conditional_normal_law() -> None:
    """Mean and variance at a point by the joint covariance, written out; the likelihood by SciPy's density."""
    rng = np.random.default_rng(2)
    points, values, ask = rng.uniform(0, 1, (7, 2)), rng.normal(3, 2, 7), rng.uniform(0, 1, (3, 2))
    shape = (np.array([0.5, 1.0]), 0.01)
    mean, sd = Surface.through(points, values, shape).at(ask)
    scaled = (values - values.mean()) / values.std()
    both = np.vstack([points, ask])
    joint = _kernel(both, both, shape[0])
    far = np.sqrt(((both[:, None, :] / shape[0] - both[None, :, :] / shape[0]) ** 2).sum(axis=2))
    by_hand = (1 + np.sqrt(5) * far + 5 * far**2 / 3) * np.exp(-np.sqrt(5) * far) + (both - 0.5) @ (both - 0.5).T
    assert joint == pytest.approx(by_hand)
    known = by_hand[:7, :7] + 0.01 * np.eye(7)
    weight = by_hand[7:, :7] @ np.linalg.inv(known)
    assert mean == pytest.approx(values.mean() + values.std() * (weight @ scaled))
    left = np.diag(by_hand[7:, 7:] - weight @ by_hand[:7, 7:])
    assert sd == pytest.approx(values.std() * np.sqrt(left))
    from equipoise.flow.surface import _likelihood

    density = multivariate_normal(np.zeros(7), known).logpdf(scaled) + 7 / 2 * np.log(2 * np.pi)
    assert _likelihood(points, scaled, shape) == pytest.approx(float(density))


def test_a_surface_finds_the_axis_that_matters_and_the_chance() -> None:
    rng = np.random.default_rng(3)
    points = rng.uniform(0, 1, (40, 2))
    waves = np.sin(7 * points[:, 0])
    lengths, nugget = Surface.through(points, waves).shape
    assert lengths[0] < lengths[1]
    assert nugget <= 1e-3
    assert Surface.through(points, waves + rng.normal(0, 0.3, 40)).shape[1] >= 1e-2


def test_beyond_needs_one_direction() -> None:
    tried = np.array([[0.0, 0.0], [0.5, 0.5], [1.0, 1.0], [1.0, 0.0]])
    risk = np.array([0.0, 0.4, 1.0, 0.5])
    ask = np.array([[0.6, 0.6], [0.4, 0.9], [1.0, 0.2], [0.2, 0.1]])
    assert beyond(ask, tried, risk, risk >= 0.4).tolist() == [True, False, True, False]
    assert not beyond(ask, tried, np.array([0.0, 1.0, 0.2, 0.5]), risk >= 0.4).any()
    assert not beyond(ask, tried, risk, risk > 2).any()
