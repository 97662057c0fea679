"""Databases: queries in, tables back, nothing fetched, no address shown."""

import sqlite3
from contextlib import closing
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import equipoise as eq
from equipoise import files

duckdb = pytest.importorskip("duckdb", reason="Databases were not tried: duckdb is missing.")
SECRET = "s3cret-canary"


@pytest.fixture
def held(tmp_path: Path, people: pl.DataFrame) -> Path:
    files.store(people, "people", tmp_path / "a.duckdb")
    return tmp_path / "a.duckdb"


def test_a_query_is_a_source(held: Path, people: pl.DataFrame) -> None:
    """The data stays in the database; only cells leave it."""
    roles = eq.Roles(["sex", "age"], id="person", hierarchies={"age": eq.Hierarchy.intervals(10)})
    records = eq.read("SELECT person, sex, age FROM people WHERE age < 50", roles, database=held)
    assert records.kind == "duckdb"
    assert records.height() == people.filter(pl.col("age") < 50).height
    done = eq.protect(records, [eq.masks.Recode("age", 1)], held.parent / "out")
    assert pl.read_parquet(done.public / "data.parquet").columns == ["sex", "age"]


def test_a_query_on_files(tmp_path: Path, people: pl.DataFrame) -> None:
    people.write_parquet(tmp_path / "a.parquet")
    found = eq.read(f"SELECT sex, age FROM '{tmp_path}/*.parquet'", eq.Roles(["sex"]), database=":memory:")
    assert found.height() == people.height


@pytest.mark.parametrize("name", ["new.duckdb", "new.sqlite", "sqlite:///{}/other.db"])
def test_tables_go_back(tmp_path: Path, name: str) -> None:
    frame = pl.DataFrame({"a b": [1, None], "t": ["Ål", 'q"'], "d": [date(2024, 1, 2), None], "x": [1.5, 2.0]})
    place = name.format(tmp_path) if ":" in name else str(tmp_path / name)
    files.store(frame, "result", place)
    with pytest.raises(eq.DataError, match="a table 'result' already"):
        files.store(frame, "result", place)
    files.store(frame.head(1), "result", place, overwrite=True)
    files.store(frame.lazy(), 'odd "name"', place)
    found = eq.read('SELECT * FROM "odd ""name"""', database=place).collect()
    found = found.with_columns(pl.col("d").cast(pl.String).str.to_date())
    assert_frame_equal(found, frame, check_dtypes=False)
    assert eq.read("SELECT count(*) AS n FROM result", database=place).collect().item() == 1


def test_sqlite_needs_no_extension(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as connection:
        connection.execute("CREATE TABLE t (x INTEGER, y TEXT)")
        connection.execute("INSERT INTO t VALUES (1, 'Ål'), (2, NULL)")
        connection.commit()
    found = eq.read("SELECT * FROM t", eq.Roles(["x"]), database=f"sqlite:///{tmp_path}/a.sqlite")
    assert found.collect().rows() == [(1, "Ål"), (2, None)]


@pytest.mark.parametrize("ending", ["duckdb", "sqlite"])
@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELEC x FROM t", "not valid SQL"),
        ("SELECT canary FROM t", "not in the database"),
        ("SELECT * FROM nowhere", "not in the database"),
        ("DROP TABLE t", "one SELECT"),
        ("SELECT * FROM t; DELETE FROM t", "one SELECT"),
        ("UPDATE t SET x = 'canary'", "one SELECT"),
        ("ATTACH 'canary.db' AS other", "one SELECT"),
        ("", "one SELECT"),
        ("SELECT x, x FROM t", "twice"),
    ],
)
def test_queries_that_fail(tmp_path: Path, ending: str, sql: str, said: str) -> None:
    files.store(pl.DataFrame({"x": ["12", "canary"]}), "t", tmp_path / f"a.{ending}")
    before = (tmp_path / f"a.{ending}").read_bytes()
    with pytest.raises(eq.EquipoiseError, match=said) as caught:
        eq.read(sql, database=tmp_path / f"a.{ending}").collect()
    assert "canary" not in str(caught.value)
    assert (tmp_path / f"a.{ending}").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1
    assert eq.read("SELECT * FROM t", database=tmp_path / f"a.{ending}").height() == 2


