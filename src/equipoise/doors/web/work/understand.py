"""Understanding a file: what is at stake in it, which keys are behind that, and whom it concerns."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.cells import Cells
from equipoise.data.records import Records
from equipoise.doors.web.memory import Memory, frozen
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
from equipoise.risk import AttributeDisclosure, Household, Individual, PopulationUniques, Prosecutor, Uniques

FEWER = (2, 3, 5)
"""Classes of fewer records than these are counted."""
EDGES = (1, 2, 3, 4, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Where the bars of class sizes begin."""
SMALL = 5
"""Classes below this are drawn as small ones."""
ROOM = 1.12
"""Height of the chart against its highest bar, so that its label fits."""
CATEGORIES = 12
"""Categories listed when values are asked for."""
WIDEST = 60
"""Letters of a value that are shown."""
CENSUS = "No column is a weight: the file is taken for the whole population, the worst case."
LIGHT = "The weights add up to no more than the records: the file is taken for the whole population."


def glance(held: Memory, folder: Path, policy: Mapping[str, Any]) -> dict[str, Any]:
    """The risks of the file as it is, in numbers and in one sentence, and how large its classes are."""
    return held.once(_name("glance", policy), lambda: _glance(*_counted(held, folder, policy)))


def keys(held: Memory, folder: Path, policy: Mapping[str, Any]) -> dict[str, Any]:
    """What each key contributes: the uniques that would be none without it, and the mildest coarsening that helps."""
    return held.once(_name("keys", policy), lambda: _keys(*_counted(held, folder, policy)))


def people(held: Memory, folder: Path, policy: Mapping[str, Any], values: bool) -> dict[str, Any]:
    """The records most at risk by id or row number; values of their keys, and the rarest, if asked for."""
    records, cells = _counted(held, folder, policy)
    found = held.once(_name("worst", policy), lambda: worst(records, cells))
    name = found.columns[0]
    rows = [{"id": str(row[0])[:WIDEST], "risk": row[1], "alike": row[2]} for row in found.iter_rows()]
    shown: dict[str, Any] = {"name": name, "rows": rows, "keys": list(cells.by), "by_id": bool(records.roles.id)}
    risk = of_cells(cells)
    shown["tied"] = int(cells.n[risk >= rows[-1]["risk"]].sum()) if rows else 0
    if values:
        shown |= {"values": _values(records, found, cells.by), "categories": _categories(cells)}
    return shown


def _counted(held: Memory, folder: Path, policy: Mapping[str, Any]) -> tuple[Records, Cells]:
    records = held.records(folder, policy)
    if not records.roles.keys:
        raise RolesError("No column is a key yet: say which columns an intruder may know.")
    held.once(_name("fit", policy), lambda: refuse_unfit(records))
    return records, held.cells(folder, policy)


def _name(what: str, policy: Mapping[str, Any]) -> tuple[Any, ...]:
    return "understand", what, frozen(policy["data"]), frozen(policy.get("roles", {}))


# Risks ----------------------------------------------------------------------------------------------------------------


def _glance(records: Records, cells: Cells) -> dict[str, Any]:
    sizes = cells.alike[0]
    usual = standard(records)
    found: dict[str, Any] = {
        "records": cells.records,
        "keys": list(cells.by),
        "smallest": int(sizes.min()),
        "uniques": _told(Uniques(), records),
        "fewer": [{"k": k, **_told(Uniques(k - 1), records)} for k in FEWER],
        "matched": _told(Prosecutor("mean"), records),
        "individual": _individual(records, cells),
        "population": _first(usual, PopulationUniques, records),
        "household": _household(usual, records),
        "learnt": [
            {"column": m.sensitive, **_told(m, records)} for m in usual if isinstance(m, AttributeDisclosure)
        ],
        "bars": bars(sizes, cells.n),
    }  # fmt: skip
    return found | {"sentence": sentence(found), "chart": chart(found["bars"])}


def _told(measure: Measure, records: Records) -> dict[str, Any]:
    """A score as plain data; where it cannot be measured, why."""
    try:
        score = both_ways(measure, records, records)
    except EquipoiseError as error:
        return {"share": None, "number": None, "notes": [str(error)]}
    return _plain(score)


def _plain(score: Score) -> dict[str, Any]:
    return {"share": float(score.value), "number": score.number, "notes": list(score.notes)}


def _first(usual: tuple[Measure, ...], kind: type, records: Records) -> dict[str, Any] | None:
    return next((_told(measure, records) for measure in usual if isinstance(measure, kind)), None)


def _individual(records: Records, cells: Cells) -> dict[str, Any]:
    found, risk = _told(Individual(), records), of_cells(cells)
    doubt = CENSUS if not records.roles.weight else LIGHT if cells.total.sum() <= cells.records else None
    found["notes"] = [*([doubt] if doubt else []), *found["notes"]]
    high = float(risk.max())
    return found | {"worst": high, "worst_records": int(cells.n[risk == high].sum()), "weighted": doubt is None}


