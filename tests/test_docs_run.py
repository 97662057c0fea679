"""Every example of the README and the guides runs as it is written, page by page, in a folder with the files it names.

Python blocks run in order and share their names; lines of shell blocks that begin with `equipoise` run as commands and
must end with 0, or with what a comment says (`# exit code 1`); a TOML block is checked as a policy or roles file, and
kept under the name in its first line (`# limits.toml`).
"""

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import equipoise as eq
from equipoise.data.roles import Roles
from equipoise.doors.cli import main
from equipoise.files import save, store
from equipoise.policies.policy_file import Job

for package, extra in (("pyreadstat", "files"), ("duckdb", "duckdb"), ("sklearn", "learn")):
    pytest.importorskip(package, reason=f"The examples of the docs were not run: the extra {extra!r} is not installed.")
ROOT = Path(__file__).parents[1]
BUILT = "own-methods.md"
"""The page whose blocks are the files of a package: it is built and used in tests/recipe/test_own_methods.py."""
READ_ONLY = "guarantee.md"
GUIDES = sorted(path for path in (ROOT / "docs").glob("[gt]*/*.md") if path.name not in (BUILT, READ_ONLY))
PAGES = ["README.md", *(f"docs/{path.parent.name}/{path.name}" for path in GUIDES)]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def small() -> dict[str, pl.DataFrame]:
    """Files as the examples name them, made from the demo files."""
    whole = eq.demo.survey()
    survey = whole.head(8000).rename({"salary": "income"})
    people = survey.with_columns(w=pl.col("weight") / 300).drop("weight")
    firms = eq.demo.business().with_columns(pl.col("industry").str.slice(0, 1)).rename({"weight": "w"})
    register = people.select("person", "sex", "age", "region", "income")
    return {"people": people, "register": register, "firms": firms, "demo": whole.filter(pl.col("household") % 4 == 0)}


@pytest.fixture
def folder(page: str, small: dict[str, pl.DataFrame], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files; the demo's survey is one household in four, which has acceptable releases too.

    The page of presets tells numbers of 2,000 people. The page of policies has 8,000: the first release of 4,000 keeps
    an overlap of 0.70 to 0.72, on either side of its limit as the draw has it.
    """
    monkeypatch.chdir(tmp_path)
    people = small["people"].head(2000 if "presets" in page else 8000 if "policy" in page else 4000)
    for name, table in {"people": people, "register": small["register"].head(4000), "firms": small["firms"]}.items():
        table.write_parquet(tmp_path / f"{name}.parquet")
    monkeypatch.setattr(eq.demo, "survey", lambda: small["demo"])
    monkeypatch.setattr("equipoise.doors.api.show_page", lambda address: False)
    save(people.lazy(), tmp_path / "people.sav", "sav")
    store(people, "people", tmp_path / "office.duckdb")
    return tmp_path


ELSEWHERE = {
    "demo survey --out demo": "tests/doors/cli/test_cli.py runs it as a process and looks at its release",
    "balance survey.toml": "the same: the demo balances this policy",
}
"""Commands that another test runs, and where."""


def commands(block: str) -> list[tuple[list[str], int]]:
    """The commands of a shell block, each with the exit code it must have."""
    lines = [line for line in block.replace("\\\n", " ").split("\n") if line.startswith("equipoise ")]
    lines = [line for line in lines if line.removeprefix("equipoise ") not in ELSEWHERE]
    codes = [int(found[1]) if (found := re.search(r"#.*exit code (\d+)", line)) else 0 for line in lines]
    return [(shlex.split(line, comments=True)[1:], code) for line, code in zip(lines, codes, strict=True)]


def without_gallery(text: str) -> str:
    """The commands of the gallery run in tests/doors/test_walks.py, where their releases are looked at."""
    return re.sub(r"^## Gallery\n.*?(?=^## )", "", text, flags=re.MULTILINE | re.DOTALL)


def check_toml(block: str, folder: Path) -> None:
    plain = tomllib.loads(block)
    if "data" in plain:
        Job.from_plain(plain, folder / "policy.toml")
    else:
        Roles.from_plain(plain.get("roles", plain), folder)
    if named := re.match(r"# (\S+\.toml)\n", block):
        (folder / named[1]).write_text(block, encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_run(page: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = BLOCK.findall(without_gallery((ROOT / page).read_text(encoding="utf-8")))
    assert blocks, "a guide without examples"
    if any("--roles roles.toml" in text for _, text in blocks) and not _writes_roles(blocks):
        assert main(["roles", "people.parquet", "--out", "roles.toml"]) == 0
    names: dict[str, Any] = {"__name__": "example"}
    for kind, text in blocks:
        if kind == "toml":
            check_toml(text, folder)
        for given, code in commands(text) if kind == "sh" else []:
            assert main(given) == code, f"{shlex.join(given)}\n{capsys.readouterr().err[-2000:]}"
        if kind == "python":
            exec(compile(text, page, "exec"), names)


def _writes_roles(blocks: list[tuple[str, str]]) -> bool:
    return any("--out roles.toml" in text for _, text in blocks)


def test_every_block_says_what_it_is() -> None:
    """A block without a language would not be run: none is left out by mistake."""
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        opened = re.findall(r"^```(\w*)$", text, re.MULTILINE)[::2]
        assert set(opened) <= {"sh", "python", "toml", "text"}, page


def test_the_names_beside_those_of_other_programs_are_there() -> None:
    """Every `risk.Individual` and `eq.protect_tables` of the guide for users of other programs can be called."""
    text = (ROOT / "docs/guides/moving.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`(?:eq\.)?((?:masks|risk|rules|attacks|utility|losses|tables)\.\w+)", text))
    names |= set(re.findall(r"`eq\.([a-z_]+)", text)) - set(eq.FAMILIES)
    names -= {"utility.gen"}  # synthpop's
    assert len(names) > 40
    for name in names:
        owner, _, attribute = name.rpartition(".")
        assert hasattr(getattr(eq, owner) if owner else eq, attribute), name
