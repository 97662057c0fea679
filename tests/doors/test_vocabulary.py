"""One vocabulary: a kind of hierarchy and a method have one name, and one set of fields, at every door."""

import inspect
import json
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import polars as pl
import pytest

import equipoise as eq
from equipoise.data.branches import BRANCHES, OLD_KINDS
from equipoise.data.hierarchy import FILE_KINDS, Hierarchy, kind_fields
from equipoise.data.roles import Roles
from equipoise.doors.cli.shared_options import hierarchy
from equipoise.doors.web.pages.shape import NewLevel
from equipoise.doors.web.work.method_forms import form_of
from equipoise.methods.method import label
from equipoise.policies.explain import explain
from equipoise.policies.json_schema import schema
from equipoise.policies.policy_file import Job
from equipoise.provenance.fingerprint import keyed_hash
from equipoise.provenance.seed_register import MASKING_ROLES, Register
from equipoise.recipe.catalogue import build, form, methods, parse, to_plain

TREES = {
    "intervals": ({"widths": [5, 10]}, "5,10", Hierarchy.intervals([5, 10])),
    "breaks": ({"breaks": [[18, 40, 65], [18, 65]]}, "18,40,65;18,65", Hierarchy.breaks([18, 40, 65], [18, 65])),
    "mapping": ({"groups": [["a", "x"], ["b", "y"]]}, "a,x;b,y", Hierarchy.mapping({"a": "x", "b": "y"})),
    "prefix": ({"lengths": [3, 1]}, "3,1", Hierarchy.prefix(3, 1)),
    "dates": ({"parts": ["month", "year"]}, "month,year", Hierarchy.dates("month", "year")),
}
OF_THE_PAGE = {"kind", "kept", "of"}
"""What the page sends beside the fields of a kind: which, which categories stay apart, and of how many."""


def test_every_kind_is_tested() -> None:
    assert set(TREES) == set(BRANCHES)


@pytest.mark.parametrize("kind", TREES)
def test_a_kind_is_the_same_in_python_files_and_on_the_command_line(kind: str) -> None:
    table, text, expected = TREES[kind]
    assert Roles.from_plain({"hierarchies": {"x": {"kind": kind, **table}}}).hierarchies["x"] == expected
    assert hierarchy(f"x={kind}:{text}") == ("x", expected)
    assert {"kind": kind, **_frozen(table)}.items() <= expected.to_plain()[0].items()


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _frozen(inner) for name, inner in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


@pytest.mark.parametrize("kind", [*BRANCHES, *FILE_KINDS])
def test_the_fields_of_a_kind_are_the_same_in_python_and_in_the_schema(kind: str) -> None:
    names = set(kind_fields(kind))
    assert set(inspect.signature(getattr(Hierarchy, kind)).parameters) == names
    if kind in BRANCHES:
        assert {f.name for f in fields(BRANCHES[kind])} == names
    assert set(_schema_of(kind)["properties"]) - {"kind"} == names


def _schema_of(kind: str) -> Any:
    kinds = [model for name, model in schema()["$defs"].items() if name.startswith("Hierarchy")]
    return next(model for model in kinds if model["properties"]["kind"]["const"] == kind)


def test_the_page_sends_the_same_kinds_and_fields() -> None:
    models = {get_args(m.model_fields["kind"].annotation)[0]: m for m in get_args(get_args(NewLevel)[0])}
    assert set(models) == set(BRANCHES)
    for kind, model in models.items():
        assert set(model.model_fields) - OF_THE_PAGE <= set(kind_fields(kind)), kind


def test_other_fields_are_named_on_the_command_line() -> None:
    _, tree = hierarchy("age=intervals:5,10,top=80,alone=0+1,closed=right,root=true")
    assert tree == Hierarchy.intervals([5, 10], top=80, alone=[0, 1], closed="right", root=True)


@pytest.mark.parametrize(("old", "kind"), OLD_KINDS.items())
def test_old_kinds_of_files_are_read_with_a_note(old: str, kind: str) -> None:
    table, _, expected = TREES[kind]
    words = {"rows" if name == "groups" else name: value for name, value in table.items()}
    with pytest.warns(eq.EquipoiseWarning, match=f"kind = '{old}' is now kind = '{kind}'"):
        roles = Roles.from_plain({"hierarchies": {"x": {"kind": old, **words}}})
    assert roles.hierarchies["x"] == expected


@pytest.mark.filterwarnings("ignore:The hierarchy of:equipoise.EquipoiseWarning")
def test_check_says_what_to_write_instead_of_old_words() -> None:
    plain = {
        "data": {"path": "x.csv"},
        "roles": {"keys": ["x"], "hierarchies": {"x": {"kind": "leaves", "rows": [["a", "b"], ["c", "b"]]}}},
        "limits": {"uniques": "< 2%"},
    }
    job = Job.from_plain(plain, Path("policy.toml"))
    notes = [line for line in explain(job).warnings if "is now" in line]
    assert notes == [
        "The hierarchy of x: kind = 'leaves' is now kind = 'mapping'.",
        "The hierarchy of x: rows is now groups.",
    ]


