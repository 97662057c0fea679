"""One suite that every listed file format goes through: each column type comes back, or one sentence refuses it."""

import importlib
import pkgutil
import re
import sys
import tomllib
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_series_equal

import equipoise as eq
from equipoise import files
from equipoise.files.column_types import STORABLE, kind
from equipoise.files.format import HEAD_BYTES, Format

ROOT = Path(__file__).parents[2]
CANARY = "Quetzalcoatlus"
COLUMN = "contents"
MOMENTS = [datetime(2024, 1, 2, 3, 4, 5, 678_000), datetime(1950, 2, 3), None, datetime(2000, 12, 31, 23, 59, 59)]
SPANS = [timedelta(days=1, seconds=5), timedelta(0), None, timedelta(milliseconds=-3)]
ABSTRACT = {"DataType", "BaseExtension", "Extension", "Unknown", "Utf8"}
"""Names among Polars' types that no column of ours has."""


def numbers(dtype: Any) -> pl.Series:
    return pl.Series([1, 100, None, 7], dtype=dtype)


def moments(unit: Any, zone: str | None = None) -> pl.Series:
    return pl.Series(MOMENTS, dtype=pl.Datetime(unit)).dt.replace_time_zone(zone)


EXAMPLES: dict[str, pl.Series] = {
    "Boolean": pl.Series([True, False, None, True]),
    **{t.__name__: numbers(t) for t in (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Int128)},
    **{t.__name__: numbers(t) for t in (pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.UInt128)},
    **{t.__name__: pl.Series([1.5, -100.25, None, 7], dtype=t) for t in (pl.Float16, pl.Float32, pl.Float64)},
    "Decimal": pl.Series([Decimal("1.50"), Decimal("-22.25"), None, Decimal("3.00")], dtype=pl.Decimal(10, 2)),
    "String": pl.Series([CANARY, 'Ål, "B"; c', None, "x"]),
    "Categorical": pl.Series([CANARY, "b", None, "b"], dtype=pl.Categorical),
    "Enum": pl.Series([CANARY, "b", None, "b"], dtype=pl.Enum(["b", CANARY])),
    "Date": pl.Series([date(2024, 1, 2), date(1950, 2, 3), None, date(2000, 12, 31)]),
    **{f"Datetime {unit}": moments(unit) for unit in ("ms", "us", "ns")},
    **{f"Datetime {unit} with zone": moments(unit, "Europe/Oslo") for unit in ("ms", "us", "ns")},
    **{f"Duration {unit}": pl.Series(SPANS, dtype=pl.Duration(unit)) for unit in ("ms", "us", "ns")},  # type: ignore[arg-type]
    "Time": pl.Series([time(1, 2, 3), time(0), None, time(23, 59, 59, 250_000)]),
    "Binary": pl.Series([CANARY.encode(), b"\x00\xff", None, b""]),
    "List": pl.Series([[1, 2], [], None, [3]], dtype=pl.List(pl.Int64)),
    "List of Enum": pl.Series([[CANARY], [], None, ["b"]], dtype=pl.List(pl.Enum(["b", CANARY]))),
    "Array": pl.Series([[1, 2], [3, 4], None, [5, None]], dtype=pl.Array(pl.Int64, 2)),
    "Struct": pl.Series(
        [{"a": 1, "b": CANARY}, {"a": None, "b": "y"}, None, {"a": 2, "b": None}],
        dtype=pl.Struct({"a": pl.Int64, "b": pl.String}),
    ),
    "Null": pl.Series([None] * 4, dtype=pl.Null),
    "Object": pl.Series([CANARY, object(), None, 3], dtype=pl.Object),
}
if hasattr(pl, "Map"):
    EXAMPLES["Map"] = pl.Series([{"a": 1}, {}, None, {CANARY: 2}], dtype=pl.Map(pl.String, pl.Int64))

