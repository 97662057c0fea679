"""Display: what the nouns look like in a notebook. No records, no categories, no seed: what may be shown to a room."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from equipoise.ground.errors import ParameterError
from equipoise.ground.html import card, grid, paragraph
from equipoise.methods.score import Score, Scores
from equipoise.presentation.numbers import number, said, title
from equipoise.presentation.svg import static_chart

if TYPE_CHECKING:
    from equipoise.inspection.assess import Assessment
    from equipoise.intrusion.attack import Attack
    from equipoise.releases.release import Release
    from equipoise.releases.tabulated import Tabulated
    from equipoise.search.best_coarsening import BestCoarsening
    from equipoise.search.frontier import Frontier
    from equipoise.trials.trial import Trial

MOST = 12
"""Rows of a table at most."""


def scores_grid(scores: Scores, *, before: Scores | None = None) -> str:
    """Scores in words, each with its interval, beside those of the original where these are given."""
    heads = ["Score", "Better", *(["Original"] if before else []), "Value", "Interval"]
    return grid(heads, (_scored(score, before) for score in scores), words=2)


def _scored(score: Score, before: Scores | None) -> list[str]:
    unit = f" ({score.unit})" if score.unit else ""
    ends = " to ".join(said(end, score.unit) for end in score.interval) if score.interval else ""
    was = [said(before.named(score.name).value, score.unit)] if before else []
    return [f"{title(score.name)}{unit}", score.better, *was, said(score.value, score.unit), ends]


def _notes(scores: Iterable[Score]) -> str:
    found = dict.fromkeys(f"{title(score.name)}: {note}" for score in scores for note in score.notes)
    return "".join(paragraph(note, faint=True) for note in list(found)[:MOST])


def trial_html(trial: "Trial") -> str:
    """A trial: what it does and what it scored."""
    many = paragraph(f"Means of {len(trial.draws):,} draws.", faint=True) if trial.draws else ""
    return card(f"Trial: {trial.words()}", scores_grid(trial.scores), many, _notes(trial.scores))


def frontier_html(frontier: "Frontier") -> str:
    """A frontier: the map, and the trials that nobody beats."""
    told = f"Frontier: {len(frontier.best):,} of {len(frontier.trials):,} trials are beaten by no other"
    if not frontier.trials:
        return card("Frontier: no trials")
    names = frontier.trials[0].scores.keys()
    rows = ([t.words(), *(said(s.value, s.unit) for s in t.scores)] for t in frontier.best[:MOST])
    table = grid(["Recipe", *map(title, names)], rows)
    left = len(frontier.best) - MOST
    return card(told, _picture(frontier), table, paragraph(f"{left:,} more." if left > 0 else "", faint=True))


def _picture(frontier: "Frontier") -> str:
    try:
        return static_chart(frontier.chart())
    except ParameterError:
        return ""


def release_html(release: "Release") -> str:
    """A release: the verdict, the scores before and after, and where it stands."""
    verdict = "Released" if release.verdict else "Refused"
    known = release.original.scores.keys() == release.trial.scores.keys()
    return card(
        f"{verdict}: {release.trial.words()}",
        *(paragraph(reason) for reason in release.verdict.reasons[:MOST]),
        scores_grid(release.trial.scores, before=release.original.scores if known else None),
        _notes(release.trial.scores),
        paragraph(f"To hand out: {release.public}. To keep: {release.private}.", faint=True),
    )


def assessment_html(found: "Assessment") -> str:
    """An assessment: its scores, and what each key does. Neither categories nor records."""
    keys = [[row["key"], number(row["categories"]), number(row["without"])] for row in found.keys.head(MOST).to_dicts()]
    table = grid(["Key", "Categories", "Uniques without it"], keys) if keys else ""
    return card(f"{number(found.records)} records", scores_grid(found.scores), table, _notes(found.scores))


def attack_html(found: "Attack") -> str:
    """An attack: a sentence for each intruder, and the most dangerous knowledge. Nobody is named."""
    rows = [
        [row["known"], said(row["value"], "share"), f"{said(row['low'], 'share')} to {said(row['high'], 'share')}"]
        for row in found.worst(MOST).iter_rows(named=True)
    ]
    table = grid(["Known", "Linked correctly", "95 % interval"], rows) if rows else ""
    return card(
        f"Attack on {number(found.records)} people",
        *(paragraph(scenario.words) for scenario in found.scenarios),
        table,
        *(paragraph(note, faint=True) for note in found.notes),
    )


def tabulated_html(found: "Tabulated") -> str:
    """A protected table: the outcome and its counts. No cell."""
    rows = [[name, number(many)] for name, many in found.counts.items()]
    notes = [paragraph(note, faint=True) for note in found.notes]
    return card(" × ".join(found.table.by), paragraph(found.words), grid(["Cells", "Number"], rows), *notes)


def coarsening_html(found: "BestCoarsening") -> str:
    """The best coarsening: the level of each key, what it costs and how sure that is."""
    return card("Best coarsening", paragraph(found.words()), grid(["Key", "Level"], found.levels.items(), words=2))
