"""What a page says about a decision to publish or suppress."""

from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import polars as pl

from equipoise.beta_binomial.prior import PriorFit
from equipoise.doors.report.intruder_section import charted, for_page
from equipoise.doors.report.method_notes import described
from equipoise.losses.expectation import LOSS_KINDS, as_text
from equipoise.presentation.numbers import number, percent, said
from equipoise.publishing.alternatives import Answers
from equipoise.publishing.chart import CURVE_TITLES, rule_title
from equipoise.publishing.publication import publication
from equipoise.publishing.publish import Published

Facts = dict[str, Any]
MOST = 100
"""Cells listed; the table of the decision has them all."""
SILENCES = {
    "y": "the sampled records in the cells",
    "Y": "the people expected in the cells",
    "n": "the samples of the domains of the cells",
    "N": "the populations of the domains of the cells",
    "cell": "the cells",
}
"""What the loss of nonpublication counts."""
PACKAGES = ("polars", "numpy", "narwhals")


def publish_facts(found: Published, source: str) -> Facts:
    """A page about one decision; `source` is the name of the file."""
    today = datetime.now(UTC).date()
    check = found.residuals
    return {
        "title": f"Publish or suppress: {source}",
        "made": f"{today.day} {today:%B %Y}",
        "version": version("equipoise"),
        "lead": found.words,
        "whole": whole_cells(found),
        "line": drawn_line(found),
        "meanings": meanings(found),
        "by_share": found.by_share,
        "alternatives": [_alternative(row, found) for row in by_cost(found).iter_rows(named=True)],
        "cost": cost_words(found),
        "notes": found.notes,
        "priors": _priors(found),
        "fit": check.words if check else None,
        "answers": _answers(found.answers) if found.answers else None,
        **_cells(found),
        **charted(
            curve=for_page(found.publication.chart(found.decision, found.comparison)),
            residuals=for_page(check.chart()) if check else None,
        ),
        "methods": _methods(found),
        "versions": [(name, version(name)) for name in PACKAGES],
    }


def meanings(found: Published) -> list[tuple[str, str]]:
    """The two words a reader cannot do without."""
    loss, silent = (as_text(part) for part in (found.publication.disclosure, found.publication.nonpublication))
    what = SILENCES.get(silent, f"{silent}, added up over the cells")
    return [
        ("Risk", f"the expected loss of disclosure, {loss}, of the cells published, out of that of all cells."),
        ("Data withheld", f"{what} that are withheld, out of all."),
    ]


def whole_cells(found: Published) -> str:
    """What publishing whole cells gives."""
    counts, real = found.counts, found.decision.realised
    return (
        f"Of {counts['total']:,} cells {counts['published']:,} are published and {counts['withheld']:,} withheld. As "
        f"whole cells that is {said(real.withheld, 'share')} withheld and {said(real.risk, 'share')} of the risk."
    )


def drawn_line(found: Published) -> str:
    """Where the line was drawn, as a ratio of the two expected losses."""
    last, first = found.decision.cutoff
    if not found.counts["withheld"]:
        return f"All cells are published; the last has R1/R0 = {number(last)}."
    if not found.counts["published"]:
        return f"No cell is published; the first would have R1/R0 = {number(first)}."
    ends = number(last), "infinite" if first == float("inf") else number(first)
    return (
        "Cells are published in the order of R1/R0, the expected loss of publishing over that of withholding: "
        f"the last one published has {ends[0]}, the first one withheld {ends[1]}."
    )


def cost_words(found: Published) -> str:
    """What the dearest of the other rules would cost, chance aside."""
    rest = found.alternatives.filter(~pl.col("rule").is_in(["optimal", "random"]))
    if rest.is_empty() or not rest["cost"].max() > 0:  # type: ignore[operator]
        return ""
    worst = rest.sort("cost", descending=True).row(0, named=True)
    name = rule_title(worst["rule"])
    if found.by_share:
        return (
            f"Followed instead, “{name}” would leave {percent(worst['risk'])} of the risk for the same share published."
        )
    return f"Followed instead, “{name}” would have to withhold {percent(worst['withheld'])} for the same risk."


def by_cost(found: Published) -> pl.DataFrame:
    """The alternatives, the best first."""
    return found.alternatives.sort("cost", maintain_order=True)


def points(cost: float) -> str:
    """Percentage points, to a tenth.

    >>> points(0.0), points(0.0004), points(0.041)
    ('none', 'below 0.1 points', '4.1 points')
    """
    if abs(cost) < 1e-12:
        return "none"
    return f"{100 * cost:.1f} points" if abs(cost) >= 0.001 else "below 0.1 points"


def sentence(rule: str) -> str:
    """A rule at the beginning of a line; losses as they are written."""
    return rule_title(rule).capitalize() if rule in CURVE_TITLES else rule


def _alternative(row: Facts, found: Published) -> Facts:
    own = row["rule"] == "optimal"
    return {
        "rule": sentence(row["rule"]),
        "own": own,
        "value": said(row["risk" if found.by_share else "withheld"], "share"),
        "cost": "" if own else points(row["cost"]),
        "bar": f"{100 * min(1.0, row['risk' if found.by_share else 'withheld']):.1f}%",
    }


def _priors(found: Published) -> Facts | None:
    """The fitted prior of each class with its standard errors; none where there is one class, or covariates."""
    data, prior = found.publication.data, found.publication.prior
    if prior is None or not prior.parts or prior.coefficients is not None:
        return None
    kinds = data.table.select(data.target).unique().sort(pl.struct(data.target).rank("dense")).rows()
    rows = [_prior(" ".join(map(str, kind)), part) for kind, part in zip(kinds, prior.parts, strict=True)]
    return {"rows": rows[:MOST], "cut": number(len(rows)) if len(rows) > MOST else None}


def _prior(name: str, part: PriorFit) -> Facts:
    pairs = [] if part.boundary else [(part.alpha, part.errors.alpha), (part.beta, part.errors.beta)]
    return {
        "name": name,
        "mean": f"{said(float(part.mean), 'share')} ({said(float(part.errors.mean), 'share')})",
        "shapes": [f"{number(float(value))} ({number(float(error))})" for value, error in pairs] or ["–", "–"],
        "end": part.boundary or "",
    }


def _cells(found: Published) -> Facts:
    """The cells withheld, the most dangerous first, then those published last."""
    names = [*found.publication.data.keys]
    table = found.cells.sort("publish", "ratio", descending=[False, True], nulls_last=True)
    return {
        "names": names or ["cell"],
        "cells": [_cell(row, names, place) for place, row in enumerate(table.head(MOST).iter_rows(named=True), 1)],
        "cut": number(table.height) if table.height > MOST else None,
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


def _methods(found: Published) -> list[Facts]:
    losses = (found.publication.disclosure, found.publication.nonpublication)
    listed = {type(loss): as_text(loss) for loss in losses if type(loss) in LOSS_KINDS.values()}
    return [described(publication, "Expected loss"), *(described(kind, name) for kind, name in listed.items())]
