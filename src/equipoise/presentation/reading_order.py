"""Order of categories as people read them, and their labels: bands and months in order, totals last.

One order for reports, pages, the terminal and written tables:

1. the order that was declared (`Axis.declared`): that of the rows of a hierarchy, or of the categories of an Enum
   column;
2. numbers and bands by their upper end (1-9 < 10-49 < 50-249 < 250+; under 5 < 5-9; 0 < under 10), then months,
   weekdays and quarters, then texts with the numbers in them compared as numbers (EQ2 < EQ11), then what is missing;
3. a group stands before its members, which are indented; the total stands last.
"""

import re
from collections import Counter
from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np

from equipoise.data.labels import Column
from equipoise.data.tables.axes import MISSING, Axis
from equipoise.data.tables.table import Table
from equipoise.ground.arrays import Integers

NUMBER = r"[-+]?\d+(?:\.\d+)?"
ENDS = rf"({NUMBER}|-?inf|-?∞)\s*[,;]\s*({NUMBER}|\+?inf|\+?∞)"
BRACKETS = re.compile(rf"[\[(\]]\s*{ENDS}\s*([\])\[])")
RANGE = re.compile(rf"(\D*?)({NUMBER})\s*(?:-|–|—|to|until|\.\.+)\s*({NUMBER})\D*")
SINGLE = re.compile(rf"(\D*?)({NUMBER})(\D*)")
THOUSANDS = re.compile(r"(?<=\d)[,\u202f\u00a0'’ ](?=\d{3}(?!\d))")
ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b")
UNITS = re.compile(r"[€$£]|\b(?:aged?|from|eur|usd|the|than)\b")
BELOW = re.compile(r"<|≤|\b(?:under|below|less|fewer|up to|at most|max|maximum|until|younger|(?:not?) (?:more|over))\b")
ABOVE = re.compile(r">|≥|\b(?:over|above|more|at least|min|minimum|older|from|greater|(?:not?) (?:less|fewer|under))\b")
STRICTLY_BELOW = re.compile(r"<(?!=)|\b(?:under|below|less|fewer|younger)\b")
OR_LESS = re.compile(r"\b(?:and|or|&) (?:under|below|less|fewer|younger)\b")
OR_MORE = re.compile(r"^\s*\+|\b(?:and|or|&) (?:over|above|more|older|greater|up|upwards?|plus)\b")
NAMES = {
    name: place
    for group in (
        "january february march april may june july august september october november december",
        "monday tuesday wednesday thursday friday saturday sunday",
    )
    for place, name in enumerate(group.split())
}
QUARTER = re.compile(r"(?:(\d{4})\W?)?q(?:uarter\s*)?([1-4])(?:\W+(\d{4}))?")
NAMED_PERIOD = re.compile(r"([^\W\d_]+)\.?(?:\W+(\d{4}|\d{2}))?")
BANDS, PERIODS, TEXTS, ABSENT = range(4)
"""Kinds of labels, in the order in which they stand."""
Key = tuple[Any, ...]


def reading_key(label: str) -> Key:
    """Key that sorts labels as people read them; different labels have different keys.

    >>> sorted(["50-249", "250+", "1-9", "Total", "10-49", "under 1"], key=reading_key)
    ['under 1', '1-9', '10-49', '50-249', '250+', 'Total']
    >>> sorted(["10 and over", "5 to 9", "<5", "EQ11", "EQ2", "Mar", "Feb"], key=reading_key)
    ['<5', '5 to 9', '10 and over', 'Feb', 'Mar', 'EQ2', 'EQ11']
    >>> sorted(["9th", "12th", "1st-4th", "5th-6th"], key=reading_key)
    ['1st-4th', '5th-6th', '9th', '12th']
    """
    text = label.strip().lower().replace("−", "-")
    if label == MISSING or not text:
        return (ABSENT, (), (), label)
    if (band := _band(text)) is not None:
        return (BANDS, band, (), label)
    if (period := _period(text)) is not None:
        return (PERIODS, period, (), label)
    return (TEXTS, (), _chunks(text), label)


def _band(text: str) -> tuple[float, ...] | None:
    """Upper end, whether it belongs to the band, and lower end of a number or band; None for other texts."""
    if match := BRACKETS.fullmatch(text):
        low, high = (_end(end) for end in match.groups()[:2])
        return (high, float(match[3] == "]"), low) if low <= high else None
    text = ORDINAL.sub("", text)
    plain = THOUSANDS.sub("", UNITS.sub("", text)).strip()
    if match := RANGE.fullmatch(plain):
        low, high = float(match[2]), float(match[3])
        return (high, 1.0, low) if low <= high and not _named(match[1]) else None
    match = SINGLE.fullmatch(THOUSANDS.sub("", text))
    if match is None or _named(before := match[1]):
        return None
    value = float(match[2])
    if OR_MORE.search(match[3]) or (ABOVE.search(before) and not _is_below(before)):
        return (inf, 1.0, value)
    if OR_LESS.search(match[3]) or _is_below(before):
        return (value, float(not STRICTLY_BELOW.search(before)), -inf)
    return (value, 1.0, value)


