"""Singling out: every predicate against a loop over records, at both ends of protection, and on people held out."""

import math
from dataclasses import replace
from datetime import date
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import hypergeom

import equipoise as eq
from equipoise.attacks import SinglingOut
from equipoise.attacks.singling_out import _isolating
from equipoise.data.records import Law, Records
from equipoise.ground.randomness import Draws
from equipoise.methods.share_interval import wilson
from equipoise.search.sweep import reserve

COLUMNS = ("age", "area", "pay", "born")


def read(table: pl.DataFrame, id: str | None = None) -> Records:
    return Records.of(table, eq.Roles([c for c in table.columns if c != id], id=id))


def people(size: int, seed: int, gaps: float = 0.0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    table = pl.DataFrame(
        {
            "age": rng.integers(20, 60, size),
            "area": rng.choice(list("abcdefghijklmnop"), size, p=np.arange(1, 17) / 136),
            "pay": rng.normal(0, 1, size).round(2),
            "born": [date.fromordinal(int(d)) for d in rng.integers(720_000, 720_400, size)],
        }
    )
    return table.with_columns(
        pl.when(pl.Series(rng.random(size) < gaps)).then(None).otherwise(pl.col(c)).alias(c) for c in table.columns
    )


def univariate(table: pl.DataFrame) -> list[tuple[str, str, Any]]:
    """All predicates, a value at a time."""
    found = []
    for column in table.columns:
        values = table[column].to_list()
        found += [(column, "is", v) for v in set(values) if values.count(v) == 1]
        known = [v for v in values if v is not None]
        if column != "area" and known:
            found += [(column, "<=", min(known))] * (known.count(min(known)) == 1)
            found += [(column, ">=", max(known))] * (known.count(max(known)) == 1)
    return found


def holds(value: Any, sign: str, bound: Any) -> bool:
    if sign == "is" or value is None or bound is None:
        return sign == "is" and value == bound
    return value <= bound if sign == "<=" else value >= bound


def counted(table: pl.DataFrame, predicate: list[tuple[str, str, Any]]) -> list[int]:
    return [i for i, row in enumerate(table.to_dicts()) if all(holds(row[c], sign, v) for c, sign, v in predicate)]


@pytest.mark.parametrize("gaps", [0.0, 0.1])
def test_univariate_predicates_one_by_one(gaps: float) -> None:
    original, control = people(250, 1, gaps), people(140, 2, gaps)
    released = original.with_columns(age=pl.col("age").shuffle(3) + 1, pay=(pl.col("pay") * 1.01).round(2))
    predicates = univariate(released)
    found = [counted(original, [p]) for p in predicates]
    score = SinglingOut().measure(read(released), replace(read(original), holdout=read(control)))
    hits = [len(f) == 1 for f in found]
    assert score.value == pytest.approx(np.mean(hits))
    assert score.interval == pytest.approx(wilson(np.mean(hits), len(hits)))
    assert score.detail["predicates"].to_list() == [sum(p[0] == c for p in predicates) for c in COLUMNS]
    alone = {f[0] for f in found if len(f) == 1}
    assert score.by_record()["risk"].to_list() == [float(i in alone) for i in range(250)]
    mine = np.mean([hypergeom(250, len(f), 140).pmf(1) for f in found])
    theirs = np.mean([len(counted(control, [p])) == 1 for p in predicates])
    assert score.baseline == pytest.approx(theirs * np.mean(hits) / mine)


def condition(released: pl.DataFrame, column: str, value: Any) -> tuple[str, str, Any]:
    known = sorted(v for v in released[column].to_list() if v is not None)
    if value is None or column == "area":
        return column, "is", value
    return column, "<=" if value <= known[(len(known) - 1) // 2] else ">=", value


@pytest.mark.parametrize("gaps", [0.0, 0.1])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_multivariate_predicates_one_by_one(gaps: float, size: int) -> None:
    """Few enough to be made all: every record and every set of columns."""
    original = people(40, 4, gaps)
    released = original.with_columns(age=pl.col("age") + pl.Series(np.random.default_rng(1).integers(-1, 2, 40)))
    made = {
        tuple(condition(released, c, row[c]) for c in columns)
        for row in released.to_dicts()
        for columns in combinations(COLUMNS, size)
    }
    kept = [p for p in made if len(counted(released, list(p))) == 1]
    found = [counted(original, list(p)) for p in kept]
    score = SinglingOut("multivariate", size=size).measure(read(released), read(original))
    assert score.number == sum(len(f) == 1 for f in found)
    assert score.value == pytest.approx(np.mean([len(f) == 1 for f in found]))
    assert score.detail["predicates"].to_list() == [sum(any(q[0] == c for q in p) for p in kept) for c in COLUMNS]
    alone = {f[0] for f in found if len(f) == 1}
    assert score.by_record()["risk"].to_list() == [float(i in alone) for i in range(40)]


def test_a_sample_of_attempts_estimates_them_all() -> None:
    original = people(300, 5)
    released = original.with_columns(pay=pl.col("pay") + pl.Series(np.random.default_rng(2).normal(0, 0.3, 300)))
    every = SinglingOut("multivariate", attempts=10_000, size=2).measure(read(released), read(original))
    some = SinglingOut("multivariate", attempts=900, size=2).measure(read(released), read(original))
    assert some.interval is not None
    assert some.interval[0] < every.value < some.interval[1]
    assert some.detail["predicates"].sum() < every.detail["predicates"].sum()


def test_the_law_of_subsets() -> None:
    """The expected share that isolates one of m people drawn from n: hypergeometric, and exact at both ends."""
    found = np.arange(60)
    for n, m in ((100, 30), (100, 100), (100, 99), (100, 1), (60, 59)):
        expected = [hypergeom(n, c, m).pmf(1) for c in found]
        assert [_isolating(np.array([c]), n, m) for c in found] == pytest.approx(expected, abs=1e-9)


# --- both ends of protection --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["univariate", "multivariate"])
def test_an_unmasked_file(mode: Any) -> None:
    table = people(500, 6)
    score = SinglingOut(mode, size=3).measure(*[read(table)] * 2)
    assert score.value == 1.0
    assert score.baseline is not None
    assert score.baseline < 0.5


@pytest.mark.parametrize("mode", ["univariate", "multivariate"])
def test_a_fresh_sample_isolates_no_more_people_in_the_file(mode: Any) -> None:
    """Synthetic by the true law: near the baseline, also where the holdout has another size."""
    made = read(people(1500, 7))
    made = made.with_frame(made.frame, Law("synthesize", (), "drawn", {"synthetic": "full"}))
    for size in (1500, 500, 4000):
        original = replace(read(people(1500, 8)), holdout=read(people(size, 9)))
        score = SinglingOut(mode, size=3).measure(made, original)
        assert score.baseline is not None
        count = sum(score.detail["predicates"]) / (3 if mode == "multivariate" else 1)
        error = math.sqrt((score.value + score.baseline * max(1, 1500 / size)) / count)
        assert abs(score.value - score.baseline) < 3 * error


def test_the_holdout_shows_what_a_raw_file_gives_away() -> None:
    original = reserve(read(people(1000, 10).select("pay", "born")), 0.4, seed=1)
    score = SinglingOut().measure(original, original)
    assert score.value == 1.0
    assert score.baseline is not None
    assert score.baseline < 0.8
    assert "people held out" in score.notes[1]


def test_the_naive_guess_by_hand() -> None:
    """Ages from 1 to 10, of which 1, 3 and 10 stand alone: 3 of 10. Letters a and b, of which b does: 1 of 2."""
    table = pl.DataFrame({"age": [1, 2, 2, 3, 10, 5, 5], "area": list("aaaaaab"), "x": [0.5] * 7})
    score = SinglingOut().measure(*[read(table)] * 2)
    assert score.detail["predicates"].to_list() == [5, 1, 0]
    assert score.baseline == pytest.approx((5 * 0.3 + 0.5) / 6)
    days = pl.DataFrame({"born": [date(2020, 1, 1), date(2020, 1, 4)]})
    assert SinglingOut().measure(*[read(days)] * 2).baseline == 0.5


# --- corners ------------------------------------------------------------------------------------------------------


def test_a_recoded_value_is_looked_up_by_its_label() -> None:
    table = people(300, 11)
    roles = eq.Roles(["age", "area"], hierarchies={"age": eq.Hierarchy.intervals([5, 10])})
    original = reserve(eq.read(table, roles), 0.3, seed=2)
    assert original.holdout is not None
    released = eq.masks.Recode("age", "10").apply(original, Draws(1))
    level = eq.Hierarchy.intervals([5, 10]).level("10")
    recoded = [
        Records.of(r.collect().with_columns(level.label(r.collect()["age"])), eq.Roles(["age", "area"]))
        for r in (original, original.holdout)
    ]
    for attack in (SinglingOut(), SinglingOut("multivariate")):
        score = attack.measure(released, original)
        expected = attack.measure(recoded[0], replace(recoded[0], holdout=recoded[1]))
        assert (score.value, score.baseline) == (expected.value, expected.baseline)
        assert score.detail.equals(expected.detail)


@pytest.mark.parametrize("mode", ["univariate", "multivariate"])
def test_the_order_of_rows_changes_nothing(mode: Any) -> None:
    released, original, control = people(400, 12, 0.05), people(400, 13, 0.05), people(300, 14)
    attack = SinglingOut(mode, attempts=300)
    made = [
        attack.measure(
            read(t[0]).with_frame(read(t[0]).frame, Law("synthesize", (), "", {"synthetic": "full"})),
            replace(read(t[1].with_row_index("id"), "id"), holdout=read(t[2])),
        )
        for t in ((released, original, control), tuple(x.reverse() for x in (released, original, control)))
    ]
    assert made[0].value == pytest.approx(made[1].value, rel=1e-12)
    assert made[0].baseline == pytest.approx(made[1].baseline)
    assert made[0].detail.equals(made[1].detail)
    assert made[0].by_record()["risk"].equals(made[1].by_record()["risk"].reverse())


@pytest.mark.parametrize("mode", ["univariate", "multivariate"])
def test_nothing_to_claim(mode: Any) -> None:
    table = pl.DataFrame({"a": ["x", "x", "y", "y"], "b": [1, 1, 2, 2], "c": pl.Series([None] * 4, dtype=pl.Int64)})
    score = SinglingOut(mode, columns=("a", "b", "c")).measure(*[read(table)] * 2)
    assert (score.value, score.baseline, score.number, score.interval) == (0.0, 0.0, 0.0, None)
    assert "nothing to claim" in score.notes[0]
    one = SinglingOut(mode).measure(*[read(table.head(1))] * 2)
    assert one.value == 1.0
    assert "few" in one.notes[0]


@pytest.mark.parametrize(
    "bad", [{"mode": "both"}, {"size": 0}, {"attempts": 0}, {"attempts": 2.5}, {"seed": -1}, {"columns": ()}]
)
def test_bad_parameters_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(eq.ParameterError):
        SinglingOut(**bad)


def test_columns_that_are_not_there() -> None:
    records = read(people(20, 1))
    with pytest.raises(eq.RolesError, match="No column 'agee'"):
        SinglingOut(columns=("agee",)).measure(records, records)
    with pytest.raises(eq.RolesError, match="released file has no column 'age'"):
        SinglingOut().measure(read(people(20, 1).drop("age")), records)
    with pytest.raises(eq.RolesError, match="No columns"):
        SinglingOut().measure(*[Records.of(people(20, 1), eq.Roles())] * 2)


def test_two_thousand_records_predicate_by_predicate() -> None:
    """Every univariate predicate of a release of 2,000, counted in the original by a pass over it."""
    original = people(2000, 21)
    released = original.with_columns(age=pl.col("age").shuffle(3) + 1, pay=(pl.col("pay") * 1.01).round(2))
    columns = {c: original[c].to_numpy() for c in COLUMNS}
    signs = {"is": np.equal, "<=": np.less_equal, ">=": np.greater_equal}
    hits = [int(signs[sign](columns[c], bound).sum()) == 1 for c, sign, bound in univariate(released)]
    score = SinglingOut().measure(read(released), read(original))
    assert score.value == pytest.approx(np.mean(hits), abs=1e-12)
    assert score.number == sum(hits)
