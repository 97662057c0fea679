"""Direct identifiers: columns that identify a person, found by the pattern of their values and by their names.

Shapes come with check digits where the numbers have them, as python-stdnum knows them. A random number of ten digits is
right once in ten or eleven times, so a column in which nearly all are right is no accident. A finding is `certain` when
values alone, or values and name together, leave no doubt: these are refused in a release.
"""

import re
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from equipoise.data.records import Records
from equipoise.ground.errors import RefusedError
from equipoise.ground.system import packaged
from equipoise.inspection.column_facts import Facts, facts_of, skim
from equipoise.inspection.column_names import Meaning, meaning_of, plain

MIN_SHAPE_VALUES = 5
"""Distinct values that a shape needs, so that it is no accident."""
MIN_PERSON_VALUES = 20
"""Distinct values from which names, dates of birth and coordinates single people out."""
MIN_SENTENCE_WORDS = 6
"""Words from which a text is a sentence."""
SHORTEST_TEXT, LEAST_WHOLE = 5, 1e6
"""Texts and whole numbers below have none of the shapes (but for addresses such as ::1)."""
MIN_UNIQUE_TEXT_RECORDS = 100
"""Records from which texts that hardly repeat are known to identify."""


@dataclass(frozen=True)
class Finding:
    """What kind of direct identifier a column looks like."""

    kind: str
    words: str
    certain: bool


@dataclass(frozen=True)
class Pattern:
    """A pattern of whole values, after removing separators in `strip`, and its check-digit module in `stdnum`.

    `least` is the share of distinct values that must have it, lower where nothing else looks like it; `spread` the
    distinct values per record that it needs; `length` that of numbers without letters, read from whole numbers too;
    `digits` how many it must have.
    """

    kind: str
    words: str
    pattern: str
    number: str = ""
    strip: str = r"[ .\-/]"
    least: float = 0.8
    few: int = MIN_SHAPE_VALUES
    length: int = 0
    spread: float = 0.0
    digits: int = 0

    def fits(self, texts: pl.Series) -> NDArray[np.bool_]:
        """Which of the texts have the shape."""
        bare = texts.str.replace_all(self.strip, "").str.to_uppercase() if self.number else texts
        fits = bare.str.contains(f"^(?:{self.pattern})$") & (bare.str.count_matches(r"\d") >= self.digits)
        if not self.number or not fits.any():
            return fits.to_numpy()
        valid = import_module(f"stdnum.{self.number}").is_valid
        return np.array([fit and valid(text) for text, fit in zip(bare, fits, strict=True)], dtype=np.bool_)


TITLE = r"^(?i:dr|prof|mr|mrs|ms|herr|frau|mme|mlle|sra?|dott|pan|pani|dhr|mevr)\.? \p{Lu}"
STRAY = r"\S@\S+\.\p{L}{2}|(?:\+|\b00)\d[\d ()/-]{7,}|\b0\d{1,4}[ /-]\d[\d -]{4,}"
"""Titles before names; e-mail addresses and telephone numbers within other texts."""
RARELY_FILLED = 0.05
"""Share of the records below which a column is filled rarely, as by answers in somebody's own words."""
SHAPE_SIGN = re.compile(r"[\d@.:]")
HOUSE_NUMBER = r"^\d{1,4}\p{L}?,? \p{L}{2,}|\p{L}{3,},? \d{1,4} ?\p{L}?(?:,|$)"


@cache
def shapes() -> tuple[Pattern, ...]:
    """The shapes of identifier_shapes.toml, in the order in which they are tried."""
    table = packaged("inspection/identifier_shapes.toml")
    return tuple(Pattern(**{**shape, "pattern": _whole(shape["pattern"], table["parts"])}) for shape in table["shapes"])


def _whole(pattern: str | list[str], parts: dict[str, str]) -> str:
    """A pattern from its alternatives, with its named parts written out."""
    text = pattern if isinstance(pattern, str) else "|".join(pattern)
    return re.sub(r"<(\w+)>", lambda name: parts[name[1]], text)


