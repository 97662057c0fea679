"""Score a release from its cells: who could be found, what could be learnt."""

from equipoise.risk.attribute_disclosure import AttributeDisclosure
from equipoise.risk.population_uniques import PopulationUniques
from equipoise.risk.uniques import Uniques

__all__ = ["AttributeDisclosure", "PopulationUniques", "Uniques"]
