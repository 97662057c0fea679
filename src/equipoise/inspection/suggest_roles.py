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
from equipoise.data.levels import number_text
from equipoise.data.records import Records
from equipoise.data.roles import RESERVED_COLUMNS, Roles, write_new
from equipoise.files import read
from equipoise.ground.errors import DataError
from equipoise.ground.system import packaged
from equipoise.inspection.column_facts import Facts, facts_of, look
from equipoise.inspection.column_names import Meaning, codebook_meanings, meaning_of
from equipoise.inspection.direct_identifiers import MIN_SHAPE_VALUES, Finding, coordinates, find_identifier, strays
from equipoise.inspection.known_keys import columns_beside, following, from_columns
from equipoise.inspection.propose_hierarchies import floored, grid, nested, prefixes, years_of_birth
from equipoise.inspection.value_patterns import (
    MAX_AGE_YEARS,
    MAX_KEY_CATEGORIES,
    MAX_KEY_SPREAD,
    coded_alike,
    counting,
    dense,
    numbered_groups,
    numbering,
    with_point,
    years,
)

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
FORMATS_WITH_ROLES: tuple[str, ...] = ("deid",)
PROJECT_ROLES: tuple[Role, ...] = ("key", "sensitive", "direct")
"""Formats whose files say roles of columns, and the roles that they say."""
CODE_BANDS = Hierarchy.intervals([1, 10])
"""Levels of codes with a point: what stands before it, and its first digit."""
PLACE = Meaning("coordinates", "key", "geographical coordinates", "English")


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
    book = codebook_meanings(table.columns)
    drafts = [_draft(facts_of(c, table.height < rows), records.labels, book.get(c.name)) for c in table.iter_columns()]
    drafts = _with_birth(_with_places(drafts))
    proposals = _known_together(list(_settle(drafts)), drafts, table)
    of_project = records.roles if records.source and records.source.format in FORMATS_WITH_ROLES else None
    proposals = (_of_project(p, of_project) for p in proposals) if of_project else proposals
    return Suggestion(tuple(proposals), rows, table.height)


def _of_project(proposal: Proposal, roles: Roles) -> Proposal:
    """The proposal with the role that the project behind the file gives its column; no other becomes a key."""
    column = proposal.column
    role = next((role for role in PROJECT_ROLES if column in getattr(roles, ROLE_FIELDS.get(role, role))), None)
    tree = roles.hierarchies.get(column) or proposal.hierarchy
    if role is not None:
        return Proposal(column, role, "said by the project", "high", tree)
    return (
        replace(proposal, role="none", reason="not identifying, says the project")
        if proposal.role in PROJECT_ROLES
        else proposal
    )


def _known_together(proposals: list[Proposal], drafts: list["_Draft"], table: pl.DataFrame) -> Iterable[Proposal]:
    """The proposals with few enough keys, and hierarchies from columns that follow from them."""
    proposed = {p.column for p in proposals if p.role == "key"}
    ranked = sorted((d for d in drafts if d.facts.name in proposed), key=_rank)
    keys = {d.facts.name: d.meaning.name if d.meaning else "time" if d.facts.kind == "date" else None for d in ranked}
    follows = following(table, keys)
    beside = columns_beside(keys, follows)
    for p in proposals:
        if p.column in beside:
            yield replace(p, role="none", reason=f"{p.reason}; {beside[p.column]}")
        elif p.column in follows and (tree := from_columns(table, p.column, follows[p.column])):
            yield replace(p, hierarchy=tree)
        else:
            yield p


