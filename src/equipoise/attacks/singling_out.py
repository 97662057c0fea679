"""Singling out: predicates built from a release that hold for exactly one person."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice
from math import comb
from typing import Literal

import numpy as np
import polars as pl

from equipoise.data.aligned_files import comparable
from equipoise.data.records import Records
from equipoise.data.released_terms import ComparableFiles, rows
from equipoise.data.roles import Roles
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import ParameterError, RolesError
from equipoise.ground.packed_keys import code
from equipoise.ground.randomness import Draws
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields
from equipoise.methods.score import Score
from equipoise.methods.share_interval import excess, wilson

MIN_SCAN_DIVISOR = 8
"""A condition is looked up if less than one record in this many meets it, else tested on all records."""
MIN_PREDICATES = 30
"""Predicates below which a note says that they are few."""
MICROSECONDS_PER_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class SinglingOut:
    """Share of the predicates that isolate one record of the release and isolate exactly one person of the original.

    An intruder makes predicates from the release alone, keeps those that hold for exactly one of its records, and
    claims that each holds for exactly one person. With `mode="univariate"` they are all there are of two kinds: a
    column equals a value (or is missing), and a number or date is at most the released minimum, or at least the
    maximum. With "multivariate" they are conjunctions of `size` conditions on columns drawn at random, with the values
    of a released record drawn at random: equal for categories, at least for numbers and dates above the released
    median and at most for others, missing for missing. `attempts` are drawn, or all made where there are no more; equal
    ones count once, and the order of rows does not enter. Columns: keys, sensitive and numeric ones unless named. An
    original value is looked up in the terms of the release, a recoded one by its released label.

    value = predicates that isolate a person / predicates that isolate a record, with a 95 % Wilson interval (as if they
    were independent). The baseline is the share that isolates one person of the holdout, reserved before any mask ran
    (`sweep(holdout=)`), brought to the size of the original: with c of n people a predicate isolates one of m of them
    with probability c C(n - c, m - 1) / C(n, m), so the holdout's share is multiplied by how much more n people
    give than m of them. Without a holdout it is what predicates give that do not look at records: a value drawn
    uniformly from the released range (or categories), or conditions each from another record. The notes give the excess
    (a - c) / (1 - c). The detail has a row per column: the predicates that use it and how many isolate a person; by
    record, `risk` is 1 for who is isolated by any. Weights are not used. Works on masked files and synthetic ones.

    Source: Giomi et al. (2023), *A unified framework for quantifying privacy risk in synthetic data*; Cohen and
    Nissim (2020), *Towards formalizing the GDPR's notion of singling out*. Misleads when there are few predicates,
    or when a column is nearly an identifier in any file: compare with the holdout. The seed is public. Cost: univariate
    O(n log n) a column; multivariate at most attempts x records, far less where a condition is rare.

    >>> records = Records.of(pl.DataFrame({"age": [20, 30, 30, 41]}), Roles("age"))
    >>> score = SinglingOut().measure(records, records)
    >>> score.value, score.number, score.by_record()["risk"].to_list()
    (1.0, 4.0, [1.0, 0.0, 0.0, 1.0])
    """

    mode: Literal["univariate", "multivariate"] = "univariate"
    columns: tuple[str, ...] | None = None
    size: int = 4
    attempts: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self, size=1, attempts=1, seed=0)
        if self.columns == ():
            raise ParameterError("columns names no column: leave it out, or name one.")

    def measure(self, released: Records, original: Records) -> Score:
        roles = original.roles
        columns = self.columns or tuple(dict.fromkeys((*roles.keys, *roles.sensitive, *roles.numeric)))
        if not columns:
            raise RolesError("No columns were named, and none has a role: there is nothing to make predicates of.")
        raw = ComparableFiles.read(released, original, columns)
        files = raw.in_terms(*columns)
        released_side, original_side, holdout_side, ordered = _sides(files, columns)
        attempts = None if self.mode == "univariate" else _Attempts.of(raw.here, len(columns), self)
        predicates = attempts.predicates(released_side, ordered) if attempts else _single_values(released_side, ordered)
        predicates = predicates.take(released_side.count(predicates)[0] == 1)
        counts, person = original_side.count(predicates)
        if holdout_side is not None:
            control = _holdout_control(counts, original_side.n, holdout_side.count(predicates)[0], holdout_side.n)
        else:
            sides = released_side, original_side
            control = _Control(_naive(attempts, *sides, ordered) if attempts else _uniform(files, *sides, predicates))
        risk = np.zeros(original_side.n)
        risk[person[counts == 1]] = 1.0
        return self._score(counts == 1, control, _by_column(columns, predicates, counts == 1), risk, original)

    def _score(self, hit: Integers, control: "_Control", table: pl.DataFrame, risk: Floats, original: Records) -> Score:
        value = _mean(hit)
        return Score(
            label(self),
            value,
            interval=wilson(value, len(hit)) if len(hit) else None,
            baseline=control.share if len(hit) else 0.0,
            number=float(hit.sum()),
            unit="share of predicates",
            notes=_notes(hit, control),
            cells=lambda: table,
            records=lambda: rows(original, risk=risk),
        )


@dataclass(frozen=True, slots=True)
class _Control:
    """Baseline: the share of isolating predicates, the number of people held out, and the factor it was scaled by."""

    share: float
    people: int = 0
    factor: float = 1.0


@dataclass(frozen=True, eq=False, repr=False)
class _Predicates:
    """Conjunctions, a row each: their columns, and the codes from `low` to below `high` that each condition accepts."""

    column: Integers
    low: Integers
    high: Integers

    def __len__(self) -> int:
        return len(self.column)

    def take(self, chosen: Integers) -> "_Predicates":
        return _Predicates(self.column[chosen], self.low[chosen], self.high[chosen])


@dataclass(frozen=True, eq=False, repr=False)
class _Side:
    """Columns of a file, coded alike in all files; `nulls` says for each column whether code 0 is missing."""

    n: int
    codes: tuple[Integers, ...]
    sizes: tuple[int, ...]
    nulls: tuple[int, ...]

    @cached_property
    def order(self) -> tuple[Integers, ...]:
        return tuple(np.argsort(column, kind="stable") for column in self.codes)

    @cached_property
    def ends(self) -> tuple[Integers, ...]:
        """Cumulative number of records below each code, for each column."""
        code_counts = (np.bincount(c, minlength=size) for c, size in zip(self.codes, self.sizes, strict=True))
        return tuple(np.append(0, np.cumsum(counts)) for counts in code_counts)

    def counts(self, column: int) -> Integers:
        """Number of records with each code."""
        return np.diff(self.ends[column])

    def count(self, predicates: _Predicates) -> tuple[Integers, Integers]:
        """Number of records for which each predicate holds, and the row of the record where it is one."""
        start, stop = (np.zeros(predicates.column.shape, dtype=np.int64) for _ in range(2))
        for column, ends in enumerate(self.ends):
            uses = predicates.column == column
            start[uses], stop[uses] = ends[predicates.low[uses]], ends[predicates.high[uses]]
        counts, row = np.zeros(len(predicates), dtype=np.int64), np.zeros(len(predicates), dtype=np.int64)
        if predicates.column.shape[1] == 1:
            return (stop - start)[:, 0], self._rows(predicates.column[:, 0], start[:, 0])
        for i in np.flatnonzero((stop > start).all(axis=1)).tolist():
            places = np.argsort(stop[i] - start[i], kind="stable")
            matches = self._hold(predicates, i, places, slice(int(start[i, places[0]]), int(stop[i, places[0]])))
            counts[i], row[i] = len(matches), matches[0] if len(matches) else 0
        return counts, row

    def _rows(self, column: Integers, place: Integers) -> Integers:
        rows = np.zeros(len(column), dtype=np.int64)
        for number, order in enumerate(self.order):
            mine = column == number
            rows[mine] = order[np.minimum(place[mine], self.n - 1)]
        return rows

    def _hold(self, predicates: _Predicates, i: int, places: Integers, rarest: slice) -> Integers:
        """Records for which a predicate holds, tested by the rarest condition first."""
        column, lows, highs = predicates.column[i], predicates.low[i], predicates.high[i]
        conditions = [(self.codes[column[j]], lows[j], highs[j]) for j in places.tolist()]
        if (rarest.stop - rarest.start) * MIN_SCAN_DIVISOR > self.n:
            (codes, low, high), *conditions = conditions
            matches: Integers = np.flatnonzero((codes >= low) & (codes < high))
        else:
            matches, conditions = self.order[predicates.column[i, places[0]]][rarest], conditions[1:]
        for codes, low, high in conditions:
            values = codes[matches]
            matches = matches[(values >= low) & (values < high)]
        return matches


def _sides(files: ComparableFiles, columns: tuple[str, ...]) -> tuple[_Side, _Side, _Side | None, tuple[bool, ...]]:
    """All files coded alike, and which columns have an order."""
    tables = [table for table in (files.here, files.there, files.held) if table is not None]
    cuts = np.cumsum([table.height for table in tables])[:-1]
    codes, sizes, nulls, ordered = [], [], [], []
    for column in columns:
        parts, order = comparable(*(table[column] for table in tables))
        coded = code(pl.concat(parts))
        codes.append(np.split(coded.codes, cuts))
        sizes.append(coded.size)
        nulls.append(int(coded.values.null_count() > 0))
        ordered.append(order)
    sides = [
        _Side(table.height, tuple(c[i] for c in codes), tuple(sizes), tuple(nulls)) for i, table in enumerate(tables)
    ]
    return sides[0], sides[1], sides[2] if len(sides) > 2 else None, tuple(ordered)


def _single_values(released: _Side, ordered: tuple[bool, ...]) -> _Predicates:
    """Predicates of all values that occur once in the release, and of its extremes where they do."""
    parts = []
    for column, order in enumerate(ordered):
        single, first = released.counts(column) == 1, released.nulls[column]
        low = np.flatnonzero(single)
        high = low + 1
        occurring = np.flatnonzero(released.counts(column)[first:]) + first
        if order and len(occurring) and single[occurring[0]]:
            low, high = np.append(low, first), np.append(high, occurring[0] + 1)
        if order and len(occurring) and single[occurring[-1]]:
            low, high = np.append(low, occurring[-1]), np.append(high, released.sizes[column])
        parts.append(np.stack([np.full(len(low), column), low, high], axis=1))
    whole = np.concatenate(parts)
    return _Predicates(whole[:, :1], whole[:, 1:2], whole[:, 2:])


@dataclass(frozen=True, eq=False, repr=False)
class _Attempts:
    """Attempts: a released row and some columns each, in a random order independent of that of the file."""

    row: Integers
    column: Integers

    @classmethod
    def of(cls, table: pl.DataFrame, many: int, attack: SinglingOut) -> "_Attempts":
        size, draws = min(attack.size, many), Draws(attack.seed)
        keys = Records.of(table, Roles()).keys_of_rows()
        ways = comb(many, size)
        if ways * table.height <= attack.attempts:
            every = np.array(list(combinations(range(many), size)))
            order = np.argsort(draws.uniform(keys), kind="stable")
            return cls(np.tile(order, ways), np.repeat(every, table.height, axis=0))
        rounds = list(islice(_rounds(keys, many, size, draws), -(-attack.attempts // table.height)))
        picked, columns = (np.concatenate(part)[: attack.attempts] for part in zip(*rounds, strict=True))
        return cls(picked, columns)

    def predicates(self, released: _Side, ordered: tuple[bool, ...], apart: bool = False) -> _Predicates:
        """Distinct predicates with the values of the row drawn, or with those of another row for each if `apart`."""
        column, row = self.column, np.repeat(self.row[:, None], self.column.shape[1], axis=1)
        if apart:
            row = np.stack([np.roll(self.row, j) for j in range(column.shape[1])], axis=1)
        low, high = np.zeros(column.shape, dtype=np.int64), np.zeros(column.shape, dtype=np.int64)
        for number, order in enumerate(ordered):
            mine = column == number
            codes = released.codes[number][row[mine]].astype(np.int64)
            low[mine], high[mine] = _condition(released, number, order, codes)
        distinct = np.unique(np.stack([column, low, high], axis=2).reshape(len(column), -1), axis=0)
        parts = distinct.reshape(len(distinct), column.shape[1], 3)
        return _Predicates(parts[:, :, 0], parts[:, :, 1], parts[:, :, 2])


def _rounds(keys: pl.Series, many: int, size: int, draws: Draws) -> Iterator[tuple[Integers, Integers]]:
    """Endless rounds of all rows in a random order, each row with its own random columns."""
    turn = 0
    while True:
        draw = draws.child(turn)
        order = np.argsort(draw.uniform(keys), kind="stable")
        lots = np.stack([draw.uniform(keys.gather(order), 1 + j) for j in range(many)], axis=1)
        yield order, np.sort(np.argsort(lots, axis=1, kind="stable")[:, :size], axis=1)
        turn += 1


def _condition(released: _Side, column: int, ordered: bool, codes: Integers) -> tuple[Integers, Integers]:
    """Codes that a condition on one column accepts: the own one, or all from it outwards."""
    if not ordered:
        return codes, codes + 1
    first = released.nulls[column]
    ends = released.ends[column]
    present = int(ends[-1] - ends[first])
    middle = int(np.searchsorted(ends, ends[first] + (present + 1) // 2, side="left")) - 1
    above, missing = codes > middle, codes < first
    low = np.where(missing | above, codes, first)
    high = np.where(missing | ~above, codes + 1, released.sizes[column])
    return low, high


def _holdout_control(counts: Integers, n: int, holdout_counts: Integers, m: int) -> _Control:
    """Share of predicates that isolate one person held out, scaled to n people."""
    if not len(counts):
        return _Control(0.0, m)
    size = min(n, m)
    mine, theirs = _isolating(counts, n, size), _isolating(holdout_counts, m, size)
    factor = _mean(counts == 1) / mine if mine > 0 else 1.0
    return _Control(min(1.0, theirs * factor), m, factor)


def _isolating(counts: Integers, n: int, m: int) -> float:
    """Expected share of predicates that hold for exactly one of m people drawn from n."""
    from scipy.special import gammaln

    c = np.minimum(counts, n - m + 1).astype(np.float64)
    log = (
        gammaln(n - c + 1) - gammaln(n - c - m + 2) - gammaln(m) - gammaln(n + 1) + gammaln(n - m + 1) + gammaln(m + 1)
    )
    possible = (counts > 0) & (counts <= n - m + 1)
    return float(np.where(possible, c * np.exp(log), 0.0).mean())


def _uniform(files: ComparableFiles, released: _Side, original: _Side, predicates: _Predicates) -> float:
    """Share isolated by values drawn uniformly from the released range or categories, columns by their predicates."""
    shares = np.zeros(len(released.codes))
    for column, name in enumerate(files.here.columns):
        occurring, first = np.flatnonzero(released.counts(column)), released.nulls[column]
        values, ordered = comparable(files.here[name])
        if not ordered:
            shares[column] = float((original.counts(column)[occurring] == 1).mean())
            continue
        kind, present = files.here[name].dtype, occurring[occurring >= first]
        if not len(present) or not (kind.is_integer() or kind == pl.Date):
            continue
        span = float(values[0].max()) - float(values[0].min())  # type: ignore[arg-type]
        inside = original.counts(column)[present[0] : present[-1] + 1]
        shares[column] = float((inside == 1).sum()) / (span / (MICROSECONDS_PER_DAY if kind == pl.Date else 1) + 1)
    return float(shares[predicates.column[:, 0]].mean()) if len(predicates) else 0.0


def _naive(attempts: _Attempts, released: _Side, original: _Side, ordered: tuple[bool, ...]) -> float:
    """Share isolated by predicates whose conditions each come from another record."""
    return float((original.count(attempts.predicates(released, ordered, apart=True))[0] == 1).mean())


def _by_column(columns: tuple[str, ...], predicates: _Predicates, hit: Integers) -> pl.DataFrame:
    uses = [(predicates.column == number).any(axis=1) for number in range(len(columns))]
    return pl.DataFrame(
        [
            {"column": c, "predicates": int(u.sum()), "isolating": int(hit[u].sum()), "risk": _mean(hit[u])}
            for c, u in zip(columns, uses, strict=True)
        ]
    )


def _mean(values: Integers) -> float:
    return float(values.mean()) if len(values) else 0.0


def _notes(hit: Integers, control: _Control) -> tuple[str, ...]:
    if not len(hit):
        return ("No predicate isolates one record of the release: there is nothing to claim.",)
    records, people = f"{len(hit):,}", f"{int(hit.sum()):,}"
    summary = f"Predicates that isolate one record of the release: {records}; of these one person: {people}."
    if len(hit) < MIN_PREDICATES:
        summary += " They are few: name more columns, or raise size or attempts."
    if not control.people:
        return summary, "Without a holdout the baseline is that of predicates that do not look at records."
    above, low, high = excess(_mean(hit), len(hit), control.share, len(hit) / max(1.0, control.factor))
    return (
        summary,
        f"Of {control.people:,} people held out they isolate {control.share:.4g}, brought to the size of the original; "
        f"of what that leaves, being in the file gives away {above:.4g} ({low:.4g} to {high:.4g}).",
    )