EXTREMES: dict[str, pl.Series] = {
    "Int64": pl.Series([2**63 - 1, -(2**63), None], dtype=pl.Int64),
    "UInt64": pl.Series([2**64 - 1, 0, None], dtype=pl.UInt64),
    "Int128": pl.Series([2**100, -(2**100), None], dtype=pl.Int128),
    "Decimal": pl.Series([Decimal("12345678901234567890.123"), None], dtype=pl.Decimal(38, 3)),
    "Date": pl.Series([date(1, 1, 1), date(9999, 12, 31), None]),
    "Datetime": pl.Series([datetime(1, 1, 1), datetime(9999, 12, 31), None], dtype=pl.Datetime("us")),
    "Datetime of a list": pl.Series([[datetime(1, 1, 1)], None], dtype=pl.List(pl.Datetime("us"))),
    "Float64": pl.Series([1.7e308, 5e-324, -0.1, None]),
}

READERS = pytest.mark.parametrize("format", files.KNOWN.values(), ids=list(files.KNOWN))
WRITERS = pytest.mark.parametrize("format", files.FORMATS.values(), ids=list(files.FORMATS))
TYPES = pytest.mark.parametrize("values", EXAMPLES.values(), ids=list(EXAMPLES))


def table_of(values: pl.Series) -> pl.DataFrame:
    """A column between two others, which must come back whatever it is."""
    count = len(values)
    return pl.DataFrame(
        [
            pl.Series("place", range(1, count + 1), dtype=pl.Int64),
            values.alias(COLUMN),
            pl.Series("last", [0.5] * count),
        ]
    )


def written(table: pl.DataFrame, folder: Path, format: Format) -> Path:
    path = folder / f"data.{format.name}"
    try:
        files.save(table.lazy(), path, format.name)
    except eq.MissingExtraError:
        pytest.skip(f".{format.name} was not tried: the extra {format.extra!r} is not installed.")
    return path


def read_back(path: Path) -> pl.DataFrame:
    return eq.read(path).collect()


def sentence(attempt: Callable[[], Any]) -> str:
    """The one sentence an attempt must be refused with."""
    message = refusal_of(attempt)
    assert message is not None, "not refused"
    return message


def refusal_of(attempt: Callable[[], Any]) -> str | None:
    """The one sentence an attempt is refused with, without a traceback of others and without data; None if it works."""
    try:
        attempt()
    except eq.EquipoiseError as error:
        refusal = error
    else:
        return None
    message = str(refusal)
    assert refusal.__suppress_context__ or refusal.__context__ is None
    assert message.endswith(".")
    assert not re.search(r"[.!] [A-Z]", message), message
    assert "\n" not in message
    assert CANARY not in message
    return message


def assert_same_values(found: pl.Series, values: pl.Series, format: Format) -> None:
    """Equal as what the format gives back, times at its resolution."""
    expected = values
    if found.dtype != values.dtype:
        expected = as_read(values, found.dtype)
    if isinstance(found.dtype, pl.Datetime) and format.resolution != "1ns":
        found, expected = (one.dt.round(format.resolution) for one in (found, expected))
    assert_series_equal(found, expected, check_names=False, check_exact=False)


def as_read(values: pl.Series, dtype: pl.DataType) -> pl.Series:
    """Values in the type that a reader gave them."""
    if dtype == pl.String and values.dtype.is_temporal():
        return pl.Series([value and as_moment(str(value)) for value in values], dtype=pl.String)
    return values.cast(dtype)


def as_moment(text: str) -> str:
    """A date, a time or a date-time written in one of the ways ISO 8601 allows, in one way."""
    for parse in (date.fromisoformat, time.fromisoformat, datetime.fromisoformat):
        try:
            moment = parse(re.sub(r"(\.\d{6})\d+", r"\1", text))
        except ValueError:
            continue
        aware = isinstance(moment, datetime) and moment.tzinfo
        return str(moment.astimezone(UTC) if aware else moment)  # type: ignore[union-attr]
    raise AssertionError(text)


