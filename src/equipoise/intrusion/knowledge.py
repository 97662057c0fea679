"""Success of an attack by the columns an intruder knows, one combination after the other, and its chart."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil, comb, floor, isfinite, log10
from typing import Any

import polars as pl

from equipoise.ground.progress import Progress, report
from equipoise.methods.score import Score
from equipoise.presentation import style
from equipoise.presentation.numbers import listed, value_text
from equipoise.presentation.style import BLUE, GREY, INK, Spec, error_bars, labels, layer, line, points, quantity

MAX_COMBINATIONS = 500
"""Combinations tried at most."""
MAX_RECORD_TRIES = 20_000_000
"""Records times combinations, at most; 4 columns of a million records are still tried one by one and in pairs."""
SWEEP_SCHEMA = {
    "known": pl.String,
    "size": pl.Int64,
    "value": pl.Float64,
    "baseline": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
}
LABEL_ROOM, LETTER_WIDTH = 640, 6.5
"""Pixels of the chart from its first number of columns to its last, and of a letter, about."""
LOG_SCALE_FACTOR = 20.0
"""A success that grows by more than this factor is drawn on a logarithmic scale."""
Known = tuple[str, ...]
Try = Callable[[Known], Score]


@dataclass(frozen=True)
class KnowledgePlan:
    """Which combinations of so many columns are tried: all up to a size, then the best one with one column more."""

    columns: int
    asked: int
    full: int
    reach: int
    allowed: int

    @classmethod
    def of(cls, columns: int, size: int, records: int, work: int = MAX_RECORD_TRIES) -> "KnowledgePlan":
        """The largest plan within the bound.

        >>> KnowledgePlan.of(4, 2, 1000)
        KnowledgePlan(columns=4, asked=2, full=2, reach=4, allowed=500)
        """
        allowed = max(1, min(MAX_COMBINATIONS, work // max(1, records)))
        full = reach = max((k for k in range(1, min(size, columns) + 1) if _all(columns, k) <= allowed), default=1)
        spent = _all(columns, full)
        while reach < columns and spent + columns - reach <= allowed:
            spent, reach = spent + columns - reach, reach + 1
        return cls(columns, min(size, columns), full, reach, allowed)

    @property
    def total(self) -> int:
        """How many combinations are tried."""
        return _all(self.columns, self.full) + sum(self.columns - k for k in range(self.full, self.reach))

    def words(self) -> str:
        """What was tried, and what was not."""
        text = f"All {_all(self.columns, self.full):,} combinations of up to {self.full} of {self.columns} columns"
        text = f"Each of {self.columns} columns" if self.full == 1 else text
        text += (" were" if self.full > 1 else " was") + " tried"
        if self.reach > self.full:
            text += "; larger ones by adding the column that helps most"
        if self.full < self.asked:
            text += f"; not all of {self.asked} columns, for that takes more than {self.allowed:,} attacks"
        return text + "."


def _all(columns: int, size: int) -> int:
    return sum(comb(columns, k) for k in range(1, size + 1))


def sweep(
    columns: Known, plan: KnowledgePlan, attempt: Try, whole: Score | None, progress: Progress | None
) -> pl.DataFrame:
    """Success by what is known, the most dangerous first; `whole` is the success of who knows all, where known."""
    scores: dict[Known, Score] = {columns: whole} if whole is not None else {}
    step = 0
    for size in range(1, plan.reach + 1):
        for combination in _next(columns, size, plan, scores):
            report(progress, step, plan.total, "trying what an intruder may know")
            if combination not in scores:
                scores[combination] = attempt(combination)
            step += 1
    report(progress, plan.total, plan.total, "trying what an intruder may know")
    return ranked(rows(scores))


def rows(scores: Mapping[Known, Score]) -> list[tuple[Any, ...]]:
    """A row for each combination of columns."""
    return [_row(combination, score) for combination, score in scores.items() if isfinite(score.value)]


def ranked(rows: Sequence[tuple[Any, ...]]) -> pl.DataFrame:
    """The rows as a table, the most dangerous first."""
    table = pl.DataFrame(rows, schema=SWEEP_SCHEMA, orient="row")
    return table.sort("value", "size", "known", descending=[True, False, False])


def _next(columns: Known, size: int, plan: KnowledgePlan, scores: dict[Known, Score]) -> list[Known]:
    """The combinations of a size: all, or those that extend the best of the size before."""
    if size <= plan.full:
        return list(combinations(columns, size))
    smaller = [combination for combination in scores if len(combination) == size - 1]
    best = max(smaller, key=lambda combination: scores[combination].value)
    return [tuple(c for c in columns if c in best or c == more) for more in columns if more not in best]


def _row(combination: Known, score: Score) -> tuple[Any, ...]:
    low, high = score.interval or (score.value, score.value)
    return ", ".join(combination), len(combination), score.value, score.baseline, low, high


def growth(knowledge: pl.DataFrame) -> pl.DataFrame:
    """The best combination of each size."""
    return knowledge.group_by("size", maintain_order=True).first().select(knowledge.columns).sort("size")


def chart(knowledge: pl.DataFrame, estimated: bool = False) -> Spec:
    """Success against the number of columns known: a point for each combination, a line through the best.

    The interval of the best is a bar, guessing a dashed line. The scale is logarithmic where success grows steeply.
    """
    best = growth(knowledge)
    values, sizes = knowledge["value"].to_list(), best["size"].to_list()
    guess = max((value for value in knowledge["baseline"] if value is not None), default=0.0)
    least = min((value for value in (*values, guess) if value > 0), default=0.0)
    steep = least > 0 and max(values) > LOG_SCALE_FACTOR * least
    foot = least * 0.7 if steep else 0.0
    high = max(knowledge["high"]) * (2.5 if steep else 1.15) or 1.0
    rest = knowledge.join(best, on="known", how="anti")
    others, path = ([_point(row, foot) for row in table.iter_rows(named=True)] for table in (rest, best))
    linked = [{"field": "told", "type": "nominal", "title": "Linked correctly"}]
    layers = [
        _guessing(guess, foot),
        points("tried", others, "known", linked, color=GREY, size=45, opacity=0.85),
        error_bars("value", "y", path),
        line("best_line", path, "size", color=BLUE, strokeWidth=2),
        points("best", path, "known", linked, color=BLUE, size=80),
        labels("best_label", _labelled(best, foot), align="center", dy=-14),
    ]
    title = {"text": "What an intruder must know", "subtitle": "Each point is a combination of columns."}
    axes, words = _axes(max(sizes), steep, (foot, high)), _described(best, guess, estimated)
    return style.chart(layers, axes, title=title, description=words, size=(720, 320))


def _point(row: dict[str, Any], foot: float) -> Spec:
    """A combination as the chart draws it; what a logarithm cannot show stands at its foot."""
    value, low, high = (value_text(row[name], "share") for name in ("value", "low", "high"))
    return {
        "size": row["size"],
        "value": max(row["value"], foot),
        "value_low": max(row["low"], foot),
        "value_high": max(row["high"], foot),
        "known": row["known"],
        "told": f"{value} ({low} to {high})",
    }


def _labelled(best: pl.DataFrame, foot: float) -> list[Spec]:
    """The best of each size by its columns; a name that would run into its neighbour is left to the tooltip."""
    widest = int(best["size"].to_list()[-1])
    rows = [
        {**_point(row, foot), "label": _label(row["known"].split(", "), widest)} for row in best.iter_rows(named=True)
    ]
    room = LABEL_ROOM / max(1, widest)
    free, labelled = len(rows) * room + LABEL_ROOM, list[Spec]()
    for place, row in reversed(list(enumerate(rows))):
        half = LETTER_WIDTH * len(row["label"]) / 2
        if place * room + half <= free:
            labelled.append(row)
            free = place * room - half - LETTER_WIDTH
    return labelled[::-1]


def _label(columns: Sequence[str], widest: int) -> str:
    if len(columns) <= 2:
        return ", ".join(columns)
    return f"all {widest}" if len(columns) == widest else f"{columns[0]}, {columns[1]} and {len(columns) - 2} more"


def _guessing(guess: float, foot: float) -> Spec:
    spot = {"x": {"value": 0}, "x2": {"value": "width"}}
    rule = {"type": "rule", "color": INK, "strokeDash": [5, 4], "strokeWidth": 1, "clip": True, "aria": False}
    row = {"value": max(guess, foot), "label": f"guessing: {value_text(guess, 'share')}"}
    text = labels("guessing_label", [row], {"x": {"value": "width"}}, align="right", dx=-4, dy=-8, fontStyle="italic")
    return {"name": "guess", "layer": [layer("guessing", [row], rule, spot), text]}


def _axes(most: int, steep: bool, ends: Sequence[float]) -> Spec:
    scale: Spec = {"type": "log", "domain": list(ends)} if steep else {"domain": list(ends), "zero": True}
    marks: Spec = {"values": _decades(*ends)} if steep else {"tickCount": 6}
    across, steps = {"domain": [0.5, most + 0.5]}, list(range(1, most + 1))
    return {
        "x": quantity("size", across, title="Columns known", values=steps, format="d", grid=False),
        "y": quantity("value", scale, title="People linked correctly", format=".2~p", labelOverlap="greedy", **marks),
    }


def _decades(low: float, high: float) -> list[float]:
    """Powers of ten in a range."""
    return [float(f"1e{power}") for power in range(ceil(log10(low)), floor(log10(high)) + 1)]


def _described(best: pl.DataFrame, guess: float, estimated: bool) -> str:
    """The chart in one sentence, for those who hear it."""
    steps = listed(f"{value_text(r['value'], 'share')} with {r['size']} ({r['known']})" for r in best.to_dicts())
    what = f"{'Estimated share' if estimated else 'Share'} of people linked correctly"
    return f"{what}, by the number of columns known: {steps}. Guessing gives {value_text(guess, 'share')}."
