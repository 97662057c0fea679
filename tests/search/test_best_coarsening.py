"""The best coarsening: equal to exhaustive search written by hand, its bounds, its recipe, its refusals."""

from collections import Counter
from itertools import product
from math import log2, prod
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.methods.protection_levels import Either
from equipoise.recipe import catalogue
from equipoise.search import best_coarsening as module
from equipoise.search._best_coarsening.exact import LatticeSearch

TREES: dict[str, list[tuple[str, ...]]] = {
    "a": [(str(v), "lo" if v < 3 else "hi", "*") for v in range(6)],
    "b": [(v, "xy" if v in "xy" else "zw", "*") for v in "xyzw"],
    "c": [(v, "*") for v in "pq"],
}
LOSSES = ["granularity", "discernibility", "class_size", "entropy", "non_uniform_entropy"]


def roles(**more: Any) -> eq.Roles:
    trees = {key: eq.Hierarchy.mapping({row[0]: row[1:] for row in rows}) for key, rows in TREES.items()}
    return eq.Roles(tuple(TREES), hierarchies=trees, **more)


def made(rows: list[tuple[int, int, int, int]]) -> pl.DataFrame:
    columns = list(zip(*rows, strict=True))
    given = {key: [TREES[key][i][0] for i in column] for key, column in zip(TREES, columns, strict=False)}
    return pl.DataFrame({**given, "s": [str(v) for v in columns[3]]})


def by_hand(
    table: pl.DataFrame,
    levels: tuple[int, ...],
    safe: Any,
    weights: dict[str, float] | None = None,
    people: Any = lambda keys: True,
) -> tuple[dict[str, float], int]:
    """Every loss of a node and how many records it suppresses, from lists and counters alone."""
    each = [(weights or {}).get(key, 1.0) for key in TREES]
    part = dict(zip(TREES, (len(each) * weight / sum(each) for weight in each), strict=True))
    rows = table.rows()
    paths = {key: {row[0]: row for row in TREES[key]} for key in TREES}
    new = [tuple(paths[key][row[j]][levels[j]] for j, key in enumerate(TREES)) for row in rows]
    groups: dict[Any, list[str]] = {}
    for keys, row in zip(new, rows, strict=True):
        groups.setdefault(keys, []).append(row[3])
    kept = {keys: len(values) for keys, values in groups.items() if safe(values) and people(keys)}
    n, out = len(rows), sum(len(v) for k, v in groups.items() if k not in kept)
    lm, bits, more = [], 0.0, 0.0
    for j, key in enumerate(TREES):
        domain = len(TREES[key])
        under = Counter(row[levels[j]] for row in TREES[key])
        covered = sum(under[keys[j]] / domain for keys in new if keys in kept) + out
        lm.append((1 + (covered - n / domain) / (n - n / domain)) ** part[key])
        old, now = Counter(row[j] for row in rows), Counter(keys[j] for keys in new)
        bits -= part[key] * sum(log2(old[row[j]] / now[keys[j]]) for row, keys in zip(rows, new, strict=True))
        hidden = Counter(keys[j] for keys in new if keys not in kept)
        more -= part[key] * sum(c * log2(c / out) for c in hidden.values())
    return {
        "granularity": prod(lm) ** (1 / len(lm)) - 1,
        "discernibility": sum(c * c for c in kept.values()) + out * n,
        "class_size": n / (len(kept) + (out > 0)),
        "entropy": bits,
        "non_uniform_entropy": bits + more,
        "mean_risk": (len(kept) + (out > 0)) / n,
    }, out


RECORDS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 1), st.integers(0, 2)), min_size=2, max_size=40
)


