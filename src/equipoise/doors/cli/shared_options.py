"""Options that verbs share, and what they stand for: roles, hierarchies, limits."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import or_
from pathlib import Path
from typing import Annotated, Any, get_args

from equipoise import attacks
from equipoise.data.branches import BRANCHES, OLD_KINDS
from equipoise.data.hierarchy import FILE_KINDS, Hierarchy, kind_fields
from equipoise.data.levels import Style
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.doors.cli.declared_options import argument as argument
from equipoise.doors.cli.declared_options import option as option
from equipoise.doors.cli.declared_options import switch as switch
from equipoise.doors.cli.method_options import split
from equipoise.files import KNOWN, format_of, read
from equipoise.ground.errors import DataError, ParameterError, RolesError, hint
from equipoise.ground.system import shell_word
from equipoise.intrusion.who_is_who import in_step
from equipoise.methods.method import Measure, label
from equipoise.policies.policy import Policy
from equipoise.recipe.catalogue import family, methods, parse
from equipoise.recipe.catalogue import typed as typed_value
from equipoise.releases import opened as opened_as
from equipoise.releases import reopen

ROLES, READING = "Roles of the columns", "Reading the data"
MANY = ("keys", "sensitive", "numeric", "domain", "direct")
SINGLE = ("weight", "household", "person", "id", "sample")
ARGUS = (*KNOWN["asc"].suffixes, *KNOWN["tab"].suffixes)
"""Files whose metadata tells the roles of their columns."""
Names = list[str] | None
STYLES = get_args(Style)


def _role(text: str, metavar: str = "COLUMNS") -> Any:
    return option(text, metavar, ROLES)


FILE = "The data: CSV, Parquet, Arrow, Excel, SPSS, Stata, SAS, R, tau-ARGUS; a database, with --query."
File = Annotated[Path | None, argument("FILE", FILE)]
PolicyFile = Annotated[Path, argument("POLICY.toml", "What to read, what to try, what must hold.")]
Keys = Annotated[Names, _role("What an intruder may know of a person: age,sex,region. Commas, or repeat the option.")]
Sensitive = Annotated[Names, _role("What nobody may learn about a person.")]
Numeric = Annotated[Names, _role("Numbers that users analyse.")]
Weight = Annotated[str | None, _role("How many people of the population a record stands for.", "COLUMN")]
Household = Annotated[str | None, _role("Which records live together.", "COLUMN")]
Person = Annotated[str | None, _role("Whose record it is, where people have several: classes count people.", "COLUMN")]
Domain = Annotated[Names, _role("Areas or groups for which users make tables.")]
Id = Annotated[str | None, _role("The number of the record. It is never released.", "COLUMN")]
RecordId = Annotated[str | None, _role("The number of the record, where both files have it.", "COLUMN")]
Direct = Annotated[Names, _role("Columns that say who it is: names, addresses. They are never released.")]
Trees = Annotated[
    Names,
    _role(
        "How a column may be coarsened: age=intervals:5,10 · age=breaks:18,65 · postcode=prefix:3,2 · "
        "born=dates:month,year · region=csv:FILE or hrc:FILE. Other fields by name: age=intervals:5,10,top=80. Twice "
        "for one column: alternatives that need not nest.",
        "COLUMN=KIND:...",
    ),
]
RolesFile = Annotated[
    Path | None, _role("A TOML file with all of these, also under \\[roles]; options override it.", "ROLES.toml")
]
Delimiter = Annotated[str | None, option("Of a CSV file; detected when not given.", "CHARACTER", READING)]
Encoding = Annotated[str | None, option("utf-8, cp1252, utf-16 ...; detected when not given.", "NAME", READING)]
Decimal = Annotated[str | None, option("Of a CSV file; detected when not given.", ". or ,", READING)]
Thousands = Annotated[
    str | None, option("Between thousands in a CSV file (1.234,56); . and , are detected.", "MARK", READING)
]
MissingCodes = Annotated[
    str | None, option("Values that mean missing wherever they stand: -9,unknown", "CODES", READING)
]
SkipRows = Annotated[int | None, option("Rows above the column names, in CSV and Excel.", "NUMBER", READING)]
HeaderRows = Annotated[int | None, option("Rows that hold the column names, joined; 1.", "NUMBER", READING)]
Sheet = Annotated[str | None, option("Of an Excel workbook; the first when not given.", "NAME", READING)]
Metadata = Annotated[
    Path | None, option("The .rda file of tau-ARGUS microdata, when it is not the one beside it.", "FILE.rda", READING)
]
Query = Annotated[
    str | None,
    option("A SELECT statement: its answer is the data. FILE or --database says where; else on files.", "SQL", READING),
]
Database = Annotated[
    str | None,
    option("Where --query asks, in place of FILE: a DuckDB or SQLite file, postgres://...", "ADDRESS", READING),
]
Out = Annotated[Path, option("The release folder to make.", "DIR")]
Allow = Annotated[Names, option("Columns to release though they look like direct identifiers.", "COLUMNS")]
Overwrite = Annotated[bool, switch("--overwrite", "Replace what an earlier run wrote there.")]
AsJson = Annotated[bool, switch("--json", 'One JSON object on stdout, also when it fails: {"error", "exit_code"}.')]

FORMAT = {
    "delimiter": Delimiter, "encoding": Encoding, "decimal": Decimal, "thousands": Thousands,
    "missing_codes": MissingCodes, "skip_rows": SkipRows, "header_rows": HeaderRows, "sheet": Sheet,
    "metadata": Metadata,
}  # fmt: skip
"""How a file is read."""
SOURCE = {**FORMAT, "query": Query, "database": Database}
"""How a file or the answer of a query is read."""
READ = {"hierarchy": Trees, "roles": RolesFile, **SOURCE}
"""How data is read, with the roles of its columns."""
PEOPLE = {
    "keys": Keys, "sensitive": Sensitive, "numeric": Numeric, "weight": Weight, "household": Household,
    "person": Person, "domain": Domain, "id": Id,
}  # fmt: skip
"""The roles of columns in a file of people."""


def opened(file: Path | None, options: Mapping[str, Any], *, keys_needed: bool = True) -> Records:
    """The file, or the answer of the query, with the roles and the reading options that were given.

    Roles that tau-ARGUS metadata tells hold where there is no roles file; options override them.
    """
    source, reading = source_of(file, options)
    if not isinstance(source, Path) or source.suffix.lower() not in ARGUS or options["roles"]:
        return read(source, roles(options, keys_needed=keys_needed), **reading)
    records = read(source, **reading)
    records = replace(records, roles=roles(options, keys_needed=keys_needed, file_roles=records.roles))
    records.check()
    return records


def source_of(
    file: Path | None, options: Mapping[str, Any], missing: str = "argument 'FILE'", name: str = "FILE"
) -> tuple[Path | str, dict[str, Any]]:
    """What to read, and how: a file, or a query and its database."""
    reading = {name: options[name] for name in FORMAT}
    query, database = options["query"], options["database"]
    if file is not None and database:
        raise ParameterError(f"{name} and --database both say where the data is: name one of them.")
    if query:
        return query, {**reading, "database": database or (":memory:" if file is None else str(file))}
    if database:
        raise ParameterError("--database is for --query: the SELECT statement whose answer is the data.")
    if file is None:
        raise ParameterError(f"Missing {missing}: name the data, or ask for it with --query.")
    return file, reading


def typed(file: Path | None, options: Mapping[str, Any]) -> str:
    """Where the data is, as it stands on the command line."""
    place = [shell_word(file)] if file else []
    return " ".join([*place, *(f"--{name} ..." for name in ("query", "database") if options[name])])


def data_path(file: Path | None) -> Path:
    """The data as answers name it; the address of a database may hold a password."""
    return file or Path("query")


def roles(options: Mapping[str, Any], *, keys_needed: bool = True, file_roles: Roles | None = None) -> Roles:
    """Roles from options, over those of the roles file, or those the data came with."""
    base = Roles.from_toml(options["roles"]) if options["roles"] else file_roles or Roles()
    fields: dict[str, Any] = {name: names(options[name]) for name in MANY if options.get(name)}
    fields |= {name: options[name] for name in ("weight", "household", "person", "id") if options.get(name)}
    combined = replace(base, **fields, hierarchies={**base.hierarchies, **hierarchies(options["hierarchy"] or ())})
    if keys_needed and not combined.keys and not options.get("mask"):
        raise RolesError("No keys were named: say which columns an intruder may know with --keys, before any --mask.")
    return combined


def names(texts: Sequence[str] | None) -> tuple[str, ...]:
    """Names between commas, in one text or several."""
    return tuple(name for text in texts or () for name in split(text))


def hierarchies(texts: Sequence[str]) -> dict[str, Hierarchy]:
    """Each column's hierarchy; several for one column are its branches."""
    trees: dict[str, Hierarchy] = {}
    for text in texts:
        column, tree = hierarchy(text)
        trees[column] = or_(trees[column], tree) if column in trees else tree
    return trees


