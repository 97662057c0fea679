"""Share of records in cells that a rule flags: by hand, equal to the rule's own flags, and a limit like others."""

import os
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.doors.cli import main
from equipoise.methods.method import label
from equipoise.recipe.catalogue import parse
from equipoise.search.risk_utility_map import axes

LOCATION = os.environ.get("EQUIPOISE_DATA")
TOWNS = pl.DataFrame(
    {
        "town": list("aaabbccc"),
        "ill": ["flu", "flu", "gout", "flu", "flu", "flu", "gout", "cold"],
        "member": [True, False, False, True, True, False, False, False],
    }
)
R = eq.rules


def measured(rule: Any, table: pl.DataFrame = TOWNS, **roles: Any) -> eq.Score:
    records = eq.read(table, eq.Roles(**{"keys": "town", **roles}))
    return eq.risk.Unsafe(rule).measure(records, records)


@pytest.mark.parametrize(
    ("rule", "towns"),
    [
        (R.MinCount(3), "b"),
        (R.MinCount(4), "abc"),
        (R.Diversity("ill", 2), "b"),  # two, one and three different values
        (R.Diversity("ill", 3), "ab"),
        (R.Diversity("ill", 2, kind="recursive", c=2.0), "ab"),  # 2 < 2 x 1, 2 < 2 x 0, 1 < 2 x 2
        (R.Closeness("ill", 0.2), "bc"),  # distances 1/8, 3/8 and 7/24 from (5, 2, 1)/8
        (R.Closeness("ill", 0.3), "b"),
        (R.Closeness("ill", 0.1), "abc"),
        (R.BetaLikeness("ill", 0.5, enhanced=False), "bc"),  # largest gains 1/3, 3/5 and 5/3
        (R.BetaLikeness("ill", 1.0, enhanced=False), "c"),
        (R.BetaLikeness("ill", 1.0), "bc"),  # flu may gain - ln 5/8 = 0.47 at most
        (R.DeltaPresence("member", 0.0, 0.5), "b"),  # members 1/3, 1 and 0
        (R.DeltaPresence("member", 0.1, 0.5), "bc"),
        (R.Diversity("ill", 2) | R.DeltaPresence("member", 0.1, 0.5), "bc"),
        (R.Closeness("ill", 0.2) & R.MinCount(3), "b"),
        (R.KMap(3), "b"),
    ],
    ids=lambda value: value if isinstance(value, str) else label(value),
)
def test_worked_by_hand(rule: Any, towns: str) -> None:
    score = measured(rule)
    number = sum(town in towns for town in TOWNS["town"])
    assert (score.number, score.value) == (number, pytest.approx(number / 8))
    assert score.detail.filter(pl.col("risk") == 1)["town"].to_list() == list(towns)
    assert score.by_record()["risk"].to_list() == [float(town in towns) for town in TOWNS["town"]]
    assert (score.better, score.side, score.unit) == ("lower", "risk", "share of records")


RULES = [
    R.MinCount(4),
    R.AnySubset(2, 4),
    R.KMap(9),
    R.Diversity("ill", 2),
    R.Diversity("ill", 1.5, kind="entropy"),
    R.Closeness("ill", 0.2),
    R.DeltaDisclosure("ill", 0.5),
    R.BetaLikeness("ill", 0.5),
    R.DeltaPresence("ill", 0.1, 0.5, "flu"),
    R.ExpectedLoss("uniques:10", prior=(0.5, 9.5), domain=("area",), cutoff=2),
]


@pytest.mark.parametrize("rule", RULES, ids=label)
def test_what_the_rule_flags(rule: Any, people_records: eq.Records) -> None:
    """The records of the cells that the rule itself flags, counted by the keys and what it protects."""
    sensitive = tuple(c for c in ("ill",) if hasattr(rule, "sensitive"))
    cells = eq.count(people_records, (*people_records.roles.keys, *sensitive))
    score = eq.risk.Unsafe(rule).measure(people_records, people_records)
    assert score.number == cells.table.filter(rule.flag(cells))["n"].sum()
    assert eq.risk.Unsafe(rule).measure(cells, cells).value == pytest.approx(score.value)


@pytest.mark.parametrize(("one", "two"), [*product(RULES[:2], RULES[3:6]), (RULES[3], RULES[5])], ids=label)
def test_rules_together(one: Any, two: Any, people_records: eq.Records) -> None:
    """Record by record: what either flags, and what both do."""
    first, second, either, both = (
        eq.risk.Unsafe(rule).measure(people_records, people_records).by_record()["risk"] > 0
        for rule in (one, two, one | two, one & two)
    )
    assert either.equals(first | second)
    assert both.equals(first & second)


ROWS = st.lists(
    st.tuples(st.sampled_from(["f", "m", None]), st.sampled_from(["x", "y", None]), st.sampled_from("pqr")),
    min_size=2, max_size=25,
)  # fmt: skip


@given(rows=ROWS, size=st.integers(2, 4))
def test_missing_keys_that_match_anything(rows: list[Any], size: int) -> None:
    """The class of a record are all that agree with it on the keys both have, pair by pair."""
    table = pl.DataFrame(rows, schema=["sex", "area", "ill"], orient="row")
    alike = [
        [other for other in rows if all(None in (x, y) or x == y for x, y in zip(row[:2], other[:2], strict=True))]
        for row in rows
    ]
    few, uniform = ([len(a) < size for a in alike], [len({o[2] for o in a}) < 2 for a in alike])
    for rule, flags in (
        (R.MinCount(size), few),
        (R.Diversity("ill", 2), uniform),
        (R.MinCount(size) | R.Diversity("ill", 2), [a or b for a, b in zip(few, uniform, strict=True)]),
    ):
        score = measured(rule, table, keys=["sex", "area"], missing="any")
        assert score.by_record()["risk"].to_list() == [float(flag) for flag in flags]
    own = Counter((sex, area) for sex, area, _ in rows)
    counted = measured(R.MinCount(size), table, keys=["sex", "area"])
    assert counted.number == sum(n for n in own.values() if n < size)


