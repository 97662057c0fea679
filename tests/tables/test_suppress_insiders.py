"""Suppressed tables against those who contribute: what they could compute before, and whom a certificate covers."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.ground.randomness import Draws
from equipoise.releases.tabulated import certified
from equipoise.rules import MinCount, PPercent
from equipoise.tables import Suppress, audit

DATA = Path(os.environ.get("EQUIPOISE_DATA", "none")) / "tables" / "synthetic" / "t2_20x20"


def table_of(rows: list[tuple[str, float, str]], holding: bool = False, **columns: list[float]) -> Any:
    frame = pl.DataFrame(rows, schema=["k", "turnover", "firm"], orient="row")
    table = eq.table(eq.Records.of(frame, eq.Roles()), "k", "turnover", holding="firm" if holding else None)
    marks = {name: pl.Series(values) for name, values in columns.items()}
    return replace(table, more=table.more.with_columns(**marks))


FIRMS = [("p", 100.0, "a"), ("q", 150.0, "b"), *(("r", 90.0 + i, f"r{i}") for i in range(9)),
         *(("s", 210.0 + i, f"s{i}") for i in range(9))]  # fmt: skip


def row(table: Any, cell: str, against: str, **how: Any) -> dict[str, Any]:
    return audit(table, against=against, **how).filter(pl.col("k") == cell).row(0, named=True)


def test_two_firms_alone_in_two_cells_do_not_compute_each_other() -> None:
    """a has 100 alone, b has 150 alone: against outsiders two suppressed cells do, and each knows the other's."""
    table = table_of(FIRMS)
    before = Suppress(PPercent(0.1), singletons=False).apply(table, Draws(1))
    assert before.table["published"].null_count() == 2
    for cell, value in (("p", 100.0), ("q", 150.0)):
        found = row(before, cell, "lone contributor")
        assert (found["lower"], found["upper"], found["exact"], found["reached"]) == (value, value, True, 0.0)
    after = Suppress(PPercent(0.1)).apply(table, Draws(1))
    assert after.table["published"].null_count() == 3
    assert not audit(after)["exposed"].any()
    assert audit(after, against="lone contributor")["reached"].min() == pytest.approx(1.0)


def test_a_holding_alone_in_two_cells_knows_both() -> None:
    """By its number alone: as three firms nobody knows two of the cells, as a holding it computes the third."""
    rows = [("p", 100.0, "a"), ("q", 150.0, "a"), ("t", 120.0, "b"), *FIRMS[2:]]
    apart = [(cell, x, f"{firm}{i}") for i, (cell, x, firm) in enumerate(rows)]
    before = Suppress(PPercent(0.1), singletons=False).apply(table_of(rows, holding=True), Draws(1))
    assert row(before, "t", "lone contributor")["exact"]
    single = Suppress(PPercent(0.1), singletons=False).apply(table_of(apart), Draws(1))
    assert not row(single, "t", "lone contributor")["exact"]
    after = Suppress(PPercent(0.1)).apply(table_of(rows, holding=True), Draws(1))
    assert not audit(after)["exposed"].any()


def test_a_coalition_of_two() -> None:
    """Three lone firms: any two of them compute the third, unless a fourth cell is suppressed."""
    table = table_of([("t", 120.0, "c"), *FIRMS])
    pattern = Suppress(PPercent(0.1)).apply(table, Draws(1))
    assert not audit(pattern)["exposed"].any()
    assert row(pattern, "t", "coalition", coalition=2)["exact"]
    guarded = Suppress(PPercent(0.1), coalition=2).apply(table, Draws(1))
    assert guarded.table["published"].null_count() > pattern.table["published"].null_count()
    assert set(audit(guarded)["against"]) == {"outsider", "lone contributor", "contributor", "coalition of 2"}
    assert not audit(guarded)["exposed"].any()
    with pytest.raises(eq.ParameterError, match="singletons"):
        Suppress(PPercent(0.1), singletons=False, coalition=2)


def test_a_respondent_of_counts_knows_himself() -> None:
    """Two in p, one in q: who is in p knows that q is 2 at most, where an outsider must allow 3."""
    people = pl.DataFrame({"k": [*"ppq", *"r" * 9]})
    table = eq.table(eq.Records.of(people, eq.Roles()), "k")
    before = Suppress(MinCount(3), singletons=False).apply(table, Draws(1))
    assert row(before, "q", "outsider")["upper"] == 3
    found = row(before, "q", "contributor")
    assert (found["upper"], found["reached"]) == (2.0, pytest.approx(0.5))
    assert row(before, "p", "lone contributor")["exact"], "who is alone in q knows that p is 2"
    assert not audit(Suppress(MinCount(3)).apply(table, Draws(1)))["exposed"].any()


