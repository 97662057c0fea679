"""Good values for the parameters of public callables, and one good object of every public class, results included."""

import inspect
import random
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from torture.good import table

RESULTS = ("records", "cells", "table", "trial", "trials", "frontier", "verdict", "scores", "roles", "policy", "recipe")
"""What the verbs give back, among the good values."""
VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def parameters(callable_: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a callable that have names of their own."""
    try:
        return [p for p in inspect.signature(callable_).parameters.values() if p.kind not in VARIABLE]
    except (TypeError, ValueError):
        return []


def good(name: str, otherwise: Any) -> Any:
    """A good value for a parameter, by its name."""
    return values().get(name, otherwise)


@cache
def values() -> dict[str, Any]:
    """Good values by the name of the parameter."""
    import numpy as np

    import equipoise as eq
    from equipoise.ground.randomness import Draws

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
    rule, mask, measure = eq.rules.MinCount(3), eq.masks.Recode("age", "10"), eq.risk.Uniques()
    counts = eq.table(records, by=["sex", "region"])
    recipe = eq.Recipe([mask])
    trials = eq.sweep(records, [recipe], [measure, eq.utility.Entropy()])
    frontier = eq.frontier(trials)
    policy = eq.Policy({"uniques": "<= 1"})
    trial = frontier.best[0]
    array = np.array([1.0, 2.0, 3.0])
    return {
        **dict.fromkeys(("records", "released", "original", "data", "population", "file", "left", "right"), records),
        **dict.fromkeys(("source",), "data.csv"),
        **dict.fromkeys(("policy",), policy),
        **dict.fromkeys(("folder",), "release"),
        **dict.fromkeys(("out", "path"), "out"),
        **dict.fromkeys(("column", "attribute", "numerator"), "salary"),
        **dict.fromkeys(("columns", "keys", "known", "by", "given"), ("age", "sex")),
        **dict.fromkeys(("sensitive", "protected", "value"), ("salary",)),
        **dict.fromkeys(("p", "share", "fraction", "rate", "window", "scale", "xi", "t", "alpha"), 0.2),
        **dict.fromkeys(("k", "n", "size", "l", "base", "base_", "count"), 3),
        **dict.fromkeys(("rule", "rules"), rule),
        **dict.fromkeys(("Y", "y", "N", "beta", "counts", "estimates", "variances", "people", "x"), array),
        **dict.fromkeys(("S", "minimum", "user"), 2.0),
        **dict.fromkeys(("table", "old", "new"), counts),
        **dict.fromkeys(("disclosure", "loss"), "uniques:10"),
        "tables": [counts],
        "releases": [records, records],
        **dict.fromkeys(("key", "member", "parameter", "name", "before"), "sex"),
        "roles": roles, "cells": cells, "mask": mask, "masks": (mask,), "level": "10", "recipe": recipe, "seed": 5, "at": 50,
        "recipes": [recipe], "measures": (measure,), "measure": measure, "limits": {"uniques": "< 1"}, "steps": [mask],
        "domain": "region", "target": "sex", "weight": "w", "matrix": np.eye(3), "nonpublication": "cell", "method": "noise",
        "mse": {"salary": 1.0}, "cell": cells.frame.row(0, named=True) if hasattr(cells, "frame") else {}, "groups": {"f": "a", "m": "b"},
        "widths": [10, 20], "plain": {"keys": ["age"]}, "trial": trial, "trials": trials, "frontier": frontier, "best": frontier.best,
        "verdict": policy.judge(trial), "scores": trial.scores, "draws": Draws(5), "reasons": ("x",),
        "accepted": True,
    }  # fmt: skip


@cache
def one(kind: type) -> Any:
    """A good object of a class: what a verb gives, or made of good values where they are known for all it needs."""
    for object_ in results():
        if type(object_) is kind:
            return object_
    needs = [p.name for p in parameters(kind) if p.default is p.empty]
    with suppress(Exception):
        return kind(**{name: good(name, random.Random(1).random()) for name in needs})
    return None


@cache
def results() -> tuple[Any, ...]:
    """What the verbs give back."""
    import equipoise as eq

    known = values()
    records, counts = known["records"], known["table"]
    makers: tuple[Callable[[], Any], ...] = (
        lambda: eq.assess(records),
        lambda: eq.attack(records, records),
        lambda: eq.publication(records, domain="region", target="sex"),
        lambda: eq.publish(records, domain="region", target="sex", cutoff=0.5),
        lambda: eq.tabulate(records, ("sex", "region"), rule=known["rule"]),
        lambda: eq.suggest_roles(table()),
        lambda: eq.theory.mean("noise", s2=1.0, n=50, scale=0.5),
        lambda: eq.attacks.Inference("salary"),
        lambda: eq.losses.Subclasses([0.5, 0.5]),
        lambda: eq.masks.PramMatrix("sex", diagonal=0.5),
        lambda: eq.masks.Swap(("age",), "region", ("sex",), 0.1),
        lambda: eq.risk.AttributeDisclosure("salary"),
        lambda: eq.utility.Estimate("mean:salary"),
        lambda: eq.tables.Suppress(known["rule"]).apply(counts, None),
        lambda: eq.best_coarsening(records, eq.rules.MinCount(2)),
        lambda: _release(known),
    )
    made = [known[name] for name in RESULTS]
    made += [eq.Hierarchy.intervals([10, 20]), *known["scores"]]
    for maker in makers:
        with suppress(Exception):
            made.append(maker())
    return tuple(made)


def _release(known: dict[str, Any]) -> Any:
    import equipoise as eq

    policy = eq.Policy({"uniques": "<= 1"}, allow=("note", "joined", "hh", "region"))
    with tempfile.TemporaryDirectory() as place:
        return eq.release(known["records"], known["recipe"], policy, Path(place) / "out")
