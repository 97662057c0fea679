"""Attribute inference from a released file: by the nearest record, by the class of equal records, by boosted trees.

The known columns of released records and of people are coded alike, and so are the values to be guessed: two searches
in one sorted array count, in any pool of released records, those whose value would be right for a person.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from equipoise.attacks._nearest.neighbours import nearest
from equipoise.attacks._nearest.points import Cloud
from equipoise.data.aligned_files import comparable
from equipoise.data.numeric_columns import finite
from equipoise.ground.arrays import Floats, Integers, runs
from equipoise.ground.errors import DataError, import_extra
from equipoise.ground.packed_keys import code, group

POOL_ENTRIES_PER_CHUNK = 1 << 22
"""Released records in pools handled at a time."""
MAX_CATEGORIES = 254
"""Categories of a known column that trees distinguish at most, the most frequent ones."""
MAX_GUESSED_VALUES = 20
"""Values that boosted trees guess at most, the most frequent ones."""
MAX_TRAINING_RECORDS = 10_000
"""Released records that trees learn from at most."""
MAX_TREES = 200
"""Trees in a fit at most, over all values to be guessed; at least ten rounds, at most fifty."""
MIN_TRAINING_RECORDS = 50
"""Released records that trees learn from at least."""


@dataclass(frozen=True, eq=False, repr=False)
class KnownColumns:
    """Known columns of `split` released records and, after them, of people: codes, coordinates, categories, features.

    Numbers and dates are coordinates in standard deviations of the release, a missing one is at the mean with a penalty
    of 1; all else is a category, with a penalty of 1 for another one.
    """

    split: int
    codes: tuple[Integers, ...]
    sizes: tuple[int, ...]
    cloud: Cloud
    penalties: Floats
    features: Floats
    nominal: tuple[bool, ...]

    @classmethod
    def of(cls, released: pl.DataFrame, people: pl.DataFrame, columns: tuple[str, ...]) -> "KnownColumns":
        """Code the known columns of both files. O(records x columns)."""
        size, split = released.height + people.height, released.height
        codes, sizes, points, marks, features, nominal = [], [], [], [], [], []
        for column in columns:
            pair, ordered = comparable(released[column], people[column])
            both = pl.concat(pair)
            coded = code(both)
            codes.append(coded.codes)
            sizes.append(coded.size)
            nominal.append(not ordered)
            x = finite(column, both.to_numpy()) if ordered else _by_frequency(coded.codes, coded.size, both, split)
            features.append(x)
            points += [_standardise(x, split)] if ordered else []
            gaps = np.isnan(x)
            marks += [_merge_unseen(coded.codes, split)] if not ordered else [gaps] if gaps.any() else []
        cloud = Cloud(_beside(points, size, np.float64), _beside(marks, size, np.int64))
        return cls(
            split, tuple(codes), tuple(sizes), cloud, np.ones(len(marks)), np.column_stack(features), tuple(nominal)
        )

    def classes(self, many: int) -> Integers:
        """Class of each record and person by their values in the first `many` known columns."""
        if not many:
            return np.zeros(len(self.cloud), dtype=np.int64)
        return group(self.codes[:many], self.sizes[:many])[0]

    @cached_property
    def whole(self) -> Integers:
        return self.classes(len(self.codes))


@dataclass(frozen=True, eq=False, repr=False)
class Secret:
    """The value to be guessed: its rank among the distinct released values, and the ranks that are right for a person.

    A guess is right for a person if its rank is at least `low` and below `high`. Numbers also have `values`, the
    released ones, `truth`, those of people, and a `tolerance`.
    """

    ranks: Integers
    low: Integers
    high: Integers
    size: int
    values: Floats | None = None
    truth: Floats | None = None
    tolerance: float = 0.0

    @classmethod
    def categories(cls, released: pl.Series, people: pl.Series) -> "Secret":
        coded = code(pl.concat([released, people]))
        ranks, truth = coded.codes[: len(released)].astype(np.int64), coded.codes[len(released) :].astype(np.int64)
        return cls(ranks, truth, truth + 1, coded.size)

    @classmethod
    def numbers(cls, released: Floats, people: Floats, tolerance: float) -> "Secret":
        """A numeric secret: a guess is right if it is within the tolerance of the truth."""
        values, ranks = np.unique(released, return_inverse=True)
        low = np.searchsorted(values, people - tolerance, side="left")
        high = np.searchsorted(values, people + tolerance, side="right")
        return cls(ranks, low, high, len(values), released, people, tolerance)

    def number_pairs(self) -> tuple[Floats, Floats]:
        """Released values and true values of a numeric secret."""
        if self.values is None or self.truth is None:
            raise DataError("Categories have no mean.")
        return self.values, self.truth

    def right(self, guess: Floats) -> Floats:
        """1 for each person whose number is guessed within the tolerance."""
        return (np.abs(guess - self.number_pairs()[1]) <= self.tolerance).astype(np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class GuessedValues:
    """Probability that the guess is right for each person, and for numbers its expected squared error."""

    hit: Floats
    error: Floats | None = None


def match(columns: KnownColumns, secret: Secret) -> GuessedValues:
    """Guess the value of the released record nearest by the known columns, one at random of those that tie.

    People with equal records in the file are matched with them; only the others are searched by distance. Cost: that of
    the search, and for each distinct query the records that tie.
    """
    pool, people = columns.whole[: columns.split], columns.whole[columns.split :]
    has_equals = np.isin(people, pool)
    hit, error = np.zeros(len(people)), np.zeros(len(people))
    for who, of, owner, rows in _pools(columns, pool, people, has_equals):
        hit[who] = _share_right(secret, who, of, owner, rows)
        if secret.values is not None:
            error[who] = _square(secret, who, of, owner, rows)
    return GuessedValues(hit, None if secret.values is None else error)


def by_class(columns: KnownColumns, secret: Secret) -> GuessedValues:
    """Guess the mode (one at random of those that tie) or mean of the released records with equal known values.

    Without any, the last known column is left out, and so on to the whole file. O(records x columns).
    """
    people = len(columns.cloud) - columns.split
    hit, error, unanswered = np.zeros(people), np.zeros(people), np.ones(people, dtype=np.bool_)
    for many in range(len(columns.codes), -1, -1):
        classes = columns.classes(many)
        pool, person_class = classes[: columns.split], classes[columns.split :]
        answered = np.flatnonzero(unanswered & np.isin(person_class, pool))
        if secret.values is None:
            hit[answered] = _by_mode(secret, pool, person_class[answered], answered)
        else:
            hit[answered], error[answered] = _by_mean(secret, pool, person_class, answered)
        unanswered[answered] = False
        if not unanswered.any():
            break
    return GuessedValues(hit, None if secret.values is None else error)


def by_trees(
    columns: KnownColumns, secret: Secret, places: Floats, folds: Integers | None, fold_of: Integers, seed: int
) -> GuessedValues | None:
    """Guess by gradient boosted trees, fitted on released records of other folds than the person's.

    `places` orders the released records at random, `folds` has their folds (None: nobody's own record is there, so one
    fit serves all) and `fold_of` those of people. None if there is too little to learn. On one thread, so that the
    answer does not depend on the machine. Cost: a fit for each fold on at most `MAX_TRAINING_RECORDS` records, and one
    prediction for each person.
    """
    target, labels = _target(secret)
    learners = _canonical(columns, target, np.flatnonzero(target >= 0) if labels is not None else None, places)
    if len(learners) < MIN_TRAINING_RECORDS or (labels is not None and len(labels) < 2):
        return None
    of = np.zeros(columns.split, dtype=np.int64) if folds is None else folds
    fold_of = fold_of if folds is not None else np.full_like(fold_of, -1)
    guess = np.zeros(len(fold_of))
    with import_extra("threadpoolctl").threadpool_limits(1):
        for fold in np.unique(fold_of).tolist():
            rows, people = learners[(of[learners] != fold) | (fold < 0)], np.flatnonzero(fold_of == fold)
            _, first, back = np.unique(columns.whole[columns.split + people], return_index=True, return_inverse=True)
            predict = _fit(columns, rows, target[rows], labels is not None, seed)
            guess[people] = predict(columns.features[columns.split + people[first]])[back]
    if labels is None:
        return GuessedValues(secret.right(guess), (guess - secret.number_pairs()[1]) ** 2)
    values = labels[guess.astype(np.int64)]
    return GuessedValues(((values >= secret.low) & (values < secret.high)).astype(np.float64))


def overall(secret: Secret) -> Floats:
    """Probability that the mode or the mean of the whole release is right for each person."""
    nobody = np.zeros(len(secret.ranks), dtype=np.int64)
    people = np.arange(len(secret.low))
    if secret.values is None:
        return _by_mode(secret, nobody, np.zeros(len(people), dtype=np.int64), people)
    return secret.right(np.full(len(people), float(np.sort(secret.values).mean())))


def _pools(columns: KnownColumns, pool: Integers, people: Integers, has_equals: Any) -> Iterator[tuple[Integers, ...]]:
    """People, the pool of records each guess is drawn from, and the pools: owner and released row of every entry."""
    near, far = np.flatnonzero(has_equals), np.flatnonzero(~has_equals)
    if len(near):
        yield near, people[near], pool, np.arange(columns.split)
    if not len(far):
        return
    cloud = columns.cloud
    sides = slice(columns.split), columns.split + far
    released, queries = (Cloud(cloud.coordinates[side], cloud.codes[side]) for side in sides)
    neighbours = nearest(released, queries, columns.penalties)
    order = np.argsort(pool, kind="stable")
    start = np.searchsorted(pool[order], np.arange(int(pool.max()) + 2))
    ranked = np.argsort(neighbours.query, kind="stable")
    query, chosen = neighbours.query[ranked], pool[neighbours.row[ranked]]
    many = np.diff(start)[chosen]
    ends = np.searchsorted(query, np.arange(len(neighbours.first) + 1))
    for low, high in _portions(np.append(0, np.cumsum(many))[ends]):
        part = slice(ends[low], ends[high])
        rows = order[runs(start[chosen[part]], start[chosen[part] + 1])]
        mine = np.flatnonzero((neighbours.of >= low) & (neighbours.of < high))
        yield far[mine], neighbours.of[mine] - low, np.repeat(query[part] - low, many[part]), rows


def _portions(ends: Integers) -> Iterator[tuple[int, int]]:
    """Runs of queries with about `POOL_ENTRIES_PER_CHUNK` entries, at least one query each."""
    low, last = 0, len(ends) - 1
    while low < last:
        high = max(low + 1, int(np.searchsorted(ends, ends[low] + POOL_ENTRIES_PER_CHUNK, side="right")) - 1)
        yield low, min(high, last)
        low = min(high, last)


def _share_right(secret: Secret, who: Integers, of: Integers, owner: Integers, rows: Integers) -> Floats:
    """Share of each person's pool whose value is right."""
    keys = np.sort(owner * (secret.size + 1) + secret.ranks[rows])
    high, low = (np.searchsorted(keys, of * (secret.size + 1) + rank[who]) for rank in (secret.high, secret.low))
    return np.asarray((high - low) / np.bincount(owner, minlength=int(of.max()) + 1)[of])


