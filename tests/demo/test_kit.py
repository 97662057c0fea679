"""The demo folders: data, roles and policies that run."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import equipoise as eq
from equipoise.demo.folder import KITS, write
from equipoise.policies.policy_file import Job


@pytest.mark.parametrize("name", KITS)
def test_a_folder_holds_data_roles_and_policies(name: str, tmp_path: Path) -> None:
    policy = eq.demo.write(tmp_path / "demo", name)
    assert {p.name for p in policy.parent.iterdir()} == set(KITS[name].files)
    assert pl.read_parquet(policy.with_name(KITS[name].data)).equals(KITS[name].make())
    roles = eq.Roles.from_toml(policy.with_name(KITS[name].roles))
    assert roles == Job.load(policy).read_roles()
    assert eq.read(policy.with_name(KITS[name].data), roles).roles == roles
    with pytest.raises(eq.DataError, match="holds a demo already"):
        eq.demo.write(tmp_path / "demo", name)


def test_all_three_fit_into_one_folder(tmp_path: Path) -> None:
    for name in KITS:
        eq.demo.write(tmp_path, name)
    assert len(list(tmp_path.glob("*.parquet"))) == 3


def test_an_unknown_demo(tmp_path: Path) -> None:
    with pytest.raises(eq.ParameterError, match="Did you mean 'hospital'"):
        eq.demo.write(tmp_path, "hopsital")


def test_the_hospital_policy_runs_to_a_release(tmp_path: Path) -> None:
    made = eq.balance(eq.demo.write(tmp_path, "hospital"))
    table = pl.read_parquet(made.public / "data.parquet")
    assert made.verdict
    assert "stay" not in table.columns
    assert table["admission"].str.len_chars().max() <= 7, "no exact date is released"  # type: ignore[operator]
    assert table["postcode"].str.len_chars().max() <= 3  # type: ignore[operator]


def test_the_business_policy_runs_to_a_release(tmp_path: Path) -> None:
    """A third of the firms: amounts are masked, industries and regions coarsened."""
    policy = eq.demo.write(tmp_path, "business")
    firms = eq.demo.business().gather_every(3)
    firms.write_parquet(tmp_path / "business.parquet")
    text = policy.read_text(encoding="utf-8").replace("< 0.03", "< 0.2").replace("draws = 2", "draws = 1")
    (tmp_path / "seed.json").write_text('{"seed": "1"}')
    policy.write_text('seed_file = "seed.json"\n' + text.replace("<= 0.1", "<= 0.3"), encoding="utf-8")
    made = eq.balance(policy)
    table = pl.read_parquet(made.public / "data.parquet")
    assert made.verdict
    assert made.evidence["withheld"] == ["enterprise"]
    assert table["industry"].n_unique() < firms["industry"].n_unique() / 3
    assert table["turnover"].sort().to_list() != firms["turnover"].sort().to_list()


def test_the_table_of_the_business_demo_runs_to_a_release(tmp_path: Path) -> None:
    """Every method on one map, fewer of each; what is suppressed cannot be computed, and dominance is warned of."""
    policy = eq.demo.write(tmp_path, "business").with_name("business-table.toml")
    fewer = (
        policy.read_text(encoding="utf-8")
        .replace('"p-percent:10% | min-count:3", ', "")
        .replace(', "min-count:3"]', "]")
    )
    policy.write_text(fewer.replace("[1_000, 20_000, 100_000]", "[1_000, 20_000]"), encoding="utf-8")
    made: Any = eq.balance(policy)
    assert made.verdict
    assert made.trial.words() == "suppress by p-percent:10%"
    assert made.trial.scores["exposed"].value == 0
    assert {trial.recipe.family for trial in made.frontier.trials} == {"suppress", "round", "adjust"}
    assert [warning.rule for warning in made.table.warnings] == ["dominance:1,75%"]
    assert pl.read_csv(made.public / "table.csv").height == 19 * 11


def test_a_demo_that_ends_early_leaves_no_part_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that a dead run left in its final folder would have made the next one say that a demo is there already."""
    places: list[bool] = []

    def ends(place: Path, *_: object, **__: object) -> None:
        places.append((tmp_path / "demo").exists())
        raise OSError(28, "No space left on device", str(place))

    monkeypatch.setattr("equipoise.demo.folder.write_whole", ends)
    with pytest.raises(OSError, match="No space"):
        write(tmp_path / "demo", "business")
    assert places == [False]
    assert not list(tmp_path.iterdir())
