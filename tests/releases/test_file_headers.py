"""What the library of each format finds beside the data: no absent category, no name, place or time of the original."""

import getpass
import platform
import re
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import equipoise as eq
from equipoise.data.labels import Column, Labels
from equipoise.files import FORMATS
from equipoise.releases.release import release

SECRET, ABSENT, NAME = "Quetzalcoatlus", "Nowhereville", "quiet_original_name"
CLOCK = re.compile(r"\d\d:\d\d:\d\d")
COLUMNS = ("place", "text", "job")


@pytest.fixture(scope="module", params=list(FORMATS))
def released(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release in each format; SECRET was one record's, ABSENT nobody's."""
    folder = tmp_path_factory.mktemp("original")
    towns = ["Oslo"] * 6 + ["Bergen"] * 6 + [SECRET]
    place = pl.Series(towns, dtype=pl.Enum(["Oslo", SECRET, "Bergen", ABSENT]))
    frame = pl.DataFrame({"place": place, "text": towns, "job": [1] * 6 + [2] * 6 + [3]})
    frame.write_parquet(folder / f"{NAME}.parquet")
    jobs = Column("Job", ((1.0, "smith"), (2.0, "clerk"), (3.0, SECRET), (4.0, ABSENT)))
    records = eq.read(folder / f"{NAME}.parquet", eq.Roles(list(COLUMNS)))
    recipe = eq.Recipe([eq.masks.LocalSuppress(eq.rules.MinCount(3))], 1)
    try:
        release(
            replace(records, labels=Labels({"job": jobs})), recipe, eq.Policy(), folder / "out", format=request.param
        )
    except eq.EquipoiseError as error:
        pytest.skip(str(error))
    return folder / "out" / "public" / f"data.{request.param}"


def header(path: Path) -> Iterator[Any]:
    """Everything that the format's own library says of a file, beside its records."""
    kind = path.suffix[1:]
    if kind == "parquet":
        file = pytest.importorskip("pyarrow.parquet").ParquetFile(path)
        yield from (file.metadata.to_dict(), file.metadata.metadata, file.schema_arrow, file.schema_arrow.metadata)
        yield from (file.read().column(name).type for name in file.schema_arrow.names)
        yield from (c.dictionary for n in COLUMNS for c in file.read([n]).column(0).chunks if hasattr(c, "dictionary"))
    elif kind == "arrow":
        file = pytest.importorskip("pyarrow.ipc").open_file(path)
        yield from (file.schema, file.schema.metadata, *(field.metadata for field in file.schema))
        yield from (c.dictionary for b in [file.read_all()] for col in b.columns for c in col.chunks
                    if hasattr(c, "dictionary"))  # fmt: skip
    elif kind == "orc":
        file = pytest.importorskip("pyarrow.orc").ORCFile(path)
        yield from (file.schema, file.schema.metadata, file.file_version, file.software_version, file.writer)
    elif kind == "xlsx":
        with zipfile.ZipFile(path) as book:
            assert {part.date_time[0] for part in book.infolist()} == {1980}
            yield from (book.read(part).decode() for part in book.namelist())
    elif kind in ("sav", "zsav", "dta", "xpt"):
        library = pytest.importorskip("pyreadstat")
        read = {"xpt": library.read_xport, "dta": library.read_dta}.get(kind, library.read_sav)
        yield {key: value for key, value in vars(read(path)[1]).items() if not callable(value)}
    elif kind == "duckdb":
        with pytest.importorskip("duckdb").connect(str(path), read_only=True) as base:
            yield from (base.sql(f"select * from {name}()").fetchall() for name in ("duckdb_tables", "duckdb_types"))
    elif kind == "sqlite":
        with closing(sqlite3.connect(path)) as base:
            yield base.execute("select * from sqlite_master").fetchall()


def test_what_a_library_finds_beside_the_data(released: Path) -> None:
    content = b"".join(path.read_bytes() for path in released.parent.iterdir())
    parts = list(header(released))
    said = [str(part) for part in parts]
    users = [word for word in (getpass.getuser(), platform.node()) if len(word) > 4]
    for word in (SECRET, ABSENT, NAME, str(released.parents[2]), *users):
        assert word.encode() not in content, (released.name, word)
        assert not [part for part in said if word in part], (released.name, word)
    told = {clock for part in said for clock in CLOCK.findall(part)}
    assert told <= {"00:00:00"}, released.name
    times = [
        value for part in parts if isinstance(part, dict) for value in part.values() if isinstance(value, datetime)
    ]
    assert all((time.day, time.month, time.hour, time.minute) == (1, 1, 0, 0) for time in times), times
    assert times or released.suffix not in (".sav", ".zsav", ".dta"), "The library tells no time any more."


def test_every_format_with_a_header_is_looked_into(released: Path) -> None:
    """A new format needs a reader here, unless it is text."""
    assert released.suffix in (".csv", ".asc") or list(header(released)), released.suffix
