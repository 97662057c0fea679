"""SAS data sets made for real, and missing codes from one package to another."""

import json
from datetime import date, datetime, time
from pathlib import Path

import polars as pl
import pytest
from torture.sas_data_set import Variable, library, write_data_set

import equipoise as eq
from equipoise.files import sas_transport

pyreadstat = pytest.importorskip("pyreadstat", reason="SPSS, Stata and SAS were not tried: pyreadstat is missing.")

if library() is None:
    pytest.skip(".sas7bdat was not tried: this build of pyreadstat hides its writer.", allow_module_level=True)
SIZE = 60
ROLES = eq.Roles(["sex", "age"], hierarchies={"age": eq.Hierarchy.intervals(10)})
POLICY = eq.Policy({}, allow=("born", "seen", "at", "town", "row"))


@pytest.fixture
def data_set(tmp_path: Path) -> Path:
    """The library inside pyreadstat writes these, though its Python face does not say so."""
    columns: list[Variable] = [
        ("row", "", "", 0, [float(i) for i in range(SIZE)]),
        ("sex", "Kjønn", "", 0, [1.0, 2.0] * 30),
        ("age", "Âge", "F3.", 0, [float(20 + i) for i in range(SIZE)]),
        ("income", "Inntekt", "COMMA12.2", 0, [1.5, None, "A", "Z", 7.25] * 12),
        ("born", "", "DDMMYY10.", 0, [float(-9000 + 300 * i) for i in range(SIZE)]),
        ("seen", "", "DATETIME20.", 0, [1e9 + 3600.0 * i for i in range(SIZE)]),
        ("at", "", "TIME8.", 0, [60.0 * i for i in range(SIZE)]),
        ("town", "By", "$40.", 40, ["Ål", "Île-de-France", "Tromsø \U0001f600", None] * 15),
    ]
    return write_data_set(tmp_path / "in.sas7bdat", columns, "Undersøkelse")


def test_a_sas_data_set_comes_back_as_a_transport_file(data_set: Path) -> None:
    made = eq.protect(eq.read(data_set, ROLES), [eq.masks.Recode("age", 1)], data_set.parent / "out", policy=POLICY)
    path = made.public / "data.xpt"
    table, meta = pyreadstat.read_xport(path, output_format="polars")
    table = table.sort("row")
    assert table["age"].to_list()[:11] == ["20-29"] * 10 + ["30-39"]
    assert table["income"].to_list()[:5] == [1.5, None, None, None, 7.25]
    assert table["town"].to_list()[:4] == ["Ål", "Île-de-France", "Tromsø \U0001f600", ""]
    assert table["born"][0] == date(1935, 5, 12)
    assert table["seen"][0] == datetime(1991, 9, 9, 1, 46, 40)
    assert table["at"][1] == time(0, 1)
    assert meta.file_label == "Undersøkelse"
    assert meta.column_names_to_labels["income"] == "Inntekt"
    assert meta.original_variable_types["born"] == "DDMMYY10"
    assert meta.original_variable_types["income"] == "COMMA12.2"
    codes = eq.read(path).labels.gaps
    assert codes is not None
    assert sorted(codes["income"].drop_nulls().to_list()) == ["A"] * 12 + ["Z"] * 12
    said = json.loads((made.public / "evidence.json").read_text(encoding="utf-8"))
    assert "because .sas7bdat files cannot be written" in str(said)


def test_a_cut_data_set_is_refused(data_set: Path) -> None:
    whole = data_set.read_bytes()
    for share in (0.02, 0.5, 0.97):
        data_set.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(eq.DataError, match="not a whole SAS file"):
            eq.read(data_set)


@pytest.mark.parametrize("version", [5, 8])
def test_special_missing_values_of_transport_files(tmp_path: Path, version: int) -> None:
    path = tmp_path / "a.xpt"
    table = pl.DataFrame({"a": [1.5, None, None], "town": ["x", "A", ""], "b": [None, 2.0, None]})
    pyreadstat.write_xport(table, path, file_format_version=version, column_labels={"a": "long " * 20})
    assert sas_transport.special_codes(path, table.columns, 3) is None
    sas_transport.write_special_codes(path, {0: pl.Series([None, "A", None]), 2: pl.Series(["_", None, "Z"])})
    found = eq.read(path)
    assert found.labels.gaps is not None
    assert found.labels.gaps.to_dict(as_series=False) == {"a": [None, "A", None], "b": ["_", None, "Z"]}
    assert found.collect()["a"].to_list() == [1.5, None, None]
    assert found.labels.of("b").missing == (("Z", "Z"), ("_", "_"))


CODES = {-8: "refused", -9: "does not know", 1: "yes", 2: "no"}


