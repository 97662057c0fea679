"""Tables that others have tabulated: tau-ARGUS, sdcTable, rtauargus, SSBtools. Twins are in the tests of the parts."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.ground.randomness import Draws
from equipoise.rules import Dominance, Marked, MinCount, PPercent
from equipoise.tables import Ready, Suppress, audit

EXPECTED = "s s s s x u s s s s x x s s s"
"""What tau-ARGUS made of its two batch examples: Total, male, female in Total, A, B, C, D."""


@pytest.fixture
def folder(data_folder: Path) -> Path:
    return data_folder / "tables"


def letters(shown: eq.Cells) -> str:
    order = [(r, g) for r in ("Total", "A", "B", "C", "D") for g in ("Total", "male", "female")]
    status = {(r, g): s for r, g, s in shown.table.select("region", "gender", "status").iter_rows()}
    return " ".join({"published": "s", "secondary": "x", "sensitive": "u"}[status[cell]] for cell in order)


def test_the_first_batch_of_tau_argus_is_a_table(folder: Path) -> None:
    table = eq.table(eq.read(folder / "tauargus" / "batch_ex1" / "tabdata_ex1.tab"), ready=True)
    for method in ("fast", "optimal"):
        shown = Suppress(Marked(), method=method).apply(table, Draws(1))
        assert letters(shown) == EXPECTED


def test_the_second_batch_of_tau_argus_is_microdata(folder: Path) -> None:
    """FREQ(5,20) and P(20,5), without weights."""
    place = folder / "tauargus" / "batch_ex2"
    found = eq.read(place / "microdata_ex2.asc", metadata=place / "metadata_ex2.rda")
    records = eq.Records.of(found.collect(), eq.Roles(hierarchies=found.roles.hierarchies))
    table = eq.table(records, ["region", "gender"], "num1", top=6)
    assert letters(Suppress(MinCount(5, 0.2) | PPercent(0.2, 5)).apply(table, Draws(1))) == EXPECTED


def test_a_table_of_tau_argus_with_changed_cells(folder: Path) -> None:
    """Var2 was changed by hand in four cells of this file and does not add up; the shadow variable does."""
    records = eq.read(folder / "tauargus" / "tableinput" / "pp.tab")
    with pytest.raises(
        eq.DataError, match=r"Size = 2, Region = 6 has contributions that do not sum .* 'Var2_Shadow': name it"
    ):
        eq.table(records, ready=True)
    with pytest.raises(eq.DataError, match=r"Size = Total, Region = 4 .*not the sum of its parts along 'Size'"):
        eq.table(records, ready=Ready(top=()))
    table = eq.table(records, ["Size", "Region"], "Var2_Shadow", ready=Ready(top=()))
    assert len(table) == 162
    assert Marked().flag(table).sum() == 9
    shown = Suppress(Marked()).apply(table, Draws(1))
    assert not audit(shown).select("exact", "exposed").to_numpy().any()


def test_the_p_percent_rule_gives_the_levels_of_tau_argus(folder: Path) -> None:
    """The four cells put back: p = 15 % flags the nine cells that are marked, to their levels."""
    records = eq.read(folder / "tauargus" / "tableinput" / "pp.tab")
    cells = records.collect()
    changed = pl.col("Var2") != pl.col("Var2_Shadow")
    assert cells.filter(changed).height == 4
    alone = changed & (pl.col("FreqVar") == 1)
    cells = cells.with_columns(
        Top1=pl.when(alone).then(pl.col("Var2_Shadow")).otherwise(pl.col("Top1").cast(pl.Float64)),
        Var2=pl.col("Var2_Shadow"),
    )
    given = eq.Records.of(cells, records.roles, labels=records.labels)
    table = eq.table(given, ready=True)
    rule = PPercent(0.15)
    assert rule.flag(table).sum() == 9
    assert rule.flag(table).equals(Marked().flag(table))
    assert np.allclose(rule.levels(table), Marked().levels(table), atol=0.005)


def test_four_by_four(folder: Path) -> None:
    records = eq.read(folder / "sdctable" / "problem_4x4.csv")
    table = eq.table(records, ["v1", "v2"], ready=Ready(n="freq", status="sdcStatus"))
    assert [axis.nodes[axis.total] for axis in table.axes] == ["tot", "tot"]
    shown = Suppress(Marked()).apply(table, Draws(1))
    found = audit(shown)
    assert (found.filter(pl.col("against") == "outsider")["status"] == "sensitive").sum() == 9
    assert not found.select("exact", "exposed").to_numpy().any()


# --- rtauargus ------------------------------------------------------------------------------------------------------


@pytest.fixture
def turnover(folder: Path) -> Callable[[str], eq.Cells]:
    place = folder / "rtauargus"
    activities = pl.read_csv(place / "activity_corr_table.csv", infer_schema=False)
    regions = pl.read_csv(place / "nuts23_fr_corr_table.csv", infer_schema=False)
    trees = {
        "ACTIVITY": eq.Hierarchy.mapping({fine: (middle, wide) for wide, middle, fine in activities.iter_rows()}),
        "NUTS": eq.Hierarchy.mapping({fine: wide for wide, fine in regions.iter_rows()}),
    }

    def table(name: str) -> eq.Cells:
        records = eq.read(place / f"turnover_{name}.csv")
        by = [column for column in records.schema() if column not in ("N_OBS", "TOT", "MAX")]
        return eq.table(records, by, "TOT", hierarchies=trees, ready=Ready(n="N_OBS", top=("MAX",)))

    return table


def test_tables_with_hierarchies(turnover: Callable[[str], eq.Cells]) -> None:
    sizes = {"act_size": 452, "act_cj": 452, "nuts_size": 476, "nuts_cj": 476, "act_nuts_size": 107 * 14 * 4}
    for name, many in sizes.items():
        assert len(turnover(name)) == many
    east = turnover("act_nuts_size")
    assert [axis.nodes[axis.total] for axis in east.axes] == ["Total", "Total_EAST", "Total"]


def test_linked_tables(turnover: Callable[[str], eq.Cells]) -> None:
    tables = [turnover("nuts_size"), turnover("nuts_cj")]
    linked = eq.protect_tables(tables, Suppress(MinCount(3)))
    assert not linked.audit.select("exact", "exposed").to_numpy().any()
    shared = [t.table.filter(pl.col(c) == "Total").sort("NUTS") for t, c in zip(linked, ("SIZE", "CJ"), strict=True)]
    assert shared[0]["published"].is_null().equals(shared[1]["published"].is_null())
    with pytest.raises(eq.DataError, match="have another value in another table"):
        eq.protect_tables([turnover("act_size"), turnover("act_nuts_size")], Suppress(MinCount(3)))


def test_a_hierarchy_that_was_not_said(folder: Path) -> None:
    records = eq.read(folder / "rtauargus" / "turnover_act_size.csv")
    with pytest.raises(eq.DataError, match="parts along 'ACTIVITY': where codes are groups of others, give the hier"):
        eq.table(records, ["ACTIVITY", "SIZE"], "TOT", ready=Ready(n="N_OBS"))


def test_a_table_with_a_negative_cell(folder: Path) -> None:
    """Dominance (1, 85 %) by the absolute total that the file has: its own flags, but for the one negative cell, which
    it flags by the negative total. The counts are rounded up, so that two of its counts below 3 are 3 there."""
    file = pl.read_csv(folder / "rtauargus" / "datatest1.csv").rename({"pizzas_tot_abs": "gross"})
    by = ["treff", "cj", "type_distrib", "A10"]
    ready = Ready(n="nb_obs_rnd", top=("pizzas_max",))
    table = eq.table(eq.Records.of(file, eq.Roles()), by, "pizzas_tot", ready=ready)
    rows = file.join(table.table.with_columns(dominated=Dominance(1, 0.85).flag(table)).select(*by, "dominated"), on=by)
    assert rows.height == 689
    others = rows.filter(pl.col("is_secret_dom") != pl.col("dominated"))
    assert others["pizzas_tot"].to_list() == rows.filter(pl.col("pizzas_tot") < 0)["pizzas_tot"].to_list()
    with pytest.raises(eq.DataError, match="has no whole number in column 'nb_obs', its count"):
        eq.table(eq.Records.of(file, eq.Roles()), by, "nb_obs_rnd", ready=Ready(n="nb_obs"))


# --- SSBtools: inner cells alone ------------------------------------------------------------------------------------


def test_inner_cells_alone(folder: Path) -> None:
    """z1 as a ready table is what its microdata gives."""
    ready = eq.table(eq.read(folder / "ssbtools" / "z1.csv"), ["region", "hovedint"], ready=Ready(n="ant"))
    micro = eq.table(eq.read(folder / "ssbtools" / "z1micro.csv"), ["region", "hovedint"])
    columns = ["region", "hovedint", "n"]
    assert ready.table.select(columns).equals(micro.table.select(columns))
    shown = Suppress(MinCount(4)).apply(ready, Draws(1))
    assert not audit(shown).select("exact", "exposed").to_numpy().any()


def test_three_dimensions_with_two_groupings(folder: Path) -> None:
    """z3: regions in counties and in size groups, months in halves; sums by hand."""
    records = eq.read(folder / "ssbtools" / "z3.csv")
    cells = records.collect()
    county, group = (
        eq.Hierarchy.mapping(dict(cells.select("region", name).unique().iter_rows()), names=(name,))
        for name in ("fylke", "kostragr")
    )
    half = eq.Hierarchy.mapping(dict(cells.select("mnd", "mnd2").unique().iter_rows()))
    trees = {"region": county | group, "mnd": half}
    table = eq.table(records, ["region", "hovedint", "mnd"], ready=Ready(n="ant"), hierarchies=trees)
    by = {"region": "region", "fylke": "region", "kostragr": "region"}
    for column in by:
        sums = cells.group_by(pl.col(column).cast(pl.String).alias("region"), "hovedint").agg(pl.col("ant").sum())
        found = table.table.filter(pl.col("mnd") == "Total", pl.col("hovedint") != "Total")
        both = found.join(sums, on=["region", "hovedint"])
        assert both.height == sums.height
        assert both["n"].to_list() == both["ant"].to_list()
