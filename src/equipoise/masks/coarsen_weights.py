"""Give records with similar survey weights the same weight."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.records import Law, Records
from equipoise.data.row_draws import whole
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import RolesError, require_columns
from equipoise.ground.packed_keys import code, group_coded
from equipoise.ground.randomness import Draws
from equipoise.methods.parameters import check_fields


@dataclass(frozen=True, slots=True)
class CoarsenWeights:
    """Replace the weights by the means of at most `groups` groups of similar ones, of at least `size` records each.

    Weights carry the design and the area of a sample, and are often nearly unique. They are sorted and cut into groups
    of about equal numbers of records, equal weights staying together: where most records weigh the same, the others
    have the groups that are left. A group's weight becomes its mean w_g =
    sum(w_i) / n_g. The total of all weights stays, and with `keep` that within each combination of these columns, so
    that the estimated population of each domain is the same. Estimates of other totals change by sum((w_g - w_i) x_i).
    Draws nothing at random; members of a household with one weight keep one, unless `keep` differs among them.

    Source: Willenborg and de Waal (2001), *Elements of Statistical Disclosure Control*, chapter 6, on weights that
    disclose; the means are those of microaggregation, Domingo-Ferrer and Mateo-Sanz (2002). Does not guard against an
    intruder who knows the stratum that a group of weights stands for. Cost: one sort of the records.

    >>> records = eq.read(pl.DataFrame({"w": [10.0, 11.0, 12.0, 50.0, 51.0, 52.0]}), eq.Roles(weight="w"))
    >>> CoarsenWeights(groups=2, size=3).apply(records, Draws(1)).collect()["w"].to_list()
    [11.0, 11.0, 11.0, 51.0, 51.0, 51.0]
    """

    groups: int = 10
    keep: tuple[str, ...] = ()
    size: int = 10

    def __post_init__(self) -> None:
        check_fields(self, groups=1, size=2)

    def apply(self, data: Records, draws: Draws) -> Records:
        weight = data.roles.weight
        if not weight:
            raise RolesError("There are no weights to coarsen: name a column in the role weight.")
        require_columns(self.keep, data.schema())
        return data.with_frame(whole(data, lambda table, _: self._change(table, weight)), self.law(weight))

    def law(self, weight: str) -> Law:
        parameters = {"groups": self.groups, "keep": list(self.keep), "size": self.size}
        return Law("coarsen_weights", (weight,), self.words().replace("weights", weight, 1), parameters)

    def words(self) -> str:
        within = f" within {', '.join(self.keep)}" if self.keep else ""
        return f"weights replaced by the means of at most {self.groups} groups of {self.size} or more{within}"

    def _change(self, table: pl.DataFrame, weight: str) -> pl.DataFrame:
        weights = table[weight].cast(pl.Float64).to_numpy()
        strata = group_coded([code(table[c]) for c in self.keep])[0] if self.keep else np.zeros(len(weights), np.int64)
        order, released = np.lexsort((weights, strata)), np.empty(len(weights))
        for rows in np.split(order, np.cumsum(np.bincount(strata))[:-1]):
            released[rows] = self._means(weights[rows])
        return table.with_columns(pl.Series(weight, released))

    def _means(self, weights: Floats) -> Floats:
        """The means of the groups of sorted weights."""
        groups = self._places(weights)
        return (np.bincount(groups, weights) / np.bincount(groups))[groups]

    def _places(self, weights: Floats) -> Integers:
        """The group of each of the sorted weights: cut where a new weight begins, never before the group is full."""
        begins = np.flatnonzero(np.diff(weights, prepend=-np.inf) > 0)
        cuts = [0]
        while len(cuts) < self.groups:
            full = max(self.size, -(-(len(weights) - cuts[-1]) // (self.groups - len(cuts) + 1)))
            place = int(np.searchsorted(begins, cuts[-1] + full))
            if place == len(begins):
                break
            cuts.append(int(begins[place]))
        if len(cuts) > 1 and len(weights) - cuts[-1] < self.size:
            cuts.pop()
        return np.searchsorted(cuts, np.arange(len(weights)), side="right") - 1
