"""Propensity score measure (pMSE): how well a classifier distinguishes released from original records."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.data.weighted_samples import sample_notes, weights, with_weight
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError, InfeasibleError, RolesError, import_extra, require_columns
from equipoise.ground.packed_keys import code
from equipoise.ground.randomness import Draws
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields
from equipoise.methods.score import Score

MAX_RECORDS = 10_000
"""Most records of each file used for learning, drawn with the public seed."""
MAX_CATEGORIES = 50
"""Most categories of a column used as features, the most frequent ones."""
MIN_LEAF_RECORDS = 20
"""Fewest records in a leaf of the tree."""


@dataclass(frozen=True, slots=True)
class Propensity:
    """Mean squared distance of propensity scores from chance (pMSE), on records that were not fitted.

    Both files are stacked; a model (a classification tree, or logistic regression on main effects) is fitted on all
    folds but one and gives each record of that fold the probability p that it is a released one. With c the share of
    released records, pMSE = mean (p - c)^2: 0 when the files cannot be told apart, c (1 - c) when they always can. A
    record and its release are in the same fold. The baseline is its null expectation: the same with the labels dealt
    out again, mean over `permutations`; the note gives the ratio, about 1 for a fresh sample of the same population,
    below it for a file that keeps the records. Columns: the keys, sensitive and numeric ones unless named. A missing
    value is a category, or an indicator beside a number. Weighted, each file to its number of records.

    Source: Woo et al. (2009); Snoke et al. (2018), *General and specific utility measures for synthetic data*, for the
    null. Misleads when a column was recoded: any model sees that. Needs the extra `learn`. The seed is public.
    Cost: folds x (1 + permutations) fits on at most 10,000 records of each file: seconds.

    >>> Propensity(model="logistic")
    Propensity(model='logistic', columns=None, folds=5, permutations=5, seed=0)
    """

    model: Literal["tree", "logistic"] = "tree"
    columns: tuple[str, ...] | None = None
    folds: int = 5
    permutations: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self, folds=2, permutations=1, seed=0)

    def measure(self, released: Records, original: Records) -> Score:
        stack = self._stack(released, original)
        rng = np.random.default_rng(self.seed)
        folds = self._pmse(stack, stack.labels)
        nulls = [self._pmse(stack, rng.permutation(stack.labels)) for _ in range(self.permutations)]
        null = float(np.mean([_whole(rows) for rows in nulls]))
        value = _whole(folds)
        table = pl.DataFrame(folds).with_columns(
            null=np.mean([[row["pmse"] for row in rows] for rows in nulls], axis=0)
        )
        ratio = f"{value / null:.3g} times its null expectation" if null > 0 else "nothing to tell apart"
        return Score(
            label(self),
            value,
            side="utility",
            baseline=null,
            unit="mean squared distance from chance",
            notes=(f"pMSE is {ratio}.", *sample_notes(original, 0)),
            cells=lambda: table,
        )

    def _stack(self, released: Records, original: Records) -> "Stack":
        """Both files, in an order and with folds that depend on the records alone."""
        roles = original.roles
        columns = self.columns or tuple(dict.fromkeys((*roles.keys, *roles.sensitive, *roles.numeric)))
        sides = [_read(side, columns) for side in (original, released)]
        if min(side.height for side in sides) < 10 * self.folds:
            raise InfeasibleError(f"{self.folds} folds need at least {10 * self.folds} records in each file.")
        keys = [_keys(side, table, columns) for side, table in zip((original, released), sides, strict=True)]
        if _in_step(original, released) and len(keys[0]) == len(keys[1]):
            keys[1] = keys[0]
        picked = [_sample_rows(key, Draws(self.seed)) for key in keys]
        tables = [side[rows] for side, (rows, _) in zip(sides, picked, strict=True)]
        places = np.concatenate([draw for _, draw in picked])
        labels = np.repeat([0, 1], [table.height for table in tables])
        order = np.lexsort((labels, places))
        loads = [weights(side, table) for side, table in zip((original, released), tables, strict=True)]
        if not all(load.any() for load in loads):
            raise DataError("No record has a weight above 0: there is nothing to compare.")
        shares = [load / load.max() for load in loads]  # the sum of huge weights would be infinite
        weight = np.concatenate([share * len(share) / share.sum() for share in shares])
        features = np.column_stack([part for c in columns for part in _features(tables[0][c], tables[1][c])])
        fold = (places * self.folds).astype(np.int64)
        return Stack(features[order], labels[order], weight[order], fold[order])

    def _pmse(self, stack: "Stack", labels: Integers) -> list[dict[str, float]]:
        """The mean squared distance from chance in each fold, from a model fitted on the others."""
        c = float(np.average(labels, weights=stack.weights))
        rows = []
        for fold in range(self.folds):
            out = stack.folds == fold
            model = _model(self.model, self.seed)
            model.fit(stack.features[~out], labels[~out], sample_weight=stack.weights[~out])
            p = model.predict_proba(stack.features[out])[:, 1]
            size = float(stack.weights[out].sum())
            pmse = float(stack.weights[out] @ (p - c) ** 2) / size if size > 0 else 0.0
            rows.append({"fold": fold, "records": int(out.sum()), "weight": size, "pmse": pmse})
        return rows


@dataclass(frozen=True, eq=False, repr=False)
class Stack:
    """Records of both files: features, 1 for released, weights and folds."""

    features: Floats
    labels: Integers
    weights: Floats
    folds: Integers


def _whole(rows: list[dict[str, float]]) -> float:
    return float(np.average([row["pmse"] for row in rows], weights=[row["weight"] for row in rows]))


def _read(records: Records, columns: tuple[str, ...]) -> pl.DataFrame:
    schema = records.schema()
    if not columns:
        raise RolesError("No columns were named, and none has a role: there is nothing to tell records apart by.")
    require_columns(columns, schema)
    id_column = (records.roles.id,) if records.roles.id else ()
    return records.collect(*dict.fromkeys((*with_weight(records, columns), *id_column)))


def _keys(records: Records, table: pl.DataFrame, columns: tuple[str, ...]) -> pl.Series:
    """Key of each record's fold: its id, or its content."""
    name = records.roles.id
    if name and table[name].n_unique() == table.height:
        return table[name]
    return Records.of(table.select(columns), Roles()).keys_of_rows()


