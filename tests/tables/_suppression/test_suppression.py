"""Patterns and intervals against dense programs written here from the raw table."""

import os
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, linprog, milp

import equipoise as eq
from equipoise.data.tables.additivity import Additive
from equipoise.tables._suppression.problem import SuppressionTable
from equipoise.tables._suppression.suppression_pattern import suppress
from equipoise.tables.audits.attacker_intervals import audit

FLAT = np.array([-1, 0, 0, 0, 0])
DEEP = np.array([-1, 0, 0, 1, 1, 1, 2, 2])
SHAPES = [[DEEP], [FLAT, FLAT], [FLAT, DEEP], [DEEP, DEEP], [FLAT, FLAT[:4], FLAT[:3]], [FLAT[:3]] * 4]


def dense(matrix: Any, values: Any, hidden: Any, low: Any, high: Any, cell: int, sign: int, still: Any = ()) -> float:
    """The farthest a cell can be from its value in a direction, by SciPy, over the whole dense matrix."""
    bounds = [
        (lo - v, hi - v if np.isfinite(hi) else None) if h and j not in still else (0, 0)
        for j, (v, h, lo, hi) in enumerate(zip(values, hidden, low, high, strict=True))
    ]
    cost = np.zeros(len(values))
    cost[cell] = -sign
    found = linprog(cost, A_eq=matrix, b_eq=np.zeros(len(matrix)), bounds=bounds, method="highs")
    return np.inf if found.status == 3 else -float(found.fun)


def random_table(trees: list[Any], seed: int) -> dict[str, Any]:
    """A table with zeros (some known), primaries with levels, costs, singletons; all drawn."""
    draw = np.random.default_rng(seed)
    additive = Additive.over(trees)
    sizes = [len(tree) for tree in trees]
    base = draw.integers(1, 60, sizes) * (draw.random(sizes) > 0.15)
    up = [_ancestors(tree) for tree in trees]
    values = base.astype(float)
    for axis, matrix in enumerate(up):
        values = np.moveaxis(np.tensordot(matrix, values, (1, axis)), 0, axis)
    values = values.ravel()
    additive.check(values)
    known = (values == 0) & (draw.random(len(values)) < 0.7)
    primary = (values > 0) & (draw.random(len(values)) < 0.12)
    level = np.where(primary, np.minimum(np.ceil(values * draw.uniform(0.05, 0.3, len(values))), values), 0.0)
    return {
        "additive": additive, "values": values, "primary": primary, "upl": level, "lpl": level,
        "low": np.zeros(len(values)), "high": np.where(known, 0.0, np.inf if seed % 2 else 1.5 * values.max()),
        "singletons": primary & (draw.random(len(values)) < 0.3),
    }  # fmt: skip


def _ancestors(tree: Any) -> Any:
    """A row for each code: which lowest codes it adds up."""
    found = np.zeros((len(tree), len(tree)))
    for leaf in set(range(len(tree))) - {int(p) for p in tree}:
        code = leaf
        while code >= 0:
            found[code, leaf] = 1
            code = int(tree[code])
    return found


def assert_protected(t: dict[str, Any], hidden: Any, knowers: Any = None) -> None:
    matrix = t["additive"].matrix.toarray()
    for cell in np.flatnonzero(t["primary"]):
        stills: list[Any] = [()]
        if knowers is not None:
            stills += [(other,) for other in np.flatnonzero(knowers) if other != cell]
        for still in stills:
            for sign, level in ((1, t["upl"][cell]), (-1, t["lpl"][cell])):
                far = dense(matrix, t["values"], hidden, t["low"], t["high"], cell, sign, still)
                assert far >= level * (1 - 1e-6), (cell, sign, still)


