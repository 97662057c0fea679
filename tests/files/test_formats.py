"""Formats: by name, scanned and not loaded, and round."""

from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import equipoise as eq
from equipoise import files


@pytest.fixture
def table() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "id": [1, 2, 3],
            "town": ["Ål", None, 'B;o, "C"'],
            "pay": [1.5, None, -2.0],
            "born": [date(2024, 1, 2), None, date(1999, 12, 31)],
            "owner": [True, None, False],
        }
    )


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.csv", "csv"),
        ("a.tsv", "csv"),
        ("a.TXT", "csv"),
        ("a.parquet", "parquet"),
        ("a.pq", "parquet"),
        ("a.arrow", "arrow"),
        ("a.feather", "arrow"),
        ("a.ipc", "arrow"),
        ("a.csv.gz", "csv"),
        ("a.TSV.zst", "csv"),
        ("a.zip", "csv"),
        ("a.xlsx", "xlsx"),
        ("a.sav", "sav"),
        ("a.ZSAV", "zsav"),
        ("a.dta", "dta"),
        ("a.sas7bdat", "sas7bdat"),
        ("a.xpt", "xpt"),
        ("a.asc", "asc"),
        ("a.rds", "rds"),
        ("a.RData", "rda"),
    ],
)
def test_names_say_the_format(name: str, format: str) -> None:
    assert files.format_of(name) == format


@pytest.mark.parametrize("name", ["a.docx", "a", "a.xyz"])
def test_names_that_say_nothing(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("x")
    with pytest.raises(eq.DataError, match="No format for files ending in"):
        eq.read(tmp_path / name)


def test_csv_keeps_the_values(tmp_path: Path, table: pl.DataFrame) -> None:
    """CSV has no types: dates are text there, and a hierarchy of dates reads them."""
    path = tmp_path / "data.csv"
    files.save(table.lazy(), path, "csv")
    found = eq.read(path, eq.Roles(["born"], hierarchies={"born": eq.Hierarchy.dates("year")}))
    assert_frame_equal(found.collect().with_columns(pl.col("born").str.to_date()), table)
    released = eq.Recipe([eq.masks.Recode("born", "year")]).run(found).collect()
    assert released["born"].to_list() == ["2024", None, "1999"]


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_large_formats_are_scanned_not_loaded(tmp_path: Path, table: pl.DataFrame, format: str) -> None:
    """Parquet is scanned. The native frame is lazy and the kind says so."""
    path = tmp_path / f"data.{format}"
    files.save(table.lazy(), path, format)
    records = eq.read(path, eq.Roles(["town"]))
    assert isinstance(files.load(path), pl.LazyFrame)
    assert isinstance(records.to_native(), pl.LazyFrame)
    assert not records.in_memory
    assert records.source is not None
    assert (records.source.path, records.source.format) == (str(path), format)
    assert len(eq.count(records)) == 3


@pytest.mark.parametrize("options", [{"delimiter": ";"}, {"encoding": "utf-8"}, {"decimal": ","}])
def test_options_of_csv_are_for_csv(tmp_path: Path, table: pl.DataFrame, options: dict[str, str]) -> None:
    table.write_parquet(tmp_path / "a.parquet")
    with pytest.raises(eq.DataError, match=r"is for .*(CSV|csv).* files, not for"):
        eq.read(tmp_path / "a.parquet", **options)
    with pytest.raises(eq.DataError, match=r"is for .*(CSV|csv).* files, not for"):
        eq.read(table, **options)


def test_an_empty_table_is_refused(tmp_path: Path, table: pl.DataFrame) -> None:
    table.clear().write_parquet(tmp_path / "empty.parquet")
    with pytest.raises(eq.DataError, match="no records"):
        eq.read(tmp_path / "empty.parquet")
    with pytest.raises(eq.DataError):
        eq.read(pl.DataFrame())


def test_paths_that_are_not_there(tmp_path: Path) -> None:
    """With a hint when a name is near."""
    (tmp_path / "survey.csv").write_text("x\n1\n")
    with pytest.raises(eq.DataError, match=r"No file at .*Did you mean 'survey.csv'"):
        eq.read(tmp_path / "survy.csv")
    with pytest.raises(eq.DataError, match="No file at"):
        eq.read(tmp_path / "nowhere" / "x.csv")
    with pytest.raises(eq.DataError, match="is a folder"):
        eq.read(tmp_path)


def test_formats_to_write(tmp_path: Path, table: pl.DataFrame) -> None:
    with pytest.raises(eq.DataError, match="Did you mean 'parquet'"):
        files.save(table.lazy(), tmp_path / "x", "parqet")


def test_columns_that_stand_twice() -> None:
    """Bad input: duplicate column names."""
    pandas = pytest.importorskip("pandas")
    pyarrow = pytest.importorskip("pyarrow")
    with pytest.raises(eq.DataError, match="twice"):
        eq.read(pandas.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(eq.DataError, match="twice"):
        eq.read(pyarrow.table([[1], [2]], names=["a", "a"]))


@pytest.mark.parametrize("source", [None, 5, {"a": [1]}, [1, 2], object()])
def test_what_is_no_frame(source: Any) -> None:
    with pytest.raises(eq.DataError, match="give a path, or a Polars"):
        eq.read(source)


def test_roles_from_a_file(tmp_path: Path, table: pl.DataFrame) -> None:
    eq.Roles(["town"], id="id").to_toml(tmp_path / "roles.toml")
    assert eq.read(table, tmp_path / "roles.toml").roles == eq.Roles(["town"], id="id")
    assert eq.read(table, str(tmp_path / "roles.toml")).roles.keys == ("town",)
    with pytest.raises(eq.ParameterError, match="roles must be"):
        eq.read(table, {"keys": ["town"]})  # type: ignore[arg-type]


def test_reading_changes_nothing(tmp_path: Path, table: pl.DataFrame) -> None:
    path = tmp_path / "a.csv"
    table.write_csv(path)
    before = path.read_bytes(), path.stat().st_mtime_ns
    records = eq.read(path, eq.Roles(["town"], id="id"))
    eq.count(records)
    records.collect()
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
