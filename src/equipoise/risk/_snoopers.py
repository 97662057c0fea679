"""Regressions of a person's numbers on the columns of a release: what the snoopers of `ValueDisclosure` explain."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.aligned_files import aligned
from equipoise.data.records import Records
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import EngineError, MissingExtraError
from equipoise.risk._forest import forest_guesses, sampled_rows

KNOT_QUANTILES = (0.5, 0.9, 0.1, 0.98)
"""Where the lines of the curved snooper may bend; the first ones where records are few."""
RECORDS_PER_TERM = 30
"""Records for each term of the curved snooper, so that it does not learn records by heart."""
MAX_CATEGORIES = 20
"""Categories of a column that have a term, the most frequent."""
NEIGHBOURS = (1, 5)
"""Released records whose mean is a guess."""
MAX_NEIGHBOUR_QUESTIONS, MAX_TREE_RECORDS, TREE_FOLDS = 2_000, 10_000, 3
MAX_PRIOR_RECORDS, PRIOR_STEP, LEAST_CHANGE = 10_000, 50, 0.05
"""People whose values are the prior of others, questions at a time, and the least change, in standard deviations."""
SINGLE_FORESTS, SINGLE_WORK = 2, 10_000_000
"""Columns, those known best, that a forest also guesses alone, by more records: one of all fits each a little less."""
MAX_NEAR = 20
"""Nearest records that are looked at, half of which teach."""
SINGULAR_SHARE = 1e-10
"""Share of the largest eigenvalue below which a direction counts for nothing."""


@dataclass(frozen=True)
class Term:
    """A column as a number or code, what lies beyond a knot, whether it is missing, or whether it has this category."""

    column: str
    kind: str
    centre: float = 0.0
    unit: float = 1.0
    knot: float = 0.0
    category: str | None = None
    codes: pl.DataFrame | None = None

    def values(self, table: pl.DataFrame) -> Floats:
        if self.kind == "category":
            return (as_text(table[self.column]) == self.category).fill_null(False).to_numpy().astype(np.float64)
        if self.codes is not None:
            text = pl.DataFrame({"category": as_text(table[self.column])})
            found = text.join(self.codes, on="category", how="left", maintain_order="left")["code"]
            return found.fill_null(-1).to_numpy().astype(np.float64)
        numbers = as_numbers(table[self.column])
        if self.kind == "missing":
            return np.isnan(numbers).astype(np.float64)
        scaled = np.where(np.isnan(numbers), 0.0, (numbers - self.centre) / self.unit)
        return scaled if self.kind == "number" else np.maximum(scaled - self.knot, 0.0)


@dataclass(frozen=True)
class Terms:
    """The terms of a regression: numbers as they are (`linear`), with bends and categories (`curved`), or as trees cut
    them (`coded`: a category by how frequent it is).
    """

    linear: tuple[Term, ...]
    curved: tuple[Term, ...]
    coded: tuple[Term, ...]

    @classmethod
    def of(cls, released: pl.DataFrame, columns: Sequence[str]) -> "Terms":
        """Terms from the released file; bends and categories while there are 30 records for each term."""
        numeric = [c for c in columns if is_number(released[c])]
        linear = tuple(term for c in numeric for term in _of_number(released[c]))
        room = released.height // RECORDS_PER_TERM - len(linear)
        bends = [bend for place in range(len(KNOT_QUANTILES)) for bend in _bends(released, linear, place)]
        bends = bends[: max(0, room)]
        room -= len(bends)
        categories: list[Term] = []
        for column in (c for c in columns if c not in numeric):
            more = list(_of_category(released[column]))
            categories += more if len(more) <= room else []
            room -= len(more) if len(more) <= room else 0
        codes = (Term(c, "code", codes=_codes(released[c])) for c in columns if c not in numeric)
        return cls(linear, (*linear, *bends, *categories), (*linear, *codes))


def usable_columns(released: Records, original: Records) -> tuple[str, ...]:
    """Columns that both files hold, but the numbers of people, households and samples."""
    roles = (released.roles, original.roles)
    labels = {name for role in roles for name in (role.id, role.household, role.sample)}
    schema = released.schema()
    return tuple(c for c in original.schema() if c in schema and c not in labels)


def paired_people(released: Records, original: Records, columns: tuple[str, ...]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Both files row by row; copies of the same people are averaged, their categories those of the first copy."""
    name = released.roles.sample
    if name is None:
        return aligned(released, original, columns)
    table, own = released.collect(), released.roles.id
    table = table.sort(pl.col(own).cast(pl.Int64, strict=False), maintain_order=True) if own else table
    copies = table.partition_by(name, maintain_order=True)
    people = original.collect(*columns)
    if any(copy.height != people.height for copy in copies):
        raise EngineError("The samples and the original file have different records: they cannot be averaged.")
    numeric = [c for c in columns if table.schema[c].is_numeric()]
    means = np.mean([copy.select(pl.col(numeric).cast(pl.Float64)).to_numpy() for copy in copies], axis=0)
    averages = pl.DataFrame(means, schema=numeric).fill_nan(None)
    return copies[0].select(columns).with_columns(averages.get_columns()), people


