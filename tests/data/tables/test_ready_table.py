"""Ready tables against the tables that microdata gives, and everything that is wrong with them, by name."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import equipoise as eq
from equipoise.data.tables.ready_table import Ready

GROUPS = {"a1": ("a", "x"), "a2": ("a", "x"), "b1": ("b", "x"), "c1": ("c", "y"), "c2": ("c", "y")}
TREE = eq.Hierarchy.mapping(GROUPS)
TWICE = eq.Hierarchy.mapping({k: v[0] for k, v in GROUPS.items()}) | eq.Hierarchy.mapping(
    {"a1": "east", "a2": "west", "b1": "east", "c1": "west", "c2": "west"}, names=("side",)
)
BY = ["region", "size", "year"]


def made(seed: int, tree: eq.Hierarchy, n: int = 80) -> Any:
    """A table from microdata in three dimensions."""
    random = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "region": random.choice(list(GROUPS), n),
            "size": random.choice(["s", "m", "l"], n, p=[0.7, 0.2, 0.1]),
            "year": random.choice([2024, 2025], n),
            "turnover": random.integers(0, 5_000, n) / 100,
        }
    )
    return eq.table(eq.Records.of(frame, eq.Roles(hierarchies={"region": tree})), BY, "turnover")


def again(cells: pl.DataFrame, value: str | None = "value", **given: Any) -> Any:
    """The table read from its own rows."""
    ready = given.pop("ready", True)
    return eq.table(eq.Records.of(cells, eq.Roles()), given.pop("by", BY), value, ready=ready, **given)


def same(one: Any, two: Any) -> None:
    columns = [*one.by, "n", "value", "contributors", "top1", "top2", "top3"]
    assert_frame_equal(one.table.select(columns), two.table.select(columns), abs_tol=1e-9)


def keep(name: str, cells: pl.DataFrame, random: np.random.Generator) -> pl.DataFrame:
    """Some of the rows of a table that tell it all."""
    region, size = pl.col("region"), pl.col("size")
    rows = {
        "all": pl.lit(value=True),
        "occupied": pl.col("n") > 0,
        "inner": region.is_in(list(GROUPS)) & (size != "Total") & (pl.col("year") != "Total"),
        "no total of a column": size != "Total",
        "no level": ~region.is_in(["a", "b", "c"]),
        "no group": region != "a",
        "no root": region != "Total",
    }[name]
    return cells.filter(rows).sample(fraction=1, shuffle=True, seed=int(random.integers(1 << 30)))


KEPT = ["all", "occupied", "inner", "no total of a column", "no level", "no group", "no root"]


@pytest.mark.parametrize("tree", [TREE, TWICE], ids=["one branch", "two branches"])
@pytest.mark.parametrize("kept", KEPT)
def test_the_same_as_from_microdata(kept: str, tree: eq.Hierarchy) -> None:
    """What the file leaves out is 0 or added up: sums, counts and the largest contributions."""
    for seed in range(3):
        table = made(seed, tree)
        cells = keep(kept, table.table, np.random.default_rng(seed))
        found = again(cells, hierarchies={"region": tree})
        same(table, found)
        assert [axis.nodes[axis.total] for axis in found.axes] == ["Total"] * 3


@pytest.mark.evidence(every=2)
@pytest.mark.parametrize("kept", ["occupied", "inner"])
def test_rules_and_patterns_are_the_same(kept: str) -> None:
    """The p% rule, its levels and the pattern do not depend on where the table comes from."""
    table = made(7, TREE)
    found = again(keep(kept, table.table, np.random.default_rng(1)), hierarchies={"region": TREE})
    rule = eq.rules.PPercent(0.1)
    assert rule.flag(found).equals(rule.flag(table))
    assert_frame_equal(rule.levels(found), rule.levels(table), abs_tol=1e-9)
    one, two = (eq.tables.Suppress(rule).apply(t, eq.ground.randomness.Draws(1)) for t in (table, found))
    assert one.table["status"].equals(two.table["status"])


def test_a_table_that_stops_at_groups() -> None:
    """Groups whose parts the file does not have are its leaves."""
    rows = pl.DataFrame({"region": ["a1", "a2", "a", "y", "Total"], "n": [2, 3, 5, 4, 9]})
    found = again(rows, None, by="region", hierarchies={"region": TREE})
    assert dict(found.table.select("region", "n").rows()) == {"a1": 2, "a2": 3, "a": 5, "x": 5, "y": 4, "Total": 9}
    assert found.axes[0].leaves == 3


def test_codes_by_their_digits() -> None:
    rows = pl.DataFrame({"nace": ["101", "102", "10", "1", "2", "All"], "n": [2, 3, 5, 5, 4, 9]})
    found = again(rows, None, by="nace", hierarchies={"nace": eq.Hierarchy.prefix(2, 1)})
    assert dict(found.table.select("nace", "n").rows()) == {"101": 2, "102": 3, "10": 5, "1": 5, "2": 4, "All": 9}


def test_a_column_with_nothing_but_its_total() -> None:
    rows = small().with_columns(year=pl.lit("Total"))
    found = again(rows, "x", by=["r", "c", "year"], ready=SAID)
    assert len(found) == 9
    assert [len(axis) for axis in found.axes] == [3, 3, 1]
    again(rows, None, by=["r", "c", "year"], ready=Ready(n="obs", total="T"), hierarchies={"year": TREE})


def test_four_dimensions_and_more() -> None:
    random = np.random.default_rng(3)
    frame = pl.DataFrame({f"d{i}": random.choice(["p", "q", "r"], 200) for i in range(5)})
    table = eq.table(eq.Records.of(frame, eq.Roles()), frame.columns)
    inner = table.table.filter(pl.all_horizontal(pl.col(frame.columns) != "Total"))
    found = again(inner, None, by=frame.columns)
    assert_frame_equal(found.table.select(*frame.columns, "n"), table.table.select(*frame.columns, "n"))


# --- what the columns are -------------------------------------------------------------------------------------------


def small(**columns: Any) -> pl.DataFrame:
    """Two columns, all margins: rows a, b; columns p, q."""
    base = {
        "r": ["a", "a", "a", "b", "b", "b", "T", "T", "T"],
        "c": ["p", "q", "T", "p", "q", "T", "p", "q", "T"],
        "x": [10.0, 20.0, 30.0, 5.0, 1.0, 6.0, 15.0, 21.0, 36.0],
        "obs": [4, 5, 9, 3, 1, 4, 7, 6, 13],
        "big": [6.0, 8.0, 8.0, 3.0, 1.0, 3.0, 6.0, 8.0, 8.0],
    }
    return pl.DataFrame({**base, **columns})


SAID = Ready(n="obs", top=("big",), total="T")


def read_small(cells: pl.DataFrame, ready: Any = SAID, value: str | None = "x", **given: Any) -> Any:
    return again(cells, value, by=["r", "c"], ready=ready, **given)


def test_columns_by_name_and_what_is_kept() -> None:
    secret = [False, False, False, False, True, False, False, False, False]
    cells = small(secret=secret, weight=[*range(9)], low=[0.5] * 9, note=["text"] * 9, price=[2.0] * 9)
    found = read_small(cells, Ready(n="obs", top=("big",), sensitive="secret", total="T", cost="price"))
    assert found.table.columns == [
        "r", "c", "n", "total", "value", "contributors", "top1", "cost", "sensitive", "weight", "low", "note",
    ]  # fmt: skip
    assert found.measured == "x"
    assert found.numbers("contributors").tolist() == found.n.tolist()
    assert found.table.filter("sensitive").select("r", "c").rows() == [("b", "q")]
    shown = eq.tables.Suppress(eq.rules.Marked(), cost="cost").apply(found, eq.ground.randomness.Draws(1))
    assert shown.table.filter(pl.col("status") == "sensitive").select("r", "c").rows() == [("b", "q")]
    assert not eq.tables.audit(shown).select("exact", "exposed").to_numpy().any()


def test_other_numbers_are_added_up_where_margins_are() -> None:
    cells = small(weight=[1.0] * 9, secret=[True] * 9).filter(pl.col("r") != "T", pl.col("c") != "T")
    found = read_small(cells, Ready(n="obs", top=("big",)))
    top = found.table.filter(pl.col("r") == "Total", pl.col("c") == "Total").row(0, named=True)
    assert (top["weight"], top["value"], top["n"], top["top1"], top["secret"]) == (4.0, 36.0, 13, 8.0, False)


def test_counts() -> None:
    found = read_small(small(), Ready(n="obs", top=(), total="T"), None)
    assert found.measured is None
    assert found.numbers("value").tolist() == found.n.tolist()
    with pytest.raises(eq.ParameterError, match="needs the column with the counts"):
        read_small(small(), Ready(total="T"), None)


def test_without_counts() -> None:
    """It is not known how many contribute: what needs that says so, the rest works."""
    partly = read_small(small(n=[None, *range(8)]).drop("obs"), Ready(top=("big",), total="T"))
    assert partly.table["contributors"].null_count() == 9
    with pytest.raises(eq.DataError, match="has no finite number in column 'n'"):
        read_small(small(n=[None, *range(8)]).drop("obs"), Ready(n="n", total="T"))
    found = read_small(small().drop("obs"), Ready(top=("big",), total="T"))
    assert found.table["contributors"].null_count() == 9
    for rule in (eq.rules.MinCount(3), eq.rules.Zero()):
        with pytest.raises(eq.DataError, match="does not say how many contribute"):
            rule.flag(found)
    assert eq.rules.Dominance(1, 0.5).flag(found).sum() == 4
    eq.tables.Suppress(eq.rules.Dominance(1, 0.5)).apply(found, eq.ground.randomness.Draws(1))
    with pytest.raises(eq.DataError, match=r"2 largest contributions .*Ready\(top"):
        eq.rules.PPercent(0.1).flag(found)


def test_statuses_of_a_protected_table() -> None:
    codes = pl.Series([11, 11, 1, 11, 3, 1, 1, 1, 1])
    found = read_small(small(code=codes), Ready(n="obs", status="code", total="T"))
    counts = found.table["status"].value_counts(sort=True)
    assert counts.rows() == [("published", 5), ("secondary", 3), ("sensitive", 1)]
    audited = eq.tables.audit(found)
    assert audited.filter(pl.col("status") == "sensitive").select("lower", "upper").rows() == [(0.0, 6.0)]
    open_still = read_small(small(code=codes.replace(11, 1)), Ready(n="obs", status="code", total="T"))
    assert "published" not in open_still.table.columns
    assert open_still.table["sensitive"].sum() == 1


def test_rounding_is_put_right_and_more_is_not() -> None:
    """Values with two decimals: each may be off by half the last one."""
    cells = small(x=[10.01, 20.0, 30.02, 5.0, 1.0, 6.0, 15.01, 21.0, 36.02])
    found = read_small(cells)
    assert found.table.filter(pl.col("r") == "T", pl.col("c") == "T")["value"][0] == pytest.approx(36.01, abs=1e-12)
    worse = small(x=[10.01, 20.0, 30.04, 5.0, 1.0, 6.0, 15.01, 21.0, 36.04])
    with pytest.raises(eq.DataError, match=r"r = a, c = T \(and 1 more\) is not the sum of its parts along 'c'"):
        read_small(worse)
    assert read_small(worse, Ready(n="obs", total="T", tolerance=0.05)).numbers("value").max() == pytest.approx(36.01)


def test_whole_numbers_are_not_rounded() -> None:
    with pytest.raises(eq.DataError, match="is not the sum of its parts"):
        read_small(small(x=[10.0, 20.0, 31.0, 5.0, 1.0, 6.0, 15.0, 21.0, 36.0]))


# --- which code is the total ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["Total", "TOTAL", "Ensemble", "Insgesamt", "ogółem", "_T", "Total_EAST", "合計"])
def test_words_for_total(word: str) -> None:
    cells = small().with_columns(pl.col("r", "c").replace("T", word))
    found = read_small(cells, Ready(n="obs", top=("big",)))
    assert [axis.nodes[axis.total] for axis in found.axes] == [word, word]
    assert len(found) == 9


def test_a_total_without_a_word_is_found_by_adding_up() -> None:
    large = small().with_columns(pl.col("x", "big") * 1_000)
    found = read_small(large, Ready(n="obs", top=("big",)))
    assert [axis.nodes[axis.total] for axis in found.axes] == ["T", "T"]
    assert len(found) == 9
    with pytest.raises(eq.DataError, match="'r' has a code, 'T', that is the sum of the others"):
        read_small(small(), Ready(n="obs", top=("big",)))


def test_one_sum_may_be_chance() -> None:
    cells = pl.DataFrame({"sex": ["f", "m", "x"], "n": [7, 5, 2]})
    with pytest.raises(eq.DataError, match="Column 'sex' has a code, 'f', that is the sum of the others"):
        again(cells, None, by="sex")
    assert len(again(cells, None, by="sex", ready=Ready(total={"sex": "f"}))) == 3
    assert again(cells, None, by="sex", ready=Ready(total={"sex": None})).records == 14


def test_nearly_a_total_is_asked_about() -> None:
    cells = pl.DataFrame({"k": ["a", "b", "c", "W"], "n": [1000, 2000, 500, 3504]})
    with pytest.raises(eq.DataError, match=r"'W', that is nearly the sum of the others: say its total"):
        again(cells, None, by="k")
    with pytest.raises(eq.DataError, match="k = W is not the sum of its parts along 'k'"):
        again(cells, None, by="k", ready=Ready(total="W"))


def test_a_code_with_its_only_value() -> None:
    cells = pl.DataFrame({"k": ["a", "W", "a", "W"], "c": ["p", "p", "q", "q"], "n": [5, 5, 3, 3]})
    with pytest.raises(eq.DataError, match="'k' has a code"):
        again(cells, None, by=["k", "c"])


def test_two_words_are_asked_about() -> None:
    cells = pl.DataFrame({"k": ["a", "All", "Total"], "n": [5, 5, 5]})
    with pytest.raises(eq.DataError, match="several codes that may be its total"):
        again(cells, None, by="k")


def test_the_root_of_a_hierarchy() -> None:
    tree = eq.Hierarchy.mapping({"p": ("P", "world"), "q": ("P", "world"), "r": ("R", "world")})
    cells = pl.DataFrame({"k": ["p", "q", "r", "P", "R", "world"], "n": [1, 2, 3, 3, 3, 6]})
    found = again(cells, None, by="k", hierarchies={"k": tree})
    assert found.axes[0].nodes[found.axes[0].total] == "world"
    assert len(found) == 6


@pytest.mark.parametrize("seed", range(12))
def test_never_silently_another_table(seed: int) -> None:
    """Totals under any name, cells changed or taken out: the table is the same, or it is refused."""
    random = np.random.default_rng(seed)
    table = made(seed, TREE, int(random.integers(5, 60)))
    cells = table.table.filter(pl.col("n") > 0)
    names = {column: str(random.choice(["Total", "zz", "k9", "WORLD"])) for column in BY}
    renamed = cells.with_columns(pl.col(column).replace("Total", name) for column, name in names.items())
    asked = ""
    try:
        table_again = again(renamed, hierarchies={"region": TREE}).numbers("value")
    except eq.DataError as error:
        asked, table_again = str(error), table.numbers("value")
    assert not asked or "say its total" in asked
    assert sorted(table_again) == pytest.approx(sorted(table.numbers("value")))
    place = int(random.integers(cells.height))
    more = cells.with_columns(value=pl.col("value") + pl.int_range(pl.len()).eq(place) * 5.0)
    less = cells.filter(pl.int_range(pl.len()) != place)
    for wrong in (more, less):
        with pytest.raises(eq.DataError, match=r"is not the sum|not in the table|do not sum"):
            again(wrong, hierarchies={"region": TREE}, ready=Ready(total="Total", top=()))


# --- what is wrong, and where ---------------------------------------------------------------------------------------

WRONG: list[tuple[dict[str, Any], Any, str]] = [
    ({"x": [10.0, 20.0, 31.0, 5.0, 1.0, 6.0, 15.0, 21.0, 37.0]}, SAID, "r = a, c = T .*is not the sum .* along 'c'"),
    ({"obs": [-1, *[1] * 8]}, SAID, "r = a, c = p has a negative number in column 'obs'"),
    ({"x": [None, *[1.0] * 8]}, SAID, "r = a, c = p has no finite number in column 'x'"),
    ({"x": [float("nan"), *[1.0] * 8]}, SAID, "r = a, c = p has no finite number in column 'x'"),
    ({"x": ["word"] * 9}, SAID, "Column 'x' is String, not a number"),
    ({"big": [60.0] + [0.0] * 8}, SAID, "r = a, c = p has contributions that sum to more than its value"),
    ({"obs": [4, 5, 9, 3, 1, 4, 7, 6, 13], "big": [6.0, 8.0, 8.0, 3.0, 0.5, 3.0, 6.0, 8.0, 8.0]}, SAID,
     "r = b, c = q has contributions that do not sum to its value, though all"),
    ({"obs": [0, 5, 9, 3, 1, 4, 7, 6, 13]}, SAID, "r = a, c = p has a value but no contributors"),
    ({"obs": [1.5, *range(8)]}, SAID, "r = a, c = p has no whole number in column 'obs'"),
    ({"c": ["p", "p", "T", "p", "q", "T", "p", "q", "T"]}, SAID, "r = a, c = p stands in several rows"),
    ({"r": [None, "a", "a", "b", "b", "b", "T", "T", "T"]}, SAID, "1 rows of the table have no label in column 'r'"),
    ({}, Ready(n="observed"), "No column 'observed' in the data"),
    ({}, Ready(total={"r": "Sum"}), "Column 'r' has no code 'Sum'"),
    ({}, Ready(total={"row": "T"}), "No column 'row'"),
    ({}, Ready(n="obs", total="Sum"), "No column of the table has the code 'Sum'"),
    ({"mark": [7] * 9}, Ready(n="obs", sensitive="mark", total="T"), "9 cells have something else in column 'mark'"),
    ({"two": [60.0] * 9}, Ready(n="obs", top=("big", "two"), total="T"), "has a larger top2 than top1"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "ready", "words"), WRONG, ids=[words[:50] for _, _, words in WRONG])
def test_what_is_wrong_is_named(change: dict[str, Any], ready: Any, words: str) -> None:
    with pytest.raises(eq.EquipoiseError, match=words):
        read_small(small(**change), ready)


def test_a_margin_that_is_not_there() -> None:
    with pytest.raises(eq.DataError, match="r = T, c = p is not in the table, though its parts along 'r' are"):
        read_small(small().filter(~((pl.col("r") == "T") & (pl.col("c") == "p"))))


def test_a_code_that_the_hierarchy_lacks() -> None:
    cells = pl.DataFrame({"region": ["a1", "zz", "Total"], "n": [5, 3, 8]})
    with pytest.raises(eq.DataError, match="hierarchy of 'region' lacks the code 'zz'"):
        again(cells, None, by="region", hierarchies={"region": TREE})
    other = eq.Hierarchy.mapping({"a1": "a"}, other="rest")
    found = again(cells, None, by="region", hierarchies={"region": other})
    assert {"rest", "a"} <= set(found.table["region"])


def test_groups_from_another_column_of_the_file() -> None:
    """A hierarchy that was made from the rows lists groups and the total as values too."""
    rows = pl.DataFrame(
        {"town": ["n1", "n2", "s1", "North", "Total"], "land": ["North", "North", "South", "North", "x"]}
    )
    counts = rows.with_columns(n=pl.Series([2, 3, 4, 5, 9]))
    tree = eq.Hierarchy.mapping(dict(rows.iter_rows()))
    found = again(counts, None, by="town", hierarchies={"town": tree})
    told = {"n1": 2, "n2": 3, "s1": 4, "North": 5, "South": 4, "Total": 9}
    assert dict(found.table.select("town", "n").rows()) == told


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        (eq.Hierarchy.intervals(5), "must list the codes of a ready table"),
        (eq.Hierarchy.mapping({"a": "x", "b": "a"}), "one name to a value and to a group"),
    ],
)
def test_hierarchies_that_do_not_fit(tree: eq.Hierarchy, words: str) -> None:
    with pytest.raises(eq.ParameterError, match=words):
        again(pl.DataFrame({"k": ["a", "b"], "n": [1, 2]}), None, by="k", hierarchies={"k": tree})


@pytest.mark.parametrize("given", [{"tolerance": -1}, {"tolerance": float("nan")}, {"lower": "low"}])
def test_parameters(given: dict[str, Any]) -> None:
    with pytest.raises(eq.ParameterError):
        Ready(**given)


@pytest.mark.parametrize("given", ["holding", "weight", "request", "key"])
def test_what_is_about_records_is_refused(given: str) -> None:
    with pytest.raises(eq.ParameterError, match=f"{given} is about records"):
        read_small(small(), **{given: "obs"})
    with pytest.raises(eq.ParameterError, match="by names no column"):
        again(small(), "x", by=())
    with pytest.raises(eq.ParameterError, match="says something else under 'n'"):
        again(small().rename({"r": "n"}), "x", by=["n", "c"], ready=SAID)
