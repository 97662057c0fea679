"""Put the records in a random order."""

from dataclasses import dataclass

import numpy as np

from equipoise.data.cells import Cells
from equipoise.data.records import Law, Records
from equipoise.data.row_draws import picked
from equipoise.ground.randomness import Draws


@dataclass(frozen=True, slots=True)
class ShuffleOrder:
    """Put the records in a random order: where a record stands often tells when or where it was collected.

    Every order is equally likely and drawn from the secret seed; values stay as they are. A release does this by itself
    after random masks; here it can be asked for.

    Source: Willenborg and de Waal (2001), *Elements of Statistical Disclosure Control*, section 1.4.
    Does not guard against anything that the values themselves tell. Cost: one sort of the records.

    >>> records = eq.Records.of(pl.DataFrame({"age": range(5)}), eq.Roles(["age"]))
    >>> sorted(ShuffleOrder().apply(records, Draws(1)).collect()["age"])
    [0, 1, 2, 3, 4]
    """

    def apply(self, data: Records, draws: Draws) -> Records:
        order = np.argsort(draws.uniform(data.keys_of_rows()), kind="stable")
        return picked(data, order, self.law())

    def roll_up(self, cells: Cells) -> Cells:
        """The cells as they are: no count depends on the order."""
        return cells

    def words(self) -> str:
        return "records in a random order"

    def law(self) -> Law:
        return Law("shuffle_order", (), "records put in a random order", {}, coarsens=True)
