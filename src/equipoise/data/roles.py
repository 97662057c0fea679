"""Roles of the columns: keys, sensitive, numeric, weight, household, person, domain, id, sample, direct."""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, get_type_hints

import narwhals as nw

from equipoise.data.branches import BRANCHES, Branch, in_current_words, old_words
from equipoise.data.hierarchy import FILE_KINDS, Hierarchy
from equipoise.ground import system
from equipoise.ground.argument_types import fits
from equipoise.ground.errors import EquipoiseWarning, ParameterError, RolesError, hint, require_columns, shown
from equipoise.ground.whole_files import write_whole

Missing = Literal["category", "any"]
SINGLE_ROLES = ("weight", "household", "person", "id", "sample")
"""Roles of one column each, which has no other role."""
RESERVED_COLUMNS = ("n", "total")
"""Names of the columns that cell tables add; a key cannot have them."""
PRIVATE_PREFIX = "__eq_"
"""Names that begin so are those of columns of our own while we work on a file; no column of a file may have one."""


@dataclass(frozen=True)
class Roles:
    """Which columns an intruder may know (keys), what must not be learnt (sensitive), and the survey's own columns.

    `missing` says how a null key counts: "category" is a value of its own, "any" matches every value. `direct` are the
    columns that say who it is (names, addresses, national numbers): like the id they are withheld from every release.
    `household` says which records live together; `person` whose record it is where people have several (stays of a
    patient, waves of a panel): classes then count people, not records.

    >>> Roles(["sex", "age"], weight="w").keys
    ('sex', 'age')
    """

    keys: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    _: KW_ONLY
    numeric: tuple[str, ...] = ()
    weight: str | None = None
    household: str | None = None
    person: str | None = None
    domain: tuple[str, ...] = ()
    id: str | None = None
    sample: str | None = None
    direct: tuple[str, ...] = ()
    hierarchies: Mapping[str, Hierarchy] = field(default_factory=dict, hash=False)
    missing: Missing = "category"

    def __post_init__(self) -> None:
        for name in ("keys", "sensitive", "numeric", "domain", "direct"):
            object.__setattr__(self, name, names(getattr(self, name), name))
        for name in SINGLE_ROLES:
            if not isinstance(getattr(self, name), str | None):
                raise RolesError(f"The role {name!r} takes the name of one column.")
        if self.missing not in ("category", "any"):
            raise RolesError(f"missing must be 'category' or 'any', got {shown(self.missing)}.")
        if not all(isinstance(h, Hierarchy) for h in dict(self.hierarchies).values()):
            raise RolesError("hierarchies maps each column name to a Hierarchy.")
        object.__setattr__(self, "hierarchies", dict(self.hierarchies))
        self._check_exclusive()

    def _check_exclusive(self) -> None:
        alone = {name: getattr(self, name) for name in SINGLE_ROLES if getattr(self, name)}
        for name, column in alone.items():
            others = [role for role in ("keys", "sensitive", "numeric") if column in getattr(self, role)]
            others += [role for role, its in alone.items() if its == column and role != name]
            if others:
                raise RolesError(f"Column {column!r} cannot be both {name} and {others[0]}.")
        plural = {role: getattr(self, role) for role in ("keys", "sensitive", "numeric", "domain")}
        for column in self.direct:
            its = [role for role, columns in plural.items() if column in columns]
            its += [role for role, own in alone.items() if own == column]
            if its:
                raise RolesError(f"Column {column!r} cannot be both direct and {its[0]}: what is direct is withheld.")
        for column in self.keys:
            if column in RESERVED_COLUMNS:
                raise RolesError(
                    f"A key cannot be named {column!r}, the name of a column of the cell table: rename it."
                )

    def named(self) -> tuple[str, ...]:
        """Every column that has a role, once."""
        single = tuple(c for c in (getattr(self, name) for name in SINGLE_ROLES) if c)
        return tuple(
            dict.fromkeys(
                (*self.keys, *self.sensitive, *self.numeric, *self.domain, *single, *self.direct, *self.hierarchies)
            )
        )

    def check(self, schema: Mapping[str, Any]) -> None:
        """Refuse roles that do not fit the columns and their types."""
        require_columns(self.named(), schema)
        for role, columns in (("weight", (self.weight,) if self.weight else ()), ("numeric", self.numeric)):
            for column in columns:
                if not schema[column].is_numeric():
                    raise RolesError(f"Column {column!r} has the role {role} but is {schema[column]}, not numeric.")
        for column in self.keys:
            if isinstance(schema[column], nw.List | nw.Struct | nw.Array | nw.Object):
                raise RolesError(f"Column {column!r} is {schema[column]}: a key must hold single values.")

    def only(self, columns: Iterable[str]) -> "Roles":
        """The roles of these columns alone."""
        names = set(columns)
        lists = ("keys", "sensitive", "numeric", "domain", "direct")
        changes: dict[str, Any] = {role: tuple(c for c in getattr(self, role) if c in names) for role in lists}
        changes |= {role: None for role in SINGLE_ROLES if getattr(self, role) not in names}
        return replace(self, **changes, hierarchies={c: h for c, h in self.hierarchies.items() if c in names})

    def words(self, column: str) -> str:
        """The roles of a column, as their fields are named.

        >>> Roles(["age"], weight="w").words("age")
        'keys'
        """
        columns = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("hierarchies", "missing")}
        lists = {role: its if isinstance(its, tuple) else (its,) for role, its in columns.items()}
        return ", ".join(role for role, its in lists.items() if column in its)

    def without_hierarchy(self, column: str) -> "Roles":
        return replace(self, hierarchies={c: h for c, h in self.hierarchies.items() if c != column})

    def to_plain(self) -> dict[str, Any]:
        """Plain data for a TOML file; only what was given."""
        roles = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("hierarchies", "missing")}
        plain: dict[str, Any] = {k: list(v) if isinstance(v, tuple) else v for k, v in roles.items() if v}
        plain["missing"] = self.missing
        if self.hierarchies:
            plain["hierarchies"] = {column: h.to_plain() for column, h in self.hierarchies.items()}
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], folder: str | Path = ".") -> "Roles":
        """From a TOML table; hierarchy files are found relative to `folder`."""
        roles = [f.name for f in fields(cls)]
        for name in plain:
            if name not in roles:
                raise RolesError(f"No role {name!r}.{hint(name, roles)}")
        trees = plain.get("hierarchies", {})
        if not isinstance(trees, Mapping):
            raise RolesError("hierarchies must be a table: [roles.hierarchies.age].")
        hierarchies = {column: _hierarchy(tree, column, Path(folder)) for column, tree in trees.items()}
        return cls(**{k: v for k, v in plain.items() if k != "hierarchies"}, hierarchies=hierarchies)

    def to_toml(self, path: str | Path | None = None, *, overwrite: bool = False) -> str:
        """The roles as TOML; written to `path` when given, where no file is unless `overwrite`."""
        import tomli_w

        text = tomli_w.dumps(self.to_plain())
        if path is not None:
            write_new(path, text, overwrite)
        return text

    @classmethod
    def from_toml(cls, path: str | Path) -> "Roles":
        """From a TOML file, at the top level or under [roles]."""
        plain = read_toml(path)
        return cls.from_plain(plain.get("roles", plain), Path(path).parent)


