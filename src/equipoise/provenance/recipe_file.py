"""Recipe file of a release, in its private folder: masks, measures and draw, or how a table is made."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from equipoise.data.hierarchy import Hierarchy
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.data.tables.ready_table import Ready
from equipoise.ground.errors import DataError, EquipoiseError
from equipoise.methods.method import Mask, Rule, label
from equipoise.recipe.catalogue import build, parse, to_plain
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


PARAMETERS_BEFORE: dict[str, dict[str, Any]] = {"local_suppress": {"guard": "wildcard"}}
"""What masks did before they had a parameter: one that was stored without it was made so."""


def as_made(use: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a stored mask, with those that an older version had no choice about.

    >>> as_made("local_suppress", {"rule": "min_count"})
    {'guard': 'wildcard', 'rule': 'min_count'}
    """
    return {**PARAMETERS_BEFORE.get(use, {}), **parameters}


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


class StoredTableLayout(Protocol):
    """What a table holds: `layout` as plain data, its hierarchies, and whether the rows are cells already."""

    @property
    def layout(self) -> dict[str, Any]: ...

    @property
    def hierarchies(self) -> Mapping[str, Hierarchy] | None: ...

    @property
    def ready(self) -> bool | Ready: ...


@dataclass(frozen=True)
class StoredTable:
    """What a private folder keeps of a table: the file and its roles, and the options that make it again."""

    path: str | None
    roles: Mapping[str, Any]
    options: Mapping[str, Any]


def table_recipe_text(
    records: Records, layout: StoredTableLayout, *, method: Any, rule: Rule | None, register: Any = None
) -> str:
    """What makes a table again, as JSON; the seed is kept apart. The `register` is that of earlier tables beside it."""
    trees = layout.hierarchies or {}
    plain = {
        "format": FORMAT,
        "path": str(Path(records.source.path).resolve()) if records.source else None,
        "roles": records.roles.to_plain(),
        "table": layout.layout,
        "hierarchies": {column: tree.to_plain() for column, tree in trees.items()},
        "ready": asdict(layout.ready) if isinstance(layout.ready, Ready) else layout.ready,
        "method": to_plain(method),
        "rule": label(rule) if isinstance(rule, Rule) else None,
        **({"register": str(Path(register.path).resolve()), "asset": register.asset} if register else {}),
    }
    return json.dumps(plain, indent=2, default=str) + "\n"


def read_recipe(path: Path) -> StoredRecipe | StoredTable:
    """The recipe from its file; refused in one sentence where it cannot be read."""
    try:
        plain: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return _table(plain) if "table" in plain else _masks(plain)
    except EquipoiseError:
        raise
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(f"Cannot read {str(path)!r}: it is not the recipe of a release.") from None


def _masks(plain: Mapping[str, Any]) -> StoredRecipe:
    measures, draw = tuple(map(str, plain["measures"])), int(plain["draw"])
    return StoredRecipe(tuple(_method(step) for step in plain["masks"]), measures, draw)


def _method(step: Mapping[str, Any]) -> Any:
    use = str(step["use"])
    return build(use, "mask", as_made(use, {name: value for name, value in step.items() if name != "use"}))


def _table(plain: Mapping[str, Any]) -> StoredTable:
    ready, trees = plain["ready"], Roles.from_plain({"hierarchies": plain["hierarchies"]}).hierarchies
    if not isinstance(ready, bool):
        columns: Any = {name: tuple(v) if isinstance(v, list) else v for name, v in ready.items()}
        ready = Ready(**columns)
    options = {
        **plain["table"], "hierarchies": trees or None, "method": _method(plain["method"]), "ready": ready,
        "rule": parse(plain["rule"], "rule") if plain["rule"] else None,
        **{name: plain[name] for name in ("register", "asset") if name in plain},
    }  # fmt: skip
    return StoredTable(plain.get("path"), plain["roles"], options)
