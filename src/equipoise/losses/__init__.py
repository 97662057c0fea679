"""Loss functions: the cost of disclosure, of not publishing and of coarsening."""

from typing import TYPE_CHECKING

from equipoise.ground.lazy_exports import export_lazily

if TYPE_CHECKING:
    from equipoise.losses.class_size import ClassSize as ClassSize
    from equipoise.losses.discernibility import Discernibility as Discernibility
    from equipoise.losses.entropy import Entropy as Entropy
    from equipoise.losses.expectation import expected as expected
    from equipoise.losses.expectation import read as read
    from equipoise.losses.expectation import risks as risks
    from equipoise.losses.gamma_uniques import GammaUniques as GammaUniques
    from equipoise.losses.granularity import Granularity as Granularity
    from equipoise.losses.non_uniform_entropy import NonUniformEntropy as NonUniformEntropy
    from equipoise.losses.respondents import Respondents as Respondents
    from equipoise.losses.silence import Silence as Silence
    from equipoise.losses.small_group import SmallGroup as SmallGroup
    from equipoise.losses.subclasses import Subclasses as Subclasses
    from equipoise.losses.threshold import Threshold as Threshold
    from equipoise.losses.uniques import Uniques as Uniques

export_lazily(__name__)
