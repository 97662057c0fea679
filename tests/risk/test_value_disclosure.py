"""The snooper who has found the record: against the closed forms of Duncan and Keller-McNulty, and worked by hand."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.risk import ValueDisclosure


def pair(x: np.ndarray, y: np.ndarray) -> tuple[eq.Records, eq.Records]:
    roles = eq.Roles(numeric="x")
    return eq.read(pl.DataFrame({"x": y}), roles), eq.read(pl.DataFrame({"x": x}), roles)


def test_the_original_discloses_everything_and_a_constant_guess_nothing() -> None:
    """The two ends of the scale."""
    x = np.array([1.0, 2.0, 4.0, 9.0])
    assert ValueDisclosure().measure(*pair(x, x)).value == 1.0
    shuffled = ValueDisclosure().measure(*pair(x, np.array([2.0, 9.0, 1.0, 4.0])))
    assert 0 <= shuffled.value < 0.5


def test_noise_matches_the_shrinking_snooper() -> None:
    """Noise of variance l2 on s2: the best linear snooper leaves l2 / (s2 + l2) (seeds, 001), within 4 errors."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=200_000)
    y = x + rng.normal(scale=0.7, size=len(x))
    score = ValueDisclosure(snooper="own").measure(*pair(x, y))
    assert score.value == pytest.approx(1 / (1 + 0.49), abs=4 * 2 / np.sqrt(len(x)))
    strongest = ValueDisclosure().measure(*pair(x, y))
    assert strongest.value == pytest.approx(score.value, abs=1e-3)
    row = score.detail.row(0, named=True)
    assert row["strongest"] == "best linear"
    assert row["linked record"] == pytest.approx(0.49, abs=0.01)
    assert row["mean"] == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("panel", [1, 4])
