"""Limits for scenarios, groups and the worst record: against enumeration by hand."""

from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.methods.method import OnCells, label
from equipoise.policies.limits import written_out
from equipoise.policies.policy_file import Job
from equipoise.policies.scoped_measures import Wanted, scale
from equipoise.policies.sections import Intruder

NEIGHBOUR, EMPLOYER = Intruder("neighbour", ("sex", "age")), Intruder("employer", ("pay",))
BOTH = (NEIGHBOUR, EMPLOYER)


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    rng = np.random.default_rng(5)
    size = 300
    return pl.DataFrame(
        {
            "sex": rng.choice(["f", "m"], size),
            "age": rng.integers(20, 50, size),
            "region": rng.choice(["a", "b", "c"], size, p=[0.7, 0.2, 0.1]),
            "pay": rng.integers(0, 120, size),
            "person": np.arange(size),
        }
    )


@pytest.fixture(scope="module")
def records(table: pl.DataFrame) -> eq.Records:
    trees = {"age": eq.Hierarchy.intervals([5, 10])}
    return eq.read(table, eq.Roles(["sex", "age", "region"], numeric="pay", id="person", hierarchies=trees))


def alone(table: pl.DataFrame, keys: list[str], k: int = 1) -> float:
    """The share of rows in classes of at most k, counted plainly."""
    rows = table.select(keys).rows()
    return sum(rows.count(row) <= k for row in rows) / len(rows)


@pytest.mark.parametrize(
    "name",
    [
        "uniques", "uniques(k=3)[neighbour]", "uniques by region", 'nearest[a b] by region, "odd, name"',
        "individual (worst record)", "uniques[keys] by sex (worst record)", "estimate(query='mean:pay by sex')",
    ],
)  # fmt: skip
def test_names_go_both_ways(name: str) -> None:
    assert str(Wanted.of(name)) == name


def test_names_with_parameters_that_look_like_more() -> None:
    assert Wanted.of("estimate(query='mean:pay by sex')") == Wanted("estimate(query='mean:pay by sex')")
    assert Wanted.of('nearest[a b] by region, "odd, name"').by == ("region", "odd, name")


def test_a_scenario_counts_what_it_knows(records: eq.Records, table: pl.DataFrame) -> None:
    for name, keys in (("neighbour", ["sex", "age"]), ("employer", ["pay"]), ("keys", ["sex", "age", "region"])):
        for k in (1, 2):
            found = scale(f"uniques(k={k})[{name}]", BOTH)
            assert isinstance(found, OnCells)
            assert found.measure(records, records).value == pytest.approx(alone(table, keys, k))
            assert found.measure(records, records).name == label(found)


def test_groups_are_judged_by_the_worst(records: eq.Records, table: pl.DataFrame) -> None:
    by_hand = [alone(part, ["sex", "age"]) for part in table.partition_by("region")]
    found = scale("uniques by region").measure(records, records)
    assert found.value == pytest.approx(max(by_hand))
    assert found.notes[0] == "The worst of 3 groups by region."
    inside = scale("uniques[neighbour] by region", BOTH).measure(records, records)
    assert inside.value == pytest.approx(max(by_hand))


def test_two_columns_make_groups(records: eq.Records, table: pl.DataFrame) -> None:
    by_hand = [alone(part, ["age"]) for part in table.partition_by("region", "sex")]
    assert scale("uniques by region, sex").measure(records, records).value == pytest.approx(max(by_hand))


def test_the_worst_record(records: eq.Records) -> None:
    """Of the prosecutor's mean risk the worst record is the prosecutor's worst."""
    worst = scale("prosecutor(of='mean') (worst record)").measure(records, records)
    assert worst.value == pytest.approx(eq.risk.Prosecutor().measure(records, records).value, rel=1e-12)
    assert worst.name == "prosecutor(of='mean') (worst record)"
    with pytest.raises(eq.ParameterError, match="no risk"):
        scale("moments (worst record)")


def test_utility_within_groups(records: eq.Records, table: pl.DataFrame) -> None:
    """A mask that leaves one group alone leaves its moments alone."""
    moved = eq.read(
        table.with_columns(pay=pl.when(pl.col("region") == "c").then(pl.col("pay") * 2).otherwise(pl.col("pay"))),
        records.roles,
    )
    whole = eq.utility.Moments().measure(moved, records)
    worst = scale("moments by region").measure(moved, records)
    parts = [
        eq.utility.Moments().measure(*(eq.read(f.collect().filter(pl.col("region") == r), records.roles)
                                       for f in (moved, records))).value
        for r in "abc"
    ]  # fmt: skip
    assert worst.value == pytest.approx(max(parts))
    assert worst.value > whole.value
    assert (worst.better, worst.side) == (whole.better, "utility")


def test_groups_that_a_mask_changed_are_followed_by_id(records: eq.Records) -> None:
    """Groups are those of the released file; the original records are found by their id."""
    trees = {"region": eq.Hierarchy.mapping({"a": "ab", "b": "ab", "c": "c"})}
    wide = eq.read(records.collect(), eq.Roles(["sex", "age", "region"], numeric="pay", id="person", hierarchies=trees))
    released = eq.Recipe([eq.masks.Recode("region", 1)], 1).run(wide)
    found = scale("moments by region").measure(released, wide)
    assert found.value == pytest.approx(0.0)
    assert "2 groups" in found.notes[0]


def test_attacks_know_what_the_scenario_says(records: eq.Records) -> None:
    noisy = eq.Recipe([eq.masks.Noise("pay", 0.5)], 7).run(records)
    found = scale("nearest[employer]", BOTH).measure(noisy, records)
    plain = eq.attacks.Nearest(known=("pay",)).measure(noisy, records)
    assert found.value == pytest.approx(plain.value, rel=1e-12)
    assert found.name == "nearest[employer]"


