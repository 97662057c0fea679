"""Excel: in, recoded, released, and back; and the sheets that are refused."""

from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import equipoise as eq
from equipoise import files

fastexcel = pytest.importorskip("fastexcel", reason="Excel was not tried: fastexcel is missing.")
xlsxwriter = pytest.importorskip("xlsxwriter", reason="Excel was not tried: xlsxwriter is missing.")


def sheet(path: Path, *rows: list[Any], name: str = "Ark1", merge: tuple[int, ...] = ()) -> Path:
    with xlsxwriter.Workbook(path) as book:
        page = book.add_worksheet(name)
        for place, row in enumerate(rows):
            page.write_row(place, 0, row)
        if merge:
            page.merge_range(*merge, "Husholdning")
    return path


@pytest.fixture
def table() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "person": range(1, 41),
            "code": [f"00{i % 3}" for i in range(40)],
            "age": [None if i % 8 == 0 else 20 + i for i in range(40)],
            "town": [["Ål", "=1+1", "http://bø.no", None][i % 4] for i in range(40)],
            "note": ["é" * 3000] * 40,
            "visit": [None if i % 5 == 0 else date(2020, 1, 1 + i % 28) for i in range(40)],
            "seen": [datetime(2024, 2, 29, 23, 59, 58)] * 40,
            "hour": [time(1, 2, 3)] * 40,
            "owner": [[True, False, None][i % 3] for i in range(40)],
            "share": [i / 7 for i in range(40)],
        }
    )


def test_in_and_out(tmp_path: Path, table: pl.DataFrame) -> None:
    """Types come back; texts are never formulas; checked with the reading library."""
    files.save(table.lazy(), tmp_path / "in.xlsx", "xlsx")
    roles = eq.Roles(["code", "age"], id="person", hierarchies={"age": eq.Hierarchy.intervals(10)})
    records = eq.read(tmp_path / "in.xlsx", roles)
    assert_frame_equal(records.collect(), table)
    policy = eq.Policy({}, allow=("note", "town", "visit", "seen"))
    done = eq.protect(records, [eq.masks.Recode("age", 1)], tmp_path / "out", policy=policy, keep_order=True)
    found = fastexcel.read_excel(done.public / "data.xlsx").load_sheet("data").to_polars()
    ages = [None if a is None else f"{a // 10 * 10}-{a // 10 * 10 + 9}" for a in table["age"]]
    assert found["age"].to_list() == ages
    same = ["code", "town", "note", "owner", "share"]
    assert_frame_equal(found.select(same), table.select(same))
    assert found["visit"].cast(pl.Date).to_list() == table["visit"].to_list()
    assert found["seen"].cast(pl.Datetime("us")).to_list() == table["seen"].to_list()


def test_large_numbers_are_not_rounded(tmp_path: Path) -> None:
    files.save(pl.LazyFrame({"big": [2**60, 1], "x": [float("nan"), 1.0]}), tmp_path / "a.xlsx", "xlsx")
    assert eq.read(tmp_path / "a.xlsx").collect().rows() == [(str(2**60), None), ("1", 1)]


def test_sheets_by_name(tmp_path: Path) -> None:
    with xlsxwriter.Workbook(tmp_path / "a.xlsx") as book:
        for name in ("first", "second"):
            page = book.add_worksheet(name)
            page.write_row(0, 0, ["x"])
            page.write_row(1, 0, [name])
    assert eq.read(tmp_path / "a.xlsx").collect().item() == "first"
    assert eq.read(tmp_path / "a.xlsx", sheet="second").collect().item() == "second"
    with pytest.raises(eq.ParameterError, match=r"No sheet 'secnd' .* Did you mean 'second'"):
        eq.read(tmp_path / "a.xlsx", sheet="secnd")