def _household(usual: tuple[Measure, ...], records: Records) -> dict[str, Any] | None:
    if not any(isinstance(measure, Household) for measure in usual):
        return None
    try:
        score = both_ways(Household(), records, records)
    except EquipoiseError as error:
        return {"share": None, "number": None, "worst": None, "homes": None, "notes": [str(error)]}
    homes = score.detail
    return _plain(score) | {"worst": homes["risk"][0], "homes": homes.height}


def sentence(found: Mapping[str, Any]) -> str:
    """What is at stake, in one sentence."""
    alone, one = found["uniques"], found["individual"]
    if alone["number"]:
        many = "1 record is" if alone["number"] == 1 else f"{percent(alone['share'])} of the records are"
        first = f"{many} alone on what an outsider may know"
    else:
        others = found["smallest"] - 1
        first = f"No record is alone on what an outsider may know: each has at least {others:,} like it"
    right = f"{one['number']:,.0f} of {found['records']:,}" if one["number"] >= 1 else "less than one"
    success = f"whoever looks for them all in the population is expected to be right for {right}"
    return f"{first}; {success}, and for the worst-placed record with a chance of {percent(one['worst'])}."


# Class sizes ----------------------------------------------------------------------------------------------------------


def bars(sizes: Integers, n: Integers) -> list[dict[str, Any]]:
    """Records by the size of their class: one row per bar, up to the largest there is.

    >>> [(bar["label"], bar["records"]) for bar in bars(np.array([1, 1, 3, 7]), np.array([1, 1, 3, 7]))]
    [('1', 2), ('2', 0), ('3', 3), ('4', 0), ('5–9', 7)]
    """
    place = np.searchsorted(EDGES, sizes, side="right") - 1
    last = int(place.max())
    records = np.bincount(place, weights=n, minlength=last + 1)
    return [
        {"label": _label(at), "least": EDGES[at], "records": int(records[at]), "share": float(records[at] / n.sum())}
        for at in range(last + 1)
    ]


def _label(at: int) -> str:
    if at + 1 == len(EDGES):
        return f"{EDGES[at]:,}+"
    low, high = EDGES[at], EDGES[at + 1] - 1
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def chart(rows: list[dict[str, Any]]) -> Spec:
    """The bars as a Vega-Lite specification: those who are alone, those in small classes, the others."""
    order = [row["label"] for row in rows]
    told = [row | {"said": percent(row["share"]), "counted": f"{row['records']:,}"} for row in rows]
    alone, small, large = (
        told[:1],
        [r for r in told[1:] if r["least"] < SMALL],
        [r for r in told if r["least"] >= SMALL],
    )
    most = ROOM * max(row["share"] for row in rows)
    text = [{"at": row["label"], "share": row["share"], "label": row["said"]} for row in told if row["share"]]
    return {
        "$schema": SCHEMA,
        "description": described(rows),
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


def described(rows: list[dict[str, Any]]) -> str:
    """The chart in a sentence, for those who hear it."""
    parts = (f"{row['label']}: {percent(row['share'])}" for row in rows if row["records"])
    return f"Share of the records by the size of their class. {'; '.join(parts)}."


# Keys and people ------------------------------------------------------------------------------------------------------


def _keys(records: Records, cells: Cells) -> dict[str, Any]:
    """Most harmful first. The margins are counted apart, so that they are not kept."""
    table = by_key(Cells(cells.by, cells.cube, cells.hierarchies, open=cells.open))
    mild = {row["key"]: row for row in mildest(helps(cells)).iter_rows(named=True)}
    rows = []
    for row in table.iter_rows(named=True):
        gone = row["uniques"] - row["without"]
        rows.append(
            {
                "key": row["key"], "label": records.labels.of(row["key"]).label or "", "categories": row["categories"],
                "gone": gone, "share": gone / row["uniques"] if row["uniques"] else 0.0, "without": row["without"],
                "mild": mild.get(row["key"]),
            }
        )  # fmt: skip
    return {"rows": sorted(rows, key=lambda row: -row["gone"]), "uniques": table["uniques"][0]}


def _values(records: Records, found: pl.DataFrame, by: tuple[str, ...]) -> list[list[str]]:
    """The keys of the records listed, in their order."""
    key = found.columns[0]
    columns = (key, *(column for column in by if column != key)) if records.roles.id else by
    rows = records.collect(*columns)
    rows = rows if records.roles.id else rows.with_row_index("record")
    picked = found[key].cast(rows.schema[key]).to_frame().join(rows, on=key, how="left", maintain_order="left")
    return [[shown(value) for value in row] for row in picked.select(by).rows()]


def _categories(cells: Cells) -> list[dict[str, Any]]:
    """The categories whose records are alone more often than others, most uniques first."""
    table = by_category(cells)
    usual = float((cells.alike[0] == 1).sum()) / cells.records
    rows = table.filter((pl.col("uniques") > 0) & (pl.col("share") > usual)).head(CATEGORIES).iter_rows(named=True)
    return [row | {"category": shown(row["category"])} for row in rows]


def shown(value: object) -> str:
    """A value as the page shows it, cut where it is long."""
    return "–" if value is None else str(value)[:WIDEST]
