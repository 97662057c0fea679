"""Local recoding: every class is large enough, every value covers its original, and the loss is small."""

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.data.labels import Column, Labels
from equipoise.ground.randomness import Draws
from equipoise.recipe import catalogue

Tree = dict[str, str]
TREES: dict[str, Tree] = {
    "a": {"a": "x", "b": "x", "c": "y", "d": "y"},
    "e": {"e": "u", "f": "u", "g": "v", "h": "v", "i": "v"},
}


def lost(tree: Tree, label: str) -> float:
    """(leaves under the label - 1) / (leaves - 1)."""
    under = len(tree) if label == "*" else 1 if label in tree else list(tree.values()).count(label)
    return (under - 1) / (len(tree) - 1)


def loss(table: pl.DataFrame) -> float:
    """The mean over keys and records."""
    return float(np.mean([lost(tree, label) for key, tree in TREES.items() for label in table[key]]))


def covers(tree: Tree, label: str, value: str) -> bool:
    return label in ("*", value, tree[value])


def read(table: pl.DataFrame) -> eq.Records:
    trees = {key: eq.Hierarchy.mapping(tree, root=True) for key, tree in TREES.items()}
    return eq.read(table, eq.Roles(list(TREES), hierarchies=trees))


def recoded(records: eq.Records, rule: Any, seed: int = 1, **more: Any) -> pl.DataFrame:
    return eq.masks.LocalRecode(rule, **more).apply(records, Draws(seed)).collect()


def smallest(table: pl.DataFrame) -> int:
    return int(table.group_by(*TREES).len()["len"].min())  # type: ignore[call-overload]


def best_coarsening(table: pl.DataFrame, k: int) -> float:
    """The least loss when every column has one level, by trying all."""
    found = []
    for levels in product(range(3), repeat=2):
        labels = [
            [(v, TREES[key][v], "*")[level] for v in table[key]] for key, level in zip(TREES, levels, strict=True)
        ]
        coarse = pl.DataFrame(dict(zip(TREES, labels, strict=True)))
        found += [loss(coarse)] if smallest(coarse) >= k else []
    return min(found)


def partitions(records: list[int], k: int) -> Iterator[list[tuple[int, ...]]]:
    """All ways to put records into classes of at least k."""
    if not records:
        yield []
    for more in range(k - 1, len(records)):
        for others in combinations(records[1:], more):
            left = [r for r in records[1:] if r not in others]
            for rest in partitions(left, k) if not 0 < len(left) < k else ():
                yield [(records[0], *others), *rest]


def common(tree: Tree, values: list[str]) -> str:
    return values[0] if len(set(values)) == 1 else tree[values[0]] if len({tree[v] for v in values}) == 1 else "*"


def optimum(table: pl.DataFrame, k: int) -> float:
    """The least loss of all, by trying all partitions."""
    columns = {key: table[key].to_list() for key in TREES}
    sums = (
        sum(
            len(c) * lost(tree, common(tree, [columns[key][r] for r in c]))
            for c in classes
            for key, tree in TREES.items()
        )
        for classes in partitions(list(range(table.height)), k)
    )
    return min(sums) / table.height / len(TREES)


ROWS = st.lists(st.tuples(*(st.sampled_from(list(tree)) for tree in TREES.values())), min_size=4, max_size=40)


@given(ROWS, st.integers(2, 4), st.sampled_from(["granularity", "entropy"]))
def test_laws(rows: list[tuple[str, ...]], k: int, by: str) -> None:
    """Classes of k and more; released values cover the original; never coarser than the best coarsening of columns."""
    table = pl.DataFrame(rows, schema=list(TREES), orient="row")
    found = recoded(read(table), eq.rules.MinCount(k), loss=by)
    assert smallest(found) >= k
    for key, tree in TREES.items():
        assert all(covers(tree, label, value) for label, value in zip(found[key], table[key], strict=True))
    if by == "granularity":
        assert loss(found) <= best_coarsening(table, k) + 1e-9


def test_small_files_come_close_to_the_optimum() -> None:
    """Against all partitions of up to nine records: the same in nearly all, within 1 % in sum."""
    ours, best = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        table = pl.DataFrame({key: rng.choice(list(tree), 6 + seed % 4) for key, tree in TREES.items()})
        ours.append(loss(recoded(read(table), eq.rules.MinCount(2 + seed % 2))))
        best.append(optimum(table, 2 + seed % 2))
    assert all(a >= b - 1e-9 for a, b in zip(ours, best, strict=True))
    assert sum(a < b + 1e-9 for a, b in zip(ours, best, strict=True)) >= 18
    assert sum(ours) <= 1.01 * sum(best)