def attempt(t: dict[str, Any], **more: Any) -> Any:
    """The pattern, or None after checking that not even the whole table protects the cell named."""
    given = {k: t[k] for k in ("lpl", "upl", "low", "high")}
    try:
        return suppress(t["additive"], t["values"], t["primary"], **given, **more)
    except eq.InfeasibleError as error:
        cell, matrix = error.cell, t["additive"].matrix.toarray()
        assert cell is not None
        knowers = more.get("singletons")
        others = [(k,) for k in np.flatnonzero(knowers) if k != cell] if knowers is not None else []
        reach = [
            dense(matrix, t["values"], np.ones(len(t["values"]), bool), t["low"], t["high"], cell, sign, still)
            - t["upl" if sign > 0 else "lpl"][cell]
            for sign in (1, -1)
            for still in [(), *others]
        ]
        assert min(reach) < 0
        return None


@pytest.mark.evidence(every=6)
@pytest.mark.parametrize(("trees", "seed"), [(trees, seed) for trees in SHAPES for seed in range(3)])
def test_no_primary_is_ever_inside_its_protection_interval(trees: list[Any], seed: int) -> None:
    t = random_table(trees, seed)
    found = attempt(t)
    if found is not None:
        assert_protected(t, found.suppressed)
        found.verify(SuppressionTable.of(t["additive"], t["values"], t["low"], t["high"]))
        assert found.bound <= found.cost
        intervals = audit(t["additive"], t["values"], found.suppressed, low=t["low"], high=t["high"])
        assert (intervals.upper[t["primary"]] >= (t["values"] + t["upl"])[t["primary"]] * (1 - 1e-9)).all()
        assert not intervals.disclosed()[t["primary"]].any()


@pytest.mark.evidence(every=4)
@pytest.mark.parametrize(("trees", "seed"), [(trees, seed) for trees in SHAPES[1:5] for seed in range(2)])
def test_contributors_who_know_their_own_cell_learn_no_other(trees: list[Any], seed: int) -> None:
    t = random_table(trees, seed + 10)
    found = attempt(t, singletons=t["singletons"])
    if found is not None:
        assert_protected(t, found.suppressed, t["singletons"])


def test_two_singletons_in_one_relation_need_a_third_cell() -> None:
    additive = Additive.over([FLAT])
    values = np.array([100.0, 10, 20, 30, 40])
    pair = np.array([False, True, True, False, False])
    plain = suppress(additive, values, pair, lpl=1, upl=1)
    assert plain.suppressed.sum() == 2
    wary = suppress(additive, values, pair, lpl=1, upl=1, singletons=pair)
    assert np.flatnonzero(wary.suppressed).tolist() == [1, 2, 3]
    holding = np.array([-1, 7, -1, 7, -1])
    both = suppress(additive, values, pair, lpl=1, upl=1, singletons=holding)
    assert np.flatnonzero(both.suppressed).tolist() == [1, 2, 4]


@pytest.mark.evidence(every=3)
@pytest.mark.parametrize(("trees", "seed"), [(trees, seed) for trees in SHAPES for seed in range(3)])
def test_intervals_are_those_of_a_dense_program(trees: list[Any], seed: int) -> None:
    t = random_table(trees, seed)
    hidden = np.random.default_rng(seed).random(len(t["values"])) < 0.45
    found = audit(t["additive"], t["values"], hidden, low=t["low"], high=t["high"])
    matrix = t["additive"].matrix.toarray()
    for cell in np.flatnonzero(hidden)[:40]:
        for sign, bound in ((1, found.upper), (-1, found.lower)):
            far = dense(matrix, t["values"], hidden, t["low"], t["high"], cell, sign)
            assert bound[cell] == pytest.approx(t["values"][cell] + sign * far, abs=1e-5), (cell, sign)
    assert (found.lower[~hidden] == t["values"][~hidden]).all()


