"""Wrong calls of Python: refused by the name of the parameter and what it takes, before any work."""

import pickle
from collections.abc import Callable
from decimal import Decimal
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import equipoise as eq
from equipoise.data.cells import count
from equipoise.data.records import Records
from equipoise.ground.argument_types import checked, fits

FRAME = pl.DataFrame({"age": [20, 30, 40], "sex": ["f", "m", "CANARY"]})
RECORDS = eq.read(FRAME, eq.Roles(["age", "sex"]))
any_eq: Any = eq

WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a frame for records": (lambda: any_eq.count(FRAME), r"count: records must be Records, got DataFrame: .* eq.read"),
    "one mask for a list": (lambda: any_eq.protect(RECORDS, eq.masks.TopCode("age", 9), "o"), "masks must be a list"),
    "a frame as population": (lambda: any_eq.risk.Journalist(FRAME), "population must be .* Records"),
    "a misspelt score": (lambda: eq.Policy({"entrpy": "> 1"}), "No measure 'entrpy'. Did you mean 'entropy'?"),
    "a method of a mask": (lambda: any_eq.masks.Renumber().apply(3, None), "apply: data must be Records"),
    "a method of a measure": (lambda: any_eq.utility.Moments().measure(FRAME, RECORDS), "released must be Records"),
    "a rule on a frame": (lambda: any_eq.rules.MinCount(3).flag(FRAME), "cells must be"),
    "a switch": (lambda: any_eq.protect(RECORDS, [], "o", overwrite="no"), "overwrite must be True or False"),
    "a class for an object": (lambda: any_eq.assess(RECORDS, [eq.risk.Uniques]), "measures must be a list"),
    "a number in words": (lambda: any_eq.rules.MinCount("three"), "n must be a whole number"),
    "a frame for a number": (lambda: any_eq.rules.AnySubset(n=FRAME), "n must be"),
    "arrays of unlike length": (
        lambda: eq.losses.Respondents(2).bend(np.zeros(2), np.zeros(3)),
        "y and Y must have",
    ),
    "arrays of unlike length, silence": (lambda: eq.losses.Silence().bend(np.zeros(2), np.zeros(3), 1, 1), "as many"),
    "arrays of unlike length, called": (lambda: eq.losses.Uniques(2)(np.zeros(2), np.zeros(3)), "y and Y must have"),
    "arrays of unlike length, risks": (lambda: _risks([1, 2], [1, 2, 3]), "y and n .* must have as many values"),
    "words for numbers": (lambda: _risks([1, 2], ["a", "b"]), "n must be numbers, got list"),
    "three for a pair": (lambda: _risks([1], [2], effective=(1, 2, 3)), "effective must be"),
    "a list in a formula": (lambda: eq.losses.SmallGroup(2)([1.0], [1.0]), "y must be a number or an array of numbers"),
    "a method of a table": (lambda: any_eq.table(RECORDS, by=["sex"]).margin(5), "margin: by must be"),
    "a method of a result": (lambda: any_eq.suggest_roles(FRAME).of(5), "of: role must be"),
    "a method of what is inherited": (
        lambda: any_eq.table(RECORDS, by=["sex"]).values(5),
        "values: column must be str",
    ),
    "a recipe on a number": (lambda: any_eq.Recipe([]).run(5), "run: records must be"),
    "a rule or a frame": (lambda: eq.rules.MinCount(3) | FRAME.to_pandas()["age"].dtype, "unsupported operand"),
    "a rule and a number": (lambda: eq.rules.MinCount(3) & 5, "unsupported operand"),
    "a hierarchy or a number": (lambda: any_eq.Hierarchy.intervals(5) | 5, "unsupported operand"),
    "a cell without records": (lambda: eq.rules.MinCount(3).explain({}), "cell must have 'n'"),
    "a cell with words": (lambda: eq.rules.Zero().explain({"n": "a"}), "number of records in 'n'"),
    "a cell that is not marked": (lambda: eq.rules.Marked().explain({}), "cell must have 'sensitive'"),
    "keys for weights": (
        lambda: any_eq.losses.Granularity(weights=("age", "sex")),
        "weights must be a dict",
    ),
    "words for a matrix": (lambda: any_eq.risk.LogLinear(misclassification=iter(["age"])), "misclassification is"),
    "no counts": (lambda: eq.masks.PramMatrix("sex", diagonal=0.5).transition(np.zeros(3)), "counts must be numbers"),
    "texts for counts": (
        lambda: eq.masks.PramMatrix("sex", diagonal=0.5).transition(np.array(["a", "b"])),
        "counts must be numbers",
    ),
    "one count": (lambda: eq.utility.pram_adjust(3, np.eye(3)), "counts must be a list of numbers"),
    "too few names": (lambda: eq.utility.pram_adjust([1, 2], np.eye(2), categories=["a"]), "1 names for 2 counts"),
    "an array for a score": (lambda: eq.Scores()[np.zeros(2)], "a name or a place, got ndarray"),
    "a query that fails": (lambda: any_eq.count(FRAME.lazy().select("none")), "records must be Records, got LazyFrame"),
    "a query without its file": (lambda: eq.read(pl.scan_parquet("none.parquet"), eq.Roles()), "there is no such file"),
    "periods": (
        lambda: eq.read(pd.DataFrame({"p": pd.period_range("2000", periods=3)}), eq.Roles()),
        "Column .p. is",
    ),
    "an engine's words": (lambda: eq.theory.curve("noise", values=FRAME["sex"]), "values must be"),
    "scores": (lambda: any_eq.Scores(["age"]), "scores must be"),
    "a thousand million contributors": (lambda: eq.rules.Dominance(10**9, 0.5), "n must be .* at most 1,000"),
    "a coalition of a thousand million": (lambda: eq.rules.PPercent(0.1, 10**9), "coalition must be .* at most 1,000"),
    "a thousand million contributions": (lambda: any_eq.table(RECORDS, by=["sex"], top=10**9), "top must be .* 2,000"),
    "columns without an end": (lambda: eq.Roles(repeat("age")), "keys is an iterator of more than 1,000,000 items"),
    "masks without an end": (lambda: any_eq.protect(RECORDS, repeat(5), "o"), "masks is an iterator of more than"),
    "tables without an end": (
        lambda: any_eq.tables.difference(any_eq.table(RECORDS, by=["sex"]), repeat(1)),
        "new is an iterator of more than",
    ),
}


