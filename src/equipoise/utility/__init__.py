"""Utility measures: what users of the released data can still estimate."""

from typing import TYPE_CHECKING

from equipoise.ground.lazy_exports import export_lazily

if TYPE_CHECKING:
    from equipoise.utility.bias import Bias as Bias
    from equipoise.utility.blank_keys import BlankKeys as BlankKeys
    from equipoise.utility.changed import Changed as Changed
    from equipoise.utility.combine import combine as combine
    from equipoise.utility.eigenvalues import Eigenvalues as Eigenvalues
    from equipoise.utility.entropy import Entropy as Entropy
    from equipoise.utility.estimate import Estimate as Estimate
    from equipoise.utility.information_loss import InformationLoss as InformationLoss
    from equipoise.utility.marginals import Marginals as Marginals
    from equipoise.utility.mean_square import MeanSquare as MeanSquare
    from equipoise.utility.moments import Moments as Moments
    from equipoise.utility.overlap import Overlap as Overlap
    from equipoise.utility.pram_adjust import pram_adjust as pram_adjust
    from equipoise.utility.propensity import Propensity as Propensity
    from equipoise.utility.train_test import TrainTest as TrainTest
    from equipoise.utility.variance_inflation import VarianceInflation as VarianceInflation
    from equipoise.utility.withheld_records import WithheldRecords as WithheldRecords

export_lazily(__name__)
