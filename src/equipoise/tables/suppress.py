"""Cell suppression: sensitive cells, and as few others (secondary suppression) as make them safe."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import as_table
from equipoise.ground.errors import ParameterError, shown
from equipoise.ground.progress import Progress
from equipoise.ground.randomness import Draws
from equipoise.methods.method import Rule
from equipoise.methods.parameters import check_fields, whole_number
from equipoise.tables._suppression.suppress_tables import suppress_tables


@dataclass(frozen=True, slots=True)
class Suppress:
    """Suppress the cells a rule calls sensitive (primary) and the cheapest others that keep them safe (secondary).

    An attacker knows every published cell, all relations, that nothing is negative and that empty cells are zero (and
    `limits`, two columns of the table with what he knows of each cell beforehand). For each sensitive cell x with
    levels l and u the pattern leaves a possible table with x + u or more and one with x - l or less; both are kept as
    proof and checked without the solver. `cost` is what suppressing a cell loses: its `value`, its `count` of records,
    1 (`cells`) or a column of the table, its importance. `publish` and `withhold` name columns that mark cells which
    must be. A withheld cell is guarded like a sensitive one, to a fifth of its value both ways. `like` is the last
    period's released table (its folder or file), or a column that marks what it suppressed: that costs a twentieth now,
    the largest tenth aside, so that patterns stay where they can. What the table holds of a-priori information
    (`eq.table(..., publish=, suppress=, apriori=)`) goes before rule and cost. With `round` published cells are rounded
    to multiples of it, which add up where all of a sum is published (`rounding="controlled"`), or each to the nearest;
    it depends on published values alone, so that the pattern stays safe.

    With `singletons` each sensitive cell keeps its levels for those who contribute, too: a contributor or holding who
    is alone in other cells, one or several, and knows them; one of several in a cell, who knows what he has in it; of
    counts a respondent, who knows that he is counted; and so many of those who are alone, pooled, as `coalition` says.
    Against somebody inside the sensitive cell the lower level is asked for as far as the rest of it goes. Where no
    pattern gives a level, a tenth of the farthest possible is asked for, and the law and the audit say how many cells
    have less than their levels. Without it only outsiders are guarded against, as published optima do.

    `method="fast"` finds for each sensitive cell its cheapest move and takes out what is not needed, then adds what it
    takes against those who contribute; when its progress says stop, the rest is completed by the quick way, as safe
    but dearer, and the law says so; "optimal" adds cutting planes until the cheapest pattern is proven or the
    `seconds` are spent; the law says the gap.

    Source: Fischetti and Salazar-Gonzalez (2001), *Solving the cell suppression problem on tabular data with linear
    constraints*; Hundepool et al. (2012), section 4.4. Does not guard against what is published elsewhere
    (`tables.difference`), larger coalitions, somebody who knows values more closely beforehand than `limits` say, or an
    attacker who knows that counts are whole: see `tables.audit`. Cost: about one small program for each sensitive cell,
    and some three tenths more with `singletons`; 10,000 cells in seconds, 100,000 in minutes.

    >>> people = pl.DataFrame({"k": ["a"] * 9 + ["b"] * 4 + ["c"]})
    >>> made = eq.table(eq.Records.of(people, eq.Roles("k")), "k")
    >>> Suppress(eq.rules.MinCount(3)).apply(made, Draws(1)).table.select("k", "published").rows()
    [('Total', 14.0), ('a', 9.0), ('b', None), ('c', None)]
    """

    random: ClassVar[bool] = False

    rule: Rule
    cost: str = "value"
    method: Literal["fast", "optimal"] = "fast"
    singletons: bool = True
    coalition: int = 1
    publish: str | None = None
    withhold: str | None = None
    limits: tuple[str, str] | None = None
    seconds: float = 300.0
    like: str | None = None
    round: int | None = None
    rounding: Literal["controlled", "nearest"] = "controlled"

    def __post_init__(self) -> None:
        check_fields(self, round=2)
        if self.limits is not None and len(self.limits) != 2:
            raise ParameterError("limits names two columns: what is known of each cell from below and from above.")
        whole_number(self.coalition, "coalition")
        if self.coalition > 1 and not self.singletons:
            raise ParameterError("A coalition is of contributors who are alone in cells: not without singletons.")
        if not self.seconds > 0:
            raise ParameterError(f"seconds must be above 0, got {shown(self.seconds)}.")

    def apply(self, data: Table, draws: Draws, progress: Progress | None = None) -> Table:
        return self.together([data], progress)[0]

    def together(self, tables: "list[Table]", progress: Progress | None = None) -> list[Table]:
        """Several tables of the same records protected at once: cells that hold the same records are one in all."""
        if not tables:
            raise ParameterError("There is no table to protect.")
        if self.singletons and len(tables) > 1 and any(axis.sign for table in tables for axis in table.axes):
            raise ParameterError(
                "Tables with signed relations are linked by their labels, which do not tell who contributes to several "
                "of them: protect them against outsiders, with singletons=False."
            )
        return suppress_tables([as_table(table, "Suppress") for table in tables], self, progress)