@dataclass(frozen=True)
class _Draft:
    """A column with its facts and its proposal so far."""

    facts: Facts
    meaning: Meaning | None
    labelled: bool
    role: Role
    why: str
    confidence: Confidence
    tree: Hierarchy | None = None

    def proposal(self) -> Proposal:
        codes = self.meaning is not None and self.meaning.name in CODED_MEANINGS
        age = self.meaning is not None and self.meaning.name == "age"
        tree = nested(self.facts, codes, age=age) if self.role in ("key", "sensitive", "numeric") else None
        tree, why = self.tree or tree, self.why
        if tree and not self.tree and self.role == "key" and self.facts.numeric:
            tree, width = floored(tree, self.facts)
            why += f"; half of the answers are rounded to {number_text(width)}: no finer is proposed" if width else ""
        return Proposal(self.facts.name, self.role, why, self.confidence, tree)


def _draft(facts: Facts, labels: Labels, in_book: Meaning | None) -> _Draft:
    """The draft of one column, without regard to the others."""
    labels_of_column = labels.of(facts.name)
    name_meaning = in_book or meaning_of(facts.name)
    meaning = name_meaning or (meaning_of(labels_of_column.label) if labels_of_column.label else None)
    labelled = name_meaning is None and meaning is not None
    finding = find_identifier(facts, labels_of_column.label, in_book)
    role, why, confidence = _judge(facts, finding, meaning, coded=bool(labels_of_column.values), labelled=labelled)
    if role != "direct" and (stray := strays(facts)):
        why += f"; {stray} values have e-mail addresses or telephone numbers in them: take them out first"
        role, confidence = "direct" if role == "none" else role, "low"
    if role == "key" and facts.name in RESERVED_COLUMNS:
        role, why, confidence = "none", f"a key, but {facts.name!r} is a name of our cell tables: rename it", "medium"
    tree = CODE_BANDS if role == "key" and meaning and meaning.name == "industry" and with_point(facts) else None
    return _Draft(facts, meaning, labelled, role, why, confidence, tree)


def _with_birth(drafts: list[_Draft]) -> list[_Draft]:
    """The drafts, with a date of birth by years, five years or decades, where no other key is an age; else withheld."""
    ages = [d for d in drafts if d.role == "key" and d.meaning and d.meaning.name in ("age", "year_of_birth")]
    if any(d.meaning.name == "age" or d.facts.numeric for d in ages if d.meaning):
        return drafts
    births = (i for i, d in enumerate(drafts) if d.role == "direct" and d.meaning and d.meaning.name == "birth_date")
    i = next((i for i in births if years_of_birth(drafts[i].facts)), None)
    if i is not None:
        why = f"{drafts[i].why}; in place of an age, by its year at the finest"
        drafts[i] = replace(drafts[i], role="key", why=why, tree=years_of_birth(drafts[i].facts))
    return drafts


def _with_places(drafts: list[_Draft]) -> list[_Draft]:
    """The drafts, with two neighbouring columns of coordinates as one place: a grid, where no other place is given."""
    fine = [coordinates(d.facts, d.meaning) for d in drafts]
    places = [d for d in drafts if d.role == "key" and d.meaning and d.meaning.name == "place"]
    other = min(places, key=_rank).facts.name if places else None
    for i in range(len(drafts) - 1):
        if fine[i] and fine[i] == fine[i + 1]:
            drafts[i : i + 2] = _as_place(drafts[i : i + 2], other, sure=fine[i] == "named")
            fine[i + 1], other = "", other or drafts[i].facts.name
    return drafts


def _as_place(pair: list[_Draft], other: str | None, *, sure: bool) -> list[_Draft]:
    """Two coordinates as the squares of a grid; withheld where another column says where."""
    tree = None if other else grid([d.facts for d in pair])
    how = f"withheld, as {other!r} says where" if other else "a place together with its neighbour, given as a grid"
    role: Role = "direct" if other else "key"
    why = f"{'named' if sure else 'looks'} like {PLACE.words}"
    return [
        replace(d, role=role, why=f"{why}; {d.facts.words()}; {how}", meaning=PLACE, tree=tree,
                confidence="high" if sure else "low")
        for d in pair
    ]  # fmt: skip


