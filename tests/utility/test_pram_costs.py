"""What post-randomization costs: changed records, distances, added variance, and estimates that undo the matrix."""

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.ground.randomness import Draws
from equipoise.laws.cell_law import leaving_law, theta_for
from equipoise.masks import Pram, PramMatrix
from equipoise.utility import Changed, VarianceInflation, pram_adjust

OWN = np.array([[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.2, 0.1, 0.7]])


# --- pram_adjust --------------------------------------------------------------------------------------------------


def test_adjust_by_hand() -> None:
    """S = (56, 44), P = [[.9, .1], [.2, .8]]: T = (P')^-1 S = (36, 34) / 0.7."""
    found = pram_adjust([56, 44], [[0.9, 0.1], [0.2, 0.8]], categories=["x", "y"])
    assert found["estimate"].to_list() == pytest.approx([36 / 0.7, 34 / 0.7], abs=1e-12)
    t1, t2 = 36 / 0.7, 34 / 0.7
    error = np.sqrt(t1 * 0.09 + t2 * 0.16) / 0.7
    assert found["error"].to_list() == pytest.approx([error, error], abs=1e-12)
    assert found["category"].to_list() == ["x", "y"]
    assert found["released"].to_list() == [56.0, 44.0]


def test_adjusted_counts_are_unbiased_and_their_errors_right() -> None:
    """Gouweleeuw et al., section 3: unbiased within 4 standard errors, stated error within 10 % of the simulated."""
    rng = np.random.default_rng(1998)
    truth, times = np.array([700, 250, 50]), 4000
    released = sum(rng.multinomial(t, row, size=times) for t, row in zip(truth, OWN, strict=True))
    back = np.linalg.inv(OWN.T)
    estimates = np.stack([pram_adjust(s, OWN)["estimate"].to_numpy() for s in released[:200]])
    assert estimates == pytest.approx((released[:200] @ back.T), abs=1e-9)
    whole = released @ back.T
    spread = whole.std(axis=0, ddof=1)
    assert (np.abs(whole.mean(axis=0) - truth) <= 4 * spread / np.sqrt(times)).all()
    stated = np.stack([pram_adjust(s, OWN)["error"].to_numpy() for s in released[:200]]).mean(axis=0)
    assert stated == pytest.approx(spread, rel=0.1)


def test_adjusting_a_released_file() -> None:
    """From the mask's public law to the user's estimate: nearer the truth than the released counts."""
    rng = np.random.default_rng(5)
    table = pl.DataFrame({"c": rng.choice([1, 2, 3], 30_000, p=[0.7, 0.25, 0.05])})
    mask = PramMatrix("c", matrix=tuple(map(tuple, OWN)), invariant=False)  # type: ignore[arg-type]
    released = mask.apply(eq.read(table, eq.Roles("c")), Draws(4))
    counts = [(released.collect()["c"] == v).sum() for v in (1, 2, 3)]
    truth = np.array([(table["c"] == v).sum() for v in (1, 2, 3)])
    found = pram_adjust(counts, released.history[-1].parameters["matrix"])
    assert (np.abs(found["estimate"].to_numpy() - truth) <= 4 * found["error"].to_numpy()).all()
    assert np.abs(np.array(counts) - truth).max() > 5 * np.abs(found["estimate"].to_numpy() - truth).max()


@pytest.mark.parametrize(
    ("counts", "matrix", "said"),
    [
        ([1, 2], [[0.5, 0.5], [0.5, 0.5]], "cannot be inverted"),
        ([1, 2, 3], [[0.5, 0.5], [0.4, 0.6]], "3 counts need"),
        ([1, 2], [[0.5, 0.6], [0.4, 0.6]], "sum to 1"),
        ([1, 2], [[1.5, -0.5], [0.4, 0.6]], "sum to 1"),
    ],
)
def test_adjust_refuses(counts: list[int], matrix: list[list[float]], said: str) -> None:
    """A singular matrix does not determine the original counts."""
    with pytest.raises(eq.ParameterError, match=said):
        pram_adjust(counts, matrix)


# --- Changed ------------------------------------------------------------------------------------------------------


def test_changed_by_hand() -> None:
    """Two of four records changed; ages 0 and 1 meet in a band of 2, 0 and 3 only in one of 4."""
    old = pl.DataFrame({"id": [1, 2, 3, 4], "age": [0, 0, 2, 3], "sex": ["f", "m", "m", "f"]})
    new = old.with_columns(age=pl.Series([1, 3, 2, 3]), sex=pl.Series(["f", "f", "m", "f"]))
    roles = eq.Roles(["age", "sex"], id="id", hierarchies={"age": eq.Hierarchy.intervals([2, 4])})
    score = Changed().measure(eq.read(new.reverse(), roles), eq.read(old, roles))
    assert (score.value, score.number, score.side) == (0.5, 2.0, "utility")
    rows = {row["key"]: row for row in score.detail.iter_rows(named=True)}
    assert rows["age"]["changed"] == 0.5
    assert rows["sex"]["changed"] == 0.25
    assert rows["age"]["distance"] == pytest.approx((1 / 3 + 2 / 3) / 2)
    assert rows["sex"]["distance"] == 1.0
    assert rows["all"]["distance"] == pytest.approx(((1 / 3 + 0) / 2 + (2 / 3 + 1) / 2) / 2)


