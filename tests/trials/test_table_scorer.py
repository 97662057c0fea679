"""Searching tables: stopped and gone on, adaptive or all, draws counted once, refusals in the same words."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import tomli_w

import equipoise as eq
from equipoise.provenance.journal import beside
from equipoise.releases.table_release import TableRelease
from equipoise.search.explain_choice import refusal
from equipoise.tables import Round, Suppress
from equipoise.trials.runner import Runner
from equipoise.trials.table_scorer import drawn_once
from equipoise.trials.trial import LeftOut, Trial

EXPOSED = "exposed(rule='p_percent')"
MASKS = [
    {"masks": [{"use": "suppress", "rule": ["p-percent:10%", "p-percent:20%", "min-count:3"]}]},
    {"masks": [{"use": "round", "base": list(range(5, 305, 30))}]},
]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    pl.DataFrame(
        {
            "region": rng.choice(["n1", "n2", "s1", "s2"], 300, p=[0.5, 0.3, 0.15, 0.05]),
            "trade": rng.choice(["A1", "A2", "B1", "B2", "C1"], 300, p=[0.45, 0.3, 0.15, 0.07, 0.03]),
            "turnover": np.ceil(rng.lognormal(3, 1.6, 300)).astype(np.int64),
        }
    ).write_csv(tmp_path / "firms.csv")
    return tmp_path


def write(folder: Path, **changes: Any) -> Path:
    plain: dict[str, Any] = {
        "data": {"path": "firms.csv"},
        "table": {"by": ["region", "trade"], "value": "turnover"},
        "limits": {EXPOSED: {"limit": "<= 0", "reason": "the statistics act"}, "distance": "< 30%"},
        "candidates": MASKS[:1],
    }
    path = folder / "policy.toml"
    path.write_text(tomli_w.dumps(plain | changes), encoding="utf-8")
    return path


def made(path: Path, out: Path, **options: Any) -> TableRelease:
    found = eq.balance(path, out=out, **options)
    assert isinstance(found, TableRelease)
    return found


@pytest.fixture
def applied(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The rules that suppressions were run for."""
    seen: list[str] = []
    run = Suppress.apply

    def counted(self: Suppress, *args: Any) -> Any:
        seen.append(repr(self.rule))
        return run(self, *args)

    monkeypatch.setattr(Suppress, "apply", counted)
    return seen


def test_a_stopped_sweep_keeps_what_was_done(here: Path, applied: list[str]) -> None:
    """The second run tries what was left, and ends as one that was never stopped."""
    path, folder = write(here), here / "out"
    with pytest.raises(eq.Cancelled, match="run it again to go on"):
        made(path, folder, progress=lambda done, total, what: done < 2)
    assert len(applied) == 2
    lines = [json.loads(line) for line in beside(folder).read_text(encoding="utf-8").splitlines()]
    assert len(lines) == 3
    assert not folder.exists()
    found = made(path, folder)
    assert applied[2:3] == [repr(eq.rules.MinCount(3))]
    assert len(applied) == 4
    assert str(found.table.seed) == lines[0]["seed"]
    assert not beside(folder).exists()
    whole = made(path, here / "whole")
    assert whole.table.public.equals(found.table.public)
    assert [t.scores for t in whole.comparison.trials] == [t.scores for t in found.comparison.trials]


@pytest.mark.parametrize("changes", [{"table": {"by": ["region"], "value": "turnover"}}, {"measures": ["suppressed"]}])
def test_what_scores_depend_on_makes_a_new_journal(here: Path, changes: Any, applied: list[str]) -> None:
    with pytest.raises(eq.Cancelled):
        made(write(here), here / "out", progress=lambda done, total, what: done < 2)
    with pytest.raises(eq.Cancelled):
        made(write(here, **changes), here / "out", progress=lambda done, total, what: done < 2)
    assert len(applied) == 4


