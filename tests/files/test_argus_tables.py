"""tau-ARGUS tables: what the metadata says of the columns, and back from what was written."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.ground.randomness import Draws
from equipoise.rules import Marked, PPercent

RDA = """   <SEPARATOR> ";"
   <SAFE> "OK"
   <UNSAFE> "NO"
   <PROTECT> "MUST"
Size "99"
    <RECODEABLE>
    <TOTCODE> "Sum"
Region "99"
    <RECODEABLE>
    <TOTCODE> "Total"
    <CODELIST> "REGION.CDL"
    <HIERARCHICAL>
    <HIERCODELIST> "region.hrc"
    <HIERLEADSTRING> "@"
Var2
    <NUMERIC>
    <DECIMALS> 2
FreqVar
    <FREQUENCY>
Var2_Shadow
    <NUMERIC> <SHADOW>
Var2_Cost
    <NUMERIC> <COSTVAR>
Top1
    <MAXSCORE>
Top2
    <MAXSCORE>
StatusVar
    <STATUS>
Low
    <NUMERIC> <LOWERPL>
Up
    <NUMERIC> <UPPERPL>
"""
GROUPS = {"1": "Nr", "2": "Nr", "9": "Ws", "11": "Ws"}


def comma(value: float) -> str:
    return f"{value:.2f}".replace(".", ",")


@pytest.fixture
def made() -> eq.Records:
    random = np.random.default_rng(4)
    frame = pl.DataFrame(
        {
            "Size": random.choice(["2", "4", "5"], 15, p=[0.5, 0.3, 0.2]),
            "Region": random.choice(list(GROUPS), 15),
            "Var2": np.round(random.lognormal(3, 1.5, 15), 2),
        }
    )
    return eq.Records.of(frame, eq.Roles(hierarchies={"Region": eq.Hierarchy.mapping(GROUPS)}))


@pytest.fixture
def written(made: eq.Records, tmp_path: Path) -> Path:
    """The table by the p% rule at 15 %, as tau-ARGUS writes it: commas, blanks, letters, empty cells marked E."""
    table = eq.table(made, ["Size", "Region"], "Var2")
    rule = PPercent(0.15)
    told = table.table.with_columns(rule.flag(table).alias("flag"), *rule.levels(table).get_columns())
    lines = []
    for row in told.iter_rows(named=True):
        status = "E" if not row["n"] else "NO" if row["flag"] else "MUST" if row["Size"] == "5" else "OK"
        size, region = row["Size"].replace("Total", "Sum"), row["Region"].rjust(2)
        numbers = [comma(row[name]) for name in ("value", "top1", "top2")]
        value = "-" if not row["n"] else numbers[0]
        levels = [f"{row[side]:.9f}".replace(".", ",") for side in ("lower", "upper")]
        lines.append(f'"{size}";"{region}";{value};{row["n"]};{numbers[0]};{numbers[0]};{";".join(numbers[1:])};'
                     f'{status};{";".join(levels)}')  # fmt: skip
    (tmp_path / "pp.tab").write_text("\n".join(lines) + "\n")
    (tmp_path / "pp.rda").write_text(RDA)
    (tmp_path / "region.cdl").write_bytes(" 1,Groningen\n11,Fryslân\n".encode("cp1252"))
    (tmp_path / "region.hrc").write_text("Nr\n@ 1\n@ 2\nWs \n@ 9\n@11\n")
    return tmp_path / "pp.tab"


def test_a_table_needs_nothing_but_its_metadata(made: eq.Records, written: Path) -> None:
    """Codes, counts, tops, statuses and levels as they were; the p% rule flags what is marked, to the same levels."""
    wanted = eq.table(made, ["Size", "Region"], "Var2")
    records = eq.read(written)
    assert records.roles.keys == ("Size", "Region")
    assert records.roles.numeric == ("Var2",)
    assert records.labels.of("Region").values == (("1", "Groningen"), ("11", "Fryslân"))
    found = eq.table(records, ready=True)
    assert found.measured == "Var2"
    assert [axis.nodes[axis.total] for axis in found.axes] == ["Sum", "Total"]
    both = found.table.with_columns(pl.col("Size").replace("Sum", "Total")).sort("Size", "Region")
    told = wanted.table.sort("Size", "Region")
    for column in ("n", "value", "top1", "top2"):
        assert both[column].to_list() == pytest.approx(told[column].to_list(), abs=1e-9)
    rule = PPercent(0.15)
    assert Marked().flag(found).sum() > 3
    assert rule.flag(found).equals(Marked().flag(found))
    for side in ("lower", "upper"):
        assert rule.levels(found)[side].to_list() == pytest.approx(Marked().levels(found)[side].to_list(), abs=1e-8)
    assert found.numbers("cost").tolist() == pytest.approx(found.numbers("value").tolist())


def test_statuses_by_their_letters(written: Path) -> None:
    found = eq.table(eq.read(written), ready=True)
    assert set(eq.read(written).collect()["StatusVar"]) == {"s", "u", "z", "E"}
    kept = found.table.filter("protected")
    assert set(kept["Size"]) == {"5"}
    shown = eq.tables.Suppress(Marked(), publish="protected").apply(found, Draws(1))
    assert shown.table.filter("protected")["published"].null_count() == 0
    audited = eq.tables.audit(shown)
    assert not audited["exact"].any()
    outsider = audited.filter(pl.col("against") == "outsider")
    assert not outsider["exposed"].any()


def test_cells_are_not_records(written: Path) -> None:
    with pytest.raises(eq.ParameterError, match="the cells of a table, not records"):
        eq.table(eq.read(written), ["Size", "Region"], "Var2")


def test_totals_that_the_file_leaves_out(made: eq.Records, written: Path) -> None:
    lines = [line for line in written.read_text().splitlines() if "Sum" not in line and "Total" not in line]
    written.write_text("\n".join(lines))
    found, wanted = eq.table(eq.read(written), ready=True), eq.table(made, ["Size", "Region"], "Var2")
    assert found.table["value"].to_list() == pytest.approx(wanted.table["value"].to_list())


def test_tables_without_counts_come_back_without_them(made: eq.Records, tmp_path: Path) -> None:
    cells = eq.table(made, ["Size", "Region"], "Var2").table.drop("n", "contributors", "total", "top1", "top2", "top3")
    given = eq.Records.of(cells.with_columns(sensitive=pl.col("value").is_between(1, 30)), made.roles)
    done = eq.tabulate(given, ["Size", "Region"], "value", rule="marked", ready=True, out=tmp_path / "out")
    private = tmp_path / "out" / "private"
    for name, said in (("table.sbs", {}), ("table.csv", {"by": ["Size", "Region"], "value": "value"})):
        found = eq.table(eq.read(private / name), **said, hierarchies=made.roles.hierarchies, ready=True)
        assert found.table["contributors"].null_count() == done.table.table["contributors"].null_count() > 0
        assert found.table["status"].equals(done.table.table["status"])


def test_missing_codes_are_categories(written: Path) -> None:
    lines = written.read_text().replace(' 9"', '99"')
    written.write_text(lines)
    found = eq.table(
        eq.read(written, metadata=written.with_suffix(".rda")), ready=eq.tables.Ready(tolerance=1e6, top=())
    )
    assert "99" in set(found.table["Region"])


def test_errors_name_the_place(written: Path) -> None:
    text = written.read_text()
    first = text.splitlines()[0].split(";")
    first[2] = "99999,00"
    written.write_text("\n".join([";".join(first), *text.splitlines()[1:]]))
    with pytest.raises(eq.DataError, match="Size = Sum, Region = 1 is not the sum of its parts along 'Size'"):
        eq.table(eq.read(written), ready=eq.tables.Ready(top=()))
    written.write_text(text.replace("Sum", "Tutti"))
    found = eq.table(eq.read(written), ready=True)
    assert found.axes[0].nodes[found.axes[0].total] == "Tutti"


@pytest.mark.parametrize("tree", ["one level", "two levels"])
def test_what_was_written_can_be_read_again(made: eq.Records, tmp_path: Path, tree: str) -> None:
    """The private .sbs and .csv as ready tables: the same cells are suppressed, and the audit says the same."""
    trees = {} if tree == "two levels" else {"Region": eq.Hierarchy.mapping(dict.fromkeys(GROUPS, "all"))}
    rule = "p-percent:15% | min-count:3"
    done = eq.tabulate(made, ["Size", "Region"], "Var2", rule=rule, hierarchies=trees, out=tmp_path / "out")
    private = tmp_path / "out" / "private"
    sbs = eq.table(eq.read(private / "table.sbs"), ready=True)
    csv = eq.table(
        eq.read(private / "table.csv"), ["Size", "Region"], "value", ready=True,
        hierarchies=trees or made.roles.hierarchies,
    )  # fmt: skip
    columns = ["lower", "upper"]
    wanted = done.outsider.sort("Size", "Region")
    for found in (sbs, csv):
        again = eq.tables.audit(found, against="outsider").sort("Size", "Region")
        assert again.select("Size", "Region", "status").equals(wanted.select("Size", "Region", "status"))
        assert np.allclose(again.select(columns), wanted.select(columns), rtol=1e-6)
        assert found.table["status"].equals(done.table.table["status"])
    assert (private / "table_1.hrc").is_file() == (tree == "two levels")


def test_groups_that_overlap_are_written_and_read_again(tmp_path: Path) -> None:
    """Two branches of a hierarchy: the folder can be audited again, and a later table of the register released."""
    rng = np.random.default_rng(3)
    town = rng.integers(0, 6, 60)
    frame = pl.DataFrame({"town": [f"t{i}" for i in town], "sex": rng.choice([*"fm"], 60), "id": range(60)})
    trees = [
        eq.Hierarchy.mapping({f"t{i}": f"{name}{i % many}" for i in range(6)}, names=[name])
        for name, many in (("county", 3), ("zone", 2))
    ]
    records, register = eq.Records.of(frame, eq.Roles(id="id")), tmp_path / "register.json"
    first = eq.tabulate(
        records, ["town", "sex"], rule="min-count:4", hierarchies={"town": trees[0] | trees[1]}, register=register,
        out=tmp_path / "first",
    )  # fmt: skip
    again = eq.table(eq.read(tmp_path / "first" / "private" / "table.sbs"), ready=True)
    assert set(again.axes[0].nodes) == set(first.table.axes[0].nodes)
    assert again.table["status"].equals(first.table.table["status"])
    assert eq.tables.audit(again, against="outsider").height == first.outsider.height
    later = eq.tabulate(records, ["sex"], rule="min-count:4", register=register, out=tmp_path / "later")
    assert any("the earlier table" in who for who in later.attackers.against)


def test_structural_zeros_are_written_and_read_again(tmp_path: Path) -> None:
    """Empty cells have tau-ARGUS' numbers: 14 the structural ones, 13 the others where it is said which are."""
    people = pl.DataFrame({"sex": [*"ffffmmmm"], "state": [*"ppoooooo"], "age": [*"xyxyxyxx"]})
    done = eq.tabulate(
        eq.Records.of(people, eq.Roles()), ["sex", "state", "age"], rule="min-count:1", structural="sex=m & state=p",
        out=tmp_path / "out",
    )  # fmt: skip
    assert {13, 14} >= set(done.internal.filter(n=0)["code"].to_list())
    people = people.filter(~((pl.col("sex") == "m") & (pl.col("age") == "y")))
    done = eq.tabulate(
        eq.Records.of(people, eq.Roles()), ["sex", "state", "age"], rule="min-count:1", structural="sex=m & state=p",
        out=tmp_path / "two",
    )  # fmt: skip
    found = eq.table(eq.read(tmp_path / "two" / "private" / "table.sbs"), ready=True)
    marked = found.table.filter(pl.col("structural"))
    assert marked.select("sex", "state").unique().rows() == [("m", "p")]
    assert marked.height == done.table.more["structural"].sum() == 3