def test_changed_says_what_was_expected() -> None:
    """Expected movers in a note; the realised ones within 4 standard errors of them."""
    table = pl.DataFrame({"id": range(3000), "a": np.arange(3000) // 2, "b": [0, 1] * 1500})
    records = eq.read(table, eq.Roles(["a", "b"], id="id"))
    released = Pram(0.8).apply(records, Draws(2))
    score = Changed().measure(released, records)
    assert score.notes[0].startswith("1,000.0 units were expected")
    assert score.number is not None
    assert abs(score.number - 1000) <= 4 * np.sqrt(3000 * 2 / 9)
    assert Changed().measure(records, records).value == 0


# --- VarianceInflation --------------------------------------------------------------------------------------------


def test_inflation_by_hand() -> None:
    """Nayak and Adeshiyan: two uniques among three cells (1, 1, 2) with theta each: T p (1 - p) summed over sources."""
    table = pl.DataFrame({"a": ["x", "y", "z", "z"]})
    records = eq.read(table, eq.Roles("a"))
    released = Pram(0.8, method="nayak").apply(records, Draws(1))
    score = VarianceInflation().measure(released, records)
    theta = theta_for(0.8)

    def spread(p: float) -> float:
        return p * (1 - p)

    one = spread(theta) + spread(theta / 2) + 2 * spread(theta / 4)
    two = 2 * spread(theta / 2) + 2 * spread(theta / 2)
    inflation = np.array([1 + one / 0.75, 1 + one / 0.75, 1 + two / 1.0])
    found = score.detail.sort("n")
    assert found["added"].to_list() == pytest.approx([one, one, two], abs=1e-12)
    assert found["inflation"].to_list() == pytest.approx(inflation.tolist(), abs=1e-12)
    assert score.value == pytest.approx(float((inflation * [1, 1, 2]).sum() / 4), abs=1e-12)


def test_inflation_agrees_with_many_draws() -> None:
    """The added variance is that of the released counts over repeated draws (chi-square bounds on 400 draws)."""
    rng = np.random.default_rng(6)
    table = pl.DataFrame({"id": range(40), "a": rng.integers(0, 18, 40)})
    records, times = eq.read(table, eq.Roles("a", id="id")), 400
    for method in ("blocks", "nayak"):
        mask = Pram(0.6, method=method)  # type: ignore[arg-type]
        law = mask.plan(records).law
        values = np.unique(table["a"].to_numpy())
        draws = np.stack(
            [
                np.bincount(mask.apply(records, Draws(s)).collect()["a"].to_numpy(), minlength=18)[values]
                for s in range(times)
            ]
        )
        found = draws.var(axis=0, ddof=1)
        expected = law.variance()
        assert (found[expected == 0] == 0).all()
        moving = expected > 0
        assert (np.abs(found / np.where(moving, expected, 1) - 1)[moving] < 6 * np.sqrt(2 / times)).all()


def test_inflation_is_one_where_nothing_is_random() -> None:
    """A coarsened file adds no variance; masks other than Pram are refused; one cell alone does not divide by zero."""
    table = pl.DataFrame({"a": [1, 2, 3, 4], "b": [1, 1, 1, 1]})
    records = eq.read(table, eq.Roles(["a"], hierarchies={"a": eq.Hierarchy.intervals(2)}))
    coarse = eq.masks.Recode("a", 1).apply(records, Draws(1))
    assert VarianceInflation().measure(coarse, records).value == 1.0
    other = PramMatrix("a", diagonal=0.5).apply(records, Draws(1))
    with pytest.raises(eq.ParameterError, match="Pram only"):
        VarianceInflation().measure(other, records)
    alike = eq.read(pl.DataFrame({"b": [1] * 9}), eq.Roles("b"))
    assert VarianceInflation().measure(Pram(0.5).apply(alike, Draws(1)), alike).value == 1.0


def test_the_dial() -> None:
    """xi is a dial: lower xi, more expected movers and more added variance, for both methods."""
    counts = np.array([1] * 30 + [2] * 10 + [5] * 5)
    group = np.zeros(len(counts), dtype=np.int64)
    movers = [leaving_law(counts, group, xi).movers() for xi in (0.9, 0.8, 0.6, 0.5)]
    assert movers == sorted(movers)
    table = pl.DataFrame({"a": np.repeat(np.arange(45), counts)})
    records = eq.read(table, eq.Roles("a"))
    ours = [Pram(xi).plan(records).law.movers() for xi in (0.95, 0.9, 0.8, 0.6, 0.5, 0.4, 0.2)]
    assert ours == sorted(ours)
