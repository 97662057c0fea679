"""Columns beside the keys that single people out: told on Understand, decided on Balance, carried into the policy."""

import tomllib
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.doors.web.test_balancing import plain

import equipoise as eq
from equipoise.doors.web.session import policy_text
from equipoise.doors.web.work.limits import slots
from equipoise.policies.policy_file import Job

N = 400
REFUSAL = "whoever knows them is led to few people by 'rent' (100%)"


@pytest.fixture
def people(tmp_path: Path, workbench_at: Callable[[Path], Any]) -> Any:
    """A workbench with people of whom each has a rent of their own, and a limit on uniques alone."""
    rng = np.random.default_rng(5)
    table = {"sex": rng.integers(0, 2, N), "age": rng.integers(2, 7, N) * 10, "rent": rng.permutation(N) * 37 + 300}
    pl.DataFrame(table | {"job": rng.integers(0, 3, N)}).write_parquet(tmp_path / "people.parquet")
    policy = {
        "format": 1,
        "measures": ["entropy"],
        "data": {"path": "people.parquet"},
        "roles": {"keys": ["sex", "age"], "numeric": ["rent"]},
        "limits": {"uniques": "< 50%"},
        "candidates": [{"masks": [{"use": "top_code", "column": "age", "at": 50}]}],
    }
    (tmp_path / "policy.toml").write_text(policy_text(policy), encoding="utf-8")
    workbench = workbench_at(tmp_path)
    assert workbench.post("/open/file", {"name": "policy.toml"}).status_code == 200
    return workbench


def job_of(workbench: Any) -> Job:
    return Job.from_plain(tomllib.loads(policy_text(workbench.policy)), workbench.folder / "policy.toml")


def tried(workbench: Any) -> Any:
    assert workbench.post("/balance/try").status_code == 200
    return workbench.finished("balance")


def test_columns_that_single_people_out_are_told(people: Any) -> None:
    shown = plain(people.get("/understand/others").text)
    assert "Whoever knows what a person has in rent is led to one or two records, for 100 % of the people." in shown
    assert f"rent 100 % {N}" in shown
    assert "sex" not in shown
    assert 'hx-get="/understand/others"' in people.get("/understand").text


def test_pairs_are_told_together(people: Any) -> None:
    rng = np.random.default_rng(6)
    table = pl.read_parquet(people.folder / "people.parquet")
    pair = {"street": rng.integers(0, 10, N), "floor": rng.integers(0, 30, N)}
    table.drop("rent").with_columns(**{name: pl.Series(values) for name, values in pair.items()}).write_parquet(
        people.folder / "pairs.parquet"
    )
    people.office.edit(
        None, "pairs", "open", lambda draft: {**draft, "policy": {**draft["policy"], "data": {"path": "pairs.parquet"}}
        | {"roles": {"keys": ["sex", "age"]}}},
    )  # fmt: skip
    assert "floor and street" in plain(people.get("/understand/others").text)
    people.post("/balance/unknown", {"column": "floor", "on": "true"})
    shown = plain(people.get("/balance").text)
    assert "together with floor nothing needed, as floor is masked or unknown" in shown
    assert "nothing yet" not in shown


def test_where_no_column_singles_out_many_the_page_says_so(people: Any) -> None:
    people.post("/open/role", {"column": "rent", "role": "key"})
    for page in ("/understand/others", "/balance"):
        assert "No other column singles out more than 5 % of the people" in plain(people.get(page).text)


