"""A policy explained back: counts against enumeration, and every doubt."""

from pathlib import Path

import polars as pl
import pytest

from equipoise.policies.explain import explain
from equipoise.policies.policy_file import Job

POLICY = """
extends = "ema"
measures = ["uniques"]
draws = 3
[data]
path = "people.csv"
[roles]
keys = ["sex", "age"]
sensitive = ["ill"]
id = "person"
[roles.hierarchies.age]
kind = "intervals"
widths = [5, 10]
[[scenarios]]
name = "neighbour"
known = ["sex", "age"]
reason = "next door"
[limits]
entropy = { limit = "> 1", reason = "tables by age" }
nearest = "< 50%"
[[candidates]]
coarsenings = true
[[candidates]]
masks = [
    { use = "recode", column = "age", level = ["5", "10"] },
    { use = "noise", columns = "pay", scale = { from = 0.1, to = 0.5, steps = 4 } },
]
"""


def load(folder: Path, text: str) -> Job:
    rows = 60
    pl.DataFrame(
        {
            "sex": ["f", "m"] * (rows // 2),
            "age": [*range(20, 20 + rows)],
            "ill": ["y", "n", "n"] * (rows // 3),
            "pay": [float(i) for i in range(rows)],
            "person": [*range(rows)],
        }
    ).write_csv(folder / "people.csv")
    (folder / "policy.toml").write_text(text, encoding="utf-8")
    return Job.load(folder / "policy.toml")


def test_it_says_what_is_read_held_tried_and_chosen(tmp_path: Path) -> None:
    job = load(tmp_path, POLICY)
    records = job.read()
    found = explain(job, records)
    assert found.recipes == len(job.recipes(records)) == 3 + 2 * 4
    assert found.runs == 3 + 2 * 4 * 3
    said = {heading: " ".join(lines) for heading, lines in found.parts.items()}
    assert "people.csv: 60 records, 5 columns." in said["data"]
    assert "An intruder may know sex, age." in said["data"]
    assert "It extends ema: " in said["data"]
    assert "neighbour knows sex, age (next door)." in said["scenarios"]
    assert "prosecutor[neighbour] must be at most 9\xa0%." in said["limits"]
    assert "entropy must be above 1." in said["limits"]
    assert "Because: tables by age." in said["limits"]
    assert "Every combination of the levels of age: 3 recipes." in said["candidates"]
    assert "scale 0.1 to 0.5 in 4 steps): 8 recipes." in said["candidates"]
    assert "11 recipes (all of them), 27 runs, each on 60 records." in said["work"]
    assert found.to_plain()["recipes"] == 11


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("draws = 3", "draws = 1"), "judged by one draw"),
        (("", ""), "No register"),
        (('nearest = "< 50%"', 'nearest = "<= 100%"'), "always holds"),
        (('nearest = "< 50%"', 'nearest = "> 1%"'), "asks for a risk"),
        (('nearest = "< 50%"', '[waive]\nattack = "a trial"'), "Waived, and still true"),
    ],
)
def test_what_is_doubtful_is_told(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    found = explain(load(tmp_path, POLICY.replace(*change)))
    assert any(words in warning for warning in found.warnings), found.warnings


def test_a_policy_without_a_limit_on_risk_is_told_so(tmp_path: Path) -> None:
    text = POLICY.replace('extends = "ema"\n', "").replace('nearest = "< 50%"', "").partition("[[candidates]]")[0]
    assert "No risk is limited: what is most useful is released" in explain(load(tmp_path, text)).warnings[0]


def test_slots_that_are_not_filled_are_told(tmp_path: Path) -> None:
    text = """
extends = "hipaa-safe-harbor"
[data]
path = "people.csv"
[roles]
keys = ["sex", "age"]
[slots]
age = "age"
"""
    found = explain(load(tmp_path, text))
    assert [w for w in found.warnings if "[slots]" in w] == [
        f"[slots] names no column for {slot}: the preset does nothing about it."
        for slot in ("zip", "dates", "births", "oldest", "birth_years")
    ]


def test_a_floor_that_a_candidate_goes_below_is_told(tmp_path: Path) -> None:
    floored = POLICY.replace("widths = [5, 10]", "widths = [5, 10]\nfloor = 5")
    assert not any("floor" in warning for warning in explain(load(tmp_path, floored)).warnings)
    bare = floored.replace('{ use = "recode", column = "age", level = ["5", "10"] },', "")
    assert any("age has a floor, and candidate 2" in warning for warning in explain(load(tmp_path, bare)).warnings)


def test_columns_that_are_masked_together_are_joined(tmp_path: Path) -> None:
    job = load(tmp_path, POLICY.replace('columns = "pay"', 'columns = ["pay", "age"]'))
    assert "noise (columns pay and age, scale 0.1 to 0.5" in " ".join(explain(job).parts["candidates"])