def _end(text: str) -> float:
    return float(text) if text[-1].isdecimal() else -inf if "-" in text else inf


def _is_below(before: str) -> bool:
    return bool(BELOW.search(before)) and not re.search(r"\bnot? (?:less|fewer|under)", before)


def _named(before: str) -> bool:
    """Whether the text before a number is a name (EQ11, Region 3), not a word of comparison."""
    rest = UNITS.sub("", ABOVE.sub("", BELOW.sub("", before)))
    return bool(re.search(r"[^\W\d_]", rest))


def _period(text: str) -> tuple[int, ...] | None:
    """Year and place in the year of a month, weekday or quarter."""
    if match := QUARTER.fullmatch(text):
        return (int(match[1] or match[3] or 0), int(match[2]))
    match = NAMED_PERIOD.fullmatch(text)
    name = next((n for n in NAMES if match and match[1] in (n, n[:3])), None)
    return (int(match[2] or 0), NAMES[name]) if match and name else None


def _chunks(text: str) -> Key:
    """A text cut into words and numbers, so that numbers in it compare as numbers."""
    parts = re.split(r"(\d+)", text)
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part)


def nodes_in_order(axis: Axis) -> list[tuple[int, int]]:
    """The nodes of an axis as they are read, each with its depth: a group before its members, the total last."""
    keys, depths = _node_keys(axis), dict[int, int]()
    for chain in axis.chains:
        paths = np.unique(np.stack(chain[::-1], axis=1), axis=0).tolist()
        for path in sorted(paths, key=lambda path: [keys[node] for node in path]):
            for depth, node in enumerate(dict.fromkeys(path)):
                depths.setdefault(node, depth)
    depths.pop(axis.total, None)
    return [*depths.items(), (axis.total, 0)]


def _node_keys(axis: Axis) -> list[Key]:
    """The key of each node: a group stands where its first member does, if that was declared or is a number."""
    labels = axis.nodes.to_list()
    own, places = [reading_key(label) for label in labels], {label: i for i, label in enumerate(axis.declared)}
    first = own.copy()
    for chain in axis.chains:
        leaves = sorted(range(axis.leaves), key=lambda leaf: own[chain[0][leaf]], reverse=True)
        for above in chain[1:-1]:
            for leaf in leaves:
                node, member = above[leaf], own[chain[0][leaf]]
                if own[node][0] == TEXTS and member[0] in (BANDS, PERIODS):
                    first[node] = member
    rank = [places.get(label, len(places)) for label in labels]
    for chain in axis.chains if places else ():
        for above in chain[1:-1]:
            for leaf, node in zip(chain[0], above, strict=True):  # in the order of the rows, leaves stand before groups
                rank[node] = min(rank[node], rank[leaf])
    return [(place, *pair) for place, *pair in zip(rank, first, own, strict=True)]


def row_order(table: Table) -> Integers:
    """The cells of a table as they are read: by the first axis, then the second, ..., totals last."""
    ranks = []
    for axis, nodes in zip(table.axes, table.nodes, strict=True):
        rank = np.zeros(len(axis), dtype=np.int64)
        rank[[node for node, _ in nodes_in_order(axis)]] = np.arange(len(axis))
        ranks.append(rank[nodes])
    return np.lexsort(tuple(reversed(ranks)))


def titles(axis: Axis, column: Column) -> list[str]:
    """What to call each node: its value label where the file has one, else its own label.

    A number is a code: its label alone is shown. Other codes stand before it.

    >>> import polars as pl
    >>> titles(Axis.of(pl.Series("sex", [1, 2])), Column(values=((1.0, "man"), (2.0, "woman"))))
    ['man', 'woman', 'Total']
    """
    texts = {_plain(code): text for code, text in column.values}
    names = [_title(name, texts) for name in axis.nodes.to_list()]
    many = Counter(names)
    return [f"{name} ({node})" if many[name] > 1 else name for name, node in zip(names, axis.nodes, strict=True)]


def telling_names(axis: Axis, column: Column) -> list[str]:
    """What to call each node apart from its axis: a bare number stands after the name of its column."""
    return [f"{axis.name} {name}" if re.fullmatch(NUMBER, name) else name for name in titles(axis, column)]


def _title(name: str, texts: Mapping[str, str]) -> str:
    text = texts.get(_plain(name), "").strip()
    if not text or text == name:
        return name
    return text if re.fullmatch(NUMBER, name) else f"{name} {text}"


def _plain(code: Any) -> str:
    """A code as text; 1, 1.0 and "1" are one."""
    text = str(code).strip()
    return text.removesuffix(".0") if re.fullmatch(r"-?\d+\.0", text) else text
