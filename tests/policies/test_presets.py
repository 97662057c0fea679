"""Presets: each loads, and its limits mean what its source says on a small file."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import equipoise as eq
from equipoise.policies.policy_file import Job
from equipoise.policies.presets import extended, preset_named, presets, slots_of
from equipoise.recipe.catalogue import parse

NAMES = [
    "abs-datalab", "cell-key", "cms", "ema", "ema-11", "eurostat-magnitude", "hdx", "health-canada",
    "hipaa-safe-harbor", "opensafely", "statcan", "uk-tre", "worldbank",
]  # fmt: skip
TABLES = [name for name in NAMES if presets()[name].about == "table"]


def job(folder: Path, name: str, **own: Any) -> Job:
    plain: dict[str, Any] = {
        "extends": name,
        "data": {"path": "x.csv"},
        "roles": {"keys": ["sex", "age"], "hierarchies": {"age": {"kind": "intervals", "widths": [5]}}},
    }
    if presets()[name].about == "table":
        plain["table"] = {"by": ["sex"], "value": "pay"}
    if name == "hipaa-safe-harbor":
        plain["slots"] = {"age": "age"}
    return Job.from_plain(plain | own, folder / "policy.toml")


def judged(name: str, folder: Path, classes: list[int], weight: float | None = None) -> bool:
    """Whether a file with classes of these sizes is inside the limits of a preset."""
    ages = [age for age, size in enumerate(classes) for _ in range(size)]
    table = pl.DataFrame({"sex": ["f"] * len(ages), "age": ages, "w": [weight or 1.0] * len(ages)})
    records = eq.read(table, eq.Roles(["sex", "age"], weight="w" if weight else None))
    policy = job(folder, name).policy()
    scores = [measure.measure(records, records) for measure in policy.measures()]
    return bool(policy.judge(eq.Trial(eq.Recipe(), scores)))


def exposed(name: str, folder: Path, frame: pl.DataFrame, value: str | None) -> float:
    """The share of sensitive cells that a table shows as it is, by the rule of a preset; -1 where none is sensitive."""
    policy = job(folder, name).policy()
    made = eq.table(eq.read(frame, eq.Roles(["k"])), "k", value)
    (measure,) = [m for m in policy.measures() if isinstance(m, eq.tables.Exposed)]
    return float(measure.rule.flag(made).sum())


def counts(**sizes: int) -> pl.DataFrame:
    return pl.DataFrame({"k": [key for key, size in sizes.items() for _ in range(size)]}).with_columns(
        v=pl.lit(1.0) + pl.int_range(pl.len()) * 0.0
    )


def amounts(*cells: list[float]) -> pl.DataFrame:
    return pl.DataFrame(
        {"k": [f"c{i}" for i, cell in enumerate(cells) for _ in cell], "v": [v for c in cells for v in c]}
    )


def test_the_guide_has_the_sentence_of_every_source() -> None:
    guide = (Path(__file__).parents[2] / "docs/guides/presets.md").read_text(encoding="utf-8")
    for name, preset in presets().items():
        assert f"| `{name}` | {preset.says} |" in guide


def test_every_preset_is_there_with_its_source() -> None:
    assert list(presets()) == NAMES
    for preset in presets().values():
        assert len(preset.words) < 120, preset.name
        assert preset.source, preset.name
        assert len(preset.says.split()) >= 10, preset.name
        assert preset.text.startswith("# "), preset.name


@pytest.mark.parametrize("name", NAMES)
def test_a_policy_that_extends_it_loads(name: str, tmp_path: Path) -> None:
    found = job(tmp_path, name)
    assert found.extends == name
    assert found.policy().extends == name
    assert found.candidates
    if name != "hipaa-safe-harbor":
        assert all(limit.reason for limit in found.policy().parsed)
    (tmp_path / "again.toml").write_text(found.to_toml(), encoding="utf-8")
    again = Job.load(tmp_path / "again.toml")
    assert (again.policy(), again.scales(), again.candidates) == (found.policy(), found.scales(), found.candidates)


@pytest.mark.parametrize("name", ["ema", "health-canada"])
def test_ema_refuses_11_and_accepts_12(name: str, tmp_path: Path) -> None:
    """1/11 = 0.0909 is above 0.09, 1/12 is not."""
    assert not judged(name, tmp_path, [11, 30])
    assert judged(name, tmp_path, [12, 30])


def test_worldbank_refuses_2_and_accepts_3(tmp_path: Path) -> None:
    assert not judged("worldbank", tmp_path, [2, 30])
    assert judged("worldbank", tmp_path, [3, 30])


def test_hdx_refuses_3_percent_and_accepts_less(tmp_path: Path) -> None:
    """Classes of 33 without weights have a global risk of 1/33 = 3.03 %; of 34, 2.94 %."""
    assert not judged("hdx", tmp_path, [33, 33])
    assert judged("hdx", tmp_path, [34, 34])


def test_cms_hides_1_to_10(tmp_path: Path) -> None:
    assert exposed("cms", tmp_path, counts(a=10, b=30), None) == 1
    assert exposed("cms", tmp_path, counts(a=11, b=30), None) == 0


def test_opensafely_redacts_7_and_fewer(tmp_path: Path) -> None:
    assert exposed("opensafely", tmp_path, counts(a=7, b=30), None) == 1
    assert exposed("opensafely", tmp_path, counts(a=8, b=30), None) == 0


def test_eurostat_wants_3_contributors_and_p_of_17_6_percent(tmp_path: Path) -> None:
    """The others of the two largest must have 17.6 % of the largest."""
    assert exposed("eurostat-magnitude", tmp_path, amounts([50.0, 50.0], [10.0] * 9), "v") == 1
    assert exposed("eurostat-magnitude", tmp_path, amounts([100.0, 50.0, 17.0], [10.0] * 9), "v") == 1
    assert exposed("eurostat-magnitude", tmp_path, amounts([100.0, 50.0, 18.0], [10.0] * 9), "v") == 0
    assert parse("p-percent:17.6%", "rule").p == pytest.approx(15 / 85, abs=1e-3)


def test_abs_has_a_rule_of_10_and_two_dominance_rules(tmp_path: Path) -> None:
    even = [10.0] * 20
    assert exposed("abs-datalab", tmp_path, amounts([10.0] * 9, even), "v") == 1
    assert exposed("abs-datalab", tmp_path, amounts([10.0] * 10, even), "v") == 0
    assert exposed("abs-datalab", tmp_path, amounts([120.0] + [10.0] * 11, even), "v") == 1, "(1, 50)"
    assert exposed("abs-datalab", tmp_path, amounts([120.0, 120.0] + [10.0] * 11, even), "v") == 1, "(2, 67)"
    assert exposed("abs-datalab", tmp_path, amounts([90.0, 90.0] + [10.0] * 11, even), "v") == 0


def test_uk_tre_has_10_90_10_and_zeros(tmp_path: Path) -> None:
    even = [10.0] * 20
    assert exposed("uk-tre", tmp_path, amounts([10.0] * 9, even), "v") == 1
    assert exposed("uk-tre", tmp_path, amounts([10.0] * 10, even), "v") == 0
    assert exposed("uk-tre", tmp_path, amounts([1000.0, 1000.0] + [10.0] * 20, even), "v") == 1, "(2, 90)"
    assert exposed("uk-tre", tmp_path, counts(a=9, b=30), None) == 1
    assert exposed("uk-tre", tmp_path, counts(a=10, b=30), None) == 0
    assert [mask["base"] for c in job(tmp_path, "uk-tre").candidates for mask in c.masks if "base" in mask] == [5]


def test_statcan_rounds_to_5_at_random(tmp_path: Path) -> None:
    (first, second) = (parse_mask(c.masks[0]) for c in job(tmp_path, "statcan").candidates)
    assert (first.base, first.controlled) == (5, False)
    assert (second.base, second.aim) == (5, "random")


def test_cell_key_publishes_no_count_from_1_to_9(tmp_path: Path) -> None:
    (candidate,) = job(tmp_path, "cell-key").candidates
    law = parse_mask(candidate.masks[0]).law()
    for count in range(1, 40):
        likely = [count + int(v) for i, v in zip(law.i, law.v, strict=True) if i == min(count, law.largest)]
        assert not [told for told in likely if 1 <= told <= 9]


def parse_mask(table: dict[str, Any]) -> Any:
    from equipoise.recipe.catalogue import build

    return build(table["use"], "mask", {k: v for k, v in table.items() if k != "use"})


def test_safe_harbor_keeps_years_three_digits_and_90_plus(tmp_path: Path) -> None:
    """45 CFR 164.514(b)(2): on a file that has one of each."""
    table = pl.DataFrame(
        {
            "years": [*range(80, 100)],
            "zip": ["12345", "12399", "54321", "54322"] * 5,
            "born": pl.date_range(pl.date(2001, 1, 1), pl.date(2001, 1, 20), eager=True),
        }
    )
    table.write_parquet(tmp_path / "x.parquet")
    found = Job.from_plain(
        {
            "extends": "hipaa-safe-harbor",
            "data": {"path": "x.parquet"},
            "roles": {"keys": ["years", "zip", "born"]},
            "slots": {"age": "years", "zip": "zip", "dates": ["born"]},
        },
        tmp_path / "policy.toml",
    )
    records = found.read()
    (recipe,) = found.recipes(records)
    shown = recipe.run(records).collect()
    assert shown["zip"].unique().sort().to_list() == ["123", "543"]
    assert shown["born"].cast(pl.String).unique().to_list() == ["2001"]
    ages = shown["years"].cast(pl.String).to_list()
    assert len(set(ages[10:])) == 1, "90 and more are one category"
    assert len(set(ages[:10])) == 10, "others are kept"
    assert slots_of(preset_named("hipaa-safe-harbor")) == ("age", "zip", "dates", "births", "oldest", "birth_years")


def test_the_policy_s_own_values_win(tmp_path: Path) -> None:
    own = job(tmp_path, "ema", limits={"prosecutor": "<= 0.05", "entropy": "> 2"}, candidates=[{"coarsenings": True}])
    assert own.policy().limits == {"prosecutor": "<= 0.05", "entropy": "> 2"}
    assert len(own.candidates) == 1
    spelt = job(tmp_path, "worldbank", limits={"k_anonymity:3": "<= 1%"})
    assert spelt.policy().limits == {"k_anonymity": "<= 1%"}


def test_measures_that_need_a_role_go_without_it(tmp_path: Path) -> None:
    assert "household" not in job(tmp_path, "worldbank").measures
    roles = {"keys": ["sex", "age"], "household": "h"}
    assert "household" in job(tmp_path, "worldbank", roles=roles).measures


def test_a_house_policy_can_be_extended_too(tmp_path: Path) -> None:
    (tmp_path / "house.toml").write_text('extends = "ema"\n[limits]\nentropy = "> 3"\n', encoding="utf-8")
    plain = {"extends": "house.toml", "data": {"path": "x"}, "roles": {"keys": ["a"]}, "limits": {"entropy": "> 4"}}
    assert set(extended(plain, tmp_path)["limits"]) == {"prosecutor", "entropy"}
    assert extended(plain, tmp_path)["limits"]["entropy"] == "> 4"
    (tmp_path / "round.toml").write_text('extends = "round.toml"\n', encoding="utf-8")
    with pytest.raises(eq.ParameterError, match="extends itself"):
        extended({"extends": "round.toml"}, tmp_path)


@pytest.mark.parametrize(
    ("name", "own", "words"),
    [
        ("emma", {}, "No preset 'emma'. Did you mean 'ema'"),
        ("cms", {"table": None}, "is about tables"),
        ("ema", {"table": {"by": ["sex"]}}, "is about records"),
        ("hipaa-safe-harbor", {}, "name them under .slots., age, zip, dates"),
        ("hipaa-safe-harbor", {"slots": {"age": "a", "date": "b"}}, "no slot 'date'. Did you mean 'dates'"),
    ],
)
def test_presets_that_do_not_fit(name: str, own: dict[str, Any], words: str, tmp_path: Path) -> None:
    plain = {"extends": name, "data": {"path": "x"}, "roles": {"keys": ["a"]}, "limits": {"uniques": "< 1"}} | own
    plain = {key: value for key, value in plain.items() if value is not None}
    with pytest.raises(eq.ParameterError, match=words):
        Job.from_plain(plain, tmp_path / "policy.toml", {("extends",): 1})


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_released_under_it(name: str, tmp_path: Path) -> None:
    """Small cells and large: what is published meets the limit, measured afresh."""
    rows = {"a": 4, "b": 40, "c": 15, "d": 60}
    frame = pl.DataFrame(
        {
            "k": [k for k, n in rows.items() for _ in range(3 * n)],
            "m": [m for n in rows.values() for m in "xyz" for _ in range(n)],
            "pay": [float(10 + i * 7 % 13) for i in range(3 * sum(rows.values()))],
        }
    )
    frame.write_parquet(tmp_path / "x.parquet")
    value = {"value": "pay"} if name == "eurostat-magnitude" else {}
    found = job(tmp_path, name, data={"path": "x.parquet"}, roles={}, table={"by": ["k", "m"], **value})
    (tmp_path / "policy.toml").write_text(found.to_toml(), encoding="utf-8")
    made = eq.balance(tmp_path / "policy.toml")
    assert not isinstance(made, eq.Release)
    assert made.verdict.accepted


@pytest.mark.parametrize("name", ["abs-datalab", "uk-tre"])
def test_amounts_and_counts_alike(name: str, tmp_path: Path) -> None:
    """Rules on contributions beside rules on counts: in a table of counts every record contributes one."""
    frame = pl.DataFrame({"k": [*"ab"] * 30 + ["a"] * 20, "m": ["x"] * 60 + ["y"] * 20, "pay": 5.0})
    frame.write_parquet(tmp_path / "x.parquet")
    for value in ({}, {"value": "pay"}):
        found = job(tmp_path, name, data={"path": "x.parquet"}, roles={}, table={"by": ["k", "m"], **value})
        (tmp_path / "policy.toml").write_text(found.to_toml(), encoding="utf-8")
        made = eq.balance(tmp_path / "policy.toml", out=tmp_path / f"out{len(value)}")
        assert not isinstance(made, eq.Release)
        assert made.verdict.accepted
        (rule,) = (measure.rule for measure in found.scales() if isinstance(measure, eq.tables.Exposed))
        cells = eq.table(eq.Records.of(frame, eq.Roles()), ["k", "m"], *value.values())
        flagged = cells.table.filter(rule.flag(cells)).select("k", "m").rows()
        assert flagged == ([("b", "y")] if name == "uk-tre" else [])


@pytest.mark.parametrize("name", ["ema", "hdx", "worldbank"])
def test_presets_keep_to_the_floors_of_hierarchies(name: str, tmp_path: Path) -> None:
    """No candidate of a preset releases a key finer than its floor allows."""
    pl.DataFrame({"sex": ["f", "m"] * 30, "age": [*range(60)]}).write_csv(tmp_path / "x.csv")
    trees = {"age": {"kind": "intervals", "widths": [5, 10], "floor": 5}}
    found = job(tmp_path, name, roles={"keys": ["sex", "age"], "hierarchies": trees})
    recipes = found.recipes(found.read())
    assert len(recipes) == 4
    assert all(isinstance(recipe.masks[0], eq.masks.Recode) for recipe in recipes)


def test_a_policy_of_the_house_is_extended_with_its_roles(tmp_path: Path) -> None:
    """What a person decides stands in a short file over the one that init wrote."""
    (tmp_path / "first.toml").write_text(
        'extends = "ema"\n[data]\npath = "x.csv"\n[roles]\nkeys = ["sex", "age"]\nid = "person"\n'
        '[[roles.hierarchies.age]]\nkind = "intervals"\nwidths = [5]\n'
    )
    own = {"extends": "first.toml", "roles": {"keys": ["age"], "hierarchies": {"pay": {"kind": "prefix"}}}}
    found = extended(own, tmp_path)
    assert found["data"] == {"path": "x.csv"}
    assert found["roles"]["keys"] == ["age"]
    assert found["roles"]["id"] == "person"
    assert set(found["roles"]["hierarchies"]) == {"age", "pay"}
    assert "prosecutor" in found["limits"]
    assert extended({"extends": "first.toml"}, tmp_path)["roles"]["keys"] == ["sex", "age"]
