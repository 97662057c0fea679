"""Domingo-Ferrer and Torra (2004), Table 1: two files of eight records, the same person in the same row.

Patterns of all 64 pairs by enumeration, EM by a plain computation written here, and everybody paired with themselves
when names are compared by similarity and ages by nearness: J.M. and J.Manel, Ricardo and Ricard, 18 and 82, 14 and 18.
"""

import math
from collections import Counter
from itertools import product
from typing import Any

import polars as pl
import pytest
from rapidfuzz.distance import JaroWinkler, Levenshtein

import equipoise as eq
from equipoise.attacks import Linkage, Nearest

KEYS = ["name", "surname", "age"]
A = pl.DataFrame(
    {
        "name": ["Joan", "Pere", "J.M.", "Juan", "Ricardo", "Pere", "Juan", "Ricard"],
        "surname": ["Casanovas", "Joan", "Casanovas", "Garcia", "Garcia", "Garcia", "Garcia", "Tanaka"],
        "age": [19, 17, 35, 53, 14, 18, 18, 14],
    }
)
B = A.with_columns(
    pl.Series("name", ["Joan", "Pere", "J.Manel", "Juan", "Ricard", "Pere", "Juan", "Ricard"]),
    pl.Series("age", [19, 17, 35, 53, 14, 82, 18, 18]),
)
ORDER = {"0": 0, "~": 1, "1": 2}


def read(table: pl.DataFrame) -> eq.Records:
    return eq.read(table, eq.Roles(KEYS))


def pattern(one: Any, two: Any, alike: Any, least: float, years: float) -> str:
    """A pair by its definition."""
    name = "1" if one[0] == two[0] else "~" if alike(one[0], two[0]) >= least else "0"
    age = "1" if one[2] == two[2] else "~" if abs(one[2] - two[2]) <= years else "0"
    return name + "01"[one[1] == two[1]] + age


def test_patterns_by_enumeration() -> None:
    equal = Linkage().patterns(read(B), read(A))
    counted = Counter("".join("01"[x == y] for x, y in zip(*pair, strict=True)) for pair in product(A.rows(), B.rows()))
    assert dict(equal.select("pattern", "pairs").iter_rows()) == counted
    assert sum(counted.values()) == 64
    graded = Linkage(near=("age:4", "name:0.8")).patterns(read(B), read(A))
    alike = JaroWinkler.normalized_similarity
    counted = Counter(pattern(*pair, alike, 0.8, 4) for pair in product(A.rows(), B.rows()))
    assert dict(graded.select("pattern", "pairs").iter_rows()) == counted


def in_order(match: list[float], other: list[float]) -> tuple[list[float], list[float]]:
    """The likeliest chances of two or three levels with m / u rising, all ways to pool tried one by one."""
    ways = [[[0], [1]], [[0, 1]]] if len(match) == 2 else [[[0], [1], [2]], [[0, 1], [2]], [[0], [1, 2]], [[0, 1, 2]]]
    best, found = -math.inf, ([0.0], [0.0])
    for way in ways:
        share = {k: sum(match[i] for i in g) / sum(match[i] + other[i] for i in g) for g in way for k in g}
        if any(share[k] > share[k + 1] + 1e-15 for k in range(len(match) - 1)):
            continue
        likely = sum(
            match[k] * math.log(max(share[k], 1e-300)) + other[k] * math.log(max(1 - share[k], 1e-300)) for k in share
        )
        if likely > best:
            total = [a + b for a, b in zip(match, other, strict=True)]
            best = likely
            found = [share[k] * total[k] for k in range(len(total))], [(1 - share[k]) * t for k, t in enumerate(total)]
    return tuple([max(x / sum(side), 1e-9) for x in side] for side in found)  # type: ignore[return-value]


