"""Scores in words and numbers that people read."""

import re
from math import floor, isfinite, log10

from equipoise.core.score import Score

NAMES = {"entropy": "Entropy kept", "moments": "Change of moments"}
"""Where the name of a measure does not say what its axis shows."""


def title(name: str) -> str:
    """The name of a score for people.

    >>> title("uniques(k=2)"), title("entropy")
    ('Uniques (k = 2)', 'Entropy kept')
    """
    bare, _, inside = name.partition("(")
    words = NAMES.get(bare) or bare.replace("_", " ").capitalize()
    given = re.sub(r"\.0\b", "", inside.removesuffix(")").replace("'", "").replace("=", " = "))
    return f"{words} ({given})" if given else words


def is_share(unit: str) -> bool:
    """Whether a score is shown in percent."""
    return unit.startswith(("share", "probability"))


def number(value: float) -> str:
    """Three significant digits, thousands apart.

    >>> number(12345.6), number(10.7023), number(0.0), number(0.00021)
    ('12,346', '10.7', '0', '0.00021')
    """
    return _decimals(value, 2 - _magnitude(value))


def said(value: float, unit: str) -> str:
    """A value as people write it; shares in percent, to two decimals.

    >>> said(0.01257, "share of records").replace("\\xa0", " "), said(10.7, "bits per record")
    ('1.26 %', '10.7')
    """
    if not is_share(unit):
        return number(value)
    percent = 100 * value
    size = _magnitude(percent)
    return f"{_decimals(percent, 1 if size > 0 else max(2, 1 - size))}\xa0%"


def _magnitude(value: float) -> int:
    return floor(log10(abs(value))) if value and isfinite(value) else 0


def _decimals(value: float, digits: int) -> str:
    """A fixed number of decimals, without zeros at the end."""
    if not isfinite(value):
        return "not known"
    text = f"{value:,.{min(8, max(0, digits))}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", "−")


def in_words(score: Score) -> str:
    """A score with its unit and, where there is one, its interval."""
    unit = score.unit.partition(" ")[2] if is_share(score.unit) else score.unit
    text = f"{said(score.value, score.unit)} {unit}".rstrip()
    if score.interval is None:
        return text
    low, high = (said(end, score.unit) for end in score.interval)
    return f"{text} (between {low} and {high})"
