"""Disclosure risk measures that score a release from its cells: re-identification and attribute disclosure."""

from typing import TYPE_CHECKING

from equipoise.ground.lazy_exports import export_lazily

if TYPE_CHECKING:
    from equipoise.risk.attribute_disclosure import AttributeDisclosure as AttributeDisclosure
    from equipoise.risk.composition import Composition as Composition
    from equipoise.risk.copies import Copies as Copies
    from equipoise.risk.correct_matches import CorrectMatches as CorrectMatches
    from equipoise.risk.household import Household as Household
    from equipoise.risk.individual import Individual as Individual
    from equipoise.risk.journalist import Journalist as Journalist
    from equipoise.risk.k_anonymity import KAnonymity as KAnonymity
    from equipoise.risk.known_within import KnownWithin as KnownWithin
    from equipoise.risk.log_linear import LogLinear as LogLinear
    from equipoise.risk.marketer import Marketer as Marketer
    from equipoise.risk.match_probability import MatchProbability as MatchProbability
    from equipoise.risk.population_uniques import PopulationUniques as PopulationUniques
    from equipoise.risk.prosecutor import Prosecutor as Prosecutor
    from equipoise.risk.recognisable import Recognisable as Recognisable
    from equipoise.risk.revealing_columns import RevealingColumns as RevealingColumns
    from equipoise.risk.special_uniques import SpecialUniques as SpecialUniques
    from equipoise.risk.uniques import Uniques as Uniques
    from equipoise.risk.unsafe import Unsafe as Unsafe
    from equipoise.risk.value_disclosure import ValueDisclosure as ValueDisclosure

export_lazily(__name__)
