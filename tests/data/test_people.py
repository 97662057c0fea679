"""Classes that count people where records repeat them, against counts by Polars and by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.data.cells import count

KEYS = ("age", "sex", "area")


def stays(seed: int = 1, size: int = 400) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    person = rng.integers(0, size // 2, size)
    return pl.DataFrame(
        {
            "stay": np.arange(size),
            "person": person,
            "age": rng.integers(0, 60, size),
            "sex": person % 2,
            "area": rng.integers(0, 4, size),
        }
    )


def read(table: Any, **roles: object) -> eq.Records:
    tree = eq.Hierarchy.intervals((5, 10, 30))
    return eq.read(table, eq.Roles(KEYS, id="stay", person="person", hierarchies={"age": tree}, **roles))  # type: ignore[arg-type]


def by_hand(table: pl.DataFrame, *keys: str | pl.Expr) -> list[int]:
    return table.group_by(keys).agg(pl.col("person").n_unique()).sort(pl.exclude("person"))["person"].to_list()


def test_cells_count_people_whatever_is_added_up() -> None:
    table = stays()
    cells = count(read(table))
    assert cells.alike[0].tolist() == by_hand(table, *KEYS)
    assert cells.margin(("sex", "area")).alike[0].tolist() == by_hand(table, "sex", "area")
    bands = cells.roll_up({"age": lambda age: age // 10})
    assert bands.alike[0].tolist() == by_hand(table, pl.col("age") // 10, "sex", "area")
    assert bands.margin(()).alike[0].tolist() == [table["person"].n_unique()]
    assert cells.n.sum() == table.height


def test_risks_and_rules_count_people() -> None:
    """Two stays of one patient are one person: alone."""
    table = pl.DataFrame({"stay": [1, 2, 3, 4], "person": [1, 1, 2, 3], "age": [30, 30, 40, 40], "sex": 0, "area": 0})
    records = read(table)
    assert eq.risk.Uniques().measure(records, records).number == 2
    assert eq.risk.KAnonymity(2).measure(records, records).number == 2
    assert eq.risk.Prosecutor().measure(records, records).value == pytest.approx(1)
    assert eq.risk.Individual().measure(records, records).by_record()["risk"].to_list() == pytest.approx(
        [1, 1, 0.5, 0.5]
    )
    assert eq.risk.Unsafe(eq.rules.MinCount(2)).measure(records, records).number == 2
    assert eq.rules.MinCount(2).flag(count(records)).to_list() == [True, False]


def test_suppression_and_search_count_people() -> None:
    table = stays()
    records = read(table)
    mask = eq.masks.SuppressRecords(eq.rules.MinCount(3))
    safe = eq.Recipe([eq.masks.Recode("age", "30"), mask], seed=1).run(records)
    shown = safe.collect().filter(pl.col("sex").is_not_null())
    assert min(by_hand(shown, *KEYS)) >= 3
    best = eq.best_coarsening(records, eq.rules.MinCount(3), suppress_at_most=0.2)
    table = best.recipe.run(records).collect()
    assert min(by_hand(table.filter(pl.col("sex").is_not_null()), *KEYS)) >= 3
    assert best.suppressed == table["sex"].null_count()


def test_who_shows_a_key_elsewhere_hides_nobody() -> None:
    """Three patients have a blank stay; two of them show their sex in another one."""
    table = pl.DataFrame(
        {
            "stay": range(5),
            "person": [1, 2, 3, 1, 2],
            "age": [None, None, None, 30, 30],
            "sex": [None, None, None, 0, 1],
        }
    ).with_columns(area=0)
    cells = count(read(table))
    assert dict(zip(cells.table["sex"], cells.alike[0], strict=True)) == {None: 1, 0: 1, 1: 1}


def test_a_limit_by_groups_counts_people() -> None:
    table = pl.DataFrame({"stay": range(4), "person": [1, 1, 2, 3], "age": 30, "sex": 0, "area": [1, 1, 2, 2]})
    records = read(table)
    policy = eq.Policy({"prosecutor": {"limit": "<= 0.5", "by": "area"}})
    score = policy.measures()[0].measure(records, records)
    assert score.value == pytest.approx(1)


def test_engines_count_the_same_people(tmp_path: Path) -> None:
    """Scanned files and DuckDB, too; and a model of records says that it is one."""
    duckdb = pytest.importorskip("duckdb")
    table = stays()
    table.write_parquet(tmp_path / "stays.parquet")
    expected = count(read(table)).alike[0].tolist()
    for source in (pl.scan_parquet(tmp_path / "stays.parquet"), duckdb.from_arrow(table.to_arrow()), table.to_pandas()):
        assert count(read(source)).alike[0].tolist() == expected
    records = read(table)
    assert "Records are counted" in eq.risk.SpecialUniques(2, fraction=0.5).measure(records, records).notes[0]


def test_a_record_without_a_person_is_refused() -> None:
    table = stays().with_columns(person=pl.when(pl.col("stay") > 0).then(pl.col("person")))
    with pytest.raises(eq.RolesError, match="1 records have no person in 'person'"):
        count(read(table))


def test_the_role_goes_through_files() -> None:
    roles = eq.Roles(KEYS, person="person")
    assert eq.Roles.from_plain(roles.to_plain()) == roles
    with pytest.raises(eq.RolesError, match="cannot be both"):
        eq.Roles(["person"], person="person")
