"""Distance-based record linkage: the released record nearest to what an intruder knows of a person."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np
import polars as pl

from equipoise.attacks._nearest.common_space import Clouds, CommonSpace, Kind, Scale, kind_of
from equipoise.attacks._nearest.neighbours import EXACT_TIE_RANKS, MAX_CLOSER, count, nearest, others
from equipoise.attacks._nearest.one_to_one import Assignment, assign
from equipoise.attacks._nearest.points import Cloud
from equipoise.attacks._nearest.same_person import chance_of_nearest, owners
from equipoise.data.aligned_files import Matched, matched
from equipoise.data.records import Law, Records
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import EngineError, ParameterError, RolesError
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields
from equipoise.methods.score import Score, not_applicable
from equipoise.methods.share_interval import wilson

Metric = Literal["euclidean", "mahalanobis", "rank", "log"]
SCALE_OF_METRIC: dict[Metric, Scale] = {"rank": "ranks", "log": "logarithms"}
"""What numbers are replaced by before their distance is taken, where that is not themselves."""
MIN_CHANGE = 1e-3
"""The least change of a number, in units of its spread, where masks left it nearly as it was."""
NEAREST_TRUTH_NOTE = (
    "Estimated: nobody can tell whose record is whose in these files, so the right record is taken to be the one "
    "nearest by all variables."
)
UPPER_BOUND_NOTE = (
    "Estimated: nobody can tell whose record is whose in these files; the share is an upper bound, as if everybody's "
    "own record were one of the t nearest (1/t)."
)


@dataclass(frozen=True, slots=True)
class Nearest:
    """Share of people whose released record is the one nearest to what an intruder knows of them.

    The distance of an original record a and a released record b is the root of D^2 = sum over numbers of w ((a - b) /
    sd)^2 + sum over nominal of w 1[a != b] + sum over ordinal of w ((rank a - rank b) / |D|)^2 + sum over strings of w
    (1 - similarity)^2, with sd the original's and |D| the number of categories; with `metric="mahalanobis"` the sum
    over numbers is z' R^-1 z, z the weighted standardised gaps and R the original's correlations, and with
    `metric="rank"` numbers are first replaced by their ranks within their own file, as shares (masks that keep the
    order are undone, whatever they do to the scale), with "log" by their logarithms (noise in proportion to a value).
    Numeric and date columns are numbers unless listed as `ordinal` or `nominal`; text is nominal unless listed under
    `strings`, whose `similarity` is Jaro-Winkler's or Levenshtein's. A missing number stands where the mean is, at a
    further squared distance w from every known one (w times the variance of the scaled ranks if ordinal): the mean
    squared gap to a random value; two missing ones are equal. A missing category or string is a value of its own.
    `weights` has a number for each of `variables`. A category that was recoded is known by its released label.

    `variables` (the keys and numeric columns unless given) are all that both files hold, `known` those of them the
    intruder has (all unless given). Records are compared within `blocks` only. With t records at the shortest distance
    a link is right with probability 1/t (distances equal to a share of 1e-9 tie). With `truth="row"` it is right if it
    is the person's own record (with the role `person` any record of theirs): that with the same id, or the same row in
    files of equal height without one; people in one file only are asked about by nobody, or in the way. With "nearest"
    it is right if it is the nearest by all `variables` (one of them at random if they tie). Where nobody can tell whose
    record is whose, "row" is estimated: by "nearest" if fewer variables are `known`, else at most 1/t; the first note
    says so.

    value = mean of the probabilities of a right link, with a 95 % Wilson interval; the baseline is a guess among all
    records (of the block). The detail has a row per record: the `rank` of its true match, 1 + the number of records
    closer, where 11 says more than 10; the `margin`, by how much the nearest other record is farther than the true one
    (below 0: another is closer); and `risk`. The notes give the shares among the two and three nearest.

    `links="one-to-one"` is the intruder who knows that every record is somebody's and nobody's twice. People are
    assigned to records so that the sum of distances, or of their squares, is smallest (exactly up to 2,000 records of a
    block, among each person's 30 nearest up to 10,000), and by the probabilities of each pair over all assignments,
    among the nearest records of each person (up to 100,000 records, 4,000 with categories); all this once more with
    differences in units of the changes (their covariance, which the law of a noise tells): whichever links most, a
    maximum over ten. It takes `truth="row"` and no `strings`. The detail has `risk` alone.

    Source: Domingo-Ferrer and Torra (2004), section 2.1 and Definition 1, the ordinal distance without its offset;
    Herranz, Nin, Rodriguez and Tassa (2015), *Revisiting distance-based record linkage for privacy-preserving release
    of statistical datasets*, for the assignment.
    Misleads when the intruder knows how the file was masked: attacks made for a mask find more. Exact. Cost: a tree per
    combination of categories, about O(n log n) in few dimensions, towards O(n^2) time in many independent ones; equal
    records are searched once. Strings: all pairs of distinct values are compared, at most 4 x 10^9 (a minute or two),
    then cells with similar values are visited; time goes towards the square of the cells where own records are farther
    than similar strings are (0.25). Margins are searched for when the detail is asked for.

    >>> original = eq.Records.of(pl.DataFrame({"age": [20, 30, 40, 60]}), eq.Roles("age"))
    >>> released = eq.Records.of(pl.DataFrame({"age": [22, 41, 39, 60]}), eq.Roles("age"))
    >>> score = Nearest().measure(released, original)
    >>> score.value, score.baseline, score.detail["rank"].to_list()
    (0.625, 0.25, [1, 3, 1, 1])
    """

    variables: tuple[str, ...] | None = None
    known: tuple[str, ...] | None = None
    metric: Metric = "euclidean"
    truth: Literal["row", "nearest"] = "row"
    weights: tuple[float, ...] | None = None
    ordinal: tuple[str, ...] | None = None
    nominal: tuple[str, ...] | None = None
    blocks: tuple[str, ...] | None = None
    strings: tuple[str, ...] | None = None
    similarity: Literal["jaro-winkler", "levenshtein"] = "jaro-winkler"
    links: Literal["nearest", "one-to-one"] = "nearest"

    def __post_init__(self) -> None:
        check_fields(self)
        if self.links == "one-to-one" and (self.truth != "row" or self.strings):
            raise ParameterError("links 'one-to-one' takes truth 'row' and no strings.")
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
        for one, two in combinations(("ordinal", "nominal", "strings"), 2):
            both = set(getattr(self, one) or ()) & set(getattr(self, two) or ())
            if both:
                raise ParameterError(f"{sorted(both)[0]!r} is listed under both {one} and {two}.")
        extra = set(self.known or ()) - set(self.variables or self.known or ())
        if extra:
            raise ParameterError(f"{sorted(extra)[0]!r} is known, but not one of the variables.")

    def measure(self, released: Records, original: Records) -> Score:
        if released.synthetic:
            return not_applicable(label(self), "lower")
        every = self.variables or tuple(dict.fromkeys((*original.roles.keys, *original.roles.numeric)))
        every = tuple(dict.fromkeys((*every, *(self.known or ()))))
        columns = tuple(dict.fromkeys((*every, *(self.blocks or ()))))
        if not columns:
            raise RolesError("No variables were named, and no column is a key or numeric.")
        files = matched(released, original, columns)
        clouds = self._space(files, self.known or every, released.history)
        if self.links == "one-to-one":
            return self._one_to_one(clouds, files, owners(original, files))
        if self.truth == "row" and files.second is not None:
            owner = owners(original, files)
            return self._score(_own(_of(clouds, files.first), files.second, owner), clouds, files)
        alone = replace(files, first=np.arange(files.original.height), second=None)
        if self.truth == "nearest":
            return self._score(_by_nearest(clouds, self._space(files, every, released.history)), clouds, alone)
        if set(self.known or every) < set(every):
            linked = _by_nearest(clouds, self._space(files, every, released.history))
            return self._score(linked, clouds, alone, NEAREST_TRUTH_NOTE)
        return self._score(_at_most(clouds), clouds, alone, UPPER_BOUND_NOTE)

    def _one_to_one(self, clouds: Clouds, files: Matched, owner: Integers | None) -> Score:
        if files.second is None:
            raise EngineError("One-to-one assignment needs to know whose record is whose: name an id role.")
        spaces = [clouds] if self.metric == "mahalanobis" else [clouds, *_in_units_of_change(clouds, files)]
        tries: list[Assignment] = [assign(*_of(space, files.first), files.second, owner) for space in spaces]
        assignment = max(tries, key=lambda one: float(one.risk.mean()))
        n, value = len(assignment.risk), float(assignment.risk.mean())
        table = files.rows(risk=pl.Series(assignment.risk))
        return Score(
            label(self),
            value,
            interval=wilson(value, n),
            baseline=_guess(clouds, files),
            number=float(assignment.risk.sum()),
            unit="share of records",
            notes=(assignment.how,),
            cells=lambda: table,
            records=lambda: table,
        )

    def sweep(self, released: Records, original: Records, size: int = 2) -> pl.DataFrame:
        """Attack by intruders who know each subset of up to `size` variables, the most dangerous first.

        One row per subset: what is `known`, the `value`, the `baseline` and the ends `low` and `high` of the interval.
        Cost: that of one attack for each subset.
        """
        every = self.known or self.variables or tuple(dict.fromkeys((*original.roles.keys, *original.roles.numeric)))
        rows = []
        for many in range(1, min(size, len(every)) + 1):
            for subset in combinations(every, many):
                score = replace(self, known=subset).measure(released, original)
                low, high = score.interval or (score.value, score.value)
                rows.append((", ".join(subset), many, score.value, score.baseline, low, high))
        schema = ["known", "size", "value", "baseline", "low", "high"]
        return pl.DataFrame(rows, schema=schema, orient="row").sort("value", "known", descending=[True, False])

    def _space(self, files: Matched, columns: tuple[str, ...], laws: tuple[Law, ...]) -> Clouds:
        """Both files as points: numbers scaled, categories coded, and the cost of a difference in each category."""
        weights = dict(zip(self.variables or (), self.weights or (), strict=False))
        space = CommonSpace(files, laws, SCALE_OF_METRIC.get(self.metric, "values"))
        for column in columns:
            space.add(column, self._kind(column, files), weights.get(column, 1.0), self.similarity)
        for column in self.blocks or ():
            space.add(column, "nominal", np.inf)
        return space.clouds(self.metric == "mahalanobis")

    def _kind(self, column: str, files: Matched) -> Kind:
        lists: tuple[tuple[Kind, tuple[str, ...] | None], ...] = (
            ("nominal", self.nominal),
            ("ordinal", self.ordinal),
            ("text", self.strings),
        )
        for kind, listed in lists:
            if column in (listed or ()):
                return kind
        return kind_of(files.released.schema[column], files.original.schema[column])

    def _score(self, linked: "_Links", clouds: Clouds, files: Matched, warning: str | None = None) -> Score:
        n, value = len(linked.risk), float(linked.risk.mean())
        return Score(
            label(self),
            value,
            interval=wilson(value, n),
            baseline=_guess(clouds, files),
            number=float(linked.risk.sum()),
            unit="share of records",
            notes=(*((warning,) if warning else ()), *_notes(linked)),
            cells=lambda: files.rows(**linked.columns()),
            records=lambda: files.rows(risk=pl.Series(linked.risk)),
        )


@dataclass(frozen=True, eq=False, repr=False)
class _Links:
    """Rank of each record's true match, and its probability to be the first, among the first two and three.

    `tied` records share the first place; `margin` is computed on call.
    """

    rank: Integers
    risk: Floats
    second: Floats
    third: Floats
    tied: int
    margin: Callable[[], Floats]

    def columns(self) -> dict[str, pl.Series]:
        """Columns of the detail; rank and margin are null where there is nothing to compare."""
        margin = self.margin()
        return {
            "rank": pl.Series(self.rank, dtype=pl.UInt8).replace(0, None),
            "margin": pl.Series(np.where(np.isfinite(margin), margin, np.nan), nan_to_null=True),
            "risk": pl.Series(self.risk),
        }


def _in_units_of_change(clouds: Clouds, files: Matched) -> Iterator[Clouds]:
    """The clouds where differences are counted in units of what the masks changed, whose law tells its covariance."""
    released, original, costs = clouds
    if not released.coordinates.shape[1]:
        return
    changes = released.coordinates[files.second] - original.coordinates[files.first]
    covariance = changes.T @ changes / max(1, len(changes)) + MIN_CHANGE**2 * np.eye(changes.shape[1])
    units = np.linalg.inv(np.linalg.cholesky(covariance)).T
    first, second = (Cloud(cloud.coordinates @ units, cloud.codes) for cloud in (released, original))
    yield first, second, costs


def _of(clouds: Clouds, rows: Integers) -> Clouds:
    """The clouds with these original records only."""
    released, original, costs = clouds
    return released, Cloud(original.coordinates[rows], original.codes[rows]), costs


def _own(clouds: Clouds, own: Integers, owner: Integers | None = None) -> _Links:
    """Probability of a right link, ties broken at random: (k - closer) / tied, within [0, 1], for the k nearest.

    With the `owner` of each record, the nearest one may be another record of theirs.
    """
    neighbours = count(*clouds, own)
    reached = np.isfinite(neighbours.distance) & (neighbours.closer < EXACT_TIE_RANKS)
    tied = np.maximum(neighbours.tied, 1)
    chances = [np.where(reached, np.clip((k - neighbours.closer) / tied, 0.0, 1.0), 0.0) for k in (1, 2, 3)]
    rank = np.where(np.isfinite(neighbours.distance), neighbours.closer + 1, MAX_CLOSER)
    several = int((reached & (neighbours.closer == 0) & (neighbours.tied > 1)).sum())

    def margin() -> Floats:
        with np.errstate(invalid="ignore"):
            return others(*clouds, own) - neighbours.distance

    first = chances[0] if owner is None else chance_of_nearest(*clouds, own, owner)
    second, third = (np.maximum(first, chance) for chance in chances[1:])
    return _Links(np.minimum(rank, MAX_CLOSER), first, second, third, several, margin)


def _by_nearest(known_clouds: Clouds, every: Clouds) -> _Links:
    """Link with the record nearest by all variables as the truth, averaged over those that tie.

    A record without any in its block is linked to nobody.
    """
    truth = nearest(*every)
    records = truth.first[truth.query]

    # One query for each distinct record by all variables, so that equal knowledge is searched once.
    each = _own(_of(known_clouds, records), truth.row)
    size = len(truth.first)
    total = np.bincount(truth.query, weights=truth.times, minlength=size)
    some = np.maximum(total, 1.0)

    def mean(values: Floats) -> Floats:
        return np.asarray((np.bincount(truth.query, weights=values * truth.times, minlength=size) / some)[truth.of])

    def margin() -> Floats:
        margins = np.full(size, -np.inf)
        np.maximum.at(margins, truth.query, each.margin())
        return margins[truth.of]

    rank, several = np.full(size, MAX_CLOSER), int((total[truth.of] > 1).sum())
    np.minimum.at(rank, truth.query, each.rank)
    return _Links(rank[truth.of], mean(each.risk), mean(each.second), mean(each.third), several, margin)


def _at_most(clouds: Clouds) -> _Links:
    """Upper bound, as if everybody's own record were one of the nearest."""
    neighbours = nearest(*clouds)
    tied = np.bincount(neighbours.query, weights=neighbours.times, minlength=len(neighbours.first))[neighbours.of]
    chances = [np.where(tied > 0, np.minimum(k / np.maximum(tied, 1.0), 1.0), 0.0) for k in (1, 2, 3)]
    nothing = np.full(len(tied), np.nan)
    unknown = np.zeros(len(tied), dtype=np.int64)
    return _Links(unknown, chances[0], chances[1], chances[2], int((tied > 1).sum()), lambda: nothing)


def _guess(clouds: Clouds, files: Matched) -> float:
    """Probability of a right random guess, among all records or those of the block (0 if the own is in another)."""
    released, original, costs = clouds
    if not len(costs.blocks):
        return 1.0 / len(released)
    blocks = original.codes[files.first][:, costs.blocks]
    one, two = (pl.DataFrame(codes, orient="row") for codes in (released.codes[:, costs.blocks], blocks))
    sizes = one.group_by(one.columns).agg(pl.len().alias("n"))
    sizes_of_blocks = two.join(sizes, on=one.columns, how="left", maintain_order="left")["n"].fill_null(0).to_numpy()
    same = sizes_of_blocks > 0
    if files.second is not None:
        same = (released.codes[files.second][:, costs.blocks] == blocks).all(axis=1)
    return float(np.where(same, 1.0 / np.maximum(sizes_of_blocks, 1), 0.0).mean())


def _notes(linked: _Links) -> tuple[str, ...]:
    two, three = float(linked.second.mean()), float(linked.third.mean())
    ties = f"{linked.tied:,} records share the first place with others: a tie of t counts 1/t."
    return (
        f"Among the two nearest: {two:.4g}; among the three nearest: {three:.4g}.",
        *((ties,) if linked.tied else ()),
    )