def _square(secret: Secret, who: Integers, of: Integers, owner: Integers, rows: Integers) -> Floats:
    """Mean squared error of a value from the pool, by its moments around the overall mean."""
    values, truth = secret.number_pairs()
    middle, size = float(values.mean()), int(of.max()) + 1
    x, y = values[rows] - middle, truth[who] - middle
    n, one, two = (np.bincount(owner, weights=w, minlength=size)[of] for w in (np.ones(len(x)), x, x * x))
    return np.asarray(np.maximum(two / n - 2 * y * one / n + y * y, 0.0))


def _by_mode(secret: Secret, pool: Integers, person_class: Integers, people: Integers) -> Floats:
    """Probability that a mode of the person's class is right: 1 / number of modes if the truth is one of them."""
    keys, counts = np.unique(pool * secret.size + secret.ranks, return_counts=True)
    of = keys // secret.size
    most = np.zeros(int(of.max(initial=0)) + 1, dtype=np.int64)
    np.maximum.at(most, of, counts)
    modes = np.bincount(of[counts == most[of]], minlength=len(most))
    true_key = person_class * secret.size + secret.low[people]
    place = np.minimum(np.searchsorted(keys, true_key), len(keys) - 1)
    is_mode = (keys[place] == true_key) & (counts[place] == most[person_class])
    return np.where(is_mode, 1.0 / np.maximum(modes[person_class], 1), 0.0)