@given(rows=RECORDS, k=st.integers(2, 4), limit=st.sampled_from([0.0, 0.1, 0.3, 1.0]), loss=st.sampled_from(LOSSES))
def test_the_optimum_is_that_of_exhaustive_search(rows: list[Any], k: int, limit: float, loss: str) -> None:
    table = made(rows)
    safe = lambda values: len(values) >= k
    nodes = [by_hand(table, levels, safe) for levels in product(range(3), range(3), range(2))]
    most = int(limit * len(rows) + 1e-9)
    fits = [losses[loss] for losses, out in nodes if out <= most]
    records = eq.read(table, roles())
    if not fits:
        with pytest.raises(eq.InfeasibleError, match="No coarsening satisfies"):
            eq.best_coarsening(records, eq.rules.MinCount(k), loss, limit)
        return
    found = eq.best_coarsening(records, eq.rules.MinCount(k), loss, limit)
    assert found.loss == pytest.approx(min(fits), abs=1e-9)
    assert found.proven
    assert found.suppressed <= most
    whole = eq.best_coarsening(records, eq.rules.MinCount(k), loss, limit, whole=True)
    assert whole.loss == pytest.approx(found.loss)
    assert whole.lattice["loss"].to_list() == pytest.approx([losses[loss] for losses, _ in nodes], abs=1e-9)
    assert whole.lattice["suppressed"].to_list() == [out for _, out in nodes]
    assert whole.lattice["satisfied"].to_list() == [out <= most for _, out in nodes]


@given(
    rows=RECORDS, k=st.integers(2, 4), limit=st.sampled_from([0.0, 0.1, 0.3]), share=st.sampled_from([0.1, 0.3, 0.5])
)
def test_large_files_are_judged_by_a_slice_first(rows: list[Any], k: int, limit: float, share: float) -> None:
    """With slices and folds in two stages, the same optimum."""
    records = eq.read(made(rows), roles())
    whole = eq.best_coarsening(records, eq.rules.MinCount(1), suppress_at_most=limit).search
    assert isinstance(whole, LatticeSearch)
    assert whole.slices == ()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("equipoise.search._best_coarsening.exact.MIN_SLICED_CELLS", 1)
        patch.setattr("equipoise.search._best_coarsening.exact.SLICE_SHARE", share)
        patch.setattr("equipoise.coarsening.cells_at_nodes.MIN_STAGED_CLASSES", 1)
        patch.setattr("equipoise.coarsening.cells_at_nodes.FIRST_KEYS", 1)
        found = [_outcome(records, k, limit, whole=False), _outcome(records, k, limit, whole=True)]
    assert found[0] == pytest.approx(found[1])
    assert found[0] == pytest.approx(_outcome(records, k, limit, whole=False))


def _outcome(records: eq.Records, k: int, limit: float, *, whole: bool) -> float:
    try:
        return eq.best_coarsening(records, eq.rules.MinCount(k), suppress_at_most=limit, whole=whole).loss
    except eq.InfeasibleError:
        return -1.0


RULES: dict[str, tuple[Any, Any]] = {
    "distinct": (eq.rules.Diversity("s", 2), lambda v: len(set(v)) >= 2),
    "recursive": (
        eq.rules.Diversity("s", 2, kind="recursive", c=1.5),
        lambda v: max(Counter(v).values()) < 1.5 * (len(v) - max(Counter(v).values())),
    ),
    "entropy": (
        eq.rules.Diversity("s", 1.6, kind="entropy"),
        lambda v: -sum(c / len(v) * np.log(c / len(v)) for c in Counter(v).values()) >= np.log(1.6),
    ),
    "both": (
        [eq.rules.MinCount(3), eq.rules.Diversity("s", 2)],
        lambda v: len(v) >= 3 and len(set(v)) >= 2,
    ),
}


@settings(max_examples=15)
@given(rows=RECORDS, limit=st.sampled_from([0.0, 0.2]), loss=st.sampled_from(LOSSES))
@pytest.mark.parametrize("name", RULES)
def test_rules_about_sensitive_values_too(name: str, rows: list[Any], limit: float, loss: str) -> None:
    """Merging rules that keep safe classes safe only together prune nothing while records may be suppressed."""
    table, (rule, safe) = made(rows), RULES[name]
    nodes = [by_hand(table, levels, safe) for levels in product(range(3), range(3), range(2))]
    fits = [losses[loss] for losses, out in nodes if out <= int(limit * len(rows) + 1e-9)]
    records = eq.read(table, roles())
    if fits:
        assert eq.best_coarsening(records, rule, loss, limit).loss == pytest.approx(min(fits), abs=1e-9)
    else:
        with pytest.raises(eq.InfeasibleError):
            eq.best_coarsening(records, rule, loss, limit)


