"""Suggest roles: what each column of a file probably is, why, and how it may be coarsened. Nothing is applied."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import polars as pl

from equipoise.data.branches import plain_branch
from equipoise.data.hierarchy import Hierarchy
from equipoise.data.labels import Labels
from equipoise.data.records import Records
from equipoise.data.roles import RESERVED_COLUMNS, Roles, write_new
from equipoise.files import read
from equipoise.ground.errors import DataError
from equipoise.ground.system import packaged
from equipoise.inspection.column_facts import Facts, facts_of, look
from equipoise.inspection.column_names import Meaning, meaning_of
from equipoise.inspection.direct_identifiers import MIN_SHAPE_VALUES, Finding, degrees, find_identifier
from equipoise.inspection.propose_hierarchies import nested

Role = Literal[
    "direct", "id", "key", "sensitive", "numeric", "weight", "household", "person", "domain", "sample", "none"
]
Confidence = Literal["high", "medium", "low"]
PLURAL_ROLES = ("key", "sensitive", "numeric", "domain", "direct")
ROLE_FIELDS: dict[Role, str] = {"key": "keys"}
ROLE_TEXTS: dict[Any, dict[str, str]] = packaged("inspection/role_words.toml")
ROLE_WORDS: dict[Role, str] = {role: ROLE_TEXTS[role]["words"] for role in get_args(Role)}
CODED_MEANINGS = ("place", "industry", "labour", "origin", "health")
"""Meanings whose numbers are codes."""
CODE_NAME_PATTERN = re.compile(r"(?i)(?:code|cod|kod|kode|codigo|código|codice)s?\d*$")
"""Names of columns that hold codes."""
MAX_AGE_YEARS = 130
"""The greatest age."""
MAX_KEY_CATEGORIES = 20
"""Distinct whole numbers up to which they are taken for codes of categories."""
MAX_KEY_SPREAD = 0.2
"""Distinct texts per record up to which they are taken for categories."""


@dataclass(frozen=True)
class Proposal:
    """One column: the role it probably has, why, how sure that is, and a hierarchy where it can be coarsened."""

    column: str
    role: Role
    reason: str
    confidence: Confidence
    hierarchy: Hierarchy | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Suggestion:
    """The proposals for a file, in the order of its columns. Made by `suggest_roles`; applied by nobody but you.

    `records` is the size of the file, `looked_at` how many of them were looked at. No value of the data is in a
    reason; a hierarchy names the frequent categories of its column.
    """

    proposals: tuple[Proposal, ...]
    records: int
    looked_at: int

    def of(self, role: Role) -> tuple[str, ...]:
        """The columns proposed for a role."""
        return tuple(p.column for p in self.proposals if p.role == role)

    @property
    def direct(self) -> tuple[str, ...]:
        """The columns proposed as direct identifiers."""
        return self.of("direct")

    @cached_property
    def roles(self) -> Roles:
        """The proposals as Roles, for you to check and to use."""
        columns_by_role: dict[str, Any] = {}
        for role in ROLE_WORDS:
            columns = self.of(role)
            if columns and role != "none":
                columns_by_role[ROLE_FIELDS.get(role, role)] = columns if role in PLURAL_ROLES else columns[0]
        trees = {p.column: p.hierarchy for p in self.proposals if p.role in ("key", "sensitive") and p.hierarchy}
        return Roles(**columns_by_role, hierarchies=trees)

    @property
    def table(self) -> pl.DataFrame:
        """A row per column: column, role, reason, confidence, and what its hierarchy does."""
        rows = [(p.column, p.role, p.reason, p.confidence, levels(p)) for p in self.proposals]
        return pl.DataFrame(rows, schema=["column", "role", "reason", "confidence", "levels"], orient="row")

    def toml(self, path: str | Path | None = None, *, overwrite: bool = False) -> str:
        """A roles file with the reasons as comments; written to `path` when given, where no file is or `overwrite`."""
        text = "\n".join([*self._head(), *self.lines(), ""])
        if path is not None:
            write_new(path, text, overwrite)
        return text

    def lines(self, under: str = "", without: Iterable[str] = ()) -> list[str]:
        """The roles as lines of TOML, `under` a table; without the hierarchies of some columns."""
        trees = {c: tree for c, tree in self.roles.hierarchies.items() if c not in set(without)}
        lines = [line for column, tree in trees.items() for line in _tree(column, tree, under)]
        return [*([f"[{under.rstrip('.')}]"] if under else []), *self._lines(), 'missing = "category"', *lines]

    def _head(self) -> list[str]:
        sample = f"{self.looked_at:,} of {self.records:,} records" if self.looked_at < self.records else "all records"
        return [
            "# Roles proposed from the names and values of the columns; nothing is applied until you name this file.",
            f"# Check every line: a proposal is not a decision. Looked at: {sample}.",
            "# Hierarchies may name frequent categories: keep this file as you keep the data.",
        ]

    def _lines(self) -> Iterable[str]:
        for role, words in ROLE_WORDS.items():
            its = [p for p in self.proposals if p.role == role]
            if its:
                yield f"\n# {words}."
                yield from _role_lines(role, its)
        yield ""


def _role_lines(role: Role, its: list[Proposal]) -> Iterable[str]:
    """The lines of one role, a column and its reason on each."""
    if role == "none":
        return (f"# {_quoted(p.column)}: {_comment(p)}" for p in its)
    if role in PLURAL_ROLES:
        return [f"{ROLE_FIELDS.get(role, role)} = [", *(f"    {_quoted(p.column)},  # {_comment(p)}" for p in its), "]"]
    return [f"{role} = {_quoted(its[0].column)}  # {_comment(its[0])}"]


def _tree(column: str, tree: Hierarchy, under: str = "") -> Iterable[str]:
    """A hierarchy as TOML, a field on each line."""
    for branch in tree.branches:
        yield f"\n[[{under}hierarchies.{_quoted(column)}]]"
        yield from (f"{name} = {_quoted(value)}" for name, value in plain_branch(branch).items())


def _quoted(value: Any) -> str:
    """A TOML value on one line: strings, numbers and lists are written as in JSON."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _comment(proposal: Proposal) -> str:
    text = f"{proposal.reason} ({proposal.confidence} confidence)"
    return "".join(c if c.isprintable() else " " for c in text)


