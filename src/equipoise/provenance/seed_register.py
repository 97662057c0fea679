"""Register of releases: who was released when, in which classes and with which draw, so that no two work together.

Two releases of the same people can be intersected (bands of 3 and of 5 years are bands of 1), averaged (independent
noise) or subtracted (tables). The register keeps of every release whose records it has and what it shows of each, as
keyed tokens; the seed of random masks, which later releases reuse; and the cells of tables. The tokens and the cells
are in a private folder beside it.
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.branches import in_current_words
from equipoise.data.records import Records
from equipoise.ground import system
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import DataError, ParameterError, RefusedError
from equipoise.ground.randomness import Draws
from equipoise.ground.whole_files import held, new_stage, write_whole
from equipoise.provenance.fingerprint import hash_of, keyed_hash
from equipoise.provenance.people_tokens import PeopleTokens, linked, true_values
from equipoise.provenance.recipe_file import as_made
from equipoise.provenance.register_entries import no_number, refuse_edited
from equipoise.recipe.catalogue import to_plain
from equipoise.recipe.recipe import Recipe

FORMAT, OLD_FORMAT = 2, 1
"""Version 1 knew an asset by a keyed hash of its file, and only random releases and tables."""
PEOPLE = "people.parquet"
"""Private file of a release: the tokens of its people, and of each value that it shows of them."""
MIN_AGREEING = 0.9
"""Agreement of people's true values from which on two columns are one under two names."""
Entry = Mapping[str, Any]


@dataclass(frozen=True, eq=False, repr=False)
class EarlierRelease:
    """An earlier release of the same people: what the register has of it, and what it shows of the records of a file.

    `table` has a row for each of its records (and one for each person with several), `places` the row of each record of
    the file, -1 where it was not released.
    """

    entry: Entry
    table: pl.DataFrame
    places: Integers

    @property
    def words(self) -> str:
        """Its name and time, for sentences."""
        time = datetime.fromisoformat(self.entry["made"])
        return f"{self.entry['title']!r} of {time.day} {time:%B %Y, %H:%M} UTC"

    @property
    def overlap(self) -> int:
        """The records of the file that it has."""
        return int((self.places >= 0).sum())

    def tokens(self, column: str, rows: Integers) -> pl.Series:
        """What it shows in a column of these records of the file; null where they were not released."""
        places = self.places[rows]
        return self.table[column].gather(pl.Series(np.where(places < 0, 0, places))).set(pl.Series(places < 0), None)

    def other_names(self, tokens: PeopleTokens) -> dict[str, str]:
        """Its columns that have another name in the file: the people in both have the same true values in them.

        With a the share of them who do and c that of two people at random, (a - c) / (1 - c) must be 0.9 (Cohen, 1960).
        Cost: O(records) for each pair of columns without a namesake.
        """
        true, own = true_values(self.table, self.entry.get("changed", ())), tokens.table
        earlier, fresh = ([c for c in x.columns if c not in y.columns] for x, y in ((true, own), (own, true)))
        both, names = self.places >= 0, dict[str, str]()
        for column in earlier:
            before = true[column].to_numpy()[self.places[both]]
            shares = {c: _agreement(before, tokens.of_column(own[c], column)[both]) for c in fresh}
            if shares and max(shares.values()) >= MIN_AGREEING:
                names[column] = max(shares, key=lambda c: shares[c])
        return names


def _agreement(one: Integers, two: Integers) -> float:
    """Cohen's kappa of two columns, with the frequencies of the first."""
    if not len(one):
        return 0.0
    chance = float(((np.unique(one, return_counts=True)[1] / len(one)) ** 2).sum())
    return float(((one == two).mean() - chance) / (1 - chance)) if chance < 1 else 0.0


@dataclass(frozen=True, eq=False, repr=False)
class RegisterView:
    """A register as it stood when a release began: the tokens of its file, and the earlier releases of these people."""

    tokens: PeopleTokens
    key: str
    names: frozenset[str]
    earlier: tuple[EarlierRelease, ...]

    @property
    def revised(self) -> bool:
        """Whether records that are told by their content alone are in no earlier table: new ones, or revised."""
        tables = (one for one in self.earlier if one.entry["kind"] == "table")
        return not self.tokens.records.roles.id and any((one.places < 0).any() for one in tables)


