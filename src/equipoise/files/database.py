"""Databases: the answer of a query as records, and a table back, through DuckDB (SQLite also without it).

No extension of DuckDB is ever fetched from the network here: machines that hold such data often have none. What an
address holds beside its kind (user, password, host) is in no message.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import narwhals as nw
import polars as pl

from equipoise.data.engines import collect
from equipoise.data.labels import Labels
from equipoise.files.column_types import FLOATS, NESTED, SIGNED, TEXTS, UNSIGNED, WIDE, ZONED, same, stored_as, to_text
from equipoise.files.format import Format, Signature
from equipoise.ground.errors import DataError, EngineError, EquipoiseError, ParameterError, import_extra

POSTGRES_SCHEMES = ("postgres://", "postgresql://")
SQLITE_SIGNATURE = b"SQLite format 3\x00"
IN_MEMORY = ":memory:"
QUERY_ERRORS = ("ProgrammingError", "TypeError", "Warning", "UnsuitableSQLError")
"""The errors for what is no query, or more than one."""
ONE_SELECT = "A source is one SELECT statement: nothing is written, and one answer is read."


def query(sql: str, database: str | Path, *, apart: bool = False) -> Any:
    """The answer of one SELECT: a DuckDB relation, which stays there, or a Polars table from SQLite.

    `database` is a DuckDB or SQLite file, `sqlite:///file`, `postgres://...`, or ':memory:' for a query on files, as
    in `SELECT * FROM 'part-*.parquet'`. It is opened for reading only,
    and with `apart` it reads nothing else: no other file, no other database.
    """
    kind, place = _kind(database)
    if kind == "sqlite":
        return _from_sqlite(sql, place)
    connection = _connect(kind, place, str(database))
    try:
        if apart:
            connection.execute("SET enable_external_access = false")
        statements = connection.extract_statements(sql)
        if len(statements) != 1 or "SELECT" not in str(statements[0].type):
            raise ParameterError(ONE_SELECT)
        return connection.sql(sql)
    except EquipoiseError:
        raise
    except Exception as error:
        _fail(error)


def store(frame: pl.DataFrame | pl.LazyFrame, table: str, database: str | Path, *, overwrite: bool = False) -> None:
    """Write a frame as a table, whole or not at all; an existing one is replaced only with `overwrite`."""
    kind, place = _kind(database, new=True)
    whole = collect(nw.from_native(frame.lazy()))
    if kind == "sqlite":
        return _to_sqlite(whole, table, place, overwrite)
    connection = _connect(kind, place, str(database), write=True)
    name = ("there." if kind == "postgres" else "") + quoted(table)
    try:
        connection.register("arrived", whole.to_arrow())
        connection.execute("BEGIN")
        if overwrite:
            connection.execute(f"DROP TABLE IF EXISTS {name}")
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM arrived")
        connection.execute("COMMIT")
    except Exception as error:
        if "already exists" in str(error):
            raise DataError(f"There is a table {table!r} already: name another, or ask to overwrite it.") from None
        _fail(error, "write the table")
    finally:
        connection.close()
    return None


def load(path: Path) -> Any:
    """The only table of a database file."""
    sqlite = _kind(path)[0] == "sqlite"
    tables = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')" if sqlite else "SHOW TABLES"
    try:
        table_names = _from_sqlite(tables, path) if sqlite else _connect("duckdb", path, str(path)).sql(tables).pl()
    except EquipoiseError:
        raise
    except Exception as error:
        _fail(error)
    if table_names.height != 1:
        raise DataError(f"{str(path)!r} holds {table_names.height:,} tables: name one in a query, with database=...")
    return query(f"SELECT * FROM {quoted(table_names.item())}", path)


def save(frame: pl.LazyFrame, path: Path, labels: Labels) -> None:
    """A new database file with one table, named data."""
    path.unlink(missing_ok=True)
    store(frame, "data", path)


def quoted(name: str) -> str:
    """An identifier in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _kind(database: str | Path, new: bool = False) -> tuple[str, Path]:
    """postgres, sqlite or duckdb, and the file where it is one."""
    text = str(database)
    if text.startswith(POSTGRES_SCHEMES):
        return "postgres", Path()
    if "://" in text and not text.startswith("sqlite:///"):
        raise ParameterError(f"No way to databases of the kind {text.partition('://')[0]!r}: DuckDB, SQLite, Postgres.")
    place = Path(text.removeprefix("sqlite:///"))
    if text == IN_MEMORY:
        return "duckdb", place
    if not place.is_file():
        if not new or not place.parent.is_dir():
            raise DataError(f"No database file at {str(place)!r}.")
        return ("sqlite" if text.startswith("sqlite:") or place.suffix in (".sqlite", ".db") else "duckdb"), place
    with place.open("rb") as file:
        head = file.read(len(SQLITE_SIGNATURE))
    return ("sqlite" if head == SQLITE_SIGNATURE or text.startswith("sqlite:") else "duckdb"), place


def _connect(kind: str, place: Path, address: str, write: bool = False) -> Any:
    duckdb = import_extra("duckdb")
    within = kind == "postgres" or str(place) == IN_MEMORY
    settings = {"autoinstall_known_extensions": "false"}
    try:
        connection = duckdb.connect(
            IN_MEMORY if within else str(place), read_only=not write and not within, config=settings
        )
    except Exception as error:
        if "different configuration" in str(error):
            raise EngineError(f"{str(place)!r} is still being read in this program: close it before writing.") from None
        raise DataError(f"Cannot open {str(place)!r} as a DuckDB or SQLite database.") from None
    return _attach(connection, address, write) if kind == "postgres" else connection


