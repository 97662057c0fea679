"""Risk-utility map as a plain Vega-Lite specification: no charting library is needed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

import polars as pl

from equipoise.ground.errors import ParameterError
from equipoise.methods.score import Score, Scores, Side
from equipoise.policies.policy import Policy
from equipoise.presentation import style
from equipoise.presentation.numbers import brief, in_words, is_share, title, value_text
from equipoise.presentation.style import Spec, labels, line
from equipoise.presentation.svg import Chart
from equipoise.search.frontier import Frontier
from equipoise.search.limit_area import Limits, rectangle
from equipoise.search.ranking import loss
from equipoise.trials.trial import Trial

MAX_DRAWN_TRIALS = 600
"""More points than this, on the frontier or off it, are thinned out evenly, so that a page stays small."""
TITLE = {
    "text": "Risk-utility map",
    "subtitle": "Each point is a candidate; no other beats those on the line. "
    "Further down is safer, further right is more useful.",
}
EXAMPLES: dict[Side, str] = {"risk": "uniques", "utility": "entropy"}


@dataclass(frozen=True)
class Axes:
    """The two scores of a map, one of each side."""

    risk: Score
    utility: Score

    def of(self, trial: Trial) -> tuple[Score, Score]:
        """The risk and the utility of a trial."""
        return trial.scores.named(self.risk.name), trial.scores.named(self.utility.name)


def axes(scores: Scores, *, risk: str | None = None, utility: str | None = None, policy: Policy | None = None) -> Axes:
    """The scores to draw: those named, else what weighs most in the choice, what the policy limits, or the first."""
    limited = {scores.named(limit.score).name for limit in policy.parsed} if policy else set()
    if utility is None and policy and policy.weights:
        heaviest = max(policy.weights, key=lambda name: policy.weights[name])
        utility = next((score.name for score in scores if score.name == heaviest), None)
    return Axes(_axis(scores, "risk", risk, limited), _axis(scores, "utility", utility, limited))


def _axis(scores: Scores, side: Side, name: str | None, limited: set[str]) -> Score:
    if name is not None:
        return scores.named(name)
    candidates = [score for score in scores if score.side == side]
    if not candidates:
        raise ParameterError(f"There is no {side} score to draw a map of: measure one, such as {EXAMPLES[side]!r}.")
    return next((score for score in candidates if score.name in limited), candidates[0])


def undominated(trials: Iterable[Trial], axes: Axes) -> tuple[Trial, ...]:
    """The trials that no other beats on the two scores of the map, most useful first. O(n log n).

    Intervals are left aside here, so that the frontier is a line; the map draws them as error bars.
    """
    pairs = ((trial, *axes.of(trial)) for trial in trials if _drawable(trial, axes))
    losses = [(loss(utility), loss(risk), trial) for trial, risk, utility in pairs]
    best: list[Trial] = []
    least, last = inf, (inf, inf)
    for utility_loss, risk, trial in sorted(losses, key=lambda item: item[:2]):
        if risk < least or (utility_loss, risk) == last:
            best.append(trial)
            least, last = risk, (utility_loss, risk)
    return tuple(best)


def risk_utility_map(
    frontier: Frontier,
    *,
    risk: str | None = None,
    utility: str | None = None,
    policy: Policy | None = None,
    chosen: Trial | None = None,
    original: Trial | None = None,
    nothing: Trial | None = None,
    theory: pl.DataFrame | None = None,
    mark: str = "released",
) -> Spec:
    """The risk-utility map as a Vega-Lite specification: further down is safer, further right is more useful.

    Parameters
    ----------
    frontier
        The trials to draw; those no other beats on the two scores are joined by a line.
    risk, utility
        The scores to draw; by default the first of each side that the policy limits, else the first.
    policy
        Its limits on the two scores make the rectangle.
    chosen, original, nothing
        The release, and the two ends of the map: the original file and no data at all.
    theory
        Where closed forms expect the trials: columns `utility` and `risk`, in the units of the map; `guessed` is the
        risk that is left to an intruder who must guess a private parameter.
    mark
        The label of `chosen`.

    Source: Duncan, Keller-McNulty and Stokes (2001), the R-U confidentiality map; the rectangle is that of Massell
    (1999), section III.d. The risk has a square-root scale: near the limits there is most to see.
    """
    trials = [trial for trial in (*frontier.trials, chosen, original, nothing) if trial is not None]
    if not trials:
        raise ParameterError("There are no trials to draw a map of.")
    plane = axes(trials[0].scores, risk=risk, utility=utility, policy=policy)
    limits = _limits(plane, policy, trials[0].scores)
    whole = undominated(frontier.trials, plane)
    best_ids = {id(trial) for trial in whole}
    best = _thinned(whole)
    others = _thinned([t for t in frontier.trials if id(t) not in best_ids and _drawable(t, plane)])
    ends = [end for end in (original, nothing) if end and _drawable(end, plane)]
    release = [chosen] if chosen and _drawable(chosen, plane) else []
    drawn = [*best, *others, *ends, *release]
    if not drawn:
        raise ParameterError("No trial has a finite risk and utility: there is nothing to draw.")
    scales = _scales([plane.of(t) for t in drawn], plane, limits, room=0.03 if ends else 0.25)
    layers = [
        *rectangle(plane.risk, plane.utility, limits, inside=not ends, edge=_at_edge(limits, scales["x"]["scale"])),
        _points("tried", others, plane, color=style.GREY, size=45, opacity=0.85) | {"params": [style.zoom()]},
        *_errors(drawn, plane),
        *_theory(theory),
        *_curves(frontier.trials, plane),
        *_lines(best, ends, plane),
        _points("best", best, plane, color=style.BLUE, size=70),
        *_ends(ends, plane),
        *(part for trial in release for part in _chosen(trial, plane, mark)),
    ]
    words = _description(plane, len(frontier.trials), chosen, limits, mark)
    counts = {"tried": len(frontier.trials), "drawn": len(best) + len(others)}
    return Chart(style.chart(layers, scales, title=TITLE, description=words, size=(720, 420)) | {"usermeta": counts})


def _at_edge(limits: Limits, scale: Spec) -> bool:
    """Whether a bound on utility lies so near to the useless side that its name, a third of the width, has no room."""
    low, high = scale["domain"]
    useless = high if scale.get("reverse") else low
    return any(abs(limit.bound - useless) < 0.35 * (high - low) for limit in limits["utility"])


def _drawable(trial: Trial, axes: Axes) -> bool:
    return all(isfinite(score.value) for score in axes.of(trial))


def _thinned(trials: Sequence[Trial]) -> Sequence[Trial]:
    """All trials, or an even choice where there are too many to draw."""
    return trials[:: max(1, -(-len(trials) // MAX_DRAWN_TRIALS))]


def _limits(axes: Axes, policy: Policy | None, scores: Scores) -> Limits:
    named_limits = [(scores.named(limit.score).name, limit) for limit in policy.parsed] if policy else []
    return {
        "risk": tuple(limit for name, limit in named_limits if name == axes.risk.name),
        "utility": tuple(limit for name, limit in named_limits if name == axes.utility.name),
    }


def point_row(trial: Trial, axes: Axes) -> Spec:
    """A point: where it stands, its recipe, and every score in words."""
    risk, utility = axes.of(trial)
    words = {f"s{place}": in_words(score) for place, score in enumerate(trial.scores)}
    return {"risk": risk.value, "utility": utility.value, "recipe": trial.words(), **words}


def score_fields(trials: Sequence[Trial]) -> list[Spec]:
    """The scores of a tooltip; fields are numbered, so that no name of a column is ever parsed."""
    names = trials[0].scores.keys() if trials else ()
    return [{"field": f"s{place}", "type": "nominal", "title": title(score)} for place, score in enumerate(names)]


def _points(name: str, trials: Sequence[Trial], axes: Axes, **mark: Any) -> Spec:
    return style.points(name, [point_row(trial, axes) for trial in trials], "recipe", score_fields(trials), **mark)


def _lines(best: Sequence[Trial], ends: Sequence[Trial], axes: Axes) -> list[Spec]:
    """The frontier, and dotted the way from it to either end."""
    path = [{"risk": risk.value, "utility": utility.value} for risk, utility in map(axes.of, best)]
    spots = [{"risk": risk.value, "utility": utility.value} for risk, utility in map(axes.of, ends)]
    reach = [
        line(f"to_end_{place}", [near, spot], "utility", color=style.BLUE, strokeWidth=1, strokeDash=[2, 4])
        for place, spot in enumerate(spots)
        for near in _nearest(path, spot["utility"])
    ]
    return [*reach, line("best_line", path, "utility", color=style.BLUE, strokeWidth=2)] if path else []


def _theory(curve: pl.DataFrame | None) -> list[Spec]:
    """The curves of theory, dashed under the points; dotted what is left where a private size must be guessed."""
    if curve is None or curve.is_empty():
        return []
    specs: list[Spec] = []
    for column, name, words, dash in (
        ("risk", "theory", "theory", [5, 4]), ("guessed", "theory_guessed", "size guessed", [2, 3]),
    ):  # fmt: skip
        if column in curve.columns:
            rows = curve.select("utility", risk=column).to_dicts()
            label = [{**rows[len(rows) // (2 if column == "risk" else 4)], "label": words}]
            specs.append(line(name, rows, "utility", color=style.INK, strokeWidth=1, strokeDash=dash, opacity=0.8))
            specs.append(labels(f"{name}_label", label, align="left", dx=6, dy=-8, fontStyle="italic"))
    return specs


def _curves(trials: Sequence[Trial], axes: Axes) -> list[Spec]:
    """A line for each family of recipes that has several places on the map."""
    families: dict[str, list[Trial]] = {}
    for trial in trials:
        if _drawable(trial, axes):
            families.setdefault(trial.recipe.family, []).append(trial)
    several = {name: _path(family, axes) for name, family in families.items() if _spread(family, axes)}
    if len(several) < 2 or len(several) > len(style.FAMILIES):
        return []
    return [layer for place, item in enumerate(several.items()) for layer in _curve(place, *item, axes)]


def _path(trials: Sequence[Trial], axes: Axes) -> Sequence[Trial]:
    """The trials of a family that no other of it beats; all of them, by utility, where one beats all others."""
    best = undominated(trials, axes)
    return best if _spread(best, axes) else sorted(trials, key=lambda trial: axes.of(trial)[1].value)


def _spread(trials: Sequence[Trial], axes: Axes) -> bool:
    """Whether they lie at several places of the map."""
    return len({(risk.value, utility.value) for risk, utility in map(axes.of, trials)}) > 1


def _curve(place: int, name: str, trials: Sequence[Trial], axes: Axes) -> list[Spec]:
    rows: list[Spec] = [
        {"risk": r.value, "utility": u.value, "at": i} for i, (r, u) in enumerate(map(axes.of, _thinned(trials)))
    ]
    colour = style.FAMILIES[place]
    corner = {"x": {"value": 10}, "y": {"value": 10 + 17 * place}}
    return [
        line(f"curve_{place}", rows, "at", color=colour, strokeWidth=1.5, opacity=0.9),
        labels(f"curve_label_{place}", [{"label": name}], corner, colour=colour, align="left", fontWeight="bold"),
    ]


def _nearest(path: Sequence[Spec], utility: float) -> list[Spec]:
    """The end of the frontier that is nearer in utility."""
    return [min((path[0], path[-1]), key=lambda row: abs(row["utility"] - utility))]


def _ends(ends: Sequence[Trial], axes: Axes) -> list[Spec]:
    if not ends:
        return []
    diamonds = _points("ends", ends, axes, color=style.INK, shape="diamond", size=110)
    rows = [{**point_row(end, axes), "label": f"{end.words()} ({_risk(end, axes)})"} for end in ends]
    useful = [row for row in rows if row["utility"] == max(r["utility"] for r in rows)][:1]
    return [
        diamonds,
        labels("end_label", useful, align="right", dx=-12),
        labels("far_end_label", [row for row in rows if row not in useful], align="left", dx=12, dy=-12),
    ]


def _risk(trial: Trial, axes: Axes) -> str:
    risk, _ = axes.of(trial)
    return value_text(risk.value, risk.unit)


def _chosen(chosen: Trial, axes: Axes, mark: str) -> list[Spec]:
    """The release, or what stands for it, its label in the corner that a frontier leaves empty: safer and more useful.

    At no risk at all there is no room below: there the label stands above, on the side of no data.
    """
    floor = axes.risk.better == "lower" and axes.of(chosen)[0].value <= 0
    corner: Spec = {"align": "right", "dx": -11, "dy": -13} if floor else {"align": "left", "dx": 13, "dy": 11}
    point = _points("chosen", [chosen], axes, color=style.VERMILLION, size=230, stroke="white", strokeWidth=2)
    row = {**point_row(chosen, axes), "label": mark}
    return [point, labels("chosen_label", [row], **corner, fontSize=13, fontWeight="bold")]


def _errors(trials: Sequence[Trial], axes: Axes) -> list[Spec]:
    """Error bars where scores have intervals."""
    pairs = [axes.of(trial) for trial in trials]
    upright = [_ends_of(risk, "risk") | {"utility": use.value} for risk, use in pairs if risk.interval]
    level = [_ends_of(use, "utility") | {"risk": risk.value} for risk, use in pairs if use.interval]
    bars = [style.error_bars("risk", "y", upright), style.error_bars("utility", "x", level)]
    return [bar for bar in bars if bar["data"]["values"]]


def _ends_of(score: Score, name: str) -> Spec:
    assert score.interval is not None
    return {f"{name}_low": score.interval[0], f"{name}_high": score.interval[1]}


def _scales(points: Sequence[tuple[Score, Score]], axes: Axes, limits: Limits, room: float) -> Spec:
    """Both axes, with more room around the rectangle where nothing else is drawn."""
    risks = _reach([risk for risk, _ in points], [limit.bound for limit in limits["risk"]])
    useful = _reach([use for _, use in points], [limit.bound for limit in limits["utility"]])
    across = _channel("utility", axes.utility, {"domain": _across(useful, room, axes.utility), "zero": False})
    share = is_share(axes.utility.unit) and all(0 <= use.value <= 1 for _, use in points)
    return {
        "x": across | {"axis": across["axis"] | (style.SHARE_AXIS if share else {})},
        "y": _channel("risk", axes.risk, style.rooted(risks, room), ticks=style.root_ticks(risks)),
    }


def _across(values: Sequence[float], room: float, utility: Score) -> list[float]:
    """The domain of utility, the room for a label on the useful side."""
    if utility.better == "higher":
        return style.domain(values, room)
    low, high = style.domain([-value for value in values], room)
    return [-high, -low]


def _reach(scores: Sequence[Score], bounds: Sequence[float]) -> list[float]:
    """Values, bounds, and intervals as far as they do not dwarf the rest: long error bars run out of the map."""
    values = [*(score.value for score in scores), *bounds]
    low, high = min(values), max(values)
    most = (high - low or abs(high)) / 4
    least = max(low - most, 0.0) if low >= 0 else low - most
    return [*values, *(min(max(end, least), high + most) for score in scores for end in score.interval or ())]


def _channel(field: str, score: Score, scale: Spec, ticks: Sequence[float] = ()) -> Spec:
    away = "higher" if field == "utility" else "lower"
    name = brief(score.name)
    axis: Spec = {"title": name if score.unit in (*name.lower().split(), "share", "") else f"{name} ({score.unit})"}
    axis |= {"format": ".2~%" if is_share(score.unit) else ",.3~f", "labelOverlap": "greedy", "labelSeparation": 8}
    axis |= {"values": list(ticks)} if ticks else {}
    axis |= {"grid": field == "risk", "tickCount": 8}
    return style.quantity(field, scale | ({"reverse": True} if score.better != away else {}), **axis)


def _description(axes: Axes, trials: int, chosen: Trial | None, limits: Limits, mark: str) -> str:
    """The map in one sentence, for those who hear it."""
    across, up = title(axes.utility.name), title(axes.risk.name)
    candidates = f" of {trials:,} candidates" if trials else ""
    text = f"Risk-utility map{candidates}: {across} across, {up} upwards"
    if any(limits.values()):
        text += ", with the limits as a shaded rectangle"
    if chosen is not None:
        risk, utility = axes.of(chosen)
        what = "release" if mark == "released" else f"{mark} one"
        text += f"; the {what} is at {value_text(utility.value, utility.unit)} and {value_text(risk.value, risk.unit)}"
    return text + "."
