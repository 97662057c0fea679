"""tau-ARGUS: fixed columns and separated files, by their metadata; hierarchies; and back."""

from pathlib import Path

import polars as pl
import pytest

import equipoise as eq
from equipoise import files

RDA = """Year 1 2 99
  <RECODEABLE>
IndustryCode 4 5 99999
  <RECODEABLE>
  <HIERARCHICAL>
  <HIERLEVELS> 3 1 1 0 0
  <DISTANCE> 1 3 5 7 9
Region 10 2 99
  <RECODEABLE>
  <CODELIST> "region.cdl"
  <HIERARCHICAL>
  <HIERCODELIST> "C:\\old\\place\\Region.HRC"
  <HIERLEADSTRING> "@"
Wgt 13 4 9999
  <DECIMALS> 1
  <WEIGHT>
Var2 17 8 9999999
  <NUMERIC>
  <DECIMALS> 2
"""
ROWS = [
    "84 34100  9  2.2   28.26",
    "84 29240 11  1.7  887.00",
    "99 29241  1  1.0 9999999",
    "84 99999 99 12.5   -3.50",
    "",
]
HRC = "Nr\n@ 1\nWs\n@ 9\n@11\n"


@pytest.fixture
def microdata(tmp_path: Path) -> Path:
    (tmp_path / "micro.rda").write_text(RDA)
    (tmp_path / "micro.asc").write_text("\n".join(ROWS))
    (tmp_path / "region.cdl").write_bytes(" 1,Groningen\n 9,Zuid-Holland\n11,Fryslân\n".encode("cp1252"))
    (tmp_path / "region.hrc").write_text(HRC)
    return tmp_path / "micro.asc"


def test_fixed_columns(microdata: Path) -> None:
    found = eq.read(microdata)
    assert found.collect().rows() == [
        ("84", "34100", "9", 2.2, 28.26),
        ("84", "29240", "11", 1.7, 887.0),
        (None, "29241", "1", 1.0, None),
        ("84", None, None, 12.5, -3.5),
    ]
    assert found.roles.keys == ("Year", "IndustryCode", "Region")
    assert (found.roles.weight, found.roles.numeric) == ("Wgt", ("Var2",))
    assert found.labels.of("Region").values == (("1", "Groningen"), ("9", "Zuid-Holland"), ("11", "Fryslân"))
    region, industry = found.roles.hierarchies["Region"], found.roles.hierarchies["IndustryCode"]
    assert region.level(1).label(pl.Series(["1", "9", "11"])).to_list() == ["Nr", "Ws", "Ws"]
    assert [level.name for level in industry.levels] == ["original", "4", "3"]


def test_in_and_out(microdata: Path, tmp_path: Path) -> None:
    """Recoded, released with metadata and code lists beside, and read again: codes in their places."""
    done = eq.protect(eq.read(microdata), [eq.masks.Recode("Region", 1)], tmp_path / "out", keep_order=True)
    assert (done.public / "data.rda").is_file()
    again = eq.read(done.public / "data.asc")
    assert again.collect().rows() == [
        ("84", "34100", "Ws", 2.2, 28.26),
        ("84", "29240", "Ws", 1.7, 887.0),
        (None, "29241", "Nr", 1.0, None),
        ("84", None, None, 12.5, -3.5),
    ]
    assert again.roles.keys == ("Year", "IndustryCode", "Region")
    assert again.roles.weight == "Wgt"
    assert dict(again.labels.of("Region").values) == {"Ws": "Fryslân, Zuid-Holland", "Nr": "Groningen"}
    lines = (done.public / "data.asc").read_text().splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[2].split() == ["99", "29241", "Nr", "1.0", "9999999"]


def test_separated(tmp_path: Path) -> None:
    (tmp_path / "meta.rda").write_text('<SEPARATOR> ","\nregion 1\n  <RECODEABLE>\nnum 6 999\n  <NUMERIC>\n')
    (tmp_path / "micro.asc").write_text("A, 12.5\nB,999\n")
    assert eq.read(tmp_path / "micro.asc").collect().rows() == [("A", 12.5), ("B", None)]
    (tmp_path / "other.rda").write_text("x 1 1\n")
    with pytest.raises(eq.DataError, match=r"several .rda files"):
        eq.read(tmp_path / "micro.asc")
    assert eq.read(tmp_path / "micro.asc", metadata=tmp_path / "meta.rda").roles.numeric == ("num",)


