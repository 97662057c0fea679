"""Notes on missing keys: the risk if they were counted the other way."""

from dataclasses import replace
from math import isnan

from equipoise.data.cells import count
from equipoise.data.records import Records
from equipoise.methods.method import Measure, OnCells
from equipoise.methods.score import Score
from equipoise.presentation.numbers import value_text

EQUAL_TOLERANCE = 1e-12


def both_ways(measure: Measure, released: Records, original: Records) -> Score:
    """The score by the roles, with a note of its value when missing keys are counted the other way.

    A missing key is a value of its own: rows that are identical as released cannot be told apart by anybody. Or it
    could be anything: the second assumes that an intruder cannot tell why a value is missing. Only risks that are
    measured on cells depend on it. Cost: that of the measure, again.
    """
    score = measure.measure(released, original)
    if not isinstance(measure, OnCells) or score.side != "risk" or isnan(score.value) or released.synthetic:
        return score
    by = measure.by(released.roles)
    if not any(_gaps(records, by) for records in (original, released)):
        return score
    other = measure.measure(_otherwise(released), _otherwise(original)).value
    return replace(score, notes=(*score.notes, _note(released.roles.missing == "any", score, other)))


def _gaps(records: Records, by: tuple[str, ...]) -> bool:
    """Whether a key is missing somewhere."""
    cells = count(records, by)
    return any(cells.values(key).null_count() for key in records.roles.keys if key in by)


def _otherwise(records: Records) -> Records:
    return replace(
        records, roles=replace(records.roles, missing="category" if records.roles.missing == "any" else "any")
    )


def _note(open: bool, score: Score, other_value: float) -> str:
    value = "the same" if abs(other_value - score.value) <= EQUAL_TOLERANCE else value_text(other_value, score.unit)
    if open:
        return (
            "A missing key matches anything here, as if nobody could tell why it is missing; "
            f"counted as a category of its own the result is {value}."
        )
    return f"A missing key is a category of its own here; if it matched anything, the result would be {value}."
