"""Score what a user of the data still has."""

from equipoise.utility.changed import Changed
from equipoise.utility.entropy import Entropy
from equipoise.utility.pram_adjust import pram_adjust
from equipoise.utility.variance_inflation import VarianceInflation

__all__ = ["Changed", "Entropy", "VarianceInflation", "pram_adjust"]
