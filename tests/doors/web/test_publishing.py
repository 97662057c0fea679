"""Publish or suppress: the numbers at every point are those of `eq.publication`; what is kept is written as it is."""

import json
import re
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.doors.web.memory import Memory
from equipoise.doors.web.work import publish as work
from equipoise.presentation.numbers import value_text
from equipoise.publishing.weighed_publication import fitting_groups

HOSTILE = "<script>alert(1)</script>"


def people(many: int = 1500) -> pl.DataFrame:
    rng = np.random.default_rng(4)
    return pl.DataFrame(
        {
            "area": rng.choice([f"area {i:02}" for i in range(12)], many),
            "job": rng.choice(["clerk", "cook", "nurse", "pilot"], many, p=[0.6, 0.3, 0.08, 0.02]),
            "sex": rng.choice(["f", "m"], many),
            "age": rng.integers(20, 65, many),
            "w": rng.uniform(2, 6, many).round(2),
        }
    )


def opened(near: Any, frame: pl.DataFrame | None = None) -> Any:
    people().write_csv(near.folder / "people.csv")
    if frame is not None:
        frame.write_parquet(near.folder / "other.parquet")
    assert near.post("/open/file", {"name": "people.csv" if frame is None else "other.parquet"}).status_code == 200
    roles = {"keys": ["sex", "age"], "weight": "w", "domain": ["area"]}
    if frame is None:
        policy = {**near.policy, "roles": roles}
        near.office.edit(None, "roles", "open", lambda draft: {**draft, "policy": policy})
    return near


def chosen(near: Any, **more: Any) -> Any:
    """The cells of the tests: jobs in areas, S = 40."""
    sent = {"domain": ["area"], "domain_level": [""], "target": ["job"], "target_level": [""], "nonpublication": "y"}
    assert near.post("/publish/columns", {**sent, **more}).status_code == 200
    assert near.post("/publish/loss/set", {"field": "S", "value": "40"}).status_code == 200
    return near


def expected(near: Any) -> eq.Publication:
    given = eq.read(near.folder / "people.csv", eq.Roles(keys=["sex", "age"], weight="w", domain=["area"]))
    return eq.publication(given, disclosure="uniques:40", domain="area", target="job")


def answer(text: str) -> str:
    found = re.search(r'id="point-answer">(.*?)</p>', text, re.DOTALL)
    assert found
    return found[1].strip()


def numbers(text: str) -> list[str]:
    return re.findall(r'<p class="number">(.*?)</p>', text)


def test_without_a_file_the_page_says_what_to_do(near: Any) -> None:
    assert "No file is open yet" in near.get("/publish").text
    assert near.get("/publish/point?risk=0.2").status_code == 422


@pytest.mark.parametrize("risk", [0.0, 0.05, 0.2, 0.61, 1.0])
def test_every_point_is_that_of_the_library(near: Any, risk: float) -> None:
    chosen(opened(near))
    found, text = expected(near), near.get(f"/publish/point?risk={risk}").text
    decision = found.choose(risk_at_most=risk)
    told = int(decision.cells["publish"].sum())
    assert answer(text) == decision.words
    assert numbers(text)[:2] == [f"{told:,}", f"{len(found) - told:,}"]
    rows = json.loads(re.search(r'id="point-rows">(.*?)</script>', text)[1])  # type: ignore[index]
    assert rows["chosen"][0]["withheld"] == pytest.approx(decision.withheld, abs=1e-12)
    assert rows["chosen"][0]["risk"] == risk


def test_the_cells_around_the_line_are_in_the_order_of_the_library(near: Any) -> None:
    chosen(opened(near))
    found = expected(near)
    told = int(found.choose(risk_at_most=0.2).cells["publish"].sum())
    near_line = found.order()[max(0, told - work.WINDOW) : told + work.WINDOW]
    text = near.get("/publish/point?risk=0.2").text
    shown = re.findall(r'<th scope="row">(.*?)</th><th scope="row">(.*?)</th>.*?>(publish|suppress)</td>', text)
    assert [(area, job) for area, job, _ in shown] == near_line.select("area", "job").rows()
    assert [word for *_, word in shown] == ["publish"] * min(told, work.WINDOW) + ["suppress"] * (
        near_line.height - min(told, work.WINDOW)
    )
    worst = near.get("/publish/point?risk=0.2&shown=withheld").text
    first = re.search(r'<th scope="row">(.*?)</th><th scope="row">(.*?)</th>', worst)
    assert first
    assert first.groups() == found.order()[-1].select("area", "job").row(0)


