"""Bench and runner: nothing is done twice, prefixes are shared, several processes give what one gives."""

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

import equipoise as eq
from equipoise.data.records import Records
from equipoise.ground import system
from equipoise.ground.errors import Cancelled
from equipoise.ground.randomness import Draws
from equipoise.masks import Noise, Recode, TopCode
from equipoise.provenance.journal import Journal
from equipoise.trials import runner as running
from equipoise.trials.runner import Runner
from equipoise.trials.scorer import Bench
from equipoise.trials.time_left import Pace
from equipoise.trials.trial import Trial

MEASURES = (eq.attacks.Nearest(("salary", "age")), eq.utility.MeanSquare(("salary",)))


@dataclass(frozen=True)
class Witnessed:
    """A mask that counts how often it runs."""

    inner: Any
    ran: ClassVar[list[Any]] = []

    def apply(self, data: Records, draws: Draws) -> Records:
        self.ran.append(self.inner)
        found: Records = self.inner.apply(data, draws)
        return found


@pytest.fixture(autouse=True)
def _none_ran() -> None:
    Witnessed.ran.clear()


def noises(*scales: float, seed: int = 5) -> list[eq.Recipe]:
    return [eq.Recipe([Recode("area", "2"), Noise(("salary",), scale)], seed) for scale in scales]


# --- what recipes share -------------------------------------------------------------------------------------------


def test_shared_masks_run_once(people_records: eq.Records) -> None:
    """The same scores as by running each recipe, the first masks run once for all; with a seed of its own, again."""
    first, second = Witnessed(Noise(("salary",), 0.5)), Witnessed(TopCode("age", 70))
    recipes = [eq.Recipe([first, second, Noise(("salary",), scale)], 5) for scale in (0.1, 0.2, 0.3)]
    bench = Bench(people_records, MEASURES)
    found = [bench.score(recipe, 1) for recipe in recipes]
    assert [len(Witnessed.ran), len(set(map(repr, Witnessed.ran)))] == [2, 2]
    by_hand = [[m.measure(r.run(people_records, 1), people_records).value for m in MEASURES] for r in recipes]
    assert [[score.value for score in scores] for scores in found] == by_hand
    Witnessed.ran.clear()
    bench.score(eq.Recipe([first, second, Noise(("salary",), 0.1)], 6), 1)
    bench.score(recipes[0], 2)
    assert len(Witnessed.ran) == 4


