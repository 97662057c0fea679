"""Linked tables under other names, groups, labels and orders, attacked from the raw records by SciPy's linear program.

The attacker has every published number, and knows which records a cell holds, of all classes of records that all tables
treat alike; only what these classes add up to is unknown, and not negative. Nothing of the project's own is used here.
"""

import itertools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array

import equipoise as eq

P, COUNT = 0.15, 4
SEEDS = range(100, 300)


@dataclass(frozen=True)
class Plan:
    """A table to make: its columns, and the groups of the first where it has any (fine code -> group)."""

    by: tuple[str, ...]
    groups: dict[str, str] | None
    value: str | None

    def table(self, records: eq.Records) -> Any:
        trees = {self.by[0]: eq.Hierarchy.mapping(self.groups)} if self.groups else {}
        return eq.table(records, self.by, self.value, hierarchies=trees)

    def options(self) -> dict[str, Any]:
        trees = {self.by[0]: eq.Hierarchy.mapping(self.groups)} if self.groups else {}
        return {"by": self.by, "value": self.value, "hierarchies": trees}


def people(seed: int) -> tuple[pl.DataFrame, dict[str, dict[str, str]]]:
    """Invented records with columns that are groups of others, or others under another name."""
    rng = np.random.default_rng(seed)
    size, counties, trades = int(rng.integers(60, 220)), int(rng.integers(4, 9)), int(rng.integers(3, 6))
    county = rng.choice(counties, size, p=rng.dirichlet(np.full(counties, 2.0)))
    trade = rng.choice(trades, size, p=rng.dirichlet(np.full(trades, 1.5)))
    region, zone = rng.integers(0, 3, counties), rng.integers(0, 3, counties)
    sector, code = rng.integers(0, 2, trades), rng.permutation(counties)
    frame = pl.DataFrame(
        {
            "county": [f"c{i}" for i in county],
            "cty": [f"k{code[i]}" for i in county],
            "region": [f"r{region[i]}" for i in county],
            "zone": [f"z{zone[i]}" for i in county],
            "trade": [f"t{i}" for i in trade],
            "branch": [f"b{i}" for i in trade],
            "sector": [f"s{sector[i]}" for i in trade],
            "sex": rng.choice(["f", "m"], size),
            "turnover": np.round(rng.lognormal(3.0, 1.3, size), 1),
        }
    )
    pairs = (("county", "region"), ("cty", "region"), ("county", "zone"), ("cty", "zone"), ("trade", "sector"))
    groups = {f"{one}>{two}": dict(zip(frame[one], frame[two], strict=True)) for one, two in pairs}
    return frame, groups


def plans(seed: int, groups: dict[str, dict[str, str]]) -> list[Plan]:
    """Two or three tables, of which the columns, their order, names and groups are drawn."""
    rng = np.random.default_rng(seed + 50_000)
    value = "turnover" if rng.random() < 0.5 else None
    places, trades = ["county", "cty", "region", "zone"], ["trade", "branch", "sector", "sex"]
    drawn: list[Plan] = []
    while len(drawn) < 2 + seed % 2:
        by = [str(rng.choice(places)), str(rng.choice(trades))]
        by = by if rng.random() < 0.5 else by[::-1]
        trees = [tree for name, tree in groups.items() if name.split(">")[0] == by[0]]
        tree = trees[int(rng.integers(len(trees)))] if trees and rng.random() < 0.7 else None
        plan = Plan(tuple(by), tree, value)
        drawn += [] if plan in drawn else [plan]
    return drawn


def cells_of(frame: pl.DataFrame, plan: Plan) -> dict[tuple[str, ...], frozenset[int]]:
    """The rows in every cell that has any, by its labels."""
    ways = []
    for place, column in enumerate(plan.by):
        labels = frame[column].to_list()
        way = [labels, ["Total"] * len(labels)]
        if place == 0 and plan.groups and len({*plan.groups.values()}) > 1:
            way.insert(1, [plan.groups[label] for label in labels])
        ways.append(way)
    rows: dict[tuple[str, ...], set[int]] = {}
    for way in itertools.product(*ways):
        for row, labels in enumerate(zip(*way, strict=True)):
            rows.setdefault(labels, set()).add(row)
    return {labels: frozenset(members) for labels, members in rows.items()}


