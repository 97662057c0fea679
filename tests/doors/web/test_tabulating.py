"""Tables: the numbers on the page are those of `eq.tabulate`; values, files and refusals are handled with care."""

import re
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.doors.web.work import table_settings as settings_of
from equipoise.ground.randomness import Draws
from equipoise.masks import Recode
from equipoise.policies.presets import presets
from equipoise.presentation.numbers import value_text
from equipoise.recipe.catalogue import parse

HOSTILE = '<script>alert("1")</script>'


def firms(many: int = 400) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    return pl.DataFrame(
        {
            "region": rng.choice(["n1", "n2", "s1", "s2"], many, p=[0.5, 0.3, 0.15, 0.05]),
            "industry": rng.choice(["A", "B", "C"], many, p=[0.7, 0.25, 0.05]),
            "turnover": np.ceil(rng.lognormal(3, 1.6, many)).astype(np.int64),
            "change": rng.integers(-5, 9, many),
            "owner": np.arange(many) // 2,
        }
    )


def opened(near: Any, frame: pl.DataFrame | None = None) -> Any:
    (frame if frame is not None else firms()).write_parquet(near.folder / "firms.parquet")
    assert near.post("/open/file", {"name": "firms.parquet"}).status_code == 200
    return near


def columns(**more: Any) -> dict[str, Any]:
    return {"by": ["region", "industry"], "level": ["", ""], "value": "turnover", "subtotals": "true", **more}


def answer(text: str) -> str:
    found = re.search(r'id="table-answer">(.*?)</p>', text, re.DOTALL)
    assert found
    return re.sub(r"\s+", " ", found[1]).strip()


def made(near: Any) -> Any:
    """Protect the table; the run when it is done."""
    assert near.post("/tables/protect").status_code == 200
    return near.finished("table")


def records(near: Any) -> eq.Records:
    return eq.read(near.folder / "firms.parquet", eq.Roles())


def test_without_a_file_the_page_says_what_to_do(near: Any) -> None:
    text = near.get("/tables").text
    assert "No file is open yet" in text
    assert "Open the demo business survey" in text
    assert near.get("/tables/body").status_code == 422


def test_the_demo_table_has_the_numbers_of_the_library(near: Any) -> None:
    assert near.post("/tables/demo").headers["HX-Redirect"] == "/tables"
    text = near.get("/tables").text
    trees = {"region": eq.Hierarchy.prefix(4, 3), "industry": eq.Hierarchy.prefix(3, 1)}
    roles = eq.Roles(weight="weight", id="enterprise", hierarchies=trees)
    given = eq.read(near.folder / "demo" / "business.parquet", roles)
    for column, level in (("region", "4"), ("industry", "1")):
        given = Recode(column, level).apply(given, Draws(0))
    groups = {"region": eq.Hierarchy.prefix(3)}
    table = eq.table(given, ["region", "industry"], "turnover", holding="holding", hierarchies=groups)
    sensitive = int(eq.rules.PPercent(0.1).flag(table).sum())
    assert answer(text) == f"{sensitive} of {len(table)} cells are sensitive."
    assert (sensitive, len(table)) == (15, 209)
    total = table.table.filter(pl.col("region") == "Total", pl.col("industry") == "Total")["value"][0]
    assert f"{total:,.0f}" in text


def test_a_protected_table_is_that_of_the_library_and_verifies(near: Any) -> None:
    opened(near).post("/tables/columns", columns())
    assert made(near).state == "done"
    found = eq.tabulate(records(near), ["region", "industry"], "turnover", rule="p-percent:10%")
    shown = near.get("/tables/body").text
    told = found.counts
    assert answer(shown).startswith(
        f"{told['sensitive']} of {told['cells']} cells are sensitive; {told['secondary']} more are suppressed"
    )
    assert shown.count('<span class="unseen"> sensitive</span>') == told["sensitive"]
    assert shown.count('<span class="unseen"> secondary</span>') == told["secondary"]
    csv = near.get("/tables/file/public/table.csv")
    assert csv.headers["content-disposition"].startswith("attachment")
    assert csv.text == found.public.write_csv()
    assert "Saved in the folder <b>firms-table</b>" in near.post("/tables/keep").text
    assert "firms-table-2" in near.post("/tables/keep").text
    assert (near.folder / "firms-table" / "private").stat().st_mode & 0o077 == 0
    assert eq.verify(near.folder / "firms-table").outcome == "verified"


