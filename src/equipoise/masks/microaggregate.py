"""Replace values by the means of small groups of similar records."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import polars as pl

from equipoise.data.records import Law, Records
from equipoise.data.repeated_values import once_each, once_words, repeating
from equipoise.data.row_draws import whole
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError, InfeasibleError, ParameterError, RolesError, require_columns
from equipoise.ground.packed_keys import Coded, code, group_coded
from equipoise.ground.randomness import Draws
from equipoise.masks._microaggregation import mdav, means, optimal, tree
from equipoise.methods.parameters import check_fields

METHODS: dict[str, Callable[[Floats, int], Integers]] = {
    "mdav": mdav,
    "univariate-optimal": lambda points, size: optimal(points[:, 0], size),
    "tree": tree,
}
WORDS = {"mdav": "MDAV", "univariate-optimal": "each column by itself, optimally", "tree": "cut at medians"}
MAX_SQUARED = 1e150
"""Values of which the squares can be added up."""
CATEGORIES = 500
"""Categories of a column beyond which it is refused: each is a dimension."""


@dataclass(frozen=True, slots=True)
class Microaggregate:
    """Replace each value of `columns` by the mean of a group of at least `size` similar records.

    Similar is a small sum over columns of squared differences: numbers and dates divided by their standard deviation in
    the file (divisor n), categories counting 1 where they differ. method "mdav" peels groups off from the outside
    (exact, as published); "tree" cuts at medians, for a million records; "univariate-optimal" groups each column by
    itself with the smallest sum of squares there is, which leaves ranks nearly as they were. Groups stay within the
    joint values of `strata`. Released is the mean, unweighted: column means are kept (to rounding), variances shrink.
    Whole numbers become decimal ones unless integers="round". A category becomes the group's most frequent one, its
    medoid (ties: the first in order); dates a rounded mean. Draws nothing at random.
    With a household role, numbers that are equal within most households are grouped by household if there are
    no strata and no other column is grouped with them; else members' groups differ, and who averages them
    comes nearer to the truth.

    Missing values stay missing, and records that miss the same columns are grouped among themselves; where fewer than
    `size` of a stratum do, the mask refuses, or with rare="empty" takes their other values in `columns` away too.
    Ties in distance go to the record first in order of the columns' values, then of its key: row order is immaterial.
    Cost: see `equipoise.masks._microaggregation`; 3 columns in groups of 3: MDAV 100,000 records in about 2 s, tree
    1,000,000 in 2, the optimum of one column of 1,000,000 in 2.

    Source: Domingo-Ferrer and Mateo-Sanz (2002), *Practical data-oriented microaggregation for statistical disclosure
    control*; Domingo-Ferrer and Torra (2005), *Ordinal, continuous and heterogeneous k-anonymity through
    microaggregation*; Hansen and Mukherjee (2003). Does not guard against groups whose members are all alike, an
    intruder who links by other columns, or (with "univariate-optimal") one who ranks.

    >>> records = eq.read(pl.DataFrame({"age": [20, 22, 50, 54, 58]}), eq.Roles())
    >>> Microaggregate(["age"], 2).apply(records, Draws(1)).collect()["age"].to_list()
    [21.0, 21.0, 54.0, 54.0, 54.0]
    """

    columns: tuple[str, ...]
    size: int = 3
    method: Literal["mdav", "univariate-optimal", "tree"] = "mdav"
    strata: tuple[str, ...] | None = None
    integers: Literal["mean", "round"] = "mean"
    rare: Literal["refuse", "empty"] = "refuse"

    def __post_init__(self) -> None:
        check_fields(self, size=2)
        object.__setattr__(self, "strata", self.strata or None)
        if not self.columns:
            raise ParameterError("Name at least one column to microaggregate.")
        if shared := set(self.columns) & set(self.strata or ()):
            raise ParameterError(f"Column {min(shared)!r} cannot be both microaggregated and a stratum.")

    def apply(self, data: Records, draws: Draws) -> Records:
        require_columns((*self.columns, *(self.strata or ())), data.schema())
        for column in (*self.columns, *(self.strata or ())):
            if column in (data.roles.id, data.roles.household, data.roles.person, data.roles.sample):
                raise RolesError(f"Column {column!r} names records, people or households: it cannot be grouped.")
        owners = self._owners(data)
        return data.with_frame(whole(data, partial(self._change, owners)), self.law(owners))

    def _owners(self, data: Records) -> dict[str, str]:
        """Columns grouped by household, where all that are grouped together are equal within households."""
        owners = {} if self.strata else repeating(data, self.columns)
        return owners if self.method == "univariate-optimal" or len(owners) == len(self.columns) else {}

    def law(self, owners: Mapping[str, str]) -> Law:
        parameters: dict[str, Any] = {"columns": list(self.columns), "size": self.size, "method": self.method}
        parameters |= {"strata": list(self.strata)} if self.strata else {}
        parameters |= {"integers": self.integers, "rare": self.rare}
        parameters |= {"once_per": dict(owners)} if owners else {}
        words = self.words() + once_words(owners).replace("drawn", "grouped")
        return Law("microaggregate", self.columns, words, parameters)

    def words(self) -> str:
        strata = f" within {', '.join(self.strata)}" if self.strata else ""
        groups = f"groups of {self.size} or more{strata} ({WORDS[self.method]})"
        return f"{', '.join(self.columns)} replaced by means of {groups}"

    def _change(self, owners: Mapping[str, str], table: pl.DataFrame, keys: pl.Series) -> pl.DataFrame:
        alone = self.method == "univariate-optimal"
        blocks = [(column,) for column in self.columns] if alone else [self.columns]
        return table.with_columns(new for block in blocks for new in self._once(table, block, keys, owners))

    def _once(
        self, table: pl.DataFrame, block: tuple[str, ...], keys: pl.Series, owners: Mapping[str, str]
    ) -> list[pl.Series]:
        """Some columns, grouped together; by household where all of them are equal within households."""
        once = once_each(table, block, owners)
        if once is None:
            return self._block(table, block, keys)
        return [once.spread(new) for new in self._block(once.table, block, once.keys)]

    def _block(self, table: pl.DataFrame, block: tuple[str, ...], keys: pl.Series) -> list[pl.Series]:
        """Some columns, grouped together: in the order of their values and of the records' keys, then put back."""
        columns = [_Column.of(table[c]) for c in block]
        order = _order([c.values for c in columns], keys)
        parts = _parts([table[c] for c in self.strata or ()], [c.known for c in columns])[order]
        groups = np.full(len(order), -1)
        for rows in np.split(np.argsort(parts, kind="stable"), np.cumsum(np.bincount(parts))[:-1]):
            groups[rows] = self._grouped([c.part(order[rows]) for c in columns], int(groups.max()) + 1)
        placed = np.empty(len(order), dtype=np.int64)
        placed[order] = groups
        return [c.released(placed, order, self.integers == "round") for c in columns]

    def _grouped(self, columns: "list[_Column]", number: int) -> Integers:
        """Group numbers of records that have the same columns: -1 where they have none, -2 where there are too few."""
        complete, records = [c for c in columns if c.known.all()], len(columns[0].known)
        if not complete:
            return np.full(records, -1)
        if records < self.size and self.rare == "empty":
            return np.full(records, -2)
        if records < self.size:
            raise InfeasibleError(
                f"A stratum, or the records that miss the same columns in it, has {records:,} records: too few for "
                f"groups of {self.size:,}. Use fewer strata, a smaller size, or rare='empty'."
            )
        if self.method == "univariate-optimal" and complete[0].codes is not None:
            raise DataError(f"Column {complete[0].values.name!r} has no order of size: use method='mdav' or 'tree'.")
        return METHODS[self.method](np.column_stack([c.points() for c in complete]), self.size) + number