def seen_by_snoopers(
    released: Records, original: Records, columns: tuple[str, ...]
) -> tuple[tuple[str, ...], pl.DataFrame, pl.DataFrame, Integers]:
    """The released columns that a snooper reads, both files row by row, and the unit of each row.

    Rows of one household or person are seen together: beside each row stand the number of its other rows and their mean
    of each of these columns. Noise drawn for each row of a panel would else seem larger than its average is.
    """
    every = tuple(dict.fromkeys((*columns, *usable_columns(released, original))))
    units = [u for u in (released.roles.household, released.roles.person) if u and u in original.schema()]
    released_table, original_table = paired_people(released, original, tuple(dict.fromkeys((*every, *units))))
    numeric = [c for c in columns if released_table.schema[c].is_numeric()]
    more = [expression for unit in dict.fromkeys(units) for expression in _of_other_rows(unit, numeric)]
    table = released_table.with_columns(more)
    every = (*every, *(c for c in table.columns if c not in released_table.columns))
    return every, table, original_table, _unit_numbers(released_table, units)


def _unit_numbers(table: pl.DataFrame, units: Sequence[str]) -> Integers:
    """The same number for rows of one household, or of one person where there is no household."""
    alone = pl.int_range(pl.len(), dtype=pl.Int64)
    if not units:
        return table.select(alone).to_series().to_numpy()
    number = pl.col(units[0]).rank("dense").cast(pl.Int64)
    return table.select(pl.when(pl.col(units[0]).is_null()).then(-1 - alone).otherwise(number)).to_series().to_numpy()


def _of_other_rows(unit: str, columns: Sequence[str]) -> Iterator[pl.Expr]:
    """How many other rows of its unit a row has, and the mean of each column in them."""
    yield pl.when(pl.col(unit).is_not_null()).then(pl.len().over(unit) - 1).alias(f"other rows of {unit}")
    for column in columns:
        own = pl.col(column).cast(pl.Float64).fill_nan(None)
        others = own.count().over(unit) - own.is_not_null().cast(pl.Int64)
        mean = (own.sum().over(unit) - own.fill_null(0.0)) / others
        yield pl.when(pl.col(unit).is_not_null() & (others > 0)).then(mean).alias(f"{column} in other rows of {unit}")


def is_number(column: pl.Series) -> bool:
    return column.dtype.is_numeric() or column.dtype.is_temporal()


def as_numbers(column: pl.Series) -> Floats:
    """Numbers, points in time as numbers too; anything else, and infinities, are missing."""
    if not is_number(column):
        return np.full(len(column), np.nan)
    numbers = column.to_physical().cast(pl.Float64).to_numpy()
    return np.where(np.isfinite(numbers), numbers, np.nan)


def as_text(column: pl.Series) -> pl.Series:
    return column.cast(pl.String)


def _of_number(column: pl.Series) -> Iterator[Term]:
    numbers = as_numbers(column)
    present = numbers[~np.isnan(numbers)]
    centre, unit = (float(present.mean()), float(present.std())) if len(present) else (0.0, 0.0)
    if unit > 0:
        yield Term(column.name, "number", centre, unit)
    if 0 < len(present) < len(numbers):
        yield Term(column.name, "missing")


def _bends(released: pl.DataFrame, linear: Sequence[Term], place: int) -> Iterator[Term]:
    """One bend in each number, at a quantile of its released values."""
    for term in linear:
        if term.kind == "number":
            values = term.values(released)
            knot = float(np.quantile(values, KNOT_QUANTILES[place]))
            if values.min() < knot < values.max():
                yield Term(term.column, "bend", term.centre, term.unit, knot)


def _of_category(column: pl.Series) -> Iterator[Term]:
    counts = as_text(column).drop_nulls().value_counts(name="n").sort(["n", column.name], descending=[True, False])
    for category in counts[column.name].head(MAX_CATEGORIES):
        yield Term(column.name, "category", category=category)


