"""Households that look alike to who knows their members, against counts made by hand and measured elsewhere."""

from pathlib import Path

import polars as pl
import pytest

import equipoise as eq
from equipoise.risk import composition

DWELLING = ("urbrur", "roof", "walls", "water", "electcon", "relat", "sex")


def homes_of(score: eq.Score) -> tuple[int, int, int]:
    """Households that are alone, the people in them, and the households in classes of fewer than 3."""
    alone = score.detail.filter(pl.col("alike") == 1)
    return alone.height, alone["members"].sum(), score.detail.filter(pl.col("alike") < 3).height


def measured(table: pl.DataFrame, keys: tuple[str, ...], home: str, **known: object) -> eq.Score:
    records = eq.read(table, eq.Roles(keys, household=home))
    return eq.risk.Composition(**known).measure(records, records)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def testdata(data_folder: Path) -> pl.DataFrame:
    table = pl.read_csv(data_folder / "sdcmicro" / "testdata.csv")
    return table.with_columns(decade=pl.col("age") // 10, five=pl.col("age") // 5)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (("sex",), (9, 85, 15)),
        (("sex", "relat"), (101, 613, 139)),
        (("sex", "decade"), (437, 2380, 623)),
        (("sex", "five"), (731, 3759, 823)),
        (("sex", "age"), (951, 4494, 979)),
        (DWELLING, (445, 2198, 593)),
    ],
)
def test_whole_families_of_testdata(
    testdata: pl.DataFrame, keys: tuple[str, ...], expected: tuple[int, int, int]
) -> None:
    """sdcMicro's testdata, 1,000 households: counted with sorted lists of members in plain Python."""
    score = measured(testdata, keys, "ori_hid")
    assert homes_of(score) == expected
    assert score.number == score.detail.filter(pl.col("alike") < 3)["members"].sum()
    assert score.value == pytest.approx(score.number / 4580)
    assert score.by_record()["risk"].sum() == pytest.approx(score.number)


@pytest.mark.parametrize(
    ("known", "sized", "unsized", "mean"),
    [(1, 23, 1, 0.0898), (2, 133, 22, 0.2662), (3, 268, 78, 0.4261), ("all", 437, 437, 0.5910)],
)
def test_some_members_of_testdata(
    testdata: pl.DataFrame, known: int | str, sized: int, unsized: int, mean: float
) -> None:
    keys = ("sex", "decade")
    score = measured(testdata, keys, "ori_hid", known=known)
    assert homes_of(score)[0] == sized
    assert score.detail["risk"].mean() == pytest.approx(mean, abs=5e-5)
    assert homes_of(measured(testdata, keys, "ori_hid", known=known, size_known=False))[0] == unsized


def test_families_of_the_demo_survey() -> None:
    """38,582 invented households, ages in bands of ten, five and one year, and with race in a region."""
    bands = {"decade": pl.col("age") // 10, "five": pl.col("age") // 5}
    table = eq.demo.survey().with_columns(**bands)
    alone = [homes_of(measured(table, ("sex", age), "household"))[:2] for age in ("decade", "five", "age")]
    assert alone[0] == (492, 2108)
    assert [homes for homes, _ in alone] == [492, 1660, 9896]
    assert homes_of(measured(table, ("sex", "five", "race", "region"), "household"))[:2] == (5441, 17576)


def test_order_and_names_change_nothing() -> None:
    table = pl.DataFrame({"age": [1, 2, 2, 1, 3, 3, 1], "home": [*"aabbccd"]})
    first = measured(table, ("age",), "home").detail
    turned = measured(table.reverse().with_columns(pl.col("home").replace({"a": "z"})), ("age",), "home").detail
    assert first["alike"].to_list() == turned["alike"].to_list() == [1, 1, 2, 2]


def test_a_blank_is_a_value() -> None:
    table = pl.DataFrame({"age": [30, None, 30, 31, 30, 31], "home": [1, 1, 2, 2, 3, 3]})
    for missing in ("category", "any"):
        records = eq.read(table, eq.Roles("age", household="home", missing=missing))
        assert eq.risk.Composition().measure(records, records).detail["alike"].to_list() == [1, 2, 2]


def test_a_dwelling_is_read_from_another_member() -> None:
    """The roof is blank for the woman of home 1 only: her home is still not that of home 2."""
    table = pl.DataFrame({"sex": [*"fmfm"], "roof": [None, "tin", None, "tile"], "home": [1, 1, 2, 2]})
    assert measured(table, ("sex", "roof"), "home", known=1).detail["alike"].to_list() == [1, 1]


def test_a_home_with_too_many_subsets_is_known_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pl.DataFrame({"age": [1, 2, 3, 4, 1, 2, 5, 6], "home": [1] * 4 + [2] * 4})
    assert measured(table, ("age",), "home", known=1).detail["alike"].to_list() == [1, 1]
    monkeypatch.setattr(composition, "MAX_SUBSETS", 3)
    assert measured(table, ("age",), "home", known=1).detail["alike"].to_list() == [1, 1]


@pytest.mark.parametrize("bad", [{"known": 0}, {"known": "some"}, {"k": 0}, {"known": True}])
def test_bad_parameters(bad: dict[str, object]) -> None:
    with pytest.raises(eq.ParameterError, match="must be a whole number"):
        eq.risk.Composition(**bad)  # type: ignore[arg-type]


def test_households_must_be_said() -> None:
    data = eq.read(pl.DataFrame({"k": [*"ab"]}), eq.Roles("k"))
    with pytest.raises(eq.RolesError, match="name a household"):
        eq.risk.Composition().measure(data, data)
    gap = eq.read(pl.DataFrame({"k": [*"ab"], "h": [1, None]}), eq.Roles("k", household="h"))
    with pytest.raises(eq.RolesError, match="1 records have no household"):
        eq.risk.Composition().measure(gap, gap)
