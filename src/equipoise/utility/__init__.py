"""Utility measures: what users of the released data can still estimate."""

from typing import TYPE_CHECKING

from equipoise.ground.lazy_exports import export_lazily

if TYPE_CHECKING:
    from equipoise.utility.changed import Changed
    from equipoise.utility.combine import combine
    from equipoise.utility.eigenvalues import Eigenvalues
    from equipoise.utility.entropy import Entropy
    from equipoise.utility.estimate import Estimate
    from equipoise.utility.information_loss import InformationLoss
    from equipoise.utility.marginals import Marginals
    from equipoise.utility.mean_square import MeanSquare
    from equipoise.utility.moments import Moments
    from equipoise.utility.pram_adjust import pram_adjust
    from equipoise.utility.propensity import Propensity
    from equipoise.utility.variance_inflation import VarianceInflation

__all__ = [
    "Changed",
    "Eigenvalues",
    "Entropy",
    "Estimate",
    "InformationLoss",
    "Marginals",
    "MeanSquare",
    "Moments",
    "Propensity",
    "VarianceInflation",
    "combine",
    "pram_adjust",
]

export_lazily(__name__)
