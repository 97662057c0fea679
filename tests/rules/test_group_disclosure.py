"""Group disclosure in counts: flags by loops over labels, structural zeros, and attacks by programs of their own."""

from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import equipoise as eq
from equipoise.data.tables.table import Table
from equipoise.ground.randomness import Draws
from equipoise.rules import GroupDisclosure, MinCount, Zero
from equipoise.tables import GroupsTold, Round, Suppress

ABOVE = {"0": "a", "1": "a", "2": "b", "3": "b", "4": "b", "a": "Total", "b": "Total"}
TREE = eq.Hierarchy.mapping({"0": "a", "1": "a", "2": "b", "3": "b", "4": "b"})


def made(seed: int, n: int = 40, sizes: tuple[int, ...] = (5, 3), structural: str | tuple[str, ...] = ()) -> Table:
    random = np.random.default_rng(seed)
    columns = {f"d{i}": (size * random.random(n) ** 3).astype(int).astype(str) for i, size in enumerate(sizes)}
    full = {f"d{i}": [str(v % size) for v in range(5)] for i, size in enumerate(sizes)}
    frame = pl.concat([pl.DataFrame(columns), pl.DataFrame(full)])
    records = eq.Records.of(frame, eq.Roles(hierarchies={"d0": TREE}))
    return eq.table(records, list(columns), structural=structural)


def above(column: str, label: str) -> str | None:
    """The label one level up, by hand."""
    if label == "Total":
        return None
    return ABOVE[label] if column == "d0" else "Total"


def families(table: Table, columns: tuple[str, ...]) -> list[tuple[int, list[int]]]:
    """Every margin with its parts, by loops over labels."""
    rows = [tuple(row) for row in table.table.select(table.by).rows()]
    at = {row: i for i, row in enumerate(rows)}
    parts: dict[tuple[int, str], list[int]] = {}
    for row, place in product(rows, range(len(table.by))):
        column = table.by[place]
        up = above(column, row[place])
        if up is not None and (not columns or column in columns):
            parts.setdefault((at[(*row[:place], up, *row[place + 1 :])], column), []).append(at[row])
    return [(margin, cells) for (margin, _), cells in parts.items()]


def by_hand(table: Table, k: int, zeros: bool, columns: tuple[str, ...]) -> set[int]:
    """Cells that are empty, full or all but fewer than k of a margin, whose other cells are possible."""
    n, found = table.n, set()
    marks = table.more["structural"].to_list() if "structural" in table.more.columns else [False] * len(table)
    for margin, cells in families(table, columns):
        cells = [cell for cell in cells if not marks[cell]]
        if n[margin] == 0 or len(cells) < 2:
            continue
        found |= {c for c in cells if n[margin] - n[c] < min(k, n[margin])}
        found |= {c for c in cells if zeros and n[c] == 0}
    return found


@given(st.integers(0, 500), st.integers(1, 3), st.booleans(), st.sampled_from([(), ("d0",), ("d1",)]))
@settings(max_examples=25)
def test_flags_are_those_of_a_loop_over_labels(seed: int, k: int, zeros: bool, columns: tuple[str, ...]) -> None:
    """All that is flagged by hand, and beside it only the largest other cell of a margin that is (nearly) full."""
    table = made(seed, 25)
    flagged = set(np.flatnonzero(GroupDisclosure(k, zeros, columns=columns).flag(table).to_numpy()).tolist())
    wanted = by_hand(table, k, zeros, columns)
    assert wanted <= flagged
    n, beside = table.n, set()
    for margin, cells in families(table, columns):
        for cell in cells:
            if len(cells) > 1 and n[margin] and n[margin] - n[cell] < min(k, n[margin]):
                beside |= {c for c in cells if c != cell and n[c] == max(n[o] for o in cells if o != cell)}
    assert flagged <= wanted | beside


def test_the_group_of_twenty() -> None:
    """Twenty people of a, all p: both the full and the empty cell tell it, and neither follows afterwards."""
    frame = pl.DataFrame({"g": ["a"] * 20 + ["b"] * 12, "s": ["p"] * 20 + ["p"] * 5 + ["q"] * 7})
    table = eq.table(eq.Records.of(frame, eq.Roles()), ["g", "s"])
    rule = GroupDisclosure()
    flagged = table.table.filter(rule.flag(table)).select("g", "s").rows()
    assert flagged == [("a", "p"), ("a", "q"), ("b", "q")]
    assert rule.levels(table).row(4) == (1.0, 0.0)
    assert rule.levels(table).row(5) == (0.0, 1.0)
    released = Suppress(rule).apply(table, Draws(1))
    found = eq.tables.audit(released, against="outsider")
    assert found["lower"].to_list() == [13, 0, 5, 0]
    assert found["upper"].to_list() == [20, 7, 12, 7]
    before = Suppress(MinCount(3)).apply(table, Draws(1))
    assert [GroupsTold().measure(one, table).value for one in (table, before, released)] == [1.0, 1.0, 0.0]
    assert GroupsTold().measure(Round(5).apply(table, Draws(1)), table).value == 0.0