def find_identifier(facts: Facts, label: str | None = None, meaning: Meaning | None = None) -> Finding | None:
    """The direct identifier that a column looks like, if any; its label is used where its name says nothing.

    `meaning` takes the place of what name and label say.

    Misleads when identifiers have a shape of their own and repeat (staff numbers): only a name can tell then. Cost: a
    few dozen patterns on at most 2,000 distinct values.

    >>> find_identifier(facts_of(pl.Series("v1", ["ann@example.org", "bo@example.org"])))
    Finding(kind='email', words='e-mail addresses', certain=True)
    """
    meaning = meaning or meaning_of(facts.name) or (meaning_of(label) if label else None)
    births = _births(facts) if meaning is None else None
    by_values = (_people(facts), births, _prose(facts), _near_unique(facts), _addresses(facts), _rare(facts))
    findings = [f for f in (shaped(facts), _by_name(facts, meaning), *by_values) if f]
    return next((finding for finding in findings if finding.certain), findings[0] if findings else None)


def shaped(facts: Facts) -> Finding | None:
    """The direct identifier that the pattern of the values alone suggests."""
    if facts.kind not in ("text", "whole") or facts.distinct < 2 or not _may_have_shape(facts):
        return None
    texts = facts.shaped if facts.kind == "text" else _pad(facts)
    for shape in shapes():
        if (
            facts.distinct < shape.few
            or facts.share < shape.spread
            or (facts.kind == "whole" and not _long_enough(shape, texts))
        ):
            continue
        fits = shape.fits(texts)
        if fits.sum() >= max(shape.few, shape.least * len(texts)):
            return Finding(shape.kind, shape.words, True)
    email = shapes()[0].pattern
    if facts.kind == "text" and texts.str.contains(email).sum() >= max(MIN_SHAPE_VALUES, 0.05 * len(texts)):
        return Finding("email", "texts with e-mail addresses in them", True)
    return None


def _may_have_shape(facts: Facts) -> bool:
    """Whether any value is long enough, and has a digit or a sign that every shape has: quick, and false for most."""
    if facts.kind == "whole":
        return facts.range()[1] >= LEAST_WHOLE
    return any(len(text) >= SHORTEST_TEXT and SHAPE_SIGN.search(text) for text in facts.shaped.to_list())


def _pad(facts: Facts) -> pl.Series:
    """Whole numbers as text, with the leading zeros they may have lost."""
    low, high = facts.range()
    if low < 0 or high >= 2**63:
        return pl.Series("value", [], dtype=pl.String)
    texts = facts.shaped.str.replace(r"\.0$", "")
    longest: Any = texts.str.len_chars().max()
    return texts.str.zfill(int(longest or 0))


def _long_enough(shape: Pattern, texts: pl.Series) -> bool:
    """Whether most values of a column of whole numbers have the length of the pattern."""
    sizes = texts.str.strip_chars_start("0").str.len_chars()
    return bool(shape.length and len(texts) and (sizes >= shape.length - 2).mean() > 0.9)  # type: ignore[operator]


def _by_name(facts: Facts, meaning: Meaning | None) -> Finding | None:
    """The direct identifier that the name suggests, certain or possible depending on the values."""
    if meaning is None or meaning.role != "direct":
        return None
    if meaning.name == "free_text":
        sentences = facts.kind == "text" and _words(facts, 3) > 0.3
        return Finding("free text", "free text, which may name people", False) if sentences else None
    if facts.distinct < MIN_SHAPE_VALUES:  # in a few rows the name must do, where no value repeats
        return Finding(meaning.name, meaning.words, False) if facts.unique and facts.kind == "text" else None
    many, text = facts.distinct >= MIN_PERSON_VALUES, facts.kind == "text"
    single = facts.share > 0.5 and (text or (facts.kind == "whole" and facts.range()[0] >= 1e6))
    rules = {
        "birth_date": (facts.kind == "date", text or single),
        "coordinates": (_places(facts), facts.numeric),
        "person_name": (
            text and facts.share > 0.02 and wordy(facts),
            text and (many or facts.share > 0.5 or _named(facts) >= 0.3),
        ),
        "organisation_name": (single, text and (many or facts.share > 0.1)),
    }
    sure, possible = rules.get(meaning.name, (single, single or (many and facts.kind in ("text", "whole"))))
    return Finding(meaning.name, meaning.words, many and sure) if sure or possible else None


