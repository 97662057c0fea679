"""Wrong calls of every public callable of Python: one parameter of a good call is something else.

Callables are the functions and classes of the front door and the families, and the methods, properties and operators of
one good object of every public class, and of every result that a verb gives back.
"""

import inspect
import random
import types
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from torture.attempt import Attempt
from torture.good import lay_out, shelf, table
from torture.good_objects import good, one, parameters, results, values
from torture.odd import odd_object

NOT_CALLED = ("demo", "open")
"""They serve pages or take minutes."""
OPERATORS = ("__call__", "__getitem__", "__contains__", "__or__", "__and__", "__len__", "__iter__", "_repr_html_")


class Wrong:
    """An object of no use to anybody."""

    def __repr__(self) -> str:
        return "Wrong()"


def attempt(rng: random.Random, place: Path, folder: Path) -> Attempt:
    lay_out(shelf(place), folder, "data.csv", "region.csv", "policy.toml", "release")
    name, callable_ = rng.choice(public())
    known = parameters(callable_)
    arguments = {
        p.name: good(p.name, odd_object(rng))
        for p in known
        if p.default is p.empty or (rng.random() < 0.2 and p.name in values())
    }
    chosen = rng.choice([p.name for p in known] or ["x"])
    how = rng.choice(("object", "odd", "odd", "odd", "list", "frame", "misspelt", "missing", "good"))
    if how == "misspelt":
        arguments[f"{chosen}e"] = arguments.pop(chosen, 1)
    elif how == "missing":
        arguments.pop(chosen, None)
    elif how != "good" and known:
        choices = {"object": Wrong, "odd": partial(odd_object, rng), "list": lambda: [good(chosen, 1)], "frame": table}
        arguments[chosen] = choices[how]()
    wrong = chosen if how == "object" and known and not _anything(name, callable_, chosen) else None
    shown = ", ".join(f"{key}={_short(value)}" for key, value in arguments.items())
    return Attempt(
        f"{name}({shown})",
        call=partial(_run, callable_, arguments),
        wrong_type=wrong,
        names=tuple(p.name for p in known),
    )


def _run(callable_: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Call it; what belongs to others (frames, arrays) is data by its nature, and its repr is not looked at."""
    named = inspect.signature(callable_).parameters.values()
    alone = [p.name for p in named if p.kind is p.POSITIONAL_ONLY]
    placed = [arguments[name] for name in alone if name in arguments]
    answer = callable_(*placed, **{name: value for name, value in arguments.items() if name not in alone})
    if isinstance(answer, types.GeneratorType):
        answer = list(zip(range(3), answer, strict=False))
    ours = type(answer).__module__.startswith("equipoise") or isinstance(answer, str)
    return answer if ours and not any(answer is value for value in arguments.values()) else None


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:
        return type(value).__name__
    return type(value).__name__ if len(text) > 60 or "CANARY" in text or " at 0x" in text else text


def _anything(name: str, callable_: Callable[..., Any], parameter: str) -> bool:
    """Whether a parameter takes anything, by what it says of itself; operators answer as Python's do."""
    note = inspect.signature(callable_).parameters[parameter].annotation
    notes = ("Any", "object", "~Answer", "typing.Any")
    return name.endswith("__") or note in (inspect.Parameter.empty, Any, object) or str(note) in notes


@cache
def public() -> list[tuple[str, Callable[..., Any]]]:
    """Every public callable by name."""
    return sorted(dict(_public()).items())


def _public() -> Iterator[tuple[str, Callable[..., Any]]]:
    import equipoise as eq

    rooms = {"eq": eq, **{f"eq.{family}": getattr(eq, family) for family in eq.FAMILIES}}
    for room, module in rooms.items():
        for name in module.__all__:
            value = getattr(module, name)
            if name in NOT_CALLED or isinstance(value, types.ModuleType) or room == "eq.demo":
                continue
            if isinstance(value, type) and issubclass(value, BaseException):
                continue
            yield f"{room}.{name}", value
            if isinstance(value, type):
                yield from _members(f"{room}.{name}", value, one(value))
    exported = {value for _, value in vars(eq).items() if isinstance(value, type)}
    for result in (object_ for object_ in results() if type(object_) not in exported):
        yield from _members(type(result).__name__, type(result), result)


def _members(name: str, kind: type, object_: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Class methods, and the methods, properties and operators of one good object of the class."""
    for base in kind.__mro__:
        for inner, value in vars(base).items() if base.__module__.startswith("equipoise") else ():
            if inner.startswith("_") and inner not in OPERATORS:
                continue
            if isinstance(value, classmethod | staticmethod):
                yield f"{name}.{inner}", getattr(kind, inner)
            elif object_ is not None and isinstance(value, property):
                yield f"{name}().{inner}", _property(object_, inner)
            elif object_ is not None and inspect.isfunction(value):
                yield f"{name}().{inner}", getattr(object_, inner)


def _property(object_: Any, name: str) -> Callable[[], Any]:
    return lambda: getattr(object_, name)
