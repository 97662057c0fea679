"""Publish or suppress: the losses of every cell, weighed once where the data is; a point on the curve at once."""

from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, Literal

import polars as pl

import equipoise as eq
from equipoise.data.levels import ORIGINAL
from equipoise.doors.report import publication_page as report_page
from equipoise.doors.report.page_parts import for_page
from equipoise.doors.web.full_paths import without_folders
from equipoise.doors.web.memory import Memory, Policy, frozen
from equipoise.doors.web.work.publish_settings import loss_of, publication_arguments
from equipoise.doors.web.work.table_settings import Plain
from equipoise.doors.web.work.tables import asked_level, categories, columns, level_for
from equipoise.ground.errors import EquipoiseError, ParameterError, hint
from equipoise.ground.progress import Progress, report
from equipoise.ground.system import packaged
from equipoise.losses.expectation import LOSS_KINDS, UNITS
from equipoise.methods.method import name_of
from equipoise.presentation.numbers import number, percent, value_text
from equipoise.publishing import WeighedPublication, curve_steps, fitting_groups, survey_source
from equipoise.publishing.publish import Published
from equipoise.recipe.catalogue import form, summary, typed

LOSSES = ("uniques", "gamma_uniques", "small_group", "respondents", "threshold")
FIRST = {"S": 10.0, "a": 1.0, "minimum": 10.0}
WORDS = packaged("doors/web/work/publish_words.toml")
FIELDS, TITLES, SILENCES = WORDS["fields"], WORDS["losses"], WORDS["silences"]
MOST, WINDOW = 60, 15
"""Cells that are listed, and how many on each side of the line."""
MOST_COLUMNS = 2
MIN_LISTED, RARE = 3, "(rare)"
"""Values of fewer records are not named on the page, and a column of words that has some is not proposed."""
FEW, MANY = 20, 60
RISK = 0.2
STEPS = 600
"""Steps of the curve that the page knows for dragging."""
Shown = Literal["line", "withheld", "published"]


def settled(memory: Memory, folder: Path, policy: Policy, draft: Policy) -> Plain:
    """The settings as they are, or those that are proposed where there are none yet, or none that fit."""
    names = [column["name"] for column in columns(memory, folder, policy)]
    if (draft.get("domain") or draft.get("target")) and {*draft["domain"], *draft["target"]} <= set(names):
        return dict(draft)
    proposal = _proposed(memory, folder, policy)
    if not proposal["domain"] or not proposal["target"]:
        return proposal
    try:
        groups = fitting_groups(weighed(memory, folder, policy, proposal).whole)
        return {**proposal, "loss": {"use": "uniques", "S": groups or 10.0}}
    except EquipoiseError:
        return proposal


def _proposed(memory: Memory, folder: Path, policy: Policy) -> Plain:
    """Areas by their role, else the first column of words; classes by two keys, words before numbers."""
    roles, choices = policy.get("roles", {}), columns(memory, folder, policy)
    fit = {c["name"]: (c, level) for c in choices if c["values"] > 1 and (level := level_for(c, MANY)) is not None}
    words = [name for name, (c, level) in fit.items() if not c["numeric"] and (level != ORIGINAL or not c["rare"])]
    domain = [c for c in roles.get("domain", ()) if c in fit][:MOST_COLUMNS] or words[:1]
    few = {n: level for n, (c, _) in fit.items() if n not in domain and (level := level_for(c, FEW)) is not None}
    keys = [c for c in roles.get("keys", ()) if c in few] or [c for c in words if c in few]
    ranked = sorted(keys, key=lambda name: -categories(fit[name][0], few[name]))
    first = next((name for name in ranked if name in words), None)
    target = [first, *(name for name in ranked if name != first)] if first else ranked
    levels = {name: fit[name][1] for name in domain} | {name: few[name] for name in target[:MOST_COLUMNS]}
    return {
        "domain": domain, "target": target[:MOST_COLUMNS],
        "levels": {c: level for c, level in levels.items() if level != ORIGINAL},
        "loss": {"use": "uniques", "S": 10.0}, "nonpublication": "cell", "population": "", "risk": RISK,
    }  # fmt: skip