@given(rows=RECORDS, start=st.tuples(st.integers(0, 1), st.integers(0, 1), st.just(0)), key=st.integers(0, 1))
def test_coarsening_never_lowers_k(rows: list[Any], start: tuple[int, ...], key: int) -> None:
    """The smallest class only grows, and the records in small classes only become fewer."""
    records = eq.read(made(rows), roles())
    coarser = tuple(level + (j == key) for j, level in enumerate(start))
    one, two = (
        eq.count(records).roll_up({k: level for k, level in zip(TREES, levels, strict=True) if level})
        for levels in (start, coarser)
    )
    assert one.n.min() <= two.n.min()
    for k in (2, 3, 5):
        assert one.n[one.n < k].sum() >= two.n[two.n < k].sum()


@pytest.fixture
def plain(people: pl.DataFrame) -> eq.Records:
    trees = {"area": eq.Hierarchy.prefix(3, 2, 1, root=True)}
    trees["age"] = eq.Hierarchy.intervals([5, 10], top=80, root=True) | eq.Hierarchy.intervals(3)
    return eq.read(people, eq.Roles(["sex", "area", "age"], ["ill"], weight="weight", id="person", hierarchies=trees))


def test_the_recipe_does_what_was_promised(plain: eq.Records) -> None:
    """Run on records, it gives the classes, suppresses the records, and satisfies the rule."""
    rule = eq.rules.MinCount(4) | eq.rules.Diversity("ill", 2)
    found = eq.best_coarsening(plain, rule, suppress_at_most=0.2)
    assert 0 < found.suppressed <= 80
    done = found.recipe.run(plain)
    table = done.collect()
    blank = table.select(pl.all_horizontal(pl.col("sex", "area", "age").is_null())).to_series()
    assert blank.sum() == found.suppressed
    classes = table.filter(~blank).group_by("sex", "area", "age").agg(n=pl.len(), kinds=pl.col("ill").n_unique())
    assert classes["n"].min() >= 4
    assert classes["kinds"].min() >= 2
    assert table["person"].to_list() == plain.collect()["person"].to_list()
    assert table["salary"].equals(plain.collect()["salary"])
    trial = eq.sweep(plain, [found.recipe], [eq.risk.Uniques(3), eq.utility.Entropy()])[0]
    assert trial.scores["uniques"].value == 0
    assert "proven best" in found.words()


def test_alternatives_that_do_not_nest(plain: eq.Records) -> None:
    """Bands of 3 and of 5 years: neither is coarser than the other; every node agrees with a roll-up of the cells."""
    found = eq.best_coarsening(plain, eq.rules.MinCount(3), suppress_at_most=0.1, whole=True)
    quick = eq.best_coarsening(plain, eq.rules.MinCount(3), suppress_at_most=0.1)
    assert found.nodes == 25 == found.lattice.height
    assert quick.loss == pytest.approx(found.loss, rel=1e-12)
    assert quick.evaluated < found.evaluated == 25
    cells = eq.count(plain)
    for row in found.lattice.iter_rows(named=True):
        n = cells.roll_up({key: row[key] for key in ("area", "age") if row[key] != "original"}).n
        assert (row["classes"], row["suppressed"]) == (len(n), n[n < 3].sum())
    known = quick.lattice.filter(pl.col("known") == "inferred")
    assert not known["satisfied"].any()
    both = quick.lattice.join(found.lattice, on=["sex", "area", "age"])
    assert (both["bound"] <= both["loss_right"] + 1e-12).all()


