"""Intruders who know the method: against all pairs one by one, against the laws themselves, and against one another."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import multivariate_normal

import equipoise as eq
from equipoise import masks, risk
from equipoise.attacks import Informed, Nearest, averaged
from equipoise.data.records import Records
from equipoise.ground.randomness import Draws

NAMES = ("x", "y", "z")


def file(n: int, seed: int = 1, gaps: float = 0.0) -> Records:
    """Three numbers (many values, few values, a long tail) and two categories."""
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=n), np.round(rng.exponential(size=n) * 100)
    x[rng.random(n) < gaps] = np.nan
    table = pl.DataFrame(
        {
            "id": rng.permutation(n),
            "x": pl.Series(x, nan_to_null=True),
            "y": rng.integers(0, 30, n),
            "z": z + (5 * rng.normal(size=n) + 20 * np.nan_to_num(x)).round(),
            "k": rng.integers(0, 6, n),
            "area": rng.choice(list("abcd"), n),
        }
    )
    return eq.read(table, eq.Roles(["k", "area"], numeric=NAMES, id="id"))


def applied(mask: Any, records: Records, seed: int = 7) -> Records:
    done = mask.apply(records, Draws(seed).child(0))
    assert isinstance(done, Records)
    return done


def both(released: Records, original: Records, column: str) -> tuple[Any, Any]:
    found = [r.collect("id", column).sort("id")[column] for r in (released, original)]
    return tuple(c.cast(pl.Float64).to_numpy() if c.dtype.is_numeric() else c.to_numpy() for c in found)


def shares(attack: Informed, released: Records, original: Records) -> dict[str, float]:
    return dict(attack.intruders(released, original).iter_rows())


def risks(score: eq.Score) -> Any:
    return score.by_record().sort("id")["risk"].to_numpy()


def nearest_of(allowed: Any, squares: Any) -> Any:
    """The chance that everybody's own record is taken among the nearest of those allowed, one row a person."""
    squares = np.where(allowed, squares, np.inf)
    own, best = np.diag(squares), squares.min(axis=1)
    tied = (squares <= best[:, None] * (1 + 3e-9) + 1e-12).sum(axis=1)
    return np.where(np.diag(allowed) & (own <= best * (1 + 3e-9) + 1e-12), 1 / tied, 0.0)


# --- rank swapping -----------------------------------------------------------------------------------------------


def windows(here: Any, there: Any, window: float) -> tuple[Any, Any]:
    """By the definition: some place of the known value is at most k from some place of the released value."""
    known = np.sort(here[~np.isnan(here)])
    reach = int(np.floor(window * len(known) + 1e-9))
    places = {v: np.flatnonzero(known == v).tolist() for v in np.unique(known)}
    allowed, apart = np.zeros((len(there), len(here)), dtype=bool), np.zeros((len(there), len(here)))
    kinds = {
        (a, b): (any(abs(s - t) <= reach for s in p for t in q), abs(sum(p) / len(p) - sum(q) / len(q)) / reach)
        for a, p in places.items()
        for b, q in places.items()
    }
    for i, a in enumerate(there):
        for j, b in enumerate(here):
            lost = np.isnan(a), np.isnan(b)
            allowed[i, j], apart[i, j] = (lost[0] and lost[1], 0.0) if any(lost) else kinds[a, b]
    return allowed, apart**2


@pytest.mark.parametrize(("window", "gaps"), [(0.03, 0.0), (0.1, 0.1), (0.4, 0.0)])
def test_rank_windows_pair_by_pair(window: float, gaps: float) -> None:
    original = file(150, gaps=gaps)
    released = applied(masks.RankSwap(NAMES, window), original)
    parts = [windows(*both(released, original, c), window) for c in NAMES]
    allowed = np.logical_and.reduce([part[0] for part in parts])
    assert np.diag(allowed).all(), "the true record is always a candidate"
    attack = Informed(known=NAMES)
    score = attack.measure(released, original)
    assert score.detail.sort("id")["candidates"].to_list() == allowed.sum(axis=1).tolist()
    found = shares(attack, released, original)
    assert found["rank windows, any record they leave"] == pytest.approx((1 / allowed.sum(axis=1)).mean(), abs=1e-12)
    chances = nearest_of(allowed, sum(part[1] for part in parts))
    assert found["rank windows"] == pytest.approx(chances.mean(), abs=1e-12)
    around = np.logical_and.reduce([windows(*(both(released, original, c)[0],) * 2, window)[0] for c in NAMES]).sum(
        axis=1
    )
    fewest = nearest_of(allowed, np.broadcast_to(around[None] ** 2.0, allowed.shape))
    assert found["rank windows, the record with fewest rivals"] == pytest.approx(fewest.mean(), abs=1e-12)
    assert score.value == pytest.approx(max(found.values()), rel=1e-12)


