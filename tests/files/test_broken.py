"""Files that are not what they should be: one clear sentence, no data value, nothing written."""

import bz2
import contextlib
import gzip
import lzma
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import narwhals as nw
import polars as pl
import pytest

import equipoise as eq
from equipoise import files
from equipoise.data import engines
from equipoise.files import memory
from equipoise.files import orc as orc_files
from equipoise.ground.errors import settings_words

CANARY = "canary-value"
LABELLED = ("sav", "zsav", "dta", "xpt")


@pytest.fixture
def table() -> pl.DataFrame:
    return pl.DataFrame({"name": [CANARY] * 3000, "x": list(range(3000)), "share": [i / 7 for i in range(3000)]})


PACKAGES = {
    "xlsx": ("fastexcel", "xlsxwriter"),
    "orc": ("pyarrow.orc",),
    "duckdb": ("duckdb",),
    **dict.fromkeys(LABELLED, ("pyreadstat",)),
}


def skip_without_packages(format: str) -> None:
    for package in PACKAGES.get(format, ()):
        pytest.importorskip(package, reason=f".{format} was not tried: {package} is missing.")


def made(folder: Path, table: pl.DataFrame, format: str) -> Path:
    skip_without_packages(format)
    files.save(table.lazy(), folder / f"a.{format}", format)
    return folder / f"a.{format}"


def refused(path: Path, said: str) -> None:
    """One sentence, without data, and the folder is as it was."""
    before = sorted(path.parent.iterdir())
    with pytest.raises(eq.DataError, match=said) as caught:
        eq.read(path).collect()
    text = str(caught.value)
    assert CANARY not in text
    assert text.count(". ") == 0 or "must hold" in text, text
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert sorted(path.parent.iterdir()) == before


def test_what_a_wrong_extension_is_told(tmp_path: Path, table: pl.DataFrame) -> None:
    refused(made(tmp_path, table, "parquet").rename(tmp_path / "b.csv"), r"is a Parquet file.*rename it to \.parquet")


@pytest.mark.parametrize("format", ["csv", "xlsx", "sav"])
def test_encrypted_and_old_office_files(tmp_path: Path, format: str) -> None:
    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x00" * 600
    (tmp_path / f"a.{format}").write_bytes(ole + "EncryptedPackage".encode("utf-16-le"))
    refused(tmp_path / f"a.{format}", "is encrypted: save it without a password")
    (tmp_path / f"a.{format}").write_bytes(ole)
    refused(tmp_path / f"a.{format}", "before 2007 or encrypted")


