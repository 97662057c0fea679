"""Controlled tabular adjustment against enumeration of directions by another solver, and its promises."""

from itertools import product

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog

import equipoise as eq
from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import additive
from equipoise.ground.randomness import Draws
from equipoise.methods.protection_levels import levels
from equipoise.rules import MinCount, PPercent
from equipoise.tables import Adjust


def made(sizes: tuple[int, ...], n: int, seed: int, value: bool = True) -> Table:
    random = np.random.default_rng(seed)
    columns = {f"d{i}": random.integers(0, size, n).astype(str) for i, size in enumerate(sizes)}
    frame = pl.DataFrame({**columns, "v": np.round(random.lognormal(3, 1.2, n))})
    tree = eq.Hierarchy.mapping({"0": "a", "1": "a", "2": "b", "3": "b"})
    roles = eq.Roles(hierarchies={"d0": tree} if sizes[0] == 4 else {})
    return eq.table(eq.Records.of(frame, roles), list(columns), "v" if value else None)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("sizes", "n", "value", "rule"),
    [((4, 3), 40, True, PPercent(0.1)), ((4, 3), 40, False, MinCount(3)), ((3, 3, 2), 60, True, PPercent(0.15))],
)
def test_sensitive_cells_are_at_their_levels_and_everything_adds_up(seed, sizes, n, value, rule) -> None:
    table = made(sizes, n, seed, value)
    found = Adjust(rule, seconds=10.0).apply(table, Draws(seed))
    change, known = found.published_values - table.published_values, levels(rule, table)
    lower, upper = known["lower"].to_numpy(), known["upper"].to_numpy()
    flagged = rule.flag(table).to_numpy()
    slack = 1e-6 * np.maximum(upper, 1e-3)
    assert ((change >= upper - slack) | (change <= -lower + slack))[flagged].all()
    assert np.abs(additive(table).residuals(found.published_values)).max() < 1e-6
    assert (found.published_values >= 0).all()
    assert (found.published_values[table.published_values == 0] == 0).all()
    assert (np.abs(change[~flagged]) <= table.published_values[~flagged] + 1e-6).all()
    if not value:
        assert np.array_equal(found.published_values, np.round(found.published_values))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("distance", ["relative", "absolute"])
def test_the_change_is_the_least_of_all_directions(seed: int, distance: str) -> None:
    """Every choice of up and down, each by linear programming in SciPy over a dense matrix."""
    table, rule = made((3, 3), 30, seed), PPercent(0.1)
    x, known = table.published_values, levels(rule, table)
    flagged = np.flatnonzero(rule.flag(table).to_numpy())
    assert 0 < len(flagged) <= 9
    weight = 1 / np.maximum(x, 1e-9) if distance == "relative" else np.ones(len(x))
    matrix = additive(table).matrix.toarray()
    best = np.inf
    for up in product((0, 1), repeat=len(flagged)):
        bounds = [(0.0, v) for v in x] * 2
        for cell, way in zip(flagged, up, strict=True):
            low, high = known["lower"][int(cell)], known["upper"][int(cell)]
            bounds[cell] = (high, 4 * high) if way else (0.0, 0.0)
            bounds[len(x) + cell] = (0.0, 0.0) if way else (low, min(4 * low, x[cell]))
        solved = linprog(
            np.tile(weight, 2), A_eq=np.hstack([matrix, -matrix]), b_eq=np.zeros(len(matrix)), bounds=bounds
        )
        best = min(best, solved.fun) if solved.status == 0 else best
    found = Adjust(rule, distance).apply(table, Draws(seed))
    mine = (weight * np.abs(found.published_values - x)).sum()
    assert best * (1 - 1e-6) <= mine <= best * 1.02


def test_nothing_sensitive_is_nothing_changed() -> None:
    table = made((3, 2), 200, 1, value=False)
    found = Adjust(MinCount(1)).apply(table, Draws(1))
    assert np.array_equal(found.published_values, table.published_values)
    assert "No cell" in found.history[0].words


def test_no_room_to_move_is_said() -> None:
    with pytest.raises(eq.InfeasibleError, match="further"):
        Adjust(PPercent(0.5), most=1e-6).apply(made((3, 3), 30, 1), Draws(1))


@pytest.mark.parametrize("bad", [{"rule": 3}, {"distance": "far"}, {"most": 20}, {"seconds": -1}])
def test_parameters_that_make_no_sense(bad: dict) -> None:
    with pytest.raises(eq.ParameterError):
        Adjust(**{"rule": PPercent(0.1)} | bad)


def test_cells_that_tell_about_a_group_move_the_only_way_that_hides_it() -> None:
    """Everybody in group a is p: the full cell goes down, the empty one beside it up, and the audit passes."""
    people = pl.DataFrame({"k": [*"a" * 20, *"b" * 20], "ill": [*"p" * 20, *"p" * 8, *"q" * 12]})
    made = eq.table(eq.Records.of(people, eq.Roles()), ["k", "ill"])
    rule = eq.rules.GroupDisclosure(columns="ill")
    found = Adjust(rule).apply(made, Draws(1)).table
    moved = {row[:2]: row[2] for row in found.select("k", "ill", "published").rows()}
    assert moved["a", "q"] >= 1
    assert moved["a", "p"] <= 19
    for k in ("a", "b", "Total"):
        assert moved[k, "p"] + moved[k, "q"] == moved[k, "Total"]
    assert eq.tabulate(eq.Records.of(people, eq.Roles()), ["k", "ill"], method=Adjust(rule)).counts["exposed"] == 0
    zeros = Adjust(eq.rules.Zero(empty=True)).apply(made, Draws(1)).table
    assert zeros.filter(k="a", ill="q")["published"].item() >= 1
