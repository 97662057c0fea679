"""Roles: what fits, what is refused and with which hint, and the way to TOML and back."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise import Hierarchy, Roles

TREES = {
    "a": Hierarchy.intervals([5, 10], closed="right", alone=0, top=90, bottom=0, floor=5, root=True),
    "b": Hierarchy.intervals(3) | Hierarchy.intervals([5, 10], labels="lower"),
    "c": Hierarchy.breaks([18, 40, 65], [18, 65], names=["fine", "coarse"], floor="fine"),
    "d": Hierarchy.breaks([18], labels=[["young", "old"]], alone=[0, 1]),
    "e": Hierarchy.mapping({"x": ("p", "q"), "y": ("r", "q")}, names=["one", "two"], other="rest"),
    "f": Hierarchy.prefix(3, 1, root=True, floor=1),
    "g": Hierarchy.dates("month", "year"),
    "h": Hierarchy.intervals(0.1, top=0, start=-0.5),
}


def test_roles_survive_toml_with_every_hierarchy(tmp_path: Path) -> None:
    """Everything given is written and read back equal, zeros included."""
    roles = Roles(
        list(TREES),
        ["ill"],
        numeric=["pay"],
        weight="w",
        household="hh",
        domain=["region"],
        id="person",
        sample="drawn",
        hierarchies=TREES,
        missing="any",
    )
    roles.to_toml(tmp_path / "roles.toml")
    assert Roles.from_toml(tmp_path / "roles.toml") == roles


def test_roles_under_a_table_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text('[roles]\nkeys = ["age"]\nweight = "w"\n', encoding="utf-8")
    assert Roles.from_toml(tmp_path / "p.toml") == Roles(["age"], weight="w")


def test_hierarchy_files_are_found_beside_the_roles(tmp_path: Path) -> None:
    """`kind = "csv"` with a path relative to the TOML file."""
    (tmp_path / "h.csv").write_text("1;low;*\n2;high;*\n", encoding="utf-8")
    (tmp_path / "r.toml").write_text('keys = ["x"]\n[hierarchies.x]\nkind = "csv"\npath = "h.csv"\n', encoding="utf-8")
    tree = Roles.from_toml(tmp_path / "r.toml").hierarchies["x"]
    assert tree == Hierarchy.mapping({1: ("low", "*"), 2: ("high", "*")})


NAMES = st.lists(st.sampled_from(["age", "sex", "région", "a b", 'quo"te', "1"]), unique=True, max_size=4)


@given(keys=NAMES, sensitive=NAMES, missing=st.sampled_from(["category", "any"]))
def test_any_names_survive_toml(keys: list[str], sensitive: list[str], missing: Any) -> None:
    """Spaces, quotes and letters of other languages are names too."""
    import tomllib

    roles = Roles(keys, sensitive, missing=missing)
    assert Roles.from_plain(tomllib.loads(roles.to_toml())) == roles


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('kyes = ["a"]', "Did you mean 'keys'"),
        ("keys = 5", "takes column names"),
        ("keys = [5]", "takes column names"),
        ('keys = ["a", "a"]', "twice"),
        ("weight = 5", "name of one column"),
        ('missing = "never"', "'category' or 'any'"),
        ('hierarchies = "x"', "must be a table"),
        ("[hierarchies.a]\nwidths = [5]", "needs a kind"),
        ('[hierarchies.a]\nkind = "interval"\nwidths = [5]', "Did you mean 'intervals'"),
        ('[hierarchies.a]\nkind = "intervals"\nwdths = [5]', "unfit fields"),
        ('[hierarchies.a]\nkind = "intervals"\nwidths = [3, 5]', "'5' is not a function"),
        ('[hierarchies.a]\nkind = "intervals"\nwidths = [5]\nclosed = "up"', "'left' or 'right'"),
        ('[hierarchies.a]\nkind = "csv"\npath = "none.csv"', "No hierarchy file"),
        ("keys = [", "not valid TOML"),
    ],
)
def test_unfit_role_files_say_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    """One clear sentence, exit code 2."""
    (tmp_path / "r.toml").write_text(text, encoding="utf-8")
    with pytest.raises(eq.EquipoiseError, match=said) as caught:
        Roles.from_toml(tmp_path / "r.toml")
    assert caught.value.exit_code == 2


def test_widths_and_alone_may_stand_without_brackets(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text('[hierarchies.a]\nkind = "intervals"\nwidths = 5\nalone = 0\n', encoding="utf-8")
    assert Roles.from_toml(tmp_path / "r.toml").hierarchies["a"] == Hierarchy.intervals(5, alone=0)


def test_a_roles_file_that_is_not_there() -> None:
    with pytest.raises(eq.ParameterError, match="No file"):
        Roles.from_toml("nowhere.toml")


@pytest.mark.parametrize(
    "bad",
    [
        {"keys": ["w"], "weight": "w"},
        {"keys": ["i"], "id": "i"},
        {"sensitive": ["i"], "id": "i"},
        {"weight": "x", "id": "x"},
        {"household": "x", "id": "x"},
        {"keys": ["n"]},
        {"keys": ["total"]},
        {"hierarchies": {"a": "intervals"}},
    ],
)
def test_roles_that_exclude_each_other(bad: dict[str, Any]) -> None:
    """A weight or an id has no other role; the cell table's own column names are taken."""
    with pytest.raises(eq.RolesError):
        Roles(**bad)


def test_a_key_may_be_sensitive_or_numeric_too() -> None:
    """Salary is often all three."""
    assert Roles(["pay"], ["pay"], numeric=["pay"]).named() == ("pay",)


@pytest.mark.parametrize(
    ("roles", "said"),
    [
        (Roles(["agee"]), "No column 'agee' in the data. Did you mean 'age'"),
        (Roles(["zzz"]), "There are: age, name, note"),
        (Roles(weight="name"), "'name' has the role weight but is String, not numeric"),
        (Roles(numeric=["name"]), "'name' has the role numeric but is String"),
        (Roles(["note"]), "a key must hold single values"),
        (Roles(hierarchies={"ag": Hierarchy.intervals(5)}), "Did you mean 'age'"),
    ],
)
def test_roles_are_checked_against_the_data_with_hints(roles: Roles, said: str) -> None:
    table = pl.DataFrame({"age": [1, 2], "name": ["a", "b"], "note": [[1], [2]]})
    with pytest.raises(eq.RolesError, match=said):
        eq.read(table, roles)


def test_a_missing_key_matches_anything_where_the_roles_say_so() -> None:
    known = Roles(["age"], missing="any")
    for gaps in (pl.DataFrame({"age": [1, 2, None]}), pl.DataFrame({"age": [1.0, 2.0, float("nan")]})):
        assert sorted(eq.count(eq.read(gaps, known)).alike[0].tolist()) == [2, 2, 3]
        assert eq.count(eq.read(gaps, Roles(["age"]))).alike[0].tolist() == [1, 1, 1]


def test_roles_are_frozen() -> None:
    roles = Roles(["a"])
    with pytest.raises(AttributeError):
        roles.keys = ("b",)  # type: ignore[misc]


def test_all_nullity_is_a_category_of_its_own() -> None:
    """missing="category": a null key is a value like any other, NaN the same value."""
    cells = eq.count(eq.read(pl.DataFrame({"x": [None, float("nan"), 1.0]}), Roles(["x"])))
    assert cells.table.rows() == [(None, 2, 2.0), (1.0, 1, 1.0)]
