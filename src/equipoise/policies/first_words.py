"""Words of a first policy: the three sentences at its head, and the refusals of files for which none is proposed."""

import re
from collections.abc import Iterator
from math import prod

from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.ground.errors import DataError, RefusedError
from equipoise.inspection.suggest_roles import Suggestion
from equipoise.presentation.numbers import listed

MAX_LISTED_KEYS = 8
"""Keys that are named; of more, the first ones."""
MAX_COLUMNS, MIN_RECORDS = 2000, 30
"""Columns at most and records at least of a file for which a first policy is proposed."""
NUMBER_PATTERN = re.compile(r"[+-]?\d+(?:[.,]\d+)?")
"""Names that are numbers."""
COUNT_NAMES = re.compile(
    "n|n?obs|nbobs|(cell)?counts?|freq|frequency|frequencies|cases|ant|antall|anzahl|anz|fallzahl|effectifs?|nombre|nb|"
    "frecuencia|recuento|conteo|frequenza|conteggio|aantal|contagem|liczba"
)
"""Names of columns that say how many, without case and marks."""
MIN_FILLED_SHARE = 0.3
"""Share of all combinations of the categories that a table has at least; a file of people has few of them."""


def head_sentences(roles: Roles, suggestion: Suggestion, released: int, *, preset: str | None = None) -> Iterator[str]:
    """What was assumed, what could not be known, and the two decisions that change most, as comments.

    `released` columns are those that are not withheld.
    """
    yield f"# It assumes that {_knowledge(roles, released)}."
    yield f"# It could not know {listed(list(_unknown(roles)))}."
    yield f"# Two decisions matter most: {listed(list(_decisions(roles, suggestion, preset)))}."


def _knowledge(roles: Roles, released: int) -> str:
    """What an intruder is taken to know."""
    if not roles.keys:
        return "somebody may know all numbers of a person or firm, and whom to look for"
    more = len(roles.keys) - MAX_LISTED_KEYS
    keys = listed([*roles.keys[:MAX_LISTED_KEYS], *([f"{more} more"] if more > 0 else [])])
    others = "" if released <= len(roles.keys) else ", or up to two of the other columns, but not both"
    return f"somebody may know {keys} of a person or firm together{others}"


def _unknown(roles: Roles) -> Iterator[str]:
    """What a file does not tell."""
    yield "which lists with such columns exist outside"
    yield "which analyses users will make"
    if roles.numeric:
        yield "how near to the truth a guess of an amount may come, above all of the largest, which stay near"
    if not roles.weight and not roles.household:
        yield "whether the file is a sample" + ("" if roles.person else " and whose records belong together")


def _decisions(roles: Roles, suggestion: Suggestion, preset: str | None) -> Iterator[str]:
    """The two decisions that change risk and use most."""
    beside = [p for p in suggestion.proposals if p.role == "none" and "limited beside" in p.reason]
    if not roles.keys:
        yield "whether anybody could know these numbers, and so whether the limit on links is needed"
        yield "how many in a hundred may be linked (the limit on nearest)"
        return
    also = f" ({len(beside)} further column{'s' if len(beside) > 1 else ''} could be)" if beside else ""
    yield f"which columns are keys{also}"
    yield (
        f"whether the limits of {preset} are those that bind you"
        if preset
        else ("how many may stand alone on them (the limit on uniques)")
    )


def refuse_wide(columns: int) -> None:
    if columns > MAX_COLUMNS:
        raise DataError(
            f"The file has {columns:,} columns, and a first policy is proposed for {MAX_COLUMNS:,} at most: leave out "
            "columns that nobody needs, or write the policy yourself."
        )


def refuse_nameless(columns: list[str]) -> None:
    """Refuse columns that are all called by numbers: a record stands where their names belong, and would be told."""
    numbered = [str(i) for i in range(len(columns) + 1)]
    if all(NUMBER_PATTERN.fullmatch(c) for c in columns) and columns not in (numbered[:-1], numbered[1:]):
        raise DataError("The first row of the file has numbers, not names of columns: write a row of names above it.")


def refuse_few(records: int) -> None:
    if records < MIN_RECORDS:
        raise RefusedError(
            f"Nothing is proposed for {records:,} records: nobody is hidden among so few, and no estimate rests on "
            f"{MIN_RECORDS}. Decide whether totals are published instead, or the records of more people are added."
        )


def refuse_cells(records: Records, roles: Roles) -> None:
    """Refuse a table of counts: a column says how many, and no combination of the categories comes twice.

    Misleads when a table has few of its combinations, or its counts have a name of their own.
    """
    count = next((c for c in records.schema() if COUNT_NAMES.fullmatch(re.sub(r"[\W_]", "", c.lower()))), None)
    units = (roles.id, roles.person, roles.household, *roles.direct)
    if count is None or any(units) or not records.schema()[count].is_numeric():
        return
    by = _spanning(records, [c for c in records.schema() if c != count and c not in roles.numeric])
    if by:
        names = ",".join(by)
        raise RefusedError(
            f"Nothing is proposed: each row is the only one of its {listed(by)}, and {count!r} says how many, so that "
            f"rows are cells of a table and not people. Protect it as a table: equipoise table FILE --ready "
            f"--by {names} --count {count} --rule min-count:3. If every row is a person, call {count!r} otherwise."
        )


def _spanning(records: Records, columns: list[str]) -> list[str]:
    """The columns whose combinations are the rows of a table; none where rows repeat or combinations are rare."""
    table = records.collect(*columns)
    if not columns or table.n_unique() < table.height:
        return []
    for column in sorted(columns, key=lambda c: table[c].n_unique()):  # what follows from finer ones goes first
        rest = [c for c in columns if c != column]
        columns = rest if rest and table.select(rest).n_unique() == table.height else columns
    combinations = prod(table[c].n_unique() for c in columns)
    return columns if len(columns) > 1 and table.height >= MIN_FILLED_SHARE * combinations else []