def test_a_large_cell_lends_a_record() -> None:
    """Of five alike one is released coarser, to keep a neighbour company; the four others stay as they were."""
    table = pl.DataFrame({"a": ["a"] * 5 + ["b"], "e": ["e"] * 6})
    rows = recoded(read(table), eq.rules.MinCount(2)).rows()
    assert sorted(rows) == [("a", "e")] * 4 + [("x", "e")] * 2
    assert rows[5] == ("x", "e")


def test_who_is_lent_is_drawn() -> None:
    """Each of the five in some of 40 seeds, by row order or not; the classes are the same."""
    table = pl.DataFrame({"a": ["a"] * 5 + ["b"], "e": ["e"] * 6, "person": range(6)})
    roles = eq.Roles(list(TREES), id="person", hierarchies={"a": eq.Hierarchy.mapping(TREES["a"])})
    records, turned = eq.read(table, roles), eq.read(table.reverse(), roles)
    lent = []
    for seed in range(40):
        found = recoded(records, eq.rules.MinCount(2), seed, rounds=0)
        lent += found.filter(pl.col("a") == "x")["person"].to_list()
    assert sorted(set(lent)) == [0, 1, 2, 3, 4, 5]
    assert np.bincount(lent).tolist()[5] == 40
    assert max(np.bincount(lent)[:5]) < 20
    assert recoded(turned, eq.rules.MinCount(2), 39, rounds=0).reverse().equals(found)


def test_loss_in_bits() -> None:
    """By entropy a category costs log2 of its records: a crowded one is dear, however few its leaves."""
    tree = eq.Hierarchy.mapping(dict(zip("abcdef", "xxyyyy", strict=True)), root=True)
    table = pl.DataFrame({"k": list("aaaaaaaaaabbbbbbbbbb" + "cdef")})
    records = eq.read(table, eq.Roles(["k"], hierarchies={"k": tree}))
    for by in ("granularity", "entropy"):
        found = recoded(records, eq.rules.MinCount(4), loss=by)["k"]
        assert found.to_list() == list("a" * 10 + "b" * 10 + "yyyy")


def test_what_is_kept_in_bits() -> None:
    """I(original; released) by hand: of the records released as x an intruder knows two values."""
    records = read(pl.DataFrame({"a": ["a", "a", "a", "b"], "e": ["e"] * 4}))
    done = eq.masks.LocalRecode(eq.rules.MinCount(2)).apply(records, Draws(1))
    assert sorted(done.collect()["a"]) == ["a", "a", "x", "x"]
    h = lambda *p: -sum(x * np.log2(x) for x in p)
    expected = h(0.75, 0.25) + h(0.5, 0.5) - h(0.5, 0.25, 0.25)
    assert eq.utility.Entropy().measure(done, records).value == pytest.approx(expected)
    assert not done.coarsened
    assert "a" not in done.roles.hierarchies
    assert "e" in done.roles.hierarchies, "a column that stayed keeps its hierarchy"


def test_rules_about_sensitive_values() -> None:
    """Classes of three with two illnesses each; the records of a cell are not alike when their illness differs."""
    rng = np.random.default_rng(3)
    table = pl.DataFrame({key: rng.choice(list(tree), 200) for key, tree in TREES.items()})
    table = table.with_columns(ill=pl.Series(rng.choice(["flu", "flu", "flu", "gout"], 200)))
    rule = eq.rules.MinCount(3) | eq.rules.Diversity("ill", 2)
    found = recoded(read(table), rule)
    classes = found.group_by(*TREES).agg(pl.len(), pl.col("ill").n_unique().alias("kinds"))
    assert classes["len"].min() >= 3  # type: ignore[operator]
    assert classes["kinds"].min() >= 2  # type: ignore[operator]
    alone = recoded(read(table), eq.rules.Diversity("ill", 2) & eq.rules.MinCount(3))
    assert loss(alone) <= loss(found)
    with pytest.raises(eq.InfeasibleError, match="200 records"):
        recoded(read(table), eq.rules.MinCount(3) | eq.rules.Diversity("ill", 3))
    with pytest.raises(eq.RolesError, match="leave it out of the keys"):
        recoded(read(table), eq.rules.Diversity("a", 2))


