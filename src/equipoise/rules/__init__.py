"""Which cells are unsafe."""

from equipoise.rules.doctor import compare, counterexample
from equipoise.rules.dominance import Dominance
from equipoise.rules.expected_loss import ExpectedLoss
from equipoise.rules.min_count import MinCount
from equipoise.rules.p_percent import PPercent
from equipoise.rules.prior_posterior import PriorPosterior
from equipoise.rules.request import Request
from equipoise.rules.zero import Zero

__all__ = [
    "Dominance",
    "ExpectedLoss",
    "MinCount",
    "PPercent",
    "PriorPosterior",
    "Request",
    "Zero",
    "compare",
    "counterexample",
]
