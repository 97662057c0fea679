"""Notebook views (HTML) of results. They show no records, categories or seeds, so that anybody may see them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from equipoise.ground.errors import ParameterError
from equipoise.ground.html import card, grid, paragraph
from equipoise.methods.score import Score, Scores
from equipoise.presentation.numbers import number, title, value_text
from equipoise.presentation.svg import static_chart

if TYPE_CHECKING:
    from equipoise.inspection.assess import Assessment
    from equipoise.intrusion.attack import Attack
    from equipoise.policies.policy import Policy
    from equipoise.releases.in_memory import Balanced
    from equipoise.releases.release import Release
    from equipoise.releases.tabulated import Tabulated
    from equipoise.search.best_coarsening import BestCoarsening
    from equipoise.search.frontier import Frontier
    from equipoise.trials.trial import Trial, Trials

MAX_ROWS = 12
"""Most rows of a table."""


def scores_grid(scores: Scores, *, before: Scores | None = None) -> str:
    """Scores in words, each with its interval, beside those of the original where these are given."""
    heads = ["Score", "Better", *(["Original"] if before else []), "Value", "Interval"]
    return grid(heads, (_score_row(score, before) for score in scores), words=2)


def _score_row(score: Score, before: Scores | None) -> list[str]:
    unit = f" ({score.unit})" if score.unit else ""
    ends = " to ".join(value_text(end, score.unit) for end in score.interval) if score.interval else ""
    was = [value_text(before.named(score.name).value, score.unit)] if before else []
    return [f"{title(score.name)}{unit}", score.better, *was, value_text(score.value, score.unit), ends]


def _notes(scores: Iterable[Score]) -> str:
    notes = dict.fromkeys(f"{title(score.name)}: {note}" for score in scores for note in score.notes)
    return "".join(paragraph(note, faint=True) for note in list(notes)[:MAX_ROWS])


def trial_html(trial: "Trial") -> str:
    """A trial: what it does and what it scored."""
    many = paragraph(f"Means of {len(trial.draws):,} draws.", faint=True) if trial.draws else ""
    return card(f"Trial: {trial.words()}", scores_grid(trial.scores), many, _notes(trial.scores))


def frontier_html(frontier: "Frontier") -> str:
    """A frontier: the map, and the trials that no other beats."""
    heading = f"Frontier: {len(frontier.best):,} of {len(frontier.trials):,} trials are beaten by no other"
    if not frontier.trials:
        return card("Frontier: no trials")
    names = frontier.trials[0].scores.keys()
    rows = ([t.words(), *(value_text(s.value, s.unit) for s in t.scores)] for t in frontier.best[:MAX_ROWS])
    table = grid(["Recipe", *map(title, names)], rows)
    rest = len(frontier.best) - MAX_ROWS
    return card(heading, _picture(frontier), table, paragraph(f"{rest:,} more." if rest > 0 else "", faint=True))


def _picture(frontier: "Frontier") -> str:
    try:
        return static_chart(frontier.chart())
    except ParameterError:
        return ""


def release_html(release: "Release") -> str:
    """A release: the verdict, the scores before and after, and where it stands."""
    verdict = "Released" if release.verdict else "Refused"
    same_scores = release.original.scores.keys() == release.trial.scores.keys()
    return card(
        f"{verdict}: {release.trial.words()}",
        *(paragraph(reason) for reason in release.verdict.reasons[:MAX_ROWS]),
        scores_grid(release.trial.scores, before=release.original.scores if same_scores else None),
        _notes(release.trial.scores),
        paragraph(f"To hand out: {release.public}. To keep: {release.private}.", faint=True),
    )


def balanced_html(balanced: "Balanced") -> str:
    """A release in memory: what it assumes first, the scores, and what was not done."""
    return card(
        f"Released in memory: {balanced.trial.words()}",
        *(paragraph(sentence) for sentence in balanced.assumptions),
        *(paragraph(reason) for reason in balanced.verdict.reasons[:MAX_ROWS]),
        scores_grid(balanced.trial.scores),
        paragraph("Nothing was written and no further attack was tried: name a folder for that.", faint=True),
    )


def trials_html(trials: "Trials") -> str:
    """Trials: what each does and what it scored, and how many recipes could not be run."""
    if not trials:
        return card("No trials")
    heads = ["Recipe", *map(title, trials[0].scores.keys())]
    rows = ([t.words(), *(value_text(s.value, s.unit) for s in t.scores)] for t in trials[:MAX_ROWS])
    rest, failed = len(trials) - MAX_ROWS, len(trials.left_out)
    notes = [f"{rest:,} more." if rest > 0 else "", f"{failed:,} recipes could not be run." if failed else ""]
    return card(f"{len(trials):,} trials", grid(heads, rows), *(paragraph(note, faint=True) for note in notes))


def policy_html(policy: "Policy") -> str:
    """A policy: every limit with its reason, and what is assumed."""
    rows = [[limit.score, f"{limit.sign} {limit.bound:g}", limit.reason] for limit in policy.parsed]
    table = grid(["Score", "Must be", "Why"], rows, words=3) if rows else paragraph("No limits.")
    unknown = f"Assumes that nobody knows {', '.join(policy.assume_unknown)}." if policy.assume_unknown else ""
    allowed = f"Released though they look like identifiers: {', '.join(policy.allow)}." if policy.allow else ""
    order = "Keeps the order of the records." if policy.keep_order else ""
    preset = f" (extends {policy.extends})" if policy.extends else ""
    notes = (unknown, allowed, order, f"Inside the limits, {policy.prefer} is preferred.")
    return card(f"Policy{preset}", table, *(paragraph(note, faint=note is notes[-1]) for note in notes))


def assessment_html(assessment: "Assessment") -> str:
    """An assessment: its scores, and what each key does. Neither categories nor records."""
    rows = assessment.keys.head(MAX_ROWS).to_dicts()
    keys = [[row["key"], number(row["categories"]), number(row["without"])] for row in rows]
    table = grid(["Key", "Categories", "Uniques without it"], keys) if keys else ""
    others = [[" and ".join(filter(None, row[:2])), value_text(row[2], "share")] for row in assessment.revealing.rows()]
    revealing = grid(["Other columns, if known", "Single out"], others[:MAX_ROWS]) if others else ""
    rows = assessment.helps.head(MAX_ROWS).to_dicts()
    levels = [[row["key"], row["level"], value_text(row["removed"], "share")] for row in rows]
    helps = grid(["Key, if coarsened", "Level", "Uniques removed"], levels, words=2) if levels else ""
    scores = assessment.scores
    return card(f"{number(assessment.records)} records", scores_grid(scores), table, helps, revealing, _notes(scores))


def attack_html(attack: "Attack") -> str:
    """An attack: a sentence for each intruder, and the most dangerous knowledge. Nobody is named."""
    worst = attack.worst(MAX_ROWS)
    shares = [[value_text(share, "share") for share in worst[name]] for name in ("value", "low", "high")]
    rows = [[keys, value, f"{low} to {high}"] for keys, value, low, high in zip(worst["known"], *shares, strict=True)]
    table = grid(["Known", "Linked correctly", "95 % interval"], rows) if rows else ""
    return card(
        f"Attack on {number(attack.records)} people",
        *(paragraph(scenario.words) for scenario in attack.scenarios),
        table,
        *(paragraph(note, faint=True) for note in attack.notes),
    )


def tabulated_html(tabulated: "Tabulated") -> str:
    """A protected table: the outcome and its counts. No cell."""
    rows = [[name, number(many)] for name, many in tabulated.counts.items()]
    audit = tabulated.attackers
    whom = f"Audit passed against {'; '.join(audit.internal)}. Not against {'; '.join(audit.not_cover)}."
    notes = [paragraph(note, faint=True) for note in (whom, *tabulated.notes)]
    return card(" × ".join(tabulated.table.by), paragraph(tabulated.words), grid(["Cells", "Number"], rows), *notes)


def coarsening_html(coarsening: "BestCoarsening") -> str:
    """The best coarsening: the level of each key, what it costs and how sure that is."""
    levels = grid(["Key", "Level"], coarsening.levels.items(), words=2)
    return card("Best coarsening", paragraph(coarsening.words()), levels)
