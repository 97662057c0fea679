"""Disclosure rules: which cells are unsafe."""

from typing import TYPE_CHECKING

from equipoise.ground.lazy_exports import export_lazily

if TYPE_CHECKING:
    from equipoise.rules.any_subset import AnySubset
    from equipoise.rules.beta_likeness import BetaLikeness
    from equipoise.rules.closeness import Closeness
    from equipoise.rules.delta_disclosure import DeltaDisclosure
    from equipoise.rules.delta_presence import DeltaPresence
    from equipoise.rules.diversity import Diversity
    from equipoise.rules.dominance import Dominance
    from equipoise.rules.dominance_counterexample import compare, counterexample
    from equipoise.rules.expected_loss import ExpectedLoss
    from equipoise.rules.k_map import KMap
    from equipoise.rules.marked import Marked
    from equipoise.rules.min_count import MinCount
    from equipoise.rules.p_percent import PPercent
    from equipoise.rules.prior_posterior import PriorPosterior
    from equipoise.rules.request import Request
    from equipoise.rules.zero import Zero

__all__ = [
    "AnySubset",
    "BetaLikeness",
    "Closeness",
    "DeltaDisclosure",
    "DeltaPresence",
    "Diversity",
    "Dominance",
    "ExpectedLoss",
    "KMap",
    "Marked",
    "MinCount",
    "PPercent",
    "PriorPosterior",
    "Request",
    "Zero",
    "compare",
    "counterexample",
]

export_lazily(__name__, compare="dominance_counterexample", counterexample="dominance_counterexample")
