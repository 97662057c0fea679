"""Bad files of every format: spoilt bytes, odd contents, wrong names, and spoilt hierarchies and metadata."""

import io
import random
import shutil
import zipfile
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from pathlib import Path

import polars as pl

from torture.attempt import CANARY, Attempt
from torture.good import CHEAP, COMMANDS, lay_out, shelf, table
from torture.odd import spoilt_bytes

ENCODINGS = ("utf-16", "utf-16-le", "utf-32", "cp1252", "utf-7", "utf-8-sig", "cp037", "shift_jis")


def attempt(rng: random.Random, place: Path, folder: Path) -> Attempt:
    """One file made bad in one way, and a verb that reads it."""
    how = rng.choice(
        (_bytes, _bytes, _bytes, _bytes, _ending, _text, _text, _content, _content, _content, _zip, _hierarchy, _named)
    )
    key = rng.choice(KEYS) if how is _named else "sex"
    name, words = _named(rng, folder, key) if how is _named else how(rng, shelf(place), folder)
    verb = rng.choice(CHEAP)
    args = [name if arg == "data.csv" else arg for arg in COMMANDS[verb]]
    args = [",".join(key if part == "sex" else part for part in arg.split(",")) for arg in args]
    if how is _hierarchy:
        args = ["protect", "data.csv", "--keys", "region,sex", "--direct", "note", "--id", "id", "--hierarchy", name]
        args += ["--mask", "recode:region,1", "--out", "out"]
    elif verb == "protect" and rng.random() < 0.5:
        args += [
            "--format",
            rng.choice(("csv", "parquet", "arrow", "orc", "xlsx", "sav", "dta", "xpt", "asc", "sqlite")),
        ]
    return Attempt(f"{words}: {' '.join(args)}", args, writes=("out",))


KEYS = ("a\nb", "\x1b[2Jx", "x" * 70_000, "a\tb", "'sex'", 'a"b', "é" * 200, "1", "nan", "null", "[bold]x[/bold]", "{{7*7}}", "<b>x</b>",
        "%s", "\u202exes", "a/b", "..", "*", "^.*$", "col:1", "a=b", "a|b", "x,y", "len", "literal", "count", "index", "age ", " sex")  # fmt: skip
"""Names of a key that the command line names too."""


def _named(rng: random.Random, folder: Path, key: str) -> tuple[str, str]:
    """A good file whose key has an odd name."""
    frame, name = table().rename({"sex": key}), rng.choice(("data.csv", "data.parquet"))
    frame.write_csv(folder / name) if name == "data.csv" else frame.write_parquet(folder / name)
    return name, f"key {key[:20]!r} in {name}"


def _bytes(rng: random.Random, good: Path, folder: Path) -> tuple[str, str]:
    files = sorted(path for path in good.iterdir() if path.name.startswith(("data.", "people.")) and path.is_file())
    source = rng.choice(files)
    lay_out(good, folder, *(f.name for f in files if f.stem == source.stem and f.suffix in (".asc", ".rda", ".hst")))
    content, words = spoilt_bytes(source.read_bytes(), rng)
    (folder / source.name).write_bytes(content)
    name = {"data.rda": "data.asc", "data.hst": "data.asc"}.get(source.name, source.name)
    return name, f"{source.name} {words}"


def _ending(rng: random.Random, good: Path, folder: Path) -> tuple[str, str]:
    files = sorted(path for path in good.iterdir() if path.name.startswith("data.") and path.is_file())
    source, other = rng.sample(files, 2)
    name = rng.choice((other.name, "data" + other.suffix.upper(), "data", "data.", source.name + ".txt"))
    shutil.copy(source, folder / name)
    return name, f"{source.name} named {name}"


