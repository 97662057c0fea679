"""Scenario: one intruder, what they know, their success rate, and a sentence that says it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal

from equipoise.intrusion.who_is_who import ESTIMATED, Pair, Truth
from equipoise.methods.method import Measure, name_of
from equipoise.methods.score import Score, Scores
from equipoise.presentation.numbers import listed, title, value_text

Known = tuple[str, ...]
Kind = Literal["link", "interval", "inference", "singling_out"]
KIND_OF_ATTACK: dict[str, Kind] = {"interval": "interval", "inference": "inference", "singling_out": "singling_out"}
"""What an attack is after, where that is not linking people to records."""
SENTENCES: dict[Kind, tuple[str, str]] = {
    "link": ("Knowing {known}, {value} of people are linked correctly", "guessing would give {guess}"),
    "inference": ("Knowing {known}, the {sensitive} of {value} of people is guessed right{within}", "{apart} {guess}"),
    "interval": (
        "Whoever finds a person's record knows {columns} to within {width} in {value} of cases",
        "from a random record it would be {guess}",
    ),
    "singling_out": (
        "{value} of the descriptions that fit exactly one released record fit exactly one person",
        "of descriptions made blindly it would be {guess}",
    ),
}
"""What each kind of success says, and what it is compared with."""


@dataclass(frozen=True)
class Scenario:
    """An intruder: what they know, how they fare, and that in a sentence.

    `score` is that of the strongest attack of its `kind`; `tried` has all of them.
    """

    known: Known
    score: Score
    words: str
    kind: Kind = "link"
    tried: Scores = field(default=Scores(), repr=False)


def scenario(files: Pair, columns: Known, tries: Sequence[tuple[Measure, Score]]) -> Scenario:
    """The intruder of some attacks, by the strongest of them."""
    method, score = max(tries, key=lambda item: (_success(item[1]), not _informed(item[0])))
    facts = _facts(method, score, known_to(method, columns), holdout=files.original.holdout is not None)
    words = sentence(kind_of(method), score, facts, truth=files.truth)
    unique = {score.name: score for _, score in tries}
    return Scenario(known_to(method, columns), score, words, kind_of(method), Scores(unique.values()))


def reach(scenario: Scenario, *, estimated: bool) -> tuple[float, float]:
    """How many people an intruder links, by the upper end of the interval where that is estimated."""
    score = scenario.score
    return score.interval[1] if estimated and score.interval else score.value, score.value


def kind_of(method: Measure) -> Kind:
    """What an attack is after."""
    return KIND_OF_ATTACK.get(name_of(type(method)), "link")


def known_to(method: Measure, columns: Known) -> Known:
    """What an attack knows of a person."""
    if kind_of(method) in ("interval", "singling_out"):
        return ()
    known = getattr(method, "known", None) or getattr(method, "variables", None) or columns
    return tuple(dict.fromkeys((*(getattr(method, "blocks", None) or ()), *known)))


def _informed(method: Measure) -> bool:
    return name_of(type(method)) == "informed"


def _success(score: Score) -> float:
    """How far above guessing."""
    return score.value - (score.baseline or 0.0) if isfinite(score.value) else -1.0


def sentence(kind: Kind, score: Score, facts: dict[str, str], *, truth: Truth = "id") -> str:
    """How an intruder fares, in words."""
    if not isfinite(score.value):
        return f"{title(score.name.partition('(')[0])}: {score.notes[0] if score.notes else 'Not applicable.'}"
    text, guess = SENTENCES[kind]
    bound = kind == "link" and truth == "unknown"
    claim = text.format(value=f"{'at most ' if bound else ''}{value_text(score.value, 'share')}", **facts)
    between = f" ({ends})" if not bound and score.interval and (ends := _ends(score.interval)) else ""
    against = guess.format(guess=value_text(score.baseline, "share"), **facts) if score.baseline is not None else ""
    whole = f"{claim}{between}{'; ' if against else ''}{against}."
    return f"Estimated: {whole[0].lower()}{whole[1:]}" if truth in ESTIMATED else whole


def _facts(method: Measure, score: Score, knowledge: Known, *, holdout: bool) -> dict[str, str]:
    """What the sentences name."""
    informed = ("how the file was masked",) if _informed(method) else ()
    columns, width = getattr(method, "columns", None), getattr(method, "width", 0.0)
    ranked = getattr(method, "sides", "rank") == "rank"
    near = any(note.startswith("Right is within") for note in score.notes)
    return {
        "known": listed((*knowledge, *informed)) if knowledge else "the release",
        "sensitive": str(getattr(method, "sensitive", "")),
        "within": f" to within {getattr(method, 'within', 0):g} standard deviations" if near else "",
        "apart": "for people who are not in the file it would be" if holdout else "guessing would give",
        "columns": listed(columns) if isinstance(columns, tuple) else "the numeric columns",
        "width": f"{value_text(width, 'share')} of the ranks" if ranked else f"{width:g} standard deviations",
    }


def _ends(interval: tuple[float, float]) -> str:
    """From one to the other; nothing where they read the same."""
    low, high = (value_text(end, "share") for end in interval)
    return f"{low.removesuffix(chr(0xA0) + '%')} to {high}" if low != high else ""
