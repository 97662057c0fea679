"""Links to another record of the same person: whoever has several records is found by any of them."""

import numpy as np
import polars as pl

from equipoise.attacks._nearest.cell_pairs_by_cost import Costs
from equipoise.attacks._nearest.neighbours import nearest
from equipoise.attacks._nearest.points import Cloud, distinct
from equipoise.data.aligned_files import Matched
from equipoise.data.records import Records
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.packed_keys import code

TIE = 1e-9
"""How far two chances may differ and be equal."""
MAX_GUESSED_PAIRS = 1_000_000
"""Looks and owners who may be theirs, up to which the owner of most records is guessed."""


def owners(original: Records, files: Matched) -> Integers | None:
    """The person of each original record that is matched; None where nobody has several."""
    if original.roles.person is None:
        return None
    return code(original.collect(original.roles.person).to_series()).codes.astype(np.int64)[files.places][files.first]


def chance_of_nearest(released: Cloud, original: Cloud, costs: Costs, own: Integers, owner: Integers) -> Floats:
    """Chance that the nearest released record is one of the same owner, ties broken at random."""
    _, point, _ = distinct(released)
    near = nearest(released, original, costs)
    links = pl.DataFrame({"look": near.query, "point": point[near.row], "chance": near.times.astype(np.float64)})
    links = links.with_columns(pl.col("chance") / pl.col("chance").sum().over("look"))
    return chance_of_person(links, near.of, owner, point, owners_of_records(owner, own, len(point)))


def owners_of_records(owner: Integers, own: Integers, records: int) -> Integers:
    """The owner of each released record, -1 for those of nobody who is asked about; `own` has the target's record."""
    owners = np.full(records, -1)
    owners[own] = owner
    return owners


def chance_of_person(
    links: pl.DataFrame, looks: Integers, owner: Integers, points: Integers, owners: Integers
) -> Floats:
    """Chance that a target is linked to a record of the same owner.

    `links` has the `chance` that a target of a `look` is linked to a record at a `point`; equal records cannot be told
    apart. `looks` and `owner` are of the targets, `points` and `owners` of the released records. Whoever sees whose
    records are whose takes the owner of most of them instead of any record, where that is right more often.

    >>> links = pl.DataFrame({"look": [0], "point": [0], "chance": [1.0]})
    >>> who = np.array([5, 5, 6])
    >>> chance_of_person(links, np.array([0, 0, 0]), who, np.array([0, 0, 0]), who).tolist()
    [1.0, 1.0, 0.0]
    """
    counts = pl.DataFrame({"point": points, "owner": owners}).group_by("point", "owner").len("records")
    shares = counts.with_columns(share=pl.col("records") / pl.col("records").sum().over("point"))
    targets = pl.DataFrame({"look": looks, "owner": owner})
    chance = (pl.col("chance") * pl.col("share")).sum().alias("right")
    mine = targets.unique().join(links, on="look").join(shares, on=["point", "owner"])
    ways = [mine.group_by("look", "owner").agg(chance)]
    pairs = links.join(counts.group_by("point").len("owners"), on="point")["owners"].sum()
    if pairs <= MAX_GUESSED_PAIRS:
        every = links.join(shares.filter(pl.col("owner") >= 0), on="point").group_by("look", "owner").agg(chance)
        most = every.filter(pl.col("right").max().over("look") - pl.col("right") <= TIE)
        ways.append(most.with_columns(right=1 / pl.len().over("look")))
    guesses = [targets.join(way, on=["look", "owner"], how="left", maintain_order="left") for way in ways]
    return max((guess["right"].fill_null(0.0).to_numpy() for guess in guesses), key=np.sum)