def test_what_no_level_joins_stays_apart() -> None:
    """Keys without a hierarchy and missing values are never changed; too few of them are refused."""
    ages = eq.Hierarchy.intervals([10], root=True)
    table = pl.DataFrame({"age": [21, 22, 35, None, None, 41], "sex": ["f", "f", "m", "f", "f", "m"]})
    records = eq.read(table, eq.Roles(["age", "sex"], hierarchies={"age": ages}))
    assert recoded(records, eq.rules.MinCount(2)).rows() == [
        ("20-29", "f"), ("20-29", "f"), ("*", "m"), (None, "f"), (None, "f"), ("*", "m"),
    ]  # fmt: skip
    with pytest.raises(eq.InfeasibleError, match="6 records are in classes"):
        recoded(records, eq.rules.MinCount(3))
    with pytest.raises(eq.RolesError, match="no keys"):
        recoded(eq.read(table, eq.Roles()), eq.rules.MinCount(2))
    with pytest.raises(eq.RolesError, match="Did you mean 'age'"):
        recoded(records, eq.rules.MinCount(2), keys=("agee",))


def test_labels_of_different_levels_differ() -> None:
    """Bands named by a number are told from the number itself; a file without several levels keeps its type."""
    lower = eq.Hierarchy.intervals([10], labels="lower", root=True)
    read_ages = lambda ages: eq.read(pl.DataFrame({"age": ages}), eq.Roles(["age"], hierarchies={"age": lower}))
    mixed = recoded(read_ages([30, 30, 40, 41]), eq.rules.MinCount(2))["age"]
    assert mixed.to_list() == ["30", "30", "40 (10)", "40 (10)"]
    assert recoded(read_ages([30, 31, 40, 41]), eq.rules.MinCount(2))["age"].to_list() == [30, 30, 40, 40]
    same = recoded(read_ages([30, 30, 41, 41]), eq.rules.MinCount(2))["age"]
    assert same.dtype == pl.Int64
    floor = eq.Hierarchy.intervals([10, 20], floor=10, root=True)
    records = eq.read(pl.DataFrame({"age": [30, 30, 41, 59]}), eq.Roles(["age"], hierarchies={"age": floor}))
    assert recoded(records, eq.rules.MinCount(2))["age"].to_list() == ["30-39", "30-39", "40-59", "40-59"]


def test_levels_that_do_not_nest() -> None:
    """The branch of most levels is used: bands of 5, 10 and all, not those of 3."""
    both = eq.Hierarchy.intervals(3) | eq.Hierarchy.intervals([5, 10], root=True)
    records = eq.read(pl.DataFrame({"age": [31, 34, 35, 38, 61, 79]}), eq.Roles(["age"], hierarchies={"age": both}))
    found = recoded(records, eq.rules.MinCount(2))["age"].to_list()
    assert found == ["30-34", "30-34", "35-39", "35-39", "*", "*"]


def test_value_labels_follow() -> None:
    """Every level that is used brings its labels."""
    told = Labels({"town": Column("Town", ((1, "Oslo"), (2, "Bergen"), (9, "refused")), missing=((9, 9),))})
    tree = eq.Hierarchy.mapping({1: "Norway", 2: "Norway"})
    records = eq.Records.of(
        pl.DataFrame({"town": [1, 1, 1, 2]}), eq.Roles(["town"], hierarchies={"town": tree}), labels=told
    )
    done = eq.masks.LocalRecode(eq.rules.MinCount(2)).apply(records, Draws(1))
    values = dict(done.labels.of("town").values)
    assert values["1"] == "Oslo"
    assert values[9] == "refused"
    assert values["Norway"] == "any of 2 categories"
    assert done.labels.of("town").label == "Town"


def test_parameters_and_policy_text() -> None:
    made = catalogue.parse("local-recode:min-count(5),entropy", "mask")
    assert made == eq.masks.LocalRecode(eq.rules.MinCount(5), "entropy")
    assert "each as far as its class needs by min_count(n=5)" in made.law(("age",)).words
    for wrong in ({"rule": 5}, {"loss": "bits"}, {"rounds": -1}, {"rounds": True}, {"rule": eq.rules.PPercent(0.1)}):
        with pytest.raises(eq.ParameterError):
            eq.masks.LocalRecode(**({"rule": eq.rules.MinCount(2)} | wrong))  # type: ignore[arg-type]