def test_a_silent_policy_is_refused_and_a_declaration_settles_it(people: Any) -> None:
    shown = plain(people.get("/balance").text)
    assert "rent 100 % ✗ nothing yet" in shown
    run = tried(people)
    assert run.state == "failed"
    assert REFUSAL in run.error
    assert REFUSAL in unescape(people.get("/balance").text)
    people.post("/release/run", {"folder": "refused"})
    assert REFUSAL in unescape(people.finished("release").result["words"])
    shown = plain(people.post("/balance/unknown", {"column": "rent", "on": "true"}).text)
    assert "rent 100 % assumes that nobody knows it" in shown
    assert REFUSAL not in unescape(people.get("/balance").text)
    assert job_of(people).assume_unknown == ("rent",)
    assert tried(people).state == "done"
    assert "1 of 1 trials inside the limits" in plain(people.get("/balance").text)
    people.post("/release/run", {"folder": "out"})
    assert people.finished("release").result["released"]
    released = plain(people.get("/release").text)
    assert released.index("out") < released.index("Assumes that nobody knows rent.") < released.index("What was done")
    assert "policy['assume_unknown'] = ['rent']" in people.get("/release/script").text
    people.post("/balance/unknown", {"column": "rent"})
    assert "assume_unknown" not in people.policy


def test_only_columns_that_single_people_out_can_be_declared(people: Any) -> None:
    assert people.post("/balance/unknown", {"column": "age", "on": "true"}).status_code == 422
    assert "assume_unknown" not in people.policy


def test_the_proposed_masks_are_used_and_written(people: Any) -> None:
    shown = plain(people.post("/balance/others").text)
    assert "rent 100 % masked in every recipe, and what is left is limited" in shown
    assert "At the end of every recipe rank swap columns: rent" in shown
    [swap] = people.policy["always"]
    assert swap["use"] == "rank_swap"
    [recipe] = job_of(people).recipes(job_of(people).read())
    assert [type(mask).__name__ for mask in recipe.masks] == ["TopCode", "RankSwap"]
    assert tomllib.loads(people.get("/release/policy").text)["always"] == [swap]
    assert "policy['always'] = " in people.get("/release/script").text
    assert tried(people).state == "done"
    assert "changed since" not in people.get("/balance").text
    people.post("/balance/trial/use", {"at": 0})
    assert "always" not in people.policy
    assert job_of(people).recipes(job_of(people).read())[0].masks == recipe.masks


def test_a_first_policy_has_masks_for_other_columns(people: Any) -> None:
    people.office.edit(
        None, "bare", "open", lambda draft: {**draft, "policy": {k: draft["policy"][k] for k in ("data", "roles")}}
    )
    shown = plain(people.post("/balance/start").text)
    assert people.policy["always"][0]["columns"] == ["rent"]
    assert people.policy["limits"]["revealing_columns"]["limit"] == "<= 5%"
    assert "✗ nothing yet" not in shown


def test_masks_of_every_recipe_are_added_changed_and_removed(people: Any) -> None:
    def put(scale: str, **more: str) -> Any:
        data = {"use": "noise", "names": ["scale"], "values": [scale], "picked": ['["columns", "rent"]'], **more}
        return people.post("/balance/mask", {**data, "place": "always"})

    put("0.1")
    assert people.policy["always"] == [{"use": "noise", "columns": ["rent"], "scale": 0.1}]
    form = people.get("/balance/form", params={"verb": "mask", "candidate": 0, "steps": "always", "step": 0}).text
    assert 'value="always"' in form
    put("0.2", step="0")
    assert people.policy["always"] == [{"use": "noise", "columns": ["rent"], "scale": 0.2}]
    assert "masked in every recipe; what is left is checked at the release" in plain(people.get("/balance").text)
    people.post("/balance/mask/remove", {"candidate": 0, "step": 0, "steps": "always"})
    assert "always" not in people.policy
    assert len(people.policy["candidates"]) == 1


def test_a_declared_column_is_left_out_of_the_limit_on_the_map(people: Any) -> None:
    people.post("/balance/others")
    people.post("/balance/unknown", {"column": "rent", "on": "true"})
    names = [slot.scores[0] for slot in slots(people.policy, people.folder)]
    assert names == list(job_of(people).policy().limits)
    assert eq.Policy(people.policy["limits"], assume_unknown=["rent"]).limits.keys() == {*names}
    assert tried(people).state == "done"
    assert people.get("/balance/choice", params={"bounds": ["50", "5"]}).status_code == 200
    assert "1 of 1 trials inside the limits" in plain(people.get("/balance").text)
