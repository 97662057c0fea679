"""Tables with their margins against plain loops over records."""

from collections import defaultdict
from itertools import product

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.data.tables.axes import Axis
from equipoise.data.tables.count_table import table

GROUPS = {"a1": ("a", "x"), "a2": ("a", "x"), "b1": ("b", "x"), "c1": ("c", "y"), "c2": ("c", "y")}
TREE = eq.Hierarchy.mapping(GROUPS)
TWICE = eq.Hierarchy.mapping({k: v[0] for k, v in GROUPS.items()}) | eq.Hierarchy.mapping(
    {"a1": "east", "a2": "west", "b1": "east", "c1": "west", "c2": "west"}, names=("side",)
)


def made(seed: int, n: int = 60) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "region": random.choice(list(GROUPS), n),
            "size": random.choice(["s", "m", "l"], n, p=[0.7, 0.2, 0.1]),
            "turnover": random.integers(0, 50, n),
            "firm": random.integers(0, 15, n),
            "w": random.choice([1.0, 1.5, 2.2, 3.0], n),
            "asked": random.random(n) < 0.2,
        }
    )


def above(value: str) -> list[str]:
    return list(dict.fromkeys((value, *GROUPS.get(value, ()), "Total")))


def looped(frame: pl.DataFrame, holding: str | None = None, weight: str | None = None) -> dict:
    """Every cell as a list of (record, contribution, weight), by loops."""
    cells = defaultdict(list)
    for row in frame.iter_rows(named=True):
        for key in product(above(row["region"]), above(row["size"])):
            cells[key].append(row)
    told = {}
    for key, rows in cells.items():
        parts = [(row["turnover"], row[weight] if weight else 1.0) for row in rows]
        if holding:
            sums: dict = defaultdict(float)
            for row, (x, w) in zip(rows, parts, strict=True):
                sums[row[holding]] += x * w
            largest = [(x, 1.0) for x in sums.values()]
            asked = [sums[row[holding]] for row in rows if row["asked"] and row["turnover"]]
        else:
            largest = parts
            asked = [row["turnover"] for row in rows if row["asked"]]
        told[key] = {
            "n": len(rows),
            "total": sum(w for _, w in parts),
            "value": sum(x * w for x, w in parts),
            "contributors": len({row[holding] for row in rows}) if holding else len(rows),
            "tops": expanded(largest),
            "requested": max(asked, default=0.0),
        }
    return told


def expanded(parts: list[tuple[float, float]]) -> list[float]:
    """The three largest when a contribution of weight w stands for w of them, in steps of a tenth."""
    tenths = sorted((x for x, w in parts for _ in range(round(10 * w))), reverse=True) + [0] * 30
    return [sum(tenths[10 * k : 10 * k + 10]) / 10 for k in range(3)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("holding", "weight"), [(None, None), (None, "w"), ("firm", None), ("firm", "w")])
def test_cells_sums_and_largest_contributions(seed: int, holding: str | None, weight: str | None) -> None:
    frame = made(seed)
    records = eq.Records.of(frame, eq.Roles(hierarchies={"region": TREE}))
    found = table(records, ["region", "size"], "turnover", holding=holding, weight=weight, request="asked")
    wanted = looped(frame, holding, weight)
    occupied = found.table.filter(pl.col("n") > 0)
    assert {(r["region"], r["size"]) for r in occupied.iter_rows(named=True)} == set(wanted)
    for row in occupied.iter_rows(named=True):
        cell = wanted[row["region"], row["size"]]
        for name in ("n", "total", "value", "contributors", "requested"):
            assert row[name] == pytest.approx(cell[name], abs=1e-9), name
        assert [row[f"top{k}"] for k in (1, 2, 3)] == pytest.approx(cell["tops"], abs=1e-9)
    empty = found.table.filter(pl.col("n") == 0)
    assert occupied.height + empty.height == len(found.axes[0]) * len(found.axes[1])
    assert empty.select("total", "value", "top1").sum().row(0) == (0, 0, 0)


