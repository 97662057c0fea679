"""Candidates: released records that do not contradict a person's true keys, by brute force over all pairs."""

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.data.candidates import candidates
from equipoise.data.records import Law, Records

KEYS = ("sex", "age", "town")


def pair(truth: pl.DataFrame, shown: pl.DataFrame, **roles: str) -> tuple[Records, Records]:
    original = eq.read(truth, eq.Roles(list(KEYS), **roles))
    return original.with_frame(eq.read(shown, original.roles).frame, Law("blanked", KEYS, "")), original


def made(seed: int, people: int = 60) -> tuple[pl.DataFrame, pl.DataFrame]:
    """People with some missing keys; the release has ages in bands of ten and some blanks."""
    rng = np.random.default_rng(seed)
    truth = pl.DataFrame(
        {
            "sex": rng.choice(["f", "m"], people),
            "age": rng.integers(4, 12, people) * 5,
            "town": pl.Series(rng.choice(["a", "b", "c", ""], people)).replace("", None),
            "w": rng.integers(1, 9, people).astype(float),
        }
    )
    blank = {key: pl.Series(rng.random(people) < 0.2) for key in KEYS}
    bands = truth.with_columns(age=pl.col("age") // 10 * 10)
    return truth, bands.with_columns(pl.when(~blank[key]).then(pl.col(key)).alias(key) for key in KEYS)


def by_hand(truth: pl.DataFrame, shown: pl.DataFrame, keys: tuple[str, ...]) -> list[int]:
    """For every person the released rows that agree with the truth wherever they were not blanked."""
    known = truth.with_columns(age=pl.col("age") // 10 * 10).select(keys).rows()
    rows = list(zip(shown.select(keys).rows(), truth.select(keys).rows(), strict=True))
    return [sum(all(map(_fits, *row, person)) for row in rows) for person in known]


def _fits(shown: object, true: object, known: object) -> bool:
    return (shown is None and true is not None) or shown == known


@pytest.mark.parametrize("seed", range(8))
def test_everybody_is_counted_as_by_hand(seed: int) -> None:
    truth, shown = made(seed)
    released, original = pair(truth, shown, weight="w")
    found = candidates(released, original, KEYS)
    assert found is not None
    assert found.people.alike[0][found.places].tolist() == by_hand(truth, shown, KEYS)
    few = found.people.margin(("age", "town"))
    sizes = dict(zip(few.table.select("age", "town").rows(), few.alike[0].tolist(), strict=True))
    text = truth.select((pl.col("age") // 10 * 10).cast(pl.String), pl.col("town").fill_null("")).rows()
    expected = by_hand(truth, shown, ("age", "town"))
    assert [sizes[row] for row in text] == expected


@pytest.mark.parametrize("seed", range(4))
def test_risks_are_those_of_the_people(seed: int) -> None:
    truth, shown = made(seed)
    released, original = pair(truth, shown, missing="any")
    sizes = by_hand(truth, shown, KEYS)
    worst = eq.risk.Prosecutor().measure(released, original)
    assert worst.value == pytest.approx(1 / min(sizes))
    assert worst.by_record()["risk"].to_list() == pytest.approx([1 / n for n in sizes])
    assert eq.risk.Uniques().measure(released, original).number == sizes.count(1)
    assert eq.risk.KAnonymity(3).measure(released, original).number == sum(n < 3 for n in sizes)
    bound = eq.risk.Prosecutor().measure(*pair(truth, shown))
    assert bound.value >= worst.value, "rows identical as released are never more than those that fit"


def test_a_man_of_fifty_is_alone() -> None:
    """Six people, the ages of the last two blanked: k = 2 seems to hold, and a man of 50 fits one record only."""
    truth = pl.DataFrame({"sex": list("ffmmmf"), "age": [30, 30, 40, 40, 50, 60], "town": ["a"] * 6})
    shown = truth.with_columns(age=pl.Series([30, 30, 40, 40, None, None]))
    for missing in ("any", "category"):
        released, original = pair(truth, shown, missing=missing)
        assert eq.risk.Prosecutor().measure(released, original).value == 1.0
        assert eq.risk.KAnonymity(2).measure(released, original).number == 2


def test_a_value_that_was_blanked_everywhere_fits_blanks_only() -> None:
    truth = pl.DataFrame({"sex": ["f"] * 4, "age": [30, 30, 50, 60], "town": ["a"] * 4})
    shown = truth.with_columns(age=pl.Series([30, 30, None, 60]))
    released, original = pair(truth, shown, missing="any")
    assert eq.risk.Uniques().measure(released, original).by_record()["risk"].to_list() == [0.0, 0.0, 1.0, 0.0]


def test_rows_that_were_empty_protect_nobody() -> None:
    truth = pl.DataFrame({"sex": ["f", "m", None, None], "age": [30, 40, None, None], "town": ["a", "b", None, None]})
    shown = truth.with_columns(age=pl.Series([30, None, None, None], dtype=pl.Int64))
    released, original = pair(truth, shown, missing="any")
    assert eq.risk.Uniques().measure(released, original).number == 2


def test_rows_that_were_empty_protect_nobody_where_nothing_was_blanked() -> None:
    truth = pl.DataFrame({"sex": ["f", "m", None, None], "age": [30, 40, None, None], "town": ["a", "b", None, None]})
    released, original = pair(truth, truth, missing="any")
    assert eq.risk.Uniques().measure(released, original).number == 2
    assert eq.risk.Uniques().measure(original, original).number == 0, "a file that may have been blanked before"


@pytest.mark.parametrize("change", ["random", "filled", "other people"])
def test_where_nothing_can_be_said(change: str) -> None:
    truth, shown = made(1)
    if change == "random":
        shown = shown.with_columns(sex=pl.Series(["f", "m"] * 30))
    elif change == "filled":
        shown = shown.with_columns(town=pl.col("town").fill_null("d"))
    else:
        shown = shown.head(20)
    assert candidates(*pair(truth, shown), KEYS) is None
