"""ARX projects: what ARX writes into a .deid file is read as data, roles and hierarchies, or refused in a sentence."""

import zipfile
from pathlib import Path

import pytest

import equipoise as eq
from equipoise.ground.errors import DataError

TYPES = {"name": "IDENTIFYING", "age": "QUASI_IDENTIFYING", "city": "QUASI_IDENTIFYING", "disease": "SENSITIVE"}
AGES = "20;20-29;*\n25;20-29;*\n31;30-39;*\n"


def project(path: Path, ages: str = AGES, **changes: str) -> Path:
    """A project as ARX saves it (entries and tags of its XML vocabulary 2.0), without its serialised objects."""
    ref = "<ref>hierarchies/age.csv</ref><min>1</min><max>All</max>"
    entries = "".join(
        f"<assigment><name>{name}</name><type>{kind}_ATTRIBUTE</type><datatype>String</datatype>"
        f"{ref if name == 'age' else ''}</assigment>"
        for name, kind in {**TYPES, "pay": "INSENSITIVE"}.items()
    )
    rows = [f"p{i};{20 + 5 * (i % 2) + 11 * (i == 3)};c{i % 2};d{i % 3};{900 + i}" for i in range(40)]
    files = {
        "metadata.xml": "<metadata><version>3.9.1</version><vocabulary>2.0</vocabulary></metadata>",
        "project.xml": "<project><name>demo</name><separator>;</separator></project>",
        "data/input.csv": "name;age;city;disease;pay\n" + "\n".join(rows).replace(";36;", ";31;") + "\n",
        "input/definition.xml": f"<definition>{entries}</definition>",
        "input/hierarchies/age.csv": ages,
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**files, **changes}.items():
            archive.writestr(name, text)
    return path


def test_data_roles_and_hierarchies_are_read(tmp_path: Path) -> None:
    records = eq.read(project(tmp_path / "demo.deid"))
    assert (records.height(), records.roles.keys) == (40, ("age", "city"))
    assert (records.roles.direct, records.roles.sensitive) == (("name",), ("disease",))
    assert [level.name for level in records.roles.hierarchies["age"].allowed] == ["1", "2"]
    released = eq.Recipe([eq.masks.Recode("age", "1")]).run(records).collect("age")["age"]
    assert released.unique().sort().to_list() == ["20-29", "30-39"]


def test_the_roles_of_the_project_are_proposed(tmp_path: Path) -> None:
    proposals = {p.column: (p.role, p.reason) for p in eq.suggest_roles(project(tmp_path / "demo.deid")).proposals}
    assert [proposals[c][0] for c in ("name", "age", "city", "disease")] == ["direct", "key", "key", "sensitive"]
    assert proposals["age"][1] == "said by the project"
    assert proposals["pay"][0] in ("numeric", "id", "none")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"input/definition.xml": "<definition><assigment>"}, "not a whole ARX project"),
        ({"input/definition.xml": "<!DOCTYPE a><definition/>"}, "document type"),
        ({"ages": "20;a;x\n25;a;y\n31;b;y\n"}, "hierarchy of 'age'"),
    ],
)
def test_what_is_broken_is_refused(tmp_path: Path, changes: dict[str, str], words: str) -> None:
    with pytest.raises(DataError, match=words):
        eq.read(project(tmp_path / "demo.deid", **changes))


def test_an_archive_that_is_no_project_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "other.deid", "w") as archive:
        archive.writestr("metadata.xml", "<metadata/>")
    with pytest.raises(DataError, match="no ARX project"):
        eq.read(tmp_path / "other.deid")
