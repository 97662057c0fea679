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
from equipoise.risk._likelihood_matches import likelihood_matches


@dataclass(frozen=True, slots=True)
class CorrectMatches:
    """Share of people whom an intruder finds by their keys: the larger of two ways.

    By agreement: (1/n) sum over people of 1[Z agrees with X] / S_X, with X the original keys in the terms of the
    release, Z the released ones and S_X the released records that agree with X: on every key that is not blank. Where
    no key was changed at random, S is the number of rows identical to the person's, as in `Prosecutor`. By likelihood,
    where keys were changed at random: a random pick in the released cell z with the largest prod over keys of
    P(z_k | x_k), alone, per record of the cell, or per record expected there. P is what the law of a mask tells, here
    counted in the pairs of records. In files of many cells some people, drawn by a public seed, are searched for. value
    = the largest share right.

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
        keys = original.roles.keys
        read, view = as_read(released, original, keys)
        files = ComparableFiles.read(released, original, keys)
        if not files.in_step:
            raise EngineError("The released and the original file have different records: align them by an id role.")
        truth = group_coded([code(column) for column in files.there.iter_columns()])[0]
        moved = released.randomised & {*keys}
        true_keys = files.in_terms(*files.here.columns).there if moved else files.there
        own, s = agreeing(files.here, true_keys) if moved else (np.ones(len(truth)), _class_sizes(read, view))
        right = np.where(own > 0, 1.0 / np.maximum(s, 1), 0.0)
        shares = {"agreement": float(right.mean())}
        if moved:
            shares["likelihood"] = likelihood_matches(true_keys, files.here)
        value, words = max(shares.values()), ", ".join(f"{name} {part:.4g}" for name, part in shares.items())
        return Score(
            label(self),
            value,
            number=value * len(right),
            unit="share of people",
            notes=(f"Shares right: {words}.",) if len(shares) > 1 else (),
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
