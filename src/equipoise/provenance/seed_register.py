"""Register of seeds: one draw per data asset, stored and reused, so that repeated releases cannot be averaged.

Two independent draws of the same file would expose its uniques almost surely. The register keeps, for each asset, the
seed and the random masks of its first release; later releases of the asset reuse the seed and may not change the masks.
It also lists the released tables of the asset, whose cells are in a private folder beside it.
"""

import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from equipoise.data.branches import in_current_words
from equipoise.data.records import Records
from equipoise.ground import system
from equipoise.ground.errors import ParameterError, RefusedError
from equipoise.provenance.fingerprint import keyed_hash
from equipoise.provenance.recipe_file import as_made
from equipoise.recipe.catalogue import to_plain
from equipoise.recipe.recipe import Recipe

FORMAT = 1


@dataclass(frozen=True)
class Register:
    """A private file (mode 600) of the seeds of earlier releases.

    >>> Register("register.json")
    Register(path='register.json', asset=None)
    """

    path: str | Path
    asset: str | None = None

    def settle(self, recipe: Recipe, records: Records) -> Recipe:
        """The recipe with the seed of the asset's first release; refused when it masks differently."""
        if recipe.coarsens:
            return recipe
        book = self._read()
        entry = book["assets"].get(self._name(book["key"], records))
        if entry is None:
            return recipe
        if _in_current_words(entry["masks"]) != _masks(recipe, records):
            raise RefusedError(
                "This data was released before with other masks or parameters: the two releases could be compared to "
                "find who moved. Use those of the first release."
            )
        return replace(recipe, seed=int(entry["seed"]))

    def seed(self, records: Records) -> int | None:
        """The seed of the asset's first random release, which a search must reuse; None before it."""
        book = self._read()
        entry = book["assets"].get(self._name(book["key"], records)) if book["assets"] else None
        return None if entry is None else int(entry["seed"])

    def record(self, recipe: Recipe, records: Records) -> None:
        """Store the seed and the masks of a release that has a random mask."""
        if recipe.coarsens:
            return
        book = self._read()
        book["assets"][self._name(book["key"], records)] = {"seed": str(recipe.seed), "masks": _masks(recipe, records)}
        self._write(book)

    def tables(self, records: Records) -> list[dict[str, Any]]:
        """Entries of the released tables of the asset."""
        book = self._read()
        entries = book.get("tables", {}).get(self._name(book["key"], records), [])
        return [dict(entry) for entry in entries]

    def record_table(self, records: Records, entry: dict[str, Any]) -> None:
        """Store the entry of a table, once."""
        book = self._read()
        entries = book.setdefault("tables", {}).setdefault(self._name(book["key"], records), [])
        if entry not in entries:
            entries.append(entry)
            self._write(book)

    def table_seed(self, records: Records) -> int | None:
        """The seed of all perturbed tables of the asset; None before the first."""
        book = self._read()
        seed = book.get("table_seeds", {}).get(self._name(book["key"], records))
        return None if seed is None else int(seed)

    def keep_table_seed(self, records: Records, seed: int) -> None:
        """Store the seed of the first table of the asset."""
        book = self._read()
        seeds = book.setdefault("table_seeds", {})
        if seeds.setdefault(self._name(book["key"], records), str(seed)) == str(seed):
            self._write(book)

    @property
    def shelf(self) -> Path:
        """The private folder beside the register with the cells of tables."""
        return Path(self.path).with_name(f"{Path(self.path).name}.tables")

    def new_shelf(self) -> Path:
        """A new folder to fill; `shelve` moves it to its name."""
        if not self.shelf.is_dir():
            system.make_folder(self.shelf, private=True)
        stage = self.shelf / f".{secrets.token_hex(4)}"
        system.make_folder(stage, private=True)
        return stage

    def shelve(self, stage: Path, name: str) -> None:
        """Move a filled folder to its name; an existing one stays."""
        if (self.shelf / name).is_dir():
            system.remove_folder(stage)
            return
        for file in stage.iterdir():
            system.restrict(file)
        system.move(stage, self.shelf / name)

    def _name(self, key: str, records: Records) -> str:
        """The asset's name in the register: a keyed hash of its name or content."""
        secret = bytes.fromhex(key)
        if self.asset:
            return hmac.new(secret, self.asset.encode(), hashlib.sha256).hexdigest()
        name = keyed_hash(records, secret)
        if name is None:
            raise ParameterError("Data on this engine has no fingerprint: name the asset for the register.")
        return name

    def _read(self) -> dict[str, Any]:
        path = Path(self.path)
        if not path.exists():
            return {"format": FORMAT, "key": secrets.token_hex(32), "assets": {}}
        try:
            book: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            book = {}
        if not isinstance(book, dict) or book.get("format") != FORMAT or not {"key", "assets"} <= set(book):
            raise ParameterError(f"{str(path)!r} is not a register of releases.")
        return book

    def _write(self, book: dict[str, Any]) -> None:
        path = Path(self.path)
        stage = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        system.write(stage, json.dumps(book, indent=2), private=True)
        system.move(stage, path)


MASKING_ROLES = ("keys", "id", "household", "weight", "hierarchies", "missing")
"""The roles that decide, beside the masks and the seed, how records are masked."""


def _masks(recipe: Recipe, records: Records) -> list[dict[str, Any]]:
    """The masks as in policy files, and the roles they depend on."""
    roles = {name: value for name, value in records.roles.to_plain().items() if name in MASKING_ROLES}
    plain = [roles, *(to_plain(mask) for mask in recipe.masks)]
    return json.loads(json.dumps(plain, default=str))


def _in_current_words(masks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What was done, as this version writes it: an older one had other words for hierarchies and fewer parameters."""
    roles, *others = masks
    trees = {
        column: [in_current_words(table) for table in tree] for column, tree in roles.get("hierarchies", {}).items()
    }
    return [{**roles, **({"hierarchies": trees} if trees else {})}, *(as_made(mask["use"], mask) for mask in others)]
