"""A-priori information: files of tau-ARGUS, cells to publish or suppress, costs and levels, and rounding beside it."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog

import equipoise as eq
from equipoise.ground.randomness import Draws
from equipoise.rules import MinCount, PPercent
from equipoise.tables import Adjust, Round, Suppress, audit
from equipoise.tables._suppression.rounded_cells import rounded_published

DATA = os.environ.get("EQUIPOISE_DATA")


@pytest.fixture(scope="module")
def records() -> eq.Records:
    draw = np.random.default_rng(7)
    frame = pl.DataFrame({
        "a": draw.choice(list("pqrs"), 90, p=[0.4, 0.3, 0.2, 0.1]),
        "b": draw.choice(list("xyz"), 90, p=[0.6, 0.25, 0.15]),
        "turnover": np.round(np.exp(draw.normal(3, 1.2, 90))) + 1,
    })  # fmt: skip
    return eq.Records.of(frame, eq.Roles())


RULE = PPercent(0.1) | MinCount(3)


def made(records: eq.Records, **wishes: object) -> eq.Cells:
    return eq.table(records, ["a", "b"], "turnover", **wishes)  # type: ignore[arg-type]


def place(table: eq.Cells, a: str, b: str) -> int:
    return table.table.select("a", "b").rows().index((a, b))


def statuses(table: eq.Cells) -> dict[tuple[str, str], str]:
    return {(a, b): status for a, b, status in table.table.select("a", "b", "status").rows()}


def interval(table: eq.Cells, cell: int) -> tuple[float, float]:
    """What an outsider can compute of a cell, by scipy from labels, values and what is suppressed."""
    rows, value = table.table.select("a", "b").rows(), table.numbers("value")
    hidden, matrix = table.table["published"].is_null().to_list(), []
    for side, other in ((0, 1), (1, 0)):
        lines = {row[other] for row in rows}
        matrix += [[(-1.0 if r[side] == "Total" else 1.0) * (r[other] == fixed) for r in rows] for fixed in lines]
    bounds = [(0, None) if h else (v, v) for h, v in zip(hidden, value, strict=True)]
    cost = np.eye(len(rows))[cell]
    ends = [linprog(sign * cost, A_eq=np.array(matrix), b_eq=np.zeros(len(matrix)), bounds=bounds) for sign in (1, -1)]
    return float(ends[0].fun), np.inf if ends[1].status == 3 else -float(ends[1].fun)


def test_cells_to_publish_and_to_suppress(records: eq.Records) -> None:
    plain = Suppress(RULE).apply(made(records), Draws(1))
    told = statuses(plain)
    helper = next(cell for cell, status in told.items() if status == "secondary")
    safe = next(cell for cell, status in told.items() if status == "published" and "Total" not in cell)
    wishes = {"publish": f"a={helper[0]} & b={helper[1]}", "suppress": f"a={safe[0]} & b={safe[1]}"}
    found = Suppress(RULE).apply(made(records, **wishes), Draws(1))
    assert statuses(found)[helper] == "published"
    assert statuses(found)[safe] == "sensitive"
    for cell in (safe, *(cell for cell, status in told.items() if status == "sensitive")):
        spot = place(found, *cell)
        low, high = interval(found, spot)
        value = found.numbers("value")[spot]
        level = 0.2 * value if cell == safe else 0.0
        assert low <= value - level + 1e-6
        assert high >= value + level - 1e-6
        assert high - low > 1e-6
    assert not audit(found).filter("exposed").height


def test_a_file_of_every_kind_of_line(records: eq.Records, tmp_path: Path) -> None:
    """Costs, levels, safe, unsafe, protected and secondary; both separators, quotes and the empty code of the total."""
    whole = made(records)
    plain = statuses(Suppress(RULE).apply(whole, Draws(1)))
    sensitive = [cell for cell, status in plain.items() if status == "sensitive"]
    free = [c for c, s in plain.items() if s == "published" and "Total" not in c and whole.n[place(whole, *c)]]
    file = tmp_path / "a.hst"
    file.write_text(
        f'{sensitive[0][0]}, {sensitive[0][1]}, s\n{free[0][0]}, "{free[0][1]}", u\n'
        f'{free[0][0]}, {free[0][1]}, pl, 7, 9\n"","",p\n{free[1][0]}, {free[1][1]}, m\n\n'
        f"{free[2][0]},{free[2][1]},C,0.5\n"
    )
    table = made(records, apriori=file)
    assert table.numbers("apriori_cost")[place(table, *free[2])] == 0.5
    found = Suppress(RULE).apply(table, Draws(1))
    told = statuses(found)
    assert (told[free[0]], told[free[1]], told["Total", "Total"]) == ("sensitive", "secondary", "published")
    assert told[sensitive[0]] != "sensitive"
    spot = place(found, *free[0])
    low, high = interval(found, spot)
    assert low <= found.numbers("value")[spot] - 7 + 1e-6
    assert high >= found.numbers("value")[spot] + 9 - 1e-6
    semicolons = tmp_path / "b.hst"
    semicolons.write_text(f"{free[2][0]};{free[2][1]};w;0,5\n")
    assert made(records, apriori=semicolons).numbers("apriori_cost")[place(table, *free[2])] == 0.5
    result = eq.tabulate(records, ["a", "b"], "turnover", rule=RULE, apriori=str(file))
    assert any("said to be safe" in note for note in result.notes)


def test_a_low_cost_draws_suppression(records: eq.Records, tmp_path: Path) -> None:
    plain = statuses(Suppress(RULE, method="optimal", singletons=False).apply(made(records), Draws(1)))
    helper = next(cell for cell, status in plain.items() if status == "secondary")
    (tmp_path / "c.hst").write_text(f"{helper[0]},{helper[1]},c,100000000\n")
    dear = Suppress(RULE, method="optimal", singletons=False).apply(made(records, apriori=tmp_path / "c.hst"), Draws(1))
    assert statuses(dear)[helper] == "published"


def test_twins_of_a_hierarchy_are_told_together() -> None:
    """A group of one value holds the same records: what is said of one holds for both."""
    people = pl.DataFrame({"k": [*"aaaabbbbcccc"]})
    tree = eq.Hierarchy.mapping({"a": "A", "b": "B", "c": "B"})
    table = eq.table(eq.Records.of(people, eq.Roles()), "k", hierarchies={"k": tree}, publish="k=A")
    assert table.table.filter(apriori_status="published")["k"].to_list() == ["A", "a"]


FAULTS = [
    ("p,x,p\np,x,u\n", "two things"), ("p,nope,u\n", "Line 1 of the a-priori file has a code"),
    ("p,x,q\n", "does not say"), ("p,x\n", "does not say"),
    ("p,x,c\n", "one number"), ("p,x,c,0\n", "one number"), ("p,x,c,-1\n", "one number"),
    ("p,x,pl,3\n", "two numbers"), ("p,x,pl,a,b\n", "two numbers"), ("p,x,ab,1,2\n", "does not say"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), FAULTS)
def test_files_that_make_no_sense(records: eq.Records, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "x.hst").write_text(text)
    with pytest.raises(eq.EquipoiseError, match=said):
        made(records, apriori=tmp_path / "x.hst")


def test_wishes_that_cannot_be(records: eq.Records, tmp_path: Path) -> None:
    table = made(records)
    sensitive = table.table.filter(pl.Series(RULE.flag(table))).select("a", "b").row(0)
    with pytest.raises(eq.ParameterError, match="must be published, but it is sensitive"):
        Suppress(RULE).apply(made(records, publish=f"a={sensitive[0]} & b={sensitive[1]}"), Draws(1))
    with pytest.raises(eq.ParameterError, match="two things"):
        made(records, publish="a=p", suppress="b=x")
    (tmp_path / "x.hst").write_text("Total,Total,pl,1,1\n")
    with pytest.raises(eq.DataError, match="not sensitive"):
        Suppress(RULE).apply(made(records, apriori=tmp_path / "x.hst"), Draws(1))
    few = records.collect().filter(~((pl.col("a") == "s") & (pl.col("b") == "z")))
    with pytest.raises(eq.ParameterError, match="empty cells only"):
        made(eq.Records.of(few, eq.Roles()), suppress="a=s & b=z")
    alone = made(records, publish=["a=p & b=y", "a=p & b=z", "b=Total"], suppress="a=p & b=x")
    with pytest.raises(eq.InfeasibleError, match="No pattern"):
        Suppress(MinCount(1)).apply(alone, Draws(1))


@pytest.mark.skipif(not DATA, reason="EQUIPOISE_DATA is not set: the files of tau-ARGUS were not read.")
def test_the_a_priori_file_of_tau_argus() -> None:
    """Its test 3b: region by product, margins of region published; the same sensitive cells, no more secondary ones."""
    folder = Path(DATA or "") / "tables" / "tauargus"
    frame = pl.read_csv(folder / "enterprise" / "example_enterprise.csv", infer_schema=False)
    frame = frame.with_columns(pl.col("turnover").cast(pl.Float64))
    tree = eq.Hierarchy.hrc(folder / "enterprise" / "KohStatReg.hrc")
    table = eq.table(
        eq.Records.of(frame, eq.Roles()), ["region", "product"], "turnover", holding="h_id",
        hierarchies={"region": tree}, apriori=folder / "expected" / "test_3a.hst",
    )  # fmt: skip
    theirs = pl.read_csv(
        folder / "expected" / "test_3b.txt", has_header=False, infer_schema=False,
        new_columns=["region", "product", "value", "status"],
    )  # fmt: skip
    found = Suppress(PPercent(0.1), singletons=False).apply(table, Draws(1)).table
    both = found.join(theirs, on=["region", "product"], suffix="_theirs")
    assert both.height == theirs.height == 225
    assert both.filter(status_theirs="10")["apriori_status"].unique().to_list() == ["published"]
    assert both.filter(status_theirs="10")["status"].unique().to_list() == ["published"]
    assert (both["status"] == "sensitive").equals(both["status_theirs"] == "3")
    assert (both["status"] == "secondary").sum() <= 8


# --- rounding of published cells ----------------------------------------------------------------------------------


def test_published_cells_are_rounded_beside_suppression(records: eq.Records) -> None:
    """The pattern is the same; sums of which every part is published add up; nothing depends on hidden cells."""
    plain = Suppress(RULE).apply(made(records), Draws(1))
    found = Suppress(RULE, round=10).apply(made(records), Draws(1))
    assert plain.table["published"].is_null().equals(found.table["published"].is_null())
    shown = found.table["published"].drop_nulls()
    assert (shown % 10 == 0).all()
    near = (found.published_values - plain.published_values)[~np.isnan(plain.published_values)]
    assert np.abs(near).max() < 10
    rows = found.table.select("a", "b", "published")
    for a in rows["a"].unique():
        line = rows.filter(a=a)
        if line["published"].null_count() == 0:
            assert line.filter(pl.col("b") != "Total")["published"].sum() == line.filter(b="Total")["published"].item()
    result = eq.tabulate(records, ["a", "b"], "turnover", rule=RULE, method=Suppress(RULE, round=10))
    assert "multiples of 10" in result.public_words
    with pytest.raises(eq.ParameterError, match="round"):
        Suppress(RULE, round=1)


def test_rounding_depends_on_published_values_alone(records: eq.Records) -> None:
    """Hidden cells changed without a change of what is published: the same multiples."""
    table = made(records)
    hidden = np.isnan(Suppress(RULE).apply(table, Draws(1)).published_values)
    moved = table.more.with_columns(value=pl.when(pl.Series(hidden)).then(pl.col("value") + 3).otherwise("value"))
    mask = Suppress(RULE, round=10)
    one, two = (rounded_published(t, hidden, mask) for t in (table, replace(table, more=moved)))
    assert np.array_equal(one, two, equal_nan=True)
    nearest = rounded_published(table, hidden, replace(mask, rounding="nearest"))[~hidden]
    assert np.array_equal(nearest, 10 * np.round(table.numbers("value")[~hidden] / 10))


def test_cells_that_must_be_published_are_not_rounded(records: eq.Records) -> None:
    table = made(records, publish="a=Total")
    found = Round(10, controlled=False).apply(table, Draws(1))
    kept = found.table.filter(a="Total")
    assert kept["published"].equals(kept["value"], check_names=False)
    assert (found.table.filter(pl.col("a") != "Total")["published"] % 10 == 0).all()
    with pytest.raises(eq.DataError, match="controlled=False"):
        Round(10).apply(table, Draws(1))
    with pytest.raises(eq.DataError, match="does not heed"):
        Adjust(RULE).apply(table, Draws(1))
    with pytest.raises(eq.RefusedError):
        eq.tabulate(
            records, ["a", "b"], "turnover", rule=MinCount(50), method=Round(10, controlled=False), publish="b=z"
        )
