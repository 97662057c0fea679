"""Bad input at the command line: exit 2, one sentence, nothing written, no data value shown."""

import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from equipoise.doors.cli import main

CANARY = "CANARY7731"
HEADER = "age,sex,region,born,salary,w,note"
POLICY = """
[data]
path = "good.csv"
[roles]
keys = ["age", "sex"]
[roles.hierarchies.age]
kind = "intervals"
widths = [5]
[limits]
uniques = "< 0.9"
"""

Build = Callable[[Path], list[str]]


def row(i: int) -> str:
    return f"{20 + i % 40},{'fm'[i % 2]},{CANARY if i == 3 else 'north'},2001-02-0{1 + i % 9},{1000 + i},1.5,{CANARY}"


def rows(count: int = 30) -> list[str]:
    return [row(i) for i in range(count)]


def changed(place: int, column: str, value: str, count: int = 30) -> list[str]:
    """The usual rows, one field of one of them changed."""
    made = rows(count)
    fields = made[place].split(",")
    fields[HEADER.split(",").index(column)] = value
    made[place] = ",".join(fields)
    return made


def write(folder: Path, lines: list[str] | None = None, name: str = "data.csv", header: str = HEADER) -> str:
    path = folder / name
    path.write_text("\n".join([header, *(rows() if lines is None else lines)]) + "\n", encoding="utf-8")
    return str(path)


def raw(folder: Path, data: bytes, name: str = "data.csv") -> str:
    (folder / name).write_bytes(data)
    return str(folder / name)


def assess(lines: list[str] | None = None, *options: str, header: str = HEADER) -> Build:
    return lambda folder: ["assess", write(folder, lines, header=header), "--keys", "age,sex", *options]


def assess_bytes(data: bytes, *options: str, name: str = "data.csv") -> Build:
    return lambda folder: ["assess", raw(folder, data, name), "--keys", "age,sex", *options]


def protect(*options: str, lines: list[str] | None = None) -> Build:
    return lambda folder: ["protect", write(folder, lines), "--keys", "age,sex", "--out", str(folder / "out"), *options]


def balance(policy: str, *, good: bool = True) -> Build:
    def build(folder: Path) -> list[str]:
        if good:
            write(folder, name="good.csv")
        (folder / "policy.toml").write_text(policy, encoding="utf-8")
        return ["balance", str(folder / "policy.toml"), "--out", str(folder / "out")]

    return build


def parquet_cut(folder: Path) -> list[str]:
    pl.DataFrame({"age": [1, 2] * 500, "sex": ["f", CANARY] * 500}).write_parquet(folder / "whole.parquet")
    return assess_bytes((folder / "whole.parquet").read_bytes()[:-40], name="cut.parquet")(folder)


def parquet_rotten(folder: Path) -> list[str]:
    """A whole footer, damaged pages."""
    pl.DataFrame({"age": range(5000), "sex": ["f", CANARY] * 2500}).write_parquet(folder / "whole.parquet")
    data = bytearray((folder / "whole.parquet").read_bytes())
    data[4:2000] = b"\xff" * 1996
    return assess_bytes(bytes(data), name="rotten.parquet")(folder)


def out_exists(folder: Path) -> list[str]:
    (folder / "out").mkdir()
    (folder / "out" / "mine.txt").write_text("mine")
    return protect("--mask", "top-code:age,50")(folder)


def out_is_not_a_release(folder: Path) -> list[str]:
    return [*out_exists(folder), "--overwrite"]


def out_is_a_file(folder: Path) -> list[str]:
    (folder / "out").write_text("mine")
    return protect("--mask", "top-code:age,50")(folder)


def hierarchy_lacks(folder: Path) -> list[str]:
    (folder / "region.csv").write_text("north;all\nsouth;all\n", encoding="utf-8")
    tree = f"region=csv:{folder / 'region.csv'}"
    return protect("--hierarchy", tree, "--mask", "recode:region,1")(folder)


def hierarchy_is_a_workbook(folder: Path) -> list[str]:
    pl.DataFrame({"region": ["north", CANARY]}).write_excel(folder / "tree.xlsx")
    (folder / "tree.xlsx").rename(folder / "tree.hrc")
    return protect("--hierarchy", f"region=hrc:{folder / 'tree.hrc'}", "--mask", "recode:region,1")(folder)


def roles_file(text: str) -> Build:
    def build(folder: Path) -> list[str]:
        (folder / "roles.toml").write_text(text, encoding="utf-8")
        return ["assess", write(folder), "--roles", str(folder / "roles.toml")]

    return build


