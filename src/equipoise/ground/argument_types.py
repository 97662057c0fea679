"""Arguments of public callables, checked against their annotations where a name leaves the package.

One mechanism for every function and class that a package exports: what does not fit is refused by the name of the
parameter and what it takes, before any work. A check costs about a microsecond for each argument.
"""

import inspect
import os
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import wraps
from itertools import chain, islice
from numbers import Integral, Real
from typing import Any, Literal, get_args, get_origin

from equipoise.ground.errors import (
    DataError,
    EquipoiseError,
    ParameterError,
    debugging,
    engine_words,
    of_engine,
)
from equipoise.ground.system import disk_error

Check = Callable[[Any], bool]
PACKAGE = __name__.partition(".")[0] + "."
MAX_ITEMS = 1000
"""Items of a list that are looked at."""
MAX_DRAWN = 1_000_000
"""Items that are taken from an iterator, which may have no end, where a list is due."""


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
        return _before(value, value.__name__, verb=True)
    if isinstance(value, type) and not issubclass(value, BaseException):
        own = vars(value).get("__init__")
        if own and not getattr(value, "_is_protocol", False) and not hasattr(own, "__wrapped__"):
            value.__init__ = _beside(value.__init__, value.__name__, value)  # type: ignore[method-assign]
        _check_methods(value)
    return value


