"""All risks of classes against a plain count of the released rows that may be a person's.

The intruder knows the true keys of his target. He reads keys that most households share in other members' rows, and
counts the rows that do not contradict what he knows. No risk is below what he reaches, whatever the roles declare of
missing keys. Written in plain Python, apart from the measures.
"""

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.demo.survey import survey
from equipoise.releases.assumptions import assumptions

Row = tuple[str | None, ...]


def people(rng: np.random.Generator) -> pl.DataFrame:
    """A made file: one key of the dwelling, one that most households share, one of the person; some values missing."""
    home = np.sort(rng.integers(0, 14, 36))
    roof, kin = rng.integers(0, 3, 14)[home], rng.integers(0, 4, 14)[home]
    kin = np.where(rng.random(36) < 0.1, rng.integers(0, 4, 36), kin)
    gap = rng.random(36) < rng.choice([0.0, 0.1])
    return pl.DataFrame({
        "home": home, "roof": roof, "kin": kin, "sex": pl.Series(rng.integers(0, 2, 36)).set(pl.Series(gap), None)
    })  # fmt: skip


KEYS = ("roof", "kin", "sex")


def text_rows(table: pl.DataFrame) -> list[Row]:
    return table.select(pl.col(KEYS).cast(pl.String)).rows()


def read_through_members(rows: list[Row], homes: list[int], true: list[Row]) -> list[Row]:
    """Blanks filled in as most members who show the key have it, where most households have one value."""
    members = defaultdict(list)
    for row, home in enumerate(homes):
        members[home].append(row)
    filled = [list(row) for row in rows]
    for key in range(len(KEYS)):
        shown = {home: [rows[i][key] for i in its if rows[i][key] is not None] for home, its in members.items()}
        several = [len(set(values)) == 1 for values in shown.values() if len(values) > 1]
        if not several or np.mean(several) < 0.5:
            continue
        for home, its in members.items():
            for i in its:
                if rows[i][key] is None and true[i][key] is not None and shown[home]:
                    filled[i][key] = sorted(Counter(shown[home]).most_common(), key=lambda c: (-c[1], str(c[0])))[0][0]
    return [tuple(row) for row in filled]


def fits(row: Row, true: Row) -> bool:
    return all(value is None or value == other for value, other in zip(row, true, strict=True))


def reached(original: pl.DataFrame, released: pl.DataFrame, household: bool) -> np.ndarray:
    """The chance to pick each person's row among those that fit; 0 for who came with a gap."""
    true, rows = text_rows(original), text_rows(released)
    if household:
        rows = read_through_members(rows, original["home"].to_list(), true)
    counts = [sum(fits(row, own) for row in rows) for own in true]
    return np.array([
        1 / counts[i] if None not in own and fits(rows[i], own) else 0.0 for i, own in enumerate(true)
    ])  # fmt: skip


@pytest.mark.parametrize("missing", ["category", "any"])
@pytest.mark.parametrize("household", [None, "home"])
def test_no_risk_of_classes_is_below_what_rows_that_fit_give(household: Any, missing: Any, full: Any) -> None:
    rng = np.random.default_rng(8)
    masks = (
        eq.masks.LocalSuppress(eq.rules.MinCount(3)), eq.masks.SuppressRecords(eq.rules.MinCount(3)),
        eq.masks.LocalSuppress(eq.rules.MinCount(3), guard="wildcard"),
    )  # fmt: skip
    for _ in range(full(4, 80, 12)):
        frame = people(rng)
        original = eq.read(frame, eq.Roles(KEYS, household=household, missing=missing))
        for mask in masks:
            released = eq.Recipe([mask], seed=1).run(original)
            chance = reached(frame, released.collect(), household is not None)
            few = chance > 1 / 3 + 1e-9
            expected = {
                eq.risk.Prosecutor(): chance.max(), eq.risk.Prosecutor("mean"): chance.mean(),
                eq.risk.KAnonymity(3): few.mean(), eq.risk.Unsafe(eq.rules.MinCount(3)): few.mean(),
                eq.risk.Uniques(): (chance == 1).mean(), eq.risk.Individual(): chance.mean(),
                eq.risk.CorrectMatches(): chance.mean(), eq.risk.Marketer(): chance.mean(),
                eq.risk.Journalist(): chance.max(), eq.risk.Journalist(of="mean"): chance.mean(),
            }  # fmt: skip
            if household:
                missed = pl.DataFrame({"home": frame["home"], "missed": 1 - chance})
                expected[eq.risk.Household()] = missed.select(1 - pl.col("missed").product().over("home")).mean().item()
            for measure, share in expected.items():
                assert measure.measure(released, original).value >= share - 1e-9, (measure, mask)  # type: ignore[attr-defined]


