"""What exposure, silence and coarseness cost."""

from equipoise.losses.expectation import expected, read, risks
from equipoise.losses.gamma_uniques import GammaUniques
from equipoise.losses.respondents import Respondents
from equipoise.losses.silence import Silence
from equipoise.losses.small_group import SmallGroup
from equipoise.losses.subclasses import Subclasses
from equipoise.losses.threshold import Threshold
from equipoise.losses.uniques import Uniques

__all__ = [
    "GammaUniques",
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