def _by_mean(secret: Secret, pool: Integers, person_class: Integers, people: Integers) -> tuple[Floats, Floats]:
    values, known_truth = secret.number_pairs()
    size = int(pool.max(initial=0)) + 1
    n = np.bincount(pool, minlength=size)
    ordered = np.lexsort((values, pool))
    total = np.bincount(pool[ordered], weights=values[ordered], minlength=size)
    guess, truth = (total / np.maximum(n, 1))[person_class[people]], known_truth[people]
    return (np.abs(guess - truth) <= secret.tolerance).astype(np.float64), (guess - truth) ** 2


def _target(secret: Secret) -> tuple[Floats, Integers | None]:
    """Target of the trees: numbers as they are, or the most frequent categories numbered (-1: not one of them)."""
    if secret.values is not None:
        return secret.values, None
    counts = np.bincount(secret.ranks, minlength=secret.size)
    labels = np.argsort(-counts, kind="stable")[: min(MAX_GUESSED_VALUES, int((counts > 0).sum()))]
    number = np.full(secret.size, -1)
    number[labels] = np.arange(len(labels))
    return number[secret.ranks].astype(np.float64), labels


def _canonical(columns: KnownColumns, target: Floats, rows: Integers | None, places: Floats) -> Integers:
    """Training records, drawn by their random places, in an order independent of that of the file."""
    rows = np.arange(columns.split) if rows is None else rows
    chosen = rows[np.argsort(places[rows], kind="stable")[:MAX_TRAINING_RECORDS]]
    return chosen[np.lexsort((places[chosen], target[chosen], columns.whole[chosen]))]


