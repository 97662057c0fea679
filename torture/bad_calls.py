"""Wrong calls of every public callable of Python: one parameter of a good call is something else."""

import inspect
import random
import types
from collections.abc import Callable, Iterator
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import Any

from torture.attempt import Attempt
from torture.good import lay_out, shelf, table
from torture.odd import ODD_TEXTS

NOT_CALLED = ("demo", "open")
"""They serve pages or take minutes."""


class Wrong:
    """An object of no use to anybody."""

    def __repr__(self) -> str:
        return "Wrong()"


def attempt(rng: random.Random, place: Path, folder: Path) -> Attempt:
    lay_out(shelf(place), folder, "data.csv", "region.csv", "policy.toml", "release")
    name, callable_ = rng.choice(public())
    parameters = [p for p in _parameters(callable_) if p.name not in ("self", "cls")]
    values = {
        p.name: _good(p.name, rng)
        for p in parameters
        if p.default is p.empty or (rng.random() < 0.2 and _known(p.name))
    }
    values = {key: value for key, value in values.items() if key not in ("args", "kwargs", "arguments")}
    chosen = rng.choice([p.name for p in parameters] or ["x"])
    how = rng.choice(("object", "odd", "odd", "list", "frame", "misspelt", "missing", "good"))
    if how == "misspelt":
        values[f"{chosen}e"] = values.pop(chosen, 1)
    elif how == "missing":
        values.pop(chosen, None)
    elif how != "good":
        values[chosen] = {"object": Wrong(), "odd": _odd(rng), "list": [_good(chosen, rng)], "frame": table()}[how]
    wrong = chosen if how == "object" and parameters and not _anything(callable_, chosen) else None
    shown = ", ".join(f"{key}={_short(value)}" for key, value in values.items())
    return Attempt(f"{name}({shown})", call=partial(_run, callable_, values), writes=("out",), wrong_type=wrong)


def _run(callable_: Callable[..., Any], values: dict[str, Any]) -> Any:
    answer = callable_(**values)
    if any(answer is value for value in values.values()):
        return None
    return list(zip(range(3), answer, strict=False)) if isinstance(answer, types.GeneratorType) else answer


def _short(value: Any) -> str:
    return type(value).__name__ if len(text := repr(value)) > 60 or "CANARY" in text else text


def _parameters(callable_: Callable[..., Any]) -> list[inspect.Parameter]:
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    try:
        return [p for p in inspect.signature(callable_).parameters.values() if p.kind not in kinds]
    except (TypeError, ValueError):
        return []


def _anything(callable_: Callable[..., Any], name: str) -> bool:
    """Whether a parameter takes anything, by what it says of itself."""
    note = inspect.signature(callable_).parameters[name].annotation
    return note in (inspect.Parameter.empty, Any, object) or str(note) in ("Any", "object", "~Answer", "typing.Any")


@cache
def public() -> list[tuple[str, Callable[..., Any]]]:
    """Every public callable by name: functions and classes of the front door and the families, and their methods."""
    return sorted(_public(), key=lambda pair: pair[0])


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
                yield from _methods(f"{room}.{name}", value)


def _methods(name: str, kind: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Class methods, and the methods of one good object of the class."""
    for inner, value in vars(kind).items():
        if inner.startswith("_"):
            continue
        if isinstance(value, classmethod | staticmethod):
            yield f"{name}.{inner}", getattr(kind, inner)
        elif inspect.isfunction(value) and _one(kind) is not None:
            yield f"{name}().{inner}", getattr(_one(kind), inner)


@cache
def _one(kind: type) -> Any:
    """A good object of a class, where good values are known for all that it needs."""
    needs = [p.name for p in _parameters(kind) if p.default is p.empty]
    try:
        return kind(**{name: _good(name, random.Random(1)) for name in needs})
    except Exception:
        return None


@cache
def _goods() -> dict[str, Any]:
    """Good values by the name of the parameter."""
    import equipoise as eq

    roles = eq.Roles(
        ["age", "sex"],
        numeric="salary",
        weight="w",
        id="id",
        direct="note",
        hierarchies={"age": eq.Hierarchy.intervals([10, 20])},
    )
    records = eq.read(table(), roles)
    cells = eq.count(records)
    rule, mask = eq.rules.MinCount(3), eq.masks.Recode("age", "10")
    counts = eq.table(records, by=["sex", "region"])
    return {
        **dict.fromkeys(("records", "released", "original", "data", "population", "file", "left", "right"), records),
        **dict.fromkeys(("source",), "data.csv"),
        **dict.fromkeys(("policy",), eq.Policy({"uniques": "< 1"})),
        **dict.fromkeys(("folder",), "release"),
        **dict.fromkeys(("out", "path"), "out"),
        **dict.fromkeys(("column", "attribute", "numerator"), "salary"),
        **dict.fromkeys(("columns", "keys", "known", "by", "given"), ("age", "sex")),
        **dict.fromkeys(("sensitive", "protected", "value"), ("salary",)),
        **dict.fromkeys(("p", "share", "fraction", "rate", "window", "scale", "xi", "t", "alpha"), 0.2),
        **dict.fromkeys(("k", "n", "size", "l", "base", "base_", "count"), 3),
        **dict.fromkeys(("rule", "rules"), rule),
        "roles": roles, "cells": cells, "mask": mask, "masks": (mask,), "level": "10", "recipe": eq.Recipe([mask]), "table": counts,
        "recipes": [eq.Recipe([mask])], "measures": (eq.risk.Uniques(),), "measure": eq.risk.Uniques(), "at": 50, "limits": {"uniques": "< 1"},
        "seed": 5, "joined": date(2000, 1, 1), "domain": "region", "target": "sex", "weight": "w", "steps": [mask],
    }  # fmt: skip


def _known(name: str) -> bool:
    return name in _goods()


def _good(name: str, rng: random.Random) -> Any:
    return _goods().get(name, _odd(rng))


def _odd(rng: random.Random) -> Any:
    import numpy as np
    import polars as pl

    odd: tuple[Any, ...] = (
        None, True, 0, -1, 1, 2**63, 10**30, 0.5, -0.5, float("nan"), float("inf"), "", "age", "nothing", b"age", (), [], {}, set(), ("age",),
        ["age", "age"], {"uniques": "< 1"}, {"entrpy": "> 1"}, {1: 2}, [None], [[1]], Path("data.csv"), Path("none.csv"), date(2000, 1, 1), int,
        print, rng.choice(ODD_TEXTS), pl.Series("age", [1, 2]), pl.DataFrame(), table().lazy(), table().to_pandas(), np.zeros(3), np.zeros((2, 2)),
        np.int64(3), np.float64(0.5), *_goods().values(),
    )  # fmt: skip
    return rng.choice(odd)
