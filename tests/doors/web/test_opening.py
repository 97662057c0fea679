"""Opening: by name, by upload, the demo; roles are changed by one click, and undone."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from equipoise.doors.web.session import Session
from equipoise.doors.web.worker import without_folders
from equipoise.doors.web.workspace import Workspace
from equipoise.ground.errors import DataError

PEOPLE = pl.DataFrame({"name": [f"Person {i} Example" for i in range(60)], "sex": ["f", "m"] * 30, "age": [*range(60)]})


def put(folder: Path, name: str = "people.csv") -> Path:
    PEOPLE.write_csv(folder / name)
    return folder / name


def test_a_file_is_opened_by_its_name(workbench: Any) -> None:
    put(workbench.folder)
    assert "people.csv" in workbench.get("/").text
    answer = workbench.post("/open/file", {"name": "people.csv"})
    assert answer.headers["HX-Redirect"] == "/"
    shown = workbench.get("/").text
    assert "60 records, 3 columns" in shown
    assert "direct identifier" in shown
    assert workbench.policy["roles"]["direct"] == ["name"]
    assert workbench.policy["roles"]["keys"] == ["sex", "age"]
    assert "Person 1 Example" not in shown
    assert "Person 1 Example" in workbench.get("/open/preview").text


def test_a_role_is_changed_and_undone(workbench: Any) -> None:
    put(workbench.folder)
    workbench.post("/open/file", {"name": "people.csv"})
    assert "suggested: key" in workbench.post("/open/role", {"column": "age", "role": "none"}).text
    assert workbench.policy["roles"]["keys"] == ["sex"]
    workbench.post("/undo")
    assert workbench.policy["roles"]["keys"] == ["sex", "age"]
    workbench.post("/redo")
    assert workbench.policy["roles"]["keys"] == ["sex"]
    assert "age: no role" in workbench.get("/steps").text


def test_what_was_done_is_there_after_a_restart(tmp_path: Path, workbench_at: Any) -> None:
    put(tmp_path)
    workbench_at(tmp_path).post("/open/file", {"name": "people.csv"})
    again = workbench_at(tmp_path)
    assert again.policy["data"] == {"path": "people.csv"}
    assert "60 records" in again.get("/").text


def test_an_upload_is_kept_privately(workbench: Any) -> None:
    content = PEOPLE.write_csv().encode()
    answer = workbench.post("/open/upload", files={"file": ("../../up.csv", content)})
    assert answer.status_code == 200
    place = workbench.folder / "uploads" / "up.csv"
    assert place.read_bytes() == content
    assert place.stat().st_mode & 0o077 == 0
    assert workbench.policy["data"]["path"] == "uploads/up.csv"


@pytest.mark.parametrize(
    ("name", "content"),
    [("bad.parquet", b"nothing of the kind"), ("bad.xlsx", b"PK\x03\x04"), ("odd.exe", b"MZ"), ("empty.csv", b"")],
)
def test_a_bad_upload_is_one_sentence_and_leaves_nothing(workbench: Any, name: str, content: bytes) -> None:
    answer = workbench.post("/open/upload", files={"file": (name, content)})
    assert answer.status_code == 422
    assert answer.headers["HX-Retarget"] == "#notice"
    assert "Traceback" not in answer.text
    uploads = workbench.folder / "uploads"
    assert not uploads.exists() or not list(uploads.iterdir())
    assert not workbench.office.opened


def test_the_demo_is_one_click(surveyed: Any) -> None:
    assert "81,567 records, 13 columns" in surveyed.get("/").text
    assert surveyed.policy["roles"]["keys"] == ["sex", "race", "age", "salary"]


def test_a_page_that_is_out_of_date_changes_nothing(surveyed: Any) -> None:
    stale = surveyed.headers()
    surveyed.post("/open/role", {"column": "tenure", "role": "key"})
    keys = surveyed.policy["roles"]["keys"]
    answer = surveyed.client.post("/open/role", data={"column": "age", "role": "none"}, headers=stale)
    assert answer.status_code == 409
    assert "another window" in answer.text
    assert surveyed.policy["roles"]["keys"] == keys


def test_a_policy_of_another_folder_finds_its_files(workbench: Any) -> None:
    place = workbench.folder / "in"
    place.mkdir()
    put(place)
    text = """[data]\npath = "people.csv"\n[roles]\nkeys = ["sex", "age"]\n[limits]\nuniques = "< 0.5"
