"""User-missing codes, converted between packages: letters (Stata, SAS) and numbers (SPSS, tau-ARGUS)."""

from collections.abc import Iterable
from dataclasses import replace
from string import ascii_lowercase

import polars as pl

from equipoise.data.labels import Code, Column

CODE_BLOCK_STARTS = (-1, -901, -90_001, -9_000_001, -900_000_001)
"""Where the numbers for letters may begin, downwards."""
MAX_ARGUS_CODES, MAX_SINGLE_SPSS_CODES = 2, 3
"""The most codes tau-ARGUS takes, and the most single ones SPSS takes (more are one range)."""


def letter_codes(column: Column, codes: pl.Series | None, *, upper: bool = False) -> tuple[Column, pl.Series | None]:
    """Missing codes as letters a to z, their labels with them; what is beyond the alphabet is z.

    >>> column = Column(values=((1, "yes"), (-8, "refused")), missing=((-9, -8),))
    >>> column, codes = letter_codes(column, pl.Series([None, -8.0, -9.0]))
    >>> column.values, codes.to_list()
    (((1, 'yes'), ('a', 'refused')), [None, 'a', 'b'])
    """
    listed = _listed(column, codes)
    own = {code: str(code).lower() for code in listed if isinstance(code, str) and str(code).lower() in ascii_lowercase}
    if upper and "_" in listed:
        own["_"] = "_"
    free = (letter for letter in ascii_lowercase if letter not in own.values())
    goes = {code: own[code] if code in own else next(free, "z") for code in listed}
    return _recode(column, codes, {code: letter.upper() if upper else letter for code, letter in goes.items()})


def number_codes(column: Column, codes: pl.Series | None, values: pl.Series) -> tuple[Column, pl.Series | None]:
    """Letters as numbers that no value has, their labels with them.

    >>> column, codes = number_codes(Column(missing=(("a", "a"),)), pl.Series([None, "a"]), pl.Series([-1.0, None]))
    >>> column.missing, codes.to_list()
    (((-901, -901),), [None, -901])
    """
    listed = sorted(code for code in _listed(column, codes) if isinstance(code, str))
    numbers = values.cast(pl.Float64)
    start = next(
        (at for at in CODE_BLOCK_STARTS if not numbers.is_between(at - len(listed), at).any()), CODE_BLOCK_STARTS[-1]
    )
    goes: dict[Code, Code] = {letter: start - place for place, letter in enumerate(listed)}
    column, codes = _recode(column, codes, goes)
    if listed and len(column.missing) > MAX_SINGLE_SPSS_CODES:
        column = replace(column, missing=((min(goes.values()), max(goes.values())),))
    return column, codes


def two_codes(column: Column, codes: pl.Series | None, values: pl.Series) -> tuple[Column, pl.Series | None]:
    """At most two missing codes, as tau-ARGUS takes them: records with further ones get the second.

    >>> column, codes = two_codes(Column(missing=((97, 99),)), pl.Series([97, 98, 99, None]), pl.Series([1]))
    >>> column.missing, codes.to_list()
    (((97, 97), (98, 98)), [97, 98, 98, None])
    """
    if values.dtype.is_numeric():
        column, codes = number_codes(column, codes, values)
    record_codes = [] if codes is None else codes.drop_nulls().unique().sort().to_list()
    single = [low for low, high in column.missing if low == high and low not in record_codes]
    if codes is not None and len(record_codes) > MAX_ARGUS_CODES:
        codes = codes.replace(record_codes[MAX_ARGUS_CODES:], [record_codes[1]] * len(record_codes[MAX_ARGUS_CODES:]))
    return replace(column, missing=tuple((code, code) for code in [*record_codes, *single][:MAX_ARGUS_CODES])), codes


def _listed(column: Column, codes: pl.Series | None) -> list[Code]:
    """Every missing code that has a label or a record."""
    label_codes = [code for code, _ in column.values if column.is_missing(code)]
    record_codes: Iterable[Code] = [] if codes is None else codes.drop_nulls().unique().sort(descending=True).to_list()
    single = [low for low, high in column.missing if low == high and isinstance(low, str)]
    return list(dict.fromkeys([*label_codes, *record_codes, *single]))


def _recode(column: Column, codes: pl.Series | None, goes: dict[Code, Code]) -> tuple[Column, pl.Series | None]:
    if not goes or all(code == target for code, target in goes.items()):
        return column, codes
    values = tuple((goes[code] if column.is_missing(code) else code, text) for code, text in column.values)
    missing = tuple((target, target) for target in dict.fromkeys(goes.values()))
    if codes is not None:
        kind = pl.String if isinstance(next(iter(goes.values())), str) else pl.Int64
        old_codes = pl.Series(list(goes), dtype=codes.dtype, strict=False)
        codes = codes.replace_strict(old_codes, list(goes.values()), default=None, return_dtype=kind)
    return replace(column, values=values, missing=missing), codes
