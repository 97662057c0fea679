"""Distance-based record linkage: whose released record lies nearest to what an intruder knows of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np
import polars as pl

from equipoise.core.codes import Floats, Integers, code
from equipoise.core.errors import DataError, EngineError, ParameterError, RolesError
from equipoise.core.method import label
from equipoise.core.neighbours import MOST, PLACES, Cloud, count, nearest, others
from equipoise.core.pairs import aligned
from equipoise.core.records import Law, Records
from equipoise.core.roles import names
from equipoise.core.score import Score, not_applicable

LISTS = ("variables", "known", "ordinal", "nominal", "blocks")
FLAT = 1e-12
"""A column whose standard deviation is a smaller share of its mean does not vary."""
QUIET = 1e-9
"""Directions with less than this share of the largest variance carry no distance under Mahalanobis."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """Share of people whose released record is the one nearest to what an intruder knows of them.

    The distance of an original record a and a released record b is the root of
    D^2 = sum over numbers of w ((a - b) / sd)^2 + sum over nominal of w 1[a != b] + sum over ordinal of w ((rank a -
    rank b) / |D|)^2, with sd the original's and |D| the number of categories; with `metric="mahalanobis"` the sum over
    numbers is z' R^-1 z, z the weighted standardised gaps and R the original's correlations. Numeric and date columns
    are numbers unless listed as `ordinal` or `nominal`; text is nominal. A missing number stands where the mean is, at
    a further squared distance w from every known one (w times the variance of the scaled ranks if ordinal): the mean
    squared gap to a random value; two missing ones are equal. A missing category is a category. `weights` has a number
    for each of `variables`. A category that was recoded is known to the intruder as its released label.

    `variables` (the keys and numeric columns unless given) are all that both files hold, `known` those of them the
    intruder has (all unless given). Records are compared within `blocks` only. With t records at the shortest distance
    a link is right with probability 1/t (distances equal to a share of 1e-9 tie). With `truth="row"` it is right if it
    is the person's own record; with "nearest", if it is the nearest by all `variables` (one of them at random if they
    tie), and the files need not hold the same people.

    value = mean of the probabilities of a right link, with a 95 % Wilson interval; the baseline is a guess among all
    records (of the block). The detail has a row per record: the `rank` of its true match, 1 + the number of records
    closer, where 11 says more than 10; the `margin`, by how much the nearest other record is farther than the true one
    (below 0: another is closer); and `risk`. The notes give the shares among the two and three nearest.

    Source: Domingo-Ferrer and Torra (2004), section 2.1 and Definition 1, the ordinal distance without its offset.
    Misleads when the intruder knows how the file was masked: attacks made for a mask find more. Strings are equal or
    not: a misspelt name is another name. Exact. Cost: a tree per combination of categories, about O(n log n) in few
    dimensions, towards O(n^2) time in many independent ones; equal records are searched once. Margins are searched
    for when the detail is asked for.

    >>> from equipoise.core.roles import Roles
    >>> original = Records.of(pl.DataFrame({"age": [20, 30, 40, 60]}), Roles("age"))
    >>> released = Records.of(pl.DataFrame({"age": [22, 41, 39, 60]}), Roles("age"))
    >>> score = Nearest().measure(released, original)
    >>> score.value, score.baseline, score.detail["rank"].to_list()
    (0.625, 0.25, [1, 3, 1, 1])
    """

    variables: tuple[str, ...] | None = None
    known: tuple[str, ...] | None = None
    metric: Literal["euclidean", "mahalanobis"] = "euclidean"
    truth: Literal["row", "nearest"] = "row"
    weights: tuple[float, ...] | None = None
    ordinal: tuple[str, ...] | None = None
    nominal: tuple[str, ...] | None = None
    blocks: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for field in LISTS:
            if getattr(self, field) is not None:
                object.__setattr__(self, field, names(getattr(self, field), field))
        if self.metric not in ("euclidean", "mahalanobis"):
            raise ParameterError(f"metric must be 'euclidean' or 'mahalanobis', got {self.metric!r}.")
        if self.truth not in ("row", "nearest"):
            raise ParameterError(f"truth must be 'row' or 'nearest', got {self.truth!r}.")
        self._refuse_weights()
        self._refuse_lists()

    def _refuse_weights(self) -> None:
        if self.weights is None:
            return
        object.__setattr__(self, "weights", tuple(self.weights))
        if self.variables is None or len(self.weights) != len(self.variables):
            raise ParameterError("weights needs a number for each of variables: name the variables.")
        if not all(isinstance(w, int | float) and 0 < w < np.inf for w in self.weights):
            raise ParameterError("weights must be positive numbers.")

    def _refuse_lists(self) -> None:
        for field in ("variables", "known", "blocks"):
            if getattr(self, field) == ():
                raise ParameterError(f"{field} names no column: leave it out, or name one.")
        both = set(self.ordinal or ()) & set(self.nominal or ())
        if both:
            raise ParameterError(f"{sorted(both)[0]!r} is both ordinal and nominal.")
        extra = set(self.known or ()) - set(self.variables or self.known or ())
        if extra:
            raise ParameterError(f"{sorted(extra)[0]!r} is known, but not one of the variables.")

    def measure(self, released: Records, original: Records) -> Score:
        if released.synthetic:
            return not_applicable(label(self), "lower")
        every = self.variables or tuple(dict.fromkeys((*original.roles.keys, *original.roles.numeric)))
        every = tuple(dict.fromkeys((*every, *(self.known or ()))))
        files = self._files(released, original, every)
        clouds = self._space(files, self.known or every)
        if self.truth == "row":
            found = _own(clouds, np.arange(len(clouds[0])))
        else:
            found = _by_nearest(clouds, self._space(files, every))
        return self._score(found, clouds, released if self.truth == "row" else original)

    def sweep(self, released: Records, original: Records, size: int = 2) -> pl.DataFrame:
        """The attack by intruders who know each subset of up to `size` variables, the most dangerous first.

        One row per subset: what is `known`, the `value`, the `baseline` and the ends `low` and `high` of the interval.
        Cost: that of one attack for each subset.
        """
        every = self.known or self.variables or tuple(dict.fromkeys((*original.roles.keys, *original.roles.numeric)))
        rows = []
        for many in range(1, size + 1):
            for known in combinations(every, many):
                score = replace(self, known=known).measure(released, original)
                low, high = score.interval or (score.value, score.value)
                rows.append((", ".join(known), many, score.value, score.baseline, low, high))
        schema = ["known", "size", "value", "baseline", "low", "high"]
        return pl.DataFrame(rows, schema=schema, orient="row").sort("value", "known", descending=[True, False])

    def _files(self, released: Records, original: Records, every: tuple[str, ...]) -> "_Files":
        columns = tuple(dict.fromkeys((*every, *(self.blocks or ()))))
        if not columns:
            raise RolesError("No variables were named, and no column is a key or numeric.")
        for records in (released, original):
            schema = records.schema()
            for column in columns:
                if column not in schema:
                    raise RolesError.missing(column, list(schema))
        try:
            return _Files(*aligned(released, original, columns), released.history)
        except EngineError:
            if self.truth == "row":
                raise
        return _Files(_by_id(released, columns), _by_id(original, columns), None)

    def _space(self, files: "_Files", columns: tuple[str, ...]) -> tuple[Cloud, Cloud, Floats]:
        """Both files as points: numbers scaled, categories coded, and what a difference in each category costs."""
        given = dict(zip(self.variables or (), self.weights or (), strict=False))
        space = _Space(files)
        for column in columns:
            space.add(column, self._kind(column, files), given.get(column, 1.0))
        for column in self.blocks or ():
            space.add(column, "nominal", np.inf)
        return space.clouds(self.metric == "mahalanobis")

    def _kind(self, column: str, files: "_Files") -> str:
        if column in (self.nominal or ()):
            return "nominal"
        if column in (self.ordinal or ()):
            return "ordinal"
        kinds = [table.schema[column] for table in (files.here, files.there)]
        told = [kind for kind in kinds if kind != pl.Null]
        number = all(kind.is_numeric() for kind in told) or all(kind.is_temporal() for kind in told)
        return "number" if told and number else "nominal"

    def _score(self, found: "_Linked", clouds: tuple[Cloud, Cloud, Floats], asked: Records) -> Score:
        n, value = len(found.risk), float(found.risk.mean())
        return Score(
            label(self),
            value,
            "lower",
            interval=_wilson(value, n),
            baseline=_guess(clouds, self.truth == "row"),
            number=float(found.risk.sum()),
            unit="share of records",
            notes=_notes(found),
            cells=lambda: _rows(asked, found.columns()),
            records=lambda: _rows(asked, {"risk": pl.Series(found.risk)}),
        )


@dataclass(frozen=True, eq=False, repr=False)
class _Linked:
    """For each record: the rank of its true match and how likely it is the first, among the first two and three.

    How many records tie for the first place; and the margins, found when they are asked for.
    """

    rank: Integers
    risk: Floats
    second: Floats
    third: Floats
    tied: int
    margin: Callable[[], Floats]

    def columns(self) -> dict[str, pl.Series]:
        """What the detail shows; the margin is null where there is nothing to compare."""
        margin = self.margin()
        return {
            "rank": pl.Series(self.rank, dtype=pl.UInt8),
            "margin": pl.Series(np.where(np.isfinite(margin), margin, np.nan), nan_to_null=True),
            "risk": pl.Series(self.risk),
        }


@dataclass(frozen=True, eq=False, repr=False)
class _Files:
    """The released and the original columns, and the laws of the masks between them if the rows are the same people."""

    here: pl.DataFrame
    there: pl.DataFrame
    laws: tuple[Law, ...] | None


def _by_id(records: Records, columns: tuple[str, ...]) -> pl.DataFrame:
    """Columns in the order of the ids, if there are any."""
    name = records.roles.id
    return records.collect(name, *columns).sort(name).select(columns) if name else records.collect(*columns)


def _own(clouds: tuple[Cloud, Cloud, Floats], own: Integers) -> _Linked:
    """The chances of a right link, ties broken at random: (k - closer) / tied, within [0, 1], for the k nearest."""
    found = count(*clouds, own)
    reached = np.isfinite(found.distance) & (found.closer < PLACES)
    tied = np.maximum(found.tied, 1)
    chances = [np.where(reached, np.clip((k - found.closer) / tied, 0.0, 1.0), 0.0) for k in (1, 2, 3)]
    rank = np.where(np.isfinite(found.distance), found.closer + 1, MOST)
    several = int((reached & (found.closer == 0) & (found.tied > 1)).sum())

    def margin() -> Floats:
        with np.errstate(invalid="ignore"):
            return others(*clouds, own) - found.distance

    return _Linked(np.minimum(rank, MOST), chances[0], chances[1], chances[2], several, margin)


def _by_nearest(known: tuple[Cloud, Cloud, Floats], every: tuple[Cloud, Cloud, Floats]) -> _Linked:
    """The truth is the nearest by all variables: each of those that tie is tried and the results are averaged."""
    truth = nearest(*every)
    if len(np.unique(truth.query)) < len(truth.first):
        raise DataError("Some records have no released record in their block: there is no nearest one.")
    asked = truth.first[truth.query]
    person = known[1]
    # One question for each distinct record by all variables, so that what it knows is asked once.
    each = _own((known[0], Cloud(person.coordinates[asked], person.codes[asked]), known[2]), truth.row)
    size = len(truth.first)
    total = np.bincount(truth.query, weights=truth.times, minlength=size)

    def mean(values: Floats) -> Floats:
        found: Floats = (np.bincount(truth.query, weights=values * truth.times, minlength=size) / total)[truth.of]
        return found

    def margin() -> Floats:
        found = np.full(size, -np.inf)
        np.maximum.at(found, truth.query, each.margin())
        return found[truth.of]

    rank, several = np.full(size, MOST), int((total[truth.of] > 1).sum())
    np.minimum.at(rank, truth.query, each.rank)
    return _Linked(rank[truth.of], mean(each.risk), mean(each.second), mean(each.third), several, margin)


def _guess(clouds: tuple[Cloud, Cloud, Floats], row: bool) -> float:
    """The chance of a random record, among all or among those of the block (0 where one's own is in another)."""
    released, original, penalties = clouds
    blocks = np.flatnonzero(np.isinf(penalties))
    if not len(blocks):
        return 1.0 / len(released)
    one = pl.DataFrame({str(i): released.codes[:, i] for i in blocks})
    two = pl.DataFrame({str(i): original.codes[:, i] for i in blocks})
    sizes = one.group_by(one.columns).agg(pl.len().alias("n"))
    found = two.join(sizes, on=one.columns, how="left", maintain_order="left")["n"].fill_null(0).to_numpy()
    same = (released.codes[:, blocks] == original.codes[:, blocks]).all(axis=1) if row else found > 0
    return float(np.where(same, 1.0 / np.maximum(found, 1), 0.0).mean())


def _wilson(share: float, n: int) -> tuple[float, float]:
    """The 95 % score interval of a share of n."""
    z = 1.959963984540054
    centre, half = share + z * z / (2 * n), z * float(np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)))
    low, high = (centre - half) / (1 + z * z / n), (centre + half) / (1 + z * z / n)
    return max(0.0, min(low, share)), min(1.0, max(high, share))


