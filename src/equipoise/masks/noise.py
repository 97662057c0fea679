"""Add noise to numeric columns."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw
import numpy as np
import polars as pl

from equipoise.data import engines
from equipoise.data.numeric_columns import (
    ColumnMoments,
    as_float,
    beside,
    floats,
    moments,
    numeric_columns,
    root,
    significant,
    times,
)
from equipoise.data.records import Law, Records, collect_one
from equipoise.data.repeated_values import draw_keys, once_each, once_words, repeating, unit_columns
from equipoise.data.row_draws import rowwise, whole
from equipoise.ground.arrays import Floats
from equipoise.ground.errors import DataError, ParameterError, shown
from equipoise.ground.randomness import Draws
from equipoise.masks._tail_code import integer_ends, shared_tails
from equipoise.methods.parameters import check_fields, share

Kind = Literal["independent", "correlated", "multiplicative"]
How = Literal["reflect", "truncate"]

LARGEST = 3.0
"""Noise of more standard deviations than this leaves nothing of the data: a larger scale is a slip of the pen."""
LEAST = 10
"""Records for each column that an exact restoration of moments needs, lest the moments give the records away."""
RESTORED = {
    "moments": "means and covariances restored",
    "distributions": "means and covariances restored, then replaced by the original values of the same rank, "
    "extremes and values far from others by means of three or more",
}
"""What each way to preserve does, in words."""
BINS = 200
POINTS = (np.arange(401) + 0.5) / 401
"""Probabilities at which noise is looked at to say what bounds and rounding do to it."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Add noise to `columns`: for every kind the change has mean 0 and standard deviation scale x sd of the column.

    With s the standard deviation of a column (divisor n, unweighted: noise guards the records of the file, whatever
    they weigh) and z standard normal, drawn for each record and column,

    - independent: y = x + scale s z;
    - correlated: y = x + e, e normal with covariance scale^2 S, S that of the columns (correlations over records
      without gaps): correlations are kept, for Cov(y) = (1 + scale^2) S;
    - multiplicative: y = x (1 + t z), t = scale s / sqrt(s^2 + mean^2), so that E (y - x)^2 = scale^2 s^2: large values
      get more noise, zeros none.

    `scale` is a share of the standard deviation, above 0 and up to 3: at 1 the mean of the file is as good a guess as a
    linked record. Variances grow by scale^2 s^2. `preserve="moments"` then restores means and covariances of the
    records without gaps exactly: y <- m + (y - mean(y)) T with the symmetric T that changes y least. What it costs: the
    change is smaller (variance 2 s^2 (1 - 1/sqrt(1 + scale^2)) for one column, though the correlation of y with x stays
    1 / sqrt(1 + scale^2)), exact moments are given away, zeros and bounds are not kept, records with gaps keep plain
    noise, and all records are needed in memory, at least 10 for each column. `preserve="distributions"` goes one step
    further, by reverse mapping: of each column the r-th smallest noisy value becomes the r-th smallest original one, so
    that its distribution is kept and covariances nearly. The values are then true ones, of somebody else; but noise
    does not change the ranks of giants. So the ten largest, the ten smallest, and whoever has fewer than ten others
    within one standard deviation of the noise, show the mean of their group: of at least three units, neighbours
    in rank, none of which dominates it by the p% rule of `TopCode`.

    Whole numbers stay whole, rounded to the nearest: unbiased, as the noise is symmetric about a whole number, at the
    price of about 1/12 more variance; moments are then restored up to rounding. They also stay within their type.
    `bounds` (low, high), "observed" (the column's own range) or "sign" (nothing crosses zero, zeros stay) are kept by
    `how`: "reflect" folds what lies beyond back, "truncate" draws the noise from the normal law cut at the bounds (each
    column by itself). Both bias records near a bound: the law says which share of the noise variance is left, and the
    bias. `keep_zero` leaves zeros alone: they are seen to be true. Missing values stay missing.
    With a household role, a column that is equal within most households gets one draw for each household and
    value: drawn for each member, it would be averaged away. Such columns are correlated through draws of their own.
    With `private` the public is not told the size: nobody can correct for it, and a snooper must guess how far to
    shrink. `theory.curve("noise", private=(low, high))` is what that buys, often a tenth of the risk or less; measured
    risks are for an intruder who knows it, for with a variance from elsewhere it follows from the released one.
    Cost: two to four passes to aggregate, then O(records x columns), record by record on every engine.

    Source: Kim (1986), *A method for limiting disclosure in microdata based on random noise and transformation*;
    Kim and Winkler (2003) for the multiplicative kind; Duncan and Keller-McNulty (2000), sect. 6; Muralidhar, Sarathy
    and Domingo-Ferrer (2014), *Reverse mapping to preserve the marginal distributions of attributes in masked
    microdata*.
    Does not guard against several releases drawn with different seeds, which average the noise away; outliers, which
    stay outliers; columns that repeat a noisy one; zeros and bounds that are kept.

    >>> Noise(["income"], 0.1, bounds=(0, 1000)).words()
    'independent noise of 0.1 standard deviations added to income, within 0 to 1000 by reflection'
    """

    columns: tuple[str, ...]
    scale: float
    kind: Kind = "independent"
    preserve: Literal["moments", "distributions"] | None = None
    bounds: tuple[float, float] | Literal["observed", "sign"] | None = None
    how: How = "reflect"
    keep_zero: bool = False
    private: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        share(self.scale, "scale, a share of the standard deviation,", most=LARGEST)
        if self.preserve not in (None, *RESTORED):
            names = "'moments', 'distributions'"
            raise ParameterError(f"preserve must be {names} or left out, got {shown(self.preserve)}.")
        if self.preserve and (self.bounds is not None or self.keep_zero):
            raise ParameterError("preserve cannot be had with bounds or keep_zero: restoring would undo them.")
        object.__setattr__(self, "bounds", _bounds(self.bounds))

    def apply(self, data: Records, draws: Draws) -> Records:
        columns = numeric_columns(data, self.columns)
        column_moments = moments(data, columns, joint=self.kind == "correlated")
        self._refuse_flat(columns, column_moments)
        low, high = self._limits(data, columns)
        owners = repeating(data, columns)
        if self.preserve and 0 < len(owners) < len(columns):
            column, unit = next(iter(owners.items()))
            raise DataError(
                f"Column {column!r} is equal within {unit!r} and others are not: preserve it in a step of its own."
            )
        adds = _Adds(self, columns, column_moments, low, high, draws, owners, unit_columns(data)[:1])
        frame = whole(data, adds) if self.preserve else rowwise(data, adds)
        return data.with_frame(frame, self.law(columns, column_moments, _effects(data, adds), owners))

    def law(
        self,
        columns: tuple[str, ...],
        column_moments: ColumnMoments,
        effects: dict[str, dict[str, float]],
        owners: Mapping[str, str],
    ) -> Law:
        """What the public may know; the noise's own size is needed to correct for it, and given to 3 digits."""
        parameters: dict[str, Any] = {"columns": list(columns), "scale": self.scale, "kind": self.kind}
        parameters |= {"preserve": self.preserve} if self.preserve else {}
        parameters |= {"bounds": _plain(self.bounds), "how": self.how} if self.bounds is not None else {}
        parameters |= {"keep_zero": True} if self.keep_zero else {}
        sizes = zip(columns, self.scale * np.nan_to_num(column_moments.sd), strict=True)
        parameters |= {"noise_sd": {c: significant(float(s)) for c, s in sizes}}
        parameters |= {"effects": effects} if effects else {}
        parameters |= {"once_per": dict(owners)} if owners else {}
        effects_public = (self.bounds is not None or self.keep_zero) and not self.private
        words = f"{self.words()}{_effects_in_words(effects) if effects_public else ''}"
        words += once_words(owners)
        private = ("scale", "noise_sd", "effects") if self.private else ()
        return Law("noise", columns, words, parameters, detail=column_moments, private=private)

    def words(self) -> str:
        restored = f", {RESTORED[self.preserve]}" if self.preserve else ""
        within = f", {_within(self.bounds)} by {'reflection' if self.how == 'reflect' else 'truncation'}"
        bounds = within if self.bounds is not None else ""
        zero = ", zeros kept" if self.keep_zero else ""
        columns = ", ".join(self.columns) or "the numeric columns"
        size = "a private size" if self.private else f"{self.scale:g} standard deviations"
        return f"{self.kind} noise of {size} added to {columns}{restored}{bounds}{zero}"

    def spread(self, x: Floats, column_moments: ColumnMoments) -> Floats:
        """The standard deviation of the noise of each value."""
        if self.kind != "multiplicative":
            return np.broadcast_to(self.scale * column_moments.sd, x.shape)
        factor = np.divide(self.scale * column_moments.sd, np.hypot(column_moments.sd, column_moments.mean))
        return np.abs(x) * factor

    def _refuse_flat(self, columns: tuple[str, ...], column_moments: ColumnMoments) -> None:
        for column, sd in zip(columns, column_moments.sd, strict=True):
            if sd == 0:
                raise DataError(f"Column {column!r} has no spread: a share of its standard deviation is no noise.")

    def _limits(self, data: Records, columns: tuple[str, ...]) -> tuple[Floats, Floats]:
        """The bounds of each column."""
        if self.bounds == "observed":
            both = (("<", nw.Expr.min), (">", nw.Expr.max))
            ends = [f(as_float(c)).alias(f"{c}{n}") for c in columns for n, f in both]
            met = collect_one(data.frame.select(*ends))
            return tuple(np.array([_number(met[f"{c}{n}"]) for c in columns]) for n in "<>")  # type: ignore[return-value]
        low, high = self.bounds if isinstance(self.bounds, tuple) else (-np.inf, np.inf)
        return np.full(len(columns), low), np.full(len(columns), high)


@dataclass(frozen=True, eq=False)
class _Adds:
    """The noise of one mask, with the numbers it needs of the data, carried out on records."""

    mask: Noise
    columns: tuple[str, ...]
    moments: ColumnMoments
    low: Floats
    high: Floats
    draws: Draws
    owners: Mapping[str, str]
    unit: tuple[str, ...] = ()

    def __call__(self, table: pl.DataFrame, ids: pl.Series) -> pl.DataFrame:
        x = floats(table, self.columns)
        keys = [draw_keys(table, ids, column, self.owners) for column in self.columns]
        z = beside([self.draws.normal(key, counter) for counter, key in enumerate(keys)])
        if self.mask.kind == "correlated":
            z = times(z, _mixing(self.moments.correlation, [column in self.owners for column in self.columns]))
        whole_numbers = np.array([table.schema[c].is_integer() for c in self.columns])
        y = self.changed(x, z, whole_numbers)
        y = _restored(y, x) if self.mask.preserve else y
        if self.mask.preserve == "distributions":
            y = beside([self._dealt(table, ids, place, x, y[:, place]) for place in range(len(self.columns))])
        return table.with_columns(_typed_column(table[c], x[:, i], y[:, i]) for i, c in enumerate(self.columns))

    def _dealt(self, table: pl.DataFrame, ids: pl.Series, place: int, values: Floats, y: Floats) -> Floats:
        """The original values in the order of the noisy ones; once for each unit where values repeat in it."""
        x, sd = values[:, place], self.mask.spread(values, self.moments)[:, place]
        once = once_each(table, self.columns[place : place + 1], self.owners)
        rows = np.arange(len(x)) if once is None else once.rows.astype(np.int64)
        first = np.unique(rows, return_index=True)[1]
        present = first[~np.isnan(x[first])]
        ties = self.draws.uniform((ids if once is None else once.keys).gather(rows[present]), len(self.columns) + place)
        dealt = np.full(len(first), np.nan)
        units = np.arange(len(x))
        if self.unit and once is None:
            column = table[self.unit[0]]
            units = np.where(column.is_null(), len(x) + units, column.rank("dense").fill_null(0).to_numpy())
        order = present[np.lexsort((units[present], x[present]))]
        shared = shared_tails(x[order], units[order], sd[order])
        dealt[rows[present[np.lexsort((ties, y[present]))]]] = shared
        return dealt[rows]

    def changed(self, x: Floats, z: Floats, whole_numbers: Any) -> Floats:
        """The values with noise z of unit variance scaled, and kept where it must stay."""
        sd = self.mask.spread(x, self.moments)
        low = np.where(whole_numbers, np.ceil(self.low), self.low)
        high = np.where(whole_numbers, np.floor(self.high), self.high)
        if self.mask.bounds == "sign":
            low, high = np.where(x > 0, 0.0, -np.inf), np.where(x < 0, 0.0, np.inf)
        if self.mask.bounds is None:
            y = x + sd * z
        else:
            y = _reflected(x + sd * z, low, high) if self.mask.how == "reflect" else _truncated(x, sd, z, low, high)
        still = x == 0 if self.mask.keep_zero or self.mask.bounds == "sign" else np.False_
        return np.where(still, x, y)


def _mixing(correlation: Floats, repeats: list[bool]) -> Floats:
    """M with M'M = the correlations: columns that repeat in a unit are mixed of draws of such columns alone."""
    first, last = np.flatnonzero(repeats), np.flatnonzero(~np.array(repeats))
    if not len(first) or not len(last):
        return root(correlation)
    inner, across = correlation[np.ix_(first, first)], correlation[np.ix_(first, last)]
    slopes = np.linalg.pinv(inner, rcond=1e-10, hermitian=True) @ across
    mixing = np.zeros_like(correlation)
    mixing[np.ix_(first, first)] = root(inner)
    mixing[np.ix_(first, last)] = root(inner) @ slopes
    mixing[np.ix_(last, last)] = root(correlation[np.ix_(last, last)] - across.T @ slopes)
    return mixing


def _typed_column(column: pl.Series, x: Floats, y: Floats) -> pl.Series:
    """New values as the column's own type; what was missing stays as it was."""
    if not column.dtype.is_integer():
        new = pl.Series(column.name, y)
        new = (new if column.dtype.is_float() else new.fill_nan(None)).cast(column.dtype)
        return pl.select(pl.when(column.is_not_null()).then(new)).to_series().alias(column.name)
    shifted = pl.Series(np.nan_to_num(np.rint(y - x))).cast(pl.Int128) + column.cast(pl.Int128)
    low, high = (pl.lit(end, pl.Int128) for end in integer_ends(column.dtype))
    return shifted.clip(low, high).cast(column.dtype).alias(column.name)


def _reflected(y: Floats, low: Floats, high: Floats) -> Floats:
    """What lies beyond a bound folded back, as often as needed."""
    with np.errstate(invalid="ignore"):
        width = high - low
        turn = np.mod(y - low, 2 * width)
        both = low + np.where(turn > width, 2 * width - turn, turn)
        one = np.where(y < low, 2 * low - y, np.where(y > high, 2 * high - y, y))
    return np.clip(np.where(np.isfinite(width), both, one), low, high)


def _truncated(x: Floats, sd: Floats, z: Floats, low: Floats, high: Floats) -> Floats:
    """Noise from the normal law between the bounds, at the same probability as z has in the whole law.

    Taken from the lower tail, mirrored where the bounds lie above, which is exact far out; beyond all precision the
    nearest bound is taken.
    """
    from scipy.special import ndtr, ndtri

    safe = np.where(sd > 0, sd, 1.0)
    turn = np.where(low > x, -1.0, 1.0)
    ends = np.where(low > x, x - high, low - x) / safe, np.where(low > x, x - low, high - x) / safe
    start, end = ndtr(ends[0]), ndtr(ends[1])
    noise = turn * ndtri(start + ndtr(turn * z) * (end - start))
    return np.clip(np.where((sd > 0) & np.isfinite(noise), x + sd * noise, x), low, high)


def _restored(y: Floats, x: Floats) -> Floats:
    """y moved affinely so that records without gaps have the means and covariances of x, and changed least by it.

    T = H^-1/2 (H^1/2 W H^1/2)^1/2 H^-1/2 with H, W the covariances had and wanted: T H T = W, and among all such maps
    this one has the smallest mean square distance (the optimal transport of normal laws).
    """
    complete = ~np.isnan(x).any(axis=1)
    size = x.shape[1]
    if complete.sum() < LEAST * size:
        raise DataError(
            f"preserve needs {LEAST} records without gaps for each column, {LEAST * size:,} in all: "
            f"there are {int(complete.sum()):,}."
        )
    centre, unit = x[complete].mean(axis=0), x[complete].std(axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    scaled = (y[complete] - y[complete].mean(axis=0)) / unit
    have, want = np.cov(scaled.T, bias=True).reshape(size, size), np.cov(x[complete].T / unit[:, None], bias=True)
    half, back = root(have), np.linalg.pinv(root(have), rcond=1e-10, hermitian=True)
    turn = back @ root(half @ want.reshape(size, size) @ half) @ back
    restored = y.copy()
    restored[complete] = centre + times(scaled, turn) * unit
    return restored


def _effects(data: Records, adds: _Adds) -> dict[str, dict[str, float]]:
    """What rounding, bounds and kept zeros do to the noise: its variance as a share of what was asked, and its bias.

    From a histogram of the column and the normal law, not from the draws: the same on every engine.
    """
    schema, effects = data.schema(), {}
    for place, column in enumerate(adds.columns):
        whole_number = bool(schema[column].is_integer())
        if (whole_number or adds.mask.bounds is not None or adds.mask.keep_zero) and adds.moments.sd[place] > 0:
            effects[column] = _effect(_histogram(data.frame, column), adds, place, whole_number)
    return effects


def _effect(histogram: pl.DataFrame, adds: _Adds, place: int, whole_number: bool) -> dict[str, float]:
    from scipy.special import ndtri

    one = _Adds(
        adds.mask,
        adds.columns[place : place + 1],
        ColumnMoments(adds.moments.mean[[place]], adds.moments.sd[[place]], np.eye(1)),
        adds.low[[place]],
        adds.high[[place]],
        adds.draws,
        {},
    )
    x = np.repeat(histogram["x"].to_numpy(), len(POINTS))[:, None]
    z = np.tile(ndtri(POINTS), histogram.height)[:, None]
    change = one.changed(x, z, np.array([whole_number])) - x
    change = np.rint(change) if whole_number else change
    weight = np.repeat(histogram["n"].to_numpy() / histogram["n"].sum() / len(POINTS), len(POINTS))
    bias = float(weight @ change[:, 0])
    variance = float(weight @ (change[:, 0] - bias) ** 2)
    sd = float(adds.moments.sd[place])
    return {"variance": round(variance / (adds.mask.scale * sd) ** 2, 2), "bias": round(bias / sd, 2) + 0.0}


def _histogram(frame: engines.Frame, column: str) -> pl.DataFrame:
    """At most `BINS` + 2 rows: the mean `x` and the number `n` of the values in each bin, zero in a bin of its own."""
    values = frame.select(as_float(column).alias("x")).drop_nulls()
    ends = collect_one(values.select(nw.col("x").min().alias("low"), nw.col("x").max().alias("high")))
    width = max((ends["high"] - ends["low"]) / BINS, np.finfo(float).tiny)
    place = ((nw.col("x") - ends["low"]) / width).floor()
    binned = values.with_columns(nw.when(nw.col("x") == 0).then(nw.lit(-1.0)).otherwise(place).alias("bin"))
    bins = binned.group_by("bin").agg(nw.col("x").mean(), nw.len().alias("n"))
    return engines.collect(bins).sort("bin")


def _bounds(bounds: Any) -> Any:
    if bounds is None or (isinstance(bounds, str) and bounds in ("observed", "sign")):
        return bounds
    pair = tuple(bounds) if isinstance(bounds, tuple | list) else ()
    if len(pair) != 2 or not all(isinstance(v, int | float) for v in pair) or not pair[0] < pair[1]:
        raise ParameterError("bounds must be a lower and a higher number, 'observed' or 'sign'.")
    return pair


def _within(bounds: Any) -> str:
    phrases = {"observed": "within the observed range", "sign": "without crossing zero"}
    return phrases[bounds] if isinstance(bounds, str) else f"within {bounds[0]:g} to {bounds[1]:g}" if bounds else ""


def _effects_in_words(effects: dict[str, dict[str, float]]) -> str:
    parts = [f"{c} {e['variance']:g} (bias {e['bias']:g} sd)" for c, e in effects.items()]
    return f"; share of the noise variance that is left: {', '.join(parts)}" if parts else ""


def _plain(bounds: Any) -> Any:
    return list(bounds) if isinstance(bounds, tuple) else bounds


def _number(value: Any) -> float:
    return np.nan if value is None else float(value)
