"""Balance: what the page shows is what the library finds; runs are stopped and go on; forms say what was filled in."""

import json
import re
import tomllib
from dataclasses import replace
from html import unescape
from typing import Any

import pytest

import equipoise as eq
from equipoise.doors.report.page_parts import with_error
from equipoise.doors.web.session import policy_text
from equipoise.doors.web.work import balance as work
from equipoise.doors.web.work.trial_preview import seed_of
from equipoise.ground.errors import Cancelled
from equipoise.inspection.direct_identifiers import without_direct
from equipoise.policies.policy_file import Job
from equipoise.policies.presets import presets
from equipoise.presentation.numbers import number, value_text
from equipoise.recipe import catalogue
from equipoise.releases.balance import kept_journal
from equipoise.search.explain_choice import choice
from equipoise.search.risk_utility_map import axes, undominated
from equipoise.trials.scorer import Bench

BY_RECORDS = [
    (verb, name, method)
    for verb in ("mask", "measure")
    for name, method in catalogue.methods(verb).items()  # type: ignore[arg-type]
    if catalogue.family(method) != "tables"
]


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory, workbench_of: Any) -> Any:
    """A part of the demo survey with its candidates tried once, for tests that change nothing."""
    found = workbench_of(tmp_path_factory.mktemp("balance"))
    found.first = found.get("/balance").text
    assert found.post("/balance/try").status_code == 200
    assert found.finished("balance").state == "done"
    return found


@pytest.fixture
def draft(once: Any) -> Any:
    """The same to change things in; afterwards they are as they were."""
    before = once.office.session
    yield once
    once.office.session = before


@pytest.fixture(scope="module")
def swept(once: Any) -> tuple[Job, Any, Any]:
    """The same by the library: the job, its records, and what a sweep finds."""
    job = Job.load(once.folder / "survey.toml")
    records, seed = job.read(), seed_of(once.folder)
    return job, records, eq.sweep(records, [replace(one, seed=seed) for one in job.recipes(records)], job.scales())


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", text)).replace("\xa0", " "))


