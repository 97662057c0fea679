"""Risks of the original file: overview, contribution of each key, and the records most at risk."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.cells import Cells
from equipoise.data.records import Records
from equipoise.doors.web.full_paths import without_folders
from equipoise.doors.web.memory import Memory, Policy
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import EquipoiseError, RolesError
from equipoise.inspection.assess import by_category, by_key, refuse_unfit, standard
from equipoise.inspection.worst_records import helps, mildest, worst
from equipoise.laws.mean_reciprocal import of_cells
from equipoise.methods.method import Measure
from equipoise.methods.score import Score
from equipoise.presentation.missing_both_ways import both_ways
from equipoise.presentation.numbers import percent
from equipoise.presentation.style import BLUE, GREY, SCHEMA, VERMILLION, Spec, labels, look
from equipoise.risk import (
    AttributeDisclosure,
    Composition,
    Household,
    Individual,
    PopulationUniques,
    Prosecutor,
    Uniques,
)

CLASS_SIZE_LIMITS = (2, 3, 5)
"""Sizes for which the records in smaller classes are counted."""
BAR_EDGES = (1, 2, 3, 4, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Lower ends of the bars of class sizes."""
SMALL_CLASS_RECORDS = 5
"""Classes with fewer records than this are drawn as small."""
CHART_HEADROOM = 1.12
"""Height of the chart against its highest bar, so that its label fits."""
MAX_CATEGORIES = 12
"""Categories listed when values are shown."""
MAX_VALUE_LENGTH = 60
"""Characters of a value that are shown."""
UNWEIGHTED = "No column is a weight: the file is taken for the whole population, the worst case."
LOW_WEIGHTS = "The weights add up to no more than the records: the file is taken for the whole population."


def overview(memory: Memory, folder: Path, policy: Policy) -> dict[str, Any]:
    """The risks of the file in numbers and in one sentence, and the sizes of its classes."""
    return memory.once_for(policy, "glance", lambda: _overview(*_records_and_cells(memory, folder, policy)))


def keys(memory: Memory, folder: Path, policy: Policy) -> dict[str, Any]:
    """The contribution of each key: the uniques that vanish without it, and the mildest coarsening that helps."""
    return memory.once_for(policy, "understand keys", lambda: _keys(*_records_and_cells(memory, folder, policy)))


def riskiest_records(memory: Memory, folder: Path, policy: Policy, values: bool) -> dict[str, Any]:
    """The records most at risk by row number; by their id, with their keys and rare categories, if `values`."""
    records, cells = _records_and_cells(memory, folder, policy)
    riskiest = memory.once_for(policy, "worst", lambda: worst(records, cells))
    by_id = values and bool(records.roles.id)
    name = riskiest.columns[1 if by_id else 0]
    rows = [
        {"id": str(row[name])[:MAX_VALUE_LENGTH], "risk": row["risk"], "alike": row["alike"]}
        for row in riskiest.iter_rows(named=True)
    ]
    facts: dict[str, Any] = {"name": name, "rows": rows, "keys": list(cells.by), "by_id": by_id}
    risk = of_cells(cells)
    facts["tied"] = int(cells.n[risk >= rows[-1]["risk"]].sum()) if rows else 0
    if values:
        facts |= {"values": _values(records, riskiest, cells.by), "categories": _categories(cells)}
    return facts


def _records_and_cells(memory: Memory, folder: Path, policy: Policy) -> tuple[Records, Cells]:
    records = memory.records(folder, policy)
    if not records.roles.keys:
        raise RolesError("No column is a key yet: say which columns an intruder may know.")
    memory.once_for(policy, "fit", lambda: refuse_unfit(records))
    return records, memory.cells(folder, policy)


