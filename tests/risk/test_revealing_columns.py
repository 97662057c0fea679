"""Columns beside the keys that single people out: exact counts, by hand and by enumeration."""

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.masks import Microaggregate, Noise, Recode, Renumber
from equipoise.recipe.recipe import Recipe
from equipoise.risk import RevealingColumns
from equipoise.risk._links_of_all import linked_points


def records(**columns: list[object]) -> eq.Records:
    return eq.read(pl.DataFrame({"key": [1] * len(next(iter(columns.values()))), **columns}), eq.Roles("key"))


def test_a_pair_singles_out_whom_no_column_does() -> None:
    file = records(a=["x", "x", "x", "y", "y", "y"], b=["m", "m", "m", "m", "m", "w"])
    detail = RevealingColumns().measure(file, file).detail
    shares = {(row["column"], row["beside"]): row["number"] for row in detail.iter_rows(named=True)}
    assert shares[("a", None)] == 0
    assert shares[("b", None)] == 1
    assert max(n for (_, beside), n in shares.items() if beside) == 3  # (y, m) twice and (y, w) once


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_unchanged_columns_are_counted_exactly(rows: list[tuple[int, int, int]]) -> None:
    file = records(**{name: [row[i] for row in rows] for i, name in enumerate("abc")})
    expected = 0
    for size in (1, 2):
        for places in combinations(range(3), size):
            values = [tuple(row[i] for i in places) for row in rows]
            expected = max(expected, sum(values.count(value) < 3 for value in values))
    assert RevealingColumns().measure(file, file).value == pytest.approx(expected / len(rows), abs=1e-3)


def test_that_a_value_is_missing_is_known() -> None:
    file = records(rent=[None, None, 5.0, 5.0, 5.0, 6.0])
    assert RevealingColumns().measure(file, file).number == 3


def test_missing_numbers_among_changed_ones() -> None:
    """The two people without a rent are found, whatever the noise on the others, beside those nearest to their own."""
    rng = np.random.default_rng(6)
    file = records(rent=[None, None, *rng.normal(0, 1, 200)])
    noisy = Recipe((Noise(("rent",), 1.0),), 1).run(file)
    x, y = (side.collect()["rent"].to_numpy()[2:] for side in (file, noisy))
    nearest = int((np.abs(x[:, None] - y[None, :]).argmin(axis=1) == np.arange(200)).sum())
    assert RevealingColumns().measure(noisy, file).number >= nearest + 2


def test_pairs_of_changed_numbers_are_tried_in_every_scale() -> None:
    """Alone the ranks find most, together the values: noise is small beside the few large ones."""
    rng = np.random.default_rng(5)
    table = {c: np.exp(rng.normal(0, 1.5, 300)).tolist() for c in "ab"}
    file = records(**table)
    noisy = Recipe((Noise(("a", "b"), 0.4),), 1).run(file)
    x, y = (side.collect().select("a", "b").to_numpy() for side in (file, noisy))
    scale = np.sqrt(((x - y) ** 2).mean(axis=0))
    gaps = (((x[:, None, :] - y[None, :, :]) / scale) ** 2).sum(axis=2)
    assert RevealingColumns().measure(noisy, file).number >= int((gaps.argmin(axis=1) == np.arange(300)).sum())


def test_keys_and_ids_and_declared_columns_do_not_count() -> None:
    table = pl.DataFrame({"age": range(9), "id": range(9), "name": list("abcdefghi"), "rent": range(9)})
    file = eq.read(table, eq.Roles("age", id="id", direct="name"))
    assert RevealingColumns().measure(file, file).detail["column"].to_list() == ["rent"]
    assert RevealingColumns(unknown=("rent",)).measure(file, file).value == pytest.approx(0.0)


def test_new_numbers_are_known_to_nobody() -> None:
    file = eq.read(pl.DataFrame({"age": [1] * 6, "home": range(6)}), eq.Roles("age", household="home"))
    assert RevealingColumns().measure(file, file).value == pytest.approx(1.0)
    assert RevealingColumns().measure(Recipe((Renumber(),), 1).run(file), file).value == pytest.approx(0.0)


def test_coarser_values_lead_to_their_class() -> None:
    tree = eq.Hierarchy.intervals([10])
    table = pl.DataFrame({"key": [1] * 7, "rent": [10, 11, 12, 13, 20, 21, 35]})
    file = eq.read(table, eq.Roles("key", hierarchies={"rent": tree}))
    assert RevealingColumns().measure(Recipe((Recode("rent", "10"),), 1).run(file), file).number == 3


