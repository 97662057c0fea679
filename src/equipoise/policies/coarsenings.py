"""All coarsenings: one recipe for each combination of hierarchy levels."""

from itertools import product
from math import prod

from equipoise.data.levels import ORIGINAL
from equipoise.data.records import Records
from equipoise.ground.errors import InfeasibleError, RolesError
from equipoise.masks import Recode
from equipoise.recipe.recipe import Recipe

MAX_COARSENINGS = 1_000_000


def coarsenings(records: Records) -> tuple[Recipe, ...]:
    """A recipe for every combination of the levels that the keys' hierarchies allow.

    The order is such that neighbours share their first masks, so that `sweep` rolls each up from the one before.
    """
    trees = {key: records.roles.hierarchies[key] for key in records.roles.keys if key in records.roles.hierarchies}
    if not trees:
        raise RolesError("No key has a hierarchy, so there is nothing to coarsen: give hierarchies in the roles.")
    size = prod(len(tree.allowed) for tree in trees.values())
    if size > MAX_COARSENINGS:
        raise InfeasibleError(f"{size:,} combinations of levels are too many to try all (at most {MAX_COARSENINGS:,}).")
    choices = [
        [None if level.name == ORIGINAL else Recode(key, level.name) for level in tree.allowed]
        for key, tree in trees.items()
    ]
    return tuple(Recipe(tuple(m for m in chosen if m is not None)) for chosen in product(*choices))
