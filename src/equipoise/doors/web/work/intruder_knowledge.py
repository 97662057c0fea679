"""What if an intruder knew: exact matching on any columns at once, and matching on numbers known roughly, as a run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from equipoise.attacks import Nearest
from equipoise.data.cells import Cells, coded
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.doors.web.memory import Memory, frozen
from equipoise.doors.web.work.open_file import role_of
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import ParameterError, RolesError
from equipoise.ground.packed_keys import MAX_PACKED_ID, Coded, group, pack, tally
from equipoise.ground.progress import Progress, report
from equipoise.intrusion import knowledge
from equipoise.methods.score import Score
from equipoise.methods.share_interval import wilson
from equipoise.presentation.style import Spec
from equipoise.risk import Prosecutor, Uniques

INNER = ("direct", "id", "weight", "household", "sample")
"""Roles of columns that are withheld, or that nobody outside has."""
MANY = 50
"""A number with more distinct values than this may be known roughly."""
FEW_CELLS = 8
"""Keys are added up from the cells where there are so many times more records."""
SIZE, WORK = 3, 60_000_000
"""Combinations of up to so many keys are all tried, as long as records times combinations are not more."""
PEOPLE, BATCHES, LEAST = 20_000, 5, 500
"""People whom the intruder looks for, drawn by a public seed; in how many parts, and how large these are at least."""
WAYS = 2
SEED = 2004
FLAT = 1e-12


# Which columns --------------------------------------------------------------------------------------------------------


def offered(held: Memory, folder: Path, policy: Mapping[str, Any]) -> dict[str, Any]:
    """The columns to tick, and how somebody fares who knows the keys."""
    found = columns(held, folder, policy)
    return found | {"answer": knows(held, folder, policy, [row["place"] for row in found["keys"]])}


def columns(held: Memory, folder: Path, policy: Mapping[str, Any]) -> dict[str, Any]:
    """Every column that could be known: the keys, the others, numbers that may be known roughly, and what is left out.

    A column is told by its place in the file, so that its name is never part of an address.
    """
    records = held.raw(folder, policy["data"])
    roles = Roles.from_plain(policy.get("roles", {}), folder)
    found: dict[str, Any] = {"keys": [], "others": [], "numbers": [], "left": []}
    for place, name in enumerate(records.schema()):
        role = role_of(roles, name)
        row = {"place": place, "name": name, "label": records.labels.of(name).label or "", "role": role}
        rough = _rough(held, records, policy, name, role)
        if role in INNER:
            found["left"].append(row)
            continue
        if rough:
            found["numbers"].append(row)
        if role == "key" or not rough:
            found["keys" if role == "key" else "others"].append(row)
    return found


def _rough(held: Memory, records: Records, policy: Mapping[str, Any], name: str, role: str) -> bool:
    """Whether a column is a number that is rather known roughly than exactly."""
    kind = records.schema()[name]
    if not kind.is_numeric() or role in INNER:
        return False
    if role == "numeric":
        return True
    made = ("distinct", frozen(policy["data"]), name)
    return held.once(made, lambda: records.collect(name)[name].n_unique()) > MANY


def named(records: Records, places: Sequence[int]) -> tuple[str, ...]:
    """The names of columns by their places, in the order of the file."""
    schema = list(records.schema())
    if any(place not in range(len(schema)) for place in places):
        raise ParameterError("That column is not in the file: load the page again.")
    return tuple(schema[place] for place in sorted(set(places)))


# Matching exactly -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Matching:
    """How an intruder fares who picks at random among the records that equal what he knows.

    `right` is the expected share of right picks, classes / records where no key is missing and matches anything;
    `alone` are the records without an equal, `smallest` the size of the smallest class.
    """

    records: int
    right: float
    alone: int
    smallest: int

    @classmethod
    def of(cls, sizes: Integers) -> "Matching":
        """From the sizes of the classes.

        >>> Matching.of(np.array([1, 3]))
        Matching(records=4, right=0.5, alone=1, smallest=1)
        """
        records = int(sizes.sum())
        return cls(records, len(sizes) / records, int((sizes == 1).sum()), int(sizes.min()))

    def plain(self) -> dict[str, Any]:
        return {**vars(self), "number": self.right * self.records, "share": self.alone / self.records}


def knows(held: Memory, folder: Path, policy: Mapping[str, Any], places: Sequence[int]) -> dict[str, Any]:
    """How somebody fares who knows these columns exactly, beside one who knows all keys."""
    records, raw = held.records(folder, policy), held.raw(folder, policy["data"])
    known, all_keys = named(raw, places), records.roles.keys
    _refuse_inner(records, known)
    found: dict[str, Any] = {"known": list(known), "same": set(known) == set(all_keys), "keys": None}
    if all_keys:
        whole = held.once(
            ("matching", frozen(policy["data"]), frozen(policy.get("roles", {}))),
            lambda: _matched(held, folder, policy, all_keys),
        )
        found["keys"] = whole.plain()
    return {**found, **_matched(held, folder, policy, known).plain()}


def _refuse_inner(records: Records, known: tuple[str, ...]) -> None:
    left = records.schema()
    withheld = [column for column in known if column not in left or role_of(records.roles, column) in INNER]
    if withheld:
        raise RolesError(f"The column {withheld[0]!r} is not one that somebody outside knows.")


def _matched(held: Memory, folder: Path, policy: Mapping[str, Any], known: tuple[str, ...]) -> Matching:
    """Class sizes by one sort of packed codes; where nulls match anything, by the measures that know of it."""
    records, raw = held.records(folder, policy), held.raw(folder, policy["data"])
    if not known:
        return Matching.of(np.array([raw.height()]))
    wild = [column for column in known if records.roles.missing == "any" and column in records.roles.keys]
    if set(known) <= set(records.roles.keys):
        cells = held.cells(folder, policy)
        if not wild and len(cells) * FEW_CELLS < cells.records:
            return Matching.of(cells.cube.keep([cells.place(column) for column in known]).n)
    parts = coded(raw, known)
    if any(parts[known.index(column)].values.null_count() for column in wild):
        return _open(Cells(known, tally(parts), open=tuple(wild)))
    return Matching.of(class_sizes(parts))


def _open(cells: Cells) -> Matching:
    right, alone = Prosecutor("mean").measure(cells, cells), Uniques().measure(cells, cells)
    return Matching(cells.records, right.value, round(alone.number or 0), int(cells.alike[0].min()))


def class_sizes(parts: Sequence[Coded]) -> Integers:
    """How many records have each combination of values that occurs. O(n log n), a sort of one integer per record.

    >>> from equipoise.ground.packed_keys import code
    >>> sorted(class_sizes([code(pl.Series([1, 1, 2])), code(pl.Series(["a", "a", "a"]))]).tolist())
    [1, 2]
    """
    codes, sizes = [part.codes for part in parts], [part.size for part in parts]
    if prod(sizes) > MAX_PACKED_ID:
        return np.bincount(group(codes, sizes)[0])
    packed = pack(codes, sizes)
    if prod(sizes) <= len(packed):
        counts = np.bincount(packed)
        return counts[counts > 0]
    packed.sort()
    edges = np.flatnonzero(packed[1:] != packed[:-1])
    return np.diff(edges, prepend=-1, append=len(packed) - 1)


# Combinations of keys -------------------------------------------------------------------------------------------------


def combinations(held: Memory, folder: Path, policy: Mapping[str, Any]) -> dict[str, Any]:
    """The combinations of keys that tell most: the worst of each number of keys, and a chart of all that were tried."""
    name = ("combinations", frozen(policy["data"]), frozen(policy.get("roles", {})))
    return held.once(name, lambda: _combinations(held, folder, policy))


def _combinations(held: Memory, folder: Path, policy: Mapping[str, Any]) -> dict[str, Any]:
    records = held.records(folder, policy)
    every, schema = records.roles.keys, list(held.raw(folder, policy["data"]).schema())
    if not every:
        raise RolesError("No column is a key yet: say which columns an intruder may know.")
    met: dict[str, tuple[tuple[str, ...], Matching]] = {}

    def attempt(known: tuple[str, ...]) -> Score:
        found = _matched(held, folder, policy, known)
        met[", ".join(known)] = known, found
        return Score("matching", found.right, "lower", baseline=1 / found.records)

    plan = knowledge.KnowledgePlan.of(len(every), SIZE, records.height(), WORK)
    table = knowledge.sweep(every, plan, attempt, None, None)
    rows = []
    for row in knowledge.growth(table).iter_rows(named=True):
        known, found = met[row["known"]]
        rows.append({"known": known, "places": [schema.index(column) for column in known], **found.plain()})
    return {"rows": rows, "tried": plan.words(), "chart": _chart(table) if len(every) > 1 else None}


def _chart(table: pl.DataFrame) -> Spec:
    """The chart of what must be known, as wide as its place; exact shares have no interval to tell of."""
    spec = knowledge.chart(table)
    layers = [layer for layer in spec["layer"] if not layer["name"].endswith("_error")]
    for layer in layers:
        for row in layer.get("data", {}).get("values", ()):
            if "told" in row:
                row["told"] = row["told"].partition(" (")[0]
    config = {**spec["config"], "background": "transparent"}
    return {**spec, "title": None, "width": "container", "height": 260, "layer": layers, "config": config}


# Numbers known roughly ------------------------------------------------------------------------------------------------


def check_numbers(
    held: Memory, folder: Path, policy: Mapping[str, Any], exact: Sequence[int], rough: Sequence[int]
) -> dict[str, Any]:
    """The columns of an attack on numbers, by name; refused before it starts where it cannot be tried."""
    raw = held.raw(folder, policy["data"])
    numbers, schema = named(raw, rough), raw.schema()
    if not numbers:
        raise ParameterError("Tick a number first that the intruder may know roughly.")
    for column in numbers:
        if not schema[column].is_numeric():
            raise ParameterError(f"The column {column!r} holds no numbers: tick it above.")
    others = tuple(column for column in named(raw, exact) if column not in numbers)
    _refuse_inner(held.records(folder, policy), (*numbers, *others))
    return {"exact": list(others), "numbers": list(numbers)}


def match_numbers(
    progress: Progress, folder: Path, policy: Mapping[str, Any], exact: Sequence[str], numbers: Sequence[str],
    within: float,
) -> dict[str, Any]:  # fmt: skip
    """Look for people in the file as it is, knowing some columns exactly and numbers to within a share of themselves.

    What the intruder has of a number x is x (1 + within u), u uniform between -1 and 1. He takes the nearest record
    (`attacks.Nearest`) among those that equal what he knows exactly, once by the numbers and once by their logarithms;
    the better way counts. At most 20,000 people are looked for, drawn by a public seed.
    """
    report(progress, 0, 1, "reading the file")
    raw = Memory().raw(folder, policy["data"])
    table = raw.collect(*exact, *numbers).with_columns(pl.col(*numbers).cast(pl.Float64))
    if table.height < 2:
        raise ParameterError("The data has one record only: there is nobody to confuse it with.")
    row = _free("record", table.columns)
    table = table.with_row_index(row)
    asked, names = _asked(table, numbers, within), (row, tuple(exact), tuple(numbers))
    batches = _batches(asked, names[2])
    steps = RunProgress(progress, WAYS * len(batches), f"looking for {asked.height:,} people")
    tried = [
        _linked(steps, _changed(table, numbers, change), [_changed(b, numbers, change) for b in batches], names)
        for change in (_itself, _logarithm)
    ]
    best = max(tried, key=lambda found: found["value"])
    return best | {
        "people": asked.height, "records": table.height, "interval": list(wilson(best["value"], asked.height)),
        "without": Matching.of(class_sizes(coded(raw, tuple(exact)))).right if exact else 1 / table.height,
        "exactly": Matching.of(class_sizes(coded(raw, (*exact, *numbers)))).right,
    }  # fmt: skip


@dataclass
class RunProgress:
    """Tells how far a run is, and stops it when asked."""

    progress: Progress
    total: int
    what: str
    done: int = 0

    def take(self) -> None:
        report(self.progress, self.done, self.total, self.what)
        self.done += 1


def _free(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _asked(table: pl.DataFrame, numbers: Sequence[str], within: float) -> pl.DataFrame:
    """The people looked for, as the intruder knows them."""
    draws = np.random.default_rng(SEED)
    picked = np.sort(draws.choice(table.height, min(PEOPLE, table.height), replace=False))
    people = table[picked]
    off = {c: pl.Series(1 + within * draws.uniform(-1, 1, people.height)) for c in numbers}
    return people.with_columns([(people[column] * factor).alias(column) for column, factor in off.items()])


def _itself(column: pl.Series) -> pl.Series:
    return column


def _logarithm(column: pl.Series) -> pl.Series:
    """The logarithm for large values, the value itself near zero: gaps are then about percentages."""
    return column.sign() * column.abs().log1p()


def _changed(table: pl.DataFrame, numbers: Sequence[str], change: Callable[[pl.Series], pl.Series]) -> pl.DataFrame:
    return table.with_columns([change(table[column]).alias(column) for column in numbers])


def _linked(
    steps: RunProgress, table: pl.DataFrame, batches: Sequence[pl.DataFrame],
    names: tuple[str, tuple[str, ...], tuple[str, ...]],
) -> dict[str, float]:  # fmt: skip
    """The share of the people found, and that of guessing. Every batch is measured by the spread of all people."""
    row, exact, numbers = names
    roles, right, guess = Roles(id=row), 0.0, 0.0
    released, whole = Records.of(table, roles), _spreads(pl.concat(batches), numbers)
    for batch in batches:
        steps.take()
        parts = zip(_spreads(batch, numbers), whole, strict=True)
        weights = tuple((part / every) ** 2 if part and every else 1.0 for part, every in parts)
        attack = Nearest(variables=numbers, weights=weights, blocks=exact or None)
        score = attack.measure(released, Records.of(batch, roles))
        right += score.value * batch.height
        guess += (score.baseline or 0.0) * batch.height
    people = sum(batch.height for batch in batches)
    return {"value": right / people, "baseline": guess / people}


def _batches(asked: pl.DataFrame, numbers: tuple[str, ...]) -> list[pl.DataFrame]:
    """Parts of about equal size in which every number varies, or all in one."""
    many = max(1, min(BATCHES, asked.height // LEAST))
    ends = [asked.height * at // many for at in range(many + 1)]
    parts = [asked.slice(low, high - low) for low, high in pairwise(ends)]
    varies = [bool(sd) for sd in _spreads(asked, numbers)]
    return parts if all([bool(sd) for sd in _spreads(part, numbers)] == varies for part in parts) else [asked]


def _spreads(table: pl.DataFrame, numbers: tuple[str, ...]) -> list[float]:
    """The standard deviation of each number; 0 where it does not vary."""
    found = []
    for column in numbers:
        values = table[column].drop_nulls().drop_nans().to_numpy()
        sd, mean = (float(values.std()), float(values.mean())) if len(values) else (0.0, 0.0)
        found.append(sd if sd > FLAT * abs(mean) else 0.0)
    return found