@pytest.mark.parametrize(
    ("rda", "rows", "said"),
    [
        ("x 1 2\n  <RECODEABLE>\ny 4 2\n", "12 3\n1\n", "Row 2 of"),
        ("x 1 6\n  <NUMERIC>\n", "canary\n", "1 values of column 'x' are not numbers"),
        ("x y z\n", "12\n", "has no place"),
        ("x 1 2\nx 3 2\n", "12\n", "twice"),
        ('<SEPARATOR> ";"\nx 1\ny 1\n', "1;2;3\n", "3 fields in a row, and its metadata names 2"),
        ('x 1 2\n  <RECODEABLE>\n  <HIERCODELIST> "gone.hrc"\n', "12\n", "'gone.hrc', which is not beside it"),
    ],
)
def test_what_does_not_fit(tmp_path: Path, rda: str, rows: str, said: str) -> None:
    (tmp_path / "a.rda").write_text(rda)
    (tmp_path / "a.asc").write_text(rows)
    with pytest.raises(eq.DataError, match=said) as caught:
        eq.read(tmp_path / "a.asc")
    assert "canary" not in str(caught.value)


def test_metadata_is_not_data(microdata: Path) -> None:
    with pytest.raises(eq.DataError, match=r"tau-ARGUS metadata goes with its .asc file"):
        eq.read(microdata.with_suffix(".rda"))
    microdata.with_suffix(".rda").unlink()
    with pytest.raises(eq.DataError, match="needs its tau-ARGUS metadata"):
        eq.read(microdata)


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("A\n@1\n@@11\n@@12\n@2\nB\n", {"11": ("1", "A"), "12": ("1", "A"), "2": ("2", "A"), "B": ("B", "B")}),
        ("  male\nfemale\n", {"male": ("Total",), "female": ("Total",)}),
    ],
)
def test_hierarchies(tmp_path: Path, text: str, levels: dict[str, tuple[str, ...]]) -> None:
    (tmp_path / "a.hrc").write_text(text)
    tree = eq.Hierarchy.hrc(tmp_path / "a.hrc")
    for place in range(len(next(iter(levels.values())))):
        assert tree.level(place + 1).label(pl.Series(list(levels))).to_list() == [g[place] for g in levels.values()]


def test_hierarchies_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "a.hrc").write_text("A\n@@1\n")
    with pytest.raises(eq.DataError, match="not a tau-ARGUS hierarchy"):
        eq.Hierarchy.hrc(tmp_path / "a.hrc")
    with pytest.raises(eq.DataError, match="No hierarchy file"):
        eq.Hierarchy.hrc(tmp_path / "b.hrc")


def test_files_of_tau_argus(data_folder: Path) -> None:
    """Files that tau-ARGUS itself is tested with: separated microdata, and the classic hierarchies."""
    folder = data_folder / "tables" / "tauargus"
    found = eq.read(folder / "batch_ex2" / "microdata_ex2.asc", metadata=folder / "batch_ex2" / "metadata_ex2.rda")
    lines = (folder / "batch_ex2" / "microdata_ex2.asc").read_text().splitlines()
    assert found.collect()["num2"].to_list() == [float(line.split(",")[5]) for line in lines]
    assert found.roles.keys == ("region", "gender")
    assert found.collect()["gender"].unique().sort().to_list() == ["female", "male"]
    nace = eq.Hierarchy.hrc(folder / "enterprise" / "nace_divisions.hrc")
    assert nace.level(1).label(pl.Series(["01", "05", "10"])).to_list() == ["A", "B", "C"]
    with pytest.raises(eq.ParameterError, match="split between two groups"):  # 11 is in two regions there
        eq.Hierarchy.hrc(folder / "enterprise" / "NUTS.hrc")
    tree = eq.Hierarchy.hrc(folder / "testW" / "region2.hrc")
    table = pl.read_csv(folder / "testW" / "tau_testW.csv", infer_schema=False)
    regions = tree.level(1).label(table["Region"].str.strip_chars())
    assert regions.null_count() == 0
    assert regions.n_unique() == 4


def test_the_classic_file_in_fixed_columns(data_folder: Path, tmp_path: Path) -> None:
    """tau_testW laid out as its metadata says, then read: the same numbers."""
    folder = data_folder / "tables" / "tauargus" / "testW"
    table = pl.read_csv(folder / "tau_testW.csv", infer_schema=False).head(500)
    starts = {
        "Year": (1, 2),
        "IndustryCode": (4, 5),
        "Size": (9, 2),
        "Region": (12, 2),
        "Wgt": (15, 4),
        "Request": (99, 1),
    }
    starts |= {"Var1": (19, 9), **{f"Var{i}": (8 + 10 * i, 10) for i in range(2, 9)}}
    rows = []
    for row in table.iter_rows(named=True):
        line = [" "] * 99
        for name, (start, width) in starts.items():
            line[start - 1 : start - 1 + width] = row[name].strip().rjust(width)
        rows.append("".join(line))
    (tmp_path / "tau_testW.asc").write_text("\n".join(rows))
    for name in ("tau_testW.rda", "region.cdl", "region2.hrc"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    found = eq.read(tmp_path / "tau_testW.asc")
    assert found.collect()["Var2"].to_list() == table["Var2"].cast(pl.Float64).to_list()
    assert found.collect()["Region"].to_list() == table["Region"].str.strip_chars().to_list()
    assert found.roles.weight == "Wgt"
    assert files.format_of(tmp_path / "tau_testW.asc") == "asc"
