"""Kinds of Polars column types, as file formats declare which of them they hold."""

import polars as pl

SIGNED = ("Int8", "Int16", "Int32", "Int64")
UNSIGNED = ("UInt8", "UInt16", "UInt32", "UInt64")
WIDE = ("Int128", "UInt128")
FLOATS = ("Float16", "Float32", "Float64")
TEXTS = ("String", "Categorical", "Enum")
ZONED = "Datetime with zone"
TEMPORAL = ("Date", "Datetime", ZONED, "Duration", "Time")
NESTED = ("List", "Array", "Struct", "Map")
STORABLE = ("Boolean", *SIGNED, *UNSIGNED, *WIDE, *FLOATS, "Decimal", *TEXTS, *TEMPORAL, "Binary", *NESTED, "Null")
"""Every kind but Object, whose values exist in one Python process only."""


def kind(dtype: pl.DataType) -> str:
    """The kind of a column type, without its parameters: the categories of an Enum are data.

    >>> kind(pl.Enum(["a"])), kind(pl.Datetime("us", "UTC")), kind(pl.List(pl.Int8))
    ('Enum', 'Datetime with zone', 'List')
    """
    if isinstance(dtype, pl.Datetime) and dtype.time_zone is not None:
        return ZONED
    return dtype.base_type().__name__


def parts(dtype: pl.DataType) -> list[pl.DataType]:
    """The types inside a list, array, struct or map, at any depth."""
    if isinstance(dtype, pl.Struct):
        inner = [field.dtype for field in dtype.fields]
    elif isinstance(dtype, pl.List | pl.Array):
        inner = [dtype.inner]
    else:
        inner = [getattr(dtype, side) for side in ("key", "value") if hasattr(dtype, side)]
    return [part for one in inner if isinstance(one, pl.DataType) for part in (one, *parts(one))]


def words(dtype: pl.DataType) -> str:
    """A column type for a message.

    >>> words(pl.List(pl.Enum(["a"]))), words(pl.UInt8())
    ('List of Enum', 'UInt8')
    """
    return " of ".join([kind(dtype), *([" and ".join(dict.fromkeys(map(kind, parts(dtype))))] if parts(dtype) else [])])


def to_text(values: pl.Series) -> pl.Series:
    """Values as text; times of a day with their fraction of a second, where they have one.

    >>> to_text(pl.Series([3_723_456_000_000, 0], dtype=pl.Time)).to_list()
    ['01:02:03.456', '00:00:00']
    """
    return values.dt.to_string("%H:%M:%S%.f") if values.dtype == pl.Time else values.cast(pl.String)


def same(*kinds: str) -> dict[str, str]:
    """Kinds that come back as they went.

    >>> same("Int8", "Date")
    {'Int8': 'Int8', 'Date': 'Date'}
    """
    return {one: one for one in kinds}


def stored_as(target: str, *kinds: str) -> dict[str, str]:
    """Kinds that come back as another one, with the same values.

    >>> stored_as("Int64", "Int8", "UInt8")
    {'Int8': 'Int64', 'UInt8': 'Int64'}
    """
    return dict.fromkeys(kinds, target)
