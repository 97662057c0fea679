"""Expected number of sample uniques that are matched rightly, by a log-linear model of the population."""

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from equipoise.data.cells import Cells
from equipoise.data.moving_units import cell_of
from equipoise.data.records import Law, Records
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import ParameterError, RolesError, hint, shown
from equipoise.laws.column_transitions import Transition
from equipoise.laws.move_records import MovePlan
from equipoise.methods.method import label
from equipoise.methods.parameters import share
from equipoise.methods.score import Score
from equipoise.risk._cell_score import KeyRisk, cell_score, fraction_of
from equipoise.risk._log_linear_model import CRITICAL_VALUE, MAX_CYCLES, Axes, FitCheck, check, choose, fit, risks

INTERACTION_MODELS = ("main", "all", "best")
LAW = "law"


@dataclass(frozen=True)
class LogLinearEstimate:
    """Expected population uniques and correct matches among the sample uniques, and the model.

    `statistic` is standard normal if the model holds: far above 0 the model is too simple and risk overstated, far
    below 0 it is too rich and risk understated; None where the cross of the keys is too large to check.
    """

    sample_uniques: int
    population_uniques: float
    correct_matches: float
    fraction: float
    interactions: tuple[str, ...]
    statistic: float | None


@dataclass(frozen=True, slots=True)
class LogLinear(KeyRisk):
    """Expected share (and number) of records that are sample uniques and would be matched rightly (Skinner-Shlomo).

    The population count F of every cell of the keys is Poisson with mean lambda, its sample count f Poisson with mean
    mu = pi lambda, log mu a sum of main effects and `interactions`, fitted to all cells, empty ones too. For f = 1,
    with x = (1 - pi) mu / pi: P(F = 1 | f = 1) = exp(-x) and E(1/F | f = 1) = (1 - exp(-x)) / x. Their sums over the
    sample uniques, tau1 and tau2, are the expected numbers of population uniques and of correct matches; value =
    tau2 / n. The detail has `risk` E(1/F), `unique` P(F = 1) (both 0 where f > 1) and `mean`, the fitted lambda.

    - `interactions`: "main" (none), "all" pairs, "best" (pairs added while the check finds the model too simple), or
      names like ("age*sex", "age*region"), of any order;
    - `fraction`: pi, by default records / sum of weights;
    - `misclassification`: for keys changed at random, m = P(a record's keys are as they were): one probability; a
      mapping of keys to a probability or to a transition matrix P (rows in the order of the sorted values; m is the
      product of its diagonal entries); or "law", what the masks that ran say. Then
      P(right) = m (1 - exp(-x)) / x with x = (1 - pi m) mu / pi, which is the published m E(1/F) for small pi.

    Where iterative fitting does not converge a note says so, and a record has the larger of its risks by that fit and
    by main effects. `estimate` gives tau1, tau2 and the model's check. Source: Skinner and Shlomo (2008), *Assessing
    identification risk in survey microdata using log-linear models*, JASA 103; Shlomo and Skinner (2010), *Assessing
    the protection provided by misclassification-based disclosure limitation methods for survey microdata*, Ann. Appl.
    Stat. 4.
    Misleads when the model does not hold (read the check), when sampling fractions differ between cells, or when
    misclassification changes the expected counts. Cost: O(cells) to fit main effects; interactions that close a circle
    need the cross of their keys (at most 4 million cells), the check one pass over the whole cross (at most 67
    million), "best" both for every pair and step.

    >>> cells = Cells.of(pl.DataFrame({"sex": ["f", "f", "m"], "age": [30, 40, 30], "n": [2, 1, 3]}))
    >>> round(LogLinear(fraction=0.5).measure(cells, cells).number, 4)
    0.7869
    """

    interactions: str | tuple[str, ...] = "main"
    fraction: float | None = None
    misclassification: float | str | tuple[tuple[str, Any], ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "interactions", _interaction_names(self.interactions))
        if self.fraction is not None:
            share(self.fraction, "fraction")
        object.__setattr__(self, "misclassification", _checked_misclassification(self.misclassification))

    def _score(self, released: Records | Cells, cells: Cells) -> Score:
        fit_by_cell = self._fit(released, cells)
        score = cell_score(label(self), released, fit_by_cell.cells, fit_by_cell.matched, fit_by_cell.notes())
        more = {"risk": fit_by_cell.matched, "unique": fit_by_cell.unique, "mean": fit_by_cell.mean}
        return replace(score, cells=lambda: fit_by_cell.cells.table_with(**more))

    def estimate(self, released: Records | Cells) -> LogLinearEstimate:
        """Expected numbers and the model behind them."""
        fit_by_cell = self._fit(released, self._cells(released))
        return LogLinearEstimate(
            int((fit_by_cell.cells.n == 1).sum()),
            float(fit_by_cell.unique.sum()),
            float(fit_by_cell.matched.sum()),
            fit_by_cell.fraction,
            tuple("*".join(fit_by_cell.cells.by[axis] for axis in axes) for axes in fit_by_cell.interactions),
            fit_by_cell.check.statistic if fit_by_cell.check else None,
        )

    def _fit(self, released: Records | Cells, cells: Cells) -> "_CellFit":
        fraction, notes = fraction_of(cells, self.fraction)
        interactions = self._axes(cells, fraction)
        stays = self._stays(cells, released.history if isinstance(released, Records) else ())
        model, cube, alone = fit(cells.cube, interactions), cells.cube, cells.n == 1
        means = model.at(cube.codes)
        if model.gap:  # the smaller mean has the larger risk: never below what the fit in closed form says
            means = np.minimum(means, fit(cube, ()).at(cube.codes))
        unique, matched = (np.where(alone, risk, 0.0) for risk in risks(means, fraction, stays))
        checked = check(model, cube.codes, cube.n, fraction) if fraction < 1 else None
        advice = ": try interactions='best'" if self.interactions == "main" else ""
        return _CellFit(
            cells,
            fraction,
            interactions,
            unique,
            matched,
            means / fraction,
            checked,
            notes + _unconverged(model.gap),
            advice,
        )

    def _cells(self, released: Records | Cells) -> Cells:
        cells = KeyRisk._cells(self, released)
        if not cells.by:
            raise RolesError("No keys were named: say which columns an intruder may know.")
        if any(cells.values(column).null_count() for column in cells.open if column in cells.by):
            raise ParameterError("A log-linear model takes missing keys as a category of their own, not as any value.")
        return cells

    def _axes(self, cells: Cells, fraction: float) -> tuple[Axes, ...]:
        if self.interactions == "best":
            return choose(cells.cube, fraction) if fraction < 1 else ()
        if isinstance(self.interactions, str):
            return tuple(combinations(range(len(cells.by)), 2)) if self.interactions == "all" else ()
        return tuple(_places(name, cells.by) for name in self.interactions)

    def _stays(self, cells: Cells, history: tuple[Law, ...]) -> Floats:
        """Probability that the keys of a record are unchanged, for each released cell."""
        misclassification = self.misclassification
        if isinstance(misclassification, float):
            return np.full(len(cells), misclassification)
        stays = np.ones(len(cells))
        if misclassification == LAW:
            for place, law in enumerate(history):
                stays *= _by_law(law, cells, history[place + 1 :])
        elif isinstance(misclassification, tuple):
            for key, how in misclassification:
                stays *= _by_key(cells, key, how)
        return stays


