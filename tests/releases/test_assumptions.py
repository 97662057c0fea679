"""Sentences on what an intruder is taken not to know."""

import polars as pl
import pytest

import equipoise as eq
from equipoise.releases.assumptions import assumptions

TABLE = pl.DataFrame({"stay": [1, 2], "patient": [1, 2], "pid": [1, 2], "home": [1, 1], "age": [3, 4]})


def sentences(limits: dict[str, str] | None = None, **roles: str) -> tuple[str, ...]:
    return assumptions(eq.read(TABLE, eq.Roles("age", **roles)), eq.Policy(limits or {}))  # type: ignore[arg-type]


def test_one_record_of_a_person() -> None:
    assert sentences(person="patient", id="stay") == ("Assumes that only one stay of a patient is known.",)
    assert sentences(person="pid") == ("Assumes that only one record of a person is known.",)
    assert sentences() == ()


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("uniques", "only one member of a household is known"),
        ("composition(known=2)", "at most 2 members of a household are known"),
        ("composition", ""),
        ("composition(k=5)", ""),
    ],
)
def test_members_of_a_household(limit: str, words: str) -> None:
    said = sentences({limit: "< 0.1"}, household="home")
    assert said == ((f"Assumes that {words}, not the whole household.",) if words else ())
