"""Secondary cell suppression on arrays: patterns that protect, their proof, and the attacker's intervals."""

from equipoise.core.suppression.audit import Intervals, audit
from equipoise.core.suppression.pattern import Protection, Suppression, protected, suppress

__all__ = ["Intervals", "Protection", "Suppression", "audit", "protected", "suppress"]