def test_a_withheld_cell_is_protected() -> None:
    """By hand, where no rule calls it sensitive: it was [15, 15], the total less the rest."""
    rows = [
        (cell, x, f"{cell}{i}") for cell, many, x in (("p", 3, 5.0), ("q", 4, 5.0), ("r", 6, 5.0)) for i in range(many)
    ]
    table = table_of(rows, mark=[0.0, 1.0, 0.0, 0.0])
    released = Suppress(PPercent(0.1), withhold="mark").apply(table, Draws(1))
    marked = row(released, "p", "outsider")
    assert marked["status"] == "sensitive"
    assert marked["lower"] <= 15 * 0.8
    assert marked["upper"] >= 15 * 1.2
    assert not audit(released)["exposed"].any()
    shown = released.published_values.copy()
    shown[table.table["k"] == "q"] = 20.0
    bare = replace(released, more=released.more.with_columns(published=pl.Series(shown).fill_nan(None)))
    assert row(bare, "p", "outsider")["exposed"], "alone it follows"


def test_the_audit_knows_the_limits_of_the_pattern() -> None:
    """Each value is known to within a quarter beforehand: the intervals say so, and the levels are kept."""
    values = [sum(x for _, x, _ in FIRMS), 100.0, 150.0, *(sum(x for k, x, _ in FIRMS if k == one) for one in "rs")]
    table = table_of(FIRMS, below=[0.75 * v for v in values], above=[1.25 * v for v in values])
    known = Suppress(PPercent(0.1), limits=("below", "above")).apply(table, Draws(1))
    for cell, value in (("p", 100.0), ("q", 150.0)):
        found = row(known, cell, "outsider")
        assert value * 0.75 <= found["lower"] <= value * 0.9 + 1e-9
        assert value * 1.1 - 1e-9 <= found["upper"] <= value * 1.25
    free = replace(known, history=(replace(known.history[0], detail=Suppress(PPercent(0.1))),))
    assert row(free, "p", "outsider")["lower"] == 0.0


def test_what_somebody_can_compute_is_refused() -> None:
    """Everything but two lone firms must be published: no pattern keeps them from each other."""
    table = table_of(FIRMS, must=[1.0, 0.0, 0.0, 1.0, 1.0])
    method = Suppress(PPercent(0.1), publish="must")
    released = method.apply(table, Draws(1))
    assert "2 of them are guarded to less than their levels" in released.history[-1].words
    with pytest.raises(eq.RefusedError, match="somebody who contributes can compute 2 sensitive cells exactly"):
        certified(table, released, method, method.rule, 1)
    loose = replace(method, singletons=False)
    result = certified(table, loose.apply(table, Draws(1)), loose, method.rule, 1)
    assert any("alone in suppressed cells" in who for who in result.attackers.not_cover)


def test_cells_that_keep_less_are_in_the_headline() -> None:
    """Firm a shares p with one that has nothing: it bounds q from above, and nothing else may be suppressed."""
    rows = [("p", 100.0, "a"), ("p", 0.0, "z"), ("q", 150.0, "b"), ("q", 1.0, "y"), *FIRMS[2:]]
    table = table_of(rows, must=[1.0, 0.0, 0.0, 1.0, 1.0])
    method = Suppress(PPercent(0.1), publish="must")
    result = certified(table, method.apply(table, Draws(1)), method, method.rule, 1)
    assert result.counts["weaker"] == 2
    assert "but for 2 sensitive cells that keep less" in result.words
    assert any(
        "2 of 2 sensitive cells keep less than the level, the least 0% of it" in who
        for who in result.attackers.internal
    )
    assert not any("2" in who for who in result.attackers.public), "how many is not published"
    assert any(who.endswith("some cells to less than their full level") for who in result.attackers.public)


def known_to_lone(table: Any, rule: Any) -> tuple[int, int, int]:
    """Sensitive cells, those a lone contributor computes in the pattern against outsiders, and in the default one."""
    open_pattern, guarded = (Suppress(rule, singletons=one).apply(table, Draws(1)) for one in (False, True))
    exact = [int(audit(one, against="lone contributor")["exact"].sum()) for one in (open_pattern, guarded)]
    assert not audit(guarded)["exposed"].any()
    return int(rule.flag(table).sum()), exact[0], exact[1]


def test_the_demo_survey() -> None:
    firms = eq.demo.business().with_columns(part=pl.col("region").str.slice(0, 3))
    table = eq.table(eq.Records.of(firms, eq.Roles()), ["part", "legal_form", "size_class"], "turnover")
    assert known_to_lone(table, PPercent(0.1)) == (6, 2, 0)


@pytest.mark.skipif(not DATA.is_dir(), reason="EQUIPOISE_DATA names no folder with the held tables")
def test_the_held_table() -> None:
    table = eq.table(eq.Records.of(pl.read_csv(DATA / "micro.csv"), eq.Roles()), ["d1", "d2"], "value")
    assert known_to_lone(table, PPercent(0.1)) == (47, 4, 0)


def test_bad_parameters() -> None:
    table = Suppress(PPercent(0.1)).apply(table_of(FIRMS), Draws(1))
    with pytest.raises(eq.ParameterError, match="against must be 'everybody' or 'outsider'"):
        audit(table, against="neighbour")  # type: ignore[arg-type]
    with pytest.raises(eq.ParameterError, match="coalition must be a whole number"):
        audit(table, coalition=0)
    assert np.isnan(audit(table).filter(pl.col("status") == "secondary")["reached"].to_numpy()).all()