def _text(rng: random.Random, good: Path, folder: Path) -> tuple[str, str]:
    text = (good / "data.csv").read_text("utf-8")
    header, *rows = text.splitlines()
    row = rng.randrange(5, len(rows))
    fields = rows[row].split(",")
    kind = rng.choice(("encoding", "field", "header", "ragged", "quotes", "short", "ends", "delimiter"))
    words = kind
    content = text.encode()
    if kind == "encoding":
        words = rng.choice(ENCODINGS)
        content = text.replace("north", "nørth").encode(words, errors="replace")
    elif kind == "field":
        value = rng.choice(("9" * 25, "-" + "9" * 400, "1e999", "99999-99-99", "0000-00-00", "NaN", "=1+1", '"', "'", "\x00",
                            "\x1b[2J", "1,5", "x" * 200_000, "é" * 5000, "1 000", "0x1F", "٣", "\ufeff"))  # fmt: skip
        fields[rng.randrange(len(fields))] = value
        words += f" {value[:20]!r}"
        rows[row] = ",".join(fields)
        content = "\n".join([header, *rows]).encode()
    elif kind == "header":
        names = header.split(",")
        name = rng.choice(
            (
                "",
                " ",
                "age",
                "AGE",
                "sex",
                "x" * 10_000,
                "a,b",
                '"',
                "__eq_new",
                "n",
                "total",
                "\x00",
                "é",
                "risk",
                "=x",
            )
        )
        names[rng.randrange(len(names))] = name
        words += f" {name[:20]!r}"
        content = "\n".join([",".join(names), *rows]).encode()
    elif kind == "ragged":
        rows[row] = rng.choice((rows[row] + ",1", ",".join(fields[:3]), "", ",,,,,,,,,,,,,,,"))
        content = "\n".join([header, *rows]).encode()
    elif kind == "quotes":
        rows[row] = rng.choice(('"' + rows[row], rows[row] + '"', '""' + rows[row], '"a""b",' + rows[row]))
        content = "\n".join([header, *rows]).encode()
    elif kind == "short":
        content = rng.choice((b"", b"\n", header.encode(), header.encode() + b"\n", b"\xef\xbb\xbf", b"age", f"{header}\n{rows[0]}".encode(),
                              b"age\n1\n", b",\n,\n", b"\xff\xfe", b"age,sex\n" + b",\n" * 50, b'"age","sex"\n' + b'"",""\n' * 9))  # fmt: skip
    elif kind == "ends":
        content = text.replace("\n", rng.choice(("\r", "\r\n", "\n\r", "\n\n", "\x0b", "\u2028"))).encode()
    else:
        content = text.replace(",", rng.choice((";", "\t", "|", " ", ":", "~", "a", ",,"))).encode()
    (folder / "data.csv").write_bytes(content)
    return "data.csv", f"text {words}"


CONTENTS: dict[str, Callable[[random.Random], pl.DataFrame]] = {
    "no records": lambda _: table(0),
    "one record": lambda _: table(1),
    "two records": lambda _: table(2),
    "all null": lambda _: table().with_columns(pl.lit(None).alias("age"), pl.lit(None).alias("sex")),
    "null column": lambda rng: table().with_columns(pl.lit(None, pl.Null).alias(rng.choice(table().columns))),
    "nulls of its type": lambda rng: table().with_columns(pl.when(False).then(pl.col(c := rng.choice(table().columns))).alias(c)),
    "one value": lambda rng: table().with_columns(pl.lit(rng.choice(("a", "", CANARY))).alias(rng.choice(("sex", "region")))),
    "many columns": lambda _: table().with_columns(*(pl.lit(i).alias(f"c{i}") for i in range(10_000))),
    "many categories": lambda _: table(30_000).with_columns(region=pl.int_range(pl.len()).cast(pl.String)),
    "long names": lambda rng: table().rename({rng.choice(table().columns): "x" * rng.choice((300, 20_000))}),
    "odd name": lambda rng: table().rename({rng.choice(table().columns): rng.choice(
        ("", " ", "a\x00b", "\n", "=x", "__eq_new", "n", "total", "é" * 50, "age ", "../x", "<script>", "{x}", "index", "\u202ex"))}),
    "odd type": lambda rng: table().with_columns(rng.choice(TYPES)().alias(rng.choice(("age", "sex", "salary", "note", "more")))),
    "odd numbers": lambda rng: table().with_columns(pl.Series("salary", [rng.choice(NUMBERS) for _ in range(60)], strict=False)),
    "one far number": lambda rng: table().with_columns(
        pl.when(pl.col("id") == 4).then(rng.choice((1e308, -1e308))).otherwise(pl.col(c := rng.choice(("age", "salary", "w")))).alias(c)),
    "huge integers": lambda rng: table().with_columns((pl.col("id") + rng.choice((2**62, 2**53, -(2**62)))).alias(rng.choice(("age", "id", "hh")))),
    "repeated ids": lambda _: table().with_columns(id=pl.lit(1)),
    "negative weights": lambda rng: table().with_columns(w=pl.lit(rng.choice((-1.0, 0.0, float("inf"), float("nan"), 1e308)))),
}  # fmt: skip
NUMBERS = (float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 5e-324, 0.0, -0.0, None)
TYPES: tuple[Callable[[], pl.Expr], ...] = (
    lambda: pl.concat_list(pl.col("age"), pl.col("hh")),
    lambda: pl.struct("age", "note"),
    lambda: pl.col("note").cast(pl.Binary),
    lambda: pl.lit(timedelta(days=5)),
    lambda: pl.lit(time(1, 2)),
    lambda: pl.lit(datetime(9999, 12, 31)),
    lambda: pl.lit(date(1, 1, 1)),
    lambda: pl.lit(2**31 - 1, pl.Int32).cast(pl.Date),
    lambda: pl.lit(-(10**17)).cast(pl.Datetime("ms")),
    lambda: pl.lit(datetime(2000, 1, 1)).dt.replace_time_zone("Asia/Tokyo"),
    lambda: pl.col("id").cast(pl.Int128) * 10**30,
    lambda: pl.col("id").cast(pl.UInt64) + 2**63,
    lambda: pl.col("salary").cast(pl.Decimal(30, 10)),
    lambda: pl.col("note").cast(pl.Categorical),
    lambda: pl.col("region").cast(pl.Enum(["north", "south", "east", CANARY])),
    lambda: pl.col("age") > 30,
    lambda: pl.col("id").cast(pl.Int8),
    lambda: pl.lit(None),
)


