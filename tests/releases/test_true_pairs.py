"""A release folder is made again to know whose record is whose, or it is said why not."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.data import engines
from equipoise.data.records import TRACED_ROW
from equipoise.releases.replay import UntraceableRelease, true_pairs

pytestmark = pytest.mark.usefixtures("plain_pages")
KEYS = ["age", "sex", "area"]
MASKS: dict[str, list[Any]] = {
    "noise": [eq.masks.Noise(["pay", "tax"], 0.3)],
    "coarse": [eq.masks.TopCode("age", 60)],
    "sample": [eq.masks.Sample(0.5), eq.masks.RankSwap(["pay"], 0.1)],
    "order": [eq.masks.ShuffleOrder(), eq.masks.TopCode("age", 60)],
    "groups": [eq.masks.Microaggregate(["pay", "tax"], 3), eq.masks.LocalSuppress(eq.rules.MinCount(2))],
    "moves": [eq.masks.Pram(0.5, ("sex", "area")), eq.masks.Shuffle(["tax"]), eq.masks.Renumber(["home"])],
}


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    rng = np.random.default_rng(5)
    size = rng.normal(size=(90, 1))
    pay, tax = np.exp(5 + size + rng.normal(size=(90, 2))).round(2).T
    ages, areas = rng.integers(20, 70, 90), rng.choice(list("abc"), 90)
    facts = {"age": ages, "sex": rng.choice(["f", "m"], 90), "area": areas, "home": rng.integers(0, 30, 90)}
    return pl.DataFrame({**facts, "pay": pay, "tax": tax, "mark": rng.permutation(90)})


def written(table: pl.DataFrame, masks: list[Any], place: Path, number: str | None = None) -> eq.Records:
    """A release whose column `mark`, which nothing changes, tells the test who is who."""
    original = eq.read(table, eq.Roles(KEYS, numeric=["pay", "tax"], id=number))
    eq.release(original, eq.Recipe(masks, 11), eq.Policy(), place, measures=[eq.risk.Uniques()])
    return original


@pytest.mark.parametrize(("name", "number"), [*((name, None) for name in MASKS), ("noise", "nr"), ("sample", "nr")])
def test_every_record_is_followed(name: str, number: str | None, table: pl.DataFrame, tmp_path: Path) -> None:
    if number:
        table = table.with_columns(nr=pl.Series(np.random.default_rng(1).permutation(90)))
    released, original = true_pairs(tmp_path / "out", written(table, MASKS[name], tmp_path / "out", number))
    assert original.roles.id == (number or "record")
    both = released.collect().join(original.collect(), on=original.roles.id, suffix="_true")
    assert both.height == released.height()
    assert both["mark"].equals(both["mark_true"], check_names=False)


@pytest.mark.parametrize("name", MASKS)
def test_to_be_followed_changes_no_draw(name: str, table: pl.DataFrame) -> None:
    records = eq.read(table, eq.Roles(KEYS, numeric=["pay", "tax"]))
    frame = engines.like(records.frame, table.with_row_index(TRACED_ROW))
    recipe = eq.Recipe(MASKS[name], 3)
    followed = recipe.run(eq.Records(frame, records.roles)).collect()
    assert followed.drop(TRACED_ROW).equals(recipe.run(records).collect())


def test_the_attack_says_so(table: pl.DataFrame, tmp_path: Path) -> None:
    """By folder, by what made it, with the original or with the one of the policy: the same exact shares."""
    table.write_csv(tmp_path / "people.csv")
    original = eq.read(tmp_path / "people.csv", eq.Roles(KEYS, numeric=["pay", "tax"]))
    recipe = eq.Recipe(MASKS["noise"], 11)
    release = eq.release(original, recipe, eq.Policy(), tmp_path / "out")
    tried = [eq.attacks.Nearest()]
    outcomes = [eq.attack(tmp_path / "out", original, attacks=tried), eq.attack(release, attacks=tried)]
    truth = eq.attacks.Nearest(known=tuple(KEYS)).measure(recipe.run(original), original).value
    for outcome in outcomes:
        assert (outcome.truth, outcome.estimated) == ("release", False)
        assert outcome.strongest.score.value == pytest.approx(truth)
        assert outcome.notes[0].startswith("The release was made again from its private folder")
        assert not any(s.words.startswith("Estimated") for s in outcome.scenarios)


def test_without_the_private_part_it_is_estimated(table: pl.DataFrame, tmp_path: Path) -> None:
    original = written(table, MASKS["noise"], tmp_path / "out")
    shutil.rmtree(tmp_path / "out" / "private")
    outcome = eq.attack(tmp_path / "out", original, attacks=[eq.attacks.Nearest()])
    assert outcome.truth == "agreement"
    assert outcome.notes[0] == "The release was not made again: private/ is not here."
    with pytest.raises(eq.ParameterError, match="What does the intruder have"):
        eq.attack(tmp_path / "out")


def test_another_original_or_other_data_is_not_followed(table: pl.DataFrame, tmp_path: Path) -> None:
    original = written(table, MASKS["noise"], tmp_path / "out")
    other = eq.read(table.reverse(), original.roles)
    with pytest.raises(UntraceableRelease, match="not made again: the original is not the file that was released"):
        true_pairs(tmp_path / "out", other)
    data = tmp_path / "out" / "public" / "data.parquet"
    pl.read_parquet(data).reverse().write_parquet(data)
    with pytest.raises(UntraceableRelease, match="not made again: made again, the data is another one"):
        true_pairs(tmp_path / "out", original)


def test_a_synthetic_release_stands_for_nobody(table: pl.DataFrame, tmp_path: Path) -> None:
    original = written(table, [eq.masks.Synthesize("bootstrap")], tmp_path / "out")
    with pytest.raises(UntraceableRelease, match="stand for nobody"):
        true_pairs(tmp_path / "out", original)