def test_a_share_of_the_margin() -> None:
    """Nine of ten are p: the share 90 % flags what k = 1 does not, and two must be able to be elsewhere."""
    frame = pl.DataFrame({"g": ["a"] * 10 + ["b"] * 9, "s": ["p"] * 9 + ["q"] + ["p"] * 4 + ["q"] * 5})
    table = eq.table(eq.Records.of(frame, eq.Roles()), ["g", "s"])
    assert not GroupDisclosure().flag(table).any()
    rule = GroupDisclosure(share=0.9, columns="s")
    assert table.table.filter(rule.flag(table)).select("g", "s").rows() == [("a", "p"), ("a", "q")]
    assert rule.levels(table).filter(rule.flag(table)).rows() == [(1.0, 0.0), (0.0, 1.0)]
    assert rule.least(np.array([10, 3, 1, 100])).tolist() == [2, 1, 1, 11]


def possible(table: Table, marks: list[bool], cells: list[int]) -> float:
    """The most that cells can hold together given what is published, by a program over inner cells alone."""
    rows = [tuple(row) for row in table.table.select(table.by).rows()]
    inner = [i for i, row in enumerate(rows) if all(v not in ("Total", "a", "b") for v in row)]
    holds = np.zeros((len(rows), len(inner)))
    for i, j in product(range(len(rows)), range(len(inner))):
        holds[i, j] = all(
            up in (low, above(c, low), "Total") for c, up, low in zip(table.by, rows[i], rows[inner[j]], strict=True)
        )
    shown = table.table["published"].is_not_null().to_numpy()
    known = table.table["published"].fill_null(0.0).to_numpy()
    limits = [(0, 0 if marks[cell] else None) for cell in inner]
    answer = linprog(-holds[cells].sum(0), A_eq=holds[shown], b_eq=known[shown], bounds=limits, method="highs")
    assert answer.status in (0, 3)
    return np.inf if answer.status == 3 else -answer.fun


def one_empty(table: Table) -> str:
    """The labels of an empty pair of leaves of the first two columns."""
    empty = table.table.filter(~pl.col("d0").is_in(["Total", "a", "b"]) & (pl.col("d1") != "Total"))
    pair = empty.group_by("d0", "d1", maintain_order=True).agg(pl.col("n").sum()).filter(pl.col("n") == 0)
    return f"d0={pair['d0'][0]} & d1={pair['d1'][0]}"


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("sizes", [(5, 3), (5, 2, 2)])
def test_nothing_about_a_group_follows_from_a_protected_table(seed: int, sizes: tuple[int, ...]) -> None:
    """Every true statement about a margin can be false, by an attacker who shares no code with the pattern."""
    structural = one_empty(made(seed, 18, sizes))
    table = made(seed, 18, sizes, structural)
    marks = table.more["structural"].to_list()
    k = 1 + seed % 3
    rule = GroupDisclosure(k, columns=("d1",)) if seed % 2 else GroupDisclosure(k, columns=("d1",)) | MinCount(3)
    released = Suppress(rule).apply(table, Draws(seed))
    statements, n = 0, table.n
    for margin, cells in families(table, ("d1",)):
        cells = [cell for cell in cells if not marks[cell]]
        least = min(k, int(n[margin]))
        for cell in cells if n[margin] and len(cells) > 1 else []:
            if n[margin] - n[cell] < least:
                statements += 1
                assert possible(released, marks, [other for other in cells if other != cell]) >= least - 1e-6
            if n[cell] == 0:
                statements += 1
                assert possible(released, marks, [cell]) >= 1 - 1e-6
    assert statements
    assert GroupsTold(k, columns=("d1",)).measure(released, table).value == 0.0
    hidden = released.table["published"].is_null().to_numpy()
    assert not (hidden & np.array(marks)).any()
    assert not eq.tables.audit(released, against="outsider")["exposed"].any()