def comparable(found: pl.Series, values: pl.Series) -> pl.Series:
    """What was read, with moments in text written in one way."""
    if found.dtype == pl.String and values.dtype.is_temporal():
        return pl.Series([text and as_moment(text) for text in found], dtype=pl.String)
    return found


# --- what a format declares ---------------------------------------------------------------------------------------


def test_every_module_with_formats_is_listed() -> None:
    """A new file in the package is forgotten nowhere: it is in MODULES, and all else asks that."""
    modules = [importlib.import_module(f"equipoise.files.{m.name}") for m in pkgutil.iter_modules(files.__path__)]
    assert {m.__name__ for m in modules if hasattr(m, "FORMATS")} == {m.__name__ for m in files.MODULES}
    declared = [format for module in files.MODULES for format in module.FORMATS]
    assert all(isinstance(format, Format) for format in declared)
    assert [format.name for format in declared] == list(files.KNOWN)
    assert files.FORMATS.keys() == {format.name for format in declared if format.save}
    assert "orc" in files.FORMATS


def test_every_type_of_polars_has_an_example() -> None:
    """A type that Polars gains shows up here."""
    names = {n for n in dir(pl) if isinstance(t := getattr(pl, n), type) and issubclass(t, pl.DataType)} - ABSTRACT
    assert names == {type(values.dtype).__name__ for values in EXAMPLES.values()}
    assert {kind(values.dtype) for values in EXAMPLES.values()} - {"Map"} == {*STORABLE, "Object"} - {"Map"}


@READERS
def test_a_format_says_all_about_itself(format: Format) -> None:
    assert format.title
    assert all(suffix.startswith(".") and suffix == suffix.lower() for suffix in format.suffixes)
    assert f".{format.name}" in format.suffixes
    assert files.format_of(f"x.{format.name}") == format.name
    assert set(format.types) | set(format.types.values()) <= set(STORABLE)
    assert bool(format.types) == bool(format.save)
    assert bool(format.becomes) == (format.save is None)
    assert files.becomes(format.name) in files.FORMATS
    module = importlib.import_module(format.load.__module__)
    assert format.title.split()[-1] in (module.__doc__ or "") or format.suffixes[0] in (module.__doc__ or "")


@READERS
def test_the_extra_of_a_format_is_installable(format: Format) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert format.extra is None or format.extra in extras


