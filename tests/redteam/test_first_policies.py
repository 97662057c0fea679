"""Releases as a preset or `init` proposes them, attacked by plain code: no reported share is below what is reached."""

import os
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching
from scipy.spatial import cKDTree

import equipoise as eq
from equipoise.masks import Recode
from equipoise.policies.first_policy import initial
from equipoise.policies.policy_file import Job
from equipoise.recipe.recipe import Recipe

DATA = os.environ.get("EQUIPOISE_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="EQUIPOISE_DATA is not set")


def proposed(table: pl.DataFrame, folder: Path, which: int, **options: Any) -> tuple[eq.Records, tuple[Any, ...]]:
    """The file as the proposed policy reads it, and the masks of one of its candidates."""
    source, policy = folder / "people.parquet", folder / "first.toml"
    table.write_parquet(source)
    policy.write_text(initial(source, path=str(source), **options), encoding="utf-8")
    job = Job.load(policy)
    records = job.read()
    return records, job.recipes(records)[which].masks


def fitting(true: pl.DataFrame, shown: pl.DataFrame) -> Any:
    """Whether each released row does not contradict each person: equal, or blank."""
    fits = np.ones((true.height, true.height), dtype=np.bool_)
    for column in true.columns:
        texts = [side[column].cast(pl.String) for side in (true, shown)]
        codes = pl.concat(texts).fill_null("\0").rank("dense").to_numpy()
        blank = texts[1].is_null().to_numpy()
        fits &= (codes[: true.height, None] == codes[true.height :]) | blank
    return fits


def families_that_fit(fits: Any, home: Any) -> Any:
    """For every household the released ones of its size whose members can be its members, one to one."""
    members = [np.flatnonzero(home == number) for number in np.unique(home)]
    some = np.stack([fits[:, rows].any(axis=1) for rows in members], axis=1)
    counts = []
    for family in members:
        near = [m for m in np.flatnonzero(some[family].all(axis=0)) if len(members[m]) == len(family)]
        pairs = (csr_matrix(fits[np.ix_(family, members[m])]) for m in near)
        counts.append(sum((maximum_bipartite_matching(each) >= 0).all() for each in pairs))
    return np.array(counts)


def village(homes: int) -> pl.DataFrame:
    """Households of one to four; few keys, so that blanks are soon found."""
    random = np.random.default_rng(5)
    home = np.repeat(np.arange(homes), random.integers(1, 5, homes))
    dwelling = {"urbrur": random.integers(1, 3, homes)[home], "roof": random.integers(1, 4, homes)[home]}
    person = {"sex": random.integers(1, 3, len(home)), "age": random.integers(0, 80, len(home))}
    return pl.DataFrame({"ori_hid": home + 1000, **dwelling, **person})


def surveys() -> Iterator[Any]:
    yield pytest.param(lambda: village(160), id="village")
    path = "sdcmicro/testdata.csv"
    yield pytest.param(lambda: pl.read_csv(Path(str(DATA)) / path), id="testdata", marks=needs_data)


@pytest.mark.parametrize("survey", list(surveys()))
def test_the_world_bank_preset(survey: Callable[[], pl.DataFrame], tmp_path: Path, record: Callable[..., None]) -> None:
    """Who knows one person's keys, how blanks were chosen, or the whole family."""
    records, masks = proposed(survey(), tmp_path, -1, preset="worldbank")
    released, keys = Recipe(masks, seed=1).run(records).held(), list(records.roles.keys)
    recoded = Recipe(tuple(mask for mask in masks if isinstance(mask, Recode)), seed=1).run(records)
    shown, home = released.collect(), records.collect()[str(records.roles.household)].to_numpy()
    fits, file = fitting(recoded.collect().select(keys), shown.select(keys)), f"{shown.height:,} people of a survey"
    alone = max(float((1 / fits.sum(axis=1)).mean()), shown.select(keys).n_unique() / shown.height)
    record("worldbank", "preset", file=file, measure="people by their keys",
           reported=eq.attacks.Informed(known=tuple(keys)).measure(released, records).value, reached=alone)  # fmt: skip
    assert eq.risk.KAnonymity(5).measure(released, records).number >= int((fits.sum(axis=1) < 5).sum())
    size = np.bincount(np.unique(home, return_inverse=True)[1])
    reached = float(size[families_that_fit(fits, home) < 3].sum() / size.sum())
    record("worldbank", "preset", file=file, measure="people by the keys of all members",
           reported=eq.risk.Composition().measure(released, records).value, reached=reached)  # fmt: skip


def logarithm(values: Any) -> Any:
    return np.sign(values) * np.log1p(np.abs(values))


def linked(true: Any, shown: Any) -> float:
    """Share found by the nearest of two numbers, or by rank where the first is a category; equal records are dealt."""
    _, place, counts = np.unique(shown, axis=0, return_inverse=True, return_counts=True)
    place, order = place.ravel(), np.random.default_rng(2).permutation(len(shown))
    if np.array_equal(true[:, 0], shown[:, 0]):
        at = np.empty_like(order)
        at[np.lexsort((true[:, 1], true[:, 0]))] = np.lexsort((shown[:, 1], shown[:, 0]))
    else:
        scale = (shown - true).std(axis=0)
        at = order[cKDTree(shown[order] / scale).query(true / scale)[1]]
    return float(((place[at] == place) / counts[place]).mean())


def debtors(people: int) -> pl.DataFrame:
    """Card holders made here: a limit in round numbers, bills below it, payments below the bills."""
    random = np.random.default_rng(8)
    limit = 10_000 * np.maximum(1, np.round(np.exp(random.normal(2.6, 0.8, people))))
    bills = {f"BILL_AMT{i}": np.round(limit * random.beta(0.6, 1.5, people)) for i in (1, 2)}
    paid = {f"PAY_AMT{i}": np.round(bills[f"BILL_AMT{i}"] * random.beta(0.5, 3, people)) for i in (1, 2)}
    who = {"SEX": random.integers(1, 3, people), "EDUCATION": random.integers(1, 5, people)}
    who |= {"MARRIAGE": random.integers(1, 4, people), "AGE": 21 + random.binomial(50, 0.3, people)}
    return pl.DataFrame({"LIMIT_BAL": limit.astype(int), **who, **bills, **paid})


def cards() -> Iterator[Any]:
    yield pytest.param(lambda people: debtors(min(people, 3_000)), id="made")
    path = "arx/creditcard_int.csv"
    yield pytest.param(
        lambda people: pl.read_csv(Path(str(DATA)) / path, separator=";").head(people),
        id="credit card",
        marks=needs_data,
    )


@pytest.mark.parametrize("card_holders", list(cards()))
def test_card_holders(
    card_holders: Callable[[int], pl.DataFrame], tmp_path: Path, record: Callable[..., None], full: Callable[..., Any]
) -> None:
    records, masks = proposed(card_holders(full(2_000, 30_000, 10_000)), tmp_path, 0)
    released = Recipe(masks, seed=1).run(records).held()
    new, old = released.collect(), records.collect()
    numbers = [c for c in new.columns if c not in records.roles.keys and new[c].dtype.is_numeric()]
    numbers.sort(key=lambda c: not new[c].equals(old[c]))
    sides = {c: [logarithm(side[c].to_numpy().astype(float)) for side in (old, new)] for c in numbers}
    pairs = [np.stack([sides[one], sides[two]], axis=2) for one, two in combinations(numbers, 2)]
    reached = max(linked(*pair) for pair in pairs if not np.array_equal(*pair))
    score = eq.risk.RevealingColumns().measure(released, records)
    record("first policy", "proposed", file=f"{new.height:,} card holders", measure="people by two columns",
           reported=score.interval[1], reached=reached)  # fmt: skip
    keys = list(records.roles.keys)
    alone = float((new.select(keys).is_unique()).mean())  # type: ignore[arg-type]
    record("first policy", "proposed", file=f"{new.height:,} card holders", measure="people alone by their keys",
           reported=eq.risk.Uniques().measure(released, records).value, reached=alone)  # fmt: skip


def test_two_known_stays_of_a_patient(record: Callable[..., None]) -> None:
    """Any two stays: the patients who have both, as released, are counted by hand."""
    stays = eq.demo.hospital().filter(pl.col("patient") % 6 == 0)
    years = {"age": eq.Hierarchy.intervals(20)}
    roles = eq.Roles(("age", "sex", "emergency"), id="stay", person="patient", direct=("discharge",), hierarchies=years)
    records = eq.read(stays, roles)
    masks = (Recode("age", 1), eq.masks.SuppressRecords(eq.rules.MinCount(5)), eq.masks.Renumber("patient"))
    released = Recipe(masks, seed=1).run(records).held()
    shown = released.collect().select("patient", row=pl.struct("age", "sex", "emergency"))
    both = {patient: sorted(map(str, part["row"])) for (patient,), part in shown.group_by("patient")}
    have = {patient: set(combinations(rows, 2)) for patient, rows in both.items()}
    fits = pl.Series([pair for pairs in have.values() for pair in pairs], dtype=pl.List(pl.String)).value_counts()
    many = {tuple(pair): count for pair, count in fits.rows()}
    least = {patient: min((many[pair] for pair in pairs), default=len(have)) for patient, pairs in have.items()}
    reached = sum(len(both[patient]) for patient, count in least.items() if count < 3) / stays.height
    measure = eq.risk.Composition(known=2, size_known=False, household="patient")
    record("suppress_records", "min-count:5", file="demo hospital, a sixth", measure="stays of patients by two of them",
           reported=measure.measure(released, records).value, reached=reached)  # fmt: skip
    assert reached > 0
