"""SAS transport files, byte by byte: the special missing values (.A to .Z and ._), which the library that reads and
writes the rest leaves out. A missing number is one byte, '.' or its letter, and seven zeros."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

LINE, HEAD = 80, 1 << 22
NAMES, ROWS = (b"HEADER RECORD*******NAMESTR", b"HEADER RECORD*******NAMSTV8"), b"HEADER RECORD*******OBS"
COUNTED = b"HEADER RECORD*******OBSV8   HEADER RECORD!!!!!!!"
ENTRY = 140
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"


@dataclass(frozen=True)
class Layout:
    """Where the records begin, how long each is, and (place, width) of the numbers in it by column."""

    start: int
    length: int
    numbers: dict[int, tuple[int, int]]

    @classmethod
    def of(cls, path: Path) -> "Layout | None":
        """The layout a file tells; None where it does not."""
        with path.open("rb") as file:
            head = file.read(HEAD)
        names, rows = max(head.find(name) for name in NAMES), head.find(ROWS)
        if names < 0 or rows < names:
            return None
        count = head[names + 48 : names + 58].strip()
        first = names + LINE
        if not count.isdigit() or first + int(count) * ENTRY > rows:
            return None
        entries = [head[first + i * ENTRY : first + (i + 1) * ENTRY] for i in range(int(count))]
        places = [(_number(e[0:2]), _number(e[84:88]), _number(e[4:6])) for e in entries]
        numbers = {i: (place, width) for i, (kind, place, width) in enumerate(places) if kind == 1}
        return cls(rows + LINE, sum(width for _, _, width in places), numbers)

    def records(self, path: Path, height: int, *, write: bool = False) -> np.memmap:
        return np.memmap(path, np.uint8, "r+" if write else "r", self.start, (height, self.length))


def promised(path: Path) -> int:
    """The number of records a file of version 8 names, 0 where it does not."""
    with path.open("rb") as file:
        _, found, rest = file.read(HEAD).partition(COUNTED)
    said = rest[:15].strip()
    return int(said) if found and said.isdigit() else 0


def special(path: Path, columns: list[str], height: int) -> pl.DataFrame | None:
    """The letter of each special missing value, a column for each that has some."""
    layout = Layout.of(path)
    if layout is None or not height or path.stat().st_size < layout.start + height * layout.length:
        return None
    records, found = layout.records(path, height), {}
    for column, (place, width) in layout.numbers.items():
        first = records[:, place]
        there = np.isin(first, list(LETTERS.encode())) & ~records[:, place + 1 : place + width].any(axis=1)
        if there.any():
            letters = np.where(there, first, ord(" ")).astype(np.uint8).view("S1").astype(str)
            found[columns[column]] = pl.Series(letters).replace("", None).replace(" ", None)
    return pl.DataFrame(found) if found else None


def put_special(path: Path, codes: dict[int, pl.Series]) -> None:
    """Give the missing numbers of some columns their letters."""
    layout = Layout.of(path)
    for column, letters in codes.items():
        if layout is None or column not in layout.numbers:
            continue
        known = letters.is_not_null().to_numpy()
        records = layout.records(path, len(letters), write=True)
        place = layout.numbers[column][0]
        records[known, place] = np.frombuffer("".join(letters.drop_nulls()).encode(), np.uint8)
        records.flush()


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)
