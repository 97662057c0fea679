"""Exchange, among records, the few key values that local suppression would blank."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.blanked_keys import BlankedKeys
from equipoise.data.records import Law, Records
from equipoise.data.row_draws import together
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import RolesError
from equipoise.ground.randomness import Draws
from equipoise.masks._local_suppression.key_suppression import KeySuppression
from equipoise.methods.method import Rule


@dataclass(frozen=True, slots=True)
class LocalSwap(KeySuppression):
    """Find the fewest key values whose blanks leave every row identical to k - 1 others, and exchange them instead.

    Local suppression (`LocalSuppress`, guard "identical") says which values are in the way. In each key the values that
    it would blank are dealt out at random among the records that have them: v'_i = v_pi(i), pi a uniformly random
    permutation of those records. So no blanks are added, and

    - the distribution of every key is kept exactly, weights apart;
    - the risk is that of the blanked file: the exchange looks at the blanks and at those distributions alone, so rows
      that are identical with blanks stay indistinguishable, whatever is known of the method: nobody is recognised by
      the keys with a probability above 1/k. Measures of classes count the blanked rows, where they know them.

    `rule`, `importance` and `max_per_key` are those of `LocalSuppress`. The law has the share of each key's values that
    took part, to a percent. Values that came missing take part too, in keys that have blanks: else they would show who
    was blanked.

    Source: Willenborg and de Waal (2001), ch. 5, local suppression and imputation; Dalenius and Reiss (1982),
    *Data-swapping: a technique for disclosure control*. Does not guard against attribute disclosure within a class, nor
    against other columns that tell which records exchanged; relations between keys are weaker by what was exchanged.
    Cost: that of `LocalSuppress`, and a sort of the blanked values of each key.

    >>> table = pl.DataFrame({"sex": ["f", "f", "f", "m"], "age": [30, 30, 31, 31]})
    >>> records = eq.Records.of(table, eq.Roles(["sex", "age"]))
    >>> sorted(LocalSwap(eq.rules.MinCount(2)).apply(records, Draws(1)).collect().rows())
    [('f', 30), ('f', 30), ('f', 31), ('m', 31)]
    """

    rule: Rule
    importance: Mapping[str, float] | tuple[Any, ...] | str | None = None
    max_per_key: int | Mapping[str, int] | tuple[Any, ...] | str | None = None

    shared = False
    guard = "identical"

    def apply(self, data: Records, draws: Draws) -> Records:
        for role in ("household", "person"):
            if getattr(data.roles, role):
                raise RolesError(
                    f"LocalSwap exchanges values of single records, and the {role} role says that some belong together:"
                    " their other records would show what was exchanged. Use LocalSuppress."
                )
        table, marks = together(data)
        blanked = self.suppressed(data, draws.child(0))
        blanks, keys = blanked.collect(*data.roles.keys), data.roles.keys
        rows = {key: _empty_rows(blanks[key], table[key]) for key in keys}
        swapped = table.with_columns(
            _dealt(table[key], rows[key], marks, draws.child(1 + place)) for place, key in enumerate(keys)
        )
        return data.with_frame(swapped, self.law(keys, rows, BlankedKeys(blanks, blanked.history[-1])))

    def law(self, keys: tuple[str, ...], rows: dict[str, Integers], detail: BlankedKeys) -> Law:
        """What the public may know: the rule, and about how many values of each key were exchanged."""
        size = max(1, detail.table.height)
        exchanged = {key: round(len(its) / size, 2) for key, its in rows.items()}
        public = {n: v for n, v in detail.law.parameters.items() if n != "guard"} | {"exchanged": exchanged}
        return Law("local_swap", keys, self.words(), public, detail=detail)

    def words(self) -> str:
        blanked = self.demand().partition(";")[0]
        return f"the fewest key values exchanged among records, chosen so that with blanks in their place {blanked}"


def _empty_rows(blanks: pl.Series, values: pl.Series) -> Integers:
    """The rows that are empty after suppression; none where suppression blanked nothing."""
    empty = blanks.is_null()
    return np.flatnonzero(empty.to_numpy() if (empty & values.is_not_null()).any() else np.zeros(len(empty), bool))


def _dealt(values: pl.Series, rows: Integers, marks: pl.Series, draws: Draws) -> pl.Series:
    """The values at these rows in a random order: by two orders that are drawn by record."""
    if not len(rows):
        return values
    own = marks.gather(rows)
    taker, giver = (rows[np.argsort(draws.uniform(own, counter), kind="stable")] for counter in range(2))
    sources = np.arange(len(values))
    sources[taker] = giver
    return values.gather(sources)
