"""Local suppression on arrays: which values of which records to blank so that every class is large enough."""

from equipoise.core.blanking.answer import Answer, blank
from equipoise.core.blanking.own import excess
from equipoise.core.blanking.problem import FREE, Demand, Problem

__all__ = ["FREE", "Answer", "Demand", "Problem", "blank", "excess"]
