"""t-closeness: the published example, and the earth mover's distance by linear programming."""

from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.data.cells import Cells
from equipoise.data.equivalence_classes import Classes

TREE = {"a": ("v", "*"), "e": ("v", "*"), "b": ("c", "*"), "d": ("c", "*"), "f": ("c", "*")}


def cells_of(groups: list[Any], values: list[Any], **trees: eq.Hierarchy) -> Cells:
    table = pl.DataFrame({"group": groups, "x": values})
    return Cells.of(table.group_by("group", "x").agg(n=pl.len()), hierarchies=trees)


def distances(rule: eq.rules.Closeness, cells: Cells) -> list[float]:
    return rule.distances(Classes.of(cells, ("x",)).split("x")).tolist()


def test_the_published_salaries() -> None:
    """Li et al. (2007): {3k, 4k, 5k} and {6k, 8k, 11k} among 3k to 11k are 0.375 and 0.167 away."""
    groups, pay = ["1"] * 3 + ["2"] * 3 + ["3"] * 3, [3, 4, 5, 6, 8, 11, 7, 9, 10]
    cells = cells_of(groups, [1000 * p for p in pay])
    found = distances(eq.rules.Closeness("x", distance="ordered"), cells)
    assert found[:2] == pytest.approx([0.375, 1 / 6])
    flags = eq.rules.Closeness("x", 0.3, distance="ordered").flag(cells)
    assert set(cells.table.filter(flags)["group"]) == {"1"}


def moved(p: Any, q: Any, cost: Any) -> float:
    """The earth mover's distance as a transport problem."""
    from scipy.optimize import linprog

    m = len(p)
    rows = [[float(i == k) for i, _ in product(range(m), repeat=2)] for k in range(m)]
    columns = [[float(j == k) for _, j in product(range(m), repeat=2)] for k in range(m)]
    done = linprog(np.ravel(cost), A_eq=rows + columns, b_eq=[*p, *q], bounds=(0, None))
    return float(done.fun)


def ground(distance: str, values: list[str]) -> Any:
    m = len(values)
    if distance == "equal":
        return 1 - np.eye(m)
    if distance == "ordered":
        return np.abs(np.subtract.outer(np.arange(m), np.arange(m))) / max(1, m - 1)
    height = lambda a, b: 0 if a == b else 1 if TREE[a][0] == TREE[b][0] else 2
    return np.array([[height(a, b) / 2 for b in values] for a in values])


@given(
    rows=st.lists(st.tuples(st.integers(0, 2), st.sampled_from("abdef")), min_size=2, max_size=25),
    distance=st.sampled_from(["equal", "ordered", "hierarchical"]),
)
def test_the_distance_is_the_least_work(rows: list[tuple[int, str]], distance: Any) -> None:
    groups, values = [g for g, _ in rows], sorted({v for _, v in rows})
    cells = cells_of(groups, [v for _, v in rows], x=eq.Hierarchy.mapping(TREE))
    share = lambda which: [sum(v == w for w in which) / len(which) for v in values]
    q = share([v for _, v in rows])
    wanted = [moved(share([v for h, v in rows if h == g]), q, ground(distance, values)) for g in sorted(set(groups))]
    assert distances(eq.rules.Closeness("x", distance=distance), cells) == pytest.approx(wanted, abs=1e-7)


def test_a_distance_needs_its_hierarchy() -> None:
    rule = eq.rules.Closeness("x", distance="hierarchical")
    with pytest.raises(eq.ParameterError, match="no hierarchy"):
        rule.flag(cells_of(["1", "2"], ["a", "b"]))
    two = eq.Hierarchy.mapping(TREE) | eq.Hierarchy.prefix(3)
    with pytest.raises(eq.ParameterError, match="several"):
        rule.flag(cells_of(["1", "2"], ["a", "b"], x=two))


def test_a_tree_without_a_root_gets_one() -> None:
    groups = {value: above[:1] for value, above in TREE.items()}
    short, full = (eq.Hierarchy.mapping(tree) for tree in (groups, TREE))
    found = [
        distances(eq.rules.Closeness("x", distance="hierarchical"), cells_of([1, 1, 2, 2], list("abed"), x=tree))
        for tree in (short, full)
    ]
    assert found[0] == pytest.approx(found[1])
