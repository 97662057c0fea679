"""Recipe file of a release, in its private folder: masks, measures, the number of the draw."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equipoise.ground.errors import DataError
from equipoise.methods.method import Mask
from equipoise.recipe.catalogue import build, to_plain
from equipoise.recipe.recipe import Recipe

FORMAT = 1
RECIPE, SCRIPT_NAME = "recipe.json", "replay.py"
SCRIPT = '''"""Makes this release again: python replay.py NEW_FOLDER [ORIGINAL_FILE]

Reads policy.toml, recipe.json and seed.json beside it, and the original file that the policy names unless one is given.
With the same versions and engine the public data comes out byte for byte, else with the same content.
"""

import sys
from pathlib import Path

import equipoise as eq

if len(sys.argv) < 2:
    sys.exit("Say where to: python replay.py NEW_FOLDER [ORIGINAL_FILE]")
made = eq.replay(Path(__file__).parent.parent, sys.argv[1], original=sys.argv[2] if len(sys.argv) > 2 else None)
print("Made again in", made.folder)
'''


@dataclass(frozen=True)
class StoredRecipe:
    """A recipe as stored in a private folder."""

    masks: tuple[Mask, ...]
    measures: tuple[str, ...]
    draw: int


def recipe_text(recipe: Recipe, measures: Iterable[str], draw: int) -> str:
    """The recipe as JSON: masks as in policy files, and the measures by the names of their scores."""
    masks = [to_plain(mask) for mask in recipe.masks]
    plain = {"format": FORMAT, "draw": draw, "masks": masks, "measures": list(measures)}
    return json.dumps(plain, indent=2, default=str) + "\n"


def read_recipe(path: Path) -> StoredRecipe:
    """The recipe from its file; refused in one sentence where it cannot be read."""
    try:
        plain: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        steps = [dict(step) for step in plain["masks"]]
        masks = [(str(step.pop("use")), step) for step in steps]
        measures, draw = tuple(map(str, plain["measures"])), int(plain["draw"])
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(f"Cannot read {str(path)!r}: it is not the recipe of a release.") from None
    return StoredRecipe(tuple(build(name, "mask", parameters) for name, parameters in masks), measures, draw)