def test_the_interval_covers_what_the_law_tells(panel: int) -> None:
    """Noise of half a standard deviation leaves R^2 = 1 / 1.25, in people of one row or of four alike."""
    rng, inside = np.random.default_rng(7), 0
    for _ in range(200):
        x, noise = (np.repeat(rng.normal(0, scale, 300 // panel), panel) for scale in (1.0, 0.5))
        person = np.arange(300) // panel
        original, released = (
            eq.Records.of(pl.DataFrame({"p": person, "x": column}), eq.Roles(numeric="x", person="p"))
            for column in (x, x + noise)
        )
        low, high = eq.risk.ValueDisclosure(snooper="own").measure(released, original).interval or (1.0, 0.0)
        inside += low <= 0.8 <= high
    assert inside / 200 > 0.95 - 5 * (0.95 * 0.05 / 200) ** 0.5


def test_the_upper_end_covers_what_a_bent_line_tells() -> None:
    """x = |z| + noise beside a released z: R^2 = v / (v + 0.09), v = 1 - 2 / pi, of which no line shows anything.

    The rule is fitted to the originals and so leans upwards: the lower end promises less.
    """
    rng, below, told = np.random.default_rng(5), 0, (1 - 2 / np.pi) / (1 - 2 / np.pi + 0.09)
    for _ in range(20):
        z = rng.normal(size=400)
        table = pl.DataFrame({"x": np.abs(z) + 0.3 * rng.normal(size=400), "z": z})
        original = eq.Records.of(table, eq.Roles(numeric="x"))
        released = eq.Records.of(
            table.with_columns(x=pl.Series(rng.permutation(table["x"].to_numpy()))), original.roles
        )
        below += told <= (ValueDisclosure().measure(released, original).interval or (1.0, 0.0))[1]
    assert below / 20 > 0.975 - 3 * (0.975 * 0.025 / 20) ** 0.5


def test_worked_by_hand() -> None:
    """x = 0, 2; y = 1, 3: the link misses by 1 each (MSE 1 = the variance), the line through them is exact."""
    found = ValueDisclosure().measure(*pair(np.array([0.0, 2.0]), np.array([1.0, 3.0])))
    row = found.detail.row(0, named=True)
    assert row["linked record"] == pytest.approx(1.0)
    assert row["mean"] == pytest.approx(2.0)
    assert found.value == pytest.approx(1.0)


def test_a_synthetic_file_of_one_column_leaves_the_mean() -> None:
    """Nobody's record is in a fully synthetic file, and there is nothing else to know of a person."""
    records = eq.read(pl.DataFrame({"x": np.arange(50.0)}), eq.Roles(numeric="x"))
    released = eq.Recipe([eq.masks.Synthesize(model="bootstrap")], 1).run(records)
    score = ValueDisclosure().measure(released, records)
    assert score.value == pytest.approx(0.0, abs=1e-12)
    assert score.detail["linked record"].to_list() == [None]


def correlated(n: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Three normal columns and their covariance."""
    covariance = np.array([[1.0, 0.8, 0.5], [0.8, 1.0, 0.6], [0.5, 0.6, 1.0]])
    return np.random.default_rng(seed).multivariate_normal(np.zeros(3), covariance, n), covariance


def frame(values: np.ndarray) -> pl.DataFrame:
    return pl.DataFrame(dict(zip("abc", values.T, strict=True)))


def records_of(values: np.ndarray) -> eq.Records:
    return eq.read(frame(values), eq.Roles(numeric=("a", "b", "c")))


@pytest.mark.parametrize("copies", [1, 3])
def test_all_columns_reach_the_closed_form_of_normal_data(copies: int) -> None:
    """R^2_j = (S (S + N / m)^-1 S)_jj / S_jj for noise N on m copies of normal data, within 4 standard errors."""
    n = 40_000
    x, covariance = correlated(n)
    noise = np.diag([1.0, 0.5, 0.25])
    rng = np.random.default_rng(2)
    drawn = [x + rng.normal(size=x.shape) * np.sqrt(np.diag(noise)) for _ in range(copies)]
    roles = eq.Roles(numeric=("a", "b", "c"), sample="sample" if copies > 1 else None)
    tables = [frame(y).with_columns(sample=pl.lit(i)) if copies > 1 else frame(y) for i, y in enumerate(drawn)]
    score = ValueDisclosure().measure(eq.read(pl.concat(tables), roles), records_of(x))
    expected = np.diag(covariance @ np.linalg.solve(covariance + noise / copies, covariance)) / np.diag(covariance)
    assert score.detail["risk"].to_numpy() == pytest.approx(expected, abs=4 * 2 / np.sqrt(n))
    alone = ValueDisclosure(snooper="own").measure(eq.read(tables[0], eq.Roles(numeric="a")), records_of(x))
    assert score.value > alone.value + 0.01


def test_a_sum_left_as_it_was_gives_its_part_away() -> None:
    """c = a + b: noise on c alone hides nothing while a and b are released."""
    x, _ = correlated(500)
    x[:, 2] = x[:, 0] + x[:, 1]
    y = x.copy()
    y[:, 2] += np.random.default_rng(4).normal(size=len(y)) * 2
    score = ValueDisclosure("c").measure(records_of(y), records_of(x))
    assert score.value == pytest.approx(1.0)
    assert ValueDisclosure("c", snooper="own").measure(records_of(y), records_of(x)).value < 0.6


def test_a_bend_is_followed_and_a_category_used() -> None:
    """x = |y|: no line explains it, a bent one does; so does a released category that says the sign."""
    y = np.random.default_rng(5).normal(size=600)
    original = eq.read(pl.DataFrame({"x": np.abs(y), "group": np.where(y > 0, "up", "down")}), eq.Roles(numeric="x"))
    released = eq.read(pl.DataFrame({"x": y, "group": np.where(y > 0, "up", "down")}), eq.Roles(numeric="x"))
    row = ValueDisclosure(trees=True).measure(released, original).detail.row(0, named=True)
    assert row["all columns"] > 0.9
    assert row["curved"] < 0.1
    assert row["trees"] < 0.1


def test_trees_find_what_no_sum_does() -> None:
    """x = sign(y z): neither column alone says anything of it."""
    y, z = np.random.default_rng(6).normal(size=(2, 2_000))
    table = pl.DataFrame({"x": y, "z": z})
    original = eq.read(table.with_columns(x=pl.Series(np.sign(y * z))), eq.Roles(numeric="x"))
    released = eq.read(table, eq.Roles(numeric="x"))
    row = ValueDisclosure(trees=True).measure(released, original).detail.row(0, named=True)
    assert row["curved"] > 0.8
    assert max(row["flexible"], row["trees"]) < 0.2


def test_a_synthetic_file_is_measured_beside_its_holdout() -> None:
    """What the other columns of a person tell is learnt from the synthetic file, and of people outside it as well."""
    x, covariance = correlated(3_000)
    records = records_of(x[:2_000])
    released = eq.Recipe([eq.masks.Synthesize()], 1).run(records)
    score = ValueDisclosure("b").measure(released, replace(records, holdout=records_of(x[2_000:])))
    others = [0, 2]
    part = covariance[1, others]
    expected = part @ np.linalg.solve(covariance[np.ix_(others, others)], part)
    assert score.value == pytest.approx(expected, abs=0.05)
    assert score.baseline == pytest.approx(expected, abs=0.1)
    assert "knows all other columns" in score.notes[1]
    less = ValueDisclosure("b", known="c").measure(released, records)
    assert less.baseline == pytest.approx(0.0)


def test_a_value_that_was_copied_finds_its_owner() -> None:
    """Nobody outside is known better than the correlation of 0.6 tells; members are, by trees down to one record."""
    x, _ = correlated(3_000)
    records = records_of(x[:2_000])
    released = eq.Recipe([eq.masks.Synthesize()], 1).run(records)
    score = ValueDisclosure("b", known="c").measure(released, replace(records, holdout=records_of(x[2_000:])))
    assert score.interval is not None
    assert score.interval[0] > 0.4
    assert score.baseline == pytest.approx(0.36, abs=0.08)


def test_a_gap_is_seen_and_nothing_breaks() -> None:
    """Missing values on either side: the gap itself is a column of the snooper."""
    x, _ = correlated(300)
    y = x + np.random.default_rng(7).normal(size=x.shape)
    y[:40, 0], x[20:30, 0] = np.nan, np.nan
    score = ValueDisclosure().measure(records_of(y), records_of(x))
    assert 0 < score.value < 1


def test_a_constant_column_is_refused() -> None:
    """No variance, no share of it."""
    x = np.ones(5)
    with pytest.raises(eq.DataError, match="variation"):
        ValueDisclosure().measure(*pair(x, x))


@pytest.mark.parametrize("sampled", [False, True])
def test_the_flexible_snooper_guesses_for_records_that_it_has_not_seen(
    sampled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Points of a curve, hidden by noise, are guessed better than by any sum of curves; what is unrelated is not."""
    if sampled:
        monkeypatch.setattr("equipoise.risk._value_snoopers.forest.MAX_WORK", 0)
    rng = np.random.default_rng(8)
    angle = rng.uniform(0, 2 * np.pi, 900)
    x = np.column_stack([np.cos(angle), np.sin(2 * angle), rng.normal(size=900)])
    y = x + rng.normal(size=x.shape) * 0.25
    y[:, 2] = np.sin(angle)
    detail = ValueDisclosure().measure(records_of(y), records_of(x)).detail
    assert detail["strongest"][1] == "flexible"
    assert detail["flexible"][1] < detail["curved"][1]
    assert detail["flexible"][2] > 0.95
