"""Files and settings that nobody expects: every page answers in words."""

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.doors.web.conftest import Workbench

from equipoise.doors.web.background_runs import Runs
from equipoise.policies.presets import presets


def opened(near: Workbench, **columns: Any) -> Any:
    pl.DataFrame(columns).write_parquet(near.folder / "odd.parquet")
    return near.post("/open/file", {"name": "odd.parquet"})


@pytest.mark.parametrize("name", ["^.*$", "*"])
def test_name_that_is_a_pattern_is_refused(near: Workbench, name: str) -> None:
    told = opened(near, **{name: [1, 2] * 50, "sex": ["a", "b"] * 50})
    assert told.status_code == 422
    assert "rename the column" in told.text


def test_numbers_that_are_none_can_be_opened(near: Workbench) -> None:
    values = [float("nan"), float("inf"), float("-inf"), *[x / 2 for x in range(97)]]
    assert opened(near, score=values, empty=[float("nan")] * 100, age=list(range(100))).status_code == 200
    assert near.get("/understand/columns").status_code == 200


def test_cell_keys_of_columns_that_are_no_texts(near: Workbench) -> None:
    lists = {"time": [timedelta(minutes=x) for x in range(60)], "list": [[1, 2]] * 60, "bytes": [b"\xff"] * 60}
    assert (
        opened(near, sex=["a", "b"] * 30, region=["n", "s", "w"] * 20, **lists, parts=[{"a": 1}] * 60).status_code
        == 200
    )
    for column in ("sex", "region"):
        assert near.post("/open/role", {"column": column, "role": "key"}).status_code == 200
    told = near.post("/tables/compare", {"rules": ["min-count:3"], "methods": ["cell_key"], "bases": "3"})
    assert told.status_code == 200
    assert "Internal error" not in told.text
    run = near.office.runs.latest("table-compare")
    assert run is not None
    assert run.state == "done", run.error


def test_scenario_without_a_reason(near: Workbench) -> None:
    assert opened(near, sex=["a", "b"] * 50, region=["n", "s"] * 50).status_code == 200
    told = near.post("/balance/scenario", {"name": "neighbour", "picked": ['["known", "sex"]']})
    assert told.status_code == 200
    assert "neighbour" in near.get("/balance").text


@pytest.mark.parametrize("path", ["/balance", "/release", "/understand", "/shape", "/tables", "/publish"])
def test_every_page_without_a_file_says_what_to_do(near: Workbench, path: str) -> None:
    told = near.get(path)
    assert told.status_code == 200
    assert "Open a file" in told.text


def test_what_is_no_number_is_told_in_plain_words(near: Workbench) -> None:
    assert opened(near, sex=["a", "b"] * 50, region=["n", "s"] * 50).status_code == 200
    told = near.post("/tables/rule/set", {"place": 0, "field": "n", "value": "many"})
    assert told.status_code == 422
    assert "must be a whole number" in told.text
    assert "parse" not in told.text


def test_every_preset_can_be_chosen(near: Workbench) -> None:
    assert opened(near, sex=["a", "b"] * 50, age=list(range(100))).status_code == 200
    for name in (preset.name for preset in presets().values() if preset.about == "records"):
        assert near.post("/balance/preset", {"name": name}).status_code == 200, name
        assert near.get("/balance").status_code == 200, name


def test_policy_without_a_title(near: Workbench) -> None:
    pl.DataFrame({"sex": ["a", "b"] * 50}).write_csv(near.folder / "a.csv")
    text = 'format = 1\n[data]\npath = "a.csv"\n[roles]\nkeys = ["sex"]\n[limits]\nuniques = "< 0.1"\n'
    (near.folder / "a.toml").write_text(text, encoding="utf-8")
    assert near.post("/open/file", {"name": "a.toml"}).status_code == 200
    assert "a.csv" in near.get("/").text


def test_another_file_can_be_opened_when_the_file_is_gone(near: Workbench) -> None:
    assert opened(near, sex=["a", "b"] * 50, region=["n", "s"] * 50).status_code == 200
    (near.folder / "odd.parquet").unlink()
    told = near.get("/")
    assert told.status_code == 200
    assert "cannot be read any more" in told.text
    assert "/open/file" in told.text


def test_the_only_problem_of_a_policy_is_told(near: Workbench) -> None:
    assert opened(near, sex=["a", "b"] * 50, region=["n", "s"] * 50).status_code == 200
    told = near.post("/balance/try")
    assert told.status_code == 422
    assert "limits" in told.text


def wait(progress: Any) -> None:
    import time

    while progress(0, 1, "waiting"):
        time.sleep(0.05)


def test_run_under_way_when_the_server_ends_is_stopped_not_failed(
    tmp_path: Path, workbench_at: Callable[[Path], Workbench]
) -> None:
    before = workbench_at(tmp_path).office
    before.runs.start("test", wait)
    before.runs.close()
    for thread in threading.enumerate():
        if thread.daemon and thread.name.endswith("(_follow)"):
            thread.join(5)
    run = Runs(before.workspace).latest("test")
    assert run is not None
    assert (run.state, run.error) == ("stopped", "")
