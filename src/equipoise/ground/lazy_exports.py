"""Packages whose exported names are imported when they are first used."""

import re
import sys
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any


class LazyPackage(ModuleType):
    """A package that finds a name of its `__all__` in the module called so, or in the one that `rooms` names.

    A module that has the name of a function in it (`tables.audit`) never hides the function.
    """

    def __getattr__(self, name: str) -> Any:
        if name not in self.__dict__.get("__all__", ()):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        room = self.__dict__["rooms"].get(name, snake(name))
        value = getattr(import_module(room if "." in room else f"{self.__name__}.{room}"), name)
        setattr(self, name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        hidden = isinstance(value, ModuleType) and name in self.__dict__.get("__all__", ())
        super().__setattr__(name, getattr(value, name) if hidden else value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.__dict__["__all__"]})


def export_lazily(package: str, **rooms: str) -> None:
    """Let the names in `__all__` of a package be imported when they are used.

    A class is looked for in the module of its name in snake case; `rooms` has the module of every other name.
    """
    module = sys.modules[package]
    vars(module)["rooms"] = rooms
    module.__class__ = LazyPackage


@cache
def snake(name: str) -> str:
    """Words apart, in lower case.

    >>> snake("PPercent"), snake("TopCode")
    ('p_percent', 'top_code')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