def test_last_period_is_named_in_a_field_of_text(near: Any) -> None:
    opened(near).post("/tables/columns", columns())
    text = near.get("/tables/body").text
    assert "last period" in text
    assert "&lt;class" not in text
    assert near.post("/tables/method/set", {"field": "like", "value": "last-year"}).status_code == 200
    assert 'value="last-year"' in near.get("/tables/body").text
    assert near.post("/tables/method/set", {"field": "like", "value": ""}).status_code == 200
    assert 'value="last-year"' not in near.get("/tables/body").text


def test_a_statistic_and_an_a_priori_file(near: Any) -> None:
    """The means of the page are those of the library; a cell that a file says to suppress is suppressed."""
    opened(near)
    (near.folder / "cells.hst").write_text("n1,A,ml\n")
    assert "the ratio to" in near.post("/tables/columns", columns()).text
    text = near.post("/tables/columns", columns(statistic="mean", apriori="cells.hst")).text
    assert "Mean of turnover by region and industry" in text
    made(near)
    public = near.get("/tables/file/public/table.parquet").content
    (near.folder / "made.parquet").write_bytes(public)
    found = pl.read_parquet(near.folder / "made.parquet")
    expected = eq.tabulate(records(near), ("region", "industry"), "turnover", rule="p-percent:10%", statistic="mean",
                           apriori=near.folder / "cells.hst").public  # fmt: skip
    assert found.equals(expected)
    assert found.filter(region="n1", industry="A")["status"].item() == "suppressed"
    assert "Ratio of turnover to change" in near.post("/tables/columns", columns(statistic="ratio")).text
    for wrong in ({"statistic": "meen"}, {"apriori": "nothing.hst"}):
        answer_to = near.post("/tables/columns", columns(**wrong))
        assert "There is no" in answer_to.text or "nothing.hst" in answer_to.text


def test_values_of_suppressed_cells_are_shown_only_when_asked_for(near: Any) -> None:
    opened(near).post("/tables/columns", columns())
    made(near)
    found = eq.tabulate(records(near), ["region", "industry"], "turnover", rule="p-percent:10%")
    hidden = found.internal.filter(pl.col("published").is_null(), pl.col("value") >= 100)["value"].to_list()
    assert hidden
    plain, asked = near.get("/tables/body").text, near.get("/tables/body?values=true").text
    for value in hidden:
        assert f">{value:,}<" not in plain
        assert f">{value:,}<" in asked
    assert "Width, as a share" in asked
    assert "Width, as a share" not in plain


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("round", {"base": "1000", "aim": "random"}),
        ("cell_key", {"most": "6", "variance": "8"}),
        ("adjust", {}),
        ("cell_key_amounts", {"small": "20%", "basis": "sum"}),
    ],
)
def test_changed_tables_are_made_again_from_what_is_kept(near: Any, method: str, options: dict[str, str]) -> None:
    counts = method == "cell_key"
    opened(near).post("/tables/columns", columns(value="" if counts else "turnover"))
    if method == "cell_key":
        near.post("/tables/rule/set", {"place": 0, "field": "n", "value": "2"})
    assert near.post("/tables/method", {"name": method}).status_code == 200
    for field, value in options.items():
        assert near.post("/tables/method/set", {"field": field, "value": value}).status_code == 200
    assert made(near).state == "done"
    assert "differ from the truth" in answer(near.get("/tables").text)
    near.post("/tables/keep")
    assert eq.verify(near.folder / "firms-table").outcome == "verified"


def test_group_disclosure_is_offered_for_counts(near: Any) -> None:
    opened(near).post("/tables/columns", columns(value=""))
    assert near.post("/tables/rule/add", {"name": "group_disclosure"}).status_code == 200
    text = near.get("/tables").text
    assert "all but fewer than so many in one cell" in text
    assert "class &#39;" not in text


