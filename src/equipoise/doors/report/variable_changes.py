"""Report section on variables: what each mask did, and distributions before and after."""

from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise
from math import isnan
from statistics import fmean
from typing import Any

from equipoise.doors.report.page_parts import Facts, bar
from equipoise.presentation.numbers import value_text
from equipoise.releases.overlays import BARS, Overlay
from equipoise.releases.report_facts import Report

WIDE_PX, HIGH_PX, FOOT_PX, HEAD_PX = 300, 96, 18, 16
"""Pixels of a small histogram, of the numbers under it, and of the words over it."""
MAX_NAMED_TERMS = 5
"""Quantities of an analysis that are shown where the policy names the analyses."""
STEEP_RATIO, ROOT_NOTE = 4, "heights are square roots"


def variables(report: Report) -> list[Facts]:
    """Every variable that was changed or withheld, with its role and what was done, in the order of the masks."""
    touched = dict.fromkeys(column for law in report.laws for column in law.columns)
    changes = {column: _changes(report, column) for column in touched}
    changes |= {column: ["withheld"] for column in report.withheld if column not in touched}
    return [{"name": name, "role": report.roles.get(name, ""), "done": words} for name, words in changes.items()]


def _changes(report: Report, column: str) -> list[str]:
    """What each mask did to a column, in words, without the list of columns it begins with."""
    return list(dict.fromkeys(_short(law.words, law.columns) for law in report.laws if column in law.columns))


def _short(words: str, columns: Sequence[str]) -> str:
    """The words of a law without the list of columns they begin with.

    >>> _short("wages, turnover replaced by means", ("wages", "turnover")), _short("noise added to a", ("a",))
    ('replaced by means', 'noise added to a')
    """
    for start in (", ".join(columns), " and ".join((", ".join(columns[:-1]), columns[-1])) if columns[1:] else ""):
        if start and words.startswith(f"{start} "):
            return words.removeprefix(f"{start} ")
    return words


def estimate_rows(report: Report) -> list[Facts]:
    """What users compute from both files: the quantities of each analysis that changed most, and its mean overlap."""
    most = MAX_NAMED_TERMS if report.policy.estimates else 1
    parts = report.estimates.partition_by("analysis", maintain_order=True) if report.estimates.height else []
    return [
        {
            "analysis": part["analysis"][0],
            "overlap": f"{fmean(part['overlap']):.2f}",
            "more": max(0, part.height - most),
            "terms": [_estimate(row) for row in part.sort("overlap", maintain_order=True).head(most).to_dicts()],
        }
        for part in parts
    ]


def _estimate(row: Mapping[str, Any]) -> Facts:
    """A quantity in both files, each with its interval."""
    sides = {side: [row[side], row[f"{side}_low"], row[f"{side}_high"]] for side in ("original", "released")}
    texts = {
        side: None if values[0] is None or any(isnan(v) for v in values) else [f"{v:,.4g}" for v in values]
        for side, values in sides.items()
    }
    return {"term": row["term"], "overlap": f"{row['overlap']:.2f}", "bar": f"{row['overlap']:.3f}", **texts}


def overlay_facts(overlay: Overlay) -> Facts:
    """A small chart of one variable before and after, with its numbers."""
    shares = [*overlay.before[:BARS], *overlay.after[:BARS]] if overlay.kind == "bars" else []
    most = max(shares, default=0.0) or 1.0
    rows = zip(overlay.labels, overlay.before, overlay.after, strict=True)
    what = "the weight" if overlay.weight else "records"
    shift = value_text(overlay.shift, "share")
    moves = [f"{shift} of {what} in another bar than before" if overlay.shift > 5e-4 else ""]
    return {
        "column": overlay.column,
        "axis": f"share of records, weighted by {overlay.weight}" if overlay.weight else "share of records",
        "weighted": bool(overlay.weight),
        "kind": overlay.kind,
        "words": "; ".join(part for part in (overlay.words, *moves, ROOT_NOTE if uses_roots(overlay) else "") if part),
        "picture": histogram(overlay) if overlay.kind == "histogram" else "",
        "rows": [
            {"label": label, "before": value_text(before, "share"), "after": value_text(after, "share")}
            | {"bars": [bar(share / most) for share in (before, after)]}
            for label, before, after in rows
        ],
    }


def uses_roots(overlay: Overlay) -> bool:
    """Whether heights are drawn as square roots, because one bar of the histogram would dwarf the rest."""
    highest = sorted(map(max, zip(overlay.before, overlay.after, strict=True)), reverse=True)
    return overlay.kind == "histogram" and len(highest) > 2 and highest[0] > STEEP_RATIO * highest[1]


def histogram(overlay: Overlay) -> str:
    """Both distributions over one axis: the original filled, the release as a line."""
    low, high = overlay.edges[0], overlay.edges[-1]
    widths = [(b - a) / (high - low) for a, b in pairwise(overlay.edges)]
    power = 0.5 if uses_roots(overlay) else 1.0
    most = max((*overlay.before, *overlay.after), default=0.0) or 1.0

    def at(place: float) -> float:
        return (place - low) / (high - low) * WIDE_PX

    def path(shares: Sequence[float], closed: bool) -> str:
        x, steps = 0.0, [f"M0 {HIGH_PX}"]
        for share, width in zip(shares, widths, strict=True):
            x += width * WIDE_PX
            steps.append(f"V{HIGH_PX - (share / most) ** power * (HIGH_PX - 4):.1f}H{x:.1f}")
        return "".join(steps) + f"V{HIGH_PX}" + ("Z" if closed else "")

    ticks = "".join(
        f'<text x="{place:.1f}" y="{HIGH_PX + 14}" text-anchor="{_anchor(place)}">{escape(words)}</text>'
        for place, words in _clear([(at(place), words) for place, words in overlay.ticks])
    )
    how = f", weighted by {overlay.weight}" if overlay.weight else ""
    axis = f'<text class="axis" x="0" y="-5">Share{escape(how)}</text>' if overlay.weight else ""
    head = HEAD_PX if overlay.weight else 0
    label = f"Distribution of {overlay.column} before and after{how}; the numbers are in the table that follows."
    return (
        f'<svg viewBox="-1 {-head} {WIDE_PX + 2} {HIGH_PX + FOOT_PX + head}" role="img" aria-label="{escape(label)}">'
        f'<path class="was" d="{path(overlay.before, True)}"/><path class="now" d="{path(overlay.after, False)}"/>'
        f'<path class="base" d="M0 {HIGH_PX}H{WIDE_PX}"/>{ticks}{axis}</svg>'
    )


def _clear(ticks: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """The ticks whose labels do not overlap the one before, a letter being 6 pixels wide.

    >>> _clear([(10.0, "0"), (250.0, "80,000"), (295.0, "100,000")])
    [(10.0, '0'), (250.0, '80,000')]
    """
    readable: list[tuple[float, str]] = []
    free = -WIDE_PX * 1.0
    for place, words in ticks:
        wide = 6.0 * len(words)
        start = place - {"start": 0.0, "middle": 0.5, "end": 1.0}[_anchor(place)] * wide
        if start >= free:
            readable.append((place, words))
            free = start + wide + 4
    return readable


def _anchor(x: float) -> str:
    return "start" if x < 18 else "end" if x > WIDE_PX - 18 else "middle"
