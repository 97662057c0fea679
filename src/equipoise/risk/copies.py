"""Copies: released values and records that are somebody's exact and unique own."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.records import Records
from equipoise.ground.errors import ParameterError, RolesError
from equipoise.ground.randomness import Draws
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields
from equipoise.methods.score import Score

WHOLE_RECORD = "(whole record)"
"""How the detail names the comparison of all columns at once."""
MAX_RARE = 5
"""People up to which a value that they share is rare."""
RARITIES = ("equal", "rare", "unique")


@dataclass(frozen=True, slots=True)
class Copies:
    """Share of released values that equal a value only one person of the original has, in the column where it is most.

    For each column the released values that are not missing are looked up among the original's: `equal` is the share
    that somebody has, `rare` that at most five people have, `unique` that exactly one person has, with the role
    `person` in however many records. Whole records, all `columns` at once (missing equals missing), are compared in the
    same way and count like a column. Numbers of people, households and samples are left out unless they are named.
    value = the largest `unique`; `number` the count behind it.

    With a holdout, people reserved before any mask ran, the baseline is the same share for as many non-members: a value
    that coarse data repeat by chance is nobody's secret. Where the holdout is smaller than the file, the detail gives
    both shares for as many people as it has, `members` and `holdout`, drawn by a public seed. Works on masked files and
    on fully synthetic ones. The detail has a row per column and one for whole records.

    Source: Giomi et al. (2023), *A unified framework for quantifying privacy risk in synthetic data*, for members
    beside non-members. Misleads when read without the baseline, and as a sign of safety: noise in the last digit leaves
    no copy and protects nobody. Exact. Cost: O(records x columns) of hashing.

    >>> original = eq.Records.of(pl.DataFrame({"x": [1, 2, 2, 9]}), eq.Roles())
    >>> released = eq.Records.of(pl.DataFrame({"x": [2, 9, 9, 4]}), eq.Roles())
    >>> score = Copies().measure(released, original)
    >>> score.value, score.detail["equal"][0]
    (0.5, 0.75)
    """

    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if self.columns == ():
            raise ParameterError("columns names no column: leave it out, or name one.")

    def measure(self, released: Records, original: Records) -> Score:
        columns = self._compared(released, original)
        published, people = _comparable(released.collect(*columns), original.collect(*columns))
        table = _shares(published, people, _owners(original))
        holdout = original.holdout
        if holdout is not None:
            table = table.hstack(_beside(released, original, holdout, columns))
        worst = table.sort("unique", descending=True, maintain_order=True).row(0, named=True)
        return Score(
            label(self),
            float(worst["unique"]),
            baseline=worst.get("holdout"),
            number=round(worst["unique"] * worst["n"]),
            unit="share of released values",
            notes=_notes(worst, table),
            cells=lambda: table,
        )

    def _compared(self, released: Records, original: Records) -> tuple[str, ...]:
        here, there = released.schema(), original.schema()
        for column in self.columns or ():
            if column not in here or column not in there:
                raise RolesError.missing(column, [c for c in there if c in here])
        roles = (released.roles, original.roles)
        labels = {name for role in roles for name in (role.id, role.person, role.household, role.sample)}
        columns = self.columns or tuple(c for c in there if c in here and c not in labels)
        if not columns:
            raise RolesError("The released file and the original have no column in common.")
        return columns


def _comparable(released: pl.DataFrame, people: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Both files with columns of equal types: numbers as numbers, all that differs as text."""
    for column in people.columns:
        here, there = released.schema[column], people.schema[column]
        kind = here if here == there else pl.Float64 if here.is_numeric() and there.is_numeric() else pl.String
        kind = pl.String if isinstance(kind, pl.Enum | pl.Categorical) else kind
        value = pl.col(column).cast(kind)
        value = value.fill_nan(None) if kind in (pl.Float32, pl.Float64) else value
        released, people = released.with_columns(value), people.with_columns(value)
    return released, people


def _owners(records: Records) -> pl.Series:
    """The person of each record; a record of nobody is its own."""
    every = pl.int_range(records.height(), dtype=pl.Int64, eager=True)
    if records.roles.person is None:
        return every.alias("owners")
    owner = records.collect(records.roles.person).to_series()
    return (
        pl.select(pl.when(owner.is_null()).then(-1 - every).otherwise(owner.rank("dense"))).to_series().alias("owners")
    )


def _shares(released: pl.DataFrame, people: pl.DataFrame, owner: pl.Series) -> pl.DataFrame:
    """Shares of the released values that people have, by column and for whole records."""
    return pl.DataFrame(list(_rows(released, people, owner)))


def _rows(released: pl.DataFrame, people: pl.DataFrame, owner: pl.Series) -> Iterator[dict[str, object]]:
    for column in people.columns:
        filled = people[column].is_not_null()
        yield {
            "column": column,
            **_share(released.select(column).drop_nulls(), people.select(column).filter(filled), owner.filter(filled)),
        }
    yield {"column": WHOLE_RECORD, **_share(released, people, owner)}


def _share(released: pl.DataFrame, people: pl.DataFrame, owner: pl.Series) -> dict[str, float]:
    """Shares of these rows that some, at most five, or one of the people have."""
    columns = [pl.col(name).alias(str(place)) for place, name in enumerate(people.columns)]
    names = [str(place) for place in range(len(columns))]
    owners = people.select(*columns, owner).group_by(names).agg(pl.col("owners").n_unique())
    looked_up = released.select(columns).join(owners, on=names, how="left", nulls_equal=True)["owners"]
    limits = (people.height, MAX_RARE, 1)
    shares = (int((looked_up <= limit).sum()) / max(1, released.height) for limit in limits)
    return {"n": released.height, **dict(zip(RARITIES, shares, strict=True))}


def _beside(released: Records, original: Records, holdout: Records, columns: tuple[str, ...]) -> pl.DataFrame:
    """Shares of unique copies among as many members as non-members."""
    many = min(original.height(), holdout.height())
    shares = {}
    for name, side in (("members", original), ("holdout", holdout)):
        order = np.argsort(Draws(0).uniform(side.keys_of_rows()), kind="stable")[:many]
        files = _comparable(released.collect(*columns), side.collect(*columns)[order])
        shares[name] = _shares(*files, _owners(side)[order])["unique"]
    return pl.DataFrame(shares)


def _notes(worst: dict[str, object], table: pl.DataFrame) -> tuple[str, ...]:
    rows = table.filter(pl.col("column") == WHOLE_RECORD).row(0, named=True)
    beside = (
        f"Among as many members as non-members: {worst['members']:.4g} and {worst['holdout']:.4g}."
        if "holdout" in worst
        else "Without a holdout nobody knows how many copies chance would make."
    )
    return (
        f"Most in {worst['column']!r}. Whole records: {rows['equal']:.4g} equal somebody's, {rows['unique']:.4g} that "
        "of one person only.",
        beside,
    )