def _risks(y: Any, n: Any, **more: Any) -> Any:
    return eq.losses.risks(y, n, 8, 1, 10, disclosure="uniques:10", nonpublication="y", **more)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_names_the_parameter(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call, words = WRONG[name]
    with pytest.raises((eq.EquipoiseError, TypeError), match=words) as caught:
        call()
    assert "CANARY" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_what_fits_still_passes() -> None:
    assert eq.count(RECORDS).records == 3
    assert eq.Recipe(eq.masks.TopCode("age", 9)).masks == (eq.masks.TopCode("age", 9),)  # type: ignore[arg-type]
    assert eq.Policy({"my_own": "< 1"}).limits == {"my_own": "< 1"}
    assert pickle.loads(pickle.dumps(eq.risk.Uniques(k=3))) == eq.risk.Uniques(k=3)
    assert eq.count.__doc__ == count.__doc__


@pytest.mark.parametrize("names", [pd.Index(["age"]), pl.Series(["age"]), np.array(["age"]), iter(["age"]), {"age"}])
def test_names_in_an_array_or_an_iterator_are_a_list(names: Any) -> None:
    assert eq.Roles(names, direct=np.array([])).keys == ("age",)


def test_what_an_engine_cannot_do_is_one_sentence_without_data() -> None:
    wide = pa.table({"age": pa.array([Decimal(1)], pa.decimal256(50, 3)).take([0, 0]), "sex": ["CANARY", "f"]})
    with pytest.raises(eq.DataError, match="Could not turn this frame into columns"):
        eq.read(pa.concat_tables([wide, wide]), eq.Roles(["sex"]))


def test_an_error_of_an_engine_inside_a_verb_shows_no_data() -> None:
    def fails(records: Records) -> pl.Series:
        return records.collect("sex")["sex"].cast(pl.Int64)

    with pytest.raises(eq.DataError, match=r"The engine could not work with the data \(Invalid") as caught:
        checked(fails)(RECORDS)
    assert "CANARY" not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("value", "kind", "fit"),
    [
        (3, int, True), (True, int, False), (3, float, True), ("3", float, False), (None, str | None, True),
        ("a", Path, True), (("a",), tuple[str, ...], True), ("a", tuple[str, ...], True),
        (FRAME, tuple[str, ...], False),
        ({"a": 1}, dict[str, int], True), ({1: 1}, dict[str, int], False), ([1, "a"], list[int], False),
    ],
)  # fmt: skip
def test_fits(value: Any, kind: Any, fit: bool) -> None:
    assert fits(value, kind) is fit


def test_a_roles_file_is_not_overwritten_unasked(tmp_path: Path) -> None:
    path = tmp_path / "roles.toml"
    roles = eq.Roles("age")
    roles.to_toml(path)
    for write in (roles.to_toml, eq.suggest_roles(FRAME).toml):
        before = path.read_bytes()
        with pytest.raises(eq.ParameterError, match="exists already"):
            write(path)
        assert path.read_bytes() == before
        write(path, overwrite=True)


def test_a_margin_takes_a_list_and_a_score_has_a_place() -> None:
    cells = eq.count(RECORDS)
    assert cells.margin(["age"]).by == cells.margin("age").by == ("age",)  # type: ignore[arg-type]
    scores = eq.sweep(RECORDS, [eq.Recipe([])], [eq.risk.Uniques()])[0].scores
    for place in (50, -2, 10**30):
        with pytest.raises(eq.ParameterError, match="No score at place"):
            scores[place]


def test_a_type_that_lists_categories_is_shown_without_them() -> None:
    values = pl.Series(["a", "b"] * 5, dtype=pl.Enum(["a", "b", "CANARY"]))
    records = eq.read(pl.DataFrame({"region": values, "age": range(10)}), eq.Roles(["region"]))
    with pytest.raises(eq.DataError, match=r"'region' is Enum, not numeric\.$"):
        eq.Recipe([eq.masks.Noise(["region"], 0.1)]).run(records).collect()
    for kind in (values.dtype, pl.Struct({"a": values.dtype, "b": pl.List(values.dtype)})):
        assert "CANARY" not in str(eq.DataError(f"Column 'region' is {kind}, not numeric."))
