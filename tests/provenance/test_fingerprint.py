"""The content of a data file, whatever its order and format."""

from datetime import date, datetime
from pathlib import Path

import polars as pl
import pytest

from equipoise.files import save
from equipoise.provenance.fingerprint import content_hash, content_of

TABLE = pl.DataFrame(
    {
        "n": [3, 1, None, 2],
        "x": [0.1 + 0.2, -1e-9, 5.0, None],
        "t": ["b", None, "a,b", "ü"],
        "yes": [True, None, False, True],
        "day": [date(2020, 1, 1), None, date(1999, 12, 31), date(2001, 2, 3)],
        "at": [datetime(2020, 1, 1, 12), None, datetime(1999, 1, 1), datetime(2001, 2, 3, 4, 5, 6)],
    }
)


@pytest.mark.parametrize("format", ["csv", "parquet", "arrow"])
def test_formats_say_the_same(tmp_path: Path, format: str) -> None:
    save(TABLE.lazy(), tmp_path / f"data.{format}", format)
    assert content_hash(tmp_path / f"data.{format}") == content_of(TABLE)


def test_order_does_not_matter() -> None:
    assert content_of(TABLE.reverse()) == content_of(TABLE)
    assert content_of(TABLE.select(reversed(TABLE.columns))) == content_of(TABLE)


@pytest.mark.parametrize("column", TABLE.columns)
def test_one_cell_does(column: str) -> None:
    """Any cell that takes the value of another, and any column name."""
    changed = [TABLE[column][1], *TABLE[column].to_list()[1:]]
    assert content_of(TABLE.with_columns(pl.Series(column, changed, dtype=TABLE.schema[column]))) != content_of(TABLE)
    assert content_of(TABLE.rename({column: "other"})) != content_of(TABLE)


def test_values_stay_in_their_columns_and_rows() -> None:
    one, two = pl.DataFrame({"a": ["x", "y"], "b": ["", "z"]}), pl.DataFrame({"a": ["x", "y"], "b": ["z", ""]})
    assert content_of(one) != content_of(two)
    assert content_of(one) != content_of(pl.DataFrame({"a": ["x", "y", "x"], "b": ["", "z", ""]}))


def test_numbers_are_numbers() -> None:
    """The last bits of a sum are noise, a digit that people read is not; large whole numbers keep every digit."""
    one = pl.DataFrame({"a": [0.3]})
    assert content_of(one) == content_of(pl.DataFrame({"a": [0.1 + 0.2]})) == content_of(pl.DataFrame({"a": ["0.30"]}))
    assert content_of(one) != content_of(pl.DataFrame({"a": [0.3001]}))
    big = 9_007_199_254_740_993
    assert content_of(pl.DataFrame({"a": [big]})) != content_of(pl.DataFrame({"a": [big - 1]}))


def test_what_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "data.parquet").write_bytes(b"nothing")
    assert content_hash(tmp_path / "data.parquet") is None


def test_missing_codes_count(tmp_path: Path) -> None:
    """Null for every measure, and still part of what a file says: refused is not unknown."""
    pyreadstat = pytest.importorskip("pyreadstat")
    pytest.importorskip("pandas")
    ranges = {"a": [{"lo": 97, "hi": 99}]}
    found = []
    for code in (97, 98, 97):
        path = tmp_path / f"{len(found)}.sav"
        pyreadstat.write_sav(pl.DataFrame({"a": [1.0, 2.0, float(code)]}).to_pandas(), path, missing_ranges=ranges)
        found.append(content_hash(path))
    assert found[0] == found[2] != found[1]
    assert found[0] is not None