@pytest.mark.parametrize("window", [0.005, 0.05, 0.3])
def test_the_true_record_is_always_in_the_window(window: float) -> None:
    """At 2,000 records with ties: everybody is among their candidates, so nobody's chance is 0."""
    original = file(2000)
    released = applied(masks.RankSwap(NAMES, window), original)
    score = Informed(known=NAMES).measure(released, original)
    if score.notes[0].endswith("leave."):
        assert (risks(score) > 0).all()
    many = score.detail["candidates"].to_numpy()
    assert many.min() >= 1
    assert shares(Informed(known=NAMES), released, original)["rank windows, any record they leave"] == pytest.approx(
        (1 / many).mean()
    )


@pytest.mark.parametrize("window", [0.02, 0.05])
def test_who_knows_the_window_does_better(window: float) -> None:
    original = file(2000, seed=4)
    released = applied(masks.RankSwap(NAMES, window), original)
    score = Informed(known=NAMES).measure(released, original)
    assert score.value > 1.15 * Nearest(known=NAMES).measure(released, original).value
    assert "rank windows" in score.notes[0]


def test_rivals_tell_more_than_the_window_alone() -> None:
    """Related columns, a wide window: a record that is unlike the others is rather the person's than theirs."""
    x = np.random.default_rng(3).multivariate_normal([0, 0, 0], [[1, 0.8, 0.5], [0.8, 1, 0.4], [0.5, 0.4, 1]], 2000)
    original = eq.read(pl.DataFrame(x, list(NAMES), orient="row"), eq.Roles(numeric=NAMES))
    found = shares(Informed(), applied(masks.RankSwap(NAMES, 0.1), original), original)
    fewest, any_ = (
        found[f"rank windows, {name}"] for name in ("the record with fewest rivals", "any record they leave")
    )
    assert fewest > 1.4 * any_
    assert any_ > found["the nearest record"]


def test_columns_left_alone_narrow_the_candidates() -> None:
    """Categories that no mask touched must agree: as the attack within blocks of them."""
    original = file(150)
    released = applied(masks.RankSwap(["x"], 0.1), original)
    allowed, _ = windows(*both(released, original, "x"), 0.1)
    for column in ("k", "area", "y"):
        here, there = both(released, original, column)
        allowed &= there[:, None] == here[None]
    score = Informed(known=("x", "k", "area", "y")).measure(released, original)
    assert score.detail.sort("id")["candidates"].to_list() == allowed.sum(axis=1).tolist()


# --- microaggregation --------------------------------------------------------------------------------------------


def group_means(here: Any, there: Any) -> tuple[Any, Any]:
    """A group is possible if the mean before it is at most the value and the mean after it at least."""
    means = np.unique(here)
    allowed, share = np.zeros((len(there), len(here)), dtype=bool), np.zeros((len(there), len(here)))
    for i, value in enumerate(there):
        held = [
            g
            for g in range(len(means))
            if (g == 0 or means[g - 1] <= value + 1e-6) and (g == len(means) - 1 or means[g + 1] >= value - 1e-6)
        ]
        allowed[i] = np.isin(here, means[held])
        gap = means[held[-1]] - means[held[0]]
        share[i] = (here - value) / gap if gap else 0.0
    return allowed, share**2


