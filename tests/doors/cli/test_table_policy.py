"""Tables on the map: `equipoise balance` with [table], and `equipoise table --compare`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.doors.cli import main

CANARY = "Canary-9917"
POLICY = """
format = 1
title = "Turnover of firms"
[data]
path = "firms.csv"
[table]
by = ["region", "trade"]
value = "turnover"
[limits]
"exposed(rule='p-percent:10%')" = "<= 0"
distance = "< 20%"
[[candidates]]
masks = [{ use = "suppress", rule = ["p-percent:10%", "dominance:1,60%"] }]
[[candidates]]
masks = [{ use = "round", base = [20, 500] }]
[[candidates]]
masks = [{ use = "cell_key" }]
"""
Run = Callable[..., str]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Run a command that must end with the exit code; give what it said on stdout, or on stderr where it failed."""

    def call(*args: str | Path, code: int = 0) -> str:
        assert main([str(a) for a in args]) == code
        out, err = capfd.readouterr()
        assert bool(err) == bool(code), err
        return err if code else out

    return call


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, many = tmp_path_factory.mktemp("maps"), 300
    rng = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "firm": [f"{CANARY}-{i}" for i in range(many)],
            "region": rng.choice(["n1", "n2", "s1", "s2"], many, p=[0.5, 0.3, 0.15, 0.05]),
            "trade": rng.choice(["A1", "A2", "B1", "B2", "C1"], many, p=[0.45, 0.3, 0.15, 0.07, 0.03]),
            "turnover": np.ceil(rng.lognormal(3, 1.6, many)).astype(np.int64),
        }
    )
    frame.write_csv(folder / "firms.csv")
    (folder / "policy.toml").write_text(POLICY, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def released(here: Path) -> Path:
    assert main(["balance", str(here / "policy.toml"), "--json"]) == 0
    return here / "policy-release"


def flat(text: str) -> str:
    return " ".join(text.split())


# --- balance ------------------------------------------------------------------------------------------------------


def test_balance_on_the_screen(run: Run, here: Path, tmp_path: Path) -> None:
    text = flat(run("balance", here / "policy.toml", "--out", tmp_path / "out"))
    words = ["Released: the best of", "(4 tried)", "suppress by p-percent:10%", "Methods compared", "Exposed Distance",
             "(released)", "round to 500", "original", "Left out", "cell key: CellKey is for tables of counts",
             "Audit: passed", "The rule needs a second look", "dominance:1,60%: Dominance", "The internal report names",
             "Your report", "To publish"]  # fmt: skip
    places = [text.index(word) for word in words]
    assert places == sorted(places)
    assert not any(label in text for label in ("s2", "C1", CANARY))


def test_balance_as_json(run: Run, here: Path, tmp_path: Path) -> None:
    told = json.loads(run("balance", here / "policy.toml", "--out", tmp_path / "out", "--json"))
    assert told["verdict"] == "accepted"
    assert told["candidates"]["tried"] == 4
    assert told["candidates"]["left_out"] == 1
    assert told["masks"][0]["use"] == "suppress"
    assert told["scores"]["exposed(rule='p_percent')"]["value"] == 0
    assert told["limits"] == {"exposed(rule='p_percent')": "<= 0", "distance": "< 20%"}
    assert len(told["compared"]) == 5
    assert told["warnings"][0]["rule"] == "dominance:1,60%"
    assert Path(told["data"]).is_file()
    assert Path(told["report"]).is_file()
    assert not any(label in json.dumps(told) for label in ("s2", "C1", CANARY))


def test_wishes_and_cell_keys_for_amounts_in_a_policy(run: Run, here: Path, tmp_path: Path) -> None:
    """What [table] says of cells is heeded by suppression; what cannot is left out; made again it is the same."""
    (here / "a.hst").write_text("n1,A1,u\n,,p\n", encoding="utf-8")
    wishes = 'apriori = "a.hst"\npublish = ["region=n2 & trade=A1"]\n[limits]'
    more = '[[candidates]]\nmasks = [{ use = "cell_key_amounts", small = 0.2 }]\n'
    plenty = POLICY.replace("< 20%", "< 40%")
    (here / "wishes.toml").write_text(plenty.replace("[limits]", wishes) + more, encoding="utf-8")
    told = json.loads(run("balance", here / "wishes.toml", "--out", tmp_path / "out", "--json"))
    assert told["masks"][0]["use"] == "suppress"
    assert told["candidates"]["left_out"] == 4
    cells = {row[:2]: row[2] for row in pl.read_csv(tmp_path / "out" / "private" / "table.csv").select(
        "region", "trade", "status").rows()}  # fmt: skip
    assert (cells["n1", "A1"], cells["n2", "A1"], cells["Total", "Total"]) == ("sensitive", "published", "published")
    assert eq.verify(tmp_path / "out").outcome == "verified"
    (here / "noise.toml").write_text(plenty.partition("[[cand")[0] + more, encoding="utf-8")
    noisy = json.loads(run("balance", here / "noise.toml", "--out", tmp_path / "noise", "--json"))
    assert noisy["masks"][0]["use"] == "cell_key_amounts"
    assert eq.verify(tmp_path / "noise").outcome == "verified"


def test_a_refusal_writes_nothing(run: Run, here: Path, tmp_path: Path) -> None:
    (here / "tight.toml").write_text(POLICY.replace("< 20%", "< 0.01%"), encoding="utf-8")
    said = run("balance", here / "tight.toml", "--out", tmp_path / "out", code=1)
    assert "None of 4 candidates meets the limits" in said
    assert not (tmp_path / "out").exists()


def test_never_over_anything_else(run: Run, here: Path, released: Path) -> None:
    assert "exists already" in run("balance", here / "policy.toml", code=2)
    run("balance", here / "policy.toml", "--overwrite")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('["region", "trade"]', '["regio"]', "Did you mean 'region'"),
        ("p-percent:10%')", "p-procent:10%')", "Did you mean 'p_percent'"),
        ('use = "round"', 'use = "top_code", column = "turnover", at = 3', "top_code has no parameter 'base'"),
        ('value = "turnover"', 'vlaue = "turnover"', "vlaue: is not known here"),
    ],
)
def test_bad_policies(run: Run, here: Path, tmp_path: Path, old: str, new: str, said: str) -> None:
    (here / "bad.toml").write_text(POLICY.replace(old, new), encoding="utf-8")
    assert said in run("balance", here / "bad.toml", "--out", tmp_path / "out", code=2)


