"""Post-randomization attacked through the columns beside the keys: naive Bayes on the release, by plain NumPy.

The attacker has the released file, the public law (blocks, counts, probabilities of moves) and the true keys of each
person. What goes with which key is counted in the release itself. Nothing of `equipoise.risk` is used but the report.
"""

from collections.abc import Callable
from datetime import date, timedelta
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

import equipoise as eq
from equipoise.data.moving_units import cell_of
from equipoise.ground.randomness import Draws
from equipoise.masks import Pram

pytest.importorskip("sklearn", reason="The audit of Pram was not tried: scikit-learn is not installed.")
Codes = NDArray[np.int64]
Record = Callable[..., None]
LARGEST = 6
"""Records of a block whose orders are all listed; in larger ones each record is weighed alone."""


def coded(column: pl.Series, bins: int) -> Codes:
    """Categories by number; numbers of many values in quantiles."""
    if column.dtype.is_numeric() and column.n_unique() > 3 * bins:
        x = column.cast(pl.Float64).to_numpy()
        return np.searchsorted(np.unique(np.quantile(x, np.linspace(0, 1, bins + 1)[1:-1])), x)
    return column.cast(pl.String).fill_null("?").rank("dense").to_numpy().astype(np.int64) - 1


def together(keys: list[tuple[Codes, Codes]], others: list[Codes], prior: float) -> Callable[[int, int], float]:
    """How well record j goes with the keys of person i: released keys teach, true keys ask."""
    tables = []
    for released, truth in keys:
        for column in others:
            counts = np.full((max(released.max(), truth.max()) + 1, column.max() + 1), prior)
            np.add.at(counts, (released, column), 1)
            shares = counts / counts.sum(axis=1, keepdims=True)
            tables.append((np.log(shares), truth, column))
    return lambda i, j: sum(float(table[truth[i], column[j]]) for table, truth, column in tables)


def posterior(weights: NDArray[np.float64], counts: list[int]) -> NDArray[np.float64]:
    """P(record is of the first cell): over all orders, or each record alone against the mean of the other cells."""
    size = weights.shape[1]
    if size > LARGEST:
        rest = np.average(weights[1:], axis=0, weights=counts[1:])
        odds = weights[0] / np.maximum(rest, 1e-300)
        return odds / odds.sum()
    cells = np.repeat(np.arange(len(counts)), counts)
    total = np.zeros(size)
    for order in set(permutations(cells.tolist())):
        chance = np.prod(weights[list(order), np.arange(size)])
        total += chance * (np.array(order) == 0)
    return total / total.sum()


def reached(
    released: eq.Records, original: eq.Records, others: list[str], prior: float, bins: int, parts: list[pl.Expr]
) -> tuple[float, int]:
    """Share of sample uniques whose record the attacker names, and how many there are."""
    plan: Any = released.history[-1].detail
    table, before = released.collect().with_columns(parts), original.collect()
    keys = list(plan.units.keys)
    both = pl.concat([table.select(keys), before.select(keys)])
    codes = [coded(both[key], table.height) for key in keys]
    goes = together(
        [(c[: table.height], c[table.height :]) for c in codes], [coded(table[c], bins) for c in others], prior
    )
    law, truth, goal = plan.law, cell_of(before, plan.units.cells), cell_of(table, plan.units.cells)
    hits = []
    for block in range(len(law.strength)):
        rows = np.flatnonzero(law.block[truth] == block)
        first = {int(c): int(rows[truth[rows] == c][0]) for c in np.unique(truth[rows])}
        strength = law.strength[block]
        moves = {c: (1 - strength) * (goal[rows] == c) + strength * law.share[goal[rows]] for c in first}
        logs = {c: np.log(moves[c] + 1e-300) + [goes(person, j) for j in rows] for c, person in first.items()}
        weights = np.exp(np.stack(list(logs.values())) - np.max(list(logs.values()), axis=0))
        for place, cell in enumerate(first):
            if law.counts[cell] == 1:
                order = [place, *(p for p in range(len(first)) if p != place)]
                shares = posterior(weights[order], law.counts[list(first)][order].tolist())
                best = shares >= shares.max() - 1e-12
                hits.append(float((best & (truth[rows] == cell)).sum() / best.sum()))
    return float(np.mean(hits)), len(hits)


