"""Loss functions: the cost of disclosure, of not publishing and of coarsening."""

from typing import TYPE_CHECKING

from equipoise.ground.lazy_exports import export_lazily

if TYPE_CHECKING:
    from equipoise.losses.class_size import ClassSize
    from equipoise.losses.discernibility import Discernibility
    from equipoise.losses.entropy import Entropy
    from equipoise.losses.expectation import expected, read, risks
    from equipoise.losses.gamma_uniques import GammaUniques
    from equipoise.losses.granularity import Granularity
    from equipoise.losses.non_uniform_entropy import NonUniformEntropy
    from equipoise.losses.respondents import Respondents
    from equipoise.losses.silence import Silence
    from equipoise.losses.small_group import SmallGroup
    from equipoise.losses.subclasses import Subclasses
    from equipoise.losses.threshold import Threshold
    from equipoise.losses.uniques import Uniques

__all__ = [
    "ClassSize",
    "Discernibility",
    "Entropy",
    "GammaUniques",
    "Granularity",
    "NonUniformEntropy",
    "Respondents",
    "Silence",
    "SmallGroup",
    "Subclasses",
    "Threshold",
    "Uniques",
    "expected",
    "read",
    "risks",
]

export_lazily(__name__, expected="expectation", read="expectation", risks="expectation")