def write_new(path: str | Path, text: str, overwrite: bool) -> None:
    """Write a text file where there is none; a file that is there is replaced only with `overwrite`."""
    if Path(path).exists() and not overwrite:
        raise ParameterError(f"{str(path)!r} exists already: name another file, or ask to overwrite it.")
    write_whole(Path(path), text, private=False, goal=True)


def read_toml(path: str | Path) -> dict[str, Any]:
    """Read a TOML file; an error in one sentence where it cannot be read."""
    import tomllib

    try:
        text = system.stored(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ParameterError(f"No file at {str(path)!r}.") from None
    except IsADirectoryError:
        raise ParameterError(f"{str(path)!r} is a folder, not a file.") from None
    except (OSError, UnicodeDecodeError):
        raise ParameterError(f"Cannot read {str(path)!r}: it must be UTF-8 text.") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ParameterError(f"{str(path)!r} is not valid TOML: {error}.") from None
    except ValueError:
        raise ParameterError(f"{str(path)!r} is not valid TOML: a number in it has too many digits.") from None


def _hierarchy(tree: Any, column: str, folder: Path) -> Hierarchy:
    """One table or a list of them, each a branch with its `kind`."""
    tables = tree if isinstance(tree, list) else [tree]
    branches: list[Branch] = []
    for table in tables:
        if not isinstance(table, Mapping) or "kind" not in table:
            raise ParameterError(f"The hierarchy of {column!r} needs a kind: {', '.join(BRANCHES)}, csv or hrc.")
        if notes := old_words(table):
            warnings.warn(f"The hierarchy of {column!r}: {', '.join(notes)}.", EquipoiseWarning, stacklevel=2)
        branches += _branches(in_current_words(table), column, folder)
    return Hierarchy(tuple(branches))


def _branches(table: dict[str, Any], column: str, folder: Path) -> tuple[Branch, ...]:
    """The branches of one table, its fields checked by the kind itself."""
    kind, fields = table["kind"], {k: _freeze(v) for k, v in table.items() if k != "kind"}
    try:
        if kind in FILE_KINDS:
            tree: Hierarchy = getattr(Hierarchy, kind)(folder / fields.pop("path"), **fields)
            return tree.branches
        if kind in BRANCHES:
            branch = BRANCHES[kind](**fields)
            single = {name: kind for name, kind in get_type_hints(type(branch)).items() if "tuple" not in str(kind)}
            if not all(fits(getattr(branch, name, None), kind) for name, kind in single.items() if name != "_"):
                raise TypeError
            return (branch,)
    except (TypeError, KeyError, AttributeError):
        raise ParameterError(
            f"The hierarchy of {column!r} ({kind}) has unfit fields: {', '.join(fields) or 'none'}."
        ) from None
    raise ParameterError(f"No hierarchy kind {kind!r}.{hint(str(kind), [*BRANCHES, *FILE_KINDS])}")


def _freeze(value: Any) -> Any:
    return tuple(_freeze(v) for v in value) if isinstance(value, list) else value


def names(value: str | Iterable[str] | None, role: str) -> tuple[str, ...]:
    """Column names as a tuple; one name may stand alone.

    >>> names("age", "keys"), names(["age", "sex"], "keys")
    (('age',), ('age', 'sex'))
    """
    columns = (value,) if isinstance(value, str) or not isinstance(value, Iterable | None) else tuple(value or ())
    if not all(isinstance(name, str) for name in columns):
        raise RolesError(f"The role {role!r} takes column names.")
    if len(set(columns)) < len(columns):
        raise RolesError(f"A column stands twice in the role {role!r}.")
    return columns


def beside(column: str, *ours: str) -> str:
    """The name of a column of the file in a table that has columns of our own: one underscore more where they collide.

    >>> beside("age", "risk"), beside("risk", "risk")
    ('age', 'risk_')
    """
    return beside(f"{column}_", *ours) if column in ours else column
