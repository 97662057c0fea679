"""What a release costs at most: blanks, withheld records and bias, worked by hand."""

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.data.cells import count
from equipoise.utility import Bias, BlankKeys, WithheldRecords


def file(**columns: object) -> eq.Records:
    return eq.read(pl.DataFrame(columns), eq.Roles([c for c in columns if c != "pay"]))


def test_blanks_count_what_the_release_lacks_and_the_original_had() -> None:
    """Two of eight key values: one suppressed, one recoded to the top; the one missing before does not count."""
    old = file(age=["30", "31", None, "33"], sex=["f", "m", "f", "m"])
    new = file(age=["30", None, None, "33"], sex=["f", "m", "*", "m"])
    score = BlankKeys().measure(new, old)
    assert (score.value, score.number) == (2 / 8, 2)
    assert score.detail["blank"].to_list() == [1, 1]
    keys = old.roles.keys
    assert BlankKeys().measure(count(new, keys), count(old, keys)).value == score.value


def test_a_withheld_key_is_blank_throughout() -> None:
    old = file(age=[1, 2, 3, 3], sex=["f", "m", "f", "m"])
    assert BlankKeys().measure(file(sex=["f", "m", "f", "m"]), old).value == 0.5
    with pytest.raises(eq.RolesError, match="No keys"):
        BlankKeys().measure(file(pay=[1, 2]), file(pay=[1, 2]))


def test_withheld_records_are_a_share_of_the_original() -> None:
    old, new = file(age=list(range(10))), file(age=list(range(7)))
    assert WithheldRecords().measure(new, old).value == pytest.approx(0.3)
    assert WithheldRecords().measure(old, new).value == 0.0


def test_the_bias_of_a_mean_is_in_standard_deviations() -> None:
    """0, 0, 4, 8: mean 3, variance (9 + 9 + 1 + 25) / 4 = 11; without one of the zeros the mean is 4. By hand."""
    old, new = file(x=[0.0, 0.0, 4.0, 8.0]), file(x=[None, 0.0, 4.0, 8.0])
    assert Bias(("x",)).measure(new, old).value == pytest.approx(1 / 11**0.5)


def test_the_bias_of_a_distribution_is_the_share_that_is_elsewhere() -> None:
    """Shares 1/2, 1/4, 1/4 become 2/3, 0, 1/3 of the known: half of 1/6 + 1/4 + 1/12 is 1/4."""
    old, new = file(g=["a", "a", "b", "c"]), file(g=["a", "a", None, "c"])
    assert Bias(("g",)).measure(new, old).value == pytest.approx(0.25)


def test_coarser_and_withheld_columns_are_no_bias() -> None:
    bands = {"age": eq.Hierarchy.mapping({"30": "x", "31": "x", "40": "y", "41": "y"})}
    old = eq.read(
        pl.DataFrame({"age": ["30", "31", "40", "41"] * 10, "g": ["a", "b"] * 20}),
        eq.Roles(["age", "g"], hierarchies=bands),
    )
    coarse = eq.Recipe([eq.masks.Recode("age", 1)], seed=1).run(old)
    assert Bias().measure(coarse, old).value == 0.0
    assert Bias().measure(eq.read(pl.DataFrame({"g": ["a", "b"] * 20}), eq.Roles("g")), old).value == 0.0


def test_blanks_at_random_are_no_bias_and_others_are() -> None:
    """The same number of blanks: at random the mean stays within four standard errors, among the old it does not."""
    rng = np.random.default_rng(1)
    age = rng.integers(20, 80, 4000).astype(float)
    old, some = file(age=age), 0.2
    at_random = file(age=np.where(rng.random(4000) < some, np.nan, age))
    among_old = file(age=np.where(age >= 68, np.nan, age))
    assert Bias(("age",)).measure(at_random, old).value < 4 / np.sqrt(4000)
    assert Bias(("age",)).measure(among_old, old).value > 0.2
