"""Cell keys: the laws of R's ptable, the lookup of cellKey written again with loops, and consistency between tables."""

import itertools
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog

import equipoise as eq
from equipoise.data.records import Law
from equipoise.data.tables.keyed_cells import count_view
from equipoise.ground.randomness import Draws
from equipoise.tables import CellKey, Rebuild, record_keys
from equipoise.tables._perturbation_table import generate, read
from equipoise.tables.audits import certify, certify_counts
from equipoise.tables.audits.changed_tables import narrowed, narrowed_counts

DATA = os.environ.get("EQUIPOISE_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="EQUIPOISE_DATA is not set: real cell key files were not read.")
# Rows i = 1 and 4 of ptable_D5_V2_js0 and row 4 of ptable_D8_V3_js2, written by R's ptable 1.0.0.
ROW_1 = [0.38893783, 0.38893782, 0.12209348, 0.05639414, 0.02604807, 0.01203143, 0.00555723]
ROW_4 = [
    0.0053448, 0.03029327, 0.10454973, 0.2197158, 0.28116508, 0.21909036, 0.10395536, 0.03003531, 0.0052842, 0.00056609
]  # fmt: skip
ROW_4_ABOVE_2 = [
    0.08411495, 0.27911498, 0.27911497, 0.18923173, 0.10425768, 0.04461201, 0.01482603, 0.00382667, 0.00076711,
    0.00011944, 0.00001443,
]  # fmt: skip


def place(*parts: str) -> Path:
    return Path(DATA or "") / "tables" / Path(*parts)


def people(n: int, seed: int) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "person": np.arange(n),
            "sex": random.choice(["f", "m"], n),
            "age": random.choice(list("abcdef"), n),
            "area": random.choice(["x", "y", "z"], n),
            "w": random.choice([1.0, 2.5], n),
        }
    )


def keyed(frame: pl.DataFrame, seed: int = 5) -> eq.Records:
    return record_keys(eq.Records.of(frame, eq.Roles(id="person")), seed)


# --- the law ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "i", "wanted"), [((5, 2.0, 0), 1, ROW_1), ((5, 2.0, 0), 4, ROW_4), ((8, 3.0, 2), 4, ROW_4_ABOVE_2)]
)
def test_rows_of_ptable(given: tuple, i: int, wanted: list[float]) -> None:
    found = generate(*given).table.filter(i=i)["p"].to_numpy()
    assert found == pytest.approx(np.array(wanted), abs=3e-7)


@needs_data
@pytest.mark.parametrize(("name", "given"), [("ptable_D5_V2_js0", (5, 2.0, 0)), ("ptable_D8_V3_js2", (8, 3.0, 2))])
def test_whole_tables_of_ptable(name: str, given: tuple) -> None:
    """All rows; R's optimiser stops at 1e-7."""
    theirs, ours = read(str(place("cellkey", f"{name}.csv"))), generate(*given)
    assert np.array_equal(theirs.i, ours.i)
    assert np.array_equal(theirs.v, ours.v)
    assert np.abs(theirs.upper - ours.upper).max() < 3e-7
    assert not theirs.biased


@needs_data
@pytest.mark.parametrize("name", ["20160511_szenario_5a", "ptab_freq", "tau_testW_ptable"])
def test_files_of_tau_argus_are_read(name: str) -> None:
    found = read(str(place("tauargus", "cellkey", f"{name}.txt")))
    assert found.p.min() >= 0
    assert np.allclose(np.bincount(found.i, weights=found.p), 1)


@pytest.mark.parametrize(
    ("most", "variance", "above"), [(2, 1.0, 0), (3, 1.5, 1), (5, 2.0, 0), (7, 3.0, 2), (4, 0.5, 0)]
)
def test_the_law_keeps_its_limits(most: int, variance: float, above: int) -> None:
    """Mean 0, variance not above the limit, nothing below 0 or from 1 to `above`, and more entropy than neighbours."""
    law = generate(most, variance, above)
    assert not law.biased
    assert (law.variance(np.arange(law.largest + 1)) <= variance + 1e-9).all()
    j = law.i + law.v
    assert ((j == 0) | (j > above)).all()
    assert np.abs(law.v).max() <= most
    assert np.allclose(np.bincount(law.i, weights=law.p), 1)


def test_no_law_of_mean_zero() -> None:
    with pytest.raises(eq.InfeasibleError, match="variance"):
        generate(8, 0.5, 4)


