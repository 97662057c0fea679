"""Cells of linked tables are sets of records: equal ones are one cell, whatever they are called."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.data.tables.linked_tables import Union


def people() -> pl.DataFrame:
    rng = np.random.default_rng(5)
    county = rng.integers(0, 6, 80)
    return pl.DataFrame(
        {
            "pid": np.arange(80),
            "county": [f"c{i}" for i in county],
            "cty": [f"k{i}" for i in county],
            "region": [f"r{i // 2}" for i in county],
            "sex": rng.choice(["f", "m"], 80),
            "pay": np.round(rng.lognormal(3, 1, 80), 1),
        }
    )


def of(frame: Any, by: Any, value: str | None = None, **roles: Any) -> Any:
    return eq.table(eq.Records.of(frame, eq.Roles(**roles)), by, value)


def shared(one: Any, two: Any) -> int:
    """How many cells two tables have in common."""
    union = Union.of([one, two])
    union.additive.check(union.values)
    return len(np.intersect1d(*union.places))


def test_other_names_and_orders_are_the_same_cells() -> None:
    frame = people()
    one = of(frame, ["county", "sex"])
    assert shared(one, of(frame, ["sex", "cty"])) == len(one)
    renamed = frame.rename({"county": "place", "sex": "gender"}).sample(fraction=1.0, shuffle=True, seed=1)
    assert shared(one, of(renamed, ["gender", "place"])) == len(one)


@pytest.mark.parametrize("roles", [{}, {"id": "pid"}])
def test_parts_of_a_file_in_any_order(roles: dict[str, str]) -> None:
    """A small part of a file before the whole of it, and two parts that only the whole has in common."""
    frame = people()
    few, others = frame.filter(pl.col("region") == "r0"), frame.filter(pl.col("region") == "r1")
    whole = of(frame, ["county", "sex"], **roles)
    parts = [of(one, ["sex", "cty"], **roles) for one in (few, others)]
    assert few.height < frame.height / 2
    assert shared(parts[0], whole) == shared(whole, parts[0]) == 6
    assert not Union.of([*parts, whole]).by_labels


def test_parts_of_a_file_that_overlap_are_told_by_their_ids() -> None:
    frame = people()
    women, county = frame.filter(pl.col("sex") == "f"), frame.filter(pl.col("county") == "c1")
    one, two = of(women, ["county"], id="pid"), of(county, ["sex"], id="pid")
    assert shared(one, two) == shared(two, one) == 1


@pytest.mark.parametrize("kind", ["lazy", "pandas", "duckdb"])
def test_other_engines_know_their_records_too(kind: str) -> None:
    frame = people()
    other: Any = {"lazy": frame.lazy(), "pandas": None, "duckdb": None}[kind]
    if kind == "pandas":
        pytest.importorskip("pandas")
        other = frame.to_pandas()
    if kind == "duckdb":
        other = pytest.importorskip("duckdb").from_arrow(frame.to_arrow())
    assert shared(of(frame, ["county", "sex"], id="pid"), of(other, ["sex", "cty"], id="pid")) == 21


def test_groups_are_sums_of_cells_that_state_no_such_thing() -> None:
    """Regions and counties in tables of their own: the region's cell is its counties', with or without atoms."""
    frame = people()
    one, two = of(frame, ["region", "sex"]), of(frame, ["cty", "sex"])
    for atoms in (20_000, -1):
        union = Union.of([one, two], atoms)
        assert union.complete == (atoms > 0)
        assert union.cells == union.table_cells, "counties are the classes of records"
        rows = np.zeros(union.cells)
        cell = union.places[0][one.table.select((pl.col("region") == "r0") & (pl.col("sex") == "f")).to_series()]
        parts = union.places[1][
            two.table.select(pl.col("cty").is_in(["k0", "k1"]) & (pl.col("sex") == "f")).to_series()
        ]
        rows[cell], rows[parts] = -1.0, 1.0
        relations = union.additive.matrix.toarray()
        rank = np.linalg.matrix_rank
        assert rank(np.vstack([relations, rows])) == rank(relations)


def test_a_revised_value_is_no_equality() -> None:
    """The same people, one of them with another amount: cells without her are the same, those with her are not."""
    frame = people()
    revised = frame.with_columns(pay=pl.when(pl.col("pid") == 7).then(pl.col("pay") * 2).otherwise("pay"))
    one, two = of(frame, ["county"], "pay", id="pid"), of(revised, ["county"], "pay", id="pid")
    assert shared(one, two) == len(one) - 2
    assert shared(one, of(revised.rename({"pay": "wage"}), ["county"], "wage", id="pid")) == len(one) - 2
    assert shared(one, of(frame, ["county"], id="pid")) == 0, "counts and amounts"


def test_an_unprotected_table_gives_away_what_it_shows() -> None:
    frame = people()
    rule = eq.rules.MinCount(7)
    hidden = eq.tables.Suppress(rule).together([of(frame, ["county", "sex"])])[0]
    cells = eq.tables.difference(hidden, of(frame, ["sex", "cty"]))
    assert cells.height
    assert cells["exact"].all()
    assert cells["published"].all()


def test_no_record_leaves_with_a_table() -> None:
    made = of(people().with_columns(sex=pl.lit("canary")), ["county"], "pay")
    assert "canary" not in repr(made)
    assert not {"behind", "beside"} & set(made.table.columns)
