"""Local swap: which values move, what stays, the law of the exchange, and the risk that is reported of it."""

from collections import Counter
from itertools import permutations

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.data.blanked_keys import with_blanks
from equipoise.ground.errors import ParameterError, RolesError
from equipoise.ground.randomness import Draws
from equipoise.masks import LocalSuppress, LocalSwap, Noise, Recode, SuppressRecords
from equipoise.rules import MinCount

ROLES = eq.Roles(["sex", "age", "area"], numeric="income")


def people(n: int = 200, seed: int = 3) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "sex": rng.choice(["f", "m"], n),
            "age": rng.integers(20, 50, n),
            "area": rng.choice(["a", "b", "c", None], n, p=[0.5, 0.3, 0.1, 0.1]),
            "income": rng.normal(size=n).round(3),
        }
    )


def test_distributions_stay_and_only_blanked_values_move() -> None:
    table = people()
    original = eq.Records.of(table, ROLES)
    released = LocalSwap(MinCount(2)).apply(original, Draws(5))
    blanks = LocalSuppress(MinCount(2)).apply(original, Draws(5).child(0)).collect()
    for key in ROLES.keys:
        assert released.collect()[key].sort().equals(table[key].sort(), null_equal=True)
        still = blanks[key].is_not_null()
        assert released.collect()[key].filter(still).equals(table[key].filter(still))
    assert released.collect()["income"].equals(table["income"])
    assert not released.collect().equals(table)


def test_every_permutation_of_the_blanked_values_is_as_likely() -> None:
    table = pl.DataFrame({"group": ["a"] * 3 + ["b"] * 4, "age": [1, 2, 3, 9, 9, 9, 9]})
    original = eq.Records.of(table, eq.Roles(["group", "age"]))
    draws = 600
    orders = Counter(
        tuple(LocalSwap(MinCount(3)).apply(original, Draws(seed)).collect()["age"][:3]) for seed in range(draws)
    )
    assert set(orders) == set(permutations((1, 2, 3)))
    expected = draws / 6
    assert sum((count - expected) ** 2 / expected for count in orders.values()) < 25.7  # chi-square, 5 df, p = 0.0001


def test_classes_are_counted_with_blanks() -> None:
    original = eq.Records.of(people(), ROLES)
    recipe = eq.Recipe([Recode("age", "10"), LocalSwap(MinCount(3)), Noise("income", 0.5)], seed=1)
    roles = eq.Roles(ROLES.keys, numeric="income", hierarchies={"age": eq.Hierarchy.intervals([10])})
    original = eq.Records.of(people(), roles)
    released = recipe.run(original)
    assert eq.risk.KAnonymity(3).measure(released, original).value == 0
    worst = eq.risk.Prosecutor().measure(released, original)
    assert worst.value <= 1 / 3
    assert any("exchanged" in note for note in worst.notes)
    assert not any("Descriptive" in note for note in worst.notes)
    assert with_blanks(released).collect().height == 200


def test_without_the_blanks_classes_are_descriptive_only() -> None:
    original = eq.Records.of(people(), ROLES)
    released = LocalSwap(MinCount(2)).apply(original, Draws(5))
    fewer = SuppressRecords(MinCount(2)).apply(released, Draws(6))
    score = eq.risk.Uniques().measure(fewer, original)
    assert any("Descriptive" in note for note in score.notes)


def test_values_that_came_missing_do_not_show_who_was_blanked() -> None:
    """Two alike with blanks, one of them because it came empty: the empty value must be able to move."""
    table = pl.DataFrame({"sex": ["f", "f", *["m"] * 6], "age": [None, 31, *[40] * 6]})
    original = eq.Records.of(table, eq.Roles(["sex", "age"]))
    where = {LocalSwap(MinCount(2)).apply(original, Draws(seed)).collect()["age"][0] for seed in range(20)}
    assert where == {None, 31}


def test_the_law_tells_shares_and_no_values() -> None:
    released = LocalSwap(MinCount(2)).apply(eq.Records.of(people(), ROLES), Draws(5))
    law = released.history[-1]
    assert law.mask == "local_swap"
    assert set(law.parameters) == {"rule", "exchanged"}
    assert 0 < law.parameters["exchanged"]["age"] < 1


@pytest.mark.parametrize("role", ["household", "person"])
def test_records_that_belong_together_are_refused(role: str) -> None:
    table = people().with_columns(unit=pl.int_range(200) // 2)
    records = eq.Records.of(table, eq.Roles(ROLES.keys, **{role: "unit"}))
    with pytest.raises(RolesError, match="belong together"):
        LocalSwap(MinCount(2)).apply(records, Draws(1))


def test_other_rules_are_refused() -> None:
    with pytest.raises(ParameterError, match="rule must be MinCount"):
        LocalSwap(eq.rules.PPercent(0.1))