def test_a_floor_is_not_released(people: pl.DataFrame) -> None:
    trees = {"age": eq.Hierarchy.intervals([5, 10], floor=5, root=True)}
    records = eq.read(people, eq.Roles(["sex", "age"], hierarchies=trees))
    found = eq.best_coarsening(records, eq.rules.MinCount(1), suppress_at_most=0)
    assert found.levels == {"sex": "original", "age": "5"}
    assert found.nodes == 3


def test_a_rule_that_looks_at_cells(plain: eq.Records) -> None:
    """Any rule will do: here one by expected loss, whose N is the weight."""
    rule = eq.rules.ExpectedLoss("uniques:10", prior=(0.5, 9.5), domain=("area",), cutoff=2)
    found = eq.best_coarsening(plain, rule, suppress_at_most=0.3, whole=True)
    released = found.recipe.run(plain)
    flagged = rule.flag(
        eq.count(eq.Recipe(found.recipe.masks[:-1] if found.suppressed else found.recipe.masks).run(plain))
    )
    assert found.suppressed == (released.collect()["sex"].null_count())
    assert flagged.sum() >= bool(found.suppressed)


def test_stopped_early_it_knows_a_bound(plain: eq.Records) -> None:
    """Stopped by progress or by time: the best so far, and what any other costs at least."""
    whole = eq.best_coarsening(plain, eq.rules.MinCount(3), suppress_at_most=0.1)
    calls: list[int] = []

    def stop(done: int, total: int, what: str) -> bool:
        calls.append(done)
        assert total == 25
        return len(calls) < 3

    module_every = "equipoise.search._best_coarsening.exact.REPORT_SECONDS"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module_every, 0.0)
        part = eq.best_coarsening(plain, eq.rules.MinCount(3), suppress_at_most=0.1, progress=stop)
        assert len(calls) == 3
        assert part.lower_bound <= whole.loss <= part.loss
        assert not part.proven or part.loss == pytest.approx(whole.loss, rel=1e-12)
        with pytest.raises(eq.Cancelled, match="Stopped"):
            eq.best_coarsening(plain, eq.rules.MinCount(399), suppress_at_most=0.0, progress=lambda *_: False)
    brief = eq.best_coarsening(plain, eq.rules.MinCount(3), suppress_at_most=0.1, seconds=1e-6)
    assert brief.lower_bound <= whole.loss <= brief.loss
    assert "no other costs less" in brief.words()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("limit", [0.0, 0.05])
def test_a_lattice_too_large_to_prove(plain: eq.Records, loss: str, limit: float) -> None:
    """The beam finds a node that satisfies the rules, and its bound is below the true optimum."""
    whole = eq.best_coarsening(plain, eq.rules.MinCount(3), loss, limit)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_PROVEN_NODES", 10)
        patch.setattr("equipoise.search._best_coarsening.beam.MAX_GROUP_NODES", 8)
        found = eq.best_coarsening(plain, eq.rules.MinCount(3), loss, limit)
    assert found.lower_bound <= whole.loss <= found.loss
    assert found.loss <= 1.5 * whole.loss
    assert found.suppressed <= limit * 400
    assert found.lattice.height == found.evaluated
    assert {"loss", "bound", "classes", "suppressed", "satisfied", "known"} < set(found.lattice.columns)


def test_more_keys_than_fit_one_integer() -> None:
    """Twelve keys of 70 values: 73 bits; the same classes as a recount by Polars."""
    rng = np.random.default_rng(3)
    keys = [f"k{j}" for j in range(12)]
    table = pl.DataFrame({key: rng.integers(0, 70, 300) for key in keys})
    trees = {key: eq.Hierarchy.intervals([40], root=True) for key in keys[:3]}
    trees |= {key: eq.Hierarchy.intervals([70], root=True, floor=70) for key in keys[3:]}
    records = eq.read(table, eq.Roles(keys, hierarchies=trees))
    found = eq.best_coarsening(records, eq.rules.MinCount(5), suppress_at_most=0.1)
    done = found.recipe.run(records).collect().drop_nulls()
    assert done.group_by(keys).len()["len"].min() >= 5
    assert 300 - done.height == found.suppressed


