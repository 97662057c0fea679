"""Attacks on local suppression by intruders who know the method and the true keys of their target.

Written with NumPy and Polars alone. An intruder counts the released rows that do not contradict what he knows, and the
rows that are identical to his target's; with households he first fills in blanks that another member shows.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.data.records import Law
from equipoise.demo.survey import survey
from equipoise.ground.randomness import Draws
from equipoise.intrusion.attack import try_out

DATA = os.environ.get("EQUIPOISE_DATA")
DWELLING = ("urbrur", "roof", "walls", "water", "electcon", "relat", "sex")
PEOPLE = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass")
CHUNK = 200


def consistent(truth: pl.DataFrame, released: pl.DataFrame) -> np.ndarray:
    """For each person the released rows that do not contradict their true keys: a blank contradicts nobody."""
    codes = [pl.concat([truth[c], released[c]]).cast(pl.String).rank("dense").fill_null(0) for c in truth.columns]
    people, rows = (np.stack([code.to_numpy()[part] for code in codes], axis=1).astype(np.int64)
                    for part in (slice(truth.height), slice(truth.height, None)))  # fmt: skip
    kinds, own = np.unique(people, axis=0, return_inverse=True)
    patterns, many = np.unique(rows, axis=0, return_counts=True)
    parts = np.array_split(kinds, max(1, len(kinds) // CHUNK))
    fits = [((patterns[None] == part[:, None]) | (patterns[None] == 0)).all(axis=2) @ many for part in parts]
    return np.concatenate(fits)[own.ravel()]


def identical(released: pl.DataFrame) -> int:
    """The records of the smallest class of rows that nobody can tell apart."""
    return int(released.group_by(released.columns).len()["len"].min())  # type: ignore[arg-type]


def refilled(released: pl.DataFrame, household: str, keys: tuple[str, ...]) -> pl.DataFrame:
    """Blanks filled in from other members, where all who show a value show the same in every household."""
    shown = released.group_by(household).agg(pl.col(key).drop_nulls().n_unique() for key in keys)
    same = [key for key in keys if shown[key].max() <= 1]  # type: ignore[operator]
    return released.with_columns(pl.col(same).fill_null(pl.col(same).drop_nulls().first().over(household)))


def suppressed(frame: pl.DataFrame, keys: tuple[str, ...], k: int, **options: Any) -> pl.DataFrame:
    roles = eq.Roles(keys, household=options.pop("household", None))
    mask = eq.masks.LocalSuppress(eq.rules.MinCount(k), **options)
    return mask.apply(eq.read(frame, roles), Draws(5)).collect()


def test_the_man_of_fifty() -> None:
    """The toy: with wildcards a man of 50 is consistent with one released record only; with identical rows with two."""
    people = [("f", 30), ("f", 30), ("m", 40), ("m", 40), ("m", 50), ("f", 60)]
    frame = pl.DataFrame(people, schema=["sex", "age"], orient="row")
    wild = suppressed(frame, ("sex", "age"), 2, guard="wildcard")
    assert consistent(frame, wild).min() == 1
    guarded = suppressed(frame, ("sex", "age"), 2)
    assert consistent(frame, guarded).min() >= 2
    assert identical(guarded) >= 2


@pytest.mark.parametrize("missing", ["category", "any"])
def test_what_is_reported_of_the_man_of_fifty(missing: Any) -> None:
    """Blanked by hand or with wildcards, and even where blanks are declared to be anything: he is found for certain."""
    people = [("f", 30), ("f", 30), ("m", 40), ("m", 40), ("m", 50), ("f", 60)]
    frame = pl.DataFrame(people, schema=["sex", "age"], orient="row")
    original = eq.read(frame, eq.Roles(("sex", "age"), missing=missing))
    for mask in (eq.masks.LocalSuppress(eq.rules.MinCount(2), guard="wildcard"), AgesOfTheLastTwo()):
        released = eq.Recipe([mask], seed=1).run(original)
        worst, small = eq.risk.Prosecutor().measure(released, original), eq.risk.KAnonymity(2)
        assert worst.value == pytest.approx(1 / consistent(frame, released.collect()).min()) == 1
        assert small.measure(released, original).number == (consistent(frame, released.collect()) < 2).sum()


class AgesOfTheLastTwo:
    """A mask that blanks the ages of the man of 50 and the woman of 60."""

    def apply(self, data: Any, draws: Any) -> Any:
        hidden = pl.when(pl.int_range(pl.len()) < 4).then("age").alias("age")
        return data.with_frame(data.collect().with_columns(hidden), Law("blanked", ("age",), "ages blanked"))


@pytest.mark.parametrize("missing", ["category", "any"])
@pytest.mark.parametrize("guard", ["identical", "wildcard"])
def test_no_risk_below_what_the_consistent_rows_give(
    record: Callable[..., None], guard: Any, missing: Any, full: Any
) -> None:
    """Two rows came empty: they protect nobody, whatever the guard and whatever the roles declare."""
    keys = ("sex", "race", "age")
    frame = survey().head(full(500, 20_000)).select(keys).with_columns(
        pl.when(pl.int_range(pl.len()) > 1).then(pl.col(key)).alias(key) for key in keys
    )  # fmt: skip
    original = eq.read(frame, eq.Roles(keys, missing=missing))
    mask = eq.masks.LocalSuppress(eq.rules.MinCount(3), guard=guard)
    released = eq.Recipe([mask], seed=1).run(original)
    table, people = released.collect(), frame.slice(2)
    fits = consistent(people, table if missing == "category" else table.slice(2))
    for of, reached in (("worst", 1 / fits.min()), ("mean", (1 / fits).sum() / len(table))):
        reported = eq.risk.Prosecutor(of).measure(released, original).value  # type: ignore[arg-type]
        parameter, measure = f"classes of 3, guard {guard}, blanks {missing}", f"person found, {of}"
        record(
            "local_suppress", parameter, file="demo survey", measure=measure, reported=reported, reached=float(reached)
        )
    assert eq.risk.KAnonymity(3).measure(released, original).number >= (fits < 3).sum()
    if missing == "category":
        assert eq.risk.Prosecutor().measure(released, original).value >= 1 / identical(table) - 1e-12
    assert table.slice(2).null_count().sum_horizontal().item() > 0, "two empty rows do not switch it off"


@pytest.mark.parametrize("k", [2, 5])
def test_the_demo_survey(k: int, full: Any) -> None:
    frame, keys = survey().head(full(1_500, 60_000)), ("sex", "race", "age", "education", "marital")
    released = suppressed(frame, keys, k)
    assert consistent(frame.select(keys), released.select(keys)).min() >= k
    assert identical(released.select(keys)) >= k
    wild = suppressed(frame, keys, k, guard="wildcard")
    assert consistent(frame.select(keys), wild.select(keys)).min() < k


def test_missing_values_are_no_protection(full: Any) -> None:
    """Two rows without any key would match everybody: they are a class of their own, and too small."""
    keys = ("sex", "race", "age")
    frame = survey().head(full(800, 20_000)).with_columns(
        pl.when(pl.int_range(pl.len()) > 1).then(pl.col(key)).alias(key) for key in keys
    )  # fmt: skip
    released = suppressed(frame, keys, 3).select(keys)
    assert identical(released) >= 3


def test_members_of_a_household_do_not_fill_in_blanks(full: Any) -> None:
    """Region, tenure and rooms are those of the dwelling; some members lack them to begin with."""
    keys = ("region", "tenure", "rooms", "sex", "age")
    frame = survey().head(full(800, 20_000)).with_columns(pl.col("age") // 10)
    frame = frame.with_columns(pl.when(pl.int_range(pl.len()) % 97 > 0).then("rooms").alias("rooms"))
    released = suppressed(frame, keys, 3, household="household")
    assert identical(released.select(keys)) >= 3
    assert identical(refilled(released, "household", keys).select(keys)) >= 3
    apart = suppressed(frame, keys, 3)
    assert identical(refilled(apart, "household", keys).select(keys)) < 3


@pytest.mark.parametrize("role", [None, "household"])
def test_one_wrong_household_does_not_open_the_others(record: Callable[..., None], role: str | None, full: Any) -> None:
    """A dwelling with two numbers of rooms: readers fill in blanks all the same, and so does what is reported.

    Blanks that were made without regard to households are filled in too, and reported so.
    """
    keys = ("region", "tenure", "rooms", "sex", "age")
    frame = survey().head(full(1_500, 20_000)).with_columns(pl.col("age") // 10)
    frame = frame.with_columns(pl.when(pl.int_range(pl.len()) == 1).then(pl.col("rooms") + 1).otherwise("rooms"))
    mask = eq.masks.LocalSuppress(eq.rules.MinCount(3))
    alone = mask.apply(eq.read(frame, eq.Roles(keys, household=role)), Draws(5))
    original = eq.read(frame, eq.Roles(keys, household="household"))
    released = original.with_frame(alone.collect(), *alone.history)
    filled = [pl.col(key).fill_null(pl.col(key).drop_nulls().first().over("household")) for key in keys[:3]]
    sizes = alone.collect().with_columns(filled).select(pl.len().over(keys)).to_series()
    assert (sizes.min() >= 3) == (role is not None)  # type: ignore[operator]
    reported = eq.risk.Prosecutor().measure(released, original).value
    parameter = f"classes of 3, {'with' if role else 'without'} the role household"
    measure, reached = "person found through members", float(1 / sizes.min())  # type: ignore[operator]
    record("local_suppress", parameter, file="demo survey", measure=measure, reported=reported, reached=reached)
    assert eq.risk.KAnonymity(3).measure(released, original).number >= (sizes < 3).sum()


@pytest.mark.skipif(not DATA, reason="testdata and adult were not attacked: set EQUIPOISE_DATA.")
@pytest.mark.parametrize(("path", "keys", "k", "sign"), [
    ("sdcmicro/testdata.csv", DWELLING, 3, ","), ("arx/adult.csv", PEOPLE, 12, ";"),
])  # fmt: skip
def test_real_files(path: str, keys: tuple[str, ...], k: int, sign: str, full: Any) -> None:
    frame = pl.read_csv(Path(str(DATA)) / path, separator=sign, infer_schema_length=None).head(full(2_000, 40_000))
    released = suppressed(frame, keys, k).select(keys)
    assert consistent(frame.select(keys), released).min() >= k
    assert identical(released) >= k


@pytest.mark.skipif(not DATA, reason="testdata was not attacked through its households: set EQUIPOISE_DATA.")
def test_households_of_testdata() -> None:
    frame = pl.read_csv(Path(str(DATA)) / "sdcmicro" / "testdata.csv")
    released = suppressed(frame, DWELLING, 3, household="ori_hid")
    assert identical(released.select(DWELLING)) >= 3
    assert identical(refilled(released, "ori_hid", DWELLING).select(DWELLING)) >= 3


@pytest.mark.parametrize("guard", ["identical", "wildcard", "records"])
def test_the_attacks_of_a_report_link_no_fewer(guard: Any, record: Callable[..., None]) -> None:
    """Ages in bands and some keys blanked: who picks among the rows that do not contradict his target is reported."""
    keys, rule = ("region", "sex", "age", "education", "marital"), eq.rules.MinCount(2)
    frame = survey().head(600).select(keys).with_columns(pl.col("age") // 10 * 10)
    original = eq.read(frame, eq.Roles(keys, hierarchies={"age": eq.Hierarchy.intervals([20])}))
    mask = eq.masks.SuppressRecords(rule) if guard == "records" else eq.masks.LocalSuppress(rule, guard=guard)
    released = eq.Recipe([eq.masks.Recode("age", "20"), mask], seed=1).run(original)
    coarse = eq.Recipe([eq.masks.Recode("age", "20")], seed=1).run(original).collect()
    reached = float((1 / consistent(coarse, released.collect())).mean())
    outcome = try_out(released, original)
    assert not isinstance(outcome, str)
    name = "suppress_records" if guard == "records" else "local_suppress"
    record(name, f"classes of 2{'' if guard == 'records' else f', guard {guard}'}", file="demo survey",
           measure="person linked", reported=outcome.strongest.score.value, reached=reached)  # fmt: skip
