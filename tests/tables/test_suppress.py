"""Suppression of tables: an attacker's programs from the raw records, linked tables, and what is refused."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog

import equipoise as eq
from equipoise.ground.randomness import Draws
from equipoise.rules import Dominance, MinCount, PPercent
from equipoise.tables import Suppress, audit, difference

GROUPS = {"a1": "a", "a2": "a", "b1": "b", "b2": "b", "b3": "b"}


def firms(seed: int, n: int = 90) -> eq.Records:
    random = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "region": random.choice(list(GROUPS), n),
            "size": random.choice(["s", "m", "l", "x"], n, p=[0.5, 0.25, 0.15, 0.1]),
            "kind": random.choice(["p", "q", "r"], n),
            "turnover": np.round(np.exp(random.normal(3, 1.2, n))),
            "firm": random.integers(0, 30, n),
        }
    )
    return eq.Records.of(frame, eq.Roles(hierarchies={"region": eq.Hierarchy.mapping(GROUPS)}))


def attacked(table: eq.Cells, records: eq.Records, known: set[int] = frozenset()) -> dict[int, tuple[float, float]]:
    """The interval of every suppressed cell by programs over the inner cells, from the records alone.

    Unknown are the contents of the occupied inner cells; every published cell of the table, margin or not, is a sum.
    """
    frame, by = records.collect(), table.by
    inner = frame.group_by(by).agg(pl.col("turnover").sum()).sort(by)
    rows, told = [], table.table
    for row in told.iter_rows(named=True):
        inside = np.ones(inner.height)
        for column in by:
            label = row[column]
            groups = {v: GROUPS.get(v) for v in inner[column].unique()}
            inside *= np.array([label in (v, groups[v], "Total") for v in inner[column]], dtype=float)
        rows.append(inside)
    matrix, published = np.array(rows), told["published"].to_list()
    fixed = [i for i, value in enumerate(published) if value is not None or i in known]
    truth = matrix @ inner["turnover"].to_numpy()
    found = {}
    for i in (i for i, value in enumerate(published) if value is None):
        ends = [
            linprog(sign * matrix[i], A_eq=matrix[fixed], b_eq=truth[fixed], bounds=(0, None), method="highs")
            for sign in (1.0, -1.0)
        ]
        found[i] = tuple(e.x @ matrix[i] if e.status == 0 else np.inf for e in ends)
    return found


@pytest.mark.evidence(every=3)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("by", [("region", "size"), ("size", "kind"), ("region", "size", "kind")])
def test_no_sensitive_cell_is_known_within_its_level(seed: int, by: tuple[str, ...]) -> None:
    records, rule = firms(seed, 200 if len(by) == 3 else 90), PPercent(0.15)
    made = eq.table(records, by, "turnover")
    found = Suppress(rule).apply(made, Draws(1))
    levels, value = rule.levels(made), made.numbers("value")
    intervals = attacked(found, records)
    flagged = np.flatnonzero(rule.flag(made).to_numpy())
    for i in flagged:
        low, high = intervals[int(i)]
        assert low <= value[i] - levels["lower"][int(i)] + 1e-6
        assert high >= value[i] + levels["upper"][int(i)] - 1e-6
    assert not audit(found)["exposed"].any()
    told = audit(found, against="outsider")
    ours = dict(
        zip(found.table.with_row_index().filter(pl.col("published").is_null())["index"], told.rows(), strict=True)
    )
    place = [told.columns.index(c) for c in ("lower", "upper")]
    for i, (low, high) in intervals.items():
        assert [ours[i][p] for p in place] == pytest.approx([low, high], abs=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_a_lone_contributor_who_knows_his_cell_learns_no_other(seed: int) -> None:
    records, rule = firms(seed), PPercent(0.1)
    made = eq.table(records, ("region", "size"), "turnover")
    found = Suppress(rule, singletons=True).apply(made, Draws(1))
    levels, value = rule.levels(made), made.numbers("value")
    alone = np.flatnonzero((made.numbers("contributors") == 1) & np.isnan(found.published_values))
    sensitive = rule.flag(made).to_numpy()
    for knower in alone[:6]:
        same = {int(i) for i in alone if value[i] == value[knower]}
        intervals = attacked(found, records, known=same)
        for i in np.flatnonzero(sensitive):
            if int(i) not in same:
                assert intervals[int(i)][1] >= value[i] + levels["upper"][int(i)] - 1e-6


def test_linked_tables_are_protected_together() -> None:
    """Each alone may be safe; what one publishes of the shared margin must not undo the other."""
    records, rule = firms(2), PPercent(0.15)
    one, two = (eq.table(records, by, "turnover") for by in (("region", "size"), ("region", "kind")))
    both = Suppress(rule).together([one, two])
    shared = [
        t.table.filter(pl.col(c) == "Total").select("region", "published")
        for t, c in zip(both, ("size", "kind"), strict=True)
    ]
    assert shared[0].sort("region").equals(shared[1].sort("region"))
    assert not difference(both[0], both[1])["exposed"].any()
    apart = [Suppress(rule).apply(t, Draws(1)) for t in (one, two)]
    assert set(difference(apart[0], apart[1])["table"]) == {0, 1}


def test_two_releases_give_away_what_neither_says() -> None:
    """The same table suppressed in two ways: every cell is published in one of them."""
    people = pl.DataFrame({"k": ["a"] * 9 + ["b"] * 4 + ["c"] * 1 + ["d"] * 4})
    made = eq.table(eq.Records.of(people, eq.Roles("k")), "k")
    labels = made.table["k"]
    mark = lambda names: made.more.with_columns(pl.Series("must", [float(k in (*names, "Total")) for k in labels]))

    one, two = (
        Suppress(MinCount(2), cost="must").apply(replace(made, more=mark(names)), Draws(1)) for names in ("bd", "ad")
    )
    assert one.table["published"].null_count() == two.table["published"].null_count() == 2
    told = difference(one, two)
    assert told.filter(pl.col("status") == "sensitive")["exposed"].all()
    assert not audit(one)["exposed"].any()


def test_counts_are_audited_in_whole_numbers() -> None:
    people = pl.DataFrame({"k": ["a"] * 9 + ["b"] * 4 + ["c"]})
    made = Suppress(MinCount(3)).apply(eq.table(eq.Records.of(people, eq.Roles("k")), "k"), Draws(1))
    assert audit(made, against="outsider").select("lower", "upper").rows() == [(0.0, 5.0), (0.0, 5.0)]
    assert audit(made, whole=False, against="outsider").select("lower", "upper").rows() == [(0.0, 5.0), (0.0, 5.0)]


def test_costs_and_cells_that_must_be_shown() -> None:
    records = firms(3)
    made = eq.table(records, ("region", "size"), "turnover")
    values = {cost: Suppress(PPercent(0.15), cost=cost).apply(made, Draws(1)) for cost in ("value", "count", "cells")}
    secondary = {cost: t.table.filter(pl.col("status") == "secondary") for cost, t in values.items()}
    assert secondary["cells"].height <= secondary["value"].height
    assert secondary["value"]["value"].sum() <= secondary["cells"]["value"].sum()
    kept = secondary["value"].row(0, named=True)
    must = (made.table["region"] == kept["region"]) & (made.table["size"] == kept["size"])
    shown = replace(made, more=made.more.with_columns(must.cast(pl.Float64).alias("must")))
    again = Suppress(PPercent(0.15), publish="must").apply(shown, Draws(1)).table
    assert again.filter(must)["published"].null_count() == 0


def test_what_cannot_be_protected_is_named() -> None:
    people = pl.DataFrame({"k": ["a"] * 9 + ["c"]})
    made = eq.table(eq.Records.of(people, eq.Roles("k")), "k")
    must = pl.Series("must", [1.0 if k == "a" else 0.0 for k in made.table["k"]])
    shown = replace(made, more=made.more.with_columns(must, pl.lit(1.0).alias("all")))
    with pytest.raises(eq.InfeasibleError, match="the cell k = "):
        Suppress(MinCount(3), publish="all").apply(shown, Draws(1))
    with pytest.raises(eq.ParameterError, match="rule"):
        Suppress("p-percent")
    with pytest.raises(eq.DataError, match="tables with margins"):
        Suppress(MinCount(3)).apply(eq.count(eq.Records.of(people, eq.Roles("k"))), Draws(1))
    other = replace(eq.table(eq.Records.of(people.head(8), eq.Roles("k")), "k"), behind=None)
    with pytest.raises(eq.DataError, match="same records"):
        Suppress(MinCount(3)).together([made, other])
    with pytest.raises(eq.DataError, match="top=3"):
        Suppress(Dominance(3, 0.8)).apply(eq.table(eq.Records.of(people, eq.Roles("k")), "k"), Draws(1))
