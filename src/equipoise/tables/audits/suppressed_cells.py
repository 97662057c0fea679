"""Audit of suppressed cells: what an attacker can compute from tables that suppress them, one or several."""

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import polars as pl

from equipoise.data.tables.cell_status import structural
from equipoise.data.tables.linked_tables import Union
from equipoise.data.tables.table import Table
from equipoise.data.tables.table_arrays import as_table
from equipoise.ground.errors import DataError, ParameterError
from equipoise.ground.progress import Progress
from equipoise.methods.method import Rule
from equipoise.methods.parameters import whole_number
from equipoise.tables._suppression.contributor_knowledge import kinds_of, same_contributors
from equipoise.tables._suppression.guarded_cells import guards, limits_of, suppression_of, with_ends
from equipoise.tables._suppression.insiders import GuardedCells, InsiderAudit
from equipoise.tables._suppression.problem import SuppressionTable, typical
from equipoise.tables._suppression.remembered_moves import recall
from equipoise.tables.audits.attacker_intervals import AttackerIntervals, too_close
from equipoise.tables.audits.attacker_intervals import audit as intervals_of

Attacker = Literal["everybody", "outsider", "lone contributor", "contributor", "coalition"]

MAX_WHOLE = 300
"""Suppressed cells up to which counts are audited in whole numbers."""
MAX_WHOLE_CELLS = 3_000
"""Cells and classes of records of linked tables up to which counts are audited in whole numbers."""
LEAST_MOVE = 1e-3
"""Share of its value by which the audit of a large table asks a suppressed cell to be uncertain that has no level."""


def audit(
    table: Table, rule: Rule | None = None, *, whole: bool | None = None, against: Attacker = "everybody",
    coalition: int | None = None, progress: Progress | None = None,
) -> pl.DataFrame:  # fmt: skip
    """The interval that an outsider can compute for every suppressed cell, and contributors for every sensitive one.

    One row per cell and kind of attacker: its labels, `status`, true `value`, `lower` and `upper`, the least and the
    most it can be given all that is published, `exact` where they are the same, and `exposed` where the interval does
    not reach the protection levels of the `rule` (that of the suppression unless given; a cell withheld by hand has a
    level of a fifth). `reached` is the share of these levels that is kept. These are data: internal. `against` is one
    of:

    - outsider: knows what is published, the relations, that nothing is negative, that empty cells are zero, and the
      `limits` of the suppression;
    - lone contributor: a contributor or holding who is alone in suppressed cells, one or several, and knows them;
    - contributor: one of several in a cell, who knows what he has in it; of counts a respondent, who knows that he is
      counted. Exact where each is in one inner cell; of holdings, and in linked tables, he is taken to be the largest
      in every cell at once, so that the true level may be higher;
    - coalition: as many lone contributors as `coalition` says (that of the suppression unless given) who pool what
      they know, or all contributors of a cell where they are no more (not of holdings).

    Rows of the last three say the worst of all such people, name none, and reach no farther than the levels. Against
    somebody inside the sensitive cell the lower level is asked for only as far as the rest of it goes.

    With `whole` tables of counts are searched in whole numbers, which may be narrower; done unless told for up to 300
    suppressed cells. Misleads when an attacker knows more than is said above; of larger tables of counts in three and
    more dimensions the linear intervals can be too wide. Cost: at most two linear programs for each suppressed cell,
    split into what hangs together; against contributors about two for each sensitive cell, and one for each of those
    whose cells no other move leaves still.

    >>> from equipoise.ground.randomness import Draws
    >>> people = eq.Records.of(pl.DataFrame({"k": ["a"] * 9 + ["b"] * 4 + ["c"]}), eq.Roles("k"))
    >>> made = eq.tables.Suppress(eq.rules.MinCount(3)).apply(eq.table(people, "k"), Draws(1))
    >>> audit(made).select("k", "against", "lower", "upper", "exposed").rows()
    [('b', 'outsider', 0.0, 5.0, False), ('c', 'outsider', 0.0, 5.0, False), ('c', 'contributor', 0.0, 3.0, False)]
    """
    if against not in get_args(Attacker):
        raise ParameterError(f"'against' is one of {', '.join(get_args(Attacker))}, not {against!r}.")
    released = as_table(table, "audit")
    union, ranges = intervals([released], whole, rule, progress)
    rows = verdicts(released, union.places[0], ranges, rule or rule_of(released))
    if against == "outsider":
        return rows
    size = _coalition(released) if coalition is None else coalition
    whole_number(size, "coalition")
    levels = [guards(released, rule or rule_of(released), suppression_of(released))]
    parts = insiders(union, ranges.suppressed, levels, size, whole, against, progress)
    more = [insider_rows(union, 0, kind, cells) for kind, cells in parts.items()]
    return pl.concat([*([rows] if against == "everybody" else []), *more] or [rows.clear()])


