"""Linked tables as one system of cells: cells that hold the same records are one cell, and sums follow from inclusion.

The common refinement of all tables, the classes of records that every table treats alike (atoms), gives all relations:
a cell is the sum of its atoms, which nobody publishes and which are not negative where no value is. Up to `MAX_ATOMS`
they are cells of the system; beyond that it has the cells of equal sets and the sums that are found between pairs of
tables.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.cells import amount
from equipoise.data.tables.additivity import Additive
from equipoise.data.tables.cell_sets import KEY, Atoms, CellSets
from equipoise.data.tables.cell_status import structural
from equipoise.data.tables.contributors import Contributors
from equipoise.data.tables.label_sets import label_atoms
from equipoise.data.tables.possible_records import with_possible_records
from equipoise.data.tables.record_sets import members_of, numbered_units, with_owners
from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import additive, holds
from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.ground.errors import DataError, ParameterError

VALUE_TOLERANCE = 1e-6
"""Share by which the value of a shared cell may differ between two tables."""
ROUNDING = 1e-12
"""Share of the largest cell by which sums of the same numbers may differ."""
MAX_ATOMS = 20_000
"""Classes of records, beside the cells, up to which they are cells of the system."""


@dataclass(frozen=True, eq=False, repr=False)
class Union:
    """Linked tables, and the number of each of their cells among all; after those of cells come those of atoms.

    Two cells are one when they hold the same records with the same values (`record_sets`). Cells without records, and
    those of tables whose records are not known, are one when they have the same labels apart from totals: so the margin
    of a table by region and size over size is the cell of a table by region alone. `complete` says that all sums that
    follow are in the system; `ruled_out` are the cells that are empty in one table and so in all.
    """

    tables: tuple[Table, ...]
    places: tuple[Integers, ...]
    extra: Atoms | None = None
    complete: bool = True
    ruled_out: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    sets: CellSets | None = None

    @classmethod
    def of(
        cls, tables: Sequence[Table], atoms: int = MAX_ATOMS, *, unknown: Sequence[Booleans] | None = None
    ) -> "Union":
        """Refuses tables whose cells of the same labels differ in value where their records are not known.

        `unknown` marks the empty cells of each table that are not known to be empty: the suppressed ones unless given.
        """
        _refuse_other_relations(tables)
        unknown = [_hidden_zeros(table) for table in tables] if unknown is None else unknown
        sets = _sets(tables, unknown, atoms)
        names = [_names(table) for table in tables]
        places = _numbered(names, sets)
        union = cls(tuple(tables), places)
        if sets is not None:
            extra = sets.atoms(places, atoms)
            without = np.concatenate([places[i][sets.sums_of[i][2] == 0] for i in sets.linked])
            union = cls(union.tables, places, extra or sets.sums(places), extra is not None, np.unique(without), sets)
        union._refuse_different()
        return union if sets is not None or len(tables) == 1 else union._with_combinations(unknown)

    def _with_combinations(self, unknown: Sequence[Booleans]) -> "Union":
        """Tables matched by their labels with the combinations of these, where some finer table adds up to all."""
        extra = label_atoms(self.tables, self.places, unknown)
        union = replace(self, extra=extra, complete=extra is not None)
        try:
            _ = union.values
        except DataError:
            return replace(self, complete=False)
        return union

    @cached_property
    def table_cells(self) -> int:
        """How many cells the tables have together."""
        return 1 + max(int(place.max()) for place in self.places)

    @property
    def cells(self) -> int:
        return self.table_cells + (self.extra.count if self.extra else 0)

    @cached_property
    def atoms(self) -> Booleans:
        """Which cells of the system are in no table: nobody publishes them."""
        return np.arange(self.cells) >= self.table_cells

    @cached_property
    def additive(self) -> Additive:
        parts = [additive(table) for table in self.tables]
        if len(parts) == 1:
            return parts[0]
        own = Additive.linked(parts, self.places, self.cells)
        return own if self.extra is None else own.joined(self.extra.relations(self.cells))

    @cached_property
    def values(self) -> Floats:
        values: Floats = self.gathered([amount(table) for table in self.tables])
        return values if self.extra is None else self.extra.filled(values)

    def gathered(self, parts: Sequence[Any], how: Any = np.maximum, atoms: float = 0.0) -> Any:
        """One number for each cell from those of the tables, combined by `how`: the largest by default.

        The atoms have the number `atoms`, or are not marked; where cells have no lower end they have none either.
        """
        first = np.asarray(parts[0])
        atoms = -np.inf if any(np.isneginf(part).any() for part in parts) else atoms
        numbers = np.full(self.cells, np.nan if first.dtype.kind == "f" else False)
        for place, part in zip(self.places, parts, strict=True):
            earlier = numbers[place]
            unknown = np.isnan(earlier) if first.dtype.kind == "f" else ~earlier.astype(np.bool_)
            numbers[place] = np.where(unknown, part, how(earlier, part))
        if first.dtype.kind == "f":
            return np.where(self.atoms, atoms, numbers)
        return numbers.astype(np.bool_)

    def bounded(self, high: Floats) -> Floats:
        """What cells can be at most, with those that no record can be in."""
        high[self.ruled_out] = 0.0
        return high

    def _refuse_different(self) -> None:
        for place, table in zip(self.places, self.tables, strict=True):
            own, shared = amount(table), self.values[place]
            allowed = VALUE_TOLERANCE * np.abs(shared) + ROUNDING * np.abs(self.values).max(initial=0.0)
            wrong = int((np.abs(own - shared) > allowed).sum())
            if wrong:
                raise DataError(
                    f"{wrong:,} cells of the table by {', '.join(table.by)} have another value in another table: "
                    "linked tables must be made from the same records."
                )

    @property
    def by_labels(self) -> bool:
        """Whether there are tables whose records are not known, so that their cells are matched by labels."""
        return len(self.tables) > 1 and (self.sets is None or len(self.sets.linked) < len(self.tables))

    @cached_property
    def empty(self) -> Any:
        """Cells without records: known to be zero."""
        return self.gathered([table.n.astype(np.float64) for table in self.tables], atoms=1.0) == 0

    @cached_property
    def contributors(self) -> Contributors | None:
        """Who contributes what; None where not all records are known, or there are too many classes of them."""
        if self.sets is None or self.extra is None or self.extra.of_unit is None:
            return None
        if len(self.sets.linked) < len(self.tables):
            return None
        return Contributors.of(self.sets, self.places, self.extra.of_unit, self.cells)

    @cached_property
    def knowers(self) -> Integers:
        """For each cell the number of the contributor who is alone in it, -1 where there are several or none.

        By the code of the holding; without one, a record that is alone in a cell is the one alone in its margins. Who
        is alone in a cell knows its atoms, where these are classes of records: two people may each be alone in cells
        that a combination of labels is in.
        """
        if self.contributors is not None:
            return self.contributors.sole
        alone = self.gathered([table.numbers("contributors") for table in self.tables]) == 1
        relations = self.additive
        classes = self.extra is not None and self.sets is not None
        if self.extra is not None and classes:
            heads, parts = self.extra.pairs
            alone[parts[alone[heads] & self.atoms[parts]]] = True
        if all("holder" in table.more.columns for table in self.tables):
            codes = self.gathered([table.numbers("holder") for table in self.tables], atoms=-1.0)
            if classes:
                np.maximum.at(codes, parts[self.atoms[parts]], codes[heads[self.atoms[parts]]])
            return np.where(alone, codes, -1).astype(np.int64)
        return _same_person(relations, alone)


def _refuse_other_relations(tables: Sequence[Table]) -> None:
    """Refuse tables whose items of the same column make each other up in different ways."""
    items: dict[str, Any] = {}
    for axis in (axis for table in tables for axis in table.axes if axis.sign):
        relations = dict(zip(axis.nodes.to_list(), axis.sign or (), strict=True))
        if items.setdefault(axis.name, relations) != relations:
            raise ParameterError(f"Tables that are linked need the same relations between the items of {axis.name!r}.")


def _hidden_zeros(table: Table) -> Booleans:
    return (table.n == 0) & np.isnan(table.published_values) & ~structural(table)


def _sets(tables: Sequence[Table], unknown: Sequence[Booleans], most: int) -> CellSets | None:
    """The sets of the cells; None where there are no two tables whose records can be compared, nor one of holdings."""
    alone = len(tables) == 1
    members = members_of(tables) if not alone or "holder" in tables[0].more.columns else []
    if sum(one is not None for one in members) < (1 if alone else 2):
        return None
    inside = (None if one is None else holds(table) for one, table in zip(members, tables, strict=True))
    possible = with_possible_records(tables, numbered_units(tables, with_owners(members)), unknown, most)
    return CellSets(tuple(tables), tuple(possible), tuple(inside))


def _numbered(names: Sequence[pl.Series], sets: CellSets | None) -> tuple[Integers, ...]:
    """The number of each cell of each table: by its set of records, else by its labels."""
    if len(names) == 1:
        return (np.arange(len(names[0])),)
    places: dict[int, Integers] = {}
    known = pl.DataFrame(schema={"name": pl.String, "place": pl.Int64})
    if sets is not None:
        keys = {i: sets.keys(i, names[i]) for i in sets.linked}
        distinct = pl.concat(keys.values()).unique(maintain_order=True).with_row_index("place")
        for i, frame in keys.items():
            place = frame.join(distinct, on=KEY, how="left", maintain_order="left")["place"].cast(pl.Int64)
            places[i] = place.to_numpy()
            known = _known(known, names[i], places[i])
    for i in range(len(names)):
        if i not in places:
            places[i] = _by_name(names[i], known)
            known = _known(known, names[i], places[i])
    return tuple(places[i] for i in range(len(names)))


def _known(known: pl.DataFrame, names: pl.Series, places: Integers) -> pl.DataFrame:
    more = pl.DataFrame({"name": names, "place": places})
    return pl.concat([known, more]).unique("name", keep="first", maintain_order=True)


def _by_name(names: pl.Series, known: pl.DataFrame) -> Integers:
    """The numbers of cells with known labels, and new ones for the others."""
    rows = names.alias("name").to_frame().join(known, on="name", how="left", maintain_order="left")
    place = rows.select(pl.when(pl.col("place").is_first_distinct()).then("place"))["place"]
    start = 1 + int(known["place"].max() if known.height else -1)  # type: ignore[arg-type]
    fresh = place.is_null().to_numpy()
    numbers = place.fill_null(0).to_numpy().copy()
    numbers[fresh] = start + np.arange(int(fresh.sum()))
    return numbers


def _names(table: Table) -> pl.Series:
    """Identity of each cell across tables: its columns and labels without totals."""
    parts = []
    for axis in sorted(table.axes, key=lambda axis: axis.name):
        total = axis.nodes[axis.total]
        text = pl.concat_str(pl.lit(f"{axis.name}\x1f"), pl.col(axis.name), pl.lit("\x1e"))
        parts.append(pl.when(pl.col(axis.name) == total).then(pl.lit("")).otherwise(text))
    return table.table.select(pl.concat_str(parts).alias("name"))["name"]


def _same_person(relations: Additive, alone: Any) -> Integers:
    """Cells of one contributor, numbered alike where one is the margin of the other."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    terms = relations.matrix.tocoo()
    heads = relations.totals[terms.row]
    joined = alone[terms.col] & (heads >= 0) & alone[np.maximum(heads, 0)]
    graph = coo_array((np.ones(int(joined.sum())), (terms.col[joined], heads[joined])), shape=(len(alone), len(alone)))
    _, part = connected_components(graph, directed=False)
    return np.where(alone, part, -1).astype(np.int64)
