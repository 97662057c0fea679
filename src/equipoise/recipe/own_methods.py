"""Methods of other packages, found through the entry points of the group `equipoise.methods`."""

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, is_dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

from equipoise.ground.errors import EquipoiseError, MissingExtraError, ParameterError
from equipoise.ground.lazy_exports import snake

GROUP = "equipoise.methods"
VERB_FAMILIES = {"flag": ("rules",), "apply": ("masks", "tables"), "measure": ("risk", "attacks", "utility", "tables")}
"""Families that a class may be of, by the verb it has; the first is meant where a rule or a mask names none."""


@dataclass(frozen=True)
class OwnMethod:
    """A method of another package, and where it comes from."""

    method: type
    family: str
    package: str
    version: str


@dataclass(frozen=True)
class OwnMethods:
    """What other packages bring: methods by name, what names they may not have, and what is wrong otherwise."""

    methods: dict[str, OwnMethod]
    clashes: dict[str, EquipoiseError]
    faults: tuple[EquipoiseError, ...]

    @property
    def problems(self) -> tuple[EquipoiseError, ...]:
        return (*self.clashes.values(), *self.faults)


def own_methods(built_in: frozenset[str]) -> OwnMethods:
    """The methods of all installed packages, read once; none may have the name of a built-in one."""
    return _read(tuple(sys.path), built_in)


@cache
def _read(path: tuple[str, ...], built_in: frozenset[str]) -> OwnMethods:
    methods: dict[str, OwnMethod] = {}
    clashes: dict[str, EquipoiseError] = {}
    faults: list[EquipoiseError] = []
    for entry in sorted(entry_points(group=GROUP), key=lambda e: (_origin(e), e.name)):
        try:
            for own in _methods_of(entry):
                name = snake(own.method.__name__)
                other = "equipoise" if name in built_in else methods[name].package if name in methods else None
                if other and not (name in methods and methods[name].method is own.method):
                    clashes[name] = _clash(name, _origin(entry), other)
                methods.setdefault(name, own)
        except EquipoiseError as fault:
            faults.append(fault)
    return OwnMethods({n: own for n, own in methods.items() if n not in clashes}, clashes, tuple(faults))


def _clash(name: str, origin: str, other: str) -> ParameterError:
    return ParameterError(f"The package {origin} has a method {name!r}, as {other} has: give it another name.")


def _methods_of(entry: EntryPoint) -> Iterator[OwnMethod]:
    package, version = (entry.dist.name, entry.dist.version) if entry.dist else (entry.module, "")
    for method in _classes(entry):
        yield OwnMethod(method, _family(method, _origin(entry)), package, version)


def _classes(entry: EntryPoint) -> list[type]:
    """The class that an entry point names, or the classes in `__all__` of the module."""
    target = _loaded(entry)
    if isinstance(target, type):
        return [target]
    names = getattr(target, "__all__", None) if isinstance(target, ModuleType) else None
    if names is None:
        raise ParameterError(
            f"The package {_origin(entry)} names {entry.value!r}: no class, nor a module with __all__."
        )
    return [value for value in (getattr(target, name, None) for name in names) if isinstance(value, type)]


def _loaded(entry: EntryPoint) -> Any:
    """What an entry point names; any error of another package may quote anything, so its text is left out."""
    try:
        return entry.load()
    except Exception as error:
        raise MissingExtraError(
            f"The package {_origin(entry)} cannot be imported ({type(error).__name__}): mend or uninstall it."
        ) from None


def _family(method: type, origin: str) -> str:
    """The family of a method: as it says, else by its verb."""
    verb = next((verb for verb in VERB_FAMILIES if hasattr(method, verb)), None)
    if verb is None or not is_dataclass(method) or not method.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise ParameterError(
            f"{method.__name__} of the package {origin} is no method: it must be a frozen dataclass with flag (a "
            "rule), apply (a mask) or measure (a measure)."
        )
    families = VERB_FAMILIES[verb]
    family = getattr(method, "family", None if verb == "measure" else families[0])
    if family not in families:
        raise ParameterError(
            f"{method.__name__} of the package {origin} must say family = one of {', '.join(map(repr, families))}."
        )
    return str(family)


def _origin(entry: EntryPoint) -> str:
    return f"{entry.dist.name!r} {entry.dist.version}" if entry.dist else repr(entry.module)


def packages_in(texts: Iterable[str], own: OwnMethods) -> dict[str, str]:
    """The packages, with their versions, of the own methods that are named in labels of methods and scores."""
    words = set(re.findall(r"\w+", " ".join(texts)))
    return {one.package: one.version for name, one in sorted(own.methods.items()) if name in words}