def test_a_point_is_kept_undone_and_written(near: Any) -> None:
    chosen(opened(near))
    assert near.office.session.draft["publish"]["risk"] == work.RISK
    assert near.post("/publish/keep", {"risk": "0.35"}).status_code == 200
    assert near.office.session.draft["publish"]["risk"] == 0.35
    near.post("/undo")
    assert near.office.session.draft["publish"]["risk"] == work.RISK
    near.post("/redo")
    assert near.post("/publish/write").status_code == 200
    assert near.finished("decision").state == "done"
    decision = expected(near).choose(risk_at_most=0.35)
    table = pl.read_csv(near.folder / "people-decision" / "decision.csv")
    assert table["publish"].to_list() == decision.cells["publish"].to_list()
    assert json.loads(near.get("/publish/file/decision.json").text)["risk"] == 0.35
    assert "Publish or suppress" in near.get("/publish/file/report.html").text
    near.post("/publish/write")
    assert (near.folder / "people-decision-2" / "report.html").is_file()
    assert (near.folder / "people-decision").stat().st_mode & 0o077 == 0
    assert "35 % of the risk" in near.get("/publish").text.replace("\xa0", " ")


def test_the_curve_and_the_other_rules_are_those_of_the_library(near: Any) -> None:
    chosen(opened(near))
    text, found = near.get("/publish").text, expected(near)
    steps = json.loads(re.search(r'id="curve-steps">(.*?)</script>', text)[1])  # type: ignore[index]
    curve = found.curve()
    assert steps["risk"] == pytest.approx(curve["risk"].to_list(), abs=1e-6)
    assert steps["withheld"] == pytest.approx(curve["withheld"].to_list(), abs=1e-6)
    spec = json.loads(re.search(r'id="curve-spec">(.*?)</script>', text)[1])  # type: ignore[index]
    named = {layer["data"]["name"] for layer in spec["layer"] if "name" in layer["data"]}
    assert named == {"guides", "chosen", "chosen_label"} == set(spec["datasets"])
    worst = found.compare().at(risk_at_most=0.2)["withheld"].max()
    assert value_text(worst, "share") in text[text.index('id="others"') :]  # type: ignore[arg-type]


def test_the_proposed_loss_expects_the_uniques_that_there_are(near: Any) -> None:
    opened(near)
    settings = work.settled(Memory(), near.folder, near.policy, {})
    assert (settings["domain"], settings["target"]) == (["area"], ["sex"])
    near.post("/publish/columns", {"domain": ["area"], "target": ["job"], "nonpublication": "cell"})
    settings = near.office.session.draft["publish"]
    made = work.weighed(Memory(), near.folder, near.policy, settings).whole
    S = fitting_groups(made)  # noqa: N806
    again = work.weighed(Memory(), near.folder, near.policy, {**settings, "loss": {"use": "uniques", "S": S}}).whole
    assert again.misfit is not None
    assert again.misfit.expected == pytest.approx(again.misfit.counted, rel=0.05)
    assert again.misfit.fits
    assert f"Use S = {S:g}" in near.get("/publish").text


def test_a_prior_that_was_fitted_before_gives_the_same_losses(near: Any) -> None:
    """Another loss on the same cells takes the prior that is known: nothing else may change."""
    opened(near)
    held = Memory()
    base = {"domain": ["area"], "target": ["job"], "levels": {}, "population": "", "nonpublication": "y", "risk": 0.2}
    work.weighed(held, near.folder, near.policy, {**base, "loss": {"use": "uniques", "S": 5}})
    made = work.weighed(held, near.folder, near.policy, {**base, "loss": {"use": "uniques", "S": 40}}).whole
    np.testing.assert_allclose(made.R1, expected(near).R1, rtol=1e-9)
    assert made.notes == expected(near).notes


@pytest.mark.parametrize("name", work.LOSSES)
def test_every_loss_has_its_form(near: Any, name: str) -> None:
    chosen(opened(near))
    text = near.post("/publish/loss", {"name": name}).text
    assert work.TITLES[name] in text
    assert "notice" not in text or "nothing to weigh" in text


