"""The probability of a right match, against mpmath, a sum over populations, and published figures."""

from pathlib import Path

import mpmath
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.laws.mean_reciprocal import mean_reciprocal


@given(f=st.integers(1, 10**6), p=st.floats(1e-9, 1.0))
def test_the_closed_form_to_every_digit(f: int, p: float) -> None:
    """E(1/F) = p/f 2F1(1, 1; f+1; 1-p) for every size: the peers' form is NaN above about 150."""
    with mpmath.workdps(50):
        expected = float(mpmath.mpf(p) / f * mpmath.hyp2f1(1, 1, f + 1, 1 - mpmath.mpf(p)))
    assert mean_reciprocal(np.array([f]), np.array([p]))[0] == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize(("f", "p"), [(1, 0.3), (2, 0.2), (7, 0.6), (30, 0.4)])
def test_it_is_the_mean_over_all_populations(f: int, p: float) -> None:
    """Summed term by term over F, P(F) = C(F-1, f-1) p^f (1-p)^(F-f)."""
    sizes = np.arange(f, 4000)
    from scipy.stats import nbinom

    chance = nbinom.pmf(sizes - f, f, p)
    assert chance.sum() == pytest.approx(1)
    assert mean_reciprocal(np.array([f]), np.array([p]))[0] == pytest.approx((chance / sizes).sum(), rel=1e-12)


def test_without_weights_the_file_is_the_population() -> None:
    data = eq.read(pl.DataFrame({"k": ["a", "b", "b"]}), eq.Roles("k"))
    assert eq.risk.Individual().measure(data, data).by_record()["risk"].to_list() == [1, 0.5, 0.5]


KEYS = ("urbrur", "roof", "walls", "water", "electcon", "relat", "sex")


@pytest.fixture
def survey(data_folder: Path) -> eq.Records:
    return eq.read(
        data_folder / "sdcmicro" / "testdata.csv", eq.Roles(KEYS, weight="sampling_weight", household="ori_hid")
    )


def test_expected_matches_of_testdata(survey: eq.Records) -> None:
    """sdcMicro's testdata: 10.775525 re-identifications expected (10.7783 by the usual approximation)."""
    assert eq.risk.Individual().measure(survey, survey).number == pytest.approx(10.775525, abs=5e-7)


def test_expected_matches_with_households(survey: eq.Records) -> None:
    score = eq.risk.Household().measure(survey, survey)
    assert score.number == pytest.approx(51.799591, abs=5e-7)
    assert score.detail["members"].sum() == 4580
    assert score.by_record()["risk"].sum() == pytest.approx(score.number)


@pytest.mark.parametrize(("k", "records"), [(2, 157), (3, 281), (5, 458)])
def test_records_of_testdata_in_small_classes(survey: eq.Records, k: int, records: int) -> None:
    assert eq.risk.KAnonymity(k).measure(survey, survey).number == records


def test_above_counts_records_over_a_limit() -> None:
    data = eq.read(pl.DataFrame({"k": ["a", "b", "b"], "h": [1, 1, 2]}), eq.Roles("k", household="h"))
    assert eq.risk.Individual(above=0.5).measure(data, data).number == 1
    assert eq.risk.Household(above=0.5).measure(data, data).number == 2
    assert eq.risk.Household(above=0.0).measure(data, data).value == 1


def test_a_household_is_found_through_any_member() -> None:
    data = eq.read(
        pl.DataFrame({"k": [*"aabb"], "w": [2.0, 3, 4, 5], "h": [1, 2, 1, 2]}),
        eq.Roles("k", weight="w", household="h"),
    )
    alone = eq.risk.Individual().measure(data, data).by_record()["risk"].to_numpy()
    expected = [1 - (1 - alone[0]) * (1 - alone[2]), 1 - (1 - alone[1]) * (1 - alone[3])]
    assert eq.risk.Household().measure(data, data).by_record()["risk"].to_list() == pytest.approx(expected * 2)


def test_ids_may_repeat() -> None:
    """Rows of one id are rows, not pairs of rows: before, every repeated id counted its household's members twice."""
    table = pl.DataFrame({"k": [*"aabbcc"], "h": [1, 2, 1, 3, 2, 3], "id": [7, 7, 8, 9, 9, 9]})
    once = eq.read(table, eq.Roles("k", household="h"))
    again = eq.read(table, eq.Roles("k", household="h", id="id"))
    plain, repeated = (eq.risk.Household().measure(data, data) for data in (once, again))
    assert repeated.value == pytest.approx(plain.value) == pytest.approx(0.75)
    assert repeated.detail["members"].to_list() == [2, 2, 2]
    assert repeated.by_record()["id"].to_list() == table["id"].to_list()


def test_households_must_be_said() -> None:
    data = eq.read(pl.DataFrame({"k": [*"ab"]}), eq.Roles("k"))
    with pytest.raises(eq.RolesError, match="name a household"):
        eq.risk.Household().measure(data, data)
    gap = eq.read(pl.DataFrame({"k": [*"ab"], "h": [1, None]}), eq.Roles("k", household="h"))
    with pytest.raises(eq.RolesError, match="1 records have no household"):
        eq.risk.Household().measure(gap, gap)


@pytest.mark.parametrize("wrong", [{"model": "x"}, {"above": 1.0}, {"above": -0.1}])
def test_wrong_parameters(wrong: dict[str, object]) -> None:
    with pytest.raises(eq.ParameterError):
        eq.risk.Individual(**wrong)  # type: ignore[arg-type]
