"""Guessing a value from a released file: by the nearest record, by the class of equal ones, and by boosted trees.

What is known of released records and of people is coded alike, and so are the values to be guessed: `right` counts, in
any pool of released records, those whose value would be right for a person, by two searches in one sorted array.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from equipoise.attacks._nearest.neighbours import nearest
from equipoise.attacks._nearest.points import Cloud
from equipoise.data.released_terms import comparable
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError, MissingExtraError
from equipoise.ground.packed_keys import code, group

CHUNK = 1 << 22
"""Released records in pools that are dealt with at a time."""
BINS = 254
"""Categories of a known column that trees tell apart, the most frequent ones."""
CLASSES = 20
"""Values that boosted trees guess, the most frequent ones."""
LEARNT = 10_000
"""Released records that trees learn from at most."""
TREES = 200
"""Trees in a fit at most, over all values to be guessed; at least ten rounds, at most fifty."""
FEWEST = 50
"""And at least: fewer are not worth a fit."""


@dataclass(frozen=True, eq=False, repr=False)
class KnownColumns:
    """What is known of `split` released records and, after them, of people: codes, coordinates, categories, features.

    Numbers and dates are coordinates in standard deviations of the release, a missing one stands at the mean and
    carries a penalty of 1; all else is a category, with a penalty of 1 for another one.
    """

    split: int
    codes: tuple[Integers, ...]
    sizes: tuple[int, ...]
    cloud: Cloud
    penalties: Floats
    features: Floats
    nominal: tuple[bool, ...]

    @classmethod
    def of(cls, here: pl.DataFrame, people: pl.DataFrame, columns: tuple[str, ...]) -> "KnownColumns":
        """Both files side by side. O(records x columns)."""
        size, split = here.height + people.height, here.height
        codes, sizes, points, marks, features, nominal = [], [], [], [], [], []
        for column in columns:
            pair, ordered = comparable(here[column], people[column])
            both = pl.concat(pair)
            coded = code(both)
            codes.append(coded.codes)
            sizes.append(coded.size)
            nominal.append(not ordered)
            x = _finite(column, both) if ordered else _by_frequency(coded.codes, coded.size, both, split)
            features.append(x)
            points += [_scaled(x, split)] if ordered else []
            gaps = np.isnan(x)
            marks += [_unseen(coded.codes, split)] if not ordered else [gaps] if gaps.any() else []
        cloud = Cloud(_beside(points, size, np.float64), _beside(marks, size, np.int64))
        return cls(
            split, tuple(codes), tuple(sizes), cloud, np.ones(len(marks)), np.column_stack(features), tuple(nominal)
        )

    def classes(self, many: int) -> Integers:
        """Records and people numbered by their values in the first `many` known columns."""
        if not many:
            return np.zeros(len(self.cloud), dtype=np.int64)
        return group(self.codes[:many], self.sizes[:many])[0]

    @cached_property
    def whole(self) -> Integers:
        return self.classes(len(self.codes))


@dataclass(frozen=True, eq=False, repr=False)
class Secret:
    """The value to be guessed: its rank among the distinct released values, and the ranks right for each person.

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
    def categories(cls, here: pl.Series, people: pl.Series) -> "Secret":
        coded = code(pl.concat([here, people]))
        ranks, asked = coded.codes[: len(here)].astype(np.int64), coded.codes[len(here) :].astype(np.int64)
        return cls(ranks, asked, asked + 1, coded.size)

    @classmethod
    def numbers(cls, here: Floats, people: Floats, tolerance: float) -> "Secret":
        """Numbers are right if they are no farther than the tolerance from the truth."""
        values, ranks = np.unique(here, return_inverse=True)
        low = np.searchsorted(values, people - tolerance, side="left")
        high = np.searchsorted(values, people + tolerance, side="right")
        return cls(ranks, low, high, len(values), here, people, tolerance)

    def told(self) -> tuple[Floats, Floats]:
        """Numbers, released and true."""
        if self.values is None or self.truth is None:
            raise DataError("Categories have no mean.")
        return self.values, self.truth

    def right(self, guess: Floats) -> Floats:
        """1 for each person whose number is guessed within the tolerance."""
        return (np.abs(guess - self.told()[1]) <= self.tolerance).astype(np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class GuessedValues:
    """For each person the probability that the guess is right, and for numbers its expected squared error."""

    hit: Floats
    error: Floats | None = None


def match(known: KnownColumns, secret: Secret) -> GuessedValues:
    """Take the value of the released record nearest to what is known; one at random of those that tie.

    Whoever has equals in the file is matched with them; only the others are looked for by distance. Cost: that of the
    search, and for each distinct question the records that tie.
    """
    pool, people = known.whole[: known.split], known.whole[known.split :]
    met = np.isin(people, pool)
    hit, error = np.zeros(len(people)), np.zeros(len(people))
    for who, of, owner, rows in _pools(known, pool, people, met):
        hit[who] = _share_right(secret, who, of, owner, rows)
        if secret.values is not None:
            error[who] = _square(secret, who, of, owner, rows)
    return GuessedValues(hit, None if secret.values is None else error)


def by_class(known: KnownColumns, secret: Secret) -> GuessedValues:
    """Guess the mode (one at random of those that tie) or mean of the released records with equal known values.

    Without any, the last known column is left out, and so on to the whole file. O(records x columns).
    """
    people = len(known.cloud) - known.split
    hit, error, open_ = np.zeros(people), np.zeros(people), np.ones(people, dtype=np.bool_)
    for many in range(len(known.codes), -1, -1):
        classes = known.classes(many)
        pool, asked = classes[: known.split], classes[known.split :]
        told = np.flatnonzero(open_ & np.isin(asked, pool))
        if secret.values is None:
            hit[told] = _by_mode(secret, pool, asked[told], told)
        else:
            hit[told], error[told] = _by_mean(secret, pool, asked, told)
        open_[told] = False
        if not open_.any():
            break
    return GuessedValues(hit, None if secret.values is None else error)


def boosted(
    known: KnownColumns, secret: Secret, places: Floats, folds: Integers | None, asked: Integers, seed: int
) -> GuessedValues | None:
    """Guess by gradient boosted trees, fitted on released records of other folds than the person's.

    `places` orders the released records at random, `folds` has their folds (None: nobody's own record is there, so one
    fit does for all) and `asked` those of people. None where there is too little to learn. On one thread, so that the
    answer does not depend on the machine. Cost: a fit for each fold on at most `LEARNT` records, and one prediction
    for each person.
    """
    target, labels = _target(secret)
    learners = _canonical(known, target, np.flatnonzero(target >= 0) if labels is not None else None, places)
    if len(learners) < FEWEST or (labels is not None and len(labels) < 2):
        return None
    of = np.zeros(known.split, dtype=np.int64) if folds is None else folds
    asked = asked if folds is not None else np.full_like(asked, -1)
    guess = np.zeros(len(asked))
    with _one_thread():
        for fold in np.unique(asked).tolist():
            rows, people = learners[(of[learners] != fold) | (fold < 0)], np.flatnonzero(asked == fold)
            _, first, back = np.unique(known.whole[known.split + people], return_index=True, return_inverse=True)
            predict = _fitted(known, rows, target[rows], labels is not None, seed)
            guess[people] = predict(known.features[known.split + people[first]])[back]
    if labels is None:
        return GuessedValues(secret.right(guess), (guess - secret.told()[1]) ** 2)
    named = labels[guess.astype(np.int64)]
    return GuessedValues(((named >= secret.low) & (named < secret.high)).astype(np.float64))


def overall(secret: Secret) -> Floats:
    """For each person the chance that the mode or the mean of the whole release is right."""
    nobody = np.zeros(len(secret.ranks), dtype=np.int64)
    people = np.arange(len(secret.low))
    if secret.values is None:
        return _by_mode(secret, nobody, np.zeros(len(people), dtype=np.int64), people)
    return secret.right(np.full(len(people), float(np.sort(secret.values).mean())))


def _pools(known: KnownColumns, pool: Integers, people: Integers, met: Any) -> Iterator[tuple[Integers, ...]]:
    """People, the pool each draws from, and the pools: an owner and a released row for every entry."""
    near, far = np.flatnonzero(met), np.flatnonzero(~met)
    if len(near):
        yield near, people[near], pool, np.arange(known.split)
    if not len(far):
        return
    cloud = known.cloud
    released, asking = (Cloud(cloud.coordinates[r], cloud.codes[r]) for r in (slice(known.split), known.split + far))
    found = nearest(released, asking, known.penalties)
    order = np.argsort(pool, kind="stable")
    start = np.searchsorted(pool[order], np.arange(int(pool.max()) + 2))
    ranked = np.argsort(found.query, kind="stable")
    query, chosen = found.query[ranked], pool[found.row[ranked]]
    many = np.diff(start)[chosen]
    ends = np.searchsorted(query, np.arange(len(found.first) + 1))
    for low, high in _portions(np.append(0, np.cumsum(many))[ends]):
        part = slice(ends[low], ends[high])
        rows = order[np.repeat(start[chosen[part]], many[part]) + _steps(many[part])]
        mine = np.flatnonzero((found.of >= low) & (found.of < high))
        yield far[mine], found.of[mine] - low, np.repeat(query[part] - low, many[part]), rows


def _portions(ends: Integers) -> Iterator[tuple[int, int]]:
    """Runs of questions with about `CHUNK` entries at a time, at least one question each."""
    low, last = 0, len(ends) - 1
    while low < last:
        high = max(low + 1, int(np.searchsorted(ends, ends[low] + CHUNK, side="right")) - 1)
        yield low, min(high, last)
        low = min(high, last)


def _share_right(secret: Secret, who: Integers, of: Integers, owner: Integers, rows: Integers) -> Floats:
    """The share of a person's pool whose value is right for the person."""
    keys = np.sort(owner * (secret.size + 1) + secret.ranks[rows])
    high, low = (np.searchsorted(keys, of * (secret.size + 1) + rank[who]) for rank in (secret.high, secret.low))
    found: Floats = (high - low) / np.bincount(owner, minlength=int(of.max()) + 1)[of]
    return found


def _square(secret: Secret, who: Integers, of: Integers, owner: Integers, rows: Integers) -> Floats:
    """The mean squared error of a value from the pool, from its moments around the overall mean."""
    values, truth = secret.told()
    middle, size = float(values.mean()), int(of.max()) + 1
    x, y = values[rows] - middle, truth[who] - middle
    n, one, two = (np.bincount(owner, weights=w, minlength=size)[of] for w in (np.ones(len(x)), x, x * x))
    found: Floats = np.maximum(two / n - 2 * y * one / n + y * y, 0.0)
    return found


def _by_mode(secret: Secret, pool: Integers, asked: Integers, people: Integers) -> Floats:
    """1 / number of modes of the person's class if the truth is one of them."""
    keys, counts = np.unique(pool * secret.size + secret.ranks, return_counts=True)
    of = keys // secret.size
    most = np.zeros(int(of.max(initial=0)) + 1, dtype=np.int64)
    np.maximum.at(most, of, counts)
    modes = np.bincount(of[counts == most[of]], minlength=len(most))
    wanted = asked * secret.size + secret.low[people]
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    met = (keys[place] == wanted) & (counts[place] == most[asked])
    return np.where(met, 1.0 / np.maximum(modes[asked], 1), 0.0)


def _by_mean(secret: Secret, pool: Integers, asked: Integers, people: Integers) -> tuple[Floats, Floats]:
    values, known_truth = secret.told()
    size = int(pool.max(initial=0)) + 1
    n = np.bincount(pool, minlength=size)
    ordered = np.lexsort((values, pool))
    total = np.bincount(pool[ordered], weights=values[ordered], minlength=size)
    guess, truth = (total / np.maximum(n, 1))[asked[people]], known_truth[people]
    return (np.abs(guess - truth) <= secret.tolerance).astype(np.float64), (guess - truth) ** 2


def _target(secret: Secret) -> tuple[Floats, Integers | None]:
    """What trees learn: numbers as they are, or the most frequent categories numbered (-1: not one of them)."""
    if secret.values is not None:
        return secret.values, None
    counts = np.bincount(secret.ranks, minlength=secret.size)
    labels = np.argsort(-counts, kind="stable")[: min(CLASSES, int((counts > 0).sum()))]
    number = np.full(secret.size, -1)
    number[labels] = np.arange(len(labels))
    return number[secret.ranks].astype(np.float64), labels


def _canonical(known: KnownColumns, target: Floats, rows: Integers | None, places: Floats) -> Integers:
    """Records to learn from, drawn by their places, in an order that the order of the file has no part in."""
    rows = np.arange(known.split) if rows is None else rows
    drawn = rows[np.argsort(places[rows], kind="stable")[:LEARNT]]
    return drawn[np.lexsort((places[drawn], target[drawn], known.whole[drawn]))]


def _fitted(
    known: KnownColumns, rows: Integers, target: Floats, category: bool, seed: int
) -> Callable[[Floats], Floats]:
    """What predicts from features: trees on the columns that have values, or the mean or mode where there are none."""
    told = ~np.isnan(known.features[rows]).all(axis=0)
    if not told.any() or len(np.unique(target)) < 2:
        only = _most(target) if category else float(target.mean())
        return lambda features: np.full(len(features), only)
    values = len(np.unique(target)) if category else 1
    model = _model(category, np.array(known.nominal)[told], TREES // (values if values > 2 else 1), seed)
    model.fit(known.features[rows][:, told], target)
    return lambda features: np.asarray(model.predict(features[:, told]))


def _one_thread() -> Any:
    try:
        from threadpoolctl import threadpool_limits
    except ModuleNotFoundError:
        raise MissingExtraError.for_package("scikit-learn", "learn") from None
    return threadpool_limits(1)


def _model(category: bool, nominal: Integers, rounds: int, seed: int) -> Any:
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    except ModuleNotFoundError:
        raise MissingExtraError.for_package("scikit-learn", "learn") from None
    kind = HistGradientBoostingClassifier if category else HistGradientBoostingRegressor
    return kind(
        max_iter=min(50, max(10, rounds)), learning_rate=0.2, max_leaf_nodes=15, early_stopping=False,
        random_state=seed, categorical_features=nominal,
    )  # fmt: skip


def _most(target: Floats) -> float:
    return float(np.argmax(np.bincount(target.astype(np.int64)))) if len(target) else 0.0


def _finite(column: str, values: pl.Series) -> Floats:
    found = values.to_numpy()
    if np.isinf(found).any():
        raise DataError(f"Column {column!r} holds infinite values: remove them first.")
    return found


def _by_frequency(codes: Integers, size: int, values: pl.Series, split: int) -> Floats:
    """Categories by their place in the order of frequency in the release, the rare ones as one; missing is NaN."""
    counts = np.bincount(codes[:split], minlength=size)
    place = np.empty(size)
    place[np.argsort(-counts, kind="stable")] = np.minimum(np.arange(size), BINS - 1)
    return np.where(values.is_null().to_numpy(), np.nan, place[codes])


def _unseen(codes: Integers, split: int) -> Integers:
    """Codes with one for all categories that the release does not have: they are equally far from everything."""
    top = int(codes.max(initial=0)) + 1
    return np.where(np.isin(codes, codes[:split]), codes.astype(np.int64), top)


def _scaled(x: Floats, split: int) -> Floats:
    """In standard deviations of the released values, missing at their mean."""
    told = x[:split][~np.isnan(x[:split])]
    mean, sd = (float(told.mean()), float(told.std())) if len(told) else (0.0, 0.0)
    return np.where(np.isnan(x), 0.0, (x - mean) / (sd or 1.0))


def _beside(columns: Sequence[Any], size: int, kind: type) -> Any:
    return np.stack(columns, axis=1).astype(kind) if columns else np.zeros((size, 0), dtype=kind)


def _steps(many: Integers) -> Integers:
    """0, 1, ... up to each count."""
    found: Integers = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
    return found