@pytest.mark.parametrize("strata", [None, ("area",)])
def test_groups_of_single_columns_pair_by_pair(strata: Any) -> None:
    original = file(400, seed=3)
    released = applied(masks.Microaggregate(["x", "z"], 3, "univariate-optimal", strata=strata), original)
    here, there = both(released, original, "area")
    allowed, squares = there[:, None] == here[None] if strata else np.ones((400, 400), dtype=bool), np.zeros((400, 400))
    for column in ("x", "z"):
        new, old = both(released, original, column)
        for part in [np.flatnonzero(here == a) for a in "abcd"] if strata else [np.arange(400)]:
            possible, apart = group_means(new[part], old[part])
            allowed[np.ix_(part, part)] &= possible
            squares[np.ix_(part, part)] += apart
    assert np.diag(allowed).all(), "the true group is always a candidate"
    attack = Informed(known=("x", "z", *(strata or ())))
    found = shares(attack, released, original)
    score = attack.measure(released, original)
    assert score.detail.sort("id")["candidates"].to_list() == allowed.sum(axis=1).tolist()
    name = "groups of single columns"
    assert found[f"{name}, any record they leave"] == pytest.approx((1 / allowed.sum(axis=1)).mean(), abs=1e-12)
    assert found[name] == pytest.approx(nearest_of(allowed, squares).mean(), abs=1e-12)


@pytest.mark.parametrize("size", [2, 3, 10])
def test_the_true_group_is_always_a_candidate(size: int) -> None:
    """Ties and rounded sums included: nobody is without their own group."""
    rng = np.random.default_rng(size)
    table = pl.DataFrame({"x": rng.integers(0, 40, 2000) / 10, "y": rng.normal(size=2000).round(2)})
    original = eq.read(table, eq.Roles(numeric=["x", "y"]))
    released = applied(masks.Microaggregate(["x", "y"], size, "univariate-optimal"), original)
    for column in ("x", "y"):
        score = Informed(known=(column,)).measure(released, original)
        many = score.detail["candidates"].to_numpy()
        found = shares(Informed(known=(column,)), released, original)
        assert found["groups of single columns, any record they leave"] == pytest.approx((1 / many).mean(), abs=1e-12)


def test_groups_of_several_columns_are_met_at_their_mean() -> None:
    original = file(500)
    released = applied(masks.Microaggregate(["x", "z"], 5), original)
    score = Informed(known=("x", "z")).measure(released, original)
    assert score.value == pytest.approx(1 / 5), "whoever has everybody's values makes the groups again"
    assert Nearest(known=("x", "z")).measure(released, original).value <= 1 / 5


# --- noise -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["independent", "correlated"])
@pytest.mark.parametrize("gaps", [0.0, 0.1])
def test_noise_is_linked_by_its_likelihood(kind: Any, gaps: float) -> None:
    """All pairs, each with the normal density of its gap; with the density of the file in the second."""
    original = file(500, gaps=gaps)
    released = applied(masks.Noise(["x", "z"], 0.3, kind), original)
    pairs = [both(released, original, c) for c in ("x", "z")]
    y, x = (np.stack([p[side] for p in pairs], axis=1) for side in (0, 1))
    whole = ~np.isnan(y).any(axis=1)
    sd = np.array([released.history[0].parameters["noise_sd"][c] for c in ("x", "z")])
    turn = np.corrcoef(y[whole].T) if kind == "correlated" else np.eye(2)
    crowd = multivariate_normal(y[whole].mean(axis=0), np.cov(y[whole].T)).logpdf
    logs = np.full((500, 500), -np.inf)
    dense = np.full((500, 500), -np.inf)
    both_ = multivariate_normal([0, 0], turn * np.outer(sd, sd)).logpdf
    logs[np.ix_(whole, whole)] = both_(y[whole][None] - x[whole][:, None])
    dense[np.ix_(whole, whole)] = logs[np.ix_(whole, whole)] - crowd(y[whole])
    spread = float(np.cov(y[whole].T)[1, 1])
    for i in np.flatnonzero(~whole):
        rows = np.flatnonzero(~whole)
        logs[i, rows] = -((y[rows, 1] - x[i, 1]) ** 2) / sd[1] ** 2 / 2
        dense[i, rows] = logs[i, rows] + (y[rows, 1] - y[whole, 1].mean()) ** 2 / spread / 2
    found = shares(Informed(known=("x", "z")), released, original)
    for name, table in (("noise of known size", logs), ("noise of known size and the density of the file", dense)):
        best = table.max(axis=1)
        tied = (table >= best[:, None] - 1e-9).sum(axis=1)
        expected = np.where(np.diag(table) >= best - 1e-9, 1 / tied, 0.0).mean()
        assert found[name] == pytest.approx(expected, abs=1e-9)


