"""Direct identifiers are left out, by role or by name; nothing else is."""

import polars as pl
import pytest

import equipoise as eq
from equipoise.ground.randomness import Draws


@pytest.fixture
def people() -> eq.Records:
    table = pl.DataFrame({"id": [1, 2], "name": ["x", "y"], "mail": ["a@b.c", "d@e.f"], "age": [3, 4]})
    return eq.read(table, eq.Roles(["age"], id="id", direct=["name"]))


def test_columns_by_role_and_by_name(people: eq.Records) -> None:
    assert eq.masks.DropDirectIdentifiers().apply(people, Draws(1)).collect().columns == ["id", "mail", "age"]
    made = eq.masks.DropDirectIdentifiers("mail").apply(people, Draws(1))
    assert made.collect().columns == ["id", "age"]
    assert made.roles.direct == ()
    assert made.history[0].words == "name, mail left out: direct identifiers"


def test_what_has_another_role_or_is_not_there_is_refused(people: eq.Records) -> None:
    with pytest.raises(eq.RolesError, match="'age' has another role"):
        eq.masks.DropDirectIdentifiers("age").apply(people, Draws(1))
    with pytest.raises(eq.RolesError, match="No column 'mall'"):
        eq.masks.DropDirectIdentifiers("mall").apply(people, Draws(1))


def test_nothing_to_leave_out_is_said() -> None:
    plain = eq.read(pl.DataFrame({"age": [3, 4]}), eq.Roles(["age"]))
    assert "no direct identifiers" in eq.masks.DropDirectIdentifiers().apply(plain, Draws(1)).history[0].words