def _rank(draft: _Draft) -> int:
    """The rank of a column in its codebook; 0 without one."""
    return draft.meaning.place if draft.meaning else 0


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
    many = facts.distinct > MAX_KEY_CATEGORIES or facts.kind == "decimal" or facts.unique
    amount = facts.numeric and not coded and many
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
        case "none":
            return "none", "medium"
        case _:
            return None


def _key(facts: Facts, meaning: Meaning) -> tuple[Role, Confidence] | None:
    """The role of a column whose name says key: an age up to 130, a date, categories that repeat."""
    if meaning.name == "age":
        young = facts.kind == "text" or (facts.numeric and facts.range()[0] >= -1 and facts.range()[1] <= MAX_AGE_YEARS)
        return ("key", "high") if young else None
    if (
        meaning.name == "year_of_birth"
        and facts.kind == "whole"
        and facts.range()[1] - facts.range()[0] <= MAX_AGE_YEARS
    ):
        return "key", "high"
    if facts.kind == "decimal" and facts.distinct > MAX_KEY_CATEGORIES:
        return ("key", "medium") if meaning.name == "industry" and with_point(facts) else None
    if (
        facts.kind == "date"
        or facts.distinct <= MAX_KEY_CATEGORIES
        or facts.share <= MAX_KEY_SPREAD
        or meaning.name == "place"
        or (meaning.name in CODED_MEANINGS and prefixes(facts))
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
    if numbered_groups(facts):
        each = f"{1 / facts.share:.1f} records each"
        return "household", f"no telling name; {words}, {each}, which stand together in the file", "low"
    if facts.distinct > MAX_KEY_CATEGORIES and facts.share > MAX_KEY_SPREAD and coded_alike(facts):
        return "person", f"no telling name; {words}, long codes of one length that few records share", "low"
    if facts.unique and facts.records > MIN_SHAPE_VALUES and numbering(facts):
        return "id", f"no telling name; {words}", "medium" if counting(facts) else "low"
    if facts.kind in ("truth", "date") or coded:
        return "key", f"no telling name; {words}", "medium"
    if facts.kind == "text":
        role: Role = "key" if facts.distinct <= MAX_KEY_CATEGORIES or facts.share <= MAX_KEY_SPREAD else "none"
        return role, f"no telling name; {words}", "medium" if facts.distinct <= MAX_KEY_CATEGORIES else "low"
    if facts.kind == "whole" and not facts.unique and years(facts):
        return "key", f"no telling name; {words}, all like years", "medium"
    few = facts.distinct <= MAX_KEY_CATEGORIES and (facts.share <= MAX_KEY_SPREAD or facts.distinct <= MIN_SHAPE_VALUES)
    if facts.kind == "whole" and few and not facts.unique:
        return "key", f"no telling name; {words}, few enough for codes of categories", "low"
    if facts.kind == "whole" and facts.share <= MAX_KEY_SPREAD and CODE_NAME_PATTERN.search(facts.name):
        return "key", f"named like codes; {words}", "low"
    if facts.kind == "whole" and facts.share <= MAX_KEY_SPREAD and dense(facts):
        return "key", f"no telling name; {words} without gaps, as ages and codes are", "low"
    return "numeric", f"no telling name; {words}", "medium" if facts.kind == "decimal" else "low"


def _settle(drafts: list[_Draft]) -> Iterable[Proposal]:
    """One id, weight, household, person and sample for the file: the surest, then the first."""
    order = {"high": 0, "medium": 1, "low": 2}
    sure = sorted(drafts, key=lambda d: (order[d.confidence], _general(d), _rank(d)))
    best = {
        role: next((d for d in sure if d.role == role), None)
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
    if draft.role == "id" and draft.facts.kind == "whole" and draft.meaning is None and not counting(draft.facts):
        return Proposal(name, "numeric", _by_values(draft.facts, False)[1], "low", nested(draft.facts))
    if draft.role == "id":
        return Proposal(name, "direct", why, "medium")
    return Proposal(name, "none", why, "medium")
