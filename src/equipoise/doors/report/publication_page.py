"""Report page of a decision to publish or suppress cells."""

import polars as pl

from equipoise.beta_binomial.prior import PriorFit
from equipoise.doors.report.method_notes import method_note
from equipoise.doors.report.page_parts import Facts, bar, charted, for_page, page_facts
from equipoise.losses.expectation import LOSS_KINDS, as_text
from equipoise.presentation.numbers import number, percent, value_text
from equipoise.publishing.alternatives import Answers
from equipoise.publishing.chart import CURVE_TITLES, rule_title
from equipoise.publishing.publication import publication
from equipoise.publishing.publish import Published

MAX_ROWS = 100
"""Cells listed at most; the table of the decision has them all."""
NONPUBLICATION_WORDS = {
    "y": "the sampled records in the cells",
    "Y": "the people expected in the cells",
    "n": "the samples of the domains of the cells",
    "N": "the populations of the domains of the cells",
    "cell": "the cells",
}
"""What the loss of nonpublication counts, by its text."""


def publish_facts(published: Published, source: str) -> Facts:
    """Facts for the page of one decision; `source` is the name of the file."""
    check = published.residuals
    return {
        **page_facts(f"Publish or suppress: {source}"),
        "lead": published.words,
        "whole": whole_cells(published),
        "line": drawn_line(published),
        "meanings": meanings(published),
        "by_share": published.by_share,
        "alternatives": [_alternative(row, published) for row in by_cost(published).iter_rows(named=True)],
        "cost": cost_words(published),
        "notes": published.notes,
        "priors": _priors(published),
        "fit": check.words if check else None,
        "answers": _answers(published.answers) if published.answers else None,
        **_cells(published),
        **charted(
            curve=for_page(published.publication.chart(published.decision, published.comparison)),
            residuals=for_page(check.chart()) if check else None,
        ),
        "methods": _methods(published),
    }


def meanings(published: Published) -> list[tuple[str, str]]:
    """Definitions of the two terms of the page, risk and data withheld."""
    loss, silent = (as_text(part) for part in (published.publication.disclosure, published.publication.nonpublication))
    what = NONPUBLICATION_WORDS.get(silent, f"{silent}, added up over the cells")
    return [
        ("Risk", f"the expected loss of disclosure, {loss}, of the cells published, out of that of all cells."),
        ("Data withheld", f"{what} that are withheld, out of all."),
    ]


def whole_cells(published: Published) -> str:
    """How many cells are published and suppressed, and the realised risk, in words."""
    counts, real = published.counts, published.decision.realised
    withheld, risk = value_text(real.withheld, "share"), value_text(real.risk, "share")
    return (
        f"Of {counts['total']:,} cells {counts['published']:,} are published and {counts['withheld']:,} withheld. As "
        f"whole cells that is {withheld} withheld and {risk} of the risk."
    )


def drawn_line(published: Published) -> str:
    """The cutoff between published and suppressed cells, as a ratio of the two expected losses."""
    last, first = published.decision.cutoff
    if not published.counts["withheld"]:
        return f"All cells are published; the last has R1/R0 = {number(last)}."
    if not published.counts["published"]:
        return f"No cell is published; the first would have R1/R0 = {number(first)}."
    ends = number(last), "infinite" if first == float("inf") else number(first)
    return (
        "Cells are published in the order of R1/R0, the expected loss of publishing over that of withholding: "
        f"the last one published has {ends[0]}, the first one withheld {ends[1]}."
    )


def cost_words(published: Published) -> str:
    """The cost of the worst alternative rule, except random publication."""
    rest = published.alternatives.filter(~pl.col("rule").is_in(["optimal", "random"]))
    if rest.is_empty() or not rest["cost"].max() > 0:  # type: ignore[operator]
        return ""
    worst = rest.sort("cost", descending=True).row(0, named=True)
    name = rule_title(worst["rule"])
    if published.by_share:
        return (
            f"Followed instead, “{name}” would leave {percent(worst['risk'])} of the risk for the same share published."
        )
    return f"Followed instead, “{name}” would have to withhold {percent(worst['withheld'])} for the same risk."


