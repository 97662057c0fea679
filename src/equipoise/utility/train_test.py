"""Train on the release, test on held-out originals: how well a model learnt from the release predicts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.records import Records
from equipoise.data.weighted_samples import sample_notes, weights
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import DataError, require_columns
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields, share
from equipoise.methods.score import Score
from equipoise.utility._default_queries import MAX_CATEGORIES, MAX_GROUP_CATEGORIES, content
from equipoise.utility._user_view import UserView

RIDGE = 1e-6
"""Ridge of the standardised features, as a share of the records: it only keeps collinear ones apart."""
MIN_TEST_RECORDS = 10
Features = Callable[[pl.DataFrame], Floats]


@dataclass(frozen=True, slots=True)
class TrainTest:
    """How well a model trained on the release predicts `target` for originals that it has not seen.

    The share `holdout` of the original records is set aside, drawn with the public `seed`. The model is linear in the
    other columns, categories as indicators, and fitted to the rest of the release by least squares with a slight ridge;
    of a target with categories it gives each a score, and the largest is the guess. The score is what it reaches on
    those set aside: the share guessed right, or of a number with more than 12 values
    1 - sum (y - guess)^2 / sum (y - mean)^2, at least 0. The detail has beside it the same model trained on the same
    records of the original, and a trivial one, the baseline: the most frequent category, or the mean.

    Read as a user does: bands by their middles, missing values as an indicator. A guess of a label that stands for
    several categories is right as often as one in so many. A target that is withheld can be guessed trivially only.

    Source: Esteban, Hyland and Ratsch (2017), *Real-valued (medical) time series generation*, train on synthetic, test
    on real; Hoerl and Kennard (1970). Misleads when what matters is an interaction, which a linear model misses in both
    files. Where rows of both files are not the same people, all of the release is learnt from, those set aside too.
    Cost: O(records x features^2).

    >>> frame = pl.DataFrame({"x": range(100), "y": [2 * x for x in range(100)]})
    >>> records = eq.Records.of(frame, eq.Roles("x", numeric="y"))
    >>> round(TrainTest("y").measure(records, records).value, 6)
    1.0
    """

    target: str
    columns: tuple[str, ...] | None = None
    holdout: float = 0.3
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self, seed=0)
        share(self.holdout, "holdout", open_=True)

    def measure(self, released: Records, original: Records) -> Score:
        columns = tuple(c for c in self.columns or content(original) if c != self.target)
        require_columns((self.target, *columns), original.schema())
        view = UserView.of(released, original, (self.target, *columns))
        task = Task.of(self, view, weights(original, view.raw))
        reached = {
            "release": task.of_release(view, columns, weights(released, view.new)),
            "original": task.reached(task.fitted(view.raw[task.train], task.w[task.train], columns), view.raw),
            "trivial": task.trivial(),
        }
        table = pl.DataFrame({"trained on": [*reached], "reached": [*reached.values()]})
        words = ", ".join(f"{name} {value:.3f}" for name, value in reached.items())
        return Score(
            label(self),
            reached["release"],
            "higher",
            side="utility",
            baseline=reached["trivial"],
            unit="share of held-out variance" if task.numeric else "share of held-out records",
            notes=(
                f"Tested on {len(task.test):,} originals, trained on: {words}.",
                *view.notes(),
                *sample_notes(original, 0),
            ),
            cells=lambda: table,
        )


@dataclass(frozen=True, eq=False, repr=False)
class Task:
    """What is predicted of whom: the records to learn from and those set aside, and the truth of those."""

    target: str
    numeric: bool
    train: pl.Series
    test: pl.Series
    truth: pl.Series
    known: pl.Series
    w: Floats
    several: dict[str, str]

    @classmethod
    def of(cls, measure: TrainTest, view: UserView, w: Floats) -> "Task":
        """The people set aside among those whose target is known."""
        target = view.raw[measure.target]
        rows = np.flatnonzero(target.is_not_null().to_numpy())
        aside = np.random.default_rng(measure.seed).permutation(rows)[: round(measure.holdout * len(rows))]
        if len(aside) < MIN_TEST_RECORDS or len(rows) - len(aside) < MIN_TEST_RECORDS:
            raise DataError(
                f"Fewer than {MIN_TEST_RECORDS} records to learn from, or to test on, have {measure.target!r}."
            )
        test, train = pl.Series(np.sort(aside)), pl.Series(np.setdiff1d(rows, aside))
        numeric = target.dtype.is_numeric() and target.n_unique() > MAX_GROUP_CATEGORIES
        labels = view.collected.get(measure.target)
        texts = {} if labels is None else dict(labels.select(pl.all().cast(pl.String)).iter_rows())
        return cls(measure.target, numeric, train, test, target[test], target[train], w, texts)

    def trivial(self) -> float:
        """What the mean, or the most frequent category, of the records to learn from reaches."""
        if self.numeric:
            mean = np.average(self.known.cast(pl.Float64).to_numpy(), weights=self.w[self.train])
            return self._explained(np.full(len(self.test), mean))
        sums = pl.DataFrame({"value": self.known.cast(pl.String), "w": self.w[self.train]}).group_by("value").sum()
        return self._right(pl.Series([sums.sort("w", "value")["value"][-1]] * len(self.test)))

    def of_release(self, view: UserView, columns: tuple[str, ...], w: Floats) -> float:
        """What a model of the release reaches on originals in its terms; the trivial one where there is none."""
        table, rows = view.new, self.train if view.new.height == view.raw.height else None
        learnt = table if rows is None else table[rows]
        w = w if rows is None else w[rows.to_numpy()]
        present = learnt[self.target].is_not_null().to_numpy() if self.target in learnt.columns else np.zeros(0)
        if self.target in view.lost or (self.numeric and self.target in view.labelled) or present.sum() < 2:
            return self.trivial()
        model = self.fitted(
            learnt.filter(pl.Series(present)), w[present], tuple(c for c in columns if c not in view.lost)
        )
        return self.reached(model, view.old)

    def fitted(self, table: pl.DataFrame, w: Floats, columns: tuple[str, ...]) -> Callable[[pl.DataFrame], Any]:
        """The guesses of a model that is fitted to these records."""
        makers = [_features(table[c], c) for c in columns]
        design = np.column_stack([make(table) for make in makers]) if makers else np.empty((table.height, 0))
        centre, unit = np.average(design, axis=0, weights=w), design.std(axis=0)
        scale = np.where(unit > 0, unit, 1.0)
        outcome, guess = self._outcome(table[self.target])
        means = np.average(outcome, axis=0, weights=w)
        x = (design - centre) / scale
        square = (x.T * w) @ x + RIDGE * w.sum() * np.eye(x.shape[1])
        slopes = np.linalg.solve(square, (x.T * w) @ (outcome - means))

        def guesses(people: pl.DataFrame) -> Any:
            parts = [make(people) for make in makers]
            x = np.column_stack(parts) if parts else np.empty((people.height, 0))
            return guess(means + (x - centre) / scale @ slopes)

        return guesses

    def _outcome(self, values: pl.Series) -> tuple[Floats, Callable[[Floats], Any]]:
        """The target as a number, or an indicator of each category; and how fitted values become a guess."""
        if self.numeric:
            return values.cast(pl.Float64).to_numpy()[:, None], lambda fitted: fitted[:, 0]
        texts = values.cast(pl.String)
        names = texts.unique().sort()
        indicators = np.column_stack([(texts == name).cast(pl.Float64).to_numpy() for name in names])
        return indicators, lambda fitted: names.gather(pl.Series(fitted.argmax(axis=1)))

    def reached(self, model: Callable[[pl.DataFrame], Any], table: pl.DataFrame) -> float:
        guesses = model(table[self.test])
        return self._explained(guesses) if self.numeric else self._right(guesses)

    def _explained(self, guesses: Floats) -> float:
        truth, w = self.truth.cast(pl.Float64).to_numpy(), self.w[self.test]
        spread = np.average((truth - np.average(truth, weights=w)) ** 2, weights=w)
        error = np.average((truth - guesses) ** 2, weights=w)
        return max(0.0, 1 - float(error / spread)) if spread > 0 else float(error == 0)

    def _right(self, guesses: pl.Series) -> float:
        """The share guessed right; of a label that stands for several categories, one in so many."""
        truth = self.truth.cast(pl.String)
        labels = truth.replace([*self.several], [*self.several.values()]) if self.several else truth
        sizes = pl.Series([*self.several.values()], dtype=pl.String).value_counts()
        credit = guesses.replace_strict(dict(sizes.iter_rows()), default=1, return_dtype=pl.Float64).to_numpy()
        right = np.where((guesses == truth).to_numpy() & (credit == 1), 1.0, (guesses == labels).to_numpy() / credit)
        return float(np.average(right, weights=self.w[self.test]))


def _features(values: pl.Series, column: str) -> Features:
    """A number with its mean for missing ones and an indicator of them; else an indicator of each frequent category."""
    if values.dtype.is_numeric():
        mean = float(values.cast(pl.Float64).fill_nan(None).mean() or 0.0)  # type: ignore[arg-type]

        def numbers(table: pl.DataFrame) -> Floats:
            x = table[column].cast(pl.Float64, strict=False).fill_nan(None)
            return np.column_stack([x.fill_null(mean).to_numpy(), x.is_null().cast(pl.Float64).to_numpy()])

        return numbers
    counts = values.cast(pl.String).drop_nulls().value_counts().sort("count", column, descending=[True, False])
    names = counts[column].head(MAX_CATEGORIES).to_list()

    def indicators(table: pl.DataFrame) -> Floats:
        texts = table[column].cast(pl.String)
        columns = [(texts == name).fill_null(value=False).cast(pl.Float64).to_numpy() for name in names]
        return np.column_stack(columns) if columns else np.empty((table.height, 0))

    return indicators
