"""Primary cells against real output of tau-ARGUS, cell by cell; a twin on data made here never skips."""

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.rules import PPercent

DATA = os.environ.get("EQUIPOISE_DATA")
real = pytest.mark.skipif(not DATA, reason="EQUIPOISE_DATA is not set: no tau-ARGUS files")


def folder(name: str) -> Path:
    return Path(DATA or "") / "tables" / "tauargus" / name


def groups(path: Path) -> dict[str, str]:
    """The two levels of a file in which @ marks the lower one."""
    found, above = {}, ""
    for line in path.read_text().splitlines():
        if line.startswith("@"):
            found[line[1:]] = above
        else:
            above = line.strip()
    return found


def expected(path: Path, by: list[str]) -> pl.DataFrame:
    """Cells with a value: their keys, the value, and whether status 3 (unsafe by rule) was given."""
    table = pl.read_csv(path, has_header=False, new_columns=[*by, "told", "status"], infer_schema=False)
    return table.filter(pl.col("told") != "-").with_columns(
        pl.col("told").cast(pl.Float64), (pl.col("status") == "3").alias("unsafe")
    )


@real
def test_the_classic_file_size_by_region() -> None:
    """testW, Var2, p = 15 %: 9 primaries among 153 cells, of which 34 are empty."""
    frame = pl.read_csv(folder("testW") / "tau_testW.csv", infer_schema=False).cast({"Var2": pl.Float64})
    tree = eq.Hierarchy.mapping(groups(folder("testW") / "region2.hrc"))
    records = eq.Records.of(frame, eq.Roles(hierarchies={"Region": tree}))
    table = eq.table(records, ("Size", "Region"), "Var2")
    found = table.table.with_columns(PPercent(0.15).flag(table).alias("flag"))
    told = expected(folder("expected") / "Simple2D.txt", ["Size", "Region"])
    told = told.with_columns(pl.col("Region").replace("99", "Total"))
    both = found.join(told, on=("Size", "Region"), how="left")
    assert (both.height, told.height, both["unsafe"].sum()) == (153, 119, 9)
    assert both["flag"].equals(both["unsafe"].fill_null(value=False).alias("flag"))
    assert np.allclose(both["value"], both["told"].fill_null(0.0), rtol=1e-12)


@real
@pytest.mark.parametrize(("by", "file", "many"), [("product", "test_1.txt", 283), ("region", "test_2b.txt", 339)])
def test_enterprises_by_holding(by: str, file: str, many: int) -> None:
    """Turnover, p = 10 %, contributions by holding; tau-ARGUS called the missing activity safe, its row is left out."""
    frame = pl.read_csv(folder("enterprise") / "example_enterprise.csv", infer_schema=False)
    frame = frame.cast({"turnover": pl.Float64})
    trees = {"act": eq.Hierarchy.mapping(groups(folder("enterprise") / "nace_divisions.hrc") | {"00": "00"})}
    if by == "region":
        trees["region"] = eq.Hierarchy.mapping(groups(folder("enterprise") / "KohStatReg.hrc"))
    table = eq.table(eq.Records.of(frame, eq.Roles()), ("act", by), "turnover", hierarchies=trees, holding="h_id")
    found = table.table.with_columns(PPercent(0.1).flag(table).alias("flag"))
    told = expected(folder("expected") / file, ["act", by])
    both = told.join(found, on=("act", by), how="left").filter(pl.col("act") != "00")
    assert both["n"].null_count() == 0
    assert both["unsafe"].sum() == many
    assert both["flag"].equals(both["unsafe"].alias("flag"))
    assert np.allclose(both["value"], both["told"], atol=0.005)


def test_holdings_change_what_is_sensitive() -> None:
    """Three records of one firm and one of another: two contributors, so the p% rule flags what records would not."""
    frame = pl.DataFrame({"act": ["a"] * 4, "x": [10.0, 10.0, 10.0, 10.0], "firm": [1, 1, 1, 2]})
    records = eq.Records.of(frame, eq.Roles())
    alone, held = (eq.table(records, "act", "x", holding=holding) for holding in (None, "firm"))
    assert PPercent(0.1).flag(alone).to_list() == [False, False]
    assert PPercent(0.1).flag(held).to_list() == [True, True]
    assert held.table.select("top1", "top2", "contributors").row(0) == (30.0, 10.0, 2)