@dataclass(frozen=True, eq=False, repr=False)
class _Column:
    """A column: its values, which of them are known, and the numbers or the codes that stand for them."""

    values: pl.Series
    known: Any
    numbers: Floats
    scaled: Floats
    codes: Coded | None = None

    @classmethod
    def of(cls, values: pl.Series) -> "_Column":
        kind = values.dtype
        values = values.fill_nan(None) if kind.is_float() else values
        present, nothing = values.is_not_null().to_numpy(), np.zeros(len(values))
        if kind.is_numeric() or kind.is_temporal():
            numbers = values.to_physical().cast(pl.Float64).fill_null(0.0).to_numpy()
            return cls(values, present, numbers, _standardised(numbers, present, values.name))
        if kind.is_nested() or kind == pl.Object:
            raise DataError(f"Column {values.name!r} is {kind}: it must hold single values.")
        coded = code(values)
        if coded.size > CATEGORIES:
            raise DataError(
                f"Column {values.name!r} has {coded.size:,} categories: more than {CATEGORIES} are refused."
            )
        return cls(values, present, nothing, nothing, coded)

    def part(self, rows: Integers) -> "_Column":
        coded = Coded(self.codes.values, self.codes.codes[rows]) if self.codes else None
        return _Column(self.values, self.known[rows], self.numbers[rows], self.scaled[rows], coded)

    def points(self) -> Floats:
        """Coordinates whose squared differences are this column's part of the distance."""
        if self.codes is None:
            return self.scaled[:, None]
        return np.where(self.codes.codes[:, None] == np.arange(self.codes.size), np.sqrt(0.5), 0.0)

    def released(self, groups: Integers, order: Integers, rounded: bool) -> pl.Series:
        """The means or modes of the groups; what has none stays, or is emptied."""
        grouped = order[(groups[order] >= 0) & self.known[order]]
        original = pl.select(pl.when(pl.Series(groups != -2)).then(self.values).alias(self.values.name)).to_series()
        if self.codes is not None:
            new = self.codes.values.gather(_modes(self.codes.codes[grouped], groups[grouped])).cast(original.dtype)
        else:
            new = self._typed(
                means(self.numbers[grouped, None], groups[grouped])[:, 0] if len(grouped) else np.zeros(0), rounded
            )
        return original.cast(new.dtype).scatter(grouped, new) if len(grouped) else original

    def _typed(self, averages: Floats, rounded: bool) -> pl.Series:
        """Means in the column's own type; whole numbers as decimal ones unless rounded, dates always rounded."""
        kind = self.values.dtype
        if kind.is_temporal():
            return pl.Series(np.rint(averages).astype(np.int64)).cast(self.values.to_physical().dtype).cast(kind)
        if kind.is_integer() and rounded:
            return pl.Series(np.rint(averages)).cast(kind)
        return pl.Series(averages).cast(kind if kind.is_float() else pl.Float64)


