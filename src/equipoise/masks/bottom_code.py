"""Replace everything below a threshold by one value."""

from dataclasses import dataclass
from typing import ClassVar

from equipoise.masks._tail_code import TailCode


@dataclass(frozen=True, slots=True)
class BottomCode(TailCode):
    """Replace the values of `column` that are below `at` by their mean, their median, or the threshold itself.

    x -> c for x < at, with c the mean or the median of the records beyond the threshold, or at. The mean keeps the
    column's sum. Source: Willenborg and de Waal (1996), ch. 1.
    Does not guard against a tail of one or two records: their mean or median shows them. Look at the tail's size.

    >>> incomes = eq.Cells.of(pl.DataFrame({"income": [1, 5, 9], "n": [4, 1, 3]}))
    >>> BottomCode("income", at=4).roll_up(incomes).table["income"].to_list()
    [1, 5, 9]
    """

    above: ClassVar[bool] = False