def _coalition(table: Table) -> int:
    mask = suppression_of(table)
    return mask.coalition if mask is not None else 1


def insiders(
    union: Union, suppressed: Any, levels: Sequence[tuple[Any, Any, Any]], coalition: int = 1,
    whole: bool | None = None, against: Attacker = "everybody", progress: Progress | None = None,
) -> dict[str, GuardedCells]:  # fmt: skip
    """What each kind of contributors leaves of the levels of sensitive cells: the kinds that the tables tell about.

    `levels` has for each table which cells are sensitive, and how far they must stay uncertain below and above.
    """
    flagged, below, above = (union.gathered(part) for part in zip(*levels, strict=True))
    low, high = with_ends(union.tables, union.values, *known_limits(union))
    system = SuppressionTable.of(union.additive, union.values, np.minimum(low, union.values), high)
    below, above = (np.where(flagged, side, 0.0) for side in (below, above))
    if not (suppressed & flagged).any():
        return {}
    kinds = kinds_of(union, system, suppressed, coalition)
    shy, exact = suppressed & (union.knowers >= 0), _in_whole_numbers(union, suppressed, whole)
    work = InsiderAudit(system, suppressed, below, above, shy=shy, whole=exact, progress=progress)
    work.take_over(recall(system.values, suppressed).contributors)
    chosen = {kind: one for kind, one in kinds.items() if against in ("everybody", kind, kind.split()[0])}
    return {kind: work.against(minds, size, kind) for kind, (minds, size) in chosen.items()}


def contributors_together(tables: Sequence[Table], coalition: int = 1) -> pl.DataFrame:
    """What contributors can compute of the sensitive cells of several tables together, with the number of the table."""
    union = Union.of(tables)
    hidden = ~union.gathered([~np.isnan(table.published_values) for table in tables])
    levels = [guards(table, rule_of(table), suppression_of(table)) for table in tables]
    parts = insiders(union, hidden, levels, coalition)
    rows = [
        insider_rows(union, number, kind, cells).with_columns(table=pl.lit(number))
        for kind, cells in parts.items()
        for number in range(len(union.tables))
    ]
    return pl.concat(rows, how="diagonal") if rows else pl.DataFrame()


def insider_rows(union: Union, number: int, kind: str, guarded: GuardedCells) -> pl.DataFrame:
    """The rows of one kind of contributors, for the cells of one table.

    What is only a bound, of somebody who is the largest in every cell at once, is never called exact.
    """
    table, place = union.tables[number], union.places[number]
    spots = {cell: row for row, cell in enumerate(place.tolist())}
    chosen = np.array([cell in spots for cell in guarded.cells.tolist()], dtype=np.bool_)
    rows = np.array([spots[cell] for cell in guarded.cells[chosen].tolist()], dtype=np.int64)
    value, bound = table.numbers("value")[rows], kind == "contributor" and same_contributors(union)
    exposed = (guarded.weaker | guarded.unsettled)[chosen]
    cells = _labels(table, table.numbers("value"))[rows]
    return cells.with_columns(
        against=pl.lit(kind), lower=value - guarded.down[chosen], upper=value + guarded.up[chosen],
        exact=pl.Series(guarded.exact[chosen] & (not bound)), exposed=pl.Series(exposed),
        reached=pl.Series(np.where(guarded.unsettled, np.nan, np.clip(guarded.share, 0.0, 1.0))[chosen]).fill_nan(None),
    )  # fmt: skip


def difference(old: Table, new: Table | Sequence[Table], rule: Rule | None = None) -> pl.DataFrame:
    """What the comparison of two releases, or of overlapping tables, gives away: an audit over all of them together.

    A cell is the set of records that it holds, whatever its columns and labels: it is known when any table publishes a
    cell with the same records and values, and all sums that follow hold (`Union`). Of ready tables, whose records are
    not known, cells are the same by their columns and labels, and must have the same value. One row per cell that a
    table suppresses, as in `audit`, with `published`, whether another table publishes it; a table that nothing was done
    to publishes everything.
    """
    others = [new] if isinstance(new, Table) else list(new)
    if not others:
        raise ParameterError("Give at least one other table to compare with.")
    return compared([as_table(table, "difference") for table in (old, *others)], rule)[1]


def compared(tables: Sequence[Table], rule: Rule | None = None) -> tuple[Union, pl.DataFrame]:
    """Tables as one system, and a row per cell that one of them suppresses (`difference`)."""
    union, ranges = intervals(tables, rule=rule)
    parts = []
    for number, (table, place) in enumerate(zip(tables, union.places, strict=True)):
        cells = verdicts(table, place, ranges, rule or rule_of(table))
        public = ~ranges.suppressed[place]
        hidden = pl.Series(table.published_values).is_nan().to_numpy()
        sensitive = pl.col("status") == "sensitive" if "status" in cells.columns else pl.lit(value=False)
        parts.append(
            cells.with_columns(pl.Series("published", public[hidden]), pl.lit(number).alias("table"))
            .with_columns(exact=pl.col("exact") | pl.col("published"))
            .with_columns(exposed=pl.col("exposed") | (pl.col("published") & sensitive))
        )
    return union, pl.concat(parts, how="diagonal")