def test_values_that_do_not_cast_are_not_shown(tmp_path: Path) -> None:
    files.store(pl.DataFrame({"x": ["12", "canary"]}), "t", tmp_path / "a.duckdb")
    with pytest.raises(eq.EquipoiseError) as caught:
        eq.read("SELECT CAST(x AS INTEGER) AS x FROM t", database=tmp_path / "a.duckdb").collect()
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql"])
def test_postgres_without_its_extension(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, scheme: str) -> None:
    """One sentence, nothing fetched, and no part of the address: with the extension, the connection fails so too."""
    with pytest.raises(eq.EquipoiseError, match=r"extension 'postgres' is not installed|Cannot connect") as caught:
        eq.read("SELECT 1 AS x", database=f"{scheme}://user:{SECRET}@127.0.0.1:1/db")
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(caught.value.__cause__)
    assert caught.value.__suppress_context__


def test_databases_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(eq.DataError, match="No database file"):
        eq.read("SELECT 1", database=tmp_path / "gone.duckdb")
    (tmp_path / "a.duckdb").write_text("not at all")
    with pytest.raises(eq.DataError, match="Cannot open"):
        eq.read("SELECT 1", database=tmp_path / "a.duckdb")
    with pytest.raises(eq.ParameterError, match="of the kind 'mysql'") as caught:
        eq.read("SELECT 1", database=f"mysql://user:{SECRET}@host/db")
    assert SECRET not in str(caught.value)
    with pytest.raises(eq.DataError, match="delimiter is for CSV files, not for a query"):
        eq.read("SELECT 1", database=":memory:", delimiter=";")


@pytest.mark.parametrize("ending", ["duckdb", "sqlite"])
def test_a_release_is_a_database(held: Path, people: pl.DataFrame, ending: str) -> None:
    """From a database into one: the table is named data, and the id is withheld."""
    roles = eq.Roles(["sex", "age"], id="person", hierarchies={"age": eq.Hierarchy.intervals(10)})
    records = eq.read("SELECT * FROM people", roles, database=held)
    done = eq.protect(records, [eq.masks.Recode("age", 1)], held.parent / "out", format=ending)
    found = eq.read(done.public / f"data.{ending}").collect()
    assert found.height == people.height
    assert "person" not in found.columns
    assert eq.read("SELECT count(*) AS n FROM data", database=done.public / f"data.{ending}").collect().item() == 400


def test_a_file_of_many_tables(held: Path, people: pl.DataFrame) -> None:
    assert eq.read(held, eq.Roles(["sex"])).height() == people.height
    files.store(people, "more", held)
    with pytest.raises(eq.DataError, match="holds 2 tables"):
        eq.read(held)
    (held.parent / "bad.duckdb").write_bytes(b"not at all")
    with pytest.raises(eq.DataError, match="Cannot open"):
        eq.read(held.parent / "bad.duckdb")


def test_a_sqlite_file_that_is_cut(tmp_path: Path) -> None:
    files.store(pl.DataFrame({"x": ["canary" * 50] * 500}), "t", tmp_path / "a.sqlite")
    whole = (tmp_path / "a.sqlite").read_bytes()
    (tmp_path / "a.sqlite").write_bytes(whole[:-4])
    with pytest.raises(eq.DataError, match="not a whole SQLite database") as caught:
        eq.read(tmp_path / "a.sqlite")
    assert "canary" not in str(caught.value)


def test_a_sqlite_file_with_a_log_of_writes(tmp_path: Path) -> None:
    """Read at rest, nothing is put beside it; while it is written, what is in its log is read too."""
    place = tmp_path / "a.sqlite"
    with closing(sqlite3.connect(place)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (x)")
        connection.execute("INSERT INTO t VALUES (1), (2)")
        connection.commit()
        assert eq.read(place).collect()["x"].to_list() == [1, 2]
    assert eq.read(place).collect()["x"].to_list() == [1, 2]
    assert list(tmp_path.iterdir()) == [place]