def embedded(text: str, name: str) -> Any:
    found = re.search(rf'id="{name}">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


# Trying ---------------------------------------------------------------------------------------------------------------


def test_before_anything_is_tried_the_page_says_how_much_there_is(once: Any) -> None:
    shown = plain(once.first)
    assert "32 recipes to try." in shown
    assert "Try them" in shown
    assert "Uniques below 10 %" in shown


def test_the_map_has_every_trial_of_a_sweep(once: Any, swept: Any) -> None:
    job, _, tried = swept
    shown = once.get("/balance").text
    spec = embedded(shown, "map-spec")
    rows = {
        r["at"]: r for layer in spec["layer"] if layer["name"] in ("tried", "best") for r in layer["data"]["values"]
    }
    assert len(rows) == len(tried) == 32
    for place, trial in enumerate(tried):
        assert rows[place]["recipe"] == trial.words()
        assert rows[place]["risk"] == trial.scores["uniques"].value
        assert rows[place]["utility"] == trial.scores["entropy"].value
    chosen = next(layer for layer in spec["layer"] if layer["name"] == "chosen")["data"]["values"][0]
    best = job.policy().choose(tried)
    assert chosen["recipe"] == best.words()
    assert f"{sum(bool(job.policy().judge(t)) for t in tried)} of 32 trials inside the limits" in plain(shown)
    line = next(layer for layer in spec["layer"] if layer["name"] == "best")["data"]["values"]
    assert {row["recipe"] for row in line} == {
        t.words() for t in undominated(tried, axes(tried[0].scores, policy=job.policy()))
    }


def test_every_trial_is_in_the_table_with_every_score(once: Any, swept: Any) -> None:
    _, _, tried = swept
    shown = plain(once.get("/balance").text)
    for trial in tried:
        values = " ".join(with_error(score) for score in trial.scores).replace("\xa0", " ")
        assert re.search(rf"{re.escape(trial.words())} (?:chosen )?{re.escape(values)}", shown)


def test_other_scores_can_be_put_on_the_axes(once: Any) -> None:
    spec = embedded(once.get("/balance/stage", params={"risk": "uniques(k=2)"}).text, "map-spec")
    assert spec["encoding"]["y"]["axis"]["title"].startswith("Uniques (k = 2)")
    assert once.get("/balance/stage", params={"risk": "entropy", "utility": "no such"}).status_code == 200


def test_a_run_that_was_stopped_goes_on_and_nothing_is_tried_twice(
    sampled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    score = Bench.score

    def counted(bench: Bench, recipe: Any, draw: int = 0) -> Any:
        seen.append(recipe.words())
        return score(bench, recipe, draw)

    monkeypatch.setattr(Bench, "score", counted)
    folder, policy = sampled.folder, {**sampled.policy, "search": {"processes": 1}}
    with pytest.raises(Cancelled, match="What was tried is kept"):
        work.try_all(lambda done, total, what: not (total and done >= 5), folder, policy)
    first = len(seen)
    assert 0 < first < 32
    found = work.try_all(lambda *_: True, folder, policy)
    assert len(seen) == len(set(seen)) == 32
    assert len(found["trials"]) == 32
    work.try_all(lambda *_: True, folder, policy)
    assert len(seen) == 32
    journal = sampled.office.workspace.journal
    assert len(journal.read_text().splitlines()) == 33
    assert journal.stat().st_mode & 0o077 == 0


def test_trials_are_there_after_a_restart(once: Any, workbench_at: Any) -> None:
    again = workbench_at(once.folder)
    trials = re.search(r"\d+ of 32 trials", plain(once.get("/balance").text))
    assert trials is not None
    assert trials[0] in plain(again.get("/balance").text)


def test_the_journal_of_the_page_is_that_of_the_release(once: Any) -> None:
    """The release reads the policy from the working folder; what was tried must be its own."""
    place = once.folder / "policy-of-test.toml"
    place.write_text(policy_text(once.policy), encoding="utf-8")
    beside = once.folder / ".out.journal"
    beside.write_text(once.office.workspace.journal.read_text())
    job = Job.load(place)
    records = job.read()
    with kept_journal(job, once.folder / "out", records, without_direct(records)) as journal:
        assert len(journal.known) == 32


# Limits ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", [("10", "6", "25"), ("14.65", "6", "25"), ("5", "7", "25"), ("40", "0", "100")])
def test_moved_limits_choose_as_a_policy_does(once: Any, swept: Any, bounds: tuple[str, str, str]) -> None:
    _, _, tried = swept
    answer = once.get("/balance/choice", params={"bounds": list(bounds)})
    limits = {"uniques": f"< {bounds[0]}%", "entropy": f"> {bounds[1]}", "revealing_columns": f"<= {bounds[2]}%"}
    policy = eq.Policy(limits)
    inside = [trial for trial in tried if policy.judge(trial)]
    assert f"{len(inside)} of 32 trials inside" in plain(answer.text)
    rows = embedded(answer.text, "moved")
    assert rows["rows_chosen"][0]["recipe"] == policy.choose(tried).words()
    assert rows["rows_risk_bound_0"][0]["risk"] == pytest.approx(float(bounds[0]) / 100)
    assert ("Keep these limits" in answer.text) == (bounds != ("10", "6", "25"))


def test_limits_that_nothing_meets_name_the_nearest(once: Any, swept: Any) -> None:
    answer = plain(once.get("/balance/choice", params={"bounds": ["0.01", "12", "25"]}).text)
    assert "None of 32 trials is inside the limits" in answer
    assert "must be below 0.01 %" in answer
    assert once.get("/balance/choice", params={"bounds": ["", "12", "5"]}).status_code == 204
    assert once.get("/balance/choice", params={"bounds": ["2"]}).status_code == 422
    assert once.get("/balance/choice", params={"bounds": ["200", "1", "5"]}).status_code == 422


def test_kept_limits_are_in_the_policy_and_can_be_undone(draft: Any) -> None:
    draft.post("/balance/limits", {"bounds": ["1.5", "6", "25"]})
    assert draft.policy["limits"] == {"uniques": "< 1.5%", "entropy": "> 6", "revealing_columns": "<= 0.25"}
    draft.post("/undo")
    assert draft.policy["limits"]["uniques"] == "< 0.1"


def test_a_refused_policy_shows_the_refusal(draft: Any, swept: Any) -> None:
    _, _, tried = swept
    draft.post("/balance/limits", {"bounds": ["0.01", "12", "25"]})
    shown = plain(draft.get("/balance").text)
    policy = eq.Policy({"uniques": "< 0.01%", "entropy": "> 12", "revealing_columns": "<= 0.25"})
    assert "Nothing could be released" in shown
    assert "The nearest trial breaks" in shown
    assert "What to decide" in shown
    assert "Next: the report of the refusal" in shown
    for step in choice(tried, policy).nearest.words().split("; "):
        assert step[1:] in shown
    assert shown.count("instead of") == len(choice(tried, policy).moves)
    assert "refused" in plain(draft.get("/balance/why").text)


def test_a_refusal_says_which_limit_would_have_to_be_moved_how_far(draft: Any, swept: Any) -> None:
    _, _, tried = swept
    draft.post("/balance/limits", {"bounds": ["100", "12", "25"]})
    shown = plain(draft.get("/balance").text)
    best = max(trial.scores["entropy"].value for trial in tried)
    assert f"Entropy kept at least {best:.3g}"[:22] in shown
    assert "instead of above 12" in shown


def test_the_choice_shows_its_scores_and_every_step_in_full(once: Any) -> None:
    shown = plain(once.get("/balance").text)
    assert shown.index("(was ") < shown.index("What is done to the data")
    assert "at level" not in shown.partition("What is done to the data")[2].partition("Why this one")[0]


def test_why_is_that_of_the_library(once: Any, swept: Any) -> None:
    job, _, tried = swept
    made = choice(tried, job.policy())
    shown = plain(once.get("/balance/why").text)
    for step in made.steps:
        assert step.words().replace("\xa0", " ") in shown


# One trial ------------------------------------------------------------------------------------------------------------


def test_a_trial_is_held_against_the_original_and_the_choice(once: Any, swept: Any) -> None:
    _, records, tried = swept
    shown = plain(once.get("/balance/trial", params={"at": 3}).text)
    assert tried[3].words() in shown
    for score in tried[3].scores:
        assert value_text(score.value, score.unit).replace("\xa0", " ") in shown
    original = eq.risk.Uniques().measure(records, records)
    assert value_text(original.value, original.unit).replace("\xa0", " ") in shown
    assert "points more" in shown
    assert once.get("/balance/trial", params={"at": 32}).status_code == 422


def test_two_trials_are_compared(once: Any, swept: Any) -> None:
    _, _, tried = swept
    shown = once.get("/balance/trial", params={"at": 3, "pinned": "7"}).text
    assert f"compared with the pinned one: {tried[7].words()}" in plain(shown)
    assert shown.count("/balance/trial/look") == 2
    assert 'id="pinned" name="pinned" value="7"' in shown
    assert "Pinned: open another" in once.get("/balance/trial", params={"at": 3, "pinned": "3"}).text


def test_what_a_trial_does_to_each_variable(once: Any, swept: Any) -> None:
    """Bits by brute force: the entropy of the released categories."""
    _, records, tried = swept
    words = "race at level three groups; salary at level 5000; weights"
    place = next(i for i, t in enumerate(tried) if t.words().startswith(words))
    shown = plain(once.get("/balance/trial/look", params={"at": place}).text)
    released = tried[place].recipe.run(records).collect()
    for column in ("race", "salary"):
        bits = []
        for table in (released, records.collect()):
            share = table[column].value_counts()["count"] / table.height
            bits.append(float(-(share * share.log(2)).sum()))
        assert f"{number(bits[0])} of {number(bits[1])} bits" in shown
    assert "race combined into 3 categories" in shown
    assert "As they are: sex, age, rooms" in shown


def test_a_trial_is_attacked_in_a_run(once: Any) -> None:
    assert "Try to break it" in once.get("/balance/trial/attack", params={"at": 5}).text
    once.post("/balance/trial/attack", {"at": 5})
    run = once.finished("try to break")
    assert run.state == "done", run.error
    shown = plain(once.get("/balance/trial/attack", params={"at": 5}).text)
    assert re.search(r"Knowing sex, race, age and salary, [\d.]+ % of people are linked correctly", shown)
    assert "Try to break it" in once.get("/balance/trial/attack", params={"at": 6}).text


def test_a_trial_becomes_the_only_candidate(draft: Any) -> None:
    draft.post("/balance/trial/use", {"at": 19})
    [only] = draft.policy["candidates"]
    assert [mask["use"] for mask in only["masks"]] == ["recode", "recode", "coarsen_weights", "renumber", "noise"]
    assert "always" not in draft.policy
    assert "What is to be tried was changed" in draft.get("/balance").text
    job = Job.from_plain(tomllib.loads(policy_text(draft.policy)), draft.folder / "policy.toml")
    [recipe] = job.recipes(job.read())
    assert recipe.words().startswith("race at level three groups; salary at level 5000; weights")


# Forms ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("verb", "name", "method"), BY_RECORDS, ids=[name for _, name, _ in BY_RECORDS])
def test_every_form_can_be_drawn(once: Any, verb: str, name: str, method: type) -> None:
    shown = once.get("/balance/form", params={"verb": verb, "name": name})
    assert shown.status_code == 200
    for field in catalogue.form(method):
        assert field.name.replace("_", " ") in shown.text


def mask(workbench: Any, use: str, texts: dict[str, str], picked: list[tuple[str, str]], **more: Any) -> Any:
    data = {"use": use, "names": list(texts), "values": list(texts.values())}
    return workbench.post("/balance/mask", {**data, "picked": [json.dumps(one) for one in picked], **more})


def test_candidates_are_added_changed_and_removed(draft: Any) -> None:
    shown = mask(draft, "noise", {"scale": "0.1 to 0.5 in 3"}, [("columns", "housing_cost"), ("kind", "correlated")])
    assert shown.headers["HX-Trigger"] == "stepped"
    assert draft.policy["candidates"][1] == {
        "masks": [{"use": "noise", "columns": ["housing_cost"], "scale": {"from": 0.1, "to": 0.5, "steps": 3}}
                  | {"kind": "correlated"}]
    }  # fmt: skip
    shown = draft.post("/balance/limit/remove", {"name": "revealing_columns", "item": 0})
    assert "changes values" in plain(shown.text)
    mask(draft, "top_code", {"at": "40"}, [("column", "age")], place="1")
    assert len(draft.policy["candidates"][1]["masks"]) == 2
    form = draft.get("/balance/form", params={"verb": "mask", "candidate": 1, "step": 1}).text
    assert 'value="40"' in form
    mask(draft, "top_code", {"at": "50, 60"}, [("column", "age")], place="1", step="1")
    assert draft.policy["candidates"][1]["masks"][1]["at"] == [50, 60]
    mask(draft, "sample", {"fraction": "0.5"}, [], place="0:then")
    assert draft.policy["candidates"][0]["then"] == [{"use": "sample", "fraction": 0.5}]
    draft.post("/balance/mask/remove", {"candidate": 1, "step": 0})
    draft.post("/balance/mask/remove", {"candidate": 1, "step": 0})
    draft.post("/balance/mask/remove", {"candidate": 0, "step": 0, "steps": "then"})
    assert draft.policy["candidates"] == [{"coarsenings": True}]
    draft.post("/balance/coarsenings", {})
    assert draft.policy["candidates"] == []
    assert "name at least one" in draft.get("/balance").text
    assert draft.post("/balance/try").status_code == 422


def test_a_method_that_cannot_be_is_refused_with_every_problem(draft: Any) -> None:
    before = draft.policy
    answer = mask(draft, "noise", {"scale": "-1"}, [])
    assert answer.status_code == 422
    assert "noise needs columns" in answer.text
    assert mask(draft, "no such", {}, []).status_code == 422
    assert mask(draft, "suppress", {"rule": "min-count:3"}, []).status_code == 422
    assert mask(draft, "noise", {"scale": "0.1"}, [], place="7").status_code == 422
    assert draft.post("/balance/mask", {"use": "noise", "names": ["scale"]}).status_code == 422
    assert draft.post("/balance/mask", {"use": "noise", "picked": ["x"]}).status_code == 422
    assert draft.policy is before


def test_limits_are_added_and_removed(draft: Any) -> None:
    data = {"use": "uniques", "names": ["k"], "values": ["3"], "sign": "<=", "bound": "5", "reason": "house rule"}
    draft.post("/balance/limit", data)
    assert draft.policy["limits"]["uniques(k=3)"] == {"limit": "<= 5%", "reason": "house rule"}
    assert "house rule" in draft.get("/balance").text
    draft.post("/balance/limit/remove", {"name": "uniques(k=3)", "item": 0})
    assert "uniques(k=3)" not in draft.policy["limits"]
    draft.post("/balance/limit", {"use": "marginals"})
    assert draft.policy["measures"][-1] == "marginals"
    draft.post("/balance/measure/remove", {"name": "marginals"})
    assert "marginals" not in draft.policy["measures"]
    answer = draft.post("/balance/limit", {"use": "uniques", "bound": "200"})
    assert answer.status_code == 422
    assert draft.post("/balance/limit", {"use": "uniques", "bound": "many"}).status_code == 422
    assert draft.post("/balance/limit/remove", {"name": "none", "item": 0}).status_code == 422


def test_scenarios_presets_and_settings(draft: Any) -> None:
    known = [json.dumps(["known", column]) for column in ("age", "sex")]
    draft.post("/balance/scenario", {"name": "neighbour", "picked": known, "reason": "sees people"})
    assert draft.policy["scenarios"] == [{"name": "neighbour", "known": ["age", "sex"], "reason": "sees people"}]
    assert draft.post("/balance/scenario", {"name": "neighbour", "picked": known}).status_code == 422
    assert draft.post("/balance/scenario", {"name": "nobody"}).status_code == 422
    draft.post("/balance/scenario/remove", {"place": 0})
    assert "scenarios" not in draft.policy
    draft.post("/balance/preset", {"name": "ema"})
    assert draft.policy["extends"] == "ema"
    assert presets()["ema"].source in unescape(draft.get("/balance").text)
    draft.post("/balance/preset", {"name": ""})
    assert "extends" not in draft.policy
    draft.post("/balance/settings", {"prefer": "risk", "search": "adaptive", "budget": "10", "draws": "3"})
    assert draft.policy["choose"] == {"prefer": "risk"}
    assert draft.policy["search"] == {"search": "adaptive", "budget": 10}
    assert draft.policy["draws"] == 3


def test_a_policy_of_a_table_is_sent_to_its_page(draft: Any) -> None:
    table = {"by": ["region"], "value": "housing_cost"}
    draft.office.edit(None, "A table", "open", lambda d: {**d, "policy": {**d["policy"], "table": table}})
    assert "under Tables" in draft.get("/balance").text
    assert draft.post("/balance/try").status_code == 422
