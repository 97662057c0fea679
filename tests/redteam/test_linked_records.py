"""Somebody who knows one stay of a patient sees all stays of those it may be, and knows that people grow older.

The intruder is written here. He knows the true keys of one stay, finds the patients with a released stay of its class,
and leaves out those whose other stays show another sex, or an age that nobody reaches in the years between.
"""

from collections import defaultdict
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq

KEYS = ("hospital", "admission", "age", "sex", "postcode", "emergency")


def fits(row: tuple[Any, ...], age: int, year: int, sex: str, width: int) -> bool:
    """Whether a released stay may be of somebody of this age in this year."""
    if row[2] is None:
        return True
    low = int(row[2].split("-")[0].rstrip("+"))
    high = 200 if row[2].endswith("+") else low + width - 1
    return row[3] == sex and low <= age + int(row[1]) - year <= high


def patients_left(truth: pl.DataFrame, released: pl.DataFrame, width: int) -> np.ndarray:
    """For every true stay how many patients remain of its released class."""
    stays, classes = defaultdict(list), defaultdict(set)
    rows = released.select("patient", *KEYS).rows()
    for patient, *row in rows:
        stays[patient].append(tuple(row))
        classes[tuple(row)].add(patient)

    @cache
    def remaining(row: tuple[Any, ...], *known: Any) -> int:
        return sum(all(fits(stay, *known, width) for stay in stays[patient]) for patient in classes[row])

    known = truth.select("age", pl.col("admission").dt.year(), "sex").rows()
    return np.array([remaining(tuple(row[1:]), *own) for row, own in zip(rows, known, strict=True)])


def hierarchies(width: int) -> dict[str, eq.Hierarchy]:
    return {
        "admission": eq.Hierarchy.dates("year"),
        "age": eq.Hierarchy.intervals([width], top=80),
        "postcode": eq.Hierarchy.prefix(2),
    }


@pytest.mark.parametrize("width", [10, 20])
def test_no_patient_is_found_more_surely_than_reported(width: int, full: Any) -> None:
    truth = eq.demo.hospital().filter(pl.col("patient") % full(12, 1) == 0)
    records = eq.read(truth, eq.Roles(KEYS, id="stay", person="patient", hierarchies=hierarchies(width)))
    masks = [eq.masks.Recode(key, 1) for key in ("admission", "age", "postcode")]
    for least in (1, 4, 12):
        suppressed = eq.masks.SuppressRecords(eq.rules.MinCount(least))
        released = eq.Recipe([*masks, suppressed, eq.masks.Renumber()], seed=1).run(records)
        left = patients_left(truth, released.collect(), width)
        worst, mean = (eq.risk.Prosecutor(of).measure(released, records) for of in ("worst", "mean"))
        assert worst.value >= 1 / left.min() - 1e-12
        assert mean.value >= (1 / left).mean() - 1e-12
        assert (worst.by_record()["risk"].to_numpy() >= 1 / left - 1e-12).all()
        assert eq.risk.KAnonymity(12).measure(released, records).number >= (left < 12).sum()


def test_two_bands_tell_the_age() -> None:
    """Four of thirty in 2023; one of them is 40 and over a year later, so three remain for who knows a person of 30."""
    table = pl.DataFrame({
        "person": [1, 2, 3, 4, 4, 5, 5], "age": [30, 30, 30, 39, 40, 44, 45],
        "year": [2023, 2023, 2023, 2023, 2024, 2023, 2024],
    })  # fmt: skip
    roles = eq.Roles(["age", "year"], person="person", hierarchies={"age": eq.Hierarchy.intervals([10])})
    records = eq.read(table, roles)
    released = eq.Recipe([eq.masks.Recode("age", 1)], seed=1).run(records)
    risk = eq.risk.Prosecutor().measure(released, records).by_record()["risk"].to_list()
    assert risk[:3] == pytest.approx([1 / 3] * 3)