def test_the_attack_agrees_with_one_over_inner_cells() -> None:
    """After a plain threshold rule some statements follow; the measure and a program of its own say which."""
    table = made(3, 30)
    released = Suppress(MinCount(3)).apply(table, Draws(1))
    score = GroupsTold(2, columns=("d1",)).measure(released, table)
    told = 0
    for margin, cells in families(table, ("d1",)):
        for cell in cells if table.n[margin] else []:
            least = min(2, int(table.n[margin]))
            others = [other for other in cells if other != cell]
            if table.n[margin] - table.n[cell] < least:
                told += possible(released, [False] * len(table), others) < least - 1e-6
            if table.n[cell] == 0:
                told += possible(released, [False] * len(table), [cell]) < 1 - 1e-6
    assert score.number == told > 0
    assert (score.detail["risk"] == 1.0).sum() >= told
    assert score.detail["risk"].is_between(0, 1).all()


# --- structural zeros ---------------------------------------------------------------------------------------------


def people() -> eq.Records:
    rows = [("f", "yes", 6), ("f", "no", 9), ("m", "no", 11)]
    frame = pl.DataFrame([(s, p) for s, p, n in rows for _ in range(n)], ["sex", "pregnant"], orient="row")
    return eq.Records.of(frame, eq.Roles())


def test_structural_zeros_are_never_flagged_nor_suppressed() -> None:
    """Men who are pregnant: empty, and the men who are not are all men, but everybody knows."""
    plain = eq.table(people(), ["sex", "pregnant"])
    table = eq.table(people(), ["sex", "pregnant"], structural="sex=m & pregnant=yes")
    for rule in (Zero(empty=True), GroupDisclosure()):
        assert rule.flag(plain).any()
        assert not rule.flag(table).any()
    for rule in (GroupDisclosure() | MinCount(7), Zero(empty=True) | MinCount(7)):
        cells = Suppress(rule).apply(table, Draws(1)).table.filter(sex="m", pregnant="yes")
        assert cells["published"].to_list() == [0.0]


def test_labels_of_a_hierarchy_stand_for_all_below() -> None:
    found = made(1, 0, structural=("d0=2 & d1=0", "d0=a & d1=2"))
    assert found.table.filter("structural").select("d0", "d1").rows() == [
        ("0", "2"),
        ("1", "2"),
        ("2", "0"),
        ("a", "2"),
    ]


@pytest.mark.parametrize(
    ("zeros", "words"),
    [("sex=f & pregnant=yes", "1 cells that are said"), ("sex=x", "no label 'x'"), ("sax=m", "sax"), ("mark", "mark")],
)
def test_structural_zeros_that_are_none(zeros: str, words: str) -> None:
    with pytest.raises(eq.EquipoiseError, match=words):
        eq.table(people(), ["sex", "pregnant"], structural=zeros)


def test_a_column_of_marks_in_a_ready_table() -> None:
    rows = pl.DataFrame({"sex": [*"ffmm"], "ill": [*"pqpq"], "n": [6, 9, 11, 0], "never": ["no", "no", "no", "yes"]})
    records = eq.Records.of(rows, eq.Roles())
    table = eq.table(records, ["sex", "ill"], ready=True, structural="never")
    assert table.table.filter("structural").select("sex", "ill").rows() == [("m", "q")]
    assert not GroupDisclosure().flag(table).any()
    numbers = eq.Records.of(rows.with_columns(never=pl.col("never") == "yes").cast({"never": pl.Int64}), eq.Roles())
    again = eq.table(numbers, ["sex", "ill"], ready=True, structural="never")
    assert again.table["structural"].to_list() == table.table["structural"].to_list()
    assert GroupDisclosure().flag(eq.table(records, ["sex", "ill"], ready=True)).sum() == 3


def test_empty_cells_stay_known_under_other_rules() -> None:
    """A rule that does not look at zeros publishes them, and its pattern counts on nobody doubting them."""
    table = made(2, 30)
    released = Suppress(MinCount(3)).apply(table, Draws(1))
    assert released.table.filter(pl.col("n") == 0)["published"].to_list() == [0.0] * int((table.n == 0).sum())


def test_records_have_no_margins() -> None:
    with pytest.raises(eq.DataError, match="tables with margins"):
        GroupDisclosure().flag(eq.count(people(), "sex"))
    for bad in ({"k": 0}, {"share": 0.0}, {"share": 90}):
        with pytest.raises(eq.ParameterError):
            GroupDisclosure(**bad)
    with pytest.raises(eq.RolesError):
        GroupDisclosure(columns="age").flag(eq.table(people(), ["sex", "pregnant"]))
