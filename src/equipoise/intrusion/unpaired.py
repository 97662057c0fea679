"""People whose released record is not known, and how far a share may be off because of them."""

from dataclasses import dataclass, replace
from math import isfinite

import polars as pl

from equipoise.methods.score import Score

ALMOST_ALL = 0.99


@dataclass(frozen=True, eq=False, repr=False)
class Unpaired:
    """The released records and the people without a partner; the share of people who have one, and how sure that is.

    Who knows some columns cannot tell people apart who are equal in them, nor records that are equal in them: of each
    such group one at most is linked by right, whatever the attack. So of m people without a partner no more than the
    number of distinct values among them, or among the records, over m.
    """

    released: pl.DataFrame
    original: pl.DataFrame
    paired: float
    precision: float
    same_size: bool

    @classmethod
    def of(cls, released: pl.DataFrame, original: pl.DataFrame, both: pl.Series, *, precision: float) -> "Unpaired":
        """Two files, with the ids of those in both."""
        sides = [t.filter(~pl.col(both.name).is_in(both.implode())) if len(both) else t for t in (released, original)]
        most = min(released.height, original.height)
        return cls(sides[0], sides[1], len(both) / most, precision, released.height == original.height)

    @property
    def certain(self) -> bool:
        """Everybody has a partner, and next to nobody a wrong one."""
        return self.paired == 1.0 and self.precision > ALMOST_ALL

    def most_linked(self, names: tuple[str, ...]) -> float:
        """The largest share of the people without a partner whom anybody links who knows these columns."""
        columns = [c for c in names if c in self.original.columns and c in self.released.columns]
        people = min(self.original.height, self.released.height)
        if not people or not columns:
            return 1.0
        return min(1.0, *(side.select(columns).n_unique() / people for side in (self.original, self.released)))

    def allowing(self, score: Score, names: tuple[str, ...] | None) -> Score:
        """A score of the people who have a partner as an estimate for all, its interval as wide as it must be.

        With p the share of people who have one, q the share of these that is right at least, b the largest share of the
        others that can be linked, v the score and (l, h) its interval: value p v + (1 - p) min(b, v), from
        p (l - (1 - q)) to p (h + 1 - q) + (1 - p) b. Nobody knows p where the files hold different people: then the
        interval includes v. Where nobody has a partner the value is b, from 0 to b.

        >>> from equipoise.methods.score import Score
        >>> people, none = pl.DataFrame({"id": [2, 3], "age": [30, 30]}), pl.DataFrame({"id": [4, 5], "age": [30, 30]})
        >>> rest = Unpaired(none, people, paired=0.5, precision=1.0, same_size=True)
        >>> score = rest.allowing(Score("nearest", 0.8, interval=(0.7, 0.9)), ("age",))
        >>> round(score.value, 3), [round(end, 3) for end in score.interval]
        (0.65, [0.35, 0.7])
        """
        if not isfinite(score.value):
            return score
        p, doubt = self.paired, 1 - self.precision
        low, high = score.interval or (score.value, score.value)
        others = 1.0 if names is None else self.most_linked(names)
        if not p:
            return replace(score, value=others, interval=(0.0, others), number=None)
        value = p * score.value + (1 - p) * min(others, score.value)
        ends = max(0.0, p * (low - doubt)), min(1.0, p * min(1.0, high + doubt) + (1 - p) * others)
        if not self.same_size:
            ends = ends[0], max(ends[1], high)
        return replace(score, value=value, interval=(min(ends[0], value), max(ends[1], value)), number=None)
