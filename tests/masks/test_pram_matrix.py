"""PramMatrix: transitions follow the matrix, the invariant version keeps expected counts, nulls stay."""

from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import equipoise as eq
from equipoise.ground.randomness import Draws
from equipoise.masks import PramMatrix
from equipoise.masks.pram_matrix import invariant_matrix

OWN = ((0.7, 0.2, 0.1), (0.05, 0.9, 0.05), (0.3, 0.3, 0.4))


def moved(mask: PramMatrix, table: Any, seed: int = 1, **roles: Any) -> pl.DataFrame:
    return mask.apply(eq.read(table, eq.Roles("c", **roles)), Draws(seed)).collect()


def letters(size: int, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame({"id": np.arange(size), "c": rng.choice(["a", "b", "d"], size, p=[0.6, 0.3, 0.1])})


def transitions(old: pl.DataFrame, new: pl.DataFrame, values: list[Any]) -> Any:
    """How many records of each category (rows) became each (columns)."""
    pairs = Counter(zip(old["c"], new["c"], strict=True))
    return np.array([[pairs[i, j] for j in values] for i in values], dtype=float)


def within_errors(found: Any, law: Any) -> bool:
    """Every transition within 4 standard errors of its probability."""
    sizes = found.sum(axis=1, keepdims=True)
    error = np.sqrt(law * (1 - law) / sizes)
    return bool((np.abs(found / sizes - law) <= 4 * error + 1e-12).all())


# --- the matrix ---------------------------------------------------------------------------------------------------


def test_invariant_by_hand() -> None:
    """Two categories of 100 and 100, P = [[.8, .2], [.4, .6]]: released 120 and 80; R worked by hand."""
    found = invariant_matrix(np.array([[0.8, 0.2], [0.4, 0.6]]), np.array([100.0, 100.0]))
    back = np.array([[80 / 120, 40 / 120], [20 / 80, 60 / 80]])
    assert found == pytest.approx(np.array([[0.8, 0.2], [0.4, 0.6]]) @ back, abs=1e-15)
    assert found == pytest.approx(np.array([[7 / 12, 5 / 12], [5 / 12, 7 / 12]]), abs=1e-15)


@given(
    st.lists(st.integers(0, 50), min_size=2, max_size=6).filter(lambda t: sum(x > 0 for x in t) > 0),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_the_invariant_version_keeps_expected_counts(counts: list[int], diagonal: float, alpha: float) -> None:
    """T R = T to 1e-12, rows sum to 1, and the diagonal is at least what was asked, with absent categories too."""
    t = np.array(counts, dtype=float)
    found = PramMatrix("c", diagonal=diagonal, alpha=alpha).transition(t)
    assert np.abs(t @ found - t).max() <= 1e-12 * max(1, t.sum())
    assert np.abs(found.sum(axis=1) - 1).max() <= 1e-12
    assert found.min() >= -1e-15
    assert np.diag(found).min() >= diagonal - 1e-12
    assert np.abs(found[t > 0][:, t == 0]).max(initial=0) == 0, "nobody is moved to a category that is absent"


@given(st.integers(2, 6), st.integers(0, 1000), st.floats(0, 1))
def test_own_matrices_are_made_invariant(size: int, seed: int, alpha: float) -> None:
    """R = P P<- for any P; alpha R + (1 - alpha) I is invariant as well."""
    rng = np.random.default_rng(seed)
    base = rng.dirichlet(np.ones(size), size)
    t = rng.integers(1, 100, size).astype(float)
    found = PramMatrix("c", matrix=tuple(map(tuple, base)), alpha=alpha).transition(t)  # type: ignore[arg-type]
    assert np.abs(t @ found - t).max() <= 1e-10
    still = PramMatrix("c", matrix=tuple(map(tuple, base)), alpha=0).transition(t)  # type: ignore[arg-type]
    assert still == pytest.approx(np.eye(size), abs=1e-15)
    plain = PramMatrix("c", matrix=tuple(map(tuple, base)), invariant=False).transition(t)  # type: ignore[arg-type]
    assert plain == pytest.approx(base, abs=1e-12)


# --- on records ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1.0, 0.4])
@pytest.mark.parametrize("invariant", [True, False])
def test_records_follow_the_matrix(invariant: bool, alpha: float) -> None:
    """Gouweleeuw et al.: value i becomes j with probability matrix[i][j]; every one within 4 standard errors."""
    table = letters(60_000)
    mask = PramMatrix("c", matrix=OWN, invariant=invariant, alpha=alpha)
    counts = np.array([table["c"].to_list().count(v) for v in ("a", "b", "d")], dtype=float)
    found = transitions(table, moved(mask, table, id="id"), ["a", "b", "d"])
    assert within_errors(found, mask.transition(counts))
    if not invariant and alpha == 1:
        assert within_errors(found, np.array(OWN))


def test_diagonal_on_records() -> None:
    """diagonal=d: each value stays with probability d at least, and expected counts are kept."""
    table = letters(40_000)
    found = transitions(table, moved(PramMatrix("c", diagonal=0.8), table, id="id"), ["a", "b", "d"])
    sizes = found.sum(axis=1)
    assert (np.diag(found) / sizes >= 0.8 - 4 * np.sqrt(0.16 / sizes)).all()
    assert (np.abs(found.sum(axis=0) - sizes) <= 4 * np.sqrt(2 * 0.2 * 40_000)).all()
    assert moved(PramMatrix("c", diagonal=1.0), table, id="id").equals(table)


def test_strata_have_matrices_of_their_own() -> None:
    """Within each stratum the expected counts are kept; a category absent from a stratum stays absent."""
    rng = np.random.default_rng(1)
    size = 40_000
    table = pl.DataFrame({"id": range(size), "s": rng.choice(["x", "y"], size)})
    table = table.with_columns(
        c=pl.when(pl.col("s") == "x")
        .then(pl.Series(rng.choice(["a", "b"], size, p=[0.9, 0.1])))
        .otherwise(pl.Series(rng.choice(["b", "d", "e"], size)))
    )
    mask = PramMatrix("c", diagonal=0.6, strata=("s",))
    found = moved(mask, table, id="id")
    for stratum in ("x", "y"):
        old, new = table.filter(s=stratum), found.filter(s=stratum)
        assert set(new["c"]) == set(old["c"])
        counts = np.array([(old["c"] == v).sum() for v in ("a", "b", "d", "e")], dtype=float)
        law = mask.transition(counts)
        assert np.abs(counts @ law - counts).max() <= 1e-12 * size
        here = counts > 0
        values = [v for v, there in zip(("a", "b", "d", "e"), here, strict=True) if there]
        assert within_errors(transitions(old, new, values), law[here][:, here])
    assert found.drop("c").equals(table.drop("c"))


def test_missing_values_stay_missing() -> None:
    """PRAM neither makes nor fills nulls; NaN is missing as well; types stay."""
    rng = np.random.default_rng(2)
    table = pl.DataFrame({"c": rng.choice([1.5, 2.5, float("nan")], 500), "k": range(500)})
    table = table.with_columns(pl.when(pl.col("k") % 7 == 0).then(None).otherwise(pl.col("c")).alias("c"))
    found = moved(PramMatrix("c", diagonal=0.5), table)
    assert (found["c"].fill_nan(None).is_null() == table["c"].fill_nan(None).is_null()).all()
    assert found.schema == table.schema
    assert set(found["c"].fill_nan(None).drop_nulls()) == {1.5, 2.5}
    text = letters(300).with_columns(pl.when(pl.col("id") < 30).then(None).otherwise(pl.col("c")).alias("c"))
    mixed = moved(PramMatrix("c", matrix=OWN), text, id="id")
    assert (mixed["c"].is_null() == text["c"].is_null()).all(), "a null is no category of the matrix"


def test_the_draw_depends_on_the_record_only() -> None:
    """Same seed, same file, whatever the row order; another seed, another file."""
    table, mask = letters(500), PramMatrix("c", diagonal=0.5)
    one = moved(mask, table, id="id")
    two = moved(mask, table.sample(fraction=1, shuffle=True, seed=3), id="id").sort("id")
    assert_frame_equal(one, two)
    assert not one.equals(moved(mask, table, seed=2, id="id"))
    lazy = mask.apply(eq.read(table.lazy(), eq.Roles("c", id="id")), Draws(1)).collect()
    assert_frame_equal(lazy.sort("id"), one)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"matrix": OWN, "diagonal": 0.5},
        {"matrix": ((0.5, 0.5), (0.5, 0.4))},
        {"matrix": ((1.2, -0.2), (0.5, 0.5))},
        {"matrix": ((0.5, 0.5),)},
        {"matrix": ((1.0,), (0.5, 0.5))},
        {"matrix": ((float("nan"), 1.0), (0.5, 0.5))},
        {"diagonal": 1.1},
        {"diagonal": -0.1},
        {"diagonal": 0.5, "alpha": 1.5},
    ],
)
def test_what_is_no_transition_matrix_is_refused(given: dict[str, Any]) -> None:
    """Before any data is read: rows of probabilities, as many as columns, or a share for the diagonal."""
    with pytest.raises(eq.ParameterError):
        PramMatrix("c", **given)


def test_a_matrix_of_another_size_is_refused() -> None:
    """Three categories in the data, two in the matrix; and a column with one category has nowhere to go."""
    with pytest.raises(eq.ParameterError, match="2 rows; column 'c' has 3 categories"):
        moved(PramMatrix("c", matrix=((0.5, 0.5), (0.5, 0.5))), letters(50))
    with pytest.raises(eq.DataError, match="1 category"):
        moved(PramMatrix("c", diagonal=0.5), pl.DataFrame({"c": ["a"] * 5}))
    with pytest.raises(eq.DataError, match="3,000 categories"):
        moved(PramMatrix("c", diagonal=0.5), pl.DataFrame({"c": range(3000)}))
    with pytest.raises(eq.RolesError, match="Did you mean 'c'"):
        PramMatrix("cc", diagonal=0.5).apply(eq.read(letters(9), eq.Roles("c")), Draws(1))


def test_the_law_says_what_users_need() -> None:
    """The matrix is public: users adjust with it; the seed is not."""
    law = PramMatrix("c", matrix=OWN, invariant=False).law()
    assert law.parameters["matrix"] == [list(row) for row in OWN]
    assert not law.coarsens
