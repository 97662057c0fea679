"""Pairs by rare values: right where a column was left unchanged, none where it was renumbered or swapped."""

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.intrusion.agreeing_pairs import agreeing_pairs
from equipoise.intrusion.plain_join import best_join
from equipoise.intrusion.unpaired import Unpaired
from equipoise.intrusion.who_is_who import pair


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    rng = np.random.default_rng(8)
    size = rng.normal(size=(200, 1))
    pay, tax = np.exp(5 + size + 0.5 * rng.normal(size=(200, 2))).round(2).T
    return pl.DataFrame({"nr": range(200), "pay": pay, "tax": tax, "job": rng.choice(list("abcde"), 200)})


def released(table: pl.DataFrame, **columns: np.ndarray) -> tuple[pl.DataFrame, np.ndarray]:
    """The table with other columns and in another order, and the person of each record."""
    order = np.random.default_rng(2).permutation(table.height)
    return table.with_columns(pl.Series(c, values) for c, values in columns.items())[order], order


def test_an_unchanged_amount_pairs_everybody_and_new_numbers_nobody(table: pl.DataFrame) -> None:
    rng = np.random.default_rng(1)
    noise = table["tax"].to_numpy() * (1 + 0.2 * rng.normal(size=200))
    mixed, order = released(table, nr=rng.permutation(200), tax=noise)
    pairs = agreeing_pairs(mixed, table)
    assert (pairs.columns, pairs.strangers) == (("pay",), ("nr",))
    assert len(pairs) == 200
    assert (order[pairs.records] == pairs.people).all()


def test_swapped_values_pair_nobody(table: pl.DataFrame) -> None:
    """Values exchanged between people of near ranks find people who are alike, not the same."""
    swapped = {}
    for seed, column in enumerate(("pay", "tax")):
        values, rng = table[column].to_numpy().copy(), np.random.default_rng(seed)
        for rows in np.split(np.argsort(values), 10):
            values[rows] = rng.permutation(values[rows])
        swapped[column] = values
    mixed, _ = released(table.drop("nr"), **swapped)
    assert len(agreeing_pairs(mixed, table.drop("nr"))) < 10


def test_how_many_pairs_are_right_is_known_where_some_are_not(table: pl.DataFrame) -> None:
    """A third of the people have somebody else's amount: that share of the pairs is wrong, and doubted."""
    rng, pay = np.random.default_rng(3), table["pay"].to_numpy().copy()
    chosen = rng.choice(200, 66, replace=False)
    pay[chosen] = pay[rng.permutation(chosen)]
    mixed, order = released(table, pay=pay, nr=rng.permutation(200), tax=table["tax"].to_numpy().round(-2))
    pairs = agreeing_pairs(mixed, table)
    right = float((order[pairs.records] == pairs.people).mean())
    assert pairs.precision <= right + 0.05
    assert pairs.precision == pytest.approx(right, abs=0.2)


def test_files_sorted_alike_are_not_in_step(table: pl.DataFrame) -> None:
    """Both sorted by job, in another order within: rows look alike, but a join on pay knows better."""
    original = eq.read(table.sort("job"), eq.Roles(["job"]))
    mixed = released(table.drop("nr"))[0].sort("job")
    files = pair(eq.read(mixed), original, ("job",))
    assert files.truth == "agreement"
    assert best_join(files, ("pay", "job"))[1] == pytest.approx(1.0)
    alone = pair(eq.read(mixed.select("job")), eq.read(original.collect().select("job"), original.roles), ("job",))
    assert alone.truth == "unknown"


def test_people_without_a_partner_are_allowed_for() -> None:
    rest = Unpaired.of(
        pl.DataFrame({"id": [0, 7, 8, 9], "age": [20, 30, 30, 40]}),
        pl.DataFrame({"id": [0, 1, 2, 3], "age": [20, 30, 30, 30]}),
        pl.Series("id", [0]),
        precision=0.9,
    )
    assert rest.most_linked(("age",)) == pytest.approx(1 / 3)
    score = rest.allowing(eq.Score("nearest", 1.0, interval=(1.0, 1.0)), ("age",))
    assert score.value == pytest.approx(0.25 + 0.75 / 3)
    assert score.interval == pytest.approx((0.25 * 0.9, 0.25 + 0.75 / 3))