def intervals(
    tables: Sequence[Table], whole: bool | None = None, rule: Rule | None = None, progress: Progress | None = None
) -> tuple[Union, AttackerIntervals]:
    """The attacker's interval of every cell that no table publishes; in large tables as far as levels ask."""
    union = Union.of(tables)
    hidden = ~union.gathered([~np.isnan(table.published_values) for table in tables])
    unit, told = typical(np.abs(union.values)), [(table.published_values, union.values[place])
                                         for table, place in zip(tables, union.places, strict=True)
                                         if not _rounded(table)]  # fmt: skip
    changes = sum(int((np.abs(one - true) > 1e-9 * np.maximum(unit, true)).sum()) for one, true in told)
    if changes:
        raise DataError(f"{changes:,} published cells differ from the table's values: audit is for suppressed cells.")
    low, high = known_limits(union)
    exact = _in_whole_numbers(union, hidden, whole)
    parts = [guards(table, rule or rule_of(table), suppression_of(table)) for table in tables]
    flagged, below, above = (union.gathered(part) for part in zip(*parts, strict=True))
    least = LEAST_MOVE * np.where(union.values != 0, np.abs(union.values), 1.0)
    enough = tuple(np.where(flagged, np.maximum(level, least), least) for level in (below, above))
    ranges = intervals_of(
        union.additive, union.values, hidden, low=low, high=high, integer=exact, targets=~union.atoms,
        enough=(enough[0], enough[1]), progress=progress, moves=recall(union.values, hidden).outsider,
    )  # fmt: skip
    return union, ranges


def _rounded(table: Table) -> bool:
    """Whether published cells were rounded: their values are taken as known all the same, which is more than is."""
    mask = suppression_of(table)
    return mask is not None and mask.round is not None


def _in_whole_numbers(union: Union, hidden: Any, whole: bool | None) -> bool:
    """Whether counts are searched in whole numbers."""
    counts = bool((union.values == np.round(union.values)).all()) and all(t.measured is None for t in union.tables)
    unknown = int((hidden & ~union.atoms).sum())
    exact = counts and unknown <= MAX_WHOLE and union.cells <= MAX_WHOLE_CELLS if whole is None else whole
    if exact and not counts:
        raise ParameterError("Only a table of whole counts can be audited in whole numbers.")
    return exact


def known_limits(union: Union) -> tuple[Any, Any]:
    """What the attacker knows of each cell beforehand: the limits that the suppressions were made for, and zeros."""
    pairs = []
    for table in union.tables:
        mask, told = suppression_of(table), ~np.isnan(table.published_values) | structural(table)
        pairs.append(limits_of(table, mask.limits if mask else None, (table.n == 0) & told))
    low, high = zip(*pairs, strict=True)
    return union.gathered(low), union.bounded(union.gathered(high, np.minimum, np.inf))


def verdicts(table: Table, place: Any, ranges: AttackerIntervals, rule: Rule | None) -> pl.DataFrame:
    """A row per suppressed cell: its interval, whether it is known exactly, and whether within its protection level."""
    hidden = np.isnan(table.published_values)
    lower, upper, value = ranges.lower[place], ranges.upper[place], table.numbers("value")
    flagged, below, above = guards(table, rule, suppression_of(table))
    exposed = flagged & too_close(value, lower, upper, below, above)
    reached = np.minimum(_share(upper - value, above), _share(value - lower, below))
    return _labels(table, value).with_columns(
        against=pl.lit("outsider"), lower=lower, upper=upper, exact=pl.Series(ranges.disclosed()[place]),
        exposed=pl.Series(exposed), reached=pl.Series(np.where(flagged, reached, np.nan)).fill_nan(None),
    ).filter(pl.Series(hidden))  # fmt: skip


def _share(distance: Any, level: Any) -> Any:
    """How much of its level each cell keeps, at most all."""
    return np.clip(np.divide(distance, level, out=np.ones(len(level)), where=level > 0), 0.0, 1.0)


def _labels(table: Table, value: Any) -> pl.DataFrame:
    return table.table.select(*table.by, *(("status",) if "status" in table.more.columns else ()), value=value)


def rule_of(table: Table) -> Rule | None:
    """The rule that the table was last protected by."""
    mask = suppression_of(table)
    return mask.rule if mask is not None and isinstance(mask.rule, Rule) else None