def test_plain_data_and_names_of_losses(plain: eq.Records) -> None:
    found = eq.best_coarsening(plain, eq.rules.MinCount(3), "class-size", 0.1)
    told = found.to_plain()
    assert told["measured_by"] == "class_size"
    assert told["rule"] == "min_count"
    assert told["levels"] == found.levels
    assert found.measured_by == eq.losses.ClassSize()
    assert isinstance(eq.best_coarsening(plain, [eq.rules.MinCount(2), eq.rules.MinCount(3)]).rule, Either)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"suppress_at_most": 2}, eq.ParameterError, "Write 2 % as 0.02"),
        ({"suppress_at_most": -0.1}, eq.ParameterError, "at least 0 and at most 1"),
        ({"loss": "granularityy"}, eq.ParameterError, "Did you mean 'granularity'"),
        ({"loss": 3}, eq.ParameterError, "loss must be one of"),
        ({"rules": []}, eq.ParameterError, "rules must be"),
        ({"rules": 5}, eq.ParameterError, "rules must be"),
        ({"seconds": 0}, eq.ParameterError, "seconds"),
        ({"rules": eq.rules.Diversity("area")}, eq.RolesError, "leave it out of the keys"),
        ({"rules": eq.rules.Diversity("iil")}, eq.RolesError, "Did you mean 'ill'"),
        ({"rules": eq.rules.MinCount(500)}, eq.InfeasibleError, "No coarsening satisfies"),
    ],
)
def test_refusals(plain: eq.Records, arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        eq.best_coarsening(plain, **{"rules": eq.rules.MinCount(3), **arguments})


def test_nothing_to_coarsen(people: pl.DataFrame) -> None:
    with pytest.raises(eq.RolesError, match="nothing to coarsen"):
        eq.best_coarsening(eq.read(people, eq.Roles(["sex"])), eq.rules.MinCount(3))


def test_a_missing_key_is_a_category_of_its_own() -> None:
    """It stays missing at every level, and what was missing is not lost by coarsening."""
    table = pl.DataFrame({"a": [None, None, "0", "1", "2", "5"], "b": ["x"] * 6, "c": ["p"] * 6})
    found = eq.best_coarsening(eq.read(table, roles()), eq.rules.MinCount(2), suppress_at_most=0.2, whole=True)
    row = found.lattice.row(
        by_predicate=(pl.col("a") == "1") & (pl.col("b") == "original") & (pl.col("c") == "original"), named=True
    )
    assert (row["suppressed"], row["classes"]) == (1, 3)
    assert found.levels == {"a": "2", "b": "original", "c": "original"}
    assert found.loss == pytest.approx((1 + (4 + 2 / 6 - 1) / 5) ** (1 / 3) - 1)


@settings(max_examples=20)
@given(
    rows=RECORDS, gaps=st.lists(st.tuples(st.integers(0, 39), st.sampled_from("ab")), max_size=6), k=st.integers(2, 4)
)
def test_missing_keys_that_match_anything(rows: list[Any], gaps: list[tuple[int, str]], k: int) -> None:
    """With missing="any" a record's class are all that agree on the keys both have: counted pair by pair."""
    table = made(rows)
    for at, key in gaps:
        table = table.with_columns(pl.when(pl.int_range(pl.len()) == at).then(None).otherwise(pl.col(key)).alias(key))
    found = eq.best_coarsening(eq.read(table, roles(missing="any")), eq.rules.MinCount(k), "entropy", 1.0, whole=True)
    paths = {key: {row[0]: row for row in TREES[key]} | {None: (None,) * 3} for key in TREES}
    for levels, out in zip(product(range(3), range(3), range(2)), found.lattice["suppressed"], strict=True):
        new = [tuple(paths[key][row[j]][levels[j]] for j, key in enumerate(TREES)) for row in table.rows()]
        alike = [
            sum(all(x is None or y is None or x == y for x, y in zip(one, two, strict=True)) for two in new)
            for one in new
        ]
        assert out == sum(size < k for size in alike)


# --- average risk, k-map, weights of keys -------------------------------------------------------------------------


@given(
    rows=RECORDS,
    k=st.integers(1, 3),
    limit=st.sampled_from([0.0, 0.1, 0.3]),
    most=st.sampled_from([0.05, 0.1, 0.2, 0.4]),
    loss=st.sampled_from(LOSSES),
)
def test_a_limit_on_the_mean_risk(rows: list[Any], k: int, limit: float, most: float, loss: str) -> None:
    """Classes by records, suppressed records being one class, against exhaustive search."""
    table, records = made(rows), eq.read(made(rows), roles())
    nodes = [by_hand(table, levels, lambda v: len(v) >= k) for levels in product(range(3), range(3), range(2))]
    fits = [out <= int(limit * len(rows) + 1e-9) and n["mean_risk"] <= most + 1e-12 for n, out in nodes]
    rules = eq.rules.MinCount(k) if k > 1 else ()
    if not any(fits):
        with pytest.raises(eq.InfeasibleError, match="and a mean risk of at most"):
            eq.best_coarsening(records, rules, loss, limit, mean_risk_at_most=most)
        return
    best = eq.best_coarsening(records, rules, loss, limit, mean_risk_at_most=most)
    assert best.loss == pytest.approx(min(n[loss] for (n, _), fit in zip(nodes, fits, strict=True) if fit), abs=1e-9)
    assert best.proven
    released = best.recipe.run(records)
    assert eq.risk.Prosecutor("mean").measure(released, records).value == pytest.approx(best.mean_risk)
    whole = eq.best_coarsening(records, rules, loss, limit, mean_risk_at_most=most, whole=True)
    assert whole.lattice["satisfied"].to_list() == fits
    inferred = best.lattice.filter(pl.col("known") == "inferred")
    assert inferred.join(whole.lattice.filter("satisfied"), on=list(TREES)).height == 0


@given(
    rows=RECORDS,
    gaps=st.lists(st.tuples(st.integers(0, 39), st.sampled_from("abc")), max_size=6),
    missing=st.sampled_from(["any", "category"]),
)
def test_missing_keys_and_the_mean_risk(rows: list[Any], gaps: list[tuple[int, str]], missing: Any) -> None:
    """The risk of the release is at most what was promised; the search loses nothing against all nodes counted."""
    table = made(rows)
    for at, key in gaps:
        table = table.with_columns(pl.when(pl.int_range(pl.len()) == at).then(None).otherwise(pl.col(key)).alias(key))
    records = eq.read(table, roles(missing=missing))
    options: dict[str, Any] = {"loss": "entropy", "suppress_at_most": 0.3, "mean_risk_at_most": 0.3}
    try:
        best, whole = (eq.best_coarsening(records, eq.rules.MinCount(2), whole=w, **options) for w in (False, True))
    except eq.InfeasibleError:
        return
    assert best.loss == pytest.approx(whole.loss, abs=1e-9)
    released = best.recipe.run(records)
    assert eq.risk.Prosecutor("mean").measure(released, records).value <= best.mean_risk + 1e-9 <= 0.3 + 2e-9


@settings(max_examples=20)
@given(
    rows=RECORDS,
    most=st.sampled_from([0.1, 0.3]),
    limit=st.sampled_from([0.0, 0.2]),
    name=st.sampled_from(["distinct", "recursive"]),
)
def test_a_mean_risk_beside_other_rules(rows: list[Any], most: float, limit: float, name: str) -> None:
    """Its pruning holds also where the rule prunes nothing."""
    table, (rule, safe) = made(rows), RULES[name]
    nodes = [by_hand(table, levels, safe) for levels in product(range(3), range(3), range(2))]
    fits = [n["entropy"] for n, out in nodes if out <= int(limit * len(rows) + 1e-9) and n["mean_risk"] <= most + 1e-12]
    try:
        best = eq.best_coarsening(eq.read(table, roles()), rule, "entropy", limit, mean_risk_at_most=most).loss
    except eq.InfeasibleError:
        best = -1.0
    assert best == pytest.approx(min(fits, default=-1.0), abs=1e-9)


PEOPLE = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 1), st.just(0)), min_size=1, max_size=60
)


