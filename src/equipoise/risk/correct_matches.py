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
from equipoise.risk._likelihood_matches import likelihood_matches


@dataclass(frozen=True, slots=True)
class CorrectMatches:
    """Share of people whom an intruder finds by their keys: the larger of two ways.

    By agreement: (1/n) sum over people of 1[Z = X] / S_X, with X the original and Z the released keys and S the
    released counts: a random pick among the records with a person's keys. By likelihood, where keys were changed: a
    random pick in the released cell z with the largest prod over keys of P(z_k | x_k), alone, per record of the cell,
    or per record expected there. P is what the law of a mask tells, here counted in the pairs of records. In files of
    many cells some people, drawn by a public seed, are searched for. value = the largest share right.

    The detail, by agreement, has a row per original count `t` and released count `a`: the `people`, and `risk`, the
    share of matches that are right. One draw of a random mask; over several draws a Trial gives the mean and its
    interval.

    Source: the matching scheme of Nayak (2015), section 2a; Bayes' rule for the likelihood. Misleads when few people
    have a unique match: then one draw says little, and `MatchProbability` is exact; and when more than keys is known.
    Cost: O(records log records), and O(people x released cells x keys) where keys were changed.

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
        shares = {"agreement": float(right.mean())}
        if (truth != masked).any():
            shares["likelihood"] = likelihood_matches(original_table, released_table)
        value = max(shares.values())
        words = ", ".join(f"{name} {found:.4g}" for name, found in shares.items())
        return Score(
            label(self),
            value,
            number=value * len(right),
            unit="share of people",
            notes=(f"Shares right: {words}.",) if len(shares) > 1 else (),
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