def _notes(found: _Linked) -> tuple[str, ...]:
    two, three = float(found.second.mean()), float(found.third.mean())
    ties = f"{found.tied:,} records share the first place with others: a tie of t counts 1/t."
    return (
        f"Among the two nearest: {two:.4g}; among the three nearest: {three:.4g}.",
        *((ties,) if found.tied else ()),
    )


def _rows(records: Records, columns: dict[str, pl.Series]) -> pl.DataFrame:
    """One row per record in input order; the columns are in the order of the ids where there are any."""
    name = records.roles.id
    if not name:
        size = len(columns["risk"])
        return pl.DataFrame({"record": pl.int_range(size, dtype=pl.UInt32, eager=True), **columns})
    ids = records.collect(name)[name]
    place = np.empty(len(ids), dtype=np.int64)
    place[ids.arg_sort().to_numpy()] = np.arange(len(ids))
    return pl.DataFrame([ids, *(values.gather(place).alias(key) for key, values in columns.items())])


class _Space:
    """Columns of both files put side by side, one after the other: coordinates, and categories with their penalties."""

    def __init__(self, files: _Files) -> None:
        self.here, self.there, self.laws = files.here, files.there, files.laws
        self.numbers: list[Floats] = []
        self.ranks: list[Floats] = []
        self.categories: list[Integers] = []
        self.penalties: list[float] = []

    def add(self, column: str, kind: str, weight: float) -> None:
        if kind == "nominal":
            self._category(column, weight)
        elif kind == "ordinal":
            ranks, size = _ranks(column, self.here[column], self.there[column])
            self._coordinate(ranks / max(1, size), weight, self.ranks, scaled=False)
        else:
            self._coordinate(_numbers(column, self.here[column], self.there[column]), weight, self.numbers, scaled=True)

    def clouds(self, whiten: bool) -> tuple[Cloud, Cloud, Floats]:
        size, split = self.here.height + self.there.height, self.here.height
        numbers = np.stack(self.numbers, axis=1) if self.numbers else np.zeros((size, 0))
        if whiten and numbers.shape[1] > 1:
            numbers = numbers @ _whitening(numbers[split:])
        coordinates = np.hstack([numbers, *(rank[:, None] for rank in self.ranks)])
        codes = np.stack(self.categories, axis=1) if self.categories else np.zeros((size, 0), dtype=np.int64)
        sides = [Cloud(coordinates[part], codes[part]) for part in (slice(split), slice(split, None))]
        return sides[0], sides[1], np.array(self.penalties)

    def _category(self, column: str, weight: float) -> None:
        here, there = _comparable(self.here[column], self.there[column])
        if self.laws is not None and _coarsened(here, there, self.laws):
            there = here
        self.categories.append(code(pl.concat([here, there])).codes.astype(np.int64))
        self.penalties.append(weight)

    def _coordinate(self, values: Floats, weight: float, into: list[Floats], *, scaled: bool) -> None:
        """Centred and scaled by the original; without spread in the original it tells nothing and is left out."""
        gaps, old = np.isnan(values), values[self.here.height :]
        old = old[~np.isnan(old)]
        mean, sd = (float(old.mean()), float(old.std())) if len(old) else (0.0, 0.0)
        unit = sd if scaled else 1.0
        if sd > FLAT * abs(mean):
            into.append(np.where(gaps, 0.0, values - mean) * np.sqrt(weight) / unit)
        if gaps.any() and not gaps.all():
            self.categories.append(gaps.astype(np.int64))
            self.penalties.append(weight * ((sd / unit) ** 2 if sd > 0 else 1.0))


