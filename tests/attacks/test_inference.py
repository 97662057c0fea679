"""Inference: each snooper against a loop over people, at both ends of protection, and against people held out."""

import math
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.attacks import Inference, _guessing
from equipoise.data.records import Law, Records
from equipoise.ground.errors import MissingExtraError
from equipoise.ground.randomness import Draws
from equipoise.methods.share_interval import excess, wilson
from equipoise.releases.balance import balance
from equipoise.search.sweep import reserve

PLAIN = ("match", "class")


def read(table: pl.DataFrame, *keys: str, id: str | None = None) -> Records:
    return Records.of(table, eq.Roles(keys, id=id))


def mixture(size: int, seed: int, gaps: float = 0.0) -> pl.DataFrame:
    """Two numbers and two categories with many ties, and two values that hang on them."""
    rng = np.random.default_rng(seed)
    age, area = rng.integers(20, 40, size), rng.choice(["n", "s", "e", "w"], size)
    table = pl.DataFrame(
        {
            "age": age,
            "height": rng.normal(170, 8, size).round(),
            "area": area,
            "job": rng.choice(["a", "b", "c"], size),
            "ill": np.where(rng.random(size) < (age - 10) / 40, "yes", "no"),
            "pay": age * 100.0 + rng.integers(0, 30, size) * 50,
        }
    )
    holes = [
        pl.when(pl.Series(rng.random(size) < gaps)).then(None).otherwise(pl.col(c)).alias(c) for c in table.columns
    ]
    return table.with_columns(holes)