def _content(rng: random.Random, good: Path, folder: Path) -> tuple[str, str]:
    """An odd table in a format that takes it, written by its own library."""
    kind = rng.choice(tuple(CONTENTS))
    if kind in ("many columns", "many categories") and rng.random() < 0.7:
        kind = rng.choice(("odd type", "odd name"))
    frame, format = CONTENTS[kind](rng), rng.choice(("parquet", "arrow", "csv", "xlsx", "sav", "dta", "xpt", "sqlite"))
    path = folder / f"data.{format}"
    try:
        _write(frame, path, format)
    except (Exception, pl.exceptions.PanicException):
        path.unlink(missing_ok=True)
        path = folder / "data.parquet"
        frame.write_parquet(path)
    return path.name, f"{kind} in {path.name}"


def _write(frame: pl.DataFrame, path: Path, format: str) -> None:
    import pyreadstat

    from equipoise import files

    if format == "arrow":
        frame.write_ipc(path)
    elif format == "parquet":
        frame.write_parquet(path)
    elif format == "csv":
        frame.write_csv(path)
    elif format == "sav":
        pyreadstat.write_sav(frame, path, variable_format={"salary": "DATE11", "age": "TIME8"})
    elif format == "dta":
        pyreadstat.write_dta(frame, path, variable_format={"salary": "%td", "age": "%tc"})
    elif format == "xpt":
        pyreadstat.write_xport(frame, path, variable_format={"salary": "DATE9.", "age": "DATETIME18."})
    else:
        files.save(frame.lazy(), path, format)


def _zip(rng: random.Random, good: Path, folder: Path) -> tuple[str, str]:
    """An archive or a workbook with something odd in its directory."""
    text = (good / "data.csv").read_bytes()
    kind = rng.choice(
        ("two", "none", "version", "method", "sizes", "names", "folder", "bomb", "workbook", "sheet", "nested", "far")
    )
    name = "data.xlsx" if kind in ("workbook", "sheet", "far") else "data.zip"
    if kind == "far":
        return _far_cell(rng, folder / name)
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        if kind == "workbook":
            archive.writestr("xl/workbook.xml", b"<x/>")
        elif kind == "nested":
            archive.write(good / "data.zip", "data.zip")
        elif kind != "none":
            inner = {
                "names": rng.choice(("../../x.csv", "/x.csv", "a" * 300 + ".csv", "\u202e.csv")),
                "folder": "data/data.csv",
            }
            archive.writestr(
                inner.get(kind, "data.csv"), text if kind != "bomb" else b"age,sex\n" + b"0,0\n" * 3_000_000
            )
        if kind == "two":
            archive.writestr("more.csv", text)
    content = bytearray((good / "data.xlsx").read_bytes() if kind == "sheet" else raw.getvalue())
    directory = content.find(b"PK\x01\x02")
    spots = {"version": (4, 6), "method": (10, 10), "sizes": (20, 24), "sheet": (4, 6, 10, 20, 24, 28, 42)}.get(
        kind, ()
    )
    if spots and directory >= 0:
        content[directory + rng.choice(spots)] = rng.choice((0, 1, 9, 14, 63, 99, 255))
    (folder / name).write_bytes(content)
    return name, f"zip {kind}"


def _far_cell(rng: random.Random, path: Path) -> tuple[str, str]:
    """A sheet with a cell far from the others."""
    import xlsxwriter

    row, column = rng.choice(((1_048_575, 16_383), (1_048_575, 8), (9, 16_383), (200_000, 16_000)))
    with xlsxwriter.Workbook(path) as book:
        table().drop("joined").write_excel(book, "data")
        book.get_worksheet_by_name("data").write(row, column, CANARY)
    return path.name, f"a cell at {row}, {column}"


def _hierarchy(rng: random.Random, good: Path, folder: Path) -> tuple[str, str]:
    lay_out(good, folder, "data.csv")
    source = rng.choice(("region.csv", "region.hrc", "data.xlsx", "data.parquet", "data.rds"))
    content = (good / source).read_bytes()
    content, words = spoilt_bytes(content, rng) if source.startswith("region") else (content, "whole")
    kind = rng.choice(("csv", "hrc"))
    (folder / f"tree.{kind}").write_bytes(content)
    return f"region={kind}:tree.{kind}", f"hierarchy {source} {words}"
