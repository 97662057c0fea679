"""Somebody knows one stay of a patient and looks for it in the release: no patient is found more surely than reported.

The intruder is written here. He counts the patients who have a stay that does not contradict his, and leaves out those
whose other stays say that they are of another sex or age.
"""

from collections.abc import Callable

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
    for least in range(2, full(6, 12, 8)):
        for _ in range(full(6, 100, 15)):
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
        for _ in range(full(5, 60, 10)):
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


def panel(rng: np.random.Generator, people: int = 150) -> pl.DataFrame:
    """Three to five records of each person: a pay that stays, a bill that is another one each time."""
    person = np.repeat(np.arange(people), rng.integers(3, 6, people))
    pay = np.round(np.exp(rng.normal(8, 1, people)))[person]
    columns = {"age": person % 3, "sex": person % 2, "pay": pay, "bill": pay * rng.lognormal(0, 0.1, len(person))}
    return pl.DataFrame({"stay": np.arange(len(person)), "person": person, **columns})


def found_by(truth: pl.DataFrame, released: pl.DataFrame, columns: list[str]) -> float:
    """Share of the records whose person is the owner of the record nearest in these columns; ties are guessed."""
    x, z = (np.log(table.select(columns).to_numpy()) for table in (truth, released))
    gaps = ((x[:, None] - z[None]) ** 2).sum(axis=2)
    nearest = gaps <= gaps.min(axis=1, keepdims=True) * (1 + 1e-9) + 1e-12
    same = truth["person"].to_numpy()[:, None] == released["person"].to_numpy()[None]
    return float(((nearest & same).sum(axis=1) / nearest.sum(axis=1)).mean())


@pytest.mark.parametrize("scale", [0.0, 0.02, 0.1])
def test_another_record_of_the_same_person_is_a_find(scale: float, record: Callable[..., None]) -> None:
    """Equal records of one person hide nobody, and with noise the nearest may be any of them."""
    truth = panel(np.random.default_rng(6))
    records = eq.read(truth, eq.Roles(("age", "sex"), numeric=("pay", "bill"), id="stay", person="person"))
    noise = [eq.masks.Noise(("pay", "bill"), scale, "multiplicative")] if scale else []
    released = eq.Recipe(noise, seed=1).run(records)
    reached = found_by(truth, released.collect(), ["pay", "bill"])
    for attack in (eq.attacks.Nearest(("pay", "bill"), metric="log"), eq.attacks.Informed(("pay", "bill"))):
        reported = attack.measure(released, records).value
        error = 3 * (reached * (1 - reached) / truth.height) ** 0.5
        record("noise", f"{scale:g}, records repeat people", file="made", measure="person linked",
               reported=reported, reached=reached, error=error)  # fmt: skip


@pytest.mark.parametrize("role", ["person", "household"])
def test_records_of_one_owner_hide_nobody_in_a_column(role: str) -> None:
    """One patient's stays, or one family's members, share a bill: fewer than three owners are left."""
    truth = panel(np.random.default_rng(7))
    records = eq.read(truth, eq.Roles(("age", "sex"), id="stay", **{role: "person"}))  # type: ignore[arg-type]
    few = truth.select((pl.col("person").n_unique().over("pay") < 3).mean()).item()
    numbered = eq.Recipe([eq.masks.Renumber()], seed=1).run(records)
    assert few > 0.9
    assert eq.risk.RevealingColumns(unknown=("bill",)).measure(numbered, records).value >= few


def paired_at_random(table: pl.DataFrame) -> float:
    """Share of the records that are paired with one of their person, where those of equal pay are paired at random."""
    return float(table.select((pl.len().over("person", "pay") / pl.len().over("pay")).mean()).item())


@pytest.mark.parametrize("knows", ["patterns", "values", "truth"])
def test_pairs_with_another_record_of_the_same_person_are_right(knows: str, record: Callable[..., None]) -> None:
    truth = panel(np.random.default_rng(8))
    records = eq.read(truth, eq.Roles(("age", "sex", "pay"), id="stay", person="person"))
    reached = paired_at_random(truth)
    reported = eq.attacks.Linkage(knows=knows).measure(records, records).value  # type: ignore[arg-type]
    assert reached > 0.9
    record("none", f"{knows}, records repeat people", file="made", measure="person paired",
           reported=reported, reached=reached, error=3 * (reached * (1 - reached) / truth.height) ** 0.5)  # fmt: skip


