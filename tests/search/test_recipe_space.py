"""Families as lattices, their scales, the surfaces over them, and what lies beyond a bad trial."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import multivariate_normal

import equipoise as eq
from equipoise.masks import Noise, Recode, TopCode
from equipoise.policies.sections import Candidate
from equipoise.recipe.recipe import recipes
from equipoise.search._adaptive.gaussian_process import Surface, _kernel
from equipoise.search._adaptive.search_state import Plot, beyond, corners, middle
from equipoise.search.adaptive_search import correlation, improvement
from equipoise.search.recipe_space import described, everywhere, fine, first_of, pooled

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


@pytest.mark.parametrize(
    ("ends", "whole", "words"),
    [
        ({"from": 1, "to": 10**400}, False, "not too large"),
        ({"from": -1.7e308, "to": 1.7e308}, False, "not too large"),
        ({"from": 0, "to": 10**12}, True, "at most 100,000 of them"),
        ({"from": 0, "to": 1, "steps": 10**9}, False, "steps must be a whole number"),
        ({"from": 0, "to": 1, "steps": "c"}, False, "steps must be a whole number"),
    ],
)
def test_a_range_that_no_memory_or_float_holds_is_refused(ends: dict[str, Any], whole: bool, words: str) -> None:
    with pytest.raises(eq.ParameterError, match=words):
        fine(ends, whole)


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
    """By hand: the entropy of the column, one measure for all; joint bits and a forecast are axes more."""
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
    assert points.shape == (2, 4)
    assert points[0, :3].tolist() == pytest.approx([max(made.scales[0]), max(made.scales[1]), 1.0])


def test_two_masks_on_one_column_are_one_axis(people_records: eq.Records) -> None:
    """What is left of a column after both, by hand; places that keep the same apart are as fine as each other."""
    masks = (
        {"use": "top_code", "column": "age", "at": [40, 60, 80]},
        {"use": "recode", "column": "age", "level": ["5", "10"]},
    )
    (made,) = the([Candidate(masks=masks)], people_records)
    (column,) = made.columns
    assert (column.axes, column.sizes) == ((0, 1), (3, 2))
    points = list(everywhere(made))
    table = {p: made.recipe(p).run(people_records).collect()["age"] for p in points}
    assert column.bits[column.at(points)].tolist() == pytest.approx([_bits(table[p]) for p in points])
    found, turned = column.finer(points, points), column.coarser(points, points)
    joint = [[_bits(table[p].cast(str) + "|" + table[q].cast(str)) for q in points] for p in points]
    by_hand = np.isclose(np.array(joint), np.array([_bits(table[p]) for p in points])[:, None])
    assert (found == by_hand).all()
    assert (turned == by_hand.T).all()


def _bits(values: Any) -> float:
    n = values.value_counts()["count"].to_numpy()
    return float(-(n / n.sum() * np.log2(n / n.sum())).sum())


def test_what_does_more_than_coarsen_has_no_partitions(people_records: eq.Records) -> None:
    (made,) = the([Candidate(masks=({**NOISE, "scale": [0.1, 0.2]},))], people_records)
    assert made.columns == ()
    assert Plot(made).groups == [[0]]


def test_the_forecast_of_who_is_alone() -> None:
    """Against a file of independent columns: the share of uniques, within a few per cent."""
    rng = np.random.default_rng(4)
    table = pl.DataFrame({name: rng.integers(0, 30, 4000) for name in "abc"})
    trees = {name: eq.Hierarchy.intervals([2, 6, 30]) for name in "ab"}
    records = eq.read(table, eq.Roles(list("abc"), hierarchies=trees))
    (made,) = the([Candidate(coarsenings=True)], records)
    points = list(everywhere(made))
    forecast = Plot(made).unit(points)[:, -1]
    counted = [eq.risk.Uniques().measure(r, records).value for r in (made.recipe(p).run(records) for p in points)]
    assert forecast == pytest.approx(counted, abs=0.03)


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
    white = scaled @ np.linalg.inv(known) @ scaled
    assert sd == pytest.approx(values.std() * np.sqrt(left * (white + 3) / (7 + 3)))
    from equipoise.search._adaptive.gaussian_process import _likelihood

    high = (white + 3) / 10
    density = multivariate_normal(np.zeros(7), known * high).logpdf(scaled) + 7 / 2 * np.log(2 * np.pi)
    prior = -3 / 2 * (np.log(high) + 1 / high)
    assert _likelihood(points, scaled, shape) == pytest.approx(float(density + prior + 5))


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


def test_coarser_places_are_beyond_by_the_order_of_levels(people_records: eq.Records) -> None:
    """From the first trial on; not where two trials contradict it."""
    (made,) = the([Candidate(coarsenings=True)], people_records)
    plot = Plot(made)
    for point, value in (((1, 1), 0.5), ((3, 2), 0.1)):
        plot.tried[point] = eq.Trial(made.recipe(point), [eq.Score("uniques", value, "lower")])
    risk, bad = np.array([0.5, 0.1]), np.array([True, False])
    asked = [(0, 0), (1, 0), (2, 0), (3, 2)]
    assert plot.beyond(asked, risk, bad, fine=True).tolist() == [True, True, False, False]
    assert plot.beyond(asked, -risk, bad, fine=False).tolist() == [False, False, False, True]
    assert not plot.beyond(asked, np.array([0.1, 0.5]), bad, fine=True).any()


def test_improvement_by_simulation() -> None:
    """The expected improvement inside a limit against draws of the two normal laws with their correlation."""
    rng = np.random.default_rng(5)
    points = rng.uniform(0, 1, (12, 1))
    loss = -points[:, 0] + rng.normal(0, 0.2, 12)
    room = 0.6 - points[:, 0] + 0.8 * (loss + points[:, 0]) + rng.normal(0, 0.1, 12)
    behind, inside = Surface.through(points, loss), Surface.through(points, room)
    ask = np.array([[0.4], [0.8]])
    (m, s), (n, t) = behind.at(ask), inside.at(ask)
    rho = correlation(behind.white, inside.white)
    assert rho > 0.3
    z, w = rng.normal(size=(2, 400_000))
    drawn = [
        float((np.maximum(-(m[i] + s[i] * z), 0) * (n[i] + t[i] * (rho * z + np.sqrt(1 - rho**2) * w) > 0)).mean())
        for i in range(2)
    ]
    assert improvement(behind, [inside], ask).tolist() == pytest.approx(drawn, rel=0.03, abs=1e-3)
