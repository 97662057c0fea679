"""Revised tables and later periods of the same people, attacked from the raw records by SciPy's linear program.

Somebody who has a table and its revision knows which records are in which cell of either, and that a record that was
not revised adds the same to both. What each record adds is unknown and not negative; one whose value was revised adds
two unknowns. Nothing of the project's own is used here.
"""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog
from tests.redteam.test_linked_contributors import _rule
from tests.redteam.test_linked_tables import Plan, cells_of, levels, numbers_of, people, plans, rule_of

import equipoise as eq

SEEDS = range(800, 920)
Published = dict[tuple[str, ...], float | None]


def period(seed: int) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, dict[str, str]]]:
    """Records with an id, and the same a little later: some values revised, some people gone, new, or elsewhere."""
    frame, groups = people(seed)
    rng = np.random.default_rng(seed + 70_000)
    frame = frame.head(int(rng.integers(40, 80))).with_row_index("id")
    size, share = frame.height, float(rng.choice([0.03, 0.1, 0.4]))
    kept = frame.filter(pl.Series(rng.random(size) > (0.05 if seed % 3 else 0.0)))
    places = kept.select("county", "cty", "region", "zone")[rng.integers(0, kept.height, kept.height)]
    moves = pl.Series(rng.random(kept.height) < (0.05 if seed % 3 else 0.0))
    later = kept.with_columns(
        turnover=pl.when(pl.Series(rng.random(kept.height) < share))
        .then((pl.col("turnover") * 1.25).round(1)).otherwise("turnover"),
        **{name: pl.when(moves).then(places[name]).otherwise(name) for name in places.columns},
    )  # fmt: skip
    codes = {k.split(">")[0]: set(frame[k.split(">")[0]]) | set(later[k.split(">")[0]]) for k in groups}
    trees = {k: {a: b for a, b in tree.items() if a in codes[k.split(">")[0]]} for k, tree in groups.items()}
    return frame, later, trees


def unknowns(frames: list[pl.DataFrame], counts: bool) -> tuple[list[np.ndarray], np.ndarray]:
    """The unknown that each record of each file is, and the values of all."""
    numbers: dict[Any, int] = {}
    values: list[float] = []
    rows = []
    for frame in frames:
        place = []
        for who, amount in frame.select("id", "turnover").rows():
            key = (who, 1.0 if counts else amount)
            if key not in numbers:
                numbers[key] = len(values)
                values.append(key[1])
            place.append(numbers[key])
        rows.append(np.array(place))
    return rows, np.array(values)


def broken(frames: list[pl.DataFrame], drawn: list[Plan], published: list[Published]) -> list[str]:
    """Sensitive cells of both files that somebody with both tables knows to within their levels."""
    counts = drawn[0].value is None
    place, values = unknowns(frames, counts)
    rows, totals, targets = [], [], []
    for frame, plan, told, where in zip(frames, drawn, published, place, strict=True):
        for labels, members in cells_of(frame, plan).items():
            own = where[[*members]]
            inside = np.isin(np.arange(len(values)), own).astype(float)
            if told[labels] is not None:
                rows.append(inside)
                totals.append(values[own].sum())
            if (needed := levels(values[own], counts)) is not None:
                targets.append((labels, inside, float(values[own].sum()), needed[1], told[labels]))
    failures = []
    for labels, goal, value, level, number in targets:
        low, high = (linprog(sign * goal, A_eq=np.array(rows), b_eq=np.array(totals), method="highs")
                     for sign in (1, -1))  # fmt: skip
        assert low.status == 0
        top = np.inf if high.status == 3 else -high.fun
        slack = 1e-5 * max(1.0, value)
        if number is not None or top < value + level - slack or top - low.fun <= slack:
            failures.append(f"{labels}: {low.fun:.3f} {value:.3f} {top:.3f} needs {level:.3f}")
    return failures


def attack(seed: int, folder: Path) -> tuple[int, list[str]]:
    """Release a table, then its revision or another table of the revised file, by one register."""
    frame, later, trees = period(seed)
    drawn = plans(seed, trees)[:2]
    drawn = [drawn[0], drawn[0]] if seed % 2 else drawn
    frames, released, published = [], [], []
    for number, (one, plan) in enumerate(zip((frame, later), drawn, strict=True)):
        roles = eq.Roles(id="id") if seed % 4 else eq.Roles()
        file = one if seed % 4 else one.drop("id")
        like = folder / "0" if number and seed % 2 and frames else None
        method: Any = eq.tables.Suppress(_rule(drawn), like=str(like) if like else None)
        try:
            made = eq.tabulate(
                eq.Records.of(file, roles), **plan.options(), method=method, register=folder / "register.json",
                out=folder / str(number),
            )  # fmt: skip
        except (eq.RefusedError, eq.InfeasibleError):
            continue
        if frames:
            assert any("earlier table" in who for who in made.attackers.against)
            if any("were revised (without an id" in who for who in made.attackers.not_cover):
                assert not seed % 4
                return 0, []
        frames.append(one)
        released.append(plan)
        published.append(numbers_of(made.table))
    return len(frames), broken(frames, released, published) if frames else []


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.evidence(every=30)
def test_a_table_and_its_revision(seed: int, tmp_path: Path) -> None:
    _, failures = attack(seed, tmp_path)
    assert not failures


def test_the_attacker_finds_what_two_patterns_tell(tmp_path: Path) -> None:
    """Without a register a revision with another pattern gives cells away: the attack above can fail."""
    hits = 0
    for seed in (801, 803, 805):
        frame, later, trees = period(seed)
        plan = plans(seed, trees)[0]
        made = [
            eq.tabulate(eq.Records.of(one, eq.Roles(id="id")), **plan.options(), rule=rule_of([plan]))
            for one in (frame, later)
        ]
        hits += bool(broken([frame, later], [plan, plan], [numbers_of(one.table) for one in made]))
    assert hits