def test_adaptive_finds_what_the_grid_finds_with_half_the_trials(here: Path) -> None:
    limits = {EXPOSED: "<= 0", "distance": "< 30%"}
    every = made(write(here, candidates=MASKS, limits=limits), here / "every")
    how = {"search": "adaptive", "budget": 7}
    some = made(write(here, candidates=MASKS, limits=limits, search=how), here / "some")
    assert (len(every.comparison.trials), len(some.comparison.trials)) == (13, 7)
    best, found = (one.trial.scores["distance"].value for one in (every, some))
    assert found <= best * 1.25
    again = made(some.private / "policy.toml", here / "again")
    assert again.table.public.equals(some.table.public)


def test_sure_methods_are_drawn_once(here: Path) -> None:
    """An adaptive search with draws ends, and repeats only what draws."""
    masks = [
        {"masks": [{"use": "cell_key", "most": [3, 5]}]},
        {"masks": [{"use": "round", "base": 7, "aim": "random"}]},
    ]
    limits = {"exposed(rule='min-count:2')": "<= 1", "distance": "< 90%"}
    path = write(here, table={"by": ["region", "trade"]}, candidates=masks, limits=limits, draws=3,
                 search={"search": "adaptive"})  # fmt: skip
    found = made(path, here / "out")
    assert {len(t.draws) for t in found.comparison.trials if t.recipe.family == "cell key"} == {0}
    assert {len(t.draws) for t in found.comparison.trials if t.recipe.family == "round"} <= {0, 3}


def test_a_sweep_in_python(here: Path) -> None:
    table = eq.table(eq.read(here / "firms.csv", eq.Roles()), ["region", "trade"], "turnover")
    recipes = [eq.Recipe((Round(base),), 1) for base in range(5, 305, 15)]
    scales = [eq.tables.Exposed(eq.rules.PPercent(0.1)), eq.tables.Distance()]
    found = eq.sweep(table, recipes, scales, search="adaptive", budget=6)
    whole = eq.sweep(table, recipes, scales)
    assert len(found) == 6
    assert {t.words(): t.scores for t in found}.items() <= {t.words(): t.scores for t in whole}.items()
    with pytest.raises(eq.ParameterError, match="in one process"):
        eq.sweep(table, recipes, scales, processes=2)


def test_none_is_made_twice_and_what_fails_is_left_out(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = eq.table(eq.read(here / "firms.csv", eq.Roles()), "region", "turnover")
    runner = Runner(table, [eq.tables.Distance()])
    first = runner.run([eq.Recipe((Round(5),), 1), eq.Recipe((Round(5),), 1)])
    assert runner.pace.timed == 1
    assert isinstance(first[0], Trial)

    def fails(*args: Any) -> Any:
        raise eq.InfeasibleError("It cannot be done.")

    monkeypatch.setattr(Round, "apply", fails)
    assert runner.run([eq.Recipe((Round(9),), 1)]) == [LeftOut("round to 9", "It cannot be done.")]
    assert drawn_once(eq.Recipe())


def test_a_refusal_is_in_the_words_of_records(here: Path) -> None:
    path = write(here, limits={EXPOSED: {"limit": "<= 0", "reason": "the statistics act"}, "distance": "< 0.1%"})
    with pytest.raises(eq.RefusedError, match="None of 3 candidates meets the limits") as caught:
        made(path, here / "out")
    about = caught.value.about
    assert about.table
    assert str(caught.value) == refusal(about.trials, about.policy)
    assert "would pass" in str(caught.value)
    assert sorted(p.name for p in here.iterdir()) == ["firms.csv", "policy.toml"]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"budget": 5}, 'search.budget: A grid tries all candidates: say search = "adaptive"'),
        ({"seconds": 5.0}, "search.seconds: A grid tries all"),
        ({"search": "adaptive", "processes": 2}, "search.processes: The methods for a table are tried in one process"),
    ],
)
def test_what_is_not_there_is_said(here: Path, how: Any, words: str) -> None:
    with pytest.raises(eq.ParameterError, match=words):
        eq.balance(write(here, search=how))