def test_a_refused_table_is_one_sentence_and_nothing_is_written(near: Any) -> None:
    opened(near).post("/tables/columns", columns())
    near.post("/tables/method", {"name": "round"})
    near.post("/tables/method/set", {"field": "base", "value": "2"})
    assert made(near).refused
    text = near.get("/tables").text
    assert "the audit failed" in text
    assert near.post("/tables/keep").status_code == 422
    assert near.get("/tables/file/public/table.csv").status_code == 422
    assert not list((near.folder / ".equipoise" / "tables").iterdir())


def test_rules_are_changed_joined_and_undone(near: Any) -> None:
    opened(near).post("/tables/columns", columns())
    table = eq.table(records(near), ["region", "industry"], "turnover", top=5)

    def expect(rule: str) -> None:
        many = _flagged(rule, table)
        assert answer(near.get("/tables").text).split()[0] == (str(many) if many else "None"), rule

    expect("p-percent:10%")
    near.post("/tables/rule/set", {"place": 0, "field": "p", "value": "30%"})
    expect("p-percent:30%")
    near.post("/tables/rule/add", {"name": "min_count"})
    expect("p-percent:30% | min-count:3")
    near.post("/tables/join", {"join": "&"})
    expect("p-percent:30% & min-count:3")
    near.post("/tables/rule/drop", {"place": 0})
    expect("min-count:3")
    assert near.post("/tables/rule/drop", {"place": 0}).status_code == 422
    near.post("/undo")
    expect("p-percent:30% & min-count:3")
    assert "Rule: p = 30%" in near.get("/steps").text


def _flagged(rule: str, table: Any) -> int:
    return int(parse(rule, "rule").flag(table).sum())


@pytest.mark.parametrize("name", [one["name"] for one in settings_of.preset_list()])
def test_presets_fill_the_form(near: Any, name: str) -> None:
    opened(near).post("/tables/columns", columns())
    assert near.post("/tables/preset", {"name": name}).status_code == 200
    kept = near.office.session.draft["table"]
    assert settings_of.rule_words(kept) in str(presets()[name].plain["limits"])
    assert kept["method"]["use"] == presets()[name].plain["candidates"][0]["masks"][0]["use"]
    near.post("/tables/columns", columns(value=""))
    assert all(step["use"] not in settings_of.LARGEST for step in near.office.session.draft["table"]["rules"])
    assert "cannot be made" not in near.get("/tables").text


def test_the_doctor_warns_of_dominance(near: Any) -> None:
    frame = pl.DataFrame(
        {"region": ["a"] * 4 + ["b"] * 9, "industry": ["A"] * 13, "turnover": [60, 38, 1, 1, *range(5, 14)]}
    )
    opened(near, frame).post("/tables/columns", columns(by="region"))
    near.post("/tables/rule/add", {"name": "dominance"})
    near.post("/tables/rule/drop", {"place": 0})
    text = near.get("/tables").text
    table = eq.table(records(near), "region", "turnover")
    words = eq.tabulate(records(near), "region", "turnover", rule="dominance:1,75%").diagnosis.words
    assert _flagged("dominance:1,75%", table) == 0
    assert "The rule needs a second look" in text
    assert words.split(".")[0] in text


def test_methods_are_compared_as_the_library_does(near: Any) -> None:
    opened(near).post("/tables/columns", columns())
    asked = {"rules": ["p-percent:10%", "min-count:3"], "methods": ["suppress", "round"], "bases": "100, 1000"}
    assert near.post("/tables/compare", asked).status_code == 200
    run = near.finished("table-compare")
    assert run.state == "done", run.error
    rows = {row["name"]: row for row in run.result["rows"]}
    assert list(rows) == [
        "suppress by p-percent:10%", "suppress by min-count:3", "round to 100", "round to 1000", "original",
    ]  # fmt: skip
    table = eq.table(records(near), ["region", "industry"], "turnover")
    found = eq.tabulate(records(near), ["region", "industry"], "turnover", rule="p-percent:10%")
    assert rows["suppress by p-percent:10%"]["sensitive"] == str(found.counts["sensitive"])
    assert rows["suppress by min-count:3"]["sensitive"] == str(_flagged("min-count:3", table))
    share = eq.tables.Suppressed().measure(found.table, table).value
    assert rows["suppress by p-percent:10%"]["scores"][1][0] == value_text(share, "share")
    text = near.get("/tables").text
    assert 'data-chart="map-spec"' in text
    assert "in use" in text
    assert near.post("/tables/compare", {**asked, "bases": "x"}).status_code == 422
    assert near.post("/tables/compare", {**asked, "rules": ["closeness:income"]}).status_code == 422