def levels(proposal: Proposal) -> str:
    """The levels of a hierarchy, by name."""
    if proposal.hierarchy is None:
        return ""
    return ", ".join(level.name for level in proposal.hierarchy.levels[1:])


def suggest_roles(source: Any, **options: Any) -> Suggestion:
    """Propose a role for every column of a file or frame, with the reason.

    Names and labels are read in English, German, French, Spanish, Italian, Dutch, Portuguese and Polish; then come the
    type, the number of distinct values, their repetition and shape. Direct identifiers (names, e-mail addresses,
    telephone, bank and national numbers with their check digits, dates of birth, coordinates, texts that hardly
    repeat) are pointed out. `options` are those of `read` for CSV files.

    Misleads when names say nothing and codes look like amounts: read every line, confidence "low" first. Cost: at most
    100,000 records are looked at, in runs spread over the file, 2,000 distinct values of each column for its shape.

    >>> table = pl.DataFrame({"sexe": ["f", "m"] * 20, "mail": [f"p{i}@example.org" for i in range(40)]})
    >>> found = suggest_roles(table)
    >>> found.roles.keys, found.direct
    (('sexe',), ('mail',))
    >>> found.proposals[0].reason
    'named like sex (French); 2 distinct texts'
    """
    records = source if isinstance(source, Records) else read(source, **options)
    rows = records.height()
    table = look(records, rows)
    if not table.width:
        raise DataError("The data has no columns.")
    drafts = _with_places([_draft(facts_of(column), records.labels) for column in table.iter_columns()])
    return Suggestion(tuple(_settle(drafts)), rows, table.height)


@dataclass(frozen=True)
class _Draft:
    """A column with its facts and its proposal so far."""

    facts: Facts
    meaning: Meaning | None
    labelled: bool
    role: Role
    why: str
    confidence: Confidence

    def proposal(self) -> Proposal:
        codes = self.meaning is not None and self.meaning.name in CODED_MEANINGS
        tree = nested(self.facts, codes) if self.role in ("key", "sensitive", "numeric") else None
        return Proposal(self.facts.name, self.role, self.why, self.confidence, tree)


def _draft(facts: Facts, labels: Labels) -> _Draft:
    """The draft of one column, without regard to the others."""
    labels_of_column = labels.of(facts.name)
    name_meaning = meaning_of(facts.name)
    meaning = name_meaning or (meaning_of(labels_of_column.label) if labels_of_column.label else None)
    labelled = name_meaning is None and meaning is not None
    finding = find_identifier(facts, labels_of_column.label)
    role, why, confidence = _judge(facts, finding, meaning, coded=bool(labels_of_column.values), labelled=labelled)
    if role == "key" and facts.name in RESERVED_COLUMNS:
        role, why, confidence = "none", f"a key, but {facts.name!r} is a name of our cell tables: rename it", "medium"
    return _Draft(facts, meaning, labelled, role, why, confidence)