def with_columns(memory: Memory, folder: Path, policy: Policy, draft: Policy, picks: Policy) -> Plain:
    """The settings with other areas and classes; a column that is new comes at a level that suits it."""
    before = settled(memory, folder, policy, draft)
    by_name = {column["name"]: column for column in columns(memory, folder, policy)}
    domain, target = (list(dict.fromkeys(c for c in picks[role] if c))[:MOST_COLUMNS] for role in ("domain", "target"))
    silent, population = picks["nonpublication"], picks["population"]
    for name in (*domain, *target, *([population] if population else []), *([silent] if silent not in UNITS else [])):
        if name not in by_name:
            raise ParameterError(f"No column {name!r} in the data.{hint(name, list(by_name))}")
    if set(domain) & set(target):
        raise ParameterError("A column is either an area or a class, not both.")
    levels = dict(picks["levels"])
    old = {*before["domain"], *before["target"]}
    chosen = {c: asked_level(by_name[c], levels.get(c) if c in old else None) for c in (*domain, *target)}
    return {
        **before, "domain": domain, "target": target, "nonpublication": silent, "population": population,
        "levels": {c: level for c, level in chosen.items() if level != ORIGINAL},
    }  # fmt: skip


def with_loss(settings: Policy, name: str) -> Plain:
    """Another loss of disclosure; what both have in common stays."""
    if name not in LOSSES:
        raise ParameterError(f"No loss {name!r}.{hint(name, list(LOSSES))}")
    fields = {f.name: settings["loss"].get(f.name, FIRST[f.name]) for f in form(LOSS_KINDS[name])}
    return {**settings, "loss": {"use": name, **fields}}


def with_field(settings: Policy, name: str, text: str) -> Plain:
    """The loss with another value in a field."""
    kinds = {f.name: f.type for f in form(LOSS_KINDS[settings["loss"]["use"]])}
    if name not in kinds:
        raise ParameterError(f"The loss has no parameter {name!r}.")
    value = typed(text.strip().replace(",", ""), kinds[name], name)
    if not isfinite(value):
        raise ParameterError(f"{name} must be a number.")
    changed = {**settings, "loss": {**settings["loss"], name: value}}
    loss_of(changed)
    return changed


def loss_form(settings: Policy) -> Plain:
    """The form of the loss, made from its fields."""
    kind = LOSS_KINDS[settings["loss"]["use"]]
    fields = [
        {"name": f.name, "label": FIELDS.get(f.name, f.name), "kind": "number", "choices": [],
         "value": f"{settings['loss'][f.name]:,.10g}"}
        for f in form(kind)
    ]  # fmt: skip
    return {"use": name_of(kind), "title": TITLES[name_of(kind)], "about": summary(kind), "fields": fields}


def weighed(memory: Memory, folder: Path, policy: Policy, settings: Policy) -> WeighedPublication:
    """The publication of the settings, weighed once."""
    cells = {name: settings[name] for name in ("domain", "target", "levels", "population")}
    losses = {name: settings[name] for name in ("loss", "nonpublication")}
    memory.raw(folder, policy["data"])
    name = (frozen(policy["data"]), frozen(policy.get("roles", {})), frozen(cells))
    records = memory.records(folder, policy)
    source = memory.once(("publication source", *name), lambda: survey_source(records, settings["levels"]))

    def weigh(prior: Any = None) -> WeighedPublication:
        return WeighedPublication.of(source, prior, **publication_arguments(settings))

    first = memory.once(("publication prior", *name), weigh)
    return memory.once(("publication", *name, frozen(losses)), lambda: weigh(first.whole.prior))


def view(memory: Memory, folder: Path, policy: Policy, draft: Policy, risk: float | None, part: Shown) -> Plain:
    """Everything the page shows: the settings, the columns, the curve, and the point on it."""
    settings = settled(memory, folder, policy, draft)
    view: Plain = {"settings": settings, "columns": columns(memory, folder, policy), "problem": "", "curve": None}
    if not settings["domain"] and not settings["target"]:
        return view
    try:
        publication = weighed(memory, folder, policy, settings)
        at = settings["risk"] if risk is None else risk
        return {**view, "curve": _curve(publication, at), "at": _at(publication, at, part)}
    except EquipoiseError as error:
        return {**view, "problem": without_folders(str(error))}


def point(memory: Memory, folder: Path, policy: Policy, draft: Policy, risk: float, part: Shown) -> Plain:
    """A point on the curve: both losses, the cells around the line, and what other rules would give."""
    return _at(weighed(memory, folder, policy, settled(memory, folder, policy, draft)), risk, part)


def _curve(weighed: WeighedPublication, risk: float) -> Plain:
    """The chart with its movable point, the steps it moves along, and what was assumed."""
    decision, whole = weighed.decided(risk), weighed.whole
    chart = whole.chart(decision.decision, weighed.comparison)
    fit = fitting_groups(whole) if whole.misfit is not None and not whole.misfit.fits else None
    return {
        "spec": movable({**for_page(chart), "width": chart["width"]}, _rows(decision)),
        "steps": curve_steps(whole, STEPS),
        "meanings": report_page.meanings(decision),
        "notes": list(whole.notes),
        "fit": fit if whole.disclosure.__class__ is LOSS_KINDS["uniques"] else None,
    }


