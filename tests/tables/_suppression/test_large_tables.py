"""What is done otherwise in large tables, on small ones made to count as large; checked by SciPy's programs."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog

import equipoise as eq
from equipoise.data.tables.additivity import Additive
from equipoise.ground.randomness import Draws
from equipoise.tables._suppression import cheapest_move, feasible_moves, insider_guard, suppression_pattern
from equipoise.tables._suppression.cheapest_move import TableMove
from equipoise.tables._suppression.fast import REMOVAL_EFFORT_PER_CELL, REMOVAL_PARTS, Cover
from equipoise.tables._suppression.insider_guard import _Meeting
from equipoise.tables._suppression.insiders import Failure
from equipoise.tables._suppression.problem import SuppressionTable
from equipoise.tables._suppression.remembered_moves import PatternMoves, moves_of, reached
from equipoise.tables._suppression.suppression_pattern import suppress
from equipoise.tables.audits import attacker_intervals, suppressed_cells
from equipoise.tables.audits.attacker_intervals import audit

TREE = np.array([-1, 0, 0, 0, 0, 0])


def drawn(seed: int) -> dict[str, Any]:
    """A 5 x 5 x 5 table with a twelfth of its cells primary, at high levels."""
    draw = np.random.default_rng(seed)
    values = np.zeros((6, 6, 6))
    values[1:, 1:, 1:] = np.ceil(draw.lognormal(2, 1.5, (5, 5, 5)))
    for axis in range(3):
        part = np.moveaxis(values, axis, 0)
        part[0] = part[1:].sum(axis=0)
    values = values.ravel()
    primary = draw.random(len(values)) < 0.08
    return {"values": values, "primary": primary, "level": np.where(primary, np.ceil(values / 3), 0.0)}


def farthest(additive: Additive, values: Any, hidden: Any, cell: int, sign: int) -> float:
    cells = np.flatnonzero(hidden)
    matrix = additive.matrix[:, cells]
    bounds = [(-value, None) for value in values[cells]]
    found = linprog(-sign * (cells == cell), A_eq=matrix, b_eq=np.zeros(matrix.shape[0]), bounds=bounds)
    return np.inf if found.status == 3 else -float(found.fun)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs hold a few cells first, so that many demands are met by no move nearby."""
    monkeypatch.setattr(cheapest_move, "MAX_WHOLE_ENTRIES", 0)
    monkeypatch.setattr(cheapest_move, "PART_CELLS", (6, 40))
    monkeypatch.setattr(suppression_pattern, "MAX_ROUNDED_DEMANDS", 0)
    monkeypatch.setattr("equipoise.tables._suppression.neighbourhood.MIN_LIVING_CELLS", (1, 1))


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("stop", ["", "finding", "taking out"])
def test_demands_that_no_move_nearby_meets_are_met_in_the_end(seed: int, stop: str) -> None:
    """Stopped in every phase as well; without the relaxed problem no cutting planes are looked for."""
    from equipoise.ground.progress import Stoppable

    t, additive, phases = drawn(seed), Additive.over([TREE] * 3), set()

    def tell(count: int, total: int, what: str) -> bool:
        phases.add(what)
        return not (stop and what.startswith(stop))

    level = t["level"]
    found = suppress(additive, t["values"], t["primary"], lpl=level, upl=level, progress=Stoppable(tell))
    assert "finding cells to suppress for the largest levels" in phases
    assert not any("cutting planes" in what for what in phases)
    for cell in np.flatnonzero(t["primary"]).tolist():
        for sign in (1, -1):
            assert farthest(additive, t["values"], found.suppressed, cell, sign) >= level[cell] * (1 - 1e-6)