def _codes(column: pl.Series) -> pl.DataFrame:
    """Categories by number, the most frequent first."""
    counts = as_text(column).alias("category").drop_nulls().value_counts(name="n")
    return counts.sort(["n", "category"], descending=[True, False]).select("category").with_row_index("code")


def matrix(terms: Sequence[Term], table: pl.DataFrame) -> Floats:
    """A row for each record, a column for each term, and one of ones."""
    return np.stack([np.ones(table.height), *(term.values(table) for term in terms)], axis=1)


def coefficients(x: Floats, y: Floats) -> Floats:
    """Least squares, the shortest solution where several fit alike. O(records x terms^2)."""
    inverse = np.linalg.pinv(x.T @ x, rcond=SINGULAR_SHARE, hermitian=True)
    return np.asarray(inverse @ (x.T @ y))


def best_fit_errors(terms: Sequence[Term], released: pl.DataFrame, originals: Floats) -> list[float]:
    """Relative mean squared error of the best rule in these terms, for each column of the originals.

    The rule is fitted to the originals themselves: no rule of this form, however it was come by, has a smaller error.
    """
    x = matrix(terms, released)
    errors = []
    for y in originals.T:
        present = ~np.isnan(y)
        rows, centred = (x if present.all() else x[present]), y[present] - y[present].mean()
        errors.append(_relative(rows @ coefficients(rows, centred), centred))
    return errors


