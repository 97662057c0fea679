"""SPSS, Stata and SAS: in, recoded, released, and back, checked with pyreadstat itself."""

import json
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import equipoise as eq
from equipoise import files

pyreadstat = pytest.importorskip("pyreadstat", reason="SPSS, Stata and SAS were not tried: pyreadstat is missing.")

SIZE = 90
LONG = ("Ærlig talt, dette er en lang tekst. " * 40).strip()
TREE = eq.Hierarchy.mapping({11: 1, 12: 1, 21: 2})
ROLES = eq.Roles(
    ["region", "age"], id="person", hierarchies={"region": TREE, "age": eq.Hierarchy.intervals(10, top=60)}
)
POLICY = eq.Policy({}, allow=("note", "town", "visit", "seen"))
LABELS = {"person": "Løpenummer", "region": "Région habitée", "age": "Alder i år", "visit": "Besøksdato"}
MEASURE = {"region": "nominal", "age": "scale"}


def table() -> pl.DataFrame:
    """Numbers as these packages hold them; region 98 and 99 and age -1 are missing codes."""
    place = range(SIZE)
    return pl.DataFrame(
        {
            "person": [float(i + 1) for i in place],
            "region": [[11.0, 12.0, 21.0, 99.0, 98.0, None][i % 6] for i in place],
            "age": [-1.0 if i % 7 == 0 else float(18 + i % 60) for i in place],
            "town": [["Ål", "Bø i Telemark", "Tromsø", None][i % 4] for i in place],
            "note": [LONG if i % 5 == 0 else "kort" for i in place],
            "visit": [None if i % 9 == 0 else date(1950, 1, 31) + timedelta(days=97 * i) for i in place],
            "seen": [datetime(2024, 2, 29, 23, 59, i % 60) for i in place],
            "income": [1234.5 + i for i in place],
        }
    )


def spss(path: Path) -> None:
    pyreadstat.write_sav(
        table(), path, file_label="Undersøkelsen", column_labels=LABELS, compress=path.suffix == ".zsav",
        variable_value_labels={
            "region": {11: "Oslo", 12: "Bergen", 21: "Ålesund", 98: "vet ikke", 99: "ubesvart"}, "age": {-1: "ukjent"}
        },
        missing_ranges={"region": [98, 99], "age": [{"lo": -9, "hi": -1}]}, variable_measure=MEASURE,
        variable_display_width={"region": 12},
        variable_format={"person": "F8.0", "region": "F4.0", "age": "F3.0", "visit": "EDATE10", "income": "DOLLAR12.2"},
    )  # fmt: skip


def released(path: Path, out: Path, *masks: Any) -> eq.Release:
    chosen = masks or (eq.masks.Recode("region", 1), eq.masks.Recode("age", 1))
    return eq.protect(eq.read(path, ROLES), chosen, out, policy=POLICY, keep_order=True)