@pytest.mark.parametrize(("saved", "tries"), [(0.0, 2), (0.01, 2 * REMOVAL_PARTS)])
def test_taking_out_goes_on_as_long_as_it_saves(saved: float, tries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part of the effort (here two cells) must save its share of the cost, or the next is not spent."""
    calls: list[int] = []

    def tried(cover: Cover, cell: int) -> bool:
        calls.append(cell)
        cover.finder.work += REMOVAL_EFFORT_PER_CELL * len(cover.secondary()) // (2 * REMOVAL_PARTS) + 1
        cover.total *= 1 - saved
        return False

    monkeypatch.setattr(Cover, "_without", tried)
    t = drawn(1)
    additive, level = Additive.over([TREE] * 3), t["level"]
    found = suppress(additive, t["values"], t["primary"], lpl=level, upl=level, bounded=False)
    assert len(calls) == tries < int(found.secondary.sum())


@pytest.mark.parametrize(("relations", "freedom"), [(0, 0.0), (0, 1.0), (10**9, 1.0)])
def test_moves_are_as_far_as_a_program_says_reduced_or_not(
    relations: int, freedom: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over relations, reduced or not, and over moves that span all others; with shy cells and those held still."""
    monkeypatch.setattr(feasible_moves, "MIN_REDUCED_RELATIONS", relations)
    monkeypatch.setattr(feasible_moves, "MAX_FREEDOM", freedom)
    t, additive = drawn(2), Additive.over([TREE] * 3)
    table, draw = SuppressionTable.of(additive, t["values"]), np.random.default_rng(4)
    hidden = t["primary"] | (draw.random(table.cells) < 0.4)
    shy = draw.random(table.cells) < 0.2
    short = 0
    for part in feasible_moves.components(table, hidden, t["level"], shy):
        for cell in part.cells[t["level"][part.cells] > 0].tolist():
            still, level = draw.choice(part.cells, 3), 40.0 * float(t["level"][cell])
            loose = hidden & ~np.isin(np.arange(table.cells), still)
            for sign in (1, -1) if cell not in still else ():
                far, move = part.move(cell, sign, level, still)
                best = min(level, farthest(additive, t["values"], loose, cell, sign))
                assert far == pytest.approx(best, rel=1e-6, abs=1e-6)
                assert (far > 0) == (move is not None)
                short += far < level
        assert (part.kept is None) == (relations == 0 and freedom == 1.0)
    assert short


def test_a_demand_that_a_move_for_somebody_else_meets_takes_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same cell and level against several people: one move serves all whose cells it leaves as they must be."""
    flat = np.array([-1, 0, 0, 0])
    values = np.array([90, 30, 30, 30, 30, 10, 10, 10, 30, 10, 10, 10, 30, 10, 10, 10.0])
    table = SuppressionTable.of(Additive.over([flat, flat]), values)
    meeting = _Meeting(table, np.ones(16, dtype=np.bool_), values, np.array([4.0]), None)
    asked: list[Any] = []
    monkeypatch.setattr(meeting.finder, "cheapest", lambda *demand, **_: asked.append(demand))
    monkeypatch.setattr(meeting, "_floored", lambda *_: meeting.finder)
    move = TableMove.of(table, np.array([5, 6, 9, 10]), np.array([4.0, -4.0, -4.0, 4.0]))
    audit, none = SimpleNamespace(moves={5: [move]}), feasible_moves.NO_CELLS

    def met(sign: int, level: float, still: Any, floor: Any = None) -> bool:
        asked.clear()
        failure = Failure(5, sign, level, np.array(still, dtype=np.int64), floor)
        meeting.meet(failure, np.ones(16, dtype=np.bool_), audit, nearby=True)
        return not asked

    assert met(1, 4.0, none)
    assert met(-1, 10.0, [7, 11])
    assert not met(1, 10.1, none)
    assert not met(1, 4.0, [9])
    assert met(1, 4.0, none, (np.array([6, 11]), np.array([4.0, 0.0])))
    assert not met(1, 4.0, none, (np.array([6, 11]), np.array([3.0, 0.0])))


def test_moves_that_are_not_moves_prove_nothing() -> None:
    tree = np.array([-1, 0, 0, 0])
    values = np.array([45, 15, 15, 15, 18, 3, 6, 9, 14, 5, 4, 5, 13, 7, 5, 1], dtype=float)
    table, hidden = SuppressionTable.of(Additive.over([tree, tree]), values), np.isin(np.arange(16), [5, 6, 9, 10])
    cells, by = np.array([5, 6, 9, 10]), np.array([1.0, -1.0, -1.0, 1.0])
    fall, rise = reached(table, hidden, [(cells, by)])
    assert (fall[cells].tolist(), rise[cells].tolist()) == ([3, 5, 5, 3], [5, 3, 3, 5])
    published = hidden & (np.arange(16) != 10)
    for wrong in ((table, published, [(cells, by)]), (table, hidden, [(cells, by * [1.0, 1.0, 1.0, 0.99])])):
        assert not any(side.any() for side in reached(*wrong))
    assert not any(side.any() for side in reached(table, hidden, []))


@pytest.mark.parametrize("seed", range(3))
def test_an_audit_that_starts_from_moves_finds_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exact intervals do not change; those of large components are never wider, and need no program where moves do."""
    t, additive = drawn(seed), Additive.over([TREE] * 3)
    level = t["level"]
    found = suppress(additive, t["values"], t["primary"], lpl=level, upl=level)
    moves = moves_of(found.witnesses)
    exact, again = (audit(additive, t["values"], found.suppressed, moves=some) for some in (None, moves))
    slack = 1e-6 * np.maximum(1.0, t["values"])
    for one, two in ((exact.lower, again.lower), (exact.upper, again.upper)):
        assert (np.isclose(one, two, atol=slack.max()) | ((one == two) & np.isinf(one))).all()
    monkeypatch.setattr(attacker_intervals, "MANY_UNKNOWNS", 0)
    enough = audit(additive, t["values"], found.suppressed, enough=(level, level), targets=t["primary"], moves=moves)
    assert enough.programs == 0
    assert (enough.lower >= exact.lower - slack).all()
    assert (enough.upper <= exact.upper + slack).all()
    assert (enough.lower <= t["values"] - level + slack)[t["primary"]].all()
    assert (enough.upper >= t["values"] + level - slack)[t["primary"]].all()


def test_false_moves_in_memory_change_no_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Moves that do not add up, or change published cells, are planted for every audit of a pattern that is unsafe."""
    draw = np.random.default_rng(5)
    firms = pl.DataFrame({"a": draw.integers(0, 6, 60).astype(str), "b": draw.integers(0, 6, 60).astype(str)})
    firms = firms.with_columns(v=np.ceil(draw.lognormal(3, 1, 60)))
    made = eq.table(eq.Records.of(firms, eq.Roles()), ["a", "b"], "v")
    released = eq.tables.Suppress(eq.rules.PPercent(0.1), singletons=False).apply(made, Draws(1))
    hidden = np.flatnonzero(np.isnan(released.published_values))
    rows = [eq.tables.audit(released)]
    cells = np.arange(len(made))
    false = [(hidden, draw.normal(size=len(hidden))), (cells, draw.normal(size=len(cells))), (hidden[:1], np.ones(1))]
    monkeypatch.setattr(suppressed_cells, "recall", lambda *_: PatternMoves(false, false))
    rows.append(eq.tables.audit(released))
    assert rows[0].filter(pl.col("against") != "outsider")["exposed"].any()
    assert rows[0].drop("lower", "upper").equals(rows[1].drop("lower", "upper"))
    for side in ("lower", "upper"):
        assert np.allclose(*(one[side].to_numpy() for one in rows), atol=1e-6)


@pytest.mark.parametrize("stop", [False, True])
def test_after_a_stop_nothing_is_made_cheaper_and_everybody_is_still_guarded_against(
    stop: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first moves found, nothing taken out; the law says so, and an audit of all who contribute passes."""
    draw, pruned, hurried = np.random.default_rng(5), [], []
    firms = pl.DataFrame({"a": draw.integers(0, 5, 50).astype(str), "b": draw.integers(0, 5, 50).astype(str)})
    firms = firms.with_columns(v=np.ceil(draw.lognormal(3, 1, 50)))
    made = eq.table(eq.Records.of(firms, eq.Roles()), ["a", "b"], "v")
    prune, meet = insider_guard._pruned, _Meeting.meet
    monkeypatch.setattr(insider_guard, "_pruned", lambda *some: pruned.append(1) or prune(*some))
    monkeypatch.setattr(_Meeting, "meet", lambda self, *some, **n: hurried.append(self.hurry) or meet(self, *some, **n))
    released = eq.tables.Suppress(eq.rules.PPercent(0.1)).apply(made, Draws(1), lambda *_: not stop)
    assert hurried
    assert set(hurried) == {stop}
    assert bool(pruned) != stop
    assert released.history[-1].parameters.get("stopped", False) == stop
    assert not eq.tables.audit(released)["exposed"].any()
