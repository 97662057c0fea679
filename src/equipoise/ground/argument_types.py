"""Arguments of public callables, checked against their annotations where a name leaves the package.

One mechanism for every function and class that a package exports: what does not fit is refused by the name of the
parameter and what it takes, before any work. A check costs about a microsecond for each argument.
"""

import inspect
import os
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import wraps
from itertools import chain, islice
from numbers import Integral, Real
from typing import Any, Literal, get_args, get_origin

from equipoise.ground.errors import EquipoiseError, ParameterError

Check = Callable[[Any], bool]
MAX_ITEMS = 1000
"""Items of a list that are looked at."""


def checked(value: Any) -> Any:
    """A function with its arguments checked; a class of this package whose construction and methods check theirs.

    A class is changed in place, once: it stays the same object for whoever imported it from its own module.

    >>> def double(number: float) -> float:
    ...     return 2 * number
    >>> checked(double)("a")
    Traceback (most recent call last):
    equipoise.ground.errors.ParameterError: double: number must be a number, got str.
    """
    if inspect.isfunction(value):
        return _before(value, value.__name__)
    if isinstance(value, type) and not issubclass(value, BaseException) and "_checked" not in vars(value):
        value._checked = True  # type: ignore[attr-defined]
        if "__init__" in vars(value) and not getattr(value, "_is_protocol", False):
            value.__init__ = _beside(value.__init__, value.__name__, value)  # type: ignore[method-assign]
        for name, member in list(vars(value).items()):
            if name.startswith("_"):
                continue
            if isinstance(member, classmethod | staticmethod):
                setattr(value, name, type(member)(_before(member.__func__, f"{value.__name__}.{name}")))
            elif inspect.isfunction(member):
                setattr(value, name, _before(member, f"{value.__name__}.{name}"))
    return value


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a type, its items too.

    >>> fits(["age", "sex"], list[str]), fits(["age", 5], list[str])
    (True, False)
    """
    check = _check(kind)
    return check is None or check(value)


def _before(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Check, then call. What is made of our own nouns (a table where records are due) the callable may know better."""
    refuse = _Refusal(function, name)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not refuse(args, kwargs, nouns=False):
            return function(*args, **kwargs)
        try:
            return function(*args, **kwargs)
        except EquipoiseError:
            raise
        except Exception:
            refuse(args, kwargs)
            raise

    return call


def _beside(function: Callable[..., Any], name: str, owner: type) -> Callable[..., Any]:
    """Call, then check what was stored: constructors do no work, put lists into shape, and say more than types do."""
    refuse = _Refusal(function, name)
    parts = [part for part in fields(owner) if part.init] if is_dataclass(owner) else []

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            function(*args, **kwargs)
        except EquipoiseError:
            raise
        except Exception:
            refuse(args, kwargs)
            raise
        refuse((), {part.name: getattr(args[0], part.name) for part in parts} if parts else kwargs)

    return call


