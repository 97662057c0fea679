"""Similar texts: bands against all pairs, missing values, the floor, and what is refused."""

import sys
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.attacks._linkage import string_similarity
from equipoise.attacks._linkage.string_similarity import BAND_EDGES, SIMILARITIES, Words


def words(size: int, seed: int, similarity: Any) -> Words:
    rng = np.random.default_rng(seed)
    texts = sorted({"".join(rng.choice(list("abcde"), rng.integers(0, 7))) for _ in range(size)})
    values = pl.Series("name", [None, *texts])
    codes = np.arange(len(values))
    return Words(values, codes[::2], codes, similarity)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_bands_hold_all_similar_values(similarity: Any) -> None:
    """Each pair of different values is in the band of its distance, or farther than all; null is far from all."""
    found = words(300, 1, similarity)
    listed = {}
    for low, high, band in zip((0.0, *BAND_EDGES), BAND_EDGES, found.bands, strict=False):
        for code in range(len(found.values)):
            for place in range(band.start[code], band.start[code + 1]):
                listed[code, int(band.codes[place])] = band.distance[place]
                assert low < band.distance[place] <= high
    one, two = (x.ravel() for x in np.meshgrid(found.first_codes, found.second_codes, indexing="ij"))
    apart = found.distance(one, two)
    for a, b, d in zip(one.tolist(), two.tolist(), apart.tolist(), strict=True):
        assert (d == 0) == (a == b)
        assert a == b or d >= found.floor
        assert ((a, b) in listed) == (a != b and d <= BAND_EDGES[-1])
        assert listed.get((a, b), d) == pytest.approx(d, abs=1e-15)
    missing = (one == 0) != (two == 0)
    assert (apart[missing] == 1).all()


def test_too_many_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(string_similarity, "MAX_TEXT_PAIRS", 100)
    with pytest.raises(eq.ParameterError, match="at most 100 pairs are compared"):
        words(200, 2, "levenshtein").near(0.2)


def test_the_package_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rapidfuzz.distance", None)
    with pytest.raises(eq.MissingExtraError, match=r"equipoise\[strings\]"):
        words(20, 3, "levenshtein").near(0.2)
