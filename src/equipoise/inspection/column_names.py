"""Meaning of a column by its name or label, in eight languages; the phrases are in column_names.toml."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache

from equipoise.ground.system import packaged

LANGUAGES = {
    "en": "English", "de": "German", "fr": "French", "es": "Spanish", "it": "Italian", "nl": "Dutch",
    "pt": "Portuguese", "pl": "Polish",
}  # fmt: skip
MIN_COMPOUND_LETTERS = 5
"""Letters a word needs to be found inside another."""
WORD_PATTERN = re.compile(r"[a-z]+\d*|\d+")
CAMEL_CASE_PATTERN = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
MIN_CODEBOOK_NAMES = 4
"""Names of a codebook that say nothing elsewhere and that a file needs to be read by it."""
SHORT, WEIGHT = re.compile(r"(?:^|(?<=[a-z]{4}))nr$"), re.compile(r"(?<=[a-z]{2})wt$")
BINDING_WORDS = frozenset(
    ("de", "del", "della", "di", "do", "da", "d", "du", "des", "la", "le", "el", "of", "the", "van")
)
UNIT_WORDS = frozenset(
    ("kg", "kilo", "kilos", "kilogram", "kilograms", "gram", "grams", "gramm", "lb", "lbs", "cm", "mm")
)
LETTERS = str.maketrans({"ß": "ss", "ł": "l", "ø": "o", "æ": "ae", "œ": "oe", "đ": "d", "'": " ", "’": " "})
UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})


@dataclass(frozen=True)
class Meaning:
    """What a name says: the meaning, the role such columns usually have, and in which language it was read.

    `place` is its rank in a codebook, those that outsiders are likeliest to know first.
    """

    name: str
    role: str
    words: str
    language: str
    place: int = 0


@dataclass(frozen=True)
class Phrase:
    """A phrase of the table, as words; `whole` must be the entire name; `place` is its rank among all."""

    meaning: Meaning
    words: tuple[str, ...]
    whole: bool
    place: int = 0

    @property
    def joined(self) -> str:
        return "".join(self.words)


def _standing(words: tuple[str, ...]) -> Iterable[Phrase]:
    """The phrases that are the whole name, or whose words follow each other in it."""
    yield from _joined().get("".join(words), ())
    for start in range(len(words)):
        for end in range(start + 1, len(words) + 1):
            phrases = _joined().get("".join(words[start:end]), ())
            yield from (phrase for phrase in phrases if not phrase.whole and phrase.words == words[start:end])


def _inside(words: tuple[str, ...]) -> Iterable[Phrase]:
    """The phrases that are part of a compound; those of several words also of the whole name."""
    for part in {part for word in words for part in _ends(word)}:
        yield from (phrase for phrase in _joined().get(part, ()) if not phrase.whole)
    for part in _ends("".join(words)):
        yield from (phrase for phrase in _joined().get(part, ()) if not phrase.whole and len(phrase.words) > 1)


def _ends(word: str) -> Iterable[str]:
    """The beginnings and endings of a word after which nothing, a plural s or at least three letters are left."""
    for size in range(MIN_COMPOUND_LETTERS, len(word) + 1):
        if word[size:] in ("", "s") or len(word) - size >= 3:
            yield word[:size]
        if word[:-size] in ("", "s") or len(word) - size >= 3:
            yield word[-size:]


def meaning_of(text: str) -> Meaning | None:
    """The first meaning of the table whose phrase is in a name: whole words first, then parts of compounds.

    Misleads when a word means something else in another language, or abbreviations are the author's own: the reason
    says what was read. Cost: a look-up for each run of words and each end of a word.

    >>> meaning_of("Geburtsdatum").name, meaning_of("dateOfBirth").language, meaning_of("household_weights").role
    ('birth_date', 'English', 'weight')
    >>> meaning_of("code_postal").words, meaning_of("xyz")
    ('a place', None)
    """
    name = split(text)
    spellings = dict.fromkeys((name, bare(name), *spelled_out(name), unbound(name)))
    for find in (_standing, _inside):
        matches = [phrase for words in spellings for phrase in find(words)]
        matches = [phrase for phrase in matches if not (phrase.meaning.role == "weight" and scaled(name))]
        if matches:
            return min(matches, key=lambda phrase: (-len(unbound(phrase.words)), phrase.place)).meaning
    return None


def codebook_meanings(columns: Iterable[str]) -> Mapping[str, Meaning]:
    """The meanings of names that a well-known survey or register gives its variables; none where no book is seen.

    Misleads when other files use the same names: one of the book's signs must be there, and four of its names that say
    nothing by themselves.

    >>> names = ["HB030", "RB090", "RB080", "DB040", "PY010G", "own"]
    >>> {name: meaning.words for name, meaning in codebook_meanings(names).items()}["RB090"]
    'sex in EU-SILC'
    >>> codebook_meanings(["v012", "v013", "v024", "v025", "v106"])
    {}
    """
    lowered = {column: column.lower() for column in columns}
    best: Mapping[str, Meaning] = {}
    for signs, names in _codebooks():
        meanings = {c: meaning for c, low in lowered.items() if (meaning := _in_book(low, names))}
        cryptic = sum(meaning_of(column) is None for column in meanings) if signs & set(lowered.values()) else 0
        best = meanings if cryptic >= MIN_CODEBOOK_NAMES and len(meanings) > len(best) else best
    return best


def _in_book(name: str, names: Mapping[str, Meaning]) -> Meaning | None:
    return names.get(name) or next((m for text, m in names.items() if "*" in text and fnmatchcase(name, text)), None)


@cache
def _codebooks() -> tuple[tuple[frozenset[str], Mapping[str, Meaning]], ...]:
    """The signs of each codebook, and its names with their meanings."""
    table, books = packaged("inspection/column_names.toml"), []
    for title, entry in packaged("inspection/codebooks.toml").items():
        signs = frozenset(sign.strip() for sign in entry["signs"].split(","))
        meanings = {meaning: text for meaning, text in entry.items() if meaning != "signs"}
        names = [(name.strip(), meaning) for meaning, text in meanings.items() for name in text.split(",")]
        words = {meaning: f"{table[meaning]['words']} in {title}" for meaning in meanings}
        books.append(
            (signs, {n: Meaning(m, table[m]["role"], words[m], "English", i) for i, (n, m) in enumerate(names, 1)})
        )
    return tuple(books)


def spelled_out(words: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """The words with the abbreviations at their ends written out: nr in the languages that write it so, and wt.

    >>> spelled_out(("huishoudnr",)), spelled_out(("nr", "dowodu"))[1], spelled_out(("perwt",))
    ((('huishoudnummer',), ('huishoudnumer',)), ('numer', 'dowodu'), (('per', 'weight'),))
    """
    spellings = [tuple(SHORT.sub(number, word) for word in words) for number in ("nummer", "numer")]
    spellings.append(tuple(part for word in words for part in WEIGHT.sub(" weight", word).split()))
    return tuple(dict.fromkeys(spelling for spelling in spellings if spelling != words))


def unbound(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words without articles and prepositions: factor de elevacion is factor elevacion.

    >>> unbound(("date", "of", "birth")), unbound(("de",))
    (('date', 'birth'), ('de',))
    """
    return tuple(word for word in words if word not in BINDING_WORDS) or words