def test_who_matches_rows_to_a_register_reads_blanks_in_other_members_rows() -> None:
    """Whole records are blanked, their roofs stand beside: 1 in 36 was reported, whoever else has such a roof."""
    rng = np.random.default_rng(9)
    for _ in range(5):
        frame = people(rng).with_columns(pl.col("sex").fill_null(0))
        original = eq.read(frame, eq.Roles(KEYS, household="home", missing="any"))
        released = eq.Recipe([eq.masks.SuppressRecords(eq.rules.MinCount(3))], seed=1).run(original)
        true = text_rows(frame)
        rows = read_through_members(text_rows(released.collect()), frame["home"].to_list(), true)
        own = [1 / sum(fits(row, person) for person in true) if fits(row, true[i]) else 0 for i, row in enumerate(rows)]
        for measure in (eq.risk.Marketer(original), eq.risk.Journalist(original, "mean")):
            assert measure.measure(released, original).value >= np.mean(own) - 1e-9


def test_what_most_members_share_is_blank_for_all() -> None:
    """In the demo survey 98 % of the families are of one race: a blank race is read from the others."""
    keys = ("region", "sex", "race", "age", "education")
    frame = survey().head(3_000).with_columns(pl.col("age") // 20)  # of 20,000 no race is blanked
    original = eq.read(frame, eq.Roles(keys, household="household"))
    released = eq.Recipe([eq.masks.LocalSuppress(eq.rules.MinCount(3))], seed=1).run(original).collect()
    blank = released.filter(pl.col("race").is_null())
    others = released.join(blank.select("household").unique(), on="household")
    assert blank.height > 0
    assert others["race"].null_count() == others.height


def test_a_column_that_a_key_tells_is_known_with_the_keys() -> None:
    """Ages are blanked, and the year of birth beside them is not: who knows the age knows the year."""
    rng = np.random.default_rng(2)
    age = rng.integers(20, 60, 400)
    frame = pl.DataFrame({"age": age, "sex": rng.integers(0, 2, 400), "year": 2000 - age, "rooms": age // 100})
    original = eq.read(frame, eq.Roles(("age", "sex"), hierarchies={"age": eq.Hierarchy.intervals([5])}))
    for mask in (eq.masks.LocalSuppress(eq.rules.MinCount(8)), eq.masks.Recode("age", "5")):
        released = eq.Recipe([mask], seed=1).run(original)
        table = released.collect()
        alone = table.select(pl.len().over("age", "sex", "year")).to_series() < 3
        hidden = table.select(pl.len().over("age", "sex")).to_series() >= 3
        score = eq.risk.RevealingColumns().measure(released, original)
        assert score.value >= (alone & hidden).mean() > 0  # type: ignore[operator]
        assert "Who knows the keys knows 'year'." in score.notes
    assert not any("knows the keys" in note for note in eq.risk.RevealingColumns().measure(original, original).notes)


@pytest.mark.parametrize("limit", ["individual", "household", "journalist(of='mean')"])
def test_who_knows_that_somebody_took_part_is_named(limit: str) -> None:
    """Weights hide respondents among those who were not asked: an intruder who knows who was asked finds more."""
    frame = survey().head(2_000).with_columns(pl.col("age") // 10)
    keys = ("region", "sex", "race", "age")
    records = eq.read(frame, eq.Roles(keys, household="household", weight="weight"))
    policy = eq.Policy({limit: "< 0.5"})
    reported = policy.measures()[0].measure(records, records).value
    reached = frame.select((1 / pl.len().over(keys)).mean()).item()
    sentence = "Assumes that nobody knows who is in the file: the limit on "
    assert reached > reported
    assert any(words.startswith(sentence) for words in assumptions(records, policy))
    assert not any(words.startswith(sentence) for words in assumptions(records, eq.Policy({"uniques": "< 0.5"})))


@pytest.mark.parametrize("seed", range(5))
def test_a_record_taken_for_any_member_leads_to_the_household(seed: int) -> None:
    """Who knows one member draws among the records of that class: right whenever it is one of the family."""
    rng = np.random.default_rng(seed)
    people = pl.DataFrame({"age": rng.integers(0, 12, 60), "home": rng.integers(0, 20, 60)})
    records = eq.read(people, eq.Roles("age", household="home"))
    reported = dict(eq.risk.Household().measure(records, records).detail.select("home", "risk").rows())
    for _, homes in people.group_by("age").agg("home").iter_rows():
        for home, members in Counter(homes).items():
            assert reported[home] >= members / len(homes) - 1e-12