def changed(table: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Noise on a number, and some people given another category."""
    rng = np.random.default_rng(seed)
    other = rng.choice(["n", "s", "e", "w"], table.height)
    return table.with_columns(
        age=pl.col("age") + pl.Series(rng.integers(-1, 2, table.height)),
        area=pl.when(pl.Series(rng.random(table.height) < 0.2)).then(pl.Series(other)).otherwise(pl.col("area")),
    )


# --- one person at a time -----------------------------------------------------------------------------------------

KNOWN = ("age", "area", "height")


def apart(one: dict[str, Any], two: dict[str, Any], scale: dict[str, tuple[float, float]]) -> float:
    """The squared distance: standardised numbers, 0/1 for categories, a missing number at the mean plus 1."""
    total = 0.0
    for column in KNOWN:
        a, b = one[column], two[column]
        if column == "area":
            total += a != b
            continue
        mean, sd = scale[column]
        x, y = (0.0 if v is None else (v - mean) / sd for v in (a, b))
        total += (x - y) ** 2 + ((a is None) != (b is None))
    return total


def right(guess: Any, truth: Any, tolerance: float | None) -> bool:
    return guess == truth if tolerance is None else abs(guess - truth) <= tolerance


def by_match(released: list[Any], person: Any, sensitive: str, scale: Any, tolerance: float | None) -> float:
    gaps = [apart(person, row, scale) for row in released]
    ties = [row for row, gap in zip(released, gaps, strict=True) if gap <= min(gaps) + 1e-9]
    return float(np.mean([right(row[sensitive], person[sensitive], tolerance) for row in ties]))


def by_class(released: list[Any], person: Any, sensitive: str, tolerance: float | None) -> float:
    for many in range(len(KNOWN), -1, -1):
        pool = [row[sensitive] for row in released if all(row[c] == person[c] for c in KNOWN[:many])]
        if pool and tolerance is not None:
            return float(right(math.fsum(pool) / len(pool), person[sensitive], tolerance))
        if pool:
            counts = Counter(pool)
            modes = [value for value, n in counts.items() if n == max(counts.values())]
            return (person[sensitive] in modes) / len(modes)
    return 0.0


@pytest.mark.parametrize("sensitive", ["ill", "pay"])
@pytest.mark.parametrize("gaps", [0.0, 0.08])
def test_record_by_record(sensitive: str, gaps: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mixed types, random ties and missing values: every chance as by the definition, in portions of any size."""
    monkeypatch.setattr(_guessing, "POOL_ENTRIES_PER_CHUNK", 20 if gaps else _guessing.POOL_ENTRIES_PER_CHUNK)
    original = mixture(250, 1, gaps)
    released = changed(original, 2)
    people, rows = original.to_dicts(), [r for r in released.to_dicts() if r[sensitive] is not None]
    pay = np.array([r["pay"] for r in people if r["pay"] is not None])
    tolerance = None if sensitive == "ill" else 0.1 * float(pay.std())
    known = {c: np.array([r[c] for r in rows if r[c] is not None]) for c in ("age", "height")}
    scale = {c: (float(x.mean()), float(x.std())) for c, x in known.items()}
    asked = [p for p in people if p[sensitive] is not None]
    expected = {
        "match": [by_match(rows, p, sensitive, scale, tolerance) for p in asked],
        "class": [by_class(rows, p, sensitive, tolerance) for p in asked],
    }
    for snooper, chances in expected.items():
        attack = Inference(sensitive, KNOWN, snoopers=(snooper,))
        score = attack.measure(read(released), read(original))
        risk = score.by_record()["risk"].to_numpy()
        assert risk[[p[sensitive] is not None for p in people]] == pytest.approx(chances)
        assert score.value == pytest.approx(np.mean(chances))
        assert score.interval == pytest.approx(wilson(np.mean(chances), len(asked)))


def test_the_guess_of_boosted_trees_is_that_of_the_library() -> None:
    """Out of fold for people whose own record is there, on the whole release for others: fitted here by hand."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    original = mixture(600, 3).with_row_index("id")
    features, target = original.select("age", "height").to_numpy().astype(float), original["ill"].to_numpy()
    fold = (Draws(0).child(1).uniform(original["id"]) * 3).astype(int)
    guess = np.empty(600, dtype=object)
    for i in range(3):
        model = HistGradientBoostingClassifier(
            max_iter=50, learning_rate=0.2, max_leaf_nodes=15, early_stopping=False, random_state=0
        )
        with threadpool_limits(1):
            guess[fold == i] = model.fit(features[fold != i], target[fold != i]).predict(features[fold == i])
    score = Inference("ill", ("age", "height"), snoopers=("boosted",)).measure(*[read(original, id="id")] * 2)
    assert score.value == pytest.approx((guess == target).mean(), abs=0.01)


def test_categories_nobody_has_tie_with_everybody() -> None:
    """An unknown town is as far from every record: the guess is one of all, right as often as the value occurs."""
    released = pl.DataFrame({"town": [str(i) for i in range(40)], "ill": ["yes"] * 10 + ["no"] * 30})
    strangers = pl.DataFrame({"town": [f"x{i}" for i in range(30)], "ill": ["yes", "no", "maybe"] * 10})
    score = Inference("ill", ("town",), snoopers=("match",)).measure(read(released), read(strangers))
    assert score.by_record()["risk"].to_list() == [0.25, 0.75, 0.0] * 10


def test_a_half_chooses_for_the_other() -> None:
    """Value and risk are those of the snooper that was better on the other half, by the public seed."""
    original = mixture(300, 4).with_row_index("id")
    released = read(changed(original, 5), id="id")
    parts = {
        name: Inference("ill", KNOWN, snoopers=(name,)).measure(released, read(original, id="id")).by_record()["risk"]
        for name in PLAIN
    }
    half = Draws(0).child(0).uniform(original["id"]) < 0.5
    risk = np.zeros(300)
    for side in (True, False):
        best = max(PLAIN, key=lambda name: parts[name].to_numpy()[half == side].sum())
        risk[half != side] = parts[best].to_numpy()[half != side]
    score = Inference("ill", KNOWN, snoopers=PLAIN).measure(released, read(original, id="id"))
    assert score.by_record()["risk"].to_numpy() == pytest.approx(risk)
    assert score.value == pytest.approx(risk.mean())
    assert score.detail["snooper"].to_list() == list(PLAIN)
    assert score.detail["risk"].to_list() == pytest.approx([parts[name].mean() for name in PLAIN])


# --- both ends of protection --------------------------------------------------------------------------------------


@pytest.mark.parametrize("sensitive", ["ill", "pay"])
def test_an_unmasked_file_with_unique_keys_gives_everything_away(sensitive: str) -> None:
    table = mixture(400, 6).with_columns(address=pl.int_range(400))
    snoopers = PLAIN if sensitive == "pay" else (*PLAIN, "boosted")
    score = Inference(sensitive, ("address", "area"), snoopers=snoopers).measure(*[read(table)] * 2)
    assert score.value == 1.0
    assert "Strongest: the nearest record" in score.notes[0]
    assert score.by_record()["risk"].min() == 1.0


@pytest.mark.parametrize("sensitive", ["ill", "pay"])
def test_a_value_dealt_out_again_gives_no_more_than_a_guess(sensitive: str) -> None:
    table = mixture(1500, 7)
    released = table.with_columns(pl.col(sensitive).shuffle(seed=1))
    score = Inference(sensitive, KNOWN, snoopers=PLAIN).measure(read(released), read(table))
    assert score.baseline is not None
    assert score.value <= score.baseline + 3 * math.sqrt(score.baseline * (1 - score.baseline) / 1500)


def held_out(people: pl.DataFrame, control: pl.DataFrame, *keys: str) -> Records:
    return replace(read(people, *keys), holdout=read(control, *keys))


@pytest.mark.parametrize("sensitive", ["ill", "pay"])
def test_a_fresh_sample_of_the_law_tells_no_more_of_people_in_the_file(sensitive: str) -> None:
    """Synthetic by the true law: attack and holdout agree within three standard errors, and the excess covers 0."""
    made = read(mixture(1200, 80))
    made = made.with_frame(made.frame, Law("synthesize", (), "drawn", {"synthetic": "full"}))
    score = Inference(sensitive, KNOWN).measure(made, held_out(mixture(1000, 81), mixture(800, 82)))
    assert score.baseline is not None
    error = math.sqrt(sum(p * (1 - p) / n for p, n in ((score.value, 1000), (score.baseline, 800))))
    assert abs(score.value - score.baseline) < 3 * error
    assert (score.detail["low"] < 0.1).all()


def test_the_holdout_shows_what_a_raw_file_gives_away() -> None:
    table = mixture(1200, 11).with_columns(address=pl.int_range(1200))
    original = reserve(read(table), 0.4, seed=1)
    assert original.holdout is not None
    score = Inference("ill", ("address", "age"), snoopers=PLAIN).measure(original, original)
    row = score.detail.row(0, named=True)
    assert score.value == 1.0
    assert (score.baseline or 1) < 0.75
    assert row["excess"] == 1.0
    assert "people held out" in score.notes[1]
    assert "gives away most by the nearest record: 1 (" in score.notes[2]
    parts = excess(1.0, original.height(), row["baseline"], original.holdout.height())
    assert (row["excess"], row["low"], row["high"]) == pytest.approx(parts)


# --- terms of the release -----------------------------------------------------------------------------------------


def ages(size: int = 600) -> Records:
    table = mixture(size, 12).with_columns(age=pl.int_range(size) % 60 + 20)
    roles = eq.Roles(["age", "area"], ["ill"], hierarchies={"age": eq.Hierarchy.intervals([5, 10])})
    return eq.read(table, roles)


def test_a_recoded_value_is_known_by_its_label() -> None:
    """The same as when the intruder's file is recoded by hand, for people in the file and people held out."""
    original = reserve(ages(), 0.3, seed=2)
    assert original.holdout is not None
    released = eq.masks.Recode("age", "10").apply(original, Draws(1))
    level = eq.Hierarchy.intervals([5, 10]).level("10")
    by_hand = [
        Records.of(r.collect().with_columns(level.label(r.collect()["age"])), eq.Roles(["age", "area"]))
        for r in (original, original.holdout)
    ]
    attack = Inference("ill", snoopers=PLAIN)
    plain = attack.measure(released, original)
    expected = attack.measure(by_hand[0], replace(by_hand[0], holdout=by_hand[1]))
    assert plain.detail.equals(expected.detail)
    silent = attack.measure(replace(released, history=()), original)
    assert silent.detail["risk"].equals(expected.detail["risk"])


def test_a_recoded_sensitive_value_is_guessed_by_its_label() -> None:
    table = mixture(300, 13)
    released = table.with_columns(job=pl.col("job").replace({"a": "ab", "b": "ab"}))
    score = Inference("job", ("age", "height"), snoopers=PLAIN).measure(read(released), read(table))
    expected = Inference("job", ("age", "height"), snoopers=PLAIN).measure(*[read(released)] * 2)
    assert score.value == pytest.approx(expected.value, rel=1e-12)
    assert score.value > 0.5


def test_a_noisy_code_is_read_as_the_nearest_category() -> None:
    table = pl.DataFrame({"key": range(200), "flag": [0, 1] * 100})
    released = table.with_columns(flag=pl.col("flag") + 0.3)
    assert Inference("flag", ("key",), snoopers=PLAIN).measure(read(released), read(table)).value == 1.0


# --- in a flow ---------------------------------------------------------------------------------------------------


def test_a_sweep_with_a_holdout() -> None:
    """Coarser keys tell less of people in the file, and no less of others than that."""
    recipes = [eq.Recipe(), eq.Recipe([eq.masks.Recode("age", "10")])]
    attacks = [Inference("ill", snoopers=PLAIN), eq.attacks.SinglingOut(columns=("age", "area"))]
    raw, coarse = eq.sweep(ages(1000), recipes, attacks, holdout=0.3)
    assert raw.scores[0].value > coarse.scores[0].value
    assert all("held out" in trial.scores[0].notes[1] for trial in (raw, coarse))
    made = eq.sweep(ages(), [eq.Recipe([eq.masks.Synthesize()], seed=1)], attacks, holdout=0.3)
    assert math.isfinite(made[0].scores[0].value)


def test_a_limit_of_a_policy(tmp_path: Path, page: Any) -> None:
    """The raw file is refused by the limit, the coarsest keys pass."""
    ages().collect().with_columns(address=pl.int_range(600)).write_csv(tmp_path / "people.csv")
    (tmp_path / "policy.toml").write_text(
        """
format = 1
assume_unknown = ["height", "pay", "age"]
data = {path = "people.csv"}
measures = ["singling_out(columns=('age', 'area'))"]
[roles]
keys = ["address", "area"]
sensitive = ["ill"]
hierarchies.address = [{kind = "intervals", widths = [100], root = true}]
[limits]
"inference(sensitive='ill', snoopers=('match', 'class'))" = "< 0.8"
"""
    )
    made = balance(tmp_path / "policy.toml", out=tmp_path / "out")
    assert made.verdict.accepted
    assert made.original.scores[0].value == 1.0
    assert made.trial.scores[0].value < 0.8


# --- corners ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sensitive", ["ill", "pay"])
def test_the_order_of_rows_changes_nothing(sensitive: str) -> None:
    original = mixture(400, 14, 0.05)
    both = pl.concat([original, changed(original, 15).rename(lambda c: f"{c}2")], how="horizontal")
    control, scores = mixture(100, 16), []
    for seed in (None, 1):
        moved = both if seed is None else both.sample(fraction=1, shuffle=True, seed=seed)
        there, here = moved.select(original.columns), moved.select(pl.col("^.*2$").name.map(lambda c: c[:-1]))
        people = held_out(there, control if seed is None else control.reverse())
        scores.append(Inference(sensitive, KNOWN).measure(read(here), people))
    assert scores[0].value == pytest.approx(scores[1].value, abs=1e-12)
    assert scores[0].baseline == pytest.approx(scores[1].baseline, abs=1e-12)


def test_values_that_are_missing() -> None:
    table = mixture(300, 17)
    gone = table.with_columns(ill=pl.lit(None, dtype=pl.String))
    nothing = Inference("ill", KNOWN, snoopers=PLAIN).measure(read(gone), read(table))
    assert (nothing.value, nothing.baseline) == (0.0, 0.0)
    assert "nothing to guess from" in nothing.notes[0]
    with pytest.raises(eq.DataError, match="No record of the original"):
        Inference("ill", KNOWN).measure(read(table), read(gone))
    with pytest.raises(eq.RolesError, match="released file has no column 'ill'"):
        Inference("ill", KNOWN).measure(read(table.drop("ill")), read(table))
    with pytest.raises(eq.RolesError, match="No known columns"):
        Inference("ill").measure(read(table), read(table))
    rare = Inference("job", KNOWN, snoopers=PLAIN).measure(
        read(table.with_columns(job=pl.col("job").replace("c", None))), read(table)
    )
    assert rare.by_record()["risk"].filter(table["job"] == "c").max() == 0.0
    half = read(table.with_columns(ill=pl.when(pl.col("age") > 30).then("ill")))
    score = Inference("ill", KNOWN, snoopers=PLAIN).measure(half, half)
    assert any("without a value" in note for note in score.notes)


def test_one_record_one_class_and_columns_that_say_nothing() -> None:
    one = read(pl.DataFrame({"a": ["x"], "b": [None], "c": [1]}))
    assert Inference("c", ("a", "b")).measure(one, one).value == 1.0
    same = read(mixture(200, 18).with_columns(ill=pl.lit("no"), job=pl.lit("a"), age=pl.lit(None, dtype=pl.Int64)))
    assert Inference("ill", ("job", "age")).measure(same, same).value == 1.0
    names = mixture(300, 19).with_columns(job=pl.int_range(300).cast(pl.String))
    score = Inference("job", ("age", "area")).measure(*[read(names)] * 2)
    assert 0 < score.value < 1
    with pytest.raises(eq.DataError, match="too little"):
        Inference("c", ("a", "b"), snoopers=("boosted",)).measure(one, one)


def test_without_the_extra_the_number_is_refused_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    records = read(mixture(200, 20))
    with pytest.raises(MissingExtraError, match="learn"):
        Inference("ill", KNOWN).measure(records, records)
    assert Inference("ill", KNOWN, snoopers=PLAIN).measure(records, records).value > 0


def test_what_counts_is_said() -> None:
    table = mixture(200, 21).with_columns(w=pl.lit(2.0))
    records = Records.of(table, eq.Roles(["age", "area"], ["ill"], weight="w"))
    score = Inference("ill", snoopers=PLAIN).measure(records, records)
    assert "Everybody counts once, whatever the weight." in score.notes
    assert score.name == "inference(sensitive='ill', snoopers=('match', 'class'))"
    longer = pl.concat([table, mixture(60, 22).with_columns(w=pl.lit(2.0))])
    assert any("not the same people" in note for note in Inference("ill").measure(read(longer), records).notes)
    number = Inference("pay", KNOWN, snoopers=("match",)).measure(*[read(mixture(200, 21))] * 2)
    assert "Right is within 0.1 standard deviations; 1 - MSE / variance is" in number.notes[2]


def test_the_share_of_variance_by_hand() -> None:
    """Two equal records share a class: each is right half the time by match; MSE is half the squared gap."""
    table = pl.DataFrame({"k": [str(i // 2) for i in range(60)], "y": [float(i) for i in range(60)]})
    score = Inference("y", ("k",), snoopers=("match",), within=0).measure(*[read(table)] * 2)
    assert score.value == 0.5
    known = 1 - 0.5 / np.arange(60.0).var()
    assert f"1 - MSE / variance is {known:.4g}." in score.notes[2]


@pytest.mark.parametrize(
    "bad",
    [
        {"within": -1},
        {"within": math.nan},
        {"within": True},
        {"known": ()},
        {"known": ("ill",)},
        {"snoopers": ()},
        {"snoopers": ("oracle",)},
        {"seed": -1},
    ],
)
def test_bad_parameters_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(eq.ParameterError):
        Inference("ill", **bad)


def test_two_thousand_people_against_all_records() -> None:
    """Every distance of 2,000 x 2,000: the share of the nearest released records whose value is the person's."""
    original = mixture(2000, 31)
    released = changed(original, 32)
    gaps = np.zeros((2000, 2000))
    for column in KNOWN:
        one, two = original[column].to_numpy(), released[column].to_numpy()
        apart_by = one[:, None] != two[None] if column == "area" else ((one[:, None] - two[None]) / two.std()) ** 2
        gaps += apart_by
    near = gaps <= gaps.min(axis=1, keepdims=True) + 1e-9
    same = original["ill"].to_numpy()[:, None] == released["ill"].to_numpy()[None]
    expected = (near & same).sum(axis=1) / near.sum(axis=1)
    score = Inference("ill", KNOWN, snoopers=("match",)).measure(read(released), read(original))
    assert score.by_record()["risk"].to_numpy() == pytest.approx(expected, abs=1e-12)