def test_coarsened_records_are_shared_between_seeds_and_draws(
    people_records: eq.Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[int] = []
    real = Recode.apply
    monkeypatch.setattr(Recode, "apply", lambda self, data, draws: ran.append(1) or real(self, data, draws))
    bench = Bench(people_records, MEASURES)
    for recipe in (*noises(0.1, 0.2), *noises(0.1, seed=6)):
        for draw in range(2):
            bench.score(recipe, draw)
    assert len(ran) == 1


def test_without_room_nothing_is_kept(people_records: eq.Records) -> None:
    bench = Bench(people_records, MEASURES, room=0)
    small, large = bench.score(noises(0.1)[0]), Bench(people_records, MEASURES).score(noises(0.1)[0])
    assert [s.value for s in small] == [s.value for s in large]
    assert not bench.cache


def test_what_was_not_asked_for_longest_goes_first(people_records: eq.Records) -> None:
    bench = Bench(people_records, MEASURES, room=10)
    for name in "abc":
        bench.keep(name, name, 3)
    assert bench.recall("a") == "a"
    bench.keep("d", "d", 4)
    assert [bench.recall(name) for name in "abcd"] == ["a", None, "c", "d"]
    bench.keep("huge", "huge", 11)
    assert bench.recall("huge") is None


def test_a_recipe_is_tried_once(people_records: eq.Records) -> None:
    """Equal recipes are one; another seed of a random mask is another."""
    mask = Witnessed(Noise(("salary",), 0.2))
    with Runner(people_records, MEASURES) as runner:
        same = runner.run([eq.Recipe([mask], 5), eq.Recipe([mask], 5)], 2)
        assert len(Witnessed.ran) == 2
        runner.run([eq.Recipe([mask], 6)], 2)
        assert len(Witnessed.ran) == 4
        more = runner.run([eq.Recipe([mask], 5)], 3)
    assert len(Witnessed.ran) == 5
    assert isinstance(same[0], Trial)
    assert same[0] == same[1]
    assert isinstance(more[0], Trial)
    assert more[0].draws[:2] == same[0].draws


# --- several processes --------------------------------------------------------------------------------------------


def test_two_processes_give_what_one_gives(people_records: eq.Records, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same trials to the last digit, in the same order; recipes on cells stay here."""
    monkeypatch.setattr(running, "MIN_SECONDS_LEFT", 0.0)
    recipes = [*noises(0.1, 0.2, 0.4, 0.8, 1.2), eq.Recipe([Recode("age", "10")], 5)]
    one = eq.sweep(people_records, recipes, MEASURES, draws=2)
    with Runner(people_records, MEASURES, processes=2, total=len(recipes)) as runner:
        two = runner.run(recipes, 2)
        assert runner.pool is not None
    assert [t.scores for t in two if isinstance(t, Trial)] == [t.scores for t in one]
    assert [t.draws for t in two if isinstance(t, Trial)] == [t.draws for t in one]


def test_processes_are_not_started_for_little(people_records: eq.Records) -> None:
    with Runner(people_records, MEASURES, processes=2, total=4) as runner:
        runner.run(noises(0.1, 0.2, 0.3, 0.4))
        assert runner.pool is None


def test_what_cannot_be_sent_stays_here(people_records: eq.Records, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that do not come up are no reason to fail."""

    def fail(*args: Any) -> Any:
        raise OSError("no more processes")

    monkeypatch.setattr(running, "MIN_SECONDS_LEFT", 0.0)
    monkeypatch.setattr(system, "workers", fail)
    with Runner(people_records, MEASURES, processes=2, total=5) as runner:
        assert len(runner.run(noises(0.1, 0.2, 0.3, 0.4, 0.5))) == 5
        assert runner.processes == 1


# --- journal, progress --------------------------------------------------------------------------------------------


def test_what_the_journal_knows_is_not_run(people_records: eq.Records, tmp_path: Any) -> None:
    mask = Witnessed(Noise(("salary",), 0.2))
    recipe = eq.Recipe([mask], 5)
    trials = []
    for _ in range(2):
        journal = Journal.resume(tmp_path / "journal", lambda key: "data", "roles", 5)
        monkey = journal.name(recipe)
        assert monkey == journal.name(recipe)
        with Runner(people_records, MEASURES, journal=journal) as runner:
            trials += runner.run([recipe], 3)
            assert runner.evaluated == 3
            assert runner.seconds > 0
    assert len(Witnessed.ran) == 3
    assert trials[0] == trials[1]


def test_stopping_keeps_what_was_done(people_records: eq.Records, tmp_path: Any) -> None:
    journal = Journal.resume(tmp_path / "journal", lambda key: "data", "roles", 5)
    with (
        pytest.raises(Cancelled, match="2 of 4 done"),
        Runner(
            people_records, MEASURES, journal=journal, total=4, progress=lambda done, total, what: done < 2
        ) as runner,
    ):
        runner.run(noises(0.1, 0.2, 0.3, 0.4))
    assert len(Journal.resume(tmp_path / "journal", lambda key: "data", "roles", 5).known) == 2


def test_the_estimate_is_by_kind_of_recipe() -> None:
    """Slow kinds that wait count as slow; a kind not seen yet as the slowest; two workers halve it."""
    pace = Pace()
    assert pace.seconds_left({"noise": 3}) is None
    for kind, seconds in (("noise", 2.0), ("noise", 4.0), ("recode", 0.1)):
        pace.took(kind, seconds)
    assert pace.seconds_left({"noise": 10, "recode": 10}) == pytest.approx(31.0)
    assert pace.seconds_left({"pram": 10}) == pytest.approx(30.0)
    pace.workers = 2
    assert pace.seconds_left({"pram": 10}) == pytest.approx(15.0)
    assert pace.words({"pram": 1}) == ""
    assert pace.words({"pram": 100}) == "about 2 min left"
