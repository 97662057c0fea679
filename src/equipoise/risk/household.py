"""Household risk: the probability that a household is re-identified through any of its members."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.cells import by_record, count
from equipoise.data.records import Records
from equipoise.ground.errors import RolesError, require_columns
from equipoise.ground.packed_keys import code
from equipoise.laws.mean_reciprocal import of_cells
from equipoise.methods.method import label
from equipoise.methods.parameters import share
from equipoise.methods.score import Score, not_applicable


@dataclass(frozen=True, slots=True)
class Household:
    """Mean probability that a record's household is re-identified: 1 - product over its members of (1 - their risk).

    The risk r_i of a member is that of `Individual`; whoever recognises one member recognises all, so each member has
    the risk of the household. `number` is the expected number of records re-identified so; with `above`, value and
    number are those of the records in households of a larger risk. The detail has a row per household, the worst
    first: its id, its `members` and its `risk`. Who lives together is said by the `household` role, or by that column.

    Source: Hundepool et al. (2012), section 3.3.3; World Bank, *Statistical Disclosure Control for Microdata: A
    Practice Guide*, section on household risk. Misleads when members of a household are recognised together rather
    than one by one. Cost: O(records) beside the cells.

    >>> people = pl.DataFrame({"age": [30, 31, 31], "home": [1, 1, 2]})
    >>> records = eq.Records.of(people, eq.Roles("age", household="home"))
    >>> Household().measure(records, records).detail.rows()
    [(1, 2, 1.0), (2, 1, 0.5)]
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
        members = _members(released, home)
        homes = _homes(members)
        weights = homes["risk"] if self.above is None else (homes["risk"] > self.above).cast(pl.Float64)
        number = float((homes["members"] * weights).sum())
        return Score(
            label(self),
            number / max(1, members.height),
            number=number,
            unit="share of records",
            cells=lambda: homes.sort("risk", "home", descending=[True, False]).rename({"home": home}),
            records=lambda: members.drop("risk").join(homes, on="home", maintain_order="left").drop("home", "members"),
        )


def _homes(members: pl.DataFrame) -> pl.DataFrame:
    """Table of households; 1 - product of (1 - r) by the sum of logarithms, exact for small risks too."""
    coded = code(members["home"])
    with np.errstate(divide="ignore"):
        missed = np.bincount(coded.codes, np.log1p(-members["risk"].to_numpy()), coded.size)
    people = np.bincount(coded.codes, minlength=coded.size)
    return pl.DataFrame({"home": coded.values, "members": people, "risk": -np.expm1(missed)})


def _members(records: Records, home: str) -> pl.DataFrame:
    """Table of records with their household and own risk."""
    schema = records.schema()
    require_columns((home,), schema)
    cells = count(records)
    members, key = by_record(records, cells, of_cells(cells)), records.roles.id
    homes = records.collect(*dict.fromkeys((*((key,) if key else ()), home)))
    if key:
        homes = homes.select(pl.col(key), pl.col(home).alias("home"))
        members = members.join(homes, on=key, how="left", maintain_order="left")
    else:
        members = members.with_columns(homes[home].alias("home"))
    gaps = members["home"].null_count()
    if gaps:
        raise RolesError(f"{gaps:,} records have no household in {home!r}.")
    return members.with_columns(risk=np.minimum(members["risk"].to_numpy(), 1.0))