@pytest.mark.parametrize("seed", range(3))
def test_intervals_of_counts_are_those_of_whole_tables(seed: int) -> None:
    """Three dimensions: here linear and whole intervals differ."""
    draw = np.random.default_rng(seed)
    trees = [FLAT[:4]] * 3
    additive = Additive.over(trees)
    values = draw.integers(0, 3, (4, 4, 4)).astype(float)
    for axis in range(3):
        values = np.moveaxis(np.tensordot(_ancestors(FLAT[:4]), values, (1, axis)), 0, axis)
    values = values.ravel()
    hidden = np.zeros((4, 4, 4), bool)
    hidden[1:, 1:, 1:] = True
    hidden = hidden.ravel()
    found = audit(additive, values, hidden, integer=True)
    matrix, size = additive.matrix.toarray(), len(values)
    for cell in np.flatnonzero(hidden):
        for sign, bound in ((1, found.upper), (-1, found.lower)):
            best = milp(
                -sign * np.eye(size)[cell], integrality=np.ones(size),
                constraints=LinearConstraint(matrix, 0, 0),
                bounds=(np.where(hidden, 0, values), np.where(hidden, np.inf, values)),
            )  # fmt: skip
            assert bound[cell] == pytest.approx(-sign * best.fun)
    with pytest.raises(eq.ParameterError, match="whole numbers"):
        audit(additive, values / 2, hidden, integer=True)


def test_a_hidden_pattern_that_gives_itself_away() -> None:
    """Every row and column has two cells hidden, yet row 1 + row 2 - column 1 - column 3 leaves cell (1, 2) alone."""
    inner = np.array([[0, 1, 1, 1, 0], [0, 1, 0, 1, 0], [0, 0, 1, 0, 1], [0, 0, 1, 0, 1]], dtype=bool)
    hidden = np.vstack([np.zeros(5, bool), inner]).ravel()
    values = _ancestors(FLAT) @ np.random.default_rng(4).integers(5, 60, (5, 5)) @ _ancestors(FLAT).T
    additive = Additive.over([FLAT, FLAT])
    found = audit(additive, values.ravel(), hidden)
    assert np.flatnonzero(found.disclosed()).tolist() == [7]
    better = suppress(additive, values.ravel(), hidden, lpl=1, upl=1, method="optimal")
    assert better.secondary.sum() >= 1
    assert not audit(additive, values.ravel(), better.suppressed).disclosed().any()


