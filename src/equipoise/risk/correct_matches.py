"""Share of an intruder's matches that are right in one release."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.aligned_files import aligned
from equipoise.data.records import Records
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.packed_keys import code, group_coded
from equipoise.methods.method import label
from equipoise.methods.score import Score, not_applicable


@dataclass(frozen=True, slots=True)
class CorrectMatches:
    """Share of people whom an intruder finds by picking at random among the released records with their keys.

    value = (1/n) sum over people of 1[Z = X] / S_X, with X the original and Z the released keys and S the released
    counts. The detail has a row per original count `t` and released count `a`: the `people`, and `risk`, the share of
    matches that are right. One draw of a random mask; over several draws a Trial gives the mean and its interval.

    Source: the matching scheme of Nayak (2015), section 2a. Misleads when few people have a unique match: then one draw
    says little, and `MatchProbability` is exact. Cost: O(records log records).

    >>> records = eq.Records.of(pl.DataFrame({"k": ["a", "b", "b"]}), eq.Roles("k"))
    >>> round(CorrectMatches().measure(records, records).value, 4)
    0.6667
    """

    def measure(self, released: Records, original: Records) -> Score:
        if released.synthetic:
            return not_applicable(label(self), "lower")
        released_table, original_table = aligned(released, original, original.roles.keys)
        truth, masked = _cells(original_table, released_table)
        size = int(max(truth.max(), masked.max())) + 1
        t, s = np.bincount(truth, minlength=size)[truth], np.bincount(masked, minlength=size)[truth]
        right = np.where(truth == masked, 1.0 / np.maximum(s, 1), 0.0)
        value = float(right.mean())
        return Score(
            label(self),
            value,
            number=float(right.sum()),
            unit="share of people",
            cells=lambda: _detail(t, s, right),
        )


def _cells(one: pl.DataFrame, two: pl.DataFrame) -> tuple[Integers, Integers]:
    """Cell of every record in both files, numbered alike."""
    both = pl.concat([one, two], how="vertical_relaxed")
    ids, _ = group_coded([code(column) for column in both.iter_columns()])
    return ids[: one.height], ids[one.height :]


def _detail(t: Integers, s: Integers, right: Floats) -> pl.DataFrame:
    people = pl.DataFrame({"t": t, "a": s, "right": right})
    return people.group_by("t", "a").agg(pl.len().alias("people"), pl.col("right").mean().alias("risk")).sort("t", "a")
