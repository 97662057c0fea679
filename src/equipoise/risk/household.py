"""Household risk: the probability that a household is re-identified through any of its members."""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from equipoise.data.aligned_files import aligned
from equipoise.data.cells import count
from equipoise.data.moving_units import cell_of
from equipoise.data.records import Records
from equipoise.data.roles import beside
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import RolesError, require_columns
from equipoise.ground.packed_keys import Coded, code
from equipoise.laws.mean_reciprocal import of_cells
from equipoise.methods.method import label
from equipoise.methods.parameters import share
from equipoise.methods.score import Score, not_applicable
from equipoise.risk._cell_score import as_read


@dataclass(frozen=True, slots=True)
class Household:
    """Mean probability that a record's household is re-identified: 1 - product over its members of (1 - their risk).

    Or m r where m members share a class of risk r and that is more: whichever of them a record is taken for, it leads
    to the household. The risk r_i of a member is that of `Individual`, blanks that other members show filled in;
    whoever recognises one member recognises all, so each member has the risk of the household. `number` is the expected
    number of records re-identified so; with `above`, value and number are those of the records in households of a
    larger risk. The detail has a row per household, the worst first: its id, its `members` and its `risk`. Who lives
    together is said by the `household` role, or by that column.

    Source: Hundepool et al. (2012), section 3.3.3; World Bank, *Statistical Disclosure Control for Microdata: A
    Practice Guide*, section on household risk. Assumes that an intruder knows one member, not the family.
    Misleads when members are recognised together: see `Composition`. Cost: O(records) beside the cells.

    >>> people = pl.DataFrame({"age": [30, 31, 31], "home": [1, 1, 2]})
    >>> records = eq.Records.of(people, eq.Roles("age", household="home"))
    >>> Household().measure(records, records).detail.rows()
    [(1, 2, 1.0), (2, 1, 0.5)]
    >>> twins = eq.Records.of(people.with_columns(age=30), eq.Roles("age", household="home"))
    >>> Household().measure(twins, twins).detail["risk"].round(3).to_list()
    [0.667, 0.333]
    """

    above: float | None = None
    household: str | None = None

    def __post_init__(self) -> None:
        if self.above is not None:
            share(self.above, "above", zero=True, open_=True)

    def measure(self, released: Records, original: Records) -> Score:
        if released.synthetic:
            return not_applicable(label(self), "lower")
        home = self.household or released.roles.household
        if not home:
            raise RolesError("Household risk needs to know who lives together: name a household in the roles.")
        ids, homes, cell, risk = _members(released, original, home)
        people, shared = np.bincount(homes.codes, minlength=homes.size), _of_households(homes, cell, risk)
        weights = shared if self.above is None else np.where(shared > self.above, 1.0, 0.0)
        number = float((people * weights).sum())
        return Score(
            label(self),
            number / max(1, len(risk)),
            number=number,
            unit="share of records",
            cells=lambda: _detail(homes.values.alias(home), people, shared),
            records=lambda: pl.DataFrame({beside(ids.name, "risk"): ids, "risk": shared[homes.codes]}),
        )


def _of_households(homes: Coded, cell: Integers, risk: Floats) -> Floats:
    """The chance that one member at least is recognised, and no less than that of a record of a class they share."""
    with np.errstate(divide="ignore"):
        missed = np.bincount(homes.codes, np.log1p(-risk), homes.size)
    classes = (
        pl.DataFrame({"home": homes.codes, "cell": cell, "risk": risk}).group_by("home", "cell").agg(pl.sum("risk"))
    )
    together = np.zeros(homes.size)
    np.maximum.at(together, classes["home"].to_numpy(), np.minimum(classes["risk"].to_numpy(), 1.0))
    return np.maximum(-np.expm1(missed), together)


def _members(released: Records, original: Records, home: str) -> tuple[pl.Series, Coded, Integers, Floats]:
    """Id (else row number), household, class and own risk of every record, row by row: ids may repeat."""
    key, keys = released.roles.id, released.roles.keys
    require_columns((home,), released.schema())
    if released.kind == "pyspark" and not key:
        raise RolesError("Records on Spark have no order: name an id role to see the risk of each record.")
    columns = tuple(dict.fromkeys((home, *((key,) if key else ()))))
    if gaps := released.collect(home)[home].null_count():
        raise RolesError(f"{gaps:,} records have no household in {home!r}.")
    named = released if home in keys else replace(released, roles=replace(released.roles, household=home))
    read, view = as_read(named, original, keys)
    if view is None:
        cells = count(read)
        table = read.collect(*dict.fromkeys((*cells.by, *columns)))
        cell = cell_of(table, cells)
    else:
        cells, cell, table = view.people, view.places, aligned(read, original, columns)[0]
    ids = table[key] if key else pl.int_range(table.height, dtype=pl.UInt32, eager=True).alias("record")
    return ids, code(table[home]), cell, np.minimum(of_cells(cells)[cell], 1.0)


def _detail(homes: pl.Series, people: Integers, risk: Floats) -> pl.DataFrame:
    """Households, the worst first."""
    order = np.lexsort((np.arange(len(risk)), -risk))
    return pl.DataFrame({beside(homes.name, "members", "risk"): homes, "members": people, "risk": risk})[order]