@pytest.mark.parametrize(
    ("rows", "merge", "said"),
    [
        ([[], ["id", "sex", "canary"], [1, "m", 3]], (0, 0, 0, 2), "no name over column 2: cells are merged"),
        ([["a", "b"], ["id", "canary"], [1, 2], [3, 4]], (), "names in two rows"),
        ([["a", None], [1, "canary"]], (), "no name over column 2"),
        ([["a", "b", "a"], [1, 2, "canary"]], (), r"a column name twice \(columns 1 and 3\)"),
        ([["a", "canary"]], (), "no records"),
        ([], (), "is empty"),
    ],
)  # fmt: skip
def test_sheets_that_are_refused(tmp_path: Path, rows: list[Any], merge: tuple[int, ...], said: str) -> None:
    with pytest.raises(eq.DataError, match=said) as caught:
        eq.read(sheet(tmp_path / "a.xlsx", *rows, merge=merge))
    assert "canary" not in str(caught.value)


def test_numbered_names_are_fine(tmp_path: Path) -> None:
    found = eq.read(sheet(tmp_path / "a.xlsx", ["a", "a_1", "b_x"], [1, 2, 3])).collect()
    assert found.columns == ["a", "a_1", "b_x"]


def test_what_does_not_fit_a_sheet(tmp_path: Path) -> None:
    with pytest.raises(eq.DataError, match="do not fit an Excel sheet"):
        files.save(pl.LazyFrame({"x": range(1_048_576)}), tmp_path / "a.xlsx", "xlsx")
    assert not (tmp_path / "a.xlsx").exists()


def test_missing_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sheet(tmp_path / "a.xlsx", ["a"], [1])
    for package in ("fastexcel", "xlsxwriter"):
        monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(eq.MissingExtraError, match=r"'fastexcel'.* pip install .equipoise\[files\]"):
        eq.read(tmp_path / "a.xlsx")
    with pytest.raises(eq.MissingExtraError, match=r"'xlsxwriter'.* pip install .equipoise\[files\]"):
        files.save(pl.LazyFrame({"x": [1]}), tmp_path / "b.xlsx", "xlsx")


def test_a_policy_names_the_sheet(tmp_path: Path) -> None:
    from equipoise.policies.policy_file import Job

    sheet(tmp_path / "a.xlsx", ["x"], [1], [2], name="Ark 2")
    text = '[data]\npath = "a.xlsx"\nsheet = "{}"\n[roles]\nkeys = ["x"]\n[limits]\nuniques = "<= 1"\n'
    (tmp_path / "policy.toml").write_text(text.format("Ark 2"), encoding="utf-8")
    assert Job.load(tmp_path / "policy.toml").read().height() == 2
    (tmp_path / "policy.toml").write_text(text.format("Ark 3"), encoding="utf-8")
    with pytest.raises(eq.ParameterError, match="No sheet 'Ark 3'"):
        Job.load(tmp_path / "policy.toml").read()


def test_empty_rows_are_no_records(tmp_path: Path) -> None:
    sheet(tmp_path / "a.xlsx", ["a", "b"], [1, "x"], [None, None], [2, None], [None, None])
    assert eq.read(tmp_path / "a.xlsx").collect().rows() == [(1, "x"), (2, None)]


def test_a_far_cell_is_refused_before_the_sheet_unfolds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, the reader made a place for every cell up to the last one in use, and the process aborted."""
    xlsxwriter = pytest.importorskip("xlsxwriter")
    with xlsxwriter.Workbook(tmp_path / "far.xlsx") as book:
        sheet = book.add_worksheet()
        for row, column, value in ((0, 0, "age"), (1, 0, 3), (1_048_575, 16_383, "x")):
            sheet.write(row, column, value)
    monkeypatch.setattr("equipoise.files.memory.available", lambda: 500_000_000_000)
    with pytest.raises(eq.DataError, match="1,048,576 rows x 16,384 columns in use"):
        eq.read(tmp_path / "far.xlsx")


def test_empty_columns_before_a_far_cell_are_not_listed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The engine says a line for each column without cells; a sheet may have 16,384."""
    far = sheet(tmp_path / "far.xlsx", ["age", "sex"], [3, "f"], [*[None] * 60, "x"])
    with pytest.raises(eq.DataError, match="no name over column 3"):
        files.read(far)
    assert capfd.readouterr().err == ""