def levels(contributions: np.ndarray, counts: bool) -> tuple[float, float] | None:
    """How far a cell must stay uncertain below and above, by the rule's own definition; None where it is safe."""
    total = float(contributions.sum())
    if counts:
        return (0.0, COUNT - total) if 0 < total < COUNT else None
    largest = np.sort(contributions)[::-1]
    lack = P * largest[0] - (total - largest[:2].sum())
    return (0.0, max(lack, 1e-4 * total)) if lack > 0 else None


def broken(
    frame: pl.DataFrame, drawn: list[Plan], published: list[dict[tuple[str, ...], float | None]],
    alone: bool = False,
) -> list[str]:  # fmt: skip
    """Sensitive cells that the attacker knows to within their level, or that are published.

    With `alone` he is one of those who are alone in suppressed cells and know them, the worst for each cell but theirs.
    """
    counts = drawn[0].value is None
    amounts = np.ones(frame.height) if counts else frame["turnover"].to_numpy()
    cells = [cells_of(frame, plan) for plan in drawn]
    sets = sorted({members for table in cells for members in table.values()}, key=sorted)
    signature: list[list[int]] = [[] for _ in range(frame.height)]
    for number, members in enumerate(sets):
        for row in members:
            signature[row].append(number)
    kinds = sorted({tuple(one) for one in signature})
    kind = [kinds.index(tuple(one)) for one in signature]
    rows, totals = [], []
    for table, numbers in zip(cells, published, strict=True):
        for labels, members in table.items():
            if numbers[labels] is not None:
                rows.append(sorted({kind[row] for row in members}))
                totals.append(amounts[list(members)].sum())
    entries = [(i, k) for i, row in enumerate(rows) for k in row]
    matrix = csr_array((np.ones(len(entries)), tuple(np.array(entries).T)), shape=(len(rows), len(kinds)))
    failures, known = [], {}
    lone = {
        next(iter(m))
        for t, n in zip(cells, published, strict=True)
        for c, m in t.items()
        if len(m) == 1 and n[c] is None
    }
    knowers = [{kind[row]: amounts[row]} for row in sorted(lone) if kind.count(kind[row]) == 1] if alone else [{}]
    for table, numbers in zip(cells, published, strict=True):
        for labels, members in table.items():
            needed = levels(amounts[list(members)], counts)
            if needed is None:
                continue
            value = float(amounts[list(members)].sum())
            if members not in known:
                goal = np.zeros(len(kinds))
                goal[[*{kind[row] for row in members}]] = 1.0
                others = [own for own in knowers if not {kind[row] for row in members} <= {*own}]
                known[members] = [ends(goal, matrix, totals, own) for own in others]
            slack = 1e-5 * max(1.0, value)
            failures += [
                f"{labels}: {low:.4f} {value:.4f} {top:.4f} needs {needed}"
                for low, top in known[members]
                if numbers[labels] is not None or top < value + needed[1] - slack or top - low <= slack
            ]
    return failures


def ends(goal: np.ndarray, matrix: Any, totals: Any, own: dict[int, float]) -> tuple[float, float]:
    """The least and the most that a sum of classes can be to somebody who knows some of them."""
    bounds = [(own.get(place, 0), own.get(place)) for place in range(len(goal))]
    low, high = (linprog(sign * goal, A_eq=matrix, b_eq=totals, bounds=bounds, method="highs") for sign in (1, -1))
    assert low.status == 0
    assert high.status in (0, 3)
    return low.fun, np.inf if high.status == 3 else -high.fun


def numbers_of(table: Any) -> dict[tuple[str, ...], float | None]:
    rows = table.table.select(*table.by, "published").rows()
    return {tuple(row[:-1]): row[-1] for row in rows}


def rule_of(drawn: list[Plan]) -> str:
    return f"min-count:{COUNT}" if drawn[0].value is None else f"p-percent:{P}"


