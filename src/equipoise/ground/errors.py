"""Errors and warnings of this package. Messages name columns, counts and parameters, never data values."""

import warnings
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from importlib import import_module
from typing import Any

EXTRAS = {
    "duckdb": ("duckdb", "duckdb"),
    "fastexcel": ("fastexcel", "files"),
    "pyarrow": ("pyarrow", "arrow"),
    "pyreadstat": ("pyreadstat", "files"),
    "rapidfuzz": ("rapidfuzz", "strings"),
    "rdata": ("rdata", "r"),
    "sklearn": ("scikit-learn", "learn"),
    "threadpoolctl": ("scikit-learn", "learn"),
    "xlsxwriter": ("xlsxwriter", "files"),
}
"""Optional modules: the package that brings each, and the extra that installs it."""


class EquipoiseError(Exception):
    """Base of all errors raised on purpose; `exit_code` is what the command line ends with.

    `problems` lists each problem where there are several.
    """

    exit_code = 2
    problems: tuple[Any, ...] = ()


class RolesError(EquipoiseError, ValueError):
    """The roles do not fit the data."""

    @classmethod
    def missing(cls, column: str, available: Collection[str]) -> "RolesError":
        return cls(f"No column {column!r} in the data.{hint(column, available)}")


class ParameterError(EquipoiseError, ValueError):
    """A method was given a parameter it cannot work with."""


class DataError(EquipoiseError, ValueError):
    """The data cannot be read, or cannot be what its roles say."""


class EngineError(EquipoiseError):
    """The engine that holds the data cannot do what was asked."""


class InfeasibleError(EquipoiseError):
    """The request cannot be met on this data; `cell` is the number of the cell it fails at, if there is one."""

    cell: int | None = None


class RefusedError(EquipoiseError):
    """A policy refused the release; `about` is the refused result with all its trials, where available."""

    exit_code = 1
    about: Any = None


class MissingExtraError(EquipoiseError, ImportError):
    """An optional package is needed."""

    exit_code = 3

    @classmethod
    def for_package(cls, package: str, extra: str) -> "MissingExtraError":
        return cls(f'This needs the package {package!r}. Install it: pip install "equipoise[{extra}]".')


def import_extra(module: str) -> Any:
    """Import a module of an optional package; without it, name the extra that installs it."""
    try:
        return import_module(module)
    except ImportError:
        package, extra = EXTRAS[module.partition(".")[0]]
        raise MissingExtraError.for_package(package, extra) from None


class Cancelled(EquipoiseError):
    """The work was stopped from outside; nothing was written."""

    exit_code = 130


class EquipoiseWarning(UserWarning):
    """An assumption behind a number is doubtful; the Score carries the same note."""


def warn_renamed(old: str, new: str) -> None:
    """Warn the caller of a function under its old name, which works for one version more."""
    warnings.warn(f"{old} is now {new}.", EquipoiseWarning, stacklevel=3)


def require_columns(columns: Iterable[str], available: Collection[str]) -> None:
    """Refuse the first of some columns that the data does not have."""
    for column in columns:
        if column not in available:
            raise RolesError.missing(column, available)


def hint(name: str, available: Collection[str]) -> str:
    """Suggest the nearest available name for a misspelt one, or list the names.

    >>> hint("agee", ["age", "sex"])
    " Did you mean 'age'?"
    >>> hint("x", ["age", "sex"])
    ' There are: age, sex.'
    """
    near = get_close_matches(name, available, n=1)
    if near:
        return f" Did you mean {near[0]!r}?"
    names = sorted(available)
    listed = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    return f" There are: {listed}." if names else " There are none."