@dataclass(frozen=True)
class Register:
    """A private file (mode 600) of earlier releases; `asset` is the name of the data, else its people tell.

    >>> Register("register.json")
    Register(path='register.json', asset=None)
    """

    path: str | Path
    asset: str | None = None
    first_key: str = field(default_factory=lambda: secrets.token_hex(32), repr=False, compare=False)

    def settle(self, recipe: Recipe, records: Records, view: "RegisterView") -> Recipe:
        """The recipe with the seed of the first random release of these people: the same masks draw the same values."""
        if recipe.coarsens:
            return recipe
        self._refuse_other_masks(recipe, records)
        seed = self.seed(records, view)
        return recipe if seed is None else replace(recipe, seed=seed)

    def seed(self, records: Records, view: "RegisterView") -> int | None:
        """The seed of the asset's first random release, which a search must reuse; None before it."""
        seeds = [one.entry["seed"] for one in view.earlier if one.entry.get("seed")]
        old = self._old_entry(records)
        return int(seeds[0]) if seeds else int(old["seed"]) if old else None

    def releases(self, asset: str | None = None) -> tuple[Entry, ...]:
        """What the register has of every release, or of those of one asset, the oldest first."""
        self._clear_shelf()
        book = self._read()
        name = _keyed_name(book["key"], asset) if asset else None
        return tuple(one for one in book["releases"] if name in (None, one["asset"]))

    def forget(self, place: int) -> Entry:
        """Drop the release at this place of `releases`: it was never handed out."""
        if not 0 <= place < len(self.releases()):
            raise ParameterError(f"The register has {len(self.releases())} releases.")
        with self._changing() as book:
            entry: dict[str, Any] = book["releases"].pop(place)
            tables = book.get("tables", {}).get(entry["asset"], [])
            tables[:] = [table for table in tables if table != entry.get("table")]
        return entry

    def view(self, records: Records) -> "RegisterView":
        """The register as it stands before a release of these records. O(records) for each earlier release."""
        self._clear_shelf()
        book = self._read()
        tokens = PeopleTokens(records, Draws(_number(book["key"])))
        entries = [one for one in book["releases"] if self._may_be_same(book, one)]
        return RegisterView(tokens, book["key"], _names_of(book), self._overlapping(tokens, entries))

    def _may_be_same(self, book: Entry, entry: Entry) -> bool:
        return self.asset is None or entry["asset"] == _keyed_name(book["key"], self.asset)

    def _overlapping(self, tokens: PeopleTokens, entries: Sequence[Entry]) -> tuple[EarlierRelease, ...]:
        """The releases with any of these people; refused where nothing tells that of a named asset."""
        matches = [
            (entry, linked(tokens, self._people(entry), entry["bases"], entry.get("changed", ()))) for entry in entries
        ]
        if self.asset and any(match is None for _, match in matches):
            raise RefusedError(
                "Nothing was released: this asset was released before, and nothing tells which of its records are the "
                "same. Name an id or a person in the roles, as then."
            )
        releases = (EarlierRelease(entry, *match) for entry, match in matches if match is not None)
        return tuple(one for one in releases if one.overlap)

    def keep(
        self, view: "RegisterView", display: pl.DataFrame, facts: Entry, more: Mapping[str, Any] | None = None
    ) -> None:
        """Store a release: its tokens beside the register, its facts in it; the same one again is stored once.

        Where another release of these people was stored since the `view`, nothing is. `more` has the table, and the
        seed of the tables of the asset.
        """
        with self._changing() as book:
            stage = self.new_shelf()
            display.write_parquet(stage / PEOPLE)
            name = hash_of(stage / PEOPLE)
            self.shelve(stage, name)
            self._refuse_newer(book, view, name)
            asset = self._asset(book, view)
            now = datetime.now(UTC).isoformat(timespec="seconds")
            entry = {**facts, "records": display.height, "people": name, "bases": view.tokens.bases}
            same = any(one == {**one, **entry} for one in book["releases"])
            book["releases"] += [] if same else [{**entry, "asset": asset, "made": now}]
            _store(book, asset, more or {})

    def _refuse_newer(self, book: Entry, view: "RegisterView", name: str) -> None:
        newer = [one for one in book["releases"] if one["people"] not in (*view.names, name)]
        newer = [one for one in newer if self._may_be_same(book, one)]
        if book["key"] != view.key or self._overlapping(view.tokens, newer):
            raise RefusedError(
                "Nothing was released: another release was registered while this one was made. Run it again."
            )

    def _asset(self, book: Entry, view: "RegisterView") -> str:
        """Its name in the register: a keyed hash of the name, that of its people's first release, or a new one."""
        if self.asset:
            return _keyed_name(book["key"], self.asset)
        return str(view.earlier[0].entry["asset"]) if view.earlier else secrets.token_hex(32)

    def tables(self, records: Records) -> list[dict[str, Any]]:
        """Entries of the released tables of the asset."""
        tables = self._read().get("tables", {})
        return [dict(entry) for name in self._names(records) for entry in tables.get(name, ())]

    def table_seed(self, records: Records) -> int | None:
        """The seed of all perturbed tables of the asset; None before the first."""
        seeds = self._read().get("table_seeds", {})
        return next((int(seeds[name]) for name in self._names(records) if name in seeds), None)

    @property
    def shelf(self) -> Path:
        """The private folder beside the register with the cells of tables."""
        place = Path(self.path) if Path(self.path).name not in ("", "..") else system.without_links(self.path)
        if not place.name:
            raise DataError(f"{str(self.path)!r} is no file: name the register to write.")
        return place.with_name(f"{place.name}.tables")

    @contextmanager
    def shelving(self) -> Iterator[None]:
        """What is shelved within it stays when the register names it before this ends."""
        with held(Path(self.path), wait=True):
            yield

    def _clear_shelf(self) -> None:
        """Remove what the register does not name, left by a run that was killed, unless another is shelving now."""
        text = self._text()
        entries = list(self.shelf.iterdir()) if self.shelf.is_dir() else []
        if all(_shelved(entry) in text for entry in entries):
            return
        with suppress(DataError, OSError), held(Path(self.path)):
            text = self._text()
            for entry in entries:
                if _shelved(entry) not in text:
                    system.remove_folder(entry) if entry.is_dir() else entry.unlink(missing_ok=True)

    def _text(self) -> str:
        """The register as it stands, readable or not."""
        path = Path(self.path)
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""

    def new_shelf(self) -> Path:
        """A new folder to fill, while `shelving`; `shelve` moves it to its name."""
        if not self.shelf.is_dir():
            system.make_folder(self.shelf, private=True)
        stage = new_stage(Path(self.path).resolve())
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

    def _names(self, records: Records) -> tuple[str, ...]:
        """The names of the asset in the register, that of version 1 last."""
        if not Path(self.path).exists():
            return ()
        own = (_keyed_name(self._read()["key"], self.asset),) if self.asset else ()
        names = (*own, *(str(one.entry["asset"]) for one in self.view(records).earlier), self._old_name(records))
        return tuple(dict.fromkeys(name for name in names if name))

    def _old_name(self, records: Records) -> str | None:
        """The asset's name in version 1: a keyed hash of its name or of its file."""
        key = self._read()["key"]
        return _keyed_name(key, self.asset) if self.asset else keyed_hash(records, bytes.fromhex(key))

    def _old_entry(self, records: Records) -> dict[str, Any] | None:
        """Seed and masks of the first random release, as version 1 kept them."""
        assets = self._read()["assets"]
        return assets.get(self._old_name(records)) if assets else None

    def _refuse_other_masks(self, recipe: Recipe, records: Records) -> None:
        """What version 1 kept does not show who has which value: only the same masks have the same."""
        entry = self._old_entry(records)
        if entry is not None and _in_current_words(entry["masks"]) != _masks(recipe, records):
            raise RefusedError(
                "This data was released before with other masks or parameters: the two releases could be compared to "
                "find who moved. Use those of the first release."
            )

    def _people(self, entry: Entry) -> pl.DataFrame:
        path = self.shelf / str(entry["people"]) / PEOPLE
        if not path.is_file() or hash_of(path) != entry["people"]:
            raise DataError(
                "The register names an earlier release whose tokens are not beside it any more, or were changed."
            )
        return pl.read_parquet(path)

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        """The register, read, changed and written while no other process does."""
        with held(Path(self.path), wait=True) as path:
            book = self._read()
            yield book
            write_whole(path, json.dumps({**book, "format": FORMAT}, indent=2))
            self._clear_shelf()

    def _read(self) -> dict[str, Any]:
        path = Path(self.path)
        if not path.exists():
            return {"format": FORMAT, "key": self.first_key, "assets": {}, "releases": []}
        try:
            book: dict[str, Any] = json.loads(system.stored(path).read_text(encoding="utf-8"), parse_constant=no_number)
        except (OSError, ValueError):
            book = {}
        formats = (FORMAT, OLD_FORMAT)
        if not isinstance(book, dict) or book.get("format") not in formats or not {"key", "assets"} <= set(book):
            raise ParameterError(f"{str(path)!r} is not a register of releases.")
        refuse_edited(book, str(path))
        return {"releases": [], **book}


def _shelved(folder: Path) -> str:
    """What the register calls a folder of the shelf: the hash that its name begins with."""
    return folder.name.partition("-")[0]


def _number(key: str) -> int:
    """The seed of the tokens."""
    return int.from_bytes(bytes.fromhex(key)[:16])


def _names_of(book: Entry) -> frozenset[str]:
    return frozenset(str(one["people"]) for one in book["releases"])


def _keyed_name(key: str, asset: str) -> str:
    return hmac.new(bytes.fromhex(key), asset.encode(), hashlib.sha256).hexdigest()


def _store(book: dict[str, Any], asset: str, more: Mapping[str, Any]) -> None:
    """Keep the table of an asset, once, and the seed of its first."""
    if "table" in more:
        entries = book.setdefault("tables", {}).setdefault(asset, [])
        entries += [] if more["table"] in entries else [more["table"]]
        book.setdefault("table_seeds", {}).setdefault(asset, str(more["seed"]))


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