def test_no_other_law_has_more_entropy() -> None:
    """Row i = 3 of (4, 1.5): the optimum of a solver for smooth programs."""
    from scipy.optimize import minimize

    row = generate(4, 1.5).table.filter(i=3)
    v, p = row["v"].to_numpy(), row["p"].to_numpy()
    limits = [
        {"type": "eq", "fun": lambda q: q.sum() - 1},
        {"type": "eq", "fun": lambda q: q @ v},
        {"type": "ineq", "fun": lambda q: 1.5 - q @ v**2},
    ]
    start = np.full(len(v), 1 / len(v))
    other = minimize(lambda q: q @ np.log(q), start, bounds=[(1e-9, 1)] * len(v), constraints=limits, tol=1e-12)
    assert p @ np.log(p) == pytest.approx(other.fun, abs=1e-6)
    assert p == pytest.approx(other.x, abs=1e-4)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n", "columns"),
        ("i,v,p_int_ub\n0,0,1\n2,0,1\n", "gap"),
        ("i,v,p_int_ub\n0,0,1\n1,0,0.5\n", "end at 1"),
        ("i,v,p_int_ub\n0,0,1\n1,x,1\n", "numbers"),
        ("i,v,p_int_ub,type\n0,0,1,even\n1,0,1,odd\n", "types"),
    ],
)
def test_files_that_are_no_ptable(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "p.csv"
    path.write_text(text)
    with pytest.raises(eq.DataError, match=said):
        read(str(path))
    with pytest.raises(eq.DataError, match="cannot be read"):
        read(str(tmp_path / "none.csv"))


# --- the method ---------------------------------------------------------------------------------------------------


def looked_up(law: pl.DataFrame, count: int, key: float) -> float:
    """cellKey's lookup: the row of the count or the last one, the first upper end that is not below the key."""
    if count == 0:
        return 0.0
    rows = law.filter(pl.col("i") == min(count, law["i"].max())).sort("p_int_ub").to_dicts()
    return next(row["v"] for row in rows if key <= row["p_int_ub"])


@needs_data
@pytest.mark.parametrize("name", ["ptable_D5_V2_js0", "ptable_D8_V3_js2"])
def test_the_test_data_of_cellkey(name: str) -> None:
    """Sex by age of ck_micro, every cell by loops over records with decimal keys added up exactly."""
    frame = pl.read_csv(place("cellkey", "ck_micro.csv"))
    path = str(place("cellkey", f"{name}.csv"))
    table = eq.table(eq.Records.of(frame, eq.Roles()), ["sex", "age"], key="rkey")
    found = CellKey(path).apply(table, Draws(1)).table
    law = pl.read_csv(path)
    for row in found.iter_rows(named=True):
        held = frame.filter(
            (pl.col("sex") == row["sex"]) | (row["sex"] == "Total"),
            (pl.col("age") == row["age"]) | (row["age"] == "Total"),
        )
        units = sum(round(key * 10**8) for key in held["rkey"].to_list())
        assert row["n"] == held.height
        assert row["published"] == held.height + looked_up(law, held.height, units % 10**8 / 10**8)


@pytest.mark.parametrize("seed", range(3))
def test_every_cell_by_loops(seed: int) -> None:
    records = keyed(people(150, seed))
    frame, law = records.collect(), generate(5, 2.0).table
    found = CellKey().apply(eq.table(records, ["sex", "age"], key="rkey"), Draws(1)).table
    assert "key" not in found.columns
    for row in found.iter_rows(named=True):
        held = frame.filter(
            (pl.col("sex") == row["sex"]) | (row["sex"] == "Total"),
            (pl.col("age") == row["age"]) | (row["age"] == "Total"),
        )
        key = sum(round(k * 10**10) for k in held["rkey"].to_list()) % 10**10 / 10**10
        assert row["published"] == held.height + looked_up(law, held.height, key)


def test_the_same_records_are_changed_alike_in_every_table() -> None:
    """Sex by age has the cells of sex by area as margins, and a table in another order has the same."""
    frame = people(400, 1)
    one = CellKey().apply(eq.table(keyed(frame), ["sex", "age"], key="rkey"), Draws(1)).table
    moved = frame.sample(fraction=1, shuffle=True, seed=2)
    two = CellKey().apply(eq.table(keyed(moved), ["area", "sex"], key="rkey"), Draws(2)).table
    sexes = [t.filter(pl.col(c) == "Total").sort("sex")["published"] for t, c in ((one, "age"), (two, "area"))]
    assert sexes[0].equals(sexes[1])
    alone = frame.filter(pl.col("sex") == "f")
    three = CellKey().apply(eq.table(keyed(alone), ["age"], key="rkey"), Draws(3)).table.sort("age")
    assert three["published"].equals(one.filter(pl.col("sex") == "f").sort("age")["published"])


def test_changes_have_mean_zero_and_their_variance() -> None:
    """Two thousand cells of 20 records each."""
    frame = people(40_000, 1).with_columns(area=(pl.col("person") // 20).cast(pl.String))
    found = CellKey().apply(eq.table(keyed(frame), "area", key="rkey"), Draws(1))
    changes = (found.published_values - found.n)[found.n == 20]
    assert len(changes) == 2000
    assert abs(np.mean(changes)) < 4 * np.sqrt(2 / 2000)
    assert np.var(changes) == pytest.approx(2.0, abs=0.25)


def test_weighted_counts_change_by_the_mean_weight() -> None:
    records = keyed(people(200, 3))
    plain = CellKey().apply(eq.table(records, "age", key="rkey"), Draws(1))
    heavy = eq.table(records, "age", weight="w", key="rkey")
    found = CellKey().apply(heavy, Draws(1))
    assert found.published_values == pytest.approx(heavy.total * plain.published_values / plain.n)


def test_what_cannot_be_perturbed() -> None:
    records = keyed(people(30, 1))
    with pytest.raises(eq.DataError, match="no cell keys"):
        CellKey().apply(eq.table(records, "age"), Draws(1))
    with pytest.raises(eq.DataError, match="amounts"):
        CellKey().apply(eq.table(records, "age", "w", key="rkey"), Draws(1))
    with pytest.raises(eq.DataError, match="no key from 0"):
        eq.table(records, "age", key="person")
    with pytest.raises(eq.DataError, match="already"):
        record_keys(records, 5)
    for bad in ({"most": 0}, {"above": -1}, {"variance": 0}, {"ptable": 3}):
        with pytest.raises(eq.ParameterError):
            CellKey(**bad)


def test_keys_depend_on_the_id_alone() -> None:
    frame = people(50, 1)
    other = frame.with_columns(sex=pl.lit("x")).reverse()
    one, two = (keyed(f).collect("person", "rkey").sort("person") for f in (frame, other))
    assert one.equals(two)
    assert not one["rkey"].equals(keyed(frame, 6).collect("rkey")["rkey"])


def test_averaging_knows_totals_better() -> None:
    """The attack finds the truth more often than the published cells show it, and says by how much."""
    table = eq.table(keyed(people(300, 4)), ["sex", "age", "area"], key="rkey")
    score = Rebuild(small=0).measure(CellKey().apply(table, Draws(1)), table)
    assert score.value > score.baseline
    words = score.notes[0].split()
    assert float(words[9]) < float(words[6])


def test_columns_with_the_names_of_inner_work_are_dimensions_like_others() -> None:
    frame = pl.DataFrame({"x": ["a", "b"], "w": ["c", "c"], "k": ["d", "e"], "node": ["f", "f"]})
    made = eq.table(eq.Records.of(frame, eq.Roles()), ["x", "w", "k", "node"])
    assert made.records == 2
    with pytest.raises(eq.ParameterError, match="rename"):
        eq.table(eq.Records.of(frame.rename({"x": "n"}), eq.Roles()), ["n"])


# --- several count variables --------------------------------------------------------------------------------------


def test_count_variables_have_keys_and_tables_of_their_own(tmp_path: Path) -> None:
    """Each is the table of the records that have it, whatever ptable the others have; weighted as well."""
    frame = people(300, 6).with_columns(ill=(pl.col("person") % 7 == 0).cast(pl.Int8), old=pl.col("age") > "c")
    path = tmp_path / "p.csv"
    generate(2, 1.0).table.write_csv(path)
    made = eq.table(keyed(frame), ["sex", "area"], weight="w", key="rkey", counts=["ill", "old"])
    found = CellKey(ptables=(f"old={path}",)).apply(made, Draws(1))
    assert not [c for c in found.more.columns if c.startswith("key")]
    for name, mask in (("ill", CellKey()), ("old", CellKey(str(path)))):
        alone = eq.table(keyed(frame.filter(pl.col(name).cast(pl.Boolean))), ["sex", "area"], weight="w", key="rkey")
        wanted = mask.apply(alone, Draws(2)).table.select("sex", "area", "n", "published")
        both = wanted.join(found.table, on=["sex", "area"])
        assert both["n"].to_list() == both[f"n_{name}"].to_list()
        assert both["published"].to_numpy() == pytest.approx(both[f"published_{name}"].to_numpy())
    plain = CellKey().apply(eq.table(keyed(frame), ["sex", "area"], weight="w", key="rkey"), Draws(1))
    assert np.array_equal(plain.published_values, found.published_values)


def test_count_variables_are_published_and_audited() -> None:
    frame = people(200, 6).with_columns(ill=(pl.col("person") % 7 == 0).cast(pl.Int8))
    found = eq.tabulate(keyed(frame), ["sex", "area"], method=CellKey(), key="rkey", counts="ill", rule="min-count:3")
    assert {"published", "published_ill"} <= set(found.public.columns)
    assert {"n_ill", "published_ill"} <= set(found.internal.columns)
    assert "'ill' were audited" in found.notes[-1]
    with pytest.raises(eq.RefusedError, match="of 'ill' failed"):
        eq.tabulate(keyed(frame), ["sex", "area"], method=CellKey(most=1, variance=0.5), key="rkey", counts="ill",
                    rule="min-count(n=30, margin=1)")  # fmt: skip
    for bad, said in (({"counts": "w"}, "0 or 1"), ({"counts": "nobody"}, "nobody")):
        with pytest.raises(eq.EquipoiseError, match=said):
            eq.table(keyed(frame), "sex", key="rkey", **bad)
    with pytest.raises(eq.ParameterError, match="is none"):
        CellKey(ptables=("x=y.csv",)).apply(eq.table(keyed(frame), "sex", key="rkey"), Draws(1))
    with pytest.raises(eq.ParameterError, match="of its own"):
        eq.tabulate(keyed(frame), "sex", rule="min-count:3", counts="ill")
    with pytest.raises(eq.ParameterError, match="NAME=FILE"):
        CellKey(ptables=("x",))


def test_count_variables_are_audited_as_one_with_the_records() -> None:
    """Intervals of all counts by SciPy over the inner cells: who is counted is one of the records."""
    frame = people(40, 6).with_columns(ill=(pl.col("person") % 9 > 0).cast(pl.Int8), old=pl.col("age") > "a")
    made = eq.table(keyed(frame), ["sex", "area"], key="rkey", counts=["ill", "old"])
    found = CellKey(most=2).apply(made, Draws(1))
    names, table = ("n", "n_ill", "n_old"), found.table
    inner = found.inner
    blocks, said = len(names), [table[name].to_numpy() for name in ("published", "published_ill", "published_old")]
    labels, inside = (table.select("sex", "area").rows(), table.select("sex", "area").filter(inner).rows())
    holds = np.array([[a in (x, "Total") and b in (y, "Total") for x, y in inside] for a, b in labels], dtype=float)
    cells, size = holds.shape
    all_cells = np.kron(np.eye(blocks), holds)
    told = np.concatenate(said)
    less = np.hstack([-np.kron(np.ones((blocks - 1, 1)), np.eye(size)), np.eye((blocks - 1) * size)])
    limits = np.concatenate([told + 2, 2 - told, np.zeros(len(less))])
    system = np.vstack([all_cells, -all_cells, less])
    zero = (table["n"] == 0).to_numpy()
    ranges = narrowed_counts(found)
    alone = [narrowed(count_view(found, name))[:2] for name in ("ill", "old")]
    narrower = 0
    for block, cell in itertools.product(range(blocks), range(cells)):
        goal, value = all_cells[block * cells + cell], float(table[names[block]][cell])
        least, most = (linprog(sign * goal, A_ub=system, b_ub=limits, method="highs").fun * sign for sign in (1, -1))
        assert ranges[block][0][cell] == pytest.approx(min(least, value), abs=1e-6) or zero[cell]
        assert ranges[block][1][cell] == pytest.approx(max(most, value), abs=1e-6) or zero[cell]
        if block:
            low, high = (side[cell] for side in alone[block - 1])
            narrower += high - low > ranges[block][1][cell] - ranges[block][0][cell] + 0.5
    assert narrower > 0


def test_a_count_that_follows_from_another_is_refused() -> None:
    """One person in a cell, published as 0, and as 2 ill: by themselves 0 or 1, and 1 to 3; together exactly one."""
    people = pl.DataFrame({"g": [*"aaaaaaaaab"], "ill": [1, 0, 1, 0, 1, 1, 1, 1, 0, 1]})
    made = eq.table(eq.Records.of(people, eq.Roles()), "g", counts="ill")
    law = Law("cell_key", (), "", {"most": 1, "counts": {"ill": {"most": 1}}})
    told = np.select([made.table["g"] == "b", made.table["g"] == "a"], [0.0, 8.0], 9.0)
    released = made.protected(told, pl.Series(["changed"] * 3), law)
    ill = np.select([made.table["g"] == "b", made.table["g"] == "a"], [2.0, 7.0], 8.0)
    released = replace(released, more=released.more.with_columns(published_ill=pl.Series(ill)))
    assert not certify(replace(released, history=(replace(law, parameters={"most": 1}),)), None).exact
    assert not certify(count_view(released, "ill"), None).exact
    assert certify(released, None).exact == 1
    assert certify_counts(released, None)["ill"].exact == 1
