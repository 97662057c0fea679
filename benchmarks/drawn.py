"""Policies drawn by seed: a file, keys, hierarchies, what may be tried, and limits that some of it meets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import prod
from typing import Any, Literal

import numpy as np
import polars as pl

import equipoise as eq
from equipoise.demo.business import business
from equipoise.demo.hospital import hospital
from equipoise.demo.survey import survey
from equipoise.methods.method import Measure
from equipoise.policies.coarsenings import coarsenings
from equipoise.policies.sections import Candidate
from equipoise.recipe.catalogue import find
from equipoise.recipe.recipe import recipes

Rng = np.random.Generator
SEED = 7
KINDS = (
    "coarsenings", "noise", "coding", "pram", "coarsenings", "microaggregate", "rank swap", "coarsenings", "suppress",
    "rivals",
)  # fmt: skip
LEAST, MOST = 60, 400
"""Trials of an exhaustive grid."""


@dataclass(frozen=True)
class Drawn:
    """A policy drawn by seed; its limits are quantiles of what the whole grid scores, said before it is tried."""

    kind: str
    records: eq.Records = field(repr=False)
    candidates: tuple[Candidate, ...]
    measures: tuple[Measure, ...]
    prefer: Literal["utility", "risk"]
    wanted: tuple[tuple[int, float], ...]
    """The measures that are limited, and the share of the grid that meets each limit."""

    def grid(self) -> list[eq.Recipe]:
        """Every recipe of the candidates."""
        found: list[eq.Recipe] = []
        for candidate in self.candidates:
            if candidate.coarsenings:
                found += [eq.Recipe(recipe.masks, SEED) for recipe in coarsenings(self.records)]
            steps = [_grid(table) for table in candidate.masks]
            found += recipes(*steps, seed=SEED) if steps else []
        return found

    def policy(self, every: Sequence[eq.Trial]) -> eq.Policy:
        """The limits in numbers."""
        limits = {}
        for place, share in self.wanted:
            score = every[0].scores[place]
            low = score.better == "lower"
            values = [trial.scores[place].value for trial in every]
            bound = float(np.quantile(values, share if low else 1 - share))
            limits[score.name] = f"{'<=' if low else '>='} {bound:.6g}"
        return eq.Policy(limits, self.prefer)


def drawn(seed: int) -> Drawn:
    """The policy of a seed; the kinds take turns."""
    rng = np.random.default_rng([seed, 10])
    kind = KINDS[seed % len(KINDS)]
    while True:
        records = FILES[int(rng.integers(len(FILES)))](rng)
        candidates, measures = _CASES[kind](rng, records)
        made = Drawn(kind, records, candidates, measures, _side(rng), _wanted(rng, measures))
        if LEAST <= _size(made) <= MOST:
            return made


def _side(rng: Rng) -> Literal["utility", "risk"]:
    return "risk" if rng.uniform() < 0.15 else "utility"


def _wanted(rng: Rng, measures: Sequence[Measure]) -> tuple[tuple[int, float], ...]:
    """The first measure is limited always; another one in three policies of ten."""
    found = [(0, float(rng.uniform(0.05, 0.8)))]
    if rng.uniform() < 0.3:
        found.append((int(rng.integers(1, len(measures))), float(rng.uniform(0.3, 0.95))))
    return tuple(found)


def _size(made: Drawn) -> int:
    trees = [
        made.records.roles.hierarchies[key] for key in made.records.roles.keys if key in made.records.roles.hierarchies
    ]
    whole = prod(len(tree.allowed) for tree in trees)
    return sum(
        whole if candidate.coarsenings else prod(len(_grid(table)) for table in candidate.masks)
        for candidate in made.candidates
    )


def _grid(table: dict[str, Any]) -> Sequence[Any]:
    given = {k: tuple(v) if k in ("columns", "keys") else v for k, v in table.items() if k != "use"}
    return eq.grid(find(str(table["use"]), "mask"), **given)


# Files ----------------------------------------------------------------------------------------------------------------

whole_survey, whole_business, whole_hospital = cache(survey), cache(business), cache(hospital)


def _from_survey(rng: Rng) -> eq.Records:
    trees = {
        "age": eq.Hierarchy.intervals(_widths(rng, [2, 3, 5], 4), closed="right", top=90),
        "salary": eq.Hierarchy.intervals(_widths(rng, [500, 1000, 2500], 4), closed="right", alone=[0]),
        "rooms": eq.Hierarchy.intervals(_widths(rng, [2], 3)),
        "housing_cost": eq.Hierarchy.intervals(_widths(rng, [50, 100], 4), closed="right"),
    }
    others = ["sex", "race", "education", "marital", "tenure", "region"]
    return _records(rng, whole_survey(), trees, others, ["salary", "housing_cost"], "person")


def _from_business(rng: Rng) -> eq.Records:
    trees = {
        "industry": eq.Hierarchy.prefix(*_lengths(rng, [4, 3, 2, 1]), root=_root(rng)),
        "region": eq.Hierarchy.prefix(*_lengths(rng, [4, 3, 2]), root=_root(rng)),
        "employees": eq.Hierarchy.intervals(_widths(rng, [5, 10], 4), top=500),
    }
    return _records(rng, whole_business(), trees, ["size_class", "legal_form"], ["turnover", "wages"], "enterprise")


def _from_hospital(rng: Rng) -> eq.Records:
    trees = {
        "age": eq.Hierarchy.intervals(_widths(rng, [2, 5], 4), top=90),
        "postcode": eq.Hierarchy.prefix(*_lengths(rng, [4, 3, 2, 1]), root=_root(rng)),
        "admission": eq.Hierarchy.dates("week") | eq.Hierarchy.dates("month", "quarter", "year"),
        "diagnosis": eq.Hierarchy.prefix(*_lengths(rng, [3, 2, 1]), root=_root(rng)),
        "days": eq.Hierarchy.intervals(_widths(rng, [2, 3], 3), top=30),
    }
    return _records(rng, whole_hospital(), trees, ["sex", "hospital", "outcome"], ["cost", "days"], "stay")


def _made(rng: Rng) -> eq.Records:
    size = 4000
    trees, columns = {}, {}
    for place in range(4):
        many = int(rng.integers(12, 120))
        shares = rng.dirichlet(np.full(many, rng.uniform(0.3, 3)))
        columns[f"key{place}"] = rng.choice(many, size, p=shares)
        trees[f"key{place}"] = eq.Hierarchy.intervals(_widths(rng, [2, 3], 4), root=_root(rng))
    columns |= {f"class{place}": rng.integers(0, int(rng.integers(2, 7)), size) for place in range(2)}
    base = rng.lognormal(8, rng.uniform(0.3, 1.2), size)
    numbers = {"x": base.round(2), "y": (base * rng.lognormal(0, 0.4, size)).round(2)}
    table = pl.DataFrame({"id": np.arange(size), **columns, **numbers})
    return _records(rng, table, trees, ["class0", "class1"], ["x", "y"], "id")


FILES: tuple[Callable[[Rng], eq.Records], ...] = (_from_survey, _from_business, _from_hospital, _made)


def _records(
    rng: Rng, table: pl.DataFrame, trees: dict[str, Any], others: list[str], numeric: list[str], id: str
) -> eq.Records:
    """Some rows, some keys with a hierarchy, some without."""
    rows = np.sort(rng.choice(table.height, int(rng.integers(400, 1500)), replace=False))
    coarse = [str(key) for key in rng.permutation(list(trees))[: int(rng.integers(2, min(4, len(trees)) + 1))]]
    fine = [str(key) for key in rng.permutation(others)[: int(rng.integers(1, 3))]]
    roles = eq.Roles(
        [*fine, *coarse],
        numeric=[column for column in numeric if column not in coarse] or numeric[:1],
        id=id,
        hierarchies={key: trees[key] for key in coarse},
    )
    return eq.read(table[rows].select(list(dict.fromkeys([id, *fine, *coarse, *numeric]))), roles)


def _widths(rng: Rng, first: list[int], most: int) -> list[int]:
    """Widths that nest."""
    found = [int(rng.choice(first))]
    for _ in range(int(rng.integers(1, most))):
        found.append(found[-1] * int(rng.integers(2, 4)))
    return found


def _lengths(rng: Rng, all_of: list[int]) -> list[int]:
    kept = sorted(rng.choice(all_of, int(rng.integers(2, len(all_of) + 1)), replace=False), reverse=True)
    return [int(length) for length in kept]


def _root(rng: Rng) -> bool:
    return bool(rng.uniform() < 0.5)


# What may be tried ----------------------------------------------------------------------------------------------------

Case = tuple[tuple[Candidate, ...], tuple[Measure, ...]]


def _span(rng: Rng, low: float, high: float, steps: tuple[int, int]) -> dict[str, Any]:
    """A range: its ends move, its steps are drawn."""
    least = low * float(rng.uniform(1, 2))
    return {
        "from": round(least, 4),
        "to": round(high * float(rng.uniform(0.7, 1.3)), 4),
        "steps": int(rng.integers(*steps)),
    }


def _levels(rng: Rng, records: eq.Records, keys: int) -> list[dict[str, Any]]:
    """Recodes of some keys, each over all its levels."""
    trees = records.roles.hierarchies
    chosen = rng.permutation([key for key in records.roles.keys if key in trees])[:keys]
    names = {str(key): [level.name for level in trees[str(key)].allowed if level.name != "original"] for key in chosen}
    return [{"use": "recode", "column": key, "level": levels} for key, levels in names.items() if levels]


def _numbers(records: eq.Records) -> list[str]:
    return list(records.roles.numeric[:1])


def _attacked(rng: Rng, records: eq.Records) -> tuple[Measure, ...]:
    """An attack on the numbers and what users lose of them."""
    columns = tuple(_numbers(records))
    attack = (
        eq.attacks.Nearest(tuple(dict.fromkeys((*columns, records.roles.keys[-1]))))
        if rng.uniform() < 0.6
        else eq.attacks.Interval(columns=columns)
    )
    lost = eq.utility.MeanSquare(columns) if rng.uniform() < 0.5 else eq.utility.InformationLoss(columns)
    return attack, lost


def _coarsenings(rng: Rng, records: eq.Records) -> Case:
    k = int(rng.choice([1, 1, 2, 4]))
    risk = eq.risk.Uniques(k) if rng.uniform() < 0.7 else eq.risk.Prosecutor("mean")
    return (Candidate(coarsenings=True),), (risk, eq.utility.Entropy())


def _coding(rng: Rng, records: eq.Records) -> Case:
    masks = _levels(rng, records, 3)
    numbers = [key for key in records.roles.keys if str(records.schema()[key]).startswith("Int")]
    table = records.collect()
    for key in numbers[:2]:
        low, high = (float(table[key].quantile(share) or 0.0) for share in (0.6, 0.995))
        if high - low >= 6:
            masks.insert(
                0, {"use": "top_code", "column": key, "at": {"from": low, "to": high, "steps": int(rng.integers(4, 9))}}
            )
    return (Candidate(masks=tuple(masks)),), (eq.risk.Uniques(int(rng.choice([1, 2]))), eq.utility.Entropy())


def _noise(rng: Rng, records: eq.Records) -> Case:
    kind = str(rng.choice(["independent", "independent", "multiplicative"]))
    mask = {"use": "noise", "columns": _numbers(records), "kind": kind, "scale": _span(rng, 0.01, 1.2, (12, 50))}
    masks = (*_levels(rng, records, int(rng.integers(0, 3))), mask)
    return (Candidate(masks=masks),), _attacked(rng, records)


def _pram(rng: Rng, records: eq.Records) -> Case:
    keys = records.roles.keys[:3]
    mask = {"use": "pram", "xi": _span(rng, 0.02, 0.6, (12, 50)), "keys": list(keys)}
    masks = (*_levels(rng, records, int(rng.integers(0, 2))), mask)
    lost: Measure = eq.utility.Entropy() if rng.uniform() < 0.5 else eq.utility.Changed()
    return (Candidate(masks=masks),), (eq.attacks.Nearest(keys), lost)


def _microaggregate(rng: Rng, records: eq.Records) -> Case:
    last = int(rng.integers(15, 60))
    mask = {"use": "microaggregate", "columns": _numbers(records), "size": list(range(2, last))}
    return (Candidate(masks=(*_levels(rng, records, int(rng.integers(0, 3))), mask)),), _attacked(rng, records)


def _rank_swap(rng: Rng, records: eq.Records) -> Case:
    mask = {"use": "rank_swap", "columns": _numbers(records), "window": _span(rng, 0.005, 0.35, (12, 50))}
    return (Candidate(masks=(*_levels(rng, records, int(rng.integers(0, 3))), mask)),), _attacked(rng, records)


def _suppress(rng: Rng, records: eq.Records) -> Case:
    sizes = [f"min_count:{k}" for k in range(2, int(rng.integers(6, 16)))]
    masks = (*_levels(rng, records, 2), {"use": "local_suppress", "rule": sizes})
    nearest = eq.attacks.Nearest(records.roles.keys)
    risk: Measure = nearest if rng.uniform() < 0.5 else eq.risk.Uniques(int(rng.integers(3, 9)))
    return (Candidate(masks=masks),), (risk, eq.utility.Entropy())


def _rivals(rng: Rng, records: eq.Records) -> Case:
    ways = [_noise, _microaggregate, _rank_swap]
    picked = rng.permutation(len(ways))[: int(rng.integers(2, 4))]
    found = [candidate for way in picked for candidate in ways[int(way)](rng, records)[0]]
    return tuple(found), _attacked(rng, records)


_CASES: dict[str, Callable[[Rng, eq.Records], Case]] = {
    "coarsenings": _coarsenings, "coding": _coding, "noise": _noise, "pram": _pram,
    "microaggregate": _microaggregate, "rank swap": _rank_swap, "suppress": _suppress, "rivals": _rivals,
}  # fmt: skip
