"""Patterns of values without a telling name: years, ages, codes, pseudonyms, numbers of records and groups."""

from equipoise.inspection.column_facts import Facts

MAX_AGE_YEARS = 130
"""The greatest age."""
MAX_KEY_CATEGORIES = 20
"""Distinct whole numbers up to which they are taken for codes of categories."""
MAX_KEY_SPREAD = 0.2
"""Distinct texts per record up to which they are taken for categories."""
MIN_GROUP_SPREAD, MAX_GROUP_SPREAD = 0.1, 0.8
"""Numbers per record between which they may number groups of records."""
MIN_PSEUDONYM_CHARACTERS = 8
"""Characters that codes of people have at least."""


def with_point(facts: Facts) -> bool:
    """Whether decimals may be codes of a classification, such as 10.71: below 100, two decimals, many records each."""
    low, high = facts.range() if facts.kind == "decimal" else (0.0, 0.0)
    fine = facts.shaped.str.contains(r"\.\d{3}").any()
    return 1 <= low < high < 100 and facts.share <= MAX_KEY_SPREAD and not fine


def years(facts: Facts) -> bool:
    """Whether values are years: whole numbers of recent centuries, many more records than values."""
    low, high = facts.range()
    return low >= 1800 and high <= 2100 and facts.share <= MAX_KEY_SPREAD


def dense(facts: Facts) -> bool:
    """Whether values are nearly all whole numbers of a range, none above a great age."""
    low, high = facts.range()
    return low >= 0 and high <= MAX_AGE_YEARS and facts.distinct >= 0.9 * (high - low + 1)


def numbering(facts: Facts) -> bool:
    """Whether values may number records: texts, or whole numbers without gaps or of one length."""
    if facts.kind == "whole":
        return counting(facts) or facts.shaped.str.len_chars().n_unique() == 1
    return facts.kind == "text"


def coded_alike(facts: Facts) -> bool:
    """Whether texts that repeat are long codes of one length, as pseudonyms are."""
    if facts.kind != "text" or facts.unique:
        return False
    sizes = facts.shaped.str.len_chars()
    return sizes.n_unique() == 1 and sizes[0] >= MIN_PSEUDONYM_CHARACTERS and not facts.shaped.str.contains(r"\s").any()


def numbered_groups(facts: Facts) -> bool:
    """Whether whole numbers rise from group to group of a few records each, as numbers of households do."""
    if facts.kind != "whole" or not MIN_GROUP_SPREAD < facts.share < MAX_GROUP_SPREAD:
        return False
    return facts.distinct > MAX_KEY_CATEGORIES and facts.values.is_sorted()


def counting(facts: Facts) -> bool:
    """Whether values are whole numbers without gaps."""
    if facts.kind != "whole":
        return False
    low, high = facts.range()
    return high - low + 1 == facts.records