def hierarchy(text: str) -> tuple[str, Hierarchy]:
    """A column and its hierarchy from 'age=intervals:5,10' or 'age=intervals:5,10,top=80'.

    >>> column, tree = hierarchy("age=intervals:5,10")
    >>> column, [level.name for level in tree.levels]
    ('age', ['original', '5', '10'])
    """
    column, _, rest = text.partition("=")
    kind, _, inside = rest.partition(":")
    kind = OLD_KINDS.get(kind, kind)
    if not column or not inside:
        raise ParameterError(f"Cannot read the hierarchy {text!r}: write it like age=intervals:5,10.")
    if kind not in (*BRANCHES, *FILE_KINDS):
        raise ParameterError(f"No hierarchy kind {kind!r} for {column!r}.{hint(kind, [*BRANCHES, *FILE_KINDS])}")
    table = {"kind": kind, **_fields(kind, inside)}
    return column, Roles.from_plain({"hierarchies": {column: table}}).hierarchies[column]


def _fields(kind: str, text: str) -> dict[str, Any]:
    """The fields of a hierarchy: values of the first one, then others by name; ; between levels, + in a list."""
    types = kind_fields(kind)
    first, *others = re.split(rf",(?=(?:{'|'.join(types)})=)", text)
    name = next(iter(types))
    values = {name: _values(first, str(types[name]))}
    for part in others:
        name, _, value = part.partition("=")
        values[name] = value.split("+") if "tuple" in str(types[name]) and value not in STYLES else value
    return {name: _typed(value, types[name], f"{kind}: {name}") for name, value in values.items()}


