"""Shaping: previews say what the measures say of the recoded file; what is kept is a level of the policy."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from equipoise import masks, risk, utility
from equipoise.data.hierarchy import Hierarchy
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.doors.web.memory import Memory
from equipoise.doors.web.work import shape as work
from equipoise.ground.errors import ParameterError
from equipoise.ground.randomness import Draws
from equipoise.policies.policy_file import Job

HOSTILE = "<script>alert('x')</script>\"'&😀"


def people(records: int = 2000) -> pl.DataFrame:
    draw = np.random.default_rng(4)
    region = draw.choice(
        ["North", "South", "East", "West", HOSTILE, "Nowhere"], records, p=[0.4, 0.3, 0.15, 0.1, 0.048, 0.002]
    )
    day = pl.date_range(pl.date(1990, 1, 1), pl.date(1999, 12, 31), "1d", eager=True)
    return pl.DataFrame(
        {
            "age": draw.integers(0, 95, records),
            "region": region,
            "job": [f"{code:04d}" for code in draw.integers(0, 300, records) * 7],
            "born": day.sample(records, with_replacement=True, seed=1),
            "income": np.round(draw.lognormal(8, 1, records), 1),
            "nothing": pl.Series([None] * records, dtype=pl.String),
        }
    ).with_columns(age=pl.when(pl.int_range(records) % 50 == 0).then(None).otherwise("age"))


TREES = {
    "age": Hierarchy.intervals([5, 10], top=80) | Hierarchy.intervals(3),
    "job": Hierarchy.prefix(2, 1),
}


def policy_of(keys: list[str], **more: Any) -> dict[str, Any]:
    trees = {column: tree.to_plain() for column, tree in TREES.items() if column in keys}
    return {"data": {"path": "people.parquet"}, "roles": {"keys": keys, "hierarchies": trees, **more}}


@pytest.fixture
def held(tmp_path: Path) -> tuple[Memory, Path]:
    people().write_parquet(tmp_path / "people.parquet")
    return Memory(), tmp_path


def groups(codes: list[list[int]], of: int, **more: Any) -> dict[str, Any]:
    named = [{"name": f"group {at}", "codes": each} for at, each in enumerate(codes)]
    return {"kind": "mapping", "groups": named, "kept": [], "other": None, "of": of, **more}


CHANGES = [
    ("age", {"kind": "breaks", "breaks": [[18, 30, 65]], "closed": "left", "alone": []}),
    ("age", {"kind": "breaks", "breaks": [[30.0, 65.0]], "closed": "right", "alone": [0]}),
    ("age", {"kind": "intervals", "widths": [7], "start": 2, "top": 70, "bottom": 10, "closed": "left", "alone": []}),
    ("region", groups([[1, 3], [0, 5]], 6)),
    ("region", groups([[1, 3]], 6, kept=[2], other="Other")),
    ("job", {"kind": "prefix", "lengths": [3]}),
    ("born", {"kind": "dates", "parts": ["quarter"]}),
    ("income", {"kind": "breaks", "breaks": [[1000, 2500.5, 9000]], "closed": "left", "alone": []}),
]


def measured(records: Records) -> dict[str, float]:
    """What the measures say of records against themselves."""
    unique = risk.Uniques().measure(records, records)
    return {
        "unique": unique.number or 0.0,
        "small": risk.KAnonymity(3).measure(records, records).number or 0.0,
        "matches": risk.Marketer().measure(records, records).number or 0.0,
        "bits": utility.Entropy().measure(records, records).value,
    }


@pytest.mark.parametrize("missing", ["category", "any"])
@pytest.mark.parametrize(("column", "change"), CHANGES)
def test_a_preview_is_what_the_measures_say_of_the_recoded_file(
    held: Any, column: str, change: dict[str, Any], missing: str
) -> None:
    desk, folder = held
    keys = list(dict.fromkeys(("age", "region", "job", column)))
    policy, chosen = policy_of(keys, missing=missing), {"age": "10", "job": "2", column: "original"}
    work.prepare(desk, folder, policy, chosen, column, 7)
    found = work.preview(desk, folder, policy["data"], 7, column, change)
    assert found is not None
    plain, name = work.hierarchy_with(desk, folder, policy, column, change, "", "mine")
    trees = {**policy["roles"]["hierarchies"], column: plain}
    records = Records.of(people().lazy(), Roles.from_plain({"keys": keys, "missing": missing, "hierarchies": trees}))
    for key, level in {**chosen, column: name}.items():
        if key in keys:
            records = masks.Recode(key, level).apply(records, Draws(1))
    expected = measured(records)
    for number in expected:
        assert found[number] == pytest.approx(expected[number], rel=1e-12), number


def test_levels_that_there_are_are_previewed_too(held: Any) -> None:
    desk, folder = held
    policy = policy_of(["age", "region"])
    seen = work.look(desk, folder, policy, {"age": "10"}, "age", 1)
    assert [level["name"] for level in seen["levels"]] == ["original", "3", "5", "10"]
    assert seen["level"] == "10"
    levels = [work.preview(desk, folder, policy["data"], 1, "age", {"kind": "level", "level": str(w)}) for w in (5, 10)]
    assert levels[1] == {**seen["now"], "categories": seen["levels"][3]["categories"]}
    assert levels[0]["bits"] > levels[1]["bits"]
    whole = Records.of(people().lazy(), Roles(["age", "region"]))
    assert seen["original"]["unique"] == measured(whole)["unique"]
    assert seen["original"]["bits"] == pytest.approx(measured(whole)["bits"])


def test_counts_are_not_repeated_when_only_levels_change(held: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    desk, folder = held
    policy = policy_of(["age", "region"])
    work.look(desk, folder, policy, {}, "age", 1)
    stages: list[str] = []
    monkeypatch.setattr(work, "stage_of", lambda *given: stages.append("made"))
    monkeypatch.setattr("equipoise.doors.web.memory.count", lambda *given: stages.append("counted"))
    tree, name = work.hierarchy_with(desk, folder, policy, "age", CHANGES[0][1], "", "mine")
    policy["roles"] = {**policy["roles"], "hierarchies": {"age": tree}}
    assert work.look(desk, folder, policy, {"age": name}, "age", 2)["level"] == "mine"
    assert not stages


def test_the_file_that_has_changed_is_read_again(held: Any) -> None:
    desk, folder = held
    policy = policy_of(["age", "region"])
    work.prepare(desk, folder, policy, {}, "age", 1)
    people(50).write_parquet(folder / "people.parquet")
    assert work.preview(desk, folder, policy["data"], 1, "age", {"kind": "level", "level": "5"}) is None


def test_categories_are_listed_by_frequency_without_rare_ones(held: Any) -> None:
    desk, folder = held
    policy = policy_of(["age", "region"])
    found = work.categories(desk, folder, policy, "region", "", False)
    assert [row["text"] for row in found["rows"]] == ["North", "South", "East", "West", HOSTILE]
    assert found["hidden"] == 1
    assert work.categories(desk, folder, policy, "region", "", True)["rows"][-1]["text"] == "Nowhere"
    assert [row["text"] for row in work.categories(desk, folder, policy, "region", "ORT", False)["rows"]] == ["North"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (groups([[1, 3], [3, 4]], 6), "two groups"),
        (groups([[1, 17]], 6), "two groups"),
        (groups([[1, 3]], 9), "has changed"),
        (groups([], 6), "Tick some"),
        ({**groups([[1, 3]], 6), "groups": [{"name": "West", "codes": [1, 3]}]}, "name of a category"),
        (groups([[1, 3]], 6, other="West", kept=[5]), "name of a category"),
        (groups([], 6, other="Other"), "at least one"),
    ],
)
def test_groups_that_make_no_sense_are_refused(held: Any, change: dict[str, Any], words: str) -> None:
    desk, folder = held
    with pytest.raises(Exception, match=words):
        work.hierarchy_with(desk, folder, policy_of(["age", "region"]), "region", change, "", "")


def test_intervals_far_too_narrow_are_refused(held: Any) -> None:
    desk, folder = held
    change = {
        "kind": "intervals",
        "widths": [1e-6],
        "start": 0,
        "top": None,
        "bottom": None,
        "closed": "left",
        "alone": [],
    }
    with pytest.raises(ParameterError, match="widen"):
        work.hierarchy_with(desk, folder, policy_of(["income"]), "income", change, "", "")


def send(workbench: Any, path: str, body: Any) -> Any:
    return workbench.client.post(path, json=body, headers=workbench.headers())


def facts(text: str) -> Any:
    found = re.search(r'id="shape-facts">(.*?)</script>', text, re.DOTALL)
    assert found
    return json.loads(found[1])


def test_the_page_says_where_the_keys_stand(surveyed: Any) -> None:
    shown = surveyed.get("/shape?key=age").text
    assert "<b>14,374</b> of 81,567 records" in shown
    drawn = facts(shown)
    assert drawn["limits"] == {"uniques": 0.02, "entropy": 7.5}
    assert drawn["now"] == drawn["original"]
    assert sum(drawn["editor"]["picture"]["whole"]["n"]) == 81567
    answer = send(surveyed, "/shape/preview", {"column": "age", "change": {"kind": "level", "level": "10"}})
    assert answer.json()["unique"] == 7307
    senseless_refused(surveyed)


def test_a_level_is_looked_at_kept_undone_and_taken_away(surveyed: Any) -> None:
    assert surveyed.post("/shape/level", {"column": "age", "level": "10"}).status_code == 200
    assert surveyed.office.session.draft["shape"] == {"age": "10"}
    body = {"column": "age", "change": {"kind": "breaks", "breaks": [[18, 40, 65]]}, "level": "10", "name": ""}
    answer = send(surveyed, "/shape/keep", body)
    assert answer.status_code == 200
    assert answer.headers["HX-Trigger"] == "stepped"
    assert surveyed.office.session.undoes == "age: breaks moved"
    tree = surveyed.policy["roles"]["hierarchies"]["age"]
    assert [branch.get("widths") for branch in tree] == [(3,), (5,), None]
    assert surveyed.office.session.draft["shape"] == {"age": "4 bands"}
    job = Job.from_plain({**surveyed.policy}, surveyed.folder / "policy.toml")
    assert len(job.recipes(job.read())) == 4 * 4 * 2
    surveyed.post("/undo")
    assert surveyed.office.session.draft["shape"] == {"age": "10"}
    surveyed.post("/redo")
    assert surveyed.post("/shape/drop", {"column": "age", "level": "4 bands"}).status_code == 200
    assert "as it came" in surveyed.get("/shape?key=age").text
    assert facts(surveyed.get("/shape?key=age").text)["level"] == "original"


def test_categories_are_merged_and_none_is_named_in_the_steps(surveyed: Any) -> None:
    shown = facts(surveyed.get("/shape?key=race").text)
    assert shown["editor"]["kind"] == "mapping"
    old = surveyed.headers()
    change = {"kind": "mapping", "groups": [{"name": "Rest", "codes": [0, 1, 3]}], "of": 5}
    before = send(surveyed, "/shape/preview", {"column": "race", "change": change}).json()
    assert send(surveyed, "/shape/keep", {"column": "race", "change": change}).status_code == 200
    assert surveyed.office.session.undoes == "race: 3 categories merged"
    after = facts(surveyed.get("/shape?key=race").text)
    assert after["now"] == {name: value for name, value in before.items() if name != "categories"}
    assert [group["codes"] for group in after["editor"]["mapping"]["groups"]] == [[0, 1, 3]]
    assert after["level"] == "3 groups"
    late = {"column": "race", "change": {**change, "groups": [{"name": "Others", "codes": [0, 1]}]}}
    assert surveyed.client.post("/shape/keep", json=late, headers=old).status_code == 409
    assert facts(surveyed.get("/shape?key=race").text) == after


def test_a_coarsening_is_suggested_and_taken(workbench: Any) -> None:
    people().select("age", "region").write_parquet(workbench.folder / "p.parquet")
    workbench.post("/open/file", {"name": "p.parquet"})
    workbench.post("/open/role", {"column": "region", "role": "key"})
    assert "Suggest a coarsening" in workbench.get("/shape").text
    assert workbench.post("/shape/take").status_code == 422
    assert workbench.post("/shape/suggest", {"k": 5, "share": 10}).status_code == 200
    run = workbench.finished("coarsening")
    assert run.state == "done", run.error
    assert run.result["suppressed"] <= 200
    assert "Look at these levels" in workbench.get("/shape/suggestion").text
    assert workbench.post("/shape/take", {"key": "age"}).status_code == 200
    assert workbench.office.session.draft["shape"] == run.result["levels"]


def test_without_a_file_or_keys_the_page_says_what_to_do(workbench: Any) -> None:
    assert "No file is open" in workbench.get("/shape").text
    people().select("income").write_csv(workbench.folder / "p.csv")
    workbench.post("/open/file", {"name": "p.csv"})
    workbench.post("/open/role", {"column": "income", "role": "none"})
    assert "No column is a key yet" in workbench.get("/shape").text
    assert send(workbench, "/shape/preview", {"column": "income", "change": CHANGES[0][1]}).status_code == 422


def opened(workbench: Any, table: pl.DataFrame, *keys: str) -> Any:
    table.write_parquet(workbench.folder / "t.parquet")
    workbench.post("/open/file", {"name": "t.parquet"})
    for key in keys:
        assert workbench.post("/open/role", {"column": key, "role": "key"}).status_code == 200
    return workbench


def test_a_key_without_values_is_said_to_have_none(workbench: Any) -> None:
    opened(workbench, people(60), "nothing", "region")
    assert "no value in any record" in workbench.get("/shape?key=nothing").text


def test_hostile_names_are_text(workbench: Any) -> None:
    column = HOSTILE + "x" * 900
    opened(workbench, people(400).rename({"region": column}), column, "age")
    for path in ("/shape", "/shape/categories"):
        shown = workbench.get(path, params={"key": column}).text
        assert "<script>alert" not in shown
    assert "&lt;script&gt;alert" in shown
    body = {"column": column, "change": {"kind": "mapping", "groups": [{"name": HOSTILE, "codes": [0, 1]}], "of": 6}}
    answer = send(workbench, "/shape/keep", body)
    assert answer.status_code == 200, answer.text
    assert "<script>alert" not in answer.text


def test_many_categories_are_searched_not_all_shown(workbench: Any) -> None:
    many = pl.DataFrame({"code": [f"c{i % 100_000:06d}" for i in range(150_000)], "sex": ["f", "m", "m"] * 50_000})
    opened(workbench, many, "code", "sex")
    page = workbench.get("/shape?key=code")
    assert len(page.content) < 60_000
    rows = workbench.get("/shape/categories", params={"key": "code", "rare": True}).text
    assert rows.count("data-code=") == 200
    assert "less frequent ones not listed" in rows
    found = workbench.get("/shape/categories", params={"key": "code", "rare": True, "search": "99123"}).text
    assert found.count("data-code=") == 1
    change = {"kind": "mapping", "groups": [{"name": "few", "codes": [1, 2]}], "of": 100_000}
    refused = send(workbench, "/shape/keep", {"column": "code", "change": change})
    assert refused.status_code == 422
    assert "one by one" in refused.text
    rest = {**change, "other": "Other", "kept": [5, 6]}
    assert send(workbench, "/shape/preview", {"column": "code", "change": rest}).json()["categories"] == 4
    assert send(workbench, "/shape/keep", {"column": "code", "change": rest}).status_code == 200


SENSELESS = [
    ("/shape/preview", {"column": "age", "change": {"kind": "breaks", "breaks": [[1e300]]}}),
    ("/shape/preview", {"column": "age", "change": {"kind": "level", "level": "none"}}),
    ("/shape/preview", {"column": "age", "change": {"kind": "dates", "parts": ["month"]}}),
    ("/shape/preview", {"column": "race", "change": {"kind": "intervals", "widths": [5]}}),
    ("/shape/preview", {"column": "no such", "change": {"kind": "prefix", "lengths": [2]}}),
    ("/shape/keep", {"column": "age", "change": {"kind": "breaks", "breaks": [[]]}}),
    ("/shape/keep", {"column": "age", "change": {"kind": "intervals", "widths": [5], "top": 1, "bottom": 2}}),
    ("/shape/keep", {"column": "age", "change": {"kind": "level", "level": "5"}}),
    ("/shape/keep", {"column": "salary", "change": {"kind": "breaks", "breaks": [[5, 6]]}}),
]


def senseless_refused(surveyed: Any) -> None:
    """What makes no sense is refused in one sentence."""
    before = surveyed.policy
    for path, body in SENSELESS:
        answer = send(surveyed, path, body)
        assert answer.status_code == 422, (path, body)
        assert "Traceback" not in answer.text
    for path in ("/shape/level", "/shape/drop"):
        assert surveyed.post(path, {"column": "age", "level": "none"}).status_code == 422
        assert surveyed.post(path, {"column": "none", "level": "5"}).status_code == 422
    assert surveyed.policy == before
