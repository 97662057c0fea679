"""Score a release by trying to break it."""

from equipoise.attacks.interval import Interval
from equipoise.attacks.linkage import Linkage
from equipoise.attacks.nearest import Nearest

__all__ = ["Interval", "Linkage", "Nearest"]
