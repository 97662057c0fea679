"""Empty and full cells of linked tables stay unknown: attacked by SciPy's linear program over all classes of people.

The attacker has every published number of all tables, knows the groups and which column is another under a new name,
and that counts are not negative. He does not know which classes of people are empty. Nothing of the project's own is
used to attack.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array
from tests.redteam.test_linked_tables import Plan, in_another_file, numbers_of, people, plans

import equipoise as eq

SEEDS = range(400, 600)
ALIKE = {"cty": "county", "region": "county", "zone": "county", "branch": "trade", "sector": "trade"}
"""Columns that are another under a new name, or groups of its values."""


class Attacker:
    """Every class of people by county, trade and sex, and what the published cells say of them."""

    def __init__(self, frame: pl.DataFrame, drawn: list[Plan]) -> None:
        self.drawn = drawn
        self.values = {name: sorted(frame[name].unique()) for name in ("county", "trade", "sex")}
        self.classes = [*itertools.product(*self.values.values())]
        self.maps = {n: dict(zip(frame[of], frame[n], strict=True)) for n, of in ALIKE.items()}

    def label(self, one: tuple[str, ...], column: str) -> str:
        own = one[[*self.values].index(ALIKE.get(column, column))]
        return self.maps[column][own] if column in self.maps else own

    def cell(self, plan: Plan, labels: tuple[str, ...]) -> np.ndarray:
        """Which classes are in a cell."""
        inside = np.ones(len(self.classes), dtype=np.bool_)
        for place, (column, label) in enumerate(zip(plan.by, labels, strict=True)):
            own = [self.label(one, column) for one in self.classes]
            groups = plan.groups if place == 0 and plan.groups else {}
            inside &= np.array([label in ("Total", text, groups.get(text)) for text in own])
        return inside

    def know(self, published: list[dict[tuple[str, ...], float | None]]) -> None:
        told = [(plan, labels, number) for plan, numbers in zip(self.drawn, published, strict=True)
                for labels, number in numbers.items() if number is not None]  # fmt: skip
        self.matrix = csr_array(np.array([self.cell(plan, labels) for plan, labels, _ in told], dtype=np.float64))
        self.totals = np.array([number for *_, number in told])

    def most(self, goal: np.ndarray) -> float:
        answer = linprog(-goal, A_eq=self.matrix, b_eq=self.totals, bounds=(0, None), method="highs")
        assert answer.status in (0, 3), answer.message
        return np.inf if answer.status == 3 else -float(answer.fun)


def statements(frame: pl.DataFrame, plan: Plan, labels: list[tuple[str, ...]]) -> Iterator[tuple[Any, Any, int]]:
    """Each cell with each margin that widens one column by a step, and how many of the margin are elsewhere."""
    tops = {*(plan.groups or {}).values()} if len({*(plan.groups or {}).values()}) > 1 else set()

    def people_in(cell: tuple[str, ...]) -> int:
        keep = pl.lit(value=True)
        for place, (column, label) in enumerate(zip(plan.by, cell, strict=True)):
            groups = pl.col(column).replace_strict(plan.groups, default=None) if place == 0 and tops else pl.lit(None)
            keep &= (pl.lit(label) == "Total") | (pl.col(column) == label) | (groups == label).fill_null(value=False)
        return frame.filter(keep).height

    for cell in labels:
        for place in range(len(plan.by)):
            if cell[place] == "Total":
                continue
            up = "Total"
            if place == 0 and tops and cell[0] not in tops:
                up = (plan.groups or {})[cell[0]]
            margin = (*cell[:place], up, *cell[place + 1 :])
            yield cell, margin, people_in(margin) - people_in(cell)


def broken(frame: pl.DataFrame, drawn: list[Plan], published: list[dict[tuple[str, ...], float | None]]) -> list[str]:
    """Statements about everybody in a margin that follow from what is published."""
    attacker = Attacker(frame, drawn)
    attacker.know(published)
    following = []
    for plan, numbers in zip(drawn, published, strict=True):
        for cell, margin, others in statements(frame, plan, [*numbers]):
            inside, around = attacker.cell(plan, cell), attacker.cell(plan, margin)
            if (inside == around).all():
                continue
            total = attacker.most(around.astype(np.float64))
            if total < 0.5:
                continue
            if others == 0 and attacker.most((around & ~inside).astype(np.float64)) < 1 - 1e-6:
                following.append(f"{plan.by}: all of {margin} are {cell}")
            if attacker.most(inside.astype(np.float64)) < 1 - 1e-6:
                following.append(f"{plan.by}: nobody of {margin} is {cell}")
    return following


RULE = eq.rules.GroupDisclosure()


def attack_together(seed: int) -> tuple[int, list[str]]:
    frame, groups = people(seed)
    drawn = [Plan(plan.by, plan.groups, None) for plan in plans(seed, groups)]
    files = [eq.Records.of(one, eq.Roles()) for one in (frame, in_another_file(frame, seed))]
    tables = [plan.table(files[i % 2]) for i, plan in enumerate(drawn)]
    try:
        linked = eq.protect_tables(tables, eq.tables.Suppress(RULE))
    except (eq.RefusedError, eq.InfeasibleError):
        return 0, []
    return 1, broken(frame, drawn, [numbers_of(table) for table in linked])


def attack_in_order(seed: int, folder: Path) -> tuple[int, list[str]]:
    frame, groups = people(seed)
    drawn = [Plan(plan.by, plan.groups, None) for plan in plans(seed, groups)]
    released, published = [], []
    for number, plan in enumerate(drawn):
        options = {**plan.options(), "rule": RULE, "register": folder / f"{seed}.json"}
        try:
            made = eq.tabulate(eq.Records.of(frame, eq.Roles()), **options, out=folder / f"{seed}-{number}")
        except (eq.RefusedError, eq.InfeasibleError):
            continue
        released.append(plan)
        published.append(numbers_of(made.table))
    return len(released), broken(frame, released, published) if released else []


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.evidence(every=50)
def test_tables_that_are_protected_together(seed: int) -> None:
    assert not attack_together(seed)[1]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.evidence(every=50)
def test_tables_that_are_released_in_order(seed: int, tmp_path: Path) -> None:
    released, failures = attack_in_order(seed, tmp_path)
    assert released
    assert not failures


def test_the_attacker_finds_what_a_rule_of_small_counts_leaves() -> None:
    """Without the rule empty cells are published: without that the tests above would show nothing."""
    hits = 0
    for seed in range(400, 410):
        frame, groups = people(seed)
        drawn = [Plan(plan.by, plan.groups, None) for plan in plans(seed, groups)]
        tables = [plan.table(eq.Records.of(frame, eq.Roles())) for plan in drawn]
        linked = eq.protect_tables(tables, eq.tables.Suppress(eq.rules.MinCount(2)))
        hits += bool(broken(frame, drawn, [numbers_of(table) for table in linked]))
    assert hits >= 5