@dataclass(frozen=True, eq=False, repr=False)
class _CellFit:
    """The fit of the model, cell by cell."""

    cells: Cells
    fraction: float
    interactions: tuple[Axes, ...]
    unique: Floats
    matched: Floats
    mean: Floats
    check: FitCheck | None
    fraction_notes: tuple[str, ...]
    advice: str

    def notes(self) -> tuple[str, ...]:
        few = f"{self.unique.sum():,.1f} of {int((self.cells.n == 1).sum()):,} sample uniques are expected to be"
        return (*self.fraction_notes, f"{few} unique in the population.", *self._verdict())

    def _verdict(self) -> tuple[str, ...]:
        if self.check is None:
            return () if self.fraction == 1 else ("The cross of the keys is too large to check the model.",)
        z = self.check.statistic
        if abs(z) <= CRITICAL_VALUE:
            return (f"The model fits (test statistic {z:.1f}).",)
        how = "simple, which overstates" if z > 0 else "rich, which understates"
        return (f"The model is too {how} the risk (test statistic {z:.1f}){self.advice if z > 0 else ''}.",)


def _unconverged(gap: float) -> tuple[str, ...]:
    """What is said of a fit that ended before it converged."""
    if not gap:
        return ()
    return (
        f"The fit of the interactions did not converge in {MAX_CYCLES:,} cycles (margins are off by up to {gap:.1g} "
        "records): every record has the larger of its risks by this fit and by main effects alone.",
    )


