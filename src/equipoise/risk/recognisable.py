"""Share of the records moved by post-randomization that a classifier recognises."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.aligned_files import aligned
from equipoise.data.moving_units import cell_of
from equipoise.data.records import Records
from equipoise.ground.arrays import Booleans, Floats
from equipoise.ground.errors import ParameterError, import_extra
from equipoise.ground.packed_keys import code
from equipoise.laws.move_records import MovePlan
from equipoise.methods.method import label
from equipoise.methods.score import Score

FOLDS = 5


@dataclass(frozen=True, slots=True)
class Recognisable:
    """Share of the moved records that a classifier recognises as moved, at a stated rate of false alarms.

    A boosted tree is fitted, on folds it is not judged on, to tell records whose keys were changed from those that were
    not, among those in cells that may hold moved ones, by everything the released file holds. The value d is the share
    of moved records flagged when a share `alarm` of the unmoved ones is flagged, less that share (what a coin would
    flag). An intruder who strikes out recognised movers turns a bound xi into xi / (xi + (1 - xi)(1 - d)); the note
    says it where the file was made by Pram. Needs the extra `learn`. The seed of the folds is public.

    Source: Bayes' rule on the candidates of Nayak (2015), section 2a. Misleads when the intruder knows more than the
    file. Cost: O(records x columns), a few seconds for 100,000 records.

    >>> Recognisable()
    Recognisable(alarm=0.01, seed=0)
    """

    alarm: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.alarm < 1:
            raise ParameterError(f"alarm must be a share between 0 and 1, got {self.alarm:g}.")

    def measure(self, released: Records, original: Records) -> Score:
        columns = tuple(c for c in released.schema() if c != released.roles.id)
        released_table, original_table = aligned(released, original, columns)
        keys = [k for k in original.roles.keys if released_table[k].dtype == original_table[k].dtype]
        is_moved = np.zeros(released_table.height, dtype=bool)
        for key in keys:
            is_moved |= released_table[key].ne_missing(original_table[key]).to_numpy()
        is_movable, suspicions = _movable(released, released_table), np.zeros(released_table.height)
        if is_moved[is_movable].sum() < 2 * FOLDS or (is_movable & ~is_moved).sum() < 2 * FOLDS:
            share, half, notes = 0.0, 0.0, ["Fewer than ten records were moved, or could be and were not."]
        else:
            suspicions[is_movable] = suspicion(_features(released_table)[is_movable], is_moved[is_movable], self.seed)
            share, half = recognised_share(suspicions[is_movable], is_moved[is_movable], self.alarm)
            notes = _notes(released, max(0.0, share))
        return Score(
            label(self),
            max(0.0, share),
            interval=(max(0.0, share - half), min(1.0, max(0.0, share) + half)),
            baseline=0.0,
            number=float(is_moved.sum()),
            unit="share of moved records",
            notes=tuple(notes),
            cells=lambda: _per_record(released, suspicions),
            records=lambda: _per_record(released, suspicions),
        )


def _per_record(released: Records, guess: Floats) -> pl.DataFrame:
    """Predicted probability that each record was moved, by id (sorted) or in input order."""
    name = released.roles.id
    ids = released.collect(name)[name].sort() if name else pl.Series("record", range(len(guess)), dtype=pl.UInt32)
    return pl.DataFrame([ids, pl.Series("risk", guess)])


def _movable(released: Records, table: pl.DataFrame) -> Booleans:
    """Whether each record is in a cell that Pram may have moved somebody into."""
    plans = [law.detail for law in released.history if isinstance(law.detail, MovePlan)]
    if len(plans) != 1 or not plans[0].units.of_people:
        return np.ones(table.height, dtype=bool)
    return np.asarray(plans[0].law.block[cell_of(table, plans[0].units.cells)] >= 0)


def _notes(released: Records, share: float) -> list[str]:
    """xi(d) = xi / (xi + (1 - xi)(1 - d)), d being the share: movers recognised are struck from the candidates."""
    bounds = [float(law.parameters["xi"]) for law in released.history if "xi" in law.parameters]
    return [
        f"The bound of {xi:g} becomes {xi / (xi + (1 - xi) * (1 - share)):.4g} against this intruder." for xi in bounds
    ]


def _features(table: pl.DataFrame) -> Floats:
    """Features of the classifier: numbers as they are, everything else by the frequency rank of its category."""
    columns = []
    for column in table.iter_columns():
        if column.dtype.is_numeric():
            columns.append(column.cast(pl.Float64).to_numpy())
        else:
            coded = code(column)
            often = np.argsort(np.argsort(-np.bincount(coded.codes, minlength=coded.size), kind="stable"))
            columns.append(often[coded.codes].astype(np.float64))
    return np.column_stack(columns)


def suspicion(features: Floats, is_moved: Booleans, seed: int) -> Floats:
    """Predicted probability that each record was moved, by trees that were not fitted on it."""
    ensemble, selection = import_extra("sklearn.ensemble"), import_extra("sklearn.model_selection")
    model = ensemble.HistGradientBoostingClassifier(max_iter=100, class_weight="balanced", random_state=seed)
    folds = selection.StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    return np.asarray(selection.cross_val_predict(model, features, is_moved, cv=folds, method="predict_proba")[:, 1])


def recognised_share(guess: Floats, is_moved: Booleans, alarm: float) -> tuple[float, float]:
    """Share flagged among the moved less the false alarms, and half its 95 % interval."""
    limit = np.quantile(guess[~is_moved], 1 - alarm)
    hit, false = float((guess[is_moved] > limit).mean()), float((guess[~is_moved] > limit).mean())
    half = 1.96 * float(np.sqrt(hit * (1 - hit) / is_moved.sum() + false * (1 - false) / (~is_moved).sum()))
    return hit - false, half
