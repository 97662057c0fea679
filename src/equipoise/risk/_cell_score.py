"""Risks of the classes of the keys: mean over records, detail per cell and per record; the sampling fraction."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, cast

from equipoise.data.blanked_keys import with_blanks
from equipoise.data.candidates import Candidates, candidates
from equipoise.data.cells import Cells, as_cells, by_record
from equipoise.data.records import Records
from equipoise.data.released_terms import rows
from equipoise.data.roles import Roles
from equipoise.ground.arrays import Floats
from equipoise.methods.method import label
from equipoise.methods.score import DESCRIPTIVE_NOTE, EXCHANGED_NOTE, Score, not_applicable
from equipoise.risk._blanks_shown_by_members import blanks_as_values, filled_by_members
from equipoise.risk._linked_records import linked

CENSUS_NOTE = "No sampling fraction was given and there are no weights: the file is taken for the whole population."
REPEATED_NOTE = "Records are counted, though some are of one person: people may be more at risk than this says."


class KeyRisk:
    """Mixin of measures that score the classes of the keys; records of a synthetic file stand for nobody.

    Rows that are identical as released, a blank being a value, cannot be told apart by anybody: that bound is the
    score; of values that were exchanged, as they would be with blanks in their place. Blanks that other members of the
    household show are filled in first. After a random mask on the keys it is descriptive only, and a note says so.
    Where the roles declare that a missing key could be anything (`missing="any"`), a measure of sizes counts for each
    person the released records that do not contradict their true keys; other measures, and files in which people cannot
    be followed, still count identical rows. Where people have several records, those are left out whose other records
    contradict what is true of the person.
    """

    __slots__ = ()
    of_sizes: ClassVar[bool] = True
    """Whether the score depends on the classes' sizes alone."""

    def by(self, roles: Roles) -> tuple[str, ...]:
        return roles.keys

    def measure(self, released: Records | Cells, original: Records | Cells) -> Score:
        if isinstance(released, Records) and released.synthetic:
            return not_applicable(label(self), "lower")
        bound = with_blanks(released) if isinstance(released, Records) else released
        score = self._of_classes(bound, original)
        if bound is not released:
            score = replace(score, notes=(*score.notes, EXCHANGED_NOTE))
        at_random = isinstance(bound, Records) and bound.randomised & {*self.by(bound.roles)}
        return replace(score, notes=(*score.notes, DESCRIPTIVE_NOTE)) if at_random else score

    def _of_classes(self, released: Records | Cells, original: Records | Cells) -> Score:
        if not isinstance(released, Records):
            return self._score(released, self._cells(released))
        read, view = as_read(released, original, self.by(released.roles), of_sizes=self.of_sizes)
        if view is None:
            return self._score(read, self._cells(read))
        score, people = self._score(view.people, view.people), cast(Records, original)
        return replace(score, records=lambda: rows(people, risk=score.detail["risk"].gather(view.places)))

    def _cells(self, released: Records | Cells) -> Cells:
        return as_cells(released, self.by(released.roles)) if isinstance(released, Records) else released

    def _score(self, released: Records | Cells, cells: Cells) -> Score:
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class InFile(KeyRisk):
    """A score of the file's own classes, for measures that also know a population."""

    score: Callable[[Records | Cells, Cells], Score]

    def _score(self, released: Records | Cells, cells: Cells) -> Score:
        return self.score(released, cells)


def as_read(
    released: Records, original: Records | Cells, by: tuple[str, ...], *, of_sizes: bool = True
) -> tuple[Records, Candidates | None]:
    """A release as an intruder reads it, blanks that members show filled in and other blanks as values.

    Beside it, for measures of sizes, the records that may be each person's: where people have several, or where a blank
    is declared to be anything and no member shows one.
    """
    plain = blanks_as_values(with_blanks(released), by)
    read = filled_by_members(plain, original, by)
    if not of_sizes or not isinstance(original, Records):
        return read, None
    if released.roles.person:
        return read, linked(read, original, by)
    anything = released.roles.missing == "any" and read is plain
    return read, candidates(released, original, by) if anything else None


def cell_score(name: str, released: Records | Cells, cells: Cells, risk: Floats, notes: tuple[str, ...] = ()) -> Score:
    """Mean risk of a record, each record having the risk of its cell. O(cells)."""
    number = float((cells.n * risk).sum())
    return Score(
        name,
        number / cells.records if cells.records else 0.0,
        number=number,
        unit="share of records",
        notes=notes,
        cells=lambda: cells.table_with(risk=risk),
        records=(lambda: by_record(released, cells, risk)) if isinstance(released, Records) else None,
    )


def fraction_of(cells: Cells, fraction: float | None) -> tuple[float, tuple[str, ...]]:
    """Sampling fraction, and notes on a model of records: the one passed, else records / sum of weights, at most 1.

    >>> fraction_of(Cells.of(pl.DataFrame({"k": [1, 2], "n": [1, 1], "total": [30.0, 10.0]})), None)
    (0.05, ())
    """
    notes: tuple[str, ...] = (REPEATED_NOTE,) if cells.people is not None else ()
    if fraction is not None:
        return fraction, notes
    notes += (CENSUS_NOTE,) if bool((cells.total == cells.n).all()) else ()
    total = float(cells.total.sum())
    return (min(1.0, cells.records / total) if total > 0 else 1.0), notes
