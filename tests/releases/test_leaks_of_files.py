"""What the files of a release say beside the data: no absent category, no file name, no time of writing."""

import io
import re
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import equipoise as eq
from equipoise.data.engines import without_hidden
from equipoise.data.labels import Column, Labels
from equipoise.files import read_table_csv
from equipoise.releases.release import release

SECRET, NAME = "Quetzalcoatlus", "quiet_original_name"
TIMES = re.compile(rb"\d\d:\d\d:\d\d|\d\d [A-Z][a-z]{2} \d{4}|\d\d[A-Z]{3}\d\d:|\d{4}-\d\d-\d\dT")
NO_TIMES = {b"00:00:00", b"01 Jan 1970", b"01 Jan 7000", b"01JAN70:", b"1970-01-01T"}
"""What stands for no time; the year and the hour follow each other in SPSS files."""


def pieces(path: Path) -> list[bytes]:
    """The bytes of a file, unpacked where it is an archive."""
    if path.suffix != ".xlsx":
        return [path.read_bytes()]
    with zipfile.ZipFile(path) as book:
        assert {part.date_time[0] for part in book.infolist()} == {1980}
        return [book.read(part) for part in book.namelist()]


@pytest.mark.parametrize("keep_order", [True, False])
def test_nothing_is_hidden_beneath_blanks(keep_order: bool, tmp_path: Path) -> None:
    """Arrow keeps a value where the mask says that there is none; texts of blanks were read from released files."""
    number, text = 0x1122334455667788, "a text of more than twelve letters"
    table = pl.DataFrame({
        "area": [1] * 9, "code": [7] * 8 + [number], "town": ["Oslo"] * 8 + [text], "kind": ["x"] * 8 + ["quetzal"],
        "day": pl.Series([1] * 8 + [77_777], dtype=pl.Int32).cast(pl.Date), "none": [None] * 9,
    })  # fmt: skip
    roles, masks = (
        eq.Roles(["area", "code", "town", "kind", "day"]),
        [eq.masks.LocalSuppress(eq.rules.MinCount(3))],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        released = eq.protect(table, masks, roles=roles, seed=1, keep_order=keep_order)
        eq.protect(table, masks, tmp_path / "out", roles=roles, seed=1, keep_order=keep_order, format="arrow")
    secrets = (number.to_bytes(8, "little"), text.encode(), b"quetzal", (77_777).to_bytes(4, "little"))
    for frame in (released, pl.read_ipc(tmp_path / "out" / "public" / "data.arrow")):
        assert {frame[key].null_count() for key in roles.keys[1:]} == {3}
        frame.write_ipc(tmp_path / "raw.arrow", compression="uncompressed")
        content = (tmp_path / "raw.arrow").read_bytes()
        assert not [secret for secret in secrets if secret in content]


def test_bytes_beneath_blanks_are_gone() -> None:
    table = pl.DataFrame({"photo": [b"a picture of some house", b"a picture of somebody", None]})
    blanked = table.with_columns(pl.when(pl.Series([True, False, True])).then("photo").alias("photo"))
    for frame, hidden in ((blanked, True), (without_hidden(blanked), False)):
        frame.write_ipc(content := io.BytesIO(), compression="uncompressed")
        assert (b"somebody" in content.getvalue()) == hidden
        assert frame.rows() == [(b"a picture of some house",), (None,), (None,)]


@pytest.mark.parametrize("format", ["parquet", "arrow", "xlsx", "sav", "zsav", "dta", "xpt", "orc"])
def test_what_a_file_says_beside_the_data(format: str, tmp_path: Path) -> None:
    """Before, .xlsx, .sav, .dta and .xpt told the second in which they were written."""
    towns = ["Oslo"] * 6 + ["Bergen"] * 6 + [SECRET]
    kinds = {"town": pl.Enum(["Oslo", SECRET, "Bergen", "Nowhere"]), "place": pl.Categorical, "text": pl.String}
    columns = {name: pl.Series(towns, dtype=kind) for name, kind in kinds.items()}
    pl.DataFrame({**columns, "job": [1] * 6 + [2] * 6 + [3]}).write_parquet(tmp_path / f"{NAME}.parquet")
    jobs = Column("Job", ((1.0, "smith"), (2.0, "clerk"), (3.0, SECRET), (4.0, SECRET)))
    records = eq.read(tmp_path / f"{NAME}.parquet", eq.Roles([*kinds, "job"]))
    recipe = eq.Recipe([eq.masks.LocalSuppress(eq.rules.MinCount(3))], 1)
    release(
        replace(records, labels=Labels({"job": jobs})), recipe, eq.Policy(), tmp_path / "out", format=format
    )  # fmt: skip
    public = tmp_path / "out" / "public"
    for path in public.iterdir():
        for content in pieces(path):
            for word in (SECRET, "Nowhere", NAME, str(tmp_path)):
                assert word.encode() not in content, (path.name, word)
    for content in pieces(public / f"data.{format}"):
        assert set(TIMES.findall(content[:4096])) <= NO_TIMES
    assert set(eq.read(public / f"data.{format}").collect()["text"].drop_nulls()) - {""} == {"Bergen", "Oslo"}
    if format == "xlsx":
        assert any(b"<dc:creator></dc:creator>" in content for content in pieces(public / "data.xlsx"))
    if format == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet").ParquetFile(public / "data.parquet")
        assert set(parquet.metadata.metadata) <= {b"ARROW:schema", b"equipoise.labels"}
        statistics = [parquet.metadata.row_group(0).column(i).statistics for i in range(3)]
        assert {end for one in statistics for end in (one.min, one.max)} <= {"Bergen", "Oslo", None}


def test_formulas_in_tables(tmp_path: Path) -> None:
    """Before, only the cells of released records were marked, and no name of a column."""
    table = pl.DataFrame({"=area": ["=1+1", "@a"] * 10, "sex": ["f"] * 10 + ["m"] * 10})
    eq.tabulate(eq.read(table), ["=area", "sex"], out=tmp_path / "out", rule=eq.rules.MinCount(1))
    written = (tmp_path / "out" / "public" / "table.csv").read_text(encoding="utf-8")
    assert "'=area" in written.splitlines()[0]
    assert not re.search(r"(^|,)[=@]", written, re.MULTILINE)
    assert set(read_table_csv(tmp_path / "out" / "public" / "table.csv")["=area"].drop_nulls()) >= {"=1+1", "@a"}
    assert eq.verify(tmp_path / "out").outcome != "refused"


def test_formulas_are_kept_where_asked(tmp_path: Path) -> None:
    """In tables and decisions as in records, by one option; the release is verified alike."""
    table = pl.DataFrame({"area": ["=1+1", "'@a"] * 10, "sex": ["f"] * 10 + ["m"] * 10})
    first = {"by": ["area", "sex"], "rule": eq.rules.MinCount(1)}
    for formulas, cells in {"keep": {"=1+1", "'@a"}, "escape": {"'=1+1", "''@a"}}.items():
        out = tmp_path / formulas
        eq.tabulate(eq.read(table), **first, out=out, csv_formulas=formulas)
        assert set(pl.read_csv(out / "public" / "table.csv")["area"].drop_nulls()) >= cells
        assert eq.verify(out).outcome != "refused", [c.words for c in eq.verify(out).checks]
        counts = pl.DataFrame({"area": ["=1+1", "'@a"] * 4, "n": [10] * 8, "N": [40] * 8, "y": range(8)})
        eq.publish(counts, cutoff=1.0, out=out / "decision.csv", csv_formulas=formulas)
        assert set(pl.read_csv(out / "decision.csv")["area"]) == cells
    with pytest.raises(eq.EquipoiseError, match=r"'escape'.* 'keep'"):
        eq.tabulate(eq.read(table), **first, out=tmp_path / "no", csv_formulas="leave")
    assert not (tmp_path / "no").exists()