def _check_methods(kind: Any) -> None:
    """Check the arguments of methods: of an exported class, of what it inherits, and of what a verb gives back."""
    if not isinstance(kind, type) or not kind.__module__.startswith(PACKAGE) or "_checked" in vars(kind):
        return
    kind._checked = True  # type: ignore[attr-defined]
    for base in kind.__bases__:
        _check_methods(base)
    for name, member in list(vars(kind).items()):
        if name.startswith("_") and name != "__call__":
            continue
        if isinstance(member, classmethod | staticmethod):
            setattr(kind, name, type(member)(_before(member.__func__, f"{kind.__name__}.{name}")))
        elif inspect.isfunction(member):
            setattr(kind, name, _before(member, f"{kind.__name__}.{name}"))


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a type, its items too.

    >>> fits(["age", "sex"], list[str]), fits(["age", 5], list[str])
    (True, False)
    """
    check = _check(kind)
    return check is None or check(value)


def _before(function: Callable[..., Any], name: str, *, verb: bool = False) -> Callable[..., Any]:
    """Check, then call. What is made of our own nouns (a table where records are due) the callable may know better.

    What a `verb` gives back has methods too: these check their arguments from then on.
    """
    refuse = _Refusal(function, name, verb)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = refuse.with_lists(args, kwargs)
        refuse(args, kwargs, nouns=False)
        try:
            return function(*args, **kwargs)
        except EquipoiseError:
            raise
        except BaseException as error:
            if not isinstance(error, Exception) and not of_engine(error):
                raise
            refuse(args, kwargs)
            if isinstance(error, ValueError):
                refuse.unlike_arrays(args, kwargs)
            if not of_engine(error) or disk_error(error)[1]:
                raise
            raise DataError(engine_words(error)) from (error if debugging() else None)

    return call


def _beside(function: Callable[..., Any], name: str, owner: type) -> Callable[..., Any]:
    """Call, then check what was stored: constructors do no work, put lists into shape, and say more than types do."""
    refuse = _Refusal(function, name)
    parts = [part for part in fields(owner) if part.init] if is_dataclass(owner) else []

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = refuse.with_lists(args, kwargs)
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

    def __init__(self, function: Callable[..., Any], name: str, verb: bool = False) -> None:
        self.function, self.name, self.verb = function, name, verb
        self.checks: dict[str, Check] | None = None
        self.order: tuple[str, ...] = ()
        self.names: frozenset[str] = frozenset()

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any], nouns: bool = True) -> None:
        """Refuse what does not fit; without `nouns` our own nouns pass."""
        checks = self.checks if self.checks is not None else self._prepare()
        if not self.names.issuperset(kwargs):
            return  # the call itself says which name it does not know
        for name, value in chain(zip(self.order, args, strict=False), kwargs.items()):
            if name in checks and not checks[name](value) and (nouns or not _noun(value)):
                self._refuse(name, value)

    def with_lists(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, with lists in place of iterators, arrays and columns where a list is due."""
        if self.checks is None:
            self._prepare()
        if not self.lists:
            return args, kwargs
        placed = [self._listed(name, value) for name, value in zip(self.order, args)]  # noqa: B905
        by_name = {name: self._listed(name, value) for name, value in kwargs.items()}
        return (*placed, *args[len(placed) :]), by_name

    def _listed(self, name: str, value: Any) -> Any:
        """An argument, as a list where one is due; an iterator is drawn from only so far."""
        if name not in self.lists:
            return value
        listed = list(islice(value, MAX_DRAWN + 1)) if isinstance(value, Iterator) else _as_list(value)
        if isinstance(value, Iterator) and len(listed) > MAX_DRAWN:
            raise ParameterError(
                f"{self.name}: {name} is an iterator of more than {MAX_DRAWN:,} items, or without end: give a list."
            )
        return listed

    def unlike_arrays(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Refuse arrays of which one has another number of values than the others."""
        import numpy as np

        arguments = {**dict(zip(self.order, args, strict=False)), **kwargs}
        shapes = {name: np.shape(arguments[name]) for name in self.arrays if arguments.get(name) is not None}
        try:
            np.broadcast_shapes(*shapes.values())
        except ValueError:
            raise ParameterError(
                f"{self.name}: {' and '.join(shapes)} must have as many values as each other."
            ) from None

    def _prepare(self) -> dict[str, Check]:
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        signature = inspect.signature(self.function)
        parameters = signature.parameters
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
        self.arrays = [name for name, check in checks.items() if check in (_array, _formula_numbers)]
        self.lists = {name for name, kind in self.kinds.items() if _takes_lists(kind)}
        if self.verb:
            _check_methods(_resolved(signature.return_annotation, self.function))
        return self.checks

    def _refuse(self, name: str, value: Any) -> None:
        frame = hasattr(type(value), "columns") and "Records" in f"{self.name} {self.kinds[name]}"
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
        return _formula_numbers if "numbers" in kind.__metadata__ else _check(get_args(kind)[0])
    if isinstance(kind, typing.TypeVar) and kind.__constraints__:
        return _any([_check(one) for one in kind.__constraints__])
    if kind in (Any, object, inspect.Parameter.empty) or isinstance(kind, typing.TypeVar | str | typing.ForwardRef):
        return None
    if kind is None:
        return lambda value: value is None
    if "_SupportsArray" in str(kind):
        return _array
    if _is_union(kind):
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


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (typing.Union, types.UnionType)


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
        return lambda value: isinstance(value, origin)
    if origin is tuple and Ellipsis not in inside:
        return lambda value: _listed(value) and not isinstance(value, Mapping) and len(value) == len(inside)
    each = _check(inside[0]) if inside else None
    alone, ordered = inside[:1] == (str,), issubclass(origin, Sequence)
    return lambda value: (
        (isinstance(value, str) and alone)
        or (_listed(value) and not (ordered and isinstance(value, Mapping)) and _all(each, value))
    )


def _takes_lists(kind: Any) -> bool:
    """Whether a parameter takes a list or a tuple, and no array or column."""
    kind = getattr(kind, "__value__", kind)
    kinds = [get_origin(one) or one for one in (get_args(kind) if _is_union(kind) else (kind,))]
    plain = [one for one in kinds if isinstance(one, type) and one.__module__ in ("builtins", "collections.abc")]
    lists = [one for one in plain if issubclass(one, Iterable) and one is not str and not issubclass(one, Mapping)]
    ours = [one for one in kinds if isinstance(one, type) and one.__module__.startswith((PACKAGE, "pathlib"))]
    return bool(lists) and all(one in plain or one in ours for one in kinds if isinstance(one, type))


def _as_list(value: Any) -> Any:
    """A set, an array or a column as a list; anything else as it is."""
    if isinstance(value, Set):
        return list(value)
    if not hasattr(type(value), "dtype") or isinstance(value, Real):
        return value
    return value.to_list() if hasattr(type(value), "to_list") else value.tolist()


def _all(check: Check | None, values: Any) -> bool:
    return check is None or not hasattr(values, "__len__") or all(check(one) for one in islice(values, MAX_ITEMS))


def _listed(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes) and not hasattr(type(value), "columns")


def _array(value: Any) -> bool:
    """Whether a value is, or becomes, an array of numbers."""
    import numpy as np

    listed = hasattr(type(value), "__array__") or isinstance(value, Sequence)
    if hasattr(type(value), "columns") or not (_number(value) or listed):
        return False
    with suppress(Exception):
        array = np.asarray(value)
        return array.dtype.kind in "biuf" or (array.dtype.kind == "O" and _all(_number_or_none, array.ravel()))
    return False


def _number_or_none(value: Any) -> bool:
    return value is None or isinstance(value, Real)


def _formula_numbers(value: Any) -> bool:
    """Whether a value is a number or an array of numbers, no list."""
    import numpy as np

    return _number(value) or (isinstance(value, np.ndarray) and value.dtype.kind in "biuf")


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
    if _is_union(kind):
        *others, last = dict.fromkeys(map(_words, inside))
        return f"{', '.join(others)} or {last}" if others else last
    if origin is Literal:
        return " or ".join(map(repr, inside))
    if origin is typing.Annotated:
        return "a number or an array of numbers" if "numbers" in kind.__metadata__ else _words(inside[0])
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
