"""Known within p percent: how many values a snooper guesses as closely as the p% rule of tables forbids."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.numeric_columns import floats, numeric_columns
from equipoise.data.records import Records
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import DataError
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields, share
from equipoise.methods.score import Score, not_applicable
from equipoise.methods.share_interval import wilson
from equipoise.risk._value_snoopers.forest import forest_guesses, sampled_rows
from equipoise.risk._value_snoopers.likeliest_values import likeliest_values
from equipoise.risk._value_snoopers.logarithms import LogGuesses, signed_exp, signed_log
from equipoise.risk._value_snoopers.released_terms import matrix
from equipoise.risk._value_snoopers.snooper_view import seen_by_snoopers

ROUNDING = 1e-9
MAX_FORESTS = 2
"""Columns for which a forest is grown: those that the other snoopers know best."""
SNOOPERS = ("linked record", "curved", "equal", "forest", "together", "likeliest")


@dataclass(frozen=True, slots=True)
class KnownWithin:
    """Share of values guessed to within `p` of themselves by the strongest snooper, in the column where it is largest.

    A guess g of a value x counts where |g - x| <= p |x|: what the p% rule calls too close. Where a few giants have most
    of the variance, `value_disclosure` is near 1 whatever is done; this share counts every firm once. The snooper has
    the person's released record, with the role household or person the means of the unit's other rows, and guesses
    - by the released value itself ("linked record");
    - by the best sum of bent lines in the logarithms of all released columns, fitted to the originals ("curved");
    - by the mean of all others equal in one to three released columns, or by lines beside it, whose slopes may differ
      between groups of equal people ("equal");
    - in the two columns that these know best, by a random forest on the same, whose trees guess for records they have
      not seen ("forest"; on at most 3,000 records drawn by a public seed), and by the mean of the first two and it as
      logarithms ("together");
    - by the value that is near to most of the true values of 10, 30 or 100 others for whom these guesses are alike
      ("likeliest"), as where values are round, or by one value for everybody;
    each also times the one factor with which most values are hit. Values of 0 and missing ones are left out: nothing is
    within p percent of 0 but 0.

    value = the largest share of hits; the baseline is the share hit by one guess for everybody, the best there is. The
    interval is Wilson's, 95 %, over the `n` values looked at. The detail has a row per column: the share hit by each
    snooper, `risk`, who is `strongest`, and `baseline`. Not applicable to fully synthetic files, which have no record
    of anybody.

    Source: Hundepool et al. (2012), *Statistical Disclosure Control*, section 4.2.2, for the p% rule; Breiman (2001).
    Misleads when few values that matter hide behind a share of all, and where zeros are the secret. Cost: O(records x
    terms^2) for each column, and two forests of about a second.

    >>> original = eq.Records.of(pl.DataFrame({"x": [100, 200, 400, 50]}), eq.Roles(numeric="x"))
    >>> released = eq.Records.of(pl.DataFrame({"x": [105, 260, 300, 53]}), eq.Roles(numeric="x"))
    >>> KnownWithin(0.1).measure(released, original).value
    0.5
    """

    p: float = 0.1
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        share(self.p, "p", open_=True)

    def measure(self, released: Records, original: Records) -> Score:
        if released.synthetic:
            return not_applicable(label(self), "lower")
        columns = numeric_columns(original, self.columns)
        every, released_table, original_table, units = seen_by_snoopers(released, original, columns)
        guesser = _Guesser(released_table, every, floats(original_table, columns), units)
        rows = [self._row(guesser, place, column) for place, column in enumerate(columns)]
        for row in sorted(rows, key=lambda row: -float(str(row["risk"])))[:MAX_FORESTS]:
            row |= self._row(guesser, columns.index(str(row["column"])), str(row["column"]), forest=True)
        table = pl.DataFrame(rows, infer_schema_length=None)
        worst = table.sort("risk", descending=True).row(0, named=True)
        return Score(
            label(self),
            float(worst["risk"]),
            interval=wilson(worst["risk"], worst["n"]),
            baseline=float(worst["baseline"]),
            unit="share of values",
            notes=(f"Strongest in {worst['column']!r}: {worst['strongest']}.",),
            cells=lambda: table,
        )

    def _row(self, guesser: "_Guesser", place: int, column: str, forest: bool = False) -> dict[str, object]:
        truth = guesser.originals[:, place]
        rows = np.flatnonzero(np.isfinite(truth) & (truth != 0))
        if not len(rows):
            raise DataError(f"Column {column!r} has no value but 0: nothing can be within a share of it.")
        guesses = guesser.guesses(place, column, rows, self.p, forest=forest)
        hits = {name: self._hits(guess, truth[its]) for name, (its, guess) in guesses.items()}
        some, likeliest = guesser.likeliest(guesses, place, self.p)
        baseline = self._hits(np.full(len(rows), float(np.median(truth[rows]))), truth[rows])
        hits["likeliest"] = max([baseline, *(self._hits(guess, truth[some]) for guess in likeliest)])
        guesses["likeliest"] = some, truth[some]
        strongest = max(hits, key=lambda name: hits[name])
        return {
            "column": column, **dict.fromkeys(SNOOPERS), **hits, "risk": hits[strongest], "strongest": strongest,
            "baseline": baseline, "n": len(guesses[strongest][0]),
        }  # fmt: skip

    def _hits(self, guess: Floats, truth: Floats) -> float:
        """Share of guesses within p of the truth, as they are or times the factor that hits most."""
        ratio = guess / truth
        plain = float((np.abs(ratio - 1) <= self.p + ROUNDING).mean())
        logs = np.sort(np.log(ratio[ratio > 0]))
        if not len(logs):
            return plain
        width = np.log((1 + self.p) / (1 - self.p)) + ROUNDING
        inside = np.searchsorted(logs, logs + width, side="right") - np.arange(len(logs))
        return max(plain, float(inside.max() / len(ratio)))


class _Guesser:
    """Guesses of the originals from the released columns."""

    def __init__(self, released: pl.DataFrame, columns: tuple[str, ...], originals: Floats, units: Integers) -> None:
        self.table, self.originals, self.units = released, originals, units
        self.by_logs = LogGuesses(released, columns, originals, units)

    def guesses(
        self, place: int, column: str, rows: Integers, p: float, *, forest: bool
    ) -> dict[str, tuple[Integers, Floats]]:
        """For each snooper the rows, and the guesses for them; the forest, and who has its help, guess for some."""
        by_logs, own = self.by_logs, self.table[column].cast(pl.Float64).to_numpy()
        logs, scale, bent = by_logs.logs[:, place], by_logs.scales[place], by_logs.bent(place, rows)
        linked = np.where(np.isfinite(own), own, np.median(self.originals[rows, place]))
        guesses = {"linked record": (rows, linked[rows]), "curved": (rows, signed_exp(bent[rows], scale))}
        if by_logs.equal:
            equal = [guess[rows, place] for guess in by_logs.equal]
            near = [float((np.abs(guess - logs[rows]) <= p).mean()) for guess in equal]
            guesses["equal"] = rows, signed_exp(equal[int(np.argmax(near))], scale)
        if forest and by_logs.terms.coded:
            some = sampled_rows(rows, len(by_logs.terms.coded), 1)
            x = matrix(by_logs.terms.coded, by_logs.coded[some])[:, 1:]
            grown = forest_guesses(x, logs[some][:, None], units=self.units[some])[:, 0]
            together = (signed_log(linked[some], scale) + bent[some] + grown) / 3
            guesses |= {"forest": (some, signed_exp(grown, scale)), "together": (some, signed_exp(together, scale))}
        return guesses

    def likeliest(
        self, guesses: dict[str, tuple[Integers, Floats]], place: int, p: float
    ) -> tuple[Integers, list[Floats]]:
        """The rows of those who guess for fewest, and the likeliest values by what all guess for them."""
        some = sampled_rows(min((its for its, _ in guesses.values()), key=len), 1, 1)
        each = [guess[np.searchsorted(its, some)] for its, guess in guesses.values()]
        logs, truth = signed_log(np.column_stack(each), self.by_logs.scales[place]), self.originals[some, place]
        return some, likeliest_values(logs, self.by_logs.logs[some, place], truth, p, self.units[some])
