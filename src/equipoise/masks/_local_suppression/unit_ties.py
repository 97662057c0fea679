"""Keys that the other records of a household or person show: blanked in all of its records or in none."""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from equipoise.data.cells import count
from equipoise.data.people import MIN_EQUAL_SHARE, MIN_HOUSEHOLD_SHARE
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.ground.arrays import Integers
from equipoise.ground.packed_keys import Coded, code, group_coded
from equipoise.masks._local_suppression.problem import FREE


def plain_floats(table: pl.DataFrame, keys: tuple[str, ...]) -> pl.DataFrame:
    """The table with one null and one zero: released rows that are identical have the same bytes."""
    floats = [key for key in keys if table.schema[key].is_float()]
    known = [pl.col(key).fill_nan(None) for key in floats]
    return (
        table.with_columns(pl.when(key == 0).then(0.0).otherwise(key).name.keep() for key in known) if floats else table
    )


@dataclass(frozen=True, slots=True)
class Tie:
    """Keys that are the same in all records of a unit (household or person), and the records of a unit on average.

    `whole` says that they are those of the unit itself: where they came missing in one record, they are in all.
    """

    unit: str
    keys: tuple[str, ...]
    records: float
    whole: bool = True


def ties_of(table: pl.DataFrame, data: Records) -> list[Tie]:
    """The keys of each unit, which its other records show: one value in most households or people."""
    roles, ties = data.roles, []
    for unit, share in ((roles.household, MIN_HOUSEHOLD_SHARE), (roles.person, MIN_EQUAL_SHARE)):
        if unit is not None:
            units = code(table[unit])
            of_unit = units.values.is_not_null().to_numpy()[units.codes]
            equal = {key: _equal_share(units, of_unit, table[key]) for key in roles.keys}
            records = table.height / max(1, units.values.count())
            ties.append(Tie(unit, tuple(key for key in equal if equal[key] >= share), records))
            if mostly := tuple(key for key in equal if MIN_EQUAL_SHARE <= equal[key] < share):
                ties.append(Tie(unit, mostly, records, whole=False))
    return ties


def ties_shown(table: pl.DataFrame, data: Records, ties: list[Tie]) -> list[Tie]:
    """Ties by which the released table could be read, beyond those it was made with: blanks change the shares."""
    home = data.roles.household
    own = [tie for tie in ties if tie.unit == home]
    held = {whole: {key for tie in own if tie.whole >= whole for key in tie.keys} for whole in (False, True)}
    blank = {key for key in data.roles.keys if table[key].null_count()}
    shown = [tie for tie in ties_of(table, data) if tie.unit == home] if own else []
    more = [replace(tie, keys=tuple(k for k in tie.keys if k in blank and k not in held[tie.whole])) for tie in shown]
    return [tie for tie in more if tie.keys]


def _equal_share(units: Coded, of_unit: Integers, column: pl.Series) -> float:
    """Of the units with several values, the share in which all are equal: each is the one that was written last."""
    values, unit = code(column), units.codes
    value = values.codes
    if values.values.null_count() or not of_unit.all():
        filled = of_unit & values.values.is_not_null().to_numpy()[value]
        unit, value = unit[filled], value[filled]
    last = np.zeros(units.size, dtype=value.dtype)
    last[unit] = value
    several, unlike = np.bincount(unit, minlength=units.size) > 1, np.zeros(units.size, dtype=np.bool_)
    unlike[unit[value != last[unit]]] = True
    return 1.0 - float(unlike.sum() / several.sum()) if several.any() else 1.0


def one_per_person(table: pl.DataFrame, roles: Roles) -> tuple[pl.DataFrame, pl.Series | None]:
    """A record for each person and row of keys, and which of them each record is; without people all records."""
    if roles.person is None:
        return table, None
    ids, first = group_coded([code(table[column]) for column in (roles.person, *roles.keys)])
    return table[first], pl.Series(ids)


def smallest_class(table: pl.DataFrame, roles: Roles) -> int:
    """The people of the smallest class, as they are measured."""
    return int(count(Records.of(table, roles), roles.keys).alike[0].min(initial=FREE))


def followed(table: pl.DataFrame, ties: list[Tie], original: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """The table with the keys of a unit blank in all its records where one has none, and the values blanked so."""
    units, closed, before = {tie.unit: code(table[tie.unit]) for tie in ties}, table, -1
    while (blanks := sum(closed[key].null_count() for tie in ties for key in tie.keys)) != before:
        before = blanks
        for tie in ties:
            gaps = {key: closed[key].is_null() & (original[key].is_not_null() | tie.whole) for key in tie.keys}
            lacks = {key: _anywhere(units[tie.unit], gap) for key, gap in gaps.items() if gap.any()}
            closed = closed.with_columns(pl.when(~lack).then(pl.col(key)).alias(key) for key, lack in lacks.items())
    keys = tuple(dict.fromkeys(key for tie in ties for key in tie.keys))
    return closed, int(blanks_of(closed, table, keys).sum())


def _anywhere(units: Coded, gap: pl.Series) -> pl.Series:
    """Which records are of a unit with a gap in any of its records; records without a unit are of none."""
    lacking = np.zeros(units.size, dtype=np.bool_)
    lacking[units.codes[gap.to_numpy()]] = True
    lacking &= units.values.is_not_null().to_numpy()
    return pl.Series(lacking[units.codes])


def blanks_of(table: pl.DataFrame, original: pl.DataFrame, keys: tuple[str, ...]) -> Integers:
    """The values of each key that are missing in a table and not in the original."""
    nulls = [table[key].null_count() - plain_floats(original.select(key), (key,))[key].null_count() for key in keys]
    return np.array(nulls, dtype=np.int64)
