"""Candidates: the released records that do not contradict what is true of a person.

Who knows a person's true keys looks for the released records that may be theirs: those that agree with the truth, as
the release would show it, on every key that was not blanked. A value that was missing already is a value of its own:
only a blank made by a mask could be anything.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl

from equipoise.data.aligned_files import aligned, comparable, released_people
from equipoise.data.cells import Cells
from equipoise.data.missing_keys import alike
from equipoise.data.records import Records
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import EngineError
from equipoise.ground.packed_keys import Cube, code, group

NOBODY = Cube((), (), np.zeros(0, dtype=np.int64), np.zeros(0))


@dataclass(frozen=True, repr=False, eq=False)
class TrueCells(Cells):
    """People counted by their true keys; `alike` are the released records that may be theirs, not those of their cell.

    `released` has the released cells on the same axes, where the code 0 is a blank. People have no blanks.
    """

    released: Cube = NOBODY

    @cached_property
    def alike(self) -> tuple[Integers, Floats]:
        """The released records that do not contradict the people of each cell, and their weight.

        Cost: that of `missing_keys.alike` on the cells of both.
        """
        codes = tuple(np.concatenate(pair) for pair in zip(self.cube.codes, self.released.codes, strict=True))
        n, total = (
            np.concatenate([np.zeros(len(self)), part]) for part in (self.released.n, self.released.total)
        )  # fmt: skip
        both = Cube(self.cube.axes, codes, n.astype(np.int64), total)
        records, weight = alike(both, range(len(self.by)))
        return records[: len(self)], weight[: len(self)]

    def margin(self, by: tuple[str, ...]) -> "TrueCells":
        if by == self.by:
            return self
        places = [self.place(column) for column in by]
        return TrueCells(by, self.cube.keep(places), released=self.released.keep(places))


@dataclass(frozen=True, eq=False)
class Candidates:
    """The people of a release, and the cell of each, in the order of the ids or of the rows."""

    people: Cells
    places: Integers = field(repr=False)


def candidates(released: Records, original: Records, by: tuple[str, ...]) -> Candidates | None:
    """Candidates of everybody, where keys were recoded and blanked and nothing else was done to them.

    None for a file that nothing was done to, where rows of the two files are not known to be the same people, where
    people have several records, or where a key was changed at random: then the law of the mask says more than any
    count. O(records), then O(cells).
    """
    if released.roles.person or not released.history:
        return None
    original = released_people(released, original)
    try:
        new, old = aligned(released, original, by)
    except EngineError:
        return None
    columns = [column for name in by if (column := _codes(new[name], old[name])) is not None]
    if len(columns) < len(by):
        return None
    weight = released.roles.weight
    weights = aligned(released, original, (weight,))[0][weight].cast(pl.Float64).to_numpy() if weight else None
    axes = tuple(column.axis for column in columns)
    people, places = _cube(axes, [column.truth for column in columns], weights)
    return Candidates(TrueCells(by, people, released=_cube(axes, [c.release for c in columns], weights)[0]), places)


def agreeing(released: pl.DataFrame, original: pl.DataFrame) -> tuple[Integers, Integers]:
    """Whether each person's own record agrees with their true keys where it is not blank, and how many records do.

    For keys that were changed at random too: values agree where they are equal, the original in the release's terms.

    >>> released, original = pl.DataFrame({"k": ["a", None, "a"]}), pl.DataFrame({"k": ["a", "a", "b"]})
    >>> [column.tolist() for column in agreeing(released, original)]
    [[True, True, False], [3, 3, 1]]
    """
    columns = [_equal_values(released[name], original[name]) for name in released.columns]
    axes = tuple(column.axis for column in columns)
    people, places = _cube(axes, [column.truth for column in columns], None)
    cells = TrueCells(tuple(released.columns), people, released=_cube(axes, [c.release for c in columns], None)[0])
    own = np.all([(column.release == 0) | (column.release == column.truth) for column in columns], axis=0)
    return own, cells.alike[0][places]


@dataclass(frozen=True, eq=False, repr=False)
class _KeyColumn:
    """A key in both files on one axis: 0 is a blank, then the released values, then true values never released."""

    axis: pl.Series
    truth: Integers
    release: Integers


def _codes(new: pl.Series, old: pl.Series) -> _KeyColumn | None:
    """Codes of a key; None where a value was released in several ways, or a missing one was filled in."""
    shown, true = code(new), code(old)
    blank, empty = (shown.values.is_null().to_numpy()[shown.codes], true.values.is_null().to_numpy()[true.codes])
    if (empty & ~blank).any():
        return None
    label, kept = np.full(true.size, -1, dtype=np.int64), ~blank
    label[true.codes[kept]] = shown.codes[kept]
    if (label[true.codes[kept]] != shown.codes[kept]).any():
        return None
    never = np.flatnonzero(label < 0)
    label = label + 1
    label[never] = shown.size + 1 + np.arange(len(never))
    truth = label[true.codes]
    release = np.where(blank & ~empty, 0, np.where(empty, truth, shown.codes.astype(np.int64) + 1))
    texts = [shown.values.cast(pl.String), true.values.gather(never).cast(pl.String)]
    axis = pl.concat([pl.Series([None], dtype=pl.String), *(text.alias("").fill_null("") for text in texts)])
    return _KeyColumn(axis.alias(new.name), truth, release)


def _equal_values(new: pl.Series, old: pl.Series) -> _KeyColumn:
    """Codes of a key by its values; one that was missing already is the last."""
    (shown, true), _ = comparable(new.alias(""), old.alias(""))
    both = code(pl.concat([shown, true]))
    values = both.values.drop_nulls()
    codes = both.codes.astype(np.int64) + (0 if both.values.null_count() else 1)
    release, truth = codes[: len(new)], codes[len(new) :]
    empty, last = truth == 0, len(values) + 1
    axis = pl.concat([pl.Series([None], dtype=pl.String), values.cast(pl.String), pl.Series([""])])
    return _KeyColumn(
        axis.alias(new.name), np.where(empty, last, truth), np.where(empty & (release == 0), last, release)
    )


def _cube(axes: tuple[pl.Series, ...], codes: list[Integers], weights: Floats | None) -> tuple[Cube, Integers]:
    ids, first = group(codes, [len(axis) for axis in axes])
    n = np.bincount(ids)
    total: Floats = n.astype(np.float64) if weights is None else np.bincount(ids, weights).astype(np.float64)
    return Cube(axes, tuple(column[first] for column in codes), n, total), ids