MANY = [f"{i},f,{CANARY}{i},2001-01-01,1,1,x" for i in range(100_000)]
LATE_BYTES = ("\n".join([HEADER, *rows(20_000)]) + "\n").encode() + b"20,f,\xff\x81,2001-01-01,1,1,x\n"

CASES: dict[str, tuple[Build, str]] = {
    # columns and roles
    "column missing": (assess(None, "--sensitive", "salery"), "No column 'salery' .* Did you mean 'salary'"),
    "key of 3,000 characters": (assess(None, "--sensitive", "x" * 3000), f"No column '{'x' * 77}\\.\\.\\.' in"),
    "key missing": (lambda d: ["assess", write(d), "--keys", "agee"], "No column 'agee' .* Did you mean 'age'"),
    "no keys": (lambda d: ["assess", write(d)], "No keys were named"),
    "key twice": (assess(None, "--keys", "age"), "twice in the role 'keys'"),
    "weight is text": (assess(None, "--weight", "note"), "'note' has the role weight but is String"),
    "numeric is text": (assess(None, "--numeric", "note"), "'note' has the role numeric but is String"),
    "key and weight": (assess(None, "--weight", "age"), "'age' cannot be both weight and keys"),
    "weight NaN": (assess(changed(7, "w", "NaN"), "--weight", "w"), "1 records? ha(s|ve) a weight in 'w'"),
    "weight missing": (assess(changed(7, "w", ""), "--weight", "w"), "1 records? ha(s|ve) a weight in 'w'"),
    "weight negative": (assess(changed(7, "w", "-7731.5"), "--weight", "w"), "1 records? ha(s|ve) a weight in 'w'"),
    "weight text late": (assess(changed(20_000, "w", CANARY, 20_010), "--weight", "w"), "'w' .* not numeric"),
    "roles unknown": (roles_file('keyz = ["age"]'), "No role 'keyz'.* Did you mean 'keys'"),
    "roles wrong type": (roles_file("keys = 5"), "'keys'"),
    "roles weight list": (roles_file('keys = ["age"]\nweight = ["w"]'), "'weight' takes the name of one column"),
    "roles not TOML": (roles_file("keys = ["), "not valid TOML"),
    # files
    "empty file": (assess_bytes(b""), "is empty"),
    "header only": (assess([]), "has a header but no records"),
    "one record": (assess([row(3)]), "one record only"),
    "key all null": (assess([f",{CANARY}"] * 9, header="age,sex"), "The key 'age' has no values"),
    "column twice": (assess(None, header="age,sex,age,born,salary,w,note"), "stands twice .* .columns 1 and 3."),
    "parquet cut off": (parquet_cut, "not a whole Parquet file"),
    "parquet rotten": (parquet_rotten, "damaged"),
    "arrow is not": (assess_bytes(CANARY.encode() * 99, name="x.arrow"), "not a whole Arrow file"),
    "binary as csv": (assess_bytes(CANARY.encode() + bytes(range(256)) * 9), "not a text file"),
    "prose as csv": (assess_bytes(f"{CANARY} is no table\nand never was\n".encode()), "must hold the column names"),
    "no header": (lambda d: ["assess", write(d, header=row(3)), "--keys", "age"], "stands twice"),
    "no header, unlike": (lambda d: ["assess", write(d, header=row(4)), "--keys", "age"], "must hold the column names"),
    "ragged": (assess([*rows(), f"1,{CANARY}"]), "row 32 has another number of fields"),
    "ragged late": (assess([*rows(20_000), f"1,{CANARY}"]), "not a regular CSV file"),
    "ragged late, wide": (assess([*rows(20_000), row(3) + f",{CANARY}"]), "not a regular CSV file"),
    "quote never closed": (assess([*rows(), f'20,f,"{CANARY}']), "not a regular CSV file"),
    "bytes not utf-8": (assess_bytes(LATE_BYTES[-60:], "--encoding", "utf-8"), "not text in the encoding"),
    "bytes no encoding": (assess_bytes(LATE_BYTES[-60:]), "not text in the encoding"),
    "bytes late": (assess_bytes(LATE_BYTES), "not text in the encoding utf-8"),
    "encoding not of text": (assess(None, "--encoding", "rot13"), "No encoding is called 'rot13'"),
    "encoding unknown": (assess(None, "--encoding", "klingon"), "No encoding is called 'klingon'"),
    "delimiter long": (assess(None, "--delimiter", ";;"), "one character"),
    "decimal unknown": (assess(None, "--decimal", "x"), "decimal"),
    "100,000 categories": (lambda d: ["assess", write(d, MANY), "--keys", "sex,region"], "'region' has 100,000 cat"),
    "no such path": (lambda d: ["assess", str(d / "none.csv"), "--keys", "age"], "No file at"),
    "path is a folder": (lambda d: ["assess", str(d), "--keys", "age"], "is a folder"),
    "extension": (lambda d: ["assess", raw(d, b"x", "data.sav7"), "--keys", "age"], "No format for files ending"),
    # output
    "out exists": (out_exists, "exists already"),
    "out no release": (out_is_not_a_release, "is not a release"),
    "out is a file": (out_is_a_file, "is a file"),
    "format unknown": (protect("--format", "xlsb"), "No format 'xlsb'"),
    # methods
    "mask unknown": (protect("--mask", "topcode:age,5"), "No mask 'topcode'.* Did you mean 'top_code'"),
    "mask bare": (protect("--mask", "top-code"), "top_code needs column, at"),
    "mask field unknown": (protect("--mask", "top-code:age,5,color=red"), "no parameter 'color'"),
    "mask option unknown": (protect("--mask", "top-code", "--colour", "red"), "No such option"),
    "mask value": (protect("--mask", "top-code:age,high"), "number"),
    "mask value, long": (protect("--mask", "top-code", "--column", "age", "--at", "high"), "number"),
    "mask no value": (protect("--mask", "top-code", "--column", "age", "--at"), "--at of top-code needs a value"),
    "mask many values": (protect("--mask", "top-code:age,5,mean,7"), "at most 3"),
    "mask column": (protect("--mask", "top-code:agee,5"), "No column 'agee'.* Did you mean 'age'"),
    "mask on text": (protect("--mask", "top-code:region,5"), "'region' is String, not numeric"),
    "measure unknown": (assess(None, "--measure", "unique"), "No measure 'unique'.* Did you mean 'uniques'"),
    "measure field": (assess(None, "--measure", "uniques:k=x"), "whole number"),
    "measure column": (assess(None, "--measure", "attribute-disclosure:salery"), "No column 'salery'"),
    "measure range": (assess(None, "--measure", "attribute-disclosure:region,range=5"), "not numeric"),
    "measure unclosed": (assess(None, "--measure", "uniques(k=3"), "uniques"),
    "limit malformed": (protect("--limit", "uniques below 2"), "Cannot read the limit"),
    "limit no number": (protect("--limit", "uniques < few"), "Cannot read the limit"),
    "limit two dots": (protect("--limit", "uniques < 0.0.2"), "Cannot read the limit"),
    "limit unknown": (protect("--limit", "uniks < 0.2"), "No measure 'uniks'"),
    # hierarchies
    "hierarchy number huge": (protect("--hierarchy", "age=intervals:" + "9" * 5000), "widths must be"),
    "hierarchy is a workbook": (hierarchy_is_a_workbook, "hierarchy|text"),
    "level unknown": (protect("--hierarchy", "age=intervals:5", "--mask", "recode:age,7"), "No level '7'"),
    "no hierarchy": (protect("--mask", "recode:age,5"), "'age' has no hierarchy"),
    "hierarchy lacks a value": (hierarchy_lacks, "1 value of column 'region' is not in its hierarchy"),
    "hierarchy not nested": (protect("--hierarchy", "age=intervals:3,5"), "not a function of the finer"),
    "hierarchy malformed": (protect("--hierarchy", "age"), "Cannot read the hierarchy"),
    "hierarchy kind": (protect("--hierarchy", "age=bands:5"), "No hierarchy kind 'bands'"),
    "hierarchy number": (protect("--hierarchy", "age=intervals:five"), "intervals: widths must be a number"),
    "hierarchy file": (protect("--hierarchy", "age=csv:none.csv"), "No hierarchy file"),
    "hierarchy column": (protect("--hierarchy", "agee=intervals:5"), "No column 'agee'"),
    "hierarchy of text": (
        protect("--hierarchy", "region=intervals:5", "--mask", "recode:region,5"), "'region' is String, not numeric",
    ),
    "dates malformed": (
        protect("--hierarchy", "born=dates:month", "--mask", "recode:born,month", lines=changed(9, "born", CANARY)),
        "of column 'born' are not dates",
    ),
    "dates unknown": (protect("--hierarchy", "born=dates:fortnight"), "No date part 'fortnight'"),
    # policies
    "policy missing": (lambda d: ["balance", str(d / "none.toml")], "No file at"),
    "policy not TOML": (balance("[data\npath = 5"), "not valid TOML"),
    "policy long number": (balance("x = " + "9" * 5000), "not valid TOML: a number in it has too many digits"),
    "policy half a name": (balance(POLICY + "'uniques by \"a\\q\"' = '< 1'\n"), "No measure 'uniques by"),
    "policy empty": (balance(""), "cannot be used"),
    "policy unknown key": (balance("colour = 'red'\n" + POLICY), "colour: is not known"),
    "policy unknown section": (balance(POLICY + "[limit]\nx = '< 1'\n"), "limit: is not known"),
    "policy unknown measure": (balance(POLICY + "uniks = '< 1'\n"), "No measure 'uniks'"),
    "policy limit": (balance(POLICY + "entropy = 'much'\n"), "Cannot read the limit 'much'"),
    "policy limit number": (balance(POLICY + "entropy = 7.5\n"), "limits.entropy"),
    "policy mask": (balance(POLICY + '[[candidates]]\nmasks = [{use = "recod"}]\n'), "No mask 'recod'"),
    "policy level": (
        balance(POLICY + '[[candidates]]\nmasks = [{use = "recode", column = "age", level = "7"}]\n'), "No level '7'",
    ),
    "policy level list": (
        balance(POLICY + '[[candidates]]\nmasks = [{use = "recode", column = "age", level = [["5"]]}]\n'),
        "level must be",
    ),
    "policy column list": (
        balance(POLICY + '[[candidates]]\nmasks = [{use = "recode", column = [["age"]], level = "5"}]\n'), "column",
    ),
    "policy kind table": (balance(POLICY.replace('"intervals"', '{a = "intervals"}')), "has unfit fields"),
    "policy widths huge": (balance(POLICY.replace("[5]", f"[{10**400}]")), "widths"),
    "policy top list": (balance(POLICY.replace("[5]", "[5]\ntop = [1]")), "top|unfit"),
    "policy path stars": (balance(POLICY.replace("good.csv", "a**b.csv")), "a\\*\\*b.csv"),
    "policy path disk": (balance(POLICY.replace("good.csv", "none/**")), "No file fits"),
    "policy encoding null": (
        balance(POLICY.replace('"good.csv"', '"good.csv"\nencoding = "a\\u0000b"')), "No encoding",
    ),
    "policy data missing": (balance(POLICY, good=False), "No file at"),
    "policy column": (balance(POLICY.replace('"sex"', '"sexx"')), "No column 'sexx'.* Did you mean 'sex'"),
    "policy format": (balance("format = 99\n" + POLICY), "format"),
    # the command line itself
    "verb unknown": (lambda d: ["asses", write(d)], "No such command 'asses'"),
    "option unknown": (assess(None, "--kees", "age"), "No such option"),
    "option no value": (assess(None, "--weight"), "--weight"),
    "argument missing": (lambda d: ["assess"], "Missing argument 'FILE'"),
    "argument extra": (assess(None, "more.csv"), "unexpected extra argument"),
    "method unknown": (lambda d: ["methods", "uniqs"], "No method 'uniqs'.* Did you mean 'uniques'"),
}  # fmt: skip


