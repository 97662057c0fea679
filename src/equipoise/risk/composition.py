"""Composition risk: an intruder who knows the keys of several members of a household, or of all of them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import Literal

import numpy as np
import polars as pl

from equipoise.data.records import Records
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import ParameterError, RolesError, shown
from equipoise.ground.packed_keys import code, group
from equipoise.methods.method import label
from equipoise.methods.score import Score, not_applicable
from equipoise.risk._blanks_shown_by_members import filled_by_members

MAX_SUBSETS = 1000
"""Subsets of one household that are tried; one with more is taken as known whole, which is never a smaller risk."""


@dataclass(frozen=True, slots=True)
class Composition:
    """Share (and number) of people in households of which fewer than `k` look alike to who knows their members.

    The intruder knows the keys of all members (`known="all"`), or of the `known` members who give the household away
    most, and how many live there unless `size_known` is False. With all members known, a household's class are the
    households with the same multiset of member keys, f of them; with m members known, those that contain the same
    m members (and are of the same size), the smallest such class over the m-subsets of the household. Keys that are
    equal in every household (area, tenure) count once: where they are blank for one member and shown for another,
    they are read there. Who lives together is said by the `household` role, or by that column.

    A blank is a value of its own: households are alike when they are identical as released. Nobody can tell those
    apart, and none of them contradicts what is true of another: so the households that do not contradict the true
    composition are at least as many, and who knows it has no larger risk than the one reported.

    The detail has a row per household, the smallest class first: its id, its `members`, the number of households
    `alike` and `risk`, 1/f; the notes have the households that are alone and the mean of 1/f over households.

    Source: Hundepool et al. (2012), section 3.3.3, treats one known member; for several members see Clarke et al.
    (2003) on hashing multisets, which exact numbering of sorted lists replaces here. Misleads when the file is a small
    sample (a household alone in it need not be alone in the population) or when keys were perturbed. Cost: O(people
    log people) for all members, and a sort of the subsets for m members: of a household of size s there are s over m.

    >>> from equipoise.data.roles import Roles
    >>> people = pl.DataFrame({"age": [30, 31, 31, 30, 30], "home": [1, 1, 2, 2, 3]})
    >>> records = Records.of(people, Roles("age", household="home"))
    >>> Composition(k=2).measure(records, records).detail.rows()
    [(3, 1, 1, 1.0), (1, 2, 2, 0.5), (2, 2, 2, 0.5)]
    """

    known: int | Literal["all"] = "all"
    k: int = 3
    size_known: bool = True
    household: str | None = None

    def __post_init__(self) -> None:
        for name in ("known", "k"):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool) and value >= 1
            if not whole and (name, value) != ("known", "all"):
                extra = " or 'all'" if name == "known" else ""
                raise ParameterError(f"{name} must be a whole number, at least 1{extra}, got {shown(value)}.")

    def measure(self, released: Records, original: Records) -> Score:
        if released.synthetic:
            return not_applicable(label(self), "lower")
        column = self.household or released.roles.household
        if not column:
            raise RolesError("Composition risk needs to know who lives together: name a household in the roles.")
        home = None if column in released.roles.keys else column
        person = None if released.roles.person == home else released.roles.person
        roles = replace(released.roles, household=home, person=person, missing="category")
        read = filled_by_members(replace(released, roles=roles), original, roles.keys)
        households = _households(read, column)
        alike = self._alike(households)
        exposed = alike < self.k
        people = int(households.sizes[exposed].sum())
        return Score(
            label(self),
            people / len(households.home),
            "lower",
            number=float(people),
            unit="share of records",
            notes=(_words(alike, self.k),),
            cells=lambda: _detail(households, column, alike),
            records=lambda: _by_record(released, exposed[households.home].astype(np.float64)),
        )

    def _alike(self, households: "_Households") -> Integers:
        whole = np.bincount(ids := households.compositions())[ids]
        if self.known == "all":
            return whole
        sizes = households.sizes
        tried = np.array([comb(size, min(self.known, size)) <= MAX_SUBSETS for size in range(sizes.max() + 1)])[sizes]
        rows, owners = households.subsets(self.known, tried)
        length = (sizes if self.size_known else np.minimum(sizes, self.known))[owners]
        return np.where(tried, _smallest(rows, owners, length, len(sizes)), whole)


@dataclass(frozen=True, eq=False, repr=False)
class _Households:
    """Households and their members: `home` is the household of each record, `sizes` how many members each has.

    `cells` is the cell of each member, numbered from 1, in order of household and cell; household h has those from
    `starts[h]` on.
    """

    names: pl.Series
    home: Integers
    sizes: Integers
    starts: Integers
    cells: Integers

    def compositions(self) -> Integers:
        """Number of each household's sorted list of cells, equal where lists are: neighbours are joined in pairs.

        A pair of neighbours gets a number of its own, then pairs of pairs: exact, in log2(largest household) rounds.
        """
        home = np.repeat(np.arange(len(self.sizes)), self.sizes)
        lists, place = self.cells, np.arange(len(home)) - self.starts[home]
        while len(lists) > len(self.sizes):
            first = np.flatnonzero(place % 2 == 0)
            after = np.minimum(first + 1, len(lists) - 1)
            second = np.where((home[after] == home[first]) & (after > first), lists[after], 0)
            lists = _numbered(lists[first], second) + 1
            home, place = home[first], place[first] // 2
        return np.unique(lists, return_inverse=True)[1]

    def subsets(self, size: int, tried: Integers) -> tuple[Integers, Integers]:
        """The cells of every subset of `size` members (all members of smaller households), and its household."""
        parts = [np.zeros((0, size), dtype=np.int64)]
        owners = [np.zeros(0, dtype=np.int64)]
        for members in np.unique(self.sizes[tried]):
            homes = np.flatnonzero(self.sizes == members)
            chosen = np.array(list(combinations(range(members), min(size, members))))
            cells = self.cells[self.starts[homes][:, None, None] + chosen[None]].reshape(-1, chosen.shape[1])
            parts.append(np.pad(cells, ((0, 0), (0, size - chosen.shape[1]))))
            owners.append(np.repeat(homes, len(chosen)))
        return np.concatenate(parts), np.concatenate(owners)


def _households(records: Records, column: str) -> _Households:
    keys = records.roles.keys
    if not keys:
        raise RolesError("No keys were named: say which columns an intruder may know.")
    schema = records.schema()
    for name in (column, *keys):
        if name not in schema:
            raise RolesError.missing(name, list(schema))
    table = records.collect(*dict.fromkeys((column, *keys)))
    if gaps := table[column].null_count():
        raise RolesError(f"{gaps:,} records have no household in {column!r}.")
    homes = code(table[column])
    home = homes.codes.astype(np.int64)
    cells = _numbered(*_member_columns(table, keys, home)) + 1
    sizes, span = np.bincount(home, minlength=homes.size), int(cells.max()) + 1
    return _Households(homes.values, home, sizes, np.cumsum(sizes) - sizes, np.sort(home * span + cells) % span)


def _member_columns(table: pl.DataFrame, keys: tuple[str, ...], home: Integers) -> Iterator[Integers]:
    """Codes of the keys; of those that are equal in every household also the value that any member shows."""
    for key in keys:
        codes = code(table[key]).codes.astype(np.int64)
        yield codes
        if table[key].null_count():
            top = np.zeros(home.max() + 1, dtype=np.int64)
            np.maximum.at(top, home, codes)
            if ((codes == 0) | (codes == top[home])).all():
                yield top[home]


def _numbered(*columns: Integers) -> Integers:
    """Number of each combination of codes, from 0."""
    return group(columns, [int(column.max(initial=0)) + 1 for column in columns])[0]


def _smallest(rows: Integers, owners: Integers, length: Integers, homes: int) -> Integers:
    """The fewest households that have a subset of the same cells and length, over the subsets of each household."""
    smallest = np.zeros(homes, dtype=np.int64)
    if not len(rows):
        return smallest
    ids = _numbered(length, *rows.T)
    pairs = np.unique(ids * homes + owners)
    ids, owners = pairs // homes, pairs % homes
    smallest[:] = homes
    np.minimum.at(smallest, owners, np.bincount(ids)[ids])
    return smallest


def _words(alike: Integers, k: int) -> str:
    alone, few, mean = int((alike == 1).sum()), int((alike < k).sum()), float((1 / alike).mean())
    return (
        f"Of {len(alike):,} households {alone:,} are alone and {few:,} in classes of fewer than {k}; the mean of 1/f "
        f"over households is {mean:.4f}."
    )


def _detail(households: _Households, column: str, alike: Integers) -> pl.DataFrame:
    table = pl.DataFrame([
        households.names.alias("home"), pl.Series("members", households.sizes), pl.Series("alike", alike),
        pl.Series("risk", 1 / alike),
    ])  # fmt: skip
    return table.sort("risk", "home", descending=[True, False]).rename({"home": column})


def _by_record(records: Records, risk: Floats) -> pl.DataFrame:
    key = records.roles.id
    ids = records.collect(key)[key] if key else pl.int_range(len(risk), dtype=pl.UInt32, eager=True).alias("record")
    return pl.DataFrame([ids, pl.Series("risk", risk)])
