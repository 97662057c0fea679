"""Moved records that give themselves away: none where other columns know nothing, nearly all where one is a copy."""

from collections.abc import Iterator

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.ground.randomness import Draws
from equipoise.masks import Pram
from equipoise.risk import Recognisable


def file(size: int, copy: bool) -> eq.Records:
    """Pairs of keys that are nearly all unique; `other` is a copy of a key, or has nothing to do with it."""
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 400, size), rng.integers(0, 40, size)
    other = a.astype(np.float64) if copy else rng.standard_normal(size)
    return eq.read(pl.DataFrame({"id": range(size), "a": a, "b": b, "other": other}), eq.Roles(["a", "b"], id="id"))


@pytest.fixture
def one_thread() -> Iterator[None]:
    """scikit-learn on one thread: two test workers with two threads each wait for each other."""
    pytest.importorskip("sklearn", reason="Recognisable was not tried: scikit-learn is not installed.")
    threads = pytest.importorskip("threadpoolctl")
    with threads.threadpool_limits(1):
        yield


@pytest.mark.usefixtures("one_thread")
def test_nothing_to_recognise() -> None:
    """Other columns independent of the keys: d is near 0, and xi(d) near xi."""
    records = file(3000, copy=False)
    score = Recognisable().measure(Pram(0.8).apply(records, Draws(1)), records)
    assert score.value <= 0.03
    assert score.number is not None
    assert score.number > 500
    assert score.interval is not None
    assert score.interval[0] <= score.value <= score.interval[1]


@pytest.mark.usefixtures("one_thread")
def test_a_copy_of_a_key_gives_movers_away() -> None:
    """A column that is a copy of a key: d is near 1, and the note says what becomes of the bound."""
    records = file(3000, copy=True)
    score = Recognisable().measure(Pram(0.8).apply(records, Draws(1)), records)
    assert score.value > 0.8
    bound = 0.8 / (0.8 + 0.2 * (1 - score.value))
    assert score.notes == (f"The bound of 0.8 becomes {bound:.4g} against this intruder.",)


def test_too_few_moved_records() -> None:
    """A file that was not moved, and one with a handful of movers: said, not guessed."""
    records = file(4000, copy=False)
    score = Recognisable().measure(records, records)
    assert score.value == 0
    assert "Fewer than ten" in score.notes[0]


@pytest.mark.parametrize("alarm", [0, 1, 5])
def test_alarm_is_a_share(alarm: float) -> None:
    with pytest.raises(eq.ParameterError):
        Recognisable(alarm=alarm)
