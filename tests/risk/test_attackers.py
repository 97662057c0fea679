"""Prosecutor, journalist and marketer, against counting by hand."""

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.ground.randomness import Draws

PEOPLE = st.lists(st.sampled_from([*"abcd"]), min_size=3, max_size=40)


@given(people=PEOPLE, size=st.integers(1, 10))
def test_against_a_counter(people: list[str], size: int) -> None:
    sample = people[:size]
    data, register = (eq.read(pl.DataFrame({"k": rows}), eq.Roles("k")) for rows in (sample, people))
    here, there = Counter(sample), Counter(people)
    chances = {"prosecutor": [1 / here[v] for v in sample], "journalist": [1 / there[v] for v in sample]}
    worst = eq.risk.Prosecutor(), eq.risk.Journalist(register)
    means = eq.risk.Prosecutor("mean"), eq.risk.Journalist(register, "mean")
    for name, most, mean in zip(chances, worst, means, strict=True):
        assert most.measure(data, data).value == pytest.approx(max(chances[name]))
        assert mean.measure(data, data).value == pytest.approx(sum(chances[name]) / len(sample))
        assert mean.measure(data, data).by_record()["risk"].to_list() == pytest.approx(chances[name])
    assert eq.risk.Marketer().measure(data, data).number == pytest.approx(len(here))
    assert eq.risk.Marketer(register).measure(data, data).number == pytest.approx(sum(chances["journalist"]))
    assert eq.risk.Journalist(register, k=3).measure(data, data).number == sum(there[v] < 3 for v in sample)


def test_the_population_is_coarsened_like_the_file(tmp_path: Path) -> None:
    """Ages in bands in the release; the register has single years, some that no record has: the same level places them.

    Before, the three people of 22, 30 and 45 were left out, and every record had the risk 1/2.
    """
    file = tmp_path / "register.csv"
    pl.DataFrame({"age": [20, 21, 22, 30, 31, 31, 45]}).write_csv(file)
    data = eq.read(
        pl.DataFrame({"age": [20, 21, 31]}), eq.Roles("age", hierarchies={"age": eq.Hierarchy.intervals(10)})
    )
    released = eq.masks.Recode("age", 1).apply(data, Draws(1))
    score = eq.risk.Journalist(str(file), "mean").measure(released, data)
    assert score.by_record()["risk"].to_list() == pytest.approx([1 / 3, 1 / 3, 1 / 3])
    assert score.notes == ()


@given(ages=st.lists(st.integers(0, 99), min_size=20, max_size=60), size=st.integers(3, 20), top=st.integers(50, 95))
def test_a_register_counted_by_hand(ages: list[int], size: int, top: int) -> None:
    """Top code, then bands: everybody is placed as the records are, whatever single ages the sample lacks."""
    sample = ages[:size]
    data = eq.read(
        pl.DataFrame({"age": sample}), eq.Roles("age", hierarchies={"age": eq.Hierarchy.intervals(10, top=90)})
    )
    masks = [eq.masks.TopCode("age", top, "threshold"), eq.masks.Recode("age", 1)]
    released = eq.Recipe(masks, 1).run(data)
    register = eq.read(pl.DataFrame({"age": ages}), eq.Roles())
    classes = Counter(min(age, top) // 10 for age in ages)
    chances = [1 / classes[min(age, top) // 10] for age in sample]
    assert eq.risk.Marketer(register).measure(released, data).number == pytest.approx(sum(chances))


def test_people_whom_no_level_places_are_left_out() -> None:
    tree = eq.Hierarchy.mapping({"a": "vowel", "e": "vowel", "b": "consonant"})
    data = eq.read(pl.DataFrame({"k": ["a", "b"]}), eq.Roles("k", hierarchies={"k": tree}))
    released = eq.masks.Recode("k", 1).apply(data, Draws(1))
    register = eq.read(pl.DataFrame({"k": ["a", "e", "b", "z"]}), eq.Roles())
    score = eq.risk.Journalist(register, "mean").measure(released, data)
    assert score.by_record()["risk"].to_list() == pytest.approx([1 / 2, 1.0])
    assert "1 people of the population" in score.notes[0]


def test_missing_keys_match_people_as_they_match_records() -> None:
    register = eq.read(pl.DataFrame({"a": [*"xxyy"], "b": [*"pqpq"]}), eq.Roles())
    data = eq.read(pl.DataFrame({"a": ["x", None], "b": [None, "p"]}), eq.Roles(["a", "b"], missing="any"))
    assert eq.risk.Journalist(register, "mean").measure(data, data).by_record()["risk"].to_list() == [0.5, 0.5]


def test_what_cannot_be_compared_is_refused() -> None:
    register = eq.read(pl.DataFrame({"a": [*"xy"]}), eq.Roles())
    data = eq.read(pl.DataFrame({"a": [*"xxy"], "b": [1, 2, 3]}), eq.Roles(["a"]))
    swapped = eq.read(pl.DataFrame({"a": [*"xyx"], "b": [1, 2, 3]}), eq.Roles(["a"]))
    with pytest.raises(eq.DataError, match="'a' was perturbed"):
        eq.risk.Journalist(register).measure(swapped, data)
    both = eq.read(pl.DataFrame({"a": [*"xxy"], "b": [1, 2, 3]}), eq.Roles(["a", "b"]))
    with pytest.raises(eq.RolesError, match="no column 'b'"):
        eq.risk.Marketer(register).measure(both, both)


def test_without_a_population_weights_estimate_it() -> None:
    data = eq.read(pl.DataFrame({"a": [*"xxy"], "w": [2.0, 3.0, 0.5]}), eq.Roles("a", weight="w"))
    score = eq.risk.Journalist(of="mean").measure(data, data)
    assert score.by_record()["risk"].to_list() == [0.2, 0.2, 1.0]
    assert "estimated" in score.notes[0]


def test_more_records_than_people_are_told() -> None:
    register = eq.read(pl.DataFrame({"a": ["x"]}), eq.Roles())
    data = eq.read(pl.DataFrame({"a": [*"xxy"]}), eq.Roles("a"))
    score = eq.risk.Journalist(register).measure(data, data)
    assert score.value == 1
    assert "2 classes have fewer people" in score.notes[0]


@pytest.mark.parametrize("wrong", [{"of": "x"}, {"k": 0}])
def test_wrong_parameters(wrong: dict[str, Any]) -> None:
    with pytest.raises(eq.ParameterError):
        eq.risk.Journalist("x.csv", **wrong)
    with pytest.raises(eq.ParameterError):
        eq.risk.Prosecutor("best")  # type: ignore[arg-type]