def _in_step(original: Records, released: Records) -> bool:
    """Files without ids in memory hold the same record in the same row, if they hold the same records."""
    return original.in_memory and released.in_memory and not (original.roles.id or released.roles.sample)


def _sample_rows(keys: pl.Series, draws: Draws) -> tuple[Integers, Floats]:
    """The rows used for learning, and the draw that gives each its fold and place."""
    places, chance = draws.uniform(keys, 0), draws.uniform(keys, 1)
    rows: Integers = np.argsort(chance, kind="stable")[:MAX_RECORDS]
    return rows, places[rows]


def _features(old: pl.Series, new: pl.Series) -> list[Floats]:
    """One column of both files, as numbers or as indicators of its categories."""
    if old.dtype.is_numeric() and new.dtype.is_numeric():
        return _scaled(pl.concat([old.cast(pl.Float64), new.cast(pl.Float64)]).to_numpy())
    coded = code(pl.concat([old.cast(pl.String), new.cast(pl.String)]))
    often = np.argsort(-np.bincount(coded.codes, minlength=coded.size), kind="stable")[:MAX_CATEGORIES]
    return [(coded.codes == category).astype(np.float64) for category in often]


def _scaled(x: Floats) -> list[Floats]:
    """Standardised values, missing ones at the mean, with an indicator where there are any."""
    lacking = ~np.isfinite(x)
    if lacking.all():
        return [np.zeros(len(x))]
    values = x[~lacking]
    spread = float(values.std()) or 1.0
    scaled = np.where(lacking, 0.0, (np.where(lacking, 0.0, x) - values.mean()) / spread)
    return [scaled, lacking.astype(np.float64)] if lacking.any() else [scaled]


def _model(name: str, seed: int) -> Any:
    if name == "tree":
        trees = import_extra("sklearn.tree")
        return trees.DecisionTreeClassifier(min_samples_leaf=MIN_LEAF_RECORDS, random_state=seed)
    return import_extra("sklearn.linear_model").LogisticRegression(C=100.0, max_iter=1000)