def scaled(words: tuple[str, ...]) -> bool:
    """Whether a name has a unit of mass or length in it: a weight in kilograms is no survey weight.

    >>> scaled(split("weight_kg")), scaled(split("sampling weight"))
    (True, False)
    """
    return not UNIT_WORDS.isdisjoint(words)


def split(text: str) -> tuple[str, ...]:
    """A name as plain words.

    >>> split("AlterGruppe_2"), split("né le"), split("NUTS3")
    (('alter', 'gruppe', '2'), ('ne', 'le'), ('nuts3',))
    """
    return tuple(WORD_PATTERN.findall(plain(CAMEL_CASE_PATTERN.sub(" ", text))))


def bare(words: tuple[str, ...]) -> tuple[str, ...]:
    """Words without the numbers at their ends."""
    return tuple(stem for word in words if (stem := word.rstrip("0123456789")))


def plain(text: str) -> str:
    """Small letters without accents."""
    marked = unicodedata.normalize("NFKD", text.lower().translate(LETTERS))
    return "".join(c for c in marked if not unicodedata.combining(c))


@cache
def phrases() -> tuple[Phrase, ...]:
    """Every phrase, in the order of the table, long ones of a meaning first; German umlauts also as two letters."""
    table = packaged("inspection/column_names.toml")
    phrase_by_words: dict[tuple[tuple[str, ...], bool], Phrase] = {}
    for name, entry in table.items():
        for code, language in LANGUAGES.items():
            meaning = Meaning(name, entry["role"], entry["words"], language)
            for text in entry[code].split(","):
                whole = text.strip().startswith("=")
                for spelling in {text.lower(), text.lower().translate(UMLAUTS)}:
                    words = tuple(WORD_PATTERN.findall(plain(spelling)))
                    phrase_by_words.setdefault((words, whole), Phrase(meaning, words, whole))
                    if len(unbound(words)) > 1:
                        phrase_by_words.setdefault((unbound(words), whole), Phrase(meaning, unbound(words), whole))
    place = {name: i for i, name in enumerate(table)}
    ranked = sorted(phrase_by_words.values(), key=lambda p: (place[p.meaning.name], -len(p.words)))
    return tuple(replace(phrase, place=rank) for rank, phrase in enumerate(ranked))


@cache
def _joined() -> dict[str, list[Phrase]]:
    """Every phrase by its words written together."""
    phrases_by_text: dict[str, list[Phrase]] = {}
    for phrase in phrases():
        phrases_by_text.setdefault(phrase.joined, []).append(phrase)
    return phrases_by_text
