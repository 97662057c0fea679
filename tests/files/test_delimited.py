"""CSV: what is detected, what can be told, and what is refused."""

import csv
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import equipoise as eq
from equipoise import files


def put(folder: Path, data: str | bytes, name: str = "file.csv") -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def rows(path: Path, **options: Any) -> list[tuple[Any, ...]]:
    return eq.read(path, **options).collect().rows()


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_delimiters_are_detected(tmp_path: Path, mark: str) -> None:
    path = put(tmp_path, f"name{mark}age\nAda{mark}36\nBo{mark}40\n")
    assert rows(path) == [("Ada", 36), ("Bo", 40)]
    assert rows(path, delimiter=mark) == [("Ada", 36), ("Bo", 40)]


def test_a_mark_inside_quotes_is_data(tmp_path: Path) -> None:
    assert rows(put(tmp_path, 'name;age\n"Bo; of A, B";40\n"C, D";41\n')) == [("Bo; of A, B", 40), ("C, D", 41)]


def test_quoted_newlines(tmp_path: Path) -> None:
    """A record may span lines."""
    path = put(tmp_path, 'name,note\nAda,"two\nlines"\nBo,"one"\n')
    assert rows(path) == [("Ada", "two\nlines"), ("Bo", "one")]
    path = put(tmp_path, 'name,note\r\nAda,"two\r\nlines"\r\nBo,"a ""word"""\r\n')
    assert rows(path) == [("Ada", "two\r\nlines"), ("Bo", 'a "word"')]


@pytest.mark.parametrize(
    "data",
    [
        "navn,år\nBjørn,36\n".encode(),
        "\ufeffnavn,år\nBjørn,36\n".encode(),
        "navn,år\nBjørn,36\n".encode("cp1252"),
        "navn,år\nBjørn,36\n".encode("utf-16"),
        "\ufeffnavn,år\nBjørn,36\n".encode("utf-16-le"),
        "\ufeffnavn,år\nBjørn,36\n".encode("utf-16-be"),
        "navn,år\nBjørn,36\n".encode("utf-32"),
    ],
    ids=["utf-8", "utf-8 with a mark", "cp1252", "utf-16", "utf-16-le", "utf-16-be", "utf-32"],
)
def test_encodings_are_detected(tmp_path: Path, data: bytes) -> None:
    """UTF-8, or what the byte-order mark says, else Windows-1252; the mark is no part of a name."""
    table = eq.read(put(tmp_path, data)).collect()
    assert table.columns == ["navn", "år"]
    assert table.rows() == [("Bjørn", 36)]


@pytest.mark.parametrize("encoding", ["latin-1", "cp850", "utf-16-le", "utf-8"])
def test_encodings_can_be_told(tmp_path: Path, encoding: str) -> None:
    path = put(tmp_path, "navn,x\nBjørn,1\n".encode(encoding))
    assert rows(path, encoding=encoding) == [("Bjørn", 1)]


def test_encodings_that_do_not_fit(tmp_path: Path) -> None:
    path = put(tmp_path, "navn,x\nBjørn,1\n".encode("cp1252"))
    with pytest.raises(eq.DataError, match="not text in the encoding utf-8"):
        rows(path, encoding="utf-8")
    with pytest.raises(eq.DataError, match="not text in the encoding utf-16"):
        rows(put(tmp_path, b"navn,x\nBo,1\n"), encoding="utf-16")
    with pytest.raises(eq.ParameterError, match="No encoding is called 'klingon'"):
        rows(path, encoding="klingon")


def test_decimal_commas(tmp_path: Path) -> None:
    """Detected where the delimiter is not a comma and numbers have them; or told."""
    path = put(tmp_path, "x;y\n1,5;a\n-2,25;b\n3;c\n")
    assert rows(path) == [(1.5, "a"), (-2.25, "b"), (3.0, "c")]
    assert rows(path, decimal=",") == [(1.5, "a"), (-2.25, "b"), (3.0, "c")]
    assert rows(path, decimal=".") == [("1,5", "a"), ("-2,25", "b"), ("3", "c")]
    assert rows(put(tmp_path, 'x,y\n"1,5",a\n"2,5",b\n'), decimal=",") == [(1.5, "a"), (2.5, "b")]
    assert rows(put(tmp_path, "x;y\n1.5;a\n2.5;b\n")) == [(1.5, "a"), (2.5, "b")]


def test_codes_with_leading_zeros_stay_text(tmp_path: Path) -> None:
    """0123 is a postcode, not the number 123; 0 and 0.5 are numbers."""
    table = eq.read(put(tmp_path, "code,zero,share\n0123,0,0.5\n4567,1,0.25\n")).collect()
    assert table.rows() == [("0123", 0, 0.5), ("4567", 1, 0.25)]


def test_gaps_are_missing(tmp_path: Path) -> None:
    assert rows(put(tmp_path, "x,y\n1,\n,b\n")) == [(1, None), (None, "b")]


