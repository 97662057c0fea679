"""Packages whose exported names are imported when they are first used."""

import re
import sys
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

EXPORT = re.compile(r"^    from (\S+) import (\w+) as \2\b", re.MULTILINE)
"""A line that exports a name to type checkers: the module that has it, and the name."""


class LazyPackage(ModuleType):
    """A package that finds the names it exports in the modules that `exports` says.

    A module that has the name of a function in it (`tables.audit`) never hides the function. Functions and classes
    check their arguments.
    """

    exports: dict[str, str]

    def __getattr__(self, name: str) -> Any:
        if new := self.__dict__["renamed"].get(name):
            errors = import_module("equipoise.ground.errors")
            errors.warn_renamed(f"{self.__name__}.{name}", f"{self.__name__}.{new}")
            return getattr(self, new)
        room = self.__dict__["exports"].get(name)
        if room is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if room == self.__name__:
            value = import_module(f"{room}.{name}")
        else:
            value = import_module(f"{__package__}.argument_types").checked(getattr(import_module(room), name))
        setattr(self, name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        hidden = isinstance(value, ModuleType) and self.exports.get(name, self.__name__) != self.__name__
        if hidden:
            self.__dict__.pop(name, None)
        else:
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.exports})


def export_lazily(package: str, **renamed: str) -> None:
    """Export what a package imports `if TYPE_CHECKING`, each name when it is used.

    The lines `from module import name as name` are read from its source: they are the one list, for type checkers and
    at run time. `renamed` are names of an older version and those that replace them.
    """
    module: Any = sys.modules[package]
    exports = {name: room for room, name in EXPORT.findall(module.__spec__.loader.get_source(package))}
    vars(module).update(exports=exports, renamed=renamed, __all__=sorted(exports))
    module.__class__ = LazyPackage


@cache
def snake(name: str) -> str:
    """Words apart, in lower case.

    >>> snake("PPercent"), snake("TopCode")
    ('p_percent', 'top_code')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
