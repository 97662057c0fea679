"""Population uniques by model: what the score, its detail and its notes say."""

import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.recipe import catalogue
from equipoise.risk._superpopulation_models import MODELS, SizeCounts, fit_model

SIZES = [1] * 40 + [2] * 14 + [3] * 8 + [4] * 5 + [6] * 3 + [11, 15, 29, 60]


def file(sizes: list[int], seed: int = 0, missing: str = "category") -> eq.Records:
    """Two keys that give classes of these sizes, with names that are dealt out at random."""
    names = np.random.default_rng(seed).permutation(100 * len(sizes))[: len(sizes)]
    cell = np.repeat(names, sizes)
    frame = pl.DataFrame({"here": (cell % 10).astype(str), "there": (cell // 10).astype(str)})
    return eq.read(frame, eq.Roles(("here", "there"), missing=missing))


def measured(records: eq.Records, fraction: float, model: str) -> eq.Score:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", eq.EquipoiseWarning)
        return eq.risk.PopulationUniques(fraction, model).measure(records, records)  # type: ignore[arg-type]


@pytest.mark.parametrize("model", MODELS)
@given(sizes=st.lists(st.integers(1, 6), min_size=1, max_size=15))
@settings(max_examples=10)
def test_a_census_has_its_own_uniques(model: str, sizes: list[int]) -> None:
    """fraction = 1: exactly the sample uniques, by every model, and nothing to say."""
    score = measured(file(sizes), 1.0, model)
    assert score.number == sizes.count(1)
    assert not score.notes


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("fraction", [0.05, 0.5])
def test_what_the_score_holds(model: str, fraction: float) -> None:
    """Each sample unique has the same probability, all others none; the number is their sum."""
    records = file(SIZES)
    score = measured(records, fraction, model)
    found = eq.risk.PopulationUniques(fraction, model).estimate(records)  # type: ignore[arg-type]
    risk = score.by_record()["risk"].to_numpy()
    assert (risk > 0).sum() == found.sample_uniques == 40
    assert np.ptp(risk[risk > 0]) == 0
    assert score.number == pytest.approx(risk.sum())
    assert score.number == pytest.approx(found.in_file)
    assert score.number == pytest.approx(found.in_population * fraction)
    assert score.value == pytest.approx(score.number / sum(SIZES))


@pytest.mark.parametrize("model", ["zayatz", "pitman", "slide", "best"])
def test_names_do_not_matter(model: str) -> None:
    """Other names for the same classes, in another order. (The Poisson-gamma model also counts the names.)"""
    values = [measured(records, 0.2, model).value for records in (file(SIZES), file(SIZES, 1), file(SIZES[::-1], 2))]
    assert values == pytest.approx([values[0]] * 3, rel=1e-12)


def test_the_poisson_gamma_model_counts_the_cross() -> None:
    """K is the product of the keys' values, without the null where a null matches anything."""
    for missing, cells in (("category", 3 * 4), ("any", 2 * 4)):
        frame = pl.DataFrame({"here": ["a", "b", None, "b", "b"], "there": [1, 2, 3, 4, 4]})
        records = eq.read(frame, eq.Roles(("here", "there"), missing=missing))
        found = eq.risk.PopulationUniques(0.5, "poisson-gamma").estimate(records)
        assert dict(found.parameters)["cells"] == cells


@pytest.mark.parametrize("model", MODELS)
def test_missing_keys_that_match_anything(model: str) -> None:
    """Records 1 and 2 match; so each is half a class of two. The third stands alone."""
    frame = pl.DataFrame({"here": ["a", None, "b", "c", "c"], "there": [1, 1, 2, 3, 3]})
    records = eq.read(frame, eq.Roles(("here", "there"), missing="any"))
    score = measured(records, 0.5, model)
    assert (score.by_record()["risk"] > 0).to_list() == [False, False, True, False, False]
    seen = SizeCounts(np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    assert score.number == pytest.approx(fit_model(model, seen, 0.5, 9).stays)


def test_best_says_which_model_it_took() -> None:
    """Up to a tenth Pitman's, and no warning of Zayatz's range."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small = eq.risk.PopulationUniques(0.1, "best").measure(file(SIZES), file(SIZES))
    assert "The estimate is by Pitman's model." in small.notes
    large = measured(file(SIZES), 0.5, "best")
    assert {"The estimate is by the slide model.", "The estimate is by Zayatz's model."} & set(large.notes)
    assert small.value == pytest.approx(measured(file(SIZES), 0.1, "pitman").value, rel=1e-12)
    assert large.value == pytest.approx(
        min(measured(file(SIZES), 0.5, model).value for model in ("slide", "zayatz")), rel=1e-12
    )


def test_the_fallback_is_said_and_warned_of() -> None:
    records = file([1] * 12)
    with pytest.warns(eq.EquipoiseWarning, match="50 times"):
        score = eq.risk.PopulationUniques(0.02, "best").measure(records, records)
    assert score.value == 1
    told = " ".join(score.notes)
    assert "by Zayatz's model" in told
    assert "In Pitman's model the likelihood has no maximum" in told


def test_limits_and_bad_fits_are_said() -> None:
    light = measured(file([1] * 5 + [2] * 5 + [3] * 5 + [4] * 5), 0.1, "pitman")
    assert any("Ewens" in note for note in light.notes)
    heavy = measured(file([1] * 200 + [2] * 5 + [3000]), 0.1, "poisson-gamma")
    assert any("fits badly" in note for note in heavy.notes)
    assert measured(file(SIZES), 0.5, "pitman").notes[0].endswith("of 40 sample uniques are expected to be unique.")


@pytest.mark.parametrize("model", MODELS)
def test_no_uniques_no_risk(model: str) -> None:
    score = measured(file([2, 3, 5]), 0.05, model)
    assert score.value == 0


def test_models_are_chosen_by_name() -> None:
    """At the file door too; another name is refused with those there are."""
    assert catalogue.parse("population-uniques:5%,best", "measure") == eq.risk.PopulationUniques(0.05, "best")
    with pytest.raises(eq.ParameterError, match="'zayatz', 'pitman', 'poisson-gamma', 'slide' or 'best'"):
        eq.risk.PopulationUniques(0.5, "poisson")  # type: ignore[arg-type]