def _typed(value: Any, kind: Any, what: str) -> Any:
    """Numbers and switches; words are checked by the kind of hierarchy itself."""
    return typed_value(value, kind, what) if re.search("int|float|bool", str(kind)) else value


def _values(text: str, kind: str) -> Any:
    if "tuple[tuple" in kind:
        return [split(level) for level in text.split(";")]
    return split(text) if "tuple" in kind else text


def limits(texts: Sequence[str], allow: Sequence[str] = ()) -> Policy:
    """A policy from limits like 'uniques < 0.02'; several on one score must all hold.

    >>> limits(["uniques:3 < 2%", "entropy > 7.5"]).limits
    {'uniques(k=3)': '< 2%', 'entropy': '> 7.5'}
    """
    bounds: dict[str, str] = {}
    for text in texts:
        name, bound = re.fullmatch(r"([^<>]*)(.*)", text.strip(), re.DOTALL).groups()  # type: ignore[union-attr]
        if not name.strip() or not bound:
            raise ParameterError(f"Cannot read the limit {text!r}: write it like 'uniques < 0.02'.")
        score = label(parse(name, "measure"))
        bounds[score] = f"{bounds[score]} and {bound.strip()}" if score in bounds else bound.strip()
    return Policy(bounds, allow=names(allow))


