"""Entropy against SciPy, and mutual information against a sum over pairs."""

from collections import Counter
from itertools import product
from math import log2
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.data.cells import bits
from equipoise.ground.randomness import Draws

ROWS = st.lists(st.tuples(st.none() | st.integers(0, 5), st.sampled_from(["a", "b", "c"])), min_size=1, max_size=60)
SCHEMA = {"x": pl.Int64, "y": pl.String}


def records(rows: list[tuple[Any, ...]]) -> eq.Records:
    return eq.read(pl.DataFrame(rows, schema=SCHEMA, orient="row"), eq.Roles(["x", "y"]))


def information(pairs: list[tuple[Any, Any]]) -> float:
    """I(X; Y) = sum p(x, y) log2 p(x, y) / (p(x) p(y)), from its definition."""
    n = len(pairs)
    joint, left, right = Counter(pairs), Counter(x for x, _ in pairs), Counter(y for _, y in pairs)
    return sum(c / n * log2(c * n / (left[x] * right[y])) for (x, y), c in joint.items())


@given(counts=st.lists(st.integers(0, 1000), min_size=1, max_size=50).filter(any))
def test_bits_against_scipy(counts: list[int]) -> None:
    """scipy.stats.entropy(base=2), tolerance 1e-9."""
    from scipy.stats import entropy

    assert bits(np.array(counts)) == pytest.approx(float(entropy(counts, base=2)), abs=1e-9)


@given(rows=ROWS)
def test_a_file_against_itself_has_its_joint_entropy(rows: list[tuple[Any, ...]]) -> None:
    data = records(rows)
    n, counts = len(rows), Counter(rows)
    joint = -sum(c / n * log2(c / n) for c in counts.values())
    score = eq.utility.Entropy().measure(data, data)
    assert score.value == pytest.approx(joint, abs=1e-9)
    assert (score.better, score.side, score.unit, score.baseline) == ("higher", "utility", "bits per record", 0.0)
    detail = {row["key"]: row for row in score.detail.iter_rows(named=True)}
    each = []
    for place, key in enumerate("xy"):
        margin = Counter(row[place] for row in rows)
        each.append(-sum(c / n * log2(c / n) for c in margin.values()))
        assert detail[key]["entropy"] == pytest.approx(each[-1], abs=1e-9)
        assert (detail[key]["occupied"], detail[key]["ones"]) == (len(margin), sum(c == 1 for c in margin.values()))
    assert detail["joint"]["independent"] == pytest.approx(sum(each) - joint, abs=1e-9)
    assert detail["joint"]["independent"] >= -1e-9
    places = len({x for x, _ in rows}) * len({y for _, y in rows})
    assert (detail["joint"]["occupied"], detail["joint"]["zeros"]) == (len(counts), places - len(counts))
    surprise = score.by_record()["bits"].to_list()
    assert surprise == pytest.approx([-log2(counts[row] / n) for row in rows])


@given(rows=ROWS)
def test_under_coarsening_information_is_the_released_entropy(rows: list[tuple[Any, ...]]) -> None:
    """The mutual information of original and released keys equals the joint entropy of the released file."""
    tree = {"x": eq.Hierarchy.intervals(2), "y": eq.Hierarchy.mapping({"a": "p", "b": "p", "c": "q"})}
    data = eq.read(pl.DataFrame(rows, schema=SCHEMA, orient="row"), eq.Roles(["x", "y"], hierarchies=tree))
    released = eq.Recipe([eq.masks.Recode("x", 1), eq.masks.Recode("y", 1)]).run(data)
    pairs = list(zip(rows, released.collect("x", "y").rows(), strict=True))
    assert eq.utility.Entropy().measure(released, data).value == pytest.approx(information(pairs), abs=1e-9)


@pytest.mark.parametrize("keyed", [False, True], ids=["by row", "by id"])
def test_a_perturbed_file_keeps_less_than_its_entropy(jumble: Any, people: pl.DataFrame, keyed: bool) -> None:
    """A permutation keeps every count but breaks the tie to the record: I(X; Y) by brute force, tolerance 1e-9."""
    data = eq.read(people, eq.Roles(["sex", "area"], id="person" if keyed else None))
    released = jumble("area").apply(data, Draws(3).child(0))
    assert not released.coarsened
    pairs = list(zip(people.select("sex", "area").rows(), released.collect("sex", "area").rows(), strict=True))
    kept = eq.utility.Entropy().measure(released, data)
    assert kept.value == pytest.approx(information(pairs), abs=1e-9)
    assert kept.value < bits(eq.count(released).n) - 0.5


def test_ids_bring_records_together_again(jumble: Any, people: pl.DataFrame) -> None:
    """A release in another order is compared record by record through the id."""
    data = eq.read(people, eq.Roles(["sex", "area"], id="person"))
    released = jumble("area").apply(data, Draws(3).child(0))
    moved = eq.Records(released.frame.sort("person", descending=True), data.roles, released.history)
    measure = eq.utility.Entropy()
    assert measure.measure(moved, data).value == pytest.approx(measure.measure(released, data).value)


def test_perturb_then_coarsen(jumble: Any, people: pl.DataFrame, people_roles: eq.Roles) -> None:
    """One random mask in the history is enough to need the pairs."""
    data = eq.read(people, people_roles)
    released = eq.Recipe([jumble("area"), eq.masks.Recode("age", "10")], seed=4).run(data)
    keys = ("sex", "area", "age")
    pairs = list(zip(people.select(keys).rows(), released.collect(*keys).rows(), strict=True))
    assert eq.utility.Entropy().measure(released, data).value == pytest.approx(information(pairs), abs=1e-9)


def test_information_is_between_nothing_and_the_original(jumble: Any, people: pl.DataFrame) -> None:
    """0 <= I(X; Y) <= min(H(X), H(Y)) for every seed."""
    data = eq.read(people, eq.Roles(["sex", "area"], id="person"))
    measure = eq.utility.Entropy()
    for seed, column in product(range(5), ("sex", "area")):
        released = jumble(column).apply(data, Draws(seed).child(0))
        assert 0 <= measure.measure(released, data).value <= measure.measure(data, data).value + 1e-12


def test_perturbed_files_without_order_or_id_cannot_be_compared(jumble: Any, people: pl.DataFrame) -> None:
    """A scanned file has no row order to rely on."""
    data = eq.read(people.lazy(), eq.Roles(["sex", "area"]))
    released = jumble("area").apply(data, Draws(3).child(0))
    with pytest.raises(eq.EquipoiseError, match="id role"):
        eq.utility.Entropy().measure(released, data)


def test_one_cell_says_nothing() -> None:
    data = records([(1, "a")] * 5)
    assert eq.utility.Entropy().measure(data, data).value == 0
