"""Disclosure rules: which cells are unsafe."""

from typing import TYPE_CHECKING

from equipoise.ground.lazy_exports import export_lazily

if TYPE_CHECKING:
    from equipoise.rules.any_subset import AnySubset as AnySubset
    from equipoise.rules.beta_likeness import BetaLikeness as BetaLikeness
    from equipoise.rules.closeness import Closeness as Closeness
    from equipoise.rules.delta_disclosure import DeltaDisclosure as DeltaDisclosure
    from equipoise.rules.delta_presence import DeltaPresence as DeltaPresence
    from equipoise.rules.diversity import Diversity as Diversity
    from equipoise.rules.dominance import Dominance as Dominance
    from equipoise.rules.dominance_counterexample import compare as compare
    from equipoise.rules.dominance_counterexample import counterexample as counterexample
    from equipoise.rules.expected_loss import ExpectedLoss as ExpectedLoss
    from equipoise.rules.group_disclosure import GroupDisclosure as GroupDisclosure
    from equipoise.rules.k_map import KMap as KMap
    from equipoise.rules.marked import Marked as Marked
    from equipoise.rules.min_count import MinCount as MinCount
    from equipoise.rules.p_percent import PPercent as PPercent
    from equipoise.rules.prior_posterior import PriorPosterior as PriorPosterior
    from equipoise.rules.request import Request as Request
    from equipoise.rules.zero import Zero as Zero

export_lazily(__name__)