def spss(path: Path) -> Path:
    table = pl.DataFrame(
        {
            "row": [float(i) for i in range(SIZE)],
            "sex": [1.0, 2.0] * 30,
            "age": [float(20 + i) for i in range(SIZE)],
            "work": [1.0, 2.0, -8.0, -9.0, None, 1.0] * 10,
        }
    )
    ranges = {"work": [{"lo": -9, "hi": -8}]}
    labels = {"row": "r" * 120, "work": "In work"}
    pyreadstat.write_sav(
        table, path, variable_value_labels={"work": CODES}, missing_ranges=ranges, column_labels=labels
    )
    return path


def test_missing_numbers_become_letters_and_come_back(tmp_path: Path) -> None:
    first = eq.protect(eq.read(spss(tmp_path / "a.sav"), ROLES), [], tmp_path / "one", policy=POLICY, format="dta")
    table, meta = pyreadstat.read_dta(first.public / "data.dta", user_missing=True, output_format="polars")
    assert table.sort("row")["work"].to_list()[:6] == [1, 2, "a", "b", None, 1]
    assert meta.variable_value_labels["work"] == {1: "yes", 2: "no", "a": "refused", "b": "does not know"}
    assert len(meta.column_names_to_labels["row"]) == 80
    records = eq.read(first.public / "data.dta", ROLES)
    second = eq.protect(records, [], tmp_path / "two", policy=POLICY, format="sav")
    table, meta = pyreadstat.read_sav(second.public / "data.sav", user_missing=True)
    assert table.sort_values("row")["work"].tolist()[:4] == [1, 2, -1, -2]
    assert meta.variable_value_labels["work"] == {1: "yes", 2: "no", -1: "refused", -2: "does not know"}
    assert [(r["lo"], r["hi"]) for r in meta.missing_ranges["work"]] == [(-1, -1), (-2, -2)]


@pytest.mark.parametrize("format", ["xpt", "asc", "parquet", "csv"])
def test_missing_codes_never_become_values(tmp_path: Path, format: str) -> None:
    made = eq.protect(eq.read(spss(tmp_path / "a.sav"), ROLES), [], tmp_path / "out", policy=POLICY, format=format)
    found = eq.read(made.public / f"data.{format}").collect().sort("row")["work"].to_list()
    assert [value and float(value) for value in found[:6]] == [1, 2, None, None, None, 1]


@pytest.mark.parametrize("ending", ["sav", "zsav", "dta", "xpt"])
def test_numbers_that_are_all_missing_stay_numbers(tmp_path: Path, ending: str) -> None:
    write = {"dta": pyreadstat.write_dta, "xpt": pyreadstat.write_xport}.get(ending, pyreadstat.write_sav)
    table = pl.DataFrame({"sex": [1.0, 2.0] * 30, "age": [30.0, float("nan")] * 30, "none": [None] * 60})
    write(table.cast({"none": pl.Float64}).fill_nan(None), tmp_path / f"a.{ending}")
    records = eq.read(tmp_path / f"a.{ending}", ROLES)
    assert records.collect()["none"].dtype.is_numeric()
    made = eq.protect(records, [], tmp_path / "out", policy=POLICY)
    read = {"dta": pyreadstat.read_dta, "xpt": pyreadstat.read_xport}.get(ending, pyreadstat.read_sav)
    table, meta = read(made.public / f"data.{ending}", output_format="polars")
    assert meta.readstat_variable_types["none"] == "double"
    assert table["none"].null_count() == 60


def test_not_a_number_is_missing_in_a_transport_file(tmp_path: Path) -> None:
    frame = pl.DataFrame({"sex": [1, 2] * 30, "age": [30.5, float("nan")] * 30})
    made = eq.protect(eq.read(frame, ROLES), [], tmp_path / "out", policy=POLICY, format="xpt")
    assert pyreadstat.read_xport(made.public / "data.xpt")[0]["age"].max() == 30.5


def test_a_whole_top_code_gets_its_label_in_stata(tmp_path: Path) -> None:
    frame = pl.DataFrame({"sex": [1.0, 2.0] * 30, "age": [float(i) for i in range(60)]})
    pyreadstat.write_dta(frame, tmp_path / "a.dta", variable_format={"age": "%9.2f"})
    made = eq.protect(
        eq.read(tmp_path / "a.dta", ROLES), [eq.masks.TopCode("age", 48)], tmp_path / "out", policy=POLICY
    )
    labels = pyreadstat.read_dta(made.public / "data.dta")[1].variable_value_labels
    assert labels == {"age": {54: "mean of all values above 48"}}


def test_a_stata_file_without_its_end(tmp_path: Path) -> None:
    pyreadstat.write_dta(pl.DataFrame({"a": [1.0, 2.0]}), tmp_path / "a.dta")
    whole = (tmp_path / "a.dta").read_bytes()
    (tmp_path / "a.dta").write_bytes(whole[:-3])
    with pytest.raises(eq.DataError, match="not a whole Stata file"):
        eq.read(tmp_path / "a.dta")
