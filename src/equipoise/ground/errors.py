"""Errors and warnings of this package. Messages name columns, counts and parameters, never data values."""

import os
import re
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
ENGINES = ("polars", "pyo3_runtime", "duckdb", "_duckdb", "pyarrow", "narwhals", "pyspark", "py4j")
"""Packages whose errors are about the data they were given."""
MAX_NAME = 80
"""Characters of a name or path that a message shows."""
QUOTED = re.compile(r"(?<!\w)'([^'\n]*)'(?!\w)|\"([^\"\n]*)\"")
CATEGORIES = re.compile(r"Enum\(categories=.*\]\)", re.DOTALL)
"""A type of column that lists values of the data, as engines write it."""
MAX_SHOWN_BITS = 256


def shortened(message: str) -> str:
    """A message whose long names are cut: the beginning of a name, the end of a path; types show no categories.

    >>> shortened(f"No column {'x' * 500!r}.") == f"No column '{'x' * 77}...'."
    True
    """
    message = CATEGORIES.sub("Enum", message)
    cut = lambda match: f"{match[0][0]}{_cut(match[1] or match[2] or '')}{match[0][0]}"
    return QUOTED.sub(cut, message) if len(message) > MAX_NAME else message


def _cut(name: str) -> str:
    if len(name) <= MAX_NAME:
        return name
    rest = MAX_NAME - 3
    return f"...{name[-rest:]}" if re.match(r"[/~.]|[A-Z]:", name) else f"{name[:rest]}..."


def shown(value: Any) -> str:
    """A parameter as a message shows it: only the type of what may hold data, and little of what is long.

    >>> shown("mean"), shown(10**400), shown({"age": 31})
    ("'mean'", 'a number of 401 digits', 'dict')
    """
    if isinstance(value, int) and value.bit_length() > MAX_SHOWN_BITS:
        return f"a number of {int(value.bit_length() * 0.30103) + 1} digits"
    if isinstance(value, tuple | list) and len(value) < 10 and all(isinstance(v, str | int | float) for v in value):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, str):
        return repr(_cut(value))
    return repr(value) if isinstance(value, int | float | None) else type(value).__name__


def of_engine(error: BaseException) -> bool:
    """Whether an error is a dataframe engine's, about the data that it was given; its text may quote data."""
    return type(error).__module__.partition(".")[0] in ENGINES


def engine_words(error: BaseException) -> str:
    """What is said instead of the text of an engine's error."""
    return settings_words(error) or (
        f"The engine could not work with the data ({type(error).__name__}): a column is of a type, or has values, "
        "that the method cannot take. EQUIPOISE_DEBUG=1 shows where, and may show data."
    )


def settings_words(error: BaseException) -> str:
    """The cause of a panic of Polars that its settings in the environment may have, by name; empty for other errors."""
    harmless = {"POLARS_MAX_THREADS"} if os.environ.get("POLARS_MAX_THREADS", "").strip("+0") else set()
    settings = sorted({name for name in os.environ if name.startswith("POLARS_")} - harmless)
    if type(error).__name__ != "PanicException" or not settings:
        return ""
    return (
        f"The engine broke off while the environment has settings for it ({', '.join(map(_cut, settings[:5]))}): unset "
        "them and try again. Only if it breaks off again the data may be at fault."
    )


def debugging() -> bool:
    return os.environ.get("EQUIPOISE_DEBUG", "") not in ("", "0")


class EquipoiseError(Exception):
    """Base of all errors raised on purpose; `exit_code` is what the command line ends with.

    `problems` lists each problem where there are several.
    """

    exit_code = 2
    problems: tuple[Any, ...] = ()

    def __init__(self, *args: Any) -> None:
        super().__init__(*(shortened(one) if isinstance(one, str) else one for one in args))


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
    names = sorted(map(_cut, available))
    listed = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    return f" There are: {listed}." if names else " There are none."
