"""Attacks: measures that score a release by attacking it as an intruder would."""

from typing import TYPE_CHECKING

from equipoise.ground.lazy_exports import export_lazily

if TYPE_CHECKING:
    from equipoise.attacks._informed.average_releases import averaged as averaged
    from equipoise.attacks.inference import Inference as Inference
    from equipoise.attacks.informed import Informed as Informed
    from equipoise.attacks.interval import Interval as Interval
    from equipoise.attacks.linkage import Linkage as Linkage
    from equipoise.attacks.nearest import Nearest as Nearest
    from equipoise.attacks.singling_out import SinglingOut as SinglingOut

export_lazily(__name__)
