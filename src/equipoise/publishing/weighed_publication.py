"""Publication computed once and queried again: decisions at any risk, the steps of its curve, the S that fits."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from equipoise.data.records import Records
from equipoise.ground.randomness import Draws
from equipoise.masks import Recode
from equipoise.publishing.cells_of_domains import COUNT_COLUMNS
from equipoise.publishing.other_rules import RuleComparison
from equipoise.publishing.publication import Publication, publication
from equipoise.publishing.publish import Published


@dataclass(frozen=True, eq=False)
class WeighedPublication:
    """A publication with what other rules would give."""

    whole: Publication

    @classmethod
    def of(cls, source: Any, prior: Any, **options: Any) -> "WeighedPublication":
        """The publication with its curve and its comparison, both computed at once."""
        weighed = cls(publication(source, prior, **options))
        _ = weighed.whole.trade_off.steps, weighed.comparison
        return weighed

    @cached_property
    def comparison(self) -> RuleComparison:
        return self.whole.compare()

    def decided(self, risk: float) -> Published:
        """The decision at a risk."""
        return Published(self.whole, self.whole.choose(risk_at_most=risk), self.comparison, notes=self.whole.notes)


def survey_source(records: Records, levels: Mapping[str, Any]) -> Any:
    """The records with their columns as coarse as asked; where the rows are cells with n, N and y, the table."""
    for column, level in levels.items():
        records = Recode(column, level).apply(records, Draws(0))
    ready = all(name in records.schema() for name in COUNT_COLUMNS) and not records.roles.weight
    return records.collect() if ready else records


def fitting_groups(whole: Publication) -> float | None:
    """The S with which the loss expects as many uniques among the records of the cells as there are: two digits.

    Expected uniques are sum y exp(-y / S), which rises with S; None where nearly everybody is unique, or nobody.
    """
    if whole.misfit is None or not whole.misfit.counted:
        return None
    y = whole.data.column("y")
    uniques = float(whole.misfit.counted)
    if uniques >= 0.999 * y.sum():
        return None
    groups = np.logspace(-1, 12, 600)
    expected = np.array([(y * np.exp(-y / S)).sum() for S in groups])
    return float(f"{np.interp(uniques, expected, groups):.2g}")


def curve_steps(whole: Publication, most: int) -> dict[str, list[float]]:
    """The steps of the curve from everything published to nothing, thinned to at most so many."""
    curve = whole.curve()
    rows = np.unique(np.linspace(0, curve.height - 1, min(most, curve.height)).round().astype(int))
    thin = curve[rows]
    return {"withheld": thin["withheld"].round(6).to_list(), "risk": thin["risk"].round(6).to_list()}
