"""Interfaces of the three kinds of method: a Rule flags cells, a Mask changes data, a Measure scores it."""

from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import polars as pl

from equipoise.ground.lazy_exports import snake
from equipoise.methods.score import Score

if TYPE_CHECKING:
    from equipoise.data.cells import Cells
    from equipoise.ground.randomness import Draws

Needs = Literal["cells", "records"]
"""Input of a measure: cells counted by `by(roles)`, or records."""


@runtime_checkable
class Rule(Protocol):
    """A disclosure rule: flags unsafe cells."""

    def flag(self, cells: "Cells") -> pl.Series: ...


@runtime_checkable
class Mask(Protocol):
    """A masking method: returns changed data; draws come from the secret seed of the recipe."""

    def apply(self, data: Any, draws: "Draws") -> Any: ...


@runtime_checkable
class Coarsening(Mask, Protocol):
    """A mask whose released value is a function of the original value: it can act on cells alone."""

    def roll_up(self, cells: "Cells") -> "Cells": ...


@runtime_checkable
class Measure(Protocol):
    """A risk or utility measure of a release against its original; a raw file is measured against itself."""

    def measure(self, released: Any, original: Any) -> Score: ...


@runtime_checkable
class OnCells(Measure, Protocol):
    """A measure that needs only cells, counted by the columns it names."""

    def by(self, roles: Any) -> tuple[str, ...]: ...


def name_of(method: type) -> str:
    """The snake-case name of a method, as scores and policies write it.

    >>> class PopulationUniques: ...
    >>> name_of(PopulationUniques)
    'population_uniques'
    """
    return snake(method.__name__)


def label(method: Any) -> str:
    """The name of a method with the parameters that differ from their defaults: unique within a trial.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Uniques:
    ...     k: int = 1
    >>> label(Uniques()), label(Uniques(k=3))
    ('uniques', 'uniques(k=3)')
    """
    if getattr(method, "known_as", ""):
        return str(method.known_as)
    if hasattr(method, "mark"):
        return f" {method.mark} ".join(label(rule) for rule in method.rules)
    parameters = [
        (f.name, getattr(method, f.name)) for f in fields(method) if f.init and getattr(method, f.name) != _default(f)
    ]
    texts = ((name, label(value) if isinstance(value, Rule) else value) for name, value in parameters)
    inside = ", ".join(f"{name}={value!r}" for name, value in texts)
    return name_of(type(method)) + (f"({inside})" if inside else "")


def _default(field: Any) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()
