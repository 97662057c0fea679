"""Boosted regression trees of scikit-learn, fitted on some records and asked about others."""

import numpy as np

from equipoise.ground.arrays import Floats
from equipoise.ground.errors import MissingExtraError
from equipoise.risk._value_snoopers.best_rules import relative

MAX_TREE_RECORDS, TREE_FOLDS = 10_000, 3


def crossed_tree_errors(x: Floats, originals: Floats) -> list[float]:
    """Relative errors of boosted trees that learn from other people's pairs of records, in three folds."""
    errors = []
    for y in originals.T:
        present = np.flatnonzero(~np.isnan(y))
        guess = np.full(len(y), y[present].mean())
        for fold in range(TREE_FOLDS) if len(present) >= TREE_FOLDS else ():
            inside = present[np.arange(len(present)) % TREE_FOLDS == fold]
            outside = np.setdiff1d(present, inside)
            guess[inside] = boosted_guesses(x[outside], y[outside], x[inside])
        errors.append(relative(guess[present], y[present]))
    return errors


def boosted_guesses(x: Floats, y: Floats, questions: Floats) -> Floats:
    """Guesses of boosted trees fitted on x and y, on one thread: idle threads of OpenMP burn CPU."""
    try:
        from sklearn.ensemble import HistGradientBoostingRegressor
        from threadpoolctl import threadpool_limits
    except ModuleNotFoundError:
        raise MissingExtraError.for_package("scikit-learn", "learn") from None
    x, y = x[:MAX_TREE_RECORDS], y[:MAX_TREE_RECORDS]
    model = HistGradientBoostingRegressor(max_iter=100, learning_rate=0.1, max_leaf_nodes=15, random_state=0)
    with threadpool_limits(1):
        return np.asarray(model.fit(x, y).predict(questions))