def _with_places(drafts: list[_Draft]) -> list[_Draft]:
    """The drafts, with two neighbouring columns that look like degrees marked as coordinates."""
    fine = [d.meaning is None and d.role == "numeric" and degrees(d.facts) for d in drafts]
    pair = [any(fine[i] and fine[j] for j in (i - 1, i + 1) if 0 <= j < len(fine)) for i in range(len(fine))]
    why = "looks like geographical coordinates, with its neighbour; "
    return [
        replace(d, role="direct", why=why + d.facts.words(), confidence="low") if place else d
        for d, place in zip(drafts, pair, strict=True)
    ]


Judgement = tuple[Role, str, Confidence]


def _judge(facts: Facts, finding: Finding | None, meaning: Meaning | None, *, coded: bool, labelled: bool) -> Judgement:
    """The role of a column: constant, direct identifier, by its name, or by its values."""
    if facts.kind == "other":
        return "none", "values that are not single", "high"
    if facts.distinct < 2 and not (meaning and meaning.role == "weight" and facts.numeric and facts.records):
        return "none", "one value only" if facts.distinct else "no values", "high"
    if finding and (finding.certain or finding.kind != "near-unique text"):
        sure: Confidence = "high" if finding.certain else "medium"
        how = "named" if meaning and finding.words == meaning.words else "looks"
        return "direct", f"{how} like {finding.words}; {facts.words()}", sure
    if meaning:
        tongue = f" ({meaning.language})" if meaning.language != "English" else ""
        reason = f"{'labelled' if labelled else 'named'} like {meaning.words}{tongue}; {facts.words()}"
        if judgement := _by_name(facts, meaning, coded):
            each = f", {1 / facts.share:.1f} records each" if judgement[0] in ("household", "person") else ""
            return judgement[0], reason + each, judgement[1]
    if finding:
        return "direct", f"{finding.words}; {facts.words()}", "medium"
    return _by_values(facts, coded)


def _by_name(facts: Facts, meaning: Meaning, coded: bool) -> tuple[Role, Confidence] | None:
    """The role that a meaning gives, where the values can be that."""
    amount = facts.numeric and not coded and (facts.distinct > MAX_KEY_CATEGORIES or facts.kind == "decimal")
    match meaning.role:
        case "amount":
            if amount:
                return "numeric", "high"
            if meaning.name == "quantity":
                return ("numeric", "medium") if facts.numeric else None
            return ("sensitive", "medium") if meaning.name == "income" else ("key", "low")
        case "numeric":
            return ("numeric", "high") if facts.numeric else None
        case "weight":
            return ("weight", "high") if facts.numeric and facts.range()[0] >= 0 else None
        case "sensitive":
            return ("numeric", "medium") if amount else ("sensitive", "high")
        case "key":
            return _key(facts, meaning)
        case "household" | "person" | "id":
            return _unit(facts, meaning)
        case "domain" | "sample":
            role: Role = "domain" if meaning.role == "domain" else "sample"
            return (
                (role, "medium") if facts.distinct <= max(MAX_KEY_CATEGORIES, MAX_KEY_SPREAD * facts.records) else None
            )
        case _:
            return None


def _key(facts: Facts, meaning: Meaning) -> tuple[Role, Confidence] | None:
    """The role of a column whose name says key: an age up to 130, a date, categories that repeat."""
    if meaning.name == "age":
        young = facts.kind == "text" or (facts.numeric and facts.range()[0] >= -1 and facts.range()[1] <= MAX_AGE_YEARS)
        return ("key", "high") if young else None
    if facts.kind == "decimal" and facts.distinct > MAX_KEY_CATEGORIES:
        return None
    if (
        facts.kind == "date"
        or facts.distinct <= MAX_KEY_CATEGORIES
        or facts.share <= MAX_KEY_SPREAD
        or meaning.name == "place"
    ):
        return "key", "high" if facts.share <= MAX_KEY_SPREAD else "medium"
    return None


