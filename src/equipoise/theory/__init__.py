"""Closed forms of risk and utility, to check the empirical risk-utility map."""

from equipoise.theory.best import Best, best
from equipoise.theory.mean import curve, mean
from equipoise.theory.point import Theory

__all__ = ["Best", "Theory", "best", "curve", "mean"]
