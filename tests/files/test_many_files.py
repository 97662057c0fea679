"""Many files as one: patterns, partitions, and compressed CSV."""

import bz2
import gzip
import lzma
import zipfile
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import equipoise as eq
from equipoise import files


@pytest.fixture
def pieces(tmp_path: Path, people: pl.DataFrame) -> Path:
    for number in range(4):
        people.slice(number * 100, 100).write_parquet(tmp_path / f"part-{number}.parquet")
        people.slice(number * 100, 100).write_csv(tmp_path / f"part-{number}.csv")
    return tmp_path


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_pattern_is_one_file(pieces: Path, people: pl.DataFrame, ending: str) -> None:
    records = eq.read(pieces / f"part-*.{ending}", eq.Roles(["sex", "age"], id="person"))
    assert_frame_equal(
        records.collect(), people.with_columns(area=pl.col("area").cast(records.collect()["area"].dtype))
    )
    assert records.source is not None
    assert records.source.format == ending
    assert len(eq.count(records)) == people.select("sex", "age").n_unique()


def test_a_pattern_is_released(pieces: Path, people: pl.DataFrame) -> None:
    roles = eq.Roles(["sex", "age"], id="person", hierarchies={"age": eq.Hierarchy.intervals(10)})
    done = eq.protect(eq.read(pieces / "part-?.parquet", roles), [eq.masks.Recode("age", 1)], pieces / "out")
    assert pl.read_parquet(done.public / "data.parquet").height == people.height
    assert done.evidence["input"]["hmac_sha256"]


def test_a_folder_of_partitions(tmp_path: Path, people: pl.DataFrame) -> None:
    """Folders named column=value are a column."""
    for (sex,), part in people.partition_by("sex", as_dict=True, include_key=False).items():
        (tmp_path / "data" / f"sex={sex}").mkdir(parents=True)
        part.write_parquet(tmp_path / "data" / f"sex={sex}" / "part-0.parquet")
    (tmp_path / "data" / "_SUCCESS").touch()
    records = eq.read(tmp_path / "data", eq.Roles(["sex", "age"], id="person"))
    assert_frame_equal(records.collect().sort("person"), people.sort("person"), check_column_order=False)
    assert not records.in_memory
    assert eq.read(tmp_path / "data" / "*" / "*.parquet").collect().height == people.height


def test_patterns_that_fail(pieces: Path) -> None:
    with pytest.raises(eq.DataError, match="No file fits"):
        eq.read(pieces / "nothing-*.csv")
    with pytest.raises(eq.DataError, match="several formats: csv, parquet"):
        eq.read(pieces / "part-*")
    (pieces / "part-9.csv").write_text("person,sex\n1,canary\n")
    with pytest.raises(eq.DataError, match="columns of") as caught:
        eq.read(pieces / "part-*.csv")
    assert "canary" not in str(caught.value)
    (pieces / "part-9.parquet").write_bytes(b"PAR1 something else")
    with pytest.raises(eq.DataError, match=r"part-9.parquet' is not a whole Parquet file"):
        eq.read(pieces / "part-*.parquet").collect()
    (pieces / "part-9.parquet").write_bytes(b"")
    with pytest.raises(eq.DataError, match="is empty"):
        eq.read(pieces / "part-*.parquet")


def packed(path: Path, data: bytes) -> Path:
    plain = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
    if path.suffix in plain:
        path.write_bytes(plain[path.suffix](data))
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("inside.csv", data)
    else:
        arrow = pytest.importorskip("pyarrow", reason="zstd was not tried: pyarrow is missing.")
        path.write_bytes(arrow.compress(data, "zstd", asbytes=True))
    return path


@pytest.mark.parametrize("name", ["a.csv.gz", "a.csv.zip", "a.zip", "a.csv.zst", "a.csv.bz2", "a.tsv.xz"])
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_compressed_text(tmp_path: Path, name: str, encoding: str) -> None:
    path = packed(tmp_path / name, "navn;år;kode\nBjørn;1,5;0012\n\nÅse;2;0013\n".encode(encoding))
    assert eq.read(path).collect().rows() == [("Bjørn", 1.5, "0012"), ("Åse", 2.0, "0013")]


@pytest.mark.parametrize("name", ["a.csv.gz", "a.csv.zip", "a.csv.zst", "a.csv.bz2", "a.csv.xz"])
def test_compressed_text_that_is_cut(tmp_path: Path, name: str) -> None:
    data = packed(tmp_path / name, b"x,y\n" + b"1,canary\n" * 5000).read_bytes()
    (tmp_path / name).write_bytes(data[: len(data) // 2])
    with pytest.raises(eq.DataError, match="not a whole compressed file") as caught:
        eq.read(tmp_path / name)
    assert "canary" not in str(caught.value)


def test_archives_with_more_than_one_file(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.csv", "x\n1\n")
        archive.writestr("b.csv", "x\n1\n")
    with pytest.raises(eq.DataError, match="holds 2 files"):
        eq.read(tmp_path / "a.zip")


def test_labels_of_a_file_without_any(tmp_path: Path, people: pl.DataFrame) -> None:
    people.write_parquet(tmp_path / "a.parquet")
    assert not eq.read(tmp_path / "a.parquet").labels
    assert files.parts(tmp_path / "a.parquet") == [tmp_path / "a.parquet"]
