"""The log-linear risk against populations whose truth is known, and what it takes and refuses."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.randomness import Draws
from equipoise.risk import LogLinear

SIZES = (20, 2, 12, 6, 15, 5)
KEYS = tuple("abcdef")
JOINED = ((0, 5), (3, 4), (0, 1))
PEOPLE = 60_000


@dataclass(frozen=True, eq=False)
class World:
    """People by cell, and which of them are in the sample."""

    people: Integers
    sampled: Integers

    @property
    def cells(self) -> Integers:
        return self.people[self.sampled]

    def records(self, cells: Integers | None = None, **roles: str) -> eq.Records:
        codes = np.unravel_index(self.cells if cells is None else cells, SIZES)
        table = pl.DataFrame(dict(zip(KEYS, codes, strict=True)))
        return eq.read(table.with_columns(w=pl.lit(len(self.people) / table.height)), eq.Roles(KEYS, **roles))  # type: ignore[arg-type]

    def truth(self) -> tuple[int, float]:
        """Population uniques and correct matches among the sample uniques."""
        counts = np.bincount(self.people)
        values, times = np.unique(self.cells, return_counts=True)
        sizes = counts[values[times == 1]]
        return int((sizes == 1).sum()), float((1 / sizes).sum())


def law(draw: np.random.Generator, joined: tuple[tuple[int, int], ...]) -> Floats:
    chances = np.ones(SIZES)
    for axis, size in enumerate(SIZES):
        chances = chances * draw.dirichlet(np.full(size, 1.5)).reshape([-1 if a == axis else 1 for a in range(6)])
    for one, two in joined:
        effect = np.exp(draw.normal(0, 1, (SIZES[one], SIZES[two])))
        chances = chances * effect.reshape([SIZES[a] if a in (one, two) else 1 for a in range(6)])
    return np.asarray(chances.ravel() / chances.sum())


@cache
def world(seed: int, fraction: float, joined: tuple[tuple[int, int], ...] = ()) -> World:
    draw = np.random.default_rng(seed)
    chances = law(draw, joined)
    people = draw.choice(len(chances), PEOPLE, p=chances)
    return World(people, np.flatnonzero(draw.random(PEOPLE) < fraction))


@pytest.mark.parametrize("fraction", [0.02, 0.1])
@pytest.mark.parametrize("joined", [(), JOINED])
def test_the_mean_over_populations_is_the_truth(fraction: float, joined: tuple[tuple[int, int], ...]) -> None:
    """Where the model holds, both numbers within 10 %; with the sample's mean for the population's, twice and more."""
    names = tuple(f"{KEYS[one]}*{KEYS[two]}" for one, two in joined)
    worlds = [world(seed, fraction, joined) for seed in range(6)]
    true = np.mean([one.truth() for one in worlds], axis=0)
    measure = LogLinear(names or "main", fraction=fraction)
    found = [measure.estimate(one.records()) for one in worlds]
    mean = np.mean([(one.population_uniques, one.correct_matches) for one in found], axis=0)
    assert mean == pytest.approx(true, rel=0.1)
    fitted = [measure.measure(one.records(), one.records()).detail for one in worlds]
    sample = [(1 - fraction) * fraction * detail.filter(pl.col("n") == 1)["mean"].to_numpy() for detail in fitted]
    assert np.mean([((1 - np.exp(-x)) / x).sum() for x in sample]) > 1.4 * true[1]


def test_the_check_finds_what_is_missing() -> None:
    """Main effects overstate the risk and the check says so; the search finds a model that does not."""
    one = world(0, 0.1, JOINED)
    records = one.records()
    simple = LogLinear(fraction=0.1).estimate(records)
    best = LogLinear("best", fraction=0.1).estimate(records)
    _, true = one.truth()
    assert simple.statistic is not None
    assert simple.statistic > 10
    assert simple.correct_matches > 1.05 * true
    assert best.statistic is not None
    assert best.statistic <= 1.96
    assert best.correct_matches == pytest.approx(true, rel=0.05)
    assert set(best.interactions) <= {"a*f", "d*e", "a*b"}
    told = LogLinear(fraction=0.1).measure(records, records).notes
    assert "too simple, which overstates the risk" in told[-1]


def test_score_and_detail() -> None:
    one = world(1, 0.1)
    records = one.records(weight="w")
    score, found = LogLinear().measure(records, records), LogLinear().estimate(records)
    assert found.fraction == pytest.approx(len(one.sampled) / PEOPLE)
    assert score.number == pytest.approx(found.correct_matches)
    assert score.value == pytest.approx(found.correct_matches / len(one.sampled))
    detail = score.detail
    assert detail.filter(pl.col("n") > 1)["risk"].sum() == 0
    assert detail["unique"].sum() == pytest.approx(found.population_uniques)
    assert (detail["unique"] <= detail["risk"]).all()
    assert found.sample_uniques == (detail["n"] == 1).sum()
    assert f"{found.sample_uniques:,} sample uniques" in score.notes[0]


def test_a_fit_that_does_not_converge_says_so() -> None:
    """Opposite corners of a cube are empty: the maximum has means of 0 that no margin shows, and fitting creeps to it.

    Before, the means where it ended were taken without a word. Now no record has a risk below that of main effects.
    """
    corners = [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)][1:-1]
    sizes = [9, 7, 1, 8, 1, 6]
    table = pl.DataFrame(
        [row for row, n in zip(corners, sizes, strict=True) for _ in range(n)], ["a", "b", "c"], orient="row"
    )
    records = eq.read(table, eq.Roles(["a", "b", "c"]))
    simple, joined = (LogLinear(kind, fraction=0.1).measure(records, records) for kind in ("main", "all"))
    assert any("did not converge" in note for note in joined.notes)
    assert not any("did not converge" in note for note in simple.notes)
    assert (joined.by_record()["risk"] >= simple.by_record()["risk"] - 1e-12).all()


def test_a_census_has_nothing_to_estimate() -> None:
    table = pl.DataFrame({"a": [1, 1, 2], "b": [1, 1, 1]})
    records = eq.read(table, eq.Roles(["a", "b"]))
    found = LogLinear("best").estimate(records)
    assert (found.population_uniques, found.correct_matches, found.statistic) == (1, 1, None)
    assert "whole population" in LogLinear().measure(records, records).notes[0]


def scrambled(one: World, stay: tuple[Floats, ...], seed: int) -> Integers:
    """The cells of sampled people after each key was changed by its matrix."""
    draw = np.random.default_rng(seed)
    codes = list(np.unravel_index(one.cells, SIZES))
    for axis, matrix in enumerate(stay):
        reach = np.cumsum(matrix, axis=1)[codes[axis]]
        codes[axis] = (draw.random((len(reach), 1)) > reach[:, :-1]).sum(axis=1)
    return np.ravel_multi_index(tuple(codes), SIZES)


def invariant(counts: Floats, strength: float) -> Floats:
    """A matrix that leaves the expected counts as they are: redraw from the column itself."""
    return (1 - strength) * np.eye(len(counts)) + strength * np.tile(counts / counts.sum(), (len(counts), 1))


@pytest.mark.parametrize("fraction", [0.02, 0.1])
def test_misclassified_keys(fraction: float) -> None:
    """A match with a released unique is right if its keys are true and, of F people with them, it is that one."""
    true, found, ignored = [], [], []
    for seed in range(6):
        one = world(seed, fraction)
        codes = np.unravel_index(one.people, SIZES)
        matrices = tuple(
            invariant(np.bincount(c, minlength=s).astype(float), 0.1) for c, s in zip(codes, SIZES, strict=True)
        )
        after = scrambled(one, matrices, seed)
        _, where, times = np.unique(after, return_index=True, return_counts=True)
        alone = where[times == 1]
        kept = alone[after[alone] == one.cells[alone]]
        true.append((1 / np.bincount(one.people)[one.cells[kept]]).sum())
        known = {key: matrix.tolist() for key, matrix in zip(KEYS, matrices, strict=True)}
        records = one.records(after)
        found.append(LogLinear(fraction=fraction, misclassification=known).estimate(records).correct_matches)  # type: ignore[arg-type]
        ignored.append(LogLinear(fraction=fraction).estimate(records).correct_matches)
    assert np.mean(found) == pytest.approx(np.mean(true), rel=0.1)
    assert np.mean(ignored) > 1.4 * np.mean(true)


def test_misclassification_by_probability_key_and_law() -> None:
    records = world(2, 0.1).records()
    plain = LogLinear(fraction=0.1).estimate(records).correct_matches
    half = LogLinear(fraction=0.1, misclassification=0.5).estimate(records).correct_matches
    keyed = LogLinear(fraction=0.1, misclassification=(("a", 0.5),)).estimate(records).correct_matches
    assert half == pytest.approx(keyed)
    assert 0.45 * plain < half < 0.5 * plain
    mask = eq.masks.PramMatrix("c", diagonal=0.8)
    released = mask.apply(records, Draws(1))
    law = released.history[-1].detail
    given = {"c": law.tables[0].tolist()}
    by_law = LogLinear(fraction=0.1, misclassification="law").estimate(released)
    assert by_law == LogLinear(fraction=0.1, misclassification=given).estimate(released)  # type: ignore[arg-type]
    assert LogLinear(fraction=0.1, misclassification="law").estimate(records).correct_matches == plain
    moved = eq.masks.Pram(0.8).apply(records, Draws(1))
    assert LogLinear(fraction=0.1, misclassification="law").estimate(moved).correct_matches < plain
    with pytest.raises(eq.ParameterError, match="law of pram_matrix does not say"):
        LogLinear(fraction=0.1, misclassification="law").estimate(eq.masks.Pram(0.8).apply(released, Draws(1)))


def test_interactions_are_read_in_every_way() -> None:
    assert LogLinear((("a", "b"),)).interactions == ("a*b",)  # type: ignore[arg-type]
    assert LogLinear("a*b") == LogLinear(("a*b",))
    assert LogLinear(("best",)).interactions == "best"
    starred = eq.read(pl.DataFrame({"a*b": [1, 2], "c": [1, 1]}), eq.Roles(["a*b", "c"]))
    assert LogLinear("a*b*c", fraction=0.5).estimate(starred).interactions == ("a*b*c",)
    records = world(1, 0.1).records()
    everything = LogLinear("all", fraction=0.1).estimate(eq.read(records.collect(), eq.Roles(["a", "b", "d"])))
    assert everything.interactions == ("a*b", "a*d", "b*d")


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"fraction": 5}, "0.05"),
        ({"interactions": "everything"}, "age\\*sex"),
        ({"misclassification": 2.0}, "in \\[0, 1\\]"),
        ({"misclassification": "some"}, "'law'"),
        ({"misclassification": {"a": [[0.5, 0.4], [0, 1]]}}, "sum to 1"),
        ({"misclassification": {"a": [[0.5, 0.5]]}}, "as many rows"),
    ],
)
def test_bad_parameters(bad: dict[str, object], said: str) -> None:
    with pytest.raises(eq.ParameterError, match=said):
        LogLinear(**bad)  # type: ignore[arg-type]


def test_what_does_not_fit_the_file() -> None:
    records = world(1, 0.1).records()
    with pytest.raises(eq.ParameterError, match="each once: 'a\\*z'"):
        LogLinear("a*z").estimate(records)
    with pytest.raises(eq.ParameterError, match="has 1 rows; the key has 2 values"):
        LogLinear(misclassification={"b": [[1.0]]}).estimate(records)  # type: ignore[arg-type]
    gaps = eq.read(pl.DataFrame({"a": [1, None]}), eq.Roles(["a"], missing="any"))
    with pytest.raises(eq.ParameterError, match="category of their own"):
        LogLinear().estimate(gaps)
