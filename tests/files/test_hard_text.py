"""Files as offices write them: names in two rows, titles above, marks between thousands, codes for missing values."""

from pathlib import Path

import polars as pl
import pytest

import equipoise as eq
from equipoise.doors.cli import main

EUROPEAN = "pay;place\n1.234,56;NA\n-7,5;a\nNA;b\n12.345.678,00;c\n"


def frame(path: Path, text: str, **options: object) -> pl.DataFrame:
    path.write_text(text, encoding="utf-8")
    return eq.read(path, **options).collect()  # type: ignore[arg-type]


def test_decimal_commas_with_points_between_thousands_are_numbers(tmp_path: Path) -> None:
    found = frame(tmp_path / "a.csv", EUROPEAN)
    assert found["pay"].to_list() == [1234.56, -7.5, None, 12345678.0]
    assert found["place"].to_list() == ["NA", "a", "b", "c"]


def test_commas_between_thousands_are_numbers(tmp_path: Path) -> None:
    found = frame(tmp_path / "a.csv", 'n,x\n"1,234",1\n"12,345,678",2\n9,.\n')
    assert found["n"].to_list() == [1234, 12345678, 9]
    assert found["x"].to_list() == [1, 2, None]


@pytest.mark.parametrize("text", ["t\n555 123 456\n444 123 456\n", "t\n1.2.3\n10.11.12\n", "t\n12,34\n1,2\n"])
def test_other_texts_with_marks_stay_text(tmp_path: Path, text: str) -> None:
    assert frame(tmp_path / "a.csv", text, delimiter=";", decimal=".")["t"].dtype == pl.String


def test_a_column_that_stops_being_numbers_stays_text(tmp_path: Path) -> None:
    rows = "\n".join(["1.234,5"] * 60_000 + ["about 7"])
    assert frame(tmp_path / "a.csv", f"x;y\n{rows.replace(chr(10), ';1' + chr(10))};1\n")["x"][0] == "1.234,5"


def test_marks_between_thousands_can_be_told(tmp_path: Path) -> None:
    found = frame(tmp_path / "a.csv", "n;m\n1 234,5;1\n12 345;2\n", thousands=" ", decimal=",")
    assert found["n"].to_list() == [1234.5, 12345.0]


def test_codes_for_what_is_missing_are_null_in_every_format(tmp_path: Path) -> None:
    plain = pl.DataFrame({"age": [30, -9, 40], "job": ["clerk", "unknown", "-9"]})
    plain.write_parquet(tmp_path / "a.parquet")
    plain.write_csv(tmp_path / "a.csv")
    for name in ("a.parquet", "a.csv"):
        found = eq.read(tmp_path / name, missing_codes=[-9, "unknown"]).collect()
        assert (found["age"].to_list(), found["job"].to_list()) == ([30, None, 40], ["clerk", None, None])


TWO_ROWS = "Survey of 2024,,\n,Income,\nid,2023,2024\n1,10,20\n2,30,40\n3,50,60\n"


def test_names_in_two_rows_below_a_title_are_joined(tmp_path: Path) -> None:
    found = frame(tmp_path / "a.csv", TWO_ROWS, skip_rows=1, header_rows=2)
    assert found.columns == ["id", "Income 2023", "Income 2024"]
    assert found["Income 2024"].to_list() == [20, 40, 60]


def test_names_in_two_rows_of_a_sheet_are_joined(tmp_path: Path) -> None:
    xlsxwriter = pytest.importorskip("xlsxwriter")
    with xlsxwriter.Workbook(tmp_path / "a.xlsx") as book:
        sheet = book.add_worksheet("s")
        for place, row in enumerate([["Title"], ["", "Income", ""], ["id", 2023, 2024], [1, 10, 20], [2, 30, 40]]):
            sheet.write_row(place, 0, row)
    found = eq.read(tmp_path / "a.xlsx", skip_rows=1, header_rows=2).collect()
    assert found.columns == ["id", "Income 2023", "Income 2024"]
    assert found.rows() == [(1, 10, 20), (2, 30, 40)]


def test_a_second_row_of_names_is_noticed(tmp_path: Path) -> None:
    text = "pay,place\nEUR,region\n10,north\n20,south\n30,east\n"
    with pytest.raises(eq.EquipoiseError, match="names in two rows: say header_rows 2, or 1"):
        frame(tmp_path / "a.csv", text)
    assert frame(tmp_path / "a.csv", text, header_rows=1).height == 4
    assert frame(tmp_path / "a.csv", text, header_rows=2).columns == ["pay EUR", "place region"]


@pytest.mark.parametrize(
    "options",
    [{"header_rows": 0}, {"skip_rows": -1}, {"skip_rows": 99}, {"thousands": "x"}, {"thousands": ",", "decimal": ","},
     {"missing_codes": [None]}],
)  # fmt: skip
def test_wrong_options_are_refused(tmp_path: Path, options: dict[str, object]) -> None:
    with pytest.raises(eq.EquipoiseError):
        frame(tmp_path / "a.csv", EUROPEAN, **options)


def test_the_first_policy_keeps_how_the_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = "\n".join(f"{place},{'mf'[place % 2]},{place % 5 * 1000},{-9 if place % 7 else 3}" for place in range(200))
    Path("a.csv").write_text(f"A title,,,\nid,sex,pay,kids\n{lines}\n", encoding="utf-8")
    words = ["a.csv", "--skip-rows", "1", "--header-rows", "1", "--missing-codes", "-9,unknown"]
    assert main(["init", *words, "--out", "p.toml"]) == 0
    text = Path("p.toml").read_text(encoding="utf-8")
    assert "skip_rows = 1" in text
    assert 'missing_codes = ["-9", "unknown"]' in text
    assert main(["check", "p.toml"]) == 0


def test_a_dash_among_numbers_is_not_missing(tmp_path: Path) -> None:
    assert frame(tmp_path / "a.csv", "n,m\n1,1\n-,2\n3,3\n")["n"].to_list() == ["1", "-", "3"]
