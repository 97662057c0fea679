"""Formatting of scores, names and numbers for people."""

import re
from collections.abc import Collection, Iterable
from math import floor, isfinite, log10

from equipoise.ground.system import packaged
from equipoise.methods.score import Score

FRACTIONS = {
    "half": 1 / 2,
    "a third": 1 / 3,
    "two thirds": 2 / 3,
    "a quarter": 1 / 4,
    "three quarters": 3 / 4,
    "a fifth": 1 / 5,
    "a tenth": 1 / 10,
    "a twentieth": 1 / 20,
    "a hundredth": 1 / 100,
}
SCOPED_NAME = re.compile(
    r"(?P<measure>\w+(?:\(.*?\))?)(?:\[(?P<scenario>[^\[\]()]+)\])?(?: by (?P<by>.+?))?(?P<worst> \(worst record\))?",
    re.DOTALL,
)
SCOPE_WORDS = {"scenario": "scenario {}", "by": "worst group of {}", "worst": "worst record"}
"""Words for a measure taken for one intruder, within groups, or of the worst record."""
MAX_BRIEF_LETTERS = 48
"""Most letters of a name on an axis."""
MAX_LISTED_VALUES = 5
"""Most values of a parameter in the name of a score; the policy has them all."""
EXACT_TOLERANCE = 0.001
"""A share this close to a fraction is called equal to it."""


def title(name: str, without: Collection[str] = ()) -> str:
    """The name of a score for people, without the parameters named; with its scenario and its groups.

    >>> title("uniques(k=2)"), title("entropy"), title("nearest(known=('age', 'sex'), truth='nearest')", ["truth"])
    ('Uniques (k = 2)', 'Entropy kept', 'Nearest record (known = age and sex)')
    >>> title("uniques(k=3)[journalist] by region, sex"), title("individual (worst record)")
    ('Uniques (k = 3), scenario journalist, worst group of region, sex', 'Individual, worst record')
    """
    match = SCOPED_NAME.fullmatch(name)
    if match and (more := [words.format(match[part]) for part, words in SCOPE_WORDS.items() if match[part]]):
        return ", ".join((title(match["measure"], without), *more))
    bare, _, inside = name.partition("(")
    words = packaged("presentation/measure_titles.toml").get(bare) or bare.replace("_", " ").capitalize()
    parameters = ", ".join(_parameter(part) for part in _parts(inside) if part.partition("=")[0] not in without)
    return f"{words} ({parameters})" if parameters else words


def brief(name: str) -> str:
    """The name of a score where there is little room: without its parameters if they make it long.

    >>> brief("uniques(k=2)"), brief("nearest(known=('industry', 'region', 'size'))[rival]")
    ('Uniques (k = 2)', 'Nearest record, scenario rival')
    """
    whole, match = title(name), SCOPED_NAME.fullmatch(name)
    if len(whole) <= MAX_BRIEF_LETTERS or match is None:
        return whole
    return title(match["measure"].partition("(")[0] + name.removeprefix(match["measure"]))


def _parts(inside: str) -> list[str]:
    """The parameters of a label; commas within brackets and quotes do not separate."""
    parts, depth, quote = [""], 0, ""
    for letter in inside.removesuffix(")"):
        quote = "" if letter == quote else letter if not quote and letter in "'\"" else quote
        depth += 0 if quote else (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def _parameter(text: str) -> str:
    """A parameter as people write it; several values are a list."""
    name, mark, value = text.partition("=")
    several = _parts(value[1:-1]) if value.startswith("(") and value.endswith(")") else []
    if len(several) > MAX_LISTED_VALUES:
        several = [*several[: MAX_LISTED_VALUES - 1], f"{len(several) - MAX_LISTED_VALUES + 1} others"]
    plain = listed(several) if several else value
    words = re.sub(r"\.0\b", "", plain.replace("'", ""))
    return f"{name} = {words}" if mark else re.sub(r"\.0\b", "", text.replace("'", ""))


def is_share(unit: str) -> bool:
    """Whether a score is shown in percent."""
    return unit.startswith(("share", "probability"))


def number(value: float) -> str:
    """Three significant digits, thousands apart.

    >>> number(12345.6), number(10.7023), number(0.0), number(0.00021)
    ('12,346', '10.7', '0', '0.00021')
    """
    return _decimals(value, 2 - _magnitude(value))


def value_text(value: float, unit: str) -> str:
    """A value as people write it; shares in percent, to two decimals.

    >>> value_text(0.01257, "share of records").replace("\\xa0", " "), value_text(10.7, "bits per record")
    ('1.26 %', '10.7')
    """
    if not is_share(unit):
        return number(value)
    percent = 100 * value
    size = _magnitude(percent)
    return f"{_decimals(percent, 1 if size > 0 else max(2, 1 - size))}\xa0%"


def percent(share: float) -> str:
    """A share in whole percents, with decimals only where it would round to 0 or 100.

    >>> [percent(share).replace("\\xa0", " ") for share in (0.3846, 0.00066, 0.9996, 0.0, 1.0)]
    ['38 %', '0.066 %', '99.96 %', '0 %', '100 %']
    """
    near = min(share, 1 - share)
    digits = 0 if share in (0.0, 1.0) or near >= 0.01 else 1 - _magnitude(100 * near)
    return f"{_decimals(100 * share, digits)}\xa0%"


def fraction(share: float) -> str | None:
    """A simple fraction in words where a share is within a point (and a twentieth of itself) of one.

    >>> fraction(0.2), fraction(0.253), fraction(0.42), fraction(2 / 3)
    ('a fifth', 'about a quarter', None, 'two thirds')
    """
    near, name = min((abs(share - value), name) for name, value in FRACTIONS.items())
    if near > min(0.01, 0.05 * share):
        return None
    return name if near <= EXACT_TOLERANCE else f"about {name}"


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
    text = f"{value_text(score.value, score.unit)} {unit}".rstrip()
    if score.interval is None:
        return text
    low, high = (value_text(end, score.unit) for end in score.interval)
    return f"{text} (between {low} and {high})"


def listed(words: Iterable[str]) -> str:
    """Words in a sentence.

    >>> listed(["age", "sex", "region"])
    'age, sex and region'
    """
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