def movable(spec: Plain, rows: Mapping[str, Any]) -> Plain:
    """The chart with the decision as data that the page may change."""
    right = "datum.withheld > 0.6"
    beside: Plain = {"align": {"expr": f"{right} ? 'right' : 'left'"}, "dx": {"expr": f"{right} ? -12 : 12"}}
    layers = []
    for layer in spec["layer"]:
        if layer["name"] in rows:
            mark = {**layer["mark"], **(beside if layer["name"] == "chosen_label" else {})}
            layer = {**layer, "data": {"name": layer["name"]}, "mark": mark}
        layers.append(layer)
    return {**spec, "layer": layers, "datasets": dict(rows)}


def _rows(decision: Published) -> Plain:
    """The point as the layers of the chart have it."""
    at = decision.decision
    row = {
        "withheld": at.withheld,
        "risk": at.risk,
        "label": f"{percent(at.withheld)} withheld, {percent(at.risk)} of the risk",
    }
    corner = [{**row, "withheld": 0.0, "at": 0}, {**row, "at": 1}, {**row, "risk": 0.0, "at": 2}]
    return {"guides": corner, "chosen": [row], "chosen_label": [row]}


def _at(weighed: WeighedPublication, risk: float, part: Shown) -> Plain:
    decision = weighed.decided(risk)
    real = decision.decision.realised
    return {
        "risk": decision.decision.risk,
        "withheld": decision.decision.withheld,
        "words": decision.words,
        "counts": decision.counts,
        "real": {"risk": real.risk, "withheld": real.withheld},
        "whole": report_page.whole_cells(decision),
        "line": report_page.drawn_line(decision),
        "cost": report_page.cost_words(decision),
        "others": [
            {"rule": report_page.sentence(row["rule"]), "own": row["rule"] == "optimal",
             "withheld": value_text(row["withheld"], "share"),
             "more": "" if row["rule"] == "optimal" else report_page.points(row["cost"])}
            for row in report_page.by_cost(decision).iter_rows(named=True)
        ],
        "rows": _rows(decision),
        **listed(decision, part),
    }  # fmt: skip


def listed(decision: Published, part: Shown) -> Plain:
    """Cells in their order of publication around the line; or all withheld, the most dangerous first; or published.

    A value of one or two records is not named: the file of the decision has it.
    """
    places, whole = decision.in_order(part, WINDOW if part == "line" else MOST), decision.publication
    counts, names = decision.counts, list(whole.data.keys) or ["cell"]
    rare = pl.col("y").sum()
    veiled = whole.table.with_columns(
        pl.when(rare.over(n) < MIN_LISTED).then(pl.lit(RARE)).otherwise(pl.col(n).cast(pl.String)).alias(n)
        for n in whole.data.keys
    )
    table = veiled[places].with_columns(mean=whole.posterior.mean[places])
    publish = decision.decision.cells["publish"].gather(places).to_list()
    rows = [
        _cell(row, names, int(place), choice)
        for row, place, choice in zip(table.iter_rows(named=True), places, publish, strict=True)
    ]
    return {"names": names, "cells": rows, "shown": part, "of": counts["total" if part == "line" else part]}


def _cell(row: Plain, names: Sequence[str], place: int, publish: bool) -> Plain:
    ratio = row["ratio"]
    return {
        "labels": ["(missing)" if row[n] is None else str(row[n]) for n in names]
        if names != ["cell"]
        else [str(place + 1)],
        "counts": [number(row[name]) for name in ("y", "n", "N")],
        "mean": number(row["mean"]),
        "losses": [number(row["R0"]), number(row["R1"])],
        "ratio": "–" if ratio is None else "infinite" if not isfinite(ratio) else number(ratio),
        "publish": bool(publish),
    }


def decide(progress: Progress, folder: Path, policy: Policy, settings: Policy, out: Path) -> Plain:
    """The decision with its report, written as `equipoise publish --out` writes it."""
    report(progress, 0, 1, "weighing the losses of every cell")
    source = survey_source(Memory().records(folder, policy), settings["levels"])
    name, arguments = Path(policy["data"]["path"]).name, publication_arguments(settings)
    decision = eq.publish(source, risk_at_most=settings["risk"], out=out, name=name, **arguments)
    return {"folder": out.name, "words": decision.words, "counts": decision.counts}
