"""Options that verbs share, and what they stand for: roles, hierarchies, limits."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import or_
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from equipoise.attacks import averaged
from equipoise.core.errors import DataError, EquipoiseError, ParameterError, RolesError, hint
from equipoise.core.hierarchy import Hierarchy
from equipoise.core.levels import Part
from equipoise.core.method import Measure, label
from equipoise.core.records import Records
from equipoise.core.roles import Roles
from equipoise.doors.cli.longhand import split
from equipoise.files import FORMATS, read
from equipoise.flow.catalogue import family, methods, parse
from equipoise.flow.people import in_step
from equipoise.flow.policy import Policy
from equipoise.flow.reopen import opened as opened_as
from equipoise.flow.reopen import reopen

ROLES, READING, OUTPUT = "Roles of the columns", "Reading a CSV file", "Output"
MANY = ("keys", "sensitive", "numeric", "domain", "direct")
SINGLE = ("weight", "household", "id", "sample")
Names = list[str] | None


def _role(text: str, metavar: str = "COLUMNS", panel: str = ROLES) -> Any:
    return typer.Option(help=text, metavar=metavar, rich_help_panel=panel, show_default=False)


File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="The data: CSV, Parquet, Arrow, Excel, SPSS, Stata, SAS, R.", show_default=False
    ),
]
PolicyFile = Annotated[
    Path,
    typer.Argument(metavar="POLICY.toml", help="What to read, what to try, what must hold.", show_default=False),
]
Keys = Annotated[Names, _role("What an intruder may know of a person: age,sex,region. Commas, or repeat the option.")]
Sensitive = Annotated[Names, _role("What nobody may learn about a person.")]
Numeric = Annotated[Names, _role("Numbers that users analyse.")]
Weight = Annotated[str | None, _role("How many people of the population a record stands for.", "COLUMN")]
Household = Annotated[str | None, _role("Which records live together.", "COLUMN")]
Domain = Annotated[Names, _role("Areas or groups for which users make tables.")]
Id = Annotated[str | None, _role("The number of the record. It is never released.", "COLUMN")]
RecordId = Annotated[str | None, _role("The number of the record, where both files have it.", "COLUMN")]
Direct = Annotated[Names, _role("Columns that say who it is: names, addresses. They are never released.")]
Trees = Annotated[
    Names,
    _role(
        "How a column may be coarsened: age=widths:5,10 · age=breaks:18,65 · postcode=prefix:3,2 · "
        "born=dates:month,year · region=csv:FILE or hrc:FILE. Twice for one column: alternatives that need not nest.",
        "COLUMN=KIND:...",
    ),
]
RolesFile = Annotated[
    Path | None, _role("A TOML file with all of these, also under \\[roles]; options override it.", "ROLES.toml")
]
Delimiter = Annotated[str | None, _role("Detected when not given.", "CHARACTER", READING)]
Encoding = Annotated[str | None, _role("utf-8, cp1252, utf-16 ...; detected when not given.", "NAME", READING)]
Decimal = Annotated[str | None, _role("Detected when not given.", ". or ,", READING)]
Out = Annotated[Path, typer.Option(help="The release folder to make.", metavar="DIR", show_default=False)]
Format = Annotated[
    str | None,
    typer.Option(help=f"{', '.join(FORMATS)}: that of the input when not given.", metavar="NAME", show_default=False),
]
Allow = Annotated[
    Names,
    typer.Option(
        help="Columns to release though they look like direct identifiers.", metavar="COLUMNS", show_default=False
    ),
]
Register = Annotated[
    Path | None,
    typer.Option(
        help="The private file that keeps the seeds of random masks, one per data asset.", metavar="FILE",
        show_default=False,
    ),
]  # fmt: skip
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier run wrote there.", metavar=" ")]
AsJson = Annotated[
    bool,
    typer.Option("--json", help='One JSON object on stdout, also when it fails: {"error", "exit_code"}.', metavar=" "),
]


def opened(file: Path, options: Mapping[str, Any]) -> Records:
    """The file with the roles and the reading options that were given."""
    told = {name: options[name] for name in ("delimiter", "encoding", "decimal")}
    return read(file, roles(options), **told)


def roles(options: Mapping[str, Any], *, keys_needed: bool = True) -> Roles:
    """Roles from options, over those of the roles file."""
    known = Roles.from_toml(options["roles"]) if options["roles"] else Roles()
    given: dict[str, Any] = {name: _names(options[name]) for name in MANY if options.get(name)}
    given |= {name: options[name] for name in ("weight", "household", "id") if options.get(name)}
    found = replace(known, **given, hierarchies={**known.hierarchies, **hierarchies(options["hierarchy"] or ())})
    if keys_needed and not found.keys and not options.get("mask"):
        raise RolesError("No keys were named: say which columns an intruder may know with --keys, before any --mask.")
    return found


def _names(given: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for text in given for name in split(text))


KINDS: dict[str, Callable[[str], Hierarchy]] = {
    "widths": lambda text: Hierarchy.intervals([float(w) for w in split(text)]),
    "breaks": lambda text: Hierarchy.breaks([float(b) for b in split(text)]),
    "prefix": lambda text: Hierarchy.prefix(*(int(n) for n in split(text))),
    "dates": lambda text: Hierarchy.dates(*cast(list[Part], split(text))),
    "csv": Hierarchy.from_csv,
    "hrc": Hierarchy.from_hrc,
}


def hierarchies(given: Sequence[str]) -> dict[str, Hierarchy]:
    """Each column's hierarchy; several for one column are its branches."""
    found: dict[str, Hierarchy] = {}
    for text in given:
        column, tree = hierarchy(text)
        found[column] = or_(found[column], tree) if column in found else tree
    return found