def in_another_file(frame: pl.DataFrame, seed: int) -> pl.DataFrame:
    """The same people in a file with another order of rows, and of columns."""
    return frame.sample(fraction=1.0, shuffle=True, seed=seed).select(sorted(frame.columns, reverse=True))


def attack_together(seed: int) -> tuple[int, list[str]]:
    """Protect the drawn tables at once, each second one from another file; what the attacker finds."""
    frame, groups = people(seed)
    drawn = plans(seed, groups)
    files = [eq.Records.of(one, eq.Roles()) for one in (frame, in_another_file(frame, seed))]
    tables = [plan.table(files[i % 2]) for i, plan in enumerate(drawn)]
    rule = eq.rules.MinCount(COUNT) if drawn[0].value is None else eq.rules.PPercent(P)
    try:
        linked = eq.protect_tables(tables, eq.tables.Suppress(rule))
    except (eq.RefusedError, eq.InfeasibleError):
        return 0, []
    return 1, broken(frame, drawn, [numbers_of(table) for table in linked])


def attack_in_order(seed: int, folder: Path) -> tuple[int, list[str]]:
    """Release the drawn tables one after the other with a register; what the attacker finds in those released."""
    frame, groups = people(seed)
    drawn = plans(seed, groups)
    released: list[Plan] = []
    published, covered = [], False
    for number, plan in enumerate(drawn):
        records = eq.Records.of(frame, eq.Roles())
        options = {**plan.options(), "rule": rule_of(drawn)}
        try:
            made = eq.tabulate(records, **options, register=folder / f"{seed}.json", out=folder / f"{seed}-{number}")
        except (eq.RefusedError, eq.InfeasibleError):
            continue
        released.append(plan)
        published.append(numbers_of(made.table))
        covered = any("alone" in who and "earlier table" in who for who in made.attackers.against)
    failures = broken(frame, released, published) if released else []
    if released and covered:
        failures += [f"to somebody alone: {one}" for one in broken(frame, released, published, alone=True)]
    return len(released), failures


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.evidence(every=25)
def test_tables_that_are_protected_together(seed: int) -> None:
    released, failures = attack_together(seed)
    assert released
    assert not failures


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.evidence(every=25)
def test_tables_that_are_released_in_order(seed: int, tmp_path: Path) -> None:
    released, failures = attack_in_order(seed, tmp_path)
    assert released
    assert not failures


def test_the_attacker_finds_what_labels_hide() -> None:
    """Tables matched by their labels alone are broken: without that the tests above would show nothing."""
    hits = 0
    for seed in (101, 113, 134):
        frame, groups = people(seed)
        drawn = plans(seed, groups)
        records = eq.Records.of(frame, eq.Roles())
        tables = [replace(plan.table(records), behind=None) for plan in drawn]
        rule = eq.rules.MinCount(COUNT) if drawn[0].value is None else eq.rules.PPercent(P)
        linked = eq.protect_tables(tables, eq.tables.Suppress(rule))
        hits += bool(broken(frame, drawn, [numbers_of(table) for table in linked]))
    assert hits == 3


def test_a_group_that_is_a_column_elsewhere(tmp_path: Path) -> None:
    """Counties in regions, then regions alone, on the command line with one register."""
    from equipoise.doors.cli import main

    frame, _ = people(113)
    file = tmp_path / "people.csv"
    frame.write_csv(file)
    groups = dict(zip(frame["county"], frame["zone"], strict=True))
    drawn = [Plan(("county", "trade"), groups, None), Plan(("branch", "zone"), None, None), Plan(("cty",), None, None)]
    published = []
    for number, plan in enumerate(drawn):
        out, tree = tmp_path / str(number), ["--hierarchy", "county=columns:zone"] if plan.groups else []
        args = ["table", str(file), "--by", ",".join(plan.by), *tree, "--rule", f"min-count:{COUNT}"]
        assert main([*args, "--register", str(tmp_path / "register.json"), "--out", str(out)]) == 0
        rows = pl.read_parquet(out / "public" / "table.parquet").select(*plan.by, "published").rows()
        published.append({tuple(row[:-1]): row[-1] for row in rows})
    assert not broken(frame, drawn, published)
