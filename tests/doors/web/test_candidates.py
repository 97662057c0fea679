"""What is filled in on the Balance page: forms give back their methods, limits are moved where they are written."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import equipoise as eq
from equipoise.doors.web.pages.balance_settings import candidate_rows
from equipoise.doors.web.work import limits, method_forms
from equipoise.ground.errors import ParameterError
from equipoise.methods.method import label, name_of
from equipoise.recipe import catalogue

BY_RECORDS = [
    (verb, name, method)
    for verb in ("mask", "measure")
    for name, method in catalogue.methods(verb).items()  # type: ignore[arg-type]
    if catalogue.family(method) != "tables"
]
NEEDED: dict[str, Any] = {
    "column": "age", "columns": ["age"], "keys": ["sex", "age"], "attribute": "region", "protected": ["pay"],
    "sensitive": "ill", "rule": "min-count:3", "level": "10", "query": "mean:pay", "target": "ill",
}  # fmt: skip
MORE = {"pram_matrix": {"diagonal": 0.8}}


def example(method: type) -> dict[str, Any]:
    found = dict(MORE.get(name_of(method), {}))
    for field in catalogue.form(method):
        if field.required:
            found[field.name] = NEEDED.get(field.name, 2 if field.type is int else 0.5)
    return found


def posted(form: Any) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """What a browser would send of a form."""
    typed = [field for field in form["fields"] if field["kind"] not in method_forms.TICKED_KINDS]
    texts = {field["name"]: field["value"] for field in typed}
    return texts, [(field["name"], value) for field in form["fields"] for value in field["picked"]]


@pytest.mark.parametrize(("verb", "name", "method"), BY_RECORDS, ids=[name for _, name, _ in BY_RECORDS])
def test_a_form_gives_back_its_method(verb: Any, name: str, method: type) -> None:
    before = example(method)
    texts, picked = posted(method_forms.form_of(method, before))
    made = catalogue.build(name, verb, method_forms.read_form(method, texts, picked))
    assert made == catalogue.build(name, verb, before)
    if verb == "measure":
        assert catalogue.parse(label(made), "measure") == made


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1", 0.1), ("10%", 0.1), ("0.1, 0.2", [0.1, 0.2]), ("0.1 to 0.5 in 8", {"from": 0.1, "to": 0.5, "steps": 8}),
        ("", None), ("[0.1, 0.3]", [0.1, 0.3]),
    ],
)  # fmt: skip
def test_numbers_are_values_lists_and_ranges(text: str, value: Any) -> None:
    scale = next(field for field in catalogue.form(eq.masks.Noise) if field.name == "scale")
    assert method_forms.read(text, scale) == value
    assert value is None or method_forms.read(method_forms.typed_text(value, "number"), scale) == value


def test_what_is_no_number_is_said() -> None:
    scale = next(field for field in catalogue.form(eq.masks.Noise) if field.name == "scale")
    for text in ("much", "1 to x in 3", "{"):
        with pytest.raises(ParameterError):
            method_forms.read(text, scale)


def test_what_is_not_touched_stays_as_it_was() -> None:
    before = {"column": "age", "level": 1}
    texts, picked = posted(method_forms.form_of(eq.masks.Recode, before))
    assert method_forms.read_form(eq.masks.Recode, texts, picked, before) == before
    nested = {"columns": ["a"], "given": [["b"], ["b", "c"]]}
    texts, picked = posted(method_forms.form_of(eq.masks.Shuffle, nested))
    assert method_forms.read_form(eq.masks.Shuffle, texts, picked, nested) == nested
    assert method_forms.read_form(eq.masks.Shuffle, texts, picked) == nested


def test_bounds_are_moved_where_they_are_written(tmp_path: Path) -> None:
    policy = {
        "limits": {
            "uniques": {"limit": "< 2% and >= 0", "reason": "why"},
            "nearest": ["< 0.1", {"limit": "<= 5%", "scenario": "neighbour"}],
        },
        "scenarios": [{"name": "neighbour", "known": ["age"]}],
    }
    known = limits.slots(policy, tmp_path)
    assert [slot.value for slot in known] == ["2", "0", "10", "5"]
    assert known[2].scores == ("nearest[neighbour]",)
    moved = limits.with_bounds(policy, tmp_path, [3, 0, 10, 6])
    assert moved["uniques"] == {"limit": "< 3% and >= 0%", "reason": "why"}
    assert moved["nearest"] == ["< 10%", {"limit": "<= 6%", "scenario": "neighbour"}]
    assert limits.with_bounds(policy, tmp_path, [2, 0, 10, 5]) == policy["limits"]


def test_a_limit_of_a_preset_is_moved_into_the_policy(tmp_path: Path) -> None:
    policy = {"extends": "ema", "data": {"path": "x"}, "roles": {}}
    [slot] = limits.slots(policy, tmp_path)
    assert not slot.own
    moved = limits.with_bounds(policy, tmp_path, [5])
    assert moved["prosecutor"]["limit"] == "<= 5%"
    assert limits.slots({**policy, "limits": moved}, tmp_path)[0].own


def test_few_records_are_refused_in_a_sentence_that_says_what_to_decide(near: Any) -> None:
    pl.DataFrame({"sex": ["f", "m"] * 4, "age": range(20, 28)}).write_csv(near.folder / "few.csv")
    near.post("/open/file", {"name": "few.csv"})
    answer = near.post("/balance/start")
    assert answer.status_code == 422
    assert "Nothing is proposed for 8 records" in answer.text
    assert "Decide whether totals are published" in answer.text
    assert "Load the page again" not in answer.text
    assert "limits" not in near.policy


def test_recipes_that_differ_in_a_parameter_have_different_words() -> None:
    plain: dict[str, Any] = {"use": "local_suppress", "rule": "min-count:2"}
    rows = candidate_rows([{"masks": [plain]}, {"masks": [{**plain, "importance": {"age": 5}}]}])
    assert [row["short"] for row in rows] == ["local suppress", "local suppress with importance"]


def test_a_file_without_a_policy_begins_with_one_click_stops_and_goes_on(workbench: Any) -> None:
    rows = 400
    table = {"name": [f"Person {i} Example" for i in range(rows)], "sex": ["f", "m"] * (rows // 2)}
    pl.DataFrame({**table, "age": [i % 80 for i in range(rows)]}).write_csv(workbench.folder / "people.csv")
    workbench.post("/open/file", {"name": "people.csv"})
    assert "Nothing is limited yet" in workbench.get("/balance").text
    workbench.post("/balance/start")
    assert workbench.policy["limits"]["uniques"]["limit"] == "< 2%"
    assert "Two decisions matter most" in workbench.get("/balance").text
    shown = workbench.post("/balance/try")
    assert "every 500ms" in shown.text
    assert "HX-Trigger" not in shown.headers
    workbench.post("/balance/stop")
    run = workbench.finished("balance")
    shown = workbench.get("/balance/stage").text
    assert ("Go on" in shown) == (run.state == "stopped")
    assert "every 500ms" not in shown
    workbench.post("/balance/try")
    assert workbench.finished("balance").state == "done"
    shown = workbench.get("/balance").text
    assert "trials inside the limits" in shown
    assert "Person 1 Example" not in shown


def mask(workbench: Any, use: str, texts: dict[str, str], picked: list[tuple[str, str]], **more: Any) -> Any:
    data = {"use": use, "names": list(texts), "values": list(texts.values())}
    return workbench.post("/balance/mask", {**data, "picked": [json.dumps(one) for one in picked], **more})


def test_hostile_column_names_are_text_everywhere(workbench: Any) -> None:
    bad = "<script>alert('x')</script>\"'"
    pl.DataFrame({bad: [i % 7 for i in range(300)], "sex": ["f", "m"] * 150}).write_csv(workbench.folder / "odd.csv")
    workbench.post("/open/file", {"name": "odd.csv"})
    workbench.post("/open/role", {"column": bad, "role": "key"})
    for address in ("/balance", "/balance/form?verb=mask&name=noise", "/balance/form?verb=measure&name=nearest"):
        shown = workbench.get(address)
        assert shown.status_code == 200
        assert "<script>alert" not in shown.text
    mask(workbench, "noise", {"scale": "0.1"}, [("columns", bad)])
    assert workbench.policy["candidates"][-1]["masks"][0]["columns"] == [bad]
    assert "<script>alert" not in workbench.get("/balance").text


def test_nothing_is_shown_without_a_file(workbench: Any) -> None:
    for address in ("/balance/stage", "/balance/why", "/balance/trial?at=0", "/balance/choice?bounds=1"):
        assert workbench.get(address).status_code == 422