def _overview(records: Records, cells: Cells) -> dict[str, Any]:
    sizes = cells.alike[0]
    usual = standard(records)
    facts: dict[str, Any] = {
        "records": cells.records,
        "keys": list(cells.by),
        "smallest": int(sizes.min()),
        "uniques": _measure_facts(Uniques(), records),
        "fewer": [{"k": k, **_measure_facts(Uniques(k - 1), records)} for k in CLASS_SIZE_LIMITS],
        "matched": _measure_facts(Prosecutor("mean"), records),
        "individual": _individual(records, cells),
        "population": next((_measure_facts(m, records) for m in usual if isinstance(m, PopulationUniques)), None),
        "household": _household(usual, records),
        "composition": next((_measure_facts(m, records) for m in usual if isinstance(m, Composition)), None),
        "learnt": [
            {"column": m.sensitive, **_measure_facts(m, records)} for m in usual if isinstance(m, AttributeDisclosure)
        ],
        "bars": bars(sizes, cells.n),
    }  # fmt: skip
    return facts | {"sentence": sentence(facts), "chart": chart(facts["bars"])}


def _measure_facts(measure: Measure, records: Records) -> dict[str, Any]:
    """A measure's score as plain data; the reason where it cannot be measured."""
    try:
        score = both_ways(measure, records, records)
    except EquipoiseError as error:
        return {"share": None, "number": None, "notes": [without_folders(str(error))]}
    return _plain_score(score)


def _plain_score(score: Score) -> dict[str, Any]:
    return {"share": float(score.value), "number": score.number, "notes": list(score.notes)}


def _individual(records: Records, cells: Cells) -> dict[str, Any]:
    facts, risk = _measure_facts(Individual(), records), of_cells(cells)
    doubt = UNWEIGHTED if not records.roles.weight else LOW_WEIGHTS if cells.total.sum() <= cells.records else None
    facts["notes"] = [*([doubt] if doubt else []), *facts["notes"]]
    high = float(risk.max())
    return facts | {"worst": high, "worst_records": int(cells.n[risk == high].sum()), "weighted": doubt is None}


def _household(usual: tuple[Measure, ...], records: Records) -> dict[str, Any] | None:
    if not any(isinstance(measure, Household) for measure in usual):
        return None
    try:
        score = both_ways(Household(), records, records)
    except EquipoiseError as error:
        return {"share": None, "number": None, "worst": None, "homes": None, "notes": [without_folders(str(error))]}
    homes = score.detail
    return _plain_score(score) | {"worst": homes["risk"][0], "homes": homes.height}


def sentence(facts: Mapping[str, Any]) -> str:
    """The risks of the file in one sentence."""
    alone, one = facts["uniques"], facts["individual"]
    if alone["number"]:
        many = "1 record is" if alone["number"] == 1 else f"{percent(alone['share'])} of the records are"
        first = f"{many} alone on what an outsider may know"
    else:
        others = facts["smallest"] - 1
        first = f"No record is alone on what an outsider may know: each has at least {others:,} like it"
    right = f"{one['number']:,.0f} of {facts['records']:,}" if one["number"] >= 1 else "less than one"
    success = f"whoever looks for them all in the population is expected to be right for {right}"
    return f"{first}; {success}, and for the worst-placed record with a chance of {percent(one['worst'])}."


def bars(sizes: Integers, n: Integers) -> list[dict[str, Any]]:
    """Histogram of records by class size: one row per bar, up to the largest class.

    >>> [(bar["label"], bar["records"]) for bar in bars(np.array([1, 1, 3, 7]), np.array([1, 1, 3, 7]))]
    [('1', 2), ('2', 0), ('3', 3), ('4', 0), ('5–9', 7)]
    """
    place = np.searchsorted(BAR_EDGES, sizes, side="right") - 1
    records = np.bincount(place, weights=n)
    return [
        {"label": _label(at), "least": BAR_EDGES[at], "records": int(row), "share": float(row / n.sum())}
        for at, row in enumerate(records)
    ]


