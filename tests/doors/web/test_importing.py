"""Import: how a file is read is said on the page, seen in a preview, and kept in the policy."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

HARD = "A title;;\n;Income;\nid;2023;2024\n" + "".join(f"{i};{i}.234,5;-9\n" for i in range(1, 90))
SAID = {"name": "hard.csv", "skip_rows": "1", "header_rows": "2", "missing_codes": "-9, unknown"}


@pytest.fixture
def hard(workbench: Any) -> Any:
    (workbench.folder / "hard.csv").write_text(HARD, encoding="utf-8")
    return workbench


def test_the_form_has_the_fields_of_the_format(hard: Any) -> None:
    shown = hard.get("/import", params={"name": "hard.csv"}).text
    assert "Between fields" in shown
    assert "Rows with names" in shown
    assert "Sheet" not in shown


def test_the_preview_changes_with_what_is_said(hard: Any) -> None:
    wrong = hard.post("/import/preview", {"name": "hard.csv"}).text
    right = hard.post("/import/preview", SAID).text
    assert "Income 2024" not in wrong
    assert "89 records, 3 columns" in right
    assert "Income 2023" in right
    assert "1234.5" not in right
    assert "1234.5" in hard.post("/import/preview", {**SAID, "values": "1"}).text


def test_a_file_that_cannot_be_read_so_is_said_in_the_preview(hard: Any) -> None:
    answer = hard.post("/import/preview", {**SAID, "skip_rows": "99"})
    assert answer.status_code == 200
    assert "no records below" in answer.text


def test_the_file_is_opened_as_said_and_the_policy_keeps_it(hard: Any) -> None:
    assert hard.post("/import/open", SAID).headers["HX-Redirect"] == "/"
    kept = {"path": "hard.csv", "skip_rows": 1, "header_rows": 2, "missing_codes": ["-9", "unknown"]}
    assert hard.policy["data"] == kept
    assert "89 records, 3 columns" in hard.get("/").text
    assert 'value="-9, unknown"' in hard.get("/import", params={"name": "hard.csv"}).text


def test_an_upload_can_be_said_how_to_read(workbench: Any) -> None:
    answer = workbench.post("/import/upload", files={"file": ("up.csv", HARD.encode())})
    assert "How uploads/up.csv is read" in answer.text
    assert not workbench.office.opened


@pytest.mark.parametrize(
    "wrong", [{"skip_rows": "x"}, {"header_rows": "0"}, {"metadata": "../m.rda"}, {"name": "/etc"}]
)
def test_wrong_words_are_one_sentence(hard: Any, wrong: dict[str, str]) -> None:
    assert hard.post("/import/open", {**SAID, **wrong}).status_code == 422
    assert not hard.office.opened


def database(place: Path) -> None:
    with sqlite3.connect(place) as connection:
        connection.execute("CREATE TABLE people (sex TEXT, age INT)")
        connection.executemany("INSERT INTO people VALUES (?, ?)", [("fm"[i % 2], 20 + i % 40) for i in range(200)])
    connection.close()


def test_the_answer_of_a_query_is_opened(workbench: Any) -> None:
    database(workbench.folder / "r.sqlite")
    assert workbench.post("/import/query", {"database": "r.sqlite", "sql": "SELECT * FROM people"}).status_code == 200
    assert workbench.policy["data"]["path"] == "uploads/query.parquet"
    assert (workbench.folder / "uploads" / "query.parquet").stat().st_mode & 0o077 == 0
    assert "200 records, 2 columns" in workbench.get("/").text


def test_the_preview_of_a_query_changes_with_it(workbench: Any) -> None:
    database(workbench.folder / "r.sqlite")

    def shown(sql: str, **more: str) -> str:
        answer = workbench.post("/import/query/preview", {"database": "r.sqlite", "sql": sql, **more})
        assert answer.status_code == 200
        return str(answer.text)

    assert "200 records, 2 columns" in shown("SELECT * FROM people")
    few = shown("SELECT age FROM people WHERE age < 30")
    assert "50 records, 1 column." in few
    assert "<td>20</td>" not in few
    assert "<td>20</td>" in shown("SELECT age FROM people", values="1")
    assert 'class="notice"' in shown("SELECT nothing FROM nowhere")
    assert shown(" ") == ""
    assert not workbench.office.opened


def test_a_query_reads_no_other_file(workbench: Any) -> None:
    duckdb = pytest.importorskip("duckdb")
    outside = workbench.folder.parent / "secret.csv"
    outside.write_text("a,b\n1,2\n", encoding="utf-8")
    with duckdb.connect(str(workbench.folder / "r.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a, 2 AS b")
    for sql in (f"SELECT * FROM '{outside}'", f"SELECT * FROM read_csv('{outside}')", "DROP TABLE t"):
        asked = {"database": "r.duckdb", "sql": sql}
        assert workbench.post("/import/query", asked).status_code == 422
        assert 'class="notice"' in workbench.post("/import/query/preview", asked).text
    assert not workbench.office.opened
    assert workbench.post("/import/query", {"database": "r.duckdb", "sql": "SELECT * FROM t"}).status_code == 200