@given(rows=RECORDS, more=PEOPLE, k=st.integers(2, 6), limit=st.sampled_from([0.0, 0.1, 0.3]), size=st.integers(1, 3))
def test_people_of_a_population(rows: list[Any], more: list[Any], k: int, limit: float, size: int) -> None:
    """k-map against exhaustive search: people of every class, those with a value that no record has left out."""
    table, everybody = made(rows), made([*rows, *more])
    values = [set(table[key]) for key in TREES]
    people = [row[:3] for row in everybody.rows() if all(v in own for v, own in zip(row, values, strict=False))]
    paths = {key: {row[0]: row for row in TREES[key]} for key in TREES}
    nodes = []
    for levels in product(range(3), range(3), range(2)):
        classes = Counter(tuple(paths[key][row[j]][levels[j]] for j, key in enumerate(TREES)) for row in people)
        nodes.append(
            by_hand(table, levels, lambda v: len(v) >= size, people=lambda keys, classes=classes: classes[keys] >= k)
        )
    most = int(limit * len(rows) + 1e-9)
    records, population = eq.read(table, roles()), eq.read(everybody, eq.Roles())
    rules = [eq.rules.KMap(k, population), *([eq.rules.MinCount(size)] if size > 1 else [])]
    whole = eq.best_coarsening(records, rules, "entropy", 1.0, whole=True)
    assert whole.lattice["suppressed"].to_list() == [out for _, out in nodes]
    fits = [losses["granularity"] for losses, out in nodes if out <= most]
    if not fits:
        with pytest.raises(eq.InfeasibleError):
            eq.best_coarsening(records, rules, suppress_at_most=limit)
        return
    best = eq.best_coarsening(records, rules, suppress_at_most=limit)
    assert best.loss == pytest.approx(min(fits), abs=1e-9)
    released = best.recipe.run(records).collect()
    assert released["a"].null_count() == best.suppressed


