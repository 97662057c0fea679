"""Disclosure risk measures that score a release from its cells: re-identification and attribute disclosure."""

from typing import TYPE_CHECKING

from equipoise.ground.lazy_exports import export_lazily

if TYPE_CHECKING:
    from equipoise.risk.attribute_disclosure import AttributeDisclosure
    from equipoise.risk.correct_matches import CorrectMatches
    from equipoise.risk.household import Household
    from equipoise.risk.individual import Individual
    from equipoise.risk.journalist import Journalist
    from equipoise.risk.k_anonymity import KAnonymity
    from equipoise.risk.log_linear import LogLinear
    from equipoise.risk.marketer import Marketer
    from equipoise.risk.match_probability import MatchProbability
    from equipoise.risk.population_uniques import PopulationUniques
    from equipoise.risk.prosecutor import Prosecutor
    from equipoise.risk.recognisable import Recognisable
    from equipoise.risk.special_uniques import SpecialUniques
    from equipoise.risk.uniques import Uniques
    from equipoise.risk.unsafe import Unsafe
    from equipoise.risk.value_disclosure import ValueDisclosure

__all__ = [
    "AttributeDisclosure",
    "CorrectMatches",
    "Household",
    "Individual",
    "Journalist",
    "KAnonymity",
    "LogLinear",
    "Marketer",
    "MatchProbability",
    "PopulationUniques",
    "Prosecutor",
    "Recognisable",
    "SpecialUniques",
    "Uniques",
    "Unsafe",
    "ValueDisclosure",
]

export_lazily(__name__)
