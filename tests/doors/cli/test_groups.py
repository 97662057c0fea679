"""Group disclosure and structural zeros from the command line and a policy file, and verified from the records."""

from pathlib import Path

import polars as pl
import pytest

import equipoise as eq
from equipoise.doors.cli import main

RULE = "group-disclosure:1,columns=s | min-count:3"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rows = [("a", "p", 20), ("b", "p", 5), ("b", "q", 7), ("c", "p", 4), ("c", "q", 5), ("c", "r", 6)]
    frame = pl.DataFrame([(g, s) for g, s, n in rows for _ in range(n)], ["g", "s"], orient="row")
    frame.write_csv(tmp_path / "people.csv")
    return tmp_path / "people.csv"


def cells(folder: Path) -> dict[tuple[str, str], str]:
    table = pl.read_csv(folder / "public" / "table.csv", infer_schema=False)
    return {(row["g"], row["s"]): row["published"] for row in table.iter_rows(named=True)}


def test_from_the_command_line_and_verified(file: Path) -> None:
    """The empty cells of the full group are suppressed, the impossible one is published, and both audits agree."""
    out = file.parent / "out"
    asked = ["table", str(file), "--by", "g,s", "--rule", RULE, "--structural", "g=b & s=r", "--out", str(out)]
    assert main(asked) == 0
    shown = cells(out)
    assert shown["a", "p"] is shown["a", "q"] is shown["a", "r"] is None
    assert shown["b", "r"] == "0"
    assert main(["verify", str(out), "--original", str(file)]) == 0


def test_in_a_policy(file: Path) -> None:
    text = (
        f'format = 1\nmeasures = ["groups_told(columns=(\'s\',))", "suppressed"]\n[data]\npath = "{file.name}"\n'
        '[table]\nby = ["g", "s"]\nstructural = ["g=b & s=r"]\n'
        f'[limits]\n"exposed(rule=\'{RULE}\')" = "<= 0"\n"groups_told(columns=(\'s\',))" = "<= 0"\n'
        f'[[candidates]]\nmasks = [{{ use = "suppress", rule = "{RULE}" }}]\n'
    )
    (file.parent / "policy.toml").write_text(text, encoding="utf-8")
    made = eq.balance(file.parent / "policy.toml", out=file.parent / "out")
    assert made.verdict.accepted
    assert cells(file.parent / "out")["b", "r"] == "0"


@pytest.mark.parametrize(
    ("rule", "zeros", "words"),
    [
        (RULE, "g=b & s=x", "no label 'x'"),
        (RULE, "g=b & s=q", "have records"),
        ("group-disclosure:0", "g=b & s=r", "k must be a whole number"),
        ("group-disclosure:1,columns=age", "g=b & s=r", "age"),
    ],
)
def test_refused_in_one_sentence(
    file: Path, capsys: pytest.CaptureFixture[str], rule: str, zeros: str, words: str
) -> None:
    assert main(["table", str(file), "--by", "g,s", "--rule", rule, "--structural", zeros]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said
