"""SAS transport files, byte by byte: the special missing values (.A to .Z and ._), which the library that reads and
writes the rest leaves out. A missing number is one byte, '.' or its letter, and seven zeros."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

LINE_BYTES, HEAD_BYTES = 80, 1 << 22
NAMES_HEADERS, RECORDS_HEADER = (
    (b"HEADER RECORD*******NAMESTR", b"HEADER RECORD*******NAMSTV8"),
    b"HEADER RECORD*******OBS",
)
COUNT_HEADER = b"HEADER RECORD*******OBSV8   HEADER RECORD!!!!!!!"
NAME_ENTRY_BYTES = 140
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"


@dataclass(frozen=True)
class Layout:
    """Where the records begin, how long each is, and (place, width) of the numbers in it by column."""

    start: int
    length: int
    numbers: dict[int, tuple[int, int]]

    @classmethod
    def of(cls, path: Path) -> "Layout | None":
        """The layout of a file, from its header; None where the header does not give it."""
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        names, rows = max(head.find(name) for name in NAMES_HEADERS), head.find(RECORDS_HEADER)
        if names < 0 or rows < names:
            return None
        count = head[names + 48 : names + 58].strip()
        first = names + LINE_BYTES
        if not count.isdigit() or first + int(count) * NAME_ENTRY_BYTES > rows:
            return None
        entries = [head[first + i * NAME_ENTRY_BYTES : first + (i + 1) * NAME_ENTRY_BYTES] for i in range(int(count))]
        places = [(_number(e[0:2]), _number(e[84:88]), _number(e[4:6])) for e in entries]
        numbers = {i: (place, width) for i, (kind, place, width) in enumerate(places) if kind == 1}
        return cls(rows + LINE_BYTES, sum(width for _, _, width in places), numbers)

    def records(self, path: Path, height: int, *, write: bool = False) -> np.memmap:
        return np.memmap(path, np.uint8, "r+" if write else "r", self.start, (height, self.length))


def record_count(path: Path) -> int:
    """The number of records in the header of a file of version 8, 0 where there is none."""
    with path.open("rb") as file:
        _, mark, rest = file.read(HEAD_BYTES).partition(COUNT_HEADER)
    digits = rest[:15].strip()
    return int(digits) if mark and digits.isdigit() else 0


def special_codes(path: Path, columns: list[str], height: int) -> pl.DataFrame | None:
    """The letter of each special missing value, a column for each that has some."""
    layout = Layout.of(path)
    if layout is None or not height or path.stat().st_size < layout.start + height * layout.length:
        return None
    records, codes = layout.records(path, height), {}
    for column, (place, width) in layout.numbers.items():
        first = records[:, place]
        flags = np.isin(first, list(LETTERS.encode())) & ~records[:, place + 1 : place + width].any(axis=1)
        if flags.any():
            letters = np.where(flags, first, ord(" ")).astype(np.uint8).view("S1").astype(str)
            codes[columns[column]] = pl.Series(letters).replace("", None).replace(" ", None)
    return pl.DataFrame(codes) if codes else None


def write_special_codes(path: Path, codes: dict[int, pl.Series]) -> None:
    """Write special missing values: the letters of missing numbers, by column."""
    layout = Layout.of(path)
    for column, letters in codes.items():
        if layout is None or column not in layout.numbers:
            continue
        flags = letters.is_not_null().to_numpy()
        records = layout.records(path, len(letters), write=True)
        place = layout.numbers[column][0]
        records[flags, place] = np.frombuffer("".join(letters.drop_nulls()).encode(), np.uint8)
        records.flush()


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)
