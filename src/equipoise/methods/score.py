"""Score: the result of every measure."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any, Literal

import polars as pl

from equipoise.ground.errors import EquipoiseError, ParameterError, shown
from equipoise.ground.html import card, grid, paragraph

Better = Literal["lower", "higher"]
Side = Literal["risk", "utility"]
DESCRIPTIVE_NOTE = (
    "Descriptive only: the keys were changed at random, so who is alone may be somebody else, and who is not may be "
    "recognised. Limit match_probability and recognisable."
)
"""Note of a class count that proves nothing."""
EXCHANGED_NOTE = (
    "Key values were exchanged among records: counted as if they were blank, which nobody can improve on. Who matches "
    "a person by the values as released may find somebody else."
)
"""Note of a class count that bounds what the released values show."""
SCORE_COLUMNS = ("Score", "Better", "Unit", "Value", "Interval", "Baseline")


@dataclass(frozen=True)
class Score:
    """A measured number with its direction, interval, baseline (the result of guessing) and detail.

    `value` is a share in [0, 1] wherever it could be a percentage; `number` the count behind a share. `detail`
    is a Polars frame with a row per cell (column `risk` where the score is a risk), computed on first use;
    `by_record()` returns a row per record, keyed by the id role, in input order for frames in memory.

    >>> Score("uniques", 0.0166, "lower")
    Score(name='uniques', value=0.0166, better='lower')
    """

    name: str
    value: float
    better: Better = "lower"
    _: KW_ONLY
    interval: tuple[float, float] | None = field(default=None, repr=False)
    baseline: float | None = field(default=None, repr=False)
    number: float | None = field(default=None, repr=False)
    unit: str = field(default="", repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)
    side: Side | None = field(default=None, repr=False)
    cells: Callable[[], pl.DataFrame] | None = field(default=None, repr=False, compare=False)
    records: Callable[[], pl.DataFrame] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.better not in ("lower", "higher"):
            raise ParameterError(f"better must be 'lower' or 'higher', got {shown(self.better)}.")
        if self.side is None:
            object.__setattr__(self, "side", "risk" if self.better == "lower" else "utility")

    def __float__(self) -> float:
        return self.value

    @cached_property
    def detail(self) -> pl.DataFrame:
        """One row per cell, the risk in column `risk`."""
        if self.cells is None:
            raise EquipoiseError(
                f"The detail of {self.name!r} was not kept: measure it again, or sweep with details=True."
            )
        return self.cells()

    def by_record(self) -> pl.DataFrame:
        """One row per record, keyed by id; computed on the engine of the data, on demand."""
        if self.records is None:
            raise EquipoiseError(f"{self.name!r} was measured on cells: measure it on records to see each record.")
        return self.records()

    def brief(self) -> "Score":
        """The same score without its detail, so that thousands can be kept."""
        return replace(self, cells=None, records=None)

    def _repr_html_(self) -> str:
        notes = (paragraph(note, faint=True) for note in self.notes)
        return card("Score", grid(SCORE_COLUMNS, [self._row()], words=3), *notes)

    def _row(self) -> tuple[str, ...]:
        """Row of a notebook table, without detail."""
        ends = " to ".join(f"{end:.4g}" for end in self.interval) if self.interval else ""
        guess = f"{self.baseline:.4g}" if self.baseline is not None else ""
        return self.name, self.better, self.unit, f"{self.value:.4g}", ends, guess

    def gap(self, other: "Score") -> float:
        """How much worse this score is than the other, in its own units: positive is worse, 0 within error."""
        worse = self.value - other.value if self.better == "lower" else other.value - self.value
        return 0.0 if abs(worse) <= self.error + other.error else worse

    @property
    def error(self) -> float:
        """Half the width of the interval; 0 for an exact score."""
        return 0.0 if self.interval is None else (self.interval[1] - self.interval[0]) / 2


def not_applicable(name: str, better: Better) -> Score:
    """Score of an identity-disclosure measure on a fully synthetic file: NaN, never 0.

    >>> not_applicable("uniques", "lower").notes
    ('Not applicable: every record is synthetic and stands for nobody.',)
    """
    why = "Not applicable: every record is synthetic and stands for nobody."
    return Score(name, float("nan"), better, notes=(why,))


class Scores(tuple[Score, ...]):
    """Scores in order, with access by name.

    >>> both = Scores([Score("uniques", 0.01, "lower"), Score("entropy", 9.0, "higher")])
    >>> both["entropy"].value, "uniques" in both, both.keys()
    (9.0, True, ('uniques', 'entropy'))
    """

    __slots__ = ()

    def __new__(cls, scores: Iterable[Score] = ()) -> "Scores":
        instance = super().__new__(cls, islice(scores, 100_000) if isinstance(scores, Iterable) else (scores,))
        if not all(isinstance(score, Score) for score in instance):
            raise ParameterError("scores must be a list of Score.")
        names = instance.keys()
        if len(set(names)) < len(names):
            raise ParameterError(f"Two scores of one trial share a name: {', '.join(names)}.")
        return instance

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str | int | slice):
            raise ParameterError(f"A score has a name or a place, got {type(key).__name__}.")
        if isinstance(key, int) and not -len(self) <= key < len(self):
            raise ParameterError(f"No score at place {shown(key)}: there are {len(self)}.")
        return super().__getitem__(key) if not isinstance(key, str) else self.named(key)

    def __contains__(self, item: object) -> bool:
        return item in self.keys() if isinstance(item, str) else isinstance(item, Score) and super().__contains__(item)

    def keys(self) -> tuple[str, ...]:
        return tuple(score.name for score in self)

    def _repr_html_(self) -> str:
        many = "1 score" if len(self) == 1 else f"{len(self):,} scores"
        return card(many, grid(SCORE_COLUMNS, (score._row() for score in self), words=3))

    def values(self) -> Iterator[Score]:
        return iter(self)

    def items(self) -> Iterator[tuple[str, Score]]:
        return zip(self.keys(), self, strict=True)

    def named(self, name: str) -> Score:
        """The score with this name, or with this bare method name where it is the only one."""
        matches = [s for s in self if s.name == name] or [s for s in self if s.name.partition("(")[0] == name]
        if len(matches) == 1:
            return matches[0]
        problem = "No score" if not matches else f"{len(matches)} scores are"
        raise ParameterError(f"{problem} named {name!r}. There are: {', '.join(self.keys())}.")
