"""Progress: one seam, which reports and can stop the work."""

import threading

import pytest

import equipoise as eq
from equipoise.ground import progress as progress_module
from equipoise.ground.progress import Stoppable, report, signs_of_life, tracked


def test_reports_before_the_first_and_after_each() -> None:
    seen: list[tuple[int, int, str]] = []
    assert list(tracked([1, 2, 3], "things", lambda *args: seen.append(args))) == [1, 2, 3]
    assert seen == [(i, 3, "things") for i in range(4)]


def test_no_callback_is_fine() -> None:
    assert list(tracked([1, 2], "things", None)) == [1, 2]


def test_false_stops_with_words_and_exit_code() -> None:
    """House: exit code 130 for interrupted; nothing was written."""
    done: list[int] = []
    with pytest.raises(eq.Cancelled, match=r"things \(2 of 5 done\)") as caught:
        done.extend(tracked(range(5), "things", lambda i, total, what: i < 2))
    assert caught.value.exit_code == 130


def test_only_false_stops() -> None:
    """A callback that returns nothing, or 0, goes on."""
    assert list(tracked([1, 2], "things", lambda *args: 0)) == [1, 2]


def test_silent_work_shows_signs_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last report comes again from a thread; a stop asked for there is answered at the next report."""
    monkeypatch.setattr(progress_module, "SIGN_OF_LIFE_SECONDS", 0.01)
    again, seen = threading.Event(), []

    def tell(*step: object) -> bool:
        seen.append(step)
        if len(seen) > 1:
            again.set()
        return len(seen) == 1

    with signs_of_life(tell, "solving") as alive:
        report(alive, 1, 2, "solving")
        assert again.wait(60)
        with pytest.raises(eq.Cancelled):
            report(alive, 1, 2, "solving")
    assert set(seen) == {(1, 2, "solving")}
    with signs_of_life(None, "solving") as nobody:
        assert nobody is None


def test_a_stop_is_remembered_and_raised_once() -> None:
    stoppable = Stoppable(lambda *_: False)
    with pytest.raises(eq.Cancelled):
        report(stoppable, 0, 1, "one")
    report(stoppable, 0, 1, "two")
    assert stoppable.stopped
    patient = Stoppable(lambda *_: False)
    report(patient.going_on, 0, 1, "needed")
    assert patient.stopped


def test_long_work_hands_it_through(people_records: eq.Records) -> None:
    seen: list[tuple[int, int]] = []
    recipes = eq.coarsenings(people_records)[:5]
    eq.sweep(
        people_records, recipes, [eq.risk.Uniques()], progress=lambda done, total, what: seen.append((done, total))
    )
    assert seen == [(i, 5) for i in range(6)]
    with pytest.raises(eq.Cancelled):
        eq.sweep(people_records, recipes, [eq.risk.Uniques()], progress=lambda done, total, what: done < 3)
    with pytest.raises(eq.Cancelled):
        eq.assess(people_records, [eq.risk.Uniques()], progress=lambda *args: False)