def tree(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*")}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, where temporary files would be seen too."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_one_sentence(name: str, here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """One line; several problems of a policy have a line each."""
    build, words = CASES[name]
    args = build(here)
    before = tree(here)
    assert main(args) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("equipoise: ")
    assert re.fullmatch(r"[^\n]+\n|equipoise: The policy '\S+' cannot be used\.\n(  [^\n]+\n){2,}", err), err
    assert re.search(words, err, re.DOTALL), err
    assert CANARY not in err
    assert "Traceback" not in err
    assert tree(here) == before


def test_refusal_names_each_broken_limit(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    args = protect("--mask", "top-code:age,50", "--limit", "uniques < 0.01", "--limit", "entropy > 99")(here)
    before = tree(here)
    assert main(args) == 1
    out, err = capfd.readouterr()
    assert re.fullmatch(
        r"equipoise: .*uniques is 100 %, outside .*below 1 %\); entropy kept is .* outside .*above 99\)\.\n", err
    )
    assert not out
    assert tree(here) == before


def test_balance_refuses_when_no_candidate_is_inside(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    args = balance('assume_unknown = ["salary", "born"]\n' + POLICY + 'prosecutor = "< 0.001"\nentropy = "> 99"\n')(
        here
    )
    before = tree(here)
    assert main(args) == 1
    err = capfd.readouterr().err
    assert "None of 2 candidates" in err
    assert "limit below 0.1 %" in err
    assert "limit above 99" in err
    assert tree(here) == before