def check(
    record: Record,
    table: pl.DataFrame,
    keys: list[str],
    others: list[str],
    mask: Pram,
    *,
    file: str = "made",
    parts: tuple[pl.Expr, ...] = (),
) -> tuple[float, float]:
    """The report is not below what the best of several attackers reaches, within its sampling interval."""
    original = eq.read(table.select(*keys, *others), eq.Roles(keys))
    released = mask.apply(original, Draws(3))
    reported = eq.risk.Recognisable().measure(released, original).value
    read = [part.meta.output_name() for part in parts] or others
    ways = ((0.3, 10), (1.0, 20))
    shares = [reached(released, original, read, prior, bins, list(parts)) for prior, bins in ways]
    for share, people in shares:
        error, parameter = 1.96 * np.sqrt(share * (1 - share) / people), f"xi {mask.xi:g}"
        parameter += f" beside {', '.join(mask.beside)}" if mask.beside else ""
        measure = "unique recognised"
        record("pram", parameter, file=file, measure=measure, reported=reported, reached=share, error=error)
    return reported, max(share for share, _ in shares)


def made(size: int, strength: float) -> pl.DataFrame:
    """Ages and areas, most combinations alone; income and housing go with both, more or less."""
    rng = np.random.default_rng(size)
    age, area = rng.integers(18, 90, size), rng.integers(0, 30, size)
    income = np.exp(0.02 * strength * age + rng.normal(size=size))
    home = np.where(rng.random(size) < 0.3 * strength, area % 5, rng.integers(0, 5, size))
    return pl.DataFrame({"age": age, "area": area, "income": income, "home": [f"type {h}" for h in home]})


@pytest.mark.parametrize(("strength", "xi"), [(0.0, 0.5), (2.0, 0.5), (2.0, 0.8), (3.0, 0.3)])
def test_a_made_file(record: Record, strength: float, xi: float) -> None:
    """From columns that say nothing, where the bound of the keys holds, to columns that say much."""
    reported, share = check(record, made(500, strength), ["age", "area"], ["income", "home"], Pram(xi))
    assert reported >= xi - 1e-9
    assert strength == 0 or share > min(xi, 0.6)


def test_a_weekday_and_the_branch_of_a_code(record: Record) -> None:
    """Shifts go with the weekday of a visit and ages with the branch of a job; dates and codes alone tell neither."""
    rng = np.random.default_rng(12)
    age, shift = rng.integers(0, 40, 500), rng.integers(0, 7, 500)
    day = [
        date(2021, 3, 1) + timedelta(7 * int(week) + int(at))
        for week, at in zip(rng.integers(0, 150, 500), shift, strict=True)
    ]
    job = [f"{10 + a // 4}{code}" for a, code in zip(age, rng.integers(100, 180, 500), strict=True)]
    table = pl.DataFrame({"age": age, "shift": shift, "day": day, "job": job})
    parts = (pl.col("day").dt.weekday().cast(pl.String).alias("weekday"), pl.col("job").str.head(2).alias("branch"))
    _, share = check(record, table, ["age", "shift"], ["day", "job"], Pram(0.5), parts=parts)
    assert share > 0.9


def test_a_made_file_held_beside_its_columns(record: Record) -> None:
    """Blocks of records alike in the other columns: the attacker stays at xi, within his sampling interval."""
    mask = Pram(0.7, beside=("income", "home"))
    reported, share = check(record, made(500, 1.0), ["age", "area"], ["income", "home"], mask)
    assert reported <= 0.7 + 1e-9
    assert share <= 0.7


def test_nobody_is_above_the_bound_in_an_audit_of_its_own() -> None:
    """The evidence learnt again, from other folds: single people were at 0.99 beside a bound of 0.8."""
    original = eq.read(made(500, 1.0), eq.Roles(["age", "area"]))
    released = Pram(0.8, beside=("income", "home")).apply(original, Draws(3))
    detail = eq.risk.Recognisable().measure(released, original).detail
    assert float(detail["risk"].to_numpy().max()) <= 0.8 + 1e-9


def test_the_survey_of_statisticians(record: Record, data_folder: Path, full: Any) -> None:
    """testdata: 0.51 was reported where 0.8 was reached."""
    table = pl.read_csv(data_folder / "sdcmicro" / "testdata.csv").head(full(1200, 4580))
    keys = ["urbrur", "roof", "walls", "water", "electcon", "relat", "sex", "age"]
    others = ["hhcivil", "expend", "income", "savings"]
    reported, share = check(record, table, keys, others, Pram(0.5), file="testdata")
    assert min(reported, share) > 0.65


def test_adult(record: Record, data_folder: Path, full: Any) -> None:
    table = pl.read_csv(data_folder / "arx" / "adult.csv", separator=";").head(full(2500, 30162))
    keys = ["sex", "age", "race", "marital-status", "education"]
    reported, share = check(record, table, keys, ["workclass", "occupation", "salary-class"], Pram(0.5), file="adult")
    assert min(reported, share) > 0.65
