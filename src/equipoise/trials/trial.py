"""Trial: a recipe and its scores, one point on the risk-utility map."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev

from equipoise.data.tables.table import Table
from equipoise.ground.errors import DataError
from equipoise.methods.method import Measure
from equipoise.methods.score import Score, Scores
from equipoise.presentation.notebook import trial_html, trials_html
from equipoise.recipe.recipe import Recipe


@dataclass(frozen=True)
class Trial:
    """A recipe, its mean scores, and the scores of every draw where masks are random.

    >>> Trial(Recipe(), [Score("uniques", 0.02, "lower")]).scores["uniques"].value
    0.02
    """

    recipe: Recipe
    scores: Scores
    draws: tuple[Scores, ...] = field(default=(), repr=False)
    name: str | None = None

    def __post_init__(self) -> None:
        scores: Iterable[Score] = self.scores.values() if isinstance(self.scores, Mapping) else self.scores
        object.__setattr__(self, "scores", Scores(scores))

    def beats(self, other: "Trial") -> bool:
        """At least as good on every score and better on one; what is within error is tied."""
        gaps = [mine.gap(theirs) for mine, theirs in zip(self.scores, other.scores, strict=True)]
        return all(gap <= 0 for gap in gaps) and any(gap < 0 for gap in gaps)

    def brief(self) -> "Trial":
        """The same trial without what is behind its scores, to keep thousands of them."""
        draws = tuple(Scores(s.brief() for s in scores) for scores in self.draws)
        return replace(self, scores=Scores(s.brief() for s in self.scores), draws=draws)

    def words(self) -> str:
        return self.name or self.recipe.words()

    def _repr_html_(self) -> str:
        return trial_html(self)


@dataclass(frozen=True)
class LeftOut:
    """A recipe that could not be run on this data, in short, and the reason, which may name a cell: internal."""

    name: str
    reason: str


class Trials(tuple[Trial, ...]):
    """Trials in order; `left_out` has the recipes that could not be run, each with its reason."""

    left_out: tuple[LeftOut, ...]

    def __new__(cls, trials: Iterable[Trial] = (), left_out: Iterable[LeftOut] = ()) -> "Trials":
        instance = super().__new__(cls, trials)
        instance.left_out = tuple(left_out)
        return instance

    def _repr_html_(self) -> str:
        return trials_html(self)


def original_trial(table: Table, measures: Sequence[Measure]) -> Trial:
    """The table as it is: the worst risk, nothing lost."""
    if "published" in table.more.columns:
        raise DataError("This table is protected already: give the table as it was made.")
    return Trial(Recipe(), Scores(m.measure(table, table).brief() for m in measures), name="original")


def over_draws(recipe: Recipe, draws: Sequence[Scores]) -> Trial:
    """The mean of each score over the draws, with a 95 % interval from Student's t."""
    if len(draws) == 1:
        return Trial(recipe, draws[0])
    means = [_mean([scores[i] for scores in draws]) for i in range(len(draws[0]))]
    return Trial(recipe, Scores(means), tuple(draws))


def _mean(scores: Sequence[Score]) -> Score:
    from scipy.special import stdtrit

    values = [score.value for score in scores]
    centre = fmean(values)
    half = float(stdtrit(len(values) - 1, 0.975)) * stdev(values) / len(values) ** 0.5
    numbers = [score.number for score in scores if score.number is not None]
    number = fmean(numbers) if numbers else None
    return replace(scores[0].brief(), value=centre, number=number, interval=(centre - half, centre + half))
