"""Notes on missing keys: the risk if they were counted the other way."""

from dataclasses import replace
from math import isnan

from equipoise.data.cells import Cells, count
from equipoise.data.records import Records
from equipoise.methods.method import Measure, OnCells
from equipoise.methods.score import Score
from equipoise.presentation.numbers import value_text

EQUAL_TOLERANCE = 1e-12


def both_ways(measure: Measure, released: Records, original: Records) -> Score:
    """The score by the roles, with a note of its value when missing keys are counted the other way.

    A missing key is a category of its own, or it matches anything: the second assumes that an intruder cannot tell why
    a value is missing. Only risks that are measured on cells depend on it. Cost: that of the measure on cells, again.
    """
    score = measure.measure(released, original)
    if not isinstance(measure, OnCells) or score.side != "risk" or isnan(score.value) or released.synthetic:
        return score
    by = measure.by(released.roles)
    before, after = (_otherwise(count(records, by), records) for records in (original, released))
    if before is None and after is None:
        return score
    other_value = measure.measure(after or count(released, by), before or count(original, by)).value
    return replace(score, notes=(*score.notes, _note(released.roles.missing == "any", score, other_value)))


def _otherwise(cells: Cells, records: Records) -> Cells | None:
    """The cells with the other rule; none where no key is missing."""
    keys = tuple(column for column in records.roles.keys if column in cells.by)
    if not any(cells.values(key).null_count() for key in keys):
        return None
    return replace(cells, open=() if cells.open else keys)


def _note(open: bool, score: Score, other_value: float) -> str:
    value = "the same" if abs(other_value - score.value) <= EQUAL_TOLERANCE else value_text(other_value, score.unit)
    if open:
        return (
            "A missing key matches anything here, as if nobody could tell why it is missing; "
            f"counted as a category of its own the result is {value}."
        )
    return f"A missing key is a category of its own here; if it matched anything, the result would be {value}."
