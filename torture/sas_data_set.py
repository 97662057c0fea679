"""A SAS data set, by the library inside pyreadstat, which writes them though its Python face does not say so."""

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TEXT, DOUBLE = 0, 5
Variable = tuple[str, str, str, int, Sequence[Any]]
"""Name, label, format, width (0 for numbers) and values: numbers, None, a letter for a special missing, or texts."""


def library() -> Any:
    """The library; None where this build of pyreadstat hides its writer."""
    import pyreadstat._readstat_writer as found

    loaded = ctypes.CDLL(found.__file__)
    if not hasattr(loaded, "readstat_begin_writing_sas7bdat"):
        return None
    for name in ("readstat_writer_init", "readstat_add_variable"):
        getattr(loaded, name).restype = ctypes.c_void_p
    return loaded


def write_data_set(path: Path, columns: Sequence[Variable], title: str) -> Path:
    """Write columns as a .sas7bdat file."""
    loaded, pointer = library(), ctypes.c_void_p
    sink = ctypes.CFUNCTYPE(ctypes.c_ssize_t, pointer, ctypes.c_size_t, pointer)
    with path.open("wb") as file:
        put = sink(lambda data, size, _: file.write(ctypes.string_at(data, size)))
        writer = pointer(loaded.readstat_writer_init())
        loaded.readstat_set_data_writer(writer, put)
        loaded.readstat_writer_set_file_label(writer, title.encode())
        loaded.readstat_writer_set_file_format_is_64bit(writer, 1)
        places = [_variable(loaded, writer, column) for column in columns]
        height = len(columns[0][4])
        assert loaded.readstat_begin_writing_sas7bdat(writer, None, ctypes.c_long(height)) == 0
        for row in range(height):
            assert loaded.readstat_begin_row(writer) == 0
            for place, (*_, width, values) in zip(places, columns, strict=True):
                assert _put(loaded, writer, place, width, values[row]) == 0
            assert loaded.readstat_end_row(writer) == 0
        assert loaded.readstat_end_writing(writer) == 0
    return path


def _variable(loaded: Any, writer: Any, column: Variable) -> Any:
    name, label, format, width, _ = column
    kind = TEXT if width else DOUBLE
    place = ctypes.c_void_p(loaded.readstat_add_variable(writer, name.encode(), kind, ctypes.c_size_t(width)))
    loaded.readstat_variable_set_label(place, label.encode())
    loaded.readstat_variable_set_format(place, format.encode())
    return place


def _put(loaded: Any, writer: Any, place: Any, width: int, value: Any) -> int:
    if width:
        return int(loaded.readstat_insert_string_value(writer, place, (value or "").encode()))
    if value is None:
        return int(loaded.readstat_insert_missing_value(writer, place))
    if isinstance(value, str):
        return int(loaded.readstat_insert_tagged_missing_value(writer, place, ctypes.c_char(value.encode())))
    return int(loaded.readstat_insert_double_value(writer, place, ctypes.c_double(value)))
