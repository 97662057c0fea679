"""Keys limited to what an intruder could know of a person together, and keys of which one follows from another."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations

import polars as pl

from equipoise.data.hierarchy import Hierarchy
from equipoise.inspection.column_names import meaning_of
from equipoise.inspection.propose_hierarchies import MAX_LISTED_CATEGORIES

MAX_KEYS, MIN_NAMED_KEYS = 8, 4
"""Keys that somebody is taken to know together; keys with telling names that are enough where there are more."""
KNOWN_FIRST = (
    "age", "birth_date", "sex", "place", "coordinates", "family", "origin", "education", "labour", "industry",
    "size_class", "time", "part_of_household", "year_of_birth", "kind", "dwelling", "body",
)  # fmt: skip
"""Meanings in the order in which neighbours, colleagues and public sources know them."""
MIN_BATTERY = 8
"""Columns whose names differ by a number alone, from which they are answers to a list of questions."""
QUESTION = re.compile(r"([A-Za-z]{1,3})_?\d+[a-z]?_")
"""The number of a question before its subject: q12_taxes."""
REASONS = {
    "answers": "one of many answers numbered alike, not taken for known together with the keys; limited beside them",
    "unnamed": "not taken for known together with the keys, whose names tell; limited beside them",
    "further": f"not among the {MAX_KEYS} that somebody is likeliest to know together; limited beside them",
}

Pairs = Mapping[str, tuple[str, ...]]


def columns_beside(keys: Mapping[str, str | None], follows: Pairs) -> dict[str, str]:
    """The proposed keys (with the meaning of their names) that stay beside the keys, and why.

    A column that follows from another counts with it: the intruder who knows the municipality knows the region.

    >>> columns_beside({"age": "age", "sex": "sex", "q1": None}, {})
    {}
    >>> answers = {f"q{i}": None for i in range(9)}
    >>> named = {"age": "age", "sex": "sex", "town": "place", "race": "origin"}
    >>> list(columns_beside({**named, **answers}, {})) == list(answers)
    True
    """
    followers = {coarse for columns in follows.values() for coarse in columns}
    questions = Counter(question[1] for key in keys if (question := QUESTION.match(key)))
    battery = {key for key in keys if (question := QUESTION.match(key)) and questions[question[1]] >= MIN_BATTERY}
    telling = [key for key, meaning in keys.items() if meaning and key not in battery]
    unnamed = [key for key, meaning in keys.items() if not meaning or key in battery]
    stems = Counter(stem for key in unnamed if (stem := _stem(key)))
    numbered = [key for key in unnamed if key in battery or stems[_stem(key)] >= MIN_BATTERY]
    answers = numbered if len(telling) > 1 else []
    many = len(keys) - len(followers) > MAX_KEYS and len(telling) >= MIN_NAMED_KEYS
    beside = dict.fromkeys(answers, REASONS["answers"])
    beside |= {key: beside.get(key, REASONS["unnamed"]) for key in unnamed} if many else {}
    rest = [key for key in keys if key not in beside and key not in followers]
    late = _by_knowledge(rest, keys)[MAX_KEYS:]
    late += [coarse for coarse in followers if all(fine in late for fine in follows if coarse in follows[fine])]
    return {**beside, **dict.fromkeys(late, REASONS["further"])}


def _stem(key: str) -> str:
    """A name without its numbers, where it has one: q for q12."""
    return re.sub(r"\d+", "#", key) if re.search(r"\d", key) else ""


def replicate_weights(columns: Iterable[str]) -> list[str]:
    """Weights of replicates, by their names: noise would spoil them, and they tell what coarser weights hide.

    >>> replicate_weights(["PWGTP", "age", *(f"PWGTP{i}" for i in range(1, 81))])[:2]
    ['PWGTP1', 'PWGTP2']
    """
    weights = [c for c in columns if _stem(c) and (meaning := meaning_of(c)) and meaning.name == "weight"]
    stems = Counter(map(_stem, weights))
    return [c for c in weights if stems[_stem(c)] >= MIN_BATTERY]


def _by_knowledge(columns: Sequence[str], keys: Mapping[str, str | None]) -> list[str]:
    """The first column of each meaning, in the order of what is known first, then the second ones."""
    turn: dict[str, int] = {}
    rank: dict[str, tuple[int, int]] = {}
    for column in columns:
        meaning = keys[column] or column
        place = KNOWN_FIRST.index(meaning) if meaning in KNOWN_FIRST else len(KNOWN_FIRST)
        rank[column] = (turn.get(meaning, 0), place)
        turn[meaning] = turn.get(meaning, 0) + (meaning != "coordinates")  # two of them are one place
    return sorted(columns, key=lambda column: rank[column])


def following(table: pl.DataFrame, keys: Mapping[str, str | None]) -> dict[str, tuple[str, ...]]:
    """For a key the others of the same meaning that follow from it, the finest first: region from municipality.

    >>> table = pl.DataFrame({"town": ["a", "b", "c"] * 9, "land": ["x", "x", "y"] * 9})
    >>> following(table, {"town": "place", "land": "place"})
    {'town': ('land',)}
    """
    sizes = {key: table[key].n_unique() for key in keys}
    pairs = [
        (fine, coarse)
        for fine, coarse in permutations(keys, 2)
        if keys[fine] not in (None, "coordinates")
        and keys[fine] == keys[coarse]
        and 2 <= sizes[coarse] < sizes[fine] <= table.height / 3
        and table.select(fine, coarse).n_unique() == sizes[fine]
    ]
    ordered = sorted(pairs, key=lambda pair: -sizes[pair[1]])
    return {fine: tuple(c for f, c in ordered if f == fine) for fine in dict.fromkeys(f for f, _ in ordered)}


def from_columns(table: pl.DataFrame, fine: str, coarser: Iterable[str]) -> Hierarchy | None:
    """The hierarchy of a key that other columns give, its categories named; None where they are too many or cross."""
    rows = table.select(fine, *coarser).drop_nulls().unique().sort(fine)
    chain = [c for i, c in enumerate(rows.columns) if i == 0 or _nests(rows, rows.columns[i - 1], c)]
    if rows.height > MAX_LISTED_CATEGORIES or rows[fine].n_unique() < rows.height or len(chain) < 2:
        return None
    labels = rows.select(fine, *(pl.col(c).cast(pl.String) for c in chain[1:])).rows()
    return Hierarchy.mapping({value: groups for value, *groups in labels}, other="other", names=chain[1:])


def _nests(rows: pl.DataFrame, fine: str, coarse: str) -> bool:
    return rows.select(fine, coarse).n_unique() == rows[fine].n_unique()
