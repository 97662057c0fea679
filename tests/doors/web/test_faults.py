"""Files and settings that nobody expects: every page answers in words."""

import errno
import os
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.doors.web.conftest import Workbench

from equipoise.doors.cli import main
from equipoise.doors.web.background_runs import Runs
from equipoise.doors.web.server import serve
from equipoise.doors.web.workspace import Workspace
from equipoise.ground.errors import DataError
from equipoise.ground.whole_files import held
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


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
def test_a_disk_that_cannot_be_written_is_told_in_a_sentence(
    near: Workbench, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(workspace: Workspace, name: str, plain: Any) -> None:
        raise OSError(number, os.strerror(number), str(workspace.private / name))

    monkeypatch.setattr(Workspace, "keep", refuse)
    answer = opened(near, sex=["a", "b"] * 50)
    assert answer.status_code == 422
    assert f"{os.strerror(number)}. Nothing was changed." in answer.text
    assert str(near.folder) not in answer.text


def test_a_second_server_on_a_folder_is_refused(tmp_path: Path) -> None:
    place, free = Workspace.at(tmp_path).private / "workbench", threading.Event()
    ready = threading.Event()

    def first() -> None:
        with held(place):
            ready.set()
            free.wait(60)

    thread = threading.Thread(target=first)
    thread.start()
    ready.wait(60)
    with pytest.raises(DataError, match="Another run"):
        serve(tmp_path)
    free.set()
    thread.join()


@pytest.mark.parametrize("next_run", [Workspace.at, lambda folder: main(["roles", str(folder)])])
@pytest.mark.parametrize("place", [".equipoise", ".equipoise/runs", "uploads"])
def test_what_a_dead_server_left_is_cleared_by_the_next_run(
    tmp_path: Path, place: str, next_run: Callable[[Path], Any]
) -> None:
    folder = tmp_path / place
    folder.mkdir(parents=True)
    for name in (".one.json.equipoise-lock", ".one.json.0123abcd.partial"):
        (folder / name).write_text("", encoding="utf-8")
    next_run(tmp_path)
    assert [path.name for path in folder.iterdir() if path.name.startswith(".one")] == []


ODD_ENTRIES = ("", "../../etc/passwd", "a\x00b", "1e999", "9" * 400, '{"a": [[]]}', "x" * 5000)
DEMOS = ("/open/demo", "/tables/demo", "/publish/demo")
"""They make a large file each, and take no field."""


def fields_of(near: Workbench) -> list[tuple[str, str, list[str]]]:
    """Method, path and form fields of every operation, as the app describes them."""
    described = near.get("/openapi.json").json()
    operations = []
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            names = [one["name"] for one in operation.get("parameters", ())]
            for content in operation.get("requestBody", {}).get("content", {}).values():
                schema = described["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
                names += list(schema["properties"])
            operations += [(method, path, names)] if path not in DEMOS else []
    return operations


def answered(near: Workbench, answer: Any) -> None:
    """In words, without a data value or a folder of this machine."""
    assert answer.status_code < 500, answer.text[-300:]
    assert "CANARY" not in answer.text
    assert str(near.folder) not in answer.text
    assert "Traceback" not in answer.text


def test_odd_entries_in_every_field_are_answered_in_words(near: Workbench) -> None:
    notes = [*[f"note {i}" for i in range(50)], *["CANARY"] * 10]  # the preview shows the first records, as it says
    pay = [1000.5 + i for i in range(60)]
    assert opened(near, sex=["a", "b"] * 30, region=["n", "s", "w"] * 20, pay=pay, note=notes).status_code == 200
    for column in ("sex", "region"):
        assert near.post("/open/role", {"column": column, "role": "key"}).status_code == 200
    operations = fields_of(near)
    assert sum(len(names) for *_, names in operations) > 100
    for number, (method, path, names) in enumerate(operations):
        for shift in range(2):
            entries = {name: ODD_ENTRIES[(number + place + shift) % 7] for place, name in enumerate(names)}
            for name in names:
                path = path.replace(f"{{{name}}}", "..%2F..%2Fetc%2Fpasswd")
            more = {"params": entries} if method == "get" else {"data": entries}
            answered(near, near.client.request(method, path, headers=near.headers(), **more))


@pytest.mark.parametrize("body", [b"\xff\xfe", b"{", b"a=%zz&b", b"--x\r\n", b"x" * 3_000_000])
@pytest.mark.parametrize(
    "kind", ["application/json", "multipart/form-data; boundary=x", "text/plain; charset=none", ""]
)
def test_bodies_that_are_no_form_are_answered_in_words(near: Workbench, body: bytes, kind: str) -> None:
    headers = near.headers(**{"Content-Type": kind})
    for path in ("/open/file", "/open/upload", "/balance/limit", "/release/run"):
        answer = near.client.post(path, content=body, headers=headers)
        answered(near, answer)
        assert answer.status_code >= 400


@pytest.mark.parametrize("wrong", [{"X-CSRF": "no"}, {"X-CSRF": ""}, {"Origin": "http://elsewhere"}])
def test_requests_of_others_change_nothing(near: Workbench, wrong: dict[str, str]) -> None:
    assert opened(near, sex=["a", "b"] * 50).status_code == 200
    before = near.office.session.version
    for _, path, names in [one for one in fields_of(near) if one[0] == "post"]:
        answer = near.client.post(path, data=dict.fromkeys(names, "sex"), headers={**near.headers(), **wrong})
        answered(near, answer)
        assert answer.status_code >= 400, path
    assert near.office.session.version == before


def test_requests_at_once_are_all_answered(near: Workbench) -> None:
    assert opened(near, sex=["a", "b"] * 50, region=["n", "s"] * 50).status_code == 200
    answers: list[Any] = []
    send = lambda column: answers.append(near.post("/open/role", {"column": column, "role": "key"}))
    threads = [threading.Thread(target=send, args=(column,)) for column in ("sex", "region", "none") * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == len(threads)
    for answer in answers:
        answered(near, answer)