class _Refusal:
    """Refuses arguments of a callable that do not fit; the checks are made at the first call."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.function, self.name = function, name
        self.checks: dict[str, Check] | None = None
        self.order: tuple[str, ...] = ()
        self.names: frozenset[str] = frozenset()

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any], nouns: bool = True) -> bool:
        """Whether something does not fit that was let pass because it is one of our nouns."""
        checks = self.checks if self.checks is not None else self._prepare()
        if not self.names.issuperset(kwargs):
            return False  # the call itself says which name it does not know
        doubtful = False
        for name, value in chain(zip(self.order, args, strict=False), kwargs.items()):
            if name in checks and not checks[name](value):
                if nouns or not _noun(value):
                    self._refuse(name, value)
                doubtful = True
        return doubtful

    def _prepare(self) -> dict[str, Check]:
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = inspect.signature(self.function).parameters
        self.names = frozenset(parameters)
        self.order = tuple(one.name for one in parameters.values() if one.kind in positional)
        variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        self.kinds = {
            name: _resolved(one.annotation, self.function)
            for name, one in parameters.items()
            if one.annotation is not inspect.Parameter.empty and one.kind not in variable
        }
        checks = {name: _check(kind) for name, kind in self.kinds.items()}
        defaults = {name: parameters[name].default for name in checks}
        self.checks = {name: _or_default(check, defaults[name]) for name, check in checks.items() if check}
        return self.checks

    def _refuse(self, name: str, value: Any) -> None:
        frame = hasattr(value, "columns") and "Records" in str(self.kinds[name])
        advice = ": give a frame its roles with eq.read(frame, roles)" if frame else ""
        kind = type(value).__name__ if not isinstance(value, type) else f"the class {value.__name__}"
        raise ParameterError(f"{self.name}: {name} must be {_words(self.kinds[name])}, got {kind}{advice}.")


def _noun(value: Any) -> bool:
    """Whether a value is None, which methods without chance take for draws, or made of our own kinds of data."""
    if value is None:
        return True
    inner = value[0] if isinstance(value, list | tuple) and value else value
    return type(inner).__module__.startswith("equipoise.data.")


def _or_default(check: Check, default: Any) -> Check:
    """The default always fits, and None where it is that nothing was named."""
    nothing = isinstance(default, tuple | list | dict) and not default
    return lambda value: value is default or (value is None and nothing) or check(value)


def _resolved(note: Any, function: Callable[..., Any]) -> Any:
    """An annotation as a type; Any where it cannot be known at run time."""
    if not isinstance(note, str):
        return note
    names = vars(sys.modules[function.__module__])
    with suppress(Exception):
        return eval(note, dict(names))  # our own source, as typing.get_type_hints does
    return Any


def _check(kind: Any) -> Check | None:
    """What tells whether a value fits a type; None where everything does."""
    kind = getattr(kind, "__value__", kind)
    origin = get_origin(kind)
    if origin is typing.Annotated:
        return _check(get_args(kind)[0])
    if kind in (Any, object, inspect.Parameter.empty) or isinstance(kind, typing.TypeVar | str | typing.ForwardRef):
        return None
    if kind is None:
        return lambda value: value is None
    if "_SupportsArray" in str(kind):
        return _array
    if origin in (typing.Union, types.UnionType):
        return _any([_check(one) for one in get_args(kind)])
    if origin is Literal:
        words = get_args(kind)
        return lambda value: isinstance(value, str | int | None) and value in words
    if origin is type:
        return lambda value: isinstance(value, type)
    if kind is Callable or origin in (Callable, typing.Callable):
        return callable
    if origin is not None:
        return _container(origin, get_args(kind))
    return _plain(kind)


def _any(checks: list[Check | None]) -> Check | None:
    definite = [check for check in checks if check is not None]
    return None if len(definite) < len(checks) else lambda value: any(check(value) for check in definite)


def _plain(kind: Any) -> Check | None:
    if kind in (int, float, bool):
        return {int: _whole, float: _number, bool: _truth}[kind]
    if not isinstance(kind, type):
        return None
    if kind.__module__ == "pathlib":
        return lambda value: isinstance(value, str | os.PathLike)
    if not getattr(kind, "_is_protocol", False):
        return lambda value: isinstance(value, kind)
    members = [name for base in kind.__mro__[:-1] for name in vars(base) if not name.startswith("_")]
    answers: dict[type, bool] = {}

    def follows(value: Any) -> bool:
        if isinstance(value, type):
            return False
        kind_of = type(value)
        if kind_of not in answers:
            answers[kind_of] = all(hasattr(value, name) for name in members)
        return answers[kind_of]

    return follows


def _container(origin: Any, inside: tuple[Any, ...]) -> Check | None:
    if not isinstance(origin, type):
        return None
    if issubclass(origin, Mapping):
        keys, values = (*map(_check, inside), None, None)[:2]
        return lambda value: isinstance(value, Mapping) and _all(keys, value) and _all(values, value.values())
    if not issubclass(origin, Iterable) or origin.__module__ not in ("builtins", "collections.abc"):
        return _array if origin.__module__ == "numpy" else lambda value: isinstance(value, origin)
    each = None if origin is tuple and Ellipsis not in inside else _check(inside[0]) if inside else None
    alone = inside[:1] == (str,)
    return lambda value: (isinstance(value, str) and alone) or (_listed(value) and _all(each, value))


def _all(check: Check | None, values: Any) -> bool:
    return check is None or not hasattr(values, "__len__") or all(check(one) for one in islice(values, MAX_ITEMS))


def _listed(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes) and not hasattr(value, "columns")


def _array(value: Any) -> bool:
    """Whether a value is, or becomes, an array of numbers."""
    import numpy as np

    if hasattr(value, "columns") or not (_number(value) or hasattr(value, "__array__") or isinstance(value, Sequence)):
        return False
    with suppress(Exception):
        return np.asarray(value).dtype.kind in "biufO"
    return False


def _whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _truth(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ == "bool"


def _words(kind: Any) -> str:
    """A type in words."""
    kind = getattr(kind, "__value__", kind)
    origin, inside = get_origin(kind), get_args(kind)
    if "_SupportsArray" in str(kind):
        return "numbers"
    if origin in (typing.Union, types.UnionType):
        *others, last = dict.fromkeys(map(_words, inside))
        return f"{', '.join(others)} or {last}" if others else last
    if origin is Literal:
        return " or ".join(map(repr, inside))
    if origin is typing.Annotated:
        return _words(inside[0])
    if kind in WORDS:
        return WORDS[kind]
    if inspect.isclass(origin) and issubclass(origin, Mapping):
        return f"a dict of {_words(inside[1])}" if len(inside) > 1 else "a dict"
    if inspect.isclass(origin) and issubclass(origin, Iterable) and inside:
        return f"a list of {_words(inside[0])}"
    return str(getattr(origin or kind, "__name__", kind)).removeprefix("typing.")


WORDS: dict[Any, str] = {
    int: "a whole number", float: "a number", str: "str", bool: "True or False", type(None): "None", None: "None",
}  # fmt: skip
