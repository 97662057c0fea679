"""What a column's name or label says, in eight languages; the table itself is column_names.toml."""

import re
import tomllib
import unicodedata
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

LANGUAGES = {
    "en": "English", "de": "German", "fr": "French", "es": "Spanish", "it": "Italian", "nl": "Dutch",
    "pt": "Portuguese", "pl": "Polish",
}  # fmt: skip
COMPOUND = 5
"""Letters a word needs to be found inside another."""
WORD = re.compile(r"[a-z]+\d*|\d+")
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
LETTERS = str.maketrans({"ß": "ss", "ł": "l", "ø": "o", "æ": "ae", "œ": "oe", "đ": "d", "'": " ", "’": " "})
UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})


@dataclass(frozen=True)
class Meaning:
    """What a name says: the meaning, the role such columns usually have, and in which language it was read."""

    name: str
    role: str
    words: str
    language: str


@dataclass(frozen=True)
class Phrase:
    """A phrase of the table, as words; `whole` must be the entire name."""

    meaning: Meaning
    words: tuple[str, ...]
    whole: bool

    def stands_in(self, given: tuple[str, ...]) -> bool:
        """The words follow each other in the name, or are all of it."""
        if self.whole or "".join(self.words) == "".join(given):
            return "".join(self.words) == "".join(given)
        size = len(self.words)
        return any(given[i : i + size] == self.words for i in range(len(given) - size + 1))

    def is_part_of(self, given: tuple[str, ...]) -> bool:
        """Part of a compound, at either end."""
        joined = "".join(self.words)
        if self.whole or len(joined) < COMPOUND:
            return False
        whole = ("".join(given),) if len(self.words) > 1 else ()
        return any(_compound(word, joined) for word in (*given, *whole))


def _compound(word: str, part: str) -> bool:
    """The part is at either end of the word, and the rest is a plural s or at least three letters."""
    rest = word.removeprefix(part) if word.startswith(part) else word.removesuffix(part)
    return rest != word and (rest in ("", "s") or len(rest) >= 3)


def meaning_of(text: str) -> Meaning | None:
    """The first meaning of the table whose phrase is in a name: whole words first, then parts of compounds.

    Misleads when a word means something else in another language, or abbreviations are the author's own: the reason
    says what was read. Cost: one pass over some 2,000 phrases per name.

    >>> meaning_of("Geburtsdatum").name, meaning_of("dateOfBirth").language, meaning_of("household_weights").role
    ('birth_date', 'English', 'weight')
    >>> meaning_of("code_postal").words, meaning_of("xyz")
    ('a place', None)
    """
    given = split(text)
    for fits in (Phrase.stands_in, Phrase.is_part_of):
        for phrase in phrases():
            if any(fits(phrase, words) for words in (given, bare(given))):
                return phrase.meaning
    return None


def split(text: str) -> tuple[str, ...]:
    """A name as plain words.

    >>> split("AlterGruppe_2"), split("né le"), split("NUTS3")
    (('alter', 'gruppe', '2'), ('ne', 'le'), ('nuts3',))
    """
    return tuple(WORD.findall(plain(CAMEL.sub(" ", text))))


def bare(words: tuple[str, ...]) -> tuple[str, ...]:
    """Words without the numbers at their ends."""
    return tuple(kept for word in words if (kept := word.rstrip("0123456789")))


def plain(text: str) -> str:
    """Small letters without accents."""
    marked = unicodedata.normalize("NFKD", text.lower().translate(LETTERS))
    return "".join(c for c in marked if not unicodedata.combining(c))


@cache
def phrases() -> tuple[Phrase, ...]:
    """Every phrase, in the order of the table, long ones of a meaning first; German umlauts also as two letters."""
    table = tomllib.loads(files("equipoise.flow").joinpath("column_names.toml").read_text(encoding="utf-8"))
    found: dict[tuple[tuple[str, ...], bool], Phrase] = {}
    for name, entry in table.items():
        for code, language in LANGUAGES.items():
            meaning = Meaning(name, entry["role"], entry["words"], language)
            for text in entry[code].split(","):
                whole = text.strip().startswith("=")
                for written in {text.lower(), text.lower().translate(UMLAUTS)}:
                    words = tuple(WORD.findall(plain(written)))
                    found.setdefault((words, whole), Phrase(meaning, words, whole))
    place = {name: i for i, name in enumerate(table)}
    return tuple(sorted(found.values(), key=lambda p: (place[p.meaning.name], -len(p.words))))