[output]\nfolder = "out"\n[search]\nsearch = "adaptive"\n"""
    (place / "p.toml").write_text(text, encoding="utf-8")
    assert workbench.post("/open/file", {"name": "in/p.toml"}).status_code == 200
    assert workbench.policy["data"]["path"] == "in/people.csv"
    assert workbench.policy["output"]["folder"] == "in/out"
    assert workbench.policy["search"] == {"search": "adaptive"}
    assert "seed_file" not in workbench.policy


@pytest.mark.parametrize("name", ["../x.csv", "/etc/passwd", ".equipoise/session.json", "a\0b", "no.csv", "x" * 5000])
def test_nothing_outside_the_folder_is_opened(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError):
        Workspace.at(tmp_path).inside(name)


def test_a_link_leads_nowhere_else(tmp_path: Path) -> None:
    outside = tmp_path / "outside.csv"
    outside.write_text("a\n1\n")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "link.csv").symlink_to(outside)
    with pytest.raises(DataError):
        Workspace.at(tmp_path / "work").inside("link.csv")


@pytest.mark.parametrize(
    "plain",
    [
        {"extends": "../secret.toml"},
        {"roles": {"hierarchies": {"region": {"kind": "csv", "path": "../secret.csv"}}}},
        {"roles": {"hierarchies": {"region": [{"kind": "hrc", "path": "link.csv"}]}}},
        {"register": "sub/../../secret.csv"},
        {"data": {"path": "../secr*.csv"}},
        {"limits": {"journalist(population='../secret.csv')": "< 1"}},
        {"candidates": [{"masks": [{"use": "suppress", "rule": "k-map:3,population=../secret.csv"}]}]},
    ],
)
def test_no_path_of_a_policy_leads_outside(plain: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    for name in ("secret.csv", "secret.toml"):
        (tmp_path / name).write_text("a\n1\n")
    (tmp_path / "work" / "link.csv").symlink_to(tmp_path / "secret.csv")
    workspace = Workspace.at(tmp_path / "work")
    workspace.refuse_outside({"data": {"path": "people.csv"}, "title": "a/b and ..."})
    if "*" in str(plain):
        plain = {"data": {"path": "../*.csv"}}
    with pytest.raises(DataError, match="outside the working folder"):
        workspace.refuse_outside(plain)


def test_messages_of_the_page_have_no_folders() -> None:
    assert without_folders("No file at '/home/me/a.csv'.") == "No file at 'a.csv'."
    assert without_folders("'...e/me/a.csv' is empty, 'a/b' not.") == "'a.csv' is empty, 'a/b' not."
    assert without_folders("""No file at "/home/o'brien/a.csv".""") == 'No file at "a.csv".'
    assert without_folders("See /home/me/a.journal, and/or 5 / 3.") == "See a.journal, and/or 5 / 3."
    assert without_folders("'C:\\\\Users\\\\me\\\\a.csv' is empty.") == "'a.csv' is empty."


@pytest.mark.parametrize(
    "plain", [None, [], {}, {"format": 9}, {"format": 1, "steps": [1]}, {"format": 1, "steps": []}]
)
def test_a_session_that_cannot_be_read_is_begun_anew(plain: Any) -> None:
    assert Session.from_plain(plain) == Session()


def test_many_roles_are_set_at_once_and_undone(workbench: Any) -> None:
    wide = pl.DataFrame({f"v{i}": [(place * (i + 3)) % 11 for place in range(80)] for i in range(300)})
    wide.write_csv(workbench.folder / "wide.csv")
    workbench.post("/open/file", {"name": "wide.csv"})
    before = workbench.policy["roles"]
    names = [f"v{i}" for i in range(5, 300)]
    assert "200" not in before.get("sensitive", [])
    assert workbench.post("/open/role", {"column": names, "role": "none"}).status_code == 200
    assert set(workbench.policy["roles"].get("keys", [])) <= {f"v{i}" for i in range(5)}
    assert "295 columns: no role" in workbench.get("/steps").text
    workbench.post("/undo")
    assert workbench.policy["roles"] == before
    workbench.post("/open/role", {"column": names, "role": "sensitive"})
    workbench.post("/open/role", {"column": names, "role": "suggested"})
    assert workbench.policy["roles"] == before


def test_one_role_is_for_one_column(workbench: Any) -> None:
    put(workbench.folder)
    workbench.post("/open/file", {"name": "people.csv"})
    answer = workbench.post("/open/role", {"column": ["age", "sex"], "role": "household"})
    assert answer.status_code == 422
    assert "Only one column can be the household" in answer.text


def test_a_wide_file_lists_no_column_twice(near: Any) -> None:
    """Of many direct identifiers the first are named; the others stand in the list of columns alone."""
    many = {f"name_{i}": [f"Person {i} {row} Example" for row in range(60)] for i in range(30)}
    pl.DataFrame({"sex": ["f", "m"] * 30, **many}).write_csv(near.folder / "wide.csv")
    near.post("/open/file", {"name": "wide.csv"})
    note = near.get("/").text.partition('<p class="note">')[2].partition("</p>")[0]
    assert "name_7" in note
    assert "name_8" not in note
    assert "and 22 more" in note
    assert "and 22 more" in near.get("/understand/columns").text or "and 22 more" in near.get("/understand").text
