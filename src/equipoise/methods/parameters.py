"""Checks of the parameters of methods, each with its sentence."""

from dataclasses import fields
from math import inf, isnan, nan
from numbers import Real
from typing import Any, Literal, get_args, get_origin

from equipoise.data.roles import names
from equipoise.ground.errors import ParameterError, shown
from equipoise.methods.method import Rule


def check_fields(method: Any, **least: int) -> None:
    """Refuse fields that do not fit their types, and store column names as tuples.

    A field of Literal takes one of its words, a Rule a rule, and `tuple[str, ...]` column names, of which one may stand
    alone; a field in `least` takes a whole number of at least so much. None fits where it is the default.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Rounding:
    ...     columns: tuple[str, ...] = ()
    ...     base: int = 5
    ...     def __post_init__(self):
    ...         check_fields(self, base=2)
    >>> Rounding("income")
    Rounding(columns=('income',), base=5)
    >>> Rounding(base=1)
    Traceback (most recent call last):
    equipoise.ground.errors.ParameterError: base must be a whole number, at least 2, got 1.
    """
    for field in fields(method):
        name, kind, value = field.name, field.type, getattr(method, field.name)
        if value is None and field.default is None:
            continue
        if kind in (tuple[str, ...], tuple[str, ...] | None):
            object.__setattr__(method, name, names(value, name))
        elif get_origin(kind) is Literal:
            one_of(value, name, get_args(kind))
        elif kind is Rule and (not isinstance(value, Rule) or isinstance(value, type)):
            raise ParameterError(f"{name} must be a rule: eq.rules.MinCount(3).")
        elif name in least:
            whole_number(value, name, least[name])


def one_of(value: Any, name: str, words: tuple[Any, ...]) -> None:
    """Refuse a value that is none of the words."""
    if value not in words:
        *others, last = map(repr, words)
        raise ParameterError(f"{name} must be {', '.join(others)} or {last}, got {shown(value)}.")


def whole_number(value: Any, name: str, least: int = 1, most: int | None = None) -> None:
    """Refuse a value that is not a whole number of at least `least` and, where there is one, at most `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least or (most and value > most):
        bound = f" and at most {most:,}" if most else ""
        raise ParameterError(f"{name} must be a whole number, at least {least}{bound}, got {shown(value)}.")


def entry(cell: Any, name: str) -> Any:
    """What a cell, given as a row of a table, has under a name."""
    if name not in cell:
        raise ParameterError(f"cell must have {name!r} to be explained: give a row of the table.")
    if name == "n" and (not isinstance(cell[name], Real) or isnan(cell[name])):
        raise ParameterError("cell must have a number of records in 'n'.")
    return cell[name]


def as_float(value: Any) -> float:
    """A number as a float: infinite where it is larger than any, no number where it is none.

    >>> as_float(2), as_float(10**400), as_float("2")
    (2.0, inf, nan)
    """
    if not isinstance(value, Real) or isinstance(value, bool):
        return nan
    try:
        return float(value)
    except OverflowError:
        return -inf if isinstance(value, int) and value < 0 else inf


def above(value: Any, name: str, least: float = 0, strict: bool = True) -> None:
    """Refuse a value that is not a finite number above (or at) a bound."""
    fits = least <= as_float(value) < inf
    if not fits or (strict and value == least):
        bound = f"{'above' if strict else 'of at least'} {least:g}"
        raise ParameterError(f"{name} must be a finite number {bound}, got {shown(value)}.")


def share(value: Any, name: str, most: float = 1.0, *, zero: bool = False, open_: bool = False) -> None:
    """Refuse a value that is not a share above 0 (or 0) and up to `most`; hint at percent for a larger number."""
    number = as_float(value)
    if 0 < number < most or (number == most and not open_) or (number == 0 and zero):
        return
    start, end = "at least" if zero else "above", "below" if open_ else "at most"
    text = f"{number:g}" if number == number else type(value).__name__
    hint = f" Write {number:g} % as {number / 100:g}." if most < number <= 100 else ""
    raise ParameterError(f"{name} must be {start} 0 and {end} {most:g}, got {text}.{hint}")