def test_noise_in_its_own_units() -> None:
    """Two columns with noise of 0.02 and 1 standard deviations: in units of the data the second one only disturbs."""
    original = file(1500)
    released = applied(masks.Noise(["z"], 1.0), applied(masks.Noise(["x"], 0.02), original), seed=8)
    found = shares(Informed(known=("x", "z")), released, original)
    assert found["noise of known size"] > 2 * found["the nearest record"]


def test_the_order_of_rows_settles_no_tie() -> None:
    """Rank windows of nearly all places beside a transition matrix leave ties alone, and rows are in the same order."""
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"x": rng.normal(size=300), "key": rng.integers(0, 4, 300).astype(str)})
    original = eq.read(table, eq.Roles("key", numeric="x"))
    released = applied(masks.PramMatrix("key", diagonal=0.5), applied(masks.RankSwap(["x"], 0.9), original))
    assert max(shares(Informed(), released, original).values()) < 0.05


def test_relative_noise_and_zeros_that_are_kept() -> None:
    rng = np.random.default_rng(2)
    table = pl.DataFrame(
        {"x": rng.exponential(size=800) * 10, "y": rng.exponential(size=800) * (rng.random(800) < 0.7)}
    )
    original = eq.read(table, eq.Roles(numeric=["x", "y"]))
    released = applied(masks.Noise(["x", "y"], 0.2, "multiplicative"), original)
    y, x = released.collect().to_numpy(), original.collect().to_numpy()
    sd = np.array([released.history[0].parameters["noise_sd"][c] for c in ("x", "y")])
    share = sd / np.sqrt((x**2).mean(axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        gaps = np.nan_to_num((y[None] - x[:, None]) / (share * x[:, None]), nan=0.0, posinf=np.inf, neginf=-np.inf)
    expected = nearest_of(np.isfinite(gaps).all(axis=2), (np.where(np.isfinite(gaps), gaps, 0) ** 2).sum(axis=2)).mean()
    found = shares(Informed(), released, original)
    assert found["noise of known size"] == pytest.approx(expected, abs=1e-12)
    assert found["noise of known size"] > found["the nearest record"]


def test_restored_moments_are_undone() -> None:
    """Linear maps hide nothing from who knows them: as strong as on the noise itself, within the error of 4,000."""
    original = file(4000)
    plain, kept = (applied(masks.Noise(["x", "z"], 0.2, preserve=p), original) for p in (None, "moments"))
    one, two = (shares(Informed(known=("x", "z")), r, original)["noise of known size"] for r in (plain, kept))
    assert one == pytest.approx(two, abs=4 * np.sqrt(2 * one / 4000))


def test_ranks_given_original_values_are_undone() -> None:
    """Reverse mapping hides little from who knows it: nearly as strong as on the noise itself, on skewed values too."""
    original = file(4000)
    plain, kept = (applied(masks.Noise(["x", "z"], 0.2, preserve=p), original) for p in (None, "distributions"))
    one, two = (shares(Informed(known=("x", "z")), r, original)["noise of known size"] for r in (plain, kept))
    assert one == pytest.approx(two, abs=4.5 * np.sqrt(2 * one / 4000))


# --- several releases --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("copies", [4, 9])
def test_copies_average_the_noise_away(copies: int) -> None:
    """m copies are as dangerous as one with 1/m of the variance: 4,000 people, within four standard errors."""
    original = file(4000, seed=2)
    noisy = masks.Noise(["x", "z"], 0.3)
    pooled = averaged([applied(noisy, original, seed) for seed in range(copies)])
    once = applied(masks.Noise(["x", "z"], 0.3 / np.sqrt(copies)), original, 99)
    law = pooled.history[0].parameters
    assert law["noise_sd"]["x"] == pytest.approx(once.history[0].parameters["noise_sd"]["x"], rel=5e-3)
    x, y = both(pooled, original, "x")
    assert np.std(x - y) == pytest.approx(law["noise_sd"]["x"], rel=0.05)
    attack = Informed(known=("x", "z"))
    many, one = (attack.measure(r, original).value for r in (pooled, once))
    alone = attack.measure(applied(noisy, original), original).value
    assert many == pytest.approx(one, abs=4 * np.sqrt(2 * one * (1 - one) / 4000))
    assert many > 2 * alone


def test_copies_are_weighed_by_their_noise() -> None:
    """A good copy is not spoiled by a bad one."""
    original = file(3000)
    good, bad = (applied(masks.Noise(["x", "z"], scale), original, 3) for scale in (0.05, 1.0))
    again = applied(masks.Noise(["x", "z"], 1.0), original, 4)
    pooled = averaged([good, again])
    assert pooled.history[0].parameters["scale"] == pytest.approx(1 / np.sqrt(1 / 0.05**2 + 1))
    attack = Informed(known=("x", "z"))
    assert attack.measure(pooled, original).value >= 0.95 * attack.measure(good, original).value
    assert attack.measure(bad, original).value < 0.2 * attack.measure(pooled, original).value


def test_what_is_averaged_and_how() -> None:
    roles = eq.Roles("c", numeric="x", id="i")
    rows = [
        ([3, 1, 2], ["b", "a", "a"], [1, 2, None]),
        ([1, 2, 3], ["c", "a", "c"], [4, 7, 6]),
        ([1, 2, 3], ["a"] * 3, [4, 7, 9]),
    ]
    made = averaged([eq.read(pl.DataFrame({"i": i, "c": c, "x": x}), roles) for i, c, x in rows])
    assert made.collect().rows() == [(1, "a", 10 / 3), (2, "a", 7.0), (3, "a", 16 / 3)]
    assert made.history == ()
    with pytest.raises(eq.EngineError, match="different records"):
        averaged([eq.read(pl.DataFrame({"x": [1] * n}), eq.Roles()) for n in (1, 2)])
    with pytest.raises(eq.ParameterError):
        averaged([])


def test_partly_synthetic_samples_are_averaged() -> None:
    """One file of five samples is attacked as the mean of them; columns that were kept still tell."""
    original = file(300)
    released = applied(masks.Synthesize("hierarchical-normal", samples=5, columns=["z"]), original)
    score = Informed(known=("z",)).measure(released, original)
    assert "5 samples" in score.notes[-1]
    assert score.by_record()["id"].to_list() == original.collect("id")["id"].to_list()
    parts = [p["z"] for p in released.collect().partition_by("sample", maintain_order=True)]
    mean = sum(p.cast(pl.Float64) for p in parts) / 5
    alone = eq.read(original.collect().with_columns(z=mean), original.roles)
    assert score.value == pytest.approx(Nearest(known=("z",)).measure(alone, original).value, abs=1e-12)
    assert Informed(known=("x", "z")).measure(released, original).value == 1.0


# --- categories --------------------------------------------------------------------------------------------------


def weighed(chance: Any, cell: Any) -> Any:
    """One row a person, one column a record: the chance of its cell, shared by the records in it."""
    each = chance / np.bincount(cell)[cell][None]
    best = each.max(axis=1)
    tied = (each >= best[:, None] * (1 - 1e-9)).sum(axis=1)
    return np.where(np.diag(each) >= best * (1 - 1e-9), 1 / tied, 0.0) * (best > 0)


@pytest.mark.parametrize("diagonal", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("strata", [None, ("k",)])
def test_a_transition_matrix_pair_by_pair(diagonal: float, strata: Any) -> None:
    original = file(500)
    mask = masks.PramMatrix("area", diagonal=diagonal, strata=strata, invariant=strata is not None)
    released = applied(mask, original)
    here, there = (np.searchsorted(list("abcd"), c) for c in both(released, original, "area"))
    k = both(released, original, "k")[1]
    chance = np.zeros((500, 500))
    for part in [np.flatnonzero(k == v) for v in range(6)]:
        counts = np.bincount(there[part] if strata else there, minlength=4).astype(float)
        chance[np.ix_(part, part)] = mask.transition(counts)[there[part][:, None], here[part][None]]
    expected = weighed(chance, (k * 4 + here).astype(int))
    attack = Informed(known=("k", "area"))
    assert shares(attack, released, original)["transition matrix"] == pytest.approx(expected.mean(), abs=1e-12)


@pytest.mark.parametrize("method", ["blocks", "nayak"])
def test_a_law_of_cells_pair_by_pair(method: Any) -> None:
    original = file(400)
    released = applied(masks.Pram(0.6, ("k", "area", "y"), method=method), original)
    plan = released.history[0].detail
    table = plan.units.cells.table.select("k", "area", "y").rows()
    place = {row: i for i, row in enumerate(table)}
    law, size = plan.law, len(table)
    dense = np.eye(size)
    for block in np.unique(law.block[law.block >= 0]):
        cells = np.flatnonzero(law.block == block)
        lam, t = law.strength[block], law.counts[cells]
        if law.kind == "mixing":
            dense[np.ix_(cells, cells)] = (1 - lam) * np.eye(len(cells)) + lam * law.share[cells][None]
        else:
            away = np.repeat((lam / t / (len(cells) - 1))[:, None], len(cells), axis=1)
            dense[np.ix_(cells, cells)] = np.where(np.eye(len(cells)) == 1, (1 - lam / t)[:, None], away)
    assert dense.sum(axis=1) == pytest.approx(np.ones(size))
    cells_ = [
        np.array([place[row] for row in r.collect().sort("id").select("k", "area", "y").rows()])
        for r in (released, original)
    ]
    expected = weighed(dense[np.ix_(cells_[1], cells_[0])], cells_[0])
    found = shares(Informed(known=("k", "area", "y")), released, original)
    assert found["transition law of cells"] == pytest.approx(expected.mean(), abs=1e-12)


def test_the_audits_of_pram_say_the_same() -> None:
    """Where one's own cell is the best guess: this release as CorrectMatches, the mean of many as MatchProbability."""
    original = file(800)
    found, counted = [], []
    for seed in range(8):
        released = applied(masks.Pram(0.9, ("k", "area")), original, seed)
        found.append(Informed(known=("k", "area")).measure(released, original).value)
        counted.append(risk.CorrectMatches().measure(released, original).value)
    assert found == pytest.approx(counted, abs=1e-12)
    pair = original.collect().sort("id").head(60)
    small = eq.read(pair, original.roles)
    found = []
    for seed in range(80):
        released = applied(masks.Pram(0.95, ("k", "area")), small, seed)
        found.append(Informed(known=("k", "area")).measure(released, small).value)
    audit = risk.MatchProbability().measure(released, small).detail
    expected = float((audit["unconditional"] * audit["n"]).sum()) / 60
    assert np.mean(found) >= expected - 4 * np.std(found) / np.sqrt(80)
    assert np.mean(found) <= 1.1 * expected


def test_a_bound_on_matches_holds_for_everybody() -> None:
    """xi bounds the chance of every guess: over 40 releases nobody is named right much more often."""
    original = file(300)
    hits = np.zeros(300)
    for seed in range(40):
        released = applied(masks.Pram(0.5, ("k", "area", "y")), original, seed)
        hits += risks(Informed(known=("k", "area", "y")).measure(released, original))
    assert hits.mean() / 40 <= 0.5
    assert hits.max() / 40 <= 0.5 + 4.5 * np.sqrt(0.25 / 40)


@pytest.mark.parametrize("rate", [0.2, 0.8, 1.0])
def test_swap_partners_pair_by_pair(rate: float) -> None:
    """A candidate stays with 1 - rate, or is one of the K with its keys elsewhere: the better is guessed."""
    original = file(400)
    released = applied(masks.Swap(["k", "y"], "area", [], rate), original)
    area, home = both(released, original, "area")
    key = both(released, original, "k")[1] * 100 + both(released, original, "y")[1]
    same, here = key[:, None] == key[None], home[:, None] == area[None]
    lonely = np.array([((key == key[j]) & (area == area[j])).sum() == 1 for j in range(400)])
    chance = np.zeros((400, 400))
    for i in range(400):
        partners = (same[i] & ~here[i]).sum()
        alone = (same[i] & here[i]).sum() == 1
        moves = rate * (1.0 if alone else lonely[same[i]].mean()) if partners else 0.0
        chance[i, same[i] & here[i]] = (1 - moves) / max(1, (same[i] & here[i]).sum())
        chance[i, same[i] & ~here[i]] = moves / max(1, partners)
    best = chance.max(axis=1)
    tied = (chance >= best[:, None] * (1 - 1e-9)).sum(axis=1)
    expected = np.where((np.diag(chance) >= best * (1 - 1e-9)) & (best > 0), 1 / tied, 0.0).mean()
    found = shares(Informed(known=("k", "y", "area")), released, original)
    assert found["swap partners"] == pytest.approx(expected, abs=1e-12)
    if rate == 1.0:
        assert found["swap partners"] > 1.5 * found["the nearest record"]


# --- all of them together ----------------------------------------------------------------------------------------


def test_an_unmasked_file_links_every_unique() -> None:
    original = file(500)
    score = Informed().measure(original, original)
    cells = original.collect().group_by("k", "area", *NAMES).len()
    assert score.value == cells.height / 500 == 1.0
    assert score.notes[-1] == "No law of a mask is known."
    keys = original.collect().group_by("k", "area").len().height
    assert Informed(known=("k", "area")).measure(original, original).value == pytest.approx(keys / 500)


@pytest.mark.parametrize(
    "mask",
    [
        masks.RankSwap(NAMES, 0.05),
        masks.Microaggregate(["x", "z"], 3, "univariate-optimal"),
        masks.Noise(NAMES, 0.2, "correlated"),
        masks.Noise(NAMES, 0.2, bounds="sign"),
        masks.Pram(0.6),
        masks.PramMatrix("area", diagonal=0.7),
        masks.Swap(["k", "y"], "area", [], 0.5),
        masks.Shuffle(["x"]),
    ],
)
def test_the_order_of_rows_changes_nothing(mask: Any) -> None:
    original = file(400, gaps=0.02 if "Noise" in repr(mask) else 0.0)
    released = applied(mask, original)
    moved = [
        eq.read(r.collect().sample(fraction=1, shuffle=True, seed=s), r.roles)
        for s, r in enumerate((released, original))
    ]
    again = Records(moved[0].frame, released.roles, history=released.history)
    one, two = Informed().measure(released, original), Informed().measure(again, moved[1])
    assert one.value == pytest.approx(two.value, abs=1e-12)
    assert risks(one) == pytest.approx(risks(two), abs=1e-12)
    assert one.value >= Nearest().measure(released, original).value - 1e-12
    assert one.baseline == pytest.approx(1 / 400, rel=1e-12)
    assert one.interval is not None
    assert one.interval[0] <= one.value <= one.interval[1]


def test_several_masks_are_used_together() -> None:
    """Windows, noise and a matrix, each on its own column: more than each of them alone."""
    original = file(800)
    recipe = [masks.RankSwap(["x"], 0.1), masks.Noise(["z"], 0.2), masks.PramMatrix("area", diagonal=0.8)]
    released = original
    for step, mask in enumerate(recipe):
        released = applied(mask, released, step)
    together = Informed(known=("x", "z", "area"))
    alone = [Informed(known=(c,)).measure(released, original).value for c in ("x", "z", "area")]
    score = together.measure(released, original)
    assert score.value > 3 * max(alone)
    assert score.value > Nearest(known=("x", "z", "area")).measure(released, original).value
    assert "rank windows and noise of known size and transition matrix" in score.notes[0]
    twice = applied(masks.Noise(["x"], 0.1), released)
    assert "no law that is read: x" in Informed(known=("x", "z")).measure(twice, original).notes[2]


def test_without_a_law_it_is_the_nearest() -> None:
    original = file(500, gaps=0.05)
    released = applied(masks.Noise(NAMES, 0.3), original)
    bare = eq.read(released.collect(), released.roles)
    assert Informed().measure(bare, original).value == pytest.approx(Nearest().measure(bare, original).value, abs=1e-12)


def test_what_cannot_be_asked() -> None:
    original = file(100)
    made = applied(masks.Synthesize("bootstrap", samples=2), original)
    assert np.isnan(Informed().measure(made, original).value)
    with pytest.raises(eq.RolesError, match="agee"):
        Informed(known=("agee",)).measure(original, original)
    with pytest.raises(eq.ParameterError):
        Informed(variables=("x",), known=("y",))
    with pytest.raises(eq.ParameterError):
        Informed(known=())


@pytest.mark.parametrize("window", [0.05, 0.15])
def test_the_reference_file_by_window(data_folder: Path, window: float) -> None:
    """CASCrefmicrodata, seven variables as in the literature: who knows the window links more."""
    names = ("AGI", "EMCONTRB", "ERNVAL", "FEDTAX", "FICA", "INTVAL", "PTOTVAL")
    table = pl.read_csv(data_folder / "sdcmicro" / "CASCrefmicrodata.csv").select(pl.col(names).cast(pl.Float64))
    original = eq.read(table, eq.Roles(numeric=names))
    released = applied(masks.RankSwap(names, window), original)
    score, plain = Informed().measure(released, original), Nearest().measure(released, original)
    assert score.value > plain.value
    assert score.value > {0.05: 0.93, 0.15: 0.35}[window]