def plain_em(counts: dict[str, int], rounds: int) -> tuple[float, list[list[float]], list[list[float]]]:
    """Levels, patterns and classes one by one."""
    total, levels = sum(counts.values()), [["0", "~", "1"], ["0", "1"], ["0", "~", "1"]]
    p = 8 / 64
    begin = {2: [0.1, 0.9], 3: [0.1, 0.1, 0.8]}
    m, u = [], []
    for i, marks in enumerate(levels):
        share = [sum(c for s, c in counts.items() if s[i] == mark) / total for mark in marks]
        one, two = in_order([x * p for x in begin[len(marks)]], [x * (1 - p) for x in share])
        m.append(one)
        u.append(two)
    for _ in range(rounds):
        match = {}
        for s, c in counts.items():
            one = p * math.prod(m[i][levels[i].index(mark)] for i, mark in enumerate(s))
            two = (1 - p) * math.prod(u[i][levels[i].index(mark)] for i, mark in enumerate(s))
            match[s] = c / total * one / (one + two)
        for i, marks in enumerate(levels):
            ours = [sum(x for s, x in match.items() if s[i] == mark) for mark in marks]
            theirs = [sum(counts[s] / total - x for s, x in match.items() if s[i] == mark) for mark in marks]
            m[i], u[i] = in_order(ours, theirs)
        p = min(sum(match.values()), 8 / 64)
    return p, m, u


def test_em_is_that_of_a_plain_computation() -> None:
    """Three levels of name and age, two of surname; agreement is kept in order."""
    attack = Linkage(near=("age:4", "name:0.8"))
    counts = Counter(pattern(*pair, JaroWinkler.normalized_similarity, 0.8, 4) for pair in product(A.rows(), B.rows()))
    study, _ = attack._study(read(B), read(A))
    share, m, u = plain_em(counts, study.guess.rounds)
    found: Any = study.guess
    assert found.converged
    assert found.share == pytest.approx(share, abs=1e-7)
    for i in range(3):
        assert found.m[i].tolist() == pytest.approx(m[i], abs=1e-6)
        assert found.u[i].tolist() == pytest.approx(u[i], abs=1e-6)
    table = attack.agreement(read(B), read(A))
    assert table["m_true"].to_list() == [6 / 8, 2 / 8, 1.0, 6 / 8, 1 / 8]
    assert table["level"].to_list() == ["equal", "near", "equal", "equal", "near"]


@pytest.mark.parametrize("blocks", [None, ("surname",)])
@pytest.mark.parametrize("knows", ["patterns", "truth"])
@pytest.mark.parametrize("near", [("age:4", "name:0.8"), ("age:5", "name:0.7"), ("age:2", "name:0.9"), None])
def test_everybody_is_linked(near: tuple[str, ...] | None, knows: Any, blocks: tuple[str, ...] | None) -> None:
    """Also 18 and 82, which are not near: the rest agrees and everybody is paired once."""
    score = Linkage(near=near, knows=knows, blocks=blocks).measure(read(B), read(A))
    assert score.by_record()["risk"].to_list() == [1.0] * 8
    assert score.value == 1.0


def test_near_never_weighs_more_than_equal() -> None:
    table = Linkage(near=("age:4", "name:0.8")).patterns(read(B), read(A))
    weight = dict(table.select("pattern", "weight").iter_rows())
    for one, two in product(weight, weight):
        if all(ORDER[x] <= ORDER[y] for x, y in zip(one, two, strict=True)):
            assert weight[one] <= weight[two] + 1e-6


def test_distances_of_table_1() -> None:
    """Squared Levenshtein distances and standardised ages by hand; 18 / 82 is nobody's nearest."""
    score = Nearest(tuple(KEYS), strings=("name", "surname"), similarity="levenshtein").measure(read(B), read(A))
    sd = float(A["age"].std(ddof=0) or 0.0)

    def square(one: Any, two: Any) -> float:
        texts = sum(Levenshtein.normalized_distance(x, y) ** 2 for x, y in zip(one[:2], two[:2], strict=True))
        return texts + ((one[2] - two[2]) / sd) ** 2

    for i, one in enumerate(A.rows()):
        apart = [square(one, two) for two in B.rows()]
        closer = sum(x < apart[i] * (1 - 1e-9) for x in apart)
        assert score.detail["rank"][i] == closer + 1
    assert score.detail["risk"].to_list() == [1, 1, 1, 1, 1, 0, 1, 1]