def test_an_encrypted_archive(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.csv", f"x\n{CANARY}\n")
    data = bytearray((tmp_path / "a.zip").read_bytes())
    data[6] |= 1
    data[data.find(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "a.zip").write_bytes(bytes(data))
    refused(tmp_path / "a.zip", "is encrypted")


def test_wrong_encoding(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(f"navn;x\nBjørn {CANARY};1\n".encode("cp1252"))
    with pytest.raises(eq.DataError, match="not text in the encoding utf-8: name its encoding") as caught:
        eq.read(tmp_path / "a.csv", encoding="utf-8")
    assert CANARY not in str(caught.value)


def test_wrong_encoding_of_a_labelled_file(tmp_path: Path, table: pl.DataFrame) -> None:
    """A Stata 13 file has no encoding of its own: what is not UTF-8 must be told."""
    pyreadstat = pytest.importorskip("pyreadstat", reason="Stata was not tried: pyreadstat is missing.")
    pyreadstat.write_dta(pl.DataFrame({"t": [f"x{CANARY}"]}), tmp_path / "a.dta", version=15)
    data = (tmp_path / "a.dta").read_bytes().replace(f"x{CANARY}".encode(), f"\xe5{CANARY}".encode("latin-1"))
    (tmp_path / "a.dta").write_bytes(data)
    refused(tmp_path / "a.dta", "another encoding than it says|damaged")
    assert eq.read(tmp_path / "a.dta", encoding="cp1252").collect().item() == f"å{CANARY}"


def test_one_line_without_end(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(CANARY * 100_000)
    refused(tmp_path / "a.csv", "no end of line")


def test_three_gigabytes_of_one_column(tmp_path: Path) -> None:
    """Nothing is loaded to find out: the file is sparse, and reading it would take 3 GB."""
    with (tmp_path / "a.csv").open("wb") as file:
        file.write(b"x\n" + b"1\n" * 200_000)
        os.truncate(file.fileno(), 3 << 30)
    assert isinstance(files.load(tmp_path / "a.csv"), pl.LazyFrame)
    with (tmp_path / "b.csv").open("wb") as file:
        file.write(b"1")
        os.truncate(file.fileno(), 3 << 30)
    refused(tmp_path / "b.csv", "not a text file")


@pytest.mark.parametrize("format", ["xlsx", *LABELLED])
def test_more_than_the_memory(
    tmp_path: Path, table: pl.DataFrame, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is needed, what there is, and what to do."""
    path = made(tmp_path, table, format)
    monkeypatch.setattr(memory, "available", lambda: 50_000)
    refused(path, r"needs about [\d.]+ MB of memory and 0\.1 MB are free: .* (Parquet or CSV|CSV or Parquet) first")


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.zip"])
def test_text_beyond_the_memory(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"navn,x\nÅ{CANARY},1\n".encode("cp1252") * 4000
    if name.endswith("gz"):
        (tmp_path / name).write_bytes(gzip.compress(text))
    elif name.endswith("zip"):
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.csv", text)
    else:
        (tmp_path / name).write_bytes(text)
    monkeypatch.setattr(memory, "available", lambda: 50_000)
    refused(tmp_path / name, r"needs about [\d.]+ MB of memory and 0\.1 MB are free")


def test_memory_is_known_here() -> None:
    free = memory.available()
    assert free is None or free > 1_000_000


@pytest.mark.parametrize("format", ["rds", "rda"])
def test_r_files(tmp_path: Path, table: pl.DataFrame, format: str) -> None:
    rdata = pytest.importorskip("rdata", reason="R files were not tried: rdata is missing.")
    path = tmp_path / f"a.{format}"
    frame = table.head(50).to_pandas()
    rdata.write_rds(path, frame) if format == "rds" else rdata.write_rda(path, {"people": frame})
    found = eq.read(path, eq.Roles(["x"]))
    assert found.collect().rows() == table.head(50).rows()
    assert files.becomes(format) == "parquet"
    path.write_bytes(path.read_bytes()[:40])
    refused(path, "not a whole R file")
    path.write_bytes(b"plain text")
    refused(path, "is not an R file")


def test_dates_of_r() -> None:
    import numpy as np

    from equipoise.files import rdata

    days = rdata._days(np.array([0.0, 19_782.0, np.nan]), {})
    assert days.astype("datetime64[D]").astype(str).tolist() == ["1970-01-01", "2024-02-29", "NaT"]
    assert rdata._moments(np.array([1.5]), {}).astype(str).tolist() == ["1970-01-01T00:00:01.500000"]


@pytest.mark.parametrize("format", ["csv", "parquet", "xlsx", "sav"])
def test_files_that_may_not_be_opened(
    tmp_path: Path, table: pl.DataFrame, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made(tmp_path, table, format)

    def closed(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", closed)
    refused(path, r"^Cannot open '.*': permission denied\.$")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="There are no pipes in the file system here.")
def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    """Opening one would wait for ever."""
    os.mkfifo(tmp_path / "a.csv")
    refused(tmp_path / "a.csv", "not a file")


def test_the_mark_of_an_open_workbook(tmp_path: Path) -> None:
    (tmp_path / "~$a.xlsx").write_bytes(b"\x05owner" + b" " * 160)
    refused(tmp_path / "~$a.xlsx", "has the file open: name 'a.xlsx' itself")


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_what_an_archive_says_of_its_length_is_not_trusted(
    tmp_path: Path, pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small archive of many megabytes; gzip keeps the length modulo 4 GB, here that of an empty second part."""
    name = {gzip.compress: "a.csv.gz", bz2.compress: "a.csv.bz2", lzma.compress: "a.csv.xz"}[pack]
    (tmp_path / name).write_bytes(pack(b"x\n" + b"0\n" * 2_000_000) + pack(b""))
    monkeypatch.setattr(memory, "available", lambda: 5_000_000)
    refused(tmp_path / name, r"more than [\d.]+ MB unpacked\) needs more than [\d.]+ MB of memory and 5\.0 MB are free")


def test_a_fixed_file_cut_in_its_last_row(tmp_path: Path) -> None:
    (tmp_path / "a.rda").write_text("age 1 3\n  <NUMERIC>\nincome 4 8\n  <NUMERIC>\n")
    (tmp_path / "a.asc").write_text(" 31 1234567\n 32 1234568\n 33 1234\n")
    refused(tmp_path / "a.asc", "last row .* cut off")


def test_the_texts_of_an_r_file_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text is a Python object while it is read: 550 bytes each, and six for every byte inside."""
    rdata = pytest.importorskip("rdata", reason="R files were not tried: rdata is missing.")
    pandas = pytest.importorskip("pandas", reason="R files were not tried: pandas is missing.")
    texts = pandas.DataFrame({"name": [f"{CANARY} {i}" for i in range(20_000)]})
    rdata.write_rds(tmp_path / "a.rds", texts)
    monkeypatch.setattr(memory, "available", lambda: 100_000)
    refused(tmp_path / "a.rds", r"needs more than 1[45]\.\d MB of memory and 0\.1 MB are free")


def test_an_archive_of_a_method_that_nobody_has(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.csv", f"x\n{CANARY}\n")
    data = bytearray((tmp_path / "a.zip").read_bytes())
    data[data.find(b"PK\x01\x02") + 10] = 99
    (tmp_path / "a.zip").write_bytes(bytes(data))
    refused(tmp_path / "a.zip", "not a whole CSV file .NotImplementedError.")


@pytest.mark.parametrize(("format", "display"), [("sav", "DATE11"), ("dta", "%td"), ("xpt", "DATE9.")])
def test_dates_in_no_calendar(tmp_path: Path, format: str, display: str) -> None:
    """Numbers shown as dates may be anything; beyond the year 9999 Python has none."""
    pyreadstat = pytest.importorskip("pyreadstat", reason=f".{format} was not tried: pyreadstat is missing.")
    write = {"sav": pyreadstat.write_sav, "dta": pyreadstat.write_dta, "xpt": pyreadstat.write_xport}[format]
    write(pl.DataFrame({"born": [1.0, 7.3e14]}), tmp_path / f"a.{format}", variable_format={"born": display})
    refused(tmp_path / f"a.{format}", "'born' is shown as a date and has 1 values? outside the years 1 to 9999")


@pytest.mark.parametrize("at", [3000, 4000, -2000])
def test_panics_of_the_engine_stay_off_the_terminal(tmp_path: Path, at: int, capfd: pytest.CaptureFixture[str]) -> None:
    """Damage inside an Arrow file is met when it is read, by code that writes to the terminal itself."""
    frame = pl.DataFrame({"x": [[CANARY] * (i % 7) for i in range(900)], "y": ["a" * (i % 50) for i in range(900)]})
    frame.write_ipc(tmp_path / "a.arrow")
    data = bytearray((tmp_path / "a.arrow").read_bytes())
    data[at : at + 64] = b"\xff" * 64
    (tmp_path / "a.arrow").write_bytes(bytes(data))
    with contextlib.suppress(eq.DataError):
        eq.read(tmp_path / "a.arrow").collect()
    assert "panicked" not in capfd.readouterr().err


def test_whatever_reads_in_batches_keeps_panics_off_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that fails at its first batch may give none at all, and fail again when all is read at once."""
    inside: list[None] = []
    quiet_reads: list[bool] = []

    @contextlib.contextmanager
    def quiet() -> Iterator[None]:
        inside.append(None)
        yield
        inside.pop()

    def watched(piece: pl.DataFrame) -> pl.DataFrame:
        quiet_reads.append(bool(inside))
        return piece

    monkeypatch.setattr(engines, "quiet_panics", quiet)
    list(engines.batches(nw.from_native(pl.LazyFrame({"x": pl.Series([], dtype=pl.Int64)}).map_batches(watched))))
    assert quiet_reads
    assert all(quiet_reads)


@pytest.mark.parametrize("format", files.FORMATS)
@pytest.mark.parametrize(
    "far",
    [
        pytest.param(pl.lit(2**31 - 1, pl.Int32).cast(pl.Date), id="the last day"),
        pytest.param(pl.lit(-(10**17)).cast(pl.Datetime("ms")), id="a moment"),
        pytest.param(pl.lit(6_600_000).cast(pl.Date), id="the year 20040"),
    ],
)
def test_dates_out_of_range_are_written_or_refused(
    tmp_path: Path, format: str, far: pl.Expr, capfd: pytest.CaptureFixture[str]
) -> None:
    """Before, engines panicked at writing them, or wrote what nobody reads."""
    skip_without_packages(format)
    frame = pl.LazyFrame({"x": [1, 2]}).select("x", day=far)
    if files.FORMATS[format].any_date:
        with contextlib.suppress(eq.DataError):
            files.save(frame, tmp_path / f"a.{format}", format)
    else:
        with pytest.raises(
            eq.DataError, match=r"Column 'day' has dates (outside the years 1 to 9999|that no calendar)"
        ):
            files.save(frame, tmp_path / f"a.{format}", format)
        assert not list(tmp_path.iterdir())
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("error", [ValueError(CANARY), pl.exceptions.PanicException(CANARY), RecursionError()])
def test_whatever_a_writer_raises_is_one_sentence(
    tmp_path: Path, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise error

    monkeypatch.setitem(files.FORMATS, "csv", replace(files.FORMATS["csv"], save=broken))
    with pytest.raises(eq.DataError, match="Could not write the CSV file") as caught:
        files.save(pl.LazyFrame({"x": [1]}), tmp_path / "a.csv", "csv")
    assert CANARY not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_an_orc_file_that_kills_its_reader(tmp_path: Path) -> None:
    """Lengths of texts that fall below 0 end PyArrow's process by a segmentation fault: it is not this one."""
    pa, orc = (pytest.importorskip(f"pyarrow{part}", reason="ORC was not tried") for part in ("", ".orc"))
    path = tmp_path / "a.orc"
    orc.write_table(pa.table({"t": [f"{i:05}" for i in range(50)]}), str(path), compression="uncompressed")
    lengths = b"\xc0\x31\x05"  # fifty numbers from 5 on, each the last one and as much more as the next byte says
    content = path.read_bytes()
    assert content.count(lengths + b"\x00") == 1
    path.write_bytes(content.replace(lengths + b"\x00", lengths + b"\x6b"))
    refused(path, "is not a whole ORC file")


def test_an_orc_file_whose_reader_ends_before_its_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that stops between two batches would pass for a shorter file."""
    pytest.importorskip("pyarrow.orc", reason="ORC was not tried: pyarrow is missing.")
    files.save(pl.LazyFrame({"x": [1, 2]}), tmp_path / "a.orc", "orc")
    assert eq.read(tmp_path / "a.orc").collect()["x"].to_list() == [1, 2]
    monkeypatch.setattr(orc_files, "READER", orc_files.READER.replace("stream.write(batch)", "os._exit(1)"))
    refused(tmp_path / "a.orc", "is not a whole ORC file")


def test_a_whole_disk_is_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files.many_files, "MAX_PATHS", 3)
    for i in range(5):
        (tmp_path / f"{i}.txt").touch()
    refused(tmp_path, "more than 3 files and folders: name the folder of the data")


def test_a_workbook_that_unfolds_beyond_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says of its sizes is not believed: shared strings unfold as well, and the directory may lie."""
    path = tmp_path / "a.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("xl/workbook.xml", "<x/>")
        book.writestr("xl/sharedStrings.xml", b"0" * 8_000_000)
    monkeypatch.setattr(memory, "available", lambda: 5_000_000)
    refused(path, r"more than [\d.]+ MB unpacked\) needs more than [\d.]+ MB of memory and 5\.0 MB are free")


def test_an_arrow_file_that_unpacks_to_more_than_there_is(tmp_path: Path) -> None:
    """Before, Polars asked for that much memory, and the process ended."""
    path = tmp_path / "data.arrow"
    pl.DataFrame({"a": range(5000)}).write_ipc(path, compression="zstd")
    content = bytearray(path.read_bytes())
    frame = content.index(b"\x28\xb5\x2f\xfd")
    content[frame - 8 : frame] = (1 << 60).to_bytes(8, "little")
    path.write_bytes(content)
    with pytest.raises(eq.EquipoiseError, match="not a whole Arrow file"):
        eq.read(path).collect()


@pytest.mark.parametrize("setting", ["POLARS_MAX_THREADS=0", "POLARS_MAX_CONCURRENT_SCANS=x"])
def test_a_setting_that_breaks_the_engine_is_not_called_a_damaged_file(tmp_path: Path, setting: str) -> None:
    """The engine reads its settings once, so each needs a process of its own."""
    (tmp_path / "a.csv").write_text("age\n7\n", encoding="utf-8")
    name, _, value = setting.partition("=")
    ended = subprocess.run(
        [sys.executable, "-m", "equipoise", "assess", "a.csv", "--keys", "age"],
        cwd=tmp_path, env={**os.environ, name: value}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 2, ended.stderr
    assert f"settings for it ({name}): unset them" in ended.stderr
    assert "whole" not in ended.stderr
    assert "panicked" not in ended.stderr


def test_harmless_settings_are_not_blamed_for_a_panic(monkeypatch: pytest.MonkeyPatch) -> None:
    panic = type("PanicException", (BaseException,), {})()
    for name in [name for name in os.environ if name.startswith("POLARS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("POLARS_MAX_THREADS", "2")
    assert settings_words(panic) == ""
    monkeypatch.setenv("POLARS_CSV_CHUNK_SIZE", "x")
    assert "(POLARS_CSV_CHUNK_SIZE)" in settings_words(panic)
    assert settings_words(ValueError()) == ""