def _label(at: int) -> str:
    if at + 1 == len(BAR_EDGES):
        return f"{BAR_EDGES[at]:,}+"
    low, high = BAR_EDGES[at], BAR_EDGES[at + 1] - 1
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def chart(rows: list[dict[str, Any]]) -> Spec:
    """Vega-Lite chart of class sizes: uniques, small classes and the others."""
    order = [row["label"] for row in rows]
    labelled = [row | {"said": percent(row["share"]), "counted": f"{row['records']:,}"} for row in rows]
    alone, small, large = (
        labelled[:1],
        [r for r in labelled[1:] if r["least"] < SMALL_CLASS_RECORDS],
        [r for r in labelled if r["least"] >= SMALL_CLASS_RECORDS],
    )
    most = CHART_HEADROOM * max(row["share"] for row in rows)
    text = [{"at": row["label"], "share": row["share"], "label": row["said"]} for row in labelled if row["share"]]
    return {
        "$schema": SCHEMA,
        "description": chart_description(rows),
        "width": "container",
        "height": 230,
        "encoding": {
            "x": {"field": "at", "type": "ordinal", "scale": {"domain": order}, "axis": {
                "title": "Records that look the same on all keys (size of the class)", "labelAngle": 0, "grid": False}},
            "y": {"field": "share", "type": "quantitative", "scale": {"domain": [0, most], "nice": False}, "axis": {
                "title": "Share of the records", "format": ".0~%", "tickCount": 5}},
        },
        "layer": [
            _bar("alone", alone, VERMILLION),
            _bar("few", small, GREY),
            _bar("many", large, BLUE),
            labels("bar_label", text, dy=-8),
        ],
        "config": look() | {"background": "transparent"},
    }  # fmt: skip


def _bar(name: str, rows: list[dict[str, Any]], colour: str) -> Spec:
    tooltip = [
        {"field": "at", "type": "nominal", "title": "Size of the class"},
        {"field": "counted", "type": "nominal", "title": "Records"},
        {"field": "said", "type": "nominal", "title": "Share"},
    ]
    values = [{"at": r["label"], "share": r["share"], "counted": r["counted"], "said": r["said"]} for r in rows]
    mark = {"type": "bar", "color": colour, "cornerRadiusEnd": 2}
    return {"name": name, "data": {"values": values}, "mark": mark, "encoding": {"tooltip": tooltip}}


def chart_description(rows: list[dict[str, Any]]) -> str:
    """The chart in a sentence, for screen readers."""
    parts = (f"{row['label']}: {percent(row['share'])}" for row in rows if row["records"])
    return f"Share of the records by the size of their class. {'; '.join(parts)}."


def _keys(records: Records, cells: Cells) -> dict[str, Any]:
    """The keys, most harmful first. Margins are counted on a copy of the cells, so that they are not cached."""
    table = by_key(Cells(cells.by, cells.cube, cells.hierarchies, open=cells.open, people=cells.people))
    mild = {row["key"]: row for row in mildest(helps(cells)).iter_rows(named=True)}
    rows = []
    for row in table.iter_rows(named=True):
        drop = row["uniques"] - row["without"]
        rows.append(
            {
                "key": row["key"], "label": records.labels.of(row["key"]).label or "", "categories": row["categories"],
                "gone": drop, "share": drop / row["uniques"] if row["uniques"] else 0.0, "without": row["without"],
                "mild": mild.get(row["key"]),
            }
        )  # fmt: skip
    return {"rows": sorted(rows, key=lambda row: -row["gone"]), "uniques": table["uniques"][0]}


def _values(records: Records, riskiest: pl.DataFrame, by: tuple[str, ...]) -> list[list[str]]:
    """The keys of the listed records, in the same order."""
    picked = records.collect(*by)[riskiest["record"]]
    return [[value_text(value) for value in row] for row in picked.select(by).rows()]


def _categories(cells: Cells) -> list[dict[str, Any]]:
    """The categories with more uniques than average, most uniques first."""
    table = by_category(cells)
    usual = float(cells.n[cells.alike[0] == 1].sum()) / cells.records
    rows = table.filter((pl.col("uniques") > 0) & (pl.col("share") > usual)).head(MAX_CATEGORIES).iter_rows(named=True)
    return [row | {"category": value_text(row["category"])} for row in rows]


def value_text(value: object) -> str:
    """The text of a value on the page, truncated where it is long."""
    return "–" if value is None else str(value)[:MAX_VALUE_LENGTH]
