"""Cells need at least `k` people of the population."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl

from equipoise.data.cells import Cells, count
from equipoise.data.missing_keys import alike
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.files import read
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError, ParameterError, RolesError, shown
from equipoise.ground.packed_keys import Cube, code, group
from equipoise.methods.parameters import check_fields
from equipoise.methods.protection_levels import Together, refuse_uncounted
from equipoise.methods.sensitive_values import Merging


@dataclass(frozen=True, slots=True)
class KMap(Together):
    """A cell is unsafe when it holds records, but fewer than `k` people of the population are like them (k-map).

    F < k, F being the people of the `population` (a file or records with the keys, original values) in the cell, or the
    sum of its weights without one; where records are more than people, the records. `coarsen` ("age=10") names levels
    for keys of both before they are compared: cells whose coarser class has too few people are flagged. People with a
    value that no record has are left out: F is then too small, on the safe side. Coarsening: a class that holds a safe
    one is safe, for F of merged classes is the sum of theirs.

    Source: Sweeney (2002), *k-anonymity: a model for protecting privacy*, k-map; El Emam and Dankar (2008).
    Misleads when an intruder's register is not the population, and when he knows who is in the file: then MinCount.
    Cost: O(cells + people).

    >>> people = Records.of(pl.DataFrame({"age": [30] * 4 + [31] * 8}), Roles())
    >>> cells = Cells.of(pl.DataFrame({"age": [30, 31], "n": [2, 1]}))
    >>> KMap(5, people).flag(cells).to_list(), KMap(2).flag(cells).to_list()
    ([True, False], [False, True])
    """

    merging: ClassVar[Merging] = "any"
    k: int = 5
    population: str | Path | Records | None = None
    coarsen: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self, k=1)
        if isinstance(self.population, Path):
            object.__setattr__(self, "population", str(self.population))
        if wrong := [text for text in self.coarsen if not all(text.rpartition("="))]:
            raise ParameterError(f"coarsen names keys and levels, like 'age=10', got {shown(wrong[0])}.")

    def flag(self, cells: Cells) -> pl.Series:
        refuse_uncounted(cells)
        size = np.maximum(self._people(cells), np.minimum(cells.n, cells.alike[0]))
        return pl.Series("unsafe", (cells.n > 0) & (size < self.k))

    def explain(self, cell: Mapping[str, Any]) -> str:
        return "It depends on the population: flag a table to know."

    def register(self, cells: Cells) -> pl.DataFrame:
        """The population by the keys of the cells, `__eq_people` in each row; only values that the cells have."""
        if self.population is None:
            return _people(cells, cells.total)
        source = self.population if isinstance(self.population, Records) else read(self.population, Roles())
        for key in cells.by:
            if key not in source.schema():
                raise RolesError(f"The population has no column {key!r}: it must have every key of the file.")
        people = count(source, cells.by)
        return _placed(_people(people, people.n), cells)

    def _people(self, cells: Cells) -> Floats:
        if self.population is None and not self.coarsen:
            return cells.alike[1]
        register = self.register(cells)
        rows = pl.concat([cells.keys, register.select(cells.by)])
        coded = [code(self._coarse(cells, rows[key])) for key in cells.by]
        people = np.concatenate([np.zeros(len(cells)), register["__eq_people"].to_numpy()])
        places = [cells.by.index(key) for key in cells.open if key in cells.by]
        return self.people_alike([c.values for c in coded], [c.codes for c in coded], people, places)[: len(cells)]

    @staticmethod
    def people_alike(
        axes: Sequence[pl.Series], codes: Sequence[Integers], people: Floats, open: Sequence[int]
    ) -> Floats:
        """For each row the people of all rows that match it; on the `open` axes a missing value matches any."""
        ids, first = group(codes, [len(values) for values in axes])
        total = np.bincount(ids, people).astype(np.float64, copy=False)
        cube = Cube(tuple(axes), tuple(c[first] for c in codes), np.ones(len(first), np.int64), total)
        return alike(cube, open)[1][ids]

    def _coarse(self, cells: Cells, values: pl.Series) -> pl.Series:
        chosen = {key: level for key, _, level in (text.rpartition("=") for text in self.coarsen)}
        level = chosen.get(values.name)
        return values if level is None else cells.hierarchy(values.name).level(level).label(values)


def _people(cells: Cells, people: Integers | Floats) -> pl.DataFrame:
    return cells.keys.with_columns(__eq_people=pl.Series(people, dtype=pl.Float64))


def _placed(people: pl.DataFrame, cells: Cells) -> pl.DataFrame:
    """People whose value of every key some record has."""
    for key in cells.by:
        values, gaps = cells.values(key), people[key].is_null()
        people = people.with_columns(pl.col(key).cast(values.dtype, strict=False))
        present = people[key].is_in(values.drop_nulls().implode()).fill_null(False)
        people = people.filter(present | (gaps if values.null_count() else False))
        if not people.height:
            raise DataError(
                f"No value of the key {key!r} is in the population: k_map compares original values; a coarsened file "
                "is measured by risk.Journalist."
            )
    return people