def test_a_population_in_a_file(plain: eq.Records, people: pl.DataFrame, tmp_path: Any) -> None:
    """The released file is k-mapped, as risk.Journalist measures it, and the recipe survives a file."""
    pl.concat([people, people.sample(300, seed=1)]).write_parquet(tmp_path / "register.parquet")
    rule = eq.rules.KMap(6, tmp_path / "register.parquet")
    best = eq.best_coarsening(plain, rule, suppress_at_most=0.2)
    assert best.suppressed > 0
    released = best.recipe.run(plain)
    score = eq.risk.Journalist(tmp_path / "register.parquet", k=6).measure(released, plain)
    small = released.collect().filter(pl.Series(score.by_record()["risk"] > 0))
    assert small["sex"].null_count() == small.height
    assert [catalogue.build(p.pop("use"), "mask", p) for p in map(catalogue.to_plain, best.recipe.masks)] == list(
        best.recipe.masks
    )
    patched = eq.best_coarsening(plain, eq.rules.KMap(6), suppress_at_most=0.2)
    assert eq.count(patched.recipe.run(plain)).table.drop_nulls()["total"].min() >= 6


def test_the_file_as_its_own_population(plain: eq.Records) -> None:
    """k-map is k-anonymity then, at every node."""
    one, two = (
        eq.best_coarsening(plain, rule, suppress_at_most=0.1, whole=True)
        for rule in (eq.rules.MinCount(4), eq.rules.KMap(4, plain))
    )
    assert one.lattice.select("suppressed", "classes", "satisfied").equals(
        two.lattice.select("suppressed", "classes", "satisfied")
    )
    assert one.levels == two.levels


