"""Folds: the classes at any node are those of a recount."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.coarsening import cells_at_nodes as module
from equipoise.coarsening.coded_levels import CodedLevels
from equipoise.search._best_coarsening.nodes import lattice_of, walk


def records(seed: int, size: int = 200) -> eq.Records:
    rng = np.random.default_rng(seed)
    table = pl.DataFrame(
        {
            "a": rng.integers(0, 40, size),
            "b": rng.choice(["xx", "xy", "yx", "zz"], size),
            "c": [["p", "q", None][i] for i in rng.integers(0, 3, size)],
            "s": rng.choice(["u", "v"], size),
        }
    )
    trees = {
        "a": eq.Hierarchy.intervals([5, 10], root=True) | eq.Hierarchy.intervals(3),
        "b": eq.Hierarchy.prefix(1, root=True),
    }
    return eq.read(table, eq.Roles(["a", "b", "c"], hierarchies=trees))


@given(seed=st.integers(0, 20), split=st.booleans(), wide=st.booleans())
def test_every_node_is_a_recount(seed: int, split: bool, wide: bool) -> None:
    """Walking, jumping, with sensitive values or without, packed in one integer or numbered."""
    data = records(seed)
    rule = eq.rules.Diversity("s", 2) if split else eq.rules.MinCount(2)
    with pytest.MonkeyPatch.context() as patch:
        if wide:
            patch.setattr(module, "MAX_PACKED_ID", 8)
        lattice = lattice_of(eq.count(data, ("a", "b", "c", "s")), ("a", "b", "c"), rule)
        assert lattice.folds.wide == wide
        cells = eq.count(data)
        rng = np.random.default_rng(seed)
        folds = list(walk(lattice))
        assert len({fold.levels for fold in folds}) == lattice.nodes == 15
        for i in rng.permutation(len(folds)):
            levels = folds[i].levels
            names = [ladder.names[level] for ladder, level in zip(lattice.ladders, levels, strict=True)]
            changes = {k: n for k, n in zip(("a", "b"), names, strict=False) if n != "original"}
            wanted = sorted(cells.roll_up(changes).n.tolist())
            for fold in (folds[i], lattice.folds.at(levels)):
                classes, stand = lattice.folds.classes(fold)
                assert sorted(classes.n.tolist()) == wanted
                assert len(stand) == len(classes)
                assert classes.rows.sum() == 200


def test_the_shelf_lets_old_folds_go() -> None:
    """Room for few: the first fold stays, and every node is still right."""
    data = records(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_KEPT_CLASSES", 400)
        patch.setattr(module, "MAX_KEPT_FOLDS", 4)
        lattice = lattice_of(eq.count(data), ("a", "b", "c"), eq.rules.MinCount(2))
        for fold in walk(lattice):
            assert lattice.folds.at(fold.levels).n.tolist() == fold.n.tolist()
        held = [fold for fold in lattice.folds.cache.folds if fold is not None]
        assert held[0] is lattice.folds.base
        assert len(held) <= 4


def test_shares_count_leaves_that_nobody_has() -> None:
    """The domain is the rows of the hierarchy, as in ARX: ages 1 to 100 though ages 17 to 90 occur."""
    rows = {str(age): (f"{(age - 1) // 20}", "*") for age in range(1, 101)}
    ladder, _ = CodedLevels.of("age", pl.Series([17, 18, 90]), np.array([1, 1, 1]), eq.Hierarchy.mapping(rows))
    assert ladder.domain == 100
    assert [share.tolist() for share in ladder.shares] == [[0.01] * 3, [0.2] * 3, [1.0] * 3]
    assert ladder.chain


def test_values_beside_the_hierarchy_are_leaves_too() -> None:
    tree = eq.Hierarchy.mapping({"a": "v", "b": "c"}, other="c", root=True)
    ladder, place = CodedLevels.of("x", pl.Series(["a", "b", "z"]), np.array([1, 1, 1]), tree)
    assert ladder.domain == 3
    assert [ladder.shares[1][place[i]] for i in range(3)] == pytest.approx([1 / 3, 2 / 3, 2 / 3])
    assert ladder.shares[2].tolist() == [1.0] * 3


def test_levels_that_do_not_nest() -> None:
    tree = eq.Hierarchy.intervals([5, 10], root=True) | eq.Hierarchy.intervals(3)
    ladder, _ = CodedLevels.of("x", pl.Series(range(30)), np.ones(30, dtype=np.int64), tree)
    names = ladder.names
    up = {names[i]: {names[j] for j in above} for i, above in enumerate(ladder.above)}
    assert up == {"original": {"5", "3"}, "5": {"10"}, "10": {"all"}, "3": {"all"}, "all": set()}
    assert [names[level] for level in ladder.tops] == ["all"]
    assert not ladder.chain


def test_leaves_of_a_column_of_floats() -> None:
    """A file lists 2.0 for 2: the same leaf."""
    tree = eq.Hierarchy.mapping({"1.0": "low", "2.0": "low", "3": "high"})
    ladder, _ = CodedLevels.of("x", pl.Series([1.0, 2.0, None]), np.array([1, 1, 1]), tree)
    assert ladder.domain == 3
    assert [share.tolist() for share in ladder.shares] == [
        pytest.approx([1 / 3] * 3),
        pytest.approx([1 / 3, 2 / 3, 2 / 3]),
    ]
