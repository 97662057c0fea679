"""Special uniques against a published worked example and against counting set by set."""

import os
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.risk import SpecialUniques

DATA = os.environ.get("EQUIPOISE_DATA")
GUIDE = pl.DataFrame(
    {
        "residence": ["urban"] * 4 + ["rural"] + ["urban"] * 5,
        "gender": ["f", "f", "f", "m", "f", "m", "f", "m", "f", "f"],
        "education": ["si", "si", "pi", "sc", "sc", "sc", "pc", "ps", "si", "si"],
        "labour": ["e", "e", "n", "e", "u", "e", "n", "u", "n", "n"],
    }
)
"""The ten records of the World Bank's practice guide on statistical disclosure control, table 4.5."""
KEYS = tuple(GUIDE.columns)


def read(table: pl.DataFrame, keys: tuple[str, ...] = KEYS, **more: str) -> eq.Records:
    return eq.read(table, eq.Roles(keys, **more))  # type: ignore[arg-type]


def by_sets(table: pl.DataFrame, keys: tuple[str, ...]) -> dict[tuple[str, ...], np.ndarray]:
    """Who has which set as minimal unique: every set counted by itself over the records."""
    alone: dict[tuple[str, ...], np.ndarray] = {}
    found = {}
    for size in range(1, len(keys) + 1):
        for chosen in combinations(keys, size):
            alone[chosen] = (table.select(pl.len().over(chosen)).to_series() == 1).to_numpy()
            less = [alone[part] for part in combinations(chosen, size - 1) if part]
            found[chosen] = alone[chosen] & ~np.any(less, axis=0) if less else alone[chosen]
    return found


def test_the_worked_example_of_the_guide() -> None:
    """SUDA scores with M = 3; DIS-SUDA was printed for a fraction of 1 % and the weights of the IHSN."""
    records = read(GUIDE)
    score = SpecialUniques(max_size=3).scores_of(records)
    assert score["score"].to_list() == [0, 0, 6, 0, 12, 0, 6, 10, 0, 0]
    dis = SpecialUniques(scores="ihsn", fraction=0.01).scores_of(records)["dis"]
    assert dis.round(4).to_list() == [0, 0, 0.0051, 0, 0.0107, 0, 0.0051, 0.0088, 0, 0]
    found = SpecialUniques().measure(records, records)
    assert (found.number, found.value) == (4, 0.4)
    assert found.by_record()["risk"].to_list() == [0, 0, 1, 0, 1, 0, 1, 1, 0, 0]


def test_detail_says_which_sets() -> None:
    score = SpecialUniques(3, fraction=0.01).measure(read(GUIDE), read(GUIDE))
    rural = score.detail.filter(pl.col("residence") == "rural").row(0, named=True)
    assert (rural["score"], rural["msus"], rural["smallest"]) == (12, 4, 1)
    assert {"score", "dis", "msus", "smallest", "risk"} <= set(score.detail.columns)


def test_contributions_of_keys_and_values() -> None:
    """Of the scores 6, 12, 6 and 10 of the example: education is in sets worth 6 + 4 + 6 + 6."""
    measure = SpecialUniques(3)
    shares = dict(measure.by_key(read(GUIDE)).select("key", "contribution").iter_rows())
    known = {"education": 6 + 4 + 6 + 6, "labour": 4 + 4, "gender": 4 + 2, "residence": 6 + 2}
    assert shares == pytest.approx({key: worth / 34 for key, worth in known.items()})
    values = dict(measure.by_value(read(GUIDE), "education").iter_rows())
    assert values == pytest.approx({"pc": 6 / 34, "pi": 6 / 34, "ps": 6 / 34, "sc": 4 / 34, "si": 0})
    assert measure.measure(read(GUIDE), read(GUIDE)).notes[1] == "65% of the score comes from sets with 'education'."


def test_nobody_unique() -> None:
    twice = read(pl.concat([GUIDE, GUIDE]))
    found = SpecialUniques().measure(twice, twice)
    assert (found.value, found.number) == (0, 0)
    assert found.detail["dis"].sum() == 0
    assert SpecialUniques().by_key(twice)["contribution"].sum() == 0


def test_unique_on_all_keys_only_is_not_special() -> None:
    """The minimal set is all keys: it scores 1, and 0 by the weights of the IHSN."""
    square = pl.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1]})
    records = read(square, ("a", "b"))
    assert SpecialUniques().measure(records, records).number == 0
    assert SpecialUniques().scores_of(records)["score"].to_list() == [1, 1, 1, 1]
    assert SpecialUniques(scores="ihsn").scores_of(records)["score"].to_list() == [0, 0, 0, 0]


