"""[[estimates]]: the analyses that matter, read, checked, explained, written again and used by the choice."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import tomli_w

import equipoise as eq
from equipoise.policies.explain import explain
from equipoise.policies.json_schema import schema
from equipoise.policies.policy_file import Job

TREES = {
    "age": {"kind": "intervals", "widths": [5, 20]},
    "sex": {"kind": "mapping", "groups": [["f", "any"], ["m", "any"]], "names": ["all"]},
}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    age, sex = rng.integers(20, 80, 3000), rng.choice(["f", "m"], 3000)
    frame = pl.DataFrame({"sex": sex, "age": age, "pay": 1000 + 20 * age + rng.gamma(2, 300, 3000)})
    frame.write_csv(tmp_path / "people.csv")
    return tmp_path


def write(folder: Path, queries: list[str], **changes: Any) -> Path:
    plain = {
        "data": {"path": "people.csv"},
        "roles": {"keys": ["sex", "age"], "hierarchies": TREES},
        "assume_unknown": ["pay"],
        "limits": {"uniques": "< 0.5"},
        "estimates": [{"query": query, "reason": "asked for"} for query in queries],
    }
    path = folder / "policy.toml"
    path.write_text(tomli_w.dumps(plain | changes), encoding="utf-8")
    return path


def test_they_are_what_the_overlap_is_of(here: Path) -> None:
    job = Job.load(write(here, ["mean:age by sex", "share:age>=60"]))
    (measure,) = [m for m in job.scales() if isinstance(m, eq.utility.Overlap)]
    assert measure.estimates == ("mean:age by sex", "share:age>=60")
    assert job.policy().weights == {"overlap": 1.0}
    assert job.objective == {"overlap": 1.0}


def test_every_problem_is_one_sentence_with_its_line(here: Path) -> None:
    queries = ["mean:agee", "tabel:sex", "quantile:sex,0.5", "mean:age", "mean:age"]
    with pytest.raises(eq.ParameterError) as error:
        Job.load(write(here, queries))
    text = str(error.value)
    assert "estimates[1].query: No column 'agee' in the data. Did you mean 'age'?" in text
    assert "estimates[2].query: Cannot read the query 'tabel:sex'" in text
    assert "estimates[3].query: Column 'sex' is String, not numeric" in text
    assert "estimates[5].query: The query 'mean:age' stands there twice" in text


def test_they_are_explained_in_words(here: Path) -> None:
    parts = explain(Job.load(write(here, ["logit:sex ~ age", "gini:pay"]))).parts
    assert parts["estimates"] == (
        "Logistic regression of sex on age (asked for).",
        "Gini coefficient of pay (asked for).",
    )
    assert "the 2 estimates named" in parts["choice"][0]


def test_they_survive_writing_and_stand_in_the_schema(here: Path) -> None:
    job = Job.load(write(here, ["mean:age"]))
    (here / "again.toml").write_text(job.to_toml(), encoding="utf-8")
    assert Job.load(here / "again.toml").estimates == job.estimates
    table = schema()["$defs"]["EstimateTable"]
    assert set(table["properties"]) == {"query", "reason"}
    assert "estimates" in schema()["properties"]


def test_the_choice_keeps_what_was_named(here: Path) -> None:
    """Ages in bands of 20 with sex as it is, or all sexes in one and ages fine: what users need decides."""
    candidates = [
        {"masks": [{"use": "recode", "column": "age", "level": "20"}]},
        {
            "masks": [
                {"use": "recode", "column": "age", "level": "5"},
                {"use": "recode", "column": "sex", "level": "all"},
            ]
        },
    ]
    for query, level in (("share:sex=f", "20"), ("correlation:age,pay", "5")):
        path = write(here, [query], candidates=candidates, limits={"uniques": "< 0.9"})
        chosen = eq.balance(path, out=here / level, overwrite=True)
        assert isinstance(chosen, eq.Release)
        assert chosen.trial.recipe.masks[0].level == level  # type: ignore[attr-defined]
    page = (here / "20" / "private" / "report.html").read_text(encoding="utf-8")
    assert "share with sex = f" in page
    assert "What users would find" in page
    assert "share with sex = f" not in (here / "20" / "public" / "report.html").read_text(encoding="utf-8")


def test_python_takes_functions_too(here: Path) -> None:
    """A function of one's own is an analysis; one that fails on the release has lost it."""

    def median_age(table: pl.DataFrame) -> dict[str, tuple[float, float]]:
        return {"median": (float(table["age"].median()), 0.5)}  # type: ignore[arg-type]

    records = eq.read(here / "people.csv", eq.Roles(["sex", "age"]))
    policy = eq.Policy({"overlap": ">= 0"}, estimates=("mean:pay", median_age))
    (measure,) = policy.measures()
    score = measure.measure(records, records)
    assert (score.name, score.value) == ("overlap", 1.0)
    assert score.detail["analysis"].to_list() == ["mean:pay", "median_age"]
    without_age = eq.read(records.collect().drop("age"), eq.Roles("sex"))
    lost = eq.utility.Overlap(functions=(median_age,)).measure(without_age, records)
    assert lost.value == 0.0
    with pytest.raises(eq.ParameterError, match="functions must be"):
        eq.utility.Overlap(functions=("mean",))


def test_a_table_has_no_estimates(here: Path) -> None:
    path = write(here, ["mean:age"], table={"by": ["sex"]}, candidates=[{"masks": [{"use": "round", "base": 5}]}])
    with pytest.raises(eq.ParameterError, match="estimates: are of records, not of tables"):
        Job.load(path)
