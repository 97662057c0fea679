"""Rows of keys packed into words, and the places in a table that they have without some of the keys."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from equipoise.ground.arrays import Integers
from equipoise.ground.packed_keys import CHUNK_RECORDS, SPREADING
from equipoise.masks._local_suppression.released_rows import ReleasedRows

Places = Callable[[slice, Integers], None]
"""Writes the places of at most `CHUNK_RECORDS` rows into an array."""


@dataclass(frozen=True, eq=False, repr=False)
class PackedRows:
    """Rows of cells, without the keys of `blanks`, as words.

    What is made on the way is written into the same arrays again and again: they stay in the processor's cache.
    """

    rows: ReleasedRows
    cells: Integers
    blanks: Integers | int
    words: list[Integers]

    @classmethod
    def of(cls, rows: ReleasedRows, cells: Integers) -> "PackedRows":
        """The rows of cells as they came."""
        return cls(rows, cells, 0, [word[cells] for word in rows.words])

    @classmethod
    def joined(cls, rows: ReleasedRows, parts: list[tuple[Integers, int]]) -> "PackedRows":
        """Rows of cells that lost the keys of a mask, part by part."""
        none = np.zeros(0, dtype=np.int64)
        cells = np.concatenate([none, *(cells for cells, _ in parts)])
        blanks = np.concatenate([none, *(np.full(len(cells), mask) for cells, mask in parts)])
        staying = np.array([none, *(rows.staying(mask) for _, mask in parts)][1:], dtype=np.int64)
        stay = np.repeat(staying, [len(cells) for cells, _ in parts], axis=0).T
        words = [word[cells] & bits for word, bits in zip(rows.words, stay, strict=True)] if parts else [none]
        return cls(rows, cells, blanks, words)

    def __len__(self) -> int:
        return len(self.cells)

    def __getitem__(self, places: Integers) -> "PackedRows":
        blanks = self.blanks if isinstance(self.blanks, int) else self.blanks[places]
        return PackedRows(self.rows, self.cells[places], blanks, [word[places] for word in self.words])

    def ids(self, mask: int, places: Integers | None = None) -> Integers:
        """Numbers of all rows, or of those at some places, without the keys of a mask: equal rows, equal numbers."""
        some = self if places is None else self[places] if self.rows.hashed else None
        if some is not None and self.rows.hashed:
            return self.rows.ids(some.cells, some.blanks | mask)
        ids = (self.words[0] if places is None else self.words[0][places]) & self.rows.staying(mask)[0]
        return ids.astype(np.int64, copy=False)

    def exact(self, mask: int) -> Places:
        """A place of its own for each row without the keys of a mask."""
        fields = self.rows.fields(mask)
        total, field = (np.empty(min(len(self), CHUNK_RECORDS), dtype=self.words[0].dtype) for _ in range(2))

        def fill(step: slice, places: Integers) -> None:
            words, total_, field_ = self.words[0][step], total[: len(places)], field[: len(places)]
            total_.fill(0)
            for shift, bits in fields:
                np.right_shift(words, shift, out=field_)
                np.bitwise_and(field_, bits, out=field_)
                np.bitwise_or(total_, field_, out=total_)
            places[:] = total_

        return fill

    def spread(self, mask: int, bits: int, turn: int = 0) -> Places:
        """A place in a table of 2^bits places, another one at each turn: equal rows, equal places."""
        staying, word_ = self.rows.staying(mask), np.empty(min(len(self), CHUNK_RECORDS), dtype=np.int64)

        def fill(step: slice, places: Integers) -> None:
            total = places.view(np.uint64)
            for number, (word, stay) in enumerate(zip(self.words, staying, strict=True)):
                target = word_[: len(places)] if number else places
                np.bitwise_and(word[step], stay, out=target)
                np.multiply(target.view(np.uint64), SPREADING[(turn + number) % 3], out=target.view(np.uint64))
                if number:
                    np.bitwise_xor(places, target, out=places)
            np.right_shift(total, np.uint64(64 - bits), out=total)

        return fill
