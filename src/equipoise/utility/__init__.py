"""Score what a user of the data still has."""

from equipoise.utility.entropy import Entropy

__all__ = ["Entropy"]
