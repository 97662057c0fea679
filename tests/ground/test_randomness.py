"""Draws: uniform, keyed by the record, blind to order, and a secret."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.ground.randomness import Draws, new_seed

MANY = pl.Series("id", np.arange(20_000))


@pytest.mark.parametrize("keys", [MANY, MANY.cast(pl.String), MANY.cast(pl.String) + "-a key longer than a block"])
def test_draws_are_uniform(keys: pl.Series) -> None:
    """Kolmogorov-Smirnov against U(0, 1), n = 20,000, fixed seed; p above 0.001 and all in [0, 1)."""
    from scipy.stats import kstest

    drawn = Draws(2024).child(0).uniform(keys)
    assert kstest(drawn, "uniform").pvalue > 0.001
    assert drawn.min() >= 0
    assert drawn.max() < 1
    assert len(np.unique(drawn)) == len(drawn)


@pytest.mark.parametrize(
    "other",
    [
        lambda: Draws(1).child(1).uniform(MANY),
        lambda: Draws(2).child(0).uniform(MANY),
        lambda: Draws(1).child(0).uniform(MANY, counter=1),
        lambda: Draws(1).child(0).child(0).uniform(MANY),
        lambda: Draws(1).child(0).uniform(MANY.cast(pl.String)),
        lambda: Draws(1).child(0).uniform(MANY + 1),
    ],
    ids=["step", "seed", "counter", "path", "text", "shifted ids"],
)
def test_another_seed_step_or_counter_draws_anew(other: object) -> None:
    """Correlation of 20,000 pairs below 4 standard errors (0.028), no draw in common."""
    assert callable(other)
    a, b = Draws(1).child(0).uniform(MANY), other()
    assert abs(np.corrcoef(a, b)[0, 1]) < 4 / np.sqrt(len(MANY))
    assert not (a == b).any()


@given(
    ids=st.lists(st.text(max_size=40), unique=True, min_size=1, max_size=20),
    seed=st.integers(0, 2**128 - 1),
    shuffle=st.randoms(use_true_random=False),
)
def test_order_and_company_do_not_matter(ids: list[str], seed: int, shuffle: object) -> None:
    """A record's draw depends on its id alone: not on its place, nor on who else is in the file."""
    draws = Draws(seed).child(3)
    alone = {i: draws.uniform(pl.Series([i]))[0] for i in ids}
    moved = list(ids)
    shuffle.shuffle(moved)  # type: ignore[attr-defined]
    assert dict(zip(moved, draws.uniform(pl.Series(moved)).tolist(), strict=True)) == alone
    assert len(set(alone.values())) == len(ids)


def test_keys_that_begin_alike_or_hold_zero_bytes_differ() -> None:
    """CBC-MAC with the length first: no key is a prefix of another, and padding is not data."""
    keys = ["", "\x00", "\x00\x00", "a", "a\x00", "a" * 16, "a" * 16 + "\x00", "a" * 32, "a" * 33]
    drawn = Draws(5).uniform(pl.Series(keys))
    assert len(set(drawn.tolist())) == len(keys)


def test_the_same_number_in_any_width_is_the_same_id() -> None:
    """Engines store ids in integers of other widths."""
    expected = Draws(5).uniform(pl.Series([1, 2, 3], dtype=pl.Int64))
    for dtype in (pl.Int8, pl.UInt16, pl.Int32, pl.UInt64):
        assert (Draws(5).uniform(pl.Series([1, 2, 3], dtype=dtype)) == expected).all()


def test_ids_above_the_signed_range() -> None:
    """UInt64 ids beyond 2^63 are common (hashes); each is its own."""
    keys = pl.Series([2**63, 2**63 + 1, 2**64 - 1, 0], dtype=pl.UInt64)
    assert len(set(Draws(5).uniform(keys).tolist())) == 4


def test_frozen_numbers() -> None:
    """AES is a standard: these draws must never change, or old releases could not be made again."""
    numbers = Draws(7).child(0).child(1).uniform(pl.Series([1, 2]))
    texts = Draws(7).child(0).child(1).uniform(pl.Series(["1", "a name of seventeen"]))
    assert numbers.tolist() == [0.704520524289249, 0.22951054821198513]
    assert texts.tolist() == [0.05274914174759293, 0.6429076461981837]


@pytest.mark.parametrize("seed", [-1, 2**128, 1.5, "7", None])
def test_unfit_seeds(seed: object) -> None:
    with pytest.raises(eq.ParameterError, match="seed"):
        Draws(seed)  # type: ignore[arg-type]


def test_seeds_come_from_the_operating_system() -> None:
    """128 bits; two recipes never share one, unless told."""
    assert len({new_seed() for _ in range(50)}) == 50
    assert eq.Recipe().seed != eq.Recipe().seed
    assert eq.Recipe(seed=3).seed == 3


def test_the_seed_is_not_in_the_repr() -> None:
    assert "987654321" not in repr(Draws(987654321).child(2))


def test_no_draws_for_nobody() -> None:
    assert len(Draws(1).uniform(pl.Series([], dtype=pl.String))) == 0


@pytest.mark.parametrize("ids", [[1, 1, 2], [1, None, 2], ["a", "a", "b"]])
def test_repeated_or_missing_ids_are_refused(ids: list[object]) -> None:
    """House: duplicate ids are refused; the error says so without an id."""
    records = eq.read(pl.DataFrame({"id": ids, "x": [1, 2, 3]}), eq.Roles(["x"], id="id"))
    with pytest.raises(eq.RolesError, match="missing or repeated"):
        records.keys_of_rows()


def test_without_an_id_identical_rows_are_told_apart() -> None:
    """The row's content plus its number among identical rows: a multiset of draws that no order can change."""
    rows = [("a", 1.5), ("a", 1.5), ("b", None), (None, 1.5), ("a", 1.5)]
    draws = Draws(9).child(0)

    def drawn(order: list[int]) -> list[tuple[object, ...]]:
        table = pl.DataFrame([rows[i] for i in order], schema={"x": pl.String, "y": pl.Float64}, orient="row")
        u = draws.uniform(eq.read(table, eq.Roles(["x"])).keys_of_rows())
        return sorted(zip(map(str, table.rows()), u.tolist(), strict=True))

    assert drawn([0, 1, 2, 3, 4]) == drawn([4, 3, 2, 1, 0]) == drawn([2, 0, 4, 1, 3])
    assert len({u for _, u in drawn([0, 1, 2, 3, 4])}) == 5