def test_a_table_of_cells_is_weighed_as_it_is(near: Any) -> None:
    table = pl.DataFrame(
        {
            "area": [*"abcdefghijkl"],
            "n": [10, 10, 10, 20, 20, 20, 5, 5, 40, 40, 8, 8],
            "N": [50, 50, 200, 30, 30, 30, 500, 500, 90, 90, 12, 12],
            "y": [1, 4, 2, 1, 7, 12, 1, 2, 3, 9, 1, 5],
        }
    )
    opened(near, table)
    near.office.edit(None, "no roles", "open", lambda d: {**d, "policy": {**d["policy"], "roles": {}}})
    sent = {"domain": ["area"], "nonpublication": "y"}
    assert near.post("/publish/columns", sent).status_code == 200
    assert near.post("/publish/loss/set", {"field": "S", "value": "10"}).status_code == 200
    found = eq.publication(table, domain="area")
    assert answer(near.get("/publish/point?risk=0.5").text) == found.choose(risk_at_most=0.5).words


def test_levels_of_hierarchies_make_coarser_cells(surveyed: Any) -> None:
    """Through the real processes, on the demo survey."""
    text = surveyed.get("/publish").text
    assert "320 cells" in text.replace("cells of 320", "320 cells")
    sent = {"domain": ["region"], "domain_level": [""], "target": ["race", "age"], "target_level": ["original", "10"]}
    surveyed.post("/publish/columns", {**sent, "nonpublication": "cell"})
    assert surveyed.office.session.draft["publish"]["levels"] == {"age": "10"}
    bands = eq.Hierarchy.intervals([5, 10], closed="right", alone=0, top=90).level("10").label(eq.demo.survey()["age"])
    assert f"cells of {4 * 5 * bands.n_unique()} published" in surveyed.get("/publish/point?risk=0.3").text


def test_columns_and_labels_are_text(near: Any) -> None:
    frame = people().with_columns(pl.col("job").replace({"cook": HOSTILE})).rename({"area": "<b>'\"area"})
    opened(near, frame)
    near.office.edit(None, "r", "open", lambda d: {**d, "policy": {**d["policy"], "roles": {"weight": "w"}}})
    sent = {"domain": ["<b>'\"area"], "target": ["job"]}
    text = near.post("/publish/columns", sent).text
    assert near.office.session.draft["publish"]["domain"] == ["<b>'\"area"]
    assert HOSTILE not in text
    assert "<b>'" not in text


def test_a_file_that_suits_nothing_says_so(near: Any) -> None:
    opened(near, pl.DataFrame({"x": [1.5 + i for i in range(900)]}))
    assert "No columns of this file suit this page" in near.get("/publish").text


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/publish/keep", {"risk": "1.5"}),
        ("/publish/keep", {"risk": "nan"}),
        ("/publish/loss", {"name": "silence"}),
        ("/publish/loss/set", {"field": "S", "value": "-3"}),
        ("/publish/loss/set", {"field": "S", "value": "inf"}),
        ("/publish/loss/set", {"field": "keys", "value": "1"}),
        ("/publish/columns", {"domain": ["nowhere"]}),
        ("/publish/columns", {"domain": ["area"], "target": ["area"]}),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(near: Any, path: str, data: dict[str, Any]) -> None:
    opened(near)
    before = near.office.session.version
    assert near.post(path, data).status_code == 422
    assert near.office.session.version == before
    assert near.get("/publish/point?risk=2").status_code == 422
    assert near.get("/publish/file/report.html").status_code == 422


def test_values_of_one_or_two_records_are_not_named(near: Any) -> None:
    """Before, the first column of words became the area, free text too, and its values were listed unasked."""
    words = ["Quetzalcoatlus", "Archaeopteryx", *["plain"] * 38]
    table = pl.DataFrame({"note": words, "area": ["n", "s"] * 20, "sex": ["f", "f", "m", "m"] * 10})
    table.write_csv(near.folder / "words.csv")
    policy = {"data": {"path": "words.csv"}, "roles": {"keys": ["sex"]}}
    settings = work.settled(Memory(), near.folder, policy, {})
    assert settings["domain"] == ["area"]
    asked = {**settings, "domain": ["note"]}
    for part in ("line", "withheld", "published"):
        shown = str(work.view(Memory(), near.folder, policy, asked, None, part))
        assert "Quetzalcoatlus" not in shown
        assert "Archaeopteryx" not in shown
