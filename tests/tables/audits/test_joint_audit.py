"""Tables audited as one whatever was done to each: by enumeration, and through the register."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.data.records import Law
from equipoise.data.tables.linked_tables import Union
from equipoise.data.tables.table import Table
from equipoise.provenance.seed_register import Register
from equipoise.releases.tabulated import Tabulated
from equipoise.releases.verify import verify
from equipoise.tables import CellKey, Round
from equipoise.tables.audits.joint_audit import JointAudit, KnownTable, frame, intervals, joint, otherwise, read_back

CELLS = [("a", "f"), ("a", "m"), ("b", "f"), ("b", "m")]


def records(counts: tuple[int, ...]) -> eq.Records:
    rows = [cell for cell, many in zip(CELLS, counts, strict=True) for _ in range(many)]
    return eq.read(pl.DataFrame({"k": [k for k, _ in rows], "s": [s for _, s in rows]}))


FILES = np.stack(np.meshgrid(*[np.arange(25)] * 4, indexing="ij"), axis=-1).reshape(-1, 4)
"""Every file of up to 24 records in each inner cell."""


def possible(tables: list[KnownTable]) -> list[tuple[float, float]]:
    """By trying every file: the least and the most that each cell of the tables can be, one after the other."""
    rows = [row for one in tables for row in one.table.table.select(one.table.by).to_dicts()]
    named = [(row.get("k", "Total"), row.get("s", "Total")) for row in rows]
    parts = np.array([[k in (a, "Total") and s in (b, "Total") for a, b in CELLS] for k, s in named])
    values = FILES @ parts.T
    low, high = (np.concatenate([getattr(one, side) for one in tables]) for side in ("low", "high"))
    agree = values[((values >= low) & (values <= high)).all(axis=1)]
    return list(zip(agree.min(axis=0).tolist(), agree.max(axis=0).tolist(), strict=True))


@pytest.mark.parametrize(("counts", "bases"), [((7, 2, 3, 5), (4, 3)), ((1, 8, 6, 2), (5, 3)), ((4, 4, 1, 9), (3, 4))])
def test_the_intervals_of_two_rounded_tables(counts: tuple[int, ...], bases: tuple[int, int]) -> None:
    """Tables of two columns with whole bounds have whole ends: enumeration and linear programs agree."""
    people = records(counts)
    one = eq.tabulate(people, ["k", "s"], method=Round(bases[0])).known_cells
    two = eq.tabulate(people, "k", method=Round(bases[1])).known_cells
    union, low, high = intervals([one, two])
    places = np.concatenate(union.places)
    assert np.column_stack([low[places], high[places]]) == pytest.approx(np.array(possible([one, two])), abs=1e-6)
    alone = intervals([one])
    assert (high[union.places[0]] - low[union.places[0]]).sum() < (alone[2] - alone[1]).sum()


def test_exact_and_too_close_by_hand() -> None:
    """a is 4 with levels of 2 both ways, b is 6: the total 10 is told, b is told to be 6 to 7 by another table."""
    table = eq.table(eq.read(pl.DataFrame({"k": [*"aaaabbbbbb"]})), "k")
    assert table.table["k"].to_list() == ["Total", "a", "b"]
    nothing, guarded = np.zeros(3), np.array([False, True, False])
    level = np.array([0.0, 2.0, 0.0])

    def told(low: list[float], high: list[float]) -> KnownTable:
        return KnownTable(
            table, "round", np.array([10.0, 4, 6]), np.array(low, float), np.array(high, float), guarded, level, level
        )

    wide, b_near = told([10, 0, 0], [10, 10, 10]), told([0, 0, 6], [99, 99, 7])
    assert joint([wide]) == JointAudit(0, 0, True)
    assert joint([b_near]) == JointAudit(0, 0, True)
    assert joint([wide, b_near]) == JointAudit(0, 2, True)
    exact = told([0, 0, 6], [99, 99, 6])
    assert joint([wide, exact]) == JointAudit(2, 0, True)
    plain = KnownTable(table, "round", nothing, wide.low, wide.high, guarded, nothing, nothing)
    assert joint([plain, told([0, 0, 6], [99, 99, 7])]).close == 1


def test_what_is_kept_is_what_was_known(tmp_path: Path) -> None:
    found = eq.tabulate(records((7, 2, 3, 5)), ["k", "s"], method=Round(4), rule="min-count:3").known_cells
    frame(found).write_parquet(tmp_path / "kept.parquet")
    back = read_back(found.table, pl.read_parquet(tmp_path / "kept.parquet"), "round")
    for name in ("told", "low", "high", "guarded", "below", "above"):
        assert np.array_equal(getattr(back, name), getattr(found, name)), name


def test_noise_must_be_the_same() -> None:
    people = records((7, 2, 3, 5))
    one, two = (eq.tabulate(people, by, method=CellKey(), seed=5).known_cells for by in (["k", "s"], "k"))
    other = eq.tabulate(people, "k", method=CellKey(most=2, variance=1.0), seed=8).known_cells
    assert otherwise(two, [one]) == 0
    shared = [row for row in one.table.table.rows(named=True) if row["s"] == "Total"]
    mine = dict(zip(other.table.table["k"], other.told, strict=True))
    theirs = dict(zip(one.table.table.select("k", "s").rows(), one.told, strict=True))
    assert otherwise(other, [one]) == sum(mine[row["k"]] != theirs[row["k"], "Total"] for row in shared) > 0


# --- the register -------------------------------------------------------------------------------------------------


@pytest.fixture
def people(tmp_path: Path) -> eq.Records:
    rows = [("a", "f")] + [("a", "m")] + [("b", "f")] * 2 + [("b", "m")] * 2 + [("c", "f")] * 5 + [("c", "m")] * 4
    rows += [("d", "f")] * 6 + [("d", "m")] * 8
    frame = pl.DataFrame({"k": [k for k, _ in rows], "s": [s for _, s in rows]})
    frame.write_csv(tmp_path / "people.csv")
    return eq.read(tmp_path / "people.csv")


def made(people: eq.Records, folder: Path, name: str, by: list[str], **how: object) -> Tabulated:
    return eq.tabulate(people, by, register=folder / "register.json", out=folder / name, **how)  # type: ignore[arg-type]


def test_rounding_what_was_suppressed_is_refused(people: eq.Records, tmp_path: Path) -> None:
    """A base so small that the suppressed cells of an earlier table become known too closely; a large one is passed."""
    made(people, tmp_path, "one", ["k", "s"], rule="min-count:6")
    with pytest.raises(eq.RefusedError, match="together with 1 earlier table of this data an outsider can compute"):
        made(people, tmp_path, "two", ["k", "s"], method=Round(2))
    assert not (tmp_path / "two").exists()
    found = made(people, tmp_path, "three", ["k", "s"], method=Round(20))
    assert "Audited together with 1 earlier table of this data." in found.notes
    assert len(Register(tmp_path / "register.json").tables(people)) == 2


def test_suppressing_what_was_rounded_is_refused(people: eq.Records, tmp_path: Path) -> None:
    made(people, tmp_path, "one", ["k", "s"], method=Round(2))
    with pytest.raises(eq.RefusedError, match="beside the tables that were published before"):
        made(people, tmp_path, "two", ["k", "s"], rule="min-count:6")


def test_the_same_table_again_is_no_danger(people: eq.Records, tmp_path: Path) -> None:
    for name in ("one", "two"):
        made(people, tmp_path, name, ["k", "s"], method=Round(4), rule="min-count:3")
    assert len(Register(tmp_path / "register.json").tables(people)) == 1
    assert len(list(Register(tmp_path / "register.json").shelf.glob("*/table.sbs"))) == 1


def test_other_noise_on_the_same_cells_is_refused(people: eq.Records, tmp_path: Path) -> None:
    made(people, tmp_path, "one", ["k", "s"], method=CellKey())
    made(people, tmp_path, "two", ["k"], method=CellKey())
    with pytest.raises(eq.RefusedError, match="published before with another change"):
        made(people, tmp_path, "three", ["k", "s"], method=CellKey(most=9, variance=8.0))
    assert not (tmp_path / "three").exists()


def test_what_was_not_audited_is_said(people: eq.Records, tmp_path: Path) -> None:
    frame = people.collect().with_columns(pay=pl.lit(7.0), w=pl.lit(2.0))
    frame.write_csv(tmp_path / "pay.csv")
    paid = eq.read(tmp_path / "pay.csv")
    made(paid, tmp_path, "one", ["k"], method=Round(5))
    found = made(paid, tmp_path, "two", ["k"], value="pay", method=Round(50))
    assert found.notes[-1].startswith("Not audited together with 1 earlier table of this data, which counts or adds")


def test_what_is_kept_is_watched(people: eq.Records, tmp_path: Path) -> None:
    made(people, tmp_path, "one", ["k", "s"], method=Round(4))
    (bounds,) = Register(tmp_path / "register.json").shelf.glob("*/bounds.parquet")
    assert bounds.stat().st_mode & 0o077 == 0
    bounds.write_bytes(b"")
    with pytest.raises(eq.DataError, match="or were changed"):
        made(people, tmp_path, "two", ["k"], method=Round(4))


def test_holdings_that_use_an_earlier_table(tmp_path: Path) -> None:
    """By kind and trade firm h is alone in two cells; only the register tells that of a table without its holdings."""
    rows = [("a", "x", "h", 40), ("b", "x", "h", 30), ("a", "y", "i", 25), ("b", "y", "j", 35)]
    rows += [(k, t, f"{k}{t}{i}", 10 + i) for k in "ab" for t in "zw" for i in range(5)]
    frame = pl.DataFrame(rows, schema=["k", "t", "firm", "pay"], orient="row").with_columns(size=pl.col("t"))
    frame.write_csv(tmp_path / "firms.csv")
    firms = eq.read(tmp_path / "firms.csv")
    made(firms, tmp_path, "one", ["k", "t"], value="pay", holding="firm", rule="p-percent:10%")
    kept = pl.read_parquet(next(Register(tmp_path / "register.json").shelf.glob("*/members.parquet")))
    assert kept["holder"].n_unique() == frame["firm"].n_unique()
    two = made(firms, tmp_path, "two", ["size", "k"], value="pay", rule="p-percent:10%")
    assert {"everybody who is alone in suppressed cells and has the earlier table of this data too",
            "everybody who shares cells, knows what he has in them and has the earlier table of this data too"} <= {
                *two.attackers.against, *two.attackers.less}  # fmt: skip
    assert two.attackers.not_cover[-1] == "somebody who has tables of this data that are not in the register"
    people = Union.of([two.table, *(view.table for view in two.table.beside)]).contributors
    assert people is not None
    assert people.people == frame["firm"].n_unique()
    assert verify(tmp_path / "two").outcome == "verified"


# --- evidence -----------------------------------------------------------------------------------------------------


def test_the_evidence_has_a_keyed_hash_of_the_input(people: eq.Records, tmp_path: Path) -> None:
    """Keyed, so that nobody can confirm a guess; another original is found out; the number of records is not told."""
    made(people, tmp_path, "one", ["k", "s"], rule="min-count:2")
    told = json.loads((tmp_path / "one/public/evidence.json").read_text(encoding="utf-8"))["input"]
    assert set(told) == {"hmac_sha256"}
    assert len(told["hmac_sha256"]) == 64
    assert verify(tmp_path / "one").outcome == "verified"
    with (tmp_path / "people.csv").open("a", encoding="utf-8") as file:
        file.write("\n")
    found = verify(tmp_path / "one")
    assert found.outcome == "refused"
    assert any("not the file that the table was made from" in check.words for check in found.checks)


def suppressed(table: Table, *labels: str) -> Table:
    """The table with these cells of its only column suppressed by hand."""
    hidden = table.table["k"].is_in(labels).to_numpy()
    law = Law("suppress", (), "by hand", detail=eq.tables.Suppress(eq.rules.PPercent(0.1)))
    status = pl.Series(np.where(hidden, "sensitive", "published"))
    return table.protected(np.where(hidden, np.nan, table.numbers("value")), status, law)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_no_unit_hides_what_is_exposed(unit: float) -> None:
    """b (90, 2, 1) may rise by 1 where 8 are asked for; alone it follows exactly: whatever the unit."""
    values = unit * np.array([5, 4, 3, 90, 2, 1, 7, 7, 7, 1])
    table = eq.table(eq.Records.of(pl.DataFrame({"k": [*"aaabbbcccd"], "x": values}), eq.Roles()), "k", "x")
    cells = eq.tables.audit(suppressed(table, "b", "d"), against="outsider").sort("k")
    assert cells["exposed"].to_list() == [True, False]
    assert eq.tables.audit(suppressed(table, "b"), against="outsider")["exact"].to_list() == [True]
