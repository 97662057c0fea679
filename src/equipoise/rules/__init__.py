"""Which cells are unsafe."""

from equipoise.rules.min_count import MinCount

__all__ = ["MinCount"]
