"""Attacks: measures that score a release by attacking it as an intruder would."""

from typing import TYPE_CHECKING

from equipoise.ground.lazy_exports import export_lazily

if TYPE_CHECKING:
    from equipoise.attacks._informed.average_releases import averaged
    from equipoise.attacks.inference import Inference
    from equipoise.attacks.informed import Informed
    from equipoise.attacks.interval import Interval
    from equipoise.attacks.linkage import Linkage
    from equipoise.attacks.nearest import Nearest
    from equipoise.attacks.singling_out import SinglingOut

__all__ = ["Inference", "Informed", "Interval", "Linkage", "Nearest", "SinglingOut", "averaged"]

export_lazily(__name__, averaged="equipoise.attacks._informed.average_releases")
