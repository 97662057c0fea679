"""How a file is read: what can be said of its format, and its first records read that way."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from equipoise.data.records import Records
from equipoise.doors.web.memory import Memory, Policy
from equipoise.doors.web.work.open_file import PREVIEW_RECORDS, column_kind
from equipoise.files import KNOWN, format_of, query, read
from equipoise.files.excel import sheet_names
from equipoise.ground import system
from equipoise.ground.errors import ParameterError
from equipoise.ground.whole_files import staged_file

OPTIONS = {
    "delimiter": "Between fields",
    "decimal": "Decimal mark",
    "thousands": "Between thousands",
    "encoding": "Encoding",
    "sheet": "Sheet",
    "skip_rows": "Rows above the names",
    "header_rows": "Rows with names",
    "missing_codes": "Codes that mean missing, between commas",
    "metadata": "Metadata file (.rda)",
}
"""What can be said of a file, in the words of the page."""
NUMBERS = ("skip_rows", "header_rows")
MARKS = {
    ",": "comma ,",
    ";": "semicolon ;",
    "\t": "tab",
    "|": "bar |",
    ".": "point .",
    " ": "blank",
    "'": "apostrophe '",
}
CHOICES = {
    "delimiter": (",", ";", "\t", "|"),
    "decimal": (".", ","),
    "thousands": (".", ",", " ", "'"),
    "encoding": ("utf-8", "cp1252", "iso-8859-2", "cp1250", "cp1251", "utf-16", "shift_jis", "gb18030"),
}
"""Values to choose from; the first choice on the page is always what is found in the file."""


def fields(memory: Memory, folder: Path, policy: Policy) -> list[dict[str, Any]]:
    """The fields of the form for this format, with their values so far."""
    data = policy["data"]
    path = folder / str(data["path"])
    valid = (*KNOWN[format_of(path)].options, "missing_codes")
    choices: dict[str, tuple[str, ...]] = dict(CHOICES)
    if "sheet" in valid:
        choices["sheet"] = tuple(sheet_names(path))
    return [
        {
            "name": name,
            "words": words,
            "whole": name in NUMBERS,
            "value": _text_of(data.get(name, "")),
            "choices": [(value, MARKS.get(value, value)) for value in choices.get(name, ())],
        }
        for name, words in OPTIONS.items()
        if name in valid
    ]


def look(memory: Memory, folder: Path, policy: Policy, values: bool) -> dict[str, Any]:
    """The columns as read, with their types, and the first records if they are asked for."""
    return _facts(_read(folder, policy["data"]), values)


def look_at_answer(memory: Memory, folder: Path, policy: Policy, sql: str, values: bool) -> dict[str, Any]:
    """The same for the answer of a query on a database of the folder."""
    return _facts(read(_answer(folder, policy, sql)), values)


def _facts(records: Records, values: bool) -> dict[str, Any]:
    table = records.frame.head(PREVIEW_RECORDS).lazy().collect("polars").to_native()
    columns = [{"name": name, "type": column_kind(dtype)} for name, dtype in records.schema().items()]
    rows = [["" if value is None else str(value)[:80] for value in row] for row in table.rows()] if values else []
    return {"records": records.height(), "columns": columns, "rows": rows}


def answer(memory: Memory, folder: Path, policy: Policy, sql: str, place: Path) -> None:
    """Write the answer of a query on a database of the folder as a Parquet file; it reads no other file."""
    frame = _answer(folder, policy, sql)
    with staged_file(place) as stage:
        system.write(stage, "", private=True)
        frame.write_parquet(stage)


def _answer(folder: Path, policy: Policy, sql: str) -> pl.DataFrame:
    rows = query(sql, folder / str(policy["data"]["path"]), apart=True)
    return rows if isinstance(rows, pl.DataFrame) else rows.pl()


def options_of(form: Mapping[str, str]) -> dict[str, Any]:
    """The options of a form that say something, as in a policy."""
    options: dict[str, Any] = {}
    for name in OPTIONS:
        text = str(form.get(name, ""))
        if name in NUMBERS and text.strip():
            if not text.strip().isdecimal():
                raise ParameterError(f"{OPTIONS[name]} must be a whole number.")
            options[name] = int(text)
        elif name == "missing_codes" and text.strip():
            options[name] = [code.strip() for code in text.split(",") if code.strip()]
        elif text:
            options[name] = text
    return options


def _read(folder: Path, data: Mapping[str, Any]) -> Records:
    options = {name: value for name, value in data.items() if name != "path"}
    if "metadata" in options:
        options["metadata"] = folder / options["metadata"]
    return read(folder / str(data["path"]), **options)


def _text_of(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