@pytest.mark.parametrize("limit", [0.0, 0.1])
def test_people_and_mean_risk_in_a_large_lattice(plain: eq.Records, people: pl.DataFrame, limit: float) -> None:
    """The beam's answer satisfies them, and its bound is below the optimum."""
    population = eq.read(pl.concat([people, people.sample(300, seed=1)]), eq.Roles())
    options: dict[str, Any] = {"suppress_at_most": limit, "mean_risk_at_most": 0.05}
    whole = eq.best_coarsening(plain, eq.rules.KMap(6, population), **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_PROVEN_NODES", 10)
        patch.setattr("equipoise.search._best_coarsening.beam.MAX_GROUP_NODES", 8)
        best = eq.best_coarsening(plain, eq.rules.KMap(6, population), **options)
    assert best.lower_bound <= whole.loss + 1e-12 <= best.loss + 2e-12
    assert best.mean_risk <= 0.05
    assert best.suppressed <= limit * 400


@given(
    rows=RECORDS,
    limit=st.sampled_from([0.0, 0.2]),
    loss=st.sampled_from([eq.losses.Granularity, eq.losses.Entropy, eq.losses.NonUniformEntropy]),
    weights=st.dictionaries(st.sampled_from("abc"), st.sampled_from([0.1, 0.5, 1.0, 3.0]), max_size=3),
)
def test_weights_of_keys(rows: list[Any], limit: float, loss: Any, weights: dict[str, float]) -> None:
    table, name = made(rows), module.snake(loss.__name__)
    nodes = [by_hand(table, levels, lambda v: len(v) >= 2, weights) for levels in product(range(3), range(3), range(2))]
    fits = [losses[name] for losses, out in nodes if out <= int(limit * len(rows) + 1e-9)]
    if fits:
        best = eq.best_coarsening(eq.read(table, roles()), eq.rules.MinCount(2), loss(weights=weights), limit)
        assert best.loss == pytest.approx(min(fits), abs=1e-9)


def test_a_weight_decides_which_key_is_coarsened(plain: eq.Records) -> None:
    """The key that counts for little is given up first, and equal weights are none."""
    light = {key: eq.losses.Granularity(weights={key: 0.05}) for key in ("area", "age")}
    best = {key: eq.best_coarsening(plain, eq.rules.MinCount(3), loss, 0.1) for key, loss in light.items()}
    assert best["area"].levels != best["age"].levels
    even = eq.losses.Granularity(weights=dict.fromkeys(("sex", "area", "age"), 0.7))
    one, two = (eq.best_coarsening(plain, eq.rules.MinCount(3), loss, 0.1) for loss in ("granularity", even))
    assert (one.levels, one.loss) == (two.levels, pytest.approx(two.loss))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"mean_risk_at_most": 5}, eq.ParameterError, "Write 5 % as 0.05"),
        ({"mean_risk_at_most": 0}, eq.ParameterError, "above 0"),
        ({"rules": eq.rules.KMap(3, coarsen="age=10")}, eq.ParameterError, "leave coarsen out"),
        ({"loss": eq.losses.Entropy(weights={"agee": 1})}, eq.RolesError, "which is no key"),
        ({"loss": eq.losses.Entropy(weights={"sex": 0, "area": 0, "age": 0})}, eq.ParameterError, "weight 0"),
    ],
)
def test_more_refusals(plain: eq.Records, arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        eq.best_coarsening(plain, **{"rules": eq.rules.MinCount(3), **arguments})


def test_a_population_joined_by_and(plain: eq.Records, people: pl.DataFrame) -> None:
    """Counted, but not released where records would have to be suppressed for it."""
    rule = eq.rules.KMap(6, eq.read(people, eq.Roles())) & eq.rules.MinCount(4)
    with pytest.raises(eq.ParameterError, match="cannot be joined by &"):
        eq.best_coarsening(plain, rule, suppress_at_most=0.3)
    assert eq.best_coarsening(plain, rule, suppress_at_most=0.0).suppressed == 0
