"""Methods of other packages: the one of docs/guides/own-methods.md is built and used; wrong ones are refused."""

import json
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from equipoise.doors.cli import main
from equipoise.policies.json_schema import schema_text
from equipoise.recipe import catalogue
from equipoise.releases.evidence import same_versions, versions

PAGE = Path(__file__).parents[2] / "docs/guides/own-methods.md"
BLOCK = re.compile(r"^```(\w+)\n(?:# (\S+\.(?:py|toml))\n)?(.*?)^```$", re.MULTILINE | re.DOTALL)
METHODS: list[tuple[catalogue.Verb, str, str, str]] = [
    ("rule", "few_people", "few-people:5", "rules"),
    ("mask", "round_to", "round_to(column='x', base=5)", "masks"),
    ("measure", "mean_shift", "mean-shift:x", "utility"),
]
CLASS = """
from dataclasses import dataclass

@dataclass(frozen=True)
class {name}:
    def {verb}(self, *data): ...
"""


def install(folder: Path, files: dict[str, str], name: str, entry: dict[str, str], version: str = "1.0") -> None:
    """A package as an installer leaves it: its files, and what its metadata says."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    lines = "".join(f"{key} = {value}\n" for key, value in entry.items())
    (info / "entry_points.txt").write_text(f"[equipoise.methods]\n{lines}", encoding="utf-8")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path; what was imported from it is forgotten afterwards."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def blocks(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The package of the page is installed, its other files are written; what is to be run is given, in order."""
    parts = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    project = next(tomllib.loads(text) for _, file, text in parts if file == "pyproject.toml")
    files = {file: text for _, file, text in parts if file.startswith("our_methods/")}
    about = project["project"]
    install(site, files, about["name"], about["entry-points"]["equipoise.methods"], about["version"])
    monkeypatch.chdir(tmp_path)
    policy = next(text for _, file, text in parts if file == "policy.toml")
    (tmp_path / "policy.toml").write_text(policy, encoding="utf-8")
    survey = eq.demo.survey().head(2_000).rename({"salary": "income", "weight": "w"})
    survey.write_parquet(tmp_path / "people.parquet")
    return [(kind, text) for kind, file, text in parts if not file and kind in ("sh", "python")]


def test_the_page_runs_as_it_is_written(blocks: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "example"}
    assert [kind for kind, _ in blocks] == ["sh", "sh", "python"]
    for kind, text in blocks:
        if kind == "python":
            exec(compile(text, str(PAGE), "exec"), names)
        for line in text.splitlines() if kind == "sh" else ():
            assert main(shlex.split(line)[1:]) == 0, capsys.readouterr().err
    words = " ".join(capsys.readouterr().out.split())
    assert "round-to Round the numbers of `column` to multiples of `base`. (our-methods 1.0)" in words
    assert "income rounded to multiples of 1000" in words
    evidence = json.loads(Path("policy-release/public/evidence.json").read_text(encoding="utf-8"))
    assert evidence["versions"]["our-methods"] == "1.0"
    assert evidence["scores"]["mean_shift(column='income')"]
    assert main(["verify", "policy-release"]) == 0, capsys.readouterr().out


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize(("verb", "name", "text", "family"), METHODS)
def test_own_methods_are_found_wherever_names_are_read(verb: catalogue.Verb, name: str, text: str, family: str) -> None:
    method = catalogue.find(name.replace("_", "-"), verb)
    assert method is catalogue.methods(verb)[name]
    assert isinstance(catalogue.parse(text, verb), method)
    assert catalogue.family(method) == family
    assert verb == "rule" or f'"{name}"' in schema_text()
    with pytest.raises(eq.ParameterError, match=f"Did you mean '{name}'"):
        catalogue.find(f"{name}s", verb)


@pytest.mark.usefixtures("blocks")
def test_own_methods_are_in_the_forms_of_the_workbench() -> None:
    forms = pytest.importorskip("equipoise.doors.web.work.method_forms", reason="The extra 'web' is not installed.")
    names = {
        one["name"] for verb in ("mask", "measure") for part in forms.methods_by_heading(verb).values() for one in part
    }
    assert {"round_to", "mean_shift"} <= names


@pytest.mark.usefixtures("blocks")
def test_evidence_names_only_packages_that_were_used() -> None:
    assert "our-methods" not in versions("uniques", "noise(columns=('income',))")
    recorded = versions("suppress_records(rule='few_people(people=2)')")
    assert recorded["our-methods"] == "1.0"
    assert same_versions(recorded)
    assert not same_versions(recorded | {"our-methods": "0.9"})
    assert not same_versions(recorded | {"gone": "1.0"})


@pytest.mark.usefixtures("blocks")
def test_methods_for_records_are_refused_on_tables() -> None:
    records = eq.read("people.parquet", eq.Roles(["age", "sex"]))
    mask, table = catalogue.parse("round-to:income,10", "mask"), eq.table(records, ("sex",))
    with pytest.raises(eq.ParameterError, match="RoundTo changes records, not tables"):
        eq.sweep(table, [eq.Recipe([mask])], [eq.tables.Suppressed()])


@pytest.mark.parametrize(
    ("text", "entry", "error", "words"),
    [
        ("", "wrong.gone", eq.MissingExtraError, r"'wrong' 1\.0 cannot be imported \(ModuleNotFoundError\)"),
        ("raise TypeError('CANARY7731')\n", "wrong", eq.MissingExtraError, r"cannot be imported \(TypeError\)"),
        ("x = 1\n", "wrong", eq.ParameterError, "no class, nor a module with __all__"),
        ("x = 1\n", "wrong:x", eq.ParameterError, "no class, nor a module with __all__"),
        (CLASS.format(name="Odd", verb="flagg"), "wrong:Odd", eq.ParameterError, r"Odd of the package 'wrong' 1\.0"),
        ("class Odd:\n    def flag(self, cells): ...\n", "wrong:Odd", eq.ParameterError, "a frozen dataclass"),
        (CLASS.format(name="Odd", verb="measure"), "wrong:Odd", eq.ParameterError, "must say family = one of 'risk'"),
    ],
)
def test_packages_that_are_wrong_are_refused_by_name(
    text: str, entry: str, error: type[eq.EquipoiseError], words: str, site: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """One sentence that names the package, and none of its own text; built-in methods still work."""
    install(site, {"wrong.py": text}, "wrong", {"it": entry})
    assert catalogue.find("min-count", "rule") is eq.rules.MinCount
    with pytest.raises(error, match=words) as refusal:
        catalogue.find("odd", "rule")
    assert "CANARY" not in str(refusal.value)
    assert main(["methods", "odd"]) == error.exit_code
    assert main(["methods"]) == 0
    assert re.search(words.replace(" ", r"\s+"), capfd.readouterr().out)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("name", ["Zero", "FewPeople"])
def test_a_name_that_is_taken_is_refused(name: str, site: Path) -> None:
    """Neither is used: which one was meant cannot be known."""
    text = CLASS.format(name=name, verb="flag")
    install(site, {"rival.py": text}, "rival", {"it": f"rival:{name}"})
    with pytest.raises(eq.ParameterError, match=r"'rival' 1\.0 has a method .* give it another name"):
        catalogue.parse(name, "rule")
    assert catalogue.parse("min-count:3", "rule") == eq.rules.MinCount(3)