def _fit(
    columns: KnownColumns, rows: Integers, target: Floats, category: bool, seed: int
) -> Callable[[Floats], Floats]:
    """Prediction function: trees on the columns that have values, or the mean or mode if none has."""
    has_values = ~np.isnan(columns.features[rows]).all(axis=0)
    if not has_values.any() or len(np.unique(target)) < 2:
        only = _most(target) if category else float(target.mean())
        return lambda features: np.full(len(features), only)
    values = len(np.unique(target)) if category else 1
    model = _model(category, np.array(columns.nominal)[has_values], MAX_TREES // (values if values > 2 else 1), seed)
    model.fit(columns.features[rows][:, has_values], target)
    return lambda features: np.asarray(model.predict(features[:, has_values]))


def _model(category: bool, nominal: Integers, rounds: int, seed: int) -> Any:
    ensemble = import_extra("sklearn.ensemble")
    kind = ensemble.HistGradientBoostingClassifier if category else ensemble.HistGradientBoostingRegressor
    return kind(
        max_iter=min(50, max(10, rounds)), learning_rate=0.2, max_leaf_nodes=15, early_stopping=False,
        random_state=seed, categorical_features=nominal,
    )  # fmt: skip


def _most(target: Floats) -> float:
    return float(np.argmax(np.bincount(target.astype(np.int64)))) if len(target) else 0.0


def _by_frequency(codes: Integers, size: int, values: pl.Series, split: int) -> Floats:
    """Categories ranked by frequency in the release, the rare ones merged; missing is NaN."""
    counts = np.bincount(codes[:split], minlength=size)
    place = np.empty(size)
    place[np.argsort(-counts, kind="stable")] = np.minimum(np.arange(size), MAX_CATEGORIES - 1)
    return np.where(values.is_null().to_numpy(), np.nan, place[codes])


def _merge_unseen(codes: Integers, split: int) -> Integers:
    """Codes with a single code for all categories absent from the release: they are equally far from everything."""
    top = int(codes.max(initial=0)) + 1
    return np.where(np.isin(codes, codes[:split]), codes.astype(np.int64), top)


def _standardise(x: Floats, split: int) -> Floats:
    """Values in standard deviations of the released ones, missing at their mean."""
    present = x[:split][~np.isnan(x[:split])]
    mean, sd = (float(present.mean()), float(present.std())) if len(present) else (0.0, 0.0)
    return np.where(np.isnan(x), 0.0, (x - mean) / (sd or 1.0))


def _beside(columns: Sequence[Any], size: int, kind: type) -> Any:
    return np.stack(columns, axis=1).astype(kind) if columns else np.zeros((size, 0), dtype=kind)