def _unit(facts: Facts, meaning: Meaning) -> tuple[Role, Confidence] | None:
    """A number of records or of units of several records: many values, each of few records."""
    if facts.kind not in ("text", "whole"):
        return None
    if facts.unique:
        return ("household", "medium") if meaning.role == "household" and meaning.name == "cluster" else ("id", "high")
    if facts.share >= 0.02 and (
        facts.distinct > MAX_KEY_CATEGORIES or (facts.share >= MAX_KEY_SPREAD and facts.distinct > MIN_SHAPE_VALUES)
    ):
        return ("household", "high") if meaning.role == "household" else ("person", "medium")
    return None


def _by_values(facts: Facts, coded: bool) -> Judgement:
    """The role of a column without a telling name, by its values."""
    words = facts.words()
    if facts.unique and facts.records > MIN_SHAPE_VALUES and _numbering(facts):
        return "id", f"no telling name; {words}", "medium" if _counting(facts) else "low"
    if facts.kind in ("truth", "date") or coded:
        return "key", f"no telling name; {words}", "medium"
    if facts.kind == "text":
        role: Role = "key" if facts.distinct <= MAX_KEY_CATEGORIES or facts.share <= MAX_KEY_SPREAD else "none"
        return role, f"no telling name; {words}", "medium" if facts.distinct <= MAX_KEY_CATEGORIES else "low"
    if facts.kind == "whole" and not facts.unique and _years(facts):
        return "key", f"no telling name; {words}, all like years", "medium"
    few = facts.distinct <= MAX_KEY_CATEGORIES and (facts.share <= MAX_KEY_SPREAD or facts.distinct <= MIN_SHAPE_VALUES)
    if facts.kind == "whole" and few and not facts.unique:
        return "key", f"no telling name; {words}, few enough for codes of categories", "low"
    if facts.kind == "whole" and facts.share <= MAX_KEY_SPREAD and CODE_NAME_PATTERN.search(facts.name):
        return "key", f"named like codes; {words}", "low"
    if facts.kind == "whole" and facts.share <= MAX_KEY_SPREAD and _dense(facts):
        return "key", f"no telling name; {words} without gaps, as ages and codes are", "low"
    return "numeric", f"no telling name; {words}", "medium" if facts.kind == "decimal" else "low"


def _years(facts: Facts) -> bool:
    """Whether values are years: whole numbers of recent centuries, many more records than values."""
    low, high = facts.range()
    return low >= 1800 and high <= 2100 and facts.share <= MAX_KEY_SPREAD


def _dense(facts: Facts) -> bool:
    """Whether values are nearly all whole numbers of a range, none above a great age."""
    low, high = facts.range()
    return low >= 0 and high <= MAX_AGE_YEARS and facts.distinct >= 0.9 * (high - low + 1)


def _numbering(facts: Facts) -> bool:
    """Whether values may number records: texts, or whole numbers without gaps or of one length."""
    if facts.kind == "whole":
        return _counting(facts) or facts.shaped.str.len_chars().n_unique() == 1
    return facts.kind == "text"


def _counting(facts: Facts) -> bool:
    """Whether values are whole numbers without gaps."""
    if facts.kind != "whole":
        return False
    low, high = facts.range()
    return high - low + 1 == facts.records


def _settle(drafts: list[_Draft]) -> Iterable[Proposal]:
    """One id, weight, household, person and sample for the file: the surest, then the first."""
    order = {"high": 0, "medium": 1, "low": 2}
    best = {
        role: min((d for d in drafts if d.role == role), key=lambda d: (order[d.confidence], _general(d)), default=None)
        for role in ("id", "weight", "household", "person", "sample")
    }
    for draft in drafts:
        chosen = best.get(draft.role)
        if chosen is None or chosen is draft:
            yield draft.proposal()
        else:
            yield _second(draft, chosen)


def _general(draft: _Draft) -> bool:
    """Whether a weight is one of households, which comes after one of persons."""
    name = draft.facts.name.lower()
    return draft.role == "weight" and ("household" in name or "hh" in name)


def _second(draft: _Draft, chosen: _Draft) -> Proposal:
    """The role of a further id, weight, household, person or sample."""
    name, why = draft.facts.name, f"{draft.why}; the {draft.role} is {chosen.facts.name!r}"
    if draft.role == "id" and draft.facts.kind == "whole" and draft.meaning is None and not _counting(draft.facts):
        return Proposal(name, "numeric", _by_values(draft.facts, False)[1], "low", nested(draft.facts))
    if draft.role == "id":
        return Proposal(name, "direct", why, "medium")
    return Proposal(name, "none", why, "medium")