def hierarchy(text: str) -> tuple[str, Hierarchy]:
    """A column and its hierarchy from 'age=widths:5,10'.

    >>> column, tree = hierarchy("age=widths:5,10")
    >>> column, [level.name for level in tree.levels]
    ('age', ['original', '5', '10'])
    """
    column, _, rest = text.partition("=")
    kind, _, inside = rest.partition(":")
    if not column or not inside:
        raise ParameterError(f"Cannot read the hierarchy {text!r}: write it like age=widths:5,10.")
    if kind not in KINDS:
        raise ParameterError(f"No hierarchy kind {kind!r} for {column!r}.{hint(kind, list(KINDS))}")
    try:
        return column, KINDS[kind](inside)
    except EquipoiseError:
        raise
    except ValueError:
        raise ParameterError(f"Cannot read the hierarchy {text!r}: {kind} takes numbers, like 5,10.") from None


def limits(given: Sequence[str], allow: Sequence[str] = ()) -> Policy:
    """A policy from limits like 'uniques < 0.02'; several on one score must all hold.

    >>> limits(["uniques:3 < 2%", "entropy > 7.5"]).limits
    {'uniques(k=3)': '< 2%', 'entropy': '> 7.5'}
    """
    found: dict[str, str] = {}
    for text in given:
        name, bound = re.fullmatch(r"([^<>]*)(.*)", text.strip(), re.DOTALL).groups()  # type: ignore[union-attr]
        if not name.strip() or not bound:
            raise ParameterError(f"Cannot read the limit {text!r}: write it like 'uniques < 0.02'.")
        score = label(parse(name, "measure"))
        found[score] = f"{found[score]} and {bound.strip()}" if score in found else bound.strip()
    return Policy(found, allow=_names(allow))


@dataclass(frozen=True)
class Files:
    """Two files to compare, and what an intruder knows."""

    released: Records
    original: Records
    known: tuple[str, ...]


def attacked(released: Sequence[Path], against: Path, options: Mapping[str, Any]) -> Files:
    """The released file and the intruder's, each with the roles of the columns that it has."""
    told = {name: options[name] for name in ("delimiter", "encoding", "decimal")}
    filed = Roles.from_toml(options["roles"]) if options["roles"] else Roles()
    known = _names(options["known"] or ()) or filed.keys
    if not known:
        raise RolesError("Nothing is known: say which columns an intruder knows with --known age,sex,region.")
    given: dict[str, Any] = {name: _names(options[name]) for name in ("sensitive", "numeric") if options[name]}
    given |= {"id": options["id"]} if options["id"] else {}
    original = opened_as(against, Roles(domain=known, **given), **told)
    trees = {**filed.hierarchies, **hierarchies(options["hierarchy"] or ())}
    original = replace(original, roles=_fitting(replace(filed, **given, hierarchies=trees), original))
    original.check()
    found = [reopen(path, Roles(domain=known), **({} if path.is_dir() else told)) for path in released]
    return Files(one_of([_with_id(file, original.roles.id) for file in found]), original, known)


def _with_id(records: Records, name: str | None) -> Records:
    return replace(records, roles=replace(records.roles, id=name)) if name in records.schema() else records


def one_of(copies: Sequence[Records]) -> Records:
    """The released file; several noisy copies of it are one file of their means."""
    if len(copies) == 1:
        return copies[0]
    if not all(copy.roles.id or in_step(copy, copies[0]) for copy in copies):
        raise DataError(
            "The released files have no id in common and their rows do not go together: they cannot be averaged."
        )
    return averaged(copies)


def _fitting(roles: Roles, records: Records) -> Roles:
    """The roles of columns that a file has; a register need not have those of a survey."""
    schema = records.schema()
    several = {name: tuple(c for c in getattr(roles, name) if c in schema) for name in MANY}
    single = {name: c if (c := getattr(roles, name)) in schema else None for name in SINGLE}
    trees = {c: tree for c, tree in roles.hierarchies.items() if c in schema}
    return replace(roles, **several, **single, hierarchies=trees)  # type: ignore[arg-type]


def attack_named(text: str) -> Measure:
    """An attack by its name and fields."""
    found: Measure = parse(text, "measure")
    if family(type(found)) != "attacks":
        names = [name.replace("_", "-") for name, kind in methods("measure").items() if family(kind) == "attacks"]
        raise ParameterError(
            f"{text.partition(':')[0].partition('(')[0]!r} is no attack. There are: {', '.join(names)}."
        )
    return found
