"""Share of an intruder's matches that are right in one release."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.aligned_files import aligned
from equipoise.data.candidates import Candidates, agreeing
from equipoise.data.cells import cell_of, count
from equipoise.data.records import Records
from equipoise.data.released_terms import ComparableFiles
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import EngineError
from equipoise.ground.packed_keys import code, group_coded
from equipoise.methods.method import label
from equipoise.methods.score import Score, not_applicable
from equipoise.risk._cell_score import as_read


@dataclass(frozen=True, slots=True)
class CorrectMatches:
    """Share of people whom an intruder finds by picking at random among the released records that may be theirs.

    value = (1/n) sum over people of 1[Z agrees with X] / S_X, with X the original keys in the terms of the release, Z
    the released ones and S_X the released records that agree with X: on every key that is not blank. Where no key was
    changed at random, S is the number of rows identical to the person's, as in `Prosecutor`. The detail has a row per
    original count `t` and released count `a`: the `people`, and `risk`, the share of matches that are right. One draw
    of a random mask; over several draws a Trial gives the mean and its interval.

    Source: the matching scheme of Nayak (2015), section 2a. Misleads when few people have a unique match: then one draw
    says little, and `MatchProbability` is exact. Cost: O(records log records).

    >>> records = eq.Records.of(pl.DataFrame({"k": ["a", "b", "b"]}), eq.Roles("k"))
    >>> round(CorrectMatches().measure(records, records).value, 4)
    0.6667
    """

    def measure(self, released: Records, original: Records) -> Score:
        if released.synthetic:
            return not_applicable(label(self), "lower")
        read, view = as_read(released, original, original.roles.keys)
        files = ComparableFiles.read(released, original, original.roles.keys)
        if not files.in_step:
            raise EngineError("The released and the original file have different records: align them by an id role.")
        moved = released.randomised & {*original.roles.keys}
        own, s = (
            agreeing(files.here, files.in_terms(*files.here.columns).there)
            if moved
            else (np.ones(files.here.height), _class_sizes(read, view))
        )
        right = np.where(own > 0, 1.0 / np.maximum(s, 1), 0.0)
        truth = group_coded([code(column) for column in files.there.iter_columns()])[0]
        return Score(
            label(self),
            float(right.mean()),
            number=float(right.sum()),
            unit="share of people",
            cells=lambda: _detail(np.bincount(truth)[truth], s, right),
        )


def _class_sizes(read: Records, view: Candidates | None) -> Integers:
    """The rows that cannot be told from each person's, in the order of the ids or of the rows."""
    if view is not None:
        return view.people.alike[0][view.places]
    cells = count(read)
    return cells.alike[0][cell_of(aligned(read, read, cells.by)[0], cells)]


def _detail(t: Integers, s: Integers, right: Floats) -> pl.DataFrame:
    people = pl.DataFrame({"t": t, "a": s, "right": right})
    return people.group_by("t", "a").agg(pl.len().alias("people"), pl.col("right").mean().alias("risk")).sort("t", "a")