@pytest.mark.parametrize("k", [2, 3, 10])
def test_a_least_count_is_k_anonymity(people_records: eq.Records, k: int) -> None:
    """The twin of Adult on data that is always there."""
    assert_k_anonymity(people_records, k)


@pytest.mark.skipif(not LOCATION, reason="Adult was not tried: set EQUIPOISE_DATA.")
@pytest.mark.parametrize("k", [2, 5, 50])
def test_k_anonymity_of_adult(k: int) -> None:
    keys = ("sex", "age", "race", "education", "native-country")
    records = eq.read(Path(LOCATION or "") / "arx" / "adult.csv", eq.Roles(keys))
    assert_k_anonymity(records, k)


def assert_k_anonymity(records: eq.Records, k: int) -> None:
    rule, risk = (m.measure(records, records) for m in (eq.risk.Unsafe(R.MinCount(k)), eq.risk.KAnonymity(k)))
    assert rule.number == risk.number > 0
    assert rule.value == pytest.approx(risk.value)
    assert rule.by_record().equals(risk.by_record())


def test_one_value_is_attribute_disclosure(people_records: eq.Records) -> None:
    """Classes of one sensitive value are those that are not 2-diverse."""
    pair = (eq.risk.Unsafe(R.Diversity("ill", 2)), eq.risk.AttributeDisclosure("ill"))
    one, two = (measure.measure(people_records, people_records) for measure in pair)
    assert (one.number, one.value) == (two.number, pytest.approx(two.value))


def test_tables_of_values(people_records: eq.Records) -> None:
    """Inner cells of a table count, its margins do not; records have no contributions."""
    table = eq.table(people_records, ("sex", "area"), "salary")
    inner = table.table.filter(R.PPercent(0.1).flag(table).to_numpy() & table.inner)
    score = eq.risk.Unsafe(R.PPercent(0.1)).measure(table, table)
    assert (score.number, score.value) == (inner["n"].sum(), pytest.approx(inner["n"].sum() / 400))
    cells = eq.Cells.of(
        pl.DataFrame({"cell": ["a", "b"], "n": [3, 5], "value": [9, 9], "top1": [8, 3], "top2": [1, 3]})
    )
    assert eq.risk.Unsafe(R.PPercent(0.1)).measure(cells, cells).number == 3
    assert eq.risk.Unsafe(R.Zero() | R.Dominance(1, 0.5)).measure(cells, cells).number == 3
    for rule in (R.PPercent(), R.Zero(), R.Request(), R.Marked(), R.MinCount(3) | R.Dominance()):
        with pytest.raises(eq.DataError, match="looks at contributions to a value"):
            eq.risk.Unsafe(rule).measure(people_records, people_records)
    with pytest.raises(eq.DataError, match="measure it on records"):
        eq.risk.Unsafe(R.Diversity("area")).measure(table, table)


def test_a_sensitive_key() -> None:
    """Left out of the keys where the rule stands alone; refused where another rule would need it."""
    alone = measured(R.Diversity("ill", 2), keys=["town", "ill"])
    assert alone.number == 2
    with pytest.raises(eq.RolesError, match="measure each rule apart"):
        measured(R.Diversity("ill", 2) | R.MinCount(3), keys=["town", "ill"])
    with pytest.raises(eq.RolesError, match="no keys beside"):
        measured(R.Diversity("ill", 2), keys="ill")
    with pytest.raises(eq.RolesError, match="Did you mean 'ill'"):
        measured(R.Diversity("iil", 2))


@pytest.mark.parametrize("rule", [3, "min-count:3", R.MinCount])
def test_only_a_rule(rule: Any) -> None:
    with pytest.raises(eq.ParameterError, match="rule must be a rule"):
        eq.risk.Unsafe(rule)


NAME = "unsafe(rule='diversity:ill,2 | min-count:3')"


def test_a_limit_and_an_axis(people_records: eq.Records) -> None:
    """Named in a policy, it decides; a sweep of coarsenings never touches records; it spans the map."""
    policy = eq.Policy({NAME: "< 0.7", "entropy": "> 0"})
    recipes = [eq.Recipe([eq.masks.Recode("age", level)]) for level in ("10", "5")] + [eq.Recipe()]
    trials = eq.sweep(people_records, recipes, policy.measures())
    values = [trial.scores["unsafe"].value for trial in trials]
    direct = [parse(NAME, "measure").measure(recipe.run(people_records), people_records).value for recipe in recipes]
    assert values == pytest.approx(direct)
    assert values[0] < values[2]
    judged = [policy.judge(trial).accepted for trial in trials]
    assert judged == [value < 0.7 for value in values]
    name = label(parse(NAME, "measure"))
    assert axes(trials[0].scores, risk=name).risk.name == name


def test_on_the_command_line(people: pl.DataFrame, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    people.write_csv(tmp_path / "people.csv")
    options = ["--keys", "sex,area", "--sensitive", "ill", "--measure", NAME, "--measure", "unsafe:min-count:5"]
    assert main(["assess", str(tmp_path / "people.csv"), *options]) == 0
    screen = "".join(capfd.readouterr().out.split())
    assert "diversity(sensitive=('ill',))|min_count" in screen
    assert "unsafe(rule='min_count(n=5)')" in screen