def test_margins_are_sums_along_every_branch() -> None:
    records = eq.Records.of(made(5, 200), eq.Roles(hierarchies={"region": TWICE}))
    found = table(records, ["region", "size"], "turnover")
    at = {(int(a), int(b)): i for i, (a, b) in enumerate(zip(*found.nodes, strict=True))}
    value = found.numbers("value")
    checked = 0
    for (axis, other), turn in ((found.axes, False), (found.axes[::-1], True)):
        for parent, children in axis.relations():
            for fixed in range(len(other)):
                place = lambda node, fixed=fixed, turn=turn: at[(fixed, node) if turn else (node, fixed)]
                assert value[place(parent)] == pytest.approx(sum(value[place(int(c))] for c in children))
                checked += 1
    labels = found.axes[0].nodes.to_list()
    assert {"east", "west", "a", "b", "c", "Total"} <= set(labels)
    assert checked == 7 * len(found.axes[1]) + len(list(found.axes[1].relations())) * len(labels)
    assert found.records == 200


def test_one_margin_is_the_table_without_the_other_columns() -> None:
    records = eq.Records.of(made(6), eq.Roles(hierarchies={"region": TREE}))
    both, alone = (table(records, by, "turnover") for by in (["region", "size"], "size"))
    assert both.margin(("size",)).table.equals(alone.table)


def test_scanned_files_give_the_same_table(tmp_path) -> None:
    made(7, 500).write_parquet(tmp_path / "firms.parquet")
    roles = eq.Roles(hierarchies={"region": TREE})
    scanned = eq.read(tmp_path / "firms.parquet", roles=roles)
    memory = eq.Records.of(made(7, 500), roles)
    for given in ({}, {"holding": "firm"}, {"weight": "w"}):
        one, two = (table(r, ["region", "size"], "turnover", **given).table for r in (scanned, memory))
        assert one.columns == two.columns
        assert one.select("region", "size").equals(two.select("region", "size"))
        numbers = [c for c in one.columns if c not in ("region", "size")]
        assert np.allclose(one.select(numbers).to_numpy(), two.select(numbers).to_numpy(), atol=1e-9)


def test_counts_alone_and_missing_values() -> None:
    frame = pl.DataFrame({"region": ["a", None, "b", "a"]})
    found = table(eq.Records.of(frame, eq.Roles("region")), "region")
    assert found.table.select("region", "n", "value").sort("region").rows() == [
        ("(missing)", 1, 1.0), ("Total", 4, 4.0), ("a", 2, 2.0), ("b", 1, 1.0),
    ]  # fmt: skip


def test_a_group_called_as_one_of_its_values_is_told_apart() -> None:
    axis = Axis.of(pl.Series("c", ["a", "b", "d"]), eq.Hierarchy.mapping({"a": "a", "b": "a", "d": "d"}))
    assert axis.nodes.to_list() == ["a", "b", "d", "a*", "Total"]
    assert [(p, c.tolist()) for p, c in axis.relations()] == [(3, [0, 1]), (4, [2, 3])]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"turnover": pl.lit(None, dtype=pl.Int64)}, "no finite number in 'turnover'"),
        ({"turnover": pl.lit("x")}, "'turnover' is String, not a number"),
        ({"region": pl.lit("zz")}, "1 value of column 'region' is not in its hierarchy"),
        ({"firm": pl.lit(None, dtype=pl.Int64)}, "60 records have no holding"),
    ],
)
def test_what_cannot_be_tabulated(change: dict, words: str) -> None:
    records = eq.Records.of(made(1).with_columns(**change), eq.Roles(hierarchies={"region": TREE}))
    with pytest.raises(eq.DataError, match=words):
        table(records, ["region", "size"], "turnover", holding="firm")


def test_columns_that_are_not_there() -> None:
    records = eq.Records.of(made(1), eq.Roles())
    with pytest.raises(eq.RolesError, match="Did you mean 'region'"):
        table(records, "regoin", "turnover")
    with pytest.raises(eq.ParameterError, match="by names no column"):
        table(records, [], "turnover")


def test_old_names_work_for_one_version_more() -> None:
    cells = eq.table(eq.read(pl.DataFrame({"k": ["a", "a", "b"]}), eq.Roles("k")), "k")
    with pytest.warns(eq.EquipoiseWarning, match="is now Cells.numbers"):
        assert cells.known("n").tolist() == cells.numbers("n").tolist()
    with pytest.warns(eq.EquipoiseWarning, match="is now Table.published_values"):
        assert cells.told.tolist() == cells.published_values.tolist()
