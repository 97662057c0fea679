"""Score a release from its cells: who could be found, what could be learnt."""

from equipoise.risk.attribute_disclosure import AttributeDisclosure
from equipoise.risk.correct_matches import CorrectMatches
from equipoise.risk.match_probability import MatchProbability
from equipoise.risk.population_uniques import PopulationUniques
from equipoise.risk.recognisable import Recognisable
from equipoise.risk.uniques import Uniques
from equipoise.risk.value_disclosure import ValueDisclosure

__all__ = [
    "AttributeDisclosure",
    "CorrectMatches",
    "MatchProbability",
    "PopulationUniques",
    "Recognisable",
    "Uniques",
    "ValueDisclosure",
]