@pytest.mark.parametrize("ending", ["sav", "zsav"])
def test_spss_in_and_out(tmp_path: Path, ending: str) -> None:
    """Everything the file said is in the release; recoded values have labels that say what they are."""
    spss(tmp_path / f"in.{ending}")
    done = released(tmp_path / f"in.{ending}", tmp_path / "out")
    found, meta = pyreadstat.read_sav(done.public / f"data.{ending}", output_format="polars", user_missing=True)
    before = table()
    regions = {11.0: 1.0, 12.0: 1.0, 21.0: 2.0, 98.0: 98.0, 99.0: 99.0}
    assert found["region"].to_list() == [regions.get(v) for v in before["region"].to_list()]  # type: ignore[arg-type]
    bands = [-1.0 if v < 0 else 1.0 if v < 20 else min(v // 10, 6.0) for v in before["age"].to_list()]
    assert found["age"].to_list() == bands
    same = ["town", "note", "visit", "seen", "income"]
    assert_frame_equal(found.select(same), before.select(same).with_columns(pl.col("town").fill_null("")))
    assert {n: meta.column_names_to_labels[n] for n in ("region", "age", "visit")} == {
        n: LABELS[n] for n in ("region", "age", "visit")
    }
    assert meta.variable_value_labels["region"] == {
        1.0: "Oslo, Bergen", 2.0: "Ålesund", 98.0: "vet ikke", 99.0: "ubesvart"
    }  # fmt: skip
    ages = {1.0: "10-19", 2.0: "20-29", 3.0: "30-39", 4.0: "40-49", 5.0: "50-59", 6.0: "60+", -1.0: "ukjent"}
    assert meta.variable_value_labels["age"] == ages
    assert meta.missing_ranges["region"] == [{"lo": 98.0, "hi": 98.0}, {"lo": 99.0, "hi": 99.0}]
    assert meta.missing_ranges["age"] == [{"lo": -9.0, "hi": -1.0}]
    assert meta.original_variable_types["visit"] == "EDATE10"
    assert meta.original_variable_types["income"] == "DOLLAR12.2"
    assert meta.variable_measure["region"] == "nominal"
    assert meta.variable_measure["age"] == "ordinal"
    assert meta.file_label == "Undersøkelsen"
    assert "person" not in found.columns


def test_untouched_columns_keep_everything(tmp_path: Path) -> None:
    """Without a recode the file comes back as it was, codes, widths and formats too."""
    spss(tmp_path / "in.sav")
    records = eq.read(tmp_path / "in.sav", ROLES)
    files.save(files.with_codes(records, "sav").to_native(), tmp_path / "again.sav", "sav", records.labels)
    first, meta = pyreadstat.read_sav(tmp_path / "in.sav", output_format="polars", user_missing=True)
    second, again = pyreadstat.read_sav(tmp_path / "again.sav", output_format="polars", user_missing=True)
    assert_frame_equal(first, second)
    for name in (
        "column_names_to_labels", "variable_value_labels", "missing_ranges", "original_variable_types",
        "variable_measure", "variable_display_width", "variable_storage_width", "file_label",
    ):  # fmt: skip
        assert getattr(meta, name) == getattr(again, name), name


def test_what_is_read(tmp_path: Path) -> None:
    """Codes are integers, missing codes null, dates dates, empty texts null."""
    spss(tmp_path / "in.sav")
    found = eq.read(tmp_path / "in.sav", ROLES)
    assert found.collect().schema["region"] == pl.Int64
    assert found.collect().schema["visit"] == pl.Date
    assert found.collect().schema["seen"] == pl.Datetime("us")
    assert found.collect()["region"].drop_nulls().unique().sort().to_list() == [11, 12, 21]
    assert found.collect()["age"].min() == 18
    assert found.collect()["town"].null_count() == table()["town"].null_count()
    assert found.labels.of("region").label == "Région habitée"


def test_random_masks_shuffle_codes_with_their_records(tmp_path: Path) -> None:
    """The order is drawn; codes of untouched columns stay with their record, those of touched ones are gone."""
    spss(tmp_path / "in.sav")
    numeric = eq.Roles(["region"], numeric=["income"], id="person")
    done = eq.protect(
        eq.read(tmp_path / "in.sav", numeric), [eq.masks.Noise(["income"], 0.1)], tmp_path / "out", policy=POLICY,
        seed=3,
    )  # fmt: skip
    found = pyreadstat.read_sav(done.public / "data.sav", output_format="polars", user_missing=True)[0]
    key = ["seen", "visit", "age", "region"]
    assert found["seen"].to_list() != table()["seen"].to_list()
    assert_frame_equal(found.select(key).sort(key), table().select(key).sort(key))
    swapped = eq.protect(
        eq.read(tmp_path / "in.sav", eq.Roles(["region"], numeric=["age"], id="person")),
        [eq.masks.RankSwap(["age"], 0.2)], tmp_path / "swap", policy=POLICY, seed=3,
    )  # fmt: skip
    after = pyreadstat.read_sav(swapped.public / "data.sav", output_format="polars", user_missing=True)[0]
    assert after["age"].null_count() == (table()["age"] == -1).sum()
    assert after["region"].eq(99).sum() == table()["region"].eq(99).sum()


def stata(path: Path) -> None:
    tagged = [
        {99.0: "a", 98.0: "b"}.get(v, v) if v is None else {99: "a", 98: "b"}.get(int(v), int(v))
        for v in table()["region"]
    ]
    frame = table().with_columns(
        pl.Series("region", tagged, dtype=pl.Object),
        age=pl.when(pl.col("age") > 0).then(pl.col("age")).cast(pl.Int16),
    )
    pyreadstat.write_dta(
        frame, path, file_label="Undersøkelsen", column_labels=LABELS,
        variable_value_labels={"region": {11: "Oslo", 12: "Bergen", 21: "Ålesund", "a": "ubesvart", "b": "vet ikke"}},
        missing_user_values={"region": ["a", "b"]}, variable_format={"visit": "%tdDD/NN/CCYY", "income": "%12.2f"},
    )  # fmt: skip


def test_stata_in_and_out(tmp_path: Path) -> None:
    stata(tmp_path / "in.dta")
    records = eq.read(tmp_path / "in.dta", ROLES)
    assert records.collect()["region"].drop_nulls().unique().sort().to_list() == [11, 12, 21]
    assert records.collect().schema["age"] == pl.Int64
    done = released(tmp_path / "in.dta", tmp_path / "out")
    told = {"output_format": "polars", "user_missing": True, "extra_date_formats": ["%tdDD/NN/CCYY"]}
    found, meta = pyreadstat.read_dta(done.public / "data.dta", **told)
    regions = {11.0: 1, 12.0: 1, 21.0: 2, 98.0: "b", 99.0: "a", None: None}
    assert found["region"].to_list() == [regions[v] for v in table()["region"].to_list()]
    assert meta.variable_value_labels["region"] == {1: "Oslo, Bergen", 2: "Ålesund", "a": "ubesvart", "b": "vet ikke"}
    assert meta.variable_value_labels["age"] == {
        1: "10-19", 2: "20-29", 3: "30-39", 4: "40-49", 5: "50-59", 6: "60+"
    }  # fmt: skip
    same = ["town", "note", "visit", "seen", "income"]
    assert_frame_equal(found.select(same), table().select(same).with_columns(pl.col("town").fill_null("")))
    assert meta.original_variable_types["visit"] == "%tdDD/NN/CCYY"
    assert meta.original_variable_types["income"] == "%12.2f"
    assert meta.column_names_to_labels["region"] == "Région habitée"
    assert meta.file_label == "Undersøkelsen"
    assert meta.missing_user_values == {"region": ["a", "b"]}


def test_stata_keeps_its_integers(tmp_path: Path) -> None:
    kinds = {"small": pl.Int8, "middle": pl.Int16, "large": pl.Int32}
    frame = pl.DataFrame({"small": [1, 2], "middle": [1, 2], "large": [1, 2]}, schema=kinds)
    pyreadstat.write_dta(frame, tmp_path / "in.dta")
    first = pyreadstat.read_dta(tmp_path / "in.dta", output_format="polars")[1].readstat_variable_types
    records = eq.read(tmp_path / "in.dta")
    files.save(records.frame.to_native(), tmp_path / "again.dta", "dta", records.labels)
    assert pyreadstat.read_dta(tmp_path / "again.dta", output_format="polars")[1].readstat_variable_types == first
    wide = records.frame.to_native().with_columns(small=pl.lit(1000), middle=pl.lit(10**12))
    files.save(wide, tmp_path / "wide.dta", "dta", records.labels)
    assert eq.read(tmp_path / "wide.dta").collect().row(0) == (1000, 10**12, 1)


def transport(path: Path) -> None:
    pyreadstat.write_xport(
        table(), path, file_label="Survey", column_labels={**LABELS, "region": "Region"}, table_name="SURVEY",
        variable_format={"visit": "YYMMDD10.", "seen": "DATETIME20.", "income": "DOLLAR12.2"},
    )  # fmt: skip


def check_transport(path: Path) -> None:
    found, meta = pyreadstat.read_xport(path, output_format="polars")
    same = ["town", "note", "visit", "seen", "income"]
    assert_frame_equal(found.select(same), table().select(same).with_columns(pl.col("town").fill_null("")))
    assert found["age"].unique().sort().to_list()[:3] == ["-10 to -1", "10-19", "20-29"]
    assert meta.column_names_to_labels["visit"] == "Besøksdato"
    assert meta.original_variable_types["visit"].startswith("YYMMDD10")


@pytest.mark.parametrize("ending", ["xpt", "sas7bdat"])
def test_sas_in_and_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    """A transport file holds no value labels: recoded values stay text. A data set becomes one, and this is said."""
    transport(tmp_path / "in.xpt")
    tree = eq.Hierarchy.mapping({11: "east", 12: "east", 21: "north", 98: "?", 99: "?"})
    roles = eq.Roles(["region", "age"], id="person", hierarchies={"region": tree, "age": eq.Hierarchy.intervals(10)})
    if ending == "sas7bdat":  # nothing but SAS writes these: its reader is given a transport file
        (tmp_path / "in.sas7bdat").write_bytes((tmp_path / "in.xpt").read_bytes())
        told = lambda path, user_missing=False, **options: pyreadstat.read_xport(path, **options)
        monkeypatch.setattr(pyreadstat, "read_sas7bdat", told)
        monkeypatch.setattr(files, "refuse_other", lambda path, format: None)
    masks = [eq.masks.Recode("region", 1), eq.masks.Recode("age", 1)]
    done = eq.protect(
        eq.read(tmp_path / f"in.{ending}", roles), masks, tmp_path / "out", policy=POLICY, keep_order=True
    )
    check_transport(done.public / "data.xpt")
    note = json.loads((done.public / "evidence.json").read_text())["output"].get("note", "")
    assert note == (
        "the input was a .sas7bdat file and the release is a .xpt file, because .sas7bdat files cannot be written"
        if ending == "sas7bdat" else ""
    )  # fmt: skip


@pytest.mark.parametrize("ending", ["sav", "dta", "xpt"])
def test_every_kind_of_value(tmp_path: Path, ending: str) -> None:
    """Old dates, microseconds, times of day, booleans and gaps survive."""
    frame = pl.DataFrame(
        {
            "day": [date(1600, 2, 29), None, date(2199, 12, 31)],
            "moment": [datetime(1905, 6, 7, 8, 9, 10, 500_000), None, datetime(2024, 1, 1)],
            "hour": [time(0), time(23, 59, 59), None],
            "yes": [True, None, False],
            "text": ["a", None, "ø" * 500],
            "count": [1, None, 3],
        }
    )
    files.save(frame.lazy(), tmp_path / f"a.{ending}", ending)
    found = eq.read(tmp_path / f"a.{ending}").collect()
    assert_frame_equal(found.drop("yes"), frame.drop("yes"))
    assert found["yes"].to_list() == [1, None, 0]


def test_parquet_keeps_labels_too(tmp_path: Path) -> None:
    """A labelled file released as Parquet and read again still has its labels."""
    spss(tmp_path / "in.sav")
    done = eq.protect(
        eq.read(tmp_path / "in.sav", ROLES), [eq.masks.Recode("region", 1)], tmp_path / "out", policy=POLICY,
        format="parquet",
    )  # fmt: skip
    again = eq.read(done.public / "data.parquet")
    assert again.labels.of("region").label == "Région habitée"
    assert again.labels.of("region").values[0] == ("1", "Oslo, Bergen")
    assert again.collect()["region"].unique().sort().to_list() == [None, "1", "2"]


def test_the_same_label_twice_is_no_trouble(tmp_path: Path) -> None:
    """Values are told apart by their codes."""
    frame = pl.DataFrame({"a": [1.0, 2.0, 3.0], "b": [1.0, 1.0, 2.0]})
    pyreadstat.write_sav(
        frame, tmp_path / "a.sav", column_labels={"a": "same", "b": "same"},
        variable_value_labels={"a": {1: "x", 2: "x"}},
    )  # fmt: skip
    found = eq.read(tmp_path / "a.sav")
    assert found.collect()["a"].to_list() == [1, 2, 3]
    assert found.labels.of("a").values == ((1.0, "x"), (2.0, "x"))


@pytest.mark.parametrize("ending", ["sav", "dta", "xpt"])
def test_names_that_do_not_fit(tmp_path: Path, ending: str) -> None:
    with pytest.raises(eq.DataError, match=r"a column name .* is not allowed there"):
        files.save(pl.LazyFrame({"two words": [1]}), tmp_path / f"a.{ending}", ending)


def test_missing_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    spss(tmp_path / "in.sav")
    monkeypatch.setitem(__import__("sys").modules, "pyreadstat", None)
    with pytest.raises(eq.MissingExtraError, match=r"pip install .equipoise\[files\]"):
        eq.read(tmp_path / "in.sav")


def test_missing_codes_of_dates_and_long_times(tmp_path: Path) -> None:
    """A code in a date column goes back as it came; times of more than a day stay seconds, shown as times."""
    day = 86_400.0
    frame = pl.DataFrame({"visit": [day * 150_000, 1.0, None], "spent": [200_000.0, 5.0, None]})
    pyreadstat.write_sav(
        frame, tmp_path / "in.sav", missing_ranges={"visit": [1]}, variable_format={"visit": "DATE11", "spent": "TIME8"}
    )
    records = eq.read(tmp_path / "in.sav")
    assert records.collect()["visit"].to_list() == [date(1582, 10, 14) + timedelta(days=150_000), None, None]
    assert records.collect()["spent"].to_list() == [200_000.0, 5.0, None]
    files.save(files.with_codes(records, "sav").to_native(), tmp_path / "out.sav", "sav", records.labels)
    told = {"output_format": "polars", "user_missing": True, "disable_datetime_conversion": True}
    again, meta = pyreadstat.read_sav(tmp_path / "out.sav", **told)
    assert_frame_equal(again, frame)
    assert meta.original_variable_types == {"visit": "DATE11", "spent": "TIME8"}


def test_withheld_columns_have_no_labels(tmp_path: Path) -> None:
    spss(tmp_path / "in.sav")
    done = eq.protect(
        eq.read(tmp_path / "in.sav", ROLES), [eq.masks.Recode("region", 1)], tmp_path / "out", policy=POLICY,
        format="parquet",
    )  # fmt: skip
    assert "person" not in eq.read(done.public / "data.parquet").labels.columns
    assert b"nummer" not in (done.public / "data.parquet").read_bytes()
