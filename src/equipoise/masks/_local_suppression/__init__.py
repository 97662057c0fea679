"""Local suppression on arrays: which values of which records to blank so that every class is large enough."""

from equipoise.masks._local_suppression.exact import excess
from equipoise.masks._local_suppression.problem import FREE, Demand, Problem
from equipoise.masks._local_suppression.solve import Answer, blank

__all__ = ["FREE", "Answer", "Demand", "Problem", "blank", "excess"]
