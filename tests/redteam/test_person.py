"""Somebody knows one stay of a patient and looks for it in the release: no patient is found more surely than reported.

The intruder is written here. He counts the patients who have a stay that does not contradict his, and leaves out those
whose other stays say that they are of another sex or age.
"""

import numpy as np
import polars as pl
import pytest

import equipoise as eq

KEYS = ("age", "sex", "month")


def stays(rng: np.random.Generator) -> pl.DataFrame:
    person = rng.integers(0, 25, 60)
    columns = {"age": (person * 7) % 3, "sex": person % 2, "month": rng.integers(0, 3, len(person))}
    return pl.DataFrame({"stay": np.arange(len(person)), "person": person, **columns})


def chances(truth: pl.DataFrame, released: pl.DataFrame) -> list[float]:
    """For each true stay the chance to pick its patient among those that fit."""
    same = released.group_by("person").agg(pl.col("age", "sex").drop_nulls().max())
    people = {person: constants for person, *constants in same.iter_rows()}
    rows = released.select("person", *KEYS).rows()
    found = []
    for true in truth.select(KEYS).rows():
        fits = [row for row in rows if all(v is None or v == t for v, t in zip(row[1:], true, strict=True))]
        patients = {row[0] for row in fits if all(c in (None, t) for c, t in zip(people[row[0]], true, strict=False))}
        found.append(1 / len(patients))
    return found


def test_no_patient_is_found_more_surely_than_reported(full) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(3)
    measures = eq.risk.Prosecutor(), eq.risk.Prosecutor("mean")
    for least in range(2, full(6, 12)):
        for _ in range(full(6, 100)):
            truth = stays(rng)
            records = eq.read(truth, eq.Roles(KEYS, id="stay", person="person"))
            released = eq.Recipe([eq.masks.SuppressRecords(eq.rules.MinCount(least))], seed=1).run(records)
            worst, mean = (measure.measure(released, records).value for measure in measures)
            reached = chances(truth, released.collect())
            assert worst >= max(reached) - 1e-12
            assert mean >= float(np.mean(reached)) - 1e-12


def test_stays_do_not_pass_for_patients() -> None:
    """Twelve stays of four patients are a class of four."""
    table = pl.DataFrame({"stay": range(12), "person": [i % 4 for i in range(12)], "age": 1, "sex": 1, "month": 1})
    records = eq.read(table, eq.Roles(KEYS, id="stay", person="person"))
    assert eq.risk.Prosecutor().measure(records, records).value >= max(chances(table, table))
    assert eq.risk.KAnonymity(12).measure(records, records).number == 12


def test_local_suppression_hides_among_people(full) -> None:  # type: ignore[no-untyped-def]
    """Every stay fits k patients or more, those left out whose other stays show what is blank; rows are not people."""
    rng = np.random.default_rng(4)
    for least in range(2, full(5, 9)):
        for _ in range(full(5, 60)):
            truth = stays(rng)
            records = eq.read(truth, eq.Roles(KEYS, id="stay", person="person"))
            released = eq.Recipe([eq.masks.LocalSuppress(eq.rules.MinCount(least))], seed=1).run(records)
            table = released.collect()
            people = table.group_by(KEYS).agg(pl.col("person").n_unique())["person"]
            assert people.min() >= least  # type: ignore[operator]
            assert max(chances(truth, table)) <= 1 / least + 1e-12
            assert eq.risk.Prosecutor().measure(released, records).value <= 1 / least + 1e-12
            gaps = table.group_by("person").agg(pl.col("age", "sex").is_null().n_unique())
            assert gaps.select(pl.max_horizontal("age", "sex").max()).item() == 1


def test_what_cannot_count_people_says_so() -> None:
    records = eq.read(stays(np.random.default_rng(5)), eq.Roles(KEYS, id="stay", person="person"))
    wild = eq.masks.LocalSuppress(eq.rules.MinCount(2), guard="wildcard")
    pairs = eq.masks.LocalSuppress(eq.rules.AnySubset(2, 3))
    for mask in (wild, pairs, eq.masks.LocalRecode(eq.rules.MinCount(2))):
        with pytest.raises(eq.RolesError, match="leave out the role person"):
            eq.Recipe([mask], seed=1).run(records)
    many = eq.masks.LocalSuppress(eq.rules.MinCount(40))
    with pytest.raises(eq.InfeasibleError, match="people: no class can have 40"):
        eq.Recipe([many], seed=1).run(records)
