"""Who is recognised by other columns after Pram: nobody beyond the bound, nearly all, or just what enumeration says."""

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.ground.randomness import Draws
from equipoise.masks import Noise, Pram, Recode
from equipoise.risk import MatchProbability, Recognisable


def file(size: int, copy: bool) -> eq.Records:
    """Pairs of keys that are nearly all unique; `other` is a copy of a key, or has nothing to do with it."""
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 400, size), rng.integers(0, 40, size)
    other = a.astype(np.float64) if copy else rng.standard_normal(size)
    return eq.read(pl.DataFrame({"id": range(size), "a": a, "b": b, "other": other}), eq.Roles(["a", "b"], id="id"))


@pytest.fixture
def learn() -> None:
    pytest.importorskip("sklearn", reason="Recognisable was not tried: scikit-learn is not installed.")


@pytest.mark.usefixtures("learn")
@pytest.mark.parametrize("method", ["blocks", "nayak"])
def test_nothing_to_recognise(method: str) -> None:
    """Other columns independent of the keys: the bound of the law, and no more than chance above it at worst."""
    records = file(400, copy=False)
    score = Recognisable().measure(Pram(0.8, method=method).apply(records, Draws(1)), records)  # type: ignore[arg-type]
    assert score.value == pytest.approx(0.8, abs=0.01)
    assert score.baseline == pytest.approx(0.8, abs=1e-3)
    assert score.detail["risk"].max() < 0.9  # type: ignore[operator]


@pytest.mark.usefixtures("learn")
def test_a_copy_of_a_key_gives_everybody_away() -> None:
    """A column that is a copy of a key: moved or not, people are recognised."""
    records = file(2000, copy=True)
    released = Pram(0.5).apply(records, Draws(1))
    score = Recognisable().measure(released, records)
    assert score.value > 0.9
    assert score.interval is not None
    assert score.interval[0] <= score.value <= score.interval[1]
    assert score.by_record().height == 2000
    assert score.by_record()["risk"].max() == pytest.approx(score.detail["risk"].max())
    assert Recognisable(columns=("b",)).measure(released, records).value == pytest.approx(0.5), "keys are no others"


@pytest.mark.usefixtures("learn")
@pytest.mark.parametrize("sign", [1, -1])
def test_a_column_that_follows_a_key_closely(sign: int) -> None:
    """Every key and every value of the column stands once: only their ranks show that one is the other."""
    a = np.random.default_rng(2).permutation(300)
    records = eq.read(pl.DataFrame({"a": a, "y": sign * (a + 0.5)}), eq.Roles("a"))
    assert Recognisable().measure(Pram(0.5).apply(records, Draws(1)), records).value > 0.95


@pytest.mark.parametrize("xi", [0.3, 0.5, 0.8])
def test_keys_alone(xi: float) -> None:
    """Where nothing else is released, the number is the bound by the law of the mask."""
    records = file(500, copy=False)
    keys = eq.read(records.collect("id", "a", "b"), records.roles)
    released = Pram(xi).apply(keys, Draws(1))
    score, bound = Recognisable().measure(released, keys), MatchProbability().measure(released, keys)
    assert score.value == pytest.approx(bound.value)


def test_keys_that_were_not_moved() -> None:
    """A sample unique of a file that is as it was, or coarsened, is recognised for certain; else one in so many."""
    records = file(500, copy=False)
    assert Recognisable().measure(records, records).value == pytest.approx(1.0)
    pairs = eq.read(pl.DataFrame({"a": [1, 1, 2, 2, 2], "x": range(5)}), eq.Roles("a"))
    assert Recognisable().measure(pairs, pairs).value == pytest.approx(0.5)


@pytest.mark.usefixtures("learn")
def test_other_masks_beside() -> None:
    """Recodes before and noise on other columns do not stand in the way; keys changed afterwards do."""
    roles = eq.Roles(["a", "b"], id="id", hierarchies={"a": eq.Hierarchy.intervals([10])})
    records = eq.read(file(600, copy=True).collect(), roles)
    masks = (Recode("a", "10"), Pram(0.5), Noise(("other",), 0.1))
    released = eq.Recipe(masks, 1).run(records)
    assert Recognisable().measure(released, records).value > 0.8
    late = eq.Recipe((Pram(0.5), Recode("a", "10")), 1).run(records)
    with pytest.raises(eq.ParameterError, match="after Pram"):
        Recognisable().measure(late, records)


@pytest.mark.usefixtures("learn")
def test_households_move_together() -> None:
    """The unit is the household: what its members' other columns say is added up."""
    rng = np.random.default_rng(7)
    homes = np.repeat(np.arange(300), 2)
    age = rng.integers(0, 60, 600)
    table = pl.DataFrame({"home": homes, "age": age, "wage": age * 100 + rng.integers(0, 300, 600)})
    records = eq.read(table, eq.Roles("age", household="home"))
    score = Recognisable().measure(Pram(0.5).apply(records, Draws(1)), records)
    assert score.value > 0.9
    assert score.by_record().height == 600


def test_an_unknown_column_is_refused() -> None:
    records = file(50, copy=False)
    with pytest.raises(eq.RolesError):
        Recognisable(columns=("elsewhere",)).measure(Pram(0.5).apply(records, Draws(1)), records)