def _births(facts: Facts) -> Finding | None:
    """Dates without a telling name that span forty years or more: possible dates of birth."""
    if facts.kind != "date" or facts.distinct < MIN_PERSON_VALUES:
        return None
    years = facts.shaped.str.extract(r"((?:18|19|20)\d{2})").cast(pl.Int64).drop_nulls()
    low, high = np.quantile(years.to_numpy(), (0.05, 0.95)) if len(years) else (0, 0)
    return Finding("birth_date", "dates of birth, by how far apart they lie", False) if high - low >= 40 else None


def _places(facts: Facts) -> bool:
    """Whether values are geographical degrees with three decimals or more."""
    if facts.kind != "decimal" or facts.distinct < MIN_PERSON_VALUES:
        return False
    low, high = facts.range()
    fine = facts.shaped.str.contains(r"\.\d{3,}").mean()
    return low >= -180 and high <= 180 and isinstance(fine, float) and fine > 0.5


def coordinates(facts: Facts, meaning: Meaning | None) -> Literal["named", "alike", ""]:
    """Whether numbers are degrees or metres of places: by their name, or without one by their values.

    Columns x and y are taken for metres where they have six digits or more before the decimals.
    """
    if not facts.numeric or facts.distinct < MIN_PERSON_VALUES:
        return ""
    low, _ = facts.range()
    if meaning is not None:
        return "named" if meaning.name == "coordinates" and (facts.kind == "decimal" or low > 1e4) else ""
    metres = facts.name.lower() in ("x", "y") and low > 1e5 and facts.share > 0.1
    return "alike" if metres or degrees(facts) else ""


def degrees(facts: Facts) -> bool:
    """Decimals that may be degrees of places in one country: four to eight digits, far from zero for their spread."""
    if not _places(facts) or facts.share < 0.5:
        return False
    fine = facts.shaped.str.extract(r"\.(\d+)$").str.len_chars().median()
    low, middle, high = np.quantile(facts.values.to_numpy(), (0.01, 0.5, 0.99))
    return isinstance(fine, float) and 4 <= fine <= 8 and abs(middle) > 0.5 * (high - low)


def wordy(facts: Facts) -> bool:
    """Whether nearly all values are words of letters."""
    share = facts.shaped.str.contains(r"^[\p{L}][\p{L}' .,-]*$").mean()
    return isinstance(share, float) and share > 0.9


def _people(facts: Facts) -> Finding | None:
    """Names of people, recognised by common first and last names among the words."""
    if facts.kind != "text" or not facts.distinct or not wordy(facts):
        return None
    titled = facts.shaped.str.contains(TITLE).mean()
    if isinstance(titled, float) and titled > 0.8:
        return Finding("person_name", "names of people, with titles", False)
    share = _named(facts) if facts.distinct >= MIN_PERSON_VALUES else 0.0
    return Finding("person_name", "names of people", share >= 0.3) if share >= 0.15 else None


def _named(facts: Facts) -> float:
    """The share of texts with a common first or last name among their words."""
    words = [set(plain(text).replace(",", " ").split()) for text in facts.shaped]
    return sum(bool(its & common_names()) for its in words) / len(words)


def _words(facts: Facts, least: int) -> float:
    """The share of the texts that have so many words."""
    share = (facts.shaped.str.count_matches(r"\p{L}{2,}") >= least).mean()
    return share if isinstance(share, float) else 0.0