@WRITERS
def test_without_its_extra_one_sentence_names_it(
    format: Format, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(table_of(EXAMPLES["Int64"]), tmp_path, format)
    for package in ("pyarrow", "pyarrow.orc", "duckdb", "pyreadstat", "fastexcel", "xlsxwriter"):
        monkeypatch.setitem(sys.modules, package, None)
    if format.extra is None:
        files.save(pl.LazyFrame({COLUMN: [1]}), tmp_path / f"b.{format.name}", format.name)
        assert read_back(path).height == 4
        return
    for attempt in (
        lambda: files.load(path),
        lambda: files.save(pl.LazyFrame({COLUMN: [1]}), tmp_path / "x", format.name),
    ):
        with pytest.raises(eq.MissingExtraError, match=rf"equipoise\[{format.extra}\]"):
            attempt()
    assert not (tmp_path / "x").exists()


# --- round -------------------------------------------------------------------------------------------------------


def assert_round_or_refused(values: pl.Series, folder: Path, format: Format, *, typed: bool = True) -> None:
    """The contract: same values, in the type that the format declares, or one sentence with column and type."""
    table = table_of(values)
    if not format.holds(values.dtype):
        message = sentence(lambda: written(table, folder, format))
        assert repr(COLUMN) in message
        assert kind(values.dtype) in message
        assert list(folder.iterdir()) == []
        return
    back = read_back(written(table, folder, format))
    assert back.columns == table.columns
    assert back["place"].to_list() == table["place"].to_list()
    if typed:
        assert kind(back[COLUMN].dtype) == format.types[kind(values.dtype)]
    assert_same_values(comparable(back[COLUMN], values), values, format)


@WRITERS
@TYPES
def test_a_type_comes_back_or_is_refused(format: Format, values: pl.Series, tmp_path: Path) -> None:
    assert_round_or_refused(values, tmp_path, format)


def all_types(format: Format) -> pl.DataFrame:
    """A table with a column of each type that a format holds."""
    return pl.DataFrame([v.alias(f"column_{i}") for i, v in enumerate(EXAMPLES.values()) if format.holds(v.dtype)])


@WRITERS
def test_one_record_comes_back(format: Format, tmp_path: Path) -> None:
    """Whole numbers may be read as narrower than a column of fractions: the value counts."""
    table = all_types(format).head(1)
    back = read_back(written(table, tmp_path, format))
    for values in table.get_columns():
        assert_same_values(comparable(back[values.name], values), values, format)


@WRITERS
def test_columns_without_values_come_back(format: Format, tmp_path: Path) -> None:
    """Formats without types know none for such a column: nulls are nulls."""
    table = all_types(format)
    empty = table.clear(3).with_columns(pl.Series("place", [1, 2, 3]))
    back = read_back(written(empty, tmp_path, format))
    assert back.columns == empty.columns
    assert back["place"].to_list() == [1, 2, 3]
    assert {back[name].null_count() for name in table.columns} == {3}


@WRITERS
def test_a_table_without_records_is_written_and_refused_by_name(format: Format, tmp_path: Path) -> None:
    """There is nothing to protect in it, so reading refuses it in every format."""
    message = sentence(lambda: eq.read(written(all_types(format).clear(), tmp_path, format)))
    assert "no records" in message or "empty" in message


@WRITERS
@pytest.mark.parametrize("values", EXTREMES.values(), ids=list(EXTREMES))
def test_extreme_values_come_back_or_are_refused(format: Format, values: pl.Series, tmp_path: Path) -> None:
    """No number is rounded and no moment moved without a word: a text holds it, or the writer refuses it."""
    refusal = refusal_of(lambda: written(table_of(values), tmp_path, format))
    if refusal is not None:
        assert repr(COLUMN) in refusal
        assert kind(values.dtype) in refusal
        assert list(tmp_path.iterdir()) == []
        return
    back = read_back(tmp_path / f"data.{format.name}")[COLUMN]
    if back.dtype == pl.String and values.dtype.is_numeric():
        assert back.to_list() == [None if value is None else str(value) for value in values]
    else:
        assert_same_values(comparable(back, values), values, format)


# --- recognised and refused ---------------------------------------------------------------------------------------


@WRITERS
def test_a_file_is_recognised_under_another_name(format: Format, tmp_path: Path) -> None:
    """By the signature that the format declares; plain text has none."""
    path = written(table_of(EXAMPLES["String"]), tmp_path, format)
    head = path.read_bytes()[:HEAD_BYTES]
    if not any(sign.begins(head) for sign in format.signatures):
        assert path.read_text(encoding="utf-8").count("\n") >= 4, "neither a signature nor text"
        return
    for other in files.KNOWN.values():
        if {f".{format.name}", f".{other.name}"} <= {s for sign in format.signatures for s in sign.suffixes}:
            continue
        wrong = tmp_path / f"wrong.{other.name}"
        wrong.write_bytes(path.read_bytes())
        if wrong.suffix not in format.suffixes:
            assert "though its name ends in" in sentence(lambda wrong=wrong: eq.read(wrong))


@READERS
def test_signatures_are_its_own(format: Format) -> None:
    """What begins like a file of one format is not taken for another one."""
    for sign in format.signatures:
        assert set(sign.suffixes) & {Path(f"x{suffix}").suffix for suffix in format.suffixes}
        assert len(sign.head) > 1


@WRITERS
@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.9, 0.999])
def test_a_truncated_file_is_refused(format: Format, share: float, tmp_path: Path) -> None:
    """In one sentence; a text that ends early may be a shorter table."""
    table = pl.DataFrame({"name": [CANARY] * 2000, "place": range(2000), "share": [i / 7 for i in range(2000)]})
    path = written(table, tmp_path, format)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    refusal = refusal_of(lambda: read_back(path))
    assert refusal is not None or not any(sign.begins(content) for sign in format.signatures)


