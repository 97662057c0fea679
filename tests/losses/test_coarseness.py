"""What coarsening costs: four records worked by hand, and bounds that hold."""

from dataclasses import FrozenInstanceError, replace
from typing import Any

import polars as pl
import pytest

import equipoise as eq
from equipoise.coarsening.lattice import Node
from equipoise.search._best_coarsening.nodes import lattice_of, node_at, walk

TREE = eq.Hierarchy.mapping({str(v): ("lo" if v < 3 else "hi", "*") for v in range(6)})
EACH = [
    eq.losses.ClassSize(),
    eq.losses.Discernibility(),
    eq.losses.Entropy(),
    eq.losses.Granularity(),
    eq.losses.Granularity("arithmetic"),
    eq.losses.NonUniformEntropy(),
    eq.losses.Granularity(weights={"a": 0.2}),
    eq.losses.NonUniformEntropy({"b": 3}),
]


def nodes(table: pl.DataFrame, k: int) -> list[Node]:
    keys = tuple(table.columns)
    records = eq.read(table, eq.Roles(keys, hierarchies=dict.fromkeys(keys, TREE)))
    rule = eq.rules.MinCount(k)
    lattice = lattice_of(eq.count(records), keys, rule)
    return [node_at(lattice, rule, fold) for fold in walk(lattice)]


@pytest.mark.parametrize(
    ("loss", "wanted"),
    [
        # 0, 0, 1, 2 of six leaves, k = 2: as they are, two records are suppressed; then lo, then *.
        (eq.losses.Granularity(), [0.5, 0.4, 1.0]),  # (2/6 + 2 - 4/6) / (4 - 4/6), (4/2 - 4/6) / (4 - 4/6)
        (eq.losses.Discernibility(), [2**2 + 2 * 4, 16, 16]),
        (eq.losses.ClassSize(), [4 / 2, 4, 4]),
        (eq.losses.Entropy(), [0, 2 * 1 + 2 + 2, 6]),
        (eq.losses.NonUniformEntropy(), [1 + 1, 6, 6]),
    ],
)
def test_worked_by_hand(loss: Any, wanted: list[float]) -> None:
    found = nodes(pl.DataFrame({"a": ["0", "0", "1", "2"]}), 2)
    assert [node.suppressed for node in found] == [2, 0, 0]
    assert [loss.of(node) for node in found] == pytest.approx(wanted)


def test_two_keys_and_their_means() -> None:
    """Losses 0.4 and 0: the geometric mean of 1.4 and 1, minus 1, and the plain one."""
    table = pl.DataFrame({"a": ["0", "0", "1", "2"], "b": ["5"] * 4})
    levels = {node.levels: node for node in nodes(table, 2)}
    assert eq.losses.Granularity().of(levels[1, 0]) == pytest.approx(1.4**0.5 - 1)
    assert eq.losses.Granularity("arithmetic").of(levels[1, 0]) == pytest.approx(0.2)


def test_weights_of_two_keys() -> None:
    """Key a loses 0.4 (or 6 bits) and counts three times as much as b, which loses nothing: 3/4 of the mean."""
    table = pl.DataFrame({"a": ["0", "0", "1", "2"], "b": ["5"] * 4})
    node = {node.levels: node for node in nodes(table, 2)}[1, 0]
    weights = {"a": 3, "b": 1}
    assert eq.losses.Granularity(weights=weights).of(node) == pytest.approx(1.4**0.75 - 1)
    assert eq.losses.Granularity("arithmetic", weights).of(node) == pytest.approx(0.3)
    assert eq.losses.Entropy(weights).of(node) == pytest.approx(6 * 1.5)
    assert eq.losses.NonUniformEntropy(weights).of(node) == pytest.approx(6 * 1.5)
    assert eq.losses.Entropy(weights) == eq.losses.Entropy((("b", 1.0), ("a", 3.0)))
    assert hash(eq.losses.Entropy(weights)) == hash(eq.losses.Entropy((("b", 1.0), ("a", 3.0))))


@pytest.mark.parametrize("weight", [-1, float("nan"), "much", True])
def test_weights_are_numbers(weight: Any) -> None:
    for loss in (eq.losses.Granularity, eq.losses.Entropy, eq.losses.NonUniformEntropy):
        with pytest.raises(eq.ParameterError, match="weight of key 'a'"):
            loss(weights={"a": weight})


@pytest.mark.parametrize("loss", EACH, ids=repr)
def test_bounds_hold(loss: Any) -> None:
    """What levels alone cost, and more so with records suppressed, is at most the loss; so is a finer node's least."""
    table = pl.DataFrame({"a": list("001234501"), "b": list("012012555")})
    found = nodes(table, 3)
    lattice = found[0].lattice
    for node in found:
        value = loss.of(node)
        assert loss.least(node) <= value + 1e-12
        for other in found:
            if all(x >= y for x, y in zip(other.levels, node.levels, strict=True)):
                assert loss.least(node) <= loss.of(other) + 1e-12
        for suppressed in {0, node.suppressed}:
            parts = loss.parts(lattice, suppressed)
            if parts is not None:
                total = sum(part[level] for part, level in zip(parts, node.levels, strict=True))
                assert loss.total(total) <= value + 1e-12


@pytest.mark.parametrize("loss", EACH, ids=repr)
def test_frozen_and_described(loss: Any) -> None:
    text = type(loss).__doc__ or ""
    assert all(word in text for word in ("Source:", "Misleads when", "Cost:", ">>>"))
    assert hash(loss) == hash(replace(loss))
    if hasattr(loss, "mean"):
        with pytest.raises((FrozenInstanceError, AttributeError)):
            loss.mean = "median"