def test_a_register_of_an_older_version_is_read(tmp_path: Path) -> None:
    tree = Hierarchy.mapping({"a": "x", "b": "x", "c": "y"})
    records = eq.read(
        pl.DataFrame({"id": range(6), "k": [*"aabbcc"], "v": [*map(float, range(6))]}),
        eq.Roles(["k"], id="id", hierarchies={"k": tree}),
    )
    recipe, register = eq.Recipe([eq.masks.Noise(["v"], 0.2)], 7), Register(tmp_path / "register.json")
    roles = {name: records.roles.to_plain()[name] for name in MASKING_ROLES if name in records.roles.to_plain()}
    entry = {"seed": "7", "masks": [roles, to_plain(recipe.masks[0])]}
    book = {"format": 1, "key": "ab" * 32, "assets": {keyed_hash(records, bytes.fromhex("ab" * 32)): entry}}
    text = json.dumps(book)
    old = text.replace('"mapping"', '"leaves"').replace('"groups"', '"rows"')
    assert old != text
    (tmp_path / "register.json").write_text(old, encoding="utf-8")
    assert register.settle(eq.Recipe(recipe.masks), records, register.view(records)).seed == 7


def test_old_names_of_python_warn(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a;x\nb;y\n", encoding="utf-8")
    (tmp_path / "x.hrc").write_text("x\n@a\ny\n@b\n", encoding="utf-8")
    for old, new in (("from_csv", "csv"), ("from_hrc", "hrc")):
        with pytest.warns(eq.EquipoiseWarning, match=f"{old} is now Hierarchy.{new}"):
            tree = getattr(Hierarchy, old)(tmp_path / f"x.{new}")
        assert tree == getattr(Hierarchy, new)(tmp_path / f"x.{new}") == TREES["mapping"][2]


def test_no_file_of_ours_has_old_words() -> None:
    root = Path(eq.__file__).parent
    for path in [*root.rglob("*.toml"), *Path(__file__).parents[2].joinpath("docs").rglob("*.toml")]:
        trees = tomllib.loads(path.read_text(encoding="utf-8")).get("roles", {}).get("hierarchies", {})
        tables = [table for tree in trees.values() for table in (tree if isinstance(tree, list) else [tree])]
        assert not [table for table in tables if table["kind"] in OLD_KINDS or "rows" in table], path


@pytest.mark.filterwarnings("ignore:withheld is now suppressed:equipoise.EquipoiseWarning")
def test_the_old_name_of_a_measure_is_read_with_a_note() -> None:
    """In limits, weights and measures the score has its new name, so that it is found in trials."""
    limits = {"exposed(rule='min-count:3')": "<= 0", "withheld": "< 60%", "withheld(of='value')": "< 10%"}
    assert list(eq.Policy(limits, weights={"withheld": 1}).limits)[1:] == ["suppressed", "suppressed(of='value')"]
    plain = {
        "data": {"path": "x.csv"}, "limits": limits, "measures": ["withheld"], "table": {"by": ["x"]},
        "candidates": [{"masks": [{"use": "suppress", "rule": "min-count:3"}]}],
    }  # fmt: skip
    job = Job.from_plain(plain, Path("policy.toml"))
    assert [label(measure) for measure in job.scales()][1:] == ["suppressed", "suppressed(of='value')"]
    notes = [line for line in explain(job).warnings if "is now" in line]
    assert notes == ["The measure withheld is now suppressed."]


def test_the_old_name_of_a_measure_warns() -> None:
    with pytest.warns(eq.EquipoiseWarning, match=r"tables\.Withheld is now equipoise\.tables\.Suppressed"):
        old = eq.tables.Withheld("value")  # type: ignore[attr-defined]
    with pytest.warns(eq.EquipoiseWarning, match="withheld is now suppressed"):
        assert parse("withheld:value", "measure") == old == eq.tables.Suppressed("value")
    assert "withheld" not in methods("measure")


# Methods --------------------------------------------------------------------------------------------------------------

MASKS = sorted(methods("mask"))


@pytest.mark.parametrize("name", MASKS)
def test_a_method_has_its_fields_at_every_door(name: str) -> None:
    """Python's dataclass, the policy file's schema and the form of the page; the command line reads the same form."""
    method = methods("mask")[name]
    names = {field.name for field in form(method)}
    assert {field["name"] for field in form_of(method, {})["fields"]} == names
    assert set(inspect.signature(method).parameters) == names
    models = [m for m in schema()["$defs"].values() if name in m.get("properties", {}).get("use", {}).get("enum", ())]
    assert [set(model["properties"]) - {"use"} for model in models] == [names]


@pytest.mark.parametrize("verb", ["rule", "mask", "measure"])
def test_a_method_has_one_name(verb: Any) -> None:
    """The name under `use`, in kebab-case on the command line, is that of the class."""
    for name, method in methods(verb).items():
        assert name.replace("_", "") == method.__name__.lower()
    assert to_plain(build("top_code", "mask", {"column": "x", "at": 1}))["use"] == "top_code"
    assert parse("top-code:x,1", "mask") == parse("top_code(column='x', at=1)", "mask")