def test_late_types(tmp_path: Path) -> None:
    """A column that turns out to be text after thousands of numbers is text from the start."""
    path = put(tmp_path, "x,y\n" + "1,2\n" * 11_000 + "1,late\n")
    table = eq.read(path).collect()
    assert table.schema == {"x": pl.Int64, "y": pl.String}
    assert table.height == 11_001


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("", "is empty"),
        ("x,y\n", "no records"),
        ("x,y\n1\n", "number of fields|fewer fields|not a regular"),
        ("x,y\n1,2,3\n", "number of fields|not a regular"),
        ("x,x\n1,2\n", "twice"),
        (b"\x00\x01\x02\x03", "not a text file"),
        (b"PK\x03\x04\x00\x00", "not a text file"),
    ],
)
def test_files_that_are_no_csv(tmp_path: Path, data: Any, said: str) -> None:
    """Bad input: one clear sentence."""
    with pytest.raises(eq.DataError, match=said) as caught:
        eq.read(put(tmp_path, data))
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("bad", [{"delimiter": ";;"}, {"delimiter": ""}, {"decimal": "x"}])
def test_unfit_options(tmp_path: Path, bad: dict[str, str]) -> None:
    path = put(tmp_path, "x;y\n1;2\n")
    if bad == {"delimiter": ""}:
        assert rows(path, **bad) == [(1, 2)], "nothing told: detected"
        return
    with pytest.raises(eq.ParameterError):
        rows(path, **bad)


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r", exclude_categories=["Cs"]), max_size=8)


@given(texts=st.lists(TEXT.filter(lambda t: t.strip() and not t.strip().isdigit()), min_size=2, max_size=8))
def test_what_polars_writes_we_read(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    """Any text survives: quotes, marks and newlines inside fields."""
    path = tmp_path_factory.mktemp("csv") / "file.csv"
    table = pl.DataFrame({"word": texts, "place": [f"p{i}" for i in range(len(texts))]})
    table.write_csv(path, quote_style="always")
    assert eq.read(path, delimiter=",", decimal=".").collect()["word"].cast(pl.String).to_list() == texts


def test_our_own_csv_round_trip(tmp_path: Path, people: pl.DataFrame) -> None:
    from equipoise import files

    files.save(people.lazy(), tmp_path / "out.csv", "csv")
    assert_frame_equal(eq.read(tmp_path / "out.csv").collect(), people.with_columns(pl.col("area").cast(pl.Int64)))


def test_lines_of_old_macintosh_files(tmp_path: Path) -> None:
    assert rows(put(tmp_path, "navn,x\rBjørn,1\rÅse,2\r".encode("cp1252"))) == [("Bjørn", 1), ("Åse", 2)]


def test_more_columns_than_fit_the_first_look(tmp_path: Path) -> None:
    """The names alone are longer than the piece that is looked at first."""
    names = [f"column_{i}" for i in range(30_000)]
    path = put(tmp_path, ",".join(names) + "\n" + (",".join(["0"] * 30_000) + "\n") * 3)
    assert eq.read(path).frame.collect_schema().names() == names


@pytest.mark.parametrize("name", ['a"b', '"', '""x', "it's; <b>"])
def test_quotes_in_column_names_come_through(tmp_path: Path, name: str) -> None:
    """A quote inside a quoted name is written twice; read and written again it is the same name."""
    frame = pl.DataFrame({name: ["01", "02"], "n": [1, 2]})
    frame.write_csv(tmp_path / "a.csv")
    found = eq.read(tmp_path / "a.csv").collect()
    assert found.to_dict(as_series=False) == frame.to_dict(as_series=False)
    found.write_csv(tmp_path / "b.csv")
    assert eq.read(tmp_path / "b.csv").collect().columns == frame.columns


def test_text_that_a_spreadsheet_would_run(tmp_path: Path) -> None:
    """Marked with an apostrophe in the file, and the same again when it is read; numbers and telephones stay."""
    run = ["=1+1", "+cmd|' /C calc'!A0", "-x", "@SUM(A1)", "\tx", "'=x", "''-y"]
    stay = ["-5", "-1.5e3", "+47 22 86 45 00", "-", "+", "=", "@", "a=b", "'quoted'", "", None, "-1,5"]
    table = pl.DataFrame({"text": [*run, *stay], "n": list(range(len(run) + len(stay)))})
    files.save(files.without_formulas(table.lazy()), tmp_path / "a.csv", "csv")
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        raw = [row["text"] for row in csv.DictReader(file)]
    assert raw[: len(run)] == [f"'{text}" for text in run]
    assert raw[len(run) :] == [text or "" for text in stay]
    assert [text or None for text in eq.read(tmp_path / "a.csv").collect()["text"]] == [t or None for t in run + stay]


def test_a_release_marks_formulas_unless_told(tmp_path: Path) -> None:
    table = pl.DataFrame({"sex": ["f", "m"] * 9, "note": ["=1+1", "b"] * 9})
    table.write_csv(tmp_path / "a.csv")
    records, mask = eq.read(tmp_path / "a.csv", eq.Roles("sex")), eq.masks.SuppressRecords(eq.rules.MinCount(2))
    for formulas, cell in (("escape", "'=1+1"), ("keep", "=1+1")):
        made = eq.protect(records, [mask], tmp_path / formulas, csv_formulas=formulas)
        assert cell in pl.read_csv(made.public / "data.csv")["note"].to_list()
        assert "apostrophe" in (made.public / "codebook.md").read_text(encoding="utf-8")
        assert eq.verify(made.folder).outcome == "verified"
        assert "a.csv" not in (made.public / "codebook.md").read_text(encoding="utf-8").replace("data.csv", "")
