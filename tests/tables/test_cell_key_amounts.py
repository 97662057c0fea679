"""Cell keys for amounts: numbers of the R package cellKey, the law by exact enumeration, consistency, and attacks."""

import os
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.data.tables.keyed_cells import KEY_UNITS
from equipoise.ground.randomness import Draws
from equipoise.tables import CellKeyAmounts, record_keys
from equipoise.tables._amount_noise import AmountNoise, Flex
from equipoise.tables._perturbation_table import Ptable, generate_for_amounts, read_for_amounts
from equipoise.tables.audits import certify
from equipoise.tables.audits.largest_contribution import chances

DATA = os.environ.get("EQUIPOISE_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="EQUIPOISE_DATA is not set: cellKey's test data were not read.")
# Value, largest contributions, keys, extra, separation, and what .perturb_cell_flex of cellKey 1.0.2 made of it, run in
# R 4.2.2 with the two tables of `LAWS`, fp = 1000, p = (0.3, 0.03), q = 3, epsilon = (1, 0.5, 0.2).
CELLS = [
    (5000, (2000, 1500, 1200), (0.12, 0.57, 0.91), 0, False, 4463.0947750230),
    (900, (700,), (0.93,), 0, False, 1387.5),
    (900, (700,), (0.03,), 0, False, 345.0),
    (2500, (2400,), (0.2,), 0, False, 1886.4026053328),
    (-4000, (-3000, 1200), (0.9, 0.3), 0, False, -4665.7396694215),
    (3, (2,), (0.07,), 0, True, 1.6),
    (3, (2,), (0.95,), 0, True, 4.6),
    (0.4, (0.4,), (0.8,), 0, True, 0.64),
    (40, (30,), (0.8,), 0, True, 52.25),
    (900, (700,), (0.93,), 2, False, 1807.5),
    (900, (700,), (0.11,), 2, False, 97.5),
    (260, (250,), (0.0004,), 1.5, False, 0.0),
]
LAWS = generate_for_amounts(10, 3.0, 2), generate_for_amounts(5, 1.0, 5)
# Income by sex and age of cellKey's test data, weighted, keys of all records, same_key = TRUE: cells with the sums, the
# three keys of cellKey and its perturbed sums.
INCOME = [
    ("Total", "Total", (0.81745276, 0.17452768, 0.74527681), 1378683167, 1378712732.48992610),
    ("Total", "age_group6", (0.26810174, 0.68101742, 0.81017426), 3614719, 3604131.08748313),
    ("male", "age_group2", (0.07269362, 0.72693620, 0.26936207), 163178009, 163117197.28597838),
    ("female", "age_group5", (0.33043822, 0.30438223, 0.04382233), 27205199, 27159160.38959983),
    ("female", "age_group6", (0.82225309, 0.22253098, 0.22530982), 1464109, 1474804.77681423),
]


def noise(ranks: int = 3, separation: bool = False, law: Ptable = LAWS[0], point: float = 1000.0) -> AmountNoise:
    flex = Flex(0.3, 0.03 if point else 0.3, point, 3.0, (1.0, 0.5, 0.2)[:ranks])
    return AmountNoise(flex, law, little=LAWS[1] if separation else None)


def one_cell(law: AmountNoise, value: float, contributions: tuple, keys: np.ndarray, extra: float = 0.0) -> np.ndarray:
    """The same cell under many keys, a row for each."""
    many = len(keys)
    parts = np.tile(np.array(contributions, dtype=float), (many, 1))
    return law.changed(np.full(many, float(value)), parts, keys, np.zeros(many, dtype=bool), np.full(many, extra))


def firms(n: int = 120, seed: int = 3) -> eq.Records:
    random = np.random.default_rng(seed)
    frame = pl.DataFrame({
        "firm": np.arange(n), "region": random.choice(list("abc"), n), "trade": random.choice(list("xyz"), n),
        "turnover": np.round(np.exp(random.normal(6, 1.5, n))) * (random.random(n) > 0.1),
        "w": random.choice([1.0, 3.0], n), "owner": random.integers(0, 60, n),
    })  # fmt: skip
    return record_keys(eq.Records.of(frame, eq.Roles(id="firm")), 5)


@pytest.fixture(scope="module")
def records() -> eq.Records:
    return firms()


# --- numbers of others --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "parts", "keys", "extra", "separation", "wanted"), CELLS)
def test_cells_of_cellkey(
    value: float, parts: tuple, keys: tuple, extra: float, separation: bool, wanted: float
) -> None:
    law = noise(len(parts), separation)
    assert one_cell(law, value, parts, np.array([keys]), extra)[0] == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize(("share", "wanted"), [(0.5, 400.0), (0.6, 360.0)])
def test_the_example_of_the_handbook(share: float, wanted: float) -> None:
    """Hundepool et al. (2024), section 4.6: 300 with a largest contribution of 200, key 0.8, v = 0 and 1."""
    i, v = np.array([0, 1, 2, 2, 3, 3]), np.array([0.0, 0, 0, 1, 0, 1])
    law = Ptable(i, v, np.ones(6), np.array([1.0, 1, 0.9, 1, 0.7, 1]))
    cell = one_cell(AmountNoise(Flex(share, share, 0.0, 3.0), law), 300, (200,), np.array([[0.8]]))
    assert cell[0] == pytest.approx(wanted)


@needs_data
def test_the_test_data_of_cellkey() -> None:
    """With the ptable that R's ptable wrote (pt_ex_nums), and sums, keys and largest contributions of our table."""
    place = Path(DATA or "") / "tables" / "cellkey"
    law = noise(law=read_for_amounts(str(place / "ptable_nums_parity.csv"))["all"])
    people = eq.read(place / "ck_micro.csv")
    made = eq.table(people, ["sex", "age"], "income", weight="sampling_weight", key="rkey").table
    for sex, age, keys, value, wanted in INCOME:
        cell = made.row(by_predicate=(pl.col("sex") == sex) & (pl.col("age") == age), named=True)
        assert (cell["value"], cell["key"]) == (value, pytest.approx(keys[0], abs=1e-9))
        parts = tuple(cell[f"contribution{k}"] for k in (1, 2, 3))
        assert one_cell(law, value, parts, np.array([keys]))[0] == pytest.approx(wanted, rel=1e-12)


@needs_data
def test_the_table_of_ptable() -> None:
    """Rows 5 and 10 of create_num_ptable(D = 10, V = 3, step = 2); row 1 was made with another aim there."""
    theirs = read_for_amounts(str(Path(DATA or "") / "tables" / "cellkey" / "ptable_nums_parity.csv"))["all"].table
    ours = LAWS[0].table
    for i in (5, 10):
        assert ours.filter(i=i)["p"].to_numpy() == pytest.approx(theirs.filter(i=i)["p"].to_numpy(), abs=2e-7)


# --- the law ------------------------------------------------------------------------------------------------------


def exact_moments(law: AmountNoise, value: float, parts: tuple) -> tuple[float, float]:
    """Mean and variance of the change over every interval of the keys of all components: no sampling."""
    ends = [np.unique(np.concatenate([[0.0], table.upper])) for table in (law.all, law.little) if table is not None]
    cuts = np.unique(np.concatenate([*ends, [0.5]]))
    middles, widths = (cuts[1:] + cuts[:-1]) / 2, np.diff(cuts)
    keys = np.array(list(product(middles, repeat=len(parts))))
    weights = np.array([np.prod(w) for w in product(widths, repeat=len(parts))])
    changes = one_cell(law, value, parts, keys) - value
    mean = float(weights @ changes)
    return mean, float(weights @ (changes - mean) ** 2)


@pytest.mark.parametrize(
    ("value", "parts", "separation"),
    [
        (900, (700,), False),
        (5000, (2000, 1500), False),
        (12, (7, 5), True),
        (2, (2,), True),
        (-800, (-700, 300), False),
    ],
)
def test_the_change_has_mean_zero_and_at_most_the_variance_stated(value: float, parts: tuple, separation: bool) -> None:
    law = noise(len(parts), separation)
    mean, variance = exact_moments(law, value, parts)
    units, _ = law.units(np.array([parts], dtype=float))
    assert mean == pytest.approx(0, abs=1e-7 * abs(value))
    assert variance <= 3.0 * (units**2).sum() * (1 + 1e-9)


def test_a_cell_of_many_units_has_the_variance_stated() -> None:
    law = noise(1)
    mean, variance = exact_moments(law, 50_000, (2000,))
    unit = law.units(np.array([[2000.0]]))[0][0, 0]
    assert (mean, variance) == (pytest.approx(0, abs=1e-4), pytest.approx(3 * unit**2))


def test_both_kinds_of_noise_are_as_large_at_the_separation_point() -> None:
    law = noise(1, separation=True, point=0.0)
    assert law.separation == pytest.approx(1 / 0.3)
    assert 0.3 * law.separation == pytest.approx(1.0)


def test_changes_over_cells_have_mean_zero() -> None:
    """Two thousand cells of one firm of 10,000 each, in units of 500: mean 0 within five standard errors."""
    n = 2000
    frame = pl.DataFrame({"firm": np.arange(n), "cell": np.arange(n).astype(str), "x": [10_000] * n})
    made = eq.table(record_keys(eq.Records.of(frame, eq.Roles(id="firm")), 9), "cell", "x", key="rkey")
    found = CellKeyAmounts(epsilons=(1.0,)).apply(made, Draws(1))
    changes = (found.published_values - 10_000)[made.n == 1] / 500
    assert abs(changes.mean()) < 5 * np.sqrt(3 / n)
    assert changes.var() == pytest.approx(3.0, abs=5 * np.sqrt(2 / n) * 3)


# --- the method ---------------------------------------------------------------------------------------------------


def test_the_same_records_are_changed_alike_in_every_table_and_order(records: eq.Records) -> None:
    mask, frame = CellKeyAmounts(), records.collect()
    moved = eq.Records.of(frame.sample(fraction=1, shuffle=True, seed=2), eq.Roles(id="firm"))
    one = mask.apply(eq.table(records, ["region", "trade"], "turnover", key="rkey"), Draws(1)).table
    two = mask.apply(eq.table(moved, ["region"], "turnover", key="rkey"), Draws(2)).table
    margin = one.filter(trade="Total").sort("region")["published"]
    assert margin.equals(two.sort("region")["published"])
    part = eq.Records.of(frame.filter(region="a"), eq.Roles(id="firm"))
    three = mask.apply(eq.table(part, ["trade"], "turnover", key="rkey"), Draws(3)).table.sort("trade")
    assert three["published"].equals(one.filter(region="a").sort("trade")["published"])


def test_every_cell_by_loops(records: eq.Records) -> None:
    """The formula written again, record by record, for weighted sums and two components."""
    frame, law = records.collect(), generate_for_amounts(10, 3.0, 2).table
    mask = CellKeyAmounts(epsilons=(1.0, 0.5), small=0.2, large=0.02, point=500.0)
    found = mask.apply(eq.table(records, ["region", "trade"], "turnover", weight="w", key="rkey"), Draws(1)).table
    assert not {"key", "range", "key_nonzero", "contribution1"} & set(found.columns)
    for row in found.iter_rows(named=True):
        held = frame.filter(
            *((pl.col(c) == row[c]) | (row[c] == "Total") for c in ("region", "trade")), pl.col("turnover") > 0
        )
        units = sum(round(key * KEY_UNITS) for key in held["rkey"].to_list()) % KEY_UNITS
        amount = float((held["turnover"] * held["w"]).sum())
        for j, (x, w) in enumerate(held.sort("turnover", "w", descending=True).select("turnover", "w").rows()[:2]):
            size = x * w
            share = 0.02 * (1 + (0.2 * size - 10) / 10 * (1000 / (500 + size)) ** 3) if size >= 500 else 0.2
            unit = min(size * share * (1.0, 0.5)[j], amount)
            key = Draws(0).child(0).uniform(pl.Series([units]), j)[0]
            amount += unit * interpolated(law, amount / unit, key)
        assert row["published"] == round(amount)


def interpolated(law: pl.DataFrame, units: float, key: float) -> float:
    rows = sorted(set(law["i"].to_list()))
    units = min(units, rows[-1])
    low = max(i for i in rows if i <= units)
    high = min(i for i in rows if i >= units)
    ends = [
        next(v for v, upper in law.filter(pl.col("i") == i).sort("v").select("v", "p_int_ub").rows() if key < upper)
        for i in (low, high)
    ]
    return ends[0] if low == high else ends[0] + (ends[1] - ends[0]) * (units - low) / (high - low)


@pytest.mark.parametrize("basis", ["mean", "range", "sum"])
def test_other_bases(records: eq.Records, basis: str) -> None:
    made = eq.table(records, "region", "turnover", key="rkey")
    x = records.collect()["turnover"]
    wanted = {"mean": x.mean(), "range": x.max() - x.min(), "sum": x.sum()}[basis]
    mask = CellKeyAmounts(basis=basis, small=0.01)
    room = mask.apply(made, Draws(1)).history[0].detail
    assert room.contributions[made.n.argmax(), 0] == pytest.approx(wanted)


def test_holdings_even_and_odd_cells_and_extra_noise(records: eq.Records, tmp_path: Path) -> None:
    made = eq.table(records, "region", "turnover", holding="owner", key="rkey")
    found = CellKeyAmounts(epsilons=(1.0,)).apply(made, Draws(1)).history[0].detail
    assert np.array_equal(found.contributions[:, 0], made.numbers("top1"))
    path = tmp_path / "p.csv"
    law = generate_for_amounts(4, 1.0, 1).table
    parts = [law.with_columns(pl.col("v") * sign, type=pl.lit(kind)) for kind, sign in (("even", 0), ("odd", 1))]
    pl.concat(parts).write_csv(path)
    still = CellKeyAmounts(ptable=str(path), epsilons=(1.0,)).apply(made, Draws(1))
    assert (still.published_values == made.numbers("value"))[made.n % 2 == 0].all()
    with pytest.raises(eq.ParameterError, match="one epsilon"):
        CellKeyAmounts(ptable=str(path)).apply(made, Draws(1))
    far = CellKeyAmounts(extra=5.0, rule=eq.rules.MinCount(1000), small=0.01).apply(made, Draws(1))
    moved = np.abs(far.published_values - made.numbers("value"))
    assert (moved > 4 * 0.01 * made.numbers("top1") - 1).all()


def test_same_key_and_zero_keys(records: eq.Records) -> None:
    made = eq.table(records, ["region", "trade"], "turnover", key="rkey")
    first = CellKeyAmounts(same_key=True, zeros=True)._keys(made)
    assert first[:, 0] == pytest.approx(made.numbers("key"), abs=1e-12)
    other = CellKeyAmounts()._keys(made)
    assert np.abs(np.corrcoef(np.vstack([other.T, first[:, :1].T]))[np.triu_indices(4, 1)]).max() < 0.9
    assert not np.allclose(made.numbers("key"), made.numbers("key_nonzero"))


def test_what_cannot_be_perturbed(records: eq.Records) -> None:
    counts = eq.table(records, "region", key="rkey")
    with pytest.raises(eq.DataError, match="holds counts"):
        CellKeyAmounts().apply(counts, Draws(1))
    with pytest.raises(eq.DataError, match="no cell keys"):
        CellKeyAmounts().apply(eq.table(records, "region", "turnover"), Draws(1))
    with pytest.raises(eq.DataError, match="top=5"):
        CellKeyAmounts(epsilons=(1, 1, 1, 1, 1)).apply(eq.table(records, "region", "turnover", key="rkey"), Draws(1))
    with pytest.raises(eq.ParameterError, match="larger than most"):
        CellKeyAmounts(unit=1e9).apply(eq.table(records, "region", "turnover", key="rkey"), Draws(1))


@pytest.mark.parametrize("bad", [
    {"small": 0}, {"large": 0.5, "point": 10}, {"large": 0.01}, {"point": 10.0}, {"q": 1.0}, {"epsilons": ()},
    {"variance": 0}, {"epsilons": (0.5,)}, {"epsilons": (1, 0.2, 0.5)}, {"epsilons": (1,) * 7}, {"extra": 1.0},
    {"basis": "x"}, {"unit": 0}, {"ptable": 3}, {"most": 0}, {"little": 0},
])  # fmt: skip
def test_bad_parameters(bad: dict) -> None:
    with pytest.raises(eq.ParameterError):
        CellKeyAmounts(**bad)


@pytest.mark.parametrize(("text", "said"), [
    ("i,v,p_int_ub,type\n0,0,1,even\n1,0,1,even\n", "even and odd"), ("i,v,p_int_ub\n1,0,1\n", "i = 0"),
])  # fmt: skip
def test_files_that_are_no_ptable_for_amounts(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "p.csv"
    path.write_text(text)
    with pytest.raises(eq.DataError, match=said):
        CellKeyAmounts(ptable=str(path)).noise()


# --- what an intruder learns --------------------------------------------------------------------------------------


def test_the_interval_holds_whatever_the_key(records: eq.Records) -> None:
    """Every published number is as near as the certificate says, and some come more than half as far."""
    made = eq.table(records, ["region", "trade"], "turnover", key="rkey")
    frame, value, share = records.collect(), made.numbers("value"), []
    for seed in range(20):
        keyed = record_keys(eq.Records.of(frame.drop("rkey"), eq.Roles(id="firm")), seed)
        found = CellKeyAmounts(epsilons=(1.0,)).apply(
            eq.table(keyed, ["region", "trade"], "turnover", key="rkey"), Draws(1)
        )
        room = found.history[0].detail
        assert ((room.low <= value) & (value <= room.high)).all()
        share.append(np.abs(found.published_values - value) / np.maximum(room.high - found.published_values, 1))
    assert np.max(share) > 0.3


def test_the_chance_of_a_close_estimate_by_outside_code() -> None:
    """The second largest contributor's estimate of the largest, with noise drawn by numpy from the table alone."""
    frame = pl.DataFrame({"firm": range(4), "k": [*"aabb"], "x": [900, 95, 400, 390]})
    made = eq.table(record_keys(eq.Records.of(frame, eq.Roles(id="firm")), 5), "k", "x", key="rkey")
    rule = eq.rules.PPercent(0.1)
    found = CellKeyAmounts(epsilons=(1.0,), small=0.1).apply(made, Draws(1))
    cell = np.array([made.table["k"].to_list().index("a")])
    ours = float(chances(found, found.history[0].detail, cell, 0.1)[0])
    row = generate_for_amounts(10, 3.0, 2).table.filter(i=10)
    v, p = row["v"].to_numpy(), row["p"].to_numpy()
    theirs = float(p[np.abs(90 * v) < 90].sum())
    assert ours == pytest.approx(theirs, abs=5 * np.sqrt(theirs * (1 - theirs) / 1000))
    assert "0." in certify(found, rule).notes[-1]
    assert not certify(found, rule).exposed


def test_too_little_noise_is_refused(records: eq.Records) -> None:
    with pytest.raises(eq.RefusedError, match="more noise"):
        eq.tabulate(records, ["region", "trade"], "turnover", rule="p-percent:40%", key="rkey",
                    method=CellKeyAmounts(small=0.0001, epsilons=(1.0,)))  # fmt: skip


def test_a_register_keeps_the_noise_of_a_cell(records: eq.Records, tmp_path: Path) -> None:
    """A margin comes out as in the first table; other noise on the same cells is refused."""

    def release(name: str, by: list[str], method: CellKeyAmounts) -> pl.DataFrame:
        book = tmp_path / "register.json"
        return eq.tabulate(
            records, by, "turnover", method=method, key="rkey", register=book, asset="firms", out=tmp_path / name
        ).public

    one, two = release("one", ["region", "trade"], CellKeyAmounts()), release("two", ["region"], CellKeyAmounts())
    assert one.filter(trade="Total").sort("region")["published"].equals(two.sort("region")["published"])
    with pytest.raises(eq.RefusedError, match="another change"):
        release("three", ["trade"], CellKeyAmounts(small=0.2))
