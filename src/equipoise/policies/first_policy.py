"""First policy proposed from the data, commented in plain words, to be read and changed before it is run."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from datetime import date
from math import ceil
from pathlib import Path
from typing import Any, cast

from equipoise.data.branches import plain_branch
from equipoise.data.cells import Cells, count
from equipoise.data.levels import ORIGINAL
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.files import read
from equipoise.files.memory import refuse_work
from equipoise.files.office_text import checked_codes
from equipoise.ground.errors import DataError
from equipoise.inspection.column_names import meaning_of, split
from equipoise.inspection.direct_identifiers import without_direct
from equipoise.inspection.revealing import MAX_REVEALED_SHARE, enough_columns, revealing
from equipoise.inspection.suggest_roles import ROLE_FIELDS, ROLE_WORDS, Proposal, Suggestion, _quoted, suggest_roles
from equipoise.masks import Noise, RankSwap
from equipoise.methods.method import Mask, name_of
from equipoise.policies.first_candidates import key_candidates, number_candidates, number_limits
from equipoise.policies.first_masks import SAFE_SHARE, masks_beside_keys, share_left
from equipoise.policies.first_words import head_sentences, refuse_cells, refuse_few, refuse_nameless, refuse_wide
from equipoise.policies.presets import Preset, preset_named, slots_of

DRAWS_MARGIN, MAX_RAISED_SHARE = 1.5, 0.25
"""How much more another draw may leave, and the largest share that is proposed as a limit for a small file."""
DEFAULT_UNIQUES_SHARE = 0.02
"""The share of unique records allowed, unless a preset says otherwise."""
MAX_BIAS = 0.1
"""Standard deviations by which a mean may shift; in a small file three standard errors, if that is more."""
CEILINGS = {
    "overlap": ("> 70%", "users find nearly what they would find in the original"),
    "blank_keys": ("<= 5%", "a file full of blanks is of little use"),
    "withheld_records": ("<= 5%", "who is left out is missing in every estimate"),
    "bias": ("<= {bias:.2g}", "no mean may shift by more standard deviations, no distribution by more of its records"),
}
OBJECTIVE = (
    "\n[choose]",
    'prefer = "utility"    # "risk": the safest release inside the limits',
    "weights = { overlap = 1 }    # of what users compute: the overlap of their intervals before and after",
)
NO_ROLES_MESSAGE = "No column looks like something an intruder may know or users analyse: write the roles by hand."
ZIP_WORDS = {"zip", "zipcode", "zcta", "postal", "postalcode", "postcode"}
LARGE_PLACES = {"state", "statefip", "country", "region", "regions", "urban", "rural", "urbrur"}  # stay under HIPAA
MAX_TABLE_CATEGORIES = 30
"""Categories of a column by which a table may go."""


@dataclass(frozen=True)
class FileFindings:
    """Findings in the data: the suggested roles, and the share of uniques now and at the coarsest levels.

    `revealing` has the columns beside the keys that single people out, `masks` what is proposed for them.
    """

    name: str
    path: str
    roles: Suggestion
    records: Records
    now: float = 0.0
    coarsest: float = 0.0
    levels: dict[str, list[str]] = field(default_factory=dict)
    reading: dict[str, str | int | tuple[str, ...]] = field(default_factory=dict)
    revealing: tuple[str, ...] = ()
    masks: tuple[Mask, ...] = ()
    revealed_limit: float = MAX_REVEALED_SHARE
    cells: Cells | None = field(default=None, repr=False)


def initial(source: str | Path, *, path: str | None = None, preset: str | None = None, **options: Any) -> str:
    """The text of a first policy for a file; nothing is applied until you run it.

    Roles and hierarchies are those of `suggest_roles`. Tried are coarsenings along greedy paths from the finest levels
    to the coarsest; what they leave in small classes is blanked, value by value.
    `path` is where the policy finds the data, `options` are those of `read`. A `preset` gives limits and methods.

    Misleads when the roles are wrong: read them first. Cost: that of `suggest_roles`, and O(cells) for the coarsest.
    """
    agency = preset_named(preset) if preset else None
    reading = {n: str(value) if isinstance(value, Path) else value for n, value in options.items() if value is not None}
    if "missing_codes" in reading:
        reading["missing_codes"] = checked_codes(reading["missing_codes"])
    findings = _look(source, path or str(source), reading, agency)
    lines = [
        *_head(findings, agency),
        *_data(findings),
        *_slots(findings, agency),
        *_roles(findings, agency),
    ]
    if agency is not None and agency.about == "table":
        return "\n".join([*lines, *_table(findings, agency), ""])
    return "\n".join([*lines, *_body(findings, agency), *_always(findings), ""])


def proposed(records: Records, cells: Cells | None = None) -> dict[str, Any]:
    """The draws, measures, limits and candidates of a first policy, for records with roles.

    `cells` are those of the keys, where they are counted already.
    """
    import tomllib

    refuse_cells(records, records.roles)
    refuse_few(records.height())
    findings = _with_counts(_with_columns(FileFindings("", "", _suggestion_of(records.roles), records)), cells)
    plain = tomllib.loads("\n".join([*_measures(findings), *_body(findings, None), *_always(findings)]))
    sections = ("draws", "measures", "limits", "choose", "candidates", "always")
    return {name: plain[name] for name in sections if name in plain}


def assumptions(records: Records) -> tuple[str, ...]:
    """What a first policy for these roles assumes, cannot know, and leaves to be decided, a sentence each."""
    sentences = head_sentences(records.roles, _suggestion_of(records.roles), len(records.schema()))
    return tuple(sentence.removeprefix("# ") for sentence in sentences)


def _suggestion_of(roles: Roles) -> Suggestion:
    """Chosen roles as a suggestion."""
    values = {role: getattr(roles, ROLE_FIELDS.get(role, role), None) for role in ROLE_WORDS}
    columns = {role: (its,) if isinstance(its, str) else its or () for role, its in values.items()}
    proposals = [
        Proposal(c, role, "chosen", "high", roles.hierarchies.get(c)) for role, its in columns.items() for c in its
    ]
    return Suggestion(tuple(proposals), 0, 0)


def _body(findings: FileFindings, preset: Preset | None) -> list[str]:
    """The lines of limits and candidates."""
    if not findings.roles.of("key"):
        return _numbers(findings, preset)
    return [*_limits(findings, preset), *_candidates(findings, preset)]


def _look(source: str | Path, path: str, reading: dict[str, Any], preset: Preset | None) -> FileFindings:
    records = read(source, **reading)
    refuse_wide(len(records.schema()))
    refuse_nameless(list(records.schema()))
    refuse_work(records, "propose a policy for")
    roles = suggest_roles(records)
    if preset and slots_of(preset):
        roles = _without_small_places(roles)
    refuse_cells(records, roles.roles)
    refuse_few(records.height())
    if set(records.schema()) <= set(roles.roles.direct):
        raise DataError(NO_ROLES_MESSAGE)
    records = without_direct(replace(records, roles=roles.roles))
    records.check()
    findings = FileFindings(Path(path).name, path, roles, records, reading=reading)
    return _with_counts(_with_columns(findings, preset))


def _without_small_places(roles: Suggestion) -> Suggestion:
    """The suggestion without dates of birth, coordinates and places smaller than a state, which the preset forbids."""
    proposals = (replace(p, role="direct", hierarchy=None) if _forbidden(p) else p for p in roles.proposals)
    return replace(roles, proposals=tuple(proposals))


def _forbidden(proposal: Proposal) -> bool:
    """Whether a column must go; a year of birth that is no key, since an age says the same."""
    kind, words = getattr(meaning_of(proposal.column), "name", ""), set(split(proposal.column))
    small = kind == "place" and not words & (ZIP_WORDS | LARGE_PLACES)
    return small or kind in ("birth_date", "coordinates") or (kind == "year_of_birth" and proposal.role != "key")


def _with_columns(findings: FileFindings, preset: Preset | None = None) -> FileFindings:
    """The findings with the columns beside the keys that single people out, and what is proposed for them."""
    records, slots = findings.records, _slot_columns(findings, preset)
    columns = tuple(c for c in enough_columns(revealing(records, records)) if c not in slots)
    groups = (records.roles.household, records.roles.person)
    masks = tuple(part for mask in masks_beside_keys(records, columns) for part in _beside(mask, slots))
    return replace(
        findings,
        revealing=tuple(c for c in columns if c not in groups),
        masks=masks,
        revealed_limit=_revealed_limit(records, masks) if columns else MAX_REVEALED_SHARE,
    )


def _beside(mask: Any, slots: list[str]) -> Iterator[Mask]:
    """A mask without columns that the preset changes; nothing where it has no others."""
    rest = tuple(c for c in getattr(mask, "columns", ()) if c not in slots)
    if rest or (getattr(mask, "column", None) not in slots and not getattr(mask, "columns", ())):
        yield replace(mask, columns=rest) if rest else mask


def _revealed_limit(records: Records, masks: tuple[Mask, ...]) -> float:
    """The usual share, or in a small file the next step of it that another draw of the masks stays below."""
    left = share_left(records, masks, enough=MAX_RAISED_SHARE)
    steps = ceil(DRAWS_MARGIN * left / MAX_REVEALED_SHARE) * MAX_REVEALED_SHARE
    return MAX_REVEALED_SHARE if left <= SAFE_SHARE or steps > MAX_RAISED_SHARE else steps


def _with_counts(findings: FileFindings, cells: Cells | None = None) -> FileFindings:
    """The findings with the levels of the keys, and the share of uniques at the finest and the coarsest."""
    records = findings.records
    if not findings.roles.of("key"):
        return findings
    cells = cells or count(records)
    trees = {key: tree for key in cells.by if (tree := records.roles.hierarchies.get(key))}
    levels = {key: [level.name for level in tree.allowed if level.name != ORIGINAL] for key, tree in trees.items()}
    levels = {key: names for key, names in levels.items() if names}
    top = cells.roll_up({key: names[-1] for key, names in levels.items()})
    return replace(findings, now=_alone(cells), coarsest=_alone(top), levels=levels, cells=cells)


def _alone(cells: Cells) -> float:
    return float(cells.n[cells.alike[0] == 1].sum() / cells.records)


def _head(findings: FileFindings, preset: Preset | None) -> Iterator[str]:
    name = _printable(findings.name)
    yield f"# A first policy for {name}, written by looking at the data. It is a proposal, not a decision."
    roles = findings.records.roles
    width, named = len(findings.records.schema()), preset.name if preset else None
    yield from map(_printable, head_sentences(roles, findings.roles, width, preset=named))
    yield "#   1. Read every line and change what is wrong: the roles first."
    yield "#   2. equipoise check POLICY.toml      says in plain words what it means."
    yield "#   3. equipoise balance POLICY.toml    tries the candidates and releases the best inside the limits."
    yield "# Hierarchies may name frequent categories: keep this file as you keep the data."
    yield "format = 1"
    yield f"title = {_quoted(Path(findings.name).stem)}"
    yield from _unknown(findings)
    if preset is not None:
        yield f"\n# {preset.words}."
        yield f"# Source: {preset.source}."
        yield f"extends = {_quoted(preset.name)}"
    else:
        yield from _measures(findings)


def _printable(text: str) -> str:
    """Text for a comment, which is one line without control characters."""
    return "".join(c if c.isprintable() else " " for c in text)


def _unknown(findings: FileFindings) -> Iterator[str]:
    """The declaration that an officer may make instead, as a comment."""
    if findings.revealing:
        yield "\n# Columns that lead to few people, if somebody knows them: masked below, and what is left is limited."
        yield "# Only where nobody outside can know one, take its mask away and declare it. Both reports will say so."
        yield f"# assume_unknown = {_quoted(list(findings.revealing))}"


def _measures(findings: FileFindings) -> Iterator[str]:
    if not findings.roles.of("key"):
        yield "\n# Noise is random: each candidate is drawn so often, and chosen by what holds over its draws."
        yield "draws = 3"
    else:
        disclosures = [f"attribute_disclosure(sensitive={column!r})" for column in findings.roles.of("sensitive")]
        yield "\n# Reported beside the limits; nothing is decided by them."
        yield f"measures = {_quoted(['uniques(k=2)', *disclosures, 'entropy'])}"


def _data(findings: FileFindings) -> Iterator[str]:
    yield "\n[data]"
    yield f"path = {_quoted(findings.path)}"
    yield from (f"{name} = {_reading_value(value)}" for name, value in findings.reading.items())


def _reading_value(value: str | int | tuple[str, ...]) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_quoted, value))}]"
    return str(value) if isinstance(value, int) else _quoted(value)


def _slots(findings: FileFindings, preset: Preset | None) -> Iterator[str]:
    """The columns that a preset asks for, as far as they can be guessed."""
    slots = slots_of(preset) if preset else ()
    if slots:
        guessed = _guesses(findings)
        if preset and not any(guessed.get(name) for name in slots):
            slot_names = ", ".join(slots)
            raise DataError(
                f"The preset {preset.name!r} is about columns that are not seen here ({slot_names}): name them."
            )
        yield "\n# The columns that the preset is about; check them, and add what is missing."
        yield "[slots]"
        yield from (f"{name} = {_quoted(guessed[name])}" for name in slots if guessed.get(name))


def _guesses(findings: FileFindings) -> dict[str, Any]:
    """The columns of each slot; years of birth with the last year whose children may be 90 today."""
    schema = findings.records.schema()
    kinds: dict[str, list[str]] = {}
    for column, tree in ((p.column, p.hierarchy) for p in findings.roles.proposals if p.role != "direct"):
        meaning = getattr(meaning_of(column), "name", "")
        dated = tree is not None and plain_branch(tree.branches[0])["kind"] == "dates"
        if meaning == "year_of_birth" and schema[column].is_numeric():
            kinds.setdefault("birth_years", []).append(column)
        elif dated or meaning == "age" or (meaning == "place" and ZIP_WORDS & set(split(column))):
            slot = "age" if meaning == "age" else "dates" if dated else "zip"
            kinds.setdefault(slot, []).append(column)
    oldest = {"oldest": date.today().year - 90} if "birth_years" in kinds else {}
    return {**{name: its[0] if len(its) == 1 and name != "dates" else its for name, its in kinds.items()}, **oldest}


def _slot_columns(findings: FileFindings, preset: Preset | None) -> list[str]:
    """The columns that a preset with slots changes by itself."""
    slots = {**_guesses(findings), "oldest": []} if preset and slots_of(preset) else {}
    return [c for its in slots.values() for c in ([its] if isinstance(its, str) else its)]


def _roles(findings: FileFindings, preset: Preset | None) -> Iterator[str]:
    yield "\n# What each column is, as its name and values suggest, with the reason."
    yield from findings.roles.lines("roles.", _slot_columns(findings, preset))


def _limits(findings: FileFindings, preset: Preset | None) -> Iterator[str]:
    yield f"\n# As the file is, {findings.now:.1%} of the records are alone on the keys,"
    yield f"# with every key as coarse as it gets {findings.coarsest:.1%}."
    if preset is None:
        why = "few people may stand alone on what others know of them"
        yield "[limits]"
        yield f"uniques = {{ limit = {_quoted(f'< {DEFAULT_UNIQUES_SHARE:.0%}')}, reason = {_quoted(why)} }}"
    else:
        yield "# The limits are those of the preset; a limit here on the same measure takes their place."
        yield "[limits]"
    yield from _limit_beside_keys(findings)
    yield from _ceilings(findings, "overlap", "blank_keys", "withheld_records", "bias")
    yield from OBJECTIVE


def _ceilings(findings: FileFindings, *names: str) -> Iterator[str]:
    """What a release may cost its users at most, whatever the objective says; means of few records err by more."""
    bias = max(MAX_BIAS, 3 / findings.records.height() ** 0.5)
    for name in names:
        limit, why = CEILINGS[name]
        yield f"{name} = {{ limit = {_quoted(limit.format(bias=bias))}, reason = {_quoted(why)} }}"


def _limit_beside_keys(findings: FileFindings) -> Iterator[str]:
    if findings.revealing or any(isinstance(mask, Noise | RankSwap) for mask in findings.masks):
        why = "nobody is found by one or two columns beside the keys"
        limit = _quoted(f"<= {findings.revealed_limit:.0%}")
        yield f"revealing_columns = {{ limit = {limit}, reason = {_quoted(why)} }}"


def _always(findings: FileFindings) -> Iterator[str]:
    """The masks of every candidate: columns beside the keys."""
    if findings.masks:
        yield "\n# Done in every candidate, so that nobody is singled out by columns beside the keys."
    for mask in findings.masks:
        yield "[[always]]"
        yield f"use = {_quoted(name_of(type(mask)))}"
        yield from (f"{name} = {_quoted(value)}" for name, value in _parameters(mask).items())
        yield ""


def _parameters(mask: Mask) -> dict[str, Any]:
    """The parameters of a mask that are not as usual."""
    defaults = {f.name: f.default for f in fields(cast(Any, mask))}
    values = {name: getattr(mask, name) for name, default in defaults.items() if getattr(mask, name) != default}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def _candidates(findings: FileFindings, preset: Preset | None) -> Iterator[str]:
    if preset is not None and slots_of(preset):
        return
    if not findings.levels:
        yield "\n# No key can be coarsened as it is: give hierarchies under [roles.hierarchies] for more candidates."
    least = _least(preset)
    if findings.roles.of("person"):  # some people of a class are told apart by their other records
        least = least * 3 // 2
    cells = findings.cells or count(findings.records)
    roles = findings.records.roles
    yield from key_candidates(cells, least, DEFAULT_UNIQUES_SHARE, single=not (roles.household or roles.person))


def _least(preset: Preset | None) -> int:
    """The minimum class size that the preset names."""
    sizes = re.findall(r"(?:min-count:|\(k=)(\d+)", preset.text) if preset else []
    prosecutor = "prosecutor" in _limited_scores(preset) if preset else False
    return 12 if prosecutor else max(2, *map(int, sizes[:1])) if sizes else 2


def _limited_scores(preset: Preset) -> tuple[str, ...]:
    under = preset_named(str(preset.plain["extends"])).plain if "extends" in preset.plain else {}
    return (*preset.plain.get("limits", {}), *under.get("limits", {}))


def _numbers(findings: FileFindings, preset: Preset | None) -> list[str]:
    """Limits and candidates of a file without keys: its numeric columns are perturbed."""
    numbers = list(findings.roles.of("numeric"))
    if not numbers:
        raise DataError(NO_ROLES_MESSAGE)
    if preset is not None:
        raise DataError(f"The preset {preset.name!r} is about keys, and no column looks like one.")
    return [
        "\n# No column looks like something an intruder may know; what he finds in the numbers is limited.",
        "[limits]",
        *number_limits(numbers, findings.records.height()),
        *_limit_beside_keys(findings),
        *_ceilings(findings, "overlap", "withheld_records", "bias"),
        *OBJECTIVE,
        *number_candidates(numbers, findings.records.roles.weight),
    ]


def _table(findings: FileFindings, preset: Preset) -> Iterator[str]:
    """[table] by the coarsest columns there are."""
    cells = count(findings.records) if findings.roles.of("key") else None
    by = [key for key in cells.by if len(cells.values(key)) <= MAX_TABLE_CATEGORIES][:2] if cells else []
    if not by:
        raise DataError(
            f"No key has at most {MAX_TABLE_CATEGORIES} categories to make a table by: write [table] by hand."
        )
    amounts, added = findings.roles.of("numeric"), re.search(r"p-percent|dominance", preset.text)
    if preset.amounts and not amounts:
        raise DataError(f"The preset {preset.name!r} is about amounts, and no column looks like one.")
    yield "\n# The table; choose the columns it goes by, and what is added up (without value: records are counted)."
    yield "[table]"
    yield f"by = {_quoted(by)}"
    if added and amounts:
        yield f"value = {_quoted(amounts[0])}"
    yield "\n# Limits and methods are those of the preset; what you write here takes their place."