def test_chance_of_a_pair_with_ones_own_records_by_enumeration() -> None:
    """A cell of three records, two of one person: 2/3 of theirs and 1/3 of the other's pairs are right."""
    table = pl.DataFrame({"stay": range(4), "person": [1, 1, 2, 3], "age": [5, 5, 5, 9], "sex": [0, 0, 0, 1]})
    records = eq.read(table, eq.Roles(("age", "sex"), id="stay", person="person"))
    found = eq.attacks.Linkage().measure(records, records)
    assert found.by_record()["risk"].to_list() == pytest.approx([2 / 3, 2 / 3, 1 / 3, 1.0])


def test_copies_of_one_persons_value_are_unique_however_often_it_stands() -> None:
    truth = panel(np.random.default_rng(9))
    records = eq.read(truth, eq.Roles(("age", "sex"), id="stay", person="person"))
    mine = truth.select((pl.col("person").n_unique().over("pay") == 1).mean()).item()
    found = eq.risk.Copies(("pay",)).measure(records, records).value
    assert found == pytest.approx(mine)
    assert mine > 0.9
    assert "person" not in eq.risk.Copies().measure(records, records).detail["column"]


def frequent(rng: np.random.Generator, people: int = 300) -> pl.DataFrame:
    """Stays of patients of whom some come often: classes of many patients in which one has many of the stays."""
    times = 1 + rng.geometric(0.25, people) * (rng.random(people) < 0.1) * 3
    person = rng.permutation(people)[np.repeat(np.arange(people), times)]
    age, sex = rng.integers(0, 8, people)[person], rng.integers(0, 2, people)[person]
    return pl.DataFrame({"stay": np.arange(len(person)), "person": person, "age": age, "sex": sex, "month": 1})


def guessed_by_most(released: pl.DataFrame) -> float:
    """Share of the stays whose patient has the most stays with the same keys: the patient that is guessed."""
    stays = released.group_by(*KEYS, "person").len()
    return float(stays.group_by(KEYS).agg(pl.col("len").max())["len"].sum()) / released.height


def test_who_comes_often_is_guessed_first(record: Callable[..., None]) -> None:
    """Numbers given anew still say which stays are of one patient."""
    truth = frequent(np.random.default_rng(10))
    records = eq.read(truth, eq.Roles(KEYS, id="stay", person="person"))
    masks = [eq.masks.SuppressRecords(eq.rules.MinCount(12)), eq.masks.Renumber()]
    released = eq.Recipe(masks, seed=1).run(records)
    reached = guessed_by_most(released.collect())
    assert reached > 2 * eq.risk.Marketer().measure(released, records).value
    found = {"informed": eq.attacks.Informed(KEYS).measure(released, records).value}
    found["attack"] = eq.attack(released, records).strongest.score.value
    for name, reported in found.items():
        record("suppress_records", f"12, {name}, records repeat people", file="made", measure="person guessed",
               reported=reported, reached=reached)  # fmt: skip


def within_windows(true: np.ndarray, shown: np.ndarray, reach: int) -> np.ndarray:
    """Whether each released value may be that of each person: it stood at most `reach` places from theirs."""
    places = np.sort(true)
    low = np.maximum(np.searchsorted(places, true) - reach, 0)
    high = np.minimum(np.searchsorted(places, true, side="right") - 1 + reach, len(true) - 1)
    return (shown >= places[low][:, None]) & (shown <= places[high][:, None])


@pytest.mark.parametrize("window", [0.02, 0.1])
def test_any_record_of_the_person_within_the_windows_is_a_find(window: float, record: Callable[..., None]) -> None:
    truth, known = panel(np.random.default_rng(6)), ("pay", "bill")
    records = eq.read(truth, eq.Roles(("age", "sex"), numeric=known, id="stay", person="person"))
    released = eq.Recipe([eq.masks.RankSwap(known, window)], seed=1).run(records)
    boxes = [
        within_windows(truth[c].to_numpy(), released.collect()[c].to_numpy(), int(window * truth.height)) for c in known
    ]
    possible, person = np.logical_and(*boxes), truth["person"].to_numpy()
    same = person[:, None] == person
    reached = float(((possible & same).sum(axis=1) / possible.sum(axis=1)).mean())
    table = eq.attacks.Informed(known).intruders(released, records)
    reported = table.filter(pl.col("intruder").str.ends_with("any record they leave"))["right"].item()
    record("rank_swap", f"{window:g}, records repeat people", file="made", measure="person, any record that fits",
           reported=reported, reached=reached)  # fmt: skip