def _rare(facts: Facts) -> Finding | None:
    """Texts or long numbers in few records that hardly repeat: answers in one's own words, somebody to call."""
    if not facts.records or facts.records > RARELY_FILLED * (facts.records + facts.missing) or facts.share < 0.5:
        return None
    spoken = facts.kind == "text" and _words(facts, 1) > 0.3
    numbered = facts.kind == "whole" and facts.range()[0] >= LEAST_WHOLE
    words = "texts that few records have, in somebody's own words" if spoken else "long numbers that few records have"
    return Finding("rare text", words, False) if spoken or numbered else None


def strays(facts: Facts) -> int:
    """How many different values of other texts have an e-mail address or a telephone number in them."""
    return int(facts.shaped.str.contains(STRAY).sum()) if facts.kind == "text" else 0


@cache
def common_names() -> frozenset[str]:
    table = packaged("inspection/person_names.toml")
    return frozenset(plain(name) for names in table.values() for name in names.split())


def _prose(facts: Facts) -> Finding | None:
    """Free text: sentences that differ from record to record and may name people."""
    if facts.kind != "text" or facts.distinct < MIN_PERSON_VALUES or facts.share < 0.2:
        return None
    words = facts.shaped.str.count_matches(r"\p{L}{2,}").median()
    if not isinstance(words, float) or words < MIN_SENTENCE_WORDS:
        return None
    return Finding(
        "free text", "free text, which may name people", facts.share >= 0.5 and facts.records >= MIN_UNIQUE_TEXT_RECORDS
    )


def _addresses(facts: Facts) -> Finding | None:
    """Postal addresses: words with a number before or after them."""
    if facts.kind != "text" or facts.distinct < MIN_UNIQUE_TEXT_RECORDS or facts.share < 0.2:
        return None
    fits = facts.shaped.filter(facts.shaped.str.contains(HOUSE_NUMBER))
    streets = fits.str.replace_all(r"\d+\p{L}?\b", "").n_unique()
    numbers = fits.str.extract(r"(\d+)").n_unique()
    if len(fits) < 0.8 * len(facts.shaped) or streets < 3 or numbers < MIN_PERSON_VALUES:
        return None
    return Finding("address", "streets with house numbers", False)


def _near_unique(facts: Facts) -> Finding | None:
    """Texts that hardly repeat: certain where they are words rather than codes."""
    if facts.kind != "text" or facts.share < 0.9 or facts.records < MIN_SHAPE_VALUES:
        return None
    spoken = facts.shaped.str.contains(r"\p{L}{3,}[ ,;.]+\S").mean()
    words = isinstance(spoken, float) and spoken > 0.5
    if not words and facts.share < 0.95:
        return None
    return Finding("near-unique text", "texts that hardly repeat", words and facts.records >= MIN_UNIQUE_TEXT_RECORDS)


def without_direct(records: Records) -> Records:
    """The records without their direct identifiers, which nothing downstream may look at."""
    direct = records.roles.direct
    if not direct:
        return records
    trees = {column: tree for column, tree in records.roles.hierarchies.items() if column not in direct}
    return replace(
        records, frame=records.frame.drop(list(direct)), roles=replace(records.roles, direct=(), hierarchies=trees)
    )


def refuse_identifiers(released: Records, allowed: tuple[str, ...], withheld: tuple[str, ...]) -> None:
    """Refuse to release a column that is certainly a direct identifier, unless it was allowed by name.

    Does not guard against identifiers of an unknown shape under a name that says nothing.
    """
    exempt = {*allowed, *withheld}
    for column in skim(released).iter_columns():
        label = released.labels.of(column.name).label
        finding = find_identifier(facts_of(column), label) if column.name not in exempt else None
        if finding and finding.certain:
            raise RefusedError(
                f"Nothing was released: column {column.name!r} looks like a direct identifier ({finding.words}). "
                f"Give it the role direct, which withholds it, or name it under allow (policy file, Policy, --allow)."
            )
