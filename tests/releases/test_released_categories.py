"""Categories that no released record has: gone from the types, the labels, the file and the codebook."""

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import equipoise as eq
from equipoise.data.labels import Column, Labels
from equipoise.ground.randomness import Draws
from equipoise.releases.release import release
from equipoise.releases.released_categories import without_absent

SECRET = "Quetzalcoatlus"


@pytest.fixture
def records() -> eq.Records:
    """One record alone in its town, which the mask below withholds; a code that nobody has, and one that is missing."""
    towns = ["Oslo"] * 6 + ["Bergen"] * 6 + [SECRET]
    table = pl.DataFrame(
        {"town": pl.Series(towns, dtype=pl.Enum(["Oslo", SECRET, "Bergen", "Nowhere"])), "job": [1] * 6 + [2] * 6 + [3]}
    )
    jobs = Column(
        "Job", ((1.0, "smith"), (2.0, "clerk"), (3.0, SECRET), (4.0, SECRET), (9.0, "refused")), ((9.0, 9.0),)
    )
    return replace(eq.read(table, eq.Roles(["town", "job"])), labels=Labels({"job": jobs}))


def test_types_and_labels_name_what_is_there(records: eq.Records) -> None:
    blank = eq.masks.LocalSuppress(eq.rules.MinCount(3)).apply(records, Draws(1))
    trimmed = without_absent(blank)
    schema = trimmed.collect().schema
    assert schema["town"] == pl.Enum(["Oslo", "Bergen"])
    assert trimmed.labels.of("job").values == ((1.0, "smith"), (2.0, "clerk"))
    assert trimmed.labels.of("job").missing == ((9.0, 9.0),)
    assert trimmed.collect().cast(pl.String).equals(blank.collect().cast(pl.String))
    whole = without_absent(records)
    assert whole.collect().schema["town"] == pl.Enum(["Oslo", SECRET, "Bergen"])
    assert whole.labels.of("job").values[-1] == (3.0, SECRET)


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_nothing_of_them_is_in_a_release(records: eq.Records, tmp_path: Path, format: str) -> None:
    """Before, the type of the column and its labels named the town of the record that was blanked."""
    recipe = eq.Recipe([eq.masks.LocalSuppress(eq.rules.MinCount(3))], 1)
    made = release(records, recipe, eq.Policy(), tmp_path / "out", format=format)
    for path in (tmp_path / "out" / "public").iterdir():
        assert SECRET.encode() not in path.read_bytes(), path.name
    assert made.data.collect().schema["town"] == pl.Enum(["Oslo", "Bergen"])
    book = json.loads((tmp_path / "out" / "public" / "codebook.json").read_text())
    assert [v["categories"] for v in book["variables"]] == [[], [["1", "smith"], ["2", "clerk"]]]
    assert eq.verify(tmp_path / "out", original=records).outcome != "refused"


def test_a_release_can_be_compared_with_its_original(records: eq.Records) -> None:
    """The types differ by the categories that are gone: the categories are the same people all the same."""
    blank = eq.masks.LocalSuppress(eq.rules.MinCount(3)).apply(records, Draws(1))
    measure = eq.risk.CorrectMatches()
    assert measure.measure(without_absent(blank), records).value == pytest.approx(measure.measure(blank, records).value)