@dataclass(frozen=True)
class AttackFiles:
    """What to attack and what an intruder has and knows; a release folder may say the last two itself."""

    released: Records | Path
    original: Records | None
    known: tuple[str, ...] | None


def attacked(released: Sequence[Path], against: Path | None, options: Mapping[str, Any]) -> AttackFiles:
    """The released file and the intruder's, each with the roles of the columns that it has."""
    folder = released[0] if len(released) == 1 and released[0].is_dir() else None
    if folder and against is None and not options["query"] and (folder / "private").is_dir():
        return AttackFiles(folder, None, names(options["known"]) or None)
    source, reading = source_of(against, options, "option '--against'", "--against")
    filed = Roles.from_toml(options["roles"]) if options["roles"] else Roles()
    columns = names(options["known"]) or filed.keys
    if not columns:
        raise RolesError("Nothing is known: say which columns an intruder knows with --known age,sex,region.")
    fields: dict[str, Any] = {name: names(options[name]) for name in ("sensitive", "numeric") if options[name]}
    fields |= {"id": options["id"]} if options["id"] else {}
    original = _intruders(source, Roles(domain=columns, **fields), _left_for(source, released, reading))
    trees = {**filed.hierarchies, **hierarchies(options["hierarchy"] or ())}
    original = replace(original, roles=_fitting(replace(filed, **fields, hierarchies=trees), original))
    original.check()
    if folder:
        return AttackFiles(folder, original, columns)
    files = [reopen(path, Roles(domain=columns), **_meant_for(path, reading)) for path in released]
    return AttackFiles(one_of([_with_id(file, original.roles.id) for file in files]), original, columns)


def intruders_path(against: Path | None, files: AttackFiles) -> Path:
    """What the intruder has as answers name it: the original where the folder says it itself."""
    return Path("the original") if files.original is None else data_path(against)


def _intruders(source: Path | str, roles: Roles, reading: Mapping[str, Any]) -> Records:
    return opened_as(source, roles, **reading) if isinstance(source, Path) else read(source, roles, **reading)


def _meant_for(source: Path | str, reading: Mapping[str, Any]) -> dict[str, Any]:
    """The reading options that the format of a file takes."""
    if isinstance(source, str) or source.is_dir() or not _is_named(source):
        return {}
    return {
        name: value for name, value in reading.items() if value is not None and name in KNOWN[format_of(source)].options
    }


def _is_named(path: Path) -> bool:
    """Whether its name tells the format of a file; if not, reading it says what there is."""
    return path.name.lower().endswith(tuple(suffix for one in KNOWN.values() for suffix in one.suffixes))


def _left_for(source: Path | str, released: Sequence[Path], reading: Mapping[str, Any]) -> dict[str, Any]:
    """Those for the intruder's file: the ones it takes, and the ones no released file takes, which it will refuse."""
    own, claimed = _meant_for(source, reading), {name for path in released for name in _meant_for(path, reading)}
    return {name: value for name, value in reading.items() if name in own or name not in claimed}


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
    return attacks.averaged(copies)


def _fitting(roles: Roles, records: Records) -> Roles:
    """The roles of columns that a file has; a register need not have those of a survey."""
    schema = records.schema()
    several = {name: tuple(c for c in getattr(roles, name) if c in schema) for name in MANY}
    single = {name: c if (c := getattr(roles, name)) in schema else None for name in SINGLE}
    trees = {c: tree for c, tree in roles.hierarchies.items() if c in schema}
    return replace(roles, **several, **single, hierarchies=trees)  # type: ignore[arg-type]


def attack_named(text: str) -> Measure:
    """An attack by its name and fields."""
    attack: Measure = parse(text, "measure")
    if family(type(attack)) != "attacks":
        names = [name.replace("_", "-") for name in methods("measure", "attacks")]
        raise ParameterError(
            f"{text.partition(':')[0].partition('(')[0]!r} is no attack. There are: {', '.join(names)}."
        )
    return attack
