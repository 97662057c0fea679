"""Coarsen a column to a level of its hierarchy."""

from dataclasses import dataclass

from equipoise.data.cells import Cells, hierarchy
from equipoise.data.levels import Level
from equipoise.data.recode_values import Data, recoded
from equipoise.data.records import Law, Records
from equipoise.ground.errors import ParameterError
from equipoise.ground.randomness import Draws


@dataclass(frozen=True, slots=True)
class Recode:
    """Replace each value of `column` by its category at `level` of the column's hierarchy (number or name).

    Source: Massell (1999), section I.b, coarsening or broadening of categories. The released value is a function of
    the original one. Cost: one pass over the records, or O(cells) on cells.

    Does not guard against attribute disclosure within a class, nor against an intruder with more keys than were named.

    >>> table = pl.DataFrame({"age": [14, 15, 16], "n": [1, 1, 1]})
    >>> ages = eq.Cells.of(table, hierarchies={"age": eq.Hierarchy.intervals(5)})
    >>> Recode("age", 1).roll_up(ages).table.rows()
    [('10-14', 1, 1.0), ('15-19', 2, 2.0)]
    """

    column: str
    level: int | str

    def __post_init__(self) -> None:
        if isinstance(self.level, bool) or not isinstance(self.level, int | str):
            raise ParameterError(f"level must be the number or the name of a level, got {type(self.level).__name__}.")

    def apply(self, data: Data, draws: Draws) -> Data:
        level = self._level(data)
        return recoded(data, self.column, lambda values, n: level.label(values), self.law(level))

    def roll_up(self, cells: Cells) -> Cells:
        if self.column not in cells.by:
            return cells
        level = self._level(cells)
        return cells.relabel(self.column, lambda values, n: level.label(values))

    def words(self) -> str:
        return f"{self.column} at level {self.level}"

    def law(self, level: Level) -> Law:
        text = f"{self.column} {level.words()}"
        return Law("recode", (self.column,), text, {"column": self.column, "level": level.name}, coarsens=True)

    def _level(self, data: Records | Cells) -> Level:
        hierarchies = data.roles.hierarchies if isinstance(data, Records) else data.hierarchies
        tree = hierarchy(hierarchies, self.column)
        level = tree.level(self.level)
        if level not in tree.allowed:
            raise ParameterError(
                f"Level {level.name!r} of {self.column!r} is finer than its floor: "
                f"the finest that may be released is {tree.allowed[0].name!r}."
            )
        return level
