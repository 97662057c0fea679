"""ARX projects (.deid): the data, the types of its attributes as roles, and its hierarchies with their bounds.

Identifying attributes are direct, quasi-identifying ones keys. Its privacy models and its output are not read.
"""

import csv
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import polars as pl

from equipoise.data.hierarchy import Hierarchy
from equipoise.data.roles import Roles
from equipoise.files.compressed import part
from equipoise.files.format import Format, Loaded, Signature
from equipoise.ground.errors import DataError, ParameterError

DATA, DEFINITION, PROJECT = "data/input.csv", "input/definition.xml", "project.xml"
ROLES = {"QUASI": "keys", "INSENSITIVE": "", "SENSITIVE": "sensitive", "IDENTIFYING": "direct"}
"""Beginnings of the types of attributes, and the roles they are."""


def load(path: Path) -> Loaded:
    """Read the input of a project; attributes that it calls insensitive have no role."""
    try:
        with zipfile.ZipFile(path) as archive:
            missing = {DATA, DEFINITION} - set(archive.namelist())
            if missing:
                raise DataError(f"{str(path)!r} is no ARX project with data: it has no {sorted(missing)[0]} inside.")
            mark = _separator(archive, path)
            attributes = list(_entries(archive, path))
            trees = {entry["name"]: tree for entry in attributes if (tree := _tree(archive, path, entry, mark))}
            data = _table(part(archive, DATA, path), mark, path)
    except (zipfile.BadZipFile, ElementTree.ParseError, NotImplementedError, RuntimeError):
        raise DataError(f"{str(path)!r} is not a whole ARX project: it is damaged, encrypted or cut off.") from None
    columns: dict[str, list[str]] = {"keys": [], "sensitive": [], "direct": []}
    for entry in attributes:
        role = next((role for begin, role in ROLES.items() if entry.get("type", "").upper().startswith(begin)), "")
        if role:
            columns[role].append(entry["name"])
    keys, sensitive, direct = (tuple(columns[role]) for role in ("keys", "sensitive", "direct"))
    return Loaded(data, roles=Roles(keys, sensitive, direct=direct, hierarchies=trees))


def _table(data: bytes, mark: str, path: Path) -> pl.DataFrame:
    """The records: whole numbers and decimals where all values of a column are; codes with leading zeros stay text."""
    try:
        table = pl.read_csv(data, separator=mark, infer_schema=False, null_values=["", "NULL"])
    except Exception:
        raise DataError(f"The data in {str(path)!r} cannot be split by the separator that the project names.") from None
    return table.select(_typed(column) for column in table.iter_columns())


def _typed(texts: pl.Series) -> pl.Series:
    if texts.str.contains(r"^0\d").any():
        return texts
    numbers = (texts.cast(kind, strict=False) for kind in (pl.Int64, pl.Float64))
    return next((column for column in numbers if column.null_count() == texts.null_count() < len(texts)), texts)


def _separator(archive: zipfile.ZipFile, path: Path) -> str:
    """The character between fields; a semicolon where the project does not say it."""
    mark = _xml(archive, PROJECT, path).findtext("separator") if PROJECT in archive.namelist() else None
    return mark if mark and len(mark) == 1 else ";"


def _entries(archive: zipfile.ZipFile, path: Path) -> Iterator[dict[str, str]]:
    """The fields of each attribute: name, type, ref of its hierarchy, min and max level."""
    for entry in _xml(archive, DEFINITION, path):
        fields = {child.tag: child.text or "" for child in entry}
        if fields.get("name"):
            yield fields


def _tree(archive: zipfile.ZipFile, path: Path, entry: dict[str, str], mark: str) -> Hierarchy | None:
    """The hierarchy of an attribute, its levels between those that may be used."""
    inside = f"input/{entry.get('ref', '')}"
    if inside not in archive.namelist():
        return None
    text = part(archive, inside, path).decode("utf-8", errors="replace")
    rows = [tuple(row) for row in csv.reader(io.StringIO(text), delimiter=mark) if row]
    low, high = (int(entry[end]) if entry.get(end, "").isdecimal() else None for end in ("min", "max"))
    rows = [row[: high + 1] for row in rows] if high else rows
    try:
        return Hierarchy.mapping(rows, floor=low or None) if rows and len(rows[0]) > 1 else None
    except ParameterError as error:
        raise DataError(f"The hierarchy of {entry['name']!r} in {str(path)!r} cannot be used: {error}") from None


def _xml(archive: zipfile.ZipFile, name: str, path: Path) -> ElementTree.Element:
    text = part(archive, name, path)
    if b"<!DOCTYPE" in text or b"<!ENTITY" in text:
        raise DataError(f"{str(path)!r} is not an ARX project: it declares a document type.")
    return ElementTree.fromstring(text)


FORMATS = (
    Format(
        name="deid",
        title="ARX project",
        suffixes=(".deid",),
        load=load,
        signatures=(Signature(b"metadata.xml", "an ARX project", (".deid",), offset=30),),
        becomes="csv",
    ),
)