def test_the_public_folder_tells_nothing_of_the_search(released: Path) -> None:
    for file in (released / "public").glob("*.[hjc]*"):
        text = file.read_text(encoding="utf-8")
        text = text.partition("<style>")[0] + text.partition("</style>")[2] if "<style>" in text else text
        for word in ("round to", "dominance", "Dominance", "10%", "sensitive", "secondary", "limits", CANARY):
            assert word not in text, (file.name, word)


def test_the_map_in_a_browser(released: Path, opened_page: Any) -> None:
    """It is drawn, a point for each method with its number, axes in plain words; nothing complained of or asked for."""
    tab, heard = opened_page(released / "private" / "report.html", color_scheme="dark")
    tab.wait_for_selector("#map[data-drawn=yes]")
    words = tab.locator("#map").inner_text()
    assert tab.locator("#map .methods_marks path").count() == 4
    assert heard == []
    for text in ("Share of sensitive cells an attacker could bound too closely", "suppress", "round", "released",
                 "original", "limit"):  # fmt: skip
        assert text in words


# --- table --compare ----------------------------------------------------------------------------------------------


def beside(here: Path, *more: str | Path) -> list[str | Path]:
    given = ["--compare", "round:500", "--compare", "suppress(rule='dominance:1,60%')", "--compare", "cell-key"]
    table = ["table", here / "firms.csv", "--by", "region,trade", "--value", "turnover", "--rule", "p-percent:10%"]
    return [*table, *given, *more]


def test_compare_on_the_screen(run: Run, here: Path) -> None:
    text = flat(run(*beside(here)))
    words = ["Audit: passed", "Methods compared", "Exposed Suppressed Distance Totals kept",
             "suppress by p-percent:10%", "(released)", "round to 500", "suppress by dominance:1,60%",
             "original 100%", "Left out", "The rule needs a second look"]  # fmt: skip
    places = [text.index(word) for word in words]
    assert places == sorted(places)
    assert CANARY not in text


def test_compare_as_json_and_in_the_report(run: Run, here: Path, tmp_path: Path) -> None:
    told = json.loads(run(*beside(here, "--out", tmp_path / "out", "--json")))
    assert [row["method"] for row in told["compared"]] == [
        "suppress by p-percent:10%", "round to 500", "suppress by dominance:1,60%", "cell key",
    ]  # fmt: skip
    assert told["compared"][0]["scores"]["exposed(rule='p_percent')"] == 0
    page = (tmp_path / "out" / "private" / "report.html").read_text(encoding="utf-8")
    assert 'id="map-spec"' in page
    assert "2. round to 500" in page
    public = (tmp_path / "out" / "public" / "report.html").read_text(encoding="utf-8")
    assert "map-spec" not in public
    assert public.count("<script") == 1, "that of the table alone"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--round", "500", "--compare", "round:20"], "compared under one rule"),
        (["--rule", "p-percent:10%", "--compare", "rond:20"], "Did you mean 'round'"),
        (["--rule", "p-percent:10%", "--compare", "top-code:turnover,5"], "changes records"),
        (["--rule", "p-percent:10%", "--compare", "suppress"], "suppress needs rule"),
    ],
)
def test_bad_comparisons(run: Run, here: Path, given: list[str], said: str) -> None:
    assert said in run("table", here / "firms.csv", "--by", "region,trade", "--value", "turnover", *given, code=2)
