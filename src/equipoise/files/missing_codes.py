"""Missing codes from one package in the way of another: letters (Stata, SAS) and numbers (SPSS, tau-ARGUS)."""

from collections.abc import Iterable
from dataclasses import replace
from string import ascii_lowercase

import polars as pl

from equipoise.data.labels import Code, Column

BLOCKS = (-1, -901, -90_001, -9_000_001, -900_000_001)
"""Where the numbers for letters may begin, downwards."""
PAIR, SINGLE = 2, 3
"""The most codes tau-ARGUS takes, and the most single ones SPSS takes (more are one range)."""


def lettered(told: Column, codes: pl.Series | None, *, upper: bool = False) -> tuple[Column, pl.Series | None]:
    """Missing codes as letters a to z, their labels with them; what is beyond the alphabet is z.

    >>> told = Column(values=((1, "yes"), (-8, "refused")), missing=((-9, -8),))
    >>> told, codes = lettered(told, pl.Series([None, -8.0, -9.0]))
    >>> told.values, codes.to_list()
    (((1, 'yes'), ('a', 'refused')), [None, 'a', 'b'])
    """
    listed = _listed(told, codes)
    own = {code: str(code).lower() for code in listed if isinstance(code, str) and str(code).lower() in ascii_lowercase}
    if upper and "_" in listed:
        own["_"] = "_"
    free = (letter for letter in ascii_lowercase if letter not in own.values())
    goes = {code: own[code] if code in own else next(free, "z") for code in listed}
    return _moved(told, codes, {code: letter.upper() if upper else letter for code, letter in goes.items()})


def numbered(told: Column, codes: pl.Series | None, values: pl.Series) -> tuple[Column, pl.Series | None]:
    """Letters as numbers that no value has, their labels with them.

    >>> told, codes = numbered(Column(missing=(("a", "a"),)), pl.Series([None, "a"]), pl.Series([-1.0, None]))
    >>> told.missing, codes.to_list()
    (((-901, -901),), [None, -901])
    """
    listed = sorted(code for code in _listed(told, codes) if isinstance(code, str))
    known = values.cast(pl.Float64)
    start = next((at for at in BLOCKS if not known.is_between(at - len(listed), at).any()), BLOCKS[-1])
    goes: dict[Code, Code] = {letter: start - place for place, letter in enumerate(listed)}
    told, codes = _moved(told, codes, goes)
    if listed and len(told.missing) > SINGLE:
        told = replace(told, missing=((min(goes.values()), max(goes.values())),))
    return told, codes


def two(told: Column, codes: pl.Series | None, values: pl.Series) -> tuple[Column, pl.Series | None]:
    """At most two missing codes, as tau-ARGUS takes them: records with further ones get the second.

    >>> told, codes = two(Column(missing=((97, 99),)), pl.Series([97, 98, 99, None]), pl.Series([1]))
    >>> told.missing, codes.to_list()
    (((97, 97), (98, 98)), [97, 98, 98, None])
    """
    if values.dtype.is_numeric():
        told, codes = numbered(told, codes, values)
    there = [] if codes is None else codes.drop_nulls().unique().sort().to_list()
    single = [low for low, high in told.missing if low == high and low not in there]
    if codes is not None and len(there) > PAIR:
        codes = codes.replace(there[PAIR:], [there[1]] * len(there[PAIR:]))
    return replace(told, missing=tuple((code, code) for code in [*there, *single][:PAIR])), codes


def _listed(told: Column, codes: pl.Series | None) -> list[Code]:
    """Every missing code that has a label or a record."""
    named = [code for code, _ in told.values if told.is_missing(code)]
    there: Iterable[Code] = [] if codes is None else codes.drop_nulls().unique().sort(descending=True).to_list()
    single = [low for low, high in told.missing if low == high and isinstance(low, str)]
    return list(dict.fromkeys([*named, *there, *single]))


def _moved(told: Column, codes: pl.Series | None, goes: dict[Code, Code]) -> tuple[Column, pl.Series | None]:
    if not goes or all(code == there for code, there in goes.items()):
        return told, codes
    values = tuple((goes[code] if told.is_missing(code) else code, text) for code, text in told.values)
    missing = tuple((there, there) for there in dict.fromkeys(goes.values()))
    if codes is not None:
        kind = pl.String if isinstance(next(iter(goes.values())), str) else pl.Int64
        known = pl.Series(list(goes), dtype=codes.dtype, strict=False)
        codes = codes.replace_strict(known, list(goes.values()), default=None, return_dtype=kind)
    return replace(told, values=values, missing=missing), codes
