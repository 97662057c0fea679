"""The audit as a Score: raw files, after Pram, what it says and where; and matches that are right in one draw."""

from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.ground.randomness import Draws
from equipoise.masks import Pram, PramMatrix
from equipoise.risk import CorrectMatches, MatchProbability

METHODS = ("blocks", "nayak")


def file(counts: Any, **more: Any) -> eq.Records:
    """A file with these counts in its cells."""
    cell = np.repeat(np.arange(len(counts)), counts)
    table = pl.DataFrame({"id": np.arange(len(cell)), "a": cell // 7, "b": cell % 7})
    return eq.read(table, eq.Roles(["a", "b"], id="id", **more))


@pytest.fixture(scope="module")
def small() -> eq.Records:
    return file([1, 1, 1, 2, 2, 3, 5, 8, 1, 1, 2, 13])


# --- the score ----------------------------------------------------------------------------------------------------


def test_a_raw_file_is_the_worst_case(small: eq.Records) -> None:
    """Nothing moves: a match is right with 1 / T, so the value is 1 over the smallest count."""
    score = MatchProbability().measure(small, small)
    assert score.value == 1.0
    assert score.better == "lower"
    assert score.side == "risk"
    threes = file([3, 4, 9])
    raw = MatchProbability().measure(threes, threes)
    assert raw.value == pytest.approx(1 / 3)
    assert raw.notes[0].endswith("the worst is in cells of 3 records.")
    assert raw.by_record()["risk"].to_list() == pytest.approx([1 / 3] * 3 + [1 / 4] * 4 + [1 / 9] * 9)
    assert MatchProbability("table").measure(threes, threes).value == pytest.approx(1 / 3)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("within", [None, "auto"])
@pytest.mark.parametrize("xi", [0.45, 0.6, 0.8, 0.95])
def test_after_pram_it_is_at_most_xi(small: eq.Records, method: Any, within: Any, xi: float) -> None:
    """This is the audit: never above xi, near it, and it says where."""
    released = Pram(xi, method=method, within=within).apply(small, Draws(1))
    score = MatchProbability().measure(released, small)
    assert 0.8 * xi < score.value <= xi
    assert "the worst is in cells of" in score.notes[0]


@pytest.mark.parametrize("xi", [0.1, 0.3, 0.6, 0.8])
def test_given_the_table(small: eq.Records, xi: float) -> None:
    """Blocks hold given all released counts as well; Nayak's is refused, for it does not."""
    released = Pram(xi).apply(small, Draws(1))
    assert MatchProbability("table").measure(released, small).value <= xi
    if xi >= 0.5:
        theirs = Pram(xi, method="nayak").apply(small, Draws(1))
        with pytest.raises(eq.ParameterError, match="method='blocks' only"):
            MatchProbability("table").measure(theirs, small)


def test_membership_unknown(small: eq.Records) -> None:
    """When the target may not be in the sample, the value is multiplied by the probability that it is."""
    released = Pram(0.8).apply(small, Draws(1))
    whole = MatchProbability().measure(released, small).value
    assert MatchProbability(fraction=0.05).measure(released, small).value == pytest.approx(0.05 * whole)


@pytest.mark.parametrize("given", [{"given": "all"}, {"fraction": 0}, {"fraction": 1.2}])
def test_bad_parameters(given: dict[str, Any]) -> None:
    with pytest.raises(eq.ParameterError):
        MatchProbability(**given)


@pytest.mark.parametrize("method", METHODS)
def test_the_detail_has_a_row_per_cell(small: eq.Records, method: Any) -> None:
    """risk (worst count), table, unconditional and vanishes for every cell; in their natural order."""
    released = Pram(0.8, method=method).apply(small, Draws(1))
    score = MatchProbability().measure(released, small)
    detail = score.detail
    wanted = {"a", "b", "n", "risk", "unconditional", "vanishes"} | ({"table"} if method == "blocks" else set())
    assert set(detail.columns) == wanted
    assert detail.height == 12
    assert detail["n"].sum() == 40
    assert detail["risk"].max() == score.value
    assert (detail["unconditional"] <= detail["risk"] + 1e-12).all(), "before the release is seen, no more"
    assert detail["vanishes"].is_between(0, 1).all()
    if method == "blocks":
        assert (detail["table"] >= detail["risk"] - 1e-12).all(), "who sees more guesses no worse"


@pytest.mark.parametrize("method", METHODS)
def test_the_curve(small: eq.Records, method: Any) -> None:
    """IR for every cell class and released count; chances of a class add up to 1 with P(S = 0)."""
    released = Pram(0.8, method=method).apply(small, Draws(1))
    curve = MatchProbability().curve(released)
    assert curve.columns == ["t", "cells", "a", "probability", "chance"]
    assert (curve["probability"] <= 0.8).all()
    assert (curve["probability"] * curve["a"] <= 1 + 1e-12).all()
    classes = curve.filter(pl.col("a") == 1).group_by("t").agg(pl.col("cells").sum())
    if method == "nayak":
        assert dict(classes.iter_rows()) == {1: 5, 2: 3, 3: 1, 5: 1, 8: 1, 13: 1}


def test_coarsening_first_counts_what_is_left() -> None:
    """Recode, then Pram: cells are those of the recoded keys; a coarsened file alone has 1 / T of them."""
    table = pl.DataFrame({"age": [20, 21, 22, 30, 31, 44], "id": range(6)})
    records = eq.read(table, eq.Roles("age", id="id", hierarchies={"age": eq.Hierarchy.intervals(10)}))
    coarse = eq.masks.Recode("age", 1).apply(records, Draws(1))
    assert MatchProbability().measure(coarse, records).value == 1.0
    released = eq.Recipe((eq.masks.Recode("age", 1), Pram(0.4)), seed=3).run(records)
    score = MatchProbability().measure(released, records)
    assert score.value <= 0.4
    assert sorted(score.detail["n"].to_list()) == [1, 2, 3]


def test_what_it_does_not_know_is_refused(small: eq.Records) -> None:
    """Two random masks, or another mask than Pram: no number rather than a wrong one."""
    twice = eq.Recipe((Pram(0.8), Pram(0.8)), seed=1).run(small)
    other = PramMatrix("b", diagonal=0.5).apply(small, Draws(1))
    for released in (twice, other):
        with pytest.raises(eq.ParameterError, match="one Pram mask"):
            MatchProbability().measure(released, small)


def test_a_key_that_was_left_out_is_refused(small: eq.Records) -> None:
    """Pram on some keys bounds nothing for an intruder who knows the others; held in within, they count."""
    some = Pram(0.8, keys=("a",)).apply(small, Draws(1))
    with pytest.raises(eq.ParameterError, match="The key 'b'"):
        MatchProbability().measure(some, small)
    wide = file([2] * 14)
    held = Pram(0.3, keys=("a",), within=("b",)).apply(wide, Draws(1))
    assert MatchProbability().measure(held, wide).value <= 0.3
    assert held.collect()["b"].equals(wide.collect()["b"])


@pytest.mark.parametrize("method", METHODS)
def test_a_million_records(method: Any, full: Any) -> None:
    """At scale: 100,000 records in about 25,000 cells here, a million in 200,000 in full."""
    size = full(100_000, 1_000_000)
    rng = np.random.default_rng(9)
    cell = np.minimum((rng.pareto(0.9, size) * size / 50).astype(np.int64), size)
    table = pl.DataFrame({"id": np.arange(size), "a": cell % 997, "b": cell // 997})
    records = eq.read(table, eq.Roles(["a", "b"], id="id"))
    released = Pram(0.8, method=method).apply(records, Draws(1))
    score = MatchProbability().measure(released, records)
    assert score.detail.height > 0.12 * size
    assert 0.79 < score.value <= 0.8
    assert score.notes[0].endswith("the worst is in cells of 1 record.")


# --- matches in one draw ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_correct_matches_by_brute_force(small: eq.Records, method: Any) -> None:
    """Nayak, section 2a: pick at random among the released records with the target's keys."""
    released = Pram(0.8, method=method).apply(small, Draws(8))
    truth, found = small.collect().select("a", "b").rows(), released.collect().select("a", "b").rows()
    seen, counts = Counter(found), Counter(truth)
    right = [(z == x) / seen[x] if seen[x] else 0.0 for x, z in zip(truth, found, strict=True)]
    score = CorrectMatches().measure(released, small)
    assert score.value == pytest.approx(sum(right) / len(right))
    assert score.number == pytest.approx(sum(right))
    by_class: dict[tuple[int, int], list[float]] = {}
    for x, value in zip(truth, right, strict=True):
        by_class.setdefault((counts[x], seen[x]), []).append(value)
    rows = {
        (t, a): (people, risk) for t, a, people, risk in score.detail.select("t", "a", "people", "risk").iter_rows()
    }
    assert set(rows) == set(by_class)
    for key, values in by_class.items():
        assert rows[key] == (len(values), pytest.approx(sum(values) / len(values)))


def test_correct_matches_over_draws_agree_with_the_exact_mean(small: eq.Records) -> None:
    """The mean over draws is the unconditional probability of the audit, within 4 standard errors."""
    for method in METHODS:
        mask = Pram(0.6, method=method)  # type: ignore[arg-type]
        scores = [CorrectMatches().measure(mask.apply(small, Draws(s)), small) for s in range(250)]
        rates = [float((score.detail["risk"] * score.detail["people"]).sum()) / 40 for score in scores]
        assert all(score.value >= rate - 1e-12 for score, rate in zip(scores, rates, strict=True))
        detail = MatchProbability().measure(mask.apply(small, Draws(0)), small).detail
        exact = float((detail["unconditional"] * detail["n"]).sum()) / 40
        assert abs(np.mean(rates) - exact) <= 4 * np.std(rates, ddof=1) / np.sqrt(250)


def test_different_records_are_refused(small: eq.Records) -> None:
    """Matches are counted record by record: files must hold the same ones."""
    with pytest.raises(eq.EngineError, match="different records"):
        CorrectMatches().measure(file([1, 2, 3]), small)