@pytest.mark.parametrize("seed", range(4))
def test_the_optimum_is_that_of_all_patterns(seed: int) -> None:
    """A 4 x 4 table by brute force over every set of the nine inner cells and six margins."""
    draw = np.random.default_rng(seed)
    tree = np.array([-1, 0, 0, 0])
    inner = draw.integers(2, 30, (3, 3)).astype(float)
    values = np.zeros((4, 4))
    values[1:, 1:] = inner
    values[0] = values.sum(axis=0)
    values[:, 0] = values.sum(axis=1)
    additive, values = Additive.over([tree, tree]), values.ravel()
    primary = np.zeros(16, bool)
    primary[[5, 11]] = True
    level = np.where(primary, 2.0, 0.0)
    found = suppress(additive, values, primary, lpl=level, upl=level, method="optimal")
    matrix, others = additive.matrix.toarray(), [j for j in range(16) if not primary[j] and j // 4 and j % 4]
    best = np.inf
    for chosen in product((False, True), repeat=len(others)):
        hidden = primary.copy()
        hidden[others] = chosen
        cost = values[hidden & ~primary].sum()
        if cost < best and all(
            dense(matrix, values, hidden, np.zeros(16), np.full(16, np.inf), c, s) >= 2 - 1e-9
            for c, s in product((5, 11), (1, -1))
        ):  # fmt: skip
            best = cost
    assert (found.cost, found.bound) == pytest.approx((best, best), rel=1e-9)


def test_linked_tables_are_protected_together() -> None:
    """Two tables over the same regions, grouped two ways: cell 1 of the first is known from the second."""
    t = random_table([FLAT, DEEP], 5)
    additive, values = t["additive"], t["values"]
    count = len(values)
    shared = np.flatnonzero(np.arange(count) % len(DEEP) == 0)
    sums = values[shared[1:]]
    second = Additive.of([((0, 1, 2), (-1, 1, 1)), ((1, 3, 4), (-1, 1, 1)), ((2, 5, 6), (-1, 1, 1))], cells=7)
    places = np.concatenate([[0], [count, count + 1], shared[1:3], shared[3:5]])
    linked = Additive.linked([additive, second], [np.arange(count), places])
    longer = np.concatenate([values, [sums[:2].sum(), sums[2:].sum()]])
    linked.check(longer)
    grown = {k: np.concatenate([t[k], np.zeros(2, t[k].dtype)]) for k in ("primary", "lpl", "upl", "low")}
    grown |= {"additive": linked, "values": longer, "high": np.append(t["high"], [np.inf, np.inf])}
    found = attempt(grown)
    assert found is not None
    assert_protected(grown, found.suppressed)


def test_forced_and_forbidden_cells() -> None:
    additive, values = Additive.over([FLAT]), np.array([100.0, 10, 20, 30, 40])
    one = np.arange(5) == 1
    assert np.flatnonzero(suppress(additive, values, one, lpl=1, upl=1).suppressed).tolist() == [1, 2]
    shown = suppress(additive, values, one, lpl=1, upl=1, forbidden=np.arange(5) == 2)
    assert np.flatnonzero(shown.suppressed).tolist() == [1, 3]
    hidden = suppress(additive, values, one, lpl=1, upl=1, forced=np.arange(5) == 4)
    assert np.flatnonzero(hidden.suppressed).tolist() == [1, 4]
    assert hidden.cost == hidden.bound == 40
    with pytest.raises(eq.InfeasibleError, match="Cell 1 cannot") as caught:
        suppress(additive, values, one, lpl=1, upl=1, forbidden=~one)
    assert caught.value.cell == 1
    with pytest.raises(eq.InfeasibleError, match="at once"):
        suppress(additive, values, one, lpl=1, upl=1, forbidden=one)
    with pytest.raises(eq.InfeasibleError, match="limits"):
        suppress(additive, values, one, lpl=11, upl=1)


def test_a_zero_known_to_be_zero_helps_nobody() -> None:
    additive, values = Additive.over([FLAT]), np.array([60.0, 10, 0, 20, 30])
    one, cost = np.arange(5) == 1, np.array([60.0, 10, 1, 20, 30])
    free = suppress(additive, values, one, upl=1, cost=cost)
    assert np.flatnonzero(free.suppressed).tolist() == [1, 3]
    down = suppress(additive, values, one, lpl=1, cost=cost)
    assert np.flatnonzero(down.suppressed).tolist() == [1, 2]
    known = suppress(additive, values, one, lpl=1, cost=cost, high=np.where(values == 0, 0, np.inf))
    assert np.flatnonzero(known.suppressed).tolist() == [1, 3]


def test_sliding_levels_and_bad_input() -> None:
    additive, values = Additive.over([FLAT]), np.array([100.0, 10, 20, 30, 40])
    one = np.arange(5) == 1
    wide = suppress(additive, values, one, lpl=1, upl=1, spl=25)
    found = audit(additive, values, wide.suppressed)
    assert found.width[1] >= 25
    assert np.flatnonzero(wide.suppressed).tolist() == [1, 3]
    for bad in ({"upl": -1}, {"upl": np.nan}, {"cost": -values}, {"method": "slow"}, {"lpl": np.ones(3)}):
        with pytest.raises(eq.ParameterError):
            suppress(additive, values, one, **bad)
    with pytest.raises(eq.DataError, match="Cell 2 is not within"):
        suppress(additive, values, one, high=np.where(np.arange(5) == 2, 5, np.inf))
    with pytest.raises(eq.ParameterError):
        suppress(additive, values, np.arange(5))


def test_nothing_to_protect_and_stopping() -> None:
    additive, values = Additive.over([FLAT]), np.array([100.0, 10, 20, 30, 40])
    none = suppress(additive, values, np.zeros(5, bool))
    assert not none.suppressed.any()
    assert none.cost == none.bound == 0
    assert audit(additive, values, np.zeros(5, bool)).programs == 0
    with pytest.raises(eq.Cancelled):
        suppress(additive, values, np.arange(5) == 1, upl=1, lpl=1, progress=lambda *_: False)


def test_stopped_while_it_is_made_cheaper_the_pattern_protects() -> None:
    t = random_table([DEEP, DEEP], 3)

    def stop(count: int, total: int, what: str) -> bool:
        return not what.startswith("taking out")

    found = attempt(t, progress=stop)
    assert_protected(t, found.suppressed)
    assert found.cost >= attempt(t).cost


@pytest.mark.parametrize("unit", [2.0**-30, 1e-9, 1e9])
def test_the_unit_does_not_change_the_pattern(unit: float) -> None:
    t = random_table([FLAT, DEEP], 4)
    other = t | {name: t[name] * unit for name in ("values", "upl", "lpl", "low", "high")}
    one, two = attempt(t, singletons=t["singletons"]), attempt(other, singletons=t["singletons"])
    assert (one.suppressed == two.suppressed).all()
    assert two.cost == pytest.approx(one.cost * unit)
    wide = audit(other["additive"], other["values"], two.suppressed, low=other["low"], high=other["high"])
    assert not wide.disclosed()[t["primary"]].any()


def large_table(seed: int) -> dict[str, Any]:
    """A 9 x 9 x 9 table of which a third is primary: demands are met in bulk, moves found in neighbourhoods."""
    draw, tree = np.random.default_rng(seed), np.array([-1] + [0] * 9)
    values = np.zeros((10, 10, 10))
    values[1:, 1:, 1:] = draw.integers(1, 40, (9, 9, 9))
    for axis in range(3):
        values = np.moveaxis(np.tensordot(_ancestors(tree), values, (1, axis)), 0, axis)
    values = values.ravel()
    primary = values < 14
    level = np.where(primary, np.ceil(values / 5), 0.0)
    return {
        "additive": Additive.over([tree] * 3), "values": values, "primary": primary, "lpl": level, "upl": level,
        "low": np.zeros(len(values)), "high": np.full(len(values), np.inf),
        "singletons": primary & (draw.random(len(values)) < 0.3),
    }  # fmt: skip


@pytest.mark.parametrize("lone", [False, True])
def test_demands_met_in_bulk_are_met(lone: bool) -> None:
    """By SciPy over the hidden cells: every ninth primary, for outsiders and for contributors alone in a cell."""
    t = large_table(1)
    found = attempt(t, singletons=t["singletons"] if lone else None)
    assert found.witnesses.shape[0] < len(found.cell) / 2
    assert not len(found.weaker)
    hidden = np.flatnonzero(found.suppressed)
    matrix = t["additive"].matrix[:, hidden]
    knowers = [-1, *np.flatnonzero(t["singletons"])[::36]] if lone else [-1]
    for cell, knower in product(np.flatnonzero(t["primary"])[::9], knowers):
        bounds = np.stack([np.where(hidden == knower, 0.0, -t["values"][hidden]),
                           np.where(hidden == knower, 0.0, np.inf)], axis=1)  # fmt: skip
        for sign in (1, -1) if cell != knower else ():
            far = linprog(-sign * (hidden == cell), A_eq=matrix, b_eq=np.zeros(matrix.shape[0]), bounds=bounds)
            assert far.status == 3 or -far.fun >= t["upl"][cell] * (1 - 1e-6), (cell, sign, knower)


def test_large_components_are_audited_in_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals far enough for the levels, never wider than the exact ones, and exact where nothing says otherwise."""
    t = large_table(2)
    hidden = suppress(t["additive"], t["values"], t["primary"], lpl=t["lpl"], upl=t["upl"]).suppressed
    exact = audit(t["additive"], t["values"], hidden)
    monkeypatch.setattr("equipoise.tables.audits.attacker_intervals.MANY_UNKNOWNS", 20)
    monkeypatch.setattr("equipoise.tables.audits.attacker_intervals.MAX_EXACT_ENTRIES", 0)
    swept = audit(t["additive"], t["values"], hidden, enough=(t["lpl"], t["upl"]))
    slack = 1e-5 * np.maximum(1.0, t["values"])
    assert swept.programs < 20 < exact.programs
    assert (swept.lower >= exact.lower - slack).all()
    assert (swept.upper <= exact.upper + slack).all()
    assert (swept.upper >= t["values"] + t["upl"] - slack)[t["primary"]].all()
    assert (swept.lower <= t["values"] - t["lpl"] + slack)[t["primary"]].all()
    assert not exact.inner.any()
    sure = ~swept.inner
    assert (np.abs(swept.width - exact.width)[sure] <= 4 * slack[sure]).all()


def test_the_same_pattern_every_time() -> None:
    t = random_table([DEEP, DEEP], 3)
    one, two = attempt(t), attempt(t)
    assert (one.suppressed == two.suppressed).all()
    assert (one.witnesses != two.witnesses).nnz == 0


def jj(path: Path) -> dict[str, Any]:
    """A file in tau-ARGUS' JJ layout."""
    lines = path.read_text().splitlines()
    count = int(lines[1])
    rows = [line.split() for line in lines[2 : 2 + count]]
    numbers = {k: np.array([float(r[i]) for r in rows]) for i, k in enumerate(("value", "cost"), 1)}
    numbers |= {k: np.array([float(r[i]) for r in rows]) for i, k in enumerate(("low", "high", "lpl", "upl"), 4)}
    status = np.array([r[3] for r in rows])
    relations = []
    for line in lines[3 + count : 3 + count + int(lines[2 + count])]:
        terms = line.split(":")[1].replace("(", "").replace(")", "").split()
        relations.append(([int(j) for j in terms[::2]], [float(s) for s in terms[1::2]]))
    zero = status == "z"
    for bound in ("low", "high"):
        numbers[bound] = np.where(zero, numbers["value"], numbers[bound])
    return {
        "additive": Additive.of(relations, count), "values": numbers.pop("value"), "primary": status == "u", **numbers,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "optimum", "secondary", "method"),
    [
        ("t2_20x20_p10", 1808, 10, "fast"), ("t2_20x20_p10", 1808, 10, "optimal"),
        ("ent_act_product_p10", 237_480, 49, "fast"),
        pytest.param("t2h_60x40_p10", 68_767, 242, "fast", marks=pytest.mark.evidence),
    ],
)  # fmt: skip
def test_public_instances(name: str, optimum: float, secondary: int, method: Any) -> None:
    """The proven optimum of each, and every primary protected by a program from the raw file; the largest in full."""
    path = Path(os.environ.get("EQUIPOISE_DATA", "")) / "tables" / "jj" / f"{name}.jj"
    if not path.exists():
        pytest.skip("EQUIPOISE_DATA does not name a folder with tables/jj")
    t = jj(path)
    given = {k: t[k] for k in ("lpl", "upl", "low", "high", "cost")}
    found = suppress(t["additive"], t["values"], t["primary"], method=method, **given)
    assert found.cost <= optimum * (1 + (0.02 if method == "fast" else 1e-6))
    assert found.bound <= optimum * (1 + 1e-6)
    if method == "optimal":
        assert found.secondary.sum() == secondary
        assert found.bound == pytest.approx(optimum, rel=1e-6)
    assert_all_move(t, found.suppressed)


def assert_all_move(t: dict[str, Any], hidden: Any) -> None:
    """Every primary, both ways, by SciPy over the hidden cells of the raw relations."""
    cells = np.flatnonzero(hidden)
    matrix = t["additive"].matrix[:, cells]
    matrix = matrix[np.flatnonzero(np.diff(matrix.indptr))]
    bounds = np.stack([t["low"] - t["values"], t["high"] - t["values"]], axis=1)[cells]
    for cell in np.flatnonzero(t["primary"])[::30]:
        spot = int(np.searchsorted(cells, cell))
        for sign, level in ((1, t["upl"][cell]), (-1, t["lpl"][cell])):
            cost = np.zeros(len(cells))
            cost[spot] = -sign
            far = linprog(cost, A_eq=matrix, b_eq=np.zeros(matrix.shape[0]), bounds=bounds, method="highs")
            assert -far.fun >= level * (1 - 1e-6), (cell, sign)