def test_changed_numbers_lead_to_the_nearest() -> None:
    """Noise far below the gaps finds everybody; far above them hardly anybody; groups of 3 nobody."""
    rng = np.random.default_rng(3)
    file = records(rent=sorted(rng.uniform(0, 1000, 400)))
    share = [RevealingColumns().measure(Recipe((Noise(("rent",), s),), 1).run(file), file).value for s in (1e-6, 1.0)]
    assert share[0] > 0.95
    assert share[1] < 0.05
    grouped = Recipe((Microaggregate(("rent",), 3),), 1).run(file)
    assert RevealingColumns().measure(grouped, file).value == pytest.approx(0.0)


def test_files_of_other_people_count_as_unchanged() -> None:
    file, other = records(rent=[1, 2, 3, 4]), records(rent=[1, 1, 1, 7, 8])
    assert RevealingColumns().measure(other, file).number == 2


def test_everybody_is_linked_at_once_by_rank_within_categories() -> None:
    """Numbers that rose here and fell there lead to a neighbour one by one, and to their own record in order."""
    rooms = np.repeat(np.arange(40), 5)
    rent = 100.0 * np.tile(np.arange(5), 40) + 7 * rooms
    moved = rent + np.where(rooms % 2, 160.0, -160.0)
    original = eq.Records.of(pl.DataFrame({"rooms": rooms, "rent": rent}), eq.Roles())
    released = eq.Records.of(pl.DataFrame({"rooms": rooms, "rent": moved}), eq.Roles())
    assert RevealingColumns().measure(released, original).value == 1.0


def test_numbers_of_all_sizes_and_signs_are_compared_by_their_logarithms() -> None:
    random = np.random.default_rng(1)
    true = np.exp(random.normal(0, 6, (400, 2))) * random.choice([-1, 1], (400, 2))
    shown = true * np.exp(random.normal(0, 0.3, (400, 2)))
    files = [eq.Records.of(pl.DataFrame(side, schema=["debt", "income"]), eq.Roles()) for side in (shown, true)]
    logs = [np.sign(side) * 100 + np.log(np.abs(side)) for side in (true, shown)]
    distances = np.linalg.norm(logs[0][:, None] - logs[1], axis=2)
    assert RevealingColumns().measure(*files).value >= float((distances.argmin(axis=1) == np.arange(400)).mean())


def test_changes_that_go_together_are_taken_together() -> None:
    """The difference of two numbers that were moved alike is nearly as it was."""
    random = np.random.default_rng(2)
    true, common = random.normal(0, 1, (500, 2)), random.normal(0, 1, (500, 1))
    shown = true + common + random.normal(0, 0.02, (500, 2))
    files = [eq.Records.of(pl.DataFrame(side, schema=["one", "two"]), eq.Roles()) for side in (shown, true)]
    difference = [side[:, 0] - side[:, 1] for side in (true, shown)]
    nearest = np.abs(difference[0][:, None] - difference[1]).argmin(axis=1)
    assert RevealingColumns().measure(*files).value > float((nearest == np.arange(500)).mean()) > 0.05


def test_a_number_too_far_for_a_distance_links_nobody_elsewhere() -> None:
    """Before, the tree's place for no point was taken for one: outside of the matrix, and of its memory."""
    line = np.array([[0.0], [1.0], [5.0], [1e308]])
    for place, at in linked_points(line, line):
        assert at.max() < 4
        assert (at == place)[:3].all()


def test_numbers_at_both_ends_of_the_range_and_the_least_change_there_is() -> None:
    """Each was an internal error: an index beyond the points, and a point that is no number."""
    ends = np.array([[0.0], [1.0], [5.0], [1e308], [-1e308]])
    moved = np.where(ends == 0, 5e-324, ends)
    for place, at in [*linked_points(ends, ends), *linked_points(ends, moved)]:
        assert at.max() < 5
        assert (at == place)[1:3].all()


def test_nested_columns_are_looked_up_whole() -> None:
    """A file with a column of lists could not be assessed, protected or proposed for at all."""
    table = pl.DataFrame(
        {
            "age": [20, 20, 30, 30] * 3,
            "codes": [["a", "b"], ["a"], ["a"], ["c"]] + [["a"]] * 8,
            "home": [{"x": 1}] * 11 + [{"x": 2}],
            "scan": [b"same"] * 12,
        }
    )
    records = eq.read(table, eq.Roles("age"))
    shares = eq.risk.RevealingColumns(k=2).table(records, records)[0]
    alone = shares.filter(pl.col("beside").is_null())
    assert dict(alone.select("column", "share").rows()) == {"codes": 2 / 12, "home": 1 / 12, "scan": 0.0}
