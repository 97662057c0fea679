"""Relations between cells, against totals computed one by one."""

from itertools import product
from typing import Any

import numpy as np
import pytest

import equipoise as eq
from equipoise.data.tables.additivity import Additive

DEEP = np.array([-1, 0, 0, 1, 1, 1, 2, 2])
FLAT = np.array([-1, 0, 0, 0])


def leaves(tree: Any, code: int) -> list[int]:
    below = [c for c in range(len(tree)) if tree[c] == code]
    return [leaf for child in below for leaf in leaves(tree, child)] if below else [code]


def filled(trees: list[Any], seed: int = 0) -> Any:
    """The value of every cell, each summed from its own lowest cells."""
    sizes = [len(tree) for tree in trees]
    base = np.random.default_rng(seed).integers(0, 9, sizes)
    values = np.zeros(sizes)
    for codes in product(*(range(size) for size in sizes)):
        below = (leaves(tree, code) for tree, code in zip(trees, codes, strict=True))
        values[codes] = sum(base[spot] for spot in product(*below))
    return values


@pytest.mark.parametrize("trees", [[DEEP], [FLAT, DEEP], [FLAT, DEEP, FLAT], [FLAT, FLAT, DEEP[:3], FLAT]])
def test_every_total_has_its_relation(trees: list[Any]) -> None:
    additive = Additive.over(trees)
    values = filled(trees).ravel()
    additive.check(values)
    sizes = [len(tree) for tree in trees]
    inner = [len({int(p) for p in tree if p >= 0}) for tree in trees]
    assert additive.relations == sum(many * np.prod(sizes) // size for many, size in zip(inner, sizes, strict=True))
    assert (additive.matrix[np.arange(additive.relations), additive.totals] == -1).all()
    lowest = int(np.prod([size - many for size, many in zip(sizes, inner, strict=True)]))
    rank = np.linalg.matrix_rank(additive.matrix.toarray())
    assert rank == additive.needed.sum() == additive.cells - lowest
    assert np.linalg.matrix_rank(additive.base.toarray()) == rank


def test_a_subset_of_cells_is_found_in_any_order() -> None:
    """Zero cells left out, the rest shuffled: the same relations over the cells that are there."""
    trees = [FLAT, DEEP]
    values = filled(trees)
    values[2, :] = values[:, 5] = 0
    values = np.zeros_like(values) + _added(values, trees)
    codes = np.argwhere(values > 0)
    codes = np.random.default_rng(1).permutation(codes)
    additive = Additive.over(trees, codes)
    additive.check(values[tuple(codes.T)])
    whole = Additive.over(trees)
    kept = np.ravel_multi_index(tuple(codes.T), values.shape)
    ranks = [np.linalg.matrix_rank(m.toarray()) for m in (additive.matrix, additive.base, whole.matrix[:, kept])]
    assert ranks[0] == ranks[1] == ranks[2]


def _added(base: Any, trees: list[Any]) -> Any:
    values = np.zeros_like(base)
    for codes in np.ndindex(*base.shape):
        below = [leaves(tree, code) for tree, code in zip(trees, codes, strict=True)]
        values[codes] = sum(base[spot] for spot in product(*below))
    return values


def test_totals_that_are_not_there_have_no_relation() -> None:
    codes = np.array([[1, 0], [1, 1], [1, 2], [1, 3], [2, 1]])
    additive = Additive.over([FLAT, FLAT], codes)
    assert additive.relations == 1
    assert additive.needed.all()
    assert additive.totals.tolist() == [0]


def test_linked_tables_share_cells() -> None:
    one, two = Additive.over([FLAT]), Additive.over([DEEP[:3]])
    both = Additive.linked([one, two], [np.arange(4), np.array([0, 4, 5])])
    both.check(np.array([6.0, 1, 2, 3, 2, 4]))
    assert both.totals.tolist() == [0, 0]
    with pytest.raises(eq.DataError, match=r"relation 1 \(total: cell 0\)"):
        both.check(np.array([6.0, 1, 2, 3, 2, 5]))


def test_a_million_cells() -> None:
    tree = np.concatenate([[-1], np.repeat(0, 4), np.repeat(np.arange(1, 5), 24)])
    additive = Additive.over([tree, tree, tree])
    assert additive.cells == 101**3
    assert additive.needed.sum() == 101**3 - 96**3


def test_what_does_not_add_up_is_named_without_its_value() -> None:
    additive = Additive.of([((0, 1, 2), (-1, 1, 1)), ((0, 3, 4), (-1, 1, 1))], cells=5)
    with pytest.raises(eq.DataError, match="first is relation 1") as caught:
        additive.check(np.array([5.0, 2, 3, 4, 98765]))
    assert "98765" not in str(caught.value)
    additive.check(np.array([5.0, 2, 3, 4, 1 + 1e-7]))


@pytest.mark.parametrize(
    "tree",
    [[], [-1, -1], [0, 0], [-1, 2, 1], [-1, 5], [-1, 2, 3, 1]],
    ids=["empty", "two", "none", "loop", "out", "ring"],
)
def test_what_is_no_tree_is_refused(tree: list[int]) -> None:
    with pytest.raises(eq.ParameterError, match="not a tree"):
        Additive.over([FLAT, np.array(tree, dtype=int)])


def test_bad_cells_are_refused() -> None:
    with pytest.raises(eq.DataError, match="Cell 1 has the same codes"):
        Additive.over([FLAT], np.array([[0], [0]]))
    with pytest.raises(eq.ParameterError):
        Additive.over([FLAT], np.array([[4]]))
    with pytest.raises(eq.ParameterError):
        Additive.of([((0, 9), (1, -1))], cells=3)
    with pytest.raises(eq.DataError, match="finite"):
        Additive.over([FLAT]).check(np.array([np.nan, 0, 0, 0]))