def flexible_errors(
    terms: Terms,
    released: pl.DataFrame,
    masked: Floats,
    originals: Floats,
    by_all_columns: Sequence[float],
    units: Integers,
) -> list[float]:
    """Relative errors of a random forest, neighbours and Bayes' rule, on at most 3,000 records, for each column.

    The forest guesses for records that its trees have not seen, Bayes' rule and the mean of the nearest by the values
    of other `units`. The guesses of the first two for all columns and the released numbers are joined by the best
    linear rule, fitted to the originals, while there are 30 records for each of them; the nearest are not, for the mean
    of all others of a group would give the one left out. The columns that are known best have a forest of their own,
    too. On a sample the error is that ratio to the best linear rule of the numbers alone, times the error of that rule
    in all records.
    """
    if not terms.coded:
        return [1.0] * originals.shape[1]
    everybody, columns = np.arange(released.height), originals.shape[1]
    rows = sampled_rows(everybody, len(terms.coded), columns)
    present = ~np.isnan(originals)
    centre = np.where(present, originals, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
    values = np.where(present, originals, centre) - centre
    features = matrix(terms.coded, released[rows])[:, 1:]
    guesses = [
        forest_guesses(features, values[rows], units=units[rows]),
        posterior_means(np.where(np.isnan(masked), centre, masked) - centre, values, rows, units),
    ]
    near = neighbour_means(features, values[rows], units[rows])

    def error(at: int, rows: Integers, own: Sequence[Floats], others: Sequence[Floats]) -> float:
        known = present[rows, at]
        linear, truth = matrix(terms.linear, released[rows])[known], values[rows, at][known]
        least = _joined_error_of([guess[known] for guess in own], [guess[known] for guess in others], linear, truth)
        if len(rows) == len(everybody):
            return least
        return least * by_all_columns[at] / max(1e-12, _best_linear(linear, truth))

    alike = [near, (guesses[0] + near) / 2]
    errors = [error(at, rows, [guess[:, at] for guess in [*guesses, *alike]], guesses) for at in range(columns)]
    alone = sampled_rows(everybody, len(terms.coded), 1)
    x = matrix(terms.coded, released[alone])[:, 1:]
    for at in np.argsort(errors)[:SINGLE_FORESTS].tolist() if columns > 1 else ():
        guess = forest_guesses(x, values[alone][:, [at]], most=SINGLE_WORK, units=units[alone])
        errors[at] = min(errors[at], error(at, alone, [guess[:, 0]], [guess]))
    return errors


def _joined_error_of(own: Sequence[Floats], others: Sequence[Floats], linear: Floats, truth: Floats) -> float:
    """The least relative error of a column's own guesses, or of all others and numbers where records are enough."""
    errors = [_relative(guess, truth) for guess in own]
    joined = np.column_stack([*(guess / np.maximum(guess.std(axis=0), 1e-300) for guess in others), linear])
    if len(truth) >= RECORDS_PER_TERM * joined.shape[1]:
        errors.append(_best_linear(joined, truth))
    return min(errors)


def neighbour_means(features: Floats, values: Floats, units: Integers) -> Floats:
    """Means of the records most alike in ranks, 10 of the 20 nearest at most, of other units, the nearest most."""
    from scipy.spatial import cKDTree

    ranks = np.column_stack([pl.Series(column).rank().to_numpy() for column in features.T]) / len(features)
    gaps, near = cKDTree(ranks).query(ranks, k=[*range(1, min(MAX_NEAR, len(values)) + 1)])
    others = units[near] != units[:, None]
    others &= np.cumsum(others, axis=1) <= MAX_NEAR // 2
    weight = others / np.maximum(gaps, 1e-6)
    sums = (values[near] * weight[:, :, None]).sum(axis=1)
    return np.asarray(sums / np.maximum(weight.sum(axis=1), 1e-30)[:, None])


def posterior_means(masked: Floats, values: Floats, rows: Integers, units: Integers) -> Floats:
    """E(x | y) of some rows by Bayes' rule, the values of all other units being the prior, as drawn by a public seed.

    The likelihood of y given x is normal with the covariance of the changes y - x, which the law of a noise tells.
    """
    covariance = np.cov((masked - values).T).reshape(values.shape[1], -1)
    unit = np.maximum(values.std(axis=0), 1e-150)
    covariance = covariance + np.diag((LEAST_CHANGE * unit) ** 2)
    whitening = np.linalg.inv(np.linalg.cholesky(covariance)).T
    atoms = np.random.default_rng(len(values)).permutation(len(values))[:MAX_PRIOR_RECORDS]
    if len(atoms) < 2:
        return np.zeros((len(rows), values.shape[1]))
    people, asked = values[atoms] @ whitening, masked[rows] @ whitening
    prior = np.column_stack([people, -(people**2).sum(axis=1) / 2]).T
    taught = np.column_stack([values[atoms] / unit, np.ones(len(atoms))]).astype(np.float32)
    sums = np.empty((len(rows), taught.shape[1]))
    for at in range(0, len(rows), PRIOR_STEP):
        some = slice(at, at + PRIOR_STEP)
        logs = np.column_stack([asked[some], np.ones(len(asked[some]))]) @ prior
        logs[units[rows[some], None] == units[atoms]] = -np.inf
        logs -= np.maximum(logs.max(axis=1, keepdims=True), -1e300)
        sums[some] = np.exp(logs.astype(np.float32)) @ taught  # single precision: seven times as fast
    return sums[:, :-1] / np.maximum(sums[:, -1:], 1e-30) * unit


def _best_linear(x: Floats, y: Floats) -> float:
    return _relative(x @ coefficients(x, y), y)


def learnt_errors(
    terms: Sequence[Term], released: pl.DataFrame, target: str, people: Sequence[pl.DataFrame]
) -> list[float]:
    """Relative errors of the rule that the release teaches, in each of several files of people.

    Guesses are taken as they are, or kept within the range of the release, whichever errs less.
    """
    y = as_numbers(released[target])
    present = ~np.isnan(y)
    rule = coefficients(matrix(terms, released)[present], y[present])
    low, high = float(y[present].min()), float(y[present].max())
    guesses = [matrix(terms, table) @ rule for table in people]
    return [
        min(_of_people(guess, table, target), _of_people(np.clip(guess, low, high), table, target))
        for guess, table in zip(guesses, people, strict=True)
    ]


def neighbour_errors(
    terms: Sequence[Term], released: pl.DataFrame, target: str, people: Sequence[pl.DataFrame]
) -> list[float]:
    """Relative errors of the mean of the nearest released records, of one or five, whichever is smaller."""
    from scipy.spatial import cKDTree

    y = as_numbers(released[target])
    present = ~np.isnan(y)
    tree, values = cKDTree(matrix(terms, released)[present]), y[present]
    errors = []
    for table in people:
        some = _spread_out(table, target)
        _, places = tree.query(matrix(terms, some), k=[*range(1, min(NEIGHBOURS[-1], len(values)) + 1)])
        errors.append(min(_of_people(values[places[:, :k]].mean(axis=1), some, target) for k in NEIGHBOURS))
    return errors


def learnt_forest_errors(
    terms: Terms, released: pl.DataFrame, target: str, people: Sequence[pl.DataFrame]
) -> list[float]:
    """Relative errors of a random forest that learns from at most 3,000 records of the release.

    Where there are 30 people for each term, its guesses are joined with those of the curved rule and of the five
    nearest records by the best linear rule: no other weights of the three err less.
    """
    from scipy.spatial import cKDTree

    y = as_numbers(released[target])
    rows = sampled_rows(np.flatnonzero(~np.isnan(y)), len(terms.coded), len(people))
    asked = [_spread_out(table, target) for table in people]
    learnt = matrix(terms.coded, released[rows])[:, 1:]
    questions = np.concatenate([matrix(terms.coded, table)[:, 1:] for table in asked])
    guesses = forest_guesses(learnt, y[rows][:, None], questions)[:, 0]
    unit, low, high = np.maximum(learnt.std(axis=0), 1e-300), y[rows].min(), y[rows].max()
    places = cKDTree(learnt / unit).query(questions / unit, k=[*range(1, min(NEIGHBOURS[-1], len(rows)) + 1)])[1]
    nearest = y[rows][places].mean(axis=1)
    bent = np.concatenate([matrix(terms.curved, table) for table in asked]) @ coefficients(
        matrix(terms.curved, released[rows]), y[rows]
    )
    joined = np.column_stack([np.ones(len(guesses)), guesses, np.clip(bent, low, high), nearest])
    ends = np.cumsum([table.height for table in asked])[:-1]
    return [_joined_error(x, as_numbers(table[target])) for x, table in zip(np.split(joined, ends), asked, strict=True)]


def _joined_error(guesses: Floats, truth: Floats) -> float:
    """Relative error of the forest, or of all guesses together where people are enough."""
    if len(truth) < RECORDS_PER_TERM * guesses.shape[1]:
        return _relative(guesses[:, 1], truth)
    scaled = (guesses[:, 1:] - truth.mean()) / max(float(truth.std()), 1e-300)
    return _best_linear(np.column_stack([guesses[:, 0], scaled]), truth - truth.mean())


def _spread_out(table: pl.DataFrame, target: str) -> pl.DataFrame:
    """At most 2,000 people with a value, evenly over its range."""
    table = table.filter(~np.isnan(as_numbers(table[target]))).sort(target)
    return table.gather_every(max(1, -(-table.height // MAX_NEIGHBOUR_QUESTIONS)))


def tree_errors(
    terms: Sequence[Term], released: pl.DataFrame, target: str, people: Sequence[pl.DataFrame]
) -> list[float]:
    """Relative errors of boosted trees that learn from the release."""
    y = as_numbers(released[target])
    rows = np.flatnonzero(~np.isnan(y))[:MAX_TREE_RECORDS]
    learnt = _trees(matrix(terms, released)[rows], y[rows], [matrix(terms, table) for table in people])
    return [_of_people(guess, table, target) for guess, table in zip(learnt, people, strict=True)]


def crossed_tree_errors(terms: Sequence[Term], released: pl.DataFrame, originals: Floats) -> list[float]:
    """Relative errors of boosted trees that learn from other people's pairs of records, in three folds."""
    x = matrix(terms, released)
    errors = []
    for y in originals.T:
        present = np.flatnonzero(~np.isnan(y))
        guess = np.full(len(y), y[present].mean())
        for fold in range(TREE_FOLDS) if len(present) >= TREE_FOLDS else ():
            inside = present[np.arange(len(present)) % TREE_FOLDS == fold]
            outside = np.setdiff1d(present, inside)[:MAX_TREE_RECORDS]
            guess[inside] = _trees(x[outside], y[outside], [x[inside]])[0]
        errors.append(_relative(guess[present], y[present]))
    return errors


def _trees(x: Floats, y: Floats, people: Sequence[Floats]) -> list[Floats]:
    """Guesses of boosted trees fitted on x and y, on one thread: idle threads of OpenMP burn CPU."""
    try:
        from sklearn.ensemble import HistGradientBoostingRegressor
        from threadpoolctl import threadpool_limits
    except ModuleNotFoundError:
        raise MissingExtraError.for_package("scikit-learn", "learn") from None
    model = HistGradientBoostingRegressor(max_iter=100, learning_rate=0.1, max_leaf_nodes=15, random_state=0)
    with threadpool_limits(1):
        model.fit(x, y)
        return [np.asarray(model.predict(features)) for features in people]


def _of_people(guess: Floats, people: pl.DataFrame, target: str) -> float:
    truth = as_numbers(people[target])
    present = ~np.isnan(truth)
    return _relative(guess[present], truth[present])


def _relative(guess: Floats, truth: Floats) -> float:
    """Mean squared error as a share of the variance; that of the mean where there is none."""
    spread = float(truth.var()) if len(truth) else 0.0
    return float(((truth - guess) ** 2).mean()) / spread if spread > 0 else 1.0