def test_cells_and_records_agree_in_a_sweep(records: eq.Records) -> None:
    """The roll-up of cells gives what measuring each release gives."""
    names = ["uniques[neighbour]", "uniques by region", "individual[neighbour] by region", "uniques (worst record)"]
    scales = [scale(name, BOTH) for name in names]
    recipes = eq.coarsenings(records)
    swept = eq.sweep(records, recipes, scales)
    for trial in swept:
        released = trial.recipe.run(records)
        assert trial.scores.keys() == tuple(names)
        for measure, score in zip(scales, trial.scores, strict=True):
            assert measure.measure(released, records).value == pytest.approx(score.value)


def test_limits_hold_in_every_scenario_unless_they_name_one() -> None:
    limits = {
        "uniques": "< 2%",
        "k_anonymity": [{"limit": "< 9%", "scenario": "employer", "reason": "paid there"}, {"limit": "< 5%"}],
        "value_disclosure": "< 0.9",
        "entropy": {"limit": "> 3", "reason": "tables"},
        "uniques:3": {"limit": "< 0.2", "by": "region", "scenario": "keys"},
    }
    found, reasons = written_out(limits, BOTH)
    assert found == {
        "uniques[neighbour]": "< 2%",
        "uniques[employer]": "< 2%",
        "k_anonymity[employer]": "< 9% and < 5%",
        "k_anonymity[neighbour]": "< 5%",
        "value_disclosure": "< 0.9",
        "entropy": "> 3",
        "uniques(k=3)[keys] by region": "< 0.2",
    }
    assert reasons == {"k_anonymity[employer]": "paid there", "entropy": "tables"}
    policy = eq.Policy(limits, scenarios=BOTH)
    assert eq.Policy(policy.limits, scenarios=BOTH, reasons=policy.reasons) == policy


def test_a_reason_is_told_where_the_limit_is_broken() -> None:
    policy = eq.Policy({"uniques": {"limit": "< 2%", "reason": "the law"}})
    bad, good = (eq.Trial(eq.Recipe(), [eq.Score("uniques", value, "lower")]) for value in (0.5, 0.01))
    assert policy.judge(bad).reasons == ("uniques is 50 %, outside the limit (below 2 %) (the law)",)
    assert policy.judge(good).reasons == ("uniques is 1 %, within the limit (below 2 %)",)
    assert policy.parsed[0].reason == "the law"


def test_weights_choose_by_their_sum_against_enumeration() -> None:
    """Each utility from 0 (worst tried) to 1 (best tried); the largest weighted sum wins."""
    rng = np.random.default_rng(3)
    trials = [
        eq.Trial(
            eq.Recipe(),
            [eq.Score("entropy", e, "higher"), eq.Score("moments", m, "lower", side="utility"),
             eq.Score("uniques", u, "lower")],
        )
        for e, m, u in rng.random((40, 3)).tolist()
    ]  # fmt: skip
    for one, two in product((0.0, 0.5, 2.0), (0.5, 1.0)):
        values = np.array([[t.scores["entropy"].value, -t.scores["moments"].value] for t in trials])
        spread = (values - values.min(0)) / (values.max(0) - values.min(0))
        worth = spread @ [one, two]
        inside = [i for i, t in enumerate(trials) if t.scores["uniques"].value < 0.5]
        policy = eq.Policy({"uniques": "< 0.5"}, weights={"entropy": one, "moments": two})
        assert policy.choose(trials) is trials[max(inside, key=lambda i: worth[i])]


def test_a_policy_with_scenarios_from_file_to_release(tmp_path: Path, table: pl.DataFrame) -> None:
    """Released, judged by names that say who knows what; made again from the private folder."""
    table.write_csv(tmp_path / "people.csv")
    (tmp_path / "policy.toml").write_text(
        """
assume_unknown = ["pay"]
[data]
path = "people.csv"
[roles]
keys = ["sex", "age", "region"]
id = "person"
[roles.hierarchies.age]
kind = "intervals"
widths = [5, 10]
[[scenarios]]
name = "neighbour"
known = ["sex", "age"]
reason = "next door"
[limits]
uniques = { limit = "< 1%", reason = "the law" }
"k_anonymity(k=3)" = { limit = "< 50%", by = ["region"], scenario = "keys" }
entropy = "> 1"
[choose]
weights = { entropy = 1 }
""",
        encoding="utf-8",
    )
    made = eq.balance(tmp_path / "policy.toml")
    assert isinstance(made, eq.Release)
    assert set(made.trial.scores.keys()) == {"uniques[neighbour]", "k_anonymity[keys] by region", "entropy"}
    job = Job.load(made.private / "policy.toml")
    assert job.scenarios == (Intruder("neighbour", ("sex", "age"), reason="next door"),)
    assert job.policy() == Job.load(tmp_path / "policy.toml").policy()
    again = eq.balance(made.private / "policy.toml", out=tmp_path / "again")
    assert isinstance(again, eq.Release)
    assert (again.public / "data.csv").read_bytes() == (made.public / "data.csv").read_bytes()


def test_too_many_groups_are_refused(records: eq.Records) -> None:
    big = pl.concat([records.collect()] * 4).with_columns(pl.int_range(pl.len()).alias("area"))
    with pytest.raises(eq.ParameterError, match="1,200 groups"):
        scale("uniques by area").measure(eq.read(big, eq.Roles(["sex", "age"])), records)
