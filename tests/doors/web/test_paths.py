"""Every path that reaches the workbench passes one gate: nothing outside the working folder is read or written."""

import gzip
import importlib
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.doors.web.conftest import Workbench

from equipoise.doors.web import server
from equipoise.doors.web.path_names import path_names
from equipoise.doors.web.workspace import Workspace

DATA = '[data]\npath = "people.csv"\n[roles]\nkeys = ["sex", "region"]\n'
LIMITS = '[limits]\nuniques = "< 0.5"\n'
REFUSED = "outside the working folder"
OUTSIDE = (
    "../secret.csv", "ABSOLUTE/secret.csv", "link.csv", "folder/secret.csv", "~/secret.csv", "sub/../../secret.csv",
    "file://ABSOLUTE/secret.csv", "l*.csv", "su?/../../secret.csv", "../my secret, (1=2)/secret.csv",
    ".equipoise/x.csv", "parts",
)  # fmt: skip
"""Ways out of the working folder: each leads to a file that exists."""


@pytest.fixture
def rooms(tmp_path: Path, near: Workbench, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    """A workbench on a folder with good data, and beside it files and links that must not be followed."""
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    (outside / "my secret, (1=2)").mkdir(parents=True)
    work = outside / "work"
    for folder in (work, work / "sub", work / "parts", work / "deep" / "er"):
        folder.mkdir(exist_ok=True, parents=True)
    people = pl.DataFrame({"sex": ["a", "b"] * 30, "region": ["n", "s", "w"] * 20, "pay": list(range(60))})
    people.write_csv(work / "people.csv")
    for place in (outside, outside / "my secret, (1=2)"):
        people.write_csv(place / "secret.csv")
    (outside / "secret.toml").write_text(LIMITS, encoding="utf-8")
    people.write_parquet(outside / "secret.parquet")
    (work / "parts" / "a.parquet").symlink_to(outside / "secret.parquet")
    (work / "link.csv").symlink_to(outside / "secret.csv")
    (work / "folder").symlink_to(outside)
    monkeypatch.setenv("HOME", str(outside))
    monkeypatch.chdir(work)
    near.office.workspace = Workspace.at(work)
    near.office.runs._workspace = near.office.workspace
    people.write_csv(work / ".equipoise" / "x.csv")
    return near


def at(rooms: Workbench, name: str) -> str:
    return name.replace("ABSOLUTE", str(rooms.folder.parent))


def opens(rooms: Workbench, text: str, name: str = "p.toml") -> Any:
    (rooms.folder / name).write_text(text, encoding="utf-8")
    return rooms.post("/open/file", {"name": name})


def refused(rooms: Workbench, answer: Any) -> None:
    assert answer.status_code == 422, answer.text
    assert REFUSED in answer.text
    assert str(rooms.folder.parent) not in answer.text


def test_paths_inside_are_taken(rooms: Workbench) -> None:
    (rooms.folder / "house.toml").write_text(LIMITS, encoding="utf-8")
    text = f'extends = "house.toml"\nregister = "register.json"\ntitle = "Pay / year, and/or ..."\n{DATA}'
    more = '[limits]\n"journalist(population=\'people.csv\')" = "< 1"\n'
    assert opens(rooms, text + more).status_code == 200


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize(
    "text",
    [
        DATA.replace("people.csv", "PATH"),
        DATA + "[roles.hierarchies.region]\nkind = \"csv\"\npath = 'PATH'\n",
        DATA + "[roles.hierarchies.region]\nkind = \"hrc\"\npath = 'PATH'\n",
        f"register = 'PATH'\n{DATA}",
        f"seed_file = 'PATH'\n{DATA}",
        DATA.replace("[roles]", "metadata = 'PATH'\n[roles]"),
        f"{DATA}[output]\nsign = 'PATH'\n",
        f"{DATA}[search]\njournal = 'PATH'\n",
        DATA + "[limits]\n\"journalist(population='PATH')\" = \"< 1\"\n",
        DATA + "[limits]\n\"marketer(population='PATH')\" = \"< 1\"\n",
        DATA + "[limits]\n\"membership(holdout='PATH')\" = \"< 1\"\n",
        DATA + "[[candidates]]\nmasks = [{use = \"local_suppression\", rule = \"k-map(population='PATH')\"}]\n",
        DATA + "[[candidates]]\nmasks = [{use = \"suppress\", rule = \"min-count:3\", like = 'PATH'}]\n",
        DATA + "[[candidates]]\nmasks = [{use = \"cell-key\", ptable = 'PATH'}]\n",
        DATA + "[[candidates]]\nmasks = [{use = \"cell-key\", ptables = ['ill=PATH']}]\n",
        f"{DATA}[table]\nby = [\"sex\"]\napriori = 'PATH'\n",
    ],
)  # fmt: skip
def test_no_path_of_a_policy_leads_outside(rooms: Workbench, text: str, name: str) -> None:
    refused(rooms, opens(rooms, text.replace("PATH", at(rooms, name)).replace('\\"', '"')))


@pytest.mark.parametrize("text", [r"'\x2e\x2e/secret.csv'", "'../sec' 'ret.csv'", r"'\u002e./secret.csv'"])
def test_spelling_hides_no_path(rooms: Workbench, text: str) -> None:
    key = json.dumps(f"journalist(population={text})")
    refused(rooms, opens(rooms, f'{DATA}[limits]\n{key} = "< 1"\n'))


@pytest.mark.parametrize("name", ["../secret.toml", "ABSOLUTE/secret.toml", "folder/secret.toml", "deep/a.toml"])
def test_no_policy_outside_is_extended(rooms: Workbench, name: str) -> None:
    (rooms.folder / "deep" / "a.toml").write_text('extends = "../b.toml"\n' + LIMITS, encoding="utf-8")
    (rooms.folder / "b.toml").write_text('extends = "../secret.toml"\n', encoding="utf-8")
    refused(rooms, opens(rooms, f'extends = "{at(rooms, name)}"\n{DATA}'))


def test_what_is_extended_is_looked_at_where_it_is_read(rooms: Workbench) -> None:
    """Paths of a policy deep inside stay inside there, and lead outside from the policy that extends it."""
    (rooms.folder / "deep" / "er" / "a.toml").write_text('register = "../../r.json"\n', encoding="utf-8")
    refused(rooms, opens(rooms, f'extends = "deep/er/a.toml"\n{DATA}{LIMITS}'))
    (rooms.folder / "deep" / "er" / "q.toml").write_text('extends = "../../secret.toml"\n', encoding="utf-8")
    (rooms.folder / "secret.toml").write_text(LIMITS, encoding="utf-8")
    (rooms.folder / "sub" / "q.toml").symlink_to(rooms.folder / "deep" / "er" / "q.toml")
    refused(rooms, opens(rooms, f'extends = "sub/q.toml"\n{DATA}'))


@pytest.mark.parametrize(
    "line", ["register = 'PATH'", "search.journal = 'PATH'", "output.folder = 'PATH'", "seed_file = 'PATH'"]
)
@pytest.mark.parametrize("name", ["../new.json", "ABSOLUTE/new.json", "folder/new.json"])
def test_nothing_new_is_made_outside(rooms: Workbench, line: str, name: str) -> None:
    refused(rooms, opens(rooms, f"{line.replace('PATH', at(rooms, name))}\n{DATA}{LIMITS}"))


@pytest.mark.parametrize("name", OUTSIDE)
def test_no_form_leads_outside(rooms: Workbench, name: str) -> None:
    assert rooms.post("/open/file", {"name": "people.csv"}).status_code == 200
    for column in ("sex", "region"):
        assert rooms.post("/open/role", {"column": column, "role": "key"}).status_code == 200
    place = at(rooms, name)
    refused(rooms, rooms.post("/tables/columns", {"by": ["sex", "region"], "level": ["", ""], "apriori": place}))
    refused(rooms, rooms.post("/tables/method/set", {"field": "like", "value": place}))
    form = {"use": "journalist", "names": ["population"], "values": [place], "bound": "0.1"}
    refused(rooms, rooms.post("/balance/limit", form))


def test_preset_is_no_way_out(rooms: Workbench) -> None:
    assert rooms.post("/open/file", {"name": "people.csv"}).status_code == 200
    (rooms.folder / "b.toml").write_text('extends = "../secret.toml"\n', encoding="utf-8")
    for name in ("b.toml", "../secret.toml"):
        assert rooms.post("/balance/preset", {"name": name}).status_code == 422
        assert "extends" not in rooms.policy


def test_methods_read_relative_to_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Started elsewhere, a name such as secret.csv is that of the working folder, not of where it was started."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path)
    seen: list[str] = []
    monkeypatch.setattr(server._Announced, "run", lambda *_: seen.append(str(Path.cwd())))
    server.serve(Path("work"), show=lambda _: None)
    assert seen == [str(tmp_path / "work")]


@pytest.mark.parametrize("text", ["Pay / year", "(net) / (gross)", "n/a", "and/or ...", "a: b, c = d"])
def test_prose_is_no_path(tmp_path: Path, text: str) -> None:
    Workspace.at(tmp_path).refuse_outside({"title": text, text: ["x"]})
    assert text in set(path_names(text)) or " / " in text


def bomb(ending: str) -> bytes:
    """Twenty megabytes of one letter, small when packed."""
    content, packed = b"a,b\n" + b"x" * 20_000_000, io.BytesIO()
    if ending == "csv.gz":
        return gzip.compress(content)
    if ending == "rds":
        return gzip.compress(b"X\n" + content)
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/sharedStrings.xml" if ending == "xlsx" else "a.csv", content)
    return packed.getvalue()


@pytest.mark.parametrize("ending", ["csv.gz", "csv.zip", "xlsx", "rds"])
def test_what_unfolds_beyond_the_memory_is_refused_while_it_unfolds(
    near: Workbench, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setattr("equipoise.files.memory.available", lambda: 5_000_000)
    if ending == "rds":
        monkeypatch.setattr("equipoise.files.rdata.PIECE_BYTES", 1 << 20)
    unfolded: list[int] = []
    for place in ("compressed", "excel", "rdata"):
        told = vars(importlib.import_module(f"equipoise.files.{place}"))["refuse_beyond"]
        monkeypatch.setattr(
            f"equipoise.files.{place}.refuse_beyond",
            lambda path, values, *more, told=told, **named: (
                unfolded.append(values),
                told(path, values, *more, **named),
            ),
        )
    answer = near.post("/open/upload", files={"file": (f"bomb.{ending}", bomb(ending))})
    assert answer.status_code == 422
    assert "of memory and 5.0 MB are free" in answer.text
    assert max(unfolded) <= 20_000_004
    assert str(near.folder) not in answer.text
    assert not list((near.folder / "uploads").iterdir())


def test_no_message_holds_a_full_path(tmp_path: Path, workbench_at: Callable[[Path], Workbench]) -> None:
    """Folders with an apostrophe are quoted otherwise."""
    folder = tmp_path / "o'brien's"
    (folder / "sub").mkdir(parents=True)
    bench = workbench_at(folder)
    (folder / "sub" / "bad.parquet").write_bytes(b"PAR1 nothing")
    (folder / "sub" / "bad.toml").write_text("= 1", encoding="utf-8")
    (folder / "sub" / "lost.toml").write_text(DATA + '[roles.hierarchies.sex]\nkind = "csv"\npath = "no.csv"\n')
    pl.DataFrame({"sex": ["a", "b"], "region": ["n", "s"]}).write_csv(folder / "sub" / "people.csv")
    for name in ("sub/bad.parquet", "sub/bad.toml", "sub/lost.toml", "sub", "sub/no.csv"):
        answer = bench.post("/open/file", {"name": name})
        assert answer.status_code == 422, name
        assert "brien" not in answer.text, name