def test_missing_as_category_or_as_anything() -> None:
    table = pl.DataFrame({"a": [1, 1, 2, None], "b": [1, 1, 2, 2]})
    category, anything = (read(table, ("a", "b"), missing=way) for way in ("category", "any"))
    assert SpecialUniques().scores_of(category)["score"].to_list() == [0, 0, 1, 1]
    assert SpecialUniques().measure(category, category).number == 2
    assert SpecialUniques().measure(anything, anything).number == 0


def test_the_fraction_comes_from_the_weights() -> None:
    weighted = read(GUIDE.with_columns(w=pl.lit(50.0)), weight="w")
    given = SpecialUniques(fraction=0.02).measure(read(GUIDE), read(GUIDE))
    found = SpecialUniques().measure(weighted, weighted)
    assert found.detail["dis"].to_list() == pytest.approx(given.detail["dis"].to_list())
    census = SpecialUniques().measure(read(GUIDE), read(GUIDE))
    assert "whole population" in census.notes[0]
    assert set(census.detail["dis"]) == {0.0, 1.0}


def test_dis_of_many_records_is_a_number() -> None:
    """Where a program that loses uniques to collisions of its hash table divides by zero."""
    draw = np.random.default_rng(3)
    table = pl.DataFrame({f"k{i}": draw.integers(0, size, 100_000) for i, size in enumerate((2, 2, 5, 8, 10, 18, 80))})
    records = read(table, tuple(table.columns))
    found = SpecialUniques(fraction=0.01).measure(records, records).detail
    assert found["dis"].is_finite().all()
    unique = found.filter(pl.col("n") == 1)
    assert (unique["dis"] > 0).all()
    assert 0.005 < unique["dis"].mean() < 0.5


@pytest.mark.parametrize(
    ("bad", "said"), [({"max_size": 0}, "max_size"), ({"fraction": 2}, "0.02"), ({"scores": "x"}, "ihsn")]
)
def test_bad_parameters(bad: dict[str, object], said: str) -> None:
    with pytest.raises(eq.ParameterError, match=said):
        SpecialUniques(**bad)  # type: ignore[arg-type]


def test_set_by_set() -> None:
    """Scores and contributions over 500 records and five keys, counted independently."""
    draw = np.random.default_rng(5)
    table = pl.DataFrame({f"k{i}": draw.zipf(1.6, 500).clip(max=size) for i, size in enumerate((3, 5, 9, 20, 60))})
    same_as_counted(table, tuple(table.columns))


@pytest.mark.skipif(not DATA, reason="EQUIPOISE_DATA is not set: testdata and francdat were not scored.")
@pytest.mark.parametrize(
    ("file", "keys"),
    [
        ("testdata", ("urbrur", "roof", "walls", "water", "electcon", "relat", "sex")),
        ("francdat", ("Key1", "Key2", "Key3", "Key4")),
    ],
)
def test_real_files_set_by_set(file: str, keys: tuple[str, ...]) -> None:
    same_as_counted(pl.read_csv(Path(str(DATA)) / "sdcmicro" / f"{file}.csv"), keys)


def same_as_counted(table: pl.DataFrame, keys: tuple[str, ...]) -> None:
    found, size = by_sets(table, keys), len(keys)
    for scores in ("elliot", "ihsn"):
        measure = SpecialUniques(scores=scores, fraction=0.1)  # type: ignore[arg-type]
        worth = {
            chosen: float(np.prod(range(1, size - len(chosen) + 1)))
            if scores == "elliot"
            else (2 ** (size - len(chosen)) - 1) / len(list(combinations(keys, len(chosen))))
            for chosen in found
        }
        sums = np.sum([worth[chosen] * mask for chosen, mask in found.items()], axis=0)
        records = read(table, keys)
        assert measure.scores_of(records)["score"].to_numpy() == pytest.approx(sums)
        shares = {key: sum(worth[c] * m.sum() for c, m in found.items() if key in c) / sums.sum() for key in keys}
        assert dict(measure.by_key(records).select("key", "contribution").iter_rows()) == pytest.approx(shares)
    special = np.any([mask for chosen, mask in found.items() if len(chosen) < size], axis=0)
    assert SpecialUniques().measure(records, records).number == special.sum()