def by_cost(published: Published) -> pl.DataFrame:
    """The alternative rules, cheapest first."""
    return published.alternatives.sort("cost", maintain_order=True)


def points(cost: float) -> str:
    """Percentage points, to a tenth.

    >>> points(0.0), points(0.0004), points(0.041)
    ('none', 'below 0.1 points', '4.1 points')
    """
    if abs(cost) < 1e-12:
        return "none"
    return f"{100 * cost:.1f} points" if abs(cost) >= 0.001 else "below 0.1 points"


def sentence(rule: str) -> str:
    """The title of a rule with a capital; losses as they are written."""
    return rule_title(rule).capitalize() if rule in CURVE_TITLES else rule


def _alternative(row: Facts, published: Published) -> Facts:
    own, value = row["rule"] == "optimal", row["risk" if published.by_share else "withheld"]
    return {
        "rule": sentence(row["rule"]),
        "own": own,
        "value": value_text(value, "share"),
        "cost": "" if own else points(row["cost"]),
        "bar": bar(value),
    }


def _priors(published: Published) -> Facts | None:
    """The fitted prior of each class with its standard errors; None where there is one class, or covariates."""
    data, prior = published.publication.data, published.publication.prior
    if prior is None or not prior.parts or prior.coefficients is not None:
        return None
    kinds = data.table.select(data.target).unique().sort(pl.struct(data.target).rank("dense")).rows()
    rows = [_prior(" ".join(map(str, kind)), part) for kind, part in zip(kinds, prior.parts, strict=True)]
    return {"rows": rows[:MAX_ROWS], "cut": number(len(rows)) if len(rows) > MAX_ROWS else None}


def _prior(name: str, part: PriorFit) -> Facts:
    pairs = [] if part.boundary else [(part.alpha, part.errors.alpha), (part.beta, part.errors.beta)]
    return {
        "name": name,
        "mean": f"{value_text(float(part.mean), 'share')} ({value_text(float(part.errors.mean), 'share')})",
        "shapes": [f"{number(float(value))} ({number(float(error))})" for value, error in pairs] or ["–", "–"],
        "end": part.boundary or "",
    }


def _cells(published: Published) -> Facts:
    """The suppressed cells, the most dangerous first, then those published last."""
    names = [*published.publication.data.keys]
    table = published.cells.sort("publish", "ratio", descending=[False, True], nulls_last=True)
    return {
        "names": names or ["cell"],
        "cells": [_cell(row, names, place) for place, row in enumerate(table.head(MAX_ROWS).iter_rows(named=True), 1)],
        "cut": number(table.height) if table.height > MAX_ROWS else None,
    }


def _cell(row: Facts, names: list[str], place: int) -> Facts:
    return {
        "labels": ["(missing)" if row[name] is None else str(row[name]) for name in names] or [str(place)],
        "counts": [number(row[name]) for name in ("y", "n", "N")],
        "mean": number(row["mean"]),
        "between": f"{number(row['low'])} to {number(row['high'])}",
        "losses": [number(row["R0"]), number(row["R1"])],
        "ratio": "–" if row["ratio"] is None else "infinite" if row["ratio"] == float("inf") else number(row["ratio"]),
        "publish": row["publish"],
        "answer": row.get("answer"),
    }


def _answers(joint: Answers) -> Facts:
    counts = joint.cells.group_by("answer").agg(cells=pl.len(), pieces=pl.col("piece").n_unique(), y=pl.col("y").sum())
    rows = counts.sort("cells", descending=True).iter_rows(named=True)
    return {
        "words": joint.words,
        "rows": [{"answer": r["answer"], "cells": [number(r[c]) for c in ("cells", "pieces", "y")]} for r in rows],
    }


def _methods(published: Published) -> list[Facts]:
    losses = (published.publication.disclosure, published.publication.nonpublication)
    listed = {type(loss): as_text(loss) for loss in losses if type(loss) in LOSS_KINDS.values()}
    return [method_note(publication, "Expected loss"), *(method_note(kind, name) for kind, name in listed.items())]
