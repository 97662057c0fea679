"""The analyses that users of a file may be expected to make, from its columns and their roles."""

from collections.abc import Iterator
from itertools import combinations

import polars as pl

from equipoise.data.branches import Prefix, ValueMapping
from equipoise.data.hierarchy import Hierarchy
from equipoise.data.records import Records

MAX_CATEGORIES = 50
"""Categories of a column at most: beyond that it is text, or a number."""
MAX_GROUP_CATEGORIES = 12
"""Categories of a column that is crossed with another at most."""
MAX_DISTRIBUTIONS = 200
"""Columns whose own distribution is looked at: those with a role first, then in the order of the file."""
MAX_NUMBERS, MAX_CROSSED, MAX_GROUPINGS, MAX_CAUSES = 10, 6, 3, 4
"""Columns that are taken in pairs at most: numbers, categories, groups of means; causes in a regression."""
QUANTILES = (0.1, 0.5, 0.9)


def default_queries(original: Records) -> tuple[str, ...]:
    """One-way distributions, means by group, associations in pairs, a regression or classifier of each obvious outcome.

    Columns with a role that is no content (id, weight, household, person, direct identifiers, sample) are left out, and
    so is text of more than 50 categories; the distributions of 200 columns are looked at. Outcomes are the sensitive
    numbers, else the first number with that role, and the sensitive columns of two values.
    """
    numbers, categories = _content(original)
    few = [c for c, size in categories.items() if size <= MAX_GROUP_CATEGORIES]
    return tuple(_queries(original, numbers[:MAX_NUMBERS], categories, few))


def content(original: Records) -> tuple[str, ...]:
    """The columns that users analyse, whatever their names."""
    numbers, categories = _content(original, reserved=True)
    return (*numbers, *categories)


def _queries(original: Records, numbers: list[str], categories: dict[str, int], few: list[str]) -> Iterator[str]:
    yield from (f"table:{column}" for column in [*categories][:MAX_DISTRIBUTIONS])
    for column in numbers:
        yield f"mean:{column}"
        yield from (f"quantile:{column},{share}" for share in QUANTILES)
        yield from (f"mean:{column} by {group}" for group in few[:MAX_GROUPINGS])
    yield from (f"correlation:{one},{two}" for one, two in combinations(numbers, 2))
    yield from (f"table:{one},{two}" for one, two in combinations(few[:MAX_CROSSED], 2))
    roles = original.roles
    outcomes = [c for c in roles.sensitive if c in numbers] or [c for c in roles.numeric if c in numbers][:1]
    for outcome in outcomes:
        causes = [c for c in (*few, *numbers) if c != outcome][:MAX_CAUSES]
        if causes:
            yield f"regression:{outcome} ~ {' + '.join(causes)}"
    for outcome in (c for c in roles.sensitive if categories.get(c) == 2):
        causes = [c for c in (*numbers[:2], *few) if c != outcome][:MAX_CAUSES]
        if causes:
            yield f"logit:{outcome} ~ {' + '.join(causes)}"


def _content(original: Records, *, reserved: bool = False) -> tuple[list[str], dict[str, int]]:
    """The numbers, and the categories with how many there are; the keys first, as the roles name them."""
    roles, schema = original.roles, original.schema()
    apart = {roles.id, roles.weight, roles.household, roles.person, roles.sample, *roles.direct}
    by_role = (*roles.keys, *roles.sensitive, *roles.numeric, *schema)
    columns = [c for c in dict.fromkeys(by_role) if c in schema and c not in apart]
    columns = [c for c in columns if reserved or not _reserved(c)]
    table = original.collect(*columns) if columns else pl.DataFrame()
    kinds = table.schema
    distinct = {c: table[c].drop_nulls().n_unique() for c in columns if not kinds[c].is_nested()}
    amounts = {c for c in distinct if kinds[c].is_numeric() and not _codes(roles.hierarchies.get(c))}
    many = {c for c in amounts if distinct[c] > MAX_GROUP_CATEGORIES}
    numbers = [c for c in distinct if c in many]
    return numbers, {c: n for c, n in distinct.items() if c not in many and 1 < n <= MAX_CATEGORIES}


def _codes(tree: Hierarchy | None) -> bool:
    """Whether a hierarchy is that of codes: numbers that are merged one by one, or by their first digits."""
    return tree is not None and all(isinstance(branch, ValueMapping | Prefix) for branch in tree.branches)


def _reserved(column: str) -> bool:
    """Names that a query would read as its own signs."""
    return any(mark in column for mark in (",", "+", "~", ":", "@", " by "))