def _interaction_names(interactions: Any) -> str | tuple[str, ...]:
    """Name of a model, or interactions as `age*sex`."""
    if interactions in INTERACTION_MODELS:
        return str(interactions)
    if isinstance(interactions, str):
        interactions = (interactions,)
    terms = tuple(one if isinstance(one, str) else "*".join(one) for one in interactions)
    if len(terms) == 1 and terms[0] in INTERACTION_MODELS:
        return terms[0]
    for one in terms:
        if "*" not in one:
            choices = ", ".join(INTERACTION_MODELS)
            raise ParameterError(f"interactions are {choices} or names like 'age*sex', got {shown(one)}.")
    return terms


def _places(name: str, keys: tuple[str, ...]) -> Axes:
    """Axes of an interaction; a key may have a star in its name if the whole can be read in one way."""
    parts = tuple(name.split("*"))
    if set(parts) <= set(keys) and len(set(parts)) == len(parts):
        return tuple(sorted(keys.index(part) for part in parts))
    pairs = [pair for pair in combinations(range(len(keys)), 2) if name in _both(keys[pair[0]], keys[pair[1]])]
    if len(pairs) != 1:
        wrong = next((part for part in parts if part not in keys), name)
        raise ParameterError(f"interactions name keys, each once: {name!r}.{hint(wrong, keys)}")
    return pairs[0]


def _both(one: str, two: str) -> tuple[str, str]:
    return f"{one}*{two}", f"{two}*{one}"


def _checked_misclassification(value: Any) -> float | str | tuple[tuple[str, Any], ...] | None:
    """Probabilities and matrices of misclassification, checked and immutable."""
    if value is None or value == LAW:
        return LAW if value else None
    if isinstance(value, int | float):
        return _probability(value)
    if isinstance(value, str):
        raise ParameterError(f"misclassification is {LAW!r}, a probability or one for each key, got {shown(value)}.")
    try:
        pairs = dict(value).items()
    except (TypeError, ValueError):
        raise ParameterError(f"misclassification is {LAW!r}, a probability or one for each key.") from None
    return tuple((str(key), _probability(how) if isinstance(how, int | float) else _matrix(how)) for key, how in pairs)


def _probability(value: float) -> float:
    if not 0 <= value <= 1:
        raise ParameterError(f"The probability that keys stay as they were must be in [0, 1], got {value:g}.")
    return float(value)


def _matrix(rows: Any) -> tuple[tuple[float, ...], ...]:
    table = np.asarray(rows, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] != table.shape[1] or (table < 0).any():
        raise ParameterError("A misclassification matrix has as many rows as columns, none of its entries below 0.")
    if not np.allclose(table.sum(axis=1), 1, atol=1e-9):
        raise ParameterError("Each row of a misclassification matrix must sum to 1.")
    return tuple(tuple(row) for row in table.tolist())


def _by_key(cells: Cells, key: str, how: Any) -> Floats:
    """Diagonal entry of each cell's value of a key; missing values stay."""
    codes, values = cells.cube.codes[cells.place(key)], cells.values(key)
    if isinstance(how, float):
        return np.full(len(cells), how)
    nulls = values.null_count()
    if len(how) != len(values) - nulls:
        raise ParameterError(f"The matrix of {key!r} has {len(how)} rows; the key has {len(values) - nulls} values.")
    return np.concatenate([np.ones(nulls), np.diag(np.array(how))])[codes]


def _by_law(law: Law, cells: Cells, later: tuple[Law, ...]) -> Floats:
    """Probability that keys stay unchanged by the law of a mask; 1 if it does not touch them."""
    detail = law.detail
    if law.coarsens or not set(law.columns) & set(cells.by):
        return np.ones(len(cells))
    if not any(set(law.columns) & set(other.columns) for other in later):
        if isinstance(detail, Transition) and set(detail.strata.columns) <= set(cells.by):
            place, stratum = detail.places(cells.keys[detail.column]), detail.stratum(cells.keys)
            return np.where((place < 0) | (stratum < 0), 1.0, detail.tables[stratum, place, place])
        if isinstance(detail, MovePlan) and detail.units.of_people and detail.units.cells.by == cells.by:
            return np.asarray(1 - detail.law.leave()[cell_of(cells.keys, detail.units.cells)], dtype=np.float64)
    raise ParameterError(
        f"The law of {law.mask} does not say how often these keys stay as they were: give it as misclassification."
    )