def _standardised(numbers: Floats, present: Any, name: str) -> Floats:
    """Divided by the standard deviation of the known values; 0 where nothing varies."""
    if not (np.abs(numbers) < MAX_SQUARED).all():
        raise DataError(f"Column {name!r} has infinite values, or such large ones that they have no mean.")
    if not present.any():
        return numbers
    centred = numbers - numbers[present].mean()
    spread = float(np.sqrt((centred[present] ** 2).mean()))
    return centred / spread if spread > 1e-12 * max(1.0, float(np.abs(numbers).max())) else np.zeros(len(numbers))


def _order(columns: list[pl.Series], keys: pl.Series) -> Integers:
    """Records in the order of the columns' values, then of their keys."""
    texts = [c.cast(pl.String) if isinstance(c.dtype, pl.Categorical) else c for c in columns]
    table = pl.DataFrame([c.alias(str(i)) for i, c in enumerate([*texts, keys])])
    return table.with_row_index("row").sort(table.columns)["row"].to_numpy().astype(np.int64)


def _parts(strata: list[pl.Series], present: list[Any]) -> Integers:
    """The number of each record's stratum and pattern of missing values, which depends on their values only."""
    coded = [code(s) for s in strata] + [code(pl.Series(k)) for k in present if not k.all()]
    if not coded:
        return np.zeros(len(present[0]), dtype=np.int64)
    return group_coded(coded)[0]


def _modes(codes: Integers, groups: Integers) -> Integers:
    """The most frequent code of each record's group; the lowest where several are."""
    size = int(codes.max()) + 1 if len(codes) else 1
    pairs, counts = np.unique(groups * size + codes, return_counts=True)
    best = np.lexsort((pairs, -counts, pairs // size))
    group_ids, first = np.unique((pairs // size)[best], return_index=True)
    return (pairs % size)[best][first][np.searchsorted(group_ids, groups)]
