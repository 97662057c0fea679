"""A policy must say what becomes of columns that single people out: a mask, a limit, or a declaration."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.ground.errors import ParameterError, RefusedError
from equipoise.policies.first_policy import initial
from equipoise.policies.policy_file import Job
from equipoise.policies.revealed_columns import assumed_unknown, undeclared

POLICY = """
{top}
[data]
path = "people.parquet"

[roles]
keys = ["sex", "age"]
numeric = ["rent"]

[limits]
uniques = "< 0.5"
{limits}

[[candidates]]
masks = [{{ use = "top_code", column = "age", at = 60 }}]
{end}
"""


@pytest.fixture
def people(tmp_path: Path) -> Path:
    rng = np.random.default_rng(8)
    n = 300
    table = {"sex": rng.integers(0, 2, n), "age": rng.integers(20, 70, n), "rent": rng.permutation(np.arange(n) * 37)}
    pl.DataFrame(table).write_parquet(tmp_path / "people.parquet")
    return tmp_path


def balanced(folder: Path, top: str = "", limits: str = "", end: str = "") -> Any:
    policy = folder / "policy.toml"
    policy.write_text(POLICY.format(top=top, limits=limits, end=end), encoding="utf-8")
    return eq.balance(policy, out=folder / "release", overwrite=True)


def test_a_silent_policy_is_refused_before_anything_is_tried(people: Path) -> None:
    with pytest.raises(RefusedError, match=r"'rent' \(100%\).*assume_unknown = \[\"rent\"\]"):
        balanced(people)
    assert not (people / "release").exists()


def test_a_declaration_stands_in_the_headline(people: Path) -> None:
    release = balanced(people, top='assume_unknown = ["rent"]')
    assert "Assumes that nobody knows rent." in release.evidence["assumes"]
    assert release.evidence["revealing"][0]["column"] == "rent"
    for part in (release.public, release.private):
        page = (part / "report.html").read_text(encoding="utf-8")
        assert page.index("Assumes that nobody knows rent.") < page.index("<h2")
        assert "Other columns that single people out" in page
    assert all(check.holds is not False for check in eq.verify(release.folder).checks)


def test_a_limit_is_kept_or_refuses(people: Path) -> None:
    with pytest.raises(RefusedError, match="revealing columns"):
        balanced(people, limits='revealing_columns = "<= 0.05"')
    noise = '[[always]]\nuse = "noise"\ncolumns = ["rent"]\nscale = 1.0'
    release = balanced(people, limits='revealing_columns = "<= 0.05"', end=noise)
    assert release.trial.scores.named("revealing_columns").value <= 0.05
    assert [law.mask for law in release.data.history] == ["top_code", "noise"]


def test_a_mask_that_changes_too_little_is_refused(people: Path) -> None:
    limits, noise = 'value_disclosure = "<= 1"', '[[always]]\nuse = "noise"\ncolumns = ["rent"]\nscale = 0.0001'
    with pytest.raises(RefusedError, match="'rent'"):
        balanced(people, limits=limits, end=noise)


def test_a_key_cannot_be_declared_unknown(people: Path) -> None:
    with pytest.raises(ParameterError, match="'age' is a key"):
        balanced(people, top='assume_unknown = ["age"]')
    with pytest.raises(ParameterError, match="Did you mean 'rent'"):
        balanced(people, top='assume_unknown = ["rend"]')


def test_what_is_declared_is_left_out_of_the_limit() -> None:
    policy = eq.Policy({"revealing_columns": "<= 0.05"}, assume_unknown=["rent"])
    assert assumed_unknown(policy) == ("rent",)
    assert list(policy.limits) == ["revealing_columns(unknown=('rent',))"]


def test_an_attack_that_is_limited_covers_what_it_knows() -> None:
    table = pl.DataFrame({"column": ["rent", "cost"], "beside": [None, None], "share": [1.0, 1.0], "number": [9, 9]})
    policy = eq.Policy({"nearest(known=['rent'])": "< 0.2"})
    assert undeclared(table, policy)["column"].to_list() == ["cost"]


def test_a_first_policy_proposes_masks_and_declares_nothing(people: Path) -> None:
    text = initial(people / "people.parquet")
    (people / "first.toml").write_text(text.replace(str(people / "people.parquet"), "people.parquet"), encoding="utf-8")
    job = Job.load(people / "first.toml")
    assert job.assume_unknown == ()
    assert '# assume_unknown = ["rent"]' in text
    assert "revealing_columns" in job.limits
    assert any(
        step["use"] in ("noise", "rank_swap")
        for candidate in job.candidates
        for step in (*candidate.masks, *candidate.then)
    )


def test_records_are_shuffled_unless_the_policy_keeps_them(people: Path) -> None:
    original = pl.read_parquet(people / "people.parquet")["rent"].to_list()
    declared = 'assume_unknown = ["rent"]'
    shuffled = balanced(people, top=declared)
    assert pl.read_parquet(shuffled.public / "data.parquet")["rent"].to_list() != original
    kept = balanced(people, top=declared, end="[output]\nkeep_order = true")
    assert pl.read_parquet(kept.public / "data.parquet")["rent"].to_list() == original
    assert any("order of the records" in sentence for sentence in kept.evidence["assumes"])