def _whitening(original: Floats) -> Floats:
    """What turns Euclidean distance into z' R^-1 z, R the correlations of the original."""
    spread = original.std(axis=0)
    centred = (original - original.mean(axis=0)) / spread
    values, vectors = np.linalg.eigh(centred.T @ centred / len(original))
    loud = values > QUIET * values.max()
    found: Floats = vectors[:, loud] / np.sqrt(values[loud])
    return found


def _numbers(column: str, here: pl.Series, there: pl.Series) -> Floats:
    """Numbers, or points in time counted in the same unit; missing is NaN."""
    both = [s.cast(pl.Datetime("us")) if isinstance(s.dtype, pl.Date | pl.Datetime) else s for s in (here, there)]
    found = np.concatenate([s.to_physical().cast(pl.Float64).to_numpy() for s in both])
    if np.isinf(found).any():
        raise DataError(f"Column {column!r} holds infinite values: remove them first.")
    return found


def _ranks(column: str, here: pl.Series, there: pl.Series) -> tuple[Floats, int]:
    """Places in the order of the categories that occur, missing as NaN, and how many categories there are."""
    if isinstance(there.dtype, pl.Enum) and here.dtype == there.dtype:
        both = pl.concat([here, there]).to_physical()
        return both.cast(pl.Float64).to_numpy(), len(there.dtype.categories)
    if not all(s.dtype.is_numeric() or s.dtype.is_temporal() or s.dtype == pl.Null for s in (here, there)):
        raise DataError(f"Column {column!r} has no order in both files: make it an Enum, numbers or dates.")
    values = _numbers(column, here, there)
    coded = code(pl.Series(values, nan_to_null=True))
    missing = coded.values.null_count()
    return np.where(np.isnan(values), np.nan, coded.codes.astype(np.float64)), coded.size - missing


def _comparable(here: pl.Series, there: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Categories of one type: numbers as numbers, all others as text."""
    kind = pl.Float64() if here.dtype.is_numeric() and there.dtype.is_numeric() else pl.String()
    return here.cast(kind), there.cast(kind)


def _coarsened(here: pl.Series, there: pl.Series, laws: tuple[Law, ...]) -> bool:
    """A column was merely coarsened, so that whoever knows the original value knows the released label.

    It was if each original value has one released label and the laws say so; without laws, if there are fewer labels
    than values, and two records a value on average (or chance could make it look so).
    """
    if here.equals(there, null_equal=True):
        return False
    values = there.n_unique()
    if pl.DataFrame({"old": there, "new": here}).n_unique() > values:
        return False
    said = [law.coarsens for law in laws if here.name in law.columns]
    return all(said) if said else here.n_unique() < values and 2 * values <= len(here)