def _attach(connection: Any, address: str, write: bool) -> Any:
    try:
        connection.execute("LOAD postgres")
    except Exception:
        raise EngineError(
            "DuckDB's extension 'postgres' is not installed on this machine, and nothing is fetched from the network "
            "here: run INSTALL postgres in DuckDB once, or export the table to Parquet or CSV."
        ) from None
    try:
        mode = "" if write else ", READ_ONLY"
        connection.execute(f"ATTACH '{address.replace(chr(39), chr(39) * 2)}' AS there (TYPE postgres{mode})")
        connection.execute("USE there")
    except Exception:
        raise DataError("Cannot connect to the Postgres database: check its address, user and password.") from None
    return connection


def _from_sqlite(sql: str, place: Path) -> pl.DataFrame:
    mode = _mode(place)
    try:
        with closing(sqlite3.connect(f"{place.resolve().as_uri()}?mode={mode}", uri=True)) as connection:
            connection.set_authorizer(_reads_only)
            return pl.read_database(sql, connection, infer_schema_length=None)
    except Exception as error:
        if type(error).__name__ in QUERY_ERRORS or "not authorized" in str(error):
            raise ParameterError(ONE_SELECT) from None
        _fail(error)


def _reads_only(action: int, *_: object) -> int:
    """What SQLite may do for a query: read."""
    reading = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
    return sqlite3.SQLITE_OK if action in reading else sqlite3.SQLITE_DENY


def _mode(place: Path) -> str:
    """How to open a whole SQLite file: as one at rest where its log of writes is gone, which would be made anew."""
    with place.open("rb") as file:
        head = file.read(32)
    page, count = int.from_bytes(head[16:18], "big"), int.from_bytes(head[28:32], "big")
    if place.stat().st_size < (65_536 if page == 1 else page) * count:
        raise DataError(f"{str(place)!r} is not a whole SQLite database: it is damaged or cut off.")
    return "ro&immutable=1" if head[18:20] == b"\2\2" and not Path(f"{place}-wal").exists() else "ro"


def _to_sqlite(table: pl.DataFrame, name: str, place: Path, overwrite: bool) -> None:
    kinds = [_sqlite_kind(dtype) for dtype in table.dtypes]
    columns = ", ".join(f"{quoted(c)} {kind}" for c, kind in zip(table.columns, kinds, strict=True))
    plain = table.select(to_text(values) if values.dtype.is_temporal() else values for values in table.get_columns())
    try:
        with closing(sqlite3.connect(place, isolation_level=None)) as connection:
            connection.execute("BEGIN")
            if overwrite:
                connection.execute(f"DROP TABLE IF EXISTS {quoted(name)}")
            connection.execute(f"CREATE TABLE {quoted(name)} ({columns})")
            marks = ", ".join("?" * table.width)
            connection.executemany(f"INSERT INTO {quoted(name)} VALUES ({marks})", plain.iter_rows())
            connection.execute("COMMIT")
    except sqlite3.OperationalError as error:
        if "already exists" in str(error):
            raise DataError(f"There is a table {name!r} already: name another, or ask to overwrite it.") from None
        _fail(error, "write the table")


def _sqlite_kind(dtype: pl.DataType) -> str:
    if dtype.is_integer() or dtype == pl.Boolean:
        return "INTEGER"
    return "REAL" if dtype.is_float() else "TEXT"


def _fail(error: Exception, doing: str = "answer the query") -> NoReturn:
    """Engines quote data and addresses: say what kind of thing went wrong."""
    name, text = type(error).__name__, str(error)
    if name == "ParserException" or "syntax error" in text:
        raise ParameterError("The query is not valid SQL.") from None
    if name == "DuplicateError":
        raise DataError("A column stands twice in the answer of the query: give it another name with AS.") from None
    if name in ("CatalogException", "BinderException") or "no such" in text:
        raise ParameterError("The query names a table or a column that is not in the database.") from None
    raise DataError(f"The database could not {doing}: {name}.") from None


FORMATS = (
    Format(
        name="duckdb",
        title="DuckDB",
        suffixes=(".duckdb",),
        load=load,
        save=save,
        signatures=(Signature(b"DUCK", "a DuckDB database", (".duckdb", ".db"), offset=8),),
        types=same("Boolean", *SIGNED, *UNSIGNED, "Float32", "Float64", "Decimal")
        | stored_as("String", *TEXTS)
        | same("Date", "Datetime", ZONED, "Time", "Binary", *NESTED, "Null"),
        any_date=True,
        extra="duckdb",
    ),
    Format(
        name="sqlite",
        title="SQLite",
        suffixes=(".sqlite", ".sqlite3", ".db"),
        load=load,
        save=save,
        signatures=(Signature(SQLITE_SIGNATURE, "a SQLite database", (".sqlite", ".sqlite3", ".db")),),
        types=stored_as("Int64", "Boolean", *SIGNED, *UNSIGNED, *WIDE)
        | stored_as("Float64", *FLOATS)
        | stored_as("String", *TEXTS, "Date", "Datetime", ZONED, "Time")
        | same("Binary", "Null"),
        largest_integer=2**63 - 1,
    ),
)