def test_another_setting_hides_what_was_made_before(near: Any) -> None:
    opened(near).post("/tables/columns", columns())
    made(near)
    assert "Audit" in near.get("/tables/body").text
    near.post("/tables/rule/set", {"place": 0, "field": "p", "value": "20%"})
    text = near.get("/tables/body").text
    assert "Protect the table and audit it" in text
    assert near.post("/tables/keep").status_code == 422
    near.post("/undo")
    assert "Save the table" in near.get("/tables/body").text


def test_amounts_below_zero_make_a_table(near: Any) -> None:
    opened(near)
    text = near.post("/tables/columns", columns(value="change")).text
    assert "negative" not in text
    assert 'id="table-columns"' in text


def test_names_of_columns_and_cells_are_text(near: Any) -> None:
    frame = firms().rename({"region": HOSTILE, "industry": 'it\'s "quoted" 😀'})
    frame = frame.with_columns(pl.col(HOSTILE).replace({"n1": "<img src=x onerror=alert(1)>"}))
    opened(near, frame)
    text = near.get("/tables").text
    assert HOSTILE not in text
    assert "<img src=x" not in text
    assert "&lt;img src=x" in text
    sent = columns(by=[HOSTILE, 'it\'s "quoted" 😀'])
    found = near.post("/tables/columns", sent)
    assert found.status_code == 200
    assert HOSTILE not in found.text
    assert made(near).state == "done"
    assert HOSTILE not in near.get("/tables").text


def test_a_file_without_suitable_columns_says_so(near: Any) -> None:
    opened(near, pl.DataFrame({"x": [1.5 + i for i in range(900)]}))
    assert "No column of this file suits a table" in near.get("/tables").text
    assert near.post("/tables/protect").status_code == 422


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/tables/columns", {"by": ["nothing"]}),
        ("/tables/columns", {"by": [""]}),
        ("/tables/rule/add", {"name": "closeness"}),
        ("/tables/rule/set", {"place": 0, "field": "p", "value": "many"}),
        ("/tables/rule/set", {"place": 7, "field": "p", "value": "1"}),
        ("/tables/rule/set", {"place": 0, "field": "rule", "value": "1"}),
        ("/tables/preset", {"name": "ema"}),
        ("/tables/method", {"name": "noise"}),
        ("/tables/method/set", {"field": "ptable", "value": "/etc/passwd"}),
        ("/tables/method/set", {"field": "cost", "value": "turnover"}),
        ("/tables/stop", {"kind": "release"}),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(near: Any, path: str, data: dict[str, Any]) -> None:
    opened(near)
    before = near.office.session.version
    found = near.post(path, data)
    assert found.status_code == 422, found.text
    assert near.office.session.version == before


def test_a_table_of_a_policy_starts_as_the_policy_says(near: Any) -> None:
    near.post("/tables/demo")
    near.post("/tables/rule/set", {"place": 0, "field": "p", "value": "12%"})
    kept = near.office.session.draft["table"]
    assert (kept["by"], kept["levels"], kept["holding"]) == (
        ["region", "industry"], {"region": "4", "industry": "1"}, "holding",
    )  # fmt: skip
    assert kept["rules"] == [{"use": "p_percent", "p": 0.12, "coalition": 1}]


def test_a_run_of_its_own_can_be_stopped(workbench: Any) -> None:
    frame = firms(3000).with_columns(group=pl.Series(range(3000)) % 60)
    opened(workbench, frame).post("/tables/columns", columns(by=["region", "industry", "group"], level=["", "", ""]))
    workbench.post("/tables/protect")
    assert workbench.post("/tables/stop", {"kind": "table"}).status_code == 200
    assert workbench.finished("table").state == "stopped"
    assert "Try again" in workbench.get("/tables").text
