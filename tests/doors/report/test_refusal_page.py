"""`equipoise balance --report`: a page also when the policy refuses, never a release folder, never over a file."""

import json
import re
import stat
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import tomli_w

import equipoise as eq
from equipoise.doors.cli import main
from equipoise.doors.report import render_refused
from equipoise.releases.refusal import Refused

CANARY = "Canary-5518"
REASON = "The board asks for fewer than 1 in 5,000"
MASKS = [{"use": "top_code", "column": "age", "at": [60, 70, 80]}]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    eq.demo.survey().head(800).with_columns(note=pl.lit(CANARY)).write_csv("people.csv")
    return tmp_path


def write(uniques: str, **changes: Any) -> Path:
    plain: dict[str, Any] = {
        "title": "Survey <b>",
        "assume_unknown": ["person", "household", "weight", "housing_cost", "salary"],
        "data": {"path": "people.csv"},
        "roles": {
            "keys": ["sex", "age", "region"],
            "hierarchies": {"age": {"kind": "intervals", "widths": [5, 60]}},
        },
        "limits": {"uniques": {"limit": uniques, "reason": REASON}, "entropy": "> 7"},
        "candidates": [{"coarsenings": True}, {"masks": MASKS}],
    }
    path = Path("policy.toml")
    path.write_text(tomli_w.dumps(plain | changes), encoding="utf-8")
    return path


def refused(**options: Any) -> Refused:
    with pytest.raises(eq.RefusedError) as caught:
        eq.balance(write("< 0.01%"), **options)
    assert isinstance(caught.value.about, Refused)
    return caught.value.about


def test_a_refusal_is_a_page_and_no_folder(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path.name for path in here.iterdir()}
    assert main(["balance", str(write("< 0.01%")), "--report", "why/refused.html", "--json"]) == 1
    out, err = capsys.readouterr()
    assert "Everything that was tried stands in 'why/refused.html'." in err
    assert json.loads(out)["exit_code"] == 1
    assert {path.name for path in here.iterdir()} - before == {"policy.toml", "why"}
    page = (here / "why/refused.html").read_text(encoding="utf-8")
    assert stat.S_IMODE((here / "why/refused.html").stat().st_mode) == 0o600
    top = page[: page.index("<main>")]
    for words in (
        "REFUSED: nothing was released",
        "None of 6 candidates meets the limits.",
        REASON,
        "Survey &lt;b&gt;",
    ):
        assert words in top
    assert CANARY not in page
    assert "http://" not in page.split("<script")[0]


def test_each_limit_with_its_value_and_what_would_pass(here: Path) -> None:
    """The numbers on the page are those of the trials: the nearest, and the one each moved limit would let pass."""
    found = refused()
    page = render_refused(found)
    assert not (here / "policy-release").exists()
    for limit in found.policy.parsed:
        move = found.move(limit)
        assert move is not None
        moved = found.policy.limits | {limit.score: f"{move.to.sign} {move.to.bound}"}
        assert eq.Policy(moved).judge(move.trial)
        assert not found.policy.judge(move.trial)
        assert move.trial.words() in page
    assert found.near.words() in page
    assert {trial.words() for trial in found.trials} <= set(re.findall(r'<th scope="row">([^<]*)<', page))
    assert '"label": "nearest"' in page
    assert '"label": "released"' not in page


def test_more_than_one_limit_must_move(here: Path) -> None:
    path = write("< 0.01%", candidates=[{"masks": [{"use": "recode", "column": "age", "level": "5"}]}],
                 limits={"uniques": "< 0.01%", "entropy": "> 9.5"})  # fmt: skip
    with pytest.raises(eq.RefusedError) as caught:
        eq.balance(path)
    page = render_refused(caught.value.about)
    assert "more than one would have to be moved" in page
    assert "The candidate breaks the limits." in page


def test_a_fresh_draw_that_is_refused(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was tried is inside, the draw to be released is not: the page is about that draw."""
    from equipoise.policies.policy import refused as outside
    from equipoise.releases import balance as flow

    def broken(*args: Any, **given: Any) -> Any:
        trial = given["trials"][0]
        raise outside(trial, eq.Policy({"uniques": "< 0"}).judge(trial))

    monkeypatch.setattr(flow, "release", broken)
    with pytest.raises(eq.RefusedError, match="Nothing was released: uniques is") as caught:
        eq.balance(write("< 90%"), report="page.html")
    assert caught.value.about.fresh
    page = Path("page.html").read_text(encoding="utf-8")
    assert "the draw that was refused" in page
    assert '"label": "refused"' in page


def test_a_release_has_the_same_page_there_too(here: Path) -> None:
    made = eq.balance(write("< 90%"), report="page.html")
    assert Path("page.html").read_text(encoding="utf-8") == made.report.read_text(encoding="utf-8")


def test_never_over_a_file_and_never_in_the_folder(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("page.html").write_text("mine", encoding="utf-8")
    path = str(write("< 0.01%"))
    assert main(["balance", path, "--report", "page.html"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert Path("page.html").read_text(encoding="utf-8") == "mine"
    assert main(["balance", path, "--report", "policy-release/page.html"]) == 2
    assert "would stand in the release folder" in capsys.readouterr().err
    assert main(["balance", path, "--report", "page.html", "--overwrite"]) == 1
    assert "REFUSED" in Path("page.html").read_text(encoding="utf-8")
    assert not Path("policy-release").exists()


def test_a_table_that_is_refused(here: Path) -> None:
    """The page of a table: its scores in plain words, every method by its number, the nearest in a ring."""
    limits = {"exposed(rule='min-count:3')": "<= 0", "distance": {"limit": "< 0.001%", "reason": REASON}}
    masks = [{"masks": [{"use": "round", "base": [2, 5]}]}]
    path = write("", roles={}, table={"by": ["region", "race"]}, candidates=masks, limits=limits)
    with pytest.raises(eq.RefusedError, match="None of 2 candidates") as caught:
        eq.balance(path, report="page.html")
    page = Path("page.html").read_text(encoding="utf-8")
    for words in (
        "REFUSED: nothing was released",
        REASON,
        "Share of the value that was moved or suppressed",
        "round to 5",
    ):
        assert words in page
    assert caught.value.about.table
    assert '"label": "nearest"' in page
    assert not Path("policy-release").exists()
