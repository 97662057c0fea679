"""Local suppression on arrays: which values of which records to blank so that every class is large enough."""

from equipoise.masks._local_suppression.exact import excess
from equipoise.masks._local_suppression.identical import IdenticalBlanks, blank_identical
from equipoise.masks._local_suppression.problem import FREE, Demand, SuppressionProblem
from equipoise.masks._local_suppression.solve import Blanks, blank

__all__ = ["FREE", "Blanks", "Demand", "IdenticalBlanks", "SuppressionProblem", "blank", "blank_identical", "excess"]