@READERS
@pytest.mark.parametrize("content", [b"", CANARY.encode() * 99, b"\x00" * 2000, b"PK\x03\x04" + CANARY.encode()])
def test_other_content_is_refused(format: Format, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"data.{format.name}"
    path.write_bytes(content)
    sentence(lambda: read_back(path))
    assert list(tmp_path.iterdir()) == [path]


# --- written whole, or not at all --------------------------------------------------------------------------------


@WRITERS
def test_nothing_is_overwritten_unless_asked(format: Format, tmp_path: Path) -> None:
    path = written(table_of(EXAMPLES["Int64"]), tmp_path, format)
    before = path.read_bytes()
    assert "overwrite" in sentence(lambda: written(table_of(EXAMPLES["Date"]), tmp_path, format))
    assert path.read_bytes() == before
    files.save(pl.LazyFrame({"other": [1, 2]}), path, format.name, overwrite=True)
    assert read_back(path).columns == ["other"]


@pytest.fixture
def breaking() -> pl.LazyFrame:
    """A frame whose plan fails after it began."""

    def fail(batch: pl.DataFrame) -> pl.DataFrame:
        raise RuntimeError(CANARY)

    return pl.LazyFrame({COLUMN: [1, 2]}).map_batches(fail, schema={COLUMN: pl.Int64})


@WRITERS
def test_a_file_is_written_whole_or_not_at_all(format: Format, breaking: pl.LazyFrame, tmp_path: Path) -> None:
    path = written(table_of(EXAMPLES["Int64"]), tmp_path, format)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(eq.DataError, match=r"^Could not (read|write) the "):
        files.save(breaking, path, format.name, overwrite=True)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


@WRITERS
def test_a_folder_that_is_not_there_is_named(format: Format, tmp_path: Path) -> None:
    message = sentence(lambda: files.save(pl.LazyFrame({"x": [1]}), tmp_path / "no" / f"x.{format.name}", format.name))
    assert "No folder" in message


# --- listed everywhere -------------------------------------------------------------------------------------------


@READERS
def test_the_upload_filter_lets_it_in(format: Format) -> None:
    """A browser looks at the last part of a name only."""
    from equipoise.doors.web.render import templates

    endings = {Path(f"x{suffix}").suffix for suffix in format.suffixes}
    assert (endings <= set(files.upload_suffixes())) == format.alone
    choose = (ROOT / "src/equipoise/doors/web/templates/choose.html").read_text(encoding="utf-8")
    assert 'accept="{{ UPLOADS }}"' in choose
    assert str(templates().globals["UPLOADS"]).split(",") == list(files.upload_suffixes())


@WRITERS
def test_the_command_line_and_policies_name_it(format: Format) -> None:
    from equipoise.doors.cli.command import command

    options = [p for p in command().commands["protect"].params if "--format" in p.opts]
    assert format.name in str(options[0].help)  # type: ignore[attr-defined]


@READERS
def test_the_documentation_lists_it(format: Format) -> None:
    """The page of formats is made from the list, types included."""
    page = documentation()["reference/formats.md"]
    row = next(line for line in page.splitlines() if line.startswith(f"| `{format.name}` |"))
    assert all(f"`{suffix}`" in row for suffix in format.suffixes)
    if format.save:
        head = next(line for line in page.splitlines() if line.startswith("| type |"))
        assert f" `{format.name}` |" in head


def documentation() -> dict[str, str]:
    sys.path.insert(0, str(ROOT / "tools" / "docs"))
    try:
        return importlib.import_module("doors").pages()  # type: ignore[no-any-return]
    finally:
        sys.path.pop(0)
